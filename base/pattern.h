/* Patterns: whether a text holds what an expression describes.  The expressions are POSIX's extended ones, without
 * what names a locale's letters:
 *
 *     abc  .  [a-z_]  [^0-9]  [[:alpha:]]  ( )  |  *  +  ?  {2}  {2,}  {,3}  {2,3}  ^  $  \.
 *
 * and \d \w \s, \D \W \S as most other languages have them.  A backslash makes a sign stand for itself, inside of
 * brackets too.  ^ and $ are the ends of the text wherever they stand.  A character is one of UTF-8, so . and brackets
 * take it whole; a byte that is part of none is one by itself.  The classes of brackets hold ASCII alone.
 *
 * A pattern is a list of states, whose number is bounded; a text is read once, character by character, and each costs at
 * most as many steps as there are states, usually one.  Nothing is allocated after pattern_read(). */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include "base/arena.h"

typedef struct TextPattern TextPattern;

/* What is wrong with an expression. */
typedef struct PatternFault {
    const char *what;
    const char *instead; /* what to write; null: nothing is known */
    size_t at;           /* the byte where it is wrong */
    bool is_large;       /* nothing is wrong but the number of states */
} PatternFault;

/* Reads an expression into the arena; null, and the fault, where it is none or has more than `most` states. */
TextPattern *pattern_read(Arena *a, const char *text, int64_t most, PatternFault *fault);

/* Whether it is found anywhere in a text. */
bool pattern_finds(TextPattern *p, const char *text);

/* The expression that finds this text alone, as one word of a table's line: a sign that such a line or an option reads for
 * itself (a space, a bracket, # = ") is any character. */
const char *pattern_exact(Arena *a, const char *text);

#endif
