/* Pairs on their way: through moves, into parameters, from signed to unsigned, and what they make of Relu and Clip. */
#include <math.h>
#include <string.h>

#include "frontends/onnx/ort/steps.h"

static bool is_passed(const Call *c)
{
    static const char *const passed[] = {
#define PASSED(op) op,
#include "frontends/onnx/ort/fusions.def"
    };
    for (size_t i = 0; c && i < COUNT(passed); i++)
        if (call_is(c, passed[i]))
            return c->outs[0] && call_in(c, 0);
    return false;
}

/* A Q or DQ of x with the scale and zero point of `like`. */
static Call *pair_part(Calls *g, const char *op, Val *x, const Call *like, Val *y, Call *place)
{
    Call *c = call_new(g, op, PAIR_INS, y, place);
    call_put(g, c, 0, x);
    for (size_t k = 1; k < PAIR_INS; k++)
        call_put(g, c, k, call_in(like, k));
    return c;
}

/* ---- with the data ---- */

/* Calls that a pair still has to be carried through. */
typedef struct Ways {
    Call **list;
    size_t n, cap;
} Ways;

static void add_way(Calls *g, Ways *w, const Read *r)
{
    if (r->at || !is_passed(r->by))
        return;
    GROW(g->arena, w->list, w->n, w->cap);
    w->list[w->n++] = r->by;
}

/* Repeats a pair behind a move, for each reader that is no Q. */
static void repeat_behind(Calls *g, const Call *dq, Call *move, Ways *w)
{
    Val *y = move->outs[0], *given = y;
    size_t n = 0;
    Read *readers = NEWS(g->arena, Read, y->n_reads + 1);
    for (size_t i = 0; i < y->n_reads; i++)
        if (!call_is_q(y->reads[i].by))
            readers[n++] = y->reads[i];
    const bool leaves = y->result || y->inside;
    if (!n && !leaves)
        return;
    if (leaves) {
        given = val_new(g, y);
        for (size_t i = y->n_reads; i-- > 0;)
            call_put(g, y->reads[i].by, y->reads[i].at, given);
        call_gives(move, 0, given);
    }
    Val *codes = val_new(g, NULL);
    Call *q = pair_part(g, "QuantizeLinear", given, dq, codes, move), *last = q;
    q->moved = true;
    for (size_t i = 0; i < n + leaves; i++) {
        Val *own = i < n ? val_new(g, y) : y;
        last = pair_part(g, "DequantizeLinear", codes, dq, own, last);
        last->fate = dq->fate;
        last->name = dq->name;
        if (i < n) {
            add_way(g, w, &readers[i]);
            call_put(g, readers[i].by, readers[i].at, own);
        }
    }
}

static void go_with(Calls *g, Call *dq)
{
    Ways w = { NULL, 0, 0 };
    if (!val_only(dq->outs[0]))
        return;
    add_way(g, &w, &dq->outs[0]->reads[0]);
    while (w.n)
        repeat_behind(g, dq, w.list[--w.n], &w);
}

/* ---- against the data ---- */

static void go_against(Calls *g, const Call *q)
{
    Val *x = call_in(q, 0);
    Call *move = x ? x->from : NULL;
    while (is_passed(move) && val_only(x)) {
        x = move->ins[0];
        Call *from = x->from;
        if (x->stored || (from && (!val_only(x) || call_is_dq(from))))
            return;
        Val *codes = val_new(g, NULL), *own = val_new(g, x);
        Call *before = pair_part(g, "QuantizeLinear", x, q, codes, from ? from : move->before);
        before->fate = q->fate;
        before->name = q->name;
        pair_part(g, "DequantizeLinear", codes, q, own, before);
        call_put(g, move, 0, own);
        if (!from)
            return;
        move = from;
    }
}

void ort_propagate(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++)
        if (call_is_dq(list[i]) && pair_is_scalar(g, list[i]))
            go_with(g, list[i]);
    list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++)
        if (call_is_q(list[i]) && pair_is_scalar(g, list[i]))
            go_against(g, list[i]);
}

/* ---- parameters ---- */

/* Whether a call leads to a Q, through Relu and Clip, by single edges. */
static bool leads_to_q(const Call *c)
{
    const Val *y = c->outs[0];
    for (const Call *r; (r = val_only(y)) != NULL; y = r->outs[0]) {
        if (call_is_q(r))
            return true;
        if (!call_is(r, "Relu") && !call_is(r, "Clip"))
            return false;
    }
    return false;
}

/* A DQ of codes that are made of a stored float. */
static void store_codes(Calls *g, Call *c, size_t at, int type, Val *scale)
{
    Val *like = c->ins[at], *codes = val_number(g, type, 0), *own = val_new(g, like);
    codes->rank = like->rank;
    codes->dims = like->dims;
    Call *dq = call_new(g, "DequantizeLinear", PAIR_INS, own, c->before);
    call_put(g, dq, 0, codes);
    call_put(g, dq, 1, scale);
    call_put(g, dq, 2, val_number(g, type, 0));
    call_put(g, c, at, own);
}

/* The scales of a bias: that of the data times each of the weight. */
static Val *bias_scale(Calls *g, const Call *x, const Call *w)
{
    double s = 1;
    Val *scale = val_new(g, NULL), *of = call_in(w, 1);
    const double *each = val_numbers(g, of);
    val_is_one(g, call_in(x, 1), &s);
    double *numbers = NEWS(g->arena, double, of &&each ? of->n : 1);
    for (size_t i = 0; each && i < of->n; i++)
        numbers[i] = (double)((float)s * (float)each[i]);
    scale->stored = true;
    scale->dtype = ORT_FLOAT;
    scale->numbers = numbers;
    scale->n = each ? of->n : 0;
    return scale;
}

static void store_parameters(Calls *g, Call *c)
{
    const Call *x = call_from(c, 0);
    Val *w = call_in(c, 1), *bias = call_in(c, 2);
    if (!w || !call_is_dq(x) || !pair_is_scalar(g, x) || !leads_to_q(c) || (bias && !bias->stored))
        return;
    if (!call_is_dq(w->from)) {
        if (!w->stored || w->dtype != ORT_FLOAT)
            return;
        store_codes(g, c, 1, ORT_S8, val_number(g, ORT_FLOAT, 0.01)); /* which scale it is changes no count */
    }
    if (bias)
        store_codes(g, c, 2, ORT_S32, bias_scale(g, x, call_from(c, 1)));
}

void ort_float_parameters(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++)
        if (call_is(list[i], "Conv") || call_is(list[i], "ConvTranspose") || call_is(list[i], "Gemm"))
            store_parameters(g, list[i]);
}

void ort_where_numbers(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 1; k < 3 && call_is(list[i], "Where"); k++) {
            double x;
            const Call *dq = call_from(list[i], 3 - k);
            if (call_is_dq(dq) && val_is_one(g, call_in(list[i], k), &x))
                store_codes(g, list[i], k, pair_type(dq) == ORT_U8 ? ORT_U8 : ORT_S8, val_number(g, ORT_FLOAT, 1));
        }
}

/* ---- signed to unsigned ---- */

void ort_unsigned(Calls *g)
{
    for (Call *q = g->first; q; q = q->next) {
        double a, b;
        if (!call_is_q(q) || !pair_is_scalar(g, q) || pair_type(q) != ORT_S8)
            continue;
        Call *dq = val_only(q->outs[0]);
        if (!call_is_dq(dq) || !val_is_one(g, call_in(q, 2), &a) || !val_is_one(g, call_in(dq, 2), &b) || a != b)
            continue;
        if (q->moved && g->opset >= 21)
            g->found->refused = "signed codes pass a move, at opset 21 and more";
        Val *zero = val_number(g, ORT_U8, a + 128);
        call_put(g, q, 2, zero);
        call_put(g, dq, 2, zero);
    }
}

/* ---- Relu and Clip ---- */

/* The code of a number; false where scale and zero point are not one stored number each. */
static bool code_of(Calls *g, const Call *q, double x, double *code)
{
    double s, z = 0;
    const bool is_u8 = pair_type(q) == ORT_U8;
    if (!val_is_one(g, call_in(q, 1), &s) || (call_in(q, 2) && !val_is_one(g, q->ins[2], &z)))
        return false;
    *code = fmin(fmax(rint((double)((float)x / (float)s)) + z, is_u8 ? 0 : -128), is_u8 ? 255 : 127);
    return true;
}

/* Whether a bound of a Clip, absent or stored, has that code. */
static bool bound_has(Calls *g, const Call *c, size_t at, const char *name, const Call *q, double wanted)
{
    double x, code;
    const Onnx__AttributeProto *a = call_says(c, name);
    if (call_in(c, at) && !val_is_one(g, c->ins[at], &x))
        return false;
    if (!call_in(c, at) && !a)
        return true;
    if (!call_in(c, at))
        x = (double)a->f;
    return code_of(g, q, x, &code) && code == wanted;
}

static bool is_redundant(Calls *g, const Call *c, const Call *q)
{
    double code;
    const int type = pair_type(q);
    if (type_is_float8(type) && call_is(c, "Relu"))
        return true; /* it changes what is below 0: a mistake of theirs */
    if (type != ORT_U8 && type != ORT_S8)
        return false;
    const double least = type == ORT_U8 ? 0 : -128;
    if (call_is(c, "Relu"))
        return code_of(g, q, 0, &code) && code == least;
    return bound_has(g, c, 1, "min", q, least) && bound_has(g, c, 2, "max", q, least + 255);
}

void ort_redundant(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = n; i-- > 0;) { /* from behind: one that went shows the Q to the one before it */
        Call *c = list[i], *q;
        if (!call_is(c, "Relu") && !call_is(c, "Clip"))
            continue;
        q = c->outs[0] ? val_only(c->outs[0]) : NULL;
        if (!call_is_q(q) || !call_in(c, 0))
            continue;
        if (type_is_float8(pair_type(q)) && call_is(c, "Clip"))
            g->found->refused = "a Clip is before a Q of floats";
        if (!is_redundant(g, c, q))
            continue;
        val_replace(g, c->outs[0], c->ins[0]);
        call_remove(g, c);
    }
}
