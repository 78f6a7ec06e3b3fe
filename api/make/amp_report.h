/* What mixed precision decided, as people read it. */
#ifndef API_MAKE_AMP_REPORT_H
#define API_MAKE_AMP_REPORT_H

#include "api/make/step.h"
#include "passes/amp/amp.h"

/* Lets the passes write down what they decide of a step that is to be compiled. */
void amp_report_open(qcc_step *s);

/* Says what a step that was compiled gains: a remark for each node, warnings where it gains nothing; MISMATCH where
 * less than --require-amp-fraction of the work runs narrow. */
Status amp_report_check(qcc_step *s, const CommandLine *line);

/* The last of it alone. */
Status amp_report_require(qcc_step *s, const CommandLine *line);

/* "bf16: 53 Conv, 1 MatMul narrow; 61 follow, 37 in f32 (12 FO, 25 F); loss scale off": the line of the summary. */
const char *amp_report_precision(Arena *arena, const qcc_step *s);

/* "casts 12 (310 inserted, 298 folded)"; without mixed precision "casts 0". */
const char *amp_report_casts(Arena *arena, const qcc_step *s);

/* ", kept for backward 0.8 GB instead of 1.6 GB": beside the same step in f32, which is compiled for that, in silence;
 * nothing where there is no mixed precision. */
const char *amp_report_kept(Arena *arena, const qcc_step *s);

/* Appends why a node is as it is: "class F by --keep-fp32 'head' (T on its card)", "class W, guards against zero (C-17)". */
void amp_report_reason(Text *t, const Precision *p, const AmpDecision *d);

/* The types in which its result is stored, and it computes: "fp16"; "-" where it gives no floats. */
const char *amp_report_stored(const Precision *p, const AmpDecision *d);
const char *amp_report_computes(const Precision *p, const AmpDecision *d);

/* "fp16" or "bf16", as options say it. */
const char *amp_report_width(DType narrow);

#endif
