/* Memory that the host refuses: every seed model is read, written in each form and run, once for each block asked for,
 * which is not given, and once with none given from there on.  Each time the answer is NO_MEMORY or all went well, and every block that was given came back. */
#include <glob.h>

#include "support/host.h"

enum { EACH = 200, STRIDE = 7, MOST_BLOCKS = 100000, MOST_VALUES = 8, MOST_BYTES = 4096 };

static qcc_status run(qcc_model *m)
{
    static const _Alignas(64) char zeros[MOST_BYTES];
    qcc_tensor in[MOST_VALUES], out[MOST_VALUES];
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    for (size_t i = 0; i < qcc_n_inputs(m); i++) {
        if (qcc_input(m, i, &v) != QCC_OK)
            return QCC_INTERNAL;
        in[i] = v.shape;
        in[i].bytes = v.shape.dtype == QCC_BOOL ? 1 : v.shape.dtype == QCC_I64 ? 8 : 4;
        for (int k = 0; k < in[i].rank; k++) {
            in[i].dims[k] = in[i].dims[k] < 0 ? 2 : in[i].dims[k];
            in[i].bytes *= (size_t)in[i].dims[k];
        }
        in[i].data = (void *)(uintptr_t)zeros;
        if (in[i].bytes > MOST_BYTES)
            return QCC_INTERNAL;
    }
    for (size_t i = 0; i < MOST_VALUES; i++)
        out[i].size = sizeof out[i];
    return qcc_run_model(m, in, qcc_n_inputs(m), out, qcc_n_outputs(m));
}

/* Some have operators without a form in the type. */
static qcc_status narrow(qcc_model *m)
{
    const qcc_sink sink = { .write = host_drop };
    const qcc_status status = qcc_export(m, "--dtype bf16 --keep-io '*' --round-constants", &sink);
    return status == QCC_UNSUPPORTED ? QCC_OK : status;
}

static qcc_status everything(Host *h, const char *path)
{
    static const char *const kinds[] = { "ir", "onnx", "json", "dot", "html" };
    const qcc_context_options options = options_of(h);
    const qcc_source source = qcc_file(path);
    qcc_context *cx;
    qcc_model *m = NULL;
    qcc_status status = qcc_open(&options, &cx);
    if (status != QCC_OK)
        return status;
    status = qcc_read(cx, &source, NULL, &m);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == QCC_OK; i++)
        status = qcc_emit(m, kinds[i], NULL, &(qcc_sink){ .write = host_drop });
    if (status == QCC_OK)
        status = narrow(m);
    if (status == QCC_OK)
        status = run(m);
    qcc_model_free(m);
    qcc_close(cx);
    return status;
}

static int sweep(const char *path, bool lasts, long *runs)
{
    for (size_t n = 1; n < MOST_BLOCKS; n += n < EACH ? 1 : STRIDE, ++*runs) {
        Host h = { .fail_at = n, .from_then_on = lasts };
        const qcc_status status = everything(&h, path);
        if (h.blocks || h.broken || (status != QCC_OK && status != QCC_NO_MEMORY) || (!h.refused && status != QCC_OK)) {
            printf("%s: block %zu refused%s: %s, %zu blocks are left, %zu came back broken\n", path, n,
                   lasts ? ", and all that follow" : "", qcc_status_name(status), h.blocks, h.broken);
            return 1;
        }
        if (!h.refused)
            return 0;
    }
    printf("%s: has no end\n", path);
    return 1;
}

int main(int argc, char **argv)
{
    char pattern[4096];
    glob_t found = { 0 };
    int failed = 0;
    long runs = 0;
    snprintf(pattern, sizeof pattern, "%s/*.onnx", argc > 1 ? argv[1] : ".");
    glob(pattern, 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++)
        for (int lasts = 0; lasts < 2; lasts++)
            failed += sweep(found.gl_pathv[i], lasts, &runs);
    printf("%zu models, %ld runs, %d failed\n", found.gl_pathc, runs, failed);
    failed += !found.gl_pathc;
    globfree(&found);
    return failed != 0;
}
