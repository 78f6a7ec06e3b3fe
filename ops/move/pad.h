/* What pad and its adjoint share. */
#ifndef OPS_MOVE_PAD_H
#define OPS_MOVE_PAD_H

#include "ops/card/cards.h"

enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

typedef struct PadAttr {
    int mode;
} PadAttr;

/* What center_crop_pad adds before and after each axis. */
void center_pads(const Type *x, const Type *y, int64_t *before, int64_t *after);

/* What goes back through the frames (ops/move/pad_adjoint.c). */
void adjoint_pad(Build *b, const Site *s, Node **dx);
void adjoint_center_crop_pad(Build *b, const Site *s, Node **dx);

#endif
