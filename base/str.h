/* Strings: views, interned names, distance for "did you mean". */
#ifndef BASE_STR_H
#define BASE_STR_H

#include "base/map.h"

/* Bytes somewhere else; not terminated, may hold NUL. */
typedef struct Str {
    const char *p;
    size_t n;
} Str;

/* printf("%.*s", STR_ARG(s)) */
#define STR_ARG(s) (int)(s).n, (s).p

/* A view of a C string; null gives the empty view. */
Str str(const char *text);

/* Equality by bytes. */
bool str_equal(Str a, Str b);

/* Equality with a C string. */
bool str_is(Str a, const char *text);

/* Whether the bytes are well-formed UTF-8 without NUL. */
bool str_is_utf8(Str s);

/* Edits between two strings, at most `most` + 1: for the nearest known word. */
int str_distance(const char *a, const char *b, int most);

/* The word of `words` nearest to `word` within a third of its length, or null. */
const char *str_nearest(const char *word, const char *const *words, size_t n);

/* Whether a list with spaces between its words has one; none where the list is null. */
bool str_listed(const char *list, const char *word);

/* Names kept once: equal names are equal pointers. */
typedef struct Names {
    Arena *arena;
    Map map;
} Names;

/* An empty set of names in `arena`. */
void names_open(Names *names, Arena *arena);

/* The one copy of the n bytes, NUL-terminated. */
const char *name_of(Names *names, const char *text, size_t n);

#endif
