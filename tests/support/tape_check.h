/* Every tape of a lowered graph against the evaluator, at each level and with several threads. */
#ifndef TESTS_SUPPORT_TAPE_CHECK_H
#define TESTS_SUPPORT_TAPE_CHECK_H

#include "testing.h"

typedef struct TapeCheck {
    Context *c;
    Facts values;                /* const Tensor *, by node: what the evaluator gave */
    int64_t tapes, folded, over; /* tapes, results of folds, runs with results over arguments */
    int64_t channels, pieces;    /* tapes whose rows are channels, and those that walk them in pieces */
    int64_t contracts;           /* tapes behind products, run in blocks too */
    int64_t chains;              /* rows that were joined to one loop, in all runs */
    int64_t casts;               /* whole numbers that were read as f32, likewise */
    bool wrong;                  /* a result differs; it was printed */
} TapeCheck;

/* The seed and the step that all of these runs draw with. */
static const uint64_t tape_draws[] = { 0x123456789abcdef, 41, 0 };

/* Evaluates a graph on values drawn from a seed (whole numbers are 0 and 1) and notes what each node of its list gives.
 * False where the evaluator refuses the graph. */
bool tape_values(TapeCheck *w, Graph *g, uint64_t seed);

/* The same, runs the tape of each fused node on what the evaluator gave it, and compares bits. */
bool tape_check(TapeCheck *w, Graph *g, uint64_t seed);

#endif
