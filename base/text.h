/* Text under construction. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/arena.h"
#include "base/str.h"

typedef struct Text {
    Arena *arena;
    char *p; /* always NUL-terminated once something was added */
    size_t n, cap;
} Text;

/* An empty text that grows in `arena`. */
void text_open(Text *t, Arena *arena);

/* Makes room for n bytes more, and for no others: for who knows about how many come. */
void text_room(Text *t, size_t n);

/* Appends n bytes. */
void text_bytes(Text *t, const void *bytes, size_t n);

/* Appends a string. */
void text_add(Text *t, const char *text);

/* Appends one character. */
void text_char(Text *t, char c);

/* Appends what printf would print. */
void text_printf(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a line: what printf would print, and a newline. */
void text_linef(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends n bytes between double quotes, everything but printable ASCII and UTF-8 escaped as \n \t \\ \" \xNN. */
void text_quote(Text *t, const char *bytes, size_t n);

/* Appends n bytes as a JSON string; ill-formed UTF-8 is shown as text_escape does. */
void text_json(Text *t, const char *bytes, size_t n);

/* Appends n bytes with control characters and ill-formed UTF-8 as \xNN, at most `most` bytes and then "...". */
void text_escape(Text *t, const char *bytes, size_t n, size_t most);

/* Appends spaces until column `column` of the last line. */
void text_pad(Text *t, size_t column);

/* Appends an integer with thousands separators: 1,234,567. */
void text_count(Text *t, int64_t value);

/* What was built so far. */
const char *text_get(const Text *t);

#endif
