#include "support/tape_check.h"

#include <string.h>

#include "base/parallel.h"
#include "base/rng.h"
#include "codegen/tape.h"
#include "ops/region/region.h"
#include "runtime/cpu/tape_parts.h"
#include "support/random_graph.h"

static void watch(void *user, const Node *n, const Tensor *value)
{
    TapeCheck *w = user;
    *(const Tensor **)fact(&w->values, n) = tensor_hold(value);
}

/* What the product in a body makes of the arguments: the body's own call, evaluated alone. */
static const Tensor *product_of(const TapeCheck *w, const Node *fused, Arena *arena)
{
    const Node *product = region_contraction(fused);
    const Graph *body = fused->regions[0];
    Graph *g = graph_new(&w->c->ir, arena, NULL);
    const Tensor **values = NEWS(arena, const Tensor *, product->n_in + 1);
    Node **ins = NEWS(arena, Node *, product->n_in + 1);
    Tensor *result = NULL;
    for (int i = 0; i < product->n_in; i++) {
        ins[i] = graph_input(g, NULL, in(product, i)->type);
        for (size_t k = 0; k < body->n_inputs; k++)
            if (body->inputs[k] == in(product, i))
                values[i] = *(const Tensor **)fact((Facts *)(uintptr_t)&w->values, in(fused, (int)k));
    }
    Build b = build_at_end(g);
    Node *y = build_typed(&b, product->op, product->attr, product->n_in, ins, product->type);
    graph_return(g, 1, &y, NULL);
    assert_int_equal(evaluate(g, &(EvalOptions){ .seed = 0 }, &w->c->heap, values, &result), OK);
    return result;
}

static const Tensor *result_of(const Tensor *t, int i)
{
    return t->type->kind == TYPE_TUPLE ? t->items[i] : t;
}

typedef struct TapeRun {
    TapeCheck *w;
    const Node *fused;
    const Tape *tape;
    const Kernels *level;
    int threads;
    const Tensor **in;
    Tensor **out;
    int *over; /* by result: the argument; below 0: none */
} TapeRun;

static void compare(const TapeRun *run, Arena *arena, const char *where)
{
    const Tensor *want = *(const Tensor **)fact(&run->w->values, run->fused);
    for (int i = 0; i < run->tape->n_out; i++)
        if (!tensor_same(run->out[i], result_of(want, i))) {
            Text text;
            text_open(&text, arena);
            tape_print(&text, run->tape, run->w->c->ir.ops);
            print_error("result %d %s at level %s with %d threads differs\n%s", i, where, kernels_name(run->level),
                        run->threads, text_get(&text));
            run->w->wrong = true;
        }
}

/* A block of the product, apart from the others. */
static const void *apart_product(const TapeRun *run, const TapeBlock *b, int64_t *apart, Arena *arena)
{
    const f32 *from = run->in[run->tape->product]->data;
    *apart = b->cols + b->rows % 3;
    f32 *to = NEWS(arena, f32, b->rows * *apart);
    for (int64_t i = 0; i < b->rows; i++)
        memcpy(to + i * *apart, from + b->at + i * b->pitch, (size_t)b->cols * sizeof *to);
    return to;
}

/* As a product tells it: blocks of rows and columns, the last first; some of them apart where they may be. */
static void run_blocks(const TapeRun *run, TapeRunner *r, Arena *arena)
{
    int64_t apart = 0;
    const Type *t = run->tape->in[run->tape->product];
    const int64_t n = type_elements(t), pitch = t->rank ? t->dims[t->rank - 1] : 1, rows = n / pitch;
    Rng rng = { (uint64_t)n };
    const int64_t down = rng_range(&rng, 1, rows), across = rng_range(&rng, 1, pitch);
    tape_begin(r, run->in, run->out);
    for (int64_t i = (rows - 1) / down * down; i >= 0; i -= down)
        for (int64_t j = (pitch - 1) / across * across; j >= 0; j -= across) {
            TapeBlock b = { .at = i * pitch + j,
                            .rows = rows - i < down ? rows - i : down,
                            .cols = pitch - j < across ? pitch - j : across,
                            .pitch = pitch };
            if (tape_takes_product(r) && rng_below(&rng, 2))
                b.product = apart_product(run, &b, &apart, arena);
            b.apart = apart;
            tape_run_block(r, &b, run->threads - 1);
        }
}

static void run_once(const TapeRun *run, Arena *arena, const int *over, int turns)
{
    Parallel *pool = run->threads > 1 ? parallel_open(run->threads, NULL) : NULL;
    TapeRunner *r = tape_runner(run->tape, run->w->c->ir.ops, run->level, run->threads, over, arena);
    const size_t worker = tape_worker_scratch(r);
    for (int i = 0; i < r->n_steps; i++) {
        const TapeStepRun *s = &r->steps[i];
        run->w->chains += s->chain != NULL;
        run->w->casts += s->word == TAPE_LOAD && s->arithmetic == ARITH_F32 && run->tape->in[s->argument]->dtype == I32;
    }
    tape_place(r, arena_aligned(arena, tape_scratch(r)), arena_aligned(arena, worker * (size_t)run->threads), worker);
    tape_seed(r, tape_draws[0], tape_draws[1], 0);
    for (int turn = 0; turn < turns; turn++) {
        if (run->tape->product != TAPE_NONE && turn == turns - 1)
            run_blocks(run, r, arena);
        else
            tape_run(r, pool, run->in, run->out);
    }
    parallel_close(pool);
}

/* Whether one of the first results lies over an argument. */
static bool is_under(const TapeRun *run, int argument, int results)
{
    for (int k = 0; k < results; k++)
        if (run->over[k] == argument)
            return true;
    return false;
}

/* Each result over the first argument that it may lie over and that has none yet. */
static bool lay_over(TapeRun *run, Arena *arena)
{
    bool any = false;
    for (int k = 0; k < run->tape->n_out; k++)
        for (int i = 0; i < run->tape->n_in; i++) {
            if (is_under(run, i, k) || !tape_may_lie_over(run->tape, k, i))
                continue;
            Tensor *both = tensor_new(arena, run->in[i]->type);
            if (both->bytes)
                memcpy(both->data, run->in[i]->data, both->bytes);
            run->in[i] = both;
            run->out[k]->data = both->data;
            run->over[k] = i;
            any = true;
            break;
        }
    return any;
}

static void run_tape(TapeCheck *w, const Node *fused, const Tape *t, const Kernels *level, int threads)
{
    Arena arena;
    arena_open(&arena, &w->c->memory);
    TapeRun run = { w,
                    fused,
                    t,
                    level,
                    threads,
                    NEWS(&arena, const Tensor *, t->n_in + 1),
                    NEWS(&arena, Tensor *, t->n_out + 1),
                    NEWS(&arena, int, t->n_out + 1) };
    for (int i = 0; i < t->n_out; i++)
        run.over[i] = -1;
    for (int i = 0; i < t->n_in; i++)
        run.in[i] = i == t->product ? product_of(w, fused, &arena) : *(const Tensor **)fact(&w->values, in(fused, i));
    for (int i = 0; i < t->n_out; i++)
        run.out[i] = tensor_new(&arena, t->out[i]);
    run_once(&run, &arena, NULL, 2);
    compare(&run, &arena, "apart");
    if (lay_over(&run, &arena)) {
        run_once(&run, &arena, run.over, 1);
        compare(&run, &arena, "over arguments");
        w->over++;
    }
    arena_close(&arena);
}

static void check_tape(TapeCheck *w, const Node *fused)
{
    static const char *const levels[] = { "base", "v3", "v4" };
    const Tape *t = tape_make(fused->regions[0], &w->c->arena);
    for (size_t l = 0; l < COUNT(levels); l++)
        if (kernels_named(levels[l]))
            run_tape(w, fused, t, kernels_named(levels[l]), 1);
    run_tape(w, fused, t, kernels_best(), 2 + (int)(w->tapes % 3));
    w->tapes++;
    w->contracts += t->product != TAPE_NONE;
    w->channels += tape_has_channels(t);
    w->pieces += tape_has_pieces(t);
    for (int i = 0; i < t->n_steps; i++)
        w->folded += t->steps[i].word == TAPE_FOLD_COLUMN || t->steps[i].word == TAPE_FOLD_ALL;
}

bool tape_values(TapeCheck *w, Graph *g, uint64_t seed)
{
    const Tensor **inputs = random_inputs(g, seed, &w->c->arena);
    Tensor **results = NEWS(&w->c->arena, Tensor *, graph_n_results(g) + 1);
    w->values = facts_open(&w->c->arena, sizeof(const Tensor *));
    for (size_t i = 0; i < g->n_inputs; i++)
        *(const Tensor **)fact(&w->values, g->inputs[i]) = inputs[i];
    const EvalOptions options = { .observe = watch, .user = w, .seed = tape_draws[0], .step = tape_draws[1] };
    return evaluate(g, &options, &w->c->heap, inputs, results) == OK;
}

bool tape_check(TapeCheck *w, Graph *g, uint64_t seed)
{
    if (!tape_values(w, g, seed))
        return false;
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_fused)
            check_tape(w, n);
    return true;
}
