/* Codes of 0 that are learned. */
#include "ops/card/words.h"
#include "ops/quant/quantize.h"
#include "passes/learned/learned.h"

/* The code of a number, saturated. */
static Node *code_of(Build *b, const LearnedZero *k, Node *number, Node *scale)
{
    const QuantizeAttr at = { .axis = scale->type->rank ? 0 : 1,
                              .output_dtype = (int)k->codes + 1,
                              .saturate = true,
                              .least = k->all ? 0 : k->least,
                              .largest = k->all ? 0 : k->largest,
                              .mask = MASK_NONE,
                              .gain = 1 };
    return CALL_ATTR(b, quantize_linear, at, number, scale);
}

/* Numbers (q - z) s begin at the offset where the code is 0: 0 has the code -offset / s. */
Node *learned_zero_of_offset(Build *b, const LearnedZero *k, Node *offset, Node *scale)
{
    return code_of(b, k, CALL(b, neg, offset), CALL(b, straight, scale, build_scalar(b, F32, 0)));
}

/* What the code that is learned stands for moves with the scale, too: as the code that it is rounded to. */
Node *learned_zero_of_code(Build *b, const LearnedZero *k, Node *code, Node *scale)
{
    Node *least = build_scalar(b, F32, (double)k->least), *largest = build_scalar(b, F32, (double)k->largest);
    Node *rounded = CALL(b, straight, CALL(b, clip, CALL(b, round, code), least, largest), code);
    return code_of(b, k, CALL(b, mul, rounded, scale), CALL(b, straight, scale, build_scalar(b, F32, 0)));
}
