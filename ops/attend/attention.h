/* Attributes of the attention family. */
#ifndef OPS_ATTEND_ATTENTION_H
#define OPS_ATTEND_ATTENTION_H

#include "ops/contract/contract.h"

typedef enum UpdateRule { UPDATE_LINEAR, UPDATE_GATED, UPDATE_DELTA, UPDATE_GATED_DELTA } UpdateRule;

typedef struct LinearAttentionAttr {
    int64_t chunk_size, kv_num_heads, q_num_heads;
    float scale; /* 0: one over the root of the key size */
    int update_rule;
    int state_type; /* DType + 1 of the state that is given; 0: that of the past, without one that of the queries */
} LinearAttentionAttr;

/* What the scale of attention meets: queries, or their products with keys, which are multiplied with it or divided by it.
 * Products of narrow types are never scaled before. */
typedef enum ScaleAt { SCALE_QUERIES, SCALE_PRODUCTS, SCALE_QUOTIENTS } ScaleAt;

typedef struct AttentionAttr {
    bool is_causal;
    int64_t kv_num_heads, q_num_heads;           /* 0: operands of 4 dimensions say them */
    int64_t left_window_size, right_window_size; /* keys before and behind the query's own; -1: all */
    int64_t qk_matmul_output_mode;
    float scale;   /* 0: one over the root of the head size; of quotients that root */
    int scaled;    /* ScaleAt */
    float softcap; /* 0: none */
    int softmax_precision;
} AttentionAttr;

typedef struct RotaryAttr {
    bool interleaved;
    int64_t num_heads, rotary_embedding_dim; /* 0: not said, all of a head */
} RotaryAttr;

typedef struct CausalConvAttr {
    int activation;
    int out; /* DType + 1: of the result; 0: that of the data */
} CausalConvAttr;

#endif
