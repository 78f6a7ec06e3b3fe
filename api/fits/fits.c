#include "api/fits/fits.h"

#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/told/memory_told.h"
#include "passes/recipe/optimizer_read.h"

enum { MOST_PROPOSED = 5, MOST_TURNS = 12 };

typedef enum WayHow { GIVE, ADD, SPLIT, HALVE } WayHow;

typedef struct Way {
    Option option;
    WayHow how;
    const char *value, *changes;
} Way;

/* clang-format off */
static const Way ways[] = {
#define WAY(...) { __VA_ARGS__ },
#include "api/fits/ways.def"
#undef WAY
};
/* clang-format on */

typedef struct Setting {
    Option option;
    const char *value, *changes;
} Setting;

/* Whether the model computes for each row of another batch what it did.  That is proved, which runs the model, of the first one that is
 * tried; a step that is compiled to run proves its own. */
typedef enum TakesBatches { NOT_KNOWN, TAKES_THEM, TAKES_NONE } TakesBatches;

/* Options that are tried together, and what the step takes with them. */
typedef struct Trial {
    const Command *c;
    qcc_step *made;   /* the step that does not fit */
    CommandLine said; /* by the line, or by the one that a step was compiled with */
    Setting list[COUNT(ways)];
    size_t n;
    uint64_t bytes;              /* UINT64_MAX: it cannot be compiled so */
    TakesBatches *takes_batches; /* of all trials */
} Trial;

/* ---- bytes ---- */

/* What a model that came as text needs is there already. */
static uint64_t bytes_to_come(const StepMemory *m)
{
    return m->total - m->model;
}

static uint64_t bytes_left(const qcc_context *cx)
{
    return cx->memory.budget > cx->memory.used ? cx->memory.budget - cx->memory.used : 0;
}

static bool does_fit(const Trial *t)
{
    return t->bytes <= bytes_left(t->c->cx);
}

/* ---- one trial ---- */

static Lowering lowering_of(const Trial *t)
{
    Lowering how = t->c->cx->lowering;
    for (size_t i = 0; i < t->n; i++)
        while (t->list[i].option == OPT_remat && strcmp(remat_name(how.remat), t->list[i].value) != 0)
            how.remat++;
    return how;
}

/* Whether an option is decided as a step is compiled, not as it runs. */
static bool is_compiled(const Setting *s)
{
    return s->option != OPT_remat;
}

/* The step once more: of a model by the line with what is tried in place of what it says, of a step by its own options. */
static Status make(const Trial *t, qcc_step **step)
{
    Arena *arena = &t->c->cx->scratch;
    CommandLine line = line_join(arena, &t->said, &(CommandLine){ .verb = t->c->line.verb });
    Text changes;
    text_open(&changes, arena);
    for (size_t i = 0; i < t->n; i++) {
        const Setting *s = &t->list[i];
        if (!is_compiled(s))
            continue;
        text_printf(&changes, "%s%s '%s'", changes.n ? " " : "", option_specs[s->option].name, s->value);
        line_drop(&line, s->option);
        option_add(arena, &line, s->option, s->value);
    }
    if (model_is_step(t->made->model))
        return step_again(t->made, text_get(&changes), step);
    return step_compile(t->made->model, &line, step);
}

static Status count(void *trial)
{
    Trial *t = trial;
    qcc_step *s = t->made;
    bool again = false;
    for (size_t i = 0; i < t->n; i++)
        again |= is_compiled(&t->list[i]);
    if (again)
        TRY(make(t, &s));
    const Lowering how = lowering_of(t);
    const StepMemory m = step_memory_if(s, &how);
    if (s != t->made)
        step_close(s);
    t->bytes = m.estimated ? UINT64_MAX : bytes_to_come(&m);
    return OK;
}

/* What a trial has to say nobody wants to hear: it is one that was not asked for. */
static void hear_nothing(void *user, const Message *m)
{
    (void)user, (void)m;
}

typedef struct Before {
    qcc_context *cx;
    Diag diag;
    uint64_t budget;
    bool weighs;
} Before;

static void go_back(void *user)
{
    const Before *b = user;
    b->cx->diag = b->diag;
    b->cx->memory.budget = b->budget;
    b->cx->weighs = b->weighs;
}

/* Compiling takes little beside what a step takes, and is not bound. */
static void weigh(Trial *t)
{
    Cleanup cleanup;
    qcc_context *cx = t->c->cx;
    Before before = { cx, cx->diag, cx->memory.budget, cx->weighs };
    const ArenaMark mark = arena_mark(&cx->scratch);
    cleanup_push(&cx->memory, &cleanup, go_back, &before);
    cx->diag.report = hear_nothing;
    cx->diag.warnings_are_errors = false;
    cx->memory.budget = 0;
    cx->weighs = *t->takes_batches == TAKES_THEM;
    t->bytes = UINT64_MAX;
    if (guarded(&cx->memory, count, t) != OK)
        t->bytes = UINT64_MAX;
    cleanup_drop(&cleanup);
    go_back(&before);
    arena_reset(&cx->scratch, mark);
}

/* ---- ways ---- */

/* The optimizer that is asked for, and a word of it more. */
static const char *optimizer_with(Arena *arena, const char *said, const char *word)
{
    said = said ? said : DEFAULT_OPTIMIZER;
    return strstr(said, word) ? NULL : arena_printf(arena, "%s%c%s", said, strchr(said, ':') ? ',' : ':', word);
}

/* The value that an option has with a way, the turn-th one from 0; null: there is none (any more). */
static const char *value_of(const Trial *t, const Way *w, int turn)
{
    const qcc_step *s = t->made;
    Arena *arena = &t->c->cx->scratch;
    const bool remat = w->option == OPT_remat, given = option_given(remat ? &t->c->line : &t->said, w->option);
    const int64_t parts = s->recipe.accumulate > 1 ? s->recipe.accumulate : 1, by = (int64_t)2 << turn;
    const int64_t batch = s->facts.batch;
    if ((s->facts.silent && !remat) || (remat && option_given(&t->c->line, OPT_remat_budget)))
        return NULL;
    switch (w->how) {
    case GIVE:
        return turn || given ? NULL : w->value;
    case ADD:
        return turn ? NULL : optimizer_with(arena, option_text(&t->said, w->option), w->value);
    case SPLIT:
        return batch % (parts * by) ? NULL : arena_printf(arena, "%" PRId64, parts * by);
    default:
        return batch % (parts * by) ? NULL : arena_printf(arena, "%" PRId64, batch / by);
    }
}

/* Lets a trial have a way, in place of what it has of that option; false: there is no such value. */
static bool take(Trial *t, const Way *w, int turn)
{
    const char *value = value_of(t, w, turn);
    size_t at = 0;
    while (at < t->n && t->list[at].option != w->option)
        at++;
    if (!value || (w->how == HALVE && *t->takes_batches == TAKES_NONE))
        return false;
    t->list[at] = (Setting){ w->option, value, w->changes };
    t->n = at == t->n ? at + 1 : t->n;
    weigh(t);
    if (w->how == HALVE && *t->takes_batches == NOT_KNOWN)
        *t->takes_batches = t->bytes == UINT64_MAX ? TAKES_NONE : TAKES_THEM;
    return true;
}

/* "--remat full --accumulate 2", and whether that is for compiling. */
static const char *options_text_of(const Trial *t, bool *compiled)
{
    Text text;
    text_open(&text, &t->c->cx->scratch);
    *compiled = false;
    for (size_t i = 0; i < t->n; i++) {
        *compiled |= is_compiled(&t->list[i]);
        text_printf(&text, "%s%s %s", i ? " " : "", option_specs[t->list[i].option].name, t->list[i].value);
    }
    return text_get(&text);
}

static void propose(Message *m, const Trial *t)
{
    Text why;
    bool compiled;
    Arena *arena = &t->c->cx->scratch;
    const char *options = options_text_of(t, &compiled);
    text_open(&why, arena);
    for (size_t i = 0; i < t->n; i++)
        text_printf(&why, "%s%s", i ? "; " : "", t->list[i].changes);
    message_try(m, "%s%s: %s (%s)", compiled && model_is_step(t->made->model) ? "compile it with " : "", options,
                bytes_text(arena, t->bytes), text_get(&why));
}

/* Proposes what is enough alone: of each option the first value that is.  Where none is, `least` is what takes least. */
static size_t propose_one(Message *m, const Trial *from, Trial *least)
{
    size_t n = 0;
    Option last = OPT_COUNT;
    for (size_t i = 0; i < COUNT(ways) && n < MOST_PROPOSED; i++)
        for (int turn = 0; turn < MOST_TURNS && ways[i].option != last; turn++) {
            Trial t = *from;
            if (!take(&t, &ways[i], turn))
                break;
            if (t.bytes < least->bytes)
                *least = t;
            if (!does_fit(&t))
                continue;
            propose(m, &t);
            last = ways[i].option;
            n++;
        }
    return n;
}

/* One after the other, as long as each takes less than those before it: what is enough together, or the least. */
static void propose_all(Message *m, const Trial *from, const Trial *least)
{
    Trial best = *from;
    for (size_t i = 0; i < COUNT(ways) && !does_fit(&best); i++)
        for (int turn = 0; turn < MOST_TURNS && !does_fit(&best); turn++) {
            Trial t = best;
            if (!take(&t, &ways[i], turn))
                break;
            if (t.bytes < best.bytes)
                best = t;
        }
    bool compiled;
    best = least->bytes < best.bytes ? *least : best;
    if (does_fit(&best))
        propose(m, &best);
    else if (best.n)
        message_try(m, "more memory: with %s it still takes %s", options_text_of(&best, &compiled),
                    bytes_text(&from->c->cx->scratch, best.bytes));
}

/* ---- the answer ---- */

static Status refuse(const Trial *t, const StepMemory *m)
{
    qcc_context *cx = t->c->cx;
    Arena *arena = &cx->scratch;
    const bool said = option_given(&t->c->line, OPT_memory_limit);
    Message *x = message_new(&cx->diag, SEVERITY_ERROR, INTERNAL, (Place){ .file = t->made->model->file, .byte = -1 },
                             "the step takes %s, and %s of the bound %s on memory are left%s",
                             bytes_text(arena, t->bytes), bytes_text(arena, bytes_left(cx)),
                             bytes_text(arena, cx->memory.budget), said ? " (--memory-limit)" : "");
    message_at(x, "%s", step_memory_text(arena, m));
    Trial least = *t;
    if (!propose_one(x, t, &least))
        propose_all(x, t, &least);
    if (said)
        message_try(x, "--memory-limit none");
    return message_send(x);
}

Status step_fits(const Command *c, qcc_step *s, const StepMemory *m)
{
    StepMemory own;
    TakesBatches takes_batches = NOT_KNOWN;
    Trial t = { .c = c, .made = s, .said = c->line, .takes_batches = &takes_batches };
    if (!c->cx->memory.budget)
        return OK;
    if (!m) {
        own = step_memory_if(s, &c->cx->lowering);
        m = &own;
    }
    t.bytes = bytes_to_come(m);
    if (does_fit(&t))
        return OK;
    if (model_is_step(s->model) && !s->facts.silent)
        TRY(options_read_text(&c->cx->diag, &c->cx->scratch, "options of the step", s->facts.options, TEXT_RECORDED,
                              &t.said));
    return refuse(&t, m);
}
