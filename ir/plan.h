/* A plan: where the values of a graph lie while it runs.
 *
 * Every value that a call makes has a buffer in one arena, from the call that makes it to the last that reads it; what is
 * only another look at a value shares its buffer.  Inputs, states and constants lie where they are, and next values of
 * states that are made late (ir/step_part.h) lie where those do.  All sizes are known before anything is allocated. */
#ifndef IR_PLAN_H
#define IR_PLAN_H

#include "base/text.h"
#include "ir/graph.h"

enum { PLAN_ALIGNMENT = 64, PLAN_ELSEWHERE = -1, PLAN_NO_NEXT = -1 };

/* Bytes of the arena, taken from call `first` to call `last`, both included: places in the list of the graph. */
typedef struct PlanBuffer {
    size_t bytes, offset;
    int first, last;
    const Node *maker; /* of the first value that lies in it */
} PlanBuffer;

/* Where a result of a node lies. */
typedef struct PlanValue {
    int buffer;         /* or PLAN_ELSEWHERE */
    int next;           /* the result of the graph that it is made as, late, or of a body; or PLAN_NO_NEXT */
    const Node *source; /* whose result it is, looks aside: a call, an input or a constant */
    int result;         /* of the source */
} PlanValue;

/* Where the product in a `fused` node lies while rows go on with it. */
typedef struct PlanProduct {
    int buffer; /* that of a result, or one of its own */
    int result; /* PLAN_ELSEWHERE: of its own */
} PlanProduct;

typedef struct PlanBody PlanBody;

typedef struct Plan {
    Graph *graph;
    int n_calls; /* nodes of the list, numbered from 0 */
    PlanBuffer *buffers;
    int n_buffers;
    Facts values;   /* PlanValue *, by node: of each result */
    Facts products; /* PlanProduct, by fused node with a product */
    Facts
        bodies; /* const PlanBody *, by call whose body is run turn by turn by calls of its own; null: the call runs it */
    Facts waves;  /* int, by node: calls of one wave run side by side, none reads or overwrites what another makes */
    size_t arena; /* bytes */
    size_t live;  /* of the largest set of buffers that are taken at once: no arena can be smaller */
} Plan;

/* Where values lie during a turn of a body: what it hands on to the next one where the results of the call lie (`next` of a PlanValue
 * is the result of the body that it is), all others in a buffer for all turns. */
struct PlanBody {
    Plan plan;
    CountedTurns turns;
    int buffer;
};

/* Where result i of a node lies. */
PlanValue plan_value(const Plan *p, const Node *n, int i);

/* Its buffer; PLAN_ELSEWHERE: it lies where an input, a state or a constant is. */
int plan_buffer(const Plan *p, const Node *n, int i);

/* Bytes of the buffers that are taken at each call, and behind all of them at last: n_calls + 1 numbers, in `arena`. */
size_t *plan_alive(const Plan *p, Arena *arena);

/* Checks that no two buffers that are taken at once share bytes, that each lies in the arena, and that each value that is
 * read was made and still lies there; null, or what is wrong, in `arena`. */
const char *plan_check(const Plan *p, Arena *arena);

/* Prints a plan: a buffer a line, in the order of their makers. */
void plan_print(Text *out, const Plan *p);

#endif
