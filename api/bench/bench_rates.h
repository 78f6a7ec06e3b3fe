/* What a machine can do at best, measured: the bounds that launches are held against. */
#ifndef API_VERBS_BENCH_RATES_H
#define API_VERBS_BENCH_RATES_H

#include "api/hall/context.h"

typedef struct MachineRates {
    double bytes;        /* a second, read and written by all threads, out of the caches */
    double flops;        /* a second, by products of f32 that stay in the caches */
    double narrow_flops; /* by those of bf16 as they lie; 0: the engine makes none */
    double code_flops;   /* by those of codes of 8 bits */
} MachineRates;

/* Measures them with the threads of the context: the best of some tries, a few hundredths of a second in all. */
MachineRates machine_rates(qcc_context *cx);

#endif
