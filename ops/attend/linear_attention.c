/* linear_attention: a matrix of state for each head, written by keys and values and read by queries, step after step.
 *
 * A chunk of steps is taken at once, by products of what stands before it and of its steps among each other; between
 * chunks the state is handed on.  It is f32 all the way, also where queries, keys and values are f16 or bf16: it is summed
 * up over all steps, and its products are of f32. */
#include <math.h>

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

/* ---- the steps of a chunk at once ---- */

/* Sizes of a call; `chunk` steps at a time, in `chunks` of which the last is filled up with steps of zeros. */
typedef struct Linear {
    DType t;
    int64_t batch, steps, heads, readers, dk, dv; /* readers: query heads of a key head */
    int64_t chunk, chunks;
    double scale;
} Linear;

/* What a chunk reads: [batch, heads, readers or 1, chunk, size]. */
typedef struct Chunk {
    Node *q, *k, *v, *decay, *beta;
} Chunk;

enum { CHUNK_RANK = 5, CHUNK_PARTS = 5, CHUNK_STEPS = 64, CHUNK_OF_EACH = 16 };

/* Decays of their own for the elements of the keys weigh every pair of steps and every element: such chunks are short. */
static int64_t chunk_steps(const LinearAttentionAttr *at, int64_t steps, bool each)
{
    int64_t n = at->chunk_size < 1 ? CHUNK_STEPS : at->chunk_size;
    n = each && n > CHUNK_OF_EACH ? CHUNK_OF_EACH : n;
    return n < steps ? n : steps;
}

static Linear linear_of(const Site *s)
{
    const LinearAttentionAttr *at = s->attr;
    const int64_t *q = s->in[0]->type->dims, dk = q[2] / at->q_num_heads;
    const bool each = site_in(s, 4) && s->in[4]->type->dims[2] != at->kv_num_heads;
    Linear m = { .t = make_width(s->in[0]->type->dtype),
                 .batch = q[0],
                 .steps = q[1],
                 .heads = at->kv_num_heads,
                 .readers = at->q_num_heads / at->kv_num_heads,
                 .dk = dk,
                 .dv = s->in[2]->type->dims[2] / at->kv_num_heads,
                 .scale = at->scale != 0 ? (double)at->scale : 1 / sqrt((double)dk) };
    m.chunk = chunk_steps(at, m.steps, each);
    m.chunks = m.chunk ? (m.steps + m.chunk - 1) / m.chunk : 0;
    return m;
}

static Node *sums_of_steps(Build *b, Node *x, int64_t axis)
{
    return CALL(b, cum_sum, x, build_scalar(b, I64, (double)axis));
}

static Node *last_of(Build *b, Node *x, int axis, int64_t n)
{
    return make_slice(b, x, axis, n - 1, n, 1);
}

/* Decays of a chunk: from its beginning to each step, `into`; from each step to its end, `out`; from one step, the last
 * dimension, to another, `between`, what is not below the diagonal being 1.  Sums of logarithms, each over the steps that
 * it is about: no difference of sums, which would be wrong where a decay is strong. */
typedef struct Decays {
    Node *into, *out, *whole, *between;
    bool each;
} Decays;

static Decays decays_of(Build *b, const Linear *m, Node *decay)
{
    Decays d = { .each = decay->type->dims[CHUNK_RANK - 1] != 1 };
    const int64_t width = decay->type->dims[CHUNK_RANK - 1], c = m->chunk;
    const int64_t turned[] = { m->batch, m->heads, 1, width, c }, column[] = { m->batch, m->heads, 1, width, c, 1 },
                  pairs[] = { m->batch, m->heads, 1, width, c, c };
    Node *sums = sums_of_steps(b, decay, CHUNK_RANK - 2);
    Node *steps =
        make_expand(b, make_reshape(b, make_swap_last(b, decay), CHUNK_RANK + 1, column), CHUNK_RANK + 1, pairs);
    Node *between = sums_of_steps(b, make_lower(b, steps, -1), CHUNK_RANK - 1);
    Node *last = last_of(b, between, CHUNK_RANK - 1, c);
    d.into = CALL(b, exp, sums);
    d.whole = make_swap_last(b, CALL(b, exp, last_of(b, sums, CHUNK_RANK - 2, c)));
    d.out = CALL(b, exp, make_swap_last(b, make_reshape(b, last, CHUNK_RANK, turned)));
    if (!d.each) /* one number a pair */
        between = make_reshape(b, between, CHUNK_RANK, (const int64_t[]){ m->batch, m->heads, 1, c, c });
    d.between = CALL(b, exp, between);
    return d;
}

/* x k' with what decays between the step of the key and that of x. */
static Node *scores(Build *b, const Linear *m, Node *x, Node *k, const Decays *d)
{
    const MatmulAttr by_rows = { .tb = true };
    const int64_t c = m->chunk, elements = CHUNK_RANK - 2;
    if (!d || !d->each) {
        Node *each = CALL_ATTR(b, matmul, by_rows, x, k);
        return d ? CALL(b, mul, each, d->between) : each;
    }
    const int64_t rows[] = { m->batch, m->heads, x ? x->type->dims[2] : 1, m->dk, c, 1 },
                  keys[] = { m->batch, m->heads, 1, m->dk, 1, c };
    Node *weighted = CALL(b, mul, make_reshape(b, make_swap_last(b, k), CHUNK_RANK + 1, keys), d->between);
    Node *terms = CALL(b, mul, make_reshape(b, make_swap_last(b, x), CHUNK_RANK + 1, rows), weighted);
    return make_reshape(b, build_reduce(b, OP_reduce_sum, terms, 1, &elements), CHUNK_RANK,
                        (const int64_t[]){ rows[0], rows[1], rows[2], c, c });
}

/* The state s [batch, heads, 1, dk, dv] after a chunk, and what the chunk reads from it:
 *     u = v, or with beta: (1 + strictly lower(beta (k k' between))) u = beta (v - (into k) s)
 *     y = scale ((into q) s + lower(q k' between) u),  s = whole s + (out k)' u */
static void chunk_results(Build *b, const Linear *m, Node *s, const Chunk *in, Node **results)
{
    const MatmulAttr transposed = { .ta = true };
    Node *u = in->v, *q = in->q, *k = in->k, *out = in->k, *kept = s;
    Decays decays, *d = NULL;
    if (in->decay && b->status == OK) {
        decays = decays_of(b, m, in->decay);
        d = &decays;
        q = CALL(b, mul, q, d->into);
        k = CALL(b, mul, k, d->into);
        out = CALL(b, mul, in->k, d->out);
        kept = CALL(b, mul, s, d->whole);
    }
    if (in->beta) {
        Node *ties = CALL(b, mul, scores(b, m, in->k, in->k, d), in->beta);
        Node *fresh = CALL(b, mul, in->beta, CALL(b, sub, u, CALL(b, matmul, k, s)));
        u = CALL(b, matmul, CALL(b, lower_inverse, ties), fresh);
    }
    Node *inside = CALL(b, matmul, make_lower(b, scores(b, m, in->q, in->k, d), 0), u);
    results[0] = CALL(b, add, kept, CALL_ATTR(b, matmul, transposed, out, u));
    results[1] = CALL(b, mul, CALL(b, add, CALL(b, matmul, q, s), inside), build_scalar(b, m->t, m->scale));
}

/* ---- chunk after chunk ---- */

/* [batch, steps, heads * readers * size] as [chunks, batch, heads, readers, chunk, size]. */
static Node *in_chunks(Build *b, const Linear *m, Node *x, int64_t heads, int64_t readers)
{
    static const int64_t none[3], order[] = { 1, 0, 3, 4, 2, 5 };
    const int64_t more[] = { 0, m->chunk * m->chunks - m->steps, 0 };
    if (!x)
        return NULL;
    const int64_t size = x->type->dims[2] / (heads * readers);
    const int64_t apart[] = { m->batch, m->chunks, m->chunk, heads, readers, size };
    x = make_pad(b, make_cast(b, x, m->t), 3, none, more);
    return make_transpose(b, make_reshape(b, x, 6, apart), 6, order);
}

/* The way back. */
static Node *out_of_chunks(Build *b, const Linear *m, Node *y)
{
    static const int64_t order[] = { 1, 0, 4, 2, 3, 5 };
    const int64_t apart[] = { m->chunks, m->batch, m->heads, m->readers, m->chunk, m->dv },
                  packed[] = { m->batch, m->chunks * m->chunk, m->heads * m->readers * m->dv };
    y = make_reshape(b, make_transpose(b, make_reshape(b, y, 6, apart), 6, order), 3, packed);
    return packed[1] == m->steps ? y : make_slice(b, y, 1, 0, m->steps, 1);
}

static Chunk chunk_of(Node *const *parts)
{
    return (Chunk){ parts[0], parts[1], parts[2], parts[3], parts[4] };
}

/* A scan whose body takes one chunk. */
static void scan_chunks(Build *b, const Linear *m, Node *state, Node *const *parts, Node **results)
{
    static const int64_t first[CHUNK_PARTS];
    Graph *body = region_new(b->graph);
    Build inner = build_at_end(body);
    inner.flags = b->flags, inner.src = b->src, inner.label = b->label;
    Node *ins[1 + CHUNK_PARTS] = { state }, *slices[CHUNK_PARTS] = { NULL }, *given[2];
    Node *before = graph_input(body, NULL, state->type);
    int n = 0;
    for (int i = 0; i < CHUNK_PARTS; i++)
        if (parts[i]) {
            const Type *t = parts[i]->type;
            slices[i] = graph_input(body, NULL, type_tensor(&b->graph->ir->types, m->t, CHUNK_RANK, t->dims + 1));
            ins[++n] = parts[i];
        }
    const Chunk in = chunk_of(slices);
    chunk_results(&inner, m, before, &in, given);
    b->status = inner.status != OK ? inner.status : b->status;
    if (b->status != OK)
        return;
    graph_return(body, 2, given, NULL);
    const ScanAttr scan = { .num_scan_inputs = n, .scan_input_axes = { n, first }, .scan_output_axes = { 1, first } };
    Node *run = build_with_regions(b, OP_scan, &scan, n + 1, ins, 2, 1, &body);
    results[0] = build_part(b, run, 0);
    results[1] = build_part(b, run, 1);
}

/* The results, in the type that the call computes in. */
static void build_linear(Build *b, const Site *s, Node **y)
{
    const Linear m = linear_of(s);
    Types *types = &b->graph->ir->types;
    const int64_t given[] = { m.batch, m.heads, m.dk, m.dv }, inside[] = { m.batch, m.heads, 1, m.dk, m.dv };
    Node *state =
             site_in(s, 3) ? make_cast(b, s->in[3], m.t) : make_filled(b, m.t, 0, type_tensor(types, m.t, 4, given)),
         *results[2] = { NULL };
    const int64_t rates = site_in(s, 5) ? s->in[5]->type->dims[2] : 1;
    Node *parts[CHUNK_PARTS] = { NULL };
    y[1] = state;
    if (!m.steps) {
        const int64_t none[] = { m.batch, 0, m.heads * m.readers * m.dv };
        y[0] = make_filled(b, m.t, 0, type_tensor(types, m.t, 3, none));
        return;
    }
    parts[0] = in_chunks(b, &m, s->in[0], m.heads, m.readers);
    parts[1] = in_chunks(b, &m, s->in[1], m.heads, 1);
    parts[2] = in_chunks(b, &m, s->in[2], m.heads, 1);
    parts[3] = in_chunks(b, &m, site_in(s, 4), m.heads, 1);
    parts[4] = in_chunks(b, &m, site_in(s, 5), rates, 1);
    state = make_reshape(b, state, CHUNK_RANK, inside);
    if (b->status != OK)
        return;
    if (m.chunks > 1) {
        scan_chunks(b, &m, state, parts, results);
    } else {
        for (int i = 0; i < CHUNK_PARTS; i++)
            parts[i] = parts[i] ? make_reshape(b, parts[i], CHUNK_RANK, parts[i]->type->dims + 1) : NULL;
        const Chunk only = chunk_of(parts);
        chunk_results(b, &m, state, &only, results);
    }
    y[0] = out_of_chunks(b, &m, results[1]);
    y[1] = make_reshape(b, results[0], 4, given);
}

static Node *expand_linear_attention(Build *b, const Site *s)
{
    Node *y[2] = { NULL };
    if (!make_ready(b, s))
        return NULL;
    build_linear(b, s, y);
    for (int i = 0; i < 2; i++)
        y[i] = make_cast(b, y[i], type_result(s->type, i)->dtype);
    return b->status == OK ? build_tuple(b, 2, y) : NULL;
}

static void adjoint_linear_attention(Build *b, const Site *s, Node **dx)
{
    adjoint_by_model(b, s, dx, build_linear);
}

static Node *sample_linear_attention(Build *b, Rng *rng, int variant)
{
    LinearAttentionAttr at = { .chunk_size = 1 + variant % 5,
                               .kv_num_heads = rng_range(rng, 1, 2),
                               .update_rule = variant % 4 };
    at.q_num_heads = at.kv_num_heads * rng_range(rng, 1, 2);
    at.scale = rng_below(rng, 2) ? 0 : 0.5f;
    const DType dtype = sample_float(rng), rest = dtype_is_narrow(dtype) && variant % 2 ? F32 : dtype;
    at.state_type = dtype_is_narrow(dtype) && rng_below(rng, 2) ? F32 + 1 : 0;
    const int64_t batch = rng_below(rng, 3), steps = rng_below(rng, 7), dk = rng_range(rng, 1, 4),
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
    .expand = expand_linear_attention,
    .adjoint = adjoint_linear_attention,
    .sample = sample_linear_attention,
    .n_variants = 32,
    .differentiable = 63,
    .weight = 60,
    .access.kind = ACCESS_COMPOSITE,
    .amp = { AMP_T, AMP_T, 8 | 16 | 32, REASON_NONE, NULL, .wide_out = 2 }, /* states stay wide */
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "LinearAttention", 27, NULL },
};
