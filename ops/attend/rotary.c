/* rotary_embedding: pairs of elements turned by an angle that follows from their position. */
#include "ops/attend/attention.h"
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/norm/norm.h"

static const AttrSpec rotary_attrs[] = {
    ATTR(RotaryAttr, interleaved, BOOL, false),
    ATTR(RotaryAttr, num_heads, INT, 0),
    ATTR(RotaryAttr, rotary_embedding_dim, INT, 0),
    ATTR_LAST,
};

/* The sequence [batch, heads, steps, size], or with 3 dimensions [batch, steps, heads, size]. */
typedef struct RotaryShape {
    int64_t batch, steps, heads, size, turned;
} RotaryShape;

static RotaryShape rotary_shape(const RotaryAttr *at, const Type *x)
{
    RotaryShape r = { .batch = x->dims[0] };
    if (x->rank == 4) {
        r.heads = x->dims[1], r.steps = x->dims[2], r.size = x->dims[3];
    } else {
        r.steps = x->dims[1];
        r.heads = at->num_heads;
        r.size = x->dims[2] < 0 ? DIM_UNKNOWN : x->dims[2] / at->num_heads;
    }
    r.turned = at->rotary_embedding_dim ? at->rotary_embedding_dim : r.size;
    return r;
}

/* cos and sin: [positions, turned / 2] with position_ids [batch, steps], else [batch, steps, turned / 2]. */
static bool infer_caches(Infer *q, const RotaryShape *r)
{
    const int64_t half = r->turned < 0 ? DIM_UNKNOWN : r->turned / 2;
    const bool by_id = infer_has(q, 3);
    const int64_t dims[] = { r->batch, r->steps, half };
    for (int i = 1; i < 3; i++) {
        const Type *t = infer_tensor(q, i);
        if (!t)
            return false;
        const Type *wanted = by_id ? type_tensor(q->types, t->dtype, 2, (const int64_t[]){ DIM_UNKNOWN, half })
                                   : type_tensor(q->types, t->dtype, 3, dims);
        if (!dtype_is_float(t->dtype) || !type_agrees(t, wanted)) {
            infer_fail(q, "operand %d is %s, wanted is %s", i, type_text(q->scratch, t), type_text(q->scratch, wanted));
            return false;
        }
    }
    const Type *ids = by_id ? infer_integers(q, 3) : NULL;
    if (ids && !type_agrees(ids, type_tensor(q->types, ids->dtype, 2, dims))) {
        infer_fail(q, "position_ids are %s for a sequence of %" PRId64 " in a batch of %" PRId64,
                   type_text(q->scratch, ids), r->steps, r->batch);
        return false;
    }
    return ids || !by_id;
}

static const Type *infer_rotary_embedding(Infer *q)
{
    const RotaryAttr *at = q->attr;
    const Type *x = infer_floats(q, 3);
    if (!x || x->rank < 0)
        return x;
    if (x->rank > 4)
        return infer_fail(q, "needs 3 or 4 dimensions, got %d", x->rank);
    if (x->rank == 3 && (at->num_heads < 1 || (x->dims[2] >= 0 && x->dims[2] % at->num_heads)))
        return infer_fail(q, "%" PRId64 " elements do not split into %" PRId64 " heads", x->dims[2], at->num_heads);
    const RotaryShape r = rotary_shape(at, x);
    if (r.turned >= 0 && (r.turned % 2 || at->rotary_embedding_dim < 0 || (r.size >= 0 && r.turned > r.size)))
        return infer_fail(q, "cannot turn %" PRId64 " of %" PRId64 " elements", r.turned, r.size);
    return infer_caches(q, &r) ? x : NULL;
}

/* A cache as [batch, steps, 1, half] or [batch, 1, steps, half]. */
static Node *angles(Build *b, const Site *s, int i, DType t, const RotaryShape *r, int rank)
{
    Node *cache = make_cast(b, s->in[i], t);
    const int64_t by_step[] = { r->batch, r->steps, 1, r->turned / 2 };
    const int64_t by_head[] = { r->batch, 1, r->steps, r->turned / 2 };
    if (site_in(s, 3))
        cache = make_gather(b, cache, s->in[3], 0);
    return make_reshape(b, cache, 4, rank == 4 ? by_head : by_step);
}

static Node *expand_rotary_embedding(Build *b, const Site *s)
{
    const RotaryAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Type *type = s->in[0]->type;
    const DType t = make_width(type->dtype);
    const RotaryShape r = rotary_shape(at, type);
    const int64_t half = r.turned / 2;
    const int64_t by_step[] = { r.batch, r.steps, r.heads, r.size };
    const int64_t *dims = type->rank == 4 ? type->dims : by_step;
    Node *x = make_reshape(b, make_cast(b, s->in[0], t), 4, dims);
    Node *cosine = angles(b, s, 1, t, &r, type->rank), *sine = angles(b, s, 2, t, &r, type->rank);
    Node *p = at->interleaved ? make_slice(b, x, 3, 0, r.turned, 2) : make_slice(b, x, 3, 0, half, 1);
    Node *q = at->interleaved ? make_slice(b, x, 3, 1, r.turned, 2) : make_slice(b, x, 3, half, r.turned, 1);
    Node *parts[] = { CALL(b, sub, CALL(b, mul, cosine, p), CALL(b, mul, sine, q)),
                      CALL(b, add, CALL(b, mul, sine, p), CALL(b, mul, cosine, q)) };
    if (at->interleaved) {
        const int64_t pair[] = { dims[0], dims[1], dims[2], half, 1 },
                      whole[] = { dims[0], dims[1], dims[2], r.turned };
        for (int i = 0; i < 2; i++)
            parts[i] = make_reshape(b, parts[i], 5, pair);
        parts[0] = make_reshape(b, make_concat(b, 4, 2, parts), 4, whole);
    } else {
        parts[0] = make_concat(b, 3, 2, parts);
    }
    parts[1] = make_slice(b, x, 3, r.turned, r.size, 1);
    Node *y = r.turned < r.size ? make_concat(b, 3, 2, parts) : parts[0];
    return make_cast(b, make_reshape(b, y, type->rank, type->dims), type->dtype);
}

static Node *sample_rotary_embedding(Build *b, Rng *rng, int variant)
{
    const RotaryShape r = { rng_below(rng, 3), rng_below(rng, 4), rng_range(rng, 1, 3), 2 * rng_range(rng, 1, 4), 0 };
    RotaryAttr at = { .interleaved = variant % 2 };
    const DType dtype = sample_float(rng);
    const int rank = 3 + variant / 2 % 2;
    const int64_t four[] = { r.batch, r.heads, r.steps, r.size }, three[] = { r.batch, r.steps, r.heads * r.size };
    at.num_heads = rank == 3 ? r.heads : 0;
    at.rotary_embedding_dim = rng_below(rng, 2) ? 2 * rng_range(rng, 1, r.size / 2) : 0;
    const int64_t half = (at.rotary_embedding_dim ? at.rotary_embedding_dim : r.size) / 2;
    const int64_t table[] = { 5, half }, each[] = { r.batch, r.steps, half };
    const bool by_id = rng_below(rng, 2);
    Node *x = sample_tensor(b, rng, dtype, rank, rank == 4 ? four : three, -2, 2);
    Node *cosine = sample_tensor(b, rng, dtype, by_id ? 2 : 3, by_id ? table : each, -1, 1);
    Node *sine = sample_tensor(b, rng, dtype, by_id ? 2 : 3, by_id ? table : each, -1, 1);
    Node *ids = by_id ? sample_tensor(b, rng, I64, 2, each, 0, 4) : NULL;
    return by_id ? CALL_ATTR(b, rotary_embedding, at, x, cosine, sine, ids)
                 : CALL_ATTR(b, rotary_embedding, at, x, cosine, sine);
}

const OpDef op_rotary_embedding = {
    .name = "rotary_embedding",
    .min_in = 3,
    .max_in = 4,
    .attrs = rotary_attrs,
    .infer = infer_rotary_embedding,
    .expand = expand_rotary_embedding,
    .sample = sample_rotary_embedding,
    .n_variants = 24,
    .differentiable = 7,
    .weight = 10,
    .access.kind = ACCESS_COMPOSITE,
    .access.refuses = true,
    .amp = { AMP_S, AMP_S, 2 | 4, REASON_PRECISION, NULL },
    .quant = { .in = { QUANT_FLOAT, QUANT_FLOAT, QUANT_FLOAT, QUANT_NEVER }, .out = { QUANT_FLOAT } },
    .access.steer = 8,
    .onnx = { "RotaryEmbedding", 23, NULL },
};
