#include "base/bytes.h"
#include "base/nan_text.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void text_open(Text *t, Arena *arena)
{
    *t = (Text){ .arena = arena };
}

static void reserve(Text *t, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(t->n, more, &need) || need >= PTRDIFF_MAX / 2)
        memory_exhausted(t->arena->memory);
    if (need + 1 <= t->cap)
        return;
    size_t cap = t->cap ? t->cap : 128;
    while (cap < need + 1)
        cap *= 2;
    t->p = arena_grow(t->arena, t->p, t->n, cap, 1);
    t->cap = cap;
}

void text_room(Text *t, size_t n)
{
    size_t need;
    if (__builtin_add_overflow(t->n, n, &need) || need >= PTRDIFF_MAX / 2)
        memory_exhausted(t->arena->memory);
    if (need < t->cap)
        return;
    t->p = arena_grow(t->arena, t->p, t->n, need + 1, 1);
    t->cap = need + 1;
}

void text_bytes(Text *t, const void *bytes, size_t n)
{
    reserve(t, n);
    bytes_copy(t->p + t->n, bytes, n);
    t->n += n;
    t->p[t->n] = 0;
}

void text_add(Text *t, const char *text)
{
    text_bytes(t, text, strlen(text));
}

void text_char(Text *t, char c)
{
    text_bytes(t, &c, 1);
}

__attribute__((format(printf, 2, 0))) static void add_vprintf(Text *t, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    char small[256];
    const int n = vsnprintf(small, sizeof small, format, args);
    if (n >= 0 && (size_t)n < sizeof small) {
        text_bytes(t, small, nan_unsign(format, small, (size_t)n));
    } else if (n >= 0) {
        reserve(t, (size_t)n);
        vsnprintf(t->p + t->n, (size_t)n + 1, format, again);
        t->n += nan_unsign(format, t->p + t->n, (size_t)n);
    }
    va_end(again);
}

void text_printf(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_vprintf(t, format, args);
    va_end(args);
}

void text_linef(Text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add_vprintf(t, format, args);
    va_end(args);
    text_char(t, '\n');
}

static size_t printable(const char *p, size_t left)
{
    for (size_t n = 1; n <= 4 && n <= left; n++)
        if (str_is_utf8((Str){ p, n }))
            return n == 1 && ((unsigned char)*p < 0x20 || *p == 0x7f) ? 0 : n;
    return 0;
}

/* C1 controls, direction overrides and zero-width characters deceive a reader: they are shown as bytes too. */
static bool deceives(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    if (n == 2)
        return u[0] == 0xc2 && u[1] < 0xa0;
    if (n != 3)
        return false;
    return (u[0] == 0xe2 && u[1] == 0x80 && ((u[2] >= 0x8b && u[2] <= 0x8f) || (u[2] >= 0xa8 && u[2] <= 0xae))) ||
           (u[0] == 0xe2 && u[1] == 0x81 && u[2] >= 0xa0 && u[2] <= 0xaf) ||
           (u[0] == 0xef && u[1] == 0xbb && u[2] == 0xbf);
}

static void add_escaped(Text *t, const char *p, size_t n, bool quoted)
{
    for (size_t i = 0; i < n;) {
        const size_t k = printable(p + i, n - i);
        if (k && !deceives(p + i, k)) {
            if (quoted && (p[i] == '"' || p[i] == '\\'))
                text_char(t, '\\');
            text_bytes(t, p + i, k);
            i += k;
        } else {
            if (quoted && p[i] == '\n')
                text_add(t, "\\n");
            else if (quoted && p[i] == '\t')
                text_add(t, "\\t");
            else
                text_printf(t, "\\x%02x", (unsigned char)p[i]);
            i++;
        }
    }
}

void text_quote(Text *t, const char *bytes, size_t n)
{
    text_char(t, '"');
    add_escaped(t, bytes, n, true);
    text_char(t, '"');
}

void text_escape(Text *t, const char *bytes, size_t n, size_t most)
{
    add_escaped(t, bytes, n < most ? n : most, false);
    if (n > most)
        text_add(t, "...");
}

void text_json(Text *t, const char *bytes, size_t n)
{
    Str s = { bytes, n };
    if (!str_is_utf8(s)) {
        Text escaped;
        text_open(&escaped, t->arena);
        text_escape(&escaped, bytes, n, SIZE_MAX);
        s = (Str){ escaped.p, escaped.n };
    }
    text_char(t, '"');
    for (size_t i = 0; i < s.n; i++) {
        const unsigned char c = (unsigned char)s.p[i];
        if (c == '"' || c == '\\')
            text_printf(t, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            text_printf(t, "\\u%04x", c);
        else
            text_char(t, s.p[i]);
    }
    text_char(t, '"');
}

void text_pad(Text *t, size_t column)
{
    size_t start = t->n;
    while (start > 0 && t->p[start - 1] != '\n')
        start--;
    while (t->n - start < column)
        text_char(t, ' ');
}

void text_count(Text *t, int64_t value)
{
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%" PRIu64, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    if (value < 0)
        text_char(t, '-');
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text_char(t, ',');
        text_char(t, digits[i]);
    }
}

const char *text_get(const Text *t)
{
    return t->p ? t->p : "";
}
