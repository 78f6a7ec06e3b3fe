/* The nodes that a quantizer reads its scale from, and the quantizer itself. */
#ifndef PASSES_QUANT_SCALES_H
#define PASSES_QUANT_SCALES_H

#include "passes/engine/results.h"
#include "passes/quant/grain.h"

typedef struct QuantScales {
    Placement *p;
    Results results; /* next ranges are added to them */
} QuantScales;

/* What quantizes one value. */
typedef struct QuantNodes {
    const Quantizer *by;
    QuantGrain grain;
    bool never_negative;
    double within;      /* no number is beyond that, whatever comes; 0: nobody knows */
    double most;        /* no code needs to stand for more; infinite: unknown */
    const char *name;   /* of what is quantized, for its states */
    const char *state;  /* that remembers its range, or its scale; null: none */
    Node *scale, *zero; /* zero: null where all zero points are 0 */
} QuantNodes;

/* Lets `q` have the scale that its quantizer says, from a state that remembers the range of data, or from the weight
 * itself; UNSUPPORTED where nothing here makes such a scale. */
Status quant_scale_of_data(QuantScales *s, QuantNodes *q, Node *value);
Status quant_scale_of_weight(QuantScales *s, QuantNodes *q, Build *b, Node *weight);

/* The element type of its codes, and the least and largest of them. */
DType quant_codes_of(const QuantNodes *q, int64_t *least, int64_t *largest);

/* codes = quantize(value), and the number that each stands for. */
Node *quant_codes(Build *b, const QuantNodes *q, Node *value);
Node *quant_number(Build *b, const QuantNodes *q, Node *codes);

/* A bias as integers of 32 bits with the scale of the sums that it is added to. */
Node *quant_bias(Build *b, Node *bias, Node *data_scale, Node *weight_scale);

#endif
