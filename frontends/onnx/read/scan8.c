/* Scan of opset 8 had a batch axis before everything: it is a scan over the batch of scans of today. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/read/attributes.h"

/* One sample of an operand: without its first dimension. */
static const Type *sample_type(const Call *c, const Node *operand)
{
    const Type *t = operand->type;
    if (t->kind != TYPE_TENSOR || t->rank == 0)
        return NULL;
    return t->rank < 0 ? t : type_tensor(&call_ir(c)->types, t->dtype, t->rank - 1, t->dims + 1);
}

static Status add_samples(Call *c, Scope *inner)
{
    for (int i = 0; i < c->n_in; i++) {
        const Type *type = c->in[i] ? sample_type(c, c->in[i]) : NULL;
        if (!type)
            return call_fail(c, "operand %d has no batch axis", i + 1);
        graph_input(inner->graph, NULL, type);
    }
    return OK;
}

/* The scan of one sample, as the body of the scan over samples. */
static Status build_sample(Importer *im, Scope *inner, const Call *c, Op op)
{
    Build b = build_at_end(inner->graph);
    Graph **regions = NULL;
    int n_regions = 0;
    void *attr;
    b.src = c->build->src;
    b.label = c->build->label;
    Call one = *c;
    one.build = &b;
    one.in = NEWS(im->arena, Node *, c->n_in + 1);
    memcpy(one.in, inner->graph->inputs, (size_t)c->n_in * sizeof(Node *));
    one.attrs = NEWS(im->arena, CallAttr, c->n_attrs + 2);
    memcpy(one.attrs, c->attrs, c->n_attrs * sizeof(CallAttr));
    one.cap_attrs = c->n_attrs + 2;
    TRY(import_regions(im, inner, &one, one.op, &regions, &n_regions));
    TRY(fill_attrs(&one, im->ir->ops->defs[op], &attr));
    Node *y = build_with_regions(&b, op, attr, one.n_in, one.in, one.n_out, n_regions, regions);
    if (!y)
        return b.status;
    Node **results = NEWS(im->arena, Node *, c->n_out + 1);
    for (int i = 0; i < c->n_out; i++)
        results[i] = build_part(&b, y, i);
    graph_return(inner->graph, c->n_out, results, NULL);
    return b.status;
}

Status import_batched_scan(Importer *im, Scope *s, Call *c, Node **y)
{
    Op op;
    void *attr;
    if (call_in(c, 0))
        return fail_as(im->ir->diag, UNSUPPORTED, importer_place(im), "Scan of opset 8 with sequence_lens");
    if (!op_find_onnx(im->ir->ops, "", "Scan", &op) || c->n_in < 2)
        return call_fail(c, "scans nothing");
    c->in++;
    c->n_in--;
    const Ints directions = call_ints(c, "directions");
    if (directions.v)
        call_set_ints(c, "scan_input_directions", directions.n, directions.v);
    call_drop(c, "directions");

    Graph *region = region_new(s->graph);
    Scope inner = { .outer = s, .graph = region };
    map_open(&inner.values, im->arena);
    TRY(add_samples(c, &inner));
    TRY(build_sample(im, &inner, c, op));

    const int own = c->n_in;
    for (size_t i = 0; i < inner.n_captured; i++)
        call_set_in(c, own + (int)i, inner.captured[i]);
    c->n_attrs = 0;
    call_set_int(c, "num_scan_inputs", own);
    call_set_int(c, "operands", own);
    TRY(fill_attrs(c, im->ir->ops->defs[op], &attr));
    *y = build_with_regions(c->build, op, attr, c->n_in, c->in, c->n_out, 1, &region);
    return c->build->status;
}
