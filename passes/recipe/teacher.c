#include "passes/recipe/teacher.h"

#include <math.h>
#include <string.h>

#include "base/number_text.h"
#include "passes/recipe/settings.h"

static const char *const known[] = { "temperature", "weight", "output" };

/* The colon before settings, which a word and = follow: names of files have colons, too. */
static const char *colon_of(const char *text)
{
    for (const char *p = strchr(text, ':'); p; p = strchr(p + 1, ':')) {
        const size_t n = strspn(p + 1, "abcdefghijklmnopqrstuvwxyz_");
        if (n && p[1 + n] == '=')
            return p;
    }
    return NULL;
}

static const char *name_of_file(Arena *arena, const char *text)
{
    const char *colon = colon_of(text);
    return arena_copy(arena, text, colon ? (size_t)(colon - text) : strlen(text));
}

const char *teacher_file(Arena *arena, const char *text)
{
    const char *file = name_of_file(arena, text);
    return strcmp(file, TEACHER_SELF) == 0 ? NULL : file;
}

static Status read_setting(Teacher *t, const Settings *s, const Setting *x)
{
    if (strcmp(x->key, "temperature") == 0)
        return setting_real(s, x, 1e-3, INFINITY, &t->temperature);
    if (strcmp(x->key, "weight") == 0) {
        TRY(setting_real(s, x, 0, INFINITY, &t->weight));
        return t->weight > 0 && t->weight <= 1 ? OK : setting_fail(s, x, "a number above 0, at most 1");
    }
    if (strcmp(x->key, "output") != 0)
        return setting_unknown(s, x, COUNT(known), known);
    t->output = x->value;
    return x->value && x->value[0] ? OK : setting_fail(s, x, "the name of an output");
}

Status teacher_read(Teacher *t, const char *text, Arena *arena, Diag *diag)
{
    Settings s;
    const char *colon = colon_of(text);
    *t = (Teacher){ .file = name_of_file(arena, text), .temperature = 4, .weight = 0.5 };
    if (!t->file[0])
        return fail_as(diag, USAGE, (Place){ .where = "--teacher", .byte = -1 }, "which file? (FILE, or self)");
    TRY(settings_read_list(&s, diag, arena, "--teacher", t->file, colon ? colon + 1 : NULL));
    for (size_t i = 0; i < s.n; i++)
        TRY(read_setting(t, &s, &s.list[i]));
    return OK;
}

const char *teacher_text(Arena *arena, const Teacher *t)
{
    char temperature[NUMBER_TEXT], weight[NUMBER_TEXT];
    f64_to_text(temperature, t->temperature);
    f64_to_text(weight, t->weight);
    return arena_printf(arena, "%s:temperature=%s,weight=%s%s%s", t->file, temperature, weight,
                        t->output ? ",output=" : "", t->output ? t->output : "");
}
