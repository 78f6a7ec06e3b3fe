/* label: slow */
/* The forms in which exporters write models (tests/data/exports, with the scripts that made them): each file compiles
 * bare, trains, is written as a step and read back, exports what was trained, and reloads.  What training must leave
 * alone is left alone, and an untrained file in inference form comes out byte for byte.  onnx's checker and onnxruntime
 * have the last word (tests/data/step.py). */
#include <math.h>
#include <stdlib.h>

#include "api/make/step.h"
#include "base/file.h"
#include "frontends/onnx/import.h"
#include "ir/text/print.h"
#include "ops/card/eval.h"
#include "ops/card/path.h"
#include "support/oracle.h"
#include "support/step_texts.h"
#include "support/stored.h"

enum { STEPS = 5 };

static const char script[] = QCC_SOURCE_DIR "/tests/data/step.py";
static const char folder[] = QCC_BINARY_DIR "/tests/exports";

/* One stored file on its way. */
typedef struct Case {
    Stored *s; /* "cnn-eval-11-dynamic" */
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    qcc_tensor *data; /* an input of the step each */
    size_t n_data;
} Case;

static bool is(const Case *k, const char *word)
{
    return strstr(k->s->name, word) != NULL;
}

/* ---- data ---- */

static void bind_data(Case *k, qcc_session *s)
{
    for (size_t i = 0; i < k->n_data; i++) {
        qcc_value_info v = { .size = sizeof(qcc_value_info) };
        MUST(k, qcc_step_input(k->step, i, &v));
        MUST(k, qcc_bind(s, v.name, &k->data[i]));
    }
}

static void draw_data(Case *k)
{
    k->n_data = qcc_step_n_inputs(k->step);
    assert_int_equal(k->n_data, 2); /* x and its target */
    k->data = NEWS(&k->s->c.arena, qcc_tensor, k->n_data);
    for (size_t i = 0; i < k->n_data; i++) {
        qcc_value_info v = { .size = sizeof(qcc_value_info) };
        MUST(k, qcc_step_input(k->step, i, &v));
        k->data[i] = stored_draw(k->s, v.name,
                                 type_tensor(&k->s->c.ir.types, (DType)v.shape.dtype, v.shape.rank, v.shape.dims), 5);
    }
}

/* ---- what must not change ---- */

static qcc_status take(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return QCC_OK;
}

static void same_as_file(Case *k, const Text *bytes, const char *what)
{
    Str file;
    assert_int_equal(file_read(&k->s->c.arena, &k->s->c.diag, k->s->path, 1 << 20, "file", &file), OK);
    HOLDS(k, bytes->n == file.n && memcmp(bytes->p, file.p, file.n) == 0, "%s differs from the file\n", what);
}

/* Before anything was trained. */
static void stays_as_it_is(Case *k)
{
    Text model, session;
    text_open(&model, &k->s->c.arena);
    text_open(&session, &k->s->c.arena);
    const qcc_sink to_model = { .write = take, .user = &model }, to_session = { .write = take, .user = &session };
    MUST(k, qcc_export(k->model, NULL, &to_model));
    MUST(k, qcc_export_session(k->session, NULL, &to_session));
    if (is(k, "-training-"))
        return;
    same_as_file(k, &model, "the export of the model");
    same_as_file(k, &session, "the export of a fresh session");
}

static Graph *imported(Case *k, Spine *s, const char *path)
{
    Module *m;
    *s = (Spine){ 0 };
    assert_int_equal(spine_open(s, &k->s->c.memory, &k->s->c.diag, &k->s->c.ir.limits, path), OK);
    assert_int_equal(onnx_import(&k->s->c.ir, &k->s->c.arena, s, NULL, &m), OK);
    return m->graphs[0];
}

static bool is_trained(const Case *k, const char *name)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    for (size_t i = 0; i < qcc_n_parameters(k->step); i++)
        if (qcc_parameter(k->step, i, &v) == QCC_OK && strcmp(v.name, name) == 0)
            return true;
    return false;
}

static bool is_read_only_by(const Node *n, Op op)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (u->user->op != op)
            return false;
    return n->uses;
}

/* What the session calls no parameter, and is neither a running statistic nor a weight tied to one, has its old bytes. */
static void leaves_the_rest_alone(Case *k)
{
    Spine old_spine, new_spine;
    Graph *old = imported(k, &old_spine, k->s->path), *new = imported(k, &new_spine, stored_path(k->s, ".flat.onnx"));
    Node *b = new->first;
    int moved = 0, tied = 0, buffers = 0;
    const Map paths = path_names(old, &k->s->c.arena);
    for (Node *a = old->first; a; a = a->next) {
        if (a->op != OP_param || !a->name)
            continue;
        while (b && (b->op != OP_param || !b->name || strcmp(b->name, a->name) != 0))
            b = b->next;
        if (!b) /* an alias became an initializer: it stands elsewhere */
            for (b = new->first; b && (!b->name || strcmp(b->name, a->name) != 0);)
                b = b->next;
        if (!b && is_read_only_by(a, OP_dropout))
            continue; /* nobody reads it in inference form */
        HOLDS(k, b && b->op == OP_param && b->type == a->type, "%s is gone\n", a->name);
        const Tensor *was = payload_cached(node_payload(a), &k->s->c.diag);
        const Tensor *now = payload_cached(node_payload(b), &k->s->c.diag);
        const bool same = memcmp(was->data, now->data, was->bytes) == 0;
        const bool buffer = strstr(a->name, "inv_freq") || strstr(a->name, "mask");
        buffers += buffer;
        moved += !same;
        if (is_trained(k, path_name(&paths, a)) || strstr(a->name, "running_"))
            HOLDS(k, !same && !buffer, "%s was not trained\n", a->name);
        else if (!same)
            HOLDS(k, tensor_elements(was) >= 4096 && ++tied == 1, "%s changed\n", a->name);
    }
    assert_true(moved > 4);
    assert_int_equal(tied, is(k, "llama-eval"));
    HOLDS(k, !is(k, "llama") || is(k, "eval") || buffers == 2, "%d buffers\n", buffers);
    spine_close(&old_spine);
    spine_close(&new_spine);
}

/* ---- training ---- */

static void run_steps(Case *k, qcc_session *s)
{
    qcc_result r = { .size = sizeof r };
    double first = 0;
    for (int i = 0; i < STEPS; i++) {
        MUST(k, qcc_run(s, QCC_STEP, &r));
        HOLDS(k, isfinite(r.loss) && r.applied, "step %d has loss %g\n", i, r.loss);
        first = i ? first : r.loss;
    }
    const bool drops = is(k, "-training-") && (is(k, "mlp") || is(k, "cnn"));
    HOLDS(k, drops || r.loss < first, "the loss went from %g to %g\n", first, r.loss);
}

static void same_parameters(Case *k, qcc_session *a, qcc_session *b)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    qcc_tensor p = { .size = sizeof(qcc_tensor) }, q = { .size = sizeof(qcc_tensor) };
    for (size_t i = 0; i < qcc_n_parameters(k->step); i++) {
        MUST(k, qcc_parameter(k->step, i, &v));
        MUST(k, qcc_view(a, v.name, &p));
        MUST(k, qcc_view(b, v.name, &q));
        HOLDS(k, p.bytes == q.bytes && memcmp(p.data, q.data, p.bytes) == 0, "%s differs\n", v.name);
    }
}

static const char *text_of_step(Case *k, const qcc_step *s)
{
    Text t;
    text_open(&t, &k->s->c.arena);
    assert_int_equal(print_module(&t, s->module, NULL), OK);
    return text_get(&t);
}

/* The step, written and read again, is the step, and trains as it does. */
static void reads_back(Case *k)
{
    const char *path = stored_path(k->s, ".step.onnx");
    const qcc_sink sink = qcc_to_file(path);
    const qcc_source source = qcc_file(path);
    qcc_model *m;
    qcc_step *step;
    qcc_session *s;
    MUST(k, qcc_write_step(k->step, &sink));
    MUST(k, qcc_read(k->cx, &source, NULL, &m));
    MUST(k, qcc_compile(m, NULL, &step));
    HOLDS(k, strcmp(text_of_step(k, step), text_of_step(k, k->step)) == 0, "the step reads back as another one\n");
    MUST(k, qcc_start(step, NULL, &s));
    bind_data(k, s);
    run_steps(k, s);
    same_parameters(k, k->session, s);
    qcc_end(s);
    qcc_step_free(step);
    qcc_model_free(m);
}

/* ---- the deployed model ---- */

static const char *output_name(Case *k)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    MUST(k, qcc_output(k->model, 0, &v));
    return v.name;
}

/* Deployed, the model's own operations run; @eval has raised its patterns: equal to rounding. */
static void runs_deployed(Case *k, qcc_model *m, const qcc_tensor *want)
{
    qcc_tensor got = { .size = sizeof(qcc_tensor) };
    MUST(k, qcc_run_model(m, k->data, 1, &got, 1));
    assert_int_equal(got.bytes, want->bytes);
    for (size_t i = 0; i < got.bytes / sizeof(float); i++) {
        const double g = (double)((const float *)got.data)[i], w = (double)((const float *)want->data)[i];
        HOLDS(k, fabs(g - w) <= 1e-5 * fmax(1, fabs(w)), "output %zu is %g deployed, %g in @eval\n", i, g, w);
    }
}

/* For onnxruntime: what goes in and what comes out. */
static void keep_values(Case *k, const qcc_tensor *y)
{
    Text t;
    text_open(&t, &k->s->c.arena);
    stored_say(k->s, &t, "in", "x", &k->data[0]);
    stored_say(k->s, &t, "out", output_name(k), y);
    stored_keep(k->s, &t);
}

static void deploys(Case *k)
{
    const char *path = stored_path(k->s, ".flat.onnx"), *output = output_name(k);
    const qcc_sink sink = qcc_to_file(path);
    const qcc_source source = qcc_file(path);
    qcc_tensor want = { .size = sizeof(qcc_tensor) }, got = { .size = sizeof(qcc_tensor) };
    qcc_model *m;
    qcc_step *step;
    qcc_session *s;
    MUST(k, qcc_export_session(k->session, NULL, &sink));
    MUST(k, qcc_read(k->cx, &source, NULL, &m));
    MUST(k, qcc_compile(m, NULL, &step));
    MUST(k, qcc_start(step, NULL, &s));
    bind_data(k, s);
    MUST(k, qcc_run(s, QCC_EVAL, NULL));
    MUST(k, qcc_run(k->session, QCC_EVAL, NULL));
    MUST(k, qcc_view(s, output, &got));
    MUST(k, qcc_view(k->session, output, &want));
    HOLDS(k, got.bytes == want.bytes && memcmp(got.data, want.data, got.bytes) == 0,
          "the file's @eval is not the session's\n");
    runs_deployed(k, m, &want);
    keep_values(k, &want);
    qcc_end(s);
    qcc_step_free(step);
    qcc_model_free(m);
}

/* A fixed batch, and what was computed from it, gives way to another: qcc_read proves it. */
static void takes_another_batch(Case *k)
{
    static const char *const batches[] = { "--batch 1", "--batch 6" };
    const qcc_source source = qcc_file(k->s->path);
    qcc_model *m;
    for (size_t i = 0; i < COUNT(batches) && is(k, "-static"); i++) {
        MUST(k, qcc_read(k->cx, &source, batches[i], &m));
        qcc_model_free(m);
    }
}

static Status go_through(void *arg)
{
    Case all = { .s = arg }, *k = &all;
    const qcc_context_options options = { .size = sizeof options, .report = stored_report, .user = k->s, .threads = 1 };
    const qcc_source source = qcc_file(k->s->path);
    MUST(k, qcc_open(&options, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model, NULL, &k->step));
    MUST(k, qcc_start(k->step, NULL, &k->session));
    draw_data(k);
    bind_data(k, k->session);
    stays_as_it_is(k);
    run_steps(k, k->session);
    reads_back(k);
    deploys(k);
    leaves_the_rest_alone(k);
    takes_another_batch(k);
    qcc_close(k->cx);
    return OK;
}

static void every_form_trains_and_deploys(void **state)
{
    size_t seen = 0;
    (void)state;
    stored_folder(folder);
    const int bad = stored_each("/tests/data/exports/*-*.onnx", NULL, folder, go_through, &seen);
    print_message("%zu files\n", seen);
    assert_true(seen >= 57);
    assert_int_equal(bad, 0);
}

static void others_agree(void **state)
{
    (void)state;
    ask_oracle("numpy, onnx.checker, onnxruntime", script, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_form_trains_and_deploys),
                                        cmocka_unit_test(others_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
