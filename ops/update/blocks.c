#include "ops/update/blocks.h"

#include <inttypes.h>

#include "ops/scalar.h"

/* Scales of states are above that, as torchao's are. */
#define LEAST_STATE_SCALE 1e-12
#define LARGEST_F8        448.0

/* ---- which elements share a scale ---- */

bool blocks_of(const Type *x, const Type *scale, int64_t block, Blocks *to)
{
    int first = 0, last;
    if (x->rank < 1 || scale->rank != x->rank || block < 1)
        return false;
    while (first < x->rank - 1 && scale->dims[first] == x->dims[first])
        first++;
    for (last = first; last < x->rank - 1 && scale->dims[last + 1] == 1;)
        last++;
    *to = (Blocks){ 1, 1, 1, block, scale->dims[first] };
    for (int i = 0; i < x->rank; i++) {
        *(i < first ? &to->before : i > last ? &to->after : &to->n) *= x->dims[i];
        if (i > last && scale->dims[i] != x->dims[i])
            return false;
    }
    return to->count == to->n / block + (to->n % block != 0);
}

/* ---- types ---- */

bool is_state_code(DType d)
{
    return d == U8 || d == U4 || d == F8E4M3;
}

static bool infer_state_scale(Infer *q, int i)
{
    const Type *x = infer_tensor(q, UPDATE_STATE + i), *scale = infer_tensor(q, UPDATE_STATE_SCALE + i);
    const UpdateForm *form = q->attr;
    Blocks blocks;
    if (!x || !scale)
        return false;
    if (!is_state_code(x->dtype) || q->in[UPDATE_PARAMETER]->dtype == F64)
        return infer_fail(q, "keeps no state of %s with a scale", dtype_name(x->dtype)), false;
    if (scale->dtype == F32 && (!type_known(x) || !type_known(scale)))
        return true;
    if (scale->dtype != F32 || !blocks_of(x, scale, form->block, &blocks))
        return infer_fail(q, "%s are no scales of %s in blocks of %" PRId64, type_text(q->scratch, scale),
                          type_text(q->scratch, x), form->block),
               false;
    return true;
}

bool infer_state_scales(Infer *q, int n_states)
{
    for (int i = 0; i < UPDATE_STATES; i++) {
        if (!infer_has(q, UPDATE_STATE_SCALE + i))
            continue;
        if (i >= n_states)
            return infer_fail(q, "has a scale of a state that it does not keep"), false;
        if (!infer_state_scale(q, i))
            return false;
    }
    return true;
}

/* ---- numbers ---- */

/* The levels of a state's codes. */
static LevelsAttr levels_of(const char *name, DType code)
{
    const bool positive = name[0] == 'v';
    return (LevelsAttr){ code == U8 ? (positive ? LEVELS_UNSIGNED8 : LEVELS_DYNAMIC8)
                                    : (positive ? LEVELS_LINEAR4 : LEVELS_DYNAMIC4) };
}

/* How many elements the last block lacks. */
static int64_t lacking(const Blocks *g)
{
    return g->count * g->size - g->n;
}

/* A block is shorter than it may be where there is but one. */
static Blocks tightened(Blocks g)
{
    if (g.count == 1)
        g.size = g.n;
    return g;
}

/* A value as [before, count, size, after], zeros behind a block that is shorter. */
static Node *in_blocks(Build *b, const Blocks *g, Node *x)
{
    const int64_t flat[] = { g->before, g->n, g->after }, dims[] = { g->before, g->count, g->size, g->after };
    const int64_t none[] = { 0, 0, 0 }, behind[] = { 0, lacking(g), 0 };
    x = make_shaped(b, x, COUNT(flat), flat);
    if (lacking(g))
        x = make_pad(b, x, COUNT(flat), none, behind);
    return make_shaped(b, x, COUNT(dims), dims);
}

/* The same back in a shape, without those zeros. */
static Node *out_of_blocks(Build *b, const Blocks *g, Node *x, const Type *type)
{
    const int64_t padded[] = { g->before, g->count * g->size, g->after };
    if (lacking(g))
        x = make_slice(b, make_shaped(b, x, COUNT(padded), padded), 1, 0, g->n, 1);
    return make_shaped(b, x, type->rank, type->dims);
}

static Node *beside_blocks(Build *b, const Blocks *g, Node *scale)
{
    const int64_t dims[] = { g->before, g->count, 1, g->after };
    return make_shaped(b, scale, COUNT(dims), dims);
}

Node *stored_state_open(Update *u, const Site *s, int i)
{
    Build *b = u->b;
    Node *x = s->in[UPDATE_STATE + i], *scale = site_in(s, UPDATE_STATE_SCALE + i);
    Blocks g;
    if (!scale)
        return make_cast(b, x, u->type);
    (void)blocks_of(x->type, scale->type, u->form->block, &g);
    g = tightened(g);
    const LevelsAttr levels = levels_of(u->names[i], x->type->dtype);
    Node *number = build_cast(b, x, F32);
    if (x->type->dtype != F8E4M3)
        number = CALL_ATTR(b, level, levels, number);
    number = CALL(b, mul, in_blocks(b, &g, number), beside_blocks(b, &g, scale));
    return out_of_blocks(b, &g, number, x->type);
}

Node *state_rounded(Build *b, const char *name, int64_t block, const Type *type, const Type *of_scale, Node *x,
                    Node **scale)
{
    const int64_t within = 2;
    Blocks g;
    (void)blocks_of(type, of_scale, block, &g);
    g = tightened(g);
    const LevelsAttr levels = levels_of(name, type->dtype);
    Node *blocks = in_blocks(b, &g, x);
    Node *most = build_reduce(b, OP_reduce_max, CALL(b, abs, blocks), 1, &within);
    most = CALL(b, max, most, build_scalar(b, F32, LEAST_STATE_SCALE));
    if (type->dtype == F8E4M3)
        most = CALL(b, div, most, build_scalar(b, F32, LARGEST_F8));
    Node *v = CALL(b, div, blocks, most);
    if (type->dtype != F8E4M3)
        v = CALL_ATTR(b, nearest_level, levels, v);
    *scale = make_shaped(b, most, of_scale->rank, of_scale->dims);
    return build_cast(b, out_of_blocks(b, &g, v, type), type->dtype);
}

Node *stored_state_close(Update *u, const Site *s, int i, Node *x, Node **scale)
{
    const Node *old = site_in(s, UPDATE_STATE_SCALE + i);
    const Type *type = s->in[UPDATE_STATE + i]->type;
    if (!old)
        return make_cast(u->b, x, type->dtype);
    return state_rounded(u->b, u->names[i], u->form->block, type, old->type, x, scale);
}

/* ---- seen from outside ---- */

void state_numbers(const char *name, int64_t block, const Tensor *codes, const Tensor *scale, float *numbers)
{
    const LevelsAttr levels = levels_of(name, codes->type->dtype);
    const bool is_float = codes->type->dtype == F8E4M3;
    Blocks g;
    (void)blocks_of(codes->type, scale->type, block, &g);
    for (int64_t i = 0; i < tensor_elements(codes); i++) {
        const int64_t at = i / g.after / g.n, along = i / g.after % g.n / g.size;
        const float code = (float)tensor_get_f64(codes, i),
                    of = is_float ? code : level_f32(code, (float)levels.levels);
        numbers[i] = of * (float)tensor_get_f64(scale, (at * g.count + along) * g.after + i % g.after);
    }
}
