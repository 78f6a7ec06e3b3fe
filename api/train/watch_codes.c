/* What becomes of weights that are codes while a run goes on: how many change, how many stand at the ends, which scales
 * move; and a warning of a weight that no step moves any more.
 *
 * Of each weight codes are looked at that are spread over it, so that what is remembered is small beside it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/train/train.h"

enum {
    MOST_CODES = 16384, /* that are remembered of a weight */
    WORST_TOLD = 3,
    STILL_REPORTS = 2, /* without a code that changed: the weight stands still */
};

typedef struct CodesWatched {
    const State *weight, *scale; /* null: none */
    int64_t n, apart;            /* codes that are remembered, and how far they lie from each other */
    int16_t *reported, *before;  /* at the last report; before the step that is looked at */
    int64_t least, largest;      /* codes that there are: both ends */
    Tensor *scales;              /* at the last report */
    double changed, moved, ends, drift;
    int still; /* reports in a row without a change */
} CodesWatched;

typedef struct CodesWatch {
    CodesWatched *list;
    size_t n;
    bool began; /* the step that is looked at */
} CodesWatch;

/* ---- what is there ---- */

static const State *scale_of(const State *states, size_t n, const State *weight)
{
    for (size_t i = 0; i < n; i++)
        if (states[i].mark.role == STATE_quant && states[i].mark.of && strcmp(states[i].mark.of, weight->name) == 0 &&
            dtype_is_float(states[i].type->dtype))
            return &states[i];
    return NULL;
}

static bool is_watched(const State *s)
{
    return s->trained && s->type->kind == TYPE_TENSOR && type_known(s->type) && dtype_is_integer(s->type->dtype) &&
           dtype_bits(s->type->dtype) <= 8;
}

static void remember(const CodesWatched *w, const Tensor *codes, int16_t *to)
{
    for (int64_t i = 0; i < w->n; i++)
        to[i] = (int16_t)tensor_get_i64(codes, i * w->apart);
}

static void keep_scales(Trainer *t, CodesWatched *w)
{
    const Tensor *now = w->scale ? session_view(t->run, w->scale->name) : NULL;
    if (!now)
        return;
    if (!w->scales)
        w->scales = tensor_new(&t->step->arena, now->type);
    memcpy(w->scales->data, now->data, now->bytes);
}

/* The ends of the codes: of signed ones the narrow ones, which are as many on either side. */
static void find_ends(CodesWatched *w, DType type)
{
    const int bits = dtype_bits(type);
    const bool is_signed = dtype_class(type) == CLASS_INT;
    w->largest = ((int64_t)1 << (bits - (is_signed ? 1 : 0))) - 1;
    w->least = is_signed ? -w->largest : 0;
}

Status train_codes_open(Trainer *t)
{
    size_t n;
    Arena *arena = &t->step->arena;
    const State *states = session_states(t->run, &n);
    CodesWatch *watch = NEW(arena, CodesWatch);
    watch->list = NEWS(arena, CodesWatched, n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t elements;
        const Tensor *codes = is_watched(&states[i]) ? session_view(t->run, states[i].name) : NULL;
        if (!codes)
            continue;
        CodesWatched *w = &watch->list[watch->n++];
        elements = (size_t)tensor_elements(codes);
        w->weight = &states[i];
        w->scale = scale_of(states, n, w->weight);
        w->apart = (int64_t)(elements / MOST_CODES) + 1;
        w->n = (int64_t)(elements + (size_t)w->apart - 1) / w->apart;
        w->reported = NEWS(arena, int16_t, w->n + 1);
        w->before = NEWS(arena, int16_t, w->n + 1);
        find_ends(w, states[i].type->dtype);
        remember(w, codes, w->reported);
        keep_scales(t, w);
    }
    t->codes = watch->n ? watch : NULL;
    return OK;
}

/* ---- a step ---- */

Status train_codes_begin(Trainer *t)
{
    CodesWatch *watch = t->codes;
    if (!watch)
        return OK;
    watch->began = train_watch_is_due(t, t->done + 1);
    for (size_t i = 0; watch->began && i < watch->n; i++) {
        const Tensor *codes = session_view(t->run, watch->list[i].weight->name);
        if (codes)
            remember(&watch->list[i], codes, watch->list[i].before);
    }
    return OK;
}

static void find_drift(CodesWatched *w, const Tensor *scales)
{
    w->drift = scales && w->scales ? 0 : (double)NAN;
    for (int64_t i = 0; scales && w->scales && i < tensor_elements(scales); i++) {
        const double was = tensor_get_f64(w->scales, i), is = tensor_get_f64(scales, i);
        if (was > 0 && fabs(is / was - 1) > fabs(w->drift))
            w->drift = is / was - 1;
    }
}

static void look(Trainer *t, CodesWatched *w)
{
    int64_t changed = 0, moved = 0, ends = 0;
    const Tensor *codes = session_view(t->run, w->weight->name);
    for (int64_t i = 0; codes && i < w->n; i++) {
        const int64_t code = tensor_get_i64(codes, i * w->apart);
        changed += code != w->before[i];
        moved += code != w->reported[i];
        ends += code <= w->least || code >= w->largest;
        w->reported[i] = (int16_t)code;
    }
    w->changed = (double)changed / (double)w->n;
    w->moved = (double)moved / (double)w->n;
    w->ends = (double)ends / (double)w->n;
    find_drift(w, w->scale ? session_view(t->run, w->scale->name) : NULL);
    keep_scales(t, w);
    const bool stands = !moved && !(fabs(w->drift) > 0);
    w->still = stands ? w->still + 1 : 0;
}

/* ---- what is told ---- */

static const char *name_of_weight(const Trainer *t, const CodesWatched *w)
{
    const char *path = step_path(t->step, w->weight->name);
    return path ? path : w->weight->name;
}

static Status tell_people(Trainer *t)
{
    Text l;
    const CodesWatch *watch = t->codes;
    double changed = 0, ends = 0, codes = 0;
    const CodesWatched *least = &watch->list[0], *drifts = NULL;
    if (t->cx->verbosity < 1 || out_is_json(t->c->out))
        return OK;
    for (size_t i = 0; i < watch->n; i++) {
        const CodesWatched *w = &watch->list[i];
        const double all = (double)tensor_elements(session_view(t->run, w->weight->name));
        changed += all * w->changed;
        ends += all * w->ends;
        codes += all;
        least = w->changed < least->changed ? w : least;
        drifts = fabs(w->drift) > (drifts ? fabs(drifts->drift) : 0) ? w : drifts;
    }
    text_open(&l, &t->cx->scratch);
    text_printf(&l, "%.3g %% changed in this step, the fewest of %s (%.3g %%); %.2g %% at the ends",
                100 * changed / codes, name_text(&t->cx->scratch, name_of_weight(t, least)), 100 * least->changed,
                100 * ends / codes);
    if (drifts)
        text_printf(&l, "; scales moved by %+.2g %% at most, of %s", 100 * drifts->drift,
                    name_text(&t->cx->scratch, name_of_weight(t, drifts)));
    return out_printf(t->c->out, "%-16s step %" PRId64 ": %s\n", "codes", t->done, text_get(&l));
}

static Status tell_log(Trainer *t, const CodesWatched *w)
{
    const LogCodes line = { .step = logged_int(t->done),
                            .weight = logged_text(name_of_weight(t, w)),
                            .changed = logged_f32((float)w->changed),
                            .moved = logged_f32((float)w->moved),
                            .ends = logged_f32((float)w->ends),
                            .drift = isnan(w->drift) ? logged_text(NULL) : logged_f32((float)w->drift) };
    return train_log_codes(t, &line);
}

static Status warn_still(Trainer *t, const CodesWatched *w)
{
    Message *m = message_new(t->d, SEVERITY_WARNING, OK, NOWHERE,
                             "step %" PRId64 ": %s stands still: none of %" PRId64
                             " codes that were looked at has changed since two reports, nor has a scale",
                             t->done, name_text(&t->cx->scratch, name_of_weight(t, w)), w->n);
    message_try(m, "a higher --lr, or --quant-op '%s=off'", name_text(&t->cx->scratch, name_of_weight(t, w)));
    return message_send(m);
}

Status train_codes_step(Trainer *t)
{
    CodesWatch *watch = t->codes;
    if (!watch || !watch->began)
        return OK;
    watch->began = false;
    for (size_t i = 0; i < watch->n; i++)
        look(t, &watch->list[i]);
    TRY(tell_people(t));
    for (size_t i = 0; i < watch->n; i++) {
        TRY(tell_log(t, &watch->list[i]));
        if (watch->list[i].still == STILL_REPORTS)
            TRY(warn_still(t, &watch->list[i]));
    }
    return OK;
}
