#include "frontends/view/sheet.h"

enum { MOST_ROWS = 24, MOST_LANES = 10, ROW_WIDTH = 32 };

/* Edges while they are collected; `last` says who read a box last, so that an edge comes once. */
typedef struct Edges {
    Arena *arena;
    uint32_t *reads, *last;
    size_t n, cap;
} Edges;

/* Where a node stands in the sheet: the sheet's own group, one inside it, or UINT32_MAX. */
static uint32_t place_of(const Sheet *s, const Node *n)
{
    return groups_place(s->groups, s->group, s->groups->of[scene_id(s->page, n) - s->page->first]);
}

uint32_t sheet_box(const Sheet *s, const Node *n)
{
    const uint32_t at = place_of(s, n);
    if (at == UINT32_MAX || !node_is_drawn(n))
        return 0;
    return at == s->group ? s->box_of[scene_id(s->page, n) - s->page->first] : s->box_of_group[at];
}

static uint32_t add_box(Sheet *s, Box box)
{
    s->boxes[s->graph.n++] = box;
    return s->graph.n;
}

/* A result stands where the node is that gives it. */
static bool has_result(const Sheet *s, const Node *n)
{
    if (!n || !node_is_drawn(node_behind(n)))
        return s->group == 0;
    return s->groups->of[scene_id(s->page, node_behind(n)) - s->page->first] == s->group;
}

static void make_boxes(Sheet *s, Arena *arena)
{
    const Page *p = s->page;
    const size_t n_results = (size_t)graph_n_results(p->graph);
    s->boxes = NEWS(arena, Box, p->n + n_results + s->groups->n + 1);
    s->box_of = NEWS(arena, uint32_t, p->n + 1);
    s->box_of_group = NEWS(arena, uint32_t, s->groups->n);
    for (const Node *n = page_first(p); n; n = page_next(p, n)) {
        const uint32_t at = node_is_drawn(n) ? place_of(s, n) : UINT32_MAX;
        if (at == s->group)
            s->box_of[scene_id(p, n) - p->first] = add_box(s, (Box){ .node = n, .result = -1 });
        else if (at != UINT32_MAX && !s->box_of_group[at])
            s->box_of_group[at] = add_box(s, (Box){ .result = -1, .group = at });
    }
    for (size_t i = 0; i < n_results; i++)
        if (has_result(s, graph_result(p->graph, (int)i)))
            add_box(s, (Box){ graph_result(p->graph, (int)i), (int)i, 0 });
}

static void add_edge(Sheet *s, Edges *e, const Node *from, uint32_t reader)
{
    const Node *n = from ? node_behind(from) : NULL;
    const uint32_t box = n ? sheet_box(s, n) : 0;
    if (!box || box - 1 >= reader || e->last[box - 1] == reader + 1)
        return;
    e->last[box - 1] = reader + 1;
    GROW(e->arena, e->reads, e->n, e->cap);
    e->reads[e->n++] = box - 1;
}

/* What the nodes of each group inside read: reads[start[g]] to reads[start[g + 1] - 1]. */
typedef struct GroupReads {
    uint32_t *start;
    const Node **reads;
} GroupReads;

static GroupReads reads_of_groups(const Sheet *s, Arena *arena)
{
    const uint32_t n = s->groups->n;
    GroupReads r = { .start = NEWS(arena, uint32_t, (size_t)n + 3) };
    const Page *p = s->page;
    for (int pass = 0; pass < 2; pass++) {
        for (const Node *x = page_first(p); x && n > 1; x = page_next(p, x)) {
            const uint32_t at = node_is_drawn(x) ? place_of(s, x) : UINT32_MAX;
            for (int k = 0; at != UINT32_MAX && at != s->group && k < x->n_in; k++)
                if (pass)
                    r.reads[r.start[at + 1]++] = in(x, k);
                else
                    r.start[at + 2]++;
        }
        for (uint32_t i = 2; !pass && i < n + 2; i++)
            r.start[i] += r.start[i - 1];
        if (!pass)
            r.reads = NEWS(arena, const Node *, (size_t)r.start[n + 1] + 1);
    }
    return r;
}

/* What each box reads; what comes from a box further down (a module that is called again) is left out. */
static void make_edges(Sheet *s, Arena *arena)
{
    const uint32_t n = s->graph.n;
    uint32_t *edges = NEWS(arena, uint32_t, n + 1);
    bool *stays = NEWS(arena, bool, n + 1);
    Edges e = { .arena = arena, .last = NEWS(arena, uint32_t, n + 1) };
    const GroupReads inside = reads_of_groups(s, arena);
    for (uint32_t i = 0; i < n; i++) {
        const Box *b = &s->boxes[i];
        if (b->result >= 0)
            add_edge(s, &e, b->node, i);
        for (int k = 0; b->result < 0 && b->node && k < b->node->n_in; k++)
            add_edge(s, &e, in(b->node, k), i);
        for (uint32_t k = inside.start[b->group]; b->group && k < inside.start[b->group + 1]; k++)
            add_edge(s, &e, inside.reads[k], i);
        stays[i] = b->result < 0 && b->node && b->node->op == OP_input;
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

Sheet sheet_of(const Page *p, const Groups *groups, uint32_t group, Arena *arena)
{
    Sheet s = { .page = p, .groups = groups, .group = group };
    make_boxes(&s, arena);
    make_edges(&s, arena);
    s.lanes = lanes_of(&s.graph, (LaneRules){ MOST_ROWS, MOST_LANES, ROW_WIDTH }, arena);
    collect_far(&s, arena);
    return s;
}
