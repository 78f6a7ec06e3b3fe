/* A training run: data, session, checkpoints, log and what is told of it. */
#ifndef API_TRAIN_TRAIN_H
#define API_TRAIN_TRAIN_H

#include "api/make/step.h"
#include "api/model/command.h"
#include "api/train/run_options.h"
#include "ops/update/scaler.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/feed.h"
#include "runtime/log/board.h"
#include "runtime/log/log.h"

/* Data files bound to the inputs of a step. */
typedef struct TrainData {
    Dataset *set;
    DataInput *inputs; /* in the order of the dataset */
    size_t n_inputs;
} TrainData;

/* A pass over validation data. */
typedef struct Validation {
    double loss;
    bool has_loss;
    Metric metric; /* the one asked for, or accuracy where it applies */
    bool has_metric;
    Metric more[METRIC_COUNT]; /* that are measured beside it */
    size_t n_more;
    int64_t samples;
} Validation;

/* Where progress goes (--progress). */
typedef struct Progress {
    enum { PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_BAR, PROGRESS_JSON } kind;
    double last;            /* when something was shown */
    double began;           /* the clock, when the run began */
    int64_t first, samples; /* step and samples that this process began at */
} Progress;

/* The best validation so far. */
typedef struct Best {
    bool known;
    double value;
    int64_t epoch;
} Best;

typedef struct Trainer {
    Command *c;
    qcc_context *cx;
    Diag *d;
    qcc_step *step;
    qcc_session *session;
    Session *run;
    RunOptions o;
    TrainData data, val_data;
    Feed *feed, *val_feed;
    Batch batch;            /* the last one: what the session is bound to */
    Batch coming;           /* the one behind it, where the session was given that; no rows: it was not */
    int64_t batches;        /* of an epoch; -1: a stream */
    const char *memory;     /* what the step takes, in words */
    const char *made_for;   /* whom the written model is for, where its step names nobody; null: nobody either */
    const char *calibrated; /* what quantizers saw before the first step, in words; null: nothing */
    const char *ptq;        /* what --ptq did to the model, lines; null: nothing */
    int64_t steps;          /* when the run ends; 0: when the stream does */
    int64_t done, skipped;  /* steps begun and skipped so far */
    bool ahead;             /* the step behind them runs already, nobody has looked at it, */
    int64_t rows_ahead;     /* and so many of its samples count */
    int64_t at;             /* steps in front of the one that was asked for last */
    int64_t skipped_in_a_row;
    int64_t good; /* the last step that was applied */
    bool scales;  /* the step scales its loss: states of the scaler before and after the last step */
    ScalerState scaler_before, scaler;
    int64_t forwards_in_a_row; /* that were not finite */
    Culprit culprit;           /* of step culprit_of */
    int64_t culprit_of;
    bool warned_low;
    RunResult last;
    int64_t last_rows;
    CheckpointTarget target;
    const char *saved_as;   /* the file of the last checkpoint, with its size */
    const char *final_path; /* where the final states were written that no option names; null: nowhere yet */
    bool averaged;          /* the averages of the weights are judged and deployed, not the last ones */
    bool saving;            /* the target is open */
    double retry_at;        /* the clock, when a save that failed is tried again; 0: none did */
    double retry_wait;      /* seconds that were waited for the last one */
    const char *folder;     /* what --checkpoint says; null: nothing was said */
    CheckpointInfo info;
    char run_id[17];
    int64_t saved_at;     /* step of the last checkpoint */
    int64_t validated_at; /* step of the last validation */
    double saved_when;
    Best best;
    int64_t stale;   /* validations since the best one */
    const char *why; /* the condition that ended the run, in words; null: none did */
    double loss_sum; /* of steps since the last epoch ended, and how many they are */
    int64_t loss_steps;
    double epoch_loss; /* the mean over an epoch, the last one that ended; steps it is of, 0: none did */
    int64_t epoch_steps;
    const char *best_told;          /* what was written of the best; null: nothing */
    bool best_lost;                 /* it could not be written */
    struct QuantWatch *watch;       /* what quantizers make of their numbers; null: nothing is quantized */
    struct CodesWatch *codes;       /* what becomes of weights that are codes; null: there are none */
    struct ProductsWatch *products; /* what products of few bits lose; null: nobody asks */
    Log log;
    Board board;
    Progress progress;
    qcc_session *shadow;  /* --shadow: on the reference; null: not begun */
    bool shadowed;        /* the step under way runs there, too */
    int64_t shadow_steps; /* that did */
    Cleanup cleanup;
    const char *resumed_from;
    Text notes; /* what a resumed run has changed, a line each */
    bool notes_open;
} Trainer;

/* The verb train. */
Status command_train(Command *c);

/* ---- api/train/train_step.c ---- */

/* Lets a device be sent the next batch while it is at a step. */
void train_steps_open(Trainer *t);

/* One step of a run; *over says that a stream has ended.  The step behind it may run already (Trainer.ahead), where nobody looks at
 * states or may want the run to end between the two. */
Status train_step(Trainer *t, bool *over);

/* Counts the step that runs ahead, of a run that ends. */
void train_catch_up(Trainer *t);

/* Whether --max-time is over. */
bool train_out_of_time(const Trainer *t);

/* ---- api/train/lr_sweep.c ---- */

/* --lr-sweep: trains at rising rates, tells rate and loss of each step and the rate that they suggest; saves nothing. */
Status train_sweep(Trainer *t);

/* ---- api/train/train_data.c ---- */

/* What --data and --target (or others of the kind) say, and --fill; in the scratch of the call. */
Status train_read_specs(Command *c, Option data, Option target, DataSpec **specs, size_t *n);
Status train_read_fills(Command *c, DataFill **fills, size_t *n);

/* How data are read that only ONNX knows. */
DataOptions train_data_options(Ir *ir);

/* Opens what --data, --target and --fill (or --val..) name for the inputs of the step's graph @step, or @eval. */
Status train_data_open(Command *c, qcc_step *s, Option data, Option target, bool eval, TrainData *out);

/* The same for a graph that was made of one of them: one option alone, for the inputs that it reads. */
Status train_data_open_for(Command *c, qcc_step *s, const Graph *g, Option data, TrainData *out);

/* The same with the targets that a graph compares with. */
Status train_data_open_both(Command *c, qcc_step *s, const Graph *g, TrainData *out);

/* Binds a batch to the session; samples behind batch->valid get the weight 0 wherever samples have weights. */
Status train_bind(const qcc_step *s, Session *run, Arena *arena, const TrainData *data, const Batch *batch);

/* Gives a batch for the step after the next one; and, when it is that step's turn, binds what did not come by itself. */
Status train_bind_next(const qcc_step *s, Session *run, const TrainData *data, const Batch *batch);
Status train_bind_rest(const qcc_step *s, Session *run, Arena *arena, const TrainData *data, const Batch *batch);

/* Whether samples that do not count can be kept out of the loss of a graph of the step. */
bool train_masks(const qcc_step *s, const char *graph);

/* Dimensions of a model that its data files say; adds them to the line as options. */
Status train_dims(Command *c, qcc_model *m);

/* The same for a verb that only looks at the shape of the data. */
Status command_dims(Command *c, qcc_model *m);

/* ---- api/train/train_feeds.c ---- */

/* Opens the data to train on and those to validate on; what cannot be is found before the first step. */
Status train_open_feeds(Trainer *t);

/* ---- api/train/train_figures.c ---- */

struct Figures;

/* What the quantizers of a step make of --data, with the states of --checkpoint or those of the model, whose ranges are
 * those of the first batches; without data of weights alone.  All of it lives in the scratch of the call. */
Status train_figures(Command *c, qcc_step *s, struct Figures *f);

/* Looks at the batch that the run has at hand. */
Status train_figures_batch(Trainer *t, struct Figures *f);

/* ---- api/train/watch_quant.c ---- */

/* Finds the quantizers of the run, with the scales that it begins with. */
Status train_watch_open(Trainer *t);

/* Behind a step: now and then what is clipped, and which scales moved, to the log and with -v to people; a warning
 * where it is too much.  The evaluator runs what quantizers need of the batch at hand, at most once in 200 steps. */
Status train_watch_step(Trainer *t);

/* Whether the run reports behind a step of that number: what the number alone says, so that a run that was cut reports
 * where one that was not does. */
bool train_watch_is_due(const Trainer *t, int64_t step);

/* ---- api/train/watch_codes.c ---- */

/* Finds the weights that are codes, or numbers of bf16. */
Status train_codes_open(Trainer *t);

/* Around a step: what it counted is added up, and where it is reported, how many codes it changes, how many stand at the
 * ends, how far scales have moved, and a warning of a weight that learns nothing. */
Status train_codes_begin(Trainer *t);
Status train_codes_step(Trainer *t);

/* ---- api/train/watch_products.c ---- */

/* Finds what products of few bits read, for --watch-products; USAGE where there are none. */
Status train_products_open(Trainer *t);

/* Behind a step that is reported: how much of it has the code 0, and how much stands at an end. */
Status train_products_step(Trainer *t);

/* ---- api/verbs/predict.c ---- */

/* The type of a batch of a model's input that a spec (null: nothing) feeds: what the model leaves open the data say. */
Status predict_batch_type(Command *c, qcc_model *m, const DataSpec *spec, size_t i, const Type **type);

/* ---- api/train/validate.c ---- */

/* The metrics of a validation by number, the one that is judged by first; null behind the last one. */
const Metric *validation_metric_at(const Validation *v, size_t i);

/* Begins the metrics that were asked for, or accuracy where there are classes; USAGE when the one asked for cannot be. */
Status validation_metric(Command *c, qcc_step *s, const RunOptions *o, Validation *v);

/* Runs every sample of a feed through @eval, each one counted once. */
Status validate(Command *c, qcc_step *s, Session *run, const TrainData *data, Feed *feed, const RunOptions *o,
                Validation *v);

/* Somebody who sees every batch once @eval has run on it. */
typedef struct BatchWatch {
    Status (*look)(void *user, const Batch *batch, const Validation *v);
    void *user;
} BatchWatch;

/* The same, with somebody watching. */
Status validate_and(Command *c, qcc_step *s, Session *run, const TrainData *data, Feed *feed, const RunOptions *o,
                    Validation *v, const BatchWatch *watch);

/* ---- api/train/train_save.c ---- */

/* Where a run leaves its states that has no other place: a name that is free, until it was written once. */
const char *train_final_path(Trainer *t);

/* Checks and opens the destinations before the first step. */
Status train_open_outputs(Trainer *t);

/* Before the first step of a quantized step: its quantizers see the data of --calibrate, or the first batches, unless a
 * checkpoint told them. */
Status train_calibrate(Trainer *t);

/* What it saw, and in which phases the run trains. */
Status train_tell_quant(Trainer *t);

/* Loads the checkpoint of --resume, and weights of --init. */
Status train_restore(Trainer *t);

/* ---- api/train/convert.c ---- */

/* --convert: the `n` states of this step out of the newest checkpoint of a path, whatever their widths there; else as
 * checkpoint_load.  *other is false where there is none, or it is of this very step: that is left to checkpoint_load. */
Status train_convert(Trainer *t, Heap *heap, const StateSlot *slots, size_t n, CheckpointLoaded *loaded, bool *other);

/* ---- api/train/train_save.c ---- */

/* Notes what a resumed run has changed, unless nothing was known or it is the same. */
void train_note(Trainer *t, const char *what, const char *then, const char *now);

/* Saves a checkpoint; `best` lets it be the best one.  A run without --checkpoint writes its final state early.  One that
 * cannot be saved is warned of and tried again, unless --on-save-error says stop; *saved says whether it was. */
Status train_save(Trainer *t, bool best, bool *saved);

/* Lets `write` write a file, of which an error is a warning; *written says whether it did. */
Status train_try(Trainer *t, Status (*write)(Trainer *t, const char *path), const char *path, bool *written);

/* The same for the end of a run: what fails is an error. */
Status train_save_last(Trainer *t);

/* Whether the interval of --every is over behind that step. */
bool train_save_is_due(const Trainer *t, int64_t step);

/* Writes the state of the run into one file. */
Status train_write_state(Trainer *t, Diag *d, const char *path, uint64_t *bytes);

/* The same into train_final_path(), which stays. */
Status train_write_final(Trainer *t, Diag *d, uint64_t *bytes);

/* Whether -o names a model rather than a state. */
bool train_is_model(const char *path);

/* ---- api/train/train_end.c ---- */

/* Writes what a run that ended with `status` leaves, tells of it, and answers how the verb ends; `reason` says why it
 * ended early, null: it did not. */
Status train_end(Trainer *t, Status status, const char *reason);

/* Writes what --best-output names; one that cannot be written is warned of, *written says whether it was. */
Status train_write_best(Trainer *t, bool *written);

/* ---- api/train/train_skip.c ---- */

/* What a step that was not applied means: a line, unless the run ends with it. */
Status train_skipped(Trainer *t, bool *stops);

/* Why a step was not applied, in a few words; and the parameter whose gradient was the first, null: none. */
const char *train_skip_reason(const Trainer *t);
const char *train_first_bad(const Trainer *t);

/* Ends a run that diverged: why, and what is left behind, which stands before the step.  Answers MISMATCH. */
Status train_diverged(Trainer *t);

/* ---- api/train/diverged.c ---- */

/* Leaves what the diverged step behind t->done was: the state before it, its batch, the options. */
Status train_bundle(Trainer *t);

/* Whether a path is a folder that a diverged step left. */
bool diverged_is_folder(const char *path);

/* Replays the step and says which value was the first that was not finite. */
Status diverged_explain(Command *c, const char *folder);

/* ---- api/train/train_tell.c ---- */

/* Which data there are, and how many. */
Status train_tell_data(Trainer *t);

/* The head of the run. */
Status train_tell_start(Trainer *t);

/* A step: log, board and progress. */
Status train_tell_step(Trainer *t, uint64_t epoch, bool last);

/* An epoch ends without a validation. */
Status train_tell_epoch(Trainer *t, int64_t epoch);

/* What the run is about to do, where its first step may take long. */
void train_tell_first(Trainer *t);

/* A validation; `best` when no one before was better. */
Status train_tell_validation(Trainer *t, const Validation *v, int64_t epoch, bool best, const char *saved);

/* A checkpoint was saved. */
Status train_log_save(Trainer *t, const LogSave *line);

/* What a quantizer makes of its numbers. */
Status train_log_quant(Trainer *t, const LogQuant *line);
Status train_log_codes(Trainer *t, const LogCodes *line);
Status train_log_product(Trainer *t, const LogProduct *line);

/* The end. */
Status train_tell_end(Trainer *t, Status status, const char *reason);

/* Seconds since 1970. */
double train_wall_clock(void);

#endif
