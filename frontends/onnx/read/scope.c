/* Which value a name means: in its own graph, or captured from the graphs around it. */
#include <string.h>

#include "frontends/onnx/read/importer.h"

/* Small integers are copied into a region instead of captured: shapes and axes stay visible as constants. */
static Node *copied_constant(Scope *s, const Node *n)
{
    enum { MOST_ELEMENTS = 1024 };
    if (n->op != OP_param || !dtype_is_integer(n->type->dtype) || type_elements(n->type) > MOST_ELEMENTS)
        return NULL;
    Build b = build_at_end(s->graph);
    b.src = n->src;
    b.label = n->label;
    Node *copy = build_typed(&b, OP_param, n->attr, 0, NULL, n->type);
    if (s->graph->first != copy) /* before all readers */
        node_move(copy, s->graph->first);
    return copy;
}

void scope_capture(Importer *im, Scope *s, Node *outside, Node *inside)
{
    GROW(im->arena, s->captured, s->n_captured, s->cap_captured);
    GROW(im->arena, s->inside, s->n_captured, s->cap_inside);
    s->captured[s->n_captured] = outside;
    s->inside[s->n_captured++] = inside;
}

static Node *capture(Importer *im, Scope *s, Node *outside)
{
    Node *in = copied_constant(s, outside);
    if (in)
        return in;
    in = graph_input(s->graph, NULL, outside->type);
    scope_capture(im, s, outside, in);
    return in;
}

Node *scope_value(Importer *im, Scope *s, const char *name)
{
    enum { DEEPEST = 64 };
    Scope *path[DEEPEST];
    int n = 0;
    const MapEntry *e = NULL;
    for (Scope *at = s; at && !e; at = at->outer) {
        e = map_find(&at->values, name);
        if (n < DEEPEST)
            path[n++] = at;
    }
    if (!e)
        return NULL;
    Node *value = e->value.p;
    for (int i = n - 2; i >= 0; i--) {
        Node *in = capture(im, path[i], value);
        if (!in->name)
            in->name = shown_name(im, name);
        map_put(&path[i]->values, name, NULL)->value.p = in;
        value = in;
    }
    return value;
}

Status scope_define(Importer *im, Scope *s, const char *name, Node *value)
{
    bool fresh;
    MapEntry *e = map_put(&s->values, name, &fresh);
    if (!fresh)
        return fail(im->ir->diag, importer_place(im), "value %s is defined twice", name);
    e->value.p = value;
    if (!value->name)
        value->name = shown_name(im, name);
    return OK;
}
