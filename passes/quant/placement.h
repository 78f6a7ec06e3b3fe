/* Which values of a model are quantized, by which quantizer, and why: decided before anything is placed. */
#ifndef PASSES_QUANT_PLACEMENT_H
#define PASSES_QUANT_PLACEMENT_H

#include "passes/engine/pass.h"
#include "passes/quant/table.h"

/* A value of the model: what reads it decides. */
typedef struct QuantValueMark {
    const Quantizer *by;                 /* null: it stays as it is */
    Node *asked;                         /* the call that asked for it */
    Node *shares;                        /* the value upstream whose scale it has; null: one of its own */
    double within;                       /* it has no number beyond that, whatever comes; 0: nobody knows */
    const char *called;                  /* of a weight that is cut out of another: its name; null: that one's */
    int axis;                            /* of a weight: that of its channels; of data with rows: along them */
    const char *state;                   /* what its range or scale is remembered in; null: nothing */
    bool stays;                          /* its learned scale stays as it begins: nothing trains what it is for */
    Node *codes, *number, *scale, *zero; /* what was placed */
} QuantValueMark;

/* A call: whether it computes on codes. */
typedef struct QuantCallMark {
    bool core;             /* its products are of codes, or of what codes stand for */
    bool floats;           /* of what codes stand for: its sums of codes would have no one scale */
    bool ternary;          /* its weights are -1, 0 and 1: rows of data are added up as codes */
    bool could;            /* what it gives is codes at no cost */
    bool cell;             /* it belongs to a cell that was opened: what it computes stays float */
    int depth;             /* calls before it, on the longest way */
    bool first, last;      /* no such call with weights stands before it, behind it */
    const QuantSpec *spec; /* what holds for it */
    unsigned said;         /* a bit for each QuantOperand that --quant-op, or a line of a table, speaks of for it */
    QuantWay in, out;      /* what tables say that it does with codes */
    const char *left;      /* of others: why they are of floats; null: they are not, or nobody expects it */
    const char *by;        /* who says something of it in particular; null: nobody */
    const Quantizer *weight, *data; /* of its operands; null: they stay as they are */
    const char *why;                /* why it is none, though its card could; null: it is one, or nobody expects it */
} QuantCallMark;

typedef struct Placement {
    Graph *g;
    PassRun *run;
    const Quantization *recipe;
    Facts values, calls;
    Facts data; /* bool: from floats of the inputs, or through weights */
    size_t n_placed;
} Placement;

/* The marks of a value and of a call. */
QuantValueMark *quant_value(Placement *p, const Node *n);
QuantCallMark *quant_call(Placement *p, const Node *n);

/* The state or constant that an operand is, moved about at most; of several that lie side by side the first; null: it
 * is computed from data. */
Node *quant_weight_of(Node *operand);

/* Whether an operand of a call is quantized as a weight is. */
bool quant_is_weight(const Node *call, int operand);

/* Whether a call multiplies by weights that are stored: a layer of the model. */
bool quant_is_layer(const Node *n);

/* lstm, gru and rnn; and what looks up rows of a stored table.  Their weights alone are quantized. */
bool quant_is_recurrent(const Node *n);
bool quant_is_table(const Node *n);

/* Decides so for one of them. */
void quant_weights_alone(QuantCallMark *c, const Node *n);

/* The value whose elements a value is, put somewhere else or picked, so that codes may go through: what a call reads,
 * or what it cuts parts of; null: it is made of others, or otherwise. */
Node *quant_moved_from(const Node *n);

/* Whether a call lays several values side by side: its codes may have another scale than those of each of them. */
bool quant_is_side_by_side(const Node *n);

/* Whether nobody keeps codes away from a call, or lets none out of what is no product. */
bool quant_is_open(Placement *p, const Node *n);

/* The value behind what stays between a product and its quantizer: a row that codes may go through (relu, clip), a
 * dropout. */
Node *quant_behind_rows(Placement *p, Node *n);

/* How many calls stand before each on the longest way. */
void quant_find_depths(Placement *p);

/* Of a sum that a target computes as part of a product: which operand is that product's result.  It stays float, and the
 * other one is asked for; of two products the deeper one, then the first.  -1: it is no such sum. */
int quant_summed_product(Placement *p, const Node *n);

/* Whether the word that computes a call on codes has no result but codes for a target: there must be a quantizer behind it. */
bool quant_needs_codes_out(const Node *n, const QuantTarget *t);

/* Whether nothing below 0 arrives at a value, whatever the model reads. */
bool quant_never_negative(const Node *n);

/* The largest number that a value has because a Clip from 0 on says so; infinite where none does. */
double quant_most(const Node *n);

/* A clip whose bounds are constants, the lower one 0: its upper bound, infinite where it has none; NAN: no such call. */
double quant_clip_from_0(const Node *n);

/* Lets the state that is an operand of a call be written as `by` says, beside a scale; `first`: whether nobody
 * asked before.  Where it stays as it is its call says why. */
Status quant_store(Placement *p, const Quantizer *by, Node *call, int operand, bool *first);

/* Opens recurrent layers of which --quant-op says a=, so that their products are seen one by one. */
Status quant_open_recurrent(Placement *p);
/* Whether a call adds, multiplies, pools, lays values side by side or is a table, for this target: it may compute on codes
 * where all its operands are some. */
bool quant_may_join(Placement *p, const Node *n);

/* Finds why calls that are no products are of floats, once it is known what is codes (passes/quant/left.c). */
void quant_find_left(Placement *p);

/* Whether one of two operands is stored. */
bool quant_has_weight(const Node *n);

/* Whether the target has what the call is to compute on: UNSUPPORTED otherwise. */
Status quant_check_target(Placement *p, const Node *n, const QuantCallMark *c);

/* Codes that are floats: whether the target has them, and whether a first or a last layer has their bits. */
Status quant_check_floats(Placement *p, const Node *n, const QuantCallMark *c);

/* Whether nobody wants as integers what is wanted as floats of few bits, or as others. */
Status quant_check_format(Placement *p, Node *n, int operand, const Quantizer *q);

/* Decides which calls compute on codes and which values they are given. */
Status quant_find(Placement *p);

#endif
