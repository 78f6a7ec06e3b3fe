/* What goes back through quantizers, straight through: the gradient of codes is that of the numbers they stand for, and so
 * it passes dequantize_linear as it is.  quantize_linear gives its data what its mask lets through, and a learned scale the
 * sum over its elements of what reaches each, times (v being the number over the scale)
 *
 *     rounded v - v           inside
 *     least - z, largest - z  below and above
 *
 * where codes that are floats say what v was rounded to,
 *
 * and what a learned code of 0 stands for what reaches those below and above, negated: with it, the scale has the codes
 * least and largest there.  Where only ends count, nothing inside adds to either.
 *
 * A NaN has the code of 0, but its gradient is a NaN, for whoever scales the loss to see: and so is then all that does
 * not pass, since of each element a bit is kept, of all of them whether there is one. */
#include "ops/card/make.h"
#include "ops/card/shapes.h"
#include "ops/control/reverse_call.h"
#include "ops/quant/float_grid.h"
#include "ops/quant/observe.h"
#include "ops/quant/quantize_rows.h"

/* A call on its way back. */
typedef struct Back {
    QuantRows rows;
    Build *b;
    const Site *s;
    const QuantizeAttr *at;
    DType code;
} Back;

static Node *number(const Back *k, double v)
{
    return build_scalar(k->b, F32, v);
}

CodeSpot code_spot(Build *b, Node *v, Node *r, double lo, double hi, Node *z, int mask)
{
    CodeSpot p = { .v = v, .r = r, .least = build_scalar(b, F32, lo), .most = build_scalar(b, F32, hi) };
    if (z) {
        p.least = CALL(b, sub, p.least, z);
        p.most = CALL(b, sub, p.most, z);
    }
    p.first = p.least;
    p.last = p.most;
    p.seen = mask == MASK_BY_VALUE ? v : r;
    p.mask = mask;
    return p;
}

void code_spot_learns(Build *b, CodeSpot *p, double lo, double hi, bool ends, bool learned_zero)
{
    p->ends = ends;
    if (learned_zero) {
        p->first = build_scalar(b, F32, lo);
        p->last = build_scalar(b, F32, hi);
    }
}

/* What floats were rounded to is what their codes stand for. */
static Node *float_rounded(Build *b, Node *codes, Node *z)
{
    Node *number = build_cast(b, codes, F32);
    return z ? CALL(b, sub, number, z) : number;
}

static CodeSpot spot_of(const Back *k)
{
    const bool floats = dtype_is_float(k->code);
    double lo, hi;
    code_limits(k->code, k->at->least, k->at->largest, &lo, &hi);
    const DType scale = in(k->s->call, 1)->type->dtype;
    Node *v = quant_quotient(&k->rows, k->at, k->s->in[0], k->s->in[1], scale);
    Node *r = floats ? v : quant_rounded(k->b, k->at->rounding, v, site_in(k->s, 3));
    Node *zero = site_in(k->s, 2), *z = zero ? quant_spread(&k->rows, zero, F32) : NULL;
    CodeSpot p = code_spot(k->b, v, r, lo, hi, z, k->at->mask);
    if (floats && k->at->learned)
        p.r = float_rounded(k->b, k->s->y[0], z);
    code_spot_learns(k->b, &p, lo, hi, k->at->ends, k->at->learned_zero);
    return p;
}

/* A condition of which a bit a value may be kept (passes/quant/keep_bits.c). */
static Node *kept(Build *b, Node *condition)
{
    return build_cast(b, build_cast(b, condition, BIT), BOOL);
}

/* 0, or a NaN if there is one. */
static Node *spoilt(Build *b, Node *x)
{
    Node *most = observe_extreme(b, OP_reduce_max, x->type->dtype == F32 ? x : build_cast(b, x, F32));
    return CALL(b, where, CALL(b, is_nan, most), most, build_scalar(b, F32, 0));
}

/* A number is between the ends if they leave it alone; a NaN is not. */
static Node *is_inside(Build *b, const CodeSpot *p)
{
    Node *bound = type_elements(p->least->type) == 1
                      ? CALL(b, clip, p->seen, p->least, p->most)
                      : CALL(b, max, CALL(b, min, p->seen, p->most), p->least); /* ends of each channel */
    return CALL(b, equal, bound, p->seen);
}

Node *code_gradient(Build *b, const CodeSpot *p, Node *dy, bool relu, Node *x)
{
    Node *zero = build_scalar(b, F32, 0), *lifted = p->v, *passes = NULL;
    if (p->mask != MASK_NONE)
        passes = is_inside(b, p);
    if (relu && passes)
        lifted = CALL(b, where, passes, p->v, zero);
    if (relu)
        passes = CALL(b, less, zero, lifted);
    return CALL(b, where, kept(b, passes), dy, x ? spoilt(b, x) : zero);
}

Node *code_scale_terms(Build *b, const CodeSpot *p, Node *dy)
{
    Node *below = CALL(b, less, p->seen, p->least), *above = CALL(b, less, p->most, p->seen);
    Node *inside = p->ends ? build_scalar(b, F32, 0) : CALL(b, sub, p->r, p->v);
    Node *within = CALL(b, where, above, p->last, inside);
    return CALL(b, mul, dy, CALL(b, where, below, p->first, within));
}

Node *code_zero_terms(Build *b, const CodeSpot *p, Node *dy)
{
    Node *beyond = CALL(b, or, CALL(b, less, p->seen, p->least), CALL(b, less, p->most, p->seen));
    return CALL(b, where, beyond, CALL(b, neg, dy), build_scalar(b, F32, 0));
}

/* Each block along the axis as a dimension of its own, zeros behind the last one. */
static Node *in_blocks(const Back *k, Node *term)
{
    int64_t before[MAX_RANK] = { 0 }, after[MAX_RANK] = { 0 }, dims[MAX_RANK];
    const int64_t have = k->rows.layout.extent, want = k->rows.layout.blocks * k->rows.layout.block;
    int n = 0;
    after[k->rows.axis] = want - have;
    if (want > have)
        term = make_pad(k->b, term, k->rows.x->rank, before, after);
    for (int i = 0; i < k->rows.x->rank; i++) {
        dims[n++] = i == k->rows.axis ? k->rows.layout.blocks : k->rows.x->dims[i];
        if (i == k->rows.axis)
            dims[n++] = k->rows.layout.block;
    }
    return make_reshape(k->b, term, n, dims);
}

/* The sum over the elements of each scale. */
static Node *sum_by_scale(const Back *k, Node *term)
{
    int64_t axes[MAX_RANK], blocks = k->rows.axis + 1;
    int n = 0;
    if (!k->rows.layout.block)
        return make_reduce_all(k->b, OP_reduce_sum, term);
    if (!k->rows.layout.per_axis)
        return build_reduce(k->b, OP_reduce_sum, in_blocks(k, term), 1, &blocks);
    for (int i = 0; i < k->rows.x->rank; i++)
        if (i != k->rows.axis)
            axes[n++] = i;
    return n ? build_reduce(k->b, OP_reduce_sum, term, n, axes) : term;
}

/* Of each scale, or of each code of 0, the sum of its elements' terms. */
static Node *gradient_of(const Back *k, int operand, Node *terms)
{
    const Type *scale = k->s->in[operand]->type;
    Node *sum = sum_by_scale(k, terms);
    if (k->at->gain != 1)
        sum = CALL(k->b, mul, sum, number(k, (double)k->at->gain));
    return make_reshape(k->b, sum, scale->rank, scale->dims);
}

/* The gradient of a scale ends at this call. */
static void end_at_scale(const Site *s)
{
    ReverseStop stop = { s->call, 1, false };
    const ReverseResult none = { .stops = &stop, .n_stops = 1 };
    reverse_tell(s, &none);
}

void adjoint_quantize_linear(Build *b, const Site *s, Node **dx)
{
    const QuantizeAttr *at = s->attr;
    const Type *x = s->in[0]->type;
    Node *dy = s->dout[0];
    if (s->want[1] && !at->learned)
        end_at_scale(s);
    if (!dy)
        return;
    const Back k = { .rows = quant_rows(b, x, s->in[1]->type, at->axis, at->block_size),
                     .b = b,
                     .s = s,
                     .at = at,
                     .code = s->type->dtype };
    const bool masks = s->want[0] && at->mask != MASK_NONE, learns = s->want[1] && at->learned,
               zero = s->n_in > 2 && s->want[2] && at->learned_zero;
    const CodeSpot p = masks || learns || zero ? spot_of(&k) : (CodeSpot){ NULL };
    if (s->want[0])
        dx[0] = masks ? code_gradient(b, &p, dy, false, s->in[0]) : dy;
    if (learns)
        dx[1] = gradient_of(&k, 1, code_scale_terms(b, &p, dy));
    if (zero)
        dx[2] = gradient_of(&k, 2, code_zero_terms(b, &p, dy));
}

/* What a scale learns is said where numbers become codes; nowhere, where the codes are no call's. */
void adjoint_dequantize_linear(Build *b, const Site *s, Node **dx)
{
    (void)b;
    if (s->want[1] && !reverse_is_codes(in(s->call, 0)))
        end_at_scale(s);
    dx[0] = s->dout[0];
}
