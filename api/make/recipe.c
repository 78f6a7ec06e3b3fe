#include "api/make/recipe.h"

#include <string.h>

#include "api/make/recipe_parts.h"
#include "api/model/census.h"
#include "ops/card/path.h"
#include "passes/engine/results.h"
#include "passes/recipe/choices.h"
#include "passes/recipe/loss_read.h"
#include "passes/recipe/optimizer_read.h"

/* ---- from a line ---- */

/* All values of an option that may be repeated. */
static const char *const *texts_of(qcc_step *s, const CommandLine *line, Option o, size_t *n)
{
    const char *text, **all = NEWS(&s->arena, const char *, option_given(line, o) + 1);
    *n = 0;
    for (size_t at = 0; (text = option_next(line, o, &at));)
        all[(*n)++] = arena_string(&s->arena, text);
    return all;
}

static bool says(const CommandLine *line, Option o, const char *word)
{
    const char *text = option_text(line, o);
    return text && strcmp(text, word) == 0;
}

Status recipe_add_optimizer(qcc_step *s, const CommandLine *line)
{
    OptimizerWords words = { .optimizer = option_text(line, OPT_optimizer),
                             .lr = option_text(line, OPT_lr),
                             .schedule = option_text(line, OPT_schedule) };
    words.groups = texts_of(s, line, OPT_group, &words.n_groups);
    TRY(recipe_read_optimizer(&s->recipe, &words, s->ir->ops, &s->arena, &s->cx->diag));
    s->facts.optimizer = optimizer_text(&s->arena, s->ir->ops, &s->recipe.groups[0]);
    return OK;
}

Status recipe_add_losses(qcc_step *s, Graph *g, const CommandLine *line)
{
    size_t n;
    const char *const *texts = texts_of(s, line, OPT_loss, &n);
    LossSpec *losses = NEWS(&s->arena, LossSpec, n + 1);
    for (size_t i = 0; i < n; i++)
        TRY(loss_read(&losses[i], texts[i], &s->arena, &s->cx->diag));
    if (!n) {
        TRY(loss_guess(&losses[0], &s->facts.loss_why, g, &s->arena, &s->cx->diag));
        n = 1;
    }
    TRY(recipe_read_weights(s, losses, n));
    s->recipe.losses = losses;
    s->recipe.n_losses = n;
    return OK;
}

/* Options that say what a step is, beside its losses. */
static const Option kept[] = { OPT_train,     OPT_freeze,      OPT_tie,        OPT_bn,         OPT_dropout,
                               OPT_optimizer, OPT_lr,          OPT_group,      OPT_schedule,   OPT_dim,
                               OPT_shape,     OPT_constant,    OPT_clip_norm,  OPT_clip_value, OPT_accumulate,
                               OPT_ema,       OPT_batch,       OPT_opset,      OPT_amp,        OPT_amp_table,
                               OPT_keep_fp32, OPT_exact_casts, OPT_amp_solver, OPT_lenient,    OPT_loss_scale };

/* Adds what a line gives for an option; in an identity the content of a table counts, not where it stands. */
static void add_values(qcc_step *s, CommandLine *all, const CommandLine *line, Option o, bool identity)
{
    for (size_t i = 0; i < line->n_given; i++) {
        const char *value = line->given[i].value;
        if (line->given[i].option == o)
            option_add(&s->arena, all, o, identity && o == OPT_amp_table ? precision_table_identity(s, value) : value);
    }
}

/* The options that make the step what it is (rates and scales of the loss may change between runs), the loss being said even where it was guessed. */
static const char *options_of(qcc_step *s, const CommandLine *line, bool identity)
{
    CommandLine all = { 0 };
    Text t;
    for (size_t i = 0; i < s->recipe.n_losses; i++)
        option_add(&s->arena, &all, OPT_loss, loss_text(&s->arena, &s->recipe.losses[i]));
    for (size_t k = 0; k < COUNT(kept); k++)
        if (!identity || (kept[k] != OPT_lr && kept[k] != OPT_schedule && kept[k] != OPT_loss_scale))
            add_values(s, &all, line, kept[k], identity);
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

/* Whether an option is compiled in; a rate may follow. */
bool recipe_compiles_in(Option o)
{
    bool compiled = o == OPT_loss;
    for (size_t k = 0; k < COUNT(kept); k++)
        compiled |= kept[k] == o && kept[k] != OPT_lr;
    return compiled;
}

/* What a line says of the step, with nothing that was guessed. */
static const char *said_of(qcc_step *s, const CommandLine *line)
{
    CommandLine all = { 0 };
    Text t;
    for (size_t i = 0; i < line->n_given; i++)
        if (recipe_compiles_in(line->given[i].option))
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

static Status read_tie_options(qcc_step *s, const CommandLine *line)
{
    size_t n;
    const char *const *texts = texts_of(s, line, OPT_tie, &n);
    const char **pairs = NEWS(&s->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *sign = strchr(texts[i], '=');
        if (sign && sign != texts[i] && sign[1])
            pairs[s->recipe.n_ties++] = texts[i];
        else if (strcmp(texts[i], "auto") != 0 && strcmp(texts[i], "off") != 0)
            return fail_as(&s->cx->diag, USAGE, ON_COMMAND_LINE, "--tie %s: wants auto, off or NAME=NAME", texts[i]);
    }
    s->recipe.ties = pairs;
    s->recipe.untied = n && strcmp(texts[n - 1], "off") == 0;
    return OK;
}

Status recipe_read(qcc_step *s, const CommandLine *line)
{
    Recipe *r = &s->recipe;
    r->train = texts_of(s, line, OPT_train, &r->n_train);
    r->freeze = texts_of(s, line, OPT_freeze, &r->n_freeze);
    TRY(read_tie_options(s, line));
    r->frozen_norms = says(line, OPT_bn, "frozen");
    r->torch_norms = option_given(line, OPT_bn) ? says(line, OPT_bn, "pytorch") : learns_in_torch(s);
    r->no_dropout = says(line, OPT_dropout, "off");
    r->clip_norm = option_real(line, OPT_clip_norm, 0);
    r->clip_value = option_real(line, OPT_clip_value, 0);
    r->accumulate = option_count(line, OPT_accumulate, 1);
    r->ema = option_real(line, OPT_ema, 0);
    r->choices = NEW(&s->arena, Choices);
    TRY(precision_read(s, line));
    return recipe_add_optimizer(s, line);
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
    return says(line, OPT_last, "keep");
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
