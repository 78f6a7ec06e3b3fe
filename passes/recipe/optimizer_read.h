/* The optimizer's part of a recipe, from the words of options (passes/optimizers.def). */
#ifndef PASSES_RECIPE_OPTIMIZER_READ_H
#define PASSES_RECIPE_OPTIMIZER_READ_H

#include "passes/recipe/recipe.h"

#define DEFAULT_OPTIMIZER "adamw" /* where --optimizer says nothing */

/* What options say; null and 0: nothing. */
typedef struct OptimizerWords {
    const char *optimizer; /* "adamw:lr=1e-4,weight_decay=0.01" */
    const char *lr;        /* "1e-3": instead of the optimizer's */
    const char *schedule;  /* "cosine:warmup=500" */
    const char *const *groups;
    size_t n_groups; /* "bias$:lr=0.1x,weight_decay=0", "fc2:optimizer=sgd,lr=0.1" */
} OptimizerWords;

/* Writes groups and schedule of a recipe into `arena`: USAGE with the nearest word where one is not known. */
Status recipe_read_optimizer(Recipe *r, const OptimizerWords *words, const OpTable *ops, Arena *arena, Diag *diag);

/* What the bare command trains with: adamw with rate 1e-4, and weight decay 0.01 on what is no vector. */
OptimizerGroup recipe_default_optimizer(const OpTable *ops, Arena *arena);

/* The kinds of optimizers by number, and the settings of one with what they are: "lr=0.001", at most `most` of them. */
size_t optimizer_kinds(void);
const char *optimizer_kind(size_t i);
size_t optimizer_settings(size_t i, const OpTable *ops, Arena *arena, const char **settings, size_t most);

/* "adamw lr 0.0001, weight_decay 0.01": the kind that made a group and what it changed. */
const char *optimizer_text(Arena *arena, const OpTable *ops, const OptimizerGroup *group);

#endif
