/* Every stored model: as a step of its own it is read again to the letter, and with final states that equal what it
 * holds it comes out byte for byte. */
#include "onnx_bytes.h"

#include "frontends/onnx/import.h"
#include "support/step_texts.h"

typedef struct Tally {
    size_t models, steps, exports, states;
} Tally;

typedef struct Visit {
    Context c;
    const char *path;
    Tally *tally;
} Visit;

/* A spine over a model; false for those that no card has all operators of. */
static bool import(Context *c, const char *path, Spine *s, Module **m)
{
    *s = (Spine){ 0 };
    assert_int_equal(spine_open(s, &c->memory, &c->diag, &c->ir.limits, path), OK);
    bool whole = onnx_import(&c->ir, &c->arena, s, NULL, m) == OK;
    for (Node *n = whole ? walk_first((*m)->graphs[0]) : NULL; n; n = walk_next((*m)->graphs[0], n))
        whole = whole && n->op != OP_opaque;
    return whole;
}

static void as_a_step(Visit *v, Spine *s, Module *m)
{
    Context *c = &v->c;
    Spine back = { 0 };
    Text step, out;
    Module *again;
    m->graphs[0]->name = "step";
    text_open(&step, &c->arena);
    if (onnx_write_step(s, m, NULL, &c->diag, &(Sink){ step_append, &step }, NULL) != OK)
        FAIL("%s: %s\n", v->path, c->last);
    source_memory(&back.source, &c->memory, "step.onnx", step.p, step.n);
    assert_int_equal(spine_read(&back, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor), OK);
    if (onnx_read_step(&c->ir, &c->arena, &back, &again, NULL) != OK)
        FAIL("%s: %s\n", v->path, c->last);
    if (strcmp(step_text_of(c, again), step_text_of(c, m)) != 0)
        FAIL("%s\n%s\nwanted was\n%s\n", v->path, step_text_of(c, again), step_text_of(c, m));
    text_open(&out, &c->arena);
    assert_int_equal(onnx_export(&back, &c->diag, NULL, &(Sink){ step_append, &out }), OK);
    spine_close(&back);
    Text direct;
    text_open(&direct, &c->arena);
    assert_int_equal(onnx_export(s, &c->diag, NULL, &(Sink){ step_append, &direct }), OK);
    assert_int_equal(out.n, direct.n);
    assert_memory_equal(out.p, direct.p, out.n);
    v->tally->steps++;
}

static void with_own_values(Visit *v, Spine *s, const Module *m)
{
    Context *c = &v->c;
    const Graph *g = m->graphs[0];
    TrainedState *list = NEWS(&c->arena, TrainedState, graph_count((Graph *)(uintptr_t)g) + 1);
    TrainedStates states = { .list = list };
    Text direct, out;
    for (const Node *n = g->first; n; n = n->next) {
        const Tensor *t = n->op == OP_param && n->name && n->type->kind == TYPE_TENSOR && n->type->dtype != STRING
                              ? payload_cached(node_payload(n), &c->diag)
                              : NULL;
        if (t && !s->model->n_functions)
            list[states.n++] = (TrainedState){ n->name, t };
    }
    text_open(&direct, &c->arena);
    text_open(&out, &c->arena);
    assert_int_equal(onnx_export(s, &c->diag, NULL, &(Sink){ step_append, &direct }), OK);
    if (onnx_export_states(s, &c->diag, &states, &(Sink){ step_append, &out }) != OK)
        FAIL("%s: %s\n", v->path, c->last);
    if (out.n != direct.n || memcmp(out.p, direct.p, out.n) != 0)
        FAIL("%s changed\n", v->path);
    v->tally->exports++;
    v->tally->states += states.n;
}

static Status visit_model(void *arg)
{
    Visit *v = arg;
    Spine s;
    Module *m;
    v->tally->models++;
    if (import(&v->c, v->path, &s, &m)) {
        with_own_values(v, &s, m);
        as_a_step(v, &s, m);
    }
    spine_close(&s);
    return OK;
}

static void visit(const char *path, void *arg)
{
    Visit v = { .path = path, .tally = arg };
    context_open(&v.c);
    assert_int_equal(guarded(&v.c.memory, visit_model, &v), OK);
    context_close(&v.c);
}

static void every_stored_model_is_a_step(void **state)
{
    Tally tally = { 0 };
    (void)state;
    if (each_model(visit, &tally) == 0)
        skip();
    print_message("%zu models: %zu steps, %zu exports of %zu states\n", tally.models, tally.steps, tally.exports,
                  tally.states);
    assert_true(tally.steps > tally.models * 9 / 10);
    assert_true(tally.states > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_stored_model_is_a_step) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
