#include "frontends/onnx/read/origins.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "frontends/onnx/read/torch_text.h"

void import_origin(Importer *im, Graph *g, const Onnx__NodeProto *o)
{
    CodePlace origin = { .first = im->n_src, .last = im->n_src };
    if (!im->frame->function && torch_origin(o, im->arena, &origin.module, &origin.line))
        (void)code_places_add(g, &origin); /* nodes of the file come in its order */
}

/* ---- nodes that the exporter added ---- */

/* h.0 of h.0.qkv and h.0.proj; what is unknown does not count. */
static const char *shared_path(Arena *arena, const char *a, const char *b)
{
    size_t whole = 0, i = 0;
    if (!a || !b)
        return a ? a : b;
    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '.')
            whole = i;
    if ((!a[i] || a[i] == '.') && (!b[i] || b[i] == '.'))
        whole = i;
    return arena_copy(arena, a, whole);
}

static const char *module_around(Arena *arena, const Node *n)
{
    const char *module = NULL;
    for (int i = 0; i < n->n_in; i++)
        module = shared_path(arena, module, in(n, i) ? node_module(in(n, i)) : NULL);
    for (const Use *u = n->uses; u; u = u->next)
        module = shared_path(arena, module, node_module(u->user));
    return module;
}

/* A part speaks for its tuple. */
static const char *module_of_gap(Arena *arena, const Node *n)
{
    const char *module = module_around(arena, n);
    if (n->type->kind != TYPE_TUPLE)
        return module;
    for (const Use *u = n->uses; u; u = u->next)
        module = shared_path(arena, module, module_around(arena, u->user));
    return module;
}

void import_origins_between(Importer *im, Graph *g)
{
    const CodePlaces said = g->code_places;
    CodePlaces gaps = { 0 };
    for (Node *n = walk_first(g); said.n && n; n = walk_next(g, n)) {
        const bool gap = n->src && n->n_in && !node_code(n) && (!gaps.n || n->src > gaps.list[gaps.n - 1].last);
        const char *module = gap ? module_of_gap(im->arena, n) : NULL;
        if (!module)
            continue;
        GROW(im->arena, gaps.list, gaps.n, gaps.cap);
        gaps.list[gaps.n++] = (CodePlace){ .first = n->src, .last = n->src, .module = module };
    }
    if (!gaps.n)
        return;
    g->code_places = (CodePlaces){ 0 };
    for (size_t i = 0, k = 0; i < said.n || k < gaps.n;) {
        const bool gap = i == said.n || (k < gaps.n && gaps.list[k].first < said.list[i].first);
        (void)code_places_add(g, gap ? &gaps.list[k++] : &said.list[i++]);
    }
}

/* ---- as a note ---- */

/* "FIRST LAST MODULE LINE " and both texts, an origin a line; of a text its bytes and one, 0 for none. */
const char *origins_note(Arena *arena, const Graph *g)
{
    const CodePlaces *all = &g->root->code_places;
    Text t;
    text_open(&t, arena);
    for (size_t i = 0; i < all->n; i++) {
        const CodePlace *o = &all->list[i];
        text_printf(&t, "%" PRIu32 " %" PRIu32 " %zu %zu %s%s\n", o->first, o->last,
                    o->module ? strlen(o->module) + 1 : 0, o->line ? strlen(o->line) + 1 : 0,
                    o->module ? o->module : "", o->line ? o->line : "");
    }
    return t.n ? text_get(&t) : "";
}

static bool read_number(const char **at, uint64_t *value)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    *value = strtoull(*at, &end, 10);
    if (*end != ' ' || *value > UINT32_MAX)
        return false;
    *at = end + 1;
    return true;
}

static bool read_text(Arena *arena, const char **at, const char *end, uint64_t n, const char **text)
{
    *text = NULL;
    if (!n)
        return true;
    if (n - 1 > (uint64_t)(end - *at))
        return false;
    *text = arena_copy(arena, *at, (size_t)n - 1);
    *at += n - 1;
    return true;
}

static bool read_origin(Graph *g, Arena *scratch, const char **at, const char *end)
{
    CodePlace o;
    uint64_t first, last, module, line;
    if (!read_number(at, &first) || !read_number(at, &last) || !read_number(at, &module) || !read_number(at, &line) ||
        !read_text(scratch, at, end, module, &o.module) || !read_text(scratch, at, end, line, &o.line) || **at != '\n')
        return false;
    *at += 1;
    o.first = (uint32_t)first;
    o.last = (uint32_t)last;
    return code_places_add(g, &o);
}

bool origins_read(Graph *g, const char *text)
{
    const char *at = text, *end = text + strlen(text);
    Arena scratch;
    bool known = true;
    arena_open(&scratch, g->ir->memory);
    while (*at && known)
        known = read_origin(g, &scratch, &at, end);
    arena_close(&scratch);
    return known;
}
