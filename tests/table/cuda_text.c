/* label: slow */
/* The kernels of regions, run on this machine thread by thread: the bits of the evaluator for random graphs, for every
 * composite that has an expansion, and for the regions whose text is kept in tests/golden/regions. */
#include <glob.h>

#include "base/file.h"
#include "ir/text/parse.h"
#include "ir/verify.h"
#include "ops/card/reduction.h"
#include "passes/pipelines.h"
#include "support/cuda_host.h"
#include "support/random_graph.h"
#include "support/recipe.h"
#include "support/samples.h"

#ifdef SWEEP /* cuda_text_sweep.c */
enum { GRAPHS = 600, STRIDE = 1 };
#else
enum { GRAPHS = 100, STRIDE = 4 }; /* of the variants of a card every fourth */
#endif
enum { AT_ONCE = 50, ROOM = 512 };

static bool there(void)
{
    static int known; /* 0: not asked yet */
    known = known ? known : cuda_host_there() ? 1 : -1;
    return known > 0;
}

/* ---- random graphs ---- */

static Status run_random(void *context)
{
    Context *c = context;
    TapeCheck w = { .c = c };
    CudaHost h;
    int graphs = 0;
    cuda_host_open(&h, c, "random");
    for (uint64_t k = 0; k < GRAPHS; k++) {
        const uint64_t seed = seed_of("kernels", k);
        Graph *g = random_graph(c, seed, false);
        if (!g)
            continue;
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        if (!tape_values(&w, g, seed))
            continue; /* a graph that the evaluator refuses */
        cuda_host_add(&h, &w, g);
        graphs++;
        if (graphs % AT_ONCE == 0)
            cuda_host_run(&h);
    }
    cuda_host_run(&h);
    printf("%d graphs, %d regions, %d runs over arguments, %d refused, %d launches\n", graphs, (int)h.ran, (int)h.over,
           (int)h.refused, (int)h.launches);
    assert_false(h.wrong);
    assert_true(graphs > GRAPHS / 2 && h.ran > graphs && h.over > GRAPHS / 6 && h.refused == 0 &&
                h.launches > 2 * h.ran + 100);
    return OK;
}

static void random_graphs(void **state)
{
    (void)state;
    if (!there())
        skip();
    with_context(run_random);
}

/* ---- many parts ---- */

/* Reductions whose parts are shared out before they join: shares of one and of several, the last of them incomplete. */
static Status run_joins(void *context)
{
    static const struct {
        int64_t rows, length; /* of columns; length 0: of all */
    } cases[] = { { 2049, 5 }, { 2700, 33 }, { 70001, 3 }, { 32769, 0 }, { 40000, 0 }, { 300017, 0 }, { 263168, 0 } };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "joins");
    for (size_t i = 0; i < COUNT(cases); i++) {
        TapeCheck w = { .c = c };
        Graph *g = graph_new(&c->ir, &c->arena, "f");
        Build b = build_at_end(g);
        const int rank = cases[i].length ? 2 : 1;
        const int64_t dims[] = { cases[i].rows, cases[i].length }, axes[] = { 0 };
        Node *x = graph_input(g, "x", type_tensor(&c->ir.types, F32, rank, dims));
        Node *y = build_node(&b, OP_exp, NULL, 1, &x), *results[3];
        results[0] = build_reduce(&b, OP_reduce_sum, y, 1, axes);
        results[1] = build_reduce(&b, OP_reduce_max, y, 1, axes);
        results[2] = build_reduce(&b, OP_reduce_sum_square, x, 1, axes);
        graph_return(g, 3, results, NULL);
        TRY(pass_run(pass_find("grow-fusion"), g, NULL));
        TRY(pass_run(pass_find("drop-dead"), g, NULL));
        assert_true(tape_values(&w, g, seed_of("joins", i)));
        cuda_host_add(&h, &w, g);
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    assert_int_equal(h.ran, COUNT(cases));
    return OK;
}

/* Integers that wrap: a compiler that took signed numbers not to overflow would know the answers beforehand. */
static Status run_wraps(void *context)
{
    static const char text[] = "graph @f(%x: i64[40]) -> (%z, %w, %v) {\n"
                               "    const %most: i64[] = 9223372036854775807\n"
                               "    const %one: i64[] = 1\n"
                               "    const %two: i64[] = 2\n"
                               "    %a: i64[40] = mul(%x, %most)\n"
                               "    %b: i64[40] = add(%a, %one)\n"
                               "    %z: bool[40] = less(%a, %b)\n"
                               "    %p: i64[40] = mul(%a, %two)\n"
                               "    %w: i64[40] = div(%p, %two)\n"
                               "    %n: i64[40] = neg(%b)\n"
                               "    %m: i64[40] = sub(%n, %one)\n"
                               "    %v: bool[40] = less(%m, %n)\n"
                               "}\n";
    Context *c = context;
    SourceMap source;
    Module *m;
    TapeCheck w = { .c = c };
    CudaHost h;
    cuda_host_open(&h, c, "wraps");
    TRY(parse_module(&c->ir, &c->arena, str(text), "wraps.qir", NULL, &source, &m));
    TRY(pass_run(pass_find("grow-fusion"), m->graphs[0], NULL));
    TRY(pass_run(pass_find("drop-dead"), m->graphs[0], NULL));
    assert_true(tape_values(&w, m->graphs[0], seed_of("wraps", 0)));
    cuda_host_add(&h, &w, m->graphs[0]);
    cuda_host_run(&h);
    assert_false(h.wrong);
    assert_true(h.ran > 0);
    return OK;
}

static void wraps(void **state)
{
    (void)state;
    if (!there())
        skip();
    with_context(run_wraps);
}

static void joins(void **state)
{
    (void)state;
    if (!there())
        skip();
    with_context(run_joins);
}

/* ---- composites ---- */

typedef struct Opened {
    CardTour tour;
    int64_t ran;
} Opened;

static Status open_composites(void *thing)
{
    static const char *const passes[] = { "expand", "merge-equals", "grow-fusion", "drop-dead" };
    Opened *o = thing;
    CudaHost h;
    if (!o->tour.def->expand && !o->tour.def->open)
        return OK;
    cuda_host_open(&h, o->tour.c, o->tour.def->name);
    for (int v = 0; v < o->tour.def->n_variants; v += STRIDE) {
        Graph *g = sample_graph(o->tour.c, o->tour.def, v);
        TapeCheck w = { .c = o->tour.c };
        for (size_t i = 0; g && i < COUNT(passes); i++)
            TRY(pass_run(pass_find(passes[i]), g, NULL));
        if (g && tape_values(&w, g, (uint64_t)v))
            cuda_host_add(&h, &w, g);
    }
    cuda_host_run(&h);
    o->ran += h.ran;
    return h.wrong || h.refused ? MISMATCH : OK;
}

static void composites(void **state)
{
    Opened o = { .ran = 0 };
    (void)state;
    if (!there())
        skip();
    assert_int_equal(each_card(&o.tour, open_composites), 0);
    printf("%d regions of composites\n", (int)o.ran);
    assert_true(o.ran > 500);
}

/* ---- what is kept as text ---- */

/* The line of a file that begins so, without that. */
static Str line_of(Str text, const char *begin)
{
    const char *at = memmem(text.p, text.n, begin, strlen(begin));
    if (!at)
        return (Str){ "", 0 };
    at += strlen(begin);
    const char *end = memchr(at, '\n', (size_t)(text.p + text.n - at));
    return (Str){ at, (size_t)(end - at) };
}

/* Runs the passes that a file names, up to its last word, which prints. */
static Status run_words(Context *c, Module *m, Str words, const PassOptions *options)
{
    const char *rest = arena_copy(&c->arena, words.p, words.n);
    while (strchr(rest, ' ')) {
        const char *name = arena_copy(&c->arena, rest, strcspn(rest, " "));
        const Pass *pass = pass_find(name);
        const Pipeline *pipeline = pass ? NULL : pipeline_find(name);
        assert_true(pass || pipeline);
        for (size_t i = 0; i < (pass ? 1 : pipeline->n); i++)
            TRY(pass_run(pass ? pass : pipeline->passes[i], m->graphs[0],
                         &(PassRun){ .options = options, .allowed = -1 }));
        rest += strlen(name) + 1;
    }
    return OK;
}

static Status run_golden(Context *c, const char *path, CudaHost *h)
{
    Str text;
    SourceMap source;
    Module *m;
    Recipe recipe = { .n_groups = 0 };
    const PassOptions options = { .recipe = &recipe };
    TapeCheck w = { .c = c };
    TRY(file_read(&c->arena, &c->diag, path, 1 << 20, "test", &text));
    const char *end = memmem(text.p, text.n, "\n==>\n", 5);
    assert_non_null(end);
    TRY(recipe_from_options(&recipe, &c->ir, &c->arena, line_of(text, "# recipe: "), path));
    recipe_whole(&recipe, &c->arena, text);
    TRY(parse_module(&c->ir, &c->arena, (Str){ text.p, (size_t)(end - text.p) + 1 }, path, NULL, &source, &m));
    TRY(run_words(c, m, line_of(text, "# run: "), &options));
    assert_true(tape_values(&w, m->graphs[0], seed_of(path, 0)));
    cuda_host_add(h, &w, m->graphs[0]);
    return OK;
}

static Status run_goldens(void *context)
{
    Context *c = context;
    CudaHost h;
    glob_t found;
    cuda_host_open(&h, c, "golden");
    assert_int_equal(glob(QCC_SOURCE_DIR "/tests/golden/regions/*.qir", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        TRY(run_golden(c, found.gl_pathv[i], &h));
    cuda_host_run(&h);
    printf("%zu files, %d regions\n", found.gl_pathc, (int)h.ran);
    assert_false(h.wrong);
    assert_true(found.gl_pathc >= 3 && h.ran >= 15 && h.refused == 0);
    globfree(&found);
    return OK;
}

static void goldens(void **state)
{
    (void)state;
    if (!there())
        skip();
    with_context(run_goldens);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(goldens), cmocka_unit_test(joins), cmocka_unit_test(wraps),
                                        cmocka_unit_test(random_graphs), cmocka_unit_test(composites) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
