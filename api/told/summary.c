/* What compiling decided, a line each, with the option that decides otherwise. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/make/amp_report.h"
#include "api/make/phase_step.h"
#include "api/make/quant_report.h"
#include "api/make/teacher.h"
#include "api/model/census.h"
#include "api/told/memory_told.h"
#include "api/told/summary.h"
#include "passes/recipe/choices.h"
#include "passes/recipe/groups.h"
#include "passes/recipe/optimizer_read.h"

enum { COLUMN = 17, FLAGS = 90 };

/* The names of options that decide otherwise. */
static const char *names_of(Arena *arena, size_t n, const Option *options)
{
    Text t;
    text_open(&t, arena);
    for (size_t i = 0; i < n; i++)
        text_printf(&t, "%s%s", i ? " " : "", option_specs[options[i]].name);
    return text_get(&t);
}

#define NAMES(...) names_of(arena, COUNT(((const Option[]){ __VA_ARGS__ })), (const Option[]){ __VA_ARGS__ })

/* "  loss           what it is                       --loss" */
static Status line(Out *out, Arena *arena, const char *what, const char *text, const char *flags)
{
    Text t;
    text_open(&t, arena);
    text_printf(&t, "  %s", what);
    text_pad(&t, COLUMN);
    text_add(&t, text);
    if (flags) {
        text_char(&t, ' ');
        text_pad(&t, FLAGS);
        text_add(&t, flags);
    }
    text_char(&t, '\n');
    return out_bytes(out, t.p, t.n);
}

/* ", inference form: BatchNorm folded (53), no Dropout" */
static void tell_form(Text *t, const qcc_step *s)
{
    const Census c = census_of(s->model, &s->cx->scratch);
    const size_t folded = exporter_folded_norms(s->model);
    text_printf(t, ", %s form: ", c.training ? "training" : "inference");
    if (c.norms)
        text_printf(t, "%zu BatchNorm", c.norms);
    else
        text_add(t, folded ? "BatchNorm folded" : "no BatchNorm");
    if (folded)
        text_printf(t, " (%zu%s)", folded, c.norms ? " more folded" : "");
    if (c.dropouts)
        text_printf(t, ", %zu Dropout", c.dropouts);
    else
        text_add(t, ", no Dropout");
}

static Status tell_file(Out *out, const qcc_step *s)
{
    Text t;
    const qcc_model *m = s->model;
    const Onnx__ModelProto *p = m->has_spine ? m->spine.model : NULL;
    text_open(&t, &s->cx->scratch);
    text_add(&t, m->file);
    text_add(&t, "  ");
    if (t.n < COLUMN)
        text_pad(&t, COLUMN);
    if (p && p->producer_name.len)
        text_printf(&t, "%.*s%s%.*s, ", (int)p->producer_name.len, (const char *)p->producer_name.data,
                    p->producer_version.len ? " " : "", (int)p->producer_version.len,
                    (const char *)p->producer_version.data);
    for (size_t i = 0; p && i < p->n_opset_import; i++)
        if (!p->opset_import[i]->domain.len)
            text_printf(&t, "opset %" PRId64 ", ", p->opset_import[i]->version);
    text_printf(&t, "%zu nodes", p && p->graph ? p->graph->n_node : graph_count(m->graph));
    tell_form(&t, s);
    text_char(&t, '\n');
    return out_bytes(out, t.p, t.n);
}

static const char *values_text(Arena *arena, const Value *v, size_t n)
{
    Text t;
    text_open(&t, arena);
    for (size_t i = 0; i < n && i < 4; i++)
        text_printf(&t, "%s%s %s", i ? ", " : "", v[i].name, v[i].text);
    if (n > 4)
        text_printf(&t, " and %zu more", n - 4);
    return text_get(&t);
}

static Status tell_signature(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const qcc_model *m = s->model;
    TRY(line(out, arena, "input", values_text(arena, m->inputs, m->n_inputs), NULL));
    return line(out, arena, "output", values_text(arena, m->outputs, m->n_outputs), NULL);
}

/* What the file says of dimension 0, whatever the line binds. */
static bool has_symbolic_batch(const qcc_model *m)
{
    const Type *first = m->n_inputs ? m->inputs[0].type : NULL;
    const Onnx__GraphProto *g = m->has_spine ? m->spine.model->graph : NULL;
    for (size_t i = 0; g && i < g->n_input; i++) {
        const Onnx__TypeProto *t = g->input[i]->type;
        if (!str_equal(str_of(g->input[i]->name), str(m->inputs[0].name)) || !t ||
            t->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !t->tensor_type->shape ||
            !t->tensor_type->shape->n_dim)
            continue;
        return t->tensor_type->shape->dim[0]->value_case != ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    }
    return first && first->kind == TYPE_TENSOR && first->rank > 0 && first->dims[0] < 0;
}

static Status tell_batch(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const qcc_model *m = s->model;
    const bool symbolic = has_symbolic_batch(m);
    if (!s->facts.batch)
        return OK;
    return line(out, arena, "batch",
                arena_printf(arena, "%-11" PRId64 " %s", s->facts.batch,
                             symbolic ? "symbolic in the file and in what you deploy" : "as in the file"),
                NAMES(OPT_batch));
}

static Status tell_losses(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const char *why = s->facts.loss_why;
    return line(out, arena, "loss", why ? arena_printf(arena, "%s: %s", s->facts.loss, why) : s->facts.loss,
                NAMES(OPT_loss));
}

static Status tell_teacher(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    return s->recipe.teacher.file ? line(out, arena, "teacher", step_teacher_words(arena, s), NAMES(OPT_teacher)) : OK;
}

static Status tell_parameters(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const Choices *c = s->recipe.choices;
    int64_t elements = 0, others = 0;
    size_t renamed = 0, vectors = 0, of = 0;
    Text t;
    const size_t n = choices_count(c, CHOICE_TRAINED, &elements), stats = choices_count(c, CHOICE_STATISTIC, &others),
                 tied = choices_count(c, CHOICE_TIED, &others);
    for (size_t i = 0; i < c->n; i++) {
        const Choice *x = &c->list[i];
        of += x->type->kind == TYPE_TENSOR && dtype_is_float(x->type->dtype);
        if (x->kind != CHOICE_TRAINED)
            continue;
        renamed += strcmp(x->file, x->path) != 0;
        vectors += x->type->rank <= 1;
    }
    text_open(&t, arena);
    text_printf(&t, "%zu of %zu, %s: %zu weight%s, %zu vector%s", n, of, count_text(arena, (uint64_t)elements),
                n - vectors, n - vectors == 1 ? "" : "s", vectors, vectors == 1 ? "" : "s");
    if (renamed)
        text_printf(&t, "; %zu shown by path name", renamed);
    if (stats)
        text_printf(&t, "; %zu running statistics", stats);
    if (tied)
        text_printf(&t, "; %zu tied", tied);
    return line(out, arena, "trainable", text_get(&t), NAMES(OPT_train, OPT_freeze));
}

/* How the variance is remembered, where that is not ONNX's way. */
static Status tell_statistics(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    int64_t elements = 0;
    const bool any = choices_count(s->recipe.choices, CHOICE_STATISTIC, &elements) > 0;
    if (!any || !s->recipe.torch_norms || s->recipe.frozen_norms)
        return OK;
    return line(out, arena, "statistics", "the running variance divides by n - 1, as PyTorch does", NAMES(OPT_bn));
}

static Status tell_memory(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const StepMemory m = step_memory(s);
    return line(out, arena, "memory", step_memory_text(arena, &m), NULL);
}

Status summary_memory(Out *out, const qcc_step *s)
{
    Text t;
    const StepMemory m = step_memory(s);
    text_open(&t, &s->cx->scratch);
    if (out_is_json(out)) {
        step_memory_records(&t, &m);
        return out_objects(out, &t);
    }
    step_memory_table(&t, s, &m);
    return out_bytes(out, t.p, t.n);
}

/* The optimizer of all parameters, and of each group what it does to which. */
static Status tell_optimizers(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    TRY(line(out, arena, "optimizer", s->facts.optimizer, NAMES(OPT_optimizer, OPT_lr)));
    for (size_t i = 1; i < s->recipe.n_groups; i++) {
        const OptimizerGroup *group = &s->recipe.groups[i];
        const size_t n = recipe_members(&s->recipe, module_graph(s->module, "step"), group);
        const char *text = arena_printf(arena, "%s: %s, %zu parameter%s", group->selector,
                                        optimizer_text(arena, s->ir->ops, group), n, n == 1 ? "" : "s");
        TRY(line(out, arena, i == 1 ? "groups" : "", text, i == 1 ? NAMES(OPT_group) : NULL));
    }
    return OK;
}

Status summary_tell(Out *out, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    TRY(tell_file(out, s));
    TRY(tell_signature(out, s));
    TRY(tell_batch(out, s));
    TRY(tell_losses(out, s));
    TRY(tell_teacher(out, s));
    if (s->recipe.choices)
        TRY(tell_parameters(out, s));
    if (s->recipe.choices)
        TRY(tell_statistics(out, s));
    TRY(tell_optimizers(out, s));
    TRY(line(out, arena, "precision", amp_report_precision(arena, s),
             s->recipe.precision.on ? NAMES(OPT_amp, OPT_keep_fp32) : NAMES(OPT_amp)));
    if (s->recipe.quantization.spec || s->recipe.quantization.products)
        TRY(line(out, arena, "quantization", quant_report_line(arena, s), NAMES(OPT_quant, OPT_quant_op)));
    if (phase_steps(s))
        TRY(line(out, arena, "phases",
                 arena_printf(arena,
                              "data are floats for %" PRId64 " steps; evaluation quantizes them, as what is deployed",
                              phase_steps(s)),
                 NAMES(OPT_quant)));
    TRY(line(out, arena, "step",
             arena_printf(arena, "%s nodes; %s%s", grouped(arena, (int64_t)s->facts.nodes), amp_report_casts(arena, s),
                          amp_report_kept(arena, s)),
             NULL));
    return tell_memory(out, s);
}
