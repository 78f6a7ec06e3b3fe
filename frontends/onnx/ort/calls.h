/* The calls of a model's graph, to be rewritten as ONNX Runtime rewrites them. */
#ifndef FRONTENDS_ONNX_ORT_CALLS_H
#define FRONTENDS_ONNX_ORT_CALLS_H

#include <string.h>

#include "frontends/onnx/fusions.h"

typedef struct Call Call;

typedef struct Read {
    Call *by;
    size_t at; /* which operand */
} Read;

/* A value: stored in the file, given by a call, or an input. */
typedef struct Val {
    const char *name;
    Call *from; /* null: stored, or an input */
    Read *reads;
    size_t n_reads, cap;
    bool result; /* of the graph */
    bool stored;
    bool inside; /* read in the body of a call */
    int dtype;   /* ONNX's number; 0: unknown */
    int rank;    /* RANK_UNKNOWN: nobody knows */
    const int64_t *dims;
    const Onnx__TensorProto *proto; /* null: not of the file */
    const double *numbers;          /* once they were asked for */
    size_t n;
} Val;

struct Call {
    const char *op;  /* with its domain, but for ONNX's own */
    const char *was; /* as the file has it; null: it is none of the file */
    const char *name;
    const Onnx__NodeProto *proto; /* null: it is none of the file */
    Val **ins, **outs;            /* null: absent */
    size_t n_ins, n_outs;
    Call *before, *next;
    bool gone;
    bool moved;          /* a Q that repeats a pair behind a move */
    int fate;            /* which Q or DQ of the file it is or repeats; -1: none */
    const char *why;     /* it is not fused */
    int weights, biases; /* of a product that is: types of codes */
};

typedef struct Calls {
    Arena *arena;
    Diag *diag;
    Spine *spine;
    Map values;
    Call *first, *last;
    Fusions *found;
    int64_t opset;
    bool broken; /* a stored value cannot be read: it was said */
} Calls;

/* Numbers of ONNX's element types, and what Q and DQ read: values, scale, zero point. */
enum { ORT_FLOAT = 1, ORT_U8 = 2, ORT_S8 = 3, ORT_S32 = 6, ORT_S64 = 7, PAIR_INS = 3 };

/* The same of codes that are floats; those between the first two have 8 bits. */
enum { ORT_E4M3 = 17, ORT_E5M2_FNUZ = 20, ORT_E2M1 = 23 };

/* Reads the graph of g->spine; types are those of `typed`, which may be null. */
void calls_read(Calls *g, Graph *typed);

/* Counts an operator of the optimized graph. */
void calls_count(Calls *g, const char *op);

/* All calls, in order: for who adds some on the way. */
Call **calls_list(const Calls *g, size_t *n);

/* Whether a call is of an operator and not gone; null is none. */
static inline bool call_is(const Call *c, const char *op)
{
    return c && !c->gone && strcmp(c->op, op) == 0;
}

static inline bool call_is_q(const Call *c)
{
    return call_is(c, "QuantizeLinear");
}

static inline bool call_is_dq(const Call *c)
{
    return call_is(c, "DequantizeLinear");
}

/* Operand i, null where it is absent. */
static inline Val *call_in(const Call *c, size_t i)
{
    return i < c->n_ins ? c->ins[i] : NULL;
}

/* The call that gives operand i; null where none does. */
static inline Call *call_from(const Call *c, size_t i)
{
    Val *v = call_in(c, i);
    return v ? v->from : NULL;
}

/* The only reader of a value that is no result of the graph; null where there is none or several. */
static inline Call *val_only(const Val *v)
{
    return v->n_reads == 1 && !v->result && !v->inside ? v->reads[0].by : NULL;
}

/* A value that no call gives yet, of the type of `like` (null: of none that is known). */
Val *val_new(Calls *g, const Val *like);

/* A stored number of a type. */
Val *val_number(Calls *g, int dtype, double x);

/* A call with room for operands, which are put in with call_put(), behind `place` (null: first). */
Call *call_new(Calls *g, const char *op, size_t n_ins, Val *out, Call *place);

/* Operand i becomes v, which may be null. */
void call_put(Calls *g, Call *c, size_t i, Val *v);

/* Takes a call out; what it gave is given by nobody. */
void call_remove(Calls *g, Call *c);

/* Who read `old` reads `now`. */
void val_replace(Calls *g, Val *old, Val *now);

/* Result i of a call is `v`, which it gives from here on. */
void call_gives(Call *c, size_t i, Val *v);

/* The numbers that a value has, v->n of them; null where it is not stored or holds none. */
const double *val_numbers(Calls *g, Val *v);

/* Whether a value is stored and one number. */
bool val_is_one(Calls *g, Val *v, double *x);

/* Whether scale (and zero point) of a Q or DQ are one stored number. */
bool pair_is_scalar(Calls *g, const Call *c);

/* ONNX's number of the type of codes of a Q or DQ. */
int pair_type(const Call *c);

/* Whether codes are floats of 8 bits. */
bool type_is_float8(int type);

/* Whether scale, zero point and type of two of them are equal. */
bool pair_same(Calls *g, const Call *a, const Call *b);

/* An attribute of the call as the file says it; null: it says none. */
const Onnx__AttributeProto *call_says(const Call *c, const char *name);

/* Whether an attribute is absent, or the number that it is by default. */
bool call_says_is(const Call *c, const char *name, double x);

/* Notes what takes a Q or DQ away: an operator, and the node that it is at. */
void call_taken(Calls *g, const Call *pair, const char *by, const Call *at);

#endif
