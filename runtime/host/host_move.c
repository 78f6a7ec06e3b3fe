/* How values move from one place to another, all or none.
 *
 * What can fail comes first: values are held, or room is made for their copies.  Then graphs make what they left for
 * last, then all is there and nothing fails any more. */
#include <string.h>

#include "runtime/host/host_parts.h"

Tensor *host_own_target(const Values *v, ValueAt to, const Type *type)
{
    Tensor *t = to.graph == KEPT ? v->kept[to.at] : NULL;
    return t && t->type == type && t->refs == 1 ? t : NULL;
}

/* Holds a value of ours; of another's memory says where its bytes are. */
static Moving take(const Tensor *t)
{
    if (t && t->refs >= LENT)
        return (Moving){ .from = t };
    return (Moving){ .value = t ? tensor_hold(t) : NULL };
}

/* Gives what is to be copied room, where the target is not it. */
static void make_room(Values *v, const ValueMove *move, Moving *m, const Type *type, bool in_place)
{
    Tensor *own = in_place ? host_own_target(v, move->to, type) : NULL;
    m->stays = own != NULL;
    m->value = own ? own : space_tensor(v->space, &v->heap, type);
}

int host_late_number(const Values *v, ValueAt from)
{
    const GraphRunner *r = from.graph == KEPT || from.at < 0 ? NULL : v->graphs[from.graph]->runner;
    return r && r->does->late ? r->does->late(r, from.at) : -1;
}

bool host_may_be_made_in(const Loaded *l, int late, ValueAt to)
{
    const int state = l->runner->does->made_over(l->runner, late), input = to.graph == KEPT ? l->reader[to.at] : -1;
    if (state < 0 || input < 0)
        return false;
    const bool reads =
        (size_t)input < l->x.graph->n_inputs && l->reads[input].graph == KEPT && l->reads[input].at == to.at;
    return !reads || input == state;
}

/* Lets the graph that left results for last make them; two moves of one result: the second is a copy. */
static Status make_late(Values *v, int graph, int n, const ValueMove *moves)
{
    GraphRunner *r = v->graphs[graph]->runner;
    const Graph *g = v->graphs[graph]->x.graph;
    bool any = false;
    memset(v->late, 0, (size_t)v->cap_late * sizeof *v->late);
    for (int i = 0; i < n; i++) {
        const int late = moves[i].from.graph == graph ? host_late_number(v, moves[i].from) : -1;
        if (late < 0)
            continue;
        Moving *m = &v->moving[i];
        const bool first = !v->late[late];
        make_room(v, &moves[i], m, graph_result(g, late)->type,
                  first && host_may_be_made_in(v->graphs[graph], late, moves[i].to));
        m->from = first ? NULL : v->late[late];
        if (first)
            v->late[late] = m->value;
        any = true;
    }
    return any ? r->does->make_late(r, v->late) : OK;
}

/* All that is moved is there, or nothing is. */
static Status gather(Values *v, int n, const ValueMove *moves)
{
    for (int i = 0; i < n; i++)
        v->moving[i] =
            host_late_number(v, moves[i].from) < 0 ? take(host_value(v, moves[i].from)) : (Moving){ .value = NULL };
    for (int i = 0; i < n; i++)
        if (v->moving[i].from)
            make_room(v, &moves[i], &v->moving[i], ((const Tensor *)v->moving[i].from)->type, true);
    for (int g = 0; g < v->n_graphs; g++)
        if (v->graphs[g])
            TRY(make_late(v, g, n, moves));
    return OK;
}

static void let_go(Values *v, int n)
{
    for (int i = 0; i < n; i++)
        if (v->moving[i].value && !v->moving[i].stays)
            host_drop(v, v->moving[i].value);
}

Status host_move(Values *v, int n, const ValueMove *moves)
{
    for (int i = 0; i < n; i++)
        if (moves[i].from.graph != KEPT && moves[i].from.at >= 0)
            TRY(host_answered(v->graphs[moves[i].from.graph]));
    host_expect_moves(v, n);
    const Status status = gather(v, n, moves);
    if (status != OK) {
        let_go(v, n);
        return status;
    }
    for (int i = 0; i < n; i++) {
        const Tensor *from = v->moving[i].from;
        if (from && from->bytes)
            space_copy(v->space, v->moving[i].value->data, from->data, from->bytes);
    }
    for (int i = 0; i < n; i++)
        if (!v->moving[i].stays)
            host_set_value(v, moves[i].to, v->moving[i].value);
    return space_status(v->space);
}
