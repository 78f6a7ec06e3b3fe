#include "ops/card/path.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "ops/card/schema.h"
#include "ir/role.h"

static bool all_digits(const char *p)
{
    if (!*p)
        return false;
    while (isdigit((unsigned char)*p))
        p++;
    return !*p;
}

bool name_is_made_up(const char *name)
{
    static const char *const prefixes[] = { "onnx::", "val_", "_val_", "const_", "_to_copy", "arg", "p_" };
    if (all_digits(name) || strstr(name, "::"))
        return true;
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        const size_t n = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], n) == 0 && all_digits(name + n))
            return true;
    }
    return false;
}

bool name_is_computed(const char *name)
{
    static const char *const calls[] = {
        "abs",     "add",        "arange",   "bitwise_and",   "bmm",     "cat",         "clamp",         "clone",
        "cos",     "cumsum",     "div",      "embedding",     "eq",      "exp",         "expand",        "eye",
        "flip",    "floor",      "full",     "full_like",     "gather",  "ge",          "getitem",       "gt",
        "index",   "le",         "linspace", "log",           "lt",      "masked_fill", "matmul",        "mean",
        "mm",      "mul",        "ne",       "neg",           "ones",    "ones_like",   "outer",         "permute",
        "pow",     "reciprocal", "repeat",   "reshape",       "rsqrt",   "rsub",        "scalar_tensor", "select",
        "sigmoid", "sin",        "slice",    "slice_scatter", "softmax", "sqrt",        "squeeze",       "stack",
        "sub",     "sum",        "t",        "tanh",          "tile",    "to",          "transpose",     "tril",
        "triu",    "unsqueeze",  "view",     "where",         "zeros",   "zeros_like",
    };
    size_t n = strlen(name);
    const char *last = strrchr(name, '_');
    if (last && all_digits(last + 1))
        n = (size_t)(last - name);
    static const char overload[] = "_default";
    const size_t tail = sizeof overload - 1;
    if (n > tail && memcmp(name + n - tail, overload, tail) == 0)
        n -= tail;
    for (size_t i = 0; i < COUNT(calls); i++)
        if (strlen(calls[i]) == n && memcmp(calls[i], name, n) == 0)
            return true;
    return false;
}

/* "weight", "bias", "running_mean", ...: what the operand is called in a module. */
static const char *operand_name(Arena *arena, const Node *reader, int slot)
{
    static const struct {
        const char *onnx, *module;
    } known[] = {
        { "W", "weight" },
        { "B", "bias" },
        { "scale", "weight" },
        { "bias", "bias" },
        { "C", "bias" },
        { "Scale", "weight" },
        { "slope", "weight" },
        { "input_mean", "running_mean" },
        { "input_var", "running_var" },
        { "data", "weight" },
    };
    static const char *const recurrent[] = { [1] = "weight_ih", [2] = "weight_hh", [3] = "bias" };
    const OpDef *def = op_of(reader);
    if ((reader->op == OP_lstm || reader->op == OP_gru || reader->op == OP_rnn) && slot >= 1 && slot <= 3)
        return recurrent[slot];
    const OnnxSchema *schema =
        def->onnx.op ? schema_find(def->onnx.domain ? def->onnx.domain : "", def->onnx.op, ONNX_OPSET_NEWEST) : NULL;
    const OnnxParam *p = schema ? schema_input(schema, slot) : NULL;
    if (reader->n_in == 2 || (slot == 1 && p && strcmp(p->name, "B") == 0))
        return slot == 1 && p && strcmp(def->onnx.op, "Add") == 0 ? "bias" : "weight";
    for (size_t i = 0; p && i < COUNT(known); i++)
        if (strcmp(known[i].onnx, p->name) == 0)
            return known[i].module;
    return p ? p->name : arena_printf(arena, "operand%d", slot);
}

/* The first reader that says where it stands, looking through what only moves the value. */
static const char *path_of(Arena *arena, const Node *n)
{
    enum { FARTHEST = 4 };
    const Node *value = n;
    for (int hop = 0; hop < FARTHEST && value->uses; hop++) {
        const Use *use = value->uses;
        while (use->next)
            use = use->next; /* uses are linked newest first */
        const Node *reader = use->user;
        const int slot = (int)(use - reader->in);
        if (op_moves(op_of(reader)) && slot == 0 && !op_of(reader)->structural) {
            value = reader;
            continue;
        }
        const char *module = reader->label ? module_of_label(arena, reader->label) : NULL;
        return module ? arena_printf(arena, "%s.%s", module, operand_name(arena, reader, slot)) : NULL;
    }
    return NULL;
}

static bool is_parameter(const Node *n)
{
    return n->op == OP_param || n->op == OP_state;
}

typedef struct Paths {
    Arena *arena;
    Map paths, taken;
} Paths;

/* What the exporter calls a parameter is its label; that of a Constant node is the node's. */
static bool is_labelled(const Node *n)
{
    return is_parameter(n) && !n->src && n->label && n->name;
}

static void keep_name(Paths *p, const Node *n)
{
    if (is_parameter(n) && n->name && !is_labelled(n) && !name_is_made_up(n->name))
        map_put(&p->taken, n->name, NULL);
}

static void give_path(Paths *p, const Node *n)
{
    const bool labelled = is_labelled(n);
    if (!labelled && (!is_parameter(n) || !n->name || !name_is_made_up(n->name) || !dtype_is_float(n->type->dtype)))
        return;
    const char *path = labelled ? n->label : path_of(p->arena, n);
    if (!path)
        return;
    bool fresh;
    const char *shown = path;
    while (map_put(&p->taken, shown, &fresh), !fresh) {
        MapEntry *e = map_find(&p->taken, path);
        e->value.i = e->value.i ? e->value.i + 1 : 2;
        shown = arena_printf(p->arena, "%s#%d", path, (int)e->value.i);
    }
    if (strcmp(shown, n->name) != 0)
        map_put(&p->paths, n->name, NULL)->value.cp = shown;
}

Map path_names(Graph *g, Arena *arena)
{
    Paths p = { .arena = arena };
    map_open(&p.paths, arena);
    map_open(&p.taken, arena);
    for (size_t i = 0; i < g->n_inputs; i++)
        keep_name(&p, g->inputs[i]);
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        keep_name(&p, n);
    for (size_t i = 0; i < g->n_inputs; i++)
        give_path(&p, g->inputs[i]);
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        give_path(&p, n);
    return p.paths;
}

const char *path_name(const Map *paths, const Node *n)
{
    const MapEntry *e = n->name ? map_find(paths, n->name) : NULL;
    return e ? e->value.cp : n->name;
}

const char *name_in_file(const Node *n)
{
    const Payload *value = n->src ? NULL : n->op == OP_state ? state_initial(n) : node_payload(n);
    const char *name = value ? value->name : NULL;
    return name ? name : n->name;
}
