#include "passes/recipe/settings.h"

#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "passes/optimizers.def"

static Place place_of(const Settings *s)
{
    return (Place){ .where = s->option, .byte = -1 };
}

/* Bytes up to the next comma outside of brackets. */
static size_t part_length(const char *text)
{
    size_t n = 0;
    for (int depth = 0; text[n] && (depth > 0 || text[n] != ','); n++)
        depth += text[n] == '(' || text[n] == '[' ? 1 : text[n] == ')' || text[n] == ']' ? -1 : 0;
    return n;
}

static Status add_part(Settings *s, const char *text, size_t n)
{
    const char *sign = memchr(text, '=', n);
    if (n == 0 || sign == text)
        return fail_as(s->diag, USAGE, place_of(s), "%s: nothing stands where key=value is wanted", s->kind);
    const size_t key = sign ? (size_t)(sign - text) : n;
    const Setting x = { arena_copy(s->arena, text, key), sign ? arena_copy(s->arena, sign + 1, n - key - 1) : NULL };
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->list[i].key, x.key) == 0)
            return fail_as(s->diag, USAGE, place_of(s), "%s: %s is there twice", s->kind, x.key);
    GROW(s->arena, s->list, s->n, s->cap);
    s->list[s->n++] = x;
    return OK;
}

Status settings_read_list(Settings *s, Diag *diag, Arena *arena, const char *option, const char *kind, const char *list)
{
    *s = (Settings){ .option = option, .kind = kind, .arena = arena, .diag = diag };
    while (list) {
        const size_t n = part_length(list);
        TRY(add_part(s, list, n));
        list = list[n] ? list + n + 1 : NULL;
    }
    return OK;
}

Status settings_read(Settings *s, Diag *diag, Arena *arena, const char *option, const char *text)
{
    const char *colon = strchr(text, ':');
    const char *kind = arena_copy(arena, text, colon ? (size_t)(colon - text) : strlen(text));
    return settings_read_list(s, diag, arena, option, kind, colon ? colon + 1 : NULL);
}

int settings_kind(const Settings *s, const char *what, size_t n, const char *const *words)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], s->kind) == 0)
            return (int)i;
    const char *nearest = str_nearest(s->kind, words, n);
    Message *m = message_new(s->diag, SEVERITY_ERROR, USAGE, (Place){ .where = s->option, .byte = -1 },
                             "no %s is called %s", what, s->kind);
    Text all;
    text_open(&all, s->arena);
    for (size_t i = 0; i < n; i++)
        text_printf(&all, "%s%s", i ? ", " : "", words[i]);
    message_try(m, "%s", nearest ? nearest : text_get(&all));
    (void)message_send(m);
    return -1;
}

Status setting_unknown(const Settings *s, const Setting *x, size_t n, const char *const *known)
{
    const char *nearest = str_nearest(x->key, known, n);
    Message *m = message_new(s->diag, SEVERITY_ERROR, USAGE, place_of(s), "%s has no setting %s", s->kind, x->key);
    if (nearest)
        message_try(m, "%s", nearest);
    else {
        Text list;
        text_open(&list, s->arena);
        for (size_t i = 0; i < n; i++)
            text_printf(&list, "%s%s", i ? ", " : "", known[i]);
        message_try(m, "%s", text_get(&list));
    }
    return message_send(m);
}

Status setting_fail(const Settings *s, const Setting *x, const char *wanted)
{
    return fail_as(s->diag, USAGE, place_of(s), "%s%s%s is '%s', wanted is %s", s->kind ? s->kind : "",
                   s->kind ? ": " : "", x->key, x->value ? x->value : "", wanted);
}

Status setting_real(const Settings *s, const Setting *x, double least, double below, double *out)
{
    double v;
    if (!x->value || !f64_from_text(x->value, strlen(x->value), &v) || !(v >= least && v < below)) {
        char from[NUMBER_TEXT], to[NUMBER_TEXT];
        f64_to_text(from, least);
        f64_to_text(to, below);
        return setting_fail(s, x,
                            isinf(below) ? arena_printf(s->arena, "a number, %s or more", from)
                                         : arena_printf(s->arena, "a number from %s to below %s", from, to));
    }
    *out = v;
    return OK;
}

Status setting_count(const Settings *s, const Setting *x, int64_t *out)
{
    if (!x->value || !i64_from_text(x->value, strlen(x->value), out) || *out < 0)
        return setting_fail(s, x, "a count, 0 or more");
    return OK;
}

Status setting_bool(const Settings *s, const Setting *x, bool *out)
{
    const char *v = x->value ? x->value : "true";
    *out = strcmp(v, "true") == 0 || strcmp(v, "True") == 0 || strcmp(v, "1") == 0;
    if (*out || strcmp(v, "false") == 0 || strcmp(v, "False") == 0 || strcmp(v, "0") == 0)
        return OK;
    return setting_fail(s, x, "true or false");
}

/* ---- spellings ---- */

static const struct {
    const char *theirs, *ours;
} spellings[] = {
#define SPELLING(theirs, ours) { #theirs, #ours },
    SPELLINGS(SPELLING)
#undef SPELLING
};

const char *setting_ours(const char *key)
{
    for (size_t i = 0; i < COUNT(spellings); i++)
        if (strcmp(spellings[i].theirs, key) == 0)
            return spellings[i].ours;
    return key;
}

bool setting_spelling(size_t i, const char **theirs, const char **ours)
{
    if (i >= COUNT(spellings))
        return false;
    *theirs = spellings[i].theirs;
    *ours = spellings[i].ours;
    return true;
}
