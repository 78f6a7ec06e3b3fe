/* label: fast */
/* Losses over many classes in chunks of rows: the bits of the step on the evaluator and on an engine of programs, run after run, in
 * less memory; which losses stay whole. */
#include "codegen/program.h"
#include "ir/text/parse.h"
#include "ops/card/eval.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"
#include "support/random_graph.h"
#include "support/recipe.h"
#include "support/seed.h"
#include "testing.h"

#ifdef ON_DEVICE /* tests/simcuda/chunk_loss.c */
#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/cuda.h"
static const Engine *const engine = &engine_cuda;
static const DeviceUse device = { .kernels = cuda_kernels_of };
#else
#include "runtime/cpu/cpu.h"
static const Engine *const engine = &engine_cpu;
static const DeviceUse device = { .number = 0 };
#endif

/* The rows of two sequences of 64, and of 128 samples; a table of words that is the head, too. */
#define OWN                                                                                                            \
    "graph @own(%x: f32[2,64,5]) -> (%logits) {\n    param %u: f32[5,6] = normal(seed=2)\n"                            \
    "    param %w: f32[6,2048] = normal(seed=1)\n    %h: f32[2,64,6] = matmul(%x, %u)\n"                               \
    "    %logits: f32[2,64,2048] = matmul(%h, %w)\n}\n"
#define TIED                                                                                                           \
    "graph @tied(%t: i64[2,64]) -> (%logits) {\n    param %w: f32[2048,6] = normal(seed=1)\n"                          \
    "    param %u: f32[6,6] = normal(seed=2)\n    %x: f32[2,64,6] = gather(%w, %t)\n"                                  \
    "    %h: f32[2,64,6] = matmul(%x, %u)\n    %v: f32[6,2048] = transpose(%w, perm=[1,0])\n"                          \
    "    %logits: f32[2,64,2048] = matmul(%h, %v)\n}\n"
#define SAMPLES                                                                                                        \
    "graph @samples(%x: f32[128,5]) -> (%logits) {\n    param %u: f32[5,6] = normal(seed=2)\n"                         \
    "    param %w: f32[2048,6] = normal(seed=1)\n    %h: f32[128,6] = matmul(%x, %u)\n"                                \
    "    %logits: f32[128,2048] = gemm(%h, %w, transB=true)\n}\n"
#define BIASED                                                                                                         \
    "graph @biased(%x: f32[128,6]) -> (%logits) {\n    param %w: f32[6,2048] = normal(seed=1)\n"                       \
    "    param %b: f32[2048] = zeros\n    %s: f32[128,2048] = matmul(%x, %w)\n"                                        \
    "    %logits: f32[128,2048] = add(%s, %b)\n}\n"
#define FEW                                                                                                            \
    "graph @few(%x: f32[128,6]) -> (%logits) {\n    param %w: f32[6,512] = normal(seed=1)\n"                           \
    "    %logits: f32[128,512] = matmul(%x, %w)\n}\n"
#define ODD                                                                                                            \
    "graph @odd(%x: f32[130,6]) -> (%logits) {\n    param %w: f32[6,2048] = normal(seed=1)\n"                          \
    "    %logits: f32[130,2048] = matmul(%x, %w)\n}\n"
#define LONG                                                                                                           \
    "graph @long(%x: f32[4096,2]) -> (%logits) {\n    param %w: f32[2,64] = normal(seed=1)\n"                          \
    "    %logits: f32[4096,64] = matmul(%x, %w)\n}\n"

typedef struct Case {
    const char *name, *model, *options;
    int64_t turns; /* 0: it stays whole */
} Case;

static const Case cases[] = {
    { "a matrix of its own", OWN, "--loss cross_entropy,axis=2", 4 },
    { "the table of words", TIED, "--loss cross_entropy,axis=2,label_smoothing=0.1", 4 },
    { "bf16", TIED, "--loss cross_entropy,axis=2 --amp bf16", 4 },
#ifndef ON_DEVICE
    { "bf16 and a matrix of its own", OWN, "--loss cross_entropy,axis=2 --amp bf16", 4 },
    { "samples", SAMPLES, "--loss cross_entropy", 4 },
    { "targets that are ignored", OWN, "--loss cross_entropy,axis=2,ignore_index=1", 4 },
    { "a sum", TIED, "--loss cross_entropy,axis=2,reduction=sum,label_smoothing=0.25,ignore_index=0", 4 },
    { "logarithms", SAMPLES, "--loss focal", 4 },
    { "a head that nobody trains", OWN, "--loss cross_entropy,axis=2 --freeze w", 4 },
    { "nothing but the head is trained", OWN, "--loss cross_entropy,axis=2 --train w", 4 },
    { "a bias", BIASED, "--loss cross_entropy", 0 },
    { "few classes", FEW, "--loss cross_entropy", 0 },
    { "rows that no chunk divides", ODD, "--loss cross_entropy", 0 },
    { "rows of two segments", LONG, "--loss cross_entropy", 0 },
    { "a loss that waits for its scale", TIED, "--loss cross_entropy,axis=2 --amp fp16", 0 },
#endif
};

static Graph *step_of(Context *c, const Case *k)
{
    Module *m = NULL;
    Recipe recipe = { .n_groups = 0 };
    const char *line = arena_printf(&c->arena, "%s --optimizer sgd", k->options);
    const PipelineOptions options = { .pass = { .recipe = &recipe } };
    assert_int_equal(parse_module(&c->ir, &c->arena, str(k->model), k->name, NULL, NULL, &m), OK);
    assert_int_equal(recipe_from_options(&recipe, &c->ir, &c->arena, str(line), NULL), OK);
    assert_int_equal(pipeline_run(pipeline_find("train-model"), m->graphs[0], &options), OK);
    assert_int_equal(pipeline_run(pipeline_find("train-step"), m->graphs[0], &options), OK);
    return m->graphs[0];
}

/* Lowered for memory, or with the same passes but the one that is looked at. */
static Graph *lowered(Context *c, const Graph *step, bool chunks)
{
    const Pipeline *all = pipeline_find("lower-small");
    Graph *g = graph_copy(step, &c->arena);
    for (size_t i = 0; i < all->n; i++) {
        const Pipeline alone = { all->name, all->passes[i]->needs, &all->passes[i], 1, false };
        if (chunks || strcmp(all->passes[i]->name, "chunk-loss") != 0)
            assert_int_equal(pipeline_run(&alone, g, &(PipelineOptions){ .verify_each = VERIFY_GRAPH }), OK);
    }
    assert_int_equal(pipeline_run_bodies(all, g, &(PipelineOptions){ .verify_each = VERIFY_GRAPH }), OK);
    return g;
}

static const Program *program_of(Context *c, Graph *g, size_t *arena)
{
    Plan plan;
    const char *why = NULL;
    const Node *where = NULL;
    assert_true(plan_memory(g, &c->arena, &plan, &where));
    assert_null(plan_check(&plan, &c->arena));
    const Program *p = program_make(&plan, &c->arena, &why, &where);
    const char *wrong = p ? program_check(p, &c->arena) : why;
    if (wrong)
        print_error("%s\n", wrong);
    assert_null(wrong);
    *arena = plan.arena;
    return p;
}

/* Turns that run, and that no sum is brought to its place: each is made over what the turn before left. */
static void check_turns(const Case *k, const Program *p)
{
    int64_t turns = 0, copies = 0;
    for (int i = 0; i < p->n_launches; i++) {
        const Launch *l = &p->launches[i];
        turns = l->within && l->turn >= turns ? (int64_t)l->turn + 1 : turns;
        copies += l->within && l->node->op == OP_identity;
        if (l->within && l->node->op == OP_matmul_accumulate && l->over[0] != 2)
            print_error("%s: a sum lies apart in turn %d\n", k->name, (int)l->turn);
        assert_true(!l->within || l->node->op != OP_matmul_accumulate || l->over[0] == 2);
    }
    if (turns != k->turns || copies)
        print_error("%s: %d turns, %d copies\n", k->name, (int)turns, (int)copies);
    assert_int_equal(turns, k->turns);
    assert_int_equal(copies, 0);
}

static void compare(const Case *k, const char *how, int result, const Tensor *got, const Tensor *wanted)
{
    if (!got || !tensor_same(got, wanted))
        print_error("%s: result %d differs %s\n", k->name, result, how);
    assert_true(got && tensor_same(got, wanted));
}

static Tensor *copied(Context *c, const Tensor *t)
{
    Tensor *copy = tensor_new(&c->arena, t->type);
    memcpy(copy->data, t->data, t->bytes);
    return copy;
}

/* What a step is committed with is made late, by who commits it: states are not looked at. */
static bool is_state(const Graph *g, int result)
{
    const char *name = graph_result_name(g, result);
    for (size_t i = 0; i < g->n_inputs && name; i++)
        if (g->inputs[i]->op == OP_state && strcmp(g->inputs[i]->name, name) == 0)
            return true;
    return false;
}

/* The results of the graph on an engine, three times; each as `wanted` has it, or, where that has none yet, put there. */
static void run(Context *c, const Case *k, Graph *g, const Program *p, const Tensor **inputs, bool narrow,
                Tensor **wanted)
{
    enum { SEED = 11, RUNS = 3 };
    const EngineOptions options = { .device = device, .narrow = narrow };
    const Executable x = { .graph = g, .n_parts = 1, .program = p };
    ValueAt *at = NEWS(&c->arena, ValueAt, g->n_inputs + 1);
    const EngineRun how = { .seed = SEED, .inputs = at };
    Values *v;
    int graph;
    for (size_t i = 0; i < g->n_inputs; i++)
        at[i] = value_kept((int)i);
    assert_int_equal(engine->open(&c->ir, &options, (int)g->n_inputs, &c->arena, &v), OK);
    assert_int_equal(engine->load(v, &x, &graph), OK);
    for (int turn = 0; turn < RUNS; turn++) { /* on a device the third one is a recorded graph */
        assert_int_equal(engine->put(v, (int)g->n_inputs, at, (Tensor *const *)(uintptr_t)inputs, PUT_COPY), OK);
        assert_int_equal(engine->begin(v, graph, &how), OK);
        assert_int_equal(engine->run(v, graph, 0), OK);
        if (engine->answer)
            assert_int_equal(engine->answer(v, graph), OK);
        for (int i = 0; i < graph_n_results(g); i++) {
            const Tensor *got = NULL;
            if (is_state(g, i))
                continue;
            assert_int_equal(engine->get(v, value_result(graph, i), &got), OK);
            if (!wanted[i])
                wanted[i] = copied(c, got);
            compare(k, narrow ? "from the step in one piece" : "on the engine", i, got, wanted[i]);
        }
        engine->end(v, graph);
    }
    engine->close(v);
}

static Status check(void *context)
{
    Context *c = context;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const Case *k = &cases[i];
        const EvalOptions options = { .seed = 11 };
        const Graph *step = step_of(c, k);
        Graph *whole = lowered(c, step, false), *g = lowered(c, step, true);
        const int n = graph_n_results(g);
        const Tensor **inputs = random_inputs(g, seed_of(k->name, i), &c->arena);
        Tensor **wanted = NEWS(&c->arena, Tensor *, n + 1), **got = NEWS(&c->arena, Tensor *, n + 1);
        size_t bytes, bytes_whole;
        assert_int_equal(evaluate(graph_copy(step, &c->arena), &options, &c->heap, inputs, wanted), OK);
        assert_int_equal(evaluate(g, &options, &c->heap, inputs, got), OK);
        for (int r = 0; r < n; r++)
            compare(k, "on the evaluator", r, got[r], wanted[r]);
        const Program *p = program_of(c, g, &bytes), *in_one = program_of(c, whole, &bytes_whole);
        check_turns(k, p);
        if (k->turns ? bytes >= bytes_whole : bytes != bytes_whole)
            print_error("%s: an arena of %zu bytes, and of %zu in one piece\n", k->name, bytes, bytes_whole);
        assert_true(k->turns ? bytes < bytes_whole : bytes == bytes_whole);
        run(c, k, g, p, inputs, false, wanted);
        Tensor **narrow = NEWS(&c->arena, Tensor *, n + 1);
        run(c, k, whole, in_one, inputs, true, narrow);
        run(c, k, g, p, inputs, true, narrow);
        for (int r = 0; r < n; r++) {
            tensor_drop(&c->heap, wanted[r]);
            tensor_drop(&c->heap, got[r]);
        }
    }
    return OK;
}

static void losses(void **state)
{
    (void)state;
    with_context(check);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(losses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
