/* Which group of a recipe trains which parameter. */
#ifndef PASSES_RECIPE_GROUPS_H
#define PASSES_RECIPE_GROUPS_H

#include "passes/recipe/recipe.h"

/* Asks the selectors of the groups about every trained state of `g`, as long as its readers still say where they stand:
 * before differentiate.  Fills r->members; USAGE where a selector takes none. */
Status recipe_assign_groups(Recipe *r, Graph *g, Arena *arena);

/* The group of a parameter: what was assigned, or the first. */
const OptimizerGroup *recipe_group(const Recipe *r, const Node *parameter);

/* How many trained states of `g` a group trains. */
size_t recipe_members(const Recipe *r, const Graph *g, const OptimizerGroup *group);

/* Whether weight decay leaves a parameter alone: a vector, or the scale of a quantizer unless the group means it. */
bool group_spares(const OptimizerGroup *group, const Node *parameter);

/* The attributes that a parameter is trained with: the group's, without weight decay where the group spares it. */
const void *group_attr(const OptimizerGroup *group, const Node *parameter, Arena *arena);

#endif
