/* Rows over values of 16 bits that are looked up: what some rows make of one such value is one of 65,536 numbers. */
#ifndef RUNTIME_CPU_TAPE_TABLES_H
#define RUNTIME_CPU_TAPE_TABLES_H

#include "runtime/cpu/tape_parts.h"

/* Has registers looked up that are made of one value in bf16 at more cost than that: their tables are made by the same loops, so
 * that no bit differs.  The steps that are not needed any more are gone; what is looked up has a room of its own.  For a tape
 * whose steps and registers are open. */
void tape_tables(TapeRunner *r, const OpTable *ops, Arena *arena);

/* to[i] = what the table has for the bf16 that x[i] is. */
void tape_look_up(const f32 *table, int64_t n, const f32 *x, f32 *to);

#endif
