/* The reference evaluator: what a graph means, executable.
 *
 * It runs any verified graph.  At each node it asks `infer` again, on the actual operands and their values, so
 * shapes that depend on run-time values just work; then the card's meaning (row, eval or expansion) is run.
 * Every float type up to 32 bits computes in f32 and rounds once, into the result; f64 computes in f64. */
#ifndef OPS_CARD_EVAL_H
#define OPS_CARD_EVAL_H

#include "base/parallel.h"
#include "ir/build.h"
#include "ops/kernels/kernels.h"
#include "ops/kernels/rounding.h"
#include "ops/scalar.h"

typedef enum RandomSource { RANDOM_PHILOX, RANDOM_NUMPY } RandomSource;

typedef struct EvalOptions {
    const Kernels *kernels; /* null: the best the machine has */
    Parallel *pool;         /* null: one thread */
    uint64_t seed, step;
    RandomSource random;
    bool narrow; /* products of bf16 by loops of their own where the level has them: near the bits of the reference */
    const _Atomic int *stop, *stop_too;                              /* not 0: end with INTERRUPTED between two nodes */
    void (*observe)(void *user, const Node *n, const Tensor *value); /* sees every value of the outer graph */
    void *user;
    RoundingCounts
        *rounding; /* added to as results are stored; what a node added is there when observe sees it; or null */
} EvalOptions;

/* Evaluates a graph: one tensor an input in, one tensor a result out (each held once; null for absent results).
 * Results live in `heap`. */
Status evaluate(Graph *g, const EvalOptions *options, Heap *heap, const Tensor *const *inputs, Tensor **results);

/* A graph that is evaluated again and again, and in parts: what the cards' expansions gave is kept between runs. */
typedef struct Evaluation Evaluation;

/* An evaluation of a graph that does not change any more; values live in `heap`, which must outlive it. */
Evaluation *evaluation_open(Graph *g, const EvalOptions *options, Arena *arena, Heap *heap);

/* Keeps it past guarded(): a jump no longer closes it, its owner must. */
void evaluation_keep(Evaluation *e);

/* Begins a run as that step of the training; values left from the run before are dropped.  Inputs may be null until
 * evaluation_put gives them. */
void evaluation_begin(Evaluation *e, uint64_t step, const Tensor *const *inputs);

/* What random operators of the runs to come draw from. */
void evaluation_set_seed(Evaluation *e, uint64_t seed);

/* Runs the nodes before `end` (null: all) that have not run yet; after INTERRUPTED they may be run still. */
Status evaluation_until(Evaluation *e, const Node *end);

/* The value of a node that somebody still has to read, results of the graph among them; null when it has none. */
const Tensor *evaluation_value(Evaluation *e, const Node *n);

/* Puts another value in its place; null takes it away. */
void evaluation_put(Evaluation *e, const Node *n, const Tensor *value);

/* Drops the values of the run, so that nothing is held until the next one. */
void evaluation_end(Evaluation *e);

/* Gives everything back. */
void evaluation_close(Evaluation *e);

typedef struct Machine Machine;

/* Elements of a result that are done: `rows` runs of `cols`, `pitch` apart; the first is number `at`.  They lie in the result, or,
 * if it says where, at `values`, runs `apart` apart, and only while somebody is told. */
typedef struct EvalBlock {
    int64_t at, rows, cols, pitch;
    const void *values;
    int64_t apart;
} EvalBlock;

/* Who is told of blocks of a result as they are done, each element once, by the threads that made them; takes: who then takes
 * all that anybody needs of them, so that the result itself need not be made. */
typedef struct EvalWatch {
    void (*done)(void *user, const EvalBlock *b, int worker);
    void *user;
    bool takes;
} EvalWatch;

/* Memory for what calls make of constants, which stays from run to run. */
typedef struct EvalKeeper {
    Heap *heap;
    size_t *left; /* bytes that may still be taken */
} EvalKeeper;

/* What one call keeps. */
typedef struct EvalKept {
    const EvalKeeper *keeper;
    uint32_t constants; /* operands that no run changes, a bit each */
    int operand;        /* it is made of this one */
    size_t bytes;
    void *at;    /* null: there is nothing */
    bool filled; /* by the call under way, as far as it was not stopped; */
    bool made;   /* by one that ended well */
} EvalKept;

/* One call, as the card's eval sees it. */
struct Eval {
    Machine *machine;
    Ir *ir;
    const Node *node;
    const OpDef *def;
    const void *attr;
    int n_in;
    const Tensor *const *in; /* null: absent */
    int n_out;
    const Type *type; /* inferred from the actual operands; a tuple when n_out > 1 */
    Tensor **out;     /* what eval_out made; or, */
    bool is_given;    /* what the caller gave for it, which is filled and never replaced */
    bool misfits;     /* what came out is of another type than what was given for it */
    Arena *scratch;   /* emptied after the call */
    const Kernels *kernels;
    Parallel *pool;
    struct EvalStore *stores;
    const EvalWatch *watch; /* of a word that tells (AccessCard): who is told of result 0; null: nobody */
    EvalKept *kept;         /* null: no call after it has the same constants */
};

/* States what is wrong with the operands' values; returns INVALID. */
Status eval_fail(Eval *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The tensor of result i, of the inferred type (which must be known), not zeroed. */
Tensor *eval_out(Eval *e, int i);

/* The tensor of result i, of a type that only the values told. */
Tensor *eval_out_as(Eval *e, int i, const Type *type);

/* Makes an existing tensor (an operand, a sequence) result i. */
void eval_give(Eval *e, int i, const Tensor *t);

/* The type of result i. */
const Type *eval_type(const Eval *e, int i);

/* `n` elements of `size` bytes of scratch, aligned, zeroed. */
void *eval_scratch(Eval *e, size_t n, size_t size);

/* The same, holding anything, for who writes before reading. */
void *eval_room(Eval *e, size_t n, size_t size);

/* Room, as eval_room gives it, for what is made of operand i and its type alone, of as many bytes in every run: where that
 * is a constant it stays, and `*made` says that a call before has filled it.  A call keeps one thing; null: nothing of this. */
void *eval_kept(Eval *e, int i, size_t n, size_t size, bool *made);

/* Says that this call fills it. */
void eval_keep(Eval *e);

/* Operand i widened to one of the four arithmetics: its own data where the type is that already. */
const f32 *eval_f32(Eval *e, int i);
const f64 *eval_f64(Eval *e, int i);
const i64 *eval_i64(Eval *e, int i);
const u64 *eval_u64(Eval *e, int i);

/* A buffer for result i in one of the four arithmetics; it is rounded into the result after the call.
 * Allocates the result if eval_out was not called. */
f32 *eval_out_f32(Eval *e, int i);
f64 *eval_out_f64(Eval *e, int i);
i64 *eval_out_i64(Eval *e, int i);
u64 *eval_out_u64(Eval *e, int i);

/* parallel() over the threads of the evaluation; when that is asked to stop, what has not begun is left out, and the call
 * ends with INTERRUPTED, whatever came of it. */
void eval_parallel(Eval *e, int64_t n, ParallelFn fn, void *arg);

/* Rounds n elements of result i, which eval_out made and no buffer stands for, into it. */
void eval_store_f32(const Eval *e, int i, int64_t first, const f32 *from, int64_t n);

/* A buffer for result 0, holding anything, for who says of each block that it is done: blocks are rounded one by one, while they
 * are near.  Null, for who makes them apart from each other and asks whether he may: nobody reads them in a buffer.  Whether
 * somebody wants to be told of blocks. */
void *eval_out_by_blocks(Eval *e, Arithmetic arithmetic, bool apart);
bool eval_is_told(const Eval *e);

/* Says that a block of result 0 is as its buffer has it, or what stands for that, for good: rounded into the result it is told. */
void eval_done(const Eval *e, const EvalBlock *b, int worker);

/* Whether the evaluation is asked to stop: kernels that run long on one thread look, and leave the rest out. */
bool eval_stopped(const Eval *e);

/* Elements of operand i. */
int64_t eval_elements(const Eval *e, int i);

/* The element of an integer or bool operand as i64, of any as f64. */
int64_t eval_int(const Eval *e, int i, int64_t at);
double eval_float(const Eval *e, int i, int64_t at);

/* Whether the call computes in f64: its first float operand (or result) is f64. */
bool eval_is_f64(const Eval *e);

/* The integers of operand i (any integer type), in scratch. */
const int64_t *eval_ints(Eval *e, int i, int64_t *n);

/* The same with an arithmetic that is chosen at run time: operand i widened to it, and a buffer for result i. */
const void *eval_wide(Eval *e, int i, Arithmetic a);
void *eval_out_wide(Eval *e, int i, Arithmetic a);

/* Reduces x[dims], in the arithmetic, over the axes of `mask` into out (scratch is taken where several groups of axes
 * are reduced). */
void eval_reduce(Eval *e, ReduceKind kind, Arithmetic a, int rank, const int64_t *dims, uint32_t mask, const void *x,
                 void *out);

/* The `turn` of a region that a call runs only once, as `if` does: its random operators draw as if they stood
 * outside. */
enum { TURN_NONE = -1 };

/* Runs a region on arguments; results are held once, for the caller to drop.  `turn` is the number of the iteration. */
Status eval_region(Eval *e, Graph *region, int64_t turn, int n, const Tensor *const *arguments, Tensor **results);

/* The number that makes random draws of one iteration differ from those of another (base/philox.h): the iteration of
 * the innermost loop, plus that of each loop around it times an odd constant for each level between; 0 outside of
 * loops. */
uint32_t eval_iteration(const Eval *e);

/* The heap of values, for evals that build sequences. */
Heap *eval_heap(Eval *e);

/* Random draws: options of the evaluation. */
const EvalOptions *eval_options(const Eval *e);

/* Evaluates the expansion of the call, as where there is no fast form: for a fast form that does not know it. */
Status eval_expansion(Eval *e);

/* Evaluates a row (ops/machine/row_eval.c). */
Status eval_row(Eval *e);

#endif
