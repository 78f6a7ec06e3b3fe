/* qcc: the library.
 *
 * What is not in this header does not exist.  Everything is reached through handles; a handle is destroyed by the
 * function named beside it.  Nothing is printed and nothing touches a file system unless a path or a source says so.
 * A context serves one thread at a time; contexts are independent of each other.  Every call that can fail answers
 * with a qcc_status and leaves its results untouched when it is not QCC_OK; what went wrong was then told, once, to
 * the context's report function. */
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
    QCC_BUSY = 9,    /* called from inside a callback */
    QCC_FORKED = 10, /* the context belongs to the parent process */
    QCC_INTERRUPTED = 130
} qcc_status;

typedef struct qcc_context qcc_context;
typedef struct qcc_model qcc_model;

/* ---- messages ---- */

typedef enum qcc_severity { QCC_ERROR, QCC_WARNING, QCC_REMARK, QCC_NOTE } qcc_severity;

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
 * (open folders, regular expressions of selectors) and jansson use malloc all the same. */
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
} qcc_context_options;

/* Opens a context; `options` may be null. */
QCC_CHECKED qcc_status qcc_open(const qcc_context_options *options, qcc_context **context);

/* Gives everything back, the handles made from it included.  Null is allowed; in a forked child only memory is freed;
 * from inside a callback nothing happens. */
QCC_API void qcc_close(qcc_context *context);

/* Ends the call that runs in the context with QCC_INTERRUPTED as soon as it can; any thread or signal handler may. */
QCC_API void qcc_interrupt(qcc_context *context);

/* "0.1.0" */
QCC_API const char *qcc_version(void);

/* "ok", "usage", ...: the name of a status. */
QCC_API const char *qcc_status_name(qcc_status status);

/* ---- sources and sinks ---- */

/* Where bytes come from: a file, memory, or the host. */
typedef struct qcc_source {
    const char *path; /* a file; null otherwise */
    const void *bytes;
    uint64_t size; /* of bytes, or of what read serves */
    qcc_status (*read)(void *user, uint64_t offset, void *buffer, size_t n);
    void *user;
    const char *name; /* for messages, where there is no path */
} qcc_source;

/* Where bytes go: a file (written aside and renamed when complete) or the host. */
typedef struct qcc_sink {
    const char *path; /* "-" is standard output */
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
    QCC_STRING
} qcc_dtype;

enum { QCC_MAX_RANK = 16 };

/* A dense little-endian tensor in row-major order. */
typedef struct qcc_tensor {
    qcc_dtype dtype;
    int rank;
    int64_t dims[QCC_MAX_RANK]; /* -1: unknown (in signatures) */
    void *data;
    size_t bytes;
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
    const char *name;
    const char *type; /* "f32[batch,3,224,224]": symbolic dimensions by their names */
    qcc_tensor shape; /* without data; unknown dimensions -1; dtype QCC_STRING, rank -1 for what is no tensor */
} qcc_value_info;

/* The signature: inputs and outputs in order; pointers live as long as the model. */
QCC_API size_t qcc_n_inputs(const qcc_model *model);
QCC_API size_t qcc_n_outputs(const qcc_model *model);
QCC_CHECKED qcc_status qcc_input(const qcc_model *model, size_t i, qcc_value_info *info);
QCC_CHECKED qcc_status qcc_output(const qcc_model *model, size_t i, qcc_value_info *info);

/* Evaluates the model on the reference device: `inputs` in the order of the signature; `outputs` gets the results in
 * its order, which live until the next run or until the model is freed.  Only tensors go in and out this way. */
QCC_CHECKED qcc_status qcc_run_model(qcc_model *model, const qcc_tensor *inputs, size_t n_inputs, qcc_tensor *outputs,
                                     size_t n_outputs);

/* Writes the model in another form.  `kind`: ir, onnx, json, dot, html.  Equal models give equal bytes. */
QCC_CHECKED qcc_status qcc_emit(qcc_model *model, const char *kind, const char *options, const qcc_sink *sink);

/* Writes the deployable model: byte-identical to what was read when nothing was trained or quantized. */
QCC_CHECKED qcc_status qcc_export(qcc_model *model, const char *options, const qcc_sink *sink);

/* ---- the verbs of the command ---- */

/* Runs a command line as the program `qcc` does; argv[0] is ignored.  Results go to `out`, words to the context's
 * report function. */
QCC_CHECKED qcc_status qcc_command(qcc_context *context, int argc, const char *const *argv, const qcc_sink *out);

#ifdef __cplusplus
}
#endif

#endif
