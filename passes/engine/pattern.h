/* Rules as data: a pattern looks like the expression it matches.
 *
 *     { "double-negation", EXACT, P(neg, P(neg, X)), X, NULL }
 *
 * Patterns are compound literals at file scope: a misspelt op does not compile.  Commutative ops are tried both ways by
 * the engine; a rule never says them twice. */
#ifndef PASSES_ENGINE_PATTERN_H
#define PASSES_ENGINE_PATTERN_H

#include "passes/engine/pass.h"

enum { PATTERN_OPERANDS = 6, MATCH_LEAVES = 6, MATCH_NODES = 24, MATCH_CONSTANTS = 8 };

typedef enum PatternKind {
    PATTERN_LEAF,  /* any value; equal letters are the same node */
    PATTERN_OP,    /* a call */
    PATTERN_CONST, /* any `const` */
    PATTERN_EQ,    /* a `const` that is `value` in every element, the sign of zero counts */
    PATTERN_NONE,  /* an absent operand */
    PATTERN_REST,  /* at least `index` further operands */
    PATTERN_ONCE,  /* in[0], read once */
    PATTERN_WITH,  /* in[0], with the attributes named in `fields` */
    PATTERN_LIKE,  /* become only: in[0], with the attributes of matched call `index` */
    PATTERN_NODE,  /* become only: matched call `index` itself */
} PatternKind;

typedef struct Pattern {
    PatternKind kind;
    Op op;
    int index;
    double value;
    const char *word;               /* of an op that is no OpWord; null: `op` */
    bool (*fits)(const OpDef *def); /* of every op of which the card says so; null: `op` */
    const void *attr;               /* WITH: the attribute struct ... */
    const char *fields;             /* ... and the text of its initializer, which names the fields that count */
    const struct Pattern *in[PATTERN_OPERANDS];
} Pattern;

/* What a pattern met. */
typedef struct Match {
    Node *root;
    Node *x[MATCH_LEAVES];           /* X, Y, Z, W, V, U */
    Node *node[MATCH_NODES];         /* calls, in the order in which the pattern names them; 0 is the root */
    const void *attr[MATCH_NODES];   /* and their attributes */
    Node *constant[MATCH_CONSTANTS]; /* what CONST and EQ met, in the pattern's order */
    Node *rest_of;                   /* whose operands from `rest` on REST met */
    int n_nodes, n_constants, rest;
} Match;

struct Rule {
    const char *name;
    Exactness exactness;
    const Pattern *match;
    const Pattern *become;                    /* what takes the root's place; or: */
    Node *(*build)(Build *b, const Match *m); /* builds it, before the root; null: does not apply */
    bool (*when)(const Match *m);             /* null: always */
};

extern const Pattern pattern_leaves[MATCH_LEAVES], pattern_const, pattern_none;

#define X     (&pattern_leaves[0])
#define Y     (&pattern_leaves[1])
#define Z     (&pattern_leaves[2])
#define W     (&pattern_leaves[3])
#define V     (&pattern_leaves[4])
#define U     (&pattern_leaves[5])
#define CONST (&pattern_const)
#define NONE  (&pattern_none)

#define PATTERN(...) (&(const Pattern){ __VA_ARGS__ })

/* A call: P(add, X, Y).  Operands that are not said are absent. */
#define P(word_, ...) PATTERN(.kind = PATTERN_OP, .op = OP_##word_, .in = { __VA_ARGS__ })
/* A call without operands. */
#define P0(word_) PATTERN(.kind = PATTERN_OP, .op = OP_##word_)
/* A call of an op of somebody else's table, by its word. */
#define PN(text, ...) PATTERN(.kind = PATTERN_OP, .word = (text), .in = { __VA_ARGS__ })
/* A call of any op whose card fits; in a replacement there is none. */
#define ANY(fits_, ...) PATTERN(.kind = PATTERN_OP, .fits = (fits_), .in = { __VA_ARGS__ })
/* A constant equal to v in every element; in a replacement: a scalar of the root's element type. */
#define EQ(v) PATTERN(.kind = PATTERN_EQ, .value = (v))
/* The pattern, of a value that has one reader. */
#define ONCE(p) PATTERN(.kind = PATTERN_ONCE, .in = { p })
/* The call, with these attributes: WITH(P(gelu, X), GeluAttr, .approximate = 1).  In a replacement the others have
 * their defaults. */
#define WITH(p, T, ...)                                                                                                \
    PATTERN(.kind = PATTERN_WITH, .attr = &(const T){ __VA_ARGS__ }, .fields = #__VA_ARGS__, .in = { p })
/* n or more further operands; in a replacement: those. */
#define REST(n) PATTERN(.kind = PATTERN_REST, .index = (n))
/* In a replacement: a call with the attributes of the i-th matched one. */
#define LIKE(i, p) PATTERN(.kind = PATTERN_LIKE, .index = (i), .in = { p })
/* In a replacement: the i-th matched call. */
#define NODE(i) PATTERN(.kind = PATTERN_NODE, .index = (i))

/* Whether the pattern fits the node; fills `m`. */
bool pattern_match(const Pattern *p, Node *root, Match *m);

/* Builds a replacement; null after a failure, which is in b->status. */
Node *pattern_build(const Pattern *p, Build *b, const Match *m);

/* Calls between root and leaves, the root included. */
int pattern_depth(const Pattern *p);

/* Applies rules inside each region until none fits.  A replacement needs the root's type, and has to lower the measure
 * (sum of card weights, bytes of casts, number of nodes), compared in that order; so the end is certain. */
Status rules_run(const Rule *rules, size_t n, Graph *g, PassRun *run);

/* What the rules of several tables say of one kind of constant: its value where all elements are one number. */
bool constant_is(const Node *n, double value);

#endif
