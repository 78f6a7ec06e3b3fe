/* What cards say of how operands are read: where only the type is, values change nothing; what only moves elements gives no
 * element that its data do not have. */
#include "support/calls.h"
#include "support/samples.h"

static const EvalOptions plain = { .seed = 1 };

static bool has_bit(uint32_t mask, int operand)
{
    return mask >> (operand < 31 ? operand : 31) & 1;
}

/* Every element of a constant becomes another one of its type. */
static void replace_all(Tensor *t)
{
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        if (dtype_is_float(t->type->dtype))
            tensor_set_f64(t, i, tensor_get_f64(t, i) + 1);
        else
            tensor_set_i64(t, i, !tensor_get_i64(t, i));
    }
}

static bool is_numbers(const Tensor *t)
{
    return t && t->type->kind == TYPE_TENSOR && t->type->dtype != STRING;
}

static Status check_type_only(void *context)
{
    Context *c = context;
    int asked = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        for (int variant = 0; def->access.type_only && variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant), *call = y ? sample_call(y) : NULL;
            const Tensor *before = y ? value_of(c, y, &plain) : NULL;
            for (int k = 0; call && k < call->n_in; k++) {
                Tensor *t = in(call, k) ? (Tensor *)(uintptr_t)constant(in(call, k)) : NULL;
                if (!has_bit(def->access.type_only, k) || !is_numbers(t))
                    continue;
                replace_all(t);
                require(tensor_same(before, value_of(c, y, &plain)), "%s, variant %d: the values of operand %d matter",
                        def->name, variant, k);
                asked++;
            }
        }
    }
    require(asked > 50, "%d operands were asked", asked);
    return OK;
}

static void types_are_all_that_is_read(void **state)
{
    (void)state;
    with_context(check_type_only);
}

static bool holds_element(const Tensor *data, double v)
{
    for (int64_t i = 0; i < tensor_elements(data); i++)
        if (memcmp(&(double){ at(data, i) }, &v, sizeof v) == 0)
            return true;
    return false;
}

/* Whether an element is one of an operand that does not steer; or 0, with which frames are filled. */
static bool comes_from_data(const Node *call, const OpDef *def, double v)
{
    for (int k = 0; k < call->n_in; k++) {
        const Tensor *t = in(call, k) && !op_steers(def, k) ? constant(in(call, k)) : NULL;
        if (is_numbers(t) && holds_element(t, v))
            return true;
    }
    return v == 0;
}

/* Of the class that moves data, in the main. */
static bool only_moves(const OpDef *def)
{
    return (def->amp.f16 == AMP_P || def->amp.f16 == AMP_PW) && op_moves(def) && def->mode == MODE_PURE;
}

static Status check_moves(void *context)
{
    Context *c = context;
    int64_t elements = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const OpDef *def = ops_table.defs[i];
        if (!only_moves(def) || i == OP_scatter_elements || i == OP_scatter_nd) /* these may add up */
            continue;
        for (int variant = 0; variant < def->n_variants; variant++) {
            Node *y = sample_of(c, def, variant);
            const Tensor *value = y ? value_of(c, y, &plain) : NULL;
            if (!is_numbers(value) || tensor_elements(value) > 4096)
                continue;
            for (int64_t k = 0; k < tensor_elements(value); k++, elements++)
                require(comes_from_data(sample_call(y), def, at(value, k)),
                        "%s, variant %d: %g is no element of its data", def->name, variant, at(value, k));
        }
    }
    require(elements > 10000, "%d elements were looked for", (int)elements);
    return OK;
}

static void moves_make_nothing(void **state)
{
    (void)state;
    with_context(check_moves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_all_that_is_read),
        cmocka_unit_test(moves_make_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
