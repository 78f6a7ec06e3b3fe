#include "api/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number_text.h"
#include "passes/optimizers.def"

/* Help that lists the words of a table. */
#define WORD(word, ...) ", " #word
#define OPTIMIZER_WORDS (&(OPTIMIZERS(WORD))[2])
#define SCHEDULE_WORDS  (&(SCHEDULES(WORD) "; warmup=N")[2])

/* clang-format off */
const OptionSpec option_specs[OPT_COUNT] = {
#define OPT(id, name, form, kind, verbs, topic, day, needs, step, field, help) \
    { name, form, ARG_##kind, verbs, TOPIC_##topic, day, NEEDS_##needs, KEEP_##step, help },
#include "api/options/options.def"
#undef OPT
};

static const char *const verb_names[] = {
#define VERB(word, form, help) #word,
    VERBS(VERB)
#undef VERB
};
/* clang-format on */

const char *verb_name(Verb v)
{
    return verb_names[v];
}

const char *capability_name(Capability c)
{
    static const char *const names[] = { "", "training", "mixed precision", "quantization", "engines", "qcc_opt" };
    return names[c];
}

FileRole option_role(const OptionSpec *o, Verb v)
{
    static const FileRole roles[] = {
        [ARG_FILE_IN] = ROLE_READ,   [ARG_PAIR_IN] = ROLE_READ,    [ARG_DATA] = ROLE_READ,
        [ARG_DATA_LIST] = ROLE_READ, [ARG_DIR_IN] = ROLE_READ,     [ARG_FILE_OUT] = ROLE_WRITTEN,
        [ARG_OUTPUT] = ROLE_WRITTEN, [ARG_DIR_OUT] = ROLE_WRITTEN, [ARG_STATES] = ROLE_READ,
    };
    if (!(o->verbs >> v & 1))
        return ROLE_NONE;
    return o->kind == ARG_STATES && v == VERB_train ? ROLE_WRITTEN : roles[o->kind];
}

size_t option_names(const char *names[OPT_COUNT])
{
    for (size_t i = 0; i < OPT_COUNT; i++)
        names[i] = option_specs[i].name;
    return OPT_COUNT;
}

void option_add(Arena *arena, CommandLine *line, Option o, const char *value)
{
    GROW(arena, line->given, line->n_given, line->cap_given);
    line->given[line->n_given++] = (Given){ o, value };
}

/* ---- values ---- */

static Status bad_value(Diag *d, Place place, const char *wants, const char *value)
{
    return fail_as(d, USAGE, place, "wants %s: got '%s'", wants, value);
}

static bool is_choice(const char *form, const char *value)
{
    const size_t n = strlen(value);
    const char *p = form;
    if (p[0] == '[')
        p += 2;
    while (*p && *p != ']') {
        const size_t k = strcspn(p, "|]");
        if (k == n && strncmp(p, value, n) == 0)
            return true;
        p += k + (p[k] == '|');
    }
    return false;
}

bool option_is_choice(const OptionSpec *o, const char *word)
{
    return is_choice(o->form, word);
}

static Status bad_choice(Diag *d, Place place, const OptionSpec *o, const char *value)
{
    const char *words[16] = { NULL };
    size_t n = 0;
    for (const char *p = o->form + (o->form[0] == '[' ? 2 : 0); *p && *p != ']' && n < COUNT(words);) {
        const size_t k = strcspn(p, "|]");
        words[n++] = arena_copy(d->arena, p, k);
        p += k + (p[k] == '|');
    }
    const char *near = str_nearest(value, words, n);
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, place, "has no choice '%s'", value);
    if (near)
        message_try(m, "%s", near);
    for (size_t i = 0; !near && i < n; i++)
        message_try(m, "%s", words[i]);
    return message_send(m);
}

Status option_check(Diag *d, Place place, const OptionSpec *o, const char *value)
{
    int64_t n;
    double x;
    const size_t length = strlen(value);
    place.where = o->name;
    switch (o->kind) {
    case ARG_COUNT:
        return i64_from_text(value, length, &n) && n >= 0 ? OK : bad_value(d, place, "a number", value);
    case ARG_REAL:
        return f64_from_text(value, length, &x) ? OK : bad_value(d, place, "a number", value);
    case ARG_PAIR:
    case ARG_PAIR_IN:
        return strchr(value, '=') > value ? OK : bad_value(d, place, o->form, value);
    case ARG_CHOICE:
        return is_choice(o->form, value) ? OK : bad_choice(d, place, o, value);
    case ARG_DEVICE:
        return strncmp(value, "cuda:", 5) == 0 || is_choice(o->form, value) ? OK : bad_choice(d, place, o, value);
    case ARG_FLAG:
    case ARG_TEXT:
    case ARG_SELECTOR:
    case ARG_FILE_IN:
    case ARG_FILE_OUT:
    case ARG_DATA:
    case ARG_DATA_LIST:
    case ARG_OUTPUT:
    case ARG_DIR_IN:
    case ARG_DIR_OUT:
    case ARG_STATES:
        break;
    }
    return length ? OK : bad_value(d, place, o->form, value);
}

/* ---- asking ---- */

const char *option_next(const CommandLine *line, Option o, size_t *at)
{
    while (*at < line->n_given)
        if (line->given[(*at)++].option == o)
            return line->given[*at - 1].value;
    return NULL;
}

bool line_wants_step(const CommandLine *line)
{
    const char *kind = option_text(line, OPT_emit);
    for (size_t i = 0; i < line->n_given; i++)
        if (option_specs[line->given[i].option].topic == TOPIC_LOSS || line->given[i].option == OPT_amp ||
            line->given[i].option == OPT_quant || line->given[i].option == OPT_loss_scale ||
            line->given[i].option == OPT_data)
            return true;
    return kind && strcmp(kind, "onnx-step") == 0;
}

int option_given(const CommandLine *line, Option o)
{
    int n = 0;
    for (size_t i = 0; i < line->n_given; i++)
        n += line->given[i].option == o;
    return n;
}

const char *option_text(const CommandLine *line, Option o)
{
    const char *last = NULL;
    for (size_t i = 0; i < line->n_given; i++)
        if (line->given[i].option == o)
            last = line->given[i].value;
    return last;
}

int64_t option_count(const CommandLine *line, Option o, int64_t otherwise)
{
    const char *text = option_text(line, o);
    int64_t n;
    return text && i64_from_text(text, strlen(text), &n) ? n : otherwise;
}

double option_real(const CommandLine *line, Option o, double otherwise)
{
    const char *text = option_text(line, o);
    double x;
    return text && f64_from_text(text, strlen(text), &x) ? x : otherwise;
}

const char *pair_split(Arena *arena, const char *pair, const char **value)
{
    const size_t n = strcspn(pair, "=");
    *value = pair[n] ? pair + n + 1 : "";
    return arena_copy(arena, pair, n);
}

bool pair_given(Arena *arena, const CommandLine *line, Option o, const char *name)
{
    const char *pair, *value;
    for (size_t at = 0; (pair = option_next(line, o, &at));)
        if (strcmp(pair_split(arena, pair, &value), name) == 0)
            return true;
    return false;
}

/* ---- configuration files ---- */

static int by_option(const void *a, const void *b)
{
    const Given *x = *(const Given *const *)a, *y = *(const Given *const *)b;
    if (x->option != y->option)
        return x->option < y->option ? -1 : 1;
    return x < y ? -1 : x > y;
}

static bool configurable(Option o)
{
    return o != OPT_config && o != OPT_print_config && o != OPT_help && o != OPT_version && o != OPT_output_path;
}

void config_print(Text *out, const CommandLine *line)
{
    const Given **sorted = NEWS(out->arena, const Given *, line->n_given + 1);
    size_t n = 0;
    for (size_t i = 0; i < line->n_given; i++)
        if (configurable(line->given[i].option))
            sorted[n++] = &line->given[i];
    if (n)
        qsort(sorted, n, sizeof *sorted, by_option);
    for (size_t i = 0; i < n; i++) {
        const char *name = option_specs[sorted[i]->option].name;
        text_add(out, name + strspn(name, "-"));
        if (sorted[i]->value)
            text_printf(out, " = %s", sorted[i]->value);
        text_char(out, '\n');
    }
}

/* A word as a shell reads it back. */
static void add_word(Text *out, const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:=,@%+";
    if (*word && word[strspn(word, plain)] == 0) {
        text_add(out, word);
        return;
    }
    text_char(out, '\'');
    for (const char *p = word; *p; p++)
        if (*p == '\'')
            text_add(out, "'\\''");
        else
            text_char(out, *p);
    text_char(out, '\'');
}

void options_print_line(Text *out, const CommandLine *line)
{
    const size_t start = out->n;
    for (size_t i = 0; i < line->n_paths; i++) {
        if (out->n > start)
            text_char(out, ' ');
        add_word(out, line->paths[i]);
    }
    for (size_t i = 0; i < line->n_given; i++) {
        const Given *g = &line->given[i];
        const OptionSpec *o = &option_specs[g->option];
        if (out->n > start)
            text_char(out, ' ');
        text_add(out, o->name);
        if (!g->value)
            continue;
        text_char(out, option_may_lack(o) ? '=' : ' ');
        add_word(out, g->value);
    }
}

CommandLine line_join(Arena *arena, const CommandLine *a, const CommandLine *b)
{
    CommandLine line = { .verb = b->verb, .verb_said = b->verb_said };
    const CommandLine *const both[] = { a, b };
    for (size_t k = 0; k < COUNT(both); k++)
        for (size_t i = 0; i < both[k]->n_given; i++) {
            const Given *g = &both[k]->given[i];
            option_add(arena, &line, g->option, g->value ? arena_string(arena, g->value) : NULL);
        }
    return line;
}

void line_drop(CommandLine *line, Option o)
{
    size_t n = 0;
    for (size_t i = 0; i < line->n_given; i++)
        if (line->given[i].option != o)
            line->given[n++] = line->given[i];
    line->n_given = n;
}

static Str trimmed(Str s)
{
    while (s.n && strchr(" \t\r", s.p[0]))
        s = (Str){ s.p + 1, s.n - 1 };
    while (s.n && strchr(" \t\r", s.p[s.n - 1]))
        s.n--;
    return s;
}

static Status config_line(Diag *d, Arena *arena, Place place, Str text, CommandLine *line)
{
    const char *equals = memchr(text.p, '=', text.n);
    const Str name = trimmed((Str){ text.p, equals ? (size_t)(equals - text.p) : text.n });
    const char *known[OPT_COUNT];
    for (int i = 0; i < OPT_COUNT; i++) {
        const OptionSpec *o = &option_specs[i];
        known[i] = o->name + strspn(o->name, "-");
        if (!str_is(name, known[i]) || !configurable((Option)i))
            continue;
        const Str value = equals ? trimmed((Str){ equals + 1, (size_t)(text.p + text.n - equals - 1) }) : str("");
        const char *copy = equals ? arena_copy(arena, value.p, value.n) : NULL;
        if (!equals && o->kind != ARG_FLAG && !option_may_lack(o))
            return fail_as(d, USAGE, place, "%s wants %s", known[i], o->form);
        if (equals && o->kind == ARG_FLAG)
            return fail_as(d, USAGE, place, "%s takes no value", known[i]);
        if (equals)
            TRY(option_check(d, place, o, copy));
        option_add(arena, line, (Option)i, copy);
        return OK;
    }
    const char *wanted = arena_copy(arena, name.p, name.n), *near = str_nearest(wanted, known, OPT_COUNT);
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, place, "%s is no option", wanted);
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

Status config_read(Diag *d, Arena *arena, const char *path, CommandLine *line)
{
    static const int64_t largest = 1 << 20;
    Str text;
    Place place = { .file = path, .byte = -1 };
    TRY(file_read(arena, d, path, largest, "configuration", &text));
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        const size_t n = end ? (size_t)(end - text.p) : text.n;
        const Str one = trimmed((Str){ text.p, n });
        place.line++;
        if (one.n && one.p[0] != '#')
            TRY(config_line(d, arena, place, one, line));
        text = (Str){ text.p + n + (end != NULL), text.n - n - (end != NULL) };
    }
    return OK;
}
