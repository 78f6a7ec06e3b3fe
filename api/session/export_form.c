/* export --dtype and --for: the model in one float type, or with its own quantizers in the words of somebody else, from the
 * model as its file says it and the states of a run. */
#include <inttypes.h>
#include <string.h>

#include "api/model/census.h"
#include "api/session/export_form.h"
#include "api/session/export_quant.h"
#include "api/session/weights.h"
#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/narrow.h"
#include "frontends/onnx/write.h"
#include "passes/engine/pass.h"
#include "passes/target/target.h"

/* ---- what the line says ---- */

static void read_kept(Arena *arena, const char *text, NarrowOptions *o)
{
    const char **keep = NEWS(arena, const char *, strlen(text) + 1);
    while (*text) {
        const size_t n = strcspn(text, ",");
        if (n == 1 && *text == '*')
            o->keep_all = true;
        else if (n)
            keep[o->n_keep++] = arena_copy(arena, text, n);
        text += n + (text[n] == ',');
    }
    o->keep = keep;
}

Status export_form(qcc_context *cx, const CommandLine *line, ExportForm *form)
{
    const char *dtype = option_text(line, OPT_dtype), *keep = option_text(line, OPT_keep_io);
    Place place = ON_COMMAND_LINE;
    *form = (ExportForm){ .narrows = dtype && strcmp(dtype, "f32") != 0,
                          .most_casts = option_count(line, OPT_max_casts, INT64_MAX),
                          .dtype = dtype,
                          .target = option_text(line, OPT_for_),
                          .weights = weights_said(line) };
    form->narrow.to = form->narrows && strcmp(dtype, "bf16") == 0 ? BF16 : F16;
    form->narrow.rounds = option_given(line, OPT_round_constants) > 0;
    if (!keep)
        return OK;
    read_kept(&cx->scratch, keep, &form->narrow);
    place.where = "--keep-io";
    return form->narrows ? OK : fail_as(&cx->diag, USAGE, place, "says what stays f32 beside --dtype fp16 or bf16");
}

static Status check_casts(const ExportForm *form, Diag *d, size_t casts)
{
    Place place = NOWHERE;
    place.where = "--max-casts";
    if ((uint64_t)casts <= (uint64_t)form->most_casts)
        return OK;
    return fail_as(d, MISMATCH, place, "the exported model has %zu Cast nodes, and %" PRId64 " are allowed", casts,
                   form->most_casts);
}

Status export_close(Out *o, Status status)
{
    const Status closed = out_close(o, status == MISMATCH ? UNSUPPORTED : status);
    return status == OK ? closed : status;
}

/* ---- the file in another type, or for somebody ---- */

static bool wants_quants(const ExportForm *form)
{
    const QuantTarget *t = form->target ? quant_target(form->target) : NULL;
    return t && t->quants;
}

/* Whether quantizers that the model arrived with become QONNX's operators; a file that has those stays as it is. */
static bool becomes_quants(const qcc_model *m, const ExportForm *form)
{
    const Onnx__ModelProto *p = m->has_spine ? m->spine.model : NULL;
    for (size_t i = 0; p && i < p->n_opset_import; i++)
        if (str_is(str_of(p->opset_import[i]->domain), QONNX_DOMAIN))
            return false;
    return wants_quants(form);
}

static size_t casts_of(Graph *g)
{
    size_t casts = 0;
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        casts += n->op == OP_cast || n->op == OP_cast_like;
    return casts;
}

/* The model as its file says it, nothing bound; training form turned to inference. */
static Status import_plain(qcc_model *m, Ir *ir, Graph **g)
{
    Module *module;
    const ImportOptions o = { .opset = option_count(&m->line, OPT_opset, 0) };
    TRY(onnx_import(ir, ir->arena, &m->spine, &o, &module));
    *g = module->graphs[0];
    return pass_run(pass_find("enter-inference"), *g, NULL);
}

static Status write_anew(qcc_model *m, const ExportForm *form, const TrainedStates *states, const Sink *sink,
                         WeightFile *weight_file, Arena *arena, Heap *heap)
{
    Graph *g;
    Ir ir; /* what is made for the file goes with it */
    Diag *d = &m->cx->diag;
    const bool quants = becomes_quants(m, form);
    ir_open(&ir, arena, &ops_table, d);
    ir.limits = m->ir.limits;
    TRY(model_supported(m));
    TRY(import_plain(m, &ir, &g));
    if (states)
        TRY(onnx_put_states(&m->spine, d, states, g, heap));
    if (form->narrows)
        TRY(onnx_narrow(g, d, &form->narrow));
    TRY(check_casts(form, d, casts_of(g)));
    if (quants) {
        QuantEnds ends;
        quant_ends_note(&ends, g, arena);
        TRY(export_restore(&ends, g));
    }
    return onnx_write_deployed(g, d, &m->spine, sink, weight_file, &(DeployedFor){ .quants = quants });
}

static Status export_anew(qcc_model *m, const ExportForm *form, const TrainedStates *states, Out *o)
{
    Arena arena;
    Heap heap;
    const Sink sink = out_sink(o);
    arena_open(&arena, &m->cx->memory);
    heap_open(&heap, &m->cx->memory);
    const Status status = write_anew(m, form, states, &sink, out_weight_file(o), &arena, &heap);
    heap_close(&heap);
    arena_close(&arena);
    return status;
}

/* ---- any file ---- */

/* A text whose first graph is a step has no model in front that could be deployed. */
Status export_has_model(const qcc_model *m)
{
    if (m->has_spine || !module_graph(m->module, "step"))
        return OK;
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE,
                               "is the text of a training step: the model in front of it is not in there");
    message_try(msg, "qcc --export MODEL --checkpoint PATH -o OUT.onnx");
    return message_send(msg);
}

static bool has_quantizers(qcc_model *m)
{
    for (const Node *n = m->module->graphs[0]->first; n; n = n->next)
        if (op_of(n)->quant.dequantizes)
            return true;
    return false;
}

/* Codes are trained: a model that neither was nor arrived with them has none. */
Status export_for(qcc_model *m, const ExportForm *form)
{
    Place place = ON_COMMAND_LINE;
    if (!form->target || strcmp(form->target, "float") == 0)
        return OK;
    place.where = "--for";
    const bool has = has_quantizers(m);
    if (has && wants_quants(form) && form->narrows)
        return fail_as(&m->cx->diag, USAGE, place, "a quantized model is f32 where it is not codes");
    if (has && wants_quants(form))
        return OK;
    Message *msg = has ? message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, place,
                                     "the model has the quantizers that it arrived with: they stay, or become QONNX's")
                       : message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, place,
                                     "the model is not quantized: nothing of it is for %s", form->target);
    message_try(msg, "--for float");
    message_try(msg, has ? "--for qonnx" : "qcc train MODEL --quant w8a8 .. -o OUT.onnx");
    return message_send(msg);
}

Status export_model(qcc_model *m, const ExportForm *form, const TrainedStates *states, Out *o)
{
    const Sink sink = out_sink(o);
    const ExportEdits nothing = { .weight_file = out_weight_file(o) };
    TRY(export_has_model(m));
    TRY(export_for(m, form));
    if (!m->has_spine)
        TRY(model_as_file(m));
    if (form->narrows || becomes_quants(m, form))
        return export_anew(m, form, states, o);
    TRY(check_casts(form, &m->cx->diag, census_of(m, &m->cx->scratch).casts)); /* edits bring none */
    return states ? onnx_export_states(&m->spine, &m->cx->diag, states, &sink)
                  : onnx_export(&m->spine, &m->cx->diag, &nothing, &sink);
}
