/* absorb-transposes: products and attention read and write turned matrices as they lie, instead of copies that are turned.
 *
 *     graph @f(%x: f32[8,4], %w: f32[6,4], %dy: f32[8,6]) -> (%y, %dw) {
 *         %0: f32[4,6] = transpose(%w, perm=[1, 0])
 *         %y: f32[8,6] = matmul(%x, %0)
 *         %1: f32[4,6] = matmul(%x, %dy, ta=true)
 *         %dw: f32[6,4] = transpose(%1, perm=[1, 0])
 *     }
 *     ==>
 *     graph @f(%x: f32[8,4], %w: f32[6,4], %dy: f32[8,6]) -> (%y, %dw) {
 *         %y: f32[8,6] = matmul(%x, %w, tb=true)
 *         %dw: f32[6,4] = matmul(%dy, %x, ta=true)
 *     }
 *
 * Heads of attention that were brought to the front of their steps stay where they are: a call reads [batch, steps, heads *
 * size] as well.  What stands between two transposes and computes element by element, or is a reshape in front of what is
 * turned, changes places with the first of them, so that they meet; so does what makes codes of a turned weight, and looks
 * for its largest numbers, if all that is made of it can (turned.h).  Every element is computed by the same operations in the
 * same order: x y and y x are one product. */
#include "ops/attend/attention.h"
#include "ops/card/attrs.h"
#include "ops/card/make.h"
#include "ops/contract/contract.h"
#include "ops/move/transposed.h"
#include "ops/quant/words.h"
#include "ops/region/region.h"
#include "passes/engine/rewrite.h"
#include "passes/lower/turned.h"

enum { HEADS_RANK = 4, STEPS_RANK = 3, MOST_OPERANDS = 8 };

/* ---- transposes ---- */

static bool is_sized(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && type_known(n->type);
}

static bool is_transpose(const Node *n)
{
    return n && n->op == OP_transpose && is_sized(n);
}

static bool swaps_last(const Node *n)
{
    return is_transpose(n) && transpose_swaps(n, n->type->rank - 2);
}

/* [batch, steps, heads, size] and [batch, heads, steps, size]. */
static bool swaps_heads(const Node *n)
{
    return is_transpose(n) && n->type->rank == HEADS_RANK && transpose_swaps(n, 1);
}

/* Who a transpose may meet, and what becomes of it then. */
typedef struct Meeting {
    Op op;
    bool (*absorb)(Node *n, Rewriting *a); /* whether anything changed */
} Meeting;

static const Meeting *meeting_of(const Node *n);

static bool is_read_once(const Node *n)
{
    return n->uses && !n->uses->next;
}

/* Two transposes are one, or nothing. */
static bool join(Node *n, Rewriting *a)
{
    if (!is_transpose(n) || !is_transpose(in(n, 0)))
        return false;
    Build b = build_before(n);
    Node *by = transpose_joined(&b, n);
    return rewrite_with(a, n, by, &b);
}

/* ---- what changes places with a transpose ---- */

/* The operand of a call that computes element by element, where all others are single numbers; -1: there is none. */
static int only_operand(const Node *n)
{
    int at = -1;
    if (!turned_maps(n))
        return -1;
    for (int i = 0; i < n->n_in; i++) {
        if (!in(n, i) || (is_sized(in(n, i)) && type_elements(in(n, i)->type) == 1 && in(n, i)->type->rank <= 1))
            continue;
        if (at >= 0 || in(n, i)->type->rank != n->type->rank)
            return -1;
        at = i;
    }
    return at;
}

/* Whether there is somebody whom a transpose may meet if it goes on. */
static bool leads_on(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next) {
        const Op op = u->user->op;
        if (op != OP_transpose && op != OP_reshape && op != OP_matmul && op != OP_attention &&
            op != OP_attention_grad && only_operand(u->user) < 0)
            return false;
    }
    return n->uses != NULL;
}

/* f(turned x) is f(x), turned. */
static bool sink_below(Node *n, Rewriting *a)
{
    Node *turn = turned_below(n);
    if (!turn || n->n_in > MOST_OPERANDS)
        return false;
    if (!turned_is_absorbed(turn) && !(is_read_once(turn) && only_operand(n) >= 0 && leads_on(n)))
        return false;
    Build b = build_before(n);
    return rewrite_with(a, n, turned_sink(&b, n, turn), &b);
}

/* A line that a reshape turns is turned later, so that it meets who turns it back. */
static bool sink_below_line(Node *n, Rewriting *a)
{
    const int at = only_operand(n);
    Node *line = at < 0 || n->n_in > MOST_OPERANDS ? NULL : in(n, at), *ins[MOST_OPERANDS];
    if (!line || line->op != OP_reshape || !turned_is_line(line) || !is_sized(in(line, 0)) ||
        in(line, 0)->type->rank != line->type->rank)
        return false;
    for (int i = 0; i < n->n_in; i++)
        ins[i] = i == at ? in(line, 0) : in(n, i);
    Build b = build_before(n);
    Node *call = build_node(&b, n->op, n->attr, n->n_in, ins);
    return rewrite_with(a, n, call ? make_reshape(&b, call, n->type->rank, n->type->dims) : NULL, &b);
}

/* A reshape that leaves the last two dimensions, which were turned. */
static bool sink_below_reshape(Node *n, Rewriting *a)
{
    Node *turn = in(n, 0);
    const int rank = n->type->rank;
    int64_t dims[MAX_RANK];
    if (!swaps_last(turn) || !is_read_once(turn) || !is_sized(n) || rank < 2 || !leads_on(n))
        return false;
    const int64_t *turned = turn->type->dims + turn->type->rank - 2;
    if (n->type->dims[rank - 2] != turned[0] || n->type->dims[rank - 1] != turned[1])
        return false;
    for (int i = 0; i < rank; i++)
        dims[i] = n->type->dims[i < rank - 2 ? i : 2 * rank - 3 - i];
    Build b = build_before(n);
    return rewrite_with(a, n, make_swap_last(&b, make_reshape(&b, in(turn, 0), rank, dims)), &b);
}

/* What is reshaped again is what it was before, if it is of that type. */
static bool absorb_in_reshape(Node *n, Rewriting *a)
{
    Node *x = in(n, 0);
    while (x->op == OP_reshape && x->type != n->type)
        x = in(x, 0);
    if (x->type != n->type || !is_sized(n))
        return sink_below_reshape(n, a);
    const Build b = build_before(n);
    return rewrite_with(a, n, x, &b);
}

/* ---- products ---- */

static bool read_turned(Node *n, Rewriting *a)
{
    MatmulAttr at = *(const MatmulAttr *)n->attr;
    Node *ins[2] = { in(n, 0), in(n, 1) };
    bool *const turned[2] = { &at.ta, &at.tb };
    for (int i = 0; i < 2; i++)
        if (swaps_last(ins[i])) {
            ins[i] = in(ins[i], 0);
            *turned[i] = !*turned[i];
        }
    if (ins[0] == in(n, 0) && ins[1] == in(n, 1))
        return false;
    Build b = build_before(n);
    return rewrite_with(a, n, CALL_ATTR(&b, matmul, at, ins[0], ins[1]), &b);
}

/* The same of codes. */
static bool read_codes_turned(Node *n, Rewriting *a)
{
    const bool rescales = n->op == OP_qmatmul;
    const int operands[2] = { 0, rescales ? QMATMUL_B : 1 };
    QmatmulAttr at = { 0 };
    MatmulIntegerAttr sums = { 0 };
    Node *ins[QMATMUL_BIAS + 1];
    bool changed = false;
    if (rescales)
        at = *(const QmatmulAttr *)n->attr;
    else
        sums = *(const MatmulIntegerAttr *)n->attr;
    bool *const turned[2] = { rescales ? &at.transpose_a : &sums.ta, rescales ? &at.transpose_b : &sums.tb };
    for (int i = 0; i < n->n_in; i++)
        ins[i] = in(n, i);
    for (int i = 0; i < 2; i++)
        if (swaps_last(ins[operands[i]]) && turned_is_read(n, operands[i])) {
            ins[operands[i]] = in(ins[operands[i]], 0);
            *turned[i] = !*turned[i];
            changed = true;
        }
    if (!changed)
        return false;
    Build b = build_before(n);
    return rewrite_with(a, n, build_node(&b, n->op, rescales ? (const void *)&at : &sums, n->n_in, ins), &b);
}

/* (a b)' is b' a', also behind a reshape of what belongs to no matrix. */
static bool write_turned(Node *n, Rewriting *a)
{
    const bool reshaped = swaps_last(n) && turned_keeps_matrices(in(n, 0)) && is_read_once(in(n, 0));
    Node *product = reshaped ? in(in(n, 0), 0) : in(n, 0);
    if (!swaps_last(n) || product->op != OP_matmul || !is_read_once(product) || in(product, 0)->type->rank < 2 ||
        in(product, 1)->type->rank < 2)
        return false;
    const MatmulAttr *was = product->attr;
    const MatmulAttr at = { .ta = !was->tb, .tb = !was->ta, .out = was->out };
    Build b = build_before(n);
    b.flags = product->flags;
    b.src = product->src;
    Node *turned = CALL_ATTR(&b, matmul, at, in(product, 1), in(product, 0));
    return rewrite_with(a, n, turned && reshaped ? make_reshape(&b, turned, n->type->rank, n->type->dims) : turned, &b);
}

static bool write_codes_turned(Node *n, Rewriting *a)
{
    Build b = build_before(n);
    Node *by = turned_product(&b, n);
    return by && rewrite_with(a, n, by, &b);
}

/* ---- attention ---- */

/* [batch, heads, steps, size] as [batch, steps, heads * size]. */
static Node *to_steps(Build *b, Node *x)
{
    const int64_t *d = x->type->dims, order[HEADS_RANK] = { 0, 2, 1, 3 };
    const int64_t dims[STEPS_RANK] = { d[0], d[2], d[1] * d[3] };
    Node *steps = swaps_heads(x) ? in(x, 0) : make_transpose(b, x, HEADS_RANK, order);
    return make_reshape(b, steps, STEPS_RANK, dims);
}

/* And back, for a value of this type. */
static Node *to_heads(Build *b, Node *x, const Type *t)
{
    const int64_t order[HEADS_RANK] = { 0, 2, 1, 3 };
    const int64_t dims[HEADS_RANK] = { t->dims[0], t->dims[2], t->dims[1], t->dims[3] };
    return make_transpose(b, make_reshape(b, x, HEADS_RANK, dims), HEADS_RANK, order);
}

static int readers_that_swap_heads(const Node *n, int *others)
{
    int swap = 0;
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user) && swaps_heads(u->user))
            swap = 1;
        else if (u->user->op != OP_attention_grad) /* which will do the same */
            *others = 1;
    return swap;
}

/* Whether reading and writing steps takes fewer transposes than it makes. */
static bool gains_by_steps(const Node *n, int operands)
{
    int fewer = 0, more = 0;
    for (int i = 0; i < operands; i++) {
        if (!in(n, i) || !is_sized(in(n, i)) || in(n, i)->type->rank != HEADS_RANK)
            return false;
        *(swaps_heads(in(n, i)) ? &fewer : &more) += 1;
    }
    for (const Use *u = n->uses; u && type_results(n->type) > 1; u = u->next)
        if (u->user->op != OP_part)
            return false;
    for (int i = 0; i < type_results(n->type); i++) {
        const Node *value = n;
        if (type_results(n->type) > 1)
            for (const Use *u = n->uses; u; u = u->next)
                if (u->user->op == OP_part && ((const PartAttr *)u->user->attr)->index == i)
                    value = u->user;
        int others = 0;
        fewer += readers_that_swap_heads(value, &others);
        more += others;
    }
    return fewer > more;
}

/* The call over steps; its results take the places of those of `n`. */
static bool read_steps(Node *n, int operands, Rewriting *a)
{
    AttentionAttr at = *(const AttentionAttr *)n->attr;
    Node *ins[MOST_OPERANDS];
    const int results = type_results(n->type);
    if (n->n_in > MOST_OPERANDS || at.q_num_heads || !op_of(n)->access.serves(n) || !gains_by_steps(n, operands))
        return false;
    Build b = build_before(n);
    for (int i = 0; i < n->n_in; i++)
        ins[i] = i < operands ? to_steps(&b, in(n, i)) : in(n, i);
    at.q_num_heads = in(n, 0)->type->dims[1];
    at.kv_num_heads = in(n, 1)->type->dims[1];
    Node *by = build_node_n(&b, n->op, &at, n->n_in, ins, results);
    if (results == 1 || !by)
        return rewrite_with(a, n, by ? to_heads(&b, by, n->type) : NULL, &b);
    for (const Use *u = n->uses, *next; u; u = next) {
        next = u->next;
        const int i = ((const PartAttr *)u->user->attr)->index;
        rewrite_with(a, u->user, to_heads(&b, build_part(&b, by, i), type_result(n->type, i)), &b);
    }
    return true;
}

/* ---- the pass ---- */

static bool absorb_transpose(Node *n, Rewriting *a)
{
    return join(n, a) || write_turned(n, a) || write_codes_turned(n, a);
}

static bool absorb_in_attention(Node *n, Rewriting *a)
{
    return read_steps(n, 3, a);
}

static bool absorb_in_attention_grad(Node *n, Rewriting *a)
{
    return read_steps(n, 4, a);
}

static const Meeting meetings[] = {
    { OP_transpose, absorb_transpose },
    { OP_reshape, absorb_in_reshape },
    { OP_matmul, read_turned },
    { OP_qmatmul, read_codes_turned },
    { OP_matmul_integer, read_codes_turned },
    { OP_attention, absorb_in_attention },
    { OP_attention_grad, absorb_in_attention_grad },
};

static const Meeting *meeting_of(const Node *n)
{
    for (size_t i = 0; i < COUNT(meetings); i++)
        if (meetings[i].op == n->op)
            return &meetings[i];
    return NULL;
}

static bool change(Node *n, Rewriting *a)
{
    const Meeting *met = meeting_of(n);
    return met ? met->absorb(n, a) : sink_below(n, a) || sink_below_line(n, a);
}

static Status absorb_transposes(Graph *g, PassRun *run)
{
    return rewrite_all(g, run, change);
}

const Pass pass_absorb_transposes = {
    .name = "absorb-transposes", .needs = TYPED, .may = EXACT, .run = absorb_transposes
};
