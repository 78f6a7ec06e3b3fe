/* gradient: the derivatives of a body's result by some of its operands.
 *
 *     gradient(xs.., zs.., captures..)    region: (xs.., zs.., captures..) -> y
 *
 * Results are what reaches each of the xs when 1 reaches every element of y; the names of xs, zs and y are those the
 * model gave them. */
#include "ir/copy.h"
#include "ops/card/make.h"
#include "ops/control/unwind.h"

static const AttrSpec gradient_attrs[] = {
    ATTR_REQUIRED(GradientAttr, xs, STRS),
    ATTR_REQUIRED(GradientAttr, y, STR),
    ATTR_OPTIONAL(GradientAttr, zs, STRS),
    ATTR_OURS(GradientAttr, operands, INT, 0),
    ATTR_LAST,
};

static bool is_float(const Type *t)
{
    return t && t->kind == TYPE_TENSOR && dtype_is_float(t->dtype);
}

static const Type *infer_gradient(Infer *q)
{
    const GradientAttr *at = q->attr;
    const int own = infer_own(q, at->operands, at->xs.n + at->zs.n);
    const Graph *body = own < 0 ? NULL : infer_region(q, 0, q->n_in, 1);
    if (!body || !infer_captures(q, body, 0, 0))
        return NULL;
    if (at->xs.n < 1 || own != at->xs.n + at->zs.n)
        return infer_fail(q, "names %d values and is given %d", at->xs.n + at->zs.n, own);
    for (int i = 0; i < at->xs.n; i++)
        if (!is_float(q->in[i]))
            return infer_fail(q, "%s is %s: it has no derivative", at->xs.v[i], type_text(q->scratch, q->in[i]));
    if (!is_float(graph_result(body, 0)->type))
        return infer_fail(q, "%s is %s: it has no derivative", at->y,
                          type_text(q->scratch, graph_result(body, 0)->type));
    return infer_results(q, at->xs.n, q->in);
}

/* The body, in place, with the types that follow from the actual operands. */
static Node *inlined(Build *b, const Site *s, Node *const *values)
{
    const Graph *body = s->regions[0];
    Node *last = b->before ? b->before->prev : b->graph->last;
    Node **results = NEWS(b->graph->arena, Node *, graph_n_results(body));
    copy_body(b, body, values, results);
    for (Node *n = last ? last->next : b->graph->first; n != b->before && b->status == OK; n = n->next)
        if (!type_known(n->type))
            b->status = node_retype(n);
    return results[0];
}

static Status refuse(const ReverseResult *r)
{
    for (size_t i = 0; i < r->n_stops; i++) {
        const Node *n = r->stops[i].node;
        if (r->stops[i].missing)
            return fail_as(n->graph->ir->diag, UNSUPPORTED, node_place(n), "%s has no gradient", op_of(n)->name);
    }
    return OK;
}

static Node *expand_gradient(Build *b, const Site *s)
{
    const GradientAttr *at = s->attr;
    const int n = at->xs.n;
    Arena *arena = b->graph->arena;
    Node **values = NEWS(arena, Node *, s->n_in + 1), **dx = NEWS(arena, Node *, n + 1);
    if (!make_ready(b, s))
        return NULL;
    /* leaves of its own: one x may depend on another, which is not the question */
    for (int i = 0; i < s->n_in; i++)
        values[i] = i < n ? CALL(b, identity, s->in[i]) : s->in[i];
    Node *y = b->status == OK ? inlined(b, s, values) : NULL;
    if (b->status != OK)
        return NULL;
    Arena scratch;
    ReverseResult r;
    arena_open(&scratch, b->graph->ir->memory);
    Node *dy = make_filled(b, make_width(y->type->dtype), 1, y->type);
    const ReverseQuery q = { .n_y = 1, .y = &y, .dy = &dy, .n_x = n, .x = values, .narrow = true };
    if (b->status == OK)
        b->status = reverse(b, &q, &scratch, &r);
    if (b->status == OK)
        b->status = refuse(&r);
    for (int i = 0; i < n && b->status == OK; i++)
        dx[i] = r.dx[i] ? r.dx[i] : make_filled(b, s->in[i]->type->dtype, 0, s->in[i]->type);
    arena_close(&scratch);
    return b->status != OK ? NULL : n > 1 ? build_tuple(b, n, dx) : dx[0];
}

/* d(sum of x z + tanh(x) w) by x, or by x and w; w is captured or an x. */
static Node *sample_gradient(Build *b, Rng *rng, int variant)
{
    static const DType types[] = { F32, F64, F16, BF16 };
    static const char *const names[] = { "x", "w", "z" };
    const DType dtype = types[variant % 4];
    const int rank = variant % 3, n = 1 + variant / 4 % 2;
    int64_t dims[MAX_RANK];
    sample_dims(rng, rank, 3, dims);
    Graph *body = region_new(b->graph);
    Node *ins[3], *p[3];
    for (int i = 0; i < 3; i++) {
        ins[i] = sample_tensor(b, rng, dtype, rank, dims, -1, 1);
        p[i] = graph_input(body, names[i], ins[i]->type);
    }
    Build in = build_at_end(body);
    Node *y = CALL(&in, add, CALL(&in, mul, p[0], p[2]), CALL(&in, mul, CALL(&in, tanh, p[0]), p[1]));
    y = variant % 2 ? make_reduce_all(&in, OP_reduce_sum, y) : y;
    if (in.status != OK)
        b->status = in.status;
    graph_return(body, 1, &y, NULL);
    const GradientAttr at = { .xs = { n, names }, .y = "y", .operands = n };
    return build_with_regions(b, OP_gradient, &at, 3, ins, n, 1, &body);
}

const OpDef op_gradient = {
    .name = "gradient",
    .min_in = 1,
    .max_in = -1,
    .min_out = 1,
    .max_out = -1,
    .n_regions = 1,
    .attrs = gradient_attrs,
    .infer = infer_gradient,
    .expand = expand_gradient,
    .sample = sample_gradient,
    .n_variants = 16,
    .differentiable = ~0u,
    .weight = 100,
    .access.kind = ACCESS_COMPOSITE,
    .amp = { AMP_F, AMP_F, 0, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "Gradient", 1, "ai.onnx.preview.training" },
};
