/* What picks among codes: frames around them, extremes along axes, and where those are. */
#include <inttypes.h>

#include "codegen/source/c_parts.h"
#include "ops/card/reduction.h"
#include "ops/card/shapes.h"
#include "ops/fold/fold_access.h"
#include "ops/move/pad.h"

static const char *const places[] = { "g", "h", "i", "j", "k", "m", "o", "p", "q", "r", "t", "u", "b", "c", "d", "e" };

/* A call that picks among codes, and what its result is. */
typedef struct Pick {
    const Node *result, *call, *codes; /* the result is the call itself, or what quantizes it again */
    const char *name, *table;          /* table: of what each code becomes; null: it stays as it is */
} Pick;

bool c_picks(const Node *n)
{
    return n->op == OP_pad || n->op == OP_reduce_max || n->op == OP_reduce_min || n->op == OP_global_max_pool;
}

/* What becomes of the code at an index. */
static const char *picked(CSource *s, const Pick *p, const char *index)
{
    if (!p->table)
        return arena_printf(s->arena, "x[%s]", index);
    return arena_printf(s->arena, "%s[%sx[%s]]", p->table, p->codes->type->dtype == I8 ? "(uint8_t)" : "", index);
}

static void open_function(CSource *s, const Pick *p, const char *remark)
{
    c_function(
        s, p->name, p->result, 1, &p->codes,
        arena_printf(s->arena, "%s of %s to %s", remark, c_shape(s, p->codes->type), c_shape(s, p->result->type)));
}

static void close_function(CSource *s, const Pick *p)
{
    c_close_to(s, 0);
    c_call(s, p->name, 2, (const Node *const[]){ p->codes, p->result });
}

/* The table of a quantizer behind a dequantizer; none where every code stays as it is. */
static Status find_changes(CSource *s, Pick *p)
{
    int64_t table[256];
    bool same = p->codes->type->dtype == p->result->type->dtype;
    if (p->result == p->call)
        return OK;
    TRY(c_requantized(s, p->result, in(p->call, 0), table));
    for (int i = 0; i < 256; i++)
        same = same && table[i] == (p->codes->type->dtype == I8 ? (int8_t)i : i);
    if (same)
        return OK;
    p->table = c_name(s, arena_printf(s->arena, "%s_codes", p->name));
    text_add(&s->code, "\n");
    c_table(s, p->table, c_type(p->result->type->dtype), 256, table);
    return OK;
}

static Status is_computed(const Node *call)
{
    return c_refuse(call, "what it picks by is computed", NULL);
}

/* ---- frames ---- */

/* What stands before each axis, where data begin that are kept, and how many they are. */
typedef struct Frame {
    int64_t before[MAX_RANK], low[MAX_RANK], left[MAX_RANK];
} Frame;

static bool find_frame(CSource *s, const Node *n, Frame *f)
{
    const Type *x = in(n, 0)->type;
    const Tensor *pads = c_constant(s, in(n, 1)), *axes = n->n_in > 3 ? c_constant(s, in(n, 3)) : NULL;
    if (!pads || (n->n_in > 3 && in(n, 3) && !axes))
        return false;
    const int64_t count = tensor_elements(pads) / 2;
    for (int d = 0; d < x->rank; d++)
        f->before[d] = f->low[d] = 0, f->left[d] = x->dims[d];
    for (int64_t i = 0; i < count; i++) {
        const int d = axis_wrap(axes ? tensor_get_i64(axes, i) : i, x->rank);
        const int64_t before = tensor_get_i64(pads, i), after = tensor_get_i64(pads, count + i);
        f->before[d] = before > 0 ? before : 0;
        f->low[d] = before < 0 ? -before : 0;
        f->left[d] = x->dims[d] - f->low[d] + (after < 0 ? after : 0);
    }
    return true;
}

/* The code of what a frame is filled with. */
static Status find_fill(CSource *s, const Pick *p, int64_t *fill)
{
    const Node *value = p->call->n_in > 2 ? in(p->call, 2) : NULL;
    const Tensor *t = c_constant(s, value), *code = NULL;
    if (value && !t)
        return is_computed(p->call);
    if (p->result == p->call) {
        *fill = t ? tensor_get_i64(t, 0) : 0;
        return OK;
    }
    Tensor *number = tensor_new(s->arena, type_vector(&s->g->ir->types, F32, 1));
    tensor_set_f64(number, 0, t ? tensor_get_f64(t, 0) : 0);
    const Tensor *ins[] = { number, c_constant(s, in(p->result, 1)), c_constant(s, in(p->result, 2)) };
    TRY(c_evaluate(s, p->result, ins, &code));
    *fill = tensor_get_i64(code, 0);
    return OK;
}

static Status print_frame(CSource *s, const Pick *p)
{
    const Type *x = p->codes->type, *y = p->result->type;
    CAxis from[MAX_RANK], to[MAX_RANK];
    Frame f;
    int64_t fill;
    if (!find_frame(s, p->call, &f))
        return is_computed(p->call);
    TRY(find_fill(s, p, &fill));
    open_function(s, p, "a frame");
    c_loop(s, "i", type_elements(y));
    c_line(s, "y[%s] = %" PRId64 ";", type_elements(y) == 1 ? "0" : "i", fill);
    c_close_to(s, 1);
    bool any = type_elements(x) > 0;
    for (int d = 0; d < x->rank; d++)
        any = any && f.left[d] > 0;
    for (int d = 0; d < x->rank && any; d++) {
        const char *at = f.left[d] == 1 ? NULL : places[d];
        const int64_t offsets[] = { f.low[d], f.before[d] };
        CAxis *const axes[] = { &from[d], &to[d] };
        c_loop(s, places[d], f.left[d]);
        for (int i = 0; i < 2; i++) {
            const char *index = !at          ? arena_printf(s->arena, "%" PRId64, offsets[i])
                                : offsets[i] ? arena_printf(s->arena, "%s + %" PRId64, at, offsets[i])
                                             : at;
            *axes[i] = (CAxis){ index, i ? y->dims[d] : x->dims[d] };
        }
    }
    if (any)
        c_line(s, "y[%s] = %s;", c_index(s, x->rank, to), picked(s, p, c_index(s, x->rank, from)));
    close_function(s, p);
    return OK;
}

/* A frame of what lies within: a table says which. */
static Status print_mirrored(CSource *s, const Pick *p)
{
    const Type *x = type_with_dtype(&s->g->ir->types, p->codes->type, I32);
    const int64_t count = type_elements(p->result->type);
    Tensor *numbers = tensor_new(s->arena, x);
    const Tensor *ins[4] = { numbers, c_constant(s, in(p->call, 1)), NULL,
                             p->call->n_in > 3 ? c_constant(s, in(p->call, 3)) : NULL },
                 *y = NULL;
    Frame f;
    if (!find_frame(s, p->call, &f))
        return is_computed(p->call);
    for (int64_t i = 0; i < type_elements(x); i++)
        tensor_set_i64(numbers, i, i);
    TRY(c_evaluate(s, p->call, ins, &y));
    const int64_t *sources = c_integers(s, y);
    const char *table = c_name(s, arena_printf(s->arena, "%s_from", p->name));
    text_add(&s->code, "\n");
    c_table(s, table, c_smallest(count, sources), count, sources);
    open_function(s, p, "a frame of itself,");
    c_loop(s, "i", count);
    const char *i = count == 1 ? "0" : "i";
    c_line(s, "y[%s] = %s;", i, picked(s, p, arena_printf(s->arena, "%s[%s]", table, i)));
    close_function(s, p);
    return OK;
}

/* ---- extremes ---- */

static bool find_mask(CSource *s, const Node *n, uint32_t *mask)
{
    const int rank = in(n, 0)->type->rank;
    *mask = 0;
    if (n->op == OP_global_max_pool) {
        for (int d = 2; d < rank; d++)
            *mask |= 1u << d;
        return true;
    }
    const Node *axes = n->n_in > 1 ? in(n, 1) : NULL;
    const Tensor *t = c_constant(s, axes);
    if (axes && !t)
        return false;
    *mask = reduce_mask(n->attr, rank, t ? tensor_elements(t) : 0, t ? c_integers(s, t) : NULL);
    return true;
}

static Status print_extremes(CSource *s, const Pick *p)
{
    const Type *x = p->codes->type;
    const bool least = p->call->op == OP_reduce_min;
    const int64_t count = type_elements(p->result->type);
    CAxis from[MAX_RANK], to[MAX_RANK];
    uint32_t mask;
    double lo, hi;
    int kept = 0;
    if (!find_mask(s, p->call, &mask))
        return is_computed(p->call);
    code_range(p->result->type->dtype, &lo, &hi);
    open_function(s, p, least ? "the least" : "the largest");
    c_loop(s, "i", count);
    c_line(s, "y[%s] = %.0f;", count == 1 ? "0" : "i", least ? hi : lo);
    c_close_to(s, 1);
    for (int d = 0; d < x->rank; d++) {
        from[d] = (CAxis){ places[d], x->dims[d] };
        c_loop(s, places[d], x->dims[d]);
        if (!(mask >> d & 1))
            to[kept++] = from[d];
    }
    const char *at = c_index(s, kept, to), *v = picked(s, p, c_index(s, x->rank, from));
    c_open(s, "if (%s %s y[%s]) {", v, least ? "<" : ">", at);
    c_line(s, "y[%s] = %s;", at, v);
    close_function(s, p);
    return OK;
}

Status c_print_pick(CSource *s, const Node *result, const Node *call)
{
    Pick p = { .result = result, .call = call, .codes = result == call ? in(call, 0) : in(in(call, 0), 0) };
    if (p.codes->type->dtype != U8 && p.codes->type->dtype != I8)
        return c_refuse(call, "it picks among what are no codes of 8 bits", NULL);
    p.name = c_name(s, c_text_of(s, result));
    TRY(find_changes(s, &p));
    if (call->op != OP_pad)
        return print_extremes(s, &p);
    return ((const PadAttr *)call->attr)->mode == PAD_CONSTANT ? print_frame(s, &p) : print_mirrored(s, &p);
}

/* ---- where extremes are ---- */

/* What is compared: codes, or sums times the scale of each column as f32 has them, times a power of two. */
static Status find_keys(CSource *s, const Node *n, int count, const f32 *scales, const char *name, int axis,
                        const char **multiplier)
{
    enum { MOST_APART = 7 }; /* of shifts, so that what is compared stays in 64 bits */
    const Type *x = in(n, 0)->type;
    int64_t *v = NEWS(s->arena, int64_t, (size_t)count + 1);
    CFixed *f = NEWS(s->arena, CFixed, (size_t)count + 1);
    int most = INT32_MIN;
    if (count > 1 && (axis != x->rank - 1 || x->dims[axis] != count))
        return c_refuse(n, "its columns have scales of their own, and it does not compare those", NULL);
    for (int64_t i = 0; i < count; i++) {
        f[i] = c_fixed(scales[i]);
        most = f[i].shift > most ? f[i].shift : most;
    }
    for (int64_t i = 0; i < count; i++) {
        if (most - f[i].shift > MOST_APART || f[i].m <= 0)
            return c_refuse(n, "its scales are too far apart", NULL);
        v[i] = f[i].m * ((int64_t)1 << (most - f[i].shift));
    }
    if (count == 1) {
        *multiplier = arena_printf(s->arena, "INT64_C(%" PRId64 ")", v[0]);
        return OK;
    }
    const char *table = c_name(s, arena_printf(s->arena, "%s_multiplier", name));
    text_add(&s->code, "\n");
    c_table(s, table, c_smallest(count, v), count, v);
    *multiplier = arena_printf(s->arena, "%s[k]", table);
    return OK;
}

static void print_search(CSource *s, const Node *n, int axis, const char *multiplier)
{
    const Type *x = in(n, 0)->type;
    const ArgAttr *at = n->attr;
    const char *better = n->op == OP_arg_min ? "<" : ">", *type = multiplier ? "int64_t" : "int32_t";
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < axis; d++)
        outer *= x->dims[d];
    for (int d = axis + 1; d < x->rank; d++)
        inner *= x->dims[d];
    c_loop(s, "r", outer);
    c_loop(s, "i", inner);
    const int depth = s->depth;
    c_line(s, "int best = 0;");
    c_line(s, "%s most = 0;", type);
    c_open(s, "for (int k = 0; k < %" PRId64 "; k++) {", x->dims[axis]);
    const char *from = c_index(s, 3, (const CAxis[]){ { "r", outer }, { "k", x->dims[axis] }, { "i", inner } });
    if (multiplier)
        c_line(s, "const int64_t v = round_24(round_24(x[%s]) * %s);", from, multiplier);
    else
        c_line(s, "const int32_t v = x[%s];", from);
    c_open(s, "if (k == 0 || v %s%s most) {", better, at->select_last_index ? "=" : "");
    c_line(s, "best = k;");
    c_line(s, "most = v;");
    c_close_to(s, depth);
    c_line(s, "y[%s] = best;", c_index(s, 2, (const CAxis[]){ { "r", outer }, { "i", inner } }));
    c_close_to(s, 0);
}

Status c_print_arg(CSource *s, const Node *n)
{
    const Node *value = c_behind_shapes(in(n, 0));
    const int axis = axis_wrap(((const ArgAttr *)n->attr)->axis, in(n, 0)->type->rank);
    const char *name = c_name(s, c_text_of(s, n)), *multiplier = NULL;
    int count = 0;
    const Node *from = value;
    const f32 *sums = c_sum_scales(s, value, &from, &count);
    if (!sums && op_of(value)->quant.dequantizes && c_constant(s, in(value, 1)) &&
        type_elements(in(value, 1)->type) == 1)
        from = in(value, 0);
    if ((!sums && from->type->dtype != U8 && from->type->dtype != I8) || !c_value(s, from)->at)
        return c_refuse(n, arena_printf(s->arena, "it compares numbers, which %s computes", op_of(value)->name),
                        "--for generic, which quantizes more; or end the model before it");
    if (sums)
        TRY(find_keys(s, n, count, sums, name, axis, &multiplier));
    c_function(s, name, n, 1, &from,
               arena_printf(s->arena, "where the %s of %" PRId64 " are", n->op == OP_arg_min ? "least" : "largest",
                            in(n, 0)->type->dims[axis]));
    print_search(s, n, axis, multiplier);
    c_call(s, name, 2, (const Node *const[]){ from, n });
    return OK;
}
