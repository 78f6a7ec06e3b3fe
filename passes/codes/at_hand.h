/* Codes whose scales are of what is at hand: of the value itself, each time anew. */
#ifndef PASSES_CODES_AT_HAND_H
#define PASSES_CODES_AT_HAND_H

#include "passes/codes/blocks.h"
#include "passes/recipe/quantizer.h"

typedef struct AtHand {
    Build *b;
    Node *x, *draw; /* draw: a number of [0, 1) for each element, for what is rounded by chance or by ms-eden */
    const Quantizer *q;
    int axis;         /* along which blocks lie */
    QuantGrain grain; /* quant_whole: one scale for all */
    DType code;
    int64_t lo, hi; /* of integers */
    double most;    /* the largest code */
    int top;        /* 2^top is the largest power of two that is not above it */
    bool tells;     /* scales of E4M3 are wanted in the form of files, too */
    /* What codes are read with, where it is another scale than they were made with: one of E4M3 as numbers of codes of
     * its own, that of ms-eden; else null. */
    Node *told;
} AtHand;

/* Whether the quantizer says that of a field. */
bool at_hand_says(const AtHand *h, QuantField field, QuantValue value);

/* The type of the codes of its format, and the least and largest of them. */
void at_hand_open(AtHand *h);

/* The scales of a value, as quantizers read them. */
Node *at_hand_scale(AtHand *h);

/* By ms-eden: the scales that codes are read with which were made with `scale`, that is `block` (before it is rounded) or, where
 * `all` is there, block rounded to E4M3 times all. */
Node *at_hand_unbiased(AtHand *h, Node *scale, Node *block, Node *all);

/* What shares a scale as a row of f32, and the numbers that its codes by that scale stand for. */
typedef struct HandRows {
    Node *x, *numbers;
} HandRows;
HandRows at_hand_rows(AtHand *h, Node *scale);

/* The products of the elements of two such matrices, added up by rows: one for each scale, in their shape. */
Node *at_hand_sum(AtHand *h, Node *x, Node *y, const Node *scale);

/* x as codes by a scale, rounded as said or (`plain`) to the nearest; and the numbers of codes. */
Node *at_hand_codes(AtHand *h, Node *scale, bool plain);
Node *at_hand_number(AtHand *h, Node *codes, Node *scale);

#endif
