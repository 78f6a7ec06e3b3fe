#include "runtime/session/metric.h"

#include <math.h>
#include <string.h>

enum { TOP = 5 };

static const struct {
    const char *name;
    bool rises;
} metrics[] = {
#define METRIC(word, higher, what) { #word, higher },
    METRICS(METRIC)
#undef METRIC
};

bool metric_find(const char *name, MetricKind *kind)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strcmp(metrics[i].name, name) == 0) {
            *kind = (MetricKind)i;
            return true;
        }
    return false;
}

const char *metric_name(MetricKind kind)
{
    return metrics[kind].name;
}

bool metric_rises(MetricKind kind)
{
    return metrics[kind].rises;
}

/* Scores [outer, classes, inner] with one label for each (outer, inner). */
typedef struct View {
    int64_t outer, classes, inner;
} View;

static View view_of(const Type *scores, int axis)
{
    View v = { 1, 1, 1 };
    for (int i = 0; i < scores->rank; i++)
        *(i < axis ? &v.outer : i == axis ? &v.classes : &v.inner) *= scores->dims[i];
    return v;
}

const char *metric_refuses(MetricKind kind, const MetricForm *form, const Type *scores, const Type *target)
{
    if (kind == METRIC_perplexity)
        return NULL;
    if (!scores || scores->kind != TYPE_TENSOR || !target || target->kind != TYPE_TENSOR)
        return "there are no scores and targets to compare";
    if (kind == METRIC_mae)
        return scores->rank == target->rank ? NULL : "scores and targets have different shapes";
    if (form->axis < 0 || form->axis >= scores->rank)
        return "there is no axis of classes";
    if (!dtype_is_integer(target->dtype) && target->rank != scores->rank)
        return "targets are neither labels nor probabilities";
    return NULL;
}

void metric_begin(Metric *m, MetricKind kind, const MetricForm *form)
{
    *m = (Metric){ .kind = kind, .form = *form };
}

/* The class with the largest value among those of one label; the first of equals. */
static int64_t largest(const Tensor *t, const View *v, int64_t at)
{
    int64_t best = 0;
    double most = tensor_get_f64(t, at);
    for (int64_t c = 1; c < v->classes; c++) {
        const double x = tensor_get_f64(t, at + c * v->inner);
        if (x > most) {
            most = x;
            best = c;
        }
    }
    return best;
}

/* How many classes are ahead of one. */
static int ahead(const Tensor *t, const View *v, int64_t at, int64_t label)
{
    const double own = tensor_get_f64(t, at + label * v->inner);
    int n = 0;
    for (int64_t c = 0; c < v->classes; c++) {
        const double x = tensor_get_f64(t, at + c * v->inner);
        n += c != label && (x > own || (x == own && c < label));
    }
    return n;
}

static void count_f1(Metric *m, Arena *arena, const View *v, int64_t said, int64_t label)
{
    if (!m->classes) {
        m->classes = v->classes;
        m->hit = NEWS(arena, int64_t, v->classes);
        m->said = NEWS(arena, int64_t, v->classes);
        m->there = NEWS(arena, int64_t, v->classes);
    }
    m->hit[label] += said == label;
    m->said[said]++;
    m->there[label]++;
}

static void add_labels(Metric *m, Arena *arena, const Tensor *scores, const Tensor *target, int64_t valid)
{
    const View v = view_of(scores->type, m->form.axis);
    const bool hard = dtype_is_integer(target->type->dtype);
    const int64_t rows = scores->type->rank ? scores->type->dims[0] : 1, outer = rows ? v.outer / rows * valid : 0;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < v.inner; i++) {
            const int64_t at = o * v.classes * v.inner + i;
            const int64_t label = hard ? tensor_get_i64(target, o * v.inner + i) : largest(target, &v, at);
            if ((m->form.ignores && label == m->form.ignored) || label < 0 || label >= v.classes)
                continue;
            m->total++;
            if (m->kind == METRIC_top5)
                m->right += ahead(scores, &v, at, label) < TOP;
            else
                m->right += largest(scores, &v, at) == label;
            if (m->kind == METRIC_f1)
                count_f1(m, arena, &v, largest(scores, &v, at), label);
        }
}

static void add_differences(Metric *m, const Tensor *scores, const Tensor *target, int64_t valid)
{
    const int64_t rows = scores->type->rank ? scores->type->dims[0] : 1;
    const int64_t n = rows ? tensor_elements(scores) / rows * valid : 0;
    for (int64_t i = 0; i < n; i++)
        m->sum += fabs(tensor_get_f64(scores, i) - tensor_get_f64(target, i));
    m->total += n;
}

void metric_add(Metric *m, Arena *arena, const Tensor *scores, const Tensor *target, int64_t valid, double loss,
                double weight)
{
    if (m->kind == METRIC_perplexity) {
        m->sum += loss * weight;
        m->weight += weight;
        m->total += valid;
    } else if (m->kind == METRIC_mae) {
        add_differences(m, scores, target, valid);
    } else {
        add_labels(m, arena, scores, target, valid);
    }
}

static double mean_f1(const Metric *m)
{
    double sum = 0;
    int64_t seen = 0;
    for (int64_t c = 0; c < m->classes; c++) {
        const int64_t all = m->said[c] + m->there[c];
        seen += all > 0;
        sum += all ? 2.0 * (double)m->hit[c] / (double)all : 0;
    }
    return seen ? sum / (double)seen : NAN;
}

double metric_value(const Metric *m)
{
    if (!m->total)
        return NAN;
    switch (m->kind) {
    case METRIC_perplexity:
        return exp(m->sum / m->weight);
    case METRIC_mae:
        return m->sum / (double)m->total;
    case METRIC_f1:
        return mean_f1(m);
    default:
        return (double)m->right / (double)m->total;
    }
}
