/* The kernels of every region of every stored model's training step compile for every architecture; those that compute
 * in f32 hold no f64 instruction, no approximation and no flush to zero. */
#include "codegen/cuda/cuda_text.h"
#include "codegen/tape.h"
#include "ir/text/parse.h"
#include "nvrtc/nvrtc.h"
#include "passes/engine/pass.h"
#include "support/lowered_graphs.h"

enum { AT_ONCE = 64 }; /* kernels of a program */

/* A program that grows. */
typedef struct Source {
    Text text;
    size_t kernels;
    bool wide; /* it may hold f64 */
} Source;

typedef struct Collected {
    Nvrtc nvrtc;
    Memory memory;
    Arena arena; /* lives as long as the test */
    Map known;   /* texts that were seen */
    Source narrow, wide;
    int64_t regions, kernels, programs, refused, bad;
} Collected;

static void begin(Collected *all, Source *s)
{
    text_open(&s->text, &all->arena);
    cuda_prelude(&s->text);
    s->kernels = 0;
}

static void compile(Collected *all, Source *s)
{
    static const char *const banned[] = { ".f64", ".approx", ".ftz" };
    for (size_t a = 0; s->kernels && a < COUNT(nvrtc_archs); a++) {
        if (!nvrtc_knows(&all->nvrtc, nvrtc_archs[a]))
            continue;
        char *ptx = nvrtc_ptx(&all->nvrtc, text_get(&s->text), nvrtc_archs[a]);
        assert_non_null(ptx);
        assert_int_equal(nvrtc_count(ptx, ".entry "), s->kernels);
        for (size_t i = 0; i < COUNT(banned) && !s->wide; i++)
            if (nvrtc_count(ptx, banned[i])) {
                print_error("%s: a kernel has %s\n", nvrtc_archs[a], banned[i]);
                all->bad++;
            }
        free(ptx);
        all->programs++;
    }
    begin(all, s);
}

/* The same tape has the same text: it is compiled once. */
static bool is_new(Collected *all, const Tape *t, const OpTable *ops, bool *wide)
{
    Text text;
    CudaLaunch launch;
    bool fresh;
    text_open(&text, &all->arena);
    const char *why = cuda_print(&text, t, ops, "k", false, &launch);
    if (why) {
        print_error("no kernels: %s\n", why);
        all->refused++;
        return false;
    }
    *wide = strstr(text_get(&text), "f64");
    map_put(&all->known, text_get(&text), &fresh);
    return fresh;
}

static Status visit(Stored *s, Graph *g, void *user)
{
    Collected *all = user;
    (void)s;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (n->op != OP_fused)
            continue;
        bool wide;
        CudaLaunch launch;
        const Tape *t = tape_make(n->regions[0], g->arena);
        if (t->product != TAPE_NONE) /* another kernel makes it */
            continue;
        all->regions++;
        if (!is_new(all, t, g->ir->ops, &wide))
            continue;
        Source *source = wide ? &all->wide : &all->narrow;
        cuda_print(&source->text, t, g->ir->ops, arena_printf(&all->arena, "k%zu", all->known.n), false, &launch);
        source->kernels += (size_t)launch.n;
        all->kernels += launch.n;
        if (source->kernels >= AT_ONCE)
            compile(all, source);
    }
    return OK;
}

static void stored_regions(void **state)
{
    Collected all = { .wide.wide = true };
    size_t seen = 0;
    (void)state;
    if (!nvrtc_open(&all.nvrtc))
        skip();
    memory_open(&all.memory, NULL);
    arena_open(&all.arena, &all.memory);
    map_open(&all.known, &all.arena);
    begin(&all, &all.narrow);
    begin(&all, &all.wide);
    assert_int_equal(lowered_graphs(visit, &all, &seen), 0);
    compile(&all, &all.narrow);
    compile(&all, &all.wide);
    printf("%zu models, %d regions, %zu texts of %d kernels, %d programs\n", seen, (int)all.regions, all.known.n,
           (int)all.kernels, (int)all.programs);
    assert_int_equal(all.refused, 0);
    assert_int_equal(all.bad, 0);
    assert_true(seen > 50 && all.regions > 1000 && all.known.n > 200);
    arena_close(&all.arena);
}

/* Spaces that 32 bits do not count: no stored model has one. */
static const char *const large[] = {
    "graph @f(%x: f32[70000,1,70000], %r: bf16[70000,1,1]) -> (%y, %s) {\n"
    "    const %rows: i64[1] = [2]\n"
    "    const %columns: i64[2] = [0, 1]\n"
    "    %w: f32[70000,1,1] = cast(%r, to=f32)\n"
    "    %t: f32[70000,1,1] = reduce_sum(%x, %rows)\n"
    "    %u: f32[70000,1,1] = mul(%t, %w)\n"
    "    %y: f32[70000,1,70000] = sub(%x, %u)\n"
    "    %s: f32[1,1,70000] = reduce_sum(%y, %columns)\n"
    "}\n",
    "graph @f(%x: f32[60000,3,40000], %r: f32[60000,1,40000], %q: f32[3,1]) -> (%y, %s) {\n"
    "    %d: f32[60000,3,40000] = div(%x, %r)\n"
    "    %y: f32[60000,3,40000] = mul(%d, %q)\n"
    "    %s: f32[1,1,1] = reduce_max(%y)\n"
    "}\n",
    "graph @f(%x: f32[60000,3,40000], %r: f32[60000,1,40000]) -> (%y) {\n"
    "    %y: f32[60000,3,40000] = pow(%x, %r)\n"
    "}\n",
};

static Status compile_large(void *context)
{
    Context *c = context;
    Collected all = { .narrow.wide = false };
    assert_true(nvrtc_open(&all.nvrtc));
    arena_open(&all.arena, &c->memory);
    map_open(&all.known, &all.arena);
    begin(&all, &all.narrow);
    for (size_t i = 0; i < COUNT(large); i++) {
        Module *m;
        SourceMap source;
        TRY(parse_module(&c->ir, &c->arena, str(large[i]), "large.qir", NULL, &source, &m));
        TRY(pass_run(pass_find("grow-fusion"), m->graphs[0], NULL));
        TRY(pass_run(pass_find("drop-dead"), m->graphs[0], NULL));
        TRY(visit(NULL, m->graphs[0], &all));
    }
    assert_non_null(strstr(text_get(&all.narrow.text), "const i64 e = "));
    compile(&all, &all.narrow);
    assert_int_equal(all.kernels, 6);
    assert_int_equal(all.bad, 0);
    arena_close(&all.arena);
    return OK;
}

static void large_regions(void **state)
{
    Nvrtc nvrtc;
    (void)state;
    if (!nvrtc_open(&nvrtc))
        skip();
    with_context(compile_large);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(large_regions), cmocka_unit_test(stored_regions) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
