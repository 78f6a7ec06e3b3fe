/* What every card is held to, ours and others': it answers every question, agrees with ONNX, and every sample is a legal
 * call whose value has the type that infer promised, is the same whatever runs it, and is what the expansion says. */
#ifndef TESTS_SUPPORT_CARDS_HOLD_H
#define TESTS_SUPPORT_CARDS_HOLD_H

#include "base/parallel.h"
#include "ops/card/schema.h"
#include "support/samples.h"
#include "testing.h"

/* ---- what a card must say ---- */

/* What the card does not say; null: it is complete. */
static inline const char *card_lacks(const OpDef *d)
{
    const int meanings = (d->row != NULL) + (d->eval != NULL) + (d->expand != NULL);
    if (!d->infer)
        return "a type";
    if (d->amp.f16 == AMP_UNSET || d->amp.bf16 == AMP_UNSET)
        return "a class of mixed precision";
    if ((d->amp.f16 == AMP_C || d->amp.bf16 == AMP_C) && !d->amp.when)
        return "a function that decides its class";
    if (d->quant.out[0] == QUANT_UNSET)
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

/* The default of one attribute, said by the card and by ONNX: floats and integers that both have. */
static inline bool default_differs(const AttrSpec *a, const OnnxAttr *s, const void *defaults)
{
    const void *at = attr_at(a, (void *)(uintptr_t)defaults);
    if (!s->fallback)
        return false;
    if (s->type == ONNX_ATTR_FLOAT && a->kind == ATTR_FLOAT)
        return *(const float *)at != s->f;
    if (s->type == ONNX_ATTR_INT && a->kind == ATTR_INT)
        return *(const int64_t *)at != s->i;
    return s->type == ONNX_ATTR_INT && a->kind == ATTR_BOOL && *(const bool *)at != (s->i != 0);
}

static inline int defaults_disagree(const OpDef *d, const OnnxSchema *s)
{
    Memory m;
    Arena arena;
    int bad = 0;
    memory_open(&m, NULL);
    arena_open(&arena, &m);
    const void *defaults = attrs_default(&arena, d->attrs);
    for (int i = 0; i < s->n_attr; i++) {
        const AttrSpec *a = attr_find(d->attrs, str(s->attr[i].name));
        if (a && default_differs(a, &s->attr[i], defaults))
            print_error("%s: the default of %s is not %s\n", d->name, a->name, s->attr[i].fallback), bad++;
    }
    arena_close(&arena);
    return bad;
}

/* Attribute names, defaults and counts agree with what ONNX says of the operator. */
static inline int card_disagreements(const OpDef *d)
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
    return bad + defaults_disagree(d, s);
}

/* ---- samples ---- */

/* One sample: a graph whose result is the call. */
typedef struct Sample {
    Context *c;
    const OpDef *def;
    int variant;
    Graph *graph;
    Node *call;
} Sample;

static inline int sample_complain(const Sample *k, const char *what)
{
    print_error("%s, variant %d: %s%s%s\n", k->def->name, k->variant, what, k->c->last ? ": " : "",
                k->c->last ? k->c->last : "");
    return 1;
}

static inline bool sample_build(Sample *k)
{
    k->c->last = NULL;
    Node *y = sample_of(k->c, k->def, k->variant);
    if (!y)
        return false;
    k->graph = y->graph;
    k->call = sample_call(y);
    graph_return(k->graph, 1, &k->call, NULL);
    return true;
}

static inline Tensor *sample_value(const Sample *k, Graph *g, const char *level, Parallel *pool)
{
    Tensor *out = NULL;
    const EvalOptions options = { .kernels = level ? kernels_named(level) : NULL, .pool = pool, .seed = 7 };
    return evaluate(g, &options, &k->c->heap, NULL, &out) == OK ? out : NULL;
}

/* The call's meaning, in a graph of its own. */
static inline Tensor *sample_expansion(const Sample *k)
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
    return sample_value(k, g, NULL, NULL);
}

static inline int sample_compare(const Sample *k, const Tensor *want, Tensor *got, const char *what)
{
    if (!got)
        return sample_complain(k, what);
    const bool same = tensor_same(want, got);
    tensor_drop(&k->c->heap, got);
    return same ? 0 : sample_complain(k, what);
}

static inline int sample_check_values(const Sample *k, Parallel *pool)
{
    static const char *const levels[] = { "base", "v3", "v4" };
    int bad = 0;
    Tensor *want = sample_value(k, k->graph, NULL, NULL);
    if (!want)
        return sample_complain(k, "is not evaluated");
    if (!type_agrees(want->type, k->call->type))
        bad += sample_complain(k, "gives another type than infer said");
    bad += sample_compare(k, want, sample_value(k, k->graph, NULL, pool), "differs with two threads");
    for (size_t i = 0; i < COUNT(levels); i++)
        if (kernels_named(levels[i]))
            bad += sample_compare(k, want, sample_value(k, k->graph, levels[i], NULL), levels[i]);
    if (k->def->fast)
        bad += sample_compare(k, want, sample_expansion(k), "differs from its expansion");
    tensor_drop(&k->c->heap, want);
    return bad;
}

static inline Status card_check_samples(void *arg)
{
    Sample *k = arg;
    Parallel *pool = parallel_open(2, NULL);
    int bad = 0;
    for (k->variant = 0; k->variant < k->def->n_variants; k->variant++) {
        const char *why = NULL;
        if (!sample_build(k))
            bad += sample_complain(k, "is not built");
        else if (!node_infer(k->call, &why) || !type_agrees(node_infer(k->call, &why), k->call->type))
            bad += sample_complain(k, why ? why : "has another type when asked again");
        else
            bad += sample_check_values(k, pool);
    }
    parallel_close(pool);
    return bad ? INVALID : OK;
}

/* Builds and evaluates the samples of a card of a table; how many were wrong, 0 or 1. */
static inline int card_samples_fail(const OpTable *table, const OpDef *def)
{
    Context c;
    context_open(&c);
    c.ir.ops = table;
    Sample k = { .c = &c, .def = def };
    const int bad = guarded(&c.memory, card_check_samples, &k) != OK;
    context_close(&c);
    return bad;
}

#endif
