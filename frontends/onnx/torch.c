#include "frontends/onnx/torch.h"

#include <string.h>

#include "frontends/onnx/torch_text.h"
#include "ir/graph.h"

typedef struct Initial Initial;

/* An operand that is an initializer, and what the node's call says that it is. */
typedef struct Slot {
    TorchRead read;
    Initial *initial;
    TorchTensor *tensor; /* null: it is not said */
    const char *label;   /* where it is several tensors in one */
    bool turned;
    bool constant; /* the operator reads none of the module's tensors there */
    struct Slot *next_in_call, *next_of_initial;
} Slot;

struct Initial {
    const Onnx__TensorProto *proto;
    const char *name;
    TorchTensor *own; /* whose name it has */
    Slot *slots, *last;
};

/* The nodes of one call. */
typedef struct Group {
    TorchCall call;
    Slot *slots, *last;
} Group;

typedef struct Torch {
    Arena *arena;
    const Onnx__GraphProto *graph;
    TorchNames *names;
    Map tensors, targets; /* TorchTensor by the name in calls, and by what the module calls it */
    Map initials, groups;
    Map taken; /* names of the file, once one is wanted */
} Torch;

/* ---- the roles of operands ---- */

/* Which argument of a call an operand of its nodes holds. */
typedef struct Role {
    const char *call;
    int argument;
    const char *op;
    int slot; /* -1: any */
    bool turned;
} Role;

/* clang-format off */
static const Role roles[] = {
    { "linear",        1, "MatMul",                1, true  },
    { "linear",        1, "Gemm",                  1, false },
    { "linear",        2, "Gemm",                  2, false },
    { "linear",        2, "Add",                  -1, false },
    { "addmm",         0, "Gemm",                  2, false },
    { "addmm",         0, "Add",                  -1, false },
    { "addmm",         2, "Gemm",                  1, false },
    { "addmm",         2, "MatMul",                1, false },
    { "conv",          1, "Conv",                  1, false },
    { "conv",          2, "Conv",                  2, false },
    { "conv",          1, "ConvTranspose",         1, false },
    { "conv",          2, "ConvTranspose",         2, false },
    { "conv",          2, "Add",                  -1, false },
    { "batch_norm",    1, "BatchNormalization",    1, false },
    { "batch_norm",    2, "BatchNormalization",    2, false },
    { "batch_norm",    3, "BatchNormalization",    3, false },
    { "batch_norm",    4, "BatchNormalization",    4, false },
    { "layer_norm",    2, "LayerNormalization",    1, false },
    { "layer_norm",    3, "LayerNormalization",    2, false },
    { "layer_norm",    2, "Mul",                  -1, false },
    { "layer_norm",    3, "Add",                  -1, false },
    { "rms_norm",      2, "RMSNormalization",      1, false },
    { "rms_norm",      2, "Mul",                  -1, false },
    { "group_norm",    2, "GroupNormalization",    1, false },
    { "group_norm",    3, "GroupNormalization",    2, false },
    { "group_norm",    2, "Mul",                  -1, false },
    { "group_norm",    3, "Add",                  -1, false },
    { "instance_norm", 1, "InstanceNormalization", 1, false },
    { "instance_norm", 2, "InstanceNormalization", 2, false },
    { "prelu",         1, "PRelu",                 1, false },
    { "embedding",     0, "Gather",                0, false },
    { "embedding_bag", 0, "Gather",                0, false },
};
/* clang-format on */

/* Versions of one operator are one: conv2d and convolution, native_layer_norm and layer_norm. */
static bool is_call(Str op, const char *name)
{
    static const char *const families[] = { "batch_norm", "layer_norm", "group_norm", "rms_norm", "instance_norm" };
    if (strcmp(name, "conv") == 0)
        return op.n >= 4 && memcmp(op.p, "conv", 4) == 0;
    for (size_t i = 0; i < COUNT(families); i++)
        if (strcmp(name, families[i]) == 0)
            return op.n && memmem(op.p, op.n, name, strlen(name));
    return str_is(op, name);
}

static bool has_roles(Str call)
{
    for (size_t i = 0; i < COUNT(roles); i++)
        if (is_call(call, roles[i].call))
            return true;
    return false;
}

static const Role *role_of(Str call, const Slot *s)
{
    for (size_t i = 0; i < COUNT(roles); i++)
        if (is_call(call, roles[i].call) && str_is(str_of(s->read.node->op_type), roles[i].op) &&
            (roles[i].slot < 0 || roles[i].slot == s->read.slot))
            return &roles[i];
    return NULL;
}

static TorchTensor *argument_of(const TorchCall *c, int argument)
{
    for (size_t i = 0; i < c->n_refs; i++)
        if (c->refs[i].argument == argument)
            return c->refs[i].tensor;
    return NULL;
}

/* A Gemm reads the weight of a Linear as the module has it, transposed by an attribute. */
static bool reads_turned(const Slot *s)
{
    const Onnx__NodeProto *o = s->read.node;
    if (!str_is(str_of(o->op_type), "Gemm") || s->read.slot != 1)
        return false;
    for (size_t i = 0; i < o->n_attribute; i++)
        if (str_is(str_of(o->attribute[i]->name), "transB"))
            return !o->attribute[i]->i;
    return true;
}

/* ---- what a call says of its operands ---- */

static bool is_float(const Initial *x)
{
    DType dtype;
    return dtype_from_onnx(x->proto->data_type, &dtype) && dtype_is_float(dtype);
}

static void by_name(Group *g)
{
    for (Slot *s = g->slots; s; s = s->next_in_call)
        for (size_t i = 0; i < g->call.n_refs && !s->tensor; i++)
            if (g->call.refs[i].tensor == s->initial->own)
                s->tensor = s->initial->own;
}

static void by_role(Group *g)
{
    const bool known = has_roles(g->call.op);
    for (Slot *s = g->slots; s; s = s->next_in_call) {
        const Role *r = s->tensor ? NULL : role_of(g->call.op, s);
        if (r) {
            s->tensor = argument_of(&g->call, r->argument);
            s->turned = r->turned || (str_is(g->call.op, "linear") && reads_turned(s));
        }
        s->constant = known && !r && !s->tensor && g->call.n_refs;
    }
}

/* Where one tensor is left and one initializer, they are the same. */
static void by_rest(Group *g)
{
    TorchTensor *tensor = NULL;
    const Initial *initial = NULL;
    for (size_t i = 0; i < g->call.n_refs; i++) {
        TorchTensor *t = g->call.refs[i].tensor;
        bool said = t == tensor;
        for (const Slot *s = g->slots; s; s = s->next_in_call)
            said |= s->tensor == t;
        if (!said && tensor)
            return;
        tensor = said ? tensor : t;
    }
    for (const Slot *s = g->slots; s; s = s->next_in_call) {
        if (s->tensor || s->constant || !is_float(s->initial))
            continue;
        if (initial && initial != s->initial)
            return;
        initial = s->initial;
    }
    for (Slot *s = g->slots; tensor && initial && s; s = s->next_in_call)
        if (s->initial == initial && !s->tensor)
            s->tensor = tensor;
}

static const char *leaf_of(const char *target)
{
    const char *dot = strrchr(target, '.');
    return dot ? dot + 1 : target;
}

/* Whether a tensor of a recurrent module is in operand `slot` of the node of a layer: weight_ih_l0, bias_hh_l1_reverse. */
static bool is_in_layer(Arena *arena, const TorchTensor *x, int slot, int layer)
{
    static const char *const kinds[] = { [1] = "weight_ih", [2] = "weight_hh", [3] = "bias" };
    const char *leaf = leaf_of(x->target), *number = arena_printf(arena, "_l%d", layer);
    const size_t n = strlen(number);
    const char *at = strstr(leaf, number);
    return strncmp(leaf, kinds[slot], strlen(kinds[slot])) == 0 && at && (!at[n] || at[n] == '_');
}

/* Weights of a recurrent layer stand in another order of gates, those of its directions and both biases in one tensor. */
static void recurrent_slot(Torch *t, const Group *g, Slot *s, int layer)
{
    Text label;
    if (s->read.slot < 1 || s->read.slot > 3 || s->tensor)
        return;
    text_open(&label, t->arena);
    for (size_t i = 0; i < g->call.n_refs; i++) {
        TorchTensor *x = g->call.refs[i].tensor;
        if (!is_in_layer(t->arena, x, s->read.slot, layer))
            continue;
        text_printf(&label, "%s%s", label.n ? "+" : "", x->target);
        x->held = true;
        if (!s->tensor)
            s->tensor = x;
    }
    s->label = label.n ? text_get(&label) : NULL;
}

static bool is_recurrent(const Slot *s)
{
    const Str op = str_of(s->read.node->op_type);
    return str_is(op, "LSTM") || str_is(op, "GRU") || str_is(op, "RNN");
}

/* The nodes of one call are its layers, in their order. */
static void by_layer(Torch *t, Group *g)
{
    const Onnx__NodeProto *node = NULL;
    int layer = -1;
    for (Slot *s = g->slots; s; s = s->next_in_call) {
        if (!is_recurrent(s))
            continue;
        layer += s->read.node != node;
        node = s->read.node;
        recurrent_slot(t, g, s, layer);
    }
}

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
        Initial *x = NEW(t->arena, Initial);
        const MapEntry *own = map_find(&t->targets, copy);
        *x = (Initial){ .proto = g->initializer[i], .name = copy, .own = own ? own->value.p : NULL };
        e->value.p = x;
    }
}

static Group *group_of(Torch *t, const Onnx__NodeProto *o)
{
    TorchCall call;
    bool fresh;
    if (!torch_call(o, t->arena, &t->tensors, &call))
        return NULL;
    MapEntry *e = map_put_n(&t->groups, call.result.p, call.result.n, &fresh);
    if (fresh) {
        Group *g = NEW(t->arena, Group);
        *g = (Group){ .call = call };
        e->value.p = g;
    }
    return e->value.p;
}

static void add_slot(Torch *t, const TorchRead *read, Group *g)
{
    const Str name = str_of(read->node->input[read->slot]);
    const MapEntry *e = name.n ? map_find_n(&t->initials, name.p, name.n) : NULL;
    if (!e)
        return;
    Initial *x = e->value.p;
    Slot *s = NEW(t->arena, Slot);
    *s = (Slot){ .read = *read, .initial = x };
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
        Group *g = group_of(t, o);
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
    for (int k = 2; is_taken(t, name); k++)
        name = arena_printf(t->arena, "%s#%d", wish, k);
    map_put(&t->taken, name, NULL);
    return name;
}

static uint16_t flags_of(const TorchTensor *tensor, bool turned)
{
    return (uint16_t)((tensor && tensor->parameter ? NODE_PARAMETER : NODE_FIXED) | (turned ? NODE_TURNED : 0));
}

/* The part of an initializer that is a tensor, or a constant; made when it is first wanted. */
static TorchHeld *part_of(Torch *t, const Initial *x, Map *parts, const Slot *s)
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

typedef struct PartRead {
    int slot;
    const TorchHeld *part;
    struct PartRead *next;
} PartRead;

static void add_read(Torch *t, TorchHeld *part, const Slot *s)
{
    PartRead *r = NEW(t->arena, PartRead);
    MapEntry *e = map_put_u64(&t->names->readers, (uintptr_t)s->read.node, NULL);
    *r = (PartRead){ s->read.slot, part, e->value.p };
    e->value.p = r;
    GROW(t->arena, part->reads, part->n_reads, part->cap_reads);
    part->reads[part->n_reads++] = s->read;
}

/* What a node holds in attributes stays where it is, so such a node goes on to read what it reads. */
static bool may_read_apart(const Slot *s)
{
    const Onnx__NodeProto *o = s->read.node;
    for (size_t i = 0; i < o->n_attribute; i++)
        if (o->attribute[i]->t || o->attribute[i]->g || o->attribute[i]->n_tensors || o->attribute[i]->n_graphs)
            return false;
    return true;
}

static void hold(Torch *t, Initial *x)
{
    const Slot *first = x->slots;
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
    for (Slot *s = x->slots; s && base; s = s->next_of_initial) {
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

/* A module that reads a tensor of another one has it under a name of its own. */
static void find_aliases(Torch *t)
{
    for (size_t i = 0; i < t->initials.n; i++) {
        const Initial *x = t->initials.entries[i].value.p;
        for (const Slot *s = x->slots; s; s = s->next_of_initial) {
            const Str module = torch_module(s->read.node);
            const char *alias = s->tensor && module.n
                                    ? arena_printf(t->arena, "%.*s.%s", STR_ARG(module), leaf_of(s->tensor->target))
                                    : NULL;
            const MapEntry *e = alias ? map_find(&t->targets, alias) : NULL;
            TorchTensor *other = e ? e->value.p : NULL;
            if (other && other != s->tensor && !other->held)
                map_put(&t->names->aliases, alias, NULL)->value.cp = s->tensor->target;
        }
    }
}

/* What a module calls a tensor first is its name, as it is in PyTorch's own lists. */
static void prefer_first_names(Torch *t)
{
    for (size_t i = 0; i < t->names->aliases.n; i++) {
        MapEntry *alias = &t->names->aliases.entries[i];
        const TorchTensor *first = map_find(&t->targets, alias->key)->value.p,
                          *held = map_find(&t->targets, alias->value.cp)->value.p;
        if (first->order > held->order)
            continue;
        for (size_t k = 0; k < t->names->initializers.n; k++) {
            TorchHeld *h = t->names->initializers.entries[k].value.p;
            if (!h->label || strcmp(h->label, held->target) != 0)
                continue;
            h->label = first->target;
            h->shown = free_name(t, first->target);
        }
        alias->key = held->target;
        alias->value.cp = first->target;
    }
}

static void find_missing(Torch *t)
{
    for (size_t i = 0; i < t->tensors.n; i++) {
        const TorchTensor *x = t->tensors.entries[i].value.p;
        if (!x->parameter || map_find(&t->names->aliases, x->target))
            continue;
        t->names->n_parameters++;
        if (x->held)
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
    map_open(&t->names->aliases, t->arena);
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
    for (size_t i = 0; i < t.groups.n; i++) {
        Group *g = t.groups.entries[i].value.p;
        by_name(g);
        by_role(g);
        by_layer(&t, g);
        if (!has_roles(g->call.op))
            by_rest(g);
    }
    for (size_t i = 0; i < t.initials.n; i++)
        hold(&t, t.initials.entries[i].value.p);
    find_aliases(&t);
    find_missing(&t);
    prefer_first_names(&t);
    return t.names;
}

const TorchHeld *torch_part(const TorchNames *names, const Onnx__NodeProto *o, int slot)
{
    const MapEntry *e = names && names->n_parts ? map_find_u64(&names->readers, (uintptr_t)o) : NULL;
    for (const PartRead *r = e ? e->value.cp : NULL; r; r = r->next)
        if (r->slot == slot)
            return r->part;
    return NULL;
}
