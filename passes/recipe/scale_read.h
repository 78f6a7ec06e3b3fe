/* How a loss is scaled, from the words of an option: "dynamic:init=65536,interval=2000", "static:1024", "off". */
#ifndef PASSES_RECIPE_SCALE_READ_H
#define PASSES_RECIPE_SCALE_READ_H

#include "ops/update/scaler.h"
#include "passes/recipe/recipe.h"

/* Reads what --loss-scale says, in our words or those of PyTorch, Apex, DeepSpeed, Keras: USAGE with the nearest word
 * where one is not known, or where a number is no power of two in its range. */
Status loss_scale_read(LossScale *to, const char *text, Arena *arena, Diag *diag);

/* What a recipe asks for, with all that it leaves open: SCALE_OFF, SCALE_STATIC or SCALE_DYNAMIC. */
LossScale recipe_loss_scale(const Recipe *r);

/* Its rules, as attributes of update_scale. */
ScalerRules loss_scale_rules(const LossScale *s);

/* Whether it was asked for where it changes nothing: gradients of this precision do not underflow. */
bool loss_scale_is_idle(const Recipe *r);

/* "dynamic", "dynamic from 1024", "1024", "off". */
const char *loss_scale_text(Arena *arena, const LossScale *s);

#endif
