/* The functions of operators of integers: sums of products, sums over axes, and what is computed of codes alone. */
#include "codegen/source/c_steps.h"
#include "ops/card/reduction.h"
#include "ops/fold/fold_access.h"

/* ---- sums of products ---- */

/* The product that begins some steps, with what is added to its sums; null: none does. */
static const Node *find_product(CSource *s, const Node *n, CProduct *p)
{
    const Node *product = n->op == OP_add && n->type->dtype == I32 && c_constant(s, in(n, 1)) ? in(n, 0) : n;
    if (!c_is_product(product))
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
    TRY(c_order_steps(&t));
    return c_make_end(&t, made);
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
    TRY(c_order_steps(&of));
    TRY(c_make_steps(&of, &v));
    if (__builtin_mul_overflow(v.least, n, &t->sum_least) || __builtin_mul_overflow(v.most, n, &t->sum_most))
        return c_too_far(t);
    TRY(c_make_end(t, &stored));
    c_function(s, t->name, t->end, of.n_leaves, of.leaves, arena_printf(s->arena, "sums of %s", c_shape(s, x)));
    for (int d = 0; d < x->rank; d++)
        c_loop(s, c_places[d], t->y->dims[d]);
    const int depth = s->depth;
    c_line(s, "%s sum = 0;", c_fits(t->sum_least) && c_fits(t->sum_most) ? "int32_t" : "int64_t");
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
            const Tensor *c = c_is_code(t->steps[i].n) ? NULL : c_constant(s, in(t->steps[i].n, k));
            t->plain &= !c || tensor_elements(c) == 1;
        }
    TRY(c_make_end(t, &stored));
    c_function(s, t->name, t->end, t->n_leaves, t->leaves,
               c_looks_up(s, t->end) ? "a code for each code" : "element by element");
    if (t->plain)
        c_loop(s, "i", count);
    for (int d = 0; d < t->y->rank && !t->plain; d++)
        c_loop(s, c_places[d], t->y->dims[d]);
    c_line(s, "y[%s] = %s;", c_element(t, t->y), stored);
    c_close_to(s, 0);
    const Node *args[] = { t->leaves[0], t->n_leaves > 1 ? t->leaves[1] : t->end, t->end };
    c_call(s, t->name, t->n_leaves + 1, args);
    return OK;
}

/* Follows a value to the first product or sum over axes on the way, on which all else is computed. */
static const Node *find_sum(CSource *s, const Node *n, CProduct *p, const Node **product)
{
    for (int i = 0; i < MOST_STEPS; i++) {
        Scaled k = { .v = NULL };
        *product = find_product(s, n, p);
        if (*product || n->op == OP_reduce_sum)
            return n;
        n = c_match_scaled(s, n, &k) ? k.v : n->n_in && in(n, 0) && !c_constant(s, in(n, 0)) ? in(n, 0) : NULL;
        if (!n || !c_computes(s, n))
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
    if (c_makes_codes(s, n))
        t->of = in(n, c_looks_up(s, n) ? 1 : 0);
    t->sum = find_sum(s, t->of, &p, &product);
    if (product)
        return print_sums(s, t, product, &p);
    t->name = c_name(s, c_text_of(s, n));
    if (c_looks_up(s, n))
        text_add(&s->code, "\n");
    TRY(c_order_steps(t));
    return t->sum ? print_reduced(s, t) : print_elements(s, t);
}
