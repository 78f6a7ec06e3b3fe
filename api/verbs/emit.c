/* The model in another form. */
#include <string.h>

#include "api/make/step.h"
#include "api/make/step_view.h"
#include "api/emit/emit.h"
#include "api/emit/emit_quant.h"
#include "api/emit/encoded.h"
#include "api/model/evaluate.h"
#include "api/verbs/verbs.h"
#include "codegen/source/c_source.h"
#include "frontends/onnx/step.h"
#include "frontends/onnx/write.h"
#include "frontends/view/view.h"
#include "ir/text/print.h"
#include "passes/engine/pass.h"

enum { MOST_INLINE_BYTES = 1 << 20 }; /* constants that a stream carries as hex; more stay out of it */

/* What is written: a model, or the step that was made of it. */
typedef struct Emitted {
    const CommandLine *line;
    qcc_model *m;
    Module *module;
    qcc_step *step; /* null: the model */
    bool verbose;
} Emitted;

/* One way to write a model. */
typedef struct Form {
    const char *kind;
    Status (*write)(const Emitted *e, Out *o);
    bool binary;
} Form;

static uint64_t constant_bytes(const Blobs *blobs)
{
    uint64_t n = 0;
    for (size_t i = 0; i < blobs->n; i++) {
        size_t bytes = 0;
        if (type_bytes(blobs->list[i].payload->type, &bytes))
            n += bytes;
    }
    return n;
}

/* Large constants go beside a file; in a stream they are hex while that is readable, else only named. */
static Status write_ir(const Emitted *e, Out *o)
{
    qcc_model *m = e->m;
    Text text;
    Blobs blobs;
    Arena *a = &m->cx->scratch;
    text_open(&text, a);
    blobs_open(&blobs, a);
    TRY(print_module(&text, e->module, &blobs));
    if (o->is_file && blobs.n) {
        TRY(blobs_write(&blobs, &m->ir, arena_printf(a, "%s.safetensors", o->to.path)));
    } else if (blobs.n && constant_bytes(&blobs) <= MOST_INLINE_BYTES) {
        text_open(&text, a);
        TRY(print_module(&text, e->module, NULL));
    } else if (blobs.n) {
        Message *msg = message_new(&m->cx->diag, SEVERITY_NOTE, OK, NOWHERE,
                                   "%zu constants are named only: the text is too large with them", blobs.n);
        message_try(msg, "-o FILE.qir, which keeps them in FILE.qir.safetensors");
        (void)message_send(msg);
    }
    return out_bytes(o, text.p, text.n);
}

static const DimNames *dim_names(Arena *arena, const Value *values, size_t n)
{
    DimNames *names = NEWS(arena, DimNames, n + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(names[i].name, values[i].dims, sizeof names[i].name);
    return names;
}

/* Of a step this is STEP.onnx. */
static Status write_onnx(const Emitted *e, Out *o)
{
    const qcc_model *m = e->m;
    const Sink sink = out_sink(o);
    if (e->step)
        return step_write(e->step, o);
    const SignatureNames names = { dim_names(&m->cx->scratch, m->inputs, m->n_inputs),
                                   dim_names(&m->cx->scratch, m->outputs, m->n_outputs) };
    return onnx_write_named(m->graph, &m->cx->diag, &names, &sink, out_weight_file(o));
}

/* The step alone, as a model that anybody can run: states in, next states out. */
static Status write_flat(const Emitted *e, Out *o)
{
    const Sink sink = out_sink(o);
    return onnx_write_flat(module_graph(e->module, "step"), &e->m->cx->diag, &sink);
}

static Status write_html(const Emitted *e, Out *o)
{
    const Sink sink = out_sink(o);
    ViewFacts facts = step_view(e->m, e->step);
    if (e->step)
        TRY(emit_quantizers(e->m->cx, e->line, o, e->step, &facts));
    return view_page(e->module, &facts, &e->m->cx->diag, &sink);
}

static Status write_dot(const Emitted *e, Out *o)
{
    const Sink sink = out_sink(o);
    const ViewFacts facts = step_view(e->m, e->step);
    return view_dot(e->module, &facts, &e->m->cx->diag, &sink);
}

static Status write_json(const Emitted *e, Out *o)
{
    const Sink sink = out_sink(o);
    ViewFacts facts = step_view(e->m, e->step);
    if (e->step)
        TRY(emit_quantizers(e->m->cx, e->line, o, e->step, &facts));
    return view_json(e->module, &facts, &e->m->cx->diag, &sink);
}

static Status write_plan(const Emitted *e, Out *o)
{
    return emit_programs(e->module, e->step ? NULL : e->m->graph,
                         (EmitPrograms){ .plan = true, .lowering = &e->m->cx->lowering }, o);
}

static Status write_program(const Emitted *e, Out *o)
{
    return emit_programs(e->module, e->step ? NULL : e->m->graph,
                         (EmitPrograms){ .tapes = e->verbose, .lowering = &e->m->cx->lowering }, o);
}

static Status write_cuda(const Emitted *e, Out *o)
{
    return emit_kernels(e->module, e->step ? NULL : e->m->graph, e->line, EMIT_CUDA, o);
}

static Status write_ptx(const Emitted *e, Out *o)
{
    return emit_kernels(e->module, e->step ? NULL : e->m->graph, e->line, EMIT_PTX, o);
}

static Status write_cubin(const Emitted *e, Out *o)
{
    return emit_kernels(e->module, e->step ? NULL : e->m->graph, e->line, EMIT_CUBIN, o);
}

/* A step has scales that are not known yet. */
static Status wants_file(qcc_context *cx)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--emit";
    Message *m =
        message_new(&cx->diag, SEVERITY_ERROR, USAGE, place, "C is made of a model that was exported, not of a step");
    message_try(m, "qcc export STEP --checkpoint PATH -o CODES.onnx; qcc CODES.onnx --batch 1 --emit c");
    return message_send(m);
}

/* Sources are of models that compute on codes, as files of Q/DQ pairs and of operators of integers do when they run. */
static Status write_source(const Emitted *e, Out *o, bool header)
{
    Graph *g = graph_copy(e->m->graph, &e->m->arena);
    const CSourceOptions options = { .name = "model",
                                     .made_by = arena_printf(&e->m->cx->scratch, "qcc %s", qcc_version()),
                                     .header = header };
    Text text;
    text_open(&text, &e->m->cx->scratch);
    if (e->step)
        return wants_file(e->m->cx);
    TRY(pass_run(pass_find("take-integers"), g, NULL));
    TRY(pass_run(pass_find("drop-dead"), g, NULL));
    TRY(c_source_print(&text, g, &options));
    return out_bytes(o, text.p, text.n);
}

static Status write_c(const Emitted *e, Out *o)
{
    return write_source(e, o, false);
}

static Status write_c_header(const Emitted *e, Out *o)
{
    return write_source(e, o, true);
}

/* clang-format off */
static const Form forms[] = {
    { "ir", write_ir, false },     { "onnx", write_onnx, true }, { "onnx-step", write_flat, true },
    { "json", write_json, false }, { "dot", write_dot, false },  { "html", write_html, false },
    { "plan", write_plan, false }, { "program", write_program, false },
    { "c", write_c, false },       { "c-header", write_c_header, false },
    { "cuda", write_cuda, false }, { "ptx", write_ptx, false },   { "cubin", write_cubin, true },
};
/* clang-format on */

static Status no_form(qcc_context *cx, const char *kind)
{
    const char *words[COUNT(forms)];
    for (size_t i = 0; i < COUNT(forms); i++)
        words[i] = forms[i].kind;
    Place place = ON_COMMAND_LINE;
    place.where = "--emit";
    Message *m = message_new(&cx->diag, SEVERITY_ERROR, USAGE, place, "this build does not write '%s'", kind);
    for (size_t i = 0; i < COUNT(words); i++)
        message_try(m, "--emit %s", words[i]);
    return message_send(m);
}

/* An architecture means something where there are kernels. */
static Status check_arch(qcc_context *cx, const CommandLine *line, const Form *form)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--arch";
    if (!option_given(line, OPT_arch) || form->write == write_cuda || form->write == write_ptx ||
        form->write == write_cubin)
        return OK;
    Message *m = message_new(&cx->diag, SEVERITY_ERROR, USAGE, place, "nothing is compiled for %s here",
                             option_text(line, OPT_arch));
    message_try(m, "--emit cuda --arch SM");
    message_try(m, "--emit ptx --arch SM");
    message_try(m, "--emit cubin --arch SM -o FILE.cubin");
    message_try(m, "qcc explain MODEL --kernels --arch SM");
    return message_send(m);
}

/* A step is written where the file holds one, or where the line says something of training. */
static Status write_form(qcc_model *m, const CommandLine *line, const Form *form, Out *o)
{
    Emitted e = { .line = line, .m = m, .module = m->module, .verbose = option_given(line, OPT_verbose) > 0 };
    if (model_is_step(m) || line_wants_step(line) || form->write == write_flat) {
        TRY(step_compile(m, line, &e.step));
        e.module = e.step->module;
    }
    const Status status = form->write(&e, o);
    if (e.step)
        step_close(e.step);
    return status;
}

static Status emit(qcc_model *m, const CommandLine *line, const char *kind, Out *o)
{
    Encoded encoded;
    for (size_t i = 0; i < COUNT(forms); i++) {
        if (strcmp(forms[i].kind, kind) != 0)
            continue;
        TRY(check_arch(m->cx, line, &forms[i]));
        TRY(encoded_open(&encoded, m, line));
        const Status status = write_form(m, line, &forms[i], o);
        encoded_close(&encoded);
        return status;
    }
    return no_form(m->cx, kind);
}

static Status where_to(Command *c, const char *kind)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--emit";
    const bool cubin = strcmp(kind, "cubin") == 0;
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "%s is no text: where to?", kind);
    message_try(m, "qcc %s --emit %s -o FILE.%s (- is standard output)", c->line.paths[0], kind,
                cubin ? "cubin" : "onnx");
    return message_send(m);
}

/* Quantizers are placed in a model, which is trained and deployed as others that arrive with codes. */
static Status wants_emit(Command *c)
{
    Place place = ON_COMMAND_LINE;
    place.where = "--encodings";
    Message *m =
        message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, place, "a model with these quantizers is written first");
    message_try(m, "qcc %s --encodings %s --emit onnx -o CODES.onnx; qcc CODES.onnx",
                c->line.n_paths ? c->line.paths[0] : "MODEL", option_text(&c->line, OPT_encodings));
    return message_send(m);
}

Status command_emit(Command *c)
{
    qcc_model *m;
    const char *kind = option_text(&c->line, OPT_emit);
    TRY(command_wants(c, 1));
    if (!kind && option_given(&c->line, OPT_encodings))
        return wants_emit(c);
    if (!kind)
        return command_compile(c);
    for (size_t i = 0; i < COUNT(forms); i++)
        if (forms[i].binary && strcmp(forms[i].kind, kind) == 0 && !option_text(&c->line, OPT_output_path))
            return where_to(c, kind);
    TRY(command_model(c, 0, &m));
    return emit(m, &c->line, kind, c->out);
}

/* ---- the public call ---- */

typedef struct Emit {
    qcc_model *model;
    const char *kind, *options;
    const qcc_sink *sink;
} Emit;

static Status do_emit(void *arg)
{
    Emit *e = arg;
    qcc_context *cx = e->model->cx;
    CommandLine line;
    Out o;
    cx->diag.file = e->model->file;
    TRY(options_read_text(&cx->diag, &cx->scratch, "qcc_emit", e->options, TEXT_EMITS, &line));
    line = line_join(&cx->scratch, &e->model->line, &line);
    model_guard(e->model);
    TRY(out_open(&o, cx, e->sink));
    return out_close(&o, emit(e->model, &line, e->kind, &o));
}

qcc_status qcc_emit(qcc_model *model, const char *kind, const char *options, const qcc_sink *sink)
{
    Emit e = { model, kind, options, sink };
    if (!model || !kind || !sink)
        return QCC_USAGE;
    return context_call(model->cx, do_emit, &e);
}
