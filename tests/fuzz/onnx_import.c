/* Any bytes as a model, through the library's own door: read, written as text, evaluated on zeros; small limits keep
 * each of these short.  Whatever comes of it, every block goes back. */
#include "fuzz/host.h"

#include <stdbool.h>
#include <stdlib.h>

const FuzzForm fuzz_form = FUZZ_WIRE;

enum { MOST_BYTES = 1 << 16, MOST_VALUES = 16 };

static qcc_status drop(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return QCC_OK;
}

static int element_bytes(qcc_dtype t)
{
    static const int bytes[] = { 1, 1, 1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 1, 1, 1, 1, 2, 2, 4, 8 };
    return t < QCC_STRING && t > QCC_U4 ? bytes[t] : t == QCC_BOOL ? 1 : 0;
}

/* Zeros for an input; false for what is no tensor, smaller than a byte an element, or large. */
static bool zeros(const qcc_model *m, size_t i, const char *data, qcc_tensor *t)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    if (qcc_input(m, i, &v) != QCC_OK || v.shape.rank < 0 || !element_bytes(v.shape.dtype))
        return false;
    *t = v.shape;
    t->bytes = (size_t)element_bytes(t->dtype);
    for (int k = 0; k < t->rank; k++) {
        t->dims[k] = t->dims[k] < 0 ? 2 : t->dims[k];
        if (t->dims[k] > MOST_BYTES || t->bytes * (size_t)t->dims[k] > MOST_BYTES)
            return false;
        t->bytes *= (size_t)t->dims[k];
    }
    t->data = (void *)(uintptr_t)data;
    return t->dtype != QCC_F4E2M1;
}

static void evaluate_on_zeros(qcc_model *m)
{
    static const _Alignas(64) char nothing[MOST_BYTES];
    qcc_tensor in[MOST_VALUES], out[MOST_VALUES];
    const size_t n_in = qcc_n_inputs(m), n_out = qcc_n_outputs(m);
    if (n_in > MOST_VALUES || n_out > MOST_VALUES)
        return;
    for (size_t i = 0; i < n_in; i++)
        if (!zeros(m, i, nothing, &in[i]))
            return;
    for (size_t i = 0; i < MOST_VALUES; i++)
        out[i].size = sizeof out[i];
    if (qcc_run_model(m, in, n_in, out, n_out) == QCC_INTERNAL)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const kinds[] = { "ir", "onnx", "json", "dot" };
    long blocks = 0;
    qcc_context *cx = fuzz_open(&blocks, UINT64_C(1) << 30);
    const qcc_source source = qcc_bytes(data, size);
    qcc_model *m = NULL;
    if (qcc_read(cx, &source, NULL, &m) == QCC_INTERNAL)
        abort();
    for (size_t i = 0; m && i < sizeof kinds / sizeof *kinds; i++)
        if (qcc_emit(m, kinds[i], NULL, &(qcc_sink){ .write = drop }) == QCC_INTERNAL)
            abort();
    if (m)
        evaluate_on_zeros(m);
    qcc_model_free(m);
    fuzz_close(cx, &blocks);
    return 0;
}
