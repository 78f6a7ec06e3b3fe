/* The graph: nodes in list order, which is a topological order; operand slots are links of use lists. */
#ifndef IR_GRAPH_H
#define IR_GRAPH_H

#include "base/limits.h"
#include "base/rng.h"
#include "ir/attr.h"
#include "ir/code_place.h"
#include "ir/op.h"
#include "ir/tensor.h"

/* What all graphs of one context share. */
struct Ir {
    Memory *memory;
    Arena *arena; /* lives as long as the context */
    Types types;
    Names names;
    const OpTable *ops;
    Diag *diag;
    Limits limits;
};

/* An empty context over `arena`. */
void ir_open(Ir *ir, Arena *arena, const OpTable *ops, Diag *diag);

typedef struct Use {
    Node *def;               /* what is read; null: an absent operand */
    Node *user;              /* who reads */
    struct Use *next, *prev; /* among the uses of def */
} Use;

enum NodeFlags {
    NODE_OURS = 1,     /* placed by us, may be removed by us */
    NODE_BACKWARD = 2, /* of the backward side */
    NODE_UPDATE = 4,   /* of the optimizer's side */
    NODE_TRAINED = 8,  /* a state that gradients change */
    /* of a param: what the exporter says of it; its label is its name in the module */
    NODE_PARAMETER = 16, /* it is learned */
    NODE_FIXED = 32,     /* it is not: a buffer of the module, or, without a label, nothing that the module holds */
    NODE_TURNED = 64,    /* it is the transpose of what the module holds; of a state too */
    NODE_SAID = NODE_PARAMETER | NODE_FIXED | NODE_TURNED,
};

struct Node {
    uint32_t id;
    Op op;
    uint16_t flags;
    uint32_t src; /* node of the spine, from 1; 0 = ours */
    int32_t n_in, n_regions;
    const Type *type;
    const void *attr; /* described by the card's attrs; null when it has none */
    Use *in;
    Use *uses;
    Node *prev, *next;
    Graph *graph;
    Graph **regions;
    const char *name;  /* of the value, interned; null: numbered when printed */
    const char *label; /* of the node in the model; may be null */
};

/* A graph, or a region: the body of a node.  Regions are closed: what they use enters as parameter. */
struct Graph {
    Ir *ir;
    Arena *arena;
    Graph *root; /* itself for a graph */
    Node *owner; /* of a region */
    const char *name;
    Node *first, *last; /* without inputs and the return */
    Node **inputs;      /* ops `input` and `state` */
    size_t n_inputs, cap_inputs;
    Node *ret;              /* op `return`: its operands are the results */
    const char **results;   /* names of the results, null: the value's own */
    RoleMark *marks;        /* of the results (ir/role.h); null: all are plain values */
    uint32_t n_ids;         /* of the root: ids given so far */
    CodePlaces code_places; /* of the root: where nodes of the model come from, by Node.src */
    Map *aliases;           /* of the root: other names of parameters (ir/aliases.h); null: none */
    struct Heirs *heirs;    /* of the root: who stood in for whom (ir/heirs.h); null: nobody asks */
};

/* An empty graph in `arena`. */
Graph *graph_new(Ir *ir, Arena *arena, const char *name);

/* An empty region of `owner`'s graph, not yet attached. */
Graph *region_new(Graph *parent);

/* Adds an input (or state) to the signature. */
Node *graph_input(Graph *g, const char *name, const Type *type);

/* Adds a state to the signature; null attributes: a weight that begins with zeros. */
Node *graph_state(Graph *g, const char *name, const Type *type, const StateAttr *attr);

/* Removes input `i`, which must have no readers. */
void graph_drop_input(Graph *g, size_t i);

/* Sets the results; `names` may be null, and each of them may be.  None of them has a mark. */
void graph_return(Graph *g, int n, Node *const *results, const char *const *names);

/* The same with marks (null: none has any). */
void graph_return_marked(Graph *g, int n, Node *const *results, const char *const *names, const RoleMark *marks);

/* Number of results, and the i-th. */
int graph_n_results(const Graph *g);

/* Whether the type of some input leaves sizes, or its rank, to whoever runs it. */
bool graph_is_open(const Graph *g);
Node *graph_result(const Graph *g, int i);

/* The name under which the i-th result leaves the graph; null when it has none. */
const char *graph_result_name(const Graph *g, int i);

/* What the i-th result is to a step. */
RoleMark graph_result_mark(const Graph *g, int i);

/* Makes every reader of `old` read `by` instead.  Agreeing types.  `old` stays, unread; drop-dead collects it. */
void graph_replace(Node *old, Node *by);

/* A fresh node before another (null: at the end); for the builder and the copier, who fill in the rest. */
Node *graph_insert(Graph *g, Node *before, Op op, const Type *type, int n_in, Node *const *defs);

/* The operand in slot i, null when absent or beyond the end. */
static inline Node *in(const Node *n, int i)
{
    return i < n->n_in ? n->in[i].def : NULL;
}

/* Makes slot i read `def` (null: absent). */
void node_set_in(Node *n, int i, Node *def);

/* Replaces all slots. */
void node_set_ins(Node *n, int n_in, Node *const *defs);

/* Readers of a value. */
int node_n_uses(const Node *n);

/* Takes a node without readers out of its graph. */
void node_remove(Node *n);

/* Moves a node before another of the same graph (null: to the end). */
void node_move(Node *n, Node *before);

/* Moves a node, with its regions, from its graph to another of the same root, before a node of that (null: to the
 * end).  Its operands and readers have to follow. */
void node_adopt(Node *n, Graph *to, Node *before);

/* From now on `by` stands for `old`: its readers read `by`, results keep the names they had, and a nameless `by` takes
 * the name of `old`.  `old` stays, unread and nameless. */
void stand_in(Node *old, Node *by);

/* Removes a node without readers and every operand that nobody else reads, except inputs.  `gone` (may be null) hears of
 * each. */
void remove_unread(Node *n, Arena *scratch, void (*gone)(void *user, Node *n), void *user);

/* Attaches regions. */
void node_set_regions(Node *n, int n_regions, Graph *const *regions);

/* The card of a node. */
static inline const OpDef *op_of(const Node *n)
{
    return n->graph->ir->ops->defs[n->op];
}

/* The operand that the only result of a call goes on from (AccessCard); -1: none. */
static inline int node_goes_on(const Node *n)
{
    return op_of(n)->access.goes_on - 1;
}

/* Words of the language itself: an input of a graph or a body, its return, what only holds values that others computed, an
 * operator without a card. */
static inline bool node_is_input(const Node *n)
{
    return n->op == OP_input;
}

static inline bool node_is_return(const Node *n)
{
    return n->op == OP_return;
}

static inline bool node_is_holder(const Node *n)
{
    return n->op == OP_tuple || n->op == OP_part;
}

static inline bool node_is_opaque(const Node *n)
{
    return n->op == OP_opaque;
}

/* The constant behind a value: of `const` and of `param` that no input overrides; null otherwise. */
Payload *node_payload(const Node *n);

/* The same, read; null when it is no constant, larger than `most` bytes (0: any size), or unreadable. */
const Tensor *node_constant(const Node *n, size_t most);

/* Where a node stands, for messages: "node 17 /fc/Gelu". */
Place node_place(const Node *n);

/* Every node of a graph and of the regions inside it, in order, without recursion:
 * for (Node *n = walk_first(g); n; n = walk_next(g, n)) */
Node *walk_first(Graph *g);
Node *walk_next(Graph *g, Node *n);

/* A deep copy into `arena`, ids compacted. */
Graph *graph_copy(const Graph *g, Arena *arena);

/* Nodes, those of regions included. */
size_t graph_count(Graph *g);

/* A pass's own notes about nodes: one zeroed slot a node, growing on access. */
typedef struct Facts {
    Arena *arena;
    size_t slot;
    char **chunks;
    size_t n_chunks;
} Facts;

/* An empty set of facts in the arena of the running pass. */
Facts facts_open(Arena *scratch, size_t slot_size);

/* The slot of a node. */
void *fact(Facts *f, const Node *n);

/* The same where it was asked for before; otherwise it may be null.  It takes no memory. */
void *fact_known(const Facts *f, const Node *n);

/* Graphs that share state by name, and where they came from. */
typedef struct Module {
    Ir *ir;
    Arena *arena;
    Graph **graphs;
    size_t n_graphs, cap_graphs;
    void *origin; /* the spine: owned by the frontend that read it, never looked at by a pass */
    const char *file;
} Module;

/* An empty module. */
Module *module_new(Ir *ir, Arena *arena);

/* Adds a graph. */
void module_add(Module *m, Graph *g);

/* The graph of that name, or null. */
Graph *module_graph(const Module *m, const char *name);

#endif
