/* Whom a quantized model is for: what it takes, as data.
 *
 * A row says it all: which codes presets stand for, what computes on codes, where products give floats, how wide sums are
 * and what a file looks like.  Passes ask for a field, never for a name. */
#ifndef PASSES_TARGET_TARGET_H
#define PASSES_TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>

/* Who predicts what becomes of the Q and DQ of a file. */
typedef enum TargetPredictor {
    PREDICTS_NOTHING,
    PREDICTS_ORT, /* frontends/onnx/ort */
    PREDICTS_TRT, /* frontends/onnx/trt */
} TargetPredictor;

/* What sums of products of codes are multiplied by on the way to codes. */
typedef enum TargetRequant {
    REQUANT_F32, /* f32(sum) times one f32 a channel, to the nearest code, ties to even */
    REQUANT_Q31, /* an integer of 31 bits and a shift, no float */
} TargetRequant;

typedef struct QuantTarget {
    const char *name;  /* what --for says */
    const char *title; /* who that is: "ONNX Runtime" */
    const char *like;  /* of a machine of somebody's own: the row that it is like, and its text; null: it is a row */
    const char *text;

    /* What presets stand for (wXaY), and what is refused. */
    bool either_data; /* codes of data are signed where something below 0 arrives, else unsigned, and 0 is 0 */
    bool signed_data; /* codes of data are signed and 0 is 0; else unsigned, with a zero point */
    bool zero_is_0;   /* a zero point that is not 0 is refused, whoever says it */
    bool float_bias;  /* biases stay float; else integers of 32 bits where products are of codes */

    const char
        *no_float_products;       /* why codes that are floats are refused of data, and of weights beside codes of data;
                                      null: they are not */
    const char *no_float_weights; /* why they are of all weights */
    const char *no_half_floats;   /* why they are of weights, if they have 4 bits */
    const char *no_e8m0; /* why scales in E8M0 are refused of data, and f32 in files of weights; null: neither */

    /* How numbers become codes: words of quantizers (passes/quantizers.def), the first of them where nobody says. */
    const char *data_rounding;   /* of data, where a file or a machine does it; null: rne */
    const char *weight_rounding; /* of weights; null: any, since their codes are stored */

    /* What computes on codes.  Lists are words of operators with a space between them; "*": all whose card says so. */
    const char *joins;      /* beside products: what adds, multiplies, pools, lays side by side */
    const char *tables;     /* functions of one number that are tables of codes */
    const char *numbers;    /* products of codes that may give floats; the others need a quantizer behind them */
    bool words_alone;       /* a call that no word of integers computes is one of floats */
    bool float_products;    /* nobody quantizes the result of a product on its behalf: whoever reads it asks */
    const char *fused_sums; /* sums that are part of a product: the operand that is no product's result is quantized */
    bool
        whole_stacks; /* stacks of matrices that are weights have one scale, and so have weights with a zero point that are
                          multiplied from the left */
    bool whole_left;    /* all that are multiplied from the left have */
    int least_channels; /* convolutions of fewer stay float unless somebody says w= or a= of them; 0: none */
    const char *alone;  /* why others are of floats, in words */
    const char *lacks;  /* why a product is */

    /* What the products of a machine of somebody's own take (passes/target/datapath.h). */
    const char *
        grains; /* "conv: conv:tensor *: *:channel", by operator what may share a scale of its weights; null: anything */
    const char *weight_bits; /* bits of weights beside codes, and of data; null: any */
    const char *data_bits;
    bool pow2_scales; /* scales are powers of two: shifts alone */

    /* The arithmetic. */
    int accumulator;       /* bits of a sum of products; 0: 32 */
    TargetRequant requant; /* of sums */
    bool no_floats;        /* nothing is computed of floats between the codes of inputs and those of results */

    /* The file. */
    bool opens_swish; /* a Swish behind a convolution is a Sigmoid and a product (open-swish) */
    bool keeps_bytes; /* weights of four bits that meet codes stay bytes: its products are of 8 bits */
    bool whole_bytes; /* data are signed bytes, all of their codes, with one scale; others are refused */
    const char
        *no_blocks; /* why weights with a scale for each block of a sum are refused beside codes; null: they are not */
    const char
        *no_groups; /* why groups of weights and scales of rows of data are refused anywhere; null: they are not */
    bool quants;    /* QONNX's operators instead of Q/DQ pairs: quantizers say their bits, weights stay numbers */
    bool spells;    /* operators of codes (QLinearConv ..) instead of Q/DQ pairs (spell-operators) */
    TargetPredictor predicts;
} QuantTarget;

/* The row of that name; null: there is none. */
const QuantTarget *quant_target(const char *name);

/* All rows; returns how many. */
size_t quant_targets(const QuantTarget **rows);

/* Whether a list of words of a row has one. */
bool target_has(const char *list, const char *word);

/* Whether a file that says nothing of whom it is for is computed as for that target. */
bool target_is_usual(const QuantTarget *t);

/* Bits of a sum of products of codes. */
int target_accumulator(const QuantTarget *t);

/* Sums of products of codes, and biases, stay below that: half of what the accumulator holds. */
double target_most_sum(const QuantTarget *t);

#endif
