/* Names, marks and calls: the statements of a graph. */
#include <inttypes.h>
#include <string.h>

#include "ir/text/parser.h"

Level *parse_level(Parser *p)
{
    return p->levels[p->depth - 1];
}

bool parse_at_value(const Parser *p)
{
    return p->token.kind == TOKEN_VALUE || p->token.kind == TOKEN_NUMBERED;
}

static MapEntry *find_name(const Map *names, const Token *t)
{
    return t->kind == TOKEN_NUMBERED ? map_find_u64(names, t->number) : map_find_n(names, t->text.p, t->text.n);
}

const char *parse_interned(Parser *p, const Token *t)
{
    return t->kind == TOKEN_VALUE ? name_of(&p->ir->names, t->text.p, t->text.n) : NULL;
}

static SourceLine *line_of(Parser *p, const Node *n)
{
    return p->source ? fact(&p->source->lines[p->module->n_graphs], n) : NULL;
}

Status parse_define(Parser *p, const Token *t, Node *n)
{
    bool fresh;
    const char *name = parse_interned(p, t);
    MapEntry *e = name ? map_put_n(&parse_level(p)->names, name, t->text.n, &fresh)
                       : map_put_u64(&parse_level(p)->names, t->number, &fresh);
    n->name = name;
    SourceLine *line = line_of(p, n);
    if (line)
        *line = (SourceLine){ t->at, t->line };
    if (fresh) {
        e->value.p = n;
        return OK;
    }
    Message *m =
        message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, t), "%.*s is defined twice", (int)t->n, t->at);
    line = line_of(p, e->value.p);
    if (line)
        message_at(m, "line %d", line->line);
    return message_send(m);
}

static const char *near_value(Parser *p, const Token *t)
{
    enum { MOST = 1000 };
    const Map *names = &parse_level(p)->names;
    const char *words[MOST];
    size_t n = 0;
    for (size_t i = names->n; i > 0 && n < MOST; i--)
        if (names->entries[i - 1].key)
            words[n++] = names->entries[i - 1].key;
    const char *word = arena_copy(&p->scratch, t->text.p, t->text.n);
    return t->kind == TOKEN_VALUE ? str_nearest(word, words, n) : NULL;
}

static Status unknown_value(Parser *p, const Token *t)
{
    for (size_t d = p->depth - 1; d > 0; d--)
        if (find_name(&p->levels[d - 1]->names, t))
            return fail(p->ir->diag, parse_place(p, t),
                        "%.*s is a value outside: a region reads its parameters and its own values only", (int)t->n,
                        t->at);
    const char *near = near_value(p, t);
    Message *m =
        message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, t), "no value %.*s so far", (int)t->n, t->at);
    if (near)
        message_try(m, lex_is_word(near, strlen(near)) ? "%%%s" : "%%\"%s\"", near);
    return message_send(m);
}

/* `_` or a value that is defined. */
Status parse_find_value(Parser *p, const Token *t, Node **n)
{
    *n = NULL;
    if (t->kind == TOKEN_WORD)
        return OK;
    const MapEntry *e = find_name(&parse_level(p)->names, t);
    if (!e)
        return unknown_value(p, t);
    *n = e->value.p;
    return OK;
}

static Status mark_side(Parser *p, Node *n)
{
    TRY(parse_next(p));
    TRY(parse_sign(p, '='));
    const bool update = parse_at_word(p, "update");
    if (!update && !parse_at_word(p, "backward"))
        return parse_wanted(p, "backward or update");
    n->flags |= update ? NODE_UPDATE : NODE_BACKWARD;
    return parse_next(p);
}

/* A mark that is a word alone; false: it is none. */
static bool at_flag(const Parser *p, uint16_t *flag)
{
    static const struct {
        const char *word;
        uint16_t flag;
    } flags[] = { { "ours", NODE_OURS },
                  { "trained", NODE_TRAINED },
                  { "parameter", NODE_PARAMETER },
                  { "fixed", NODE_FIXED },
                  { "turned", NODE_TURNED } };
    for (size_t i = 0; i < COUNT(flags); i++)
        if (parse_at_word(p, flags[i].word)) {
            *flag = flags[i].flag;
            return true;
        }
    return false;
}

static Status mark_role(Parser *p, Node *n)
{
    RoleMark mark = node_role(n);
    bool said = false;
    if ((n->op != OP_state && n->op != OP_input) || p->depth > 1)
        return parse_wanted(p, "no role (inputs, states and results of a graph have one)");
    TRY(parse_role(p, n->op == OP_state ? ROLES_OF_STATES : ROLES_OF_INPUTS, &mark, &said));
    node_set_role(n, mark.role, mark.of);
    if (said)
        map_put_u64(&parse_level(p)->says_roles, (uintptr_t)n, NULL);
    return OK;
}

static Status mark_stored(Parser *p, Node *n)
{
    const char *stored = NULL;
    if (n->op != OP_state)
        return parse_wanted(p, "no stored= (states are stored)");
    TRY(parse_string_mark(p, &stored));
    node_set_stored(n, stored);
    return OK;
}

Status parse_marks(Parser *p, Node *n)
{
    uint16_t flag;
    for (;;) {
        if (parse_at_sign(p, '!'))
            TRY(parse_node_number(p, &n->src));
        else if (parse_at_word(p, "side"))
            TRY(mark_side(p, n));
        else if (parse_at_word(p, "node"))
            TRY(parse_string_mark(p, &n->label));
        else if (parse_at_role(p))
            TRY(mark_role(p, n));
        else if (parse_at_word(p, "stored"))
            TRY(mark_stored(p, n));
        else if (at_flag(p, &flag)) {
            n->flags |= flag;
            TRY(parse_next(p));
        } else
            return OK;
    }
}

Status parse_name_and_type(Parser *p, Token *name, const Type **type)
{
    *name = p->token;
    if (!parse_at_value(p))
        return parse_wanted(p, "a value");
    TRY(parse_next(p));
    TRY(parse_sign(p, ':'));
    return parse_type(p, type);
}

Status parse_count_node(Parser *p, const Token *t)
{
    if (p->nodes++ == p->ir->limits.nodes)
        return parse_limit(p, t, "nodes", p->ir->limits.nodes, "nodes");
    return OK;
}

/* const %k: f32[2] = [1, 2]   param %p: f32[2] = @blob("w") */
static Status value_statement(Parser *p, Op op)
{
    Token name;
    const Type *type;
    ValueAttr attr = { 0 };
    TRY(parse_next(p));
    TRY(parse_name_and_type(p, &name, &type));
    if (parse_at_sign(p, '=')) {
        TRY(parse_next(p));
        TRY(parse_payload(p, type, &attr.value));
    }
    TRY(parse_count_node(p, &name));
    Node *n = graph_insert(parse_level(p)->graph, NULL, op, type, 0, NULL);
    n->attr = attrs_copy(p->arena, op_of(n)->attrs, &attr);
    TRY(parse_define(p, &name, n));
    return parse_marks(p, n);
}

static bool is_statement_word(Op op)
{
    return op == OP_input || op == OP_state || op == OP_const || op == OP_param || op == OP_return;
}

static Status find_word(Parser *p, Op *op)
{
    const Token *t = &p->token;
    const MapEntry *e = t->kind == TOKEN_WORD ? map_find_n(&p->words, t->text.p, t->text.n) : NULL;
    if (e && !is_statement_word((Op)e->value.u)) {
        *op = (Op)e->value.u;
        return parse_next(p);
    }
    if (t->kind != TOKEN_WORD || e)
        return parse_wanted(p, "an operator");
    const OpTable *ops = p->ir->ops;
    const char **words = NEWS(&p->scratch, const char *, ops->n);
    for (size_t i = 0; i < ops->n; i++)
        words[i] = ops->defs[i]->name;
    const char *word = arena_copy(&p->scratch, t->text.p, t->text.n), *near = str_nearest(word, words, ops->n);
    Message *m = message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, t), "no operator is called %s", word);
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

static Status unknown_attr(Parser *p, const OpDef *def)
{
    const char *words[64];
    size_t n = 0;
    for (const AttrSpec *s = def->attrs; s && s->kind != ATTR_END && n < COUNT(words); s++)
        words[n++] = s->name;
    const char *word = arena_copy(&p->scratch, p->token.text.p, p->token.text.n), *near = str_nearest(word, words, n);
    Message *m = message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, &p->token), "%s has no attribute %s",
                             def->name, word);
    if (near)
        message_try(m, "%s=", near);
    return message_send(m);
}

static Status named_attr(Parser *p, const OpDef *def, void *attr, uint64_t *seen)
{
    const AttrSpec *s = attr_find(def->attrs, p->token.text);
    if (!s)
        return unknown_attr(p, def);
    const uint64_t bit = (uint64_t)1 << (s - def->attrs) % 64;
    if (*seen & bit)
        return fail(p->ir->diag, parse_place(p, &p->token), "%s is given twice", s->name);
    *seen |= bit;
    TRY(parse_next(p));
    TRY(parse_sign(p, '='));
    return parse_attr(p, s, attr);
}

static Status operand(Parser *p)
{
    Node *n;
    if (p->n_operands == (size_t)p->ir->limits.node_io)
        return parse_limit(p, &p->token, "operands", p->ir->limits.node_io, "node_io");
    TRY(parse_find_value(p, &p->token, &n));
    GROW(&p->scratch, p->operands, p->n_operands, p->cap_operands);
    p->operands[p->n_operands++] = n;
    return parse_next(p);
}

/* Operands come first, then attributes. */
static Status arguments(Parser *p, const OpDef *def, void *attr, uint64_t *seen)
{
    bool first = true, attrs = false;
    p->n_operands = 0;
    TRY(parse_sign(p, '('));
    while (!parse_at_sign(p, ')')) {
        if (!first)
            TRY(parse_sign(p, ','));
        first = false;
        if (!attrs && (parse_at_value(p) || parse_at_word(p, "_"))) {
            TRY(operand(p));
        } else if (p->token.kind == TOKEN_WORD) {
            attrs = true;
            TRY(named_attr(p, def, attr, seen));
        } else {
            return parse_wanted(p, attrs ? "an attribute" : "a value or an attribute");
        }
    }
    return parse_next(p);
}

static Status all_required(Parser *p, const OpDef *def, const Token *at, uint64_t seen)
{
    for (const AttrSpec *s = def->attrs; s && s->kind != ATTR_END; s++)
        if (s->required && !(seen & (uint64_t)1 << (s - def->attrs) % 64))
            return fail(p->ir->diag, parse_place(p, at), "%s needs %s=", def->name, s->name);
    return OK;
}

static Status call_statement(Parser *p)
{
    Token name;
    const Type *type;
    Op op = OP_opaque;
    uint64_t seen = 0;
    TRY(parse_name_and_type(p, &name, &type));
    TRY(parse_sign(p, '='));
    const Token word = p->token;
    TRY(find_word(p, &op));
    const OpDef *def = p->ir->ops->defs[op];
    void *attr = attrs_default(p->arena, def->attrs);
    TRY(arguments(p, def, attr, &seen));
    TRY(all_required(p, def, &word, seen));
    TRY(parse_count_node(p, &name));
    Node *n = graph_insert(parse_level(p)->graph, NULL, op, type, (int)p->n_operands, p->operands);
    n->attr = attr;
    TRY(parse_define(p, &name, n));
    if (!parse_at_sign(p, '{'))
        return parse_marks(p, n);
    parse_level(p)->owner = n;
    parse_level(p)->n_regions = 0;
    return parse_open_region(p);
}

Status parse_statement(Parser *p)
{
    if (parse_at_word(p, "const"))
        return value_statement(p, OP_const);
    if (parse_at_word(p, "param"))
        return value_statement(p, OP_param);
    if (parse_at_word(p, "origin"))
        return parse_origin(p);
    return parse_at_value(p) ? call_statement(p) : parse_wanted(p, "a statement or }");
}
