#include "frontends/onnx/read/call.h"

#include <string.h>

#include "frontends/onnx/read/importer.h"

CallAttr *call_attr(const Call *c, const char *name)
{
    for (size_t i = 0; i < c->n_attrs; i++)
        if (strcmp(c->attrs[i].name, name) == 0)
            return &c->attrs[i];
    return NULL;
}

int64_t call_int(const Call *c, const char *name, int64_t fallback)
{
    const CallAttr *a = call_attr(c, name);
    return a ? a->i : fallback;
}

float call_float(const Call *c, const char *name, float fallback)
{
    const CallAttr *a = call_attr(c, name);
    return a ? a->f : fallback;
}

const char *call_string(const Call *c, const char *name, const char *fallback)
{
    const CallAttr *a = call_attr(c, name);
    return a && a->s ? a->s : fallback;
}

Ints call_ints(const Call *c, const char *name)
{
    const CallAttr *a = call_attr(c, name);
    return a ? a->ints : (Ints){ 0 };
}

static CallAttr *attr_for(Call *c, const char *name, int type)
{
    CallAttr *a = call_attr(c, name);
    if (!a) {
        GROW(call_arena(c), c->attrs, c->n_attrs, c->cap_attrs);
        a = &c->attrs[c->n_attrs++];
    }
    *a = (CallAttr){ .name = name, .type = type };
    return a;
}

void call_set_int(Call *c, const char *name, int64_t value)
{
    attr_for(c, name, ONNX_ATTR_INT)->i = value;
}

void call_set_float(Call *c, const char *name, float value)
{
    attr_for(c, name, ONNX_ATTR_FLOAT)->f = value;
}

void call_set_ints(Call *c, const char *name, int n, const int64_t *v)
{
    int64_t *copy = NEWS(call_arena(c), int64_t, n + 1);
    if (n)
        memcpy(copy, v, (size_t)n * sizeof *v);
    attr_for(c, name, ONNX_ATTR_INTS)->ints = (Ints){ n, copy };
}

void call_set_string(Call *c, const char *name, const char *value)
{
    attr_for(c, name, ONNX_ATTR_STRING)->s = value;
}

void call_drop(Call *c, const char *name)
{
    CallAttr *a = call_attr(c, name);
    if (a)
        *a = c->attrs[--c->n_attrs];
}

Node *call_in(const Call *c, int i)
{
    return i < c->n_in ? c->in[i] : NULL;
}

void call_set_in(Call *c, int i, Node *def)
{
    if (i >= c->n_in) {
        c->in = arena_grow(call_arena(c), c->in, (size_t)c->n_in, (size_t)i + 1, sizeof *c->in);
        c->n_in = i + 1;
    }
    c->in[i] = def;
}

Arena *call_arena(const Call *c)
{
    return c->importer->arena;
}

Ir *call_ir(const Call *c)
{
    return c->importer->ir;
}

Status call_fail(const Call *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(call_arena(c), format, args);
    va_end(args);
    return fail(call_ir(c)->diag, importer_place(c->importer), "%s: %s", c->op, text);
}
