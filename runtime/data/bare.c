/* Forms that are hardly more than their numbers: IDX, tokens, raw. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "runtime/data/formats.h"
#include "runtime/data/inflate.h"

/* ---- IDX: two zeros, type, rank, dimensions, elements; all big-endian ---- */

enum { IDX_FIXED = 4, IDX_MOST = IDX_FIXED + 4 * MAX_RANK };

static bool idx_type(int code, DType *dtype)
{
    static const struct {
        int code;
        DType dtype;
    } types[] = { { 0x08, U8 }, { 0x09, I8 }, { 0x0b, I16 }, { 0x0c, I32 }, { 0x0d, F32 }, { 0x0e, F64 } };
    for (size_t i = 0; i < COUNT(types); i++)
        if (types[i].code == code) {
            *dtype = types[i].dtype;
            return true;
        }
    return false;
}

static void idx_dims(const uint8_t *p, int rank, int64_t *dims)
{
    for (int i = 0; i < rank; i++, p += 4)
        dims[i] = (int64_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

static bool idx_begins(const uint8_t *head, size_t n, DType *dtype)
{
    return n >= IDX_FIXED && head[0] == 0 && head[1] == 0 && idx_type(head[2], dtype) && head[3] > 0 &&
           head[3] <= MAX_RANK;
}

bool idx_is(const uint8_t *head, size_t n, uint64_t size)
{
    DType dtype;
    int64_t dims[MAX_RANK], elements;
    if (!idx_begins(head, n, &dtype) || n < IDX_FIXED + 4u * head[3])
        return false;
    idx_dims(head + IDX_FIXED, head[3], dims);
    return checked_product_i64(dims, head[3], INT64_MAX / 8, &elements) &&
           IDX_FIXED + 4u * head[3] + (uint64_t)elements * ((unsigned)dtype_bits(dtype) / 8) == size;
}

static Status idx_head(Opening *o, const uint8_t *fixed, size_t n, DType *dtype)
{
    return idx_begins(fixed, n, dtype)
               ? OK
               : opening_fail(o, "is no IDX file: it begins with other bytes than 0 0, a type (8 to 14) and a rank");
}

Status open_idx(Opening *o)
{
    DType dtype = U8;
    int64_t dims[MAX_RANK];
    TRY(idx_head(o, o->head, o->n_head, &dtype));
    const int rank = o->head[3];
    const uint64_t at = IDX_FIXED + 4u * (unsigned)rank, size = o->s->file.size;
    if (o->n_head < at)
        return opening_fail(o, "ends inside its head");
    idx_dims(o->head + IDX_FIXED, rank, dims);
    const Bytes elements = bytes_part(&o->s->file, at, size - at);
    TRY(opening_array(o, dtype, rank, dims, &elements));
    o->s->swapped = true;
    return o->s->elements.size == elements.size ? OK : opening_fail(o, "bytes follow its elements");
}

static Status inflate_idx(Opening *o, Inflate *i)
{
    uint8_t head[IDX_MOST];
    DType dtype = U8;
    int64_t dims[MAX_RANK], n;
    size_t got, bytes;
    TRY(inflate_some(i, head, IDX_FIXED, &got));
    TRY(idx_head(o, head, got, &dtype));
    const int rank = head[3];
    TRY(inflate_all(i, head + IDX_FIXED, 4 * (size_t)rank));
    idx_dims(head + IDX_FIXED, rank, dims);
    if (!checked_product_i64(dims, rank, o->q->limits->elements, &n) ||
        !checked_mul_size((size_t)n, (size_t)dtype_bits(dtype) / 8, &bytes) || !inflate_can(o->s->file.size, bytes))
        return opening_fail(o, "%" PRIu64 " bytes cannot inflate to what its head says", o->s->file.size);
    void *p = opening_hold(o, bytes);
    if (!p)
        return INVALID;
    TRY(inflate_all(i, p, bytes));
    TRY(inflate_end(i));
    const Bytes elements = bytes_of(o->s->path, p, bytes);
    TRY(opening_array(o, dtype, rank, dims, &elements));
    o->s->swapped = true;
    return OK;
}

Status open_idx_gz(Opening *o)
{
    Inflate i;
    TRY(inflate_open(&i, &o->scratch, o->d, &o->s->file, INFLATE_GZIP));
    const Status status = inflate_idx(o, &i);
    inflate_close(&i);
    return status;
}

/* ---- tokens: llm.c's head of 256 integers, or none ---- */

enum { TOKENS_HEAD = 1024 };

static const struct {
    uint32_t magic, version;
    DType dtype;
} token_heads[] = { { 20240520, 1, U16 }, { 20240801, 7, U32 } };

static uint32_t u32_at(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

bool tokens_is(const uint8_t *head, size_t n)
{
    for (size_t i = 0; n >= 12 && i < COUNT(token_heads); i++)
        if (u32_at(head) == token_heads[i].magic)
            return true;
    return false;
}

static Status read_token_head(Opening *o, DType *dtype, int64_t *count)
{
    size_t i = 0;
    while (u32_at(o->head) != token_heads[i].magic)
        i++;
    if (u32_at(o->head + 4) != token_heads[i].version)
        return opening_fail(o, "tokens of version %" PRIu32 ": known is %" PRIu32, u32_at(o->head + 4),
                            token_heads[i].version);
    if (o->s->file.size < TOKENS_HEAD)
        return opening_fail(o, "ends inside its head");
    *dtype = token_heads[i].dtype;
    *count = (int64_t)u32_at(o->head + 8);
    if (data_given(o->q->spec, DATA_dtype) && o->q->spec->dtype != *dtype)
        return opening_fail(o, "holds %s by its own head, not %s", dtype_name(*dtype), dtype_name(o->q->spec->dtype));
    const uint64_t bytes = o->s->file.size - TOKENS_HEAD, width = (unsigned)dtype_bits(*dtype) / 8;
    if (bytes != (uint64_t)*count * width)
        return opening_fail(o, "its head counts %" PRId64 " tokens of %s, %" PRIu64 " bytes follow", *count,
                            dtype_name(*dtype), bytes);
    return OK;
}

/* Where the elements begin, and that they fill the file. */
static Status bare_part(Opening *o, size_t unit, const char *of, Bytes *elements)
{
    const uint64_t skip = data_given(o->q->spec, DATA_header) ? (uint64_t)o->q->spec->header : 0;
    const uint64_t size = o->s->file.size;
    if (skip > size)
        return opening_fail(o, "has %" PRIu64 " bytes, less than its header of %" PRIu64, size, skip);
    if ((size - skip) % unit)
        return opening_fail(o, "%" PRIu64 " bytes are not a whole number of %s (%zu bytes each)", size - skip, of,
                            unit);
    *elements = bytes_part(&o->s->file, skip, size - skip);
    return OK;
}

Status open_tokens(Opening *o)
{
    DType dtype = data_given(o->q->spec, DATA_dtype) ? o->q->spec->dtype : U16;
    Bytes elements = bytes_part(&o->s->file, 0, 0);
    int64_t count = 0;
    if (tokens_is(o->head, o->n_head)) {
        TRY(read_token_head(o, &dtype, &count));
        elements = bytes_part(&o->s->file, TOKENS_HEAD, o->s->file.size - TOKENS_HEAD);
    } else {
        const size_t width = (size_t)dtype_bits(dtype) / 8;
        TRY(bare_part(o, width, "tokens", &elements));
        count = (int64_t)(elements.size / width);
    }
    o->s->tokens = true;
    return opening_array(o, dtype, 1, &count, &elements);
}

/* ---- raw ---- */

Status open_raw(Opening *o)
{
    const SamplesQuery *q = o->q;
    const DataSpec *spec = q->spec;
    const bool shaped = data_given(spec, DATA_shape);
    int64_t dims[MAX_RANK], n;
    size_t bytes;
    Bytes elements = bytes_part(&o->s->file, 0, 0);
    const int rank = shaped ? spec->rank : q->wanted ? q->wanted->rank - 1 : -1;
    const DType dtype = data_given(spec, DATA_dtype) ? spec->dtype : q->wanted ? q->wanted->dtype : U8;
    if (rank < 0 && q->probing) /* the caller takes no dimensions from it */
        return OK;
    if (rank < 0 || (!data_given(spec, DATA_dtype) && !q->wanted))
        return fail_as(o->d, USAGE, o->place, "raw numbers need an element type and a shape: FILE:u8,shape=3x32x32");
    if (rank)
        memcpy(dims + 1, shaped ? spec->dims : q->wanted->dims + 1, (size_t)rank * sizeof *dims);
    if (!checked_product_i64(dims + 1, rank, q->limits->elements, &n) || n == 0 || !dtype_bytes(dtype, n, &bytes) ||
        dtype_bits(dtype) < 8)
        return opening_fail(o, "raw samples of that type and shape are not read");
    TRY(bare_part(o, bytes, "samples", &elements));
    dims[0] = (int64_t)(elements.size / bytes);
    return opening_array(o, dtype, rank + 1, dims, &elements);
}
