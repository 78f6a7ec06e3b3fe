/* Lists as options have them: `kind:key=value,key=value`.  Commas inside brackets do not separate. */
#ifndef PASSES_RECIPE_SETTINGS_H
#define PASSES_RECIPE_SETTINGS_H

#include "base/diag.h"
#include "base/str.h"

typedef struct Setting {
    const char *key; /* empty: a value without one */
    const char *value;
} Setting;

typedef struct Settings {
    const char *option; /* for messages: "--optimizer" */
    const char *kind;   /* null: the option takes one value */
    Setting *list;
    size_t n, cap;
    Arena *arena;
    Diag *diag;
} Settings;

/* Takes `text` apart; USAGE when a part is empty or a key comes twice. */
Status settings_read(Settings *s, Diag *diag, Arena *arena, const char *option, const char *text);

/* The same of the part behind the kind alone. */
Status settings_read_list(Settings *s, Diag *diag, Arena *arena, const char *option, const char *kind,
                          const char *list);

/* The place of the kind in a list of words; -1 after a report with the nearest of them, `what` being what they are. */
int settings_kind(const Settings *s, const char *what, size_t n, const char *const *words);

/* Reports that a key is not known, with the nearest of those that are: USAGE. */
Status setting_unknown(const Settings *s, const Setting *x, size_t n, const char *const *known);

/* The number of a setting, at least `least` and below `below`: USAGE when it is none. */
Status setting_real(const Settings *s, const Setting *x, double least, double below, double *out);

/* The integer of a setting, 0 or more. */
Status setting_count(const Settings *s, const Setting *x, int64_t *out);

/* true or false, 1 or 0, or nothing, which is true. */
Status setting_bool(const Settings *s, const Setting *x, bool *out);

/* What we call a setting that others call `key`. */
const char *setting_ours(const char *key);

/* What others call a setting, by number; false behind the last one. */
bool setting_spelling(size_t i, const char **theirs, const char **ours);

/* Reports what is wrong with a setting: USAGE. */
Status setting_fail(const Settings *s, const Setting *x, const char *wanted);

#endif
