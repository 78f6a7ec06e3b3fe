/* Results that are the next values of what quantizers remember. */
#ifndef PASSES_QUANT_OBSERVERS_H
#define PASSES_QUANT_OBSERVERS_H

#include "passes/engine/pass.h"

typedef enum Observers {
    OBSERVERS_NONE,     /* of no such state */
    OBSERVERS_ALONE,    /* of these states, and nothing else leaves */
    OBSERVERS_OF_RANGES /* not of scales that are learned, whose first values these are */
} Observers;

/* Leaves a graph with the next values of those states. */
Status observers_keep(Graph *g, PassRun *run, Observers which);

#endif
