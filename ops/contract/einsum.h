/* The equation of an einsum, read. */
#ifndef OPS_CONTRACT_EINSUM_H
#define OPS_CONTRACT_EINSUM_H

#include "ops/contract/contract.h"

/* Letters are labels 0 .. 51; the dimensions behind an ellipsis follow, the last of them being ELLIPSIS_END - 1. */
enum { LETTERS = 52, ELLIPSIS_END = LETTERS + MAX_RANK, LABELS = ELLIPSIS_END };

/* Names of dimensions. */
typedef struct Labels {
    int n;
    uint8_t v[MAX_RANK];
} Labels;

typedef struct Equation {
    Labels *in;
    Labels out;
    int64_t extent[LABELS]; /* -1 unknown, -2 not used */
    int ellipsis;           /* the most dimensions an ellipsis stands for */
} Equation;

/* Reads one term up to a comma, an arrow or the end.  `rank` is that of the operand (-1: the output), `ellipsis` what
 * an ellipsis stands for when there is no operand to tell.  Returns what is wrong, or null. */
const char *equation_term(const char **text, int rank, int ellipsis, Labels *to, bool *has_ellipsis, Arena *arena);

/* Null, or what is wrong; all ranks must be known. */
const char *equation_read(Equation *q, const char *text, int n_in, const Type *const *types, Arena *arena);

/* Whether a label is among them. */
bool labels_have(const Labels *l, uint8_t label);

void adjoint_einsum(Build *b, const Site *s, Node **dx);

#endif
