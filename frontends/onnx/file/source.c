#include "frontends/onnx/file/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_set.h"
#include "base/hash.h"

enum {
    LOOKED_AT_WHOLE = 65536,   /* of a source in memory, to see whether it is still the same */
    LOOKS = 1024,              /* of a larger one: words, */
    END_BYTES = 4096,          /* and the bytes at both ends */
    FIRST_READ = 4096,         /* after a jump: the next thing is often another jump */
    LARGEST_READ = 0x7ffff000, /* what Linux serves at once */
};

static Place place_of(const Source *s, int64_t byte)
{
    return (Place){ .file = s->name, .byte = byte };
}

bool file_id(int fd, FileId *id)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    errno = 0;
    if (!S_ISREG(st.st_mode) || st.st_size < 0)
        return false;
    *id = (FileId){ .device = st.st_dev,
                    .inode = st.st_ino,
                    .size = (uint64_t)st.st_size,
                    .links = st.st_nlink,
                    .seconds = st.st_mtim.tv_sec,
                    .nanoseconds = st.st_mtim.tv_nsec };
    return true;
}

bool file_same(const FileId *a, const FileId *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size && a->seconds == b->seconds &&
           a->nanoseconds == b->nanoseconds;
}

static void close_source(void *thing)
{
    Source *s = thing;

    if (s->owns_fd && s->fd >= 0)
        close(s->fd);
    if (s->owns_folder && s->folder >= 0)
        close(s->folder);
    if (s->owns_bytes)
        memory_release(s->memory, (void *)(uintptr_t)s->bytes, (size_t)s->size);
    s->fd = s->folder = -1;
    s->owns_fd = s->owns_folder = s->owns_bytes = false;
}

static void open_folder(Source *s, Memory *m, const char *path)
{
    const char *slash = strrchr(path, '/');
    Arena scratch;

    arena_open(&scratch, m);
    const char *folder = !slash ? "." : slash == path ? "/" : arena_copy(&scratch, path, (size_t)(slash - path));
    s->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    s->owns_folder = s->folder >= 0;
    s->folder_error = s->folder < 0 ? errno : 0;
    arena_close(&scratch);
}

Status source_open(Source *s, Memory *m, Diag *d, const char *path)
{
    *s = (Source){ .name = path, .fd = -1, .folder = -1, .memory = m };
    cleanup_push(m, &s->cleanup, close_source, s);
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    s->owns_fd = s->fd >= 0;
    int error = s->fd < 0 ? errno : 0;
    if (!error && !file_id(s->fd, &s->id))
        error = errno ? errno : -1;
    if (error) {
        source_close(s);
        return fail_as(d, IO, place_of(s, -1), "cannot be read: %s",
                       error < 0 ? "not a regular file" : strerror(error));
    }
    s->size = s->id.size;
    file_is_read(d, path, "the model", s->fd);
    open_folder(s, m, path);
    return OK;
}

/* All of a small source; of a large one both ends and words here and there: memory that was given back, or filled with
 * another file, is seen, and the pages of weights that nobody asked for stay where they are. */
static uint64_t look_at(const uint8_t *bytes, size_t n)
{
    if (n <= LOOKED_AT_WHOLE)
        return hash64(bytes, n, 0);
    uint64_t h = hash64(bytes, END_BYTES, n);
    for (size_t i = 1; i < LOOKS; i++)
        h = hash_word(h, hash_load(bytes + n / LOOKS * i, sizeof h));
    return hash64(bytes + n - END_BYTES, END_BYTES, h);
}

void source_memory(Source *s, Memory *m, const char *name, const void *bytes, size_t n)
{
    *s = (Source){ .name = name, .size = n, .fd = -1, .folder = -1, .bytes = bytes, .memory = m };
    s->seen = look_at(bytes, n);
    cleanup_push(m, &s->cleanup, close_source, s);
}

void source_callback(Source *s, Memory *m, const char *name, uint64_t size,
                     Status (*read)(void *user, uint64_t offset, void *buffer, size_t n), void *user)
{
    *s = (Source){ .name = name, .size = size, .fd = -1, .folder = -1, .read = read, .user = user, .memory = m };
    cleanup_push(m, &s->cleanup, close_source, s);
}

void source_keep(Source *s)
{
    cleanup_drop(&s->cleanup);
}

void source_own(Source *s)
{
    if (s->owns_bytes || (!s->bytes && !s->read) || !s->size)
        return;
    uint8_t *copy = s->size <= SIZE_MAX ? memory_try_block(s->memory, (size_t)s->size) : NULL;
    if (copy && s->bytes)
        memcpy(copy, s->bytes, (size_t)s->size);
    s->lost = !copy || (s->read && s->read(s->user, 0, copy, (size_t)s->size) != OK);
    if (s->read && !s->lost)
        s->seen = look_at(copy, (size_t)s->size);
    s->read = NULL;
    s->bytes = s->lost ? NULL : copy;
    s->owns_bytes = !s->lost;
    if (s->lost)
        memory_release(s->memory, copy, (size_t)s->size);
}

void source_close(Source *s)
{
    cleanup_drop(&s->cleanup);
    close_source(s);
}

int read_exactly(int fd, uint64_t offset, void *buffer, size_t n)
{
    char *to = buffer;

    if (offset > INT64_MAX || n > INT64_MAX - offset)
        return EOVERFLOW;
    while (n > 0) {
        ssize_t got = pread(fd, to, n < LARGEST_READ ? n : LARGEST_READ, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno;
        if (got == 0)
            return -1;
        to += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

Status source_read(Source *s, Diag *d, uint64_t offset, void *buffer, size_t n)
{
    if (offset > s->size || n > s->size - offset)
        return fail(d, place_of(s, (int64_t)s->size), "the data ends here; %zu bytes at byte %" PRIu64 " are wanted", n,
                    offset);
    memory_poll(s->memory);
    if (n == 0)
        return OK;
    if (s->bytes) {
        memcpy(buffer, s->bytes + offset, n);
        return OK;
    }
    if (s->read) {
        Status status = s->read(s->user, offset, buffer, n);
        return status ? fail_as(d, status, place_of(s, (int64_t)offset), "the host's reader failed") : OK;
    }
    if (s->lost)
        return fail_as(d, IO, place_of(s, (int64_t)offset),
                       "cannot be read: the host took it back with the model, and there was no memory for a copy");
    int error = read_exactly(s->fd, offset, buffer, n);
    if (error)
        return fail_as(d, IO, place_of(s, (int64_t)offset), "cannot be read: %s",
                       error < 0 ? "the file became shorter" : strerror(error));
    return OK;
}

Status source_unchanged(Source *s, Diag *d)
{
    FileId now;

    if (s->bytes && look_at(s->bytes, (size_t)s->size) != s->seen)
        return fail(d, place_of(s, -1), "the bytes have changed since they were read");
    if (s->fd < 0)
        return OK;
    if (!file_id(s->fd, &now))
        return fail_as(d, IO, place_of(s, -1), "cannot be read any more: %s", strerror(errno));
    if (!file_same(&now, &s->id))
        return fail_as(d, IO, place_of(s, -1), "the file has changed since it was read");
    return OK;
}

void window_over(Window *w, Source *s, Diag *d, uint8_t *buffer, size_t cap)
{
    *w = (Window){ .source = s, .diag = d, .buffer = buffer, .cap = cap };
}

void window_open(Window *w, Source *s, Diag *d, Arena *arena)
{
    window_over(w, s, d, s->bytes ? NULL : arena_alloc(arena, WINDOW_BYTES), WINDOW_BYTES);
}

Status window_at(Window *w, uint64_t offset, size_t n, const uint8_t **p)
{
    const Source *s = w->source;

    BUG_IF(s->memory, n > w->cap || offset > s->size || n > s->size - offset);
    if (s->bytes) {
        *p = s->bytes + offset;
        return OK;
    }
    if (offset < w->from || offset - w->from > w->n || n > w->n - (offset - w->from)) {
        bool goes_on = w->n > 0 && offset >= w->from && offset - w->from <= w->n;
        size_t want = goes_on || w->cap < FIRST_READ ? w->cap : n > FIRST_READ ? n : FIRST_READ;
        if (want > s->size - offset)
            want = (size_t)(s->size - offset);
        w->n = 0;
        TRY(source_read(w->source, w->diag, offset, w->buffer, want));
        w->from = offset;
        w->n = want;
    }
    *p = w->buffer + (offset - w->from);
    return OK;
}
