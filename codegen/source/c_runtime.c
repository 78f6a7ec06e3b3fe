/* What a source computes with. */
#include <string.h>

#include "codegen/source/c_parts.h"

/* Functions, each with those below it that it calls: those that nobody calls are not printed. */
static const struct {
    const char *call, *text;
} runtime[] = {
    { "round_shift(", "/* v / 2^shift, to the nearest integer; ties go to the even one. */\n"
                      "static uint64_t round_shift(uint64_t v, int shift)\n"
                      "{\n"
                      "    if (shift == 0) {\n"
                      "        return v;\n"
                      "    }\n"
                      "    return (v + (((uint64_t)1 << (shift - 1)) - 1) + ((v >> shift) & 1)) >> shift;\n"
                      "}\n" },
    { "add_floats(",
      "/* The sum of two floats of 32 bits that are not below 0, as their bits. */\n"
      "static uint32_t add_floats(uint32_t a, uint32_t b)\n"
      "{\n"
      "    const uint32_t large = a > b ? a : b, small = a > b ? b : a;\n"
      "    const int e = large >> 23 ? (int)(large >> 23) : 1, apart = e - (small >> 23 ? (int)(small >> 23) : 1);\n"
      "    uint64_t u = (uint64_t)(large >> 23 ? large % 8388608 + 8388608 : large) << 30;\n"
      "    uint64_t v = (uint64_t)(small >> 23 ? small % 8388608 + 8388608 : small) << 30;\n"
      "    u += apart > 60 ? v != 0 : (v >> apart | ((v >> apart << apart) != v));\n"
      "    const int drop = u >> 54 ? 31 : 30;\n"
      "    return (uint32_t)(((uint64_t)(e + drop - 31) << 23) + round_shift(u, drop));\n"
      "}\n" },
    { "nearest(", "static int64_t nearest(int64_t v, int shift)\n"
                  "{\n"
                  "    const uint64_t a = round_shift(v < 0 ? (uint64_t)-v : (uint64_t)v, shift);\n"
                  "    return v < 0 ? -(int64_t)a : (int64_t)a;\n"
                  "}\n" },
    { "round_24(", "/* The nearest number of 24 significant bits: what a float of 32 bits holds of v. */\n"
                   "static int64_t round_24(int64_t v)\n"
                   "{\n"
                   "    uint64_t a = v < 0 ? (uint64_t)-v : (uint64_t)v;\n"
                   "    int drop = 0;\n"
                   "    while (a >> drop >> 24) {\n"
                   "        drop++;\n"
                   "    }\n"
                   "    a = round_shift(a, drop) << drop;\n"
                   "    return v < 0 ? -(int64_t)a : (int64_t)a;\n"
                   "}\n" },
    { "requantize(",
      "/* sum * multiplier / 2^shift, to the nearest integer.  The model was trained with multipliers that are floats:\n"
      " * rounding to 24 bits where those do gives the same codes. */\n"
      "static int64_t requantize(int32_t sum, int32_t multiplier, int shift)\n"
      "{\n"
      "    return nearest(round_24(round_24(sum) * multiplier), shift);\n"
      "}\n" },
    { "scaled(",
      "/* v * multiplier / 2^31, to the nearest integer, ties upwards; then / 2^shift, to the nearest, ties away from 0.\n"
      " * Where the shift is below 0, v is first multiplied by 2^-shift, within 32 bits. */\n"
      "static int32_t scaled(int64_t v, int32_t multiplier, int shift)\n"
      "{\n"
      "    const int64_t unit = INT64_C(2147483648), grown = shift < 0 ? v * ((int64_t)1 << -shift) : v;\n"
      "    const int64_t u = grown < -unit ? -unit : grown >= unit ? unit - 1 : grown;\n"
      "    const int64_t high = (u * multiplier + unit / 2 + unit / 2 * (unit * 2)) / unit - unit;\n"
      "    const int right = shift > 0 ? shift : 0;\n"
      "    const uint64_t size = (uint64_t)(high < 0 ? -high : high) + ((uint64_t)1 << right >> 1);\n"
      "    return (int32_t)(high < 0 ? -(int64_t)(size >> right) : (int64_t)(size >> right));\n"
      "}\n" },
    { "quotient(", "/* v / by, rounded to 24 bits: what is given, by 2^bits. */\n"
                   "static int64_t quotient(int64_t v, int64_t by, int *bits)\n"
                   "{\n"
                   "    uint64_t a = v < 0 ? (uint64_t)-v : (uint64_t)v, rest;\n"
                   "    if (a == 0) {\n"
                   "        return 0;\n"
                   "    }\n"
                   "    for (; a >> 62 == 0; ++*bits) {\n"
                   "        a <<= 1;\n"
                   "    }\n"
                   "    rest = a % (uint64_t)by;\n"
                   "    a = (uint64_t)round_24((int64_t)(a / (uint64_t)by | (rest != 0)));\n"
                   "    for (; a % 2 == 0; --*bits) {\n"
                   "        a >>= 1;\n"
                   "    }\n"
                   "    return v < 0 ? -(int64_t)a : (int64_t)a;\n"
                   "}\n" },
    { "average(",
      "/* sum / count, by a divisor, and a zero point, rounded where floats of 32 bits are; then to the nearest integer.\n"
      " * The sum is so many 2^-bits, and so is what the quotients are then. */\n"
      "static int64_t average(int64_t sum, int64_t count, int64_t divisor, int bits, int64_t zero)\n"
      "{\n"
      "    int64_t v = quotient(quotient(sum, count, &bits), divisor, &bits);\n"
      "    for (; bits > 38; bits--) {\n"
      "        v = v / 2 | (v % 2 != 0);\n"
      "    }\n"
      "    for (; bits < 0; bits++) {\n"
      "        v = v > INT64_MAX / 4 || v < -INT64_MAX / 4 ? v : v * 2;\n"
      "    }\n"
      "    return nearest(round_24(v + zero * ((int64_t)1 << bits)), bits);\n"
      "}\n" },
    { "share(", "/* A float by a sum of floats, both as bits, by a divisor by 2^shift, to the nearest integer. */\n"
                "static int64_t share(uint32_t part, uint32_t sum, int64_t divisor, int shift)\n"
                "{\n"
                "    const int e = part >> 23 ? (int)(part >> 23) : 1;\n"
                "    const int64_t v = part >> 23 ? part % 8388608 + 8388608 : part;\n"
                "    return average(v, sum % 8388608 + 8388608, divisor, (int)(sum >> 23) - e - shift, 0);\n"
                "}\n" },
    { "nibble(", "/* Number i of a table that has two to a byte, -8 to 7, the lower half first. */\n"
                 "static int32_t nibble(const uint8_t *table, int i)\n"
                 "{\n"
                 "    return ((table[i / 2] >> (i % 2 * 4) & 15) ^ 8) - 8;\n"
                 "}\n" },
    { "clamp(", "static int32_t clamp(int64_t v, int32_t least, int32_t most)\n"
                "{\n"
                "    return v < least ? least : v > most ? most : (int32_t)v;\n"
                "}\n" },
};

static const char float_runtime[] =
    "/* The code of a number: to the nearest, ties to even. */\n"
    "static int32_t quantize(float number, float scale, int32_t zero, int32_t least, int32_t most)\n"
    "{\n"
    "    const float v = number / scale;\n"
    "    if (!(v > (float)(least - zero))) {\n"
    "        return least;\n"
    "    }\n"
    "    if (v >= (float)(most - zero)) {\n"
    "        return most;\n"
    "    }\n"
    "    int32_t n = (int32_t)v;\n"
    "    const float rest = v - (float)n;\n"
    "    n += rest > 0.5f || (rest == 0.5f && n % 2 != 0);\n"
    "    n -= rest < -0.5f || (rest == -0.5f && n % 2 != 0);\n"
    "    return n + zero;\n"
    "}\n";

void c_print_runtime(Text *out, const char *code)
{
    bool called[COUNT(runtime)];
    for (size_t i = COUNT(runtime); i-- > 0;) {
        called[i] = strstr(code, runtime[i].call) != NULL;
        for (size_t k = i + 1; k < COUNT(runtime) && !called[i]; k++)
            called[i] = called[k] && strstr(runtime[k].text, runtime[i].call);
    }
    for (size_t i = 0; i < COUNT(runtime); i++)
        if (called[i])
            text_printf(out, "\n%s", runtime[i].text);
}

void c_print_float_runtime(Text *out)
{
    text_add(out, float_runtime);
}
