/* What was quantized of a step, as people read it. */
#ifndef API_MAKE_QUANT_REPORT_H
#define API_MAKE_QUANT_REPORT_H

#include "api/make/step.h"
#include "passes/quant/ledger.h"

/* Lets the passes write down what they decide of a step that is to be compiled. */
void quant_report_open(qcc_step *s);

/* Warns where --quant was said and nothing is quantized. */
Status quant_report_check(const qcc_step *s);

/* "w8a8 for ort: 3 qconv, 1 qmatmul compute on codes; 9 values and 4 weights quantized"; null: the step is not quantized. */
const char *quant_report_line(Arena *arena, const qcc_step *s);

#endif
