/* The quantized model as others run it: placed again as it was trained, with the weights and scales of a run. */
#include "api/session/export_quant.h"

#include <math.h>
#include <string.h>

#include "api/session/bits_told.h"
#include "api/session/codes_told.h"
#include "base/bytes.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/write.h"
#include "ir/own_names.h"
#include "ir/role.h"
#include "ops/quant/observe.h"
#include "passes/deploy/quant_ends.h"
#include "passes/pipelines.h"
#include "passes/recipe/choices.h"

static bool is_float(const ExportForm *form)
{
    return form->target && strcmp(form->target, "float") == 0;
}

static Status run_pipeline(const char *name, Graph *g, const Recipe *recipe)
{
    const PipelineOptions options = { .pass = { .recipe = recipe } };
    return pipeline_run(pipeline_find(name), g, &options);
}

static const Tensor *value_named(const TrainedStates *states, const char *name)
{
    for (size_t i = 0; i < states->n; i++)
        if (strcmp(states->list[i].name, name) == 0)
            return states->list[i].value;
    return NULL;
}

/* Every state of the graph gets the value that it has in the end. */
static Status put_states(Graph *g, const TrainedStates *states, Diag *d)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *state = g->inputs[i];
        if (state->op != OP_state || is_state(state, STATE_counter)) /* phases are over where it is deployed */
            continue;
        const Tensor *value = value_named(states, state->name);
        Tensor *own = tensor_new(g->arena, state->type);
        if (!value || value->bytes != own->bytes || value->type->dtype != own->type->dtype)
            return fail_as(d, INTERNAL, node_place(state), "%s is no state of the step that was trained", state->name);
        if (own->bytes)
            bytes_copy(own->data, value->data, own->bytes);
        StateAttr *attr = attrs_copy(g->arena, op_of(state)->attrs, state->attr);
        attr->value = payload_of(g->arena, own);
        state->attr = attr;
    }
    return OK;
}

/* Ranges and learned scales that no run has found, each another one: ranges from 0 on, which leave nothing of a
 * Relu. */
static void suppose_states(Graph *g)
{
    int k = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *state = g->inputs[i];
        if (state->op != OP_state || node_role(state).role != STATE_quant || node_role(state).of)
            continue;
        if (strncmp(state->name, BITS_PREFIX, strlen(BITS_PREFIX)) == 0) /* which it begins with */
            continue;
        Tensor *own = tensor_new(g->arena, state->type);
        const bool learned = strncmp(state->name, STEP_SIZE_PREFIX, strlen(STEP_SIZE_PREFIX)) == 0 ||
                             strncmp(state->name, THRESHOLD_PREFIX, strlen(THRESHOLD_PREFIX)) == 0,
                   seen = strncmp(state->name, OBSERVED_PREFIX, strlen(OBSERVED_PREFIX)) == 0,
                   offset = strncmp(state->name, OFFSET_PREFIX, strlen(OFFSET_PREFIX)) == 0;
        const double some = 1 + ++k / 1024.0;
        for (int64_t e = 0; e < tensor_elements(own); e++)
            tensor_set_f64(own, e, learned ? -8 * some : seen ? some / 256 : 0);
        if (!learned && !seen && !offset && tensor_elements(own) == OBSERVED_RANGE) {
            tensor_set_f64(own, OBSERVED_HI, some);
            tensor_set_f64(own, OBSERVED_SEEN, 1);
        }
        StateAttr *attr = attrs_copy(g->arena, op_of(state)->attrs, state->attr);
        attr->value = payload_of(g->arena, own);
        state->attr = attr;
    }
}

static Status import_model(qcc_model *m, Ir *ir, Graph **g)
{
    Module *module;
    const ImportOptions o = { .opset = option_count(&m->line, OPT_opset, 0) };
    TRY(onnx_import(ir, ir->arena, &m->spine, &o, &module));
    *g = module->graphs[0];
    return OK;
}

Status quantized_again(const qcc_step *s, Ir *ir, Arena *arena, Graph **g, struct QuantLedger *ledger)
{
    qcc_model *m = s->model;
    Recipe recipe = s->recipe;
    recipe.choices = NEW(arena, Choices);
    recipe.precision.ledger = NULL;
    recipe.quantization.ledger = ledger;
    TRY(export_has_model(m));
    if (!m->has_spine)
        TRY(model_as_file(m));
    TRY(model_supported(m));
    TRY(import_model(m, ir, g));
    return run_pipeline("quant-model", *g, &recipe);
}

Status export_restore(QuantEnds *ends, Graph *g)
{
    Arena scratch;
    arena_open(&scratch, g->ir->memory);
    const Status status = quant_ends_restore(ends, g, &scratch);
    arena_close(&scratch);
    return status == OK ? pass_run(pass_find("drop-dead"), g, NULL) : status;
}

/* Without quantizers where it is to be floats; without states with supposed ones; `told` (may be null) hears of the codes. */
static Status write_again(const qcc_step *s, const TrainedStates *states, bool as_float, const Sink *sink,
                          WeightFile *weights, Out *told, Arena *arena)
{
    Graph *g;
    Ir ir; /* what is made for the file goes with it */
    qcc_model *m = s->model;
    Recipe recipe = s->recipe;
    Diag *d = &m->cx->diag;
    ir_open(&ir, arena, &ops_table, d);
    ir.limits = m->ir.limits;
    recipe.choices = NEW(arena, Choices);
    recipe.precision.ledger = NULL;
    recipe.quantization.ledger = NULL;
    QuantLedger ledger = { .arena = arena };
    TRY(quantized_again(s, &ir, arena, &g, &ledger));
    if (!as_float)
        TRY(pass_run(pass_find("store-weights"), g, NULL));
    if (states)
        TRY(put_states(g, states, d));
    else
        suppose_states(g);
    if (as_float)
        TRY(pass_run(pass_find("strip-quant"), g, NULL));
    const char *bits = told && states && !as_float ? bits_told(&s->cx->scratch, s, &ledger, g) : NULL;
    const QuantTarget *t = quantization_target(&recipe.quantization); /* not null: it is quantized */
    const DeployedFor to = { .made_for = as_float              ? NULL
                                         : t->text             ? t->like
                                         : !target_is_usual(t) ? t->name
                                                               : NULL,
                             .datapath = as_float ? NULL : t->text,
                             .quants = !as_float && t->quants };
    QuantEnds ends;
    quant_ends_note(&ends, g, arena);
    TRY(run_pipeline("deploy-model", g, &recipe));
    const char *codes =
        told && !to.quants ? codes_told(&s->cx->scratch, s, g) : NULL; /* weights of quants are numbers */
    if (told && (bits || codes))
        told->notes = arena_printf(&s->cx->scratch, "%s%s", codes ? codes : "", bits ? bits : "");
    if (!as_float && t->spells)
        TRY(run_pipeline(t->no_floats ? "spell-fixed" : "spell-operators", g, &recipe));
    if (to.quants)
        TRY(export_restore(&ends, g));
    return onnx_write_deployed(g, d, &m->spine, sink, weights, &to);
}

/* What is placed for one target is not for another. */
static Status check(const qcc_step *s, const ExportForm *form)
{
    const char *made = s->recipe.quantization.target;
    Place place = ON_COMMAND_LINE;
    Diag *d = &s->cx->diag;
    if (form && form->narrows) {
        place.where = "--dtype";
        return fail_as(d, USAGE, place, "a quantized model is f32 where it is not codes");
    }
    if (!form || !form->target || is_float(form) || strcmp(form->target, made) == 0)
        return OK;
    place.where = "--for";
    Message *m =
        message_new(d, SEVERITY_ERROR, USAGE, place, "the step was quantized for %s, not for %s", made, form->target);
    message_try(m, "--for %s", made);
    message_try(m, "qcc train MODEL --quant .. --for %s", form->target);
    return message_send(m);
}

/* Whether the file's own parameters have a place for all that is trained: norms were not folded into others. */
static bool has_places(const qcc_step *s)
{
    const Choices *c = s->recipe.choices;
    for (size_t i = 0; c && i < c->n; i++)
        if (c->list[i].kind == CHOICE_FOLDED)
            return false;
    return c != NULL;
}

bool export_writes_again(const qcc_step *s, const ExportForm *form)
{
    return s->recipe.quantization.spec && !(form && is_float(form) && has_places(s));
}

Status export_again(const qcc_step *s, const ExportForm *form, const TrainedStates *states, Out *o)
{
    Arena arena;
    const Sink sink = out_sink(o);
    TRY(check(s, form));
    TRY(export_has_model(s->model));
    if (!s->model->has_spine)
        TRY(model_as_file(s->model));
    arena_open(&arena, &s->cx->memory);
    const Status status = write_again(s, states, form && is_float(form), &sink, out_weight_file(o), o, &arena);
    arena_close(&arena);
    return status;
}

static Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

Status export_sketch(const qcc_step *s, Text *bytes)
{
    const Sink sink = { append, bytes };
    if (!s->model->has_spine)
        TRY(model_as_file(s->model));
    return write_again(s, NULL, false, &sink, NULL, NULL, bytes->arena);
}
