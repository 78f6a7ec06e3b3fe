/* The gradients of lstm, gru and rnn, back through time.
 *
 * The walk forward is made again, this time with a tape; then the steps are taken back, the last one first.  What the
 * gates of a step were sent is gathered in rows like those of x, so that the gradients of weights are one product
 * each, whose sums run over the rows in their order. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/recurrent/recurrent.h"
#include "ops/reduce.h"

enum { PLACES = 3 }; /* operands that can hold what reaches results: of Y, Y_h, Y_c */

const Type *infer_recurrent_grad(Infer *q, const Cell *cell)
{
    const int n_in = recurrent_operands(cell), n_y = 1 + cell->states;
    const int n_dx = 4 + cell->states + (cell->peephole >= 0);
    const int asked = q->n_out;
    q->n_out = n_y;
    const Type *y = infer_recurrent(q, cell);
    q->n_out = asked;
    if (!y)
        return NULL;
    if (q->in[0]->dtype != F32 && q->in[0]->dtype != F64)
        return infer_fail(q, "works in f32 and f64, not in %s", dtype_name(q->in[0]->dtype));
    for (int i = 0; i < n_y; i++) {
        const Type *dy = infer_has(q, n_in + i) ? q->in[n_in + i] : NULL;
        if (dy && !type_agrees(dy, y->parts[i]))
            return infer_fail(q, "operand %d is %s, wanted is %s", n_in + i, type_text(q->scratch, dy),
                              type_text(q->scratch, y->parts[i]));
    }
    const Type *w = q->in[1], *r = q->in[2];
    const int64_t d = w->rank == 3 ? w->dims[0] : DIM_UNKNOWN, hidden = r->rank == 3 ? r->dims[2] : DIM_UNKNOWN;
    const int64_t wide = hidden < 0 ? hidden : cell->gates * hidden;
    const Type *state = y->parts[1], *t = q->in[0];
    const Type *results[7] = { q->in[0], w,
                               r,        infer_shaped(q, 0, 2, (const int64_t[]){ d, wide < 0 ? wide : 2 * wide }),
                               state,    state };
    results[4 + cell->states] =
        type_tensor(q->types, t->dtype, 2, (const int64_t[]){ d, hidden < 0 ? hidden : 3 * hidden });
    return infer_results(q, n_dx, results);
}

/* One step of one sequence, taken back. */
#define BACK(T, STEP, TAPE)                                                                                            \
    typedef struct Back_##T {                                                                                          \
        const T *z, *linear, *h, *c; /* of the tape */                                                                 \
        T *dh, *dc;                  /* what reaches the states behind the step; then before it, but for h R' */       \
        T *dx, *dr;                  /* what reaches x W' and h R' of the gates */                                     \
        T *gated;                    /* of gru: the gated state, where R acts on it; of lstm gets c behind the step */ \
    } Back_##T;                                                                                                        \
    static void back_lstm_##T(const STEP *s, const Back_##T *k)                                                        \
    {                                                                                                                  \
        enum { I, O, F, C };                                                                                           \
        const float clip = s->at->clip;                                                                                \
        const int64_t n = s->hidden;                                                                                   \
        const bool tied = s->at->input_forget;                                                                         \
        const Activation *act = s->act;                                                                                \
        const T *p = s->peephole, *z = k->z, *past = k->c;                                                             \
        T *i = s->scratch, *o = i + n, *f = o + n, *g = f + n, *t = g + n, *c = k->gated;                              \
        T *si = t + n, *so = si + n, *sf = so + n, *sg = sf + n, *st = sg + n;                                         \
        squash_each_##T(s->kernels, &act[0], clip, n, z + I * n, i);                                                   \
        squash_each_##T(s->kernels, &act[0], clip, n, z + O * n, o);                                                   \
        squash_each_##T(s->kernels, &act[0], clip, n, z + F * n, f);                                                   \
        squash_each_##T(s->kernels, &act[1], clip, n, z + C * n, g);                                                   \
        slope_each_##T(&act[0], clip, n, z + I * n, i, si);                                                            \
        slope_each_##T(&act[0], clip, n, z + O * n, o, so);                                                            \
        slope_each_##T(&act[0], clip, n, z + F * n, f, sf);                                                            \
        slope_each_##T(&act[1], clip, n, z + C * n, g, sg);                                                            \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            f[j] = tied ? 1 - i[j] : f[j];                                                                             \
            c[j] = f[j] * past[j] + i[j] * g[j];                                                                       \
        }                                                                                                              \
        squash_each_##T(s->kernels, &act[2], 0, n, c, t);                                                              \
        slope_each_##T(&act[2], 0, n, c, t, st);                                                                       \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const T dh = k->dh[j], dzo = dh * t[j] * so[j];                                                            \
            const T dc = k->dc[j] + dh * o[j] * st[j] + (p ? dzo * p[n + j] : 0);                                      \
            const T di = tied ? dc * g[j] - dc * past[j] : dc * g[j], dzi = di * si[j];                                \
            const T dzf = tied ? 0 : dc * past[j] * sf[j], dzg = dc * i[j] * sg[j];                                    \
            k->dc[j] = dc * f[j] + (p ? dzi * p[j] + dzf * p[2 * n + j] : 0);                                          \
            k->dh[j] = 0;                                                                                              \
            k->dx[I * n + j] = dzi, k->dx[O * n + j] = dzo, k->dx[F * n + j] = dzf, k->dx[C * n + j] = dzg;            \
        }                                                                                                              \
        memcpy(k->dr, k->dx, (size_t)(4 * n) * sizeof(T));                                                             \
    }                                                                                                                  \
    static void back_gru_##T(const STEP *s, const Back_##T *k)                                                         \
    {                                                                                                                  \
        enum { Z, R, H };                                                                                              \
        const float clip = s->at->clip;                                                                                \
        const int64_t n = s->hidden;                                                                                   \
        const Activation *act = s->act;                                                                                \
        T *da = s->scratch; /* what reaches the gated state */                                                         \
        T *z = da + n, *r = z + n, *h = r + n, *sz = h + n, *sr = sz + n, *sh = sr + n;                                \
        squash_each_##T(s->kernels, &act[0], clip, n, k->z + Z * n, z);                                                \
        squash_each_##T(s->kernels, &act[0], clip, n, k->z + R * n, r);                                                \
        squash_each_##T(s->kernels, &act[1], clip, n, k->z + H * n, h);                                                \
        slope_each_##T(&act[0], clip, n, k->z + Z * n, z, sz);                                                         \
        slope_each_##T(&act[0], clip, n, k->z + R * n, r, sr);                                                         \
        slope_each_##T(&act[1], clip, n, k->z + H * n, h, sh);                                                         \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            const T dh = k->dh[j], dzh = dh * (1 - z[j]) * sh[j];                                                      \
            k->dh[j] = dh * z[j];                                                                                      \
            k->dx[Z * n + j] = k->dr[Z * n + j] = dh * (k->h[j] - h[j]) * sz[j];                                       \
            k->dx[H * n + j] = k->dr[H * n + j] = dzh;                                                                 \
        }                                                                                                              \
        if (!s->at->linear_before_reset) {                                                                             \
            const size_t m = (size_t)n;                                                                                \
            const Panel p = { .m = 1, .n = m, .k = m, .lda = m, .ldb = m, .ldc = m };                                  \
            panel_##T(s->kernels, &p, k->dr + H * n, s->r + H * n * n, da, s->room);                                   \
        }                                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            T dr;                                                                                                      \
            if (s->at->linear_before_reset) {                                                                          \
                dr = k->dx[H * n + j] * k->linear[j];                                                                  \
                k->dr[H * n + j] = k->dx[H * n + j] * r[j];                                                            \
            } else {                                                                                                   \
                dr = da[j] * k->h[j];                                                                                  \
                k->dh[j] += da[j] * r[j];                                                                              \
                k->gated[j] = r[j] * k->h[j];                                                                          \
            }                                                                                                          \
            k->dx[R * n + j] = k->dr[R * n + j] = dr * sr[j];                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void back_rnn_##T(const STEP *s, const Back_##T *k)                                                         \
    {                                                                                                                  \
        const int64_t n = s->hidden;                                                                                   \
        T *y = s->scratch, *slope = y + n;                                                                             \
        squash_each_##T(s->kernels, &s->act[0], s->at->clip, n, k->z, y);                                              \
        slope_each_##T(&s->act[0], s->at->clip, n, k->z, y, slope);                                                    \
        for (int64_t j = 0; j < n; j++) {                                                                              \
            k->dx[j] = k->dr[j] = k->dh[j] * slope[j];                                                                 \
            k->dh[j] = 0;                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    typedef void BackFn_##T(const STEP *s, const Back_##T *k);                                                         \
    static BackFn_##T *back_of_##T(const Cell *cell)                                                                   \
    {                                                                                                                  \
        return cell == &cell_lstm ? back_lstm_##T : cell == &cell_gru ? back_gru_##T : back_rnn_##T;                   \
    }                                                                                                                  \
    /* One direction: tape, and what was found of it. */                                                               \
    typedef struct Way_##T {                                                                                           \
        const Cell *cell;                                                                                              \
        const RecurrentShape *s;                                                                                       \
        const int64_t *lengths;                                                                                        \
        STEP step;                                                                                                     \
        bool backward;                                                                                                 \
        int64_t through; /* columns of dr that reach the state through R */                                            \
        Panel product;   /* of these with R */                                                                         \
        TAPE tape;                                                                                                     \
        T *dh, *dc, *dx, *dr, *gated, *dp, *sent, *reached;                                                            \
        size_t room_each;                                                                                              \
        const T *dy;                                                                                                   \
    } Way_##T;                                                                                                         \
    static void step_back_##T(const Way_##T *w, const Layout *at, const STEP *step, int64_t b, int64_t t)              \
    {                                                                                                                  \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n, k = recurrent_place(w->backward, w->lengths[b], t), \
                      row = k * at->x.step + b * at->x.batch;                                                          \
        const T *dy = w->dy ? w->dy + k * at->y.step + b * at->y.batch : NULL;                                         \
        const Back_##T back = { .z = w->tape.z + row * wide,                                                           \
                                .linear = w->tape.linear + row * n,                                                    \
                                .h = w->tape.h + row * n,                                                              \
                                .c = w->tape.c + row * n,                                                              \
                                .dh = w->dh + b * n,                                                                   \
                                .dc = w->dc + b * n,                                                                   \
                                .dx = w->dx + row * wide,                                                              \
                                .dr = w->dr + row * wide,                                                              \
                                .gated = w->gated + row * n };                                                         \
        for (int64_t j = 0; dy && j < n; j++)                                                                          \
            back.dh[j] += dy[j];                                                                                       \
        back_of_##T(w->cell)(step, &back);                                                                             \
        memcpy(w->sent + b * w->through, back.dr, (size_t)w->through * sizeof(T));                                     \
    }                                                                                                                  \
    /* Some sequences back through time. */                                                                            \
    static void walk_back_##T(void *arg, int64_t begin, int64_t end, int worker)                                       \
    {                                                                                                                  \
        const Way_##T *w = arg;                                                                                        \
        const int64_t n = w->s->hidden;                                                                                \
        const Layout at = recurrent_layout(w->step.at, w->s);                                                          \
        STEP step = w->step;                                                                                           \
        Panel p = w->product;                                                                                          \
        p.m = (size_t)(end - begin);                                                                                   \
        step.scratch += worker * RECURRENT_SCRATCH * n;                                                                \
        step.room += (size_t)worker * w->room_each;                                                                    \
        for (int64_t t = w->s->steps - 1; t >= 0; t--) {                                                               \
            T *sent = w->sent + begin * w->through;                                                                    \
            memset(sent, 0, p.m *(size_t)w->through * sizeof(T));                                                      \
            for (int64_t b = begin; b < end; b++)                                                                      \
                if (t < w->lengths[b])                                                                                 \
                    step_back_##T(w, &at, &step, b, t);                                                                \
            panel_##T(step.kernels, &p, sent, step.r, w->reached + begin * n, step.room);                              \
            for (int64_t b = begin; b < end; b++)                                                                      \
                for (int64_t j = 0; t < w->lengths[b] && j < n; j++)                                                   \
                    w->dh[b * n + j] += w->reached[b * n + j];                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    /* The gradients of peepholes are summed in one order, whoever walked. */                                          \
    static void peep_##T(const Way_##T *w)                                                                             \
    {                                                                                                                  \
        enum { I, O, F };                                                                                              \
        const int64_t n = w->s->hidden;                                                                                \
        const Layout at = recurrent_layout(w->step.at, w->s);                                                          \
        memset(w->dp, 0, 3 * (size_t)n * sizeof(T));                                                                   \
        for (int64_t t = w->s->steps - 1; t >= 0; t--)                                                                 \
            for (int64_t b = 0; b < w->s->batch; b++) {                                                                \
                const int64_t row = recurrent_place(w->backward, w->lengths[b], t) * at.x.step + b * at.x.batch;       \
                const T *dz = w->dx + row * 4 * n, *past = w->tape.c + row * n, *c = w->gated + row * n;               \
                for (int64_t j = 0; t < w->lengths[b] && j < n; j++) {                                                 \
                    w->dp[j] += dz[I * n + j] * past[j];                                                               \
                    w->dp[n + j] += dz[O * n + j] * c[j];                                                              \
                    w->dp[2 * n + j] += dz[F * n + j] * past[j];                                                       \
                }                                                                                                      \
            }                                                                                                          \
    }                                                                                                                  \
    /* to[cols, n] = a' b over rows */                                                                                 \
    static void outer_##T(Eval *e, const T *a, int64_t wide, int64_t cols, const T *b, int64_t n, int64_t rows, T *to) \
    {                                                                                                                  \
        const Panel p = { .m = (size_t)cols,                                                                           \
                          .n = (size_t)n,                                                                              \
                          .k = (size_t)rows,                                                                           \
                          .lda = 1,                                                                                    \
                          .a_step = (size_t)wide,                                                                      \
                          .ldb = (size_t)n,                                                                            \
                          .ldc = (size_t)n };                                                                          \
        recurrent_product_##T(e, &p, a, b, to);                                                                        \
    }                                                                                                                  \
    /* The gradients of what every step used. */                                                                       \
    static void gather_##T(Eval *e, Way_##T *w, int64_t d)                                                             \
    {                                                                                                                  \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n, rows = w->s->steps * w->s->batch,                   \
                      input = w->s->input;                                                                             \
        const int64_t through = w->through;                                                                            \
        T *x = eval_out_##T(e, 0), *r = eval_out_##T(e, 2) + d * wide * n, *bias = eval_out_##T(e, 3) + d * 2 * wide;  \
        T *part = d ? eval_scratch(e, (size_t)(rows * input), sizeof(T)) : x;                                          \
        const Panel p = { (size_t)rows, (size_t)input, (size_t)wide, (size_t)wide, (size_t)input, (size_t)input };     \
        recurrent_product_##T(e, &p, w->dx, eval_##T(e, 1) + d * wide * input, part);                                  \
        for (int64_t i = 0; d && i < rows * input; i++)                                                                \
            x[i] += part[i];                                                                                           \
        outer_##T(e, w->dx, wide, wide, eval_##T(e, 0), input, rows, eval_out_##T(e, 1) + d * wide * input);           \
        outer_##T(e, w->dr, wide, through, w->tape.h, n, rows, r);                                                     \
        if (through < wide)                                                                                            \
            outer_##T(e, w->dr + through, wide, wide - through, w->gated, n, rows, r + through * n);                   \
        sum_cols_##T(w->dx, (size_t)rows, (size_t)wide, (size_t)wide, bias);                                           \
        sum_cols_##T(w->dr, (size_t)rows, (size_t)wide, (size_t)wide, bias + wide);                                    \
    }                                                                                                                  \
    static T *reached_##T(Eval *e, const RecurrentShape *s, int operand, int64_t d)                                    \
    {                                                                                                                  \
        const Strides at = recurrent_layout(e->attr, s).state;                                                         \
        const T *from = eval_has(e, operand) ? eval_##T(e, operand) : NULL;                                            \
        T *to = eval_scratch(e, (size_t)(s->batch * s->hidden), sizeof(T));                                            \
        for (int64_t b = 0; from && b < s->batch; b++)                                                                 \
            memcpy(to + b * s->hidden, from + d * at.direction + b * at.batch, (size_t)s->hidden * sizeof(T));         \
        return to;                                                                                                     \
    }                                                                                                                  \
    static void back_##T(Eval *e, const Cell *cell, const RecurrentShape *s, const int64_t *lengths, int64_t d)        \
    {                                                                                                                  \
        const RecurrentAttr *at = e->attr;                                                                             \
        const Layout layout = recurrent_layout(at, s);                                                                 \
        const int64_t n = s->hidden, wide = cell->gates * n, dy = recurrent_operands(cell);                            \
        const size_t rows = (size_t)(s->steps * s->batch), row = (size_t)wide;                                         \
        T *xw = eval_scratch(e, rows * row, sizeof(T));                                                                \
        Way_##T w = { .cell = cell,                                                                                    \
                      .s = s,                                                                                          \
                      .lengths = lengths,                                                                              \
                      .step = recurrent_open_##T(e, cell, s, d, xw),                                                   \
                      .backward = at->direction == RUN_REVERSE || d == 1,                                              \
                      .through = cell == &cell_gru && !at->linear_before_reset ? 2 * n : wide,                         \
                      .tape = { eval_scratch(e, rows * (size_t)n, sizeof(T)),                                          \
                                eval_scratch(e, rows * (size_t)n, sizeof(T)), eval_scratch(e, rows * row, sizeof(T)),  \
                                eval_scratch(e, rows * (size_t)n, sizeof(T)) },                                        \
                      .dh = reached_##T(e, s, (int)dy + 1, d),                                                         \
                      .dc = reached_##T(e, s, cell->states > 1 ? (int)dy + 2 : e->n_in, d),                            \
                      .dx = eval_scratch(e, rows * row, sizeof(T)),                                                    \
                      .dr = eval_scratch(e, rows * row, sizeof(T)),                                                    \
                      .gated = eval_scratch(e, rows * (size_t)n, sizeof(T)),                                           \
                      .dp = cell->peephole >= 0 ? eval_out_##T(e, 4 + cell->states) + d * 3 * n : NULL,                \
                      .dy = eval_has(e, (int)dy) ? eval_##T(e, (int)dy) + d * layout.y.direction : NULL };             \
        recurrent_run_##T(e, cell, s, w.step, w.backward, lengths, xw, NULL, &w.tape);                                 \
        w.product =                                                                                                    \
            (Panel){ (size_t)s->batch, (size_t)n, (size_t)w.through, (size_t)w.through, (size_t)n, (size_t)n };        \
        const size_t workers = (size_t)parallel_threads(e->pool);                                                      \
        w.step.scratch = eval_room(e, workers * RECURRENT_SCRATCH * (size_t)n, sizeof(T));                             \
        w.step.kernels = e->kernels;                                                                                   \
        w.room_each = panel_room(&w.product);                                                                          \
        w.step.room = eval_room(e, workers * w.room_each, sizeof(T));                                                  \
        w.sent = eval_scratch(e, (size_t)(s->batch * wide), sizeof(T));                                                \
        w.reached = eval_scratch(e, (size_t)(s->batch * n), sizeof(T));                                                \
        recurrent_shares(e, s->batch, (double)rows *(double)n *(double)wide, walk_back_##T, &w);                       \
        if (w.dp)                                                                                                      \
            peep_##T(&w);                                                                                              \
        gather_##T(e, &w, d);                                                                                          \
        for (int i = 0; i < cell->states; i++) {                                                                       \
            T *to = eval_out_##T(e, 4 + i) + d * layout.state.direction;                                               \
            for (int64_t b = 0; b < s->batch; b++)                                                                     \
                memcpy(to + b * layout.state.batch, (i ? w.dc : w.dh) + b * n, (size_t)n * sizeof(T));                 \
        }                                                                                                              \
    }
BACK(f32, StepF32, TapeF32)
BACK(f64, StepF64, TapeF64)
#undef BACK

Status eval_recurrent_grad(Eval *e, const Cell *cell)
{
    const RecurrentShape s = recurrent_shape(e->attr, e->in[0]->type, e->in[2]->type);
    const int64_t *lengths = recurrent_lengths(e, &s);
    if (!lengths)
        return INVALID;
    for (int64_t d = 0; d < s.directions; d++)
        (eval_is_f64(e) ? back_f64 : back_f32)(e, cell, &s, lengths, d);
    return OK;
}

void adjoint_recurrent(Build *b, const Site *s, Node **dx, Op grad, const Cell *cell)
{
    enum { MOST = 8 + PLACES, LENGTHS = 4 };
    const int n_in = recurrent_operands(cell);
    Node *ins[MOST] = { NULL };
    for (int i = 0; i < s->n_in; i++)
        ins[i] = s->in[i];
    for (int i = 0; i < s->n_out; i++)
        ins[n_in + i] = s->dout[i];
    Node *call = build_node_n(b, grad, s->attr, n_in + 1 + cell->states, ins, n_in - 1);
    for (int i = 0; i < s->n_in; i++)
        if (s->want[i])
            dx[i] = build_part(b, call, i < LENGTHS ? i : i - 1);
}

Node *sample_recurrent_grad(Build *b, Rng *rng, int variant, Op op, Op forward, const Cell *cell)
{
    enum { MOST = 8 + PLACES };
    Node *y = sample_recurrent(b, rng, variant, forward, cell), *ins[MOST] = { NULL };
    if (!y)
        return NULL;
    const DType width = make_width(in(y, 0)->type->dtype);
    const int n_in = recurrent_operands(cell), n_y = type_results(y->type);
    for (int i = 0; i < y->n_in; i++)
        ins[i] = in(y, i) && dtype_is_float(in(y, i)->type->dtype) ? make_cast(b, in(y, i), width) : in(y, i);
    for (int i = 0; i < n_y; i++) {
        const Type *t = type_result(y->type, i);
        if (rng_below(rng, 4))
            ins[n_in + i] = sample_tensor(b, rng, width, t->rank, t->dims, -1, 1);
    }
    return build_node_n(b, op, y->attr, n_in + 1 + cell->states, ins, n_in - 1);
}
