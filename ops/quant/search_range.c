/* search_range: the ranges of rows that their codes are nearest to them with (ops/quant/range_search.h). */
#include "ops/card/signature.h"
#include "ops/quant/histogram.h"
#include "ops/quant/range_search.h"

enum { BY_ERROR, BY_DIVERGENCE, BY_HALVES };

static const char *const kinds[] = { "mse", "kl", "hqo", NULL };

static const AttrSpec search_range_attrs[] = {
    ATTR_CHOICE(SearchRangeAttr, kind, kinds, BY_ERROR),
    ATTR(SearchRangeAttr, least, INT, 0),
    ATTR(SearchRangeAttr, largest, INT, 0),
    ATTR(SearchRangeAttr, symmetric, BOOL, false),
    ATTR(SearchRangeAttr, pow2, BOOL, false),
    ATTR(SearchRangeAttr, to, DTYPE, 0),
    ATTR_LAST,
};

static DType codes_of(const SearchRangeAttr *at)
{
    DType code = U8;
    attr_dtype(at->to, &code);
    return code;
}

static const Type *infer_search_range(Infer *q)
{
    const SearchRangeAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    const DType code = codes_of(at);
    if (!x)
        return NULL;
    if (x->dtype != F32 || (x->rank >= 0 && x->rank != 2))
        return infer_fail(q, "looks at rows of f32, got %s", type_text(q->scratch, x));
    if (!dtype_is_code(code))
        return infer_fail(q, "wants a type of codes, not %s", dtype_name(code));
    if (!infer_code_limits(q, code, at->least, at->largest))
        return NULL;
    if (!at->symmetric && (dtype_is_float(code) || at->kind == BY_HALVES))
        return infer_fail(q, "wants symmetric=true: 0 has the code 0");
    const Type *rows = x->rank < 0 ? type_unranked(q->types, F32) : type_vector(q->types, F32, x->dims[0]);
    return infer_results(q, 2, (const Type *const[]){ rows, rows });
}

typedef struct Search {
    const SearchRangeAttr *at;
    RangeCodes codes;
    const f32 *x;
    int64_t n; /* of a row */
    f32 *lo, *hi;
    u64 *counts; /* of each worker, */
    f64 *room;   /* and what else it needs */
} Search;

static f32 end_by_divergence(const Search *s, const f32 *x, f32 least, f32 most, int worker)
{
    u64 *counts = s->counts + (int64_t)worker * OBSERVE_BINS;
    const f32 width = histogram_width(max_f32(-least, most)), per_width = width > 0 ? 1 / width : 0;
    for (int i = 0; i < OBSERVE_BINS; i++)
        counts[i] = 0;
    for (int64_t i = 0; i < s->n; i++)
        counts[(u32)(abs_f32(x[i]) * per_width)]++;
    return range_by_divergence(&(SizeCounts){ counts, width, least, most }, &s->codes,
                               s->room + 2 * (int64_t)worker * OBSERVE_BINS);
}

static void search_row(const Search *s, int64_t row, int worker)
{
    const f32 *x = s->x + row * s->n;
    f32 least = 0, most = 0, none = 0;
    for (int64_t i = 0; i < s->n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        none += x[i] - x[i]; /* a NaN where a number is not finite */
    }
    f32 end = max_f32(-least, most);
    if (none != 0 || end < SCALE_LEAST) {
        s->lo[row] = least + none;
        s->hi[row] = most + none;
        return;
    }
    if (s->at->kind == BY_DIVERGENCE)
        end = end_by_divergence(s, x, least, most, worker);
    else
        end = (s->at->kind == BY_ERROR ? range_of_numbers_by_error : range_of_numbers_by_halves)(x, s->n, least, most,
                                                                                                 &s->codes);
    const bool ends = s->at->kind == BY_HALVES; /* which may reach beyond the largest */
    s->lo[row] = ends || least < -end ? -end : least;
    s->hi[row] = ends || most > end ? end : most;
}

static void search_rows(void *arg, int64_t begin, int64_t end, int worker)
{
    for (int64_t i = begin; i < end; i++)
        search_row(arg, i, worker);
}

static Status eval_search_range(Eval *e)
{
    const SearchRangeAttr *at = e->attr;
    const Type *x = e->in[0]->type;
    const size_t bins = (size_t)parallel_threads(e->pool) * (at->kind == BY_DIVERGENCE ? OBSERVE_BINS : 1);
    Search s = { .at = at,
                 .codes = range_codes(codes_of(at), at->least, at->largest, at->symmetric, at->pow2),
                 .x = eval_f32(e, 0),
                 .n = x->dims[1],
                 .lo = eval_out_f32(e, 0),
                 .hi = e->n_out > 1 ? eval_out_f32(e, 1) : eval_scratch(e, (size_t)x->dims[0] + 1, sizeof(f32)),
                 .counts = eval_scratch(e, bins, sizeof(u64)),
                 .room = eval_scratch(e, 2 * bins, sizeof(f64)) };
    eval_parallel(e, x->dims[0], search_rows, &s);
    return OK;
}

static Node *sample_search_range(Build *b, Rng *rng, int variant)
{
    static const DType codes[] = { I8, U8, F8E4M3, I4, F4E2M1, U4 };
    const DType code = codes[variant % (int)COUNT(codes)];
    const int64_t rows = 1 + (int64_t)rng_below(rng, 3), n = 1 + (int64_t)rng_below(rng, 200);
    const SearchRangeAttr at = { .kind = variant / 6 % 3,
                                 .symmetric = dtype_is_float(code) || variant / 6 % 3 == BY_HALVES || variant % 5 == 0,
                                 .pow2 = variant % 7 == 0,
                                 .to = (int)code + 1 };
    Node *x = sample_tensor(b, rng, F32, 2, (int64_t[]){ rows, n }, -2, 3);
    return build_node_n(b, OP_search_range, &at, 1, &x, 1 + variant % 2);
}

const OpDef op_search_range = {
    .name = "search_range",
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 2,
    .attrs = search_range_attrs,
    .infer = infer_search_range,
    .eval = eval_search_range,
    .sample = sample_search_range,
    .n_variants = 36,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "a search over each row",
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .brief = "The range of each row with which codes are nearest to it: by the least squared error (mse), by the least "
             "divergence of histograms (kl), or by half-quadratic search (hqo).",
};
