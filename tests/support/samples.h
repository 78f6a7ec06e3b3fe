/* Samples of cards, drawn from the card's name, each alone in a graph. */
#ifndef TESTS_SUPPORT_SAMPLES_H
#define TESTS_SUPPORT_SAMPLES_H

#include "support/seed.h"
#include "testing.h"

/* What a sample gives, at the end of a new graph; null where it is not built. */
static inline Node *sample_of(Context *c, const OpDef *def, int variant)
{
    Rng rng = { seed_of(def->name, (uint64_t)variant) };
    Build b = build_at_end(graph_new(&c->ir, &c->arena, "f"));
    Node *y = def->sample(&b, &rng, variant);
    return b.status == OK ? y : NULL;
}

/* The call behind what a sample gives. */
static inline Node *sample_call(Node *y)
{
    return y->op == OP_part ? in(y, 0) : y;
}

/* A sample that returns all its results; null where it is not built. */
static inline Graph *sample_graph(Context *c, const OpDef *def, int variant)
{
    enum { MOST = 8 };
    Node *y = sample_of(c, def, variant), *results[MOST];
    if (!y)
        return NULL;
    Build b = build_at_end(y->graph);
    const int n = type_results(y->type) < MOST ? type_results(y->type) : MOST;
    for (int i = 0; i < n; i++)
        results[i] = build_part(&b, y, i);
    graph_return(y->graph, n, results, NULL);
    return y->graph;
}

/* A walk over all cards with samples. */
typedef struct CardTour {
    Context *c; /* of the card's own */
    const OpDef *def;
    int n, said; /* samples looked at, and those of which there was something to say: whoever visits counts */
} CardTour;

/* Visits each card, guarded; how many went wrong. */
static inline int each_card(CardTour *t, Status (*visit)(void *tour))
{
    int bad = 0;
    for (size_t i = 0; i < ops_table.n; i++) {
        Context c;
        t->c = &c;
        t->def = ops_table.defs[i];
        if (!t->def->sample)
            continue;
        context_open(&c);
        const Status status = guarded(&c.memory, visit, t);
        if (status != OK)
            print_error("%s: status %d\n", t->def->name, (int)status);
        bad += status != OK;
        context_close(&c);
    }
    return bad;
}

#endif
