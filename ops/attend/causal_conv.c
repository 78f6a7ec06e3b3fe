/* causal_conv_with_state: a convolution of each channel with its past, which it hands on. */
#include "ops/attend/attention.h"
#include "ops/card/make.h"
#include "ops/card/signature.h"
#include "ops/norm/norm.h"
#include "ops/window/window.h"

typedef enum CausalActivation { CAUSAL_NONE, CAUSAL_SILU, CAUSAL_SWISH } CausalActivation;
static const char *const activations[] = { "none", "silu", "swish", NULL };

static const AttrSpec causal_conv_attrs[] = { ATTR_CHOICE(CausalConvAttr, activation, activations, CAUSAL_NONE),
                                              ATTR_OURS(CausalConvAttr, out, DTYPE, 0), ATTR_LAST };

static const Type *infer_causal_conv_with_state(Infer *q)
{
    const CausalConvAttr *at = q->attr;
    Bound k = signature_open();
    DType dtype;
    if (!infer_floats(q, 3) || !infer_contracted(q, at->out, 0, &dtype) || !signature_match(q, &k))
        return NULL;
    const int64_t kernel = signature_extent(&k, 'k'), past = signature_extent(&k, 'p');
    if (kernel == 0)
        return infer_fail(q, "has a kernel without elements");
    if (kernel > 0 && !dims_fit(past, kernel - 1))
        return infer_fail(q, "past_state has %" PRId64 " steps, wanted are %" PRId64, past, kernel - 1);
    if (kernel > 0)
        signature_set(&k, 'p', kernel - 1);
    signature_set_dtype(&k, 'T', dtype);
    return signature_results(q, &k);
}

static Node *expand_causal_conv_with_state(Build *b, const Site *s)
{
    const CausalConvAttr *at = s->attr;
    if (!make_ready(b, s))
        return NULL;
    const Type *x = s->in[0]->type;
    const DType t = make_width(x->dtype);
    const int64_t length = x->dims[2], before = s->in[1]->type->dims[2] - 1;
    const int64_t state[] = { x->dims[0], x->dims[1], before };
    Node *past = site_in(s, 3) ? s->in[3] : make_zeros(b, x->dtype, 3, state);
    Node *padded = make_concat(b, 2, 2, (Node *[]){ past, s->in[0] });
    const DType out = type_result(s->type, 0)->dtype;
    Node *y = make_cast(b, s->in[0], out);
    if (length > 0 && x->dims[1] > 0) {
        const ConvAttr conv = { .group = x->dims[1], .out = t == x->dtype ? 0 : (int)t + 1 };
        Node *in[] = { padded, s->in[1], site_in(s, 2) ? make_cast(b, s->in[2], t) : NULL };
        y = build_node(b, OP_conv, &conv, in[2] ? 3 : 2, in);
        if (at->activation != CAUSAL_NONE)
            y = CALL(b, mul, y, CALL(b, sigmoid, y));
        y = make_cast(b, y, out);
    }
    Node *parts[] = { y, make_slice(b, padded, 2, length, length + before, 1) };
    if (s->n_out == 1 || b->status != OK)
        return y;
    return build_tuple(b, 2, parts);
}

static Node *sample_causal_conv_with_state(Build *b, Rng *rng, int variant)
{
    const int64_t x[] = { rng_below(rng, 3), rng_range(rng, 1, 3), rng_below(rng, 5) };
    const int64_t w[] = { x[1], 1, rng_range(rng, 1, 4) }, state[] = { x[0], x[1], w[2] - 1 };
    const DType dtype = sample_float(rng);
    const CausalConvAttr at = { variant % 3, dtype_is_narrow(dtype) && rng_below(rng, 2) ? F32 + 1 : 0 };
    Node *in[] = { sample_tensor(b, rng, dtype, 3, x, -2, 2), sample_tensor(b, rng, dtype, 3, w, -2, 2),
                   rng_below(rng, 2) ? sample_tensor(b, rng, dtype_is_narrow(dtype) ? F32 : dtype, 1, w, -1, 1) : NULL,
                   rng_below(rng, 2) ? sample_tensor(b, rng, dtype, 3, state, -2, 2) : NULL };
    return build_node_n(b, OP_causal_conv_with_state, &at, 4, in, 2);
}

const OpDef op_causal_conv_with_state = {
    .name = "causal_conv_with_state",
    .min_in = 2,
    .max_in = 4,
    .min_out = 2,
    .max_out = 2,
    .attrs = causal_conv_attrs,
    .infer = infer_causal_conv_with_state,
    .signature = &(const Signature){ .in = { "F[bct]", "F[c1k]", "G[c]?", "F[bcp]?" }, .out = { "T[bct]", "F[bcp]" } },
    .expand = expand_causal_conv_with_state,
    .sample = sample_causal_conv_with_state,
    .n_variants = 24,
    .differentiable = 15,
    .trainable = 6,
    .weight = 20,
    .access.kind = ACCESS_CONTRACT,
    .amp = { AMP_T, AMP_T, 4, REASON_NONE, NULL },
    .quant = { .in = { QUANT_FLOAT }, .out = { QUANT_FLOAT } },
    .onnx = { "CausalConvWithState", 27, NULL },
};
