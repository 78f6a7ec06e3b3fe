/* The quantizers of a step at work: the evaluator runs what they need, and their numbers are counted on the way. */
#include <math.h>
#include <string.h>

#include "api/session/figures.h"
#include "base/bytes.h"
#include "ir/own_names.h"
#include "ops/quant/observe.h"

/* ---- values ---- */

/* The first samples of a value, where a graph takes fewer at once. */
static const Tensor *first_samples(const Tensor *value, const Type *wanted, Arena *arena)
{
    const Type *t = value ? value->type : NULL;
    if (!t || t == wanted || t->kind != TYPE_TENSOR || wanted->kind != TYPE_TENSOR || t->rank != wanted->rank ||
        t->rank < 1 || t->dtype != wanted->dtype || t->dims[0] <= wanted->dims[0] || wanted->dims[0] < 0)
        return value;
    Tensor *part = tensor_new(arena, wanted);
    if (part->bytes <= value->bytes && part->bytes)
        bytes_copy(part->data, value->data, part->bytes);
    return part;
}

const Tensor **figures_values(const Figures *f, Session *run, size_t n, const char *const *names,
                              const Tensor *const *data, Arena *arena)
{
    const Graph *g = f->graph;
    const Tensor **values = NEWS(arena, const Tensor *, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *x = g->inputs[i];
        for (size_t k = 0; k < n && x->op == OP_input; k++)
            if (strcmp(names[k], x->name) == 0)
                values[i] = first_samples(data[k], x->type, arena);
        if (x->op == OP_state && x->uses)
            values[i] = session_view(run, x->name);
    }
    return values;
}
/* The bins of an observer, which are of absolute values, as ours: so many are one that the largest has a place. */
static void add_remembered(QuantFigure *q, const Tensor *state)
{
    const double width = tensor_get_f64(state, OBSERVED_WIDTH);
    const double most = fmax(-tensor_get_f64(state, OBSERVED_LEAST), tensor_get_f64(state, OBSERVED_MOST));
    if (!(width > 0) || !(most > 0))
        return;
    const int64_t bins = (int64_t)fmin(floor(most / width) + 1, OBSERVE_BINS);
    const int64_t each = (bins + FIGURE_BINS - 1) / FIGURE_BINS;
    q->bins = (FigureBins){ .width = width * (double)each, .absolute = true };
    for (int64_t i = 0; i < OBSERVE_BINS && i / each < FIGURE_BINS; i++)
        q->bins.bin[i / each] += (int64_t)(tensor_get_f64(state, OBSERVED_BINS + i) +
                                           0x1p24 * tensor_get_f64(state, OBSERVED_BINS + OBSERVE_BINS + i));
}

void figures_remembered(Figures *f, Session *run, Arena *arena)
{
    for (size_t i = 0; i < f->n; i++) {
        QuantFigure *q = &f->list[i];
        const Tensor *state = q->n ? NULL : session_view(run, arena_printf(arena, "%s%s", RANGE_PREFIX, q->value));
        if (state && tensor_elements(state) == OBSERVED_ALL)
            add_remembered(q, state);
    }
}

/* ---- looking ---- */

typedef struct Look {
    Figures *f;
    Map wanted; /* node -> its value, which is there as long as a quantizer reads it */
    Map calls;  /* call -> the place of its figure */
    Map alone;  /* a scale -> that of a figure of which nothing but the scale is known, */
    Map nils;   /* and its code of 0 */
    int64_t rows, valid;
} Look;

static const Tensor *seen(const Look *l, const Node *n)
{
    const MapEntry *e = n ? map_find_u64(&l->wanted, (uintptr_t)n) : NULL;
    return e ? e->value.cp : NULL;
}

/* How many elements belong to samples that count. */
static int64_t counted(const Look *l, const Tensor *t)
{
    const int64_t all = tensor_elements(t);
    const bool samples = t->type->rank > 0 && l->rows && t->type->dims[0] % l->rows == 0;
    return samples ? all / l->rows * l->valid : all;
}

static void keep_scales(Figures *f, QuantFigure *q, const Tensor *scales)
{
    Tensor *copy = q->scales && q->scales->type == scales->type ? (Tensor *)(uintptr_t)q->scales
                                                                : tensor_new(f->arena, scales->type);
    if (copy->bytes)
        bytes_copy(copy->data, scales->data, copy->bytes);
    q->scales = copy;
}

static void look_at(Look *l, QuantFigure *q, const Tensor *value)
{
    const bool alone = q->x != NULL;
    const Tensor *codes = alone ? value : value->items[0], *scales = seen(l, q->scale), *x = seen(l, q->x);
    FigureBatch b = { .x = x, .quotients = alone ? NULL : value->items[1], .codes = codes, .scales = scales };
    if (q->weight && q->n) /* the same as in the batch before */
        return;
    if (!scales || (alone && !x) || (q->nil && !seen(l, q->nil)))
        return;
    b.zeros = seen(l, q->nil);
    b.n = q->weight ? tensor_elements(codes) : counted(l, codes);
    if (tensor_elements(scales) > 1) {
        const QuantizeAttr *at = q->call->attr;
        b.layout = scale_layout_of(codes->type, scales->type, at->axis, at->block_size);
    }
    keep_scales(l->f, q, scales);
    figure_add(q, &b);
}

static void see(void *user, const Node *n, const Tensor *value)
{
    Look *l = user;
    MapEntry *e = map_find_u64(&l->wanted, (uintptr_t)n);
    const MapEntry *call = map_find_u64(&l->calls, (uintptr_t)n), *alone = map_find_u64(&l->alone, (uintptr_t)n);
    if (e)
        e->value.cp = value;
    if (value && call)
        look_at(l, &l->f->list[call->value.i], value);
    for (int64_t i = value && alone ? alone->value.i : -1; i >= 0; i = l->f->list[i].same) {
        keep_scales(l->f, &l->f->list[i], value);
        figure_scales(&l->f->list[i], value);
    }
    const MapEntry *nil = map_find_u64(&l->nils, (uintptr_t)n);
    for (int64_t i = value && nil ? nil->value.i : -1; i >= 0; i = l->f->list[i].same)
        l->f->list[i].zero = (double)tensor_get_i64(value, 0);
}

static void want(Look *l, const Node *n)
{
    if (n)
        map_put_u64(&l->wanted, (uintptr_t)n, NULL);
}

static void prepare(Look *l, int64_t i)
{
    bool fresh;
    QuantFigure *q = &l->f->list[i];
    if (q->call) {
        want(l, q->x);
        want(l, q->scale);
        want(l, q->nil);
        map_put_u64(&l->calls, (uintptr_t)q->call, NULL)->value.i = i;
        return;
    }
    MapEntry *e = map_put_u64(&l->alone, (uintptr_t)q->scale, &fresh);
    q->same = fresh ? -1 : e->value.i;
    e->value.i = i;
    if (q->nil)
        map_put_u64(&l->nils, (uintptr_t)q->nil, NULL)->value.i = i;
}

static Status run(Look *l, const EvalOptions *how, Memory *memory, const Tensor *const *values)
{
    Heap heap;
    Figures *f = l->f;
    EvalOptions watched = how ? *how : (EvalOptions){ 0 };
    Tensor *none[1];
    watched.observe = see;
    watched.user = l;
    for (size_t i = 0; i < f->graph->n_inputs; i++)
        see(l, f->graph->inputs[i], values[i]);
    heap_open(&heap, memory);
    const Status status = evaluate(f->graph, &watched, &heap, values, none);
    heap_close(&heap);
    return status;
}

Status figures_look(Figures *f, const EvalOptions *how, Memory *memory, const Tensor *const *values, int64_t rows,
                    int64_t valid)
{
    Arena arena;
    Look l = { .f = f, .rows = rows, .valid = valid };
    arena_open(&arena, memory);
    map_open(&l.wanted, &arena);
    map_open(&l.calls, &arena);
    map_open(&l.alone, &arena);
    map_open(&l.nils, &arena);
    for (size_t i = 0; i < f->n; i++)
        prepare(&l, (int64_t)i);
    const Status status = run(&l, how, memory, values);
    arena_close(&arena);
    f->samples += valid;
    return status;
}
