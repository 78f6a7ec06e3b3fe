/* Roles of inputs, states and results in text. */
#include <string.h>

#include "ir/text/parser.h"

bool parse_at_role(const Parser *p)
{
    return parse_at_word(p, "role") || parse_at_word(p, "of");
}

static Status unknown_role(Parser *p, RoleKind kind)
{
    const char *const *words = role_words(kind);
    size_t n = 0;
    while (words[n])
        n++;
    const char *word = arena_copy(&p->scratch, p->token.text.p, p->token.text.n), *near = str_nearest(word, words, n);
    Message *m =
        message_new(p->ir->diag, SEVERITY_ERROR, INVALID, parse_place(p, &p->token), "no role is called %s", word);
    if (near)
        message_try(m, "%s", near);
    return message_send(m);
}

static Status role_word(Parser *p, RoleKind kind, int *role)
{
    const char *const *words = role_words(kind);
    if (p->token.kind != TOKEN_WORD)
        return parse_wanted(p, "a role");
    for (int i = 0; words[i]; i++)
        if (parse_at_word(p, words[i])) {
            *role = i;
            return parse_next(p);
        }
    return unknown_role(p, kind);
}

Status parse_role(Parser *p, RoleKind kind, RoleMark *mark, bool *says)
{
    const bool role = parse_at_word(p, "role");
    TRY(parse_next(p));
    TRY(parse_sign(p, '='));
    if (role) {
        *says = true;
        return role_word(p, kind, &mark->role);
    }
    if (p->token.kind != TOKEN_VALUE)
        return parse_wanted(p, "the name of a value");
    mark->of = parse_interned(p, &p->token);
    return parse_next(p);
}

void parse_settle_roles(const Level *l)
{
    const Graph *g = l->graph;
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *n = g->inputs[i];
        const RoleKind kind = n->op == OP_state ? ROLES_OF_STATES : ROLES_OF_INPUTS;
        const RoleMark mark = role_by_name(kind, n->name);
        if (mark.role && !map_find_u64(&l->says_roles, (uintptr_t)n))
            node_set_role(n, mark.role, mark.of);
    }
}
