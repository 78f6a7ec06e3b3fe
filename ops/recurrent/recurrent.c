/* lstm, gru and rnn: their forms, and what they compute (the walk is in ops/recurrent/recurrent_walk.c).
 *
 * Y is [steps, directions, batch, hidden], with layout 1 [batch, steps, directions, hidden]; states are
 * [directions, batch, hidden] or [batch, directions, hidden].  Behind the end of a sequence Y is zero.
 *
 * Of f16 and bf16 the states are f32 all the way; what meets R is rounded to that type. */
#include <strings.h>

#include "ops/recurrent/recurrent.h"

#include "ops/card/reduction.h"
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

void recurrent_kept_types(Types *types, const RecurrentAttr *at, const Cell *cell, const Type *x, const Type *r,
                          const Type **kept)
{
    const RecurrentShape s = recurrent_shape(at, x, r);
    for (int i = 0; i < RECURRENT_KEPT; i++) {
        const int64_t d = s.directions, columns = i ? s.hidden : times(cell->gates, s.hidden);
        const int64_t dims[2][4] = { { d, s.steps, s.batch, columns }, { d, s.batch, s.steps, columns } };
        kept[i] = type_tensor(types, dtype_wide(x->dtype), 4, dims[at->layout]);
    }
}

const Type *infer_recurrent_kept(Infer *q, const Cell *cell)
{
    const Type *results[3 + RECURRENT_KEPT];
    const int asked = q->n_out, n = 1 + cell->states;
    q->n_out = n;
    const Type *y = infer_recurrent(q, cell);
    q->n_out = asked;
    if (!y)
        return NULL;
    if (!recurrent_keeps(cell, q->attr, q->in[0]->dtype, q->scratch))
        return infer_fail(q, "keeps nothing of such activations, or of such a reset gate");
    for (int i = 0; i < n; i++)
        results[i] = y->parts[i];
    recurrent_kept_types(q->types, q->attr, cell, q->in[0], q->in[2], results + n);
    return infer_results(q, n + RECURRENT_KEPT, results);
}

static int64_t length_of(Eval *e, const int64_t *lens, int64_t b, int64_t steps)
{
    if (lens && (lens[b] < 0 || lens[b] > steps)) {
        (void)eval_fail(e, "sequence %" PRId64 " has %" PRId64 " steps of %" PRId64, b, lens[b], steps);
        return -1;
    }
    return lens ? lens[b] : steps;
}

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
