/* What place-quant writes into the ledger, where there is one. */
#ifndef PASSES_QUANT_RECORD_H
#define PASSES_QUANT_RECORD_H

#include "passes/quant/placement.h"

/* A value that is quantized: by what, for whom, and what remembers its scale. */
void quant_record_value(Placement *p, const Node *value);

/* What a product that reads `weight` as operand i adds to what is known of it: its work, and the data beside it. */
void quant_record_product(Placement *p, const Node *call, int i, const Node *weight, const Quantizer *by);

/* Why a call stays, or is left. */
void quant_record_call(Placement *p, const Node *call);

#endif
