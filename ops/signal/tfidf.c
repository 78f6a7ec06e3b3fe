/* tfidf_vectorizer: how often listed sequences of tokens, possibly with gaps, are in a row. */
#include <string.h>

#include "ops/card/shapes.h"

enum { MODE_TF, MODE_IDF, MODE_TFIDF };
static const char *const modes[] = { "TF", "IDF", "TFIDF", NULL };

typedef struct TfidfAttr {
    int64_t max_gram_length, max_skip_count, min_gram_length;
    int mode;
    Ints ngram_counts, ngram_indexes, pool_int64s;
    Strs pool_strings;
    Floats weights;
} TfidfAttr;

static const AttrSpec tfidf_attrs[] = {
    ATTR_REQUIRED(TfidfAttr, max_gram_length, INT), ATTR_REQUIRED(TfidfAttr, max_skip_count, INT),
    ATTR_REQUIRED(TfidfAttr, min_gram_length, INT), ATTR_CHOICE(TfidfAttr, mode, modes, MODE_TF),
    ATTR_OPTIONAL(TfidfAttr, ngram_counts, INTS),   ATTR_OPTIONAL(TfidfAttr, ngram_indexes, INTS),
    ATTR_OPTIONAL(TfidfAttr, pool_int64s, INTS),    ATTR_OPTIONAL(TfidfAttr, pool_strings, STRS),
    ATTR_OPTIONAL(TfidfAttr, weights, FLOATS),      ATTR_LAST,
};

/* Where the n-grams of n tokens begin and end in the pool. */
static void pool_part(const TfidfAttr *at, int n, int64_t *first, int64_t *last)
{
    const int tokens = at->pool_strings.v ? at->pool_strings.n : at->pool_int64s.n;
    *first = at->ngram_counts.v[n - 1];
    *last = n < at->ngram_counts.n ? at->ngram_counts.v[n] : tokens;
}

static bool check_pool(Infer *q, const TfidfAttr *at)
{
    const int tokens = at->pool_strings.v ? at->pool_strings.n : at->pool_int64s.n;
    int64_t grams = 0;
    if (at->min_gram_length < 1 || at->max_gram_length < at->min_gram_length || at->max_skip_count < 0)
        return infer_fail(q, "counts sequences of %" PRId64 " to %" PRId64 " tokens with up to %" PRId64 " skipped",
                          at->min_gram_length, at->max_gram_length, at->max_skip_count),
               false;
    if ((at->pool_strings.v != NULL) == (at->pool_int64s.v != NULL))
        return infer_fail(q, "needs one pool, of integers or of strings"), false;
    for (int n = 1; n <= at->ngram_counts.n; n++) {
        int64_t first, last;
        pool_part(at, n, &first, &last);
        if (first < 0 || last < first || last > tokens || (last - first) % n)
            return infer_fail(q,
                              "ngram_counts give sequences of %d tokens the part %" PRId64 " to %" PRId64
                              " of a pool of %d",
                              n, first, last, tokens),
                   false;
        grams += (last - first) / n;
    }
    if (grams != at->ngram_indexes.n || grams < 1)
        return infer_fail(q, "has %d ngram_indexes for %" PRId64 " sequences", at->ngram_indexes.n, grams), false;
    if (at->weights.v && at->weights.n != at->ngram_indexes.n)
        return infer_fail(q, "has %d weights for %d sequences", at->weights.n, at->ngram_indexes.n), false;
    return true;
}

static int64_t columns(const TfidfAttr *at)
{
    int64_t most = 0;
    for (int i = 0; i < at->ngram_indexes.n; i++)
        most = at->ngram_indexes.v[i] > most ? at->ngram_indexes.v[i] : most;
    return most + 1;
}

static const Type *infer_tfidf(Infer *q)
{
    const TfidfAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    if (!x || !check_pool(q, at))
        return NULL;
    if (x->dtype == STRING ? !at->pool_strings.v : !at->pool_int64s.v || !dtype_is_integer(x->dtype))
        return infer_fail(q, "reads %s with a pool of %s", dtype_name(x->dtype),
                          at->pool_strings.v ? "strings" : "integers");
    for (int i = 0; i < at->ngram_indexes.n; i++)
        if (at->ngram_indexes.v[i] < 0 || at->ngram_indexes.v[i] >= q->ir->limits.dim)
            return infer_fail(q, "ngram_indexes hold %" PRId64, at->ngram_indexes.v[i]);
    if (x->rank < 0)
        return type_unranked(q->types, F32);
    if (x->rank > 2)
        return infer_fail(q, "needs rows of tokens, not %s", type_text(q->scratch, x));
    const int64_t dims[] = { x->rank == 2 ? x->dims[0] : columns(at), columns(at) };
    return infer_dims(q, F32, x->rank == 2 ? 2 : 1, dims);
}

/* The sequences of the pool that are asked for, as a tree: a node for every beginning of one.  Children are found by
 * hashing (node, token). */
typedef struct Tree {
    struct TreeSlot {
        int64_t node, token, child; /* child 0: a free slot */
    } * slots;
    uint64_t mask;
    int64_t n_nodes;
    int64_t *index; /* of a node that ends a sequence: which; -1 */
} Tree;

static struct TreeSlot *tree_slot(const Tree *t, int64_t node, int64_t token)
{
    uint64_t h = ((uint64_t)node * 0x9e3779b97f4a7c15u ^ (uint64_t)token) * 0xbf58476d1ce4e5b9u;
    for (h ^= h >> 32;; h++) {
        struct TreeSlot *s = &t->slots[h & t->mask];
        if (!s->child || (s->node == node && s->token == token))
            return s;
    }
}

static void tree_add(Tree *t, const int64_t *tokens, int n, int64_t index)
{
    int64_t node = 0;
    for (int i = 0; i < n; i++) {
        struct TreeSlot *s = tree_slot(t, node, tokens[i]);
        if (!s->child)
            *s = (struct TreeSlot){ node, tokens[i], ++t->n_nodes };
        node = s->child;
    }
    t->index[node] = index;
}

static Tree plant(Eval *e, const TfidfAttr *at)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)at->pool_int64s.n + 2)
        size *= 2;
    Tree t = { .slots = eval_scratch(e, size, sizeof *t.slots), .mask = size - 1 };
    t.index = eval_scratch(e, (size_t)at->pool_int64s.n + 1, sizeof *t.index);
    for (int i = 0; i <= at->pool_int64s.n; i++)
        t.index[i] = -1;
    for (int n = 1, gram = 0; n <= at->ngram_counts.n; n++) {
        int64_t first, last;
        pool_part(at, n, &first, &last);
        for (int64_t i = first; i < last; i += n, gram++)
            if (n >= at->min_gram_length && n <= at->max_gram_length)
                tree_add(&t, at->pool_int64s.v + i, n, gram);
    }
    return t;
}

/* Counts all sequences that begin somewhere in the row and go on in steps of `step`. */
static void count_row(const TfidfAttr *at, const Tree *t, const int64_t *row, int64_t n, int64_t step, int64_t shortest,
                      f32 *counts)
{
    for (int64_t start = 0; start < n; start++) {
        int64_t node = 0;
        for (int64_t length = 1, i = start; length <= at->max_gram_length && i < n; length++) {
            node = tree_slot(t, node, row[i])->child;
            if (!node)
                break;
            if (length >= shortest && t->index[node] >= 0)
                counts[t->index[node]] += 1;
            if (step >= n - i)
                break;
            i += step;
        }
    }
}

/* Counts of sequences become a row of the result: weights belong to sequences, not to columns. */
static void weigh(const TfidfAttr *at, const f32 *counts, f32 *row)
{
    for (int i = 0; i < at->ngram_indexes.n; i++) {
        f32 *y = &row[at->ngram_indexes.v[i]];
        const f32 weight = at->weights.v && at->mode != MODE_TF ? at->weights.v[i] : 1;
        if (at->mode == MODE_IDF)
            *y = counts[i] > 0 ? weight : *y;
        else
            *y += weight * counts[i];
    }
}

static Status eval_tfidf(Eval *e)
{
    const TfidfAttr *at = e->attr;
    const Type *x = e->in[0]->type;
    const int64_t rows = x->rank == 2 ? x->dims[0] : 1, n = x->rank == 0 ? 1 : x->dims[x->rank - 1];
    const int64_t width = columns(at);
    const Tree tree = plant(e, at);
    const i64 *tokens = eval_i64(e, 0);
    f32 *y = eval_out_f32(e, 0);
    const size_t grams = (size_t)at->ngram_indexes.n;
    f32 *counts = eval_scratch(e, grams, sizeof *counts);
    if (rows)
        memset(y, 0, (size_t)(rows * width) * sizeof *y);
    for (int64_t r = 0; r < rows; r++) {
        memset(counts, 0, grams * sizeof *counts);
        int64_t shortest = at->min_gram_length;
        for (int64_t step = 1; step <= at->max_skip_count + 1 && step <= (n > 1 ? n : 1); step++) {
            count_row(at, &tree, tokens + r * n, n, step, shortest, counts);
            if (shortest == 1) /* single tokens are the same however many are skipped */
                shortest = 2;
            if (shortest > at->max_gram_length)
                break;
        }
        weigh(at, counts, y + r * width);
    }
    return OK;
}

static Node *sample_tfidf(Build *b, Rng *rng, int variant)
{
    static const int64_t counts[] = { 0, 3 }, indexes[] = { 4, 0, 2, 5, 1, 6, 3 };
    static const float weights[] = { 0.5f, 2, 1, 3, 0.25f, 1, 4 };
    int64_t pool[11], dims[2];
    for (int i = 0; i < 3; i++)
        pool[i] = i;
    for (int i = 0; i < 4; i++) { /* different pairs */
        pool[3 + 2 * i] = i;
        pool[4 + 2 * i] = rng_below(rng, 4);
    }
    sample_dims(rng, 2, 6, dims);
    const TfidfAttr at = { .max_gram_length = 1 + (variant + 1) % 2,
                           .max_skip_count = rng_below(rng, 4),
                           .min_gram_length = 1,
                           .mode = variant % 3,
                           .ngram_counts = { 2, counts },
                           .ngram_indexes = { 7, indexes },
                           .pool_int64s = { 11, pool },
                           .weights = { variant % 4 ? 7 : 0, variant % 4 ? weights : NULL } };
    return CALL_ATTR(b, tfidf_vectorizer, at,
                     sample_tensor(b, rng, variant % 2 ? I64 : I32, 1 + variant % 2, dims, 0, 4));
}

const OpDef op_tfidf_vectorizer = {
    .name = "tfidf_vectorizer",
    .min_in = 1,
    .max_in = 1,
    .attrs = tfidf_attrs,
    .infer = infer_tfidf,
    .eval = eval_tfidf,
    .sample = sample_tfidf,
    .n_variants = 12,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "it counts sequences of terms wherever they are",
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .onnx = { "TfIdfVectorizer", 9, NULL },
};
