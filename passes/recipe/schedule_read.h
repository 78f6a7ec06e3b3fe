/* Schedules, from the words of --schedule (passes/optimizers.def). */
#ifndef PASSES_RECIPE_SCHEDULE_READ_H
#define PASSES_RECIPE_SCHEDULE_READ_H

#include "base/diag.h"
#include "passes/recipe/recipe.h"

/* Reads "cosine:warmup=500,total=10000"; USAGE when a word is not known. */
Status schedule_read(Schedule *to, const char *text, Arena *arena, Diag *diag);

/* The kinds of schedules by number, and what the settings of one are called: at most `most` of them. */
size_t schedule_kinds(void);
const char *schedule_kind(size_t i);
size_t schedule_settings(size_t i, const char **settings, size_t most);

#endif
