#include "frontends/onnx/read/attributes.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/read/dialect_read.h"

static const char *text_value(Importer *im, ProtobufCBinaryData b)
{
    return arena_copy(im->arena, (const char *)b.data, b.len);
}

/* The type of an attribute: what it says, or before IR version 2 the field that is filled. */
static int attr_type(const Onnx__AttributeProto *a)
{
    if (a->has_type && a->type)
        return a->type;
    return a->has_f           ? ONNX_ATTR_FLOAT
           : a->has_i         ? ONNX_ATTR_INT
           : a->has_s         ? ONNX_ATTR_STRING
           : a->t             ? ONNX_ATTR_TENSOR
           : a->g             ? ONNX_ATTR_GRAPH
           : a->n_floats      ? ONNX_ATTR_FLOATS
           : a->n_ints        ? ONNX_ATTR_INTS
           : a->n_strings     ? ONNX_ATTR_STRINGS
           : a->sparse_tensor ? ONNX_ATTR_SPARSE_TENSOR
           : a->tp            ? ONNX_ATTR_TYPE_PROTO
                              : ONNX_ATTR_UNDEFINED;
}

static Status read_lists(Importer *im, CallAttr *to, const Onnx__AttributeProto *a)
{
    const size_t n = a->n_floats + a->n_ints + a->n_strings;
    if (n > (size_t)im->ir->limits.ints)
        return fail(im->ir->diag, importer_place(im),
                    "attribute %s has %zu values, more than the limit ints (%" PRId64 ")", to->name, n,
                    im->ir->limits.ints);
    if (to->type == ONNX_ATTR_INTS) {
        int64_t *v = NEWS(im->arena, int64_t, a->n_ints + 1);
        if (a->n_ints)
            memcpy(v, a->ints, a->n_ints * sizeof *v);
        to->ints = (Ints){ (int)a->n_ints, v };
    } else if (to->type == ONNX_ATTR_FLOATS) {
        float *v = NEWS(im->arena, float, a->n_floats + 1);
        if (a->n_floats)
            memcpy(v, a->floats, a->n_floats * sizeof *v);
        to->floats = (Floats){ (int)a->n_floats, v };
    } else if (to->type == ONNX_ATTR_STRINGS) {
        const char **v = NEWS(im->arena, const char *, a->n_strings + 1);
        for (size_t i = 0; i < a->n_strings; i++)
            v[i] = text_value(im, a->strings[i]);
        to->strings = (Strs){ (int)a->n_strings, v };
    }
    return OK;
}

static Status read_attr(Importer *im, CallAttr *to, const Onnx__AttributeProto *a)
{
    *to = (CallAttr){ .name = import_name(im, a->name), .type = attr_type(a) };
    to->i = a->i;
    to->f = a->f;
    to->g = a->g;
    if (to->type == ONNX_ATTR_STRING)
        to->s = text_value(im, a->s);
    if (to->type == ONNX_ATTR_TENSOR && a->t)
        TRY(import_payload(im, a->t, &to->t));
    if (to->type == ONNX_ATTR_SPARSE_TENSOR && a->sparse_tensor)
        TRY(import_sparse(im, a->sparse_tensor, &to->t));
    if (to->type == ONNX_ATTR_TYPE_PROTO)
        to->tp = onnx_type(im->ir, a->tp);
    return read_lists(im, to, a);
}

/* Inside a function an attribute may stand for one of the call: its value, or the default, or nothing. */
static Status referred_attr(Importer *im, const Onnx__AttributeProto *a, CallAttr *to, bool *there)
{
    const Frame *f = im->frame;
    const char *name = import_name(im, a->ref_attr_name);
    *there = false;
    if (!f->function)
        return fail(im->ir->diag, importer_place(im), "attribute %s refers to %s outside of a function",
                    import_name(im, a->name), name);
    const CallAttr *given = call_attr(f->call, name);
    if (given) {
        *to = *given;
        to->name = import_name(im, a->name);
        *there = true;
        return OK;
    }
    for (size_t i = 0; i < f->function->n_attribute_proto; i++) {
        if (!str_is(str_of(f->function->attribute_proto[i]->name), name))
            continue;
        TRY(read_attr(im, to, f->function->attribute_proto[i]));
        to->name = import_name(im, a->name);
        *there = true;
    }
    return OK;
}

/* A schema has few attributes; an operator that nobody knows may have any number. */
static Status check_attr(Importer *im, const Call *c, const CallAttr *a, const OnnxSchema *schema, Map *seen)
{
    bool fresh = true;
    if (!schema)
        map_put(seen, a->name, &fresh);
    if (schema ? call_attr(c, a->name) != NULL : !fresh)
        return fail(im->ir->diag, importer_place(im), "attribute %s is given twice", a->name);
    if (!schema)
        return OK;
    const OnnxAttr *known = schema_attr(schema, a->name);
    if (!known)
        return fail(im->ir->diag, importer_place(im), "%s has no attribute %s in opset %d", schema->op, a->name,
                    schema->since);
    if (a->type != known->type)
        return fail(im->ir->diag, importer_place(im), "attribute %s is of type %d, not %d", a->name, a->type,
                    known->type);
    return OK;
}

Status read_attrs(Importer *im, Call *c, const Onnx__NodeProto *o, const OnnxSchema *schema)
{
    if (o->n_attribute > (size_t)im->ir->limits.attributes)
        return fail(im->ir->diag, importer_place(im), "%zu attributes are more than the limit attributes (%" PRId64 ")",
                    o->n_attribute, im->ir->limits.attributes);
    Map seen;
    map_open(&seen, im->arena);
    for (size_t i = 0; i < o->n_attribute; i++) {
        CallAttr a;
        bool there = true;
        if (o->attribute[i]->ref_attr_name.len)
            TRY(referred_attr(im, o->attribute[i], &a, &there));
        else
            TRY(read_attr(im, &a, o->attribute[i]));
        if (!there)
            continue;
        TRY(check_attr(im, c, &a, schema, &seen));
        GROW(im->arena, c->attrs, c->n_attrs, c->cap_attrs);
        c->attrs[c->n_attrs++] = a;
    }
    for (int i = 0; schema && i < schema->n_attr; i++)
        if (schema->attr[i].required && !call_attr(c, schema->attr[i].name))
            return fail(im->ir->diag, importer_place(im), "attribute %s is missing", schema->attr[i].name);
    return OK;
}

static Status fill_choice(const Call *c, const AttrSpec *s, const CallAttr *a, int *to)
{
    for (int i = 0; s->choices[i]; i++) {
        if (a->s && strcmp(s->choices[i], a->s) == 0) {
            *to = i;
            return OK;
        }
    }
    Text list;
    text_open(&list, call_arena(c));
    for (int i = 0; s->choices[i]; i++)
        text_printf(&list, "%s%s", i ? ", " : "", s->choices[i]);
    return call_fail(c, "%s is '%s', not one of %s", s->name, a->s ? a->s : "", text_get(&list));
}

static Status fill_attr(const Call *c, const AttrSpec *s, const CallAttr *a, void *at)
{
    DType dtype;
    switch (s->kind) {
    case ATTR_INT:
        *(int64_t *)at = a->i;
        break;
    case ATTR_FLOAT:
        *(float *)at = a->f;
        break;
    case ATTR_BOOL:
        *(bool *)at = a->i != 0;
        break;
    case ATTR_STR:
        *(const char **)at = a->s;
        break;
    case ATTR_ENUM:
        return fill_choice(c, s, a, at);
    case ATTR_DTYPE:
        if (a->i == 0)
            break; /* "undefined": as if not given */
        if (!dtype_from_onnx(a->i, &dtype))
            return fail_as(call_ir(c)->diag, UNSUPPORTED, importer_place(c->importer),
                           "%s: %s names element type %" PRId64 ", which we do not have", c->op, s->name, a->i);
        *(int *)at = (int)dtype + 1;
        break;
    case ATTR_INTS:
        *(Ints *)at = a->ints;
        break;
    case ATTR_FLOATS:
        *(Floats *)at = a->floats;
        break;
    case ATTR_STRS:
        *(Strs *)at = a->strings;
        break;
    case ATTR_PAYLOAD:
        *(Payload **)at = a->t;
        break;
    case ATTR_TYPE:
        *(const Type **)at = a->tp;
        break;
    case ATTR_END:
        break;
    }
    return OK;
}

Status fill_attrs(const Call *c, const OpDef *def, void **attr)
{
    *attr = attrs_default(call_arena(c), def->attrs);
    const AttrSpec *stream = attr_find(def->attrs, str("stream"));
    if (stream) /* what tells draws of different nodes apart */
        *(int64_t *)attr_at(stream, *attr) = c->build->src;
    for (size_t i = 0; i < c->n_attrs; i++) {
        const CallAttr *a = &c->attrs[i];
        const AttrSpec *s = attr_find(def->attrs, str(a->name));
        if (s)
            TRY(fill_attr(c, s, a, attr_at(s, *attr)));
        else if (a->type != ONNX_ATTR_GRAPH)
            return call_fail(c, "attribute %s is not understood", a->name);
    }
    const char *noted = c->ours && stream ? node_note(c->importer, c->ours, QCC_STREAM) : NULL;
    uint64_t value;
    if (noted) {
        TRY(note_number(c->importer, &noted, INT64_MAX, &value));
        *(int64_t *)attr_at(stream, *attr) = (int64_t)value;
    }
    return OK;
}

static Payload *list_payload(Importer *im, DType dtype, bool scalar, int n, const void *values, size_t bytes)
{
    Types *types = &im->ir->types;
    Tensor *t = tensor_new(im->arena, scalar ? type_scalar(types, dtype) : type_vector(types, dtype, n));
    if (bytes)
        bytes_copy(t->data, values, bytes);
    return payload_of(im->arena, t);
}

Status constant_payload(Importer *im, const Call *c, const Onnx__NodeProto *o, Payload **payload)
{
    (void)o;
    if (c->n_attrs != 1)
        return call_fail(c, "has %zu attributes where exactly one gives the value", c->n_attrs);
    const CallAttr *a = &c->attrs[0];
    switch (a->type) {
    case ONNX_ATTR_TENSOR:
    case ONNX_ATTR_SPARSE_TENSOR:
        *payload = a->t;
        break;
    case ONNX_ATTR_INT:
        *payload = list_payload(im, I64, true, 1, &a->i, sizeof a->i);
        break;
    case ONNX_ATTR_FLOAT:
        *payload = list_payload(im, F32, true, 1, &a->f, sizeof a->f);
        break;
    case ONNX_ATTR_INTS:
        *payload = list_payload(im, I64, false, a->ints.n, a->ints.v, (size_t)a->ints.n * sizeof(int64_t));
        break;
    case ONNX_ATTR_FLOATS:
        *payload = list_payload(im, F32, false, a->floats.n, a->floats.v, (size_t)a->floats.n * sizeof(float));
        break;
    default:
        break; /* strings: an opaque node */
    }
    if (*payload && !(*payload)->name)
        (*payload)->name = im->where;
    return OK;
}
