#include "runtime/write/zip.h"

#include <string.h>
#include <zlib.h>

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END_64 = 0x06064b50, LOCATOR_64 = 0x07064b50 };
enum { VERSION = 20, VERSION_64 = 45, UNIX = 3 << 8, UTF8 = 1 << 11, EXTRA_64 = 1, DAY = 1 << 5 | 1 /* 1980-01-01 */ };
enum { READABLE = 0100644 };
static const uint64_t narrow = UINT32_MAX;

static void little(Text *t, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        text_char(t, (char)(v >> 8 * i));
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- size and checksum ---- */

typedef struct Measure {
    uint64_t size;
    unsigned long crc;
} Measure;

static Status measure(void *user, const void *bytes, size_t n)
{
    Measure *m = user;
    m->crc = crc32_z(m->crc, bytes, n);
    m->size += n;
    return OK;
}

/* ---- entries ---- */

/* What the local header and the directory say alike. */
static void add_common(Text *t, const char *name, const Measure *m, bool wide, size_t extra)
{
    bool plain = true;
    for (const char *p = name; *p; p++)
        plain = plain && (unsigned char)*p < 0x80;
    little(t, wide ? VERSION_64 : VERSION, 2);
    little(t, plain ? 0 : UTF8, 2);
    little(t, 0, 2); /* stored */
    little(t, 0, 2); /* midnight */
    little(t, DAY, 2);
    little(t, m->crc, 4);
    little(t, least(m->size, narrow), 4);
    little(t, least(m->size, narrow), 4);
    little(t, strlen(name), 2);
    little(t, extra, 2);
}

static void add_local(Text *t, const char *name, const Measure *m)
{
    const bool wide = m->size >= narrow;
    little(t, LOCAL, 4);
    add_common(t, name, m, wide, wide ? 20 : 0);
    text_add(t, name);
    if (wide) {
        little(t, EXTRA_64, 2);
        little(t, 16, 2);
        little(t, m->size, 8);
        little(t, m->size, 8);
    }
}

static void add_central(Text *t, const char *name, const Measure *m, uint64_t at)
{
    const bool big = m->size >= narrow, far = at >= narrow;
    const size_t values = (big ? 16 : 0) + (far ? 8 : 0);
    little(t, CENTRAL, 4);
    little(t, UNIX | VERSION_64, 2);
    add_common(t, name, m, big || far, values ? values + 4 : 0);
    little(t, 0, 2 + 2 + 2); /* no comment, disk 0, binary */
    little(t, (uint64_t)READABLE << 16, 4);
    little(t, least(at, narrow), 4);
    text_add(t, name);
    if (!values)
        return;
    little(t, EXTRA_64, 2);
    little(t, values, 2);
    little(t, m->size, big ? 8 : 0);
    little(t, m->size, big ? 8 : 0);
    little(t, at, far ? 8 : 0);
}

static Status count(void *user, const void *bytes, size_t n)
{
    ZipWriter *z = user;
    z->at += n;
    return z->to.put(z->to.user, bytes, n);
}

void zip_begin(ZipWriter *z, Arena *arena, Sink to, uint64_t at)
{
    *z = (ZipWriter){ .to = to, .at = at };
    text_open(&z->directory, arena);
}

Status zip_add(ZipWriter *z, const char *name, ZipContent content, void *user)
{
    Text local;
    Measure m = { 0, crc32_z(0, NULL, 0) };
    const uint64_t at = z->at;
    TRY(content(user, (Sink){ measure, &m }));
    text_open(&local, z->directory.arena);
    add_local(&local, name, &m);
    TRY(count(z, local.p, local.n));
    const uint64_t begin = z->at;
    TRY(content(user, (Sink){ count, z }));
    BUG_IF(z->directory.arena->memory, z->at - begin != m.size);
    add_central(&z->directory, name, &m, at);
    z->n++;
    return OK;
}

Status zip_end(ZipWriter *z)
{
    const uint64_t at = z->at, size = z->directory.n;
    const bool wide = at >= narrow || size >= narrow || z->n >= UINT16_MAX;
    Text *t = &z->directory;
    if (wide) {
        little(t, END_64, 4);
        little(t, 44, 8); /* what follows of this record */
        little(t, UNIX | VERSION_64, 2);
        little(t, VERSION_64, 2);
        little(t, 0, 8); /* disks */
        little(t, z->n, 8);
        little(t, z->n, 8);
        little(t, size, 8);
        little(t, at, 8);
        little(t, LOCATOR_64, 4);
        little(t, 0, 4);
        little(t, at + size, 8);
        little(t, 1, 4);
    }
    little(t, END, 4);
    little(t, 0, 4);
    little(t, least(z->n, UINT16_MAX), 2);
    little(t, least(z->n, UINT16_MAX), 2);
    little(t, least(size, narrow), 4);
    little(t, least(at, narrow), 4);
    little(t, 0, 2);
    return count(z, t->p, t->n);
}
