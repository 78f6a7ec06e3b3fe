/* sequence_map: a body run over the items of sequences. */
#include "ops/control/control.h"
#include "ops/control/sequence.h"

typedef struct MapAttr {
    int64_t operands;
} MapAttr;

static const AttrSpec sequence_map_attrs[] = { ATTR_OURS(MapAttr, operands, INT, 0), ATTR_LAST };

static const Type *infer_sequence_map(Infer *q)
{
    const int own = infer_own(q, ((const MapAttr *)q->attr)->operands, 1);
    const Graph *body = own < 0 ? NULL : infer_region(q, 0, q->n_in, q->n_out);
    const Tensor *first = infer_sequence_value(q, 0);
    if (!body || !infer_sequence(q, 0) || !infer_captures(q, body, own, own))
        return NULL;
    for (int i = 0; i < own; i++) {
        if (!infer_has(q, i))
            return infer_fail(q, "operand %d is missing", i);
        const Type *t = q->in[i];
        const Tensor *s = infer_sequence_value(q, i);
        if (!infer_parameter(q, body, i, t->kind == TYPE_SEQ ? t->parts[0] : t))
            return NULL;
        if (s && first && s->n_items != first->n_items)
            return infer_fail(q, "operand %d has %zu items, operand 0 %zu", i, s->n_items, first->n_items);
    }
    const Type **types = NEWS(q->scratch, const Type *, q->n_out);
    for (int i = 0; i < q->n_out; i++) {
        const Type *t = graph_result(body, i)->type;
        if (t->kind != TYPE_TENSOR)
            return infer_fail(q, "its body gives %s as result %d", type_text(q->scratch, t), i);
        types[i] = type_seq(q->types, t);
    }
    return infer_results(q, q->n_out, types);
}

static Status eval_sequence_map(Eval *e)
{
    const int64_t operands = ((const MapAttr *)e->attr)->operands;
    Graph *body = e->node->regions[0];
    const int own = (int)(operands ? operands : e->n_in), n_results = graph_n_results(body);
    const size_t n = e->in[0]->n_items;
    const Tensor **values = NEWS(e->scratch, const Tensor *, e->n_in);
    Tensor **results = NEWS(e->scratch, Tensor *, n_results), ***items = NEWS(e->scratch, Tensor **, e->n_out);
    for (int i = 0; i < e->n_out; i++)
        items[i] = NEWS(e->scratch, Tensor *, n + 1);
    for (size_t k = 0; k < n; k++) {
        for (int i = 0; i < e->n_in; i++)
            values[i] = i < own && e->in[i]->type->kind == TYPE_SEQ ? e->in[i]->items[k] : e->in[i];
        TRY(eval_body(e, body, (int64_t)k, e->n_in, values, results));
        for (int i = 0; i < n_results; i++) {
            if (i < e->n_out)
                items[i][k] = results[i];
            else
                tensor_drop(eval_heap(e), results[i]);
        }
    }
    for (int i = 0; i < e->n_out; i++) {
        const Type *element = items_type(&e->ir->types, n, items[i], eval_type(e, i)->parts[0]);
        if (!element)
            return eval_fail(e, "its body gives items of different types as result %d", i);
        eval_give_group(e, i, type_seq(&e->ir->types, element), n, items[i]);
        for (size_t k = 0; k < n; k++)
            tensor_drop(eval_heap(e), items[i][k]);
    }
    return OK;
}

static Node *sample_sequence_map(Build *b, Rng *rng, int variant)
{
    Types *types = &b->graph->ir->types;
    const DType dtype = variant % 2 ? F32 : I64;
    Node *items[2][3], *both[2];
    const int n = 1 + (int)rng_below(rng, 3);
    int64_t dims[MAX_RANK];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++) {
            sample_dims(rng, 2, 3, dims);
            items[k][i] = sample_tensor(b, rng, dtype, 2, dims, -3, 3);
        }
        both[k] = build_node(b, OP_sequence_construct, NULL, n, items[k]);
    }
    Node *one = sample_tensor(b, rng, dtype, 0, NULL, 1, 1);
    Graph *g = region_new(b->graph);
    Build in = build_at_end(g);
    const Type *item = type_tensor(types, dtype, 2, (int64_t[]){ DIM_UNKNOWN, DIM_UNKNOWN });
    Node *x = graph_input(g, "x", item), *y = graph_input(g, "y", variant % 3 ? item : one->type);
    Node *kept = graph_input(g, "kept", one->type);
    Node *results[] = { CALL(&in, add, x, kept), CALL(&in, shape, y) };
    if (in.status != OK)
        b->status = in.status;
    graph_return(g, 2, results, NULL);
    const MapAttr at = { 2 };
    Node *ins[] = { both[0], variant % 3 ? both[1] : one, one };
    return build_with_regions(b, OP_sequence_map, &at, 3, ins, 1 + variant % 2, 1, &g);
}

const OpDef op_sequence_map = {
    .name = "sequence_map",
    .min_in = 1,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .n_regions = 1,
    .attrs = sequence_map_attrs,
    .infer = infer_sequence_map,
    .eval = eval_sequence_map,
    .sample = sample_sequence_map,
    .n_variants = 12,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "it runs a body",
    .body = { .keeps_types = true },
    .amp = { AMP_P, AMP_P, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "SequenceMap", 17, NULL },
};
