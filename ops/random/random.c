/* random_normal, random_uniform and their ..._like forms, bernoulli, multinomial. */
#include "ops/random/random_draws.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "ops/card/access.h"

/* ONNX names the two numbers differently. */
#define NUMBER(label, field, v)                                                                                        \
    {                                                                                                                  \
        .name = label, .kind = ATTR_FLOAT, .offset = offsetof(RandomAttr, field), .value = (v)                         \
    }
#define RANDOM_ATTRS(first_name, first_value, second_name, second_value)                                               \
    NUMBER(first_name, first, first_value), NUMBER(second_name, second, second_value),                                 \
        ATTR(RandomAttr, seed, FLOAT, NAN), ATTR_OURS(RandomAttr, stream, INT, 0), ATTR_LAST

static const AttrSpec normal_attrs[] = { ATTR_REQUIRED(RandomAttr, shape, INTS),
                                         ATTR(RandomAttr, dtype, DTYPE, (int)F32 + 1),
                                         RANDOM_ATTRS("mean", 0, "scale", 1) };
static const AttrSpec uniform_attrs[] = { ATTR_REQUIRED(RandomAttr, shape, INTS),
                                          ATTR(RandomAttr, dtype, DTYPE, (int)F32 + 1),
                                          RANDOM_ATTRS("low", 0, "high", 1) };
static const AttrSpec normal_like_attrs[] = { ATTR(RandomAttr, dtype, DTYPE, 0), RANDOM_ATTRS("mean", 0, "scale", 1) };
static const AttrSpec uniform_like_attrs[] = { ATTR(RandomAttr, dtype, DTYPE, 0), RANDOM_ATTRS("low", 0, "high", 1) };

static const AttrSpec bernoulli_attrs[] = {
    ATTR(BernoulliAttr, dtype, DTYPE, 0),
    ATTR(BernoulliAttr, seed, FLOAT, NAN),
    ATTR_OURS(BernoulliAttr, stream, INT, 0),
    ATTR_LAST,
};

static const AttrSpec multinomial_attrs[] = {
    ATTR(MultinomialAttr, dtype, DTYPE, (int)I32 + 1),
    ATTR(MultinomialAttr, sample_size, INT, 1),
    ATTR(MultinomialAttr, seed, FLOAT, NAN),
    ATTR_OURS(MultinomialAttr, stream, INT, 0),
    ATTR_LAST,
};

static bool is_drawn(DType d)
{
    return d == F32 || d == F64 || d == F16 || d == BF16;
}

static const Type *infer_random(Infer *q)
{
    const RandomAttr *at = q->attr;
    const Limits *limits = &q->ir->limits;
    DType dtype;
    int64_t n;
    if (!attr_dtype(at->dtype, &dtype) || !is_drawn(dtype))
        return infer_fail(q, "draws floats of 16 to 64 bits");
    if (at->shape.n > MAX_RANK)
        return infer_fail(q, "has a shape of rank %d, more than %d", at->shape.n, MAX_RANK);
    for (int i = 0; i < at->shape.n; i++)
        if (at->shape.v[i] < 0 || at->shape.v[i] > limits->dim)
            return infer_fail(q, "has a dimension of %" PRId64, at->shape.v[i]);
    if (!checked_product_i64(at->shape.v, at->shape.n, limits->elements, &n))
        return infer_fail(q, "has a shape beyond the limit elements (%" PRId64 ")", limits->elements);
    return type_tensor(q->types, dtype, at->shape.n, at->shape.v);
}

static const Type *infer_random_like(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    DType dtype = x->dtype;
    attr_dtype(((const RandomAttr *)q->attr)->dtype, &dtype);
    if (!is_drawn(dtype))
        return infer_fail(q, "draws floats of 16 to 64 bits, not %s", dtype_name(dtype));
    return type_with_dtype(q->types, x, dtype);
}

static bool result_is_f64(const Eval *e)
{
    return eval_type(e, 0)->dtype == F64;
}

#define DRAW(T, KIND, SCALE, OFFSET)                                                                                   \
    static void KIND##_##T(Eval *e, Draws *d, const RandomAttr *at)                                                    \
    {                                                                                                                  \
        const int64_t n = type_elements(eval_type(e, 0));                                                              \
        const T scale = SCALE, offset = OFFSET;                                                                        \
        T *y = eval_out_##T(e, 0);                                                                                     \
        draw_##KIND##_##T(d, n, y);                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                                                \
            y[i] = y[i] * scale + offset;                                                                              \
    }
DRAW(f32, normal, at->second, at->first)
DRAW(f64, normal, at->second, at->first)
DRAW(f32, uniform, at->second - at->first, at->first)
DRAW(f64, uniform, (f64)at->second - at->first, at->first)
#undef DRAW

static Status eval_random_normal(Eval *e)
{
    const RandomAttr *at = e->attr;
    Draws *d = eval_scratch(e, 1, sizeof *d);
    draws_open_float(d, e, at->stream, at->seed);
    (result_is_f64(e) ? normal_f64 : normal_f32)(e, d, at);
    return OK;
}

static Status eval_random_uniform(Eval *e)
{
    const RandomAttr *at = e->attr;
    Draws *d = eval_scratch(e, 1, sizeof *d);
    draws_open_float(d, e, at->stream, at->seed);
    (result_is_f64(e) ? uniform_f64 : uniform_f32)(e, d, at);
    return OK;
}

static const Type *infer_bernoulli(Infer *q)
{
    const Type *x = infer_tensor(q, 0);
    if (!x)
        return NULL;
    DType dtype = x->dtype;
    attr_dtype(((const BernoulliAttr *)q->attr)->dtype, &dtype);
    if (!is_drawn(x->dtype))
        return infer_fail(q, "cannot take probabilities of %s", dtype_name(x->dtype));
    if (dtype == STRING)
        return infer_fail(q, "cannot give %s", dtype_name(dtype));
    return type_with_dtype(q->types, x, dtype);
}

/* One trial as NumPy's binomial(1, p) makes it: by inversion of the rarer outcome. */
static int64_t numpy_trial(Draws *d, double p)
{
    const double rare = p <= 0.5 ? p : 1.0 - p, other = 1.0 - rare, none = exp(log(other));
    if (p == 0)
        return 0;
    int64_t hits = 0;
    double left = none, u = mt19937_uniform(&d->twister);
    while (u > left) {
        if (++hits > 1) {
            hits = 0;
            left = none;
            u = mt19937_uniform(&d->twister);
        } else {
            u -= left;
            left = rare * left / other;
        }
    }
    return p <= 0.5 ? hits : 1 - hits;
}

static Status eval_bernoulli(Eval *e)
{
    const BernoulliAttr *at = e->attr;
    const int64_t n = eval_elements(e, 0);
    const f64 *p = eval_f64(e, 0);
    i64 *y = eval_out_i64(e, 0);
    Draws *d = eval_scratch(e, 1, sizeof *d);
    draws_open_float(d, e, at->stream, at->seed);
    f32 *u = d->numpy ? NULL : eval_scratch(e, (size_t)n, sizeof *u);
    if (u)
        draw_uniform_f32(d, n, u);
    for (int64_t i = 0; i < n; i++) {
        if (!(p[i] >= 0 && p[i] <= 1))
            return eval_fail(e, "element %" PRId64 " is no probability: %g", i, p[i]);
        y[i] = u ? u[i] < p[i] : numpy_trial(d, p[i]);
    }
    return OK;
}

static const Type *infer_multinomial(Infer *q)
{
    const MultinomialAttr *at = q->attr;
    const Type *x = infer_tensor(q, 0);
    DType dtype;
    if (!x)
        return NULL;
    if (!is_drawn(x->dtype))
        return infer_fail(q, "cannot take log-probabilities of %s", dtype_name(x->dtype));
    if (x->rank >= 0 && x->rank != 2)
        return infer_fail(q, "wants [batch, class], got rank %d", x->rank);
    if (!attr_dtype(at->dtype, &dtype) || (dtype != I32 && dtype != I64))
        return infer_fail(q, "gives i32 or i64");
    if (at->sample_size < 0 || at->sample_size > q->ir->limits.dim)
        return infer_fail(q, "cannot draw %" PRId64 " samples", at->sample_size);
    const int64_t dims[] = { x->rank == 2 ? x->dims[0] : DIM_UNKNOWN, at->sample_size };
    return type_tensor(q->types, dtype, 2, dims);
}

/* The running sums of exp(x - max), in order; false when no outcome is possible. */
static bool cumulate(const f32 *x, int64_t classes, f32 *sum)
{
    f32 most = -Q_INF, total = 0;
    for (int64_t c = 0; c < classes; c++)
        most = max_f32(most, x[c]);
    for (int64_t c = 0; c < classes; c++)
        sum[c] = total += exp_f32(x[c] - most);
    return total > 0 && total < Q_INF;
}

/* The first class whose sum is above u * total. */
static int64_t outcome(const f32 *sum, int64_t classes, f32 u)
{
    const f32 mark = u * sum[classes - 1];
    int64_t low = 0, high = classes - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sum[middle] > mark)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static Status eval_multinomial(Eval *e)
{
    const MultinomialAttr *at = e->attr;
    const int64_t batch = e->in[0]->type->dims[0], classes = e->in[0]->type->dims[1], n = at->sample_size;
    const f32 *x = eval_f32(e, 0);
    i64 *y = eval_out_i64(e, 0);
    f32 *u = eval_scratch(e, (size_t)(batch * n), sizeof *u), *sum = eval_scratch(e, (size_t)classes, sizeof *sum);
    Draws *d = eval_scratch(e, 1, sizeof *d);
    draws_open_float(d, e, at->stream, at->seed);
    draw_uniform_f32(d, batch * n, u);
    for (int64_t row = 0; row < batch && n > 0; row++) {
        if (!cumulate(x + row * classes, classes, sum))
            return eval_fail(e, "row %" PRId64 " has no possible outcome", row);
        for (int64_t i = 0; i < n; i++)
            y[row * n + i] = outcome(sum, classes, u[row * n + i]);
    }
    return OK;
}

static const DType drawn_types[] = { F32, F64, F16, BF16 };

static RandomAttr random_attr(Rng *rng, int variant)
{
    return (RandomAttr){ .dtype = (int)drawn_types[variant % 4] + 1,
                         .first = -1,
                         .second = 2,
                         .seed = variant % 3 ? (float)rng_below(rng, 100) : NAN,
                         .stream = rng_below(rng, 9) };
}

static Node *sample_random(Build *b, Rng *rng, int variant, Op op)
{
    int64_t dims[MAX_RANK];
    RandomAttr at = random_attr(rng, variant);
    at.shape = (Ints){ variant % 6, dims };
    sample_dims(rng, at.shape.n, 5, dims);
    return build_node(b, op, &at, 0, NULL);
}

Node *random_draws(Build *b, const Type *like, int64_t stream)
{
    int64_t *dims = NEWS(b->graph->arena, int64_t, like->rank + 1);
    memcpy(dims, like->dims, (size_t)like->rank * sizeof *dims);
    const RandomAttr at = {
        .shape = { like->rank, dims }, .dtype = (int)F32 + 1, .second = 1, .seed = NAN, .stream = stream
    };
    return build_node(b, OP_random_uniform, &at, 0, NULL);
}

static Node *sample_random_like(Build *b, Rng *rng, int variant, Op op)
{
    static const DType likes[] = { F32, I64, F16, U8, F64, BF16, BOOL };
    int64_t dims[MAX_RANK];
    RandomAttr at = random_attr(rng, variant);
    const DType like = likes[rng_below(rng, COUNT(likes))];
    sample_dims(rng, variant % 6, 5, dims);
    if (is_drawn(like) && variant % 2)
        at.dtype = 0;
    Node *x = sample_tensor(b, rng, like, variant % 6, dims, 0, 1);
    return build_node(b, op, &at, 1, &x);
}

static Node *sample_random_normal(Build *b, Rng *rng, int variant)
{
    return sample_random(b, rng, variant, OP_random_normal);
}

static Node *sample_random_uniform(Build *b, Rng *rng, int variant)
{
    return sample_random(b, rng, variant, OP_random_uniform);
}

static Node *sample_random_normal_like(Build *b, Rng *rng, int variant)
{
    return sample_random_like(b, rng, variant, OP_random_normal_like);
}

static Node *sample_random_uniform_like(Build *b, Rng *rng, int variant)
{
    return sample_random_like(b, rng, variant, OP_random_uniform_like);
}

static Node *sample_bernoulli(Build *b, Rng *rng, int variant)
{
    static const DType gives[] = { F32, BOOL, U8, I64, F16, BF16, F64, I32 };
    int64_t dims[MAX_RANK];
    sample_dims(rng, variant % 6, 5, dims);
    const BernoulliAttr at = { .dtype = variant % 4 ? (int)gives[rng_below(rng, COUNT(gives))] + 1 : 0,
                               .seed = variant % 3 ? (float)rng_below(rng, 100) : NAN };
    Node *p = sample_tensor(b, rng, drawn_types[rng_below(rng, 4)], variant % 6, dims, 0, 1);
    return build_node(b, OP_bernoulli, &at, 1, &p);
}

static Node *sample_multinomial(Build *b, Rng *rng, int variant)
{
    const int64_t dims[] = { rng_below(rng, 4), rng_range(rng, 1, 6) };
    const MultinomialAttr at = { .dtype = (int)(variant % 2 ? I32 : I64) + 1,
                                 .sample_size = rng_below(rng, 7),
                                 .seed = variant % 3 ? (float)rng_below(rng, 100) : NAN };
    Node *x = sample_tensor(b, rng, drawn_types[rng_below(rng, 4)], 2, dims, -3, 1);
    return build_node(b, OP_multinomial, &at, 1, &x);
}

#define TYPE_ONLY_random_normal       0
#define TYPE_ONLY_random_uniform      0
#define TYPE_ONLY_random_normal_like  1
#define TYPE_ONLY_random_uniform_like 1
#define TYPE_ONLY_bernoulli           0
#define TYPE_ONLY_multinomial         0
#define ITERATE_random_normal         iterate_row
#define ITERATE_random_uniform        iterate_row
#define ITERATE_random_normal_like    iterate_row
#define ITERATE_random_uniform_like   iterate_row
#define ITERATE_bernoulli             iterate_row
#define ITERATE_multinomial           NULL /* from a row of the operand */
#define RANDOM_CARD(WORD, ONNX, SINCE, N_IN, ATTRS, INFER, EVAL)                                                       \
    const OpDef op_##WORD = {                                                                                          \
        .name = #WORD,                                                                                                 \
        .min_in = N_IN,                                                                                                \
        .max_in = N_IN,                                                                                                \
        .attrs = ATTRS,                                                                                                \
        .infer = INFER,                                                                                                \
        .eval = EVAL,                                                                                                  \
        .sample = sample_##WORD,                                                                                       \
        .n_variants = 24,                                                                                              \
        .mode = MODE_RANDOM,                                                                                           \
        .access.kind = ACCESS_DRAW,                                                                                    \
        .amp = { AMP_X, AMP_X, 0, REASON_MEANING, NULL },                                                              \
        .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },                                                    \
        .access.iterate = ITERATE_##WORD,                                                                              \
        .access.type_only = TYPE_ONLY_##WORD,                                                                          \
        .onnx = { ONNX, SINCE, NULL },                                                                                 \
    }

RANDOM_CARD(random_normal, "RandomNormal", 22, 0, normal_attrs, infer_random, eval_random_normal);
RANDOM_CARD(random_uniform, "RandomUniform", 22, 0, uniform_attrs, infer_random, eval_random_uniform);
RANDOM_CARD(random_normal_like, "RandomNormalLike", 22, 1, normal_like_attrs, infer_random_like, eval_random_normal);
RANDOM_CARD(random_uniform_like, "RandomUniformLike", 22, 1, uniform_like_attrs, infer_random_like,
            eval_random_uniform);
RANDOM_CARD(bernoulli, "Bernoulli", 22, 1, bernoulli_attrs, infer_bernoulli, eval_bernoulli);
RANDOM_CARD(multinomial, "Multinomial", 22, 1, multinomial_attrs, infer_multinomial, eval_multinomial);
