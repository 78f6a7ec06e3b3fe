/* What an update keeps in few bits: its types, and the way from what is stored to numbers and back. */
#ifndef OPS_UPDATE_STORED_H
#define OPS_UPDATE_STORED_H

#include "ops/update/update.h"

/* Checks the attributes and the operands behind the states; false after a complaint. */
bool infer_stored(Infer *q, int n_states);

/* Whether a state's type is one of codes, which have a scale. */
bool is_state_code(DType d);

/* The numbers of the parameter, in the type of the computation: u->codes and u->scale are set. */
Node *stored_open(Update *u, const Site *s);

/* The same from u->codes and u->scale. */
Node *stored_number(const Update *u);

/* The next value of the parameter, of its scale, zero point and the counts into the results where they stand. */
void stored_close(Update *u, const Site *s, Node *x, Node **results);

/* The numbers of state i, and the way back: what is stored, and its scale. */
Node *stored_state_open(Update *u, const Site *s, int i);
Node *stored_state_close(Update *u, const Site *s, int i, Node *x, Node **scale);

#endif
