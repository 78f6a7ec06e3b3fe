/* The gradients of lstm, gru and rnn, back through time.
 *
 * Y has the states, so that what entered the activations of all steps needs no walk but one product, and not even that where the forward
 * call kept what they gave; then the steps are taken back, the last one first.  What the
 * gates of a step were sent is gathered in rows like those of x, so that the gradients of weights are one product
 * each, whose sums run over the rows in their order. */
#include <string.h>

#include "ops/recurrent/recurrent.h"
#include "ops/reduce.h"

#define ARITH_OF_f32 ARITH_F32
#define ARITH_OF_f64 ARITH_F64

/* One step of one sequence, taken back: some units, with which all of it begins. */
#define BACK(T, STEP, RECALL)                                                                                                   \
    typedef struct Back_##T {                                                                                                   \
        const T *z, *linear, *h, *c, *behind; /* states before the step; c behind it */                                         \
        T *dh, *dc; /* what reaches the states behind the step; then before it, but for h R' */                                 \
        T *dx, *dr; /* dx: what activations gave; then what reaches x W' and h R' of the gates */                               \
        T *gated;   /* of gru: the gated state, where R acts on it */                                                           \
    } Back_##T;                                                                                                                 \
    static void back_lstm_##T(const STEP *s, const Back_##T *k)                                                                 \
    {                                                                                                                           \
        enum { I, O, F, C };                                                                                                    \
        const float clip = s->at->clip;                                                                                         \
        const int64_t n = s->hidden, units = s->units;                                                                          \
        const bool tied = s->at->input_forget;                                                                                  \
        const Activation *act = s->act;                                                                                         \
        const T *p = s->peephole, *z = k->z, *past = k->c;                                                                      \
        T *restrict i = k->dx + I * n, *restrict o = k->dx + O * n, *restrict f = k->dx + F * n,                                \
                    *restrict g = k->dx + C * n, *restrict state = k->dh, *restrict cell = k->dc;                               \
        T *t = s->scratch, *si = t + n, *so = si + n, *sf = so + n, *sg = sf + n, *st = sg + n;                                 \
        slope_each_##T(s->kernels, &act[0], clip, units, z + I * n, i, si);                                                     \
        slope_each_##T(s->kernels, &act[0], clip, units, z + O * n, o, so);                                                     \
        slope_each_##T(s->kernels, &act[0], clip, units, z + F * n, f, sf);                                                     \
        slope_each_##T(s->kernels, &act[1], clip, units, z + C * n, g, sg);                                                     \
        squash_each_##T(s->kernels, &act[2], 0, units, k->behind, t);                                                           \
        slope_each_##T(s->kernels, &act[2], 0, units, k->behind, t, st);                                                        \
        for (int64_t j = 0; j < units; j++) {                                                                                   \
            const T dh = state[j], dzo = dh * t[j] * so[j];                                                                     \
            const T dc = cell[j] + dh * o[j] * st[j] + (p ? dzo * p[n + j] : 0);                                                \
            const T di = tied ? dc * g[j] - dc * past[j] : dc * g[j], dzi = di * si[j];                                         \
            const T dzf = tied ? 0 : dc * past[j] * sf[j], dzg = dc * i[j] * sg[j];                                             \
            cell[j] = dc * f[j] + (p ? dzi * p[j] + dzf * p[2 * n + j] : 0);                                                    \
            state[j] = 0;                                                                                                       \
            i[j] = dzi, o[j] = dzo, f[j] = dzf, g[j] = dzg;                                                                     \
        }                                                                                                                       \
    }                                                                                                                           \
    static void back_gru_##T(const STEP *s, const Back_##T *k)                                                                  \
    {                                                                                                                           \
        enum { Z, R, H };                                                                                                       \
        const float clip = s->at->clip;                                                                                         \
        const int64_t n = s->hidden, units = s->units;                                                                          \
        const Activation *act = s->act;                                                                                         \
        T *da = s->scratch; /* what reaches the gated state */                                                                  \
        T *z = k->dx + Z * n, *r = k->dx + R * n, *h = k->dx + H * n, *sz = da + n, *sr = sz + n, *sh = sr + n;                 \
        slope_each_##T(s->kernels, &act[0], clip, units, k->z + Z * n, z, sz);                                                  \
        slope_each_##T(s->kernels, &act[0], clip, units, k->z + R * n, r, sr);                                                  \
        slope_each_##T(s->kernels, &act[1], clip, units, k->z + H * n, h, sh);                                                  \
        for (int64_t j = 0; j < units; j++) {                                                                                   \
            const T dh = k->dh[j], dzh = dh * (1 - z[j]) * sh[j];                                                               \
            k->dh[j] = dh * z[j];                                                                                               \
            z[j] = k->dr[Z * n + j] = dh * (k->h[j] - h[j]) * sz[j];                                                            \
            h[j] = k->dr[H * n + j] = dzh;                                                                                      \
        }                                                                                                                       \
        if (!s->at->linear_before_reset) {                                                                                      \
            const size_t m = (size_t)n;                                                                                         \
            const Panel p = { .m = 1, .n = m, .k = m, .lda = m, .ldb = m, .ldc = m };                                           \
            T *sent = sh + n;                                                                                                   \
            recurrent_keep_##T(s, k->dr + H * n, n, sent, 0);                                                                   \
            panel_##T(s->kernels, &p, sent, (const T *)s->r + H * n * n, da, s->room);                                          \
        }                                                                                                                       \
        for (int64_t j = 0; j < units; j++) {                                                                                   \
            T dr;                                                                                                               \
            if (s->at->linear_before_reset) {                                                                                   \
                dr = h[j] * k->linear[j];                                                                                       \
                k->dr[H * n + j] = h[j] * r[j];                                                                                 \
            } else {                                                                                                            \
                dr = da[j] * k->h[j];                                                                                           \
                k->dh[j] += da[j] * r[j];                                                                                       \
                k->gated[j] = r[j] * k->h[j];                                                                                   \
            }                                                                                                                   \
            r[j] = k->dr[R * n + j] = dr * sr[j];                                                                               \
        }                                                                                                                       \
    }                                                                                                                           \
    static void back_rnn_##T(const STEP *s, const Back_##T *k)                                                                  \
    {                                                                                                                           \
        slope_each_##T(s->kernels, &s->act[0], s->at->clip, s->units, k->z, k->dx, s->scratch);                                 \
        for (int64_t j = 0; j < s->units; j++) {                                                                                \
            k->dx[j] = k->dh[j] * s->scratch[j];                                                                                \
            k->dh[j] = 0;                                                                                                       \
        }                                                                                                                       \
    }                                                                                                                           \
    typedef void BackFn_##T(const STEP *s, const Back_##T *k);                                                                  \
    static BackFn_##T *back_of_##T(const Cell *cell)                                                                            \
    {                                                                                                                           \
        return cell == &cell_lstm ? back_lstm_##T : cell == &cell_gru ? back_gru_##T : back_rnn_##T;                            \
    }                                                                                                                           \
    /* One direction.  Rows are those of x: the states before each step, and c behind it; what entered activations; what they \
     * gave, and then what reaches x W'; what reaches h R', which of lstm and rnn is the same. */ \
    typedef struct Way_##T {                                                                                                    \
        const Cell *cell;                                                                                                       \
        const RecurrentShape *s;                                                                                                \
        const int64_t *lengths;                                                                                                 \
        STEP step;                                                                                                              \
        bool backward;                                                                                                          \
        Layout at;                                                                                                              \
        int64_t through; /* columns of dr that reach the state through R */                                                     \
        RECALL forth, back;                                                                                                     \
        const T *dy;                                                                                                            \
        const T *gates, *c,                                                                                                     \
            *linear; /* gates: null, or what they gave, and c and linear are those of the forward call */                       \
        T *h, *made_c, *z, *made_linear, *dx, *dr, *gated, *dp;                                                                 \
        const void *states; /* h as products have it */                                                                         \
        T *dh, *dc, *reached;                                                                                                   \
        void *sent[2]; /* through R, in turns */                                                                                \
    } Way_##T;                                                                                                                  \
    static int64_t row_of_##T(const Way_##T *w, int64_t b, int64_t t)                                                           \
    {                                                                                                                           \
        return recurrent_place(w->backward, w->lengths[b], t) * w->at.x.step + b * w->at.x.batch;                               \
    }                                                                                                                           \
    static const T *past_c_##T(const Way_##T *w, int64_t b, int64_t t)                                                          \
    {                                                                                                                           \
        const int64_t n = w->s->hidden;                                                                                         \
        return t ? w->c + row_of_##T(w, b, t - 1) * n : w->step.c + b * n;                                                      \
    }                                                                                                                           \
    static void step_of_share_##T(const void *walk, const RecurrentShare *share, int64_t t)                                     \
    {                                                                                                                           \
        const Way_##T *w = walk;                                                                                                \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n, u = share->unit;                                             \
        STEP step = recurrent_part_##T(&w->step, share);                                                                        \
        for (int64_t b = share->begin; b < share->end; b++) {                                                                   \
            if (t >= w->lengths[b])                                                                                             \
                continue;                                                                                                       \
            const int64_t row = row_of_##T(w, b, t);                                                                            \
            step.xw = step.acts = w->dx + row * wide + u;                                                                       \
            step.hr = step.z = w->z + row * wide + u;                                                                           \
            step.linear = w->made_linear ? w->made_linear + row * n + u : NULL;                                                 \
            step.past = w->h + row * n + u;                                                                                     \
            step.h = NULL;                                                                                                      \
            step.past_c = past_c_##T(w, b, t) + u;                                                                              \
            step.c = w->made_c + row * n + u;                                                                                   \
            recurrent_step_##T(w->cell)(&step);                                                                                 \
        }                                                                                                                       \
    }                                                                                                                           \
    /* What is multiplied, in the type of products. */                                                                          \
    typedef struct Kept_##T {                                                                                                   \
        const STEP *step;                                                                                                       \
        const T *from;                                                                                                          \
        void *to;                                                                                                               \
    } Kept_##T;                                                                                                                 \
    static void keep_##T(void *arg, int64_t begin, int64_t end, int worker)                                                     \
    {                                                                                                                           \
        const Kept_##T *k = arg;                                                                                                \
        recurrent_keep_##T(k->step, k->from + begin, end - begin, k->to, begin);                                                \
        (void)worker;                                                                                                           \
    }                                                                                                                           \
    static const void *kept_##T(Eval *e, const STEP *step, const T *from, int64_t n)                                            \
    {                                                                                                                           \
        if (!dtype_is_narrow(step->own))                                                                                        \
            return from;                                                                                                        \
        Kept_##T k = { step, from, eval_room(e, (size_t)n, sizeof(T)) };                                                        \
        recurrent_shares(e, n, REDUCE_TILE, 8 * (double)n, keep_##T, &k);                                                       \
        return k.to;                                                                                                            \
    }                                                                                                                           \
    /* The states before each step. */                                                                                          \
    static void states_##T(Eval *e, Way_##T *w, const T *y)                                                                     \
    {                                                                                                                           \
        const int64_t n = w->s->hidden;                                                                                         \
        for (int64_t b = 0; b < w->s->batch; b++)                                                                               \
            for (int64_t t = 0; t < w->lengths[b]; t++) {                                                                       \
                const int64_t k = t ? recurrent_place(w->backward, w->lengths[b], t - 1) : 0;                                   \
                memcpy(w->h + row_of_##T(w, b, t) * n,                                                                          \
                       t ? y + k * w->at.y.step + b * w->at.y.batch : w->step.h + b * n, (size_t)n * sizeof(T));                \
            }                                                                                                                   \
        w->states = kept_##T(e, &w->step, w->h, w->s->steps * w->s->batch * n);                                                 \
    }                                                                                                                           \
    /* What the walk went through, without its order: the states are known, and what they give R is one product. */             \
    static void retrace_##T(Eval *e, Way_##T *w)                                                                                \
    {                                                                                                                           \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n;                                                              \
        const size_t rows = (size_t)(w->s->steps * w->s->batch), units = (size_t)n;                                             \
        const Panel p = { .m = rows,                                                                                            \
                          .n = (size_t)wide,                                                                                    \
                          .k = units,                                                                                           \
                          .lda = units,                                                                                         \
                          .ldb = 1,                                                                                             \
                          .b_step = units,                                                                                      \
                          .ldc = (size_t)wide,                                                                                  \
                          .is_bf16 = w->step.words != NULL };                                                                   \
        recurrent_product_##T(e, &p, w->states, w->step.r, w->z);                                                               \
        if (recurrent_is_whole(w->cell, w->step.at))                                                                            \
            w->forth = recurrent_recall_steps_##T(e, w->cell, w->s, &w->step);                                                  \
        recurrent_rooms_##T(e, &w->step, &w->forth);                                                                            \
        recurrent_walk(e, w->s, false, w->s->steps, (double)rows * 32 * (double)wide, step_of_share_##T, w);                    \
    }                                                                                                                           \
    /* Nothing reaches what lies behind the ends of sequences. */                                                               \
    static void clear_##T(Way_##T *w)                                                                                           \
    {                                                                                                                           \
        const int64_t wide = w->cell->gates * w->s->hidden;                                                                     \
        for (int64_t b = 0; b < w->s->batch; b++)                                                                               \
            for (int64_t k = w->lengths[b]; k < w->s->steps; k++)                                                               \
                memset(w->dx + (k * w->at.x.step + b * w->at.x.batch) * wide, 0, (size_t)wide * sizeof(T));                     \
    }                                                                                                                           \
    static void step_back_##T(const Way_##T *w, const STEP *step, const RecurrentShare *share, int64_t b, int64_t t)            \
    {                                                                                                                           \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n, u = share->unit, row = row_of_##T(w, b, t),                  \
                      k = recurrent_place(w->backward, w->lengths[b], t);                                                       \
        const T *dy = w->dy ? w->dy + k * w->at.y.step + b * w->at.y.batch + u : NULL;                                          \
        const Back_##T back = { .z = w->z + row * wide + u,                                                                     \
                                .linear = w->linear ? w->linear + row * n + u : NULL,                                           \
                                .h = w->h + row * n + u,                                                                        \
                                .c = past_c_##T(w, b, t) + u,                                                                   \
                                .behind = w->c + row * n + u,                                                                   \
                                .dh = w->dh + b * n + u,                                                                        \
                                .dc = w->dc + b * n + u,                                                                        \
                                .dx = w->dx + row * wide + u,                                                                   \
                                .dr = w->dr + row * wide + u,                                                                   \
                                .gated = w->gated ? w->gated + row * n + u : NULL };                                            \
        for (int64_t j = 0; dy && j < share->units; j++)                                                                        \
            back.dh[j] += dy[j];                                                                                                \
        for (int64_t gate = 0; w->gates && gate < wide; gate += n)                                                              \
            memcpy(back.dx + gate, w->gates + row * wide + gate + u, (size_t)share->units * sizeof(T));                         \
        back_of_##T(w->cell)(step, &back);                                                                                      \
        for (int64_t gate = 0; gate < w->through; gate += n)                                                                    \
            recurrent_keep_##T(step, back.dr + gate, share->units, w->sent[t % 2], b * w->through + gate + u);                  \
    }                                                                                                                           \
    /* First what the step behind sent through R; the last turn is that alone. */                                               \
    static void walk_back_##T(const void *walk, const RecurrentShare *share, int64_t turn)                                      \
    {                                                                                                                           \
        const Way_##T *w = walk;                                                                                                \
        const int64_t n = w->s->hidden, t = w->s->steps - 1 - turn;                                                             \
        const STEP step = recurrent_part_##T(&w->step, share);                                                                  \
        if (turn)                                                                                                               \
            recurrent_recalled_##T(&w->step, &w->back, share, w->sent[(t + 1) % 2], w->reached);                                \
        for (int64_t b = share->begin; b < share->end; b++) {                                                                   \
            T *dh = w->dh + b * n + share->unit;                                                                                \
            const T *reached = w->reached + b * n + share->unit;                                                                \
            for (int64_t j = 0; turn && t + 1 < w->lengths[b] && j < share->units; j++)                                         \
                dh[j] += reached[j];                                                                                            \
            if (t >= 0 && t < w->lengths[b])                                                                                    \
                step_back_##T(w, &step, share, b, t);                                                                           \
        }                                                                                                                       \
    }                                                                                                                           \
    /* The gradients of peepholes are summed in one order, whoever walked; where there are none, nothing reaches them. */       \
    static void peep_##T(const Way_##T *w)                                                                                      \
    {                                                                                                                           \
        enum { I, O, F };                                                                                                       \
        const int64_t n = w->s->hidden;                                                                                         \
        memset(w->dp, 0, 3 * (size_t)n * sizeof(T));                                                                            \
        for (int64_t t = w->s->steps - 1; w->step.peephole && t >= 0; t--)                                                      \
            for (int64_t b = 0; b < w->s->batch; b++) {                                                                         \
                if (t >= w->lengths[b])                                                                                         \
                    continue;                                                                                                   \
                const int64_t row = row_of_##T(w, b, t);                                                                        \
                const T *dz = w->dx + row * 4 * n, *past = past_c_##T(w, b, t), *c = w->c + row * n;                            \
                for (int64_t j = 0; j < n; j++) {                                                                               \
                    w->dp[j] += dz[I * n + j] * past[j];                                                                        \
                    w->dp[n + j] += dz[O * n + j] * c[j];                                                                       \
                    w->dp[2 * n + j] += dz[F * n + j] * past[j];                                                                \
                }                                                                                                               \
            }                                                                                                                   \
    }                                                                                                                           \
    /* to[cols, n] = a' b over rows, for each side */                                                                           \
    static void outer_##T(Eval *e, const Way_##T *w, const void *a, int64_t cols, const PanelSide *sides, size_t n)             \
    {                                                                                                                           \
        const Panel p = { .m = (size_t)cols,                                                                                    \
                          .k = (size_t)(w->s->steps * w->s->batch),                                                             \
                          .lda = 1,                                                                                             \
                          .a_step = (size_t)(w->cell->gates * w->s->hidden),                                                    \
                          .is_bf16 = w->step.words != NULL };                                                                   \
        recurrent_products_##T(e, &p, a, sides, n);                                                                             \
    }                                                                                                                           \
    static PanelSide side_##T(const void *b, int64_t n, T *c)                                                                   \
    {                                                                                                                           \
        return (PanelSide){ .n = (size_t)n, .ldb = (size_t)n, .b_step = 1, .ldc = (size_t)n, .b = b, .c = c };                  \
    }                                                                                                                           \
    typedef struct Columns_##T {                                                                                                \
        Eval *e;                                                                                                                \
        const T *x;                                                                                                             \
        int64_t rows, wide;                                                                                                     \
        T *sums;                                                                                                                \
    } Columns_##T;                                                                                                              \
    static void columns_##T(void *arg, int64_t begin, int64_t end, int worker)                                                  \
    {                                                                                                                           \
        const Columns_##T *c = arg;                                                                                             \
        kernels_reduce(c->e->kernels, REDUCE_SUM, ARITH_OF_##T)                                                                 \
            ->cols((size_t)c->rows, (size_t)(end - begin), (size_t)c->wide, c->x + begin, c->sums + begin);                     \
        (void)worker;                                                                                                           \
    }                                                                                                                           \
    static void sum_columns_##T(Eval *e, const T *x, int64_t rows, int64_t wide, T *sums)                                       \
    {                                                                                                                           \
        Columns_##T c = { e, x, rows, wide, sums };                                                                             \
        recurrent_shares(e, wide, REDUCE_TILE, 8 * (double)rows * (double)wide, columns_##T, &c);                               \
    }                                                                                                                           \
    /* The gradients of what every step used. */                                                                                \
    static void gather_##T(Eval *e, Way_##T *w, int64_t d)                                                                      \
    {                                                                                                                           \
        const int64_t n = w->s->hidden, wide = w->cell->gates * n, rows = w->s->steps * w->s->batch,                            \
                      input = w->s->input, through = w->through;                                                                \
        T *x = eval_out_##T(e, 0), *r = eval_out_##T(e, 2) + d * wide * n, *bias = eval_out_##T(e, 3) + d * 2 * wide;           \
        T *part = d ? eval_room(e, (size_t)(rows * input), sizeof(T)) : x;                                                      \
        const bool same = w->dr == w->dx;                                                                                       \
        sum_columns_##T(e, w->dx, rows, wide, bias);                                                                            \
        if (same)                                                                                                               \
            memcpy(bias + wide, bias, (size_t)wide * sizeof(T));                                                                \
        else                                                                                                                    \
            sum_columns_##T(e, w->dr, rows, wide, bias + wide);                                                                 \
        const void *dx = kept_##T(e, &w->step, w->dx, rows * wide),                                                             \
                   *dr = same ? dx : kept_##T(e, &w->step, w->dr, rows * wide),                                                 \
                   *gated = through < wide ? kept_##T(e, &w->step, w->gated, rows * n) : NULL;                                  \
        const Panel p = { .m = (size_t)rows,                                                                                    \
                          .n = (size_t)input,                                                                                   \
                          .k = (size_t)wide,                                                                                    \
                          .lda = (size_t)wide,                                                                                  \
                          .ldb = (size_t)input,                                                                                 \
                          .ldc = (size_t)input,                                                                                 \
                          .is_bf16 = w->step.words != NULL };                                                                   \
        const PanelSide sides[] = { side_##T(w->step.x, input, eval_out_##T(e, 1) + d * wide * input),                          \
                                    side_##T(w->states, n, r), side_##T(gated, n, r + through * n) };                           \
        recurrent_product_##T(e, &p, dx, w->step.w, part);                                                                      \
        for (int64_t i = 0; d && i < rows * input; i++)                                                                         \
            x[i] += part[i];                                                                                                    \
        outer_##T(e, w, dx, wide, sides, same ? 2 : 1);                                                                         \
        if (!same)                                                                                                              \
            outer_##T(e, w, dr, through, &sides[1], 1);                                                                         \
        if (through < wide)                                                                                                     \
            outer_##T(e, w, (const T *)dr + through, wide - through, &sides[2], 1);                                             \
    }                                                                                                                           \
    /* Rows of all steps; zeros stay behind the ends of sequences. */                                                           \
    static T *rows_##T(Eval *e, const RecurrentShape *s, int64_t cols)                                                          \
    {                                                                                                                           \
        const size_t n = (size_t)(s->steps * s->batch * cols);                                                                  \
        return eval_has(e, 4) ? eval_scratch(e, n, sizeof(T)) : eval_room(e, n, sizeof(T));                                     \
    }                                                                                                                           \
    static void back_##T(Eval *e, const Cell *cell, const RecurrentShape *s, const int64_t *lengths, int64_t d)                 \
    {                                                                                                                           \
        const RecurrentAttr *at = e->attr;                                                                                      \
        const Layout layout = recurrent_layout(at, s);                                                                          \
        const int64_t n = s->hidden, wide = cell->gates * n, dy = recurrent_operands(cell), y = dy + 1 + cell->states;          \
        const bool is_gru = cell == &cell_gru;                                                                                  \
        DType own = e->in[0]->type->dtype;                                                                                      \
        (void)attr_dtype(at->product_type, &own);                                                                               \
        const int64_t rows = s->steps * s->batch;                                                                               \
        T *dx = eval_room(e, (size_t)(rows * wide), sizeof(T));                                                                 \
        const bool kept = eval_has(e, (int)y + 1);                                                                              \
        const T *behind = kept ? eval_##T(e, (int)y + 2) + d * rows * n : NULL;                                                 \
        T *c = kept ? NULL : rows_##T(e, s, n), *linear = kept || !is_gru ? NULL : rows_##T(e, s, n);                           \
        Way_##T w = { .cell = cell,                                                                                             \
                      .s = s,                                                                                                   \
                      .lengths = lengths,                                                                                       \
                      .step = recurrent_open_##T(e, cell, s, d, own, kept ? NULL : dx),                                         \
                      .backward = at->direction == RUN_REVERSE || d == 1,                                                       \
                      .at = layout,                                                                                             \
                      .through = recurrent_is_whole(cell, at) ? 2 * n : wide,                                                   \
                      .dy = eval_has(e, (int)dy) ? eval_##T(e, (int)dy) + d * layout.y.direction : NULL,                        \
                      .gates = kept ? eval_##T(e, (int)y + 1) + d * rows * wide : NULL,                                         \
                      .c = kept ? behind : c,                                                                                   \
                      .linear = kept && is_gru ? behind : linear,                                                               \
                      .h = rows_##T(e, s, n),                                                                                   \
                      .made_c = c,                                                                                              \
                      .z = kept ? dx : rows_##T(e, s, wide), /* kept: slopes follow from what gates gave */                     \
                      .made_linear = linear,                                                                                    \
                      .dx = dx,                                                                                                 \
                      .dr = is_gru ? rows_##T(e, s, wide) : dx,                                                                 \
                      .gated = is_gru ? rows_##T(e, s, n) : NULL,                                                               \
                      .dp = cell->peephole >= 0 ? eval_out_##T(e, 4 + cell->states) + d * 3 * n : NULL,                         \
                      .dh = recurrent_state_##T(e, (int)dy + 1, d, s),                                                          \
                      .dc = recurrent_state_##T(e, cell->states > 1 ? (int)dy + 2 : -1, d, s) };                                \
        states_##T(e, &w, eval_##T(e, (int)y) + d * layout.y.direction);                                                        \
        if (!kept)                                                                                                              \
            retrace_##T(e, &w);                                                                                                 \
        clear_##T(&w);                                                                                                          \
        const size_t through = (size_t)w.through;                                                                               \
        const Panel p = { .k = through,                                                                                         \
                          .lda = through,                                                                                       \
                          .ldb = (size_t)n,                                                                                     \
                          .b_step = 1,                                                                                          \
                          .ldc = (size_t)n,                                                                                     \
                          .is_bf16 = w.step.words != NULL };                                                                    \
        w.back = recurrent_recall_##T(e, s, &p, w.step.r, 1, 0);                                                                \
        recurrent_rooms_##T(e, &w.step, &w.back);                                                                               \
        for (int i = 0; i < 2; i++)                                                                                             \
            w.sent[i] = eval_scratch(e, (size_t)s->batch * through, sizeof(T));                                                 \
        w.reached = eval_scratch(e, (size_t)(s->batch * n), sizeof(T));                                                         \
        recurrent_walk(e, s, !recurrent_is_whole(cell, at), s->steps + 1,                                                       \
                       (double)(s->steps * s->batch) * (double)n * (double)wide, walk_back_##T, &w);                            \
        if (w.dp)                                                                                                               \
            peep_##T(&w);                                                                                                       \
        gather_##T(e, &w, d);                                                                                                   \
        for (int i = 0; i < cell->states; i++) {                                                                                \
            T *to = eval_out_##T(e, 4 + i) + d * layout.state.direction;                                                        \
            for (int64_t b = 0; b < s->batch; b++)                                                                              \
                memcpy(to + b * layout.state.batch, (i ? w.dc : w.dh) + b * n, (size_t)n * sizeof(T));                          \
        }                                                                                                                       \
    }
BACK(f32, StepF32, RecallF32)
BACK(f64, StepF64, RecallF64)
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
