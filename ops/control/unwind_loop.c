/* The gradients of loop and scan. */
#include "ir/copy.h"
#include "ops/card/make.h"
#include "ops/control/unwind.h"

/* A per-turn value that the scan reads: where it comes from, how it is cut. */
typedef struct Slice {
    int memory; /* parameter of the forward body that is stacked for it; -1: `operand` */
    Node *operand;
    int64_t axis, direction;
} Slice;

typedef struct Unwind {
    Build *b;
    const Site *s;
    Arena *scratch;
    const Graph *body;
    const ScanAttr *scan; /* null: a loop */
    int head;             /* parameters before the states: iteration and condition of a loop */
    int skip;             /* results before the states': the condition of a loop */
    int states, own;      /* own: parameters before the captures */
    BackBody back;
    bool *carries; /* states that carry a gradient */
    Slice *slices;
    int n_slices, n_back; /* n_back: states of the scan that takes it back */
} Unwind;

static bool is_float_tensor(const Type *t)
{
    return t->kind == TYPE_TENSOR && dtype_is_float(t->dtype);
}

static int64_t listed(Ints list, int i)
{
    return list.v ? list.v[i] : 0;
}

/* A state carries a gradient when its first value is wanted, or when what a turn makes of it depends on something that
 * is: a wanted operand, or a state that carries one. */
static void find_carriers(Unwind *u)
{
    bool again = true;
    u->carries = NEWS(u->scratch, bool, u->states + 1);
    for (int i = 0; i < u->states; i++)
        u->carries[i] = u->s->want[u->head + i];
    while (again) {
        Facts marks = facts_open(u->scratch, sizeof(bool));
        again = false;
        for (int k = u->head; k < u->s->n_in; k++)
            *(bool *)fact(&marks, u->body->inputs[k]) =
                k < u->head + u->states ? u->carries[k - u->head] : u->s->want[k];
        for (const Node *n = u->body->first; n; n = n->next)
            for (int i = 0; i < n->n_in; i++)
                *(bool *)fact(&marks, n) |= in(n, i) && *(bool *)fact(&marks, in(n, i));
        for (int i = 0; i < u->states; i++) {
            const Node *next = graph_result(u->body, u->skip + i);
            if (u->carries[i] || !is_float_tensor(next->type) || !*(bool *)fact(&marks, next))
                continue;
            u->carries[i] = again = true;
        }
    }
}

static Slice slice_of(const Unwind *u, int k)
{
    const int at = k - u->head - u->states;
    if (!u->scan || at < 0)
        return (Slice){ .memory = k, .direction = 1 };
    return (Slice){ .memory = -1,
                    .operand = in(u->s->call, k),
                    .axis = listed(u->scan->scan_input_axes, at),
                    .direction = 1 - listed(u->scan->scan_input_directions, at) };
}

/* The parameters of the scan, in its order: carried gradients, sums of captures, slices, captures. */
static void open_back(Unwind *u, Node **g, Node **sums, Node **dy)
{
    const Site *s = u->s;
    const int stacked = graph_n_results(u->body) - u->skip - u->states;
    u->back = back_open(u->b, u->scratch, u->body);
    u->slices = NEWS(u->scratch, Slice, u->own + stacked + 1);
    for (int i = 0; i < u->states; i++)
        if (u->carries[i])
            g[i] = back_input(&u->back, u->body->inputs[u->head + i]->type), u->n_back++;
    for (int k = u->own; k < s->n_in; k++)
        if (s->want[k])
            sums[k] = back_input(&u->back, u->body->inputs[k]->type), u->n_back++;
    for (int k = 0; k < u->own; k++) {
        const Node *p = u->body->inputs[k];
        u->back.values[k] = graph_input(u->back.graph, p->name, p->type);
        u->slices[u->n_slices++] = slice_of(u, k);
    }
    for (int i = 0; i < stacked && u->states + i < s->n_out; i++) {
        if (!s->dout[u->states + i])
            continue;
        dy[i] = back_input(&u->back, graph_result(u->body, u->skip + u->states + i)->type);
        u->slices[u->n_slices++] = (Slice){ .memory = -1,
                                            .operand = s->dout[u->states + i],
                                            .axis = u->scan ? listed(u->scan->scan_output_axes, i) : 0,
                                            .direction = u->scan ? 1 - listed(u->scan->scan_output_directions, i) : 1 };
    }
    for (int k = u->own; k < s->n_in; k++) {
        const Node *p = u->body->inputs[k];
        u->back.values[k] = graph_input(u->back.graph, p->name, p->type);
    }
}

/* dx of the parameters of the forward body, null where nothing reaches them. */
static Node **differentiate_turn(Unwind *u, Node *const *g, Node *const *dz)
{
    const Site *s = u->s;
    const int stacked = graph_n_results(u->body) - u->skip - u->states;
    Node **x = NEWS(u->scratch, Node *, s->n_in + 1), **dy = NEWS(u->scratch, Node *, u->states + stacked + 1),
         **dx = NEWS(u->scratch, Node *, s->n_in + 1);
    int *y = NEWS(u->scratch, int, u->states + stacked + 1), n_y = 0, n_x = 0;
    for (int i = 0; i < u->states + stacked; i++) {
        Node *arrives = i < u->states ? g[i] : dz[i - u->states];
        if (!arrives)
            continue;
        y[n_y] = u->skip + i;
        dy[n_y++] = arrives;
    }
    for (int k = u->head; k < s->n_in; k++)
        if (k < u->head + u->states ? u->carries[k - u->head] : s->want[k])
            x[n_x++] = u->back.values[k];
    Node **reached = back_through_body(&u->back, u->b, s, u->scratch, u->body, n_y, y, dy, n_x, x);
    for (int k = u->head, at = 0; reached && k < s->n_in; k++)
        if (k < u->head + u->states ? u->carries[k - u->head] : s->want[k])
            dx[k] = reached[at++];
    return reached ? dx : NULL;
}

/* The results of the body: next carried gradients, next sums, gradients of slices; *n_slices of the last kind. */
static int close_turn(Unwind *u, Node *const *g, Node *const *sums, Node *const *dx)
{
    Node **results = NEWS(u->scratch, Node *, u->s->n_in + 1);
    Build *in = &u->back.in;
    int n = 0;
    for (int i = 0; i < u->states; i++)
        if (g[i])
            results[n++] = dx[u->head + i] ? dx[u->head + i] : make_zeros_like(in, u->back.values[u->head + i]);
    for (int k = u->own; k < u->s->n_in; k++)
        if (sums[k])
            results[n++] = dx[k] ? CALL(in, add, sums[k], dx[k]) : sums[k];
    for (int k = u->head + u->states; k < u->own; k++)
        if (dx[k])
            results[n++] = dx[k];
    if (in->status != OK)
        u->b->status = in->status;
    else
        back_close(&u->back, n, results);
    return n;
}

/* Drops what the body does not read; at least one slice has to say how often it runs. */
static void drop_unread(Unwind *u, int *n_captures, Node **captures)
{
    Graph *g = u->back.graph;
    for (int i = *n_captures - 1; i >= 0; i--) {
        const size_t at = (size_t)(u->n_back + u->n_slices + i);
        if (g->inputs[at]->uses)
            continue;
        graph_drop_input(g, at);
        for (int k = i + 1; k < *n_captures; k++)
            captures[k - 1] = captures[k];
        --*n_captures;
    }
    for (int i = u->n_slices - 1; i >= 0 && u->n_slices > 1; i--) {
        const size_t at = (size_t)(u->n_back + i);
        if (g->inputs[at]->uses)
            continue;
        graph_drop_input(g, at);
        for (int k = i + 1; k < u->n_slices; k++)
            u->slices[k - 1] = u->slices[k];
        u->n_slices--;
    }
}

/* ---- the forward loop, which then also gives what its turns were given ---- */

static bool can_stack(Unwind *u, const Node *parameter)
{
    if (parameter->type->kind == TYPE_TENSOR)
        return true;
    Ir *ir = u->b->graph->ir;
    u->b->status = fail_as(ir->diag, UNSUPPORTED, node_place(u->s->call),
                           "%s carries %s from turn to turn, which no gradient can go back through",
                           op_of(u->s->call)->name, type_text(u->scratch, parameter->type));
    return false;
}

static Ints with_zeros(Arena *arena, Ints list, int more)
{
    if (!list.v)
        return list;
    int64_t *v = NEWS(arena, int64_t, list.n + more);
    for (int i = 0; i < list.n; i++)
        v[i] = list.v[i];
    return (Ints){ list.n + more, v };
}

/* Replaces the call by one that gives more results; the first of them are those of the old call, for its readers. */
static void hand_over(Build *b, Node *call, Node *by)
{
    if (call->type->kind != TYPE_TUPLE) {
        stand_in(call, build_part(b, by, 0));
        return;
    }
    by->name = call->name;
    call->name = NULL;
    for (Use *use = call->uses, *next; use; use = next) {
        next = use->next;
        if (use->user->op == OP_part)
            node_set_in(use->user, 0, by);
    }
}

/* Lets the forward loop give stacks of the values that its iterations had and that the gradient needs, and makes
 * them operands of the scan. */
static void remember(Unwind *u)
{
    Node *call = u->s->call;
    const int n_old = graph_n_results(u->body);
    Node **results = NEWS(u->scratch, Node *, n_old + u->n_slices), **ins = NEWS(u->scratch, Node *, call->n_in + 1);
    const char **names = NEWS(u->scratch, const char *, n_old + u->n_slices);
    Build b = build_before(call);
    Graph *body = copy_region(call->graph, u->body);
    int n = n_old;
    for (int i = 0; i < n_old; i++) {
        results[i] = graph_result(body, i);
        names[i] = body->results ? body->results[i] : NULL;
    }
    for (int i = 0; i < u->n_slices; i++)
        if (u->slices[i].memory >= 0) {
            results[n++] = body->inputs[u->slices[i].memory];
            if (!can_stack(u, body->inputs[u->slices[i].memory]))
                return;
        }
    if (n == n_old)
        return;
    graph_return(body, n, results, names);
    for (int i = 0; i < call->n_in; i++)
        ins[i] = in(call, i);
    ScanAttr at;
    if (u->scan) {
        at = *u->scan;
        at.scan_output_axes = with_zeros(u->scratch, at.scan_output_axes, n - n_old);
        at.scan_output_directions = with_zeros(u->scratch, at.scan_output_directions, n - n_old);
    }
    Node *by = build_with_regions(&b, call->op, u->scan ? &at : call->attr, call->n_in, ins, n - u->skip, 1, &body);
    u->b->status = b.status;
    if (!by)
        return;
    hand_over(&b, call, by);
    for (int i = 0, k = n_old - u->skip; i < u->n_slices; i++)
        if (u->slices[i].memory >= 0)
            u->slices[i].operand = build_part(u->b, by, k++);
}

/* ---- the scan that takes it back ---- */

static ScanAttr back_attr(const Unwind *u, int n_scanned_dx, const int *scanned)
{
    int64_t *axes = NEWS(u->scratch, int64_t, u->n_slices), *ways = NEWS(u->scratch, int64_t, u->n_slices),
            *out_axes = NEWS(u->scratch, int64_t, n_scanned_dx + 1),
            *out_ways = NEWS(u->scratch, int64_t, n_scanned_dx + 1);
    for (int i = 0; i < u->n_slices; i++) {
        axes[i] = u->slices[i].axis;
        ways[i] = u->slices[i].direction;
    }
    for (int i = 0; i < n_scanned_dx; i++) {
        const Slice k = slice_of(u, scanned[i]);
        out_axes[i] = k.axis;
        out_ways[i] = k.direction;
    }
    return (ScanAttr){ .num_scan_inputs = u->n_slices,
                       .operands = u->n_back + u->n_slices,
                       .scan_input_axes = { u->n_slices, axes },
                       .scan_input_directions = { u->n_slices, ways },
                       .scan_output_axes = { n_scanned_dx, out_axes },
                       .scan_output_directions = { n_scanned_dx, out_ways },
                       .from_last = !(u->scan && u->scan->from_last) };
}

static void place_back(Unwind *u, Node *const *g, Node *const *sums, Node *const *dturn, int n_results, Node **dx)
{
    const Site *s = u->s;
    Node **ins = NEWS(u->scratch, Node *, u->n_back + u->n_slices + s->n_in + 1),
         **captures = NEWS(u->scratch, Node *, s->n_in + 1);
    int n_captures = s->n_in - u->own, n = 0, part = 0, n_scanned = 0;
    int *scanned = NEWS(u->scratch, int, s->n_in + 1);
    for (int i = 0; i < n_captures; i++)
        captures[i] = in(s->call, u->own + i);
    drop_unread(u, &n_captures, captures);
    remember(u);
    for (int i = 0; i < u->states; i++)
        if (g[i])
            ins[n++] = i < s->n_out && s->dout[i] ? s->dout[i] : make_zeros_like(u->b, in(s->call, u->head + i));
    for (int k = u->own; k < s->n_in; k++)
        if (sums[k])
            ins[n++] = make_zeros_like(u->b, in(s->call, k));
    for (int i = 0; i < u->n_slices; i++)
        ins[n++] = u->slices[i].operand;
    for (int i = 0; i < n_captures; i++)
        ins[n++] = captures[i];
    for (int k = u->head + u->states; k < u->own; k++)
        if (dturn[k])
            scanned[n_scanned++] = k;
    const ScanAttr at = back_attr(u, n_scanned, scanned);
    Node *call = build_with_regions(u->b, OP_scan, &at, n, ins, n_results, 1, &u->back.graph);
    for (int i = 0; i < u->states; i++)
        if (g[i])
            dx[u->head + i] = build_part(u->b, call, part++);
    for (int k = u->own; k < s->n_in; k++)
        if (sums[k])
            dx[k] = build_part(u->b, call, part++);
    for (int i = 0; i < n_scanned; i++)
        dx[scanned[i]] = build_part(u->b, call, part++);
}

static void unwind(Unwind *u, Node **dx)
{
    const int stacked = graph_n_results(u->body) - u->skip - u->states;
    Node **g = NEWS(u->scratch, Node *, u->states + 1), **sums = NEWS(u->scratch, Node *, u->s->n_in + 1),
         **dz = NEWS(u->scratch, Node *, stacked + 1);
    find_carriers(u);
    open_back(u, g, sums, dz);
    Node **dturn = differentiate_turn(u, g, dz);
    const int n_results = dturn ? close_turn(u, g, sums, dturn) : 0;
    if (n_results && u->b->status == OK)
        place_back(u, g, sums, dturn, n_results, dx);
    for (int k = 0; k < u->s->n_in; k++)
        if (!u->s->want[k])
            dx[k] = NULL;
}

void adjoint_scan(Build *b, const Site *s, Node **dx)
{
    const ScanAttr *at = s->attr;
    Arena scratch;
    arena_open(&scratch, b->graph->ir->memory);
    Unwind u = { .b = b, .s = s, .scratch = &scratch, .body = s->regions[0], .scan = at };
    u.own = (int)(at->operands ? at->operands : s->n_in);
    u.states = u.own - (int)at->num_scan_inputs;
    unwind(&u, dx);
    arena_close(&scratch);
}

void adjoint_loop(Build *b, const Site *s, Node **dx)
{
    enum { HEAD = 2 };
    const int64_t operands = ((const LoopAttr *)s->attr)->operands;
    Arena scratch;
    arena_open(&scratch, b->graph->ir->memory);
    Unwind u = { .b = b, .s = s, .scratch = &scratch, .body = s->regions[0], .head = HEAD, .skip = 1 };
    u.own = (int)(operands ? operands : s->n_in);
    u.states = u.own - HEAD;
    unwind(&u, dx);
    arena_close(&scratch);
}
