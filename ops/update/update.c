#include "ops/update/stored.h"

#include <math.h>

#include "base/number_text.h"
#include "ops/scalar.h"
#include "ops/update/blocks.h"

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
    const bool coded = i >= UPDATE_STATE && infer_has(q, i - UPDATE_STATE + UPDATE_STATE_SCALE);
    if ((!coded && !dtype_is_float(t->dtype)) || !type_agrees(type_with_dtype(q->types, t, x->dtype), x))
        return infer_fail(q, "operand %d is %s for a parameter %s", i, type_text(q->scratch, t),
                          type_text(q->scratch, x));
    return type_with_dtype(q->types, type_meet(q->types, type_with_dtype(q->types, t, x->dtype), x), t->dtype);
}

/* Whether exactly the states that the attributes ask for are there. */
static bool infer_states(Infer *q, int n)
{
    int given = 0;
    for (int i = 0; i < UPDATE_STATES; i++)
        given += infer_has(q, UPDATE_STATE + i);
    if (given == n && (n == 0 || infer_has(q, UPDATE_STATE + n - 1)))
        return true;
    return infer_fail(q, "keeps %d states with these attributes, not %d", n, given), false;
}

/* The next values, in the order of update_result; returns how many. */
static int list_results(Infer *q, int n, const Type **results)
{
    const UpdateForm *form = q->attr;
    const int64_t counts = UPDATE_COUNTS;
    int k = 1 + n;
    for (int i = UPDATE_X_SCALE; i < UPDATE_OPERANDS; i++)
        if (i != UPDATE_DRAW && infer_has(q, i))
            results[k++] = q->in[i];
    if (form->counts)
        results[k++] = type_tensor(q->types, I64, 1, &counts);
    return k;
}

const Type *infer_update(Infer *q)
{
    const char *names[UPDATE_STATES];
    const Type *x = infer_tensor(q, UPDATE_PARAMETER), *results[UPDATE_RESULTS] = { x };
    if (!x)
        return NULL;
    const int n = update_states(q->def, q->attr, names);
    if (!infer_states(q, n) || !infer_stored(q, n))
        return NULL;
    if (!infer_part(q, UPDATE_GRADIENT) || !infer_scalar(q, UPDATE_LR, true) || !infer_scalar(q, UPDATE_STEP, false) ||
        (infer_has(q, UPDATE_SCALE) && !infer_scalar(q, UPDATE_SCALE, true)))
        return NULL;
    for (int i = 0; i < n; i++)
        if (!(results[1 + i] = infer_part(q, UPDATE_STATE + i)))
            return NULL;
    return infer_results(q, list_results(q, n, results), results);
}

/* ---- the expansion ---- */

bool update_open(Update *u, Build *b, const Site *s, int (*states)(const void *attr, const char **names))
{
    const DType own = s->in[UPDATE_PARAMETER]->type->dtype, t = dtype_is_float(own) ? make_width(own) : F32;
    if (!make_ready(b, s))
        return false;
    *u = (Update){ .b = b, .type = t, .form = s->attr, .own = s->in[UPDATE_PARAMETER]->type };
    const int n = states(s->attr, u->names);
    u->x = stored_open(u, s);
    u->g = make_cast(b, s->in[UPDATE_GRADIENT], t);
    u->lr = make_cast(b, s->in[UPDATE_LR], t);
    u->step = s->in[UPDATE_STEP];
    if (site_in(s, UPDATE_SCALE))
        u->g = CALL(b, mul, u->g, make_cast(b, s->in[UPDATE_SCALE], t));
    for (int i = 0; i < n; i++)
        u->state[i] = stored_state_open(u, s, i);
    return b->status == OK;
}

bool update_decays_scale(const Update *u)
{
    return u->scale && u->form->scale_decay;
}

Node *update_decayed(Update *u, double decay)
{
    Build *b = u->b;
    Node *kept = CALL(b, sub, update_number(u, 1), CALL(b, mul, u->lr, update_number(u, decay)));
    if (!update_decays_scale(u))
        return CALL(b, mul, u->x, kept);
    u->scale = CALL(b, mul, u->scale, kept);
    return u->x = stored_number(u);
}

Node *update_close(Update *u, const Site *s, Node *x, Node *const *states)
{
    Node *by_operand[UPDATE_OPERANDS] = { NULL }, *parts[UPDATE_RESULTS];
    int n = 0;
    stored_close(u, s, x, by_operand);
    for (int i = UPDATE_STATE; i < UPDATE_X_SCALE && i < s->n_in; i++)
        if (s->in[i])
            by_operand[i] = stored_state_close(u, s, i - UPDATE_STATE, states[i - UPDATE_STATE],
                                               &by_operand[UPDATE_STATE_SCALE + i - UPDATE_STATE]);
    for (int i = 0; i < UPDATE_OPERANDS; i++)
        if (by_operand[i] && i != UPDATE_DRAW)
            parts[n++] = by_operand[i];
    if (u->form->counts)
        parts[n++] = by_operand[UPDATE_DRAW];
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

enum { PLAIN = 24, FORMS = 15 };

/* What is stored how: the parameter's codes and where its scales lie, then its states and their blocks. */
typedef struct StoredSample {
    DType dtype, state;
    UpdateForm form;
    int rank;
    int64_t dims[4], scales[4], blocks[4];
    bool zero;
} StoredSample;

/* clang-format off */
static const StoredSample stored_samples[FORMS] = {
    { .dtype = I8, .form = { .least = -127, .largest = 127 }, .rank = 2, .dims = { 3, 4 }, .scales = { 3, 1 } },
    { .dtype = I8, .form = { .least = -127, .largest = 127, .rounding = ROUND_SR, .sticky = true },
      .rank = 2, .dims = { 4, 3 }, .scales = { 1, 3 } },
    { .dtype = U4, .form = { .largest = 15, .rounding = ROUND_SR }, .rank = 2, .dims = { 2, 6 }, .scales = { 2, 2 },
      .zero = true },
    { .dtype = I4, .form = { .least = -7, .largest = 7, .counts = true }, .rank = 2, .dims = { 2, 6 },
      .scales = { 2, 2 } },
    { .dtype = BF16, .form = { .rounding = ROUND_SR, .counts = true }, .rank = 2, .dims = { 3, 4 } },
    { .dtype = F32, .state = U8, .rank = 2, .dims = { 3, 4 }, .blocks = { 3, 1 }, .form = { .block = 4 } },
    { .dtype = F32, .state = U4, .rank = 1, .dims = { 12 }, .blocks = { 3 }, .form = { .block = 5 } },
    { .dtype = BF16, .state = F8E4M3, .rank = 2, .dims = { 6, 2 }, .blocks = { 3, 2 }, .form = { .block = 2 } },
    { .dtype = I8, .state = U8, .rank = 4, .dims = { 2, 3, 1, 2 }, .scales = { 2, 1, 1, 1 }, .blocks = { 2, 2, 1, 1 },
      .form = { .least = -127, .largest = 127, .rounding = ROUND_SR, .counts = true, .block = 4 } },
    { .dtype = I8, .state = U8, .rank = 4, .dims = { 2, 3, 2, 1 }, .scales = { 1, 3, 1, 1 }, .blocks = { 3, 1, 1, 1 },
      .form = { .least = -127, .largest = 127, .scale_decay = true, .sticky = true, .block = 4 } },
    { .dtype = BF16, .state = U4, .form = { .rounding = ROUND_SR, .block = 4 }, .rank = 1, .dims = { 12 },
      .blocks = { 3 } },
    { .dtype = U4, .form = { .least = 1, .largest = 15, .counts = true }, .rank = 1, .dims = { 4 }, .scales = { 1 },
      .zero = true },
    { .dtype = F32, .state = U4, .rank = 2, .dims = { 5, 3 }, .blocks = { 2, 3 }, .form = { .block = 3 } },
    { .dtype = F32, .state = F8E4M3, .rank = 3, .dims = { 2, 5, 2 }, .blocks = { 2, 1, 2 }, .form = { .block = 8 } },
    { .dtype = F32, .state = U8, .rank = 3, .dims = { 2, 5, 2 }, .blocks = { 7, 1, 1 }, .form = { .block = 3 } },
};
/* clang-format on */

static Node *sample_state(Build *b, Rng *rng, DType dtype, int rank, const int64_t *dims, bool positive)
{
    if (dtype == U8 || dtype == U4)
        return sample_tensor(b, rng, dtype, rank, dims, 0, dtype == U8 ? 255 : 15);
    return sample_tensor(b, rng, dtype, rank, dims, positive, positive ? 2 : 0.9);
}

/* The operands behind the gradient of a call in few bits. */
static void sample_stored(Build *b, Rng *rng, const StoredSample *as, int n, const char *const *names, Node **in)
{
    if (as->zero)
        in[UPDATE_X_ZERO] = sample_tensor(b, rng, as->dtype, as->rank, as->scales, 1, 14);
    if (as->form.rounding == ROUND_SR)
        in[UPDATE_DRAW] = sample_tensor(b, rng, F32, as->rank, as->dims, 0, 1);
    if (as->scales[0])
        in[UPDATE_X_SCALE] = sample_tensor(b, rng, F32, as->rank, as->scales, 0.01, 0.1);
    for (int i = 0; i < n; i++) {
        const DType state = as->state ? as->state : F32;
        in[UPDATE_STATE + i] = sample_state(b, rng, state, as->rank, as->dims, names[i][0] == 'v');
        if (as->state)
            in[UPDATE_STATE_SCALE + i] = sample_tensor(b, rng, F32, as->rank, as->blocks, 0.1, 1);
    }
}

static Node *sample_form(Build *b, Rng *rng, int variant, Op op, const void *attr)
{
    const StoredSample *as = &stored_samples[variant - PLAIN];
    const OpDef *def = b->graph->ir->ops->defs[op];
    const char *names[UPDATE_STATES];
    Node *in[UPDATE_OPERANDS] = { NULL };
    UpdateForm *form = attrs_copy(b->graph->arena, def->attrs, attr);
    const AttrSpec *decoupled = attr_find(def->attrs, str("decoupled"));
    const int n = update_states(def, form, names);
    *form = as->form;
    if (decoupled && form->scale_decay)
        *(bool *)attr_at(decoupled, form) = true;
    form->scale_decay &= decoupled || def == &op_update_lion;
    const bool code = !dtype_is_float(as->dtype);
    in[UPDATE_PARAMETER] = sample_tensor(b, rng, as->dtype, as->rank, as->dims, code ? (double)form->least : -2,
                                         code ? (double)form->largest : 2);
    in[UPDATE_GRADIENT] = sample_tensor(b, rng, F32, as->rank, as->dims, -2, 2);
    in[UPDATE_LR] = sample_tensor(b, rng, F32, 0, NULL, 0.001, 0.1);
    in[UPDATE_STEP] = sample_tensor(b, rng, I64, 0, NULL, 1, rng_below(rng, 2) ? 1 : 100);
    sample_stored(b, rng, as, n, names, in);
    return build_node_n(b, op, form, UPDATE_OPERANDS, in, update_results(form, n, UPDATE_OPERANDS, in));
}

Node *sample_update(Build *b, Rng *rng, int variant, Op op, const void *attr)
{
    static const DType dtypes[] = { F32, F64, F32, F16, F32, BF16 };
    const char *names[UPDATE_STATES];
    Node *in[UPDATE_STATE + UPDATE_STATES] = { NULL };
    int64_t dims[MAX_RANK];
    if (variant >= PLAIN)
        return sample_form(b, rng, variant, op, attr);
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
