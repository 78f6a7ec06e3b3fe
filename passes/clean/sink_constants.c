/* sink-constants: a small constant that a body captures is stated inside, where it can be folded.
 *
 *     graph @f(%x: f32[2], %c: bool[]) -> (%y) {
 *         const %k: f32[] = 2
 *         %y: f32[2] = if(%c, %x, %k) { (%p: f32[2], %q: f32[]) -> (%a)
 *             %a: f32[2] = mul(%p, %q)
 *         } { (%p: f32[2], %q: f32[]) -> (%p)
 *         }
 *     }
 *     ==>
 *     graph @f(%x: f32[2], %c: bool[]) -> (%y) {
 *         const %k: f32[] = 2
 *         %y: f32[2] = if(%c, %x) { (%p: f32[2]) -> (%a)
 *             const %q: f32[] = 2
 *             %a: f32[2] = mul(%p, %q)
 *         } { (%p: f32[2]) -> (%p)
 *         }
 *     }
 */
#include "ops/control/control.h"
#include "passes/engine/pass.h"

enum { LARGEST_SUNK = 4096 }; /* bytes: shapes, axes, scales, never weights */

static bool is_small_constant(const Node *n)
{
    size_t bytes;
    return n && n->op == OP_const && node_payload(n) && n->type->kind == TYPE_TENSOR && type_bytes(n->type, &bytes) &&
           bytes <= LARGEST_SUNK;
}

/* Parameter k, counted from the end, becomes the constant; unread ones just go. */
static void sink_into(Graph *g, size_t from_end, const Node *constant)
{
    const size_t i = g->n_inputs - from_end;
    Node *parameter = g->inputs[i];
    if (parameter->uses) {
        Build b = build_at_start(g);
        b.src = constant->src;
        b.flags = constant->flags;
        b.label = constant->label;
        Node *inside = build_typed(&b, OP_const, constant->attr, 0, NULL, constant->type);
        inside->name = parameter->name;
        parameter->name = NULL;
        graph_replace(parameter, inside);
    }
    graph_drop_input(g, i);
}

static void drop_operand(Node *n, int i, Arena *scratch)
{
    Node **ins = NEWS(scratch, Node *, n->n_in);
    int k = 0;
    for (int j = 0; j < n->n_in; j++)
        if (j != i)
            ins[k++] = in(n, j);
    node_set_ins(n, k, ins);
}

/* The regions of a call all have its captures as their last parameters. */
static bool fits(const Node *n, int captures)
{
    for (int r = 0; r < n->n_regions; r++)
        if (n->regions[r]->n_inputs < (size_t)captures)
            return false;
    return n->n_regions > 0;
}

static Status sink_constants(Graph *top, PassRun *run)
{
    for (Node *n = walk_first(top); n; n = walk_next(top, n)) {
        const int own = own_operands(n);
        for (int i = n->n_in - 1; i >= own && fits(n, n->n_in - own); i--) {
            const Node *constant = in(n, i);
            if (!is_small_constant(constant))
                continue;
            for (int r = 0; r < n->n_regions; r++)
                sink_into(n->regions[r], (size_t)(n->n_in - i), constant);
            drop_operand(n, i, run->scratch);
            run->changes++;
        }
    }
    return OK;
}

const Pass pass_sink_constants = { .name = "sink-constants", .needs = TYPED, .may = EXACT, .run = sink_constants };
