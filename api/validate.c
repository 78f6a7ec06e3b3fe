/* Validation: every sample through the deployed form of the model, each counted once. */
#include <string.h>

#include "api/train.h"

/* The input that says which samples of a batch count. */
static Tensor *mask_of(Command *c, Session *run)
{
    const Node *n = session_input(run, VALID_INPUT);
    return n ? tensor_new(&c->cx->scratch, n->type) : NULL;
}

static Status bind_mask(Session *run, Tensor *mask, int64_t valid)
{
    if (!mask)
        return OK;
    const int64_t n = tensor_elements(mask);
    for (int64_t i = 0; i < n; i++)
        tensor_set_f64(mask, i, i < valid);
    return session_bind(run, VALID_INPUT, mask);
}

/* The value that an input is bound to in a batch. */
static const Tensor *bound_value(const TrainData *data, const Batch *batch, const char *name)
{
    for (size_t i = 0; i < data->n_inputs; i++)
        if (strcmp(data->inputs[i].name, name) == 0)
            return batch->values[i];
    return NULL;
}

/* The metric that was asked for, or accuracy where there are classes. */
static Status choose_metric(Command *c, qcc_step *s, const RunOptions *o, Validation *v)
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
    v->has_metric = !why && (o->has_metric || (t && t->classes > 0));
    metric_begin(&v->metric, kind, &form);
    return OK;
}

static Status one_batch(Command *c, qcc_step *s, Session *run, const TrainData *data, const Batch *batch, Validation *v,
                        double *sum)
{
    RunResult r;
    const StepTarget *t = step_target(s, NULL);
    TRY(train_bind(run, data, batch));
    TRY(session_run(run, RUN_EVAL, &r));
    v->has_loss = r.has_loss;
    *sum += r.loss * (double)batch->valid;
    v->samples += batch->valid;
    if (v->has_metric)
        metric_add(&v->metric, &c->cx->scratch, t && t->output ? session_view(run, t->output) : NULL,
                   t ? bound_value(data, batch, t->input) : NULL, batch->valid, r.loss);
    return OK;
}

Status validate_and(Command *c, qcc_step *s, Session *run, const TrainData *data, Feed *feed, const RunOptions *o,
                    Validation *v, const BatchWatch *watch)
{
    Tensor *mask = mask_of(c, run);
    const int64_t batches = feed_batches(feed);
    double sum = 0;
    *v = (Validation){ 0 };
    TRY(choose_metric(c, s, o, v));
    for (int64_t i = 0; batches < 0 || i < batches; i++) {
        Batch batch;
        TRY(feed_batch(feed, &c->cx->diag, 0, i, &batch));
        if (!batch.rows)
            break;
        TRY(bind_mask(run, mask, batch.valid));
        TRY(one_batch(c, s, run, data, &batch, v, &sum));
        if (watch)
            TRY(watch->look(watch->user, &batch, v));
        if (c->cx->stop > 1)
            return INTERRUPTED;
    }
    v->loss = v->samples ? sum / (double)v->samples : 0;
    return OK;
}

Status validate(Command *c, qcc_step *s, Session *run, const TrainData *data, Feed *feed, const RunOptions *o,
                Validation *v)
{
    return validate_and(c, s, run, data, feed, o, v, NULL);
}
