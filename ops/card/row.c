#include "ops/card/row.h"

#include <math.h>

#include "ops/card/cards.h"

static bool is_tensor(const Type *t)
{
    return t && t->kind == TYPE_TENSOR;
}

/* The operands that enter the arithmetic: all from the lead on.  Integers and floats meet in f64 where the result is
 * an integer. */
Arithmetic row_arithmetic(const Row *row, int n_in, const Type *const *in)
{
    const DType lead = in[row->lead]->dtype;
    bool f64 = lead == F64, floats = false;
    for (int i = row->lead; i < n_in; i++) {
        if (is_tensor(in[i])) {
            floats |= dtype_is_float(in[i]->dtype);
            f64 |= in[i]->dtype == F64;
        }
    }
    const bool mixed = !dtype_is_float(lead) && (floats || (row->kinds & ROW_R));
    if (f64 || mixed)
        return ARITH_F64;
    return floats ? ARITH_F32 : lead == U64 ? ARITH_U64 : ARITH_I64;
}

void row_scalars(const AttrSpec *attrs, const void *attr, double k[ROW_SCALARS])
{
    int n = 0;
    for (int i = 0; i < ROW_SCALARS; i++)
        k[i] = 0;
    for (const AttrSpec *s = attrs; s && s->kind != ATTR_END && n < ROW_SCALARS; s++, n++) {
        const void *at = attr_at(s, attr);
        switch (s->kind) {
        case ATTR_FLOAT:
            k[n] = (double)*(const float *)at;
            break;
        case ATTR_INT:
            k[n] = (double)*(const int64_t *)at;
            break;
        case ATTR_BOOL:
            k[n] = *(const bool *)at;
            break;
        case ATTR_ENUM:
            k[n] = *(const int *)at;
            break;
        default:
            DEBUG_IF(true);
        }
    }
}

bool row_is_costly(const Row *row)
{
    static const bool costly[ROW_COUNT] = {
        [ROW_exp] = true,     [ROW_log] = true,      [ROW_sin] = true,   [ROW_cos] = true,   [ROW_tan] = true,
        [ROW_asin] = true,    [ROW_acos] = true,     [ROW_atan] = true,  [ROW_sinh] = true,  [ROW_cosh] = true,
        [ROW_tanh] = true,    [ROW_asinh] = true,    [ROW_acosh] = true, [ROW_atanh] = true, [ROW_erf] = true,
        [ROW_sigmoid] = true, [ROW_softplus] = true, [ROW_elu] = true,   [ROW_selu] = true,  [ROW_celu] = true,
        [ROW_mish] = true,    [ROW_gelu] = true,     [ROW_swish] = true, [ROW_pow] = true,
    };
    return costly[row->number];
}

double row_absent(int i)
{
    return i == 1 ? -INFINITY : INFINITY;
}

/* Whether the row has an arithmetic for elements of this type. */
static bool takes(const Row *row, DType d)
{
    switch (dtype_class(d)) {
    case CLASS_FLOAT:
        return row->kinds & ROW_F;
    case CLASS_BOOL:
        return row->kinds & ROW_B;
    case CLASS_INT:
        return row->kinds & (ROW_I | ROW_R);
    case CLASS_UINT:
        return row->kinds & (ROW_R | (d == U64 ? ROW_U : ROW_I));
    case CLASS_STRING:
        return row->kinds & ROW_S;
    }
    return false;
}

const Type *infer_row(Infer *q)
{
    const Row *row = q->def->row;
    const Type *lead = infer_tensor(q, row->lead);
    if (!lead)
        return NULL;
    if (!takes(row, lead->dtype))
        return infer_fail(q, "does not take %s", dtype_name(lead->dtype));
    for (int i = row->lead; i < q->n_in; i++)
        if (is_tensor(q->in[i]) && q->in[i]->dtype != lead->dtype && !(q->def->amp.wide >> i & 1))
            return infer_fail(q, "operands differ in element type: %s and %s", dtype_name(lead->dtype),
                              dtype_name(q->in[i]->dtype));
    return infer_broadcast(q, 0, row->test ? BOOL : lead->dtype);
}

/* ---- samples ---- */

static void random_attrs(const AttrSpec *attrs, void *attr, Rng *rng)
{
    for (const AttrSpec *s = attrs; s && s->kind != ATTR_END; s++) {
        void *at = attr_at(s, attr);
        int choices = 0;
        while (s->choices && s->choices[choices])
            choices++;
        switch (s->kind) {
        case ATTR_FLOAT:
            if (rng_below(rng, 2))
                *(float *)at = (float)(0.25 + rng_unit(rng));
            break;
        case ATTR_BOOL:
            *(bool *)at = rng_below(rng, 2);
            break;
        case ATTR_ENUM:
            *(int *)at = (int)rng_below(rng, choices);
            break;
        default:
            break;
        }
    }
}

static DType sample_dtype(const Row *row, int variant)
{
    static const DType types[] = {
        F32, F16, I32, F64, BF16, U8, I64, U64, BOOL, I8, F32, U32, F8E4M3, I16, F8E5M2, U16
    };
    for (int i = variant;; i++)
        if (takes(row, types[i % (int)COUNT(types)]))
            return types[i % (int)COUNT(types)];
}

Node *sample_row(Build *b, Rng *rng, int variant, Op op, double lo, double hi)
{
    const OpDef *def = b->graph->ir->ops->defs[op];
    const Row *row = def->row;
    const DType dtype = sample_dtype(row, variant);
    const int n = row->fold ? 1 + variant % 6 : row->n, rank = variant % 6;
    int64_t dims[MAX_RANK], own[MAX_RANK];
    Node *in[6];
    sample_dims(rng, rank, 5, dims);
    if (variant % 7 == 6 && rank > 0)
        dims[rank - 1] = 1000 + rng_below(rng, 600);
    const bool whole = !dtype_is_float(dtype);
    for (int i = 0; i < n; i++) {
        /* the first operand keeps the shape, the others may be broadcast to it */
        const int drop = i > 0 && variant % 3 == 1 && rank > 0 ? (int)rng_below(rng, rank + 1) : 0;
        for (int d = drop; d < rank; d++)
            own[d - drop] = i > 0 && variant % 2 && dims[d] != 0 && rng_below(rng, 2) ? 1 : dims[d];
        const DType of = i < row->lead ? BOOL : dtype;
        const bool bound = i >= def->min_in && !row->fold; /* optional operands are single numbers */
        in[i] = NULL;
        if (bound && rng_below(rng, 3) == 0)
            continue;
        in[i] =
            sample_tensor(b, rng, of, bound ? 0 : rank - drop, own, whole ? 0 : lo, whole ? (of == BOOL ? 1 : 9) : hi);
    }
    void *attr = attrs_default(b->graph->arena, def->attrs);
    random_attrs(def->attrs, attr, rng);
    return build_node(b, op, attr, n, in);
}
