#include "api/model/census.h"

#include <stdlib.h>
#include <string.h>

#include "api/hall/words.h"

static bool is_cast(Str op)
{
    return str_is(op, "Cast") || str_is(op, "CastLike");
}

static void count(Census *c, Arena *arena, const char *op)
{
    MapEntry *e = map_find(&c->ops, op);
    if (!e)
        e = map_put(&c->ops, arena_string(arena, op), NULL);
    e->value.i++;
    c->nodes++;
    c->casts += is_cast(str(op));
    c->norms += strcmp(op, "BatchNormalization") == 0;
    c->dropouts += strcmp(op, "Dropout") == 0;
}

/* Graphs that wait to be counted: bodies are found on the way, so no recursion. */
typedef struct Waiting {
    const Onnx__GraphProto **graphs;
    size_t n, cap;
} Waiting;

static void add(Waiting *w, Arena *arena, const Onnx__GraphProto *g)
{
    GROW(arena, w->graphs, w->n, w->cap);
    w->graphs[w->n++] = g;
}

static bool is_training(const Onnx__NodeProto *n, const Onnx__AttributeProto *a)
{
    return str_is(str_of(n->op_type), "BatchNormalization") && str_is(str_of(a->name), "training_mode") && a->i == 1;
}

static void count_node(Census *c, Arena *arena, Waiting *w, const Onnx__NodeProto *n)
{
    const Str domain = str_of(n->domain), op = str_of(n->op_type);
    if (domain.n && !str_is(domain, "ai.onnx"))
        count(c, arena, arena_printf(arena, "%.*s.%.*s", STR_ARG(domain), STR_ARG(op)));
    else
        count(c, arena, arena_copy(arena, op.p, op.n));
    c->training += str_is(op, "Dropout") && n->n_input > 2 && n->input[2].len;
    c->trained_norms += str_is(op, "BatchNormalization") && n->n_output > 1;
    for (size_t i = 0; i < n->n_attribute; i++) {
        const Onnx__AttributeProto *a = n->attribute[i];
        c->training += is_training(n, a);
        c->trained_norms += is_training(n, a) && n->n_output <= 1; /* the others are counted */
        if (a->g)
            add(w, arena, a->g);
        for (size_t k = 0; k < a->n_graphs; k++)
            add(w, arena, a->graphs[k]);
    }
}

Census census_of(qcc_model *m, Arena *arena)
{
    Census c = { .nodes = 0 };
    map_open(&c.ops, arena);
    if (!m->has_spine) {
        for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n))
            if (!op_of(n)->structural || n->op == OP_opaque)
                count(&c, arena, op_title(arena, n));
        return c;
    }
    Waiting w = { NULL, 0, 0 };
    add(&w, arena, m->spine.model->graph);
    for (size_t at = 0; at < w.n; at++) {
        const Onnx__GraphProto *g = w.graphs[at];
        for (size_t i = 0; i < g->n_node; i++)
            count_node(&c, arena, &w, g->node[i]);
    }
    for (size_t i = 0; i < m->spine.model->n_functions; i++)
        for (size_t k = 0; k < m->spine.model->functions[i]->n_node; k++)
            c.casts += is_cast(str_of(m->spine.model->functions[i]->node[k]->op_type));
    return c;
}

static int by_count(const void *a, const void *b)
{
    const OpCount *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return strcmp(x->op, y->op);
}

const OpCount *census_sorted(const Census *c, Arena *arena)
{
    OpCount *list = NEWS(arena, OpCount, c->ops.n + 1);
    for (size_t i = 0; i < c->ops.n; i++)
        list[i] = (OpCount){ c->ops.entries[i].key, c->ops.entries[i].value.i };
    if (c->ops.n)
        qsort(list, c->ops.n, sizeof *list, by_count);
    return list;
}

int64_t census_count(const Census *c, const char *op)
{
    const MapEntry *e = map_find(&c->ops, op);
    return e ? e->value.i : 0;
}
