/* Powers of two that are learned by their logarithm. */
#include "ops/card/words.h"
#include "ops/quant/quantize.h"
#include "passes/learned/learned.h"

static const double ln_2 = 0.69314718055994530942;

Node *learned_power(Build *b, Node *log2)
{
    return CALL(b, exp, CALL(b, mul, log2, build_scalar(b, F32, ln_2)));
}

/* range_scale knows powers of two to the bit: of codes up to 1 a range of 2 s has the scale s, or the next power of two;
 * half an octave below the power that is meant nothing that an exponential is off by reaches another one. */
Node *learned_power_above(Build *b, Node *log2)
{
    const RangeScaleAttr at = { .least = -1, .largest = 1, .symmetric = true, .pow2 = true, .to = (int)I8 + 1 };
    Node *size = learned_power(b, CALL(b, add, CALL(b, ceil, log2), build_scalar(b, F32, 0.5)));
    Node *power = build_node_n(b, OP_range_scale, &at, 2, (Node *[]){ CALL(b, neg, size), size }, 1);
    Node *smooth = CALL(b, mul, CALL(b, mul, log2, build_scalar(b, F32, ln_2)), power);
    return CALL(b, straight, power, smooth);
}
