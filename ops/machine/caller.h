/* Runs single calls into results that are there already: for engines, which know where values lie before they run. */
#ifndef OPS_MACHINE_CALLER_H
#define OPS_MACHINE_CALLER_H

#include "ops/card/eval.h"

typedef struct Caller Caller;

/* Whether the types of a call's results follow from the types of its operands and from constants, so that nothing that
 * a run knows can change them. */
bool caller_knows_types(const Node *n, Arena *scratch);

/* What runs calls; values inside of them live in `heap`, and what a call works in in `scratch`, which callers may share of
 * which one runs at a time.  Both must outlive it. */
Caller *caller_open(Ir *ir, const EvalOptions *options, Arena *arena, Heap *heap, Arena *scratch);

/* Keeps it past guarded(): a jump no longer closes it, its owner must. */
void caller_keep(Caller *c);

/* Says how many bytes (caller_room) the call takes that takes most: they come as one block. */
void caller_expect(Caller *c, size_t bytes);

/* From now on calls draw what a step draws. */
void caller_begin(Caller *c, uint64_t seed, uint64_t step);

/* Runs a call whose types are known, as a part of that turn of a loop (0: of none), on operands (null: absent), into tensors of the
 * types that the graph says.  What it takes on the way it gives back, and finds again in the next call. */
Status caller_call(Caller *c, const Node *n, uint32_t turn, const Tensor *const *in, Tensor **out);

/* One of several calls. */
typedef struct CallBeside {
    const Node *node;
    const Tensor *const *in;
    Tensor **out;
    const EvalWatch *watch; /* of a word that tells what is done (AccessCard.tells); null: nobody is told */
    EvalKept *kept;         /* what it keeps from run to run; null: nothing */
    uint32_t turn;          /* of a loop that it is a part of: what it draws */
} CallBeside;

/* The same of one of them. */
Status caller_call_one(Caller *c, const CallBeside *call);

/* And of several calls of a word that can run as one (OpDef.beside), up to PRODUCTS_BESIDE. */
Status caller_call_beside(Caller *c, int n, const CallBeside *calls);

/* The bytes that a call takes on one thread: for operands and results in the arithmetic that products and windows are
 * computed in, and what its card says beside.  Blocks of the size of caches are not counted. */
size_t caller_room(const Node *n);

/* Says what a call makes, for memory_work(): the thing is the node. */
void caller_tell(char *out, size_t n, const void *node);

/* Gives everything back; null is allowed. */
void caller_close(Caller *c);

#endif
