#include <string.h>

#include "api/command.h"
#include "frontends/onnx/export.h"

/* The file's own bytes, what is in training form turned to inference: nothing was trained or quantized. */
static Status export_float(qcc_model *m, Out *o)
{
    if (!m->has_spine) {
        Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE, "was not read from an ONNX file");
        message_try(msg, "qcc %s --emit onnx -o FILE.onnx", m->file);
        return message_send(msg);
    }
    const Sink sink = out_sink(o);
    const ExportEdits nothing = { .path = o->is_file ? o->to.path : NULL };
    return onnx_export(&m->spine, &m->cx->diag, &nothing, &sink);
}

static Status export_for(qcc_model *m, const char *form, Out *o)
{
    if (!form || strcmp(form, "float") == 0)
        return export_float(m, o);
    Place place = ON_COMMAND_LINE;
    place.where = "--for";
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, place, "this build has no %s yet: '%s' needs it",
                               capability_name(NEEDS_QUANT), form);
    message_try(msg, "--for float");
    return message_send(msg);
}

Status command_export(Command *c)
{
    qcc_model *m;
    TRY(command_wants(c, 1));
    if (!option_text(&c->line, OPT_output_path)) {
        Message *msg = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "export: where to?");
        message_try(msg, "qcc export %s -o FILE.onnx", c->line.paths[0]);
        return message_send(msg);
    }
    TRY(command_model(c, 0, &m));
    return export_for(m, option_text(&c->line, OPT_for_), c->out);
}

/* ---- the public call ---- */

typedef struct Export {
    qcc_model *model;
    const char *options;
    const qcc_sink *sink;
} Export;

static Status do_export(void *arg)
{
    Export *e = arg;
    qcc_context *cx = e->model->cx;
    CommandLine line;
    Out o;
    cx->diag.file = e->model->file;
    TRY(options_read_text(&cx->diag, &cx->scratch, "qcc_export", e->options, 1 << TOPIC_EMIT, &line));
    TRY(out_open(&o, cx, e->sink));
    return out_close(&o, export_for(e->model, option_text(&line, OPT_for_), &o));
}

qcc_status qcc_export(qcc_model *model, const char *options, const qcc_sink *sink)
{
    Export e = { model, options, sink };
    if (!model || !sink)
        return QCC_USAGE;
    return context_call(model->cx, do_export, &e);
}
