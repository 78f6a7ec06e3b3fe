#include "frontends/onnx/file/external.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/digest.h"

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

#include "base/file_set.h"

enum { READ_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, LONGEST_PATH = 4096 };

/* ---- opening ---- */

#ifdef SYS_openat2
static int open_by_kernel(int folder, const char *path)
{
    struct open_how how = { .flags = READ_FLAGS,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    int tries = 10; /* EAGAIN: something was renamed meanwhile */
    long fd;

    do {
        fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    } while (fd < 0 && (errno == EAGAIN || errno == EINTR) && --tries > 0);
    return fd < 0 ? -errno : (int)fd;
}
#else
static int open_by_kernel(int folder, const char *path)
{
    (void)folder, (void)path;
    return -ENOSYS;
}
#endif

/* The next component of a path into `name`, empty ones and "." left out: its length, 0 at the end, or a negative
 * errno. */
static int next_component(const char **path, char *name)
{
    for (;;) {
        size_t n = strcspn(*path, "/");
        const char *p = *path;
        if (n == 0 && *p == '\0')
            return 0;
        *path = p[n] ? p + n + 1 : p + n;
        if (n == 0 || (n == 1 && p[0] == '.'))
            continue;
        if (n > NAME_MAX)
            return -ENAMETOOLONG;
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return -EXDEV;
        memcpy(name, p, n);
        name[n] = '\0';
        return (int)n;
    }
}

static int open_by_component(int folder, const char *path)
{
    char name[NAME_MAX + 1], next[NAME_MAX + 1];
    int at = folder, n;
    bool is_folder = *path && path[strlen(path) - 1] == '/';

    if (*path == '/')
        return -EXDEV;
    n = next_component(&path, name);
    if (n <= 0)
        return n ? n : -ENOENT;
    for (;;) {
        n = next_component(&path, next);
        int flags = n == 0 ? READ_FLAGS | (is_folder ? O_DIRECTORY : 0) : O_PATH | O_DIRECTORY | O_CLOEXEC;
        int fd = n < 0 ? -1 : openat(at, name, flags | O_NOFOLLOW);
        int error = n < 0 ? -n : errno;
        if (at != folder)
            close(at);
        if (fd < 0)
            return -error;
        if (n == 0)
            return fd;
        at = fd;
        memcpy(name, next, sizeof name);
    }
}

int open_beneath(int folder, const char *path, OpenHow how)
{
    if (how == OPEN_LINKED) {
        int fd = openat(folder, path, READ_FLAGS);
        return fd < 0 ? -errno : fd;
    }
    if (how == OPEN_BENEATH) {
        int fd = open_by_kernel(folder, path);
        if (fd != -ENOSYS && fd != -EPERM) /* EPERM: a sandbox that does not know the call */
            return fd;
    }
    return open_by_component(folder, path);
}

/* ---- what the model says ---- */

/* What is known of a file since it was first used. */
typedef struct ExternalFile {
    FileId id;
    bool hashed, told;       /* told: its checksum was complained of */
    uint8_t sum[SHA1_BYTES]; /* of all of it, once that was wanted */
} ExternalFile;

typedef struct External {
    const char *location;
    uint64_t offset, length;
    bool has_length, has_checksum;
    Str checksum; /* as the model says it */
    int fd;
    FileId id;
    ExternalFile *file;
    Cleanup cleanup;
    Place place;
} External;

static bool decimal(Str s, uint64_t *value)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v))
            return false;
    *value = v;
    return s.n > 0;
}

/* Relative, and nowhere upwards: also where going up and down again would stay beneath the folder. */
static const char *path_fault(Str path)
{
    if (path.n == 0)
        return "the path is empty";
    if (path.n >= LONGEST_PATH)
        return "the path is too long";
    if (!str_is_utf8(path))
        return "the path is not UTF-8, or holds a NUL";
    if (path.p[0] == '/')
        return "the path is absolute";
    for (size_t from = 0, i = 0; i <= path.n; i++)
        if (i == path.n || path.p[i] == '/') {
            if (i - from == 2 && path.p[from] == '.' && path.p[from + 1] == '.')
                return "the path leaves the model's folder";
            from = i + 1;
        }
    return NULL;
}

enum { KEY_LOCATION, KEY_OFFSET, KEY_LENGTH, KEY_CHECKSUM, KEYS };

static Status read_keys(Spine *s, Diag *d, const Onnx__TensorProto *t, External *e)
{
    static const char *const names[KEYS] = { "location", "offset", "length", "checksum" };
    Str value[KEYS] = { { NULL, 0 } };
    bool seen[KEYS] = { false };

    for (size_t i = 0; i < t->n_external_data; i++) {
        Str key = str_of(t->external_data[i]->key);
        int k = 0;
        while (k < KEYS && !str_is(key, names[k]))
            k++;
        if (k == KEYS) {
            TRY(warn(d, e->place, "external data: unknown key %.*s", STR_ARG(key)));
            continue;
        }
        if (seen[k])
            return fail(d, e->place, "external data: %s occurs twice", names[k]);
        seen[k] = true;
        value[k] = str_of(t->external_data[i]->value);
    }
    if (!seen[KEY_LOCATION])
        return fail(d, e->place, "external data without a location");
    const char *fault = path_fault(value[KEY_LOCATION]);
    if (fault)
        return fail(d, e->place, "external data: %s", fault);
    e->location = arena_copy(&s->arena, value[KEY_LOCATION].p, value[KEY_LOCATION].n);
    if (seen[KEY_OFFSET] && !decimal(value[KEY_OFFSET], &e->offset))
        return fail(d, e->place, "external data: the offset is no number");
    e->has_length = seen[KEY_LENGTH];
    if (e->has_length && !decimal(value[KEY_LENGTH], &e->length))
        return fail(d, e->place, "external data: the length is no number");
    e->has_checksum = seen[KEY_CHECKSUM];
    e->checksum = value[KEY_CHECKSUM];
    return OK;
}

/* ---- the file ---- */

static void close_external(void *thing)
{
    External *e = thing;

    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1;
}

static const char *open_fault(int error)
{
    switch (error) {
    case ELOOP:
        return "the path contains a link";
    case EXDEV:
        return "the path leaves the model's folder";
    default:
        return strerror(error);
    }
}

/* The same location must always be the same file. */
static Status check_known(Spine *s, Diag *d, External *e)
{
    MapEntry *known = map_find(&s->external, e->location);

    if (!known) {
        if ((int64_t)s->external.n >= s->limits.external_files)
            return fail(d, e->place, "external data exceeds the limit external_files (%" PRId64 ")",
                        s->limits.external_files);
        e->file = NEW(&s->arena, ExternalFile);
        *e->file = (ExternalFile){ .id = e->id };
        map_put(&s->external, e->location, NULL)->value.p = e->file;
        file_is_read(d, e->location, "external data of the model", e->fd);
        return OK;
    }
    e->file = known->value.p;
    if (!file_same(&e->file->id, &e->id))
        return fail_as(d, IO, e->place, "external data %s: the file has changed since it was first read", e->location);
    return OK;
}

static Status check_range(const External *e, Diag *d, uint64_t bytes)
{
    if (e->has_length && e->length != bytes)
        return fail(d, e->place, "external data %s: a length of %" PRIu64 " where the tensor has %" PRIu64 " bytes",
                    e->location, e->length, bytes);
    if (e->offset > e->id.size || bytes > e->id.size - e->offset)
        return fail(d, e->place,
                    "external data %s: %" PRIu64 " bytes at %" PRIu64 " lie beyond the end of the file (%" PRIu64 ")",
                    e->location, bytes, e->offset, e->id.size);
    return OK;
}

static Status open_file(Spine *s, Diag *d, External *e)
{
    if (s->source.folder < 0 && s->source.folder_error)
        return fail_as(d, IO, e->place, "external data %s: the folder cannot be opened: %s", e->location,
                       strerror(s->source.folder_error));
    if (s->source.folder < 0)
        return fail(d, e->place, "external data %s: a model that is no file has no folder to look in", e->location);
    e->fd = open_beneath(s->source.folder, e->location, s->linked_data ? OPEN_LINKED : OPEN_BENEATH);
    if (e->fd < 0)
        return fail_as(d, IO, e->place, "external data %s: %s", e->location, open_fault(-e->fd));
    if (!file_id(e->fd, &e->id))
        return fail_as(d, IO, e->place, "external data %s: %s", e->location,
                       errno ? strerror(errno) : "not a regular file");
    if (e->id.links != 1 && !s->linked_data)
        return fail_as(d, IO, e->place, "external data %s: the file has other names (hard links)", e->location);
    return OK;
}

static Status read_range(External *e, Diag *d, uint64_t at, void *out, size_t bytes)
{
    FileId after;
    int error = read_exactly(e->fd, e->offset + at, out, bytes);

    if (error)
        return fail_as(d, IO, e->place, "external data %s: %s", e->location,
                       error < 0 ? "the file became shorter" : strerror(error));
    if (!file_id(e->fd, &after) || !file_same(&after, &e->id))
        return fail_as(d, IO, e->place, "external data %s: the file changed while it was read", e->location);
    return OK;
}

/* ---- the checksum ---- */

/* Forty hexadecimal digits, in either case. */
static bool is_sha1(Str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (!((text.p[i] >= '0' && text.p[i] <= '9') || ((text.p[i] | 32) >= 'a' && (text.p[i] | 32) <= 'f')))
            return false;
    return text.n == SHA1_TEXT - 1;
}

/* Said once of a file, however many tensors are asked for. */
static Status mismatch(const External *e, Diag *d, const char *got)
{
    if (e->file->told)
        return INVALID;
    e->file->told = true;
    Message *m = message_new(d, SEVERITY_ERROR, INVALID, e->place,
                             "external data %s: its SHA-1 is %s, and the model says %.*s: the file is damaged, or "
                             "another model's",
                             e->location, got, STR_ARG(e->checksum));
    message_try(m, "the %s that was written with the model, or both files anew", e->location);
    return message_send(m);
}

/* Reads the whole file, the first time that any of it is wanted. */
static Status hash_file(Spine *s, Diag *d, External *e)
{
    FileId after;
    const int error = digest_sha1(s->memory, e->fd, e->id.size, e->file->sum);
    if (error)
        return fail_as(d, IO, e->place, "external data %s: %s", e->location,
                       error < 0 ? "the file became shorter" : strerror(error));
    if (!file_id(e->fd, &after) || !file_same(&after, &e->id))
        return fail_as(d, IO, e->place, "external data %s: the file changed while it was read", e->location);
    e->file->hashed = true;
    return OK;
}

static Status check_sum(Spine *s, Diag *d, External *e)
{
    char got[SHA1_TEXT];
    if (!e->has_checksum)
        return OK;
    if (!is_sha1(e->checksum)) {
        const bool told = e->file->told;
        e->file->told = true;
        return told ? OK
                    : warn(d, e->place, "external data %s: the checksum is no SHA-1, and is not compared", e->location);
    }
    if (!e->file->hashed)
        TRY(hash_file(s, d, e));
    sha1_text(got, e->file->sum);
    for (size_t i = 0; i < e->checksum.n; i++) {
        const char c = e->checksum.p[i];
        if (got[i] != (c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c))
            return mismatch(e, d, got);
    }
    return OK;
}

/* What is wanted of a tensor: `bytes` of its bytes from `at` on; out null: nothing. */
typedef struct Part {
    uint64_t at;
    size_t bytes;
    void *out;
} Part;

static Status use(Spine *s, Diag *d, External *e, uint64_t bytes, Part part)
{
    TRY(open_file(s, d, e));
    TRY(check_known(s, d, e));
    TRY(check_range(e, d, bytes));
    if (!part.out)
        return OK;
    TRY(check_sum(s, d, e));
    return read_range(e, d, part.at, part.out, part.bytes);
}

static Status serve(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, uint64_t bytes, Part part)
{
    External e = { .fd = -1, .place = { .file = s->source.name, .where = where, .byte = -1 } };

    TRY(read_keys(s, d, t, &e));
    cleanup_push(s->memory, &e.cleanup, close_external, &e); /* messages allocate, and may jump */
    Status status = use(s, d, &e, bytes, part);
    cleanup_drop(&e.cleanup);
    close_external(&e);
    return status;
}

Status external_check(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, uint64_t bytes)
{
    return serve(s, d, where, t, bytes, (Part){ .out = NULL });
}

Status external_read(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, void *out, size_t bytes)
{
    return serve(s, d, where, t, bytes, (Part){ 0, bytes, out });
}

Status external_read_part(Spine *s, Diag *d, const char *where, const Onnx__TensorProto *t, uint64_t bytes, uint64_t at,
                          void *out, size_t n)
{
    return serve(s, d, where, t, bytes, (Part){ at, n, out });
}
