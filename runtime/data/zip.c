#include "runtime/data/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/inflate.h"

enum {
    END = 22,          /* bytes of the record at the end, its comment apart */
    LOCATOR = 20,      /* of what stands before it in a large archive */
    END64 = 56,        /* of the record that the locator finds */
    ENTRY = 46,        /* of an entry of the directory, name and extra apart */
    LOCAL = 30,        /* of a member's own head */
    COMMENT = 65535,   /* the longest */
    ZIP64_EXTRA = 1,   /* the extra field with 64-bit sizes */
    FLAG_SECRET = 1,   /* encrypted */
    FLAG_STRONG = 0x40 /* encrypted as well */
};
enum { MOST_DIRECTORY = 64 << 20 };

typedef struct ZipReader {
    Zip *z;
    Arena *arena;
    Arena scratch;
    Diag *d;
    uint64_t at, size, count; /* of the directory */
} ZipReader;

static uint16_t u16_at(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32_at(const uint8_t *p)
{
    return u16_at(p) | (uint32_t)u16_at(p + 2) << 16;
}

static uint64_t u64_at(const uint8_t *p)
{
    return u32_at(p) | (uint64_t)u32_at(p + 4) << 32;
}

static bool begins(const uint8_t *p, const char *signature)
{
    return memcmp(p, signature, 4) == 0;
}

static Status bad(const ZipReader *r, const char *name, const char *what)
{
    const char *where = name ? arena_printf(r->d->arena, "member %s", name) : NULL;
    return fail(r->d, (Place){ .file = r->z->from.name, .where = where, .byte = -1 }, "%s", what);
}

static Status get(ZipReader *r, uint64_t at, void *out, size_t n)
{
    return bytes_get(&r->z->from, r->d, at, out, n);
}

/* ---- where the directory is ---- */

static Status read_end64(ZipReader *r, uint64_t end)
{
    uint8_t locator[LOCATOR], record[END64];
    if (end < LOCATOR)
        return OK;
    TRY(get(r, end - LOCATOR, locator, sizeof locator));
    if (!begins(locator, "PK\x06\x07"))
        return OK;
    const uint64_t at = u64_at(locator + 8);
    if (u32_at(locator + 4) != 0 || u32_at(locator + 16) > 1)
        return bad(r, NULL, "is one volume of several");
    if (at > end - LOCATOR || end - LOCATOR - at < END64)
        return bad(r, NULL, "the end of the archive points outside it");
    TRY(get(r, at, record, sizeof record));
    if (!begins(record, "PK\x06\x06"))
        return bad(r, NULL, "the end of the archive points at no directory");
    if (u64_at(record + 24) != u64_at(record + 32))
        return bad(r, NULL, "is one volume of several");
    r->count = u64_at(record + 32);
    r->size = u64_at(record + 40);
    r->at = u64_at(record + 48);
    return OK;
}

static Status find_directory(ZipReader *r)
{
    const uint64_t size = r->z->from.size;
    const size_t n = size < END + COMMENT ? (size_t)size : END + COMMENT;
    if (n < END)
        return bad(r, NULL, "is too short for a zip archive");
    uint8_t *tail = arena_alloc(&r->scratch, n);
    TRY(get(r, size - n, tail, n));
    size_t i = n - END;
    while (!begins(tail + i, "PK\x05\x06") || u16_at(tail + i + 20) != n - END - i)
        if (i-- == 0)
            return bad(r, NULL, "has no directory at its end: it is cut off, or no zip archive");
    const uint64_t end = size - n + i;
    if (u16_at(tail + i + 4) || u16_at(tail + i + 6) || u16_at(tail + i + 8) != u16_at(tail + i + 10))
        return bad(r, NULL, "is one volume of several");
    r->count = u16_at(tail + i + 10);
    r->size = u32_at(tail + i + 12);
    r->at = u32_at(tail + i + 16);
    if (r->count == 0xffff || r->size == 0xffffffff || r->at == 0xffffffff)
        TRY(read_end64(r, end));
    if (r->at > end || r->size > end - r->at)
        return bad(r, NULL, "the directory lies outside the archive");
    if (r->count > ZIP_MOST_MEMBERS || r->size > MOST_DIRECTORY || r->count > r->size / ENTRY)
        return bad(r, NULL, "the directory has more members than it has room for, or more than 65536");
    return OK;
}

/* ---- its entries ---- */

/* 64-bit numbers stand in the extra field, those that are needed, in this order. */
static Status read_extra(ZipReader *r, ZipMember *m, const uint8_t *p, size_t n)
{
    uint64_t *const wide[] = { &m->size, &m->packed, &m->head };
    while (n >= 4) {
        const size_t length = u16_at(p + 2);
        if (length > n - 4)
            break;
        size_t at = 4;
        for (size_t k = 0; u16_at(p) == ZIP64_EXTRA && k < COUNT(wide); k++) {
            if (*wide[k] != 0xffffffff)
                continue;
            if (at + 8 > length + 4)
                return bad(r, m->name, "its 64-bit sizes are missing");
            *wide[k] = u64_at(p + at);
            at += 8;
        }
        p += length + 4;
        n -= length + 4;
    }
    return OK;
}

static Status read_entry(ZipReader *r, const uint8_t *p, size_t n, ZipMember *m, size_t *used)
{
    if (n < ENTRY || !begins(p, "PK\x01\x02"))
        return bad(r, NULL, "the directory is broken");
    const size_t name = u16_at(p + 28), extra = u16_at(p + 30), comment = u16_at(p + 32);
    *used = ENTRY + name + extra + comment;
    if (*used > n)
        return bad(r, NULL, "the directory is broken");
    m->name = arena_copy(r->arena, (const char *)p + ENTRY, name);
    if (strlen(m->name) != name || !name)
        return bad(r, NULL, "a member has no name, or one with a NUL");
    m->method = u16_at(p + 10);
    m->crc = u32_at(p + 16);
    m->packed = u32_at(p + 20);
    m->size = u32_at(p + 24);
    m->head = u32_at(p + 42);
    if (u16_at(p + 8) & (FLAG_SECRET | FLAG_STRONG))
        return bad(r, m->name, "is encrypted");
    TRY(read_extra(r, m, p + ENTRY + name, extra));
    if (m->method == ZIP_STORED && m->packed != m->size)
        return bad(r, m->name, "is stored with two sizes");
    return OK;
}

static int by_head(const void *a, const void *b)
{
    const ZipMember *x = a, *y = b;
    return x->head < y->head ? -1 : x->head > y->head;
}

/* Where the bytes begin stands in the member's own head, which must tell the same story. */
static Status place_member(ZipReader *r, ZipMember *m, uint64_t end)
{
    uint8_t head[LOCAL];
    const size_t length = strlen(m->name);
    if (m->head > end || end - m->head < LOCAL)
        return bad(r, m->name, "overlaps what follows it");
    TRY(get(r, m->head, head, sizeof head));
    if (!begins(head, "PK\x03\x04") || u16_at(head + 8) != m->method || u16_at(head + 26) != length)
        return bad(r, m->name, "its own head says something else than the directory");
    m->data = m->head + LOCAL + length + u16_at(head + 28);
    if (m->data > end || m->packed > end - m->data)
        return bad(r, m->name, "overlaps what follows it");
    char *name = arena_alloc(&r->scratch, length + 1);
    TRY(get(r, m->head + LOCAL, name, length));
    return memcmp(name, m->name, length) == 0 ? OK : bad(r, m->name, "is called something else in its own head");
}

static Status read_directory(ZipReader *r)
{
    Zip *z = r->z;
    TRY(find_directory(r));
    uint8_t *p = arena_alloc(&r->scratch, (size_t)r->size + 1);
    size_t left = (size_t)r->size, used = 0;
    TRY(get(r, r->at, p, left));
    z->list = NEWS(r->arena, ZipMember, r->count);
    for (; z->n < r->count; z->n++, p += used, left -= used)
        TRY(read_entry(r, p, left, &z->list[z->n], &used));
    if (z->n)
        qsort(z->list, z->n, sizeof *z->list, by_head);
    for (size_t i = 0; i < z->n; i++)
        TRY(place_member(r, &z->list[i], i + 1 < z->n ? z->list[i + 1].head : r->at));
    return OK;
}

Status zip_open(Zip *z, Arena *arena, Diag *d, const Bytes *from)
{
    ZipReader r = { .z = z, .arena = arena, .d = d };
    *z = (Zip){ .from = *from };
    arena_open(&r.scratch, arena->memory);
    const Status status = read_directory(&r);
    arena_close(&r.scratch);
    return status;
}

/* ---- the bytes of a member ---- */

Bytes zip_range(const Zip *z, const ZipMember *m)
{
    return bytes_part(&z->from, m->data, m->packed);
}

static Status check_sum(const Zip *z, const ZipMember *m, Diag *d, uint64_t sum)
{
    const Place place = { .file = z->from.name, .where = arena_printf(d->arena, "member %s", m->name), .byte = -1 };
    return sum == m->crc ? OK
                         : fail(d, place, "is damaged: its checksum is %08" PRIx64 ", not %08" PRIx32, sum, m->crc);
}

Status zip_inflate(const Zip *z, const ZipMember *m, Arena *scratch, Diag *d, void *out)
{
    Inflate i;
    const Bytes range = zip_range(z, m);
    TRY(inflate_open(&i, scratch, d, &range, INFLATE_RAW));
    Status status = inflate_all(&i, out, (size_t)m->size);
    if (status == OK)
        status = inflate_end(&i);
    inflate_close(&i);
    return status == OK ? check_sum(z, m, d, crc32_z(0, out, (size_t)m->size)) : status;
}

Status zip_check(const Zip *z, const ZipMember *m, Arena *scratch, Diag *d)
{
    const Bytes range = zip_range(z, m);
    uint8_t *block = arena_alloc(scratch, INFLATE_BLOCK);
    uint64_t sum = 0;
    for (uint64_t at = 0; at < range.size; at += INFLATE_BLOCK) {
        const size_t n = range.size - at < INFLATE_BLOCK ? (size_t)(range.size - at) : INFLATE_BLOCK;
        TRY(bytes_get(&range, d, at, block, n));
        sum = crc32_z(sum, block, n);
    }
    return check_sum(z, m, d, sum);
}
