/* Words of ours said in standard words, for files that others run. */
#ifndef FRONTENDS_ONNX_WRITE_STANDARD_WORDS_H
#define FRONTENDS_ONNX_WRITE_STANDARD_WORDS_H

#include "ir/graph.h"

/* Makes everything that has no ONNX name what it expands to, or what else means the same (sums may go in another order
 * then); the names of ops that stay go into `left`, a map. */
Status standardize_graph(Graph *g, Map *left);

/* The same of one call, which may have an ONNX name: false when nothing else means the same, or after a failure, which
 * *status then says. */
bool standardize_node(Node *n, Status *status);

#endif
