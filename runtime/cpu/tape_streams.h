/* What a tape reads and writes in the order of memory, asked for a block ahead: a block stays in cache for all the steps on
 * it, and the processor's own guesses begin anew with each. */
#ifndef RUNTIME_CPU_TAPE_STREAMS_H
#define RUNTIME_CPU_TAPE_STREAMS_H

#include "runtime/cpu/tape_parts.h"

enum { TAPE_STREAMS = 16 };

typedef struct TapeStream {
    const char *from;
    size_t bytes; /* of a row, or of an element of an uncut space */
    bool written;
} TapeStream;

/* The streams of a run over so many rows or elements; none where a cache holds them all anyway. */
int tape_streams(const TapeRunner *r, int64_t things, TapeStream streams[TAPE_STREAMS]);

/* The streams of some steps over channels (null: of all), by elements. */
int tape_walk_streams(const TapeRunner *r, const bool *steps, TapeStream streams[TAPE_STREAMS]);

/* Asks for what part `step` of `steps` equal parts of rows (or elements) first .. first + n - 1 is. */
void tape_ask(const TapeStream *streams, int n_streams, int64_t first, int64_t n, int step, int steps);

#endif
