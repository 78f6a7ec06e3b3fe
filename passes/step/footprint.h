/* What a training step needs in memory, told from its types alone. */
#ifndef PASSES_STEP_FOOTPRINT_H
#define PASSES_STEP_FOOTPRINT_H

#include "ir/graph.h"

/* clang-format off */
/*     part         sum            words              what it is                                            */
#define FOOTPRINT_PARTS(_)                                                                                    \
    _( trained,     weights,       "trained"       ) /* numbers, or the codes that stand for them */          \
    _( scales,      weights,       "scales"        ) /* of what is trained as codes */                        \
    _( shadows,     weights,       "narrow copies" ) /* of weights, for mixed precision */                    \
    _( constants,   weights,       "constants"     )                                                          \
    _( moments,     optimizer,     "moments"       )                                                          \
    _( masters,     optimizer,     "masters"       ) /* weights in a wider type */                            \
    _( averages,    optimizer,     "averages"      ) /* of --ema */                                           \
    _( ranges,      optimizer,     "ranges"        ) /* of data that are quantized, and learned scales */     \
    _( counters,    optimizer,     "counters"      ) /* of steps, rates and the scale of the loss */          \
    _( statistics,  other_state,   "statistics"    )                                                          \
    _( untrained,   other_state,   "not trained"   )                                                          \
    _( gradients,   gradients,     "gradients"     )                                                          \
    _( inputs,      activations,   "data"          )                                                          \
    _( next,        activations,   "next values"   ) /* that are made beside their states */
/* clang-format on */

#define PART(part, sum, words) FOOTPRINT_##part,
typedef enum FootprintPart { FOOTPRINT_PARTS(PART) FOOTPRINT_PART_COUNT } FootprintPart;
#undef PART

/* Bytes by what they are for and by their type. */
typedef uint64_t FootprintBytes[FOOTPRINT_PART_COUNT][DTYPE_COUNT];

/* Bytes by kind. */
typedef struct Footprint {
    FootprintBytes parts; /* all but what is alive in between; next: none */
    uint64_t weights;     /* trained states with their scales, shadows and constants */
    uint64_t optimizer;   /* states of ours */
    uint64_t other_state; /* statistics, and what is not trained */
    uint64_t gradients;   /* of trained states */
    uint64_t activations; /* the most that is alive at once of everything else */
    uint64_t total;
} Footprint;

/* Adds the bytes of a type, as far as it is known. */
void footprint_add(FootprintBytes parts, FootprintPart part, const Type *t);

/* Bytes of all types. */
uint64_t footprint_sum(const uint64_t by_type[DTYPE_COUNT]);

/* The footprint of a graph whose values are computed in list order, each one kept until its last reader has run.
 * Values of unknown shape count as nothing. */
Footprint footprint_of(Graph *g, Arena *scratch);

/* The most that the bodies of a node hold at once while it runs, one body at a time. */
uint64_t footprint_bodies(const Node *n, Arena *scratch);

/* Bytes of what the forward side makes of data and the backward side reads: what has to be there all the time between,
 * on any device.  Weights in another form, codes or narrow shadows, are not among them. */
uint64_t footprint_kept(Graph *g, Arena *scratch);

#endif
