/* What is told of weights that are kept in few bits: a table to people, a line of each to the log, numbers to TensorBoard,
 * and a warning of a weight that learns nothing. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/train/watch_codes.h"

enum {
    MOST_ROWS = 12,        /* of the table, unless -vv asks for all */
    IDLE_STEPS = 100,      /* in a row that were to change numbers and changed no code: the weight learns nothing */
    IDLE_UPDATES = 100000, /* so many, too, where chance may yet change one */
    IDLE_CODES = 512,      /* the same of codes that are looked at now and then */
    NAME_COLUMNS = 32,     /* of a row */
};

static const char *weight_name(const Trainer *t, const CodesWatched *w)
{
    const char *path = step_path(t->step, w->weight->name);
    return path ? path : w->weight->name;
}

static double part(int64_t n, int64_t of)
{
    return of ? (double)n / (double)of : (double)NAN;
}

/* ---- people ---- */

static const char *percent(Arena *arena, double x)
{
    return isnan(x) ? "-" : arena_printf(arena, "%.3g %%", 100 * x);
}

static const char *moved_by(Arena *arena, double x)
{
    return isnan(x) ? "-" : arena_printf(arena, "%+.2g %%", 100 * x);
}

/* The share of codes that a step changes: of all steps since the last report where they are counted. */
static double changed(const CodesWatched *w)
{
    return w->steps ? (double)w->changes / ((double)w->elements * (double)w->steps) : w->changed;
}

static Status tell_row(Trainer *t, const CodesWatched *w)
{
    Arena *arena = &t->cx->scratch;
    return out_printf(t->c->out, "  %-*s %-5s %9s %9s %9s %9s\n", NAME_COLUMNS, name_text(arena, weight_name(t, w)),
                      dtype_name(w->weight->type->dtype), percent(arena, part(w->below, w->updates)),
                      percent(arena, changed(w)), percent(arena, w->ends), moved_by(arena, w->drift));
}

/* Whether a is told before b: what loses more, then what changes less. */
static bool is_worse(const CodesWatched *a, const CodesWatched *b)
{
    const double x = a->updates ? part(a->below, a->updates) : -1, y = b->updates ? part(b->below, b->updates) : -1;
    return x != y ? x > y : changed(a) < changed(b);
}

static const CodesWatched **sorted(Trainer *t, size_t most)
{
    const CodesWatch *watch = t->codes;
    const CodesWatched **rows = NEWS(&t->cx->scratch, const CodesWatched *, watch->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < watch->n; i++) {
        const CodesWatched *w = &watch->list[i];
        size_t at = n < most ? n++ : most;
        for (; at > 0 && is_worse(w, rows[at - 1]); at--)
            if (at < most)
                rows[at] = rows[at - 1];
        if (at < most)
            rows[at] = w;
    }
    return rows;
}

static Status tell_people(Trainer *t)
{
    const CodesWatch *watch = t->codes;
    const size_t most = t->cx->verbosity < 2 && watch->n > MOST_ROWS ? MOST_ROWS : watch->n;
    if (t->cx->verbosity < 1 || out_is_json(t->c->out))
        return OK;
    const CodesWatched **rows = sorted(t, most);
    const char *head = arena_printf(&t->cx->scratch, "step %" PRId64, t->done);
    TRY(out_printf(t->c->out, "%-16s %-*s %-5s %9s %9s %9s %9s\n", "codes", NAME_COLUMNS - 15 + 1, head, "", "below",
                   "changed", "ends", "scales"));
    for (size_t i = 0; i < most; i++)
        TRY(tell_row(t, rows[i]));
    if (most < watch->n)
        return out_printf(t->c->out, "  and %zu with fewer below half a step   -vv, --log\n", watch->n - most);
    return OK;
}

/* ---- machines ---- */

static LogValue known(double x)
{
    return isnan(x) ? logged_text(NULL) : logged_f32((float)x);
}

static LogValue counted(const CodesWatched *w, int64_t n)
{
    return w->steps ? logged_int(n) : logged_text(NULL);
}

static Status tell_log(Trainer *t, const CodesWatched *w)
{
    const LogCodes line = { .step = logged_int(t->done),
                            .weight = logged_text(weight_name(t, w)),
                            .changed = logged_f32((float)w->changed),
                            .moved = logged_f32((float)w->moved),
                            .ends = known(w->ends),
                            .drift = known(w->drift),
                            .steps = counted(w, w->steps),
                            .updates = counted(w, w->updates),
                            .below = counted(w, w->below),
                            .changes = counted(w, w->changes) };
    return train_log_codes(t, &line);
}

static Status tell_board(Trainer *t)
{
    size_t n = 0;
    const CodesWatch *watch = t->codes;
    Arena *arena = &t->cx->scratch;
    if (!option_text(&t->c->line, OPT_tensorboard))
        return OK;
    BoardScalar *all = NEWS(arena, BoardScalar, 3 * watch->n);
    for (size_t i = 0; i < watch->n; i++) {
        const CodesWatched *w = &watch->list[i];
        const char *name = weight_name(t, w);
        all[n++] = (BoardScalar){ arena_printf(arena, "changed/%s", name), (float)changed(w) };
        if (w->updates)
            all[n++] = (BoardScalar){ arena_printf(arena, "below/%s", name), (float)part(w->below, w->updates) };
        if (!isnan(w->ends))
            all[n++] = (BoardScalar){ arena_printf(arena, "ends/%s", name), (float)w->ends };
    }
    return board_scalars(&t->board, train_wall_clock(), t->done, all, n);
}

/* ---- warnings ---- */

/* Whether a gradient arrives at it: decay alone is no learning. */
static bool has_gradient(Trainer *t, const CodesWatched *w)
{
    SessionValue v;
    const Tensor *g = session_find(t->run, w->weight->name, &v) && v.state ? session_gradient(t->run, v.state) : NULL;
    bool some = false;
    for (int64_t i = 0; g && !some && i < tensor_elements(g); i++)
        some = tensor_get_f64(g, i) != 0;
    return some;
}

/* What to write instead: what rounds to the nearest may round by chance. */
static void propose(Trainer *t, Message *m, const CodesWatched *w)
{
    Arena *arena = &t->cx->scratch;
    static const char nearest[] = ":rne:";
    const char *words = codes_words(t, w), *at = words ? strstr(words, nearest) : NULL;
    const char *name = name_text(arena, weight_name(t, w));
    message_try(m, "a higher --lr");
    if (at)
        message_try(m, "--quant-op '%s=w=%.*s:sr:%s', which rounds by chance", name, (int)(at - words), words,
                    at + sizeof nearest - 1);
    else if (words)
        message_try(m, "--quant-op '%s=w=off', which lets it be f32", name);
    else if (!w->ranged)
        message_try(m, "the model with parameters of f32, and --amp bf16");
}

/* By all updates, where the step counts them; else by codes that were looked at. */
static bool is_idle(const CodesWatched *w)
{
    if (!w->counts.name)
        return !w->moved && w->standing && (!w->by_chance || w->standing >= IDLE_CODES);
    return w->idle >= IDLE_STEPS && (!w->by_chance || w->idle_updates >= IDLE_UPDATES);
}

/* ", its scales moved by -1.2 % at most" since the last report: all that a weight with such codes can learn. */
static const char *scales_moved(Arena *arena, const CodesWatched *w)
{
    return w->drift == 0 || isnan(w->drift) ? ""
                                            : arena_printf(arena, "; scales moved by %+.2g %% at most", 100 * w->drift);
}

static Status warn_idle(Trainer *t, CodesWatched *w)
{
    Arena *arena = &t->cx->scratch;
    const char *name = name_text(arena, weight_name(t, w)), *what = w->ranged ? "codes" : "numbers";
    if (w->warned || !is_idle(w) || !has_gradient(t, w))
        return OK;
    w->warned = true;
    const char *evidence =
        w->counts.name
            ? arena_printf(arena,
                           "%s updates in %s steps changed none of its %s %s; %.3g %% of them were below half a step",
                           grouped(arena, w->idle_updates), grouped(arena, w->idle), grouped(arena, w->elements), what,
                           100 * part(w->idle_below, w->idle_updates))
            : arena_printf(arena,
                           "of %s %s that were looked at %s have gradients, and none has changed since two reports",
                           grouped(arena, w->n), what, grouped(arena, w->standing));
    Message *m = message_new(t->d, SEVERITY_WARNING, OK, NOWHERE, "step %" PRId64 ": %s stands still: %s%s", t->done,
                             name, evidence, scales_moved(arena, w));
    propose(t, m, w);
    return message_send(m);
}

/* ---- a report ---- */

Status codes_tell(Trainer *t)
{
    const CodesWatch *watch = t->codes;
    TRY(tell_people(t));
    TRY(tell_board(t));
    for (size_t i = 0; i < watch->n; i++) {
        TRY(tell_log(t, &watch->list[i]));
        TRY(warn_idle(t, &watch->list[i]));
    }
    return OK;
}
