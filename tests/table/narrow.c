/* label: slow */
/* export --dtype over every stored model: the file is narrow throughout, in an opset that has its operators with that
 * type, without a cast that the import did not have; our reader takes it, and it computes what the f32 file does, as far
 * as the type goes.  With --keep-io it has the old signature, one Cast for each value of it that was f32, and the same
 * numbers.  onnx's checker and onnxruntime have the last word (tests/data/narrow.py). */
#include <math.h>

#include "api/model/model.h"
#include "ops/card/schema.h"
#include "support/oracle.h"
#include "support/stored.h"

/* Masks of -3.4e38 become infinite. */
#define ROUNDED "--dtype %s --round-constants"

enum { BATCH = 4, MOST_F32 = 64, MOST_VALUES = 8 };

static const char folder[] = QCC_BINARY_DIR "/tests/narrow";
static const char script[] = QCC_SOURCE_DIR "/tests/data/narrow.py";

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model, *plain, *narrow, *kept; /* as read; exported in f32, narrow, with its signature kept */
    qcc_tensor data[MOST_VALUES];             /* of `plain` */
} Case;

/* Exports in a form and reads what was written. */
static qcc_model *exported(Case *k, const char *options, const char *end)
{
    const char *path = arena_printf(&k->s->c.arena, "%s/%s%s", folder, k->s->name, end);
    const qcc_sink sink = qcc_to_file(path);
    const qcc_source source = qcc_file(path);
    qcc_model *m;
    MUST(k, qcc_export(k->model, options, &sink));
    MUST(k, qcc_read(k->cx, &source, NULL, &m));
    return m;
}

/* ---- the file ---- */

static int opset_of(const qcc_model *m)
{
    const Onnx__ModelProto *p = m->spine.model;
    for (size_t i = 0; i < p->n_opset_import; i++)
        if (!p->opset_import[i]->domain.len)
            return (int)p->opset_import[i]->version;
    return 0;
}

static void is_bare(Case *k, const qcc_model *m)
{
    const Onnx__GraphProto *g = m->spine.model->graph;
    HOLDS(k, opset_of(m) >= 13 && opset_of(m) <= 22, "opset %d\n", opset_of(m));
    for (size_t i = 0; i < g->n_node; i++)
        HOLDS(k, !g->node[i]->domain.len && !g->node[i]->n_metadata_props, "node %zu says something of ours\n", i);
    for (size_t i = 0; i < g->n_initializer; i++)
        HOLDS(k, !g->initializer[i]->n_metadata_props, "initializer %zu says something of ours\n", i);
}

static void is_narrow(Case *k, qcc_model *m, DType to)
{
    int narrow = 0;
    for (size_t i = 0; i < m->n_inputs; i++)
        HOLDS(k, m->inputs[i].type->dtype != F32, "input %s is f32\n", m->inputs[i].name);
    for (size_t i = 0; i < m->n_outputs; i++)
        HOLDS(k, m->outputs[i].type->dtype == to, "output %s is not narrow\n", m->outputs[i].name);
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n)) {
        const bool constant = n->op == OP_param && n->type->kind == TYPE_TENSOR;
        narrow += n->type->kind == TYPE_TENSOR && n->type->dtype == to;
        HOLDS(k, !constant || n->type->dtype != F32 || type_elements(n->type) < MOST_F32, "%s is f32\n", n->name);
    }
    assert_true(narrow > 0);
}

static void same_signature(Case *k, const qcc_model *a, const qcc_model *b)
{
    assert_int_equal(a->n_inputs, b->n_inputs);
    assert_int_equal(a->n_outputs, b->n_outputs);
    for (size_t i = 0; i < a->n_inputs; i++)
        HOLDS(k, strcmp(a->inputs[i].name, b->inputs[i].name) == 0 && strcmp(a->inputs[i].text, b->inputs[i].text) == 0,
              "input %s %s became %s %s\n", a->inputs[i].name, a->inputs[i].text, b->inputs[i].name, b->inputs[i].text);
    for (size_t i = 0; i < a->n_outputs; i++)
        HOLDS(k,
              strcmp(a->outputs[i].name, b->outputs[i].name) == 0 &&
                  strcmp(a->outputs[i].text, b->outputs[i].text) == 0,
              "output %s %s became %s %s\n", a->outputs[i].name, a->outputs[i].text, b->outputs[i].name,
              b->outputs[i].text);
}

/* ---- numbers ---- */

static qcc_tensor seen(const Tensor *t)
{
    qcc_tensor q = { sizeof(qcc_tensor), (qcc_dtype)t->type->dtype, t->type->rank, { 0 }, t->data, t->bytes };
    for (int i = 0; i < q.rank; i++)
        q.dims[i] = t->type->dims[i];
    return q;
}

static void draw_data(Case *k)
{
    for (size_t i = 0; i < k->plain->n_inputs; i++) {
        int64_t dims[MAX_RANK];
        const Type *type = k->plain->inputs[i].type;
        for (int d = 0; d < type->rank; d++)
            dims[d] = type->dims[d] < 0 ? BATCH : type->dims[d];
        k->data[i] = stored_draw(k->s, k->plain->inputs[i].name,
                                 type_tensor(&k->s->c.ir.types, type->dtype, type->rank, dims), 5);
    }
}

/* The data in the types of a model. */
static void run(Case *k, qcc_model *m, qcc_tensor *results)
{
    qcc_tensor data[MOST_VALUES];
    assert_true(m->n_inputs <= MOST_VALUES && m->n_outputs <= MOST_VALUES);
    for (size_t i = 0; i < m->n_inputs; i++) {
        const Tensor *from = stored_tensor(k->s, &k->data[i]);
        Tensor *t =
            tensor_new(&k->s->c.arena, type_with_dtype(&k->s->c.ir.types, from->type, m->inputs[i].type->dtype));
        for (int64_t e = 0; e < tensor_elements(t); e++)
            tensor_set_f64(t, e, tensor_get_f64(from, e));
        data[i] = seen(t);
    }
    for (size_t i = 0; i < m->n_outputs; i++)
        results[i].size = sizeof results[i];
    MUST(k, qcc_run_model(m, data, m->n_inputs, results, m->n_outputs));
}

/* The largest difference of two results, of the largest value. */
static double apart(Case *k, const qcc_tensor *a, const qcc_tensor *b)
{
    const Tensor *x = stored_tensor(k->s, a), *y = stored_tensor(k->s, b);
    double largest = 1e-6, most = 0;
    assert_int_equal(tensor_elements(x), tensor_elements(y));
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        const double u = tensor_get_f64(x, i), v = tensor_get_f64(y, i);
        largest = fmax(largest, fabs(u));
        most = fmax(most, isfinite(v) ? fabs(u - v) : INFINITY);
    }
    return most / largest;
}

/* For onnxruntime: what goes in and what comes out. */
static void keep_values(Case *k, const qcc_tensor *results)
{
    Text t;
    text_open(&t, &k->s->c.arena);
    for (size_t i = 0; i < k->narrow->n_inputs; i++)
        stored_say(k->s, &t, "in", k->narrow->inputs[i].name, &k->data[i]);
    for (size_t i = 0; i < k->narrow->n_outputs; i++)
        stored_say(k->s, &t, "out", k->narrow->outputs[i].name, &results[i]);
    stored_keep(k->s, &t);
}

static void computes_the_same(Case *k, DType to)
{
    const double most = to == F16 ? 0x1p-8 : 0x1p-5;
    qcc_tensor want[MOST_VALUES], got[MOST_VALUES], kept[MOST_VALUES];
    run(k, k->plain, want);
    run(k, k->narrow, got);
    run(k, k->kept, kept);
    for (size_t i = 0; i < k->plain->n_outputs; i++) {
        HOLDS(k, apart(k, &want[i], &got[i]) <= most, "output %zu is %g from f32\n", i, apart(k, &want[i], &got[i]));
        HOLDS(k, apart(k, &got[i], &kept[i]) == 0, "output %zu is another one when kept\n", i);
    }
    keep_values(k, got);
}

/* ---- every model ---- */

static int f32_values(const qcc_model *m)
{
    int n = 0;
    for (size_t i = 0; i < m->n_inputs; i++)
        n += m->inputs[i].type->dtype == F32;
    for (size_t i = 0; i < m->n_outputs; i++)
        n += m->outputs[i].type->dtype == F32;
    return n;
}

static Status go_through(void *arg)
{
    Case all = { .s = arg }, *k = &all;
    const DType to = strcmp(k->s->how, "fp16") == 0 ? F16 : BF16;
    const qcc_context_options options = { .size = sizeof options, .report = stored_report, .user = k->s, .threads = 1 };
    const qcc_source source = qcc_file(k->s->path);
    MUST(k, qcc_open(&options, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    k->plain = exported(k, NULL, ".f32.onnx");
    k->narrow = exported(k, arena_printf(&k->s->c.arena, ROUNDED, k->s->how),
                         arena_printf(&k->s->c.arena, ".%s.onnx", k->s->how));
    k->kept = exported(k, arena_printf(&k->s->c.arena, ROUNDED " --keep-io '*'", k->s->how),
                       arena_printf(&k->s->c.arena, ".%s.kept.onnx", k->s->how));
    is_bare(k, k->narrow);
    is_narrow(k, k->narrow, to);
    same_signature(k, k->plain, k->kept);
    HOLDS(k, stored_casts(k->narrow->graph) <= stored_casts(k->plain->graph), "%d casts of %d\n",
          stored_casts(k->narrow->graph), stored_casts(k->plain->graph));
    assert_int_equal(stored_casts(k->kept->graph), stored_casts(k->narrow->graph) + f32_values(k->plain));
    draw_data(k);
    computes_the_same(k, to);
    qcc_close(k->cx);
    return OK;
}

static void every_model_goes_narrow(void **state)
{
    static const char *const patterns[] = { "/tests/data/torch/*.onnx", "/tests/data/exports/*.onnx",
                                            "/examples/models/*.qir" };
    size_t seen = 0;
    int bad = 0;
    (void)state;
    stored_folder(folder);
    for (size_t i = 0; i < COUNT(patterns); i++) {
        bad += stored_each(patterns[i], "fp16", folder, go_through, &seen);
        bad += stored_each(patterns[i], "bf16", folder, go_through, &seen);
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
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_model_goes_narrow), cmocka_unit_test(others_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
