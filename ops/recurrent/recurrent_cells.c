/* The cells of lstm, gru and rnn: one step of one sequence. */
#include "ops/recurrent/recurrent.h"

const Cell cell_lstm = { 4, 3, 2, 5, 7, { SQUASH_SIGMOID, SQUASH_TANH, SQUASH_TANH } };
const Cell cell_gru = { 3, 2, 1, 5, -1, { SQUASH_SIGMOID, SQUASH_TANH } };
const Cell cell_rnn = { 1, 1, 1, 5, -1, { SQUASH_TANH } };

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
    static T gate_##T(const STEP *s, int g, int64_t j)                                                                 \
    {                                                                                                                  \
        const int64_t i = g * s->hidden + j;                                                                           \
        const T sum = s->xw[i] + s->hr[i];                                                                             \
        return s->wb ? sum + (s->wb[i] + s->rb[i]) : sum;                                                              \
    }                                                                                                                  \
    static void keep_##T(const STEP *s, int g, int64_t j, T z)                                                         \
    {                                                                                                                  \
        if (s->z)                                                                                                      \
            s->z[g * s->hidden + j] = z;                                                                               \
    }                                                                                                                  \
    void step_lstm_##T(const STEP *s)                                                                                  \
    {                                                                                                                  \
        enum { I, O, F, C };                                                                                           \
        const float clip = s->at->clip;                                                                                \
        const T *p = s->peephole;                                                                                      \
        for (int64_t j = 0; j < s->hidden; j++) {                                                                      \
            T i = gate_##T(s, I, j), o = gate_##T(s, O, j), f = gate_##T(s, F, j), c = s->c[j];                        \
            const T g = gate_##T(s, C, j);                                                                             \
            i = p ? i + p[j] * c : i;                                                                                  \
            f = p ? f + p[2 * s->hidden + j] * c : f;                                                                  \
            keep_##T(s, I, j, i), keep_##T(s, F, j, f), keep_##T(s, C, j, g);                                          \
            i = squash_##T(&s->act[0], clip, i);                                                                       \
            f = s->at->input_forget ? 1 - i : squash_##T(&s->act[0], clip, f);                                         \
            c = f * c + i * squash_##T(&s->act[1], clip, g);                                                           \
            o = p ? o + p[s->hidden + j] * c : o;                                                                      \
            keep_##T(s, O, j, o);                                                                                      \
            o = squash_##T(&s->act[0], clip, o);                                                                       \
            s->c[j] = c;                                                                                               \
            s->h[j] = o * squash_##T(&s->act[2], 0, c);                                                                \
        }                                                                                                              \
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
    void step_gru_##T(const STEP *s)                                                                                   \
    {                                                                                                                  \
        enum { Z, R, H };                                                                                              \
        const float clip = s->at->clip;                                                                                \
        T *reset = s->scratch, *next = reset + s->hidden, *gated = next + s->hidden, *product = gated + s->hidden;     \
        for (int64_t j = 0; j < s->hidden; j++) {                                                                      \
            const T r = gate_##T(s, R, j);                                                                             \
            keep_##T(s, R, j, r);                                                                                      \
            reset[j] = squash_##T(&s->act[0], clip, r);                                                                \
            gated[j] = narrowed_##T(s->own, reset[j] * s->h[j]);                                                       \
        }                                                                                                              \
        if (!s->at->linear_before_reset) {                                                                             \
            const size_t n = (size_t)s->hidden;                                                                        \
            const Panel p = { .m = 1, .n = n, .k = n, .lda = n, .ldb = 3 * n, .ldc = n };                              \
            panel_##T(s->kernels, &p, gated, s->turned + H * n, product, s->room);                                     \
        }                                                                                                              \
        for (int64_t j = 0; j < s->hidden; j++) {                                                                      \
            const T zz = gate_##T(s, Z, j), z = squash_##T(&s->act[0], clip, zz);                                      \
            const T x = s->xw[H * s->hidden + j], in = s->wb ? x + s->wb[H * s->hidden + j] : x;                       \
            const T zh = in + recalled_##T(s, reset, product, j), h = squash_##T(&s->act[1], clip, zh);                \
            keep_##T(s, Z, j, zz), keep_##T(s, H, j, zh);                                                              \
            next[j] = (1 - z) * h + z * s->h[j];                                                                       \
        }                                                                                                              \
        for (int64_t j = 0; j < s->hidden; j++)                                                                        \
            s->h[j] = next[j];                                                                                         \
    }                                                                                                                  \
    void step_rnn_##T(const STEP *s)                                                                                   \
    {                                                                                                                  \
        for (int64_t j = 0; j < s->hidden; j++) {                                                                      \
            const T z = gate_##T(s, 0, j);                                                                             \
            keep_##T(s, 0, j, z);                                                                                      \
            s->h[j] = squash_##T(&s->act[0], s->at->clip, z);                                                          \
        }                                                                                                              \
    }
CELLS(f32, StepF32)
CELLS(f64, StepF64)
#undef CELLS
