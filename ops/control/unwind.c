#include "ops/control/unwind.h"

#include "ir/copy.h"
#include "ops/card/make.h"

/* ---- bodies that compute gradients ---- */

BackBody back_open(Build *b, Arena *scratch, const Graph *forward)
{
    BackBody k = { .graph = region_new(b->graph) };
    k.in = build_at_end(k.graph);
    k.in.src = b->src;
    k.in.label = b->label;
    k.in.flags = b->flags;
    k.values = NEWS(scratch, Node *, forward->n_inputs + 1);
    return k;
}

static const Type *wide_type(Types *types, const Type *t)
{
    return t->kind == TYPE_TENSOR && dtype_is_float(t->dtype) ? type_with_dtype(types, t, make_width(t->dtype)) : t;
}

Node *back_input(BackBody *k, const Type *type)
{
    return graph_input(k->graph, NULL, wide_type(&k->graph->ir->types, type));
}

Node **back_through_body(BackBody *k, Build *b, const Site *s, Arena *scratch, const Graph *forward, int n_y,
                         const int *y, Node *const *dy, int n_x, Node *const *x)
{
    ReverseResult r;
    Node **results = NEWS(scratch, Node *, graph_n_results(forward) + 1), **reached = NEWS(scratch, Node *, n_y + 1);
    copy_body(&k->in, forward, k->values, results);
    for (int i = 0; i < n_y; i++)
        reached[i] = results[y[i]];
    const ReverseQuery q = { .n_y = n_y, .y = reached, .dy = dy, .n_x = n_x, .x = x };
    b->status = reverse(&k->in, &q, scratch, &r);
    if (b->status != OK)
        return NULL;
    reverse_tell(s, &r);
    return r.dx;
}

void back_close(BackBody *k, int n, Node *const *results)
{
    graph_return(k->graph, n, results, NULL);
    for (Node *at = k->graph->last, *before; at; at = before) {
        before = at->prev;
        if (!at->uses)
            node_remove(at);
    }
}

/* ---- if: an `if` whose branches compute the value again, and then its gradient ---- */

typedef struct Branch {
    BackBody back;
    Node **dx; /* of the captures; null: nothing reaches it */
} Branch;

static Branch open_branch(Build *b, const Site *s, Arena *scratch, int r)
{
    const Graph *forward = s->regions[r];
    const int n = s->n_in - 1;
    Branch k = { back_open(b, scratch, forward), NULL };
    Node **x = NEWS(scratch, Node *, n + 1), **dy = NEWS(scratch, Node *, s->n_out + 1);
    int *y = NEWS(scratch, int, s->n_out + 1), n_y = 0, n_x = 0;
    for (int i = 0; i < n; i++) {
        k.back.values[i] = graph_input(k.back.graph, forward->inputs[i]->name, forward->inputs[i]->type);
        if (s->want[1 + i])
            x[n_x++] = k.back.values[i];
    }
    for (int i = 0; i < s->n_out; i++)
        if (s->dout[i]) {
            y[n_y] = i;
            dy[n_y++] = back_input(&k.back, graph_result(forward, i)->type);
        }
    Node **dx = back_through_body(&k.back, b, s, scratch, forward, n_y, y, dy, n_x, x);
    k.dx = NEWS(scratch, Node *, n + 1);
    for (int i = 0, at = 0; dx && i < n; i++)
        k.dx[i] = s->want[1 + i] ? dx[at++] : NULL;
    return k;
}

/* What one branch does not reach is zero there. */
static int close_branches(const Site *s, Arena *scratch, Branch *branch, int *captures)
{
    int n_results = 0;
    for (int r = 0; r < 2; r++) {
        Node **results = NEWS(scratch, Node *, s->n_in);
        n_results = 0;
        for (int i = 0; i < s->n_in - 1; i++) {
            if (!branch[0].dx[i] && !branch[1].dx[i])
                continue;
            captures[n_results] = i;
            results[n_results++] =
                branch[r].dx[i] ? branch[r].dx[i] : make_zeros_like(&branch[r].back.in, branch[r].back.values[i]);
        }
        back_close(&branch[r].back, n_results, results);
    }
    return n_results;
}

void adjoint_if(Build *b, const Site *s, Node **dx)
{
    Arena scratch;
    Branch branch[2];
    arena_open(&scratch, b->graph->ir->memory);
    for (int r = 0; r < 2 && b->status == OK; r++)
        branch[r] = open_branch(b, s, &scratch, r);
    int *captures = NEWS(&scratch, int, s->n_in), n_results = 0;
    if (b->status == OK)
        n_results = close_branches(s, &scratch, branch, captures);
    if (n_results) {
        Graph *bodies[2] = { branch[0].back.graph, branch[1].back.graph };
        Node **ins = NEWS(&scratch, Node *, s->n_in + s->n_out);
        int n = 0;
        for (int i = 0; i < s->n_in; i++)
            ins[n++] = in(s->call, i);
        for (int i = 0; i < s->n_out; i++)
            if (s->dout[i])
                ins[n++] = s->dout[i];
        for (int i = n - 2; i >= 0; i--)
            if (!bodies[0]->inputs[i]->uses && !bodies[1]->inputs[i]->uses) {
                for (int r = 0; r < 2; r++)
                    graph_drop_input(bodies[r], (size_t)i);
                for (int k = i + 1; k < n - 1; k++)
                    ins[k] = ins[k + 1];
                n--;
            }
        for (int r = 0; r < 2; r++)
            b->status = branch[r].back.in.status != OK ? branch[r].back.in.status : b->status;
        Node *call = build_with_regions(b, OP_if, NULL, n, ins, n_results, 2, bodies);
        for (int i = 0; i < n_results; i++)
            dx[1 + captures[i]] = build_part(b, call, i);
    }
    arena_close(&scratch);
}

/* ---- calls that have a model ---- */

void adjoint_by_model(Build *b, const Site *s, Node **dx, void (*model)(Build *b, const Site *s, Node **y))
{
    Arena scratch;
    ReverseResult r;
    arena_open(&scratch, b->graph->ir->memory);
    Node **leaves = NEWS(&scratch, Node *, s->n_in + 1), **x = NEWS(&scratch, Node *, s->n_in + 1),
         **y = NEWS(&scratch, Node *, s->n_out + 1), **dy = NEWS(&scratch, Node *, s->n_out + 1);
    int n_x = 0, n_y = 0;
    /* leaves of its own: one operand may depend on another, which is not the call's affair */
    for (int i = 0; i < s->n_in; i++) {
        leaves[i] = s->in[i] && s->want[i] ? CALL(b, identity, s->in[i]) : s->in[i];
        if (s->want[i])
            x[n_x++] = leaves[i];
    }
    Site on = *s;
    on.in = leaves;
    model(b, &on, y);
    for (int i = 0; i < s->n_out; i++)
        if (s->dout[i]) {
            y[n_y] = y[i];
            dy[n_y++] = s->dout[i];
        }
    const ReverseQuery q = { .n_y = n_y, .y = y, .dy = dy, .n_x = n_x, .x = x };
    if (b->status == OK && (b->status = reverse(b, &q, &scratch, &r)) == OK) {
        reverse_tell(s, &r);
        for (int i = 0, at = 0; i < s->n_in; i++)
            if (s->want[i])
                dx[i] = r.dx[at++];
    }
    arena_close(&scratch);
}
