#include "runtime/checkpoint/option_words.h"

#include <string.h>

#include "base/text.h"

Str option_words_next(const char **line)
{
    const char *p = *line + strspn(*line, " "), *begin = p;
    for (char quote = 0; *p && (quote || p == begin || strncmp(p, " --", 3) != 0); p++)
        if (*p == '\'')
            quote = quote ? 0 : *p;
    *line = p;
    return (Str){ begin, (size_t)(p - begin) };
}

const char *options_without(Arena *arena, const char *options, const char *others)
{
    Text t;
    text_open(&t, arena);
    for (Str one; (one = option_words_next(&options)).n;) {
        bool there = false;
        Str other;
        for (const char *p = others; (other = option_words_next(&p)).n;)
            there |= str_equal(one, other);
        if (!there)
            text_printf(&t, "%s%.*s", t.n ? " " : "", STR_ARG(one));
    }
    return t.n ? text_get(&t) : "";
}
