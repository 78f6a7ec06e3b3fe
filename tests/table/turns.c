/* label: fast */
/* Loops whose turns are known run turn by turn, as launches of their own, on an engine of programs: with the bits of the evaluator, run
 * after run.  What a turn hands on is made where the turn before left it, or copied there; what cannot be run so stays one call. */
#include "codegen/program.h"
#include "ir/text/parse.h"
#include "ops/card/eval.h"
#include "passes/engine/trial.h"
#include "passes/lower/plan_memory.h"
#include "passes/pipelines.h"
#include "support/random_graph.h"
#include "support/seed.h"
#include "testing.h"

#ifdef ON_DEVICE /* tests/simcuda/turns.c */
#include "codegen/cuda/cuda_module.h"
#include "runtime/cuda/cuda.h"
static const Engine *const engine = &engine_cuda;
static const DeviceUse device = { .kernels = cuda_kernels_of };
#else
#include "runtime/cpu/cpu.h"
static const Engine *const engine = &engine_cpu;
static const DeviceUse device = { .number = 0 };
#endif

/* launches: how many of them are of turns; copies: how many of these only bring something to its place. */
typedef struct Loop {
    const char *name, *text;
    int launches, copies;
} Loop;

static const Loop loops[] = {
    { "sums and slices",
      "graph @f(%x: f32[3,16], %w: f32[16]) -> (%s, %t) {\n    const %n: i64[] = 3\n    const %z: f32[] = 0\n"
      "    const %d: i64[1] = [16]\n    %zero: f32[16] = expand(%z, %d)\n"
      "    %l: (f32[16], f32[3,16]) = loop(%n, _, %zero, %x, %w, operands=3) { (%i: i64[], %c: bool[], %a: f32[16], "
      "%xs: f32[3,16], %v: f32[16]) -> (%c, %b, %y)\n        %r: f32[16] = gather(%xs, %i)\n"
      "        %y: f32[16] = mul(%r, %v)\n        %b: f32[16] = add(%a, %y)\n    }\n"
      "    %s: f32[16] = part(%l, index=0)\n    %t: f32[3,16] = part(%l, index=1)\n}\n",
      6, 0 },
    { "slices that do not lie at whole lines",
      "graph @f(%x: f32[3]) -> (%s, %t) {\n    const %n: i64[] = 4\n"
      "    %l: (f32[3], f32[4,3]) = loop(%n, _, %x, operands=3) { (%i: i64[], %c: bool[], %a: f32[3]) -> (%c, %b, %y)\n"
      "        %b: f32[3] = tanh(%a)\n        %y: f32[3] = exp(%a)\n    }\n"
      "    %s: f32[3] = part(%l, index=0)\n    %t: f32[4,3] = part(%l, index=1)\n}\n",
      8, 4 },
    { "what no turn changes, and the number of the last",
      "graph @f(%x: f32[5]) -> (%s, %t, %x) {\n    const %n: i64[] = 3\n    const %k: i64[] = 7\n"
      "    %l: (f32[5], i64[]) = loop(%n, _, %x, %k, operands=4) { (%i: i64[], %c: bool[], %a: f32[5], %b: i64[]) -> "
      "(%c, %a, %i)\n    }\n    %s: f32[5] = part(%l, index=0)\n    %t: i64[] = part(%l, index=1)\n}\n",
      4, 4 },
    { "what is read behind what is made of it",
      "graph @f(%x: f32[8,8], %w: f32[8,8]) -> (%s, %t) {\n    const %n: i64[] = 2\n"
      "    %l: (f32[8,8], f32[8,8]) = loop(%n, _, %x, %w, %w, operands=4) { (%i: i64[], %c: bool[], %a: f32[8,8], "
      "%b: f32[8,8], %v: f32[8,8]) -> (%c, %h, %q)\n        %h: f32[8,8] = matmul(%a, %v)\n"
      "        %p: f32[8,8] = matmul(%h, %a)\n        %q: f32[8,8] = add(%b, %p)\n    }\n"
      "    %s: f32[8,8] = part(%l, index=0)\n    %t: f32[8,8] = part(%l, index=1)\n}\n",
      8, 2 },
    { "draws",
      "graph @f(%x: f32[4,40]) -> (%s, %t) {\n    const %n: i64[] = 4\n    const %half: f32[] = 0.5\n"
      "    const %yes: bool[] = true\n    const %z: f32[] = 0\n    const %d: i64[1] = [40]\n"
      "    %zero: f32[40] = expand(%z, %d)\n    %l: (f32[40], f32[4,40]) = loop(%n, _, %zero, %x, %half, %yes, operands=3) "
      "{ (%i: i64[], %c: bool[], %a: f32[40], %xs: f32[4,40], %p: f32[], %on: bool[]) -> (%c, %b, %y)\n"
      "        %r: f32[40] = gather(%xs, %i)\n        %y: f32[40] = dropout(%r, %p, %on, stream=3)\n"
      "        %b: f32[40] = add(%a, %y)\n    }\n    %s: f32[40] = part(%l, index=0)\n"
      "    %t: f32[4,40] = part(%l, index=1)\n}\n",
      16, 4 },
    { "no turn",
      "graph @f(%x: f32[6]) -> (%s) {\n    const %n: i64[] = 0\n    %y: f32[6] = exp(%x)\n"
      "    %s: f32[6] = loop(%n, _, %y, operands=3) { (%i: i64[], %c: bool[], %a: f32[6]) -> (%c, %b)\n"
      "        %b: f32[6] = tanh(%a)\n    }\n}\n",
      0, 0 },
    { "no turn, and what it is given is read again",
      "graph @f(%x: f32[6]) -> (%s, %y) {\n    const %n: i64[] = 0\n    %y: f32[6] = exp(%x)\n"
      "    %s: f32[6] = loop(%n, _, %y, operands=3) { (%i: i64[], %c: bool[], %a: f32[6]) -> (%c, %b)\n"
      "        %b: f32[6] = tanh(%a)\n    }\n}\n",
      1, 1 },
    { "a loop in a loop",
      "graph @f(%x: f32[6]) -> (%s) {\n    const %n: i64[] = 3\n"
      "    %s: f32[6] = loop(%n, _, %x, operands=3) { (%i: i64[], %c: bool[], %a: f32[6]) -> (%c, %b)\n"
      "        const %m: i64[] = 2\n        %b: f32[6] = loop(%m, _, %a, operands=3) { (%j: i64[], %e: bool[], %g: f32[6]) "
      "-> (%e, %h)\n            %h: f32[6] = tanh(%g)\n        }\n    }\n}\n",
      6, 3 },
    { "two that change places",
      "graph @f(%x: f32[6], %y: f32[6]) -> (%s, %t) {\n    const %n: i64[] = 3\n"
      "    %l: (f32[6], f32[6]) = loop(%n, _, %x, %y, operands=4) { (%i: i64[], %c: bool[], %a: f32[6], %b: f32[6]) -> "
      "(%c, %b, %a)\n    }\n    %s: f32[6] = part(%l, index=0)\n    %t: f32[6] = part(%l, index=1)\n}\n",
      0, 0 },
    { "one that may end",
      "graph @f(%x: f32[6]) -> (%s) {\n    const %n: i64[] = 3\n    const %yes: bool[] = true\n"
      "    %s: f32[6] = loop(%n, %yes, %x, operands=3) { (%i: i64[], %c: bool[], %a: f32[6]) -> (%more, %b)\n"
      "        const %one: i64[] = 1\n        %more: bool[] = less(%i, %one)\n        %b: f32[6] = tanh(%a)\n    }\n}\n",
      0, 0 },
};

static const Program *program_of(Context *c, Graph *g, Arena *arena)
{
    Plan plan;
    const char *why = NULL;
    const Node *where = NULL;
    if (pipeline_run(pipeline_find("lower"), g, NULL) != OK || !plan_memory(g, arena, &plan, &where))
        return NULL;
    assert_null(plan_check(&plan, arena));
    const Program *p = program_make(&plan, arena, &why, &where);
    const char *wrong = p ? program_check(p, arena) : why;
    if (wrong)
        print_error("%s\n", wrong);
    assert_null(wrong);
    (void)c;
    return p;
}

static void count(const Loop *l, const Program *p)
{
    int launches = 0, copies = 0;
    for (int i = 0; i < p->n_launches; i++) {
        launches += p->launches[i].within != NULL;
        copies += p->launches[i].within && p->launches[i].node->op == OP_identity;
    }
    if (launches != l->launches || copies != l->copies)
        print_error("%s: %d launches are of turns, %d of them copies\n", l->name, launches, copies);
    assert_int_equal(launches, l->launches);
    assert_int_equal(copies, l->copies);
}

static void run(Context *c, const Loop *l, Graph *g, const Program *p, const Tensor **inputs, Tensor **wanted)
{
    enum { SEED = 11, RUNS = 3 };
    const EngineOptions options = { .device = device };
    const Executable x = { .graph = g, .n_parts = 1, .program = p };
    ValueAt *at = NEWS(&c->arena, ValueAt, g->n_inputs + 1);
    const EngineRun how = { .seed = SEED, .inputs = at };
    Values *v;
    int graph;
    for (size_t i = 0; i < g->n_inputs; i++)
        at[i] = value_kept((int)i);
    assert_int_equal(engine->open(&c->ir, &options, (int)g->n_inputs, &c->arena, &v), OK);
    assert_int_equal(engine->load(v, &x, &graph), OK);
    assert_int_equal(engine->put(v, (int)g->n_inputs, at, (Tensor *const *)(uintptr_t)inputs, PUT_LEND), OK);
    for (int turn = 0; turn < RUNS; turn++) { /* on a device the third one is a recorded graph */
        assert_int_equal(engine->begin(v, graph, &how), OK);
        assert_int_equal(engine->run(v, graph, 0), OK);
        if (engine->answer)
            assert_int_equal(engine->answer(v, graph), OK);
        for (int i = 0; i < graph_n_results(g); i++) {
            const Tensor *got = NULL;
            assert_int_equal(engine->get(v, value_result(graph, i), &got), OK);
            if (!got || !tensor_same(got, wanted[i]))
                print_error("%s: result %d differs in run %d\n", l->name, i, turn);
            assert_true(got && tensor_same(got, wanted[i]));
        }
        engine->end(v, graph);
    }
    engine->close(v);
}

static Status check(void *context)
{
    Context *c = context;
    for (size_t i = 0; i < COUNT(loops); i++) {
        const Loop *l = &loops[i];
        Module *m = NULL;
        const EvalOptions options = { .seed = 11 };
        assert_int_equal(parse_module(&c->ir, &c->arena, str(l->text), l->name, NULL, NULL, &m), OK);
        Graph *g = m->graphs[0];
        const Tensor **inputs = random_inputs(g, seed_of(l->name, i), &c->arena);
        Tensor **wanted = NEWS(&c->arena, Tensor *, graph_n_results(g) + 1);
        assert_int_equal(evaluate(g, &options, &c->heap, inputs, wanted), OK);
        Graph *copy = graph_copy(g, &c->arena);
        const Program *p = program_of(c, copy, &c->arena);
        assert_non_null(p);
        count(l, p);
        run(c, l, copy, p, inputs, wanted);
    }
    return OK;
}

static void turns(void **state)
{
    (void)state;
    with_context(check);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(turns) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
