#include "passes/deploy/fixed.h"

#include "ops/card/make.h"
#include "ops/card/words.h"
#include "passes/quant/placement.h"

/* ---- numbers ---- */

/* One for each of n channels, with axes of 1 behind them; all equal: one. */
static Node *constants(Build *b, int64_t n, const int64_t *v, int behind)
{
    int64_t dims[MAX_RANK] = { n };
    bool equal = true;
    for (int i = 1; i <= behind; i++)
        dims[i] = 1;
    for (int64_t i = 1; i < n; i++)
        equal &= v[i] == v[0];
    Tensor *t = equal ? tensor_scalar(b->graph->arena, &b->graph->ir->types, I64, 0)
                      : tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, I64, behind + 1, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_i64(t, i, v[i]);
    return build_const(b, t);
}

Node *fixed_constant(Build *b, int64_t v)
{
    return constants(b, 1, &v, 0);
}

Node *fixed_scales(Build *b, int64_t n, const f32 *v)
{
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, F32, n > 1, &n));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, (double)v[i]);
    return build_const(b, t);
}

/* ---- products ---- */

typedef struct Factors {
    int64_t n;
    int64_t *m, *left, *right, *half; /* shifts as powers of two */
    bool grow, shrink;                /* some are shifted so */
} Factors;

static Factors factors(Build *b, int64_t n)
{
    Arena *arena = b->graph->arena;
    const size_t room = (size_t)n + 1;
    return (Factors){ .n = n,
                      .m = NEWS(arena, int64_t, room),
                      .left = NEWS(arena, int64_t, room),
                      .right = NEWS(arena, int64_t, room),
                      .half = NEWS(arena, int64_t, room) };
}

static void put_factor(Factors *f, int64_t i, FixedFactor v)
{
    f->m[i] = v.m;
    f->left[i] = (int64_t)1 << v.left;
    f->right[i] = (int64_t)1 << v.right;
    f->half[i] = f->right[i] / 2;
    f->grow |= v.left > 0;
    f->shrink |= v.right > 0;
}

/* The two roundings of ops/quant/fixed.h: what is divided first is made positive, since divisions truncate; what is
 * divided then has half the divisor more, away from 0. */
static Node *multiply(Build *b, Node *v, const Factors *f, int behind)
{
    const int64_t one = 1, unit = one << FIXED_BITS, above = one << 62;
    if (f->grow)
        v = CALL(b, clip, CALL(b, mul, v, constants(b, f->n, f->left, behind)), fixed_constant(b, -unit),
                 fixed_constant(b, unit - 1));
    v = CALL(b, add, CALL(b, mul, v, constants(b, f->n, f->m, behind)), fixed_constant(b, above + unit / 2));
    v = CALL(b, add, CALL(b, div, v, fixed_constant(b, unit)), fixed_constant(b, -unit));
    if (!f->shrink)
        return v;
    v = CALL(b, add, v, CALL(b, mul, CALL(b, sign, v), constants(b, f->n, f->half, behind)));
    return CALL(b, div, v, constants(b, f->n, f->right, behind));
}

Node *fixed_scaled(Build *b, Node *v, FixedFactor by)
{
    Factors f = factors(b, 1);
    put_factor(&f, 0, by);
    return multiply(b, v, &f, 0);
}

Node *fixed_product(Build *b, Node *sums, int64_t channels, const f32 *numbers, int behind)
{
    Factors f = factors(b, channels);
    for (int64_t i = 0; i < channels; i++)
        put_factor(&f, i, fixed_factor(numbers[i]));
    return multiply(b, build_cast(b, sums, I64), &f, behind);
}

/* ---- tables ---- */

enum { MOST_STEPS = 32, CODES = 256 };

/* From codes to a value that is a function of each: what is computed on the way, last first, behind the dequantizer; and what
 * only moves, which may as well move codes. */
typedef struct Way {
    Node *codes, *number, *steps[MOST_STEPS], *moves[MOST_STEPS];
    int n, n_moves;
} Way;

/* The only operand that is not one constant number; null: there are others. */
static Node *only_operand(const Node *n)
{
    Node *found = NULL;
    for (int i = 0; i < n->n_in; i++) {
        const Tensor *t = in(n, i) ? node_constant(in(n, i), SIZE_MAX) : NULL;
        if (!in(n, i) || (t && tensor_elements(t) == 1))
            continue;
        if (t || (found && found != in(n, i)))
            return NULL;
        found = in(n, i);
    }
    return found;
}

/* What a part was cut from; null: it is none. */
static Node *cut_from(const Node *n)
{
    return n->op == OP_part && op_moves(op_of(in(n, 0))) ? in(in(n, 0), 0) : NULL;
}

/* Whether a dequantizer has one scale, which is known, and codes that tables can have. */
static bool is_number(const Node *n)
{
    const DType t = op_of(n)->quant.dequantizes ? in(n, 0)->type->dtype : F32;
    return (t == U8 || t == I8) && only_operand(n) == in(n, 0);
}

static bool find_way(Node *n, Way *w)
{
    while (w->n < MOST_STEPS && w->n_moves < MOST_STEPS && n) {
        Node *from = cut_from(n);
        if (from) {
            w->moves[w->n_moves++] = n;
        } else if (is_number(n)) {
            w->number = n;
            w->codes = in(n, 0);
            return true;
        } else {
            from = only_operand(n);
            if (n->n_regions || n->type->kind != TYPE_TENSOR ||
                (op_of(n)->access.kind != ACCESS_ROW && !op_of(n)->quant.quantizes))
                return false;
            w->steps[w->n++] = n;
        }
        n = from;
    }
    return false;
}

/* One number, whatever its shape. */
static Node *single(Build *b, Node *n)
{
    return n && n->type->rank ? make_reshape(b, n, 0, NULL) : n;
}

/* What all codes of a type stand for, the least first. */
static Node *numbers_of(Build *b, const Node *number)
{
    const Node *zero = in(number, 2);
    const int64_t n = CODES, z = zero ? tensor_get_i64(node_constant(zero, SIZE_MAX), 0) : 0,
                  least = in(number, 0)->type->dtype == I8 ? -CODES / 2 : 0;
    const f32 scale = (f32)tensor_get_f64(node_constant(in(number, 1), SIZE_MAX), 0);
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, F32, 1, &n));
    for (int64_t i = 0; i < n; i++)
        tensor_set_f64(t, i, (double)((f32)(i + least - z) * scale));
    return build_const(b, t);
}

static Node *table_of(Build *b, const Way *w)
{
    Node *value = numbers_of(b, w->number);
    for (int k = w->n - 1; k >= 0; k--) {
        const Node *step = w->steps[k], *moving = only_operand(step);
        Node **ins = NEWS(b->graph->arena, Node *, (size_t)step->n_in + 1);
        for (int i = 0; i < step->n_in; i++)
            ins[i] = in(step, i) == moving ? value : single(b, in(step, i));
        value = build_node(b, step->op, step->attr, step->n_in, ins);
    }
    return value;
}

/* The codes where they were moved to. */
static Node *moved_codes(Build *b, const Way *w)
{
    Node *codes = w->codes;
    for (int k = w->n_moves - 1; k >= 0 && codes; k--) {
        const Node *cut = in(w->moves[k], 0);
        Node **ins = NEWS(b->graph->arena, Node *, (size_t)cut->n_in + 1);
        for (int i = 1; i < cut->n_in; i++)
            ins[i] = in(cut, i);
        ins[0] = codes;
        Node *parts = build_node_n(b, cut->op, cut->attr, cut->n_in, ins, type_results(cut->type));
        codes = parts ? build_part(b, parts, ((const PartAttr *)w->moves[k]->attr)->index) : NULL;
    }
    return codes;
}

static bool is_same(const Node *a, const Node *b)
{
    return a == b || (a && b && tensor_same(node_constant(a, SIZE_MAX), node_constant(b, SIZE_MAX)));
}

/* Whether a way only makes codes of numbers of the same codes, which gives those. */
static bool comes_back(const Way *w)
{
    const Node *quantizer = w->n == 1 ? w->steps[0] : NULL;
    return quantizer && op_of(quantizer)->quant.quantizes && quantizer->type->dtype == w->codes->type->dtype &&
           is_same(in(quantizer, 1), in(w->number, 1)) && is_same(in(quantizer, 2), in(w->number, 2));
}

static Node *looked_up(Build *b, const Way *w)
{
    Node *codes = moved_codes(b, w);
    if (comes_back(w) || !codes)
        return codes;
    Node *at = build_cast(b, codes, I32);
    if (w->codes->type->dtype == I8)
        at = CALL(b, add, at, build_scalar(b, I32, CODES / 2));
    return make_gather(b, table_of(b, w), at, 0);
}

/* Values side by side, each with a scale of its own: the quantizer is the last step of each. */
static Node *side_by_side(Build *b, Node *quantizer, const Node *joined)
{
    Node **parts = NEWS(b->graph->arena, Node *, (size_t)joined->n_in + 1);
    Way *ways = NEWS(b->graph->arena, Way, (size_t)joined->n_in + 1);
    for (int i = 0; i < joined->n_in; i++) {
        ways[i] = (Way){ .n = 1, .steps = { quantizer } };
        if (!find_way(in(joined, i), &ways[i]))
            return NULL;
    }
    for (int i = 0; i < joined->n_in; i++)
        parts[i] = looked_up(b, &ways[i]);
    return build_node(b, joined->op, joined->attr, joined->n_in, parts);
}

Node *fixed_tables(Build *b, Node *quantizer)
{
    Way w = { .n = 0 };
    const Node *of = in(quantizer, 0), *zero = in(quantizer, 2);
    if (type_elements(in(quantizer, 1)->type) != 1 || !node_constant(in(quantizer, 1), SIZE_MAX) ||
        (zero && !node_constant(zero, SIZE_MAX)))
        return NULL;
    if (quant_is_side_by_side(of))
        return side_by_side(b, quantizer, of);
    return find_way(quantizer, &w) ? looked_up(b, &w) : NULL;
}
