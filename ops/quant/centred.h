/* Codes as floats, their zero points taken away. */
#ifndef OPS_QUANT_CENTRED_H
#define OPS_QUANT_CENTRED_H

#include "ops/card/cards.h"

/* Zero points, or scales, of the lines of a tensor: matrices of `height` lines of `width` elements. */
typedef struct Lanes {
    int64_t width, height;
    bool across; /* there is one for each element of a line, not one a line */
} Lanes;

/* Operand i with the zero points of operand `zero` (one number, or one a lane of every matrix or of all of them;
 * absent: none) taken away. */
const f32 *codes_centred(Eval *e, int i, int zero, const Lanes *lanes);

#endif
