#include "ir/text/parse.h"

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "ir/text/literal.h"
#include "ir/text/parser.h"

/* ---- tokens ---- */

Status parse_next(Parser *p)
{
    return lexer_next(&p->lexer, &p->token);
}

Place parse_place(Parser *p, const Token *t)
{
    return text_place(p->ir->arena, p->lexer.text, p->lexer.file, t->at, t->line);
}

const char *parse_shown(Parser *p, const Token *t)
{
    enum { SHOWN = 40 };
    const bool whole = t->n <= SHOWN;
    return arena_printf(p->ir->arena, "%.*s%s", (int)(whole ? t->n : SHOWN), t->at, whole ? "" : "...");
}

Status parse_wanted(Parser *p, const char *what)
{
    const Token *t = &p->token;
    if (t->kind == TOKEN_END)
        return fail(p->ir->diag, parse_place(p, t), "%s is missing at the end of the text", what);
    return fail(p->ir->diag, parse_place(p, t), "%s is wanted here, not %s", what, parse_shown(p, t));
}

bool parse_at_sign(const Parser *p, char sign)
{
    return p->token.kind == TOKEN_SIGN && p->token.sign == sign;
}

bool parse_at_word(const Parser *p, const char *word)
{
    return p->token.kind == TOKEN_WORD && str_is(p->token.text, word);
}

Status parse_sign(Parser *p, char sign)
{
    const char text[] = { '\'', sign, '\'', 0 };
    return parse_at_sign(p, sign) ? parse_next(p) : parse_wanted(p, text);
}

Status parse_integer(Parser *p, int64_t *value)
{
    if (p->token.kind != TOKEN_NUMBER || !literal_read_i64(p->token.text, value))
        return parse_wanted(p, "an integer of 64 bits");
    return parse_next(p);
}

Status parse_limit(Parser *p, const Token *t, const char *what, int64_t limit, const char *name)
{
    return fail(p->ir->diag, parse_place(p, t), "%s: more than %" PRId64 " (limit %s)", what, limit, name);
}

/* ---- graphs and regions ---- */

static Status signature_item(Parser *p)
{
    Token name;
    const Type *type;
    StateAttr attr = { 0 };
    Graph *g = parse_level(p)->graph;
    const bool state = parse_at_word(p, "state");
    if (state)
        TRY(parse_next(p));
    TRY(parse_name_and_type(p, &name, &type));
    if (state && parse_at_sign(p, '=')) {
        TRY(parse_next(p));
        TRY(parse_payload(p, type, &attr.value));
    }
    TRY(parse_count_node(p, &name));
    Node *n = state ? graph_state(g, NULL, type, &attr) : graph_input(g, NULL, type);
    TRY(parse_define(p, &name, n));
    return parse_marks(p, n);
}

static Status result_role(Parser *p, NamedResult *r)
{
    while (parse_at_role(p))
        TRY(parse_role(p, ROLES_OF_RESULTS, &r->mark, &r->says_role));
    return OK;
}

static Status result_item(Parser *p)
{
    NamedResult r = { 0 };
    if (!parse_at_value(p) && !parse_at_word(p, "_"))
        return parse_wanted(p, "a value");
    r.value = p->token;
    TRY(parse_next(p));
    if (parse_at_sign(p, '=') && r.value.kind == TOKEN_VALUE) {
        r.name = parse_interned(p, &r.value);
        TRY(parse_next(p));
        if (!parse_at_value(p) && !parse_at_word(p, "_"))
            return parse_wanted(p, "a value");
        r.value = p->token;
        TRY(parse_next(p));
    }
    TRY(result_role(p, &r));
    if (p->n_results == (size_t)p->ir->limits.node_io)
        return parse_limit(p, &p->token, "results", p->ir->limits.node_io, "node_io");
    GROW(&p->scratch, p->results, p->n_results, p->cap_results);
    p->results[p->n_results++] = r;
    return OK;
}

static Status list_of(Parser *p, Status (*item)(Parser *p))
{
    bool first = true;
    TRY(parse_sign(p, '('));
    while (!parse_at_sign(p, ')')) {
        if (!first)
            TRY(parse_sign(p, ','));
        first = false;
        TRY(item(p));
    }
    return parse_next(p);
}

static Status open_level(Parser *p, Graph *g)
{
    if ((int64_t)p->depth == p->ir->limits.graph_nesting)
        return parse_limit(p, &p->token, "graphs inside each other", p->ir->limits.graph_nesting, "graph_nesting");
    Level *l = NEW(&p->scratch, Level);
    l->graph = g;
    map_open(&l->names, &p->scratch);
    map_open(&l->says_roles, &p->scratch);
    GROW(&p->scratch, p->levels, p->depth, p->cap_levels);
    p->levels[p->depth++] = l;

    p->n_results = 0;
    TRY(list_of(p, signature_item));
    if (p->token.kind != TOKEN_ARROW)
        return parse_wanted(p, "->");
    TRY(parse_next(p));
    TRY(list_of(p, result_item));
    l->n_results = p->n_results;
    l->results = NEWS(&p->scratch, NamedResult, p->n_results);
    if (p->n_results)
        memcpy(l->results, p->results, p->n_results * sizeof *p->results);
    return OK;
}

Status parse_open_region(Parser *p)
{
    Level *l = parse_level(p);
    Graph *region = region_new(l->graph);
    TRY(parse_next(p));
    GROW(&p->scratch, l->regions, l->n_regions, l->cap_regions);
    l->regions[l->n_regions++] = region;
    return open_level(p, region);
}

static Status resolve_results(Parser *p)
{
    const Level *l = parse_level(p);
    Node **values = NEWS(&p->scratch, Node *, l->n_results);
    const char **names = NEWS(&p->scratch, const char *, l->n_results);
    RoleMark *marks = NEWS(&p->scratch, RoleMark, l->n_results);
    for (size_t i = 0; i < l->n_results; i++) {
        TRY(parse_find_value(p, &l->results[i].value, &values[i]));
        names[i] = l->results[i].name ? l->results[i].name : values[i] ? values[i]->name : NULL;
        marks[i] = l->results[i].mark;
        if (p->depth == 1 && !l->results[i].says_role)
            marks[i] = role_by_name(ROLES_OF_RESULTS, names[i]);
    }
    graph_return_marked(l->graph, (int)l->n_results, values, names, marks);
    if (p->depth == 1)
        parse_settle_roles(l);
    return OK;
}

/* At the bracket that ends a graph or region. */
static Status close_level(Parser *p)
{
    TRY(resolve_results(p));
    TRY(parse_next(p));
    p->depth--;
    if (!p->depth)
        return OK;
    Level *l = parse_level(p);
    if (parse_at_sign(p, '{'))
        return parse_open_region(p);
    node_set_regions(l->owner, (int)l->n_regions, l->regions);
    return parse_marks(p, l->owner);
}

static Status graph(Parser *p)
{
    if (!parse_at_word(p, "graph"))
        return parse_wanted(p, "graph");
    TRY(parse_next(p));
    const Token name = p->token;
    if (name.kind != TOKEN_NAME)
        return parse_wanted(p, "@name");
    TRY(parse_next(p));
    const char *text = name.text.n ? name_of(&p->ir->names, name.text.p, name.text.n) : NULL;
    if (text && module_graph(p->module, text))
        return fail(p->ir->diag, parse_place(p, &name), "@%s is defined twice", text);
    Graph *g = graph_new(p->ir, p->arena, text);
    if (p->source) {
        const size_t n = p->module->n_graphs;
        p->source->lines = arena_grow(p->source->arena, p->source->lines, n, n + 1, sizeof *p->source->lines);
        p->source->lines[n] = facts_open(p->source->arena, sizeof(SourceLine));
    }
    TRY(open_level(p, g));
    TRY(parse_sign(p, '{'));
    while (p->depth)
        TRY(parse_at_sign(p, '}') ? close_level(p) : parse_statement(p));
    module_add(p->module, g);
    return OK;
}

static Status graphs(Parser *p)
{
    const OpTable *ops = p->ir->ops;
    map_open(&p->words, &p->scratch);
    for (size_t i = 0; i < ops->n; i++)
        map_put(&p->words, ops->defs[i]->name, NULL)->value.u = i;
    TRY(parse_next(p));
    while (p->token.kind != TOKEN_END)
        TRY(graph(p));
    return p->module->n_graphs ? OK : parse_wanted(p, "a graph");
}

Status parse_module(Ir *ir, Arena *arena, Str text, const char *file, Blobs *blobs, SourceMap *source, Module **module)
{
    Parser p = { .ir = ir, .arena = arena, .module = module_new(ir, arena), .source = source, .blobs = blobs };
    arena_open(&p.scratch, ir->memory);
    lexer_open(&p.lexer, arena, ir->diag, &ir->limits, text, file);
    p.module->file = file;
    if (source)
        *source = (SourceMap){ .arena = arena, .text = text, .file = file, .module = p.module };
    const Status status = graphs(&p);
    arena_close(&p.scratch);
    *module = status == OK ? p.module : NULL;
    return status;
}

Status parse_file(Ir *ir, Arena *arena, const char *path, SourceMap *source, Module **module)
{
    Str text;
    Blobs blobs;
    const char *beside = arena_printf(arena, "%s.safetensors", path);
    TRY(file_read(arena, ir->diag, path, ir->limits.model_bytes, "model_bytes", &text));
    blobs_open(&blobs, arena);
    if (file_exists(beside))
        TRY(blobs_read(&blobs, ir, beside));
    return parse_module(ir, arena, text, arena_string(arena, path), &blobs, source, module);
}

Place source_map_place(SourceMap *s, const Node *n)
{
    for (size_t i = 0; s && i < s->module->n_graphs; i++) {
        const SourceLine *line = s->module->graphs[i] == n->graph->root ? fact(&s->lines[i], n) : NULL;
        if (line && line->at)
            return text_place(n->graph->ir->arena, s->text, s->file, line->at, line->line);
    }
    return node_place(n);
}
