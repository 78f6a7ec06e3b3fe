/* Two networks that train against each other in fp16, with one loss scale: a generator learns to draw numbers as they
 * are drawn around 3, a critic learns to tell them apart.
 *
 *     cc gan.c $(pkg-config --cflags --libs qcc) -lm && ./a.out
 *
 * The generator's step is the generator with the critic behind it, whose weights stand still there (lr=0) and are handed
 * over after each of its own steps. */
#include <math.h>
#include <qcc/qcc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HALF = 32, BATCH = 2 * HALF, STEPS = 600 };

#define CRITIC                                                                                                         \
    "    param %d1.weight: f32[16,1] = kaiming(seed=1)\n"                                                              \
    "    param %d1.bias: f32[16] = uniform(seed=2)\n"                                                                  \
    "    param %d2.weight: f32[1,16] = kaiming(seed=3)\n"                                                              \
    "    param %d2.bias: f32[1] = zeros\n"                                                                             \
    "    %h: f32[?,16] = gemm(%x, %d1.weight, %d1.bias, transB=true)\n"                                                \
    "    %a: f32[?,16] = leaky_relu(%h)\n"                                                                             \
    "    %logit: f32[?,1] = gemm(%a, %d2.weight, %d2.bias, transB=true)\n"                                             \
    "}\n"
static const char critic_text[] = "graph @critic(%x: f32[?,1]) -> (%logit) {\n" CRITIC;
static const char generator_text[] = "graph @generator(%z: f32[?,4]) -> (%logit, %x) {\n"
                                     "    param %g1.weight: f32[16,4] = kaiming(seed=4)\n"
                                     "    param %g1.bias: f32[16] = zeros\n"
                                     "    param %g2.weight: f32[1,16] = kaiming(seed=5)\n"
                                     "    param %g2.bias: f32[1] = zeros\n"
                                     "    %u: f32[?,16] = gemm(%z, %g1.weight, %g1.bias, transB=true)\n"
                                     "    %v: f32[?,16] = tanh(%u)\n"
                                     "    %x: f32[?,1] = gemm(%v, %g2.weight, %g2.bias, transB=true)\n" CRITIC;

static void check(qcc_status status)
{
    if (status != QCC_OK)
        exit((int)status); /* what went wrong was reported already */
}

static float draw(void) /* around 0, as a bell */
{
    static unsigned state = 1;
    float sum = 0;
    for (int i = 0; i < 6; i++) {
        state = state * 1664525u + 1013904223u;
        sum += (float)(state >> 8) / (1 << 24) - 0.5f;
    }
    return sum;
}

static qcc_session *start(qcc_context *context, const char *text, const char *options)
{
    qcc_source source = qcc_bytes(text, strlen(text));
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    source.name = "gan.qir";
    check(qcc_read(context, &source, "--batch 64", &model));
    check(qcc_compile(model, options, &step));
    check(qcc_start(step, NULL, &session));
    return session;
}

enum { WEIGHTS = 4 };

/* The critic's weights in a session, looked up once: the loop knows no names. */
static void find_weights(qcc_session *session, qcc_value *weights[WEIGHTS])
{
    static const char *const names[WEIGHTS] = { "d1.weight", "d1.bias", "d2.weight", "d2.bias" };
    for (int i = 0; i < WEIGHTS; i++)
        check(qcc_find(session, names[i], &weights[i]));
}

static void hand_over(qcc_value *const from[WEIGHTS], qcc_value *const to[WEIGHTS])
{
    for (int i = 0; i < WEIGHTS; i++) {
        qcc_tensor weight = { .size = sizeof(qcc_tensor) };
        check(qcc_view_value(from[i], &weight));
        check(qcc_put_value(to[i], &weight));
    }
}

int main(void)
{
    static float x[BATCH], z[BATCH][4], is_real[BATCH], wanted[BATCH];
    const qcc_context_options options = { .size = sizeof options, .report = qcc_report_stderr };
    qcc_context *context;
    qcc_scaler *scaler;
    qcc_value *critics[WEIGHTS], *copies[WEIGHTS], *made_up;
    qcc_tensor drawn = { .size = sizeof(qcc_tensor) };
    double mean = 0;
    unsigned long skipped = 0;
    check(qcc_open(&options, &context));
    qcc_session *critic = start(context, critic_text, "--loss bce_logits:logit --optimizer adam:lr=1e-2 --amp fp16");
    qcc_session *generator = start(context, generator_text,
                                   "--loss bce_logits:logit --optimizer adam:lr=1e-2 --group '^d[12]:lr=0' --amp fp16");
    check(qcc_scaler_open(context, 0, &scaler));
    check(qcc_scaler_join(scaler, critic));
    check(qcc_scaler_join(scaler, generator));
    check(qcc_bind(critic, "x", &(qcc_tensor){ sizeof(qcc_tensor), QCC_F32, 2, { BATCH, 1 }, x, sizeof x }));
    check(qcc_bind(critic, "target",
                   &(qcc_tensor){ sizeof(qcc_tensor), QCC_F32, 2, { BATCH, 1 }, is_real, sizeof is_real }));
    check(qcc_bind(generator, "z", &(qcc_tensor){ sizeof(qcc_tensor), QCC_F32, 2, { BATCH, 4 }, z, sizeof z }));
    check(qcc_bind(generator, "target",
                   &(qcc_tensor){ sizeof(qcc_tensor), QCC_F32, 2, { BATCH, 1 }, wanted, sizeof wanted }));
    find_weights(critic, critics);
    find_weights(generator, copies);
    check(qcc_find(generator, "x", &made_up));
    for (int k = 0; k < BATCH; k++)
        wanted[k] = 1; /* the generator wants to be taken for real */
    for (int i = 1; i <= STEPS; i++) {
        qcc_result told = { .size = sizeof told }, made = { .size = sizeof made };
        for (int k = 0; k < BATCH * 4; k++)
            z[k / 4][k % 4] = draw();
        check(qcc_run(generator, QCC_FORWARD, NULL));
        check(qcc_view_value(made_up, &drawn));
        for (int k = 0; k < BATCH; k++) {
            is_real[k] = k < HALF;
            x[k] = k < HALF ? 3 + draw() / 2 : ((const float *)drawn.data)[k];
            mean += i > STEPS - 100 ? ((const float *)drawn.data)[k] / (100.0 * BATCH) : 0;
        }
        check(qcc_run(critic, QCC_STEP, &told));
        hand_over(critics, copies);
        check(qcc_run(generator, QCC_STEP, &made));
        check(qcc_scaler_update(scaler)); /* once for both */
        skipped += !told.applied + !made.applied;
    }
    printf("%s: the numbers that are drawn have the mean %.2f; %lu steps skipped\n",
           fabs(mean - 3) < 0.5 ? "learnt" : "not learnt", mean, skipped);
    qcc_close(context);
    return 0;
}
