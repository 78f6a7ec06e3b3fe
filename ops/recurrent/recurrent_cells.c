/* The cells of lstm, gru and rnn: one step of one sequence. */
#include "ops/recurrent/recurrent.h"

const Cell cell_lstm = { 4, 3, 2, 5, 7, { SQUASH_SIGMOID, SQUASH_TANH, SQUASH_TANH } };
const Cell cell_gru = { 3, 2, 1, 5, -1, { SQUASH_SIGMOID, SQUASH_TANH } };
const Cell cell_rnn = { 1, 1, 1, 5, -1, { SQUASH_TANH } };

#define ARITH_OF_f32 ARITH_F32
#define ARITH_OF_f64 ARITH_F64

/* The usual activations are rows, whose loops the machine's level has; what is clipped goes one by one. */
static bool has_row(const Activation *a, float clip)
{
    return !(clip > 0) && (a->squash == SQUASH_TANH || a->squash == SQUASH_SIGMOID);
}

bool recurrent_keeps(const Cell *cell, const RecurrentAttr *at, DType own, Arena *arena)
{
    Activation act[3];
    const bool is_gru = cell == &cell_gru;
    if (cell == &cell_rnn || recurrent_is_whole(cell, at) || (is_gru && dtype_is_narrow(own)))
        return false;
    for (int d = 0; d < (at->direction == RUN_BIDIRECTIONAL ? 2 : 1); d++) {
        if (recurrent_activations(at, cell, d, act, arena))
            return false;
        for (int i = 0; i < cell->functions; i++)
            if (!has_row(&act[i], at->clip))
                return false;
    }
    return true;
}

static int row_of(const Activation *a)
{
    return a->squash == SQUASH_TANH ? ROW_tanh : ROW_sigmoid;
}

/* 1 less each of n numbers: f32 has a loop for that. */
static void one_less_f32(const Kernels *level, int64_t n, const f32 *x, f32 *to)
{
    static const double none[2] = { 0, 0 };
    static const f32 one = 1;
    kernels_row_fixed(level, ROW_sub, ARITH_F32, 0)((size_t)n, to, &one, x, NULL, none);
}

static void one_less_f64(const Kernels *level, int64_t n, const f64 *x, f64 *to)
{
    (void)level;
    for (int64_t j = 0; j < n; j++)
        to[j] = 1 - x[j];
}

/* Gate g of unit j is ((x W' + h R') + (Wb + Rb)); lstm's gates are i, o, f, c, gru's are z, r, h. */
#define CELLS(T, STEP)                                                                                                 \
    T squash_##T(const Activation *a, float clip, T x)                                                                 \
    {                                                                                                                  \
        const T alpha = (T)a->alpha, beta = (T)a->beta, most = (T)clip;                                                \
        x = clip > 0 ? (x > most ? most : x < -most ? -most : x) : x;                                                  \
        switch (a->squash) {                                                                                           \
        case SQUASH_RELU:                                                                                              \
            return x < 0 ? 0 : x;                                                                                      \
        case SQUASH_TANH:                                                                                              \
            return q_tanh(x);                                                                                          \
        case SQUASH_SIGMOID:                                                                                           \
            return q_sigmoid(x);                                                                                       \
        case SQUASH_AFFINE:                                                                                            \
            return alpha * x + beta;                                                                                   \
        case SQUASH_LEAKY_RELU:                                                                                        \
            return x < 0 ? alpha * x : x;                                                                              \
        case SQUASH_THRESHOLDED_RELU:                                                                                  \
            return x <= alpha ? 0 : x;                                                                                 \
        case SQUASH_SCALED_TANH:                                                                                       \
            return alpha * q_tanh(beta * x);                                                                           \
        case SQUASH_HARD_SIGMOID:                                                                                      \
            x = alpha * x + beta;                                                                                      \
            return x < 0 ? 0 : x > 1 ? 1 : x;                                                                          \
        case SQUASH_ELU:                                                                                               \
            return x < 0 ? alpha * q_expm1(x) : x;                                                                     \
        case SQUASH_SOFTSIGN:                                                                                          \
            return x / (1 + q_abs(x));                                                                                 \
        case SQUASH_SOFTPLUS:                                                                                          \
            return q_softplus(x);                                                                                      \
        }                                                                                                              \
        return x;                                                                                                      \
    }                                                                                                                  \
    /* What lies beyond the clip no longer counts; at a kink it is the side that lets nothing through. */              \
    T slope_##T(const Activation *a, float clip, T x)                                                                  \
    {                                                                                                                  \
        const T alpha = (T)a->alpha, beta = (T)a->beta, most = (T)clip;                                                \
        T y;                                                                                                           \
        if (clip > 0 && (x > most || x < -most))                                                                       \
            return 0;                                                                                                  \
        switch (a->squash) {                                                                                           \
        case SQUASH_RELU:                                                                                              \
            return x > 0;                                                                                              \
        case SQUASH_TANH:                                                                                              \
            y = q_tanh(x);                                                                                             \
            return 1 - y * y;                                                                                          \
        case SQUASH_SIGMOID:                                                                                           \
            y = q_sigmoid(x);                                                                                          \
            return y * (1 - y);                                                                                        \
        case SQUASH_AFFINE:                                                                                            \
            return alpha;                                                                                              \
        case SQUASH_LEAKY_RELU:                                                                                        \
            return x < 0 ? alpha : 1;                                                                                  \
        case SQUASH_THRESHOLDED_RELU:                                                                                  \
            return x > alpha;                                                                                          \
        case SQUASH_SCALED_TANH:                                                                                       \
            y = q_tanh(beta * x);                                                                                      \
            return alpha * beta * (1 - y * y);                                                                         \
        case SQUASH_HARD_SIGMOID:                                                                                      \
            y = alpha * x + beta;                                                                                      \
            return y > 0 && y < 1 ? alpha : 0;                                                                         \
        case SQUASH_ELU:                                                                                               \
            return x < 0 ? alpha * q_exp(x) : 1;                                                                       \
        case SQUASH_SOFTSIGN:                                                                                          \
            y = 1 + q_abs(x);                                                                                          \
            return 1 / (y * y);                                                                                        \
        case SQUASH_SOFTPLUS:                                                                                          \
            return q_sigmoid(x);                                                                                       \
        }                                                                                                              \
        return 1;                                                                                                      \
    }                                                                                                                  \
    void squash_each_##T(const Kernels *level, const Activation *a, float clip, int64_t n, const T *x, T *y)           \
    {                                                                                                                  \
        static const double none[2] = { 0, 0 };                                                                        \
        if (has_row(a, clip))                                                                                          \
            kernels_row(level, row_of(a), ARITH_OF_##T)((size_t)n, y, x, NULL, NULL, none);                            \
        else                                                                                                           \
            for (int64_t j = 0; j < n; j++)                                                                            \
                y[j] = squash_##T(a, clip, x[j]);                                                                      \
    }                                                                                                                  \
    void slope_each_##T(const Kernels *level, const Activation *a, float clip, int64_t n, const T *x, const T *y,      \
                        T *slope)                                                                                      \
    {                                                                                                                  \
        static const double none[2] = { 0, 0 };                                                                        \
        RowLoop *times = kernels_row(level, ROW_mul, ARITH_OF_##T);                                                    \
        if (!has_row(a, clip)) {                                                                                       \
            for (int64_t j = 0; j < n; j++)                                                                            \
                slope[j] = slope_##T(a, clip, x[j]);                                                                   \
        } else if (a->squash == SQUASH_TANH) {                                                                         \
            times((size_t)n, slope, y, y, NULL, none);                                                                 \
            one_less_##T(level, n, slope, slope);                                                                      \
        } else {                                                                                                       \
            one_less_##T(level, n, y, slope);                                                                          \
            times((size_t)n, slope, y, slope, NULL, none);                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void row_##T(const STEP *s, int row, int64_t n, T *to, const T *x, const T *y)                              \
    {                                                                                                                  \
        static const double none[2] = { 0, 0 };                                                                        \
        kernels_row(s->kernels, row, ARITH_OF_##T)((size_t)n, to, x, y, NULL, none);                                   \
    }                                                                                                                  \
    /* What enters the first so many gates, but for peepholes. */                                                      \
    static void gates_##T(const STEP *s, int gates, T *z)                                                              \
    {                                                                                                                  \
        const int64_t n = s->hidden;                                                                                   \
        for (int64_t at = 0; at < gates * n; at += n) {                                                                \
            row_##T(s, ROW_add, s->units, z + at, s->xw + at, s->hr + at);                                             \
            if (s->bias)                                                                                               \
                row_##T(s, ROW_add, s->units, z + at, z + at, s->bias + at);                                           \
        }                                                                                                              \
    }                                                                                                                  \
    void step_lstm_##T(const STEP *s)                                                                                  \
    {                                                                                                                  \
        enum { I, O, F, C };                                                                                           \
        const float clip = s->at->clip;                                                                                \
        const int64_t n = s->hidden, units = s->units;                                                                 \
        const T *p = s->peephole;                                                                                      \
        T *z = s->z ? s->z : s->scratch, *acts = s->acts ? s->acts : s->scratch + 4 * n, *i = acts + I * n,            \
          *o = acts + O * n, *f = acts + F * n, *g = acts + C * n, *kept = s->scratch + 8 * n, *fresh = kept + n;      \
        gates_##T(s, 4, z);                                                                                            \
        for (int64_t j = 0; p && j < units; j++) {                                                                     \
            z[I * n + j] += p[j] * s->past_c[j];                                                                       \
            z[F * n + j] += p[2 * n + j] * s->past_c[j];                                                               \
        }                                                                                                              \
        squash_each_##T(s->kernels, &s->act[0], clip, units, z + I * n, i);                                            \
        if (!s->at->input_forget)                                                                                      \
            squash_each_##T(s->kernels, &s->act[0], clip, units, z + F * n, f);                                        \
        for (int64_t j = 0; s->at->input_forget && j < units; j++)                                                     \
            f[j] = 1 - i[j];                                                                                           \
        squash_each_##T(s->kernels, &s->act[1], clip, units, z + C * n, g);                                            \
        row_##T(s, ROW_mul, units, kept, f, s->past_c);                                                                \
        row_##T(s, ROW_mul, units, fresh, i, g);                                                                       \
        row_##T(s, ROW_add, units, s->c, kept, fresh);                                                                 \
        for (int64_t j = 0; p && j < units; j++)                                                                       \
            z[O * n + j] += p[n + j] * s->c[j];                                                                        \
        squash_each_##T(s->kernels, &s->act[0], clip, units, z + O * n, o);                                            \
        if (!s->h)                                                                                                     \
            return;                                                                                                    \
        squash_each_##T(s->kernels, &s->act[2], 0, units, s->c, s->h);                                                 \
        row_##T(s, ROW_mul, units, s->h, o, s->h);                                                                     \
    }                                                                                                                  \
    /* What the candidate of gru takes from the state: the gated product, or the product of the gated state. */        \
    static T recalled_##T(const STEP *s, const T *reset, const T *product, int64_t j)                                  \
    {                                                                                                                  \
        const int64_t i = 2 * s->hidden + j;                                                                           \
        if (s->at->linear_before_reset) {                                                                              \
            const T linear = s->rb ? s->hr[i] + s->rb[i] : s->hr[i];                                                   \
            if (s->linear)                                                                                             \
                s->linear[j] = linear;                                                                                 \
            return reset[j] * linear;                                                                                  \
        }                                                                                                              \
        return s->rb ? product[j] + s->rb[i] : product[j];                                                             \
    }                                                                                                                  \
    static void recall_gated_##T(const STEP *s, const T *reset, T *gated, T *product)                                  \
    {                                                                                                                  \
        enum { H = 2 };                                                                                                \
        Panel p = s->recall->product;                                                                                  \
        p.m = 1;                                                                                                       \
        for (int64_t j = 0; j < s->units; j++)                                                                         \
            gated[j] = narrowed_##T(s->own, reset[j] * s->past[j]);                                                    \
        panel_##T(s->kernels, &p, gated, (const T *)s->recall->panels + H * s->recall->gate, product, s->room);        \
    }                                                                                                                  \
    void step_gru_##T(const STEP *s)                                                                                   \
    {                                                                                                                  \
        enum { Z, R, H };                                                                                              \
        const float clip = s->at->clip;                                                                                \
        const int64_t n = s->hidden, units = s->units;                                                                 \
        T *z = s->z ? s->z : s->scratch, *acts = s->acts ? s->acts : s->scratch + 3 * n, *update = acts + Z * n,       \
          *reset = acts + R * n, *fresh = acts + H * n, *gated = s->scratch + 6 * n, *product = gated + n;             \
        gates_##T(s, 2, z);                                                                                            \
        squash_each_##T(s->kernels, &s->act[0], clip, units, z + R * n, reset);                                        \
        if (!s->at->linear_before_reset)                                                                               \
            recall_gated_##T(s, reset, gated, product);                                                                \
        for (int64_t j = 0; j < units; j++) {                                                                          \
            const T x = s->xw[H * n + j], in = s->wb ? x + s->wb[H * n + j] : x;                                       \
            z[H * n + j] = in + recalled_##T(s, reset, product, j);                                                    \
        }                                                                                                              \
        squash_each_##T(s->kernels, &s->act[0], clip, units, z + Z * n, update);                                       \
        squash_each_##T(s->kernels, &s->act[1], clip, units, z + H * n, fresh);                                        \
        for (int64_t j = 0; s->h && j < units; j++)                                                                    \
            s->h[j] = (1 - update[j]) * fresh[j] + update[j] * s->past[j];                                             \
    }                                                                                                                  \
    void step_rnn_##T(const STEP *s)                                                                                   \
    {                                                                                                                  \
        T *z = s->z ? s->z : s->scratch;                                                                               \
        gates_##T(s, 1, z);                                                                                            \
        squash_each_##T(s->kernels, &s->act[0], s->at->clip, s->units, z, s->acts ? s->acts : s->h);                   \
    }
CELLS(f32, StepF32)
CELLS(f64, StepF64)
#undef CELLS
