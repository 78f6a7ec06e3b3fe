#include "api/make/launches.h"

const char *launch_kind(const Launch *l)
{
    return launch_word(l);
}

double launch_bytes(const ProgramValue *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        size_t bytes = 0;
        if (values[i].home != HOME_NONE && type_bytes(values[i].type, &bytes))
            sum += (double)bytes;
    }
    return sum;
}

/* The operators of a region, each once, in their order. */
static void tell_region(Text *to, const Graph *body)
{
    enum { MOST = 8 };
    const OpDef *told[MOST];
    int n = 0;
    for (const Node *i = body->first; i; i = i->next) {
        const OpDef *d = op_of(i);
        bool known = node_is_return(i) || node_is_input(i) || i->op == OP_const;
        for (int k = 0; k < n && !known; k++)
            known = told[k] == d;
        if (known)
            continue;
        if (n == MOST) {
            text_add(to, " ..");
            return;
        }
        told[n++] = d;
        text_printf(to, " %s", d->name);
    }
}

const char *launch_words(Arena *arena, const Program *p, int launch, int n)
{
    Text text;
    const Launch *l = &p->launches[launch];
    const char *name = l->node->name;
    text_open(&text, arena);
    text_add(&text, launch_kind(l));
    if (l->tape)
        tell_region(&text, l->node->regions[0]);
    for (const Use *u = l->node->uses; u && !name; u = u->next)
        name = u->user->op == OP_part ? u->user->name : NULL;
    if (name)
        text_printf(&text, "  %s", name);
    if (l->n_out)
        text_printf(&text, "  %s", type_text(arena, l->out[0].type));
    if (l->n_out > 1)
        text_printf(&text, " and %d more", l->n_out - 1);
    if (n > 1)
        text_printf(&text, "; %d beside it", n - 1);
    return text_get(&text);
}
