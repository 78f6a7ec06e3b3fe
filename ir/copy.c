/* Deep copies of graphs. */
#include <string.h>

#include "ir/aliases.h"
#include "ir/copy.h"
#include "ir/heirs.h"

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
        if (n->op == OP_input && n->attr)
            c->attr = attrs_copy(to->arena, op_of(n)->attrs, n->attr);
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
    graph_return_marked(to, from->ret->n_in, operands(from->ret, map, scratch), from->results, from->marks);
    copy_marks(to->ret, from->ret);
}

/* Copies the nodes of `from`, whose inputs are in the map already, and all regions inside; those of the outermost graph
 * go before `before`, the return of that graph is left to the caller. */
static void copy_nodes(const Graph *from, Graph *to, Node *before, Facts *map, Arena *scratch)
{
    Level *stack = NULL;
    size_t depth = 0, cap = 0;
    GROW(scratch, stack, depth, cap);
    stack[depth++] = (Level){ from, to, from->first };
    while (depth) {
        Level *top = &stack[depth - 1];
        const Node *n = top->next;
        if (!n) {
            if (--depth)
                finish(top->from, top->to, map, scratch);
            continue;
        }
        top->next = n->next;
        Node *c = graph_insert(top->to, depth > 1 ? NULL : before, n->op, n->type, n->n_in, operands(n, map, scratch));
        c->attr = n->attr ? attrs_copy(to->arena, op_of(n)->attrs, n->attr) : NULL;
        copy_marks(c, n);
        *(Node **)fact(map, n) = c;
        if (!n->n_regions)
            continue;
        Graph **regions = NEWS(scratch, Graph *, n->n_regions);
        for (int r = 0; r < n->n_regions; r++) {
            regions[r] = region_new(top->to);
            copy_signature(n->regions[r], regions[r], map);
        }
        node_set_regions(c, n->n_regions, regions);
        for (int r = n->n_regions - 1; r >= 0; r--) {
            GROW(scratch, stack, depth, cap);
            stack[depth++] = (Level){ n->regions[r], c->regions[r], n->regions[r]->first };
        }
    }
}

Graph *graph_copy(const Graph *g, Arena *arena)
{
    Arena scratch;
    arena_open(&scratch, g->ir->memory);
    Facts map = facts_open(&scratch, sizeof(Node *));
    Graph *copy = graph_new(g->ir, arena, g->name);
    code_places_copy(copy, g);
    aliases_copy(copy, g);
    if (g->heirs)
        heirs_keep(copy);
    copy_signature(g, copy, &map);
    copy_nodes(g, copy, NULL, &map, &scratch);
    finish(g, copy, &map, &scratch);
    arena_close(&scratch);
    return copy;
}

Graph *copy_region(Graph *parent, const Graph *body)
{
    Arena scratch;
    arena_open(&scratch, body->ir->memory);
    Facts map = facts_open(&scratch, sizeof(Node *));
    Graph *copy = region_new(parent);
    copy_signature(body, copy, &map);
    copy_nodes(body, copy, NULL, &map, &scratch);
    finish(body, copy, &map, &scratch);
    arena_close(&scratch);
    return copy;
}

void copy_body(Build *b, const Graph *body, Node *const *values, Node **results)
{
    Arena scratch;
    arena_open(&scratch, body->ir->memory);
    Facts map = facts_open(&scratch, sizeof(Node *));
    for (size_t i = 0; i < body->n_inputs; i++)
        *(Node **)fact(&map, body->inputs[i]) = values[i];
    copy_nodes(body, b->graph, b->before, &map, &scratch);
    for (const Node *n = body->first; n; n = n->next) {
        Node *c = copied(&map, n);
        c->flags |= b->flags;
        c->name = NULL;
    }
    for (int i = 0; i < graph_n_results(body); i++)
        results[i] = copied(&map, graph_result(body, i));
    arena_close(&scratch);
}

Node *copy_call(Build *b, const Node *n, Node *const *ins)
{
    Node *c = graph_insert(b->graph, b->before, n->op, n->type, n->n_in, ins);
    c->attr = n->attr ? attrs_copy(b->graph->arena, op_of(n)->attrs, n->attr) : NULL;
    copy_marks(c, n);
    c->flags |= b->flags;
    c->name = NULL;
    if (!n->n_regions)
        return c;
    Graph **regions = NEWS(b->graph->arena, Graph *, n->n_regions);
    for (int r = 0; r < n->n_regions; r++)
        regions[r] = copy_region(b->graph, n->regions[r]);
    node_set_regions(c, n->n_regions, regions);
    return c;
}
