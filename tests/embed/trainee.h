/* A small model in training: what the tests of sessions share. */
#ifndef TESTS_EMBED_TRAINEE_H
#define TESTS_EMBED_TRAINEE_H

#include "embed/host.h"

enum { SAMPLES = 8, FEATURES = 4, OUTPUTS = 4, FLAT = 8 * 4 + 8 + 4 * 8 + 4 };

/* With dropout, so that a step depends on seed and number. */
static const char trainee_text[] = "graph @net(%x: f32[?,4]) -> (%logits) {\n"
                                   "    param %w1: f32[8,4] = kaiming(seed=1)\n"
                                   "    param %b1: f32[8] = zeros\n"
                                   "    param %w2: f32[4,8] = kaiming(seed=2)\n"
                                   "    param %b2: f32[4] = zeros\n"
                                   "    %h: f32[?,8] = gemm(%x, %w1, %b1, transB=true)\n"
                                   "    %a: f32[?,8] = tanh(%h)\n"
                                   "    %d: f32[?,8] = dropout(%a)\n"
                                   "    %logits: f32[?,4] = gemm(%d, %w2, %b2, transB=true)\n"
                                   "}\n";

#define TRAINEE_OPTIONS "--loss mse --optimizer adamw:lr=1e-2"

typedef struct Trainee {
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    float x[SAMPLES][FEATURES], target[SAMPLES][OUTPUTS];
} Trainee;

/* The i-th batch; nothing is rounded, so that it is the same in every rounding mode. */
static inline void trainee_fill(Trainee *t, unsigned i)
{
    unsigned state = 12345 + i;
    for (int k = 0; k < SAMPLES; k++) {
        for (int j = 0; j < FEATURES; j++) {
            state = state * 1664525u + 1013904223u;
            t->x[k][j] = (float)(state >> 8) / (1 << 23) - 1;
        }
        for (int j = 0; j < OUTPUTS; j++)
            t->target[k][j] = t->x[k][(j + 1) % FEATURES] / 2;
    }
}

static inline qcc_tensor trainee_tensor(float (*values)[FEATURES])
{
    return (qcc_tensor){ sizeof(qcc_tensor),    QCC_F32, 2,
                         { SAMPLES, FEATURES }, values,  SAMPLES * FEATURES * sizeof(float) };
}

static inline qcc_status trainee_bind(Trainee *t)
{
    const qcc_tensor x = trainee_tensor(t->x), target = trainee_tensor(t->target);
    const qcc_status status = qcc_bind(t->session, "x", &x);
    return status == QCC_OK ? qcc_bind(t->session, "target", &target) : status;
}

static inline qcc_status trainee_try(Trainee *t, qcc_context *cx, const char *options)
{
    qcc_source source = qcc_bytes(trainee_text, sizeof trainee_text - 1);
    source.name = "net.qir";
    *t = (Trainee){ .model = NULL };
    qcc_status status = qcc_read(cx, &source, "--batch 8", &t->model);
    if (status == QCC_OK)
        status = qcc_compile(t->model, options, &t->step);
    if (status == QCC_OK)
        status = qcc_start(t->step, NULL, &t->session);
    return status;
}

/* A session with everything bound that a loss with targets wants. */
static inline void trainee_open(Trainee *t, qcc_context *cx, const char *options)
{
    assert_int_equal(trainee_try(t, cx, options), QCC_OK);
    assert_int_equal(trainee_bind(t), QCC_OK);
}

/* Steps number `from` to `to` - 1. */
static inline void trainee_run(Trainee *t, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        trainee_fill(t, i);
        assert_int_equal(qcc_run(t->session, QCC_STEP, NULL), QCC_OK);
    }
}

static inline void trainee_flat(const Trainee *t, float flat[FLAT])
{
    assert_int_equal(qcc_flat_size(t->session), FLAT);
    assert_int_equal(qcc_get_flat(t->session, flat, FLAT), QCC_OK);
}

/* What the parameters are after `steps` steps of a session of its own. */
static inline void trainee_after(unsigned steps, float flat[FLAT])
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    trainee_run(&t, 0, steps);
    trainee_flat(&t, flat);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* Bytes that a sink gathers, and a source serves. */
typedef struct Bytes {
    unsigned char p[1 << 16];
    size_t n, fail_at; /* this many bytes are taken, or served, and no more; 0: all */
} Bytes;

static inline qcc_status bytes_put(void *user, const void *p, size_t n)
{
    Bytes *b = user;
    if (n > sizeof b->p - b->n || (b->fail_at && b->n + n > b->fail_at))
        return QCC_IO;
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    return QCC_OK;
}

static inline qcc_status bytes_get(void *user, uint64_t offset, void *p, size_t n)
{
    const Bytes *b = user;
    if (offset > b->n || n > b->n - offset || (b->fail_at && offset + n > b->fail_at))
        return QCC_IO;
    memcpy(p, b->p + offset, n);
    return QCC_OK;
}

static inline qcc_sink bytes_sink(Bytes *b)
{
    b->n = 0;
    return (qcc_sink){ .write = bytes_put, .user = b };
}

static inline qcc_source bytes_source(Bytes *b)
{
    return (qcc_source){ .read = bytes_get, .user = b, .size = b->n, .name = "host" };
}

#endif
