/* Figures of a quantizer from its numbers and its codes. */
#include "api/session/figures.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 512, ALL_CODES = 1 << 16, FIRST_CODE = -(1 << 15) };

/* ---- scales ---- */

void figure_scales(QuantFigure *q, const Tensor *scales)
{
    const int64_t n = tensor_elements(scales);
    for (int64_t i = 0; i < n; i++) {
        const double s = tensor_get_f64(scales, i);
        q->scale_least = q->has_scale ? fmin(q->scale_least, s) : s;
        q->scale_most = q->has_scale ? fmax(q->scale_most, s) : s;
        q->has_scale = true;
    }
    q->n_scales = n;
}

/* ---- numbers ---- */

/* Some numbers of a tensor, with the scale and the code of 0 of each. */
typedef struct Numbers {
    int64_t first, n;
    double x[BLOCK], scale[BLOCK], zero[BLOCK];
} Numbers;

/* What is quantized: behind the Relu or Clip that the ends of the codes are. */
static double bounded(const QuantFigure *q, double x)
{
    const double from = q->clipped_below && x < 0 ? 0 : x;
    return from > q->most ? q->most : from;
}

/* The next ones; false: there are no more. */
static bool next_numbers(Numbers *m, const QuantFigure *q, const FigureBatch *b)
{
    int64_t at[BLOCK] = { 0 };
    const bool many = tensor_elements(b->scales) > 1;
    m->first += m->n;
    m->n = b->n - m->first < BLOCK ? b->n - m->first : BLOCK;
    if (many)
        scale_layout_indices(&b->layout, m->first, m->n, at);
    const bool zeros = many && b->zeros && tensor_elements(b->zeros) > 1;
    for (int64_t i = 0; i < m->n; i++) {
        m->scale[i] = i && !many ? m->scale[0] : tensor_get_f64(b->scales, at[i]);
        m->zero[i] = zeros ? (double)tensor_get_i64(b->zeros, at[i]) : q->zero;
        m->x[i] = bounded(q, b->x ? tensor_get_f64(b->x, m->first + i)
                                  : tensor_get_f64(b->quotients, m->first + i) * m->scale[i]);
    }
    return m->n > 0;
}

/* ---- how they are spread ---- */

/* Bins for the numbers of the first batch and the ends of the codes. */
static void open_bins(QuantFigure *q, const FigureBatch *b)
{
    Numbers m = { 0 };
    double lo = (fmin(q->least - q->zero, 0)) * q->scale_most, hi = (q->largest - q->zero) * q->scale_most;
    if (q->clipped_below)
        lo = 0;
    while (next_numbers(&m, q, b))
        for (int64_t i = 0; i < m.n; i++)
            if (isfinite(m.x[i])) {
                lo = fmin(lo, m.x[i]);
                hi = fmax(hi, m.x[i]);
            }
    q->bins = (FigureBins){ .from = lo, .width = isfinite(hi - lo) ? (hi - lo) / FIGURE_BINS : 0 };
}

static void add_bin(FigureBins *b, double x)
{
    if (!isfinite(x) || !(b->width > 0))
        return;
    const double at = floor((x - b->from) / b->width);
    b->bin[at < 0 ? 0 : at >= FIGURE_BINS ? FIGURE_BINS - 1 : (int)at]++;
}

/* ---- counting ---- */

static void add_code(QuantFigure *q, double code)
{
    const int64_t at = (int64_t)code - FIRST_CODE;
    if (at < 0 || at >= ALL_CODES || !q->occurs)
        return;
    q->used += !(q->occurs[at / 8] >> at % 8 & 1);
    q->occurs[at / 8] |= (uint8_t)(1u << at % 8);
}

void figure_add(QuantFigure *q, const FigureBatch *b)
{
    Numbers m = { 0 };
    q->zero = b->zeros ? (double)tensor_get_i64(b->zeros, 0) : 0;
    figure_scales(q, b->scales);
    if (!q->n)
        open_bins(q, b);
    while (next_numbers(&m, q, b))
        for (int64_t i = 0; i < m.n; i++) {
            const double x = m.x[i], code = (double)tensor_get_i64(b->codes, m.first + i);
            const double v = x / m.scale[i] + m.zero[i], error = x - (code - m.zero[i]) * m.scale[i];
            q->signal += x * x;
            q->noise += error * error;
            q->clipped += v < q->least - 0.5 || v > q->largest + 0.5;
            add_bin(&q->bins, x);
            add_code(q, code);
        }
    q->n += b->n;
}

/* ---- what comes of them ---- */

double figure_sqnr(const QuantFigure *q)
{
    if (!q->n)
        return NAN;
    return q->noise > 0 ? 10 * log10(q->signal / q->noise) : q->noise == 0 ? (double)INFINITY : (double)NAN;
}

double figure_clipped(const QuantFigure *q)
{
    return q->n ? (double)q->clipped / (double)q->n : (double)NAN;
}

double figure_used(const QuantFigure *q)
{
    return q->n ? (double)q->used / (q->largest - q->least + 1) : (double)NAN;
}

int figure_bits(const QuantFigure *q)
{
    return (int)ceil(log2(q->largest - q->least + 1));
}

const QuantFigure *figures_lowest(const Figures *f)
{
    const QuantFigure *lowest = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const double x = figure_sqnr(&f->list[i]);
        if (isfinite(x) && (!lowest || x < figure_sqnr(lowest)))
            lowest = &f->list[i];
    }
    return lowest;
}

QuantFigure *figures_find(const Figures *f, const char *value)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->list[i].value, value) == 0)
            return &f->list[i];
    return NULL;
}

void figures_reset(Figures *f)
{
    f->samples = 0;
    for (size_t i = 0; i < f->n; i++) {
        QuantFigure *q = &f->list[i];
        q->has_scale = false;
        q->n = q->clipped = q->used = 0;
        q->signal = q->noise = 0;
        memset(q->occurs, 0, FIGURE_CODE_BYTES);
    }
}
