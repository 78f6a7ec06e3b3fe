/* A sheet as SVG. */
#ifndef FRONTENDS_VIEW_SVG_H
#define FRONTENDS_VIEW_SVG_H

#include "frontends/view/quill.h"
#include "frontends/view/sheet.h"
#include "frontends/view/view.h"

/* How things are drawn, in the units of the drawing; the page's script is told. */
enum {
    BOX_WIDTH = 188,
    BOX_HEIGHT = 50,
    LANE_PITCH = 212,
    ROW_PITCH = 92,
    SHEET_MARGIN = 28,
    TILE_ROWS = 24,
    TILE_LANES = 12,
};

/* Appends a drawing in tiles; `asleep`: as comments, which the page's script wakes where it looks.  `facts` may be null. */
void svg_sheet(Quill *q, const Sheet *s, const ViewFacts *facts, bool asleep, Arena *scratch);

#endif
