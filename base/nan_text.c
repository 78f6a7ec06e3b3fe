#include "base/nan_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Whether a format prints floating numbers. */
static bool has_numbers(const char *format)
{
    for (const char *p = format; (p = strchr(p, '%'));) {
        p++;
        p += strspn(p, "-+ #0123456789.*");
        if (*p && strchr("aAeEfFgG", *p))
            return true;
        p += *p == '%';
    }
    return false;
}

/* A number stands alone: names of files and nodes go on in front of the sign, or behind it. */
static bool is_number(const char *text, const char *at)
{
    const bool begins = at == text || strchr(" \t\n=(:,[|", at[-1]);
    const char next = at[4] == '.' ? at[5] : at[4];
    return begins && !isalnum((unsigned char)next) && next != '_' && next != '-' && next != '/';
}

size_t nan_unsign(const char *format, char *text, size_t n)
{
    char *at = n < 4 ? NULL : strstr(text, "-nan");
    if (!at || !has_numbers(format))
        return n;
    for (; at; at = strstr(at, "-nan")) {
        if (is_number(text, at)) {
            memmove(at, at + 1, n - (size_t)(at - text));
            n--;
        }
        at += 3;
    }
    return n;
}
