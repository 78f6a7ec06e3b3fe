/* adam, adagrad, momentum: the optimizers of ai.onnx.preview.training, each for any number of tensors.
 *
 *     adam(R, T, X.., G.., V.., H..) -> X.., V.., H..
 *
 * R is the rate and T the number of steps done before; each list is as long as the others. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/update/update.h"

typedef struct AdamAttr {
    float alpha, beta, epsilon, norm_coefficient, norm_coefficient_post;
} AdamAttr;

static const AttrSpec adam_attrs[] = {
    ATTR(AdamAttr, alpha, FLOAT, 0.9f),
    ATTR(AdamAttr, beta, FLOAT, 0.999f),
    ATTR(AdamAttr, epsilon, FLOAT, 1e-6f),
    ATTR(AdamAttr, norm_coefficient, FLOAT, 0),
    ATTR(AdamAttr, norm_coefficient_post, FLOAT, 0),
    ATTR_LAST,
};

typedef struct AdagradAttr {
    float decay_factor, epsilon, norm_coefficient;
} AdagradAttr;

static const AttrSpec adagrad_attrs[] = {
    ATTR(AdagradAttr, decay_factor, FLOAT, 0),
    ATTR(AdagradAttr, epsilon, FLOAT, 1e-6f),
    ATTR(AdagradAttr, norm_coefficient, FLOAT, 0),
    ATTR_LAST,
};

enum { MODE_STANDARD, MODE_NESTEROV };
static const char *const modes[] = { "standard", "nesterov", NULL };

typedef struct MomentumAttr {
    float alpha, beta, norm_coefficient;
    int mode;
} MomentumAttr;

static const AttrSpec momentum_attrs[] = {
    ATTR_REQUIRED(MomentumAttr, alpha, FLOAT),
    ATTR_REQUIRED(MomentumAttr, beta, FLOAT),
    { .name = "mode", .kind = ATTR_ENUM, .offset = offsetof(MomentumAttr, mode), .required = true, .choices = modes },
    ATTR_REQUIRED(MomentumAttr, norm_coefficient, FLOAT),
    ATTR_LAST,
};

enum { RATE, COUNT_DONE, FIRST_X };

/* ---- the type ---- */

/* A list of each kind: parameters, gradients and `states` more; results are the parameters and the states. */
static const Type *infer_lists(Infer *q, int states)
{
    const int lists = 2 + states, n = (q->n_in - FIRST_X) / lists;
    const Type *rate = infer_tensor(q, RATE), *done = rate ? infer_tensor(q, COUNT_DONE) : NULL;
    if (!done)
        return NULL;
    if (rate->rank > 0 || !dtype_is_float(rate->dtype))
        return infer_fail(q, "needs a rate that is one number, not %s", type_text(q->scratch, rate));
    if (done->rank > 0 || done->dtype != I64)
        return infer_fail(q, "needs a count that is one i64, not %s", type_text(q->scratch, done));
    if (n == 0 || n * lists + FIRST_X != q->n_in)
        return infer_fail(q, "takes %d lists of one length behind R and T, not %d operands", lists, q->n_in - FIRST_X);
    const Type **results = NEWS(q->scratch, const Type *, n *(1 + states));
    for (int i = 0; i < n * lists; i++) {
        const Type *x = infer_tensor(q, FIRST_X + i % n), *t = x ? infer_tensor(q, FIRST_X + i) : NULL;
        if (!t)
            return NULL;
        if (!dtype_is_float(t->dtype) || !type_agrees(t, x))
            return infer_fail(q, "operand %d is %s, for a parameter %s", FIRST_X + i, type_text(q->scratch, t),
                              type_text(q->scratch, x));
        if (i < n || i >= 2 * n)
            results[i < n ? i : i - n] = type_meet(q->types, t, x);
    }
    return infer_results(q, n * (1 + states), results);
}

static const Type *infer_two_states(Infer *q)
{
    return infer_lists(q, 2);
}

static const Type *infer_one_state(Infer *q)
{
    return infer_lists(q, 1);
}

/* ---- the expansions ---- */

/* One parameter of a call: u.x, u.g (made regular), u.state. */
typedef Node *Step(Update *u, const void *attr, Node **states);

/* The same step for every parameter. */
static Node *expand_lists(Build *b, const Site *s, int states, float norm_coefficient, Step *step)
{
    const int n = (s->n_in - FIRST_X) / (2 + states);
    if (!make_ready(b, s))
        return NULL;
    Node **results = NEWS(b->graph->arena, Node *, n * (1 + states));
    for (int i = 0; i < n; i++) {
        Node *const *x = s->in + FIRST_X + i, *next[UPDATE_STATES];
        const DType own = x[0]->type->dtype, t = make_width(own);
        Update u = { .b = b, .type = t, .lr = make_cast(b, s->in[RATE], t), .step = s->in[COUNT_DONE] };
        u.x = make_cast(b, x[0], t);
        u.g = update_add(&u, make_cast(b, x[n], t), u.x, update_decimal(norm_coefficient));
        for (int k = 0; k < states; k++)
            u.state[k] = make_cast(b, x[(2 + k) * n], t);
        results[i] = make_cast(b, step(&u, s->attr, next), own);
        for (int k = 0; k < states; k++)
            results[(1 + k) * n + i] = make_cast(b, next[k], own);
    }
    return b->status == OK ? build_tuple(b, s->n_out, results) : NULL;
}

/* Whether steps were done before. */
static Node *has_begun(Update *u)
{
    return CALL(u->b, greater, make_cast(u->b, u->step, u->type), update_number(u, 0));
}

static Node *step_adam(Update *u, const void *attr, Node **states)
{
    const AdamAttr *at = attr;
    Build *b = u->b;
    states[0] = update_average(u, u->state[0], at->alpha, u->g);
    states[1] = update_average_square(u, u->state[1], at->beta, u->g);
    Node *under = update_add(u, CALL(b, sqrt, states[1]), update_number(u, 1), update_decimal(at->epsilon));
    Node *corrected = CALL(b, mul, u->lr, CALL(b, sqrt, update_filled(u, at->beta)));
    corrected = CALL(b, div, corrected, update_filled(u, at->alpha));
    Node *rate = CALL(b, where, has_begun(u), corrected, u->lr);
    Node *x = CALL(b, sub, u->x, CALL(b, div, CALL(b, mul, rate, states[0]), under));
    if (at->norm_coefficient_post == 0)
        return x;
    return CALL(b, mul, x, update_number(u, 1 - update_decimal(at->norm_coefficient_post)));
}

static Node *step_adagrad(Update *u, const void *attr, Node **states)
{
    const AdagradAttr *at = attr;
    Build *b = u->b;
    Node *rate = u->lr;
    if (at->decay_factor != 0)
        rate =
            CALL(b, div, rate,
                 update_add(u, update_number(u, 1), make_cast(b, u->step, u->type), update_decimal(at->decay_factor)));
    states[0] = CALL(b, add, u->state[0], CALL(b, mul, u->g, u->g));
    Node *under = update_add(u, CALL(b, sqrt, states[0]), update_number(u, 1), update_decimal(at->epsilon));
    return CALL(b, sub, u->x, CALL(b, div, CALL(b, mul, rate, u->g), under));
}

static Node *step_momentum(Update *u, const void *attr, Node **states)
{
    const MomentumAttr *at = attr;
    Build *b = u->b;
    const double keep = update_decimal(at->alpha);
    Node *part = CALL(b, where, has_begun(u), update_number(u, update_decimal(at->beta)), update_number(u, 1));
    states[0] = CALL(b, add, CALL(b, mul, u->state[0], update_number(u, keep)), CALL(b, mul, part, u->g));
    Node *way = at->mode == MODE_NESTEROV ? update_add(u, u->g, states[0], keep) : states[0];
    return CALL(b, sub, u->x, CALL(b, mul, u->lr, way));
}

static Node *expand_adam(Build *b, const Site *s)
{
    return expand_lists(b, s, 2, ((const AdamAttr *)s->attr)->norm_coefficient, step_adam);
}

static Node *expand_adagrad(Build *b, const Site *s)
{
    return expand_lists(b, s, 1, ((const AdagradAttr *)s->attr)->norm_coefficient, step_adagrad);
}

static Node *expand_momentum(Build *b, const Site *s)
{
    return expand_lists(b, s, 1, ((const MomentumAttr *)s->attr)->norm_coefficient, step_momentum);
}

/* ---- samples ---- */

static Node *sample_lists(Build *b, Rng *rng, int variant, Op op, int states, const void *attr)
{
    enum { MOST = 3 };
    Node *in[FIRST_X + 4 * MOST];
    const int n = 1 + variant % MOST;
    const DType rate = variant % 4 == 3 ? F64 : F32;
    in[RATE] = sample_tensor(b, rng, rate, 0, NULL, 0.001, 0.1);
    in[COUNT_DONE] = sample_tensor(b, rng, I64, 0, NULL, 0, rng_below(rng, 2) ? 0 : 50);
    for (int i = 0; i < n; i++) {
        int64_t dims[MAX_RANK];
        const int rank = (variant + i) % 5;
        const DType dtype = rng_below(rng, 3) ? F32 : F64;
        sample_dims(rng, rank, 4, dims);
        for (int k = 0; k < 2 + states; k++) /* squares, the last list, are positive */
            in[FIRST_X + k * n + i] = sample_tensor(b, rng, dtype, rank, dims, k > states ? 0.5 : -2, 2);
    }
    return build_node_n(b, op, attr, FIRST_X + n * (2 + states), in, n * (1 + states));
}

static Node *sample_adam(Build *b, Rng *rng, int variant)
{
    const AdamAttr at = { 0.9f, 0.999f, 1e-7f, variant % 2 ? 0.01f : 0, variant % 3 ? 0 : 0.01f };
    return sample_lists(b, rng, variant, OP_adam, 2, &at);
}

static Node *sample_adagrad(Build *b, Rng *rng, int variant)
{
    const AdagradAttr at = { variant % 2 ? 0.1f : 0, 1e-5f, variant % 3 ? 0.01f : 0 };
    return sample_lists(b, rng, variant, OP_adagrad, 1, &at);
}

static Node *sample_momentum(Build *b, Rng *rng, int variant)
{
    const MomentumAttr at = { 0.9f, 0.5f, variant % 3 ? 0.01f : 0, variant % 2 ? MODE_NESTEROV : MODE_STANDARD };
    return sample_lists(b, rng, variant, OP_momentum, 1, &at);
}

/* clang-format off */
#define CARD(word, ask, onnx_name)                                                                                     \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = 3,                                                                                                   \
        .max_in = -1,                                                                                                  \
        .min_out = 1,                                                                                                  \
        .max_out = -1,                                                                                                 \
        .attrs = word##_attrs,                                                                                         \
        .infer = ask,                                                                                                  \
        .expand = expand_##word,                                                                                       \
        .sample = sample_##word,                                                                                       \
        .n_variants = 24,                                                                                              \
        .weight = 16,                                                                                                  \
        .access.kind = ACCESS_COMPOSITE,                                                                                           \
        .amp = { AMP_F, AMP_F, 0, REASON_SCHEMA, NULL },                                                               \
        .quant = { .in = { QUANT_FLOAT, QUANT_NEVER, QUANT_FLOAT }, .out = { QUANT_FLOAT } },                              \
        .onnx = { onnx_name, 1, "ai.onnx.preview.training" },                                                          \
    }
/* clang-format on */
CARD(adam, infer_two_states, "Adam");
CARD(adagrad, infer_one_state, "Adagrad");
CARD(momentum, infer_one_state, "Momentum");
#undef CARD
