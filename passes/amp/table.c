/* Tables of classes, read and written. */
#include "passes/amp/table.h"

#include <string.h>

#include "base/number_text.h"
#include "ops/card/words.h"

enum { LAST_OPERAND = 31 };

static Status read_class(const TableReader *r, const char *at, const char *word, AmpClass *class)
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
    return fail_as(r->diag, USAGE, table_place(r, at), "no class is called %s: wanted is one of %s", word,
                   text_get(&all));
}

static Status read_reason(const TableReader *r, const char *at, const char *word, AmpLine *line)
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
    return table_unknown(r, at, "reason", word, words, COUNT(words));
}

/* 0,2,3, or - for none. */
static Status read_operands(const TableReader *r, const char *at, const char *list, AmpLine *line)
{
    line->says_wide = true;
    line->wide = 0;
    if (strcmp(list, "-") == 0)
        return OK;
    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, ",");
        int64_t operand;
        if (!i64_from_text(p, n, &operand) || operand < 0 || operand > LAST_OPERAND)
            return fail_as(r->diag, USAGE, table_place(r, at + (p - list)),
                           "wide=%s: wanted are operands by number, like 1,2, or -", list);
        line->wide |= 1u << operand;
        p += n;
        if (!*p)
            return OK;
    }
}

static Status read_setting(const TableReader *r, const char *key, const char *value, const char *at, AmpLine *line)
{
    static const char *const keys[] = { "fp16", "bf16", "wide", "reason" };
    if (strcmp(key, "fp16") == 0)
        return read_class(r, at, value, &line->f16);
    if (strcmp(key, "bf16") == 0)
        return read_class(r, at, value, &line->bf16);
    if (strcmp(key, "wide") == 0)
        return read_operands(r, at, value, line);
    if (strcmp(key, "reason") == 0)
        return read_reason(r, at, value, line);
    return table_unknown(r, at - strlen(key) - 1, "key", key, keys, COUNT(keys));
}

/* ---- lines ---- */

/* Classes that say what a type means are no choice. */
static Status check_class(const TableReader *r, const AmpLine *line, AmpClass class)
{
    const OpDef *d = line->of.kind == TABLE_LINE_OP ? r->ops->defs[line->of.op] : NULL;
    const bool fixed = d && (d->amp.f16 == AMP_N || d->amp.f16 == AMP_X);
    if (class == AMP_UNSET || (fixed && class == d->amp.f16))
        return OK;
    if (fixed)
        return fail_as(r->diag, USAGE, table_place(r, r->source), "%s is %s, whatever tables say: it %s", d->name,
                       amp_word(d->amp.f16), d->amp.f16 == AMP_N ? "has no float data" : "is its type that it means");
    if (class == AMP_N || class == AMP_X)
        return fail_as(r->diag, USAGE, table_place(r, r->source), "no table makes something %s: %s", amp_word(class),
                       amp_meaning(class));
    if (d && class == AMP_C && !d->amp.when)
        return fail_as(r->diag, USAGE, table_place(r, r->source), "%s has no condition that C could mean", d->name);
    return OK;
}

static Status read_settings(TableReader *r, const TableLine *of, void *table)
{
    AmpTable *t = table;
    AmpLine line = { .of = *of };
    const char *key, *value, *at;
    bool any = false;
    for (;; any = true) {
        TRY(table_next_setting(r, &key, &value, &at));
        if (!key)
            break;
        TRY(read_setting(r, key, value, at, &line));
    }
    if (!any)
        return fail_as(r->diag, USAGE, table_place(r, at), "nothing is said: wanted is fp16=, bf16=, wide= or reason=");
    TRY(check_class(r, &line, line.f16));
    TRY(check_class(r, &line, line.bf16));
    GROW(r->arena, t->lines, t->n, t->cap);
    t->lines[t->n++] = line;
    return OK;
}

Status amp_table_read(const AmpTable **table, const char *file, const char *text, const OpTable *ops, Arena *arena,
                      Diag *diag)
{
    AmpTable *t = NEW(arena, AmpTable);
    *t = (AmpTable){ .file = arena_string(arena, file), .text = arena_string(arena, text) };
    TableReader r = table_reader(t->file, ops, arena, diag);
    t->named = r.named;
    TRY(table_read_lines(&r, t->text, read_settings, t));
    *table = t;
    return OK;
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
