/* label: slow */
/* Attention by tensor cores and the way back through it, run on this machine thread by thread (support/cuda_sim.hpp): near the
 * evaluator, the same bits whichever thread comes first, and whatever position, masks and lengths hide stays hidden. */
#include "codegen/cuda/cuda_call.h"
#include "ops/attend/attention.h"
#include "support/calls.h"
#include "support/cuda_host.h"

typedef enum Mask { MASK_NONE, MASK_CHOICE, MASK_ADDED } Mask;

typedef struct Case {
    DType dtype;
    int rank;
    int64_t batch, heads, shared, queries, keys, size, v_size; /* query heads that share a head of keys */
    Mask mask;
    bool lengths;
    AttentionAttr at;
} Case;

#define PLAIN  .left_window_size = -1, .right_window_size = -1
#define CAUSAL PLAIN, .is_causal = true

/* clang-format off */
static const Case cases[] = {
    { BF16, 4, 2, 2, 1,  64,  64,  16,  16, MASK_NONE,   false, { PLAIN } },
    { BF16, 4, 1, 1, 1, 150, 150,  64,  64, MASK_NONE,   false, { CAUSAL } },
    { F16,  4, 1, 2, 1, 130, 150,  40,  24, MASK_NONE,   false, { CAUSAL } },
    { BF16, 3, 2, 2, 3,  50,  40,   8,   9, MASK_NONE,   false, { CAUSAL, .scale = 0.3f } },
    { BF16, 3, 1, 1, 4,  20,  70, 128, 128, MASK_NONE,   false, { CAUSAL } },
    { BF16, 4, 1, 1, 2,  70, 150,  96,  33, MASK_CHOICE, false, { PLAIN } },
    { F16,  3, 2, 1, 4,  20,  80,   7,  16, MASK_ADDED,  true,  { CAUSAL, .scaled = SCALE_QUOTIENTS } },
    { BF16, 4, 2, 2, 1,  70,  50,   4,   6, MASK_ADDED,  true,  { PLAIN, .softcap = 1.5f } },
    { BF16, 4, 1, 2, 1,  70,  80,   8,   8, MASK_NONE,   false, { .left_window_size = 9, .right_window_size = 3 } },
    { BF16, 4, 1, 1, 2,  70,  90, 127,   1, MASK_CHOICE, false, { .left_window_size = 20, .right_window_size = 0, .softcap = 2 } },
    { BF16, 4, 3, 1, 1,  66, 140,  16,  16, MASK_NONE,   true,  { CAUSAL } },
    { F16,  4, 1, 2, 1,  90, 140,   6,   6, MASK_NONE,   false, { CAUSAL, .scale = -0.5f, .scaled = SCALE_PRODUCTS } },
    { BF16, 4, 1, 1, 3,   5, 700,  3,   2, MASK_NONE,   false, { PLAIN } },
};
/* clang-format on */

/* A mask in which a third is forbidden, and of some queries every key. */
static Node *mask_of(Context *c, Build *b, Rng *rng, const Case *k)
{
    const bool choice = k->mask == MASK_CHOICE;
    const int64_t dims[] = { 1, choice ? k->heads * k->shared : 1, k->queries, choice ? k->keys : k->keys - 7 };
    if (k->mask == MASK_NONE)
        return NULL;
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, choice ? BOOL : k->dtype, 4, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++) {
        const bool hidden = rng_below(rng, 3) == 0 || i / dims[3] % 5 == 0;
        if (choice)
            tensor_set_i64(t, i, !hidden);
        else
            tensor_set_f64(t, i, hidden ? -(double)Q_INF : (double)rng_below(rng, 16) / 8 - 1);
    }
    return build_const(b, t);
}

static Node *operand(Build *b, Rng *rng, const Case *k, int64_t heads, int64_t steps, int64_t size)
{
    return k->rank == 3 ? sample_tensor(b, rng, k->dtype, 3, (int64_t[]){ k->batch, steps, heads * size }, -2, 2)
                        : sample_tensor(b, rng, k->dtype, 4, (int64_t[]){ k->batch, heads, steps, size }, -2, 2);
}

static Node *attended(Context *c, Build *b, Rng *rng, const Case *k)
{
    const int64_t heads = k->heads * k->shared;
    AttentionAttr at = k->at;
    at.q_num_heads = k->rank == 3 ? heads : 0;
    at.kv_num_heads = k->rank == 3 ? k->heads : 0;
    Node *ins[] = { operand(b, rng, k, heads, k->queries, k->size),
                    operand(b, rng, k, k->heads, k->keys, k->size),
                    operand(b, rng, k, k->heads, k->keys, k->v_size),
                    mask_of(c, b, rng, k),
                    NULL,
                    NULL,
                    k->lengths ? sample_tensor(b, rng, I64, 1, &k->batch, 0, (double)k->keys) : NULL };
    return build_node_n(b, OP_attention, &at, (int)COUNT(ins), ins, 1);
}

static Node *taken_back(Build *b, Rng *rng, const Node *y, const Case *k)
{
    Node *ins[] = { in(y, 0), in(y, 1), in(y, 2), operand(b, rng, k, k->heads * k->shared, k->queries, k->v_size),
                    in(y, 3), in(y, 6) };
    return build_node_n(b, OP_attention_grad, y->attr, (int)COUNT(ins), ins, 3);
}

static void add(Context *c, CudaHost *h, Node *call)
{
    const EvalOptions plain = { .seed = 1 };
    const Tensor *operands[8] = { NULL };
    for (int i = 0; i < call->n_in; i++)
        operands[i] = in(call, i) ? constant(in(call, i)) : NULL;
    assert_true(cuda_host_add_call(h, call, operands, value_of(c, call, &plain)));
    const CudaLaunch *launch = &h->jobs[h->n - 1].launch;
    for (int i = 0; i < launch->n; i++)
        assert_non_null(strstr(launch->kernels[i].name, "_mma"));
}

/* Of bf16 or of f16, whose numbers are eight times as near each other. */
static Status run_near(Context *c, DType dtype)
{
    CudaHost h;
    cuda_host_open(&h, c, dtype == BF16 ? "attention-bf16" : "attention-f16");
    h.target.narrow = true;
    h.near = dtype == BF16 ? 0x1p-6 : 0x1p-9;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Rng rng = { 91 + i };
        Build b = fresh(c);
        if (cases[i].dtype != dtype)
            continue;
        Node *y = attended(c, &b, &rng, &cases[i]);
        add(c, &h, y);
        add(c, &h, taken_back(&b, &rng, y, &cases[i]));
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

/* What stands in the kernels, and what might stand there instead. */
static const char *const mistakes[][2] = {
    { "copy_wait<1>", "copy_wait<2>" },
    { "pieces[odd ^ 1]", "pieces[odd]" },
    { "warp_shrink", "if (at == 0) warp_shrink" },
    { "attend_line() + i / 2 * 8", "attend_line() + i % 2 * 8" },
    { "(i32)(threadIdx.x % 4 * 2) + i % 2", "(i32)(threadIdx.x % 4 * 2) + i / 2" },
    { "tile.all_to", "tile.to" },
    { "- r->mean", "" },
    { "sight_next(&sight, at + N", "sight_next(&sight, at + 2 * N" },
    { "warp_mix<H, N>(dk, d", "warp_mix<H, N>(dk, s" },
};

/* A causal call of several tiles and pieces, and the way back through it. */
static Status run_mistakes(void *context)
{
    const Case k = { BF16, 4, 1, 1, 2, 150, 150, 16, 16, MASK_NONE, false, { CAUSAL } };
    bool shown[COUNT(mistakes)] = { false };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "attention-mistakes");
    h.target.narrow = true;
    h.near = 0x1p-6;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        Rng rng = { 7 };
        Build b = fresh(c);
        Node *y = attended(c, &b, &rng, &k);
        h.mistake = mistakes[i];
        h.shows = &shown[i];
        add(c, &h, y);
        add(c, &h, taken_back(&b, &rng, y, &k));
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    for (size_t i = 0; i < COUNT(mistakes); i++)
        require(shown[i], "nobody sees %s\n", mistakes[i][1]);
    return OK;
}

static void mistakes_show(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_mistakes);
}

static Status run_all(void *context)
{
    TRY(run_near(context, BF16));
    return run_near(context, F16);
}

static void near(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(near), cmocka_unit_test(mistakes_show) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
