/* Control flow: if, loop, scan, sequence_map.
 *
 * A region is closed: a value of the outside that a body reads is an operand of the node, behind the operator's own
 * operands, and a parameter of every region, behind the body's own.
 *
 *     if(cond, captures..)                          regions then, else:  (captures..) -> results..
 *     loop(M, cond, carried.., captures..)          region: (iteration, cond, carried.., captures..)
 *                                                           -> cond, carried.., slices..
 *     scan(states.., scanned.., captures..)         region: (states.., slices.., captures..) -> states.., slices..
 *     gradient(xs.., zs.., captures..)              region: (xs.., zs.., captures..) -> y
 *     sequence_map(sequence, more.., captures..)    region: (item, items or tensors.., captures..) -> items..
 *
 * `operands`, an attribute of ours, is the number of the operator's own operands (absent ones counted); 0 says that
 * nothing is captured. */
#ifndef OPS_CONTROL_CONTROL_H
#define OPS_CONTROL_CONTROL_H

#include "ops/card/cards.h"

typedef struct ScanAttr {
    int64_t num_scan_inputs, operands;
    Ints scan_input_axes, scan_input_directions, scan_output_axes, scan_output_directions;
    bool from_last; /* iterations are numbered from the last: they compute the gradients of another loop's */
} ScanAttr;

typedef struct LoopAttr {
    int64_t operands;
} LoopAttr;

typedef struct GradientAttr {
    Strs xs, zs;
    const char *y;
    int64_t operands;
} GradientAttr;

/* Operands of a call with regions that are not captured. */
int own_operands(const Node *n);

/* Operands, counted from the last, that are what the last parameters of every region are: the captures, and of
 * `gradient` all. */
int direct_operands(const Node *n);

/* What the call says of parameter k of a region, where one operand gives it in every turn: a capture, or what a scan
 * cuts; null otherwise. */
const Type *parameter_type(const Node *n, int r, int k);

/* State i of a loop or scan: operand and parameter have one number, the body's result another; false beyond the last. */
bool state_of_call(const Node *n, int i, int *operand, int *result);

/* Own operands of a call: `operands`, or all; -1 after a complaint. */
int infer_own(Infer *q, int64_t operands, int least);

/* Region `r` must take n values and give at least `results`; null with a complaint. */
const Graph *infer_region(Infer *q, int r, int n, int results);

/* A value of this type must be fit to be parameter k of the region; false after a complaint. */
bool infer_parameter(Infer *q, const Graph *region, int k, const Type *type);

/* Operands first .. n_in - 1 must be fit to be parameters k, k + 1, ..; false after a complaint. */
bool infer_captures(Infer *q, const Graph *region, int first, int k);

/* What a value is after some turns that each take it as `parameter` and give it as `result`; null after a complaint. */
const Type *infer_carried(Infer *q, const Type *operand, const Type *parameter, const Type *result);

/* The type of slices stacked along an axis; null after a complaint. */
const Type *infer_stacked(Infer *q, const Type *slice, int64_t axis, int64_t n);

/* Slices of one result, gathered turn by turn. */
typedef struct Stack {
    Tensor **items;
    size_t n, cap;
} Stack;

/* Adds a slice; the stack now holds it. */
void stack_push(Eval *e, Stack *s, Tensor *slice);

/* Result i: the slices along a new axis, the last one first when `reverse`; `slice` says what one would be when there
 * is none. */
Status stack_result(Eval *e, int i, Stack *s, const Type *slice, int64_t axis, bool reverse);

/* Runs the body for its turn on `n` values, of which those the region takes as optional are wrapped; checks that they fit and that
 * it gives every result. */
Status eval_body(Eval *e, Graph *body, int64_t turn, int n, const Tensor **values, Tensor **results);

#endif
