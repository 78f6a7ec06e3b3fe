/* Attention and its way back, by blocks of queries, have the bits of their expansions: where blocks end inside of a head,
 * where sums have several segments, whatever the mask, and with any number of threads.  Nobody holds their scores. */
#include "ops/attend/attention.h"
#include "ops/card/expansion.h"
#include "ops/card/make.h"
#include "ops/control/reverse.h"
#include "support/calls.h"

typedef enum Mask { MASK_NONE, MASK_CHOICE, MASK_ROW, MASK_SHORT, MASK_SCALAR, MASK_NARROW, MASK_WILD } Mask;

typedef struct Case {
    DType dtype;
    int rank;
    int64_t batch, heads, shared, queries, keys, size, v_size; /* query heads that share a head of keys */
    Mask mask;
    bool lengths;
    AttentionAttr at;
    enum { ODD_NONE, ODD_NAN, ODD_SMALL } odd;
    int which; /* operand, counting what reaches the result as the last, has numbers that show where zeros are left out */
} Case;

#define PLAIN  .left_window_size = -1, .right_window_size = -1
#define CAUSAL PLAIN, .is_causal = true

/* clang-format off */
static const Case cases[] = {
    { F32, 4, 2, 3, 1,  65,  70,  8,  8, MASK_NONE,   false, { PLAIN } },
    { F32, 4, 1, 1, 1, 200, 200, 16,  5, MASK_NONE,   false, { CAUSAL } },
    { F32, 3, 2, 2, 3,  50,  40,  7,  9, MASK_NONE,   false, { CAUSAL, .scale = 0.3f } },
    { F32, 4, 1, 2, 2,  40,  90,  8,  8, MASK_CHOICE, false, { PLAIN } },
    { F32, 3, 2, 1, 4,  33,  33,  8,  8, MASK_ROW,    false, { CAUSAL, .scaled = SCALE_PRODUCTS } },
    { F32, 4, 2, 2, 1,  70,  50,  4,  6, MASK_SHORT,  true,  { PLAIN, .softcap = 1.5f } },
    { F32, 4, 2, 2, 1,  70,  50,  4,  6, MASK_SCALAR, true,  { CAUSAL } },
    { F32, 4, 1, 2, 1,  70,  80,  4,  6, MASK_NARROW, false, { .left_window_size = 9, .right_window_size = 3 } },
    { F32, 4, 1, 1, 3, 700, 2100, 3,  2, MASK_NONE,   false, { PLAIN } }, /* several segments, of keys and of rows */
    { F32, 4, 1, 2, 2,  40,  30,  8,  8, MASK_WILD,   false, { CAUSAL } },
    { F64, 3, 2, 2, 2,  40,  30,  8,  8, MASK_ROW,    true,  { CAUSAL, .softcap = 2, .scaled = SCALE_QUOTIENTS } },
    { F16, 4, 2, 2, 2,  40,  30,  8,  8, MASK_NARROW, false, { CAUSAL, .scaled = SCALE_QUOTIENTS } },
    { BF16, 3, 2, 2, 2, 40,  30,  8,  8, MASK_CHOICE, true,  { PLAIN, .softcap = 2 } },
    { BF16, 4, 1, 1, 3, 700, 2100, 3, 2, MASK_NONE,   false, { PLAIN } },
    { F32, 4, 1, 2, 1,   5,   0,  4,  4, MASK_NONE,   false, { PLAIN } },
    { F32, 4, 1, 2, 1,   0,   5,  4,  4, MASK_NONE,   false, { PLAIN } },
    { F16, 4, 1, 2, 1,   5,   5,  0,  4, MASK_NONE,   false, { PLAIN } },
    { F32, 4, 1, 2, 1, 130, 130, 33, 65, MASK_NONE,   false, { CAUSAL } },
    { F32, 3, 1, 2, 3,  77, 150,  1, 31, MASK_SHORT,  true,  { CAUSAL, .softcap = 3 } },
    { F32, 4, 1, 1, 2, 150, 190, 127, 1, MASK_CHOICE, false, { .left_window_size = 20, .right_window_size = 0, .scaled = SCALE_PRODUCTS } },
    { F32, 4, 1, 2, 1,  90, 140,  6,  6, MASK_NONE,   false, { CAUSAL, .scale = -0.5f, .scaled = SCALE_PRODUCTS } },
    { F32, 4, 1, 1, 3, 900, 300,  5,  3, MASK_NONE,   false, { CAUSAL } }, /* segments of rows, of each some keys */
    { BF16, 4, 1, 2, 1, 130, 150, 33, 17, MASK_NONE,  false, { CAUSAL } },
    { F16, 3, 1, 2, 2,  70, 150, 16, 40, MASK_ROW,    false, { CAUSAL, .softcap = 2 } },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { CAUSAL }, ODD_NAN, 0 },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { CAUSAL }, ODD_NAN, 1 },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { CAUSAL }, ODD_NAN, 2 },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { CAUSAL }, ODD_NAN, 3 },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { CAUSAL }, ODD_SMALL, 0 },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { CAUSAL }, ODD_SMALL, 1 },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { CAUSAL }, ODD_SMALL, 2 },
    { F32, 4, 1, 1, 1, 200, 200,  8,  8, MASK_NONE,   false, { .left_window_size = 5, .right_window_size = 1 }, ODD_SMALL, 3 },
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
    if (k->mask == MASK_WILD) /* beyond both ends: scores that are NaN, keys that are forbidden */
        return CALL(b, mul, CALL(b, mul, bias, build_scalar(b, as, 3e38)), build_scalar(b, as, 1.2));
    return CALL(b, where, allowed, bias, build_scalar(b, as, -(double)Q_INF));
}

/* A constant of f32 with infinities and NaN near its end; or of numbers so small that products are -0, or 0 near its end. */
static void make_odd(const Node *x, int kind)
{
    const int64_t n = type_elements(x->type);
    f32 *v = constant(x)->data;
    for (int64_t i = 0; kind == ODD_SMALL && i < n; i++)
        v[i] = i < n - 40 ? -0x1p-149f : 0x1p-149f;
    for (int64_t i = n - 40; kind == ODD_NAN && i < n; i += 13)
        v[i] = i % 2 ? Q_INF : Q_NAN;
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
    if (k->which < 3)
        make_odd(ins[k->which], k->odd);
    return build_node_n(b, OP_attention, &at, (int)COUNT(ins), ins, 1);
}

static Node *taken_back(Build *b, Rng *rng, const Node *y, const Case *k)
{
    Node *dy = draw(b, rng, y->type->dtype, y->type->rank, y->type->dims);
    if (k->which == 3)
        make_odd(dy, k->odd);
    Node *ins[] = { in(y, 0), in(y, 1), in(y, 2), dy, in(y, 3), y->n_in > 6 ? in(y, 6) : NULL };
    return build_node_n(b, OP_attention_grad, y->attr, (int)COUNT(ins), ins, 3);
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
        require(tensor_same(got, want), "case %d, %s on %d threads: not the bits of the expansion\n", (int)number,
                op_of(call)->name, threads);
    }
}

static Status blocks_are_the_expansion(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Rng rng = { 41 + i };
        Build b = fresh(c);
        Node *y = attended(&b, &rng, &cases[i]);
        require_same(c, i, y);
        require_same(c, i, taken_back(&b, &rng, y, &cases[i]));
    }
    return OK;
}

static void test_blocks_are_the_expansion(void **state)
{
    (void)state;
    with_context(blocks_are_the_expansion);
}

/* ---- products of bf16 as they lie ---- */

/* How far the elements of results are apart, at most, in units of the largest. */
static double apart(const Tensor *x, const Tensor *y)
{
    double most = 0, size = 0;
    for (size_t i = 0; i < x->n_items; i++)
        most = fmax(most, apart(x->items[i], y->items[i]));
    for (int64_t i = 0; !x->n_items && i < tensor_elements(x); i++) {
        most = fmax(most, fabs(at(x, i) - at(y, i)));
        size = fmax(size, fabs(at(y, i)));
    }
    return x->n_items || most == 0 ? most : most / size;
}

static void require_near(Context *c, size_t number, Node *call, int *moved)
{
    const Tensor *want = value_of(c, call, NULL), *first = value_of(c, call, &(EvalOptions){ .narrow = true });
    const char *name = op_of(call)->name;
    require(apart(first, want) <= 0x1p-6, "case %d, %s is %g apart\n", (int)number, name, apart(first, want));
    *moved += !tensor_same(first, want);
    for (int threads = 1; threads <= 3; threads++) {
        Parallel *pool = parallel_open(threads, NULL);
        const Tensor *got = value_of(c, call, &(EvalOptions){ .pool = pool, .narrow = true });
        parallel_close(pool);
        require(tensor_same(got, first), "case %d, %s on %d threads: other bits\n", (int)number, name, threads);
    }
}

static Status bf16_is_near(void *arg)
{
    Context *c = arg;
    int moved = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Case k = cases[i];
        if (k.dtype == F64 || k.odd || k.mask == MASK_WILD || k.queries * k.keys * k.size == 0)
            continue;
        k.dtype = BF16;
        Rng rng = { 71 + i };
        Build b = fresh(c);
        Node *y = attended(&b, &rng, &k);
        require_near(c, i, y, &moved);
        require_near(c, i, taken_back(&b, &rng, y, &k), &moved);
    }
    assert_true(!kernels_packed_bf16(kernels_best()) || moved > 0);
    return OK;
}

static void test_bf16_is_near(void **state)
{
    (void)state;
    with_context(bf16_is_near);
}

/* ---- memory ---- */

static Status scores_are_nowhere_whole(void *arg)
{
    enum { HEADS = 16, STEPS = 512, SIZE = 4 };
    Context *c = arg;
    Rng rng = { 5 };
    const AttentionAttr at = { CAUSAL };
    const uint64_t scores = (uint64_t)HEADS * STEPS * STEPS * sizeof(f32);
    Build b = fresh(c);
    Node *ins[4];
    for (int i = 0; i < 4; i++)
        ins[i] = DRAW(&b, &rng, F32, 1, HEADS, STEPS, SIZE);
    for (int i = 0; i < 2; i++) {
        Node *y = build_node_n(&b, i ? OP_attention_grad : OP_attention, &at, 3 + i, ins, i ? 3 : 1);
        const uint64_t before = c->memory.peak = c->memory.used;
        (void)value_of(c, y, NULL);
        require(c->memory.peak - before < scores / 4, "%s took %.1f of its scores\n", op_of(y)->name,
                (double)(c->memory.peak - before) / (double)scores);
    }
    return OK;
}

static void test_scores_are_nowhere_whole(void **state)
{
    (void)state;
    with_context(scores_are_nowhere_whole);
}

/* ---- which calls are taken back whole ---- */

/* How many calls of attention_grad serve the gradients of a call's first result by its first operand and its mask. */
static int calls_back(Context *c, const AttentionAttr *at, bool past, bool mask, bool scores)
{
    const int64_t q[] = { 1, 2, 3, 4 }, bias[] = { 3, past ? 6 : 3 };
    Graph *g = graph_new(&c->ir, &c->arena, NULL);
    Build b = build_at_end(g);
    Node *x = graph_input(g, NULL, type_tensor(&c->ir.types, F32, 4, q)), *m = NULL;
    if (mask)
        m = graph_input(g, NULL, type_tensor(&c->ir.types, F32, 2, bias));
    Node *ins[] = { x, x, x, m, past ? x : NULL, past ? x : NULL };
    Node *call = build_node_n(&b, OP_attention, at, (int)COUNT(ins), ins, scores ? 4 : 1);
    Node *y = build_part(&b, call, scores ? 3 : 0), *dy = make_filled(&b, F32, 1, y->type), *by[] = { x, m };
    const ReverseQuery query = { .n_y = 1, .y = &y, .dy = &dy, .n_x = mask ? 2 : 1, .x = by };
    ReverseResult r;
    int n = 0;
    assert_int_equal(reverse(&b, &query, &c->arena, &r), OK);
    assert_non_null(r.dx[0]);
    assert_true(!mask || r.dx[1]);
    for (const Node *k = g->first; k; k = k->next)
        n += k->op == OP_attention_grad;
    return n;
}

static Status calls_are_taken_back(void *arg)
{
    Context *c = arg;
    const AttentionAttr plain = { PLAIN }, causal = { CAUSAL, .softcap = 2 };
    const AttentionAttr wide = { PLAIN, .softmax_precision = F64 + 1 };
    assert_int_equal(calls_back(c, &plain, false, false, false), 1);
    assert_int_equal(calls_back(c, &causal, false, true, false), 1);
    assert_int_equal(calls_back(c, &plain, true, true, false), 0);
    assert_int_equal(calls_back(c, &plain, false, false, true), 0);
    assert_int_equal(calls_back(c, &wide, false, false, false), 0);
    return OK;
}

static void test_calls_are_taken_back(void **state)
{
    (void)state;
    with_context(calls_are_taken_back);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_blocks_are_the_expansion),
                                        cmocka_unit_test(test_bf16_is_near),
                                        cmocka_unit_test(test_scores_are_nowhere_whole),
                                        cmocka_unit_test(test_calls_are_taken_back) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
