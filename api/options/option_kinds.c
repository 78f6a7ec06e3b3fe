#include "api/options/option_kinds.h"

#include <string.h>

#include "passes/recipe/loss_read.h"
#include "passes/recipe/optimizer_read.h"
#include "passes/recipe/schedule_read.h"
#include "passes/recipe/settings.h"

static size_t losses(Arena *arena, OptionKind **kinds)
{
    *kinds = NEWS(arena, OptionKind, LOSS_COUNT);
    for (int i = 0; i < LOSS_COUNT; i++) {
        OptionKind *k = &(*kinds)[i];
        *k = (OptionKind){ .word = loss_word((LossKind)i), .what = loss_what((LossKind)i) };
        k->n = loss_settings((LossKind)i, k->settings, KIND_SETTINGS);
    }
    return LOSS_COUNT;
}

static size_t optimizers(const OpTable *ops, Arena *arena, OptionKind **kinds)
{
    const size_t n = optimizer_kinds();
    *kinds = NEWS(arena, OptionKind, n);
    for (size_t i = 0; i < n; i++) {
        OptionKind *k = &(*kinds)[i];
        *k = (OptionKind){ .word = optimizer_kind(i) };
        k->n = optimizer_settings(i, ops, arena, k->settings, KIND_SETTINGS);
    }
    return n;
}

static size_t schedules(Arena *arena, OptionKind **kinds)
{
    const size_t n = schedule_kinds();
    *kinds = NEWS(arena, OptionKind, n);
    for (size_t i = 0; i < n; i++) {
        OptionKind *k = &(*kinds)[i];
        *k = (OptionKind){ .word = schedule_kind(i) };
        k->n = schedule_settings(i, k->settings, KIND_SETTINGS);
    }
    return n;
}

size_t option_kinds(const OpTable *ops, Arena *arena, Option o, OptionKind **kinds)
{
    switch (o) {
    case OPT_loss:
        return losses(arena, kinds);
    case OPT_optimizer:
        return optimizers(ops, arena, kinds);
    case OPT_schedule:
        return schedules(arena, kinds);
    default:
        return 0;
    }
}

/* ---- help ---- */

static void print_kind(Text *t, const OptionKind *k)
{
    enum { COLUMN = 18, WIDE = 100 };
    size_t line = t->n;
    text_printf(t, "  %s ", k->word);
    text_pad(t, COLUMN);
    if (k->what)
        text_printf(t, "%s\n", k->what);
    for (size_t i = 0; i < k->n; i++) {
        if (i ? t->n - line > WIDE : k->what != NULL) {
            text_add(t, i ? "\n" : "");
            line = t->n;
            text_pad(t, COLUMN);
        } else if (i) {
            text_char(t, ' ');
        }
        text_add(t, k->settings[i]);
    }
    if (k->n || !k->what)
        text_char(t, '\n');
}

void kinds_print(Text *t, const OpTable *ops)
{
    static const struct {
        Option option;
        const char *title;
    } all[] = {
        { OPT_loss, "losses, and the settings of each: --loss KIND[:OUTPUT][,setting=value,..]" },
        { OPT_optimizer,
          "optimizers, settings with what they are: --optimizer KIND[:setting=value,..]; for some parameters: "
          "--group SELECTOR:[optimizer=KIND,]setting=value,.." },
        { OPT_schedule, "schedules, and the settings of each: --schedule KIND[:setting=value,..]" },
    };
    const char *theirs, *ours;
    for (size_t k = 0; k < COUNT(all); k++) {
        OptionKind *kinds;
        const size_t n = option_kinds(ops, t->arena, all[k].option, &kinds);
        text_printf(t, "\n%s\n", all[k].title);
        for (size_t i = 0; i < n; i++)
            print_kind(t, &kinds[i]);
    }
    text_add(t, "\nalso understood:");
    for (size_t i = 0; setting_spelling(i, &theirs, &ours); i++)
        text_printf(t, "%s %s for %s", i ? "," : "", theirs, ours);
    text_add(t, ", betas=A/B for beta1 and beta2\n");
}

/* ---- completion ---- */

void kinds_complete(Text *t, const OpTable *ops, Option o)
{
    OptionKind *kinds;
    const size_t n = option_kinds(ops, t->arena, o, &kinds);
    if (!n)
        return;
    text_printf(t, "    %s)\n        case $value in\n", option_specs[o].name);
    for (size_t i = 0; i < n; i++) {
        text_printf(t, "        %s[:,]*) words=\"", kinds[i].word);
        for (size_t s = 0; s < kinds[i].n; s++)
            text_printf(t, "%s%.*s=", s ? " " : "", (int)strcspn(kinds[i].settings[s], "="), kinds[i].settings[s]);
        text_add(t, "\" ;;\n");
    }
    text_add(t, "        *) words=\"");
    for (size_t i = 0; i < n; i++)
        text_printf(t, "%s%s", i ? " " : "", kinds[i].word);
    text_add(t, "\" ;;\n        esac\n        last=${value##*[:,]}\n"
                "        COMPREPLY=($(compgen -P \"${cur%\"$last\"}\" -W \"$words\" -- \"$last\")); return ;;\n");
}
