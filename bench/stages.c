/* What one model costs inside one process, stage by stage: wall and processor milliseconds, and the peak of resident
 * memory so far.
 *
 *     bench_stages MODEL stages               read, import, verify, the pipeline "clean", print
 *     bench_stages MODEL eval THREADS RUNS    the evaluator, batch 1, every input a ramp
 *
 * One line a stage: name, wall, processor, peak MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "frontends/onnx/import.h"
#include "ir/text/print.h"
#include "ir/verify.h"
#include "ops/card/cards.h"
#include "ops/card/eval.h"
#include "passes/pipelines.h"

typedef struct Bench {
    const char *path;
    bool evaluates;
    int threads, runs;
    Memory memory;
    Arena arena;
    Diag diag;
    Ir ir;
    Spine spine;
    Module *module;
    Text text;
    double wall, processor; /* when the stage began */
} Bench;

static double clock_ms(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void begin(Bench *b)
{
    b->wall = clock_ms(CLOCK_MONOTONIC);
    b->processor = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
}

static void end(const Bench *b, const char *stage)
{
    const double wall = clock_ms(CLOCK_MONOTONIC) - b->wall;
    const double processor = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - b->processor;
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    printf("%-9s %10.3f %10.3f %8.1f\n", stage, wall, processor, (double)use.ru_maxrss / 1024);
}

static void tell(void *user, const Message *message)
{
    Text text;
    text_open(&text, &((Bench *)user)->arena);
    message_print(&text, message);
    fputs(text_get(&text), stderr);
}

static Status stages(Bench *b)
{
    const ImportOptions as_it_is = { 0 }, one = { .batch = 1 };
    begin(b);
    TRY(spine_open(&b->spine, &b->memory, &b->diag, &b->ir.limits, b->path));
    end(b, "read");
    begin(b);
    TRY(onnx_import(&b->ir, &b->arena, &b->spine, b->evaluates ? &one : &as_it_is, &b->module));
    end(b, "import");
    begin(b);
    TRY(verify_module(b->module, NULL));
    end(b, "verify");
    if (b->evaluates)
        return OK;
    begin(b);
    TRY(pipeline_run_module(pipeline_find("clean"), b->module, NULL));
    end(b, "simplify");
    Blobs blobs;
    blobs_open(&blobs, &b->arena);
    text_open(&b->text, &b->arena);
    begin(b);
    TRY(print_module(&b->text, b->module, &blobs));
    end(b, "print");
    return OK;
}

/* -1 .. 1, over and over with a period that no dimension has. */
static Tensor *ramp(Bench *b, const Type *type)
{
    enum { PERIOD = 1009 };
    Tensor *t = tensor_new(&b->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, (double)(i % PERIOD) * (2.0 / PERIOD) - 1);
    return t;
}

static Status evaluate_once(Bench *b, const EvalOptions *how, const Tensor *const *inputs)
{
    Graph *g = b->module->graphs[0];
    Tensor **results = NEWS(&b->arena, Tensor *, graph_n_results(g) + 1);
    Heap heap;
    heap_open(&heap, &b->memory);
    begin(b);
    const Status status = evaluate(g, how, &heap, inputs, results);
    end(b, "eval");
    heap_close(&heap);
    return status;
}

static Status evaluations(Bench *b, Parallel *pool)
{
    const Graph *g = b->module->graphs[0];
    const EvalOptions how = { .pool = pool };
    const Tensor **inputs = NEWS(&b->arena, const Tensor *, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Type *type = g->inputs[i]->type;
        if (!type_known(type) || type->kind != TYPE_TENSOR)
            return fail_as(&b->diag, UNSUPPORTED, NOWHERE, "input %zu has no fixed shape", i);
        inputs[i] = ramp(b, type);
    }
    for (int i = 0; i < b->runs; i++)
        TRY(evaluate_once(b, &how, inputs));
    return OK;
}

static Status bench(void *arg)
{
    Bench *b = arg;
    arena_open(&b->arena, &b->memory);
    diag_open(&b->diag, &b->arena, tell, b);
    ir_open(&b->ir, &b->arena, &ops_table, &b->diag);
    Status status = stages(b);
    if (status == OK && b->evaluates) {
        Parallel *pool = parallel_open(b->threads, NULL);
        status = evaluations(b, pool);
        parallel_close(pool);
    }
    if (b->spine.memory)
        spine_close(&b->spine);
    arena_close(&b->arena);
    return status;
}

int main(int argc, char **argv)
{
    Bench b = { .path = argc > 1 ? argv[1] : NULL };
    b.evaluates = argc == 5 && strcmp(argv[2], "eval") == 0;
    if (!b.evaluates && !(argc == 3 && strcmp(argv[2], "stages") == 0)) {
        fputs("usage: bench_stages MODEL stages | bench_stages MODEL eval THREADS RUNS\n", stderr);
        return 2;
    }
    if (b.evaluates) {
        b.threads = atoi(argv[3]);
        b.runs = atoi(argv[4]);
    }
    memory_open(&b.memory, NULL);
    return (int)guarded(&b.memory, bench, &b);
}
