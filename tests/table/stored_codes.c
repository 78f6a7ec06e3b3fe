/* label: slow */
/* Codes of stored weights are within their ends after every step: of stored models by several ways to store, at a rate that moves
 * them far, no code is the one without a counterpart, and with a scale of the largest each slice has a code at an end. */
#include "ir/role.h"
#include "passes/recipe/stored.h"
#include "support/stored_steps.h"

enum { STEPS = 4, CLASSES = 3 };

typedef struct Case {
    Stored *s;
    const StoredStep *of;
    qcc_session *session;
    Tensor **before; /* first codes, in the order of states; null: not seen yet */
} Case;

static int64_t weights, codes, at_ends, changed;

/* ---- one weight ---- */

/* How many codes of one are at an end. */
static int64_t ends_of(Case *k, const StoredForm *form, const char *name, const Tensor *t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const int64_t code = tensor_get_i64(t, i);
        HOLDS(k, code >= form->least && code <= form->largest, "%s: %s has a code %lld\n", k->of->options, name,
              (long long)code);
        n += code == form->least || code == form->largest;
    }
    return n;
}

static void look_at(Case *k, const Node *state, const Tensor *t, size_t number, bool first)
{
    StoredForm form;
    Arena *arena = &k->s->c.arena;
    assert_int_equal(stored_form(&form, node_stored(state), arena, &k->s->c.diag), OK);
    if (dtype_is_float(t->type->dtype))
        return;
    const int64_t ends = ends_of(k, &form, state->name, t);
    HOLDS(k, ends > 0 || tensor_elements(t) == 0, "%s: no code of %s is at an end\n", k->of->options, state->name);
    if (first) {
        k->before[number] = tensor_new(arena, t->type);
        memcpy(k->before[number]->data, t->data, t->bytes);
        return;
    }
    weights++;
    at_ends += ends;
    codes += tensor_elements(t);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        changed += tensor_get_i64(t, i) != tensor_get_i64(k->before[number], i);
}

static Status look_at_all(void *thing)
{
    Case *k = thing;
    const Graph *g = module_graph(k->of->step->module, "step");
    const bool first = !k->before;
    k->before = first ? NEWS(&k->s->c.arena, Tensor *, g->n_inputs + 1) : k->before;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        const Tensor *t = n->op == OP_state && node_stored(n) ? session_view(k->session->run, n->name) : NULL;
        if (t)
            look_at(k, n, t, i, first);
    }
    return OK;
}

/* ---- models ---- */

static void train(StoredStep *step)
{
    Case all = { .s = step->s, .of = step }, *k = &all;
    MUST(k, qcc_start(step->step, NULL, &k->session));
    for (size_t i = 0; i < qcc_step_n_inputs(step->step); i++) {
        const Value *v = &step->step->inputs[i];
        const qcc_tensor x = stored_draw(k->s, v->name, v->type, CLASSES);
        MUST(k, qcc_bind(k->session, v->name, &x));
    }
    MUST(k, context_call(step->cx, look_at_all, k));
    for (int i = 0; i < STEPS; i++) {
        MUST(k, qcc_run(k->session, QCC_STEP, NULL));
        MUST(k, context_call(step->cx, look_at_all, k));
    }
}

static void codes_stay_within_their_ends(void **state)
{
    static const char *const records[] = {
        "--quant int8-weights --quant-op op:Gather=w=int8:row:sr:stored --optimizer adamw:lr=0.3",
        "--quant int8-weights --optimizer sgd:lr=1,momentum=0.9 --clip-norm 1",
        "--quant w=int8:tensor:rne:stored,a=off --optimizer lion:lr=0.1",
        "--quant w=int4:row:sr:stored,a=off --optimizer adamw:lr=0.3",
        "--quant w=int4:group=2:sr:stored,a=off --optimizer adamw:lr=0.3,states=8bit,states_min=64",
        NULL,
    };
    StoredSteps all = { .records = records, .visit = train };
    (void)state;
    stored_steps(&all);
    print_message("%zu models, %zu runs, %zu refused; %lld codes of %lld weights, %lld at an end, %lld changed\n",
                  all.models, all.steps, all.refused, (long long)codes, (long long)weights, (long long)at_ends,
                  (long long)changed);
    assert_true(all.models >= 90 && all.steps > 350);
    assert_true(weights > 5000 && at_ends > 10 * weights && changed > codes / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(codes_stay_within_their_ends) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
