/* Normalizations and losses against their formulas in f64, and the corners where formulas break. */
#include "ops/control/reverse.h"
#include "ops/norm/norm.h"
#include "support/calls.h"

/* Mean and variance of the elements whose index is first + i * step. */
typedef struct Stats {
    double mean, var;
} Stats;

static Stats stats_of(const Tensor *x, const int64_t *where, int64_t n)
{
    Stats s = { 0, 0 };
    for (int64_t i = 0; i < n; i++)
        s.mean += at(x, where[i]) / (double)n;
    for (int64_t i = 0; i < n; i++)
        s.var += (at(x, where[i]) - s.mean) * (at(x, where[i]) - s.mean) / (double)n;
    return s;
}

/* The elements of [2,4,3] that share statistics with element i, by how the op groups them. */
typedef enum Grouping { BY_CHANNEL, BY_INSTANCE, BY_GROUP, BY_LAYER } Grouping;

static int64_t peers(Grouping how, int64_t i, int64_t *where)
{
    int64_t n = 0;
    for (int64_t k = 0; k < 24; k++) {
        const int64_t c = k / 3 % 4, ci = i / 3 % 4;
        const bool image = k / 12 == i / 12;
        const bool same = how == BY_CHANNEL    ? c == ci
                          : how == BY_INSTANCE ? image && c == ci
                          : how == BY_GROUP    ? image && c / 2 == ci / 2
                                               : image;
        if (same)
            where[n++] = k;
    }
    return n;
}

static Status statistics_are_grouped(void *arg)
{
    Context *c = arg;
    Rng rng = { 31 };
    const BatchNormAttr batch = { .epsilon = 0.125f, .momentum = 0.75f, .training_mode = true };
    const NormAttr instance = { .epsilon = 0.125f },
                   group = { .epsilon = 0.125f, .num_groups = 2, .stash_type = F32 + 1 };
    const NormAttr layer = { .epsilon = 0.125f, .axis = -2, .stash_type = F32 + 1 };
    for (int how = BY_CHANNEL; how <= BY_LAYER; how++) {
        Build b = fresh(c);
        Node *x = DRAW(&b, &rng, F64, 2, 4, 3), *y;
        Node *scale = how == BY_LAYER ? DRAW(&b, &rng, F64, 4, 1) : DRAW(&b, &rng, F64, 4);
        Node *bias = how == BY_LAYER ? DRAW(&b, &rng, F64, 4, 1) : DRAW(&b, &rng, F64, 4);
        if (how == BY_CHANNEL)
            y = CALL_ATTR(&b, batch_normalization, batch, x, scale, bias, scale, scale);
        else if (how == BY_INSTANCE)
            y = CALL_ATTR(&b, instance_normalization, instance, x, scale, bias);
        else if (how == BY_GROUP)
            y = CALL_ATTR(&b, group_normalization, group, x, scale, bias);
        else
            y = CALL_ATTR(&b, layer_normalization, layer, x, scale, bias);
        Tensor *t = value_of(c, y, NULL);
        for (int64_t i = 0; i < 24; i++) {
            int64_t where[24];
            const Stats s = stats_of(constant(x), where, peers((Grouping)how, i, where));
            const double want = (at(constant(x), i) - s.mean) / sqrt(s.var + 0.125) * at(constant(scale), i / 3 % 4) +
                                at(constant(bias), i / 3 % 4);
            assert_true(close_to(at(t, i), want, 1e-12));
        }
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* Far from zero one pass in f32 is exact enough as long as the running mean is near. */
static Status batch_statistics_far_from_zero(void *arg)
{
    Context *c = arg;
    Rng rng = { 32 };
    Build b = fresh(c);
    const int64_t one = 1;
    const BatchNormAttr a = { .epsilon = 0, .momentum = 0.5f, .training_mode = true };
    Node *x = sample_tensor(&b, &rng, F32, 2, (int64_t[]){ 1000, 1 }, 9999, 10001);
    Node *scale = sample_tensor(&b, &rng, F32, 1, &one, 1, 1), *zero = sample_tensor(&b, &rng, F32, 1, &one, 0, 0);
    Node *mean = sample_tensor(&b, &rng, F32, 1, &one, 10000.5, 10000.5),
         *var = sample_tensor(&b, &rng, F32, 1, &one, 2, 2);
    int64_t where[1000];
    for (int64_t i = 0; i < 1000; i++)
        where[i] = i;
    const Stats s = stats_of(constant(x), where, 1000);
    Node *in_[] = { x, scale, zero, mean, var };
    Tensor *t = value_of(c, build_node_n(&b, OP_batch_normalization, &a, 5, in_, 3), NULL);
    assert_true(close_to(at(t->items[1], 0), 0.5 * 10000.5 + 0.5 * s.mean, 1e-7));
    assert_true(close_to(at(t->items[2], 0), 0.5 * 2 + 0.5 * s.var, 1e-6));
    for (int64_t i = 0; i < 1000; i++)
        assert_true(close_to(at(t->items[0], i), (at(constant(x), i) - s.mean) / sqrt(s.var), 1e-5));
    tensor_drop(&c->heap, t);
    Build b2 = fresh(c);
    const BatchNormAttr inference = { .epsilon = 0, .momentum = 0.5f };
    for (int i = 0; i < 5; i++)
        in_[i] = build_const(&b2, constant(in_[i]));
    expect_refused(c, &b2, build_node_n(&b2, OP_batch_normalization, &inference, 5, in_, 3), "only training");
    return OK;
}

/* The batch's own mean and 1 / deviation are results too, f32 also beside narrow data and narrow running statistics; the
 * way back reads them, and takes no statistics again. */
static Status batch_saves_what_the_way_back_reads(void *arg)
{
    Context *c = arg;
    Rng rng = { 37 };
    Build b = fresh(c);
    const BatchNormAttr a = { .epsilon = 0.25f, .momentum = 0.5f, .training_mode = true };
    Node *x = DRAW(&b, &rng, F16, 2, 4, 3), *scale = DRAW(&b, &rng, F16, 4), *v = DRAW(&b, &rng, F16, 4);
    Node *in_[] = { x, scale, v, v, v };
    Node *call = build_node_n(&b, OP_batch_normalization, &a, 5, in_, BATCH_NORM_RESULTS), *y = build_part(&b, call, 0);
    Node *dy = DRAW(&b, &rng, F16, 2, 4, 3), *parts[] = { call, NULL };
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = 1, .x = &x };
    ReverseResult r;
    assert_int_equal(reverse(&b, &q, &c->arena, &r), OK);
    int sums = 0;
    for (const Node *n = b.graph->first; n; n = n->next) {
        assert_true(n->op != OP_reduce_mean);
        sums += n->op == OP_reduce_sum;
    }
    assert_int_equal(sums, 2); /* of dy, and of dy (x - mean) */
    parts[1] = r.dx[0];
    Tensor *all = value_of(c, build_tuple(&b, 2, parts), NULL), *t = all->items[0];
    for (int i = BATCH_NORM_MEAN; i < BATCH_NORM_RESULTS; i++)
        assert_true(t->items[i]->type == type_vector(&c->ir.types, F32, 4));
    for (int64_t i = 0; i < 24; i++) {
        int64_t where[24];
        const int64_t n = peers(BY_CHANNEL, i, where), ch = i / 3 % 4;
        const Stats s = stats_of(constant(x), where, n);
        const double inverse = 1 / sqrt(s.var + 0.25), unit = (at(constant(x), i) - s.mean) * inverse;
        double level = 0, along = 0;
        for (int64_t k = 0; k < n; k++) {
            level += at(constant(dy), where[k]) / (double)n;
            along += at(constant(dy), where[k]) * (at(constant(x), where[k]) - s.mean) * inverse / (double)n;
        }
        assert_true(close_to(at(t->items[BATCH_NORM_MEAN], ch), s.mean, 1e-6));
        assert_true(close_to(at(t->items[BATCH_NORM_INVERSE], ch), inverse, 1e-6));
        assert_true(close_to(at(all->items[1], i),
                             at(constant(scale), ch) * inverse * (at(constant(dy), i) - level - unit * along), 1e-5));
    }
    tensor_drop(&c->heap, all);
    return OK;
}

/* Mean and 1 / deviation come in the type that stash_type says. */
static Status layer_results(void *arg)
{
    Context *c = arg;
    Rng rng = { 33 };
    Build b = fresh(c);
    const NormAttr a = { .epsilon = 0.5f, .axis = 1, .stash_type = BF16 + 1 };
    Node *x = DRAW(&b, &rng, F16, 2, 5), *scale = DRAW(&b, &rng, F32, 5), *in_[] = { x, scale };
    Tensor *t = value_of(c, build_node_n(&b, OP_layer_normalization, &a, 2, in_, 3), NULL);
    assert_int_equal(t->items[0]->type->dtype, F16);
    assert_int_equal(t->items[1]->type->dtype, BF16);
    assert_int_equal(t->items[2]->type->dims[1], 1);
    for (int64_t i = 0; i < 2; i++) {
        const Stats s = stats_of(constant(x), (int64_t[]){ 5 * i, 5 * i + 1, 5 * i + 2, 5 * i + 3, 5 * i + 4 }, 5);
        assert_true(close_to(at(t->items[1], i), s.mean, 0x1p-8));
        assert_true(close_to(at(t->items[2], i), 1 / sqrt(s.var + 0.5), 0x1p-8));
    }
    tensor_drop(&c->heap, t);
    return OK;
}

static Status plain_normalizations(void *arg)
{
    Context *c = arg;
    Rng rng = { 34 };
    Build b = fresh(c);
    const LpNormAttr one = { .axis = 0, .p = 1 };
    const LrnAttr local = { .alpha = 0.5f, .beta = 0.75f, .bias = 2, .size = 4 };
    const NormAttr root = { .epsilon = 0.25f, .axis = -1, .stash_type = F32 + 1 };
    Node *x = DRAW(&b, &rng, F64, 2, 5, 3), *zero = sample_tensor(&b, &rng, F32, 1, (int64_t[]){ 4 }, 0, 0);
    Node *scale = DRAW(&b, &rng, F64, 3);
    Node *parts[] = { CALL_ATTR(&b, lp_normalization, one, x), CALL_ATTR(&b, lp_normalization, one, zero),
                      CALL_ATTR(&b, lrn, local, x), CALL_ATTR(&b, rms_normalization, root, x, scale) };
    Tensor *t = value_of(c, build_tuple(&b, 4, parts), NULL);
    const Tensor *v = constant(x);
    for (int64_t i = 0; i < 30; i++) {
        const int64_t ch = i / 3 % 5;
        double squares = 0, row = 0;
        for (int64_t k = ch - 1; k <= ch + 2; k++) /* of four, one stands before and two behind */
            squares += k < 0 || k > 4 ? 0 : pow(at(v, i + (k - ch) * 3), 2);
        for (int64_t k = 0; k < 3; k++)
            row += pow(at(v, i / 3 * 3 + k), 2) / 3;
        assert_true(close_to(at(t->items[0], i), at(v, i) / (fabs(at(v, i)) + fabs(at(v, (i + 15) % 30))), 1e-12));
        assert_true(close_to(at(t->items[2], i), at(v, i) / pow(2 + 0.5 / 4 * squares, 0.75), 1e-12));
        assert_true(close_to(at(t->items[3], i), at(v, i) / sqrt(row + 0.25) * at(constant(scale), i % 3), 1e-12));
    }
    for (int64_t i = 0; i < 4; i++)
        assert_true(at(t->items[1], i) == 0);
    tensor_drop(&c->heap, t);
    return OK;
}

/* ---- losses ---- */

/* Scores [2,3,4], targets [2,4], one of which may be ignored. */
static Status losses_by_hand(void *arg)
{
    Context *c = arg;
    Rng rng = { 35 };
    for (int how = 0; how < 12; how++) {
        Build b = fresh(c);
        const int reduction = how % 3;
        const bool weighted = how / 3 % 2, ignored = how / 6;
        const LossAttr a = { .ignore_index = ignored ? -7 : IGNORE_NONE, .reduction = reduction };
        Node *x = DRAW(&b, &rng, F64, 2, 3, 4), *target = sample_tensor(&b, &rng, I32, 2, (int64_t[]){ 2, 4 }, 0, 2);
        Node *weight = sample_tensor(&b, &rng, F64, 1, (int64_t[]){ 3 }, 0.5, 2);
        double losses[8], sum = 0, total = 0;
        if (ignored)
            tensor_set_i64((Tensor *)(uintptr_t)constant(target), 5, -7);
        for (int64_t i = 0; i < 8; i++) {
            const int64_t n = i / 4, d = i % 4, k = tensor_get_i64(constant(target), i);
            double all = 0, w;
            for (int64_t m = 0; m < 3; m++)
                all += exp(at(constant(x), n * 12 + m * 4 + d));
            w = k == -7 ? 0 : weighted ? at(constant(weight), k) : 1;
            losses[i] = k == -7 ? 0 : w * (log(all) - at(constant(x), n * 12 + k * 4 + d));
            sum += losses[i];
            total += w;
        }
        Node *in_[] = { x, target, weight };
        Tensor *t = value_of(c, build_node_n(&b, OP_softmax_cross_entropy_loss, &a, weighted ? 3 : 2, in_, 2), NULL);
        Build b2 = fresh(c);
        Node *again[] = { build_const(&b2, t->items[1]), build_const(&b2, constant(target)),
                          build_const(&b2, constant(weight)) };
        Tensor *u = value_of(c, build_node(&b2, OP_negative_log_likelihood_loss, &a, weighted ? 3 : 2, again), NULL);
        assert_true(tensor_same(t->items[0], u)); /* the one is the other of log_softmax */
        assert_int_equal(tensor_elements(u), reduction == 0 ? 8 : 1);
        for (int64_t i = 0; reduction == 0 && i < 8; i++)
            assert_true(close_to(at(u, i), losses[i], 1e-12));
        assert_true(reduction == 0 || close_to(at(u, 0), reduction == 1 ? sum : sum / total, 1e-12));
        tensor_drop(&c->heap, t);
        tensor_drop(&c->heap, u);
    }
    return OK;
}

static Status bad_calls_are_refused(void *arg)
{
    Context *c = arg;
    Rng rng = { 36 };
    Build b = fresh(c);
    Node *x = DRAW(&b, &rng, F32, 2, 3, 4), *v = DRAW(&b, &rng, F32, 3), *w = DRAW(&b, &rng, F32, 4);
    Node *target = sample_tensor(&b, &rng, I64, 2, (int64_t[]){ 2, 4 }, 0, 2),
         *i = sample_tensor(&b, &rng, I64, 1, (int64_t[]){ 3 }, 0, 1);
    const NormAttr axis = { .axis = 3, .stash_type = F32 + 1 }, groups = { .num_groups = 2, .stash_type = F32 + 1 };
    const LpNormAttr p = { .axis = 0, .p = 3 };
    const LrnAttr none = { .size = 0 };
    expect_refused(c, &b, CALL(&b, instance_normalization, x, w, v), "wanted are 3 floats");
    expect_refused(c, &b, CALL(&b, instance_normalization, i, v, v), "needs floats");
    expect_refused(c, &b, CALL_ATTR(&b, layer_normalization, axis, x, w), "axis 3 is outside [-3, 3)");
    expect_refused(c, &b, CALL(&b, rms_normalization, x, v), "does not broadcast");
    expect_refused(c, &b, CALL_ATTR(&b, group_normalization, groups, x, v, v), "3 channels do not split into 2 groups");
    expect_refused(c, &b, CALL_ATTR(&b, lp_normalization, p, x), "p is 3");
    expect_refused(c, &b, CALL_ATTR(&b, lrn, none, x), "size is 0");
    expect_refused(c, &b, CALL(&b, softmax_cross_entropy_loss, x, i), "targets are i64[3]");
    expect_refused(c, &b, CALL(&b, negative_log_likelihood_loss, x, target, w), "wanted are 3 floats");
    expect_refused(c, &b, CALL(&b, global_average_pool, DRAW(&b, &rng, F32, 2, 3)), "at least 3 dimensions");
    tensor_set_i64((Tensor *)(uintptr_t)constant(target), 0, 3);
    expect_failure(c, CALL(&b, negative_log_likelihood_loss, x, target), "3");
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(statistics_are_grouped)
TEST(batch_statistics_far_from_zero)
TEST(batch_saves_what_the_way_back_reads)
TEST(layer_results)
TEST(plain_normalizations)
TEST(losses_by_hand)
TEST(bad_calls_are_refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics_are_grouped),
        cmocka_unit_test(test_batch_statistics_far_from_zero),
        cmocka_unit_test(test_batch_saves_what_the_way_back_reads),
        cmocka_unit_test(test_layer_results),
        cmocka_unit_test(test_plain_normalizations),
        cmocka_unit_test(test_losses_by_hand),
        cmocka_unit_test(test_bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
