/* The parts of the choice between two widths: variables of values, ties between them, what readers add to their prices. */
#ifndef PASSES_AMP_VARIABLES_H
#define PASSES_AMP_VARIABLES_H

#include "passes/amp/narrow_graph.h"

/* Bytes an element that a rounding behind a wide operand, or for the sake of bytes alone, counts as. */
enum { ROUNDS_MOVED = 0, ROUNDS_BENIGN = 1, ROUNDS_WEAK = 4, ROUNDS_RESULT = 8 };

/* The variable of a value; values of one call that move together have one. */
int amp_variable(AmpGraph *a, Node *value);

/* Adds a tie. */
void amp_tie(AmpGraph *a, AmpTie tie);

/* Two variables get one label. */
void amp_keep_equal(AmpGraph *a, int x, int y);

/* Decides a label beforehand. */
void amp_fix(AmpGraph *a, int v, AmpLabel label);

/* A reader that converts what is stored and computes wide; `price`: bytes an element that narrowing it counts as. */
void amp_read_as_it_is(AmpGraph *a, Node *value, double price);

/* A reader of the narrow form. */
void amp_read_narrowly(AmpGraph *a, Node *value);

/* A reader that is as narrow as variable `result`; `needs_copy`: it then wants a narrow form to read. */
void amp_read_with(AmpGraph *a, Node *value, int result, bool needs_copy);

/* Ties of a call with bodies: what enters them, and, once they have been seen, what leaves them. */
void amp_tie_parameters(AmpGraph *a, const Node *n);
void amp_tie_results(AmpGraph *a, const Node *n);

#endif
