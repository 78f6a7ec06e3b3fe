/* Sampling data at the positions that a grid holds (grid_sample, affine_grid), and the gradients of it. */
#ifndef OPS_SAMPLE_GRID_H
#define OPS_SAMPLE_GRID_H

#include "ops/card/cards.h"

typedef enum GridMode { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC } GridMode;
typedef enum GridPadding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION } GridPadding;

typedef struct GridAttr {
    int mode, padding_mode;
    bool align_corners;
} GridAttr;

/* Spatial axes, neighbours along one of them, and of a place. */
enum { MOST_AXES = 5, MOST_TAPS = 4, MOST_VALUES = 1024 };

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

#endif
