#include <inttypes.h>
#include <string.h>

#include "api/hall/context.h"
#include "base/number_text.h"

/* clang-format off */
static const struct { const char *name; size_t offset; } fields[] = {
#define FIELD(name, value, what) { #name, offsetof(Limits, name) },
    LIMITS(FIELD)
#undef FIELD
};
/* clang-format on */

static Status unknown_limit(Diag *d, Place place, Str name)
{
    const char *words[COUNT(fields)], *wanted = arena_copy(d->arena, name.p, name.n);
    for (size_t i = 0; i < COUNT(fields); i++)
        words[i] = fields[i].name;
    const char *near = str_nearest(wanted, words, COUNT(words));
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, place, "no limit is called %s", wanted);
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

static Str trimmed(Str s)
{
    while (s.n && strchr(" \t\r", s.p[0]))
        s = (Str){ s.p + 1, s.n - 1 };
    while (s.n && strchr(" \t\r", s.p[s.n - 1]))
        s.n--;
    return s;
}

static Status read_pair(Diag *d, Place place, Str pair, Limits *limits)
{
    const char *equals = memchr(pair.p, '=', pair.n);
    const Str name = trimmed((Str){ pair.p, equals ? (size_t)(equals - pair.p) : pair.n });
    const Str value = equals ? trimmed((Str){ equals + 1, (size_t)(pair.p + pair.n - equals - 1) }) : str("");
    size_t i = 0;
    while (i < COUNT(fields) && !str_is(name, fields[i].name))
        i++;
    if (i == COUNT(fields))
        return unknown_limit(d, place, name);
    int64_t n;
    if (!i64_from_text(value.p, value.n, &n) || n < 0)
        return fail_as(d, USAGE, place, "limit %s wants a number that is not negative: got '%.*s'", fields[i].name,
                       STR_ARG(value));
    memcpy((char *)limits + fields[i].offset, &n, sizeof n);
    return OK;
}

Status limits_read(Diag *d, Place place, Str text, Limits *limits)
{
    while (text.n) {
        size_t n = 0;
        while (n < text.n && text.p[n] != ',' && text.p[n] != '\n')
            n++;
        const Str pair = trimmed((Str){ text.p, n });
        if (pair.n && pair.p[0] != '#')
            TRY(read_pair(d, place, pair, limits));
        n += n < text.n;
        text = (Str){ text.p + n, text.n - n };
    }
    return OK;
}

/* ---- memory ---- */

static bool unit_of(const char *unit, double *bytes)
{
    static const struct {
        const char *word;
        double bytes;
    } units[] = { { "", 1 },     { "K", 1e3 },  { "M", 1e6 },      { "G", 1e9 },      { "T", 1e12 },
                  { "kB", 1e3 }, { "MB", 1e6 }, { "GB", 1e9 },     { "TB", 1e12 },    { "KB", 1e3 },
                  { "k", 1e3 },  { "g", 1e9 },  { "KiB", 0x1p10 }, { "MiB", 0x1p20 }, { "GiB", 0x1p30 },
                  { "m", 1e6 },  { "t", 1e12 }, { "TiB", 0x1p40 } };
    for (size_t i = 0; i < COUNT(units); i++)
        if (strcmp(units[i].word, unit) == 0) {
            *bytes = units[i].bytes;
            return true;
        }
    return false;
}

Status memory_size_read(Diag *d, const char *option, const char *text, uint64_t machine, uint64_t *bytes)
{
    double x, unit;
    const size_t n = f64_read(text, strlen(text), &x);
    const bool part = n && strcmp(text + n, "%") == 0;
    if (strcmp(text, "none") == 0) {
        *bytes = 0;
        return OK;
    }
    if (part && x > 0 && x <= 100) {
        *bytes = (uint64_t)((double)machine * x / 100);
        return OK;
    }
    if (!n || part || !(x > 0) || !unit_of(text + n, &unit) || x * unit < 1 || x * unit >= 0x1p63)
        return fail_as(d, USAGE, (Place){ .where = option, .byte = -1 },
                       "wants a size like 12G or 800MB, a part like 80%%, or none: got '%s'", text);
    *bytes = (uint64_t)(x * unit);
    return OK;
}
