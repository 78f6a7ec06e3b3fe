/* Numbers as text and back, exact in both directions and the same in every locale. */
#ifndef BASE_NUMBER_TEXT_H
#define BASE_NUMBER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NUMBER_TEXT = 32 }; /* room for any of them */

/* The fewest digits that read back as x, of those the nearest: 0.1, -0, 1e-7, 3.4028235e38, inf, nan.  Writes a
 * terminated string and returns its length. */
size_t f64_to_text(char out[NUMBER_TEXT], double x);
size_t f32_to_text(char out[NUMBER_TEXT], float x);

/* Reads the number that begins at s, at most n bytes of it: decimal, inf, infinity or nan in either case, each with
 * or without a sign; rounded once to nearest even, too large becomes infinity.  Returns the bytes read, 0 for none. */
size_t f64_read(const char *s, size_t n, double *out);
size_t f32_read(const char *s, size_t n, float *out);

/* The same where the n bytes must be one number and nothing else. */
bool f64_from_text(const char *s, size_t n, double *out);
bool f32_from_text(const char *s, size_t n, float *out);

/* Decimal integers; false when the n bytes are anything else or it does not fit. */
bool i64_from_text(const char *s, size_t n, int64_t *out);
bool u64_from_text(const char *s, size_t n, uint64_t *out);

/* Bits written as 0x and 1 to 16 hexadecimal digits. */
bool parse_bits(const char *s, size_t n, uint64_t *out);

#endif
