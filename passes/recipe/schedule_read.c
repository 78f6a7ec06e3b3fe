#include "passes/recipe/schedule_read.h"

#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "passes/optimizers.def"
#include "passes/recipe/settings.h"

enum { SCHEDULE_KEYS = 6 };

typedef struct Plan {
    const char *word;
    ScheduleKind kind;
    const char *keys[SCHEDULE_KEYS]; /* ended by null */
} Plan;

static const Plan plans[] = {
#define PLAN(word, kind, ...) { #word, SCHEDULE_##kind, __VA_ARGS__ },
    SCHEDULES(PLAN)
#undef PLAN
};

/* Numbers of steps: 30/60/90, or [30,60,90]. */
static Status read_steps(const Settings *s, const Setting *x, Schedule *to)
{
    static const char wanted[] = "counts of steps, as 30/60/90";
    const char *p = x->value ? x->value : "";
    int64_t *at = NEWS(s->arena, int64_t, strlen(p) + 1);
    const bool bracket = *p == '[' || *p == '(';
    for (p += bracket; *p && *p != ']' && *p != ')';) {
        const size_t n = strcspn(p, "/,)]");
        const size_t blank = strspn(p, " ");
        if (blank >= n || !i64_from_text(p + blank, n - blank, &at[to->n_at]) || at[to->n_at] < 1)
            return setting_fail(s, x, wanted);
        to->n_at++;
        p += n;
        p += *p == '/' || *p == ',';
    }
    to->at = at;
    return to->n_at ? OK : setting_fail(s, x, wanted);
}

static Status set_schedule(Schedule *to, const Settings *s, const Plan *plan, Setting x)
{
    const struct {
        const char *key;
        int64_t *count;
        double *real;
        double least, below;
    } fields[] = {
        { "warmup", &to->warmup, NULL, 0, 0 },
        { "total", &to->total, NULL, 0, 0 },
        { "every", &to->every, NULL, 0, 0 },
        { "factor", NULL, &to->factor, 0, INFINITY },
        { "warmup_ratio", NULL, &to->warmup_ratio, 0, 1 },
        { "min_lr", NULL, &to->min_lr, 0, INFINITY },
        { "div_factor", NULL, &to->div_factor, 1, INFINITY },
        { "final_div_factor", NULL, &to->final_div_factor, 1, INFINITY },
    };
    size_t n = 0;
    x.key = setting_ours(x.key);
    while (n < SCHEDULE_KEYS && plan->keys[n] && strcmp(plan->keys[n], x.key) != 0)
        n++;
    if (n < SCHEDULE_KEYS && plan->keys[n] && strcmp(x.key, "at") == 0)
        return read_steps(s, &x, to);
    for (size_t i = 0; n < SCHEDULE_KEYS && plan->keys[n] && i < COUNT(fields); i++)
        if (strcmp(fields[i].key, x.key) == 0)
            return fields[i].count ? setting_count(s, &x, fields[i].count)
                                   : setting_real(s, &x, fields[i].least, fields[i].below, fields[i].real);
    for (n = 0; n < SCHEDULE_KEYS && plan->keys[n];)
        n++;
    return setting_unknown(s, &x, n, plan->keys);
}

Status schedule_read(Schedule *to, const char *text, Arena *arena, Diag *diag)
{
    Settings s;
    const char *words[COUNT(plans)];
    for (size_t i = 0; i < COUNT(plans); i++)
        words[i] = plans[i].word;
    TRY(settings_read(&s, diag, arena, "--schedule", text));
    const int plan = settings_kind(&s, "schedule", COUNT(plans), words);
    if (plan < 0)
        return USAGE;
    *to = (Schedule){ .kind = plans[plan].kind, .factor = 0.1, .div_factor = 25, .final_div_factor = 1e4 };
    for (size_t i = 0; i < s.n; i++)
        TRY(set_schedule(to, &s, &plans[plan], s.list[i]));
    if (to->kind == SCHEDULE_ONECYCLE && !to->warmup && to->warmup_ratio == 0)
        to->warmup_ratio = 0.3;
    if (to->kind == SCHEDULE_STEP && !to->every)
        return setting_fail(&s, &(Setting){ "every", NULL }, "a count of steps, 1 or more");
    if (to->kind == SCHEDULE_MULTISTEP && !to->n_at)
        return setting_fail(&s, &(Setting){ "at", NULL }, "counts of steps, as 30/60/90");
    return OK;
}

size_t schedule_kinds(void)
{
    return COUNT(plans);
}

const char *schedule_kind(size_t i)
{
    return plans[i].word;
}

size_t schedule_settings(size_t i, const char **settings, size_t most)
{
    size_t n = 0;
    for (; n < SCHEDULE_KEYS && n < most && plans[i].keys[n]; n++)
        settings[n] = plans[i].keys[n];
    return n;
}
