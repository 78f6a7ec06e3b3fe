/* What an update keeps in few bits: its types, and the way from what is stored to numbers and back. */
#ifndef OPS_UPDATE_STORED_H
#define OPS_UPDATE_STORED_H

#include "ops/update/update.h"

/* Checks the attributes and the operands behind the states; false after a complaint. */
bool infer_stored(Infer *q, int n_states);

/* The numbers of the parameter, in the type of the computation: u->codes and u->scale are set. */
Node *stored_open(Update *u, const Site *s);

/* The same from u->codes and u->scale. */
Node *stored_number(const Update *u);

/* The next value of the parameter, of its scale, zero point and the counts into the results where they stand. */
void stored_close(Update *u, const Site *s, Node *x, Node **results);

#endif
