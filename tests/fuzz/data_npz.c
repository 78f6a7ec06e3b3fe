/* Any bytes as a .npz file, and as the array in one whose sizes and checksums are right. */
#include "base/sink.h"
#include "fuzz/data.h"
#include "runtime/write/zip.h"

const FuzzForm fuzz_form = FUZZ_TEXT;

typedef struct Archive {
    Memory memory;
    const uint8_t *data;
    size_t size;
    uint8_t *out;
    size_t n, cap;
} Archive;

static Status gather(void *user, const void *bytes, size_t n)
{
    Archive *a = user;
    if (n > a->cap - a->n)
        return IO;
    memcpy(a->out + a->n, bytes, n);
    a->n += n;
    return OK;
}

static Status put_data(void *user, Sink to)
{
    const Archive *a = user;
    return to.put(to.user, a->data, a->size);
}

static Status pack(void *arg)
{
    Archive *a = arg;
    Arena arena;
    ZipWriter z;
    arena_open(&arena, &a->memory);
    zip_begin(&z, &arena, (Sink){ gather, a }, 0);
    Status status = zip_add(&z, "x.npy", put_data, a);
    if (status == OK)
        status = zip_end(&z);
    arena_close(&arena);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Archive a = { .data = data, .size = size, .cap = size + 1024 };
    data_fuzz(".npz", data, size);
    memory_open(&a.memory, NULL);
    a.out = malloc(a.cap);
    if (a.out && guarded(&a.memory, pack, &a) == OK)
        data_fuzz(".npz", a.out, a.n);
    free(a.out);
    return 0;
}
