/* Sums and products of codes, and functions of one code. */
#include <inttypes.h>
#include <string.h>

#include "codegen/source/c_parts.h"
#include "ops/card/attrs.h"
#include "ops/card/shapes.h"

const char *const c_places[] = { "g", "h", "i", "j", "k", "m", "o", "p", "q", "r", "t", "u", "v", "c", "b", "d" };

const char *c_broadcast(CSource *s, const Type *x, const Type *y, const char *const *indices)
{
    CAxis axes[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        axes[i] = (CAxis){ indices[y->rank - x->rank + i], x->dims[i] };
    return c_index(s, x->rank, axes);
}

typedef struct Binary {
    const Node *a, *b;
    const char *x, *w, *to; /* elements that are read, and the index of the result */
} Binary;

/* Opens a function of two operands and its loops. */
static void open_binary(CSource *s, const Node *n, const char *name, const char *remark, Binary *t)
{
    const char *const *indices = c_places;
    const Type *y = type_result(n->type, 0);
    const Node *ins[] = { t->a, t->b };
    const int64_t count = type_elements(y);
    const bool plain = type_elements(t->a->type) == count && type_elements(t->b->type) == count;
    c_function(s, name, n, 2, ins, remark);
    if (plain)
        c_loop(s, "i", count);
    for (int i = 0; i < y->rank && !plain; i++)
        c_loop(s, indices[i], y->dims[i]);
    const char *i = count == 1 ? "0" : "i";
    t->x = arena_printf(s->arena, "x[%s]", plain ? i : c_broadcast(s, t->a->type, y, indices));
    t->w = arena_printf(s->arena, "w[%s]", plain ? i : c_broadcast(s, t->b->type, y, indices));
    t->to = plain ? i : c_broadcast(s, y, y, indices);
}

/* A constant operand is a table that nobody made yet. */
static void store_operand(CSource *s, const Node *n)
{
    CValue *v = c_value(s, n);
    if (!v->constant || v->name)
        return;
    v->name = c_name(s, c_text_of(s, n));
    v->at = n;
    text_add(&s->code, "\n");
    c_table(s, v->name, c_type(n->type->dtype), type_elements(n->type), c_integers(s, v->constant));
}

static bool scales_are_known(CSource *s, const Node *n)
{
    for (int i = QBINARY_A_SCALE; i <= QBINARY_Y_ZERO; i++)
        if (i != QBINARY_B && !c_constant(s, in(n, i)))
            return false;
    return true;
}

/* The integer v * 2^shift; v is a multiple of 2^-shift. */
static int64_t at_shift(CFixed v, int shift)
{
    return v.m * ((int64_t)1 << (shift - v.shift));
}

static int largest_shift(const CFixed *v, int n)
{
    int shift = 0;
    for (int i = 0; i < n; i++)
        shift = v[i].m && v[i].shift > shift ? v[i].shift : shift;
    return shift;
}

static const char *spread = "its scales are too far apart";

/* RNE(fma(a, ra, fma(b, rb, base))) as integers that are numbers times 2^shift. */
Status c_print_add(CSource *s, const Node *n)
{
    const QbinaryAttr *at = n->attr;
    const Type *y = type_result(n->type, 0);
    if (!scales_are_known(s, n))
        return c_refuse(n, "its scales are computed", NULL);
    const f32 sa = c_float(s, in(n, QBINARY_A_SCALE)), sb = c_float(s, in(n, QBINARY_B_SCALE)),
              sy = c_float(s, in(n, QBINARY_Y_SCALE));
    const f32 za = (f32)c_integer(s, in(n, QBINARY_A_ZERO)), zb = (f32)c_integer(s, in(n, QBINARY_B_ZERO)),
              zy = (f32)c_integer(s, in(n, QBINARY_Y_ZERO)), ra = sa / sy, rb = sb / sy;
    CFixed f[] = { c_fixed(ra), c_fixed(rb), c_fixed(zy - fma_f32(ra, za, rb * zb)) };
    const int shift = largest_shift(f, COUNT(f));
    for (size_t i = 0; i < COUNT(f); i++) {
        f[i].shift = f[i].m ? f[i].shift : shift;
        if (shift > 52 || shift - f[i].shift > 26)
            return c_refuse(n, spread, NULL);
    }
    CodeRange range = code_range_of(&at->codes, y->dtype, zy);
    Binary t = { in(n, QBINARY_A), in(n, QBINARY_B), NULL, NULL, NULL };
    const char *name = c_name(s, c_text_of(s, n));
    store_operand(s, t.a);
    store_operand(s, t.b);
    open_binary(s, n, name, "a sum", &t);
    c_line(s, "const int64_t sum = round_24(%s * INT64_C(%" PRId64 ") + INT64_C(%" PRId64 "));", t.w,
           at_shift(f[1], shift), at_shift(f[2], shift));
    range.z = 0;
    c_store(s, t.to,
            arena_printf(s->arena, "nearest(round_24(%s * INT64_C(%" PRId64 ") + sum), %d)", t.x, at_shift(f[0], shift),
                         shift),
            &range, y->dtype);
    c_close_to(s, 0);
    c_call(s, name, 3, (const Node *const[]){ t.a, t.b, n });
    return OK;
}

/* RNE(f32(f32((a - za) (b - zb)) * m) + z). */
Status c_print_mul(CSource *s, const Node *n)
{
    const QbinaryAttr *at = n->attr;
    const Type *y = type_result(n->type, 0);
    if (!scales_are_known(s, n))
        return c_refuse(n, "its scales are computed", NULL);
    CFixed m = c_fixed(requantize_scale(c_float(s, in(n, QBINARY_A_SCALE)), c_float(s, in(n, QBINARY_B_SCALE)),
                                        c_float(s, in(n, QBINARY_Y_SCALE))));
    const int64_t zy = c_integer(s, in(n, QBINARY_Y_ZERO));
    CodeRange range = code_range_of(&at->codes, y->dtype, (f32)zy);
    if (!c_is_factor(&m) || m.shift > 52)
        return c_refuse(n, spread, NULL);
    Binary t = { in(n, QBINARY_A), in(n, QBINARY_B), NULL, NULL, NULL };
    const char *name = c_name(s, c_text_of(s, n));
    store_operand(s, t.a);
    store_operand(s, t.b);
    open_binary(s, n, name, "a product, element by element", &t);
    c_line(s, "const int32_t product = (int32_t)%s * %s;", c_centred(s, t.x, c_integer(s, in(n, QBINARY_A_ZERO))),
           c_centred(s, t.w, c_integer(s, in(n, QBINARY_B_ZERO))));
    const char *value = arena_printf(s->arena, "round_24(product * INT64_C(%" PRId64 "))", m.m);
    if (zy)
        value = arena_printf(s->arena, "round_24(%s + INT64_C(%" PRId64 "))", value, zy * ((int64_t)1 << m.shift));
    range.z = 0;
    c_store(s, t.to, arena_printf(s->arena, "nearest(%s, %d)", value, m.shift), &range, y->dtype);
    c_close_to(s, 0);
    c_call(s, name, 3, (const Node *const[]){ t.a, t.b, n });
    return OK;
}

/* ---- functions of one code ---- */

enum { MOST_STEPS = 64 };

/* From codes to codes: what is computed on the way, last first. */
typedef struct Way {
    const Node *codes;
    const Node *steps[MOST_STEPS];
    int n;
} Way;

/* The only operand that is no constant of one number; null: there are others. */
static const Node *only_operand(CSource *s, const Node *n)
{
    const Node *found = NULL;
    for (int i = 0; i < n->n_in; i++) {
        const Tensor *t = c_constant(s, in(n, i));
        if (!in(n, i) || (t && tensor_elements(t) == 1))
            continue;
        if (t || (found && found != in(n, i)))
            return NULL;
        found = in(n, i);
    }
    return found;
}

static bool is_code(const Node *n)
{
    return n->type->kind == TYPE_TENSOR && (n->type->dtype == U8 || n->type->dtype == I8);
}

/* Follows a value back to the codes that it is a function of. */
static bool find_way(CSource *s, const Node *n, Way *w)
{
    while (w->n < MOST_STEPS) {
        const OpDef *def = op_of(n);
        const Node *from = only_operand(s, n);
        if (!from || n->n_regions || n->type->kind != TYPE_TENSOR ||
            (def->access.kind != ACCESS_ROW && !def->quant.dequantizes && !def->quant.quantizes))
            return false;
        w->steps[w->n++] = n;
        w->codes = from;
        if (is_code(from) && c_value(s, from)->at)
            return true;
        n = from;
    }
    return false;
}

/* What a way makes of every code. */
static Status find_table(CSource *s, const Way *w, int64_t *table)
{
    const DType from = w->codes->type->dtype;
    Tensor *all = tensor_new(s->arena, type_vector(&s->g->ir->types, from, 256));
    const Tensor *value = all;
    for (int i = 0; i < 256; i++)
        tensor_set_i64(all, i, from == I8 ? (int8_t)i : i);
    for (int k = w->n - 1; k >= 0; k--) {
        const Node *n = w->steps[k];
        const Tensor **ins = NEWS(s->arena, const Tensor *, (size_t)n->n_in + 1);
        const Node *moving = k == w->n - 1 ? w->codes : w->steps[k + 1], *joined = in(n, 0);
        if (joined && joined->type->dtype == F32 && (joined->op == OP_concat || c_picks(joined)))
            moving = joined;
        for (int i = 0; i < n->n_in; i++) {
            const Tensor *t = c_constant(s, in(n, i));
            ins[i] = in(n, i) == moving ? value : t;
            if (t && in(n, i) != moving && t->type->rank) {
                Tensor *one = tensor_new(s->arena, type_scalar(&s->g->ir->types, t->type->dtype));
                memcpy(one->data, t->data, one->bytes);
                ins[i] = one;
            }
        }
        TRY(c_evaluate(s, n, ins, &value));
    }
    for (int i = 0; i < 256; i++)
        table[i] = tensor_get_i64(value, i);
    return OK;
}

Status c_requantized(CSource *s, const Node *quantizer, const Node *dequantizer, int64_t *table)
{
    const Way w = { .codes = in(dequantizer, 0), .n = 2, .steps = { quantizer, dequantizer } };
    return find_table(s, &w, table);
}

static Status is_floats(CSource *s, const Node *quantizer, const Node *n)
{
    return c_refuse(quantizer,
                    arena_printf(s->arena, "%s, which is quantized here, is computed of floats", op_of(n)->name),
                    "qcc explain MODEL --quant .., which says what stays floats, and why");
}

/* A function that looks codes up: rows of so many, which lie in rows of the result from a place on. */
static Status print_look_up(CSource *s, const Node *n, const Way *w, int64_t rows, int64_t width, int64_t at)
{
    int64_t table[256];
    const int64_t length = rows ? type_elements(w->codes->type) / rows : 0;
    const char *name = c_name(s, c_text_of(s, n)), *codes = c_name(s, arena_printf(s->arena, "%s_codes", name));
    TRY(find_table(s, w, table));
    text_add(&s->code, "\n");
    c_table(s, codes, c_type(n->type->dtype), 256, table);
    c_function(s, name, n, 1, &w->codes, "a code for each code");
    c_loop(s, "r", rows);
    c_loop(s, "i", length);
    const char *to = c_index(s, 2, (const CAxis[]){ { "r", rows }, { "i", width } });
    if (width != 1 && length == 1) /* there is no loop over i */
        to = rows == 1 ? "0" : arena_printf(s->arena, "r * %" PRId64, width);
    to = at ? arena_printf(s->arena, "%s + %" PRId64, to, at) : to;
    c_line(s, "y[%s] = %s[%sx[%s]];", to, codes, w->codes->type->dtype == I8 ? "(uint8_t)" : "",
           c_index(s, 2, (const CAxis[]){ { "r", rows }, { "i", length } }));
    c_close_to(s, 0);
    c_call(s, name, 2, (const Node *const[]){ w->codes, n });
    return OK;
}

/* Codes of values side by side, each with a scale of its own. */
static Status print_joined(CSource *s, const Node *n, const Node *concat)
{
    const int axis = axis_wrap(((const AxisAttr *)concat->attr)->axis, n->type->rank);
    int64_t rows = 1, at = 0;
    for (int i = 0; i < axis; i++)
        rows *= n->type->dims[i];
    for (int i = 0; i < concat->n_in; i++) {
        Way w = { .n = 1, .steps = { n } };
        if (!find_way(s, in(concat, i), &w))
            return is_floats(s, n, in(concat, i));
        TRY(print_look_up(s, n, &w, rows, type_elements(n->type) / rows, at));
        at += type_elements(w.codes->type) / rows;
    }
    return OK;
}

Status c_print_quantize(CSource *s, const Node *n)
{
    Way w = { .n = 0 };
    const Node *of = in(n, 0);
    if (of->op == OP_concat && type_elements(n->type) > 0 && type_elements(in(n, 1)->type) == 1)
        return print_joined(s, n, of);
    if (c_picks(of) && op_of(in(of, 0))->quant.dequantizes && is_code(in(in(of, 0), 0)))
        return c_print_pick(s, n, of);
    if (c_is_softmax(of))
        return c_print_softmax(s, n);
    if (!find_way(s, n, &w))
        return is_floats(s, n, of);
    return print_look_up(s, n, &w, 1, type_elements(n->type), 0);
}
