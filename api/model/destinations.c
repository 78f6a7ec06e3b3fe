#include "api/model/destinations.h"

#include <string.h>
#include <unistd.h>

#include "passes/recipe/teacher.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/spec.h"

typedef struct Walk {
    Command *c;
    FileSet *files;
    Arena *arena; /* of the set */
} Walk;

/* ---- what is read ---- */

static void reads(Walk *w, const OptionSpec *o, const char *path)
{
    const char *what = arena_printf(w->arena, "what %s reads", o->name);
    if (strcmp(path, "-") == 0)
        file_set_reads_open(w->files, "standard input", what, STDIN_FILENO);
    else
        file_set_reads(w->files, path, what);
}

/* Whoever needs the data says what is wrong with the text; here it only names a file, or none. */
static void reads_data(Walk *w, const OptionSpec *o, const char *text)
{
    Diag quiet;
    DataSpec spec;
    diag_open(&quiet, w->arena, NULL, NULL);
    if (data_spec_read(&quiet, w->arena, o->name, text, &spec) == OK && spec.kind == DATA_FILE)
        reads(w, o, spec.path);
}

/* Where one piece ends is known once the model is: each comma that a name and = follow may begin another. */
static void reads_list(Walk *w, const OptionSpec *o, const char *text)
{
    size_t begin = 0;
    for (size_t i = 0; i == 0 || text[i - 1]; i++) {
        const size_t name = text[i] == ',' ? strcspn(text + i + 1, "=,:") : 0;
        if (text[i] && (!name || text[i + 1 + name] != '='))
            continue;
        reads_data(w, o, arena_copy(w->arena, text + begin, i - begin));
        begin = i + 1;
    }
}

static void source(Walk *w, const OptionSpec *o, const char *value)
{
    const char *path = value;
    if (o->kind == ARG_DATA)
        reads_data(w, o, value);
    else if (o->kind == ARG_DATA_LIST)
        reads_list(w, o, value);
    else if (o->kind == ARG_PAIR_IN)
        pair_split(w->arena, value, &path);
    else if (o == &option_specs[OPT_teacher])
        path = teacher_file(w->arena, value);
    if (path && o->kind != ARG_DATA && o->kind != ARG_DATA_LIST)
        reads(w, o, path);
}

/* ---- what is written ---- */

static Status destination(Walk *w, const OptionSpec *o, const char *value)
{
    FileUse use = { .path = value, .what = o->name };
    use.another = arena_printf(w->arena, "%s ", o->name);
    if (o->kind == ARG_OUTPUT && strchr(value, '=')) {
        const char *name = pair_split(w->arena, value, &use.path);
        use.what = arena_printf(w->arena, "%s %s", o->name, name);
        use.another = arena_printf(w->arena, "%s %s=", o->name, name);
    }
    use.takes_folder = o->kind == ARG_DIR_OUT || (o->kind == ARG_STATES && !checkpoint_is_file(value));
    if (strcmp(use.path, "-") == 0)
        return OK;
    return file_set_writes(w->files, &w->c->cx->diag, &use);
}

static Status printed(Walk *w)
{
    const FileUse use = { .path = "standard output", .another = "> ", .is_stream = true };
    return file_set_writes_open(w->files, &w->c->cx->diag, &use, STDOUT_FILENO);
}

/* Whether a later one of the same option counts instead. */
static bool overridden(const CommandLine *l, size_t i)
{
    for (size_t k = i + 1; k < l->n_given; k++)
        if (l->given[k].option == l->given[i].option)
            return option_specs[l->given[i].option].kind != ARG_OUTPUT;
    return false;
}

Status destinations_check(Command *c, FileSet *files, bool prints)
{
    Walk w = { c, files, files->arena };
    const CommandLine *l = &c->line;
    for (size_t i = 0; i < l->n_paths; i++)
        file_set_reads(files, l->paths[i], l->n_paths == 1 ? "the model" : "a model");
    for (size_t i = 0; i < l->n_given; i++) {
        const OptionSpec *o = &option_specs[l->given[i].option];
        if (option_role(o, l->verb) == ROLE_READ && l->given[i].value)
            source(&w, o, l->given[i].value);
    }
    for (size_t i = 0; i < l->n_given; i++) {
        const OptionSpec *o = &option_specs[l->given[i].option];
        if (option_role(o, l->verb) == ROLE_WRITTEN && l->given[i].value && !overridden(l, i))
            TRY(destination(&w, o, l->given[i].value));
    }
    return prints ? printed(&w) : OK;
}

Status destination_add(qcc_context *cx, const char *path, const char *what)
{
    const FileUse use = { .path = path, .what = what, .another = "-o " };
    return cx->diag.files ? file_set_writes(cx->diag.files, &cx->diag, &use) : OK;
}
