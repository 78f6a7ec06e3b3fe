/* What quantizers make of the numbers that they get: how far codes are from them, what is clipped, which codes occur. */
#ifndef API_SESSION_FIGURES_H
#define API_SESSION_FIGURES_H

#include "api/make/step.h"
#include "ops/quant/quantize.h"
#include "runtime/data/feed.h"

enum { FIGURE_BINS = 64, FIGURE_CODE_BYTES = (1 << 16) / 8 };

/* How numbers are spread: `width` wide bins from `from` on; what lies outside counts for the first or the last. */
typedef struct FigureBins {
    double from, width; /* width 0: nothing was counted */
    bool absolute;      /* of absolute values */
    int64_t bin[FIGURE_BINS];
} FigureBins;

typedef struct QuantFigure QuantFigure;

/* One quantizer. */
struct QuantFigure {
    const char *value;     /* the name of what is quantized */
    bool weight;           /* it depends on no data */
    double least, largest; /* codes */
    bool clipped_below;    /* by a Relu: nothing below 0 leaves */
    double most;           /* nor above, by a Clip; infinite: anything may */

    /* ---- what was seen ---- */
    bool has_scale;
    double scale_least, scale_most; /* over channels, groups, rows */
    int64_t n_scales;
    double zero;          /* the first code of 0 */
    const Tensor *scales; /* the last ones, in the arena of the figures */
    int64_t n;            /* numbers; 0: none were seen */
    double signal, noise; /* sums of x^2 and of (x - what its code stands for)^2 */
    int64_t clipped;      /* beyond the ends of the codes by more than half a step */
    int64_t used;         /* codes that occurred */
    uint8_t *occurs;      /* a bit for each code of 16 bits */
    FigureBins bins;

    /* ---- where it is found ---- */
    const Node *call;        /* that gives the codes, alone or before their quotients; null: the scale alone is known */
    const Node *x;           /* the numbers; null: the call tells quotients */
    const Node *scale, *nil; /* nil: the code of 0; null: it is 0 */
    int64_t same;            /* another one of that scale; below 0: none */
};

typedef struct Figures Figures;

/* All quantizers of a step's @eval, in the order in which they run. */
struct Figures {
    Arena *arena;
    Graph *graph; /* what they need of it */
    QuantFigure *list;
    size_t n, cap;
    int64_t samples;      /* that were looked at */
    const char *observed; /* whose ranges were taken first, in words; null: ranges were known */
    const char *why;      /* nothing was looked at; null: it was */
};

/* Finds the quantizers of a step; all of it lives in `arena`.  Of @eval nothing runs but what they need. */
Status figures_open(Figures *f, const qcc_step *s, Arena *arena);

/* Leaves what needs no data: weights, and scales that are remembered.  `values` are those of the graph's inputs, null
 * where there is none yet; a bias that would raise the scale of a weight is left out where the scale of the data is not
 * known. */
Status figures_without_data(Figures *f, const Tensor *const *values);

/* The values of the graph's inputs: states of a session, of a batch those of the inputs that `names` names.  Null in
 * place of what there is not. */
const Tensor **figures_values(const Figures *f, Session *run, size_t n, const char *const *names,
                              const Tensor *const *data, Arena *arena);

/* The same of states before a session: as the model has them; `heap` holds them.  First values of learned scales of
 * weights are computed. */
Status figures_first_values(const Figures *f, const qcc_step *s, Heap *heap, Arena *arena, const Tensor ***values);

/* Looks at a batch, the first `valid` of `rows` samples of which count. */
Status figures_look(Figures *f, const EvalOptions *how, Memory *memory, const Tensor *const *values, int64_t rows,
                    int64_t valid);

/* What a quantizer made of a tensor. */
typedef struct FigureBatch {
    const Tensor *x, *quotients;          /* the numbers, or (null: the other) those over the scale */
    const Tensor *codes, *scales, *zeros; /* zeros: null: 0 */
    ScaleLayout layout;
    int64_t n; /* the first so many count */
} FigureBatch;

/* How data are spread as observers of kind pct remember it, for those of which nothing was seen. */
void figures_remembered(Figures *f, Session *run, Arena *arena);

/* Counts scales alone. */
void figure_scales(QuantFigure *q, const Tensor *scales);

/* Counts them. */
void figure_add(QuantFigure *q, const FigureBatch *b);

/* 10 log10(sum x^2 / sum (x - xh)^2) in dB: infinite where nothing is lost, NaN where nothing was seen. */
double figure_sqnr(const QuantFigure *q);

/* The share of numbers that were clipped, and of codes that occurred; NaN where nothing was seen. */
double figure_clipped(const QuantFigure *q);
double figure_used(const QuantFigure *q);

/* Bits that tell its codes apart. */
int figure_bits(const QuantFigure *q);

/* The one that loses most; null: nothing was seen of any, or nothing is lost. */
const QuantFigure *figures_lowest(const Figures *f);

/* The figure of a value by name; null: there is none. */
QuantFigure *figures_find(const Figures *f, const char *value);

/* Forgets what was seen, but the last scales. */
void figures_reset(Figures *f);

#endif
