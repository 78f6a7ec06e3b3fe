#include "passes/recipe/selector.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "ir/aliases.h"
#include "ir/own_names.h"
#include "ops/card/path.h"
#include "ops/card/words.h"

const char *selector_op(const char *text)
{
    return strncmp(text, "op:", 3) == 0 ? text + 3 : NULL;
}

const char *selector_of(Arena *arena, const Node *call)
{
    const char *name = call->label ? call->label : call->name;
    return name ? pattern_exact(arena, name) : NULL;
}

/* Signs are shown where they stand; long patterns without. */
static Place place_of(const Selector *s, const PatternFault *fault)
{
    enum { WIDEST = 200 };
    Place p = { .where = s->option, .byte = -1, .column = 1 };
    for (size_t i = 0; i < fault->at; i++)
        p.column += ((unsigned char)s->text[i] & 0xc0) != 0x80;
    p.source = strlen(s->text) <= WIDEST ? s->text : NULL;
    return p;
}

static Status is_none(const Selector *s, const PatternFault *fault, int64_t most)
{
    Message *m = fault->is_large ? message_new(s->diag, SEVERITY_ERROR, USAGE, place_of(s, fault),
                                               "the selector exceeds the limit selector_states (%" PRId64 ")", most)
                                 : message_new(s->diag, SEVERITY_ERROR, USAGE, place_of(s, fault),
                                               "'%s' is no selector: %s", s->text, fault->what);
    if (fault->is_large)
        message_try(m, "smaller counts, or --limits FILE with selector_states=%" PRId64, 10 * most);
    else if (fault->instead)
        message_try(m, "%s", fault->instead);
    return message_send(m);
}

Status selector_open(Selector *s, Graph *g, Arena *arena, const Map *paths, const char *option, const char *text)
{
    PatternFault fault;
    const int64_t most = g->ir->limits.selector_states;
    *s = (Selector){ .option = option, .text = text, .diag = g->ir->diag, .arena = arena, .paths = paths };
    s->op = selector_op(text);
    if (s->op)
        return OK;
    arena_open(&s->own, g->ir->memory);
    s->pattern = pattern_read(&s->own, text, most, &fault);
    if (s->pattern)
        return OK;
    arena_close(&s->own);
    return is_none(s, &fault, most);
}

void selector_close(Selector *s)
{
    if (!s->op)
        arena_close(&s->own);
}

static bool is_parameter(const Node *n)
{
    return n->op == OP_param || n->op == OP_state;
}

static bool matches(const Selector *s, const char *name)
{
    return name && pattern_finds(s->pattern, name);
}

static bool has_op(const Selector *s, const Node *n)
{
    return strcmp(op_of(n)->name, s->op) == 0 || strcmp(op_title(s->arena, n), s->op) == 0;
}

static bool only_moves(const Node *reader, const Use *use)
{
    const OpDef *def = op_of(reader);
    return use == reader->in && !def->structural && op_moves(def);
}

/* Whether a reader of the parameter is meant, also one that reads what a few moves made of it. */
static bool takes_reader(const Selector *s, const Node *n)
{
    enum { FARTHEST = 4 };
    const Node *value = n;
    for (int hop = 0; value && hop < FARTHEST; hop++) {
        const Node *moved = NULL;
        for (const Use *u = value->uses; u; u = u->next) {
            if (s->op ? has_op(s, u->user) : matches(s, u->user->label))
                return true;
            if (only_moves(u->user, u))
                moved = u->user;
        }
        value = moved;
    }
    return false;
}

static bool matches_alias(const Selector *s, const Node *n)
{
    for (const char *const *alias = is_parameter(n) ? aliases_of(n) : NULL; alias && *alias; alias++)
        if (matches(s, *alias))
            return true;
    return false;
}

bool selector_names(const Selector *s, const Node *n)
{
    return !s->op && (matches(s, n->name) || matches(s, path_name(s->paths, n)) || matches(s, name_in_file(n)) ||
                      matches_alias(s, n));
}

bool selector_takes_parameter(const Selector *s, const Node *n)
{
    return selector_names(s, n) || takes_reader(s, n);
}

bool selector_takes(const Selector *s, const Node *n)
{
    if (s->op)
        return has_op(s, n);
    return matches(s, n->label) || matches(s, n->name) || matches(s, node_module(n)) ||
           (is_parameter(n) && selector_takes_parameter(s, n));
}

/* ---- the nearest names ---- */

enum { NEAREST = 3 };

typedef struct Near {
    const char *name[NEAREST];
    int distance[NEAREST];
    int n;
} Near;

/* The letters that an expression means, without its signs. */
static const char *letters(Arena *a, const char *selector)
{
    Text t;
    text_open(&t, a);
    text_add(&t, "");
    for (const char *p = selector; *p; p++)
        if (isalnum((unsigned char)*p) || strchr("._/:-", *p))
            text_char(&t, *p);
    return text_get(&t);
}

static void consider(Near *near, const char *wanted, const char *name)
{
    enum { MOST = 40 };
    if (!name)
        return;
    for (int i = 0; i < near->n; i++)
        if (strcmp(near->name[i], name) == 0)
            return;
    const int d = str_distance(wanted, name, MOST);
    int at = near->n < NEAREST ? near->n++ : NEAREST;
    if (d > MOST || (at == NEAREST && near->distance[NEAREST - 1] <= d)) {
        near->n -= at < NEAREST;
        return;
    }
    at = at == NEAREST ? NEAREST - 1 : at;
    for (; at > 0 && near->distance[at - 1] > d; at--) {
        near->name[at] = near->name[at - 1];
        near->distance[at] = near->distance[at - 1];
    }
    near->name[at] = name;
    near->distance[at] = d;
}

static void consider_node(const Selector *s, Near *near, const char *wanted, const Node *n, bool parameters)
{
    if (parameters && (!is_parameter(n) || !dtype_is_float(n->type->dtype)))
        return;
    if (s->op && !parameters) {
        consider(near, wanted, op_of(n)->structural && !node_is_opaque(n) ? NULL : op_title(s->arena, n));
        return;
    }
    if (s->op) {
        for (const Use *u = n->uses; u; u = u->next)
            consider(near, wanted, op_of(u->user)->structural ? NULL : op_title(s->arena, u->user));
        return;
    }
    consider(near, wanted, parameters ? NULL : n->label);
    consider(near, wanted, is_parameter(n) ? path_name(s->paths, n) : n->name);
}

/* What is meant by a name that no parameter has. */
static const char *instead_of(const Selector *s)
{
    if (strcmp(s->option, "--freeze") != 0)
        return NULL;
    if (strncmp(s->text + (s->text[0] == '^'), RANGE_PREFIX, strlen(RANGE_PREFIX) - 1) == 0)
        return "--freeze-ranges 0: ranges of data stay as they are calibrated";
    return strstr(s->text, "step_size") ? "--group 'step_size:lr=0': learned scales stay as they are" : NULL;
}

Status selector_missed(const Selector *s, Graph *g, bool parameters)
{
    Near near = { .n = 0 };
    const char *wanted = s->op ? s->op : letters(s->arena, s->text);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (is_parameter(g->inputs[i]))
            consider_node(s, &near, wanted, g->inputs[i], parameters);
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        consider_node(s, &near, wanted, n, parameters);
    Message *m = message_new(s->diag, SEVERITY_ERROR, USAGE, NOWHERE, "%s '%s' matches no %s", s->option, s->text,
                             s->op ? "operator" : "parameter, path name or node");
    Text list;
    text_open(&list, s->arena);
    for (int i = 0; i < near.n; i++)
        text_printf(&list, "%s%s%s", i ? ", " : "", s->op ? "op:" : "", near.name[i]);
    if (instead_of(s))
        message_try(m, "%s", instead_of(s));
    else if (near.n)
        message_try(m, "%s", text_get(&list));
    return message_send(m);
}
