#include "support/tape_check.h"

#include "base/parallel.h"
#include "codegen/tape.h"
#include "runtime/cpu/tape_run.h"

static void watch(void *user, const Node *n, const Tensor *value)
{
    TapeCheck *w = user;
    *(const Tensor **)fact(&w->values, n) = tensor_hold(value);
}

static const Tensor *result_of(const Tensor *t, int i)
{
    return t->type->kind == TYPE_TUPLE ? t->items[i] : t;
}

static void run_tape(TapeCheck *w, const Node *fused, const Tape *t, const Kernels *level, int threads)
{
    Arena arena;
    arena_open(&arena, &w->c->memory);
    const Tensor **ins = NEWS(&arena, const Tensor *, t->n_in + 1);
    Tensor **out = NEWS(&arena, Tensor *, t->n_out + 1);
    for (int i = 0; i < t->n_in; i++)
        ins[i] = *(const Tensor **)fact(&w->values, in(fused, i));
    for (int i = 0; i < t->n_out; i++)
        out[i] = tensor_new(&arena, t->out[i]);
    Parallel *pool = threads > 1 ? parallel_open(threads, NULL) : NULL;
    TapeRunner *r = tape_runner(t, w->c->ir.ops, level, threads, &arena);
    for (int turn = 0; turn < 2; turn++)
        tape_run(r, pool, ins, out);
    parallel_close(pool);
    const Tensor *want = *(const Tensor **)fact(&w->values, fused);
    for (int i = 0; i < t->n_out; i++)
        if (!tensor_same(out[i], result_of(want, i))) {
            Text text;
            text_open(&text, &arena);
            tape_print(&text, t, w->c->ir.ops);
            print_error("result %d at level %s with %d threads differs\n%s", i, kernels_name(level), threads,
                        text_get(&text));
            w->wrong = true;
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
    for (int i = 0; i < t->n_steps; i++)
        w->folded += t->steps[i].word == TAPE_FOLD_COLUMN || t->steps[i].word == TAPE_FOLD_ALL;
}

bool tape_check(TapeCheck *w, Graph *g, uint64_t seed)
{
    Rng rng = { seed };
    const Tensor **inputs = NEWS(&w->c->arena, const Tensor *, g->n_inputs + 1);
    Tensor **results = NEWS(&w->c->arena, Tensor *, graph_n_results(g) + 1);
    w->values = facts_open(&w->c->arena, sizeof(const Tensor *));
    for (size_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = tensor_new(&w->c->arena, g->inputs[i]->type);
        for (int64_t k = 0; k < tensor_elements(t); k++)
            tensor_set_f64(t, k, dtype_is_float(t->type->dtype) ? 4 * rng_unit(&rng) - 2 : (double)rng_below(&rng, 2));
        inputs[i] = t;
        *(const Tensor **)fact(&w->values, g->inputs[i]) = t;
    }
    const EvalOptions options = { .observe = watch, .user = w };
    if (evaluate(g, &options, &w->c->heap, inputs, results) != OK)
        return false;
    for (const Node *n = g->first; n; n = n->next)
        if (n->op == OP_fused)
            check_tape(w, n);
    return true;
}
