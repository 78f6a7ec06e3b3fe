/* The graphs of training steps over stored models, in f32 and in mixed precision, lowered. */
#ifndef TESTS_SUPPORT_LOWERED_GRAPHS_H
#define TESTS_SUPPORT_LOWERED_GRAPHS_H

#include "support/stored.h"

/* Visits each of them, guarded; how many models went wrong.  `*seen` grows by the number of models. */
int lowered_graphs(Status (*visit)(Stored *s, Graph *g, void *user), void *user, size_t *seen);

#endif
