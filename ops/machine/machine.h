/* What runs graphs (ops/machine/machine.c), as the calls of cards see it (ops/machine/eval.c). */
#ifndef OPS_MACHINE_MACHINE_H
#define OPS_MACHINE_MACHINE_H

#include "ops/card/eval.h"

struct Machine {
    Ir *ir;
    const EvalOptions *options;
    Heap *heap;
    Arena arena;    /* expansions: as long as the evaluation */
    Arena scratch;  /* of the running call */
    Map expansions; /* by node address */
    int depth;
    int64_t turns; /* of loops, so far; what runs once counts as none */
    uint32_t iteration;
};

/* A result that waits to be rounded into its storage. */
typedef struct EvalStore {
    struct EvalStore *next;
    int result;
    Arithmetic arithmetic;
    void *buffer;
} EvalStore;

/* Rounds what a call has computed wide into its results. */
void eval_round_results(Eval *e);

#endif
