#include "frontends/view/quill.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE = 1 << 16, REPLACEMENT = 0xFFFD };

void quill_open(Quill *q, Arena *arena, const Sink *sink)
{
    *q = (Quill){ .sink = sink };
    text_open(&q->text, arena);
}

static void pour(Quill *q)
{
    if (q->text.n && q->status == OK)
        q->status = q->sink->put(q->sink->user, q->text.p, q->text.n);
    q->text.n = 0;
}

Status quill_end(Quill *q)
{
    pour(q);
    return q->status;
}

void quill_rest(Quill *q)
{
    if (q->text.n >= PIECE)
        pour(q);
}

/* The code point at *p, which moves behind it; U+FFFD for a byte that begins none. */
static uint32_t next_point(const char **p)
{
    const unsigned char *s = (const unsigned char *)*p;
    const unsigned char c = s[0];
    const int n = c < 0x80 ? 1 : c >= 0xC2 && c < 0xE0 ? 2 : c >= 0xE0 && c < 0xF0 ? 3 : c >= 0xF0 && c < 0xF5 ? 4 : 0;
    uint32_t point = n == 1 ? c : n == 2 ? c & 0x1Fu : n == 3 ? c & 0x0Fu : c & 0x07u;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80) {
            *p += 1;
            return REPLACEMENT;
        }
        point = point << 6 | (s[i] & 0x3Fu);
    }
    *p += n ? n : 1;
    const bool long_form = (n == 3 && point < 0x800) || (n == 4 && point < 0x10000);
    const bool surrogate = point >= 0xD800 && point < 0xE000;
    return !n || long_form || surrogate || point > 0x10FFFF ? REPLACEMENT : point;
}

static void add_point(Text *t, uint32_t c)
{
    if (c < 0x80) {
        text_char(t, (char)c);
        return;
    }
    char s[4];
    size_t n = 0;
    if (c >= 0x10000)
        s[n++] = (char)(0xF0 | c >> 18);
    if (c >= 0x800)
        s[n++] = (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 0x3F) : 0xE0 | c >> 12);
    s[n++] = (char)(c >= 0x800 ? 0x80 | (c >> 6 & 0x3F) : 0xC0 | c >> 6);
    s[n++] = (char)(0x80 | (c & 0x3F));
    text_bytes(t, s, n);
}

/* Characters that need no care in JSON, in a script, or in HTML. */
static size_t plain_prefix(const char *p)
{
    size_t n = 0;
    while ((unsigned char)p[n] >= 0x20 && (unsigned char)p[n] < 0x7F && !strchr("\"\\<>&'-", p[n]))
        n++;
    return n;
}

void quill_json(Quill *q, const char *p)
{
    Text *t = &q->text;
    text_char(t, '"');
    while (*p) {
        const size_t n = plain_prefix(p);
        text_bytes(t, p, n);
        p += n;
        if (!*p)
            break;
        const uint32_t c = next_point(&p);
        if (c == '"' || c == '\\')
            text_printf(t, "\\%c", (char)c);
        else if (c < 0x20 || c == 0x7F || c == '<' || c == '>' || c == '&' || c == 0x2028 || c == 0x2029)
            text_printf(t, "\\u%04" PRIx32, c);
        else
            add_point(t, c);
    }
    text_char(t, '"');
}

void quill_dot(Quill *q, const char *p)
{
    Text *t = &q->text;
    bool lines = false;
    text_char(t, '"');
    while (*p) {
        const uint32_t c = next_point(&p);
        if (c == '\n') {
            text_add(t, "\\l");
            lines = true;
        } else if (c < 0x20 || c == 0x7F) {
            add_point(t, REPLACEMENT);
        } else {
            if (c == '"' || c == '\\')
                text_char(t, '\\');
            add_point(t, c);
        }
    }
    text_add(t, lines ? "\\l\"" : "\"");
}

/* Columns that a character takes in a fixed-width font, roughly. */
static int width_of(uint32_t c)
{
    const bool wide = (c >= 0x1100 && c < 0x1160) || (c >= 0x2E80 && c < 0xD7A4) || (c >= 0xF900 && c < 0xFB00) ||
                      (c >= 0xFE30 && c < 0xFE70) || (c >= 0xFF00 && c < 0xFF61) || c >= 0x1F300;
    return wide ? 2 : 1;
}

/* Controls, and marks that would turn the direction of the text around, are not let through. */
static uint32_t shown(uint32_t c)
{
    const bool turns = (c >= 0x200E && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xFFFE || c == 0xFFFF;
    return turns || control ? REPLACEMENT : c;
}

static void add_html(Text *t, uint32_t c)
{
    if (c < 0x80 && strchr("\"'<>&-", (int)c))
        text_printf(t, "&#%" PRIu32 ";", c);
    else
        add_point(t, c);
}

static int columns(const char *p)
{
    int n = 0;
    while (*p)
        n += width_of(shown(next_point(&p)));
    return n;
}

void quill_html(Quill *q, const char *p, int most, bool tail)
{
    Text *t = &q->text;
    int left = strlen(p) > (size_t)INT32_MAX / 2 ? INT32_MAX : columns(p);
    const bool cut = left > most;
    if (cut && tail) {
        text_add(t, "\xE2\x80\xA6");
        while (left > most - 1)
            left -= width_of(shown(next_point(&p)));
    }
    int room = cut && !tail ? most - 1 : most;
    while (*p) {
        const size_t n = plain_prefix(p);
        if (n && n <= (size_t)room) {
            text_bytes(t, p, n);
            p += n;
            room -= (int)n;
            continue;
        }
        const uint32_t c = shown(next_point(&p));
        if (width_of(c) > room)
            break;
        room -= width_of(c);
        add_html(t, c);
    }
    if (cut && !tail)
        text_add(t, "\xE2\x80\xA6");
}
