/* Back through time: a block for some sequences of a direction, from the last step to the first.  What a step sends through R lies in the
 * memory that a block shares; before the next one each thread has what reaches its units, in the order of contractions. */
#include <inttypes.h>

#include "ops/recurrent/recurrent_kernels_back.h"

#define LD PRId64

enum { R = 2 };

static bool is_gru(const RecurrentBack *k)
{
    return k->w->cell == &cell_gru;
}

static bool is_lstm(const RecurrentBack *k)
{
    return k->w->cell == &cell_lstm;
}

/* An element of R of direction d as products have it. */
static const char *recall_text(const RecurrentBack *k, const char *row)
{
    const RecurrentWriter *w = k->w;
    const char *at = arena_printf(w->to->arena, "(d * %" LD " + %s) * %" LD " + j", w->wide, row, w->s.hidden);
    if (!w->narrow)
        return arena_printf(w->to->arena, "IN%d(%s)", R, at);
    return arena_printf(w->to->arena, "%s_to_f32(((const u16 *)(scratch + %zu))[%s])", dtype_name(w->own), k->kept_r,
                        at);
}

static void print_slopes(RecurrentBack *k, int from, int to, int indent)
{
    RecurrentWriter *w = k->w;
    for (int g = from; g < to; g++) {
        const int function = (is_lstm(k) && g == 3) || (is_gru(k) && g == 2);
        text_printf(&w->t, "%*sconst T x%d = %s[line + %" LD "], y%d = dx_rows[line + %" LD "];\n%*sT s%d;\n",
                    4 * indent, "", g, k->kept ? "dx_rows" : "z_rows", g * w->s.hidden, g, g * w->s.hidden, 4 * indent,
                    "", g);
        recurrent_print_slope(w, function, true, arena_printf(w->to->arena, "s%d", g),
                              arena_printf(w->to->arena, "x%d", g), arena_printf(w->to->arena, "y%d", g), indent);
    }
}

/* What a gate was sent: a number of dx, and of what goes through R. */
static void print_send(RecurrentBack *k, int gate, const char *value)
{
    RecurrentWriter *w = k->w;
    text_printf(&w->t, "            sent[r * %" LD " + %" LD " + j] = %s;\n", k->sent, gate * w->s.hidden,
                recurrent_narrowed(w, value));
}

static void print_back_lstm(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden;
    const bool tied = w->at->input_forget, peeps = recurrent_has(w, w->cell->peephole);
    const char *p = arena_printf(w->to->arena, "IN%d(d * %" LD " + ", w->cell->peephole, 3 * n);
    print_slopes(k, 0, 4, 3);
    recurrent_print_past_cell(k);
    text_add(&w->t, "            const T behind = c_rows[unit], dh = dh_of[own];\n            T shown, st;\n");
    recurrent_print_squash(w, 2, false, "shown", "behind", 3);
    recurrent_print_slope(w, 2, false, "st", "behind", "shown", 3);
    text_add(&w->t, "            const T dzo = dh * shown * s1;\n");
    if (peeps)
        text_printf(&w->t, "            const T dc = dc_of[own] + dh * y1 * st + dzo * %s%" LD " + j);\n", p, n);
    else
        text_add(&w->t, "            const T dc = dc_of[own] + dh * y1 * st + (T)0;\n");
    text_printf(&w->t, "            const T di = %s, dzi = di * s0;\n", tied ? "dc * y3 - dc * past" : "dc * y3");
    text_printf(&w->t, "            const T dzf = %s, dzg = dc * y0 * s3;\n", tied ? "0" : "dc * past * s2");
    if (peeps)
        text_printf(&w->t, "            dc_of[own] = dc * y2 + (dzi * %sj) + dzf * %s%" LD " + j));\n", p, p, 2 * n);
    else
        text_add(&w->t, "            dc_of[own] = dc * y2 + (T)0;\n");
    if (tied)
        text_add(&w->t, "            (void)s2;\n");
    text_add(&w->t, "            dh_of[own] = 0;\n");
    static const char *const sent[] = { "dzi", "dzo", "dzf", "dzg" };
    for (int g = 0; g < 4; g++) {
        text_printf(&w->t, "            dx_rows[line + %" LD "] = %s;\n", g * n, sent[g]);
        print_send(k, g, sent[g]);
    }
}

static void print_back_rnn(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    print_slopes(k, 0, 1, 3);
    text_add(&w->t, "            const T dz = dh_of[own] * s0;\n            dx_rows[line] = dz;\n"
                    "            dh_of[own] = 0;\n");
    print_send(k, 0, "dz");
}

/* Of gru what reaches the reset gate may wait for a product: then it follows in print_back_reset(). */
static void print_back_gru(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden;
    print_slopes(k, 0, 3, 3);
    text_add(&w->t, "            const T dh = dh_of[own], past = h_rows[unit], dzh = dh * (1 - y0) * s2;\n"
                    "            const T dzz = dh * (past - y2) * s0;\n            dh_of[own] = dh * y0;\n");
    text_printf(&w->t, "            dx_rows[line] = dzz;\n            dx_rows[line + %" LD "] = dzh;\n", 2 * n);
    print_send(k, 0, "dzz");
    if (w->whole) {
        text_printf(&w->t,
                    "            dr_rows[(d * %" LD " + row) * %" LD
                    " + j] = dzz;\n            third_rows[unit] = dzh;\n",
                    w->rows, 2 * n);
        print_send(k, 2, "dzh");
        text_add(&w->t, "            (void)s1;\n");
        return;
    }
    text_printf(&w->t,
                "            const T dr = dzh * linear_rows[unit], dzr = dr * s1, through = dzh * y1;\n"
                "            dx_rows[line + %" LD "] = dzr;\n            dr_rows[line] = dzz;\n"
                "            dr_rows[line + %" LD "] = dzr;\n            dr_rows[line + %" LD "] = through;\n",
                n, n, 2 * n);
    print_send(k, 1, "dzr");
    print_send(k, 2, "through");
}

static void print_back_reset(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden;
    print_slopes(k, 1, 2, 3);
    text_printf(&w->t,
                "            const T da = acc[0][r], past = h_rows[unit], dr = da * past, dzr = dr * s1;\n"
                "            dh_of[own] += da * y1;\n            gated_rows[unit] = y1 * past;\n"
                "            dx_rows[line + %" LD "] = dzr;\n            dr_rows[(d * %" LD " + row) * %" LD " + %" LD
                " + j] = dzr;\n",
                n, w->rows, 2 * n, n);
    print_send(k, 1, "dzr");
}

static void open_units(RecurrentBack *k, bool sequences)
{
    RecurrentWriter *w = k->w;
    text_printf(&w->t, "    for (i64 j = thread; j < %" LD "; j += %" LD ") {\n", w->s.hidden, w->threads);
    if (sequences)
        text_printf(&w->t, "#pragma unroll\n        for (u32 r = 0; r < %" LD "; r++) {\n", w->share);
}

static void open_sequence(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    text_printf(&w->t,
                "            const i64 b = first + r;\n            if (b >= %" LD ")\n                continue;\n",
                w->s.batch);
    recurrent_print_length(w, 3);
    text_printf(&w->t, "            const i64 own = (d * %" LD " + b) * %" LD " + j;\n", w->s.batch, w->s.hidden);
}

void recurrent_print_place(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    text_printf(
        &w->t,
        "            if (t >= length)\n                continue;\n            const i64 place = %s, row = place * %" LD
        " + b * %" LD ";\n            const i64 unit = (d * %" LD " + row) * %" LD " + j, line = (d * %" LD
        " + row) * %" LD " + j;\n",
        recurrent_step_place(w, "t"), w->layout.x.step, w->layout.x.batch, w->rows, w->s.hidden, w->rows, w->wide);
}

void recurrent_print_past_cell(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    text_printf(&w->t,
                "            const T past = t ? c_rows[(d * %" LD " + %s * %" LD " + b * %" LD ") * %" LD
                " + j] : %s;\n",
                w->rows, recurrent_step_place(w, "t - 1"), w->layout.x.step, w->layout.x.batch, w->s.hidden,
                recurrent_state(w, w->cell->first_state + 1));
}

static const char *sent_text(const RecurrentBack *k, int64_t from)
{
    return arena_printf(k->w->to->arena, "sent[r * %" LD " + %" LD " + k]", k->sent, from);
}

/* What the step behind sent through R reaches the state. */
static void print_reached(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    text_printf(&w->t, "    if (t + 1 < %" LD ")\n", w->s.steps);
    open_units(k, false);
    recurrent_print_dots(w, 1, k->through, sent_text(k, 0), recall_text(k, "k"), 2);
    text_printf(&w->t, "#pragma unroll\n        for (u32 r = 0; r < %" LD "; r++) {\n", w->share);
    open_sequence(k);
    text_add(&w->t, "            if (t + 1 < length)\n                dh_of[own] += acc[0][r];\n        }\n    }\n");
    text_add(&w->t, "    __syncthreads();\n");
}

static void print_step(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const Layout *l = &w->layout;
    open_units(k, true);
    open_sequence(k);
    recurrent_print_place(k);
    if (recurrent_has(w, k->dy))
        text_printf(&w->t, "            dh_of[own] += IN%d(d * %" LD " + place * %" LD " + b * %" LD " + j);\n", k->dy,
                    l->y.direction, l->y.step, l->y.batch);
    (is_lstm(k) ? print_back_lstm : is_gru(k) ? print_back_gru : print_back_rnn)(k);
    text_add(&w->t, "        }\n    }\n    __syncthreads();\n");
    if (!w->whole)
        return;
    open_units(k, false);
    recurrent_print_dots(w, 1, w->s.hidden, sent_text(k, 2 * w->s.hidden),
                         recall_text(k, arena_printf(w->to->arena, "(%" LD " + k)", 2 * w->s.hidden)), 2);
    text_printf(&w->t, "#pragma unroll\n        for (u32 r = 0; r < %" LD "; r++) {\n", w->share);
    open_sequence(k);
    recurrent_print_place(k);
    text_add(&w->t, "            (void)place;\n");
    print_back_reset(k);
    text_add(&w->t, "        }\n    }\n    __syncthreads();\n");
}

void recurrent_print_walk_back(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int states = w->cell->states;
    static const char *const of_states[] = { "dh_of", "dc_of" };
    recurrent_open_body(w);
    recurrent_name_rows(k);
    recurrent_name(w, "dh_of", k->dh);
    if (states > 1)
        recurrent_name(w, "dc_of", k->dc);
    text_printf(&w->t, "    const i64 d = block / %" LD ", first = block %% %" LD " * %" LD ";\n", w->blocks, w->blocks,
                w->share);
    if (k->shared)
        text_printf(&w->t, "    __shared__ T sent[%" LD "];\n", w->share * k->sent);
    else
        text_printf(&w->t, "    T *const sent = (T *)(scratch + %zu) + block * %" LD ";\n", k->at_sent,
                    w->share * k->sent);
    text_printf(&w->t, "    for (i64 i = thread; i < %" LD "; i += %" LD ")\n        sent[i] = 0;\n",
                w->share * k->sent, w->threads);
    open_units(k, true);
    open_sequence(k);
    text_add(&w->t, "            (void)length;\n");
    for (int i = 0; i < states; i++)
        text_printf(&w->t, "            %s[own] = %s;\n", of_states[i], recurrent_state(w, k->dy + 1 + i));
    text_add(&w->t, "        }\n    }\n    __syncthreads();\n");
    text_printf(&w->t, "    for (i64 t = %" LD "; t >= 0; t--) {\n", w->s.steps - 1);
    print_reached(k);
    print_step(k);
    text_add(&w->t, "    }\n    const i64 t = -1;\n");
    print_reached(k);
    open_units(k, true);
    open_sequence(k);
    text_add(&w->t, "            (void)length;\n");
    for (int i = 0; i < states; i++)
        text_printf(&w->t, "            OUT%d(%s, %s[own]);\n", RECURRENT_OF_STATES + i, recurrent_state_place(w),
                    of_states[i]);
    text_add(&w->t, "        }\n    }\n");
    own_kernel_close(w->to, "walk", w->s.directions * w->blocks, (int)w->threads, &w->t);
}
