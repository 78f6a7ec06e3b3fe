/* What a step takes in memory, as people and programs read it. */
#ifndef API_TOLD_MEMORY_TOLD_H
#define API_TOLD_MEMORY_TOLD_H

#include "api/make/memory.h"

/* "616 bytes: weights 124 bytes, optimizer .., scratch ..". */
const char *step_memory_text(Arena *arena, const StepMemory *m);

/* "", or that it is an estimate, and why. */
const char *step_memory_doubt(Arena *arena, const StepMemory *m);

/* Prints what a step needs, a kind a line, each with its parts by type. */
void step_memory_table(Text *t, const qcc_step *s, const StepMemory *m);

/* The same as objects: {"event":"memory","kind":"weights","bytes":..}, and its parts, kinds that are no sums among them. */
void step_memory_records(Text *t, const StepMemory *m);

#endif
