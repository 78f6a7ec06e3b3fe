/* The order of nodes says nothing: in any order that is one, insertion labels the same values and places the same
 * casts. */
#include "support/amp_trial.h"

#include "base/rng.h"
#include "support/seed.h"

/* ---- another order ---- */

/* Whether everything of the same graph that n reads has its place. */
static bool is_ready(const Node *n, const bool *placed)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *def = in(n, i);
        if (def && def->graph == n->graph && def->op != OP_input && def->op != OP_state && !placed[def->id])
            return false;
    }
    return true;
}

/* Deals the nodes of one graph or region anew, each behind what it reads. */
static void shuffle_list(const AmpTrial *t, Graph *g, bool *placed, Rng *rng)
{
    size_t n = 0;
    for (const Node *k = g->first; k; k = k->next)
        n++;
    Node **left = NEWS(&t->c->arena, Node *, n + 1);
    n = 0;
    for (Node *k = g->first; k; k = k->next)
        left[n++] = k;
    while (n) {
        size_t i = (size_t)rng_below(rng, (int64_t)n);
        while (!is_ready(left[i], placed))
            i = i + 1 < n ? i + 1 : 0;
        placed[left[i]->id] = true;
        node_move(left[i], NULL);
        left[i] = left[--n];
    }
}

static void shuffle(const AmpTrial *t, Graph *g, Rng *rng)
{
    bool *placed = NEWS(&t->c->arena, bool, g->n_ids + 1);
    Graph **bodies = NEWS(&t->c->arena, Graph *, graph_count(g) + 1);
    size_t n = 1;
    bodies[0] = g;
    for (Node *k = walk_first(g); k; k = walk_next(g, k))
        for (int r = 0; r < k->n_regions; r++) {
            bodies = arena_grow(&t->c->arena, bodies, n, n + 1, sizeof *bodies);
            bodies[n++] = k->regions[r];
        }
    for (size_t i = 0; i < n; i++)
        shuffle_list(t, bodies[i], placed, rng);
}

/* ---- the same result ---- */

typedef struct Pair {
    const AmpTrial *t;
    Graph *g[2];
    const Node **node[2]; /* by id; casts are none */
    uint32_t n;           /* ids before insertion */
    int64_t casts[2];
} Pair;

static void list_nodes(Pair *p, int side)
{
    Graph *g = p->g[side];
    p->node[side] = NEWS(&p->t->c->arena, const Node *, g->n_ids + 1);
    for (size_t i = 0; i < g->n_inputs; i++)
        p->node[side][g->inputs[i]->id] = g->inputs[i];
    for (Node *k = walk_first(g); k; k = walk_next(g, k)) {
        p->node[side][k->id] = k;
        p->casts[side] += k->op == OP_amp_cast;
        for (int r = 0; r < k->n_regions; r++) {
            Graph *body = k->regions[r];
            for (size_t i = 0; i < body->n_inputs; i++)
                p->node[side][body->inputs[i]->id] = body->inputs[i];
            p->node[side][body->ret->id] = body->ret;
        }
    }
    p->node[side][g->ret->id] = g->ret;
}

/* Whether both read the same: through the same casts, of the same side, of the same node. */
static bool same_operand(const Pair *p, const Node *a, const Node *b)
{
    for (; a && b; a = in(a, 0), b = in(b, 0)) {
        if (a->id < p->n || b->id < p->n)
            return a->id == b->id;
        if (a->op != OP_amp_cast || b->op != OP_amp_cast || a->type != b->type || a->flags != b->flags)
            return false;
    }
    return a == b;
}

static const char *node_differs(const Pair *p, const Node *a, const Node *b)
{
    if (!a != !b)
        return "is gone";
    if (!a)
        return NULL;
    if (a->type != b->type)
        return arena_printf(&p->t->c->arena, "is %s, shuffled %s", type_text(&p->t->c->arena, a->type),
                            type_text(&p->t->c->arena, b->type));
    if (a->op != b->op || a->flags != b->flags || a->n_in != b->n_in)
        return "is another node";
    if (a->attr && !attrs_equal(op_of(a)->attrs, a->attr, b->attr))
        return "has other attributes";
    for (int i = 0; i < a->n_in; i++)
        if (!same_operand(p, in(a, i), in(b, i)))
            return arena_printf(&p->t->c->arena, "reads operand %d otherwise", i);
    return NULL;
}

static const char *compare(Pair *p)
{
    list_nodes(p, 0);
    list_nodes(p, 1);
    for (uint32_t id = 0; id < p->n; id++) {
        const Node *a = p->node[0][id], *b = p->node[1][id];
        const char *how = node_differs(p, a, b);
        if (how)
            return arena_printf(&p->t->c->arena, "%s %s %s", op_of(a ? a : b)->name,
                                a && a->name ? a->name : "without a name", how);
    }
    return p->casts[0] == p->casts[1] ? NULL : "another number of casts";
}

/* ---- every graph ---- */

static const char *check_order(AmpTrial *t)
{
    for (int i = 0; i < AMP_WAYS; i++) {
        Rng rng = { seed_of(t->name, (uint64_t)i) };
        AmpLedger *ledger[2] = { amp_ledger(t), amp_ledger(t) };
        Pair p = { .t = t, .g = { graph_copy(t->graph, &t->c->arena), graph_copy(t->graph, &t->c->arena) } };
        p.n = p.g[0]->n_ids;
        shuffle(t, p.g[1], &rng);
        for (int k = 0; k < 2; k++) {
            const char *wrong = amp_run(t, p.g[k], "insert-amp", amp_ways[i], ledger[k]);
            if (wrong)
                return wrong;
        }
        const char *wrong = compare(&p);
        if (wrong)
            return amp_say(t, amp_ways[i], "%s", wrong);
        if (ledger[0]->cost != ledger[1]->cost || ledger[0]->walk_cost != ledger[1]->walk_cost)
            return amp_say(t, amp_ways[i], "costs %g (walk %g), shuffled %g (%g)", ledger[0]->cost,
                           ledger[0]->walk_cost, ledger[1]->cost, ledger[1]->walk_cost);
    }
    return NULL;
}

static void order_does_not_matter(void **state)
{
    (void)state;
    int seen;
    const int bad = amp_check_models(check_order, &seen);
    print_message("%d graphs\n", seen);
    assert_true(seen > 200);
    assert_int_equal(bad, 0);
}

static void random_graphs_hold(void **state)
{
    (void)state;
    assert_int_equal(amp_check_random(check_order, 300), 0);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return amp_check_folder(argv[1], 1, (AmpCheck *const[]){ check_order });
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(random_graphs_hold),
    };
    return cmocka_run_group_tests_name("amp_order", tests, NULL, NULL);
}
