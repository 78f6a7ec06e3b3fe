/* Lowers graphs for engines that run programs: sessions and commands ask here. */
#ifndef API_HALL_LOWER_H
#define API_HALL_LOWER_H

#include "api/hall/context.h"
#include "ir/plan.h"
#include "ir/program.h"

/* Why two neighbours are not computed in one pass. */
typedef struct LowerRemark {
    Place place; /* of who reads the other */
    const char *text;
} LowerRemark;

/* What became of a graph on its way. */
typedef struct Lowered {
    Graph *graph; /* a copy of what was given, lowered; null: it did not come so far */
    Remat remat;  /* what is made again: as was asked, or what a bound wanted */
    Plan plan;
    const Program *program; /* null: there is none */
    const char *why;        /* there is none; */
    const Node *where;      /* null: nowhere in particular */
    LowerRemark *remarks;   /* of lower_graph_heard */
    size_t n_remarks;
} Lowered;

/* Lowers a copy of a graph, plans it and makes its program, all of it in `arena`.  Where it has none, the evaluator runs the
 * graph as it is: that is no error, and what passes would remark on the way is not heard. */
Lowered lower_graph(const Graph *g, Arena *arena);

/* The same with types that are known only now (of each input its own where `types` has null), and `how` (null: for time). */
Lowered lower_graph_for(const Graph *g, const Type *const *types, const Lowering *how, Arena *arena);

/* Lowers as lower_graph does, and keeps what is remarked of neighbours that were not fused, in `arena` too. */
Lowered lower_graph_heard(const Graph *g, const Lowering *how, Arena *arena);

/* Reports that a graph has no program, and why: an error, UNSUPPORTED, of who wants to see it; it runs all the same, node by
 * node. */
Status lower_refuse(const Graph *g, const Lowered *l);

/* A ProgramMaker (runtime/engine.h), whose maker is a Lowering. */
const Program *lower_for_engine(void *maker, Graph *g, const Type *const *types, bool tells, Arena *arena);

#endif
