/* Names are for people: every state that a step of the stored models has says what it is and of whom, whatever trains it;
 * and a step whose states and results are called by nonsense is compiled to the same step, and runs to the same bits. */
#include <stdio.h>
#include <string.h>

#include "api/make/step.h"
#include "frontends/onnx/import.h"
#include "ir/role.h"
#include "ir/verify.h"
#include "passes/clean/fold.h"
#include "passes/pipelines.h"
#include "passes/recipe/groups.h"
#include "passes/step/footprint.h"
#include "qcc/qcc.h"
#include "support/language.h"
#include "support/renamed.h"
#include "unit/check.h"

enum { ROOM = 512, STEPS = 3 };

static const char *const models[] = { "data/torch/mlp.onnx",         "data/torch/cnn.onnx",
                                      "data/torch/convnext.onnx",    "data/torch/lstm.onnx",
                                      "data/torch/unet.onnx",        "data/torch/mobilenet.onnx",
                                      "data/torch/transformer.onnx", "../examples/models/cnn.qir",
                                      "../examples/models/gpt.qir",  "../examples/models/mlp.qir" };

/* Those that are small enough to be run many times. */
static const char *const small[] = { "data/torch/mlp.onnx", "data/torch/cnn.onnx", "data/torch/lstm.onnx" };

static const char *const optimizers[] = { "sgd",     "momentum", "nesterov", "adam", "adamw",
                                          "adagrad", "rmsprop",  "lamb",     "lion" };

static const char *const ways[] = {
    "",
    "--ema 0.9 --clip-norm 1 --clip-value 0.5",
    "--accumulate 2 --schedule cosine:warmup=2,total=9",
    "--amp bf16 --ema 0.9 --bn frozen",
    "--amp fp16 --loss-scale dynamic:init=1024 --accumulate 2 --ema 0.99 --clip-norm 1",
    "--loss external:logits",
};

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static qcc_context *open_context(void)
{
    qcc_context *cx;
    const qcc_context_options o = { .size = sizeof o, .report = report, .threads = 1 };
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

static qcc_step *compile(qcc_context *cx, const char *model, const char *optimizer, const char *way)
{
    char path[ROOM], options[ROOM];
    qcc_model *m;
    qcc_step *step;
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/%s", model);
    snprintf(options, sizeof options, "--batch 4 --optimizer %s %s", optimizer, way);
    const qcc_source source = qcc_file(path);
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    if (qcc_compile(m, options, &step) != QCC_OK)
        print_error("%s %s\n", model, options);
    assert_true(step != NULL);
    return step;
}

/* ---- every state says what it is ---- */

/* What the names that the compiler gives say of old steps has to be what is said now. */
static void names_agree(const char *model, RoleKind kind, const char *name, RoleMark mark)
{
    const RoleMark by_name = role_by_name(kind, name);
    const bool same = by_name.role == mark.role &&
                      (by_name.of == mark.of || (by_name.of && mark.of && strcmp(by_name.of, mark.of) == 0));
    check_that(same || (kind == ROLES_OF_STATES && mark.role == STATE_statistic && !by_name.role),
               "%s: %s has the role %s", model, name, role_words(kind)[mark.role]);
}

static void check_graph(const char *model, const Graph *g, int *found)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        const RoleMark mark = node_role(n);
        if (n->op != OP_state) {
            names_agree(model, ROLES_OF_INPUTS, n->name, mark);
            continue;
        }
        names_agree(model, ROLES_OF_STATES, n->name, mark);
        const bool wants = role_may_be_of(ROLES_OF_STATES, mark.role) == OF_STATE;
        check_that(!wants || mark.of, "%s: %s is of nobody", model, n->name);
        check_that(!(n->flags & NODE_TRAINED) || mark.role == STATE_weight, "%s: %s is trained", model, n->name);
        found[mark.role]++;
    }
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result_name(g, i))
            names_agree(model, ROLES_OF_RESULTS, graph_result_name(g, i), graph_result_mark(g, i));
}

static void every_state_has_a_role(void **state)
{
    (void)state;
    int found[STATE_ROLE_COUNT] = { 0 };
    for (size_t m = 0; m < COUNT(models); m++)
        for (size_t o = 0; o < COUNT(optimizers); o++)
            for (size_t w = 0; w + 1 < COUNT(ways); w++) {
                if (m >= 3 && w != o % (COUNT(ways) - 1)) /* every optimizer, every way, not every pair of them */
                    continue;
                qcc_context *cx = open_context();
                qcc_step *step = compile(cx, models[m], optimizers[o], ways[w]);
                for (size_t k = 0; k < step->module->n_graphs; k++)
                    check_graph(models[m], step->module->graphs[k], found);
                qcc_close(cx);
            }
    for (int role = 0; role < STATE_ROLE_COUNT; role++)
        check_that(found[role] || role == STATE_master || role == STATE_quant, "nothing is a %s",
                   role_words(ROLES_OF_STATES)[role]);
}

/* ---- a step of another name runs to the same bits ---- */

static Module *copy_module(const Module *m, Arena *arena)
{
    Module *copy = module_new(m->ir, arena);
    for (size_t k = 0; k < m->n_graphs; k++)
        module_add(copy, graph_copy(m->graphs[k], arena));
    return copy;
}

static void bind(Session *s, const Graph *g, Arena *arena, int step)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (n->op != OP_input)
            continue;
        Tensor *t = tensor_new(arena, n->type);
        for (int64_t k = 0; k < tensor_elements(t); k++)
            if (dtype_is_float(n->type->dtype))
                tensor_set_f64(t, k,
                               node_role(n).role == INPUT_valid ? 1 : (double)((k * 7 + step * 3) % 11) / 8 - 0.5);
            else
                tensor_set_i64(t, k, (k + step) % 2);
        assert_int_equal(session_bind(s, n->name, t), OK);
    }
}

static void same_tensor(const char *model, const char *name, const Tensor *a, const Tensor *b)
{
    check_that((a == NULL) == (b == NULL), "%s: %s is there in one", model, name);
    if (a)
        check_that(a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0, "%s: %s differs", model, name);
}

static void same_states(const char *model, Session *a, Session *b, bool gradients)
{
    size_t n, k;
    State *x = session_states(a, &n), *y = session_states(b, &k);
    assert_int_equal(n, k);
    for (size_t i = 0; i < n; i++) {
        check_that(x[i].mark.role == y[i].mark.role && x[i].next == y[i].next, "%s: %s", model, x[i].name);
        same_tensor(model, x[i].name, session_view(a, x[i].name), session_view(b, y[i].name));
        if (gradients)
            same_tensor(model, x[i].name, session_gradient(a, &x[i]), session_gradient(b, &y[i]));
    }
}

static Session *open_run(Module *m, Arena *arena)
{
    Session *s;
    const SessionOptions options = { .seed = 3 };
    assert_int_equal(session_open(m, &options, arena, &s), OK);
    return s;
}

typedef struct RunBoth {
    const char *model;
    const qcc_step *step;
} RunBoth;

static Status run_both(void *arg)
{
    const RunBoth *both = arg;
    const char *model = both->model;
    const qcc_step *step = both->step;
    Arena arena;
    Renamer r;
    arena_open(&arena, step->ir->memory);
    Module *plain = copy_module(step->module, &arena), *other = copy_module(step->module, &arena);
    renamer_open(&r, &arena, "nonsense");
    for (size_t k = 0; k < other->n_graphs; k++)
        rename_graph(&r, other->graphs[k]);
    assert_int_equal(verify_module(other, NULL), OK);
    Graph *g = module_graph(plain, "step"), *h = module_graph(other, "step");
    const Footprint f = footprint_of(g, &arena), e = footprint_of(h, &arena);
    assert_memory_equal(&f, &e, sizeof f);
    Session *a = open_run(plain, &arena), *b = open_run(other, &arena);
    for (int i = 0; i < STEPS; i++) {
        RunResult x, y;
        bind(a, g, &arena, i);
        bind(b, h, &arena, i);
        assert_int_equal(session_run(a, RUN_STEP, &x), OK);
        assert_int_equal(session_run(b, RUN_STEP, &y), OK);
        check_that(x.applied && x.applied == y.applied && x.finite == y.finite && x.scale == y.scale &&
                       x.next_scale == y.next_scale && x.has_scale == y.has_scale,
                   "%s: step %d", model, i);
        same_states(model, a, b, i == STEPS - 1);
    }
    session_close(b);
    session_close(a);
    arena_close(&arena);
    return OK;
}

static void names_do_not_matter_to_a_run(void **state)
{
    (void)state;
    for (size_t m = 0; m < COUNT(small); m++)
        for (size_t w = 0; w < COUNT(ways); w++) {
            qcc_context *cx = open_context();
            RunBoth both = { small[m], compile(cx, small[m], w % 2 ? "adamw" : "momentum", ways[w]) };
            assert_int_equal(guarded(both.step->ir->memory, run_both, &both), OK);
            qcc_close(cx);
        }
}

/* ---- nor to what is decided while it is compiled ---- */

typedef struct Making {
    Graph *g;
    Renamer renamer;
} Making;

static void rename_after(void *user, const PassReport *pass)
{
    Making *m = user;
    (void)pass;
    rename_graph(&m->renamer, m->g);
}

static const char *text_of(Graph *g, Arena *arena)
{
    Text t;
    Renamer r;
    renamer_open(&r, arena, "n");
    rename_graph(&r, g);
    text_open(&t, arena);
    assert_int_equal(print_graph(&t, g, NULL), OK);
    return text_get(&t);
}

/* The step once more, as api/make/compile.c makes it; renamed after each pass behind the choice of what is trained. */
static const char *make(qcc_step *step, Arena *arena, bool renames)
{
    Module *m;
    Recipe recipe = step->recipe;
    const ImportOptions o = { .batch = step->facts.batch / (recipe.accumulate > 1 ? recipe.accumulate : 1) };
    assert_int_equal(onnx_import(step->ir, arena, &step->model->spine, &o, &m), OK);
    Making making = { .g = m->graphs[0] };
    assert_int_equal(fold_types(making.g, arena), OK);
    renamer_open(&making.renamer, arena, "nonsense");
    PipelineOptions options = { .pass = { .recipe = &recipe, .exact_casts = recipe.precision.exact_casts } };
    assert_int_equal(pipeline_run(pipeline_find("train-model"), making.g, &options), OK);
    assert_int_equal(recipe_assign_groups(&recipe, making.g, arena), OK);
    if (renames) {
        rename_graph(&making.renamer, making.g);
        options.report = rename_after;
        options.user = &making;
    }
    assert_int_equal(pipeline_run(pipeline_find("train-step"), making.g, &options), OK);
    assert_int_equal(verify(making.g, NULL), OK);
    return text_of(making.g, arena);
}

static Status make_both(void *arg)
{
    qcc_step *step = arg;
    Arena arena;
    arena_open(&arena, step->ir->memory);
    assert_string_equal(make(step, &arena, false), make(step, &arena, true));
    arena_close(&arena);
    return OK;
}

static void names_do_not_matter_to_decisions(void **state)
{
    (void)state;
    for (size_t m = 0; m < COUNT(small); m++)
        for (size_t w = 0; w < COUNT(ways); w++) {
            qcc_context *cx = open_context();
            qcc_step *step = compile(cx, small[m], "adamw", ways[w]);
            assert_int_equal(guarded(step->ir->memory, make_both, step), OK);
            qcc_close(cx);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_has_a_role),
        cmocka_unit_test(names_do_not_matter_to_a_run),
        cmocka_unit_test(names_do_not_matter_to_decisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
