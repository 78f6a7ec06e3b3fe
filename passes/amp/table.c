/* Tables of classes, read and written. */
#include "passes/amp/table.h"

#include <string.h>

#include "base/number_text.h"
#include "ir/text/print.h"
#include "ops/card/words.h"
#include "passes/recipe/selector.h"

enum { LAST_OPERAND = 31 };

typedef struct Reader {
    AmpTable *table;
    const OpTable *ops;
    Arena *arena;
    Diag *diag;
    const char *source; /* the line */
    int line;
    const char *at; /* what is read next */
} Reader;

/* ---- complaints ---- */

static Place place_of(const Reader *r, const char *at)
{
    return (Place){
        .file = r->table->file, .line = r->line, .column = (int)(at - r->source) + 1, .source = r->source, .byte = -1
    };
}

static Status unknown(const Reader *r, const char *at, const char *what, const char *word, const char *const *known,
                      size_t n)
{
    const char *nearest = str_nearest(word, known, n);
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, place_of(r, at), "%s %s is not known", what, word);
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
static const char *next_word(Reader *r, bool brackets, const char **begin)
{
    int depth = 0;
    while (is_space(*r->at))
        r->at++;
    *begin = r->at;
    for (; *r->at && (depth > 0 || !is_space(*r->at)); r->at++)
        depth += brackets && *r->at == '[' ? 1 : brackets && *r->at == ']' ? -1 : 0;
    return arena_copy(r->arena, *begin, (size_t)(r->at - *begin));
}

static Status read_class(const Reader *r, const char *at, const char *word, AmpClass *class)
{
    const char *words[AMP_C + 1];
    size_t n = 0;
    if (strcmp(word, amp_word(AMP_UNSET)) == 0)
        return OK;
    for (int c = AMP_UNSET + 1; c <= AMP_C; c++) {
        if (strcmp(word, amp_word((AmpClass)c)) == 0) {
            *class = (AmpClass)c;
            return OK;
        }
        words[n++] = amp_word((AmpClass)c);
    }
    Text all;
    text_open(&all, r->arena);
    for (size_t i = 0; i < n; i++)
        text_printf(&all, "%s%s", i ? " " : "", words[i]);
    return fail_as(r->diag, USAGE, place_of(r, at), "no class is called %s: wanted is one of %s", word, text_get(&all));
}

static Status read_reason(const Reader *r, const char *at, const char *word, AmpLine *line)
{
    const char *words[REASON_MEANING + 1];
    for (int i = 0; i <= REASON_MEANING; i++) {
        words[i] = amp_reason((AmpReason)i);
        if (strcmp(word, words[i]) != 0)
            continue;
        line->reason = (AmpReason)i;
        line->says_reason = true;
        return OK;
    }
    return unknown(r, at, "reason", word, words, COUNT(words));
}

/* 0,2,3, or - for none. */
static Status read_operands(const Reader *r, const char *at, const char *list, AmpLine *line)
{
    line->says_wide = true;
    line->wide = 0;
    if (strcmp(list, "-") == 0)
        return OK;
    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, ",");
        int64_t operand;
        if (!i64_from_text(p, n, &operand) || operand < 0 || operand > LAST_OPERAND)
            return fail_as(r->diag, USAGE, place_of(r, at + (p - list)),
                           "wide=%s: wanted are operands by number, like 1,2, or -", list);
        line->wide |= 1u << operand;
        p += n;
        if (!*p)
            return OK;
    }
}

static Status read_setting(const Reader *r, const char *at, const char *word, AmpLine *line)
{
    static const char *const keys[] = { "fp16", "bf16", "wide", "reason" };
    const char *sign = strchr(word, '=');
    if (!sign)
        return fail_as(r->diag, USAGE, place_of(r, at), "%s: wanted is key=value", word);
    const char *key = arena_copy(r->arena, word, (size_t)(sign - word)), *value = sign + 1;
    at += value - word;
    if (strcmp(key, "fp16") == 0)
        return read_class(r, at, value, &line->f16);
    if (strcmp(key, "bf16") == 0)
        return read_class(r, at, value, &line->bf16);
    if (strcmp(key, "wide") == 0)
        return read_operands(r, at, value, line);
    if (strcmp(key, "reason") == 0)
        return read_reason(r, at, value, line);
    return unknown(r, at - (value - word), "key", key, keys, COUNT(keys));
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

static Status read_condition(const Reader *r, const char *at, const char *text, AmpLine *line)
{
    const AttrSpec *specs = r->ops->defs[line->op]->attrs;
    const char *sign = strchr(text, '=');
    if (!sign)
        return fail_as(r->diag, USAGE, place_of(r, at), "[%s]: wanted is [attribute=value]", text);
    const char *name = without_quotes_and_spaces(r->arena, arena_copy(r->arena, text, (size_t)(sign - text)));
    const AttrSpec *spec = specs ? attr_find(specs, str(name)) : NULL;
    if (!spec) {
        const char *names[64];
        size_t n = 0;
        for (const AttrSpec *s = specs; s && s->kind != ATTR_END && n < COUNT(names); s++)
            names[n++] = s->name;
        return unknown(r, at, arena_printf(r->arena, "attribute of %s", r->ops->defs[line->op]->name), name, names, n);
    }
    GROW(r->arena, line->conditions, line->n_conditions, line->cap_conditions);
    line->conditions[line->n_conditions++] = (AmpCondition){ spec, without_quotes_and_spaces(r->arena, sign + 1) };
    return OK;
}

/* attribute=value,attribute=value; commas inside of brackets belong to values. */
static Status read_conditions(const Reader *r, const char *at, const char *list, AmpLine *line)
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

static Status unknown_op(const Reader *r, const char *at, const char *name)
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
    return unknown(r, at, "operator", name, names, n);
}

/* Behind "op:": NAME or NAME[conditions]. */
static Status read_op(const Reader *r, const char *at, const char *text, AmpLine *line)
{
    const char *bracket = strchr(text, '[');
    const char *name = bracket ? arena_copy(r->arena, text, (size_t)(bracket - text)) : text;
    line->kind = AMP_LINE_OP;
    if (!find_op(r->ops, r->arena, name, &line->op) || r->ops->defs[line->op]->structural)
        return unknown_op(r, at, name);
    r->table->named[line->op] = true;
    if (!bracket)
        return OK;
    const size_t n = strlen(bracket);
    if (bracket[n - 1] != ']')
        return fail_as(r->diag, USAGE, place_of(r, at + (bracket - text)), "%s: a ] is missing", text);
    return read_conditions(r, at + (bracket + 1 - text), arena_copy(r->arena, bracket + 1, n - 2), line);
}

static Status read_selector(const Reader *r, const char *at, const char *text, AmpLine *line)
{
    line->kind = AMP_LINE_DEFAULT;
    if (strcmp(text, "default") == 0 || strcmp(text, "op:*") == 0)
        return OK;
    if (selector_op(text))
        return read_op(r, at + 3, selector_op(text), line);
    line->kind = AMP_LINE_NAMES;
    line->names = text;
    return OK;
}

/* ---- lines ---- */

/* Classes that say what a type means are no choice. */
static Status check_class(const Reader *r, const AmpLine *line, AmpClass class)
{
    const OpDef *d = line->kind == AMP_LINE_OP ? r->ops->defs[line->op] : NULL;
    const bool fixed = d && (d->amp.f16 == AMP_N || d->amp.f16 == AMP_X);
    if (class == AMP_UNSET || (fixed && class == d->amp.f16))
        return OK;
    if (fixed)
        return fail_as(r->diag, USAGE, place_of(r, r->source), "%s is %s, whatever tables say: it %s", d->name,
                       amp_word(d->amp.f16), d->amp.f16 == AMP_N ? "has no float data" : "is its type that it means");
    if (class == AMP_N || class == AMP_X)
        return fail_as(r->diag, USAGE, place_of(r, r->source), "no table makes something %s: %s", amp_word(class),
                       amp_meaning(class));
    if (d && class == AMP_C && !d->amp.when)
        return fail_as(r->diag, USAGE, place_of(r, r->source), "%s has no condition that C could mean", d->name);
    return OK;
}

static Status read_line(Reader *r)
{
    AmpLine line = { .shown = arena_printf(r->arena, "%s:%d", r->table->file, r->line), .told = NEW(r->arena, bool) };
    const char *at, *word;
    bool any = false;
    while (is_space(*r->at))
        r->at++;
    if (!*r->at || *r->at == '#')
        return OK;
    word = next_word(r, selector_op(r->at), &at);
    TRY(read_selector(r, at, word, &line));
    for (word = next_word(r, false, &at); *word && *word != '#'; word = next_word(r, false, &at)) {
        TRY(read_setting(r, at, word, &line));
        any = true;
    }
    if (!any)
        return fail_as(r->diag, USAGE, place_of(r, at), "nothing is said: wanted is fp16=, bf16=, wide= or reason=");
    TRY(check_class(r, &line, line.f16));
    TRY(check_class(r, &line, line.bf16));
    GROW(r->arena, r->table->lines, r->table->n, r->table->cap);
    r->table->lines[r->table->n++] = line;
    return OK;
}

Status amp_table_read(const AmpTable **table, const char *file, const char *text, const OpTable *ops, Arena *arena,
                      Diag *diag)
{
    AmpTable *t = NEW(arena, AmpTable);
    *t = (AmpTable){ .file = arena_string(arena, file), .text = arena_string(arena, text) };
    t->named = NEWS(arena, bool, ops->n);
    Reader r = { .table = t, .ops = ops, .arena = arena, .diag = diag };
    for (const char *p = t->text; *p; p += *p == '\n') {
        const size_t n = strcspn(p, "\n");
        r.source = r.at = arena_copy(arena, p, n);
        r.line++;
        TRY(read_line(&r));
        p += n;
    }
    *table = t;
    return OK;
}

/* ---- what lines mean ---- */

static bool condition_holds(const AmpCondition *c, const Node *n, Arena *scratch)
{
    Text t;
    text_open(&t, scratch);
    print_attr_value(&t, c->attr, n->attr);
    return strcmp(without_quotes_and_spaces(scratch, text_get(&t)), c->value) == 0;
}

bool amp_line_takes(const AmpTable *t, const AmpLine *line, const Node *n, Arena *scratch)
{
    if (line->kind == AMP_LINE_DEFAULT)
        return op_of(n)->onnx.op && !t->named[n->op];
    if (line->kind != AMP_LINE_OP || line->op != n->op)
        return false;
    for (size_t i = 0; i < line->n_conditions; i++)
        if (!condition_holds(&line->conditions[i], n, scratch))
            return false;
    return true;
}

/* ---- printing ---- */

void amp_table_print(Text *out, const char *title, const OpDef *def)
{
    enum { COLUMN = 40 };
    const AmpCard *card = &def->amp;
    bool any = false;
    Text name;
    text_open(&name, out->arena);
    text_printf(&name, "op:%s", title);
    text_printf(out, "%-*s fp16=%s bf16=%s wide=", COLUMN, text_get(&name), amp_word(card->f16), amp_word(card->bf16));
    for (int i = 0; i <= LAST_OPERAND; i++)
        if (card->wide >> i & 1) {
            text_printf(out, "%s%d", any ? "," : "", i);
            any = true;
        }
    text_printf(out, "%s reason=%s\n", any ? "" : "-", amp_reason(card->reason));
}
