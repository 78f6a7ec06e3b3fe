#include "support/cuda_host.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/tape.h"

bool cuda_host_there(void)
{
    if (system("command -v c++ >/dev/null 2>&1") == 0)
        return true;
    fprintf(stderr, "skipped: there is no c++; a compiler of C++\n");
    return false;
}

void cuda_host_open(CudaHost *h, Context *c, const char *name)
{
    *h = (CudaHost){ .c = c, .name = name };
    text_open(&h->kernels, &c->arena);
}

/* ---- what is to run ---- */

static bool is_known(CudaHost *h, const Tape *t)
{
    Text text;
    CudaLaunch launch;
    bool fresh = true;
    if (!h->known)
        return false;
    text_open(&text, h->known->arena);
    if (!cuda_print(&text, t, h->c->ir.ops, "k", &launch))
        map_put(h->known, text_get(&text), &fresh);
    return !fresh;
}

static void add_job(CudaHost *h, TapeCheck *w, const Node *fused)
{
    const Tape *t = tape_make(fused->regions[0], &h->c->arena);
    Text nothing;
    CudaLaunch none;
    text_open(&nothing, &h->c->arena);
    if (t->product != TAPE_NONE) { /* another kernel makes it: there is none yet */
        h->wrong = h->wrong || !cuda_print(&nothing, t, h->c->ir.ops, "k", &none) || nothing.n;
        h->contracts++;
        return;
    }
    if (is_known(h, t))
        return;
    CudaJob job = { .tape = t, .want = *(const Tensor **)fact(&w->values, fused) };
    const char *name = arena_printf(&h->c->arena, "k%zu", h->n);
    const char *why = cuda_print(&h->kernels, t, h->c->ir.ops, name, &job.launch);
    if (why) {
        print_message("no kernels: %s\n", why);
        h->refused++;
        return;
    }
    job.in = NEWS(&h->c->arena, const Tensor *, t->n_in + 1);
    for (int i = 0; i < t->n_in; i++)
        job.in[i] = *(const Tensor **)fact(&w->values, in(fused, i));
    for (int i = 0; i < job.launch.n; i++)
        text_printf(&h->kernels, "SIM_KERNEL(%s)\n\n", job.launch.kernels[i].name);
    GROW(&h->c->arena, h->jobs, h->n, h->cap);
    h->jobs[h->n++] = job;
}

void cuda_host_add(CudaHost *h, TapeCheck *w, Graph *g)
{
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_fused)
            add_job(h, w, n);
}

/* ---- compiling ---- */

static const char *path_of(const CudaHost *h, const char *end)
{
    return arena_printf(&h->c->arena, "%s/cuda-%s%s", QCC_BINARY_DIR, h->name, end);
}

static void *compile(const CudaHost *h)
{
    static const char command[] = "c++ -w -U_FORTIFY_SOURCE -std=c++17 -O1 -ffp-contract=off -fno-strict-aliasing "
                                  "-fno-math-errno -fno-trapping-math -I'%s' -I'%s/tests' -fPIC -shared -o '%s' '%s'";
    Text prelude;
    const char *source = path_of(h, ".cpp"), *library = path_of(h, ".so");
    FILE *f = fopen(source, "w");
    assert_non_null(f);
    text_open(&prelude, &h->c->arena);
    cuda_prelude(&prelude);
    fprintf(f, "#include \"support/cuda_sim.hpp\"\n%s\n%s", text_get(&prelude), text_get(&h->kernels));
    assert_int_equal(fclose(f), 0);
    if (system(arena_printf(&h->c->arena, command, QCC_SOURCE_DIR, QCC_SOURCE_DIR, library, source)) != 0)
        return NULL;
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded)
        print_error("%s\n", dlerror());
    return loaded;
}

/* ---- memory that ends where it ends ---- */

typedef struct Guarded {
    char *from, *data;
    size_t whole;
} Guarded;

/* A block that the first byte behind it cannot be read of; it is filled with ones, which no sum survives. */
static Guarded guarded_block(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) / page * page;
    Guarded g = { .whole = room + page };
    g.from = mmap(NULL, g.whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.from != MAP_FAILED);
    assert_int_equal(mprotect(g.from + room, page, PROT_NONE), 0);
    memset(g.from, 0xff, room);
    g.data = g.from + room - bytes;
    return g;
}

static void guarded_free(Guarded *g)
{
    assert_int_equal(munmap(g->from, g->whole), 0);
}

/* ---- running ---- */

typedef struct Run {
    const CudaJob *job;
    Guarded *blocks; /* of arguments, results, and the scratch */
    void **arguments;
    int *under; /* by result: the argument that it lies over; below 0: none */
    bool over, reversed;
} Run;

static void place_results(Run *r, Arena *arena)
{
    const Tape *t = r->job->tape;
    bool *taken = NEWS(arena, bool, t->n_in + 1);
    for (int k = 0; k < t->n_out; k++) {
        r->under[k] = -1;
        for (int i = 0; r->over && i < t->n_in && r->under[k] < 0; i++)
            if (!taken[i] && tape_may_lie_over(t, k, i)) {
                r->under[k] = i;
                taken[i] = true;
            }
        size_t bytes;
        assert_true(type_bytes(t->out[k], &bytes));
        r->blocks[t->n_in + k] = guarded_block(bytes);
        r->arguments[t->n_in + k] = r->under[k] < 0 ? r->blocks[t->n_in + k].data : r->arguments[r->under[k]];
    }
}

static void open_run(Run *r, Arena *arena)
{
    const Tape *t = r->job->tape;
    const int n = t->n_in + t->n_out;
    r->blocks = NEWS(arena, Guarded, n + 2);
    r->arguments = NEWS(arena, void *, n + 2);
    r->under = NEWS(arena, int, t->n_out + 1);
    for (int i = 0; i < t->n_in; i++) {
        r->blocks[i] = guarded_block(r->job->in[i]->bytes);
        memcpy(r->blocks[i].data, r->job->in[i]->data, r->job->in[i]->bytes);
        r->arguments[i] = r->blocks[i].data;
    }
    place_results(r, arena);
    const int scratch = r->job->launch.draws ? n + 1 : n;
    r->blocks[n] = guarded_block(sizeof tape_draws);
    memcpy(r->blocks[n].data, tape_draws, sizeof tape_draws);
    r->arguments[n] = r->blocks[n].data;
    r->blocks[n + 1] = guarded_block(r->job->launch.scratch);
    r->arguments[scratch] = r->blocks[n + 1].data;
}

static void launch(const CudaHost *h, const Run *r, void *library)
{
    for (int i = 0; i < r->job->launch.n; i++) {
        const CudaKernel *k = &r->job->launch.kernels[i];
        void (*run)(void **, unsigned, unsigned, int);
        void *symbol = dlsym(library, arena_printf(&h->c->arena, "sim_%s", k->name));
        assert_non_null(symbol);
        memcpy(&run, &symbol, sizeof run);
        run(r->arguments, (unsigned)k->blocks, (unsigned)k->threads, r->reversed);
    }
}

static void compare(CudaHost *h, const Run *r)
{
    const Tape *t = r->job->tape;
    const Tensor *want = r->job->want;
    for (int k = 0; k < t->n_out; k++) {
        Tensor got = { .type = t->out[k], .data = r->arguments[t->n_in + k] };
        const Tensor *of = want->type->kind == TYPE_TUPLE ? want->items[k] : want;
        got.bytes = of->bytes;
        if (tensor_same(&got, of))
            continue;
        Text text;
        text_open(&text, &h->c->arena);
        tape_print(&text, t, h->c->ir.ops);
        print_error("%s: result %d of %s%s%s differs\n%s", h->name, k, r->job->launch.kernels[0].name,
                    r->over ? ", over arguments" : "", r->reversed ? ", threads in descending order" : "",
                    text_get(&text));
        h->wrong = true;
    }
}

static void run_job(CudaHost *h, const CudaJob *job, void *library, bool over, bool reversed)
{
    Arena arena;
    arena_open(&arena, &h->c->memory);
    Run r = { .job = job, .over = over, .reversed = reversed };
    open_run(&r, &arena);
    launch(h, &r, library);
    compare(h, &r);
    bool any = false;
    for (int k = 0; k < job->tape->n_out; k++)
        any = any || r.under[k] >= 0;
    h->over += any;
    for (int i = 0; i <= job->tape->n_in + job->tape->n_out + 1; i++)
        guarded_free(&r.blocks[i]);
    arena_close(&arena);
}

void cuda_host_run(CudaHost *h)
{
    if (!h->n)
        return;
    void *library = compile(h);
    h->wrong = h->wrong || !library;
    for (size_t i = 0; library && i < h->n; i++) {
        run_job(h, &h->jobs[i], library, false, false);
        run_job(h, &h->jobs[i], library, true, false);
        run_job(h, &h->jobs[i], library, true, true);
        h->launches += 3 * h->jobs[i].launch.n;
        h->ran++;
    }
    if (library)
        dlclose(library);
    if (!h->wrong) {
        remove(path_of(h, ".cpp"));
        remove(path_of(h, ".so"));
    }
    text_open(&h->kernels, &h->c->arena);
    h->n = h->cap = 0;
    h->jobs = NULL;
}
