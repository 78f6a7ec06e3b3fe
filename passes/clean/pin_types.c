/* pin-types: element types that are read off an operand are written down, so that casts of that operand change
 * nothing else.
 *
 *     graph @f(%x: f32[2,2], %i: i8[2,2]) -> (%e, %y) {
 *         %e: f32[2,2] = eye_like(%x)
 *         %y: f32[2,2] = cast_like(%i, %x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2,2], %i: i8[2,2]) -> (%e, %y) {
 *         %e: f32[2,2] = eye_like(%x, dtype=f32)
 *         %y: f32[2,2] = cast(%i, to=f32)
 *     }
 */
#include "passes/engine/pass.h"

/* The field of a call that may say its element type, and does not. */
static const AttrSpec *unsaid(const Node *n)
{
    static const char *const fields[] = { "dtype", "output_dtype" };
    for (size_t i = 0; i < COUNT(fields) && n->attr; i++) {
        const AttrSpec *s = attr_find(op_of(n)->attrs, str(fields[i]));
        if (s && s->kind == ATTR_DTYPE && s->value == 0 && *(const int *)attr_at(s, n->attr) == 0)
            return s;
    }
    return NULL;
}

static void say(Node *n, const AttrSpec *field)
{
    void *attr = attrs_copy(n->graph->arena, op_of(n)->attrs, n->attr);
    *(int *)attr_at(field, attr) = (int)n->type->dtype + 1;
    n->attr = attr;
}

/* A conversion to the type of an operand becomes one to a type. */
static Status unlike(Node *n)
{
    Node *ins[] = { in(n, 0), in(n, 1) };
    const Tensor *values[] = { NULL, NULL };
    Build b = build_before(n);
    const Site site = { .attr = n->attr, .n_in = 2, .in = ins, .value = values, .type = n->type, .n_out = 1 };
    Node *y = op_of(n)->expand(&b, &site);
    TRY(b.status);
    stand_in(n, y);
    node_remove(n);
    return OK;
}

static Status pin_types(Graph *g, PassRun *run)
{
    for (Node *n = walk_first(g), *next; n; n = next) {
        const AttrSpec *field = n->n_in && n->type->kind == TYPE_TENSOR ? unsaid(n) : NULL;
        next = walk_next(g, n);
        if (field)
            say(n, field);
        if (n->op == OP_cast_like)
            TRY(unlike(n));
        run->changes += field != NULL;
    }
    return OK;
}

const Pass pass_pin_types = { .name = "pin-types", .needs = TYPED, .may = EXACT, .run = pin_types };
