/* What files for machines of integers have for a product with a multiplier of 31 bits and a shift
 * (passes/deploy/fixed.c): one call in C. */
#include <inttypes.h>

#include "codegen/source/c_steps.h"
#include "ops/quant/fixed.h"

static bool is_number(CSource *s, const Node *n, int64_t v)
{
    const Tensor *t = c_constant(s, n);
    return t && tensor_elements(t) == 1 && tensor_get_i64(t, 0) == v;
}

/* A call of two operands, the second of them constant, and which; null: it is none. */
static const Tensor *by_constant(CSource *s, const Node *n, Op op, const Node **v)
{
    if (n->op != op || c_constant(s, n) || n->type->dtype != I64)
        return NULL;
    *v = in(n, 0);
    return c_constant(s, in(n, 1));
}

static bool by_number(CSource *s, const Node *n, Op op, int64_t number, const Node **v)
{
    return by_constant(s, n, op, v) && is_number(s, in(n, 1), number);
}

/* v + sign(v) * half, divided by twice that. */
static const Node *take_right(CSource *s, const Node *n, Scaled *p)
{
    const Node *sum, *of;
    const Tensor *right = by_constant(s, n, OP_div, &sum);
    if (!right || sum->op != OP_add || !in(sum, 1))
        return n;
    const Tensor *half = by_constant(s, in(sum, 1), OP_mul, &of);
    if (!half || of->op != OP_sign || in(of, 0) != in(sum, 0))
        return n;
    p->right = right;
    p->half = half;
    return in(sum, 0);
}

bool c_match_scaled(CSource *s, const Node *n, Scaled *p)
{
    const int64_t unit = (int64_t)1 << FIXED_BITS;
    const Node *v = take_right(s, n, p), *cut;
    if (!by_number(s, v, OP_add, -unit, &v) || !by_number(s, v, OP_div, unit, &v) ||
        !by_number(s, v, OP_add, ((int64_t)1 << 62) + unit / 2, &v) || !(p->m = by_constant(s, v, OP_mul, &v)))
        return false;
    p->v = v;
    cut = v->op == OP_clip && v->n_in == 3 ? v : NULL;
    if (cut && is_number(s, in(cut, 1), -unit) && is_number(s, in(cut, 2), unit - 1) &&
        (p->left = by_constant(s, in(cut, 0), OP_mul, &v)))
        p->v = v;
    return true;
}

/* The exponent of a power of two; -1: it is none. */
static int exponent(int64_t v)
{
    for (int i = 0; i < 62; i++)
        if (v == (int64_t)1 << i)
            return i;
    return -1;
}

static int64_t number_at(const Tensor *t, int64_t i, int64_t none)
{
    return t ? tensor_get_i64(t, tensor_elements(t) == 1 ? 0 : i) : none;
}

/* Factors of all channels, whose numbers lie alike; 0: there are none. */
static int64_t find_factors(const Scaled *p, int64_t *m, int64_t *shift, const Type **like)
{
    const Tensor *parts[] = { p->m, p->left, p->half, p->right };
    int64_t n = 1;
    for (size_t i = 0; i < COUNT(parts); i++) {
        if (!parts[i] || tensor_elements(parts[i]) == 1)
            continue;
        if (n > 1 && parts[i]->type != *like)
            return 0;
        *like = parts[i]->type;
        n = tensor_elements(parts[i]);
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t right = number_at(p->right, i, 1), half = number_at(p->half, i, 0);
        const int up = exponent(number_at(p->left, i, 1)), down = exponent(right);
        m[i] = number_at(p->m, i, 0);
        shift[i] = up > 0 ? -up : down;
        if (m[i] < 0 || m[i] >= (int64_t)1 << FIXED_BITS || up < 0 || up > FIXED_MOST_LEFT || down < 0 ||
            down > FIXED_MOST_RIGHT || (up && down) || half != right / 2)
            return 0;
    }
    return n;
}

static int64_t most_elements(const Scaled *p)
{
    const Tensor *parts[] = { p->m, p->left, p->half, p->right };
    int64_t n = 1;
    for (size_t i = 0; i < COUNT(parts); i++)
        n = parts[i] && tensor_elements(parts[i]) > n ? tensor_elements(parts[i]) : n;
    return n;
}

Status c_make_scaled(Steps *t, const Scaled *p, Step *y)
{
    CSource *s = t->s;
    const Step v = c_operand(t, p->v);
    const size_t room = (size_t)most_elements(p);
    int64_t *m = NEWS(s->arena, int64_t, room), *shift = NEWS(s->arena, int64_t, room);
    const Type *like = NULL;
    const int64_t n = find_factors(p, m, shift, &like);
    if (!n)
        return c_refuse(t->end, "its multipliers are no numbers of 31 bits with shifts", NULL);
    if (!c_fits(v.least) || !c_fits(v.most))
        return c_too_far(t);
    y->least = INT64_MAX, y->most = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        const FixedFactor f = { (i32)m[i], shift[i] < 0 ? (int)-shift[i] : 0, shift[i] > 0 ? (int)shift[i] : 0 };
        const int64_t least = fixed_times(v.least, f), most = fixed_times(v.most, f);
        y->least = least < y->least ? least : y->least;
        y->most = most > y->most ? most : y->most;
    }
    const char *at = like ? c_element(t, like) : "0", *by = c_numbers(s, t->name, "multiplier", n, m, at);
    y->text = arena_printf(s->arena, "scaled(%s, %s, %s)", v.text, by, c_numbers(s, t->name, "shift", n, shift, at));
    return OK;
}
