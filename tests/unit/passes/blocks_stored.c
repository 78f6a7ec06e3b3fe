/* Every number of 16 bits, and the middle of every two neighbours of a format with the f32 numbers beside it, as codes with one
 * scale and in the blocks of MX and NVFP4, against stored sums over what ml_dtypes makes of them (tests/data/blocks.py). */
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ops/card/make.h"
#include "ops/quant/float_grid.h"
#include "ops/quant/quantize.h"
#include "passes/lowbit/dynamic_codes.h"
#include "support/calls.h"

enum { WIDE = 64, STEP = 24593, PATTERNS = 1 << 16, MOST = PATTERNS };

typedef struct StoredSum {
    const char *quantizer, *set;
    int n;
    uint64_t sum;
} StoredSum;

#include "data/blocks.h"

/* ---- the sets, as blocks.py makes them ---- */

static int patterns(bool bf16, float *to)
{
    int n = 0;
    for (int i = 0; i < PATTERNS; i++) {
        const float x = bf16 ? bf16_to_f32((uint16_t)i) : f16_to_f32((uint16_t)i);
        if (isfinite(x))
            to[n++] = x;
    }
    return n;
}

static int apart(const float *x, int n, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = x[i * STEP % n];
    return n;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The numbers of a format, in order. */
static int numbers_of(Context *c, DType code, double *to)
{
    Tensor *t = tensor_new(&c->arena, type_vector(&c->ir.types, code, 1));
    int n = 0;
    for (int i = 0; i < 1 << dtype_bits(code); i++) {
        *(uint8_t *)t->data = (uint8_t)i;
        const double v = tensor_get_f64(t, 0);
        if (isfinite(v) && !(v == 0 && signbit(v)))
            to[n++] = v;
    }
    qsort(to, (size_t)n, sizeof *to, by_size);
    return n;
}

static int middles(Context *c, DType code, float *to)
{
    double ends[256];
    float three[3 * 256];
    const int n_ends = numbers_of(c, code, ends);
    int n = 0, k = 0;
    for (int i = 0; i + 1 < n_ends; i++) {
        const float middle = (float)((ends[i] + ends[i + 1]) / 2);
        three[n++] = nextafterf(middle, -INFINITY);
        three[n++] = middle;
        three[n++] = nextafterf(middle, INFINITY);
    }
    for (int i = 0; i < n; i++) {
        if (i % 15 == 0)
            to[k++] = (float)exp2(floor(log2(ends[n_ends - 1])));
        to[k++] = three[i];
    }
    while (k % WIDE)
        to[k++] = 0;
    return k;
}

static int set_of(Context *c, const char *set, DType code, float *to)
{
    static float x[MOST];
    if (strcmp(set, "middles") == 0)
        return middles(c, code, to);
    const bool bf16 = set[0] == 'b', mixed = strchr(set, ' ') != NULL;
    const int n = patterns(bf16, mixed ? x : to);
    return mixed ? apart(x, n, to) : n;
}

/* ---- quantizers ---- */

static DType type_called(const char *text, size_t n)
{
    static const DType types[] = { F8E4M3, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F6E2M3, F6E3M2, F4E2M1 };
    for (size_t i = 0; i < COUNT(types); i++)
        if (strlen(dtype_name(types[i])) == n && strncmp(dtype_name(types[i]), text, n) == 0)
            return types[i];
    return I8;
}

/* "f8e4m3, scale 0.7": quantize_linear and back with that scale. */
static Node *by_one_scale(Build *b, Node *x, DType code, const char *scale)
{
    const QuantizeAttr at = {
        .axis = 1, .output_dtype = (int)code + 1, .saturate = true, .mask = MASK_NONE, .gain = 1
    };
    const DequantizeAttr back = { .axis = 1 };
    Node *s = build_scalar(b, F32, strtod(scale, NULL));
    return CALL_ATTR(b, dequantize_linear, back, CALL_ATTR(b, quantize_linear, at, x, s), s);
}

static Node *in_blocks(Build *b, Node *x, const Quantizer *q)
{
    DynamicCodes of;
    assert_int_equal(dynamic_codes(b, x, q, 1, NULL, &of), OK);
    return of.number;
}

static uint64_t sum_of(const Tensor *t)
{
    uint64_t total = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < tensor_elements(t); i++)
        total = (total ^ bits_of(((const f32 *)t->data)[i])) * 0x100000001b3u;
    return total;
}

static void check(Context *c, const StoredSum *s)
{
    static float x[MOST];
    static const char scale[] = ", scale ";
    Quantizer q = { 0 };
    const char *said = strstr(s->quantizer, scale);
    if (!said)
        assert_int_equal(quantizer_read_one(&q, OPERAND_A, NOWHERE, "here", s->quantizer, &c->arena, &c->diag), OK);
    const DType code = said                       ? type_called(s->quantizer, (size_t)(said - s->quantizer))
                       : quantizer_is_integer(&q) ? F4E2M1
                                                  : quantizer_float_codes(&q);
    const int n = set_of(c, s->set, code, x);
    require(n == s->n, "%s, %s: %d numbers, not %d\n", s->quantizer, s->set, n, s->n);
    Build b = fresh(c);
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, (int64_t[]){ n / WIDE, WIDE }));
    memcpy(t->data, x, (size_t)n * sizeof *x);
    Node *in = build_const(&b, t);
    Node *y = said ? by_one_scale(&b, in, code, said + sizeof scale - 1) : in_blocks(&b, in, &q);
    Tensor *got = value_of(c, y, NULL);
    require(sum_of(got) == s->sum, "%s, %s: numbers are not those of ml_dtypes\n", s->quantizer, s->set);
    tensor_drop(&c->heap, got);
}

static Status every_sum(void *arg)
{
    for (size_t i = 0; i < COUNT(stored_sums); i++)
        check(arg, &stored_sums[i]);
    return OK;
}

static void numbers_are_those_of_ml_dtypes(void **state)
{
    (void)state;
    with_context(every_sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers_are_those_of_ml_dtypes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
