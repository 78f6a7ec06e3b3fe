/* Names of values in a file, and notes where a name cannot be what it is in the text. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/read/origins.h"
#include "frontends/onnx/write/writer.h"

void writer_open(Writer *w, Ir *ir, Arena *arena, Diag *d, int opset)
{
    *w = (Writer){ .ir = ir, .diag = d, .arena = arena, .prefix = "", .opset = opset };
    w->names = facts_open(arena, sizeof(const char *));
    map_open(&w->taken, arena);
    map_open(&w->nodes, arena);
    map_open(&w->carriers, arena);
    map_open(&w->parts, arena);
    map_open(&w->quant_words, arena);
    map_open(&w->of_model, arena);
    heap_open(&w->heap, ir->memory);
}

void writer_close(Writer *w)
{
    heap_close(&w->heap);
}

static const char *claim(Writer *w, Map *taken, const char *wish)
{
    bool fresh;
    const char *name = wish;
    const MapEntry *first = map_put(taken, wish, &fresh);
    uint64_t i = first->value.u; /* how often it was asked for again */
    if (fresh)
        return wish;
    while (!fresh) {
        name = arena_printf(w->arena, "%s#%" PRIu64, wish, i++ + 2);
        map_put(taken, name, &fresh);
    }
    map_find(taken, wish)->value.u = i;
    return name;
}

const char *claim_name(Writer *w, const char *wish)
{
    return claim(w, &w->taken, wish);
}

void name_value(Writer *w, const Node *n, const char *name)
{
    *(const char **)fact(&w->names, n) = name;
}

const char *value_name(Writer *w, const Node *n)
{
    const char **slot = fact(&w->names, n);
    if (!*slot)
        *slot = claim_name(w, n->name ? arena_printf(w->arena, "%s%s", w->prefix, n->name)
                                      : arena_printf(w->arena, "%s%s%u", w->prefix, QCC_NAMELESS, w->n_nameless++));
    return *slot;
}

bool name_tells(const Writer *w, const char *onnx, const char *text)
{
    const size_t n = strlen(w->prefix);
    const char *shown = strncmp(onnx, w->prefix, n) == 0 ? onnx + n : onnx;
    const bool nameless = strncmp(shown, QCC_NAMELESS, strlen(QCC_NAMELESS)) == 0;
    return nameless ? !text : text && strcmp(shown, text) == 0;
}

void note(Writer *w, Onnx__StringStringEntryProto ***list, size_t *n, const char *key, const char *value)
{
    if (w->bare)
        return;
    Onnx__StringStringEntryProto *e = NEW(w->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(e);
    e->has_key = e->has_value = 1;
    e->key = encode_text(key);
    e->value = encode_text(value);
    if ((*n & (*n - 1)) == 0) /* a power of two: full */
        *list = arena_grow(w->arena, *list, *n, *n ? 2 * *n : 1, sizeof e);
    (*list)[(*n)++] = e;
}

void note_node(Writer *w, Onnx__NodeProto *o, const char *key, const char *value)
{
    note(w, &o->metadata_props, &o->n_metadata_props, key, value);
}

const char *marks_text(Writer *w, const Node *n)
{
    return arena_printf(w->arena, "%u %u", n->src, n->flags);
}

void note_marks(Writer *w, Onnx__NodeProto *o, const Node *n)
{
    note_node(w, o, QCC_SRC, arena_printf(w->arena, "%u", n->src));
    if (n->flags)
        note_node(w, o, QCC_FLAGS, arena_printf(w->arena, "%u", n->flags));
    if (n->label) { /* names of nodes differ, or others do not read the file */
        const char *wish = arena_printf(w->arena, "%s%s", w->prefix, n->label);
        const char *name = claim(w, &w->nodes, wish);
        o->has_name = 1;
        o->name = encode_text(name);
        if (name != wish)
            note_node(w, o, QCC_NODE, n->label);
    }
}

void note_origins(Writer *w, Onnx__GraphProto *proto, const Graph *g)
{
    if (g->code_places.n)
        note(w, &proto->metadata_props, &proto->n_metadata_props, QCC_ORIGIN, origins_note(w->arena, g));
}
