/* What goes back through words on codes, straight through: gradients of codes are those of the numbers they stand
 * for.  What reaches the result is masked as quantize_linear would (and as relu would, where nothing below the code
 * of 0 leaves), by the quotient; it then goes on as the call on numbers lets it.  A bias has the gradient of the
 * numbers it stands for; a learned scale what quantize_linear would give it. */
#include "ops/card/make.h"
#include "ops/contract/contract.h"
#include "ops/control/reverse.h"
#include "ops/quant/words.h"

static Node *raised(Build *b, Node *p, int rank, const int64_t *dims)
{
    Node *wide = build_cast(b, p, F32);
    return type_elements(p->type) == 1 ? make_reshape(b, wide, 0, NULL) : make_reshape(b, wide, rank, dims);
}

/* The numbers that codes stand for; scale and zero point are one number each, or of a shape that fits `rank`, `dims`. */
static Node *numbers_of(Build *b, const Site *s, int x, int rank, const int64_t *dims)
{
    Node *scale = raised(b, s->in[x + 1], rank, dims), *zero = raised(b, s->in[x + 2], rank, dims);
    return CALL(b, mul, CALL(b, sub, build_cast(b, s->in[x], F32), zero), scale);
}

/* The same where each is one number. */
static Node *numbers(Build *b, const Site *s, int x)
{
    return numbers_of(b, s, x, 0, NULL);
}

/* The quotient, computed once more where the call was not asked for it. */
static Node *quotient_of(Build *b, const Site *s)
{
    if (s->n_out > 1)
        return s->y[1];
    Node *both = build_node_n(b, s->call->op, s->attr, s->n_in, s->in, 2);
    return both ? build_part(b, both, 1) : NULL;
}

/* One number in f32, whatever rank it is written with. */
static Node *single(Build *b, Node *x)
{
    return make_reshape(b, build_cast(b, x, F32), 0, NULL);
}

/* What reaches a learned scale: of the codes, and of the quotient, which is divided by it. */
static Node *learned_gradient(Build *b, const Site *s, const CodesAttr *at, int scale, const CodeSpot *p, Node *v)
{
    const Type *t = s->in[scale]->type;
    Node *sum = s->dout[0] ? make_reduce_all(b, OP_reduce_sum, code_scale_terms(b, p, s->dout[0])) : NULL;
    if (sum && at->gain != 1)
        sum = CALL(b, mul, sum, build_scalar(b, F32, (double)at->gain));
    if (s->n_out > 1 && s->dout[1]) {
        Node *fall = CALL(b, div, CALL(b, mul, s->dout[1], v), single(b, s->in[scale]));
        fall = make_reduce_all(b, OP_reduce_sum, CALL(b, neg, fall));
        sum = sum ? CALL(b, add, sum, fall) : fall;
    }
    return make_reshape(b, sum, t->rank, t->dims);
}

/* What reaches what a learned code of 0 stands for: what lies beyond the codes moves with it. */
static Node *zero_gradient(Build *b, const Site *s, const CodesAttr *at, int zero, const CodeSpot *p)
{
    const Type *t = s->in[zero]->type;
    Node *sum = make_reduce_all(b, OP_reduce_sum, code_zero_terms(b, p, s->dout[0]));
    if (at->gain != 1)
        sum = CALL(b, mul, sum, build_scalar(b, F32, (double)at->gain));
    return make_reshape(b, sum, t->rank, t->dims);
}

/* What the call on numbers has to let through; null: nothing.  The result's scale is operand `scale`. */
static Node *masked(Build *b, const Site *s, const CodesAttr *at, int scale, Node **dx)
{
    Node *dy = s->dout[0], *seen = s->n_out > 1 ? s->dout[1] : NULL;
    const bool learns = s->want[scale] && at->learned, zero = s->want[scale + 1] && at->learned_zero;
    ReverseStop stop = { s->call, scale, false };
    const ReverseResult none = { .stops = &stop, .n_stops = 1 };
    double lo, hi;
    if (s->want[scale] && !at->learned)
        reverse_tell(s, &none);
    if (dy && (learns || zero || at->relu || at->mask != MASK_NONE)) {
        Node *v = quotient_of(b, s), *lifted = at->relu ? CALL(b, relu, v) : v;
        code_limits(s->in[scale + 1]->type->dtype, at->least, at->largest, &lo, &hi);
        Node *r = CALL(b, round, lifted), *z = single(b, s->in[scale + 1]);
        CodeSpot p = code_spot(b, lifted, r, lo, hi, z, at->mask);
        code_spot_learns(b, &p, lo, hi, at->ends, at->learned_zero);
        if (learns)
            dx[scale] = learned_gradient(b, s, at, scale, &p, v);
        if (zero)
            dx[scale + 1] = zero_gradient(b, s, at, scale + 1, &p);
        if (at->relu || at->mask != MASK_NONE)
            dy = code_gradient(b, &p, dy, at->relu, at->relu ? NULL : v);
    } else if (seen && learns) {
        dx[scale] = learned_gradient(b, s, at, scale, NULL, s->y[1]);
    }
    Node *raw = seen ? CALL(b, div, seen, single(b, s->in[scale])) : NULL;
    return dy && raw ? CALL(b, add, dy, raw) : dy ? dy : raw;
}

/* The adjoint of the call on numbers: of its operands number `first` belongs to operand 0, `second` to operand 1, and a
 * bias to operand 2. */
static void pass_on(Build *b, const Site *s, const void *attr, void (*adjoint)(Build *, const Site *, Node **),
                    const int *which, Node **numbers, int n, Node *dy, Node **dx)
{
    Node *din[3] = { NULL };
    bool want[3] = { false };
    Site call = *s;
    for (int i = 0; i < n; i++)
        want[i] = s->want[which[i]];
    call.attr = attr;
    call.n_in = n;
    call.in = numbers;
    call.n_out = 1;
    call.dout = &dy;
    call.want = want;
    call.type = dy->type;
    adjoint(b, &call, din);
    for (int i = 0; i < n; i++)
        dx[which[i]] = din[i];
}

void adjoint_qconv(Build *b, const Site *s, Node **dx)
{
    static const int which[] = { QCONV_X, QCONV_W, QCONV_BIAS };
    const QconvAttr *at = s->attr;
    Node *dy = site_in(s, QCONV_Y_SCALE) ? masked(b, s, &at->codes, QCONV_Y_SCALE, dx) : s->dout[0];
    const Type *w = s->in[QCONV_W]->type;
    int64_t dims[MAX_RANK] = { w->dims[0] };
    for (int i = 1; i < w->rank; i++)
        dims[i] = 1;
    if (!dy)
        return;
    ConvAttr conv = { .window = at->conv.window, .group = at->conv.group };
    Node *in[] = { numbers(b, s, QCONV_X), numbers_of(b, s, QCONV_W, w->rank, dims), site_in(s, QCONV_BIAS) };
    pass_on(b, s, &conv, adjoint_conv, which, in, in[2] ? 3 : 2, dy, dx);
}

/* The numbers of a factor: its scale may be one for each row (of the left one) or column, or of every matrix. */
static Node *factor_numbers(Build *b, const Site *s, int x, bool last)
{
    const Type *t = s->in[x]->type;
    int64_t dims[MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->rank > 1 && i == t->rank - (last ? 1 : 2) ? t->dims[i] : 1;
    Node *part[2];
    for (int i = 0; i < 2; i++) {
        Node *p = s->in[x + 1 + i];
        part[i] = p->type->rank > 1 ? build_cast(b, p, F32) : raised(b, p, t->rank, dims);
    }
    return CALL(b, mul, CALL(b, sub, build_cast(b, s->in[x], F32), part[1]), part[0]);
}

void adjoint_qmatmul(Build *b, const Site *s, Node **dx)
{
    static const int which[] = { QMATMUL_A, QMATMUL_B };
    const QmatmulAttr *at = s->attr;
    const MatmulAttr product = { .ta = at->transpose_a, .tb = at->transpose_b };
    Node *dy = site_in(s, QMATMUL_Y_SCALE) ? masked(b, s, &at->codes, QMATMUL_Y_SCALE, dx) : s->dout[0];
    if (!dy)
        return;
    Node *in[] = { factor_numbers(b, s, QMATMUL_A, at->transpose_a),
                   factor_numbers(b, s, QMATMUL_B, !at->transpose_b) };
    pass_on(b, s, &product, adjoint_matmul, which, in, 2, dy, dx);
    if (site_in(s, QMATMUL_BIAS) && s->want[QMATMUL_BIAS])
        dx[QMATMUL_BIAS] = dy;
}

void adjoint_qadd(Build *b, const Site *s, Node **dx)
{
    Node *dy = masked(b, s, &((const QbinaryAttr *)s->attr)->codes, QBINARY_Y_SCALE, dx);
    dx[QBINARY_A] = dx[QBINARY_B] = dy;
}

void adjoint_qmul(Build *b, const Site *s, Node **dx)
{
    Node *dy = masked(b, s, &((const QbinaryAttr *)s->attr)->codes, QBINARY_Y_SCALE, dx);
    if (dy && s->want[QBINARY_A])
        dx[QBINARY_A] = CALL(b, mul, dy, numbers(b, s, QBINARY_B));
    if (dy && s->want[QBINARY_B])
        dx[QBINARY_B] = CALL(b, mul, dy, numbers(b, s, QBINARY_A));
}

void adjoint_qaverage_pool(Build *b, const Site *s, Node **dx)
{
    static const int which[] = { QPOOL_X };
    const QpoolAttr *at = s->attr;
    Node *dy = masked(b, s, &at->codes, QPOOL_Y_SCALE, dx), *in[] = { s->in[QPOOL_X] };
    if (dy)
        pass_on(b, s, &at->pool, adjoint_average_pool, which, in, 1, dy, dx);
}

void adjoint_qglobal_average_pool(Build *b, const Site *s, Node **dx)
{
    static const int which[] = { QPOOL_X };
    Node *dy = masked(b, s, &((const QglobalAttr *)s->attr)->codes, QPOOL_Y_SCALE, dx), *in[] = { s->in[QPOOL_X] };
    if (dy)
        pass_on(b, s, NULL, adjoint_global_average_pool, which, in, 1, dy, dx);
}
