/* Any bytes as the file of a training step, STEP.onnx: graphs, options and states of a stranger's. */
#include "fuzz/host.h"

const FuzzForm fuzz_form = FUZZ_WIRE;

static void run(qcc_step *step)
{
    qcc_session *session;
    qcc_memory memory = { .size = sizeof memory };
    if (qcc_plan(step, &memory) == QCC_INTERNAL)
        abort();
    const qcc_status status = qcc_start(step, NULL, &session);
    if (status == QCC_INTERNAL)
        abort();
    if (status == QCC_OK)
        qcc_end(session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    long blocks = 0;
    qcc_context *cx = fuzz_open(&blocks, UINT64_C(256) << 20);
    const qcc_source source = qcc_bytes(data, size);
    qcc_model *model;
    qcc_step *step;
    qcc_status status = qcc_read(cx, &source, NULL, &model);
    if (status == QCC_INTERNAL)
        abort();
    if (status == QCC_OK) {
        status = qcc_compile(model, NULL, &step);
        if (status == QCC_INTERNAL)
            abort();
        if (status == QCC_OK)
            run(step);
    }
    fuzz_close(cx, &blocks);
    return 0;
}
