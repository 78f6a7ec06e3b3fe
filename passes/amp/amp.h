/* What the passes of mixed precision share: the role of each node, the choice between two widths, and what was decided.
 *
 * A logical value is an f32 tensor of the graph without its amp_casts.  It is labelled wide or narrow: how it is stored.
 * Nodes that compute wide (E, EX, S, W, FO, FI, F, X) are f32 and read narrow values through amp_casts; nodes of class T,
 * and P, PW, PM that move narrow values, are of the narrow type themselves. */
#ifndef PASSES_AMP_AMP_H
#define PASSES_AMP_AMP_H

#include "passes/engine/pass.h"

/* ---- the role of a node ---- */

/* How one node takes part: its card, conditions decided, and what tables and selectors say instead. */
typedef struct AmpRole {
    AmpClass class;    /* never AMP_C; AMP_UNSET: nobody says */
    uint32_t wide;     /* operands that stay f32, a bit each; the last bit stands for all beyond */
    uint32_t wide_out; /* results that stay f32 */
    bool bounded;
    AmpReason reason;
    const char *forced; /* what decided instead of the card: "--keep-fp32 'head'", "lists.txt:12"; null: the card */
} AmpRole;

typedef struct AmpRoles AmpRoles;

/* Opens the roles of the nodes that a graph has now, by the precision of a recipe; selectors that match nothing, and
 * operators without a class unless they are forgiven, are USAGE.  Roles live in the pass's arena, what `forced` points to
 * in the graph's. */
Status amp_roles_open(Graph *g, PassRun *run, const Precision *p, AmpRoles **roles);
void amp_roles_close(AmpRoles *r);

/* The role of a node; of one that is newer than the roles what its card says. */
AmpRole amp_role(const AmpRoles *r, const Node *n);

/* ---- the choice ---- */

typedef enum AmpLabel { AMP_FREE, AMP_WIDE, AMP_NARROW } AmpLabel;

/* Something to label: a logical value, or whether a narrow copy of a wide value exists. */
typedef struct AmpVariable {
    Node *node;       /* whose value; null: an auxiliary */
    int copy_of;      /* of a copy: the value that is copied; -1: it is none */
    bool led;         /* a tie leads to it (AmpTie.leads); otherwise amp_walk leaves it wide */
    bool moves;       /* it is another value, moved */
    int wide_readers; /* that take whatever is stored, and compute wide */
    AmpLabel fixed, label;
    double wide_price, narrow_price; /* bytes */
} AmpVariable;

/* What it costs when a is wide and b narrow, or the other way; INFINITY: that is forbidden. */
typedef struct AmpTie {
    int a, b;
    double wide_narrow, narrow_wide;
    bool leads; /* b follows a: amp_walk makes b wide where a is */
} AmpTie;

typedef struct AmpProblem {
    Arena *arena;
    AmpVariable *variable;
    size_t n, cap;
    AmpTie *tie;
    size_t n_ties, cap_ties;
    double read; /* elements that class T reads narrow, whatever the labels */
} AmpProblem;

/* What a labelling costs; INFINITY where a price or a fixed label forbids it. */
double amp_cost(const AmpProblem *p);

/* Labels everything the way people do by hand: what is fixed, forward to what follows it. */
void amp_walk(AmpProblem *p);

/* Labels everything at the least cost: a minimum cut. */
void amp_cut(AmpProblem *p);

/* ---- the ledger ---- */

/* Why a result is wide whatever follows, where its class does not say so. */
/* clang-format off */
#define AMP_PINS(_)                                                      \
    _( NOTHING,  ""                                                    ) \
    _( CONSTANT, "a constant does not survive narrowing (C-16)"        ) \
    _( GUARD,    "guards against zero (C-17)"                          ) \
    _( SEED,     "multiplies the seed of the gradients"                ) \
    _( RANGE,    "may leave the range of f16"                          ) \
    _( GRADIENT, "is the gradient of a parameter"                      ) \
    _( INSIDE,   "is inside of an adjoint"                             )
/* clang-format on */

typedef enum AmpPin {
#define AMP_PIN_ENUMERATOR(id, text) AMP_PIN_##id,
    AMP_PINS(AMP_PIN_ENUMERATOR)
#undef AMP_PIN_ENUMERATOR
        AMP_PIN_COUNT
} AmpPin;

/* What became of one node. */
typedef struct AmpDecision {
    uint32_t src;
    Op op;
    const char *value, *label; /* names of value and node; may be null */
    const char *title, *where; /* what people call the operator, and the node */
    bool backward;
    AmpClass card; /* the class that the card says */
    AmpRole role;
    AmpPin pin;
    bool gives;    /* f32 as it stands in the model */
    bool narrow;   /* a result of it is stored narrow */
    bool computes; /* it computes narrow: its type is */
    int64_t saved; /* bytes, against f32 */
    double work;   /* multiply-adds of what the card says computes narrow; estimated, 0: not known */
} AmpDecision;

/* What all runs on one graph decided. */
struct AmpLedger {
    Arena *arena;
    AmpDecision *list;
    size_t n, cap;
    double cost, walk_cost, wide_cost; /* bytes moved: of the plan, of the painting walk's, of f32 */
    int64_t inserted;                  /* amp_casts that stood when the last run was done */
};

/* Multiply-adds of the forward nodes that could compute narrow and of those that do; where no
 * size is known nodes count instead. */
typedef struct AmpShare {
    double all, narrow;
    size_t nodes, narrow_nodes;
} AmpShare;

AmpShare amp_share(const AmpLedger *l);

/* amp_casts of a graph by what becomes of them: copies take memory of their own, the others do not. */
typedef struct AmpCasts {
    int64_t all;
    int64_t loaded;       /* widenings: whoever reads does it */
    int64_t stored;       /* narrowings that are the only form in which their value is kept: whoever computes does it */
    int64_t written;      /* narrowings by the update: shadows of weights */
    int64_t materialised; /* copies: of a value that is kept wide as well, of an input or state; what leaves widened */
    double bytes;         /* of the materialised ones */
} AmpCasts;

AmpCasts amp_casts_of(Graph *g);

/* Multiply-adds of a node of class T, estimated from shapes; 0 where they are not known. */
double amp_work(const Node *n);

/* "guards against zero (C-17)". */
const char *amp_pin_text(AmpPin pin);

#endif
