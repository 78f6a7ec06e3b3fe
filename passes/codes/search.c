#include "passes/codes/search.h"

#include "ops/card/make.h"
#include "ops/card/words.h"

int codes_search_kind(const Quantizer *q)
{
    switch (q->part[QUANT_SOURCE].value) {
    case SOURCE_MSE:
        return 0;
    case SOURCE_KL:
        return 1;
    case SOURCE_HQO:
        return 2;
    default:
        return -1;
    }
}

/* The mean size and so many deviations, on either side, no further than the numbers reach. */
static void by_deviation(Build *b, double deviations, const QuantGrain *grain, Node *value, Node **lo, Node **hi)
{
    const Type *t = value->type;
    const QuantGrain *g = grain;
    Node *n = quant_counts(b, g, t), *size = CALL(b, abs, value);
    Node *sum = quant_as_scales(b, g, quant_fold(b, FOLD_SUM, g, size), t);
    Node *squares = quant_as_scales(b, g, quant_fold(b, FOLD_SUM, g, CALL(b, mul, size, size)), t);
    Node *mean = CALL(b, div, sum, n);
    Node *variance = CALL(b, sub, CALL(b, div, squares, n), CALL(b, mul, mean, mean));
    Node *deviation = CALL(b, sqrt, CALL(b, max, variance, build_scalar(b, F32, 0)));
    Node *end = CALL(b, add, mean, CALL(b, mul, deviation, build_scalar(b, F32, deviations)));
    Node *least = quant_as_scales(b, g, quant_fold(b, FOLD_LEAST, g, value), t);
    Node *most = quant_as_scales(b, g, quant_fold(b, FOLD_LARGEST, g, value), t);
    *lo = CALL(b, max, least, CALL(b, neg, end));
    *hi = CALL(b, min, most, end);
}

Status codes_search(Build *b, const Quantizer *q, const QuantGrain *grain, Node *value, const RangeScaleAttr *codes,
                    Node **lo, Node **hi)
{
    const int kind = codes_search_kind(q);
    if (kind < 0) {
        by_deviation(b, q->part[QUANT_SOURCE].number, grain, value, lo, hi);
        return b->status;
    }
    const SearchRangeAttr at = { .kind = kind,
                                 .least = codes->least,
                                 .largest = codes->largest,
                                 .symmetric = codes->symmetric,
                                 .pow2 = codes->pow2,
                                 .to = codes->to };
    Node *rows = quant_rows_of(b, grain, value);
    Node *both = build_node_n(b, OP_search_range, &at, 1, &rows, 2);
    TRY(b->status);
    const Type *scales = quant_scale_type(&b->graph->ir->types, grain, value->type);
    *lo = make_reshape(b, build_part(b, both, 0), scales->rank, scales->dims);
    *hi = make_reshape(b, build_part(b, both, 1), scales->rank, scales->dims);
    return b->status;
}
