#include "frontends/view/scene.h"

#include "frontends/view/view.h"
#include "ops/card/path.h"

/* What is noted of a node. */
typedef struct Mark {
    uint32_t id;
    uint32_t input; /* its place among the inputs, from 1 */
    size_t region;  /* page of its first region */
} Mark;

static void add_page(Scene *s, const Graph *g, PageRoot *root, size_t owner, int region)
{
    GROW(s->arena, s->pages, s->n_pages, s->cap_pages);
    s->pages[s->n_pages] = (Page){ .graph = g, .root = root, .id = s->n_pages, .owner = owner, .region = region };
    s->n_pages++;
}

static void number_page(Scene *s, size_t at)
{
    const Graph *g = s->pages[at].graph;
    PageRoot *root = s->pages[at].root;
    const uint32_t first = s->n_nodes;
    for (size_t i = 0; i < g->n_inputs; i++)
        *(Mark *)fact(&root->marks, g->inputs[i]) = (Mark){ .id = s->n_nodes++, .input = (uint32_t)i + 1 };
    for (const Node *n = g->first; n; n = n->next) {
        *(Mark *)fact(&root->marks, n) = (Mark){ .id = s->n_nodes++, .region = s->n_pages };
        for (int r = 0; r < n->n_regions; r++)
            add_page(s, n->regions[r], root, at, r);
    }
    s->pages[at].first = first;
    s->pages[at].n = s->n_nodes - first;
}

Scene scene_of(const Module *m, Arena *arena)
{
    Scene s = { .arena = arena, .module = m };
    for (size_t i = 0; i < m->n_graphs; i++) {
        Graph *g = m->graphs[i];
        PageRoot *root = NEW(arena, PageRoot);
        *root = (PageRoot){ facts_open(arena, sizeof(Mark)), numbering_of(g, arena), path_names(g, arena) };
        size_t at = s.n_pages;
        add_page(&s, g, root, at, 0);
        for (; at < s.n_pages; at++)
            number_page(&s, at);
    }
    return s;
}

uint32_t scene_id(const Page *p, const Node *n)
{
    return ((Mark *)fact(&p->root->marks, n))->id;
}

size_t scene_region(const Page *p, const Node *n)
{
    return ((Mark *)fact(&p->root->marks, n))->region;
}

const Node *page_first(const Page *p)
{
    return p->graph->n_inputs ? p->graph->inputs[0] : p->graph->first;
}

const Node *page_next(const Page *p, const Node *n)
{
    const uint32_t input = ((Mark *)fact(&p->root->marks, n))->input;
    if (!input)
        return n->next;
    return input < p->graph->n_inputs ? p->graph->inputs[input] : p->graph->first;
}

bool node_is_held(const Node *n)
{
    return n->op == OP_const || n->op == OP_param || n->op == OP_state;
}

const Node *node_behind(const Node *n)
{
    while (n->op == OP_part && in(n, 0))
        n = in(n, 0);
    return n;
}

const char *scene_title(const Page *p, const Node *n, Arena *arena)
{
    if (n->name)
        return path_name(&p->root->paths, n);
    Text t;
    text_open(&t, arena);
    print_value(&t, &p->root->numbering, n);
    return text_get(&t);
}

const ViewProgram *view_program(const ViewFacts *facts, const Graph *g)
{
    for (int i = 0; facts && i < facts->n_programs; i++)
        if (facts->programs[i].graph == g)
            return &facts->programs[i];
    return NULL;
}
