/* What weights that are codes compute is what is deployed: of the examples, the bits of @eval are those of the exported file, whose
 * products read a DequantizeLinear of scale 1 and are followed by the scale and the bias, f32(x q') * s + b; and of the
 * perceptron those of that formula, written out. */
#include <math.h>

#include "api/make/step.h"
#include "support/stored.h"

enum { STEPS = 3, BATCH = 4, CLASSES = 5, MOST_INPUTS = 2, FEATURES = 256, HIDDEN = 64, OUTPUTS = 10 };

static const char folder[] = QCC_BINARY_DIR "/tests/stored_forward";

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model, *file;
    qcc_step *step;
    qcc_session *session;
    qcc_tensor data[MOST_INPUTS]; /* the model's input, and the target */
    qcc_tensor y;                 /* by @eval */
} Case;

static qcc_tensor view(Case *k, const char *name, const char *part)
{
    qcc_tensor v = { .size = sizeof v };
    MUST(k, qcc_view(k->session, arena_printf(&k->s->c.arena, "%s%s", name, part), &v));
    return v;
}

/* ---- training, and a file of it ---- */

static void bind(Case *k, int step)
{
    for (size_t i = 0; i < qcc_step_n_inputs(k->step); i++) {
        const Value *v = &k->step->inputs[i];
        assert_true(i < MOST_INPUTS);
        k->data[i] = stored_draw(k->s, arena_printf(&k->s->c.arena, "%s%d", v->name, step), v->type, CLASSES);
        MUST(k, qcc_bind(k->session, v->name, &k->data[i]));
    }
}

static void train(Case *k, const char *device)
{
    const qcc_context_options options = {
        .size = sizeof options, .report = stored_report, .user = k->s, .threads = 1, .device = device
    };
    const qcc_source source = qcc_file(k->s->path), again = qcc_file(stored_path(k->s, ".onnx"));
    const qcc_sink sink = qcc_to_file(stored_path(k->s, ".onnx"));
    MUST(k, qcc_open(&options, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_compile(k->model,
                        arena_printf(&k->s->c.arena,
                                     "--batch %d --loss cross_entropy --optimizer adamw:lr=1e-2 --quant %s", BATCH,
                                     k->s->how),
                        &k->step));
    MUST(k, qcc_start(k->step, NULL, &k->session));
    for (int i = 0; i < STEPS; i++) {
        bind(k, i);
        MUST(k, qcc_run(k->session, QCC_STEP, NULL));
    }
    MUST(k, qcc_export_session(k->session, NULL, &sink));
    MUST(k, qcc_read(k->cx, &again, arena_printf(&k->s->c.arena, "--batch %d", BATCH), &k->file));
    bind(k, STEPS);
    MUST(k, qcc_run(k->session, QCC_EVAL, NULL));
    k->y = view(k, "logits", "");
}

/* ---- how the file is written ---- */

static const Node *only_reader(const Node *n, Op op)
{
    return n->uses && !n->uses->next && n->uses->user->op == op ? n->uses->user : NULL;
}

static const Tensor *constant_beside(const Node *call, const Node *operand)
{
    const Node *other = in(call, in(call, 0) == operand);
    return node_constant(other, 0);
}

static bool same_bytes(const Tensor *t, const qcc_tensor *q)
{
    return t && t->bytes == q->bytes && memcmp(t->data, q->data, t->bytes) == 0;
}

/* The product of a weight, and what stands behind it. */
static void check_product(Case *k, const Node *number)
{
    const Node *codes = in(number, 0), *product = number->uses->user, *scaled = only_reader(product, OP_mul);
    const Tensor *one = node_constant(in(number, 1), 0), *zero = in(number, 2) ? node_constant(in(number, 2), 0) : NULL;
    const qcc_tensor stored = view(k, codes->name, ".codes"), scale = view(k, codes->name, ".scale");
    HOLDS(k, one && tensor_elements(one) == 1 && tensor_get_f64(one, 0) == 1, "%s: its scale is not 1\n", codes->name);
    HOLDS(k, !zero || tensor_get_i64(zero, 0) == 0, "%s: it has a zero point\n", codes->name);
    HOLDS(k, same_bytes(node_constant(codes, 0), &stored), "%s: other codes\n", codes->name);
    HOLDS(k, op_of(product)->quant.weight_axis && in(product, 1) == number && (product->n_in < 3 || !in(product, 2)),
          "%s: what reads it is no product alone\n", codes->name);
    HOLDS(k, scaled && same_bytes(constant_beside(scaled, product), &scale), "%s: its scale does not follow\n",
          codes->name);
    const Node *sum = only_reader(scaled, OP_add);
    HOLDS(k, sum || strstr(k->s->name, "gpt"), "%s: no bias follows\n", codes->name);
}

static int check_products(Case *k)
{
    int n = 0;
    for (const Node *o = k->file->graph->first; o; o = o->next)
        if (o->op == OP_dequantize_linear) {
            check_product(k, o);
            n++;
        }
    return n;
}

/* ---- what it computes ---- */

static void check_file(Case *k)
{
    qcc_tensor y = { .size = sizeof y };
    MUST(k, qcc_run_model(k->file, k->data, 1, &y, 1));
    HOLDS(k, tensor_same(stored_tensor(k->s, &y), stored_tensor(k->s, &k->y)), "the file computes something else\n");
    HOLDS(k, tensor_elements(stored_tensor(k->s, &y)) > 0, "nothing\n");
}

/* f32(x q') * s + b, in the order of contractions of up to 2048. */
static void layer(Case *k, const char *name, const float *x, int columns, int rows, float *y)
{
    const qcc_tensor codes = view(k, name, ".weight.codes"), scale = view(k, name, ".weight.scale"),
                     bias = view(k, name, ".bias");
    const int8_t *q = codes.data;
    for (int n = 0; n < BATCH; n++)
        for (int j = 0; j < rows; j++) {
            float sum = 0;
            for (int i = 0; i < columns; i++)
                sum = fmaf(x[n * columns + i], (float)q[j * columns + i], sum);
            const float scaled = sum * ((const float *)scale.data)[j];
            y[n * rows + j] = scaled + ((const float *)bias.data)[j];
        }
}

static void check_formula(Case *k)
{
    static float hidden[BATCH * HIDDEN], y[BATCH * OUTPUTS];
    layer(k, "fc1", k->data[0].data, FEATURES, HIDDEN, hidden);
    for (int i = 0; i < BATCH * HIDDEN; i++)
        hidden[i] = hidden[i] > 0 ? hidden[i] : 0;
    layer(k, "fc2", hidden, HIDDEN, OUTPUTS, y);
    assert_int_equal(k->y.bytes, sizeof y);
    assert_memory_equal(k->y.data, y, sizeof y);
}

/* ---- models ---- */

static Status visit(void *stored)
{
    static const char *const devices[] = { "reference", "cpu" };
    for (size_t i = 0; i < COUNT(devices); i++) {
        Case k = { .s = stored };
        const bool perceptron = strcmp(k.s->name, "mlp") == 0;
        train(&k, devices[i]);
        const int products = check_products(&k);
        HOLDS(&k, products == (perceptron ? 2 : strcmp(k.s->name, "cnn") == 0 ? 3 : 13), "%d products\n", products);
        check_file(&k);
        if (perceptron)
            check_formula(&k);
        qcc_close(k.cx);
    }
    return OK;
}

static void the_file_computes_what_trains(void **state)
{
    static const char *const files[] = { "/examples/models/mlp.qir", "/examples/models/cnn.qir",
                                         "/examples/models/gpt.qir" };
    static const char *const records[] = { "int8-weights", "w=int8:row:rne:stored,a=off" };
    size_t seen = 0;
    (void)state;
    stored_folder(folder);
    for (size_t i = 0; i < COUNT(files) * COUNT(records); i++)
        assert_int_equal(stored_each(files[i % COUNT(files)], records[i / COUNT(files)], folder, visit, &seen), 0);
    assert_int_equal(seen, COUNT(files) * COUNT(records));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_file_computes_what_trains) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
