/* Integers that are computed element by element, as files for machines of integers have them: from codes, or a sum, to
 * codes.  That no number leaves its type is proved by how far each may go. */
#include "codegen/source/c_steps.h"

#include <inttypes.h>

/* ---- what belongs to it ---- */

static bool is_wide(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && (n->type->dtype == I32 || n->type->dtype == I64);
}

bool c_is_code(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && (n->type->dtype == U8 || n->type->dtype == I8);
}

bool c_is_product(const Node *n)
{
    return n->op == OP_conv_integer || n->op == OP_matmul_integer;
}

bool c_computes(CSource *s, const Node *n)
{
    static const Op ops[] = { OP_add, OP_mul, OP_div, OP_sign, OP_clip, OP_cast, OP_reduce_sum };
    bool known = c_is_product(n);
    for (size_t i = 0; i < COUNT(ops); i++)
        known |= n->op == ops[i];
    return known && is_wide(n) && !c_constant(s, n);
}

/* Codes of a table for each integer. */
bool c_looks_up(CSource *s, const Node *n)
{
    return n->op == OP_gather && c_is_code(n) && c_constant(s, in(n, 0)) && in(n, 0)->type->rank == 1 &&
           is_wide(in(n, 1)) && !c_constant(s, in(n, 1));
}

bool c_makes_codes(CSource *s, const Node *n)
{
    return c_looks_up(s, n) || (n->op == OP_cast && c_is_code(n) && is_wide(in(n, 0)) && !c_constant(s, n));
}

/* Whether somebody reads integers as they are. */
static bool is_read(CSource *s, const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (!c_computes(s, u->user) && !c_makes_codes(s, u->user))
            return true;
    return false;
}

bool c_is_step(CSource *s, const Node *n)
{
    return c_computes(s, n) && !is_read(s, n);
}

bool c_ends_steps(CSource *s, const Node *n)
{
    return c_makes_codes(s, n) || (n->type->dtype == I32 && c_computes(s, n) && is_read(s, n));
}

/* ---- numbers on the way ---- */

static Step *find_step(Steps *t, const Node *n)
{
    for (int i = 0; i < t->n; i++)
        if (t->steps[i].n == n)
            return &t->steps[i];
    return NULL;
}

bool c_fits(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

Status c_too_far(const Steps *t)
{
    return c_refuse(t->end, "an integer on the way to it may leave its type", NULL);
}

const char *c_element(Steps *t, const Type *of)
{
    if (t->plain)
        return type_elements(t->y) == 1 ? "0" : "i";
    return c_broadcast(t->s, of, t->y, t->indices);
}

static const char *literal(CSource *s, int64_t v)
{
    return arena_printf(s->arena, c_fits(v) && v != INT32_MIN ? "%" PRId64 : "INT64_C(%" PRId64 ")", v);
}

/* An operand: what was computed, or a constant. */
Step c_operand(Steps *t, const Node *n)
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
    o.wide = !c_fits(o.least) || !c_fits(o.most) || o.least == INT32_MIN;
    o.text = count == 1 ? literal(t->s, v[0]) : c_numbers(t->s, t->name, "numbers", count, v, c_element(t, c->type));
    return o;
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
    const Step a = c_operand(t, in(n, 0)), b = c_operand(t, in(n, 1));
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
    y->wide = a.wide || b.wide || !c_fits(y->least) || !c_fits(y->most);
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
    const Step v = c_operand(t, in(n, 0));
    if (!lo || !hi || tensor_elements(lo) != 1 || tensor_elements(hi) != 1)
        return c_refuse(t->end, "integers on the way to it are not cut at two constants", NULL);
    const int64_t least = tensor_get_i64(lo, 0), most = tensor_get_i64(hi, 0);
    if (!c_fits(least) || !c_fits(most) || least > most || least == INT32_MIN)
        return c_too_far(t);
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
        y->wide = !c_fits(t->sum_least) || !c_fits(t->sum_most);
        return OK;
    }
    code_range(n->type->dtype, &lo, &hi);
    while (t->leaves[k] != n)
        k++;
    *y = (Step){ .n = n, .least = (int64_t)lo, .most = (int64_t)hi };
    y->text = arena_printf(t->s->arena, "%s[%s]", letters[k], c_element(t, n->type));
    return OK;
}

static Status make_step(Steps *t, const Node *n)
{
    Step y = { .n = n };
    Scaled p = { .v = NULL };
    if (n == t->sum || c_is_code(n))
        TRY(make_leaf(t, n, &y));
    else if (c_match_scaled(t->s, n, &p))
        TRY(c_make_scaled(t, &p, &y));
    else if (n->op == OP_clip)
        TRY(make_clip(t, n, &y));
    else if (n->op == OP_cast) {
        y = c_operand(t, in(n, 0));
        y.n = n;
    } else if (!make_binary(t, n, &y))
        return c_too_far(t);
    if (n->type->dtype == I32 && (!c_fits(y.least) || !c_fits(y.most)))
        return c_too_far(t);
    t->steps[t->n++] = y;
    return OK;
}

/* ---- which they are ---- */

/* The operands that a step is computed from, but for constants; -1: no step that is known here. */
static int operands_of(Steps *t, const Node *n, const Node **ins)
{
    Scaled p = { .v = NULL };
    int k = 0;
    if (n == t->sum || c_is_code(n))
        return 0;
    if (c_match_scaled(t->s, n, &p)) {
        ins[0] = p.v;
        return 1;
    }
    if (!c_computes(t->s, n) || n->op == OP_div || n->op == OP_sign || n->op == OP_reduce_sum || c_is_product(n))
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
Status c_order_steps(Steps *t)
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
        if (c_is_code(n))
            TRY(add_leaf(t, n));
        t->steps[t->n++] = (Step){ .n = n };
    }
    return OK;
}

/* The texts of all steps: the last is that of the value. */
Status c_make_steps(Steps *t, Step *value)
{
    const int n = t->n;
    for (t->n = 0; t->n < n;)
        TRY(make_step(t, t->steps[t->n].n));
    *value = t->steps[n - 1];
    return OK;
}

/* What is stored of the value. */
Status c_make_end(Steps *t, const char **stored)
{
    Step v;
    CSource *s = t->s;
    double lo, hi;
    TRY(c_make_steps(t, &v));
    if (t->of == t->end) {
        *stored = v.text;
        return OK;
    }
    code_range(t->end->type->dtype, &lo, &hi);
    const Tensor *codes = c_looks_up(s, t->end) ? c_constant(s, in(t->end, 0)) : NULL;
    if (v.least < (codes ? 0 : (int64_t)lo) || v.most > (codes ? tensor_elements(codes) - 1 : (int64_t)hi))
        return c_too_far(t);
    if (!codes) {
        *stored = arena_printf(s->arena, v.sum ? "(%s)(%s)" : "(%s)%s", c_type(t->end->type->dtype), v.text);
        return OK;
    }
    const char *table = c_name(s, arena_printf(s->arena, "%s_codes", t->name));
    c_table(s, table, c_type(t->end->type->dtype), tensor_elements(codes), c_integers(s, codes));
    *stored = arena_printf(s->arena, "%s[%s]", table, v.text);
    return OK;
}
