/* explain --plan: what engines run of a graph, what was fused and what was not, and where memory goes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/hall/lower.h"
#include "api/hall/words.h"
#include "api/make/launch_nodes.h"
#include "api/make/launches.h"
#include "api/make/quant_launches.h"
#include "api/told/memory_told.h"
#include "api/verbs/explain.h"
#include "runtime/log/log.h"

enum { MOST_BUFFERS = 10, MOST_REGIONS = 12, MOST_NAMES = 6, MOST_PAIRS = 3 };

typedef struct Account {
    Text *text;
    Arena *arena;
    const char *graph;
    Lowered low;
    LaunchMap map; /* the same program once more, with the nodes that it was made of */
    const Program *program;
    ProgramBytes bytes;
    bool all; /* of long lists, not the first alone */
} Account;

/* ---- launches ---- */

typedef struct Kind {
    const char *word;
    int64_t n;
} Kind;

static int by_number(const void *x, const void *y)
{
    const Kind *a = x, *b = y;
    return a->n != b->n ? (a->n < b->n ? 1 : -1) : strcmp(a->word, b->word);
}

/* How many launches there are of regions, and of each operator. */
static Kind *kinds_of(const Account *a, size_t *n)
{
    Map seen;
    map_open(&seen, a->arena);
    for (int i = 0; i < a->program->n_launches; i++)
        map_put(&seen, launch_kind(&a->program->launches[i]), NULL)->value.i++;
    Kind *kinds = NEWS(a->arena, Kind, seen.n + 1);
    for (size_t i = 0; i < seen.n; i++)
        kinds[i] = (Kind){ seen.entries[i].key, seen.entries[i].value.i };
    qsort(kinds, seen.n, sizeof *kinds, by_number);
    *n = seen.n;
    return kinds;
}

static void tell_kinds(const Account *a)
{
    size_t n;
    const Kind *kinds = kinds_of(a, &n);
    text_label(a->text, "launches");
    text_printf(a->text, "%d", a->program->n_launches);
    for (size_t i = 0; i < n; i++)
        text_printf(a->text, "%s%" PRId64 " %s", i ? ", " : ": ", kinds[i].n, kinds[i].word);
    text_char(a->text, '\n');
}

/* What only quantizes, dequantizes, masks or observes, where there is such. */
static void tell_quantization(const Account *a)
{
    const QuantLaunches q = quant_launches(&a->map, a->arena);
    if (!q.n)
        return;
    text_label(a->text, "quantization");
    text_printf(a->text, "%d launch%s of its own, %s read and written\n", q.n, q.n == 1 ? "" : "es",
                bytes_text(a->arena, (uint64_t)q.bytes));
    text_label(a->text, "");
    text_printf(a->text, "%d over data, %s%s", q.n_over_data, bytes_text(a->arena, (uint64_t)q.data_bytes),
                q.n_over_data ? ":" : "");
    for (int i = 0; i < q.n_over_data; i++)
        text_printf(a->text, "%s %d", i ? "," : "", q.over_data[i]);
    text_char(a->text, '\n');
}

/* ---- regions ---- */

typedef struct RegionText {
    int launch;
    size_t calls;
    const char **names; /* of the nodes it came from, each once; else of what it makes, else of operators */
    size_t n_names;
} RegionText;

static const char *said_of(const Node *n)
{
    return n->label ? n->label : n->name;
}

static void add_name(const Account *a, RegionText *r, Map *seen, const char *name)
{
    bool fresh;
    if (!name)
        return;
    map_put(seen, name, &fresh);
    if (fresh)
        r->names[r->n_names++] = name_text(a->arena, name);
}

static void add_names(const Account *a, RegionText *r)
{
    const LaunchNodes *from = &a->map.list[r->launch];
    Map seen;
    map_open(&seen, a->arena);
    r->names = NEWS(a->arena, const char *, from->n + 1);
    for (int i = 0; i < from->n; i++)
        add_name(a, r, &seen, said_of(from->nodes[i]));
}

static void add_operators(const Account *a, RegionText *r, const Graph *body)
{
    Map seen;
    map_open(&seen, a->arena);
    r->names = NEWS(a->arena, const char *, r->calls + 1);
    for (const Node *n = body->first; n; n = n->next)
        add_name(a, r, &seen, n->op == OP_const ? NULL : op_of(n)->name);
}

/* Of an update nothing has a name but what it is for. */
static void add_next(const Account *a, RegionText *r)
{
    const Launch *l = &a->program->launches[r->launch];
    r->names = NEWS(a->arena, const char *, l->n_out + 1);
    for (int i = 0; i < l->n_out; i++) {
        const char *name = l->out[i].home == HOME_NEXT ? graph_result_name(a->program->graph, (int)l->out[i].at) : NULL;
        if (name)
            r->names[r->n_names++] = arena_printf(a->arena, "next %s", name_text(a->arena, name));
    }
}

static RegionText region_text(const Account *a, int launch)
{
    RegionText r = { .launch = launch };
    const Graph *body = a->program->launches[launch].node->regions[0];
    for (const Node *n = body->first; n; n = n->next)
        r.calls += n->op != OP_const;
    add_names(a, &r);
    if (!r.n_names)
        add_next(a, &r);
    if (!r.n_names)
        add_operators(a, &r, body);
    return r;
}

static int by_calls(const void *x, const void *y)
{
    const RegionText *a = x, *b = y;
    return a->calls != b->calls ? (a->calls < b->calls ? 1 : -1) : a->launch - b->launch;
}

/* Those with the most calls first. */
static RegionText *regions_of(const Account *a, size_t *n)
{
    RegionText *list = NEWS(a->arena, RegionText, a->program->n_launches + 1);
    *n = 0;
    for (int i = 0; i < a->program->n_launches; i++)
        if (a->program->launches[i].tape)
            list[(*n)++] = region_text(a, i);
    qsort(list, *n, sizeof *list, by_calls);
    return list;
}

static const char *names_text(const Account *a, const RegionText *r, size_t most)
{
    Text t;
    text_open(&t, a->arena);
    for (size_t i = 0; i < r->n_names && i < most; i++)
        text_printf(&t, "%s%s", i ? ", " : "", r->names[i]);
    if (r->n_names > most)
        text_printf(&t, " and %zu more", r->n_names - most);
    return text_get(&t);
}

static void tell_regions(const Account *a)
{
    size_t n, calls = 0;
    const RegionText *list = regions_of(a, &n);
    for (size_t i = 0; i < n; i++)
        calls += list[i].calls;
    text_label(a->text, "regions");
    text_printf(a->text, "%zu, of %zu calls\n", n, calls);
    for (size_t i = 0; i < n && (a->all || i < MOST_REGIONS); i++) {
        text_label(a->text, "");
        text_printf(a->text, "launch %d, %s, %zu call%s: %s\n", list[i].launch,
                    step_part_name(a->program->launches[list[i].launch].part), list[i].calls,
                    list[i].calls == 1 ? "" : "s", names_text(a, &list[i], a->all ? SIZE_MAX : MOST_NAMES));
    }
    if (!a->all && n > MOST_REGIONS) {
        text_label(a->text, "");
        text_printf(a->text, "and %zu smaller ones (-v)\n", n - MOST_REGIONS);
    }
}

/* ---- what stayed apart ---- */

/* "apart from NAME: REASON", in its two. */
typedef struct Apart {
    const char *node, *from, *why;
} Apart;

static Apart apart_of(const Account *a, const LowerRemark *r)
{
    static const char begins[] = "apart from ";
    const char *from = strncmp(r->text, begins, sizeof begins - 1) == 0 ? r->text + sizeof begins - 1 : r->text;
    const char *why = from;
    for (const char *at = from; (at = strstr(at, ": ")); why = at += 2)
        continue;
    const size_t n = why > from ? (size_t)(why - from) - 2 : 0;
    return (Apart){ r->place.where ? name_text(a->arena, r->place.where) : "",
                    name_text(a->arena, arena_copy(a->arena, from, n)), why };
}

static void tell_reason(const Account *a, const char *label, const char *why, int64_t n)
{
    int64_t told = 0;
    text_label(a->text, label);
    text_printf(a->text, "%" PRId64 ": %s\n", n, why);
    for (size_t i = 0; i < a->low.n_remarks && (a->all || told < MOST_PAIRS); i++) {
        const Apart p = apart_of(a, &a->low.remarks[i]);
        if (strcmp(p.why, why) != 0)
            continue;
        text_label(a->text, "");
        text_printf(a->text, "  %s from %s\n", p.node, p.from);
        told++;
    }
    if (told < n) {
        text_label(a->text, "");
        text_printf(a->text, "  and %" PRId64 " more (-v)\n", n - told);
    }
}

/* Pairs of neighbours that are not computed in one pass, by reason: the most frequent first. */
static void tell_apart(const Account *a)
{
    Map reasons;
    map_open(&reasons, a->arena);
    for (size_t i = 0; i < a->low.n_remarks; i++)
        map_put(&reasons, apart_of(a, &a->low.remarks[i]).why, NULL)->value.i++;
    Kind *kinds = NEWS(a->arena, Kind, reasons.n + 1);
    for (size_t i = 0; i < reasons.n; i++)
        kinds[i] = (Kind){ reasons.entries[i].key, reasons.entries[i].value.i };
    qsort(kinds, reasons.n, sizeof *kinds, by_number);
    for (size_t i = 0; i < reasons.n; i++)
        tell_reason(a, i ? "" : "apart", kinds[i].word, kinds[i].n);
}

/* ---- memory ---- */

typedef struct Peak {
    int call, launch; /* the first call at which most is taken, and the launch that it is, or that ran before */
    const PlanBuffer **buffers; /* that are taken there, largest first */
    size_t n;
} Peak;

static int larger_first(const void *x, const void *y)
{
    const PlanBuffer *const *a = x, *const *b = y;
    return (*a)->bytes != (*b)->bytes ? ((*a)->bytes < (*b)->bytes ? 1 : -1) : (*a < *b ? -1 : *a > *b);
}

static int launch_at(const Account *a, int call)
{
    int at = 0, launch = 0;
    for (const Node *n = a->low.plan.graph->first; n && at <= call; n = n->next, at++)
        while (launch < a->program->n_launches && launch_call(&a->program->launches[launch]) == n)
            launch++;
    return launch ? launch - 1 : 0;
}

static Peak peak_of(const Account *a)
{
    const Plan *plan = &a->low.plan;
    const size_t *alive = plan_alive(plan, a->arena);
    Peak peak = { .buffers = NEWS(a->arena, const PlanBuffer *, plan->n_buffers + 1) };
    for (int i = 0; i <= plan->n_calls; i++)
        if (alive[i] > alive[peak.call])
            peak.call = i;
    for (int i = 0; i < plan->n_buffers; i++)
        if (plan->buffers[i].first <= peak.call && peak.call <= plan->buffers[i].last)
            peak.buffers[peak.n++] = &plan->buffers[i];
    qsort(peak.buffers, peak.n, sizeof *peak.buffers, larger_first);
    peak.launch = launch_at(a, peak.call);
    return peak;
}

/* The type of the value that its maker lays into a buffer. */
static const char *type_in(const Account *a, const PlanBuffer *b)
{
    for (int i = 0; i < type_results(b->maker->type); i++)
        if (plan_buffer(&a->low.plan, b->maker, i) == (int)(b - a->low.plan.buffers))
            return type_text(a->arena, type_result(b->maker->type, i));
    return "";
}

static const char *maker_text(const Account *a, const PlanBuffer *b)
{
    const Node *n = b->maker;
    const char *op = op_of(n)->name;
    for (int i = 0; i < a->program->n_launches && n->op == OP_fused; i++)
        if (a->program->launches[i].node == n) {
            const RegionText r = region_text(a, i);
            return arena_printf(a->arena, "%s %s", launch_word(&a->program->launches[i]), names_text(a, &r, 2));
        }
    return n->label || n->name ? arena_printf(a->arena, "%s %s", op, name_text(a->arena, n->label ? n->label : n->name))
                               : op;
}

static void tell_peak(const Account *a)
{
    const Peak peak = peak_of(a);
    text_label(a->text, "arena");
    text_printf(a->text, "%s, the largest live set %s", bytes_text(a->arena, a->program->arena),
                bytes_text(a->arena, a->program->live));
    if (peak.n)
        text_printf(a->text, ": at launch %d, %s", peak.launch, step_part_name(a->program->launches[peak.launch].part));
    text_char(a->text, '\n');
    for (size_t i = 0; i < peak.n && i < MOST_BUFFERS; i++) {
        text_label(a->text, i ? "" : "at the peak");
        text_printf(a->text, "%9s  %s  %s\n", bytes_text(a->arena, peak.buffers[i]->bytes), type_in(a, peak.buffers[i]),
                    maker_text(a, peak.buffers[i]));
    }
    if (peak.n > MOST_BUFFERS) {
        uint64_t rest = 0;
        for (size_t i = MOST_BUFFERS; i < peak.n; i++)
            rest += peak.buffers[i]->bytes;
        text_label(a->text, "");
        text_printf(a->text, "%9s  in %zu more\n", bytes_text(a->arena, rest), peak.n - MOST_BUFFERS);
    }
}

/* Of a step, where that was asked for, or bound. */
static void tell_remat(const Account *a, const Lowering *how)
{
    const int *first = a->program->first;
    if (first[STEP_BACKWARD] == first[STEP_BACKWARD + 1] || (how->remat == REMAT_NONE && !how->most))
        return;
    text_label(a->text, "made again");
    text_printf(a->text, "%s: %s\n", remat_name(a->low.remat), remat_text(a->low.remat));
}

static void tell_beside(const Account *a)
{
    const ProgramBytes *b = &a->bytes;
    text_label(a->text, "beside it");
    text_printf(a->text, "states %s, inputs %s, constants %s\n", bytes_text(a->arena, b->states),
                bytes_text(a->arena, b->inputs), bytes_text(a->arena, b->constants));
    if (b->n_in_place + b->n_apart + b->n_early == 0)
        return;
    text_label(a->text, "next values");
    text_printf(a->text, "%d made in place, %d apart (%s), %d early and copied\n", b->n_in_place, b->n_apart,
                bytes_text(a->arena, b->apart), b->n_early);
}

/* ---- records ---- */

static void summary_record(const Account *a)
{
    const ProgramBytes *b = &a->bytes;
    log_record(
        a->text, "plan", { "graph", logged_text(a->graph) }, { "launches", logged_int(a->program->n_launches) },
        { "remat", logged_text(remat_name(a->low.remat)) }, { "arena_bytes", logged_int((int64_t)a->program->arena) },
        { "live_bytes", logged_int((int64_t)a->program->live) }, { "peak_launch", logged_int(peak_of(a).launch) },
        { "states_bytes", logged_int((int64_t)b->states) }, { "inputs_bytes", logged_int((int64_t)b->inputs) },
        { "constants_bytes", logged_int((int64_t)b->constants) }, { "next_in_place", logged_int(b->n_in_place) },
        { "next_apart", logged_int(b->n_apart) }, { "next_early", logged_int(b->n_early) },
        { "next_apart_bytes", logged_int((int64_t)b->apart) });
}

static void records(const Account *a)
{
    size_t n;
    const Kind *kinds = kinds_of(a, &n);
    summary_record(a);
    for (size_t i = 0; i < n; i++)
        log_record(a->text, "launches", { "graph", logged_text(a->graph) }, { "kind", logged_text(kinds[i].word) },
                   { "n", logged_int(kinds[i].n) });
    const RegionText *regions = regions_of(a, &n);
    for (size_t i = 0; i < n; i++)
        log_record(a->text, "region", { "graph", logged_text(a->graph) }, { "launch", logged_int(regions[i].launch) },
                   { "part", logged_text(step_part_name(a->program->launches[regions[i].launch].part)) },
                   { "calls", logged_int((int64_t)regions[i].calls) },
                   { "nodes", logged_text(names_text(a, &regions[i], SIZE_MAX)) });
    for (size_t i = 0; i < a->low.n_remarks; i++) {
        const Apart p = apart_of(a, &a->low.remarks[i]);
        log_record(a->text, "apart", { "graph", logged_text(a->graph) }, { "node", logged_text(p.node) },
                   { "from", logged_text(p.from) }, { "why", logged_text(p.why) });
    }
    const Peak peak = peak_of(a);
    for (size_t i = 0; i < peak.n; i++)
        log_record(a->text, "buffer", { "graph", logged_text(a->graph) },
                   { "bytes", logged_int((int64_t)peak.buffers[i]->bytes) },
                   { "type", logged_text(type_in(a, peak.buffers[i])) },
                   { "node", logged_text(maker_text(a, peak.buffers[i])) });
}

/* ---- the verb ---- */

static Status tell_graph(Command *c, Text *t, const Graph *g)
{
    Arena *arena = &c->cx->scratch;
    Account a = { .text = t,
                  .arena = arena,
                  .graph = g->name ? g->name : "graph",
                  .low = lower_graph_heard(g, &c->cx->lowering, arena),
                  .all = option_given(&c->line, OPT_verbose) > 0 };
    if (!a.low.program)
        return lower_refuse(g, &a.low);
    a.program = a.low.program;
    a.map = launch_map(g, &c->cx->lowering, arena);
    a.bytes = program_bytes(a.program);
    if (out_is_json(c->out)) {
        records(&a);
        return OK;
    }
    text_printf(t, "%s@%s\n", t->n ? "\n" : "", name_text(arena, a.graph));
    tell_kinds(&a);
    tell_quantization(&a);
    tell_regions(&a);
    tell_apart(&a);
    tell_remat(&a, &c->cx->lowering);
    tell_peak(&a);
    tell_beside(&a);
    return OK;
}

/* What all of it takes, before who takes it. */
static void tell_memory(const Command *c, Text *t, const qcc_step *s)
{
    const StepMemory m = step_memory(s);
    if (out_is_json(c->out))
        step_memory_records(t, &m);
    else
        step_memory_table(t, s, &m);
}

Status explain_plan(Command *c, const qcc_model *m, const qcc_step *s)
{
    static const char *const of_step[] = { "step", "eval" };
    Text t;
    text_open(&t, &c->cx->scratch);
    if (s)
        tell_memory(c, &t, s);
    else
        TRY(tell_graph(c, &t, m->graph));
    for (size_t i = 0; i < COUNT(of_step) && s; i++) {
        const Graph *g = module_graph(s->module, of_step[i]);
        if (g)
            TRY(tell_graph(c, &t, g));
    }
    return out_is_json(c->out) ? out_objects(c->out, &t) : out_bytes(c->out, t.p, t.n);
}
