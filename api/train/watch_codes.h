/* What becomes of weights that are kept in few bits while a run goes on: who looks at them, and who tells of it. */
#ifndef API_TRAIN_WATCH_CODES_H
#define API_TRAIN_WATCH_CODES_H

#include "api/train/train.h"

/* A weight that is codes, or numbers of bf16.  Of each, codes are looked at that are spread over it, so that what is
 * remembered is small beside it; what a step counts (passes/step/update.c) is of all of them. */
typedef struct CodesWatched {
    const State *weight, *scale; /* null: none */
    SessionValue counts;         /* of each step; without a name: it counts nothing */
    int64_t n, apart;            /* codes that are remembered, and how far they lie from each other */
    int64_t elements;
    int16_t *reported, *before; /* at the last report; before the step that is looked at */
    uint8_t *graded;            /* reports in a row at which a code had a gradient and was what it had been */
    bool by_chance;             /* it is rounded so */
    bool ranged;                /* there are ends of codes */
    int64_t least, largest;     /* these */
    Tensor *scales;             /* at the last report */
    double changed, moved, ends, drift;
    int64_t updates, below, changes, steps; /* counted since the last report: of so many steps that were applied */
    int64_t idle, idle_updates, idle_below; /* steps in a row that changed no code and were to, and what they counted */
    int64_t standing; /* codes with gradients that have not changed in two reports, where nothing is counted */
    bool warned;
} CodesWatched;

typedef struct CodesWatch {
    CodesWatched *list;
    size_t n;
    bool began; /* the step that is looked at */
} CodesWatch;

/* The words of the quantizer that it is stored by; null: it is a number of bf16 in the model. */
const char *codes_words(const Trainer *t, const CodesWatched *w);

/* A report: to people, to the log and to TensorBoard; and warnings of weights that learn nothing. */
Status codes_tell(Trainer *t);

#endif
