/* Evaluates a model from C: inputs of ones, the first numbers of every output.
 *
 *     cc run.c -lqcc -o run && ./run model.onnx [MODEL OPTIONS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qcc/qcc.h>

enum { MOST_VALUES = 64 };

/* One in every element type that this example knows; 0 for others. */
static size_t put_one(void *to, qcc_dtype dtype)
{
    const float f = 1;
    const double d = 1;
    const int64_t i = 1;
    switch (dtype) {
    case QCC_F32:
        memcpy(to, &f, sizeof f);
        return sizeof f;
    case QCC_F64:
        memcpy(to, &d, sizeof d);
        return sizeof d;
    case QCC_I64:
        memcpy(to, &i, sizeof i);
        return sizeof i;
    default:
        return 0;
    }
}

/* A tensor of ones of that type; dimensions that are unknown become 1. */
static int fill(const qcc_value_info *info, qcc_tensor *t)
{
    char one[8];
    size_t n = 1;
    const size_t size = put_one(one, info->shape.dtype);
    *t = info->shape;
    for (int i = 0; i < t->rank; i++) {
        t->dims[i] = t->dims[i] < 0 ? 1 : t->dims[i];
        n *= (size_t)t->dims[i];
    }
    t->bytes = n * size;
    t->data = size ? malloc(t->bytes ? t->bytes : 1) : NULL;
    if (!t->data)
        return 0;
    for (size_t i = 0; i < n; i++)
        memcpy((char *)t->data + i * size, one, size);
    return 1;
}

static void print(const char *name, const qcc_tensor *t)
{
    printf("%s %s[", name, qcc_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        printf("%s%lld", i ? "," : "", (long long)t->dims[i]);
    printf("]");
    for (size_t i = 0; t->dtype == QCC_F32 && i < 4 && i < t->bytes / sizeof(float); i++)
        printf(" %g", ((const float *)t->data)[i]);
    printf("\n");
}

static qcc_status run(qcc_model *model)
{
    qcc_tensor in[MOST_VALUES], out[MOST_VALUES];
    qcc_value_info info = { .size = sizeof(qcc_value_info) };
    const size_t n_in = qcc_n_inputs(model), n_out = qcc_n_outputs(model);
    qcc_status status = n_in <= MOST_VALUES && n_out <= MOST_VALUES ? QCC_OK : QCC_UNSUPPORTED;
    size_t filled = 0;

    while (status == QCC_OK && filled < n_in) {
        status = qcc_input(model, filled, &info);
        if (status == QCC_OK && !fill(&info, &in[filled]))
            status = QCC_UNSUPPORTED;
        else
            filled++;
    }
    for (size_t i = 0; status == QCC_OK && i < n_out; i++)
        out[i].size = sizeof out[i];
    if (status == QCC_OK)
        status = qcc_run_model(model, in, n_in, out, n_out);
    for (size_t i = 0; status == QCC_OK && i < n_out; i++) {
        status = qcc_output(model, i, &info);
        if (status == QCC_OK)
            print(info.name, &out[i]);
    }
    while (filled--)
        free(in[filled].data);
    return status;
}

int main(int argc, char **argv)
{
    const qcc_context_options options = { .size = sizeof options, .report = qcc_report_stderr };
    qcc_context *context;
    qcc_model *model;

    if (argc < 2) {
        fprintf(stderr, "usage: run MODEL [OPTIONS]\n");
        return 2;
    }
    qcc_status status = qcc_open(&options, &context);
    if (status != QCC_OK)
        return (int)status;
    const qcc_source source = qcc_file(argv[1]);
    status = qcc_read(context, &source, argc > 2 ? argv[2] : NULL, &model);
    if (status == QCC_OK) {
        status = run(model);
        qcc_model_free(model);
    }
    qcc_close(context);
    return (int)status;
}
