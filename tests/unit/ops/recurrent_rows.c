/* Recurrent layers, forward and back: the loops of rows give the bits of one number at a time, at every level of the machine
 * and with any number of threads; so do products of bf16 as it lies, near those of the reference.  A gradient from what the layer kept
 * is that of one that computes it again. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "ops/card/make.h"
#include "ops/recurrent/recurrent.h"
#include "support/calls.h"
#include "support/seed.h"

enum { STEPS = 3, BATCH = 11, INPUT = 19, HIDDEN = 91 }; /* odd ones, but enough that threads share them */

typedef struct Layer {
    const char *name;
    Op op, grad, kept;
    int gates, operands, results, n_grads; /* operands: of the forward call */
} Layer;

static const Layer layers[] = {
    { "lstm", OP_lstm, OP_lstm_grad, OP_lstm_kept, 4, 8, 3, 7 },
    { "gru", OP_gru, OP_gru_grad, OP_gru_kept, 3, 6, 2, 5 },
    { "rnn", OP_rnn, OP_rnn_grad, OP_rnn, 1, 6, 2, 5 },
};

static Node *drawn(Build *b, Rng *rng, DType d, int rank, const int64_t *dims)
{
    return sample_tensor(b, rng, d, rank, dims, -1, 1);
}

/* What is drawn of a layer: the types of what products meet and of the rest of its call, and of its gradient. */
typedef struct Drawing {
    DType own, rest, back;
    bool whole, keeps; /* with all operands; the gradient has what the layer kept */
} Drawing;

/* Result `part` of the forward call or, behind those, of its gradient: drawn anew, and always alike. */
static Node *part_of(Context *c, const Layer *l, const RecurrentAttr *at, Drawing k, int part)
{
    Build b = fresh(c);
    Rng rng = { seed_of(l->name, (uint64_t)at->direction) };
    const int64_t ways = at->direction == RUN_BIDIRECTIONAL ? 2 : 1, wide = l->gates * HIDDEN, batch = BATCH;
    const int64_t states[2][3] = { { ways, BATCH, HIDDEN }, { BATCH, ways, HIDDEN } }, *state = states[at->layout];
    const int64_t ys[2][4] = { { STEPS, ways, BATCH, HIDDEN }, { BATCH, STEPS, ways, HIDDEN } }, *y = ys[at->layout];
    const int64_t xs[2][3] = { { STEPS, BATCH, INPUT }, { BATCH, STEPS, INPUT } };
    const int kept = k.keeps ? RECURRENT_KEPT : 0, behind = l->operands + l->results + 1;
    Node *ins[RECURRENT_OPERANDS] = { NULL };
    ins[0] = drawn(&b, &rng, k.own, 3, xs[at->layout]);
    ins[1] = drawn(&b, &rng, k.own, 3, (const int64_t[]){ ways, wide, INPUT });
    ins[2] = drawn(&b, &rng, k.own, 3, (const int64_t[]){ ways, wide, HIDDEN });
    if (k.whole) {
        ins[3] = drawn(&b, &rng, k.rest, 2, (const int64_t[]){ ways, 2 * wide });
        ins[4] = sample_tensor(&b, &rng, I32, 1, &batch, 0, STEPS);
        for (int i = 5; i < l->operands; i++)
            ins[i] = i < 7 ? drawn(&b, &rng, i == 5 ? k.own : k.rest, 3, state)
                           : drawn(&b, &rng, k.rest, 2, (const int64_t[]){ ways, 3 * HIDDEN });
    }
    RecurrentAttr forward = *at;
    forward.product_type = 0;
    Node *call = build_node_n(&b, k.keeps ? l->kept : l->op, &forward, l->operands, ins, l->results + kept);
    if (part < l->results)
        return build_part(&b, call, part);
    for (int i = 0; i < l->operands; i++)
        ins[i] = i == 4 || !ins[i] ? ins[i] : make_cast(&b, ins[i], k.back);
    for (int i = 0; i < l->results; i++)
        ins[l->operands + i] = drawn(&b, &rng, k.back, i ? 3 : 4, i ? state : y);
    ins[behind - 1] = make_cast(&b, build_part(&b, call, 0), k.back);
    for (int i = 0; i < kept; i++)
        ins[behind + i] = build_part(&b, call, l->results + i);
    call = build_node_n(&b, l->grad, at, behind + kept, ins, l->n_grads);
    return build_part(&b, call, part - l->results);
}

static Tensor *value_at(Context *c, Node *y, const Kernels *level, int threads)
{
    Parallel *pool = threads > 1 ? parallel_open(threads, NULL) : NULL;
    Tensor *t = value_of(c, y, &(EvalOptions){ .kernels = level, .pool = pool });
    parallel_close(pool);
    return t;
}

/* Behind a clip that no number reaches, activations are taken one number after the other. */
static void hold_part(Context *c, const Layer *l, RecurrentAttr at, DType d, bool whole, int part)
{
    const Drawing drawing = { d, d, d, whole, false };
    RecurrentAttr one = at;
    one.clip = 1e30f;
    Tensor *want = value_at(c, part_of(c, l, &one, drawing, part), kernels_named("base"), 1);
    for (int k = 0; kernels_levels[k]; k++)
        for (int threads = kernels_levels[k + 1] ? 3 : 1; threads <= 3; threads++) {
            const Kernels *level = kernels_named(kernels_levels[k]);
            if (!level)
                continue;
            Tensor *got = value_at(c, part_of(c, l, &at, drawing, part), level, threads);
            if (got->bytes != want->bytes || memcmp(got->data, want->data, got->bytes) != 0) {
                print_error("%s, direction %d, part %d, level %s, %d threads: other bits\n", l->name, at.direction,
                            part, kernels_levels[k], threads);
                assert_true(false);
            }
            tensor_drop(&c->heap, got);
        }
    tensor_drop(&c->heap, want);
}

static void hold_type(Context *c, DType d)
{
    for (size_t i = 0; i < COUNT(layers); i++)
        for (int form = 0; form < (d == F32 ? 6 : 2); form++) {
            const RecurrentAttr at = { .direction = form % 3,
                                       .layout = form == 1 || form == 5,
                                       .linear_before_reset = form % 2,
                                       .input_forget = form / 3 };
            for (int part = 0; part < layers[i].results + (d == F16 ? 0 : layers[i].n_grads); part++)
                hold_part(c, &layers[i], at, d, form % 3 != 1, part);
        }
}

static Tensor *words_at(Context *c, const Layer *l, const RecurrentAttr *at, int part, bool narrow, int threads)
{
    Parallel *pool = threads > 1 ? parallel_open(threads, NULL) : NULL;
    const DType d = part < l->results ? BF16 : F32;
    Node *y = part_of(c, l, at, (Drawing){ d, d, d, true, false }, part);
    Tensor *t = value_of(c, y, &(EvalOptions){ .pool = pool, .narrow = narrow });
    parallel_close(pool);
    return t;
}

/* Products of few hundred numbers of bf16: near in units of the largest number of all. */
static bool is_near(const Tensor *x, const Tensor *y)
{
    double most = 0, apart = 0;
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        most = fmax(most, fabs(tensor_get_f64(x, i)));
        apart = fmax(apart, fabs(tensor_get_f64(x, i) - tensor_get_f64(y, i)));
    }
    return apart <= 0x1p-5 * most;
}

static bool is_same(const Tensor *x, const Tensor *y)
{
    return x->bytes == y->bytes && memcmp(x->data, y->data, x->bytes) == 0;
}

/* Of the results whose bits are not those of the reference there are some, where the level has an instruction. */
static int hold_words(Context *c, const Layer *l, const RecurrentAttr *at, int part)
{
    Tensor *want = words_at(c, l, at, part, false, 1), *first = words_at(c, l, at, part, true, 1);
    bool good = is_near(want, first);
    for (int threads = 2; threads <= 3; threads++) {
        Tensor *t = words_at(c, l, at, part, true, threads);
        good = good && is_same(first, t);
        tensor_drop(&c->heap, t);
    }
    require(good, "%s, direction %d, part %d in words: other bits, or far ones\n", l->name, at->direction, part);
    const bool moved = !is_same(want, first);
    tensor_drop(&c->heap, want);
    tensor_drop(&c->heap, first);
    return moved;
}

static Status words_of_bf16(void *arg)
{
    Context *c = arg;
    int moved = 0;
    for (size_t i = 0; i < COUNT(layers); i++)
        for (int form = 0; form < 6; form++) {
            const RecurrentAttr at = {
                .direction = form % 3, .layout = form / 3, .linear_before_reset = form != 4, .product_type = BF16 + 1
            };
            for (int part = 0; part < layers[i].results + layers[i].n_grads; part++)
                moved += hold_words(c, &layers[i], &at, part);
        }
    assert_true(!kernels_packed_bf16(kernels_best()) || moved > 0);
    return OK;
}

/* Without the narrow loops, too, what reaches the gates is rounded where it is multiplied. */
static Status products_are_rounded(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(layers); i++)
        for (int part = 0; part < 3; part++) {
            const RecurrentAttr wide = { 0 }, narrow = { .product_type = BF16 + 1 };
            Tensor *x = words_at(c, &layers[i], &wide, layers[i].results + part, false, 1);
            Tensor *y = words_at(c, &layers[i], &narrow, layers[i].results + part, false, 1);
            assert_true(!is_same(x, y) && is_near(x, y));
            tensor_drop(&c->heap, x);
            tensor_drop(&c->heap, y);
        }
    return OK;
}

/* Every result of the layer and of its gradient: computed again, or from what the layer kept. */
static void hold_kept(Context *c, const Layer *l, const RecurrentAttr *at, DType d, int part)
{
    const DType width = d == F64 ? F64 : F32;
    const Drawing again = { d, width, width, true, false }, keeps = { d, width, width, true, true };
    Tensor *want = value_at(c, part_of(c, l, at, again, part), kernels_best(), 1);
    for (int threads = 1; threads <= 3; threads += 2) {
        Tensor *got = value_at(c, part_of(c, l, at, keeps, part), kernels_best(), threads);
        require(is_same(want, got), "%s of %s, direction %d, part %d, %d threads: what was kept gives other bits\n",
                l->name, dtype_name(d), at->direction, part, threads);
        tensor_drop(&c->heap, got);
    }
    tensor_drop(&c->heap, want);
}

static Status kept(void *arg)
{
    static const DType types[] = { F32, F64, BF16 };
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t i = 0; i < (types[t] == BF16 ? 1 : 2); i++)
            for (int form = 0; form < 6; form += types[t] == F32 ? 1 : 5) {
                const RecurrentAttr at = { .direction = form % 3,
                                           .layout = form / 3,
                                           .linear_before_reset = true,
                                           .input_forget = i == 0 && form % 2,
                                           .state_type = types[t] == BF16 && form % 2 ? F32 + 1 : 0,
                                           .product_type = types[t] == BF16 ? BF16 + 1 : 0 };
                for (int part = 0; part < layers[i].results + layers[i].n_grads; part++)
                    hold_kept(arg, &layers[i], &at, types[t], part);
            }
    return OK;
}

static Status rows_of_f32(void *arg)
{
    hold_type(arg, F32);
    return OK;
}

static Status rows_of_f64(void *arg)
{
    hold_type(arg, F64);
    return OK;
}

static Status rows_of_f16(void *arg)
{
    hold_type(arg, F16);
    return OK;
}

#define TEST(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
TEST(rows_of_f32)
TEST(rows_of_f64)
TEST(rows_of_f16)
TEST(words_of_bf16)
TEST(products_are_rounded)
TEST(kept)
#undef TEST

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_f32),          cmocka_unit_test(test_rows_of_f64),
        cmocka_unit_test(test_rows_of_f16),          cmocka_unit_test(test_words_of_bf16),
        cmocka_unit_test(test_products_are_rounded), cmocka_unit_test(test_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
