/* What runs the `fused` nodes of a module, for people to read. */
#ifndef CODEGEN_REGIONS_H
#define CODEGEN_REGIONS_H

#include "ir/graph.h"

/* Prints of each fused node, those in bodies too, under the name of its first result: its tape, or the kernels that are
 * made from it, or both. */
void regions_print(Text *out, const Module *m, bool tapes, bool kernels);

#endif
