/* What quantizers make of their numbers while a run goes on: what is clipped, and which scales move. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/session/figures.h"
#include "api/train/train.h"
#include "base/bytes.h"
#include "ir/own_names.h"
#include "passes/quant/ledger.h"

enum {
    STEPS_BETWEEN = 200, /* reports, at least */
    STEPS_AT_MOST = 1000,
    FEWEST_NUMBERS = 64, /* a share of fewer says nothing */
    WORST_TOLD = 3,
};

#define MOST_CLIPPED 0.05 /* of the numbers of a value */
#define MOST_DRIFT   2.0  /* the factor by which a scale moves between two reports */

typedef struct QuantWatched {
    Tensor *before; /* its scales at the last report; null: none are known */
    double drift;   /* the largest relative change since then; NaN: not known */
    double factor;  /* the same as a factor, 1 at least */
    bool learned, warned_clipped, warned_drift;
} QuantWatched;

typedef struct QuantWatch {
    Figures figures;
    QuantWatched *list; /* of each figure */
    bool reported;      /* once at least: from then on a scale that moves is worth a warning */
} QuantWatch;

/* ---- scales ---- */

static void keep_scales(Trainer *t, QuantWatched *w, const Tensor *scales)
{
    if (!scales)
        return;
    if (!w->before || w->before->type != scales->type)
        w->before = tensor_new(&t->step->arena, scales->type);
    if (scales->bytes)
        bytes_copy(w->before->data, scales->data, scales->bytes);
}

static void find_drift(QuantWatched *w, const Tensor *scales)
{
    const bool known = w->before && scales && w->before->type == scales->type;
    w->drift = known ? 0 : (double)NAN;
    w->factor = 1;
    for (int64_t i = 0; known && i < tensor_elements(scales); i++) {
        const double was = tensor_get_f64(w->before, i), is = tensor_get_f64(scales, i);
        if (!(was > 0) || !(is > 0))
            continue;
        w->drift = fabs(is / was - 1) > fabs(w->drift) ? is / was - 1 : w->drift;
        w->factor = fmax(w->factor, fmax(is / was, was / is));
    }
}

static bool is_learned(const Trainer *t, const char *value)
{
    const Graph *g = module_graph(t->step->module, "eval");
    const char *name = arena_printf(&t->cx->scratch, "%s%s", STEP_SIZE_PREFIX, value);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return true;
    return false;
}

/* The scales that the run begins with: those that need no data. */
static Status first_scales(Trainer *t, QuantWatch *w)
{
    Figures first;
    Arena *arena = &t->cx->scratch;
    TRY(figures_open(&first, t->step, arena));
    const Tensor **values = figures_values(&first, t->run, 0, NULL, NULL, arena);
    TRY(figures_without_data(&first, values));
    const EvalOptions how = command_eval(t->c);
    TRY(figures_look(&first, &how, &t->cx->memory, values, 0, 0));
    for (size_t i = 0; i < w->figures.n; i++) {
        const QuantFigure *f = figures_find(&first, w->figures.list[i].value);
        keep_scales(t, &w->list[i], f ? f->scales : NULL);
    }
    return OK;
}

Status train_watch_open(Trainer *t)
{
    QuantWatch *w = NEW(&t->step->arena, QuantWatch);
    TRY(figures_open(&w->figures, t->step, &t->step->arena));
    if (!w->figures.n)
        return OK;
    w->list = NEWS(&t->step->arena, QuantWatched, w->figures.n);
    for (size_t i = 0; i < w->figures.n; i++)
        w->list[i].learned = is_learned(t, w->figures.list[i].value);
    TRY(first_scales(t, w));
    t->watch = w;
    return OK;
}

/* ---- what is told ---- */

/* The places of the few that are worst by some measure. */
static size_t worst(const QuantWatch *w, double (*measure)(const QuantWatch *w, size_t i), size_t *list)
{
    size_t n = 0;
    for (size_t i = 0; i < w->figures.n; i++) {
        const double x = measure(w, i);
        if (!(x > 0))
            continue;
        size_t at = n < WORST_TOLD ? n++ : WORST_TOLD;
        for (; at > 0 && measure(w, list[at - 1]) < x; at--)
            if (at < WORST_TOLD)
                list[at] = list[at - 1];
        if (at < WORST_TOLD)
            list[at] = i;
    }
    return n;
}

static double clipped_of(const QuantWatch *w, size_t i)
{
    return figure_clipped(&w->figures.list[i]);
}

static double drift_of(const QuantWatch *w, size_t i)
{
    return w->list[i].factor - 1;
}

static Status tell_people(Trainer *t)
{
    Text l;
    size_t list[WORST_TOLD];
    const QuantWatch *w = t->watch;
    Arena *arena = &t->cx->scratch;
    if (t->cx->verbosity < 1 || out_is_json(t->c->out))
        return OK;
    text_open(&l, arena);
    size_t n = worst(w, clipped_of, list);
    text_add(&l, n ? "clipped" : "nothing is clipped");
    for (size_t i = 0; i < n; i++)
        text_printf(&l, "%s %s %.2g %%", i ? "," : "", name_text(arena, w->figures.list[list[i]].value),
                    100 * clipped_of(w, list[i]));
    n = worst(w, drift_of, list);
    text_add(&l, n ? "; scales moved" : "; no scale moved");
    for (size_t i = 0; i < n; i++)
        text_printf(&l, "%s %s %+.2g %%", i ? "," : "", name_text(arena, w->figures.list[list[i]].value),
                    100 * w->list[list[i]].drift);
    const QuantFigure *lowest = figures_lowest(&w->figures);
    if (lowest)
        text_printf(&l, "; lowest %s %.1f dB", name_text(arena, lowest->value), figure_sqnr(lowest));
    return out_printf(t->c->out, "%-16s step %" PRId64 ": %s\n", "quantizers", t->done, text_get(&l));
}

static LogValue known(double x)
{
    return isnan(x) ? logged_text(NULL) : logged_f32((float)x);
}

static Status tell_log(Trainer *t)
{
    const QuantWatch *w = t->watch;
    for (size_t i = 0; i < w->figures.n; i++) {
        const QuantFigure *q = &w->figures.list[i];
        const LogQuant line = { .step = logged_int(t->done),
                                .value = logged_text(q->value),
                                .scale = known(q->has_scale ? q->scale_most : (double)NAN),
                                .drift = known(w->list[i].drift),
                                .clipped = known(figure_clipped(q)),
                                .sqnr = known(figure_sqnr(q)) };
        TRY(train_log_quant(t, &line));
    }
    return OK;
}

static Status tell_board(Trainer *t)
{
    size_t n = 0;
    const QuantWatch *w = t->watch;
    Arena *arena = &t->cx->scratch;
    if (!option_text(&t->c->line, OPT_tensorboard))
        return OK;
    BoardScalar *all = NEWS(arena, BoardScalar, 3 * w->figures.n);
    for (size_t i = 0; i < w->figures.n; i++) {
        const QuantFigure *q = &w->figures.list[i];
        if (!q->n)
            continue;
        all[n++] = (BoardScalar){ arena_printf(arena, "clipped/%s", q->value), (float)figure_clipped(q) };
        all[n++] = (BoardScalar){ arena_printf(arena, "scale/%s", q->value), (float)q->scale_most };
        if (isfinite(figure_sqnr(q)))
            all[n++] = (BoardScalar){ arena_printf(arena, "sqnr/%s", q->value), (float)figure_sqnr(q) };
    }
    return board_scalars(&t->board, train_wall_clock(), t->done, all, n);
}

/* ---- warnings ---- */

static const QuantDecision *decision_of(const Trainer *t, const char *value)
{
    const QuantLedger *l = t->step->recipe.quantization.ledger;
    for (size_t i = 0; l && i < l->n; i++)
        if (l->list[i].by && l->list[i].value && strcmp(l->list[i].value, value) == 0)
            return &l->list[i];
    return NULL;
}

/* What to write instead: a range of all that was seen, or where it is that already 16 bits. */
static void propose(Trainer *t, Message *m, const char *value)
{
    static const char node[] = "node ";
    Arena *arena = &t->cx->scratch;
    const QuantDecision *d = decision_of(t, value);
    const bool all = d && d->by->part[QUANT_SOURCE].value == SOURCE_MINMAX;
    const char *instead = all ? "a=int16" : "a=uint8:asym:minmax";
    const char *asked = d && d->asked ? d->asked : NULL;
    if (asked && strncmp(asked, node, sizeof node - 1) == 0) { /* "node 3 /conv2/Conv": the name alone selects */
        asked += sizeof node - 1;
        const size_t digits = strspn(asked, "0123456789");
        asked += digits && asked[digits] == ' ' ? digits + 1 : 0;
    }
    if (asked)
        message_try(m, "--quant-op '%s=%s'", name_text(arena, asked), instead);
    else
        message_try(m, "%s in --quant, or --quant-op of the node that reads it", instead);
}

static Status warn_of(Trainer *t, size_t i)
{
    const QuantWatch *w = t->watch;
    QuantWatched *one = &t->watch->list[i];
    const QuantFigure *q = &w->figures.list[i];
    const char *value = name_text(&t->cx->scratch, q->value);
    const double clipped = figure_clipped(q);
    if (!one->learned && !q->weight && q->n >= FEWEST_NUMBERS && clipped > MOST_CLIPPED && !one->warned_clipped) {
        one->warned_clipped = true;
        Message *m = message_new(t->d, SEVERITY_WARNING, OK, NOWHERE,
                                 "step %" PRId64 ": %.2g %% of %s lie beyond the ends of its codes", t->done,
                                 100 * clipped, value);
        propose(t, m, q->value);
        TRY(message_send(m));
    }
    if (!q->weight && w->reported && one->factor > MOST_DRIFT && !one->warned_drift) {
        one->warned_drift = true;
        Message *m =
            message_new(t->d, SEVERITY_WARNING, OK, NOWHERE,
                        "step %" PRId64 ": the scale of %s has moved by a factor of %.2g since the last report",
                        t->done, value, one->factor);
        if (one->learned)
            message_try(m, "--group 'step_size/%s$:lr=0.1x'", value);
        else
            propose(t, m, q->value);
        TRY(message_send(m));
    }
    return OK;
}

/* ---- when ---- */

bool train_watch_is_due(const Trainer *t, int64_t step)
{
    const bool epoch_ends = t->batches > 0 && step % t->batches == 0;
    if (step == t->steps || step % STEPS_AT_MOST == 0)
        return true;
    return epoch_ends && step / STEPS_BETWEEN != (step - t->batches) / STEPS_BETWEEN;
}

Status train_watch_step(Trainer *t)
{
    QuantWatch *w = t->watch;
    if (!w || !train_watch_is_due(t, t->done))
        return OK;
    figures_reset(&w->figures);
    TRY(train_figures_batch(t, &w->figures));
    for (size_t i = 0; i < w->figures.n; i++)
        find_drift(&w->list[i], w->figures.list[i].scales);
    TRY(tell_people(t));
    TRY(tell_log(t));
    TRY(tell_board(t));
    for (size_t i = 0; i < w->figures.n; i++) {
        TRY(warn_of(t, i));
        keep_scales(t, &w->list[i], w->figures.list[i].scales);
    }
    w->reported = true;
    return OK;
}
