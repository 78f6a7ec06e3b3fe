#include "ir/text/literal.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number_text.h"

static uint64_t element_bits(const Tensor *t, int64_t i)
{
    const size_t size = (size_t)dtype_bits(t->type->dtype) / 8;
    uint64_t word = 0;
    memcpy(&word, (const char *)t->data + (size_t)i * size, size);
    return word;
}

static void set_element_bits(Tensor *t, int64_t i, uint64_t word)
{
    const size_t size = (size_t)dtype_bits(t->type->dtype) / 8;
    memcpy((char *)t->data + (size_t)i * size, &word, size);
}

static void add_bits(Text *out, uint64_t word, int bits)
{
    text_printf(out, "0x%0*" PRIx64, bits / 4, word);
}

void literal_f32(Text *out, float value)
{
    char digits[NUMBER_TEXT];
    if (isfinite(value)) {
        text_bytes(out, digits, f32_to_text(digits, value));
        return;
    }
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    add_bits(out, word, 32);
}

static void literal_f64(Text *out, double value)
{
    char digits[NUMBER_TEXT];
    text_bytes(out, digits, f64_to_text(digits, value));
}

/* The f32 with the shortest decimal among those that round to element i of a narrow float tensor; whole numbers
 * and powers of two are said exactly. */
static float plainest(const Tensor *t, int64_t i)
{
    const float value = (float)tensor_get_f64(t, i);
    char digits[NUMBER_TEXT], word[8] = { 0 };
    Tensor probe = { .type = t->type, .data = word, .bytes = sizeof word };
    if (value == truncf(value) || t->type->dtype == F8E8M0)
        return value;
    tensor_set_f64(&probe, 0, DBL_MAX);
    const double most = tensor_get_f64(&probe, 0); /* a larger decimal would be it only because it saturates */
    for (int p = 0; p < 8; p++) {
        float near;
        const int n = snprintf(digits, sizeof digits, "%.*e", p, (double)value);
        if (p)
            digits[signbit(value) ? 2 : 1] = '.'; /* whatever the locale says */
        if (!f32_from_text(digits, (size_t)n, &near))
            continue;
        tensor_set_f64(&probe, 0, near);
        if (tensor_get_f64(&probe, 0) == (double)value && fabs((double)near) <= most)
            return near;
    }
    return value;
}

void literal_element(Text *out, const Tensor *t, int64_t i)
{
    const DType d = t->type->dtype;
    if (d == BOOL)
        text_add(out, tensor_get_i64(t, i) ? "true" : "false");
    else if (d == U64)
        text_printf(out, "%" PRIu64, (uint64_t)tensor_get_i64(t, i));
    else if (!dtype_is_float(d))
        text_printf(out, "%" PRId64, tensor_get_i64(t, i));
    else if (!isfinite(tensor_get_f64(t, i)))
        add_bits(out, element_bits(t, i), dtype_bits(d));
    else if (d == F64)
        literal_f64(out, tensor_get_f64(t, i));
    else
        literal_f32(out, d == F32 ? (float)tensor_get_f64(t, i) : plainest(t, i));
}

static bool is_hex(Str s)
{
    return s.n > 2 && s.p[0] == '0' && s.p[1] == 'x';
}

/* The magnitude and sign of an integer as written. */
static bool read_integer(Str s, uint64_t *magnitude, bool *negative)
{
    *negative = s.n && s.p[0] == '-';
    return is_hex(s) ? parse_bits(s.p, s.n, magnitude) : u64_from_text(s.p + *negative, s.n - *negative, magnitude);
}

bool literal_read_i64(Str s, int64_t *value)
{
    uint64_t magnitude;
    bool negative;
    if (!read_integer(s, &magnitude, &negative) || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

/* Whether infinity was meant, or is what a decimal too large became. */
static bool says_infinity(Str s)
{
    return str_is(s, "inf") || str_is(s, "-inf");
}

static bool read_f64(Str s, double *value)
{
    return f64_from_text(s.p, s.n, value) && (!isinf(*value) || says_infinity(s));
}

bool literal_read_f32(Str s, float *value)
{
    uint64_t word;
    if (!is_hex(s))
        return f32_from_text(s.p, s.n, value) && (!isinf(*value) || says_infinity(s));
    if (!parse_bits(s.p, s.n, &word) || word > UINT32_MAX)
        return false;
    const uint32_t bits = (uint32_t)word;
    memcpy(value, &bits, sizeof bits);
    return true;
}

static bool store_integer(Str s, Tensor *t, int64_t i)
{
    const DType d = t->type->dtype;
    const int bits = dtype_bits(d) - (dtype_class(d) == CLASS_INT);
    const uint64_t most = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    uint64_t magnitude;
    bool negative;
    if (!read_integer(s, &magnitude, &negative))
        return false;
    if (dtype_class(d) == CLASS_UINT && negative && magnitude)
        return false;
    if (magnitude > most + (negative && dtype_class(d) == CLASS_INT))
        return false;
    tensor_set_i64(t, i, (int64_t)(negative ? 0 - magnitude : magnitude));
    return true;
}

static bool store_bool(Str s, Tensor *t, int64_t i)
{
    const bool yes = str_is(s, "true") || str_is(s, "1");
    tensor_set_i64(t, i, yes);
    return yes || str_is(s, "false") || str_is(s, "0");
}

/* A narrow float is rounded from the f32 nearest to the decimal: that is what was printed. */
static bool store_float(Str s, Tensor *t, int64_t i)
{
    const DType d = t->type->dtype;
    const int bits = dtype_bits(d);
    uint64_t word;
    double value;
    float narrow;
    if (is_hex(s)) {
        if (bits < 8 || !parse_bits(s.p, s.n, &word) || (bits < 64 && word >> bits))
            return false;
        set_element_bits(t, i, word);
        return true;
    }
    if (d == F64) {
        if (!read_f64(s, &value))
            return false;
    } else {
        if (!literal_read_f32(s, &narrow))
            return false;
        value = narrow;
    }
    tensor_set_f64(t, i, value);
    const double got = tensor_get_f64(t, i);
    if (isfinite(value))
        return isfinite(got) && (fabs(got - value) <= fabs(got) * 0.25 || fabs(value) < 1);
    return isnan(value) ? isnan(got) : got == value;
}

bool literal_read_element(Str text, Tensor *t, int64_t i)
{
    const DType d = t->type->dtype;
    if (d == BOOL)
        return store_bool(text, t, i);
    return dtype_is_float(d) ? store_float(text, t, i) : d != STRING && store_integer(text, t, i);
}
