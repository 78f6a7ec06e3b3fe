/* Fused graphs: random ones have the values of what they were made from, and every tape the bits of the evaluator, at each
 * level and with any number of threads. */
#include "passes/engine/trial.h"
#include "ops/card/reduction.h"
#include "support/samples.h"
#include "support/tape_check.h"
#include "testing.h"

enum { GRAPHS = 400, MOST_CALLS = 14 };

/* ---- random graphs ---- */

typedef struct Random {
    Context *c;
    Rng rng;
    Build b;
    Graph *graph;
    int rank;
    int64_t dims[4];
    Node *values[MOST_CALLS + 8];
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
    int64_t axes[4];
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (rng_below(&r->rng, 8) == 0 || (rng_below(&r->rng, 3) ? i >= cut : i < cut))
            axes[n++] = i;
    const ReduceAttr at = { .keepdims = rng_below(&r->rng, 8) != 0 };
    Node *list = build_i64s(&r->b, n, axes);
    keep(r, build_node(&r->b, words[rng_below(&r->rng, (int64_t)COUNT(words))], &at, 2, (Node *[]){ x, list }));
}

static Graph *random_graph(Context *c, uint64_t seed)
{
    static void (*const calls[])(Random *) = { call_unary, call_unary, call_binary, call_binary, call_binary,
                                               call_test,  call_cast,  call_clip,   call_reduce, call_reduce };
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
    keep(&r, graph_input(r.graph, "x", some_type(&r, F32, true)));
    for (int i = 0; i < 3; i++)
        keep(&r, graph_input(r.graph, (const char *[]){ "a", "b", "c" }[i],
                             some_type(&r, types[rng_below(&r.rng, (int64_t)COUNT(types))], false)));
    const int n = (int)rng_range(&r.rng, 1, MOST_CALLS);
    Node *results[MOST_CALLS + 8];
    int n_results = 0;
    for (int i = 0; i < n && r.b.status == OK; i++) {
        const int before = r.n;
        calls[rng_below(&r.rng, (int64_t)COUNT(calls))](&r);
        if (!r.values[before])
            return NULL; /* the draw does not fit together */
    }
    for (int i = 4; i < r.n; i++)
        if (!r.values[i]->uses || rng_below(&r.rng, 5) == 0)
            results[n_results++] = r.values[i];
    graph_return(r.graph, n_results, results, NULL);
    return n_results ? r.graph : NULL;
}

/* ---- their tapes ---- */

static Status check_random(void *context)
{
    TapeCheck w = { .c = context };
    const Pass *fuse = pass_find("grow-fusion"), *dead = pass_find("drop-dead");
    int64_t graphs = 0, alone = 0;
    for (uint64_t k = 0; k < GRAPHS; k++) {
        const uint64_t seed = seed_of("tapes", k);
        Graph *g = random_graph(w.c, seed);
        if (!g)
            continue;
        Graph *before = graph_copy(g, &w.c->arena);
        TRY(pass_run(fuse, g, NULL));
        TRY(pass_run(dead, g, NULL));
        bool ran;
        Arena scratch;
        arena_open(&scratch, &w.c->memory);
        const char *difference = trial_compare(before, g, EXACT, seed, &scratch, &ran);
        if (difference)
            print_error("graph %d: %s\n", (int)k, difference);
        assert_null(difference);
        arena_close(&scratch);
        if (!ran)
            continue; /* a graph that the evaluator refuses */
        assert_true(tape_check(&w, g, seed));
        graphs++;
        for (const Node *n = g->first; n; n = n->next)
            alone += n->op != OP_fused && n->op != OP_part && n->op != OP_const;
    }
    printf("%d graphs, %d tapes with %d folds over blocks, %d calls alone\n", (int)graphs, (int)w.tapes, (int)w.folded,
           (int)alone);
    assert_false(w.wrong);
    assert_true(graphs > GRAPHS / 2 && w.tapes > graphs && w.folded > 50 && alone < graphs);
    return OK;
}

/* ---- composites, opened and put together anew ---- */

typedef struct Opened {
    CardTour tour;
    int64_t graphs, tapes;
} Opened;

static Status open_composites(void *thing)
{
    static const char *const passes[] = { "expand", "merge-equals", "grow-fusion", "drop-dead" };
    Opened *o = thing;
    Context *c = o->tour.c;
    for (int v = 0; v < o->tour.def->n_variants && o->tour.def->expand; v++) {
        Graph *g = sample_graph(c, o->tour.def, v);
        if (!g)
            continue;
        bool ran;
        Graph *before = graph_copy(g, &c->arena);
        for (size_t i = 0; i < COUNT(passes); i++)
            if (pass_run(pass_find(passes[i]), g, NULL) != OK) {
                print_error("%s, variant %d: %s: %s\n", o->tour.def->name, v, passes[i], c->last);
                return INVALID;
            }
        const char *difference = trial_compare(before, g, EXACT, (uint64_t)v, &c->arena, &ran);
        if (difference)
            print_error("%s, variant %d: %s\n", o->tour.def->name, v, difference);
        if (difference)
            return MISMATCH;
        TapeCheck w = { .c = c };
        if (ran)
            assert_true(tape_check(&w, g, (uint64_t)v));
        if (w.wrong)
            print_error("%s, variant %d\n", o->tour.def->name, v);
        o->graphs += ran;
        o->tapes += w.tapes;
        if (w.wrong)
            return MISMATCH;
    }
    return OK;
}

static void composites(void **state)
{
    Opened o = { .graphs = 0 };
    (void)state;
    assert_int_equal(each_card(&o.tour, open_composites), 0);
    printf("%d composites, %d tapes\n", (int)o.graphs, (int)o.tapes);
    assert_true(o.graphs > 300 && o.tapes > o.graphs);
}

static void random_graphs(void **state)
{
    (void)state;
    with_context(check_random);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_graphs), cmocka_unit_test(composites) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
