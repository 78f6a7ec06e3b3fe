/* Attention and recurrent ops: against loops, against other programs' stored numbers, and against themselves turned
 * around. */
#include "ops/attend/attention.h"
#include "ops/recurrent/recurrent.h"
#include "support/calls.h"

/* ---- attention ---- */

typedef struct Look {
    int64_t batch, q_heads, heads, queries, keys, size, v_size;
    bool causal, bools, floats, lengths;
    int64_t past, left, right; /* windows; -1: none */
} Look;

/* One row: what the query sees and with which weight; all zero when it sees nothing. */
static void attend(const Look *l, const Tensor *q, const Tensor *k, const Tensor *mask, const Tensor *lengths,
                   int64_t n, int64_t h, int64_t i, double *p)
{
    const int64_t group = l->q_heads / l->heads, total = l->past + l->keys;
    const int64_t first = lengths ? tensor_get_i64(lengths, n) - l->queries : l->past;
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < total; j++) {
        double dot = 0;
        for (int64_t d = 0; d < l->size; d++)
            dot += at(q, ((n * l->q_heads + h) * l->queries + i) * l->size + d) *
                   at(k, ((n * l->heads + h / group) * total + j) * l->size + d);
        p[j] = dot / sqrt((double)l->size);
        if (l->floats)
            p[j] += at(mask, i * total + j);
        if ((l->bools && at(mask, i * total + j) == 0) || (l->causal && j > i + first) ||
            (l->left >= 0 && j < i + first - l->left) || (l->right >= 0 && j > i + first + l->right) ||
            (lengths && j >= tensor_get_i64(lengths, n)))
            p[j] = -INFINITY;
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < total; j++)
        sum += p[j] = most == -INFINITY ? 0 : exp(p[j] - most);
    for (int64_t j = 0; j < total; j++)
        p[j] = sum > 0 ? p[j] / sum : 0;
}

static Node *joined(Build *b, Node *past, Node *x)
{
    return past ? build_node(b, OP_concat, &(struct { int64_t axis; }){ 2 }, 2, (Node *[]){ past, x }) : x;
}

static Status attention_by_hand(void *arg)
{
    Context *c = arg;
    Rng rng = { 41 };
    for (int round = 0; round < 256; round++) {
        const Look l = { .batch = 2,
                         .q_heads = round & 1 ? 4 : 2,
                         .heads = 2,
                         .queries = 3,
                         .keys = 4,
                         .size = 5,
                         .v_size = 2,
                         .causal = round & 2,
                         .bools = (round & 12) == 4,
                         .floats = (round & 12) == 8,
                         .lengths = (round & 48) == 16,
                         .past = (round & 48) == 32 ? 2 : 0,
                         .left = round < 64 ? -1 : round % 3,
                         .right = round < 128 ? -1 : round % 2 };
        const int64_t total = l.past + l.keys;
        const AttentionAttr a = {
            .is_causal = l.causal, .left_window_size = l.left, .right_window_size = l.right, .qk_matmul_output_mode = 3
        };
        Build b = fresh(c);
        Node *q = DRAW(&b, &rng, F64, l.batch, l.q_heads, l.queries, l.size);
        Node *k = DRAW(&b, &rng, F64, l.batch, l.heads, l.keys, l.size);
        Node *v = DRAW(&b, &rng, F64, l.batch, l.heads, l.keys, l.v_size);
        Node *mask = sample_tensor(&b, &rng, l.bools ? BOOL : F64, 2, (int64_t[]){ l.queries, total }, 0, 1);
        Node *lengths = sample_tensor(&b, &rng, I64, 1, &l.batch, 0, (double)l.keys);
        Node *pk = l.past ? DRAW(&b, &rng, F64, l.batch, l.heads, l.past, l.size) : NULL;
        Node *pv = l.past ? DRAW(&b, &rng, F64, l.batch, l.heads, l.past, l.v_size) : NULL;
        for (int64_t j = 0; l.bools && j < total; j++) /* the second query sees nothing */
            tensor_set_i64((Tensor *)(uintptr_t)constant(mask), total + j, 0);
        Node *in_[] = { q, k, v, l.bools || l.floats ? mask : NULL, pk, pv, l.lengths ? lengths : NULL };
        Node *y = build_node_n(&b, OP_attention, &a, 7, in_, 4);
        Tensor *t = value_of(c, build_tuple(&b, 3, (Node *[]){ y, joined(&b, pk, k), joined(&b, pv, v) }), NULL);
        const Tensor *keys = t->items[1], *values = t->items[2];
        assert_true(tensor_same(t->items[0]->items[1], keys) && tensor_same(t->items[0]->items[2], values));
        for (int64_t r = 0; r < l.batch * l.q_heads * l.queries; r++) {
            const int64_t n = r / l.queries / l.q_heads, h = r / l.queries % l.q_heads, i = r % l.queries;
            double p[8];
            attend(&l, constant(q), keys, constant(mask), l.lengths ? constant(lengths) : NULL, n, h, i, p);
            for (int64_t j = 0; j < total; j++)
                assert_true(close_to(at(t->items[0]->items[3], r * total + j), p[j], 1e-12));
            for (int64_t d = 0; d < l.v_size; d++) {
                double sum = 0;
                for (int64_t j = 0; j < total; j++)
                    sum += p[j] * at(values, ((n * l.heads + h * l.heads / l.q_heads) * total + j) * l.v_size + d);
                assert_true(close_to(at(t->items[0]->items[0], r * l.v_size + d), sum, 1e-12));
            }
        }
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* What is forbidden stays so, even when its score is infinite. */
static Status forbidden_scores_do_not_leak(void *arg)
{
    Context *c = arg;
    Build b = fresh(c);
    const int64_t dims[] = { 1, 1, 1, 1 }, keys[] = { 1, 1, 2, 1 }, row[] = { 1, 2 };
    Tensor *k = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 4, keys)), *v = tensor_new(&c->arena, k->type);
    Tensor *mask = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 2, row));
    const AttentionAttr a = { .left_window_size = -1, .right_window_size = -1 };
    tensor_set_f64(k, 0, INFINITY), tensor_set_f64(k, 1, 1);
    tensor_set_f64(v, 0, 7), tensor_set_f64(v, 1, 3);
    tensor_set_f64(mask, 0, -INFINITY);
    Rng rng = { 1 };
    Tensor *t = value_of(c,
                         CALL_ATTR(&b, attention, a, sample_tensor(&b, &rng, F32, 4, dims, 1, 1), build_const(&b, k),
                                   build_const(&b, v), build_const(&b, mask)),
                         NULL);
    assert_true(at(t, 0) == 3);
    tensor_drop(&c->heap, t);
    return OK;
}

/* ---- recurrent ---- */

/* [steps, batch, input] with time turned around. */
static Node *turned(Build *b, const Tensor *x)
{
    Tensor *y = tensor_new(b->graph->arena, x->type);
    const int64_t steps = x->type->dims[0], row = tensor_elements(x) / steps;
    for (int64_t i = 0; i < tensor_elements(x); i++)
        tensor_set_f64(y, (steps - 1 - i / row) * row + i % row, at(x, i));
    return build_const(b, y);
}

/* Backwards over a sequence is forwards over the sequence turned around. */
static Status reverse_is_forward_turned(void *arg)
{
    static const Op ops[] = { OP_lstm, OP_gru, OP_rnn };
    static const int gates[] = { 4, 3, 1 };
    Context *c = arg;
    Rng rng = { 42 };
    for (int i = 0; i < 3; i++) {
        Build b = fresh(c);
        const RecurrentAttr back = { .direction = RUN_REVERSE, .layout = 0 }, ahead = { .layout = 0 };
        Node *x = DRAW(&b, &rng, F32, 5, 2, 3), *w = DRAW(&b, &rng, F32, 1, gates[i] * 4, 3);
        Node *r = DRAW(&b, &rng, F32, 1, gates[i] * 4, 4), *in_[] = { x, w, r };
        Node *again[] = { turned(&b, constant(x)), w, r };
        Tensor *t = value_of(c,
                             build_tuple(&b, 2,
                                         (Node *[]){ build_node_n(&b, ops[i], &back, 3, in_, 2),
                                                     build_node_n(&b, ops[i], &ahead, 3, again, 2) }),
                             NULL);
        assert_true(tensor_same(t->items[0]->items[1], t->items[1]->items[1]));
        for (int64_t n = 0; n < 40; n++)
            assert_true(at(t->items[0]->items[0], n) == at(t->items[1]->items[0], (4 - n / 8) * 8 + n % 8));
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* A shorter sequence gives what it gives alone, and zeros behind its end. */
static Status short_sequences_end(void *arg)
{
    Context *c = arg;
    Rng rng = { 43 };
    Build b = fresh(c);
    const RecurrentAttr a = { .direction = RUN_BIDIRECTIONAL, .layout = 1 };
    Node *x = DRAW(&b, &rng, F64, 2, 4, 3), *w = DRAW(&b, &rng, F64, 2, 8, 3), *r = DRAW(&b, &rng, F64, 2, 8, 2);
    Tensor *alone = tensor_new(&c->arena, type_tensor(&c->ir.types, F64, 3, (int64_t[]){ 1, 3, 3 }));
    for (int64_t i = 0; i < 9; i++)
        tensor_set_f64(alone, i, at(constant(x), 12 + i));
    Node *in_[] = { x, w, r, NULL, build_i64s(&b, 2, (int64_t[]){ 0, 3 }) }, *one[] = { build_const(&b, alone), w, r };
    Tensor *t = value_of(
        c,
        build_tuple(&b, 2,
                    (Node *[]){ build_node_n(&b, OP_lstm, &a, 5, in_, 3), build_node_n(&b, OP_lstm, &a, 3, one, 3) }),
        NULL);
    const Tensor *y = t->items[0]->items[0], *z = t->items[1]->items[0];
    for (int64_t i = 0; i < 16; i++)
        assert_true(at(y, i) == 0); /* no step at all */
    for (int64_t i = 0; i < 12; i++)
        assert_true(at(y, 16 + i) == at(z, i));
    for (int64_t i = 28; i < 32; i++)
        assert_true(at(y, i) == 0);
    for (int state = 1; state < 3; state++)
        for (int64_t i = 0; i < 4; i++) {
            assert_true(at(t->items[0]->items[state], i) == 0);
            assert_true(at(t->items[0]->items[state], 4 + i) == at(t->items[1]->items[state], i));
        }
    tensor_drop(&c->heap, t);
    return OK;
}

/* Numbers of ONNX Runtime 1.23 for inputs that are sines of their index. */
typedef struct Stored {
    Op op;
    int gates;
    const char *activations[3];
    RecurrentAttr at;
    double last[4]; /* Y_h: [1, 2, 2] */
} Stored;

static const float stored_alpha[] = { 0.5f, 0.25f }, stored_beta[] = { 0.75f, 0.125f };

#include "data/recurrent.h"

static Node *sines(Build *b, double step, int rank, const int64_t *dims)
{
    Tensor *t = tensor_new(b->graph->arena, type_tensor(&b->graph->ir->types, F32, rank, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, sin(step * (double)(i + 1)));
    return build_const(b, t);
}

static Status stored_numbers(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(stored); i++) {
        const Stored *s = &stored[i];
        const int64_t wide = 2 * s->gates;
        Build b = fresh(c);
        RecurrentAttr a = s->at;
        if (s->activations[0])
            a.activations = (Strs){ s->op == OP_lstm ? 3 : s->op == OP_gru ? 2 : 1, s->activations };
        Node *in_[] = { sines(&b, 0.3, 3, (int64_t[]){ 3, 2, 2 }),
                        sines(&b, 0.7, 3, (int64_t[]){ 1, wide, 2 }),
                        sines(&b, 1.1, 3, (int64_t[]){ 1, wide, 2 }),
                        sines(&b, 1.3, 2, (int64_t[]){ 1, 2 * wide }),
                        NULL,
                        sines(&b, 0.9, 3, (int64_t[]){ 1, 2, 2 }),
                        s->op == OP_lstm ? sines(&b, 1.7, 3, (int64_t[]){ 1, 2, 2 }) : NULL,
                        s->op == OP_lstm ? sines(&b, 1.9, 2, (int64_t[]){ 1, 6 }) : NULL };
        Tensor *t = value_of(c, build_node_n(&b, s->op, &a, s->op == OP_lstm ? 8 : 6, in_, 2), NULL);
        for (int64_t n = 0; n < 4; n++)
            if (!close_to(at(t->items[1], n), s->last[n], 1e-6)) {
                print_error("stored %zu: %.9g, not %.9g\n", i, at(t->items[1], n), s->last[n]);
                assert_true(false);
            }
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* ---- linear attention and the causal convolution: one call or two that hand on their state ---- */

static Tensor *part_of(Context *c, const Tensor *x, int axis, int64_t from, int64_t to)
{
    int64_t dims[3], n = 0;
    memcpy(dims, x->type->dims, sizeof dims);
    dims[axis] = to - from;
    Tensor *y = tensor_new(&c->arena, type_tensor(&c->ir.types, x->type->dtype, 3, dims));
    const int64_t inner = axis == 2 ? 1 : x->type->dims[2];
    for (int64_t i = 0; i < tensor_elements(x); i++) {
        const int64_t p = i / inner % x->type->dims[axis];
        if (p >= from && p < to)
            tensor_set_f64(y, n++, at(x, i));
    }
    return y;
}

/* One head of each kind, step after step in f64: [1, steps, 2 * size] by one batch of two key heads, two queries each. */
static void step_by_step(const LinearAttentionAttr *a, const Node *const *in_, double *y)
{
    enum { STEPS = 37, SIZE = 3 };
    const bool each = in_[4] && constant(in_[4])->type->dims[2] != 2;
    for (int64_t head = 0; head < 2; head++) {
        double s[SIZE][SIZE] = { { 0 } };
        for (int64_t t = 0; t < STEPS; t++) {
            double u[SIZE];
            for (int64_t i = 0; i < SIZE; i++)
                for (int64_t j = 0; in_[4] && j < SIZE; j++)
                    s[i][j] *= exp(at(constant(in_[4]), each ? (t * 2 + head) * SIZE + i : t * 2 + head));
            for (int64_t j = 0; j < SIZE; j++) {
                u[j] = at(constant(in_[2]), (t * 2 + head) * SIZE + j);
                for (int64_t i = 0; in_[5] && i < SIZE; i++)
                    u[j] -= at(constant(in_[1]), (t * 2 + head) * SIZE + i) * s[i][j];
                u[j] *= in_[5] ? at(constant(in_[5]), t * 2 + head) : 1;
            }
            for (int64_t i = 0; i < SIZE * SIZE; i++)
                s[i / SIZE][i % SIZE] += at(constant(in_[1]), (t * 2 + head) * SIZE + i / SIZE) * u[i % SIZE];
            for (int64_t n = 0; n < 2 * SIZE; n++) {
                const int64_t row = (t * 4 + head * 2 + n / SIZE) * SIZE;
                y[row + n % SIZE] = 0;
                for (int64_t i = 0; i < SIZE; i++)
                    y[row + n % SIZE] += (double)a->scale * at(constant(in_[0]), row + i) * s[i][n % SIZE];
            }
        }
    }
}

/* Chunks of every length give what the steps give one by one, also where a decay wipes the state out. */
static Status chunks_are_steps(void *arg)
{
    static const int64_t chunks[] = { 0, 1, 8, 37, 64 };
    Context *c = arg;
    Rng rng = { 47 };
    for (int k = 0; k < 8 * (int)COUNT(chunks); k++) {
        Build b = fresh(c);
        const LinearAttentionAttr a = {
            .chunk_size = chunks[k / 8], .kv_num_heads = 2, .q_num_heads = 4, .scale = 0.5f, .update_rule = k % 4
        };
        const bool gated = a.update_rule == UPDATE_GATED || a.update_rule == UPDATE_GATED_DELTA;
        double want[37 * 12];
        Node *in_[] = { DRAW(&b, &rng, F64, 1, 37, 12),
                        DRAW(&b, &rng, F64, 1, 37, 6),
                        DRAW(&b, &rng, F64, 1, 37, 6),
                        NULL,
                        !gated  ? NULL
                        : k & 4 ? DRAW(&b, &rng, F64, 1, 37, 6)
                                : DRAW(&b, &rng, F64, 1, 37, 2),
                        a.update_rule >= UPDATE_DELTA ? DRAW(&b, &rng, F64, 1, 37, 2) : NULL };
        for (int64_t i = 0; gated && i < tensor_elements(constant(in_[4])); i++) {
            Tensor *t = (Tensor *)(uintptr_t)constant(in_[4]);
            const double g = at(t, i) - 1;
            tensor_set_f64(t, i, i == 20 ? -INFINITY : i % 5 ? g : 300 * g);
        }
        step_by_step(&a, (const Node *const *)in_, want);
        Tensor *t = value_of(c, build_part(&b, build_node_n(&b, OP_linear_attention, &a, 6, in_, 2), 0), NULL);
        for (int64_t i = 0; i < 37 * 12; i++)
            require(close_to(at(t, i), want[i], 1e-9), "chunks of %d, rule %d: %g at %d, not %g\n", (int)a.chunk_size,
                    a.update_rule, at(t, i), (int)i, want[i]);
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* In the order of a call that is cut between two chunks, too. */
static Status states_hand_on(void *arg)
{
    Context *c = arg;
    Rng rng = { 44 };
    for (int rule = UPDATE_LINEAR; rule <= UPDATE_GATED_DELTA; rule++) {
        Build b = fresh(c);
        const LinearAttentionAttr a = { .chunk_size = 2, .kv_num_heads = 2, .q_num_heads = 4, .update_rule = rule };
        const bool gated = rule == UPDATE_GATED || rule == UPDATE_GATED_DELTA, delta = rule >= UPDATE_DELTA;
        Node *in_[6] = { DRAW(&b, &rng, F32, 2, 5, 12),
                         DRAW(&b, &rng, F32, 2, 5, 6),
                         DRAW(&b, &rng, F32, 2, 5, 8),
                         NULL,
                         gated ? DRAW(&b, &rng, F32, 2, 5, 6) : NULL,
                         delta ? DRAW(&b, &rng, F32, 2, 5, 2) : NULL };
        Node *first[6] = { NULL }, *second[6] = { NULL };
        for (int i = 0; i < 6; i++)
            if (in_[i]) {
                first[i] = build_const(&b, part_of(c, constant(in_[i]), 1, 0, 2));
                second[i] = build_const(&b, part_of(c, constant(in_[i]), 1, 2, 5));
            }
        Node *y = build_node_n(&b, OP_linear_attention, &a, 6, in_, 2);
        second[3] = build_part(&b, build_node_n(&b, OP_linear_attention, &a, 6, first, 2), 1);
        Node *z = build_node_n(&b, OP_linear_attention, &a, 6, second, 2);
        Tensor *t = value_of(c, build_tuple(&b, 2, (Node *[]){ y, z }), NULL);
        assert_true(tensor_same(t->items[0]->items[1], t->items[1]->items[1]));
        assert_true(tensor_same(part_of(c, t->items[0]->items[0], 1, 2, 5), t->items[1]->items[0]));
        tensor_drop(&c->heap, t);
    }
    Build b = fresh(c);
    const CausalConvAttr swish = { 1 };
    Node *x = DRAW(&b, &rng, F32, 2, 3, 7), *w = DRAW(&b, &rng, F32, 3, 1, 4), *bias = DRAW(&b, &rng, F32, 3);
    Node *whole[] = { x, w, bias }, *head[] = { build_const(&b, part_of(c, constant(x), 2, 0, 2)), w, bias };
    Node *y = build_node_n(&b, OP_causal_conv_with_state, &swish, 3, whole, 2);
    Node *state = build_part(&b, build_node_n(&b, OP_causal_conv_with_state, &swish, 3, head, 2), 1);
    Node *tail[] = { build_const(&b, part_of(c, constant(x), 2, 2, 7)), w, bias, state };
    Node *z = build_node_n(&b, OP_causal_conv_with_state, &swish, 4, tail, 2);
    Tensor *t = value_of(c, build_tuple(&b, 2, (Node *[]){ y, z }), NULL);
    assert_true(tensor_same(t->items[0]->items[1], t->items[1]->items[1]));
    assert_true(tensor_same(part_of(c, t->items[0]->items[0], 2, 2, 7), t->items[1]->items[0]));
    tensor_drop(&c->heap, t);
    return OK;
}

/* Turning keeps lengths of pairs, and position 0 keeps everything. */
static Status turning_keeps_lengths(void *arg)
{
    Context *c = arg;
    Rng rng = { 45 };
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        Build b = fresh(c);
        const RotaryAttr a = { .interleaved = interleaved, .rotary_embedding_dim = 4 };
        Tensor *cosine = tensor_new(&c->arena, type_tensor(&c->ir.types, F64, 2, (int64_t[]){ 5, 2 }));
        Tensor *sine = tensor_new(&c->arena, cosine->type);
        for (int64_t i = 0; i < 10; i++)
            tensor_set_f64(cosine, i, cos((double)(i / 2))), tensor_set_f64(sine, i, sin((double)(i / 2)));
        Node *x = DRAW(&b, &rng, F64, 1, 2, 3, 6), *ids = sample_tensor(&b, &rng, I64, 2, (int64_t[]){ 1, 3 }, 1, 4);
        tensor_set_i64((Tensor *)(uintptr_t)constant(ids), 0, 0);
        Tensor *t = value_of(
            c, CALL_ATTR(&b, rotary_embedding, a, x, build_const(&b, cosine), build_const(&b, sine), ids), NULL);
        for (int64_t row = 0; row < 6; row++)
            for (int64_t pair = 0; pair < 2; pair++) {
                const int64_t i = row * 6 + (interleaved ? 2 * pair : pair), j = interleaved ? i + 1 : i + 2;
                const double p = at(constant(x), i), q = at(constant(x), j),
                             angle = (double)tensor_get_i64(constant(ids), row % 3);
                assert_true(close_to(at(t, i), p * cos(angle) - q * sin(angle), 1e-13));
                assert_true(close_to(at(t, j), p * sin(angle) + q * cos(angle), 1e-13));
                assert_true(at(t, row * 6 + 4 + pair) == at(constant(x), row * 6 + 4 + pair));
            }
        tensor_drop(&c->heap, t);
    }
    return OK;
}

static Status bad_calls_are_refused(void *arg)
{
    Context *c = arg;
    Rng rng = { 46 };
    Build b = fresh(c);
    const AttentionAttr plain = { 0 }, mode = { .qk_matmul_output_mode = 4 }, cap = { .softcap = -1 },
                        window = { .left_window_size = -2 };
    const LinearAttentionAttr linear = { .kv_num_heads = 2, .q_num_heads = 3 }, needs = { 64, 2, 2, 0, UPDATE_DELTA };
    Node *q = DRAW(&b, &rng, F32, 1, 3, 2, 4), *k = DRAW(&b, &rng, F32, 1, 2, 5, 4),
         *flat = DRAW(&b, &rng, F32, 1, 2, 4);
    Node *one = DRAW(&b, &rng, F32, 1, 1, 5, 4);
    expect_refused(c, &b, CALL_ATTR(&b, attention, plain, q, k, k), "3 query heads do not share 2 key heads");
    expect_refused(c, &b, CALL_ATTR(&b, attention, plain, flat, flat, flat), "needs q_num_heads and kv_num_heads");
    expect_refused(c, &b, CALL_ATTR(&b, attention, mode, q, one, one), "qk_matmul_output_mode is 4");
    expect_refused(c, &b, CALL_ATTR(&b, attention, cap, q, one, one), "softcap is -1");
    expect_refused(c, &b, CALL_ATTR(&b, attention, window, q, one, one), "has windows of -2 and 0");
    expect_refused(c, &b, CALL_ATTR(&b, attention, plain, q, one, q), "do not fit");
    expect_refused(c, &b, CALL_ATTR(&b, attention, plain, q, one, one, DRAW(&b, &rng, F32, 2, 6)),
                   "attn_mask is f32[2,6]");
    expect_refused(c, &b, CALL_ATTR(&b, attention, plain, q, one, one, NULL, one), "go together");
    expect_refused(c, &b, CALL_ATTR(&b, linear_attention, linear, flat, flat, flat), "3 query heads do not share 2");
    expect_refused(c, &b, CALL_ATTR(&b, linear_attention, needs, flat, flat, flat), "do not go with the rule delta");
    static const char *const odd[] = { "Cosine" };
    const RecurrentAttr layout = { .layout = 2 }, unknown = { .activations = { 1, odd } }, none = { .layout = 0 };
    Node *x = DRAW(&b, &rng, F32, 3, 2, 2), *w = DRAW(&b, &rng, F32, 1, 4, 2), *r = DRAW(&b, &rng, F32, 1, 4, 4);
    expect_refused(c, &b, CALL_ATTR(&b, rnn, layout, x, w, r), "layout is 2");
    expect_refused(c, &b, CALL_ATTR(&b, rnn, unknown, x, w, r), "no activation Cosine");
    expect_refused(c, &b, CALL_ATTR(&b, gru, unknown, x, w, r), "1 activations where 2 are needed");
    expect_refused(c, &b, CALL_ATTR(&b, gru, none, x, w, r), "operand 1 is f32[1,4,2], wanted is f32[1,12,2]");
    Node *lens = build_i64s(&b, 2, (int64_t[]){ 3, 4 });
    expect_failure(c, CALL_ATTR(&b, rnn, none, x, w, r, NULL, lens), "sequence 1 has 4 steps of 3");
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(attention_by_hand)
TEST(forbidden_scores_do_not_leak)
TEST(reverse_is_forward_turned)
TEST(short_sequences_end)
TEST(stored_numbers)
TEST(chunks_are_steps)
TEST(states_hand_on)
TEST(turning_keeps_lengths)
TEST(bad_calls_are_refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_by_hand),
        cmocka_unit_test(test_forbidden_scores_do_not_leak),
        cmocka_unit_test(test_reverse_is_forward_turned),
        cmocka_unit_test(test_short_sequences_end),
        cmocka_unit_test(test_stored_numbers),
        cmocka_unit_test(test_chunks_are_steps),
        cmocka_unit_test(test_states_hand_on),
        cmocka_unit_test(test_turning_keeps_lengths),
        cmocka_unit_test(test_bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
