#include "unit/check.h"

#include <string.h>

#include "base/pack.h"
#include "base/status.h"

/* What the bits of element i are, by counting bits in the array. */
static unsigned bits_at(const uint8_t *p, size_t i, unsigned width)
{
    unsigned v = 0;
    for (unsigned b = 0; b < width; b++) {
        size_t at = i * width + b;
        v |= (unsigned)(p[at / 8] >> at % 8 & 1) << b;
    }
    return v;
}

static void every_byte_unpacks(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t in = (uint8_t)byte, u[8];
        unpack_u4(u, &in, 0, 2);
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(u[i], bits_at(&in, i, 4));
        unpack_u2(u, &in, 0, 4);
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(u[i], bits_at(&in, i, 2));
        unpack_u1(u, &in, 0, 8);
        for (size_t i = 0; i < 8; i++)
            assert_int_equal(u[i], bits_at(&in, i, 1));
    }
    for (unsigned bits = 0; bits < 1u << 12; bits++) { /* every pair of neighbours, at every place in three bytes */
        for (size_t at = 0; at < 3; at++) {
            const uint32_t word = bits << 6 * at;
            const uint8_t in[3] = { (uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16) };
            uint8_t u[4], back[3] = { 0 };
            unpack_u6(u, in, 0, 4);
            for (size_t i = 0; i < 4; i++)
                assert_int_equal(u[i], bits_at(in, i, 6));
            pack_6(back, 0, u, 4);
            assert_memory_equal(back, in, 3);
        }
    }
    assert_int_equal(packed_u4((const uint8_t[]){ 0x21 }, 0), 1); /* the first element is the low half */
}

enum { BYTES = 16 };

static const unsigned widths[] = { 1, 2, 4, 6 };

static void parts_unpack(void **state)
{
    (void)state;
    uint8_t in[BYTES], u[8 * BYTES + 1];
    for (size_t i = 0; i < BYTES; i++)
        in[i] = (uint8_t)(i * 151 + 29);
    for (size_t w = 0; w < COUNT(widths); w++)
        for (size_t first = 0; first < 9; first++)
            for (size_t n = 0; n <= BYTES * 8 / widths[w] - first; n++) {
                const unsigned width = widths[w];
                u[n] = 77;
                unpack_bits(u, in, first, n, width);
                for (size_t i = 0; i < n; i++) {
                    unsigned want = bits_at(in, first + i, width);
                    assert_int_equal(packed_bits(in, first + i, width), want);
                    if (u[i] != want)
                        fail_msg("element %zu of %zu from %zu, width %u: %d", i, n, first, width, u[i]);
                }
                assert_int_equal(u[n], 77);
            }
}

static void parts_pack_and_leave_the_rest(void **state)
{
    (void)state;
    uint8_t values[8 * BYTES], out[BYTES];
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i * 91 + 200); /* high bits set: they must not leak */
    for (size_t w = 0; w < COUNT(widths); w++)
        for (int fill = 0; fill < 256; fill += 255)
            for (size_t first = 0; first < 9; first++)
                for (size_t n = 0; n <= BYTES * 8 / widths[w] - first; n++) {
                    const unsigned width = widths[w];
                    memset(out, fill, sizeof out);
                    pack_bits(out, first, values, n, width);
                    for (size_t i = 0; i < BYTES * 8 / width; i++) {
                        bool inside = i >= first && i < first + n;
                        unsigned mask = (1u << width) - 1, want = (inside ? values[i - first] : (unsigned)fill) & mask;
                        if (bits_at(out, i, width) != want)
                            fail_msg("element %zu after packing %zu at %zu, width %u", i, n, first, width);
                    }
                }
}

static void tails_are_cleared(void **state)
{
    (void)state;
    for (size_t w = 0; w < COUNT(widths); w++)
        for (size_t n = 0; n <= 16; n++) {
            const unsigned width = widths[w];
            uint8_t p[16];
            memset(p, 0xff, sizeof p);
            pack_clear_tail(p, n, width);
            const size_t end = (n * width + 7) / 8 * 8; /* bits up to here belong to bytes of the elements */
            for (size_t bit = 0; bit < 8 * sizeof p; bit++)
                assert_int_equal(bits_at(p, bit, 1), !(bit >= n * width && bit < end));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_unpacks),
        cmocka_unit_test(parts_unpack),
        cmocka_unit_test(parts_pack_and_leave_the_rest),
        cmocka_unit_test(tails_are_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
