#include "api/train/run_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number_text.h"
#include "base/str.h"

static Status refuse(Diag *d, Option o, const char *value, const char *form)
{
    Place place = ON_COMMAND_LINE;
    place.where = option_specs[o].name;
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, place, "'%s' is not understood", value);
    message_try(m, "%s %s", option_specs[o].name, form);
    return message_send(m);
}

/* ---- time ---- */

static const struct {
    const char *unit;
    double seconds;
} units[] = { { "min", 60 }, { "ms", 1e-3 }, { "d", 86400 }, { "h", 3600 }, { "m", 60 }, { "s", 1 } };

static bool read_number(const char **p, double *x)
{
    char *end;
    if (!((**p >= '0' && **p <= '9') || **p == '.'))
        return false;
    *x = strtod(*p, &end);
    *p = end;
    return isfinite(*x);
}

bool duration_read(const char *text, double *seconds)
{
    double sum = 0, x;
    if (!*text)
        return false;
    for (const char *p = text; *p;) {
        size_t i = 0;
        if (!read_number(&p, &x))
            return false;
        while (i < COUNT(units) && strncmp(p, units[i].unit, strlen(units[i].unit)) != 0)
            i++;
        if (i == COUNT(units) && *p)
            return false;
        sum += x * (i < COUNT(units) ? units[i].seconds : 1);
        p += i < COUNT(units) ? strlen(units[i].unit) : 0;
    }
    *seconds = sum;
    return true;
}

const char *duration_text(Arena *arena, double seconds)
{
    const long s = seconds < 0 ? 0 : (long)(seconds + 0.5);
    if (s >= 3600)
        return arena_printf(arena, "%ldh%02ldm", s / 3600, s / 60 % 60);
    if (s >= 60)
        return arena_printf(arena, "%ldm%02lds", s / 60, s % 60);
    return arena_printf(arena, "%lds", s);
}

static Status read_duration(Diag *d, const CommandLine *line, Option o, double *seconds)
{
    const char *text = option_text(line, o);
    if (!text || duration_read(text, seconds))
        return OK;
    return refuse(d, o, text, "3h50m, 90s, 10min");
}

/* ---- how often ---- */

/* "500", "10min", "1epoch", or several: "1epoch,10min". */
static bool read_interval(const char *text, Interval *v)
{
    while (*text) {
        const size_t n = strcspn(text, ",");
        char part[64], *end;
        double x;
        if (n == 0 || n >= sizeof part)
            return false;
        memcpy(part, text, n);
        part[n] = 0;
        x = strtod(part, &end);
        if (end == part || !(x > 0))
            return false;
        if (!*end && x == floor(x) && x < 1e15)
            v->steps = (int64_t)x;
        else if ((strcmp(end, "epoch") == 0 || strcmp(end, "epochs") == 0) && x == floor(x) && x < 1e15)
            v->epochs = (int64_t)x;
        else if (!*end || !duration_read(part, &v->seconds))
            return false;
        text += n + (text[n] == ',');
    }
    return true;
}

static Status read_every(Diag *d, const CommandLine *line, RunOptions *o)
{
    const char *text = option_text(line, OPT_every);
    static const double ten_minutes = 600;
    o->every_said = text != NULL;
    if (!text)
        o->every = (Interval){ .epochs = 1, .seconds = ten_minutes };
    else if (!*text || !read_interval(text, &o->every))
        return refuse(d, OPT_every, text, "500 (steps), 10min, 1epoch, or 1epoch,10min");
    return OK;
}

/* ---- conditions ---- */

static Status read_stop(Diag *d, Arena *arena, const CommandLine *line, RunOptions *o)
{
    static const char *const others[] = { "loss", "grad_norm", "lr", "val_loss", "step" };
    const char *text = option_text(line, OPT_stop_if),
               *form = "'loss>10', 'val_loss<0.1', 'accuracy>0.99' or 'step>500'";
    if (!text)
        return OK;
    const size_t n = strcspn(text, "<>");
    char *end;
    MetricKind kind;
    bool known = false;
    o->stop.what = arena_copy(arena, text, n);
    o->stop.above = text[n] == '>';
    o->stop.bound = text[n] ? strtod(text + n + 1, &end) : 0;
    for (size_t i = 0; i < COUNT(others); i++)
        known |= strcmp(o->stop.what, others[i]) == 0;
    if (!text[n] || end == text + n + 1 || *end || !(known || metric_find(o->stop.what, &kind)))
        return refuse(d, OPT_stop_if, text, form);
    return OK;
}

/* 1e-6:1:100 */
static Status read_sweep(Diag *d, const CommandLine *line, RunOptions *o)
{
    const char *text = option_text(line, OPT_lr_sweep), *second, *third;
    if (!text)
        return OK;
    second = strchr(text, ':');
    third = second ? strchr(second + 1, ':') : NULL;
    if (third && f64_from_text(text, (size_t)(second - text), &o->sweep.from) &&
        f64_from_text(second + 1, (size_t)(third - second - 1), &o->sweep.to) &&
        i64_from_text(third + 1, strlen(third + 1), &o->sweep.steps) && o->sweep.from > 0 &&
        o->sweep.to > o->sweep.from && isfinite(o->sweep.to) && o->sweep.steps >= 3)
        return OK;
    return refuse(d, OPT_lr_sweep, text, "FROM:TO:STEPS, as 1e-6:1:100: rates above 0, at least 3 steps");
}

static Status read_nonfinite(Diag *d, const CommandLine *line, RunOptions *o)
{
    const char *text = option_text(line, OPT_on_nonfinite);
    o->skips_said = text != NULL;
    if (!text || strcmp(text, "stop") == 0)
        return OK;
    if (strncmp(text, "skip", 4) == 0 && (!text[4] || text[4] == ':')) {
        o->skips = 16;
        if (!text[4] || (i64_from_text(text + 5, strlen(text + 5), &o->skips) && o->skips > 0))
            return OK;
    }
    return refuse(d, OPT_on_nonfinite, text, "stop, or skip:16");
}

/* ---- all of it ---- */

static FeedLast read_last(const CommandLine *line)
{
    const char *text = option_text(line, OPT_last);
    return !text || strcmp(text, "drop") == 0 ? FEED_DROP : strcmp(text, "pad") == 0 ? FEED_PAD : FEED_KEEP;
}

/* --metric, which may come several times: the first one is the one that is judged by. */
static void read_metrics(const CommandLine *line, RunOptions *o)
{
    const char *text;
    MetricKind kind;
    for (size_t at = 0; (text = option_next(line, OPT_metric, &at));) {
        bool again = !metric_find(text, &kind) || (o->has_metric && o->metric == kind);
        for (size_t i = 0; i < o->n_more; i++)
            again |= o->more[i] == kind;
        if (again)
            continue;
        if (o->has_metric)
            o->more[o->n_more++] = kind;
        else
            o->metric = kind;
        o->has_metric = true;
    }
}

Status run_options_read(Diag *d, Arena *arena, const CommandLine *line, RunOptions *o)
{
    const char *best = option_text(line, OPT_best), *resume = option_text(line, OPT_resume),
               *save_error = option_text(line, OPT_on_save_error), *convert = option_text(line, OPT_convert);
    *o = (RunOptions){ .epochs = option_count(line, OPT_epochs, 0),
                       .steps = option_count(line, OPT_steps, 0),
                       .shadow = option_count(line, OPT_shadow, 0),
                       .shuffle = !option_given(line, OPT_no_shuffle),
                       .last = read_last(line),
                       .seed = (uint64_t)option_count(line, OPT_seed, 0),
                       .grace = 25,
                       .keep = (int)option_count(line, OPT_keep, 3),
                       .histograms = option_count(line, OPT_histograms, 0),
                       .patience = option_count(line, OPT_patience, 0),
                       .by_accuracy = best && strcmp(best, "val_accuracy") == 0,
                       .no_best = best && strcmp(best, "none") == 0,
                       .resume = option_given(line, OPT_resume) > 0,
                       .must_resume = resume && strcmp(resume, "must") == 0,
                       .convert_states = convert && strcmp(convert, "weights") != 0,
                       .convert_weights = convert && strcmp(convert, "states") != 0,
                       .overwrite = option_given(line, OPT_overwrite) > 0,
                       .no_save = option_given(line, OPT_no_save) > 0,
                       .save_error_stops = save_error && strcmp(save_error, "stop") == 0 };
    if (o->histograms && !option_given(line, OPT_tensorboard)) {
        Place place = ON_COMMAND_LINE;
        place.where = option_specs[OPT_histograms].name;
        Message *m = message_new(d, SEVERITY_ERROR, USAGE, place, "are drawn by TensorBoard");
        message_try(m, "--tensorboard board --histograms %" PRId64, o->histograms);
        return message_send(m);
    }
    if (o->epochs && o->steps)
        return fail_as(d, USAGE, ON_COMMAND_LINE, "--epochs and --steps: one of the two says when training ends");
    if (o->overwrite && o->resume)
        return fail_as(d, USAGE, ON_COMMAND_LINE, "--overwrite: a run that goes on (--resume) replaces nothing");
    if (convert && !o->resume)
        return fail_as(d, USAGE, ON_COMMAND_LINE, "--convert: of what? (--resume --checkpoint PATH)");
    if (option_text(line, OPT_keep) && o->keep < 2)
        return fail_as(d, USAGE, ON_COMMAND_LINE, "--keep %d: at least 2 checkpoints are kept", o->keep);
    if (option_text(line, OPT_patience) && !o->patience)
        return fail_as(d, USAGE, ON_COMMAND_LINE, "--patience 0: at least one validation has to come");
    if (o->no_best && (o->patience || option_given(line, OPT_best_output)))
        return fail_as(d, USAGE, ON_COMMAND_LINE, "--best none: nothing is the best for %s",
                       o->patience ? "--patience" : "--best-output");
    read_metrics(line, o);
    TRY(read_duration(d, line, OPT_max_time, &o->max_seconds));
    TRY(read_duration(d, line, OPT_grace, &o->grace));
    TRY(read_every(d, line, o));
    TRY(read_sweep(d, line, o));
    TRY(read_stop(d, arena, line, o));
    return read_nonfinite(d, line, o);
}
