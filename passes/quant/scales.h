/* The nodes that a quantizer reads its scale from, and the quantizer itself. */
#ifndef PASSES_QUANT_SCALES_H
#define PASSES_QUANT_SCALES_H

#include "passes/engine/results.h"
#include "passes/quant/grain.h"

/* Sizes below it are none to products with ternary weights, as BitNet has them: the mean of a weight, the largest of a row. */
#define QUANT_TERNARY_FLOOR 1e-5

/* TWN: no weight is 0 that is larger than that part of the mean size. */
#define QUANT_TERNARY_PART 0.7

/* Weights whose bits are learned, and the bytes of those whose bits are said. */
typedef struct QuantLearnsBits {
    Node *bits; /* as a budget counts them */
    double elements;
} QuantLearnsBits;
typedef struct QuantBudget {
    QuantLearnsBits *list;
    size_t n, cap;
    double said;
} QuantBudget;

typedef struct QuantScales {
    Placement *p;
    Results results; /* next ranges are added to them */
    Facts learn;     /* ScaleLearns of values */
    QuantBudget budget;
} QuantScales;

/* What quantizes one value. */
typedef struct QuantNodes {
    const Quantizer *by;
    QuantGrain grain;
    bool never_negative;
    bool stays;         /* a learned scale stays as it begins: nothing trains what it is for */
    double within;      /* no number is beyond that, whatever comes; 0: nobody knows */
    double floor;       /* the largest that a scale is made of is that at least; 0: nothing is */
    double most;        /* no code needs to stand for more; infinite: unknown */
    const char *name;   /* of what is quantized, for its states */
    const char *state;  /* that remembers its range, or its scale; null: none */
    bool stored;        /* it is a weight: files have its codes and scales, not what they are made of */
    Node *scale, *zero; /* zero: null where all zero points are 0 */
    Node *told;         /* the same scale as numbers of its own codes, which files have; null: it has none */
    Node *threshold;    /* of twn: what is no larger is 0 */
    Node *end;          /* of learned bits: where codes end */
    struct {
        Node *widths, *start,
            *scale; /* of n2uq: its intervals, where the first begins, and what levels are counted in */
    } levels;
} QuantNodes;

/* Finds whose learned scales training may change.  A value that nothing trained is part of, and that nothing reads which is
 * computed from what is trained, belongs to a part of the model that stays, as a teacher beside a student does: that part
 * would go after the rest if its scales were learned.  Of a model with nothing to train scales alone are learned. */
void quant_find_learners(QuantScales *s);

/* Whether training may change the scale of a value of the model. */
bool quant_learns(QuantScales *s, const Node *value);

/* Lets `q` have the scale that its quantizer says, from a state that remembers the range of data, or from the weight
 * itself; UNSUPPORTED where nothing here makes such a scale. */
Status quant_scale_of_data(QuantScales *s, QuantNodes *q, Node *value);
Status quant_scale_of_weight(QuantScales *s, QuantNodes *q, Build *b, Node *weight);

/* Lets a state have what the codes of weights take of the budget, where bits are learned; UNSUPPORTED where no weight learns its bits,
 * or the fewest are too many. */
Status quant_budget(QuantScales *s);

/* The element type of its codes, and the least and largest of them. */
DType quant_codes_of(const QuantNodes *q, int64_t *least, int64_t *largest);

/* The largest number that a code stands for, in units of its scale. */
double quant_most_of(const QuantNodes *q);

/* codes = quantize(value), and the number that each stands for. */
Node *quant_codes(Build *b, const QuantNodes *q, Node *value);
Node *quant_number(Build *b, const QuantNodes *q, Node *codes);

/* A bias as integers of 32 bits with the scale of the sums that it is added to. */
Node *quant_bias(Build *b, Node *bias, Node *data_scale, Node *weight_scale);

#endif
