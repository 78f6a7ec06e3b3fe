/* The discrete Fourier transform of rows, and the attributes of the ops that take it. */
#ifndef OPS_SIGNAL_SPECTRUM_H
#define OPS_SIGNAL_SPECTRUM_H

#include "ops/card/cards.h"

typedef struct DftAttr {
    bool inverse, onesided;
} DftAttr;

typedef struct StftAttr {
    bool onesided;
} StftAttr;

/* One transform: `n` complex numbers (re, im alternating) to `bins` of them, or to their real parts alone. */
typedef struct Spectrum {
    int64_t n, bins;
    bool inverse, real;
    void *c, *s; /* cos and sin of 2 pi j / n: f64, or pairs of f32 */
} Spectrum;

/* Prepares transforms; the tables are in the call's scratch. */
Spectrum spectrum_open(Eval *e, int64_t n, int64_t bins, bool inverse, bool real);

/* Transforms one row: sums in ascending order, the angle of (k, i) being k i mod n; results are
 * `step` elements apart (a complex number is two neighbours). */
void spectrum_row_f32(const Spectrum *t, const f32 *x, f32 *y, int64_t step);
void spectrum_row_f64(const Spectrum *t, const f64 *x, f64 *y, int64_t step);

/* Elements of a transform over `extent` elements when none are said; a one-sided spectrum has half of them. */
int64_t dft_length(const DftAttr *at, int64_t extent);

/* The adjoints in the signal, and in the window of stft. */
void adjoint_dft(Build *b, const Site *s, Node **dx);
void adjoint_stft(Build *b, const Site *s, Node **dx);

/* The number in operand i when it is a constant; false when it is not, or not there. */
bool infer_number(const Infer *q, int i, int64_t *v);

/* Whether operand i, when there, is one integer; complains otherwise. */
bool infer_integer(Infer *q, int i);

#endif
