/* What happens before pairs are looked at: calls that do nothing, equal calls, sums that become a Gemm's. */
#include <string.h>

#include "frontends/onnx/ort/steps.h"

void ort_own_dq(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++) {
        Call *c = list[i];
        if (!call_is_dq(c) || !c->outs[0])
            continue;
        Val *v = c->outs[0];
        while (v->n_reads > (v->result || v->inside ? 0u : 1u)) {
            const Read last = v->reads[v->n_reads - 1];
            Val *own = val_new(g, v);
            Call *copy = call_new(g, c->op, PAIR_INS, own, c);
            for (size_t k = 0; k < PAIR_INS; k++)
                call_put(g, copy, k, call_in(c, k));
            copy->fate = c->fate;
            copy->name = c->name;
            copy->proto = c->proto;
            call_put(g, last.by, last.at, own);
        }
    }
}

/* ---- nothing ---- */

static bool does_nothing(const Call *c)
{
    if (!call_in(c, 0) || !c->outs[0])
        return false;
    if (call_is(c, "Dropout"))
        return c->n_outs < 2 || !c->outs[1] || !(c->outs[1]->n_reads || c->outs[1]->result);
    if (call_is(c, "Cast")) {
        const Onnx__AttributeProto *to = call_says(c, "to");
        return to && c->ins[0]->dtype == to->i;
    }
    return call_is(c, "Identity");
}

static void take_out(Calls *g, Call *c)
{
    Val *x = c->ins[0], *y = c->outs[0];
    if (!y->result) {
        val_replace(g, y, x);
        call_remove(g, c);
        return;
    }
    Call *from = x->from;
    if (!from || x->result)
        return;
    call_remove(g, c);
    val_replace(g, x, y);
    for (size_t i = 0; i < from->n_outs; i++)
        if (from->outs[i] == x)
            call_gives(from, i, y);
}

/* A padding with zeros in front of who pads himself. */
static bool pads_for_next(Calls *g, const Call *c)
{
    double x = 0;
    const Onnx__AttributeProto *mode = call_says(c, "mode");
    const Call *r = call_is(c, "Pad") && c->outs[0] ? val_only(c->outs[0]) : NULL;
    if (!call_is(r, "Conv") && !call_is(r, "MaxPool") && !call_is(r, "AveragePool"))
        return false;
    if (mode && !str_is(str_of(mode->s), "constant"))
        return false;
    return !call_in(c, 2) || (val_is_one(g, c->ins[2], &x) && x == 0);
}

/* A Relu in front of a Clip that begins at 0. */
static bool is_clipped_too(Calls *g, const Call *c)
{
    double least;
    const Call *r = call_is(c, "Relu") && c->outs[0] ? val_only(c->outs[0]) : NULL;
    return call_is(r, "Clip") && val_is_one(g, call_in(r, 1), &least) && least >= 0;
}

/* A quantizer of what is stored gives what is stored. */
static void fold_quantizer(Calls *g, Call *c)
{
    Val *v = c->outs[0], *x = call_in(c, 0);
    if (!call_is_q(c) || !x || !x->stored || !v)
        return;
    v->dtype = pair_type(c);
    v->stored = true;
    v->rank = x->rank;
    v->dims = x->dims;
    call_taken(g, c, "a stored value", NULL);
    call_remove(g, c);
}

void ort_clean(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++)
        if (does_nothing(list[i]))
            take_out(g, list[i]);
    for (size_t i = 0; i < n; i++)
        if (!list[i]->gone && (pads_for_next(g, list[i]) || is_clipped_too(g, list[i]))) {
            val_replace(g, list[i]->outs[0], list[i]->ins[0]);
            call_remove(g, list[i]);
        }
    for (size_t i = 0; i < n; i++)
        fold_quantizer(g, list[i]);
}

void ort_double_pairs(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++) {
        Call *dq = list[i], *q = call_is_dq(dq) ? val_only(dq->outs[0]) : NULL;
        Call *p = q ? call_from(dq, 0) : NULL;
        if (!call_is_q(q) || !call_is_q(p) || !val_only(p->outs[0]))
            continue;
        Call *d = val_only(q->outs[0]);
        if (!call_is_dq(d) || pair_type(dq) != pair_type(d))
            continue;
        for (size_t k = 1; k < PAIR_INS; k++)
            call_put(g, p, k, call_in(q, k));
        call_put(g, d, 0, p->outs[0]);
        call_taken(g, dq, "the pair before it: two in a row are one", NULL);
        call_taken(g, q, "the pair before it: two in a row are one", NULL);
        call_remove(g, dq);
        call_remove(g, q);
    }
}

/* ---- equal calls ---- */

/* Floats and wide integers that are one number and equal are one value; zero points are not. */
static void merge_numbers(Calls *g)
{
    Map seen;
    map_open(&seen, g->arena);
    for (size_t i = 0; i < g->values.n; i++) {
        double x;
        bool fresh;
        Val *v = g->values.entries[i].value.p;
        if ((v->dtype != ORT_FLOAT && v->dtype != ORT_S64) || v->rank > 1 || !val_is_one(g, v, &x))
            continue;
        MapEntry *e = map_put(&seen, arena_printf(g->arena, "%d %d %a", v->dtype, v->rank, x), &fresh);
        if (fresh)
            e->value.p = v;
        else if (!v->result)
            val_replace(g, v, e->value.p);
    }
}

static bool may_merge(const Call *c)
{
    return !c->gone && c->n_ins && c->n_outs && c->outs[0] && !call_is_dq(c) && strcmp(c->op, "Dropout") != 0 &&
           strncmp(c->op, "Random", 6) != 0 && strcmp(c->op, "Bernoulli") != 0 && strcmp(c->op, "Multinomial") != 0;
}

static void add_key(Calls *g, Text *key, const Call *c)
{
    text_printf(key, "%s %zu %zu ", c->op, c->n_ins, c->n_outs);
    text_bytes(key, c->ins, c->n_ins * sizeof *c->ins);
    for (size_t i = 0; c->proto && i < c->proto->n_attribute; i++) {
        const ProtobufCMessage *a = &c->proto->attribute[i]->base;
        const size_t size = protobuf_c_message_get_packed_size(a);
        uint8_t *bytes = arena_alloc(g->arena, size + 1);
        text_bytes(key, bytes, protobuf_c_message_pack(a, bytes));
    }
}

static bool gives_result(const Call *c)
{
    bool gives = false;
    for (size_t i = 0; i < c->n_outs; i++)
        gives |= c->outs[i] && (c->outs[i]->result || c->outs[i]->inside);
    return gives;
}

/* Whether call `b`, which is equal, went into `a`. */
static bool merged(Calls *g, Call *a, Call *b)
{
    if (gives_result(b)) { /* then the other one gives the result */
        if (b->n_outs != 1 || gives_result(a))
            return false;
        Val *y = b->outs[0];
        val_replace(g, a->outs[0], y);
        call_taken(g, b, "an equal one", a);
        call_remove(g, b);
        call_gives(a, 0, y);
        return true;
    }
    for (size_t i = 0; i < b->n_outs; i++)
        if (b->outs[i] && a->outs[i])
            val_replace(g, b->outs[i], a->outs[i]);
        else if (b->outs[i] && b->outs[i]->n_reads)
            return false;
    call_taken(g, b, "an equal one", a);
    call_remove(g, b);
    return true;
}

void ort_merge(Calls *g)
{
    Map seen;
    size_t n;
    Call **list = calls_list(g, &n);
    merge_numbers(g);
    map_open(&seen, g->arena);
    for (size_t i = 0; i < n; i++) {
        bool fresh;
        Text key;
        if (!may_merge(list[i]))
            continue;
        text_open(&key, g->arena);
        add_key(g, &key, list[i]);
        MapEntry *e = map_put_n(&seen, key.p, key.n, &fresh);
        if (fresh || !merged(g, e->value.p, list[i]))
            e->value.p = fresh ? list[i] : e->value.p;
    }
}

/* ---- Gemm ---- */

static bool any_open(const Val *v)
{
    for (int i = 0; i < v->rank; i++)
        if (v->dims[i] < 0)
            return true;
    return false;
}

/* Whether a product of these operands and a sum with `b` are a Gemm. */
static bool sums_as_gemm(const Val *x, const Val *w, const Val *b)
{
    if (!x || !w || !b || x->stored || x->rank < 2 || w->rank != 2 || b->rank != 1 || b->dims[0] != w->dims[1])
        return false;
    return x->rank == 2 || (!any_open(x) && (b->stored || call_is_dq(b->from)));
}

static Call *reshape_to(Calls *g, Val *x, int rank, const int64_t *dims, Call *place)
{
    Val *y = val_new(g, NULL), *shape = val_new(g, NULL);
    y->dtype = x->dtype;
    y->rank = rank;
    y->dims = dims;
    shape->stored = true;
    Call *c = call_new(g, "Reshape", 2, y, place);
    call_put(g, c, 0, x);
    call_put(g, c, 1, shape);
    return c;
}

static void make_gemm(Calls *g, Call *product, Call *sum, Val *b)
{
    Val *x = product->ins[0], *w = product->ins[1], *y = sum->outs[0];
    Call *place = sum->before == product ? product->before : sum->before;
    int64_t *flat = NEWS(g->arena, int64_t, 2), *rows = NEWS(g->arena, int64_t, 2);
    const bool turns = x->rank > 2;
    call_remove(g, sum);
    call_remove(g, product);
    flat[0] = rows[0] = 1;
    for (int i = 0; i < x->rank - 1; i++)
        flat[0] *= x->dims[i];
    flat[1] = x->dims[x->rank - 1];
    rows[0] = flat[0];
    rows[1] = w->dims[1];
    if (turns) {
        place = reshape_to(g, x, 2, flat, place);
        x = place->outs[0];
    }
    Call *gemm = call_new(g, "Gemm", 3, turns ? val_new(g, NULL) : y, place);
    gemm->was = product->op;
    gemm->name = product->name[0] ? product->name : sum->name;
    call_put(g, gemm, 0, x);
    call_put(g, gemm, 1, w);
    call_put(g, gemm, 2, b);
    if (!turns)
        return;
    gemm->outs[0]->dtype = x->dtype;
    gemm->outs[0]->rank = 2;
    gemm->outs[0]->dims = rows;
    Call *back = reshape_to(g, gemm->outs[0], y->rank, y->dims, gemm);
    call_gives(back, 0, y);
}

void ort_gemm(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++) {
        Call *c = list[i], *sum = call_is(c, "MatMul") && c->outs[0] ? val_only(c->outs[0]) : NULL;
        if (!call_is(sum, "Add") || sum->n_ins != 2 || sum->ins[0] == sum->ins[1])
            continue;
        Val *b = sum->ins[sum->ins[0] == c->outs[0]];
        if (sums_as_gemm(call_in(c, 0), call_in(c, 1), b))
            make_gemm(g, c, sum, b);
    }
}
