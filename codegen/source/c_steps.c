/* Integers that are computed element by element, as files for machines of integers have them: from codes, sums of products
 * or sums over axes to codes.  What such files have for a product with a multiplier of 31 bits and a shift
 * (passes/deploy/fixed.c) is one call; that no number leaves its type is proved by how far each may go. */
#include <inttypes.h>
#include <string.h>

#include "codegen/source/c_parts.h"
#include "ops/card/reduction.h"
#include "ops/fold/fold_access.h"
#include "ops/quant/fixed.h"

/* ---- what belongs to it ---- */

static bool is_wide(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && (n->type->dtype == I32 || n->type->dtype == I64);
}

static bool is_code(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && (n->type->dtype == U8 || n->type->dtype == I8);
}

static bool is_product(const Node *n)
{
    return n->op == OP_conv_integer || n->op == OP_matmul_integer;
}

static bool computes(CSource *s, const Node *n)
{
    static const Op ops[] = { OP_add, OP_mul, OP_div, OP_sign, OP_clip, OP_cast, OP_reduce_sum };
    bool known = is_product(n);
    for (size_t i = 0; i < COUNT(ops); i++)
        known |= n->op == ops[i];
    return known && is_wide(n) && !c_constant(s, n);
}

/* Codes of a table for each integer. */
static bool looks_up(CSource *s, const Node *n)
{
    return n->op == OP_gather && is_code(n) && c_constant(s, in(n, 0)) && in(n, 0)->type->rank == 1 &&
           is_wide(in(n, 1)) && !c_constant(s, in(n, 1));
}

static bool makes_codes(CSource *s, const Node *n)
{
    return looks_up(s, n) || (n->op == OP_cast && is_code(n) && is_wide(in(n, 0)) && !c_constant(s, n));
}

/* Whether somebody reads integers as they are. */
static bool is_read(CSource *s, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (!computes(s, u->user) && !makes_codes(s, u->user))
            return true;
    return false;
}

bool c_is_step(CSource *s, const Node *n)
{
    return computes(s, n) && !is_read(s, n);
}

bool c_ends_steps(CSource *s, const Node *n)
{
    return makes_codes(s, n) || (n->type->dtype == I32 && computes(s, n) && is_read(s, n));
}

/* ---- numbers on the way ---- */

enum { MOST_STEPS = 64, MOST_LEAVES = 2 };

typedef struct Step {
    const Node *n;
    const char *text;
    int64_t least, most;
    bool sum, product, wide; /* what the text is; a number of 64 bits */
} Step;

/* What is computed of elements of `leaves`, or of `sum`, which stands for a node. */
typedef struct Steps {
    CSource *s;
    const Node *end, *of, *sum; /* end: who makes something of the value `of` */
    const char *name;
    const Type *y;
    const char *const *indices;
    bool plain; /* elements lie where those of the result do */
    const Node *leaves[MOST_LEAVES];
    int n_leaves, n;
    Step steps[MOST_STEPS];
    int64_t sum_least, sum_most;
} Steps;

static Step *find_step(Steps *t, const Node *n)
{
    for (int i = 0; i < t->n; i++)
        if (t->steps[i].n == n)
            return &t->steps[i];
    return NULL;
}

static bool fits(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

static Status too_far(const Steps *t)
{
    return c_refuse(t->end, "an integer on the way to it may leave its type", NULL);
}

static const char *element(Steps *t, const Type *of)
{
    if (t->plain)
        return type_elements(t->y) == 1 ? "0" : "i";
    return c_broadcast(t->s, of, t->y, t->indices);
}

static const char *literal(CSource *s, int64_t v)
{
    return arena_printf(s->arena, fits(v) && v != INT32_MIN ? "%" PRId64 : "INT64_C(%" PRId64 ")", v);
}

/* An operand: what was computed, or a constant. */
static Step operand(Steps *t, const Node *n)
{
    const Tensor *c = c_constant(t->s, n);
    if (!c)
        return *find_step(t, n);
    const int64_t *v = c_integers(t->s, c), count = tensor_elements(c);
    Step o = { .least = v[0], .most = v[0] };
    for (int64_t i = 1; i < count; i++) {
        o.least = v[i] < o.least ? v[i] : o.least;
        o.most = v[i] > o.most ? v[i] : o.most;
    }
    o.wide = !fits(o.least) || !fits(o.most) || o.least == INT32_MIN;
    o.text = count == 1 ? literal(t->s, v[0]) : c_numbers(t->s, t->name, "numbers", count, v, element(t, c->type));
    return o;
}

/* ---- a multiplier of 31 bits and a shift ---- */

/* Constants of a product in fixed point: shifts are powers of two. */
typedef struct Scaled {
    const Node *v;
    const Tensor *m, *left, *half, *right; /* left, right: null: none */
} Scaled;

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

static bool match(CSource *s, const Node *n, Scaled *p)
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

static Status make_scaled(Steps *t, const Scaled *p, Step *y)
{
    CSource *s = t->s;
    const Step v = operand(t, p->v);
    const size_t room = (size_t)most_elements(p);
    int64_t *m = NEWS(s->arena, int64_t, room), *shift = NEWS(s->arena, int64_t, room);
    const Type *like = NULL;
    const int64_t n = find_factors(p, m, shift, &like);
    if (!n)
        return c_refuse(t->end, "its multipliers are no numbers of 31 bits with shifts", NULL);
    if (!fits(v.least) || !fits(v.most))
        return too_far(t);
    y->least = INT64_MAX, y->most = INT64_MIN;
    for (int64_t i = 0; i < n; i++) {
        const FixedFactor f = { (i32)m[i], shift[i] < 0 ? (int)-shift[i] : 0, shift[i] > 0 ? (int)shift[i] : 0 };
        const int64_t least = fixed_times(v.least, f), most = fixed_times(v.most, f);
        y->least = least < y->least ? least : y->least;
        y->most = most > y->most ? most : y->most;
    }
    const char *at = like ? element(t, like) : "0", *by = c_numbers(s, t->name, "multiplier", n, m, at);
    y->text = arena_printf(s->arena, "scaled(%s, %s, %s)", v.text, by, c_numbers(s, t->name, "shift", n, shift, at));
    return OK;
}

/* ---- the others ---- */

/* An operand of a sum or a product as C has it there, in the order in which it is computed. */
static const char *term(CSource *s, const Step *v, bool widens, bool times, bool second)
{
    const bool wraps = v->sum ? times || widens || second : v->product && times && second;
    const char *text = wraps ? arena_printf(s->arena, "(%s)", v->text) : v->text;
    return widens && !v->wide ? arena_printf(s->arena, "(int64_t)%s", text) : text;
}

/* Both operands of a sum or a product; false: it may leave 64 bits. */
static bool make_binary(Steps *t, const Node *n, Step *y)
{
    const Step a = operand(t, in(n, 0)), b = operand(t, in(n, 1));
    const bool times = n->op == OP_mul;
    const int64_t as[] = { a.least, a.most }, bs[] = { b.least, b.most };
    y->least = INT64_MAX, y->most = INT64_MIN;
    for (int i = 0; i < 4; i++) {
        int64_t v;
        if (times ? __builtin_mul_overflow(as[i / 2], bs[i % 2], &v) : __builtin_add_overflow(as[i / 2], bs[i % 2], &v))
            return false;
        y->least = v < y->least ? v : y->least;
        y->most = v > y->most ? v : y->most;
    }
    y->sum = !times;
    y->product = times;
    y->wide = a.wide || b.wide || !fits(y->least) || !fits(y->most);
    const bool minus = !times && c_constant(t->s, in(n, 1)) && b.least == b.most && b.least < 0 && b.least != INT64_MIN;
    y->text = arena_printf(t->s->arena, "%s %s %s", term(t->s, &a, y->wide, times, false),
                           times   ? "*"
                           : minus ? "-"
                                   : "+",
                           minus ? literal(t->s, -b.least) : term(t->s, &b, false, times, true));
    return true;
}

static Status make_clip(Steps *t, const Node *n, Step *y)
{
    const Tensor *lo = n->n_in == 3 ? c_constant(t->s, in(n, 1)) : NULL, *hi = lo ? c_constant(t->s, in(n, 2)) : NULL;
    const Step v = operand(t, in(n, 0));
    if (!lo || !hi || tensor_elements(lo) != 1 || tensor_elements(hi) != 1)
        return c_refuse(t->end, "integers on the way to it are not cut at two constants", NULL);
    const int64_t least = tensor_get_i64(lo, 0), most = tensor_get_i64(hi, 0);
    if (!fits(least) || !fits(most) || least > most || least == INT32_MIN)
        return too_far(t);
    y->least = v.least < least ? least : v.least > most ? most : v.least;
    y->most = v.most < least ? least : v.most > most ? most : v.most;
    y->text = arena_printf(t->s->arena, "clamp(%s, %" PRId64 ", %" PRId64 ")", v.text, least, most);
    return OK;
}

/* An element of codes, or the sum of a loop. */
static Status make_leaf(Steps *t, const Node *n, Step *y)
{
    static const char *const letters[] = { "x", "w" };
    double lo, hi;
    int k = 0;
    if (n == t->sum) {
        *y = (Step){ .n = n, .text = "sum", .least = t->sum_least, .most = t->sum_most };
        y->wide = !fits(t->sum_least) || !fits(t->sum_most);
        return OK;
    }
    code_range(n->type->dtype, &lo, &hi);
    while (t->leaves[k] != n)
        k++;
    *y = (Step){ .n = n, .least = (int64_t)lo, .most = (int64_t)hi };
    y->text = arena_printf(t->s->arena, "%s[%s]", letters[k], element(t, n->type));
    return OK;
}

static Status make_step(Steps *t, const Node *n)
{
    Step y = { .n = n };
    Scaled p = { NULL };
    if (n == t->sum || is_code(n))
        TRY(make_leaf(t, n, &y));
    else if (match(t->s, n, &p))
        TRY(make_scaled(t, &p, &y));
    else if (n->op == OP_clip)
        TRY(make_clip(t, n, &y));
    else if (n->op == OP_cast) {
        y = operand(t, in(n, 0));
        y.n = n;
    } else if (!make_binary(t, n, &y))
        return too_far(t);
    if (n->type->dtype == I32 && (!fits(y.least) || !fits(y.most)))
        return too_far(t);
    t->steps[t->n++] = y;
    return OK;
}

/* ---- which they are ---- */

/* The operands that a step is computed from, but for constants; -1: no step that is known here. */
static int operands_of(Steps *t, const Node *n, const Node **ins)
{
    Scaled p = { NULL };
    int k = 0;
    if (n == t->sum || is_code(n))
        return 0;
    if (match(t->s, n, &p)) {
        ins[0] = p.v;
        return 1;
    }
    if (!computes(t->s, n) || n->op == OP_div || n->op == OP_sign || n->op == OP_reduce_sum || is_product(n))
        return -1;
    for (int i = 0; i < n->n_in && i < 2; i++)
        if (in(n, i) && !c_constant(t->s, in(n, i)))
            ins[k++] = in(n, i);
    return k;
}

/* Codes whose elements are read. */
static Status add_leaf(Steps *t, const Node *n)
{
    for (int i = 0; i < t->n_leaves; i++)
        if (t->leaves[i] == n)
            return OK;
    if (t->n_leaves == MOST_LEAVES || t->sum || !c_value(t->s, n)->at)
        return c_refuse(t->end, "it is computed of more codes than two, or of what are none", NULL);
    t->leaves[t->n_leaves++] = n;
    return OK;
}

/* Steps in the order in which they are computed; their texts are made when all leaves are known. */
static Status order_steps(Steps *t)
{
    const Node *stack[MOST_STEPS] = { t->of }, *ins[2];
    int depth = 1;
    while (depth) {
        const Node *n = stack[depth - 1];
        const int before = depth, k = find_step(t, n) ? 0 : operands_of(t, n, ins);
        if (k < 0)
            return c_refuse(t->end, arena_printf(t->s->arena, "%s of integers has no C yet", op_of(n)->name), NULL);
        for (int i = 0; i < k; i++)
            if (!find_step(t, ins[i]) && depth < MOST_STEPS)
                stack[depth++] = ins[i];
        if (depth == MOST_STEPS || t->n == MOST_STEPS)
            return c_refuse(t->end, "too many integers are computed on the way to it", NULL);
        if (depth > before)
            continue;
        depth--;
        if (find_step(t, n))
            continue;
        if (is_code(n))
            TRY(add_leaf(t, n));
        t->steps[t->n++] = (Step){ .n = n };
    }
    return OK;
}

/* The texts of all steps: the last is that of the value. */
static Status make_steps(Steps *t, Step *value)
{
    const int n = t->n;
    for (t->n = 0; t->n < n;)
        TRY(make_step(t, t->steps[t->n].n));
    *value = t->steps[n - 1];
    return OK;
}

/* What is stored of the value. */
static Status make_end(Steps *t, const char **stored)
{
    Step v;
    CSource *s = t->s;
    double lo, hi;
    TRY(make_steps(t, &v));
    if (t->of == t->end) {
        *stored = v.text;
        return OK;
    }
    code_range(t->end->type->dtype, &lo, &hi);
    const Tensor *codes = looks_up(s, t->end) ? c_constant(s, in(t->end, 0)) : NULL;
    if (v.least < (codes ? 0 : (int64_t)lo) || v.most > (codes ? tensor_elements(codes) - 1 : (int64_t)hi))
        return too_far(t);
    if (!codes) {
        *stored = arena_printf(s->arena, v.sum ? "(%s)(%s)" : "(%s)%s", c_type(t->end->type->dtype), v.text);
        return OK;
    }
    const char *table = c_name(s, arena_printf(s->arena, "%s_codes", t->name));
    c_table(s, table, c_type(t->end->type->dtype), tensor_elements(codes), c_integers(s, codes));
    *stored = arena_printf(s->arena, "%s[%s]", table, v.text);
    return OK;
}

/* ---- sums of products ---- */

/* The product that begins some steps, with what is added to its sums; null: none does. */
static const Node *find_product(CSource *s, const Node *n, CProduct *p)
{
    const Node *product = n->op == OP_add && n->type->dtype == I32 && c_constant(s, in(n, 1)) ? in(n, 0) : n;
    if (!is_product(product))
        return NULL;
    const Type *y = product->type, *bias = product == n ? NULL : in(n, 1)->type;
    const int axis = product->op == OP_conv_integer ? 1 : y->rank - 1;
    bool along = !bias || type_elements(bias) == 1;
    if (!along && bias->rank <= y->rank && y->rank) {
        const int at = axis - (y->rank - bias->rank);
        along = at >= 0 && bias->dims[at] == type_elements(bias) && bias->dims[at] == y->dims[axis];
    }
    if (!along || n->type != y)
        return NULL;
    *p = (CProduct){ .x = in(product, 0),
                     .w = in(product, 1),
                     .x_zero = product->n_in > 2 ? in(product, 2) : NULL,
                     .w_zero = product->n_in > 3 ? in(product, 3) : NULL,
                     .bias = bias ? in(n, 1) : NULL,
                     .y = y };
    return product;
}

static Status finish_sums(CSource *s, const CProduct *p, const char *name, const char *const *indices, int64_t channels,
                          const char **made)
{
    Steps t = *(const Steps *)p->user;
    (void)s, (void)channels;
    t.name = name;
    t.indices = indices;
    t.y = p->y;
    t.sum_least = -INT32_MAX;
    t.sum_most = INT32_MAX;
    TRY(order_steps(&t));
    return make_end(&t, made);
}

static Status print_sums(CSource *s, Steps *t, const Node *product, CProduct *p)
{
    if (!c_value(s, p->x)->at || (p->x_zero && !c_constant(s, p->x_zero)) || (p->w_zero && !c_constant(s, p->w_zero)) ||
        (!c_constant(s, p->w) && !c_value(s, p->w)->at))
        return c_refuse(t->end, "its codes or their zero points are computed", NULL);
    p->n = t->end;
    p->user = t;
    p->finish = finish_sums;
    if (product->op == OP_conv_integer)
        return c_print_convolved(s, p, product->attr);
    const MatmulIntegerAttr *at = product->attr;
    return c_print_multiplied(s, p, at->ta, at->tb);
}

/* ---- sums over axes, and neither ---- */

/* How many elements of the operand are added up; 0: they are no sums with the axes kept. */
static int64_t find_axes(CSource *s, const Node *sum, uint32_t *mask)
{
    const ReduceAttr *at = sum->attr;
    const Tensor *axes = sum->n_in > 1 ? c_constant(s, in(sum, 1)) : NULL;
    const Type *x = in(sum, 0)->type;
    int64_t n = 1;
    if (!at->keepdims || (sum->n_in > 1 && in(sum, 1) && !axes) || x->rank * 2 > MAX_RANK)
        return 0;
    *mask = reduce_mask(at, x->rank, axes ? tensor_elements(axes) : 0, axes ? c_integers(s, axes) : NULL);
    for (int d = 0; d < x->rank; d++)
        n *= *mask >> d & 1 ? x->dims[d] : 1;
    return n;
}

static Status print_reduced(CSource *s, Steps *t)
{
    const Type *x = in(t->sum, 0)->type;
    const char *inner[MAX_RANK], *stored = NULL;
    uint32_t mask = 0;
    Step v;
    const int64_t n = find_axes(s, t->sum, &mask);
    if (!n || t->y->rank != x->rank)
        return c_refuse(t->end, "it is a sum over axes that are computed, or not kept", NULL);
    for (int d = 0; d < x->rank; d++)
        inner[d] = c_places[mask >> d & 1 ? x->rank + d : d];
    Steps of = { .s = s, .end = t->end, .of = in(t->sum, 0), .name = t->name, .y = x, .indices = inner };
    TRY(order_steps(&of));
    TRY(make_steps(&of, &v));
    if (__builtin_mul_overflow(v.least, n, &t->sum_least) || __builtin_mul_overflow(v.most, n, &t->sum_most))
        return too_far(t);
    TRY(make_end(t, &stored));
    c_function(s, t->name, t->end, of.n_leaves, of.leaves, arena_printf(s->arena, "sums of %s", c_shape(s, x)));
    for (int d = 0; d < x->rank; d++)
        c_loop(s, c_places[d], t->y->dims[d]);
    const int depth = s->depth;
    c_line(s, "%s sum = 0;", fits(t->sum_least) && fits(t->sum_most) ? "int32_t" : "int64_t");
    for (int d = 0; d < x->rank; d++)
        if (mask >> d & 1)
            c_loop(s, inner[d], x->dims[d]);
    c_line(s, "sum += %s;", v.text);
    c_close_to(s, depth);
    c_line(s, "y[%s] = %s;", c_broadcast(s, t->y, t->y, c_places), stored);
    c_close_to(s, 0);
    const Node *args[] = { of.leaves[0], of.n_leaves > 1 ? of.leaves[1] : t->end, t->end };
    c_call(s, t->name, of.n_leaves + 1, args);
    return OK;
}

/* Element by element, of one or two values of codes. */
static Status print_elements(CSource *s, Steps *t)
{
    const char *stored = NULL;
    const int64_t count = type_elements(t->y);
    t->plain = true;
    for (int i = 0; i < t->n_leaves; i++)
        t->plain &= type_elements(t->leaves[i]->type) == count;
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < t->steps[i].n->n_in; k++) {
            const Tensor *c = is_code(t->steps[i].n) ? NULL : c_constant(s, in(t->steps[i].n, k));
            t->plain &= !c || tensor_elements(c) == 1;
        }
    TRY(make_end(t, &stored));
    c_function(s, t->name, t->end, t->n_leaves, t->leaves,
               looks_up(s, t->end) ? "a code for each code" : "element by element");
    if (t->plain)
        c_loop(s, "i", count);
    for (int d = 0; d < t->y->rank && !t->plain; d++)
        c_loop(s, c_places[d], t->y->dims[d]);
    c_line(s, "y[%s] = %s;", element(t, t->y), stored);
    c_close_to(s, 0);
    const Node *args[] = { t->leaves[0], t->n_leaves > 1 ? t->leaves[1] : t->end, t->end };
    c_call(s, t->name, t->n_leaves + 1, args);
    return OK;
}

/* Follows a value to the first product or sum over axes on the way, on which all else is computed. */
static const Node *find_sum(CSource *s, const Node *n, CProduct *p, const Node **product)
{
    for (int i = 0; i < MOST_STEPS; i++) {
        Scaled k = { NULL };
        *product = find_product(s, n, p);
        if (*product || n->op == OP_reduce_sum)
            return n;
        n = match(s, n, &k) ? k.v : n->n_in && in(n, 0) && !c_constant(s, in(n, 0)) ? in(n, 0) : NULL;
        if (!n || !computes(s, n))
            return NULL;
    }
    return NULL;
}

Status c_print_steps(CSource *s, const Node *n)
{
    CProduct p;
    const Node *product = NULL;
    Steps *t = NEW(s->arena, Steps);
    *t = (Steps){ .s = s, .end = n, .of = n, .y = n->type, .indices = c_places };
    if (makes_codes(s, n))
        t->of = in(n, looks_up(s, n) ? 1 : 0);
    t->sum = find_sum(s, t->of, &p, &product);
    if (product)
        return print_sums(s, t, product, &p);
    t->name = c_name(s, c_text_of(s, n));
    if (looks_up(s, n))
        text_add(&s->code, "\n");
    TRY(order_steps(t));
    return t->sum ? print_reduced(s, t) : print_elements(s, t);
}
