/* Slots against the table of a file. */
#ifndef RUNTIME_CHECKPOINT_MATCH_H
#define RUNTIME_CHECKPOINT_MATCH_H

#include "runtime/checkpoint/checkpoint.h"

enum { MATCH_NONE = -1, MATCH_AGAIN = -2 }; /* AGAIN - i: another name of what fills slot i already */

/* The index of the slot that each tensor of the file fills, or is a piece of, below 0 for none, and the report.  With `convert`, floats of
 * another width fill a slot too, and states named qcc.* are no news where they are not wanted. */
int64_t *match_slots(Arena *arena, const SafeTensors *s, const StateSlot *slots, size_t n, bool convert,
                     StateReport *report);

/* Whether a table is that of a checkpoint of ours. */
bool match_is_ours(const SafeTensors *s);

/* The piece of a slot that has a name; null: none. */
const GatePiece *match_piece(const StateSlot *slot, const char *name);

/* Whether a tensor of a file can fill a slot, converted, transposed or reshaped if need be. */
bool match_fits(const Type *file, const StateSlot *slot, bool ours, bool *converted);

/* Whether a tensor of a file fills a slot transposed. */
bool match_is_turned(const Type *file, const StateSlot *slot, bool ours);

/* Whether a state is one of the scale of a loss, which a step may have or not: qcc.scale, qcc.scaler. */
bool match_is_scale(const char *name);

/* Notes a name in a list of a report. */
void report_missing(Arena *arena, StateReport *r, const StateSlot *slot);
void report_unexpected(Arena *arena, StateReport *r, const char *name);
void report_misshapen(Arena *arena, StateReport *r, const StateSlot *slot, const char *name, const Type *got,
                      const Type *want);

#endif
