/* Kernels of lstm, gru and rnn.
 *
 *     input    x W' of all steps and directions: a product
 *     turn     R of each direction with its columns side by side, so that neighbours in a block read neighbours
 *     walk     a block for some sequences of a direction, from the first step to the last: a thread makes all gates of its units, the
 *              states lie in the memory that a block shares
 *
 * Sequences never meet, so nothing waits for another block, and a walk is one launch however long it is.  A block takes more sequences where
 * there are enough of them, and reads R once for all of them. */
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
    MOST_SHARED = 40 << 10,
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

/* ---- forward ---- */

typedef struct Forward {
    RecurrentWriter *w;
    size_t xw, turned, h, c, update, met;
    bool shared; /* what meets R lies in the memory that a block shares */
} Forward;

static void print_turn(Forward *f)
{
    RecurrentWriter *w = f->w;
    const int64_t n = w->s.hidden;
    recurrent_open_body(w);
    recurrent_name(w, "turned", f->turned);
    text_printf(&w->t, "    const i64 column = o %% %" LD ", k = o / %" LD " %% %" LD ", d = o / %" LD ";\n", w->wide,
                w->wide, n, n * w->wide);
    text_printf(&w->t, "    turned[o] = IN%d((d * %" LD " + column) * %" LD " + k);\n", R, w->wide, n);
    own_kernel_close(w->to, "turn", w->s.directions * n * w->wide, 0, &w->t);
}

/* Where a sequence of the block stands, and whether it has a step t. */
static void print_sequence(Forward *f)
{
    RecurrentWriter *w = f->w;
    const Layout *l = &w->layout;
    text_printf(&w->t,
                "            const i64 b = first + r;\n            if (b >= %" LD ")\n                continue;\n",
                w->s.batch);
    recurrent_print_length(w, 3);
    text_printf(&w->t, "            if (t >= length)\n                continue;\n");
    text_printf(&w->t, "            const i64 place = %s;\n", recurrent_step_place(w, "t"));
    text_printf(&w->t,
                "            const T *const row = inputs + ((d * %" LD ") + place * %" LD " + b * %" LD ") * %" LD
                " + j;\n",
                w->rows, l->x.step, l->x.batch, w->wide);
    text_printf(&w->t, "            const T past = h[(d * %" LD " + b) * %" LD " + j];\n", w->s.batch, w->s.hidden);
    text_printf(&w->t, "            T xw[%d], hr[%d], z[%d], acts[%d];\n", w->cell->gates, w->cell->gates,
                w->cell->gates, w->cell->gates);
}

static void print_gates_of(Forward *f, int from, int to)
{
    RecurrentWriter *w = f->w;
    for (int g = from; g < to; g++)
        text_printf(&w->t, "            xw[%d] = row[%" LD "];\n            hr[%d] = acc[%d][r];\n", g, g * w->s.hidden,
                    g, g - from);
}

/* The state of a step becomes that of the next one, and a row of Y. */
static void print_leave(Forward *f, const char *next)
{
    RecurrentWriter *w = f->w;
    const Layout *l = &w->layout;
    text_printf(&w->t, "            h[(d * %" LD " + b) * %" LD " + j] = state;\n", w->s.batch, w->s.hidden);
    text_printf(&w->t, "            %s[r * %" LD " + j] = %s;\n", next, w->s.hidden, recurrent_narrowed(w, "state"));
    text_printf(&w->t, "            OUT0(d * %" LD " + place * %" LD " + b * %" LD " + j, state);\n", l->y.direction,
                l->y.step, l->y.batch);
}

static void open_units(Forward *f)
{
    text_printf(&f->w->t, "    for (i64 j = thread; j < %" LD "; j += %" LD ") {\n", f->w->s.hidden, f->w->threads);
}

static void open_sequences(Forward *f)
{
    text_printf(&f->w->t, "#pragma unroll\n        for (u32 r = 0; r < %" LD "; r++) {\n", f->w->share);
}

static void close_units(Forward *f)
{
    text_add(&f->w->t, "        }\n    }\n");
}

static const char *weight_text(const Forward *f, int first)
{
    const RecurrentWriter *w = f->w;
    return arena_printf(w->to->arena, "turned[k * %" LD " + (g + %d) * %" LD " + j]", w->wide, first, w->s.hidden);
}

static void print_step(Forward *f)
{
    RecurrentWriter *w = f->w;
    const int64_t n = w->s.hidden;
    const bool is_lstm = w->cell == &cell_lstm, is_gru = w->cell == &cell_gru;
    const int gates = w->whole ? 2 : w->cell->gates;
    const char *vector = arena_printf(w->to->arena, "now[r * %" LD " + k]", n);
    open_units(f);
    recurrent_print_dots(w, gates, n, vector, weight_text(f, 0), 2);
    open_sequences(f);
    print_sequence(f);
    print_gates_of(f, 0, gates);
    if (is_lstm) {
        text_printf(&w->t, "            const i64 own = (d * %" LD " + b) * %" LD " + j;\n", w->s.batch, n);
        text_printf(&w->t, "            const T past_c = cells[own];\n            T c, state;\n");
        recurrent_print_lstm(w, 3);
        text_printf(&w->t, "            cells[own] = c;\n");
        recurrent_print_squash(w, 2, false, "state", "c", 3);
        text_printf(&w->t, "            state = acts[1] * state;\n            (void)past;\n");
    } else if (is_gru) {
        recurrent_print_gru_gates(w, 3);
        if (!w->whole)
            recurrent_print_gru_fresh(w, 3);
        else
            text_printf(&w->t,
                        "            updates[(d * %" LD " + b) * %" LD " + j] = acts[0];\n            gated[r * %" LD
                        " + j] = %s;\n",
                        w->s.batch, n, n, recurrent_narrowed(w, "acts[1] * past"));
        if (!w->whole)
            text_printf(&w->t, "            const T state = (1 - acts[0]) * acts[2] + acts[0] * past;\n");
    } else {
        recurrent_print_rnn(w, 3);
        text_printf(&w->t, "            const T state = acts[0];\n            (void)past;\n");
    }
    if (!w->whole)
        print_leave(f, "next");
    close_units(f);
    if (!w->whole)
        return;
    text_add(&w->t, "    __syncthreads();\n");
    open_units(f);
    recurrent_print_dots(w, 1, n, arena_printf(w->to->arena, "gated[r * %" LD " + k]", n), weight_text(f, 2), 2);
    open_sequences(f);
    print_sequence(f);
    print_gates_of(f, 2, 3);
    text_printf(&w->t, "            acts[0] = updates[(d * %" LD " + b) * %" LD " + j];\n", w->s.batch, n);
    recurrent_print_gru_fresh(w, 3);
    text_printf(&w->t, "            const T state = (1 - acts[0]) * acts[2] + acts[0] * past;\n");
    print_leave(f, "next");
    close_units(f);
}

/* States as they were before, and the same as products have them. */
static void print_begin(Forward *f)
{
    RecurrentWriter *w = f->w;
    const int64_t n = w->s.hidden;
    const int first = w->cell->first_state;
    open_units(f);
    open_sequences(f);
    text_printf(&w->t,
                "            const i64 b = first + r;\n            T state = 0;\n            if (b < %" LD ") {\n",
                w->s.batch);
    text_printf(&w->t, "                state = %s;\n                h[(d * %" LD " + b) * %" LD " + j] = state;\n",
                recurrent_state(w, first), w->s.batch, n);
    if (w->cell->states > 1)
        text_printf(&w->t, "                cells[(d * %" LD " + b) * %" LD " + j] = %s;\n", w->s.batch, n,
                    recurrent_state(w, first + 1));
    text_printf(&w->t,
                "            }\n            met[r * %" LD " + j] = %s;\n            met[%" LD " + r * %" LD
                " + j] = 0;\n",
                n, recurrent_narrowed(w, "state"), w->share * n, n);
    if (w->whole)
        text_printf(&w->t, "            gated[r * %" LD " + j] = 0;\n", n);
    close_units(f);
}

/* The last states, and zeros behind the ends of sequences. */
static void print_end(Forward *f)
{
    RecurrentWriter *w = f->w;
    const Layout *l = &w->layout;
    const int results = type_results(w->n->type);
    open_units(f);
    open_sequences(f);
    text_printf(&w->t,
                "            const i64 b = first + r;\n            if (b >= %" LD ")\n                continue;\n",
                w->s.batch);
    recurrent_print_length(w, 3);
    text_printf(&w->t,
                "            for (i64 t = length; t < %" LD "; t++)\n                OUT0(d * %" LD " + t * %" LD
                " + b * %" LD " + j, 0);\n",
                w->s.steps, l->y.direction, l->y.step, l->y.batch);
    static const char *const last[] = { "h", "cells" };
    for (int i = 0; i < w->cell->states && i + 1 < results; i++)
        text_printf(&w->t, "            OUT%d(%s, %s[(d * %" LD " + b) * %" LD " + j]);\n", i + 1,
                    recurrent_state_place(w), last[i], w->s.batch, w->s.hidden);
    close_units(f);
}

static void print_walk(Forward *f)
{
    RecurrentWriter *w = f->w;
    const int64_t n = w->s.hidden, room = (w->whole ? 3 : 2) * w->share * n;
    recurrent_open_body(w);
    text_printf(&w->t, "    const i64 d = block / %" LD ", first = block %% %" LD " * %" LD ";\n", w->blocks, w->blocks,
                w->share);
    recurrent_name(w, "inputs", f->xw);
    recurrent_name(w, "h", f->h);
    if (w->cell->states > 1)
        recurrent_name(w, "cells", f->c);
    if (w->whole)
        recurrent_name(w, "updates", f->update);
    text_printf(&w->t, "    const T *const turned = (const T *)(scratch + %zu) + d * %" LD ";\n", f->turned,
                n * w->wide);
    if (f->shared)
        text_printf(&w->t, "    __shared__ T met[%" LD "];\n", room);
    else
        text_printf(&w->t, "    T *const met = (T *)(scratch + %zu) + block * %" LD ";\n", f->met, room);
    if (w->whole)
        text_printf(&w->t, "    T *const gated = met + %" LD ";\n", 2 * w->share * n);
    print_begin(f);
    text_printf(&w->t, "    __syncthreads();\n    for (i64 t = 0; t < %" LD "; t++) {\n", w->s.steps);
    text_printf(&w->t,
                "    const T *const now = met + t %% 2 * %" LD ";\n    T *const next = met + (t + 1) %% 2 * %" LD ";\n",
                w->share * n, w->share * n);
    print_step(f);
    text_add(&w->t, "    __syncthreads();\n    }\n");
    print_end(f);
    own_kernel_close(w->to, "walk", w->s.directions * w->blocks, (int)w->threads, &w->t);
}

bool kernels_recurrent(const Node *n, OwnKernels *to, const Cell *cell)
{
    RecurrentWriter w;
    Forward f = { .w = &w };
    if (!recurrent_open_kernels(&w, n, to, cell, in(n, X)->type->dtype))
        return false;
    const RecurrentShape *s = &w.s;
    const int64_t states = s->directions * s->batch * s->hidden, room = (w.whole ? 3 : 2) * w.share * s->hidden;
    f.xw = recurrent_take(&w, s->directions * w.rows * w.wide);
    f.turned = recurrent_take(&w, s->directions * s->hidden * w.wide);
    f.h = recurrent_take(&w, states);
    f.c = cell->states > 1 ? recurrent_take(&w, states) : 0;
    f.update = w.whole ? recurrent_take(&w, states) : 0;
    f.shared = room * (int64_t)(w.arithmetic == F64 ? sizeof(f64) : sizeof(f32)) <= MOST_SHARED;
    f.met = f.shared ? 0 : recurrent_take(&w, s->directions * w.blocks * room);
    own_product(to, "input",
                &(OwnProduct){ .a = { OWN_OPERAND, X, 0, w.own, 1, w.rows, s->input },
                               .b = { OWN_OPERAND, W, 0, w.own, s->directions, w.wide, s->input },
                               .d = { OWN_SCRATCH, 0, f.xw, w.arithmetic, s->directions, w.rows, w.wide },
                               .tb = true });
    print_turn(&f);
    print_walk(&f);
    return true;
}
