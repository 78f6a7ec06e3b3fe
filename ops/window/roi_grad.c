/* max_roi_pool_grad and roi_align_grad: what reaches the data.  An element is the sum of what regions, and in them bins
 * and points, bring, in their order; threads share out the channels. */
#include <string.h>

#include "ops/window/roi.h"

typedef struct RoiGradRun {
    const void *attr;
    const int64_t *dims, *out; /* of the data and of the result */
    const int64_t *batch;      /* of roi_align */
    const void *x, *roi, *dy;
    void *dx;
} RoiGradRun;

/* Channels [begin, end) of all images. */
#define ROI_GRAD(T)                                                                                                    \
    static void max_bin_grad_##T(const T *x, const RoiBins *high, const RoiBins *wide, const T *dy, T *dx)             \
    {                                                                                                                  \
        for (int64_t i = 0; i < high->n; i++)                                                                          \
            for (int64_t j = 0; j < wide->n; j++, dy++) {                                                              \
                int64_t rows[2], cols[2];                                                                              \
                roi_bin_range_##T(high, i, rows);                                                                      \
                roi_bin_range_##T(wide, j, cols);                                                                      \
                const int64_t where = roi_largest_##T(x, wide->extent, rows, cols);                                    \
                if (where >= 0)                                                                                        \
                    dx[where] += *dy;                                                                                  \
            }                                                                                                          \
    }                                                                                                                  \
    static void max_rois_grad_##T(void *arg, int64_t begin, int64_t end, int worker)                                   \
    {                                                                                                                  \
        const RoiGradRun *r = arg;                                                                                     \
        const RoiPoolAttr *at = r->attr;                                                                               \
        const int64_t size = r->dims[2] * r->dims[3], bins = r->out[2] * r->out[3];                                    \
        const T *roi = r->roi, scale = (T)at->spatial_scale;                                                           \
        (void)worker;                                                                                                  \
        for (int64_t i = 0; i < r->out[0]; i++, roi += 5) {                                                            \
            const RoiBins wide = roi_bins_##T(roi[1], roi[3], scale, r->out[3], r->dims[3]);                           \
            const RoiBins high = roi_bins_##T(roi[2], roi[4], scale, r->out[2], r->dims[2]);                           \
            for (int64_t c = begin; c < end; c++) {                                                                    \
                const int64_t at_x = ((int64_t)roi[0] * r->dims[1] + c) * size;                                        \
                max_bin_grad_##T((const T *)r->x + at_x, &high, &wide, (const T *)r->dy + (i * r->out[1] + c) * bins,  \
                                 (T *)r->dx + at_x);                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void average_point_##T(const int64_t *at, const T *share, T dy, T *dx)                                      \
    {                                                                                                                  \
        for (int k = 0; k < 4; k++)                                                                                    \
            dx[at[k]] = q_fma(share[k], dy, dx[at[k]]);                                                                \
    }                                                                                                                  \
    /* Bin (i, j) of one region and channel; what lies outside counts as zeros. */                                     \
    static void align_bin_grad_##T(const T *x, const RoiSpan_##T *h, const RoiSpan_##T *w, int64_t i, int64_t j,       \
                                   bool most, T dy, T *dx)                                                             \
    {                                                                                                                  \
        const int64_t count = h->points * w->points;                                                                   \
        int64_t at[4], where = -1;                                                                                     \
        T share[4], best = -Q_INF, of_best = 0;                                                                        \
        for (int64_t p = 0; p < count; p++) {                                                                          \
            const bool inside = roi_corners_##T(h, w, i, j, p, at, share);                                             \
            if (inside && !most)                                                                                       \
                average_point_##T(at, share, dy / (T)count, dx);                                                       \
            for (int k = 0; most && k < 4; k++) {                                                                      \
                const T v = inside ? share[k] * x[at[k]] : 0;                                                          \
                if (!(v > best))                                                                                       \
                    continue;                                                                                          \
                best = v;                                                                                              \
                where = inside ? at[k] : -1;                                                                           \
                of_best = share[k];                                                                                    \
            }                                                                                                          \
        }                                                                                                              \
        if (where >= 0)                                                                                                \
            dx[where] = q_fma(of_best, dy, dx[where]);                                                                 \
    }                                                                                                                  \
    static void align_grad_##T(void *arg, int64_t begin, int64_t end, int worker)                                      \
    {                                                                                                                  \
        const RoiGradRun *r = arg;                                                                                     \
        const RoiAlignAttr *at = r->attr;                                                                              \
        const int64_t size = r->dims[2] * r->dims[3], bins = r->out[2] * r->out[3];                                    \
        const T *roi = r->roi;                                                                                         \
        (void)worker;                                                                                                  \
        for (int64_t i = 0; i < r->out[0]; i++, roi += 4) {                                                            \
            const RoiSpan_##T h = roi_span_##T(at, roi[1], roi[3], r->out[2], r->dims[2]);                             \
            const RoiSpan_##T w = roi_span_##T(at, roi[0], roi[2], r->out[3], r->dims[3]);                             \
            for (int64_t c = begin; c < end; c++) {                                                                    \
                const int64_t at_x = (r->batch[i] * r->dims[1] + c) * size;                                            \
                const T *dy = (const T *)r->dy + (i * r->out[1] + c) * bins;                                           \
                for (int64_t k = 0; k < bins; k++)                                                                     \
                    align_bin_grad_##T((const T *)r->x + at_x, &h, &w, k / r->out[3], k % r->out[3],                   \
                                       at->mode == ROI_MAX, dy[k], (T *)r->dx + at_x);                                 \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void roi_operands_##T(Eval *e, RoiGradRun *r)                                                               \
    {                                                                                                                  \
        r->x = eval_##T(e, 0), r->roi = eval_##T(e, 1), r->dy = eval_##T(e, e->n_in - 1);                              \
        r->dx = eval_out_##T(e, 0);                                                                                    \
        if (eval_elements(e, 0))                                                                                       \
            memset(r->dx, 0, (size_t)eval_elements(e, 0) * sizeof(T));                                                 \
    }
ROI_GRAD(f32)
ROI_GRAD(f64)
#undef ROI_GRAD

/* Whether a region of roi_align asks for more points than the pool itself admits. */
static bool too_fine(Eval *e, const RoiGradRun *r, int64_t i)
{
    double roi[4];
    for (int k = 0; k < 4; k++)
        roi[k] = eval_float(e, 1, 4 * i + k);
    const int64_t h = roi_span_f64(r->attr, roi[1], roi[3], r->out[2], r->dims[2]).points;
    const int64_t w = roi_span_f64(r->attr, roi[0], roi[2], r->out[3], r->dims[3]).points;
    return h > LARGEST_GRID || w > LARGEST_GRID || h * w > LARGEST_GRID;
}

static Status eval_roi_grad(Eval *e, const int64_t *batch, const ParallelFn fns[2])
{
    RoiGradRun r = { .attr = e->attr, .batch = batch };
    r.dims = e->in[0]->type->dims;
    r.out = e->in[e->n_in - 1]->type->dims;
    (eval_is_f64(e) ? roi_operands_f64 : roi_operands_f32)(e, &r);
    for (int64_t i = 0; i < r.out[0]; i++) {
        const double image = batch ? (double)batch[i] : eval_float(e, 1, 5 * i);
        if (!(image >= 0 && image < (double)r.dims[0]) || r.dims[2] * r.dims[3] == 0)
            return eval_fail(e, "region %" PRId64 " is of image %g, there are %" PRId64, i, image, r.dims[0]);
        if (batch && too_fine(e, &r, i))
            return eval_fail(e, "region %" PRId64 " asks for more than %d points a bin", i, (int)LARGEST_GRID);
    }
    eval_parallel(e, r.dims[1], fns[eval_is_f64(e)], &r);
    return OK;
}

static Status eval_max_roi_pool_grad(Eval *e)
{
    return eval_roi_grad(e, NULL, (const ParallelFn[]){ max_rois_grad_f32, max_rois_grad_f64 });
}

static Status eval_roi_align_grad(Eval *e)
{
    int64_t n;
    return eval_roi_grad(e, eval_ints(e, 2, &n), (const ParallelFn[]){ align_grad_f32, align_grad_f64 });
}

void adjoint_max_roi_pool(Build *b, const Site *s, Node **dx)
{
    dx[0] = build_node(b, OP_max_roi_pool_grad, s->attr, 3, (Node *[]){ s->in[0], s->in[1], s->dout[0] });
}

void adjoint_roi_align(Build *b, const Site *s, Node **dx)
{
    dx[0] = build_node(b, OP_roi_align_grad, s->attr, 4, (Node *[]){ s->in[0], s->in[1], s->in[2], s->dout[0] });
}

/* A call of the pool, and something that reaches its result. */
static Node *sample_roi_grad(Build *b, Rng *rng, int variant, Op op, const OpDef *pool)
{
    const Node *y = pool->sample(b, rng, variant);
    Node *ins[4];
    for (int i = 0; i < y->n_in; i++)
        ins[i] = in(y, i);
    ins[y->n_in] = sample_tensor(b, rng, y->type->dtype, 4, y->type->dims, -2, 2);
    return build_node(b, op, y->attr, y->n_in + 1, ins);
}

static Node *sample_max_roi_pool_grad(Build *b, Rng *rng, int variant)
{
    return sample_roi_grad(b, rng, variant, OP_max_roi_pool_grad, &op_max_roi_pool);
}

static Node *sample_roi_align_grad(Build *b, Rng *rng, int variant)
{
    return sample_roi_grad(b, rng, variant, OP_roi_align_grad, &op_roi_align);
}

const OpDef op_max_roi_pool_grad = {
    .name = "max_roi_pool_grad",
    .min_in = 3,
    .max_in = 3,
    .attrs = max_roi_pool_attrs,
    .infer = infer_max_roi_pool,
    .signature = &(const Signature){ .in = { "F[nchw]", "G[r5]", "H[rcpq]" }, .out = { "F[nchw]" } },
    .eval = eval_max_roi_pool_grad,
    .sample = sample_max_roi_pool_grad,
    .n_variants = 12,
    .weight = 6,
    .access.kind = ACCESS_SCATTER,
    .access.refuses = true,
    .amp = { AMP_FO, AMP_FO, 2, REASON_RANGE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the data x of max_roi_pool over regions, from what reaches its result.",
};

const OpDef op_roi_align_grad = {
    .name = "roi_align_grad",
    .min_in = 4,
    .max_in = 4,
    .attrs = roi_align_attrs,
    .infer = infer_roi_align,
    .signature = &(const Signature){ .in = { "F[nchw]", "G[r4]", "I[r]", "H[rcpq]" }, .out = { "F[nchw]" } },
    .eval = eval_roi_align_grad,
    .sample = sample_roi_align_grad,
    .n_variants = 24,
    .weight = 10,
    .access.kind = ACCESS_SCATTER,
    .access.refuses = true,
    .amp = { AMP_FO, AMP_FO, 2, REASON_RANGE, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "What reaches the data x of roi_align over regions, from what reaches its result.",
};
