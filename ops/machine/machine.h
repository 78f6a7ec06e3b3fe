/* What runs graphs (ops/machine/machine.c), as the calls of cards see it (ops/machine/eval.c). */
#ifndef OPS_MACHINE_MACHINE_H
#define OPS_MACHINE_MACHINE_H

#include "ops/card/eval.h"
#include "ops/machine/caller.h"

struct Machine {
    Ir *ir;
    const EvalOptions *options;
    Heap *heap;
    Arena arena;    /* expansions: as long as the evaluation */
    Arena *scratch; /* of the running call */
    Arena own;      /* it, unless it is another's */
    Map expansions; /* by node address */
    int depth;
    int64_t turns; /* of loops, so far; what runs once counts as none */
    uint32_t iteration;
};

/* `scratch` may be shared by machines of which one runs at a time, and is empty between two; null: one of its own. */
void machine_open(Machine *m, Ir *ir, const EvalOptions *options, Heap *heap, Arena *scratch);
void machine_close(Machine *m);

/* Runs a graph on arguments; results are held once. */
Status machine_run_graph(Machine *m, Graph *g, const Tensor *const *arguments, Tensor **results);

/* Runs one call, by its card, on operands; its value is held once. */
Status machine_call(Machine *m, const Node *n, const Tensor *const *in, Tensor **value);

/* The same into tensors of the types that the graph says, which are the caller's. */
Status machine_call_into(Machine *m, const CallBeside *call);

/* Several calls as one (OpDef.beside), each as machine_call_into. */
Status machine_call_beside(Machine *m, int n, const CallBeside *calls);

/* Says what node is under way. */
void machine_tell_node(char *out, size_t n, const Node *node, const Type *type);

/* A result that waits to be rounded into its storage. */
typedef struct EvalStore {
    struct EvalStore *next;
    int result;
    Arithmetic arithmetic;
    void *buffer;
    bool by_blocks; /* whoever made a block of it says so (eval_done) */
} EvalStore;

/* Rounds what a call has computed wide into its results. */
void eval_round_results(Eval *e);

#endif
