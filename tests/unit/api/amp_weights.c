/* No step casts a weight: compiled with --amp, no amp_cast of the forward or backward side narrows a state, or what only
 * moves states, in or out of loops.  And what is kept instead is there: a shadow for each weight that is read narrow. */
#include <stdlib.h>
#include <string.h>

#include "api/make/step.h"
#include "ir/role.h"
#include "qcc/qcc.h"
#include "testing.h"

enum { ROOM = 1024 };

/* Whether a value is a state, or a state moved: of a parameter of a loop, what the loop is given. */
static bool is_weight(const Node *n)
{
    const Graph *g = n->graph;
    if (n->op == OP_state)
        return true;
    if (n->op == OP_input && g->owner && g->owner->op == OP_loop)
        for (size_t i = 0; i < g->n_inputs; i++)
            if (g->inputs[i] == n)
                return in(g->owner, (int)i) && is_weight(in(g->owner, (int)i));
    const AmpClass c = op_of(n)->amp.bf16;
    if ((c != AMP_P && c != AMP_PW && n->op != OP_part) || n->op == OP_gather)
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && in(n, i)->op != OP_const && !is_weight(in(n, i)))
            return false;
    return n->n_in > 0;
}

static int casts_of_weights(Graph *g)
{
    int n_casts = 0;
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        n_casts += n->op == OP_amp_cast && n->type->dtype != F32 && !(n->flags & NODE_UPDATE) && is_weight(in(n, 0));
    return n_casts;
}

static size_t shadows_of(const Graph *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_inputs; i++)
        n += is_state(g->inputs[i], STATE_shadow);
    return n;
}

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static void compile(const char *model, const char *options, size_t shadows)
{
    char path[ROOM];
    qcc_context *cx;
    qcc_model *m;
    qcc_step *step;
    qcc_memory memory = { .size = sizeof memory };
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/data/torch/%s.onnx", model);
    const qcc_source source = qcc_file(path);
    const qcc_context_options how = { .size = sizeof how, .report = report, .threads = 1 };
    assert_int_equal(qcc_open(&how, &cx), QCC_OK);
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    assert_int_equal(qcc_compile(m, options, &step), QCC_OK);
    Graph *g = module_graph(step->module, "step");
    if (casts_of_weights(g) || shadows_of(g) != shadows)
        print_error("%s %s: %d casts of weights, %zu shadows\n", model, options, casts_of_weights(g), shadows_of(g));
    assert_int_equal(casts_of_weights(g), 0);
    assert_int_equal(shadows_of(g), shadows);
    assert_int_equal(shadows_of(module_graph(step->module, "eval")), 0);
    for (size_t i = 0; i < qcc_n_parameters(step); i++) {
        qcc_value_info info = { .size = sizeof(qcc_value_info) };
        assert_int_equal(qcc_parameter(step, i, &info), QCC_OK);
        assert_int_not_equal(role_by_name(ROLES_OF_STATES, info.name).role, STATE_shadow);
    }
    assert_int_equal(qcc_plan(step, &memory), QCC_OK);
    qcc_close(cx);
}

static void no_step_casts_a_weight(void **state)
{
    static const struct {
        const char *model;
        size_t shadows;
    } models[] = { { "mlp", 3 },      { "cnn", 3 },       { "transformer", 9 }, { "lstm", 5 },
                   { "convnext", 5 }, { "mobilenet", 6 }, { "unet", 5 } };
    static const char *const options[] = { "--amp bf16", "--amp fp16", "--amp bf16 --accumulate 2" };
    (void)state;
    for (size_t i = 0; i < COUNT(models); i++)
        for (size_t k = 0; k < COUNT(options); k++)
            compile(models[i].model, options[k], models[i].shadows);
    compile("mlp", "--amp off", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(no_step_casts_a_weight) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
