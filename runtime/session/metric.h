/* Metrics over any number of batches: each sample counts once. */
#ifndef RUNTIME_SESSION_METRIC_H
#define RUNTIME_SESSION_METRIC_H

#include "ir/tensor.h"

/* clang-format off */
/*     metric      better when  what it says                                                             */
#define METRICS(_)                                                                                           \
    _( accuracy,   true,        "the part of the labels that the largest score names"                      ) \
    _( top5,       true,        "the part of the labels among the five largest scores"                     ) \
    _( perplexity, false,       "exp of the mean loss"                                                     ) \
    _( mae,        false,       "the mean absolute difference"                                             ) \
    _( f1,         true,        "the mean over the classes of the harmonic mean of precision and recall"   )
/* clang-format on */

typedef enum MetricKind {
#define METRIC(name, higher, what) METRIC_##name,
    METRICS(METRIC)
#undef METRIC
        METRIC_COUNT
} MetricKind;

/* How scores and targets are read. */
typedef struct MetricForm {
    int axis; /* of the classes */
    bool ignores;
    int64_t ignored; /* this label does not count */
} MetricForm;

typedef struct Metric {
    MetricKind kind;
    MetricForm form;
    int64_t right, total;
    double sum, weight;
    int64_t *hit, *said, *there; /* of each class, for f1 */
    int64_t classes;
} Metric;

/* The metric of that name; false when there is none. */
bool metric_find(const char *name, MetricKind *kind);

/* "accuracy". */
const char *metric_name(MetricKind kind);

/* Whether a larger value is better. */
bool metric_rises(MetricKind kind);

/* What is wrong with these types for a metric (the loss alone serves perplexity); null: nothing. */
const char *metric_refuses(MetricKind kind, const MetricForm *form, const Type *scores, const Type *target);

/* Begins anew. */
void metric_begin(Metric *m, MetricKind kind, const MetricForm *form);

/* Counts the first `valid` rows of a batch.  Their mean loss is `loss`, over labels of that `weight` together.  `arena`
 * holds what f1 counts. */
void metric_add(Metric *m, Arena *arena, const Tensor *scores, const Tensor *target, int64_t valid, double loss,
                double weight);

/* The value so far; NaN when nothing counted. */
double metric_value(const Metric *m);

#endif
