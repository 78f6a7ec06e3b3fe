/* What kernels of lstm, gru and rnn, forward (ops/recurrent/recurrent_kernels_forth.c) and back, have in common: sequences and states,
 * activations, sums in the order of contractions, and the cells. */
#include "ops/recurrent/recurrent_kernels.h"

#include <inttypes.h>

#include "ops/card/reduction.h"
#include "ops/kernels/panel.h"

#define LD PRId64

enum {
    X,
    W,
    R,
    BIAS,
    LENGTHS,
    MOST_SHARE = 8, /* sequences of a block */
    ENOUGH = 128,   /* blocks, each of which wants a processor */
    MOST_THREADS = 256,
    MOST_SEGMENTS = 16,
};

/* ---- what all have in common ---- */

bool recurrent_has(const RecurrentWriter *w, int operand)
{
    return operand >= 0 && operand < w->n->n_in && in(w->n, operand);
}

bool recurrent_open_kernels(RecurrentWriter *w, const Node *n, OwnKernels *to, const Cell *cell, DType own)
{
    const RecurrentAttr *at = n->attr;
    *w = (RecurrentWriter){ .n = n, .to = to, .cell = cell, .at = at, .own = own };
    w->s = recurrent_shape(at, in(n, X)->type, in(n, R)->type);
    w->layout = recurrent_layout(at, &w->s);
    w->arithmetic = dtype_wide(in(n, X)->type->dtype);
    w->type = dtype_name(w->arithmetic);
    w->narrow = dtype_is_narrow(own);
    w->whole = recurrent_is_whole(cell, at);
    w->rows = w->s.steps * w->s.batch;
    w->wide = cell->gates * w->s.hidden;
    for (int64_t d = 0; d < w->s.directions; d++)
        if (recurrent_activations(at, cell, (int)d, w->act[d], to->arena))
            return false;
    for (w->share = 1; w->share < MOST_SHARE; w->share *= 2)
        if (w->s.directions * (w->s.batch / (2 * w->share)) < ENOUGH)
            break;
    w->blocks = (w->s.batch + w->share - 1) / w->share;
    w->threads = (w->s.hidden + 31) / 32 * 32 < MOST_THREADS ? (w->s.hidden + 31) / 32 * 32 : MOST_THREADS;
    return w->rows && w->s.hidden && w->s.input && w->wide <= PANEL_SEGMENT * MOST_SEGMENTS;
}

void recurrent_open_body(RecurrentWriter *w)
{
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t, "    typedef %s T;\n", w->type);
}

size_t recurrent_take(RecurrentWriter *w, int64_t n)
{
    return own_scratch(w->to, n * (int64_t)(w->arithmetic == F64 ? sizeof(f64) : sizeof(f32)));
}

void recurrent_name(RecurrentWriter *w, const char *name, size_t at)
{
    text_printf(&w->t, "    T *const %s = (T *)(scratch + %zu);\n", name, at);
}

void recurrent_print_length(RecurrentWriter *w, int indent)
{
    const int at = 4 * indent;
    if (!recurrent_has(w, LENGTHS)) {
        text_printf(&w->t, "%*sconst i64 length = %" LD ";\n", at, "", w->s.steps);
        return;
    }
    text_printf(&w->t, "%*si64 length = (i64)IN%d(b);\n", at, "", LENGTHS);
    text_printf(&w->t, "%*sif (length < 0 || length > %" LD ") {\n", at, "", w->s.steps);
    text_printf(&w->t, "%*sREFUSE;\n%*slength = 0;\n%*s}\n", at + 4, "", at + 4, "", at, "");
}

const char *recurrent_backward(const RecurrentWriter *w)
{
    return w->at->direction == RUN_REVERSE ? "true" : w->at->direction == RUN_FORWARD ? "false" : "d == 1";
}

const char *recurrent_step_place(const RecurrentWriter *w, const char *t)
{
    return arena_printf(w->to->arena, "(%s ? length - 1 - (%s) : (%s))", recurrent_backward(w), t, t);
}

const char *recurrent_state_place(const RecurrentWriter *w)
{
    const Strides at = w->layout.state;
    return arena_printf(w->to->arena, "d * %" LD " + b * %" LD " + j", at.direction, at.batch);
}

const char *recurrent_state(const RecurrentWriter *w, int operand)
{
    return recurrent_has(w, operand) ? arena_printf(w->to->arena, "IN%d(%s)", operand, recurrent_state_place(w))
                                     : "(T)0";
}

const char *recurrent_narrowed(const RecurrentWriter *w, const char *value)
{
    const char *type = dtype_name(w->own);
    return w->narrow ? arena_printf(w->to->arena, "%s_to_f32(%s_from_f32(%s))", type, type, value) : value;
}

/* ---- activations ---- */

static const char *scalar(const RecurrentWriter *w, float v)
{
    return w->arithmetic == F64 ? own_f64(w->to, (double)v) : own_f32(w->to, (double)v);
}

static const char *squash_text(const RecurrentWriter *w, const Activation *a)
{
    const char *alpha = scalar(w, a->alpha), *beta = scalar(w, a->beta);
    Arena *arena = w->to->arena;
    switch (a->squash) {
    case SQUASH_RELU:
        return "x < 0 ? 0 : x";
    case SQUASH_TANH:
        return "q_tanh(x)";
    case SQUASH_SIGMOID:
        return "q_sigmoid(x)";
    case SQUASH_AFFINE:
        return arena_printf(arena, "%s * x + %s", alpha, beta);
    case SQUASH_LEAKY_RELU:
        return arena_printf(arena, "x < 0 ? %s * x : x", alpha);
    case SQUASH_THRESHOLDED_RELU:
        return arena_printf(arena, "x <= %s ? 0 : x", alpha);
    case SQUASH_SCALED_TANH:
        return arena_printf(arena, "%s * q_tanh(%s * x)", alpha, beta);
    case SQUASH_HARD_SIGMOID:
        return arena_printf(arena, "%s * x + %s < 0 ? 0 : %s * x + %s > 1 ? 1 : %s * x + %s", alpha, beta, alpha, beta,
                            alpha, beta);
    case SQUASH_ELU:
        return arena_printf(arena, "x < 0 ? %s * q_expm1(x) : x", alpha);
    case SQUASH_SOFTSIGN:
        return "x / (1 + q_abs(x))";
    case SQUASH_SOFTPLUS:
        return "q_softplus(x)";
    }
    return "x";
}

/* What the activation gave is y. */
static const char *slope_text(const RecurrentWriter *w, const Activation *a)
{
    const char *alpha = scalar(w, a->alpha), *beta = scalar(w, a->beta);
    Arena *arena = w->to->arena;
    switch (a->squash) {
    case SQUASH_RELU:
        return "x > 0";
    case SQUASH_TANH:
        return "1 - y * y";
    case SQUASH_SIGMOID:
        return "y * (1 - y)";
    case SQUASH_AFFINE:
        return alpha;
    case SQUASH_LEAKY_RELU:
        return arena_printf(arena, "x < 0 ? %s : 1", alpha);
    case SQUASH_THRESHOLDED_RELU:
        return arena_printf(arena, "x > %s", alpha);
    case SQUASH_SCALED_TANH:
        return arena_printf(arena, "%s * %s * (1 - q_tanh(%s * x) * q_tanh(%s * x))", alpha, beta, beta, beta);
    case SQUASH_HARD_SIGMOID:
        return arena_printf(arena, "%s * x + %s > 0 && %s * x + %s < 1 ? %s : 0", alpha, beta, alpha, beta, alpha);
    case SQUASH_ELU:
        return arena_printf(arena, "x < 0 ? %s * q_exp(x) : 1", alpha);
    case SQUASH_SOFTSIGN:
        return "1 / ((1 + q_abs(x)) * (1 + q_abs(x)))";
    case SQUASH_SOFTPLUS:
        return "q_sigmoid(x)";
    }
    return "1";
}

static bool differs(const RecurrentWriter *w, int k)
{
    const Activation *a = &w->act[0][k], *b = &w->act[1][k];
    return w->s.directions == 2 && (a->squash != b->squash || a->alpha != b->alpha || a->beta != b->beta);
}

/* The text of each direction, where these differ. */
static const char *either(const RecurrentWriter *w, int k,
                          const char *(*text)(const RecurrentWriter *, const Activation *))
{
    const char *first = text(w, &w->act[0][k]);
    return differs(w, k) ? arena_printf(w->to->arena, "d == 0 ? (T)(%s) : (T)(%s)", first, text(w, &w->act[1][k]))
                         : first;
}

void recurrent_print_squash(RecurrentWriter *w, int k, bool clips, const char *to, const char *from, int indent)
{
    const int at = 4 * indent;
    const char *most = scalar(w, w->at->clip);
    text_printf(&w->t, "%*s{\n%*sT x = %s;\n", at, "", at + 4, "", from);
    if (clips && w->at->clip > 0)
        text_printf(&w->t, "%*sx = x > %s ? %s : x < -%s ? -%s : x;\n", at + 4, "", most, most, most, most);
    text_printf(&w->t, "%*s%s = (T)(%s);\n%*s}\n", at + 4, "", to, either(w, k, squash_text), at, "");
}

void recurrent_print_slope(RecurrentWriter *w, int k, bool clips, const char *to, const char *from, const char *gave,
                           int indent)
{
    const int at = 4 * indent;
    const char *most = scalar(w, w->at->clip);
    text_printf(&w->t, "%*s{\n%*sconst T x = %s;\n", at, "", at + 4, "", from);
    if (clips && w->at->clip > 0) { /* what the activation gave is of the number that was clipped: taken again */
        text_printf(&w->t, "%*sT y;\n", at + 4, "");
        recurrent_print_squash(w, k, false, "y", from, indent + 1);
        text_printf(&w->t, "%*s%s = x > %s || x < -%s ? (T)0 : (T)(%s);\n%*s}\n", at + 4, "", to, most, most,
                    either(w, k, slope_text), at, "");
        return;
    }
    text_printf(&w->t, "%*sconst T y = %s;\n%*s%s = (T)(%s);\n%*s}\n", at + 4, "", gave, at + 4, "", to,
                either(w, k, slope_text), at, "");
}

/* ---- sums ---- */

/* for each gate and sequence */
static void each(RecurrentWriter *w, int gates, const char *statement, int at)
{
    text_printf(&w->t, "#pragma unroll\n%*sfor (u32 g = 0; g < %d; g++)\n#pragma unroll\n", at, "", gates);
    text_printf(&w->t, "%*sfor (u32 r = 0; r < %" LD "; r++)\n%*s%s\n", at + 4, "", w->share, at + 8, "", statement);
}

static void print_segment(RecurrentWriter *w, int gates, int64_t from, int64_t to, const char *vector,
                          const char *weight, int at)
{
    text_printf(&w->t, "#pragma unroll 4\n%*sfor (i64 k = %" LD "; k < %" LD "; k++) {\n", at, "", from, to);
    text_printf(&w->t, "%*sT v[%" LD "];\n#pragma unroll\n", at + 4, "", w->share);
    text_printf(&w->t, "%*sfor (u32 r = 0; r < %" LD "; r++)\n%*sv[r] = %s;\n", at + 4, "", w->share, at + 8, "",
                vector);
    text_printf(&w->t, "#pragma unroll\n%*sfor (u32 g = 0; g < %d; g++) {\n%*sconst T by = %s;\n#pragma unroll\n",
                at + 4, "", gates, at + 8, "", weight);
    text_printf(&w->t,
                "%*sfor (u32 r = 0; r < %" LD "; r++)\n%*sacc[g][r] = fma_%s(v[r], by, acc[g][r]);\n%*s}\n%*s}\n",
                at + 8, "", w->share, at + 12, "", w->type, at + 4, "", at, "");
}

/* Segments join like the digits of a binary counter: digit k is d<k>. */
void recurrent_print_dots(RecurrentWriter *w, int gates, int64_t depth, const char *vector, const char *weight,
                          int indent)
{
    const int at = 4 * indent;
    const int64_t segments = (depth + PANEL_SEGMENT - 1) / PANEL_SEGMENT;
    text_printf(&w->t, "%*sT acc[%d][%" LD "];\n", at, "", gates, w->share);
    for (int k = 0; segments > 1 && segments >> k; k++)
        text_printf(&w->t, "%*sT d%d[%d][%" LD "];\n", at, "", k, gates, w->share);
    for (int64_t s = 0; s < segments; s++) {
        const int64_t end = (s + 1) * PANEL_SEGMENT < depth ? (s + 1) * PANEL_SEGMENT : depth;
        int k = 0;
        each(w, gates, "acc[g][r] = 0;", at);
        print_segment(w, gates, s * PANEL_SEGMENT, end, vector, weight, at);
        for (; segments > 1 && s >> k & 1; k++)
            each(w, gates, arena_printf(w->to->arena, "acc[g][r] = d%d[g][r] + acc[g][r];", k), at);
        if (segments > 1)
            each(w, gates, arena_printf(w->to->arena, "d%d[g][r] = acc[g][r];", k), at);
    }
    bool any = false;
    for (int k = 0; segments > 1 && segments >> k; k++)
        if (segments >> k & 1) {
            each(w, gates,
                 any ? arena_printf(w->to->arena, "acc[g][r] = d%d[g][r] + acc[g][r];", k)
                     : arena_printf(w->to->arena, "acc[g][r] = d%d[g][r];", k),
                 at);
            any = true;
        }
}

/* ---- cells: z[g], acts[g] of unit j from xw[g], hr[g]; past, past_c and c are numbers ---- */

static void print_enters(RecurrentWriter *w, int gates, int indent)
{
    const int at = 4 * indent;
    for (int g = 0; g < gates; g++) {
        text_printf(&w->t, "%*sz[%d] = xw[%d] + hr[%d];\n", at, "", g, g, g);
        if (recurrent_has(w, BIAS))
            text_printf(&w->t,
                        "%*sz[%d] = z[%d] + (IN%d(d * %" LD " + %" LD " + j) + IN%d(d * %" LD " + %" LD " + j));\n", at,
                        "", g, g, BIAS, 2 * w->wide, g * w->s.hidden, BIAS, 2 * w->wide, w->wide + g * w->s.hidden);
    }
}

static const char *peephole(const RecurrentWriter *w, int gate)
{
    const int64_t n = w->s.hidden;
    return arena_printf(w->to->arena, "IN%d(d * %" LD " + %" LD " + j)", w->cell->peephole, 3 * n, gate * n);
}

void recurrent_print_lstm(RecurrentWriter *w, int indent)
{
    const int at = 4 * indent;
    const bool peeps = recurrent_has(w, w->cell->peephole);
    print_enters(w, 4, indent);
    if (peeps)
        text_printf(&w->t, "%*sz[0] += %s * past_c;\n%*sz[2] += %s * past_c;\n", at, "", peephole(w, 0), at, "",
                    peephole(w, 2));
    recurrent_print_squash(w, 0, true, "acts[0]", "z[0]", indent);
    if (w->at->input_forget)
        text_printf(&w->t, "%*sacts[2] = 1 - acts[0];\n", at, "");
    else
        recurrent_print_squash(w, 0, true, "acts[2]", "z[2]", indent);
    recurrent_print_squash(w, 1, true, "acts[3]", "z[3]", indent);
    text_printf(&w->t, "%*sc = acts[2] * past_c + acts[0] * acts[3];\n", at, "");
    if (peeps)
        text_printf(&w->t, "%*sz[1] += %s * c;\n", at, "", peephole(w, 1));
    recurrent_print_squash(w, 0, true, "acts[1]", "z[1]", indent);
}

void recurrent_print_gru_gates(RecurrentWriter *w, int indent)
{
    print_enters(w, 2, indent);
    recurrent_print_squash(w, 0, true, "acts[0]", "z[0]", indent);
    recurrent_print_squash(w, 0, true, "acts[1]", "z[1]", indent);
}

/* hr[2]: the product with the state, or with the gated state. */
void recurrent_print_gru_fresh(RecurrentWriter *w, int indent)
{
    const int at = 4 * indent;
    const int64_t n = w->s.hidden;
    const bool biased = recurrent_has(w, BIAS), linear = w->at->linear_before_reset;
    if (biased)
        text_printf(&w->t, "%*shr[2] = hr[2] + IN%d(d * %" LD " + %" LD " + j);\n", at, "", BIAS, 2 * w->wide,
                    w->wide + 2 * n);
    text_printf(&w->t, "%*sz[2] = xw[2];\n", at, "");
    if (biased)
        text_printf(&w->t, "%*sz[2] = z[2] + IN%d(d * %" LD " + %" LD " + j);\n", at, "", BIAS, 2 * w->wide, 2 * n);
    text_printf(&w->t, "%*sz[2] = z[2] + %s;\n", at, "", linear ? "acts[1] * hr[2]" : "hr[2]");
    recurrent_print_squash(w, 1, true, "acts[2]", "z[2]", indent);
}

void recurrent_print_rnn(RecurrentWriter *w, int indent)
{
    print_enters(w, 1, indent);
    recurrent_print_squash(w, 0, true, "acts[0]", "z[0]", indent);
}
