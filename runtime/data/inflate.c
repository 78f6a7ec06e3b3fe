#include "runtime/data/inflate.h"

#include <inttypes.h>

static Place place_of(const Inflate *i)
{
    return (Place){ .file = i->from.name, .byte = -1 };
}

static void end(void *thing)
{
    Inflate *i = thing;
    inflateEnd(&i->z);
}

Status inflate_open(Inflate *i, Arena *scratch, Diag *d, const Bytes *from, InflateForm form)
{
    enum { WINDOW = 15, GZIP = 16 };
    *i = (Inflate){ .from = *from, .d = d, .form = form };
    i->block = arena_alloc(scratch, INFLATE_BLOCK);
    if (inflateInit2(&i->z, form == INFLATE_GZIP ? GZIP + WINDOW : -WINDOW) != Z_OK)
        memory_exhausted(scratch->memory);
    cleanup_push(scratch->memory, &i->cleanup, end, i);
    return OK;
}

void inflate_close(Inflate *i)
{
    cleanup_drop(&i->cleanup);
    end(i);
}

static Status refill(Inflate *i)
{
    const uint64_t left = i->from.size - i->at;
    const size_t n = left < INFLATE_BLOCK ? (size_t)left : INFLATE_BLOCK;
    if (!n)
        return OK; /* the last bytes may still be inside zlib */
    TRY(bytes_get(&i->from, i->d, i->at, i->block, n));
    i->at += n;
    i->z.next_in = i->block;
    i->z.avail_in = (unsigned)n;
    return OK;
}

/* gzip files may stand behind each other; they are one. */
static Status at_end(Inflate *i)
{
    const bool more = i->z.avail_in || i->at < i->from.size;
    i->ended = !more;
    if (!more)
        return OK;
    if (i->form == INFLATE_RAW)
        return fail(i->d, place_of(i), "bytes follow the compressed data");
    return inflateReset(&i->z) == Z_OK ? OK : fail(i->d, place_of(i), "the compressed data are broken");
}

Status inflate_some(Inflate *i, void *out, size_t n, size_t *got)
{
    for (*got = 0; *got < n && !i->ended;) {
        const size_t step = n - *got < (size_t)1 << 30 ? n - *got : (size_t)1 << 30;
        if (!i->z.avail_in)
            TRY(refill(i));
        i->z.next_out = (unsigned char *)out + *got;
        i->z.avail_out = (unsigned)step;
        const int answer = inflate(&i->z, Z_NO_FLUSH);
        *got += step - i->z.avail_out;
        if (answer == Z_STREAM_END)
            TRY(at_end(i));
        else if (answer == Z_MEM_ERROR)
            return fail_as(i->d, NO_MEMORY, place_of(i), "no memory to inflate it");
        else if (answer == Z_BUF_ERROR && i->at == i->from.size)
            return fail(i->d, place_of(i), "the compressed data end too early");
        else if (answer != Z_OK && answer != Z_BUF_ERROR)
            return fail(i->d, place_of(i), "the compressed data are broken%s%s", i->z.msg ? ": " : "",
                        i->z.msg ? i->z.msg : "");
    }
    return OK;
}

Status inflate_all(Inflate *i, void *out, size_t n)
{
    enum { STEP = 1 << 22 };
    size_t got = 0, more = 1;
    for (; got < n && more; got += more) {
        memory_poll(i->d->arena->memory);
        TRY(inflate_some(i, (char *)out + got, n - got < STEP ? n - got : STEP, &more));
    }
    return got == n ? OK
                    : fail(i->d, place_of(i), "inflates to %zu bytes less than the %zu that are wanted", n - got, n);
}

Status inflate_end(Inflate *i)
{
    uint8_t one;
    size_t got;
    TRY(inflate_some(i, &one, 1, &got));
    return got ? fail(i->d, place_of(i), "inflates to more bytes than its head says") : OK;
}

bool inflate_can(uint64_t packed, uint64_t n)
{
    return n / DEFLATE_BEST <= packed;
}
