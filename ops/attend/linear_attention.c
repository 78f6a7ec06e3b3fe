/* linear_attention: a matrix of state for each head, written by keys and values and read by queries, step after step.
 *
 * The state is f32 all the way, also where queries, keys and values are f16 or bf16: it is summed up over all steps, and
 * its products are of f32. */
#include <math.h>
#include <string.h>

#include "ops/attend/attention.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/control/unwind.h"

static const char *const update_rules[] = { "linear", "gated", "delta", "gated_delta", NULL };

static const AttrSpec linear_attention_attrs[] = {
    ATTR(LinearAttentionAttr, chunk_size, INT, 64),
    ATTR_REQUIRED(LinearAttentionAttr, kv_num_heads, INT),
    ATTR_REQUIRED(LinearAttentionAttr, q_num_heads, INT),
    ATTR(LinearAttentionAttr, scale, FLOAT, 0),
    ATTR_CHOICE(LinearAttentionAttr, update_rule, update_rules, UPDATE_GATED_DELTA),
    ATTR_OURS(LinearAttentionAttr, state_type, DTYPE, 0),
    ATTR_LAST,
};

static bool is_gated(const LinearAttentionAttr *at)
{
    return at->update_rule == UPDATE_GATED || at->update_rule == UPDATE_GATED_DELTA;
}

static bool is_delta(const LinearAttentionAttr *at)
{
    return at->update_rule == UPDATE_DELTA || at->update_rule == UPDATE_GATED_DELTA;
}

/* The last dimension of operand i, [batch, steps, heads * size], split by heads: -1 unknown, -2 after a complaint. */
static int64_t infer_packed(Infer *q, int i, int64_t heads, int64_t *batch, int64_t *steps)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return -2;
    if (!dtype_is_float(t->dtype) || (t->rank >= 0 && t->rank != 3) ||
        (t->rank == 3 && (!dims_fit(t->dims[0], *batch) || !dims_fit(t->dims[1], *steps)))) {
        infer_fail(q, "operand %d is %s, wanted are floats [batch, steps, width]", i, type_text(q->scratch, t));
        return -2;
    }
    if (t->rank < 0)
        return DIM_UNKNOWN;
    *batch = dims_meet(*batch, t->dims[0]);
    *steps = dims_meet(*steps, t->dims[1]);
    if (t->dims[2] >= 0 && t->dims[2] % heads) {
        infer_fail(q, "operand %d has a width of %" PRId64 " for %" PRId64 " heads", i, t->dims[2], heads);
        return -2;
    }
    return t->dims[2] < 0 ? DIM_UNKNOWN : t->dims[2] / heads;
}

/* decay has one number a head or one a key element; beta one a head or one for all. */
static bool infer_gates(Infer *q, int64_t dk, int64_t *batch, int64_t *steps)
{
    const LinearAttentionAttr *at = q->attr;
    if (is_gated(at) != infer_has(q, 4) || is_delta(at) != infer_has(q, 5)) {
        infer_fail(q, "decay and beta do not go with the rule %s", update_rules[at->update_rule]);
        return false;
    }
    for (int i = 4; i < 6; i++) {
        if (!infer_has(q, i))
            continue;
        if (infer_packed(q, i, 1, batch, steps) == -2)
            return false;
        const int64_t width = q->in[i]->rank < 0 ? DIM_UNKNOWN : q->in[i]->dims[2];
        const int64_t other = i == 5 ? 1 : dk < 0 ? DIM_UNKNOWN : dk * at->kv_num_heads;
        if (!dims_fit(width, at->kv_num_heads) && !dims_fit(width, other)) {
            infer_fail(q, "operand %d has a width of %" PRId64 " for %" PRId64 " heads", i, width, at->kv_num_heads);
            return false;
        }
    }
    return true;
}

static const Type *infer_linear_attention(Infer *q)
{
    const LinearAttentionAttr *at = q->attr;
    int64_t batch = DIM_UNKNOWN, steps = DIM_UNKNOWN, dk, dq, dv;
    const int64_t most = q->ir->limits.dim;
    if (at->kv_num_heads < 1 || at->q_num_heads < 1 || at->q_num_heads % at->kv_num_heads || at->q_num_heads > most)
        return infer_fail(q, "%" PRId64 " query heads do not share %" PRId64 " key heads", at->q_num_heads,
                          at->kv_num_heads);
    if ((dq = infer_packed(q, 0, at->q_num_heads, &batch, &steps)) == -2 ||
        (dk = infer_packed(q, 1, at->kv_num_heads, &batch, &steps)) == -2 ||
        (dv = infer_packed(q, 2, at->kv_num_heads, &batch, &steps)) == -2)
        return NULL;
    if (!dims_fit(dq, dk))
        return infer_fail(q, "queries have %" PRId64 " elements, keys have %" PRId64, dq, dk);
    dk = dims_meet(dk, dq);
    if (!infer_gates(q, dk, &batch, &steps))
        return NULL;
    const Type *past = infer_has(q, 3) ? infer_tensor(q, 3) : NULL;
    const int64_t state[] = { batch, at->kv_num_heads, dk, dv };
    DType held = past ? past->dtype : q->in[0]->dtype;
    const Type *kept = type_tensor(q->types, held, 4, state);
    if (attr_dtype(at->state_type, &held) && !(dtype_is_amp(held) && dtype_is_amp(kept->dtype)))
        return infer_fail(q, "cannot give a state of %s from %s", dtype_name(held), dtype_name(kept->dtype));
    if (past && (!dtype_is_float(past->dtype) || !type_agrees(past, kept)))
        return infer_fail(q, "past_state is %s, wanted is %s", type_text(q->scratch, past),
                          type_text(q->scratch, kept));
    int64_t y[] = { batch, steps, DIM_UNKNOWN };
    if (dv >= 0 && (__builtin_mul_overflow(at->q_num_heads, dv, &y[2]) || y[2] > most))
        return infer_fail(q, "%" PRId64 " heads of %" PRId64 " are beyond the limit dim", at->q_num_heads, dv);
    return infer_results(q, 2,
                         (const Type *const[]){ infer_shaped(q, 0, 3, y), type_with_dtype(q->types, kept, held) });
}

typedef struct LinearRun {
    const LinearAttentionAttr *at;
    int64_t batch, steps, heads, readers, dk, dv; /* readers: query heads of a key head */
    int64_t decay_width, beta_width;              /* of a step */
    bool f64;
    const void *q, *k, *v, *decay, *beta;
    void *y, *state, *fresh; /* fresh: a row of dv for each worker */
} LinearRun;

/* One key head over all steps: S = exp(g) S; v' = beta (v - S' k); S += k v'; o = scale q' S. */
#define LINEAR(T)                                                                                                      \
    static void linear_step_##T(const LinearRun *r, int64_t head, int64_t row, T *s, T *fresh)                         \
    {                                                                                                                  \
        const int64_t dk = r->dk, dv = r->dv;                                                                          \
        const T *k = (const T *)r->k + (row * r->heads + head) * dk,                                                   \
                *v = (const T *)r->v + (row * r->heads + head) * dv;                                                   \
        const T *g = (const T *)r->decay + row * r->decay_width;                                                       \
        const bool each = r->decay_width != r->heads;                                                                  \
        for (int64_t i = 0; r->decay && i < dk; i++) {                                                                 \
            const T keep = q_exp(each ? g[head * dk + i] : g[head]);                                                   \
            for (int64_t j = 0; j < dv; j++)                                                                           \
                s[i * dv + j] *= keep;                                                                                 \
        }                                                                                                              \
        if (dv)                                                                                                        \
            memcpy(fresh, v, (size_t)dv * sizeof(T));                                                                  \
        if (r->beta) {                                                                                                 \
            const T rate = ((const T *)r->beta)[row * r->beta_width + (r->beta_width == 1 ? 0 : head)];                \
            for (int64_t j = 0; j < dv; j++) {                                                                         \
                T sum = 0;                                                                                             \
                for (int64_t i = 0; i < dk; i++)                                                                       \
                    sum = q_fma(s[i * dv + j], k[i], sum);                                                             \
                fresh[j] = rate * (v[j] - sum);                                                                        \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t i = 0; i < dk; i++)                                                                               \
            for (int64_t j = 0; j < dv; j++)                                                                           \
                s[i * dv + j] = q_fma(k[i], fresh[j], s[i * dv + j]);                                                  \
    }                                                                                                                  \
    static void linear_heads_##T(void *arg, int64_t begin, int64_t end, int worker)                                    \
    {                                                                                                                  \
        const LinearRun *r = arg;                                                                                      \
        const int64_t dk = r->dk, dv = r->dv;                                                                          \
        const T scale = r->at->scale == 0 ? 1 / q_sqrt((T)dk) : (T)r->at->scale;                                       \
        for (int64_t n = begin; n < end; n++) {                                                                        \
            T *s = (T *)r->state + n * dk * dv, *fresh = (T *)r->fresh + worker * dv;                                  \
            for (int64_t t = 0; t < r->steps; t++) {                                                                   \
                const int64_t head = n % r->heads, row = n / r->heads * r->steps + t;                                  \
                linear_step_##T(r, head, row, s, fresh);                                                               \
                for (int64_t a = head * r->readers; a < (head + 1) * r->readers; a++) {                                \
                    const T *q = (const T *)r->q + (row * r->heads * r->readers + a) * dk;                             \
                    T *y = (T *)r->y + (row * r->heads * r->readers + a) * dv;                                         \
                    for (int64_t j = 0; j < dv; j++) {                                                                 \
                        T sum = 0;                                                                                     \
                        for (int64_t i = 0; i < dk; i++)                                                               \
                            sum = q_fma(q[i], s[i * dv + j], sum);                                                     \
                        y[j] = scale * sum;                                                                            \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void linear_##T(Eval *e, LinearRun *r)                                                                      \
    {                                                                                                                  \
        const size_t size = (size_t)(r->batch * r->heads * r->dk * r->dv) * sizeof(T);                                 \
        r->q = eval_##T(e, 0), r->k = eval_##T(e, 1), r->v = eval_##T(e, 2);                                           \
        r->decay = eval_has(e, 4) ? eval_##T(e, 4) : NULL;                                                             \
        r->beta = eval_has(e, 5) ? eval_##T(e, 5) : NULL;                                                              \
        r->y = eval_out_##T(e, 0);                                                                                     \
        r->state = eval_out_##T(e, 1);                                                                                 \
        if (size && eval_has(e, 3))                                                                                    \
            memcpy(r->state, eval_##T(e, 3), size);                                                                    \
        else if (size)                                                                                                 \
            memset(r->state, 0, size);                                                                                 \
        r->fresh = eval_scratch(e, (size_t)parallel_threads(e->pool) * (size_t)r->dv, sizeof(T));                      \
        eval_parallel(e, r->batch * r->heads, linear_heads_##T, r);                                                    \
    }
LINEAR(f32)
LINEAR(f64)
#undef LINEAR

static Status eval_linear_attention(Eval *e)
{
    const LinearAttentionAttr *at = e->attr;
    const int64_t *q = e->in[0]->type->dims, *v = e->in[2]->type->dims;
    LinearRun r = { .at = at, .batch = q[0], .steps = q[1], .heads = at->kv_num_heads };
    r.readers = at->q_num_heads / at->kv_num_heads;
    r.dk = q[2] / at->q_num_heads;
    r.dv = v[2] / at->kv_num_heads;
    r.decay_width = eval_has(e, 4) ? e->in[4]->type->dims[2] : 0;
    r.beta_width = eval_has(e, 5) ? e->in[5]->type->dims[2] : 0;
    (eval_is_f64(e) ? linear_f64 : linear_f32)(e, &r);
    return OK;
}

/* ---- the same as a scan over the steps, for its gradient ---- */

typedef struct LinearModel {
    int64_t batch, heads, readers, dk, dv;
    double scale;
} LinearModel;

static Node *in_heads(Build *b, Node *x, const LinearModel *m, int64_t rows, int64_t columns)
{
    return make_reshape(b, x, 4, (const int64_t[]){ m->batch, m->heads, rows, columns });
}

/* One step: the state and the slices of q, k, v and, where there, decay and beta. */
static void model_step(Build *b, const LinearModel *m, Node *s, Node *const *at, Node **results)
{
    const MatmulAttr transposed = { .ta = true };
    Node *q = in_heads(b, at[0], m, m->readers, m->dk), *k = in_heads(b, at[1], m, 1, m->dk),
         *v = in_heads(b, at[2], m, 1, m->dv), *decay = at[4], *beta = at[5];
    if (decay) {
        const int64_t width = decay->type->dims[1];
        s = CALL(b, mul, s, in_heads(b, CALL(b, exp, decay), m, width / m->heads, 1));
    }
    if (beta) {
        const int64_t rate[] = { m->batch, beta->type->dims[1], 1, 1 };
        v = CALL(b, mul, make_reshape(b, beta, 4, rate), CALL(b, sub, v, CALL(b, matmul, k, s)));
    }
    s = CALL(b, add, s, CALL_ATTR(b, matmul, transposed, k, v));
    Node *read = CALL(b, mul, CALL(b, matmul, q, s), build_scalar(b, s ? s->type->dtype : F32, m->scale));
    results[0] = s;
    results[1] = make_reshape(b, read, 2, (const int64_t[]){ m->batch, m->heads * m->readers * m->dv });
}

static void model_linear(Build *b, const Site *s, Node **y)
{
    enum { SCANNED = 5 };
    static const int64_t ones[SCANNED] = { 1, 1, 1, 1, 1 };
    const LinearAttentionAttr *at = s->attr;
    const Type *q = s->in[0]->type;
    const LinearModel m = { .batch = q->dims[0],
                            .heads = at->kv_num_heads,
                            .readers = at->q_num_heads / at->kv_num_heads,
                            .dk = q->dims[2] / at->q_num_heads,
                            .dv = s->in[2]->type->dims[2] / at->kv_num_heads,
                            .scale =
                                at->scale != 0 ? (double)at->scale : 1 / sqrt((double)(q->dims[2] / at->q_num_heads)) };
    const int64_t state[] = { m.batch, m.heads, m.dk, m.dv };
    Types *types = &b->graph->ir->types;
    Graph *body = region_new(b->graph);
    Build inner = build_at_end(body);
    inner.flags = b->flags, inner.src = b->src, inner.label = b->label;
    const Type *kept = type_tensor(types, q->dtype, 4, state);
    Node *ins[1 + SCANNED] = { site_in(s, 3) ? s->in[3] : make_filled(b, q->dtype, 0, kept) }, *slices[6] = { NULL },
                  *results[2];
    Node *before = graph_input(body, NULL, kept);
    int n = 0;
    for (int i = 0; i < 6; i++)
        if (i != 3 && site_in(s, i)) {
            const int64_t slice[] = { m.batch, s->in[i]->type->dims[2] };
            slices[i] = graph_input(body, NULL, type_tensor(types, q->dtype, 2, slice));
            ins[++n] = s->in[i];
        }
    model_step(&inner, &m, before, slices, results);
    b->status = inner.status != OK ? inner.status : b->status;
    if (b->status != OK)
        return;
    graph_return(body, 2, results, NULL);
    const ScanAttr scan = { .num_scan_inputs = n, .scan_input_axes = { n, ones }, .scan_output_axes = { 1, ones } };
    Node *run = build_with_regions(b, OP_scan, &scan, n + 1, ins, 2, 1, &body);
    y[0] = build_part(b, run, 1);
    y[1] = build_part(b, run, 0);
}

static void adjoint_linear_attention(Build *b, const Site *s, Node **dx)
{
    adjoint_by_model(b, s, dx, model_linear);
}

static Node *sample_linear_attention(Build *b, Rng *rng, int variant)
{
    LinearAttentionAttr at = { .chunk_size = 64, .kv_num_heads = rng_range(rng, 1, 2), .update_rule = variant % 4 };
    at.q_num_heads = at.kv_num_heads * rng_range(rng, 1, 2);
    at.scale = rng_below(rng, 2) ? 0 : 0.5f;
    const DType dtype = sample_float(rng), rest = dtype_is_narrow(dtype) && variant % 2 ? F32 : dtype;
    at.state_type = dtype_is_narrow(dtype) && rng_below(rng, 2) ? F32 + 1 : 0;
    const int64_t batch = rng_below(rng, 3), steps = rng_below(rng, 4), dk = rng_range(rng, 1, 4),
                  dv = rng_range(rng, 1, 4);
    const int64_t h = at.kv_num_heads;
    Node *in[6] = { NULL };
    in[0] = sample_tensor(b, rng, dtype, 3, (const int64_t[]){ batch, steps, at.q_num_heads * dk }, -1, 1);
    in[1] = sample_tensor(b, rng, dtype, 3, (const int64_t[]){ batch, steps, h * dk }, -1, 1);
    in[2] = sample_tensor(b, rng, dtype, 3, (const int64_t[]){ batch, steps, h * dv }, -1, 1);
    if (rng_below(rng, 2))
        in[3] = sample_tensor(b, rng, dtype == F64 ? F64 : F32, 4, (const int64_t[]){ batch, h, dk, dv }, -1, 1);
    if (is_gated(&at))
        in[4] =
            sample_tensor(b, rng, rest, 3, (const int64_t[]){ batch, steps, rng_below(rng, 2) ? h : h * dk }, -1, 0);
    if (is_delta(&at))
        in[5] = sample_tensor(b, rng, rest, 3, (const int64_t[]){ batch, steps, rng_below(rng, 2) ? h : 1 }, 0, 1);
    return build_node_n(b, OP_linear_attention, &at, 6, in, 2);
}

const OpDef op_linear_attention = {
    .name = "linear_attention",
    .min_in = 3,
    .max_in = 6,
    .min_out = 2,
    .max_out = 2,
    .attrs = linear_attention_attrs,
    .infer = infer_linear_attention,
    .eval = eval_linear_attention,
    .adjoint = adjoint_linear_attention,
    .sample = sample_linear_attention,
    .n_variants = 32,
    .differentiable = 63,
    .weight = 60,
    .access.kind = ACCESS_SCAN,
    .amp = { AMP_T, AMP_T, 8 | 16 | 32, REASON_NONE, NULL, .wide_out = 2 }, /* states stay wide */
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "LinearAttention", 27, NULL },
};
