/* The ONNX schema data: whole, sorted, and bound as ONNX binds operators to versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "ops/card/schema.h"

static void every_row_is_in_order_and_well_formed(void **state)
{
    size_t n;
    const OnnxSchema *row = schema_all(&n);

    (void)state;
    assert_int_equal(n, 659);
    for (size_t i = 0; i < n; i++) {
        const OnnxSchema *r = &row[i];
        if (i) {
            int order = strcmp(row[i - 1].domain, r->domain);
            order = order ? order : strcmp(row[i - 1].op, r->op);
            assert_true(order < 0 || (order == 0 && row[i - 1].since < r->since));
        }
        assert_true(r->min_in <= r->max_in && r->min_out <= r->max_out);
        for (int k = 0; k < r->n_in; k++) {
            assert_true(r->in[k].types < r->n_types);
            assert_true(!(r->in[k].flags & ONNX_PARAM_VARIADIC) || k == r->n_in - 1);
        }
        for (int k = 0; k < r->n_out; k++) {
            assert_true(r->out[k].types < r->n_types);
            assert_true(!(r->out[k].flags & ONNX_PARAM_VARIADIC) || k == r->n_out - 1);
        }
        for (int k = 0; k < r->n_attr; k++) {
            assert_in_range(r->attr[k].type, 1, ONNX_ATTRS - 1);
            assert_false(r->attr[k].required && r->attr[k].fallback);
        }
        for (int k = 0; k < r->n_types; k++) {
            const OnnxTypes *t = &r->types[k];
            uint32_t any = t->tensor | t->seq | t->opt | t->opt_seq | t->map | t->seq_map;
            assert_true(any != 0 && (any & 1) == 0 && any >> ONNX_TYPES == 0);
        }
        assert_true(r->deprecated || r->n_out > 0);
        assert_true(r->max_in == ONNX_MANY || r->max_in == r->n_in);
        assert_true(r->max_out == ONNX_MANY || r->max_out == r->n_out);
    }
}

static void every_row_is_found_at_its_version_and_until_the_next(void **state)
{
    size_t n;
    const OnnxSchema *row = schema_all(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const OnnxSchema *next = schema_next(&row[i]);
        assert_ptr_equal(schema_find(row[i].domain, row[i].op, row[i].since), &row[i]);
        if (next) {
            assert_ptr_equal(next, &row[i] + 1);
            assert_ptr_equal(schema_find(row[i].domain, row[i].op, next->since - 1), &row[i]);
        } else {
            assert_ptr_equal(schema_find(row[i].domain, row[i].op, INT_MAX), &row[i]);
        }
        if (i == 0 || schema_next(&row[i - 1]) != &row[i])
            assert_null(schema_find(row[i].domain, row[i].op, row[i].since - 1));
    }
}

static void names_that_are_not_there_are_not_found(void **state)
{
    (void)state;
    assert_null(schema_find("", "add", 13));
    assert_null(schema_find("", "Add", 0));
    assert_null(schema_find("", "Zzz", 13));
    assert_null(schema_find("", "", 13));
    assert_null(schema_find("aaa", "Add", 13));
    assert_null(schema_find("zzz", "Add", 13));
    assert_null(schema_find("ai.onnx.ml", "Add", 13));
}

static void the_default_domain_has_two_names(void **state)
{
    (void)state;
    assert_non_null(schema_find("", "Add", 13));
    assert_ptr_equal(schema_find("", "Add", 13), schema_find("ai.onnx", "Add", 13));
}

static void arity_parameters_and_attributes_are_as_published(void **state)
{
    const OnnxSchema *clip = schema_find("", "Clip", 6), *loop = schema_find("", "Loop", 16);
    const OnnxSchema *bn = schema_find("", "BatchNormalization", 15), *conv = schema_find("", "Conv", 11);

    (void)state;
    assert_true(schema_attr(clip, "max")->f == 0x1.fffffep+127f);
    assert_int_equal(schema_find("", "Clip", 13)->max_in, 3);
    assert_int_equal(schema_find("", "Clip", 13)->min_in, 1);
    assert_true(schema_find("", "Clip", 13)->in[1].flags & ONNX_PARAM_OPTIONAL);
    assert_int_equal(loop->max_in, ONNX_MANY);
    assert_string_equal(schema_input(loop, 9)->name, "v_initial");
    assert_int_equal(schema_input(loop, 9)->flags, ONNX_PARAM_VARIADIC | ONNX_PARAM_MIXED);
    assert_string_equal(schema_output(loop, 3)->name, "v_final_and_scan_outputs");
    assert_true(schema_attr(loop, "body")->required);
    assert_int_equal(schema_attr(loop, "body")->type, ONNX_ATTR_GRAPH);
    assert_true(schema_attr(bn, "epsilon")->f == 1e-5f);
    assert_null(schema_attr(bn, "spatial"));
    assert_int_equal(schema_attr(conv, "group")->i, 1);
    assert_string_equal(schema_attr(conv, "auto_pad")->fallback, "NOTSET");
    assert_null(schema_attr(conv, "pads")->fallback);
    assert_null(schema_input(conv, 3));
    assert_null(schema_input(conv, -1));
    assert_string_equal(schema_attr(schema_find("", "MeanVarianceNormalization", 13), "axes")->fallback, "0,2,3");
    assert_true(schema_attr(schema_find("", "Selu", 6), "alpha")->f == 1.67326319217681884765625f);
    assert_true(schema_attr(schema_find("", "Selu", 6), "gamma")->f == 1.05070102214813232421875f);
    assert_true(schema_attr(schema_find("ai.onnx.preview.training", "Adam", 1), "epsilon")->f == 1e-6f);
    assert_true(schema_attr(schema_find("ai.onnx.preview.training", "Adagrad", 1), "epsilon")->f == 1e-6f);
    assert_null(schema_attr(schema_find("", "Attention", 24), "left_window_size"));
    assert_int_equal(schema_attr(schema_find("", "Attention", 28), "left_window_size")->i, -1);
    assert_true(schema_find("", "Upsample", 10)->deprecated);
    assert_false(schema_find("", "Upsample", 9)->deprecated);
}

static void type_constraints_are_as_published(void **state)
{
    const OnnxSchema *add = schema_find("", "Add", 14), *loop = schema_find("", "Loop", 16);

    (void)state;
    assert_true(schema_tensor_mask(add, "T") >> ONNX_BFLOAT16 & 1);
    assert_false(schema_tensor_mask(add, "T") >> ONNX_BOOL & 1);
    assert_int_equal(schema_tensor_mask(add, "T9"), 0);
    assert_int_equal(schema_tensor_mask(schema_find("", "Split", 13), "tensor(int64)"), 1u << ONNX_INT64);
    assert_true(schema_types(loop, "V")->seq >> ONNX_FLOAT & 1);
    assert_true(schema_types(loop, "V")->opt >> ONNX_FLOAT & 1);
    assert_true(schema_types(loop, "V")->opt_seq >> ONNX_STRING & 1);
    assert_int_equal(schema_types(schema_find("", "ConcatFromSequence", 11), "S")->tensor, 0);
    assert_int_equal(schema_types(schema_find("ai.onnx.ml", "ZipMap", 1), "T")->seq_map, 1u << ONNX_FLOAT);
    assert_int_equal(schema_types(schema_find("ai.onnx.ml", "CastMap", 1), "T1")->map,
                     1u << ONNX_FLOAT | 1u << ONNX_STRING);
}

static void element_types_become_legal_at_a_version(void **state)
{
    (void)state;
    const OnnxSchema *relu = schema_find("", "Relu", 14), *q = schema_find("", "QuantizeLinear", 25);
    const OnnxSchema *dropout = schema_find("", "Dropout", 13);

    assert_int_equal(schema_type_since(schema_find("", "Add", 14), "T", ONNX_FLOAT), 1);
    assert_int_equal(schema_type_since(schema_find("", "Add", 14), "T", ONNX_BFLOAT16), 13);
    assert_int_equal(schema_type_since(schema_find("", "Add", 14), "T", ONNX_INT8), 14);
    assert_int_equal(schema_type_since(schema_find("", "Add", 13), "T", ONNX_INT8), 0);
    assert_int_equal(schema_type_since(relu, "T", ONNX_BFLOAT16), 13);
    assert_int_equal(schema_type_since(relu, "T", ONNX_BOOL), 0);
    assert_int_equal(schema_type_since(relu, "T", 99), 0);
    assert_int_equal(schema_type_since(relu, "nothing", ONNX_FLOAT), 0);
    assert_int_equal(schema_type_since(q, "T1", ONNX_FLOAT16), 19);
    /* the mask was T1 in version 10 and float before; ratio took over the name T1 */
    assert_int_equal(schema_type_since(dropout, "T1", ONNX_FLOAT), 12);
    assert_int_equal(schema_type_ir(ONNX_FLOAT), 1);
    assert_int_equal(schema_type_ir(ONNX_INT4), 10);
    assert_int_equal(schema_type_ir(ONNX_FLOAT6E3M2), 14);
    assert_int_equal(schema_type_since(schema_find("", "Cast", 28), "T2", ONNX_FLOAT6E2M3), 28);
    assert_int_equal(schema_type_ir(ONNX_TYPES), 0);
    assert_int_equal(schema_type_ir(-1), 0);
}

/* Attention 25 came with 1.23, whose opset is 28: what is read has it from 25 on, what is written from 28 on. */
static void back_dated_rows_are_written_from_their_release_on(void **state)
{
    (void)state;
    size_t n, found = 0;
    const OnnxSchema *row = schema_all(&n);
    for (size_t i = 0; i < n; i++) {
        const OnnxBackdated *b = schema_backdated(&row[i]);
        if (!b) {
            assert_ptr_equal(schema_settled(row[i].domain, row[i].op, row[i].since), &row[i]);
            continue;
        }
        found++;
        assert_true(b->since < b->opset && b->opset <= ONNX_OPSET_NEWEST);
        assert_ptr_equal(schema_find(row[i].domain, row[i].op, b->since), &row[i]);
        assert_ptr_equal(schema_settled(row[i].domain, row[i].op, b->since), &row[i - 1]);
        assert_ptr_equal(schema_settled(row[i].domain, row[i].op, b->opset - 1), &row[i - 1]);
        assert_ptr_equal(schema_settled(row[i].domain, row[i].op, b->opset), &row[i]);
    }
    assert_int_equal(found, 1);
    assert_null(schema_settled("", "Nothing", 28));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_in_order_and_well_formed),
        cmocka_unit_test(every_row_is_found_at_its_version_and_until_the_next),
        cmocka_unit_test(names_that_are_not_there_are_not_found),
        cmocka_unit_test(the_default_domain_has_two_names),
        cmocka_unit_test(arity_parameters_and_attributes_are_as_published),
        cmocka_unit_test(type_constraints_are_as_published),
        cmocka_unit_test(element_types_become_legal_at_a_version),
        cmocka_unit_test(back_dated_rows_are_written_from_their_release_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
