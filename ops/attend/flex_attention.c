/* flex_attention: attention whose scores and probabilities pass through bodies on their way.
 *
 *     flex_attention(Q, K, V, captures..)    regions score, prob: (matrix, captures..) -> matrix
 *
 * A body that the model does not have gives back what it takes.
 *
 * Of f16 and bf16 both products are of operands of that type, as in attention: narrow queries meet the keys as they are,
 * and the products are scaled; probabilities are rounded. */
#include <math.h>
#include <string.h>

#include "ir/copy.h"
#include "ops/attend/attention.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/control/unwind.h"
#include "ops/norm/norm.h"
#include "ops/reduce.h"

typedef struct FlexAttr {
    float scale;           /* 0: one over the root of the head size */
    int softmax_precision; /* DType + 1; 0: f64 for f64, f32 for all others */
    int64_t operands;
} FlexAttr;

static const AttrSpec flex_attrs[] = {
    ATTR(FlexAttr, scale, FLOAT, 0),
    ATTR(FlexAttr, softmax_precision, DTYPE, 0),
    ATTR_OURS(FlexAttr, operands, INT, 0),
    ATTR_LAST,
};

enum { OWN = 3, SCORE = 0, PROB = 1 };

static DType precision_of(const FlexAttr *at, DType q)
{
    DType said;
    return attr_dtype(at->softmax_precision, &said) ? said : q == F64 ? F64 : F32;
}

/* Q, K and V have four dimensions that fit; their extents, unknown ones -1, go to `y` and `scores`. */
static bool infer_flex_extents(Infer *q, int64_t *y, int64_t *scores)
{
    int64_t d[3][4];
    for (int i = 0; i < OWN; i++) {
        const Type *t = infer_tensor(q, i);
        if (!t)
            return false;
        if (t->dtype != q->in[0]->dtype || (t->rank >= 0 && t->rank != 4)) {
            infer_fail(q, "operand %d is %s, wanted is %s of 4 dimensions", i, type_text(q->scratch, t),
                       dtype_name(q->in[0]->dtype));
            return false;
        }
        for (int k = 0; k < 4; k++)
            d[i][k] = t->rank < 0 ? DIM_UNKNOWN : t->dims[k];
    }
    const int64_t batch = dims_meet(d[0][0], dims_meet(d[1][0], d[2][0])), heads = dims_meet(d[1][1], d[2][1]);
    const int64_t keys = dims_meet(d[1][2], d[2][2]), readers = d[0][1];
    bool fits = dims_fit(d[0][3], d[1][3]) && (readers < 0 || heads < 0 || (heads ? readers % heads == 0 : !readers));
    for (int i = 0; i < OWN; i++)
        fits = fits && dims_fit(d[i][0], batch) && (i == 0 || (dims_fit(d[i][1], heads) && dims_fit(d[i][2], keys)));
    if (!fits) {
        infer_fail(q, "queries %s, keys %s and values %s do not fit", type_text(q->scratch, q->in[0]),
                   type_text(q->scratch, q->in[1]), type_text(q->scratch, q->in[2]));
        return false;
    }
    memcpy(y, (const int64_t[]){ batch, readers, d[0][2], d[2][3] }, 4 * sizeof *y);
    memcpy(scores, (const int64_t[]){ batch, readers, d[0][2], keys }, 4 * sizeof *scores);
    return true;
}

static const Type *infer_flex_attention(Infer *q)
{
    const FlexAttr *at = q->attr;
    int64_t y[4], dims[4];
    const Type *x = infer_floats(q, 0);
    if (!x || !infer_flex_extents(q, y, dims))
        return NULL;
    const DType precision = precision_of(at, x->dtype);
    const int own = infer_own(q, at->operands, OWN);
    if (own < 0)
        return NULL;
    if (own != OWN || !dtype_is_float(precision))
        return infer_fail(q, "has %d operands of its own and computes in %s", own, dtype_name(precision));
    const Type *matrix = type_tensor(q->types, precision, 4, dims);
    for (int r = SCORE; r <= PROB; r++) {
        const Graph *body = infer_region(q, r, 1 + q->n_in - OWN, 1);
        if (!body || !infer_parameter(q, body, 0, matrix) || !infer_captures(q, body, OWN, 1))
            return NULL;
        const Type *result = graph_result(body, 0)->type;
        if (!type_agrees(result, matrix))
            return infer_fail(q, "its body makes %s of %s", type_text(q->scratch, result),
                              type_text(q->scratch, matrix));
    }
    return infer_dims(q, x->dtype, 4, y);
}

/* Sends a matrix through a body: from and to the element type that the body sees. */
#define THROUGH(T)                                                                                                     \
    static Status through_##T(Eval *e, int r, const Type *type, T *matrix)                                             \
    {                                                                                                                  \
        const int n = 1 + e->n_in - OWN;                                                                               \
        Tensor *in_ = tensor_alloc(eval_heap(e), type), *out = NULL;                                                   \
        const Tensor **values = NEWS(e->scratch, const Tensor *, n);                                                   \
        store_##T(in_, 0, matrix, type_elements(type));                                                                \
        values[0] = in_;                                                                                               \
        for (int i = 1; i < n; i++)                                                                                    \
            values[i] = e->in[OWN + i - 1];                                                                            \
        Status status = eval_body(e, e->node->regions[r], TURN_NONE, n, values, &out);                                 \
        if (status == OK && out->type != type)                                                                         \
            status = eval_fail(e, "its body makes %s of %s", type_text(e->scratch, out->type),                         \
                               type_text(e->scratch, type));                                                           \
        if (status == OK)                                                                                              \
            load_##T(matrix, out, 0, type_elements(type));                                                             \
        if (out)                                                                                                       \
            tensor_drop(eval_heap(e), out);                                                                            \
        tensor_drop(eval_heap(e), in_);                                                                                \
        return status;                                                                                                 \
    }

/* Rows of scores become probabilities: the sum in the one order, the largest taken off first. */
#define FLEX(T)                                                                                                        \
    THROUGH(T)                                                                                                         \
    static void soften_##T(T *row, int64_t n)                                                                          \
    {                                                                                                                  \
        T most = -Q_INF;                                                                                               \
        for (int64_t j = 0; j < n; j++)                                                                                \
            most = q_max(most, row[j]);                                                                                \
        for (int64_t j = 0; j < n; j++)                                                                                \
            row[j] = q_exp(row[j] - most);                                                                             \
        const T sum = sum_row_##T(row, (size_t)n);                                                                     \
        for (int64_t j = 0; j < n; j++)                                                                                \
            row[j] = row[j] / sum;                                                                                     \
    }                                                                                                                  \
    static Status flex_##T(Eval *e, const Type *type)                                                                  \
    {                                                                                                                  \
        const FlexAttr *at = e->attr;                                                                                  \
        const int64_t *q = e->in[0]->type->dims, *k = e->in[1]->type->dims, *v = e->in[2]->type->dims;                 \
        const int64_t group = k[1] ? q[1] / k[1] : 1, heads = q[0] * q[1], size = q[3];                                \
        const DType own = e->in[0]->type->dtype;                                                                       \
        const bool narrow = sizeof(T) == sizeof(f32) && dtype_is_narrow(own);                                          \
        const T scale = at->scale == 0 ? 1 / q_sqrt((T)size) : (T)at->scale;                                           \
        const T *queries = eval_##T(e, 0), *keys = eval_##T(e, 1), *values = eval_##T(e, 2);                           \
        T *y = eval_out_##T(e, 0), *p = eval_scratch(e, (size_t)type_elements(type), sizeof(T));                       \
        T *scaled = eval_scratch(e, (size_t)(q[2] * size), sizeof(T));                                                 \
        T *turned = eval_scratch(e, (size_t)(k[2] * size), sizeof(T));                                                 \
        const size_t n_q = (size_t)q[2], n_k = (size_t)k[2], wide = (size_t)v[3];                                      \
        const Panel score = { n_q, n_k, (size_t)size, (size_t)size, n_k, n_k },                                        \
                    read = { n_q, wide, n_k, n_k, wide, wide };                                                        \
        T *room = eval_room(e, panel_room(&score) + panel_room(&read), sizeof(T));                                     \
        for (int64_t h = 0; h < heads; h++) {                                                                          \
            const T *from = keys + h / group * k[2] * size;                                                            \
            for (int64_t i = 0; i < q[2] * size; i++)                                                                  \
                scaled[i] = queries[h * q[2] * size + i] * (narrow ? 1 : scale);                                       \
            for (int64_t i = 0; i < k[2] * size; i++)                                                                  \
                turned[i % size * k[2] + i / size] = from[i];                                                          \
            panel_##T(e->kernels, &score, scaled, turned, p + h * q[2] * k[2], room);                                  \
            for (int64_t i = 0; narrow && i < q[2] * k[2]; i++)                                                        \
                p[h * q[2] * k[2] + i] *= scale;                                                                       \
        }                                                                                                              \
        TRY(through_##T(e, SCORE, type, p));                                                                           \
        for (int64_t i = 0; i < heads * q[2]; i++)                                                                     \
            soften_##T(p + i * k[2], k[2]);                                                                            \
        TRY(through_##T(e, PROB, type, p));                                                                            \
        for (int64_t i = 0; narrow && i < heads * q[2] * k[2]; i++)                                                    \
            p[i] = narrowed_##T(own, p[i]);                                                                            \
        for (int64_t h = 0; h < heads; h++)                                                                            \
            panel_##T(e->kernels, &read, p + h * q[2] * k[2], values + h / group * k[2] * v[3], y + h * q[2] * v[3],   \
                      room);                                                                                           \
        return OK;                                                                                                     \
    }
FLEX(f32)
FLEX(f64)
#undef FLEX
#undef THROUGH

static Status eval_flex_attention(Eval *e)
{
    const int64_t *q = e->in[0]->type->dims, *k = e->in[1]->type->dims, dims[] = { q[0], q[1], q[2], k[2] };
    const DType own = e->in[0]->type->dtype, precision = precision_of(e->attr, own);
    const Type *type = type_tensor(&e->ir->types, precision, 4, dims);
    return (own == F64 || precision == F64 ? flex_f64 : flex_f32)(e, type);
}

/* ---- the same in calls that have adjoints, for its gradient ---- */

/* A matrix through a body; what the body captures it takes in the model's own types. */
static Node *model_through(Build *b, const Site *s, int r, Node *matrix)
{
    const Graph *body = s->regions[r];
    Node **values = NEWS(b->graph->arena, Node *, s->n_in),
         **results = NEWS(b->graph->arena, Node *, graph_n_results(body));
    values[0] = matrix;
    for (int i = OWN; i < s->n_in; i++) {
        const Type *takes = body->inputs[1 + i - OWN]->type;
        values[1 + i - OWN] = takes->kind == TYPE_TENSOR ? make_cast(b, s->in[i], takes->dtype) : s->in[i];
    }
    if (b->status == OK)
        copy_body(b, body, values, results);
    return results[0];
}

static void model_flex(Build *b, const Site *s, Node **y)
{
    const FlexAttr *at = s->attr;
    const MatmulAttr transposed = { .tb = true };
    const int64_t *q = s->in[0]->type->dims, *k = s->in[1]->type->dims, *v = s->in[2]->type->dims;
    const int64_t group = k[1] ? q[1] / k[1] * q[2] : 0;
    const int64_t shared[] = { q[0], k[1], group, q[3] }, weights[] = { q[0], k[1], group, k[2] };
    const int64_t scores[] = { q[0], q[1], q[2], k[2] }, whole[] = { q[0], q[1], q[2], v[3] };
    const DType t = s->in[0]->type->dtype, precision = precision_of(at, s->type->dtype), wide = make_width(precision);
    const double scale = at->scale != 0 ? (double)at->scale : 1 / sqrt((double)q[3]);
    Node *queries = make_reshape(b, CALL(b, mul, s->in[0], build_scalar(b, t, scale)), 4, shared);
    Node *p = make_reshape(b, CALL_ATTR(b, matmul, transposed, queries, s->in[1]), 4, scores);
    p = model_through(b, s, SCORE, make_cast(b, p, precision));
    p = make_softmax(b, make_cast(b, p, wide), 3);
    p = model_through(b, s, PROB, make_cast(b, p, precision));
    p = make_reshape(b, make_cast(b, p, t), 4, weights);
    y[0] = make_reshape(b, CALL(b, matmul, p, s->in[2]), 4, whole);
}

static void adjoint_flex_attention(Build *b, const Site *s, Node **dx)
{
    adjoint_by_model(b, s, dx, model_flex);
}

/* Scores are capped by a captured number, probabilities pass. */
static Node *sample_flex_attention(Build *b, Rng *rng, int variant)
{
    const DType dtype = variant % 3 == 2 ? F64 : variant % 3 ? F16 : F32;
    const FlexAttr at = { .scale = variant % 2 ? 0.5f : 0, .operands = OWN };
    const DType inner = precision_of(&at, dtype);
    const int64_t batch = rng_range(rng, 1, 2), heads = rng_range(rng, 1, 2), size = rng_range(rng, 1, 4);
    const int64_t q[] = { batch, heads * rng_range(rng, 1, 2), rng_below(rng, 4), size };
    const int64_t k[] = { batch, heads, rng_range(rng, 1, 4), size },
                  v[] = { batch, heads, k[2], rng_range(rng, 1, 3) };
    Node *ins[] = { sample_tensor(b, rng, dtype, 4, q, -2, 2), sample_tensor(b, rng, dtype, 4, k, -2, 2),
                    sample_tensor(b, rng, dtype, 4, v, -2, 2), build_scalar(b, inner, 0.5) };
    Graph *bodies[2];
    for (int r = SCORE; r <= PROB; r++) {
        bodies[r] = region_new(b->graph);
        Build in_ = build_at_end(bodies[r]);
        Node *x = graph_input(bodies[r], "x",
                              type_tensor(&b->graph->ir->types, inner, 4, (const int64_t[]){ -1, -1, -1, -1 }));
        Node *cap = graph_input(bodies[r], "cap", ins[3]->type);
        Node *y = r == SCORE ? CALL(&in_, min, x, cap) : x;
        if (in_.status != OK)
            b->status = in_.status;
        graph_return(bodies[r], 1, &y, NULL);
    }
    return build_with_regions(b, OP_flex_attention, &at, 4, ins, 1, 2, bodies);
}

const OpDef op_flex_attention = {
    .name = "flex_attention",
    .min_in = OWN,
    .max_in = -1,
    .n_regions = 2,
    .attrs = flex_attrs,
    .infer = infer_flex_attention,
    .eval = eval_flex_attention,
    .adjoint = adjoint_flex_attention,
    .sample = sample_flex_attention,
    .n_variants = 12,
    .body = { .keeps_types = true },
    .differentiable = ~0u,
    .trainable = 7,
    .weight = 80,
    .access.kind = ACCESS_OPAQUE,
    .access.opaque = "its bodies are graphs that run for each score",
    .amp = { AMP_T, AMP_T, 0, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "FlexAttention", 1, "ai.onnx.preview" },
};
