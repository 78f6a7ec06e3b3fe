/* The cells of lstm, gru and rnn: one step of one sequence. */
#include "ops/recurrent.h"

const Cell cell_lstm = { 4, 3, 2, 5, 7, { SQUASH_SIGMOID, SQUASH_TANH, SQUASH_TANH } };
const Cell cell_gru = { 3, 2, 1, 5, -1, { SQUASH_SIGMOID, SQUASH_TANH } };
const Cell cell_rnn = { 1, 1, 1, 5, -1, { SQUASH_TANH } };

/* Gate g of unit j is ((x W' + h R') + (Wb + Rb)); lstm's gates are i, o, f, c, gru's are z, r, h. */
#define CELLS(T, STEP)                                                                                                 \
    static T squash_##T(const Activation *a, float clip, T x)                                                          \
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
    static T gate_##T(const STEP *s, int g, int64_t j)                                                                 \
    {                                                                                                                  \
        const int64_t i = g * s->hidden + j;                                                                           \
        const T sum = s->xw[i] + s->hr[i];                                                                             \
        return s->wb ? sum + (s->wb[i] + s->rb[i]) : sum;                                                              \
    }                                                                                                                  \
    void step_lstm_##T(const STEP *s)                                                                                  \
    {                                                                                                                  \
        enum { I, O, F, C };                                                                                           \
        const float clip = s->at->clip;                                                                                \
        const T *p = s->peephole;                                                                                      \
        for (int64_t j = 0; j < s->hidden; j++) {                                                                      \
            T i = gate_##T(s, I, j), o = gate_##T(s, O, j), f = gate_##T(s, F, j), c = s->c[j];                        \
            i = squash_##T(&s->act[0], clip, p ? i + p[j] * c : i);                                                    \
            f = squash_##T(&s->act[0], clip, p ? f + p[2 * s->hidden + j] * c : f);                                    \
            f = s->at->input_forget ? 1 - i : f;                                                                       \
            c = f * c + i * squash_##T(&s->act[1], clip, gate_##T(s, C, j));                                           \
            o = squash_##T(&s->act[0], clip, p ? o + p[s->hidden + j] * c : o);                                        \
            s->c[j] = c;                                                                                               \
            s->h[j] = o * squash_##T(&s->act[2], 0, c);                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    /* What the candidate of gru takes from the state: the gated product, or the product of the gated state. */        \
    static T recalled_##T(const STEP *s, const T *reset, int64_t j)                                                    \
    {                                                                                                                  \
        const int64_t i = 2 * s->hidden + j;                                                                           \
        if (s->at->linear_before_reset)                                                                                \
            return reset[j] * (s->rb ? s->hr[i] + s->rb[i] : s->hr[i]);                                                \
        T sum = 0;                                                                                                     \
        for (int64_t k = 0; k < s->hidden; k++)                                                                        \
            sum = q_fma(reset[k] * s->h[k], s->r[i * s->hidden + k], sum);                                             \
        return s->rb ? sum + s->rb[i] : sum;                                                                           \
    }                                                                                                                  \
    void step_gru_##T(const STEP *s)                                                                                   \
    {                                                                                                                  \
        enum { Z, R, H };                                                                                              \
        const float clip = s->at->clip;                                                                                \
        T *reset = s->scratch, *next = s->scratch + s->hidden;                                                         \
        for (int64_t j = 0; j < s->hidden; j++)                                                                        \
            reset[j] = squash_##T(&s->act[0], clip, gate_##T(s, R, j));                                                \
        for (int64_t j = 0; j < s->hidden; j++) {                                                                      \
            const T z = squash_##T(&s->act[0], clip, gate_##T(s, Z, j));                                               \
            const T x = s->xw[H * s->hidden + j], in = s->wb ? x + s->wb[H * s->hidden + j] : x;                       \
            const T h = squash_##T(&s->act[1], clip, in + recalled_##T(s, reset, j));                                  \
            next[j] = (1 - z) * h + z * s->h[j];                                                                       \
        }                                                                                                              \
        for (int64_t j = 0; j < s->hidden; j++)                                                                        \
            s->h[j] = next[j];                                                                                         \
    }                                                                                                                  \
    void step_rnn_##T(const STEP *s)                                                                                   \
    {                                                                                                                  \
        for (int64_t j = 0; j < s->hidden; j++)                                                                        \
            s->h[j] = squash_##T(&s->act[0], s->at->clip, gate_##T(s, 0, j));                                          \
    }
CELLS(f32, StepF32)
CELLS(f64, StepF64)
#undef CELLS
