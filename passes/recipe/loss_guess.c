/* The loss of the bare command. */
#include <inttypes.h>

#include "passes/recipe/loss_outputs.h"
#include "passes/recipe/loss_read.h"

static void take(LossSpec *l, LossKind kind, const char *output, Arena *arena)
{
    const char **outputs = NEWS(arena, const char *, 1);
    outputs[0] = output;
    *l = loss_of(kind);
    l->outputs = outputs;
    l->n_outputs = 1;
}

static void take_activation(LossSpec *l, const char **why, const Node *last, const char *output, Arena *arena)
{
    static const LossKind usual[] = {
        [LIKELIHOOD_CLASSES] = LOSS_CROSS_ENTROPY,
        [LIKELIHOOD_LOGS] = LOSS_NLL,
        [LIKELIHOOD_YES] = LOSS_BCE_LOGITS,
    };
    const Likelihood gives = op_of(last)->likelihood;
    take(l, usual[gives], output, arena);
    if (gives != LIKELIHOOD_YES) {
        l->has_axis = true;
        l->axis = activation_axis(last);
    }
    *why = arena_printf(arena, "on what %s reads, %s", op_of(last)->name, node_place(last).where);
}

typedef struct Found {
    int n, at; /* how many, and the last of them */
} Found;

static void find(Found *f, int i)
{
    f->n++;
    f->at = i;
}

bool loss_found(LossSpec *l, const char **why, Graph *g, Arena *arena)
{
    Found scalars = { 0 }, floats = { 0 };
    const Judgement *judged = outputs_judged(g, arena);
    for (int i = 0; i < graph_n_results(g); i++) {
        if (judged[i] == JUDGED)
            find(graph_result(g, i)->type->rank == 0 ? &scalars : &floats, i);
    }
    if (scalars.n == 1) {
        take(l, LOSS_OUTPUT, graph_result_name(g, scalars.at), arena);
        *why = "the model's own: a scalar";
        return true;
    }
    if (scalars.n || floats.n != 1)
        return false;
    const Node *y = graph_result(g, floats.at);
    const char *name = graph_result_name(g, floats.at);
    const Node *last = output_activation(y);
    if (last) {
        take_activation(l, why, last, name, arena);
        return true;
    }
    const int axis = usual_class_axis(g, y->type);
    if (y->type->rank < 2 || (y->type->dims[axis] >= 0 && y->type->dims[axis] < 2))
        return false;
    take(l, LOSS_CROSS_ENTROPY, name, arena);
    l->has_axis = true;
    l->axis = axis;
    *why = arena_printf(arena, "rank %d, %" PRId64 " columns", y->type->rank, y->type->dims[axis]);
    return true;
}

Status loss_guess(LossSpec *l, const char **why, Graph *g, Arena *arena, Diag *diag)
{
    return loss_found(l, why, g, arena) ? OK : loss_not_guessed(g, arena, diag);
}
