#include "fault/attack_laws.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"

/* One complaint at a time. */
static const char *complain(const char *name, const char *what)
{
    static char text[400];
    snprintf(text, sizeof text, "%s %s", name, what);
    return text;
}

static const char *last_part(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool is_temporary(const char *name)
{
    return strstr(name, ".tmp-") != NULL;
}

static bool is_log(const char *name)
{
    const size_t n = strlen(name);
    return n > 6 && strcmp(name + n - 6, ".jsonl") == 0;
}

static bool is_events(const char *name)
{
    return strncmp(last_part(name), "events.out.", 11) == 0;
}

static bool is_lock(const char *name)
{
    return strcmp(last_part(name), ".qcc-lock") == 0;
}

static bool is_checkpoint(const char *name)
{
    return strncmp(last_part(name), "step-", 5) == 0;
}

/* ---- logs ---- */

/* The next step line, without how long it took. */
static bool next_step(const char **p, const char **line, size_t *n)
{
    while (**p) {
        const char *end = strchr(*p, '\n'), *from = *p;
        if (!end)
            return false;
        *p = end + 1;
        if (strncmp(from, "{\"step\":", 8) != 0)
            continue;
        const char *time = strstr(from, ",\"items_per_s\"");
        *line = from;
        *n = (size_t)((time && time < end ? time : end) - from);
        return true;
    }
    return false;
}

/* How many step lines a log has; -1 when they are not those that another begins with. */
static int steps_of(const Entry *log, const Entry *whole)
{
    const char *a = log->bytes, *b = whole->bytes, *x, *y;
    size_t n, m;
    int steps = 0;
    for (; next_step(&a, &x, &n); steps++)
        if (!next_step(&b, &y, &m) || n != m || memcmp(x, y, n) != 0)
            return -1;
    return steps;
}

static bool lines_are_whole(const Entry *log, bool torn)
{
    const char *p = log->bytes;
    while (*p) {
        const char *end = strchr(p, '\n');
        if (!end)
            return torn && p[0] == '{';
        if (p[0] != '{' || end[-1] != '}')
            return false;
        p = end + 1;
    }
    return p == log->bytes + log->n;
}

static const char *law_of_log(const Reference *r, const Entry *log, bool torn)
{
    const Entry *old = tree_find(&r->old, log->name), *new = tree_find(&r->new, log->name);
    if (old && entry_same(old, log))
        return NULL;
    if (!lines_are_whole(log, torn))
        return complain(log->name, "has a line that is not whole");
    const int steps = steps_of(log, new);
    if (steps < 0)
        return complain(log->name, "has other steps than the run");
    if (old && strstr(r->scene->command, "--resume") && steps < steps_of(old, old))
        return complain(log->name, "has lost steps");
    return NULL;
}

/* ---- event files ---- */

static uint64_t little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static bool crc_fits(const unsigned char *p, size_t n)
{
    const uint32_t c = crc32c(p, n);
    return (c >> 15 | c << 17) + 0xa282ead8u == little(p + n, 4);
}

static bool records_are_whole(const Entry *e, bool torn)
{
    enum { HEAD = 12, TAIL = 4 };
    const unsigned char *p = (const unsigned char *)e->bytes;
    for (size_t left = e->n; left;) {
        if (left < HEAD)
            return torn;
        const uint64_t n = little(p, 8);
        if (!crc_fits(p, 8))
            return false;
        if (n > left || left - n < HEAD + TAIL)
            return torn;
        if (!crc_fits(p + HEAD, (size_t)n))
            return false;
        p += HEAD + n + TAIL;
        left -= HEAD + n + TAIL;
    }
    return true;
}

/* ---- files ---- */

static bool is_known(const Reference *r, const Entry *e)
{
    const Entry *old = tree_find(&r->old, e->name), *new = tree_find(&r->new, e->name);
    bool known = (old && entry_same(old, e)) || (new &&entry_same(new, e));
    for (int i = 0; !known && i < r->n_stops; i++) {
        const Entry *stop = tree_find(&r->stops[i], e->name);
        known = stop && entry_same(stop, e);
    }
    return known;
}

/* Where the tensors of a safetensors file begin. */
static size_t head_of(const Entry *e)
{
    enum { PREFIX = 8 };
    const uint64_t n = e->n >= PREFIX ? little((const unsigned char *)e->bytes, PREFIX) : UINT64_MAX;
    return n <= e->n - PREFIX ? PREFIX + (size_t)n : e->n;
}

/* A run that ends while it validates saves the states of that step, and not what validation says of them. */
static bool has_states(const Reference *r, const Entry *e)
{
    bool has = false;
    for (int i = 0; !has && i < r->n_stops; i++) {
        const Entry *stop = tree_find(&r->stops[i], e->name);
        const size_t at = head_of(e), there = stop ? head_of(stop) : 0;
        has = stop && e->n - at == stop->n - there && memcmp(e->bytes + at, stop->bytes + there, e->n - at) == 0;
    }
    return has;
}

/* A link names a file that is there. */
static bool leads_somewhere(const Tree *now, const Entry *link)
{
    char path[2 * LONGEST_NAME];
    const int folder = (int)(last_part(link->name) - link->name);
    snprintf(path, sizeof path, "%.*s%s", folder, link->name, link->bytes);
    return tree_find(now, path) != NULL;
}

/* The words of a step that diverged have the command line in them, which a run that goes on has another of. */
static bool is_words(const char *name)
{
    return strcmp(last_part(name), "options.txt") == 0;
}

static const char *law_of_words(const Entry *e)
{
    const bool whole = strncmp(e->bytes, "command qcc train ", 18) == 0 && strstr(e->bytes, "\ncompiled ") &&
                       e->bytes[e->n - 1] == '\n';
    return whole ? NULL : complain(e->name, "is not whole");
}

static const char *law_of_entry(const Reference *r, const Tree *now, const Entry *e, const Allowed *allowed)
{
    const bool torn = allowed->torn;
    if (is_temporary(e->name))
        return allowed->left ? NULL : complain(e->name, "is left");
    if (is_lock(e->name))
        return NULL;
    if (is_events(e->name) && !tree_find(&r->old, e->name))
        return records_are_whole(e, torn || allowed->cut) ? NULL : complain(e->name, "has a record that is not whole");
    if (is_log(e->name) && tree_find(&r->new, e->name))
        return law_of_log(r, e, torn);
    if (is_words(e->name) && tree_find(&r->new, e->name))
        return law_of_words(e);
    if (e->kind == 'l' && allowed->dangling)
        return NULL;
    if (e->kind == 'l')
        return leads_somewhere(now, e) ? NULL : complain(e->name, "leads nowhere");
    if (allowed->unjudged && is_checkpoint(e->name) && has_states(r, e))
        return NULL;
    return is_known(r, e) ? NULL : complain(e->name, "is neither old nor new");
}

/* Whether a file of before may go. */
static bool may_go(const Reference *r, const char *name)
{
    bool may = is_lock(name) || !tree_find(&r->new, name);
    for (int i = 0; !may && i < r->n_stops; i++)
        may = !tree_find(&r->stops[i], name);
    return may;
}

const char *law_of_files(const Reference *r, const Tree *now, const Allowed *allowed)
{
    for (int i = 0; i < now->n; i++) {
        const char *wrong = law_of_entry(r, now, &now->list[i], allowed);
        if (wrong)
            return wrong;
    }
    for (int i = 0; i < r->old.n; i++)
        if (!tree_find(now, r->old.list[i].name) && !may_go(r, r->old.list[i].name))
            return complain(r->old.list[i].name, "is gone");
    return NULL;
}

/* ---- success ---- */

/* Of the checkpoints of a run the last one counts: which ones stand before it depends on where it stopped. */
static bool is_last_checkpoint(const Reference *r, const Entry *e)
{
    const Entry *last = NULL;
    for (int i = 0; i < r->new.n; i++)
        if (is_checkpoint(r->new.list[i].name))
            last = &r->new.list[i];
    return last && strcmp(last->name, e->name) == 0;
}

static bool has_events(const Reference *r, const Tree *now)
{
    for (int i = 0; i < now->n; i++)
        if (is_events(now->list[i].name) && !tree_find(&r->old, now->list[i].name))
            return true;
    return false;
}

/* What a run says that it cannot do, or has nothing to do for; links are hints, which a run with nothing left to do does
 * not put right. */
static bool is_excused(const Entry *e, const char *said, bool again)
{
    if (e->kind == 'l')
        return again || strstr(said, "cannot be made to point to") || strstr(said, " is not saved");
    if (is_log(e->name))
        return strstr(said, "is not whole: the run went on without it");
    return strstr(said, e->name) && strstr(said, "is not written, this run made no step");
}

/* Of files that belong together those that the new ones do not read are gone. */
static const char *law_of_superseded(const Reference *r, const Tree *now)
{
    for (int i = 0; i < r->old.n; i++)
        if (!tree_find(&r->new, r->old.list[i].name) && tree_find(now, r->old.list[i].name))
            return complain(r->old.list[i].name, "stays");
    return NULL;
}

const char *law_of_success(const Reference *r, const Tree *now, const char *said, bool again)
{
    for (int i = 0; i < r->new.n; i++) {
        const Entry *e = &r->new.list[i], *have = tree_find(now, e->name);
        if (is_lock(e->name) || (is_checkpoint(e->name) && !is_last_checkpoint(r, e)) || is_excused(e, said, again))
            continue;
        if (is_events(e->name) && !tree_find(&r->old, e->name)) {
            if (!has_events(r, now))
                return "there is no event file";
        } else if (!have) {
            return complain(e->name, "is missing");
        } else if (is_words(e->name)) {
            continue;
        } else if (is_log(e->name)) {
            if (steps_of(e, have) != steps_of(e, e))
                return complain(e->name, "has not all steps");
        } else if (!entry_same(e, have) &&
                   !(is_checkpoint(e->name) && strstr(said, " is not saved") && has_states(r, have))) {
            return complain(e->name, "is not the new one");
        }
    }
    return again && r->scene->probe ? law_of_superseded(r, now) : NULL;
}

/* ---- the end ---- */

static bool may_kill(int signal)
{
    return signal == SIGHUP || signal == SIGPIPE || signal == SIGQUIT || signal == SIGXCPU;
}

static bool code_fits(const Reference *r, const Outcome *o)
{
    enum { IO = 5, NO_MEMORY = 7, INTERRUPTED = 130 };
    const Attack *a = &o->attack;
    if (o->code == r->scene->code)
        return true;
    if (a->deed == DEED_SIGNAL)
        return o->ended ? may_kill(a->value) && o->code == 128 + a->value : o->code == INTERRUPTED;
    if (a->target == TARGET_memory)
        return o->code == NO_MEMORY;
    return o->code == IO && a->target != TARGET_thread;
}

const char *law_of_ending(const Reference *r, const Outcome *o)
{
    static char text[100];
    const Attack *a = &o->attack;
    if (o->hangs)
        return "hangs";
    if (a->deed == DEED_KILL || a->deed == DEED_TEAR)
        return NULL;
    snprintf(text, sizeof text, "ends with %s %d", o->ended ? "signal" : "code", o->ended ? o->code - 128 : o->code);
    if (!code_fits(r, o))
        return text;
    const bool twice = a->deed == DEED_SIGNAL && a->from_then_on; /* the second one ends it at once */
    if (!o->ended && o->code && !o->err[0] && !r->scene->code && !twice)
        return "says nothing";
    return NULL;
}

/* ---- files that belong together ---- */

static bool holds_all(const Tree *now, const Tree *then)
{
    for (int i = 0; i < then->n; i++) {
        const Entry *e = tree_find(now, then->list[i].name);
        if (!e || !entry_same(e, &then->list[i]))
            return false;
    }
    return true;
}

bool law_of_sets_is_open(const Reference *r, const Tree *now)
{
    bool open = r->scene->probe && !holds_all(now, &r->old) && !holds_all(now, &r->new);
    for (int i = 0; open && i < r->n_stops; i++)
        open = !holds_all(now, &r->stops[i]);
    return open;
}
