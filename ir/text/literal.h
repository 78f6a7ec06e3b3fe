/* Elements of tensors and numbers of attributes as text: decimals that come back bit for bit, hex for the bit
 * patterns that decimals cannot say (NaN and infinity). */
#ifndef IR_TEXT_LITERAL_H
#define IR_TEXT_LITERAL_H

#include "ir/tensor.h"

/* Appends the shortest decimal that reads back as the same float; 0x and its bits when it is not finite. */
void literal_f32(Text *out, float value);

/* Appends element i of a tensor. */
void literal_element(Text *out, const Tensor *t, int64_t i);

/* Reads a number as written: a decimal, 0x and bits, inf, -inf, nan.  False when it is none or does not fit. */
bool literal_read_f32(Str text, float *value);

/* Reads an integer, decimal or 0x.  False when it is none or does not fit. */
bool literal_read_i64(Str text, int64_t *value);

/* Reads element i of a tensor from a number (or true, false); false when it is not a value of the element type. */
bool literal_read_element(Str text, Tensor *t, int64_t i);

#endif
