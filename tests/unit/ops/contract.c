/* Contractions against loops written out: the f32 ones bit for bit, in the stated order. */
#include "ops/contract/contract.h"
#include "support/calls.h"

/* ---- matmul ---- */

/* One stack of [m,k] by [k,n], k ascending by fma: one segment. */
static f32 dot(const Tensor *a, const Tensor *b, const MatmulAttr *m, int64_t i, int64_t j, int64_t base_a,
               int64_t base_b)
{
    const int64_t *da = a->type->dims + a->type->rank - 2, *db = b->type->dims + b->type->rank - 2;
    const int64_t k = m->ta ? da[0] : da[1];
    f32 sum = 0;
    for (int64_t p = 0; p < k; p++) {
        const f32 x = (f32)at(a, base_a + (m->ta ? p * da[1] + i : i * da[1] + p));
        const f32 y = (f32)at(b, base_b + (m->tb ? j * db[1] + p : p * db[1] + j));
        sum = fmaf(x, y, sum);
    }
    return sum;
}

static Status products_in_order(void *arg)
{
    static const int64_t sizes[][3] = { { 1, 1, 1 }, { 7, 5, 3 }, { 49, 33, 65 }, { 130, 17, 300 }, { 3, 200, 9 } };
    Context *c = arg;
    Rng rng = { 3 };
    for (int round = 0; round < 20; round++) {
        const int64_t *s = sizes[round % 5];
        const MatmulAttr m = { .ta = round & 1, .tb = round >> 1 & 1 };
        Build b = fresh(c);
        Node *x = m.ta ? DRAW(&b, &rng, F32, 2, 1, s[2], s[0]) : DRAW(&b, &rng, F32, 2, 1, s[0], s[2]);
        Node *y = m.tb ? DRAW(&b, &rng, F32, 3, s[1], s[2]) : DRAW(&b, &rng, F32, 3, s[2], s[1]);
        Tensor *z = value_of(c, CALL_ATTR(&b, matmul, m, x, y), NULL);
        assert_int_equal(tensor_elements(z), 2 * 3 * s[0] * s[1]);
        for (int64_t n = 0; n < tensor_elements(z); n++) {
            const int64_t j = n % s[1], i = n / s[1] % s[0], stack = n / s[1] / s[0];
            const f32 want = dot(constant(x), constant(y), &m, i, j, stack / 3 * s[0] * s[2], stack % 3 * s[1] * s[2]);
            assert_true((f32)at(z, n) == want);
        }
        tensor_drop(&c->heap, z);
    }
    return OK;
}

/* Where the right operand repeats, the stack's rows are those of one matrix, unless the left one is transposed or repeats, too. */
static Status stacks_meet_one_matrix(void *arg)
{
    static const int64_t sizes[][3] = { { 1, 5, 7 }, { 1, 3, 1 }, { 7, 33, 20 }, { 50, 17, 65 } };
    Context *c = arg;
    Rng rng = { 5 };
    for (int round = 0; round < 16; round++) {
        const int64_t *s = sizes[round / 4], broad = round & 2 ? 2 : 1;
        const MatmulAttr m = { .ta = round & 1, .tb = round >> 1 & 1 };
        Build b = fresh(c);
        Node *x = m.ta ? DRAW(&b, &rng, F32, 3, 1, s[2], s[0]) : DRAW(&b, &rng, F32, 3, broad, s[0], s[2]);
        Node *y = m.tb ? DRAW(&b, &rng, F32, s[1], s[2]) : DRAW(&b, &rng, F32, 1, 1, s[2], s[1]);
        Tensor *z = value_of(c, CALL_ATTR(&b, matmul, m, x, y), NULL);
        assert_int_equal(tensor_elements(z), 3 * (m.ta ? 1 : broad) * s[0] * s[1]);
        for (int64_t n = 0; n < tensor_elements(z); n++) {
            const int64_t j = n % s[1], i = n / s[1] % s[0], stack = n / s[1] / s[0];
            assert_true((f32)at(z, n) == dot(constant(x), constant(y), &m, i, j, stack * s[0] * s[2], 0));
        }
        tensor_drop(&c->heap, z);
    }
    return OK;
}

static Status vectors_lose_their_dimension(void *arg)
{
    Context *c = arg;
    Rng rng = { 4 };
    Build b = fresh(c);
    Node *v = DRAW(&b, &rng, F64, 5), *m = DRAW(&b, &rng, F64, 4, 5, 6);
    Node *left = CALL(&b, matmul, v, m), *dot_product = CALL(&b, matmul, v, v);
    assert_int_equal(left->type->rank, 2);
    assert_int_equal(dot_product->type->rank, 0);
    Tensor *z = value_of(c, left, NULL);
    for (int64_t n = 0; n < 24; n++) {
        double sum = 0;
        for (int64_t k = 0; k < 5; k++)
            sum += at(constant(v), k) * at(constant(m), n / 6 * 30 + k * 6 + n % 6);
        assert_true(close_to(at(z, n), sum, 1e-14));
    }
    tensor_drop(&c->heap, z);
    return OK;
}

static Status integers_wrap(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, I32, 2, (int64_t[]){ 1, 2 }));
    tensor_set_i64(t, 0, 1 << 30);
    tensor_set_i64(t, 1, 3);
    Node *x = build_const(&b, t);
    const MatmulAttr m = { .tb = true };
    Tensor *z = value_of(c, CALL_ATTR(&b, matmul, m, x, x), NULL);
    assert_int_equal(tensor_get_i64(z, 0), 9); /* 2^60 + 9 in 32 bits */
    tensor_drop(&c->heap, z);
    return OK;
}

static Status results_may_be_wider(void *arg)
{
    Context *c = arg;
    Rng rng = { 5 };
    Build b = fresh(c);
    Node *x = DRAW(&b, &rng, BF16, 3, 40);
    const MatmulAttr wide = { .tb = true, .out = F32 + 1 }, narrow = { .tb = true };
    Tensor *z = value_of(c, CALL_ATTR(&b, matmul, wide, x, x), NULL);
    Build b2 = fresh(c);
    Tensor *y =
        value_of(c, CALL_ATTR(&b2, matmul, narrow, build_const(&b2, constant(x)), build_const(&b2, constant(x))), NULL);
    assert_int_equal(z->type->dtype, F32);
    assert_int_equal(y->type->dtype, BF16);
    for (int64_t i = 0; i < 9; i++) {
        f32 sum = 0;
        for (int64_t k = 0; k < 40; k++)
            sum = fmaf((f32)at(constant(x), i / 3 * 40 + k), (f32)at(constant(x), i % 3 * 40 + k), sum);
        assert_true((f32)at(z, i) == sum);
        assert_true(close_to(at(y, i), (double)sum, 0x1p-8));
    }
    tensor_drop(&c->heap, z);
    tensor_drop(&c->heap, y);
    return OK;
}

/* ---- einsum, against a walk over all values of all letters ---- */

enum { LETTERS = 5 };

/* Random terms over the letters a .. e, repeated ones too, and a result that takes some of them. */
typedef struct Sum {
    char text[64];
    int n, rank[3], out_rank;
    int letter[3][4], out[LETTERS];
} Sum;

static void draw_sum(Sum *s, Rng *rng)
{
    bool used[LETTERS] = { false };
    char *p = s->text;
    s->n = 1 + (int)rng_below(rng, 3);
    for (int i = 0; i < s->n; i++) {
        if (i)
            *p++ = ',';
        s->rank[i] = (int)rng_below(rng, 5);
        for (int k = 0; k < s->rank[i]; k++) {
            s->letter[i][k] = (int)rng_below(rng, LETTERS);
            used[s->letter[i][k]] = true;
            *p++ = (char)('a' + s->letter[i][k]);
        }
    }
    *p++ = '-', *p++ = '>';
    s->out_rank = 0;
    for (int l = LETTERS - 1; l >= 0; l--) /* not in the order of the terms */
        if (used[(l + 2) % LETTERS] && rng_below(rng, 2)) {
            s->out[s->out_rank++] = (l + 2) % LETTERS;
            *p++ = (char)('a' + (l + 2) % LETTERS);
        }
    *p = '\0';
}

static int64_t offset_of(const int64_t *value, int rank, const int *letter, const int64_t *dims)
{
    int64_t at_ = 0;
    for (int k = 0; k < rank; k++)
        at_ = at_ * dims[k] + (dims[k] == 1 ? 0 : value[letter[k]]);
    return at_;
}

static void walk_sum(const Sum *s, const int64_t *extent, const Tensor *const *in, double *out)
{
    int64_t value[LETTERS], total = 1, out_dims[LETTERS], all[LETTERS];
    bool used[LETTERS] = { false };
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->rank[i]; k++)
            used[s->letter[i][k]] = true;
    for (int l = 0; l < LETTERS; l++)
        total *= all[l] = used[l] ? extent[l] : 1;
    for (int k = 0; k < s->out_rank; k++)
        out_dims[k] = extent[s->out[k]];
    for (int64_t n = 0; n < total; n++) {
        double product = 1;
        for (int64_t l = LETTERS - 1, rest = n; l >= 0; l--) {
            value[l] = rest % all[l];
            rest /= all[l];
        }
        for (int i = 0; i < s->n; i++)
            product *= at(in[i], offset_of(value, s->rank[i], s->letter[i], in[i]->type->dims));
        out[offset_of(value, s->out_rank, s->out, out_dims)] += product;
    }
}

static Status sums_over_letters(void *arg)
{
    Context *c = arg;
    Rng rng = { 11 };
    for (int round = 0; round < 300; round++) {
        Sum s;
        Build b = fresh(c);
        Node *in[3];
        const Tensor *values[3];
        int64_t extent[LETTERS];
        double out[1024] = { 0 };
        draw_sum(&s, &rng);
        for (int l = 0; l < LETTERS; l++)
            extent[l] = rng_range(&rng, 1, 3);
        for (int i = 0; i < s.n; i++) {
            int64_t dims[4];
            for (int k = 0; k < s.rank[i]; k++)
                dims[k] = extent[s.letter[i][k]];
            in[i] = draw(&b, &rng, F64, s.rank[i], dims);
            values[i] = constant(in[i]);
        }
        walk_sum(&s, extent, values, out);
        const EinsumAttr e = { s.text };
        Tensor *y = value_of(c, build_node(&b, OP_einsum, &e, s.n, in), NULL);
        assert_int_equal(y->type->rank, s.out_rank);
        for (int64_t i = 0; i < tensor_elements(y); i++)
            if (!close_to(at(y, i), out[i], 1e-13)) {
                print_error("%s: element %d is %g, not %g\n", s.text, (int)i, at(y, i), out[i]);
                assert_true(false);
            }
        tensor_drop(&c->heap, y);
    }
    return OK;
}

/* ---- gemm and det ---- */

static Status gemm_scales_and_adds(void *arg)
{
    Context *c = arg;
    Rng rng = { 6 };
    Build b = fresh(c);
    const GemmAttr g = { .alpha = 0.5f, .beta = -2, .transA = true };
    Node *x = DRAW(&b, &rng, F64, 4, 3), *y = DRAW(&b, &rng, F64, 4, 5), *z = DRAW(&b, &rng, F64, 3, 1);
    Tensor *t = value_of(c, CALL_ATTR(&b, gemm, g, x, y, z), NULL);
    for (int64_t i = 0; i < 15; i++) {
        double sum = 0;
        for (int64_t k = 0; k < 4; k++)
            sum += at(constant(x), k * 3 + i / 5) * at(constant(y), k * 5 + i % 5);
        assert_true(close_to(at(t, i), 0.5 * sum - 2 * at(constant(z), i / 5), 1e-14));
    }
    tensor_drop(&c->heap, t);
    return OK;
}

/* det(A B) = det(A) det(B); a zero on the diagonal needs a pivot; no rows: 1. */
static Status determinants_multiply(void *arg)
{
    Context *c = arg;
    Rng rng = { 7 };
    for (int64_t n = 0; n < 7; n++) {
        Build b = fresh(c);
        Node *x = DRAW(&b, &rng, F64, n, n), *y = DRAW(&b, &rng, F64, n, n);
        if (n > 1)
            tensor_set_f64((Tensor *)(uintptr_t)constant(x), 0, 0);
        Node *parts[] = { CALL(&b, det, x), CALL(&b, det, y), CALL(&b, det, CALL(&b, matmul, x, y)) };
        Tensor *t = value_of(c, build_tuple(&b, 3, parts), NULL);
        assert_true(close_to(at(t->items[2], 0), at(t->items[0], 0) * at(t->items[1], 0), 1e-12));
        assert_true(n > 0 || at(t->items[0], 0) == 1);
        assert_true(at(t->items[2], 0) != 0);
        tensor_drop(&c->heap, t);
    }
    return OK;
}

static Status bad_calls_are_refused(void *arg)
{
    Context *c = arg;
    Rng rng = { 8 };
    Build b = fresh(c);
    Node *m = DRAW(&b, &rng, F32, 2, 3), *v = DRAW(&b, &rng, F32, 3), *s = DRAW(&b, &rng, F32, 4, 2, 3);
    Node *wide = DRAW(&b, &rng, F64, 3, 2), *scalar = build_scalar(&b, F32, 1);
    const MatmulAttr ta = { .ta = true }, odd = { .out = I32 + 1 };
    const GemmAttr gemm = { .alpha = 1, .beta = 1, .transB = true };
    expect_refused(c, &b, CALL(&b, matmul, m, m), "inner dimensions differ: 3 and 2");
    expect_refused(c, &b, CALL(&b, matmul, m, wide), "one type");
    expect_refused(c, &b, CALL(&b, matmul, scalar, m), "dimension to sum over");
    expect_refused(c, &b, CALL_ATTR(&b, matmul, ta, v, m), "vector cannot be transposed");
    expect_refused(c, &b, CALL_ATTR(&b, matmul, odd, v, v), "cannot give i32");
    expect_refused(c, &b, CALL(&b, matmul, s, DRAW(&b, &rng, F32, 3, 3, 2)), "do not broadcast");
    expect_refused(c, &b, CALL(&b, det, m), "operand 0 is f32[2,3], wanted is f32[..,n=2,n=2]");
    expect_refused(c, &b, CALL(&b, det, v), "wanted is f32[..,n,n]");
    expect_refused(c, &b, CALL_ATTR(&b, gemm, gemm, m, v), "two matrices");
    expect_refused(c, &b, CALL_ATTR(&b, gemm, gemm, m, m, v), "does not broadcast");
    static const struct {
        const char *equation, *why;
    } wrong[] = {
        { "ij,jk", "more terms" }, { "i", "names 1 indices" },    { "ijk", "names 3 indices" },
        { "ij->ii", "twice" },     { "ij->k", "no operand has" }, { "i1", "cannot read" },
        { "ij->i,j", "behind" },   { "ii", "extents 2 and 3" },   { "......", "cannot read" },
    };
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const EinsumAttr e = { wrong[i].equation };
        expect_refused(c, &b, CALL_ATTR(&b, einsum, e, m), wrong[i].why);
    }
    const EinsumAttr far = { "a,b,c,d->abcd" };
    Node *big = DRAW(&b, &rng, F32, 1 << 13);
    expect_refused(c, &b, CALL_ATTR(&b, einsum, far, big, big, big, big), "limit elements");
    const EinsumAttr both = { "ij,ij->i" };
    expect_refused(c, &b, CALL_ATTR(&b, einsum, both, m, DRAW(&b, &rng, F32, 2, 4)), "extents 3 and 4");
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(products_in_order)
TEST(stacks_meet_one_matrix)
TEST(vectors_lose_their_dimension)
TEST(integers_wrap)
TEST(results_may_be_wider)
TEST(sums_over_letters)
TEST(gemm_scales_and_adds)
TEST(determinants_multiply)
TEST(bad_calls_are_refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_in_order),
        cmocka_unit_test(test_stacks_meet_one_matrix),
        cmocka_unit_test(test_vectors_lose_their_dimension),
        cmocka_unit_test(test_integers_wrap),
        cmocka_unit_test(test_results_may_be_wider),
        cmocka_unit_test(test_sums_over_letters),
        cmocka_unit_test(test_gemm_scales_and_adds),
        cmocka_unit_test(test_determinants_multiply),
        cmocka_unit_test(test_bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
