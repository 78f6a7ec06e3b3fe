/* Which scale belongs to which element: per tensor, per axis, per block along an axis. */
#include "ops/quant/quantize.h"

#include "base/half.h"
#include "ops/quant/float_grid.h"

/* One scale, whatever the rank it is written with. */
static bool is_single(const Type *t)
{
    return t->rank >= 0 && type_elements(t) == 1;
}

static bool dims_agree(int64_t a, int64_t b)
{
    return a == b || a < 0 || b < 0;
}

static bool check_axis(Infer *q, const Type *x, const Type *scale, int64_t axis)
{
    int at;
    if (x->rank < 0)
        return true;
    if (!infer_axis(q, axis, x->rank, &at))
        return false;
    if (!dims_agree(x->dims[at], scale->dims[0]) && scale->dims[0] != 1) {
        infer_fail(q, "has %" PRId64 " scales for an axis of %" PRId64, scale->dims[0], x->dims[at]);
        return false;
    }
    return true;
}

static bool check_blocks(Infer *q, const Type *x, const Type *scale, int64_t axis, int64_t block)
{
    int at;
    if (x->rank < 0)
        return true;
    if (!infer_axis(q, axis, x->rank, &at))
        return false;
    if (scale->rank != x->rank) {
        infer_fail(q, "has scales of rank %d for blocks of a tensor of rank %d", scale->rank, x->rank);
        return false;
    }
    for (int i = 0; i < x->rank; i++) {
        const int64_t n = x->dims[i];
        const int64_t want = i == at && n >= 0 ? n / block + (n % block != 0) : n;
        if (!dims_agree(want, scale->dims[i])) {
            infer_fail(q, "wants %" PRId64 " scales along axis %d, got %" PRId64, want, i, scale->dims[i]);
            return false;
        }
    }
    return true;
}

bool infer_scale_layout(Infer *q, const Type *x, const Type *scale, const Type *zero, int64_t axis, int64_t block)
{
    if (block < 0) {
        infer_fail(q, "block_size must not be negative, got %" PRId64, block);
        return false;
    }
    if (zero && !(is_single(zero) && is_single(scale)) &&
        !type_agrees(type_with_dtype(q->types, zero, scale->dtype), scale)) {
        infer_fail(q, "has scales %s but zero points %s", type_text(q->scratch, scale), type_text(q->scratch, zero));
        return false;
    }
    if (scale->rank < 0 || is_single(scale))
        return true;
    if (block > 0)
        return check_blocks(q, x, scale, axis, block);
    if (scale->rank == 1)
        return check_axis(q, x, scale, axis);
    infer_fail(q, "has scales of rank %d without block_size", scale->rank);
    return false;
}

ScaleLayout scale_layout_of(const Type *x, const Type *scale, int64_t axis, int64_t block)
{
    ScaleLayout g = { .extent = 1, .inner = 1 };
    if (is_single(scale))
        return g;
    const int at = (int)(axis < 0 ? axis + x->rank : axis);
    g.extent = x->dims[at];
    for (int i = at + 1; i < x->rank; i++)
        g.inner *= x->dims[i];
    g.per_axis = block == 0;
    g.block = block ? block : 1;
    g.blocks = g.extent / g.block + (g.extent % g.block != 0);
    return g;
}

void scale_layout_indices(const ScaleLayout *g, int64_t first, int64_t n, int64_t *index)
{
    if (!g->block) {
        for (int64_t k = 0; k < n; k++)
            index[k] = 0;
        return;
    }
    int64_t i = first % g->inner, a = first / g->inner % g->extent, o = first / g->inner / g->extent;
    for (int64_t k = 0; k < n; k++) {
        index[k] = g->per_axis ? a : (o * g->blocks + a / g->block) * g->inner + i;
        if (++i < g->inner)
            continue;
        i = 0;
        if (++a < g->extent)
            continue;
        a = 0;
        o++;
    }
}

int64_t scale_layout_run(const ScaleLayout *g, int64_t first, int64_t n, int64_t *index)
{
    scale_layout_indices(g, first, 1, index);
    if (!g->block)
        return n;
    const int64_t a = first / g->inner % g->extent, last = (a / g->block + 1) * g->block;
    const int64_t end = last < g->extent ? last : g->extent;
    const int64_t run = g->per_axis || g->inner == 1 ? (end - a) * g->inner - first % g->inner : 1;
    return run < n ? run : n;
}

int64_t scale_layout_line(const ScaleLayout *g, int64_t first, int64_t n, int64_t *index, bool *each)
{
    const bool along = g->block && g->per_axis && g->inner == 1, across = g->block && !g->per_axis && g->inner > 1;
    *each = along || across;
    if (!*each)
        return scale_layout_run(g, first, n, index);
    scale_layout_indices(g, first, 1, index);
    const int64_t line = along ? g->extent : g->inner, rest = line - first % line;
    return rest < n ? rest : n;
}

bool scale_layout_shares(const ScaleLayout *g)
{
    enum { WORTH = 16 };
    return !g->block || (g->per_axis ? g->inner : g->inner == 1 ? g->block : 1) >= WORTH;
}

bool dtype_is_code(DType d)
{
    switch (d) {
    case I2:
    case U2:
    case I4:
    case U4:
    case I8:
    case U8:
    case I16:
    case U16:
    case F4E2M1:
    case F6E2M3:
    case F6E3M2:
    case F8E4M3:
    case F8E4M3FNUZ:
    case F8E5M2:
    case F8E5M2FNUZ:
        return true;
    default:
        return false;
    }
}

void code_range(DType dtype, double *lo, double *hi)
{
    const int bits = dtype_bits(dtype);
    const bool sign = dtype_class(dtype) == CLASS_INT;
    *lo = sign ? -(double)((int64_t)1 << (bits - 1)) : 0;
    *hi = (double)(((int64_t)1 << (sign ? bits - 1 : bits)) - 1);
}

typedef uint8_t ToF8(float x, bool saturate);

void store_codes(Tensor *y, int64_t first, const f32 *value, int64_t n, bool saturate)
{
    ToF8 *f8 = NULL;
    uint8_t *restrict to = (uint8_t *)y->data + first;
    switch (y->type->dtype) {
    case F8E4M3:
        f8 = f8e4m3fn_from_f32;
        break;
    case F8E4M3FNUZ:
        f8 = f8e4m3fnuz_from_f32;
        break;
    case F8E5M2:
        f8 = f8e5m2_from_f32;
        break;
    case F8E5M2FNUZ:
        f8 = f8e5m2fnuz_from_f32;
        break;
    default:
        store_f32(y, first, value, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = f8(value[i], saturate);
}

bool infer_code_limits(Infer *q, DType code, int64_t least, int64_t largest)
{
    double lo, hi;
    if (!least && !largest)
        return true;
    code_range(code, &lo, &hi);
    if (dtype_is_float(code))
        infer_fail(q, "least and largest are of integer codes, not of %s", dtype_name(code));
    else if (least >= largest)
        infer_fail(q, "least code %" PRId64 " is not below the largest, %" PRId64, least, largest);
    else if ((double)least < lo || (double)largest > hi)
        infer_fail(q, "codes %" PRId64 " to %" PRId64 " are not all %s", least, largest, dtype_name(code));
    else
        return true;
    return false;
}

void code_limits(DType code, int64_t least, int64_t largest, double *lo, double *hi)
{
    if (dtype_is_float(code)) {
        *hi = (double)float_codes_most(code);
        *lo = -*hi;
        return;
    }
    code_range(code, lo, hi);
    if (least || largest) {
        *lo = (double)least;
        *hi = (double)largest;
    }
}
