/* quantize_both: a matrix as codes by its rows and as codes by its columns, of one read.
 *
 * A product that sums along the columns wants a scale a row, one that sums along the rows a scale a column: what goes
 * forward through a layer is read by both.  Of more than two dimensions the first is the row, the second the column, and
 * those behind belong to neither.  Codes are those of quantize_linear with the scale max(largest, 1e-12) / most. */
#include <string.h>

#include "ops/card/own_kernel.h"
#include "ops/card/shapes.h"
#include "ops/quant/quantize.h"

enum { X, DRAW };
enum { ROW_CODES, ROW_SCALE, COLUMN_CODES, COLUMN_SCALE, RESULTS };
enum { BLOCK = 512 };

static const f32 least_size = 1e-12f;

static const AttrSpec quantize_both_attrs[] = {
    ATTR(QuantizeBothAttr, least, INT, -127),
    ATTR(QuantizeBothAttr, largest, INT, 127),
    { .name = "rounding",
      .kind = ATTR_ENUM,
      .offset = offsetof(QuantizeBothAttr, rounding),
      .choices = quant_roundings },
    ATTR_LAST,
};

static bool check_draw(Infer *q, const Type *x, int rounding)
{
    const Type *draw = infer_has(q, DRAW) ? infer_tensor(q, DRAW) : NULL;
    if (infer_has(q, DRAW) && !draw)
        return false;
    if (rounding != ROUND_RNE && rounding != ROUND_SR)
        infer_fail(q, "rounds by rne or sr");
    else if ((rounding == ROUND_SR) != (draw != NULL))
        infer_fail(q, "%s", draw ? "draws for rounding=sr alone" : "rounding=sr wants a draw for each element");
    else if (draw && (draw->dtype != F32 || !type_agrees(type_with_dtype(q->types, draw, x->dtype), x)))
        infer_fail(q, "wants draws of f32 like %s, got %s", type_text(q->scratch, x), type_text(q->scratch, draw));
    else
        return true;
    return false;
}

/* One scale for each index of an axis. */
static const Type *scales_along(Infer *q, const Type *x, int axis)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dims[i] = i == axis ? x->dims[i] : 1;
    return type_tensor(q->types, F32, x->rank, dims);
}

static const Type *infer_quantize_both(Infer *q)
{
    const QuantizeBothAttr *at = q->attr;
    const Type *x = infer_tensor(q, X);
    if (!x || !check_draw(q, x, at->rounding))
        return NULL;
    if (x->dtype != F32 && x->dtype != F16 && x->dtype != BF16)
        return infer_fail(q, "operand 0 cannot be %s", dtype_name(x->dtype));
    if (at->largest < 1 || !infer_code_limits(q, I8, at->least, at->largest))
        return at->largest < 1 ? infer_fail(q, "largest=%" PRId64 ": wants a code above 0", at->largest) : NULL;
    const Type *codes = type_with_dtype(q->types, x, I8), *none = type_unranked(q->types, F32);
    if (x->rank < 0)
        return infer_results(q, RESULTS, (const Type *const[]){ codes, none, codes, none });
    if (x->rank < 2)
        return infer_fail(q, "wants rows and columns, got %s", type_text(q->scratch, x));
    return infer_results(q, RESULTS,
                         (const Type *const[]){ codes, scales_along(q, x, 0), codes, scales_along(q, x, 1) });
}

typedef struct Both {
    const CodeLoops *loops;
    const Kernels *kernels;
    const Tensor *x, *draw;
    int64_t columns, inner; /* elements of a row and a column beyond that */
    f32 lo, hi;
    f32 *rows, *sums;           /* largest of a row, then its scale; largest of columns, for each worker */
    f32 *scales;                /* of columns */
    int8_t *by_row, *by_column; /* codes */
} Both;

/* ---- the largest ---- */

static f32 largest_of(const CodeLoops *loops, int64_t n, const f32 *v)
{
    enum { SIDE = 64 };
    f32 most[SIDE] = { 0 };
    for (int64_t at = 0; at < n; at += SIDE)
        loops->sizes((size_t)(n - at < SIDE ? n - at : SIDE), v + at, most);
    for (int i = 1; i < SIDE; i++)
        most[0] = max_f32(most[0], most[i]);
    return most[0];
}

static void measure_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const Both *c = arg;
    const int64_t row = c->columns * c->inner;
    f32 *most = c->sums + worker * c->columns, v[BLOCK];
    for (int64_t r = begin; r < end; r++) {
        f32 *own = &c->rows[r];
        *own = 0;
        for (int64_t at = 0, n; at < row; at += n) {
            const int64_t rest = (c->inner == 1 ? row : (at / c->inner + 1) * c->inner) - at;
            n = rest < BLOCK ? rest : BLOCK;
            kernels_load_f32(c->kernels, v, c->x, r * row + at, n);
            const f32 size = largest_of(c->loops, n, v);
            *own = max_f32(*own, size);
            if (c->inner == 1)
                c->loops->sizes((size_t)n, v, most + at);
            else
                most[at / c->inner] = max_f32(most[at / c->inner], size);
        }
    }
}

/* ---- codes ---- */

static void quantize_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    const Both *c = arg;
    const int64_t row = c->columns * c->inner;
    const CodeRange range = { 0, c->lo, c->hi };
    const size_t each = c->inner == 1;
    f32 x[BLOCK], draws[BLOCK];
    (void)worker;
    for (int64_t r = begin; r < end; r++)
        for (int64_t at = 0, n; at < row; at += n) {
            const int64_t rest = (c->inner == 1 ? row : (at / c->inner + 1) * c->inner) - at, first = r * row + at;
            const f32 *draw = c->draw ? draws : NULL;
            n = rest < BLOCK ? rest : BLOCK;
            kernels_load_f32(c->kernels, x, c->x, first, n);
            if (draw)
                kernels_load_f32(c->kernels, draws, c->draw, first, n);
            c->loops->quantize((size_t)n, x, c->rows + r, 0, draw, &range, (u8 *)c->by_row + first);
            c->loops->quantize((size_t)n, x, c->scales + at / c->inner, each, draw, &range, (u8 *)c->by_column + first);
        }
}

static f32 scale_of(const Both *c, f32 size)
{
    return max_f32(size, least_size) / c->hi;
}

static Status eval_quantize_both(Eval *e)
{
    const QuantizeBothAttr *at = e->attr;
    const Type *t = e->in[X]->type;
    const int64_t rows = t->dims[0], n = tensor_elements(e->in[X]), threads = parallel_threads(e->pool);
    Both c = { .loops = kernels_codes(e->kernels),
               .kernels = e->kernels,
               .x = e->in[X],
               .draw = eval_has(e, DRAW) ? e->in[DRAW] : NULL,
               .columns = t->dims[1],
               .lo = (f32)at->least,
               .hi = (f32)at->largest };
    c.inner = rows && c.columns ? n / (rows * c.columns) : 0;
    c.rows = eval_out_f32(e, ROW_SCALE);
    c.scales = eval_out_f32(e, COLUMN_SCALE);
    c.by_row = eval_out(e, ROW_CODES)->data;
    c.by_column = eval_out(e, COLUMN_CODES)->data;
    c.sums = eval_scratch(e, (size_t)(threads * c.columns) + 1, sizeof *c.sums);
    memset(c.rows, 0, (size_t)rows * sizeof *c.rows);
    if (n)
        eval_parallel(e, rows, measure_rows, &c);
    for (int64_t r = 0; r < rows; r++)
        c.rows[r] = scale_of(&c, c.rows[r]);
    for (int64_t k = 0; k < c.columns; k++) {
        for (int64_t w = 1; w < threads; w++)
            c.sums[k] = max_f32(c.sums[k], c.sums[w * c.columns + k]);
        c.scales[k] = scale_of(&c, c.sums[k]);
    }
    if (n)
        eval_parallel(e, rows, quantize_rows, &c);
    return OK;
}

/* ---- kernels ---- */

typedef struct Writer {
    OwnKernels *to;
    int64_t rows, columns, inner, n;
    size_t parts; /* in the scratch: the largest of each column and what is beyond it, of each 64 rows */
    Text t;
} Writer;

static const char *least_text(const Writer *w, const QuantizeBothAttr *at)
{
    return arena_printf(w->to->arena, "max_f32(most, %s) / %s", own_f32(w->to, (double)least_size),
                        own_f32(w->to, (double)at->largest));
}

/* A warp for each row. */
static void print_rows(Writer *w, const QuantizeBothAttr *at)
{
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t, "    f32 most = 0;\n    for (i64 i = thread; i < %" PRId64 "; i += 32)\n",
                w->columns * w->inner);
    text_printf(&w->t, "        most = max_f32(most, abs_f32(IN0(block * %" PRId64 " + i)));\n", w->columns * w->inner);
    text_add(&w->t, "    for (int lane = 16; lane > 0; lane >>= 1)\n"
                    "        most = max_f32(most, __shfl_down_sync(0xffffffffu, most, lane));\n");
    text_printf(&w->t, "    if (thread == 0)\n        OUT%d(block, %s);\n", ROW_SCALE, least_text(w, at));
    own_kernel_close(w->to, "rows", w->rows, 32, &w->t);
}

/* A thread for each element of a row and each 64 rows, then one for each column. */
static void print_columns(Writer *w, const QuantizeBothAttr *at)
{
    const int64_t row = w->columns * w->inner, blocks = (w->rows + 63) / 64;
    w->parts = own_scratch(w->to, blocks * row * (int64_t)sizeof(f32));
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t, "    const i64 i = o %% %" PRId64 ", from = o / %" PRId64 " * 64;\n    f32 most = 0;\n", row,
                row);
    text_printf(&w->t, "    for (i64 r = from; r < from + 64 && r < %" PRId64 "; r++)\n", w->rows);
    text_printf(&w->t, "        most = max_f32(most, abs_f32(IN0(r * %" PRId64 " + i)));\n", row);
    text_printf(&w->t, "    ((f32 *)(scratch + %zu))[o] = most;\n", w->parts);
    own_kernel_close(w->to, "parts", blocks * row, 0, &w->t);
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t,
                "    const f32 *const parts = (const f32 *)(scratch + %zu) + o * %" PRId64 ";\n    f32 most = 0;\n",
                w->parts, w->inner);
    text_printf(&w->t, "    for (i64 b = 0; b < %" PRId64 "; b++)\n        for (i64 i = 0; i < %" PRId64 "; i++)\n",
                blocks, w->inner);
    text_printf(&w->t, "            most = max_f32(most, parts[b * %" PRId64 " + i]);\n", row);
    text_printf(&w->t, "    OUT%d(o, %s);\n", COLUMN_SCALE, least_text(w, at));
    own_kernel_close(w->to, "columns", w->columns, 0, &w->t);
}

static void print_codes(Writer *w, const QuantizeBothAttr *at, bool draws)
{
    const int64_t row = w->columns * w->inner;
    const char *const names[] = { "by_row", "by_column" };
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t, "    const f32 by_row = OUTRAW%d[o / %" PRId64 "];\n", ROW_SCALE, row);
    text_printf(&w->t, "    const f32 by_column = OUTRAW%d[o / %" PRId64 " %% %" PRId64 "];\n", COLUMN_SCALE, w->inner,
                w->columns);
    for (int i = 0; i < 2; i++) {
        const char *v = arena_printf(w->to->arena, "IN%d(o) / %s", X, names[i]);
        const char *near = draws ? arena_printf(w->to->arena, "stochastic_f32(%s, IN%d(o))", v, DRAW)
                                 : arena_printf(w->to->arena, "rint_f32(%s)", v);
        text_printf(&w->t, "    OUTRAW%d[o] = (i8)(i32)code_of_f32(%s, 0, %s, %s);\n", i ? COLUMN_CODES : ROW_CODES,
                    near, own_f32(w->to, (double)at->least), own_f32(w->to, (double)at->largest));
    }
    own_kernel_close(w->to, "codes", w->n, 0, &w->t);
}

static bool kernels_quantize_both(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, X)->type;
    Writer w = { .to = to, .rows = x->dims[0], .columns = x->dims[1], .n = type_elements(x) };
    w.inner = w.n / (w.rows * w.columns);
    print_rows(&w, n->attr);
    print_columns(&w, n->attr);
    print_codes(&w, n->attr, n->n_in > DRAW && in(n, DRAW));
    return true;
}

static Node *sample_quantize_both(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F16, BF16 };
    int64_t dims[MAX_RANK];
    const int rank = 2 + variant % 3;
    const bool chance = variant & 1;
    QuantizeBothAttr at = { .least = -127, .largest = 127, .rounding = chance ? ROUND_SR : ROUND_RNE };
    if (variant % 5 == 4)
        at.least = -8, at.largest = 7;
    sample_dims(rng, rank, 5, dims);
    Node *ins[] = { sample_tensor(b, rng, types[variant / 2 % 3], rank, dims, -3, 3), NULL };
    if (chance)
        ins[DRAW] = sample_tensor(b, rng, F32, rank, dims, 0, 0.999);
    return build_node_n(b, OP_quantize_both, &at, chance ? 2 : 1, ins, RESULTS);
}

const OpDef op_quantize_both = {
    .name = "quantize_both",
    .min_in = 1,
    .max_in = 2,
    .min_out = RESULTS,
    .max_out = RESULTS,
    .attrs = quantize_both_attrs,
    .infer = infer_quantize_both,
    .eval = eval_quantize_both,
    .sample = sample_quantize_both,
    .n_variants = 30,
    .weight = 4,
    .access.kind = ACCESS_FOLD,
    .access.kernels = kernels_quantize_both,
    .amp = { AMP_FO, AMP_FO, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .brief =
        "Codes of a matrix with a scale for each row, and codes with a scale for each column, of one read: codes and "
        "scales of rows, then of columns.",
};
