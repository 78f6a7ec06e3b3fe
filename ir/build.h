/* Code that builds graph reads as the formula. */
#ifndef IR_BUILD_H
#define IR_BUILD_H

#include "ir/graph.h"

/* Where new nodes go and what marks they carry. */
struct Build {
    Graph *graph;
    Node *before; /* null: at the end */
    uint32_t src; /* marks for new nodes */
    uint16_t flags;
    const char *label;
    Status status; /* the first failure; later calls go on and give null */
};

/* A builder at the end of a graph. */
Build build_at_end(Graph *g);

/* A builder before the first node of a graph, behind its inputs. */
Build build_at_start(Graph *g);

/* A builder before a node, carrying its marks: what replaces it keeps them. */
Build build_before(Node *n);

/* A node with inferred type.  `attr` is copied (null: all defaults); null operands are absent.
 * A complaint of infer is reported and leaves b->status; the result is then null. */
Node *build_node(Build *b, Op op, const void *attr, int n_in, Node *const *ins);

/* The same with n_out results. */
Node *build_node_n(Build *b, Op op, const void *attr, int n_in, Node *const *ins, int n_out);

/* The same with regions; the type is inferred. */
Node *build_with_regions(Build *b, Op op, const void *attr, int n_in, Node *const *ins, int n_out, int n_regions,
                         Graph *const *regions);

/* A node whose type is given; infer is not asked. */
Node *build_typed(Build *b, Op op, const void *attr, int n_in, Node *const *ins, const Type *type);

/* The i-th result of a node with several (the node itself when it has one). */
Node *build_part(Build *b, Node *tuple, int i);

/* A tuple of values. */
Node *build_tuple(Build *b, int n, Node *const *parts);

/* A constant over a tensor that outlives the graph's arena or lives in it. */
Node *build_const(Build *b, const Tensor *t);

/* A scalar constant. */
Node *build_scalar(Build *b, DType dtype, double value);

/* A rank-1 i64 constant. */
Node *build_i64s(Build *b, int n, const int64_t *v);

/* Type conversion by a `cast` (nothing when the type is already that). */
Node *build_cast(Build *b, Node *x, DType to);

/* The same by an `amp_cast`: a conversion between float widths that is ours, and may go again.  Not of f64. */
Node *build_amp_cast(Build *b, Node *x, DType to);

/* Asks the card again what type a node has; INVALID with a located message when it complains. */
Status node_retype(Node *n);

/* The type infer gives to a call with the operands of `n`; null and `*complaint` when it refuses. */
const Type *node_infer(const Node *n, const char **complaint);

/* CALL(b, add, x, y): operands only.  CALL_ATTR(b, matmul, (MatmulAttr){...}, x, y). */
#define CALL(b, word, ...)                                                                                             \
    build_node((b), OP_##word, NULL, (int)(sizeof((Node *[]){ __VA_ARGS__ }) / sizeof(Node *)),                        \
               (Node *[]){ __VA_ARGS__ })
#define CALL_ATTR(b, word, attributes, ...)                                                                            \
    build_node((b), OP_##word, &attributes, (int)(sizeof((Node *[]){ __VA_ARGS__ }) / sizeof(Node *)),                 \
               (Node *[]){ __VA_ARGS__ })

#endif
