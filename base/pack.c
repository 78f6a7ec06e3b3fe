#include "base/pack.h"

/* One element at a time up to the first whole byte and after the last one, whole bytes between. */
#define UNPACK(NAME, PER_BYTE, ELEMENT)                                                                                \
    void NAME(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n)                               \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        for (; i < n && (first + i) % (PER_BYTE); i++)                                                                 \
            out[i] = ELEMENT(in, first + i);                                                                           \
        for (; n - i >= (PER_BYTE); i += (PER_BYTE)) {                                                                 \
            const uint8_t *byte = in + (first + i) / (PER_BYTE);                                                       \
            for (size_t j = 0; j < (PER_BYTE); j++)                                                                    \
                out[i + j] = ELEMENT(byte, j);                                                                         \
        }                                                                                                              \
        for (; i < n; i++)                                                                                             \
            out[i] = ELEMENT(in, first + i);                                                                           \
    }

UNPACK(unpack_u4, 2, packed_u4)
UNPACK(unpack_u2, 4, packed_u2)
UNPACK(unpack_u1, 8, packed_u1)

/* Four elements to three bytes. */
void unpack_u6(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n)
{
    size_t i = 0;
    for (; i < n && (first + i) % 4; i++)
        out[i] = packed_u6(in, first + i);
    for (; n - i >= 4; i += 4) {
        const uint8_t *p = in + (first + i) / 4 * 3;
        const unsigned word = (unsigned)p[0] | (unsigned)p[1] << 8 | (unsigned)p[2] << 16;
        for (unsigned j = 0; j < 4; j++)
            out[i + j] = word >> (6 * j) & 63;
    }
    for (; i < n; i++)
        out[i] = packed_u6(in, first + i);
}

void pack_6(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n)
{
    size_t i = 0;
    for (; i < n && (first + i) % 4; i++)
        packed_put6(out, first + i, in[i]);
    for (; n - i >= 4; i += 4) {
        uint8_t *p = out + (first + i) / 4 * 3;
        unsigned word = 0;
        for (unsigned j = 0; j < 4; j++)
            word |= (in[i + j] & 63u) << (6 * j);
        p[0] = (uint8_t)word;
        p[1] = (uint8_t)(word >> 8);
        p[2] = (uint8_t)(word >> 16);
    }
    for (; i < n; i++)
        packed_put6(out, first + i, in[i]);
}

void unpack_bits(uint8_t *restrict out, const uint8_t *restrict in, size_t first, size_t n, unsigned bits)
{
    (bits == 6 ? unpack_u6 : bits == 4 ? unpack_u4 : bits == 2 ? unpack_u2 : unpack_u1)(out, in, first, n);
}

void pack_bits(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n, unsigned bits)
{
    (bits == 6 ? pack_6 : bits == 4 ? pack_4 : bits == 2 ? pack_2 : pack_1)(out, first, in, n);
}

void pack_4(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n)
{
    size_t i = 0;
    for (; i < n && (first + i) % 2; i++)
        packed_put4(out, first + i, in[i]);
    for (; n - i >= 2; i += 2)
        out[(first + i) / 2] = (uint8_t)((in[i] & 15) | (in[i + 1] & 15) << 4);
    for (; i < n; i++)
        packed_put4(out, first + i, in[i]);
}

void pack_2(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n)
{
    size_t i = 0;
    for (; i < n && (first + i) % 4; i++)
        packed_put2(out, first + i, in[i]);
    for (; n - i >= 4; i += 4)
        out[(first + i) / 4] =
            (uint8_t)((in[i] & 3) | (in[i + 1] & 3) << 2 | (in[i + 2] & 3) << 4 | (in[i + 3] & 3) << 6);
    for (; i < n; i++)
        packed_put2(out, first + i, in[i]);
}

void pack_1(uint8_t *restrict out, size_t first, const uint8_t *restrict in, size_t n)
{
    size_t i = 0;
    for (; i < n && (first + i) % 8; i++)
        packed_put1(out, first + i, in[i]);
    for (; n - i >= 8; i += 8) {
        unsigned byte = 0;
        for (unsigned j = 0; j < 8; j++)
            byte |= (in[i + j] & 1u) << j;
        out[(first + i) / 8] = (uint8_t)byte;
    }
    for (; i < n; i++)
        packed_put1(out, first + i, in[i]);
}

void pack_clear_tail(uint8_t *p, size_t n, unsigned bits)
{
    const size_t whole = n / 8 * 8; /* elements that fill bytes, whatever their bits */
    const unsigned used = (unsigned)(n - whole) * bits;
    if (used % 8)
        p[whole * bits / 8 + used / 8] &= (uint8_t)((1u << used % 8) - 1);
}
