/* Recurrent layers, opened: one product of the data of all steps with W, and step by step one of the state with R,
 * between the functions of the gates, which stay float.  So they are done whose data shall be codes: no engine has a
 * recurrent layer on codes.
 *
 * A state of lstm is o * tanh(c): it has no number beyond 1, and needs nobody who observes it.  The same holds for rnn,
 * and for gru from a state of 0 on. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/card/words.h"
#include "ops/recurrent/recurrent.h"
#include "passes/quant/placement.h"

enum { W = 1, R, BIAS, LENGTHS, STATE, CELL_STATE, PEEPHOLE, NODES_A_STEP = 20 };

typedef struct Opening {
    Placement *p;
    Node *call;
    const RecurrentAttr *at;
    Build b;
    int gates;
    int64_t steps, hidden;
} Opening;

/* One direction: operands of its products, and what its steps leave. */
typedef struct Way {
    bool backward;
    Node *r, *bias,
        *state_bias; /* biases: null where there are none; the second is of gru: what its reset gate acts on */
    Node *h, *c;     /* null: 0 */
    Node **outputs;  /* [steps], in the order of time */
} Way;

/* ---- which ---- */

/* What a value is moved from, by a call that reads no other numbers. */
static Node *moved_from(const Node *n)
{
    Node *from = quant_moved_from(n);
    for (int i = 1; from && i < n->n_in; i++)
        if (in(n, i) && dtype_is_float(in(n, i)->type->dtype))
            return NULL;
    return from;
}

/* Whether a value is 0 everywhere, whatever its extents are. */
static bool is_zero(Node *n)
{
    enum { MOST_MOVES = 16, MOST = 1 << 20 };
    for (int i = 0; i < MOST_MOVES && moved_from(n); i++)
        n = moved_from(n);
    const Tensor *t = node_constant(n, MOST);
    if (n->op == OP_constant_of_shape) {
        const AttrSpec *spec = attr_find(op_of(n)->attrs, str("value"));
        Payload *value = *(Payload *const *)attr_at(spec, n->attr);
        t = value ? payload_cached(value, n->graph->ir->diag) : NULL;
        if (!value)
            return true;
    }
    for (int64_t i = 0; t && i < tensor_elements(t); i++)
        if (tensor_get_f64(t, i) != 0)
            return false;
    return t != NULL;
}

static bool is_asked(Placement *p, const Node *n)
{
    const QuantCallMark *c = quant_call(p, n);
    return quant_is_recurrent(n) && c->said & 1u << OPERAND_A && c->spec->of[OPERAND_A].on;
}

static bool has_usual_functions(const RecurrentAttr *at)
{
    return !at->activations.v && at->clip == 0 && !at->input_forget && !at->state_type;
}

/* Why such a layer is not opened; null: nothing hinders. */
static const char *hindrance(const Opening *o)
{
    const Node *n = o->call;
    if (o->at->layout)
        return "its batch comes before its steps";
    if (in(n, LENGTHS))
        return "its sequences have lengths of their own";
    if (!has_usual_functions(o->at) || in(n, PEEPHOLE))
        return "its gates are not the usual ones";
    if (n->op == OP_gru && !o->at->linear_before_reset)
        return "its reset gate acts before the product";
    if (!quant_is_weight(n, W) || !quant_is_weight(n, R) || (in(n, BIAS) && !quant_weight_of(in(n, BIAS))))
        return "its weights are computed from data";
    if (o->steps < 1 || o->hidden < 1)
        return "nobody knows yet how many steps it takes";
    const int64_t most = n->graph->ir->limits.unrolled_nodes / NODES_A_STEP;
    return o->steps > most ? "it takes too many steps" : NULL;
}

static Status refuse(const Opening *o, const char *why)
{
    const Node *n = o->call;
    Arena *a = o->p->run->scratch;
    Message *m = message_new(o->p->run->diag, SEVERITY_ERROR, UNSUPPORTED, node_place(n),
                             "a=%s: its products cannot be seen one by one: %s",
                             quantizer_text(&quant_call(o->p, n)->spec->of[OPERAND_A], a), why);
    message_try(m, "--quant-op 'op:%s=a=off': its weights alone are codes", op_title(a, n));
    return message_send(m);
}

/* ---- what a direction reads ---- */

/* Of an operand that has a part for each direction, that part; under dimensions of its own. */
static Node *part_for(Opening *o, int operand, int d, int rank, const int64_t *dims)
{
    Node *all = in(o->call, operand);
    if (all->type->dims[0] > 1)
        all = make_slice(&o->b, all, 0, d, d + 1, 1);
    return rank ? make_reshape(&o->b, all, rank, dims) : all;
}

/* W or R of a direction, turned as products read it. */
static Node *weight_for(Opening *o, int operand, int d)
{
    const Node *all = in(o->call, operand);
    const int64_t dims[] = { all->type->dims[1], all->type->dims[2] };
    Node *turned = make_swap_last(&o->b, part_for(o, operand, d, 2, dims));
    const char *name = quant_weight_of((Node *)all)->name;
    if (turned && name && all->type->dims[0] > 1) {
        name = arena_printf(o->p->g->arena, "%s.%s", name, d ? "reverse" : "forward");
        quant_value(o->p, turned)->called = name;
    }
    return turned;
}

/* Biases: those of W and R together, but that gru has the latter of its last gate inside. */
static void read_biases(Opening *o, Way *w, int d)
{
    const int64_t wide = o->gates * o->hidden;
    Node *both = in(o->call, BIAS) ? part_for(o, BIAS, d, 1, (const int64_t[]){ 2 * wide }) : NULL;
    if (!both)
        return;
    w->bias = make_slice(&o->b, both, 0, 0, wide, 1);
    w->state_bias = make_slice(&o->b, both, 0, wide, 2 * wide, 1);
    if (o->call->op != OP_gru) {
        w->bias = CALL(&o->b, add, w->bias, w->state_bias);
        w->state_bias = NULL;
    }
}

static Node *first_state(Opening *o, int operand, int d)
{
    return operand < o->call->n_in && in(o->call, operand) && !is_zero(in(o->call, operand))
               ? part_for(o, operand, d, 0, NULL)
               : NULL;
}

/* ---- steps ---- */

static Node *plus(Build *b, Node *x, Node *y)
{
    return !x ? y : !y ? x : CALL(b, add, x, y);
}

static Node *gate(Opening *o, Node *gates, int i)
{
    return build_part(&o->b, gates, i);
}

static Node *cut_gates(Opening *o, Node *z)
{
    int64_t lengths[4];
    for (int i = 0; i < o->gates; i++)
        lengths[i] = o->hidden;
    return make_split(&o->b, z, 2, build_i64s(&o->b, o->gates, lengths), o->gates);
}

/* Gates are i, o, f and that of the cell. */
static void step_lstm(Opening *o, Way *w, Node *x, Node *recalled)
{
    Build *b = &o->b;
    Node *gates = cut_gates(o, plus(b, plus(b, x, recalled), w->bias));
    Node *kept = w->c ? CALL(b, mul, CALL(b, sigmoid, gate(o, gates, 2)), w->c) : NULL;
    Node *added = CALL(b, mul, CALL(b, sigmoid, gate(o, gates, 0)), CALL(b, tanh, gate(o, gates, 3)));
    w->c = plus(b, kept, added);
    w->h = CALL(b, mul, CALL(b, sigmoid, gate(o, gates, 1)), CALL(b, tanh, w->c));
}

/* Gates are z, r and h. */
static void step_gru(Opening *o, Way *w, Node *x, Node *recalled)
{
    Build *b = &o->b;
    Node *gates = cut_gates(o, plus(b, x, w->bias)), *from = plus(b, recalled, w->state_bias);
    Node *recall = from && from != w->state_bias ? cut_gates(o, from) : NULL;
    Node *of[3] = { NULL };
    for (int i = 0; i < 3; i++)
        of[i] = recall ? gate(o, recall, i)
                : from ? make_slice(b, from, 0, i * o->hidden, (i + 1) * o->hidden, 1)
                       : NULL;
    Node *z = CALL(b, sigmoid, plus(b, gate(o, gates, 0), of[0]));
    if (of[2])
        of[2] = CALL(b, mul, CALL(b, sigmoid, plus(b, gate(o, gates, 1), of[1])), of[2]);
    Node *next = CALL(b, tanh, plus(b, gate(o, gates, 2), of[2]));
    next = CALL(b, mul, CALL(b, sub, build_scalar(b, F32, 1), z), next);
    w->h = w->h ? CALL(b, add, next, CALL(b, mul, z, w->h)) : next;
}

static void step(Opening *o, Way *w, Node *x)
{
    Build *b = &o->b;
    Node *recalled = w->h ? CALL(b, matmul, w->h, w->r) : NULL;
    if (o->call->op == OP_lstm)
        step_lstm(o, w, x, recalled);
    else if (o->call->op == OP_gru)
        step_gru(o, w, x, recalled);
    else
        w->h = CALL(b, tanh, plus(b, plus(b, x, recalled), w->bias));
}

static void walk(Opening *o, Way *w, int d)
{
    Build *b = &o->b;
    int64_t *ones = NEWS(o->p->run->scratch, int64_t, o->steps);
    Node *weight = weight_for(o, W, d);
    w->backward = d == 1 || o->at->direction == RUN_REVERSE;
    w->r = weight_for(o, R, d);
    w->h = first_state(o, STATE, d);
    w->c = o->call->op == OP_lstm ? first_state(o, CELL_STATE, d) : NULL;
    w->outputs = NEWS(o->p->run->scratch, Node *, o->steps);
    read_biases(o, w, d);
    const bool bounded = o->call->op != OP_gru || !w->h;
    Node *x = b->status == OK ? CALL(b, matmul, in(o->call, 0), weight) : NULL, *parts = x;
    for (int64_t t = 0; t < o->steps; t++)
        ones[t] = 1;
    if (o->steps > 1)
        parts = make_split(b, x, 0, build_i64s(b, (int)o->steps, ones), (int)o->steps);
    for (int64_t t = 0; t < o->steps && b->status == OK; t++) {
        const int64_t at = recurrent_place(w->backward, o->steps, t);
        step(o, w, o->steps > 1 ? build_part(b, parts, (int)at) : x);
        w->outputs[at] = w->h;
        if (b->status == OK && bounded)
            quant_value(o->p, w->h)->within = 1;
    }
}

/* ---- the layer ---- */

/* Results of both directions beside each other, along their dimension. */
static Node *both(Opening *o, int axis, Node *first, Node *second)
{
    return second ? make_concat(&o->b, axis, 2, (Node *[]){ first, second }) : first;
}

static Node *all_steps(Opening *o, const Way *w)
{
    Node *y = o->steps > 1 ? make_concat(&o->b, 0, (int)o->steps, w->outputs) : w->outputs[0];
    return CALL(&o->b, unsqueeze, y, build_i64s(&o->b, 1, (const int64_t[]){ 1 }));
}

/* What a cell computes between its products stays float; all of it is as --quant-op says of the layer. */
static void mark(Opening *o, Node *from)
{
    const QuantCallMark *of = quant_call(o->p, o->call);
    for (Node *n = from; n != o->call; n = n->next) {
        QuantCallMark *c = quant_call(o->p, n);
        c->spec = of->spec;
        c->said = of->said;
        c->cell = op_of(n)->row != NULL;
    }
}

static void replace(Opening *o, Node *const *results)
{
    Node *call = o->call;
    if (call->type->kind == TYPE_TENSOR)
        stand_in(call, results[0]);
    while (call->uses) {
        Node *part = call->uses->user;
        stand_in(part, results[((const PartAttr *)part->attr)->index]);
        node_remove(part);
    }
    node_remove(call);
}

static Status open_layer(Opening *o)
{
    Node *call = o->call, *before = call->prev;
    const int directions = o->at->direction == RUN_BIDIRECTIONAL ? 2 : 1;
    Way ways[2] = { { .h = NULL } };
    Build *b = &o->b;
    *b = build_before(call);
    b->src = call->src;
    b->label = call->label;
    for (int d = 0; d < directions; d++)
        walk(o, &ways[d], d);
    TRY(b->status);
    Node *last = directions > 1 ? all_steps(o, &ways[1]) : NULL;
    Node *results[] = { both(o, 1, all_steps(o, &ways[0]), last), both(o, 0, ways[0].h, ways[1].h),
                        ways[0].c ? both(o, 0, ways[0].c, ways[1].c) : NULL };
    TRY(b->status);
    mark(o, before ? before->next : o->p->g->first);
    replace(o, results);
    o->p->run->changes++;
    return OK;
}

Status quant_open_recurrent(Placement *p)
{
    Node **calls = NEWS(p->run->scratch, Node *, graph_count(p->g) + 1);
    size_t n_calls = 0;
    for (Node *n = p->g->first; n; n = n->next)
        if (!(n->flags & NODE_BACKWARD) && is_asked(p, n))
            calls[n_calls++] = n;
    for (size_t i = 0; i < n_calls; i++) {
        Node *n = calls[i];
        const RecurrentAttr *at = n->attr;
        const RecurrentShape s = recurrent_shape(at, in(n, 0)->type, in(n, R)->type);
        Opening o = { .p = p, .call = n, .at = at, .steps = s.steps, .hidden = s.hidden };
        o.gates = (int)(in(n, W)->type->dims[1] / (s.hidden > 0 ? s.hidden : 1));
        const char *why = hindrance(&o);
        TRY(why ? refuse(&o, why) : open_layer(&o));
    }
    return OK;
}
