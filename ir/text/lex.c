#include "ir/text/lex.h"

#include <inttypes.h>
#include <string.h>

void lexer_open(Lexer *l, Arena *arena, Diag *diag, const Limits *limits, Str text, const char *file)
{
    *l = (Lexer){ .arena = arena, .diag = diag, .limits = limits, .file = file, .text = text, .at = text.p, .line = 1 };
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_inner(char c)
{
    return is_letter(c) || is_digit(c) || c == '.';
}

bool lex_is_word(const char *name, size_t n)
{
    if (!n || !is_letter(name[0]))
        return false;
    for (size_t i = 1; i < n; i++)
        if (!is_inner(name[i]))
            return false;
    return true;
}

/* Columns count characters, not bytes: the caret stands under what the reader sees. */
Place text_place(Arena *arena, Str text, const char *file, const char *at, int line)
{
    enum { WIDEST = 300 };
    const char *start = at, *end = at, *stop = text.p + text.n;
    int column = 1;
    while (start > text.p && start[-1] != '\n')
        start--;
    for (const char *p = start; p < at; p++)
        column += ((unsigned char)*p & 0xc0) != 0x80;
    while (end < stop && *end != '\n' && end - start < WIDEST)
        end++;
    while (end > start && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    return (Place){ .file = file,
                    .byte = -1,
                    .line = line,
                    .column = column,
                    .source = at - start < WIDEST ? arena_copy(arena, start, (size_t)(end - start)) : NULL };
}

static Place here(const Lexer *l)
{
    return text_place(l->arena, l->text, l->file, l->at, l->line);
}

static size_t left(const Lexer *l)
{
    return (size_t)(l->text.p + l->text.n - l->at);
}

static char peek(const Lexer *l, size_t i)
{
    return i < left(l) ? l->at[i] : 0;
}

static void skip_blanks(Lexer *l)
{
    for (; left(l); l->at++) {
        const char c = *l->at;
        if (c == '#') {
            const char *end = memchr(l->at, '\n', left(l));
            l->at = end ? end : l->text.p + l->text.n;
            if (!end)
                return;
        } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
            return;
        }
        l->line += *l->at == '\n';
    }
}

static size_t run_of_inner(const Lexer *l, size_t from)
{
    size_t n = from;
    while (is_inner(peek(l, n)))
        n++;
    return n;
}

static Status too_long(Lexer *l, size_t n, int64_t limit, const char *name)
{
    return fail(l->diag, here(l), "%zu bytes, more than %" PRId64 " (limit %s)", n, limit, name);
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One escape behind a backslash at l->at[i]: its length, 0 when there is none of that kind. */
static size_t escape(const Lexer *l, size_t i, char *out)
{
    static const char plain[] = "n\nt\t\"\"\\\\";
    for (const char *p = plain; *p; p += 2) {
        if (peek(l, i + 1) == *p) {
            *out = p[1];
            return 2;
        }
    }
    const int high = hex_digit(peek(l, i + 2)), low = high < 0 ? -1 : hex_digit(peek(l, i + 3));
    if (peek(l, i + 1) != 'x' || low < 0 || high * 16 + low == 0)
        return 0;
    *out = (char)(high * 16 + low);
    return 4;
}

/* The end of a string whose quote is at l->at[from]. */
static Status string_end(Lexer *l, size_t from, size_t *end)
{
    size_t i = from + 1;
    while (i < left(l) && l->at[i] != '"' && l->at[i] != '\n')
        i += l->at[i] == '\\' ? 2 : 1;
    if (peek(l, i) != '"')
        return fail(l->diag, here(l), "the string has no end on this line");
    *end = i + 1;
    return OK;
}

static Status string(Lexer *l, size_t from, int64_t limit, const char *name, Token *t)
{
    TRY(string_end(l, from, &t->n));
    char *out = arena_alloc(l->arena, t->n - from);
    size_t n = 0;
    for (size_t i = from + 1; i + 1 < t->n;) {
        if (l->at[i] == '\\') {
            const size_t k = escape(l, i, &out[n]);
            if (!k) {
                l->at += i;
                return fail(l->diag, here(l),
                            "no escape of that kind: there are \\n \\t \\\\ \\\" and \\xNN (not \\x00)");
            }
            i += k;
            n++;
        } else {
            out[n++] = l->at[i++];
        }
    }
    t->text = (Str){ out, n };
    if ((int64_t)n > limit)
        return too_long(l, n, limit, name);
    if (memchr(out, 0, n))
        return fail(l->diag, here(l), "the string holds a zero byte");
    return OK;
}

static Status value(Lexer *l, Token *t)
{
    t->kind = TOKEN_VALUE;
    if (peek(l, 1) == '"')
        return string(l, 1, l->limits->name_bytes, "name_bytes", t);
    t->n = run_of_inner(l, 1);
    t->text = (Str){ l->at + 1, t->n - 1 };
    if (lex_is_word(t->text.p, t->text.n))
        return (int64_t)t->text.n > l->limits->name_bytes ? too_long(l, t->text.n, l->limits->name_bytes, "name_bytes")
                                                          : OK;
    t->kind = TOKEN_NUMBERED;
    for (size_t i = 0; i < t->text.n; i++)
        if (!is_digit(t->text.p[i]) || t->text.n > 18)
            return fail(l->diag, here(l), "a name that starts with a digit is written in quotes");
    for (size_t i = 0; i < t->text.n; i++)
        t->number = t->number * 10 + (uint64_t)(t->text.p[i] - '0');
    return t->text.n ? OK : fail(l->diag, here(l), "%% without a name");
}

static Status name(Lexer *l, Token *t)
{
    t->kind = TOKEN_NAME;
    if (peek(l, 1) == '"')
        return string(l, 1, l->limits->name_bytes, "name_bytes", t);
    t->n = run_of_inner(l, 1);
    t->text = (Str){ l->at + 1, t->n - 1 };
    if (!lex_is_word(t->text.p, t->text.n))
        return fail(l->diag, here(l), "@ without a name");
    if ((int64_t)t->text.n > l->limits->name_bytes)
        return too_long(l, t->text.n, l->limits->name_bytes, "name_bytes");
    return OK;
}

/* A sign of an exponent belongs to the number; what the digits mean is decided where a type is known. */
static Status number(Lexer *l, Token *t)
{
    t->kind = TOKEN_NUMBER;
    size_t n = peek(l, 0) == '-' ? 1 : 0;
    const bool hex = peek(l, n) == '0' && peek(l, n + 1) == 'x';
    while (is_inner(peek(l, n)) ||
           (!hex && (peek(l, n) == '+' || peek(l, n) == '-') && n && (l->at[n - 1] == 'e' || l->at[n - 1] == 'E')))
        n++;
    t->n = n;
    t->text = (Str){ l->at, n };
    return OK;
}

static Status word(Lexer *l, Token *t)
{
    t->kind = TOKEN_WORD;
    t->n = run_of_inner(l, 0);
    t->text = (Str){ l->at, t->n };
    if (!str_is(t->text, "hex") || peek(l, 3) != '"')
        return (int64_t)t->n > l->limits->op_bytes ? too_long(l, t->n, l->limits->op_bytes, "op_bytes") : OK;
    t->kind = TOKEN_HEX;
    TRY(string_end(l, 3, &t->n));
    t->text = (Str){ l->at + 4, t->n - 5 };
    for (size_t i = 0; i < t->text.n; i++)
        if (hex_digit(t->text.p[i]) < 0)
            return fail(l->diag, here(l), "hex digits come in pairs of 0-9 and a-f");
    return t->text.n % 2 ? fail(l->diag, here(l), "an odd number of hex digits") : OK;
}

static Status sign(Lexer *l, Token *t)
{
    const unsigned char c = (unsigned char)*l->at;
    t->kind = TOKEN_SIGN;
    t->sign = (char)c;
    t->n = 1;
    t->text = (Str){ l->at, 1 };
    if (c && strchr("(){}[],:=!?*", c))
        return OK;
    if (c > 0x20 && c < 0x7f)
        return fail(l->diag, here(l), "a stray '%c'", c);
    return fail(l->diag, here(l), "a stray byte 0x%02x", c);
}

static Status read_token(Lexer *l, Token *t)
{
    const char c = peek(l, 0), second = peek(l, 1);
    if (c == '%')
        return value(l, t);
    if (c == '@')
        return name(l, t);
    if (c == '"') {
        t->kind = TOKEN_STRING;
        return string(l, 0, l->limits->string_bytes, "string_bytes", t);
    }
    if (c == '-' && second == '>') {
        t->kind = TOKEN_ARROW;
        t->n = 2;
        t->text = (Str){ l->at, 2 };
        return OK;
    }
    if (is_digit(c) || (c == '-' && is_inner(second)))
        return number(l, t);
    return is_letter(c) ? word(l, t) : sign(l, t);
}

Status lexer_next(Lexer *l, Token *t)
{
    skip_blanks(l);
    *t = (Token){ .at = l->at, .line = l->line };
    if (!left(l))
        return OK;
    TRY(read_token(l, t));
    l->at += t->n;
    return OK;
}
