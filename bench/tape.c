/* How fast tapes run beside the same regions fused by hand, on one core, both with the same bits: `bench_tape [CASE]`.
 *
 * A graph of rows is lowered, its region becomes a tape, and tape, C and, where memory is the limit, a copy of as many
 * bytes run in turn.  One line a case: name, elements, ns an element of tape and of C, the ratio of C to tape, and, for
 * what no cache holds, GB/s of the tape and of the copy. */
#include "bench/tape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codegen/tape.h"
#include "ir/text/parse.h"
#include "ops/card/cards.h"
#include "passes/pipelines.h"
#include "runtime/cpu/tape_run.h"

#define XY(R, C) "f32[" R "," C "]"

typedef struct Case {
    const char *name, *text;
    FusedByHand *by_hand;
    int rows, cols;
    bool streams; /* no cache holds it */
} Case;

/* clang-format off */
#define DGELU(R, C)                                                                                                          \
    "graph @dgelu(%x: " XY(R, C) ", %b: f32[" C "], %dy: " XY(R, C) ") -> (%z) {\n"                                       \
    "    const %root: f32[] = 0.70710676908493042\n    const %one: f32[] = 1\n    const %half: f32[] = 0.5\n"              \
    "    const %low: f32[] = -0.5\n    const %norm: f32[] = 0.39894229173660278\n"                                          \
    "    %a: " XY(R, C) " = add(%x, %b)\n    %r: " XY(R, C) " = mul(%a, %root)\n    %e: " XY(R, C) " = erf(%r)\n"        \
    "    %u: " XY(R, C) " = add(%one, %e)\n    %h: " XY(R, C) " = mul(%half, %u)\n"                                     \
    "    %q: " XY(R, C) " = mul(%a, %a)\n    %l: " XY(R, C) " = mul(%low, %q)\n    %p: " XY(R, C) " = exp(%l)\n"         \
    "    %d: " XY(R, C) " = mul(%norm, %p)\n    %t: " XY(R, C) " = mul(%a, %d)\n    %s: " XY(R, C) " = add(%h, %t)\n"   \
    "    %z: " XY(R, C) " = mul(%dy, %s)\n}\n"
#define ADD(R, C)                                                                                                            \
    "graph @sum(%x: " XY(R, C) ", %y: " XY(R, C) ") -> (%z) {\n    %z: " XY(R, C) " = add(%x, %y)\n}\n"
#define NORM(R, C)                                                                                                           \
    "graph @norm(%x: " XY(R, C) ", %m: f32[" R ",1], %r: f32[" R ",1], %dy: " XY(R, C) ", %g: f32[" C "])"                 \
    " -> (%dx, %dg, %db) {\n    const %n: f32[] = " C "\n    const %along: i64[1] = [1]\n"                          \
    "    const %down: i64[1] = [0]\n    %c: " XY(R, C) " = sub(%x, %m)\n    %h: " XY(R, C) " = mul(%c, %r)\n"          \
    "    %w: " XY(R, C) " = mul(%dy, %g)\n    %b: " XY(R, C) " = mul(%w, %h)\n"                                        \
    "    %s: f32[" R ",1] = reduce_sum(%b, %along)\n    %sm: f32[" R ",1] = div(%s, %n)\n"                         \
    "    %t: f32[" R ",1] = reduce_sum(%w, %along)\n    %tm: f32[" R ",1] = div(%t, %n)\n"                         \
    "    %hs: " XY(R, C) " = mul(%h, %sm)\n    %wt: " XY(R, C) " = sub(%w, %tm)\n    %d: " XY(R, C) " = sub(%wt, %hs)\n" \
    "    %dx: " XY(R, C) " = mul(%r, %d)\n    %k: " XY(R, C) " = mul(%dy, %h)\n"                                       \
    "    %dg: f32[1," C "] = reduce_sum(%k, %down)\n    %db: f32[1," C "] = reduce_sum(%dy, %down)\n}\n"
/* clang-format on */

static const Case cases[] = {
    { "dgelu, in cache", DGELU("32", "3072"), dgelu_by_hand, 32, 3072, false },
    { "dgelu, from memory", DGELU("8192", "3072"), dgelu_by_hand, 8192, 3072, true },
    { "add, in cache", ADD("32", "3072"), add_by_hand, 32, 3072, false },
    { "add, from memory", ADD("8192", "3072"), add_by_hand, 8192, 3072, true },
    { "norm backward, in cache", NORM("128", "768"), norm_backward_by_hand, 128, 768, false },
    { "norm backward, from memory", NORM("4096", "3072"), norm_backward_by_hand, 4096, 3072, true },
};

typedef struct Bench {
    const Case *c;
    Memory memory;
    Arena arena;
    Diag diag;
    Ir ir;
    const Tape *tape;
    TapeRunner *runner;
    const Tensor *in[FUSED_ARGUMENTS];
    Tensor *out[FUSED_RESULTS];
    const float *from[FUSED_ARGUMENTS];
    float *to[FUSED_RESULTS];
    char *source, *copy;
    size_t bytes; /* that the tape reads and writes; a copy moves as many */
} Bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void tell(void *user, const Message *message)
{
    (void)user;
    fprintf(stderr, "%s\n", message->text);
}

static Tensor *values(Bench *b, const Type *type, int which)
{
    Tensor *t = tensor_new(&b->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        ((float *)t->data)[i] = (float)((i * 7919 + which * 104729) % 20011) / 4000 - 2.5f;
    return t;
}

/* The one region of the lowered graph, and what it reads and makes. */
static Status open_region(Bench *b)
{
    Module *module;
    const Node *fused = NULL;
    TRY(parse_module(&b->ir, &b->arena, str(b->c->text), b->c->name, NULL, NULL, &module));
    TRY(pipeline_run_module(pipeline_find("lower"), module, NULL));
    const Graph *g = module->graphs[0];
    for (const Node *n = g->first; n; n = n->next)
        fused = n->op == OP_fused && !fused ? n : fused;
    if (!fused || (size_t)fused->n_in != g->n_inputs)
        return fail(&b->diag, NOWHERE, "is no single region");
    b->tape = tape_make(fused->regions[0], &b->arena);
    b->runner = tape_runner(b->tape, b->ir.ops, kernels_best(), 1, NULL, &b->arena);
    const size_t worker = tape_worker_scratch(b->runner);
    tape_place(b->runner, arena_aligned(&b->arena, tape_scratch(b->runner)), arena_aligned(&b->arena, worker), worker);
    for (int i = 0; i < fused->n_in; i++)
        for (size_t k = 0; k < g->n_inputs; k++)
            if (in(fused, i) == g->inputs[k]) {
                b->in[i] = values(b, g->inputs[k]->type, (int)k);
                b->from[k] = b->in[i]->data;
                b->bytes += b->in[i]->bytes;
            }
    return OK;
}

/* Results of the tape may come in another order than those that are fused by hand: the largest first, others as they are. */
static void open_results(Bench *b)
{
    for (int i = 0; i < b->tape->n_out; i++) {
        b->out[i] = tensor_new(&b->arena, b->tape->out[i]);
        b->to[i] = arena_alloc(&b->arena, b->out[i]->bytes);
        b->bytes += b->out[i]->bytes;
    }
    b->source = arena_alloc(&b->arena, b->bytes / 2 + 1);
    b->copy = arena_alloc(&b->arena, b->bytes / 2 + 1);
    memset(b->source, 1, b->bytes / 2);
}

static void run_tape(Bench *b)
{
    tape_run(b->runner, NULL, b->in, b->out);
}

static void run_by_hand(Bench *b)
{
    b->c->by_hand((size_t)b->c->rows, (size_t)b->c->cols, b->from, b->to);
}

static void run_copy(Bench *b)
{
    memcpy(b->copy, b->source, b->bytes / 2);
    __asm__ volatile("" ::: "memory");
}

static double timed(Bench *b, void (*run)(Bench *b), int turns)
{
    const double began = now();
    for (int i = 0; i < turns; i++)
        run(b);
    return (now() - began) / turns;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static Status measure(void *arg)
{
    enum { SAMPLES = 21 };
    static void (*const runs[])(Bench * b) = { run_tape, run_by_hand, run_copy };
    Bench *b = arg;
    double seconds[3][SAMPLES];
    TRY(open_region(b));
    open_results(b);
    const double elements = (double)b->c->rows * b->c->cols;
    const int turns = elements < 1e6 ? (int)(1e6 / elements) : 1;
    for (int i = -2; i < SAMPLES; i++)
        for (int k = 0; k < 3; k++)
            seconds[k][i < 0 ? 0 : i] = timed(b, runs[k], turns);
    for (int i = 0; i < b->tape->n_out; i++)
        if (memcmp(b->out[i]->data, b->to[i], b->out[i]->bytes) != 0)
            return fail(&b->diag, NOWHERE, "result %d is not what C gives", i);
    for (int k = 0; k < 3; k++)
        qsort(seconds[k], SAMPLES, sizeof(double), ascending);
    const double tape = seconds[0][SAMPLES / 2], c = seconds[1][SAMPLES / 2], copy = seconds[2][SAMPLES / 2];
    printf("%-28s %10.0f %8.3f %8.3f %6.2f", b->c->name, elements, 1e9 * tape / elements, 1e9 * c / elements, c / tape);
    if (b->c->streams)
        printf(" %8.2f %8.2f %6.2f", 1e-9 * (double)b->bytes / tape, 1e-9 * (double)b->bytes / copy, copy / tape);
    printf("\n");
    fflush(stdout);
    return OK;
}

static Status bench(void *arg)
{
    Bench *b = arg;
    arena_open(&b->arena, &b->memory);
    diag_open(&b->diag, &b->arena, tell, b);
    ir_open(&b->ir, &b->arena, &ops_table, &b->diag);
    const Status status = measure(b);
    arena_close(&b->arena);
    return status;
}

int main(int argc, char **argv)
{
    printf("%-28s %10s %8s %8s %6s %8s %8s %6s\n", "", "elements", "tape ns", "C ns", "C/tape", "GB/s", "copy", "part");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Bench b = { .c = &cases[i] };
        if (argc > 1 && strstr(cases[i].name, argv[1]) != cases[i].name)
            continue;
        memory_open(&b.memory, NULL);
        const Status status = guarded(&b.memory, bench, &b);
        if (status != OK)
            return (int)status;
    }
    return 0;
}
