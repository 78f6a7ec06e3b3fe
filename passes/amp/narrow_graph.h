/* A graph as mixed precision sees it: its logical values, which nodes may change, and who reads what how. */
#ifndef PASSES_AMP_NARROW_GRAPH_H
#define PASSES_AMP_NARROW_GRAPH_H

#include "passes/amp/amp.h"

/* Of an element. */
enum { WIDE_BYTES = 4, NARROW_BYTES = 2 };

/* What is known of a node. */
typedef struct AmpNote {
    bool narrowed; /* its f32 result is typed narrow, by us */
    bool placed;   /* of an amp_cast: it stands where it is wanted */
    bool seen;     /* its role is known */
    bool pinned;   /* its result is wide whatever follows: its range, a guard, a gradient of a parameter */
    bool seeded;   /* it is the seed of the gradients, moved */
    bool large;    /* in f16: its result may leave the range */
    bool unfit;    /* a constant among its operands does not survive narrowing */
    int variable;  /* + 1, of its value; of a producer of several results: of those that move together */
    int copy;      /* + 1, of the narrow copy of its value */
    AmpRole role;
} AmpNote;

typedef struct AmpGraph {
    Graph *g;
    PassRun *run;
    DType narrow;
    bool backward; /* the forward side stands as it is */
    Facts notes;
    Node **nodes; /* in the order of the text, those of regions included */
    size_t n;
    AmpRoles *roles;
    AmpProblem problem;
    int64_t inserted, removed; /* amp_casts */
} AmpGraph;

/* How an operand is read. */
typedef enum AmpReading {
    AMP_NOT_READ, /* no f32, or its type alone */
    AMP_AS_IT_IS, /* converted on the way in, and computed with wide */
    AMP_NARROWLY, /* in the narrow type */
    AMP_WITH_US,  /* in the type of the result */
} AmpReading;

/* Takes a graph in: nodes listed, narrowed ones known. */
void amp_graph_open(AmpGraph *a, Graph *g, PassRun *run);

AmpNote *amp_note(AmpGraph *a, const Node *n);

/* The value behind amp_casts; one that widens a value of the model's own is a value. */
Node *amp_origin(AmpGraph *a, Node *v);

/* Whether a value is one f32 tensor of the graph without amp_casts. */
bool amp_is_value(AmpGraph *a, const Node *n);

/* Whether the run may change a node: a forward node is left alone once there is a backward side. */
bool amp_may_change(const AmpGraph *a, const Node *n);

/* The call that computes a value, and which of its results it is. */
const Node *amp_producer(const Node *value, int *result);

/* The parameter of a call's regions that operand i is; negative: of none. */
int amp_body_parameter(const Node *n, int i);

/* The values of a call's regions: the k-th result of the call is result `amp_body_result` of its regions. */
int amp_body_result(const Node *n, int k);

/* The node that reads result k of a call: a part of it, or the call itself; null: nobody does. */
Node *amp_part(const Node *n, int k);

/* The parameter that carries result k of a loop or scan from turn to turn; null: none does, or it is no value. */
Node *amp_carried(AmpGraph *a, const Node *n, int k);

/* Whether the call has an attribute that says the type of its result. */
bool amp_says_result(const Node *n);

/* Whether a narrow result of a call that moves a wide value is rounded behind it, where it has fewer elements; where it
 * has as many, the operand is: the data travel narrow. */
bool amp_rounds_behind(AmpGraph *a, const Node *n, const Node *operand);

/* Whether result k of a call with bodies is narrow because we narrowed what they give. */
bool amp_body_narrowed(AmpGraph *a, const Node *call, int k);

/* Whether insertion understands the regions of a call: if, loop, scan. */
bool amp_has_open_body(const Node *n);

/* How operand i of a call is read. */
AmpReading amp_reading(AmpGraph *a, const Node *n, int i);

/* Finds out the role of every node that may change. */
Status amp_find_roles(AmpGraph *a);

/* States the choice: variables for the values, what labels cost. */
void amp_state_problem(AmpGraph *a);

/* Changes the graph to what the labels say; counts amp_casts that came. */
void amp_place(AmpGraph *a);

/* Whether a mask of operands or results has one; the last bit stands for all beyond. */
static inline bool amp_has(uint32_t mask, int i)
{
    return mask >> (i < 31 ? i : 31) & 1;
}

/* The label of a value; wide where there is no choice. */
AmpLabel amp_label(AmpGraph *a, const Node *value);

/* Whether a wide value has a narrow copy. */
bool amp_copied(AmpGraph *a, const Node *value);

/* Writes down what was decided; null: nobody asks. */
void amp_record(AmpGraph *a, AmpLedger *ledger);

/* Takes every amp_cast out, and makes what they narrowed f32 again. */
void amp_strip(AmpGraph *a);

/* Elements, 1 for each dimension that is not known. */
double amp_elements(const Type *type);

/* Gives a type with `dtype` as that of its tensor. */
const Type *amp_type(AmpGraph *a, const Type *type, DType dtype);

#endif
