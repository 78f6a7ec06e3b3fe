#include "base/bytes.h"
#include "base/str.h"

#include <string.h>

Str str(const char *text)
{
    return (Str){ text ? text : "", text ? strlen(text) : 0 };
}

bool str_equal(Str a, Str b)
{
    return a.n == b.n && bytes_equal(a.p, b.p, a.n);
}

bool str_is(Str a, const char *text)
{
    return str_equal(a, str(text));
}

/* Length of the sequence that starts at p, 0 when malformed (overlong forms, surrogates and beyond U+10FFFF too). */
static size_t utf8_sequence(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80)
        return p[0] != 0;
    const size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

bool str_is_utf8(Str s)
{
    for (size_t i = 0; i < s.n;) {
        const size_t n = utf8_sequence((const unsigned char *)s.p + i, s.n - i);
        if (!n)
            return false;
        i += n;
    }
    return true;
}

int str_distance(const char *a, const char *b, int most)
{
    enum { LONGEST = 63 };
    const size_t na = strlen(a), nb = strlen(b);
    int row[LONGEST + 1];

    if (na > LONGEST || nb > LONGEST)
        return strcmp(a, b) == 0 ? 0 : most + 1;
    for (size_t j = 0; j <= nb; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            const int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
        }
    }
    return row[nb] > most ? most + 1 : row[nb];
}

const char *str_nearest(const char *word, const char *const *words, size_t n)
{
    int best = (int)strlen(word) / 3 + 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < n; i++) {
        const int d = str_distance(word, words[i], best);
        if (d < (int)strlen(word) && (d < best || (d == best && !nearest))) { /* something has to be alike */
            best = d;
            nearest = words[i];
        }
    }
    return nearest;
}

void names_open(Names *names, Arena *arena)
{
    names->arena = arena;
    map_open(&names->map, arena);
}

const char *name_of(Names *names, const char *text, size_t n)
{
    MapEntry *e = map_find_n(&names->map, text, n);
    if (!e)
        e = map_put_n(&names->map, arena_copy(names->arena, text, n), n, NULL);
    return e->key;
}

bool str_listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list ? list : ""; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, word, n) == 0)
            return true;
        at += length;
    }
    return false;
}
