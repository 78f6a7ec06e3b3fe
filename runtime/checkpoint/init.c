#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "runtime/checkpoint/match.h"
#include "runtime/data/inflate.h"
#include "runtime/data/npy.h"
#include "runtime/data/zip.h"

/* A file of weights: its table, and of an .npz its arrays, which are read to know their types. */
typedef struct Weights {
    SafeTensors table;
    Tensor **arrays; /* null: the tensors are read when they are wanted */
} Weights;

/* ---- .npz ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), e = strlen(end);
    return n >= e && strcmp(text + n - e, end) == 0;
}

static Status refuse_torch(const CheckpointReader *r, const char *path)
{
    Message *m = message_new(r->diag, SEVERITY_ERROR, INVALID, (Place){ .file = path, .byte = -1 },
                             "was saved by torch.save (.pt, .pth)");
    message_try(m, "safetensors.torch.save_file(torch.load('FILE', weights_only=True), 'weights.safetensors')");
    return message_send(m);
}

static Status read_member(const CheckpointReader *r, Arena *scratch, const Zip *z, const ZipMember *m, Tensor **value)
{
    Bytes bytes = zip_range(z, m);
    const Place place = { .file = z->from.name, .byte = -1, .where = m->name };
    if (m->method == ZIP_STORED) {
        TRY(zip_check(z, m, scratch, r->diag));
        return npy_read_bytes(r->types, r->heap, r->diag, r->limits, &bytes, NULL, value);
    }
    if (m->method != ZIP_DEFLATED)
        return fail_as(r->diag, UNSUPPORTED, place, "is compressed by method %d", m->method);
    if (!inflate_can(m->packed, m->size))
        return fail(r->diag, place, "%" PRIu64 " bytes cannot inflate to %" PRIu64, m->packed, m->size);
    if (m->size > (uint64_t)r->limits->data_bytes)
        return fail(r->diag, place, "%" PRIu64 " bytes, more than the limit data_bytes (%" PRId64 ")", m->size,
                    r->limits->data_bytes);
    const MemoryWork before = memory_work(r->arena->memory, memory_tell_text, z->from.name);
    void *block = heap_alloc(r->heap, m->size);
    r->arena->memory->work = before;
    Status status = zip_inflate(z, m, scratch, r->diag, block);
    bytes = bytes_of(z->from.name, block, m->size);
    if (status == OK)
        status = npy_read_bytes(r->types, r->heap, r->diag, r->limits, &bytes, NULL, value);
    heap_free(r->heap, block);
    return status;
}

static Status read_members(const CheckpointReader *r, const Zip *z, Weights *w)
{
    SafeTensors *s = &w->table;
    s->list = NEWS(r->arena, SafeTensor, z->n);
    w->arrays = NEWS(r->arena, Tensor *, z->n);
    for (size_t i = 0; i < z->n; i++) {
        const ZipMember *m = &z->list[i];
        const size_t n = strlen(m->name);
        if (ends_with(m->name, "data.pkl"))
            return refuse_torch(r, z->from.name);
        if (!ends_with(m->name, ".npy"))
            continue;
        Arena scratch;
        arena_open(&scratch, r->arena->memory);
        const Status status = read_member(r, &scratch, z, m, &w->arrays[s->n]);
        arena_close(&scratch);
        TRY(status);
        s->list[s->n] = (SafeTensor){ .name = arena_copy(r->arena, m->name, n - 4), .type = w->arrays[s->n]->type };
        s->n++;
    }
    return OK;
}

static Status open_npz(const CheckpointReader *r, Bytes *file, Weights *w)
{
    Zip z;
    TRY(zip_open(&z, r->arena, r->diag, file));
    return read_members(r, &z, w);
}

/* ---- either ---- */

static Status open_weights(const CheckpointReader *r, const char *path, Weights *w)
{
    Bytes file;
    Cleanup cleanup;
    char head[4] = "";
    *w = (Weights){ 0 };
    TRY(bytes_open(&file, r->diag, path));
    cleanup_push(r->arena->memory, &cleanup, bytes_close, &file);
    Status status = bytes_get(&file, r->diag, 0, head, file.size < sizeof head ? (size_t)file.size : sizeof head);
    const bool is_zip = memcmp(head, "PK\3\4", 4) == 0;
    if (status == OK && is_zip)
        status = open_npz(r, &file, w);
    else if (status == OK && (unsigned char)head[0] == 0x80 && head[1] >= 2 && head[1] <= 5 && head[2])
        status = refuse_torch(r, path); /* a pickle; as a length of a header these bytes are far too much */
    cleanup_drop(&cleanup);
    bytes_close(&file);
    if (status != OK || is_zip)
        return status;
    return safetensors_open(&w->table, r->types, r->arena, r->diag, r->limits, path);
}

/* The same numbers with the axes swapped, of the type that is wanted. */
static Tensor *transposed(const CheckpointReader *r, Tensor *stored, const Type *type)
{
    Tensor *value = tensor_alloc(r->heap, type);
    const int64_t columns = type->dims[1], rows = type->dims[0];
    for (int64_t i = 0; i < tensor_elements(value); i++)
        tensor_set_f64(value, i, tensor_get_f64(stored, i % columns * rows + i / columns));
    tensor_drop(r->heap, stored);
    return value;
}

/* Floats of another width are converted; what the format had no name for keeps its bytes, and so does another shape. */
static Tensor *converted(const CheckpointReader *r, Tensor *stored, const Type *type)
{
    if (stored->type->dtype == type->dtype || !dtype_is_float(stored->type->dtype)) {
        stored->type = type;
        return stored;
    }
    Tensor *value = tensor_alloc(r->heap, type);
    for (int64_t i = 0; i < tensor_elements(stored); i++)
        tensor_set_f64(value, i, tensor_get_f64(stored, i));
    tensor_drop(r->heap, stored);
    return value;
}

static Status read_stored(const CheckpointReader *r, Weights *w, size_t i, Tensor **stored)
{
    const SafeTensor *t = &w->table.list[i];
    if (w->arrays) {
        *stored = w->arrays[i];
        w->arrays[i] = NULL;
        return OK;
    }
    *stored = tensor_alloc(r->heap, t->type);
    const Status status = safetensors_read(&w->table, r->diag, t, (*stored)->data);
    if (status != OK)
        tensor_drop(r->heap, *stored);
    return status;
}

static Status take(const CheckpointReader *r, Weights *w, size_t i, const StateSlot *slot, Tensor **value)
{
    Tensor *stored;
    const Type *type = w->table.list[i].type;
    TRY(read_stored(r, w, i, &stored));
    *value = match_is_turned(type, slot, match_is_ours(&w->table)) ? transposed(r, stored, slot->type)
                                                                   : converted(r, stored, slot->type);
    return OK;
}

/* A piece of a state goes to its place, gate by gate. */
static Status take_piece(const CheckpointReader *r, Weights *w, size_t i, const StateSlot *slot, Tensor **value)
{
    Tensor *stored;
    const StateGates *g = slot->pieces;
    const GatePiece *piece = match_piece(slot, w->table.list[i].name);
    TRY(read_stored(r, w, i, &stored));
    const int64_t block = tensor_elements(stored) / g->gates;
    if (!*value)
        *value = tensor_alloc(r->heap, slot->type);
    for (int gate = 0; gate < g->gates; gate++)
        for (int64_t k = 0; k < block; k++)
            tensor_set_f64(*value, piece->first + gate * block + k, tensor_get_f64(stored, g->order[gate] * block + k));
    tensor_drop(r->heap, stored);
    return OK;
}

/* Without some of its pieces a state is none. */
static Status fill_slots(const CheckpointReader *r, Weights *w, const int64_t *to, const StateSlot *slots, size_t n,
                         Tensor **states)
{
    size_t *pieces = NEWS(r->arena, size_t, n);
    for (size_t i = 0; i < w->table.n; i++) {
        if (to[i] < 0)
            continue;
        const StateSlot *slot = &slots[to[i]];
        const bool piece = !match_is_ours(&w->table) && match_piece(slot, w->table.list[i].name);
        pieces[to[i]] += piece;
        TRY((piece ? take_piece : take)(r, w, i, slot, &states[to[i]]));
    }
    for (size_t i = 0; i < n; i++)
        if (pieces[i] && pieces[i] < slots[i].pieces->n) {
            tensor_drop(r->heap, states[i]);
            states[i] = NULL;
        }
    return OK;
}

/* A tensor that the model has once may stand in a file under each of its names, and then with the same values. */
static Status take_again(const CheckpointReader *r, const char *path, Weights *w, size_t i, const StateSlot *slot,
                         const Tensor *first)
{
    bool converts;
    Tensor *value;
    const SafeTensor *t = &w->table.list[i];
    bool same = match_fits(t->type, slot, match_is_ours(&w->table), &converts);
    if (same) {
        TRY(take(r, w, i, slot, &value));
        same = value->bytes == first->bytes && bytes_equal(value->data, first->data, first->bytes);
        tensor_drop(r->heap, value);
    }
    return same ? OK
                : fail(r->diag, (Place){ .file = path, .byte = -1 },
                       "%s is another name of %s, which the model has once, and the file has other values for it",
                       t->name, slot->path_name ? slot->path_name : slot->name);
}

/* What codes stand for is known to the step that keeps them. */
static Status refuse_codes(const CheckpointReader *r, const char *path, const StateReport *report)
{
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, (Place){ .file = path, .byte = -1 },
                             "--init: %zu of its weights are codes, or would become others", report->n_other_weights);
    for (size_t i = 0; i < report->n_misshapen && i < 3; i++)
        message_at(m, "%s", report->misshapen[i]);
    message_try(m,
                "qcc --export MODEL --checkpoint %s --for float -o TRAINED.onnx with the options of its run, and"
                " TRAINED.onnx in place of the model",
                path);
    message_try(m, "--resume --convert weights, to go on with the optimizer's states, too");
    return message_send(m);
}

static Status fill(const CheckpointReader *r, const char *path, Weights *w, const StateSlot *slots, size_t n,
                   Tensor **states, StateReport *report)
{
    const int64_t *to = match_slots(r->arena, &w->table, slots, n, true, report);
    if (match_is_ours(&w->table) && report->n_other_weights)
        return refuse_codes(r, path, report);
    if (!report->n_matched)
        return fail(r->diag, (Place){ .file = path, .byte = -1 },
                    "none of its %zu tensors has the name and shape of a parameter", w->table.n);
    TRY(fill_slots(r, w, to, slots, n, states));
    for (size_t i = 0; i < w->table.n; i++)
        if (to[i] <= MATCH_AGAIN && states[MATCH_AGAIN - to[i]])
            TRY(take_again(r, path, w, i, &slots[MATCH_AGAIN - to[i]], states[MATCH_AGAIN - to[i]]));
    return OK;
}

Status checkpoint_init(const CheckpointReader *r, const char *path, const StateSlot *slots, size_t n, Tensor **states,
                       StateReport *report)
{
    Weights w;
    *report = (StateReport){ 0 };
    for (size_t i = 0; i < n; i++)
        states[i] = NULL;
    Status status = open_weights(r, path, &w);
    if (status == OK)
        status = fill(r, path, &w, slots, n, states, report);
    for (size_t i = 0; w.arrays && i < w.table.n; i++)
        tensor_drop(r->heap, w.arrays[i]);
    for (size_t i = 0; status != OK && i < n; i++) {
        tensor_drop(r->heap, states[i]);
        states[i] = NULL;
    }
    return status;
}
