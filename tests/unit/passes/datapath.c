/* Machines as texts: every field changes the row, and what is wrong is said with its line. */
#include "passes/recipe/quantizer.h"
#include "passes/target/datapath.h"
#include "testing.h"

static bool is_operator(const void *ops, const char *word)
{
    (void)ops;
    return strcmp(word, "conv") == 0 || strcmp(word, "matmul") == 0 || strcmp(word, "sigmoid") == 0;
}

static Status read(Context *c, const char *text, const QuantTarget **t)
{
    return datapath_read(t, "m.txt", text, is_operator, NULL, &c->arena, &c->diag);
}

static Status fields(void *context)
{
    Context *c = context;
    const QuantTarget *t, *like = quant_target("portable");
    TRY(read(c, "", &t));
    assert_string_equal(t->title, "m.txt");
    assert_int_equal(t->accumulator, like->accumulator);
    assert_null(t->grains);
    TRY(read(c, "title = mine # whose\n\n  like=trt\n", &t));
    assert_string_equal(t->title, "mine");
    assert_true(t->float_bias && t->signed_data && t->whole_bytes);
    assert_int_equal(t->predicts, PREDICTS_NOTHING); /* nobody knows what becomes of it there */
    TRY(read(c, "data = either\nzero_is_0 = yes\nbias = float\nscales = pow2\naccumulator = 24\nleast_channels = 8\n",
             &t));
    assert_true(t->either_data && !t->signed_data && t->zero_is_0 && t->float_bias && t->pow2_scales);
    assert_int_equal(target_accumulator(t), 24);
    assert_int_equal(t->least_channels, 8);
    TRY(read(c, "zero_is_0 = no\nlike = trt\nbias = int32\ndata = unsigned\n", &t));
    assert_false(t->zero_is_0 || t->float_bias || t->signed_data);
    TRY(read(c, "joins = conv\ntables = *\nnumbers = none\nweight_bits = 4 8\ndata_bits = 8\n", &t));
    assert_true(target_has(t->joins, "conv") && !target_has(t->joins, "matmul") && target_has(t->tables, "sigmoid"));
    assert_null(t->numbers);
    assert_string_equal(t->weight_bits, "4 8");
    assert_string_equal(t->data_bits, "8");
    return OK;
}

/* Its roundings are those that its file can say: of weights that are stored as codes, all. */
static Status roundings(void *context)
{
    Context *c = context;
    const QuantTarget *t;
    TRY(read(c, "weight_rounding = half-up away\n", &t));
    assert_string_equal(quantizer_roundings(t, false), "half-up away");
    assert_string_equal(quantizer_roundings(t, true), "rne");
    assert_string_equal(t->like, "portable");
    TRY(read(c, "data_rounding = floor rne\nlike = qonnx\n", &t));
    assert_string_equal(quantizer_roundings(t, true), "floor rne");
    assert_null(quantizer_roundings(t, false)); /* any */
    QuantSpec spec;
    TRY(quantizer_read_for(&spec, "--quant", "w=int8,a=int8", t, &c->arena, &c->diag));
    assert_int_equal(spec.of[OPERAND_A].part[QUANT_ROUNDING].value, ROUNDING_FLOOR);
    assert_int_equal(spec.of[OPERAND_W].part[QUANT_ROUNDING].value, ROUNDING_RNE);
    TRY(quantizer_read_for(&spec, "--quant", "w=int8,a=int8:rne", t, &c->arena, &c->diag));
    assert_int_equal(spec.of[OPERAND_A].part[QUANT_ROUNDING].value, ROUNDING_RNE); /* somebody says so */
    return OK;
}

static Status grains(void *context)
{
    Context *c = context;
    const QuantTarget *t;
    TRY(read(c, "grain conv = tensor\n", &t));
    assert_string_equal(target_grains(t, "conv", &c->arena), "tensor");
    assert_null(target_grains(t, "matmul", &c->arena)); /* nothing is said of it */
    TRY(read(c, "grain * = channel group\ngrain matmul = tensor\n", &t));
    assert_string_equal(target_grains(t, "conv", &c->arena), "channel group");
    assert_string_equal(target_grains(t, "matmul", &c->arena), "tensor");
    assert_null(target_grains(quant_target("ort"), "conv", &c->arena));
    return OK;
}

static const char *const wrongs[] = {
    "accumulator 24\n",
    "accumulator = 4\n",
    "accumulator = x\n",
    "weight_bits = 4 17\n",
    "acumulator = 24\n",
    "joins = fly\n",
    "grain = tensor\n",
    "grain fly = tensor\n",
    "grain conv = pixel\n",
    "like = nobody\n",
    "data = odd\n",
    "bias = int8\n",
    "scales = log\n",
    "zero_is_0 = maybe\n",
    "data_rounding = odd\n",
    "data_rounding = floor\n",
    "data_rounding = half-up\nlike = qonnx\n",
    "weight_rounding = sr\n",
    "title =\n",
    "title = a\ntitle = b\n",
    "grain * = tensor\ngrain * = channel\n",
    "accumulator conv = 24\n",
};

static Status refused(void *context)
{
    Context *c = context;
    const QuantTarget *t;
    for (size_t i = 0; i < COUNT(wrongs); i++)
        if (read(c, wrongs[i], &t) != USAGE) {
            print_error("%s", wrongs[i]);
            return MISMATCH;
        }
    return OK;
}

static void rows(void **state)
{
    (void)state;
    with_context(fields);
    with_context(grains);
    with_context(roundings);
}

static void messages(void **state)
{
    (void)state;
    with_context(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows), cmocka_unit_test(messages) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
