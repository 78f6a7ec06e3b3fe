/* Floats of few bits as QONNX's FloatQuant says them. */
#ifndef FRONTENDS_ONNX_FILE_FLOAT_FORMATS_H
#define FRONTENDS_ONNX_FILE_FLOAT_FORMATS_H

#include <stdbool.h>

#include "ir/type.h"

typedef struct FloatFormat {
    DType type;
    int exponent, mantissa, bias; /* bits of both, and what is subtracted from the exponent */
    double most;                  /* the largest number */
    bool has_inf, has_nan;
} FloatFormat;

/* The format of a type; null: none. */
const FloatFormat *float_format_of(DType type);

/* The format with these bits, this bias and this largest number; null: none of ours. */
const FloatFormat *float_format_said(double exponent, double mantissa, double bias, double most);

#endif
