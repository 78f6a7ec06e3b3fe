#include "api/model/data.h"

#include <string.h>

#include "base/file.h"
#include "frontends/onnx/file/value.h"
#include "runtime/data/npy.h"

/* Archives and pickles that are handed in as arrays. */
static Status foreign_data(Diag *d, const char *path, const uint8_t *head, size_t n)
{
    const Place place = { .file = path, .byte = -1 };
    Message *m = NULL;
    if (n >= 4 && memcmp(head, "PK\x03\x04", 4) == 0) {
        m = message_new(d, SEVERITY_ERROR, INVALID, place, "is an archive (.npz or .pt), not one array");
        message_try(m, "numpy.save('x.npy', numpy.load('FILE.npz')['NAME'])");
    } else if (n >= 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5) {
        m = message_new(d, SEVERITY_ERROR, INVALID, place, "is a Python pickle, not an array");
        message_try(m, "numpy.save(path, x, allow_pickle=False)");
    }
    return m ? message_send(m) : OK;
}

Status data_read(Ir *ir, Heap *heap, const char *path, const char *name, const Type *declared, Tensor **value)
{
    uint8_t head[8] = { 0 };
    uint64_t size;
    Diag *d = ir->diag;
    if (declared && declared->kind == TYPE_OPAQUE)
        return fail_as(d, UNSUPPORTED, (Place){ .file = path, .where = name, .byte = -1 },
                       "%s: no file holds values of it", type_text(d->arena, declared));
    TRY(file_size(d, path, &size));
    const size_t n = size < sizeof head ? (size_t)size : sizeof head;
    TRY(file_read_at(d, path, size, 0, head, n));
    if (npy_is(head, n))
        return npy_read(&ir->types, heap, d, &ir->limits, path, declared, value);
    TRY(foreign_data(d, path, head, n));
    return onnx_value_read(ir, heap, arena_string(ir->arena, path), name, declared, value);
}

static Status put(void *user, const void *bytes, size_t n)
{
    return out_bytes(user, bytes, n);
}

Status data_write(Out *results, const char *path, const Tensor *t)
{
    Out o;
    qcc_context *cx = results->cx;
    const qcc_sink sink = { .path = path };
    if (strcmp(path, "-") == 0)
        return npy_write(&cx->scratch, t, put, results);
    TRY(out_open(&o, cx, &sink));
    return out_close(&o, npy_write(&cx->scratch, t, put, &o));
}
