/* export --verify: the file that was written against the graph that trained. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/model/evaluate.h"
#include "api/session/export_quant.h"
#include "api/session/weights.h"
#include "api/train/train.h"
#include "api/verbs/certificate.h"
#include "api/deployed/fusions.h"
#include "ir/role.h"
#include "base/bytes.h"
#include "ir/store/blob.h"

/* A model in front of a loss that is computed in another order may end in other last bits; one in a narrower type rounds
 * at every node. */
static double most_apart(const ExportForm *form) /* of the largest value */
{
    return !form->narrows ? 1e-5 : form->narrow.to == F16 ? 0x1p-6 : 0x1p-3;
}

enum { COLUMN = 28 };

/* Elements that were compared. */
typedef struct Compared {
    int64_t n, equal;
    double apart, largest;
} Compared;

typedef struct Verify {
    Command *c;
    const Exported *e;
    Session *run;
    TrainData data;
    Feed *feed;
    qcc_model *before, *after; /* the model that was trained, and the file */
    Compared *outputs;         /* of `after` */
    Metric metric[2];          /* of `before` and `after` */
    bool measures;
    bool has_codes; /* the file is one of codes: */
    Parity parity;
} Verify;

/* ---- the data ---- */

/* The options that a model has to be read with for batches of the step. */
static Status reading_line(Command *c, const qcc_step *s, CommandLine *line)
{
    CommandLine all;
    const Graph *g = module_graph(s->module, "eval");
    TRY(options_read_text(&c->cx->diag, &c->cx->scratch, "options of the step", s->facts.options, TEXT_RECORDED, &all));
    *line = (CommandLine){ .verb = VERB_compile };
    for (size_t i = 0; i < all.n_given; i++)
        if (option_binds(all.given[i].option) && all.given[i].option != OPT_batch)
            option_add(&c->cx->scratch, line, all.given[i].option, all.given[i].value);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Type *t = g->inputs[i]->type;
        if (s->facts.batch && g->inputs[i]->op == OP_input && t->kind == TYPE_TENSOR && t->rank > 0) {
            option_add(&c->cx->scratch, line, OPT_batch, arena_printf(&c->cx->scratch, "%" PRId64, t->dims[0]));
            break;
        }
    }
    return OK;
}

static Status read_models(Verify *v)
{
    CommandLine line;
    Command *c = v->c;
    const qcc_source before = { .path = c->line.paths[0] }, after = { .path = v->e->path };
    TRY(reading_line(c, v->e->step, &line));
    TRY(model_read(c->cx, &before, &line, &v->before));
    TRY(model_read(c->cx, &after, &line, &v->after));
    v->outputs = NEWS(&c->cx->scratch, Compared, v->after->n_outputs + 1);
    c->cx->diag.file = c->line.paths[0];
    return OK;
}

/* ---- weights ---- */

static Node *parameter(qcc_model *m, const char *name)
{
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
        if (n->op == OP_param && n->name && strcmp(n->name, name) == 0)
            return n;
    return NULL;
}

/* The state as the file stores it: rounded to its type. */
static bool same_values(Arena *arena, const Tensor *file, const Tensor *state)
{
    const int64_t n = tensor_elements(file);
    Tensor *rounded = tensor_new(arena, file->type);
    if (n != tensor_elements(state))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (dtype_is_float(file->type->dtype))
            tensor_set_f64(rounded, i, tensor_get_f64(state, i));
        else
            tensor_set_i64(rounded, i, tensor_get_i64(state, i));
    return bytes_equal(rounded->data, file->data, file->bytes);
}

/* Whether the file holds a state as it was trained; what it holds is looked at once and given back. */
static bool holds_state(Verify *v, const State *state, const Tensor *want)
{
    Heap heap;
    void *block;
    bool same = false;
    qcc_context *cx = v->c->cx;
    const Node *n = parameter(v->after, state->name);
    Payload *p = n ? node_payload(n) : NULL;
    const ArenaMark mark = arena_mark(&cx->scratch);
    heap_open(&heap, &cx->memory);
    Tensor have = { .type = p ? p->type : NULL };
    if (p && p->type->kind == TYPE_TENSOR && type_bytes(p->type, &have.bytes)) {
        have.data = (void *)(uintptr_t)payload_bytes(p, &heap, &block, &cx->diag);
        same = have.data && same_values(&cx->scratch, &have, want);
    }
    heap_close(&heap);
    arena_reset(&cx->scratch, mark);
    return same;
}

static Status compare_weights(Verify *v, size_t *n, size_t *equal)
{
    size_t n_states;
    const State *states = session_states(v->run, &n_states);
    const bool again = export_writes_again(v->e->step, &v->e->form);
    *n = *equal = 0;
    for (size_t i = 0; i < n_states; i++) {
        const Tensor *want;
        TRY(session_final(v->e->session, &states[i], &want));
        if (!want ||
            (again && !parameter(v->after, states[i].name))) /* it is there as codes, which the outputs prove */
            continue;
        ++*n;
        const bool same = holds_state(v, &states[i], want);
        *equal += same;
        if (!same)
            (void)fail_as(&v->c->cx->diag, MISMATCH, (Place){ .file = v->e->path, .where = states[i].name, .byte = -1 },
                          "is not the state that was trained");
    }
    return OK;
}

/* ---- outputs ---- */

/* A value in the element type that an input has. */
static const Tensor *own_value(qcc_model *m, size_t i, const Tensor *given)
{
    Arena *arena = &m->cx->scratch;
    const Type *wanted = m->inputs[i].type, *type = given->type;
    const bool rounds = wanted->kind == TYPE_TENSOR && dtype_is_float(wanted->dtype) && dtype_is_float(type->dtype);
    Tensor *own = NEW(arena, Tensor);
    *own = *given;
    own->type = type_tensor(&m->ir.types, rounds ? wanted->dtype : type->dtype, type->rank, type->dims);
    if (own->type->dtype == type->dtype)
        return own;
    own = tensor_new(arena, own->type);
    for (int64_t k = 0; k < tensor_elements(given); k++)
        tensor_set_f64(own, k, tensor_get_f64(given, k));
    return own;
}

/* A batch as values of a model's own types; dimension 0 as it is. */
static Status batch_inputs(Verify *v, qcc_model *m, const Batch *batch, const Tensor ***list)
{
    Arena *arena = &v->c->cx->scratch;
    const Tensor **inputs = NEWS(arena, const Tensor *, m->n_inputs + 1);
    Map data;
    *list = inputs;
    map_open(&data, arena);
    for (size_t k = 0; k < v->data.n_inputs; k++)
        map_put(&data, v->data.inputs[k].name, NULL)->value.cp = batch->values[k];
    for (size_t i = 0; i < m->n_inputs; i++) {
        const MapEntry *e = map_find(&data, m->inputs[i].name);
        const Tensor *given = e ? e->value.cp : NULL;
        if (!given)
            return fail_as(&v->c->cx->diag, USAGE, ON_COMMAND_LINE, "--verify: input %s gets nothing",
                           m->inputs[i].name);
        inputs[i] = own_value(m, i, given);
    }
    return OK;
}

static Status evaluate_batch(Verify *v, qcc_model *m, const Batch *batch)
{
    const Tensor **inputs;
    const EvalOptions how = command_eval(v->c);
    TRY(batch_inputs(v, m, batch, &inputs));
    return model_evaluate(m, &how, inputs);
}

/* ---- codes ---- */

/* What the training graph reads: the batch, states, and which samples count. */
static Status training_inputs(Verify *v, const Batch *batch, const Tensor ***list)
{
    Arena *arena = &v->c->cx->scratch;
    const Graph *g = v->parity.training;
    const Tensor **inputs = NEWS(arena, const Tensor *, g->n_inputs + 1);
    *list = inputs;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        for (size_t k = 0; k < v->data.n_inputs && n->op == OP_input; k++)
            if (strcmp(v->data.inputs[k].name, n->name) == 0)
                inputs[i] = batch->values[k];
        if (n->op == OP_state)
            inputs[i] = session_view(v->run, n->name);
        if (!inputs[i] && n->op == OP_input && node_role(n).role == INPUT_valid) {
            Tensor *mask = tensor_new(arena, n->type);
            for (int64_t k = 0; k < tensor_elements(mask); k++)
                tensor_set_f64(mask, k, k < batch->valid);
            inputs[i] = mask;
        }
        if (!inputs[i])
            return fail_as(&v->c->cx->diag, INTERNAL, node_place(n), "nothing is bound to %s", n->name);
    }
    return OK;
}

static Status compare_codes(Verify *v, const Batch *batch)
{
    const Tensor **training, **file;
    const EvalOptions how = command_eval(v->c);
    TRY(training_inputs(v, batch, &training));
    TRY(batch_inputs(v, v->after, batch, &file));
    return parity_batch(&v->parity, &how, &v->c->cx->memory, training, file, batch);
}

static bool compares(const Type *a, const Type *b)
{
    return type_same_shape(a, b) && (a->dtype == b->dtype || (dtype_is_float(a->dtype) && dtype_is_float(b->dtype)));
}

/* Counts what is equal of the samples that count. */
static void compare_output(Compared *o, const Tensor *want, const Tensor *got, const Batch *batch)
{
    const int64_t all = tensor_elements(want);
    const Type *t = want->type;
    const bool samples = t->rank > 0 && t->dims[0] == batch->rows && batch->rows;
    const int64_t n = samples ? all / batch->rows * batch->valid : all;
    for (int64_t i = 0; i < n; i++) {
        const double a = tensor_get_f64(want, i), b = tensor_get_f64(got, i);
        o->n++;
        o->largest = fmax(o->largest, fabs(a));
        if (a == b || (isnan(a) && isnan(b)))
            o->equal++;
        else
            o->apart = isfinite(a - b) ? fmax(o->apart, fabs(a - b)) : INFINITY;
    }
}

static const Tensor *output_named(const qcc_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_outputs; i++)
        if (strcmp(m->outputs[i].name, name) == 0)
            return m->results[i];
    return NULL;
}

static Status look(void *user, const Batch *batch, const Validation *seen)
{
    Verify *v = user;
    const StepTarget *t = step_target(v->e->step, NULL);
    const ArenaMark mark = arena_mark(&v->c->cx->scratch);
    const bool measures = v->measures && seen->has_metric && t && t->output;
    qcc_model *models[] = { v->before, v->after };
    TRY(evaluate_batch(v, v->after, batch));
    if (v->has_codes)
        TRY(compare_codes(v, batch));
    if (measures)
        TRY(evaluate_batch(v, v->before, batch));
    for (size_t i = 0; i < v->after->n_outputs; i++) {
        const Tensor *want = session_view(v->run, v->after->outputs[i].name), *got = v->after->results[i];
        if (!want || !got)
            continue;
        if (compares(want->type, got->type))
            compare_output(&v->outputs[i], want, got, batch);
        else
            v->outputs[i].apart = INFINITY;
    }
    for (size_t k = 0; k < COUNT(models) && measures; k++) {
        const Tensor *target = NULL;
        for (size_t i = 0; i < v->data.n_inputs; i++)
            if (strcmp(v->data.inputs[i].name, t->input) == 0)
                target = batch->values[i];
        if (!v->metric[k].total)
            metric_begin(&v->metric[k], seen->metric.kind, &seen->metric.form);
        metric_add(&v->metric[k], &v->e->step->arena, output_named(models[k], t->output), target, batch->valid, 0,
                   (double)batch->valid);
    }
    arena_reset(&v->c->cx->scratch, mark);
    return OK;
}

/* ---- the table ---- */

/* A part as people read it: all of it is 100 %, and nothing else. */
static const char *percent(Arena *arena, int64_t part, int64_t all)
{
    if (part == all)
        return "100 %";
    const double x = floor(1e4 * (double)part / (double)all) / 100;
    return arena_printf(arena, "%.2f %%", x);
}

static void row(Text *t, const char *what, const char *with, const char *how_many)
{
    text_printf(t, "  %s ", what);
    text_pad(t, COLUMN);
    text_printf(t, "equal to the training %s   %s", with, how_many);
}

/* Whether one output is as it should be; its row of the table. */
static bool tell_output(Text *t, Arena *arena, const char *name, const Compared *o, double most)
{
    const double bound = most * o->largest;
    text_printf(t, "%s", "");
    row(t, name_text(arena, name), "graph", percent(arena, o->equal, o->n));
    if (o->equal != o->n)
        text_printf(t, ", the others within %.3g of %.3g", o->apart, o->largest);
    text_char(t, '\n');
    return o->n && o->apart <= bound;
}

/* The first value that differs, and by how much. */
static void tell_first(Text *t, const ParitySum *sum)
{
    const ParityNode *first = sum->first;
    if (!first)
        return;
    text_printf(t, "    first in %s (%s): %" PRId64 " of %" PRId64 ", by at most %.3g\n", first->name, first->op,
                first->differ, first->n, first->largest);
}

/* Whether all codes are as they should be; their rows of the table. */
static bool tell_codes(Text *t, const Verify *v)
{
    Arena *arena = &v->c->cx->scratch;
    const ParitySum codes = parity_sum(&v->parity, PARITY_CODES), floats = parity_sum(&v->parity, PARITY_FLOATS);
    if (codes.nodes) {
        row(t, arena_printf(arena, "activations, %zu tensor%s", codes.nodes, codes.nodes == 1 ? "" : "s"), "graph",
            percent(arena, codes.n - codes.differ, codes.n));
        text_printf(t, "   %" PRId64 " of %" PRId64 " codes differ, %" PRId64 " tie%s\n", codes.differ, codes.n,
                    codes.ties, codes.ties == 1 ? "" : "s");
        tell_first(t, &codes);
    }
    if (codes.unmatched)
        text_printf(t, "    %zu of them are not in the training graph\n", codes.unmatched);
    if (floats.nodes) {
        row(t, arena_printf(arena, "floats, %zu tensor%s", floats.nodes, floats.nodes == 1 ? "" : "s"), "graph",
            percent(arena, floats.n - floats.differ, floats.n));
        text_char(t, '\n');
        tell_first(t, &floats);
    }
    return parity_holds(&v->parity);
}

static Status certify(Verify *v, const Validation *seen, bool good)
{
    Fusions fused;
    bool has_pairs = false;
    Arena *arena = &v->c->cx->scratch;
    CertifiedOutput *outputs = NEWS(arena, CertifiedOutput, v->after->n_outputs + 1);
    for (size_t i = 0; i < v->after->n_outputs; i++) {
        const Compared *o = &v->outputs[i];
        outputs[i] = (CertifiedOutput){ v->after->outputs[i].name, o->n, o->n - o->equal, o->apart };
    }
    if (export_predictor(v->e) != PREDICTS_NOTHING)
        TRY(fusions_of(v->after, export_predictor(v->e), arena, &fused, &has_pairs));
    const Certificate certificate = { .exported = v->e,
                                      .parity = &v->parity,
                                      .fused = has_pairs ? &fused : NULL,
                                      .outputs = outputs,
                                      .n_outputs = v->after->n_outputs,
                                      .samples = seen->samples,
                                      .passed = good };
    return certificate_write(v->c, option_text(&v->c->line, OPT_certificate), &certificate);
}

static Status tell_verify(Verify *v, const Validation *seen, size_t n_weights, size_t equal)
{
    Text t;
    Arena *arena = &v->c->cx->scratch;
    const ParitySum stored = v->has_codes ? parity_sum(&v->parity, PARITY_STORED) : (ParitySum){ 0 };
    n_weights += stored.nodes;
    equal += stored.nodes - stored.wrong;
    bool good = equal == n_weights;
    text_open(&t, arena);
    text_printf(&t, "verification         %" PRId64 " samples\n", seen->samples);
    row(&t, arena_printf(arena, "weights, %zu tensor%s", n_weights, n_weights == 1 ? "" : "s"), "state",
        percent(arena, (int64_t)equal, (int64_t)n_weights));
    text_char(&t, '\n');
    tell_first(&t, &stored);
    if (v->has_codes)
        good &= tell_codes(&t, v);
    for (size_t i = 0; i < v->after->n_outputs; i++)
        if (v->outputs[i].n || v->outputs[i].apart > 0)
            good &= tell_output(&t, arena, v->after->outputs[i].name, &v->outputs[i], most_apart(&v->e->form));
    if (v->measures && seen->has_metric)
        text_printf(&t, "%-10s before %.4f   training graph %.4f   this file %.4f\n", metric_name(seen->metric.kind),
                    metric_value(&v->metric[0]), metric_value(&seen->metric), metric_value(&v->metric[1]));
    const ParitySum codes = v->has_codes ? parity_sum(&v->parity, PARITY_CODES) : (ParitySum){ 0 };
    const LogValue nothing = logged_text(NULL);
    const LogExtra fields[] = { { "samples", logged_int(seen->samples) },
                                { "weights", logged_int((int64_t)n_weights) },
                                { "weights_equal", logged_int((int64_t)equal) },
                                { "codes", v->has_codes ? logged_int(codes.n) : nothing },
                                { "codes_differ", v->has_codes ? logged_int(codes.differ) : nothing },
                                { "ties", v->has_codes ? logged_int(codes.ties) : nothing },
                                { "first", codes.first ? logged_text(codes.first->name) : nothing },
                                { "passed", logged_flag(good) } };
    TRY(out_event(v->c->out, "verify", fields, COUNT(fields)));
    if (option_given(&v->c->line, OPT_certificate))
        TRY(certify(v, seen, good));
    text_add(&t, good ? "PASSED\n" : "FAILED\n");
    TRY(out_bytes(v->c->out, t.p, t.n));
    return good ? OK : MISMATCH;
}

static Status verify(Verify *v)
{
    const RunOptions o = { 0 };
    const FeedOptions all = { .last = FEED_PAD, .once = true, .threads = v->c->cx->options.threads };
    const BatchWatch watch = { look, v };
    Validation seen;
    size_t n, equal;
    v->measures = v->e->measures;
    TRY(read_models(v));
    TRY(session_deploy(v->e->session));
    TRY(train_data_open(v->c, v->e->step, OPT_data, OPT_target, true, &v->data));
    TRY(feed_open(&v->feed, v->data.set, &v->c->cx->diag, &all));
    TRY(compare_weights(v, &n, &equal));
    v->has_codes = export_codes_for(v->e) != NULL;
    if (v->has_codes)
        TRY(parity_open(&v->parity, v->e->step, v->after, &v->e->step->arena));
    TRY(validate_and(v->c, v->e->step, v->run, &v->data, v->feed, &o, &seen, &watch));
    return tell_verify(v, &seen, n, equal);
}

Status export_verify(Command *c, const Exported *e)
{
    Verify v = { .c = c, .e = e, .run = e->session->run };
    const Status status = verify(&v);
    feed_close(v.feed);
    dataset_close(v.data.set);
    return status;
}
