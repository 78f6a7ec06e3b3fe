#include "ops/quant/integer.h"

enum { BLOCK = 512 };

const char *const codes_saved[] = { "quotient", NULL };
const char *const codes_factors[] = { "f32", "q31", NULL };

CodeRange code_range_of(const CodesAttr *at, DType code, f32 z)
{
    double lo, hi;
    code_limits(code, at->least, at->largest, &lo, &hi);
    return (CodeRange){ .z = z, .lo = at->relu && (f32)lo < z ? z : (f32)lo, .hi = (f32)hi };
}

CodesOut codes_out(Eval *e, const CodesAttr *at, int zero)
{
    CodesOut o = { .codes = eval_out(e, 0), .kernels = e->kernels, .fixed = at->factor == FACTOR_Q31 };
    const f32 z = (f32)eval_float(e, zero, 0);
    if (e->n_out > 1)
        o.quotient = eval_out_f32(e, 1);
    o.floats = dtype_is_float(o.codes->type->dtype);
    o.range = o.floats ? (CodeRange){ .z = z } : code_range_of(at, o.codes->type->dtype, z);
    return o;
}

/* f8 codes, which are numbers. */
static void number_codes(const CodesOut *o, int64_t n, const f32 *v, f32 *codes)
{
    for (int64_t i = 0; i < n; i++)
        codes[i] = o->range.z == 0 ? v[i] : v[i] + o->range.z;
}

u8 *codes_bytes(const CodesOut *o, int64_t first)
{
    const DType d = o->codes->type->dtype;
    return !o->fixed && !o->quotient && (d == U8 || d == I8) ? (u8 *)o->codes->data + first : NULL;
}

u8 *codes_bytes_beside(const CodesOut *o, int64_t first, f32 **quotients)
{
    CodesOut alone = *o;
    alone.quotient = NULL;
    *quotients = o->quotient ? o->quotient + first : NULL;
    return codes_bytes(&alone, first);
}

void codes_put(const CodesOut *o, int64_t first, int64_t n, const f32 *v)
{
    const CodeRange *r = &o->range;
    f32 codes[BLOCK];
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        if (o->floats)
            number_codes(o, k, v + at, codes);
        else
            kernels_codes(o->kernels)->round((size_t)k, v + at, r->z, r->lo, r->hi, codes);
        for (int64_t i = 0; o->quotient && i < k; i++)
            o->quotient[first + at + i] = v[at + i];
        store_codes(o->codes, first + at, codes, k, true);
    }
}

/* u - z may be rounded onto a tie, or its tie may go the other way: then the number beside it that rounds as u did. */
static f32 quotient_of(f32 u, f32 z)
{
    const f32 v = u - z, code = rint_f32(u) - z;
    if (v != v || rint_f32(v) == code)
        return v;
    return half_f32(half_bits32(v) + ((code > v) == (v > 0) ? 1u : -1u));
}

void codes_put_shifted(const CodesOut *o, int64_t first, int64_t n, const f32 *u)
{
    const CodeRange *r = &o->range;
    f32 codes[BLOCK];
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        kernels_codes(o->kernels)->round_shifted((size_t)k, u + at, r->z, r->lo, r->hi, codes);
        for (int64_t i = 0; o->quotient && i < k; i++)
            o->quotient[first + at + i] = quotient_of(u[at + i], o->range.z);
        store_codes(o->codes, first + at, codes, k, true);
    }
}

void codes_put_fixed(const CodesOut *o, int64_t first, int64_t n, const i64 *v, const f32 *quotients)
{
    const CodeRange *r = &o->range;
    const i64 z = (i64)r->z, lo = (i64)r->lo - z, hi = (i64)r->hi - z;
    f32 codes[BLOCK];
    for (int64_t at = 0, k; at < n; at += k) {
        k = n - at < BLOCK ? n - at : BLOCK;
        for (int64_t i = 0; i < k; i++) {
            const i64 u = v[at + i] < lo ? lo : v[at + i] > hi ? hi : v[at + i];
            codes[i] = (f32)(u + z);
        }
        for (int64_t i = 0; o->quotient && i < k; i++)
            o->quotient[first + at + i] = quotients[at + i];
        store_codes(o->codes, first + at, codes, k, true);
    }
}

const i32 *eval_i32(Eval *e, int i)
{
    const int64_t n = eval_elements(e, i);
    const i64 *wide = eval_i64(e, i);
    i32 *v = eval_room(e, (size_t)n, sizeof *v);
    for (int64_t k = 0; k < n; k++)
        v[k] = (i32)wide[k];
    return v;
}

static bool is_f8(DType d)
{
    return d == F8E4M3 || d == F8E4M3FNUZ || d == F8E5M2 || d == F8E5M2FNUZ;
}

bool infer_codes(Infer *q, int i, CodeKinds kinds)
{
    static const char *const more[] = { "", ", u16 or i16", " or f8" };
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (t->dtype == U8 || t->dtype == I8 || (kinds == CODES_F8 && is_f8(t->dtype)) ||
        (kinds == CODES_16 && (t->dtype == U16 || t->dtype == I16)))
        return true;
    infer_fail(q, "operand %d must hold u8 or i8%s, not %s", i, more[kinds], dtype_name(t->dtype));
    return false;
}

bool infer_single(Infer *q, int i, int like)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    const int64_t n = type_elements(t);
    if (n >= 0 && n != 1) {
        infer_fail(q, "operand %d must be one number, not %s", i, type_text(q->scratch, t));
        return false;
    }
    if (like >= 0 ? t->dtype != q->in[like]->dtype : !dtype_is_float(t->dtype)) {
        infer_fail(q, "operand %d cannot be %s", i, dtype_name(t->dtype));
        return false;
    }
    return true;
}

bool infer_zero_type(Infer *q, int codes, int zero)
{
    const Type *x = q->in[codes], *z = infer_tensor(q, zero);
    if (!z)
        return false;
    if (z->dtype != x->dtype)
        infer_fail(q, "has codes of %s but zero points of %s", dtype_name(x->dtype), dtype_name(z->dtype));
    return z->dtype == x->dtype;
}

const Type *infer_codes_out(Infer *q, const CodesAttr *at, int zero, const Type *y)
{
    if (!y || !infer_code_limits(q, q->in[zero]->dtype, at->least, at->largest))
        return NULL;
    return infer_results(q, 2, (const Type *const[]){ y, type_with_dtype(q->types, y, F32) });
}

/* Now and then fewer bits than the type has, as of 4 bits. */
CodesAttr sample_codes_attr(Rng *rng, DType code)
{
    CodesAttr at = { .gain = 1, .relu = rng_below(rng, 3) == 0, .mask = (int)rng_below(rng, 3) };
    const bool sign = dtype_class(code) == CLASS_INT;
    if (rng_below(rng, 2))
        at.least = sign ? -8 : 0, at.largest = sign ? 7 : 15;
    at.learned = rng_below(rng, 4) == 0;
    at.gain = at.learned ? 0.25f : 1;
    at.ends = at.learned && rng_below(rng, 2);
    at.learned_zero = at.learned && rng_below(rng, 2);
    at.factor = dtype_bits(code) == 8 && rng_below(rng, 3) == 0 ? FACTOR_Q31 : FACTOR_F32;
    return at;
}

Node *sample_codes(Build *b, Rng *rng, DType code, int rank, const int64_t *dims)
{
    return sample_tensor(b, rng, code, rank, dims, dtype_class(code) == CLASS_INT ? -9 : 0, 9);
}

Node *sample_zero_point(Build *b, Rng *rng, DType code)
{
    return sample_tensor(b, rng, code, 0, NULL, dtype_class(code) == CLASS_INT ? -3 : 0, 5);
}

Node *sample_scale(Build *b, Rng *rng)
{
    return sample_tensor(b, rng, F32, 0, NULL, 0.125, 0.5);
}
