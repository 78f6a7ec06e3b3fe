/* Code for code: what the graph that trained computes against what the exported file computes, value by value. */
#ifndef API_DEPLOYED_PARITY_H
#define API_DEPLOYED_PARITY_H

#include "api/make/step.h"
#include "runtime/data/feed.h"

typedef enum ParityKind {
    PARITY_STORED, /* a value that the file holds: weights, biases, scales, as codes and floats */
    PARITY_CODES,  /* what is computed and rounded to codes */
    PARITY_FLOATS, /* what is computed between codes */
} ParityKind;

/* A value that both graphs have. */
typedef struct ParityNode {
    ParityKind kind;
    const char *name;
    const char *op; /* the word that gives it in the file's integer form */
    DType type;
    bool matched; /* the training graph has it, too: only then is it compared */
    int64_t n, differ;
    double largest;   /* difference, of codes; of floats where both are finite */
    int64_t ties;     /* codes that were rounded from within one ulp of where the next code begins */
    int64_t floats_n; /* the file's pairs computed literally, in f32: codes compared with those of the training graph */
    int64_t floats_differ;
    double floats_largest;

    /* ---- where it is found ---- */
    const Node *training, *file, *quotient, *literal; /* null: nowhere */
    const Node *rounded, *scale;                      /* of a quantizer of floats: what it rounds */
    int rounding;                                     /* of its numbers (ops/scalar/quant.h) */
} ParityNode;

typedef struct Parity {
    Graph *training;        /* @eval, on codes */
    Graph *codes, *literal; /* the file, on codes and as it stands */
    ParityNode *list;       /* in the order of the file */
    size_t n, cap;
    Arena *arena;
    bool begun; /* what is stored was compared */
} Parity;

/* What came of all nodes of a kind. */
typedef struct ParitySum {
    size_t nodes, wrong, unmatched;
    int64_t n, differ, ties, floats_n, floats_differ;
    double largest, floats_largest;
    const ParityNode *first; /* that differs; null: none */
} ParitySum;

/* Finds what there is to compare of a step and of the model that was exported from it; all of it lives in `arena`. */
Status parity_open(Parity *p, const qcc_step *s, qcc_model *file, Arena *arena);

/* Compares one batch; inputs are those of the training graph, in its order, and those of the file. */
Status parity_batch(Parity *p, const EvalOptions *how, Memory *memory, const Tensor *const *training,
                    const Tensor *const *file, const Batch *batch);

/* What came of it so far. */
ParitySum parity_sum(const Parity *p, ParityKind kind);

/* Whether every code and every stored value is the same, and some were compared. */
bool parity_holds(const Parity *p);

#endif
