/* Whole programs against the evaluator: random graphs with moves and products, and the samples of every card, lowered with
 * all passes and with each of them left out, at each level, with one, two, three and sixty-four threads; random graphs, too,
 * of which a part is made again between borders that lie anywhere, and products with rows behind them.  Every result has the same bits. */
#include "codegen/program.h"
#include "ir/verify.h"
#include "ops/card/eval.h"
#include "ops/contract/contract.h"
#include "ops/random/random_draws.h"
#include "passes/engine/trial.h"
#include "passes/lower/make_again.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"
#include "runtime/cpu/cpu.h"
#include "support/random_graph.h"
#include "support/samples.h"

#ifdef SWEEP /* programs_sweep.c: more of them */
enum { GRAPHS = 4000 };
#else
enum { GRAPHS = 400 };
#endif

static const int thread_counts[] = { 1, 2, 3, 64 };

typedef struct Trial {
    Context *c;
    const char *name;
    Graph *graph;
    uint64_t seed;
    const Tensor **inputs;
    Tensor **wanted; /* what the evaluator gave */
    const Kernels *level;
    Parallel *pool;
    int left_out; /* pass of the pipeline; -1: none */
    bool again;   /* what lies before borders is made again */
    bool all_passes;
} Trial;

static int64_t ran, refused, lost, compared, again, contracts, beside; /* lost: though every size is known */
static Parallel *pools[COUNT(thread_counts)];

/* ---- values made again ---- */

/* The later half of the calls is the backward side. */
static void give_sides(Graph *g, Rng *rng)
{
    size_t n = 0, forward = 0;
    for (const Node *k = g->first; k; k = k->next)
        n++;
    forward = n / 2 + (size_t)rng_below(rng, (int64_t)n / 4 + 1);
    for (Node *k = g->first; k; k = k->next)
        if (forward ? (forward--, false) : k->op != OP_const && k->op != OP_param)
            k->flags |= NODE_BACKWARD;
}

static void make_some_again(const Trial *t, Graph *g, Arena *arena)
{
    Rng rng = { t->seed };
    Timeline timeline;
    PassRun run = { .options = NULL, .diag = &t->c->diag, .scratch = arena };
    timeline_open(&timeline, g, arena);
    Borders borders = { NEWS(arena, Border, timeline.n_forward + 1), 0 };
    for (int i = 0; i + 1 < timeline.n_forward; i++)
        if (rng_below(&rng, 2))
            borders.at[borders.n++] = (Border){ i, rng_below(&rng, 3) > 0 };
    assert_int_equal(make_blocks_again(&run, &timeline, &borders), OK);
    again += run.changes;
}

/* ---- a program, without one of the passes ---- */

static const Program *program_of(const Trial *t, Graph *g, Arena *arena)
{
    const Pipeline *lower = pipeline_find("lower");
    Plan plan;
    const char *why = NULL;
    const Node *where = NULL;
    for (size_t i = 0; i < lower->n; i++) {
        if (t->again && lower->passes[i] == pass_find("grow-fusion"))
            make_some_again(t, g, arena);
        if ((int)i != t->left_out && pass_run(lower->passes[i], g, NULL) != OK)
            return NULL;
    }
    if (pipeline_run_bodies(lower, g, NULL) != OK || !plan_memory(g, arena, &plan, &where))
        return NULL;
    assert_null(plan_check(&plan, arena));
    const Program *p = program_make(&plan, arena, &why, &where);
    if (!p)
        return NULL;
    const char *wrong = program_check(p, arena);
    if (wrong) {
        Text text;
        text_open(&text, arena);
        program_print(&text, p, t->c->ir.ops, true);
        fprintf(stderr, "%s, without pass %d: %s\n%s", t->name, t->left_out, wrong, text_get(&text));
    }
    assert_null(wrong);
    for (int i = 0; i < p->n_launches; i++) {
        contracts += p->launches[i].kind == LAUNCH_CONTRACT;
        beside += p->launches[i].kind != LAUNCH_REGION && p->launches[i].beside;
    }
    return p;
}

/* ---- a run ---- */

static void same_results(const Trial *t, const Engine *e, Values *v, int graph)
{
    for (int i = 0; i < graph_n_results(t->graph); i++) {
        const Tensor *got = NULL;
        assert_int_equal(e->get(v, value_result(graph, i), &got), OK);
        const bool same = (!got && !t->wanted[i]) || (got && t->wanted[i] && tensor_same(got, t->wanted[i]));
        if (!same)
            print_error("%s, seed %llu: result %d differs at level %s with %d threads, without pass %d\n", t->name,
                        (unsigned long long)t->seed, i, kernels_name(t->level), parallel_threads(t->pool), t->left_out);
        assert_true(same);
        compared++;
    }
}

/* False: it has no program. */
static bool run_program(const Trial *t, Arena *arena)
{
    const Engine *e = &engine_cpu;
    Graph *g = graph_copy(t->graph, arena);
    const Program *p = program_of(t, g, arena);
    if (!p)
        return false;
    const EngineOptions options = { .kernels = t->level, .pool = t->pool };
    const Executable x = { .graph = g, .n_parts = 1, .program = p };
    ValueAt *at = NEWS(arena, ValueAt, g->n_inputs + 1);
    const EngineRun run = { .seed = t->seed, .inputs = at };
    Values *v;
    int graph;
    for (size_t i = 0; i < g->n_inputs; i++)
        at[i] = value_kept((int)i);
    assert_int_equal(e->open(&t->c->ir, &options, (int)g->n_inputs, arena, &v), OK);
    assert_int_equal(e->load(v, &x, &graph), OK);
    assert_int_equal(e->put(v, (int)g->n_inputs, at, (Tensor *const *)(uintptr_t)t->inputs, PUT_LEND), OK);
    for (int turn = 0; turn < 2; turn++) { /* what the first run left is in no result of the second */
        assert_int_equal(e->begin(v, graph, &run), OK);
        assert_int_equal(e->run(v, graph, 0), OK);
        same_results(t, e, v, graph);
        e->end(v, graph);
    }
    e->close(v);
    return true;
}

/* Whether all values of a graph are tensors of known size. */
static bool sizes_are_known(Graph *g)
{
    for (const Node *n = walk_first(g); n; n = walk_next(g, (Node *)(uintptr_t)n))
        for (int i = 0; i < type_results(n->type); i++)
            if (!tensor_holds(type_result(n->type, i)) || !type_known(type_result(n->type, i)))
                return false;
    return true;
}

/* A way to run it, another for each graph. */
static void choose(Trial *t, uint64_t number)
{
    const size_t passes = pipeline_find("lower")->n;
    size_t levels = 0;
    while (kernels_levels[levels])
        levels++;
    t->level = kernels_named(kernels_levels[levels - 1 - number % levels]);
    t->level = t->level ? t->level : kernels_best();
    t->pool = pools[number / levels % COUNT(pools)];
    if (t->again || t->all_passes) { /* the parts of a step have to be put in order */
        t->left_out = -1;
        return;
    }
    t->left_out = (int)(number % (2 * passes)) < (int)passes ? (int)(number % passes) : -1;
}

static bool try_graph(Trial *t, uint64_t number)
{
    Arena arena;
    Hush hush;
    arena_open(&arena, &t->c->memory);
    t->inputs = random_inputs(t->graph, t->seed, &arena);
    t->wanted = NEWS(&arena, Tensor *, graph_n_results(t->graph) + 1);
    hush_begin(&hush, &t->c->ir, &arena);
    const EvalOptions options = { .seed = t->seed };
    const bool fine = evaluate(t->graph, &options, &t->c->heap, t->inputs, t->wanted) == OK;
    bool any = false;
    choose(t, number);
    if (fine)
        any = run_program(t, &arena);
    hush_end(&hush);
    ran += any;
    refused += fine && !any;
    if (fine && !any && t->left_out < 0 && sizes_are_known(t->graph)) {
        fprintf(stderr, "%s, seed %llu: has no program\n", t->name, (unsigned long long)t->seed);
        lost++;
    }
    arena_close(&arena);
    return any;
}

/* ---- which graphs ---- */

static Status check_random(void *context)
{
    for (uint64_t i = 0; i < GRAPHS; i++) {
        Trial t = { .c = context, .name = "random", .seed = seed_of("programs", i) };
        t.graph = random_graph(t.c, t.seed, true);
        if (t.graph)
            try_graph(&t, i);
    }
    return OK;
}

static void random_graphs(void **state)
{
    (void)state;
    ran = refused = lost = compared = contracts = 0;
    with_context(check_random);
    print_message("%d graphs ran, %d have no program, %d results, %d products with rows\n", (int)ran, (int)refused,
                  (int)compared, (int)contracts);
    assert_true(ran > GRAPHS / 2 && refused == 0 && contracts > GRAPHS / 20);
}

/* Stacks and single matrices, of which blocks are rows, columns or all of it; sums of no element, of one segment and of
 * several. */
typedef struct Product {
    int rank;
    int64_t a[3], b[3];
    bool ta, tb;
    DType dtype, out;
} Product;

static const Product products[] = {
    { 2, { 5, 7 }, { 7, 3 }, false, false, F32, F32 },
    { 2, { 1, 300 }, { 300, 700 }, false, false, F32, F32 },
    { 2, { 2, 2500 }, { 2500, 70 }, false, false, F32, F32 },
    { 2, { 20, 64 }, { 64, 200 }, false, false, F32, F32 },
    { 2, { 130, 2100 }, { 2100, 140 }, false, false, F32, F32 },
    { 2, { 800, 40 }, { 300, 40 }, false, true, F32, F32 },
    { 2, { 40, 410 }, { 40, 1300 }, true, false, F32, F32 },
    { 2, { 30, 4200 }, { 600, 4200 }, false, true, F32, F32 },
    { 2, { 12, 0 }, { 0, 9 }, false, false, F32, F32 },
    { 2, { 64, 600 }, { 600, 1 }, false, false, F32, F32 },
    { 3, { 5, 33, 17 }, { 1, 17, 40 }, false, false, F32, F32 },
    { 3, { 2, 150, 65 }, { 2, 190, 65 }, false, true, F32, F32 },
    { 2, { 90, 130 }, { 130, 260 }, false, false, BF16, BF16 },
    { 2, { 90, 130 }, { 130, 260 }, false, false, BF16, F32 },
    { 2, { 130, 70 }, { 130, 150 }, true, false, F16, F16 },
    { 2, { 3, 2100 }, { 2100, 150 }, false, false, F16, F32 },
    { 2, { 50, 2300 }, { 2300, 60 }, false, false, F64, F64 },
};

static Node *convert(Build *b, Node *n, DType d)
{
    return n->type->dtype == d ? n : build_cast(b, n, d);
}

/* What goes on with it: a bias and a function; sums with what is as large, and numbers drawn; casts; and itself. */
static Graph *product_graph(Context *c, const Product *p, int behind)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const MatmulAttr at = { .ta = p->ta, .tb = p->tb, .out = p->out == p->dtype ? 0 : (int)p->out + 1 };
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, p->dtype, p->rank, p->a));
    Node *w = graph_input(g, "w", type_tensor(&c->ir.types, p->dtype, p->rank, p->b));
    Node *y = CALL_ATTR(&b, matmul, at, x, w);
    Node *bias = graph_input(g, "b", type_tensor(&c->ir.types, p->out, 1, y->type->dims + y->type->rank - 1));
    Node *same = graph_input(g, "s", y->type);
    const DropoutAttr drop = { .seed = NO_SEED, .stream = 2 };
    Node *h = CALL(&b, add, y, behind == 1 ? same : bias);
    Node *ins[] = { h, build_scalar(&b, F32, 0.25), build_scalar(&b, BOOL, 1) };
    Node *z = behind == 1   ? build_node(&b, OP_dropout, &drop, 3, ins)
              : behind == 2 ? convert(&b, h, p->out == BF16 ? F32 : BF16)
                            : build_node(&b, OP_gelu, NULL, 1, &h);
    graph_return(g, behind == 3 ? 3 : behind == 0 ? 2 : 1, (Node *[]){ z, h, y }, NULL);
    return g;
}

/* Three of one left operand, the last with more columns; rows go on with the second. */
static Graph *sides_graph(Context *c, const Product *p)
{
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    const MatmulAttr at = { .ta = p->ta, .tb = p->tb, .out = p->out == p->dtype ? 0 : (int)p->out + 1 };
    int64_t wider[3] = { p->b[0], p->b[1], p->b[2] };
    wider[p->tb ? p->rank - 2 : p->rank - 1] += 21;
    const Type *right = type_tensor(&c->ir.types, p->dtype, p->rank, p->b);
    Node *x = graph_input(g, "x", type_tensor(&c->ir.types, p->dtype, p->rank, p->a));
    Node *u = graph_input(g, "u", right), *v = graph_input(g, "v", right);
    Node *w = graph_input(g, "w", type_tensor(&c->ir.types, p->dtype, p->rank, wider));
    Node *first = CALL_ATTR(&b, matmul, at, x, u), *second = CALL_ATTR(&b, matmul, at, x, v);
    Node *z = build_node(&b, OP_tanh, NULL, 1, &second);
    Node *last = CALL_ATTR(&b, matmul, at, x, w);
    graph_return(g, 3, (Node *[]){ first, convert(&b, z, p->out == BF16 ? F32 : BF16), last }, NULL);
    return g;
}

static Status check_sides(void *context)
{
    for (uint64_t i = 0; i < COUNT(products); i++)
        for (uint64_t way = 0; way < 3 * COUNT(pools); way++) {
            Trial t = { .c = context, .name = "sides", .seed = seed_of("sides", i), .all_passes = true };
            t.graph = sides_graph(t.c, &products[i]);
            assert_true(try_graph(&t, way));
        }
    return OK;
}

/* They are one wave, at every level, with every number of threads. */
static void products_of_one_operand(void **state)
{
    (void)state;
    ran = beside = 0;
    with_context(check_sides);
    print_message("%d launches beside others\n", (int)beside);
    assert_int_equal(beside, COUNT(products) * 2 * 3 * COUNT(pools));
}

static Status check_products(void *context)
{
    for (uint64_t i = 0; i < COUNT(products) * 4; i++)
        for (uint64_t way = 0; way < 3 * COUNT(pools); way++) {
            Trial t = { .c = context, .name = "product", .seed = seed_of("products", i), .all_passes = true };
            t.graph = product_graph(t.c, &products[i / 4], (int)(i % 4));
            assert_true(try_graph(&t, way));
        }
    return OK;
}

/* Each at every level, with every number of threads. */
static void products_with_rows(void **state)
{
    (void)state;
    ran = contracts = compared = 0;
    with_context(check_products);
    print_message("%d products, %d results\n", (int)contracts, (int)compared);
    assert_int_equal(contracts, COUNT(products) * 4 * 3 * COUNT(pools));
}

static Status check_again(void *context)
{
    for (uint64_t i = 0; i < GRAPHS; i++) {
        Trial t = { .c = context, .name = "again", .seed = seed_of("again", i), .again = true };
        Rng rng = { t.seed };
        t.graph = random_graph(t.c, t.seed, true);
        if (t.graph) {
            give_sides(t.graph, &rng);
            try_graph(&t, i);
        }
    }
    return OK;
}

static void blocks_made_again(void **state)
{
    (void)state;
    ran = refused = lost = compared = again = 0;
    with_context(check_again);
    print_message("%d graphs ran, %d have no program, %d calls made again\n", (int)ran, (int)refused, (int)again);
    assert_true(ran > GRAPHS / 2 && refused == 0 && again > GRAPHS * 3 / 10);
}

static Status check_card(void *thing)
{
    CardTour *tour = thing;
    for (int i = 0; i < tour->def->n_variants; i++) {
        Trial t = { .c = tour->c, .name = tour->def->name, .seed = seed_of(tour->def->name, (uint64_t)i) };
        t.graph = sample_graph(t.c, tour->def, i);
        for (size_t k = 0; t.graph && k < t.graph->n_inputs; k++)
            if (!tensor_holds(t.graph->inputs[k]->type) || !type_known(t.graph->inputs[k]->type))
                t.graph = NULL;
        if (t.graph)
            try_graph(&t, (uint64_t)i);
    }
    return OK;
}

static void samples_of_cards(void **state)
{
    CardTour tour = { 0 };
    (void)state;
    ran = refused = lost = compared = 0;
    assert_int_equal(each_card(&tour, check_card), 0);
    print_message("%d samples ran, %d have no program, %d results\n", (int)ran, (int)refused, (int)compared);
    assert_true(ran > 6000 && lost == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(random_graphs), cmocka_unit_test(products_with_rows),
                                        cmocka_unit_test(products_of_one_operand), cmocka_unit_test(blocks_made_again),
                                        cmocka_unit_test(samples_of_cards) };
    for (size_t i = 1; i < COUNT(pools); i++)
        pools[i] = parallel_open(thread_counts[i], NULL);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < COUNT(pools); i++)
        parallel_close(pools[i]);
    return failed;
}
