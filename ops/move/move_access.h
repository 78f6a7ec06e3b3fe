/* How the words that move elements walk their operands. */
#ifndef OPS_MOVE_MOVE_ACCESS_H
#define OPS_MOVE_MOVE_ACCESS_H

#include "ops/card/access.h"

typedef struct SplitAttr {
    int64_t axis, num_outputs;
} SplitAttr;

typedef struct BlockAttr {
    int64_t blocksize;
    int mode;
} BlockAttr;

typedef struct GatherNdAttr {
    int64_t batch_dims;
} GatherNdAttr;

/* What a slice takes of one axis. */
typedef struct Cut {
    int64_t start, step, n;
} Cut;

/* The axis of that extent cut from start to end, as ONNX clamps them. */
Cut slice_cut(int64_t dim, int64_t start, int64_t end, int64_t step);

/* The axes of an image [N, C, H, W] split by blocks, and the order in which the result has them. */
const int *depth_to_space_blocks(const BlockAttr *at, const int64_t *dims, int64_t *blocks);
const int *space_to_depth_blocks(const BlockAttr *at, const int64_t *dims, int64_t *blocks);

/* Pads listed for n axes (null: all in order), as what stands before and after each axis. */
void pad_frame(int rank, int64_t n, const int64_t *pads, const int64_t *axes, int64_t *before, int64_t *after);

bool iterate_transpose(const Node *n, Arena *arena, Iteration *to);
bool iterate_depth_to_space(const Node *n, Arena *arena, Iteration *to);
bool iterate_space_to_depth(const Node *n, Arena *arena, Iteration *to);
bool iterate_expand(const Node *n, Arena *arena, Iteration *to);
bool iterate_tile(const Node *n, Arena *arena, Iteration *to);
bool iterate_concat(const Node *n, Arena *arena, Iteration *to);
bool iterate_split(const Node *n, Arena *arena, Iteration *to);
bool iterate_slice(const Node *n, Arena *arena, Iteration *to);
bool iterate_pad(const Node *n, Arena *arena, Iteration *to);
bool iterate_center_crop_pad(const Node *n, Arena *arena, Iteration *to);
bool iterate_filled(const Node *n, Arena *arena, Iteration *to);
bool iterate_trilu(const Node *n, Arena *arena, Iteration *to);
bool iterate_gather(const Node *n, Arena *arena, Iteration *to);
bool iterate_gather_elements(const Node *n, Arena *arena, Iteration *to);
bool iterate_gather_nd(const Node *n, Arena *arena, Iteration *to);
bool iterate_scatter_elements(const Node *n, Arena *arena, Iteration *to);
bool iterate_scatter_nd(const Node *n, Arena *arena, Iteration *to);

#endif
