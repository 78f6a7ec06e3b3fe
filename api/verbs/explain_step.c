/* explain of a step: every decision, and what decided it. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/told/memory_told.h"
#include "api/verbs/explain.h"
#include "ir/text/print.h"
#include "ir/role.h"
#include "passes/recipe/groups.h"
#include "passes/recipe/optimizer_read.h"
#include "passes/recipe/schedule.h"
#include "passes/recipe/schedule_read.h"
#include "passes/step/state_blocks.h"

/* ---- loss ---- */

static void tell_losses(Text *t, const qcc_step *s)
{
    text_label(t, "loss");
    text_printf(t, "%s", s->facts.loss);
    if (s->facts.loss_why)
        text_printf(t, ": %s", s->facts.loss_why);
    else if (!s->facts.silent)
        text_add(t, ": --loss says it");
    text_char(t, '\n');
    for (size_t i = 0; i < s->n_targets; i++) {
        const StepTarget *x = &s->targets[i];
        text_label(t, i ? "" : "target");
        text_add(t, name_text(&s->cx->scratch, x->input));
        if (x->classes)
            text_printf(t, ": classes 0..%" PRId64 " on axis %d", x->classes - 1, x->axis);
        if (x->ignores)
            text_printf(t, ", %" PRId64 " does not count", x->ignored);
        if (x->output)
            text_printf(t, "; compared with %s", name_text(&s->cx->scratch, x->output));
        text_char(t, '\n');
    }
}

/* ---- optimizer ---- */

/* How many parameters of a group have states of f32 although it asks for fewer bits. */
static size_t wide_states(const qcc_step *s, const OptimizerGroup *group)
{
    const Graph *g = module_graph(s->module, "step");
    size_t n = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *x = g->inputs[i];
        DType code;
        int64_t block;
        n += x->op == OP_state && x->flags & NODE_TRAINED && recipe_group(&s->recipe, x) == group &&
             !state_codes_of(group, x, &code, &block);
    }
    return n;
}

static void tell_wide_states(Text *t, const qcc_step *s, const OptimizerGroup *group)
{
    const size_t n = group->states == STATES_F32 ? 0 : wide_states(s, group);
    const int64_t least = group->states_min ? group->states_min : STATES_LEAST;
    if (!n)
        return;
    text_label(t, "");
    text_printf(t, "states of %zu parameter%s stay f32: fewer than %" PRId64 " elements\n", n, n == 1 ? "" : "s",
                least);
}

static void tell_optimizer(Text *t, const qcc_step *s)
{
    const Recipe *r = &s->recipe;
    for (size_t i = 0; i < r->n_groups; i++) {
        const size_t n = recipe_members(r, module_graph(s->module, "step"), &r->groups[i]);
        text_label(t, i ? "" : "optimizer");
        text_printf(t, "%s for %zu parameter%s", optimizer_text(&s->cx->scratch, s->ir->ops, &r->groups[i]), n,
                    n == 1 ? "" : "s");
        if (r->groups[i].selector)
            text_printf(t, " that --group '%s' takes", r->groups[i].selector);
        if (r->groups[i].spares_vectors)
            text_add(t, ", no decay on those of rank 0 and 1");
        text_char(t, '\n');
        tell_wide_states(t, s, &r->groups[i]);
    }
}

void explain_group(Text *t, const qcc_step *s, const char *name)
{
    const Graph *g = module_graph(s->module, "step");
    for (size_t i = 0; i < g->n_inputs; i++) {
        if (!g->inputs[i]->name || strcmp(g->inputs[i]->name, name) != 0)
            continue;
        const OptimizerGroup *group = recipe_group(&s->recipe, g->inputs[i]);
        text_add(t, optimizer_text(&s->cx->scratch, s->ir->ops, group));
        if (group->selector)
            text_printf(t, ", of --group '%s'", group->selector);
        if (group_spares(group, g->inputs[i]))
            text_add(t, ", no decay");
    }
}

static void tell_schedule(Text *t, const qcc_step *s)
{
    const Schedule *x = &s->recipe.schedule;
    Arena *arena = &s->cx->scratch;
    text_label(t, "schedule");
    text_add(t, schedule_kind((size_t)x->kind));
    if (x->kind == SCHEDULE_STEP)
        text_printf(t, ", times %s every %" PRId64 " steps", number_text(arena, x->factor), x->every);
    if (x->n_at)
        text_printf(t, ", times %s after step", number_text(arena, x->factor));
    for (size_t i = 0; i < x->n_at; i++)
        text_printf(t, "%s %" PRId64, i ? "," : "", x->at[i]);
    if (x->warmup_ratio > 0)
        text_printf(t, ", warm-up over %s of the steps", number_text(arena, x->warmup_ratio));
    else if (x->warmup)
        text_printf(t, ", warm-up over %" PRId64 " steps", x->warmup);
    if (schedule_has_end(x) && x->total)
        text_printf(t, ", to step %" PRId64, x->total);
    else if (schedule_has_end(x))
        text_add(t, ", to the last step of the run");
    text_add(t, "; times qcc.lr_factor\n");
}

/* What is done to gradients and weights beside. */
static void tell_extras(Text *t, const qcc_step *s)
{
    const Recipe *r = &s->recipe;
    Arena *arena = &s->cx->scratch;
    if (r->clip_norm > 0) {
        text_label(t, "clip");
        text_printf(t, "norm of all gradients %s\n", number_text(arena, r->clip_norm));
    }
    if (r->clip_value > 0) {
        text_label(t, "clip");
        text_printf(t, "every gradient %s\n", number_text(arena, r->clip_value));
    }
    if (r->accumulate > 1) {
        text_label(t, "accumulate");
        text_printf(t, "%" PRId64 " micro-batches a step\n", r->accumulate);
    }
    if (r->ema > 0) {
        text_label(t, "average");
        text_printf(t, "decay %s, deployed in place of the weights\n", number_text(arena, r->ema));
    }
    text_label(t, "modes");
    text_printf(t, "batch normalization %s, dropout %s\n",
                r->frozen_norms  ? "frozen (--bn)"
                : r->torch_norms ? "learns its statistics, the variance by n - 1 as PyTorch (--bn)"
                                 : "learns its statistics",
                r->no_dropout ? "off (--dropout)" : "on");
}

/* ---- parameters ---- */

const char *choice_word(ChoiceKind kind)
{
    static const char *const words[] = { "trained", "statistic", "tied", "constant", "folded" };
    return words[kind];
}

static void tell_choices(Text *t, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const Choices *c = s->recipe.choices;
    text_label(t, "choice");
    for (int k = CHOICE_TRAINED; k <= CHOICE_FOLDED; k++) {
        const size_t n = choices_count(c, (ChoiceKind)k, NULL);
        if (n || k != CHOICE_FOLDED)
            text_printf(t, "%s%zu %s", k ? ", " : "", n, choice_word((ChoiceKind)k));
    }
    text_char(t, '\n');
    for (size_t i = 0; i < c->n; i++) {
        const Choice *x = &c->list[i];
        text_label(t, "");
        text_printf(t, "%-9s  %s %s", choice_word(x->kind), name_text(arena, x->path), type_text(arena, x->type));
        if (x->reason)
            text_printf(t, ": %s", x->reason);
        if (x->tied_to)
            text_printf(t, "; %s stands for it%s", name_text(arena, x->tied_to), x->transposed ? ", transposed" : "");
        if (strcmp(x->path, x->file) != 0)
            text_printf(t, "; in the file %s", name_text(arena, x->file));
        text_char(t, '\n');
    }
}

/* Of a step that came as text: what is marked there. */
static void tell_states(Text *t, const qcc_step *s)
{
    const Graph *g = module_graph(s->module, "step");
    bool any = false;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (n->op != OP_state)
            continue;
        text_label(t, any ? "" : "states");
        any = true;
        text_printf(t, "%-9s  %s %s\n",
                    is_state(n, STATE_shadow) ? "shadow"
                    : n->flags & NODE_TRAINED ? "trained"
                                              : "kept",
                    name_text(&s->cx->scratch, n->name), type_text(&s->cx->scratch, n->type));
    }
}

/* ---- size ---- */

typedef struct NodeCounts {
    size_t all, backward, update;
} NodeCounts;

static NodeCounts nodes_by_side(Graph *g)
{
    NodeCounts c = { 0 };
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (op_of(n)->structural)
            continue;
        c.all++;
        c.backward += (n->flags & NODE_BACKWARD) != 0 && !(n->flags & NODE_UPDATE);
        c.update += (n->flags & NODE_UPDATE) != 0;
    }
    return c;
}

static void tell_size(Text *t, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    Graph *g = module_graph(s->module, "step");
    const NodeCounts c = nodes_by_side(g);
    text_label(t, "step");
    text_printf(t, "%zu nodes: forward %zu, backward %zu, update %zu\n", c.all, c.all - c.backward - c.update,
                c.backward, c.update);
    const StepMemory m = step_memory(s);
    text_label(t, "memory");
    text_printf(t, "%s\n", step_memory_text(arena, &m));
}

/* ---- records ---- */

static void choice_records(Text *t, const qcc_step *s)
{
    const Choices *c = s->recipe.choices;
    for (size_t i = 0; c && i < c->n; i++) {
        const Choice *x = &c->list[i];
        log_record(t, "choice", { "name", logged_text(x->path) }, { "kind", logged_text(choice_word(x->kind)) },
                   { "type", logged_text(type_text(&s->cx->scratch, x->type)) }, { "reason", logged_text(x->reason) },
                   { "tied_to", logged_text(x->tied_to) },
                   { "in_file", logged_text(strcmp(x->path, x->file) ? x->file : NULL) });
    }
}

static void state_records(Text *t, const qcc_step *s)
{
    const Graph *g = module_graph(s->module, "step");
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (n->op != OP_state)
            continue;
        const RoleMark mark = node_role(n);
        log_record(t, "state", { "name", logged_text(n->name) },
                   { "role", logged_text(role_words(ROLES_OF_STATES)[mark.role]) }, { "of", logged_text(mark.of) },
                   { "type", logged_text(type_text(&s->cx->scratch, n->type)) },
                   { "trained", logged_flag((n->flags & NODE_TRAINED) != 0) });
    }
}

void explain_step_records(Text *t, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    Graph *g = module_graph(s->module, "step");
    const NodeCounts c = nodes_by_side(g);
    const StepMemory f = step_memory(s);
    log_record(
        t, "training", { "made", logged_flag(model_is_step(s->model)) },
        { "batch", s->facts.batch ? logged_int(s->facts.batch) : logged_text(NULL) },
        { "loss", logged_text(s->facts.loss) }, { "options", logged_text(s->facts.silent ? NULL : s->facts.options) },
        { "nodes", logged_int((int64_t)c.all) }, { "forward", logged_int((int64_t)(c.all - c.backward - c.update)) },
        { "backward", logged_int((int64_t)c.backward) }, { "update", logged_int((int64_t)c.update) },
        { "bytes", logged_int((int64_t)f.total) }, { "weights_bytes", logged_int((int64_t)f.weights) },
        { "optimizer_bytes", logged_int((int64_t)f.optimizer) },
        { "other_state_bytes", logged_int((int64_t)f.other_state) },
        { "gradients_bytes", logged_int((int64_t)f.gradients) },
        { "activations_bytes", logged_int((int64_t)f.activations) },
        { "scratch_bytes", f.estimated ? logged_text(NULL) : logged_int((int64_t)f.scratch) },
        { "model_bytes", f.model ? logged_int((int64_t)f.model) : logged_text(NULL) },
        { "estimated", f.estimated ? logged_flag(true) : logged_text(NULL) });
    for (size_t i = 0; !s->facts.silent && i < s->recipe.n_groups; i++)
        log_record(t, "group", { "selector", logged_text(s->recipe.groups[i].selector) },
                   { "optimizer", logged_text(optimizer_text(arena, s->ir->ops, &s->recipe.groups[i])) });
    choice_records(t, s);
    state_records(t, s);
}

void explain_step(Text *t, const qcc_step *s)
{
    text_printf(t, "training%s\n", model_is_step(s->model) ? "" : ", if this is how it is trained");
    if (s->facts.batch) {
        text_label(t, "batch");
        text_printf(t, "%" PRId64 "\n", s->facts.batch);
    }
    tell_losses(t, s);
    if (s->facts.silent) {
        tell_states(t, s);
    } else {
        tell_optimizer(t, s);
        tell_schedule(t, s);
        tell_extras(t, s);
        tell_choices(t, s);
    }
    explain_precision(t, s);
    explain_quantization(t, s);
    tell_size(t, s);
}
