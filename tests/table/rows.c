/* Every row against a formula of its own, in f64 and by libm, over every storage type, with special values and
 * broadcasting; and the collapsed iteration space against plain index arithmetic. */
#include <math.h>

#include "ops/card/row.h"
#include "ops/machine/space.h"
#include "support/seed.h"
#include "testing.h"

typedef double Formula(double x, double y, double z, double a, double b);

static double python_mod(double x, double y)
{
    const double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static double softplus(double x)
{
    return x > 40 ? x : log1p(exp(x));
}

static double greater(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : x > y ? x : y;
}

static double shifted(double x, double n, bool right)
{
    return n >= 64 ? 0 : right ? (double)((uint64_t)x >> (int)n) : (double)((uint64_t)x << (int)n);
}

/* One by one, which of the levels is nearest. */
static double nearest_level(double number, double kind)
{
    const float x = (float)number, *levels = levels_f32 + (int)kind * LEVELS_MANY;
    const int n = kind < LEVELS_DYNAMIC4 ? LEVELS_MANY : 16;
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x >= levels[i] || x - levels[i - 1] >= 0.5f * (levels[i] - levels[i - 1]))
            best = i;
    return best;
}

static double level(double number, double kind)
{
    return levels_f32[(int)kind * LEVELS_MANY + (int)fmax(0, fmin(255, isnan(number) ? 0 : number))];
}

/* In steps of a bf16: whole ones, and one more where the draw reaches what is missing. */
static double chance_bf16(double number, double draw)
{
    const double x = (double)(float)number, by = draw > 0 && draw < 1 ? floor((double)(float)draw * 65536) / 65536 : 0;
    if (!isfinite(x))
        return x;
    const double step = fabs(x) < 0x1p-126 ? 0x1p-133 : ldexp(1, ilogb(x) - 7);
    return copysign(fmin(floor(fabs(x) / step + by) * step, 0x1.fep127), x);
}

/* Names are those of the rows; a row without a formula here fails. */
#define FORMULAS(_)                                                                                                    \
    _(abs, fabs(x))                                                                                                    \
    _(neg, -x)                                                                                                         \
    _(sign, x > 0 ? 1 : x < 0 ? -1 : x)                                                                                \
    _(ceil, ceil(x))                                                                                                   \
    _(floor, floor(x))                                                                                                 \
    _(round, nearbyint(x))                                                                                             \
    _(sqrt, sqrt(x))                                                                                                   \
    _(reciprocal, 1 / x)                                                                                               \
    _(exp, exp(x))                                                                                                     \
    _(log, log(x))                                                                                                     \
    _(sin, sin(x))                                                                                                     \
    _(cos, cos(x))                                                                                                     \
    _(tan, tan(x))                                                                                                     \
    _(asin, asin(x))                                                                                                   \
    _(acos, acos(x))                                                                                                   \
    _(atan, atan(x))                                                                                                   \
    _(sinh, sinh(x))                                                                                                   \
    _(cosh, cosh(x))                                                                                                   \
    _(tanh, tanh(x))                                                                                                   \
    _(asinh, asinh(x))                                                                                                 \
    _(acosh, acosh(x))                                                                                                 \
    _(atanh, atanh(x))                                                                                                 \
    _(erf, erf(x))                                                                                                     \
    _(sigmoid, 1 / (1 + exp(-x)))                                                                                      \
    _(softplus, softplus(x))                                                                                           \
    _(softsign, x / (1 + fabs(x)))                                                                                     \
    _(relu, isnan(x) ? x : fmax(x, 0))                                                                                 \
    _(leaky_relu, x < 0 ? a * x : x)                                                                                   \
    _(thresholded_relu, x > a || isnan(x) ? x : 0)                                                                     \
    _(elu, x < 0 ? a * (exp(x) - 1) : x)                                                                               \
    _(selu, b *(x > 0 ? x : a * exp(x) - a))                                                                           \
    _(celu, isnan(x) ? x : fmax(0, x) + fmin(0, a * (exp(x / a) - 1)))                                                 \
    _(hard_sigmoid, isnan(x) ? x : fmax(0, fmin(1, a *x + b)))                                                         \
    _(hard_swish, isnan(x) ? x : x *fmax(0, fmin(1, x / 6 + 0.5)))                                                     \
    _(mish, x *tanh(softplus(x)))                                                                                      \
    _(gelu,                                                                                                            \
      a != 0 ? 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * pow(x, 3)))) : 0.5 * x * (1 + erf(x / sqrt(2))))   \
    _(swish, x / (1 + exp(-a * x)))                                                                                    \
    _(shrink, isnan(x) ? x : x<-b ? x + a : x> b ? x - a : 0)                                                          \
    _(bitwise_not, (double)~(int64_t)x)                                                                                \
    _(nearest_level, nearest_level(x, a))                                                                              \
    _(level, level(x, a))                                                                                              \
    _(stochastic_bf16, chance_bf16(x, y))                                                                              \
    _(straight, x)                                                                                                     \
    _(add, x + y)                                                                                                      \
    _(sub, x - y)                                                                                                      \
    _(mul, x *y)                                                                                                       \
    _(div, x / y)                                                                                                      \
    _(mod, a != 0 ? fmod(x, y) : python_mod(x, y))                                                                     \
    _(pow, pow(x, y))                                                                                                  \
    _(p_relu, x < 0 ? y * x : x)                                                                                       \
    _(bitwise_and, (double)((int64_t)x & (int64_t)y))                                                                  \
    _(bitwise_or, (double)((int64_t)x | (int64_t)y))                                                                   \
    _(bitwise_xor, (double)((int64_t)x ^ (int64_t)y))                                                                  \
    _(bit_shift, shifted(x, y, a != 0))                                                                                \
    _(clip, x<y ? (y > z ? z : y) : x> z ? z : x)                                                                      \
    _(where, x != 0 ? y : z)                                                                                           \
    _(max, greater(x, y))                                                                                              \
    _(min, -greater(-x, -y))                                                                                           \
    _(sum, x + y)                                                                                                      \
    _(is_nan, isnan(x) != 0)                                                                                           \
    _(is_inf, isinf(x) && (x < 0 ? a : b) != 0)                                                                        \
    _(not, x == 0)                                                                                                     \
    _(and, x *y != 0)                                                                                                  \
    _(or, x + y != 0)                                                                                                  \
    _(xor, x != y)                                                                                                     \
    _(equal, x == y)                                                                                                   \
    _(less, x < y)                                                                                                     \
    _(less_or_equal, x <= y)                                                                                           \
    _(greater, x > y)                                                                                                  \
    _(greater_or_equal, x >= y)

#define FORMULA(name, expression)                                                                                      \
    static double formula_##name(double x, double y, double z, double a, double b)                                     \
    {                                                                                                                  \
        (void)x, (void)y, (void)z, (void)a, (void)b;                                                                   \
        return expression;                                                                                             \
    }
FORMULAS(FORMULA)
#define ENTRY(name, expression) [ROW_##name] = formula_##name,
static Formula *const formulas[ROW_COUNT] = { FORMULAS(ENTRY) };

/* How far a result may lie from the formula, relative to its size, and near zero. */
static const struct {
    DType dtype;
    double relative, absolute;
} tolerances[] = {
    { F64, 1e-12, 1e-300 },
    { F32, 2e-6, 1e-43 },
    { F16, 0.001, 1e-7 },
    { BF16, 0.008, 1e-39 },
    { F8E4M3, 0.07, 0.001 },
    { F8E5M2, 0.13, 1.6e-5 },
    { F8E4M3FNUZ, 0.07, 0.001 },
    { F8E5M2FNUZ, 0.13, 8e-6 },
    { F4E2M1, 0.34, 0.26 },
    { F6E2M3, 0.07, 0.07 },
    { F6E3M2, 0.13, 0.04 },
    { F8E8M0, 1.01, 1e-37 },
    { I8, 0, 0 },
    { U8, 0, 0 },
    { I16, 0, 0 },
    { U16, 0, 0 },
    { I32, 0, 0 },
    { U32, 0, 0 },
    { I64, 0, 0 },
    { U64, 0, 0 },
    { BOOL, 0, 0 },
    { I4, 0, 0 },
    { U4, 0, 0 },
    { I2, 0, 0 },
    { U2, 0, 0 },
};

/* Special values, then random ones; exponents and shift counts stay small. */
static void fill(Tensor *t, Rng *rng, int operand, bool gentle)
{
    static const double special[] = { 0, -0.0, 1, -1, 0.5, -0.5, INFINITY, -INFINITY, NAN, 2.5, 3e38, -3e38, 1e-40 };
    const int64_t n = tensor_elements(t);
    const DType d = t->type->dtype;
    const double span = dtype_bits(d) > 4 ? 100 : dtype_bits(d) > 2 ? 7 : 1;
    for (int64_t i = 0; i < n; i++) {
        if (!dtype_is_float(d))
            tensor_set_i64(t, i,
                           d == BOOL ? rng_range(rng, 0, 1)
                                     : rng_range(rng, dtype_class(d) == CLASS_UINT || gentle ? 0 : (int64_t)-span,
                                                 gentle ? (int64_t)fmin(span, operand ? 4 : 9) : (int64_t)span));
        else if (!gentle && rng_below(rng, 4) == 0)
            tensor_set_f64(t, i, special[rng_below(rng, COUNT(special))]);
        else
            tensor_set_f64(t, i, (rng_unit(rng) - (gentle ? 0 : 0.5)) * 12);
    }
}

/* The element that broadcasting reads for result element `at`. */
static int64_t source(const Type *operand, const Type *result, int64_t at)
{
    int64_t offset = 0, step = 1;
    for (int d = result->rank - 1, k = operand->rank - 1; d >= 0; d--, k--) {
        const int64_t c = at % result->dims[d];
        at /= result->dims[d];
        if (k >= 0) {
            offset += operand->dims[k] == 1 ? 0 : c * step;
            step *= operand->dims[k];
        }
    }
    return offset;
}

typedef struct Trial {
    Context *c;
    const OpDef *def;
    Op op;
    int dtype, shape; /* indices */
    int64_t checked;
    int bad;
} Trial;

/* Result first, then three operands. */
static const struct {
    int rank[4];
    int64_t dims[4][5];
} shapes[] = {
    { { 1, 1, 1, 1 }, { { 1500 }, { 1500 }, { 1500 }, { 1500 } } },
    { { 0, 0, 0, 0 }, { { 0 } } },
    { { 3, 3, 0, 1 }, { { 5, 3, 7 }, { 5, 3, 7 }, { 0 }, { 7 } } },
    { { 4, 4, 3, 4 }, { { 4, 3, 2, 9 }, { 4, 3, 2, 9 }, { 3, 1, 9 }, { 4, 1, 2, 1 } } },
    { { 5, 5, 4, 2 }, { { 2, 3, 2, 3, 2 }, { 2, 3, 2, 3, 2 }, { 3, 1, 3, 1 }, { 3, 1 } } },
    { { 2, 2, 2, 2 }, { { 0, 4 }, { 0, 4 }, { 1, 4 }, { 0, 1 } } },
};

static double as_number(const Tensor *t, int64_t i)
{
    return dtype_is_float(t->type->dtype) ? tensor_get_f64(t, i) : (double)tensor_get_i64(t, i);
}

static void put(Tensor *t, double v)
{
    if (dtype_is_float(t->type->dtype))
        tensor_set_f64(t, 0, v);
    else if (t->type->dtype == U64)
        *(uint64_t *)t->data = v < 0 ? (uint64_t)(int64_t)v : q_u64(v);
    else
        tensor_set_i64(t, 0, q_i64(v));
}

/* Sums of operands are as exact as their terms. */
static double cancellation(const Trial *t, const double *v)
{
    enum { LARGE = 16 };
    double size = 1;
    for (int j = 0; j < 3; j++)
        size = isfinite(v[j]) ? fmax(size, fmin(fabs(v[j]), LARGE)) : size;
    return size * (tolerances[t->dtype].dtype == F64 ? 1e-15 : 5e-7);
}

/* Whether got[i] is what the formula says: the stored formula itself, or near it. */
static bool fits(Trial *t, const Tensor *got, int64_t i, double want, const double *v)
{
    Tensor *stored = tensor_new(&t->c->arena, type_scalar(&t->c->ir.types, got->type->dtype));
    const double g = as_number(got, i);
    put(stored, want);
    const double s = as_number(stored, 0);
    if (g == s || (isnan(g) && isnan(s)))
        return true;
    if (!dtype_is_float(got->type->dtype))
        return false;
    /* next to the largest number a result may fall on either side */
    const double near =
        tolerances[t->dtype].relative * fmax(fabs(want), fabs(s)) + tolerances[t->dtype].absolute + cancellation(t, v);
    return fabs(g - want) <= near || fabs(g - s) <= near;
}

static bool is_undefined(const Trial *t, double y)
{
    const int row = t->def->row->number;
    return (row == ROW_div || row == ROW_mod) && y == 0 && !dtype_is_float(tolerances[t->dtype].dtype);
}

static void compare(Trial *t, const Tensor *got, Tensor *const *in, const double *k)
{
    const Row *row = t->def->row;
    const int64_t n = tensor_elements(got);
    for (int64_t i = 0; i < n; i++) {
        double v[4] = { 0 };
        for (int j = 0; j < 3; j++)
            v[j] = in[j] ? as_number(in[j], source(in[j]->type, got->type, i)) : row_absent(j);
        double want = formulas[row->number](v[0], v[1], v[2], k[0], k[1]);
        if (row->fold)
            want = formulas[row->number](want, v[2], 0, k[0], k[1]);
        if (is_undefined(t, v[1]))
            continue;
        t->checked++;
        if (fits(t, got, i, want, v) || t->bad++ > 20)
            continue;
        print_error("%s over %s, shape %d: (%g, %g, %g; %g, %g) gives %.9g, not %.9g\n", t->def->name,
                    dtype_name(tolerances[t->dtype].dtype), t->shape, v[0], v[1], v[2], k[0], k[1], as_number(got, i),
                    want);
    }
}

static bool gentle(const Row *row)
{
    return row->number == ROW_pow || row->number == ROW_bit_shift;
}

/* One call, on inputs (so that nothing is folded away). */
static Status call(void *arg)
{
    Trial *t = arg;
    Context *c = t->c;
    const Row *row = t->def->row;
    const int n = row->fold ? 3 : row->n;
    Rng rng = { seed_of(t->def->name, (uint64_t)t->dtype << 8 | (uint64_t)t->shape) };
    Graph *g = graph_new(&c->ir, &c->arena, "f");
    Build b = build_at_end(g);
    Node *nodes[3] = { NULL };
    Tensor *in[3] = { NULL };
    const Tensor *arguments[3];
    int given = 0;
    for (int i = 0; i < n; i++) {
        const DType d = i < row->lead ? BOOL : tolerances[t->dtype].dtype;
        const bool bound = i >= t->def->min_in && !row->fold;
        const int rank = bound ? 0 : shapes[t->shape].rank[i + 1];
        const Type *type = type_tensor(&c->ir.types, d, rank, shapes[t->shape].dims[i + 1]);
        if (bound && rng_below(&rng, 3) == 0)
            continue;
        in[i] = tensor_new(&c->arena, type);
        fill(in[i], &rng, i, gentle(row) || bound);
        nodes[i] = graph_input(g, NULL, type);
        arguments[given++] = in[i];
    }
    void *attr = attrs_default(&c->arena, t->def->attrs);
    for (const AttrSpec *s = t->def->attrs; s && s->kind != ATTR_END; s++) {
        if (s->kind == ATTR_FLOAT && t->shape % 2)
            *(float *)attr_at(s, attr) = (float)(0.25 + rng_unit(&rng));
        if (s->kind == ATTR_BOOL)
            *(bool *)attr_at(s, attr) = rng_below(&rng, 2);
        if (s->kind == ATTR_ENUM)
            *(int *)attr_at(s, attr) = t->shape % 2;
    }
    double k[ROW_SCALARS];
    row_scalars(t->def->attrs, attr, k);
    Node *y = build_node(&b, t->op, attr, n, nodes);
    TRY(b.status);
    graph_return(g, 1, &y, NULL);
    Tensor *got;
    TRY(evaluate(g, NULL, &c->heap, arguments, &got));
    compare(t, got, in, k);
    tensor_drop(&c->heap, got);
    return OK;
}

static bool takes(const Row *row, DType d)
{
    const DTypeClass class = dtype_class(d);
    return class == CLASS_FLOAT  ? row->kinds & ROW_F
           : class == CLASS_BOOL ? row->kinds & ROW_B
           : d == U64            ? row->kinds & (ROW_U | ROW_R)
                                 : row->kinds & (ROW_I | ROW_R);
}

static void rows_follow_their_formulas(void **state)
{
    (void)state;
    int64_t checked = 0;
    int bad = 0, rows = 0;
    for (size_t op = 0; op < ops_table.n; op++) {
        Trial t = { .def = ops_table.defs[op], .op = (Op)op };
        if (!t.def->row)
            continue;
        rows++;
        assert_non_null(formulas[t.def->row->number]);
        for (t.dtype = 0; t.dtype < (int)COUNT(tolerances); t.dtype++) {
            Context c;
            if (!takes(t.def->row, tolerances[t.dtype].dtype))
                continue;
            context_open(&c);
            t.c = &c;
            for (t.shape = 0; t.shape < (int)COUNT(shapes); t.shape++)
                if (guarded(&c.memory, call, &t) != OK)
                    print_error("%s: %s\n", t.def->name, c.last ? c.last : "fails"), bad++;
            context_close(&c);
        }
        checked += t.checked;
        bad += t.bad;
    }
    print_message("%d rows, %lld elements\n", rows, (long long)checked);
    assert_true(rows > 0 && checked > 0);
    assert_int_equal(bad, 0);
}

/* ---- iteration spaces ---- */

static Status spaces_hold(void *arg)
{
    Context *c = arg;
    Rng rng = { 3 };
    for (int trial = 0; trial < 400; trial++) {
        int64_t dims[MAX_RANK], own[3][MAX_RANK], strides[3][MAX_RANK];
        const Type *types[3];
        const int rank = (int)rng_below(&rng, 7);
        for (int d = 0; d < rank; d++)
            dims[d] = rng_range(&rng, 1, 4);
        for (int i = 0; i < 3; i++) {
            const int drop = (int)rng_below(&rng, rank + 1);
            for (int d = drop; d < rank; d++)
                own[i][d - drop] = rng_below(&rng, 2) ? 1 : dims[d];
            types[i] = type_tensor(&c->ir.types, F32, rank - drop, own[i]);
        }
        const Type *result = type_tensor(&c->ir.types, F32, rank, dims);
        Space s;
        space_open(&s, result, 3, types, strides);
        int64_t from[4096], to[4096];
        for (int64_t k = 0; k < 4096; k++)
            from[k] = k;
        for (int i = 0; i < 3; i++) {
            const int64_t at = rng_below(&rng, s.total), n = s.total - at;
            space_gather(&s, i, from, sizeof *from, at, n, to);
            for (int64_t k = 0; k < n; k++)
                assert_int_equal(to[k], source(types[i], result, at + k));
            if (space_is_dense(&s, i))
                assert_int_equal(type_elements(types[i]), s.total);
            if (space_is_fixed(&s, i))
                assert_int_equal(type_elements(types[i]), 1);
        }
        for (int d = 0; d + 1 < s.rank; d++)
            assert_true(s.dims[d] > 1);
    }
    return OK;
}

static void spaces_collapse(void **state)
{
    (void)state;
    with_context(spaces_hold);
}

/* Of numbers of bf16, a NaN among them, a row that says so gives numbers of bf16, bit by bit. */
static void operands_need_no_rounding(void **state)
{
    static const u16 of[] = { 0,      0x8000, 1,      0x807f, 0x3f80, 0xbf80, 0x3f81,
                              0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0xff81, 0x4049 };
    int rows = 0;
    (void)state;
    for (size_t op = 0; op < ops_table.n; op++) {
        const OpDef *def = ops_table.defs[op];
        if (!def->gives_operand)
            continue;
        RowLoop *loop = kernels_row(kernels_best(), def->row->number, ARITH_F32);
        rows++;
        for (size_t i = 0; i < COUNT(of) * COUNT(of) * COUNT(of); i++) {
            f32 x = bf16_to_f32(of[i % COUNT(of)]), y = bf16_to_f32(of[i / COUNT(of) % COUNT(of)]),
                z = bf16_to_f32(of[i / COUNT(of) / COUNT(of)]), r, rounded;
            x = def->row->lead ? (f32)(i % 2) : x;
            loop(1, &r, &x, &y, &z, (const double[ROW_SCALARS]){ 0 });
            kernels_round_bf16(kernels_best(), 1, &r, &rounded);
            if (memcmp(&r, &rounded, sizeof r) != 0)
                print_error("%s gives %a, which is no bf16\n", def->name, (double)r);
            assert_memory_equal(&r, &rounded, sizeof r);
        }
    }
    assert_int_equal(rows, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_need_no_rounding),
        cmocka_unit_test(rows_follow_their_formulas),
        cmocka_unit_test(spaces_collapse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
