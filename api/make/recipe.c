#include "api/make/recipe.h"

#include <string.h>

#include "api/make/recipe_parts.h"
#include "api/make/table_texts.h"
#include "api/make/teacher.h"
#include "api/model/census.h"
#include "api/options/recipe_options.h"
#include "ops/card/path.h"
#include "passes/engine/results.h"
#include "api/model/evaluate.h"
#include "passes/recipe/choices.h"
#include "passes/recipe/loss_read.h"
#include "passes/recipe/optimizer_read.h"

/* ---- from a line ---- */

Status recipe_add_options(qcc_step *s, const CommandLine *line)
{
    TRY(step_read_datapath(s, line));
    TRY(recipe_read_options(&s->recipe, line, s->ir->ops, &s->arena, &s->cx->diag));
    if (!s->recipe.quantization.spec)
        TRY(model_target(s->model, &s->recipe.quantization.own_target, /* of a file that has its own quantizers */
                         &s->arena));
    s->facts.optimizer = optimizer_text(&s->arena, s->ir->ops, &s->recipe.groups[0]);
    return precision_read(s, line);
}

/* Whether nobody asks what the step learns: a model is exported with its weights as they are. */
static bool learns_nothing(const CommandLine *line)
{
    return line->verb == VERB_export && !option_given(line, OPT_checkpoint) && !option_given(line, OPT_teacher);
}

Status recipe_add_losses(qcc_step *s, Graph *g, const CommandLine *line)
{
    Recipe *r = &s->recipe;
    TRY(recipe_read_loss_options(r, line, &s->arena, &s->cx->diag));
    LossSpec *losses = NEWS(&s->arena, LossSpec, r->n_losses + 1);
    if (r->n_losses)
        memcpy(losses, r->losses, r->n_losses * sizeof *losses);
    else if (!loss_found(&losses[r->n_losses++], &s->facts.loss_why, g, &s->arena)) {
        if (!learns_nothing(line))
            return loss_guess(losses, &s->facts.loss_why, g, &s->arena, &s->cx->diag);
        losses[0] = loss_of(LOSS_EXTERNAL);
    }
    TRY(recipe_read_weights(s, losses, r->n_losses));
    r->losses = losses;
    return OK;
}

/* Adds what a line gives for an option; in an identity the content of a table counts, not where it stands. */
static void add_values(qcc_step *s, CommandLine *all, const CommandLine *line, Option o, bool identity)
{
    for (size_t i = 0; i < line->n_given; i++) {
        const char *value = line->given[i].value;
        if (line->given[i].option == o)
            option_add(&s->arena, all, o,
                       !identity          ? value
                       : o == OPT_teacher ? step_teacher_identity(s)
                                          : step_table_identity(s, o, value));
    }
}

/* What a step records of a line, or what its identity is of that, the loss being said even where it was guessed. */
static const char *options_of(qcc_step *s, const CommandLine *line, bool identity)
{
    CommandLine all = { 0 };
    Text t;
    for (size_t i = 0; i < s->recipe.n_losses; i++)
        option_add(&s->arena, &all, OPT_loss, loss_text(&s->arena, &s->recipe.losses[i]));
    for (int o = 0; o < OPT_COUNT; o++)
        if (o != OPT_loss && (identity ? option_specs[o].keep == KEEP_IDENTITY : option_is_recorded((Option)o)))
            add_values(s, &all, line, (Option)o, identity);
    text_open(&t, &s->arena);
    options_print_line(&t, &all);
    return text_get(&t);
}

/* A rate may change between two runs of one step: the identity does without it. */
static const char *without_rate(Arena *arena, const char *options)
{
    Text t;
    text_open(&t, arena);
    for (const char *p = options; *p;) {
        if (strncmp(p, "lr=", 3) == 0 && p > options && (p[-1] == ':' || p[-1] == ','))
            p += strcspn(p, ", ");
        else
            text_char(&t, *p++);
    }
    return text_get(&t);
}

Status recipe_find_targets(qcc_step *s, const Graph *g)
{
    s->targets = NEWS(&s->arena, StepTarget, s->recipe.n_losses + 1);
    for (size_t i = 0; i < s->recipe.n_losses; i++) {
        LossTarget t;
        Status status;
        if (loss_target(g, &s->recipe, i, &s->arena, &s->cx->diag, &t, &status))
            s->targets[s->n_targets++] = (StepTarget){ .input = t.input,
                                                       .output = t.output,
                                                       .classes = t.classes ? t.n_classes : 0,
                                                       .axis = t.axis,
                                                       .ignores = t.ignores,
                                                       .ignored = t.ignored };
        TRY(status);
    }
    return OK;
}

void recipe_set_words(qcc_step *s)
{
    Text t;
    text_open(&t, &s->arena);
    for (size_t i = 0; i < s->recipe.n_losses; i++)
        text_printf(&t, "%s%s", i ? " + " : "", loss_text(&s->arena, &s->recipe.losses[i]));
    s->facts.loss = text_get(&t);
    const char *slash = strrchr(s->model->file, '/'), *name = slash ? slash + 1 : s->model->file,
               *dot = strrchr(name, '.');
    const size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    s->facts.trained_path = arena_printf(&s->arena, "%.*s.trained.safetensors", (int)n, name);
}

/* What a line says of the step, with nothing that was guessed. */
static const char *said_of(qcc_step *s, const CommandLine *line)
{
    CommandLine all = { 0 };
    Text t;
    for (size_t i = 0; i < line->n_given; i++)
        if (option_is_compiled(line->given[i].option))
            option_add(&s->arena, &all, line->given[i].option, line->given[i].value);
    text_open(&t, &s->arena);
    options_print_line(&t, &all);
    return text_get(&t);
}

/* A file that PyTorch wrote with its norms in training form is to be trained as PyTorch would. */
static bool learns_in_torch(const qcc_step *s)
{
    const Onnx__ModelProto *p = s->model->has_spine ? s->model->spine.model : NULL;
    return p && str_is(str_of(p->producer_name), "pytorch") && census_of(s->model, &s->cx->scratch).trained_norms;
}

Status recipe_read(qcc_step *s, const CommandLine *line)
{
    TRY(recipe_add_options(s, line));
    if (!option_given(line, OPT_bn))
        s->recipe.torch_norms = learns_in_torch(s);
    s->recipe.choices = NEW(&s->arena, Choices);
    return OK;
}

Status recipe_read_losses(qcc_step *s, Graph *g, const CommandLine *line)
{
    TRY(recipe_add_losses(s, g, line));
    TRY(recipe_find_targets(s, g));
    recipe_set_words(s);
    s->facts.options = options_of(s, line, false);
    s->facts.given = said_of(s, line);
    s->facts.identity = without_rate(&s->arena, options_of(s, line, true));
    s->facts.origin = s->model->file;
    return OK;
}

bool recipe_keeps_last(const CommandLine *line)
{
    const char *last = option_text(line, OPT_last);
    return last && strcmp(last, "keep") == 0;
}

LossSpec *recipe_masked(qcc_step *s)
{
    LossSpec *masked = NEWS(&s->arena, LossSpec, s->recipe.n_losses + 1);
    for (size_t i = 0; i < s->recipe.n_losses; i++) {
        masked[i] = s->recipe.losses[i];
        if (!masked[i].sample_weight)
            masked[i].sample_weight = VALID_INPUT;
    }
    return masked;
}

Status step_set_rate(qcc_step *s, Session *run, const CommandLine *line)
{
    const double lr = option_real(line, OPT_lr, 0), own = s->recipe.groups[0].lr;
    if (!model_is_step(s->model) || lr <= 0)
        return OK;
    if (s->facts.silent) {
        Place place = NOWHERE;
        place.where = "--lr";
        return fail_as(&s->cx->diag, USAGE, place, "the text of a step does not say the rate that it was made with");
    }
    const State *have = session_state_of(run, STATE_rate, NULL);
    if (!have || own <= 0)
        return OK;
    Tensor *factor = tensor_new(&s->cx->scratch, have->type);
    tensor_set_f64(factor, 0, lr / own);
    return session_put(run, have->name, factor);
}
