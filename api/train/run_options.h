/* The options of a training run as numbers. */
#ifndef API_TRAIN_RUN_OPTIONS_H
#define API_TRAIN_RUN_OPTIONS_H

#include "api/options/options.h"
#include "runtime/data/feed.h"
#include "runtime/session/metric.h"

/* How often: each part that is not 0 counts. */
typedef struct Interval {
    int64_t steps, epochs;
    double seconds;
} Interval;

/* --stop-if: what is compared, and with what. */
typedef struct StopWhen {
    const char *what; /* loss, grad_norm, lr, val_loss, step, or the name of a metric; null: never */
    bool above;       /* it stops when the value is above the bound, else below */
    double bound;
} StopWhen;

/* --lr-sweep: rates between two, each so much above the one before; steps 0: none. */
typedef struct Sweep {
    double from, to;
    int64_t steps;
} Sweep;

typedef struct RunOptions {
    int64_t epochs, steps; /* 0: not said */
    bool shuffle;
    FeedLast last;
    uint64_t seed;
    double max_seconds, grace; /* 0: no bound */
    StopWhen stop;
    Sweep sweep;
    Interval every; /* between checkpoints */
    bool every_said;
    int keep;
    bool by_accuracy, no_best; /* --best */
    int64_t histograms;        /* steps between two; 0: none */
    int64_t patience;          /* validations that may be no better; 0: any number */
    MetricKind metric;
    bool has_metric;
    int64_t shadow;                /* every so many steps one runs on the reference, too; 0: none */
    MetricKind more[METRIC_COUNT]; /* that are measured beside it */
    size_t n_more;
    bool resume, must_resume, overwrite, no_save;
    bool convert_states, convert_weights; /* --convert: what a checkpoint may have in another width */
    bool save_error_stops;                /* --on-save-error */
    int64_t skips; /* steps in a row that may be skipped for not being finite; 0: the first one ends the run */
    bool skips_said;
} RunOptions;

/* Reads them; USAGE with what is wrong. */
Status run_options_read(Diag *d, Arena *arena, const CommandLine *line, RunOptions *o);

/* "3h50m", "25s", "90": seconds; false when it is none. */
bool duration_read(const char *text, double *seconds);

/* "1h02m", "4m05s", "12s". */
const char *duration_text(Arena *arena, double seconds);

#endif
