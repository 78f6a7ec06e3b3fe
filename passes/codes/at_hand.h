/* Codes whose scales are of what is at hand: of the value itself, each time anew. */
#ifndef PASSES_CODES_AT_HAND_H
#define PASSES_CODES_AT_HAND_H

#include "passes/codes/blocks.h"
#include "passes/recipe/quantizer.h"

typedef struct AtHand {
    Build *b;
    Node *x, *draw; /* draw: a number of [0, 1) for each element, for what is rounded by chance */
    const Quantizer *q;
    int axis;         /* along which blocks lie */
    QuantGrain grain; /* quant_whole: one scale for all */
    DType code;
    int64_t lo, hi; /* of integers */
    double most;    /* the largest code */
    int top;        /* 2^top is the largest power of two that is not above it */
    bool tells;     /* scales of E4M3 are wanted in the form of files, too */
    Node *told;     /* them, as numbers of codes times one number; null: the scales are told as they are */
} AtHand;

/* Whether the quantizer says that of a field. */
bool at_hand_says(const AtHand *h, QuantField field, QuantValue value);

/* The type of the codes of its format, and the least and largest of them. */
void at_hand_open(AtHand *h);

/* The scales of a value, as quantizers read them. */
Node *at_hand_scale(AtHand *h);

/* x as codes by a scale, rounded as said or (`plain`) to the nearest; and the numbers of codes. */
Node *at_hand_codes(AtHand *h, Node *scale, bool plain);
Node *at_hand_number(AtHand *h, Node *codes, Node *scale);

#endif
