#include "support/random_graph.h"

#include <string.h>

#include "base/rng.h"
#include "ops/card/reduction.h"
#include "ops/contract/contract.h"
#include "ops/move/move.h"
#include "ops/random/random_draws.h"

enum { MOST_CALLS = 14 };

typedef struct Random {
    Context *c;
    Rng rng;
    Build b;
    Graph *graph;
    int rank;
    int64_t dims[4];
    int channels; /* dimensions 1 .. channels of it are what most reductions keep; 0: none in the middle */
    Node *values[4 * MOST_CALLS + 8];
    int n;
} Random;

static Node *keep(Random *r, Node *n)
{
    return r->values[r->n++] = n;
}

/* Some of the dimensions of the space, the others 1. */
static const Type *some_type(Random *r, DType d, int64_t whole)
{
    int64_t dims[4];
    const int rank = (int)(whole ? r->rank : rng_range(&r->rng, 0, r->rank));
    for (int i = 0; i < rank; i++)
        dims[i] = whole || rng_below(&r->rng, 2) ? r->dims[r->rank - rank + i] : 1;
    return type_tensor(&r->c->ir.types, d, rank, dims);
}

static Node *pick(Random *r, bool floating)
{
    for (int tries = 0; tries < 64; tries++) {
        Node *n = r->values[rng_below(&r->rng, r->n)];
        if (dtype_is_float(n->type->dtype) == floating && n->type->dtype != BOOL)
            return n;
    }
    return r->values[0];
}

static Node *of_type(Random *r, Node *n, DType d)
{
    return n->type->dtype == d ? n : build_cast(&r->b, n, d);
}

static void call_unary(Random *r)
{
    static const OpWord words[] = { OP_neg, OP_abs, OP_exp, OP_tanh, OP_sigmoid, OP_sqrt, OP_relu, OP_gelu };
    Node *x = pick(r, true);
    keep(r, build_node(&r->b, words[rng_below(&r->rng, (int64_t)COUNT(words))], NULL, 1, &x));
}

static void call_binary(Random *r)
{
    static const OpWord words[] = { OP_add, OP_sub, OP_mul, OP_div, OP_max, OP_min };
    Node *x = pick(r, rng_below(&r->rng, 5) != 0), *y = of_type(r, pick(r, true), x->type->dtype);
    keep(r, build_node(&r->b, words[rng_below(&r->rng, (int64_t)COUNT(words))], NULL, 2, (Node *[]){ x, y }));
}

static void call_test(Random *r)
{
    Node *x = pick(r, true), *y = of_type(r, pick(r, true), x->type->dtype), *z = pick(r, true);
    Node *test = build_node(&r->b, OP_less, NULL, 2, (Node *[]){ x, y });
    keep(r, build_node(&r->b, OP_where, NULL, 3, (Node *[]){ test, of_type(r, z, x->type->dtype), x }));
}

static void call_cast(Random *r)
{
    static const DType types[] = { F32, BF16, F16, F64, I32, F32 };
    keep(r, build_cast(&r->b, pick(r, true), types[rng_below(&r->rng, (int64_t)COUNT(types))]));
}

static void call_clip(Random *r)
{
    Node *x = pick(r, true);
    const DType d = x->type->dtype;
    keep(r, build_node(&r->b, OP_clip, NULL, 3, (Node *[]){ x, NULL, build_scalar(&r->b, d, 1.5) }));
}

static void call_reduce(Random *r)
{
    static const OpWord words[] = { OP_reduce_sum, OP_reduce_max, OP_reduce_min, OP_reduce_sum_square, OP_reduce_prod };
    Node *x = pick(r, rng_below(&r->rng, 5) != 0);
    const int rank = x->type->rank, cut = (int)rng_range(&r->rng, 0, rank);
    const bool around = r->channels && rank == r->rank && rng_below(&r->rng, 8);
    int64_t axes[4];
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (around ? i == 0 || i > r->channels
                   : rng_below(&r->rng, 8) == 0 || (rng_below(&r->rng, 3) ? i >= cut : i < cut))
            axes[n++] = i;
    const ReduceAttr at = { .keepdims = rng_below(&r->rng, 8) != 0 };
    Node *list = build_i64s(&r->b, n, axes);
    keep(r, build_node(&r->b, words[rng_below(&r->rng, (int64_t)COUNT(words))], &at, 2, (Node *[]){ x, list }));
}

/* Numbers of a stream that others may have too, as a dropout or for every element. */
static void call_draw(Random *r)
{
    static const OpWord words[] = { OP_random_normal_like, OP_random_uniform_like, OP_random_normal };
    Node *x = pick(r, true);
    const OpWord word = words[rng_below(&r->rng, (int64_t)COUNT(words))];
    const DType types[] = { F32, F32, BF16, F16, F64 };
    const RandomAttr at = { .shape = { x->type->rank, (int64_t *)(uintptr_t)x->type->dims },
                            .dtype = (int)types[rng_below(&r->rng, (int64_t)COUNT(types))] + 1,
                            .first = -1,
                            .second = 1.5f,
                            .seed = rng_below(&r->rng, 3) ? NAN : 7,
                            .stream = rng_below(&r->rng, 4) };
    const DropoutAttr drop = { .seed = rng_below(&r->rng, 3) ? NO_SEED : 11, .stream = at.stream };
    Node *ratio = build_scalar(&r->b, rng_below(&r->rng, 2) ? F32 : F64, 0.1 + 0.25 * (double)rng_below(&r->rng, 4));
    Node *ins[] = { x, rng_below(&r->rng, 4) ? ratio : NULL, build_scalar(&r->b, BOOL, 1) };
    if (rng_below(&r->rng, 3))
        keep(r, build_node(&r->b, OP_dropout, &drop, 3, ins));
    else
        keep(r, build_node(&r->b, word, &at, word == OP_random_normal ? 0 : 1, &x));
}

/* 1 where an index says, from either side, in one of the types. */
static Node *mark(Random *r, Node *index, int64_t extent)
{
    static const DType types[] = { F32, F64, BF16 };
    int64_t *all = NEWS(r->graph->arena, int64_t, extent + 1);
    for (int64_t i = 0; i < extent; i++)
        all[i] = i;
    Node *numbers = build_i64s(&r->b, (int)extent, all);
    const bool first = rng_below(&r->rng, 2);
    Node *hit = CALL(&r->b, equal, first ? index : numbers, first ? numbers : index);
    return build_cast(&r->b, hit, types[rng_below(&r->rng, (int64_t)COUNT(types))]);
}

/* One element of each row, where an input points, as far as that is inside, or where that is. */
static void call_fetch(Random *r)
{
    Node *x = pick(r, true);
    const int rank = x->type->rank;
    int64_t dims[4];
    if (!rank)
        return;
    for (int i = 0; i < rank; i++)
        dims[i] = i == rank - 1 ? 1 : x->type->dims[i];
    const AxisAttr at = { rank - 1 };
    const char *name = arena_printf(r->graph->arena, "i%zu", r->graph->n_inputs);
    Node *given = graph_input(r->graph, name, type_tensor(&r->c->ir.types, I64, rank, dims));
    Node *far = build_scalar(&r->b, I64, (double)rng_range(&r->rng, -1, x->type->dims[rank - 1]));
    Node *index = build_node(&r->b, OP_mul, NULL, 2, (Node *[]){ given, far });
    Node *last = build_scalar(&r->b, I64, (double)x->type->dims[rank - 1] - 1);
    index = build_node(&r->b, OP_clip, NULL, 3, (Node *[]){ index, build_scalar(&r->b, I64, 0), last });
    if (rng_below(&r->rng, 2))
        keep(r, build_node(&r->b, OP_gather_elements, &at, 2, (Node *[]){ x, index }));
    else
        keep(r, mark(r, index, x->type->dims[rank - 1]));
}

/* Looks at a value and copies of it: what a plan may lay over what it was made from. */
static void call_move(Random *r)
{
    Node *x = pick(r, true);
    const int rank = x->type->rank;
    int64_t perm[4];
    for (int i = 0; i < rank; i++)
        perm[i] = rank - 1 - i;
    if (rank == 0 || rng_below(&r->rng, 3) == 0) {
        const int64_t flat[] = { -1 };
        keep(r, build_node(&r->b, OP_reshape, NULL, 2, (Node *[]){ x, build_i64s(&r->b, 1, flat) }));
    } else if (rng_below(&r->rng, 2)) {
        const TransposeAttr at = { .perm = { rank,
                                             memcpy(arena_alloc(r->graph->arena, sizeof perm), perm, sizeof perm) } };
        keep(r, build_node(&r->b, OP_transpose, &at, 1, &x));
    } else {
        const int64_t from[] = { 0 }, to[] = { 1 + rng_below(&r->rng, x->type->dims[0]) };
        Node *in[] = { x, build_i64s(&r->b, 1, from), build_i64s(&r->b, 1, to), build_i64s(&r->b, 1, from) };
        keep(r, build_node(&r->b, OP_slice, NULL, 4, in));
    }
}

/* What goes on with a product, element by element: a bias, a function, a cast, numbers drawn. */
static void call_behind(Random *r, Node *y)
{
    static const OpWord words[] = { OP_neg, OP_tanh, OP_gelu, OP_relu };
    static const DType types[] = { F32, BF16, F16, F64 };
    const Type *row = type_tensor(&r->c->ir.types, y->type->dtype, 1, y->type->dims + y->type->rank - 1);
    Node *zero = build_scalar(&r->b, y->type->dtype, 0.5);
    const DropoutAttr drop = { .seed = 5, .stream = 3 };
    Node *ins[] = { y, build_scalar(&r->b, F32, 0.25), build_scalar(&r->b, BOOL, 1) };
    switch (rng_below(&r->rng, 5)) {
    case 0:
        y = CALL(&r->b, add, y, graph_input(r->graph, arena_printf(r->graph->arena, "p%zu", r->graph->n_inputs), row));
        break;
    case 1:
        y = CALL(&r->b, mul, y, zero);
        break;
    case 2:
        y = build_cast(&r->b, y, types[rng_below(&r->rng, (int64_t)COUNT(types))]);
        break;
    case 3:
        y = build_node(&r->b, OP_dropout, &drop, 3, ins);
        break;
    default:
        y = build_node(&r->b, words[rng_below(&r->rng, (int64_t)COUNT(words))], NULL, 1, &y);
    }
    keep(r, y);
}

/* x' x, which always fits, and perhaps what goes on with it. */
static void call_product(Random *r)
{
    Node *x = pick(r, true);
    const MatmulAttr at = { .ta = true, .out = x->type->dtype == BF16 && rng_below(&r->rng, 2) ? F32 + 1 : 0 };
    if (x->type->rank < 2 || type_elements(x->type) > 1 << 14 || x->type->dims[x->type->rank - 1] > 200)
        return;
    keep(r, build_node(&r->b, OP_matmul, &at, 2, (Node *[]){ x, x }));
    for (int64_t more = rng_below(&r->rng, 4); more > 0 && r->values[r->n - 1]; more--)
        call_behind(r, r->values[r->n - 1]);
}

/* Dimensions around one or two in the middle: rows that are blocks, and such as are walked in pieces. */
static void choose_channels(Random *r)
{
    static const int64_t extents[] = { 2, 3, 5, 7, 40, 65 };
    const bool large = rng_below(&r->rng, 3) == 0;
    r->rank = (int)rng_range(&r->rng, 3, 4);
    r->channels = r->rank == 4 && rng_below(&r->rng, 2) ? 2 : 1;
    for (int i = 0; i < r->rank; i++)
        r->dims[i] = extents[rng_below(&r->rng, large || r->rank == 4 ? 4 : (int64_t)COUNT(extents))];
    if (large)
        r->dims[r->rank - 1] = rng_below(&r->rng, 2) ? 64 * rng_range(&r->rng, 5, 40) : rng_range(&r->rng, 200, 3000);
}

Graph *random_graph(Context *c, uint64_t seed, bool moves)
{
    static void (*const calls[])(Random *) = { call_unary, call_unary, call_binary, call_binary, call_binary,
                                               call_test,  call_cast,  call_clip,   call_reduce, call_reduce,
                                               call_draw,  call_fetch, call_move,   call_move,   call_product };
    const int64_t n_calls = moves ? (int64_t)COUNT(calls) : 12;
    static const int64_t extents[] = { 1, 2, 3, 7, 40, 65, 130, 1, 5 };
    static const DType types[] = { F32, F32, F32, BF16, F64, I64 };
    Random r = { .c = c, .rng = { seed }, .graph = graph_new(&c->ir, &c->arena, "f") };
    const bool large = rng_below(&r.rng, 6) == 0;
    r.b = build_at_end(r.graph);
    r.rank = (int)rng_range(&r.rng, 0, 3);
    for (int i = 0; i < r.rank; i++)
        r.dims[i] = extents[rng_below(&r.rng, (int64_t)COUNT(extents))];
    if (large && r.rank)
        r.dims[r.rank - 1] = rng_range(&r.rng, 900, 3000);
    if (rng_below(&r.rng, 4) == 0)
        choose_channels(&r);
    keep(&r, graph_input(r.graph, "x", some_type(&r, F32, true)));
    for (int i = 0; i < 3; i++)
        keep(&r, graph_input(r.graph, (const char *[]){ "a", "b", "c" }[i],
                             some_type(&r, types[rng_below(&r.rng, (int64_t)COUNT(types))], false)));
    const int n = (int)rng_range(&r.rng, 1, MOST_CALLS);
    Node *results[4 * MOST_CALLS + 8];
    int n_results = 0;
    for (int i = 0; i < n && r.b.status == OK; i++) {
        const int before = r.n;
        calls[rng_below(&r.rng, n_calls)](&r);
        if (r.n > before && !r.values[before])
            return NULL; /* the draw does not fit together */
    }
    for (int i = 4; i < r.n; i++)
        if (!r.values[i]->uses || rng_below(&r.rng, 5) == 0)
            results[n_results++] = r.values[i];
    graph_return(r.graph, n_results, results, NULL);
    return n_results ? r.graph : NULL;
}

const Tensor **random_inputs(const Graph *g, uint64_t seed, Arena *arena)
{
    Rng rng = { seed };
    const Tensor **inputs = NEWS(arena, const Tensor *, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = tensor_new(arena, g->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(t); k++)
            tensor_set_f64(t, k, dtype_is_float(t->type->dtype) ? 4 * rng_unit(&rng) - 2 : (double)rng_below(&rng, 2));
        inputs[i] = t;
    }
    return inputs;
}
