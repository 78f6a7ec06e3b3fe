/* Regions of interest: the grid of bins that max_roi_pool and roi_align lay over each, for both directions. */
#ifndef OPS_WINDOW_ROI_H
#define OPS_WINDOW_ROI_H

#include "ops/window/window.h"

typedef enum RoiFrame { ROI_HALF_PIXEL, ROI_OUTPUT_HALF_PIXEL } RoiFrame;
typedef enum RoiMode { ROI_AVG, ROI_MAX } RoiMode;

/* One dimension of a region, in bins whose borders are rounded outwards. */
typedef struct RoiBins {
    int64_t start, size, n, extent;
} RoiBins;

enum { FAR = 1 << 30, LARGEST_GRID = 1 << 20 };

/* A region of roi_align along one dimension: where its bins begin, and how many points each is sampled at. */
#define ROI_SHARED(T)                                                                                                  \
    typedef struct RoiSpan_##T {                                                                                       \
        T start, bin;                                                                                                  \
        int64_t points, extent;                                                                                        \
    } RoiSpan_##T;                                                                                                     \
    RoiBins roi_bins_##T(T from, T to, T scale, int64_t n, int64_t extent);                                            \
    void roi_bin_range_##T(const RoiBins *b, int64_t i, int64_t *range);                                               \
    /* Where the largest element of some rows and columns stands; -1: there are none. */                               \
    int64_t roi_largest_##T(const T *x, int64_t width, const int64_t *rows, const int64_t *cols);                      \
    RoiSpan_##T roi_span_##T(const RoiAlignAttr *at, T from, T to, int64_t bins, int64_t extent);                      \
    /* What point p of bin (i, j) reads: four elements and their shares; false outside. */                             \
    bool roi_corners_##T(const RoiSpan_##T *h, const RoiSpan_##T *w, int64_t i, int64_t j, int64_t p, int64_t *at,     \
                         T *share);
ROI_SHARED(f32)
ROI_SHARED(f64)
#undef ROI_SHARED

/* The attributes, and the adjoints in the data; regions have none. */
/* Whether what the signature of the call says fits its attributes: of the pools and their gradients. */
const Type *infer_max_roi_pool(Infer *q);
const Type *infer_roi_align(Infer *q);

extern const AttrSpec max_roi_pool_attrs[], roi_align_attrs[];
void adjoint_max_roi_pool(Build *b, const Site *s, Node **dx);
void adjoint_roi_align(Build *b, const Site *s, Node **dx);

#endif
