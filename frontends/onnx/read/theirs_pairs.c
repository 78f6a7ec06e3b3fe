/* Pairs of a quantizer and the numbers of its codes, as readers of other people's quantizers build them. */
#include "frontends/onnx/read/theirs.h"
#include "ops/card/make.h"
#include "ops/quant/quantize.h"

Status theirs_beside(const Call *c, const Node *scale, Beside *to)
{
    const Type *x = call_in(c, 0)->type, *s = scale->type;
    *to = (Beside){ -1, 1 };
    if (x->kind != TYPE_TENSOR || x->dtype != F32 || s->kind != TYPE_TENSOR || s->dtype != F32)
        return theirs_fail(c, "takes f32 alone");
    if (!type_known(s))
        return theirs_fail(c, "how many scales there are is not known");
    for (int i = 0; i < s->rank; i++) {
        if (s->dims[i] == 1)
            continue;
        if (to->axis >= 0)
            return theirs_fail(c, "scales along two axes: there is one at most");
        if (x->rank < s->rank || (x->dims[x->rank - s->rank + i] >= 0 && x->dims[x->rank - s->rank + i] != s->dims[i]))
            return theirs_fail(c, "%" PRId64 " scales do not lie along an axis of what is quantized", s->dims[i]);
        *to = (Beside){ x->rank - s->rank + i, s->dims[i] };
    }
    return OK;
}

Node *theirs_laid(const Call *c, Node *n, const Beside *to)
{
    return make_shaped(c->build, n, to->axis >= 0, &to->n);
}

Node *theirs_quantize(const Call *c, Node *x, Node *scale, Node *zero, const Beside *to, const Codes *codes,
                      int rounding, int mask)
{
    const QuantizeAttr *usual = attrs_default(call_arena(c), call_ir(c)->ops->defs[OP_quantize_linear]->attrs);
    QuantizeAttr at = *usual;
    at.axis = to->axis >= 0 ? to->axis : usual->axis;
    at.output_dtype = (int)codes->type + 1;
    at.least = codes->least;
    at.largest = codes->largest;
    at.rounding = rounding;
    at.mask = mask;
    return zero ? CALL_ATTR(c->build, quantize_linear, at, x, scale, zero)
                : CALL_ATTR(c->build, quantize_linear, at, x, scale);
}

Node *theirs_numbers(const Call *c, Node *codes, Node *scale, Node *zero, const Beside *to)
{
    const DequantizeAttr *usual = attrs_default(call_arena(c), call_ir(c)->ops->defs[OP_dequantize_linear]->attrs);
    DequantizeAttr at = *usual;
    at.axis = to->axis >= 0 ? to->axis : usual->axis;
    return zero ? CALL_ATTR(c->build, dequantize_linear, at, codes, scale, zero)
                : CALL_ATTR(c->build, dequantize_linear, at, codes, scale);
}
