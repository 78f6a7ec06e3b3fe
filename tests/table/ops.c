/* Every op of the table: its card answers every question, and every sample is a legal call whose value has the type
 * that infer promised, is the same whatever runs it, and is what the expansion says. */
#include "support/cards_hold.h"

static void cards_are_complete(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        const char *lacks = card_lacks(d);
        if (lacks)
            print_error("%s lacks %s\n", d->name, lacks), bad++;
        Op same;
        assert_true(op_find(&ops_table, str(d->name), &same));
        if (same != i)
            print_error("%s is there twice\n", d->name), bad++;
    }
    assert_int_equal(bad, 0);
}

static void cards_agree_with_onnx(void **state)
{
    (void)state;
    int bad = 0, seen = 0;
    for (size_t i = 0; i < ops_table.n; i++)
        if (ops_table.defs[i]->onnx.op)
            bad += card_disagreements(ops_table.defs[i]), seen++;
    print_message("%d ops of ONNX\n", seen);
    assert_int_equal(bad, 0);
}

static void samples_hold(void **state)
{
    (void)state;
    int bad = 0, cases = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        if (d->structural || !d->sample)
            continue;
        bad += card_samples_fail(&ops_table, d);
        cases += d->n_variants;
    }
    print_message("%d samples\n", cases);
    assert_true(cases > 0);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_are_complete),
        cmocka_unit_test(cards_agree_with_onnx),
        cmocka_unit_test(samples_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
