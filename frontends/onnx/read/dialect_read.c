#include "frontends/onnx/read/dialect_read.h"

#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "ir/store/init.h"

const char *note_of(Importer *im, Onnx__StringStringEntryProto *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(str_of(list[i]->key), key))
            return arena_copy(im->arena, (const char *)list[i]->value.data, list[i]->value.len);
    return NULL;
}

const char *node_note(Importer *im, const Onnx__NodeProto *o, const char *key)
{
    return note_of(im, o->metadata_props, o->n_metadata_props, key);
}

static Status broken(Importer *im, const char *text)
{
    return fail(im->ir->diag, importer_place(im), "its metadata say '%s', which no writer of ours does", text);
}

Status note_number(Importer *im, const char **at, uint64_t most, uint64_t *value)
{
    const char *p = *at;
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (v > (most - digit) / 10 && (v > most / 10 || v * 10 > most - digit))
            return broken(im, *at);
        v = v * 10 + digit;
    }
    if (p == *at || (*p && *p != ' '))
        return broken(im, *at);
    *value = v;
    *at = p + (*p == ' ');
    return OK;
}

static Status whole_number(Importer *im, const char *text, uint64_t most, uint64_t *value)
{
    TRY(note_number(im, &text, most, value));
    return *text ? broken(im, text) : OK;
}

/* ---- names and marks ---- */

const char *shown_name(const Importer *im, const char *name)
{
    const MapEntry *e = im->texts.n ? map_find(&im->texts, name) : NULL;
    const size_t n = strlen(im->prefix);
    if (e)
        return e->value.cp;
    if (n && strncmp(name, im->prefix, n) == 0)
        name = name_of(&im->ir->names, name + n, strlen(name + n));
    return strncmp(name, QCC_NAMELESS, strlen(QCC_NAMELESS)) == 0 ? NULL : name;
}

static const char *interned(Importer *im, const char *text)
{
    return text[0] ? name_of(&im->ir->names, text, strlen(text)) : NULL;
}

Status dialect_set_marks(Importer *im, const char *text, Node *n)
{
    uint64_t src, flags;
    TRY(note_number(im, &text, UINT32_MAX, &src));
    TRY(whole_number(im, text, UINT16_MAX, &flags));
    n->src = (uint32_t)src;
    n->flags = (uint16_t)flags;
    return OK;
}

Status dialect_tensor_marks(Importer *im, const Onnx__TensorProto *t, Node *n)
{
    const char *flags = note_of(im, t->metadata_props, t->n_metadata_props, QCC_FLAGS);
    const char *label = note_of(im, t->metadata_props, t->n_metadata_props, QCC_NODE);
    uint64_t v;
    if (flags) {
        TRY(whole_number(im, flags, UINT16_MAX, &v));
        n->flags = (uint16_t)v;
    }
    if (label)
        n->label = interned(im, label);
    return OK;
}

Status dialect_marks(Importer *im, const Onnx__NodeProto *o, Build *b)
{
    const char *src = node_note(im, o, QCC_SRC), *flags = node_note(im, o, QCC_FLAGS);
    const char *name = node_note(im, o, QCC_NAME), *label = node_note(im, o, QCC_NODE);
    const size_t prefix = strlen(im->prefix);
    uint64_t v;
    if (src) {
        TRY(whole_number(im, src, UINT32_MAX, &v));
        b->src = (uint32_t)v;
    }
    if (flags) {
        TRY(whole_number(im, flags, UINT16_MAX, &v));
        b->flags = (uint16_t)v;
    }
    if (prefix && b->label && strncmp(b->label, im->prefix, prefix) == 0)
        b->label = interned(im, b->label + prefix);
    if (label)
        b->label = interned(im, label);
    if (name && o->n_output == 1)
        map_put(&im->texts, import_name(im, o->output[0]), NULL)->value.cp = interned(im, name);
    return OK;
}

Status dialect_counts(Importer *im, Call *c)
{
    const char *in = node_note(im, c->ours, QCC_OPERANDS), *out = node_note(im, c->ours, QCC_OUTPUTS);
    const uint64_t most = (uint64_t)im->ir->limits.node_io;
    uint64_t n;
    if (in) {
        TRY(whole_number(im, in, most, &n));
        while (c->n_in < (int)n)
            call_set_in(c, c->n_in, NULL);
    }
    if (out) {
        TRY(whole_number(im, out, most, &n));
        if (c->n_out < (int)n)
            c->n_out = (int)n;
    }
    return OK;
}

/* ---- constants ---- */

Status dialect_init(Importer *im, const char *text, const Type *type, Payload **p)
{
    const size_t word = strcspn(text, " ");
    uint64_t seed, bits;
    for (int k = 0; k < INIT_COUNT; k++) {
        Init init = { .kind = (InitKind)k };
        if (strlen(init_word(init.kind)) != word || memcmp(init_word(init.kind), text, word) != 0)
            continue;
        const char *at = text + word + (text[word] == ' ');
        TRY(note_number(im, &at, UINT64_MAX, &seed));
        TRY(whole_number(im, at, UINT32_MAX, &bits));
        const uint32_t scale = (uint32_t)bits;
        init.seed = seed;
        memcpy(&init.scale, &scale, sizeof scale);
        *p = payload_init(im->arena, type, init);
        return OK;
    }
    return broken(im, text);
}

/* The payload that another constant brought, under its ONNX name. */
static Status known_payload(Importer *im, const char *name, const Type *type, Payload **p)
{
    const MapEntry *e = map_find(&im->payloads, name);
    Payload *found = e ? e->value.p : NULL;
    if (!e && im->find_payload)
        TRY(im->find_payload(im, name, &found));
    if (!found)
        return fail(im->ir->diag, importer_place(im), "reads %s, which is no constant before it", name);
    *p = found;
    if (type && found->type != type)
        return fail(im->ir->diag, importer_place(im), "is said to equal %s, which has another type", name);
    return OK;
}

static Status noted_payload(Importer *im, const char *said, const char *same, Payload **p)
{
    if (same)
        return known_payload(im, same, (*p)->type, p);
    return said && strcmp(said, "none") != 0 ? dialect_init(im, said, (*p)->type, p) : OK;
}

Status dialect_payload(Importer *im, const Onnx__TensorProto *t, Payload **payload)
{
    const char *blob = note_of(im, t->metadata_props, t->n_metadata_props, QCC_BLOB);
    TRY(noted_payload(im, note_of(im, t->metadata_props, t->n_metadata_props, QCC_INIT),
                      note_of(im, t->metadata_props, t->n_metadata_props, QCC_SAME), payload));
    if (blob)
        (*payload)->name = blob;
    return OK;
}

Status dialect_late(Importer *im, Scope *s, const Onnx__TensorProto *t, Node *param)
{
    const char *at = note_of(im, t->metadata_props, t->n_metadata_props, QCC_AT);
    uint64_t nodes;
    if (!at || param->op != OP_param)
        return OK;
    TRY(whole_number(im, at, UINT32_MAX, &nodes));
    GROW(im->arena, s->late, s->n_late, s->cap_late);
    s->late[s->n_late++] = (LateParam){ param, nodes };
    return OK;
}

void dialect_place(Scope *s, size_t *next, uint64_t nodes)
{
    for (; *next < s->n_late && s->late[*next].at == nodes; ++*next)
        if (!s->late[*next].node->uses) /* others may have changed the file since */
            node_move(s->late[*next].node, NULL);
}

static Status constant_payload_of(Importer *im, const Onnx__NodeProto *o, Payload **p)
{
    const Onnx__TensorProto *t = o->n_attribute == 1 ? o->attribute[0]->t : NULL;
    if (o->n_input == 1)
        return known_payload(im, import_name(im, o->input[0]), NULL, p);
    if (!t)
        return fail(im->ir->diag, importer_place(im), "is a constant without a value");
    TRY(import_payload(im, t, p));
    (*p)->name = t->name.len ? arena_copy(im->arena, (const char *)t->name.data, t->name.len) : NULL;
    return noted_payload(im, node_note(im, o, QCC_INIT), node_note(im, o, QCC_SAME), p);
}

static Status read_constant(Importer *im, Scope *s, const Onnx__NodeProto *o, Build *b, const char *kind)
{
    Payload *p = NULL;
    if (o->n_output != 1 || !o->output[0].len)
        return fail(im->ir->diag, importer_place(im), "is a constant without a name");
    TRY(constant_payload_of(im, o, &p));
    const char *name = import_name(im, o->output[0]);
    map_put(&im->payloads, name, NULL)->value.p = p;
    Node *n = build_typed(b, kind[0] == '1' ? OP_const : OP_param, &(ValueAttr){ p }, 0, NULL, p->type);
    return scope_define(im, s, name, n);
}

/* ---- parts and second names ---- */

static Status operand_of(Importer *im, Scope *s, const Onnx__NodeProto *o, Node **x)
{
    if (o->n_input != 1 || o->n_output != 1 || !o->input[0].len || !o->output[0].len)
        return fail(im->ir->diag, importer_place(im), "has not one operand and one result");
    const char *name = import_name(im, o->input[0]);
    *x = scope_value(im, s, name);
    return *x ? OK : fail(im->ir->diag, importer_place(im), "reads %s, which nothing before it defines", name);
}

static Status read_part(Importer *im, Scope *s, const Onnx__NodeProto *o, Build *b, const char *index)
{
    Node *x;
    uint64_t i;
    TRY(operand_of(im, s, o, &x));
    if (x->type->kind != TYPE_TUPLE || x->graph != s->graph)
        return fail(im->ir->diag, importer_place(im), "is a part of a value that has none");
    TRY(whole_number(im, index, UINT16_MAX, &i));
    if ((int)i >= type_results(x->type))
        return fail(im->ir->diag, importer_place(im), "is part %" PRIu64 " of a value that has %d", i,
                    type_results(x->type));
    return scope_define(im, s, import_name(im, o->output[0]), build_part(b, x, (int)i));
}

Status dialect_simple(Importer *im, Scope *s, const Onnx__NodeProto *o, Build *b, bool *done)
{
    const char *constant = node_note(im, o, QCC_CONST), *part = node_note(im, o, QCC_PART);
    Node *x;
    *done = true;
    if (constant)
        return read_constant(im, s, o, b, constant);
    if (part)
        return read_part(im, s, o, b, part);
    *done = node_note(im, o, QCC_RESULT) != NULL;
    if (!*done)
        return OK;
    TRY(operand_of(im, s, o, &x));
    map_put(&s->values, import_name(im, o->output[0]), NULL)->value.p = x;
    return OK;
}

/* ---- types ---- */

Status dialect_stated(Importer *im, Scope *s, ProtobufCBinaryData name, const Type **type)
{
    *type = NULL;
    if (!s->proto || !name.len)
        return OK;
    if (!s->types.arena) {
        map_open(&s->types, im->arena);
        for (size_t i = 0; i < s->proto->n_value_info; i++) {
            const Onnx__ValueInfoProto *v = s->proto->value_info[i];
            map_put(&s->types, import_name(im, v->name), NULL)->value.cp = v;
        }
    }
    const MapEntry *e = map_find_n(&s->types, (const char *)name.data, name.len);
    const Onnx__ValueInfoProto *v = e ? e->value.cp : NULL;
    const char *why = NULL;
    if (v && v->type && !(*type = onnx_type_or(im->ir, v->type, &why)))
        return fail(im->ir->diag, importer_place(im), "the type of %s: %s", e->key, why);
    return OK;
}

static Status agreed(Importer *im, Scope *s, ProtobufCBinaryData name, const Type **type)
{
    const Type *stated;
    TRY(dialect_stated(im, s, name, &stated));
    if (!stated)
        return OK;
    if (!type_agrees(stated, *type))
        return fail(im->ir->diag, importer_place(im), "%.*s is stated to be %s and is %s", STR_ARG(str_of(name)),
                    type_text(im->arena, stated), type_text(im->arena, *type));
    *type = stated;
    return OK;
}

Status dialect_settle(Importer *im, Scope *s, Node *y, const Onnx__NodeProto *o)
{
    const char *name = node_note(im, o, QCC_TUPLE);
    if (y->type->kind != TYPE_TUPLE)
        return o->n_output ? agreed(im, s, o->output[0], &y->type) : OK;
    const int n = type_results(y->type);
    const Type **parts = NEWS(im->arena, const Type *, n + 1);
    for (int i = 0; i < n; i++) {
        parts[i] = y->type->parts[i];
        if (i < (int)o->n_output)
            TRY(agreed(im, s, o->output[i], &parts[i]));
    }
    y->type = type_tuple(&im->ir->types, n, parts);
    if (name && name[0])
        y->name = interned(im, name);
    return OK;
}

/* ---- regions ---- */

/* A parameter of a region: its name and marks, where they are noted. */
static Status noted_parameter(Importer *im, const Call *c, int r, int i, Node *p)
{
    const char *name = node_note(im, c->ours, arena_printf(im->arena, QCC_INSIDE "%d.%d", r, i));
    const char *marks = node_note(im, c->ours, arena_printf(im->arena, QCC_MARKS "%d.%d", r, i));
    const char *label = node_note(im, c->ours, arena_printf(im->arena, QCC_LABEL "%d.%d", r, i));
    if (name)
        p->name = interned(im, name);
    if (label)
        p->label = interned(im, label);
    return marks ? dialect_set_marks(im, marks, p) : OK;
}

Status dialect_captures(Importer *im, Scope *outer, Scope *region, const Call *c, int r)
{
    for (size_t i = 0; i < region->graph->n_inputs; i++)
        TRY(noted_parameter(im, c, r, (int)i, region->graph->inputs[i]));
    for (int k = 0;; k++) {
        const char *name = node_note(im, c->ours, arena_printf(im->arena, QCC_CAPTURE "%d", k));
        const Type *type;
        bool fresh;
        if (!name)
            return OK;
        name = interned(im, name);
        Node *value = name ? scope_value(im, outer, name) : NULL;
        if (!value)
            return fail(im->ir->diag, importer_place(im), "its body takes %s, which nothing before it defines",
                        name ? name : "nothing");
        TRY(dialect_stated(im, region, (ProtobufCBinaryData){ strlen(name), (uint8_t *)(uintptr_t)name }, &type));
        MapEntry *e = map_put(&region->values, name, &fresh);
        if (!fresh)
            return fail(im->ir->diag, importer_place(im), "its body takes %s twice", name);
        Node *p = graph_input(region->graph, shown_name(im, name), type ? type : value->type);
        e->value.p = p;
        TRY(noted_parameter(im, c, r, (int)region->graph->n_inputs - 1, p));
        scope_capture(im, region, value, p);
    }
}
