/* A step is one step however many micro-batches it is made of, where sums allow it: what follows from equal gradients,
 * codes, scales, moments and the draws that round them, is equal to the byte.
 *
 * Sums allow it where nothing that is added is rounded.  So data are -127/128, 0 and 127/128, the head is ones and stays as it is,
 * the loss has gradients of -1, 0 and 1, and batches are powers of two: whatever is added up is a whole number of 2^-k that f32
 * holds, and products of codes have scales that are powers of two. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "embed/host.h"

enum { BATCH = 8, STEPS = 4, ROOM = 1 << 15, NAME = 64, X = 8, IMAGE = 2 * 4 * 4, TOKENS = 3, WORDS = 12 };

/* A layer, filters and a table side by side, so that no gradient comes through a weight that is codes. */
static const char text[] = "graph @net(%x: f32[?,8], %image: f32[?,2,4,4], %tokens: i64[?,3]) -> (%y) {\n"
                           "    param %fc.weight: f32[32,8] = kaiming(seed=1)\n"
                           "    param %fc.bias: f32[32] = zeros\n"
                           "    param %conv.weight: f32[32,2,3,3] = kaiming(seed=2)\n"
                           "    param %table: f32[12,32] = normal(seed=3)\n"
                           "    param %head: f32[32,1] = ones\n"
                           "    const %one: i64[1] = [1]\n"
                           "    const %places: i64[2] = [2, 3]\n"
                           "    const %share: f32[] = 0.9921875\n"
                           "    %f: f32[?,32] = gemm(%x, %fc.weight, %fc.bias, transB=true)\n"
                           "    %c: f32[?,32,2,2] = conv(%image, %conv.weight)\n"
                           "    %p: f32[?,32] = reduce_mean(%c, %places, keepdims=false)\n"
                           "    %e: f32[?,3,32] = gather(%table, %tokens)\n"
                           "    %s: f32[?,32] = reduce_sum(%e, %one, keepdims=false)\n"
                           "    %fp: f32[?,32] = add(%f, %p)\n"
                           "    %h: f32[?,32] = add(%fp, %s)\n"
                           "    %r: f32[?,32] = relu(%h)\n"
                           "    %z: f32[?,1] = matmul(%r, %head)\n"
                           "    %y: f32[?,1] = mul(%z, %share)\n"
                           "}\n";

#define TABLES " --quant-op op:Gather=w=int8:row:sr:stored"
#define STATES " --optimizer adamw:lr=1e-2,states=8bit,states_min=64"

static const char *const recipes[] = {
    "--optimizer adamw:lr=1e-2",
    "--quant int8-weights" TABLES " --optimizer adamw:lr=1e-2",
    "--quant bf16-weights --quant-op op:Gather=w=bf16:sr:stored --optimizer adamw:lr=1e-2",
    "--quant w=int4:group=2:sr:stored,a=off --optimizer lion:lr=1e-2",
    "--quant w=uint8:row:asym:sr:stored,a=off --optimizer sgd:lr=1e-2,momentum=0.9",
    ("--quant int8-weights" TABLES " --optimizer adamw:lr=1e-2,sticky=true --amp bf16"),
    STATES,
    "--optimizer adamw:lr=1e-2,states=4bit,states_min=64",
    "--optimizer lion:lr=1e-2,states=fp8,states_min=64",
    ("--quant int8-weights" TABLES STATES),
    ("--quant int8-weights" TABLES STATES " --clip-norm 0.25"),
    "--quant int8-matmul,last=off --optimizer adamw:lr=1e-2",
    ("--quant int8-matmul,last=off" STATES),
};

static const int splits[] = { 1, 2, 4, 8 };

/* ---- data ---- */

static float among_three(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)((int)(*state >> 16) % 3 - 1) * 0.9921875f;
}

static void bind(qcc_session *s, unsigned step)
{
    static float x[BATCH * X], image[BATCH * IMAGE], target[BATCH];
    static int64_t tokens[BATCH * TOKENS];
    unsigned state = 77 + step;
    for (int i = 0; i < BATCH * X; i++)
        x[i] = among_three(&state);
    for (int i = 0; i < BATCH * IMAGE; i++)
        image[i] = among_three(&state);
    for (int i = 0; i < BATCH * TOKENS; i++)
        tokens[i] = (int64_t)((unsigned)i * 7 + step) % WORDS;
    for (int i = 0; i < BATCH; i++)
        target[i] = among_three(&state) * 40;
    const qcc_tensor in[] = {
        { sizeof *in, QCC_F32, 2, { BATCH, X }, x, sizeof x },
        { sizeof *in, QCC_F32, 4, { BATCH, 2, 4, 4 }, image, sizeof image },
        { sizeof *in, QCC_I64, 2, { BATCH, TOKENS }, tokens, sizeof tokens },
        { sizeof *in, QCC_F32, 2, { BATCH, 1 }, target, sizeof target },
    };
    static const char *const names[] = { "x", "image", "tokens", "target" };
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        assert_int_equal(qcc_bind(s, names[i], &in[i]), QCC_OK);
}

/* ---- what a run leaves ---- */

typedef struct Left {
    size_t n;
    unsigned char bytes[ROOM];
} Left;

/* All that is stored of the parameters: numbers, codes, scales, zero points, and the same of moments. */
static void keep(const qcc_step *step, qcc_session *s, Left *to)
{
    static const char *const parts[] = {
        "", ".codes", ".scale", ".zero", ".m", ".m.codes", ".m.scale", ".v", ".v.codes", ".v.scale",
    };
    to->n = 0;
    for (size_t i = 0; i < qcc_n_parameters(step); i++)
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            char name[NAME];
            qcc_value_info info = { .size = sizeof info };
            qcc_tensor v = { .size = sizeof v };
            assert_int_equal(qcc_parameter(step, i, &info), QCC_OK);
            snprintf(name, sizeof name, "%s%s", info.name, parts[k]);
            if (qcc_view(s, name, &v) != QCC_OK)
                continue;
            assert_true(to->n + v.bytes <= sizeof to->bytes);
            memcpy(to->bytes + to->n, v.data, v.bytes);
            to->n += v.bytes;
        }
}

/* So many steps of so many micro-batches each. */
static void run(const char *recipe, int split, unsigned steps, Left *to)
{
    Host h = { 0 };
    qcc_model *m;
    qcc_step *step;
    qcc_session *s;
    char words[256];
    qcc_context *cx = open_with(&h);
    qcc_source source = qcc_bytes(text, sizeof text - 1);
    source.name = "net.qir";
    snprintf(words, sizeof words, "--batch %d --accumulate %d --loss l1 --freeze ^head %s", BATCH, split, recipe);
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    if (qcc_compile(m, words, &step) != QCC_OK) {
        print_error("%s: %s\n", words, h.text);
        assert_int_equal(QCC_OK, QCC_INTERNAL);
    }
    assert_int_equal(qcc_start(step, NULL, &s), QCC_OK);
    for (unsigned i = 0; i < steps; i++) {
        bind(s, i);
        assert_int_equal(qcc_run(s, QCC_STEP, NULL), QCC_OK);
    }
    keep(step, s, to);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void splits_come_to_the_same_bytes(void **state)
{
    static Left first, whole, split;
    (void)state;
    for (size_t r = 0; r < sizeof recipes / sizeof *recipes; r++) {
        run(recipes[r], 1, 0, &first);
        run(recipes[r], 1, STEPS, &whole);
        assert_int_equal(first.n, whole.n);
        size_t changed = 0;
        for (size_t i = 0; i < whole.n; i++)
            changed += first.bytes[i] != whole.bytes[i];
        assert_true(changed > whole.n / 4); /* it trains */
        for (size_t k = 1; k < sizeof splits / sizeof *splits; k++) {
            run(recipes[r], splits[k], STEPS, &split);
            if (split.n != whole.n || memcmp(split.bytes, whole.bytes, whole.n) != 0)
                print_error("%s: %d micro-batches end otherwise than one\n", recipes[r], splits[k]);
            assert_int_equal(split.n, whole.n);
            assert_memory_equal(split.bytes, whole.bytes, whole.n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(splits_come_to_the_same_bytes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
