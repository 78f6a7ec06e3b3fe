#include "support/recipe.h"

#include <string.h>

#include "base/file.h"
#include "base/number_text.h"
#include "passes/amp/shipped.h"
#include "passes/amp/table.h"
#include "passes/recipe/loss_read.h"
#include "passes/recipe/optimizer_read.h"
#include "passes/recipe/scale_read.h"

enum { MOST_GROUPS = 8, MOST_TEXTS = 8 };

typedef struct Words {
    Recipe *recipe;
    OptimizerWords optimizer;
    const char *groups[MOST_GROUPS];
    const char *tables[MOST_TEXTS];
    size_t n_tables;
    const char **train, **freeze, **whole, **losses, **keep_wide, *loss_scale;
    size_t n_losses;
} Words;

/* Whether an option is one that turns something off, and its value does so. */
static bool turns_off(const char *option, const char *value, const char *which, const char *off, bool *flag)
{
    const bool it_is = strcmp(option, which) == 0;
    *flag |= it_is && strcmp(value, off) == 0;
    return it_is;
}

static bool sets_norms(Recipe *r, const char *option, const char *value)
{
    return turns_off(option, value, "--bn", "frozen", &r->frozen_norms) &&
           turns_off(option, value, "--bn", "pytorch", &r->torch_norms);
}

static bool adds_text(const char *option, const char *value, const char *which, const char **list, size_t *n)
{
    const bool it_is = strcmp(option, which) == 0 && *n < MOST_TEXTS;
    if (it_is)
        list[(*n)++] = value;
    return it_is;
}

/* --amp bf16, --amp fp16, --amp off. */
static bool sets_amp(Precision *p, const char *option, const char *value)
{
    if (strcmp(option, "--amp") != 0)
        return false;
    p->on = strcmp(value, "off") != 0;
    p->narrow = strcmp(value, "fp16") == 0 ? F16 : BF16;
    return true;
}

/* What is trained, and how the model behaves. */
static bool set_choice(Words *w, const char *option, const char *value)
{
    Recipe *r = w->recipe;
    return adds_text(option, value, "--train", w->train, &r->n_train) ||
           adds_text(option, value, "--freeze", w->freeze, &r->n_freeze) ||
           adds_text(option, value, "--loss", w->losses, &w->n_losses) ||
           adds_text(option, value, "--whole", w->whole, &r->n_whole) || sets_amp(&r->precision, option, value) ||
           adds_text(option, value, "--keep-fp32", w->keep_wide, &r->precision.n_keep_wide) ||
           adds_text(option, value, "--amp-table", w->tables, &w->n_tables) ||
           turns_off(option, value, "--amp-solver", "walk", &r->precision.walks) ||
           turns_off(option, value, "--tie", "off", &r->untied) || sets_norms(r, option, value) ||
           turns_off(option, value, "--dropout", "off", &r->no_dropout);
}

static Status set_option(Words *w, Diag *diag, const char *option, const char *value)
{
    const struct {
        const char *option;
        const char **text;
        double *real;
        int64_t *count;
    } options[] = {
        { "--optimizer", &w->optimizer.optimizer, NULL, NULL },
        { "--lr", &w->optimizer.lr, NULL, NULL },
        { "--schedule", &w->optimizer.schedule, NULL, NULL },
        { "--loss-scale", &w->loss_scale, NULL, NULL },
        { "--group", w->optimizer.n_groups < MOST_GROUPS ? &w->groups[w->optimizer.n_groups] : NULL, NULL, NULL },
        { "--clip-norm", NULL, &w->recipe->clip_norm, NULL },
        { "--clip-value", NULL, &w->recipe->clip_value, NULL },
        { "--ema", NULL, &w->recipe->ema, NULL },
        { "--accumulate", NULL, NULL, &w->recipe->accumulate },
    };
    if (set_choice(w, option, value))
        return OK;
    for (size_t i = 0; i < COUNT(options); i++) {
        if (strcmp(options[i].option, option) != 0)
            continue;
        if (options[i].text)
            *options[i].text = value;
        w->optimizer.n_groups += strcmp(option, "--group") == 0;
        const bool fits = (!options[i].real || f64_from_text(value, strlen(value), options[i].real)) &&
                          (!options[i].count || i64_from_text(value, strlen(value), options[i].count));
        return fits ? OK : fail(diag, NOWHERE, "%s %s is no number", option, value);
    }
    return fail(diag, NOWHERE, "recipes of tests have no option %s", option);
}

static const char *next_word(Str *rest, Arena *arena)
{
    size_t n = 0;
    while (rest->n && *rest->p == ' ')
        *rest = (Str){ rest->p + 1, rest->n - 1 };
    while (n < rest->n && rest->p[n] != ' ')
        n++;
    const char *word = arena_copy(arena, rest->p, n);
    *rest = (Str){ rest->p + n, rest->n - n };
    return word;
}

/* Options without a value. */
static bool set_flag(Recipe *r, const char *option)
{
    const bool exact = strcmp(option, "--exact-casts") == 0, lenient = strcmp(option, "--lenient") == 0;
    r->precision.exact_casts |= exact;
    r->precision.lenient |= lenient;
    return exact || lenient;
}

/* Tables of classes, from files beside a path or by their names. */
static Status read_tables(Words *w, const Ir *ir, Arena *arena, const char *path)
{
    const AmpTable **tables = NEWS(arena, const AmpTable *, MOST_TEXTS);
    const char *slash = path ? strrchr(path, '/') : NULL;
    for (size_t i = 0; i < w->n_tables; i++) {
        Str bytes = { amp_table_shipped(w->tables[i]), 0 };
        const char *file =
            arena_printf(arena, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path ? path : "", w->tables[i]);
        if (!bytes.p)
            TRY(file_read(arena, ir->diag, file, ir->limits.string_bytes, "string_bytes", &bytes));
        TRY(amp_table_read(&tables[i], w->tables[i], bytes.p, ir->ops, arena, ir->diag));
    }
    w->recipe->precision.tables = tables;
    w->recipe->precision.n_tables = w->n_tables;
    return OK;
}

Status recipe_from_options(Recipe *r, const Ir *ir, Arena *arena, Str options, const char *path)
{
    Words w = { .recipe = r };
    w.optimizer.groups = w.groups;
    r->train = w.train = NEWS(arena, const char *, MOST_TEXTS);
    r->freeze = w.freeze = NEWS(arena, const char *, MOST_TEXTS);
    w.losses = NEWS(arena, const char *, MOST_TEXTS);
    r->precision.keep_wide = w.keep_wide = NEWS(arena, const char *, MOST_TEXTS);
    r->whole = w.whole = NEWS(arena, const char *, MOST_TEXTS);
    for (const char *option = next_word(&options, arena); *option; option = next_word(&options, arena))
        if (!set_flag(r, option))
            TRY(set_option(&w, ir->diag, option, next_word(&options, arena)));
    TRY(read_tables(&w, ir, arena, path));
    LossSpec *losses = NEWS(arena, LossSpec, MOST_TEXTS);
    for (size_t i = 0; i < w.n_losses; i++)
        TRY(loss_read(&losses[i], w.losses[i], arena, ir->diag));
    r->losses = losses;
    r->n_losses = w.n_losses;
    if (w.loss_scale)
        TRY(loss_scale_read(&r->precision.scale, w.loss_scale, arena, ir->diag));
    return recipe_read_optimizer(r, &w.optimizer, ir->ops, arena, ir->diag);
}

bool recipe_line(Str text, Str *options)
{
    static const char head[] = "# recipe: ";
    const char *at = memmem(text.p, text.n, head, sizeof head - 1);
    if (!at)
        return false;
    at += sizeof head - 1;
    const size_t left = text.n - (size_t)(at - text.p);
    const char *end = memchr(at, '\n', left);
    *options = (Str){ at, end ? (size_t)(end - at) : left };
    return true;
}
