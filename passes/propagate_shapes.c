/* propagate-shapes: asks every card again what type its call has, until nothing more comes out.
 *
 *     graph @f(%x: f32[2,3], %y: f32[?,?]) -> (%b) {
 *         %a: f32[?,?] = transpose(%x)
 *         %b: f32[?,?] = add(%a, %y)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,3], %y: f32[?,?]) -> (%b) {
 *         %a: f32[3,2] = transpose(%x)
 *         %b: f32[3,2] = add(%a, %y)
 *     }
 *
 * What a model declares and what a card infers are both true: a value gets what they say together.  What a body
 * captures has inside the type that it has outside. */
#include "ops/control.h"
#include "passes/pass.h"

static Status ask(Node *n, bool *changed)
{
    const char *complaint = NULL;
    Ir *ir = n->graph->ir;
    const Type *type = node_infer(n, &complaint);
    if (!type)
        return fail(ir->diag, node_place(n), "%s %s", op_of(n)->name, complaint);
    if (!type_agrees(type, n->type))
        return fail(ir->diag, node_place(n), "%s gives %s, declared is %s", op_of(n)->name, type_text(ir->arena, type),
                    type_text(ir->arena, n->type));
    type = type_meet(&ir->types, type, n->type);
    *changed |= type != n->type;
    n->type = type;
    return OK;
}

/* Captures are the last operands of a call and the last parameters of its regions. */
static void enter_regions(Node *n, bool *changed)
{
    Types *types = &n->graph->ir->types;
    const int captures = direct_operands(n);
    for (int r = 0; r < n->n_regions; r++) {
        const Graph *g = n->regions[r];
        for (int k = 0; k < captures && (size_t)k < g->n_inputs; k++) {
            Node *inside = g->inputs[g->n_inputs - 1 - (size_t)k];
            const Node *outside = in(n, n->n_in - 1 - k);
            if (!outside || !type_agrees(inside->type, outside->type))
                continue;
            const Type *type = type_meet(types, inside->type, outside->type);
            *changed |= type != inside->type;
            inside->type = type;
        }
    }
}

/* Types only become more certain, so this ends. */
static Status propagate_shapes(Graph *g, PassRun *run)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
            if (!type_known(n->type))
                TRY(ask(n, &changed));
            enter_regions(n, &changed);
        }
        run->changes += changed;
    }
    return OK;
}

const Pass pass_propagate_shapes = {
    .name = "propagate-shapes", .makes = TYPED, .may = EXACT, .run = propagate_shapes
};
