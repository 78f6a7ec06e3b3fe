#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/number_text.h"
#include "frontends/view/json.h"
#include "ir/store/blob.h"
#include "ir/store/init.h"
#include "ir/text/literal.h"
#include "ir/role.h"

enum { FIRST = 16, MOST_READ = 1 << 24 };
#define EXACT_IN_F64 (INT64_C(1) << 53)

static void add_i64(Json *j, int64_t v)
{
    const char *quote = v > EXACT_IN_F64 || v < -EXACT_IN_F64 ? "\"" : "";
    text_printf(&j->q->text, "%s%" PRId64 "%s", quote, v, quote);
}

/* A number that is not finite is a string: "nan", "inf", "-inf". */
static bool add_not_finite(Json *j, double v)
{
    if (isfinite(v))
        return false;
    text_add(&j->q->text, isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"");
    return true;
}

static void add_f32(Json *j, float v)
{
    char text[NUMBER_TEXT];
    if (add_not_finite(j, (double)v))
        return;
    f32_to_text(text, v);
    text_add(&j->q->text, text);
}

static void add_element(Json *j, const Tensor *t, int64_t i)
{
    const DType d = t->type->dtype;
    if (dtype_is_float(d)) {
        if (!add_not_finite(j, tensor_get_f64(t, i)))
            literal_element(&j->q->text, t, i);
    } else if (d == U64) {
        text_printf(&j->q->text, "\"%" PRIu64 "\"", (uint64_t)tensor_get_i64(t, i));
    } else if (d == BOOL) {
        text_add(&j->q->text, tensor_get_i64(t, i) ? "true" : "false");
    } else {
        add_i64(j, tensor_get_i64(t, i));
    }
}

static void add_string(Json *j, const char *s)
{
    if (s)
        quill_json(j->q, s);
    else
        text_add(&j->q->text, "null");
}

static void add_type(Json *j, const Type *type)
{
    quill_json(j->q, type_text(j->scratch, type));
}

/* Said, not stored: no reading needed. */
static bool add_init(Json *j, const Payload *p)
{
    Init init;
    if (!payload_is_init(p, &init))
        return false;
    text_add(&j->q->text, ",\"init\":");
    quill_json(j->q, init_word(init.kind));
    if (init_draws(init.kind)) {
        text_printf(&j->q->text, ",\"seed\":\"%" PRIu64 "\",\"scale\":", init.seed);
        add_f32(j, init.scale);
    }
    return true;
}

static void add_first(Json *j, Payload *p, size_t bytes)
{
    Heap heap;
    void *block = NULL;
    heap_open(&heap, j->memory);
    const void *data = payload_bytes(p, &heap, &block, j->diag);
    if (data) {
        const Tensor t = { .type = p->type, .data = (void *)(uintptr_t)data, .bytes = bytes };
        const int64_t n = tensor_elements(&t);
        text_add(&j->q->text, ",\"first\":[");
        for (int64_t i = 0; i < n && i < FIRST; i++) {
            if (i)
                text_char(&j->q->text, ',');
            add_element(j, &t, i);
        }
        text_char(&j->q->text, ']');
    } else if (p->failed && j->q->status == OK) { /* said: what is written must not pass for the whole */
        j->q->status = p->failed;
    }
    heap_close(&heap);
}

static void add_payload(Json *j, Payload *p)
{
    size_t bytes;
    text_add(&j->q->text, "{\"type\":");
    add_type(j, p->type);
    const bool plain = p->type->kind == TYPE_TENSOR && p->type->dtype != STRING && type_known(p->type);
    if (!add_init(j, p) && plain && type_bytes(p->type, &bytes)) {
        if (p->tensor) {
            add_first(j, p, bytes);
        } else if (bytes <= MOST_READ && bytes <= j->may_read) {
            j->may_read -= bytes;
            add_first(j, p, bytes);
        }
    }
    text_char(&j->q->text, '}');
}

static void add_list(Json *j, const AttrSpec *s, const void *at)
{
    const Ints *ints = at;
    const Floats *floats = at;
    const Strs *strs = at;
    const int n = s->kind == ATTR_INTS ? ints->n : s->kind == ATTR_FLOATS ? floats->n : strs->n;
    text_char(&j->q->text, '[');
    for (int i = 0; i < n; i++) {
        if (i)
            text_char(&j->q->text, ',');
        if (s->kind == ATTR_INTS)
            add_i64(j, ints->v[i]);
        else if (s->kind == ATTR_FLOATS)
            add_f32(j, floats->v[i]);
        else
            add_string(j, strs->v[i]);
    }
    text_char(&j->q->text, ']');
}

static void add_attr(Json *j, const AttrSpec *s, const void *at)
{
    DType d;
    switch (s->kind) {
    case ATTR_INT:
        add_i64(j, *(const int64_t *)at);
        break;
    case ATTR_FLOAT:
        add_f32(j, *(const float *)at);
        break;
    case ATTR_BOOL:
        text_add(&j->q->text, *(const bool *)at ? "true" : "false");
        break;
    case ATTR_STR:
        add_string(j, *(const char *const *)at);
        break;
    case ATTR_ENUM:
        add_string(j, s->choices[*(const int *)at]);
        break;
    case ATTR_DTYPE:
        add_string(j, attr_dtype(*(const int *)at, &d) ? dtype_name(d) : NULL);
        break;
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRS:
        add_list(j, s, at);
        break;
    case ATTR_PAYLOAD:
        add_payload(j, *(Payload *const *)at);
        break;
    case ATTR_TYPE:
        add_type(j, *(const Type *const *)at);
        break;
    case ATTR_END:
        break;
    }
}

/* The attributes for which `wanted` holds, as one more member. */
static void add_attrs(Json *j, const char *member, const AttrSpec *specs, const void *attr, bool defaults)
{
    bool any = false;
    for (const AttrSpec *s = specs; s && attr && s->kind != ATTR_END; s++) {
        const bool nothing = s->kind >= ATTR_INTS || (s->kind == ATTR_STR && !s->text);
        if (defaults ? s->required || nothing : attr_is_default(s, attr))
            continue;
        text_printf(&j->q->text, any ? "," : ",\"%s\":{", member);
        any = true;
        quill_json(j->q, s->name);
        text_char(&j->q->text, ':');
        add_attr(j, s, attr_at(s, attr));
    }
    if (any)
        text_char(&j->q->text, '}');
}

void json_attributes(Json *j, const Node *n)
{
    if (n->op == OP_state) /* its initial value stands by itself */
        add_attrs(j, "attributes", attr_find(op_of(n)->attrs, (Str){ "role", 4 }), n->attr, false);
    else if (!node_is_held(n))
        add_attrs(j, "attributes", op_of(n)->attrs, n->attr, false);
}

void json_defaults(Json *j, const OpDef *def)
{
    add_attrs(j, "defaults", def->attrs, attrs_default(j->scratch, def->attrs), true);
}

void json_value(Json *j, const Node *n)
{
    Payload *p = n->op == OP_state            ? state_initial(n)
                 : node_is_held(n) && n->attr ? ((const ValueAttr *)n->attr)->value
                                              : NULL;
    if (!p)
        return;
    text_add(&j->q->text, ",\"value\":");
    add_payload(j, p);
}
