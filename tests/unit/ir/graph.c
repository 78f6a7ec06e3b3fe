/* Graphs under edits drawn at random: the verifier agrees after each, copies and texts say the same. */
#include "support/language.h"

#include <string.h>

#include "base/rng.h"
#include "ir/build.h"
#include "ir/verify.h"
#include "unit/check.h"

enum { MOST = 64 };

typedef struct Play {
    Language l;
    Rng rng;
    Graph *g;
} Play;

static Node *nth(Graph *g, int64_t i)
{
    if (i < (int64_t)g->n_inputs)
        return g->inputs[i];
    Node *n = g->first;
    for (i -= (int64_t)g->n_inputs; n && i > 0; i--)
        n = n->next;
    return n;
}

static int64_t size(const Graph *g)
{
    int64_t n = (int64_t)g->n_inputs;
    for (const Node *k = g->first; k; k = k->next)
        n++;
    return n;
}

/* Whether `a` stands before `b`; inputs stand before all. */
static bool before(const Node *a, const Node *b)
{
    for (size_t i = 0; i < a->graph->n_inputs; i++)
        if (a->graph->inputs[i] == a)
            return a != b;
    for (const Node *n = a->next; n; n = n->next)
        if (n == b)
            return true;
    return false;
}

static void add(Play *p)
{
    Node *at = rng_below(&p->rng, 3) ? NULL : nth(p->g, (int64_t)p->g->n_inputs + rng_below(&p->rng, MOST));
    Node *ins[3];
    const int n = (int)rng_range(&p->rng, 1, 3);
    for (int i = 0; i < n; i++) {
        ins[i] = nth(p->g, rng_below(&p->rng, size(p->g)));
        if (at && (ins[i] == at || !before(ins[i], at)))
            ins[i] = p->g->inputs[0];
    }
    Op op = OP_identity;
    op_find(&p->l.ops, str("same"), &op);
    Node *made = graph_insert(p->g, at, op, ins[0]->type, n, ins);
    if (rng_below(&p->rng, 2))
        made->name = arena_printf(&p->l.arena, "v%u", made->id);
}

static void replace(Play *p)
{
    Node *old = nth(p->g, rng_below(&p->rng, size(p->g))), *by = nth(p->g, rng_below(&p->rng, size(p->g)));
    if (old != by && before(by, old))
        graph_replace(old, by);
}

static void drop(Play *p)
{
    Node *n = nth(p->g, (int64_t)p->g->n_inputs + rng_below(&p->rng, MOST));
    if (n && !n->uses)
        node_remove(n);
}

static void rewire(Play *p)
{
    Node *n = nth(p->g, (int64_t)p->g->n_inputs + rng_below(&p->rng, MOST)), *def;
    if (!n)
        return;
    def = nth(p->g, rng_below(&p->rng, size(p->g)));
    if (before(def, n))
        node_set_in(n, (int)rng_below(&p->rng, n->n_in), def);
}

/* To the end, where nothing reads it; or in front of itself. */
static void move(Play *p)
{
    Node *n = nth(p->g, (int64_t)p->g->n_inputs + rng_below(&p->rng, MOST));
    if (n && !n->uses)
        node_move(n, NULL);
    if (n)
        node_move(n, n);
}

static void results(Play *p)
{
    Node *r[3];
    const int n = (int)rng_below(&p->rng, 4);
    for (int i = 0; i < n; i++)
        r[i] = nth(p->g, rng_below(&p->rng, size(p->g)));
    const char *names[] = { "r0", "r1", "r2" };
    graph_return(p->g, n, r, names);
}

static void check_same_text(Play *p)
{
    Language *l = &p->l;
    Module *m = module_new(&l->ir, &l->arena), *c = module_new(&l->ir, &l->arena);
    module_add(m, p->g);
    module_add(c, graph_copy(p->g, &l->arena));
    check_that(verify_module(c, NULL) == OK, "%s", text_get(&l->messages));
    const char *text = language_print(l, m, NULL);
    assert_string_equal(language_print(l, c, NULL), text);
    assert_true(c->graphs[0]->n_ids == size(p->g) + 1);
    const Module *again = language_parse(l, text, NULL);
    check_that(again, "%s", text_get(&l->messages));
    assert_string_equal(language_print(l, again, NULL), text);
}

static void edits_keep_a_graph_whole(void **state)
{
    (void)state;
    static void (*const moves[])(Play * p) = { add, add, replace, drop, rewire, move, results };
    for (uint64_t seed = 0; seed < 20; seed++) {
        Play p = { .rng = { seed } };
        language_open(&p.l);
        p.g = graph_new(&p.l.ir, &p.l.arena, "g");
        graph_input(p.g, "x", type_vector(&p.l.ir.types, F32, 4));
        graph_input(p.g, NULL, type_vector(&p.l.ir.types, F32, 4));
        for (int i = 0; i < 300; i++) {
            moves[rng_below(&p.rng, COUNT(moves))](&p);
            check_that(verify(p.g, NULL) == OK, "seed %d, edit %d: %s", (int)seed, i, text_get(&p.l.messages));
        }
        check_same_text(&p);
        language_close(&p.l);
    }
}

static void regions_are_copied_and_walked(void **state)
{
    (void)state;
    static const char text[] = "graph @f(%x: f32[2]) -> (%y) {\n"
                               "    %y: f32[2] = both(%x) { () -> ()\n"
                               "    } { (%a: f32[2]) -> (%c)\n"
                               "        %b: f32[2] = both(%a) { (%p: f32[2]) -> (%q)\n"
                               "            %q: f32[2] = same(%p)\n"
                               "        }\n"
                               "        %c: f32[2] = same(%b)\n"
                               "    }\n"
                               "    %z: f32[2] = same(%y)\n"
                               "}\n";
    static const char *const order[] = { "y", "b", "q", "c", "z" };
    Language l;
    language_open(&l);
    const Module *m = language_parse(&l, text, NULL);
    assert_non_null(m);
    Module *c = module_new(&l.ir, &l.arena);
    module_add(c, graph_copy(m->graphs[0], &l.arena));
    assert_int_equal(verify_module(c, NULL), OK);
    assert_string_equal(language_print(&l, c, NULL), text);
    size_t i = 0;
    for (const Node *n = walk_first(c->graphs[0]); n; n = walk_next(c->graphs[0], (Node *)(uintptr_t)n))
        assert_string_equal(n->name, order[i++]);
    assert_int_equal(i, COUNT(order));
    assert_int_equal(graph_count(c->graphs[0]), COUNT(order));
    language_close(&l);
}

static void facts_grow_and_stay(void **state)
{
    (void)state;
    Language l;
    language_open(&l);
    Graph *g = graph_new(&l.ir, &l.arena, "g");
    Node *x = graph_input(g, "x", type_scalar(&l.ir.types, F32)), *nodes[5000];
    Facts facts = facts_open(&l.arena, sizeof(int));
    assert_null(fact_known(&facts, x));
    int *first = fact(&facts, x);
    assert_ptr_equal(fact_known(&facts, x), first);
    *first = 7;
    for (int i = 0; i < 5000; i++) {
        nodes[i] = graph_insert(g, NULL, OP_identity, x->type, 1, &x);
        const uint64_t before = l.memory.requests;
        fact_known(&facts, nodes[i]);
        assert_true(l.memory.requests == before);
        int *slot = fact(&facts, nodes[i]);
        assert_int_equal(*slot, 0);
        *slot = i;
    }
    assert_ptr_equal(fact(&facts, x), first);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(*(int *)fact(&facts, nodes[i]), i);
    assert_int_equal(node_n_uses(x), 5000);
    language_close(&l);
}

static const Node *first_node(Language *l, const char *call)
{
    const char *text = arena_printf(&l->arena, "graph @f() -> () {\n %%0: f32[] = %s\n}\n", call);
    const Module *m = language_parse(l, text, NULL);
    check_that(m, "%s", text_get(&l->messages));
    return m->graphs[0]->first;
}

/* Attributes that differ in one field are different, whatever the kind of the field; equal ones hash equal. */
static void attributes_are_compared_by_content(void **state)
{
    (void)state;
    static const char *const calls[] = {
        "every(needed=1)",
        "every(needed=2)",
        "every(needed=1, i=8)",
        "every(needed=1, f=0)",
        "every(needed=1, f=-0)",
        "every(needed=1, f=nan)",
        "every(needed=1, b=false)",
        "every(needed=1, s=\"x\")",
        "every(needed=1, s=none)",
        "every(needed=1, e=red)",
        "every(needed=1, d=f32)",
        "every(needed=1, d=bool)",
        "every(needed=1, is=[])",
        "every(needed=1, is=[1])",
        "every(needed=1, is=[1, 2])",
        "every(needed=1, fs=[])",
        "every(needed=1, fs=[1])",
        "every(needed=1, ss=[])",
        "every(needed=1, ss=[\"a\"])",
        "every(needed=1, ss=[\"b\"])",
        "every(needed=1, p=f32[2] [1, 2])",
        "every(needed=1, p=f32[2] [1, 3])",
        "every(needed=1, p=f64[2] [1, 2])",
        "every(needed=1, p=f32[2] normal(seed=1))",
        "every(needed=1, p=f32[2] normal(seed=2))",
        "every(needed=1, t=f32[2])",
        "every(needed=1, t=f32[?])",
    };
    Language l;
    language_open(&l);
    for (size_t i = 0; i < COUNT(calls); i++) {
        const Node *a = first_node(&l, calls[i]);
        const AttrSpec *specs = op_of(a)->attrs;
        const void *copy = attrs_copy(&l.arena, specs, a->attr);
        assert_true(attrs_equal(specs, a->attr, copy));
        assert_true(attrs_hash(specs, a->attr) == attrs_hash(specs, copy));
        for (size_t k = 0; k < COUNT(calls); k++) {
            const Node *b = first_node(&l, calls[k]);
            check_that(attrs_equal(specs, a->attr, b->attr) == (i == k), "%s and %s", calls[i], calls[k]);
            if (i == k)
                assert_true(attrs_hash(specs, a->attr) == attrs_hash(specs, b->attr));
        }
    }
    language_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_keep_a_graph_whole),
        cmocka_unit_test(regions_are_copied_and_walked),
        cmocka_unit_test(facts_grow_and_stay),
        cmocka_unit_test(attributes_are_compared_by_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
