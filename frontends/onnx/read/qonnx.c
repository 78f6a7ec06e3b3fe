/* QONNX's quantizers as words of ours: a quantizer and, behind it, the numbers of its codes.
 *
 * QONNX divides by the scale, adds the zero point, cuts to the codes, rounds, and goes back.  Where the zero point is 0 that
 * is quantize_linear to the bit.  Where it is not, ties fall otherwise, for quantize_linear rounds before it adds: then the
 * quotient and the sum are calls of their own, and what is quantized has scale 1. */
#include <math.h>
#include <strings.h>

#include "frontends/onnx/file/float_formats.h"
#include "frontends/onnx/read/theirs.h"
#include "ops/card/make.h"
#include "ops/quant/quantize.h"

enum { X, SCALE, ZERO, BITS, QUANT_OPERANDS }; /* of Quant, and the first of Trunc */
enum { MOST_BITS = 32 };

/* How rounding is called there. */
static Status rounding_of(const Call *c, const char *unsaid, int *rounding)
{
    static const struct {
        const char *name;
        int rounding;
    } modes[] = {
        { "ROUND", ROUND_RNE }, { "HALF_EVEN", ROUND_RNE }, { "CEIL", ROUND_CEIL },          { "FLOOR", ROUND_FLOOR },
        { "UP", ROUND_AWAY },   { "DOWN", ROUND_ZERO },     { "ROUND_TO_ZERO", ROUND_ZERO },
    };
    const char *said = call_string(c, "rounding_mode", unsaid);
    for (size_t i = 0; i < COUNT(modes); i++)
        if (strcasecmp(modes[i].name, said) == 0) {
            *rounding = modes[i].rounding;
            return OK;
        }
    return theirs_fail(c, "rounding_mode %s is none of ours: ROUND, CEIL, FLOOR, UP, DOWN", said);
}

/* The one number that an operand is. */
static Status number_of(const Call *c, int i, const char *word, double *value)
{
    Status status = OK;
    const Tensor *t = theirs_values(c, i, word, &status);
    if (!t)
        return status;
    if (tensor_elements(t) != 1)
        return theirs_fail(c, "its %s is of %" PRId64 " numbers, not one", word, tensor_elements(t));
    *value = tensor_get_f64(t, 0);
    return OK;
}

static Status width_of(const Call *c, int i, int *bits)
{
    double b;
    TRY(number_of(c, i, "bit width", &b));
    if (!(b >= 1 && b <= MOST_BITS) || b != rint(b))
        return theirs_fail(c, "a bit width of %g is no whole number from 1 to %d", b, MOST_BITS);
    *bits = (int)b;
    return OK;
}

static Status codes_of(const Call *c, int bits, Codes *codes)
{
    const bool is_signed = call_int(c, "signed", 1) != 0, narrow = call_int(c, "narrow", 1) != 0;
    const int64_t all = (int64_t)1 << bits, half = all / 2;
    double least, largest;
    if (!is_signed && bits > 16)
        return theirs_fail(c, "unsigned codes of %d bits: there are at most 16", bits);
    codes->type = bits > 16 ? I32 : bits > 8 ? (is_signed ? I16 : U16) : is_signed ? I8 : U8;
    codes->least = !is_signed ? 0 : narrow ? 1 - half : -half;
    codes->largest = is_signed ? half - 1 : narrow ? all - 2 : all - 1;
    code_range(codes->type, &least, &largest);
    if (codes->least == least && codes->largest == largest)
        codes->least = codes->largest = 0; /* those of the type */
    else if (codes->least == codes->largest)
        return theirs_fail(c, "narrow codes of one bit: there is one alone");
    return OK;
}

/* ---- scales ---- */

/* The zero points beside the scales; *zero null: all are 0. */
static Status zeros_of(const Call *c, const Codes *codes, const Beside *to, Node **zero)
{
    Status status = OK;
    double least, largest;
    bool any = false;
    const Tensor *z = theirs_values(c, ZERO, "zero point", &status);
    *zero = NULL;
    if (!z)
        return status;
    if (tensor_elements(z) != 1 && tensor_elements(z) != to->n)
        return theirs_fail(c, "%" PRId64 " zero points beside %" PRId64 " scales", tensor_elements(z), to->n);
    code_limits(codes->type, codes->least, codes->largest, &least, &largest);
    Types *types = &call_ir(c)->types;
    Tensor *own = tensor_new(call_arena(c),
                             to->axis < 0 ? type_scalar(types, codes->type) : type_vector(types, codes->type, to->n));
    for (int64_t i = 0; i < to->n; i++) {
        const double v = tensor_get_f64(z, tensor_elements(z) == 1 ? 0 : i);
        if (v != rint(v) || v < least || v > largest)
            return theirs_fail(c, "a zero point of %g is none of the codes from %g to %g", v, least, largest);
        any |= v != 0;
        tensor_set_f64(own, i, v);
    }
    *zero = any ? build_const(c->build, own) : NULL;
    return OK;
}

/* ---- the calls ---- */

/* Codes -1 and 1 by the sign, 1 for 0; gradients go straight through. */
static Node *by_sign(const Call *c, const Beside *to)
{
    const Codes codes = { I8, -1, 1 };
    Build *b = c->build;
    Node *x = call_in(c, X), *size = call_in(c, SCALE), *scale = theirs_laid(c, size, to);
    Node *above = CALL(b, greater_or_equal, x, build_scalar(b, F32, 0));
    Node *sign = CALL(b, straight, CALL(b, where, above, size, CALL(b, neg, size)), x);
    return theirs_numbers(c, theirs_quantize(c, sign, scale, NULL, to, &codes, ROUND_RNE, MASK_BY_CODE), scale, NULL,
                          to);
}

Status read_qonnx_bipolar(Call *c)
{
    Beside to;
    TRY(theirs_beside(c, call_in(c, SCALE), &to));
    c->result = by_sign(c, &to);
    return OK;
}

Status read_qonnx_quant(Call *c)
{
    static const Beside one = { -1, 1 };
    Build *b = c->build;
    int bits, rounding;
    Beside to;
    Codes codes = { I8, 0, 0 };
    Node *zero;
    if (!call_attr(c, "signed") || !call_attr(c, "narrow"))
        return call_fail(c, "does not say whether its codes are signed, and narrow");
    TRY(theirs_beside(c, call_in(c, SCALE), &to));
    TRY(width_of(c, BITS, &bits));
    TRY(rounding_of(c, "ROUND", &rounding));
    const bool signs = bits == 1 && call_int(c, "signed", 1);
    if (!signs)
        TRY(codes_of(c, bits, &codes));
    TRY(zeros_of(c, &codes, &to, &zero));
    if (signs && zero)
        return theirs_fail(c, "one signed bit has no zero point but 0");
    if (signs) {
        c->result = by_sign(c, &to);
        return OK;
    }
    Node *x = call_in(c, X), *scale = theirs_laid(c, call_in(c, SCALE), &to), *q;
    if (zero) {
        Node *shifted = CALL(b, add, CALL(b, div, x, call_in(c, SCALE)), call_in(c, ZERO));
        q = theirs_quantize(c, shifted, build_scalar(b, F32, 1), NULL, &one, &codes, rounding, MASK_BY_CODE);
    } else {
        q = theirs_quantize(c, x, scale, NULL, &to, &codes, rounding, MASK_BY_CODE);
    }
    c->result = theirs_numbers(c, q, scale, zero, &to);
    return OK;
}

/* How many bits go: by two scales since version 2, by two widths before. */
static Status bits_that_go(const Call *c, bool scaled, int *bits, int *gone)
{
    double before, behind;
    TRY(width_of(c, c->n_in - 1, bits));
    if (!scaled) {
        int first;
        TRY(width_of(c, BITS, &first));
        *gone = first - *bits;
        return OK;
    }
    TRY(number_of(c, SCALE, "scale", &before));
    TRY(number_of(c, c->n_in - 2, "output scale", &behind));
    if (!(before > 0 && behind > 0) || !isfinite(before) || !isfinite(behind))
        return theirs_fail(c, "its scales are %g and %g", before, behind);
    *gone = (int)rint(log2(behind / before));
    return OK;
}

/* The codes of x, shifted to the right and rounded, cut to those of fewer bits where there is a scale of them. */
Status read_qonnx_trunc(Call *c)
{
    static const Codes wide = { I32, 0, 0 };
    const bool scaled = c->n_in == 6;
    Build *b = c->build;
    int bits, gone, rounding;
    Beside to;
    Codes codes;
    Node *zero;
    if (!call_attr(c, "narrow"))
        call_set_int(c, "narrow", 0);
    TRY(theirs_beside(c, call_in(c, SCALE), &to));
    TRY(bits_that_go(c, scaled, &bits, &gone));
    TRY(rounding_of(c, "FLOOR", &rounding));
    TRY(codes_of(c, bits, &codes));
    TRY(zeros_of(c, &codes, &to, &zero));
    if (zero)
        return theirs_fail(c, "a zero point other than 0");
    if (to.axis >= 0)
        return theirs_fail(c, "scales along an axis: there is one for all");
    Node *scale = theirs_laid(c, call_in(c, SCALE), &to), *one = build_scalar(b, F32, 1);
    Node *whole = theirs_quantize(c, call_in(c, X), scale, NULL, &to, &wide, ROUND_RNE, MASK_NONE);
    Node *parts = theirs_numbers(c, whole, build_scalar(b, F32, ldexp(1, -gone)), NULL, &to);
    Node *q = theirs_quantize(c, parts, one, NULL, &to, scaled ? &codes : &wide, rounding, MASK_BY_CODE);
    c->result = theirs_numbers(c, q, scaled ? theirs_laid(c, call_in(c, 4), &to) : scale, NULL, &to);
    return OK;
}

/* ---- floats of few bits ---- */

Status read_qonnx_float(Call *c)
{
    static const char *const words[] = { "exponent width", "mantissa width", "exponent bias", "largest number" };
    double said[COUNT(words)];
    int rounding;
    Beside to;
    TRY(theirs_beside(c, call_in(c, SCALE), &to));
    TRY(rounding_of(c, "ROUND", &rounding));
    for (size_t i = 0; i < COUNT(words); i++)
        TRY(number_of(c, SCALE + 1 + (int)i, words[i], &said[i]));
    if (rounding != ROUND_RNE)
        return theirs_fail(c, "floats are rounded to the nearest, ties to even, alone");
    if (!call_int(c, "saturation", 1))
        return theirs_fail(c, "what is beyond the largest number would not be that: saturation=0");
    if (!call_int(c, "has_subnormal", 1))
        return theirs_fail(c, "a format without subnormal numbers: has_subnormal=0");
    const FloatFormat *f = float_format_said(said[0], said[1], said[2], said[3]);
    if (!f)
        return theirs_fail(
            c, "no format of ours has %g bits of exponent, %g of mantissa, bias %g and %g as the largest number",
            said[0], said[1], said[2], said[3]);
    const Codes codes = { f->type, 0, 0 };
    Node *scale = theirs_laid(c, call_in(c, SCALE), &to);
    Node *q = theirs_quantize(c, call_in(c, X), scale, NULL, &to, &codes, ROUND_RNE, MASK_BY_CODE);
    c->result = theirs_numbers(c, q, scale, NULL, &to);
    return OK;
}
