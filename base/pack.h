/* Arrays of elements of 1, 2, 4 and 6 bits: a stream of bits, the first element in the lowest ones, so that eight,
 * four, two and four thirds lie in a byte.  An f4e2m1 is packed as a u4.  Positions count elements, so a part of an
 * array may begin inside a byte. */
#ifndef BASE_PACK_H
#define BASE_PACK_H

#include <stddef.h>
#include <stdint.h>

/* Element i. */
static inline uint8_t packed_u4(const uint8_t *p, size_t i)
{
    return p[i / 2] >> i % 2 * 4 & 15;
}
static inline uint8_t packed_u2(const uint8_t *p, size_t i)
{
    return p[i / 4] >> i % 4 * 2 & 3;
}
static inline uint8_t packed_u1(const uint8_t *p, size_t i)
{
    return p[i / 8] >> i % 8 & 1;
}

static inline uint8_t packed_u6(const uint8_t *p, size_t i)
{
    const size_t at = i / 4 * 3 + i % 4 * 6 / 8; /* the first byte of the element; half of them reach into the next */
    const unsigned shift = i % 4 * 6 % 8;
    return (uint8_t)((p[at] >> shift | (shift > 2 ? (unsigned)p[at + 1] << (8 - shift) : 0)) & 63u);
}

/* Element i of 1, 2, 4 or 6 bits. */
static inline uint8_t packed_bits(const uint8_t *p, size_t i, unsigned bits)
{
    return bits == 6 ? packed_u6(p, i) : bits == 4 ? packed_u4(p, i) : bits == 2 ? packed_u2(p, i) : packed_u1(p, i);
}

/* Stores the low bits of v as element i; the other elements of the byte stay. */
static inline void packed_put4(uint8_t *p, size_t i, uint8_t v)
{
    unsigned shift = i % 2 * 4;
    p[i / 2] = (uint8_t)((p[i / 2] & ~(15u << shift)) | (v & 15u) << shift);
}
static inline void packed_put2(uint8_t *p, size_t i, uint8_t v)
{
    unsigned shift = i % 4 * 2;
    p[i / 4] = (uint8_t)((p[i / 4] & ~(3u << shift)) | (v & 3u) << shift);
}
static inline void packed_put1(uint8_t *p, size_t i, uint8_t v)
{
    p[i / 8] = (uint8_t)((p[i / 8] & ~(1u << i % 8)) | (v & 1u) << i % 8);
}

static inline void packed_put6(uint8_t *p, size_t i, uint8_t v)
{
    const size_t at = i / 4 * 3 + i % 4 * 6 / 8;
    const unsigned shift = i % 4 * 6 % 8;
    p[at] = (uint8_t)((p[at] & ~(63u << shift)) | (v & 63u) << shift);
    if (shift > 2)
        p[at + 1] = (uint8_t)((p[at + 1] & ~(63u >> (8 - shift))) | (v & 63u) >> (8 - shift));
}
static inline void packed_put_bits(uint8_t *p, size_t i, unsigned bits, uint8_t v)
{
    if (bits == 6)
        packed_put6(p, i, v);
    else if (bits == 4)
        packed_put4(p, i, v);
    else if (bits == 2)
        packed_put2(p, i, v);
    else
        packed_put1(p, i, v);
}

/* Elements first .. first + n - 1 of `in`, one to a byte.  The arrays must not overlap. */
void unpack_u4(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n);
void unpack_u2(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n);
void unpack_u6(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n);
void unpack_u1(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n);

/* Stores the low bits of n bytes as elements first .. first + n - 1 of `out`; its other elements stay.  Signed
 * elements are passed as their bytes. */
void pack_4(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n);
void pack_2(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n);
void pack_6(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n);
void pack_1(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n);

/* The same by the number of bits: 1, 2, 4 or 6. */
void unpack_bits(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n, unsigned bits);
void pack_bits(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n, unsigned bits);

/* Clears the bits behind the last of n elements, which files want to be zero. */
void pack_clear_tail(uint8_t *p, size_t n, unsigned bits);

#endif
