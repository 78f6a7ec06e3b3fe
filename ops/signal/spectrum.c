#include "ops/signal/spectrum.h"

#include "ops/signal/unit_circle.h"

/* An f32 spectrum is summed as pairs of f32, value and rounding error: otherwise bins in which terms cancel would
 * hold nothing but rounding errors. */
static void tables_f32(Eval *e, Spectrum *t)
{
    Q_Pair *c = t->c = eval_scratch(e, (size_t)t->n, sizeof *c), *s = t->s = eval_scratch(e, (size_t)t->n, sizeof *s);
    for (int64_t j = 0; j < t->n; j++) {
        const UnitRoot turn = unit_root(j, t->n);
        const f64 sine = t->inverse ? turn.s : -turn.s;
        c[j].hi = (f32)turn.c;
        c[j].lo = (f32)(turn.c - (f64)c[j].hi);
        s[j].hi = (f32)sine;
        s[j].lo = (f32)(sine - (f64)s[j].hi);
    }
}

static void tables_f64(Eval *e, Spectrum *t)
{
    f64 *c = t->c = eval_scratch(e, (size_t)t->n, sizeof *c), *s = t->s = eval_scratch(e, (size_t)t->n, sizeof *s);
    for (int64_t j = 0; j < t->n; j++) {
        const UnitRoot turn = unit_root(j, t->n);
        c[j] = turn.c;
        s[j] = t->inverse ? turn.s : -turn.s;
    }
}

Spectrum spectrum_open(Eval *e, int64_t n, int64_t bins, bool inverse, bool real)
{
    Spectrum t = { .n = n, .bins = bins, .inverse = inverse, .real = real };
    (eval_is_f64(e) ? tables_f64 : tables_f32)(e, &t);
    return t;
}

/* sum + x w: the error of the product by fma, that of the sum by Knuth's two differences. */
static inline Q_Pair more_f32(Q_Pair sum, f32 x, Q_Pair w)
{
    const f32 p = x * w.hi, p_lo = fma_f32(x, w.lo, fma_f32(x, w.hi, -p));
    const f32 hi = sum.hi + p, seen = hi - sum.hi;
    const Q_Pair more = { hi, sum.lo + (((sum.hi - (hi - seen)) + (p - seen)) + p_lo) };
    return more;
}

static inline f64 more_f64(f64 sum, f64 x, f64 w)
{
    return fma_f64(x, w, sum);
}

/* Infinities and NaN leave nothing sensible in the lower half. */
static inline f32 total_f32(Q_Pair sum)
{
    return sum.lo - sum.lo == 0 ? sum.hi + sum.lo : sum.hi;
}

static inline f64 total_f64(f64 sum)
{
    return sum;
}

#define ROW(T, SUM, ZERO)                                                                                              \
    void spectrum_row_##T(const Spectrum *t, const T *x, T *y, int64_t step)                                           \
    {                                                                                                                  \
        const SUM *c = t->c, *s = t->s;                                                                                \
        for (int64_t k = 0; k < t->bins; k++) {                                                                        \
            SUM re = ZERO, im = ZERO;                                                                                  \
            for (int64_t i = 0, at = 0; i < t->n; i++) {                                                               \
                re = more_##T(more_##T(re, x[2 * i], c[at]), -x[2 * i + 1], s[at]);                                    \
                im = more_##T(more_##T(im, x[2 * i], s[at]), x[2 * i + 1], c[at]);                                     \
                at = at + k < t->n ? at + k : at + k - t->n;                                                           \
            }                                                                                                          \
            y[k * step] = t->inverse ? total_##T(re) / (T)t->n : total_##T(re);                                        \
            if (!t->real)                                                                                              \
                y[k * step + 1] = t->inverse ? total_##T(im) / (T)t->n : total_##T(im);                                \
        }                                                                                                              \
    }
#define ZERO_PAIR                                                                                                      \
    {                                                                                                                  \
        0, 0                                                                                                           \
    }
ROW(f32, Q_Pair, ZERO_PAIR)
ROW(f64, f64, 0)
#undef ZERO_PAIR
#undef ROW

bool infer_number(const Infer *q, int i, int64_t *v)
{
    const Tensor *t = infer_has(q, i) ? infer_known(q, i) : NULL;
    if (!t || t->type->kind != TYPE_TENSOR || !dtype_is_integer(t->type->dtype) || tensor_elements(t) != 1)
        return false;
    *v = tensor_get_i64(t, 0);
    return true;
}

bool infer_integer(Infer *q, int i)
{
    if (!infer_has(q, i))
        return true;
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (t->dtype != I32 && t->dtype != I64) {
        infer_fail(q, "operand %d must be i32 or i64, not %s", i, dtype_name(t->dtype));
        return false;
    }
    const int64_t n = type_elements(t);
    if (n >= 0 && n != 1)
        infer_fail(q, "operand %d must be one number, got %s", i, type_text(q->scratch, t));
    return n < 0 || n == 1;
}
