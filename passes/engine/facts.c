/* The checkers of facts: what a pass claims, proved. */
#include <inttypes.h>

#include "passes/engine/pass.h"

static Status check_typed(Graph *g)
{
    Status status = OK;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const char *complaint = NULL;
        Arena *arena = g->ir->diag->arena;
        const Type *type = node_infer(n, &complaint);
        if (!type)
            status = fail(g->ir->diag, node_place(n), "%s %s", op_of(n)->name, complaint);
        else if (!type_agrees(type, n->type))
            status = fail(g->ir->diag, node_place(n), "%s gives %s, not %s", op_of(n)->name, type_text(arena, type),
                          type_text(arena, n->type));
    }
    return status;
}

/* From the end: a node lives when a result or a living reader reads it. */
static Facts living(Graph *g, Arena *scratch)
{
    Facts lives = facts_open(scratch, sizeof(bool));
    for (int i = 0; i < graph_n_results(g); i++)
        if (graph_result(g, i))
            *(bool *)fact(&lives, graph_result(g, i)) = true;
    for (Node *n = g->last; n; n = n->prev)
        for (int i = 0; *(bool *)fact(&lives, n) && i < n->n_in; i++)
            if (in(n, i))
                *(bool *)fact(&lives, in(n, i)) = true;
    return lives;
}

/* --shape x:32x3: what has to be chosen is a letter. */
static const char *shape_option(Arena *arena, const Node *n)
{
    Text t;
    text_open(&t, arena);
    text_printf(&t, "--shape %s:", n->name ? n->name : "NAME");
    for (int i = 0; i < n->type->rank; i++) {
        text_add(&t, i ? "x" : "");
        if (n->type->dims[i] < 0)
            text_char(&t, 'N');
        else
            text_printf(&t, "%" PRId64, n->type->dims[i]);
    }
    return text_get(&t);
}

static void name_inputs(Message *m, const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (n->type->kind == TYPE_TENSOR && !type_known(n->type))
            message_try(m, "%s", shape_option(g->ir->diag->arena, n));
    }
}

static Status check_shaped(Graph *g)
{
    Arena scratch;
    Message *m = NULL;
    arena_open(&scratch, g->ir->memory);
    Facts lives = living(g, &scratch);
    for (Node *n = g->first; n; n = n->next) {
        if (type_known(n->type) || !*(bool *)fact(&lives, n))
            continue;
        if (!m)
            m = message_new(g->ir->diag, SEVERITY_ERROR, INVALID, node_place(n),
                            "the shape of a value is not known: %s", type_text(g->ir->diag->arena, n->type));
        message_at(m, "%s: %s", node_place(n).where, type_text(g->ir->diag->arena, n->type));
    }
    arena_close(&scratch);
    if (!m)
        return OK;
    name_inputs(m, g);
    return message_send(m);
}

static Status check_chosen(Graph *g)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        if (n->op == OP_param)
            return fail(g->ir->diag, node_place(n), "a param is neither state nor const");
    return OK;
}

typedef struct FactRow {
    const char *name;
    Status (*check)(Graph *g);
} FactRow;

static const FactRow facts[] = {
#define FACT(name, check, what) { #name, check },
#include "passes/engine/facts.def"
#undef FACT
};

const char *fact_name(FactBit bit)
{
    return facts[bit].name;
}

Status facts_check(FactSet set, Graph *g)
{
    for (size_t i = 0; i < COUNT(facts); i++)
        if (set & 1u << i)
            TRY(facts[i].check(g));
    return OK;
}
