#include "frontends/onnx/read/step_layout.h"

#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/step.h"

enum { IR_VERSION = 1, OPSET_IMPORT = 8, METADATA = 14, TRAINING_INFO = 20 };

static const Onnx__StringStringEntryProto *entry(Onnx__StringStringEntryProto *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(str_of(list[i]->key), key))
            return list[i];
    return NULL;
}

bool onnx_is_step(const Spine *s)
{
    const Onnx__ModelProto *m = s->model;
    const Onnx__GraphProto *g = m && m->n_training_info == 1 ? m->training_info[0]->algorithm : NULL;
    return g && entry(g->metadata_props, g->n_metadata_props, QCC_GRAPHS);
}

/* Fields of the file itself, as a walk passes them. */
typedef struct Passing {
    Layout *layout;
    Diag *diag;
    const char *file;
    bool starts; /* a field begins where the model is said to end */
} Passing;

static Status pass(Passing *p, const WireItem *item)
{
    static const uint32_t ours[] = { OPSET_IMPORT, METADATA, TRAINING_INFO };
    bool known = item->key < p->layout->model;
    if (item->depth > 1)
        return OK;
    if (item->number == IR_VERSION) {
        p->layout->ir_at = item->key;
        p->layout->ir_size = item->end - item->key;
    }
    if (item->key < p->layout->model) {
        p->layout->n_imports += item->number == OPSET_IMPORT;
        p->layout->n_metadata += item->number == METADATA;
    }
    p->starts = p->starts || item->key == p->layout->model;
    for (size_t i = 0; i < COUNT(ours); i++)
        known = known || item->number == ours[i];
    if (known && (item->key >= p->layout->model || item->end <= p->layout->model))
        return OK;
    return fail(p->diag, (Place){ .file = p->file, .byte = (int64_t)item->key },
                "field %u is neither of the model nor of the step behind it", item->number);
}

static Status pass_leaf(void *user, const WireItem *item)
{
    return pass(user, item);
}

static Status pass_message(void *user, const WireItem *item, bool *skip)
{
    *skip = true;
    return pass(user, item);
}

static bool read_number(Str text, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || *value > UINT64_MAX / 10 - 1)
            return false;
        *value = *value * 10 + (uint64_t)(text.p[i] - '0');
    }
    return text.n != 0;
}

static Status read_notes(Spine *s, Diag *d, Layout *l)
{
    const Onnx__ModelProto *m = s->model;
    const Onnx__StringStringEntryProto *bytes = entry(m->metadata_props, m->n_metadata_props, QCC_FILE_BYTES);
    const Onnx__StringStringEntryProto *ir = entry(m->metadata_props, m->n_metadata_props, QCC_FILE_IR);
    if (!bytes || !read_number(str_of(bytes->value), &l->model) || l->model >= s->source.size)
        return fail(d, (Place){ .file = s->source.name, .where = "metadata " QCC_FILE_BYTES, .byte = -1 },
                    "does not say where the model ends");
    l->ir_kept = ir != NULL;
    l->ir_had = ir && ir->value.len;
    if (l->ir_had && (!read_number(str_of(ir->value), &l->ir) || l->ir > INT64_MAX))
        return fail(d, (Place){ .file = s->source.name, .where = "metadata " QCC_FILE_IR, .byte = -1 },
                    "is no version");
    return OK;
}

Status layout_read(Spine *s, Diag *d, Arena *arena, Layout *l)
{
    Passing p = { .layout = l, .diag = d, .file = s->source.name };
    *l = (Layout){ .model = s->source.size };
    const bool step = onnx_is_step(s);
    if (step)
        TRY(read_notes(s, d, l));
    TRY(wire_walk(&(Wire){ .source = &s->source,
                           .type = s->type,
                           .limits = &s->limits,
                           .diag = d,
                           .arena = arena,
                           .visitor = { pass_leaf, pass_message, NULL, &p } }));
    if (step && !p.starts)
        return fail(d, (Place){ .file = s->source.name, .byte = (int64_t)l->model },
                    "the model does not end where the step says");
    return OK;
}

Edit layout_edit_ir(const Layout *l, bool has, uint64_t version)
{
    Edit e = { .offset = l->ir_at, .length = l->ir_size, .bytes = "" };
    if (has) {
        e.n_head = (uint8_t)varint_write(e.head, (uint64_t)IR_VERSION << 3 | WIRE_VARINT);
        e.n_head = (uint8_t)(e.n_head + varint_write(e.head + e.n_head, version));
    }
    return e;
}

Edit layout_edit_tail(const Layout *l, const Spine *s, uint64_t n, Status (*write)(void *user, const Sink *sink),
                      void *user)
{
    return (Edit){ .offset = l->model, .length = s->source.size - l->model, .n = n, .write = write, .user = user };
}
