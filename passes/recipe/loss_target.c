/* What a loss compares. */
#include <inttypes.h>
#include <string.h>

#include "ops/card/shapes.h"
#include "passes/recipe/loss_outputs.h"
#include "passes/recipe/loss_read.h"

int loss_op(LossKind kind)
{
    static const int ops[] = {
#define OP_OF(id, word, op, what) op,
        LOSSES(OP_OF)
#undef OP_OF
    };
    return ops[kind];
}

bool loss_has_classes(LossKind kind)
{
    return kind == LOSS_CROSS_ENTROPY || kind == LOSS_NLL || kind == LOSS_FOCAL;
}

static Place on_option(void)
{
    return (Place){ .where = "--loss", .byte = -1 };
}

Node *loss_output(const Graph *g, const char *name)
{
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i) && strcmp(graph_result_name(g, i), name) == 0)
            return graph_result(g, i);
    return NULL;
}

static Status no_output(const Graph *g, const char *name, Diag *diag, Arena *arena)
{
    const char **names = NEWS(arena, const char *, graph_n_results(g) + 1);
    const Judgement *judged = outputs_judged(g, arena);
    size_t n = 0;
    Text try;
    for (int i = 0; i < graph_n_results(g); i++)
        if (judged[i] == JUDGED)
            names[n++] = graph_result_name(g, i);
    const char *nearest = str_nearest(name, names, n);
    text_open(&try, arena);
    for (size_t i = 0; i < n && !nearest; i++)
        text_printf(&try, "%s%s", i ? ", " : "", names[i]);
    Message *m = message_new(diag, SEVERITY_ERROR, USAGE, on_option(), "the model has no output %s", name);
    if (n)
        message_try(m, "%s", nearest ? nearest : text_get(&try));
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
    const Judgement *judged = outputs_judged(g, arena);
    for (int i = 0; i < graph_n_results(g); i++) {
        if (judged[i] != JUDGED || output_is_scalar(graph_result(g, i)))
            continue;
        found = graph_result(g, i);
        *name = graph_result_name(g, i);
        n++;
    }
    *status = n == 1 ? OK : loss_not_guessed(g, arena, diag);
    return n == 1 ? found : NULL;
}

static bool needs_names(const Recipe *r)
{
    int n = 0;
    for (size_t i = 0; i < r->n_losses; i++)
        n += loss_op(r->losses[i].kind) != OP_COUNT;
    return n > 1;
}

/* Whether a loss over classes means the axis along which an activation worked. */
static bool same_axis(const LossSpec *l, const Node *last)
{
    const int rank = last->type->rank, axis = activation_axis(last);
    return !l->has_axis || l->axis == axis || l->axis == axis - rank;
}

/* On probabilities of the model's own making, the loss reads what they are made from. */
static void look_behind(LossTarget *t, const LossSpec *l, int *axis)
{
    const Node *last = output_activation(t->scores);
    if (!last)
        return;
    const Likelihood gives = op_of(last)->likelihood;
    if (l->kind == LOSS_BCE_LOGITS && gives == LIKELIHOOD_YES)
        t->scores = in(last, 0);
    if (gives == LIKELIHOOD_YES || last->type->rank < 1 || !same_axis(l, last))
        return;
    if (l->kind == LOSS_CROSS_ENTROPY || l->kind == LOSS_FOCAL || (l->kind == LOSS_NLL && gives == LIKELIHOOD_LOGS)) {
        t->scores = in(last, 0);
        t->kind = l->kind == LOSS_FOCAL ? LOSS_FOCAL : LOSS_CROSS_ENTROPY;
        *axis = activation_axis(last);
    }
}

static Status set_axis(const Graph *g, const LossSpec *l, LossTarget *t, int known, Diag *diag)
{
    const Type *type = t->scores->type;
    const int64_t axis = known >= 0 ? known : l->has_axis ? l->axis : usual_class_axis(g, type);
    if (type->rank < 1 || axis < -type->rank || axis >= type->rank)
        return fail_as(diag, USAGE, on_option(), "%s has no axis %" PRId64 ": output %s is %s", loss_word(l->kind),
                       axis, t->output, type_text(diag->arena, type));
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
    int axis = -1;
    *t = (LossTarget){ .kind = l->kind };
    *status = OK;
    if (loss_op(l->kind) == OP_COUNT)
        return false;
    t->scores = find_output(g, l, arena, diag, &t->output, status);
    if (!t->scores)
        return false;
    if (!output_is_float(t->scores)) {
        *status = fail_as(diag, USAGE, on_option(), "%s: output %s is %s, wanted are floats", loss_word(l->kind),
                          t->output, type_text(diag->arena, t->scores->type));
        return false;
    }
    if (t->scores->type->rank < 0) {
        *status = fail_as(diag, USAGE, on_option(), "%s: output %s is %s, wanted is a known rank", loss_word(l->kind),
                          t->output, type_text(diag->arena, t->scores->type));
        return false;
    }
    t->input = needs_names(r) ? arena_printf(arena, "target.%s", t->output) : "target";
    look_behind(t, l, &axis);
    if (loss_has_classes(t->kind))
        *status = set_axis(g, l, t, axis, diag);
    return *status == OK;
}
