/* Variables for the values of a graph, and what their labels cost.
 *
 * A value is written once, as it is labelled, and read as it is labelled by whatever computes wide: conversion on the way
 * is free.  Who reads narrowly reads a copy of a wide value, which costs its bytes once.  A narrow result behind a wide
 * operand is a rounding that nobody asked for; its price is by class. */
#include "passes/amp/variables.h"

#include <math.h>

double amp_elements(const Type *type)
{
    double n = 1;
    for (int i = 0; type->kind == TYPE_TENSOR && i < type->rank; i++)
        n *= type->dims[i] < 0 ? 1 : (double)type->dims[i];
    return n;
}

/* How often a body is run; a few times where nobody can tell. */
static double turns_of(const Node *call)
{
    enum { SOME = 8 };
    const BodyCard *body = &op_of(call)->body;
    const double turns = body->turns ? body->turns(call) : body->open ? 1 : SOME;
    return turns < 0 ? SOME : turns;
}

/* Elements of a value over a whole run. */
static double size_of(const Node *value)
{
    double n = amp_elements(value->type);
    for (const Graph *g = value->graph; g->owner; g = g->owner->graph)
        n *= turns_of(g->owner);
    return n;
}

/* ---- variables and ties ---- */

static int add_variable(AmpGraph *a, Node *node, int copy_of)
{
    AmpProblem *p = &a->problem;
    GROW(p->arena, p->variable, p->n, p->cap);
    p->variable[p->n] = (AmpVariable){ .node = node, .copy_of = copy_of };
    return (int)p->n++;
}

static AmpVariable *variable(AmpGraph *a, int v)
{
    return &a->problem.variable[v];
}

void amp_tie(AmpGraph *a, AmpTie tie)
{
    AmpProblem *p = &a->problem;
    GROW(p->arena, p->tie, p->n_ties, p->cap_ties);
    p->tie[p->n_ties++] = tie;
}

void amp_keep_equal(AmpGraph *a, int x, int y)
{
    if (x != y)
        amp_tie(a, (AmpTie){ .a = x, .b = y, .wide_narrow = INFINITY, .narrow_wide = INFINITY });
}

void amp_fix(AmpGraph *a, int v, AmpLabel label)
{
    variable(a, v)->fixed = label;
}

/* ---- values ---- */

/* A forward value that stands: narrow where every reader goes through its narrow copy. */
static bool is_stored_narrow(AmpGraph *a, const Node *n)
{
    bool any = false;
    if (n->type->dtype != F32)
        return true;
    if (node_is_input(n) || n->op == OP_state || n->op == OP_const || n->op == OP_param)
        return false;
    for (const Use *u = n->uses; u; u = u->next) {
        if (amp_may_change(a, u->user) || node_is_return(u->user))
            continue;
        if (u->user->op != OP_amp_cast && amp_role(a->roles, u->user).class != AMP_N)
            return false;
        any |= u->user->op == OP_amp_cast;
    }
    return any;
}

static bool is_given(const Node *n)
{
    return node_is_input(n) || n->op == OP_state || n->op == OP_const || n->op == OP_param;
}

/* Constants and parameters join whatever wins. */
static bool votes(const Node *n)
{
    return n->op != OP_state && n->op != OP_const && n->op != OP_param;
}

/* Results of one call that move together have one variable. */
static bool moves(const AmpRole *r)
{
    return r->class == AMP_P || r->class == AMP_PW || r->class == AMP_PM;
}

static void store(AmpVariable *v, const Node *value)
{
    const double n = size_of(value);
    v->wide_price += WIDE_BYTES * n;
    v->narrow_price += NARROW_BYTES * n;
}

static int make_variable(AmpGraph *a, Node *value);

/* Of several parts that are one result: the one that has the variable.  Parts of the way back have their own: what they
 * read stands. */
static Node *same_value(const AmpGraph *a, const Node *value)
{
    int k;
    const Node *p = amp_producer(value, &k);
    for (Use *u = p == value ? NULL : p->uses; u; u = u->next)
        if (u->user->op == OP_part && ((const PartAttr *)u->user->attr)->index == k &&
            amp_may_change(a, u->user) == amp_may_change(a, value))
            return u->user;
    return (Node *)(uintptr_t)value;
}

int amp_variable(AmpGraph *a, Node *value)
{
    int k;
    value = same_value(a, value);
    Node *p = (Node *)(uintptr_t)amp_producer(value, &k);
    AmpNote *own = amp_note(a, value), *note = amp_note(a, p);
    const bool shares = p != value && moves(&note->role) && !amp_has(note->role.wide_out, k);
    if (!own->variable && shares && note->variable) {
        own->variable = note->variable;
        store(variable(a, own->variable - 1), value);
    } else if (!own->variable) {
        own->variable = make_variable(a, value) + 1;
        if (shares)
            note->variable = own->variable;
    }
    return own->variable - 1;
}

AmpLabel amp_label(AmpGraph *a, const Node *value)
{
    const int v = amp_note(a, same_value(a, value))->variable;
    return v ? variable(a, v - 1)->label : AMP_WIDE;
}

bool amp_copied(AmpGraph *a, const Node *value)
{
    const int c = amp_note(a, same_value(a, value))->copy;
    return c && variable(a, c - 1)->label == AMP_NARROW;
}

static double copy_price(AmpGraph *a, const Node *value)
{
    const double n = size_of(value);
    if (value->op == OP_const)
        return 0;
    for (const Use *u = value->uses; u; u = u->next)
        if (u->user->op == OP_amp_cast && u->user->type->dtype == a->narrow && !amp_may_change(a, u->user))
            return 0;
    /* whoever computes a value, or updates a parameter, writes both */
    const bool computed = amp_may_change(a, value) && !is_given(value);
    return computed || value->flags & NODE_TRAINED ? NARROW_BYTES * n : (WIDE_BYTES + NARROW_BYTES) * n;
}

/* Whether there is a narrow form of a value to read. */
static int copy_of(AmpGraph *a, Node *value)
{
    const int v = amp_variable(a, value);
    AmpNote *note = amp_note(a, same_value(a, value));
    if (!note->copy) {
        note->copy = add_variable(a, NULL, v) + 1;
        amp_tie(a, (AmpTie){ .a = v, .b = note->copy - 1, .wide_narrow = copy_price(a, value) });
    }
    return note->copy - 1;
}

/* The widest operand that votes decides for class W. */
static double rounding_price(AmpClass c, double elements)
{
    switch (c) {
    case AMP_E:
    case AMP_S:
        return ROUNDS_BENIGN * elements;
    case AMP_W:
        return INFINITY;
    case AMP_FI:
        return ROUNDS_WEAK * elements;
    default:
        return ROUNDS_MOVED * elements;
    }
}

/* Whether anything that votes is among the f32 operands of a call. */
static bool has_voter(AmpGraph *a, const Node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        Node *def = amp_origin(a, in(n, i));
        if (amp_reading(a, n, i) != AMP_NOT_READ && !amp_has(amp_note(a, n)->role.wide, i) && votes(def))
            return true;
    }
    return false;
}

/* The result follows its operands, at the price of a rounding where they are wide. */
static void follow(AmpGraph *a, const Node *n, int result, double elements)
{
    const AmpRole *r = &amp_note(a, n)->role;
    const bool voted = has_voter(a, n);
    for (int i = 0; i < n->n_in; i++) {
        Node *def = amp_origin(a, in(n, i));
        if (amp_reading(a, n, i) == AMP_NOT_READ || amp_has(r->wide, i) || def->op == OP_const)
            continue;
        const int v = amp_variable(a, def);
        const bool leads = votes(def) || !voted;
        amp_tie(a, (AmpTie){ .a = v,
                             .b = result,
                             .wide_narrow = leads ? rounding_price(r->class, elements) : 0,
                             .leads = leads });
        variable(a, result)->led |= leads;
    }
}

static bool follows(AmpClass c)
{
    return c == AMP_E || c == AMP_S || c == AMP_W || c == AMP_FI || c == AMP_P || c == AMP_PW || c == AMP_PM;
}

/* Whether a reader takes a value narrowly, or moves it: then it reads the narrow copy once there is one. */
static bool follows_width(AmpGraph *a, const Use *u)
{
    const AmpReading r = amp_reading(a, u->user, (int)(u - u->user->in));
    return r == AMP_NARROWLY || r == AMP_WITH_US;
}

/* Whether a value on the way back is an edge of adjoints, which is rounded: nobody reads it but through a rounding.
 * Inside an adjoint everything is f32. */
static bool is_edge(AmpGraph *a, const Node *value)
{
    if (value->type->dtype != F32 || !a->backward)
        return true;
    for (const Use *u = value->uses; u; u = u->next)
        if (u->user->op == OP_amp_cast ? u->user->type->dtype == F32 : !follows_width(a, u))
            return false;
    return true;
}

/* What comes out of a sequence or optional has the type that went in, which stays as it is. */
static bool reads_container(const Node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (in(n, i) && (in(n, i)->type->kind == TYPE_SEQ || in(n, i)->type->kind == TYPE_OPTIONAL))
            return true;
    return false;
}

static int make_variable(AmpGraph *a, Node *value)
{
    int k;
    const Node *p = amp_producer(value, &k);
    const AmpNote *note = amp_note(a, p);
    const double n = size_of(value);
    const int v = add_variable(a, value, -1);
    bool enters = false;
    if (!amp_may_change(a, value)) {
        amp_fix(a, v, is_stored_narrow(a, value) ? AMP_NARROW : AMP_WIDE);
        return v;
    }
    if (is_given(value) && !value->graph->owner) {
        amp_fix(a, v, AMP_WIDE);
        return v;
    }
    store(variable(a, v), value);
    if (value->op == OP_const)
        amp_fix(a, v, AMP_WIDE);
    else if (is_given(value) || amp_has_open_body(p)) /* of a body: its ties say */
        variable(a, v)->led = enters = true;
    else if (note->role.class == AMP_T)
        amp_fix(a, v, (note->pinned && amp_says_result(p)) || amp_has(note->role.wide_out, k) ? AMP_WIDE : AMP_NARROW);
    else if (!follows(note->role.class) || reads_container(p) || note->pinned || amp_has(note->role.wide_out, k) ||
             (!moves(&note->role) && !is_edge(a, value)))
        amp_fix(a, v, AMP_WIDE);
    else
        follow(a, p, v, n);
    variable(a, v)->moves = enters || moves(&note->role);
    return v;
}

/* ---- readers ---- */

void amp_read_as_it_is(AmpGraph *a, Node *def, double price)
{
    AmpVariable *v = variable(a, amp_variable(a, def));
    const double n = size_of(def);
    v->wide_price += WIDE_BYTES * n;
    v->narrow_price += (NARROW_BYTES + price) * n;
    v->wide_readers++;
}

void amp_read_narrowly(AmpGraph *a, Node *def)
{
    amp_fix(a, copy_of(a, def), AMP_NARROW);
    a->problem.read += size_of(def);
}

void amp_read_with(AmpGraph *a, Node *def, int result, bool needs_copy)
{
    AmpVariable *v = variable(a, amp_variable(a, def));
    const double n = size_of(def);
    v->wide_price += WIDE_BYTES * n;
    v->narrow_price += NARROW_BYTES * n;
    if (needs_copy)
        amp_tie(a, (AmpTie){ .a = result, .b = copy_of(a, def), .narrow_wide = INFINITY });
}
