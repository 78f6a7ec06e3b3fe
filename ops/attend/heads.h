/* What the files of attention share: the extents of a call, and where a query may look. */
#ifndef OPS_ATTEND_HEADS_H
#define OPS_ATTEND_HEADS_H

#include "ops/attend/attention.h"

/* The operands of attention, and what its fourth result shows. */
enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_KEY, IN_PAST_VALUE, IN_LENGTHS };
enum { QK_PRODUCT, QK_CAPPED, QK_BIASED, QK_PROBABILITY };

/* The operands of attention_grad. */
enum { GRAD_Q, GRAD_K, GRAD_V, GRAD_DY, GRAD_MASK, GRAD_LENGTHS, GRAD_OPERANDS };

/* The extents of a call; keys are those given, total those and the past. */
typedef struct Heads {
    int64_t batch, q_heads, heads, queries, keys, past, total, size, v_size;
} Heads;

/* The extents of a call on queries, keys and values of these known types, behind a past of so many keys. */
Heads heads_of(const AttentionAttr *at, const Type *q, const Type *k, const Type *v, int64_t past);

/* What queries or products are multiplied with, or products divided by. */
double attention_scale(const AttentionAttr *at, const Heads *h);

/* Whether products are scaled, not queries. */
bool attention_scales_products(const AttentionAttr *at, DType own);

/* The words for `scaled`. */
extern const char *const attention_scaled[];

/* How far before and behind its own key a query sees; -1: as far as there are keys. */
int64_t attention_left(const AttentionAttr *at);
int64_t attention_right(const AttentionAttr *at);

/* The meaning of attention in products, selections and one softmax. */
Node *expand_attention(Build *b, const Site *s);

/* What infer says of attention. */
const Type *infer_attention(Infer *q);

/* A sample of attention. */
Node *sample_attention(Build *b, Rng *rng, int variant);

/* The meaning of attention_grad: the same scores, and what the chain rule makes of them. */
Node *expand_attention_grad(Build *b, const Site *s);

/* One call of attention_grad: of calls that are evaluated by blocks. */
void adjoint_attention(Build *b, const Site *s, Node **dx);

/* Whether a call is evaluated by blocks of queries: it gives nothing but its result, has no past, and its softmax has the
 * width of the call. */
bool attention_in_blocks(const AttentionAttr *at, DType own, int n_out, bool has_past);

/* The same values by blocks of queries, a score matrix being nowhere whole; other calls by their expansion. */
Status fast_attention(Eval *e);

/* The same of attention_grad, which then gives nothing for a mask. */
bool attention_grad_in_blocks(const AttentionAttr *at, DType own, int n_out);
Status fast_attention_grad(Eval *e);

/* The attributes that a call and its gradient share, in the order of their names, before and behind what a call shows. */
#define ATTENTION_HEAD_ATTRS                                                                                           \
    ATTR(AttentionAttr, is_causal, BOOL, false), ATTR(AttentionAttr, kv_num_heads, INT, 0),                            \
        ATTR(AttentionAttr, left_window_size, INT, -1), ATTR(AttentionAttr, q_num_heads, INT, 0)
#define ATTENTION_SCORE_ATTRS                                                                                          \
    ATTR(AttentionAttr, right_window_size, INT, -1), ATTR(AttentionAttr, scale, FLOAT, 0),                             \
        { .name = "scaled",                                                                                            \
          .kind = ATTR_ENUM,                                                                                           \
          .offset = offsetof(AttentionAttr, scaled),                                                                   \
          .value = SCALE_QUERIES,                                                                                      \
          .choices = attention_scaled,                                                                                 \
          .ours = true },                                                                                              \
        ATTR(AttentionAttr, softcap, FLOAT, 0), ATTR(AttentionAttr, softmax_precision, DTYPE, 0)

#endif
