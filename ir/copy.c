/* Deep copies of graphs. */
#include <string.h>

#include "ir/graph.h"

/* A graph whose nodes are partly copied. */
typedef struct Level {
    const Graph *from;
    Graph *to;
    const Node *next;
} Level;

static Node *copied(Facts *map, const Node *n)
{
    return n ? *(Node **)fact(map, n) : NULL;
}

static void copy_marks(Node *to, const Node *from)
{
    to->flags = from->flags;
    to->src = from->src;
    to->name = from->name;
    to->label = from->label;
}

static void copy_signature(const Graph *from, Graph *to, Facts *map)
{
    for (size_t i = 0; i < from->n_inputs; i++) {
        const Node *n = from->inputs[i];
        Node *c = n->op == OP_state ? graph_state(to, n->name, n->type, n->attr) : graph_input(to, n->name, n->type);
        copy_marks(c, n);
        *(Node **)fact(map, n) = c;
    }
}

static Node **operands(const Node *n, Facts *map, Arena *scratch)
{
    Node **defs = NEWS(scratch, Node *, n->n_in ? n->n_in : 1);
    for (int i = 0; i < n->n_in; i++)
        defs[i] = copied(map, in(n, i));
    return defs;
}

static void finish(const Graph *from, Graph *to, Facts *map, Arena *scratch)
{
    graph_return(to, from->ret->n_in, operands(from->ret, map, scratch), from->results);
    copy_marks(to->ret, from->ret);
}

Graph *graph_copy(const Graph *g, Arena *arena)
{
    Arena scratch;
    arena_open(&scratch, g->ir->memory);
    Facts map = facts_open(&scratch, sizeof(Node *));
    Level *stack = NULL;
    size_t depth = 0, cap = 0;

    Graph *copy = graph_new(g->ir, arena, g->name);
    copy_signature(g, copy, &map);
    GROW(&scratch, stack, depth, cap);
    stack[depth++] = (Level){ g, copy, g->first };
    while (depth) {
        Level *top = &stack[depth - 1];
        const Node *n = top->next;
        if (!n) {
            finish(top->from, top->to, &map, &scratch);
            depth--;
            continue;
        }
        top->next = n->next;
        Node *c = graph_insert(top->to, NULL, n->op, n->type, n->n_in, operands(n, &map, &scratch));
        c->attr = n->attr ? attrs_copy(arena, op_of(n)->attrs, n->attr) : NULL;
        copy_marks(c, n);
        *(Node **)fact(&map, n) = c;
        if (!n->n_regions)
            continue;
        Graph **regions = NEWS(&scratch, Graph *, n->n_regions);
        for (int r = 0; r < n->n_regions; r++) {
            regions[r] = region_new(top->to);
            copy_signature(n->regions[r], regions[r], &map);
        }
        node_set_regions(c, n->n_regions, regions);
        for (int r = n->n_regions - 1; r >= 0; r--) {
            GROW(&scratch, stack, depth, cap);
            stack[depth++] = (Level){ n->regions[r], c->regions[r], n->regions[r]->first };
        }
    }
    arena_close(&scratch);
    return copy;
}
