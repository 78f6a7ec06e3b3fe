/* Evaluating on the side: what goes wrong there is nobody's message. */
#ifndef PASSES_ENGINE_TRIAL_H
#define PASSES_ENGINE_TRIAL_H

#include "ops/card/eval.h"
#include "passes/engine/pass.h"

/* A context whose messages are swallowed for a while. */
typedef struct Hush {
    Ir *ir;
    Diag *was, none;
    Cleanup cleanup;
} Hush;

/* From now on messages of `ir` are lost; a jump that passes ends that too. */
void hush_begin(Hush *h, Ir *ir, Arena *scratch);

/* Messages are heard again. */
void hush_end(Hush *h);

/* Compares what two graphs compute, on inputs drawn from a seed: null when they agree within what `may` allows, or the
 * first difference in words.  The second may have further inputs (states among them begin as they do) and results; of
 * the first one's results only those named `qcc.` may be gone.  `*ran` says whether the first could be evaluated. */
const char *trial_compare(Graph *a, Graph *b, Exactness may, uint64_t seed, Arena *scratch, bool *ran);

/* The result of `b` that has the name (or, without one, the place) of a's result i. */
enum { TRIAL_LOST = -1, TRIAL_GONE = -2 }; /* there is none; none is needed */
int trial_result(const Graph *a, int i, const Graph *b);

/* What a state begins with; null when its type does not say. */
const Tensor *trial_initial(const Node *state, Arena *scratch);

/* Whether two values agree within what `may` allows. */
bool values_agree(const Tensor *a, const Tensor *b, Exactness may);

#endif
