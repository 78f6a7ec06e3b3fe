#include "ir/graph.h"

#include <string.h>

#include "ir/role.h"

void ir_open(Ir *ir, Arena *arena, const OpTable *ops, Diag *diag)
{
    *ir = (Ir){ .memory = arena->memory, .arena = arena, .ops = ops, .diag = diag, .limits = LIMITS_DEFAULT };
    types_open(&ir->types, arena);
    names_open(&ir->names, arena);
}

static Node *new_node(Graph *g, Op op, const Type *type)
{
    Node *n = NEW(g->arena, Node);
    n->id = g->root->n_ids++;
    n->op = op;
    n->type = type;
    n->graph = g;
    return n;
}

static Graph *new_graph(Ir *ir, Arena *arena, Graph *root, const char *name)
{
    Graph *g = NEW(arena, Graph);
    g->ir = ir;
    g->arena = arena;
    g->root = root ? root : g;
    g->name = name ? name_of(&ir->names, name, strlen(name)) : NULL;
    g->ret = new_node(g, OP_return, type_none(&ir->types));
    return g;
}

Graph *graph_new(Ir *ir, Arena *arena, const char *name)
{
    return new_graph(ir, arena, NULL, name);
}

Graph *region_new(Graph *parent)
{
    return new_graph(parent->ir, parent->arena, parent->root, NULL);
}

static Node *add_input(Graph *g, Op op, const char *name, const Type *type)
{
    Node *n = new_node(g, op, type);
    n->name = name ? name_of(&g->ir->names, name, strlen(name)) : NULL;
    n->attr = attrs_default(g->arena, op_of(n)->attrs);
    GROW(g->arena, g->inputs, g->n_inputs, g->cap_inputs);
    g->inputs[g->n_inputs++] = n;
    return n;
}

Node *graph_input(Graph *g, const char *name, const Type *type)
{
    return add_input(g, OP_input, name, type);
}

Node *graph_state(Graph *g, const char *name, const Type *type, const StateAttr *attr)
{
    Node *n = add_input(g, OP_state, name, type);
    n->attr = attrs_copy(g->arena, op_of(n)->attrs, attr);
    if (attr)
        node_set_role(n, attr->mark.role, attr->mark.of);
    return n;
}

void graph_drop_input(Graph *g, size_t i)
{
    BUG_IF(g->ir->memory, g->inputs[i]->uses);
    memmove(&g->inputs[i], &g->inputs[i + 1], (g->n_inputs - i - 1) * sizeof(Node *));
    g->n_inputs--;
}

static void unlink_use(Use *u)
{
    if (!u->def)
        return;
    if (u->prev)
        u->prev->next = u->next;
    else
        u->def->uses = u->next;
    if (u->next)
        u->next->prev = u->prev;
    u->next = u->prev = NULL;
    u->def = NULL;
}

static void link_use(Use *u, Node *def)
{
    u->def = def;
    u->prev = NULL;
    u->next = def ? def->uses : NULL;
    if (u->next)
        u->next->prev = u;
    if (def)
        def->uses = u;
}

void node_set_in(Node *n, int i, Node *def)
{
    BUG_IF(n->graph->ir->memory, i < 0 || i >= n->n_in);
    unlink_use(&n->in[i]);
    link_use(&n->in[i], def);
}

void node_set_ins(Node *n, int n_in, Node *const *defs)
{
    for (int i = 0; i < n->n_in; i++)
        unlink_use(&n->in[i]);
    if (n_in > n->n_in)
        n->in = NEWS(n->graph->arena, Use, n_in);
    n->n_in = n_in;
    for (int i = 0; i < n_in; i++) {
        n->in[i] = (Use){ .user = n };
        link_use(&n->in[i], defs[i]);
    }
}

void graph_return(Graph *g, int n, Node *const *results, const char *const *names)
{
    graph_return_marked(g, n, results, names, NULL);
}

bool graph_is_open(const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (!type_known(g->inputs[i]->type))
            return true;
    return false;
}

int graph_n_results(const Graph *g)
{
    return g->ret->n_in;
}

Node *graph_result(const Graph *g, int i)
{
    return in(g->ret, i);
}

const char *graph_result_name(const Graph *g, int i)
{
    if (g->results && g->results[i])
        return g->results[i];
    const Node *n = graph_result(g, i);
    return n ? n->name : NULL;
}

void graph_replace(Node *old, Node *by)
{
    BUG_IF(old->graph->ir->memory, old == by || old->graph != by->graph);
    Use *last = NULL;
    for (Use *u = old->uses; u; u = u->next) {
        u->def = by;
        last = u;
    }
    if (!last)
        return;
    last->next = by->uses;
    if (by->uses)
        by->uses->prev = last;
    by->uses = old->uses;
    old->uses = NULL;
}

int node_n_uses(const Node *n)
{
    int count = 0;
    for (const Use *u = n->uses; u; u = u->next)
        count++;
    return count;
}

static void unlink_node(Node *n)
{
    Graph *g = n->graph;
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    n->prev = n->next = NULL;
}

static void link_node(Node *n, Node *before)
{
    Graph *g = n->graph;
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(n->next ? &n->next->prev : &g->last) = n;
}

Node *graph_insert(Graph *g, Node *before, Op op, const Type *type, int n_in, Node *const *defs)
{
    Node *n = new_node(g, op, type);
    n->n_in = n_in;
    n->in = n_in ? NEWS(g->arena, Use, n_in) : NULL;
    for (int i = 0; i < n_in; i++) {
        n->in[i].user = n;
        link_use(&n->in[i], defs[i]);
    }
    link_node(n, before);
    return n;
}

void node_remove(Node *n)
{
    BUG_IF(n->graph->ir->memory, n->uses);
    for (int i = 0; i < n->n_in; i++)
        unlink_use(&n->in[i]);
    unlink_node(n);
}

void node_move(Node *n, Node *before)
{
    if (n == before)
        return;
    unlink_node(n);
    link_node(n, before);
}

void node_adopt(Node *n, Graph *to, Node *before)
{
    BUG_IF(to->ir->memory, n->graph->root != to->root || (before && before->graph != to));
    unlink_node(n);
    n->graph = to;
    link_node(n, before);
}

void node_set_regions(Node *n, int n_regions, Graph *const *regions)
{
    n->n_regions = n_regions;
    n->regions = n_regions ? NEWS(n->graph->arena, Graph *, n_regions) : NULL;
    for (int i = 0; i < n_regions; i++) {
        n->regions[i] = regions[i];
        regions[i]->owner = n;
    }
}

/* The next region after `g` among those of its owner, or null. */
static Graph *next_region(const Graph *g)
{
    const Node *owner = g->owner;
    for (int i = 0; i + 1 < owner->n_regions; i++)
        if (owner->regions[i] == g)
            return owner->regions[i + 1];
    return NULL;
}

Node *walk_first(Graph *g)
{
    return g->first;
}

Node *walk_next(Graph *top, Node *n)
{
    if (n->n_regions) {
        for (int i = 0; i < n->n_regions; i++)
            if (n->regions[i]->first)
                return n->regions[i]->first;
    }
    for (;;) {
        if (n->next)
            return n->next;
        Graph *g = n->graph;
        if (g == top)
            return NULL;
        for (Graph *r = next_region(g); r; r = next_region(r))
            if (r->first)
                return r->first;
        n = g->owner;
    }
}

size_t graph_count(Graph *g)
{
    size_t count = 0;
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        count++;
    return count;
}

Payload *node_payload(const Node *n)
{
    if (n->op != OP_const && n->op != OP_param)
        return NULL;
    return n->attr ? ((const ValueAttr *)n->attr)->value : NULL;
}

const Tensor *node_constant(const Node *n, size_t most)
{
    Payload *p = node_payload(n);
    size_t bytes;
    if (!p || (most && (!type_bytes(p->type, &bytes) || bytes > most)))
        return NULL;
    return payload_cached(p, n->graph->ir->diag);
}

/* The module, where the label does not say it: PyTorch's older exporter names nodes /h.0/attn/Gemm. */
static const char *module_to_tell(const Node *n)
{
    const char *module = node_module(n);
    return module && module[0] && !(n->label && strchr(n->label, '/')) ? module : NULL;
}

Place node_place(const Node *n)
{
    Arena *arena = n->graph->ir->diag->arena;
    const char *label = n->label ? n->label : n->name, *module = module_to_tell(n);
    const char *where = n->src  ? arena_printf(arena, "node %u%s%s", n->src, label ? " " : "", label ? label : "")
                        : label ? arena_printf(arena, "node %s", label)
                                : arena_printf(arena, "%s", op_of(n)->name);
    return (Place){ .where = module ? arena_printf(arena, "%s in %s", where, module) : where, .byte = -1 };
}

enum { FACTS_PER_CHUNK = 64 };

Facts facts_open(Arena *scratch, size_t slot_size)
{
    return (Facts){ .arena = scratch, .slot = slot_size };
}

void *fact(Facts *f, const Node *n)
{
    const size_t chunk = n->id / FACTS_PER_CHUNK;
    if (chunk >= f->n_chunks) {
        size_t want = f->n_chunks ? f->n_chunks : 8;
        while (want <= chunk)
            want *= 2;
        f->chunks = arena_grow(f->arena, f->chunks, f->n_chunks, want, sizeof *f->chunks);
        f->n_chunks = want;
    }
    if (!f->chunks[chunk])
        f->chunks[chunk] = arena_array(f->arena, FACTS_PER_CHUNK, f->slot);
    return f->chunks[chunk] + n->id % FACTS_PER_CHUNK * f->slot;
}

void *fact_known(const Facts *f, const Node *n)
{
    const size_t chunk = n->id / FACTS_PER_CHUNK;
    return chunk < f->n_chunks && f->chunks[chunk] ? f->chunks[chunk] + n->id % FACTS_PER_CHUNK * f->slot : NULL;
}

Module *module_new(Ir *ir, Arena *arena)
{
    Module *m = NEW(arena, Module);
    m->ir = ir;
    m->arena = arena;
    return m;
}

void module_add(Module *m, Graph *g)
{
    GROW(m->arena, m->graphs, m->n_graphs, m->cap_graphs);
    m->graphs[m->n_graphs++] = g;
}

Graph *module_graph(const Module *m, const char *name)
{
    for (size_t i = 0; i < m->n_graphs; i++)
        if (m->graphs[i]->name && strcmp(m->graphs[i]->name, name) == 0)
            return m->graphs[i];
    return NULL;
}
