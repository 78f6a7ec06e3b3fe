#include "ir/text/print_node.h"

#include <inttypes.h>
#include <string.h>

#include "ir/store/init.h"
#include "ir/text/lex.h"
#include "ir/text/literal.h"

void print_name(Text *out, char sign, const char *name)
{
    const size_t n = strlen(name);
    text_char(out, sign);
    if (lex_is_word(name, n))
        text_bytes(out, name, n);
    else
        text_quote(out, name, n);
}

static void print_hex(Text *out, const unsigned char *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    text_add(out, "hex\"");
    for (size_t i = 0; i < n; i++) {
        const char pair[2] = { digits[bytes[i] >> 4], digits[bytes[i] & 15] };
        text_bytes(out, pair, 2);
    }
    text_char(out, '"');
}

static void print_init(Text *out, const Init *init)
{
    text_add(out, init_word(init->kind));
    if (!init_draws(init->kind))
        return;
    text_printf(out, "(seed=%" PRId64, (int64_t)init->seed);
    if (init->scale != 1) {
        text_add(out, ", scale=");
        literal_f32(out, init->scale);
    }
    text_char(out, ')');
}

static void print_elements(Text *out, const Tensor *t)
{
    const int64_t n = tensor_elements(t);
    if (t->type->rank == 0) {
        literal_element(out, t, 0);
        return;
    }
    text_char(out, '[');
    for (int64_t i = 0; i < n; i++) {
        if (i)
            text_add(out, ", ");
        literal_element(out, t, i);
    }
    text_char(out, ']');
}

static void print_bytes(Printer *p, Payload *payload, bool as_hex)
{
    Heap heap;
    void *block = NULL;
    size_t size;
    heap_open(&heap, p->memory);
    const void *bytes = payload_bytes(payload, &heap, &block, p->diag);
    if (!bytes || !type_bytes(payload->type, &size)) {
        p->status = payload->failed ? payload->failed : INVALID;
    } else if (as_hex) {
        print_hex(p->out, bytes, size);
    } else {
        const Tensor t = { .type = payload->type, .data = (void *)(uintptr_t)bytes, .bytes = size };
        print_elements(p->out, &t);
    }
    heap_close(&heap);
}

void print_payload(Printer *p, Payload *payload, const char *wish)
{
    const Type *type = payload->type;
    Init init;
    if (payload_is_init(payload, &init)) {
        print_init(p->out, &init);
        return;
    }
    const bool text = type->kind != TYPE_TENSOR || type->dtype == STRING;
    if (!text && type_elements(type) <= PRINT_INLINE_ELEMENTS) {
        print_bytes(p, payload, false);
    } else if (p->brief) {
        text_add(p->out, "...");
    } else if (!text && !p->blobs) {
        print_bytes(p, payload, true);
    } else {
        const char *name = payload->name ? payload->name : wish ? wish : "constant";
        text_add(p->out, "@blob(");
        name = p->blobs ? blobs_add(p->blobs, payload, name) : name;
        text_quote(p->out, name, strlen(name));
        text_char(p->out, ')');
    }
}

static void print_string(Text *out, const char *text)
{
    if (text)
        text_quote(out, text, strlen(text));
    else
        text_add(out, "none");
}

static void print_list(Text *out, const AttrSpec *s, const void *at)
{
    const Ints *ints = at;
    const Floats *floats = at;
    const Strs *strs = at;
    const int n = s->kind == ATTR_INTS ? ints->n : s->kind == ATTR_FLOATS ? floats->n : strs->n;
    text_char(out, '[');
    for (int i = 0; i < n; i++) {
        if (i)
            text_add(out, ", ");
        if (s->kind == ATTR_INTS)
            text_printf(out, "%" PRId64, ints->v[i]);
        else if (s->kind == ATTR_FLOATS)
            literal_f32(out, floats->v[i]);
        else
            print_string(out, strs->v[i]);
    }
    text_char(out, ']');
}

static void print_choice(Text *out, const AttrSpec *s, int choice)
{
    const char *word = s->choices[choice];
    if (lex_is_word(word, strlen(word)))
        text_add(out, word);
    else
        print_string(out, word);
}

static void print_attr(Printer *p, const AttrSpec *s, const void *at, const char *wish)
{
    Payload *payload;
    switch (s->kind) {
    case ATTR_INT:
        text_printf(p->out, "%" PRId64, *(const int64_t *)at);
        break;
    case ATTR_FLOAT:
        literal_f32(p->out, *(const float *)at);
        break;
    case ATTR_BOOL:
        text_add(p->out, *(const bool *)at ? "true" : "false");
        break;
    case ATTR_STR:
        print_string(p->out, *(const char *const *)at);
        break;
    case ATTR_ENUM:
        print_choice(p->out, s, *(const int *)at);
        break;
    case ATTR_DTYPE:
        text_add(p->out, *(const int *)at ? dtype_name((DType)(*(const int *)at - 1)) : "none");
        break;
    case ATTR_INTS:
    case ATTR_FLOATS:
    case ATTR_STRS:
        print_list(p->out, s, at);
        break;
    case ATTR_PAYLOAD:
        payload = *(Payload *const *)at;
        type_print(p->out, payload->type);
        text_char(p->out, ' ');
        print_payload(p, payload, wish);
        break;
    case ATTR_TYPE:
        type_print(p->out, *(const Type *const *)at);
        break;
    case ATTR_END:
        break;
    }
}

void print_attr_value(Text *out, const AttrSpec *spec, const void *attr)
{
    Printer p = { .out = out };
    if (spec->kind == ATTR_PAYLOAD)
        type_print(out, (*(Payload *const *)attr_at(spec, attr))->type);
    else
        print_attr(&p, spec, attr_at(spec, attr), NULL);
}

void print_attrs(Printer *p, const Node *n, bool first)
{
    if (!n->attr)
        return;
    for (const AttrSpec *s = op_of(n)->attrs; s && s->kind != ATTR_END; s++) {
        if (attr_is_default(s, n->attr))
            continue;
        if (!first)
            text_add(p->out, ", ");
        first = false;
        text_add(p->out, s->name);
        text_char(p->out, '=');
        print_attr(p, s, attr_at(s, n->attr), n->name);
    }
}
