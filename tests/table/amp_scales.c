/* Powers of two are exact: models that PyTorch exported, trained at a loss scale and without one, in f32 and in bf16, end
 * with equal bits in every state; in fp16 at one scale and at twice that, wherever neither backward side stored a
 * result that is subnormal, flushed or infinite. */
#include <string.h>

#include "frontends/onnx/import.h"
#include "ops/card/eval.h"
#include "passes/pipelines.h"
#include "support/recipe.h"
#include "support/torch_tasks.h"
#include "testing.h"

enum { STEPS = 12, BATCHES = 4, ROOM = 512 };

/* A step that runs by the evaluator alone, so that what it rounds is counted. */
typedef struct Run {
    Context c;
    Graph *g;
    const Tensor **inputs;
    RoundingCounts counts;  /* of everything */
    uint64_t before, edges; /* results at the ends of the range: so far, and of the backward side alone */
} Run;

static uint64_t edges_of(const RoundingCounts *c)
{
    return c->subnormal + c->flushed + c->overflowed;
}

/* What backward computes is what is scaled. */
static void observe(void *user, const Node *n, const Tensor *value)
{
    Run *r = user;
    const uint64_t now = edges_of(&r->counts);
    (void)value;
    r->edges += n->flags & NODE_BACKWARD ? now - r->before : 0;
    r->before = now;
}

static Status compile(Run *r, const TorchTask *t, const char *precision)
{
    Context *c = &r->c;
    Module *m;
    Spine s = { 0 };
    Recipe recipe = { .n_groups = 0 };
    const PipelineOptions options = { .pass = { .recipe = &recipe } };
    const char *path = arena_printf(&c->arena, QCC_SOURCE_DIR "/tests/data/%s.onnx", t->name);
    const char *line = arena_printf(&c->arena, "--optimizer %s %s", t->optimizer, precision);
    TRY(recipe_from_options(&recipe, &c->ir, &c->arena, str(line), NULL));
    TRY(spine_open(&s, &c->memory, &c->diag, &c->ir.limits, path));
    Status status = onnx_import(&c->ir, &c->arena, &s, &(ImportOptions){ 0 }, &m);
    if (status == OK)
        status = pipeline_run(pipeline_find("train-model"), m->graphs[0], &options);
    if (status == OK)
        status = pipeline_run(pipeline_find("train-step"), m->graphs[0], &options);
    r->g = m->graphs[0];
    r->inputs = NEWS(&c->arena, const Tensor *, r->g->n_inputs + 1);
    for (size_t i = 0; status == OK && i < r->g->n_inputs; i++) {
        const Node *n = r->g->inputs[i];
        Payload *first = n->attr ? ((const ValueAttr *)n->attr)->value : NULL;
        if (n->op == OP_state)
            r->inputs[i] = first ? payload_cached(first, &c->diag) : tensor_new(&c->arena, n->type);
    }
    spine_close(&s);
    return status;
}

/* Puts a batch where the graph reads it. */
static void bind_batch(Run *r, const TorchTask *t, const TaskBatch *b)
{
    for (size_t i = 0; i < r->g->n_inputs; i++) {
        const Node *n = r->g->inputs[i];
        if (n->op != OP_input)
            continue;
        Tensor *x = tensor_new(&r->c.arena, n->type);
        const void *from = strcmp(n->name, "target") == 0 ? (const void *)b->target
                           : t->words                     ? (const void *)b->words
                                                          : (const void *)b->x;
        memcpy(x->data, from, x->bytes);
        r->inputs[i] = x;
    }
}

static int input_of(const Graph *g, const char *name)
{
    for (size_t i = 0; name && i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state && strcmp(g->inputs[i]->name, name) == 0)
            return (int)i;
    return -1;
}

static Status step(Run *r, uint64_t number)
{
    const int n = graph_n_results(r->g);
    Tensor **results = NEWS(&r->c.arena, Tensor *, n + 1);
    const EvalOptions options = { .step = number, .rounding = &r->counts, .observe = observe, .user = r };
    TRY(evaluate(r->g, &options, &r->c.heap, r->inputs, results));
    for (int i = 0; i < n; i++) {
        const int to = input_of(r->g, graph_result_name(r->g, i));
        if (to >= 0)
            r->inputs[to] = results[i];
    }
    return OK;
}

typedef struct Training {
    Run *run;
    const TorchTask *task;
    const char *precision;
} Training;

static Status train(void *training)
{
    const Training *t = training;
    static TaskBatch batch;
    TRY(compile(t->run, t->task, t->precision));
    for (int i = 0; i < STEPS; i++) {
        task_draw(t->task, &batch, (uint64_t)(i % BATCHES));
        bind_batch(t->run, t->task, &batch);
        TRY(step(t->run, (uint64_t)i + 1));
    }
    return OK;
}

static void run(Run *r, const TorchTask *t, const char *precision)
{
    Training training = { r, t, precision };
    memset(r, 0, sizeof *r);
    context_open(&r->c);
    assert_int_equal(guarded(&r->c.memory, train, &training), OK);
}

/* States that both have and that are not of the scale. */
static int states_that_differ(const Run *a, const Run *b)
{
    int n = 0, compared = 0;
    for (size_t i = 0; i < a->g->n_inputs; i++) {
        const char *name = a->g->inputs[i]->name;
        const int k = a->g->inputs[i]->op == OP_state && strncmp(name, "qcc.scale", 9) != 0 ? input_of(b->g, name) : -1;
        if (k < 0)
            continue;
        compared++;
        n += memcmp(a->inputs[i]->data, b->inputs[k]->data, a->inputs[i]->bytes) != 0;
    }
    assert_true(compared > 5);
    return n;
}

static void close_run(Run *r)
{
    context_close(&r->c);
}

/* States of two runs that differ; `*apart`: what either rounded at the ends of the range. */
static int compare(const TorchTask *t, const char *one, const char *other, uint64_t *apart)
{
    Run a, b;
    run(&a, t, one);
    run(&b, t, other);
    const int n = states_that_differ(&a, &b);
    *apart = a.edges + b.edges;
    close_run(&b);
    close_run(&a);
    return n;
}

static void scales_move_no_bit(void **state)
{
    static const char *const pairs[][2] = {
        { "--loss-scale off", "--loss-scale static:1024" },
        { "--amp bf16", "--amp bf16 --loss-scale static:1024" },
        { "--amp bf16 --loss-scale static:1", "--amp bf16 --loss-scale static:1024" },
    };
    uint64_t apart;
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < TASKS; i++)
        for (size_t k = 0; k < COUNT(pairs); k++) {
            const int n = compare(&torch_tasks[i], pairs[k][0], pairs[k][1], &apart);
            if (n)
                print_error("%s, %s: %d states differ\n", torch_tasks[i].name, pairs[k][1], n);
            bad += n;
        }
    assert_int_equal(bad, 0);
}

static void twice_the_scale_moves_no_bit(void **state)
{
    static const char *const pairs[][2] = {
        { "--amp fp16 --loss-scale static:1024", "--amp fp16 --loss-scale static:2048" },
        { "--amp fp16 --loss-scale static:4096", "--amp fp16 --loss-scale static:8192" },
        { "--amp fp16 --loss-scale static:65536", "--amp fp16 --loss-scale static:131072" },
    };
    int clean = 0, bad = 0;
    uint64_t apart;
    (void)state;
    for (size_t i = 0; i < TASKS; i++)
        for (size_t k = 0; k < COUNT(pairs); k++) {
            const int n = compare(&torch_tasks[i], pairs[k][0], pairs[k][1], &apart);
            if (n && !apart)
                print_error("%s, %s: %d states differ\n", torch_tasks[i].name, pairs[k][1], n), bad++;
            clean += !apart;
        }
    assert_int_equal(bad, 0);
    assert_true(clean >= 10); /* of 30: there are runs to compare */
    assert_true(clean < (int)(TASKS * COUNT(pairs)));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(scales_move_no_bit),
                                        cmocka_unit_test(twice_the_scale_moves_no_bit) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
