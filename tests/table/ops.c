/* Every op of the table: its card answers every question, and every sample is a legal call whose value has the type
 * that infer promised, is the same whatever runs it, and is what the expansion says. */
#include "base/parallel.h"
#include "ops/schema.h"
#include "testing.h"

/* ---- what a card must say ---- */

static const char *missing(const OpDef *d)
{
    const int meanings = (d->row != NULL) + (d->eval != NULL) + (d->expand != NULL);
    if (!d->infer)
        return "a type";
    if (d->amp.f16 == AMP_UNSET || d->amp.bf16 == AMP_UNSET)
        return "a class of mixed precision";
    if ((d->amp.f16 == AMP_C || d->amp.bf16 == AMP_C) && !d->amp.when)
        return "a function that decides its class";
    if (d->quant.out == QUANT_UNSET)
        return "a role in quantized graphs";
    if (d->max_in != 0 && d->quant.in[0] == QUANT_UNSET && !d->structural)
        return "a role of its operands in quantized graphs";
    if (d->structural)
        return meanings ? "no meaning (it is structure)" : NULL;
    if (meanings != 1)
        return "exactly one meaning";
    if (d->fast && !d->expand)
        return "an expansion for what is fast";
    if (!d->sample || d->n_variants < 1)
        return "samples";
    if (!d->onnx.op && !d->brief)
        return "what it is (an ONNX operator or a sentence)";
    if (d->onnx.op && d->onnx.since < 1)
        return "the version of its ONNX operator";
    return NULL;
}

static void cards_are_complete(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        const char *lacks = missing(d);
        if (lacks)
            print_error("%s lacks %s\n", d->name, lacks), bad++;
        Op same;
        assert_true(op_find(&ops_table, str(d->name), &same));
        if (same != i)
            print_error("%s is there twice\n", d->name), bad++;
    }
    assert_int_equal(bad, 0);
}

/* Attribute names and counts agree with what ONNX says of the operator. */
static int disagreements(const OpDef *d)
{
    const OnnxSchema *s = schema_find(d->onnx.domain ? d->onnx.domain : "", d->onnx.op, ONNX_OPSET_NEWEST);
    int bad = 0;
    if (!s)
        return print_error("%s: ONNX has no %s\n", d->name, d->onnx.op), 1;
    if (s->since != d->onnx.since)
        print_error("%s: the newest %s is %d, not %d\n", d->name, s->op, s->since, d->onnx.since), bad++;
    for (int i = 0; i < s->n_attr; i++)
        if (s->attr[i].type != ONNX_ATTR_GRAPH && !attr_find(d->attrs, str(s->attr[i].name)))
            print_error("%s: lacks the attribute %s\n", d->name, s->attr[i].name), bad++;
    for (const AttrSpec *a = d->attrs; a && a->kind != ATTR_END; a++)
        if (!a->ours && !schema_attr(s, a->name))
            print_error("%s: %s is no attribute of %s\n", d->name, a->name, s->op), bad++;
    if (d->min_in > s->min_in || (d->max_in >= 0 && d->max_in < s->max_in))
        print_error("%s: takes %d to %d operands, ONNX %d to %d\n", d->name, d->min_in, d->max_in, s->min_in,
                    s->max_in),
            bad++;
    return bad;
}

static void cards_agree_with_onnx(void **state)
{
    (void)state;
    int bad = 0, seen = 0;
    for (size_t i = 0; i < ops_table.n; i++)
        if (ops_table.defs[i]->onnx.op)
            bad += disagreements(ops_table.defs[i]), seen++;
    print_message("%d ops of ONNX\n", seen);
    assert_int_equal(bad, 0);
}

/* ---- samples ---- */

/* One sample: a graph whose result is the call. */
typedef struct Case {
    Context *c;
    const OpDef *def;
    int variant;
    Graph *graph;
    Node *call;
} Case;

static int complain(const Case *k, const char *what)
{
    print_error("%s, variant %d: %s%s%s\n", k->def->name, k->variant, what, k->c->last ? ": " : "",
                k->c->last ? k->c->last : "");
    return 1;
}

static bool build(Case *k, Op op)
{
    Rng rng = { (uint64_t)op << 32 | (uint64_t)k->variant };
    k->c->last = NULL;
    k->graph = graph_new(&k->c->ir, &k->c->arena, "f");
    Build b = build_at_end(k->graph);
    Node *y = k->def->sample(&b, &rng, k->variant);
    if (!y || b.status != OK)
        return false;
    k->call = y->op == OP_part ? in(y, 0) : y;
    graph_return(k->graph, 1, &k->call, NULL);
    return true;
}

static Tensor *value(const Case *k, Graph *g, const char *level, Parallel *pool)
{
    Tensor *out = NULL;
    const EvalOptions options = { .kernels = level ? kernels_named(level) : NULL, .pool = pool, .seed = 7 };
    return evaluate(g, &options, &k->c->heap, NULL, &out) == OK ? out : NULL;
}

/* The call's meaning, in a graph of its own. */
static Tensor *expansion(const Case *k)
{
    Graph *g = graph_copy(k->graph, &k->c->arena);
    Node *call = graph_result(g, 0);
    Build b = build_before(call);
    const Tensor **values = NEWS(&k->c->arena, const Tensor *, call->n_in + 1);
    Node **ins = NEWS(&k->c->arena, Node *, call->n_in + 1);
    for (int i = 0; i < call->n_in; i++) {
        ins[i] = in(call, i);
        values[i] = ins[i] ? node_constant(ins[i], 0) : NULL;
    }
    const Site site = { .attr = call->attr,
                        .n_in = call->n_in,
                        .in = ins,
                        .value = values,
                        .type = call->type,
                        .n_out = type_results(call->type),
                        .regions = call->regions,
                        .n_regions = call->n_regions };
    Node *y = k->def->expand(&b, &site);
    if (!y)
        return NULL;
    graph_return(g, 1, &y, NULL);
    return value(k, g, NULL, NULL);
}

static int compare(const Case *k, const Tensor *want, Tensor *got, const char *what)
{
    if (!got)
        return complain(k, what);
    const bool same = tensor_same(want, got);
    tensor_drop(&k->c->heap, got);
    return same ? 0 : complain(k, what);
}

static int check_values(const Case *k, Parallel *pool)
{
    static const char *const levels[] = { "base", "v3", "v4" };
    int bad = 0;
    Tensor *want = value(k, k->graph, NULL, NULL);
    if (!want)
        return complain(k, "is not evaluated");
    if (!type_agrees(want->type, k->call->type))
        bad += complain(k, "gives another type than infer said");
    bad += compare(k, want, value(k, k->graph, NULL, pool), "differs with two threads");
    for (size_t i = 0; i < COUNT(levels); i++)
        if (kernels_named(levels[i]))
            bad += compare(k, want, value(k, k->graph, levels[i], NULL), levels[i]);
    if (k->def->fast)
        bad += compare(k, want, expansion(k), "differs from its expansion");
    tensor_drop(&k->c->heap, want);
    return bad;
}

static Status check_op(void *arg)
{
    Case *k = arg;
    Parallel *pool = parallel_open(2, NULL);
    Op op;
    int bad = 0;
    op_find(&ops_table, str(k->def->name), &op);
    for (k->variant = 0; k->variant < k->def->n_variants; k->variant++) {
        const char *why = NULL;
        if (!build(k, op))
            bad += complain(k, "is not built");
        else if (!node_infer(k->call, &why) || !type_agrees(node_infer(k->call, &why), k->call->type))
            bad += complain(k, why ? why : "has another type when asked again");
        else
            bad += check_values(k, pool);
    }
    parallel_close(pool);
    return bad ? INVALID : OK;
}

static void samples_hold(void **state)
{
    (void)state;
    int bad = 0, cases = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *d = ops_table.defs[i];
        if (d->structural || !d->sample)
            continue;
        Context c;
        context_open(&c);
        Case k = { .c = &c, .def = d };
        bad += guarded(&c.memory, check_op, &k) != OK;
        cases += d->n_variants;
        context_close(&c);
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
