/* Launches of programs in words, the same wherever people read of them. */
#ifndef API_MAKE_LAUNCHES_H
#define API_MAKE_LAUNCHES_H

#include "ir/program.h"

/* "region", or the operator of a call. */
const char *launch_kind(const Launch *l);

/* How many bytes values take, each time they stand there. */
double launch_bytes(const ProgramValue *values, int n);

/* What a launch is, in words: "matmul h f32[64,128]", "region mul add relu h f32[64,128]"; and how many ran beside it. */
const char *launch_words(Arena *arena, const Program *p, int launch, int n);

#endif
