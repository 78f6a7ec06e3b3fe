#include "passes/recipe/loss_read.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "passes/recipe/settings.h"

enum { IGNORED = -100 };

/* ---- the words ---- */

static const char *const words[] = {
#define WORD(id, word, op, what) word,
    LOSSES(WORD)
#undef WORD
};

static const char *const meanings[] = {
#define MEANING(id, word, op, what) what,
    LOSSES(MEANING)
#undef MEANING
};

enum LossSets {
    CLASSES = 1 << LOSS_CROSS_ENTROPY | 1 << LOSS_NLL | 1 << LOSS_FOCAL,
    EACH = 1 << LOSS_MSE | 1 << LOSS_L1 | 1 << LOSS_HUBER | 1 << LOSS_BCE_LOGITS,
    SOFT = 1 << LOSS_CROSS_ENTROPY,
    WEIGHED = CLASSES | 1 << LOSS_BCE_LOGITS,
    ANY = (1 << LOSS_COUNT) - 1,
};

static Status read_axis(const Settings *s, const Setting *x, LossSpec *l)
{
    l->has_axis = true;
    return x->value && i64_from_text(x->value, strlen(x->value), &l->axis) ? OK : setting_fail(s, x, "an axis: -1, 1");
}

static Status read_smoothing(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_real(s, x, 0, 1, &l->label_smoothing);
}

static Status read_ignored(const Settings *s, const Setting *x, LossSpec *l)
{
    return x->value && i64_from_text(x->value, strlen(x->value), &l->ignore_index) ? OK : setting_fail(s, x, "a class");
}

static Status read_weight(const Settings *s, const Setting *x, LossSpec *l)
{
    l->weight_file = x->value;
    return x->value ? OK : setting_fail(s, x, "a file with a weight for each class: weight=w.npy");
}

static Status read_sample_weight(const Settings *s, const Setting *x, LossSpec *l)
{
    l->sample_weight = x->value;
    return x->value ? OK : setting_fail(s, x, "the name of an input to add");
}

static Status read_delta(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_real(s, x, 1e-12, INFINITY, &l->delta);
}

static Status read_gamma(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_real(s, x, 0, INFINITY, &l->gamma);
}

static Status read_factor(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_real(s, x, 0, INFINITY, &l->factor);
}

static Status read_soft(const Settings *s, const Setting *x, LossSpec *l)
{
    return setting_bool(s, x, &l->soft);
}

static Status read_reduction(const Settings *s, const Setting *x, LossSpec *l)
{
    l->sums = x->value && strcmp(x->value, "sum") == 0;
    return l->sums || (x->value && strcmp(x->value, "mean") == 0) ? OK : setting_fail(s, x, "mean or sum");
}

static const struct {
    const char *key;
    unsigned kinds;
    Status (*read)(const Settings *s, const Setting *x, LossSpec *l);
} keys[] = {
    { "axis", CLASSES, read_axis },
    { "label_smoothing", SOFT, read_smoothing },
    { "ignore_index", CLASSES, read_ignored },
    { "weight", WEIGHED, read_weight },
    { "pos_weight", 1 << LOSS_BCE_LOGITS, read_weight },
    { "soft", SOFT, read_soft },
    { "sample_weight", CLASSES | EACH, read_sample_weight },
    { "delta", 1 << LOSS_HUBER, read_delta },
    { "beta", 1 << LOSS_HUBER, read_delta },
    { "gamma", 1 << LOSS_FOCAL | 1 << LOSS_BCE_LOGITS, read_gamma },
    { "reduction", CLASSES | EACH, read_reduction },
    { "factor", ANY & ~(1 << LOSS_EXTERNAL), read_factor },
};

static Status unknown_key(const Settings *s, const Setting *x, const LossSpec *l)
{
    const char *known[COUNT(keys)];
    size_t n = 0;
    for (size_t i = 0; i < COUNT(keys); i++)
        if (keys[i].kinds >> l->kind & 1)
            known[n++] = keys[i].key;
    return setting_unknown(s, x, n, known);
}

/* What has no value is the name of an output, but for keys that say enough alone. */
static Status read_setting(const Settings *s, const Setting *x, LossSpec *l, const char **outputs)
{
    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i].key, x->key) == 0 && keys[i].kinds >> l->kind & 1 && (x->value || keys[i].read == read_soft))
            return keys[i].read(s, x, l);
    if (x->value)
        return unknown_key(s, x, l);
    outputs[l->n_outputs++] = x->key;
    return OK;
}

/* "kind,key=value" means "kind:key=value". */
static const char *with_colon(Arena *arena, const char *text)
{
    char *copy = arena_string(arena, text);
    const size_t at = strcspn(copy, ":,");
    if (copy[at])
        copy[at] = ':';
    return copy;
}

static double usual_gamma(LossKind kind)
{
    return kind == LOSS_FOCAL ? 2 : 0;
}

LossSpec loss_of(LossKind kind)
{
    return (LossSpec){ .kind = kind, .factor = 1, .delta = 1, .gamma = usual_gamma(kind), .ignore_index = IGNORED };
}

const char *loss_word(LossKind kind)
{
    return words[kind];
}

const char *loss_what(LossKind kind)
{
    return meanings[kind];
}

size_t loss_settings(LossKind kind, const char **settings, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(keys) && n < most; i++)
        if (keys[i].kinds >> kind & 1)
            settings[n++] = keys[i].key;
    return n;
}

static Status wants_outputs(const Settings *s, const LossSpec *l)
{
    const bool named = l->kind == LOSS_OUTPUT || l->kind == LOSS_EXTERNAL;
    Place place = NOWHERE;
    place.where = s->option;
    if (named && !l->n_outputs)
        return fail_as(s->diag, USAGE, place, "%s of which output? (%s:NAME)", s->kind, s->kind);
    if (l->kind != LOSS_EXTERNAL && l->n_outputs > 1)
        return fail_as(s->diag, USAGE, place, "%s: %s and %s, one output is wanted", s->kind, l->outputs[0],
                       l->outputs[1]);
    return OK;
}

Status loss_read(LossSpec *l, const char *text, Arena *arena, Diag *diag)
{
    Settings s;
    TRY(settings_read(&s, diag, arena, "--loss", with_colon(arena, text)));
    const int kind = settings_kind(&s, "loss", COUNT(words), words);
    if (kind < 0)
        return USAGE;
    const char **outputs = NEWS(arena, const char *, s.n + 1);
    *l = loss_of((LossKind)kind);
    l->outputs = outputs;
    for (size_t i = 0; i < s.n; i++)
        TRY(read_setting(&s, &s.list[i], l, outputs));
    return wants_outputs(&s, l);
}

static void add_number(Text *t, const char *key, double v, double usual)
{
    char number[NUMBER_TEXT];
    if (v == usual)
        return;
    f64_to_text(number, v);
    text_printf(t, ",%s=%s", key, number);
}

const char *loss_text(Arena *arena, const LossSpec *l)
{
    Text t;
    text_open(&t, arena);
    text_add(&t, words[l->kind]);
    for (size_t i = 0; i < l->n_outputs; i++)
        text_printf(&t, "%c%s", i ? ',' : ':', l->outputs[i]);
    if (l->has_axis)
        text_printf(&t, ",axis=%" PRId64, l->axis);
    add_number(&t, "label_smoothing", l->label_smoothing, 0);
    if (l->ignore_index != IGNORED)
        text_printf(&t, ",ignore_index=%" PRId64, l->ignore_index);
    if (l->weight_file)
        text_printf(&t, ",weight=%s", l->weight_file);
    if (l->soft)
        text_add(&t, ",soft=true");
    if (l->sample_weight)
        text_printf(&t, ",sample_weight=%s", l->sample_weight);
    add_number(&t, "delta", l->delta, 1);
    add_number(&t, "gamma", l->gamma, usual_gamma(l->kind));
    if (l->sums)
        text_add(&t, ",reduction=sum");
    add_number(&t, "factor", l->factor, 1);
    return text_get(&t);
}
