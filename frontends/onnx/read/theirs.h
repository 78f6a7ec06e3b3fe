/* Operators of other people's domains that are read into words of ours: one row each. */
#ifndef FRONTENDS_ONNX_READ_THEIRS_H
#define FRONTENDS_ONNX_READ_THEIRS_H

#include "frontends/onnx/read/call.h"

typedef struct Theirs {
    const char *domains; /* with a space between them */
    const char *op;
    int least_in, most_in;
    const char *attrs;       /* that it may have, with a space between them; others are refused */
    Status (*read)(Call *c); /* sets the call's result */
} Theirs;

/* The row of an operator; null: it stays as it is. */
const Theirs *theirs_find(const char *domain, const char *op);

/* Reads a call by its row. */
Status theirs_read(const Theirs *row, Call *c);

/* Reports that a call cannot be held, and why; returns UNSUPPORTED. */
Status theirs_fail(const Call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The values of an operand that is stored; null after a report: that word names the operand. */
const Tensor *theirs_values(const Call *c, int i, const char *word, Status *status);

/* ---- pairs of a quantizer and its numbers (theirs_pairs.c) ---- */

/* The least and the largest code; both 0: those of the type. */
typedef struct Codes {
    DType type;
    int64_t least, largest;
} Codes;

/* Operands that lie beside x, as a quantizer wants them: one, or one for each index of an axis. */
typedef struct Beside {
    int axis; /* -1: one for all */
    int64_t n;
} Beside;

/* How an operand lies beside what is quantized (the call's first operand). */
Status theirs_beside(const Call *c, const Node *scale, Beside *to);

/* The operand as a scalar, or as a vector along its axis. */
Node *theirs_laid(const Call *c, Node *n, const Beside *to);

/* The codes of x, and the numbers of codes; zero null: 0. */
Node *theirs_quantize(const Call *c, Node *x, Node *scale, Node *zero, const Beside *to, const Codes *codes,
                      int rounding, int mask);
Node *theirs_numbers(const Call *c, Node *codes, Node *scale, Node *zero, const Beside *to);

/* ---- nncf.c ---- */

Status read_nncf_fake(Call *c);

/* ---- qonnx.c ---- */

Status read_qonnx_quant(Call *c);
Status read_qonnx_bipolar(Call *c);
Status read_qonnx_trunc(Call *c);
Status read_qonnx_float(Call *c);

#endif
