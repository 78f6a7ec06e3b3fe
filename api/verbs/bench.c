/* bench: how fast a step or a model runs, launch by launch. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "api/fits/fits.h"
#include "api/hall/words.h"
#include "api/make/launches.h"
#include "api/make/step.h"
#include "api/model/evaluate.h"
#include "api/train/train.h"
#include "api/verbs/bench_launches.h"
#include "api/verbs/verbs.h"
#include "base/clock.h"
#include "base/rng.h"

enum { FIRST_RUNS = 2, LEAST_RUNS = 5, MOST_RUNS = 1000 };

static const double enough_seconds = 2;

typedef struct Bench {
    Command *c;
    qcc_model *m;
    qcc_step *step; /* null: the model itself runs */
    qcc_session *session;
    const Tensor **inputs; /* of the model */
    Heap *heap;            /* of the values that are fed */
    Rng rng;
    LaunchTimes times;
    MachineRates rates;
    double compile, first; /* seconds */
    double *runs;
    size_t n_runs;
    double processors; /* seconds of all threads in these runs */
    size_t skipped;    /* steps that changed nothing */
    uint64_t resident; /* bytes, the most while it ran */
    Text data;         /* what was fed, a line each */
} Bench;

/* ---- what is fed ---- */

static void fill_value(Bench *b, const DataFill *fill, Tensor *t)
{
    const Type *type = t->type;
    const int64_t n = tensor_elements(t), last = type->rank ? type->dims[type->rank - 1] : 1;
    for (int64_t i = 0; i < n; i++) {
        double x = 0; /* an index, a class, a mask: 0 is always one */
        if (fill)
            x = fill->range ? (double)(i % last) : fill->whole ? (double)fill->integer : fill->value;
        else if (dtype_is_float(type->dtype))
            x = (double)(rng_u64(&b->rng) >> 40) / (double)(1 << 23) - 1;
        tensor_set_f64(t, i, x);
    }
}

static const DataFill *fill_of(const DataFill *fills, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fills[i].name, name) == 0)
            return &fills[i];
    return NULL;
}

static Status make_value(Bench *b, const char *name, const Type *type, Tensor **value)
{
    DataFill *fills;
    size_t n;
    Diag *d = &b->c->cx->diag;
    if (type->kind != TYPE_TENSOR || !tensor_holds(type) || !type_known(type)) {
        Message *msg =
            message_new(d, SEVERITY_ERROR, USAGE, NOWHERE, "input %s is %s: there is nothing to measure with", name,
                        type_text(&b->c->cx->scratch, type));
        message_try(msg, "--batch N");
        message_try(msg, "--dim NAME=N");
        return message_send(msg);
    }
    TRY(train_read_fills(b->c, &fills, &n));
    const DataFill *fill = fill_of(fills, n, name);
    *value = tensor_alloc(b->heap, type);
    fill_value(b, fill, *value);
    text_label(&b->data, b->data.n ? "" : "data");
    text_printf(&b->data, "%s %s, %s\n", name, type_text(&b->c->cx->scratch, type),
                fill                          ? "as --fill says"
                : dtype_is_float(type->dtype) ? "drawn from -1 to 1   --seed --fill"
                                              : "all 0   --fill");
    return OK;
}

static Status check_fills(Bench *b, const Value *inputs, size_t n_inputs)
{
    DataFill *fills;
    size_t n;
    TRY(train_read_fills(b->c, &fills, &n));
    for (size_t i = 0; i < n; i++) {
        bool found = false;
        for (size_t k = 0; k < n_inputs; k++)
            found = found || strcmp(inputs[k].name, fills[i].name) == 0;
        if (!found)
            return fail_as(&b->c->cx->diag, USAGE, ON_COMMAND_LINE, "--fill: there is no input %s", fills[i].name);
    }
    return OK;
}

/* ---- the two things that run ---- */

static Status open_step(Bench *b)
{
    qcc_step *s;
    TRY(step_compile(b->m, &b->c->line, &s));
    TRY(step_fits(b->c, s, NULL));
    b->step = s;
    TRY(check_fills(b, s->inputs, s->n_inputs));
    TRY(session_start(s, (uint64_t)option_count(&b->c->line, OPT_seed, 0), &b->c->cx->stop, &b->session));
    b->heap = &s->data;
    for (size_t i = 0; i < s->n_inputs; i++) {
        Tensor *t;
        TRY(make_value(b, s->inputs[i].name, s->inputs[i].type, &t));
        TRY(session_bind(b->session->run, s->inputs[i].name, t));
    }
    const State *unobserved; /* of a quantized step: what is drawn tells the ranges */
    TRY(session_unobserved(b->session->run, &unobserved));
    return unobserved ? session_observe(b->session->run) : OK;
}

static Status open_model(Bench *b)
{
    qcc_model *m = b->m;
    TRY(check_fills(b, m->inputs, m->n_inputs));
    b->heap = &m->data;
    b->inputs = NEWS(&m->arena, const Tensor *, m->n_inputs + 1);
    for (size_t i = 0; i < m->n_inputs; i++) {
        Tensor *t = NULL;
        if (m->graph->inputs[i]->op == OP_state)
            TRY(model_initial(m, i, &b->inputs[i]));
        else
            TRY(make_value(b, m->inputs[i].name, m->inputs[i].type, &t));
        if (t)
            b->inputs[i] = t;
    }
    return OK;
}

static Status run_once(Bench *b)
{
    RunResult result;
    if (!b->session) {
        const EvalOptions how = command_eval(b->c);
        return model_evaluate(b->m, &how, b->inputs);
    }
    TRY(session_run(b->session->run, RUN_STEP, &result));
    b->skipped += !result.applied;
    return OK;
}

/* ---- the runs ---- */

static Status timed_run(Bench *b, double *took)
{
    const ArenaMark mark = arena_mark(&b->c->cx->scratch);
    const double began = clock_seconds();
    const Status status = run_once(b);
    *took = clock_seconds() - began;
    arena_reset(&b->c->cx->scratch, mark);
    return b->c->cx->stop ? INTERRUPTED : status;
}

static bool is_enough(const Bench *b, int64_t asked, double since)
{
    if (asked)
        return b->n_runs >= (size_t)asked;
    return b->n_runs >= MOST_RUNS || (b->n_runs >= LEAST_RUNS && clock_seconds() - since >= enough_seconds);
}

/* What all threads of the process have taken of processors so far, user and system together. */
static double processor_seconds(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0 ? (double)t.tv_sec + 1e-9 * (double)t.tv_nsec : 0;
}

/* The most that the process held so far. */
static uint64_t resident_bytes(void)
{
    struct rusage use;
    return getrusage(RUSAGE_SELF, &use) == 0 ? (uint64_t)use.ru_maxrss * 1024 : 0;
}

static Status run_all(Bench *b)
{
    double took;
    const int64_t asked = option_count(&b->c->line, OPT_steps, 0);
    b->runs = NEWS(&b->m->arena, double, (asked ? asked : MOST_RUNS) + 1);
    TRY(timed_run(b, &b->first));
    for (int i = 0; i < FIRST_RUNS; i++)
        TRY(timed_run(b, &took));
    launch_times_clear(&b->times);
    b->skipped = 0;
    const double since = clock_seconds(), spent = processor_seconds();
    while (!is_enough(b, asked, since))
        TRY(timed_run(b, &b->runs[b->n_runs++]));
    b->processors = processor_seconds() - spent;
    b->resident = resident_bytes();
    b->times.keeps_spans = true; /* what is drawn is a run of its own */
    if (option_given(&b->c->line, OPT_trace))
        TRY(timed_run(b, &took));
    return OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double at_part(const Bench *b, double part)
{
    return b->runs[(size_t)((double)(b->n_runs - 1) * part + 0.5)];
}

/* ---- telling ---- */

/* The program that takes most of the time; null: none ran. */
static const Program *main_program(const TimedLaunch *list, size_t n)
{
    return n ? list[0].program : NULL;
}

static Status tell_json(Bench *b, const TimedLaunch *list)
{
    const Program *p = main_program(list, b->times.n);
    Arena *a = &b->c->cx->scratch;
    const LogExtra fields[] = {
        { "what", logged_text(b->step ? "step" : "model") },
        { "device", logged_text(b->c->cx->engine->name) },
        { "threads", logged_int(parallel_threads(context_pool(b->c->cx))) },
        { "runs", logged_int((int64_t)b->n_runs) },
        { "median_ms", logged_f64(1e3 * at_part(b, 0.5)) },
        { "p95_ms", logged_f64(1e3 * at_part(b, 0.95)) },
        { "processor_ms", logged_f64(1e3 * b->processors / (double)b->n_runs) },
        { "per_second", logged_f64(1 / at_part(b, 0.5)) },
        { "compile_s", logged_f64(b->compile) },
        { "first_ms", logged_f64(1e3 * b->first) },
        { "launches", logged_int(p ? p->n_launches : 0) },
        { "arena", logged_int(p ? (int64_t)p->arena : 0) },
        { "live", logged_int(p ? (int64_t)p->live : 0) },
        { "resident", logged_int((int64_t)b->resident) },
        { "copy_bytes_per_s", logged_f64(b->rates.bytes) },
        { "product_flops_per_s", logged_f64(b->rates.flops) },
        { "bf16_flops_per_s", logged_f64(b->rates.narrow_flops) },
        { "code_flops_per_s", logged_f64(b->rates.code_flops) },
        { "skipped", logged_int((int64_t)b->skipped) },
    };
    TRY(out_event(b->c->out, "bench", fields, COUNT(fields)));
    for (size_t i = 0; i < b->times.n; i++) {
        const TimedLaunch *l = &list[i];
        const double each = l->runs ? l->seconds / (double)l->runs : 0;
        const LogExtra one[] = {
            { "graph", logged_text(l->program->graph->name) },
            { "launch", logged_int(l->launch) },
            { "part", logged_text(step_part_name(l->program->launches[l->launch].part)) },
            { "what", logged_text(launch_words(a, l->program, l->launch, l->n)) },
            { "ms", logged_f64(1e3 * each) },
            { "bytes", logged_f64(l->bytes) },
            { "flops", logged_f64(l->flops) },
            { "roofline", logged_f64(each > 0 ? launch_bound(l, &b->rates) / each : 0) },
        };
        TRY(out_event(b->c->out, "launch", one, COUNT(one)));
    }
    return OK;
}

static const char *seconds_text(Arena *a, double s)
{
    return s >= 1      ? arena_printf(a, "%.2f s", s)
           : s >= 1e-3 ? arena_printf(a, "%.3g ms", 1e3 * s)
                       : arena_printf(a, "%.3g us", 1e6 * s);
}

static void tell_head(const Bench *b, Text *t, const Program *p)
{
    Arena *a = &b->c->cx->scratch;
    const double median = at_part(b, 0.5);
    const char *what = b->step ? "step" : "run";
    text_label(t, what);
    text_printf(t, "%s, 95 %% below %s, %zu measured, %.4g a second, %s of processors each\n", seconds_text(a, median),
                seconds_text(a, at_part(b, 0.95)), b->n_runs, 1 / median,
                seconds_text(a, b->processors / (double)b->n_runs));
    text_bytes(t, b->data.p, b->data.n);
    text_label(t, "device");
    text_printf(t, "%s, %d thread%s; copies %.3g GB/s, products %.3g GFLOP/s", b->c->cx->engine->name,
                parallel_threads(context_pool(b->c->cx)), parallel_threads(context_pool(b->c->cx)) == 1 ? "" : "s",
                1e-9 * b->rates.bytes, 1e-9 * b->rates.flops);
    if (b->rates.narrow_flops > 0)
        text_printf(t, ", of bf16 %.3g", 1e-9 * b->rates.narrow_flops);
    text_printf(t, ", of codes %.3g\n", 1e-9 * b->rates.code_flops);
    text_label(t, "start");
    text_printf(t, "ready after %s, first %s %s\n", seconds_text(a, b->compile), what, seconds_text(a, b->first));
    text_label(t, "memory");
    if (p)
        text_printf(t, "arena %s (%s at once), ", bytes_text(a, p->arena), bytes_text(a, p->live));
    text_printf(t, "process %s\n", bytes_text(a, b->resident));
    if (b->skipped) {
        text_label(t, "skipped");
        text_printf(t, "%zu steps were not finite and changed nothing; --seed or --fill for other data\n", b->skipped);
    }
}

static void tell_launches(const Bench *b, Text *t, const TimedLaunch *list)
{
    enum { MOST = 24 };
    double all = 0, told = 0;
    size_t ran = 0;
    for (size_t i = 0; i < b->times.n; i++) {
        all += list[i].seconds;
        ran += list[i].runs > 0;
    }
    if (!ran) {
        text_label(t, "launches");
        text_printf(t, "none: the evaluator runs it, node by node%s\n",
                    b->c->cx->engine->wants_programs ? "; -v says why" : "");
        return;
    }
    text_printf(t, "\n   share        time    GB/s  GFLOP/s  of bound  launch\n");
    const size_t most = option_given(&b->c->line, OPT_verbose) || ran <= MOST ? ran : MOST;
    for (size_t i = 0; i < most; i++) {
        const TimedLaunch *l = &list[i];
        const double each = l->seconds / (double)l->runs;
        told += l->seconds;
        text_printf(t, "  %5.1f %%  %10s  %6.3g  %7.3g    %4.0f %%  %3d %s\n", 100 * l->seconds / all,
                    seconds_text(&b->c->cx->scratch, each), 1e-9 * l->bytes / each, 1e-9 * l->flops / each,
                    100 * launch_bound(l, &b->rates) / each, l->launch,
                    launch_words(&b->c->cx->scratch, l->program, l->launch, l->n));
    }
    if (most < ran)
        text_printf(t, "  %5.1f %%  in %zu launches more (-v)\n", 100 * (all - told) / all, ran - most);
}

static Status tell(Bench *b)
{
    Text t;
    TimedLaunch *list = launch_times_sorted(&b->times, &b->c->cx->scratch);
    qsort(b->runs, b->n_runs, sizeof *b->runs, by_size);
    if (out_is_json(b->c->out))
        return tell_json(b, list);
    text_open(&t, &b->c->cx->scratch);
    tell_head(b, &t, main_program(list, b->times.n));
    tell_launches(b, &t, list);
    return out_bytes(b->c->out, t.p, t.n);
}

static Status write_trace(Bench *b, const char *path)
{
    Out o;
    Text t;
    qcc_sink sink = { .path = path };
    text_open(&t, &b->c->cx->scratch);
    launch_trace(&t, &b->times, &b->c->cx->scratch);
    TRY(out_open(&o, b->c->cx, &sink));
    return out_close(&o, out_bytes(&o, t.p, t.n));
}

static Status measure(Bench *b)
{
    const double began = clock_seconds();
    qcc_context *cx = b->c->cx;
    TRY(command_model(b->c, 0, &b->m));
    launch_times_open(&b->times, &b->m->arena);
    text_open(&b->data, &b->m->arena);
    cx->watch = &b->times.watch;
    TRY(model_is_step(b->m) || line_wants_step(&b->c->line) ? open_step(b) : open_model(b));
    b->compile = clock_seconds() - began;
    TRY(run_all(b));
    b->rates = machine_rates(cx);
    const char *trace = option_text(&b->c->line, OPT_trace);
    if (trace)
        TRY(write_trace(b, trace));
    return tell(b);
}

Status command_bench(Command *c)
{
    Bench b = { .c = c, .rng = { (uint64_t)option_count(&c->line, OPT_seed, 0) } };
    TRY(command_wants(c, 1));
    if (option_given(&c->line, OPT_json))
        out_speak_json(c->out);
    const Status status = measure(&b);
    c->cx->watch = NULL;
    return status;
}
