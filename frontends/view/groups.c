#include "frontends/view/groups.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "ir/role.h"
#include "ops/card/path.h"

/* A graph of fewer nodes is one sheet; one with several sides sooner is not.  A group of few nodes is none, one of many
 * is parted. */
enum { MOST_PLAIN = 200, MOST_PLAIN_STEP = 40, LEAST_GROUP = 4, MOST_DIRECT = 160, LEAST_PART = 80, MOST_PARTS = 64 };

typedef enum Side { SIDE_FORWARD, SIDE_LOSS, SIDE_BACKWARD, SIDE_UPDATE } Side;
static const char *const side_words[] = { "forward", "loss", "backward", "update" };

typedef struct Grouping {
    const Page *page;
    Arena *arena;
    Arena scratch;
    Groups out;
    Map names;            /* "PARENT/NAME" -> group */
    const char **modules; /* of the page's i-th node; null: unknown */
    bool sides;           /* the graph has several */
    uint8_t *sides_of;    /* Side of the page's i-th node */
} Grouping;

bool node_is_drawn(const Node *n)
{
    return !node_is_held(n) && n->op != OP_part;
}

static size_t index_of(const Page *p, const Node *n)
{
    return scene_id(p, n) - p->first;
}

/* ---- which group ---- */

static uint32_t add_group(Grouping *g, uint32_t parent, const char *name, size_t n)
{
    Groups *out = &g->out;
    GROW(g->arena, out->list, out->n, out->cap);
    out->list[out->n] = (Group){ .name = arena_copy(g->arena, name, n), .parent = parent };
    return out->n++;
}

static uint32_t group_inside(Grouping *g, uint32_t parent, const char *name, size_t n)
{
    bool fresh;
    MapEntry *e = map_put(&g->names, arena_printf(&g->scratch, "%" PRIu32 "/%.*s", parent, (int)n, name), &fresh);
    if (fresh)
        e->value.u = add_group(g, parent, name, n);
    return (uint32_t)e->value.u;
}

/* The bytes of the first step of a path: "h.0" of "h.0.attn", since a number alone says little. */
static size_t step_of(const char *path)
{
    size_t n = strcspn(path, ".");
    while (path[n] == '.' && isdigit((unsigned char)path[n + 1]))
        n += 1 + strcspn(path + n + 1, ".");
    return n;
}

static bool reads_state(const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && node_behind(in(n, i))->op == OP_state)
            return true;
    return false;
}

/* Whether a node reads one that was placed on a side; an input is on none. */
static bool reads_side(const Grouping *g, const Node *n, Side side)
{
    for (int i = 0; i < n->n_in; i++) {
        const Node *x = in(n, i) ? node_behind(in(n, i)) : NULL;
        if (x && x->op != OP_input && node_is_drawn(x) && g->sides_of[index_of(g->page, x)] == side)
            return true;
    }
    return false;
}

/* What comes from no node of the model is of the loss: behind the forward side, or at the root of the gradients. */
static Side side_of(const Grouping *g, const Node *n)
{
    const bool own = n->flags & NODE_OURS && !n->src && n->op != OP_amp_cast;
    if (n->flags & NODE_UPDATE)
        return SIDE_UPDATE;
    if (n->flags & NODE_BACKWARD)
        return own && !reads_side(g, n, SIDE_BACKWARD) ? SIDE_LOSS : SIDE_BACKWARD;
    return own && (reads_side(g, n, SIDE_FORWARD) || reads_side(g, n, SIDE_LOSS)) ? SIDE_LOSS : SIDE_FORWARD;
}

/* The module of a parameter, h.0.attn of h.0.attn.weight, or of whose moment or average a state is. */
static const char *module_of_state(Grouping *g, const Node *n)
{
    const Map *paths = &g->page->root->paths;
    const char *name = n->name ? path_name(paths, n) : "", *of = node_role(n).of;
    if (n->op == OP_state && !is_model_state(n)) { /* of the optimizer: of one parameter, or of all */
        const MapEntry *e = of ? map_find(paths, of) : NULL;
        name = e ? e->value.cp : of ? of : "";
    }
    const char *dot = strrchr(name, '.');
    return dot ? arena_copy(&g->scratch, name, (size_t)(dot - name)) : NULL;
}

static const char *shared(Grouping *g, const char *a, const char *b)
{
    size_t i = 0, whole = 0;
    if (!a || !b || a == b)
        return a ? a : b;
    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '.')
            whole = i;
    if ((!a[i] || a[i] == '.') && (!b[i] || b[i] == '.'))
        whole = i;
    return arena_copy(&g->scratch, a, whole);
}

/* Of sums of gradients and of the optimizer: what the gradients and parameters that a node reads belong to. */
static const char *module_of_operands(Grouping *g, const Node *n)
{
    const char *module = NULL;
    for (int i = 0; i < n->n_in; i++) {
        const Node *x = in(n, i) ? node_behind(in(n, i)) : NULL;
        if (x)
            module = shared(g, module, x->op == OP_state ? module_of_state(g, x) : g->modules[index_of(g->page, x)]);
    }
    return module;
}

static uint32_t place_node(Grouping *g, const Node *n)
{
    const char *module = node_module(n);
    const Side side = g->sides ? side_of(g, n) : SIDE_FORWARD;
    uint32_t at = 0;
    if (n->op == OP_input)
        return 0;
    if (!module && side != SIDE_LOSS && (side != SIDE_FORWARD || reads_state(n)))
        module = module_of_operands(g, n);
    g->modules[index_of(g->page, n)] = module;
    g->sides_of[index_of(g->page, n)] = (uint8_t)side;
    if (g->sides)
        at = group_inside(g, at, side_words[side], strlen(side_words[side]));
    for (const char *p = module; p && *p;) {
        const size_t step = step_of(p);
        at = group_inside(g, at, p, step);
        p += step + (p[step] == '.');
    }
    return at;
}

/* ---- what is in them ---- */

static void count_all(Grouping *g)
{
    Groups *out = &g->out;
    for (uint32_t i = 0; i < out->n; i++)
        out->list[i] = (Group){ .name = out->list[i].name, .parent = out->list[i].parent };
    for (const Node *n = page_first(g->page); n; n = page_next(g->page, n)) {
        if (!node_is_drawn(n))
            continue;
        Group *at = &out->list[out->of[index_of(g->page, n)]];
        size_t bytes = 0;
        at->n_direct++;
        at->n_nodes++;
        at->mix[view_precision_of(n)]++;
        at->bytes += type_bytes(n->type, &bytes) ? bytes : 0;
    }
    for (uint32_t i = out->n; i-- > 1;) {
        const Group *from = &out->list[i];
        Group *to = &out->list[from->parent];
        to->n_nodes += from->n_nodes;
        to->bytes += from->bytes;
        for (int k = 0; k < VIEW_PRECISION_COUNT; k++)
            to->mix[k] += from->mix[k];
    }
}

/* Small groups, and groups that are all of the one around them, are not worth a sheet: what is in them moves up. */
static void dissolve(Grouping *g)
{
    Groups *out = &g->out;
    uint32_t *to = NEWS(&g->scratch, uint32_t, out->n), *nodes = NEWS(&g->scratch, uint32_t, out->n), n = 1;
    for (uint32_t i = 0; i < out->n; i++)
        nodes[i] = out->list[i].n_nodes;
    for (uint32_t i = 1; i < out->n; i++) {
        Group x = out->list[i];
        const bool side = g->sides && x.parent == 0;
        const bool stays = nodes[i] && (side || (nodes[i] >= LEAST_GROUP && nodes[i] < nodes[x.parent]));
        x.parent = to[x.parent];
        to[i] = stays ? n : x.parent;
        if (stays)
            out->list[n++] = x;
    }
    out->n = n;
    for (uint32_t i = 0; i < g->page->n; i++)
        out->of[i] = to[out->of[i]];
}

/* Parts of a group that is too large, in the order of its nodes. */
static void part_groups(Grouping *g)
{
    Groups *out = &g->out;
    const uint32_t n = out->n;
    typedef struct Parting {
        uint32_t size, seen, group;
    } Parting;
    Parting *parts = NEWS(&g->scratch, Parting, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t direct = out->list[i].n_direct, size = direct / MOST_PARTS + 1;
        parts[i].size = direct <= MOST_DIRECT ? 0 : size > LEAST_PART ? size : LEAST_PART;
    }
    for (const Node *x = page_first(g->page); x; x = page_next(g->page, x)) {
        uint32_t *of = &out->of[index_of(g->page, x)];
        Parting *p = &parts[*of];
        if (!node_is_drawn(x) || x->op == OP_input || !p->size)
            continue;
        if (p->seen++ % p->size == 0) {
            const char *name = arena_printf(&g->scratch, "part %" PRIu32, p->seen / p->size + 1);
            p->group = add_group(g, *of, name, strlen(name));
        }
        *of = p->group;
    }
}

static bool has_sides(const Page *p)
{
    for (const Node *n = page_first(p); n; n = page_next(p, n))
        if (n->flags & (NODE_BACKWARD | NODE_UPDATE))
            return true;
    return false;
}

static void make_groups(Grouping *g)
{
    const Page *p = g->page;
    uint32_t drawn = 0;
    for (const Node *n = page_first(p); n; n = page_next(p, n))
        drawn += node_is_drawn(n);
    g->sides = !p->graph->owner && has_sides(p);
    if (drawn <= (g->sides ? MOST_PLAIN_STEP : MOST_PLAIN))
        return;
    for (const Node *n = page_first(p); n; n = page_next(p, n))
        if (node_is_drawn(n))
            g->out.of[index_of(p, n)] = place_node(g, n);
    count_all(g);
    dissolve(g);
    count_all(g);
    part_groups(g);
    count_all(g);
}

Groups groups_of(const Page *p, Arena *arena)
{
    Grouping g = { .page = p, .arena = arena };
    arena_open(&g.scratch, arena->memory);
    map_open(&g.names, &g.scratch);
    g.out.of = NEWS(arena, uint32_t, p->n + 1);
    g.modules = NEWS(&g.scratch, const char *, p->n + 1);
    g.sides_of = NEWS(&g.scratch, uint8_t, p->n + 1);
    add_group(&g, 0, "", 0);
    make_groups(&g);
    arena_close(&g.scratch);
    return g.out;
}

uint32_t groups_place(const Groups *g, uint32_t in, uint32_t of)
{
    if (of == in)
        return in;
    while (of && g->list[of].parent != in)
        of = g->list[of].parent;
    return of ? of : UINT32_MAX;
}
