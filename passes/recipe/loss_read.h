/* Losses from the words of options, and the one that a model's outputs suggest. */
#ifndef PASSES_RECIPE_LOSS_READ_H
#define PASSES_RECIPE_LOSS_READ_H

#include "passes/recipe/recipe.h"

/* A loss with nothing said but its kind. */
LossSpec loss_of(LossKind kind);

/* "cross_entropy". */
const char *loss_word(LossKind kind);

/* What a loss is, in words: "squared differences". */
const char *loss_what(LossKind kind);

/* The word that computes a loss; OP_COUNT: none does. */
int loss_op(LossKind kind);

/* Whether targets of a loss are classes along an axis. */
bool loss_has_classes(LossKind kind);

/* The keys that a kind has, at most `most` of them; returns their number. */
size_t loss_settings(LossKind kind, const char **settings, size_t most);

/* Reads "cross_entropy:logits,axis=-1,label_smoothing=0.1": USAGE with the nearest word where one is not known. */
Status loss_read(LossSpec *l, const char *text, Arena *arena, Diag *diag);

/* The same words back: what --loss has to say for it. */
const char *loss_text(Arena *arena, const LossSpec *l);

/* The loss that the outputs of a model suggest, and why, in words; false, or USAGE with the outputs, where they suggest
 * none. */
bool loss_found(LossSpec *l, const char **why, Graph *g, Arena *arena);
Status loss_guess(LossSpec *l, const char **why, Graph *g, Arena *arena, Diag *diag);

/* What a loss compares. */
typedef struct LossTarget {
    const char *input;  /* that is added for the targets */
    const char *output; /* the model's, as it is deployed */
    Node *scores;       /* what the loss reads: the output, or what its last activation reads */
    LossKind kind;      /* of the loss: a cross_entropy where probabilities were named */
    bool classes;       /* targets are classes of an axis */
    int axis;
    int64_t n_classes;
    bool ignores;
    int64_t ignored;
} LossTarget;

/* Finds what loss i of a recipe compares; false when it has no target (output, external), or after a report, which
 * *status then says. */
bool loss_target(const Graph *g, const Recipe *r, size_t i, Arena *arena, Diag *diag, LossTarget *t, Status *status);

/* The result of that name; null when there is none. */
Node *loss_output(const Graph *g, const char *name);

#endif
