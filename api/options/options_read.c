#include <string.h>

#include "api/options/options.h"
#include "base/file.h"

typedef struct Reader {
    Diag *d;
    Arena *arena;
    int n, at;
    const char *const *words;
    CommandLine *line;
    const char *who; /* "qcc", or a call of the library */
} Reader;

static Place place_of(const Reader *r, const char *where)
{
    return (Place){ .file = r->who, .where = where, .byte = -1 };
}

/* clang-format off */
static const struct { const char *theirs, *ours; } synonyms[] = {
#define SYNONYM(theirs, ours) { theirs, ours },
#include "api/options/synonyms.def"
#undef SYNONYM
};
/* clang-format on */

/* What others mean by a word: one of ours written with _, or another word of theirs; null: nobody says so. */
static const char *meant_by(Arena *arena, const char *name)
{
    char *dashed = arena_string(arena, name);
    for (char *p = dashed; *p; p++)
        *p = *p == '_' ? '-' : *p;
    for (int i = 0; i < OPT_COUNT; i++)
        if (strcmp(option_specs[i].name, dashed) == 0)
            return option_specs[i].name;
    for (size_t i = 0; i < COUNT(synonyms); i++)
        if (strcmp(synonyms[i].theirs, dashed) == 0)
            return synonyms[i].ours;
    return NULL;
}

static Status unknown_option(Reader *r, const char *name)
{
    const char *names[OPT_COUNT];
    const char *near = meant_by(r->d->arena, name);
    if (!near && name[1] == '-')
        near = str_nearest(name, names, option_names(names));
    Message *m = message_new(r->d, SEVERITY_ERROR, USAGE, place_of(r, name), "is no option");
    message_try(m, "%s", near ? near : "qcc --help");
    return message_send(m);
}

/* The option that a word begins with: *value is what follows in the same word (after = or glued to a letter). */
static bool find_option(Reader *r, const char *word, Option *option, const char **name, const char **value)
{
    const bool is_long = word[1] == '-';
    const size_t n = is_long ? strcspn(word, "=") : 2;
    *name = strcmp(word, "-h") == 0 ? option_specs[OPT_help].name : arena_copy(r->arena, word, n);
    *value = word[n] ? word + n + is_long : NULL;
    for (int i = 0; i < OPT_COUNT; i++)
        if (strcmp(option_specs[i].name, *name) == 0) {
            *option = (Option)i;
            return true;
        }
    return false;
}

static Status read_option(Reader *r, const char *word)
{
    Option option;
    const char *name, *value;
    if (strcmp(word, "-vv") == 0) {
        option_add(r->arena, r->line, OPT_verbose, NULL);
        word = "-v";
    }
    if (!find_option(r, word, &option, &name, &value))
        return unknown_option(r, name);
    const OptionSpec *o = &option_specs[option];
    if (o->kind == ARG_FLAG && value)
        return fail_as(r->d, USAGE, place_of(r, name), "takes no value: got '%s'", value);
    if (o->kind != ARG_FLAG && !option_may_lack(o) && !value) {
        if (r->at == r->n)
            return fail_as(r->d, USAGE, place_of(r, name), "wants %s", o->form);
        value = r->words[r->at++];
    }
    if (value)
        TRY(option_check(r->d, place_of(r, NULL), o, value));
    option_add(r->arena, r->line, option, value);
    return OK;
}

/* help [VERB|TOPIC], and doctor: words that say what options do. */
static bool read_word(Reader *r, const char *word)
{
    CommandLine *l = r->line;
    if (file_exists(word) || l->verb_said || l->n_paths)
        return false;
    if (strcmp(word, "doctor") == 0) {
        option_add(r->arena, l, OPT_version, NULL);
        option_add(r->arena, l, OPT_verbose, NULL);
        return true;
    }
    const bool asks = l->n_given && l->given[l->n_given - 1].option == OPT_help && !l->given[l->n_given - 1].value;
    if (asks && option_is_choice(&option_specs[OPT_help], word)) {
        l->given[l->n_given - 1].value = word;
        return true;
    }
    if (strcmp(word, "help") != 0)
        return false;
    option_add(r->arena, l, OPT_help, NULL);
    return true;
}

static void read_path(Reader *r, const char *word)
{
    CommandLine *l = r->line;
    if (read_word(r, word))
        return;
    if (!l->verb_said && !l->n_paths) {
        for (int v = 0; v < VERB_COUNT; v++)
            if (strcmp(word, verb_name((Verb)v)) == 0) {
                l->verb = (Verb)v;
                l->verb_said = true;
                return;
            }
    }
    GROW(r->arena, l->paths, l->n_paths, l->cap_paths);
    l->paths[l->n_paths++] = word;
}

static Status check_capability(Reader *r, const OptionSpec *o)
{
    if (o->needs == NEEDS_NOW)
        return OK;
    Message *m;
    if (o->needs == NEEDS_QCC_OPT) {
        m = message_new(r->d, SEVERITY_ERROR, USAGE, place_of(r, o->name), "is an option of qcc_opt");
        message_try(m, "qcc_opt --help");
    } else {
        m = message_new(r->d, SEVERITY_ERROR, USAGE, place_of(r, o->name), "this build has no %s yet",
                        capability_name(o->needs));
        message_try(m, "qcc --help; options marked * are not in this build");
    }
    return message_send(m);
}

static Status check_option(Reader *r, const Given *given)
{
    const OptionSpec *o = &option_specs[given->option];
    const CommandLine *l = r->line;
    if (!(o->verbs & 1u << l->verb)) {
        Message *m =
            message_new(r->d, SEVERITY_ERROR, USAGE, place_of(r, o->name), "does not apply to %s", verb_name(l->verb));
        if (given->option == OPT_output)
            message_try(m, "-o FILE");
        for (int v = 0; v < VERB_COUNT; v++)
            if (o->verbs & 1u << v)
                message_try(m, "qcc %s .. %s%s%s", verb_name((Verb)v), o->name, *o->form ? " " : "", o->form);
        return message_send(m);
    }
    return check_capability(r, o);
}

Status options_read(Diag *d, Arena *arena, int n, const char *const *words, CommandLine *line)
{
    Reader r = { .d = d, .arena = arena, .n = n, .words = words, .line = line, .who = "qcc" };
    bool only_paths = false;
    *line = (CommandLine){ 0 };
    while (r.at < n) {
        const char *word = words[r.at++];
        if (!only_paths && strcmp(word, "--") == 0)
            only_paths = true;
        else if (!only_paths && word[0] == '-' && word[1])
            TRY(read_option(&r, word));
        else
            read_path(&r, word);
    }
    if (option_text(line, OPT_config)) { /* the file's options first, so that those of the line win */
        CommandLine both = *line;
        both.given = NULL;
        both.n_given = both.cap_given = 0;
        TRY(config_read(d, arena, option_text(line, OPT_config), &both));
        for (size_t i = 0; i < line->n_given; i++)
            option_add(arena, &both, line->given[i].option, line->given[i].value);
        *line = both;
    }
    if (option_given(line, OPT_export_))
        line->verb = VERB_export;
    return OK;
}

Status options_allowed(Diag *d, CommandLine *line)
{
    Reader r = { .d = d, .line = line, .who = "qcc" };
    for (size_t i = 0; i < line->n_given; i++)
        TRY(check_option(&r, &line->given[i]));
    return OK;
}

/* The next word of a text, quoted with ' or ", or with \ before a character; null at the end. */
static const char *next_word(Arena *arena, const char **text)
{
    Text word;
    char quote = 0;
    const char *p = *text + strspn(*text, " \t\n");
    if (!*p)
        return NULL;
    text_open(&word, arena);
    text_add(&word, "");
    for (; *p && (quote || !strchr(" \t\n", *p)); p++) {
        if (*p == quote)
            quote = 0;
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (*p == '\\' && quote != '\'' && p[1])
            text_char(&word, *++p);
        else
            text_char(&word, *p);
    }
    *text = p;
    return text_get(&word);
}

static bool applies(const OptionSpec *o, TextFor what)
{
    enum { STEP = 1 << TOPIC_LOSS | 1 << TOPIC_QUANT };
    static const struct {
        unsigned topics, verbs;
    } all[] = {
        [TEXT_READS] = { 1 << TOPIC_MODEL, V_MODEL },
        [TEXT_COMPILES] = { STEP | 1 << TOPIC_MODEL, V_COMPILE },
        [TEXT_EXPORTS] = { 1 << TOPIC_EMIT, V_EXPORT },
        [TEXT_EMITS] = { STEP | 1 << TOPIC_EMIT, V_COMPILE },
        [TEXT_RECORDED] = { STEP | 1 << TOPIC_MODEL, V_COMPILE },
    };
    const bool of_step = (what == TEXT_COMPILES || what == TEXT_RECORDED) && o->keep != KEEP_FREE;
    return (of_step || all[what].topics >> o->topic & 1) && all[what].verbs & o->verbs &&
           (what != TEXT_RECORDED || o->keep != KEEP_FREE);
}

static Status does_not_apply(const Reader *r, const OptionSpec *o, TextFor what)
{
    if (what == TEXT_RECORDED)
        return fail(r->d, (Place){ .where = r->who, .byte = -1 }, "%s is nothing that a step remembers", o->name);
    return fail_as(r->d, USAGE, place_of(r, o->name), "does not apply here");
}

Status options_read_text(Diag *d, Arena *arena, const char *who, const char *text, TextFor what, CommandLine *line)
{
    const char **words = NULL, *word;
    size_t n = 0, cap = 0;
    while (text && (word = next_word(arena, &text))) {
        GROW(arena, words, n, cap);
        words[n++] = word;
    }
    Reader r = { .d = d, .arena = arena, .n = (int)n, .words = words, .line = line, .who = who };
    *line = (CommandLine){ 0 };
    while (r.at < r.n) {
        word = words[r.at++];
        if (word[0] != '-')
            return fail_as(d, USAGE, place_of(&r, NULL), "'%s' is no option", word);
        TRY(read_option(&r, word));
        const OptionSpec *o = &option_specs[line->given[line->n_given - 1].option];
        if (!applies(o, what))
            return does_not_apply(&r, o, what);
        TRY(check_capability(&r, o));
    }
    return OK;
}
