/* Lines of tables, read. */
#include "passes/recipe/table_lines.h"

#include <string.h>

#include "ir/text/print.h"
#include "passes/recipe/selector.h"

/* ---- complaints ---- */

Place table_place(const TableReader *r, const char *at)
{
    return (Place){
        .file = r->file, .line = r->line, .column = (int)(at - r->source) + 1, .source = r->source, .byte = -1
    };
}

Status table_unknown(const TableReader *r, const char *at, const char *what, const char *word, const char *const *known,
                     size_t n)
{
    const char *nearest = str_nearest(word, known, n);
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, table_place(r, at), "%s %s is not known", what, word);
    if (nearest)
        message_try(m, "%s", nearest);
    return message_send(m);
}

/* ---- words ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The next word; the brackets of an operator's selector may hold spaces. */
static const char *next_word(TableReader *r, bool brackets, const char **begin)
{
    int depth = 0;
    while (is_space(*r->at))
        r->at++;
    *begin = r->at;
    for (; *r->at && (depth > 0 || !is_space(*r->at)); r->at++)
        depth += brackets && *r->at == '[' ? 1 : brackets && *r->at == ']' ? -1 : 0;
    return arena_copy(r->arena, *begin, (size_t)(r->at - *begin));
}

/* ---- selectors ---- */

/* Compared without quotes and spaces: [1, 0] and [1,0] are the same. */
static const char *without_quotes_and_spaces(Arena *arena, const char *value)
{
    Text t;
    text_open(&t, arena);
    text_add(&t, "");
    for (; *value; value++)
        if (*value != '"' && !is_space(*value))
            text_char(&t, *value);
    return text_get(&t);
}

static Status read_condition(const TableReader *r, const char *at, const char *text, TableLine *line)
{
    const AttrSpec *specs = r->ops->defs[line->op]->attrs;
    const char *sign = strchr(text, '=');
    if (!sign)
        return fail_as(r->diag, USAGE, table_place(r, at), "[%s]: wanted is [attribute=value]", text);
    const char *name = without_quotes_and_spaces(r->arena, arena_copy(r->arena, text, (size_t)(sign - text)));
    const AttrSpec *spec = specs ? attr_find(specs, str(name)) : NULL;
    if (!spec) {
        const char *names[64];
        size_t n = 0;
        for (const AttrSpec *s = specs; s && s->kind != ATTR_END && n < COUNT(names); s++)
            names[n++] = s->name;
        return table_unknown(r, at, arena_printf(r->arena, "attribute of %s", r->ops->defs[line->op]->name), name,
                             names, n);
    }
    GROW(r->arena, line->conditions, line->n_conditions, line->cap_conditions);
    line->conditions[line->n_conditions++] = (TableCondition){ spec, without_quotes_and_spaces(r->arena, sign + 1) };
    return OK;
}

/* attribute=value,attribute=value; commas inside of brackets belong to values. */
static Status read_conditions(const TableReader *r, const char *at, const char *list, TableLine *line)
{
    for (const char *p = list;; p++) {
        size_t n = 0;
        for (int depth = 0; p[n] && (depth > 0 || p[n] != ','); n++)
            depth += p[n] == '[' ? 1 : p[n] == ']' ? -1 : 0;
        TRY(read_condition(r, at + (p - list), arena_copy(r->arena, p, n), line));
        p += n;
        if (!*p)
            return OK;
    }
}

static bool find_op(const OpTable *ops, Arena *arena, const char *name, Op *op)
{
    const char *dot = strrchr(name, '.');
    const char *domain = dot ? arena_copy(arena, name, (size_t)(dot - name)) : "";
    return op_find_onnx(ops, domain, dot ? dot + 1 : name, op) || op_find(ops, str(name), op);
}

static Status unknown_op(const TableReader *r, const char *at, const char *name)
{
    const char **names = NEWS(r->arena, const char *, 2 * r->ops->n);
    size_t n = 0;
    for (size_t i = 0; i < r->ops->n; i++) {
        const OpDef *d = r->ops->defs[i];
        if (d->structural)
            continue;
        names[n++] = d->name;
        if (d->onnx.op)
            names[n++] = d->onnx.domain ? arena_printf(r->arena, "%s.%s", d->onnx.domain, d->onnx.op) : d->onnx.op;
    }
    return table_unknown(r, at, "operator", name, names, n);
}

/* Behind "op:": NAME or NAME[conditions]. */
static Status read_op(const TableReader *r, const char *at, const char *text, TableLine *line)
{
    const char *bracket = strchr(text, '[');
    const char *name = bracket ? arena_copy(r->arena, text, (size_t)(bracket - text)) : text;
    line->kind = TABLE_LINE_OP;
    if (!find_op(r->ops, r->arena, name, &line->op) || r->ops->defs[line->op]->structural)
        return unknown_op(r, at, name);
    r->named[line->op] = true;
    if (!bracket)
        return OK;
    const size_t n = strlen(bracket);
    if (bracket[n - 1] != ']')
        return fail_as(r->diag, USAGE, table_place(r, at + (bracket - text)), "%s: a ] is missing", text);
    return read_conditions(r, at + (bracket + 1 - text), arena_copy(r->arena, bracket + 1, n - 2), line);
}

static Status read_selector(const TableReader *r, const char *at, const char *text, TableLine *line)
{
    line->kind = TABLE_LINE_DEFAULT;
    if (strcmp(text, "default") == 0 || strcmp(text, "op:*") == 0)
        return OK;
    if (selector_op(text))
        return read_op(r, at + 3, selector_op(text), line);
    line->kind = TABLE_LINE_NAMES;
    line->names = text;
    return OK;
}

/* ---- lines ---- */

TableReader table_reader(const char *file, const OpTable *ops, Arena *arena, Diag *diag)
{
    return (TableReader){ .file = file, .ops = ops, .named = NEWS(arena, bool, ops->n), .arena = arena, .diag = diag };
}

Status table_next_setting(TableReader *r, const char **key, const char **value, const char **at)
{
    const char *word = next_word(r, false, at), *sign = strchr(word, '=');
    *key = NULL;
    if (!*word || *word == '#')
        return OK;
    if (!sign)
        return fail_as(r->diag, USAGE, table_place(r, *at), "%s: wanted is key=value", word);
    *key = arena_copy(r->arena, word, (size_t)(sign - word));
    *value = sign + 1;
    *at += *value - word;
    return OK;
}

static Status read_line(TableReader *r, Status (*settings)(TableReader *r, const TableLine *line, void *table),
                        void *table)
{
    TableLine line = { .shown = arena_printf(r->arena, "%s:%d", r->file, r->line), .told = NEW(r->arena, bool) };
    const char *at;
    while (is_space(*r->at))
        r->at++;
    if (!*r->at || *r->at == '#')
        return OK;
    const char *word = next_word(r, selector_op(r->at), &at);
    TRY(read_selector(r, at, word, &line));
    return settings(r, &line, table);
}

Status table_read_lines(TableReader *r, const char *text,
                        Status (*settings)(TableReader *r, const TableLine *line, void *table), void *table)
{
    for (const char *p = text; *p; p += *p == '\n') {
        const size_t n = strcspn(p, "\n");
        r->source = r->at = arena_copy(r->arena, p, n);
        r->line++;
        TRY(read_line(r, settings, table));
        p += n;
    }
    return OK;
}

/* ---- what lines mean ---- */

static bool condition_holds(const TableCondition *c, const Node *n, Arena *scratch)
{
    Text t;
    text_open(&t, scratch);
    print_attr_value(&t, c->attr, n->attr);
    return strcmp(without_quotes_and_spaces(scratch, text_get(&t)), c->value) == 0;
}

bool table_line_takes(const TableLine *line, const bool *named, const Node *n, Arena *scratch)
{
    if (line->kind == TABLE_LINE_DEFAULT)
        return op_of(n)->onnx.op && !named[n->op];
    if (line->kind != TABLE_LINE_OP || line->op != n->op)
        return false;
    for (size_t i = 0; i < line->n_conditions; i++)
        if (!condition_holds(&line->conditions[i], n, scratch))
            return false;
    return true;
}
