/* predict: what a model gives for every sample of a data set. */
#include <inttypes.h>
#include <string.h>

#include "api/model/evaluate.h"
#include "api/model/rows.h"
#include "api/session/export_form.h"
#include "api/session/weights.h"
#include "api/train/train.h"
#include "api/verbs/verbs.h"

enum { DEFAULT_BATCH = 32 };

typedef struct Predict {
    Command *c;
    qcc_model *m;
    DataSpec *specs;
    size_t n_specs;
    TrainData data;
    size_t *input_of; /* of the model, of each that is fed */
    Feed *feed;
    Rows *rows;
    size_t n_rows;
} Predict;

/* ---- the inputs ---- */

/* The spec that feeds an input: the one that names it, or the only one. */
static const DataSpec *spec_of(const Predict *p, const char *input)
{
    for (size_t i = 0; i < p->n_specs; i++)
        if (p->specs[i].name ? strcmp(p->specs[i].name, input) == 0 : p->n_specs == 1)
            return &p->specs[i];
    return NULL;
}

static Status no_size(Command *c, const Value *v, int axis)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE, "dimension %s of input %s has no size",
                             v->dims[axis] ? v->dims[axis] : "?", v->name);
    if (v->dims[axis])
        message_try(m, "--dim %s=1024", v->dims[axis]);
    else
        message_try(m, "--shape %s:..", v->name);
    return message_send(m);
}

/* Sizes that the file of the model leaves open are those of the data. */
Status predict_batch_type(Command *c, qcc_model *m, const DataSpec *spec, size_t i, const Type **type)
{
    int64_t dims[MAX_RANK];
    const Type *have = NULL;
    qcc_context *cx = c->cx;
    const Value *v = &m->inputs[i];
    const DataOptions options = train_data_options(&m->ir);
    if (v->type->kind != TYPE_TENSOR || v->type->rank < 1)
        return fail_as(&cx->diag, UNSUPPORTED, NOWHERE, "input %s is %s: data are for tensors of samples", v->name,
                       v->text);
    if (spec && spec->kind == DATA_FILE)
        TRY(data_probe(&cx->memory, &m->ir.types, &cx->diag, &cx->limits, &options, spec, &have));
    const int rank = v->type->rank;
    for (int k = 0; k < rank; k++) {
        const int at = have && spec->nhwc && k ? (k == 1 ? rank - 1 : k - 1) : k;
        dims[k] = v->type->dims[k];
        if (dims[k] < 0 && k == 0)
            dims[k] = option_count(&c->line, OPT_batch, DEFAULT_BATCH);
        else if (dims[k] < 0 && have && have->rank == rank)
            dims[k] = have->dims[at];
        if (dims[k] < 0)
            return no_size(c, v, k);
    }
    *type = type_tensor(&m->ir.types, v->type->dtype, rank, dims);
    return OK;
}

static Status open_data(Predict *p)
{
    Command *c = p->c;
    qcc_model *m = p->m;
    Arena *arena = &c->cx->scratch;
    DataFill *fills;
    size_t n_fills;
    const DataOptions options = train_data_options(&m->ir);
    TRY(train_read_specs(c, OPT_data, OPT_target, &p->specs, &p->n_specs));
    TRY(train_read_fills(c, &fills, &n_fills));
    p->data.inputs = NEWS(arena, DataInput, m->n_inputs + 1);
    p->input_of = NEWS(arena, size_t, m->n_inputs + 1);
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (m->graph->inputs[i]->op == OP_state)
            continue;
        DataInput *in = &p->data.inputs[p->data.n_inputs];
        *in = (DataInput){ .name = m->inputs[i].name };
        TRY(predict_batch_type(c, m, spec_of(p, m->inputs[i].name), i, &in->type));
        p->input_of[p->data.n_inputs++] = i;
    }
    return dataset_open(&p->data.set, &c->cx->memory, &m->ir.types, &c->cx->diag, &c->cx->limits, &options,
                        p->data.n_inputs, p->data.inputs, p->n_specs, p->specs, n_fills, fills);
}

/* ---- the samples ---- */

static Status one_batch(Predict *p, const Batch *batch, int64_t samples)
{
    qcc_model *m = p->m;
    const Tensor **inputs = NEWS(&p->c->cx->scratch, const Tensor *, m->n_inputs + 1);
    for (size_t k = 0; k < p->data.n_inputs; k++)
        inputs[p->input_of[k]] = batch->values[k];
    for (size_t i = 0; i < m->n_inputs; i++)
        if (!inputs[i] && m->graph->inputs[i]->op == OP_state)
            TRY(model_initial(m, i, &inputs[i]));
    const EvalOptions how = command_eval(p->c);
    TRY(model_evaluate(m, &how, inputs));
    for (size_t k = 0; k < p->n_rows; k++)
        for (size_t i = 0; i < m->n_outputs; i++)
            if (strcmp(m->outputs[i].name, p->rows[k].name) == 0)
                TRY(rows_add(&p->rows[k], m->results[i], batch->rows, batch->valid, samples));
    return OK;
}

static Status predict(Predict *p)
{
    Command *c = p->c;
    const FeedOptions all = { .last = FEED_PAD, .once = true, .threads = c->cx->options.threads };
    TRY(open_data(p));
    TRY(feed_open(&p->feed, p->data.set, &c->cx->diag, &all));
    const int64_t batches = feed_batches(p->feed);
    if (batches < 0)
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "predict: a stream has no end that a file could say");
    for (int64_t i = 0; i < batches; i++) {
        Batch batch;
        const ArenaMark mark = arena_mark(&c->cx->scratch);
        TRY(feed_batch(p->feed, &c->cx->diag, 0, i, &batch));
        TRY(one_batch(p, &batch, feed_samples(p->feed)));
        if (i) /* what the first batch asked for, the files go on to use */
            arena_reset(&c->cx->scratch, mark);
        if (c->cx->stop)
            return INTERRUPTED;
    }
    return OK;
}

/* ---- --checkpoint ---- */

/* Bytes of a model, as they are written. */
static qcc_status keep_bytes(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return QCC_OK;
}

/* Which parameters there are does not depend on the loss: any output that could have one will do. */
static void add_loss(Command *c, const qcc_model *m)
{
    for (size_t i = 0; i < m->n_outputs && !model_is_step(m); i++)
        if (m->outputs[i].type->kind == TYPE_TENSOR && dtype_is_float(m->outputs[i].type->dtype)) {
            option_add(&c->cx->scratch, &c->line, OPT_loss,
                       arena_printf(&c->cx->scratch, "external:%s", m->outputs[i].name));
            return;
        }
}

/* The model that a run deploys: what `export --checkpoint` would write, read again. */
static Status take_states(Command *c, qcc_model **model)
{
    qcc_step *step;
    qcc_session *session;
    Text bytes;
    Out out;
    const char *words, *path = option_text(&c->line, OPT_checkpoint);
    Command own = *c;
    qcc_model *m = *model;
    TRY(weights_want_states(&c->cx->diag, &c->line));
    if (!path)
        return OK;
    TRY(export_has_model(m));
    TRY(train_dims(&own, m));
    add_loss(&own, m);
    TRY(step_compile(m, &own.line, &step));
    TRY(session_start(step, 0, &c->cx->stop, &session));
    TRY(session_take_final(session, path, weights_said(&c->line), &words));
    text_open(&bytes, &m->arena);
    const qcc_sink sink = { .write = keep_bytes, .user = &bytes };
    TRY(out_open(&out, c->cx, &sink));
    TRY(out_close(&out, session_export(session, &(ExportForm){ 0 }, &out)));
    const qcc_source source = { .bytes = bytes.p, .size = bytes.n, .name = m->file };
    TRY(model_read(c->cx, &source, &c->line, model));
    const LogExtra told = { "text", logged_text(words) };
    if (words && out_is_json(c->out))
        return out_event(c->out, "weights", &told, 1);
    return words ? out_printf(c->out, "weights  %s\n", words) : OK;
}

static Status ask(Command *c, const char *what, const char *try)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "predict: %s", what);
    message_try(m, "qcc predict %s %s", c->line.paths[0], try);
    return message_send(m);
}

Status command_predict(Command *c)
{
    Predict p = { .c = c };
    TRY(command_wants(c, 1));
    if (!option_given(&c->line, OPT_data))
        return ask(c, "of what?", "--data x.npy --output y.npy");
    if (!option_given(&c->line, OPT_output) && !option_given(&c->line, OPT_output_path))
        return ask(c, "where to?", "--data .. --output y.npy, or y.csv");
    TRY(command_model(c, 0, &p.m));
    TRY(take_states(c, &p.m));
    TRY(model_supported(p.m));
    TRY(rows_read(c, p.m, NULL, &p.rows, &p.n_rows));
    const Status status = rows_close(c, p.rows, p.n_rows, predict(&p));
    feed_close(p.feed);
    dataset_close(p.data.set);
    return status;
}
