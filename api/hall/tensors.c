#include "api/hall/tensors.h"

#include <inttypes.h>
#include <stdalign.h>
#include <string.h>

Status tensor_wants_size(Diag *d, const char *name, const qcc_tensor *t)
{
    if (t->size >= offsetof(qcc_tensor, place) && t->size % alignof(qcc_tensor) == 0)
        return OK;
    return fail_as(d, USAGE, (Place){ .where = name, .byte = -1 }, "its size is %zu: set it to sizeof(qcc_tensor)",
                   t->size);
}

Status tensor_take(qcc_context *cx, Types *types, const char *name, const char *wanted, const qcc_tensor *given,
                   Tensor *t)
{
    Diag *d = &cx->diag;
    const Place place = { .where = name, .byte = -1 };
    size_t bytes;
    qcc_tensor g = { .place = QCC_ON_HOST }; /* as this version knows it; a caller built for an older one gave less */
    TRY(tensor_wants_size(d, name, given));
    memcpy(&g, given, given->size < sizeof g ? given->size : sizeof g);
    if (g.place == QCC_ON_DEVICE)
        return fail_as(d, DEVICE, place, "is on a device: the engine %s takes tensors of the host", cx->engine->name);
    if (g.place != QCC_ON_HOST)
        return fail_as(d, USAGE, place, "place %d is neither QCC_ON_HOST nor QCC_ON_DEVICE", (int)g.place);
    if (g.dtype == QCC_STRING)
        return fail_as(d, USAGE, place, "%s%sgiven is string: only tensors of numbers go in", wanted ? "is " : "",
                       wanted ? arena_printf(&cx->scratch, "%s, and ", wanted) : "");
    if (!qcc_dtype_name(g.dtype) || g.rank < 0 || g.rank > MAX_RANK)
        return fail_as(d, USAGE, place, "dtype %d, rank %d", (int)g.dtype, g.rank);
    for (int k = 0; k < g.rank; k++)
        if (g.dims[k] < 0 || g.dims[k] > cx->limits.dim)
            return fail_as(d, USAGE, place, "dimension %d is %" PRId64, k, g.dims[k]);
    *t = (Tensor){ .type = type_tensor(types, (DType)g.dtype, g.rank, g.dims), .data = g.data, .refs = 1 };
    if (!type_bytes(t->type, &bytes) || bytes != g.bytes || (bytes && !g.data))
        return fail_as(d, USAGE, place, "%s has %zu bytes", type_text(&cx->scratch, t->type), g.bytes);
    t->bytes = bytes;
    return OK;
}

void tensor_show(const Tensor *t, qcc_tensor *to)
{
    qcc_tensor all = { .size = to->size < sizeof all ? to->size : sizeof all,
                       .dtype = (qcc_dtype)t->type->dtype,
                       .rank = t->type->rank,
                       .data = t->data,
                       .bytes = t->bytes,
                       .place = QCC_ON_HOST };
    for (int k = 0; k < t->type->rank; k++)
        all.dims[k] = t->type->dims[k];
    memcpy(to, &all, all.size);
}

const qcc_tensor *tensor_at(const qcc_tensor *list, size_t i)
{
    return (const qcc_tensor *)(const void *)((const char *)list + i * list->size);
}
