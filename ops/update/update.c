#include "ops/update/update.h"

#include <math.h>

#include "base/number_text.h"

int update_states(const OpDef *def, const void *attr, const char *names[UPDATE_STATES])
{
    return def->states ? def->states(attr, names) : -1;
}

/* ---- the type ---- */

/* Operand i must be one number of that kind; false after a complaint. */
static bool infer_scalar(Infer *q, int i, bool is_float)
{
    const Type *t = infer_tensor(q, i);
    if (!t)
        return false;
    if (t->rank > 0 || (is_float ? !dtype_is_float(t->dtype) : t->dtype != I64))
        return infer_fail(q, "operand %d must be %s scalar, not %s", i, is_float ? "a float" : "an i64",
                          type_text(q->scratch, t)),
               false;
    return true;
}

/* Operand i must be floats in the shape of the parameter; null after a complaint. */
static const Type *infer_part(Infer *q, int i)
{
    const Type *t = infer_tensor(q, i), *x = q->in[UPDATE_PARAMETER];
    if (!t)
        return NULL;
    if (!dtype_is_float(t->dtype) || !type_agrees(type_with_dtype(q->types, t, x->dtype), x))
        return infer_fail(q, "operand %d is %s for a parameter %s", i, type_text(q->scratch, t),
                          type_text(q->scratch, x));
    return type_with_dtype(q->types, type_meet(q->types, type_with_dtype(q->types, t, x->dtype), x), t->dtype);
}

const Type *infer_update(Infer *q)
{
    const char *names[UPDATE_STATES];
    const Type *x = infer_tensor(q, UPDATE_PARAMETER), *results[1 + UPDATE_STATES] = { x };
    if (!x)
        return NULL;
    if (!dtype_is_float(x->dtype))
        return infer_fail(q, "trains floats, not %s", dtype_name(x->dtype));
    const int n = update_states(q->def, q->attr, names), given = q->n_in <= UPDATE_STATE ? 0 : q->n_in - UPDATE_STATE;
    if (given != n)
        return infer_fail(q, "keeps %d states with these attributes, not %d", n, given);
    if (!infer_part(q, UPDATE_GRADIENT) || !infer_scalar(q, UPDATE_LR, true) || !infer_scalar(q, UPDATE_STEP, false) ||
        (infer_has(q, UPDATE_SCALE) && !infer_scalar(q, UPDATE_SCALE, true)))
        return NULL;
    for (int i = 0; i < n; i++)
        if (!(results[1 + i] = infer_part(q, UPDATE_STATE + i)))
            return NULL;
    return infer_results(q, 1 + n, results);
}

/* ---- the expansion ---- */

bool update_open(Update *u, Build *b, const Site *s)
{
    if (!make_ready(b, s))
        return false;
    const DType t = make_width(s->in[UPDATE_PARAMETER]->type->dtype);
    *u = (Update){ .b = b, .type = t };
    u->x = make_cast(b, s->in[UPDATE_PARAMETER], t);
    u->g = make_cast(b, s->in[UPDATE_GRADIENT], t);
    u->lr = make_cast(b, s->in[UPDATE_LR], t);
    u->step = s->in[UPDATE_STEP];
    if (site_in(s, UPDATE_SCALE))
        u->g = CALL(b, mul, u->g, make_cast(b, s->in[UPDATE_SCALE], t));
    for (int i = UPDATE_STATE; i < s->n_in; i++)
        u->state[i - UPDATE_STATE] = make_cast(b, s->in[i], t);
    return b->status == OK;
}

Node *update_close(Update *u, const Site *s, Node *x, Node *const *states)
{
    Node *parts[1 + UPDATE_STATES] = { make_cast(u->b, x, s->in[UPDATE_PARAMETER]->type->dtype) };
    for (int i = 1; i < s->n_out; i++)
        parts[i] = make_cast(u->b, states[i - 1], s->in[UPDATE_STATE + i - 1]->type->dtype);
    return s->n_out == 1 || u->b->status != OK ? parts[0] : build_tuple(u->b, s->n_out, parts);
}

/* An attribute is a float, but 1 - 0.999 is not 1 - (float)0.999: that differs in the fifth digit. */
double update_decimal(float v)
{
    char text[NUMBER_TEXT];
    double number = v;
    const size_t n = f32_to_text(text, v);
    return f64_from_text(text, n, &number) ? number : v;
}

Node *update_number(Update *u, double v)
{
    return build_scalar(u->b, u->type, v);
}

Node *update_add(Update *u, Node *x, Node *y, double k)
{
    if (k == 0)
        return x;
    return CALL(u->b, add, x, k == 1 ? y : CALL(u->b, mul, y, update_number(u, k)));
}

Node *update_average(Update *u, Node *state, float keep, Node *value)
{
    const double k = update_decimal(keep);
    return update_add(u, CALL(u->b, mul, state, update_number(u, k)), value, 1 - k);
}

Node *update_average_square(Update *u, Node *state, float keep, Node *value)
{
    const double k = update_decimal(keep);
    Node *part = CALL(u->b, mul, CALL(u->b, mul, value, update_number(u, 1 - k)), value);
    return CALL(u->b, add, CALL(u->b, mul, state, update_number(u, k)), part);
}

/* 1 - keep^step = -(e^(step ln keep) - 1), and elu(x) is e^x - 1 below zero: exact to the last bits where the power
 * is close to 1, as it is in the first steps. */
Node *update_filled(Update *u, float keep)
{
    const double k = update_decimal(keep);
    if (k == 0)
        return update_number(u, 1);
    Node *x = CALL(u->b, mul, make_cast(u->b, u->step, u->type), update_number(u, log(k)));
    return CALL(u->b, neg, CALL(u->b, elu, x));
}

Node *update_first(Update *u, Node *a, Node *b)
{
    const int64_t one = 1;
    Tensor *t = tensor_new(u->b->graph->arena, type_scalar(&u->b->graph->ir->types, I64));
    tensor_set_i64(t, 0, one);
    return CALL(u->b, where, CALL(u->b, less_or_equal, u->step, build_const(u->b, t)), a, b);
}

/* ---- samples ---- */

Node *sample_update(Build *b, Rng *rng, int variant, Op op, const void *attr)
{
    static const DType dtypes[] = { F32, F64, F32, F16, F32, BF16 };
    const char *names[UPDATE_STATES];
    Node *in[UPDATE_STATE + UPDATE_STATES] = { NULL };
    int64_t dims[MAX_RANK];
    const int n = update_states(b->graph->ir->ops->defs[op], attr, names), rank = variant % 6;
    const DType dtype = dtypes[variant % (int)COUNT(dtypes)], wide = make_width(dtype);
    sample_dims(rng, rank, 4, dims);
    in[UPDATE_PARAMETER] = sample_tensor(b, rng, dtype, rank, dims, -2, 2);
    in[UPDATE_GRADIENT] = sample_tensor(b, rng, rng_below(rng, 2) ? dtype : wide, rank, dims, -2, 2);
    in[UPDATE_LR] = sample_tensor(b, rng, F32, 0, NULL, 0.001, 0.1);
    in[UPDATE_STEP] = sample_tensor(b, rng, I64, 0, NULL, 1, rng_below(rng, 2) ? 1 : 100);
    if (rng_below(rng, 2))
        in[UPDATE_SCALE] = sample_tensor(b, rng, F32, 0, NULL, 0.1, 1);
    for (int i = 0; i < n; i++) /* v, the mean of squares, exceeds the square of any mean */
        in[UPDATE_STATE + i] =
            sample_tensor(b, rng, wide, rank, dims, names[i][0] == 'v', names[i][0] == 'v' ? 2 : 0.9);
    const int n_in = n ? UPDATE_STATE + n : in[UPDATE_SCALE] ? UPDATE_STATE : UPDATE_SCALE;
    return build_node_n(b, op, attr, n_in, in, 1 + n);
}
