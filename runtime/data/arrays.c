/* Forms that hold arrays as they are: .npy, .npz, .safetensors, TensorProto. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "ir/store/safetensors.h"
#include "runtime/data/formats.h"
#include "runtime/data/inflate.h"
#include "runtime/data/zip.h"

/* ---- .npy ---- */

static Status load_fortran(Opening *o, const Bytes *elements, const NpyHead *h, size_t width)
{
    const uint64_t bytes = o->s->elements.size;
    const int64_t n = samples_elements(o->s);
    uint8_t *raw = opening_hold(o, bytes), *turned = raw ? opening_hold(o, bytes) : NULL;
    if (!turned)
        return INVALID;
    TRY(bytes_get(elements, o->d, 0, raw, (size_t)bytes));
    npy_reorder(turned, raw, h, n, width);
    heap_free(&o->s->heap, raw);
    *o->q->held -= bytes;
    o->s->elements = bytes_of(o->s->path, turned, bytes);
    return OK;
}

Status open_npy_in(Opening *o, const Bytes *file)
{
    NpyHead h;
    const SamplesQuery *q = o->q;
    const Type *said = data_given(q->spec, DATA_dtype) ? type_scalar(q->types, q->spec->dtype) : NULL;
    TRY(npy_head(o->d, q->limits, file, said ? said : q->wanted, &h));
    if (h.unpacked && !dtype_is_float(h.dtype)) /* a byte each: converted like any byte */
        h.dtype = dtype_class(h.dtype) == CLASS_INT ? I8 : U8;
    if (said && h.dtype != said->dtype)
        return opening_fail(o, "holds %s, not %s", dtype_name(h.dtype), dtype_name(said->dtype));
    const Bytes elements = bytes_part(file, h.at, file->size - h.at);
    TRY(opening_array(o, h.dtype, h.rank, h.dims, &elements));
    o->s->swapped = h.swapped;
    return h.fortran && h.rank > 1 ? load_fortran(o, &elements, &h, o->s->width) : OK;
}

Status open_npy(Opening *o)
{
    return open_npy_in(o, &o->s->file);
}

/* ---- .npz ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), e = strlen(end);
    return n >= e && strcmp(text + n - e, end) == 0;
}

static Status open_member(Opening *o, const Zip *z, const ZipMember *m)
{
    Bytes bytes = zip_range(z, m);
    if (m->method == ZIP_STORED) {
        if (m->size <= (uint64_t)o->q->limits->data_bytes) /* larger ones are read while training; so is their damage */
            TRY(zip_check(z, m, &o->scratch, o->d));
        return open_npy_in(o, &bytes);
    }
    if (m->method != ZIP_DEFLATED)
        return fail_as(o->d, UNSUPPORTED, o->place, "%s is compressed by method %d", m->name, m->method);
    if (!inflate_can(m->packed, m->size))
        return opening_fail(o, "%s: %" PRIu64 " bytes cannot inflate to %" PRIu64, m->name, m->packed, m->size);
    void *p = opening_hold(o, m->size);
    if (!p)
        return INVALID;
    TRY(zip_inflate(z, m, &o->scratch, o->d, p));
    bytes = bytes_of(o->s->path, p, m->size);
    return open_npy_in(o, &bytes);
}

Status open_npz(Opening *o)
{
    Zip z;
    size_t n = 0, chosen = 0;
    TRY(zip_open(&z, &o->scratch, o->d, &o->s->file));
    const char **names = NEWS(&o->scratch, const char *, z.n);
    const ZipMember **arrays = NEWS(&o->scratch, const ZipMember *, z.n);
    for (size_t i = 0; i < z.n; i++) {
        if (ends_with(z.list[i].name, "data.pkl"))
            return opening_torch(o);
        if (!ends_with(z.list[i].name, ".npy"))
            continue;
        names[n] = z.list[i].name;
        arrays[n++] = &z.list[i];
    }
    if (!n && z.n)
        return opening_fail(o, "is a zip archive without arrays (.npy)");
    TRY(opening_choose(o, n, names, ".npy", &chosen));
    return open_member(o, &z, arrays[chosen]);
}

/* ---- .safetensors ---- */

Status open_safetensors(Opening *o)
{
    SafeTensors t;
    size_t chosen = 0;
    TRY(safetensors_open(&t, o->q->types, &o->scratch, o->d, o->q->limits, o->s->path));
    const char **names = NEWS(&o->scratch, const char *, t.n);
    for (size_t i = 0; i < t.n; i++)
        names[i] = t.list[i].name;
    TRY(opening_choose(o, t.n, names, "", &chosen));
    const SafeTensor *s = &t.list[chosen];
    if (s->at > o->s->file.size || s->bytes > o->s->file.size - s->at)
        return opening_fail(o, "has changed while it was opened");
    const Bytes elements = bytes_part(&o->s->file, s->at, s->bytes);
    return opening_array(o, s->type->dtype, s->type->rank, s->type->dims, &elements);
}

/* ---- TensorProto ---- */

Status open_proto(Opening *o)
{
    const DataOptions *options = o->q->options;
    Tensor *t = NULL;
    if (!options || !options->read_proto)
        return fail_as(o->d, UNSUPPORTED, o->place, "is a TensorProto file: there is no reader for it here");
    TRY(options->read_proto(options->user, &o->s->heap, o->s->path, o->q->wanted, &t));
    if (t->type->kind != TYPE_TENSOR)
        return opening_fail(o, "holds a sequence or an optional, not a tensor");
    const Bytes elements = bytes_of(o->s->path, t->data, t->bytes);
    return opening_array(o, t->type->dtype, t->type->rank, t->type->dims, &elements);
}
