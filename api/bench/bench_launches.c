#include "api/bench/bench_launches.h"

#include <stdlib.h>
#include <string.h>

#include "api/make/launches.h"
#include "ops/contract/work.h"

/* ---- adding up ---- */

/* Operations of a tape: one for each element of each row. */
static double flops_of_tape(const Tape *t)
{
    double steps = 0;
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_ROW || t->steps[i].word == TAPE_FOLD_ROW || t->steps[i].word == TAPE_FOLD_COLUMN ||
            t->steps[i].word == TAPE_FOLD_ALL)
            steps += t->steps[i].out >= 0 && t->steps[i].word == TAPE_ROW && t->registers[t->steps[i].out].per_row
                         ? (double)t->rows
                         : (double)t->rows * (double)t->length;
    return steps;
}

static double flops_of_call(const Node *n)
{
    const OpDef *d = op_of(n);
    if (d->work)
        return 2 * d->work(n);
    return d->access.kind == ACCESS_CONTRACT ? 2 * work_product(n) : 0;
}

static void add_flops(TimedLaunch *to, const Launch *l)
{
    const Node *call = l->kind == LAUNCH_CALL ? l->node : l->contraction;
    const double product = call ? flops_of_call(call) : 0;
    to->flops += product + (l->tape ? flops_of_tape(l->tape) : 0);
    to->codes += call && work_of_codes(call) ? product : 0;
    to->narrow += call && work_narrows(call) ? product : 0;
}

/* Launches that ran side by side are one to whoever looks at times. */
static TimedLaunch *timed(LaunchTimes *t, const Program *p, int launch, int n)
{
    bool fresh;
    MapEntry *e = map_put_u64(&t->of, (uintptr_t)(p->launches + launch), &fresh);
    if (fresh) {
        GROW(t->arena, t->list, t->n, t->cap);
        TimedLaunch *now = &t->list[t->n];
        *now = (TimedLaunch){ .program = p, .launch = launch, .n = n };
        for (const Launch *l = &p->launches[launch]; l < p->launches + launch + n; l++) {
            now->bytes += launch_bytes(l->in, l->n_in) + launch_bytes(l->out, l->n_out);
            add_flops(now, l);
        }
        e->value.i = (int64_t)t->n++;
    }
    return &t->list[e->value.i];
}

static void launched(void *user, const Program *p, int launch, int n, double began, double ended)
{
    LaunchTimes *t = user;
    if (!t->keeps_spans) {
        TimedLaunch *l = timed(t, p, launch, n);
        l->least = l->runs++ && l->least < ended - began ? l->least : ended - began;
        l->seconds += ended - began;
        return;
    }
    GROW(t->arena, t->spans, t->n_spans, t->cap_spans);
    t->spans[t->n_spans++] = (LaunchSpan){ p, launch, n, began, ended };
}

void launch_times_open(LaunchTimes *t, Arena *arena)
{
    *t = (LaunchTimes){ .arena = arena, .watch = { launched, t } };
    map_open(&t->of, arena);
}

void launch_times_clear(LaunchTimes *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->list[i].runs = 0, t->list[i].seconds = 0;
}

static int by_time(const void *a, const void *b)
{
    const TimedLaunch *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : x->launch - y->launch;
}

TimedLaunch *launch_times_sorted(const LaunchTimes *t, Arena *arena)
{
    TimedLaunch *list = NEWS(arena, TimedLaunch, t->n + 1);
    if (t->n)
        memcpy(list, t->list, t->n * sizeof *list);
    qsort(list, t->n, sizeof *list, by_time);
    return list;
}

double launch_bound(const TimedLaunch *l, const MachineRates *r)
{
    const double narrow = r->narrow_flops > 0 ? l->narrow : 0, moving = l->bytes / r->bytes;
    const double computing = (l->flops - narrow - l->codes) / r->flops + l->codes / r->code_flops +
                             (narrow > 0 ? narrow / r->narrow_flops : 0);
    return moving > computing ? moving : computing;
}

/* ---- telling ---- */

static void json_word(Text *to, const char *word)
{
    text_json(to, word, strlen(word));
}

void launch_trace(Text *to, const LaunchTimes *t, Arena *arena)
{
    const double zero = t->n_spans ? t->spans[0].began : 0;
    text_add(to, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (size_t i = 0; i < t->n_spans; i++) {
        const LaunchSpan *s = &t->spans[i];
        const Graph *g = s->program->graph;
        text_add(to, "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":");
        json_word(to, launch_words(arena, s->program, s->launch, s->n));
        text_add(to, ",\"cat\":");
        json_word(to, step_part_name(s->program->launches[s->launch].part));
        text_printf(to, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"launch\":%d,\"graph\":", 1e6 * (s->began - zero),
                    1e6 * (s->ended - s->began), s->launch);
        json_word(to, g->name ? g->name : "graph");
        text_printf(to, "}}%s\n", i + 1 < t->n_spans ? "," : "");
    }
    text_add(to, "]}\n");
}
