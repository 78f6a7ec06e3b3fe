/* The calls of a host over a model of a kind: what the command does not go through. */
#include "kinds/host.h"

const char *const host_calls[HOST_CALLS] = { "qcc_run_model", "qcc_bind", "qcc_put", "qcc_view", "qcc_plan" };

enum { MOST_INPUTS = 4, MOST_BYTES = 256 };

static const unsigned char elements_bits[] = { 8, 2, 2, 4, 4, 8, 8,  16, 16, 32, 32,  64, 64,
                                               4, 8, 8, 8, 8, 8, 16, 16, 32, 64, 128, 6,  6 };

/* A tensor of the declared type, of strings too, as a host that knows no better makes it. */
static void fill(const qcc_value_info *v, qcc_tensor *t, void *room)
{
    size_t n = 1;
    *t = v->shape;
    t->rank = t->rank < 0 ? 0 : t->rank;
    for (int i = 0; i < t->rank; i++) {
        t->dims[i] = t->dims[i] < 0 ? 2 : t->dims[i];
        n *= (size_t)t->dims[i];
    }
    t->bytes = (n * elements_bits[t->dtype] + 7) / 8;
    t->data = room;
    memset(room, 0, MOST_BYTES);
    assert_true(t->bytes <= MOST_BYTES);
}

static qcc_status run_model(qcc_model *m)
{
    static unsigned char room[MOST_INPUTS][MOST_BYTES];
    qcc_tensor in[MOST_INPUTS], out[MOST_INPUTS];
    const size_t n = qcc_n_inputs(m);
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    assert_true(n <= MOST_INPUTS && qcc_n_outputs(m) <= MOST_INPUTS);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(qcc_input(m, i, &v), QCC_OK);
        fill(&v, &in[i], room[i]);
    }
    for (size_t i = 0; i < MOST_INPUTS; i++)
        out[i].size = sizeof out[i];
    return qcc_run_model(m, in, n, out, qcc_n_outputs(m));
}

static bool find_value(qcc_model *m, const char *name, qcc_value_info *v)
{
    for (size_t i = 0; i < qcc_n_inputs(m); i++)
        if (qcc_input(m, i, v) == QCC_OK && strcmp(v->name, name) == 0)
            return true;
    for (size_t i = 0; i < qcc_n_outputs(m); i++)
        if (qcc_output(m, i, v) == QCC_OK && strcmp(v->name, name) == 0)
            return true;
    return false;
}

static qcc_status with_session(qcc_model *m, size_t call)
{
    static unsigned char room[MOST_BYTES];
    qcc_step *step = NULL;
    qcc_session *s = NULL;
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    qcc_tensor t = { .size = sizeof(qcc_tensor) };
    qcc_status status = qcc_compile(m, "--loss mse:h", &step);
    if (status == QCC_OK && call == HOST_PLAN)
        return qcc_plan(step, &(qcc_memory){ .size = sizeof(qcc_memory) });
    if (status == QCC_OK)
        status = qcc_start(step, NULL, &s);
    if (status != QCC_OK)
        return status;
    if (call == HOST_VIEW)
        return qcc_view(s, "odd_v", &t);
    if (!find_value(m, "odd_v", &v) && !find_value(m, "odd_o", &v))
        return QCC_OK;
    fill(&v, &t, room);
    return call == HOST_BIND ? qcc_bind(s, "odd_v", &t) : qcc_put(s, "odd_v", &t);
}

int host_call(qcc_context *cx, Kind k, size_t call)
{
    qcc_model *m = NULL;
    Bytes bytes = kind_model(k);
    const qcc_source source = { .bytes = bytes.p, .size = bytes.n, .name = "model.onnx" };
    qcc_status status = qcc_read(cx, &source, NULL, &m);
    if (status == QCC_OK)
        status = call == HOST_RUN ? run_model(m) : with_session(m, call);
    qcc_close(cx);
    free(bytes.p);
    return (int)status;
}
