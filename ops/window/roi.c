/* max_roi_pool and roi_align: a fixed grid of numbers from each region of interest. */
#include "ops/card/signature.h"
#include "ops/contract/contract.h"
#include "ops/window/roi.h"

const AttrSpec max_roi_pool_attrs[] = {
    ATTR_REQUIRED(RoiPoolAttr, pooled_shape, INTS),
    ATTR(RoiPoolAttr, spatial_scale, FLOAT, 1),
    ATTR_LAST,
};

static const char *const roi_frames[] = { "half_pixel", "output_half_pixel", NULL };
static const char *const roi_modes[] = { "avg", "max", NULL };

const AttrSpec roi_align_attrs[] = {
    ATTR_CHOICE(RoiAlignAttr, coordinate_transformation_mode, roi_frames, ROI_HALF_PIXEL),
    ATTR_CHOICE(RoiAlignAttr, mode, roi_modes, ROI_AVG),
    ATTR(RoiAlignAttr, output_height, INT, 1),
    ATTR(RoiAlignAttr, output_width, INT, 1),
    ATTR(RoiAlignAttr, sampling_ratio, INT, 0),
    ATTR(RoiAlignAttr, spatial_scale, FLOAT, 1),
    ATTR_LAST,
};

/* [N, C, H, W] and [rois, columns] give [rois, C, height, width]. */
/* The results' extents are attributes; what else there is, the signatures say. */
static const Type *infer_rois(Infer *q, int64_t height, int64_t width)
{
    Bound k = signature_open();
    if (height < 1 || width < 1 || height > q->ir->limits.dim || width > q->ir->limits.dim)
        return infer_fail(q, "gives %" PRId64 " by %" PRId64 " results, wanted is at least 1", height, width);
    signature_set(&k, 'p', height);
    signature_set(&k, 'q', width);
    return signature_match(q, &k) ? signature_results(q, &k) : NULL;
}

const Type *infer_max_roi_pool(Infer *q)
{
    const RoiPoolAttr *at = q->attr;
    if (at->pooled_shape.n != 2)
        return infer_fail(q, "pooled_shape has %d numbers where 2 are needed", at->pooled_shape.n);
    return infer_rois(q, at->pooled_shape.v[0], at->pooled_shape.v[1]);
}

const Type *infer_roi_align(Infer *q)
{
    const RoiAlignAttr *at = q->attr;
    if (at->sampling_ratio < 0)
        return infer_fail(q, "sampling_ratio is %" PRId64 ", wanted is at least 0", at->sampling_ratio);
    return infer_rois(q, at->output_height, at->output_width);
}

/* Conversions out of range have no meaning: what is no number or far away stays at the border. */
#define MAX_ROI(T)                                                                                                     \
    static int64_t bounded_##T(T x, int64_t low, int64_t high)                                                         \
    {                                                                                                                  \
        return !(x > (T)low) ? low : x >= (T)high ? high : (int64_t)x;                                                 \
    }                                                                                                                  \
    RoiBins roi_bins_##T(T from, T to, T scale, int64_t n, int64_t extent)                                             \
    {                                                                                                                  \
        const T a = from * scale, z = to * scale;                                                                      \
        const int64_t start = bounded_##T(a + q_copysign((T)0.5, a), -FAR, FAR);                                       \
        const int64_t end = bounded_##T(z + q_copysign((T)0.5, z), -FAR, FAR);                                         \
        return (RoiBins){ start, end >= start ? end - start + 1 : 1, n, extent };                                      \
    }                                                                                                                  \
    void roi_bin_range_##T(const RoiBins *b, int64_t i, int64_t *range)                                                \
    {                                                                                                                  \
        const T each = (T)b->size / (T)b->n;                                                                           \
        range[0] = bounded_##T(q_floor((T)i * each) + (T)b->start, 0, b->extent);                                      \
        range[1] = bounded_##T(q_ceil((T)(i + 1) * each) + (T)b->start, 0, b->extent);                                 \
    }                                                                                                                  \
    int64_t roi_largest_##T(const T *x, int64_t width, const int64_t *rows, const int64_t *cols)                       \
    {                                                                                                                  \
        int64_t where = -1;                                                                                            \
        for (int64_t i = rows[0]; i < rows[1]; i++)                                                                    \
            for (int64_t p = i * width + cols[0]; p < i * width + cols[1]; p++)                                        \
                if (where < 0 || x[p] > x[where] || x[p] != x[p])                                                      \
                    where = p;                                                                                         \
        return where;                                                                                                  \
    }                                                                                                                  \
    static void max_roi_##T(int64_t channels, const T *x, T *y, const RoiBins *high, const RoiBins *wide)              \
    {                                                                                                                  \
        for (int64_t c = 0; c < channels; c++, x += high->extent * wide->extent)                                       \
            for (int64_t i = 0; i < high->n; i++)                                                                      \
                for (int64_t j = 0; j < wide->n; j++) {                                                                \
                    int64_t rows[2], cols[2];                                                                          \
                    roi_bin_range_##T(high, i, rows);                                                                  \
                    roi_bin_range_##T(wide, j, cols);                                                                  \
                    const int64_t where = roi_largest_##T(x, wide->extent, rows, cols);                                \
                    *y++ = where < 0 ? 0 : x[where];                                                                   \
                }                                                                                                      \
    }                                                                                                                  \
    static Status max_rois_##T(Eval *e, const RoiPoolAttr *at)                                                         \
    {                                                                                                                  \
        const int64_t *dims = e->in[0]->type->dims, *out = e->type->dims;                                              \
        const T *x = eval_##T(e, 0), *roi = eval_##T(e, 1);                                                            \
        T *y = eval_out_##T(e, 0);                                                                                     \
        for (int64_t r = 0; r < out[0]; r++, roi += 5, y += out[1] * out[2] * out[3]) {                                \
            if (!(roi[0] >= 0 && roi[0] < (T)dims[0]))                                                                 \
                return eval_fail(e, "region %" PRId64 " is of image %g, there are %" PRId64, r, (double)roi[0],        \
                                 dims[0]);                                                                             \
            const T scale = (T)at->spatial_scale;                                                                      \
            const RoiBins wide = roi_bins_##T(roi[1], roi[3], scale, out[3], dims[3]);                                 \
            const RoiBins high = roi_bins_##T(roi[2], roi[4], scale, out[2], dims[2]);                                 \
            max_roi_##T(out[1], x + (int64_t)roi[0] * dims[1] * dims[2] * dims[3], y, &high, &wide);                   \
        }                                                                                                              \
        return OK;                                                                                                     \
    }
MAX_ROI(f32)
MAX_ROI(f64)
#undef MAX_ROI

static Status eval_max_roi_pool(Eval *e)
{
    return (e->in[0]->type->dtype == F64 ? max_rois_f64 : max_rois_f32)(e, e->attr);
}

#define ROI_ALIGN(T)                                                                                                   \
    RoiSpan_##T roi_span_##T(const RoiAlignAttr *at, T from, T to, int64_t bins, int64_t extent)                       \
    {                                                                                                                  \
        const T shift = at->coordinate_transformation_mode == ROI_HALF_PIXEL ? (T)0.5 : 0;                             \
        const T start = from * (T)at->spatial_scale - shift, length = to * (T)at->spatial_scale - shift - start;       \
        const T size = shift == 0 && length < 1 ? 1 : length;                                                          \
        RoiSpan_##T s = { .start = start, .bin = size / (T)bins, .points = at->sampling_ratio, .extent = extent };     \
        if (!s.points)                                                                                                 \
            s.points = bounded_##T(q_ceil(s.bin), 0, FAR);                                                             \
        return s;                                                                                                      \
    }                                                                                                                  \
    /* The two elements that point i of a bin lies between, and the share of the second; false outside. */             \
    static bool point_##T(const RoiSpan_##T *s, int64_t bin, int64_t i, int64_t *low, int64_t *high, T *share)         \
    {                                                                                                                  \
        const T p = s->start + (T)bin * s->bin + ((T)i + (T)0.5) * s->bin / (T)s->points;                              \
        if (!(p >= -1 && p <= (T)s->extent))                                                                           \
            return false;                                                                                              \
        const T at = p < 0 ? 0 : p;                                                                                    \
        *low = (int64_t)at;                                                                                            \
        *low = *low < s->extent - 1 ? *low : s->extent - 1;                                                            \
        *high = *low < s->extent - 1 ? *low + 1 : *low;                                                                \
        *share = *low == *high ? 0 : at - (T)*low;                                                                     \
        return true;                                                                                                   \
    }                                                                                                                  \
    bool roi_corners_##T(const RoiSpan_##T *h, const RoiSpan_##T *w, int64_t i, int64_t j, int64_t p, int64_t *at,     \
                         T *share)                                                                                     \
    {                                                                                                                  \
        int64_t row[2], col[2];                                                                                        \
        T v, u;                                                                                                        \
        if (!point_##T(h, i, p / w->points, &row[0], &row[1], &v) ||                                                   \
            !point_##T(w, j, p % w->points, &col[0], &col[1], &u))                                                     \
            return false;                                                                                              \
        for (int k = 0; k < 4; k++) {                                                                                  \
            at[k] = row[k / 2] * w->extent + col[k % 2];                                                               \
            share[k] = (k / 2 ? v : 1 - v) * (k % 2 ? u : 1 - u);                                                      \
        }                                                                                                              \
        return true;                                                                                                   \
    }                                                                                                                  \
    static T roi_bin_##T(const T *x, const RoiSpan_##T *h, const RoiSpan_##T *w, int64_t i, int64_t j, bool most)      \
    {                                                                                                                  \
        const int64_t count = h->points * w->points;                                                                   \
        T sum = 0, best = -Q_INF;                                                                                      \
        for (int64_t p = 0; p < count; p++) {                                                                          \
            int64_t at[4];                                                                                             \
            T share[4], corner[4] = { 0 };                                                                             \
            const bool inside = roi_corners_##T(h, w, i, j, p, at, share);                                             \
            for (int k = 0; inside && k < 4; k++)                                                                      \
                corner[k] = share[k] * x[at[k]];                                                                       \
            sum += ((corner[0] + corner[1]) + corner[2]) + corner[3];                                                  \
            for (int k = 0; k < 4; k++)                                                                                \
                best = q_max(best, corner[k]);                                                                         \
        }                                                                                                              \
        return count == 0 ? 0 : most ? best : sum / (T)count;                                                          \
    }                                                                                                                  \
    static Status roi_align_##T(Eval *e, const RoiAlignAttr *at, const int64_t *batch)                                 \
    {                                                                                                                  \
        const int64_t *dims = e->in[0]->type->dims, *out = e->type->dims, size = dims[2] * dims[3];                    \
        const T *x = eval_##T(e, 0), *roi = eval_##T(e, 1);                                                            \
        T *y = eval_out_##T(e, 0);                                                                                     \
        for (int64_t r = 0; r < out[0]; r++, roi += 4) {                                                               \
            const RoiSpan_##T h = roi_span_##T(at, roi[1], roi[3], out[2], dims[2]);                                   \
            const RoiSpan_##T w = roi_span_##T(at, roi[0], roi[2], out[3], dims[3]);                                   \
            if (batch[r] < 0 || batch[r] >= dims[0] || size == 0)                                                      \
                return eval_fail(e, "region %" PRId64 " is of image %" PRId64 ", there are %" PRId64, r, batch[r],     \
                                 size ? dims[0] : 0);                                                                  \
            if (h.points > LARGEST_GRID || w.points > LARGEST_GRID || h.points * w.points > LARGEST_GRID)              \
                return eval_fail(e, "region %" PRId64 " asks for more than %d points a bin", r, (int)LARGEST_GRID);    \
            for (int64_t c = 0; c < out[1]; c++)                                                                       \
                for (int64_t k = 0; k < out[2] * out[3]; k++)                                                          \
                    *y++ = roi_bin_##T(x + (batch[r] * dims[1] + c) * size, &h, &w, k / out[3], k % out[3],            \
                                       at->mode == ROI_MAX);                                                           \
        }                                                                                                              \
        return OK;                                                                                                     \
    }
ROI_ALIGN(f32)
ROI_ALIGN(f64)
#undef ROI_ALIGN

static Status eval_roi_align(Eval *e)
{
    int64_t n;
    const int64_t *batch = eval_ints(e, 2, &n);
    return (e->in[0]->type->dtype == F64 ? roi_align_f64 : roi_align_f32)(e, e->attr, batch);
}

/* Data, and regions inside it as rows of `columns`. */
static Node *sample_rois(Build *b, Rng *rng, DType dtype, const int64_t *x, int64_t n, int columns)
{
    const int64_t dims[] = { n, columns };
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, dtype, 2, dims));
    for (int64_t r = 0; r < n; r++) {
        const int first = columns - 4;
        if (first)
            tensor_set_f64(t, r * columns, (double)rng_below(rng, x[0]));
        for (int i = 0; i < 2; i++) {
            const double extent = (double)x[3 - i], from = rng_unit(rng) * extent;
            tensor_set_f64(t, r * columns + first + i, from);
            tensor_set_f64(t, r * columns + first + 2 + i, from + rng_unit(rng) * (extent - from));
        }
    }
    return build_const(b, t);
}

static Node *sample_max_roi_pool(Build *b, Rng *rng, int variant)
{
    const DType dtype = variant % 3 == 2 ? F64 : variant % 3 ? F16 : F32;
    int64_t x[4], *shape = NEWS(b->graph->arena, int64_t, 2);
    for (int i = 0; i < 4; i++)
        x[i] = rng_range(rng, 1, i < 2 ? 2 : 6);
    shape[0] = rng_range(rng, 1, 3), shape[1] = rng_range(rng, 1, 3);
    const RoiPoolAttr at = { .pooled_shape = { 2, shape }, .spatial_scale = rng_below(rng, 2) ? 1.0f : 0.5f };
    Node *data = sample_tensor(b, rng, dtype, 4, x, -2, 2);
    return CALL_ATTR(b, max_roi_pool, at, data, sample_rois(b, rng, dtype, x, rng_below(rng, 4), 5));
}

static Node *sample_roi_align(Build *b, Rng *rng, int variant)
{
    const DType dtype = variant % 3 == 2 ? F64 : variant % 3 ? F16 : F32;
    int64_t x[4];
    const int64_t n = rng_below(rng, 4);
    for (int i = 0; i < 4; i++)
        x[i] = rng_range(rng, 1, i < 2 ? 2 : 6);
    const RoiAlignAttr at = { .coordinate_transformation_mode = variant % 2,
                              .mode = variant / 2 % 2,
                              .output_height = rng_range(rng, 1, 3),
                              .output_width = rng_range(rng, 1, 3),
                              .sampling_ratio = rng_below(rng, 3),
                              .spatial_scale = rng_below(rng, 2) ? 1.0f : 0.5f };
    Node *data = sample_tensor(b, rng, dtype, 4, x, -2, 2), *rois = sample_rois(b, rng, dtype, x, n, 4);
    return CALL_ATTR(b, roi_align, at, data, rois, sample_tensor(b, rng, I64, 1, &n, 0, (double)x[0] - 1));
}

const OpDef op_max_roi_pool = {
    .name = "max_roi_pool",
    .min_in = 2,
    .max_in = 2,
    .attrs = max_roi_pool_attrs,
    .infer = infer_max_roi_pool,
    .signature = &(const Signature){ .in = { "F[nchw]", "G[r5]" }, .out = { "F[rcpq]" } },
    .eval = eval_max_roi_pool,
    .sample = sample_max_roi_pool,
    .n_variants = 12,
    .adjoint = adjoint_max_roi_pool,
    .differentiable = 1,
    .weight = 6,
    .access.kind = ACCESS_WINDOW,
    .access.refuses = true,
    .amp = { AMP_S, AMP_S, 2, REASON_INDEX, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "MaxRoiPool", 22, NULL },
};

const OpDef op_roi_align = {
    .name = "roi_align",
    .min_in = 3,
    .max_in = 3,
    .attrs = roi_align_attrs,
    .infer = infer_roi_align,
    .signature = &(const Signature){ .in = { "F[nchw]", "G[r4]", "I[r]" }, .out = { "F[rcpq]" } },
    .eval = eval_roi_align,
    .sample = sample_roi_align,
    .n_variants = 24,
    .adjoint = adjoint_roi_align,
    .differentiable = 1,
    .weight = 10,
    .access.kind = ACCESS_WINDOW,
    .access.refuses = true,
    .amp = { AMP_S, AMP_S, 2, REASON_INDEX, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 4,
    .onnx = { "RoiAlign", 22, NULL },
};
