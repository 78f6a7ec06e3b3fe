/* Kernels that were compiled, kept in a folder: a file each text, named by all that its bytes depend on.
 *
 * A file is written under another name, brought to the disk and renamed, so that processes that share a folder see it whole or
 * not at all; one whose bytes are not what was written is taken away and made anew.  A folder that cannot be read or
 * written costs time and nothing else.  Whoever may write there decides what runs on the device. */
#ifndef RUNTIME_CUDA_KERNEL_CACHE_H
#define RUNTIME_CUDA_KERNEL_CACHE_H

#include "base/disk.h"
#include "base/sha256.h"
#include "runtime/cuda/nvrtc.h"

typedef struct KernelCache {
    const char *folder;  /* null: nothing is kept */
    const char *version; /* of who writes texts */
    uint64_t most;       /* bytes; the files that were not used for longest go; 0: KERNEL_CACHE_MOST */
    const Disk *disk;    /* null: the system's */
} KernelCache;

#define KERNEL_CACHE_MOST ((uint64_t)512 << 20)

/* What is compiled: texts that know nothing of each other, each behind a prelude that all have. */
typedef struct KernelSource {
    const char *prelude, *const *texts;
    size_t n;
    const char *arch; /* "sm_90a" */
} KernelSource;

/* Some texts that follow each other, compiled together. */
typedef struct KernelObject {
    size_t first, n;
    Str cubin;
    const char *log; /* what the assembler says of its kernels (nvrtc_uses) */
    bool was_kept;   /* nothing had to be compiled */
} KernelObject;

typedef struct KernelObjects {
    KernelObject *list; /* in the order of the texts, each in one */
    size_t n;
} KernelObjects;

/* So many texts are compiled together, whatever the number of threads: a prelude is read once for all of them. */
enum { KERNEL_TEXTS = 32 };

/* Compiles what is not kept, on so many threads, and keeps it; INTERNAL, as nvrtc_compile, where a text does not compile.
 * What is wrong with the folder is a remark of the topic `kernels`. */
Status kernels_compile(const KernelCache *cache, const Nvrtc *nvrtc, int threads, Diag *d, const KernelSource *source,
                       Arena *arena, KernelObjects *objects);

/* ---- the folder ---- */

/* A kind of files that lie there: how they are named, what they begin with, and what is said of them. */
typedef struct StoreKind {
    const char *ending, *magic; /* of 15 letters at most */
    const char *without, *anew,
        *lost; /* of a folder that is of no use; of a file that is damaged; of one that cannot be kept */
    bool (*is_ours)(const char *name);
    bool stays; /* a file that is there is not written over, and does not go where there is too much */
} StoreKind;

extern const StoreKind store_of_kernels;

/* One use of it. */
typedef struct KernelStore {
    const StoreKind *kind;
    KernelCache cache;
    Diag *d;
    Arena *arena;
    bool told, closed, wrote; /* what is wrong; nothing is written any more; something was */
} KernelStore;

typedef struct KernelKey {
    char text[SHA256_TEXT];
} KernelKey;

void kernel_store_open(KernelStore *s, const StoreKind *kind, const KernelCache *cache, Diag *d, Arena *arena);

/* What the bytes depend on: versions, options, architecture, texts. */
KernelKey kernel_key(const KernelStore *s, const Nvrtc *nvrtc, const char *arch, const char *text);

/* A key of words, the last of which is null. */
KernelKey store_key(const StoreKind *kind, const char *const *words);

/* Whether a name is a digest with this ending. */
bool store_is_name(const char *name, const char *ending);

/* Whether bytes are kept under a key; they live in the arena of the store. */
bool kernel_store_find(KernelStore *s, const KernelKey *key, Str *kept);

/* Keeps them, where that is possible. */
void kernel_store_keep(KernelStore *s, const KernelKey *key, Str kept);

/* Ends the use: what is too much goes, and what killed processes left. */
void kernel_store_close(KernelStore *s);

/* How many files a folder keeps, and how many bytes; false where there is no such folder. */
bool kernel_cache_size(const char *folder, Arena *arena, size_t *files, uint64_t *bytes);

#endif
