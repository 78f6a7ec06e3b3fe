/* What was quantized, who asked for it, and what stayed as it is and why: for reports. */
#ifndef PASSES_QUANT_LEDGER_H
#define PASSES_QUANT_LEDGER_H

#include "passes/recipe/quantizer.h"
#include "passes/recipe/recipe.h"

typedef enum QuantKind {
    QUANTIZED_DATA,
    QUANTIZED_WEIGHT,
    QUANTIZED_BIAS,
    QUANT_STAYS,
    QUANT_LEFT,
    QUANT_PRODUCT
} QuantKind;

typedef struct QuantDecision {
    QuantKind kind;
    uint32_t src;
    Op op;               /* of a call that stays: what it is; otherwise what gives the value */
    const char *value;   /* its name, or that of the call's result */
    const char *where;   /* "node 3 /conv1/Conv" */
    const Quantizer *by; /* null: it stays */
    const char *asked;   /* the call that asked for it; of one that stays: null; of products of few bits: which */
    const char *asker;   /* the selector of that call alone; of one that stays: null */
    const char *said;    /* who says something of that call in particular: "lists.txt:3"; null: nobody */
    const char *why;     /* why it stays; null: it does not; of products of few bits: what they compute in */
    const char *state;   /* what its range, or its learned scale, is remembered in; null: nothing */
    int64_t elements;
    double work;      /* of a weight: multiply-adds of the products that read it; */
    const char *data; /* what they multiply it with, or what that has the scale of; null: floats */
    int data_bits;    /* of its codes */
    double within;    /* its range was known before anything was seen; 0: it was not */
    bool floats;      /* the product that asked for it is of what codes stand for (docs/quantization.md, grains) */
    bool stays;       /* its learned scale stays as it begins: nothing trains what it is for */
    bool shared;      /* it has the scale of what it is moved from */
} QuantDecision;

struct QuantLedger {
    Arena *arena;
    QuantDecision *list;
    size_t n, cap;
};

#endif
