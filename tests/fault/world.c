#include "fault/world.h"

/* With dropout, so that a step depends on seed and number, and an operator whose meaning depends on values. */
static const char text[] = "graph @net(%x: f32[?,4]) -> (%logits) {\n"
                           "    param %w1: f32[8,4] = kaiming(seed=1)\n"
                           "    param %b1: f32[8] = zeros\n"
                           "    param %w2: f32[4,8] = kaiming(seed=2)\n"
                           "    param %b2: f32[4] = zeros\n"
                           "    %h: f32[?,8] = gemm(%x, %w1, %b1, transB=true)\n"
                           "    %a: f32[?,8] = tanh(%h)\n"
                           "    %d: f32[?,8] = dropout(%a)\n"
                           "    %z: f32[?,4] = gemm(%d, %w2, %b2, transB=true)\n"
                           "    const %axes: i64[1] = [1]\n"
                           "    %norm: f32[?,1] = reduce_log_sum_exp(%z, %axes)\n"
                           "    %logits: f32[?,4] = sub(%z, %norm)\n"
                           "}\n";

/* ---- opening and closing ---- */

qcc_sink world_nowhere(void)
{
    return (qcc_sink){ .write = host_drop };
}

const char *world_path(const World *w, const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    return path;
}

static qcc_status gather(void *user, const void *bytes, size_t n)
{
    WorldBytes *b = user;
    if (n > sizeof b->p - b->n)
        return QCC_IO;
    if (n)
        memcpy(b->p + b->n, bytes, n);
    b->n += n;
    return QCC_OK;
}

qcc_sink world_gather(WorldBytes *b)
{
    b->n = 0;
    return (qcc_sink){ .write = gather, .user = b };
}

qcc_source world_source(const World *w)
{
    qcc_source s = w->file ? qcc_file(w->file) : qcc_bytes(text, sizeof text - 1);
    if (!w->file)
        s.name = "net.qir";
    return s;
}

qcc_status world_read(World *w, qcc_model **m)
{
    const qcc_source source = world_source(w);
    return qcc_read(w->context, &source, "--batch 4", m);
}

qcc_status world_bind(World *w, qcc_session *session)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    for (size_t i = 0; i < qcc_step_n_inputs(w->step); i++) {
        qcc_status status = i < WORLD_MOST_INPUTS ? qcc_step_input(w->step, i, &v) : QCC_INTERNAL;
        if (status != QCC_OK)
            return status;
        v.shape.data = w->inputs[i];
        size_t n = 1;
        for (int k = 0; k < v.shape.rank; k++)
            n *= (size_t)v.shape.dims[k];
        v.shape.bytes = n * (v.shape.dtype == QCC_I64 ? 8 : v.shape.dtype == QCC_BOOL ? 1 : 4);
        if (v.shape.bytes > WORLD_MOST_BYTES)
            return QCC_INTERNAL;
        memset(v.shape.data, 0, v.shape.bytes);
        for (size_t k = 0; v.shape.dtype == QCC_F32 && k < n; k++)
            ((float *)v.shape.data)[k] = (float)((k * 7 + i) % 5) / 4 - 0.5f;
        qcc_value *found;
        status = qcc_find(session, v.name, &found);
        if (status == QCC_OK)
            status = i % 2 ? qcc_bind(session, v.name, &v.shape) : qcc_bind_value(found, &v.shape);
        if (status != QCC_OK)
            return status;
    }
    return QCC_OK;
}

static bool scales(const World *w)
{
    return strstr(w->options, "fp16") != NULL;
}

static qcc_status start(World *w, qcc_session **session)
{
    qcc_status status = qcc_start(w->step, NULL, session);
    if (status == QCC_OK)
        status = world_bind(w, *session);
    if (status == QCC_OK && w->scaler)
        status = qcc_scaler_join(w->scaler, *session);
    return status;
}

static qcc_status start_plain(World *w)
{
    qcc_step *step;
    qcc_status status = qcc_compile(w->model, WORLD_TEXT_OPTIONS " --amp fp16 --loss-scale off", &step);
    if (status != QCC_OK)
        return status;
    status = qcc_start(step, NULL, &w->plain);
    qcc_step_free(step); /* it goes with its session */
    return status;
}

qcc_status world_restart(World *w)
{
    qcc_end(w->session);
    qcc_end(w->other);
    qcc_end(w->plain);
    qcc_scaler_close(w->scaler);
    w->session = w->other = w->plain = NULL;
    w->scaler = NULL;
    qcc_status status = scales(w) ? qcc_scaler_open(w->context, 0, &w->scaler) : QCC_OK;
    if (status == QCC_OK)
        status = start(w, &w->session);
    if (status == QCC_OK)
        status = start(w, &w->other);
    if (status == QCC_OK)
        status = qcc_run(w->session, QCC_STEP, NULL);
    if (status == QCC_OK && w->scaler)
        status = qcc_scaler_update(w->scaler);
    const qcc_sink sink = world_gather(&w->saved);
    if (status == QCC_OK)
        status = qcc_save(w->session, &sink);
    return status == QCC_OK && scales(w) ? start_plain(w) : status;
}

qcc_status world_open(World *w)
{
    const qcc_context_options o = options_of(&w->host);
    w->context = NULL;
    w->model = NULL;
    w->step = NULL;
    w->session = w->other = w->plain = NULL;
    w->scaler = NULL;
    w->round = 0;
    qcc_status status = qcc_open(&o, &w->context);
    if (status == QCC_OK && w->opened)
        w->opened(w->context);
    if (status == QCC_OK)
        status = world_read(w, &w->model);
    if (status == QCC_OK)
        status = qcc_compile(w->model, w->options, &w->step);
    return status == QCC_OK ? world_restart(w) : status;
}

bool world_close(World *w)
{
    qcc_close(w->context);
    w->context = NULL;
    return !w->host.blocks && !w->host.bytes && !w->host.broken;
}

uint64_t world_state(World *w)
{
    static WorldBytes now;
    uint64_t sum = 14695981039346656037u;
    const qcc_sink sink = world_gather(&now);
    if (qcc_save(w->session, &sink) != QCC_OK)
        return 0;
    for (size_t i = 0; i < now.n; i++)
        sum = (sum ^ now.p[i]) * 1099511628211u;
    return sum;
}
