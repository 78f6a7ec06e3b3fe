/* Ranks that keep some rows of each weight and gather the others before a step, as sessions of one process: what they
 * carry is codes and scales, it is enough, and its bytes are counted beside those of floats. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "embed/trainee.h"

enum { RANKS = 4, STEPS = 6, ROOM = 1 << 10, NAME = 64 };

static const char *const stored[] = { "w1.codes", "w1.scale", "w2.codes", "w2.scale" };
static const char *const gradients[] = { "grad.w1", "grad.b1", "grad.w2", "grad.b2" };

static qcc_tensor view(qcc_session *s, const char *name)
{
    qcc_tensor v = { .size = sizeof v };
    assert_int_equal(qcc_view(s, name, &v), QCC_OK);
    return v;
}

/* ---- a step of all ranks ---- */

/* Each forgets the rows that are not its own. */
static void forget(qcc_session *s, const char *name, int rank, int ranks)
{
    static unsigned char kept[ROOM];
    qcc_tensor v = view(s, name);
    const size_t part = v.bytes / (size_t)ranks;
    assert_true(v.bytes <= sizeof kept && v.bytes % (size_t)ranks == 0);
    memset(kept, 0x11, v.bytes);
    memcpy(kept + part * (size_t)rank, (const char *)v.data + part * (size_t)rank, part);
    v.data = kept;
    assert_int_equal(qcc_put(s, name, &v), QCC_OK);
}

/* Rows of all ranks, to every rank; returns the bytes that one of them takes from the others. */
static size_t gather(const Trainee *t, const char *name, int ranks)
{
    static unsigned char whole[ROOM];
    qcc_tensor v = view(t[0].session, name);
    const size_t part = v.bytes / (size_t)ranks;
    for (int r = 0; r < ranks; r++)
        memcpy(whole + part * (size_t)r, (const char *)view(t[r].session, name).data + part * (size_t)r, part);
    v.data = whole;
    for (int r = 0; r < ranks; r++)
        assert_int_equal(qcc_put(t[r].session, name, &v), QCC_OK);
    return v.bytes - part;
}

/* The mean of the gradients, to every rank. */
static void reduce(const Trainee *t, const char *name, int ranks)
{
    static float sum[ROOM];
    qcc_tensor v = view(t[0].session, name);
    const size_t n = v.bytes / sizeof(float);
    memset(sum, 0, v.bytes);
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < n; i++)
            sum[i] += ((const float *)view(t[r].session, name).data)[i] / (float)ranks;
    v.data = sum;
    for (int r = 0; r < ranks; r++)
        assert_int_equal(qcc_put(t[r].session, name, &v), QCC_OK);
}

/* Steps of so many ranks over the same samples; returns the bytes that one rank takes from the others in a step. */
static size_t train(Trainee *t, int ranks)
{
    size_t bytes = 0;
    for (unsigned step = 0; step < STEPS; step++) {
        bytes = 0;
        for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
            for (int r = 0; r < ranks; r++)
                forget(t[r].session, stored[i], r, ranks);
            bytes += gather(t, stored[i], ranks);
        }
        for (int r = 0; r < ranks; r++) {
            trainee_fill(&t[r], step);
            assert_int_equal(qcc_run(t[r].session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
        }
        for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++)
            reduce(t, gradients[i], ranks);
        for (int r = 0; r < ranks; r++)
            assert_int_equal(qcc_run(t[r].session, QCC_UPDATE, NULL), QCC_OK);
    }
    return bytes;
}

static void ranks_carry_codes_and_scales(void **state)
{
    enum { CODES = 8 * 4 + 4 * 8, SCALES = (8 + 4) * 4 };
    (void)state;
    for (int ranks = 1; ranks <= RANKS; ranks *= 2) {
        Host h = { 0 };
        Trainee alone, t[RANKS];
        qcc_context *cx = open_with(&h);
        float want[FLAT], got[FLAT];
        trainee_open(&alone, cx, TRAINEE_OPTIONS " --quant int8-weights");
        trainee_run(&alone, 0, STEPS);
        trainee_flat(&alone, want);
        for (int r = 0; r < ranks; r++)
            trainee_open(&t[r], cx, TRAINEE_OPTIONS " --quant int8-weights");
        const size_t bytes = train(t, ranks);
        assert_int_equal(bytes, (size_t)(CODES + SCALES) * (size_t)(ranks - 1) / (size_t)ranks);
        for (int r = 0; r < ranks; r++) {
            trainee_flat(&t[r], got);
            assert_memory_equal(want, got, sizeof got);
        }
        qcc_close(cx);
        assert_int_equal(h.blocks, 0);
    }
}

/* ---- bytes of a larger model ---- */

static const struct {
    const char *options;
    double all, covered; /* bytes of all parameters, and of those that are codes, beside f32: at most */
} forms[] = {
    { "", 1, 1 },
    { "--quant bf16-weights", 0.65, 0.5 },
    { "--quant int8-weights", 0.45, 0.27 },
    { "--quant int8-weights --quant-op op:Gather=w=int8:row:sr:stored", 0.32, 0.27 },
    { "--quant w=int4:group=32:sr:stored,a=off", 0.42, 0.16 },
};

typedef struct Carried {
    size_t all, covered, covered_f32;
} Carried;

static size_t part_of(qcc_session *s, const char *name, const char *part)
{
    char path[NAME];
    qcc_tensor v = { .size = sizeof v };
    snprintf(path, sizeof path, "%s.%s", name, part);
    return qcc_view(s, path, &v) == QCC_OK ? v.bytes : 0;
}

/* What all ranks together have to hold of the parameters. */
static Carried carried(const char *options)
{
    Host h = { 0 };
    qcc_model *m;
    qcc_step *step;
    qcc_session *s;
    char words[256];
    Carried c = { 0 };
    qcc_context *cx = open_with(&h);
    const qcc_source source = { .path = QCC_SOURCE_DIR "/examples/models/gpt.qir" };
    snprintf(words, sizeof words, "--loss cross_entropy:logits --optimizer adamw %s", options);
    assert_int_equal(qcc_read(cx, &source, "--batch 1", &m), QCC_OK);
    assert_int_equal(qcc_compile(m, words, &step), QCC_OK);
    assert_int_equal(qcc_start(step, NULL, &s), QCC_OK);
    for (size_t i = 0; i < qcc_n_parameters(step); i++) {
        qcc_value_info info = { .size = sizeof info };
        assert_int_equal(qcc_parameter(step, i, &info), QCC_OK);
        const size_t codes = part_of(s, info.name, "codes"), wide = view(s, info.name).bytes;
        const size_t held = codes + part_of(s, info.name, "scale") + part_of(s, info.name, "zero");
        c.all += codes ? held : wide;
        c.covered += codes ? held : 0;
        c.covered_f32 += codes ? wide : 0;
    }
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
    return c;
}

static void codes_are_fewer_bytes(void **state)
{
    (void)state;
    const Carried wide = carried("");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const Carried c = carried(forms[i].options);
        const double all = (double)c.all / (double)wide.all;
        const double covered = c.covered_f32 ? (double)c.covered / (double)c.covered_f32 : 1;
        printf("%-70s %7zu bytes, %.4f; of %7zu bytes that are covered %.4f\n", forms[i].options, c.all, all,
               c.covered_f32, covered);
        assert_true(all <= forms[i].all && covered <= forms[i].covered);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_carry_codes_and_scales),
        cmocka_unit_test(codes_are_fewer_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
