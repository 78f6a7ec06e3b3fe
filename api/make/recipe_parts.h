/* The parts of reading a recipe that a line and the file of a step share. */
#ifndef API_MAKE_RECIPE_PARTS_H
#define API_MAKE_RECIPE_PARTS_H

#include "api/make/step.h"

/* All of a line but its losses, tables of classes included. */
Status recipe_add_options(qcc_step *s, const CommandLine *line);

/* Its losses, or the one that is guessed. */
Status recipe_add_losses(qcc_step *s, Graph *g, const CommandLine *line);

/* What the losses want as targets. */
Status recipe_find_targets(qcc_step *s, const Graph *g);

/* The losses in words, and where a run leaves its states. */
void recipe_set_words(qcc_step *s);

#endif
