/* Calls on tensors made in a test, and what they give as numbers. */
#ifndef TESTS_SUPPORT_CALLS_H
#define TESTS_SUPPORT_CALLS_H

#include <math.h>

#include "testing.h"

/* An assertion that says what it is about. */
#define require(what, ...)                                                                                             \
    do {                                                                                                               \
        if (!(what))                                                                                                   \
            print_error(__VA_ARGS__);                                                                                  \
        assert_true(what);                                                                                             \
    } while (0)

static inline Build fresh(Context *c)
{
    return build_at_end(graph_new(&c->ir, &c->arena, "f"));
}

/* What a node of a graph of constants gives; a tuple holds several. */
static inline Tensor *value_of(Context *c, Node *y, const EvalOptions *options)
{
    Tensor *out = NULL;
    assert_non_null(y);
    graph_return(y->graph, 1, &y, NULL);
    assert_int_equal(evaluate(y->graph, options, &c->heap, NULL, &out), OK);
    return out;
}

/* The constant behind a node. */
static inline const Tensor *constant(const Node *n)
{
    return node_constant(n, 0);
}

/* Random floats in [-1, 1]. */
static inline Node *draw(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims)
{
    return sample_tensor(b, rng, dtype, rank, dims, -1, 1);
}

#define DRAW(b, rng, dtype, ...)                                                                                       \
    draw(b, rng, dtype, (int)COUNT(((int64_t[]){ __VA_ARGS__ })), (int64_t[]){ __VA_ARGS__ })

/* Element i as f64. */
static inline double at(const Tensor *t, int64_t i)
{
    return tensor_get_f64(t, i);
}

/* Whether two numbers agree to a relative and absolute tolerance. */
static inline bool close_to(double got, double want, double tolerance)
{
    return fabs(got - want) <= tolerance * (1 + fabs(want)) || (isnan(got) && isnan(want)) || got == want;
}

/* Nothing comes of the call, and the complaint says why. */
static inline void expect_refused(Context *c, Build *b, const Node *y, const char *why)
{
    assert_null(y);
    assert_int_equal(b->status, INVALID);
    if (!c->last || !strstr(c->last, why))
        print_error("\"%s\" does not say \"%s\"\n", c->last ? c->last : "", why);
    assert_true(c->last && strstr(c->last, why));
    b->status = OK;
}

/* The call is legal by its types and fails when its values are seen. */
static inline void expect_failure(Context *c, Node *y, const char *why)
{
    Tensor *out = NULL;
    assert_non_null(y);
    graph_return(y->graph, 1, &y, NULL);
    assert_int_equal(evaluate(y->graph, NULL, &c->heap, NULL, &out), INVALID);
    if (!strstr(c->last, why))
        print_error("\"%s\" does not say \"%s\"\n", c->last, why);
    assert_non_null(strstr(c->last, why));
}

#endif
