/* What a page shows of quantizers. */
#ifndef API_EMIT_EMIT_QUANT_H
#define API_EMIT_EMIT_QUANT_H

#include "api/make/step.h"
#include "api/model/command.h"
#include "frontends/view/view.h"

/* Adds the quantizers of a step to what is known of it, with figures of weights, and of --data, in the scratch of the
 * call; nothing where nothing is quantized. */
Status emit_quantizers(qcc_context *cx, const CommandLine *line, Out *o, qcc_step *s, ViewFacts *facts);

#endif
