/* Kernels of lstm, gru and rnn.
 *
 *     input    x W' of all steps and directions: a product
 *     turn     R of each direction with its columns side by side, so that neighbours in a block read neighbours
 *     walk     a block for some sequences of a direction, from the first step to the last: a thread makes all gates of its units, the
 *              states lie in the memory that a block shares
 *
 * Sequences never meet, so nothing waits for another block, and a walk is one launch however long it is.  A block takes more sequences where
 * there are enough of them, and reads R once for all of them. */
#include <inttypes.h>

#include "ops/recurrent/recurrent_kernels.h"

#define LD PRId64

enum { X, W, R, MOST_SHARED = 40 << 10 };

typedef struct Forward {
    RecurrentWriter *w;
    size_t xw, turned, h, c, update, met;
    bool shared; /* what meets R lies in the memory that a block shares */
    bool keeps;  /* there are results for what the gradient needs */
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

/* What the gradient needs of step `t`: what the gates gave, and `lay`; or zeros. */
static void print_kept(Forward *f, const char *t, bool there, const char *lay)
{
    RecurrentWriter *w = f->w;
    const int first = 1 + w->cell->states;
    const char *row = arena_printf(w->to->arena, "(d * %" LD " + %s * %" LD " + b * %" LD ")", w->rows, t,
                                   w->layout.x.step, w->layout.x.batch);
    if (!f->keeps)
        return;
    for (int g = 0; g < w->cell->gates; g++)
        text_printf(&w->t, "            OUT%d(%s * %" LD " + %" LD " + j, %s);\n", first, row, w->wide, g * w->s.hidden,
                    there ? arena_printf(w->to->arena, "acts[%d]", g) : "0");
    text_printf(&w->t, "            OUT%d(%s * %" LD " + j, %s);\n", first + 1, row, w->s.hidden, lay);
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
        print_kept(f, "place", true, "c");
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
        if (!w->whole) {
            print_kept(f, "place", true, "hr[2]");
            text_printf(&w->t, "            const T state = (1 - acts[0]) * acts[2] + acts[0] * past;\n");
        }
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
                "            for (i64 t = length; t < %" LD "; t++) {\n            OUT0(d * %" LD " + t * %" LD
                " + b * %" LD " + j, 0);\n",
                w->s.steps, l->y.direction, l->y.step, l->y.batch);
    print_kept(f, "t", false, "0");
    text_add(&w->t, "            }\n");
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
    Forward f = { .w = &w, .keeps = type_results(n->type) > 1 + cell->states };
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
