/* What the files that print kernels of attention share: a call, and what its kernels are written from. */
#ifndef OPS_ATTEND_ATTEND_WRITER_H
#define OPS_ATTEND_ATTEND_WRITER_H

#include <inttypes.h>

#include "ops/attend/attention_blocks.h"
#include "ops/card/own_kernel.h"

enum { NO_MASK = -1 };

/* A row is a query of a head of a batch. */
typedef struct AttendWriter {
    const Node *n;
    OwnKernels *to;
    const AttentionAttr *at;
    Heads h;
    DType own;
    const char *type; /* of the arithmetic */
    int q, k, v, dy, mask, lengths;
    HeadStrides of_q, of_k, of_v, of_y;
    int64_t rows, group;           /* of all; heads of queries that share one of keys */
    size_t scores, back, tangents; /* in the scratch */
    bool late;
    Text t;
} AttendWriter;

#define LD PRId64

/* Begins with a call whose operands (queries, keys, values, mask, lengths) are these; false where there is nothing to compute. */
bool attend_writer_open(AttendWriter *w, const Node *n, OwnKernels *to, const int *operands);

/* A number of the arithmetic, and a value scaled, as C writes them. */
const char *attend_number(const AttendWriter *w, double v);
const char *attend_scaled(const AttendWriter *w, const char *value);

/* The element of the mask for key `j` of `query` of `head` of `b`; null: there is no mask. */
const char *attend_mask_element(const AttendWriter *w);

/* Keys that the mask says something of, and whether it says yes or no. */
int64_t attend_mask_keys(const AttendWriter *w);
bool attend_mask_chooses(const AttendWriter *w);

/* A product of each head of keys: of a matrix of m rows and one of n columns, k deep.  `x` and `y` say, as T, what element i of
 * row `r` and of column `j` is, and whether these lie beside each other along i; of head `shared` of batch `b`. */
typedef struct AttendProduct AttendProduct;
struct AttendProduct {
    const char *part;
    int64_t m, n, k;
    const char *x, *y;
    bool x_along, y_along;
    void (*end)(AttendWriter *w,
                const AttendProduct *p); /* prints what becomes of `sum`, of r and j, number `o` of all */
};

/* Prints its kernel. */
void attend_product(AttendWriter *w, const AttendProduct *p);

/* Prints the kernels of a call, and of the way back, whose products are made by tensor cores (attend_tensor.c); false, and nothing,
 * where it cannot be or is not worth it. */
bool attend_by_tensor(const AttendWriter *w);
bool attend_back_by_tensor(const AttendWriter *w);

#endif
