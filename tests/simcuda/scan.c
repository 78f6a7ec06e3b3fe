#include "simcuda/scan.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Scanner {
    const char *at;
    FILE *out;
    Scan *found;
    int depth, inside;               /* of braces; the kernel whose body this is, below 0: none */
    int c_blocks;                    /* of extern "C" that are open */
    bool is_extern, is_c, is_global; /* of the declaration that is read */
    int bounds;
} Scanner;

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The end of a comment or of a string that begins here; `at` itself: neither does. */
static const char *skip_quiet(const char *at)
{
    if (at[0] == '/' && at[1] == '/')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end ? end + 2 : at + strlen(at);
    }
    if (*at != '"' && *at != '\'')
        return at;
    const char *end = at + 1;
    while (*end && *end != *at)
        end += *end == '\\' && end[1] ? 2 : 1;
    return *end ? end + 1 : end;
}

static const char *skip_space(const char *at)
{
    for (;;) {
        const char *next = at;
        while (isspace((unsigned char)*next))
            next++;
        if (*next == '/')
            next = skip_quiet(next);
        if (next == at)
            return at;
        at = next;
    }
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (is_word(at[n]))
        n++;
    return n;
}

static bool word_is(const char *at, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(at, word, n) == 0;
}

static void copy_to(Scanner *s, const char *end)
{
    fwrite(s->at, 1, (size_t)(end - s->at), s->out);
    s->at = end;
}

/* Which of the parameters is the flag of values that refuse. */
static int flag_among(const char *parameters)
{
    static const char flag[] = "u32 *refused";
    const size_t n = strlen(flag);
    int number = 0;
    for (const char *at = parameters; *at && *at != ')'; at++) {
        const bool first = at == parameters || at[-1] == ',' || (at[-1] == ' ' && at[-2] == ',');
        number += *at == ',';
        if (first && strncmp(at, flag, n) == 0)
            return number;
    }
    return -1;
}

static void add_kernel(Scanner *s, const char *name, size_t n, const char *parameters)
{
    Scan *f = s->found;
    f->kernels = realloc(f->kernels, (size_t)(f->n + 1) * sizeof *f->kernels);
    f->kernels[f->n++] = (ScannedKernel){ strndup(name, n), s->bounds, flag_among(parameters) };
}

/* extern __shared__ T name[]; at `word`, which is the __shared__. */
static void dynamic(Scanner *s, const char *word)
{
    const char *type = skip_space(word + strlen("__shared__")), *end = type + strcspn(type, ";[");
    while (strncmp(type, "__align__", 9) == 0 || strncmp(type, "alignas", 7) == 0)
        type = skip_space(type + strcspn(type, ")") + 1);
    const char *name = end;
    while (name > type && !is_word(name[-1]))
        name--;
    const char *name_end = name;
    while (name > type && is_word(name[-1]))
        name--;
    fprintf(s->out, "SIM_DYNAMIC(%.*s, %.*s)", (int)(name - type), type, (int)(name_end - name), name);
    s->at = end + strcspn(end, ";");
}

static void shared(Scanner *s, const char *word)
{
    copy_to(s, word);
    if (s->inside < 0)
        fprintf(s->out, "SIM_SHARED(functions)");
    else
        fprintf(s->out, "SIM_SHARED(%d)", s->inside);
    s->at = word + strlen("__shared__");
}

/* A word of the text; where to go on. */
static const char *read_word(Scanner *s, const char *at)
{
    const size_t n = word_length(at);
    const char *next = skip_space(at + n);
    if (word_is(at, n, "extern")) {
        if (strncmp(next, "__shared__", 10) == 0) {
            copy_to(s, at);
            dynamic(s, next);
            return s->at;
        }
        s->is_extern = true;
        if (strncmp(next, "\"C\"", 3) == 0) {
            s->is_c = true;
            return next + 3;
        }
    } else if (word_is(at, n, "__shared__")) {
        shared(s, at);
        return s->at;
    } else if (word_is(at, n, "__global__")) {
        s->is_global = true;
        s->bounds = 0;
    } else if (word_is(at, n, "__launch_bounds__") && *next == '(') {
        s->bounds = atoi(next + 1);
        return next + strcspn(next, ")");
    } else if (s->is_global && s->depth == 0 && *next == '(' && !word_is(at, n, "__attribute__")) {
        if (s->is_c || s->c_blocks)
            add_kernel(s, at, n, next + 1);
        s->inside = s->is_c || s->c_blocks ? s->found->n - 1 : -1;
        s->is_global = false;
    }
    return at + n;
}

static void end_declaration(Scanner *s)
{
    s->is_extern = s->is_c = s->is_global = false;
    s->inside = -1;
}

static void read_sign(Scanner *s, char c)
{
    if (c == '{' && s->depth == 0 && s->is_c && s->inside < 0 && !s->is_global) {
        s->c_blocks++;
        s->is_c = false;
    } else if (c == '{') {
        s->depth++;
    } else if (c == '}' && s->depth == 0) {
        s->c_blocks -= s->c_blocks > 0;
    } else if (c == '}' && --s->depth == 0) {
        end_declaration(s);
    } else if (c == ';' && s->depth == 0) {
        end_declaration(s);
    }
}

void scan(Scan *found, const char *text)
{
    size_t n;
    *found = (Scan){ .n = 0 };
    Scanner s = { .at = text, .found = found, .inside = -1, .out = open_memstream(&found->text, &n) };
    const char *at = text;
    while (*at) {
        const char *after = skip_quiet(at);
        if (after != at) {
            at = after;
        } else if (is_word(*at) && !isdigit((unsigned char)*at)) {
            at = read_word(&s, at);
        } else if (isdigit((unsigned char)*at)) {
            at += word_length(at);
        } else {
            read_sign(&s, *at++);
        }
    }
    copy_to(&s, at);
    fclose(s.out);
}

void scan_free(Scan *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->kernels[i].name);
    free(s->kernels);
    free(s->text);
}
