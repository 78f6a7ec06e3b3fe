/* Quantizers as QONNX's operators: a quantizer and the numbers of its codes are one call of Quant, or of BipolarQuant. */
#include <math.h>

#include "frontends/onnx/file/dialect.h"
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

bool quants_cover(const Node *n)
{
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

/* A number of the file, written once. */
static const char *number(Writer *w, Level *l, const char **name, const char *wish, float value)
{
    if (*name)
        return *name;
    Tensor *t = tensor_new(w->arena, type_scalar(&w->ir->types, F32));
    tensor_set_f64(t, 0, value);
    Onnx__TensorProto *p = encode_tensor(w->arena, t);
    *name = claim_name(w, wish);
    p->has_name = 1;
    p->name = encode_text(*name);
    add_initializer(w, l, p);
    return *name;
}

/* Scales of an axis lie beside what they scale as numpy wants it. */
static Status scale_name(Writer *w, Level *l, const Node *q, const char **name)
{
    const Node *scale = in(q, 1);
    const Type *x = q->type;
    *name = value_name(w, scale);
    if (!type_known(scale->type) || type_elements(scale->type) == 1)
        return OK;
    Payload *p = scale->op == OP_const || scale->op == OP_param ? node_payload(scale) : NULL;
    const int64_t axis = ((const QuantizeAttr *)q->attr)->axis, at = axis < 0 ? axis + x->rank : axis;
    if (!p || scale->type->rank != 1 || x->rank < 1 || ((const QuantizeAttr *)q->attr)->block_size)
        return fail_as(w->diag, UNSUPPORTED, node_place(q), "its scales are computed, or lie in blocks");
    Onnx__TensorProto *t = write_payload(w, p, node_place(scale));
    if (!t)
        return INVALID;
    t->dims = NEWS(w->arena, int64_t, x->rank);
    t->n_dims = (size_t)x->rank;
    for (int i = 0; i < x->rank; i++)
        t->dims[i] = i == at ? scale->type->dims[0] : 1;
    *name = claim_name(w, arena_printf(w->arena, "%s_along_%d", *name, (int)at));
    t->has_name = 1;
    t->name = encode_text(*name);
    add_initializer(w, l, t);
    return OK;
}

/* Whether weights have but the codes -1 and 1. */
static bool has_signs(Writer *w, const Node *q)
{
    const QuantizeAttr *at = q->attr;
    const Node *x = in(q, 0);
    Payload *p =
        at->least == -1 && at->largest == 1 && (x->op == OP_const || x->op == OP_param) ? node_payload(x) : NULL;
    Tensor *t = p ? tensor_new(w->arena, x->type) : NULL;
    if (!t || payload_read(p, t, w->diag) != OK)
        return false;
    for (int64_t i = 0; i < tensor_elements(t); i++)
        if (tensor_get_f64(t, i) == 0)
            return false;
    return tensor_elements(t) > 0;
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

Status write_quant(Writer *w, Level *l, const Node *n)
{
    const Node *q = in(n, 0);
    const QuantizeAttr *at = q->attr;
    const char *scale, *rounding = rounding_word(at->rounding);
    const bool signs = has_signs(w, q);
    Width width;
    BUG_IF(w->arena->memory, !rounding);
    BUG_IF(w->arena->memory,
           !signs && !width_of_codes(q, &width)); /* integers of so many bits, all of them or without the least */
    TRY(scale_name(w, l, q, &scale));
    Onnx__NodeProto *o = new_node(w, signs ? "BipolarQuant" : "Quant", QONNX_DOMAIN);
    o->input = NEWS(w->arena, ProtobufCBinaryData, 4);
    o->input[o->n_input++] = encode_text(value_name(w, in(q, 0)));
    o->input[o->n_input++] = encode_text(scale);
    if (!signs) {
        const char *bits = arena_printf(w->arena, "bits_%d", width.bits);
        o->input[o->n_input++] = encode_text(number(w, l, &w->quant_zero, "zero_point", 0));
        o->input[o->n_input++] = encode_text(number(w, l, &w->quant_bits[width.bits], bits, (float)width.bits));
        add_attribute(w, o, encode_int_attribute(w->arena, "signed", width.is_signed));
        add_attribute(w, o, encode_int_attribute(w->arena, "narrow", width.narrow));
        add_attribute(w, o, encode_string_attribute(w->arena, "rounding_mode", rounding));
    }
    end_call(w, l, o, n);
    return OK;
}
