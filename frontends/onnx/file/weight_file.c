#include "frontends/onnx/file/weight_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file_lock.h"
#include "frontends/onnx/file/superseded.h"

enum { ALIGNMENT = 4096 };

static const char ending[] = ".data";

int64_t weight_file_threshold(const Limits *limits)
{
    static const int64_t usual = 2040109465; /* 1.9 GiB */
    return limits->model_bytes < usual ? limits->model_bytes : usual;
}

void weight_file_open(WeightFile *b, Arena *arena, Diag *d, const Limits *limits, const Disk *disk, const char *path)
{
    const char *slash = strrchr(path, '/');
    *b = (WeightFile){ .arena = arena, .diag = d, .limits = limits, .disk = disk, .model = path };
    b->folder = file_folder(arena, path);
    b->stem = slash ? slash + 1 : path;
    b->path = arena_printf(arena, "%s.%0*d%s", path, WEIGHT_FILE_DIGITS, 0, ending);
    b->name = b->path + (b->stem - path);
    b->checksum = arena_printf(arena, "%0*d", SHA1_TEXT - 1, 0);
    map_open(&b->read, arena);
}

bool weight_file_names(const char *name, const char *stem, const char **digits)
{
    const size_t n = strlen(stem);
    if (strncmp(name, stem, n) != 0 || name[n] != '.' || strspn(name + n + 1, "0123456789abcdef") != WEIGHT_FILE_DIGITS)
        return false;
    if (digits)
        *digits = name + n + 1;
    return strcmp(name + n + 1 + WEIGHT_FILE_DIGITS, ending) == 0;
}

bool weight_file_is_folder(const WeightFile *b, int folder)
{
    struct stat here, there;
    return folder >= 0 && fstat(folder, &here) == 0 && stat(b->folder, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

/* ---- tensors ---- */

static Status put(void *user, const void *bytes, size_t n)
{
    WeightFile *b = user;
    b->at += n;
    sha256_add(&b->content, bytes, n);
    sha1_add(&b->sum, bytes, n);
    return file_write(&b->file, bytes, n);
}

static void add_entry(WeightFile *b, Onnx__TensorProto *t, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = NEW(b->arena, Onnx__StringStringEntryProto);
    onnx__string_string_entry_proto__init(e);
    e->has_key = e->has_value = 1;
    e->key = (ProtobufCBinaryData){ strlen(key), (uint8_t *)(uintptr_t)key };
    e->value = (ProtobufCBinaryData){ strlen(value), (uint8_t *)(uintptr_t)value };
    t->external_data[t->n_external_data++] = e;
}

/* Under a temporary name, which says whose it is; what it is called in the end follows from what it holds. */
static Status begin(WeightFile *b, uint64_t *offset)
{
    static const char zeros[ALIGNMENT];
    BUG_IF(b->arena->memory, b->settled);
    if (!b->open) {
        TRY(file_create_on(&b->file, b->disk, b->arena, b->diag, arena_printf(b->arena, "%s%s", b->model, ending)));
        sha256_begin(&b->content);
        sha1_begin(&b->sum);
        b->open = true;
    }
    const uint64_t gap = (ALIGNMENT - b->at % ALIGNMENT) % ALIGNMENT;
    TRY(put(b, zeros, (size_t)gap));
    *offset = b->at;
    return OK;
}

Status weight_file_add(WeightFile *b, Onnx__TensorProto *t, uint64_t bytes,
                       Status (*write)(void *user, const Sink *sink), void *user)
{
    uint64_t offset;
    TRY(begin(b, &offset));
    TRY(write(user, &(Sink){ put, b }));
    BUG_IF(b->arena->memory, b->at != offset + bytes);
    t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data = 0;
    t->has_raw_data = t->has_source_at = t->has_source_size = 0;
    t->has_data_location = 1;
    t->data_location = 1;
    t->external_data = NEWS(b->arena, Onnx__StringStringEntryProto *, 4);
    t->n_external_data = 0;
    add_entry(b, t, "location", b->name);
    add_entry(b, t, "offset", arena_printf(b->arena, "%" PRIu64, offset));
    add_entry(b, t, "length", arena_printf(b->arena, "%" PRIu64, bytes));
    add_entry(b, t, "checksum", b->checksum);
    return OK;
}

static Status put_raw(void *user, const Sink *sink)
{
    const ProtobufCBinaryData *raw = user;
    return sink->put(sink->user, raw->data, raw->len);
}

Status weight_file_move(WeightFile *b, Onnx__TensorProto *t)
{
    ProtobufCBinaryData raw = t->raw_data;
    return weight_file_add(b, t, raw.len, put_raw, &raw);
}

Status weight_file_move_all(WeightFile *b, Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_initializer; i++)
        if (g->initializer[i]->has_raw_data && g->initializer[i]->raw_data.len >= WEIGHT_FILE_LEAST)
            TRY(weight_file_move(b, g->initializer[i]));
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_attribute; k++) {
            Onnx__TensorProto *t = g->node[i]->attribute[k]->t;
            if (t && t->has_raw_data && t->raw_data.len >= WEIGHT_FILE_LEAST)
                TRY(weight_file_move(b, t));
        }
    return OK;
}

void weight_file_settle(WeightFile *b)
{
    char hex[SHA256_TEXT];
    uint8_t sum[SHA1_BYTES];
    if (b->settled)
        return;
    b->settled = true;
    if (!b->open)
        return;
    sha256_end(&b->content, b->digest);
    sha256_text(hex, b->digest);
    memcpy(b->name + strlen(b->stem) + 1, hex, WEIGHT_FILE_DIGITS);
    sha1_end(&b->sum, sum);
    sha1_text(b->checksum, sum);
}

/* ---- the pair ---- */

/* Whether the file of that name holds what this one does, and is on the disk. */
static bool is_there(const WeightFile *b)
{
    uint8_t digest[SHA256_BYTES];
    FileId id;
    const int fd = open(b->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    bool same = fd >= 0 && file_id(fd, &id) && id.links == 1 && id.size == b->at;
    same = same && digest_sha256(b->arena->memory, fd, id.size, digest) == 0 &&
           memcmp(digest, b->digest, sizeof digest) == 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return same && b->disk->sync_folder(b->disk, b->folder) == 0;
}

/* `alone`: nobody removes meanwhile what is found to be there. */
static Status keep_data(WeightFile *b, bool alone)
{
    bool taken;
    b->open = false;
    b->kept = true;
    if (!alone || !is_there(b))
        return file_keep_as(&b->file, b->path, true, &taken);
    file_drop(&b->file);
    return OK;
}

static void unlock(void *thing)
{
    folder_unlock(*(int *)thing);
}

Status weight_file_keep(WeightFile *b, FileOut *model)
{
    Superseded old;
    Cleanup cleanup;
    BUG_IF(b->arena->memory, b->open && !b->settled);
    int lock = folder_lock(b->folder);
    cleanup_push(b->arena->memory, &cleanup, unlock, &lock);
    superseded_read(&old, b);
    Status status = b->open ? keep_data(b, lock >= 0) : OK;
    if (status == OK)
        status = file_keep(model);
    else
        file_drop(model);
    superseded_clear(&old, lock >= 0, status == OK);
    cleanup_drop(&cleanup);
    folder_unlock(lock);
    return status;
}

void weight_file_drop(WeightFile *b)
{
    if (b->open)
        file_drop(&b->file);
    b->open = false;
}
