/* bench --gains: the step as it is and the step without the codes of one call, in turn; the launches that only one of the two
 * has are what these codes change, and the least times of these are compared. */
#include "api/bench/bench_gains.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/quiet.h"
#include "api/hall/words.h"
#include "api/make/launches.h"
#include "passes/quant/ledger.h"

enum { WARM_RUNS = 2, RUNS = 9 };

static const double least_gain = 1.02;

/* A call that asked for codes, and the seconds of a run in launches that are there only with them, or only without. */
typedef struct Gain {
    const char *asker; /* the selector of the call */
    const char *where; /* "node 3 /conv1/Conv" */
    double with, without;
} Gain;

typedef struct Gains {
    Command *c;
    Bench *all;
    unsigned what; /* is run */
    double least;
    Gain *list;
    size_t n;
    Text file;
    size_t n_left;
} Gains;

/* ---- whose codes ---- */

static bool is_known(const Gains *g, const char *asker)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->list[i].asker, asker) == 0)
            return true;
    return false;
}

static void find_calls(Gains *g, const QuantLedger *l)
{
    g->list = NEWS(&g->all->m->arena, Gain, l->n + 1);
    for (size_t i = 0; i < l->n; i++) {
        const QuantDecision *d = &l->list[i];
        const bool asks = d->by || d->kind == QUANT_PRODUCT;
        if (asks && d->asker && !is_known(g, d->asker))
            g->list[g->n++] = (Gain){ .asker = d->asker, .where = d->kind == QUANT_PRODUCT ? d->where : d->asked };
    }
}

/* ---- launches of one side ---- */

/* Launches that do the same: how many of them each side has, and for how long. */
typedef struct Same {
    int n[2];
    double seconds[2];
} Same;

static void add_types(Text *t, const ProgramValue *values, int n, Arena *arena)
{
    for (int i = 0; i < n; i++)
        text_printf(t, " %s", values[i].home == HOME_NONE ? "-" : type_text(arena, values[i].type));
    text_char(t, ';');
}

/* What launches do, wherever their values lie. */
static const char *work_text(const TimedLaunch *one, Arena *arena)
{
    Text t;
    text_open(&t, arena);
    for (const Launch *l = one->program->launches + one->launch; l < one->program->launches + one->launch + one->n;
         l++) {
        const Node *call = l->contraction ? l->contraction : l->node;
        text_printf(&t, "%s %s", launch_kind(l), op_of(call)->name);
        add_types(&t, l->in, l->n_in, arena);
        add_types(&t, l->out, l->n_out, arena);
        if (l->tape)
            tape_print(&t, l->tape, call->graph->ir->ops);
    }
    return text_get(&t);
}

static void add_side(Map *of, const LaunchTimes *times, int side, Arena *arena)
{
    for (size_t i = 0; i < times->n; i++) {
        const TimedLaunch *l = &times->list[i];
        bool fresh;
        if (!l->runs)
            continue;
        MapEntry *e = map_put(of, work_text(l, arena), &fresh);
        if (fresh)
            e->value.p = NEW(arena, Same);
        Same *s = e->value.p;
        s->n[side]++;
        s->seconds[side] += l->least;
    }
}

/* Seconds of the launches that this side has more of than the other one. */
static double more_of(const Same *s, int side)
{
    const int more = s->n[side] - s->n[!side];
    return more > 0 ? s->seconds[side] * more / s->n[side] : 0;
}

static void compare(Gain *one, const LaunchTimes *with, const LaunchTimes *without, Arena *arena)
{
    Map of;
    map_open(&of, arena);
    add_side(&of, with, 0, arena);
    add_side(&of, without, 1, arena);
    for (size_t i = 0; i < of.n; i++) {
        const Same *s = of.entries[i].value.p;
        one->with += more_of(s, 0);
        one->without += more_of(s, 1);
    }
}

/* ---- runs ---- */

static Status run_both(const Gains *g, Bench *without)
{
    Bench *const both[] = { g->all, without };
    const int64_t runs = option_count(&g->c->line, OPT_steps, RUNS);
    double took;
    for (int64_t i = 0; i < WARM_RUNS + runs; i++)
        for (size_t k = 0; k < COUNT(both); k++) {
            if (i == WARM_RUNS)
                launch_times_clear(&both[k]->times);
            TRY(bench_run(both[k], g->what, &took));
        }
    return OK;
}

/* The line with one call as floats. */
static Command without_codes(const Command *c, const char *asker, Arena *arena)
{
    Command other = *c;
    other.line.given = NEWS(arena, Given, c->line.n_given + 1);
    memcpy(other.line.given, c->line.given, c->line.n_given * sizeof *other.line.given);
    other.line.cap_given = c->line.n_given;
    option_add(arena, &other.line, OPT_quant_op, arena_printf(arena, "%s=off", asker));
    return other;
}

/* What it says it has said of the step with all codes. */
static Status open_quietly(Bench *b, Command *c, qcc_model *m)
{
    Quiet quiet;
    quiet_begin(&quiet, &c->cx->memory, &c->cx->diag);
    const Status status = bench_open(b, c, m);
    quiet_end(&quiet);
    return status == OK || !quiet.first
               ? status
               : fail_as(&c->cx->diag, status, quiet.first->place, "--gains: %s", quiet.first->text);
}

static Status measure(const Gains *g, Gain *one)
{
    Arena *arena = &g->c->cx->scratch;
    const ArenaMark mark = arena_mark(arena);
    Command other = without_codes(g->c, one->asker, &g->all->m->arena);
    Bench without = { .c = NULL };
    Status status = open_quietly(&without, &other, g->all->m);
    if (status == OK)
        status = run_both(g, &without);
    if (status == OK)
        compare(one, &g->all->times, &without.times, arena);
    bench_close(&without);
    arena_reset(arena, mark);
    return status;
}

/* ---- telling ---- */

static bool is_changed(const Gain *one)
{
    return one->with > 0 || one->without > 0;
}

/* Codes that change nothing that runs neither gain nor lose. */
static double gain_of(const Gain *one)
{
    return one->with > 0 ? one->without / one->with : is_changed(one) ? INFINITY : 1;
}

static const char *gain_words(const Gain *one, Arena *a)
{
    return is_changed(one)
               ? arena_printf(a, "%.3g  %s: %s without codes, %s with", gain_of(one), name_text(a, one->where),
                              seconds_text(a, one->without), seconds_text(a, one->with))
               : arena_printf(a, "1  %s: nothing runs otherwise", name_text(a, one->where));
}

static Status tell(Gains *g, const Gain *one)
{
    Arena *a = &g->c->cx->scratch;
    Text t;
    const bool leaves = is_changed(one) && gain_of(one) < g->least;
    const LogExtra fields[] = {
        { "call", logged_text(one->where) },
        { "selector", logged_text(one->asker) },
        { "without_ms", logged_f64(1e3 * one->without) },
        { "with_ms", logged_f64(1e3 * one->with) },
        { "gain", logged_f64(gain_of(one)) },
    };
    g->n_left += leaves;
    text_printf(&g->file, "# %s\n", gain_words(one, a));
    if (leaves)
        text_printf(&g->file, "quant-op = %s=off\n", one->asker);
    if (out_is_json(g->c->out))
        return out_event(g->c->out, "gain", fields, COUNT(fields));
    text_open(&t, a);
    text_label(&t, "");
    text_printf(&t, "%s\n", gain_words(one, a));
    return out_bytes(g->c->out, t.p, t.n);
}

static const char *of_what(const Gains *g)
{
    return g->what == RUN_EVAL ? "the model as it is deployed" : "a step";
}

static Status tell_head(Gains *g)
{
    Text t;
    text_printf(
        &g->file,
        "# What codes gain in %s: the time of what runs otherwise without the codes of a call, over that with them.\n",
        of_what(g));
    if (out_is_json(g->c->out))
        return OK;
    text_open(&t, &g->c->cx->scratch);
    text_char(&t, '\n');
    text_label(&t, "gains");
    text_printf(&t, "in %s, of what runs otherwise without the codes of a call; the least of %" PRId64 " runs\n",
                of_what(g), option_count(&g->c->line, OPT_steps, RUNS));
    return out_bytes(g->c->out, t.p, t.n);
}

static Status write_file(const Gains *g)
{
    Out o;
    const qcc_sink sink = qcc_to_file(option_text(&g->c->line, OPT_gains));
    TRY(out_open(&o, g->c->cx, &sink));
    return out_close(&o, out_bytes(&o, g->file.p, g->file.n));
}

static Status tell_end(const Gains *g)
{
    Text t;
    if (out_is_json(g->c->out))
        return OK;
    text_open(&t, &g->c->cx->scratch);
    text_label(&t, "floats");
    text_printf(&t, "%zu of %zu gain less than %s; --config %s leaves them so\n", g->n_left, g->n,
                number_text(&g->c->cx->scratch, g->least), option_text(&g->c->line, OPT_gains));
    return out_bytes(g->c->out, t.p, t.n);
}

/* ---- all of it ---- */

static Status refuse(Command *c, const char *why, const char *instead)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "%s", why);
    message_try(m, "%s", instead);
    return message_send(m);
}

/* What says how gains are measured wants --gains. */
static Status check_line(Command *c)
{
    static const Option beside[] = { OPT_gains_of, OPT_least_gain };
    for (size_t i = 0; i < COUNT(beside); i++)
        if (option_given(&c->line, beside[i]) && !option_given(&c->line, OPT_gains))
            return refuse(c, "gains are measured for a file", "--gains FILE");
    return OK;
}

static const QuantLedger *ledger_of(const Bench *b)
{
    return b->step ? b->step->recipe.quantization.ledger : NULL;
}

Status gains_allowed(const Bench *all)
{
    Command *c = all->c;
    Gains g = { .all = (Bench *)all };
    TRY(check_line(c));
    if (!option_given(&c->line, OPT_gains))
        return OK;
    if (!ledger_of(all))
        return refuse(c, "--gains: nothing is quantized here", "qcc bench MODEL --quant w8a8 --gains FILE");
    find_calls(&g, ledger_of(all));
    return g.n ? OK : refuse(c, "--gains: no call of the model asks for codes", "--quant w8a8");
}

Status gains_measure(Bench *all)
{
    Command *c = all->c;
    const char *of = option_text(&c->line, OPT_gains_of);
    Gains g = { .c = c,
                .all = all,
                .what = of && strcmp(of, "eval") == 0 ? RUN_EVAL : RUN_STEP,
                .least = option_real(&c->line, OPT_least_gain, least_gain) };
    if (!all->times.n)
        return refuse(c, "--gains: the evaluator runs it, node by node, and there are no launches to compare",
                      "-v, which says why");
    find_calls(&g, ledger_of(all));
    text_open(&g.file, &all->m->arena);
    TRY(tell_head(&g));
    for (size_t i = 0; i < g.n; i++) {
        TRY(measure(&g, &g.list[i]));
        TRY(tell(&g, &g.list[i]));
    }
    TRY(tell_end(&g));
    return write_file(&g);
}
