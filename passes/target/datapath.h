/* A machine of somebody's own as a text: lines of `field = value`, which become a row as those of targets.def are.
 *
 *     # eight multipliers behind a sum of 24 bits
 *     title = the MAC array
 *     like = portable
 *     accumulator = 24
 *     grain conv = tensor
 *
 * What is not said is as in the row that it is like; a field stands there once. */
#ifndef PASSES_TARGET_DATAPATH_H
#define PASSES_TARGET_DATAPATH_H

#include "base/diag.h"
#include "passes/target/target.h"

/* Reads a text; `is_operator` says whether a word is one.  USAGE, with the line, where it is no such text. */
Status datapath_read(const QuantTarget **to, const char *file, const char *text,
                     bool (*is_operator)(const void *ops, const char *word), const void *ops, Arena *arena, Diag *d);

/* The grains that a machine has for the weights of an operator, as words with a space between them; null: any. */
const char *target_grains(const QuantTarget *t, const char *op, Arena *arena);

#endif
