/* Tables of quantizers and roles, read and written. */
#include "passes/quant/table.h"

#include <string.h>

#include "ops/card/words.h"

static const char *const operands[] = {
#define OPERAND(id, word, product, what) word,
    QUANT_OPERANDS(OPERAND)
#undef OPERAND
};

bool quant_multiplies(const OpDef *def)
{
    return def->access.kind == ACCESS_CONTRACT && def->quant.in[0] == QUANT_INPUT;
}

bool quant_is_table_for(const OpDef *def, const QuantTarget *target)
{
    return def->quant.in[0] == QUANT_TABLE && def->row && target_has(target->tables, def->name);
}

bool quant_joins_for(const OpDef *def, const QuantTarget *target)
{
    const bool joins = def->quant.in[0] == QUANT_INPUT && def->quant.out[0] == QUANT_INPUT && !quant_multiplies(def);
    return !joins || target_has(target->joins, def->name);
}

/* ---- roles ---- */

/* "input,weight,bias" */
static const char *roles_text(Arena *arena, const QuantRole *roles, size_t n)
{
    Text t;
    text_open(&t, arena);
    for (size_t i = 0; i < n && (!i || roles[i] != QUANT_UNSET); i++)
        text_printf(&t, "%s%s", i ? "," : "", quant_word(roles[i]));
    return text_get(&t);
}

static const char *roles_in(Arena *arena, const OpDef *def)
{
    return roles_text(arena, def->quant.in, COUNT(def->quant.in));
}

static const char *roles_out(Arena *arena, const OpDef *def)
{
    return roles_text(arena, def->quant.out, COUNT(def->quant.out));
}

/* Of an operator that a line names: what its card says, or off.  Of others nobody knows the card yet. */
static Status read_way(const TableReader *r, const char *key, const char *value, const char *at, const QuantLine *line,
                       QuantWay *way)
{
    const OpDef *def = line->of.kind == TABLE_LINE_OP ? r->ops->defs[line->of.op] : NULL;
    const bool is_in = strcmp(key, "in") == 0;
    const char *card = !def ? quant_word(QUANT_TABLE) : is_in ? roles_in(r->arena, def) : roles_out(r->arena, def);
    *way = strcmp(value, "off") == 0 ? WAY_OFF : !def ? WAY_TABLE : WAY_CARD;
    if (*way == WAY_OFF || strcmp(value, card) == 0)
        return OK;
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, table_place(r, at), "%s cannot be %s=%s",
                             def ? def->name : "what is selected by name", key, value);
    message_try(m, "%s=%s", key, card);
    message_try(m, "%s=off", key);
    return message_send(m);
}

/* ---- quantizers ---- */

static int operand_called(const char *word)
{
    for (size_t i = 0; i < COUNT(operands); i++)
        if (strcmp(operands[i], word) == 0)
            return (int)i;
    return -1;
}

static Status read_quantizer(const TableReader *r, int operand, const char *value, const char *at, QuantLine *line)
{
    const OpDef *def = line->of.kind == TABLE_LINE_OP ? r->ops->defs[line->of.op] : NULL;
    line->says[operand] = true;
    if (!def || quant_multiplies(def))
        return quantizer_read_one(&line->by[operand], (QuantOperand)operand, table_place(r, at), line->of.shown, value,
                                  r->arena, r->diag);
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, table_place(r, at),
                             "%s is no product: it has the quantizers of those that ask for its data", def->name);
    message_try(m, "in=off, which leaves it float");
    message_try(m, "a quantizer for the products around it: op:Conv %s=%s", operands[operand], value);
    return message_send(m);
}

/* ---- lines ---- */

static Status read_setting(const TableReader *r, const char *key, const char *value, const char *at, QuantLine *line)
{
    const char *keys[COUNT(operands) + 3];
    const int operand = operand_called(key);
    if (operand >= 0)
        return read_quantizer(r, operand, value, at, line);
    if (strcmp(key, "in") == 0)
        return read_way(r, key, value, at, line, &line->in);
    if (strcmp(key, "out") == 0)
        return read_way(r, key, value, at, line, &line->out);
    if (strcmp(key, "reason") == 0) {
        line->reason = value;
        return OK;
    }
    memcpy(keys, operands, sizeof operands);
    keys[COUNT(operands)] = "in", keys[COUNT(operands) + 1] = "out", keys[COUNT(operands) + 2] = "reason";
    return table_unknown(r, at - strlen(key) - 1, "key", key, keys, COUNT(keys));
}

static Status read_settings(TableReader *r, const TableLine *of, void *table)
{
    QuantTable *t = table;
    QuantLine line = { .of = *of };
    const char *key, *value, *at;
    bool any = false;
    for (;;) {
        TRY(table_next_setting(r, &key, &value, &at));
        if (!key)
            break;
        TRY(read_setting(r, key, value, at, &line));
        any |= strcmp(key, "reason") != 0;
    }
    if (!any)
        return fail_as(r->diag, USAGE, table_place(r, at), "nothing is said: wanted is w=, a=, b=, in= or out=");
    if (line.in == WAY_OFF && line.out != WAY_OFF && line.out != WAY_UNSAID)
        return fail_as(r->diag, USAGE, table_place(r, r->source), "what reads no codes gives none: in=off out=off");
    GROW(r->arena, t->lines, t->n, t->cap);
    t->lines[t->n++] = line;
    return OK;
}

Status quant_table_read(const QuantTable **table, const char *file, const char *text, const OpTable *ops, Arena *arena,
                        Diag *diag)
{
    QuantTable *t = NEW(arena, QuantTable);
    *t = (QuantTable){ .file = arena_string(arena, file), .text = arena_string(arena, text) };
    TableReader r = table_reader(t->file, ops, arena, diag);
    t->named = r.named;
    TRY(table_read_lines(&r, t->text, read_settings, t));
    *table = t;
    return OK;
}

/* ---- printing ---- */

void quant_table_print(Text *out, const char *title, const OpDef *def, const OpTable *ops, const QuantTarget *target)
{
    enum { COLUMN = 40, COMMENT = 32 };
    Arena *arena = out->arena;
    const QuantCard *q = &def->quant;
    const bool off = q->in[0] == QUANT_TABLE ? !quant_is_table_for(def, target) : !quant_joins_for(def, target);
    const char *roles =
        off ? "in=off out=off" : arena_printf(arena, "in=%s out=%s", roles_in(arena, def), roles_out(arena, def));
    const char *says[] = { q->weight_axis ? "weights have a scale a channel" : NULL,
                           q->same_scale ? "one scale for all" : NULL,
                           q->integer ? arena_printf(arena, "%s on codes", ops->defs[q->integer]->name) : NULL };
    bool any = false;
    text_printf(out, "%-*s %s", COLUMN, arena_printf(arena, "op:%s", title), roles);
    for (size_t i = 0; i < COUNT(says); i++) {
        if (!says[i])
            continue;
        text_printf(out, "%*s%s", any ? 0 : (int)(strlen(roles) < COMMENT ? COMMENT - strlen(roles) : 0), "",
                    any ? "; " : " # ");
        text_add(out, says[i]);
        any = true;
    }
    text_char(out, '\n');
}
