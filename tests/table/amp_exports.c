/* label: slow */
/* Every stored model, trained in mixed precision and exported: no cast that the import did not have, every weight the f32
 * master of the checkpoint in every bit, outputs those of the f32 evaluation; in the narrow type, each master rounded once.
 * onnx's checker takes steps and files, and onnxruntime computes the same (tests/data/step.py). */
#include <math.h>

#include "api/make/step.h"
#include "ir/store/blob.h"
#include "support/oracle.h"
#include "support/stored.h"

enum { STEPS = 5 };

static const char folder[] = QCC_BINARY_DIR "/tests/amp_exports";
static const char script[] = QCC_SOURCE_DIR "/tests/data/step.py";

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    qcc_tensor *data; /* an input of the step each */
    size_t n_data;
} Case;

/* ---- training ---- */

static const Type *shape_type(Case *k, const qcc_value_info *v)
{
    return type_tensor(&k->s->c.ir.types, (DType)v->shape.dtype, v->shape.rank, v->shape.dims);
}

static void train(Case *k)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    qcc_result r = { .size = sizeof r };
    k->n_data = qcc_step_n_inputs(k->step);
    k->data = NEWS(&k->s->c.arena, qcc_tensor, k->n_data);
    for (size_t i = 0; i < k->n_data; i++) {
        MUST(k, qcc_step_input(k->step, i, &v));
        k->data[i] = stored_draw(k->s, v.name, shape_type(k, &v), 3);
        MUST(k, qcc_bind(k->session, v.name, &k->data[i]));
    }
    for (int i = 0; i < STEPS; i++)
        MUST(k, qcc_run(k->session, QCC_STEP, &r));
    HOLDS(k, isfinite(r.loss), "the loss is %g\n", r.loss);
}

/* ---- what was exported ---- */

static qcc_model *exported(Case *k, const char *options, const char *end)
{
    const char *path = stored_path(k->s, end);
    const qcc_sink sink = qcc_to_file(path);
    const qcc_source source = qcc_file(path);
    qcc_model *m;
    MUST(k, qcc_export_session(k->session, options, &sink));
    MUST(k, qcc_read(k->cx, &source, NULL, &m));
    return m;
}

static int count(Graph *g, Op a, Op b)
{
    int n = 0;
    for (Node *o = walk_first(g); o; o = walk_next(g, o))
        n += o->op == a || o->op == b;
    return n;
}

static const Tensor *parameter(Case *k, const qcc_model *m, const char *name)
{
    for (Node *n = m->graph->first; n; n = n->next)
        if (n->op == OP_param && n->name && strcmp(n->name, name) == 0)
            return payload_cached(node_payload(n), &k->s->c.diag);
    return NULL;
}

/* The file holds what the checkpoint does, and that is no rounded copy. */
static void weights_are_masters(Case *k, const qcc_model *flat, const qcc_model *narrow, DType to)
{
    const char *path = stored_path(k->s, ".safetensors");
    const qcc_sink sink = qcc_to_file(path);
    Blobs saved;
    int weights = 0, finer = 0;
    MUST(k, qcc_save(k->session, &sink));
    blobs_open(&saved, &k->s->c.arena);
    assert_int_equal(blobs_read(&saved, &k->s->c.ir, path), OK);
    for (size_t i = 0; i < saved.n; i++) {
        const char *name = saved.list[i].name;
        HOLDS(k, !strstr(name, "shadow"), "the checkpoint holds %s\n", name);
        if (strncmp(name, "qcc.", 4) == 0)
            continue;
        const Tensor *master = payload_cached(saved.list[i].payload, &k->s->c.diag);
        const Tensor *file = parameter(k, flat, name), *small = parameter(k, narrow, name);
        HOLDS(k, master && file && small, "%s is not in a file\n", name);
        HOLDS(k, file->bytes == master->bytes && memcmp(file->data, master->data, file->bytes) == 0,
              "%s is not the master\n", name);
        if (small->type->dtype != to)
            continue;
        Tensor *once = tensor_new(&k->s->c.arena, small->type);
        for (int64_t e = 0; e < tensor_elements(master); e++) {
            tensor_set_f64(once, e, tensor_get_f64(master, e));
            finer += tensor_get_f64(once, e) != tensor_get_f64(master, e);
        }
        HOLDS(k, memcmp(once->data, small->data, once->bytes) == 0, "%s is not the master, rounded once\n", name);
        weights++;
    }
    HOLDS(k, weights >= 4 && finer > 16, "%d weights, %d values finer than %s\n", weights, finer, k->s->how);
}

/* ---- outputs ---- */

static void computes_in_f32(Case *k, qcc_model *flat)
{
    qcc_tensor want = { .size = sizeof(qcc_tensor) }, got = { .size = sizeof(qcc_tensor) };
    Text t;
    const char *output = flat->outputs[0].name;
    MUST(k, qcc_run(k->session, QCC_EVAL, NULL));
    MUST(k, qcc_view(k->session, output, &want));
    MUST(k, qcc_run_model(flat, k->data, 1, &got, 1));
    assert_int_equal(got.bytes, want.bytes);
    for (size_t i = 0; i < got.bytes / sizeof(float); i++) {
        const double g = (double)((const float *)got.data)[i], w = (double)((const float *)want.data)[i];
        HOLDS(k, fabs(g - w) <= 1e-5 * fmax(1, fabs(w)), "output %zu is %g deployed, %g in @eval\n", i, g, w);
    }
    text_open(&t, &k->s->c.arena);
    stored_say(k->s, &t, "in", flat->inputs[0].name, &k->data[0]);
    stored_say(k->s, &t, "out", output, &got);
    stored_keep(k->s, &t);
}

/* ---- every model ---- */

static Status go_through(void *arg)
{
    Case all = { .s = arg }, *k = &all;
    const DType to = strcmp(k->s->how, "fp16") == 0 ? F16 : BF16;
    const bool torch = strstr(k->s->path, "/torch/") != NULL;
    const qcc_context_options options = { .size = sizeof options, .report = stored_report, .user = k->s, .threads = 1 };
    const qcc_source source = qcc_file(k->s->path);
    const qcc_sink step = qcc_to_file(stored_path(k->s, ".step.onnx"));
    MUST(k, qcc_open(&options, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model,
                        arena_printf(&k->s->c.arena, "--amp %s --lr 1e-3%s", k->s->how,
                                     torch ? " --loss cross_entropy:logits,axis=1 --batch 4" : ""),
                        &k->step));
    MUST(k, qcc_start(k->step, NULL, &k->session));
    HOLDS(k, count(module_graph(k->step->module, "step"), OP_amp_cast, OP_amp_cast) > 1, "nothing is narrow\n");
    train(k);
    MUST(k, qcc_write_step(k->step, &step));
    qcc_model *flat = exported(k, NULL, ".flat.onnx");
    qcc_model *narrow =
        exported(k, arena_printf(&k->s->c.arena, "--dtype %s --round-constants", k->s->how), ".narrow.onnx");
    HOLDS(k, stored_casts(flat->graph) <= stored_casts(k->model->graph), "%d casts of %d\n", stored_casts(flat->graph),
          stored_casts(k->model->graph));
    HOLDS(k, stored_casts(narrow->graph) <= stored_casts(k->model->graph), "narrow: %d casts of %d\n",
          stored_casts(narrow->graph), stored_casts(k->model->graph));
    weights_are_masters(k, flat, narrow, to);
    computes_in_f32(k, flat);
    qcc_close(k->cx);
    return OK;
}

static void masters_are_deployed(void **state)
{
    static const char *const patterns[] = { "/tests/data/torch/*.onnx", "/tests/data/exports/*-*.onnx" };
    size_t seen = 0;
    int bad = 0;
    (void)state;
    stored_folder(folder);
    for (size_t i = 0; i < COUNT(patterns); i++) {
        bad += stored_each(patterns[i], "bf16", folder, go_through, &seen);
        bad += stored_each(patterns[i], "fp16", folder, go_through, &seen);
    }
    print_message("%zu files\n", seen);
    assert_int_equal(bad, 0);
}

static void others_agree(void **state)
{
    (void)state;
    ask_oracle("numpy, onnx.checker, onnxruntime", script, folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(masters_are_deployed), cmocka_unit_test(others_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
