/* Calls of narrow types that multiply what they have computed themselves: the same written out, with each rounding in its
 * place, gives the same bits. */
#include "ops/attend/attention.h"
#include "ops/card/make.h"
#include "ops/recurrent/recurrent.h"
#include "support/calls.h"

static const DType narrow_types[] = { F16, BF16 };

/* The values of two nodes of one graph. */
static void same_bits(Context *c, Node *a, Node *b)
{
    Tensor *x, *y;
    assert_ptr_equal(a->type, b->type);
    x = value_of(c, a, NULL);
    y = value_of(c, b, NULL);
    assert_true(tensor_same(x, y));
    tensor_drop(&c->heap, x);
    tensor_drop(&c->heap, y);
}

static Node *wide(Build *b, Node *x)
{
    return build_amp_cast(b, x, F32);
}

static Node *rounded(Build *b, Node *x, DType to)
{
    return wide(b, build_amp_cast(b, x, to));
}

static Status attention_rounds_probabilities(void *arg)
{
    Context *c = arg;
    Rng rng = { 1 };
    for (size_t i = 0; i < COUNT(narrow_types); i++) {
        const DType t = narrow_types[i];
        const MatmulAttr turned = { .tb = true };
        Build b = fresh(c);
        Node *q = DRAW(&b, &rng, t, 2, 3, 5, 7), *k = DRAW(&b, &rng, t, 2, 3, 6, 7), *v = DRAW(&b, &rng, t, 2, 3, 6, 4),
             *mask = DRAW(&b, &rng, F32, 5, 6);
        Node *y = CALL_ATTR(&b, attention,
                            ((AttentionAttr){ .left_window_size = -1, .right_window_size = -1, .scale = 0.3f }), q, k,
                            v, mask);
        Node *scores = CALL_ATTR(&b, matmul, turned, wide(&b, q), wide(&b, k));
        scores = CALL(&b, add, CALL(&b, mul, scores, build_scalar(&b, F32, (double)0.3f)), mask);
        Node *p = rounded(&b, make_softmax(&b, scores, 3), t);
        same_bits(c, y, build_amp_cast(&b, CALL(&b, matmul, p, wide(&b, v)), t));
    }
    return OK;
}

static Status einsum_rounds_between_products(void *arg)
{
    Context *c = arg;
    Rng rng = { 2 };
    for (size_t i = 0; i < COUNT(narrow_types); i++) {
        const DType t = narrow_types[i];
        const EinsumAttr narrow = { .equation = "ab,bc,cd->ad" }, out = { .equation = "ab,bc,cd->ad", .out = F32 + 1 };
        Build b = fresh(c);
        Node *x[] = { DRAW(&b, &rng, t, 3, 9), DRAW(&b, &rng, t, 9, 5), DRAW(&b, &rng, t, 5, 4) };
        Node *first = rounded(&b, CALL(&b, matmul, wide(&b, x[0]), wide(&b, x[1])), t);
        Node *want = CALL(&b, matmul, first, wide(&b, x[2]));
        same_bits(c, build_node(&b, OP_einsum, &out, 3, x), want);
        same_bits(c, build_node(&b, OP_einsum, &narrow, 3, x), build_amp_cast(&b, want, t));
    }
    return OK;
}

enum { STEPS = 3, BATCH = 2, INPUT = 5, HIDDEN = 4 };

/* What a cell of one direction without bias reads: x [steps, batch, input], w and r. */
typedef struct Weights {
    Node *x, *w, *r;
} Weights;

static Weights weights(Build *b, Rng *rng, DType t, int gates)
{
    return (Weights){ DRAW(b, rng, t, STEPS, BATCH, INPUT), DRAW(b, rng, t, 1, gates * HIDDEN, INPUT),
                      DRAW(b, rng, t, 1, gates * HIDDEN, HIDDEN) };
}

/* Rows [from, from + HIDDEN) of a weight, wide. */
static Node *gate(Build *b, Node *w, int which, int64_t columns)
{
    Node *rows = make_slice(b, wide(b, w), 1, which * HIDDEN, (which + 1) * HIDDEN, 1);
    return make_reshape(b, rows, 2, (const int64_t[]){ HIDDEN, columns });
}

/* x of one step times a gate's part of W. */
static Node *driven(Build *b, const Weights *v, int which, int64_t step)
{
    Node *x = make_reshape(b, make_slice(b, wide(b, v->x), 0, step, step + 1, 1), 2, (const int64_t[]){ BATCH, INPUT });
    return CALL_ATTR(b, matmul, ((MatmulAttr){ .tb = true }), x, gate(b, v->w, which, INPUT));
}

/* h times a gate's part of R. */
static Node *recalled(Build *b, const Weights *v, int which, Node *h, DType t)
{
    return CALL_ATTR(b, matmul, ((MatmulAttr){ .tb = true }), rounded(b, h, t), gate(b, v->r, which, HIDDEN));
}

static Node *as_y(Build *b, Node *const *h, DType t)
{
    Node *y = make_concat(b, 0, STEPS, h);
    return build_amp_cast(b, make_reshape(b, y, 4, (const int64_t[]){ STEPS, 1, BATCH, HIDDEN }), t);
}

static Status rnn_rounds_what_meets_its_weights(void *arg)
{
    Context *c = arg;
    Rng rng = { 3 };
    for (size_t i = 0; i < COUNT(narrow_types); i++) {
        const DType t = narrow_types[i];
        Build b = fresh(c);
        const Weights v = weights(&b, &rng, t, 1);
        Node *h[STEPS + 1] = { make_zeros(&b, F32, 2, (const int64_t[]){ BATCH, HIDDEN }) };
        for (int s = 0; s < STEPS; s++)
            h[s + 1] = CALL(&b, tanh, CALL(&b, add, driven(&b, &v, 0, s), recalled(&b, &v, 0, h[s], t)));
        same_bits(c, CALL(&b, rnn, v.x, v.w, v.r), as_y(&b, h + 1, t));
    }
    return OK;
}

/* The gated state is rounded where it meets R; the state itself goes on as f32. */
static Status gru_rounds_what_meets_its_weights(void *arg)
{
    enum { Z, R, H };
    Context *c = arg;
    Rng rng = { 4 };
    for (size_t i = 0; i < COUNT(narrow_types); i++) {
        const DType t = narrow_types[i];
        Build b = fresh(c);
        const Weights v = weights(&b, &rng, t, 3);
        Node *h[STEPS + 1] = { make_zeros(&b, F32, 2, (const int64_t[]){ BATCH, HIDDEN }) };
        for (int s = 0; s < STEPS; s++) {
            Node *z = CALL(&b, sigmoid, CALL(&b, add, driven(&b, &v, Z, s), recalled(&b, &v, Z, h[s], t)));
            Node *r = CALL(&b, sigmoid, CALL(&b, add, driven(&b, &v, R, s), recalled(&b, &v, R, h[s], t)));
            Node *gated = recalled(&b, &v, H, CALL(&b, mul, r, h[s]), t);
            Node *next = CALL(&b, tanh, CALL(&b, add, driven(&b, &v, H, s), gated));
            Node *fresh_part = CALL(&b, mul, CALL(&b, sub, build_scalar(&b, F32, 1), z), next);
            h[s + 1] = CALL(&b, add, fresh_part, CALL(&b, mul, z, h[s]));
        }
        same_bits(c, CALL(&b, gru, v.x, v.w, v.r), as_y(&b, h + 1, t));
    }
    return OK;
}

static Status lstm_gives_its_state_wide(void *arg)
{
    Context *c = arg;
    Rng rng = { 5 };
    for (size_t i = 0; i < COUNT(narrow_types); i++) {
        const DType t = narrow_types[i];
        Build b = fresh(c);
        const Weights v = weights(&b, &rng, t, 4);
        Node *ins[8] = { v.x, v.w, v.r, DRAW(&b, &rng, F32, 1, 8 * HIDDEN) };
        ins[6] = DRAW(&b, &rng, F32, 1, BATCH, HIDDEN);
        Node *y[2];
        for (int k = 0; k < 2; k++) {
            RecurrentAttr *at = attrs_default(&c->arena, op_lstm.attrs);
            at->state_type = k ? F32 + 1 : 0;
            y[k] = build_node_n(&b, OP_lstm, at, 8, ins, 3);
        }
        same_bits(c, build_part(&b, y[0], 0), build_part(&b, y[1], 0));
        assert_int_equal(build_part(&b, y[1], 2)->type->dtype, F32);
        same_bits(c, build_part(&b, y[0], 2), build_amp_cast(&b, build_part(&b, y[1], 2), t));
    }
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(attention_rounds_probabilities)
TEST(einsum_rounds_between_products)
TEST(rnn_rounds_what_meets_its_weights)
TEST(gru_rounds_what_meets_its_weights)
TEST(lstm_gives_its_state_wide)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_rounds_probabilities),
        cmocka_unit_test(test_einsum_rounds_between_products),
        cmocka_unit_test(test_rnn_rounds_what_meets_its_weights),
        cmocka_unit_test(test_gru_rounds_what_meets_its_weights),
        cmocka_unit_test(test_lstm_gives_its_state_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
