/* Where the forward side of a step is cut into blocks that are made again one by one. */
#ifndef PASSES_LOWER_BORDERS_H
#define PASSES_LOWER_BORDERS_H

#include "passes/lower/timeline.h"

/* A border lies behind a call: what was made so far and is read behind it on the forward side is kept there. */
typedef struct Border {
    int place;
    bool is_kept; /* else what is alive there is made again, too, for the border behind it */
} Border;

typedef struct Borders {
    Border *at;
    int n;
} Borders;

/* The borders, in their order, with which a step takes the least memory at once, as far as the timeline says.  `twice`:
 * those that are not kept may be among them.  `share` of what the backward side holds itself counts: all of it where blocks
 * are to be small when that is much; none where what it holds at one place hides what else could be saved. */
Borders borders_find(const Timeline *t, bool twice, double share);

#endif
