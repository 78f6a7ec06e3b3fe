#include "frontends/onnx/file/float_formats.h"

#include <stddef.h>

#include "base/status.h"

static const FloatFormat formats[] = {
    { F8E4M3, 4, 3, 7, 448, false, true },     { F8E5M2, 5, 2, 15, 57344, true, true },
    { F8E4M3FNUZ, 4, 3, 8, 240, false, true }, { F8E5M2FNUZ, 5, 2, 16, 57344, false, true },
    { F6E2M3, 2, 3, 1, 7.5, false, false },    { F6E3M2, 3, 2, 3, 28, false, false },
    { F4E2M1, 2, 1, 1, 6, false, false },
};

const FloatFormat *float_format_of(DType type)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (formats[i].type == type)
            return &formats[i];
    return NULL;
}

const FloatFormat *float_format_said(double exponent, double mantissa, double bias, double most)
{
    for (size_t i = 0; i < COUNT(formats); i++) {
        const FloatFormat *f = &formats[i];
        if (f->exponent == exponent && f->mantissa == mantissa && f->bias == bias && f->most == most)
            return f;
    }
    return NULL;
}
