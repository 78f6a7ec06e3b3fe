#include "fault/world.h"

#include <unistd.h>

/* ---- verbs: models ---- */

static qcc_status do_open(World *w)
{
    const qcc_context_options o = options_of(&w->host);
    qcc_context *cx;
    const qcc_status status = qcc_open(&o, &cx);
    if (status == QCC_OK)
        qcc_close(cx);
    return status;
}

static qcc_status do_read(World *w)
{
    qcc_model *m;
    const qcc_status status = world_read(w, &m);
    if (status == QCC_OK)
        qcc_model_free(m);
    return status;
}

/* Dimensions that are open have that size. */
static qcc_status run_model(World *w, qcc_model *m, int64_t size)
{
    qcc_tensor in[WORLD_MOST_INPUTS], out[WORLD_MOST_INPUTS];
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    const size_t n = qcc_n_inputs(m);
    for (size_t i = 0; i < n; i++) {
        const qcc_status status = i < WORLD_MOST_INPUTS ? qcc_input(m, i, &v) : QCC_INTERNAL;
        if (status != QCC_OK)
            return status;
        in[i] = v.shape;
        in[i].data = w->inputs[i];
        in[i].bytes = v.shape.dtype == QCC_I64 ? 8 : v.shape.dtype == QCC_BOOL ? 1 : 4;
        for (int k = 0; k < in[i].rank; k++) {
            in[i].dims[k] = in[i].dims[k] < 0 ? size : in[i].dims[k];
            in[i].bytes *= (size_t)in[i].dims[k];
        }
    }
    for (size_t i = 0; i < WORLD_MOST_INPUTS; i++)
        out[i].size = sizeof out[i];
    return qcc_run_model(m, in, n, out, qcc_n_outputs(m));
}

static qcc_status do_run_model(World *w)
{
    return run_model(w, w->model, 4);
}

/* One batch after the other, more than a model has programs for at a time. */
static qcc_status run_batches(World *w, qcc_model *m)
{
    static const int64_t batches[] = { 1, 4, 1, 3, 5, 2, 1 };
    qcc_status status = QCC_OK;
    for (size_t i = 0; i < sizeof batches / sizeof *batches && status == QCC_OK; i++)
        status = run_model(w, m, batches[i]);
    return status;
}

static qcc_status do_run_batches(World *w)
{
    qcc_model *m;
    const qcc_source source = world_source(w);
    qcc_status status = qcc_read(w->context, &source, NULL, &m);
    if (status != QCC_OK)
        return status;
    status = run_batches(w, m);
    qcc_model_free(m);
    return status;
}

#define STEP_OPTIONS "--optimizer sgd:lr=1e-2"

static qcc_status emit(World *w, const char *kind, const char *options)
{
    const qcc_sink sink = world_nowhere();
    return qcc_emit(w->model, kind, options, &sink);
}

static qcc_status do_emit_ir(World *w)
{
    return emit(w, "ir", NULL);
}

static qcc_status do_emit_onnx(World *w)
{
    return emit(w, "onnx", NULL);
}

static qcc_status do_emit_json(World *w)
{
    return emit(w, "json", NULL);
}

static qcc_status do_emit_dot(World *w)
{
    return emit(w, "dot", NULL);
}

static qcc_status do_emit_html(World *w)
{
    return emit(w, "html", NULL);
}

static qcc_status do_emit_step(World *w)
{
    return emit(w, "ir", STEP_OPTIONS);
}

static qcc_status do_emit_plan(World *w)
{
    return emit(w, "plan", STEP_OPTIONS);
}

static qcc_status do_emit_program(World *w)
{
    return emit(w, "program", STEP_OPTIONS);
}

static qcc_status do_emit_flat(World *w)
{
    return emit(w, "onnx-step", STEP_OPTIONS);
}

static qcc_status do_emit_file(World *w)
{
    const qcc_sink sink = qcc_to_file(world_path(w, "emitted.onnx"));
    return qcc_emit(w->model, "onnx", NULL, &sink);
}

static qcc_status do_export(World *w)
{
    const qcc_sink sink = world_nowhere();
    const qcc_status status = qcc_export(w->model, NULL, &sink);
    return status == QCC_USAGE && !w->file ? QCC_OK : status; /* text has no file to give back */
}

static qcc_status do_export_narrow(World *w)
{
    const qcc_sink sink = world_nowhere();
    const qcc_status status = qcc_export(w->model, "--dtype bf16 --keep-io '*' --round-constants", &sink);
    return status == QCC_USAGE && !w->file ? QCC_OK : status;
}

/* ---- verbs: steps ---- */

static qcc_status do_compile(World *w)
{
    qcc_step *step;
    const qcc_status status = qcc_compile(w->model, w->options, &step);
    if (status == QCC_OK)
        qcc_step_free(step);
    return status;
}

static qcc_status do_write_step(World *w)
{
    const qcc_sink sink = world_gather(&w->written);
    return qcc_write_step(w->step, &sink);
}

/* STEP.onnx, and the step that is in it. */
static qcc_status do_read_step(World *w)
{
    qcc_model *m;
    qcc_step *step;
    qcc_status status = w->written.n ? QCC_OK : do_write_step(w);
    if (status != QCC_OK)
        return status;
    const qcc_source source = qcc_bytes(w->written.p, w->written.n);
    status = qcc_read(w->context, &source, NULL, &m);
    if (status != QCC_OK)
        return status;
    status = qcc_compile(m, NULL, &step);
    qcc_model_free(m);
    if (status == QCC_OK)
        qcc_step_free(step);
    return status;
}

static qcc_status do_plan(World *w)
{
    qcc_memory m = { .size = sizeof m };
    return qcc_plan(w->step, &m);
}

static qcc_status do_start(World *w)
{
    qcc_session *s;
    qcc_status status = qcc_start(w->step, NULL, &s);
    if (status != QCC_OK)
        return status;
    status = world_bind(w, s);
    qcc_end(s);
    return status;
}

/* ---- verbs: sessions ---- */

static qcc_status do_bind(World *w)
{
    return world_bind(w, w->session);
}

/* Both sessions make a step, so that the scale may move. */
static qcc_status do_run(World *w)
{
    qcc_result r = { .size = sizeof r };
    qcc_status status = qcc_run(w->session, QCC_STEP, &r);
    if (status == QCC_OK && w->scaler)
        status = qcc_scaler_update(w->scaler);
    return status;
}

static qcc_status do_run_parts(World *w)
{
    static const unsigned parts[] = { QCC_FORWARD, QCC_BACKWARD | QCC_ACCUMULATE,
                                      QCC_FORWARD | QCC_BACKWARD | QCC_ACCUMULATE, QCC_UPDATE };
    qcc_status status = QCC_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == QCC_OK; i++)
        status = qcc_run(w->session, parts[i], NULL);
    return status == QCC_OK && w->scaler ? qcc_scaler_update(w->scaler) : status;
}

static qcc_status do_eval(World *w)
{
    return qcc_run(w->session, QCC_EVAL, NULL);
}

static qcc_status do_interrupted(World *w)
{
    qcc_request_stop(w->session);
    const qcc_status status = qcc_run(w->session, QCC_STEP, NULL);
    return status == QCC_INTERRUPTED ? QCC_OK : status;
}

static qcc_status do_abandon(World *w)
{
    qcc_status status = qcc_run(w->session, QCC_FORWARD | QCC_BACKWARD, NULL);
    if (status == QCC_OK)
        status = qcc_unscale(w->session);
    if (status == QCC_OK || status == QCC_ALREADY)
        status = qcc_abandon(w->session);
    return status;
}

static qcc_status do_gradients(World *w)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    qcc_tensor g = { .size = sizeof(qcc_tensor) };
    char name[256];
    qcc_status status = qcc_run(w->session, QCC_FORWARD | QCC_BACKWARD, NULL);
    for (size_t i = 0; status == QCC_OK && i < qcc_n_parameters(w->step); i++) {
        status = qcc_parameter(w->step, i, &v);
        snprintf(name, sizeof name, "grad.%s", v.name);
        if (status == QCC_OK)
            status = qcc_view(w->session, name, &g);
        if (status == QCC_OK)
            status = qcc_put(w->session, name, &g);
    }
    return status == QCC_OK ? qcc_abandon(w->session) : status;
}

static qcc_status put_u64(World *w, const char *name, uint64_t value)
{
    const qcc_tensor t = { .size = sizeof(qcc_tensor), .dtype = QCC_U64, .data = &value, .bytes = sizeof value };
    return qcc_put(w->session, name, &t);
}

static qcc_status do_put(World *w)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    qcc_tensor t = { .size = sizeof(qcc_tensor) };
    qcc_status status = qcc_parameter(w->step, 0, &v);
    if (status == QCC_OK)
        status = qcc_view(w->session, v.name, &t);
    if (status == QCC_OK)
        status = qcc_put(w->session, v.name, &t);
    if (status == QCC_OK)
        status = qcc_view(w->session, "seed", &t);
    if (status == QCC_OK)
        status = put_u64(w, "seed", *(const uint64_t *)t.data);
    if (status != QCC_OK || !w->scaler)
        return status;
    status = qcc_view(w->session, "loss_scale", &t);
    return status == QCC_OK ? qcc_put(w->session, "loss_scale", &t) : status;
}

static qcc_status do_views(World *w)
{
    qcc_tensor t = { .size = sizeof(qcc_tensor) };
    const qcc_status status = qcc_view(w->session, "there is none", &t);
    return status == QCC_USAGE ? qcc_view(w->session, "lr_factor", &t) : status;
}

static qcc_status do_values(World *w)
{
    qcc_value_info v = { .size = sizeof(qcc_value_info) };
    qcc_value *found;
    qcc_tensor t = { .size = sizeof(qcc_tensor) };
    qcc_status status = qcc_parameter(w->step, 0, &v);
    if (status == QCC_OK)
        status = qcc_find(w->session, v.name, &found);
    if (status == QCC_OK)
        status = qcc_view_value(found, &t);
    if (status == QCC_OK)
        status = qcc_put_value(found, &t);
    return status;
}

static qcc_status do_flat(World *w)
{
    static float flat[WORLD_MOST_FLAT];
    const size_t n = qcc_flat_size(w->session);
    if (n > WORLD_MOST_FLAT)
        return QCC_INTERNAL;
    const qcc_status status = qcc_get_flat(w->session, flat, n);
    return status == QCC_OK ? qcc_set_flat(w->session, flat, n) : status;
}

static qcc_status do_property(World *w)
{
    char key[32], value[64];
    const char *back;
    snprintf(key, sizeof key, "key %u", w->round % 3);
    snprintf(value, sizeof value, "%0*u", 1 + (int)(w->round % 40), w->round);
    qcc_status status = qcc_set_property(w->session, key, value);
    if (status == QCC_OK)
        status = qcc_get_property(w->session, key, &back);
    if (status == QCC_OK && strcmp(back, value) != 0)
        return QCC_INTERNAL;
    return status == QCC_OK ? qcc_set_property(w->session, key, NULL) : status;
}

static qcc_status do_save(World *w)
{
    const qcc_sink sink = world_gather(&w->written);
    const qcc_status status = qcc_save(w->session, &sink);
    w->written.n = 0;
    return status;
}

/* A step without a scale keeps what the checkpoint of one with a scale says of it. */
static qcc_status do_load_elsewhere(World *w)
{
    const qcc_source source = qcc_bytes(w->saved.p, w->saved.n);
    qcc_status status = w->plain ? qcc_load(w->plain, &source) : QCC_OK;
    const qcc_sink sink = world_nowhere();
    return status == QCC_OK && w->plain ? qcc_save(w->plain, &sink) : status;
}

static qcc_status do_save_file(World *w)
{
    const qcc_sink sink = qcc_to_file(world_path(w, "state.safetensors"));
    return qcc_save(w->session, &sink);
}

static qcc_status do_load(World *w)
{
    const qcc_source source = qcc_bytes(w->saved.p, w->saved.n);
    return qcc_load(w->session, &source);
}

static qcc_status do_load_file(World *w)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", world_path(w, "state.safetensors"));
    const qcc_source source = qcc_file(path);
    const qcc_status status = access(path, F_OK) == 0 ? QCC_OK : do_save_file(w);
    return status == QCC_OK ? qcc_load(w->session, &source) : status;
}

static qcc_status do_folder(World *w)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", world_path(w, "checkpoints"));
    const qcc_sink sink = qcc_to_file(path);
    const qcc_source source = qcc_file(path);
    const qcc_status status = qcc_save(w->session, &sink);
    return status == QCC_OK ? qcc_load(w->session, &source) : status;
}

static qcc_status do_export_session(World *w)
{
    const qcc_sink sink = world_nowhere();
    return qcc_export_session(w->session, NULL, &sink);
}

static qcc_status do_export_session_narrow(World *w)
{
    const qcc_sink sink = world_nowhere();
    return qcc_export_session(w->session, "--dtype fp16 --keep-io '*' --round-constants", &sink);
}

/* ---- verbs: one scale for several sessions ---- */

static qcc_status do_scaler(World *w)
{
    qcc_scaler *c;
    qcc_session *s;
    qcc_status status = qcc_scaler_open(w->context, 1, &c);
    if (status != QCC_OK || !w->scaler) {
        if (status == QCC_OK)
            qcc_scaler_close(c);
        return status;
    }
    status = qcc_start(w->step, NULL, &s);
    if (status == QCC_OK) {
        status = world_bind(w, s);
        if (status == QCC_OK)
            status = qcc_scaler_join(c, s);
        if (status == QCC_OK)
            status = qcc_run(s, QCC_STEP, NULL);
        if (status == QCC_OK)
            status = qcc_scaler_update(c);
        qcc_end(s);
    }
    qcc_scaler_close(c);
    return status;
}

static qcc_status step_both(World *w)
{
    if (w->scaler)
        (void)!qcc_scaler_update(w->scaler); /* after an update that failed there is one to be made */
    const qcc_status status = qcc_run(w->session, QCC_STEP, NULL);
    return status == QCC_OK ? qcc_run(w->other, QCC_STEP, NULL) : status;
}

static qcc_status do_scaler_update(World *w)
{
    return w->scaler ? qcc_scaler_update(w->scaler) : QCC_OK;
}

static qcc_status freeze(World *w)
{
    return w->scaler ? qcc_freeze_loss_scale(w->session, 1) : QCC_OK;
}

static qcc_status do_freeze(World *w)
{
    return w->scaler ? qcc_freeze_loss_scale(w->session, 0) : QCC_OK;
}

/* ---- verbs that are refused ---- */

static qcc_status expect(qcc_status got, qcc_status wanted)
{
    return got == wanted ? QCC_OK : got == QCC_OK ? QCC_INTERNAL : got;
}

static qcc_status do_bad_model(World *w)
{
    static const char bytes[] = "graph @net(%x: f32[4]) -> (%y) {\n    %y: f32[4] = tanhh(%x)\n}\n";
    qcc_source source = qcc_bytes(bytes, sizeof bytes - 1);
    qcc_model *m;
    source.name = "bad.qir";
    return expect(qcc_read(w->context, &source, NULL, &m), QCC_INVALID);
}

static qcc_status do_bad_options(World *w)
{
    qcc_step *step;
    return expect(qcc_compile(w->model, "--loss nonsense", &step), QCC_USAGE);
}

/* Known to be wrong after most of the work is done. */
static qcc_status do_bad_step(World *w)
{
    qcc_step *step;
    return expect(qcc_compile(w->model, "--optimizer sgd --ema 0.5 --train nothing", &step), QCC_USAGE);
}

static qcc_status do_bad_checkpoint(World *w)
{
    const qcc_source source = qcc_bytes(w->saved.p, w->saved.n - 1);
    return expect(qcc_load(w->session, &source), QCC_INVALID);
}

static qcc_status do_bad_run(World *w)
{
    qcc_session *s;
    qcc_status status = qcc_start(w->step, NULL, &s);
    if (status == QCC_OK) {
        status = expect(qcc_run(s, QCC_STEP, NULL), QCC_USAGE);
        qcc_end(s);
    }
    return status;
}

/* ---- all of them ---- */

const Verb world_verbs[] = {
    { "open", do_open, false },
    { "read", do_read, false },
    { "run_model", do_run_model, false },
    { "run_model at several batches", do_run_batches, false },
    { "emit ir", do_emit_ir, false },
    { "emit onnx", do_emit_onnx, false },
    { "emit json", do_emit_json, false },
    { "emit dot", do_emit_dot, false },
    { "emit html", do_emit_html, false },
    { "emit ir of a step", do_emit_step, false },
    { "emit onnx-step", do_emit_flat, false },
    { "emit plan of a step", do_emit_plan, false },
    { "emit program of a step", do_emit_program, false },
    { "emit to a file", do_emit_file, false },
    { "export", do_export, false },
    { "export --dtype", do_export_narrow, false },
    { "compile", do_compile, false },
    { "write_step", do_write_step, false },
    { "read and compile a step", do_read_step, false },
    { "plan", do_plan, false },
    { "start", do_start, false },
    { "bind", do_bind, false },
    { "run", do_run, true },
    { "run in parts", do_run_parts, true },
    { "run eval", do_eval, true },
    { "run interrupted", do_interrupted, true },
    { "unscale and abandon", do_abandon, true },
    { "view and put gradients", do_gradients, true },
    { "put", do_put, false },
    { "view", do_views, false },
    { "values", do_values, false },
    { "flat", do_flat, false },
    { "properties", do_property, false },
    { "save", do_save, false },
    { "load into another step", do_load_elsewhere, false },
    { "save to a file", do_save_file, false },
    { "load", do_load, false },
    { "load a file", do_load_file, false },
    { "save to and load from a folder", do_folder, false },
    { "export_session", do_export_session, false },
    { "export_session --dtype", do_export_session_narrow, false },
    { "scaler", do_scaler, false },
    { "scaler_update", do_scaler_update, false, step_both },
    { "freeze_loss_scale", do_freeze, false, freeze },
    { "read a bad model", do_bad_model, false },
    { "compile with bad options", do_bad_options, false },
    { "compile what cannot be", do_bad_step, false },
    { "load a bad checkpoint", do_bad_checkpoint, false },
    { "run without inputs", do_bad_run, false },
};

const size_t world_n_verbs = sizeof world_verbs / sizeof *world_verbs;
