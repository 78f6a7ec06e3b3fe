#include <inttypes.h>
#include <string.h>

#include "api/context.h"
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
