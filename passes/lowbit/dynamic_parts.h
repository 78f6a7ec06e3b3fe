/* What making codes of a value that is at hand consists of: its layout, its scales, how it is turned. */
#ifndef PASSES_LOWBIT_DYNAMIC_PARTS_H
#define PASSES_LOWBIT_DYNAMIC_PARTS_H

#include "passes/lowbit/dynamic_codes.h"
#include "passes/quant/grain.h"

typedef struct Dynamic {
    Build *b;
    Node *x, *draw;
    const Quantizer *q;
    int axis;
    QuantGrain grain; /* blocks along `axis`; quant_whole: one scale for all */
    DType code;
    int64_t lo, hi; /* of integers */
    double most;    /* the largest code */
    int top;        /* 2^top is the largest power of two that is not above it */
} Dynamic;

/* Whether the quantizer says that of a field. */
bool dynamic_says(const Dynamic *d, QuantField field, QuantValue value);

/* "has no codes ..: wanted are ..", and what to write instead. */
Status dynamic_refuse(const Dynamic *d, const char *wanted, const char *instead);

/* The scales of a value: as quantizers read them, and whether they are f32. */
Node *dynamic_scale(Dynamic *d);

/* The elements of a value that is turned along its axis by a Hadamard matrix of 16 with signs that a state holds. */
Node *dynamic_turned(Dynamic *d);

/* x as codes by a scale, rounded as said or (`plain`) to the nearest; and the numbers of codes. */
Node *dynamic_quantized(Dynamic *d, Node *scale, bool plain);
Node *dynamic_number(Dynamic *d, Node *codes, Node *scale);

#endif
