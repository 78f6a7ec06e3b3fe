/* The parts of a step: what computes what, and in which order they run. */
#ifndef IR_STEP_PART_H
#define IR_STEP_PART_H

#include "ir/graph.h"

typedef enum StepPart {
    STEP_FORWARD,
    STEP_BACKWARD,
    STEP_FIND,   /* of the update, what says of a scaled loss whether anything was not finite */
    STEP_UPDATE, /* the rest of it, but for */
    STEP_LATE,   /* what makes next values of states and nothing else: it runs as they are committed */
} StepPart;

enum { STEP_PARTS = STEP_LATE }; /* that are run by themselves */

/* Notes of each node of the list (int) the StepPart that it belongs to. */
Facts step_parts(const Graph *g, Arena *arena);

/* The state whose next value a result is; null: it is none. */
const Node *step_next_of(const Graph *g, int result, const Map *states);

/* The states of a graph by name, for step_next_of. */
Map step_states(const Graph *g, Arena *arena);

/* The word for a part. */
const char *step_part_name(StepPart part);

#endif
