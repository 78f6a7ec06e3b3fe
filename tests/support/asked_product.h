/* A maker of products that remembers what it was asked for, and what its matrices hold. */
#ifndef TESTS_SUPPORT_ASKED_PRODUCT_H
#define TESTS_SUPPORT_ASKED_PRODUCT_H

#include "ir/kernels.h"
#include "testing.h"

enum { ASKED_SCRATCH = 12345 };

typedef struct Asked {
    ProductMaker maker;
    StackProduct is;
    int n;
} Asked;

struct KernelProduct {
    int nothing;
};

static inline const KernelProduct *asked_take(ProductMaker *m, const StackProduct *p, size_t *scratch)
{
    static const KernelProduct made;
    Asked *a = (Asked *)m;
    a->is = *p;
    a->n++;
    *scratch = ASKED_SCRATCH;
    return &made;
}

/* An element of a matrix of a stack, as a library reads it. */
static inline double asked_element(const MatrixStack *s, const Tensor *t, int64_t i, int64_t row, int64_t column)
{
    const int64_t at = s->turned ? column + row * s->line : row + column * s->line;
    assert_true(row >= 0 && row < (s->turned ? s->columns : s->rows) && column < (s->turned ? s->rows : s->columns));
    return tensor_get_f64(t, s->from + i * s->step + at);
}

#endif
