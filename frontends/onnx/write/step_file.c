/* The file of a training step: the bytes of the model, and behind them what only a step has. */
#include <inttypes.h>
#include <string.h>

#include "frontends/onnx/file/pack.h"
#include "frontends/onnx/file/step_digest.h"
#include "frontends/onnx/read/step_layout.h"
#include "frontends/onnx/write/relocate.h"
#include "frontends/onnx/write/step_writer.h"

/* The version of a domain among the first imports of a file; 0: none. */
static int64_t imported(const Onnx__ModelProto *m, size_t n, const char *domain)
{
    for (size_t i = 0; i < n; i++) {
        const Str d = str_of(m->opset_import[i]->domain);
        if (str_is(d, domain) || (!domain[0] && str_is(d, "ai.onnx")))
            return m->opset_import[i]->has_version ? m->opset_import[i]->version : 1;
    }
    return 0;
}

static Status add_import(StepWriter *x, const Layout *l, Onnx__ModelProto *tail, const char *domain, int64_t version,
                         bool needed)
{
    const int64_t there = imported(x->spine->model, l->n_imports, domain);
    if (!needed || there == version)
        return OK;
    if (there)
        return step_refuse(x, domain, "is imported in another version than the step needs");
    tail->opset_import =
        arena_grow(x->w.arena, tail->opset_import, tail->n_opset_import, tail->n_opset_import + 1, sizeof(void *));
    tail->opset_import[tail->n_opset_import++] = opset_import(&x->w, domain, version);
    return OK;
}

static bool has_key(Onnx__StringStringEntryProto *const *list, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (str_is(str_of(list[i]->key), key))
            return true;
    return false;
}

static Status add_notes(StepWriter *x, const Layout *l, Onnx__ModelProto *tail, const StepNotes *notes)
{
    const Onnx__ModelProto *m = x->spine->model;
    for (size_t i = 0; notes && i < notes->n; i++) {
        const char *key = notes->list[i].key;
        const bool ours = strncmp(key, "qcc.", 4) == 0 && strncmp(key, "qcc.file.", 9) != 0;
        if (!ours || has_key(tail->metadata_props, tail->n_metadata_props, key))
            return step_refuse(x, key, "is no key for a note of a step, or comes twice");
        if (has_key(m->metadata_props, l->n_metadata, key))
            return step_refuse(x, key, "is metadata of the model already");
        note(&x->w, &tail->metadata_props, &tail->n_metadata_props, key, notes->list[i].value);
    }
    return OK;
}

/* The lowest IR version that has training information and every element type of the step. */
static uint64_t ir_version(const StepWriter *x)
{
    enum { TRAINING_SINCE = 7 };
    const Onnx__ModelProto *m = x->spine->model;
    uint64_t v = m->has_ir_version && m->ir_version > TRAINING_SINCE ? (uint64_t)m->ir_version : TRAINING_SINCE;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        const int since = schema_type_ir(dtype_onnx((DType)d));
        if (x->w.dtypes >> d & 1 && since > (int)v)
            v = (uint64_t)since;
    }
    return v;
}

typedef struct Edits {
    Edit *list;
    size_t n, cap;
} Edits;

/* What is ours, and behind it the digest of all of the file. */
typedef struct Tail {
    Onnx__ModelProto model;
    DigestSink digest;
} Tail;

static Status put_tail(void *user, const Sink *sink)
{
    Tail *tail = user;
    TRY(put_packed(&tail->model, sink));
    return step_digest_end(&tail->digest, sink);
}

static Splice splice_of(StepWriter *x, const Edits *e)
{
    return (Splice){ .source = &x->spine->source,
                     .type = x->spine->type,
                     .limits = &x->spine->limits,
                     .diag = x->w.diag,
                     .arena = x->w.arena,
                     .edits = e->list,
                     .n_edits = e->n };
}

static void add_edit(StepWriter *x, Edits *e, Edit edit)
{
    GROW(x->w.arena, e->list, e->n, e->cap);
    e->list[e->n++] = edit;
}

static Status note_file(StepWriter *x, Onnx__ModelProto *tail, const Layout *l, const Edits *e)
{
    const Onnx__ModelProto *m = x->spine->model;
    const bool had = l->ir_kept ? l->ir_had : m->has_ir_version;
    const uint64_t ir = l->ir_kept ? l->ir : (uint64_t)m->ir_version;
    uint64_t size;
    const Splice how = splice_of(x, e);
    TRY(splice_size(&how, &size));
    const char *text = arena_printf(x->w.arena, "%" PRIu64, size - (x->spine->source.size - l->model));
    note(&x->w, &tail->metadata_props, &tail->n_metadata_props, QCC_FILE_BYTES, text);
    text = had ? arena_printf(x->w.arena, "%" PRIu64, ir) : "";
    note(&x->w, &tail->metadata_props, &tail->n_metadata_props, QCC_FILE_IR, text);
    return OK;
}

/* The model, then everything of ours. */
static Status put_file(StepWriter *x, Relocation *r, const Layout *l, Tail *tail, const Sink *sink)
{
    Edits e = { 0 };
    if (r->all)
        TRY(weight_file_move_all(r->weight_file, &x->algorithm));
    TRY(relocate_rest(r));
    for (size_t i = 0; i < r->n; i++)
        add_edit(x, &e, r->edits[i]);
    if (!x->spine->model->has_ir_version || ir_version(x) != (uint64_t)x->spine->model->ir_version)
        add_edit(x, &e, layout_edit_ir(l, true, ir_version(x)));
    TRY(note_file(x, &tail->model, l, &e));
    const size_t n = protobuf_c_message_get_packed_size(&tail->model.base) + STEP_DIGEST_BYTES;
    if (n > (size_t)x->spine->limits.model_bytes)
        return step_refuse(x, "step", "is larger than one file may be (limit model_bytes)");
    add_edit(x, &e, layout_edit_tail(l, x->spine, n, put_tail, tail));
    const Splice how = splice_of(x, &e);
    relocation_settle(r);
    const Sink hashed = step_digest_begin(&tail->digest, sink);
    return splice_write(&how, &hashed, NULL);
}

static Status write_file(StepWriter *x, const StepNotes *notes, const Sink *sink, WeightFile *weight_file)
{
    Tail tail = { .model = ONNX__MODEL_PROTO__INIT };
    Onnx__TrainingInfoProto *info = &x->info;
    Layout layout;
    Relocation r;
    TRY(layout_read(x->spine, x->w.diag, x->w.arena, &layout));
    info->algorithm = &x->algorithm;
    tail.model.training_info = &info;
    tail.model.n_training_info = 1;
    TRY(add_import(x, &layout, &tail.model, QCC_DOMAIN, QCC_DOMAIN_VERSION, x->w.needs_qcc));
    TRY(add_import(x, &layout, &tail.model, ONNX_PREVIEW, ONNX_PREVIEW_NEWEST, x->w.needs_preview));
    TRY(add_notes(x, &layout, &tail.model, notes));
    const uint64_t size = layout.model + protobuf_c_message_get_packed_size(&tail.model.base);
    relocation_open(&r, x->spine, x->w.arena, x->w.diag, weight_file,
                    size > (uint64_t)weight_file_threshold(&x->spine->limits));
    return put_file(x, &r, &layout, &tail, sink);
}

static Status write_step(StepWriter *x, const StepNotes *notes, const Sink *sink, WeightFile *weight_file)
{
    static const char name[] = "qcc.step";
    TRY(step_read_model(x));
    x->algorithm = (Onnx__GraphProto)ONNX__GRAPH_PROTO__INIT;
    x->info = (Onnx__TrainingInfoProto)ONNX__TRAINING_INFO_PROTO__INIT;
    x->algorithm.has_name = 1;
    x->algorithm.name = encode_text(name);
    x->level.proto = &x->algorithm;
    TRY(step_write_graphs(x));
    return write_file(x, notes, sink, weight_file);
}

Status onnx_write_step(Spine *s, const Module *m, const StepNotes *notes, Diag *d, const Sink *sink,
                       WeightFile *weight_file)
{
    Arena arena;
    StepWriter x = { .spine = s, .module = m };
    const int64_t opset = imported(s->model, s->model->n_opset_import, "");
    TRY(source_unchanged(&s->source, d));
    arena_open(&arena, s->memory);
    writer_open(&x.w, m->ir, &arena, d, (int)(opset < 1 ? 1 : opset > ONNX_OPSET_NEWEST ? ONNX_OPSET_NEWEST : opset));
    x.w.spine = s;
    x.w.state_all = true;
    map_open(&x.initializers, &arena);
    map_open(&x.beginnings, &arena);
    map_open(&x.changing, &arena);
    map_open(&x.inputs, &arena);
    map_open(&x.bound, &arena);
    map_open(&x.states, &arena);
    const Status status = s->model->n_training_info && !onnx_is_step(s)
                              ? step_refuse(&x, "training_info", "is there already, and not of ours")
                              : write_step(&x, notes, sink, weight_file);
    writer_close(&x.w);
    arena_close(&arena);
    return status;
}
