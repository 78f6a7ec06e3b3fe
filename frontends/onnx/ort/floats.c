/* What becomes of what is left float, and of pairs that are left side by side. */
#include <stdlib.h>
#include <string.h>

#include "frontends/onnx/ort/steps.h"

/* ---- parts ---- */

/* A part of a value along one axis, from one element to another. */
typedef struct Part {
    Call *c;
    const Val *of;
    double axis, from, to, size; /* of the axis */
    bool shrinks;                /* the axis goes */
    size_t at;                   /* in order of appearance */
} Part;

static bool is_slice(Calls *g, const Call *c, Part *p)
{
    double step = 1;
    return call_is(c, "Slice") && c->n_ins >= 4 && val_is_one(g, c->ins[1], &p->from) &&
           val_is_one(g, c->ins[2], &p->to) && val_is_one(g, c->ins[3], &p->axis) &&
           (!call_in(c, 4) || (val_is_one(g, c->ins[4], &step) && step == 1));
}

/* One element is a part, too. */
static bool is_gather(Calls *g, const Call *c, Part *p)
{
    const Onnx__AttributeProto *axis = call_says(c, "axis");
    if (!call_is(c, "Gather") || !val_is_one(g, call_in(c, 1), &p->from))
        return false;
    p->axis = axis ? (double)axis->i : 0;
    p->to = p->from + 1;
    p->shrinks = c->ins[1]->rank == 0;
    return true;
}

static bool is_part(Calls *g, Call *c, Part *p)
{
    *p = (Part){ .c = c, .of = call_in(c, 0) };
    if (!p->of || !c->outs[0] || (!is_slice(g, c, p) && !is_gather(g, c, p)))
        return false;
    const int axis = (int)p->axis + (p->axis < 0 ? p->of->rank : 0);
    if (axis < 0 || axis >= p->of->rank || p->of->dims[axis] < 0)
        return false;
    p->axis = axis;
    p->size = (double)p->of->dims[axis];
    return true;
}

static int by_start(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The parts of one value become one Split. */
static void split(Calls *g, Part *some, size_t n)
{
    double at = 0;
    qsort(some, n, sizeof *some, by_start);
    for (size_t i = 0; i < n; i++) {
        if (some[i].from != at)
            return;
        at = some[i].to;
    }
    if (n < 2 || at < some[0].size)
        return;
    Call *c = call_new(g, "Split", 1, NULL, some[0].c->before);
    c->outs = NEWS(g->arena, Val *, n);
    c->n_outs = n;
    call_put(g, c, 0, some[0].c->ins[0]);
    for (size_t i = 0; i < n; i++) {
        Val *y = some[i].c->outs[0];
        call_remove(g, some[i].c);
        if (some[i].shrinks) {
            Call *shrink = call_new(g, "Squeeze", 1, y, c);
            y = val_new(g, NULL);
            call_put(g, shrink, 0, y);
        }
        call_gives(c, i, y);
    }
}

static void join_slices(Calls *g)
{
    size_t n, n_parts = 0;
    Call **list = calls_list(g, &n);
    Part *parts = NEWS(g->arena, Part, n + 1), *some = NEWS(g->arena, Part, n + 1);
    for (size_t i = 0; i < n; i++)
        n_parts += is_part(g, list[i], &parts[n_parts]);
    for (size_t i = 0; i < n_parts; i++) {
        size_t k = 0;
        if (parts[i].c->gone || !parts[i].of)
            continue;
        const Part first = parts[i];
        for (size_t j = i; j < n_parts; j++)
            if (parts[j].of == first.of && parts[j].axis == first.axis) {
                some[k] = parts[j];
                some[k++].at = j;
                parts[j].of = NULL; /* looked at */
            }
        split(g, some, k);
    }
}

/* ---- neighbours that become one ---- */

typedef struct Joined {
    const char *op, *next, *both;
} Joined;

static const Joined joined[] = {
#define JOINED(op, next, both) { op, next, both },
#include "frontends/onnx/ort/fusions.def"
};

static void join(Calls *g, Call *c)
{
    Call *r = c->n_outs && c->outs[0] ? val_only(c->outs[0]) : NULL;
    for (size_t i = 0; r && i < COUNT(joined); i++)
        if (call_is(c, joined[i].op) && call_is(r, joined[i].next)) {
            Val *y = r->outs[0];
            c->op = joined[i].both;
            call_remove(g, r);
            call_gives(c, 0, y);
            return;
        }
}

/* Swish is opened as the function that it is: x sigmoid(a x), a cast to the type of x. */
static void open_swish(Calls *g, Call *c)
{
    if (!call_is(c, "Swish"))
        return;
    Val *x = call_in(c, 0), *y = c->outs[0], *a = val_new(g, NULL), *ax = val_new(g, y), *s = val_new(g, y);
    c->op = "Sigmoid";
    call_gives(c, 0, s);
    Call *cast = call_new(g, "Cast", 0, a, c->before), *inner = call_new(g, "Mul", 2, ax, cast);
    call_put(g, inner, 0, x);
    call_put(g, inner, 1, a);
    call_put(g, c, 0, ax);
    Call *mul = call_new(g, "Mul", 2, y, c);
    call_put(g, mul, 0, x);
    call_put(g, mul, 1, s);
}

/* Gelu of a sum with a stored list. */
static void join_bias(Calls *g, Call *gelu)
{
    Call *add = call_is(gelu, "Gelu") ? call_from(gelu, 0) : NULL;
    if (!call_is(add, "Add") || !val_only(add->outs[0]))
        return;
    for (size_t i = 0; i < 2; i++)
        if (call_in(add, i) && add->ins[i]->stored && add->ins[i]->rank == 1) {
            Val *x = call_in(add, 1 - i);
            call_remove(g, add);
            call_put(g, gelu, 0, x);
            gelu->op = "com.microsoft.BiasGelu";
            return;
        }
}

static bool same_sizes(const Val *a, const Val *b)
{
    if (!a || !b || a->rank != 3 || b->rank != 3)
        return false;
    for (int i = 0; i < 3; i++)
        if (a->dims[i] < 0 || a->dims[i] != b->dims[i])
            return false;
    return true;
}

/* LayerNormalization of a sum that nobody else reads. */
static void join_norm(Calls *g, Call *norm)
{
    Call *add = call_is(norm, "LayerNormalization") ? call_from(norm, 0) : NULL;
    if (!call_is(add, "Add") || !val_only(add->outs[0]) || !same_sizes(call_in(add, 0), call_in(add, 1)))
        return;
    Call *both = call_new(g, "com.microsoft.SkipLayerNormalization", norm->n_ins + 1, NULL, norm);
    both->name = norm->name;
    both->was = norm->was;
    for (size_t i = 0; i < both->n_ins; i++)
        call_put(g, both, i, i < 2 ? call_in(add, i) : call_in(norm, i - 1));
    Val *y = norm->outs[0];
    call_remove(g, add);
    call_remove(g, norm);
    call_gives(both, 0, y);
}

/* HardSwish is opened. */
static void open_hard_swish(Calls *g, Call *c)
{
    if (!call_is(c, "HardSwish"))
        return;
    c->op = "HardSigmoid";
    Val *y = c->outs[0], *inner = val_new(g, y);
    call_gives(c, 0, inner);
    Call *mul = call_new(g, "Mul", 2, y, c);
    call_put(g, mul, 0, call_in(c, 0));
    call_put(g, mul, 1, inner);
}

static Call *reader(const Call *c)
{
    return c && c->outs[0] ? val_only(c->outs[0]) : NULL;
}

/* x (1 + erf(x / sqrt 2)) / 2 */
static void join_gelu(Calls *g, Call *erf)
{
    Call *div = call_is(erf, "Erf") ? call_from(erf, 0) : NULL, *add, *mul, *half;
    if (!call_is(div, "Div"))
        return;
    add = reader(erf);
    mul = call_is(add, "Add") ? reader(add) : NULL;
    half = call_is(mul, "Mul") ? reader(mul) : NULL;
    if (!call_is(half, "Mul") || mul->n_ins != 2 || (mul->ins[0] != div->ins[0] && mul->ins[1] != div->ins[0]))
        return;
    Val *x = div->ins[0], *y = half->outs[0];
    Call *gelu = call_new(g, "com.microsoft.Gelu", 1, NULL, half->before);
    call_put(g, gelu, 0, x);
    Call *const old[] = { half, mul, add, erf, div };
    for (size_t i = 0; i < COUNT(old); i++)
        call_remove(g, old[i]);
    call_gives(gelu, 0, y);
}

void ort_floats(Calls *g)
{
    size_t n;
    join_slices(g);
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++)
        if (!list[i]->gone) {
            join(g, list[i]);
            open_hard_swish(g, list[i]);
            open_swish(g, list[i]);
            join_bias(g, list[i]);
            join_norm(g, list[i]);
        }
    for (size_t i = 0; i < n; i++)
        if (!list[i]->gone)
            join_gelu(g, list[i]);
}

/* ---- the end ---- */

void ort_neighbours(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++) {
        Call *dq = list[i], *q = call_is_dq(dq) ? val_only(dq->outs[0]) : NULL;
        if (!call_is_q(q) || !pair_same(g, dq, q) || !val_only(q->outs[0]))
            continue;
        val_replace(g, q->outs[0], dq->ins[0]);
        call_taken(g, dq, "the Q behind it, which is equal", q);
        call_taken(g, q, "the DQ before it, which is equal", dq);
        call_remove(g, q);
        call_remove(g, dq);
    }
}

static bool is_read(const Call *c)
{
    bool any = !c->n_ins;
    for (size_t i = 0; i < c->n_outs; i++)
        any |= c->outs[i] && (c->outs[i]->n_reads || c->outs[i]->result || c->outs[i]->inside);
    return any;
}

void ort_unread(Calls *g)
{
    for (Call *c = g->last, *before; c; c = before) { /* readers stand behind what they read */
        before = c->before;
        if (!is_read(c)) {
            call_taken(g, c, "nobody reads it", NULL);
            call_remove(g, c);
        }
    }
}
