#include "ir/code_place.h"

#include <string.h>

#include "ir/graph.h"

static const char *interned(Graph *g, const char *text)
{
    return text ? name_of(&g->ir->names, text, strlen(text)) : NULL;
}

bool code_places_add(Graph *g, const CodePlace *o)
{
    CodePlaces *all = &g->root->code_places;
    CodePlace *last = all->n ? &all->list[all->n - 1] : NULL;
    const CodePlace new = { o->first, o->last, interned(g, o->module), interned(g, o->line) };
    if (!o->first || o->last < o->first || (last && o->first <= last->last))
        return false;
    if (!o->module && !o->line)
        return true;
    if (last && last->last + 1 == o->first && last->module == new.module && last->line == new.line) {
        last->last = o->last;
        return true;
    }
    GROW(g->root->arena, all->list, all->n, all->cap);
    all->list[all->n++] = new;
    return true;
}

void code_places_copy(Graph *to, const Graph *from)
{
    const CodePlaces *all = &from->root->code_places;
    to->root->code_places = (CodePlaces){ .n = all->n, .cap = all->n };
    if (!all->n)
        return;
    to->root->code_places.list = NEWS(to->root->arena, CodePlace, all->n);
    memcpy(to->root->code_places.list, all->list, all->n * sizeof *all->list);
}

const CodePlace *node_code(const Node *n)
{
    const CodePlaces *all = &n->graph->root->code_places;
    size_t low = 0, high = n->src ? all->n : 0;
    while (low < high) {
        const size_t at = low + (high - low) / 2;
        const CodePlace *o = &all->list[at];
        if (n->src < o->first)
            high = at;
        else if (n->src > o->last)
            low = at + 1;
        else
            return o;
    }
    return NULL;
}

/* A component that repeats the one before it replaces it, the last one is the operator. */
const char *module_of_label(Arena *arena, const char *label)
{
    Text path;
    text_open(&path, arena);
    size_t start = 0; /* of the last component in the path */
    for (const char *p = label; *p;) {
        p += *p == '/';
        const size_t n = strcspn(p, "/");
        if (!p[n])
            break;
        const size_t had = path.n - start;
        if (had && n > had && strncmp(path.p + start, p, had) == 0 && p[had] == '.')
            path.n = start;
        else if (path.n)
            text_char(&path, '.');
        start = path.n;
        text_bytes(&path, p, n);
        p += n;
    }
    return path.n ? text_get(&path) : NULL;
}

const char *node_module(const Node *n)
{
    const CodePlace *o = node_code(n);
    if (o && o->module)
        return o->module;
    if (!n->label || n->label[0] != '/')
        return NULL;
    Arena scratch;
    arena_open(&scratch, n->graph->ir->memory);
    const char *path = module_of_label(&scratch, n->label);
    path = name_of(&n->graph->ir->names, path ? path : "", path ? strlen(path) : 0);
    arena_close(&scratch);
    return path;
}

bool code_places_equal(const Graph *a, const Graph *b)
{
    const CodePlaces *p = &a->root->code_places, *q = &b->root->code_places;
    bool equal = p->n == q->n;
    for (size_t i = 0; i < p->n && equal; i++) {
        const CodePlace *x = &p->list[i], *y = &q->list[i];
        equal = x->first == y->first && x->last == y->last && x->module == y->module && x->line == y->line;
    }
    return equal;
}
