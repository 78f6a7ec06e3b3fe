/* The cards of lstm, gru and rnn. */
#include "ops/recurrent.h"

static const AttrSpec lstm_attrs[] = { RECURRENT_ATTRS, ATTR(RecurrentAttr, input_forget, BOOL, false), ATTR_LAST };
static const AttrSpec gru_attrs[] = { RECURRENT_ATTRS, ATTR(RecurrentAttr, linear_before_reset, BOOL, false),
                                      ATTR_LAST };
static const AttrSpec rnn_attrs[] = { RECURRENT_ATTRS, ATTR_LAST };

#define RECURRENT_CARD(word, n_operands, n_results, wide, differ, onnx_name)                                           \
    static const Type *infer_##word(Infer *q)                                                                          \
    {                                                                                                                  \
        return infer_recurrent(q, &cell_##word);                                                                       \
    }                                                                                                                  \
    static Status eval_##word(Eval *e)                                                                                 \
    {                                                                                                                  \
        return eval_recurrent(e, &cell_##word);                                                                        \
    }                                                                                                                  \
    static Node *sample_##word(Build *b, Rng *rng, int variant)                                                        \
    {                                                                                                                  \
        return sample_recurrent(b, rng, variant, OP_##word, &cell_##word);                                             \
    }                                                                                                                  \
    const OpDef op_##word = {                                                                                          \
        .name = #word,                                                                                                 \
        .min_in = 3,                                                                                                   \
        .max_in = n_operands,                                                                                          \
        .min_out = 1,                                                                                                  \
        .max_out = n_results,                                                                                          \
        .attrs = word##_attrs,                                                                                         \
        .infer = infer_##word,                                                                                         \
        .eval = eval_##word,                                                                                           \
        .sample = sample_##word,                                                                                       \
        .n_variants = 36,                                                                                              \
        .differentiable = differ,                                                                                      \
        .trainable = 14 | ((differ)&128),                                                                              \
        .weight = 60,                                                                                                  \
        .fuse = FUSE_OPAQUE,                                                                                           \
        .amp = { AMP_T, AMP_T, wide, REASON_NONE, NULL },                                                              \
        .quant = { .in = { QUANT_FLOAT, QUANT_WEIGHT, QUANT_WEIGHT, QUANT_FLOAT }, .out = QUANT_FLOAT },               \
        .onnx = { onnx_name, 22, NULL },                                                                               \
    }

/* Bias, the initial cell state and the peepholes stay wide. */
RECURRENT_CARD(lstm, 8, 3, 8 | 64 | 128, 15 | 32 | 64 | 128, "LSTM");
RECURRENT_CARD(gru, 6, 2, 8, 15 | 32, "GRU");
RECURRENT_CARD(rnn, 6, 2, 8, 15 | 32, "RNN");
#undef RECURRENT_CARD
