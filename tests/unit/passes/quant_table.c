/* Tables of quantizers and roles: what is printed reads back and changes nothing, what lines say, and what is wrong with
 * them. */
#include "testing.h"

#include "base/file.h"
#include "ir/text/parse.h"
#include "ops/card/words.h"
#include "passes/quant/says.h"
#include "passes/quant/shipped.h"
#include "support/samples.h"

static const QuantTable *table_of(Context *c, const char *text)
{
    const QuantTable *t = NULL;
    const Status status = quant_table_read(&t, "lists.txt", text, c->ir.ops, &c->arena, &c->diag);
    if (status != OK)
        print_error("%s\n", c->last);
    assert_int_equal(status, OK);
    return t;
}

/* What is said of the calls of a graph, decided and placed nowhere. */
static Placement *said(Context *c, Graph *g, const char *spec, const char *target, const QuantTable *table)
{
    Placement *p = NEW(&c->arena, Placement);
    PassRun *run = NEW(&c->arena, PassRun);
    Quantization *q = NEW(&c->arena, Quantization);
    QuantSpec *s = NEW(&c->arena, QuantSpec);
    const QuantTable **tables = NEW(&c->arena, const QuantTable *);
    *tables = table;
    assert_int_equal(quantizer_read(s, "--quant", spec, target, &c->arena, &c->diag), OK);
    *q = (Quantization){ .spec = s, .target = target, .tables = tables, .n_tables = table != NULL };
    *run = (PassRun){ .scratch = &c->arena, .diag = &c->diag };
    *p = (Placement){ .g = g, .run = run, .recipe = q };
    p->values = facts_open(&c->arena, sizeof(QuantValueMark));
    p->calls = facts_open(&c->arena, sizeof(QuantCallMark));
    p->data = facts_open(&c->arena, sizeof(bool));
    assert_int_equal(quant_says(p), OK);
    assert_int_equal(quant_find(p), OK);
    return p;
}

/* ---- printed and read ---- */

static const char *printed(Context *c, const char *target)
{
    Text t;
    text_open(&t, &c->arena);
    text_add(&t, "# as --print-table quant has it\n");
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        const char *title = d->onnx.op && d->onnx.domain ? arena_printf(&c->arena, "%s.%s", d->onnx.domain, d->onnx.op)
                            : d->onnx.op                 ? d->onnx.op
                                                         : d->name;
        if (!d->structural)
            quant_table_print(&t, title, d, &ops_table, quant_target(target));
    }
    return text_get(&t);
}

/* Whether two decisions of one graph are the same, of every value and call. */
static int decisions_differ(Graph *g, Placement *x, Placement *y, const char *name)
{
    int bad = 0;
    for (Node *n = g->first; n; n = n->next) {
        const QuantCallMark *a = quant_call(x, n), *b = quant_call(y, n);
        const bool same = a->core == b->core && a->floats == b->floats && a->could == b->could && !a->why == !b->why &&
                          !quant_value(x, n)->by == !quant_value(y, n)->by;
        if (!same)
            print_error("%s: %s changes\n", name, op_of(n)->name), bad++;
    }
    return bad;
}

static Status what_is_printed_changes_nothing(void *arg)
{
    enum { VARIANTS = 6 };
    static const char *const targets[] = { "ort", "generic" };
    Context *c = arg;
    int bad = 0;
    for (size_t t = 0; t < COUNT(targets); t++) {
        const QuantTable *table = table_of(c, printed(c, targets[t]));
        size_t cards = 0;
        for (size_t i = 0; i < ops_table.n; i++) {
            const OpDef *d = ops_table.defs[i];
            cards += !d->structural;
            for (int v = 0; d->sample && v < d->n_variants && v < VARIANTS; v++) {
                Graph *g = sample_of(c, d, v)->graph;
                bad += decisions_differ(g, said(c, g, "w8a8", targets[t], NULL), said(c, g, "w8a8", targets[t], table),
                                        d->name);
            }
        }
        assert_int_equal(table->n, cards);
    }
    assert_int_equal(bad, 0);
    return OK;
}

/* ---- what lines say ---- */

static const char model[] =
    "graph @f(%x: f32[2,4,6,6], state %w: f32[4,1,1,1] trained, state %v: f32[4,4,1,1] trained, state %u: f32[6,6] "
    "trained) -> (%o) {\n"
    "    %d: f32[2,4,6,6] = conv(%x, %w, group=4) node=\"/body/Conv\"\n"
    "    %r: f32[2,4,6,6] = relu(%d) node=\"/body/Relu\"\n"
    "    %c: f32[2,4,6,6] = conv(%r, %v) node=\"/head/Conv\"\n"
    "    %s: f32[2,4,6,6] = sigmoid(%c) node=\"/head/Sigmoid\"\n"
    "    %g: f32[2,4,6,6] = gelu(%s) node=\"/head/Gelu\"\n"
    "    %a: f32[2,4,6,6] = add(%g, %r) node=\"/head/Add\"\n"
    "    %o: f32[2,4,6,6] = matmul(%a, %u) node=\"/head/MatMul\"\n"
    "}\n";

/* What is asked of a case: of a product the quantizers of its operands ("-": it stays), of a value whether it is codes. */
typedef struct Case {
    const char *table, *target, *node, *weight, *data;
    bool codes;
} Case;

#define INT8  "int8:channel:minmax:f32:sym:narrow:rne:absmax:mask=pass"
#define UINT8 "uint8:tensor:ema=0.01:f32:asym:full:rne:absmax:mask=q"

/* clang-format off */
static const Case cases[] = {
    { "",                                                  "ort",     "c", INT8, UINT8, true  },
    { "op:Conv w=off a=off",                               "ort",     "c", "-",  "-",   false },
    { "op:Conv[group=4] w=off a=off",                      "ort",     "c", INT8, UINT8, true  },
    { "op:Conv[group=4] w=off a=off",                      "ort",     "d", "-",  "-",   true  },
    { "op:Conv w=off a=off\nop:Conv in=input,weight,bias w=int8 a=uint8:asym", "ort", "c", INT8, UINT8, true },
    { "op:Conv[group=4] w=int4:tensor reason=depthwise",   "ort",     "d", "int4:tensor:minmax:f32:sym:narrow:rne:absmax:mask=pass", UINT8, true },
    { "/body/ w=int4:tensor # why\n",                      "ort",     "d", "int4:tensor:minmax:f32:sym:narrow:rne:absmax:mask=pass", UINT8, true },
    { "/body/ w=int4:tensor # why\n",                      "ort",     "c", INT8, UINT8, true  },
    { "default a=uint8\nop:MatMul a=uint8:asym",           "ort",     "c", INT8, "uint8:tensor:ema=0.01:f32:sym:full:rne:absmax:mask=q", true },
    { "default a=uint8\nop:MatMul a=uint8:asym",           "ort",     "o", INT8, UINT8, false },
    { "default a=uint8\nop:conv a=uint8:asym",             "ort",     "c", INT8, UINT8, true  },
    { "/head/ in=off",                                     "ort",     "c", "-",  "-",   false },
    { "op:Conv out=off",                                   "generic", "c", INT8, UINT8, false },
    { "",                                                  "ort",     "g", NULL, NULL,  false },
    { "op:Gelu in=table out=table",                        "ort",     "g", NULL, NULL,  true  },
    { "op:Gelu in=table out=table",                        "ort",     "a", NULL, NULL,  true  },
    { "/head/ in=table",                                   "ort",     "g", NULL, NULL,  true  },
    { "",                                                  "generic", "g", NULL, NULL,  true  },
    { "op:Gelu in=off out=off",                            "generic", "g", NULL, NULL,  false },
    { "op:Gelu out=off",                                   "generic", "g", NULL, NULL,  false },
    { "default in=off\nop:Conv in=input,weight,bias",      "generic", "g", NULL, NULL,  false },
    { "default in=off\nop:Conv in=input,weight,bias",      "generic", "r", NULL, NULL,  true  },
    { "op:Add in=off",                                     "generic", "g", NULL, NULL,  false },
    { "op:Gelu in=off\nop:Gelu in=table",                  "generic", "g", NULL, NULL,  true  },
};
/* clang-format on */

static const char *shown(Context *c, const Quantizer *q)
{
    return q ? quantizer_text(q, &c->arena) : "-";
}

/* Whether what a call gives, or the row behind it, is codes. */
static bool is_codes(Placement *p, const Node *n)
{
    const Node *reader = n->uses ? n->uses->user : NULL;
    return quant_value(p, n)->by || (reader && reader->op == OP_relu && quant_value(p, reader)->by);
}

static bool case_holds(Context *c, const Case *x)
{
    Module *m = NULL;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(model), "t.qir", NULL, NULL, &m), OK);
    Graph *g = m->graphs[0];
    Placement *p = said(c, g, "w8a8", x->target, table_of(c, x->table));
    for (Node *n = g->first; n; n = n->next) {
        const QuantCallMark *k = quant_call(p, n);
        if (strcmp(n->name, x->node) != 0)
            continue;
        const char *w = shown(c, k->weight), *a = shown(c, k->data);
        if (x->weight && (strcmp(w, x->weight) != 0 || strcmp(a, x->data) != 0))
            return print_error("%s: %s has %s and %s\n", x->table, x->node, w, a), false;
        if (n->op != OP_matmul && is_codes(p, n) != x->codes)
            return print_error("%s: %s for %s is %scodes\n", x->table, x->node, x->target, x->codes ? "no " : ""),
                   false;
        return true;
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

static Status a_name_that_matches_nothing(void *arg)
{
    Context *c = arg;
    Module *m = NULL;
    assert_int_equal(parse_module(&c->ir, &c->arena, str(model), "t.qir", NULL, NULL, &m), OK);
    const QuantTable *t = table_of(c, "# \n/tail/ w=off\nop:Gemm w=off\n");
    said(c, m->graphs[0], "w8a8", "ort", t);
    assert_non_null(strstr(c->last, "lists.txt:2: warning: '/tail/' matches no node"));
    said(c, m->graphs[0], "w8a8", "ort", t);
    assert_int_equal(c->diag.n_warnings, 1);
    return OK;
}

/* ---- lists of others ---- */

/* What is embedded is what stands in tables/quant/; it is read, and says something of this model to every target. */
static Status each_file(void *arg)
{
    static const char *const targets[] = { "ort", "generic" };
    Context *c = arg;
    const char *names[MOST_SHIPPED_QUANT_TABLES];
    const size_t n = quant_tables_shipped(names);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < COUNT(targets); k++) {
            Str bytes;
            const QuantTable *t;
            Module *m = NULL;
            const char *path = arena_printf(&c->arena, "%s/tables/quant/%s.txt", QCC_SOURCE_DIR, names[i]);
            assert_int_equal(file_read(&c->arena, &c->diag, path, 1 << 20, "string_bytes", &bytes), OK);
            assert_string_equal(bytes.p, quant_table_shipped(names[i]));
            assert_int_equal(quant_table_read(&t, path, bytes.p, c->ir.ops, &c->arena, &c->diag), OK);
            assert_int_equal(parse_module(&c->ir, &c->arena, str(model), "t.qir", NULL, NULL, &m), OK);
            Placement *p = said(c, m->graphs[0], "w8a8", targets[k], t);
            assert_non_null(quant_call(p, m->graphs[0]->first)->by);
        }
    assert_int_equal(n, 5);
    assert_int_equal(c->diag.n_warnings, 0);
    assert_null(quant_table_shipped("tensorrt"));
    return OK;
}

/* What the lists say of the depthwise convolution, and whether the sum of this model is one of codes. */
static Status lists_say_what_theirs_say(void *arg)
{
    static const struct {
        const char *table, *weight, *data;
        bool sum;
    } lists[] = {
        { "ort", "int8:tensor:minmax:f32:sym:narrow:rne:absmax:mask=pass",
          "int8:tensor:minmax:f32:asym:full:rne:absmax:mask=q", true },
        { "trt", INT8, "int8:tensor:minmax:f32:sym:full:rne:absmax:mask=q", false },
        { "brevitas", "int8:tensor:minmax:f32:sym:narrow:rne:absmax:mask=pass",
          "int8|uint8:tensor:stats=300:f32:sym:full:rne:absmax:mask=q", false },
        { "torchao", "-", "-", false },
        { "modelopt", INT8, "int8:tensor:minmax:f32:sym:narrow:rne:absmax:mask=q", false },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(lists); i++) {
        Module *m = NULL;
        assert_int_equal(parse_module(&c->ir, &c->arena, str(model), "t.qir", NULL, NULL, &m), OK);
        Graph *g = m->graphs[0];
        Placement *p = said(c, g, "w8a8", "generic", table_of(c, quant_table_shipped(lists[i].table)));
        assert_string_equal(shown(c, quant_call(p, g->first)->weight), lists[i].weight);
        assert_string_equal(shown(c, quant_call(p, g->first)->data), lists[i].data);
        bool sum = false;
        for (Node *n = g->first; n; n = n->next)
            sum |= n->op == OP_gelu && quant_value(p, n)->by;
        assert_int_equal(sum, lists[i].sum);
    }
    return OK;
}

/* ---- mistakes ---- */

static Status each_mistake(void *arg)
{
    static const struct {
        const char *text, *said;
    } mistakes[] = {
        { "\nop:Cnv w=off", "lists.txt:2:4: operator Cnv is not known" },
        { "op:Cnv w=off", "try: Conv" },
        { "op:Conv", "lists.txt:1:8: nothing is said: wanted is w=, a=, b=, in= or out=" },
        { "op:Conv reason=depthwise", "nothing is said" },
        { "op:Conv off", "off: wanted is key=value" },
        { "op:Conv x=int8", "lists.txt:1:9: key x is not known" },
        { "op:Conv input=off", "key input is not known" },
        { "op:Conv resn=why w=off", "try: reason" },
        { "op:Conv w=int9x", "lists.txt:1:11: no format is called 'int9x'" },
        { "op:Conv w=int8:chanel", "try: channel" },
        { "op:Conv w=int8:lsq:asym:minmax", "say the same of one quantizer" },
        { "op:Conv w=SmoothQuant", "SmoothQuant is for models that are not trained again" },
        { "op:Conv w=gptq", "try: int4:group=128" },
        { "op:Relu w=int8", "relu is no product: it has the quantizers of those that ask for its data" },
        { "op:Relu w=int8", "try: in=off, which leaves it float" },
        { "op:Gelu in=input", "lists.txt:1:12: gelu cannot be in=input" },
        { "op:Gelu in=input", "try: in=table" },
        { "op:Softmax in=table", "softmax cannot be in=table" },
        { "op:Softmax in=table", "try: in=float" },
        { "/head/ in=input", "what is selected by name cannot be in=input" },
        { "op:Conv in=off out=input", "what reads no codes gives none" },
        { "op:Conv[groups=2] w=off", "attribute of conv groups is not known" },
        { "op:Conv[group=2 w=off", "a ] is missing" },
    };
    Context *c = arg;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        const QuantTable *t;
        c->last = "";
        const Status status = quant_table_read(&t, "lists.txt", mistakes[i].text, c->ir.ops, &c->arena, &c->diag);
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
    static const char text[] = "# lists\nop:Conv[group=32] w=int8:channel a=uint8:asym reason=depthwise\n"
                               "/head/ w=off a=off\nop:Gelu in=table out=table\ndefault a=uint8 b=off\n";
    static const char odd[] = "\n \t[]=,:#-*0129\"\\opwabiu\xff";
    Context *c = arg;
    Rng rng = { 5 };
    size_t read = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        char damaged[sizeof text];
        const QuantTable *t;
        memcpy(damaged, text, sizeof text);
        for (int64_t k = rng_range(&rng, 1, 3); k > 0; k--)
            damaged[rng_below(&rng, sizeof text - 1)] = odd[rng_below(&rng, sizeof odd)];
        const Status status = quant_table_read(&t, "lists.txt", damaged, c->ir.ops, &c->arena, &c->diag);
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
TEST(a_name_that_matches_nothing)
TEST(each_file)
TEST(lists_say_what_theirs_say)
TEST(each_mistake)
TEST(each_damage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_printed_changes_nothing),
        cmocka_unit_test(test_lines_say_what_they_say),
        cmocka_unit_test(test_a_name_that_matches_nothing),
        cmocka_unit_test(test_each_file),
        cmocka_unit_test(test_lists_say_what_theirs_say),
        cmocka_unit_test(test_each_mistake),
        cmocka_unit_test(test_each_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
