#include "frontends/view/sheet.h"

enum { MOST_ROWS = 24, MOST_LANES = 10, ROW_WIDTH = 32 };

/* Edges while they are collected; `last` says who read a box last, so that an edge comes once. */
typedef struct Edges {
    Arena *arena;
    uint32_t *reads, *last;
    size_t n, cap;
} Edges;

uint32_t sheet_box(const Sheet *s, const Node *n)
{
    return s->box_of[scene_id(s->page, n) - s->page->first];
}

static void add_box(Sheet *s, Box box)
{
    s->boxes[s->graph.n++] = box;
}

static void make_boxes(Sheet *s, Arena *arena)
{
    const Page *p = s->page;
    const size_t n_results = (size_t)graph_n_results(p->graph);
    s->boxes = NEWS(arena, Box, p->n + n_results + 1);
    s->box_of = NEWS(arena, uint32_t, p->n + 1);
    for (const Node *n = page_first(p); n; n = page_next(p, n))
        if (!node_is_held(n) && n->op != OP_part) {
            add_box(s, (Box){ n, -1 });
            s->box_of[scene_id(p, n) - p->first] = s->graph.n;
        }
    for (size_t i = 0; i < n_results; i++)
        add_box(s, (Box){ graph_result(p->graph, (int)i), (int)i });
}

static void add_edge(Sheet *s, Edges *e, const Node *from, uint32_t reader)
{
    const Node *n = from ? node_behind(from) : NULL;
    const uint32_t box = n ? sheet_box(s, n) : 0;
    if (!box || e->last[box - 1] == reader + 1)
        return;
    e->last[box - 1] = reader + 1;
    GROW(e->arena, e->reads, e->n, e->cap);
    e->reads[e->n++] = box - 1;
}

static void make_edges(Sheet *s, Arena *arena)
{
    const uint32_t n = s->graph.n;
    uint32_t *edges = NEWS(arena, uint32_t, n + 1);
    bool *stays = NEWS(arena, bool, n + 1);
    Edges e = { .arena = arena, .last = NEWS(arena, uint32_t, n + 1) };
    for (uint32_t i = 0; i < n; i++) {
        const Box *b = &s->boxes[i];
        if (b->result >= 0)
            add_edge(s, &e, b->node, i);
        for (int k = 0; b->result < 0 && k < b->node->n_in; k++)
            add_edge(s, &e, in(b->node, k), i);
        stays[i] = b->result < 0 && b->node->op == OP_input;
        edges[i + 1] = (uint32_t)e.n;
    }
    s->graph.edges = edges;
    s->graph.reads = e.reads;
    s->graph.stays = stays;
}

static void collect_far(Sheet *s, Arena *arena)
{
    const LaneGraph *g = &s->graph;
    s->readers = NEWS(arena, uint32_t, (size_t)g->n + 3);
    s->far = NEWS(arena, uint32_t, g->edges[g->n] + 1);
    for (uint32_t e = 0; e < g->edges[g->n]; e++)
        if (s->lanes.tag[e])
            s->readers[g->reads[e] + 2]++;
    for (uint32_t i = 2; i < g->n + 2; i++)
        s->readers[i] += s->readers[i - 1];
    uint32_t *end = s->readers + 1; /* where those of a box begin, until they are filled in */
    for (uint32_t i = 0; i < g->n; i++)
        for (uint32_t e = g->edges[i]; e < g->edges[i + 1]; e++)
            if (s->lanes.tag[e])
                s->far[end[g->reads[e]]++] = i;
}

Sheet sheet_of(const Page *p, Arena *arena)
{
    Sheet s = { .page = p };
    make_boxes(&s, arena);
    make_edges(&s, arena);
    s.lanes = lanes_of(&s.graph, (LaneRules){ MOST_ROWS, MOST_LANES, ROW_WIDTH }, arena);
    collect_far(&s, arena);
    return s;
}
