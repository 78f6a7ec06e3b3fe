/* What cards say of the order of a sum: folding what a walk reads in that order, in a plain loop, gives the same bits. */
#include "ops/card/reduction.h"
#include "support/chain.h"
#include "support/samples.h"
#include "support/walks.h"

static const EvalOptions plain = { .seed = 1 };
enum { MOST_POINTS = 200000 };

typedef enum Fold { FOLD_SUM, FOLD_SQUARES, FOLD_PRODUCT, FOLD_CHAIN } Fold;

/* Words whose elements are nothing but a fold. */
static const struct {
    Op op;
    Fold fold;
} words[] = {
    { OP_reduce_sum, FOLD_SUM },       { OP_reduce_sum_square, FOLD_SQUARES },
    { OP_reduce_prod, FOLD_PRODUCT },  { OP_matmul, FOLD_CHAIN },
    { OP_gemm, FOLD_CHAIN },           { OP_conv, FOLD_CHAIN },
    { OP_conv_transpose, FOLD_CHAIN }, { OP_conv_weight_grad, FOLD_CHAIN },
};

/* What one element of a result is made of, in order. */
typedef struct Terms {
    size_t n, most;
    float *v;
    Chain chain;
} Terms;

static void add_term(Terms *t, Arena *arena, float v)
{
    if (t->n == t->most) {
        float *more = NEWS(arena, float, 2 * t->most + 16);
        if (t->n)
            memcpy(more, t->v, t->n * sizeof *more);
        t->v = more;
        t->most = 2 * t->most + 16;
    }
    t->v[t->n++] = v;
}

static float join(Fold f, float a, float b)
{
    return f == FOLD_PRODUCT ? a * b : a + b;
}

static float nothing(Fold f)
{
    return f == FOLD_PRODUCT ? 1.0f : -0.0f;
}

static float halves(Fold f, float *a, size_t n)
{
    for (size_t w = n / 2; w > 0; w /= 2)
        for (size_t i = 0; i < w; i++)
            a[i] = join(f, a[i], a[i + w]);
    return a[0];
}

/* 1024 places, absent ones being nothing: 256 sums, by eights, then by halves. */
static float row_part(Fold f, const float *x, size_t n)
{
    float a[256], eight[32];
    for (size_t p = 0; p < 256; p++) {
        a[p] = p < n ? x[p] : nothing(f);
        for (size_t q = p + 256; q < 1024; q += 256)
            a[p] = join(f, a[p], q < n ? x[q] : nothing(f));
    }
    for (size_t g = 0; g < 32; g++)
        eight[g] = halves(f, a + 8 * g, 8);
    return halves(f, eight, 32);
}

/* Eight sums, element r in r mod 8. */
static float column_part(Fold f, const float *x, size_t n)
{
    float a[8];
    for (size_t i = 0; i < 8; i++)
        a[i] = nothing(f);
    for (size_t r = 0; r < n; r++)
        a[r % 8] = join(f, a[r % 8], x[r]);
    return halves(f, a, 8);
}

/* As a tree that splits before the largest power of two. */
static float joined(Fold f, const float *part, size_t n)
{
    size_t left = 1;
    if (n == 1)
        return part[0];
    while (2 * left < n)
        left *= 2;
    return join(f, joined(f, part, left), joined(f, part + left, n - left));
}

static float total(Fold f, Order order, const Terms *t, Arena *arena)
{
    const size_t each = order == ORDER_COLUMN ? 64 : 1024;
    float *part = NEWS(arena, float, t->n / each + 1);
    size_t n = 0;
    if (!t->n)
        return f == FOLD_PRODUCT ? 1.0f : 0.0f;
    for (size_t at = 0; at < t->n; at += each) {
        const size_t left = t->n - at < each ? t->n - at : each;
        part[n++] = order == ORDER_COLUMN ? column_part(f, t->v + at, left) : row_part(f, t->v + at, left);
    }
    return joined(f, part, n);
}

static double read_at(const Walk *w, int i)
{
    const int64_t k = walk_in(w, i);
    return k >= 0 ? at(constant(in(w->call, i)), k) : w->it.fill;
}

static void collect(Walk *w, Fold f, Terms *terms, Arena *arena)
{
    for (walk_begin(w); !w->ended; walk_step(w)) {
        const int64_t k = walk_out(w, 0);
        if (k < 0)
            continue;
        const double x = read_at(w, 0);
        if (f == FOLD_CHAIN)
            chain_add(&terms[k].chain, x, read_at(w, 1));
        else
            add_term(&terms[k], arena, f == FOLD_SQUARES ? (float)x * (float)x : (float)x);
    }
}

/* f32 alone, and no bias that is added behind the sum. */
static bool is_plain(const Node *call, Fold f)
{
    const Type *y = access_result(call, 0);
    if (y->dtype != F32 || in(call, 0)->type->dtype != F32 || (f == FOLD_CHAIN && in(call, 2)))
        return false;
    return call->op != OP_gemm || ((const float *)call->attr)[0] == 1;
}

static int check(Context *c, Walk *w, Fold f, const Tensor *y)
{
    const int64_t n = tensor_elements(y);
    Terms *terms = NEWS(&c->arena, Terms, n + 1);
    int longer = 0;
    collect(w, f, terms, &c->arena);
    for (int64_t k = 0; k < n; k++) {
        const double got = at(y, k), want = f == FOLD_CHAIN            ? chain_total(&terms[k].chain)
                                            : w->it.order == ORDER_ANY ? terms[k].n ? terms[k].v[0] : got
                                                                       : total(f, w->it.order, &terms[k], &c->arena);
        require(memcmp(&got, &want, sizeof got) == 0, "%s: element %d is %g, in the order of its card %g\n",
                op_of(w->call)->name, (int)k, got, want);
        longer += terms[k].n > 1 || terms[k].chain.n > 1;
    }
    return longer;
}

static Status check_word(void *context, Op op, Fold fold)
{
    Context *c = context;
    const OpDef *def = ops_table.defs[op];
    int sums = 0;
    for (int variant = 0; variant < def->n_variants; variant++) {
        Node *y = sample_of(c, def, variant), *call = y ? sample_call(y) : NULL;
        Walk w;
        if (!call || !is_plain(call, fold) || !walk_open(&w, c, call) || walk_points(&w) > MOST_POINTS)
            continue;
        require(fold != FOLD_CHAIN || w.it.order == ORDER_FMA, "%s has another order\n", def->name);
        sums += check(c, &w, fold, value_of(c, call, &plain));
    }
    require(sums > 3, "%s: %d sums\n", def->name, sums);
    return OK;
}

/* Reductions long enough for several segments and blocks: a mask of axes of some shape. */
static const struct {
    int rank;
    int64_t dims[4];
    uint32_t mask;
} shapes[] = {
    { 2, { 3, 5000 }, 2 },        { 3, { 2, 70, 41 }, 6 }, { 2, { 700, 5 }, 1 },  { 3, { 3, 130, 4 }, 2 },
    { 4, { 4, 3, 5, 40 }, 13 },   { 3, { 9, 4, 30 }, 5 },  { 3, { 9, 4, 1 }, 1 }, { 2, { 1, 2100 }, 3 },
    { 4, { 2, 1, 1300, 1 }, 12 }, { 2, { 0, 4 }, 1 },      { 3, { 4, 3, 2 }, 0 },
};

static void check_shape(Context *c, Op op, Fold fold, size_t i)
{
    int64_t axes[MAX_RANK];
    int n = 0;
    Walk w;
    Rng rng = { seed_of("orders", i) };
    Build b = fresh(c);
    for (int d = 0; d < shapes[i].rank; d++)
        if (shapes[i].mask >> d & 1)
            axes[n++] = d;
    Node *x = draw(&b, &rng, F32, shapes[i].rank, shapes[i].dims);
    Node *y = build_reduce(&b, op, x, n, axes);
    assert_non_null(y);
    require(walk_open(&w, c, y), "%s has no walk\n", op_of(y)->name);
    check(c, &w, fold, value_of(c, y, &plain));
}

static Status check_all(void *context)
{
    for (size_t i = 0; i < COUNT(words); i++)
        TRY(check_word(context, words[i].op, words[i].fold));
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t k = 0; words[k].fold != FOLD_CHAIN; k++)
            check_shape(context, words[k].op, words[k].fold, i);
    return OK;
}

static void sums_are_in_the_order_of_their_cards(void **state)
{
    (void)state;
    with_context(check_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_in_the_order_of_their_cards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
