/* lstm, gru and rnn over time.
 *
 * Y is [steps, directions, batch, hidden], with layout 1 [batch, steps, directions, hidden]; states are
 * [directions, batch, hidden] or [batch, directions, hidden].  Behind the end of a sequence Y is zero.
 *
 * Of f16 and bf16 the states are f32 all the way; what meets R is rounded to that type. */
#include <string.h>
#include <strings.h>

#include "ops/recurrent/recurrent.h"

#include "ops/card/shapes.h"

const char *const recurrent_directions[] = { "forward", "reverse", "bidirectional", NULL };

/* Which of alpha and beta an activation takes, and what they are unless told. */
static const struct {
    const char *name;
    bool takes_alpha, takes_beta;
    float alpha, beta;
} squashes[] = {
    [SQUASH_RELU] = { "Relu", false, false, 0, 0 },
    [SQUASH_TANH] = { "Tanh", false, false, 0, 0 },
    [SQUASH_SIGMOID] = { "Sigmoid", false, false, 0, 0 },
    [SQUASH_AFFINE] = { "Affine", true, true, 1, 0 },
    [SQUASH_LEAKY_RELU] = { "LeakyRelu", true, false, 0.01f, 0 },
    [SQUASH_THRESHOLDED_RELU] = { "ThresholdedRelu", true, false, 1, 0 },
    [SQUASH_SCALED_TANH] = { "ScaledTanh", true, true, 1, 1 },
    [SQUASH_HARD_SIGMOID] = { "HardSigmoid", true, true, 0.2f, 0.5f },
    [SQUASH_ELU] = { "Elu", true, false, 1, 0 },
    [SQUASH_SOFTSIGN] = { "Softsign", false, false, 0, 0 },
    [SQUASH_SOFTPLUS] = { "Softplus", false, false, 0, 0 },
};

static int directions_of(const RecurrentAttr *at)
{
    return at->direction == RUN_BIDIRECTIONAL ? 2 : 1;
}

/* Scalars are used up in the order of the functions that take them. */
const char *recurrent_activations(const RecurrentAttr *at, const Cell *cell, int direction, Activation *to,
                                  Arena *arena)
{
    const int n = cell->functions, all = n * directions_of(at);
    int alphas = 0, betas = 0;
    if (at->activations.v && at->activations.n < all)
        return arena_printf(arena, "has %d activations where %d are needed", at->activations.n, all);
    for (int i = 0; i < n * (direction + 1); i++) {
        Activation a = { .squash = cell->usual[i % n] };
        if (at->activations.v) {
            size_t k = 0;
            while (k < COUNT(squashes) && strcasecmp(squashes[k].name, at->activations.v[i]) != 0)
                k++;
            if (k == COUNT(squashes))
                return arena_printf(arena, "has no activation %s", at->activations.v[i]);
            a.squash = (Squash)k;
        }
        a.alpha = squashes[a.squash].alpha;
        a.beta = squashes[a.squash].beta;
        if (squashes[a.squash].takes_alpha && alphas < at->activation_alpha.n)
            a.alpha = at->activation_alpha.v[alphas++];
        if (squashes[a.squash].takes_beta && betas < at->activation_beta.n)
            a.beta = at->activation_beta.v[betas++];
        if (i >= n * direction)
            to[i - n * direction] = a;
    }
    return NULL;
}

/* Operand i, if there, must have these dimensions (-1: any); false after a complaint. */
static bool check_operand(Infer *q, int i, int rank, const int64_t *dims)
{
    if (!infer_has(q, i))
        return true;
    const Type *t = infer_tensor(q, i), *wanted = t ? type_tensor(q->types, t->dtype, rank, dims) : NULL;
    if (t && type_agrees(t, wanted))
        return true;
    if (t)
        infer_fail(q, "operand %d is %s, wanted is %s", i, type_text(q->scratch, t), type_text(q->scratch, wanted));
    return false;
}

static int64_t dim_of(const Type *t, int i)
{
    return t->rank < 0 || i >= t->rank ? DIM_UNKNOWN : t->dims[i];
}

static int64_t times(int n, int64_t extent)
{
    return extent < 0 ? extent : n * extent;
}

static bool check_operands(Infer *q, const Cell *cell, const RecurrentShape *s)
{
    const RecurrentAttr *at = q->attr;
    const int64_t d = s->directions, h = s->hidden, wide = times(cell->gates, h);
    const int64_t state[2][3] = { { d, s->batch, h }, { s->batch, d, h } };
    const Type *lens = infer_has(q, 4) ? infer_tensor(q, 4) : NULL;
    if (lens && !dtype_is_integer(lens->dtype)) {
        infer_fail(q, "sequence_lens are %s, wanted are integers", type_text(q->scratch, lens));
        return false;
    }
    for (int i = 0; i < cell->states; i++)
        if (!check_operand(q, cell->first_state + i, 3, state[at->layout]))
            return false;
    return check_operand(q, 1, 3, (const int64_t[]){ d, wide, s->input }) &&
           check_operand(q, 2, 3, (const int64_t[]){ d, wide, h }) &&
           check_operand(q, 3, 2, (const int64_t[]){ d, times(2, wide) }) && check_operand(q, 4, 1, &s->batch) &&
           (cell->peephole < 0 || check_operand(q, cell->peephole, 2, (const int64_t[]){ d, times(3, h) }));
}

static bool check_attrs(Infer *q, const Cell *cell)
{
    const RecurrentAttr *at = q->attr;
    Activation act[3];
    for (int d = 0; d < directions_of(at); d++) {
        const char *wrong = recurrent_activations(at, cell, d, act, q->scratch);
        if (wrong) {
            infer_fail(q, "%s", wrong);
            return false;
        }
    }
    if (at->layout < 0 || at->layout > 1)
        infer_fail(q, "layout is %" PRId64 ", wanted is 0 or 1", at->layout);
    else if (at->hidden_size < 0 || at->hidden_size > q->ir->limits.dim)
        infer_fail(q, "hidden_size is %" PRId64, at->hidden_size);
    else if (!(at->clip >= 0))
        infer_fail(q, "clip is %g, wanted is at least 0", (double)at->clip);
    else
        return true;
    return false;
}

RecurrentShape recurrent_shape(const RecurrentAttr *at, const Type *x, const Type *r)
{
    const int layout = (int)at->layout;
    return (RecurrentShape){ .steps = dim_of(x, layout),
                             .batch = dim_of(x, 1 - layout),
                             .input = dim_of(x, 2),
                             .hidden = at->hidden_size ? at->hidden_size : dim_of(r, 2),
                             .directions = directions_of(at) };
}

const Type *infer_recurrent(Infer *q, const Cell *cell)
{
    const RecurrentAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0), *w = x ? infer_tensor(q, 1) : NULL, *r = w ? infer_tensor(q, 2) : NULL;
    if (!r || !check_attrs(q, cell))
        return NULL;
    if (!dtype_is_float(x->dtype) || x->dtype != w->dtype || x->dtype != r->dtype)
        return infer_fail(q, "needs floats of one type, got %s, %s and %s", dtype_name(x->dtype), dtype_name(w->dtype),
                          dtype_name(r->dtype));
    if (x->rank >= 0 && x->rank != 3)
        return infer_fail(q, "needs data of 3 dimensions, got %d", x->rank);
    const RecurrentShape s = recurrent_shape(at, x, r);
    if (s.hidden > q->ir->limits.dim / 8)
        return infer_fail(q, "has a state of %" PRId64 " elements", s.hidden);
    if (!check_operands(q, cell, &s))
        return NULL;
    DType cell_type = x->dtype;
    if (attr_dtype(at->state_type, &cell_type) && !(dtype_is_amp(cell_type) && dtype_is_amp(x->dtype)))
        return infer_fail(q, "cannot give a state of %s from %s", dtype_name(cell_type), dtype_name(x->dtype));
    const int64_t y[2][4] = { { s.steps, s.directions, s.batch, s.hidden },
                              { s.batch, s.steps, s.directions, s.hidden } };
    const int64_t state[2][3] = { { s.directions, s.batch, s.hidden }, { s.batch, s.directions, s.hidden } };
    const Type *last = type_tensor(q->types, x->dtype, 3, state[at->layout]);
    const Type *const results[] = { type_tensor(q->types, x->dtype, 4, y[at->layout]), last,
                                    type_with_dtype(q->types, last, cell_type) };
    return infer_results(q, 1 + cell->states, results);
}

static int64_t length_of(Eval *e, const int64_t *lens, int64_t b, int64_t steps)
{
    if (lens && (lens[b] < 0 || lens[b] > steps)) {
        (void)eval_fail(e, "sequence %" PRId64 " has %" PRId64 " steps of %" PRId64, b, lens[b], steps);
        return -1;
    }
    return lens ? lens[b] : steps;
}

Layout recurrent_layout(const RecurrentAttr *at, const RecurrentShape *s)
{
    const int64_t n = s->hidden, d = s->directions;
    if (at->layout)
        return (Layout){ { 1, 0, s->steps }, { d * n, n, s->steps * d * n }, { 0, n, d * n } };
    return (Layout){ { s->batch, 0, 1 }, { d * s->batch * n, s->batch * n, n }, { 0, s->batch * n, n } };
}

void recurrent_shares(Eval *e, int64_t batch, double work, ParallelFn fn, void *arg)
{
    const double worth = 1 << 18; /* some microseconds, which waking a thread takes */
    if (work >= worth)
        eval_parallel(e, batch, fn, arg);
    else if (batch)
        fn(arg, 0, batch, 0);
}

/* One direction: x W' of every step at once, then step after step h R' and the cell. */
#define RECURRENT(T, STEP, TAPE)                                                                                       \
    typedef void StepFn_##T(const STEP *s);                                                                            \
    static StepFn_##T *step_of_##T(const Cell *cell)                                                                   \
    {                                                                                                                  \
        return cell == &cell_lstm ? step_lstm_##T : cell == &cell_gru ? step_gru_##T : step_rnn_##T;                   \
    }                                                                                                                  \
    typedef struct Product_##T {                                                                                       \
        Eval *e;                                                                                                       \
        const Panel *p;                                                                                                \
        const T *a, *b;                                                                                                \
        T *c, *room;                                                                                                   \
        size_t room_each;                                                                                              \
    } Product_##T;                                                                                                     \
    static void rows_of_##T(void *arg, int64_t begin, int64_t end, int worker)                                         \
    {                                                                                                                  \
        const Product_##T *r = arg;                                                                                    \
        Panel p = *r->p;                                                                                               \
        p.m = (size_t)(end - begin);                                                                                   \
        panel_##T(r->e->kernels, &p, r->a + (size_t)begin * p.lda, r->b, r->c + (size_t)begin * p.ldc,                 \
                  r->room + (size_t)worker * r->room_each);                                                            \
    }                                                                                                                  \
    void recurrent_product_##T(Eval *e, const Panel *p, const T *a, const T *b, T *c)                                  \
    {                                                                                                                  \
        Product_##T r = { e, p, a, b, c, NULL, panel_room(p) };                                                        \
        r.room = eval_room(e, (size_t)parallel_threads(e->pool) * r.room_each, sizeof(T));                             \
        recurrent_shares(e, (int64_t)p->m, (double)p->m *(double)p->n *(double)p->k, rows_of_##T, &r);                 \
    }                                                                                                                  \
    /* to[rows, cols] = from[cols, rows] */                                                                            \
    static T *turned_##T(Eval *e, const T *from, int64_t rows, int64_t cols)                                           \
    {                                                                                                                  \
        T *to = eval_scratch(e, (size_t)rows * (size_t)cols, sizeof(T));                                               \
        for (int64_t i = 0; i < rows; i++)                                                                             \
            for (int64_t j = 0; j < cols; j++)                                                                         \
                to[i * cols + j] = from[j * rows + i];                                                                 \
        return to;                                                                                                     \
    }                                                                                                                  \
    /* A walk over time, which threads share by sequences: no two of them meet. */                                     \
    typedef struct Walk_##T {                                                                                          \
        const Cell *cell;                                                                                              \
        const RecurrentShape *s;                                                                                       \
        STEP step;                                                                                                     \
        bool backward;                                                                                                 \
        const int64_t *lengths;                                                                                        \
        const T *xw;                                                                                                   \
        T *y, *hr, *met, *scratch, *room; /* met: what meets R */                                                      \
        size_t room_each;                                                                                              \
        Panel product;                                                                                                 \
        const TAPE *tape;                                                                                              \
    } Walk_##T;                                                                                                        \
    static void take_##T(const Walk_##T *w, const Layout *at, STEP step, int64_t b, int64_t t)                         \
    {                                                                                                                  \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n, k = recurrent_place(w->backward, w->lengths[b], t), \
                      row = k * at->x.step + b * at->x.batch;                                                          \
        step.xw = w->xw + row * wide;                                                                                  \
        step.hr = w->hr + b * wide;                                                                                    \
        step.h += b * n;                                                                                               \
        step.c += b * n;                                                                                               \
        if (w->tape) {                                                                                                 \
            memcpy(w->tape->h + row * n, step.h, (size_t)n * sizeof(T));                                               \
            memcpy(w->tape->c + row * n, step.c, (size_t)n * sizeof(T));                                               \
            step.z = w->tape->z + row * wide;                                                                          \
            step.linear = w->tape->linear + row * n;                                                                   \
        }                                                                                                              \
        step_of_##T(w->cell)(&step);                                                                                   \
        if (w->y)                                                                                                      \
            memcpy(w->y + k * at->y.step + b * at->y.batch, step.h, (size_t)n * sizeof(T));                            \
    }                                                                                                                  \
    static void walk_##T(void *arg, int64_t begin, int64_t end, int worker)                                            \
    {                                                                                                                  \
        const Walk_##T *w = arg;                                                                                       \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n;                                                     \
        const Layout at = recurrent_layout(w->step.at, w->s);                                                          \
        STEP step = w->step;                                                                                           \
        Panel p = w->product;                                                                                          \
        p.m = (size_t)(end - begin);                                                                                   \
        step.scratch = w->scratch + worker * RECURRENT_SCRATCH * n;                                                    \
        step.room = w->room + (size_t)worker * w->room_each;                                                           \
        for (int64_t t = 0; t < w->s->steps; t++) {                                                                    \
            for (int64_t i = begin * n; dtype_is_narrow(step.own) && i < end * n; i++)                                 \
                w->met[i] = narrowed_##T(step.own, step.h[i]);                                                         \
            panel_##T(step.kernels, &p, w->met + begin * n, step.turned, w->hr + begin * wide, step.room);             \
            for (int64_t b = begin; b < end; b++)                                                                      \
                if (t < w->lengths[b])                                                                                 \
                    take_##T(w, &at, step, b, t);                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    void recurrent_run_##T(Eval *e, const Cell *cell, const RecurrentShape *s, STEP step, bool backward,               \
                           const int64_t *lengths, const T *xw, T *y, const TAPE *tape)                                \
    {                                                                                                                  \
        const int64_t n = s->hidden, wide = cell->gates * n;                                                           \
        const size_t workers = (size_t)parallel_threads(e->pool), states = (size_t)(s->batch * n);                     \
        const Panel product = { .m = (size_t)s->batch,                                                                 \
                                .n = (size_t)wide,                                                                     \
                                .k = (size_t)n,                                                                        \
                                .lda = (size_t)n,                                                                      \
                                .ldb = (size_t)wide,                                                                   \
                                .ldc = (size_t)wide };                                                                 \
        step.turned = turned_##T(e, step.r, n, wide);                                                                  \
        step.kernels = e->kernels;                                                                                     \
        Walk_##T w = { cell, s, step, backward, lengths, xw, y, .product = product, .tape = tape };                    \
        w.hr = eval_scratch(e, (size_t)(s->batch * wide), sizeof(T));                                                  \
        w.met = dtype_is_narrow(step.own) ? eval_scratch(e, states, sizeof(T)) : step.h;                               \
        w.scratch = eval_room(e, workers * RECURRENT_SCRATCH * (size_t)n, sizeof(T));                                  \
        w.room_each = panel_room(&product);                                                                            \
        w.room = eval_room(e, workers * w.room_each, sizeof(T));                                                       \
        recurrent_shares(e, s->batch, (double)s->steps *(double)states *(double)wide, walk_##T, &w);                   \
    }                                                                                                                  \
    static T *state_##T(Eval *e, int operand, int64_t d, const RecurrentShape *s)                                      \
    {                                                                                                                  \
        const Strides at = recurrent_layout(e->attr, s).state;                                                         \
        const T *from = eval_has(e, operand) ? eval_##T(e, operand) : NULL;                                            \
        T *to = eval_scratch(e, (size_t)(s->batch * s->hidden), sizeof(T));                                            \
        for (int64_t b = 0; from && b < s->batch; b++)                                                                 \
            memcpy(to + b * s->hidden, from + d * at.direction + b * at.batch, (size_t)s->hidden * sizeof(T));         \
        return to;                                                                                                     \
    }                                                                                                                  \
    STEP recurrent_open_##T(Eval *e, const Cell *cell, const RecurrentShape *s, int64_t d, T *xw)                      \
    {                                                                                                                  \
        const RecurrentAttr *at = e->attr;                                                                             \
        const int64_t n = s->hidden, wide = cell->gates * n;                                                           \
        const T *w = eval_##T(e, 1) + d * wide * s->input;                                                             \
        const T *bias = eval_has(e, 3) ? eval_##T(e, 3) + d * 2 * wide : NULL;                                         \
        const bool peeps = cell->peephole >= 0 && eval_has(e, cell->peephole);                                         \
        Activation *act = eval_scratch(e, 3, sizeof *act);                                                             \
        BUG_IF(e->ir->memory, recurrent_activations(at, cell, (int)d, act, e->scratch));                               \
        const Panel product = { .m = (size_t)(s->steps * s->batch),                                                    \
                                .n = (size_t)wide,                                                                     \
                                .k = (size_t)s->input,                                                                 \
                                .lda = (size_t)s->input,                                                               \
                                .ldb = 1,                                                                              \
                                .b_step = (size_t)s->input,                                                            \
                                .ldc = (size_t)wide };                                                                 \
        recurrent_product_##T(e, &product, eval_##T(e, 0), w, xw);                                                     \
        return (STEP){ .at = at,                                                                                       \
                       .act = act,                                                                                     \
                       .hidden = n,                                                                                    \
                       .wb = bias,                                                                                     \
                       .rb = bias ? bias + wide : NULL,                                                                \
                       .peephole = peeps ? eval_##T(e, cell->peephole) + d * 3 * n : NULL,                             \
                       .r = eval_##T(e, 2) + d * wide * n,                                                             \
                       .own = e->in[0]->type->dtype,                                                                   \
                                                                                                                       \
                       .h = state_##T(e, cell->first_state, d, s),                                                     \
                       .c = cell->states > 1 ? state_##T(e, cell->first_state + 1, d, s)                               \
                                             : eval_scratch(e, (size_t)(s->batch * n), sizeof(T)) };                   \
    }                                                                                                                  \
    static void recurrent_##T(Eval *e, const Cell *cell, const RecurrentShape *s, const int64_t *lengths)              \
    {                                                                                                                  \
        const RecurrentAttr *at = e->attr;                                                                             \
        const Layout layout = recurrent_layout(at, s);                                                                 \
        const int64_t n = s->hidden, rows = s->steps * s->batch;                                                       \
        T *y = eval_out_##T(e, 0), *last[2] = { NULL, NULL };                                                          \
        for (int i = 0; i < cell->states && i + 1 < e->n_out; i++)                                                     \
            last[i] = eval_out_##T(e, i + 1);                                                                          \
        if (e->out[0]->bytes)                                                                                          \
            memset(y, 0, (size_t)(rows * s->directions * n) * sizeof(T));                                              \
        T *xw = eval_scratch(e, (size_t)(rows * cell->gates * n), sizeof(T));                                          \
        for (int64_t d = 0; d < s->directions; d++) {                                                                  \
            const STEP step = recurrent_open_##T(e, cell, s, d, xw);                                                   \
            recurrent_run_##T(e, cell, s, step, at->direction == RUN_REVERSE || d == 1, lengths, xw,                   \
                              y + d * layout.y.direction, NULL);                                                       \
            for (int64_t b = 0; b < s->batch; b++)                                                                     \
                for (int i = 0; i < 2; i++)                                                                            \
                    if (last[i])                                                                                       \
                        memcpy(last[i] + d * layout.state.direction + b * layout.state.batch,                          \
                               (i ? step.c : step.h) + b * n, (size_t)n * sizeof(T));                                  \
        }                                                                                                              \
    }
RECURRENT(f32, StepF32, TapeF32)
RECURRENT(f64, StepF64, TapeF64)
#undef RECURRENT

const int64_t *recurrent_lengths(Eval *e, const RecurrentShape *s)
{
    int64_t n;
    const int64_t *lens = eval_has(e, 4) ? eval_ints(e, 4, &n) : NULL;
    int64_t *lengths = eval_scratch(e, (size_t)s->batch + 1, sizeof *lengths);
    for (int64_t b = 0; b < s->batch; b++)
        if ((lengths[b] = length_of(e, lens, b, s->steps)) < 0)
            return NULL;
    return lengths;
}

Status eval_recurrent(Eval *e, const Cell *cell)
{
    const RecurrentShape s = recurrent_shape(e->attr, e->in[0]->type, e->in[2]->type);
    const int64_t *lengths = recurrent_lengths(e, &s);
    if (!lengths)
        return INVALID;
    (eval_is_f64(e) ? recurrent_f64 : recurrent_f32)(e, cell, &s, lengths);
    return OK;
}

/* Lists of activations and their scalars. */
static void sample_activations(Build *b, Rng *rng, RecurrentAttr *at, const Cell *cell)
{
    const int n = cell->functions * directions_of(at);
    const char **names = NEWS(b->graph->arena, const char *, n);
    float *scalars = NEWS(b->graph->arena, float, n);
    for (int i = 0; i < n; i++) {
        names[i] = squashes[rng_below(rng, (int64_t)COUNT(squashes))].name;
        scalars[i] = (float)(0.25 + 0.5 * rng_unit(rng));
    }
    at->activations = (Strs){ n, names };
    at->activation_alpha = (Floats){ (int)rng_below(rng, n + 1), scalars };
    at->activation_beta = (Floats){ (int)rng_below(rng, n + 1), scalars };
}

Node *sample_recurrent(Build *b, Rng *rng, int variant, Op op, const Cell *cell)
{
    RecurrentAttr at = { .direction = variant % 3,
                         .layout = variant / 3 % 2,
                         .input_forget = rng_below(rng, 3) == 0,
                         .linear_before_reset = rng_below(rng, 2) };
    const DType dtype = sample_float(rng);
    at.state_type = cell->states > 1 && dtype_is_narrow(dtype) && variant % 2 ? F32 + 1 : 0;
    const int64_t d = directions_of(&at), steps = rng_below(rng, 4), batch = rng_below(rng, 4);
    const int64_t input = rng_range(rng, 1, 3), h = rng_range(rng, 1, 4), wide = cell->gates * h;
    const int64_t x[2][3] = { { steps, batch, input }, { batch, steps, input } };
    const int64_t state[2][3] = { { d, batch, h }, { batch, d, h } };
    const DType rest = dtype_is_narrow(dtype) && rng_below(rng, 2) ? F32 : dtype;
    Node *in[8] = { NULL };
    at.hidden_size = rng_below(rng, 4) ? h : 0;
    at.clip = rng_below(rng, 4) ? 0 : 0.5f;
    if (rng_below(rng, 2))
        sample_activations(b, rng, &at, cell);
    in[0] = sample_tensor(b, rng, dtype, 3, x[at.layout], -1, 1);
    in[1] = sample_tensor(b, rng, dtype, 3, (const int64_t[]){ d, wide, input }, -1, 1);
    in[2] = sample_tensor(b, rng, dtype, 3, (const int64_t[]){ d, wide, h }, -1, 1);
    in[3] = rng_below(rng, 2) ? sample_tensor(b, rng, rest, 2, (const int64_t[]){ d, 2 * wide }, -1, 1) : NULL;
    in[4] = rng_below(rng, 2) ? sample_tensor(b, rng, I32, 1, &batch, 0, (double)steps) : NULL;
    for (int i = 0; i < cell->states; i++)
        in[cell->first_state + i] =
            rng_below(rng, 2) ? sample_tensor(b, rng, i ? rest : dtype, 3, state[at.layout], -1, 1) : NULL;
    if (cell->peephole >= 0 && rng_below(rng, 2))
        in[cell->peephole] = sample_tensor(b, rng, rest, 2, (const int64_t[]){ d, 3 * h }, -1, 1);
    return build_node_n(b, op, &at, cell->peephole >= 0 ? 8 : 6, in, 1 + (int)rng_below(rng, 1 + cell->states));
}
