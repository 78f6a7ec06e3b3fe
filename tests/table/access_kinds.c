/* Kinds of access: what a card says of a call agrees with what the call expands to, and who says nothing says why. */
#include "ops/card/expansion.h"
#include "support/samples.h"

typedef struct Parts {
    int rows, moves, sums, others; /* sums: products and folds, which an equation may ask for */
    AccessKind other;
    bool refuse;
} Parts;

static void count_part(Parts *p, const OpDef *def)
{
    p->refuse |= def->access.refuses;
    if (def->access.kind == ACCESS_ROW) {
        p->rows++;
    } else if (def->access.kind == ACCESS_MOVE) {
        p->moves++;
    } else {
        p->others++;
        p->sums += def->access.kind == ACCESS_CONTRACT || def->access.kind == ACCESS_FOLD;
        p->other = def->access.kind;
    }
}

/* What an expansion is made of; its numbers and extents are nothing to look at. */
static Parts parts_of(const Graph *g)
{
    Parts p = { 0 };
    for (const Node *n = g->first; n; n = n->next)
        if (!op_of(n)->structural && n->op != OP_shape && n->op != OP_size)
            count_part(&p, op_of(n));
    return p;
}

static bool kind_fits(AccessKind said, const Parts *p)
{
    switch (said) {
    case ACCESS_COMPOSITE:
        return true;
    case ACCESS_ROW:
        return !p->others && !p->moves;
    case ACCESS_MOVE:
        return !p->others && !p->rows;
    case ACCESS_CONTRACT:
        return p->others == p->sums;
    default:
        return p->others <= 1 && (!p->others || p->other == said);
    }
}

static Status visit(void *tour)
{
    CardTour *t = tour;
    for (int variant = 0; t->def->expand && variant < t->def->n_variants; variant++) {
        Node *y = sample_of(t->c, t->def, variant);
        Graph *g = y ? expansion_of(sample_call(y), &t->c->arena) : NULL;
        if (!g)
            continue;
        const Parts p = parts_of(g);
        t->said++;
        if (!kind_fits(t->def->access.kind, &p)) {
            print_error("%s, variant %d: %d rows, %d moves and %d others\n", t->def->name, variant, p.rows, p.moves,
                        p.others);
            return INVALID;
        }
        if (p.refuse && !t->def->access.refuses) {
            print_error("%s, variant %d: its expansion may refuse values\n", t->def->name, variant);
            return INVALID;
        }
    }
    return OK;
}

static void kinds_are_those_of_expansions(void **state)
{
    (void)state;
    CardTour t = { 0 };
    assert_int_equal(each_card(&t, visit), 0);
    assert_true(t.said > 500);
}

static void who_says_nothing_says_why(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        const OpDef *def = ops_table.defs[i];
        const bool silent = def->access.kind == ACCESS_OPAQUE && !def->structural;
        if (silent == (def->access.opaque != NULL))
            continue;
        print_error("%s: %s\n", def->name,
                    silent ? "opaque without a reason" : "a reason for being opaque, but it is not");
        bad++;
    }
    assert_int_equal(bad, 0);
}

static void only_expansions_are_served_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < ops_table.n; i++)
        if (ops_table.defs[i]->access.served_whole)
            assert_non_null(ops_table.defs[i]->expand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_those_of_expansions),
        cmocka_unit_test(who_says_nothing_says_why),
        cmocka_unit_test(only_expansions_are_served_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
