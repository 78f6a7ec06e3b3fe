/* Groups: an operator between DQ and Q that becomes one on codes, or why it does not. */
#include <math.h>
#include <string.h>

#include "frontends/onnx/ort/steps.h"

typedef enum Operands { GIVEN, FIRST, FIRST2, BEHIND } Operands; /* all, the first, the first two, all but the first */

typedef enum Condition {
    CONV,    /* 8 bits, data and result alike and unsigned, one scale each, a bias of the product's scale */
    MATMUL,  /* 8 bits, data unsigned; a result like the data */
    GEMM,    /* 8 bits, signed data by signed weights only, a bias of 32 bits, alpha and beta 1 */
    ALIKE,   /* 8 bits, all of one type */
    SAME,    /* scale, zero point and type of what comes and goes are equal */
    NEAREST, /* the same, and nothing between elements is read */
    PARTS,   /* the same of each part */
    FLOATS,  /* whatever the type; nobody quantizes the result */
} Condition;

typedef struct Fusion {
    const char *op, *with_q, *without;
    Operands operands;
    Condition condition;
} Fusion;

#define MS "com.microsoft."

static const Fusion fusions[] = {
#define FUSION(op, with_q, without, operands, condition) { op, with_q, without, operands, condition },
#include "frontends/onnx/ort/fusions.def"
};

/* A call that may become a group. */
typedef struct Group {
    Calls *g;
    Call *c;
    const Fusion *rule;
    Call *q; /* the one reader of its one result; null: there is none */
    Call *dq[3];
    int type[3], to; /* of operands and result; 0: not codes */
    bool feeds_q;    /* somebody quantizes a result */
} Group;

static bool is_8(int type)
{
    return type == ORT_U8 || type == ORT_S8 || type_is_float8(type); /* the type itself nobody asks for */
}

static bool wants(const Group *p, size_t i)
{
    switch (p->rule->operands) {
    case FIRST:
        return i == 0;
    case FIRST2:
        return i < 2;
    case BEHIND:
        return i > 0;
    default:
        return p->rule->condition == ALIKE || call_in(p->c, i);
    }
}

/* ---- conditions: null, or why not ---- */

static const char *all_alike(const Group *p)
{
    for (size_t i = 0; i < p->c->n_ins; i++)
        if (wants(p, i) && (!is_8(pair_type(call_from(p->c, i))) || pair_type(call_from(p->c, i)) != p->to))
            return "types of operands and result differ, or are not of 8 bits";
    return NULL;
}

static const char *bias_fits(const Group *p)
{
    double sx = 0;
    Val *weights = call_in(p->dq[1], 1), *biases = call_in(p->dq[2], 1);
    const double *sw = val_numbers(p->g, weights), *sb = val_numbers(p->g, biases);
    val_is_one(p->g, call_in(p->dq[0], 1), &sx);
    if (p->type[2] != ORT_S32)
        return "the bias is not of 32 bits";
    if (!sw || !sb || (weights->n != biases->n && weights->n != 1 && biases->n != 1))
        return "nobody knows the scale of the bias";
    const size_t n = weights->n > biases->n ? weights->n : biases->n;
    for (size_t i = 0; i < n; i++) {
        const double want = sx * sw[weights->n == 1 ? 0 : i], have = sb[biases->n == 1 ? 0 : i];
        if (!(fabs(have - want) <= 1e-6 + 1e-2 * fabs(want)))
            return "the scale of the bias is not that of the data times that of the weight";
    }
    return NULL;
}

static const char *conv(const Group *p)
{
    if (!is_8(p->type[0]) || !is_8(p->type[1]) || p->to != p->type[0])
        return "data and result are not codes of one type of 8 bits";
    if (!pair_is_scalar(p->g, p->dq[0]) || !pair_is_scalar(p->g, p->q))
        return "data or result have more than one scale";
    if (p->type[0] == ORT_S8)
        return "its data are signed";
    return call_in(p->c, 2) ? bias_fits(p) : NULL;
}

static const char *matmul(const Group *p)
{
    if (!is_8(p->type[0]) || !is_8(p->type[1]))
        return "its operands are not of 8 bits";
    if (!pair_is_scalar(p->g, p->dq[0]))
        return "its data have more than one scale";
    if (p->type[0] == ORT_S8)
        return "its data are signed";
    return p->q && p->to != p->type[0] ? "the result is of another type than the data" : NULL;
}

static const char *gemm(const Group *p)
{
    if (!is_8(p->type[0]) || !is_8(p->type[1]))
        return "its operands are not of 8 bits";
    if (p->q && p->to != p->type[0])
        return "the result is of another type than the data";
    if (p->type[0] == ORT_S8 && p->type[1] != ORT_S8)
        return "its data are signed and its weights are not";
    if (!call_says_is(p->c, "alpha", 1) || !call_says_is(p->c, "beta", 1))
        return "alpha or beta are not 1";
    return call_in(p->c, 2) && p->type[2] != ORT_S32 ? "the bias is not of 32 bits" : NULL;
}

static const char *same(const Group *p)
{
    const Onnx__AttributeProto *mode = p->rule->condition == NEAREST ? call_says(p->c, "mode") : NULL;
    if (!pair_same(p->g, p->dq[0], p->q) || !pair_is_scalar(p->g, p->q))
        return "what comes and what goes have other scales";
    return mode && !str_is(str_of(mode->s), "nearest") ? "it reads between elements" : NULL;
}

static const char *parts(const Group *p)
{
    for (size_t i = 0; i < p->c->n_outs; i++) {
        const Call *q = p->c->outs[i] ? val_only(p->c->outs[i]) : NULL;
        if (!call_is_q(q) || !pair_same(p->g, p->dq[0], q))
            return "not every part has a Q of the scale of the whole";
    }
    return NULL;
}

static const char *holds(const Group *p)
{
    switch (p->rule->condition) {
    case CONV:
        return conv(p);
    case MATMUL:
        return matmul(p);
    case GEMM:
        return gemm(p);
    case ALIKE:
        return all_alike(p);
    case PARTS:
        return parts(p);
    case FLOATS:
        return NULL;
    default:
        return same(p);
    }
}

/* ---- one call ---- */

static const char *result_fits(const Group *p)
{
    if (p->rule->condition == PARTS)
        return NULL;
    if (p->feeds_q && !p->q)
        return "its result has other readers than one Q";
    if (p->feeds_q)
        return p->rule->with_q ? NULL : "its result is quantized";
    return p->rule->without ? NULL : "no Q reads its result";
}

/* Null where the call may be a group, else why not. */
static const char *look(Group *p)
{
    Calls *g = p->g;
    for (size_t i = 0; i < p->c->n_ins; i++) {
        Call *dq = call_from(p->c, i);
        if (wants(p, i) && !call_is_dq(dq))
            return p->rule->condition == GEMM && i == 2 ? "its bias is no codes"
                                                        : arena_printf(g->arena, "operand %zu is no DQ", i);
        if (i < COUNT(p->dq) && call_is_dq(dq)) {
            p->dq[i] = dq;
            p->type[i] = pair_type(dq);
        }
    }
    if ((p->rule->operands == GIVEN || p->rule->operands == FIRST2) && (!p->dq[0] || !p->dq[1]) && p->c->n_ins > 1)
        return "an operand is no DQ";
    if (!p->dq[p->rule->operands == BEHIND])
        return "its operand is no DQ";
    const char *why = result_fits(p);
    return why ? why : holds(p);
}

/* A Relu or Clip that does something, and that somebody reads: it keeps floats in front of it. */
static const Call *clipped_by(const Call *c)
{
    const Call *r = c->outs[0] ? val_only(c->outs[0]) : NULL;
    return (call_is(r, "Relu") || call_is(r, "Clip")) && val_only(r->outs[0]) ? r : NULL;
}

static void take_q(Calls *g, Call *c, size_t i, Call *q)
{
    call_taken(g, q, c->op, c);
    Val *codes = q->outs[0];
    call_remove(g, q);
    call_gives(c, i, codes);
}

/* Operators of codes take no floats, which shows when they are there. */
static void look_for_floats(const Group *p)
{
    bool any = type_is_float8(p->to);
    for (size_t i = 0; i < COUNT(p->type); i++)
        any |= type_is_float8(p->type[i]);
    if (any && !p->g->found->refused)
        p->g->found->refused = arena_printf(p->g->arena, "%s takes no codes that are floats", p->c->op);
}

static void fuse(Group *p)
{
    Calls *g = p->g;
    Call *c = p->c;
    c->op = p->q || p->rule->condition == PARTS ? p->rule->with_q : p->rule->without;
    look_for_floats(p);
    if (p->rule->condition <= GEMM) {
        c->weights = p->type[1];
        c->biases = p->type[2];
    }
    if (p->q)
        take_q(g, c, 0, p->q);
    for (size_t i = 0; p->rule->condition == PARTS && i < c->n_outs; i++)
        take_q(g, c, i, val_only(c->outs[i]));
    for (size_t i = 0; i < c->n_ins; i++) {
        Call *dq = call_from(c, i);
        if (!wants(p, i) || !call_is_dq(dq))
            continue;
        call_put(g, c, i, call_in(dq, 0));
        if (dq->outs[0]->n_reads || dq->outs[0]->result || dq->outs[0]->inside)
            continue;
        call_taken(g, dq, c->op, c);
        call_remove(g, dq);
    }
}

static void look_at(Calls *g, Call *c)
{
    Group p = { .g = g, .c = c };
    for (size_t i = 0; i < COUNT(fusions); i++)
        if (strcmp(fusions[i].op, c->op) == 0)
            p.rule = &fusions[i];
    if (!p.rule) {
        c->why = "no group has it";
        return;
    }
    const Call *clip = clipped_by(c);
    if (clip) {
        c->why = arena_printf(g->arena, "the %s behind it does something", clip->op);
        return;
    }
    p.q = c->n_outs == 1 && c->outs[0] ? val_only(c->outs[0]) : NULL;
    if (!call_is_q(p.q))
        p.q = NULL;
    p.to = p.q ? pair_type(p.q) : 0;
    for (size_t i = 0; i < c->n_outs; i++)
        for (size_t k = 0; c->outs[i] && k < c->outs[i]->n_reads; k++)
            p.feeds_q |= call_is_q(c->outs[i]->reads[k].by);
    c->why = look(&p);
    if (!c->why)
        fuse(&p);
}

/* ---- stored weights alone ---- */

/* Whether another operand is the same one number: such constants are one list of one then. */
static bool is_shared(Calls *g, const Val *scale, double s)
{
    int n = 0;
    for (const Call *c = g->first; c; c = c->next)
        for (size_t i = 0; i < c->n_ins; i++) {
            double x;
            Val *v = c->ins[i];
            n += v && v->dtype == scale->dtype && val_is_one(g, v, &x) && x == s;
        }
    return n > 1;
}

static void look_at_weight(Calls *g, Call *c)
{
    double s;
    Call *dq = call_from(c, 1);
    if ((!call_is(c, "MatMul") && !call_is(c, "Gemm")) || clipped_by(c) || !call_is_dq(dq))
        return;
    const Val *codes = call_in(dq, 0);
    if (!codes->stored || type_is_float8(codes->dtype) || codes->dtype == ORT_E2M1 || codes->rank != 2 ||
        !val_only(dq->outs[0]) || call_is_dq(call_from(c, 0)))
        return;
    for (size_t i = 0; i < c->outs[0]->n_reads; i++)
        if (call_is_q(c->outs[0]->reads[i].by))
            return;
    if (call_is(c, "Gemm") &&
        !(call_says_is(c, "transB", 0) && call_says_is(c, "alpha", 1) && call_says_is(c, "beta", 1)))
        return;
    if (val_is_one(g, call_in(dq, 1), &s) && is_shared(g, dq->ins[1], s))
        return;
    c->op = "com.microsoft.MatMulNBits";
    call_taken(g, dq, c->op, c);
    call_put(g, c, 1, call_in(dq, 0));
    call_remove(g, dq);
}

void ort_groups(Calls *g)
{
    size_t n;
    Call **list = calls_list(g, &n);
    for (size_t i = 0; i < n; i++)
        if (!list[i]->gone && !call_is_q(list[i]) && !call_is_dq(list[i]))
            look_at(g, list[i]);
    for (size_t i = 0; i < n; i++)
        if (!list[i]->gone && list[i]->n_outs)
            look_at_weight(g, list[i]);
}
