#include "frontends/onnx/read/torch.h"

#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/read/torch_alias.h"
#include "frontends/onnx/read/torch_match.h"
#include "ir/graph.h"

typedef struct Torch {
    Arena *arena;
    const Onnx__GraphProto *graph;
    TorchNames *names;
    Map tensors, targets; /* TorchTensor by the name in calls, and by what the module calls it */
    Map initials, groups;
    Map taken; /* names of the file, once one is wanted */
} Torch;

/* ---- the file ---- */

static void add_initials(Torch *t)
{
    const Onnx__GraphProto *g = t->graph;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Str name = str_of(g->initializer[i]->name);
        bool fresh;
        const char *copy = arena_copy(t->arena, name.p, name.n);
        MapEntry *e = map_put(&t->initials, copy, &fresh);
        if (!fresh)
            continue;
        TorchInitial *x = NEW(t->arena, TorchInitial);
        const MapEntry *own = map_find(&t->targets, copy);
        *x = (TorchInitial){ .proto = g->initializer[i], .name = copy, .own = own ? own->value.p : NULL };
        e->value.p = x;
    }
}

static TorchGroup *group_of(Torch *t, const Onnx__NodeProto *o)
{
    TorchCall call;
    bool fresh;
    if (!torch_call(o, t->arena, &t->tensors, &call))
        return NULL;
    MapEntry *e = map_put_n(&t->groups, call.result.p, call.result.n, &fresh);
    if (fresh) {
        TorchGroup *g = NEW(t->arena, TorchGroup);
        *g = (TorchGroup){ .call = call };
        e->value.p = g;
    }
    return e->value.p;
}

static void add_slot(Torch *t, const TorchRead *read, TorchGroup *g)
{
    const Str name = str_of(read->node->input[read->slot]);
    const MapEntry *e = name.n ? map_find_n(&t->initials, name.p, name.n) : NULL;
    if (!e)
        return;
    TorchInitial *x = e->value.p;
    TorchSlot *s = NEW(t->arena, TorchSlot);
    *s = (TorchSlot){ .read = *read, .initial = x };
    *(x->last ? &x->last->next_of_initial : &x->slots) = s;
    x->last = s;
    if (!g)
        return;
    *(g->last ? &g->last->next_in_call : &g->slots) = s;
    g->last = s;
}

static void add_nodes(Torch *t)
{
    for (size_t i = 0; i < t->graph->n_node; i++) {
        const Onnx__NodeProto *o = t->graph->node[i];
        TorchGroup *g = group_of(t, o);
        for (size_t k = 0; k < o->n_input; k++)
            add_slot(t, &(TorchRead){ o, i, (int)k }, g);
    }
}

/* ---- who is who ---- */

static bool is_taken(Torch *t, const char *name)
{
    const Onnx__GraphProto *g = t->graph;
    if (!t->taken.n) {
        for (size_t i = 0; i < g->n_initializer; i++)
            map_put_n(&t->taken, str_of(g->initializer[i]->name).p, str_of(g->initializer[i]->name).n, NULL);
        for (size_t i = 0; i < g->n_input; i++)
            map_put_n(&t->taken, str_of(g->input[i]->name).p, str_of(g->input[i]->name).n, NULL);
        for (size_t i = 0; i < g->n_node; i++)
            for (size_t k = 0; k < g->node[i]->n_output; k++)
                map_put_n(&t->taken, str_of(g->node[i]->output[k]).p, str_of(g->node[i]->output[k]).n, NULL);
    }
    return map_find(&t->taken, name);
}

static const char *free_name(Torch *t, const char *wish)
{
    const char *name = wish;
    while (is_taken(t, name)) {
        MapEntry *e = map_find(&t->taken, wish);
        e->value.i = e->value.i ? e->value.i + 1 : 2;
        name = arena_printf(t->arena, "%s#%" PRId64, wish, e->value.i);
    }
    map_put(&t->taken, name, NULL);
    return name;
}

static uint16_t flags_of(const TorchTensor *tensor, bool turned)
{
    return (uint16_t)((tensor && tensor->parameter ? NODE_PARAMETER : NODE_FIXED) | (turned ? NODE_TURNED : 0));
}

/* The part of an initializer that is a tensor, or a constant; made when it is first wanted. */
static TorchHeld *part_of(Torch *t, const TorchInitial *x, Map *parts, const TorchSlot *s)
{
    bool fresh;
    MapEntry *e = map_put_u64(parts, (uintptr_t)s->tensor, &fresh);
    if (!fresh)
        return e->value.p;
    TorchHeld *part = NEW(t->arena, TorchHeld);
    const char *label = s->label ? s->label : s->tensor ? s->tensor->target : NULL;
    *part = (TorchHeld){ .label = label, .flags = flags_of(s->tensor, s->turned), .of = x->name };
    part->name = part->shown = free_name(t, label ? label : arena_printf(t->arena, "%s.constant", x->name));
    GROW(t->arena, t->names->parts, t->names->n_parts, t->names->cap_parts);
    t->names->parts[t->names->n_parts++] = part;
    e->value.p = part;
    return part;
}

static void add_read(Torch *t, TorchHeld *part, const TorchSlot *s)
{
    bool fresh;
    MapEntry *e = map_put_u64(&t->names->readers, (uintptr_t)s->read.node, &fresh);
    if (fresh)
        e->value.p = NEWS(t->arena, const TorchHeld *, s->read.node->n_input);
    ((const TorchHeld **)e->value.p)[s->read.slot] = part;
    GROW(t->arena, part->reads, part->n_reads, part->cap_reads);
    part->reads[part->n_reads++] = s->read;
}

/* What a node holds in attributes stays where it is, so such a node goes on to read what it reads; an Identity of an
 * initializer is an alias of it (write/trained_states.c). */
static bool may_read_apart(const TorchSlot *s)
{
    const Onnx__NodeProto *o = s->read.node;
    for (size_t i = 0; i < o->n_attribute; i++)
        if (o->attribute[i]->t || o->attribute[i]->g || o->attribute[i]->n_tensors || o->attribute[i]->n_graphs)
            return false;
    return !str_is(str_of(o->op_type), "Identity");
}

static void hold(Torch *t, TorchInitial *x)
{
    const TorchSlot *first = x->slots;
    Map parts;
    TorchHeld *held = NEW(t->arena, TorchHeld);
    size_t untold = 0, merged = 0;
    map_open(&parts, t->arena);
    while (first && !first->tensor)
        first = first->next_of_initial;
    TorchTensor *base = x->own ? x->own : first ? first->tensor : NULL;
    *held = (TorchHeld){ .name = x->name, .flags = flags_of(base, !x->own && first && first->turned) };
    held->label = !x->own && first && first->label ? first->label : base ? base->target : NULL;
    held->shown = held->label && strcmp(held->label, x->name) != 0 ? free_name(t, held->label) : x->name;
    map_put(&t->names->initializers, x->name, NULL)->value.p = held;
    if (base)
        base->held = true;
    for (TorchSlot *s = x->slots; s && base; s = s->next_of_initial) {
        const bool other = s->tensor ? s->tensor != base : s->constant && base->parameter && first;
        untold += (!s->tensor && !s->constant) || (other && !may_read_apart(s));
        if (!other || !may_read_apart(s))
            continue;
        add_read(t, part_of(t, x, &parts, s), s);
        if (s->tensor)
            s->tensor->held = true;
        merged += s->tensor != NULL;
    }
    if (merged && untold) {
        GROW(t->arena, t->names->shared, t->names->n_shared, t->names->cap_shared);
        t->names->shared[t->names->n_shared++] = held;
    }
}

/* What a module calls a tensor first is its name, as it is in PyTorch's own lists. */
static void rename_held(Torch *t, TorchHeld *h)
{
    const MapEntry *e = h->label ? map_find(&t->names->aliases, h->label) : NULL;
    if (!e)
        return;
    h->label = e->value.cp;
    h->shown = free_name(t, h->label);
    if (h->of)
        h->name = h->shown;
}

static void prefer_first_names(Torch *t)
{
    for (size_t i = 0; i < t->names->initializers.n; i++)
        rename_held(t, t->names->initializers.entries[i].value.p);
    for (size_t i = 0; i < t->names->n_parts; i++)
        rename_held(t, t->names->parts[i]);
}

/* Whether the exporter optimized nothing: it makes initializers of all Constant nodes when it does.  What nobody holds then
 * is not used, or another name of what is. */
static bool is_raw(const Torch *t)
{
    for (size_t i = 0; i < t->graph->n_node; i++)
        if (str_is(str_of(t->graph->node[i]->op_type), "Constant"))
            return true;
    return false;
}

static void find_missing(Torch *t)
{
    const bool raw = is_raw(t);
    for (size_t i = 0; i < t->tensors.n; i++) {
        const TorchTensor *x = t->tensors.entries[i].value.p;
        if (!x->parameter || map_find(&t->names->aliases, x->target))
            continue;
        t->names->n_parameters++;
        if (x->held || raw)
            continue;
        GROW(t->arena, t->names->missing, t->names->n_missing, t->names->cap_missing);
        t->names->missing[t->names->n_missing++] = x->target;
    }
}

static void torch_open(Torch *t)
{
    map_open(&t->targets, t->arena);
    map_open(&t->initials, t->arena);
    map_open(&t->groups, t->arena);
    map_open(&t->taken, t->arena);
    map_open(&t->names->initializers, t->arena);
    map_open(&t->names->readers, t->arena);
    for (size_t i = 0; i < t->tensors.n; i++) {
        TorchTensor *x = t->tensors.entries[i].value.p;
        map_put(&t->targets, x->target, NULL)->value.p = x;
    }
}

const TorchNames *torch_names(const Onnx__ModelProto *model, Arena *arena)
{
    Torch t = { .arena = arena, .graph = model->graph, .names = NEW(arena, TorchNames) };
    if (!model->graph || !torch_signature(model->graph, arena, &t.tensors))
        return NULL;
    torch_open(&t);
    add_initials(&t);
    add_nodes(&t);
    for (size_t i = 0; i < t.groups.n; i++)
        torch_match(t.groups.entries[i].value.p, arena);
    for (size_t i = 0; i < t.initials.n; i++)
        hold(&t, t.initials.entries[i].value.p);
    torch_aliases(&(TorchKnown){ arena, t.graph, &t.initials, &t.targets }, &t.names->aliases);
    find_missing(&t);
    prefer_first_names(&t);
    return t.names;
}

const TorchHeld *torch_part(const TorchNames *names, const Onnx__NodeProto *o, int slot)
{
    const MapEntry *e = names && names->n_parts ? map_find_u64(&names->readers, (uintptr_t)o) : NULL;
    return e ? ((const TorchHeld *const *)e->value.cp)[slot] : NULL;
}
