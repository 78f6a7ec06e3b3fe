/* How long bytes of the host are wanted: until the model is freed, though steps and sessions made of it live on; what
 * changes before is noticed and not computed with. */
#include <unistd.h>

#include "embed/trainee.h"

/* 500 x 600 floats: more than is looked at whole, and more than is shown to infer. */
static const char large_text[] = "graph @net(%x: f32[?,4]) -> (%y) {\n"
                                 "    param %v: f32[4,500] = kaiming(seed=1)\n"
                                 "    param %w: f32[500,600] = kaiming(seed=2)\n"
                                 "    param %u: f32[600,4] = kaiming(seed=3)\n"
                                 "    %h: f32[?,500] = matmul(%x, %v)\n"
                                 "    %k: f32[?,600] = matmul(%h, %w)\n"
                                 "    %y: f32[?,4] = matmul(%k, %u)\n"
                                 "}\n";

enum { MOST = 1 << 21 };

/* A file in memory of its own, which goes when it is said to. */
typedef struct Lent {
    unsigned char *p;
    size_t n, reads, fail_at; /* this read fails; 0: none */
} Lent;

static qcc_status lent_put(void *user, const void *p, size_t n)
{
    Lent *l = user;
    assert_true(n <= MOST - l->n);
    memcpy(l->p + l->n, p, n);
    l->n += n;
    return QCC_OK;
}

static qcc_status lent_get(void *user, uint64_t offset, void *p, size_t n)
{
    Lent *l = user;
    assert_non_null(l->p);
    memcpy(p, l->p + offset, n);
    return ++l->reads == l->fail_at ? QCC_IO : QCC_OK;
}

static qcc_sink lent_sink(Lent *l)
{
    l->n = 0;
    return (qcc_sink){ .write = lent_put, .user = l };
}

/* A model file after one step of training: weights that were drawn would be said in it, and not read. */
static Lent lent_open(const char *text, size_t n)
{
    Host h = { 0 };
    Lent l = { .p = malloc(MOST) };
    Trainee t = { .model = NULL };
    qcc_context *cx = open_with(&h);
    qcc_source source = qcc_bytes(text, n);
    const qcc_sink sink = lent_sink(&l);
    source.name = "net.qir";
    assert_non_null(l.p);
    assert_int_equal(qcc_read(cx, &source, "--batch 8", &t.model), QCC_OK);
    assert_int_equal(qcc_compile(t.model, TRAINEE_OPTIONS, &t.step), QCC_OK);
    assert_int_equal(qcc_start(t.step, NULL, &t.session), QCC_OK);
    assert_int_equal(trainee_bind(&t), QCC_OK);
    trainee_run(&t, 0, 1);
    assert_int_equal(qcc_export_session(t.session, NULL, &sink), QCC_OK);
    qcc_close(cx);
    return l;
}

static qcc_source lent_source(Lent *l, bool by_function)
{
    qcc_source source = by_function ? (qcc_source){ .read = lent_get, .user = l, .size = l->n } : qcc_bytes(l->p, l->n);
    source.name = "net.onnx";
    return source;
}

static void lent_close(Lent *l)
{
    if (l->p)
        memset(l->p, 0xa5, l->n);
    free(l->p);
    l->p = NULL;
}

static const struct {
    const char *text;
    size_t n;
} models[] = { { trainee_text, sizeof trainee_text - 1 }, { large_text, sizeof large_text - 1 } };

/* Everything changed, and one byte of what is looked at: of a large file its ends. */
static void bytes_that_changed_are_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        Host h = { 0 };
        Lent file = lent_open(models[i].text, models[i].n), out = { .p = malloc(MOST) };
        const qcc_source source = lent_source(&file, false);
        const qcc_sink sink = lent_sink(&out);
        unsigned char *kept = malloc(file.n);
        qcc_context *cx = open_with(&h);
        qcc_model *m;
        assert_true(kept && out.p);
        memcpy(kept, file.p, file.n);
        assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
        const size_t changes[][2] = { { 0, file.n }, { file.n / 2, file.n / 2 }, { file.n - 1, 1 }, { 0, 1 } };
        for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
            for (size_t at = 0; at < changes[k][1]; at++)
                file.p[changes[k][0] + at] ^= 0x55;
            h.text[0] = 0;
            assert_int_equal(qcc_export(m, NULL, &sink), QCC_INVALID);
            assert_non_null(strstr(h.text, "net.onnx: the bytes have changed since they were read"));
            memcpy(file.p, kept, file.n);
        }
        out.n = 0;
        assert_int_equal(qcc_export(m, NULL, &sink), QCC_OK); /* as they were, they are good again */
        assert_int_equal(out.n, file.n);
        assert_memory_equal(out.p, kept, out.n);
        qcc_close(cx);
        assert_int_equal(h.blocks, 0);
        lent_close(&file);
        lent_close(&out);
        free(kept);
    }
}

/* What a step writes, trains to and exports after the model and its bytes are gone; and while they were there. */
static void use(const char *options, Lent *file, bool by_function, bool gone, Lent *step, Lent *model)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    const qcc_source source = lent_source(file, by_function);
    const qcc_sink to_step = lent_sink(step), to_model = lent_sink(model);
    Trainee t = { .model = NULL };
    assert_int_equal(qcc_read(cx, &source, "--batch 8", &t.model), QCC_OK);
    assert_int_equal(qcc_compile(t.model, options, &t.step), QCC_OK);
    if (gone) {
        qcc_model_free(t.model);
        lent_close(file);
    }
    const size_t reads = file->reads;
    assert_int_equal(qcc_start(t.step, NULL, &t.session), QCC_OK);
    assert_int_equal(trainee_bind(&t), QCC_OK);
    trainee_run(&t, 0, 2);
    assert_int_equal(qcc_write_step(t.step, &to_step), QCC_OK);
    assert_int_equal(qcc_export_session(t.session, NULL, &to_model), QCC_OK);
    if (gone)
        assert_int_equal(file->reads, reads);
    qcc_step_free(t.step);
    qcc_end(t.session);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void steps_outlive_the_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int by_function = 0; by_function < 2; by_function++) {
            Lent file = lent_open(models[i].text, models[i].n), out[4];
            for (int k = 0; k < 4; k++)
                out[k] = (Lent){ .p = malloc(MOST) };
            use(TRAINEE_OPTIONS, &file, by_function, false, &out[0], &out[1]);
            use(TRAINEE_OPTIONS, &file, by_function, true, &out[2], &out[3]);
            for (int k = 0; k < 2; k++) {
                assert_true(out[k].n > 0 && out[k].n == out[k + 2].n);
                assert_memory_equal(out[k].p, out[k + 2].p, out[k].n);
            }
            for (int k = 0; k < 4; k++)
                lent_close(&out[k]);
        }
}

/* Freeing cannot fail; where there is no memory for the copy what wants it does. */
static void without_memory_for_a_copy_it_is_said(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    Lent file = lent_open(large_text, sizeof large_text - 1), out = { .p = malloc(MOST) };
    const qcc_source source = lent_source(&file, false);
    const qcc_sink sink = lent_sink(&out);
    Trainee t = { .model = NULL };
    (void)state;
    assert_int_equal(qcc_read(cx, &source, "--batch 8", &t.model), QCC_OK);
    assert_int_equal(qcc_compile(t.model, TRAINEE_OPTIONS, &t.step), QCC_OK);
    assert_int_equal(qcc_start(t.step, NULL, &t.session), QCC_OK);
    h.fail_at = h.requests + 1;
    qcc_model_free(t.model);
    lent_close(&file);
    assert_int_equal(qcc_export_session(t.session, NULL, &sink), QCC_IO);
    assert_non_null(strstr(h.text, "the host took it back with the model, and there was no memory for a copy"));
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
    lent_close(&out);
}

/* Nobody outlives it: nothing is copied. */
static void a_model_alone_takes_nothing(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    Lent file = lent_open(large_text, sizeof large_text - 1);
    const qcc_source source = lent_source(&file, true);
    qcc_model *m;
    (void)state;
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    const size_t reads = file.reads, requests = h.requests;
    qcc_model_free(m);
    assert_true(file.reads == reads && h.requests == requests);
    lent_close(&file);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* ---- reads that fail ---- */

static const char *const kinds[] = { "ir", "onnx", "json", "dot", "html" };

enum { KINDS = sizeof kinds / sizeof *kinds };

/* What a kind writes to a path, or (KINDS) an export, with the n-th read after the model was read failing. */
static qcc_status write_out(Lent *file, size_t kind, size_t fail_at, const char *path)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    const qcc_source source = lent_source(file, true);
    const qcc_sink sink = qcc_to_file(path);
    qcc_model *m;
    file->fail_at = file->reads = 0;
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    file->reads = 0;
    file->fail_at = fail_at;
    const qcc_status status = kind < KINDS ? qcc_emit(m, kinds[kind], NULL, &sink) : qcc_export(m, NULL, &sink);
    file->fail_at = 0;
    assert_true(status == QCC_OK ? h.messages == 0 : h.messages == 1); /* said once */
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
    return status;
}

static size_t content(const char *path, char *out)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(out, 1, 4 * MOST, f);
    fclose(f);
    return n;
}

static void what_cannot_be_read_replaces_nothing(void **state)
{
    static const size_t least[KINDS + 1] = { 1, 1, 1, 0, 1, 1 }; /* reads that can fail: a drawing shows no values */
    Lent file = lent_open(large_text, sizeof large_text - 1);
    char path[] = "/tmp/qcc.bytes.XXXXXX", *want = malloc(4 * MOST), *got = malloc(4 * MOST);
    (void)state;
    assert_true(want && got && close(mkstemp(path)) == 0);
    for (size_t kind = 0; kind <= KINDS; kind++) {
        assert_int_equal(write_out(&file, kind, 0, path), QCC_OK);
        const size_t n = content(path, want), reads = file.reads;
        assert_true(reads >= least[kind]);
        for (size_t at = 1; at <= reads; at++) {
            FILE *f = fopen(path, "wb");
            assert_true(f && fputs("as it was", f) >= 0 && fclose(f) == 0);
            assert_int_equal(write_out(&file, kind, at, path), QCC_IO);
            assert_int_equal(content(path, got), strlen("as it was"));
        }
        assert_int_equal(write_out(&file, kind, reads + 1, path), QCC_OK);
        assert_int_equal(content(path, got), n);
        assert_memory_equal(want, got, n);
    }
    unlink(path);
    free(want);
    free(got);
    lent_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_changed_are_noticed),       cmocka_unit_test(steps_outlive_the_bytes),
        cmocka_unit_test(without_memory_for_a_copy_it_is_said), cmocka_unit_test(a_model_alone_takes_nothing),
        cmocka_unit_test(what_cannot_be_read_replaces_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
