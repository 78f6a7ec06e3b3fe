#include "ir/aliases.h"

typedef struct Aliases {
    const char **list; /* up to a null */
    size_t n, cap;
} Aliases;

static const char *const none[] = { NULL };

void alias_add(Graph *g, const char *label, const char *alias)
{
    bool fresh;
    Graph *root = g->root;
    Map *map = root->aliases;
    if (!map) {
        map = root->aliases = NEW(root->arena, Map);
        map_open(map, root->arena);
    }
    MapEntry *e = map_put(map, map_find(map, label) ? label : arena_string(root->arena, label), &fresh);
    if (fresh)
        e->value.p = NEW(root->arena, Aliases);
    Aliases *a = e->value.p;
    GROW(root->arena, a->list, a->n, a->cap);
    a->list[a->n++] = arena_string(root->arena, alias);
    GROW(root->arena, a->list, a->n, a->cap);
    a->list[a->n] = NULL;
}

const char *const *aliases_of_label(const Graph *g, const char *label)
{
    const MapEntry *e = label && g->root->aliases ? map_find(g->root->aliases, label) : NULL;
    const Aliases *a = e ? e->value.cp : NULL;
    return a ? a->list : none;
}

const char *const *aliases_of(const Node *n)
{
    const bool labelled = n->label && !n->src; /* the label of a Constant node is the node's */
    return aliases_of_label(n->graph, labelled ? n->label : n->name);
}

void aliases_copy(Graph *to, const Graph *from)
{
    const Map *map = from->root->aliases;
    for (size_t i = 0; map && i < map->n; i++)
        for (const char *const *a = aliases_of_label(from, map->entries[i].key); *a; a++)
            alias_add(to, map->entries[i].key, *a);
}
