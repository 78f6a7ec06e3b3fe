#include "runtime/write/npz.h"

#include "runtime/data/npy.h"
#include "runtime/write/zip.h"

typedef struct Entry {
    Arena *scratch;
    const Tensor *tensor;
} Entry;

static Status put_array(void *user, Sink to)
{
    const Entry *e = user;
    return npy_write(e->scratch, e->tensor, to.put, to.user);
}

Status npz_write(Arena *scratch, Sink to, const NamedTensor *arrays, size_t n)
{
    ZipWriter z;
    zip_begin(&z, scratch, to, 0);
    for (size_t i = 0; i < n; i++) {
        Entry e = { scratch, arrays[i].tensor };
        TRY(zip_add(&z, arena_printf(scratch, "%s.npy", arrays[i].name), put_array, &e));
    }
    return zip_end(&z);
}
