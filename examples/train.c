/* Trains a small network from a C program: y = sin(x0) * x1, learnt from points that are drawn on the way.
 *
 *     cc train.c $(pkg-config --cflags --libs qcc) -lm && ./a.out mlp.qir trained.onnx
 *
 * The model has an input f32[?,2] and an output f32[?,1]; examples/models/regress.qir is one. */
#include <math.h>
#include <qcc/qcc.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 64, STEPS = 2000 };

static void check(qcc_status status)
{
    if (status != QCC_OK)
        exit((int)status); /* what went wrong was reported already */
}

static float draw(void)
{
    static unsigned state = 1;
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / (1 << 23) - 1; /* in [-1, 1) */
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return fprintf(stderr, "usage: %s MODEL OUT.onnx\n", argv[0]), 2;
    const qcc_context_options options = { .size = sizeof options, .report = qcc_report_stderr };
    const qcc_source source = qcc_file(argv[1]);
    const qcc_sink out = qcc_to_file(argv[2]);
    qcc_context *context;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    check(qcc_open(&options, &context));
    check(qcc_read(context, &source, "--batch 64", &model));
    check(qcc_compile(model, "--loss mse --optimizer adam:lr=5e-3 --schedule cosine:total=2000", &step));
    check(qcc_start(step, NULL, &session));

    static float x[BATCH][2], y[BATCH];
    qcc_value_info input = { .size = sizeof(qcc_value_info) };
    check(qcc_step_input(step, 0, &input));
    const qcc_tensor data = { sizeof data, QCC_F32, 2, { BATCH, 2 }, x, sizeof x };
    const qcc_tensor target = { sizeof target, QCC_F32, 2, { BATCH, 1 }, y, sizeof y };
    check(qcc_bind(session, input.name, &data));
    check(qcc_bind(session, "target", &target));
    for (int i = 1; i <= STEPS; i++) {
        qcc_result result = { .size = sizeof result };
        for (int k = 0; k < BATCH; k++) {
            x[k][0] = 2 * draw();
            x[k][1] = draw();
            y[k] = sinf(x[k][0]) * x[k][1];
        }
        check(qcc_run(session, QCC_STEP, &result));
        if (i % 400 == 0)
            printf("step %d  loss %.6f\n", i, result.loss);
    }
    check(qcc_export_session(session, NULL, &out));
    qcc_close(context);
    return 0;
}
