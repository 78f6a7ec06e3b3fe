#include "api/select.h"

#include <ctype.h>
#include <regex.h>
#include <string.h>

#include "api/words.h"
#include "ops/path.h"

typedef struct Expression {
    regex_t regex;
    Cleanup cleanup;
} Expression;

static void free_expression(void *thing)
{
    regfree(thing);
}

static Place place_of(const char *option)
{
    return (Place){ .where = option, .byte = -1 };
}

static bool is_parameter(const Node *n)
{
    return n->op == OP_param || n->op == OP_state;
}

static bool hits(const regex_t *e, const char *name)
{
    return name && regexec(e, name, 0, NULL, 0) == 0;
}

/* A parameter is also known by the nodes that read it. */
static bool readers_hit(const regex_t *e, const Node *n)
{
    for (const Use *u = is_parameter(n) ? n->uses : NULL; u; u = u->next)
        if (hits(e, u->user->label))
            return true;
    return false;
}

static bool node_hits(const regex_t *e, const Map *paths, const Node *n)
{
    return hits(e, n->label) || hits(e, n->name) || (is_parameter(n) && hits(e, path_name(paths, n))) ||
           readers_hit(e, n);
}

static bool has_op(Arena *a, const Node *n, const char *op)
{
    return strcmp(op_of(n)->name, op) == 0 || strcmp(op_title(a, n), op) == 0;
}

static void add(qcc_model *m, Selection *s, Node *n)
{
    GROW(&m->cx->scratch, s->nodes, s->n, s->cap);
    s->nodes[s->n++] = n;
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

static Status nothing_matches(qcc_model *m, const Map *paths, const char *option, const char *selector, bool by_op)
{
    Near near = { .n = 0 };
    Arena *a = &m->cx->scratch;
    const char *wanted = by_op ? selector + 3 : letters(a, selector);
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n)) {
        if (by_op) {
            consider(&near, wanted, op_of(n)->structural && n->op != OP_opaque ? NULL : op_title(a, n));
            continue;
        }
        consider(&near, wanted, n->label);
        consider(&near, wanted, is_parameter(n) ? path_name(paths, n) : n->name);
    }
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE, "%s '%s' matches no %s", option, selector,
                               by_op ? "operator" : "parameter, path name or node");
    Text list;
    text_open(&list, a);
    for (int i = 0; i < near.n; i++)
        text_printf(&list, "%s%s%s", i ? ", " : "", by_op ? "op:" : "", near.name[i]);
    if (near.n)
        message_try(msg, "%s", text_get(&list));
    return message_send(msg);
}

Status select_nodes(qcc_model *m, const Map *paths, const char *option, const char *selector, Selection *selection)
{
    const bool by_op = strncmp(selector, "op:", 3) == 0;
    Expression e;
    *selection = (Selection){ 0 };
    if (!by_op) {
        const int error = regcomp(&e.regex, selector, REG_EXTENDED | REG_NOSUB);
        if (error) {
            char why[128];
            regerror(error, &e.regex, why, sizeof why);
            return fail_as(&m->cx->diag, USAGE, place_of(option), "'%s' is no regular expression: %s", selector, why);
        }
        cleanup_push(&m->cx->memory, &e.cleanup, free_expression, &e.regex);
    }
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
        if (by_op ? has_op(&m->cx->scratch, n, selector + 3) : node_hits(&e.regex, paths, n))
            add(m, selection, n);
    if (!by_op) {
        cleanup_drop(&e.cleanup);
        regfree(&e.regex);
    }
    if (!selection->n)
        return nothing_matches(m, paths, option, selector, by_op);
    remark(&m->cx->diag, "select", NOWHERE, "%s '%s' matches %zu", option, selector, selection->n);
    return OK;
}
