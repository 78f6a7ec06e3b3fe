#include "ops/quant/matmul_codes.h"

#include <string.h>

/* The batch part of an operand's shape. */
static const Type *batch_type(Infer *q, const Type *t)
{
    return type_tensor(q->types, t->dtype, t->rank > 2 ? t->rank - 2 : 0, t->dims);
}

/* The dimension of a factor that is rows of the left one, columns of the right one. */
static int lane_axis(const Type *t, const Factors *f, bool left)
{
    return t->rank - (left == (left ? f->ta : f->tb) ? 1 : 2);
}

/* Extents of a factor: of its rows or columns that are those of the result, and of what is summed over. */
static int64_t lanes_of(const Type *t, const Factors *f, bool left)
{
    return t->rank > 1 ? t->dims[lane_axis(t, f, left)] : 1;
}

static int64_t inner_of(const Type *t, const Factors *f, bool left)
{
    return t->rank > 1 ? t->dims[2 * t->rank - 3 - lane_axis(t, f, left)] : t->dims[0];
}

const Type *infer_product(Infer *q, const Factors *f, DType dtype)
{
    const Type *a = q->in[f->a], *b = q->in[f->b];
    if (a->rank < 0 || b->rank < 0)
        return type_unranked(q->types, dtype);
    if (a->rank == 0 || b->rank == 0)
        return infer_fail(q, "multiplies matrices, got a scalar");
    if ((a->rank == 1 && f->ta) || (b->rank == 1 && f->tb))
        return infer_fail(q, "a vector cannot be transposed");
    const int64_t ka = inner_of(a, f, true), kb = inner_of(b, f, false);
    if (ka >= 0 && kb >= 0 && ka != kb)
        return infer_fail(q, "inner dimensions differ: %" PRId64 " and %" PRId64, ka, kb);
    int rank = 0;
    int64_t dims[MAX_RANK + 2];
    if (!broadcast_dims(&rank, dims, batch_type(q, a)) || !broadcast_dims(&rank, dims, batch_type(q, b)))
        return infer_fail(q, "batches of %s and %s do not broadcast", type_text(q->scratch, a),
                          type_text(q->scratch, b));
    if (a->rank > 1)
        dims[rank++] = lanes_of(a, f, true);
    if (b->rank > 1)
        dims[rank++] = lanes_of(b, f, false);
    return type_tensor(q->types, dtype, rank, dims);
}

bool infer_lanes(Infer *q, int i, const Factors *f, bool left)
{
    const Type *t = infer_tensor(q, i), *of = q->in[left ? f->a : f->b];
    if (!t)
        return false;
    if (t->rank < 0 || of->rank < 0 || type_elements(t) == 1)
        return true;
    const int64_t lanes = lanes_of(of, f, left);
    bool fits = t->rank == 1 ? t->dims[0] < 0 || lanes < 0 || t->dims[0] == lanes : t->rank == of->rank;
    for (int d = 0; fits && t->rank > 1 && d < t->rank; d++) {
        const bool unit = d >= t->rank - 2 && d != lane_axis(of, f, left);
        const int64_t want = unit ? 1 : of->dims[d];
        fits = t->dims[d] < 0 || want < 0 || t->dims[d] == want;
    }
    if (!fits)
        infer_fail(q, "operand %d, %s, is neither one number nor one a %s of %s", i, type_text(q->scratch, t),
                   left ? "row" : "column", type_text(q->scratch, of));
    return fits;
}

int64_t lane_at(const Tensor *t, int64_t matrix, int64_t lane, int64_t lanes)
{
    return tensor_elements(t) == 1 ? 0 : t->type->rank == 1 ? lane : matrix * lanes + lane;
}

const f32 *centred_factor(Eval *e, const Factors *f, bool left)
{
    const Type *t = e->in[left ? f->a : f->b]->type;
    const bool vector = t->rank == 1;
    const Lanes lanes = { .width = t->dims[t->rank - 1],
                          .height = vector ? 1 : t->dims[t->rank - 2],
                          .across = !vector && lane_axis(t, f, left) == t->rank - 1 };
    return codes_centred(e, left ? f->a : f->b, left ? f->a_zero : f->b_zero, &lanes);
}

void multiply_factors(Eval *e, const Factors *f, const Stack *s, const SumTaker *to)
{
    const Codes a = codes_of(e, f->a, f->a_zero), b = codes_of(e, f->b, f->b_zero);
    codes_multiply(e, s, &a, &b, to);
}

Rescaled rescaled_open(Eval *e, const Stack *s)
{
    Rescaled r = { .kernels = e->kernels, .s = s, .ta = e->in[QMATMUL_A_SCALE], .tb = e->in[QMATMUL_B_SCALE], .sy = 1 };
    r.sa = eval_f32(e, QMATMUL_A_SCALE);
    r.sb = eval_f32(e, QMATMUL_B_SCALE);
    if (eval_has(e, QMATMUL_Y_SCALE))
        r.sy = (f32)eval_float(e, QMATMUL_Y_SCALE, 0);
    if (tensor_elements(r.ta) != 1)
        return r;
    const int64_t n = tensor_elements(r.tb);
    f32 *factors = eval_room(e, (size_t)n, sizeof *factors);
    for (int64_t i = 0; i < n; i++)
        factors[i] = requantize_scale(r.sa[0], r.sb[i], r.sy);
    r.factors = factors;
    return r;
}

f32 rescaled_factor(const Rescaled *r, int64_t ma, int64_t mb, int64_t row, int64_t column)
{
    const int64_t b = lane_at(r->tb, mb, column, r->s->n);
    return r->factors ? r->factors[b] : requantize_scale(r->sa[lane_at(r->ta, ma, row, r->s->m)], r->sb[b], r->sy);
}

/* The factors and biases of n columns beside each other, where rows share their scale.  `one`: the first of each belongs to all
 * of them. */
typedef struct ColumnScales {
    bool one;
    const f32 *factors;
    const i32 *biases;
} ColumnScales;

typedef struct OwnScales {
    f32 factors[SUMS_BLOCK];
    i32 biases[SUMS_BLOCK];
} OwnScales;

/* False: rows have scales of their own, or there is no room and one of the two would have to be repeated. */
static bool column_scales(const Rescaled *r, int64_t column, int64_t n, OwnScales *room, ColumnScales *c)
{
    static const i32 none[SUMS_BLOCK];
    const bool one = tensor_elements(r->tb) == 1, each = r->bias && r->biases != 1;
    const bool repeats_factor = one && each, repeats_bias = !one && r->bias && !each;
    if (!r->factors || !(one || r->tb->type->rank == 1) || (!room && (repeats_factor || repeats_bias)))
        return false;
    c->one = one && !each;
    c->factors = repeats_factor ? room->factors : r->factors + (one ? 0 : column);
    c->biases = repeats_bias ? room->biases : !r->bias ? none : r->bias + (each ? column : 0);
    for (int64_t i = 0; repeats_factor && i < n; i++)
        room->factors[i] = r->factors[0];
    for (int64_t i = 0; repeats_bias && i < n; i++)
        room->biases[i] = r->bias[0];
    return true;
}

static void rescale_columns(const CodeLoops *l, const ColumnScales *c, int64_t n, const i32 *sums, f32 *v)
{
    if (c->one)
        l->rescale((size_t)n, sums, (u32)c->biases[0], c->factors[0], v);
    else
        l->rescale_each((size_t)n, sums, c->biases, c->factors, v);
}

static void requantize_columns(const Rescaled *r, const ColumnScales *c, int64_t n, const i32 *sums, u8 *to)
{
    const CodeLoops *l = kernels_codes(r->kernels);
    if (c->one)
        l->requantize((size_t)n, sums, (u32)c->biases[0], c->factors[0], &r->out.range, to);
    else
        l->requantize_each((size_t)n, sums, c->biases, c->factors, &r->out.range, to);
}

/* What is added to numbers of columns that have their rescaled sums. */
static void add_addend(const Rescaled *r, int64_t column, int64_t n, f32 *v)
{
    const double none[2] = { 0 };
    if (!r->addend)
        return;
    if (r->biases == 1)
        kernels_row_fixed(r->kernels, ROW_add, ARITH_F32, 1)((size_t)n, v, v, r->addend, NULL, none);
    else
        kernels_row(r->kernels, ROW_add, ARITH_F32)((size_t)n, v, v, r->addend + column, NULL, none);
}

/* Where columns have one factor and one bias, or one each: the sums of a row without tables of them, which would be a large frame
 * to walk over for every row.  False: nothing was done. */
static bool take_plain(const Rescaled *r, int64_t first, int64_t n, const i32 *sums)
{
    const int64_t column = first % r->s->n;
    ColumnScales scales;
    f32 *quotients = NULL;
    if (!r->numbers && !codes_bytes_beside(&r->out, first, &quotients))
        return false;
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < SUMS_BLOCK ? n - at : SUMS_BLOCK;
        if (!column_scales(r, column + at, k, NULL, &scales))
            return false;
        if (r->numbers) {
            rescale_columns(kernels_codes(r->kernels), &scales, k, sums + at, r->numbers + first + at);
            add_addend(r, column + at, k, r->numbers + first + at);
        } else {
            u8 *bytes = codes_bytes_beside(&r->out, first + at, &quotients);
            requantize_columns(r, &scales, k, sums + at, bytes);
            if (quotients)
                rescale_columns(kernels_codes(r->kernels), &scales, k, sums + at, quotients);
        }
    }
    return true;
}

/* The factor of a column and its sum, with what is added to it. */
static i64 fixed_sum(const Rescaled *r, f32 factor, i32 sum, int64_t column)
{
    const u32 bias = r->bias ? (u32)r->bias[r->biases == 1 ? 0 : column] : 0;
    return fixed_times((i32)((u32)sum + bias), fixed_factor(factor));
}

static __attribute__((noinline)) void take_columns(const Rescaled *r, int64_t first, int64_t n, const i32 *sums)
{
    const int64_t item = first / r->s->n, column = first % r->s->n, row = item % r->s->m;
    int64_t ma, mb;
    f32 quotients[SUMS_BLOCK];
    stack_batch(r->s, item / r->s->m, &ma, &mb);
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < SUMS_BLOCK ? n - at : SUMS_BLOCK;
        ColumnScales scales;
        OwnScales room;
        const bool together = column_scales(r, column + at, k, &room, &scales);
        u8 *bytes = together && !r->numbers ? codes_bytes(&r->out, first + at) : NULL;
        if (bytes) {
            requantize_columns(r, &scales, k, sums + at, bytes);
            continue;
        }
        f32 *v = r->numbers ? r->numbers + first + at : quotients;
        if (together)
            rescale_columns(kernels_codes(r->kernels), &scales, k, sums + at, v);
        for (int64_t i = 0; i < k && !together; i++) {
            const int64_t j = column + at + i;
            const u32 bias = r->bias ? (u32)r->bias[r->biases == 1 ? 0 : j] : 0;
            v[i] = (f32)(i32)((u32)sums[at + i] + bias) * rescaled_factor(r, ma, mb, row, j);
        }
        if (r->out.fixed) {
            i64 fixed[SUMS_BLOCK];
            for (int64_t i = 0; i < k; i++)
                fixed[i] =
                    fixed_sum(r, rescaled_factor(r, ma, mb, row, column + at + i), sums[at + i], column + at + i);
            codes_put_fixed(&r->out, first + at, k, fixed, v);
            continue;
        }
        if (r->numbers)
            add_addend(r, column + at, k, v);
        else
            codes_put(&r->out, first + at, k, v);
    }
}

void rescaled_take(const void *rescaled, int64_t first, int64_t n, const i32 *sums)
{
    if (!take_plain(rescaled, first, n, sums))
        take_columns(rescaled, first, n, sums);
}

DrawnProduct draw_product(Rng *rng, bool ta, bool tb)
{
    DrawnProduct d = { .ra = 1 + (int)rng_below(rng, 4), .rb = 1 + (int)rng_below(rng, 4) };
    int64_t inner[3];
    d.ra = ta && d.ra < 2 ? 2 : d.ra;
    d.rb = tb && d.rb < 2 ? 2 : d.rb;
    sample_dims(rng, d.ra, 4, d.a);
    sample_dims(rng, d.rb, 4, d.b);
    sample_dims(rng, 3, 6, inner);
    for (int i = 3; i <= (d.ra < d.rb ? d.ra : d.rb); i++)
        if (rng_below(rng, 2))
            d.b[d.rb - i] = 1;
        else
            d.a[d.ra - i] = d.b[d.rb - i];
    d.a[d.ra - (ta ? 2 : 1)] = inner[0];
    d.b[d.rb - (d.rb > 1 && !tb ? 2 : 1)] = inner[0];
    return d;
}

Node *sample_lanes(Build *b, Rng *rng, DType dtype, const DrawnProduct *d, const Factors *f, bool left, bool zero)
{
    int64_t dims[MAX_RANK];
    const int rank = left ? d->ra : d->rb, kind = (int)rng_below(rng, rank > 1 ? 4 : 2);
    const bool sign = dtype_class(dtype) == CLASS_INT, floats = dtype_is_float(dtype);
    const double lo = zero ? (sign ? -3 : 0) : 0.125, hi = zero ? (floats ? 0 : 3) : 0.5;
    const int64_t *of = left ? d->a : d->b;
    const int axis = rank - (left == (left ? f->ta : f->tb) ? 1 : 2);
    for (int i = 0; i < rank; i++)
        dims[i] = i >= rank - 2 && i != axis ? 1 : of[i];
    if (kind == 3)
        return sample_tensor(b, rng, dtype, rank, dims, lo, hi);
    dims[0] = kind == 2 ? of[axis] : 1;
    return sample_tensor(b, rng, dtype, kind ? 1 : 0, dims, lo, hi);
}
