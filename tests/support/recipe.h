/* Recipes of tests, from the options that a user would give. */
#ifndef TESTS_SUPPORT_RECIPE_H
#define TESTS_SUPPORT_RECIPE_H

#include "passes/recipe/recipe.h"

/* Reads "--optimizer sgd:lr=0.1 --clip-norm 1"; what is no option is reported.  Files that options name stand beside
 * `path`, which may be null. */
Status recipe_from_options(Recipe *r, const Ir *ir, Arena *arena, Str options, const char *path);

/* The same of the line that begins with "# recipe: "; false when a text has none. */
bool recipe_line(Str text, Str *options);

/* Reads the teacher that a recipe names, which is the graph of a text beside `path`. */
Status recipe_teacher(Recipe *r, Ir *ir, Arena *arena, const char *path);

/* The input that the line "# whole: " of a text names, if it has one, is read whole by each micro-batch. */
void recipe_whole(Recipe *r, Arena *arena, Str text);

#endif
