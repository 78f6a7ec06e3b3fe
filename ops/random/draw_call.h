/* Calls that draw as numbers by logical index, for who fuses them with other calls. */
#ifndef OPS_RANDOM_DRAW_CALL_H
#define OPS_RANDOM_DRAW_CALL_H

#include "ir/graph.h"
#include "ops/kernels/kernels.h"

/* What a call draws for each element of its result, and what it makes of that:
 *
 *     dropout:    the number is 1 or 0; operand 0 times `scale` where it is 1, else 0
 *     all others: the number times `scale`, plus `offset`
 */
typedef struct DrawCall {
    PhiloxLaw law;
    u32 stream;
    u64 own;   /* what the seed of a run is mixed with by exclusive or */
    f32 limit; /* of PHILOX_KEEP */
    double scale, offset;
} DrawCall;

/* Reads a call as a draw whose numbers depend on nothing but seed, step and logical index, and which cannot refuse;
 * false when it is none. */
bool draw_of(const Node *n, DrawCall *d);

#endif
