/* What becomes of weights that are kept in few bits while a run goes on: how many change, how many stand at the ends, which
 * scales move, and which updates are lost. */
#include "api/train/watch_codes.h"

#include <math.h>
#include <string.h>

#include "ops/update/update.h"
#include "passes/engine/results.h"

enum {
    MOST_CODES = 16384, /* that are remembered of a weight */
    STILL_REPORTS = 2,  /* with gradients and without a change: the weight stands still */
};

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
    const Type *t = s->type;
    if (!s->trained || t->kind != TYPE_TENSOR || !type_known(t))
        return false;
    return t->dtype == BF16 || (dtype_is_integer(t->dtype) && dtype_bits(t->dtype) <= 8);
}

/* A code; of bf16 the bits of a number, which are all that is asked of it: whether it is another. */
static int16_t code_at(const Tensor *codes, int64_t i)
{
    int16_t bits;
    if (codes->type->dtype != BF16)
        return (int16_t)tensor_get_i64(codes, i);
    memcpy(&bits, (const char *)codes->data + i * (int64_t)sizeof bits, sizeof bits);
    return bits;
}

static void remember(const CodesWatched *w, const Tensor *codes, int16_t *to)
{
    for (int64_t i = 0; i < w->n; i++)
        to[i] = code_at(codes, i * w->apart);
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
    w->ranged = dtype_is_integer(type);
    w->largest = ((int64_t)1 << (bits - (is_signed ? 1 : 0))) - 1;
    w->least = is_signed ? -w->largest : 0;
}

const char *codes_words(const Trainer *t, const CodesWatched *w)
{
    const Node *state = input_named(module_graph(t->step->module, "step"), w->weight->name);
    return state ? node_stored(state) : NULL;
}

static void begin_watch(Trainer *t, CodesWatched *w, const State *weight, const Tensor *codes)
{
    Arena *arena = &t->step->arena;
    w->weight = weight;
    w->elements = tensor_elements(codes);
    w->apart = w->elements / MOST_CODES + 1;
    w->n = (w->elements + w->apart - 1) / w->apart;
    w->reported = NEWS(arena, int16_t, w->n + 1);
    w->before = NEWS(arena, int16_t, w->n + 1);
    w->graded = NEWS(arena, uint8_t, w->n + 1);
    memset(w->graded, 0, (size_t)w->n);
    if (!session_find(t->run, arena_printf(arena, COUNTS_PREFIX "%s", weight->name), &w->counts))
        w->counts.name = NULL;
    const char *words = codes_words(t, w);
    w->by_chance = words && strstr(words, ":sr:");
    find_ends(w, weight->type->dtype);
    remember(w, codes, w->reported);
    keep_scales(t, w);
}

Status train_codes_open(Trainer *t)
{
    size_t n;
    Arena *arena = &t->step->arena;
    const State *states = session_states(t->run, &n);
    CodesWatch *watch = NEW(arena, CodesWatch);
    watch->list = NEWS(arena, CodesWatched, n + 1);
    for (size_t i = 0; i < n; i++) {
        const Tensor *codes = is_watched(&states[i]) ? session_view(t->run, states[i].name) : NULL;
        if (!codes || !tensor_elements(codes))
            continue;
        CodesWatched *w = &watch->list[watch->n++];
        w->scale = scale_of(states, n, &states[i]);
        begin_watch(t, w, &states[i], codes);
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

/* Adds what the step counted, if it was applied. */
static void count(Trainer *t, CodesWatched *w)
{
    const Tensor *counts = w->counts.name && t->last.applied ? session_view_value(t->run, &w->counts) : NULL;
    if (!counts)
        return;
    const int64_t updates = tensor_get_i64(counts, COUNT_UPDATES), below = tensor_get_i64(counts, COUNT_BELOW),
                  changed = tensor_get_i64(counts, COUNT_CHANGED);
    w->updates += updates;
    w->below += below;
    w->changes += changed;
    w->steps++;
    if (changed)
        w->idle = w->idle_updates = w->idle_below = 0;
    else if (updates) {
        w->idle++;
        w->idle_updates += updates;
        w->idle_below += below;
    }
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

/* Codes that have a gradient now, had one at the reports before, and are what they were. */
static void find_standing(Trainer *t, CodesWatched *w)
{
    SessionValue v;
    const char *name = w->weight->name;
    const Tensor *gradient = session_find(t->run, name, &v) && v.state ? session_gradient(t->run, v.state) : NULL;
    const bool learns = t->last.applied && !(t->last.has_rate && t->last.rate == 0);
    w->standing = 0;
    for (int64_t i = 0; i < w->n; i++) {
        const double g = gradient && learns ? tensor_get_f64(gradient, i * w->apart) : 0;
        w->graded[i] = !isfinite(g) || g == 0 ? 0 : w->graded[i] < STILL_REPORTS ? w->graded[i] + 1 : STILL_REPORTS;
        w->standing += w->graded[i] == STILL_REPORTS;
    }
}

static void look(Trainer *t, CodesWatched *w)
{
    int64_t changed = 0, moved = 0, ends = 0;
    const Tensor *codes = session_view(t->run, w->weight->name);
    for (int64_t i = 0; codes && i < w->n; i++) {
        const int16_t code = code_at(codes, i * w->apart);
        changed += code != w->before[i];
        moved += code != w->reported[i];
        ends += code <= w->least || code >= w->largest;
        w->reported[i] = code;
    }
    w->changed = (double)changed / (double)w->n;
    w->moved = (double)moved / (double)w->n;
    w->ends = w->ranged ? (double)ends / (double)w->n : (double)NAN;
    find_drift(w, w->scale ? session_view(t->run, w->scale->name) : NULL);
    if (moved)
        memset(w->graded, 0, (size_t)w->n);
    find_standing(t, w);
    keep_scales(t, w);
}

Status train_codes_step(Trainer *t)
{
    CodesWatch *watch = t->codes;
    for (size_t i = 0; watch && i < watch->n; i++)
        count(t, &watch->list[i]);
    if (!watch || !watch->began)
        return OK;
    watch->began = false;
    for (size_t i = 0; i < watch->n; i++)
        look(t, &watch->list[i]);
    TRY(codes_tell(t));
    for (size_t i = 0; i < watch->n; i++) {
        CodesWatched *w = &watch->list[i];
        w->updates = w->below = w->changes = w->steps = 0;
    }
    return OK;
}
