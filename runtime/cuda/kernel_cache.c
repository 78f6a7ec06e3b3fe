#include "runtime/cuda/kernel_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/entries.h"
#include "base/file.h"
#include "base/leftovers.h"

/* What stands before the bytes of a file: what its kind begins with, its key, their number, their digest. */
enum {
    AT_KEY = 16,
    AT_SIZE = AT_KEY + SHA256_TEXT - 1,
    AT_SUM = AT_SIZE + 8,
    HEAD = 128,           /* so that what follows is aligned as the file is in memory */
    MOST_BYTES = 1 << 28, /* of a file that is read */
    MOST_FILES = 1 << 16, /* of a folder that are looked at */
};

_Static_assert(AT_SUM + SHA256_BYTES <= HEAD, "the head of a file");

static bool is_kernel(const char *name)
{
    return store_is_name(name, store_of_kernels.ending);
}

const StoreKind store_of_kernels = {
    .ending = ".cubin",
    .magic = "qcc kernels 2\n",
    .without = "kernels are compiled without it",
    .anew = "is damaged; its kernels are compiled anew",
    .lost = "compiled kernels are not kept",
    .is_ours = is_kernel,
};

void kernel_store_open(KernelStore *s, const StoreKind *kind, const KernelCache *cache, Diag *d, Arena *arena)
{
    *s = (KernelStore){ .kind = kind, .cache = *cache, .d = d, .arena = arena };
    if (!s->cache.disk)
        s->cache.disk = &disk_real;
    if (!s->cache.most)
        s->cache.most = KERNEL_CACHE_MOST;
    if (!s->cache.version)
        s->cache.version = "";
    s->closed = !s->cache.folder;
}

/* ---- names ---- */

/* With its end, so that no two lists of words are one. */
static void add_word(Sha256 *s, const char *word)
{
    sha256_add(s, word, strlen(word) + 1);
}

KernelKey kernel_key(const KernelStore *s, const Nvrtc *nvrtc, const char *arch, const char *text)
{
    const int numbers[] = { nvrtc->major, nvrtc->minor };
    uint8_t digest[SHA256_BYTES];
    KernelKey key;
    Sha256 sum;
    sha256_begin(&sum);
    add_word(&sum, s->kind->magic);
    add_word(&sum, s->cache.version);
    sha256_add(&sum, numbers, sizeof numbers);
    add_word(&sum, arch);
    for (size_t i = 0; nvrtc_options[i]; i++)
        add_word(&sum, nvrtc_options[i]);
    add_word(&sum, "");
    add_word(&sum, text);
    sha256_end(&sum, digest);
    sha256_text(key.text, digest);
    return key;
}

KernelKey store_key(const StoreKind *kind, const char *const *words)
{
    uint8_t digest[SHA256_BYTES];
    KernelKey key;
    Sha256 sum;
    sha256_begin(&sum);
    add_word(&sum, kind->magic);
    for (size_t i = 0; words[i]; i++)
        add_word(&sum, words[i]);
    sha256_end(&sum, digest);
    sha256_text(key.text, digest);
    return key;
}

bool store_is_name(const char *name, const char *ending)
{
    const size_t digits = SHA256_TEXT - 1;
    return strspn(name, "0123456789abcdef") == digits && strcmp(name + digits, ending) == 0;
}

static const char *path_of(const KernelStore *s, const KernelKey *key)
{
    return file_in(s->arena, s->cache.folder, arena_printf(s->arena, "%s%s", key->text, s->kind->ending));
}

/* ---- what is said ---- */

static Place at_path(const char *path)
{
    return (Place){ .file = path, .byte = -1 };
}

/* What is wrong with the folder is said once. */
static void tell(KernelStore *s, const char *path, const char *what, int error)
{
    char text[128];
    if (!s->told)
        remark(s->d, "kernels", at_path(path), "%s: %s; %s", what, strerror_r(error, text, sizeof text),
               s->kind->without);
    s->told = true;
}

/* ---- finding ---- */

typedef struct Opened {
    const Disk *disk;
    int fd;
} Opened;

static void close_opened(void *thing)
{
    const Opened *o = thing;
    o->disk->close(o->disk, o->fd);
}

/* 0, an errno, or -1 where the file ends before. */
static int read_whole(const Opened *o, char *to, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = o->disk->read(o->disk, o->fd, to + done, n - done, done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? errno : -1;
        done += (size_t)got;
    }
    return 0;
}

static void put_head(char *head, const StoreKind *kind, const KernelKey *key, Str kept)
{
    uint8_t sum[SHA256_BYTES];
    Sha256 s;
    memset(head, 0, HEAD);
    memcpy(head, kind->magic, strlen(kind->magic));
    memcpy(head + AT_KEY, key->text, AT_SIZE - AT_KEY);
    for (int i = 0; i < 8; i++)
        head[AT_SIZE + i] = (char)((uint64_t)kept.n >> 8 * i);
    sha256_begin(&s);
    sha256_add(&s, kept.p, kept.n);
    sha256_end(&s, sum);
    memcpy(head + AT_SUM, sum, sizeof sum);
}

/* Whether these are the bytes of a file that was written for the key. */
static bool is_whole(const char *bytes, size_t n, const StoreKind *kind, const KernelKey *key)
{
    char head[HEAD];
    if (n < HEAD)
        return false;
    put_head(head, kind, key, (Str){ bytes + HEAD, n - HEAD });
    return memcmp(head, bytes, HEAD) == 0;
}

/* The bytes of an open file: 0, an errno, or -1 where they cannot be those of any. */
static int read_opened(KernelStore *s, const Opened *o, char **bytes, size_t *n)
{
    struct stat st;
    if (fstat(o->fd, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode) || st.st_size < HEAD || st.st_size > MOST_BYTES)
        return -1;
    *n = (size_t)st.st_size;
    *bytes = arena_room(s->arena, *n);
    return read_whole(o, *bytes, *n);
}

static void take_away(KernelStore *s, const char *path)
{
    remark(s->d, "kernels", at_path(path), "%s", s->kind->anew);
    if (s->cache.disk->remove(s->cache.disk, path) != 0 && errno != ENOENT)
        tell(s, path, "cannot be removed", errno);
}

bool kernel_store_find(KernelStore *s, const KernelKey *key, Str *kept)
{
    Cleanup cleanup;
    char *bytes = NULL;
    size_t n = 0;
    if (!s->cache.folder)
        return false;
    const char *path = path_of(s, key);
    Opened o = { s->cache.disk, s->cache.disk->open(s->cache.disk, path) };
    if (o.fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR) /* what is no folder is told when something is to be kept in it */
            tell(s, path, "cannot be opened", errno);
        return false;
    }
    cleanup_push(s->arena->memory, &cleanup, close_opened, &o);
    const int error = read_opened(s, &o, &bytes, &n);
    if (!error)
        (void)futimens(o.fd, NULL); /* it was used: the others go before it */
    cleanup_drop(&cleanup);
    close_opened(&o);
    if (error > 0) {
        tell(s, path, "cannot be read", error);
        return false;
    }
    if (error || !is_whole(bytes, n, s->kind, key)) {
        take_away(s, path);
        return false;
    }
    *kept = (Str){ bytes + HEAD, n - HEAD };
    return true;
}

/* ---- keeping ---- */

/* Makes a folder and those that hold it: 0 or an errno. */
static int make_folders(KernelStore *s)
{
    const Disk *disk = s->cache.disk;
    char *path = arena_string(s->arena, s->cache.folder);
    struct stat st;
    if (stat(path, &st) == 0)
        return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    for (char *p = path + 1; *path; p++) {
        if (*p && *p != '/')
            continue;
        const char was = *p;
        *p = '\0';
        if (disk->make_folder(disk, path) != 0 && errno != EEXIST && (!was || errno == ENOENT || errno == ENOSPC))
            return errno; /* above the last one others may refuse, as long as what is in them is there */
        *p = was;
        if (!was)
            break;
    }
    return 0;
}

/* The first of what file.h says, as it is heard by nobody else. */
static void hear(void *user, const Message *m)
{
    const char **first = user;
    if (!*first)
        *first = m->text;
}

/* What another process kept meanwhile may be what stays. */
static Status write_all(const KernelStore *s, Diag *d, const char *path, const char *head, Str kept)
{
    FileOut f;
    bool taken = false;
    TRY(file_create_on(&f, s->cache.disk, s->arena, d, path));
    Status status = file_reserve(&f, (uint64_t)HEAD + kept.n);
    if (status == OK)
        status = file_write(&f, head, HEAD);
    if (status == OK)
        status = file_write(&f, kept.p, kept.n);
    if (status == OK)
        status = file_keep_as(&f, path, !s->kind->stays, &taken);
    if (status != OK || taken)
        file_drop(&f);
    return status;
}

void kernel_store_keep(KernelStore *s, const KernelKey *key, Str kept)
{
    const char *path, *first = NULL;
    char head[HEAD];
    Diag d;
    if (s->closed || kept.n > MOST_BYTES - HEAD)
        return;
    const int error = make_folders(s);
    if (error) {
        tell(s, s->cache.folder, "cannot be made a folder", error);
        s->closed = true;
        return;
    }
    path = path_of(s, key);
    put_head(head, s->kind, key, kept);
    diag_open(&d, s->arena, hear, &first);
    s->wrote = true;
    if (write_all(s, &d, path, head, kept) == OK)
        return;
    s->closed = true;
    if (!s->told)
        remark(s->d, "kernels", at_path(path), "%s; %s", first ? first : "cannot be written", s->kind->lost);
    s->told = true;
}

/* ---- bounds ---- */

typedef struct Kept {
    const char *path;
    struct timespec used;
    uint64_t bytes;
} Kept;

typedef struct Folder {
    const char *folder;
    Arena *arena;
    Kept *list;
    size_t n, cap;
    uint64_t bytes;
} Folder;

static void add_kept(void *user, const char *name)
{
    Folder *f = user;
    struct stat st;
    if (!is_kernel(name))
        return;
    const char *path = file_in(f->arena, f->folder, name);
    if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return;
    GROW(f->arena, f->list, f->n, f->cap);
    f->list[f->n++] = (Kept){ path, st.st_mtim, (uint64_t)st.st_size };
    f->bytes += (uint64_t)st.st_size;
}

static int by_use(const void *a, const void *b)
{
    const Kept *x = a, *y = b;
    if (x->used.tv_sec != y->used.tv_sec)
        return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
    if (x->used.tv_nsec != y->used.tv_nsec)
        return x->used.tv_nsec < y->used.tv_nsec ? -1 : 1;
    return strcmp(x->path, y->path);
}

void kernel_store_close(KernelStore *s)
{
    const Disk *disk = s->cache.disk;
    Folder f = { .folder = s->cache.folder, .arena = s->arena };
    if (!s->wrote)
        return;
    const Leftovers l = { .disk = disk, .folder = f.folder, .is_stem = s->kind->is_ours };
    leftovers_clear(&l, s->arena);
    if (s->kind->stays)
        return;
    (void)entries_each(s->arena->memory, f.folder, MOST_FILES, add_kept, &f);
    if (f.bytes <= s->cache.most)
        return;
    qsort(f.list, f.n, sizeof *f.list, by_use);
    for (size_t i = 0; i < f.n && f.bytes > s->cache.most; i++)
        if (disk->remove(disk, f.list[i].path) == 0 || errno == ENOENT) /* another process did */
            f.bytes -= f.list[i].bytes;
}

bool kernel_cache_size(const char *folder, Arena *arena, size_t *files, uint64_t *bytes)
{
    Folder f = { .folder = folder, .arena = arena };
    const int error = entries_each(arena->memory, folder, MOST_FILES, add_kept, &f);
    *files = f.n;
    *bytes = f.bytes;
    return !error || error == EOVERFLOW;
}
