/* --shadow: what two sessions that ran the same step have not in common is found, and named. */
#include <string.h>

#include "api/train/train_shadow.h"
#include "support/stored.h"

typedef struct Pair {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session[2];
} Pair;

static int named;

static void open_pair(Pair *k)
{
    const qcc_context_options o = { .size = sizeof o, .report = stored_report, .user = k->s, .threads = 1 };
    const qcc_source source = qcc_file(k->s->path);
    MUST(k, qcc_open(&o, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model, "--optimizer sgd --lr 0.1", &k->step));
    for (int i = 0; i < 2; i++) {
        const qcc_session_options device = { sizeof device, i ? "reference" : "cpu" };
        MUST(k, qcc_start(k->step, &device, &k->session[i]));
        for (size_t n = 0; n < qcc_step_n_inputs(k->step); n++) {
            const Value *v = &k->step->inputs[n];
            const qcc_tensor x = stored_draw(k->s, v->name, v->type, 3);
            MUST(k, qcc_bind(k->session[i], v->name, &x));
        }
        MUST(k, qcc_run(k->session[i], QCC_STEP, NULL));
    }
}

static const char *differs(Pair *k)
{
    const char *text;
    const Graph *g = module_graph(k->step->module, "step");
    assert_int_equal(sessions_differ(k->session[0]->run, k->session[1]->run, g, &k->s->c.arena, &text), OK);
    return text;
}

/* Each state in turn is another one. */
static void change_states(Pair *k)
{
    size_t n;
    State *states = session_states(k->session[1]->run, &n);
    for (size_t i = 0; i < n; i++) {
        const Tensor *now;
        assert_int_equal(session_value(k->session[1]->run, &states[i], &now), OK);
        if (!now || !tensor_elements(now) || !dtype_is_float(now->type->dtype))
            continue;
        Tensor *was = tensor_new(&k->s->c.arena, now->type), *other = tensor_new(&k->s->c.arena, now->type);
        memcpy(was->data, now->data, now->bytes);
        memcpy(other->data, now->data, now->bytes);
        tensor_set_f64(other, 0, tensor_get_f64(now, 0) + 1);
        assert_int_equal(session_put(k->session[1]->run, states[i].name, other), OK);
        const char *text = differs(k);
        HOLDS(k, text && strstr(text, states[i].name) && strstr(text, "element 0 of "), "%s: %s\n", states[i].name,
              text ? text : "nothing is said");
        named++;
        assert_int_equal(session_put(k->session[1]->run, states[i].name, was), OK);
        HOLDS(k, !differs(k), "%s\n", differs(k));
    }
}

static Status on_both(void *thing)
{
    Pair *k = thing;
    HOLDS(k, !differs(k), "%s\n", differs(k));
    change_states(k);
    return OK;
}

static Status visit(void *stored)
{
    Pair k = { .s = stored };
    open_pair(&k);
    assert_int_equal(guarded(&k.cx->memory, on_both, &k), OK);
    qcc_close(k.cx);
    return OK;
}

static void differences_are_named(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/cnn-eval-*.onnx", NULL, NULL, visit, &seen), 0);
    assert_true(seen > 0 && named > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(differences_are_named) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
