/* What quantizers say of their codes, kept over what makes codes of weights: for files that have quantizers, not codes. */
#ifndef PASSES_DEPLOY_QUANT_ENDS_H
#define PASSES_DEPLOY_QUANT_ENDS_H

#include "base/map.h"
#include "ir/graph.h"

typedef struct QuantEnds {
    Map of;    /* a call that makes numbers of codes -> the QuantizeAttr of its quantizer */
    Map taken; /* names of values */
} QuantEnds;

/* Notes the quantizer of each number of a graph. */
void quant_ends_note(QuantEnds *e, const Graph *g, Arena *arena);

/* Puts quantizers back, once weights are computed: in front of each number of codes stands a quantizer that says which they are, of
 * what is stored, or of data, without zero points and without a Clip behind it. */
Status quant_ends_restore(QuantEnds *e, Graph *g, Arena *scratch);

#endif
