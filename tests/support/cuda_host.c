#include "support/cuda_host.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codegen/cuda/cuda_call.h"
#include "codegen/tape.h"
#include "ir/text/print.h"
#include "support/calls.h"

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
    if (!cuda_print(&text, t, h->c->ir.ops, "k", false, &launch))
        map_put(h->known, text_get(&text), &fresh);
    return !fresh;
}

static void keep_job(CudaHost *h, const CudaJob *job)
{
    for (int i = 0; i < job->launch.n; i++)
        text_printf(&h->kernels, "SIM_KERNEL(%s)\n\n", job->launch.kernels[i].name);
    GROW(&h->c->arena, h->jobs, h->n, h->cap);
    h->jobs[h->n++] = *job;
}

static void add_job(CudaHost *h, TapeCheck *w, const Node *fused)
{
    const Tape *t = tape_make(fused->regions[0], &h->c->arena);
    Text nothing;
    CudaLaunch none;
    text_open(&nothing, &h->c->arena);
    if (t->product != TAPE_NONE) { /* another kernel makes it: there is none yet */
        h->wrong = h->wrong || !cuda_print(&nothing, t, h->c->ir.ops, "k", false, &none) || nothing.n;
        h->contracts++;
        return;
    }
    if (is_known(h, t))
        return;
    CudaJob job = { .tape = t, .want = *(const Tensor **)fact(&w->values, fused) };
    const char *name = arena_printf(&h->c->arena, "k%zu", h->n);
    const char *why = cuda_print(&h->kernels, t, h->c->ir.ops, name, false, &job.launch);
    if (why) {
        print_message("no kernels: %s\n", why);
        h->refused++;
        return;
    }
    job.n_in = t->n_in;
    job.n_out = t->n_out;
    job.out = t->out;
    job.in = NEWS(&h->c->arena, const Tensor *, t->n_in + 1);
    for (int i = 0; i < t->n_in; i++)
        job.in[i] = *(const Tensor **)fact(&w->values, in(fused, i));
    keep_job(h, &job);
}

/* The kernels of a call, with a mistake. */
static void add_text(CudaHost *h, const char *at)
{
    const char *wrong = h->mistake ? h->mistake[0] : NULL;
    for (const char *next; wrong && (next = strstr(at, wrong)); at = next + strlen(wrong)) {
        text_bytes(&h->kernels, at, (size_t)(next - at));
        text_add(&h->kernels, h->mistake[1]);
    }
    text_add(&h->kernels, at);
}

Tensor *cuda_host_values(Context *c, Node *call)
{
    Tensor *out = NULL;
    graph_return(call->graph, 1, &call, NULL);
    const EvalOptions as_it_draws = { .seed = tape_draws[0], .step = tape_draws[1] };
    return evaluate(call->graph, &as_it_draws, &c->heap, NULL, &out) == OK ? out : NULL;
}

const Tensor **cuda_host_operands(Context *c, const Node *call)
{
    const Tensor **list = NEWS(&c->arena, const Tensor *, call->n_in + 1);
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i))
            list[i] = node_constant(in(call, i), 0) ? constant(in(call, i)) : cuda_host_values(c, in(call, i));
    return list;
}

bool cuda_host_add_call(CudaHost *h, const Node *call, const Tensor **operands, const Tensor *want)
{
    CudaJob job = { .call = call, .want = want, .n_out = type_results(call->type), .shows = h->shows };
    const char *name = arena_printf(&h->c->arena, "k%zu", h->n);
    Text text;
    text_open(&text, &h->c->arena);
    if (cuda_print_call(&text, &h->target, call, name, false, &job.launch))
        return false;
    add_text(h, text_get(&text));
    job.in = NEWS(&h->c->arena, const Tensor *, call->n_in + 1);
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i))
            job.in[job.n_in++] = operands[i];
    job.out = NEWS(&h->c->arena, const Type *, job.n_out + 1);
    job.seen = NEWS(&h->c->arena, void *, job.n_out + 1);
    for (int i = 0; i < job.n_out; i++)
        job.out[i] = type_result(call->type, i);
    keep_job(h, &job);
    h->calls++;
    return true;
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
    static const char command[] = "c++ -w -U_FORTIFY_SOURCE -std=c++17 %s -ffp-contract=off -fno-strict-aliasing "
                                  "-fno-math-errno -fno-trapping-math -I'%s' -I'%s/tests' -fPIC -shared -o '%s' '%s'";
    Text prelude;
    const char *source = path_of(h, ".cpp"), *library = path_of(h, ".so");
    FILE *f = fopen(source, "w");
    assert_non_null(f);
    text_open(&prelude, &h->c->arena);
    cuda_prelude(&prelude);
    fprintf(f, "#include \"support/cuda_sim.hpp\"\n%s\n%s", text_get(&prelude), text_get(&h->kernels));
    assert_int_equal(fclose(f), 0);
    if (system(arena_printf(&h->c->arena, command, h->runs_long ? "-O1" : "-O0", QCC_SOURCE_DIR, QCC_SOURCE_DIR,
                            library, source)) != 0)
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
    Guarded *blocks; /* of arguments, results, and what comes behind them */
    void **arguments;
    int *under; /* by result: the argument that it lies over; below 0: none */
    void *refused;
    bool over, reversed;
} Run;

enum { MORE_BLOCKS = 3 }; /* of a run: what it draws with, whether it is refused, scratch */

static void place_results(Run *r, Arena *arena)
{
    const CudaJob *j = r->job;
    bool *taken = NEWS(arena, bool, j->n_in + 1);
    for (int k = 0; k < j->n_out; k++) {
        r->under[k] = -1;
        for (int i = 0; r->over && j->tape && i < j->n_in && r->under[k] < 0; i++)
            if (!taken[i] && tape_may_lie_over(j->tape, k, i)) {
                r->under[k] = i;
                taken[i] = true;
            }
        size_t bytes;
        assert_true(type_bytes(j->out[k], &bytes));
        r->blocks[j->n_in + k] = guarded_block(bytes);
        r->arguments[j->n_in + k] = r->under[k] < 0 ? r->blocks[j->n_in + k].data : r->arguments[r->under[k]];
    }
}

static void open_run(Run *r, Arena *arena)
{
    const CudaJob *j = r->job;
    const int n = j->n_in + j->n_out;
    int at = n;
    r->blocks = NEWS(arena, Guarded, n + MORE_BLOCKS);
    r->arguments = NEWS(arena, void *, n + MORE_BLOCKS);
    r->under = NEWS(arena, int, j->n_out + 1);
    for (int i = 0; i < j->n_in; i++) {
        r->blocks[i] = guarded_block(j->in[i]->bytes);
        memcpy(r->blocks[i].data, j->in[i]->data, j->in[i]->bytes);
        r->arguments[i] = r->blocks[i].data;
    }
    place_results(r, arena);
    r->blocks[n] = guarded_block(sizeof tape_draws);
    memcpy(r->blocks[n].data, tape_draws, sizeof tape_draws);
    r->blocks[n + 1] = guarded_block(sizeof(u32));
    memset(r->blocks[n + 1].data, 0, sizeof(u32));
    r->blocks[n + 2] = guarded_block(j->launch.scratch);
    if (j->launch.draws)
        r->arguments[at++] = r->blocks[n].data;
    if (j->launch.refuses)
        r->arguments[at++] = r->refused = r->blocks[n + 1].data;
    r->arguments[at] = r->blocks[n + 2].data;
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

/* What a job is of, for people. */
static const char *job_text(const CudaHost *h, const CudaJob *j)
{
    Text text;
    text_open(&text, &h->c->arena);
    if (j->tape) {
        tape_print(&text, j->tape, h->c->ir.ops);
    } else {
        Numbering numbers = numbering_of(j->call->graph, &h->c->arena);
        print_line(&text, &numbers, j->call);
        text_char(&text, '\n');
    }
    return text_get(&text);
}

/* Whether a result is near enough, and that of the run before, if there was one. */
static bool is_near(const CudaHost *h, const Run *r, const Tensor *got, const Tensor *want, int k)
{
    const CudaJob *j = r->job;
    double most = 0, size = 0;
    for (int64_t i = 0; i < tensor_elements(want); i++) {
        const double x = tensor_get_f64(got, i), y = tensor_get_f64(want, i);
        if (isnan(x) != isnan(y))
            return false;
        most = fmax(most, x == y ? 0 : fabs(x - y));
        size = fmax(size, fabs(y));
    }
    const bool same = !j->seen[k] || memcmp(j->seen[k], got->data, got->bytes) == 0;
    j->seen[k] = arena_alloc(&h->c->arena, got->bytes);
    memcpy(j->seen[k], got->data, got->bytes);
    return same && most <= h->near * size;
}

static void compare(CudaHost *h, const Run *r)
{
    const CudaJob *j = r->job;
    const bool refused = r->refused && *(const u32 *)r->refused == 1;
    if (refused != !j->want) {
        print_error("%s: %s %s\n%s", h->name, j->launch.kernels[0].name,
                    refused ? "refuses what the evaluator takes" : "takes what the evaluator refuses", job_text(h, j));
        h->wrong = true;
    }
    if (!j->want)
        return;
    for (int k = 0; k < j->n_out; k++) {
        Tensor got = { .type = j->out[k], .data = r->arguments[j->n_in + k] };
        const Tensor *of = j->want->type->kind == TYPE_TUPLE ? j->want->items[k] : j->want;
        got.bytes = of->bytes;
        if (h->near > 0 ? is_near(h, r, &got, of, k) : tensor_same(&got, of))
            continue;
        if (j->shows) {
            *j->shows = true;
            continue;
        }
        h->wrong = true;
        print_error("%s: result %d of %s%s%s differs\n%s", h->name, k, j->launch.kernels[0].name,
                    r->over ? ", over arguments" : "", r->reversed ? ", threads in descending order" : "",
                    job_text(h, j));
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
    for (int k = 0; k < job->n_out; k++)
        any = any || r.under[k] >= 0;
    h->over += any;
    for (int i = 0; i < job->n_in + job->n_out + MORE_BLOCKS; i++)
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
        if (h->jobs[i].tape)
            run_job(h, &h->jobs[i], library, true, false);
        run_job(h, &h->jobs[i], library, h->jobs[i].tape, true);
        h->launches += (h->jobs[i].tape ? 3 : 2) * h->jobs[i].launch.n;
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
