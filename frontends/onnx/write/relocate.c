#include "frontends/onnx/write/relocate.h"

#include <string.h>

#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/file/pack.h"
#include "frontends/onnx/file/payload.h"
#include "ops/card/schema.h"

static bool is_external(const Onnx__TensorProto *t)
{
    return t->has_data_location && t->data_location == 1;
}

/* The name of the file that a tensor lies in; not of our naming: n = 0. */
static Str data_name(const Onnx__TensorProto *t)
{
    for (size_t i = 0; i < t->n_external_data; i++) {
        Str at = str_of(t->external_data[i]->value);
        while (at.n > 2 && at.p[0] == '.' && at.p[1] == '/')
            at = (Str){ at.p + 2, at.n - 2 };
        if (str_is(str_of(t->external_data[i]->key), "location"))
            return at;
    }
    return (Str){ 0 };
}

/* ---- all tensors of a model ---- */

/* A list of nodes, or the values of a graph, still to be looked at. */
typedef struct Pending {
    Onnx__NodeProto *const *node;
    size_t n_node;
} Pending;

typedef struct Walk {
    Arena *arena;
    Pending *stack;
    size_t n, cap;
    Status (*visit)(void *user, const Onnx__TensorProto *t, bool initializer);
    void *user;
} Walk;

static Status visit_sparse(Walk *w, const Onnx__SparseTensorProto *t)
{
    if (t->values)
        TRY(w->visit(w->user, t->values, false));
    return t->indices ? w->visit(w->user, t->indices, false) : OK;
}

static Status visit_graph(Walk *w, const Onnx__GraphProto *g, bool outermost)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        TRY(w->visit(w->user, g->initializer[i], outermost));
    for (size_t i = 0; i < g->n_sparse_initializer; i++)
        TRY(visit_sparse(w, g->sparse_initializer[i]));
    GROW(w->arena, w->stack, w->n, w->cap);
    w->stack[w->n++] = (Pending){ g->node, g->n_node };
    return OK;
}

static Status visit_attribute(Walk *w, const Onnx__AttributeProto *a)
{
    if (a->t)
        TRY(w->visit(w->user, a->t, false));
    if (a->sparse_tensor)
        TRY(visit_sparse(w, a->sparse_tensor));
    for (size_t i = 0; i < a->n_tensors; i++)
        TRY(w->visit(w->user, a->tensors[i], false));
    for (size_t i = 0; i < a->n_sparse_tensors; i++)
        TRY(visit_sparse(w, a->sparse_tensors[i]));
    if (a->g)
        TRY(visit_graph(w, a->g, false));
    for (size_t i = 0; i < a->n_graphs; i++)
        TRY(visit_graph(w, a->graphs[i], false));
    return OK;
}

static Status visit_model(Walk *w, const Onnx__ModelProto *m)
{
    if (m->graph)
        TRY(visit_graph(w, m->graph, true));
    for (size_t i = 0; i < m->n_functions; i++) {
        GROW(w->arena, w->stack, w->n, w->cap);
        w->stack[w->n++] = (Pending){ m->functions[i]->node, m->functions[i]->n_node };
    }
    while (w->n) {
        const Pending p = w->stack[--w->n];
        for (size_t i = 0; i < p.n_node; i++)
            for (size_t k = 0; k < p.node[i]->n_attribute; k++)
                TRY(visit_attribute(w, p.node[i]->attribute[k]));
    }
    return OK;
}

/* ---- moving ---- */

static Status each_tensor(Relocation *r, Status (*visit)(void *user, const Onnx__TensorProto *t, bool initializer))
{
    Walk w = { .arena = r->arena, .visit = visit, .user = r };
    return visit_model(&w, r->spine->model);
}

/* What the model in hand goes on reading. */
static Status note_read(void *user, const Onnx__TensorProto *t, bool initializer)
{
    Relocation *r = user;
    const Str name = is_external(t) ? data_name(t) : (Str){ 0 };
    (void)initializer;
    if (name.n && !map_find_n(&r->weight_file->read, name.p, name.n))
        map_put(&r->weight_file->read, arena_copy(r->weight_file->arena, name.p, name.n), NULL);
    return OK;
}

void relocation_open(Relocation *r, Spine *s, Arena *arena, Diag *d, WeightFile *weight_file, bool all)
{
    *r = (Relocation){ .spine = s, .diag = d, .arena = arena, .weight_file = weight_file, .all = all && weight_file };
    map_open(&r->replaced, arena);
    r->stays = !weight_file || weight_file_is_folder(weight_file, s->source.folder);
    if (weight_file && r->stays)
        (void)each_tensor(r, note_read);
}

void relocation_settle(Relocation *r)
{
    if (r->weight_file)
        weight_file_settle(r->weight_file);
}

typedef struct Reading {
    Relocation *r;
    const Onnx__TensorProto *t;
    size_t bytes;
} Reading;

static Status read_into(const Reading *x, Heap *heap, void **block)
{
    *block = heap_alloc(heap, x->bytes ? x->bytes : 1);
    const char *where = arena_copy(x->r->arena, (const char *)x->t->name.data, x->t->name.len);
    return tensor_read(x->r->spine, x->r->diag, where, x->t, *block, x->bytes);
}

static Status copy_elements(void *user, const Sink *sink)
{
    const Reading *x = user;
    Heap heap;
    void *block;
    heap_open(&heap, x->r->spine->memory);
    Status status = read_into(x, &heap, &block);
    if (status == OK)
        status = sink->put(sink->user, block, x->bytes);
    heap_close(&heap);
    return status;
}

static void replace_body(Relocation *r, const Onnx__TensorProto *t, Onnx__TensorProto *by)
{
    GROW(r->arena, r->edits, r->n, r->cap);
    r->edits[r->n++] = (Edit){ .within = t->source_at,
                               .offset = t->source_at,
                               .length = t->source_size,
                               .n = protobuf_c_message_get_packed_size(&by->base),
                               .write = put_packed,
                               .user = &by->base };
}

static bool says_value(const Onnx__StringStringEntryProto *e)
{
    return str_is(str_of(e->key), QCC_INIT) || str_is(str_of(e->key), QCC_SAME);
}

bool relocation_forget(Arena *arena, Onnx__StringStringEntryProto ***notes, size_t *n)
{
    Onnx__StringStringEntryProto **kept = NEWS(arena, Onnx__StringStringEntryProto *, *n + 1);
    size_t n_kept = 0;
    for (size_t i = 0; i < *n; i++)
        if (!says_value((*notes)[i]))
            kept[n_kept++] = (*notes)[i];
    const bool forgotten = n_kept != *n;
    *notes = kept;
    *n = n_kept;
    return forgotten;
}

static void forget_elements(Onnx__TensorProto *t)
{
    t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data = 0;
    t->n_string_data = t->n_external_data = 0;
    t->has_raw_data = t->has_data_location = t->has_source_at = t->has_source_size = 0;
}

static Status move(Relocation *r, const Onnx__TensorProto *t, const TensorInfo *info)
{
    Onnx__TensorProto *to = NEW(r->arena, Onnx__TensorProto);
    Reading x = { r, t, info->bytes };
    *to = *t;
    forget_elements(to);
    if (info->bytes >= WEIGHT_FILE_LEAST) {
        TRY(weight_file_add(r->weight_file, to, info->bytes, copy_elements, &x));
    } else {
        Heap heap;
        void *block;
        heap_open(&heap, r->spine->memory);
        const Status status = read_into(&x, &heap, &block);
        to->has_raw_data = 1;
        to->raw_data.len = info->bytes;
        to->raw_data.data = (uint8_t *)arena_copy(r->arena, block, info->bytes);
        heap_close(&heap);
        TRY(status);
    }
    replace_body(r, t, to);
    return OK;
}

static Status visit_tensor(void *user, const Onnx__TensorProto *t, bool initializer)
{
    Relocation *r = user;
    TensorInfo info;
    const bool leaves = is_external(t) && !r->stays;
    if (map_find_u64(&r->replaced, t->source_at) || !(leaves || (r->all && initializer && !is_external(t))))
        return OK;
    const char *where = arena_copy(r->arena, (const char *)t->name.data, t->name.len);
    TRY(tensor_info(r->spine, r->diag, where, t, &info));
    if (info.dtype == ONNX_STRING || (!leaves && info.bytes < WEIGHT_FILE_LEAST))
        return OK;
    return move(r, t, &info);
}

static Status put_value(void *user, const Sink *sink)
{
    const Tensor *value = user;
    return sink->put(sink->user, value->data, value->bytes);
}

Status relocate_value(Relocation *r, const Onnx__TensorProto *t, const Tensor *value, Onnx__TensorProto *to)
{
    forget_elements(to);
    relocation_forget(r->arena, &to->metadata_props, &to->n_metadata_props);
    if (t)
        map_put_u64(&r->replaced, t->source_at, NULL);
    if (r->weight_file && value->bytes >= WEIGHT_FILE_LEAST && (r->all || (t && is_external(t))))
        return weight_file_add(r->weight_file, to, value->bytes, put_value, (void *)(uintptr_t)value);
    to->has_raw_data = 1;
    to->raw_data = (ProtobufCBinaryData){ value->bytes, value->data };
    return OK;
}

Status relocate_rest(Relocation *r)
{
    return r->weight_file ? each_tensor(r, visit_tensor) : OK;
}
