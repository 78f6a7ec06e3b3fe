/* Weights that are stored: what rounding gives against its formula, and shards of a weight that is updated, as ranks of
 * a parallel run would hold them. */
#include "passes/recipe/stored.h"

#include <math.h>
#include <string.h>

#include "ops/scalar.h"
#include "ops/update/update.h"
#include "support/calls.h"
#include "support/seed.h"

enum { ROWS = 24, COLUMNS = 16 };

static StoredForm form_of(Context *c, const char *words)
{
    StoredForm form;
    assert_int_equal(stored_form(&form, words, &c->arena, &c->diag), OK);
    return form;
}

static Tensor *matrix(Context *c, DType type, int64_t rows, int64_t columns)
{
    const int64_t dims[] = { rows, columns };
    return tensor_new(&c->arena, type_tensor(&c->ir.types, type, 2, dims));
}

static Tensor *numbers(Context *c, Rng *rng)
{
    Tensor *t = matrix(c, F32, ROWS, COLUMNS);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        tensor_set_f64(t, i, i / COLUMNS == 3 ? 0 : (rng_unit(rng) - 0.4) * exp(4 * rng_unit(rng)));
    return t;
}

/* ---- rounding ---- */

/* Codes are the nearest to number / scale, the largest has the largest code, and what has a code is not moved by being
 * rounded again. */
static void check_rounding(Context *c, const char *words, int64_t scale_rows, int64_t scale_columns)
{
    Rng rng = { seed_of(words, 0) };
    const StoredForm form = form_of(c, words);
    const Tensor *x = numbers(c, &rng);
    Tensor *codes = matrix(c, form.type, ROWS, COLUMNS), *scale = matrix(c, F32, scale_rows, scale_columns),
           *zero = form.zeros ? matrix(c, form.type, scale_rows, scale_columns) : NULL,
           *back = matrix(c, F32, ROWS, COLUMNS), *again = matrix(c, form.type, ROWS, COLUMNS),
           *same = matrix(c, F32, scale_rows, scale_columns);
    stored_round(&form, x, codes, scale, zero, &c->arena);
    stored_numbers(codes, scale, zero, back);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLUMNS; j++) {
            const int64_t at = i * COLUMNS + j, k = i * scale_rows / ROWS * scale_columns + j * scale_columns / COLUMNS;
            const double s = tensor_get_f64(scale, k);
            const int64_t code = tensor_get_i64(codes, at);
            assert_true(code >= form.least && code <= form.largest);
            assert_true(fabs(tensor_get_f64(back, at) - tensor_get_f64(x, at)) <= s * 0.5000001);
        }
    if (form.zeros)
        return;
    stored_round(&form, back, again, same, NULL, &c->arena);
    assert_true(tensor_same(codes, again));
}

static Status nearest_codes(void *arg)
{
    Context *c = arg;
    check_rounding(c, "int8:row:sr:stored", ROWS, 1);
    check_rounding(c, "int8:row:sr:stored", 1, COLUMNS);
    check_rounding(c, "int8:tensor:rne:stored", 1, 1);
    check_rounding(c, "int4:group=4:stored", ROWS, COLUMNS / 4);
    check_rounding(c, "int4:group=8:stored", ROWS / 8, COLUMNS);
    check_rounding(c, "uint8:row:asym:stored", ROWS, 1);
    check_rounding(c, "uint4:group=4:asym:sr:stored", ROWS, COLUMNS / 4);
    return OK;
}

static void numbers_get_the_nearest_codes(void **state)
{
    (void)state;
    with_context(nearest_codes);
}

/* ---- as updates do it ---- */

/* An update from 0 that ends at those numbers rounds them as the first rounding does: codes, scales and zero points. */
static void check_update(Context *c, const char *words, int64_t scale_rows, int64_t scale_columns)
{
    Rng rng = { seed_of(words, 1) };
    const StoredForm form = form_of(c, words);
    Tensor *x = numbers(c, &rng), *less = matrix(c, F32, ROWS, COLUMNS), *out[3] = { 0 };
    Tensor *want[] = { matrix(c, form.type, ROWS, COLUMNS), matrix(c, F32, scale_rows, scale_columns),
                       form.zeros ? matrix(c, form.type, scale_rows, scale_columns) : NULL };
    stored_round(&form, x, want[0], want[1], want[2], &c->arena);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        tensor_set_f64(less, i, -tensor_get_f64(x, i));
    Graph *g = graph_new(&c->ir, &c->arena, "update");
    Build b = build_at_end(g);
    struct {
        UpdateForm form;
        float rest[8];
    } attr = { .form = { .least = form.least, .largest = form.largest, .rounding = ROUND_RNE } };
    Node *in[UPDATE_OPERANDS] = { NULL };
    in[UPDATE_PARAMETER] = build_const(&b, matrix(c, form.type, ROWS, COLUMNS));
    in[UPDATE_GRADIENT] = build_const(&b, less);
    in[UPDATE_LR] = build_scalar(&b, F32, 1);
    in[UPDATE_STEP] = build_scalar(&b, I64, 1);
    in[UPDATE_X_SCALE] = build_const(&b, matrix(c, F32, scale_rows, scale_columns));
    in[UPDATE_X_ZERO] = form.zeros ? build_const(&b, matrix(c, form.type, scale_rows, scale_columns)) : NULL;
    const int n = form.zeros ? 3 : 2;
    Node *next = build_node_n(&b, OP_update_sgd, &attr, UPDATE_X_ZERO + form.zeros, in, n), *parts[3];
    for (int i = 0; i < n; i++)
        parts[i] = build_part(&b, next, i);
    assert_int_equal(b.status, OK);
    graph_return(g, n, parts, NULL);
    assert_int_equal(evaluate(g, NULL, &c->heap, NULL, out), OK);
    for (int i = 0; i < n; i++) {
        require(tensor_same(out[i], want[i]), "%s: result %d of an update is another\n", words, i);
        tensor_drop(&c->heap, out[i]);
    }
}

static Status as_updates(void *arg)
{
    Context *c = arg;
    check_update(c, "int8:row:stored", ROWS, 1);
    check_update(c, "int8:tensor:rne:stored", 1, 1);
    check_update(c, "int4:group=4:stored", ROWS, COLUMNS / 4);
    check_update(c, "uint8:row:asym:stored", ROWS, 1);
    check_update(c, "uint4:group=8:asym:stored", ROWS, COLUMNS / 8);
    return OK;
}

static void numbers_get_the_codes_that_updates_give_them(void **state)
{
    (void)state;
    with_context(as_updates);
}

/* ---- by chance ---- */

/* What `words` make of a row whose largest number is 1 and whose others lie the part `p` above the code `low`: how many of
 * these got the next one. */
static int64_t count_up(Context *c, const char *words, const char *name, double low, double p, Tensor *codes,
                        Tensor *scale, Tensor *zero)
{
    const StoredForm form = form_of(c, words);
    const int64_t n = codes->type->dims[1];
    const double step = form.largest ? 1.0 / (double)(form.largest - form.least) * (form.zeros ? 1 : 2) : 0x1p-10;
    Tensor *x = matrix(c, F32, 1, n);
    int64_t up = 0;
    for (int64_t j = 0; j < n; j++)
        tensor_set_f64(x, j, j ? (low + p) * step : 1);
    stored_begin(&form, name, x, codes, scale, zero, &c->arena);
    for (int64_t j = 1; j < n; j++) {
        const double code = form.largest ? (double)tensor_get_i64(codes, j) : tensor_get_f64(codes, j) / step;
        const double above = code - low;
        assert_true(above == 0 || above == 1);
        up += above == 1;
    }
    return up;
}

/* As often as a number is near to the next code it gets that; the same name draws the same, another one otherwise; without
 * from=sr it is the nearest. */
static void check_chance(Context *c, const char *words, DType type, double low, double p, bool scaled)
{
    enum { N = 4097 };
    const bool zeros = type == U8 || type == U4;
    Tensor *codes = matrix(c, type, 1, N), *again = matrix(c, type, 1, N), *other = matrix(c, type, 1, N);
    Tensor *scale = scaled ? matrix(c, F32, 1, 1) : NULL, *zero = zeros ? matrix(c, type, 1, 1) : NULL;
    const char *chance = arena_printf(&c->arena, "%s:from=sr", words);
    const int64_t up = count_up(c, chance, "w", low, p, codes, scale, zero);
    const double mean = p * (N - 1), deviation = sqrt(p * (1 - p) * (N - 1));
    require(fabs((double)up - mean) < 4 * deviation, "%s: %lld of %d are rounded up, %g expected\n", chance,
            (long long)up, N - 1, mean);
    count_up(c, chance, "w", low, p, again, scale, zero);
    assert_true(tensor_same(codes, again));
    count_up(c, chance, "v", low, p, other, scale, zero);
    assert_false(tensor_same(codes, other));
    assert_int_equal(count_up(c, words, "w", low, p, again, scale, zero), p > 0.5 ? N - 1 : 0);
    if (!scaled || zeros)
        return;
    const StoredForm form = form_of(c, chance);
    Tensor *numbers = matrix(c, F32, 1, N);
    stored_numbers(codes, scale, zero, numbers);
    stored_begin(&form, "v", numbers, again, scale, zero, &c->arena);
    assert_true(tensor_same(codes, again)); /* what has a code keeps it */
}

static Status chance(void *arg)
{
    Context *c = arg;
    check_chance(c, "int8:row:sr:stored", I8, 10, 0.3, true);
    check_chance(c, "int8:row:sr:stored", I8, -11, 0.75, true);
    check_chance(c, "int4:row:sr:stored", I4, 2, 0.125, true);
    check_chance(c, "uint8:row:asym:stored", U8, 40, 0.3, true);
    check_chance(c, "bf16:sr:stored", BF16, 128, 0.3, false);
    return OK;
}

static void floats_become_codes_by_chance(void **state)
{
    (void)state;
    with_context(chance);
}

/* ---- ranks ---- */

/* The next codes and scales of some rows, each a tensor of its own, from a draw for every number of the whole. */
static void update_rows(Context *c, const Tensor *const *whole, int64_t first, int64_t n, Tensor *out[2])
{
    Graph *g = graph_new(&c->ir, &c->arena, "update");
    Build b = build_at_end(g);
    const UpdateForm form = { .least = -127, .largest = 127, .rounding = ROUND_SR };
    struct {
        UpdateForm form;
        float rest[8];
    } attr = { .form = form };
    Node *in[UPDATE_OPERANDS] = { NULL };
    static const int operands[] = { UPDATE_PARAMETER, UPDATE_GRADIENT, UPDATE_X_SCALE, UPDATE_DRAW };
    for (size_t i = 0; i < COUNT(operands); i++) {
        const int64_t columns = whole[i]->type->dims[1];
        Tensor *part = matrix(c, whole[i]->type->dtype, n, columns);
        const size_t row = whole[i]->bytes / ROWS;
        memcpy(part->data, (const char *)whole[i]->data + (size_t)first * row, (size_t)n * row);
        in[operands[i]] = build_const(&b, part);
    }
    in[UPDATE_LR] = build_scalar(&b, F32, 0.01);
    in[UPDATE_STEP] = build_scalar(&b, I64, 1);
    Node *next = build_node_n(&b, OP_update_sgd, &attr, UPDATE_DRAW + 1, in, 2);
    Node *parts[] = { build_part(&b, next, 0), build_part(&b, next, 1) };
    assert_int_equal(b.status, OK);
    graph_return(g, 2, parts, NULL);
    assert_int_equal(evaluate(g, NULL, &c->heap, NULL, out), OK);
}

/* Rows are shared out; each rank updates its own and sends codes and scales to all others. */
static size_t gather_from_ranks(Context *c, const Tensor *const *whole, int ranks, Tensor *codes, Tensor *scale)
{
    size_t sent = 0;
    for (int r = 0; r < ranks; r++) {
        Tensor *out[2] = { 0 };
        const int64_t first = ROWS * r / ranks, n = ROWS * (r + 1) / ranks - first;
        if (!n)
            continue;
        update_rows(c, whole, first, n, out);
        memcpy((char *)codes->data + first * COLUMNS, out[0]->data, out[0]->bytes);
        memcpy((float *)scale->data + first, out[1]->data, out[1]->bytes);
        sent += out[0]->bytes + out[1]->bytes;
        tensor_drop(&c->heap, out[0]);
        tensor_drop(&c->heap, out[1]);
    }
    return sent;
}

static Status ranks(void *arg)
{
    Context *c = arg;
    static const int ranks[] = { 2, 3, 5, 8, 24 };
    Rng rng = { seed_of("ranks", 0) };
    const StoredForm form = form_of(c, "int8:row:sr:stored");
    Tensor *w = numbers(c, &rng), *gradient = numbers(c, &rng), *codes = matrix(c, I8, ROWS, COLUMNS),
           *scale = matrix(c, F32, ROWS, 1), *draw = matrix(c, F32, ROWS, COLUMNS), *one = matrix(c, I8, ROWS, COLUMNS),
           *one_scale = matrix(c, F32, ROWS, 1), *many = matrix(c, I8, ROWS, COLUMNS),
           *many_scale = matrix(c, F32, ROWS, 1);
    stored_round(&form, w, codes, scale, NULL, &c->arena);
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        tensor_set_f64(draw, i, floor(rng_unit(&rng) * 0x1p24) / 0x1p24);
    const Tensor *whole[] = { codes, gradient, scale, draw };
    const size_t sent = gather_from_ranks(c, whole, 1, one, one_scale);
    assert_int_equal(sent, ROWS * COLUMNS + ROWS * sizeof(float)); /* a byte a number: no f32 of it is sent */
    assert_false(tensor_same(codes, one));
    for (size_t i = 0; i < COUNT(ranks); i++) {
        assert_int_equal(gather_from_ranks(c, whole, ranks[i], many, many_scale), sent);
        assert_true(tensor_same(one, many) && tensor_same(one_scale, many_scale));
    }
    return OK;
}

static void any_number_of_ranks_comes_to_the_same_bytes(void **state)
{
    (void)state;
    with_context(ranks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_get_the_nearest_codes),
        cmocka_unit_test(numbers_get_the_codes_that_updates_give_them),
        cmocka_unit_test(floats_become_codes_by_chance),
        cmocka_unit_test(any_number_of_ranks_comes_to_the_same_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
