#include "frontends/onnx/write/encode.h"

#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/read/call.h"
#include "ops/control/control.h"

ProtobufCBinaryData encode_text(const char *text)
{
    return (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
}

static Onnx__TypeProto *encode_tensor_type(Arena *arena, const Type *type)
{
    Onnx__TypeProto *p = NEW(arena, Onnx__TypeProto);
    onnx__type_proto__init(p);
    p->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    p->tensor_type = NEW(arena, Onnx__TypeProto__Tensor);
    onnx__type_proto__tensor__init(p->tensor_type);
    p->tensor_type->has_elem_type = 1;
    p->tensor_type->elem_type = dtype_onnx(type->dtype);
    if (type->rank < 0)
        return p;
    Onnx__TensorShapeProto *shape = p->tensor_type->shape = NEW(arena, Onnx__TensorShapeProto);
    onnx__tensor_shape_proto__init(shape);
    shape->dim = NEWS(arena, Onnx__TensorShapeProto__Dimension *, type->rank + 1);
    for (int i = 0; i < type->rank; i++) {
        Onnx__TensorShapeProto__Dimension *d = NEW(arena, Onnx__TensorShapeProto__Dimension);
        onnx__tensor_shape_proto__dimension__init(d);
        if (type->dims[i] >= 0) {
            d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
            d->dim_value = type->dims[i];
        }
        shape->dim[shape->n_dim++] = d;
    }
    return p;
}

/* Sequences and optionals nest a few deep; the innermost is made first. */
Onnx__TypeProto *encode_type(Arena *arena, const Type *type)
{
    enum { DEEPEST = 32 };
    TypeKind around[DEEPEST];
    int depth = 0;
    while ((type->kind == TYPE_SEQ || type->kind == TYPE_OPTIONAL) && depth < DEEPEST) {
        around[depth++] = type->kind;
        type = type->parts[0];
    }
    if (type->kind != TYPE_TENSOR)
        return NULL;
    Onnx__TypeProto *inner = encode_tensor_type(arena, type);
    while (depth) {
        Onnx__TypeProto *p = NEW(arena, Onnx__TypeProto);
        onnx__type_proto__init(p);
        if (around[--depth] == TYPE_SEQ) {
            p->value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
            p->sequence_type = NEW(arena, Onnx__TypeProto__Sequence);
            onnx__type_proto__sequence__init(p->sequence_type);
            p->sequence_type->elem_type = inner;
        } else {
            p->value_case = ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
            p->optional_type = NEW(arena, Onnx__TypeProto__Optional);
            onnx__type_proto__optional__init(p->optional_type);
            p->optional_type->elem_type = inner;
        }
        inner = p;
    }
    return inner;
}

Onnx__ValueInfoProto *encode_value(Arena *arena, const char *name, const Type *type)
{
    Onnx__ValueInfoProto *v = NEW(arena, Onnx__ValueInfoProto);
    onnx__value_info_proto__init(v);
    v->has_name = 1;
    v->name = encode_text(name);
    v->type = type ? encode_type(arena, type) : NULL;
    return v;
}

Onnx__TensorProto *encode_tensor(Arena *arena, const Tensor *t)
{
    Onnx__TensorProto *p = NEW(arena, Onnx__TensorProto);
    onnx__tensor_proto__init(p);
    p->dims = NEWS(arena, int64_t, t->type->rank + 1);
    for (int i = 0; i < t->type->rank; i++)
        p->dims[p->n_dims++] = t->type->dims[i];
    p->has_data_type = 1;
    p->data_type = dtype_onnx(t->type->dtype);
    if (t->type->dtype == STRING) {
        const Str *text = t->data;
        p->n_string_data = (size_t)tensor_elements(t);
        p->string_data = NEWS(arena, ProtobufCBinaryData, p->n_string_data);
        for (size_t i = 0; i < p->n_string_data; i++)
            p->string_data[i] = (ProtobufCBinaryData){ text[i].n, (uint8_t *)(uintptr_t)text[i].p };
        return p;
    }
    p->has_raw_data = 1;
    p->raw_data = (ProtobufCBinaryData){ t->bytes, t->data };
    return p;
}

/* ---- which name ---- */

static bool admits(const OnnxTypes *types, const Type *type)
{
    const TypeKind outer = type->kind;
    uint32_t mask = types->tensor;
    if (outer == TYPE_OPTIONAL) {
        type = type->parts[0];
        mask = type->kind == TYPE_SEQ ? types->opt_seq : types->opt;
    } else if (outer == TYPE_SEQ) {
        mask = types->seq;
    }
    if (type->kind == TYPE_SEQ)
        type = type->parts[0];
    return type->kind == TYPE_TENSOR && (mask >> dtype_onnx(type->dtype) & 1);
}

bool encode_takes(const OnnxSchema *s, const OnnxParam *p, const Type *type)
{
    return admits(&s->types[p->types], type);
}

/* One value against its formal parameter; values of one variable must have one type. */
static bool fits(const OnnxSchema *s, const OnnxParam *p, const Type *type, const Type **bound)
{
    if (!p || !admits(&s->types[p->types], type))
        return false;
    if (p->flags & ONNX_PARAM_MIXED)
        return true;
    const Type **b = &bound[p->types];
    if (!*b)
        *b = type;
    return (*b)->kind == type->kind && (type->kind != TYPE_TENSOR || (*b)->dtype == type->dtype);
}

bool encode_admits(const char *op, int opset, const Type *type)
{
    const OnnxSchema *s = schema_settled("", op, opset);
    return s && !s->deprecated && admits(&s->types[schema_output(s, 0)->types], type);
}

/* The newest schema of a card's operator. */
static const OnnxSchema *schema_of(const OnnxName *name)
{
    return schema_find(name->domain ? name->domain : "", name->op, ONNX_OPSET_NEWEST);
}

/* Whether a call of the newest version means the same under an older schema: no change in between needs rewriting. */
static bool means_the_same(const OnnxSchema *s, const OnnxSchema *newest)
{
    size_t n;
    const Upgrade *rows = upgrades(&n);
    for (size_t i = 0; i < n; i++)
        if (rows[i].version > s->since && rows[i].version <= newest->since && strcmp(rows[i].op, newest->op) == 0)
            return false;
    return !s->deprecated && s->n_in <= newest->n_in; /* Scan had an operand more */
}

static bool attributes_known(const Node *n, const OnnxSchema *schema)
{
    for (const AttrSpec *s = op_of(n)->attrs; s && s->kind != ATTR_END; s++) {
        const bool derived = strcmp(s->name, "operands") == 0 || strcmp(s->name, "stream") == 0;
        if (!derived && !attr_is_default(s, n->attr) && (s->ours || !schema_attr(schema, s->name)))
            return false;
    }
    return true;
}

int encode_least_outputs(const Node *n, int opset)
{
    const OnnxName *name = &op_of(n)->onnx;
    const OnnxSchema *s = name->op ? schema_settled(name->domain ? name->domain : "", name->op, opset) : NULL;
    if (!s || !encode_is_standard(n, opset))
        return 0;
    /* None of a list may be left out: ONNX Runtime does not survive a Split with one that has no name. */
    const bool list = s->n_out && s->out[s->n_out - 1].flags & ONNX_PARAM_VARIADIC;
    return list ? type_results(n->type) : s->min_out;
}

bool encode_is_standard(const Node *n, int opset)
{
    enum { MOST_TYPES = 32 };
    const OnnxName *name = &op_of(n)->onnx;
    const Type *bound[MOST_TYPES] = { NULL };
    if (!name->op || (name->domain && strcmp(name->domain, ONNX_PREVIEW) != 0))
        return false;
    const OnnxSchema *newest = schema_of(name), *s = name->domain ? newest : schema_settled("", name->op, opset);
    if (!s || s->n_types > MOST_TYPES || !means_the_same(s, newest) || !attributes_known(n, s))
        return false;
    const int own = own_operands(n);
    if (own > s->max_in || type_results(n->type) > s->max_out)
        return false;
    for (int i = 0; i < s->min_in; i++)
        if (!(i < own && in(n, i)) && !(schema_input(s, i)->flags & ONNX_PARAM_OPTIONAL))
            return false;
    for (int i = 0; i < own; i++)
        if (in(n, i) && !fits(s, schema_input(s, i), in(n, i)->type, bound))
            return false;
    for (int i = 0; i < type_results(n->type); i++)
        if (!fits(s, schema_output(s, i), type_result(n->type, i), bound))
            return false;
    return true;
}

/* ---- attributes ---- */

static Onnx__AttributeProto *new_attribute(Arena *arena, const char *name, int type)
{
    Onnx__AttributeProto *a = NEW(arena, Onnx__AttributeProto);
    onnx__attribute_proto__init(a);
    a->has_name = a->has_type = 1;
    a->name = encode_text(name);
    a->type = type;
    return a;
}

Onnx__AttributeProto *encode_tensor_attribute(Arena *arena, const char *name, Onnx__TensorProto *t)
{
    Onnx__AttributeProto *a = new_attribute(arena, name, ONNX_ATTR_TENSOR);
    a->t = t;
    return a;
}

Onnx__AttributeProto *encode_int_attribute(Arena *arena, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = new_attribute(arena, name, ONNX_ATTR_INT);
    a->has_i = 1;
    a->i = value;
    return a;
}

Onnx__AttributeProto *encode_string_attribute(Arena *arena, const char *name, const char *value)
{
    Onnx__AttributeProto *a = new_attribute(arena, name, ONNX_ATTR_STRING);
    a->has_s = 1;
    a->s = encode_text(value);
    return a;
}

static Onnx__AttributeProto *list_attribute(Arena *arena, const AttrSpec *s, const void *at)
{
    Onnx__AttributeProto *a = new_attribute(arena, s->name,
                                            s->kind == ATTR_INTS     ? ONNX_ATTR_INTS
                                            : s->kind == ATTR_FLOATS ? ONNX_ATTR_FLOATS
                                                                     : ONNX_ATTR_STRINGS);
    if (s->kind == ATTR_INTS) {
        const Ints *v = at;
        a->n_ints = (size_t)v->n;
        a->ints = (int64_t *)(uintptr_t)v->v;
    } else if (s->kind == ATTR_FLOATS) {
        const Floats *v = at;
        a->n_floats = (size_t)v->n;
        a->floats = (float *)(uintptr_t)v->v;
    } else {
        const Strs *v = at;
        a->strings = NEWS(arena, ProtobufCBinaryData, v->n + 1);
        for (int i = 0; i < v->n; i++)
            a->strings[a->n_strings++] = encode_text(v->v[i]);
    }
    return a;
}

static Onnx__AttributeProto *encode_attribute(Arena *arena, Diag *d, const AttrSpec *s, const void *at)
{
    Onnx__AttributeProto *a;
    switch (s->kind) {
    case ATTR_INT:
        return encode_int_attribute(arena, s->name, *(const int64_t *)at);
    case ATTR_BOOL:
        return encode_int_attribute(arena, s->name, *(const bool *)at);
    case ATTR_DTYPE:
        return encode_int_attribute(arena, s->name, *(const int *)at ? dtype_onnx((DType)(*(const int *)at - 1)) : 0);
    case ATTR_ENUM:
        return encode_string_attribute(arena, s->name, s->choices[*(const int *)at]);
    case ATTR_STR:
        return encode_string_attribute(arena, s->name, *(const char *const *)at);
    case ATTR_FLOAT:
        a = new_attribute(arena, s->name, ONNX_ATTR_FLOAT);
        a->has_f = 1;
        a->f = *(const float *)at;
        return a;
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRS:
        return list_attribute(arena, s, at);
    case ATTR_PAYLOAD: {
        const Tensor *t = payload_cached(*(Payload *const *)at, d);
        return t ? encode_tensor_attribute(arena, s->name, encode_tensor(arena, t)) : NULL;
    }
    case ATTR_TYPE:
        a = new_attribute(arena, s->name, ONNX_ATTR_TYPE_PROTO);
        a->tp = encode_type(arena, *(const Type *const *)at);
        return a;
    case ATTR_END:
        break;
    }
    return NULL;
}

Status encode_attributes(Arena *arena, Diag *d, const Node *n, bool standard, Onnx__NodeProto *o)
{
    size_t cap = 0;
    const OnnxSchema *schema = standard ? schema_of(&op_of(n)->onnx) : NULL;
    for (const AttrSpec *s = op_of(n)->attrs; s && s->kind != ATTR_END; s++) {
        const OnnxAttr *known = schema ? schema_attr(schema, s->name) : NULL;
        const bool required = standard && (s->required || (known && known->required));
        if ((standard && s->ours) || (!required && attr_is_default(s, n->attr)))
            continue;
        GROW(arena, o->attribute, o->n_attribute, cap);
        Onnx__AttributeProto *a = encode_attribute(arena, d, s, attr_at(s, n->attr));
        if (!a)
            return fail(d, node_place(n), "attribute %s cannot be written", s->name);
        o->attribute[o->n_attribute++] = a;
    }
    return OK;
}
