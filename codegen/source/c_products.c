/* Convolutions and products of matrices. */
#include <inttypes.h>
#include <stdlib.h>

#include "codegen/source/c_parts.h"
#include "ops/quant/products.h"

/* What sums begin with, and whether the zero point of the data is part of that. */
typedef struct Sums {
    int64_t channels;
    int64_t *bias;
    bool folded;
} Sums;

/* Weights without their zero points, channel after channel where they lie so. */
static int64_t *centred_weights(CSource *s, const Tensor *w, const Tensor *zero, int64_t channels, int64_t step)
{
    const int64_t n = tensor_elements(w), zeros = zero ? tensor_elements(zero) : 1;
    int64_t *v = NEWS(s->arena, int64_t, (size_t)n + 1);
    for (int64_t i = 0; i < n; i++)
        v[i] = tensor_get_i64(w, i) - (zero ? tensor_get_i64(zero, zeros == 1 ? 0 : i / step % channels) : 0);
    return v;
}

/* How far codes of a type are from a number at most. */
static int64_t most_of(DType dtype, int64_t zero)
{
    double lo, hi;
    code_range(dtype, &lo, &hi);
    return llabs((int64_t)hi - zero) > llabs((int64_t)lo - zero) ? llabs((int64_t)hi - zero)
                                                                 : llabs((int64_t)lo - zero);
}

/* Folds the zero point of the data into the biases where every weight meets data, and proves that no sum leaves 32
 * bits.  Weight i belongs to channel i / step % channels. */
static bool finish_biases(Sums *t, int64_t n, const int64_t *w, int64_t step, DType data, int64_t zero, bool folds,
                          Arena *arena)
{
    int64_t *sum = NEWS(arena, int64_t, (size_t)t->channels + 1), *size = NEWS(arena, int64_t, (size_t)t->channels + 1);
    for (int64_t i = 0; i < n; i++) {
        sum[i / step % t->channels] += w[i];
        size[i / step % t->channels] += llabs(w[i]);
    }
    t->folded = folds;
    for (int64_t c = 0; c < t->channels; c++) {
        t->bias[c] -= folds ? zero * sum[c] : 0;
        if (size[c] * most_of(data, folds ? 0 : zero) + llabs(t->bias[c]) > INT32_MAX)
            return false;
    }
    return true;
}

static const char *too_large = "a sum of products may leave 32 bits";

static int64_t *biases_of(CSource *s, const Node *bias, int64_t channels)
{
    int64_t *v = NEWS(s->arena, int64_t, (size_t)channels + 1);
    const Tensor *t = c_constant(s, bias);
    for (int64_t c = 0; t && c < channels; c++)
        v[c] = tensor_get_i64(t, tensor_elements(t) == 1 ? 0 : c);
    return v;
}

static bool all_equal(int64_t n, const int64_t *v)
{
    for (int64_t i = 1; i < n; i++)
        if (v[i] != v[0])
            return false;
    return true;
}

const char *c_numbers(CSource *s, const char *function, const char *what, int64_t n, const int64_t *v,
                      const char *index)
{
    if (all_equal(n, v))
        return arena_printf(s->arena, "%" PRId64, v[0]);
    const char *name = c_name(s, arena_printf(s->arena, "%s_%s", function, what));
    c_table(s, name, c_smallest(n, v), n, v);
    return arena_printf(s->arena, "%s[%s]", name, index);
}

/* ---- codes of sums ---- */

/* A word's operands: of both products they lie in the same places. */
static CProduct product_of(const Node *n)
{
    return (CProduct){ .n = n,
                       .x = in(n, QCONV_X),
                       .x_zero = in(n, QCONV_X_ZERO),
                       .w = in(n, QCONV_W),
                       .w_zero = in(n, QCONV_W_ZERO),
                       .bias = in(n, QCONV_BIAS),
                       .y = type_result(n->type, 0) };
}

/* Multipliers of channels: f32(f32(sx * sw) / sy). */
static Status as_codes(CSource *s, const CProduct *p, const char *name, const char *const *indices, int64_t channels,
                       const char **made)
{
    (void)indices;
    const Node *n = p->n;
    const CodesAttr *at = p->user;
    const Tensor *sw = c_constant(s, in(n, QCONV_W_SCALE));
    const f32 *scales = c_floats(s, sw), sx = c_float(s, in(n, QCONV_X_SCALE)), sy = c_float(s, in(n, QCONV_Y_SCALE));
    int64_t *multiplier = NEWS(s->arena, int64_t, (size_t)channels + 1),
            *shift = NEWS(s->arena, int64_t, (size_t)channels + 1);
    for (int64_t c = 0; c < channels; c++) {
        CFixed f = c_fixed(requantize_scale(sx, scales[tensor_elements(sw) == 1 ? 0 : c], sy));
        if (!c_is_factor(&f))
            return c_refuse(n, "its scales are too far apart", NULL);
        multiplier[c] = f.m;
        shift[c] = f.shift;
    }
    const CodeRange range = code_range_of(at, p->y->dtype, (f32)c_integer(s, in(n, QCONV_Y_ZERO)));
    const char *by = c_numbers(s, name, "multiplier", channels, multiplier, "c");
    *made = c_code(
        s, arena_printf(s->arena, "requantize(sum, %s, %s)", by, c_numbers(s, name, "shift", channels, shift, "c")),
        &range, p->y->dtype);
    return OK;
}

static Status as_sums(CSource *s, const CProduct *p, const char *name, const char *const *indices, int64_t channels,
                      const char **made)
{
    (void)s, (void)p, (void)name, (void)indices, (void)channels;
    *made = "sum";
    return OK;
}

/* ---- convolutions ---- */

typedef struct Conv {
    Window w;
    int64_t images, groups, channels, results; /* of a group */
    Sums sums;
    CWeights weight;
    const char *bias;
    int64_t zero;
} Conv;

static void print_sum(CSource *s, const Conv *c)
{
    const Window *w = &c->w;
    CAxis x[5], k[5];
    const char *channel = "k";
    const int depth = s->depth, rank = w->rank;
    if (c->groups > 1)
        channel = arena_printf(s->arena, c->results == 1 ? "c" : "c / %" PRId64, c->results);
    if (c->groups > 1 && c->channels > 1)
        channel = arena_printf(s->arena, "(%s) * %" PRId64 " + k", channel, c->channels);
    x[0] = (CAxis){ "n", c->images };
    x[1] = (CAxis){ channel, c->groups * c->channels };
    k[0] = (CAxis){ "c", c->groups * c->results };
    k[1] = (CAxis){ "k", c->channels };
    for (int d = 0; d < rank; d++) {
        x[2 + d] = (CAxis){ c_inner[3 - rank + d], w->in[d] };
        k[2 + d] = (CAxis){ c_taps[3 - rank + d], w->kernel[d] };
    }
    c_loop(s, "k", c->channels);
    c_open_taps(s, w);
    const char *data = arena_printf(s->arena, "x[%s]", c_index(s, rank + 2, x));
    c_line(s, "sum += %s * %s;", c_centred(s, data, c->sums.folded ? 0 : c->zero),
           c_weight(s, &c->weight, c_index(s, rank + 2, k)));
    c_close_to(s, depth);
}

static void print_conv(CSource *s, const Conv *c, const char *made)
{
    CAxis y[5] = { { "n", c->images }, { "c", c->groups * c->results } };
    c_loop(s, "n", c->images);
    c_loop(s, "c", c->groups * c->results);
    for (int d = 0; d < c->w.rank; d++) {
        y[2 + d] = (CAxis){ c_outer[3 - c->w.rank + d], c->w.out[d] };
        c_loop(s, c_outer[3 - c->w.rank + d], c->w.out[d]);
    }
    const int depth = s->depth;
    c_line(s, "int32_t sum = %s;", c->bias);
    print_sum(s, c);
    c_close_to(s, depth);
    c_line(s, "y[%s] = %s;", c_index(s, c->w.rank + 2, y), made);
    c_close_to(s, 0);
}

/* Whether operands from one on, but for that of the other factor, are known where they are there. */
static bool rest_is_known(CSource *s, const Node *n)
{
    for (int i = 1; i < n->n_in; i++)
        if (in(n, i) && i != QCONV_W && !c_constant(s, in(n, i)))
            return false;
    return true;
}

static const char *conv_remark(CSource *s, const CProduct *p, const Conv *c)
{
    Text t;
    text_open(&t, s->arena);
    text_printf(&t, "%s of %s, windows of ",
                c->groups > 1 && c->channels == 1 ? "a depthwise convolution" : "a convolution",
                c_shape(s, p->x->type));
    for (int d = 0; d < c->w.rank; d++)
        text_printf(&t, "%s%" PRId64, d ? " x " : "", c->w.kernel[d]);
    if (c->groups > 1 && c->channels > 1)
        text_printf(&t, ", %" PRId64 " groups", c->groups);
    return text_get(&t);
}

Status c_print_convolved(CSource *s, const CProduct *p, const ConvAttr *at)
{
    const Type *x = p->x->type, *w = p->w->type;
    Conv c = { .images = p->y->dims[0], .groups = at->group, .channels = w->dims[1] };
    const char *made = NULL;
    if (!c_constant(s, p->w))
        return c_refuse(p->n, "weights and scales must be known", NULL);
    if (x->rank > 5)
        return c_refuse(p->n, "windows have more than three dimensions", NULL);
    c.results = w->dims[0] / c.groups;
    const char *why = window_place(&c.w, s->arena, &at->window, x->rank - 2, x->dims + 2, w->dims + 2);
    if (why)
        return c_refuse(p->n, why, NULL);
    const int64_t m = w->dims[0], step = type_elements(w) / m;
    const int64_t *weights = centred_weights(s, c_constant(s, p->w), c_constant(s, p->w_zero), m, step);
    bool inside = true;
    for (int d = 0; d < c.w.rank; d++)
        inside &= !c_leaves_data(&c.w, d);
    c.zero = c_integer(s, p->x_zero);
    c.sums = (Sums){ .channels = m, .bias = biases_of(s, p->bias, m) };
    if (!finish_biases(&c.sums, type_elements(w), weights, step, x->dtype, c.zero, inside, s->arena))
        return c_refuse(p->n, too_large, NULL);
    const char *name = c_name(s, c_text_of(s, p->n)), *indices[5] = { "n", "c" };
    for (int d = 0; d < c.w.rank; d++)
        indices[2 + d] = c_outer[3 - c.w.rank + d];
    text_add(&s->code, "\n");
    c.weight = c_weights(s, c_name(s, arena_printf(s->arena, "%s_weight", name)), type_elements(w), weights);
    c.bias = c_numbers(s, name, "bias", m, c.sums.bias, "c");
    TRY(p->finish(s, p, name, indices, m, &made));
    c_function(s, name, p->n, 1, &p->x, conv_remark(s, p, &c));
    print_conv(s, &c, made);
    c_call(s, name, 2, (const Node *const[]){ p->x, p->n });
    return OK;
}

Status c_print_conv(CSource *s, const Node *n)
{
    const QconvAttr *at = n->attr;
    CProduct p = product_of(n);
    p.finish = as_codes;
    p.user = &at->codes;
    if (!rest_is_known(s, n) || !in(n, QCONV_Y_SCALE))
        return c_refuse(n, "weights and scales must be known", NULL);
    return c_print_convolved(s, &p, &at->conv);
}

/* ---- products of matrices ---- */

typedef struct Product {
    Stack s;
    Sums sums;
    bool stored; /* the second factor is a table */
    CWeights weight;
    const char *bias;
    int64_t za, zb;
} Product;

static const char *step_text(CSource *s, const char *index, int64_t n, int64_t step)
{
    return n == 1 ? NULL : step == 1 ? index : arena_printf(s->arena, "%s * %" PRId64, index, step);
}

static const char *plus(CSource *s, const char *a, const char *b)
{
    return a && b ? arena_printf(s->arena, "%s + %s", a, b) : a ? a : b;
}

/* Where the element of a factor is: its matrix, its row and its column. */
static const char *factor_index(CSource *s, const int64_t *batch, const Stack *k, const char *row, int64_t rows,
                                int64_t row_step, const char *column, int64_t columns, int64_t column_step)
{
    static const char *const names[] = { "b", "d", "e", "f" };
    const char *text = NULL;
    for (int i = 0; i < k->rank && batch; i++)
        if (batch[i] && k->dims[i] != 1)
            text = plus(s, text, step_text(s, names[i], k->dims[i], batch[i] * rows * columns));
    text = plus(s, text, step_text(s, row, rows, row_step));
    text = plus(s, text, step_text(s, column, columns, column_step));
    return text ? text : "0";
}

static void print_product(CSource *s, const Product *p, const char *made)
{
    static const char *const names[] = { "b", "d", "e", "f" };
    const Stack *k = &p->s;
    CAxis y[MAX_RANK];
    for (int i = 0; i < k->rank; i++) {
        c_loop(s, names[i], k->dims[i]);
        y[i] = (CAxis){ names[i], k->dims[i] };
    }
    c_loop(s, "r", k->m);
    c_loop(s, "c", k->n);
    y[k->rank] = (CAxis){ "r", k->m };
    y[k->rank + 1] = (CAxis){ "c", k->n };
    const int depth = s->depth;
    c_line(s, "int32_t sum = %s;", p->bias);
    c_loop(s, "k", k->k);
    const char *a = factor_index(s, k->a_step, k, "r", k->m, k->a_row, "k", k->k, k->a_col);
    const char *b = factor_index(s, p->stored ? NULL : k->b_step, k, "k", k->k, k->b_row, "c", k->n, k->b_col);
    c_line(s, "sum += %s * %s;", c_centred(s, arena_printf(s->arena, "x[%s]", a), p->sums.folded ? 0 : p->za),
           c_centred(s, c_weight(s, &p->weight, b), p->zb));
    c_close_to(s, depth);
    c_line(s, "y[%s] = %s;", c_index(s, k->rank + 2, y), made);
    c_close_to(s, 0);
}

/* The tables of a stored factor; false after a complaint. */
static Status store_factor(CSource *s, const CProduct *p, Product *k, const char *name)
{
    const Tensor *b = c_constant(s, p->w);
    const int64_t step = k->s.b_col, count = tensor_elements(b);
    if (count != k->s.k * k->s.n)
        return c_refuse(p->n, "the stored factor is a stack of matrices", NULL);
    const int64_t *w = centred_weights(s, b, c_constant(s, p->w_zero), k->s.n, step);
    k->stored = true;
    if (!finish_biases(&k->sums, count, w, step, p->x->type->dtype, k->za, true, s->arena))
        return c_refuse(p->n, too_large, NULL);
    text_add(&s->code, "\n");
    k->weight = c_weights(s, c_name(s, arena_printf(s->arena, "%s_weight", name)), count, w);
    return OK;
}

/* The other factor is data, too. */
static Status meet_data(CSource *s, const CProduct *p, Product *k)
{
    k->zb = c_integer(s, p->w_zero);
    k->weight = (CWeights){ .name = "w" };
    int64_t most = k->s.k * most_of(p->x->type->dtype, k->za) * most_of(p->w->type->dtype, k->zb);
    for (int64_t c = 0; c < k->sums.channels; c++)
        if (most + llabs(k->sums.bias[c]) > INT32_MAX)
            return c_refuse(p->n, too_large, NULL);
    return OK;
}

static bool is_single(CSource *s, const Node *n)
{
    return !n || tensor_elements(c_constant(s, n)) == 1;
}

Status c_print_multiplied(CSource *s, const CProduct *p, bool ta, bool tb)
{
    static const char *const stacks[] = { "b", "d", "e", "f" };
    Product k = { .s = stack_of_products(p->x->type, p->w->type, p->y, ta, tb) };
    const char *indices[MAX_RANK] = { NULL };
    const char *made = NULL;
    int n = 0;
    if (!is_single(s, p->x_zero) || k.s.rank > (int)COUNT(stacks) || c_constant(s, p->x))
        return c_refuse(p->n, "its data have scales of rows, or scales that are computed",
                        "--quant with data of one scale: a=uint8:asym");
    if (!c_constant(s, p->w) && !is_single(s, p->w_zero))
        return c_refuse(p->n, "codes of data have more than one scale", NULL);
    for (; n < k.s.rank; n++)
        indices[n] = stacks[n];
    if (p->x->type->rank > 1)
        indices[n++] = "r";
    if (p->w->type->rank > 1)
        indices[n++] = "c";
    const char *name = c_name(s, c_text_of(s, p->n));
    k.za = c_integer(s, p->x_zero);
    k.sums = (Sums){ .channels = k.s.n, .bias = biases_of(s, p->bias, k.s.n) };
    TRY(c_constant(s, p->w) ? store_factor(s, p, &k, name) : meet_data(s, p, &k));
    k.bias = c_numbers(s, name, "bias", k.s.n, k.sums.bias, "c");
    TRY(p->finish(s, p, name, indices, k.s.n, &made));
    const Node *ins[] = { p->x, p->w }, *args[] = { p->x, k.stored ? p->n : p->w, p->n };
    c_function(s, name, p->n, k.stored ? 1 : 2, ins,
               arena_printf(s->arena, "%" PRId64 " x %" PRId64 " by %" PRId64 " x %" PRId64 "%s", k.s.m, k.s.k, k.s.k,
                            k.s.n, c_kept(p->y) == I32 ? ", the sums themselves" : ""));
    print_product(s, &k, made);
    c_call(s, name, k.stored ? 2 : 3, args);
    return OK;
}

Status c_print_matmul(CSource *s, const Node *n)
{
    const QmatmulAttr *at = n->attr;
    CProduct p = product_of(n);
    p.finish = in(n, QMATMUL_Y_SCALE) ? as_codes : as_sums;
    p.user = &at->codes;
    if (!rest_is_known(s, n) || !is_single(s, in(n, QMATMUL_A_SCALE)))
        return c_refuse(n, "its data have scales of rows, or scales that are computed",
                        "--quant with data of one scale: a=uint8:asym");
    if (!c_constant(s, p.w) && !is_single(s, in(n, QMATMUL_B_SCALE)))
        return c_refuse(n, "codes of data have more than one scale", NULL);
    if (p.bias && p.bias->type->dtype != I32)
        return c_refuse(n, "its bias is of floats", "--quant w8a8, whose biases are codes");
    return c_print_multiplied(s, &p, at->transpose_a, at->transpose_b);
}
