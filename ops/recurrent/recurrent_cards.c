/* The cards of lstm, gru and rnn. */
#include "ops/contract/work.h"
#include "ops/recurrent/recurrent_kernels.h"

static const AttrSpec lstm_attrs[] = { RECURRENT_ATTRS, ATTR(RecurrentAttr, input_forget, BOOL, false),
                                       ATTR_OURS(RecurrentAttr, state_type, DTYPE, 0), ATTR_LAST };
static const AttrSpec gru_attrs[] = { RECURRENT_ATTRS, ATTR(RecurrentAttr, linear_before_reset, BOOL, false),
                                      ATTR_LAST };
static const AttrSpec rnn_attrs[] = { RECURRENT_ATTRS, ATTR_LAST };
static const AttrSpec lstm_grad_attrs[] = { RECURRENT_ATTRS, ATTR(RecurrentAttr, input_forget, BOOL, false),
                                            ATTR_OURS(RecurrentAttr, state_type, DTYPE, 0),
                                            ATTR_OURS(RecurrentAttr, product_type, DTYPE, 0), ATTR_LAST };
static const AttrSpec gru_grad_attrs[] = { RECURRENT_ATTRS, ATTR(RecurrentAttr, linear_before_reset, BOOL, false),
                                           ATTR_OURS(RecurrentAttr, product_type, DTYPE, 0), ATTR_LAST };
static const AttrSpec rnn_grad_attrs[] = { RECURRENT_ATTRS, ATTR_OURS(RecurrentAttr, product_type, DTYPE, 0),
                                           ATTR_LAST };

/* Weights of all gates lie in dimension 1: each row gives one number before the gate's function. */
static int rows_of_gates(const Node *n, int operand)
{
    (void)n;
    return operand == 1 || operand == 2 ? 1 : QUANT_WHOLE;
}

static bool narrows_forward(const Node *n)
{
    return in(n, 0)->type->dtype == BF16 && !(n->op == OP_gru && recurrent_is_whole(&cell_gru, n->attr));
}

static bool narrows_back(const Node *n)
{
    const RecurrentAttr *at = n->attr;
    DType own = in(n, 0)->type->dtype;
    return attr_dtype(at->product_type, &own) && own == BF16 &&
           !(n->op == OP_gru_grad && recurrent_is_whole(&cell_gru, at));
}

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
    static bool kernels_##word(const Node *n, OwnKernels *to)                                                          \
    {                                                                                                                  \
        return kernels_recurrent(n, to, &cell_##word);                                                                 \
    }                                                                                                                  \
    static void adjoint_##word(Build *b, const Site *s, Node **dx)                                                     \
    {                                                                                                                  \
        adjoint_recurrent(b, s, dx, OP_##word##_grad, &cell_##word);                                                   \
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
        .adjoint = adjoint_##word,                                                                                     \
        .open_adjoint = true,                                                                                          \
        .sample = sample_##word,                                                                                       \
        .n_variants = 36,                                                                                              \
        .differentiable = differ,                                                                                      \
        .trainable = 14 | ((differ)&128),                                                                              \
        .weight = 60,                                                                                                  \
        .work = work_recurrent,                                                                                        \
        .narrows = narrows_forward,                                                                                    \
        .access.kind = ACCESS_SCAN,                                                                                    \
        .access.kernels = kernels_##word,                                                                              \
        .access.refuses = true,                                                                                        \
        .amp = { AMP_T, AMP_T, wide, REASON_NONE, NULL, .wide_out = n_results == 3 ? 4 : 0 },                          \
        .quant = { .in = { QUANT_FLOAT, QUANT_WEIGHT, QUANT_WEIGHT, QUANT_FLOAT },                                     \
                   .out = { QUANT_FLOAT },                                                                             \
                   .weight_axis = rows_of_gates },                                                                     \
        .onnx = { onnx_name, 22, NULL },                                                                               \
    }

/* Bias, the cell state (the initial one and the last) and the peepholes stay wide. */
RECURRENT_CARD(lstm, 8, 3, 8 | 64 | 128, 15 | 32 | 64 | 128, "LSTM");
RECURRENT_CARD(gru, 6, 2, 8, 15 | 32, "GRU");
RECURRENT_CARD(rnn, 6, 2, 8, 15 | 32, "RNN");
#undef RECURRENT_CARD

#define KEPT_CARD(word, n_operands, n_results)                                                                         \
    static const Type *infer_##word##_kept(Infer *q)                                                                   \
    {                                                                                                                  \
        return infer_recurrent_kept(q, &cell_##word);                                                                  \
    }                                                                                                                  \
    static Node *sample_##word##_kept(Build *b, Rng *rng, int variant)                                                 \
    {                                                                                                                  \
        return sample_recurrent_kept(b, rng, variant, OP_##word##_kept, OP_##word, &cell_##word);                      \
    }                                                                                                                  \
    const OpDef op_##word##_kept = {                                                                                   \
        .name = #word "_kept",                                                                                         \
        .min_in = n_operands,                                                                                          \
        .max_in = n_operands,                                                                                          \
        .min_out = n_results,                                                                                          \
        .max_out = n_results,                                                                                          \
        .attrs = word##_attrs,                                                                                         \
        .infer = infer_##word##_kept,                                                                                  \
        .eval = eval_##word,                                                                                           \
        .sample = sample_##word##_kept,                                                                                \
        .n_variants = 18,                                                                                              \
        .weight = 60,                                                                                                  \
        .work = work_recurrent,                                                                                        \
        .narrows = narrows_forward,                                                                                    \
        .access.kind = ACCESS_SCAN,                                                                                    \
        .access.kernels = kernels_##word,                                                                              \
        .access.refuses = true,                                                                                        \
        .amp = { AMP_FO, AMP_FO, 0, REASON_PRECISION, NULL },                                                          \
        .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },                                                    \
        .brief = "The results of " #word ", and what its gradient needs of each step: what the gates gave, and the "   \
                 "state that lay in it.",                                                                              \
    }
KEPT_CARD(lstm, 8, 5);
KEPT_CARD(gru, 6, 4);
#undef KEPT_CARD

#define GRAD_CARD(word, n_operands, n_results, n_kept, behind)                                                         \
    static const Type *infer_##word##_grad(Infer *q)                                                                   \
    {                                                                                                                  \
        return infer_recurrent_grad(q, &cell_##word);                                                                  \
    }                                                                                                                  \
    static Status eval_##word##_grad(Eval *e)                                                                          \
    {                                                                                                                  \
        return eval_recurrent_grad(e, &cell_##word);                                                                   \
    }                                                                                                                  \
    static bool kernels_##word##_grad(const Node *n, OwnKernels *to)                                                   \
    {                                                                                                                  \
        return kernels_recurrent_grad(n, to, &cell_##word);                                                            \
    }                                                                                                                  \
    static Node *sample_##word##_grad(Build *b, Rng *rng, int variant)                                                 \
    {                                                                                                                  \
        return sample_recurrent_grad(b, rng, variant, OP_##word##_grad, OP_##word, &cell_##word);                      \
    }                                                                                                                  \
    const OpDef op_##word##_grad = {                                                                                   \
        .name = #word "_grad",                                                                                         \
        .min_in = n_operands,                                                                                          \
        .max_in = n_operands + (n_kept),                                                                               \
        .min_out = n_results,                                                                                          \
        .max_out = n_results,                                                                                          \
        .attrs = word##_grad_attrs,                                                                                    \
        .infer = infer_##word##_grad,                                                                                  \
        .eval = eval_##word##_grad,                                                                                    \
        .sample = sample_##word##_grad,                                                                                \
        .n_variants = 18,                                                                                              \
        .weight = 120,                                                                                                 \
        .narrows = narrows_back,                                                                                       \
        .access.kind = ACCESS_SCAN,                                                                                    \
        .access.kernels = kernels_##word##_grad,                                                                       \
        .access.refuses = true,                                                                                        \
        .amp = { AMP_FO, AMP_FO, 0, REASON_PRECISION, NULL },                                                          \
        .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },                                                    \
        .brief = "What reaches the operands of " #word ", from the operands, what reaches its results, " behind,       \
    }
GRAD_CARD(lstm, 12, 7, RECURRENT_KEPT, "Y and, if it was kept, what its steps made.");
GRAD_CARD(gru, 9, 5, RECURRENT_KEPT, "Y and, if it was kept, what its steps made.");
GRAD_CARD(rnn, 9, 5, 0, "and Y.");
#undef GRAD_CARD
