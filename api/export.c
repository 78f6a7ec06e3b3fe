#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "api/census.h"
#include "api/export.h"
#include "api/words.h"
#include "frontends/onnx/export.h"

/* ---- what is written ---- */

/* A text whose first graph is a step has no model in front that could be deployed. */
static Status has_model(const qcc_model *m)
{
    if (m->has_spine || !module_graph(m->module, "step"))
        return OK;
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE,
                               "is the text of a training step: the model in front of it is not in there");
    message_try(msg, "qcc --export MODEL --checkpoint PATH -o OUT.onnx");
    return message_send(msg);
}

/* The file's own bytes, what is in training form turned to inference: nothing was trained or quantized. */
static Status export_float(qcc_model *m, Out *o)
{
    TRY(has_model(m));
    if (!m->has_spine)
        TRY(model_as_file(m));
    const Sink sink = out_sink(o);
    const ExportEdits nothing = { .path = o->is_file ? o->to.path : NULL };
    return onnx_export(&m->spine, &m->cx->diag, &nothing, &sink);
}

Status export_form(Diag *d, const CommandLine *line)
{
    const char *form = option_text(line, OPT_for_);
    Place place = ON_COMMAND_LINE;
    if (!form || strcmp(form, "float") == 0)
        return OK;
    place.where = "--for";
    Message *msg = message_new(d, SEVERITY_ERROR, USAGE, place, "this build has no %s yet: '%s' needs it",
                               capability_name(NEEDS_QUANT), form);
    message_try(msg, "--for float");
    return message_send(msg);
}

/* ---- with the states of a run ---- */

/* --checkpoint, and --verify, which compares with the graph that trains: both need the step. */
static Status open_step(Command *c, qcc_model *m, Exported *e)
{
    const char *path = option_text(&c->line, OPT_checkpoint);
    if (!path && !option_given(&c->line, OPT_verify))
        return OK;
    TRY(has_model(m));
    TRY(step_compile(m, &c->line, &e->step));
    TRY(session_start(e->step, (uint64_t)option_count(&c->line, OPT_seed, 0), &c->cx->stop, &e->session));
    return path ? session_take(c->cx, e->step, e->session->run, path) : OK;
}

static Status write_model(Command *c, qcc_model *m, const Exported *e, Out *o)
{
    return option_text(&c->line, OPT_checkpoint) ? session_export(e->session, o, e->path) : export_float(m, o);
}

static Status check_casts(Command *c, qcc_model *m)
{
    const int64_t most = option_count(&c->line, OPT_max_casts, INT64_MAX);
    const Census before = census_of(m, &c->cx->scratch);
    if ((int64_t)before.casts <= most)
        return OK;
    Place place = NOWHERE;
    place.where = "--max-casts";
    return fail_as(&c->cx->diag, MISMATCH, place, "the exported model has %zu Cast nodes, and %" PRId64 " are allowed",
                   before.casts, most);
}

/* ---- what is told ---- */

static const char *signature_text(Arena *arena, const qcc_model *m)
{
    Text t;
    text_open(&t, arena);
    for (size_t i = 0; i < m->n_inputs; i++)
        text_printf(&t, "%s%s %s", i ? ", " : "", name_text(arena, m->inputs[i].name), m->inputs[i].text);
    text_add(&t, " -> ");
    for (size_t i = 0; i < m->n_outputs; i++)
        text_printf(&t, "%s%s %s", i ? ", " : "", name_text(arena, m->outputs[i].name), m->outputs[i].text);
    return text_get(&t);
}

static void tell_counts(Text *t, const Census *before, const Census *after, Arena *arena)
{
    const OpCount *list = census_sorted(before, arena);
    bool any = false;
    for (size_t i = 0; i < before->ops.n; i++) {
        const int64_t now = census_count(after, list[i].op);
        if (now == list[i].n)
            continue;
        if (!any)
            text_printf(t, "  %-25s %8s %8s\n", "operator", "before", "after");
        any = true;
        text_printf(t, "  %-25s %8" PRId64 " %8" PRId64 "\n", list[i].op, list[i].n, now);
    }
    if (after->casts)
        text_printf(t, "  %-25s %8zu %8zu\n", "Cast", before->casts, after->casts);
}

static void tell_form(Text *t, const qcc_model *m)
{
    const Onnx__ModelProto *p = m->spine.model;
    text_add(t, "for float");
    for (size_t i = 0; i < p->n_opset_import; i++)
        if (!p->opset_import[i]->domain.len)
            text_printf(t, ", opset %" PRId64, p->opset_import[i]->version);
    text_printf(t, ", IR %" PRId64, p->ir_version);
}

/* The model as its file says it, whatever the line binds. */
static Status read_plain(Command *c, const char *path, qcc_model **m)
{
    const CommandLine plain = { .verb = VERB_export };
    const qcc_source source = { .path = path };
    TRY(model_read(c->cx, &source, &plain, m));
    c->cx->diag.file = c->line.paths[0];
    return OK;
}

static bool binds(const CommandLine *line)
{
    return option_given(line, OPT_batch) || option_given(line, OPT_dim) || option_given(line, OPT_shape) ||
           option_given(line, OPT_constant);
}

/* Reads the file that was written: what is told of it is what is in it. */
static Status tell_export(Command *c, qcc_model *m, const char *path)
{
    Arena *arena = &c->cx->scratch;
    const char *before, *after;
    struct stat there;
    qcc_model *written;
    Text t;
    if (binds(&c->line))
        TRY(read_plain(c, c->line.paths[0], &m));
    TRY(read_plain(c, path, &written));
    before = signature_text(arena, m);
    after = signature_text(arena, written);
    text_open(&t, arena);
    text_printf(&t, "%s   ", path);
    tell_form(&t, written);
    text_printf(&t, ", %s, signature ", bytes_text(arena, stat(path, &there) == 0 ? (uint64_t)there.st_size : 0));
    if (strcmp(before, after) == 0)
        text_printf(&t, "unchanged: %s\n", after);
    else
        text_printf(&t, "changed: %s\n  before %s\n", after, before);
    const Census old = census_of(m, arena), new = census_of(written, arena);
    tell_counts(&t, &old, &new, arena);
    return out_bytes(c->out, t.p, t.n);
}

/* ---- the verb ---- */

static Status where_to(Command *c)
{
    Message *msg = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "export: where to?");
    message_try(msg, "qcc export %s -o FILE.onnx", c->line.paths[0]);
    return message_send(msg);
}

static Status export_to_file(Command *c, qcc_model *m, Exported *e)
{
    Out o;
    const qcc_sink sink = qcc_to_file(e->path);
    TRY(open_step(c, m, e));
    if (option_given(&c->line, OPT_verify))
        TRY(export_verify_data(c, e));
    TRY(out_open(&o, c->cx, &sink));
    TRY(out_close(&o, write_model(c, m, e, &o)));
    TRY(tell_export(c, m, e->path));
    return option_given(&c->line, OPT_verify) ? export_verify(c, e) : OK;
}

Status command_export(Command *c)
{
    qcc_model *m;
    Exported e = { .path = option_text(&c->line, OPT_output_path) };
    TRY(command_wants(c, 1));
    if (!e.path)
        return where_to(c);
    TRY(export_form(&c->cx->diag, &c->line));
    TRY(command_model(c, 0, &m));
    TRY(check_casts(c, m));
    if (strcmp(e.path, "-") != 0)
        return export_to_file(c, m, &e);
    if (option_given(&c->line, OPT_verify))
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--verify reads the file again: -o wants a file");
    e.path = NULL;
    TRY(open_step(c, m, &e));
    return write_model(c, m, &e, c->out);
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
    TRY(export_form(&cx->diag, &line));
    TRY(out_open(&o, cx, e->sink));
    return out_close(&o, export_float(e->model, &o));
}

qcc_status qcc_export(qcc_model *model, const char *options, const qcc_sink *sink)
{
    Export e = { model, options, sink };
    if (!model || !sink)
        return QCC_USAGE;
    return context_call(model->cx, do_export, &e);
}
