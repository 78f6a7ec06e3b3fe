#include "passes/recipe/scale_read.h"

#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "passes/recipe/settings.h"

/* ---- the tables ---- */

static const LossScale defaults = { .kind = SCALE_DYNAMIC,
                                    .init = 65536,
                                    .growth = 2,
                                    .backoff = 0.5,
                                    .least = 1,
                                    .most = 16777216,
                                    .interval = 2000,
                                    .hysteresis = 1,
                                    .fast_start = true };

/* What a setting fills. */
typedef enum Field { FIELD_POWER, FIELD_COUNT, FIELD_BOOL } Field;

typedef struct Key {
    const char *word;
    Field field;
    size_t at;
    double from, to; /* of a power of two */
} Key;

static const Key keys[] = {
    { "init", FIELD_POWER, offsetof(LossScale, init), 0x1p-64, 0x1p64 },
    { "growth", FIELD_POWER, offsetof(LossScale, growth), 2, 0x1p32 },
    { "backoff", FIELD_POWER, offsetof(LossScale, backoff), 0x1p-32, 0.5 },
    { "min", FIELD_POWER, offsetof(LossScale, least), 0x1p-64, 0x1p64 },
    { "max", FIELD_POWER, offsetof(LossScale, most), 0x1p-64, 0x1p64 },
    { "interval", FIELD_COUNT, offsetof(LossScale, interval), 0, 0 },
    { "hysteresis", FIELD_COUNT, offsetof(LossScale, hysteresis), 0, 0 },
    { "refills", FIELD_BOOL, offsetof(LossScale, refills), 0, 0 },
    { "fast_start", FIELD_BOOL, offsetof(LossScale, fast_start), 0, 0 },
    { "fresh", FIELD_BOOL, offsetof(LossScale, fresh), 0, 0 },
};

/* What others call a setting, and we. */
static const struct {
    const char *theirs, *ours;
} spellings[] = {
    { "init_scale", "init" },
    { "initial_scale", "init" },
    { "growth_factor", "growth" },
    { "backoff_factor", "backoff" },
    { "growth_interval", "interval" },
    { "scale_window", "interval" },
    { "loss_scale_window", "interval" },
    { "dynamic_growth_steps", "interval" },
    { "period", "interval" },
    { "min_scale", "min" },
    { "min_loss_scale", "min" },
    { "max_scale", "max" },
    { "max_loss_scale", "max" },
    { "delayed_shift", "hysteresis" },
    { "consecutive_hysteresis", "refills" },
};

/* ---- numbers ---- */

static bool is_power(double v, double from, double to)
{
    int exponent;
    return v > 0 && isfinite(v) && frexp(v, &exponent) == 0.5 && v >= from && v <= to;
}

/* 65536, or 2^16. */
static bool read_number(const char *text, double *v)
{
    int64_t exponent;
    if (text && strncmp(text, "2^", 2) == 0 && i64_from_text(text + 2, strlen(text) - 2, &exponent) &&
        exponent > -100 && exponent < 100) {
        *v = ldexp(1, (int)exponent);
        return true;
    }
    return text && f64_from_text(text, strlen(text), v);
}

/* 0.5, 2, 2^64. */
static const char *power_text(Arena *arena, double v)
{
    char number[NUMBER_TEXT];
    int exponent;
    frexp(v, &exponent);
    f64_to_text(number, v);
    return v < 0.01 || v > 1e6 ? arena_printf(arena, "2^%d", exponent - 1) : arena_string(arena, number);
}

static Status read_power(const Settings *s, const Setting *x, double from, double to, double *out)
{
    if (read_number(x->value, out) && is_power(*out, from, to))
        return OK;
    return setting_fail(s, x,
                        arena_printf(s->arena, "a power of two from %s to %s, as 1024 or 2^10",
                                     power_text(s->arena, from), power_text(s->arena, to)));
}

/* ---- settings ---- */

static Status set_key(LossScale *to, const Settings *s, const Setting *x)
{
    const char *known[COUNT(keys) + COUNT(spellings)];
    for (size_t i = 0; i < COUNT(spellings); i++)
        known[COUNT(keys) + i] = spellings[i].theirs;
    for (size_t i = 0; i < COUNT(keys); i++) {
        void *at = (char *)to + keys[i].at;
        known[i] = keys[i].word;
        if (strcmp(keys[i].word, x->key) != 0)
            continue;
        if (keys[i].field == FIELD_POWER)
            return read_power(s, x, keys[i].from, keys[i].to, at);
        if (keys[i].field == FIELD_BOOL)
            return setting_bool(s, x, at);
        TRY(setting_count(s, x, at));
        return *(int64_t *)at > 0 ? OK : setting_fail(s, x, "a count, 1 or more");
    }
    return setting_unknown(s, x, COUNT(known), known);
}

/* Settings that say two things, or one in other words. */
static Status set_one(LossScale *to, const Settings *s, Setting x)
{
    const char *v = x.value ? x.value : "";
    double factor;
    for (size_t i = 0; i < COUNT(spellings); i++)
        if (strcmp(spellings[i].theirs, x.key) == 0)
            x.key = spellings[i].ours;
    if (strcmp(x.key, "initial_scale_power") == 0)
        return set_key(to, s, &(Setting){ "init", arena_printf(s->arena, "2^%s", v) });
    if (strcmp(x.key, "scale_factor") != 0 && strcmp(x.key, "factor") != 0)
        return set_key(to, s, &x);
    TRY(read_power(s, &x, 2, 0x1p32, &factor));
    to->growth = factor;
    to->backoff = 1 / factor;
    return OK;
}

static Status check_together(const LossScale *l, const Settings *s)
{
    const Place place = { .where = s->option, .byte = -1 };
    if (l->least <= l->init && l->init <= l->most)
        return OK;
    return fail_as(s->diag, USAGE, place, "dynamic: init %s is not between min %s and max %s",
                   power_text(s->arena, l->init), power_text(s->arena, l->least), power_text(s->arena, l->most));
}

/* "static:1024", "static:scale=1024" */
static Status set_static(LossScale *to, const Settings *s)
{
    const Setting *x = s->n ? &s->list[0] : NULL;
    const bool bare = x && !x->value, named = x && x->value && strcmp(x->key, "scale") == 0;
    if (s->n > 2 || (s->n && !bare && !named) || (s->n == 2 && strcmp(s->list[1].key, "fresh") != 0))
        return setting_unknown(s, &s->list[s->n - 1], 2, (const char *const[]){ "scale", "fresh" });
    const Setting scale = { "scale", !x ? NULL : bare ? x->key : x->value };
    TRY(read_power(s, &scale, 0x1p-64, 0x1p64, &to->init));
    return s->n == 2 ? setting_bool(s, &s->list[1], &to->fresh) : OK;
}

Status loss_scale_read(LossScale *to, const char *text, Arena *arena, Diag *diag)
{
    static const char *const words[] = { "off", "static", "dynamic" };
    static const ScaleKind kinds[] = { SCALE_OFF, SCALE_STATIC, SCALE_DYNAMIC };
    Settings s;
    double number;
    *to = defaults;
    TRY(settings_read(&s, diag, arena, "--loss-scale", text));
    if (read_number(s.kind, &number)) /* as Apex and fairseq have it: the scale itself */
        TRY(settings_read_list(&s, diag, arena, "--loss-scale", "static", s.kind));
    const int kind = settings_kind(&s, "way of scaling", COUNT(words), words);
    if (kind < 0)
        return USAGE;
    to->kind = kinds[kind];
    if (to->kind == SCALE_STATIC)
        return set_static(to, &s);
    if (to->kind == SCALE_OFF && s.n)
        return setting_fail(&s, &s.list[0], "nothing: off has no settings");
    for (size_t i = 0; i < s.n; i++)
        TRY(set_one(to, &s, s.list[i]));
    return to->kind == SCALE_DYNAMIC ? check_together(to, &s) : OK;
}

/* ---- what it means ---- */

static bool is_narrow_range(const Recipe *r)
{
    return r && r->precision.on && r->precision.narrow == F16;
}

LossScale recipe_loss_scale(const Recipe *r)
{
    LossScale s = defaults;
    if (r && r->precision.scale.kind != SCALE_DEFAULT)
        return r->precision.scale;
    s.kind = is_narrow_range(r) ? SCALE_DYNAMIC : SCALE_OFF;
    return s;
}

bool loss_scale_is_idle(const Recipe *r)
{
    return !is_narrow_range(r) && recipe_loss_scale(r).kind != SCALE_OFF;
}

ScalerRules loss_scale_rules(const LossScale *s)
{
    return (ScalerRules){ .growth = (float)s->growth,
                          .backoff = (float)s->backoff,
                          .least = (float)s->least,
                          .most = (float)s->most,
                          .interval = s->interval,
                          .hysteresis = s->hysteresis,
                          .refills = s->refills,
                          .fast_start = s->fast_start,
                          .dynamic = s->kind == SCALE_DYNAMIC };
}

const char *loss_scale_text(Arena *arena, const LossScale *s)
{
    char number[NUMBER_TEXT];
    f64_to_text(number, s->init);
    if (s->kind == SCALE_OFF)
        return "off";
    if (s->kind == SCALE_DYNAMIC && s->init == defaults.init)
        return "dynamic";
    return arena_printf(arena, s->kind == SCALE_STATIC ? "%s" : "dynamic from %s", number);
}
