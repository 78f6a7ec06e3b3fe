/* Quantizers as QONNX's operators: a quantizer and the numbers of its codes are one call of Quant, of BipolarQuant or of
 * FloatQuant; codes that lose their last bits, as the reader makes them of a Trunc, are one of Trunc. */
#include <math.h>
#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/file/float_formats.h"
#include "frontends/onnx/write/encode.h"
#include "frontends/onnx/write/writer.h"
#include "ops/quant/quantize.h"

static bool is_quantizer(const Node *n)
{
    return n && n->op == OP_quantize_linear && n->n_in == 2;
}

static bool is_number(const Node *n)
{
    return n->op == OP_dequantize_linear && is_quantizer(in(n, 0)) && in(in(n, 0), 1) == in(n, 1);
}

/* ---- codes that lose their last bits ---- */

/* The one that reads a node; null: none, or several. */
static const Node *reader(const Node *n)
{
    return n && n->uses && !n->uses->next ? n->uses->user : NULL;
}

/* The one number that a stored value is; false: it is none. */
static bool number_of(const Node *n, double *value)
{
    Arena scratch;
    Payload *p = n && (n->op == OP_const || n->op == OP_param) ? node_payload(n) : NULL;
    if (!p || !type_known(n->type) || type_elements(n->type) != 1)
        return false;
    arena_open(&scratch, n->graph->ir->memory);
    Tensor *t = tensor_new(&scratch, n->type);
    const bool read = payload_read(p, t, n->graph->ir->diag) == OK;
    *value = read ? tensor_get_f64(t, 0) : 0;
    arena_close(&scratch);
    return read;
}

static bool is_stage(const Node *n, int op)
{
    return n && n->op == op && n->n_in == 2;
}

/* Whether a quantizer begins a Trunc: its codes of 32 bits are divided by a power of two, rounded, and numbers again whose scale
 * is as many times the first.  *end is those. */
static bool begins_trunc(const Node *q, const Node **end)
{
    const Node *parts, *cut;
    double scale, part, one, behind;
    if (!is_quantizer(q) || q->type->dtype != I32)
        return false;
    const QuantizeAttr *at = q->attr;
    if (at->rounding != ROUND_RNE || at->least || at->largest) /* a Trunc cuts nothing before it shifts */
        return false;
    if (!is_stage(parts = reader(q), OP_dequantize_linear) || !is_stage(cut = reader(parts), OP_quantize_linear) ||
        !is_stage(*end = reader(cut), OP_dequantize_linear))
        return false;
    return number_of(in(q, 1), &scale) && number_of(in(parts, 1), &part) && number_of(in(cut, 1), &one) &&
           number_of(in(*end, 1), &behind) && scale > 0 && one == 1 && part > 0 && behind > 0 &&
           log2(part) == rint(log2(part)) && rint(log2(behind / scale)) == -log2(part);
}

/* The quantizer at which the Trunc begins that a node is part of; null: none. */
static const Node *trunc_of(const Node *n, const Node **end)
{
    for (int back = 0; back < 4 && n && (is_stage(n, OP_quantize_linear) || is_stage(n, OP_dequantize_linear));
         back++, n = in(n, 0))
        if (begins_trunc(n, end))
            return n;
    return NULL;
}

/* ---- what is covered ---- */

bool quants_cover(const Node *n)
{
    const Node *end;
    if (trunc_of(n, &end))
        return true;
    if (!is_quantizer(n))
        return is_number(n);
    for (const Use *u = n->uses; u; u = u->next)
        if (!is_number(u->user))
            return false;
    return n->uses != NULL;
}

/* How codes are said there. */
typedef struct Width {
    int bits;
    bool is_signed, narrow;
} Width;

static bool width_of_codes(const Node *q, Width *w)
{
    const QuantizeAttr *at = q->attr;
    double least, largest;
    code_limits(q->type->dtype, at->least, at->largest, &least, &largest);
    *w = (Width){ 1 + (least < 0), least < 0, false };
    for (; w->bits <= 32; w->bits++) {
        const double end = ldexp(1, w->bits - w->is_signed) - 1, first = w->is_signed ? -end - 1 : 0;
        if (least == first && largest == end)
            return true;
        w->narrow = w->is_signed ? least == -end && largest == end : least == 0 && largest == end - 1 && largest > 0;
        if (w->narrow)
            return true;
    }
    return false;
}

/* Data have roundings that there are words for (targets.def), and stored weights are numbers of codes, to the nearest. */
static const char *rounding_word(int rounding)
{
    static const char *const words[ROUNDINGS] = { [ROUND_RNE] = "ROUND",
                                                  [ROUND_CEIL] = "CEIL",
                                                  [ROUND_FLOOR] = "FLOOR",
                                                  [ROUND_ZERO] = "DOWN",
                                                  [ROUND_AWAY] = "UP" };
    return words[rounding];
}

static void add_operand(Writer *w, Onnx__NodeProto *o, const char *name)
{
    o->input = arena_grow(w->arena, o->input, o->n_input, o->n_input + 1, sizeof *o->input);
    o->input[o->n_input++] = encode_text(name);
}

/* A number of the file as an operand, written once. */
static void add_number(Writer *w, Level *l, Onnx__NodeProto *o, const char *word, double value)
{
    bool fresh;
    const char *wish = strcmp(word, "zero_point") == 0 ? word : arena_printf(w->arena, "%s_%g", word, value);
    MapEntry *entry = map_put(&w->quant_words, wish, &fresh);
    if (fresh) {
        Tensor *t = tensor_new(w->arena, type_scalar(&w->ir->types, F32));
        tensor_set_f64(t, 0, value);
        Onnx__TensorProto *p = encode_tensor(w->arena, t);
        entry->value.p = (void *)claim_name(w, wish);
        p->has_name = 1;
        p->name = encode_text(entry->value.p);
        add_initializer(w, l, p);
    }
    add_operand(w, o, entry->value.p);
}

bool quants_lay(const Node *n)
{
    if ((n->op != OP_const && n->op != OP_param) || type_elements(n->type) == 1)
        return false;
    for (const Use *u = n->uses; u; u = u->next)
        if (!quants_cover(u->user) || in(u->user, 1) != n)
            return false;
    return n->uses != NULL;
}

/* Scales of an axis lie beside what they scale as numpy wants it: once for each way that they lie. */
static Status scale_name(Writer *w, Level *l, const Node *q, const char **name)
{
    const Node *scale = in(q, 1);
    const Type *x = q->type;
    bool first, fresh;
    *name = value_name(w, scale);
    if (!type_known(scale->type) || type_elements(scale->type) == 1)
        return OK;
    Payload *p = scale->op == OP_const || scale->op == OP_param ? node_payload(scale) : NULL;
    const int64_t axis = ((const QuantizeAttr *)q->attr)->axis, at = axis < 0 ? axis + x->rank : axis;
    if (!p || scale->type->rank != 1 || x->rank < 1 || ((const QuantizeAttr *)q->attr)->block_size)
        return fail_as(w->diag, UNSUPPORTED, node_place(q), "its scales are computed, or lie in blocks");
    map_put(&w->quant_words, arena_printf(w->arena, "scale %s", *name), &first);
    MapEntry *laid = map_put(&w->quant_words, arena_printf(w->arena, "%d of %d: %s", (int)at, x->rank, *name), &fresh);
    if (fresh) {
        Onnx__TensorProto *t = write_payload(w, p, node_place(scale));
        if (!t)
            return INVALID;
        t->dims = NEWS(w->arena, int64_t, x->rank);
        t->n_dims = (size_t)x->rank;
        for (int i = 0; i < x->rank; i++)
            t->dims[i] = i == at ? scale->type->dims[0] : 1;
        if (!first || !quants_lay(scale))
            *name = claim_name(w, arena_printf(w->arena, "%s_along_%d", *name, (int)at));
        t->has_name = 1;
        t->name = encode_text(*name);
        add_initializer(w, l, t);
        laid->value.p = (void *)*name;
    }
    *name = laid->value.p;
    return OK;
}

/* The numbers of a stored value; null: it is none. */
static const Tensor *numbers_of(Writer *w, const Node *n)
{
    Payload *p = n->op == OP_const || n->op == OP_param ? node_payload(n) : NULL;
    Tensor *t = p && type_known(n->type) ? tensor_new(w->arena, n->type) : NULL;
    return t && payload_read(p, t, w->diag) == OK ? t : NULL;
}

/* Whether weights have but the codes -1 and 1: none of them is nearer to 0. */
static bool has_signs(Writer *w, const Node *q)
{
    const QuantizeAttr *at = q->attr;
    if (at->least != -1 || at->largest != 1 || at->rounding != ROUND_RNE)
        return false;
    const Tensor *x = numbers_of(w, in(q, 0)), *scale = x ? numbers_of(w, in(q, 1)) : NULL;
    if (!x || !scale || !tensor_elements(x))
        return false;
    const ScaleLayout layout = scale_layout_of(in(q, 0)->type, in(q, 1)->type, at->axis, at->block_size);
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        int64_t index;
        scale_layout_indices(&layout, i, 1, &index);
        if (quantize_f32((f32)tensor_get_f64(x, i), (f32)tensor_get_f64(scale, index), 0, -1, 1) == 0)
            return false;
    }
    return true;
}

static void add_attribute(Writer *w, Onnx__NodeProto *o, Onnx__AttributeProto *a)
{
    o->attribute = arena_grow(w->arena, o->attribute, o->n_attribute, o->n_attribute + 1, sizeof a);
    o->attribute[o->n_attribute++] = a;
}

static void end_call(Writer *w, Level *l, Onnx__NodeProto *o, const Node *n)
{
    if (!n->name && in(n, 0)->name)
        name_value(w, n, value_name(w, in(n, 0)));
    o->output = NEWS(w->arena, ProtobufCBinaryData, 1);
    o->output[o->n_output++] = encode_text(value_name(w, n));
    note_marks(w, o, n);
    w->dtypes |= 1u << F32;
    w->needs_qonnx = true;
    add_type(w, l, value_name(w, n), n->type);
    add_node(w, l, o);
}

static void add_width(Writer *w, Onnx__NodeProto *o, const Width *width, const char *rounding)
{
    add_attribute(w, o, encode_int_attribute(w->arena, "signed", width->is_signed));
    add_attribute(w, o, encode_int_attribute(w->arena, "narrow", width->narrow));
    add_attribute(w, o, encode_string_attribute(w->arena, "rounding_mode", rounding));
}

static Onnx__NodeProto *begin_call(Writer *w, const char *op, const Node *x, const char *scale)
{
    Onnx__NodeProto *o = new_node(w, op, QONNX_DOMAIN);
    add_operand(w, o, value_name(w, x));
    add_operand(w, o, scale);
    return o;
}

/* What QONNX cannot say of a quantizer that a model arrived with; null: it can. */
static const char *unsaid(const Node *q, const Node *number)
{
    const QuantizeAttr *at = q->attr;
    Width width;
    if (in(q, 0)->type->dtype != F32 || in(q, 1)->type->dtype != F32 || number->type->dtype != F32)
        return "QONNX's quantizers are of f32";
    if (float_format_of(q->type->dtype))
        return at->saturate && at->rounding == ROUND_RNE ? NULL
                                                         : "QONNX's floats are rounded to the nearest, and saturate";
    if (!rounding_word(at->rounding))
        return "QONNX has no word for how its quotients are rounded";
    return width_of_codes(q, &width) ? NULL : "its codes are not all of so many bits, nor all but the least";
}

/* Integers of so many bits, all of them or without the least. */
static Onnx__NodeProto *integers(Writer *w, Level *l, const Node *q, const char *scale)
{
    const char *rounding = rounding_word(((const QuantizeAttr *)q->attr)->rounding);
    Width width;
    BUG_IF(w->arena->memory, !width_of_codes(q, &width));
    Onnx__NodeProto *o = begin_call(w, "Quant", in(q, 0), scale);
    add_number(w, l, o, "zero_point", 0);
    add_number(w, l, o, "bits", width.bits);
    add_width(w, o, &width, rounding);
    return o;
}

static Onnx__NodeProto *floats(Writer *w, Level *l, const Node *q, const FloatFormat *f, const char *scale)
{
    Onnx__NodeProto *o = begin_call(w, "FloatQuant", in(q, 0), scale);
    add_number(w, l, o, "exponent_bits", f->exponent);
    add_number(w, l, o, "mantissa_bits", f->mantissa);
    add_number(w, l, o, "exponent_bias", f->bias);
    add_number(w, l, o, "largest", f->most);
    add_attribute(w, o, encode_int_attribute(w->arena, "has_inf", f->has_inf));
    add_attribute(w, o, encode_int_attribute(w->arena, "has_nan", f->has_nan));
    add_attribute(w, o, encode_int_attribute(w->arena, "has_subnormal", 1));
    add_attribute(w, o, encode_int_attribute(w->arena, "saturation", 1));
    add_attribute(w, o, encode_string_attribute(w->arena, "rounding_mode", "ROUND"));
    return o;
}

/* From the codes of q to those of which `end` is the numbers. */
static Status write_trunc(Writer *w, Level *l, const Node *q, const Node *end)
{
    const Node *cut = in(end, 0);
    const char *rounding = rounding_word(((const QuantizeAttr *)cut->attr)->rounding), *before, *behind;
    Width wide, width;
    if (!rounding || !width_of_codes(q, &wide) || !width_of_codes(cut, &width))
        return fail_as(w->diag, UNSUPPORTED, node_place(cut), "QONNX's Trunc has no such codes");
    before = value_name(w, in(q, 1));
    behind = value_name(w, in(end, 1));
    Onnx__NodeProto *o = begin_call(w, "Trunc", in(q, 0), before);
    add_number(w, l, o, "zero_point", 0);
    add_number(w, l, o, "bits", wide.bits);
    add_operand(w, o, behind);
    add_number(w, l, o, "bits", width.bits);
    add_width(w, o, &width, rounding);
    end_call(w, l, o, end);
    return OK;
}

Status write_quant(Writer *w, Level *l, const Node *n)
{
    const Node *end, *first = trunc_of(n, &end);
    if (first)
        return n == end ? write_trunc(w, l, first, end) : OK;
    if (n->op == OP_quantize_linear)
        return OK;
    const Node *q = in(n, 0);
    const FloatFormat *f = float_format_of(q->type->dtype);
    const char *scale, *why = unsaid(q, n);
    if (why)
        return fail_as(w->diag, UNSUPPORTED, node_place(q), "%s", why);
    TRY(scale_name(w, l, q, &scale));
    Onnx__NodeProto *o = f                 ? floats(w, l, q, f, scale)
                         : has_signs(w, q) ? begin_call(w, "BipolarQuant", in(q, 0), scale)
                                           : integers(w, l, q, scale);
    end_call(w, l, o, n);
    return OK;
}
