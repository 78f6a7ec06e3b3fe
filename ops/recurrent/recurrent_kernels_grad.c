/* Kernels of the gradients of lstm, gru and rnn, in the order of ops/recurrent/recurrent_grad.c.
 *
 *     keep     operands of products in their type, where that is of 16 bits
 *     states   the state before each step, from Y; then products with W and R of all steps
 *     retrace  what entered the activations of each step and left them, and the cells: a thread for each unit of a sequence; `kept`,
 *              and none of those products, where the forward call kept them
 *     walk     a block for some sequences of a direction, from the last step to the first: what a step sends through R lies in the memory
 *              that a block shares
 *     peep, bias   sums over steps; then products: what reaches X, W and R
 */
#include <inttypes.h>

#include "ops/card/reduction.h"
#include "ops/recurrent/recurrent_kernels_back.h"

#define LD PRId64

enum { X, W, R, OF_X = 0, OF_W, OF_R, OF_BIAS, SUM_THREADS = 256 };

static bool is_gru(const RecurrentBack *k)
{
    return k->w->cell == &cell_gru;
}

static bool is_lstm(const RecurrentBack *k)
{
    return k->w->cell == &cell_lstm;
}

static DType product_type(const RecurrentBack *k)
{
    return k->w->narrow ? k->w->own : k->w->arithmetic;
}

/* ---- what products read ---- */

static size_t take_kept(RecurrentBack *k, int64_t n)
{
    return k->w->narrow ? own_scratch(k->w->to, n * (int64_t)sizeof(uint16_t)) : 0;
}

/* kept[o] = value of o, in the type of products. */
static void print_keep(RecurrentBack *k, const char *part, size_t to, int64_t n, const char *value)
{
    RecurrentWriter *w = k->w;
    recurrent_open_body(w);
    text_printf(&w->t, "    ((u16 *)(scratch + %zu))[o] = %s_from_f32(%s);\n", to, dtype_name(w->own), value);
    own_kernel_close(w->to, part, n, 0, &w->t);
}

static const char *in_scratch(const RecurrentBack *k, size_t at)
{
    return arena_printf(k->w->to->arena, "((const %s *)(scratch + %zu))[o]", k->w->type, at);
}

static OwnMatrices factor(const RecurrentBack *k, size_t kept, OwnMatrices plain)
{
    if (!k->w->narrow)
        return plain;
    plain.where = OWN_SCRATCH;
    plain.at = kept;
    plain.type = k->w->own;
    return plain;
}

static OwnMatrices operand(const RecurrentBack *k, int number, size_t kept, int64_t n, int64_t rows, int64_t columns)
{
    return factor(k, kept, (OwnMatrices){ OWN_OPERAND, number, 0, k->w->arithmetic, n, rows, columns });
}

static OwnMatrices scratch(const RecurrentBack *k, size_t at, int64_t rows, int64_t columns)
{
    return (OwnMatrices){ OWN_SCRATCH, 0, at, k->w->arithmetic, k->w->s.directions, rows, columns };
}

static OwnMatrices result(const RecurrentBack *k, int number, int64_t n, int64_t rows, int64_t columns)
{
    return (OwnMatrices){ OWN_RESULT, number, 0, k->w->arithmetic, n, rows, columns };
}

/* ---- states and cells ---- */

/* d, row and j of element `o` of rows of hidden units; b and k of the row. */
static void print_row(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    text_printf(&w->t, "    const i64 j = o %% %" LD ", row = o / %" LD " %% %" LD ", d = o / %" LD ";\n", w->s.hidden,
                w->s.hidden, w->rows, w->rows * w->s.hidden);
    if (w->at->layout)
        text_printf(&w->t, "    const i64 b = row / %" LD ", k = row %% %" LD ";\n", w->s.steps, w->s.steps);
    else
        text_printf(&w->t, "    const i64 b = row %% %" LD ", k = row / %" LD ";\n", w->s.batch, w->s.batch);
    recurrent_print_length(w, 1);
    text_printf(&w->t, "    const i64 t = %s ? length - 1 - k : k;\n", recurrent_backward(w));
}

static void print_states(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const Layout *l = &w->layout;
    recurrent_open_body(w);
    recurrent_name(w, "h", k->h);
    print_row(k);
    text_add(&w->t, "    T state = 0;\n    if (k < length && t == 0)\n");
    text_printf(&w->t, "        state = %s;\n", recurrent_state(w, w->cell->first_state));
    text_printf(&w->t,
                "    else if (k < length)\n        state = IN%d(d * %" LD " + %s * %" LD " + b * %" LD " + j);\n", k->y,
                l->y.direction, recurrent_step_place(w, "t - 1"), l->y.step, l->y.batch);
    text_add(&w->t, "    h[o] = state;\n");
    if (w->narrow)
        text_printf(&w->t, "    ((u16 *)(scratch + %zu))[o] = %s_from_f32(state);\n", k->kept_h, dtype_name(w->own));
    own_kernel_close(w->to, "states", w->s.directions * w->rows * w->s.hidden, 0, &w->t);
}

void recurrent_name_rows(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    recurrent_name(w, "dx_rows", k->dx);
    if (!k->kept)
        recurrent_name(w, "z_rows", k->z);
    recurrent_name(w, "h_rows", k->h);
    if (is_lstm(k))
        recurrent_name(w, "c_rows", k->c);
    if (recurrent_is_apart(k)) {
        recurrent_name(w, "dr_rows", k->dr);
        recurrent_name(w, "linear_rows", k->linear);
    }
    if (w->whole) {
        recurrent_name(w, "gated_rows", k->gated);
        recurrent_name(w, "dr_rows", k->dr);
        recurrent_name(w, "third_rows", k->third);
    }
}

static void print_load(RecurrentBack *k, int from, int to, int indent)
{
    RecurrentWriter *w = k->w;
    for (int g = from; g < to; g++)
        text_printf(&w->t, "%*sxw[%d] = dx_rows[line + %" LD "];\n%*shr[%d] = z_rows[line + %" LD "];\n", 4 * indent,
                    "", g, g * w->s.hidden, 4 * indent, "", g, g * w->s.hidden);
}

static void print_kept_gates(RecurrentBack *k, int from, int to, int indent)
{
    RecurrentWriter *w = k->w;
    for (int g = from; g < to; g++)
        text_printf(&w->t, "%*sz_rows[line + %" LD "] = z[%d];\n%*sdx_rows[line + %" LD "] = acts[%d];\n", 4 * indent,
                    "", g * w->s.hidden, g, 4 * indent, "", g * w->s.hidden, g);
}

static void print_gate_names(RecurrentWriter *w, int indent)
{
    const int n = w->cell->gates;
    text_printf(&w->t, "%*sT xw[%d], hr[%d], z[%d], acts[%d];\n", 4 * indent, "", n, n, n, n);
}

/* Behind the end of a sequence nothing reaches anything. */
static void print_clear(RecurrentBack *k, int indent)
{
    RecurrentWriter *w = k->w;
    const int at = 4 * indent;
    text_printf(&w->t, "%*sfor (u32 g = 0; g < %d; g++)\n%*sdx_rows[line + g * %" LD "] = 0;\n", at, "", w->cell->gates,
                at + 4, "", w->s.hidden);
    if (recurrent_is_apart(k))
        text_printf(&w->t, "%*sfor (u32 g = 0; g < %d; g++)\n%*sdr_rows[line + g * %" LD "] = 0;\n", at, "",
                    w->cell->gates, at + 4, "", w->s.hidden);
    if (w->whole)
        text_printf(&w->t,
                    "%*sgated_rows[unit] = 0;\n%*sthird_rows[unit] = 0;\n%*sfor (u32 g = 0; g < 2; g++)\n%*s"
                    "dr_rows[(d * %" LD " + row) * %" LD " + g * %" LD " + j] = 0;\n",
                    at, "", at, "", at, "", at + 4, "", w->rows, 2 * w->s.hidden, w->s.hidden);
}

/* One thread goes through the steps of a unit: its cells follow each other. */
static void print_retrace_lstm(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const Layout *l = &w->layout;
    const int64_t n = w->s.hidden;
    recurrent_open_body(w);
    recurrent_name_rows(k);
    text_printf(&w->t, "    const i64 j = o %% %" LD ", b = o / %" LD " %% %" LD ", d = o / %" LD ";\n", n, n,
                w->s.batch, n * w->s.batch);
    recurrent_print_length(w, 1);
    text_printf(&w->t, "    T past_c = %s;\n", recurrent_state(w, w->cell->first_state + 1));
    text_printf(&w->t, "    for (i64 t = 0; t < %" LD "; t++) {\n", w->s.steps);
    text_printf(&w->t, "        const i64 k = t < length ? %s : t;\n", recurrent_step_place(w, "t"));
    text_printf(&w->t, "        const i64 row = k * %" LD " + b * %" LD ";\n", l->x.step, l->x.batch);
    text_printf(&w->t,
                "        const i64 unit = (d * %" LD " + row) * %" LD " + j, line = (d * %" LD " + row) * %" LD
                " + j;\n",
                w->rows, n, w->rows, w->wide);
    text_add(&w->t, "        if (t >= length) {\n");
    print_clear(k, 3);
    text_add(&w->t, "            continue;\n        }\n");
    print_gate_names(w, 2);
    print_load(k, 0, 4, 2);
    text_add(&w->t, "        T c;\n");
    recurrent_print_lstm(w, 2);
    print_kept_gates(k, 0, 4, 2);
    text_add(&w->t, "        c_rows[unit] = c;\n        past_c = c;\n    }\n");
    own_kernel_close(w->to, "retrace", w->s.directions * w->s.batch * n, 0, &w->t);
}

static void open_retrace(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    recurrent_open_body(w);
    recurrent_name_rows(k);
    print_row(k);
    text_printf(&w->t, "    (void)t;\n    const i64 unit = o, line = (d * %" LD " + row) * %" LD " + j;\n", w->rows,
                w->wide);
}

static void print_retrace(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t all = w->s.directions * w->rows * w->s.hidden;
    open_retrace(k);
    text_add(&w->t, "    if (k >= length) {\n");
    print_clear(k, 2);
    if (w->whole)
        text_printf(&w->t, "        ((%s *)(scratch + %zu))[o] = 0;\n", w->narrow ? "u16" : w->type,
                    w->narrow ? k->kept_gated : k->gated);
    text_add(&w->t, "        return;\n    }\n");
    print_gate_names(w, 1);
    if (!is_gru(k)) {
        print_load(k, 0, 1, 1);
        recurrent_print_rnn(w, 1);
        print_kept_gates(k, 0, 1, 1);
    } else {
        print_load(k, 0, w->whole ? 2 : 3, 1);
        recurrent_print_gru_gates(w, 1);
        if (!w->whole) {
            recurrent_print_gru_fresh(w, 1);
            text_add(&w->t, "    linear_rows[unit] = hr[2];\n");
        }
        print_kept_gates(k, 0, w->whole ? 2 : 3, 1);
    }
    if (w->whole && w->narrow)
        text_printf(&w->t, "    ((u16 *)(scratch + %zu))[o] = %s_from_f32(acts[1] * h_rows[o]);\n", k->kept_gated,
                    dtype_name(w->own));
    else if (w->whole)
        text_add(&w->t, "    gated_rows[o] = acts[1] * h_rows[o];\n");
    own_kernel_close(w->to, "retrace", all, 0, &w->t);
    if (!w->whole)
        return;
    own_product(
        w->to, "gated",
        &(OwnProduct){ .a = factor(k, k->kept_gated, scratch(k, k->gated, w->rows, w->s.hidden)),
                       .b = { OWN_SCRATCH, 0, k->recall, product_type(k), w->s.directions, w->s.hidden, w->s.hidden },
                       .d = scratch(k, k->linear, w->rows, w->s.hidden),
                       .tb = true });
    open_retrace(k);
    text_printf(&w->t,
                "    if (k >= length)\n        return;\n    const T *const product = (const T *)(scratch + %zu);\n",
                k->linear);
    print_gate_names(w, 1);
    text_printf(&w->t,
                "    xw[2] = dx_rows[line + %" LD "];\n    hr[2] = product[o];\n    acts[1] = dx_rows[line + %" LD
                "];\n",
                2 * w->s.hidden, w->s.hidden);
    recurrent_print_gru_fresh(w, 1);
    print_kept_gates(k, 2, 3, 1);
    own_kernel_close(w->to, "fresh", all, 0, &w->t);
}

/* What the forward call kept is where the walk looks for it. */
static void print_kept(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden;
    open_retrace(k);
    text_add(&w->t, "    if (k >= length) {\n");
    print_clear(k, 2);
    text_add(&w->t, "        return;\n    }\n");
    for (int g = 0; g < w->cell->gates; g++)
        text_printf(&w->t, "    dx_rows[line + %" LD "] = IN%d(line + %" LD ");\n", g * n, k->y + 1, g * n);
    text_printf(&w->t, "    %s_rows[unit] = IN%d(unit);\n", is_lstm(k) ? "c" : "linear", k->y + 2);
    own_kernel_close(w->to, "kept", w->s.directions * w->rows * n, 0, &w->t);
}

/* ---- what every step used ---- */

/* The gradients of peepholes: steps from the last one on, in each the sequences in their order. */
static void print_peep(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden;
    const int to = RECURRENT_OF_STATES + w->cell->states;
    if (w->cell->peephole < 0)
        return;
    recurrent_open_body(w);
    if (!recurrent_has(w, w->cell->peephole)) {
        text_printf(&w->t, "    OUT%d(o, 0);\n", to);
        own_kernel_close(w->to, "peep", w->s.directions * 3 * n, 0, &w->t);
        return;
    }
    recurrent_name_rows(k);
    text_printf(&w->t, "    const i64 j = o %% %" LD ", d = o / %" LD ";\n    T i = 0, u = 0, f = 0;\n", n, n);
    text_printf(&w->t, "    for (i64 t = %" LD "; t >= 0; t--)\n        for (i64 b = 0; b < %" LD "; b++) {\n",
                w->s.steps - 1, w->s.batch);
    recurrent_print_length(w, 3);
    recurrent_print_place(k);
    recurrent_print_past_cell(k);
    text_printf(&w->t,
                "            i += dx_rows[line] * past;\n            u += dx_rows[line + %" LD
                "] * c_rows[unit];\n            f += dx_rows[line + %" LD "] * past;\n        }\n",
                n, 2 * n);
    static const char *const sums[] = { "i", "u", "f" };
    for (int g = 0; g < 3; g++)
        text_printf(&w->t, "    OUT%d(d * %" LD " + %" LD " + j, %s);\n", to, 3 * n, g * n, sums[g]);
    own_kernel_close(w->to, "peep", w->s.directions * n, 0, &w->t);
}

/* Columns of what reaches gates: 32 of them by eight rows in a block. */
static void print_bias(RecurrentBack *k, const char *part, size_t from, int64_t shift, bool twice)
{
    RecurrentWriter *w = k->w;
    const int64_t tiles = (w->wide + 31) / 32;
    const char *t = w->type;
    recurrent_open_body(w);
    text_printf(&w->t, "    const u32 lane = thread %% 32, sum = thread / 32;\n    __shared__ T sums[32][8];\n");
    text_printf(&w->t, "    const i64 d = block / %" LD ", column = block %% %" LD " * 32 + lane;\n", tiles, tiles);
    text_printf(&w->t, "    const T *const rows = (const T *)(scratch + %zu) + d * %" LD " + column;\n", from,
                w->rows * w->wide);
    text_printf(&w->t, "    sum_counter_%s all;\n    all.count = 0;\n", t);
    text_printf(&w->t, "    for (i64 base = 0; base < %" LD "; base += 64) {\n        T a = sum_none_%s();\n", w->rows,
                t);
    text_printf(&w->t, "        for (i64 r = base + sum; column < %" LD " && r < base + 64 && r < %" LD "; r += 8)\n",
                w->wide, w->rows);
    text_printf(&w->t, "            a = sum_add_%s(a, rows[r * %" LD "]);\n", t, w->wide);
    text_printf(&w->t,
                "        sums[lane][sum] = a;\n        __syncthreads();\n        if (sum == 0)\n"
                "            sum_push_%s(&all, sum_eight_%s(sums[lane]));\n        __syncthreads();\n    }\n",
                t, t);
    text_printf(&w->t, "    if (sum || column >= %" LD ")\n        return;\n    const T total = sum_total_%s(&all);\n",
                w->wide, t);
    text_printf(&w->t, "    OUT%d(d * %" LD " + %" LD " + column, total);\n", OF_BIAS, 2 * w->wide, shift);
    if (twice)
        text_printf(&w->t, "    OUT%d(d * %" LD " + %" LD " + column, total);\n", OF_BIAS, 2 * w->wide, w->wide);
    own_kernel_close(w->to, part, w->s.directions * tiles, SUM_THREADS, &w->t);
}

/* What reaches X, of two directions their sum. */
static void print_data(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->rows * w->s.input, d = w->s.directions;
    const size_t parts = d > 1 ? recurrent_take(w, d * n) : 0;
    own_product(
        w->to, "data",
        &(OwnProduct){ .a = factor(k, k->kept_dx, scratch(k, k->dx, w->rows, w->wide)),
                       .b = operand(k, W, k->kept_w, d, w->wide, w->s.input),
                       .d = d > 1 ? scratch(k, parts, w->rows, w->s.input) : result(k, OF_X, 1, w->rows, w->s.input) });
    if (d == 1)
        return;
    recurrent_open_body(w);
    recurrent_name(w, "parts", parts);
    text_printf(&w->t, "    OUT%d(o, parts[o] + parts[%" LD " + o]);\n", OF_X, n);
    own_kernel_close(w->to, "add", n, 0, &w->t);
}

static void print_recall(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden, d = w->s.directions;
    const OwnMatrices h = factor(k, k->kept_h, scratch(k, k->h, w->rows, n));
    if (!w->whole) {
        const size_t dr = recurrent_is_apart(k) ? k->dr : k->dx, kept = recurrent_is_apart(k) ? k->kept_dr : k->kept_dx;
        own_product(w->to, "recall",
                    &(OwnProduct){ .a = factor(k, kept, scratch(k, dr, w->rows, w->wide)),
                                   .b = h,
                                   .d = result(k, OF_R, d, w->wide, n),
                                   .ta = true });
        return;
    }
    const size_t two = recurrent_take(w, d * 2 * n * n), one = recurrent_take(w, d * n * n);
    const size_t kept_third = take_kept(k, d * w->rows * n);
    if (w->narrow) {
        print_keep(k, "keep_third", kept_third, d * w->rows * n, in_scratch(k, k->third));
        print_keep(k, "keep_gated", k->kept_gated, d * w->rows * n, in_scratch(k, k->gated));
    }
    own_product(w->to, "recall",
                &(OwnProduct){ .a = factor(k, k->kept_dr, scratch(k, k->dr, w->rows, 2 * n)),
                               .b = h,
                               .d = scratch(k, two, 2 * n, n),
                               .ta = true });
    own_product(w->to, "recall_gated",
                &(OwnProduct){ .a = factor(k, kept_third, scratch(k, k->third, w->rows, n)),
                               .b = factor(k, k->kept_gated, scratch(k, k->gated, w->rows, n)),
                               .d = scratch(k, one, n, n),
                               .ta = true });
    recurrent_open_body(w);
    recurrent_name(w, "two", two);
    recurrent_name(w, "one", one);
    text_printf(&w->t, "    const i64 d = o / %" LD ", i = o %% %" LD ";\n", 3 * n * n, 3 * n * n);
    text_printf(&w->t, "    OUT%d(o, i < %" LD " ? two[d * %" LD " + i] : one[d * %" LD " + i - %" LD "]);\n", OF_R,
                2 * n * n, 2 * n * n, n * n, 2 * n * n);
    own_kernel_close(w->to, "recall_both", d * 3 * n * n, 0, &w->t);
}

static void take_all(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden, d = w->s.directions, units = d * w->rows * n, lines = d * w->rows * w->wide;
    k->dx = recurrent_take(w, lines);
    k->z = k->kept ? 0 : recurrent_take(w, lines);
    k->h = recurrent_take(w, units);
    k->c = is_lstm(k) ? recurrent_take(w, units) : 0;
    k->linear = is_gru(k) ? recurrent_take(w, units) : 0;
    k->dr = is_gru(k) ? recurrent_take(w, w->whole ? 2 * units : lines) : 0;
    k->gated = w->whole ? recurrent_take(w, units) : 0;
    k->third = w->whole ? recurrent_take(w, units) : 0;
    k->recall = w->whole ? recurrent_take(w, d * n * n) : 0;
    k->dh = recurrent_take(w, d * w->s.batch * n);
    k->dc = w->cell->states > 1 ? recurrent_take(w, d * w->s.batch * n) : 0;
    k->kept_x = take_kept(k, w->rows * w->s.input);
    k->kept_w = take_kept(k, d * w->wide * w->s.input);
    k->kept_r = take_kept(k, d * w->wide * n);
    k->kept_h = take_kept(k, units);
    k->kept_dx = take_kept(k, lines);
    k->kept_dr = is_gru(k) ? take_kept(k, lines) : 0;
    k->kept_gated = w->whole ? take_kept(k, units) : 0;
    const int64_t room = w->share * k->sent;
    k->shared = room * (int64_t)(w->arithmetic == F64 ? sizeof(f64) : sizeof(f32)) <= RECURRENT_SHARED;
    k->at_sent = k->shared ? 0 : recurrent_take(w, d * w->blocks * room);
}

/* The rows of R of the last gate, which of some gru meet the gated state. */
static void print_third(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden;
    recurrent_open_body(w);
    text_printf(&w->t,
                "    const i64 d = o / %" LD ", i = o %% %" LD ";\n    const T v = IN%d(d * %" LD " + %" LD " + i);\n",
                n * n, n * n, R, 3 * n * n, 2 * n * n);
    if (w->narrow)
        text_printf(&w->t, "    ((u16 *)(scratch + %zu))[o] = %s_from_f32(v);\n", k->recall, dtype_name(w->own));
    else
        text_printf(&w->t, "    ((T *)(scratch + %zu))[o] = v;\n", k->recall);
    own_kernel_close(w->to, "third", w->s.directions * n * n, 0, &w->t);
}

static void print_forth(RecurrentBack *k)
{
    RecurrentWriter *w = k->w;
    const int64_t n = w->s.hidden, d = w->s.directions;
    if (w->narrow) {
        print_keep(k, "keep_x", k->kept_x, w->rows * w->s.input, "IN0(o)");
        print_keep(k, "keep_w", k->kept_w, d * w->wide * w->s.input, "IN1(o)");
        print_keep(k, "keep_r", k->kept_r, d * w->wide * n, "IN2(o)");
    }
    if (k->kept) {
        print_states(k);
        print_kept(k);
        return;
    }
    if (w->whole)
        print_third(k);
    own_product(w->to, "input",
                &(OwnProduct){ .a = operand(k, X, k->kept_x, 1, w->rows, w->s.input),
                               .b = operand(k, W, k->kept_w, d, w->wide, w->s.input),
                               .d = scratch(k, k->dx, w->rows, w->wide),
                               .tb = true });
    print_states(k);
    own_product(w->to, "through",
                &(OwnProduct){ .a = factor(k, k->kept_h, scratch(k, k->h, w->rows, n)),
                               .b = operand(k, R, k->kept_r, d, w->wide, n),
                               .d = scratch(k, k->z, w->rows, w->wide),
                               .tb = true });
    (is_lstm(k) ? print_retrace_lstm : print_retrace)(k);
}

bool kernels_recurrent_grad(const Node *n, OwnKernels *to, const Cell *cell)
{
    const RecurrentAttr *at = n->attr;
    DType own = in(n, X)->type->dtype;
    RecurrentWriter w;
    RecurrentBack k = { .w = &w, .dy = recurrent_operands(cell), .y = recurrent_operands(cell) + 1 + cell->states };
    (void)attr_dtype(at->product_type, &own);
    if (!recurrent_open_kernels(&w, n, to, cell, own))
        return false;
    k.through = w.whole ? 2 * w.s.hidden : w.wide;
    k.sent = w.wide;
    k.kept = recurrent_has(&w, k.y + 1);
    take_all(&k);
    print_forth(&k);
    recurrent_print_walk_back(&k);
    print_peep(&k);
    print_bias(&k, "bias", k.dx, 0, !recurrent_is_apart(&k));
    if (recurrent_is_apart(&k))
        print_bias(&k, "bias_r", k.dr, w.wide, false);
    const int64_t lines = w.s.directions * w.rows * w.wide;
    if (w.narrow)
        print_keep(&k, "keep_dx", k.kept_dx, lines, in_scratch(&k, k.dx));
    if (w.narrow && is_gru(&k))
        print_keep(&k, "keep_dr", k.kept_dr, w.whole ? lines / 3 * 2 : lines, in_scratch(&k, k.dr));
    print_data(&k);
    own_product(to, "weights",
                &(OwnProduct){ .a = factor(&k, k.kept_dx, scratch(&k, k.dx, w.rows, w.wide)),
                               .b = operand(&k, X, k.kept_x, 1, w.rows, w.s.input),
                               .d = result(&k, OF_W, w.s.directions, w.wide, w.s.input),
                               .ta = true });
    print_recall(&k);
    return true;
}
