#include "frontends/onnx/read/torch_match.h"

#include <string.h>

#include "ir/graph.h"

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

static const Role *role_of(Str call, const TorchSlot *s)
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
static bool reads_turned(const TorchSlot *s)
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

static bool is_float(const TorchInitial *x)
{
    DType dtype;
    return dtype_from_onnx(x->proto->data_type, &dtype) && dtype_is_float(dtype);
}

static void take_role(const TorchGroup *g, TorchSlot *s, const Role *r)
{
    s->tensor = argument_of(&g->call, r->argument);
    s->turned =
        s->tensor && s->tensor != s->initial->own && (r->turned || (str_is(g->call.op, "linear") && reads_turned(s)));
}

/* What an operand holds that has exactly one role in the call, also where equal tensors were merged. */
static void by_place(TorchGroup *g)
{
    for (TorchSlot *s = g->slots; s; s = s->next_in_call) {
        const Role *r = role_of(g->call.op, s);
        if (r && r->slot >= 0)
            take_role(g, s, r);
    }
}

static void by_name(TorchGroup *g)
{
    for (TorchSlot *s = g->slots; s; s = s->next_in_call)
        for (size_t i = 0; i < g->call.n_refs && !s->tensor; i++)
            if (g->call.refs[i].tensor == s->initial->own)
                s->tensor = s->initial->own;
}

static void by_role(TorchGroup *g)
{
    const bool known = has_roles(g->call.op);
    for (TorchSlot *s = g->slots; s; s = s->next_in_call) {
        const Role *r = s->tensor ? NULL : role_of(g->call.op, s);
        if (r)
            take_role(g, s, r);
        s->constant = known && !r && !s->tensor && g->call.n_refs;
    }
}

/* Where one tensor is left and one initializer, they are the same. */
static void by_rest(TorchGroup *g)
{
    TorchTensor *tensor = NULL;
    const TorchInitial *initial = NULL;
    for (size_t i = 0; i < g->call.n_refs; i++) {
        TorchTensor *t = g->call.refs[i].tensor;
        bool said = t == tensor;
        for (const TorchSlot *s = g->slots; s; s = s->next_in_call)
            said |= s->tensor == t;
        if (!said && tensor)
            return;
        tensor = said ? tensor : t;
    }
    for (const TorchSlot *s = g->slots; s; s = s->next_in_call) {
        if (s->tensor || s->constant || !is_float(s->initial))
            continue;
        if (initial && initial != s->initial)
            return;
        initial = s->initial;
    }
    for (TorchSlot *s = g->slots; tensor && initial && s; s = s->next_in_call)
        if (s->initial == initial && !s->tensor)
            s->tensor = tensor;
}

const char *torch_leaf(const char *target)
{
    const char *dot = strrchr(target, '.');
    return dot ? dot + 1 : target;
}

/* Whether a tensor of a recurrent module is in operand `slot` of the node of a layer: weight_ih_l0, bias_hh_l1_reverse. */
static bool is_in_layer(Arena *arena, const TorchTensor *x, int slot, int layer)
{
    static const char *const kinds[] = { [1] = "weight_ih", [2] = "weight_hh", [3] = "bias" };
    const char *leaf = torch_leaf(x->target), *number = arena_printf(arena, "_l%d", layer);
    const size_t n = strlen(number);
    const char *at = strstr(leaf, number);
    return strncmp(leaf, kinds[slot], strlen(kinds[slot])) == 0 && at && (!at[n] || at[n] == '_');
}

/* Weights of a recurrent layer stand in another order of gates, those of its directions and both biases in one tensor. */
static void recurrent_slot(Arena *arena, const TorchGroup *g, TorchSlot *s, int layer)
{
    Text label;
    if (s->read.slot < 1 || s->read.slot > 3 || s->tensor)
        return;
    text_open(&label, arena);
    for (size_t i = 0; i < g->call.n_refs; i++) {
        TorchTensor *x = g->call.refs[i].tensor;
        if (!is_in_layer(arena, x, s->read.slot, layer))
            continue;
        text_printf(&label, "%s%s", label.n ? "+" : "", x->target);
        x->held = true;
        if (!s->tensor)
            s->tensor = x;
    }
    s->label = label.n ? text_get(&label) : NULL;
}

static bool is_recurrent(const TorchSlot *s)
{
    const Str op = str_of(s->read.node->op_type);
    return str_is(op, "LSTM") || str_is(op, "GRU") || str_is(op, "RNN");
}

/* The nodes of one call are its layers, in their order. */
static void by_layer(TorchGroup *g, Arena *arena)
{
    const Onnx__NodeProto *node = NULL;
    int layer = -1;
    for (TorchSlot *s = g->slots; s; s = s->next_in_call) {
        if (!is_recurrent(s))
            continue;
        layer += s->read.node != node;
        node = s->read.node;
        recurrent_slot(arena, g, s, layer);
    }
}

void torch_match(TorchGroup *g, Arena *arena)
{
    by_place(g);
    by_name(g);
    by_role(g);
    by_layer(g, arena);
    if (!has_roles(g->call.op))
        by_rest(g);
}
