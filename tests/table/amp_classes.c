/* Classes of mixed precision: every card answers for f16 and bf16 as the table of the study does, or says why not;
 * conditions are decided; what keeps values wide has a reason. */
#include "testing.h"

#include "ir/text/parse.h"
#include "ops/card/words.h"
#include "support/samples.h"

typedef struct Row {
    const char *op, *table16, *tableb16; /* in the words of the study */
    AmpClass f16, bf16;
    const char *wide, *why; /* operands that stay f32; why the card says something else */
} Row;

static const Row rows[] = {
#define ROW(op, table16, tableb16, f16, bf16, wide, why) { op, table16, tableb16, AMP_##f16, AMP_##bf16, wide, why },
#include "table/amp_classes.def"
};

/* Results that stay f32, where there are any; in the order of the cards. */
static const struct {
    const char *op;
    uint32_t results;
} wide_results[] = {
    { "attention_grad", 8 },   { "batch_normalization", 2 | 4 | 8 | 16 },
    { "conv_weight_grad", 1 }, { "layer_normalization", 2 | 4 },
    { "linear_attention", 2 }, { "lstm", 4 },
};

static const char *const bounded[] = {
    "acos",
    "asin",
    "atan",
    "batch_normalization",
    "cos",
    "erf",
    "group_normalization",
    "hard_sigmoid",
    "hardmax",
    "instance_normalization",
    "layer_normalization",
    "lp_normalization",
    "mean_variance_normalization",
    "rms_normalization",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "softsign",
    "tanh",
};

static const OpDef *card_of(const char *op)
{
    const char *dot = strrchr(op, '.');
    char domain[64] = "";
    Op found;
    if (dot)
        memcpy(domain, op, (size_t)(dot - op));
    if (op_find_onnx(&ops_table, domain, dot ? dot + 1 : op, &found) || op_find(&ops_table, str(op), &found))
        return ops_table.defs[found];
    return NULL;
}

static const char *mask_text(uint32_t mask, char *text, size_t room)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < 32 && n < room; i++)
        if (mask >> i & 1)
            n += (size_t)snprintf(text + n, room - n, "%s%d", n ? "," : "", i);
    return n ? text : "-";
}

static bool row_holds(const Row *r)
{
    char mask[128];
    const OpDef *d = card_of(r->op);
    if (!d)
        return print_error("%s has no card\n", r->op), false;
    const char *want16 = strcmp(r->table16, "P+W") == 0 ? "PW" : r->table16;
    const char *wantb16 = strcmp(r->tableb16, "P+W") == 0 ? "PW" : r->tableb16;
    const bool same = strcmp(want16, amp_word(r->f16)) == 0 && strcmp(wantb16, amp_word(r->bf16)) == 0;
    if (same != !*r->why)
        return print_error("%s: the table says %s, %s, and that needs %s\n", r->op, r->table16, r->tableb16,
                           same ? "no reason" : "a reason"),
               false;
    const char *wide = mask_text(d->amp.wide, mask, sizeof mask);
    if (d->amp.f16 != r->f16 || d->amp.bf16 != r->bf16 || strcmp(wide, r->wide) != 0)
        return print_error("%s: its card says %s, %s, wide %s; wanted %s, %s, wide %s\n", r->op, amp_word(d->amp.f16),
                           amp_word(d->amp.bf16), wide, amp_word(r->f16), amp_word(r->bf16), r->wide),
               false;
    return true;
}

static void cards_agree_with_the_table(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        bad += !row_holds(&rows[i]);
    assert_int_equal(bad, 0);
}

static int card_is_short(const OpDef *d)
{
    static const DType targets[] = { F16, BF16 };
    int bad = 0;
    for (size_t t = 0; t < COUNT(targets); t++) {
        const AmpClass c = targets[t] == F16 ? d->amp.f16 : d->amp.bf16;
        if (c == AMP_UNSET || (c == AMP_C && !d->amp.when))
            print_error("%s has no class for %s\n", d->name, dtype_name(targets[t])), bad++;
        if (amp_keeps_wide(c) && c != AMP_S && d->amp.reason == REASON_NONE)
            print_error("%s keeps %s wide without a reason\n", d->name, dtype_name(targets[t])), bad++;
    }
    return bad;
}

static void every_card_answers(void **state)
{
    (void)state;
    int bad = 0, listed = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        bad += card_is_short(d);
        bool here = d->structural;
        for (size_t k = 0; k < COUNT(rows) && !here; k++)
            here = card_of(rows[k].op) == d;
        if (!here)
            print_error("%s stands not in amp_classes.def\n", d->name), bad++;
        listed += !d->structural;
    }
    assert_int_equal(bad, 0);
    assert_int_equal(listed, COUNT(rows));
}

static void results_that_stay_wide_or_bounded(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        uint32_t results = 0;
        bool limited = false;
        for (size_t k = 0; k < COUNT(wide_results); k++)
            results |= strcmp(wide_results[k].op, d->name) == 0 ? wide_results[k].results : 0;
        for (size_t k = 0; k < COUNT(bounded); k++)
            limited |= strcmp(bounded[k], d->name) == 0;
        if (d->amp.wide_out != results || d->amp.bounded != limited)
            print_error("%s: results %x stay wide, bounded %d\n", d->name, d->amp.wide_out, d->amp.bounded), bad++;
    }
    assert_int_equal(bad, 0);
}

/* ---- conditions ---- */

static const struct {
    const char *text;
    AmpClass f16, bf16;
} conditions[] = {
#define ROW(text, f16, bf16) { text, AMP_##f16, AMP_##bf16 },
#include "table/amp_conditions.def"
};

static Node *node_y(Graph *g)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        if (n->name && strcmp(n->name, "y") == 0)
            return n;
    return NULL;
}

static bool condition_holds(Context *c, size_t i)
{
    Module *m = NULL;
    const char *text = conditions[i].text, *last = strstr(text, "%d:") ? "d" : "y";
    const char *whole = arena_printf(
        &c->arena, "graph @f(%%x: f32[2,3], %%q: f32[1,1,2,3], %%i: i64[2,3]) -> (%%%s) {\n%s\n}\n", last, text);
    if (parse_module(&c->ir, &c->arena, str(whole), "t.qir", NULL, NULL, &m) != OK)
        return print_error("%s\n%s\n", whole, c->last), false;
    const Node *y = node_y(m->graphs[0]);
    const AmpCard *card = &op_of(y)->amp;
    if (card->f16 != AMP_C || card->bf16 != AMP_C)
        return print_error("%s depends on nothing\n", op_of(y)->name), false;
    const AmpClass f16 = card->when(y, F16), bf16 = card->when(y, BF16);
    if (f16 == conditions[i].f16 && bf16 == conditions[i].bf16)
        return true;
    return print_error("%s\nis %s, %s; wanted %s, %s\n", text, amp_word(f16), amp_word(bf16),
                       amp_word(conditions[i].f16), amp_word(conditions[i].bf16)),
           false;
}

static Status all_conditions(void *arg)
{
    Context *c = arg;
    int bad = 0;
    for (size_t i = 0; i < COUNT(conditions); i++)
        bad += !condition_holds(c, i);
    assert_int_equal(bad, 0);
    return OK;
}

static void conditions_are_decided(void **state)
{
    (void)state;
    with_context(all_conditions);
}

/* Each sample of a conditional card gets a class that a node can have. */
static Status all_samples(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        if (d->amp.f16 != AMP_C && d->amp.bf16 != AMP_C)
            continue;
        for (int v = 0; v < d->n_variants; v++) {
            const Node *n = sample_of(c, d, v);
            const AmpClass f16 = d->amp.when(n, F16), bf16 = d->amp.when(n, BF16);
            assert_true(f16 != AMP_UNSET && f16 != AMP_C && bf16 != AMP_UNSET && bf16 != AMP_C);
        }
    }
    return OK;
}

static void samples_are_decided(void **state)
{
    (void)state;
    with_context(all_samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_agree_with_the_table),
        cmocka_unit_test(every_card_answers),
        cmocka_unit_test(results_that_stay_wide_or_bounded),
        cmocka_unit_test(conditions_are_decided),
        cmocka_unit_test(samples_are_decided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
