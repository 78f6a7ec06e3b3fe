/* label: slow */
/* The kernels of calls that are no regions, made from what cards say of how they walk, run on this machine thread by
 * thread: the bits of the evaluator, for samples of all cards, and for sums that are longer than a segment. */
#include "codegen/cuda/cuda_call.h"
#include "ops/attend/attention.h"
#include "ops/card/access.h"
#include "ops/quant/words.h"
#include "ops/window/window.h"
#include "support/calls.h"
#include "support/cuda_host.h"
#include "support/samples.h"

enum { AT_ONCE = 400, MOST_ELEMENTS = 20000, MOST_CARDS = 400 };

static const EvalOptions plain = { .seed = 1 };
static bool has_kernels[MOST_CARDS]; /* by card */

static bool is_small(const Node *call)
{
    for (int i = 0; i < type_results(call->type); i++) {
        const Type *t = type_result(call->type, i);
        if (t->kind != TYPE_TENSOR || !type_known(t) || type_elements(t) > MOST_ELEMENTS)
            return false;
    }
    return true;
}

static Status run_card(Context *c, const OpDef *def, CudaHost *h)
{
    for (int variant = 0; variant < def->n_variants; variant++) {
        Node *y = sample_of(c, def, variant), *call = y ? sample_call(y) : NULL;
        if (!call || !is_small(call))
            continue;
        Tensor *want = cuda_host_values(c, call);
        if (want && cuda_host_add_call(h, call, cuda_host_operands(c, call), want))
            has_kernels[call->op] = true;
        if (h->n >= AT_ONCE)
            cuda_host_run(h);
    }
    return OK;
}

static Status run_samples(void *context)
{
    Context *c = context;
    CudaHost h;
    int cards = 0;
    cuda_host_open(&h, c, "calls");
    for (size_t i = 0; i < ops_table.n; i++)
        if (ops_table.defs[i]->sample)
            TRY(run_card(c, ops_table.defs[i], &h));
    cuda_host_run(&h);
    for (size_t i = 0; i < ops_table.n; i++)
        cards += has_kernels[i];
    printf("%d calls of %d cards, %d launches\n", (int)h.calls, cards, (int)h.launches);
    assert_false(h.wrong);
    static const Op wanted[] = { OP_matmul,
                                 OP_matmul_accumulate,
                                 OP_conv,
                                 OP_conv_transpose,
                                 OP_conv_weight_grad,
                                 OP_transpose,
                                 OP_concat,
                                 OP_slice,
                                 OP_split,
                                 OP_expand,
                                 OP_gather,
                                 OP_gather_elements,
                                 OP_gather_nd,
                                 OP_max_pool,
                                 OP_average_pool,
                                 OP_max_pool_grad,
                                 OP_average_pool_grad,
                                 OP_range_scale,
                                 OP_observed_range,
                                 OP_dropout,
                                 OP_attention,
                                 OP_attention_grad,
                                 OP_matmul_integer,
                                 OP_qlinear_matmul,
                                 OP_qmatmul,
                                 OP_conv_integer,
                                 OP_qlinear_conv,
                                 OP_qconv,
                                 OP_scatter_elements,
                                 OP_scatter_nd,
                                 OP_lstm,
                                 OP_gru,
                                 OP_rnn,
                                 OP_lstm_grad,
                                 OP_gru_grad,
                                 OP_rnn_grad,
                                 OP_lstm_kept,
                                 OP_gru_kept,
                                 OP_top_k,
                                 OP_einsum,
                                 OP_grid_sample,
                                 OP_grid_sample_grad,
                                 OP_grid_sample_grid_grad,
                                 OP_affine_grid,
                                 OP_quantize_both };
    for (size_t i = 0; i < COUNT(wanted); i++)
        require(has_kernels[wanted[i]], "%s has no kernels\n", ops_table.defs[wanted[i]]->name);
    return OK;
}

static void samples(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_samples);
}

/* Sums of one segment and a bit, of several, and of whole ones, which join. */
static Status run_segments(void *context)
{
    static const int64_t lengths[] = { 2047, 2048, 2049, 4096, 7000, 10241 };
    static const DType types[] = { F32, F64, BF16 };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "segments");
    for (size_t i = 0; i < COUNT(lengths) * COUNT(types); i++) {
        Rng rng = { seed_of("segments", i) };
        Build b = fresh(c);
        const DType type = types[i % COUNT(types)];
        const int64_t k = lengths[i / COUNT(types)];
        Node *x = draw(&b, &rng, type, 2, (int64_t[]){ 3, k }), *y = draw(&b, &rng, type, 2, (int64_t[]){ k, 2 });
        Node *call = build_node(&b, OP_matmul, NULL, 2, (Node *[]){ x, y });
        Tensor *want = value_of(c, call, &plain);
        assert_true(cuda_host_add_call(&h, call, cuda_host_operands(c, call), want));
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    assert_int_equal(h.calls, COUNT(lengths) * COUNT(types));
    return OK;
}

static void segments(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_segments);
}

/* Products by tiles of both sizes, whose sides end within one and whose sums have a segment or several, in stacks, read either
 * way; some lie in eights. */
static void add_tiles(Context *c, CudaHost *h, const DType *types, size_t n_types, const char *kernel)
{
    static const int64_t sizes[][4] = { { 1, 70, 65, 33 },   { 1, 9, 130, 2100 }, { 2, 64, 8, 17 },
                                        { 130, 20, 129, 5 }, { 2, 72, 136, 72 },  { 1, 72, 40, 2104 } };
    for (size_t i = 0; i < COUNT(sizes) * n_types; i++) {
        Rng rng = { seed_of("tiles", i) };
        Build b = fresh(c);
        const int64_t *n = sizes[i / n_types];
        const DType type = types[i % n_types];
        const MatmulAttr at = { .ta = i % 2, .tb = i / 2 % 2 };
        Node *x = draw(&b, &rng, type, 3, at.ta ? (int64_t[]){ n[0], n[3], n[1] } : (int64_t[]){ n[0], n[1], n[3] });
        Node *y = draw(&b, &rng, type, 3, at.tb ? (int64_t[]){ n[0], n[2], n[3] } : (int64_t[]){ n[0], n[3], n[2] });
        Node *call = build_node(&b, OP_matmul, &at, 2, (Node *[]){ x, y });
        assert_true(cuda_host_add_call(h, call, cuda_host_operands(c, call), value_of(c, call, &plain)));
        assert_non_null(strstr(h->jobs[h->n - 1].launch.kernels[0].name, kernel));
    }
}

/* The same of products that go on with a sum. */
static void add_sums(Context *c, CudaHost *h, DType type, const char *kernel)
{
    static const int64_t sizes[][3] = { { 70, 65, 33 }, { 9, 130, 2048 }, { 72, 136, 64 }, { 130, 8, 5 } };
    for (size_t i = 0; i < COUNT(sizes); i++) {
        Rng rng = { seed_of("sums", i) };
        Build b = fresh(c);
        const int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
        const AccumulateAttr at = { .ta = i % 2, .tb = i / 2 };
        Node *x = draw(&b, &rng, type, 2, at.ta ? (int64_t[]){ k, m } : (int64_t[]){ m, k });
        Node *y = draw(&b, &rng, type, 2, at.tb ? (int64_t[]){ n, k } : (int64_t[]){ k, n });
        Node *sum = draw(&b, &rng, type == F64 ? F64 : F32, 2, (int64_t[]){ m, n });
        Node *call = build_node(&b, OP_matmul_accumulate, &at, 3, (Node *[]){ x, y, sum });
        assert_true(cuda_host_add_call(h, call, cuda_host_operands(c, call), value_of(c, call, &plain)));
        assert_non_null(strstr(h->jobs[h->n - 1].launch.kernels[0].name, kernel));
    }
}

static Status run_tiles(void *context)
{
    static const DType types[] = { F32, F64, BF16 };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "tiles");
    add_tiles(c, &h, types, COUNT(types), "_tile");
    for (size_t i = 0; i < COUNT(types); i++)
        add_sums(c, &h, types[i], "_tile");
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

/* Convolutions and the gradients of filters by tiles: of groups, of steps of two, behind padding, with a bias. */
static void add_windows(Context *c, CudaHost *h, const DType *types, size_t n_types, const char *kernel)
{
    static int64_t steps[] = { 2, 1 }, taps[] = { 3, 2 }, pads[] = { 1, 0, 2, 1 };
    for (size_t i = 0; i < 2 * n_types; i++) {
        Rng rng = { seed_of("windows", i) };
        Build b = fresh(c);
        const DType type = types[i / 2];
        const int64_t group = 1 + (int64_t)i % 2, channels = i % 2 ? 9 : 350, results = 8 * group;
        const ConvAttr at = { .window = { .kernel_shape = { 2, taps }, .strides = { 2, steps }, .pads = { 4, pads } },
                              .group = group };
        Node *x = draw(&b, &rng, type, 4, (int64_t[]){ 2, channels * group, 7, 6 });
        Node *w = draw(&b, &rng, type, 4, (int64_t[]){ results, channels, 3, 2 });
        Node *bias = draw(&b, &rng, type, 1, &results);
        Node *y = build_node(&b, OP_conv, &at, 3, (Node *[]){ x, w, bias });
        Node *dy = draw(&b, &rng, type, 4, y->type->dims);
        Node *back = build_node(&b, OP_conv_weight_grad, &at, 2, (Node *[]){ x, dy });
        assert_true(cuda_host_add_call(h, y, cuda_host_operands(c, y), value_of(c, y, &plain)));
        assert_non_null(strstr(h->jobs[h->n - 1].launch.kernels[0].name, kernel));
        assert_true(cuda_host_add_call(h, back, cuda_host_operands(c, back), value_of(c, back, &plain)));
        assert_non_null(strstr(h->jobs[h->n - 1].launch.kernels[0].name, kernel));
    }
}

static Status run_windows(void *context)
{
    static const DType types[] = { F32, BF16 };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "windows");
    add_windows(c, &h, types, COUNT(types), "_tile");
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

static void tiles(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_tiles);
    with_context(run_windows);
}

/* The same of bf16 by tensor cores, which here add as the evaluator does: what is shown is that each product is in its sum, and
 * where segments end. */
static Status run_narrow(void *context)
{
    static const DType types[] = { BF16, BF16 };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "narrow");
    h.target.narrow = true;
    add_tiles(c, &h, types, COUNT(types), "_mma");
    add_sums(c, &h, BF16, "_mma");
    add_windows(c, &h, types, 1, "_mma");
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

static void narrow(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_narrow);
}

/* What belongs to a factor of codes: one number, one a lane, or one a lane of every matrix. */
static Node *draw_lanes(Build *b, Rng *rng, DType type, int64_t matrices, int64_t lanes, bool down, int kind)
{
    const int64_t dims[] = { matrices, down ? lanes : 1, down ? 1 : lanes };
    const bool scale = type == F32;
    return sample_tensor(b, rng, type,
                         kind == 0   ? 0
                         : kind == 1 ? 1
                                     : 3,
                         kind == 1 ? &lanes : dims,
                         scale        ? 0.5
                         : type == U8 ? 0
                                      : -9,
                         scale ? 2 : 9);
}

/* A product of a stack of matrices of codes, the right one of which all share where `shared`. */
static Node *draw_product_of_codes(Build *b, Rng *rng, const int64_t *n, const DType *types, const QmatmulAttr *at,
                                   int kind)
{
    const bool shared = kind % 2;
    const int64_t left[] = { n[0], at->transpose_a ? n[3] : n[1], at->transpose_a ? n[1] : n[3] };
    const int64_t right[] = { n[0], at->transpose_b ? n[2] : n[3], at->transpose_b ? n[3] : n[2] };
    const int64_t lanes_b = shared ? 1 : n[0];
    Node *ins[9] = { sample_tensor(b, rng, types[0], 3, left, types[0] == U8 ? 0 : -128, types[0] == U8 ? 255 : 127),
                     draw_lanes(b, rng, F32, n[0], n[1], !at->transpose_a, kind),
                     draw_lanes(b, rng, types[0], n[0], n[1], !at->transpose_a, kind),
                     sample_tensor(b, rng, types[1], shared ? 2 : 3, shared ? right + 1 : right,
                                   types[1] == U8 ? 0 : -128, types[1] == U8 ? 255 : 127),
                     draw_lanes(b, rng, F32, lanes_b, n[2], at->transpose_b, shared ? 1 : kind),
                     draw_lanes(b, rng, types[1], lanes_b, n[2], at->transpose_b, shared ? 1 : kind) };
    if (kind > 1) {
        ins[6] = sample_tensor(b, rng, F32, 0, NULL, 900, 1100);
        ins[7] = sample_tensor(b, rng, U8, 0, NULL, 90, 160);
    }
    ins[8] = sample_tensor(b, rng, I32, 1, n + 2, -50, 50);
    return build_node_n(b, OP_qmatmul, at, 9, ins, kind > 1 ? 1 + shared : 1);
}

/* Convolutions of codes: of groups, with steps and taps apart, behind padding that differs on each side, with zero points of one each or
 * one for all, of one deep sum that is shared out and of several. */
static Node *draw_conv_of_codes(Build *b, Rng *rng, const int64_t *n, const DType *types, int i)
{
    static int64_t steps[] = { 2, 1 }, apart[] = { 1, 2 }, pads[] = { 1, 0, 2, 1 };
    const int64_t groups = n[1], results = groups * n[3];
    const QconvAttr at = { .conv = {
                               .window = { .strides = { 2, steps }, .dilations = { 2, apart }, .pads = { 4, pads } },
                               .group = groups } };
    const int64_t x[] = { n[0], groups * n[2], 9, 8 }, w[] = { results, n[2], n[4], n[4] };
    const int each = i % 2;
    Node *ins[9] = { sample_tensor(b, rng, types[0], 4, x, types[0] == U8 ? 0 : -128, types[0] == U8 ? 255 : 127),
                     sample_tensor(b, rng, F32, 0, NULL, 0.5, 2),
                     sample_tensor(b, rng, types[0], 0, NULL, 3, 9),
                     sample_tensor(b, rng, types[1], 4, w, types[1] == U8 ? 0 : -128, types[1] == U8 ? 255 : 127),
                     sample_tensor(b, rng, F32, each, &results, 0.5, 2),
                     sample_tensor(b, rng, types[1], each, &results, types[1] == U8 ? 0 : -9, 9) };
    if (i % 3) {
        ins[6] = sample_tensor(b, rng, F32, 0, NULL, 900, 1100);
        ins[7] = sample_tensor(b, rng, U8, 0, NULL, 90, 160);
    }
    ins[8] = sample_tensor(b, rng, I32, 1, &results, -50, 50);
    return build_node_n(b, OP_qconv, &at, 9, ins, 1);
}

static void add_convs(Context *c, CudaHost *h, const DType (*types)[2])
{
    /* images, groups, channels and results of each, taps */
    static const int64_t sizes[][5] = {
        { 1, 1, 3, 8, 3 }, { 2, 2, 5, 9, 2 }, { 1, 1, 70, 40, 3 }, { 3, 1, 16, 66, 1 }
    };
    for (size_t i = 0; i < 4 * COUNT(sizes); i++) {
        Rng rng = { seed_of("convs", i) };
        Build b = fresh(c);
        Node *call = draw_conv_of_codes(&b, &rng, sizes[i / 4], types[i % 4], (int)i);
        assert_true(cuda_host_add_call(h, call, cuda_host_operands(c, call), cuda_host_values(c, call)));
        assert_non_null(strstr(h->jobs[h->n - 1].launch.kernels[0].name, "_mma"));
        assert_int_equal(h->jobs[h->n - 1].launch.n, sizes[i / 4][2] == 70 ? 2 : 1);
    }
}

/* Products of codes by tensor cores: bits of the evaluator, for both sizes of tiles, which end within one, for stacks,
 * operands read either way, each pair of types, zero points of each kind, and depths of less than a word, of several pieces and of
 * several blocks. */
static Status run_codes(void *context)
{
    static const int64_t sizes[][4] = {
        { 1, 70, 65, 64 }, { 2, 9, 72, 133 }, { 3, 64, 8, 3 }, { 2, 16, 16, 1260 }, { 65, 66, 129, 33 }
    };
    static const DType types[][2] = { { U8, U8 }, { U8, I8 }, { I8, U8 }, { I8, I8 } };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "codes");
    for (size_t i = 0; i < 2 * COUNT(types) * (COUNT(sizes) - 1) + 1; i++) {
        Rng rng = { seed_of("codes", i) };
        Build b = fresh(c);
        const QmatmulAttr at = { .transpose_a = i % 2, .transpose_b = i / 2 % 2, .codes.relu = i % 16 > 12 };
        Node *call = draw_product_of_codes(&b, &rng, sizes[i / (2 * COUNT(types))], types[i / 2 % COUNT(types)], &at,
                                           (int)(i % 3 + i / 8 % 2));
        assert_true(cuda_host_add_call(&h, call, cuda_host_operands(c, call), cuda_host_values(c, call)));
        assert_non_null(strstr(h.jobs[i].launch.kernels[0].name, "_mma"));
        assert_int_equal(h.jobs[i].launch.n, sizes[i / (2 * COUNT(types))][3] == 1260 ? 2 : 1);
    }
    add_convs(c, &h, types);
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

static void codes(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_codes);
}

/* What stands in the kernels of products by tensor cores and of convolutions of codes, and what might stand there instead. */
static const char *const mistakes_of_tiles[][2] = {
    { "copy_wait<1>", "copy_wait<2>" },
    { "xs[odd ^ 1]", "xs[odd]" },
    { "part = e % 4", "part = 0" },
    { "if (k0 > from)", "if (k0 > from + 32)" },
};
static const char *const mistakes_of_codes[][2] = {
    { "return za;", "return 0;" },          { "(tile.to - tile.from)", "tile.depth" },       { "part < 2", "part < 1" },
    { "zb * sums.of_x", "za * sums.of_x" }, { "codes_matrix<true>", "codes_matrix<false>" },
};

static Status run_mistakes(void *context)
{
    const int64_t sizes[] = { 1, 1, 70, 40, 3 }, x[] = { 72, 80 }, y[] = { 80, 72 };
    const DType types[] = { U8, I8 };
    bool shown[COUNT(mistakes_of_tiles) + COUNT(mistakes_of_codes)] = { false };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "mistakes");
    h.target.narrow = true;
    for (size_t i = 0; i < COUNT(shown); i++) {
        Rng rng = { 5 };
        Build b = fresh(c);
        const bool codes = i >= COUNT(mistakes_of_tiles);
        Node *call = codes ? draw_conv_of_codes(&b, &rng, sizes, types, 3)
                           : build_node(&b, OP_matmul, NULL, 2,
                                        (Node *[]){ draw(&b, &rng, BF16, 2, x), draw(&b, &rng, BF16, 2, y) });
        h.mistake = codes ? mistakes_of_codes[i - COUNT(mistakes_of_tiles)] : mistakes_of_tiles[i];
        h.shows = &shown[i];
        assert_true(cuda_host_add_call(&h, call, cuda_host_operands(c, call), cuda_host_values(c, call)));
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    for (size_t i = 0; i < COUNT(shown); i++)
        require(shown[i], "nobody sees mistake %d\n", (int)i);
    return OK;
}

static void mistakes_show(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_mistakes);
}

/* Attention whose sums are longer than a segment: over keys, and over the queries of heads that share one of keys; a thread for each of them,
 * or by tiles. */
static Status run_attention(void *context)
{
    static const int64_t sizes[][3] = {
        { 3, 2100, 2 }, { 1030, 3, 2 }, { 5, 2100, 9 }, { 1030, 9, 9 }
    }; /* queries, keys */
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "attention");
    for (size_t i = 0; i < 2 * COUNT(sizes); i++) {
        Rng rng = { seed_of("attention", i) };
        Build b = fresh(c);
        const DType type = i % 2 ? BF16 : F32;
        const int64_t *n = sizes[i / 2], q[] = { 1, 2, n[0], n[2] }, k[] = { 1, 1, n[1], n[2] };
        const AttentionAttr at = { .left_window_size = -1, .right_window_size = -1 };
        Node *in[] = { draw(&b, &rng, type, 4, q), draw(&b, &rng, type, 4, k), draw(&b, &rng, type, 4, k),
                       draw(&b, &rng, type, 4, q) };
        Node *y = build_node(&b, OP_attention, &at, 3, in), *back = build_node_n(&b, OP_attention_grad, &at, 4, in, 3);
        assert_true(cuda_host_add_call(&h, y, cuda_host_operands(c, y), value_of(c, y, &plain)));
        assert_true(cuda_host_add_call(&h, back, cuda_host_operands(c, back), cuda_host_values(c, back)));
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

static void attention(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_attention);
}

/* An index that leads out of what it is an index of, on either side, refuses the run; nothing is touched there. */
static Status run_refused(void *context)
{
    static const i64 wrong[] = { 3, -4, INT64_MAX, INT64_MIN };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "refused");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        Rng rng = { seed_of("refused", i) };
        Build b = fresh(c);
        Node *x = draw(&b, &rng, F32, 2, (int64_t[]){ 3, 2 }), *u = draw(&b, &rng, F32, 2, (int64_t[]){ 2, 2 });
        Node *at = build_i64s(&b, 2, (int64_t[]){ 1, wrong[i] });
        Tensor *column = tensor_new(&c->arena, type_tensor(&c->ir.types, I64, 2, (int64_t[]){ 2, 1 }));
        tensor_set_i64(column, 0, 1);
        tensor_set_i64(column, 1, wrong[i]);
        Node *tuples = build_const(&b, column);
        Node *gather = build_node(&b, OP_gather, NULL, 2, (Node *[]){ x, at });
        Node *scatter = build_node(&b, OP_scatter_nd, NULL, 3, (Node *[]){ x, tuples, u });
        assert_null(cuda_host_values(c, gather));
        assert_true(cuda_host_add_call(&h, gather, cuda_host_operands(c, gather), NULL));
        assert_true(cuda_host_add_call(&h, scatter, (const Tensor *[]){ constant(x), column, constant(u) }, NULL));
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

static void refused(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(samples),       cmocka_unit_test(segments),
                                        cmocka_unit_test(attention),     cmocka_unit_test(tiles),
                                        cmocka_unit_test(codes),         cmocka_unit_test(narrow),
                                        cmocka_unit_test(mistakes_show), cmocka_unit_test(refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
