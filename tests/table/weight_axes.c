/* The dimension along which a card says that slices of a weight may have scales of their own: two slices never meet in
 * one element of the result. */
#include "ops/card/words.h"
#include "ops/contract/contract.h"
#include "support/calls.h"
#include "support/samples.h"

/* Their rows are the channels of what goes into a gate; behind it they meet in the next step. */
static bool meets_behind_gates(Op op)
{
    return op == OP_lstm || op == OP_gru || op == OP_rnn;
}

static void weights_have_an_axis(void **state)
{
    (void)state;
    for (int i = 0; i < OP_COUNT; i++) {
        const QuantCard *card = &ops_table.defs[i]->quant;
        for (size_t k = 0; k < COUNT(card->in); k++)
            if (card->in[k] == QUANT_WEIGHT || card->in[k] == QUANT_GATHER)
                require(card->weight_axis != NULL, "%s has a weight and no axis", ops_table.defs[i]->name);
    }
}

/* Adds to slice `slice` of a weight along an axis. */
static void shift(Tensor *weight, int axis, int64_t slice)
{
    const Type *t = weight->type;
    int64_t inner = 1;
    for (int d = axis + 1; d < t->rank; d++)
        inner *= t->dims[d];
    for (int64_t i = 0; i < tensor_elements(weight); i++) {
        if (i / inner % t->dims[axis] != slice)
            continue;
        if (dtype_is_float(t->dtype))
            tensor_set_f64(weight, i, tensor_get_f64(weight, i) + 3);
        else
            tensor_set_i64(weight, i, tensor_get_i64(weight, i) + 3);
    }
}

/* Element by element: which slice of the weight it reads; -1: none. */
static bool slices_stay_apart(Context *c, Node *y, Tensor *weight, int axis)
{
    const Tensor *before = value_of(c, y, &(EvalOptions){ 0 });
    const int64_t n = tensor_elements(before);
    void *kept = arena_alloc(&c->arena, weight->bytes + 1);
    int64_t *reads = NEWS(&c->arena, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        reads[i] = -1;
    for (int64_t slice = 0; slice < weight->type->dims[axis]; slice++) {
        memcpy(kept, weight->data, weight->bytes);
        shift(weight, axis, slice);
        const Tensor *after = value_of(c, y, &(EvalOptions){ 0 });
        memcpy(weight->data, kept, weight->bytes);
        for (int64_t i = 0; i < n; i++) {
            if (at(before, i) == at(after, i) || (isnan(at(before, i)) && isnan(at(after, i))))
                continue;
            if (reads[i] >= 0)
                return false;
            reads[i] = slice;
        }
    }
    return true;
}

static int64_t checked;

static Status check_cards(void *context)
{
    Context *c = context;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (!def->quant.weight_axis || meets_behind_gates((Op)i))
            continue;
        for (int variant = 0; variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant);
            if (!y)
                continue;
            y = sample_call(y);
            for (int k = 0; k < y->n_in; k++) {
                const int axis = quant_weight_axis(y, k);
                if (axis == QUANT_WHOLE)
                    continue;
                Tensor *weight = (Tensor *)(uintptr_t)constant(y->in[k].def);
                require(axis < weight->type->rank, "%s, operand %d: axis %d", def->name, k, axis);
                require(slices_stay_apart(c, y, weight, axis), "%s, variant %d, operand %d: slices along %d meet",
                        def->name, variant, k, axis);
                checked += weight->type->dims[axis] > 1;
            }
        }
    }
    return OK;
}

static void slices_never_meet(void **state)
{
    (void)state;
    with_context(check_cards);
    require(checked > 100, "%d operands had slices to compare", (int)checked);
}

/* As PyTorch's Linear arrives: the rows of the weight are its channels. */
static Status check_linear(void *context)
{
    Context *c = context;
    Build b = fresh(c);
    Rng rng = { seed_of("linear", 0) };
    Node *x = DRAW(&b, &rng, F32, 2, 3), *w = DRAW(&b, &rng, F32, 4, 3), *wt = DRAW(&b, &rng, F32, 3, 4);
    Node *gemm = CALL_ATTR(&b, gemm, ((GemmAttr){ .alpha = 1, .beta = 1, .transB = true }), x, w);
    assert_int_equal(quant_weight_axis(gemm, 1), 0);
    gemm = CALL_ATTR(&b, gemm, ((GemmAttr){ .alpha = 1, .beta = 1 }), x, wt);
    assert_int_equal(quant_weight_axis(gemm, 1), 1);
    assert_int_equal(quant_weight_axis(gemm, 2), QUANT_WHOLE);
    assert_int_equal(quant_weight_axis(CALL(&b, matmul, x, wt), 1), 1);
    assert_int_equal(quant_weight_axis(CALL(&b, matmul, x, wt), 0), 0);
    assert_int_equal(quant_weight_axis(CALL_ATTR(&b, matmul, (MatmulAttr){ .tb = true }, x, w), 1), 0);
    assert_int_equal(quant_weight_axis(CALL_ATTR(&b, einsum, (EinsumAttr){ .equation = "ij,kj->ik" }, x, w), 1), 0);
    assert_int_equal(quant_weight_axis(CALL_ATTR(&b, einsum, (EinsumAttr){ .equation = "ij,ij->" }, x, x), 1),
                     QUANT_WHOLE);
    return OK;
}

static void linear_layers(void **state)
{
    (void)state;
    with_context(check_linear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_have_an_axis),
        cmocka_unit_test(slices_never_meet),
        cmocka_unit_test(linear_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
