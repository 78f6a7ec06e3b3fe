/* Sampling data at the positions that a grid holds (grid_sample, affine_grid), and the gradients of it. */
#ifndef OPS_SAMPLE_GRID_H
#define OPS_SAMPLE_GRID_H

#include "ops/card/cards.h"
#include "ops/sample/grid_look.h"

typedef struct AffineAttr {
    bool align_corners;
} AffineAttr;

typedef struct GridGradAttr {
    GridAttr grid;
    Ints extents; /* of the data */
} GridGradAttr;

/* Spatial axes, and neighbours of a place. */
enum { MOST_AXES = 5, MOST_VALUES = 1024 };

/* One call. */
typedef struct Sampling {
    const GridAttr *at;
    int axes;
    int64_t images, channels, in, out; /* in, out: spatial elements */
    int64_t dims[MOST_AXES];
} Sampling;

/* The choices of the attributes. */
extern const char *const grid_modes[], *const grid_paddings[];

/* The adjoints: of grid_sample by its data and its grid, of affine_grid by its map. */
void adjoint_grid_sample(Build *b, const Site *s, Node **dx);
void adjoint_affine_grid(Build *b, const Site *s, Node **dx);

/* Their kernels (ops/card/own_kernel.h); false: they have none. */
bool kernels_grid_sample(const Node *n, OwnKernels *to);
bool kernels_affine_grid(const Node *n, OwnKernels *to);
bool kernels_grid_sample_grad(const Node *n, OwnKernels *to);
bool kernels_grid_sample_grid_grad(const Node *n, OwnKernels *to);

#endif
