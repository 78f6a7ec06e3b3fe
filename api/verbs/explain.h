/* Parts of the verb explain. */
#ifndef API_VERBS_EXPLAIN_H
#define API_VERBS_EXPLAIN_H

#include "api/make/step.h"
#include "api/model/command.h"
#include "passes/recipe/choices.h"

/* With --messages json the verb gives records instead of pages, one object a line (docs/command.md). */

/* Appends the records of a step: itself, its groups, choices and states. */
void explain_step_records(Text *t, const qcc_step *s);

/* Everything about the nodes that the --node selectors match; with a step (else null) what trains them, too. */
Status explain_nodes(Command *c, qcc_model *m, const Map *paths, const qcc_step *s);

/* What engines run of a model, or where `s` is not null of the graphs of a step: launches, what was fused and what was not,
 * and where memory goes. */
Status explain_plan(Command *c, const qcc_model *m, const qcc_step *s);

/* The kernels of the same for CUDA: who launches them, and what they take of a processor. */
Status explain_kernels(Command *c, const qcc_model *m, const qcc_step *s);

/* Appends every decision that made a step, and what is chosen of each parameter. */
void explain_step(Text *t, const qcc_step *s);

/* "trained", "statistic", "tied", "constant". */
const char *choice_word(ChoiceKind kind);

/* Appends a state's optimizer: "adamw lr 0.0001, group bias$". */
void explain_group(Text *t, const qcc_step *s, const char *name);

/* Whether a path is a file of states, or a folder of checkpoints. */
bool explain_is_states(Arena *arena, const char *path);

/* Says what is in it. */
Status explain_states(Command *c, const char *path);

/* Appends the decisions of a step, a line each, and what the plan costs. */
void explain_precision(Text *t, const qcc_step *s);

/* Appends what is quantized, for whom, and what stays as it is; nothing where nothing is quantized. */
void explain_quantization(Text *t, const qcc_step *s);

/* Appends what ONNX Runtime will fuse of the quantized model once it is trained and exported, as text or as records;
 * nothing where it is for others. */
Status explain_fusions(Text *t, qcc_step *s, bool records);

/* Appends what quantizers make of weights, and of --data, as text or as records; nothing where nothing is quantized. */
Status explain_figures(Text *t, Command *c, qcc_step *s, bool records);

struct QuantFigure;

/* "0.0012 to 0.0031", "43.1 dB"; "-" where it is not known. */
const char *figure_scale_text(Arena *arena, const struct QuantFigure *q);
const char *figure_sqnr_text(Arena *arena, const struct QuantFigure *q);

/* Appends what was decided of the nodes of a step that stand for a model's node, and the casts beside them. */
void explain_widths(Text *t, const qcc_step *s, const Node *n);

#endif
