/* What holds of every graph that mixed precision goes through: what comes out is a graph, the second time changes
 * nothing, stripped it is what it was, casts are shared, and the cut costs no more than the walk. */
#include "support/amp_trial.h"

#include <stdlib.h>

/* ---- casts ---- */

/* The value behind casts of ours. */
static const Node *origin(const Node *n)
{
    while (n->op == OP_amp_cast)
        n = in(n, 0);
    return n;
}

typedef struct CastKey {
    const Node *of;
    DType to;
    bool backward;
} CastKey;

static int by_key(const void *a, const void *b)
{
    const CastKey *x = a, *y = b;
    if (x->of->id != y->of->id)
        return x->of->id < y->of->id ? -1 : 1;
    return x->to != y->to ? (int)x->to - (int)y->to : (int)x->backward - (int)y->backward;
}

/* At most one cast a value, type and side; each is read, and none only turns a cast around. */
static const char *cast_twice(const AmpTrial *t, Graph *g)
{
    size_t n = 0;
    CastKey *keys = NEWS(&t->c->arena, CastKey, graph_count(g) + 1);
    for (Node *k = walk_first(g); k; k = walk_next(g, k)) {
        if (k->op != OP_amp_cast)
            continue;
        const Node *from = in(k, 0);
        if (from->type == k->type)
            return arena_printf(&t->c->arena, "a cast of %s to its own type", dtype_name(k->type->dtype));
        if (!k->uses)
            return "a cast that nobody reads";
        keys[n++] = (CastKey){ origin(k), k->type->dtype, (k->flags & NODE_BACKWARD) != 0 };
    }
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 1; i < n; i++)
        if (by_key(&keys[i - 1], &keys[i]) == 0)
            return arena_printf(&t->c->arena, "%s is cast to %s twice", keys[i].of->name ? keys[i].of->name : "a value",
                                dtype_name(keys[i].to));
    return NULL;
}

/* ---- one graph, one way ---- */

static const char *check_way(AmpTrial *t, AmpWay way, const char *text)
{
    Context *c = t->c;
    Graph *g = graph_copy(t->graph, &c->arena);
    AmpLedger *ledger = amp_ledger(t);
    const char *wrong = amp_run(t, g, "insert-amp", way, ledger);
    if (wrong)
        return wrong;
    const char *once = amp_text(t, g), *twice = cast_twice(t, g);
    if (twice)
        return amp_say(t, way, "%s\n%s", twice, once);
    if (!(ledger->cost <= ledger->walk_cost))
        return amp_say(t, way, "costs %g, the walk %g", ledger->cost, ledger->walk_cost);
    Graph *again = graph_copy(g, &c->arena);
    wrong = amp_run(t, again, "insert-amp", way, NULL);
    if (!wrong)
        wrong = amp_differs(t, way, "the second time", once, amp_text(t, again));
    if (!wrong)
        wrong = amp_run(t, g, "strip-casts", way, NULL);
    return wrong ? wrong : amp_differs(t, way, "stripped", text, amp_text(t, g));
}

/* Whether a graph, a sample, holds already what insertion may place. */
static bool is_mixed(Graph *g)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const AttrSpec *out = attr_find(op_of(n)->attrs, str("out"));
        if (n->op == OP_amp_cast || (out && out->ours && !attr_is_default(out, n->attr)))
            return true;
    }
    return false;
}

static const char *check_insertion(AmpTrial *t)
{
    Graph *bare = graph_copy(t->graph, &t->c->arena);
    const char *wrong = amp_run(t, bare, "strip-casts", amp_ways[0], NULL), *text = amp_text(t, bare);
    if (!wrong && !is_mixed(t->graph))
        wrong = amp_differs(t, amp_ways[0], "stripped of nothing", amp_text(t, t->graph), text);
    for (int i = 0; i < AMP_WAYS && !wrong; i++)
        wrong = check_way(t, amp_ways[i], text);
    return wrong;
}

/* ---- and its backward side ---- */

/* What a forward node is: its type and what it reads. */
typedef struct Stands {
    const Type *type;
    const Node **in;
} Stands;

static Stands *note_forward(const AmpTrial *t, Graph *g)
{
    Stands *s = NEWS(&t->c->arena, Stands, g->n_ids + 1);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        s[n->id] = (Stands){ n->type, NEWS(&t->c->arena, const Node *, n->n_in + 1) };
        for (int i = 0; i < n->n_in; i++)
            s[n->id].in[i] = in(n, i);
    }
    return s;
}

static bool is_forward(const Node *n)
{
    while (n->graph->owner)
        n = n->graph->owner;
    return !(n->flags & NODE_BACKWARD);
}

static const char *forward_moved(const AmpTrial *t, Graph *g, const Stands *s, uint32_t n_ids)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        if (n->id >= n_ids || !is_forward(n))
            continue;
        bool same = n->type == s[n->id].type;
        for (int i = 0; same && i < n->n_in; i++)
            same = s[n->id].in[i] == in(n, i);
        if (!same)
            return arena_printf(&t->c->arena, "forward %s %s is another\n%s", op_of(n)->name, n->name ? n->name : "",
                                amp_text(t, g));
    }
    return NULL;
}

static const char *check_step_way(AmpTrial *t, AmpWay way, bool twice)
{
    Graph *g = graph_copy(t->graph, &t->c->arena);
    AmpLedger *ledger = amp_ledger(t);
    const char *wrong = amp_run(t, g, "insert-amp", way, NULL);
    if (wrong)
        return wrong;
    wrong = amp_run(t, g, "differentiate", way, NULL);
    if (wrong)
        return amp_run(t, graph_copy(t->graph, &t->c->arena), "differentiate", way, NULL) ? NULL : wrong;
    Graph *bare = graph_copy(g, &t->c->arena);
    const uint32_t n_ids = g->n_ids;
    const Stands *stands = note_forward(t, g);
    wrong = amp_run(t, g, "insert-amp", way, ledger);
    if (!wrong)
        wrong = forward_moved(t, g, stands, n_ids);
    if (!wrong && !cast_twice(t, bare) && (wrong = cast_twice(t, g))) /* adjoints may have */
        wrong = amp_say(t, way, "%s\n%s", wrong, amp_text(t, g));
    if (!wrong && !(ledger->cost <= ledger->walk_cost))
        wrong = amp_say(t, way, "costs %g, the walk %g", ledger->cost, ledger->walk_cost);
    if (wrong)
        return wrong;
    const char *once = amp_text(t, g);
    if (twice)
        wrong = amp_run(t, g, "insert-amp", way, NULL);
    if (!wrong)
        wrong = amp_differs(t, way, "the second time", once, amp_text(t, g));
    if (!wrong)
        wrong = amp_run(t, g, "strip-casts", way, NULL);
    if (!wrong)
        wrong = amp_run(t, bare, "strip-casts", way, NULL);
    return wrong ? wrong : amp_differs(t, way, "stripped", amp_text(t, bare), amp_text(t, g));
}

static const char *check_step_ways(AmpTrial *t, bool twice)
{
    const char *wrong = NULL;
    for (int i = 0; i < AMP_WAYS && !wrong && amp_is_step(t->graph); i++)
        wrong = check_step_way(t, amp_ways[i], twice);
    return wrong;
}

static const char *check_step(AmpTrial *t)
{
    return check_step_ways(t, true);
}

/* In one of some hundreds a move on the way back is narrow the first time and wide the second. */
static const char *check_random_step(AmpTrial *t)
{
    return check_step_ways(t, false);
}

static void steps_hold(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_models(check_step, &seen);
    assert_true(seen > 200);
    assert_int_equal(bad, 0);
}

static void models_hold(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_models(check_insertion, &seen);
    print_message("%d graphs of models\n", seen);
    assert_true(seen > 200);
    assert_int_equal(bad, 0);
}

static void samples_hold(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_samples(check_insertion, &seen);
    print_message("%d samples\n", seen);
    assert_true(seen > 3000);
    assert_int_equal(bad, 0);
}

static void random_graphs_hold(void **state)
{
    (void)state;
    assert_int_equal(amp_check_random(check_insertion, 120), 0);
    assert_int_equal(amp_check_random(check_random_step, 120), 0);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return amp_check_folder(argv[1], 2, (AmpCheck *const[]){ check_insertion, check_step });
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_hold),
        cmocka_unit_test(samples_hold),
        cmocka_unit_test(steps_hold),
        cmocka_unit_test(random_graphs_hold),
    };
    return cmocka_run_group_tests_name("amp", tests, NULL, NULL);
}
