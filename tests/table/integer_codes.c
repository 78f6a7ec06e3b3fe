/* label: slow */
/* Words on codes give the codes that ONNX Runtime gives (tests/data/integer_words.py): every one of ten million a word,
 * half of them on grids where quotients are ties: scales that are powers of two, odd zero points. */
#include "ops/quant/words.h"
#include "support/calls.h"
#include "support/folder.h"
#include "support/oracle.h"

enum { CODES = 10000000, MOST_INS = 9 };

static const char script[] = QCC_SOURCE_DIR "/tests/data/integer_words.py";

/* One call: its operands by the names that the script knows, and a line for each attribute. */
typedef struct Case {
    Context *c;
    Build b;
    Rng rng;
    const char *word;
    int number;
    bool ties;
    int64_t n_ties;
    Node *ins[MOST_INS];
    const char *names[MOST_INS];
    Text lines;
} Case;

static double uniform(Case *k, double lo, double hi)
{
    return lo + (hi - lo) * (double)rng_range(&k->rng, 0, 1 << 20) / (double)(1 << 20);
}

/* A scale near x: a power of two on grids of ties. */
static double near(Case *k, double x)
{
    return k->ties ? exp2(rint(log2(x))) : x * uniform(k, 0.7, 1.4);
}

static void put(Case *k, int i, const char *name, Node *v)
{
    k->ins[i] = v;
    k->names[i] = name;
}

static void put_scale(Case *k, int i, const char *name, double about)
{
    put(k, i, name, build_scalar(&k->b, F32, near(k, about)));
}

/* One for each of n, or one for all. */
static void put_scales(Case *k, int i, const char *name, int64_t n, double about)
{
    Tensor *t = tensor_new(&k->c->arena, type_tensor(&k->c->ir.types, F32, n > 0, &n));
    for (int64_t j = 0; j < tensor_elements(t); j++)
        tensor_set_f64(t, j, near(k, about * uniform(k, 0.5, 2)));
    put(k, i, name, build_const(&k->b, t));
}

static void put_codes(Case *k, int i, const char *name, DType code, double reach, int rank, const int64_t *dims)
{
    double lo, hi;
    code_range(code, &lo, &hi);
    lo = lo < 0 && -lo > reach ? -reach : lo;
    hi = hi > reach ? reach : hi;
    put(k, i, name, sample_tensor(&k->b, &k->rng, code, rank, dims, lo, hi));
}

/* Odd, as ties want it. */
static void put_zero(Case *k, int i, const char *name, DType code, bool none)
{
    const int64_t z = code == U8 ? rng_range(&k->rng, 0, 255) : rng_range(&k->rng, -128, 127);
    put(k, i, name, build_scalar(&k->b, code, none ? 0 : (double)(z | 1)));
}

static void say_ints(Case *k, const char *name, int n, const int64_t *v)
{
    text_printf(&k->lines, "ints %s", name);
    for (int i = 0; i < n; i++)
        text_printf(&k->lines, " %" PRId64, v[i]);
    text_printf(&k->lines, "\n");
}

static void say_int(Case *k, const char *name, int64_t v)
{
    say_ints(k, name, 1, &v);
}

static void write_tensor(Case *k, FILE *data, const char *name, const Tensor *t)
{
    text_printf(&k->lines, "tensor %s %s", name, dtype_name(t->type->dtype));
    for (int i = 0; i < t->type->rank; i++)
        text_printf(&k->lines, " %" PRId64, t->type->dims[i]);
    text_printf(&k->lines, "\n");
    assert_int_equal(fwrite(t->data, 1, t->bytes, data), t->bytes);
}

static FILE *open_file(const Case *k, const char *end)
{
    char name[64];
    snprintf(name, sizeof name, "%s-%03d-%s.%s", k->word, k->number, k->ties ? "tie" : "any", end);
    FILE *f = fopen(in_folder(name), "wb");
    assert_non_null(f);
    return f;
}

/* Of quotients that stand beside a tie so that they round as the sum with the zero point did, too. */
static bool is_tie(double v)
{
    return fabs(fabs(v - rint(v)) - 0.5) < 1e-4;
}

/* Evaluates the call and writes the case; returns how many codes it has. */
static int64_t finish(Case *k, const char *op, Op word, const void *attr, int n)
{
    FILE *data = open_file(k, "bin"), *lines = open_file(k, "case");
    for (int i = 0; i < n; i++)
        if (k->ins[i])
            write_tensor(k, data, k->names[i], constant(k->ins[i]));
    const bool codes = strstr(k->word, "numbers") == NULL;
    const Tensor *both = value_of(k->c, build_node_n(&k->b, word, attr, n, k->ins, 1 + codes), NULL);
    const Tensor *y = codes ? both->items[0] : both;
    write_tensor(k, data, "y", y);
    for (int64_t i = 0; codes && k->ties && i < tensor_elements(y); i++)
        k->n_ties += is_tie(at(both->items[1], i));
    fprintf(lines, "op %s\n%s", op, text_get(&k->lines));
    assert_int_equal(fclose(data), 0);
    assert_int_equal(fclose(lines), 0);
    return tensor_elements(y);
}

/* Every other case has codes near their zero points: then few bits are cut off, and ties are common. */
static double reach_of(const Case *k)
{
    return k->number % 4 < 2 ? 255 : 7;
}

static void put_result(Case *k, int scale, double about, DType code)
{
    put_scale(k, scale, "y_scale", about);
    put_zero(k, scale + 1, "y_zero", code, false);
}

/* ---- the words ---- */

static int64_t case_conv(Case *k)
{
    const bool deep = rng_below(&k->rng, 3) == 0, whole = rng_below(&k->rng, 2);
    const int64_t group = deep ? rng_range(&k->rng, 8, 32) : rng_range(&k->rng, 1, 2);
    const int64_t channels = deep ? 1 : rng_range(&k->rng, 1, 16), results = deep ? 1 : rng_range(&k->rng, 8, 24);
    const int64_t kernel = rng_range(&k->rng, 1, 3), stride = deep ? 1 : rng_range(&k->rng, 1, 2), m = group * results;
    const int64_t dilation = rng_range(&k->rng, 1, 2), pad = rng_range(&k->rng, 0, kernel - 1);
    const int64_t dx[] = { 4, group * channels, 40 * stride, 41 * stride }, dw[] = { m, channels, kernel, kernel };
    const int64_t strides[] = { stride, stride }, dilations[] = { dilation, dilation }, pads[] = { pad, pad, pad, pad };
    const QconvAttr at = {
        .conv = { .window = { .strides = { 2, strides }, .dilations = { 2, dilations }, .pads = { 4, pads } },
                  .group = group },
        .codes = { .gain = 1 }
    };
    const double reach = reach_of(k), spread = reach * (reach < 127 ? reach : 127) / 3;
    put_codes(k, QCONV_X, "a", U8, reach, 4, dx);
    put_scale(k, QCONV_X_SCALE, "a_scale", 0.02);
    put_zero(k, QCONV_X_ZERO, "a_zero", U8, reach < 127);
    put_codes(k, QCONV_W, "b", I8, reach, 4, dw);
    put_scales(k, QCONV_W_SCALE, "b_scale", whole ? 0 : m, 0.01);
    put(k, QCONV_W_ZERO, "b_zero", build_scalar(&k->b, I8, 0));
    put_result(k, QCONV_Y_SCALE, 2e-4 * sqrt((double)(channels * kernel * kernel)) * spread / 40, U8);
    if (rng_below(&k->rng, 2))
        put(k, QCONV_BIAS, "bias", sample_tensor(&k->b, &k->rng, I32, 1, &m, -spread, spread));
    say_int(k, "group", group);
    say_ints(k, "strides", 2, strides);
    say_ints(k, "dilations", 2, dilations);
    say_ints(k, "pads", 4, pads);
    return finish(k, "Conv", OP_qconv, &at, k->ins[QCONV_BIAS] ? QCONV_BIAS + 1 : QCONV_BIAS);
}

/* MatMul, and Gemm with a bias; both also without a quantizer behind them. */
static int64_t case_product(Case *k, bool gemm, bool numbers)
{
    const DType code = !gemm && rng_below(&k->rng, 2) ? I8 : U8;
    const int64_t m = rng_range(&k->rng, 300, 600), n = rng_range(&k->rng, 300, 600),
                  inner = rng_range(&k->rng, 8, 200);
    const QmatmulAttr at = { gemm && rng_below(&k->rng, 2), gemm && rng_below(&k->rng, 2), { .gain = 1 } };
    const int64_t da[] = { at.transpose_a ? inner : m, at.transpose_a ? m : inner };
    const int64_t db[] = { at.transpose_b ? n : inner, at.transpose_b ? inner : n };
    /* Beside signed codes weights have seven bits: without VNNI onnxruntime cuts off two of these products beyond 16. */
    const double reach = reach_of(k), most = code == I8 ? 63 : 127, heights = reach < most ? reach : most;
    const double spread = reach * heights / 3;
    const bool whole = rng_below(&k->rng, 2);
    put_codes(k, QMATMUL_A, "a", code, reach, 2, da);
    put_scale(k, QMATMUL_A_SCALE, "a_scale", 0.02);
    put_zero(k, QMATMUL_A_ZERO, "a_zero", code, reach < 127);
    put_codes(k, QMATMUL_B, "b", I8, heights, 2, db);
    put_scales(k, QMATMUL_B_SCALE, "b_scale", whole ? 0 : n, 0.01);
    put(k, QMATMUL_B_ZERO, "b_zero", build_scalar(&k->b, I8, 0));
    if (!numbers)
        put_result(k, QMATMUL_Y_SCALE, 2e-4 * sqrt((double)inner) * spread / 40, code);
    if (gemm)
        put(k, QMATMUL_BIAS, "bias", sample_tensor(&k->b, &k->rng, I32, 1, &n, -spread, spread));
    say_int(k, "axis", !at.transpose_b);
    if (gemm) {
        say_int(k, "transA", at.transpose_a);
        say_int(k, "transB", at.transpose_b);
    }
    return finish(k, gemm ? "Gemm" : "MatMul", OP_qmatmul, &at, gemm ? QMATMUL_BIAS + 1 : numbers ? 6 : QMATMUL_BIAS);
}

static int64_t case_matmul(Case *k)
{
    return case_product(k, false, false);
}

static int64_t case_gemm(Case *k)
{
    return case_product(k, true, false);
}

static int64_t case_matmul_numbers(Case *k)
{
    return case_product(k, false, true);
}

static int64_t case_gemm_numbers(Case *k)
{
    return case_product(k, true, true);
}

static int64_t case_binary(Case *k, bool product)
{
    const DType code = rng_below(&k->rng, 2) ? U8 : I8;
    const QbinaryAttr at = { .codes = { .gain = 1 } };
    const int64_t dims[] = { 6, rng_range(&k->rng, 100, 200), 3, rng_range(&k->rng, 100, 200) };
    const int broadcast = (int)rng_below(&k->rng, 3); /* the last dimensions alone: of neither, b, a */
    put_codes(k, QBINARY_A, "a", code, 255, broadcast == 2 ? 2 : 4, broadcast == 2 ? dims + 2 : dims);
    put_scale(k, QBINARY_A_SCALE, "a_scale", 0.02);
    put_zero(k, QBINARY_A_ZERO, "a_zero", code, false);
    put_codes(k, QBINARY_B, "b", code, 255, broadcast == 1 ? 1 : 4, broadcast == 1 ? dims + 3 : dims);
    put_scale(k, QBINARY_B_SCALE, "b_scale", 0.03);
    put_zero(k, QBINARY_B_ZERO, "b_zero", code, false);
    put_result(k, QBINARY_Y_SCALE, product ? 0.04 : 0.05, code);
    return finish(k, product ? "Mul" : "Add", product ? OP_qmul : OP_qadd, &at, QBINARY_Y_ZERO + 1);
}

static int64_t case_add(Case *k)
{
    return case_binary(k, false);
}

static int64_t case_mul(Case *k)
{
    return case_binary(k, true);
}

static void put_pooled(Case *k, int rank, const int64_t *dims)
{
    const DType code = rng_below(&k->rng, 2) ? U8 : I8;
    put_codes(k, QPOOL_X, "a", code, 255, rank, dims);
    put_scale(k, QPOOL_X_SCALE, "a_scale", 0.02);
    put_zero(k, QPOOL_X_ZERO, "a_zero", code, false);
    put_result(k, QPOOL_Y_SCALE, 0.015, code);
}

static int64_t case_average(Case *k)
{
    const int64_t kernel = rng_range(&k->rng, 1, 4), stride = rng_range(&k->rng, 1, 2), pad = rng_range(&k->rng, 0, 1);
    const int64_t edge = kernel > 1 ? pad : 0, pads[] = { edge, edge, edge, edge }, kernels[] = { kernel, kernel + 1 };
    const int64_t strides[] = { stride, stride }, dims[] = { 4, 32, 48 * stride, 49 * stride };
    const QpoolAttr at = {
        .pool = { .window = { .kernel_shape = { 2, kernels }, .strides = { 2, strides }, .pads = { 4, pads } },
                  .count_include_pad = rng_below(&k->rng, 2) },
        .codes = { .gain = 1 }
    };
    put_pooled(k, 4, dims);
    say_ints(k, "kernel_shape", 2, kernels);
    say_ints(k, "strides", 2, strides);
    say_ints(k, "pads", 4, pads);
    say_int(k, "count_include_pad", at.pool.count_include_pad);
    return finish(k, "AveragePool", OP_qaverage_pool, &at, QPOOL_Y_ZERO + 1);
}

static int64_t case_global(Case *k)
{
    const int64_t dims[] = { 500, 1000, rng_range(&k->rng, 1, 4), rng_range(&k->rng, 1, 4) };
    const QglobalAttr at = { .codes = { .gain = 1 } };
    put_pooled(k, 4, dims);
    return finish(k, "GlobalAveragePool", OP_qglobal_average_pool, &at, QPOOL_Y_ZERO + 1);
}

typedef struct Word {
    const char *name;
    int64_t (*make)(Case *k);
    bool numbers; /* not rounded to codes */
} Word;

static const Word words[] = {
    { "conv", case_conv },
    { "matmul", case_matmul },
    { "gemm", case_gemm },
    { "matmul-numbers", case_matmul_numbers, true },
    { "gemm-numbers", case_gemm_numbers, true },
    { "add", case_add },
    { "mul", case_mul },
    { "average", case_average },
    { "global", case_global },
};

/* One case in a context of its own, since many together are large. */
typedef struct Job {
    const Word *word;
    Context c;
    int number;
    int64_t codes[2], ties; /* on grids of any scales and of ties; how many of these are some */
} Job;

static Status make_case(void *arg)
{
    Job *j = arg;
    Case k = { .c = &j->c, .rng = { 90 + (uint64_t)j->number }, .word = j->word->name, .number = j->number };
    k.ties = j->number % 2;
    k.b = fresh(&j->c);
    text_open(&k.lines, &j->c.arena);
    j->codes[k.ties] += j->word->make(&k);
    j->ties += k.n_ties;
    return OK;
}

static void codes_are_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        Job j = { .word = &words[i] };
        for (; j.codes[0] < CODES / 2 || j.codes[1] < CODES / 2; j.number++) {
            context_open(&j.c);
            assert_int_equal(guarded(&j.c.memory, make_case, &j), OK);
            context_close(&j.c);
        }
        print_message("%s: %d cases, %" PRId64 " codes, %" PRId64 " ties\n", words[i].name, j.number,
                      j.codes[0] + j.codes[1], j.ties);
        assert_true(j.ties > (words[i].numbers ? -1 : 100000));
    }
}

static void others_agree(void **state)
{
    (void)state;
    ask_oracle("numpy, onnx.checker, onnxruntime", script, folder);
}

static int open_folder(void **state)
{
    (void)state;
    return folder_open();
}

static int close_folder(void **state)
{
    (void)state;
    return folder_close();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(codes_are_made), cmocka_unit_test(others_agree) };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
