#include "passes/recipe/optimizer_read.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "ops/card/cards.h"
#include "passes/optimizers.def"
#include "passes/recipe/schedule_read.h"
#include "passes/recipe/settings.h"

/* ---- the tables ---- */

typedef struct Kind {
    const char *word;
    Op op;
    double lr;
    const char *preset, *below_1;
} Kind;

static const Kind kinds[] = {
#define KIND(kind, op, lr, preset, below_1) { #kind, OP_##op, lr, preset, below_1 },
    OPTIMIZERS(KIND)
#undef KIND
};

static const struct {
    const char *of, *above_0, *zero;
} together[] = {
#define TOGETHER(of, above_0, zero) { #of, #above_0, #zero },
    SETTINGS_TOGETHER(TOGETHER)
#undef TOGETHER
};

static const char *const states_words[] = {
#define STATES(word, kind, type, block, what) [STATES_##kind] = word,
    OPTIMIZER_STATES(STATES)
#undef STATES
};

/* Whether a list, "beta1,beta2", names a setting. */
static bool names(const char *list, const char *key)
{
    const size_t n = strlen(key);
    for (const char *p = list; *p; p += *p == ',') {
        const size_t k = strcspn(p, ",");
        if (k == n && strncmp(p, key, n) == 0)
            return true;
        p += k;
    }
    return false;
}

/* Below which number a setting of an op stays: every kind of the op says the same. */
static double bound_of(Op op, const char *key)
{
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (kinds[i].op == op && names(kinds[i].below_1, key))
            return 1;
    return INFINITY;
}

/* ---- settings of an optimizer ---- */

/* A group on its way. */
typedef struct Reading {
    const OpTable *ops;
    Settings settings;
    OptimizerGroup *group;
    double base;   /* the rate that 0.1x is a part of; 0: there is none */
    bool of_group; /* these are settings of --group, which may name an optimizer */
} Reading;

static const AttrSpec *attrs_of(const Reading *r)
{
    return r->ops->defs[r->group->op]->attrs;
}

/* Attributes of how parameters are stored are not the optimizer's, but for what becomes of their scales. */
static bool is_setting(const AttrSpec *spec)
{
    return !spec->ours || strcmp(spec->name, "sticky") == 0 || strcmp(spec->name, "scale_decay") == 0;
}

/* 8bit, 4bit, fp8 or f32. */
static Status set_states(Reading *r, const Setting *x)
{
    for (int i = 0; x->value && i < STATES_KINDS; i++)
        if (strcmp(x->value, states_words[i]) == 0) {
            r->group->states = (StatesKind)i;
            return OK;
        }
    return setting_fail(&r->settings, x, "8bit, 4bit, fp8 or f32");
}

static Status set_states_min(Reading *r, const Setting *x)
{
    double v;
    TRY(setting_real(&r->settings, x, 1, 1e15, &v));
    if (v != floor(v))
        return setting_fail(&r->settings, x, "a number of elements");
    r->group->states_min = (int64_t)v;
    return OK;
}

static Status unknown_setting(const Reading *r, const Setting *x)
{
    const char *known[16];
    size_t n = 0;
    known[n++] = "lr";
    for (const AttrSpec *a = attrs_of(r); a->kind != ATTR_END && n + 4 < COUNT(known); a++)
        if (is_setting(a))
            known[n++] = a->name;
    known[n++] = "states";
    known[n++] = "states_min";
    if (attr_find(attrs_of(r), str("beta1")))
        known[n++] = "betas";
    if (r->of_group)
        known[n++] = "optimizer";
    return setting_unknown(&r->settings, x, n, known);
}

/* 0.001, or 0.1x for a part of the base rate. */
static Status set_rate(Reading *r, const Setting *x)
{
    const size_t n = x->value ? strlen(x->value) : 0;
    if (n < 2 || r->base == 0 || x->value[n - 1] != 'x')
        return setting_real(&r->settings, x, 0, INFINITY, &r->group->lr);
    const Setting factor = { x->key, arena_copy(r->settings.arena, x->value, n - 1) };
    TRY(setting_real(&r->settings, &factor, 0, INFINITY, &r->group->lr));
    r->group->lr *= r->base;
    return OK;
}

static Status set_attr(Reading *r, const Setting *x, const AttrSpec *spec)
{
    void *at = attr_at(spec, r->group->attr);
    double v;
    if (spec->kind == ATTR_BOOL)
        return setting_bool(&r->settings, x, at);
    TRY(setting_real(&r->settings, x, 0, bound_of(r->group->op, x->key), &v));
    *(float *)at = (float)v;
    return OK;
}

/* betas=0.9/0.999 or betas=(0.9,0.999) */
static Status set_betas(Reading *r, const Setting *x, const AttrSpec *first, const AttrSpec *second)
{
    const char *v = x->value ? x->value : "", *end = v + strlen(v);
    if (*v == '(' || *v == '[') {
        v++;
        end -= end > v;
    }
    const char *sign = memchr(v, strchr(v, '/') ? '/' : ',', (size_t)(end - v));
    if (!sign)
        return setting_fail(&r->settings, x, "two numbers, as 0.9/0.999");
    const char *rest = sign + 1 + strspn(sign + 1, " ");
    const Setting a = { "beta1", arena_copy(r->settings.arena, v, (size_t)(sign - v)) };
    const Setting b = { "beta2", arena_copy(r->settings.arena, rest, (size_t)(end - rest)) };
    TRY(set_attr(r, &a, first));
    return set_attr(r, &b, second);
}

static Status set_one(Reading *r, Setting x)
{
    x.key = setting_ours(x.key);
    if (r->of_group && strcmp(x.key, "optimizer") == 0)
        return OK; /* the group began with it */
    const AttrSpec *spec = attr_find(attrs_of(r), str(x.key)), *first = attr_find(attrs_of(r), str("beta1"));
    if (strcmp(x.key, "lr") == 0)
        return set_rate(r, &x);
    if (strcmp(x.key, "states") == 0)
        return set_states(r, &x);
    if (strcmp(x.key, "states_min") == 0)
        return set_states_min(r, &x);
    if (spec && !is_setting(spec))
        return unknown_setting(r, &x);
    if (strcmp(x.key, "betas") == 0 && first)
        return set_betas(r, &x, first, attr_find(attrs_of(r), str("beta2")));
    if (strcmp(x.key, "weight_decay") == 0)
        r->group->spares_vectors = false;
    if (strcmp(x.key, "weight_decay") == 0 && r->group->selector)
        r->group->says_decay = true;
    return spec ? set_attr(r, &x, spec) : unknown_setting(r, &x);
}

static Status set_all(Reading *r)
{
    for (size_t i = 0; i < r->settings.n; i++)
        TRY(set_one(r, r->settings.list[i]));
    return OK;
}

static Status start_kind(Reading *r, const Kind *kind, Arena *arena, Diag *diag)
{
    *r->group = (OptimizerGroup){ .op = kind->op, .lr = kind->lr };
    r->group->attr = attrs_default(arena, attrs_of(r));
    TRY(settings_read_list(&r->settings, diag, arena, "--optimizer", kind->word, *kind->preset ? kind->preset : NULL));
    return set_all(r);
}

OptimizerGroup recipe_default_optimizer(const OpTable *ops, Arena *arena)
{
    Diag none;
    OptimizerGroup group;
    Reading r = { .ops = ops, .group = &group };
    diag_open(&none, arena, NULL, NULL);
    for (size_t i = 0; i < COUNT(kinds); i++)
        if (strcmp(kinds[i].word, DEFAULT_OPTIMIZER) == 0)
            (void)start_kind(&r, &kinds[i], arena, &none);
    group.lr = 1e-4;
    group.spares_vectors = true;
    return group;
}

/* The number of an attribute; 0 where the op has none of that name. */
static double number_of(const Reading *r, const char *name)
{
    const AttrSpec *spec = attr_find(attrs_of(r), str(name));
    return spec ? (double)*(const float *)attr_at(spec, r->group->attr) : 0;
}

/* What an op refuses of its settings together. */
static Status check_together(const Reading *r)
{
    for (size_t i = 0; i < COUNT(together); i++) {
        const AttrSpec *spec = attr_find(attrs_of(r), str(together[i].of));
        if (!spec || !*(const bool *)attr_at(spec, r->group->attr))
            continue;
        if (number_of(r, together[i].above_0) > 0 && number_of(r, together[i].zero) == 0)
            continue;
        return fail_as(r->settings.diag, USAGE, (Place){ .where = r->settings.option, .byte = -1 },
                       "%s: %s wants a %s and no %s", r->settings.kind, together[i].of, together[i].above_0,
                       together[i].zero);
    }
    return OK;
}

/* The number of the optimizer that the kind of a list names; -1 after a report. */
static int kind_of(const Settings *s)
{
    const char *words[COUNT(kinds)];
    for (size_t i = 0; i < COUNT(kinds); i++)
        words[i] = kinds[i].word;
    return settings_kind(s, "optimizer", COUNT(kinds), words);
}

static Status read_optimizer(Reading *r, const char *text, Arena *arena, Diag *diag)
{
    Settings said;
    TRY(settings_read(&said, diag, arena, "--optimizer", text));
    const int kind = kind_of(&said);
    if (kind < 0)
        return USAGE;
    TRY(start_kind(r, &kinds[kind], arena, diag));
    r->settings = said;
    TRY(set_all(r));
    return check_together(r);
}

/* ---- groups ---- */

/* A group with an optimizer of its own begins as that one does, not as the others. */
static Status start_own(Reading *r, Settings *said, const Setting *own)
{
    Settings word = *said;
    if (!own->value || !*own->value)
        return setting_fail(said, own, "the name of an optimizer");
    word.kind = own->value;
    const int kind = kind_of(&word);
    if (kind < 0)
        return USAGE;
    said->kind = arena_printf(said->arena, "%s: %s", said->kind, own->value);
    return start_kind(r, &kinds[kind], said->arena, said->diag);
}

static Status start_group(Reading *r, const OptimizerGroup *base, Settings *said)
{
    for (size_t i = 0; i < said->n; i++)
        if (strcmp(said->list[i].key, "optimizer") == 0)
            return start_own(r, said, &said->list[i]);
    *r->group = *base;
    r->group->attr = attrs_copy(said->arena, attrs_of(r), base->attr);
    return OK;
}

/* 'bias$:lr=0.1x,weight_decay=0': a selector may have colons, settings have none. */
static Status read_group(Reading *r, const OptimizerGroup *base, const char *text, Arena *arena, Diag *diag)
{
    Settings said;
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || !strchr(colon, '='))
        return fail_as(diag, USAGE, (Place){ .where = "--group", .byte = -1 }, "'%s' is no SELECTOR:key=value", text);
    const char *selector = arena_copy(arena, text, (size_t)(colon - text));
    TRY(settings_read_list(&said, diag, arena, "--group", selector, colon + 1));
    TRY(start_group(r, base, &said));
    r->settings = said;
    r->base = base->lr;
    r->group->selector = selector;
    TRY(set_all(r));
    return check_together(r);
}

/* ---- all of it ---- */

Status recipe_read_optimizer(Recipe *r, const OptimizerWords *words, const OpTable *ops, Arena *arena, Diag *diag)
{
    OptimizerGroup *groups = NEWS(arena, OptimizerGroup, 1 + words->n_groups);
    Reading base = { .ops = ops, .group = groups };
    if (words->optimizer)
        TRY(read_optimizer(&base, words->optimizer, arena, diag));
    else
        groups[0] = recipe_default_optimizer(ops, arena);
    if (words->lr) {
        const Settings s = { .option = "--lr", .arena = arena, .diag = diag };
        TRY(setting_real(&s, &(Setting){ "lr", words->lr }, 0, INFINITY, &groups[0].lr));
    }
    for (size_t i = 0; i < words->n_groups; i++) {
        Reading group = { .ops = ops, .group = &groups[1 + i], .of_group = true };
        TRY(read_group(&group, &groups[0], words->groups[i], arena, diag));
    }
    r->groups = groups;
    r->n_groups = 1 + words->n_groups;
    return words->schedule ? schedule_read(&r->schedule, words->schedule, arena, diag) : OK;
}

/* ---- back to words ---- */

/* Settings in which attributes differ from what a kind begins with; a switch weighs more than a number. */
static int add_differences(Text *t, const AttrSpec *specs, const void *attr, const void *from)
{
    int n = 0;
    for (const AttrSpec *a = specs; a->kind != ATTR_END; a++) {
        if (!is_setting(a))
            continue;
        const void *is = attr_at(a, attr), *was = attr_at(a, from);
        char number[NUMBER_TEXT];
        if (a->kind == ATTR_BOOL ? *(const bool *)is == *(const bool *)was : *(const float *)is == *(const float *)was)
            continue;
        if (a->kind == ATTR_FLOAT)
            f32_to_text(number, *(const float *)is);
        text_printf(t, ", %s %s", a->name, a->kind == ATTR_FLOAT ? number : *(const bool *)is ? "on" : "off");
        n += a->kind == ATTR_BOOL ? 4 : 1;
    }
    return n;
}

const char *optimizer_text(Arena *arena, const OpTable *ops, const OptimizerGroup *group)
{
    const char *best = NULL;
    int fewest = INT32_MAX;
    Diag none;
    diag_open(&none, arena, NULL, NULL);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        OptimizerGroup start;
        Reading r = { .ops = ops, .group = &start };
        Text t;
        char lr[NUMBER_TEXT];
        if (kinds[i].op != group->op || start_kind(&r, &kinds[i], arena, &none) != OK)
            continue;
        f64_to_text(lr, group->lr);
        text_open(&t, arena);
        text_printf(&t, "%s lr %s", kinds[i].word, lr);
        const bool states = group->states != start.states;
        const int n = add_differences(&t, ops->defs[group->op]->attrs, group->attr, start.attr) + (states ? 4 : 0);
        if (states)
            text_printf(&t, ", states %s", states_words[group->states]);
        if (group->states_min)
            text_printf(&t, ", states_min %" PRId64, group->states_min);
        if (n < fewest) {
            fewest = n;
            best = text_get(&t);
        }
    }
    return best;
}

/* ---- what there is ---- */

size_t optimizer_kinds(void)
{
    return COUNT(kinds);
}

const char *optimizer_kind(size_t i)
{
    return kinds[i].word;
}

size_t optimizer_settings(size_t i, const OpTable *ops, Arena *arena, const char **settings, size_t most)
{
    Diag none;
    OptimizerGroup start;
    Reading r = { .ops = ops, .group = &start };
    char number[NUMBER_TEXT];
    size_t n = 0;
    diag_open(&none, arena, NULL, NULL);
    if (start_kind(&r, &kinds[i], arena, &none) != OK)
        return 0;
    f64_to_text(number, start.lr);
    settings[n++] = arena_printf(arena, "lr=%s", number);
    for (const AttrSpec *a = attrs_of(&r); a->kind != ATTR_END && n < most; a++) {
        if (a->ours)
            continue;
        const void *at = attr_at(a, start.attr);
        if (a->kind == ATTR_FLOAT)
            f32_to_text(number, *(const float *)at);
        const char *value = a->kind == ATTR_FLOAT ? number : *(const bool *)at ? "true" : "false";
        settings[n++] = arena_printf(arena, "%s=%s", a->name, value);
    }
    if (n < most)
        settings[n++] = arena_printf(arena, "states=%s", states_words[start.states]);
    return n;
}
