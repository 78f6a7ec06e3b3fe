#include "ops/update/stored.h"

#include "ops/quant/quantize.h"
#include "ops/scalar.h"
#include "ops/update/blocks.h"

#define EXACT_SUM (1 << 24) /* so many ones are an f32 */
#define STICKY    (120.0 / 127)

const char *const update_roundings[] = { "rne", "sr", NULL };

/* ---- grains ---- */

/* A parameter whose dimensions are cut where a scale serves a part of one. */
typedef struct Grain {
    int rank, n_shared;
    int64_t dims[MAX_RANK], scales[MAX_RANK], shared[MAX_RANK]; /* shared: dimensions in which all have one scale */
} Grain;

static bool grain_of(const Type *x, const Type *scale, Grain *g)
{
    *g = (Grain){ 0 };
    for (int i = 0; i < x->rank; i++) {
        const int64_t n = x->dims[i], k = scale->dims[i];
        const bool whole = k == 1 || k == n;
        if (g->rank + 1 + !whole > MAX_RANK || (!whole && (k < 1 || n % k != 0)))
            return false;
        if (!whole) {
            g->dims[g->rank] = g->scales[g->rank] = k;
            g->rank++;
        }
        if (n != k)
            g->shared[g->n_shared++] = g->rank;
        g->dims[g->rank] = whole ? n : n / k;
        g->scales[g->rank++] = whole ? k : 1;
    }
    return true;
}

/* ---- types ---- */

/* Operand i must be of that type and have the shape of `like`; false after a complaint. */
static bool infer_like(Infer *q, int i, DType dtype, const Type *like)
{
    const Type *t = infer_tensor(q, i), *want = type_with_dtype(q->types, like, dtype);
    if (t && !type_agrees(t, want))
        infer_fail(q, "operand %d must be %s, not %s", i, type_text(q->scratch, want), type_text(q->scratch, t));
    return t && type_agrees(t, want);
}

/* The scale of a parameter of codes. */
static bool infer_scale(Infer *q, const Type *x)
{
    const Type *scale = infer_tensor(q, UPDATE_X_SCALE);
    Grain grain;
    if (!scale)
        return false;
    if (scale->dtype == F32 && scale->rank == x->rank && (!type_known(scale) || !type_known(x)))
        return true;
    if (scale->dtype != F32 || scale->rank != x->rank || !grain_of(x, scale, &grain))
        return infer_fail(q, "%s are no scales of %s", type_text(q->scratch, scale), type_text(q->scratch, x)), false;
    return true;
}

static bool infer_codes(Infer *q, const UpdateForm *form, const Type *x)
{
    const bool zero = infer_has(q, UPDATE_X_ZERO);
    if (dtype_is_float(x->dtype) || !dtype_is_integer(x->dtype))
        return infer_fail(q, "a scale belongs to codes, not to %s", dtype_name(x->dtype)), false;
    if (form->largest - form->least < 2 || (!zero && form->least != -form->largest))
        return infer_fail(q, "codes from %lld to %lld have no scale%s", (long long)form->least,
                          (long long)form->largest, zero ? "" : " without a zero point"),
               false;
    if (form->sticky && zero)
        return infer_fail(q, "a scale with a zero point is not sticky"), false;
    return infer_code_limits(q, x->dtype, form->least, form->largest) && infer_scale(q, x) &&
           (!zero || infer_like(q, UPDATE_X_ZERO, x->dtype, q->in[UPDATE_X_SCALE]));
}

bool update_decays_apart(const OpDef *def, const void *attr)
{
    const AttrSpec *spec = attr_find(def->attrs, str("decoupled"));
    return spec ? *(const bool *)attr_at(spec, attr) : def == &op_update_lion;
}

static bool infer_parameter(Infer *q, const UpdateForm *form, const Type *x)
{
    const bool coded = infer_has(q, UPDATE_X_SCALE), draws = infer_has(q, UPDATE_DRAW), narrow = x->dtype == BF16;
    if (coded && !infer_codes(q, form, x))
        return false;
    if (!coded && !dtype_is_float(x->dtype))
        return infer_fail(q, "trains floats, and codes that have a scale, not %s", dtype_name(x->dtype)), false;
    if (!coded && (infer_has(q, UPDATE_X_ZERO) || form->sticky || form->scale_decay || form->least || form->largest))
        return infer_fail(q, "says of codes what a parameter of %s does not have", dtype_name(x->dtype)), false;
    if (form->scale_decay && !update_decays_apart(q->def, q->attr))
        return infer_fail(q, "has no weight decay apart from the gradient that a scale could take"), false;
    if ((form->rounding == ROUND_SR) != draws || (draws && !coded && !narrow))
        return infer_fail(q, draws ? "draws for rounding=sr of codes and of bf16 alone"
                                   : "rounding=sr wants a draw for each element"),
               false;
    if (form->counts && !coded && !narrow)
        return infer_fail(q, "counts codes, and bf16, not %s", dtype_name(x->dtype)), false;
    return !draws || infer_like(q, UPDATE_DRAW, F32, x);
}

bool infer_stored(Infer *q, int n_states)
{
    if (!infer_parameter(q, q->attr, q->in[UPDATE_PARAMETER]))
        return false;
    return infer_state_scales(q, n_states);
}

/* ---- results ---- */

bool update_is_plain(const Node *n)
{
    return n->n_in <= UPDATE_X_SCALE;
}

static bool has(int n_in, Node *const *in, int operand)
{
    return operand < n_in && in[operand];
}

int update_result(const UpdateForm *form, int n_states, int n_in, Node *const *in, int operand)
{
    static const int order[] = { UPDATE_X_SCALE, UPDATE_X_ZERO, UPDATE_STATE_SCALE, UPDATE_STATE_SCALE + 1,
                                 UPDATE_STATE_SCALE + 2 };
    int at = 1 + n_states;
    if (operand == UPDATE_PARAMETER)
        return 0;
    if (operand >= UPDATE_STATE && operand < UPDATE_STATE + n_states)
        return 1 + operand - UPDATE_STATE;
    for (size_t i = 0; i < COUNT(order); i++) {
        if (order[i] == operand)
            return has(n_in, in, operand) ? at : -1;
        at += has(n_in, in, order[i]);
    }
    return operand == UPDATE_DRAW && form->counts ? at : -1;
}

int update_results(const UpdateForm *form, int n_states, int n_in, Node *const *in)
{
    const UpdateForm counting = { .counts = true };
    return update_result(&counting, n_states, n_in, in, UPDATE_DRAW) + form->counts;
}

/* ---- the parameter ---- */

static Node *like(Build *b, Node *x, const Type *type)
{
    return make_shaped(b, x, type->rank, type->dims);
}

/* A reduction over what shares a scale. */
static Node *reduced(Build *b, Op op, const Grain *g, Node *x)
{
    return g->n_shared ? build_reduce(b, op, x, g->n_shared, g->shared) : x;
}

Node *stored_number(const Update *u)
{
    return like(u->b, CALL(u->b, mul, u->codes, u->scale), u->own);
}

Node *stored_open(Update *u, const Site *s)
{
    Build *b = u->b;
    Node *x = s->in[UPDATE_PARAMETER], *zero = site_in(s, UPDATE_X_ZERO);
    Grain g;
    if (!site_in(s, UPDATE_X_SCALE))
        return make_cast(b, x, u->type);
    (void)grain_of(x->type, s->in[UPDATE_X_SCALE]->type, &g);
    u->codes = make_shaped(b, make_cast(b, x, F32), g.rank, g.dims);
    if (zero)
        u->codes = CALL(b, sub, u->codes, make_shaped(b, make_cast(b, zero, F32), g.rank, g.scales));
    u->scale = make_shaped(b, s->in[UPDATE_X_SCALE], g.rank, g.scales);
    return stored_number(u);
}

static Node *bounded(Update *u, Node *x, double least, double most)
{
    return CALL(u->b, clip, x, update_number(u, least), update_number(u, most));
}

/* The scale of codes around 0: the largest number has the largest code, to the last bit of a division.  With 127.5 instead
 * of 127 it would have none, and shrink a little at every step. */
static Node *symmetric_scale(Update *u, const Grain *g, Node *x)
{
    Build *b = u->b;
    const double largest = (double)u->form->largest;
    Node *most = reduced(b, OP_reduce_max, g, CALL(b, abs, x));
    Node *fresh = CALL(b, max, CALL(b, div, most, update_number(u, largest)), update_number(u, UPDATE_LEAST_SCALE));
    if (!u->form->sticky)
        return fresh;
    Node *reach = CALL(b, mul, u->scale, update_number(u, largest));
    Node *low = CALL(b, mul, u->scale, update_number(u, largest * STICKY));
    Node *stays = CALL(b, and, CALL(b, less_or_equal, most, reach), CALL(b, less_or_equal, low, most));
    return CALL(b, where, stays, u->scale, fresh);
}

/* 0 where `code` is that end of the codes, else what a step has to be for `number` to reach it from there. */
static Node *step_to(Update *u, Node *number, Node *code, double end)
{
    Build *b = u->b;
    Node *at = update_number(u, end);
    return CALL(b, where, CALL(b, equal, code, at), update_number(u, 0), CALL(b, div, number, CALL(b, sub, at, code)));
}

/* Scale and code of 0 of codes from least to largest: the code is the nearest to where 0 lies among the numbers, and the
 * scale lets both ends have codes, so that none is cut off and shrinks. */
static Node *affine_scale(Update *u, const Grain *g, Node *x, Node **zero)
{
    Build *b = u->b;
    const double least = (double)u->form->least, largest = (double)u->form->largest;
    Node *none = update_number(u, 0), *tiny = update_number(u, UPDATE_LEAST_SCALE);
    Node *low = CALL(b, min, reduced(b, OP_reduce_min, g, x), none),
         *high = CALL(b, max, reduced(b, OP_reduce_max, g, x), none);
    Node *each = CALL(b, div, CALL(b, sub, high, low), update_number(u, largest - least));
    Node *z = CALL(b, sub, update_number(u, least), CALL(b, div, low, CALL(b, max, each, tiny)));
    z = bounded(u, CALL(b, round, z), least, largest);
    z = CALL(b, where, CALL(b, less, low, none), CALL(b, max, z, update_number(u, least + 1)), z);
    z = CALL(b, where, CALL(b, less, none, high), CALL(b, min, z, update_number(u, largest - 1)), z);
    *zero = z;
    Node *down = step_to(u, low, z, least), *up = step_to(u, high, z, largest);
    return CALL(b, max, CALL(b, max, down, up), tiny);
}

/* Rounded to an integer as the form says. */
static Node *rounded(Update *u, Node *v, Node *draw)
{
    Build *b = u->b;
    if (u->form->rounding == ROUND_RNE)
        return CALL(b, round, v);
    Node *low = CALL(b, floor, v);
    return CALL(b, add, low, build_cast(b, CALL(b, less, draw, CALL(b, sub, v, low)), F32));
}

/* How often a condition holds, as a vector of one: added up as floats, exactly, along what shares a scale, so that this is
 * done where the codes are made, and from there on as integers. */
static Node *times(Build *b, const Grain *g, Node *condition)
{
    const int64_t one = 1;
    Node *n = build_cast(b, reduced(b, OP_reduce_sum, g, build_cast(b, condition, F32)), I64);
    return make_reshape(b, make_reduce_all(b, OP_reduce_sum, n), 1, &one);
}

/* The counts, from where the number stayed, was to move by less than half a step or not at all, and kept its code. */
static Node *counted(Build *b, const Grain *g, Node *stayed, Node *near, Node *kept)
{
    const int64_t n = type_elements(kept->type), one = 1;
    Tensor *all = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, I64, 1, &one));
    tensor_set_i64(all, 0, n);
    Node *of = build_const(b, all), *still = times(b, g, stayed);
    Node *parts[UPDATE_COUNTS] = { [COUNT_UPDATES] = CALL(b, sub, of, still),
                                   [COUNT_BELOW] = CALL(b, sub, times(b, g, near), still),
                                   [COUNT_CHANGED] = CALL(b, sub, of, times(b, g, kept)) };
    return make_concat(b, 0, UPDATE_COUNTS, parts);
}

/* What became of a bf16 parameter: `to` is its next value. */
static Node *counted_narrow(Update *u, Node *x, Node *to)
{
    Build *b = u->b;
    Grain g = { 0 };
    const Type *t = x->type;
    if (t->rank && t->dims[t->rank - 1] <= EXACT_SUM)
        g.shared[g.n_shared++] = t->rank - 1;
    Node *nearest = make_cast(b, make_cast(b, x, BF16), F32), *now = make_cast(b, to, F32);
    return counted(b, &g, CALL(b, equal, x, u->x), CALL(b, equal, nearest, u->x), CALL(b, equal, now, u->x));
}

static Node *counted_codes(Update *u, const Grain *g, Node *x, Node *scale, Node *codes, Node *zero)
{
    Build *b = u->b;
    Node *from = CALL(b, mul, u->codes, u->scale), *way = CALL(b, abs, CALL(b, sub, x, from));
    Node *near = CALL(b, less, way, CALL(b, mul, scale, update_number(u, 0.5)));
    Grain exact = *g; /* a part of it whose sums floats hold */
    int64_t sum = 1;
    exact.n_shared = 0;
    for (int i = 0; i < g->n_shared; i++)
        if ((sum *= g->dims[g->shared[i]]) <= EXACT_SUM)
            exact.shared[exact.n_shared++] = g->shared[i];
    Node *before = zero ? CALL(b, add, u->codes, zero) : u->codes;
    return counted(b, &exact, CALL(b, equal, x, from), near, CALL(b, equal, codes, before));
}

static void close_codes(Update *u, const Site *s, Node *x, Node **results)
{
    Build *b = u->b;
    const UpdateForm *form = u->form;
    const Type *type = s->in[UPDATE_PARAMETER]->type, *of_scale = s->in[UPDATE_X_SCALE]->type;
    Node *draw = site_in(s, UPDATE_DRAW), *old = site_in(s, UPDATE_X_ZERO), *zero = NULL;
    Grain g;
    (void)grain_of(type, of_scale, &g);
    x = make_shaped(b, x, g.rank, g.dims);
    Node *scale = old ? affine_scale(u, &g, x, &zero) : symmetric_scale(u, &g, x);
    Node *raw = rounded(u, CALL(b, div, x, scale), draw ? make_shaped(b, draw, g.rank, g.dims) : NULL);
    raw = zero ? CALL(b, add, raw, zero) : raw;
    Node *codes = bounded(u, raw, (double)form->least, (double)form->largest);
    results[0] = build_cast(b, like(b, codes, type), type->dtype);
    results[UPDATE_X_SCALE] = like(b, scale, of_scale);
    if (zero)
        results[UPDATE_X_ZERO] = build_cast(b, like(b, zero, of_scale), type->dtype);
    if (form->counts && old)
        old = make_shaped(b, make_cast(b, old, F32), g.rank, g.scales);
    if (form->counts)
        results[UPDATE_DRAW] = counted_codes(u, &g, x, scale, codes, old);
}

void stored_close(Update *u, const Site *s, Node *x, Node **results)
{
    const DType dtype = s->in[UPDATE_PARAMETER]->type->dtype;
    if (u->scale) {
        close_codes(u, s, x, results);
        return;
    }
    Node *to = u->form->rounding == ROUND_SR ? CALL(u->b, stochastic_bf16, x, s->in[UPDATE_DRAW]) : x;
    results[0] = make_cast(u->b, to, dtype);
    if (u->form->counts)
        results[UPDATE_DRAW] = counted_narrow(u, x, results[0]);
}
