/* What a sheet is drawn with, and its boxes. */
#ifndef FRONTENDS_VIEW_PEN_H
#define FRONTENDS_VIEW_PEN_H

#include "frontends/view/svg.h"

typedef struct Pen {
    Quill *q;
    const Sheet *s;
    const ViewFacts *facts; /* null: nothing is known beside the graph */
    Arena *scratch;
} Pen;

/* Where a box stands. */
int32_t pen_x(const Pen *p, uint32_t box);
int32_t pen_y(const Pen *p, uint32_t box);

/* Appends what stands for a box in links: its node, its group, or the page and number of a result. */
void pen_target(Pen *p, uint32_t box);

/* What a box is called. */
const char *pen_title(Pen *p, uint32_t box);

/* Draws a box: a node, a conversion, a group or a result. */
void pen_box(Pen *p, uint32_t box);

#endif
