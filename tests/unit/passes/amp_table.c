/* Tables of classes: what is printed reads back and changes nothing, what lines say, and what is wrong with them. */
#include "testing.h"

#include "ir/text/parse.h"
#include "ops/card/words.h"
#include "passes/amp/table.h"
#include "support/samples.h"

static const AmpTable *table_of(Context *c, const char *text)
{
    const AmpTable *t = NULL;
    const Status status = amp_table_read(&t, "lists.txt", text, c->ir.ops, &c->arena, &c->diag);
    if (status != OK)
        print_error("%s\n", c->last);
    assert_int_equal(status, OK);
    return t;
}

static AmpRoles *roles_by(Context *c, Graph *g, const AmpTable *table, DType narrow)
{
    AmpRoles *roles;
    PassRun run = { .scratch = &c->arena, .diag = &c->diag };
    Precision *p = NEW(&c->arena, Precision);
    const AmpTable **tables = NEW(&c->arena, const AmpTable *);
    *tables = table;
    *p = (Precision){ .on = true, .narrow = narrow, .tables = tables, .n_tables = table != NULL };
    assert_int_equal(amp_roles_open(g, &run, p, &roles), OK);
    return roles;
}

/* ---- printed and read ---- */

static const AmpTable *printed_table(Context *c)
{
    Text t;
    text_open(&t, &c->arena);
    text_add(&t, "# as --print-table amp has it\n");
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        const char *title = d->onnx.op && d->onnx.domain ? arena_printf(&c->arena, "%s.%s", d->onnx.domain, d->onnx.op)
                            : d->onnx.op                 ? d->onnx.op
                                                         : d->name;
        if (!d->structural)
            amp_table_print(&t, title, d);
    }
    return table_of(c, text_get(&t));
}

static bool same_role(const AmpRole *a, const AmpRole *b)
{
    return a->class == b->class && a->wide == b->wide && a->wide_out == b->wide_out && a->bounded == b->bounded &&
           a->reason == b->reason && a->forced == b->forced;
}

static int sample_changes(Context *c, const OpDef *d, int variant, const AmpTable *printed)
{
    static const DType targets[] = { F16, BF16 };
    Graph *g = sample_of(c, d, variant)->graph;
    int bad = 0;
    for (size_t t = 0; t < COUNT(targets); t++) {
        const AmpRoles *with = roles_by(c, g, printed, targets[t]), *without = roles_by(c, g, NULL, targets[t]);
        for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
            const AmpRole x = amp_role(with, n), y = amp_role(without, n);
            if (!same_role(&x, &y))
                print_error("%s: %s becomes %s\n", d->name, amp_word(y.class), amp_word(x.class)), bad++;
        }
    }
    return bad;
}

static Status what_is_printed_changes_nothing(void *arg)
{
    enum { VARIANTS = 6 };
    Context *c = arg;
    const AmpTable *printed = printed_table(c);
    int bad = 0;
    size_t cards = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        cards += !d->structural;
        for (int v = 0; d->sample && v < d->n_variants && v < VARIANTS; v++)
            bad += sample_changes(c, d, v, printed);
    }
    assert_int_equal(printed->n, cards);
    assert_int_equal(bad, 0);
    return OK;
}

/* ---- what lines say ---- */

static const char model[] = "graph @f(%x: f32[2,4]) -> (%o) {\n"
                            "    param %w: f32[4,4] = normal(seed=1)\n"
                            "    %m: f32[2,4] = matmul(%x, %w) !1 node=\"/body/MatMul\"\n"
                            "    %g: f32[2,4] = gelu(%m) !2 node=\"/body/Gelu\"\n"
                            "    %t: f32[2,4] = gelu(%g, approximate=tanh) !3 node=\"/head/Gelu\"\n"
                            "    %p: f32[4,2] = transpose(%t, perm=[1, 0]) !4 node=\"/head/Transpose\"\n"
                            "    %s: f32[4,2] = softmax(%p) !5 node=\"/head/Softmax\"\n"
                            "    %k: bool[4,2] = is_nan(%s) !6\n"
                            "    %c: f32[4,2] = cast(%k, to=f32) !7\n"
                            "    %o: f32[4,2] = add(%c, %s) !8\n"
                            "    %b: f32[2,4] = mul(%t, %t) !3 side=backward\n"
                            "}\n";

typedef struct Case {
    const char *table;
    DType narrow;
    const char *node;
    AmpClass class;
    const char *forced; /* null: the card speaks */
} Case;

/* clang-format off */
static const Case cases[] = {
    { "",                                                         F16,  "m", AMP_T,  NULL          },
    { "op:MatMul fp16=F",                                         F16,  "m", AMP_F,  "lists.txt:1" },
    { "op:MatMul fp16=F",                                         BF16, "m", AMP_T,  NULL          },
    { "op:matmul fp16=F bf16=W",                                  BF16, "m", AMP_W,  "lists.txt:1" },
    { "op:MatMul fp16=F\nop:MatMul fp16=C",                       F16,  "m", AMP_T,  "lists.txt:2" },
    { "op:MatMul fp16=F\n\n  # no\n /body/ fp16=E # why\n",       F16,  "m", AMP_E,  "lists.txt:4" },
    { "/body/ fp16=E\nop:MatMul fp16=F",                          F16,  "m", AMP_F,  "lists.txt:2" },
    { "op:Gelu[approximate=tanh] fp16=F",                         F16,  "g", AMP_E,  NULL          },
    { "op:Gelu[approximate=tanh] fp16=F",                         F16,  "t", AMP_F,  "lists.txt:1" },
    { "op:Gelu[approximate=tanh] fp16=F",                         F16,  "b", AMP_F,  "lists.txt:1" },
    { "op:Gelu[approximate=\"none\"] fp16=F",                     F16,  "g", AMP_F,  "lists.txt:1" },
    { "op:Transpose[perm=[1,0]] fp16=F",                          F16,  "p", AMP_F,  "lists.txt:1" },
    { "op:Transpose[perm=[1, 0]] fp16=F",                         F16,  "p", AMP_F,  "lists.txt:1" },
    { "op:Transpose[perm=[0,1]] fp16=F",                          F16,  "p", AMP_P,  NULL          },
    { "op:Softmax[axis=-1] fp16=F",                               F16,  "s", AMP_F,  "lists.txt:1" },
    { "default fp16=F\nop:Gelu bf16=F",                           F16,  "s", AMP_F,  "lists.txt:1" },
    { "op:* fp16=F\nop:Gelu bf16=F",                              F16,  "g", AMP_E,  NULL          },
    { "op:Softmax fp16=S\nop:* fp16=F",                           F16,  "s", AMP_S,  NULL          },
    { "op:* fp16=F",                                              F16,  "p", AMP_P,  NULL          },
    { "op:* fp16=T",                                              F16,  "c", AMP_X,  NULL          },
    { "^c$ fp16=T",                                               F16,  "c", AMP_X,  NULL          },
    { "head fp16=F",                                              F16,  "p", AMP_F,  "lists.txt:1" },
    { "op:Softmax fp16=S reason=precision",                       F16,  "s", AMP_S,  NULL          },
};
/* clang-format on */

static bool case_holds(Context *c, const Case *x)
{
    Module *m = NULL;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(model), "t.qir", NULL, NULL, &m), OK);
    Graph *g = m->graphs[0];
    const AmpRoles *roles = roles_by(c, g, table_of(c, x->table), x->narrow);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (!n->name || strcmp(n->name, x->node) != 0)
            continue;
        const AmpRole r = amp_role(roles, n);
        if (r.class == x->class && strcmp(r.forced ? r.forced : "", x->forced ? x->forced : "") == 0)
            return true;
        return print_error("%s\n%s is %s by %s\n", x->table, x->node, amp_word(r.class), r.forced), false;
    }
    return print_error("no node %s\n", x->node), false;
}

static Status lines_say_what_they_say(void *arg)
{
    Context *c = arg;
    int bad = 0;
    for (size_t i = 0; i < COUNT(cases); i++)
        bad += !case_holds(c, &cases[i]);
    assert_int_equal(bad, 0);
    return OK;
}

static Status masks_and_reasons(void *arg)
{
    Context *c = arg;
    Module *m = NULL;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(model), "t.qir", NULL, NULL, &m), OK);
    const AmpTable *t = table_of(c, "op:Softmax fp16=FO wide=0,2 reason=range\nop:Gelu wide=-\n");
    const AmpRoles *roles = roles_by(c, m->graphs[0], t, F16);
    for (Node *n = walk_first(m->graphs[0]); n; n = walk_next(m->graphs[0], n)) {
        const AmpRole r = amp_role(roles, n);
        if (n->op == OP_softmax) {
            assert_int_equal(r.wide, 5);
            assert_int_equal(r.reason, REASON_RANGE);
            assert_true(r.bounded);
        }
        if (n->op == OP_gelu)
            assert_null(r.forced);
    }
    return OK;
}

static Status a_name_that_matches_nothing(void *arg)
{
    Context *c = arg;
    Module *m = NULL;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(model), "t.qir", NULL, NULL, &m), OK);
    const AmpTable *t = table_of(c, "# \n/tail/ fp16=F\n");
    roles_by(c, m->graphs[0], t, F16);
    assert_non_null(strstr(c->last, "lists.txt:2"));
    assert_non_null(strstr(c->last, "'/tail/' matches no node"));
    roles_by(c, m->graphs[0], t, F16);
    assert_int_equal(c->diag.n_warnings, 1);
    return OK;
}

/* Narrow calls take operands of one type, losses give f32, bodies are not asked. */
static Status what_cannot_be_stays(void *arg)
{
    static const char text[] = "graph @f(%x: f32[2], %c: bool[]) -> (%l, %i) {\n"
                               "    %a: f32[2] = add(%x, %x)\n"
                               "    %l: f32[] = mse(%a, %x)\n"
                               "    %i: f32[2] = if(%c, %x) { (%p: f32[2]) -> (%n)\n"
                               "        %n: f32[2] = neg(%p)\n"
                               "    } { (%p: f32[2]) -> (%p)\n"
                               "    }\n"
                               "}\n";
    static const struct {
        const char *table, *said;
    } lines[] = {
        { "op:mse fp16=T", "lists.txt:1: warning: node l: mse cannot be T in f16 with these operands; it stays FO" },
        { "op:Add fp16=T wide=0", "lists.txt:1: warning: node a: add cannot be T in f16 with these operands" },
        { "op:If fp16=W", "if cannot be W in f16 with these operands; it stays P" },
        { "op:Neg fp16=T\nop:Add fp16=PW", "" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(lines); i++) {
        Module *m = NULL;
        c->last = "";
        assert_int_equal(parse_module(&c->ir, &c->arena, str(text), "t.qir", NULL, NULL, &m), OK);
        roles_by(c, m->graphs[0], table_of(c, lines[i].table), F16);
        if (!strstr(c->last, lines[i].said) || !*lines[i].said != !*c->last) {
            print_error("%s: %s\nnot: %s\n", lines[i].table, c->last, lines[i].said);
            assert_true(false);
        }
    }
    return OK;
}

/* ---- mistakes ---- */

static Status each_mistake(void *arg)
{
    static const struct {
        const char *text, *said;
    } mistakes[] = {
        { "\nop:Cnv fp16=F", "lists.txt:2:4: operator Cnv is not known" },
        { "op:Cnv fp16=F", "try: Conv" },
        { "op:input fp16=F", "operator input is not known" },
        { "op:Conv fp16=Q", "lists.txt:1:14: no class is called Q: wanted is one of T S FO" },
        { "op:Conv fp17=T", "key fp17 is not known\n" },
        { "op:Conv fp17=T", "try: fp16" },
        { "op:Conv", "lists.txt:1:8: nothing is said" },
        { "op:Conv T", "T: wanted is key=value" },
        { "op:Conv wide=1,x", "wanted are operands by number" },
        { "op:Conv wide=32", "wanted are operands by number" },
        { "op:Conv fp16=T reason=precison", "try: precision" },
        { "op:Gelu[aproximate=tanh] fp16=F", "attribute of gelu aproximate is not known" },
        { "op:Gelu[aproximate=tanh] fp16=F", "try: approximate" },
        { "op:Gelu[approximate] fp16=F", "wanted is [attribute=value]" },
        { "op:Gelu[approximate=tanh fp16=F", "a ] is missing" },
        { "op:Relu[alpha=1] fp16=F", "attribute of relu alpha is not known" },
        { "op:Cast fp16=T", "cast is X, whatever tables say" },
        { "op:Shape fp16=P", "shape is N, whatever tables say" },
        { "op:Conv fp16=N", "no table makes something N" },
        { "op:Relu fp16=C", "relu has no condition that C could mean" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const AmpTable *t;
        c->last = "";
        const Status status = amp_table_read(&t, "lists.txt", mistakes[i].text, c->ir.ops, &c->arena, &c->diag);
        if (status != USAGE || !strstr(c->last, mistakes[i].said)) {
            print_error("%s: %s\nnot: %s\n", mistakes[i].text, c->last, mistakes[i].said);
            assert_true(false);
        }
    }
    return OK;
}

/* Whatever a file holds is read or refused. */
static Status each_damage(void *arg)
{
    enum { TURNS = 3000 };
    static const char text[] = "# lists\nop:Conv fp16=T bf16=T wide=2 reason=-\nop:Gelu[approximate=tanh] fp16=F\n"
                               "/head/ bf16=F\nop:Transpose[perm=[1, 0]] fp16=C\ndefault fp16=E\n";
    static const char odd[] = "\n \t[]=,:#-*0129\"\\opfF\xff";
    Context *c = arg;
    Rng rng = { 5 };
    size_t read = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        char damaged[sizeof text];
        const AmpTable *t;
        memcpy(damaged, text, sizeof text);
        for (int64_t k = rng_range(&rng, 1, 3); k > 0; k--)
            damaged[rng_below(&rng, sizeof text - 1)] = odd[rng_below(&rng, sizeof odd)];
        const Status status = amp_table_read(&t, "lists.txt", damaged, c->ir.ops, &c->arena, &c->diag);
        assert_true(status == OK || status == USAGE);
        read += status == OK;
    }
    assert_true(read > 0 && read < TURNS);
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(what_is_printed_changes_nothing)
TEST(lines_say_what_they_say)
TEST(masks_and_reasons)
TEST(a_name_that_matches_nothing)
TEST(what_cannot_be_stays)
TEST(each_mistake)
TEST(each_damage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_printed_changes_nothing),
        cmocka_unit_test(test_lines_say_what_they_say),
        cmocka_unit_test(test_masks_and_reasons),
        cmocka_unit_test(test_a_name_that_matches_nothing),
        cmocka_unit_test(test_what_cannot_be_stays),
        cmocka_unit_test(test_each_mistake),
        cmocka_unit_test(test_each_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
