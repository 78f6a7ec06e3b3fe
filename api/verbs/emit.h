/* Parts of --emit. */
#ifndef API_VERBS_EMIT_H
#define API_VERBS_EMIT_H

#include "api/hall/lower.h"
#include "api/hall/out.h"
#include "ir/graph.h"

typedef struct EmitPrograms {
    bool plan;  /* where values lie; else the launches */
    bool tapes; /* below each launch of a region */
    const Lowering *lowering;
} EmitPrograms;

/* Prints plans or programs: that of a model's graph, or where it is null those of the graphs of a step.  A graph that has
 * none is an error, UNSUPPORTED, which says why. */
Status emit_programs(const Module *module, const Graph *model, EmitPrograms how, Out *o);

#endif
