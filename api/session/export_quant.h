/* Models of quantized steps, written anew. */
#ifndef API_SESSION_EXPORT_QUANT_H
#define API_SESSION_EXPORT_QUANT_H

#include "api/session/export_form.h"
#include "passes/deploy/quant_ends.h"

/* Whether the model of a step is written anew: as codes, or as floats where norms became parts of other weights, for which
 * the file that was read has no place.  `form` may be null. */
bool export_writes_again(const qcc_step *s, const ExportForm *form);

/* Writes it: with codes in the place of weights and Q/DQ pairs around what is computed on codes, or as floats.  `states` are
 * those of a run. */
Status export_again(const qcc_step *s, const ExportForm *form, const TrainedStates *states, Out *o);

/* The model of a quantized step as it arrived, placed again as it was for the step: with its states, in a context and an
 * arena of the caller's.  `ledger` (may be null) hears what was decided. */
Status quantized_again(const qcc_step *s, Ir *ir, Arena *arena, Graph **g, struct QuantLedger *ledger);

/* Quantizers in front of codes, also of those that are stored: what QONNX has operators for. */
Status export_restore(QuantEnds *ends, Graph *g);

/* Writes the model of a quantized step that no run has been of, with supposed ranges: a file that has the operators of
 * what will be exported, and no numbers of use. */
Status export_sketch(const qcc_step *s, Text *bytes);

#endif
