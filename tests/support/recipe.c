#include "support/recipe.h"

#include <string.h>

#include "api/options/recipe_options.h"
#include "base/file.h"
#include "ir/text/parse.h"
#include "passes/amp/shipped.h"
#include "passes/amp/table.h"
#include "passes/quant/shipped.h"
#include "passes/quant/table.h"

/* A table, which is one that is shipped or a file beside a path. */
static Status table_text(const char **text, const char *shipped, const char *name, const Ir *ir, Arena *arena,
                         const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *file = arena_printf(arena, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path ? path : "", name);
    Str bytes = { shipped, 0 };
    if (!shipped)
        TRY(file_read(arena, ir->diag, file, ir->limits.string_bytes, "string_bytes", &bytes));
    *text = bytes.p;
    return OK;
}

static Status read_tables(Precision *p, const CommandLine *line, const Ir *ir, Arena *arena, const char *path)
{
    const AmpTable **tables = NEWS(arena, const AmpTable *, option_given(line, OPT_amp_table) + 1);
    const char *name, *text;
    p->n_tables = 0;
    for (size_t at = 0; (name = option_next(line, OPT_amp_table, &at));) {
        TRY(table_text(&text, amp_table_shipped(name), name, ir, arena, path));
        TRY(amp_table_read(&tables[p->n_tables++], name, text, ir->ops, arena, ir->diag));
    }
    p->tables = tables;
    return OK;
}

static Status read_quant_tables(Quantization *q, const CommandLine *line, const Ir *ir, Arena *arena, const char *path)
{
    const QuantTable **tables = NEWS(arena, const QuantTable *, option_given(line, OPT_quant_table) + 1);
    const char *name;
    q->n_tables = 0;
    for (size_t at = 0; (name = option_next(line, OPT_quant_table, &at));) {
        const char *text;
        TRY(table_text(&text, quant_table_shipped(name), name, ir, arena, path));
        TRY(quant_table_read(&tables[q->n_tables++], name, text, ir->ops, arena, ir->diag));
    }
    q->tables = tables;
    return OK;
}

Status recipe_from_options(Recipe *r, const Ir *ir, Arena *arena, Str options, const char *path)
{
    CommandLine line;
    const char *text = arena_copy(arena, options.p, options.n);
    TRY(options_read_text(ir->diag, arena, "recipe", text, TEXT_COMPILES, &line));
    TRY(recipe_read_options(r, &line, ir->ops, arena, ir->diag));
    TRY(recipe_read_loss_options(r, &line, arena, ir->diag));
    TRY(read_tables(&r->precision, &line, ir, arena, path));
    return read_quant_tables(&r->quantization, &line, ir, arena, path);
}

/* The rest of the line of a text that begins with `head`. */
static bool line_behind(Str text, const char *head, Str *rest)
{
    const size_t n = strlen(head);
    const char *at = memmem(text.p, text.n, head, n);
    if (!at)
        return false;
    at += n;
    const size_t left = text.n - (size_t)(at - text.p);
    const char *end = memchr(at, '\n', left);
    *rest = (Str){ at, end ? (size_t)(end - at) : left };
    return true;
}

bool recipe_line(Str text, Str *options)
{
    return line_behind(text, "# recipe: ", options);
}

Status recipe_teacher(Recipe *r, Ir *ir, Arena *arena, const char *path)
{
    Str text;
    Module *m;
    const char *slash = strrchr(path, '/');
    if (!r->teacher.file)
        return OK;
    const char *file = arena_printf(arena, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, r->teacher.file);
    TRY(file_read(arena, ir->diag, file, ir->limits.string_bytes, "string_bytes", &text));
    TRY(parse_module(ir, arena, text, file, NULL, NULL, &m));
    r->teacher.graph = m->graphs[0];
    return OK;
}

void recipe_whole(Recipe *r, Arena *arena, Str text)
{
    Str name;
    const char **whole = NEW(arena, const char *);
    if (!line_behind(text, "# whole: ", &name))
        return;
    *whole = arena_copy(arena, name.p, name.n);
    r->whole = whole;
    r->n_whole = 1;
}
