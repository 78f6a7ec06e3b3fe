#include "unit/check.h"

#include <string.h>

#include "base/pack.h"

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

static int as_signed(unsigned v, unsigned width)
{
    return v >> (width - 1) ? (int)v - (1 << width) : (int)v;
}

static void every_byte_unpacks(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t in = (uint8_t)byte, u[4];
        int8_t s[4];
        unpack_u4(u, &in, 0, 2);
        unpack_i4(s, &in, 0, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(u[i], bits_at(&in, i, 4));
            assert_int_equal(s[i], as_signed(bits_at(&in, i, 4), 4));
        }
        unpack_u2(u, &in, 0, 4);
        unpack_i2(s, &in, 0, 4);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(u[i], bits_at(&in, i, 2));
            assert_int_equal(s[i], as_signed(bits_at(&in, i, 2), 2));
        }
    }
    assert_int_equal(packed_u4((const uint8_t[]){ 0x21 }, 0), 1); /* the first element is the low half */
}

enum { BYTES = 16 };

static void parts_unpack(void **state)
{
    (void)state;
    uint8_t in[BYTES], u[4 * BYTES + 1];
    int8_t s[4 * BYTES + 1];
    for (size_t i = 0; i < BYTES; i++)
        in[i] = (uint8_t)(i * 151 + 29);
    for (unsigned width = 2; width <= 4; width += 2)
        for (size_t first = 0; first < 9; first++)
            for (size_t n = 0; n <= BYTES * 8 / width - first; n++) {
                u[n] = 77, s[n] = 77;
                (width == 4 ? unpack_u4 : unpack_u2)(u, in, first, n);
                (width == 4 ? unpack_i4 : unpack_i2)(s, in, first, n);
                for (size_t i = 0; i < n; i++) {
                    unsigned want = bits_at(in, first + i, width);
                    if (u[i] != want || s[i] != as_signed(want, width))
                        fail_msg("element %zu of %zu from %zu, width %u: %d and %d", i, n, first, width, u[i], s[i]);
                }
                assert_int_equal(u[n], 77);
                assert_int_equal(s[n], 77);
            }
}

static void parts_pack_and_leave_the_rest(void **state)
{
    (void)state;
    uint8_t values[4 * BYTES], out[BYTES];
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (uint8_t)(i * 91 + 200); /* high bits set: they must not leak */
    for (unsigned width = 2; width <= 4; width += 2)
        for (int fill = 0; fill < 256; fill += 255)
            for (size_t first = 0; first < 9; first++)
                for (size_t n = 0; n <= BYTES * 8 / width - first; n++) {
                    memset(out, fill, sizeof out);
                    (width == 4 ? pack_4 : pack_2)(out, first, values, n);
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
    for (unsigned width = 2; width <= 4; width += 2)
        for (size_t n = 0; n <= 16; n++) {
            uint8_t p[8];
            memset(p, 0xff, sizeof p);
            pack_clear_tail(p, n, width);
            size_t whole = (n * width + 7) / 8 * 8 / width;
            for (size_t i = 0; i < 64 / width; i++)
                assert_int_equal(bits_at(p, i, width), i >= n && i < whole ? 0 : (1u << width) - 1);
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
