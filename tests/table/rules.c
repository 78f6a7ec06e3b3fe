/* Walks every rule of every pass: builds random instances from the samples of the ops it matches, evaluates both
 * sides on values that include -0, NaN and infinities, and holds them against what the rule claims. */
#include <stdlib.h>

#include "ir/verify.h"
#include "ops/card/cards.h"
#include "passes/engine/pattern.h"
#include "passes/engine/trial.h"
#include "support/language.h"
#include "support/seed.h"
#include "unit/check.h"

enum { WANTED = 20, ENOUGH = 30, TRIES = 20000 };

/* One instance while it is built. */
typedef struct Instance {
    Graph *graph;
    Rng *rng;
    Build build;
    Node *leaf[MATCH_LEAVES];
    const Type *usual; /* what leaves are made of when nothing says otherwise */
    int variant;
    Op any; /* what stands for any op that fits */
    bool failed;
} Instance;

static Node *instance(Instance *made, const Pattern *p, const Node *sampled, const Type *beside);

static const Pattern *inside(const Pattern *p)
{
    while (p && (p->kind == PATTERN_ONCE || p->kind == PATTERN_WITH))
        p = p->in[0];
    return p;
}

static const Type *usual_type(Types *types, Rng *rng)
{
    static const DType dtypes[] = { F32, F32, F16, BF16, F64, I32, I64, U8, BOOL };
    int64_t dims[4];
    const int rank = (int)rng_below(rng, 5);
    for (int i = 0; i < rank; i++)
        dims[i] = rng_below(rng, 12) == 0 ? 0 : rng_range(rng, 1, 3);
    return type_tensor(types, dtypes[rng_below(rng, (int64_t)COUNT(dtypes))], rank, dims);
}

static Op op_of_pattern(const Instance *made, const Pattern *p)
{
    Op op = p->fits ? made->any : p->op;
    if (p->word)
        assert_true(op_find(made->graph->ir->ops, str(p->word), &op));
    return op;
}

/* A call as the op's card samples it, on constants. */
static Node *sample(Instance *made, Op op)
{
    const OpDef *def = made->graph->ir->ops->defs[op];
    if (!def->sample || !def->n_variants)
        return NULL;
    Node *n = def->sample(&made->build, made->rng, (int)rng_below(made->rng, def->n_variants));
    while (n && n->op != op) /* a part of what was meant */
        n = n->n_in ? in(n, 0) : NULL;
    return n;
}

static Node *constant_of(Instance *made, const Type *like, double value, bool scalar)
{
    Types *types = &made->graph->ir->types;
    const Type *type = scalar ? type_scalar(types, like->dtype) : like;
    Tensor *t = tensor_new(made->graph->arena, type);
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, value);
    return build_const(&made->build, t);
}

/* A few numbers that rules about constants ask for. */
static double some_number(Rng *rng)
{
    static const double numbers[] = { 0.0, -0.0, 1, 2, 0.5, 4, -1, 3, 0.25, 8, -2 };
    return numbers[rng_below(rng, (int64_t)COUNT(numbers))];
}

/* Integers as operands that steer take them: a shape of some value, axes, zeros, ones, what is left. */
static Node *steer(Instance *made)
{
    int64_t v[2 * MAX_RANK];
    int n = 0;
    const Type *t = made->usual;
    const size_t skip = (size_t)rng_below(made->rng, 3);
    for (size_t i = 0; i < made->graph->n_inputs && i <= skip; i++)
        t = made->graph->inputs[i]->type;
    const int rank = t->kind == TYPE_TENSOR && t->rank > 0 ? t->rank : 1;
    const int kind = (int)rng_below(made->rng, 7);
    const int count = kind < 2 ? t->rank : kind == 2 ? 2 * rank : kind == 3 ? rank : (int)rng_below(made->rng, 3);
    for (; n < count; n++)
        v[n] = kind < 2    ? t->dims[n]
               : kind == 2 ? 0
               : kind == 3 ? 1
               : kind == 4 ? n
               : n         ? rng_range(made->rng, 1, 3)
                           : -1;
    return build_i64s(&made->build, n, v);
}

static bool steers(const Node *sampled)
{
    return sampled && sampled->op == OP_const && dtype_is_integer(sampled->type->dtype) && sampled->type->rank <= 1;
}

static Node *leaf(Instance *made, int index, const Node *sampled, const Type *beside)
{
    if (made->leaf[index])
        return made->leaf[index];
    const Type *type = rng_below(made->rng, 3) ? beside : made->usual;
    if (beside && beside->kind == TYPE_TENSOR && beside->rank > 1 && rng_below(made->rng, 3) == 0)
        return made->leaf[index] =
                   graph_input(made->graph, NULL,
                               type_tensor(&made->graph->ir->types, beside->dtype, beside->rank - 1, beside->dims + 1));
    const bool asks = sampled && sampled->type->kind == TYPE_TENSOR && sampled->type->dtype == BOOL;
    if (sampled && (!beside || rng_below(made->rng, asks ? 8 : 2))) {
        /* integers steer (axes, shapes): they stay what was sampled */
        if (steers(sampled) && index > 0 && rng_below(made->rng, 4))
            return made->leaf[index] = steer(made);
        if (sampled->op == OP_const && dtype_is_integer(sampled->type->dtype) && rng_below(made->rng, 3))
            return made->leaf[index] = (Node *)(uintptr_t)sampled;
        type = sampled->type;
    }
    if (!type)
        type = made->usual;
    if (type->kind != TYPE_TENSOR || type->dtype == STRING || !type_known(type))
        return made->failed = true, NULL;
    return made->leaf[index] = graph_input(made->graph, NULL, type);
}

/* A call of the op on these operands; null when the card refuses it. */
static Node *call(Instance *made, Op op, const void *attr, int n, Node **operands, int n_out)
{
    Build quiet = made->build;
    Node *y = build_node_n(&quiet, op, attr, n, operands, n_out);
    made->failed |= !y;
    return y;
}

static DType amp_width(Rng *rng)
{
    static const DType widths[] = { F32, F16, BF16 };
    return widths[rng_below(rng, (int64_t)COUNT(widths))];
}

/* What a cast is of: the shape of its surroundings, in another type. */
static const Type *before_cast(Instance *made, Op op, const Type *beside)
{
    if (op != OP_amp_cast || !beside || beside->kind != TYPE_TENSOR)
        return beside;
    return type_with_dtype(&made->graph->ir->types, beside, amp_width(made->rng));
}

static const void *attributes(Instance *made, const Pattern *p, Op op, const Node *sampled)
{
    const AttrSpec *specs = made->graph->ir->ops->defs[op]->attrs;
    void *attr = attrs_copy(made->graph->arena, specs, sampled ? sampled->attr : NULL);
    if (op == OP_cast && rng_below(made->rng, 2)) /* there and back is worth more tries than chance gives it */
        ((CastAttr *)attr)->to = (int)made->usual->dtype + 1;
    const AttrSpec *out = attr_find(specs, str("out"));
    if (out && rng_below(made->rng, 3) == 0)
        *(int *)attr_at(out, attr) = (int)F32 + 1;
    if (op == OP_amp_cast)
        ((CastAttr *)attr)->to = (int)amp_width(made->rng) + 1;
    for (; p->kind == PATTERN_WITH || p->kind == PATTERN_ONCE; p = p->in[0])
        for (const AttrSpec *s = p->kind == PATTERN_WITH ? specs : NULL; s && s->kind != ATTR_END; s++) {
            const char *dot = arena_printf(made->graph->arena, ".%s", s->name);
            if (strstr(p->fields, dot))
                attr_copy_field(s, attr, p->attr);
        }
    return attr;
}

/* A further operand of a call that reads a cast: floats are cast from the same type, mostly. */
static Node *beside_cast(Instance *made, const Node *first, Node *sampled)
{
    if (!first || !sampled || first->op != OP_amp_cast || sampled->type->dtype != F32 || rng_below(made->rng, 4) == 0)
        return sampled;
    const Type *like = type_with_dtype(&made->graph->ir->types, sampled->type, in(first, 0)->type->dtype);
    return build_amp_cast(&made->build, graph_input(made->graph, NULL, like), F32);
}

static Node *instance_call(Instance *made, const Pattern *outer, const Type *beside)
{
    const Pattern *p = inside(outer);
    const Op op = op_of_pattern(made, p);
    const Node *s = sample(made, op);
    Node *operands[PATTERN_OPERANDS + 8] = { NULL };
    int n = 0;
    const Type *sibling = NULL;
    beside = before_cast(made, op, beside);
    for (int pass = 0; pass < 2; pass++) /* calls first: the others follow their types */
        for (int i = 0; i < PATTERN_OPERANDS && p->in[i] && !made->failed; i++) {
            const Pattern *q = inside(p->in[i]);
            const Node *at = s ? in(s, i) : NULL;
            if (q->kind == PATTERN_REST || q->kind == PATTERN_NONE || (q->kind == PATTERN_OP) == pass)
                continue;
            operands[i] = instance(made, p->in[i], at, sibling ? sibling : beside);
            if (operands[i])
                sibling = operands[i]->type->kind == TYPE_TENSOR ? operands[i]->type : sibling;
            n = i + 1 > n ? i + 1 : n;
        }
    const Node *cast = operands[0];
    for (int i = 1; i < n && (!cast || cast->op != OP_amp_cast); i++)
        cast = operands[i];
    for (int i = 0; i < PATTERN_OPERANDS && p->in[i]; i++)
        for (int k = i; p->in[i]->kind == PATTERN_REST && s && k < s->n_in && k < (int)COUNT(operands); k++) {
            operands[k] = steers(in(s, k)) && rng_below(made->rng, 2) ? steer(made) : beside_cast(made, cast, in(s, k));
            n = k + 1;
        }
    const int most = made->graph->ir->ops->defs[op]->max_out;
    return made->failed ? NULL
                        : call(made, op, attributes(made, outer, op, s), n, operands,
                               most > 1 && rng_below(made->rng, 2) ? most : 1);
}

static Node *instance(Instance *made, const Pattern *p, const Node *sampled, const Type *beside)
{
    const Pattern *q = inside(p);
    const Type *like = sampled && (!beside || rng_below(made->rng, 4) == 0) ? sampled->type
                       : beside                                             ? beside
                                                                            : made->usual;
    switch (q->kind) {
    case PATTERN_LEAF:
        return leaf(made, q->index, sampled, beside);
    case PATTERN_OP:
        return instance_call(made, p, beside ? beside : sampled ? sampled->type : NULL);
    case PATTERN_EQ:
        return constant_of(made, like, q->value, rng_below(made->rng, 2));
    case PATTERN_CONST:
        if (steers(sampled) && rng_below(made->rng, 8))
            return build_i64s(&made->build, 1, (const int64_t[]){ -1 });
        if (sampled && dtype_is_integer(sampled->type->dtype))
            return (Node *)(uintptr_t)sampled;
        return constant_of(made, like, some_number(made->rng), rng_below(made->rng, 2));
    default:
        return NULL;
    }
}

/* ---- one rule ---- */

typedef struct Tally {
    int built, accepted, ran;
} Tally;

static void try_rule(const Pass *pass, const Rule *rule, Op any, uint64_t seed, Tally *tally)
{
    Language l;
    Arena scratch;
    Hush hush;
    language_open(&l);
    arena_open(&scratch, &l.memory);
    Rng rng = { seed_of(rule->name, seed) };
    Instance made = { .graph = graph_new(&l.ir, &l.arena, "f"), .rng = &rng, .any = any };
    made.build = build_at_end(made.graph);
    made.build.flags = rule->exactness == ELASTIC ? NODE_OURS : 0;
    made.usual = usual_type(&l.ir.types, &rng);
    hush_begin(&hush, &l.ir, &scratch);
    Node *y = instance(&made, rule->match, NULL, NULL);
    hush_end(&hush);
    if (y && !made.failed && type_known(y->type)) {
        tally->built++;
        graph_return(made.graph, 1, &y, NULL);
        if (seed % 2) /* what a pattern says twice is one node, or two */
            assert_int_equal(pass_run(pass_find("merge-equals"), made.graph, NULL), OK);
        Graph *before = graph_copy(made.graph, &l.arena);
        int64_t applied = 0;
        const PassOptions options = { 0 };
        PassRun run = { .pass = pass, .options = &options, .diag = &l.diag, .scratch = &scratch, .allowed = 1 };
        run.applied = &applied;
        check_that(rules_run(rule, 1, made.graph, &run) == OK, "%s: %s", rule->name, text_get(&l.messages));
        if (applied) {
            bool ran;
            tally->accepted++;
            check_that(verify(made.graph, NULL) == OK, "%s, seed %d: %s", rule->name, (int)seed, text_get(&l.messages));
            const char *difference = trial_compare(before, made.graph, rule->exactness, seed, &scratch, &ran);
            tally->ran += ran;
            if (difference) {
                Text t;
                text_open(&t, &l.arena);
                (void)print_graph(&t, before, NULL);
                (void)print_graph(&t, made.graph, NULL);
                fail_msg("%s: %s (seed %d)\n%.2000s", rule->name, difference, (int)seed, text_get(&t));
            }
        }
    }
    arena_close(&scratch);
    language_close(&l);
}

/* The call of any op in a pattern; null: there is none. */
static const Pattern *any_call(const Pattern *p)
{
    const Pattern *found = p && p->fits ? p : NULL;
    for (int i = 0; p && i < PATTERN_OPERANDS && !found; i++)
        found = any_call(p->in[i]);
    return found;
}

/* With each op that fits; some fit and give no tensor that is cast: they are left when nothing comes of a few tries. */
static void check_rule_of_any(const Pass *pass, const Rule *rule, const Pattern *any)
{
    enum { FEW = 2000 };
    int words = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        Tally tally = { 0 };
        if (!any->fits(ops_table.defs[op]))
            continue;
        for (uint64_t seed = 1; seed < (tally.ran ? TRIES : FEW) && tally.ran < ENOUGH; seed++)
            try_rule(pass, rule, (Op)op, seed, &tally);
        if (getenv("QCC_TEST_VERBOSE"))
            print_message("%s/%s of %s: %d built, %d accepted, %d ran\n", pass->name, rule->name,
                          ops_table.defs[op]->name, tally.built, tally.accepted, tally.ran);
        check_that(tally.ran == 0 || tally.ran >= WANTED, "%s/%s of %s: %d evaluated", pass->name, rule->name,
                   ops_table.defs[op]->name, tally.ran);
        words += tally.ran > 0;
    }
    check_that(words > 0, "%s/%s: no op gave an instance", pass->name, rule->name);
}

static void check_rule(const Pass *pass, const Rule *rule)
{
    Tally tally = { 0 };
    if (any_call(rule->match)) {
        check_rule_of_any(pass, rule, any_call(rule->match));
        return;
    }
    for (uint64_t seed = 1; seed < TRIES && tally.ran < ENOUGH; seed++)
        try_rule(pass, rule, 0, seed, &tally);
    if (getenv("QCC_TEST_VERBOSE"))
        print_message("%s/%s: %d built, %d accepted, %d ran\n", pass->name, rule->name, tally.built, tally.accepted,
                      tally.ran);
    check_that(tally.ran >= WANTED, "%s/%s: %d instances built, %d accepted, %d evaluated", pass->name, rule->name,
               tally.built, tally.accepted, tally.ran);
}

static void rules_keep_what_they_claim(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_all_passes; i++)
        for (size_t k = 0; k < all_passes[i]->n_rules; k++)
            check_rule(all_passes[i], &all_passes[i]->rules[k]);
}

static void rules_have_names(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_all_passes; i++)
        for (size_t k = 0; k < all_passes[i]->n_rules; k++) {
            const Rule *r = &all_passes[i]->rules[k];
            assert_true(r->name && r->match && !r->become != !r->build);
            check_that(r->exactness <= all_passes[i]->may, "%s does more than %s may", r->name, all_passes[i]->name);
            for (size_t j = 0; j < k; j++)
                check_that(strcmp(all_passes[i]->rules[j].name, r->name) != 0, "two rules are called %s", r->name);
        }
}

/* The comparison itself has to see a difference. */
static const Rule wrong[] = {
    { "wrong-zero", EXACT, P(add, X, EQ(0.0)), X, NULL, NULL },
    { "wrong-abs", EXACT, P(abs, X), X, NULL, NULL },
};

static bool differs(const Rule *rule)
{
    for (uint64_t seed = 1; seed < TRIES; seed++) {
        Language l;
        Arena scratch;
        bool ran;
        language_open(&l);
        arena_open(&scratch, &l.memory);
        Rng rng = { seed_of(rule->name, seed) };
        Instance made = { .graph = graph_new(&l.ir, &l.arena, "f"), .rng = &rng };
        made.build = build_at_end(made.graph);
        made.usual = usual_type(&l.ir.types, &rng);
        Hush hush;
        hush_begin(&hush, &l.ir, &scratch);
        Node *y = instance(&made, rule->match, NULL, NULL);
        hush_end(&hush);
        const char *difference = NULL;
        if (y && !made.failed && type_known(y->type)) {
            graph_return(made.graph, 1, &y, NULL);
            Graph *before = graph_copy(made.graph, &l.arena);
            const PassOptions options = { 0 };
            PassRun run = { .options = &options, .diag = &l.diag, .scratch = &scratch, .allowed = -1 };
            assert_int_equal(rules_run(rule, 1, made.graph, &run), OK);
            difference = trial_compare(before, made.graph, EXACT, seed, &scratch, &ran);
        }
        arena_close(&scratch);
        language_close(&l);
        if (difference)
            return true;
    }
    return false;
}

static void wrong_rules_are_caught(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++)
        check_that(differs(&wrong[i]), "%s passes", wrong[i].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_have_names),
        cmocka_unit_test(wrong_rules_are_caught),
        cmocka_unit_test(rules_keep_what_they_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
