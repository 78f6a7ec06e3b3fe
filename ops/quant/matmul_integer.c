/* matmul_integer, qlinear_matmul and qmatmul: products of codes, accumulated in 32 bits. */
#include "ops/kernels/panel.h"
#include "ops/quant/codes_kernels.h"
#include "ops/quant/matmul_codes.h"

static const AttrSpec matmul_integer_attrs[] = {
    ATTR_OURS(MatmulIntegerAttr, ta, BOOL, false),
    ATTR_OURS(MatmulIntegerAttr, tb, BOOL, false),
    ATTR_LAST,
};

static const AttrSpec qmatmul_attrs[] = {
    ATTR(QmatmulAttr, transpose_a, BOOL, false),
    ATTR(QmatmulAttr, transpose_b, BOOL, false),
    CODES_ATTRS(QmatmulAttr),
    ATTR_LAST,
};

/* The operands of qlinear_matmul and qmatmul. */
enum {
    A = QMATMUL_A,
    A_SCALE = QMATMUL_A_SCALE,
    A_ZERO = QMATMUL_A_ZERO,
    B = QMATMUL_B,
    B_SCALE = QMATMUL_B_SCALE,
    B_ZERO = QMATMUL_B_ZERO,
    Y_SCALE = QMATMUL_Y_SCALE,
    Y_ZERO = QMATMUL_Y_ZERO,
    BIAS = QMATMUL_BIAS,
};

static const Factors qlinear_factors = { .a = A, .a_zero = A_ZERO, .b = B, .b_zero = B_ZERO };

static Factors integer_factors(const void *attr)
{
    const MatmulIntegerAttr *at = attr;
    return (Factors){ .a = 0, .a_zero = 2, .b = 1, .b_zero = 3, .ta = at->ta, .tb = at->tb };
}

static Factors qmatmul_factors(const void *attr)
{
    Factors f = qlinear_factors;
    f.ta = ((const QmatmulAttr *)attr)->transpose_a;
    f.tb = ((const QmatmulAttr *)attr)->transpose_b;
    return f;
}

static const Type *infer_matmul_integer(Infer *q)
{
    const Factors f = integer_factors(q->attr);
    if (!infer_codes(q, 0, CODES_8) || !infer_codes(q, 1, CODES_8))
        return NULL;
    for (int i = 2; i < 4; i++)
        if (infer_has(q, i) && (!infer_lanes(q, i, &f, i == 2) || !infer_zero_type(q, i - 2, i)))
            return NULL;
    return infer_product(q, &f, I32);
}

static Stack stack_of(Eval *e, const Factors *f)
{
    return stack_of_products(e->in[f->a]->type, e->in[f->b]->type, eval_type(e, 0), f->ta, f->tb);
}

static Status eval_matmul_integer(Eval *e)
{
    const Factors f = integer_factors(e->attr);
    const Stack s = stack_of(e, &f);
    multiply_factors(e, &f, &s, &(const SumTaker){ sums_keep, eval_out(e, 0) });
    return OK;
}

/* The operands before the result's scale. */
static bool infer_both(Infer *q, const Factors *f, CodeKinds kinds)
{
    return infer_codes(q, A, kinds) && infer_codes(q, B, kinds) && infer_lanes(q, A_SCALE, f, true) &&
           infer_lanes(q, A_ZERO, f, true) && infer_lanes(q, B_SCALE, f, false) && infer_lanes(q, B_ZERO, f, false) &&
           infer_zero_type(q, A, A_ZERO) && infer_zero_type(q, B, B_ZERO);
}

static const Type *infer_qlinear_matmul(Infer *q)
{
    if (!infer_both(q, &qlinear_factors, CODES_F8) || !infer_codes(q, Y_ZERO, CODES_F8) ||
        !infer_single(q, Y_SCALE, A_SCALE) || !infer_single(q, Y_ZERO, Y_ZERO))
        return NULL;
    const DType scale = q->in[A_SCALE]->dtype;
    if (scale != F32 && scale != F16 && scale != BF16)
        return infer_fail(q, "cannot have scales of %s", dtype_name(scale));
    if (q->in[B_SCALE]->dtype != scale)
        return infer_fail(q, "has scales of %s and of %s", dtype_name(scale), dtype_name(q->in[B_SCALE]->dtype));
    return infer_product(q, &qlinear_factors, q->in[Y_ZERO]->dtype);
}

static bool check_bias(Infer *q, const Type *y)
{
    const Type *b = infer_tensor(q, BIAS);
    if (!b)
        return false;
    const int64_t n = type_elements(b), columns = y->rank > 0 && q->in[B]->rank != 1 ? y->dims[y->rank - 1] : 1;
    const bool fits = n == 1 || b->rank < 0 || y->rank < 0 ||
                      (b->rank == 1 && (b->dims[0] < 0 || columns < 0 || b->dims[0] == columns));
    if (!fits)
        infer_fail(q, "operand %d, %s, is neither one number nor one a column", BIAS, type_text(q->scratch, b));
    else if (b->dtype != I32 && (b->dtype != F32 || infer_has(q, Y_SCALE)))
        infer_fail(q, "cannot have a bias of %s", dtype_name(b->dtype));
    else
        return true;
    return false;
}

static const Type *infer_qmatmul(Infer *q)
{
    const Factors f = qmatmul_factors(q->attr);
    const bool codes = infer_has(q, Y_SCALE);
    if (!infer_both(q, &f, CODES_16))
        return NULL;
    if (codes != infer_has(q, Y_ZERO))
        return infer_fail(q, "has a scale or a zero point of the result without the other");
    if (codes &&
        (!infer_codes(q, Y_ZERO, CODES_16) || !infer_single(q, Y_SCALE, A_SCALE) || !infer_single(q, Y_ZERO, Y_ZERO)))
        return NULL;
    if (q->in[A_SCALE]->dtype != F32 || q->in[B_SCALE]->dtype != F32)
        return infer_fail(q, "wants scales of f32");
    const Type *y = infer_product(q, &f, codes ? q->in[Y_ZERO]->dtype : F32);
    if (!y || (infer_has(q, BIAS) && !check_bias(q, y)))
        return NULL;
    if (codes)
        return infer_codes_out(q, &((const QmatmulAttr *)q->attr)->codes, Y_ZERO, y);
    return q->n_out == 1 ? y : infer_fail(q, "gives numbers, which have no quotient");
}

/* f8 codes are numbers: rows of their products, as of any product of f32. */
static void multiply_f8(Eval *e, const Rescaled *r)
{
    const Stack *s = r->s;
    const f32 *a = centred_factor(e, &qlinear_factors, true);
    const f32 *b = centred_factor(e, &qlinear_factors, false);
    const size_t n = (size_t)s->n, k = (size_t)s->k;
    const Panel row = { .m = 1, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n };
    f32 *out = eval_room(e, n, sizeof *out), *room = eval_room(e, panel_room(&row), sizeof *room);
    for (int64_t item = 0; item < s->batches * s->m; item++) {
        int64_t ma, mb;
        stack_batch(s, item / s->m, &ma, &mb);
        panel_f32(e->kernels, &row, a + (ma * s->m + item % s->m) * s->k, b + mb * s->k * s->n, out, room);
        for (int64_t j = 0; j < s->n; j++)
            out[j] *= rescaled_factor(r, ma, mb, item % s->m, j);
        codes_put(&r->out, item * s->n, s->n, out);
    }
}

static Status eval_qlinear_matmul(Eval *e)
{
    const Stack s = stack_of(e, &qlinear_factors);
    Rescaled r = rescaled_open(e, &s);
    r.out = codes_out(e, &(const CodesAttr){ 0 }, Y_ZERO);
    if (dtype_is_float(e->in[A]->type->dtype) || dtype_is_float(e->in[B]->type->dtype))
        multiply_f8(e, &r);
    else
        multiply_factors(e, &qlinear_factors, &s, &(const SumTaker){ rescaled_take, &r });
    return OK;
}

static Status eval_qmatmul(Eval *e)
{
    const Factors f = qmatmul_factors(e->attr);
    const Stack s = stack_of(e, &f);
    Rescaled r = rescaled_open(e, &s);
    if (eval_has(e, Y_SCALE))
        r.out = codes_out(e, &((const QmatmulAttr *)e->attr)->codes, Y_ZERO);
    else
        r.numbers = eval_out_f32(e, 0);
    if (eval_has(e, BIAS)) {
        r.biases = eval_elements(e, BIAS);
        if (e->in[BIAS]->type->dtype == I32)
            r.bias = eval_i32(e, BIAS);
        else
            r.addend = eval_f32(e, BIAS);
    }
    multiply_factors(e, &f, &s, &(const SumTaker){ rescaled_take, &r });
    return OK;
}

static bool kernels_matmul_integer(const Node *n, OwnKernels *to)
{
    const MatmulIntegerAttr *at = n->attr;
    const CodesOperands p = { 0, NO_CODES, 2, 1, NO_CODES, 3, NO_CODES, NO_CODES, NO_CODES, NULL };
    return kernels_codes_product(n, to, &p, at->ta, at->tb);
}

static bool kernels_qlinear_matmul(const Node *n, OwnKernels *to)
{
    static const CodesAttr plain = { 0 };
    const CodesOperands p = { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, NO_CODES, &plain };
    return kernels_codes_product(n, to, &p, false, false);
}

static bool kernels_qmatmul(const Node *n, OwnKernels *to)
{
    const QmatmulAttr *at = n->attr;
    const CodesOperands p = { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, Y_SCALE, Y_ZERO, BIAS, &at->codes };
    return kernels_codes_product(n, to, &p, at->transpose_a, at->transpose_b);
}

static Node *sample_matmul_integer(Build *b, Rng *rng, int variant)
{
    const MatmulIntegerAttr at = { .ta = variant & 16, .tb = variant & 32 };
    const Factors f = integer_factors(&at);
    const DrawnProduct d = draw_product(rng, at.ta, at.tb);
    const DType ta = variant & 1 ? I8 : U8, tb = variant & 2 ? I8 : U8;
    Node *ins[4] = { sample_codes(b, rng, ta, d.ra, d.a), sample_codes(b, rng, tb, d.rb, d.b) };
    if (variant & 4)
        ins[2] = sample_lanes(b, rng, ta, &d, &f, true, true);
    if (variant & 8)
        ins[3] = sample_lanes(b, rng, tb, &d, &f, false, true);
    return build_node(b, OP_matmul_integer, &at, variant & 8 ? 4 : variant & 4 ? 3 : 2, ins);
}

/* Both factors with what belongs to them. */
static void sample_both(Build *b, Rng *rng, const DrawnProduct *d, const Factors *f, const DType *types, Node **ins)
{
    for (int i = 0; i < 2; i++) {
        const bool left = i == 0;
        const DType t = types[i];
        ins[3 * i] = sample_tensor(b, rng, t, left ? d->ra : d->rb, left ? d->a : d->b,
                                   dtype_class(t) == CLASS_UINT ? 0 : -9, 9);
        ins[3 * i + 1] = sample_lanes(b, rng, types[2], d, f, left, false);
        ins[3 * i + 2] = sample_lanes(b, rng, t, d, f, left, true);
    }
}

static Node *sample_qlinear_matmul(Build *b, Rng *rng, int variant)
{
    static const DType codes[] = { U8, I8, F8E4M3, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ };
    static const DType scales[] = { F32, F16, BF16 };
    const DrawnProduct d = draw_product(rng, false, false);
    const DType ta = codes[variant % 6], tb = variant % 5 ? ta : codes[rng_below(rng, 6)];
    const DType ty = variant % 3 ? ta : codes[rng_below(rng, 6)], ts = scales[variant % 3];
    Node *ins[8];
    sample_both(b, rng, &d, &qlinear_factors, (const DType[]){ ta, tb, ts }, ins);
    ins[Y_SCALE] = sample_tensor(b, rng, ts, 0, NULL, 0.5, 2);
    ins[Y_ZERO] = sample_tensor(b, rng, ty, 0, NULL, 0, dtype_is_float(ty) ? 0 : 3);
    return build_node(b, OP_qlinear_matmul, NULL, 8, ins);
}

static Node *sample_qmatmul(Build *b, Rng *rng, int variant)
{
    static const DType codes[] = { U8, I8, U8, I8, U16, I16 };
    const DType ty = codes[rng_below(rng, COUNT(codes))];
    const bool numbers = variant % 4 == 3;
    const QmatmulAttr at = { .transpose_a = variant & 4,
                             .transpose_b = variant & 8,
                             .codes = sample_codes_attr(rng, ty) };
    const DrawnProduct d = draw_product(rng, at.transpose_a, at.transpose_b);
    const Factors f = qmatmul_factors(&at);
    Node *ins[BIAS + 1] = { NULL };
    sample_both(b, rng, &d, &f, (const DType[]){ codes[rng_below(rng, 6)], codes[rng_below(rng, 6)], F32 }, ins);
    if (!numbers)
        ins[Y_SCALE] = sample_tensor(b, rng, F32, 0, NULL, 0.5, 2), ins[Y_ZERO] = sample_zero_point(b, rng, ty);
    const int64_t columns = d.rb > 1 ? d.b[d.rb - (at.transpose_b ? 2 : 1)] : 1;
    const bool floats = numbers && rng_below(rng, 2), bias = rng_below(rng, 2);
    if (bias)
        ins[BIAS] = sample_tensor(b, rng, floats ? F32 : I32, (int)rng_below(rng, 2), &columns, floats ? -2 : -50,
                                  floats ? 2 : 50);
    return build_node_n(b, OP_qmatmul, &at,
                        bias      ? BIAS + 1
                        : numbers ? Y_SCALE
                                  : BIAS,
                        ins, numbers ? 1 : 1 + variant % 2);
}

static bool iterate_matmul_integer(const Node *n, Arena *arena, Iteration *to)
{
    const MatmulIntegerAttr *at = n->attr;
    return iterate_product(n, arena, to, &(MatrixProduct){ .b = 1, .ta = at->ta, .tb = at->tb });
}

static bool iterate_qlinear_matmul(const Node *n, Arena *arena, Iteration *to)
{
    return iterate_product(n, arena, to, &(MatrixProduct){ .b = 3 });
}

/* The quotient lies as the codes do. */
static bool iterate_qmatmul(const Node *n, Arena *arena, Iteration *to)
{
    const QmatmulAttr *at = n->attr;
    if (!iterate_product(n, arena, to, &(MatrixProduct){ .b = B, .ta = at->transpose_a, .tb = at->transpose_b }))
        return false;
    if (to->n_out > 1)
        to->out[1] = to->out[0];
    return true;
}

static double work_factors(const Node *n, const Factors *f)
{
    const Type *y = access_result(n, 0), *a = in(n, f->a)->type, *b = in(n, f->b)->type;
    if (!type_known(y) || !type_known(a) || !type_known(b))
        return 0;
    return (double)type_elements(y) * (double)stack_of_products(a, b, y, f->ta, f->tb).k;
}

static double work_matmul_integer(const Node *n)
{
    const Factors f = integer_factors(n->attr);
    return work_factors(n, &f);
}

static double work_qlinear_matmul(const Node *n)
{
    return work_factors(n, &qlinear_factors);
}

static double work_qmatmul(const Node *n)
{
    const Factors f = qmatmul_factors(n->attr);
    return work_factors(n, &f);
}

const OpDef op_matmul_integer = {
    .name = "matmul_integer",
    .min_in = 2,
    .max_in = 4,
    .attrs = matmul_integer_attrs,
    .infer = infer_matmul_integer,
    .eval = eval_matmul_integer,
    .sample = sample_matmul_integer,
    .n_variants = 64,
    .work = work_matmul_integer,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.kernels = kernels_matmul_integer,
    .access.iterate = iterate_matmul_integer,
    .amp = { AMP_N, AMP_N, 0, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "MatMulInteger", 10, NULL },
};

const OpDef op_qlinear_matmul = {
    .name = "qlinear_matmul",
    .min_in = 8,
    .max_in = 8,
    .infer = infer_qlinear_matmul,
    .eval = eval_qlinear_matmul,
    .sample = sample_qlinear_matmul,
    .n_variants = 30,
    .work = work_qlinear_matmul,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.kernels = kernels_qlinear_matmul,
    .access.iterate = iterate_qlinear_matmul,
    .amp = { AMP_N, AMP_N, 1u << A_SCALE | 1u << B_SCALE | 1u << Y_SCALE, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .onnx = { "QLinearMatMul", 21, NULL },
};

const OpDef op_qmatmul = {
    .name = "qmatmul",
    .min_in = 6,
    .max_in = 9,
    .min_out = 1,
    .max_out = 2,
    .saved = codes_saved,
    .attrs = qmatmul_attrs,
    .infer = infer_qmatmul,
    .eval = eval_qmatmul,
    .sample = sample_qmatmul,
    .n_variants = 96,
    .adjoint = adjoint_qmatmul,
    .differentiable = 1u << A | 1u << B | 1u << Y_SCALE | 1u << Y_ZERO | 1u << BIAS,
    .gives_codes = 1,
    .work = work_qmatmul,
    .weight = 50,
    .access.kind = ACCESS_CONTRACT,
    .access.kernels = kernels_qmatmul,
    .access.iterate = iterate_qmatmul,
    .amp = { AMP_N, AMP_N, 1u << A_SCALE | 1u << B_SCALE | 1u << Y_SCALE | 1u << BIAS, REASON_MEANING, NULL },
    .quant = { .in = { QUANT_NEVER }, .out = { QUANT_NEVER } },
    .brief = "A product of matrices of codes, which gives codes, or numbers where the result has no scale.",
};
