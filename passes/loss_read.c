#include "passes/loss_read.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "ops/reduction.h"
#include "ops/shapes.h"
#include "passes/settings.h"

enum { MOST_SHOWN = 8, IGNORED = -100 };

/* ---- the words ---- */

static const char *const words[] = {
#define WORD(id, word, op, what) word,
    LOSSES(WORD)
#undef WORD
};

static const int ops[] = {
#define OP_OF(id, word, op, what) op,
    LOSSES(OP_OF)
#undef OP_OF
};

enum LossSets {
    CLASSES = 1 << LOSS_CROSS_ENTROPY | 1 << LOSS_NLL,
    EACH = 1 << LOSS_MSE | 1 << LOSS_L1 | 1 << LOSS_HUBER | 1 << LOSS_BCE_LOGITS,
    SOFT = 1 << LOSS_CROSS_ENTROPY,
    WEIGHED = CLASSES | 1 << LOSS_BCE_LOGITS,
    ANY = (1 << LOSS_COUNT) - 1,
};

static Status read_axis(const Settings *s, const Setting *x, LossSpec *l)
{
    l->has_axis = true;
    return x->value && i64_from_text(x->value, strlen(x->value), &l->axis) ? OK : setting_fail(s, x, "an axis: -1, 1");
}

static Status read_smoothing(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_real(s, x, 0, 1, &l->label_smoothing);
}

static Status read_ignored(const Settings *s, const Setting *x, LossSpec *l)
{
    return x->value && i64_from_text(x->value, strlen(x->value), &l->ignore_index) ? OK : setting_fail(s, x, "a class");
}

static Status read_weight(const Settings *s, const Setting *x, LossSpec *l)
{
    l->weight_file = x->value;
    return x->value ? OK : setting_fail(s, x, "a file with a weight for each class: weight=w.npy");
}

static Status read_sample_weight(const Settings *s, const Setting *x, LossSpec *l)
{
    l->sample_weight = x->value;
    return x->value ? OK : setting_fail(s, x, "the name of an input to add");
}

static Status read_delta(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_real(s, x, 1e-12, INFINITY, &l->delta);
}

static Status read_factor(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_real(s, x, 0, INFINITY, &l->factor);
}

static Status read_soft(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_bool(s, x, &l->soft);
}

static Status read_reduction(const Settings *s, const Setting *x, LossSpec *l)
{
    l->sums = x->value && strcmp(x->value, "sum") == 0;
    return l->sums || (x->value && strcmp(x->value, "mean") == 0) ? OK : setting_fail(s, x, "mean or sum");
}

static const struct {
    const char *key;
    unsigned kinds;
    Status (*read)(const Settings *s, const Setting *x, LossSpec *l);
} keys[] = {
    { "axis", CLASSES, read_axis },
    { "label_smoothing", SOFT, read_smoothing },
    { "ignore_index", CLASSES, read_ignored },
    { "weight", WEIGHED, read_weight },
    { "pos_weight", 1 << LOSS_BCE_LOGITS, read_weight },
    { "soft", SOFT, read_soft },
    { "sample_weight", CLASSES | EACH, read_sample_weight },
    { "delta", 1 << LOSS_HUBER, read_delta },
    { "beta", 1 << LOSS_HUBER, read_delta },
    { "reduction", CLASSES | EACH, read_reduction },
    { "factor", ANY & ~(1 << LOSS_EXTERNAL), read_factor },
};

static Status unknown_key(const Settings *s, const Setting *x, const LossSpec *l)
{
    const char *known[COUNT(keys)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(keys); i++)
        if (keys[i].kinds >> l->kind & 1)
            known[n++] = keys[i].key;
    return setting_unknown(s, x, n, known);
}

static Status read_setting(const Settings *s, const Setting *x, LossSpec *l, const char **outputs)
{
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i].key, x->key) == 0 && keys[i].kinds >> l->kind & 1)
            return keys[i].read(s, x, l);
    if (x->value && *x->key)
        return unknown_key(s, x, l);
    outputs[l->n_outputs++] = x->value ? x->value : x->key;
    return OK;
}

static Status unknown_kind(Diag *diag, const char *kind)
{
    Place place = NOWHERE;
    place.where = "--loss";
    const char *nearest = str_nearest(kind, words, COUNT(words));
    Message *m = message_new(diag, SEVERITY_ERROR, USAGE, place, "there is no loss '%s'", kind);
    if (nearest)
        message_try(m, "%s", nearest);
    for (size_t i = 0; !nearest && i < COUNT(words); i++)
        message_try(m, "%s", words[i]);
    return message_send(m);
}

/* "kind,key=value" means "kind:key=value". */
static const char *with_colon(Arena *arena, const char *text)
{
    char *copy = arena_string(arena, text);
    const size_t at = strcspn(copy, ":,");
    if (copy[at])
        copy[at] = ':';
    return copy;
}

static Status wants_outputs(const Settings *s, const LossSpec *l)
{
    const bool named = l->kind == LOSS_OUTPUT || l->kind == LOSS_EXTERNAL;
    Place place = NOWHERE;
    place.where = s->option;
    if (named && !l->n_outputs)
        return fail_as(s->diag, USAGE, place, "%s of which output? (%s:NAME)", s->kind, s->kind);
    if (l->kind != LOSS_EXTERNAL && l->n_outputs > 1)
        return fail_as(s->diag, USAGE, place, "%s: %s and %s, one output is wanted", s->kind, l->outputs[0],
                       l->outputs[1]);
    return OK;
}

Status loss_read(LossSpec *l, const char *text, Arena *arena, Diag *diag)
{
    Settings s;
    size_t kind = 0;
    TRY(settings_read(&s, diag, arena, "--loss", with_colon(arena, text)));
    while (kind < COUNT(words) && strcmp(words[kind], s.kind) != 0)
        kind++;
    if (kind == COUNT(words))
        return unknown_kind(diag, s.kind);
    const char **outputs = NEWS(arena, const char *, s.n + 1);
    *l = (LossSpec){
        .kind = (LossKind)kind, .outputs = outputs, .factor = 1, .delta = 1, .ignore_index = IGNORED
    };
    for (size_t i = 0; i < s.n; i++)
        TRY(read_setting(&s, &s.list[i], l, outputs));
    return wants_outputs(&s, l);
}

static void add_number(Text *t, const char *key, double v, double usual)
{
    char number[NUMBER_TEXT];
    if (v == usual)
        return;
    f64_to_text(number, v);
    text_printf(t, ",%s=%s", key, number);
}

const char *loss_text(Arena *arena, const LossSpec *l)
{
    Text t;
    text_open(&t, arena);
    text_add(&t, words[l->kind]);
    for (size_t i = 0; i < l->n_outputs; i++)
        text_printf(&t, "%c%s", i ? ',' : ':', l->outputs[i]);
    if (l->has_axis)
        text_printf(&t, ",axis=%" PRId64, l->axis);
    add_number(&t, "label_smoothing", l->label_smoothing, 0);
    if (l->ignore_index != IGNORED)
        text_printf(&t, ",ignore_index=%" PRId64, l->ignore_index);
    if (l->weight_file)
        text_printf(&t, ",weight=%s", l->weight_file);
    if (l->soft)
        text_add(&t, ",soft=true");
    if (l->sample_weight)
        text_printf(&t, ",sample_weight=%s", l->sample_weight);
    add_number(&t, "delta", l->delta, 1);
    if (l->sums)
        text_add(&t, ",reduction=sum");
    add_number(&t, "factor", l->factor, 1);
    return text_get(&t);
}

/* ---- outputs ---- */

static bool is_float(const Node *n)
{
    return n && n->type->kind == TYPE_TENSOR && dtype_is_float(n->type->dtype);
}

static bool is_scalar(const Node *n)
{
    return is_float(n) && type_known(n->type) && type_elements(n->type) == 1 && n->type->rank <= 1;
}

Node *loss_output(const Graph *g, const char *name)
{
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i) && strcmp(graph_result_name(g, i), name) == 0)
            return graph_result(g, i);
    return NULL;
}

/* Behind what only hands a value on. */
static Node *maker(Node *n)
{
    while (n && n->op == OP_identity)
        n = in(n, 0);
    return n;
}

static bool is_activation(const Node *n)
{
    return n && (n->op == OP_softmax || n->op == OP_log_softmax || n->op == OP_sigmoid);
}

static bool is_integer_input(const Node *n)
{
    return n->op == OP_input && n->type->kind == TYPE_TENSOR && dtype_is_integer(n->type->dtype);
}

/* The axis of classes where nobody says it: the last one of token models, else 1. */
static int usual_axis(const Graph *g, const Type *scores)
{
    bool tokens = false;
    for (size_t i = 0; i < g->n_inputs; i++)
        tokens |= is_integer_input(g->inputs[i]);
    return tokens && scores->rank == 3 ? 2 : scores->rank > 1 ? 1 : 0;
}

/* ---- the guess ---- */

static Status no_guess(const Graph *g, Diag *diag)
{
    int n = 0;
    for (int i = 0; i < graph_n_results(g); i++)
        n += is_float(graph_result(g, i));
    Message *m = message_new(diag, SEVERITY_ERROR, USAGE, NOWHERE, "cannot guess a loss: %d float output%s", n,
                             n == 1 ? "" : "s");
    for (int i = 0, shown = 0; i < graph_n_results(g) && shown < MOST_SHOWN; i++) {
        const Node *y = graph_result(g, i);
        if (!is_float(y) || !graph_result_name(g, i))
            continue;
        const bool classes = y->type->rank >= 2 && shown;
        message_try(m, "--loss %s:%s%s", classes ? "cross_entropy" : "mse", graph_result_name(g, i),
                    classes ? ",axis=-1" : "");
        shown++;
    }
    message_try(m, "--loss output:NAME for a model that computes its own");
    return message_send(m);
}

static void take(LossSpec *l, LossKind kind, const char *output, Arena *arena)
{
    const char **outputs = NEWS(arena, const char *, 1);
    outputs[0] = output;
    *l = (LossSpec){ .kind = kind,
                     .outputs = outputs,
                     .n_outputs = 1,
                     .factor = 1,
                     .delta = 1,
                     .ignore_index = IGNORED };
}

static void take_activation(LossSpec *l, const char **why, const Node *last, const char *output, Arena *arena)
{
    const bool yes_no = last->op == OP_sigmoid;
    take(l, yes_no ? LOSS_BCE_LOGITS : LOSS_CROSS_ENTROPY, output, arena);
    if (!yes_no) {
        l->has_axis = true;
        l->axis = last->op == OP_softmax ? ((const AxisAttr *)last->attr)->axis : ((const LogSoftmaxAttr *)last->attr)->axis;
        l->axis = axis_wrap(l->axis, last->type->rank);
    }
    *why = arena_printf(arena, "on what %s reads, %s", op_of(last)->name, node_place(last).where);
}

Status loss_guess(LossSpec *l, const char **why, Graph *g, Arena *arena, Diag *diag)
{
    int floats = 0, activations = 0, scalars = 0, any = -1, active = -1, scalar = -1;
    for (int i = 0; i < graph_n_results(g); i++) {
        Node *y = graph_result(g, i);
        if (!is_float(y) || !graph_result_name(g, i))
            continue;
        floats++;
        any = i;
        if (is_scalar(y)) {
            scalars++;
            scalar = i;
        } else if (is_activation(maker(y))) {
            activations++;
            active = i;
        }
    }
    if (scalars == 1) {
        take(l, LOSS_OUTPUT, graph_result_name(g, scalar), arena);
        *why = "the model's own: a scalar";
        return OK;
    }
    if (activations == 1 && floats == 1) {
        take_activation(l, why, maker(graph_result(g, active)), graph_result_name(g, active), arena);
        return OK;
    }
    const Type *t = floats == 1 ? graph_result(g, any)->type : NULL;
    const int axis = t && t->rank >= 2 ? usual_axis(g, t) : 0;
    if (!t || t->rank < 2 || t->dims[axis] < 2)
        return no_guess(g, diag);
    take(l, LOSS_CROSS_ENTROPY, graph_result_name(g, any), arena);
    l->has_axis = true;
    l->axis = axis;
    *why = arena_printf(arena, "rank %d, %" PRId64 " columns", t->rank, t->dims[axis]);
    return OK;
}

/* ---- what a loss compares ---- */

static Status no_output(const Graph *g, const char *name, Diag *diag, Arena *arena)
{
    const char **names = NEWS(arena, const char *, graph_n_results(g) + 1);
    size_t n = 0;
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i))
            names[n++] = graph_result_name(g, i);
    Place place = NOWHERE;
    place.where = "--loss";
    Message *m = message_new(diag, SEVERITY_ERROR, USAGE, place, "the model has no output %s", name);
    const char *near = str_nearest(name, names, n);
    for (size_t i = 0; i < n && i < MOST_SHOWN; i++)
        if (!near || near == names[i])
            message_try(m, "%s", names[i]);
    return message_send(m);
}

/* The output that a loss names, or the only one that it could mean. */
static Node *find_output(const Graph *g, const LossSpec *l, Arena *arena, Diag *diag, const char **name, Status *status)
{
    Node *found = NULL;
    int n = 0;
    if (l->n_outputs) {
        *name = l->outputs[0];
        found = loss_output(g, *name);
        *status = found ? OK : no_output(g, *name, diag, arena);
        return found;
    }
    for (int i = 0; i < graph_n_results(g); i++)
        if (is_float(graph_result(g, i)) && !is_scalar(graph_result(g, i)) && graph_result_name(g, i)) {
            found = graph_result(g, i);
            *name = graph_result_name(g, i);
            n++;
        }
    *status = n == 1 ? OK : no_guess(g, diag);
    return n == 1 ? found : NULL;
}

static bool needs_names(const Recipe *r)
{
    int n = 0;
    for (size_t i = 0; i < r->n_losses; i++)
        n += ops[r->losses[i].kind] != OP_COUNT;
    return n > 1;
}

/* On probabilities of the model's own making, the loss reads what they are made from. */
static void look_behind(LossTarget *t, const LossSpec *l)
{
    Node *last = maker(t->scores);
    if (!is_activation(last))
        return;
    if ((l->kind == LOSS_CROSS_ENTROPY && last->op != OP_sigmoid) ||
        (l->kind == LOSS_NLL && last->op == OP_log_softmax)) {
        t->scores = in(last, 0);
        t->op = OP_cross_entropy;
    } else if (l->kind == LOSS_BCE_LOGITS && last->op == OP_sigmoid) {
        t->scores = in(last, 0);
    }
}

static Status set_axis(const Graph *g, const LossSpec *l, LossTarget *t, Diag *diag)
{
    const Type *type = t->scores->type;
    const int64_t axis = l->has_axis ? l->axis : usual_axis(g, type);
    if (type->rank < 1 || axis < -type->rank || axis >= type->rank)
        return fail_as(diag, USAGE, node_place(t->scores), "--loss %s: axis %" PRId64 " of %s", words[l->kind], axis,
                       type_text(diag->arena, type));
    t->classes = !l->soft;
    t->axis = axis_wrap(axis, type->rank);
    t->n_classes = type->dims[t->axis];
    t->ignores = true;
    t->ignored = l->ignore_index;
    return OK;
}

bool loss_target(const Graph *g, const Recipe *r, size_t i, Arena *arena, Diag *diag, LossTarget *t, Status *status)
{
    const LossSpec *l = &r->losses[i];
    *t = (LossTarget){ .op = ops[l->kind] };
    *status = OK;
    if (t->op == OP_COUNT)
        return false;
    t->scores = find_output(g, l, arena, diag, &t->output, status);
    if (!t->scores)
        return false;
    if (!is_float(t->scores)) {
        *status = fail_as(diag, USAGE, node_place(t->scores), "--loss %s: output %s is %s", words[l->kind], t->output,
                          type_text(diag->arena, t->scores->type));
        return false;
    }
    t->input = needs_names(r) ? arena_printf(arena, "target.%s", t->output) : "target";
    look_behind(t, l);
    if (t->op == OP_cross_entropy || t->op == OP_nll)
        *status = set_axis(g, l, t, diag);
    return *status == OK;
}
