/* From a model and the options of a line to a training step: @step and @eval. */
#include <string.h>

#include "api/hall/out.h"
#include "api/hall/words.h"
#include "api/make/amp_report.h"
#include "api/make/phase_step.h"
#include "api/make/quant_report.h"
#include "api/make/recipe.h"
#include "api/make/step.h"
#include "api/make/teacher.h"
#include "frontends/onnx/step.h"
#include "ir/copy.h"
#include "passes/clean/fold.h"
#include "passes/pipelines.h"
#include "passes/ptq/weigh.h"
#include "passes/recipe/choices.h"
#include "passes/recipe/groups.h"

/* ---- passes ---- */

static Status run_pipeline(qcc_step *s, const char *name, Graph *g)
{
    const PipelineOptions options = {
        .pass = { .recipe = &s->recipe, .exact_casts = s->recipe.precision.exact_casts },
    };
    return pipeline_run(pipeline_find(name), g, &options);
}

static const char *interned(qcc_step *s, const char *name)
{
    return name_of(&s->ir->names, name, strlen(name));
}

/* The graph that sees the ranges of data before there are scales; null where nobody observes. */
static Status build_observer(qcc_step *s, const Graph *g, Graph **observe)
{
    bool any = false;
    for (size_t i = 0; i < g->n_inputs; i++)
        any |= is_state(g->inputs[i], STATE_quant) && !node_role(g->inputs[i]).of;
    *observe = NULL;
    if (!any)
        return OK;
    *observe = graph_copy(g, &s->arena);
    (*observe)->name = interned(s, "observe");
    return run_pipeline(s, "observe-step", *observe);
}

/* Whoever is of integers alone takes a model of them alone: what is not is said before anything is trained, by the model as
 * it would be deployed. */
static Status check_integers(qcc_step *s, const Graph *g)
{
    const QuantTarget *t = quantization_target(&s->recipe.quantization);
    if (!s->recipe.quantization.spec || !t->no_floats)
        return OK;
    Graph *deployed = graph_copy(g, &s->cx->scratch);
    TRY(run_pipeline(s, "deploy-model", deployed));
    return run_pipeline(s, "spell-fixed", deployed);
}

/* The graph that says what quantizers do to the loss; null where nobody asks. */
static Status build_sensitivity(qcc_step *s, const CommandLine *line, const Graph *g, Graph **weigh)
{
    *weigh = NULL;
    if (!option_given(line, OPT_sensitivity) || !s->recipe.quantization.spec)
        return OK;
    *weigh = graph_copy(g, &s->arena);
    (*weigh)->name = interned(s, WEIGH_GRAPH);
    return run_pipeline(s, "sensitivity", *weigh);
}

/* Places quantizers, with which data are floats for some steps: those are steps of another model. */
static Status place_both(qcc_step *s, Graph *g, Graph **early)
{
    const PipelineOptions before = { .pass = { .recipe = &s->recipe }, .stop_after = "open-swish" };
    TRY(pipeline_run(pipeline_find("quant-model"), g, &before));
    *early = graph_copy(g, &s->arena);
    TRY(phase_place(s, *early));
    return run_pipeline(s, "quant-places", g);
}

/* The model as it is to be trained, and the losses that a line says for it; `early` is the one of the steps in which
 * data are floats, null where there are none or nobody asks. */
static Status build_model(qcc_step *s, const CommandLine *line, Graph **model, Graph **early)
{
    Graph *g = NULL;
    TRY(recipe_read(s, line));
    amp_report_open(s);
    quant_report_open(s);
    TRY(step_bind_model(s, line, &g));
    TRY(fold_types(g, &s->cx->scratch)); /* an exporter may compute the axes of a shape */
    if (early)                           /* @eval alone has no teacher */
        TRY(step_read_teacher(s, line, g));
    TRY(recipe_read_losses(s, g, line));
    step_find_whole(s, g, step_batch_of(g));
    *model = g;
    if (early && phase_steps(s))
        return place_both(s, g, early);
    return run_pipeline(s, s->recipe.quantization.spec ? "quant-model" : "train-model", g);
}

/* @eval, of a model that was built: every sample has its weight in the loss. */
static Status finish_eval(qcc_step *s, Graph *g)
{
    const LossSpec *losses = s->recipe.losses;
    s->recipe.losses = recipe_masked(s);
    const Status status = run_pipeline(s, "eval-step", g);
    s->recipe.losses = losses;
    g->name = interned(s, "eval");
    return status;
}

Status step_build_eval(qcc_step *s, const CommandLine *line, Graph **eval)
{
    TRY(build_model(s, line, eval, NULL));
    return finish_eval(s, *eval);
}

/* @eval begins with the codes of @step: they are the same, and there once. */
static void share_codes(const Graph *step, Graph *eval)
{
    for (size_t i = 0; i < eval->n_inputs; i++) {
        Node *n = eval->inputs[i];
        for (size_t k = 0; k < step->n_inputs && n->op == OP_state && (node_stored(n) || node_role(n).of); k++) {
            const Node *same = step->inputs[k];
            if (same->op != OP_state || strcmp(same->name, n->name) != 0 || same->type != n->type)
                continue;
            StateAttr *attr = attrs_copy(eval->arena, op_of(n)->attrs, n->attr);
            attr->value = state_initial(same);
            n->attr = attr;
            break;
        }
    }
}

static Status build_graphs(qcc_step *s, const CommandLine *line)
{
    Graph *g, *eval, *observe, *weigh, *early = NULL;
    TRY(build_model(s, line, &g, &early));
    TRY(recipe_assign_groups(&s->recipe, g, &s->arena));
    TRY(check_integers(s, g));
    eval = graph_copy(g, &s->arena);
    TRY(build_observer(s, g, &observe));
    TRY(build_sensitivity(s, line, g, &weigh));
    const LossSpec *losses = s->recipe.losses;
    if (recipe_keeps_last(line))
        s->recipe.losses = recipe_masked(s);
    Status status = run_pipeline(s, "train-step", g);
    if (status == OK && early)
        status = phase_finish(s, early, g);
    s->recipe.losses = losses;
    TRY(status);
    TRY(finish_eval(s, eval));
    share_codes(g, eval);
    g->name = interned(s, "step");
    s->module = module_new(s->ir, &s->arena);
    module_add(s->module, g);
    module_add(s->module, eval);
    if (observe)
        module_add(s->module, observe);
    if (early)
        module_add(s->module, early);
    if (weigh)
        module_add(s->module, weigh);
    s->facts.batch = step_batch_of(g);
    s->facts.nodes = graph_count(g);
    return quant_report_check(s);
}

/* A file that holds a step already. */
static Status read_step(qcc_step *s, const CommandLine *line)
{
    qcc_model *m = s->model;
    StepNotes notes = { 0 };
    if (m->has_spine) {
        TRY(onnx_read_step(s->ir, &s->arena, &m->spine, &s->module, &notes));
    } else {
        s->module = m->module;
        s->ir = &m->ir;
    }
    TRY(recipe_from_notes(s, &notes));
    TRY(recipe_refuse(s, line));
    s->facts.batch = step_batch_of(module_graph(s->module, "step"));
    s->facts.nodes = graph_count(module_graph(s->module, "step"));
    return OK;
}

bool model_is_step(const qcc_model *m)
{
    return m->has_spine ? onnx_is_step(&m->spine) : module_graph(m->module, "step") != NULL;
}

/* Whether a step changes anything: one that does not is no step, whatever its options say. */
static bool trains(const qcc_step *s)
{
    const Graph *g = module_graph(s->module, "step");
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_state && g->inputs[i]->flags & NODE_TRAINED)
            return true;
    return false;
}

/* One who freezes everything means it: statistics may move, and there is a warning. */
static Status check_trains(qcc_step *s, const CommandLine *line)
{
    const Choices *c = s->recipe.choices;
    const size_t n = c ? c->n : 0;
    if (trains(s))
        return OK;
    if (option_given(line, OPT_freeze))
        return warn(&s->cx->diag, NOWHERE, "no parameter is trained");
    Message *m = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE,
                             n ? "there is nothing to train: none of %zu parameters is chosen"
                               : "there is nothing to train: the model has no parameters",
                             n);
    for (size_t i = 0; i < n; i++)
        message_at(m, "%s: %s", c->list[i].path, c->list[i].reason);
    if (n)
        message_try(m, "--train '%s'", c->list[0].path);
    else
        message_try(m, "torch.onnx.export(.., export_params=True); qcc eval and qcc run need no parameters");
    return message_send(m);
}

/* A teacher computes, too, and its file is not opened again. */
static Status check_teacher(qcc_step *made, const CommandLine *line)
{
    const char *file = made->recipe.teacher.file;
    if (!file || strcmp(file, TEACHER_SELF) == 0)
        return OK;
    Message *m = message_new(
        &made->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
        "--require-amp-fraction: how much of the teacher runs narrow is not known: %s is not opened again", file);
    message_try(m, "%s --require-amp-fraction %s", recipe_compile_line(made, line),
                number_text(&made->cx->scratch, option_real(line, OPT_require_amp, 0)));
    return message_send(m);
}

/* What is required of a step that was made before: it is made again, so that what was decided is known. */
static Status check_made(qcc_step *made, const CommandLine *line)
{
    qcc_step *again;
    if (!option_given(line, OPT_require_amp))
        return OK;
    if (made->facts.silent)
        return fail_as(&made->cx->diag, USAGE, ON_COMMAND_LINE,
                       "--require-amp-fraction: the text of a step does not say how it was made");
    TRY(check_teacher(made, line));
    TRY(step_again(made, "", &again));
    const Status status = amp_report_require(again, line);
    step_close(again);
    return status;
}

Status step_compile(qcc_model *m, const CommandLine *line, qcc_step **step)
{
    qcc_step *s = step_new(m);
    const bool made = model_is_step(m);
    m->cx->diag.file = m->file;
    Status status = made ? OK : model_supported(m);
    if (status == OK)
        status = made ? read_step(s, line) : build_graphs(s, line);
    if (status == OK && !made && (line->verb == VERB_compile || line->verb == VERB_train))
        status = check_trains(s, line);
    if (status == OK)
        status = made ? check_made(s, line) : amp_report_check(s, line);
    if (status == OK && !made)
        status = step_tell_exporter(s);
    if (status != OK) {
        step_drop(s);
        return status;
    }
    step_signature(s);
    step_keep(s);
    *step = s;
    return OK;
}

Status step_again(const qcc_step *made, const char *changes, qcc_step **step)
{
    CommandLine line;
    qcc_step *s = step_new(made->model);
    Status status =
        options_read_text(&s->cx->diag, &s->arena, "options of the step",
                          arena_printf(&s->arena, "%s %s", made->facts.options, changes), TEXT_COMPILES, &line);
    memcpy(s->facts.tables, made->facts.tables, sizeof s->facts.tables);
    s->facts.weights = made->facts.weights;
    s->facts.n_weights = made->facts.n_weights;
    s->facts.recorded = true;
    if (status == OK)
        status = build_graphs(s, &line);
    if (status != OK) {
        step_drop(s);
        return status;
    }
    s->facts.loss_why = made->facts.loss_why;
    step_signature(s);
    step_keep(s);
    *step = s;
    return OK;
}

/* ---- the public calls ---- */

typedef struct Compile {
    qcc_model *model;
    const char *options;
    qcc_step *step;
} Compile;

static Status do_compile(void *arg)
{
    Compile *c = arg;
    qcc_context *cx = c->model->cx;
    CommandLine line;
    cx->diag.file = c->model->file;
    TRY(options_read_text(&cx->diag, &cx->scratch, "qcc_compile", c->options, TEXT_COMPILES, &line));
    line = line_join(&cx->scratch, &c->model->line, &line);
    return step_compile(c->model, &line, &c->step);
}

qcc_status qcc_compile(qcc_model *model, const char *options, qcc_step **step)
{
    Compile c = { model, options, NULL };
    if (!model || !step || model->freed)
        return QCC_USAGE;
    const qcc_status status = context_call(model->cx, do_compile, &c);
    if (status == QCC_OK)
        *step = c.step;
    return status;
}

/* ---- the file ---- */

Status step_write(qcc_step *s, Out *o)
{
    qcc_model *m = s->model;
    Diag *d = &m->cx->diag;
    const Sink sink = out_sink(o);
    StepNotes notes;
    TRY(recipe_to_notes(s, &notes));
    if (!m->has_spine)
        TRY(model_as_file(m));
    return onnx_write_step(&m->spine, s->module, &notes, d, &sink, out_weight_file(o));
}

typedef struct WriteStep {
    qcc_step *step;
    const qcc_sink *sink;
} WriteStep;

static Status do_write(void *arg)
{
    const WriteStep *w = arg;
    Out o;
    w->step->cx->diag.file = w->step->model->file;
    model_guard(w->step->model);
    TRY(out_open(&o, w->step->cx, w->sink));
    return out_close(&o, step_write(w->step, &o));
}

qcc_status qcc_write_step(qcc_step *step, const qcc_sink *sink)
{
    WriteStep w = { step, sink };
    return step && sink ? context_call(step->cx, do_write, &w) : QCC_USAGE;
}
