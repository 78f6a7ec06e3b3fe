/* label: slow */
/* Every stored model, trained in mixed precision and exported: no cast that the import did not have, every weight the f32
 * master of the checkpoint in every bit, outputs those of the f32 evaluation; in the narrow type, each master rounded once.
 * onnx's checker takes steps and files, and onnxruntime computes the same (tests/data/step.py). */
#include <glob.h>
#include <math.h>
#include <stdlib.h>

#include "api/make/step.h"
#include "base/file.h"
#include "ir/store/blob.h"
#include "support/oracle.h"
#include "support/seed.h"
#include "testing.h"

enum { STEPS = 5, ROOM = 512 };

static const char folder[] = QCC_BINARY_DIR "/tests/amp_exports";
static const char script[] = QCC_SOURCE_DIR "/tests/data/step.py";

typedef struct Case {
    Context c;
    const char *path, *name, *amp;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    qcc_tensor *data; /* an input of the step each */
    size_t n_data;
} Case;

static void report(void *user, const qcc_message *m)
{
    const Case *k = user;
    if (m->severity == QCC_ERROR)
        print_error("%s %s: %s", k->name, k->amp, m->text);
}

#define MUST(k, call)                                                                                                  \
    do {                                                                                                               \
        if ((call) != QCC_OK) {                                                                                        \
            print_error("%s %s: %s\n", (k)->name, (k)->amp, #call);                                                    \
            assert_int_equal(QCC_OK, QCC_INTERNAL);                                                                    \
        }                                                                                                              \
    } while (0)

#define HOLDS(k, condition, ...)                                                                                       \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("%s %s: ", (k)->name, (k)->amp);                                                               \
            print_error(__VA_ARGS__);                                                                                  \
            assert_true(condition);                                                                                    \
        }                                                                                                              \
    } while (0)

static const char *beside(Case *k, const char *end)
{
    return arena_printf(&k->c.arena, "%s/%s.%s%s", folder, k->name, k->amp, end);
}

/* ---- training ---- */

static qcc_tensor drawn(Case *k, const qcc_value_info *v)
{
    const Type *type = type_tensor(&k->c.ir.types, (DType)v->shape.dtype, v->shape.rank, v->shape.dims);
    Tensor *t = tensor_new(&k->c.arena, type);
    qcc_tensor q = { v->shape.dtype, type->rank, { 0 }, t->data, t->bytes };
    Rng rng = { seed_of(v->name, 0) };
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, type->dtype == I64 ? (double)((i * 7 + i / 5) % 3) : 2 * rng_unit(&rng) - 1);
    for (int i = 0; i < q.rank; i++)
        q.dims[i] = type->dims[i];
    return q;
}

static void train(Case *k)
{
    qcc_value_info v;
    qcc_result r = { .size = sizeof r };
    k->n_data = qcc_step_n_inputs(k->step);
    k->data = NEWS(&k->c.arena, qcc_tensor, k->n_data);
    for (size_t i = 0; i < k->n_data; i++) {
        MUST(k, qcc_step_input(k->step, i, &v));
        k->data[i] = drawn(k, &v);
        MUST(k, qcc_bind(k->session, v.name, &k->data[i]));
    }
    for (int i = 0; i < STEPS; i++)
        MUST(k, qcc_run(k->session, QCC_STEP, &r));
    HOLDS(k, isfinite(r.loss), "the loss is %g\n", r.loss);
}

/* ---- what was exported ---- */

static qcc_model *exported(Case *k, const char *options, const char *end)
{
    const char *path = beside(k, end);
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

static int casts_of(const qcc_model *m)
{
    return count(m->graph, OP_cast, OP_cast_like);
}

static const Tensor *parameter(Case *k, const qcc_model *m, const char *name)
{
    for (Node *n = m->graph->first; n; n = n->next)
        if (n->op == OP_param && n->name && strcmp(n->name, name) == 0)
            return payload_tensor(node_payload(n), &k->c.diag);
    return NULL;
}

/* The file holds what the checkpoint does, and that is no rounded copy. */
static void weights_are_masters(Case *k, const qcc_model *flat, const qcc_model *narrow, DType to)
{
    const char *path = beside(k, ".safetensors");
    const qcc_sink sink = qcc_to_file(path);
    Blobs saved;
    int weights = 0, finer = 0;
    MUST(k, qcc_save(k->session, &sink));
    blobs_open(&saved, &k->c.arena);
    assert_int_equal(blobs_read(&saved, &k->c.ir, path), OK);
    for (size_t i = 0; i < saved.n; i++) {
        const char *name = saved.list[i].name;
        HOLDS(k, !strstr(name, "shadow"), "the checkpoint holds %s\n", name);
        if (strncmp(name, "qcc.", 4) == 0)
            continue;
        const Tensor *master = payload_tensor(saved.list[i].payload, &k->c.diag);
        const Tensor *file = parameter(k, flat, name), *small = parameter(k, narrow, name);
        HOLDS(k, master && file && small, "%s is not in a file\n", name);
        HOLDS(k, file->bytes == master->bytes && memcmp(file->data, master->data, file->bytes) == 0,
              "%s is not the master\n", name);
        if (small->type->dtype != to)
            continue;
        Tensor *once = tensor_new(&k->c.arena, small->type);
        for (int64_t e = 0; e < tensor_elements(master); e++) {
            tensor_set_f64(once, e, tensor_get_f64(master, e));
            finer += tensor_get_f64(once, e) != tensor_get_f64(master, e);
        }
        HOLDS(k, memcmp(once->data, small->data, once->bytes) == 0, "%s is not the master, rounded once\n", name);
        weights++;
    }
    HOLDS(k, weights >= 4 && finer > 16, "%d weights, %d values finer than %s\n", weights, finer, k->amp);
}

/* ---- outputs ---- */

static void say_value(Text *t, const char *kind, const char *name, const qcc_tensor *x)
{
    text_printf(t, "%s %s %s ", kind, name, x->dtype == QCC_I64 ? "int64" : "float32");
    for (int i = 0; i < x->rank; i++)
        text_printf(t, "%s%lld", i ? "x" : "", (long long)x->dims[i]);
    for (size_t i = 0; x->dtype == QCC_I64 && i < x->bytes / sizeof(int64_t); i++)
        text_printf(t, " %lld", (long long)((const int64_t *)x->data)[i]);
    for (size_t i = 0; x->dtype != QCC_I64 && i < x->bytes / sizeof(float); i++)
        text_printf(t, " %.9g", (double)((const float *)x->data)[i]);
    text_char(t, '\n');
}

static void computes_in_f32(Case *k, qcc_model *flat)
{
    qcc_tensor want, got;
    Text t;
    FileOut f;
    const char *output = flat->outputs[0].name;
    MUST(k, qcc_run(k->session, QCC_EVAL, NULL));
    MUST(k, qcc_view(k->session, output, &want));
    MUST(k, qcc_run_model(flat, k->data, 1, &got, 1));
    assert_int_equal(got.bytes, want.bytes);
    for (size_t i = 0; i < got.bytes / sizeof(float); i++) {
        const double g = (double)((const float *)got.data)[i], w = (double)((const float *)want.data)[i];
        HOLDS(k, fabs(g - w) <= 1e-5 * fmax(1, fabs(w)), "output %zu is %g deployed, %g in @eval\n", i, g, w);
    }
    text_open(&t, &k->c.arena);
    say_value(&t, "in", flat->inputs[0].name, &k->data[0]);
    say_value(&t, "out", output, &got);
    assert_int_equal(file_create(&f, &k->c.arena, &k->c.diag, beside(k, ".values")), OK);
    assert_int_equal(file_write(&f, t.p, t.n), OK);
    assert_int_equal(file_keep(&f), OK);
}

/* ---- every model ---- */

static Status go_through(void *arg)
{
    Case *k = arg;
    const DType to = strcmp(k->amp, "fp16") == 0 ? F16 : BF16;
    const bool torch = strstr(k->path, "/torch/") != NULL;
    const qcc_context_options options = { .size = sizeof options, .report = report, .user = k, .threads = 1 };
    const qcc_source source = qcc_file(k->path);
    const qcc_sink step = qcc_to_file(beside(k, ".step.onnx"));
    MUST(k, qcc_open(&options, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model,
                        arena_printf(&k->c.arena, "--amp %s --lr 1e-3%s", k->amp,
                                     torch ? " --loss cross_entropy:logits,axis=1 --batch 4" : ""),
                        &k->step));
    MUST(k, qcc_start(k->step, &k->session));
    HOLDS(k, count(module_graph(k->step->module, "step"), OP_amp_cast, OP_amp_cast) > 1, "nothing is narrow\n");
    train(k);
    MUST(k, qcc_write_step(k->step, &step));
    qcc_model *flat = exported(k, NULL, ".flat.onnx");
    qcc_model *narrow = exported(k, arena_printf(&k->c.arena, "--dtype %s --round-constants", k->amp), ".narrow.onnx");
    HOLDS(k, casts_of(flat) <= casts_of(k->model), "%d casts of %d\n", casts_of(flat), casts_of(k->model));
    HOLDS(k, casts_of(narrow) <= casts_of(k->model), "narrow: %d casts of %d\n", casts_of(narrow), casts_of(k->model));
    weights_are_masters(k, flat, narrow, to);
    computes_in_f32(k, flat);
    qcc_close(k->cx);
    return OK;
}

static int every_model_of(const char *pattern, const char *amp)
{
    glob_t found;
    int bad = 0;
    const char *only = getenv("QCC_EXPORT");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char name[ROOM];
        Case k = { .path = found.gl_pathv[i], .name = name, .amp = amp };
        snprintf(name, sizeof name, "%s", strrchr(k.path, '/') + 1);
        *strrchr(name, '.') = '\0';
        if (only && !strstr(name, only))
            continue;
        context_open(&k.c);
        bad += guarded(&k.c.memory, go_through, &k) != OK;
        context_close(&k.c);
    }
    print_message("%zu files with --amp %s\n", found.gl_pathc, amp);
    globfree(&found);
    return bad;
}

static void masters_are_deployed(void **state)
{
    static const char *const patterns[] = { "/tests/data/torch/*.onnx", "/tests/data/exports/*-*.onnx" };
    char pattern[ROOM], remove[3 * ROOM];
    int bad = 0;
    (void)state;
    snprintf(remove, sizeof remove, "rm -rf '%s' && mkdir '%s'", folder, folder);
    assert_int_equal(system(remove), 0);
    for (size_t i = 0; i < COUNT(patterns); i++) {
        snprintf(pattern, sizeof pattern, "%s%s", QCC_SOURCE_DIR, patterns[i]);
        bad += every_model_of(pattern, "bf16");
        bad += every_model_of(pattern, "fp16");
    }
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
