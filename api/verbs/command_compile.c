/* compile: MODEL.onnx to STEP.onnx, the default verb. */
#include <string.h>

#include "api/fits/fits.h"
#include "api/model/destinations.h"
#include "api/told/summary.h"
#include "api/train/calibrate.h"
#include "api/verbs/verbs.h"

/* "dir/resnet50.onnx" to "resnet50.step.onnx", in the working directory. */
static const char *default_path(Arena *arena, const char *model)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model, *dot = strrchr(name, '.');
    const size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    return arena_printf(arena, "%.*s.step.onnx", (int)n, name);
}

static const char *next_line(const qcc_step *s, Arena *arena, const char *path)
{
    Text t;
    text_open(&t, arena);
    text_printf(&t, "qcc train %s", path);
    for (size_t i = 0; i < s->n_inputs; i++) {
        const char *name = s->inputs[i].name;
        const bool target = strcmp(name, "target") == 0 || strncmp(name, "target.", 7) == 0;
        text_printf(&t, " --%s %s=%s.npy", target ? "target" : "data", name, name);
    }
    return text_get(&t);
}

static Status write_file(Command *c, qcc_step *s, const char *path)
{
    Out o;
    const qcc_sink sink = qcc_to_file(path);
    TRY(out_open(&o, c->cx, &sink));
    TRY(out_close(&o, step_write(s, &o)));
    const LogExtra fields[] = { { "file", logged_text(path) },
                                { "bytes", logged_int((int64_t)o.bytes) },
                                { "data", o.weight_file.kept ? logged_text(o.weight_file.path) : (LogValue){ 0 } },
                                { "reads", logged_text(out_others(&o)) },
                                { "next", logged_text(next_line(s, &c->cx->scratch, path)) } };
    if (out_is_json(c->out))
        return out_event(c->out, "wrote", fields, COUNT(fields));
    return out_printf(c->out, "wrote %s   next: %s\n", out_told(&o), next_line(s, &c->cx->scratch, path));
}

Status command_compile(Command *c)
{
    qcc_model *m;
    qcc_step *s;
    const char *path = option_text(&c->line, OPT_output_path), *calibrated = NULL;
    TRY(command_wants(c, 1));
    TRY(command_model(c, 0, &m));
    TRY(command_dims(c, m));
    TRY(step_compile(m, &c->line, &s));
    if (!option_given(&c->line, OPT_dry_run))
        TRY(calibrate_step(c, s, &calibrated));
    if (path && strcmp(path, "-") == 0)
        return step_write(s, c->out);
    TRY(summary_tell(c->out, s));
    if (calibrated)
        TRY(out_printf(c->out, "  %-14s %s\n", "calibration", calibrated));
    if (option_given(&c->line, OPT_dry_run))
        TRY(summary_memory(c->out, s));
    if (option_given(&c->line, OPT_memory_limit)) /* it may run elsewhere, where there is more */
        TRY(step_fits(c, s, NULL));
    if (option_given(&c->line, OPT_dry_run))
        return OK;
    if (!path && model_is_step(m))
        return OK;
    if (path)
        return write_file(c, s, path);
    path = default_path(&c->cx->scratch, m->file);
    TRY(destination_add(c->cx, path, "the step"));
    return write_file(c, s, path);
}
