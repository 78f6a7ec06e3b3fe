/* C-9 and C-10: casts change places with what only moves or orders values.  The measure of rules says in which
 * direction: fewer elements first, then fewer bytes that travel. */
#include "base/half.h"
#include "ops/card/attrs.h"
#include "passes/amp/cast_rules.h"

enum { LARGEST_NARROWED = 1 << 24 };

/* Whether an operand is data, of the element type of the result: the others steer. */
static bool is_data(const Node *n, int i)
{
    return !op_steers(op_of(n), i);
}

/* Whether nothing but operand 0 is data. */
static bool is_one_datum(const Node *n)
{
    for (int i = 1; i < n->n_in; i++)
        if (in(n, i) && is_data(n, i))
            return false;
    return is_data(n, 0);
}

/* What draws, has a body or is another in training does more than move. */
static CastMotion motion_of(const OpDef *def)
{
    const AmpClass c = def->amp.f16;
    if (def->structural || def->mode != MODE_PURE || def->n_regions)
        return CASTS_BY_CLASS;
    if (def->amp.motion == CASTS_BY_CLASS && (c == AMP_P || c == AMP_PW))
        return CASTS_BOTH;
    return def->amp.motion == CASTS_BY_CLASS && c == AMP_PM ? CASTS_UP : def->amp.motion;
}

bool passes_up(const OpDef *def)
{
    return motion_of(def) >= CASTS_UP && !op_steers(def, 0);
}

bool passes_down(const OpDef *def)
{
    return motion_of(def) == CASTS_BOTH && !op_steers(def, 0);
}

bool chooses_up(const OpDef *def)
{
    return motion_of(def) >= CASTS_UP && op_steers(def, 0) && !op_steers(def, 1);
}

bool chooses_down(const OpDef *def)
{
    return motion_of(def) == CASTS_BOTH && op_steers(def, 0) && !op_steers(def, 1);
}

/* Whether this call only moves: what a scatter adds up or multiplies is rounded. */
static bool only_moves(const Node *n)
{
    const AmpCard *card = &op_of(n)->amp;
    const AmpClass c = card->f16 == AMP_C ? card->when(n, F16) : AMP_P;
    return c == AMP_P || c == AMP_PW || c == AMP_PM;
}

/* Rows of a table are fewer than the table; any other part of a weight is read from its narrow copy (C-18, C-19). */
static bool is_taken_from_table(const Node *n)
{
    return op_of(n)->access.kind == ACCESS_GATHER;
}

/* ---- behind ---- */

bool may_go_behind(const Match *m)
{
    const Node *x = m->x[0];
    const Type *narrow = m->node[1]->type;
    if (m->root->type->kind != TYPE_TENSOR || x->type == narrow || !only_moves(m->root))
        return false;
    if (m->root->type->dtype != narrow->dtype) /* what gives another type than it reads keeps what the cast rounds */
        return false;
    if (is_narrow(x) && is_wide(m->root))
        return true;
    return is_one_datum(m->root) && (x->op != OP_state || is_taken_from_table(m->root));
}

/* Whether the type holds every value of a constant. */
static bool holds_all(const Node *n, DType to)
{
    const Tensor *t = n->op == OP_const && is_wide(n) ? node_constant(n, LARGEST_NARROWED) : NULL;
    for (int64_t i = 0; t && i < tensor_elements(t); i++) {
        const double v = tensor_get_f64(t, i);
        const double got = to == F16 ? (double)f16_to_f32(f16_from_f64(v)) : (double)bf16_to_f32(bf16_from_f64(v));
        if (got != v && (got == got || v == v))
            return false;
    }
    return t;
}

static Node *our_cast(Build *b, Node *x, DType to)
{
    Build own = *b;
    own.src = 0;
    own.label = NULL;
    Node *y = build_amp_cast(&own, x, to);
    b->status = own.status;
    return y;
}

/* The data operand before its cast; null: it has no such form. */
static Node *uncast(Build *b, Node *operand, DType to)
{
    if (operand->op == OP_amp_cast && in(operand, 0)->type->dtype == to)
        return in(operand, 0);
    return holds_all(operand, to) ? our_cast(b, operand, to) : NULL;
}

/* The call on other operands; it stays what it was to the model. */
static Node *call_again(Build *b, const Node *n, Node *const *ins)
{
    Build own = build_as(b, n);
    Node *y = build_node(&own, n->op, n->attr, n->n_in, ins);
    b->status = own.status;
    return y;
}

Node *cast_behind(Build *b, const Match *m)
{
    const Node *n = m->root;
    const DType from = m->x[0]->type->dtype;
    Node **ins = NEWS(b->graph->arena, Node *, n->n_in);
    for (int i = 0; i < n->n_in; i++) {
        ins[i] = in(n, i);
        if (!ins[i] || !is_data(n, i))
            continue;
        ins[i] = uncast(b, ins[i], from);
        if (!ins[i])
            return NULL;
    }
    return our_cast(b, call_again(b, n, ins), n->type->dtype);
}

/* ---- before ---- */

static bool reads_tensors(const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && is_data(n, i) && in(n, i)->type->kind != TYPE_TENSOR)
            return false;
    return true;
}

bool may_go_before(const Match *m)
{
    const Node *move = m->node[1];
    return is_narrow(m->root) && is_wide(move) && move->uses && !move->uses->next && only_moves(move) &&
           reads_tensors(move);
}

/* As far as one looks. */
static bool stands_before(const Node *n, const Node *at)
{
    enum { FARTHEST = 1 << 14 };
    for (int far = 0; at && far < FARTHEST; far++, at = at->prev)
        if (at == n)
            return true;
    return false;
}

/* The value in the narrow type: what it was widened from, a copy that is there, or a new one. */
static Node *narrowed(Build *b, Node *x, const Node *root)
{
    const DType to = root->type->dtype;
    if (x->op == OP_amp_cast && in(x, 0)->type->dtype == to)
        return in(x, 0);
    for (const Use *u = x->uses; u; u = u->next)
        if (u->user->op == OP_amp_cast && u->user->type->dtype == to && u->user->graph == root->graph &&
            u->user != root && side_of(u->user) == side_of(root) && stands_before(u->user, root))
            return u->user;
    return our_cast(b, x, to);
}

Node *cast_before(Build *b, const Match *m)
{
    const Node *move = m->node[1];
    Node **ins = NEWS(b->graph->arena, Node *, move->n_in);
    for (int i = 0; i < move->n_in; i++) {
        ins[i] = in(move, i);
        if (ins[i] && is_data(move, i) && ins[i]->type->dtype == F32)
            ins[i] = narrowed(b, ins[i], m->root);
    }
    Node *y = call_again(b, move, ins);
    if (y)
        y->name = move->name; /* which goes: nobody else read it */
    return y;
}
