/* lift-casts: a weight that is moved and then narrowed is narrowed and then moved.
 *
 *     graph @f(%x: bf16[3,2], state %w: f32[2,4] trained) -> (%y) {
 *         const %axes: i64[1] = [1]
 *         const %from: i64[1] = [2]
 *         const %to: i64[1] = [4]
 *         %1: f32[2,2] = slice(%w, %from, %to, %axes)
 *         %2: bf16[2,2] = amp_cast(%1, to=bf16) ours
 *         %y: bf16[3,2] = matmul(%x, %2)
 *     }
 *     ==>
 *     graph @f(%x: bf16[3,2], state %w: f32[2,4] trained) -> (%y) {
 *         %0: bf16[2,4] = amp_cast(%w, to=bf16) ours
 *         const %axes: i64[1] = [1]
 *         const %from: i64[1] = [2]
 *         const %to: i64[1] = [4]
 *         %1: f32[2,2] = slice(%w, %from, %to, %axes)
 *         %2: bf16[2,2] = slice(%0, %from, %to, %axes) ours
 *         %3: bf16[2,2] = amp_cast(%1, to=bf16) ours
 *         %y: bf16[3,2] = matmul(%x, %2)
 *     }
 *
 * What is cast then is a state, which accumulate takes out of its turns and shadow out of the step: elsewhere casts are
 * moved to where they have the least to do, here to where they have nothing to do.  Only what is known when the step is
 * compiled moves a weight: rows that a step fetches are no part of that. */
#include <string.h>

#include "passes/engine/pass.h"
#include "ir/role.h"

/* Of a value. */
typedef struct Lift {
    bool weight;    /* a weight, or one that was moved */
    bool wanted[2]; /* narrow, by someone: as f16, as bf16 */
    Node *narrow[2];
} Lift;

static const DType widths[] = { F16, BF16 };

static bool is_wide(const Type *t)
{
    if (t->kind == TYPE_TENSOR)
        return t->dtype == F32;
    for (int i = 0; t->kind == TYPE_TUPLE && i < t->n_parts; i++)
        if (t->parts[i]->kind != TYPE_TENSOR || t->parts[i]->dtype != F32)
            return false;
    return t->kind == TYPE_TUPLE;
}

static bool is_weight(const Node *n)
{
    return n->op == OP_state && n->name && n->type->kind == TYPE_TENSOR && n->type->dtype == F32 && is_model_state(n);
}

/* Whether a node moves weights and nothing else, the same way in every step. */
static bool moves_weights(const Node *n, Facts *lifts)
{
    const AmpCard *card = &op_of(n)->amp;
    bool any = false;
    if (n->n_regions || !is_wide(n->type) || (n->op != OP_part && card->f16 != AMP_P && card->f16 != AMP_PW) ||
        (n->op != OP_part && card->bf16 != AMP_P && card->bf16 != AMP_PW))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        Node *x = in(n, i);
        const bool weight = x && ((Lift *)fact(lifts, x))->weight;
        if (x && !weight && (x->op != OP_const || is_wide(x->type)))
            return false;
        any |= weight;
    }
    return any;
}

static int width_of(const Node *cast)
{
    for (int k = 0; k < (int)COUNT(widths); k++)
        if (cast->op == OP_amp_cast && cast->type->dtype == widths[k])
            return k;
    return -1;
}

/* Weights, then from the casts back to them what is wanted narrow. */
static void mark(Graph *g, Facts *lifts)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        ((Lift *)fact(lifts, g->inputs[i]))->weight = is_weight(g->inputs[i]);
    for (Node *n = g->first; n; n = n->next)
        ((Lift *)fact(lifts, n))->weight = moves_weights(n, lifts);
    for (Node *n = g->last; n; n = n->prev) {
        Lift *own = fact(lifts, n);
        const int k = width_of(n);
        for (int i = 0; i < n->n_in; i++) {
            Lift *x = in(n, i) ? fact(lifts, in(n, i)) : NULL;
            if (!x || !x->weight)
                continue;
            if (k >= 0 && in(n, i)->op != OP_state)
                x->wanted[k] = true;
            for (int w = 0; own->weight && w < (int)COUNT(widths); w++)
                x->wanted[w] |= own->wanted[w];
        }
    }
}

/* The cast of a weight that is there already must stand before all that moves it: a new one stands first. */
static void narrow_states(Graph *g, Facts *lifts, Status *status)
{
    Build b = build_at_start(g);
    b.flags = NODE_OURS;
    for (size_t i = 0; i < g->n_inputs; i++)
        for (int w = 0; w < (int)COUNT(widths); w++) {
            Lift *x = fact(lifts, g->inputs[i]);
            if (x->weight && x->wanted[w])
                x->narrow[w] = build_amp_cast(&b, g->inputs[i], widths[w]);
        }
    *status = b.status;
}

static Node *moved(Node *n, Facts *lifts, int w, Arena *scratch, Status *status)
{
    Build b = build_before(n);
    Node **ins = NEWS(scratch, Node *, n->n_in + 1);
    b.flags |= NODE_OURS;
    b.before = n->next;
    for (int i = 0; i < n->n_in; i++) {
        const Lift *x = in(n, i) ? fact(lifts, in(n, i)) : NULL;
        ins[i] = x && x->weight ? x->narrow[w] : in(n, i);
    }
    Node *y = build_node_n(&b, n->op, n->attr, n->n_in, ins, n->type->kind == TYPE_TUPLE ? n->type->n_parts : 1);
    *status = *status == OK ? b.status : *status;
    return y;
}

static Status lift_casts(Graph *g, PassRun *run)
{
    Facts lifts = facts_open(run->scratch, sizeof(Lift));
    Status status = OK;
    mark(g, &lifts);
    narrow_states(g, &lifts, &status);
    for (Node *n = g->first, *next; n && status == OK; n = next) {
        next = n->next;
        Lift *own = fact(&lifts, n);
        for (int w = 0; own->weight && w < (int)COUNT(widths) && status == OK; w++)
            if (own->wanted[w])
                own->narrow[w] = moved(n, &lifts, w, run->scratch, &status);
        const int k = width_of(n);
        const Lift *x = k >= 0 ? fact(&lifts, in(n, 0)) : NULL;
        if (!x || !x->weight || !x->narrow[k] || in(n, 0)->op == OP_state)
            continue;
        graph_replace(n, x->narrow[k]);
        run->changes++;
    }
    return status;
}

const Pass pass_lift_casts = { .name = "lift-casts", .needs = TYPED, .may = EXACT, .run = lift_casts };
