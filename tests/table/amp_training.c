/* label: slow */
/* Models that PyTorch exported, trained 200 steps on the same data in f32 and in mixed precision: the loss at the end is
 * that of f32, whatever the width, and parameters stay f32. */
#include <math.h>
#include <stdlib.h>

#include "qcc/qcc.h"
#include "testing.h"

enum { STEPS = 200, LAST = 10, BATCHES = 64, ROOM = 512, MOST = 4096 };

/* What a model takes and is to answer. */
static const struct Task {
    const char *name, *optimizer;
    int64_t x[4], target[3]; /* dimensions, 0: no more */
    int64_t words;           /* x holds words below this; 0: it holds numbers */
    int64_t classes;
} tasks[] = {
    { "mlp", "adam:lr=5e-3", { 4, 8 }, { 4 }, 0, 5 },
    { "cnn", "adam:lr=2e-3", { 4, 2, 8, 8 }, { 4 }, 0, 5 },
    { "transformer", "adam:lr=5e-3", { 4, 6 }, { 4, 6 }, 11, 11 },
    { "convnext", "adam:lr=5e-3", { 4, 2, 8, 8 }, { 4 }, 0, 5 },
    { "mobilenet", "adam:lr=2e-3", { 4, 4, 5, 5 }, { 4 }, 0, 5 },
    { "unet", "adam:lr=5e-3", { 4, 2, 6, 6 }, { 4, 6, 6 }, 0, 3 },
    { "lstm", "adam:lr=5e-3", { 4, 6, 5 }, { 4 }, 0, 5 },
};

/* ---- data: answers that follow from the inputs, mostly ---- */

typedef struct Batch {
    float x[MOST];
    int64_t words[MOST], target[MOST];
} Batch;

static int64_t size_of(const int64_t *dims, int most)
{
    int64_t n = 1;
    for (int i = 0; i < most && dims[i]; i++)
        n *= dims[i];
    return n;
}

static double gauss(uint64_t *seed)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*seed >> 40) / (double)(1 << 24);
    }
    return sum - 6;
}

/* One answer in four is drawn; the others are read off the inputs. */
static int64_t answer(const struct Task *t, const Batch *b, int64_t i, int64_t n, uint64_t *seed)
{
    const int64_t per = size_of(t->x, 4) / n;
    double sum = 0;
    if (gauss(seed) > 0.7)
        return (int64_t)(fabs(gauss(seed)) * 1000) % t->classes;
    if (t->words)
        return (b->words[i] * 3 + 1) % t->classes;
    for (int64_t k = 0; k < per; k++)
        sum += (double)b->x[i * per + k] * (k % 3 == 0 ? 1 : 0.3);
    return (int64_t)fabs(floor(sum / sqrt((double)per) * 1.5)) % t->classes;
}

static void draw(const struct Task *t, Batch *b, uint64_t seed)
{
    const int64_t n = size_of(t->x, 4), targets = size_of(t->target, 3);
    seed = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < n; i++) {
        b->x[i] = (float)gauss(&seed);
        b->words[i] = t->words ? (int64_t)(fabs(gauss(&seed)) * 1000) % t->words : 0;
    }
    for (int64_t i = 0; i < targets; i++)
        b->target[i] = answer(t, b, i, targets, &seed);
}

static qcc_tensor tensor_of(const int64_t *dims, int most, qcc_dtype dtype, void *data, size_t element)
{
    qcc_tensor x = { .dtype = dtype, .data = data };
    for (int i = 0; i < most && dims[i]; i++)
        x.dims[x.rank++] = dims[i];
    x.bytes = (size_t)size_of(dims, most) * element;
    return x;
}

static void bind_batch(qcc_session *s, const struct Task *t, Batch *b)
{
    const qcc_tensor x = t->words ? tensor_of(t->x, 4, QCC_I64, b->words, sizeof *b->words)
                                  : tensor_of(t->x, 4, QCC_F32, b->x, sizeof *b->x);
    const qcc_tensor y = tensor_of(t->target, 3, QCC_I64, b->target, sizeof *b->target);
    assert_int_equal(qcc_bind(s, "x", &x), QCC_OK);
    assert_int_equal(qcc_bind(s, "target", &y), QCC_OK);
}

/* ---- one run ---- */

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static double loss_of(qcc_session *s)
{
    qcc_tensor loss;
    assert_int_equal(qcc_view(s, "loss", &loss), QCC_OK);
    return (double)*(const float *)loss.data;
}

static qcc_session *start(qcc_context *cx, const struct Task *t, const char *precision)
{
    char path[ROOM], options[ROOM];
    qcc_model *model;
    qcc_step *step;
    qcc_session *s;
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/tests/data/torch/%s.onnx", t->name);
    snprintf(options, sizeof options, "--optimizer %s %s", t->optimizer, precision);
    const qcc_source source = qcc_file(path);
    assert_int_equal(qcc_read(cx, &source, NULL, &model), QCC_OK);
    assert_int_equal(qcc_compile(model, options, &step), QCC_OK);
    assert_int_equal(qcc_start(step, &s), QCC_OK);
    qcc_model_free(model);
    qcc_step_free(step);
    return s;
}

/* The mean loss of the last steps. */
static double train(const struct Task *t, const char *precision)
{
    static Batch batches[BATCHES];
    qcc_context *cx;
    const qcc_context_options options = { .size = sizeof options, .report = report, .threads = 1 };
    double sum = 0;
    assert_int_equal(qcc_open(&options, &cx), QCC_OK);
    qcc_session *s = start(cx, t, precision);
    for (int i = 0; i < BATCHES; i++)
        draw(t, &batches[i], (uint64_t)i);
    for (int i = 0; i < STEPS; i++) {
        bind_batch(s, t, &batches[i % BATCHES]);
        assert_int_equal(qcc_run(s, QCC_STEP, NULL), QCC_OK);
        const double loss = loss_of(s);
        if (getenv("QCC_TRACE") && i % 20 == 0)
            print_message("  %d %g\n", i, loss);
        sum += i >= STEPS - LAST ? loss : 0;
    }
    qcc_end(s);
    qcc_close(cx);
    return sum / LAST;
}

static void loses_as_f32_does(void **state)
{
    static const char *const precisions[] = { "--amp bf16", "--amp fp16" };
    int bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(tasks); i++) {
        const double wide = train(&tasks[i], "");
        for (size_t k = 0; k < COUNT(precisions); k++) {
            const double narrow = train(&tasks[i], precisions[k]);
            const double off = fabs(narrow - wide) / wide;
            print_message("%-12s f32 %.5f, %s %.5f: %.2f %%\n", tasks[i].name, wide, precisions[k], narrow, 100 * off);
            if (!(off <= 0.02))
                print_error("%s, %s: %g, not %g\n", tasks[i].name, precisions[k], narrow, wide), bad++;
        }
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(loses_as_f32_does) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
