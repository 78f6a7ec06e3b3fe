/* From a graph that was lowered and planned to the program that runs it. */
#ifndef CODEGEN_PROGRAM_H
#define CODEGEN_PROGRAM_H

#include "ir/plan.h"
#include "ir/program.h"

/* The program of a planned graph, in `arena`; null: it has none, and *why says why, at *where where that is a node. */
const Program *program_make(const Plan *plan, Arena *arena, const char **why, const Node **where);

#endif
