#include "ir/build.h"

#include <stdio.h>
#include <string.h>

Build build_at_end(Graph *g)
{
    return (Build){ .graph = g };
}

Build build_at_start(Graph *g)
{
    return (Build){ .graph = g, .before = g->first };
}

Build build_before(Node *n)
{
    return (Build){ .graph = n->graph, .before = n, .src = n->src, .flags = n->flags, .label = n->label };
}

static Node *place_node(Build *b, Op op, const void *attr, int n_in, Node *const *ins, const Type *type)
{
    Graph *g = b->graph;
    Node *n = graph_insert(g, b->before, op, type, n_in, ins);
    n->attr = attrs_copy(g->arena, op_of(n)->attrs, attr);
    n->src = b->src;
    n->flags = b->flags;
    n->label = b->label;
    return n;
}

Node *build_typed(Build *b, Op op, const void *attr, int n_in, Node *const *ins, const Type *type)
{
    return b->status == OK ? place_node(b, op, attr, n_in, ins, type) : NULL;
}

/* Constants up to this many bytes are read where infer asks for them: shapes, axes, scales, never weights. */
enum { LARGEST_SHOWN = 1 << 20 };

const Tensor *infer_known(const Infer *q, int i)
{
    if (q->value)
        return q->value[i];
    return q->nodes && q->nodes[i] ? node_constant(q->nodes[i], LARGEST_SHOWN) : NULL;
}

static const Type *ask(Ir *ir, Op op, const void *attr, int n_in, Node *const *ins, int n_out, const Type *declared,
                       int n_regions, Graph *const *regions, const char **complaint)
{
    const OpDef *def = ir->ops->defs[op];
    enum { FEW = 16 };
    const Type *few_types[FEW], **types = n_in <= FEW ? few_types : NEWS(ir->diag->arena, const Type *, n_in);

    for (int i = 0; i < n_in; i++)
        types[i] = ins[i] ? ins[i]->type : NULL;
    Infer q = { .ir = ir,
                .types = &ir->types,
                .def = def,
                .attr = attr,
                .n_in = n_in,
                .in = types,
                .nodes = ins,
                .n_out = n_out,
                .declared = declared,
                .regions = regions,
                .n_regions = n_regions,
                .scratch = ir->diag->arena };
    const Type *type = NULL;
    if (!op_takes(def, n_in))
        infer_fail(&q, "takes %d%s operands, not %d", def->min_in,
                   def->max_in < 0             ? " or more"
                   : def->max_in > def->min_in ? arena_printf(ir->diag->arena, " to %d", def->max_in)
                                               : "",
                   n_in);
    else if (!def->infer)
        infer_fail(&q, "%s has no type of its own", def->name);
    else
        type = def->infer(&q);
    *complaint = type ? NULL : q.complaint ? q.complaint : "is not a legal call";
    return type;
}

Node *build_with_regions(Build *b, Op op, const void *attr, int n_in, Node *const *ins, int n_out, int n_regions,
                         Graph *const *regions)
{
    Ir *ir = b->graph->ir;
    const char *complaint;
    if (b->status != OK)
        return NULL;
    const OpDef *def = ir->ops->defs[op];
    const void *full = attr ? attr : attrs_default(b->graph->arena, def->attrs);
    const Type *type = ask(ir, op, full, n_in, ins, n_out, NULL, n_regions, regions, &complaint);
    if (!type) {
        const char *where =
            b->src ? arena_printf(ir->diag->arena, "node %u%s%s", b->src, b->label ? " " : "", b->label ? b->label : "")
            : b->label ? b->label
                       : def->name;
        b->status = fail(ir->diag, (Place){ .where = where, .byte = -1 }, "%s %s", def->name, complaint);
        return NULL;
    }
    Node *n = place_node(b, op, full, n_in, ins, type);
    node_set_regions(n, n_regions, regions);
    return n;
}

Node *build_node_n(Build *b, Op op, const void *attr, int n_in, Node *const *ins, int n_out)
{
    return build_with_regions(b, op, attr, n_in, ins, n_out, 0, NULL);
}

Node *build_node(Build *b, Op op, const void *attr, int n_in, Node *const *ins)
{
    return build_node_n(b, op, attr, n_in, ins, 1);
}

Node *build_part(Build *b, Node *tuple, int i)
{
    if (!tuple || b->status != OK || tuple->type->kind != TYPE_TUPLE)
        return tuple;
    const PartAttr attr = { i };
    return build_typed(b, OP_part, &attr, 1, (Node *[]){ tuple }, tuple->type->parts[i]);
}

Node *build_tuple(Build *b, int n, Node *const *parts)
{
    if (b->status != OK)
        return NULL;
    const Type **types = NEWS(b->graph->arena, const Type *, n ? n : 1);
    for (int i = 0; i < n; i++)
        types[i] = parts[i]->type;
    return build_typed(b, OP_tuple, NULL, n, parts, type_tuple(&b->graph->ir->types, n, types));
}

Node *build_const(Build *b, const Tensor *t)
{
    const ValueAttr attr = { payload_of(b->graph->arena, t) };
    return build_typed(b, OP_const, &attr, 0, NULL, t->type);
}

Node *build_scalar(Build *b, DType dtype, double value)
{
    return build_const(b, tensor_scalar(b->graph->arena, &b->graph->ir->types, dtype, value));
}

Node *build_i64s(Build *b, int n, const int64_t *v)
{
    return build_const(b, tensor_i64s(b->graph->arena, &b->graph->ir->types, n, v));
}

Node *build_cast(Build *b, Node *x, DType to)
{
    if (!x || b->status != OK || x->type->dtype == to)
        return x;
    const CastAttr attr = { .to = (int)to + 1, .saturate = true };
    return build_node(b, OP_cast, &attr, 1, &x);
}

Node *build_amp_cast(Build *b, Node *x, DType to)
{
    if (!x || b->status != OK || x->type->dtype == to)
        return x;
    const CastAttr attr = { .to = (int)to + 1, .saturate = true };
    Node *y = build_node(b, OP_amp_cast, &attr, 1, &x);
    if (y)
        y->flags |= NODE_OURS;
    return y;
}

const Type *node_infer(const Node *n, const char **complaint)
{
    Ir *ir = n->graph->ir;
    enum { FEW = 16 };
    Node *few[FEW], **ins = n->n_in <= FEW ? few : NEWS(ir->diag->arena, Node *, n->n_in);
    for (int i = 0; i < n->n_in; i++)
        ins[i] = in(n, i);
    return ask(ir, n->op, n->attr, n->n_in, ins, type_results(n->type), n->type, n->n_regions, n->regions, complaint);
}

Status node_retype(Node *n)
{
    const char *complaint;
    const Type *type = node_infer(n, &complaint);
    if (!type)
        return fail(n->graph->ir->diag, node_place(n), "%s %s", op_of(n)->name, complaint);
    n->type = type;
    return OK;
}
