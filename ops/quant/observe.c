/* observe: the range of what passes by, in a state of the graph (ops/quant/observe.h); observed_range: what the state tells;
 * merge_ranges: two states as one.
 *
 * Numbers are counted and compared, and nothing is added up, so a state does not depend on who looks at which of them. */
#include "ops/card/own_kernel.h"
#include "ops/quant/observe.h"

#include <string.h>

#include "ops/card/signature.h"
#include "ops/quant/histogram.h"
#include "ops/quant/quantize.h"

enum { CHUNK = 1 << 15, LANES = 16, SAMPLE_BITS = 24 };

static const char *const kinds[] = { "minmax", "ema", "pct", "mse", "kl", "sigma", NULL };

static const AttrSpec observe_attrs[] = {
    ATTR_CHOICE(ObserveAttr, kind, kinds, OBSERVE_MINMAX),
    ATTR(ObserveAttr, rate, FLOAT, 0.01f),
    ATTR(ObserveAttr, percentile, FLOAT, 99.99f),
    ATTR(ObserveAttr, sigma, FLOAT, 3),
    ATTR(ObserveAttr, least, INT, 0),
    ATTR(ObserveAttr, largest, INT, 0),
    ATTR(ObserveAttr, symmetric, BOOL, false),
    ATTR(ObserveAttr, pow2, BOOL, false),
    ATTR(ObserveAttr, to, DTYPE, 0),
    ATTR_LAST,
};

/* ---- what the batch holds ---- */

/* The least and the largest number, and 0; the largest absolute value, as its bits: above those of infinity it is a NaN. */
typedef struct Extremes {
    f32 least, most;
    i32 size;
} Extremes;

static Extremes extremes_of(const f32 *x, int64_t n)
{
    f32 least[LANES] = { 0 }, most[LANES] = { 0 };
    i32 size[LANES] = { 0 };
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const f32 v = x[i + k];
            const i32 s = (i32)(bits_of(v) & 0x7fffffffu);
            least[k] = v < least[k] ? v : least[k];
            most[k] = v > most[k] ? v : most[k];
            size[k] = s > size[k] ? s : size[k];
        }
    for (int k = 0; i < n; i++, k++) {
        const i32 s = (i32)(bits_of(x[i]) & 0x7fffffffu);
        least[k] = x[i] < least[k] ? x[i] : least[k];
        most[k] = x[i] > most[k] ? x[i] : most[k];
        size[k] = s > size[k] ? s : size[k];
    }
    Extremes e = { 0, 0, 0 };
    for (int k = 0; k < LANES; k++) {
        e.least = least[k] < e.least ? least[k] : e.least;
        e.most = most[k] > e.most ? most[k] : e.most;
        e.size = size[k] > e.size ? size[k] : e.size;
    }
    return e;
}

/* A batch that is looked at, in chunks. */
typedef struct Look {
    const f32 *x;
    int64_t n;
    Extremes *parts; /* of chunks */
    f32 per_width;   /* 1 / width */
    u64 *counts;     /* bins of each worker */
} Look;

static int64_t chunk_size(const Look *l, int64_t chunk)
{
    const int64_t left = l->n - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static void find_extremes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Look *l = arg;
    (void)worker;
    for (int64_t c = begin; c < end; c++)
        l->parts[c] = extremes_of(l->x + c * CHUNK, chunk_size(l, c));
}

static void count_sizes(void *arg, int64_t begin, int64_t end, int worker)
{
    const Look *l = arg;
    u64 *counts = l->counts + (int64_t)worker * OBSERVE_BINS;
    for (int64_t c = begin; c < end; c++) {
        const f32 *x = l->x + c * CHUNK;
        const int64_t n = chunk_size(l, c);
        for (int64_t i = 0; i < n; i++)
            counts[(u32)(abs_f32(x[i]) * l->per_width)]++;
    }
}

/* ---- observe ---- */

static bool check_kind(Infer *q, const ObserveAttr *at)
{
    if (!(at->rate > 0 && at->rate <= 1))
        infer_fail(q, "rate must be above 0 and at most 1, got %g", (double)at->rate);
    else if (!(at->percentile > 0 && at->percentile <= 100))
        infer_fail(q, "percentile must be above 0 and at most 100, got %g", (double)at->percentile);
    else if (!(at->sigma >= 0 && at->sigma < Q_INF))
        infer_fail(q, "sigma must be a number from 0 on, got %g", (double)at->sigma);
    else if (dtype_is_float(observed_codes(at)) && (!dtype_is_code(observed_codes(at)) || !at->symmetric))
        infer_fail(q, "looks for no range of codes of %s", dtype_name(observed_codes(at)));
    else
        return infer_code_limits(q, observed_codes(at), at->least, at->largest);
    return false;
}

/* Operand i must be a state of that kind. */
static const Type *infer_state(Infer *q, int i, const ObserveAttr *at)
{
    const Type *t = infer_tensor(q, i);
    if (t && (t->dtype != F32 || !infer_vector(q, i, observed_size(at->kind))))
        return infer_fail(q, "operand %d must be a state f32[%" PRId64 "] of kind %s, got %s", i,
                          observed_size(at->kind), kinds[at->kind], type_text(q->scratch, t));
    return t ? type_vector(q->types, F32, observed_size(at->kind)) : NULL;
}

DType observed_codes(const ObserveAttr *at)
{
    DType code = U8;
    attr_dtype(at->to, &code);
    return code;
}

static const Type *infer_observe(Infer *q)
{
    const ObserveAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    if (!x || !check_kind(q, at))
        return NULL;
    if (x->dtype != F32 && x->dtype != F16 && x->dtype != BF16)
        return infer_fail(q, "observes f32, f16 and bf16, got %s", dtype_name(x->dtype));
    return infer_state(q, 1, at);
}

static void count_batch(Eval *e, Look *l, f32 *state, f32 size)
{
    const int workers = parallel_threads(e->pool);
    const f32 width = histogram_width(size);
    if (width > state[OBSERVED_WIDTH])
        histogram_widen(state, width);
    l->per_width = state[OBSERVED_WIDTH] > 0 ? 1 / state[OBSERVED_WIDTH] : 0;
    l->counts = eval_scratch(e, (size_t)workers * OBSERVE_BINS, sizeof *l->counts);
    eval_parallel(e, (l->n + CHUNK - 1) / CHUNK, count_sizes, l);
    for (int bin = 0; bin < OBSERVE_BINS; bin++) {
        u64 more = 0;
        for (int w = 0; w < workers; w++)
            more += l->counts[w * OBSERVE_BINS + bin];
        histogram_set(state, bin, histogram_count(state, bin) + more);
    }
}

static void tell_range(Eval *e, f32 *state)
{
    u64 *counts = eval_scratch(e, OBSERVE_BINS, sizeof *counts);
    histogram_take_range(state, e->attr, counts, eval_scratch(e, 2 * (size_t)OBSERVE_BINS, sizeof(f64)));
}

/* The state behind a batch whose numbers are finite. */
static void take_batch(Eval *e, Look *l, const Extremes *batch, f32 *state)
{
    const ObserveAttr *at = e->attr;
    const bool first = state[OBSERVED_SEEN] == 0;
    f32 *lo = state + (observe_counts(at->kind) ? OBSERVED_LEAST : OBSERVED_LO), *hi = lo + 1;
    if (at->kind == OBSERVE_EMA) {
        *lo = first ? batch->least : *lo + at->rate * (batch->least - *lo);
        *hi = first ? batch->most : *hi + at->rate * (batch->most - *hi);
    } else {
        *lo = batch->least < *lo ? batch->least : *lo;
        *hi = batch->most > *hi ? batch->most : *hi;
    }
    state[OBSERVED_SEEN] += 1;
    if (observe_counts(at->kind)) {
        count_batch(e, l, state, float_of((u32)batch->size));
        tell_range(e, state);
    }
}

static Status eval_observe(Eval *e)
{
    const size_t size = (size_t)eval_elements(e, 1);
    Look l = { .x = eval_f32(e, 0), .n = eval_elements(e, 0) };
    const int64_t chunks = (l.n + CHUNK - 1) / CHUNK;
    f32 *state = eval_scratch(e, size, sizeof *state);
    memcpy(state, eval_f32(e, 1), size * sizeof *state);
    l.parts = eval_scratch(e, (size_t)chunks + 1, sizeof *l.parts);
    eval_parallel(e, chunks, find_extremes, &l);
    Extremes batch = { 0, 0, 0 };
    for (int64_t c = 0; c < chunks; c++) {
        batch.least = min_f32(batch.least, l.parts[c].least);
        batch.most = max_f32(batch.most, l.parts[c].most);
        batch.size = l.parts[c].size > batch.size ? l.parts[c].size : batch.size;
    }
    if (batch.size >= 0x7f800000)
        state[OBSERVED_BAD] += 1;
    else if (l.n)
        take_batch(e, &l, &batch, state);
    memcpy(eval_out_f32(e, 0), state, size * sizeof *state);
    return OK;
}

/* ---- merge_ranges ---- */

static const Type *infer_merge_ranges(Infer *q)
{
    const ObserveAttr *at = q->attr;
    return check_kind(q, at) && infer_state(q, 1, at) ? infer_state(q, 0, at) : NULL;
}

static f32 smaller(f32 a, f32 b)
{
    return b < a ? b : a;
}

static f32 larger(f32 a, f32 b)
{
    return b > a ? b : a;
}

static Status eval_merge_ranges(Eval *e)
{
    const ObserveAttr *at = e->attr;
    const size_t bytes = (size_t)eval_elements(e, 0) * sizeof(f32);
    f32 *a = eval_scratch(e, bytes, 1), *b = eval_scratch(e, bytes, 1);
    memcpy(a, eval_f32(e, 0), bytes);
    memcpy(b, eval_f32(e, 1), bytes);
    a[OBSERVED_LO] = smaller(a[OBSERVED_LO], b[OBSERVED_LO]);
    a[OBSERVED_HI] = larger(a[OBSERVED_HI], b[OBSERVED_HI]);
    a[OBSERVED_SEEN] = larger(a[OBSERVED_SEEN], b[OBSERVED_SEEN]);
    a[OBSERVED_BAD] = larger(a[OBSERVED_BAD], b[OBSERVED_BAD]);
    if (observe_counts(at->kind)) {
        a[OBSERVED_LEAST] = smaller(a[OBSERVED_LEAST], b[OBSERVED_LEAST]);
        a[OBSERVED_MOST] = larger(a[OBSERVED_MOST], b[OBSERVED_MOST]);
        const f32 width = larger(a[OBSERVED_WIDTH], b[OBSERVED_WIDTH]);
        histogram_widen(a, width);
        histogram_widen(b, width);
        for (int i = 0; i < OBSERVE_BINS; i++)
            histogram_set(a, i, histogram_count(a, i) + histogram_count(b, i));
        tell_range(e, a);
    }
    memcpy(eval_out_f32(e, 0), a, bytes);
    return OK;
}

/* ---- observed_range ---- */

static const Type *infer_observed_range(Infer *q)
{
    const Type *t = infer_tensor(q, 0);
    if (!t)
        return NULL;
    if (t->dtype != F32 || (t->rank >= 0 && (t->rank != 1 || (t->dims[0] >= 0 && t->dims[0] < OBSERVED_RANGE))))
        return infer_fail(q, "wants the state of an observer, got %s", type_text(q->scratch, t));
    const Type *one = type_scalar(q->types, F32);
    return infer_results(q, 2, (const Type *const[]){ one, one });
}

static Status eval_observed_range(Eval *e)
{
    const f32 *state = eval_f32(e, 0);
    *eval_out_f32(e, 0) = state[OBSERVED_LO];
    if (e->n_out > 1)
        *eval_out_f32(e, 1) = state[OBSERVED_HI];
    return OK;
}

static bool kernels_observed_range(const Node *n, OwnKernels *to)
{
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    OUT0(0, IN0(%d));\n", OBSERVED_LO);
    if (type_results(n->type) > 1)
        text_printf(&t, "    OUT1(0, IN0(%d));\n", OBSERVED_HI);
    own_kernel_close(to, "range", 1, 0, &t);
    return true;
}

/* ---- samples ---- */

/* A state as one call has it behind some batch. */
static Node *sample_state(Build *b, Rng *rng, const ObserveAttr *at, bool fresh)
{
    const int64_t n = observed_size(at->kind);
    Tensor *t = tensor_new(b->graph->arena, type_vector(&b->graph->ir->types, F32, n));
    if (fresh)
        return build_const(b, t);
    f32 *v = t->data;
    v[OBSERVED_LO] = -(f32)rng_unit(rng);
    v[OBSERVED_HI] = (f32)rng_unit(rng);
    v[OBSERVED_SEEN] = 2;
    v[OBSERVED_BAD] = (f32)rng_below(rng, 3);
    if (observe_counts(at->kind)) {
        v[OBSERVED_LEAST] = -1;
        v[OBSERVED_MOST] = 1.5f;
        v[OBSERVED_WIDTH] = 0x1p-10f;
        for (int i = 0; i < OBSERVE_BINS; i++)
            histogram_set(v, i, (u64)rng_below(rng, 9) << (i % 7 ? 0 : SAMPLE_BITS));
    }
    return build_const(b, t);
}

static ObserveAttr sample_attr(int variant)
{
    const bool floats = variant % 18 > 12;
    return (ObserveAttr){ .kind = variant % 6,
                          .rate = variant % 4 ? 0.25f : 0.01f,
                          .percentile = variant % 5 ? 90 : 99.99f,
                          .sigma = 2,
                          .symmetric = floats || variant % 2,
                          .pow2 = variant % 5 == 1,
                          .to = floats        ? (int)F4E2M1 + 1
                                : variant % 4 ? (int)I8 + 1
                                              : 0 };
}

static Node *sample_observe(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F16, BF16 };
    const ObserveAttr at = sample_attr(variant);
    int64_t dims[MAX_RANK];
    const int rank = (int)rng_below(rng, 4);
    sample_dims(rng, rank, 9, dims);
    const double odd = variant % 11 == 10 ? INFINITY : 3;
    Node *in[] = { sample_tensor(b, rng, types[variant / 6 % 3], rank, dims, -2, odd),
                   sample_state(b, rng, &at, variant / 6 % 2) };
    return build_node(b, OP_observe, &at, 2, in);
}

static Node *sample_merge_ranges(Build *b, Rng *rng, int variant)
{
    const ObserveAttr at = sample_attr(variant);
    Node *in[] = { sample_state(b, rng, &at, variant / 6 % 2), sample_state(b, rng, &at, variant / 12 % 2) };
    return build_node(b, OP_merge_ranges, &at, 2, in);
}

static Node *sample_observed_range(Build *b, Rng *rng, int variant)
{
    const ObserveAttr at = sample_attr(variant);
    Node *in = sample_state(b, rng, &at, variant / 6 % 2);
    return build_node_n(b, OP_observed_range, NULL, 1, &in, 1 + variant % 2);
}

const OpDef op_observe = {
    .name = "observe",
    .min_in = 2,
    .max_in = 2,
    .attrs = observe_attrs,
    .infer = infer_observe,
    .eval = eval_observe,
    .open = open_observe,
    .sample = sample_observe,
    .n_variants = 36,
    .access.kind = ACCESS_FOLD,
    .access.alias = { { 0, 1, ALIAS_OVER } },
    .amp = { AMP_FI, AMP_FI, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief =
        "The next state of an observer, which remembers the range of what it is shown; numbers that are not all finite "
        "are counted and left out.",
};

const OpDef op_merge_ranges = {
    .name = "merge_ranges",
    .min_in = 2,
    .max_in = 2,
    .attrs = observe_attrs,
    .infer = infer_merge_ranges,
    .eval = eval_merge_ranges,
    .sample = sample_merge_ranges,
    .n_variants = 24,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "counts of two histograms, the finer one made coarser",
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "The state of an observer that has seen what two others have, each its part of every batch.",
};

const OpDef op_observed_range = {
    .name = "observed_range",
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 2,
    .infer = infer_observed_range,
    .eval = eval_observed_range,
    .sample = sample_observed_range,
    .n_variants = 6,
    .access.kind = ACCESS_OPAQUE,
    .access.kernels = kernels_observed_range,
    .access.opaque = "two numbers of a state",
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "The least and the largest number of the range that the state of an observer tells.",
};
