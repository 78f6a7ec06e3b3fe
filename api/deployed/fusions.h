/* What is told of a file with Q/DQ pairs: what an engine fuses of it. */
#ifndef API_DEPLOYED_FUSIONS_H
#define API_DEPLOYED_FUSIONS_H

#include "api/model/census.h"
#include "frontends/onnx/fusions.h"
#include "passes/target/target.h"

/* Predicts it of a file by somebody. */
Status fusions_by(TargetPredictor by, Spine *spine, Graph *typed, Arena *arena, Diag *d, Fusions *f);

/* Predicts it of a model that was read from a file; *has: it has pairs (otherwise *f says nothing). */
Status fusions_of(qcc_model *m, TargetPredictor by, Arena *arena, Fusions *f, bool *has);

/* What becomes of the operators of that name, in words: "QLinearConv 53: int8 weights, int32 bias"; null: they stay as
 * they are. */
const char *fusions_note(Arena *arena, const Fusions *f, const char *op);

/* Appends what becomes of all of them: what is left, why the orphans are, and with `all` where each of the others
 * goes. */
void fusions_tell(Text *t, Arena *arena, const Fusions *f, bool all);

/* Appends a record for each Q and DQ. */
void fusions_records(Text *t, const Fusions *f);

#endif
