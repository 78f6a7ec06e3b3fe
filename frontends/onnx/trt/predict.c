/* What TensorRT makes of a file: of every Q and DQ the rule that takes it, or why none does.
 *
 *     DQ of data, DQ of a weight -> product -> (what is added) -> (activation) -> Q       one kernel on codes
 *     DQ of what is added                                                                 goes into the same
 *     DQ -> average pool -> Q                                                             a pool of codes
 *     Q behind a move goes before it, DQ before a move behind it                          the move moves codes */
#include <string.h>

#include "frontends/onnx/ort/calls.h"

typedef enum Kind {
    OTHER,
    PRODUCT,    /* weights, data, a float bias */
    SUM,        /* part of a product that gives it one operand */
    POOL,       /* between a DQ and a Q */
    ACTIVATION, /* between a product and a Q */
    MOVE,       /* codes go through */
} Kind;

enum { MOST_MOVES = 64 }; /* that a pair goes through */

static Kind kind_of(const Call *c)
{
    static const struct {
        const char *op;
        Kind kind;
    } rules[] = {
#define TRT_RULE(op, kind) { op, kind },
#include "frontends/onnx/trt/rules.def"
    };
    for (size_t i = 0; c && i < COUNT(rules); i++)
        if (call_is(c, rules[i].op))
            return rules[i].kind;
    return OTHER;
}

static const char *place_name(const Call *c)
{
    return c->name[0] ? c->name : c->n_outs && c->outs[0] ? c->outs[0]->name : "";
}

/* Why a Q or DQ is none that TensorRT has; null: it is one. */
static const char *illegal(Calls *g, const Call *pair)
{
    const Val *zero = call_in(pair, 2), *x = call_in(pair, 0);
    const double *numbers = zero ? val_numbers(g, (Val *)zero) : NULL;
    if (pair_type(pair) == ORT_S32)
        return "biases are floats";
    if (pair_type(pair) != ORT_S8)
        return "codes are of other types than int8";
    if (zero && !numbers)
        return "its zero point is computed";
    for (size_t i = 0; i < (zero ? zero->n : 0); i++)
        if (numbers[i] != 0)
            return "its zero point is not 0";
    if (call_is_dq(pair) && x && x->from && !call_is_q(x->from) && kind_of(x->from) != MOVE)
        return arena_printf(g->arena, "%s stands between Q and DQ", x->from->op);
    return (!x || !x->stored) && !pair_is_scalar(g, pair) ? "data have several scales" : NULL;
}

/* Whether a product reads data and weights, or data and data, through legal DQ. */
static bool is_of_codes(Calls *g, const Call *product)
{
    for (size_t i = 0; i < 2; i++)
        if (!call_is_dq(call_from(product, i)) || illegal(g, call_from(product, i)))
            return false;
    const Call *bias = call_from(product, 2);
    return !call_is_dq(bias) && !call_is_q(bias);
}

/* The product of codes that gives a sum one of its operands, and nobody else. */
static const Call *product_of(Calls *g, const Call *sum)
{
    for (size_t i = 0; i < 2; i++) {
        const Call *c = call_from(sum, i);
        if (kind_of(c) == PRODUCT && is_of_codes(g, c) && val_only(c->outs[0]))
            return c;
    }
    return NULL;
}

/* What a Q becomes part of, up from the value that it reads; null, and why. */
static const Call *taker_of_q(Calls *g, const Call *q, const char **why)
{
    const Val *v = call_in(q, 0);
    for (int moves = 0; moves < MOST_MOVES; moves++) {
        const Call *c = v ? v->from : NULL;
        const Kind kind = kind_of(c);
        if (!c) {
            *why = "what it reads comes from outside";
            return NULL;
        }
        if (kind == MOVE) { /* of what lies side by side each part is quantized so: the first shows it */
            v = call_in(c, 0);
            continue;
        }
        if (call_is_dq(c)) { /* behind a move of codes: the same pair again */
            *why = pair_same(g, c, q) ? NULL : "another scale than the DQ before it has";
            return *why ? NULL : c;
        }
        if (!val_only(v)) {
            *why = arena_printf(g->arena, "%s %s is read by others, too", c->op, place_name(c));
            return NULL;
        }
        const Call *codes = kind == PRODUCT && is_of_codes(g, c) ? c : kind == SUM ? product_of(g, c) : NULL;
        if (kind == POOL && call_is_dq(call_from(c, 0)) && !illegal(g, call_from(c, 0)))
            codes = c;
        if (codes)
            return codes;
        *why = arena_printf(g->arena, "%s %s is computed of floats", c->op, place_name(c));
        if (kind != ACTIVATION)
            return NULL;
        v = call_in(c, 0);
    }
    *why = "it stands behind too many moves";
    return NULL;
}

/* Whether an average pool leads to a Q. */
static bool leads_to_q(const Call *c)
{
    for (int moves = 0; c && moves < MOST_MOVES; moves++) {
        const Call *next = c->outs[0] ? val_only(c->outs[0]) : NULL;
        if (call_is_q(next))
            return true;
        c = kind_of(next) == MOVE ? next : NULL;
    }
    return false;
}

/* What one reader of a DQ makes of it; null, and why. */
static const Call *taker_of_dq(Calls *g, Call *reader, const char **why)
{
    const Kind kind = kind_of(reader);
    if (call_is_q(reader))
        return reader;
    if (kind == PRODUCT && is_of_codes(g, reader))
        return reader;
    if (kind == SUM && product_of(g, reader) && call_from(reader, 0) != call_from(reader, 1))
        return product_of(g, reader);
    if ((kind == POOL || kind == MOVE) && leads_to_q(reader))
        return reader;
    *why = arena_printf(g->arena, "%s %s is computed of floats", reader->op, place_name(reader));

    return NULL;
}

static void tell_q(Calls *g, Call *q, FusionFate *f)
{
    const Val *x = call_in(q, 0);
    if (x && x->stored) {
        f->by = "a stored weight";
        return;
    }
    const Call *taker = taker_of_q(g, q, &f->why);
    f->stays = !taker;
    f->by = taker ? taker->op : NULL;
    f->at = taker ? place_name(taker) : NULL;
}

static void tell_dq(Calls *g, Call *dq, FusionFate *f)
{
    const Val *y = dq->outs[0];
    for (size_t i = 0; i < y->n_reads; i++) {
        const Call *taker = taker_of_dq(g, y->reads[i].by, &f->why);
        f->stays += !taker;
        f->by = taker ? taker->op : f->by;
        f->at = taker ? place_name(taker) : f->at;
    }
    if (y->result || !y->n_reads)
        f->stays++, f->why = "its value is a result of the model";
}

Status onnx_fusions_trt(Spine *spine, Graph *typed, Arena *arena, Diag *d, Fusions *f)
{
    Calls g = { .arena = arena, .diag = d, .spine = spine, .found = f };
    *f = (Fusions){ .n = 0, .engine = "TensorRT", .how = "explicit quantization, by its published rules" };
    map_open(&f->ops, arena);
    calls_read(&g, typed);
    for (Call *c = g.first; c; c = c->next) {
        calls_count(&g, c->op);
        FusionFate *fate = c->fate >= 0 ? &f->fates[c->fate] : NULL;
        if (!fate)
            continue;
        fate->why = illegal(&g, c);
        fate->stays = fate->why != NULL;
        if (!fate->stays && call_is_q(c))
            tell_q(&g, c, fate);
        else if (!fate->stays)
            tell_dq(&g, c, fate);
        f->orphans += fate->stays > 0;
    }
    return g.broken ? INVALID : OK;
}
