/* NNCF's FakeQuantize, which is OpenVINO's, as words of ours: a quantizer and, behind it, the numbers of its codes.
 *
 * It cuts x to a range, and rounds to one of so many levels in it.  Codes are whole numbers beside a whole zero point, so 0 has
 * to be one of the levels, and the levels have to be those of bits.  Ties go to the even code as NNCF counts codes, from that
 * of 0; OpenVINO counts from the low end, so where 0 is an odd level the two part, at ties alone. */
#include <math.h>

#include "frontends/onnx/read/theirs.h"
#include "ops/quant/quantize.h"

enum { LOW = 1, HIGH, OUT_LOW, OUT_HIGH, ENDS };
enum { MOST_BITS = 16 };

static const char *const ends[ENDS] = { [LOW] = "input_low", "input_high", "output_low", "output_high" };

/* The bits whose codes the levels are: all, or all but one. */
static Status width_of(const Call *c, int64_t levels, int *bits)
{
    for (*bits = 1; *bits <= MOST_BITS; ++*bits) {
        const int64_t all = (int64_t)1 << *bits;
        if (levels == all || (levels == all - 1 && *bits > 1))
            return OK;
    }
    return theirs_fail(c, "levels=%" PRId64 " are not those of 1 to %d bits: 2^b, or 2^b - 1", levels, MOST_BITS);
}

/* Reads the ends of both ranges, which have to agree. */
static Status ranges_of(const Call *c, const Tensor *range[ENDS], Beside *to)
{
    TRY(theirs_beside(c, call_in(c, LOW), to));
    for (int e = LOW; e < ENDS; e++) {
        Status status = OK;
        Beside other;
        range[e] = theirs_values(c, e, ends[e], &status);
        TRY(status);
        TRY(theirs_beside(c, call_in(c, e), &other));
        if (other.axis != to->axis || other.n != to->n)
            return theirs_fail(c, "%s does not lie as input_low does", ends[e]);
    }
    for (int64_t i = 0; i < to->n; i++)
        for (int e = LOW; e <= HIGH; e++) {
            const double in = tensor_get_f64(range[e], i), out = tensor_get_f64(range[e + HIGH], i);
            if (in != out)
                return theirs_fail(c, "%s is %g and %s is %g: codes have one scale", ends[e], in, ends[e + HIGH], out);
        }
    return OK;
}

/* The scale of each range, and the level that is 0. */
static Status grid_of(const Call *c, const Tensor *range[ENDS], int64_t levels, Tensor *scale, double *level)
{
    for (int64_t i = 0; i < tensor_elements(scale); i++) {
        const double low = tensor_get_f64(range[LOW], i), high = tensor_get_f64(range[HIGH], i);
        if (!(low <= 0 && high >= 0 && low < high) || !isfinite(low) || !isfinite(high))
            return theirs_fail(c, "no codes for a range from %g to %g: 0 has to lie in it", low, high);
        const double step = (high - low) / (double)(levels - 1), at = -low / step;
        if (!((float)step > 0) || !isfinite((float)step))
            return theirs_fail(c, "the levels of the range from %g to %g lie %g apart, which is no f32", low, high,
                               step);
        level[i] = rint(at);
        if (fabs(at - level[i]) > ldexp((double)levels, -20)) /* ends are f32: more is no rounding of theirs */
            return theirs_fail(c, "0 is no level of the range from %g to %g: it would be level %g", low, high, at);
        tensor_set_f64(scale, i, step);
    }
    return OK;
}

/* Signed codes about 0 where all ranges are even about it, else codes from 0 on; whether there are zero points. */
static bool codes_of(int64_t levels, int bits, const double *level, int64_t n, Codes *codes)
{
    const int64_t half = ((int64_t)1 << bits) / 2, middle = levels % 2 ? half - 1 : half;
    bool even = true, any = false;
    double least, largest;
    for (int64_t i = 0; i < n; i++) {
        even &= level[i] == (double)middle;
        any |= level[i] != 0;
    }
    if (even)
        *codes = (Codes){ bits > 8 ? I16 : I8, -middle, half - 1 };
    else
        *codes = (Codes){ bits > 8 ? U16 : U8, 0, levels - 1 };
    code_range(codes->type, &least, &largest);
    if ((double)codes->least == least && (double)codes->largest == largest)
        codes->least = codes->largest = 0; /* those of the type */
    return any && !even;
}

Status read_nncf_fake(Call *c)
{
    const int64_t levels = call_int(c, "levels", 0);
    const Tensor *range[ENDS];
    Types *types = &call_ir(c)->types;
    Beside to;
    Codes codes;
    int bits;
    TRY(width_of(c, levels, &bits));
    TRY(ranges_of(c, range, &to));
    const bool one = to.axis < 0;
    Tensor *scale = tensor_new(call_arena(c), one ? type_scalar(types, F32) : type_vector(types, F32, to.n));
    double *level = NEWS(call_arena(c), double, to.n);
    TRY(grid_of(c, range, levels, scale, level));
    Node *zero = NULL, *step = build_const(c->build, scale);
    if (codes_of(levels, bits, level, to.n, &codes)) {
        Tensor *own =
            tensor_new(call_arena(c), one ? type_scalar(types, codes.type) : type_vector(types, codes.type, to.n));
        for (int64_t i = 0; i < to.n; i++)
            tensor_set_f64(own, i, level[i]);
        zero = build_const(c->build, own);
    }
    Node *q = theirs_quantize(c, call_in(c, 0), step, zero, &to, &codes, ROUND_RNE, MASK_BY_CODE);
    c->result = theirs_numbers(c, q, step, zero, &to);
    return OK;
}
