/* qcc: the library.
 *
 * What is not in this header does not exist.  Everything is reached through handles; a handle is destroyed by the
 * function named beside it.  Nothing is printed and nothing touches a file system unless a path or a source says so.
 * A context serves one thread at a time, a second is answered QCC_BUSY; contexts are independent of each other.  Every
 * call that can fail answers with a qcc_status and leaves its results untouched when it is not QCC_OK; what went wrong
 * was then told, once, to the context's report function.  A call that finds no memory answers
 * QCC_NO_MEMORY; those without a status need none. */
#ifndef QCC_QCC_H
#define QCC_QCC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define QCC_API     __attribute__((visibility("default")))
#define QCC_CHECKED __attribute__((visibility("default"), warn_unused_result))
#else
#define QCC_API
#define QCC_CHECKED
#endif

#define QCC_VERSION_MAJOR 0
#define QCC_VERSION_MINOR 1
#define QCC_VERSION_PATCH 0

/* What a call answers; up to QCC_INTERNAL, and QCC_INTERRUPTED, these are the exit codes of the command. */
typedef enum qcc_status {
    QCC_OK = 0,
    QCC_MISMATCH = 1,    /* a verification failed, or training diverged */
    QCC_USAGE = 2,       /* options or arguments */
    QCC_INVALID = 3,     /* the model or the data */
    QCC_UNSUPPORTED = 4, /* an operator or type; all of them were reported */
    QCC_IO = 5,
    QCC_DEVICE = 6,
    QCC_INTERNAL = 7, /* a mistake in qcc */
    QCC_NO_MEMORY = 8,
    QCC_BUSY = 9,     /* called from inside a callback, or while another thread is in a call */
    QCC_FORKED = 10,  /* the context belongs to the parent process */
    QCC_ALREADY = 11, /* there was nothing left to do */
    QCC_PENDING = 12, /* gradients wait to be used or abandoned */
    QCC_INTERRUPTED = 130
} qcc_status;

typedef struct qcc_context qcc_context;
typedef struct qcc_model qcc_model;
typedef struct qcc_step qcc_step;
typedef struct qcc_session qcc_session;
typedef struct qcc_scaler qcc_scaler;

/* ---- messages ---- */

/* QCC_PROGRESS is a line about a run that goes on, without its end; of topic "bar" it replaces the one before. */
typedef enum qcc_severity { QCC_ERROR, QCC_WARNING, QCC_REMARK, QCC_NOTE, QCC_PROGRESS } qcc_severity;

typedef struct qcc_message {
    qcc_severity severity;
    qcc_status status;
    const char *text; /* as the command prints it: "FILE: PLACE: what is wrong", at: and try: lines; ends with \n */
    const char *file, *place, *what; /* its parts; may be null */
    int64_t byte;                    /* offset in a binary file, -1: none */
    int line, column;                /* of a text file, from 1; 0: none */
    const char *const *at;
    size_t n_at;
    const char *const *try_;
    size_t n_try;
    const char *topic; /* of a remark */
} qcc_message;

/* Writes errors and warnings to standard error: for programs that want no more. */
QCC_API void qcc_report_stderr(void *user, const qcc_message *message);

/* ---- context ---- */

/* Memory comes from `alloc`, blocks aligned to 64 bytes, on the thread that made the call.  The C library's own parts
 * (open folders) and jansson use malloc all the same. */
typedef struct qcc_context_options {
    size_t size;                                            /* sizeof(qcc_context_options) */
    void (*report)(void *user, const qcc_message *message); /* null: messages are dropped */
    void *user;                                             /* for report, alloc and release */
    void *(*alloc)(void *user, size_t size);                /* null: the C library's */
    void (*release)(void *user, void *block, size_t size);
    int threads;        /* 0: one per processor; 1 starts no thread */
    uint64_t memory;    /* bytes the context may hold; 0: no bound */
    const char *limits; /* "name=value,..." over the built-in limits; null: none */
    int warnings_are_errors;
    int columns; /* of the terminal that progress is shown on; 0: there is none */
    const char *
        device; /* where sessions run, as --device says it: "reference", "cuda:1"; null: the CPU; "auto": a GPU if there is one */
    int exact;         /* not 0: products of bf16 have the bits of the reference, too, as --exact asks */
    const char *cache; /* a folder that keeps kernels compiled for a GPU; null or "none": they are compiled each time */
    const char *matmul; /* who makes products on a GPU, as --matmul says it: "cublas", "auto"; null: "ours" */
    int no_measure; /* not 0: how they are made is chosen unmeasured, not by times that are measured once and kept in `cache` */
} qcc_context_options;

/* Opens a context; `options` may be null.  A device that this build has no engine for is QCC_DEVICE. */
QCC_CHECKED qcc_status qcc_open(const qcc_context_options *options, qcc_context **context);

/* Gives everything back, the handles made from it included.  Null is allowed; in a forked child only memory is freed;
 * from inside a callback, and while another thread is in a call, nothing happens. */
QCC_API void qcc_close(qcc_context *context);

/* Ends the call that runs in the context with QCC_INTERRUPTED as soon as it can; any thread or signal handler may ask.  A
 * training run finishes its step and saves first; asked a second time it gives the step up. */
QCC_API void qcc_interrupt(qcc_context *context);

/* Seconds after which a program whose command was interrupted once should interrupt it again: of what --grace says (25)
 * four fifths are for the step that runs, the rest for saving.  A signal handler may ask. */
QCC_API unsigned qcc_grace(const qcc_context *context);

/* Asks the training run of a command to save a checkpoint and go on; any thread or signal handler may. */
QCC_API void qcc_request_save(qcc_context *context);

/* "0.1.0" */
QCC_API const char *qcc_version(void);

/* "ok", "usage", ...: the name of a status. */
QCC_API const char *qcc_status_name(qcc_status status);

/* ---- sources and sinks ---- */

/* Where bytes come from: a file, memory, or the host.  Weights of a model are read when they are wanted, not before: `bytes`,
 * and what `read` serves, stay as they are until qcc_model_free of that model or qcc_close; a step or session that lives
 * longer takes a copy in qcc_model_free, which may call `read` once more.  A file or bytes that changed meanwhile are
 * noticed when the next weight is read, bytes as far as a look here and there can tell: QCC_IO, QCC_INVALID.  qcc_load
 * wants nothing of its source once it returned, qcc_read nothing of .qir text. */
typedef struct qcc_source {
    const char *path; /* a file; null otherwise */
    const void *bytes;
    uint64_t size; /* of bytes, or of what read serves */
    qcc_status (*read)(void *user, uint64_t offset, void *buffer, size_t n);
    void *user;
    const char *name; /* for messages, where there is no path */
} qcc_source;

/* Where bytes go: a file (written aside and renamed when complete) or the host, whose function may leave an errno that
 * says why it answers otherwise than QCC_OK. */
typedef struct qcc_sink {
    const char *path; /* "-" is standard output, which `write` writes to if there is one */
    qcc_status (*write)(void *user, const void *bytes, size_t n);
    void *user;
} qcc_sink;

QCC_API qcc_source qcc_file(const char *path);
QCC_API qcc_source qcc_bytes(const void *bytes, size_t n);
QCC_API qcc_sink qcc_to_file(const char *path);

/* ---- values ---- */

typedef enum qcc_dtype {
    QCC_BOOL,
    QCC_I2,
    QCC_U2,
    QCC_I4,
    QCC_U4,
    QCC_I8,
    QCC_U8,
    QCC_I16,
    QCC_U16,
    QCC_I32,
    QCC_U32,
    QCC_I64,
    QCC_U64,
    QCC_F4E2M1,
    QCC_F8E4M3,
    QCC_F8E4M3FNUZ,
    QCC_F8E5M2,
    QCC_F8E5M2FNUZ,
    QCC_F8E8M0,
    QCC_F16,
    QCC_BF16,
    QCC_F32,
    QCC_F64,
    QCC_STRING,
    QCC_F6E2M3,
    QCC_F6E3M2,
    QCC_BIT
} qcc_dtype;

enum { QCC_MAX_RANK = 16 };

/* Where the bytes of a tensor are. */
typedef enum qcc_place { QCC_ON_HOST, QCC_ON_DEVICE } qcc_place;

/* A dense little-endian tensor in row-major order.  What is given on a device is refused, QCC_DEVICE, by an engine that is
 * not there; what is shown is on the host. */
typedef struct qcc_tensor {
    size_t size; /* sizeof(qcc_tensor), set by the caller, of what is given and of what is shown; of a list in each */
    qcc_dtype dtype;
    int rank;
    int64_t dims[QCC_MAX_RANK]; /* -1: unknown (in signatures) */
    void *data;
    size_t bytes;
    qcc_place place;
} qcc_tensor;

/* "f32"; null for a number that is no type. */
QCC_API const char *qcc_dtype_name(qcc_dtype dtype);

/* ---- models ---- */

/* Reads a model (.onnx, or .qir text).  `options` are the model options of the command: --batch, --dim, --shape,
 * --const, --opset; null: none. */
QCC_CHECKED qcc_status qcc_read(qcc_context *context, const qcc_source *source, const char *options, qcc_model **model);

/* Frees a model; null is allowed. */
QCC_API void qcc_model_free(qcc_model *model);

typedef struct qcc_value_info {
    size_t size; /* sizeof(qcc_value_info), set by the caller */
    const char *name;
    const char *type; /* "f32[batch,3,224,224]": symbolic dimensions by their names */
    qcc_tensor shape; /* without data; unknown dimensions -1; dtype QCC_STRING, rank -1 for what is no tensor */
} qcc_value_info;

/* The signature: inputs and outputs in order; pointers live as long as the model. */
QCC_API size_t qcc_n_inputs(const qcc_model *model);
QCC_API size_t qcc_n_outputs(const qcc_model *model);
QCC_CHECKED qcc_status qcc_input(const qcc_model *model, size_t i, qcc_value_info *info);
QCC_CHECKED qcc_status qcc_output(const qcc_model *model, size_t i, qcc_value_info *info);

/* Runs the model on the device of the context: `inputs` in the order of the signature; `outputs` gets the results in
 * its order, which live until the next run or until the model is freed.  Only tensors go in and out this way. */
QCC_CHECKED qcc_status qcc_run_model(qcc_model *model, const qcc_tensor *inputs, size_t n_inputs, qcc_tensor *outputs,
                                     size_t n_outputs);

/* Writes the model in another form.  `kind`: ir, onnx, json, dot, html; onnx-step, the training step as a plain model; plan
 * and program, what engines run of it and where its values lie (QCC_UNSUPPORTED where no program is made).  Of a step, and
 * where `options` say something of training, it is the step that is written.  Equal models give equal bytes. */
QCC_CHECKED qcc_status qcc_emit(qcc_model *model, const char *kind, const char *options, const qcc_sink *sink);

/* Writes the deployable model: byte-identical to what was read when nothing was trained or quantized.  `options`:
 * --dtype fp16|bf16 with --keep-io and --round-constants, --max-casts N (QCC_MISMATCH when there are more); null: none. */
QCC_CHECKED qcc_status qcc_export(qcc_model *model, const char *options, const qcc_sink *sink);

/* ---- training steps ---- */

/* Compiles a model into a training step: forward, loss, backward and update as one graph.  `options` are those of the
 * command that say what is trained and how, written the same way ("--loss mse --optimizer adam:lr=1e-3"); null: the
 * rules of the bare command.  A file that holds a step already is taken as it is, without options.  The step keeps what
 * it needs of the model: either may be freed first. */
QCC_CHECKED qcc_status qcc_compile(qcc_model *model, const char *options, qcc_step **step);

/* Frees a step; null is allowed.  Its sessions go on. */
QCC_API void qcc_step_free(qcc_step *step);

/* Writes the step as a file, STEP.onnx, that is a model and its training. */
QCC_CHECKED qcc_status qcc_write_step(qcc_step *step, const qcc_sink *sink);

/* The inputs that a session wants bound: data, targets, and what the host gives back (grad.NAME of external losses). */
QCC_API size_t qcc_step_n_inputs(const qcc_step *step);
QCC_CHECKED qcc_status qcc_step_input(const qcc_step *step, size_t i, qcc_value_info *info);

/* The parameters that are trained, in the order of the flat vectors, under the names that their modules have where the
 * file says so; the calls that take names know those of the file as well. */
QCC_API size_t qcc_n_parameters(const qcc_step *step);
QCC_CHECKED qcc_status qcc_parameter(const qcc_step *step, size_t i, qcc_value_info *info);

/* Bytes by kind, known before anything is allocated: what a session takes once it runs.  Of a step that has no program
 * they are counted from its types, and scratch is 0. */
typedef struct qcc_memory {
    size_t size; /* sizeof(qcc_memory), set by the caller */
    uint64_t weights, optimizer, other_state, gradients;
    uint64_t activations; /* the most that is alive at once, gradients left out */
    uint64_t total;
    uint64_t
        scratch; /* part of the total: what the launch takes on the way that takes most, on one thread; each more takes as much */
    uint64_t model;      /* part of the total: of a model that came as text, the file that was made of it */
    uint64_t validation; /* more than the total, once QCC_EVAL runs too */
} qcc_memory;

QCC_CHECKED qcc_status qcc_plan(const qcc_step *step, qcc_memory *memory);

/* ---- sessions ---- */

typedef struct qcc_session_options {
    size_t size;        /* sizeof(qcc_session_options) */
    const char *device; /* where it runs, as in qcc_context_options; null: where those of the context do */
} qcc_session_options;

/* Starts a session: the step's states with their initial values.  `options` may be null.  Any number of sessions run one
 * step. */
QCC_CHECKED qcc_status qcc_start(qcc_step *step, const qcc_session_options *options, qcc_session **session);

/* Ends a session; null is allowed. */
QCC_API void qcc_end(qcc_session *session);

/* Binds an input to the caller's memory, which stays as it is until the run that reads it is over.  Nothing is copied.
 * What is of another batch than the step was compiled for can be evaluated: the model is made again for that batch when
 * it is first bound, and the last four batches stay.  One that the model does not take is QCC_UNSUPPORTED, with the node
 * that does not; what was bound before then stays. */
QCC_CHECKED qcc_status qcc_bind(qcc_session *session, const char *name, const qcc_tensor *tensor);

/* Binds an input for the step after the next one, whose run is what the caller's memory stays for: a GPU is sent it while it
 * computes the next one, so that it does not wait for data.  In a loop: qcc_bind the first batch; then, for each step,
 * qcc_bind_next the batch behind it and qcc_run.  Evaluations in between read what qcc_bind binds for them; a step whose input
 * was bound both ways is QCC_USAGE.  A null tensor: what was given is forgotten. */
QCC_CHECKED qcc_status qcc_bind_next(qcc_session *session, const char *name, const qcc_tensor *tensor);

/* What qcc_run runs: the sides of a step, together or one after the other; or the model as it is deployed, with the loss
 * on what is bound, of any batch, the same for all inputs.  With QCC_ACCUMULATE a backward adds its gradients to those
 * of the backwards before that had it, and the update takes the sum; one without it forgets them.  QCC_OBSERVE, of a
 * quantized step, shows its quantizers what is bound: before its first step they must have seen some batches, which
 * tell them their ranges.
 *
 * QCC_STEP | QCC_LATER asks for a step and tells of the one that was asked for so before it (result.step says which; 0: of none
 * yet), so that a GPU is at the next step while the host looks at the last one; qcc_wait_step tells of the last.  States, numbers of
 * steps and draws are those of a loop without it: a step behind one that is not finite runs on the states that this one left
 * alone.  Where values refuse a step (an index that leads nowhere), the call that learns of it fails, naming the step: neither
 * that nor the one asked for behind it ever was, and all inputs have to be bound again.  Every other call but those that bind
 * waits for what is under way, whose result stays for qcc_wait_step. */
enum {
    QCC_FORWARD = 1,
    QCC_BACKWARD = 2,
    QCC_UPDATE = 4,
    QCC_STEP = 7,
    QCC_EVAL = 8,
    QCC_ACCUMULATE = 16,
    QCC_OBSERVE = 32,
    QCC_LATER = 64
};

typedef struct qcc_result {
    size_t size;                /* sizeof(qcc_result), set by the caller */
    uint64_t step;              /* steps begun, this one counted; 0: there was none to tell of */
    int applied;                /* the states changed */
    int finite;                 /* loss and gradients are; a step that is not changes nothing */
    double loss, grad_norm, lr; /* NaN where the step has none, or the side has not run */

    double loss_scale;      /* what the loss of this step was multiplied with; NaN: it is not scaled */
    double next_loss_scale; /* and of the next one */
    uint64_t applied_steps,
        skipped_steps;     /* of a scaled loss, so far; a schedule of the host's own follows the first */
    const char *first_bad; /* the parameter with the first gradient that was not finite; null: none */
    int finite_loss;       /* 0: the loss is not finite, which no scale mends */
} qcc_result;

/* Runs; `result` may be null.  A run that fails or is interrupted leaves states and the number of the step as they were;
 * after QCC_NO_MEMORY only qcc_end is of use. */
QCC_CHECKED qcc_status qcc_run(qcc_session *session, unsigned what, qcc_result *result);

/* Waits for the step that was asked for with QCC_LATER and not told of, and tells of it; result.step is 0 where there is none.
 * It fails as the step does. */
QCC_CHECKED qcc_status qcc_wait_step(qcc_session *session, qcc_result *result);

/* A value by name: an output, "loss", a parameter or other state, the gradient "grad.NAME" of any parameter that is
 * trained (never scaled), "loss_scale", "seed".  It is the session's own and valid until the session's next call. */
QCC_CHECKED qcc_status qcc_view(qcc_session *session, const char *name, qcc_tensor *tensor);

/* Copies a value into a state (a parameter, "lr_factor" or that of a group, "lr_factor/SELECTOR", "loss_scale": a power
 * of two, "qcc.m/NAME"), also for what the step under way has still to do; or into a gradient, between backward and
 * update; or into "seed", a u64, which random operators draw from (0). */
QCC_CHECKED qcc_status qcc_put(qcc_session *session, const char *name, const qcc_tensor *tensor);

/* A name of a session, looked up once: what is bound, viewed and put by it in a loop is not looked for again. */
typedef struct qcc_value qcc_value;

/* Looks up what qcc_bind, qcc_view or qcc_put would take, whether it has a value yet or not; the same name gives the same
 * answer.  It is the session's own and valid until qcc_end.  A name that means nothing is QCC_USAGE, reported with the
 * nearest that does. */
QCC_CHECKED qcc_status qcc_find(qcc_session *session, const char *name, qcc_value **value);

/* As the calls that take a session and a name. */
QCC_CHECKED qcc_status qcc_bind_value(qcc_value *value, const qcc_tensor *tensor);
QCC_CHECKED qcc_status qcc_bind_next_value(qcc_value *value, const qcc_tensor *tensor);
QCC_CHECKED qcc_status qcc_view_value(qcc_value *value, qcc_tensor *tensor);
QCC_CHECKED qcc_status qcc_put_value(qcc_value *value, const qcc_tensor *tensor);

/* ---- loss scaling ---- */

/* Divides the gradients at hand by the scale that they have, so that the update takes them as they are; what it does is
 * the same.  A second time it answers QCC_ALREADY and touches nothing; without gradients QCC_USAGE.  Views and puts of
 * gradients do this by themselves. */
QCC_CHECKED qcc_status qcc_unscale(qcc_session *session);

/* Gives up the gradients at hand: the step is not counted, and nothing changes.  Without gradients QCC_USAGE. */
QCC_CHECKED qcc_status qcc_abandon(qcc_session *session);

/* Keeps a dynamic scale as it is, or (0) lets it move again. */
QCC_CHECKED qcc_status qcc_freeze_loss_scale(qcc_session *session, int stays);

/* One scale for several sessions of a context, as the two steps of a GAN have it.  A session whose own gradients are not
 * finite skips its update; with `together` all that have gradients do.  The scale moves by qcc_scaler_update alone. */
QCC_CHECKED qcc_status qcc_scaler_open(qcc_context *context, int together, qcc_scaler **scaler);

/* Gives each session a scale of its own again; null is allowed. */
QCC_API void qcc_scaler_close(qcc_scaler *scaler);

/* Lets a session without gradients take the scale of those before it.  It leaves when it ends. */
QCC_CHECKED qcc_status qcc_scaler_join(qcc_scaler *scaler, qcc_session *session);

/* Moves the scale by what all updates since the last time found.  While a session has gradients that were neither used
 * nor abandoned it answers QCC_PENDING, and nothing changes. */
QCC_CHECKED qcc_status qcc_scaler_update(qcc_scaler *scaler);

/* ---- parameters and properties ---- */

/* All trained parameters as one vector of floats, in the order of qcc_parameter; `n` is its length. */
QCC_API size_t qcc_flat_size(const qcc_session *session);
QCC_CHECKED qcc_status qcc_get_flat(qcc_session *session, float *values, size_t n);
QCC_CHECKED qcc_status qcc_set_flat(qcc_session *session, const float *values, size_t n);

/* Texts that travel with checkpoints; a null value removes one.  The text is the session's, valid until its next call;
 * a null text: there is no such property. */
QCC_CHECKED qcc_status qcc_set_property(qcc_session *session, const char *key, const char *value);
QCC_CHECKED qcc_status qcc_get_property(qcc_session *session, const char *key, const char **value);

/* Saves and restores everything that a session's future depends on, seed and properties included, as a safetensors file.
 * A path is FILE.safetensors, or a folder that gathers checkpoints and whose newest whole one is loaded.  A load checks
 * the whole file and that it fits the step first: one that fails leaves the session as it was. */
QCC_CHECKED qcc_status qcc_save(qcc_session *session, const qcc_sink *sink);
QCC_CHECKED qcc_status qcc_load(qcc_session *session, const qcc_source *source);

/* Writes the deployable model with the session's weights, averaged ones where there are any.  `options`: those of
 * qcc_export, and --weights raw for the last ones. */
QCC_CHECKED qcc_status qcc_export_session(qcc_session *session, const char *options, const qcc_sink *sink);

/* Asks a session to stop: the run under way, or the next one, ends with QCC_INTERRUPTED and changes nothing.  Any thread
 * or signal handler may ask. */
QCC_API void qcc_request_stop(qcc_session *session);

/* ---- the verbs of the command ---- */

/* Runs a command line as the program `qcc` does; argv[0] is ignored.  Results go to `out`, words to the context's
 * report function. */
QCC_CHECKED qcc_status qcc_command(qcc_context *context, int argc, const char *const *argv, const qcc_sink *out);

#ifdef __cplusplus
}
#endif

#endif
