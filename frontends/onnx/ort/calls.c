#include "frontends/onnx/ort/calls.h"

#include <string.h>

#include "base/bytes.h"
#include "frontends/onnx/file/payload.h"

/* ---- values ---- */

static Val *val_named(Calls *g, Str name)
{
    bool fresh;
    if (!name.n)
        return NULL;
    const char *own = arena_copy(g->arena, name.p, name.n);
    MapEntry *e = map_put(&g->values, own, &fresh);
    if (fresh) {
        Val *v = NEW(g->arena, Val);
        *v = (Val){ .name = own, .rank = RANK_UNKNOWN };
        e->value.p = v;
    }
    return e->value.p;
}

Val *val_new(Calls *g, const Val *like)
{
    Val *v = NEW(g->arena, Val);
    *v = (Val){ .name = "", .rank = RANK_UNKNOWN };
    if (like) {
        v->name = like->name;
        v->dtype = like->dtype;
        v->rank = like->rank;
        v->dims = like->dims;
    }
    return v;
}

Val *val_number(Calls *g, int dtype, double x)
{
    Val *v = val_new(g, NULL);
    double *numbers = NEWS(g->arena, double, 1);
    *numbers = x;
    v->stored = true;
    v->dtype = dtype;
    v->rank = 0;
    v->numbers = numbers;
    v->n = 1;
    return v;
}

static void forget(Val *v, const Call *c, size_t at)
{
    for (size_t i = 0; i < v->n_reads; i++)
        if (v->reads[i].by == c && v->reads[i].at == at) {
            memmove(&v->reads[i], &v->reads[i + 1], (v->n_reads - i - 1) * sizeof *v->reads);
            v->n_reads--;
            return;
        }
}

void call_put(Calls *g, Call *c, size_t i, Val *v)
{
    if (c->ins[i])
        forget(c->ins[i], c, i);
    c->ins[i] = v;
    if (!v)
        return;
    GROW(g->arena, v->reads, v->n_reads, v->cap);
    v->reads[v->n_reads++] = (Read){ c, i };
}

void val_replace(Calls *g, Val *old, Val *now)
{
    now->inside |= old->inside;
    while (old->n_reads)
        call_put(g, old->reads[0].by, old->reads[0].at, now);
}

static Status read_numbers(Calls *g, Val *v)
{
    TensorInfo info;
    DType dtype;
    Types types;
    const char *where = arena_printf(g->arena, "initializer %s", v->name);
    TRY(tensor_info(g->spine, g->diag, where, v->proto, &info));
    if (!dtype_from_onnx(info.dtype, &dtype) || dtype == STRING || info.rank > MAX_RANK)
        return OK;
    types_open(&types, g->arena);
    Tensor *t = tensor_new(g->arena, type_tensor(&types, dtype, info.rank, info.dims));
    TRY(tensor_read(g->spine, g->diag, where, v->proto, t->data, t->bytes));
    double *numbers = NEWS(g->arena, double, info.elements);
    for (int64_t i = 0; i < info.elements; i++)
        numbers[i] = dtype_is_float(dtype) ? tensor_get_f64(t, i) : (double)tensor_get_i64(t, i);
    v->numbers = numbers;
    v->n = (size_t)info.elements;
    return OK;
}

const double *val_numbers(Calls *g, Val *v)
{
    if (!v || !v->stored)
        return NULL;
    if (!v->numbers && v->proto && read_numbers(g, v) != OK)
        g->broken = true;
    return v->numbers;
}

static int64_t elements(const Val *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->rank; i++)
        n *= v->dims[i];
    return v->rank == RANK_UNKNOWN ? -1 : n;
}

bool val_is_one(Calls *g, Val *v, double *x)
{
    if (!v || !v->stored || (v->rank != RANK_UNKNOWN && elements(v) != 1))
        return false;
    const double *numbers = val_numbers(g, v);
    if (!numbers || v->n != 1)
        return false;
    *x = numbers[0];
    return true;
}

/* ---- calls ---- */

Call **calls_list(const Calls *g, size_t *n)
{
    *n = 0;
    for (const Call *c = g->first; c; c = c->next)
        ++*n;
    Call **list = NEWS(g->arena, Call *, *n + 1), **at = list;
    for (Call *c = g->first; c; c = c->next)
        *at++ = c;
    return list;
}

Call *call_new(Calls *g, const char *op, size_t n_ins, Val *out, Call *place)
{
    Call *c = NEW(g->arena, Call);
    *c = (Call){ .op = op, .name = "", .n_ins = n_ins, .n_outs = 1, .fate = -1 };
    c->ins = NEWS(g->arena, Val *, n_ins + 1);
    c->outs = NEWS(g->arena, Val *, 1);
    call_gives(c, 0, out);
    c->before = place;
    c->next = place ? place->next : g->first;
    *(c->before ? &c->before->next : &g->first) = c;
    *(c->next ? &c->next->before : &g->last) = c;
    return c;
}

void call_gives(Call *c, size_t i, Val *v)
{
    if (c->outs[i] && c->outs[i]->from == c)
        c->outs[i]->from = NULL;
    c->outs[i] = v;
    if (v)
        v->from = c;
}

void call_remove(Calls *g, Call *c)
{
    for (size_t i = 0; i < c->n_ins; i++)
        if (c->ins[i]) {
            forget(c->ins[i], c, i);
            c->ins[i] = NULL;
        }
    for (size_t i = 0; i < c->n_outs; i++)
        if (c->outs[i] && c->outs[i]->from == c)
            c->outs[i]->from = NULL;
    *(c->before ? &c->before->next : &g->first) = c->next;
    *(c->next ? &c->next->before : &g->last) = c->before;
    c->gone = true;
}

const Onnx__AttributeProto *call_says(const Call *c, const char *name)
{
    for (size_t i = 0; c->proto && i < c->proto->n_attribute; i++)
        if (str_is(str_of(c->proto->attribute[i]->name), name))
            return c->proto->attribute[i];
    return NULL;
}

bool call_says_is(const Call *c, const char *name, double x)
{
    const Onnx__AttributeProto *a = call_says(c, name);
    return !a || (a->has_f ? (double)a->f : (double)a->i) == x;
}

/* ---- pairs ---- */

bool pair_is_scalar(Calls *g, const Call *c)
{
    double x;
    return val_is_one(g, call_in(c, 1), &x);
}

int pair_type(const Call *c)
{
    for (const Call *at = c; at;) {
        const Val *zero = call_in(at, 2), *x = call_in(at, 0);
        if (zero && zero->dtype)
            return zero->dtype;
        if (call_is_q(at))
            return ORT_U8;
        if (!x || x->stored || !call_is_q(x->from))
            return x && x->dtype ? x->dtype : ORT_U8;
        at = x->from;
    }
    return ORT_U8;
}

bool type_is_float8(int type)
{
    return type >= ORT_E4M3 && type <= ORT_E5M2_FNUZ;
}

static bool same_numbers(Calls *g, Val *a, Val *b, bool absent_is_0)
{
    double zero = 0;
    const double *x = val_numbers(g, a), *y = val_numbers(g, b);
    if (a == b)
        return true;
    size_t n = x ? a->n : 1, m = y ? b->n : 1;
    if (absent_is_0) {
        x = x ? x : &zero;
        y = y ? y : &zero;
    }
    return x && y && n == m && memcmp(x, y, n * sizeof *x) == 0;
}

bool pair_same(Calls *g, const Call *a, const Call *b)
{
    return pair_type(a) == pair_type(b) && same_numbers(g, call_in(a, 1), call_in(b, 1), false) &&
           same_numbers(g, call_in(a, 2), call_in(b, 2), true);
}

void call_taken(Calls *g, const Call *pair, const char *by, const Call *at)
{
    if (pair->fate < 0)
        return;
    FusionFate *f = &g->found->fates[pair->fate];
    const bool moves = f->by && !strchr(f->by, '.') && f->by[0] != 'Q';
    if (f->by && !moves) /* a copy of it went before, into more than a move */
        return;
    f->by = by;
    f->at = at && at->name[0] ? at->name : NULL;
}

/* ---- reading ---- */

static void take_type(Calls *g, Val *v, const Type *t)
{
    int64_t *dims = NEWS(g->arena, int64_t, t->rank > 0 ? t->rank : 1);
    if (t->kind != TYPE_TENSOR)
        return;
    v->dtype = dtype_onnx(t->dtype);
    v->rank = t->rank;
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i];
    v->dims = dims;
}

static void take_stored(Calls *g, Str name, const Onnx__TensorProto *t)
{
    Val *v = val_named(g, name);
    if (!v)
        return;
    v->stored = true;
    v->proto = t;
    v->dtype = t->data_type;
    v->rank = (int)t->n_dims;
    v->dims = t->dims;
}

static void take_fate(Calls *g, Call *c)
{
    Fusions *f = g->found;
    if (!call_is_q(c) && !call_is_dq(c))
        return;
    const Val *v = c->n_outs ? c->outs[0] : NULL, *x = call_in(c, 0);
    c->fate = (int)f->n;
    f->fates[f->n++] = (FusionFate){ .node = c->name[0] ? c->name
                                             : v        ? v->name
                                                        : "",
                                     .value = x ? x->name : "",
                                     .is_q = call_is_q(c) };
}

void calls_count(Calls *g, const char *op)
{
    map_put(&g->found->ops, op, NULL)->value.i++;
}

static const char *call_title(Calls *g, const Onnx__NodeProto *n)
{
    const Str domain = str_of(n->domain), op = str_of(n->op_type);
    return domain.n && !str_is(domain, "ai.onnx") ? arena_printf(g->arena, "%.*s.%.*s", STR_ARG(domain), STR_ARG(op))
                                                  : arena_copy(g->arena, op.p, op.n);
}

/* Bodies that wait to be looked at. */
typedef struct Bodies {
    const Onnx__GraphProto **list;
    size_t n, cap;
} Bodies;

static void add_bodies(Calls *g, Bodies *w, const Onnx__NodeProto *n)
{
    for (size_t i = 0; i < n->n_attribute; i++)
        if (n->attribute[i]->g) {
            GROW(g->arena, w->list, w->n, w->cap);
            w->list[w->n++] = n->attribute[i]->g;
        }
}

static void read_inside(Calls *g, Str name)
{
    Val *v = val_named(g, name);
    if (v)
        v->inside = true;
}

/* What the bodies of a call read is read by somebody who is not looked at; their operators stay what they are. */
static void read_bodies(Calls *g, const Onnx__NodeProto *n)
{
    Bodies w = { NULL, 0, 0 };
    add_bodies(g, &w, n);
    while (w.n) {
        const Onnx__GraphProto *body = w.list[--w.n];
        for (size_t i = 0; i < body->n_node; i++) {
            for (size_t k = 0; k < body->node[i]->n_input; k++)
                read_inside(g, str_of(body->node[i]->input[k]));
            calls_count(g, call_title(g, body->node[i]));
            add_bodies(g, &w, body->node[i]);
        }
        for (size_t i = 0; i < body->n_output; i++)
            read_inside(g, str_of(body->output[i]->name));
    }
}

static void take_node(Calls *g, const Onnx__NodeProto *n)
{
    const Str name = str_of(n->name);
    if (str_is(str_of(n->op_type), "Constant") && n->n_output == 1)
        for (size_t i = 0; i < n->n_attribute; i++)
            if (n->attribute[i]->t) {
                take_stored(g, str_of(n->output[0]), n->attribute[i]->t);
                return;
            }
    Call *c = call_new(g, call_title(g, n), n->n_input > PAIR_INS ? n->n_input : PAIR_INS, NULL, g->last);
    c->name = arena_copy(g->arena, name.p, name.n);
    c->proto = n;
    c->was = c->op;
    for (size_t i = 0; i < n->n_input; i++)
        call_put(g, c, i, val_named(g, str_of(n->input[i])));
    c->n_outs = n->n_output;
    if (!call_is_q(c) && !call_is_dq(c))
        c->n_ins = n->n_input;
    c->outs = NEWS(g->arena, Val *, n->n_output + 1);
    for (size_t i = 0; i < n->n_output; i++)
        call_gives(c, i, val_named(g, str_of(n->output[i])));
    take_fate(g, c);
    read_bodies(g, n);
}

/* Types of values by their names; what has none in a graph of ours comes from a Q or DQ, which changes no shape. */
static void take_types(Calls *g, Graph *typed)
{
    for (Node *n = typed ? walk_first(typed) : NULL; n; n = walk_next(typed, n)) {
        MapEntry *e = n->name ? map_find(&g->values, n->name) : NULL;
        Val *v = e ? e->value.p : NULL;
        if (v && !v->stored && v->rank == RANK_UNKNOWN)
            take_type(g, v, n->type);
    }
    for (size_t i = 0; typed && i < typed->n_inputs; i++) {
        MapEntry *e = typed->inputs[i]->name ? map_find(&g->values, typed->inputs[i]->name) : NULL;
        if (e)
            take_type(g, e->value.p, typed->inputs[i]->type);
    }
    for (const Call *c = g->first; c; c = c->next) {
        const Val *x = call_in(c, 0);
        Val *v = c->n_outs ? c->outs[0] : NULL;
        if ((!call_is_q(c) && !call_is_dq(c)) || !x || !v || v->rank != RANK_UNKNOWN)
            continue;
        v->rank = x->rank;
        v->dims = x->dims;
        v->dtype = call_is_dq(c) ? ORT_FLOAT : v->dtype;
    }
}

void calls_read(Calls *g, Graph *typed)
{
    const Onnx__ModelProto *m = g->spine->model;
    const Onnx__GraphProto *from = m->graph;
    map_open(&g->values, g->arena);
    g->found->fates = NEWS(g->arena, FusionFate, from->n_node + 1);
    for (size_t i = 0; i < m->n_opset_import; i++)
        if (!m->opset_import[i]->domain.len)
            g->opset = m->opset_import[i]->version;
    for (size_t i = 0; i < from->n_initializer; i++)
        take_stored(g, str_of(from->initializer[i]->name), from->initializer[i]);
    for (size_t i = 0; i < from->n_node; i++)
        take_node(g, from->node[i]);
    for (size_t i = 0; i < from->n_output; i++) {
        Val *v = val_named(g, str_of(from->output[i]->name));
        if (v)
            v->result = true;
    }
    take_types(g, typed);
}
