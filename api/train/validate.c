/* Validation: every sample through the deployed form of the model, each counted once. */
#include <math.h>
#include <string.h>

#include "api/train/train.h"

/* The value that an input is bound to in a batch. */
static const Tensor *bound_value(const TrainData *data, const Batch *batch, const char *name)
{
    for (size_t i = 0; i < data->n_inputs; i++)
        if (strcmp(data->inputs[i].name, name) == 0)
            return batch->values[i];
    return NULL;
}

Status validation_metric(Command *c, qcc_step *s, const RunOptions *o, Validation *v)
{
    const StepTarget *t = step_target(s, NULL);
    const Graph *g = module_graph(s->module, "eval");
    const MetricKind kind = o->has_metric ? o->metric : METRIC_accuracy;
    MetricForm form = { 0 };
    const Type *scores = NULL, *target = NULL;
    for (int i = 0; t && t->output && i < graph_n_results(g); i++)
        if (graph_result_name(g, i) && strcmp(graph_result_name(g, i), t->output) == 0)
            scores = graph_result(g, i)->type;
    for (size_t i = 0; t && i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, t->input) == 0)
            target = g->inputs[i]->type;
    if (t)
        form = (MetricForm){ .axis = t->axis, .ignores = t->ignores, .ignored = t->ignored };
    const char *why = metric_refuses(kind, &form, scores, target);
    if (why && o->has_metric)
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--metric %s: %s", metric_name(kind), why);
    for (v->n_more = 0; v->n_more < o->n_more; v->n_more++) {
        const char *refused = metric_refuses(o->more[v->n_more], &form, scores, target);
        if (refused)
            return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--metric %s: %s", metric_name(o->more[v->n_more]),
                           refused);
        metric_begin(&v->more[v->n_more], o->more[v->n_more], &form);
    }
    v->has_metric = !why && (o->has_metric || (t && t->classes > 0));
    metric_begin(&v->metric, kind, &form);
    return OK;
}

const Metric *validation_metric_at(const Validation *v, size_t i)
{
    return !v->has_metric || i > v->n_more ? NULL : i ? &v->more[i - 1] : &v->metric;
}

/* What a batch counts in the mean over all of them: the loss is a mean itself, over labels that are not to be ignored,
 * each as heavy as its class and its sample are. */
static double weight_of(const qcc_step *s, const TrainData *data, const Batch *batch)
{
    const LossSpec *l = s->recipe.n_losses == 1 ? &s->recipe.losses[0] : NULL;
    const StepTarget *t = step_target(s, NULL);
    const Tensor *labels = t && t->classes ? bound_value(data, batch, t->input) : NULL;
    const Tensor *own = l && l->sample_weight ? bound_value(data, batch, l->sample_weight) : NULL;
    const int64_t rows = batch->rows, each = labels && rows ? tensor_elements(labels) / rows : 1;
    double sum = 0;
    if (!l || l->sums)
        return l ? 1 : (double)batch->valid;
    for (int64_t i = 0; i < batch->valid * each; i++) {
        const int64_t label = labels ? tensor_get_i64(labels, i) : 0;
        double w = labels && t->ignores && label == t->ignored ? 0 : 1;
        if (w && labels && l->weight && label >= 0 && label < tensor_elements(l->weight))
            w = tensor_get_f64(l->weight, label);
        if (own)
            w *= tensor_get_f64(own, i * tensor_elements(own) / (rows * each));
        sum += w;
    }
    return sum;
}

typedef struct Sum {
    double loss, weight;
} Sum;

static Status one_batch(Command *c, qcc_step *s, Session *run, const TrainData *data, const Batch *batch, Validation *v,
                        Sum *sum)
{
    RunResult r;
    const StepTarget *t = step_target(s, NULL);
    TRY(train_bind(s, run, &c->cx->scratch, data, batch));
    TRY(session_run(run, RUN_EVAL, &r));
    v->has_loss = r.has_loss;
    const double weight = weight_of(s, data, batch);
    const bool judges = r.has_loss && !(s->recipe.n_losses && loss_is_nothing(s->recipe.losses));
    if (batch->valid < batch->rows && judges && !train_masks(s, "eval"))
        TRY(warn(&c->cx->diag, NOWHERE,
                 "the model's own loss is a mean of the whole batch: the last %lld samples are not in it",
                 (long long)batch->valid));
    else if (weight > 0) {
        sum->loss += r.loss * weight;
        sum->weight += weight;
    }
    v->samples += batch->valid;
    const Tensor *scores = t && t->output ? session_view(run, t->output) : NULL;
    const Tensor *wanted = t ? bound_value(data, batch, t->input) : NULL;
    for (size_t i = 0; i <= v->n_more; i++)
        if (i || v->has_metric)
            metric_add(i ? &v->more[i - 1] : &v->metric, &c->cx->scratch, scores, wanted, batch->valid,
                       weight > 0 ? r.loss : 0, weight);
    return OK;
}

Status validate_and(Command *c, qcc_step *s, Session *run, const TrainData *data, Feed *feed, const RunOptions *o,
                    Validation *v, const BatchWatch *watch)
{
    const int64_t batches = feed_batches(feed);
    Sum sum = { 0 };
    ArenaMark mark = arena_mark(&c->cx->scratch);
    *v = (Validation){ 0 };
    TRY(validation_metric(c, s, o, v));
    for (int64_t i = 0; batches < 0 || i < batches; i++) {
        Batch batch;
        TRY(feed_batch(feed, &c->cx->diag, 0, i, &batch));
        if (!batch.rows)
            break;
        if (i > 0 && !watch) /* what the first batch asked for, the metric goes on counting in */
            arena_reset(&c->cx->scratch, mark);
        TRY(one_batch(c, s, run, data, &batch, v, &sum));
        if (watch)
            TRY(watch->look(watch->user, &batch, v));
        if (i == 0)
            mark = arena_mark(&c->cx->scratch);
        if (c->cx->stop)
            return INTERRUPTED;
    }
    const bool sums = s->recipe.n_losses == 1 && s->recipe.losses[0].sums;
    v->loss = sums ? sum.loss : sum.weight > 0 ? sum.loss / sum.weight : NAN;
    return OK;
}

Status validate(Command *c, qcc_step *s, Session *run, const TrainData *data, Feed *feed, const RunOptions *o,
                Validation *v)
{
    return validate_and(c, s, run, data, feed, o, v, NULL);
}
