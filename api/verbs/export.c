#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/model/census.h"
#include "api/session/export_quant.h"
#include "api/session/weights.h"
#include "api/ptq/ptq.h"
#include "api/train/calibrate.h"
#include "api/verbs/export.h"
#include "api/deployed/fusions.h"
#include "api/verbs/verbs.h"
#include "frontends/onnx/export.h"

/* ---- with the states of a run ---- */

/* A quantized step without a run has seen no data: nobody knows its scales. */
static Status wants_run(Command *c, const qcc_model *m)
{
    const bool is_step = model_is_step(m);
    Message *msg = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE,
                               is_step ? "the step is quantized, and its scales are those of a run: none is named"
                                       : "its data are to be codes, and their ranges are those of a run or of data: "
                                         "none are named");
    message_try(msg, "--checkpoint PATH");
    message_try(msg, "--calibrate FILE, for those that these data have with the weights as they are");
    message_try(msg, is_step ? "--for float" : "--quant w8 or w4g32, for weights alone");
    return message_send(msg);
}

/* The scales of a step that is quantized: those of a run, of the data of --calibrate, or of the step itself, which was
 * calibrated when it was made. */
static Status find_scales(Command *c, const qcc_model *m, Exported *e, const char *checkpoint)
{
    const State *state;
    if (checkpoint && option_given(&c->line, OPT_calibrate))
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--calibrate: the scales are those of --checkpoint");
    if (option_given(&c->line, OPT_calibrate))
        return calibrate_session(c, e->session, &e->ptq);
    if (!checkpoint)
        TRY(calibrate_by_weights(e->session));
    TRY(session_unobserved(e->session->run, &state));
    return state && !checkpoint ? wants_run(c, m) : OK;
}

/* Codes, a run, and --verify, which compares with the graph that trains: they need the step. */
static bool needs_step(const CommandLine *line, const qcc_model *m)
{
    static const Option those[] = { OPT_checkpoint, OPT_verify,      OPT_calibrate, OPT_quant,
                                    OPT_quant_op,   OPT_quant_table, OPT_datapath };
    for (size_t i = 0; i < COUNT(those); i++)
        if (option_given(line, those[i]))
            return true;
    return model_is_step(m);
}

static Status open_step(Command *c, qcc_model *m, Exported *e)
{
    const char *path = option_text(&c->line, OPT_checkpoint);
    if (!needs_step(&c->line, m))
        return OK;
    TRY(export_has_model(m));
    PtqPlan plan;
    TRY(step_compile(m, &c->line, &e->step));
    TRY(ptq_plan(c, e->step, &plan));
    const bool codes = export_writes_again(e->step, &e->form);
    if (!path && !codes && !option_given(&c->line, OPT_verify))
        return OK;
    TRY(session_start(e->step, (uint64_t)option_count(&c->line, OPT_seed, 0), &c->cx->stop, &e->session));
    if (codes)
        TRY(find_scales(c, m, e, path));
    return path ? session_take_final(e->session, path, e->form.weights, &e->weights) : OK;
}

static Status write_model(Command *c, qcc_model *m, const Exported *e, Out *o)
{
    if (option_text(&c->line, OPT_checkpoint) || (e->session && export_writes_again(e->step, &e->form)))
        return session_export(e->session, &e->form, o);
    return export_model(m, &e->form, NULL, o);
}

/* ---- what is told ---- */

static bool is_cast(const char *op)
{
    return strcmp(op, "Cast") == 0 || strcmp(op, "CastLike") == 0;
}

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

/* How operators are counted before and after; `fused` (null: nobody fuses) has what becomes of them then. */
typedef struct Counts {
    const Census *before, *after;
    const Fusions *fused;
    Arena *arena;
    bool any;
} Counts;

static void tell_count(Text *t, Counts *c, const char *op, int64_t before, int64_t after)
{
    const char *note = c->fused ? fusions_note(c->arena, c->fused, op) : NULL;
    if (!c->any)
        text_printf(t, "  %-25s %8s %8s%s\n", "operator", "before", "after",
                    c->fused ? arena_printf(c->arena, "   by %s", c->fused->engine) : "");
    c->any = true;
    text_printf(t, "  %-25s %8" PRId64 " %8" PRId64 "%s%s\n", op, before, after, note ? "   " : "", note ? note : "");
}

/* What changed, or is fused, and the casts whenever there is something to say of them. */
static void tell_counts(Text *t, Counts *c)
{
    const Census *before = c->before, *after = c->after;
    const OpCount *old = census_sorted(before, c->arena), *new = census_sorted(after, c->arena);
    for (size_t i = 0; i < before->ops.n; i++)
        if (!is_cast(old[i].op) &&
            (census_count(after, old[i].op) != old[i].n || (c->fused && fusions_note(c->arena, c->fused, old[i].op))))
            tell_count(t, c, old[i].op, old[i].n, census_count(after, old[i].op));
    for (size_t i = 0; i < after->ops.n; i++)
        if (!is_cast(new[i].op) && !census_count(before, new[i].op))
            tell_count(t, c, new[i].op, 0, new[i].n);
    if (c->any || before->casts || after->casts)
        tell_count(t, c, "Cast", (int64_t)before->casts, (int64_t)after->casts);
}

const char *export_codes_for(const Exported *e)
{
    const bool codes = e->step && e->session && export_writes_again(e->step, &e->form) &&
                       !(e->form.target && strcmp(e->form.target, "float") == 0);
    return codes ? e->step->recipe.quantization.target : NULL;
}

TargetPredictor export_predictor(const Exported *e)
{
    return export_codes_for(e) ? quantization_target(&e->step->recipe.quantization)->predicts : PREDICTS_NOTHING;
}

static void tell_form(Text *t, const qcc_model *m, const Exported *e)
{
    const Onnx__ModelProto *p = m->spine.model;
    const char *codes = export_codes_for(e), *asked = e->form.target;
    text_printf(t, "for %s", codes ? codes : asked ? asked : "float");
    if (e->form.narrows)
        text_printf(t, ", %s", e->form.dtype);
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

static qcc_status count_bytes(void *user, const void *bytes, size_t n)
{
    (void)bytes;
    *(uint64_t *)user += n;
    return QCC_OK;
}

/* How large the file would be with floats. */
static Status float_bytes(Command *c, const Exported *e, uint64_t *n)
{
    Out o;
    ExportForm form = e->form;
    const qcc_sink sink = { .write = count_bytes, .user = n };
    form.target = "float";
    *n = 0;
    TRY(out_open(&o, c->cx, &sink));
    return export_close(&o, session_export(e->session, &form, &o));
}

static Status tell_size(Command *c, Text *t, const Exported *e, const Out *o)
{
    uint64_t floats;
    Arena *arena = &c->cx->scratch;
    text_printf(t, ", %s", bytes_text(arena, o->bytes));
    if (o->is_model && o->weight_file.kept) {
        text_printf(t, " and %s in %s", bytes_text(arena, o->weight_file.at), o->weight_file.path);
        return OK;
    }
    if (!export_codes_for(e))
        return OK;
    TRY(float_bytes(c, e, &floats));
    text_printf(t, " (float %s)", bytes_text(arena, floats));
    return OK;
}

/* Reads the file that was written: what is told of it is what is in it. */
static Status tell_export(Command *c, qcc_model *m, const Out *o, const Exported *e)
{
    Arena *arena = &c->cx->scratch;
    const char *before, *after, *path = o->to.path;
    qcc_model *written;
    const char *words = e->weights;
    Text t;
    if (binds(&c->line))
        TRY(read_plain(c, c->line.paths[0], &m));
    TRY(read_plain(c, path, &written));
    before = signature_text(arena, m);
    after = signature_text(arena, written);
    if (out_is_json(c->out)) {
        const LogExtra fields[] = { { "file", logged_text(path) },
                                    { "bytes", logged_int((int64_t)o->bytes) },
                                    { "data", o->is_model && o->weight_file.kept ? logged_text(o->weight_file.path)
                                                                                 : (LogValue){ 0 } },
                                    { "reads", logged_text(out_others(o)) },
                                    { "signature", logged_text(after) },
                                    { "signature_before", logged_text(before) },
                                    { "weights", logged_text(words) },
                                    { "notes", o->notes ? logged_text(o->notes) : (LogValue){ 0 } } };
        return out_event(c->out, "wrote", fields, COUNT(fields));
    }
    text_open(&t, arena);
    text_printf(&t, "%s   ", path);
    tell_form(&t, written, e);
    TRY(tell_size(c, &t, e, o));
    const char *others = out_others(o);
    if (others)
        text_printf(&t, ", %s", others);
    text_add(&t, ", signature ");
    if (strcmp(before, after) == 0)
        text_printf(&t, "unchanged: %s\n", after);
    else
        text_printf(&t, "changed: %s\n  before %s\n", after, before);
    const Census old = census_of(m, arena), new = census_of(written, arena);
    Fusions fused;
    bool has_pairs = false;
    if (export_predictor(e) != PREDICTS_NOTHING)
        TRY(fusions_of(written, export_predictor(e), arena, &fused, &has_pairs));
    tell_counts(&t, &(Counts){ &old, &new, has_pairs ? &fused : NULL, arena, false });
    if (has_pairs)
        fusions_tell(&t, arena, &fused, false);
    if (e->ptq)
        text_add(&t, e->ptq);
    if (words)
        text_printf(&t, "  %s\n", words);
    if (o->notes)
        text_add(&t, o->notes);
    return out_bytes(c->out, t.p, t.n);
}

/* ---- the verb ---- */

static Status where_to(Command *c)
{
    Message *msg = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "export: where to?");
    message_try(msg, "qcc export %s -o FILE.onnx", c->line.paths[0]);
    return message_send(msg);
}

/* What belongs to --verify alone is said of something else. */
static Status wants_verify(Command *c, const char *option)
{
    Message *msg =
        message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "%s says something of --verify", option);
    message_try(msg, "qcc --export STEP --checkpoint PATH --verify NAME=FILE %s FILE ..", option);
    return message_send(msg);
}

/* A certificate is of codes, a file that is there already of a run. */
static Status check_verify(Command *c, Exported *e)
{
    const bool certifies = option_given(&c->line, OPT_certificate), deployed = option_given(&c->line, OPT_deployed);
    if (!option_given(&c->line, OPT_verify))
        return certifies || deployed ? wants_verify(c, certifies ? "--certificate" : "--deployed") : OK;
    if (deployed && !e->session)
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--deployed: of which run? --checkpoint names it");
    if (certifies && !export_codes_for(e))
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE,
                       "--certificate: there are no codes to compare: the exported file is one of floats");
    return export_verify_data(c, e);
}

static Status export_to_file(Command *c, qcc_model *m, Exported *e)
{
    Out o;
    const qcc_sink sink = qcc_to_file(e->path);
    TRY(open_step(c, m, e));
    TRY(check_verify(c, e));
    if (option_given(&c->line, OPT_deployed))
        return export_verify(c, e);
    TRY(out_open(&o, c->cx, &sink));
    TRY(export_close(&o, write_model(c, m, e, &o)));
    TRY(tell_export(c, m, &o, e));
    return option_given(&c->line, OPT_verify) ? export_verify(c, e) : OK;
}

Status command_export(Command *c)
{
    qcc_model *m;
    Exported e = { .path = option_text(&c->line, OPT_output_path) };
    const char *deployed = option_text(&c->line, OPT_deployed);
    TRY(command_wants(c, 1));
    if (deployed && e.path)
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE,
                       "--deployed: the file is there already: -o has none to write");
    if (deployed)
        e.path = deployed;
    if (!e.path)
        return where_to(c);
    TRY(export_form(c->cx, &c->line, &e.form));
    TRY(weights_want_states(&c->cx->diag, &c->line));
    if (option_given(&c->line, OPT_ptq) && !option_given(&c->line, OPT_calibrate))
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--ptq: by which data? --calibrate FILE names them");
    TRY(command_model(c, 0, &m));
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
    ExportForm form;
    Out o;
    cx->diag.file = e->model->file;
    TRY(options_read_text(&cx->diag, &cx->scratch, "qcc_export", e->options, TEXT_EXPORTS, &line));
    TRY(export_form(cx, &line, &form));
    TRY(weights_want_states(&cx->diag, &line));
    model_guard(e->model);
    TRY(out_open(&o, cx, e->sink));
    return export_close(&o, export_model(e->model, &form, NULL, &o));
}

qcc_status qcc_export(qcc_model *model, const char *options, const qcc_sink *sink)
{
    Export e = { model, options, sink };
    if (!model || !sink)
        return QCC_USAGE;
    return context_call(model->cx, do_export, &e);
}
