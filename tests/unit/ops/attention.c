/* Attention by blocks of queries has the bits of its expansion: where blocks end inside of a head, where sums have several
 * segments, whatever the mask, and with any number of threads. */
#include "ops/attend/attention.h"
#include "ops/card/expansion.h"
#include "support/calls.h"

typedef enum Mask { MASK_NONE, MASK_CHOICE, MASK_ROW, MASK_SHORT, MASK_SCALAR, MASK_NARROW } Mask;

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
    { F32, 4, 2, 3, 1,  65,  70,  8,  8, MASK_NONE,   false, { PLAIN } },
    { F32, 4, 1, 1, 1, 200, 200, 16,  5, MASK_NONE,   false, { CAUSAL } },
    { F32, 3, 2, 2, 3,  50,  40,  7,  9, MASK_NONE,   false, { CAUSAL, .scale = 0.3f } },
    { F32, 4, 1, 2, 2,  40,  90,  8,  8, MASK_CHOICE, false, { PLAIN } },
    { F32, 3, 2, 1, 4,  33,  33,  8,  8, MASK_ROW,    false, { CAUSAL } },
    { F32, 4, 2, 2, 1,  70,  50,  4,  6, MASK_SHORT,  true,  { PLAIN, .softcap = 1.5f } },
    { F32, 4, 2, 2, 1,  70,  50,  4,  6, MASK_SCALAR, true,  { CAUSAL } },
    { F32, 4, 1, 2, 1,  70,  80,  4,  6, MASK_NARROW, false, { .left_window_size = 9, .right_window_size = 3 } },
    { F32, 4, 1, 1, 3, 700, 2100, 3,  2, MASK_NONE,   false, { PLAIN } }, /* several segments, both ways */
    { F64, 3, 2, 2, 2,  40,  30,  8,  8, MASK_ROW,    true,  { CAUSAL, .softcap = 2 } },
    { F16, 4, 2, 2, 2,  40,  30,  8,  8, MASK_NARROW, false, { CAUSAL } },
    { BF16, 3, 2, 2, 2, 40,  30,  8,  8, MASK_CHOICE, true,  { PLAIN, .softcap = 2 } },
    { BF16, 4, 1, 1, 3, 700, 2100, 3, 2, MASK_NONE,   false, { PLAIN } },
    { F32, 4, 1, 2, 1,   5,   0,  4,  4, MASK_NONE,   false, { PLAIN } },
    { F32, 4, 1, 2, 1,   0,   5,  4,  4, MASK_NONE,   false, { PLAIN } },
    { F16, 4, 1, 2, 1,   5,   5,  0,  4, MASK_NONE,   false, { PLAIN } },
};
/* clang-format on */

/* A mask of some of the call's dimensions, in which much is forbidden: of some queries every key. */
static Node *mask_of(Build *b, Rng *rng, const Case *k)
{
    const int64_t heads = k->heads * k->shared;
    if (k->mask == MASK_NONE)
        return NULL;
    if (k->mask == MASK_CHOICE)
        return sample_tensor(b, rng, BOOL, 4, (const int64_t[]){ 1, heads, k->queries, k->keys }, 0, 1);
    if (k->mask == MASK_SCALAR)
        return build_scalar(b, k->dtype, 0.25);
    Node *allowed = sample_tensor(b, rng, BOOL, 2, (const int64_t[]){ k->queries, 1 }, 0, 1);
    const int64_t dims[] = { k->batch, 1, k->queries, k->mask == MASK_SHORT ? k->keys - 7 : k->keys };
    const DType as = k->mask == MASK_NARROW ? BF16 : k->dtype;
    Node *bias = sample_tensor(b, rng, as, k->mask == MASK_ROW ? 2 : 4, k->mask == MASK_ROW ? dims + 2 : dims, -1, 1);
    return CALL(b, where, allowed, bias, build_scalar(b, as, -(double)Q_INF));
}

static Node *attended(Build *b, Rng *rng, const Case *k)
{
    const int64_t heads = k->heads * k->shared;
    AttentionAttr at = k->at;
    Node *lengths = k->lengths ? sample_tensor(b, rng, I64, 1, &k->batch, 0, (double)k->keys) : NULL;
    Node *ins[] = { NULL, NULL, NULL, mask_of(b, rng, k), NULL, NULL, lengths };
    if (k->rank == 3) {
        at.q_num_heads = heads;
        at.kv_num_heads = k->heads;
        ins[0] = DRAW(b, rng, k->dtype, k->batch, k->queries, heads * k->size);
        ins[1] = DRAW(b, rng, k->dtype, k->batch, k->keys, k->heads * k->size);
        ins[2] = DRAW(b, rng, k->dtype, k->batch, k->keys, k->heads * k->v_size);
    } else {
        ins[0] = DRAW(b, rng, k->dtype, k->batch, heads, k->queries, k->size);
        ins[1] = DRAW(b, rng, k->dtype, k->batch, k->heads, k->keys, k->size);
        ins[2] = DRAW(b, rng, k->dtype, k->batch, k->heads, k->keys, k->v_size);
    }
    return build_node_n(b, OP_attention, &at, (int)COUNT(ins), ins, 1);
}

/* What the expansion of a call on constants gives. */
static Tensor *by_expansion(Context *c, const Node *call)
{
    const Tensor *operands[16];
    Graph *g = expansion_of(call, &c->arena);
    Tensor *out = NULL;
    size_t n = 0;
    assert_non_null(g);
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i))
            operands[n++] = in(call, i)->op == OP_const ? constant(in(call, i)) : value_of(c, in(call, i), NULL);
    assert_int_equal(evaluate(g, NULL, &c->heap, operands, &out), OK);
    return out;
}

static void require_same(Context *c, size_t number, Node *call)
{
    const Tensor *want = by_expansion(c, call);
    for (int threads = 0; threads <= 3; threads++) {
        Parallel *pool = threads ? parallel_open(threads, NULL) : NULL;
        const Tensor *got = value_of(c, call, &(EvalOptions){ .pool = pool });
        parallel_close(pool);
        require(tensor_same(got, want), "case %d on %d threads: not the bits of the expansion\n", (int)number, threads);
    }
}

static Status blocks_are_the_expansion(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Rng rng = { 41 + i };
        Build b = fresh(c);
        require_same(c, i, attended(&b, &rng, &cases[i]));
    }
    return OK;
}

static void test_blocks_are_the_expansion(void **state)
{
    (void)state;
    with_context(blocks_are_the_expansion);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_blocks_are_the_expansion) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
