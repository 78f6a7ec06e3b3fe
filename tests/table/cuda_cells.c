/* label: slow */
/* Recurrent layers and the way back through them, run on this machine thread by thread (support/cuda_sim.hpp): the bits of the evaluator,
 * whether gradients compute again what entered the gates or take what the layer kept. */
#include "codegen/cuda/cuda_call.h"
#include "ops/recurrent/recurrent.h"
#include "support/calls.h"
#include "support/cuda_host.h"
#include "support/seed.h"

/* Cells over time: blocks of one sequence and of several, states and what is sent that do not fit in the memory of a block, sums of
 * several segments, sequences that end early. */
typedef struct CellCase {
    Op op, back;
    int64_t steps, batch, input, hidden;
    bool both, lengths, reset_first;
} CellCase;

static RecurrentAttr attr_of_cell(const CellCase *k)
{
    return (RecurrentAttr){ .direction = k->both ? RUN_BIDIRECTIONAL : RUN_FORWARD,
                            .linear_before_reset = !k->reset_first };
}

static Node *draw_cell(Build *b, Rng *rng, const CellCase *k, Node **ins)
{
    const bool lstm = k->op == OP_lstm;
    const int64_t d = 1 + k->both, wide = (lstm ? 4 : k->op == OP_gru ? 3 : 1) * k->hidden;
    const int64_t x[] = { k->steps, k->batch, k->input }, w[] = { d, wide, k->input }, r[] = { d, wide, k->hidden };
    const RecurrentAttr at = attr_of_cell(k);
    ins[0] = draw(b, rng, F32, 3, x);
    ins[1] = draw(b, rng, F32, 3, w);
    ins[2] = sample_tensor(b, rng, F32, 3, r, -0.1, 0.1);
    ins[3] = draw(b, rng, F32, 2, (int64_t[]){ d, 2 * wide });
    ins[4] = k->lengths ? sample_tensor(b, rng, I32, 1, &k->batch, 0, (double)k->steps) : NULL;
    return build_node_n(b, k->op, &at, lstm ? 8 : 6, ins, lstm ? 3 : 2);
}

/* The same gradient from what the layer kept. */
static void add_kept(CudaHost *h, Context *c, Build *b, Op op, const Node *back, Node **ins, int results)
{
    const int n = back->n_in - results - 1;
    Node *call = build_node_n(b, op, back->attr, n, ins, results + RECURRENT_KEPT);
    const Tensor *want = cuda_host_values(c, call);
    assert_true(cuda_host_add_call(h, call, cuda_host_operands(c, call), want));
    for (int i = 0; i < RECURRENT_KEPT; i++)
        ins[back->n_in + i] = build_const(b, want->items[results + i]);
    Node *again = build_node_n(b, back->op, back->attr, back->n_in + RECURRENT_KEPT, ins, type_results(back->type));
    assert_true(cuda_host_add_call(h, again, cuda_host_operands(c, again), cuda_host_values(c, again)));
}

static Status run_cells(void *context)
{
    static const CellCase cases[] = {
        { OP_lstm, OP_lstm_grad, 3, 300, 2, 5, true, true, false },
        { OP_gru, OP_gru_grad, 2, 270, 3, 4, false, true, true },
        { OP_rnn, OP_rnn_grad, 2, 2, 2, 2050, false, false, false },
        { OP_lstm, OP_lstm_grad, 2, 1, 2, 520, false, false, false },
        { OP_gru, OP_gru_grad, 2, 1, 2, 690, false, false, true },
        { OP_gru, OP_gru_grad, 2, 2, 2, 700, false, false, false },
        { OP_rnn, OP_rnn_grad, 2, 1, 2, 5200, false, false, false },
    };
    Context *c = context;
    CudaHost h;
    cuda_host_open(&h, c, "cells");
    for (size_t i = 0; i < COUNT(cases); i++) {
        Rng rng = { seed_of("cells", i) };
        Build b = fresh(c);
        Node *ins[12 + RECURRENT_KEPT] = { NULL }, *y = draw_cell(&b, &rng, &cases[i], ins);
        const bool lstm = cases[i].op == OP_lstm;
        const int n = lstm ? 8 : 6, results = type_results(y->type);
        const Tensor *want = cuda_host_values(c, y);
        assert_true(cuda_host_add_call(&h, y, cuda_host_operands(c, y), want));
        ins[n] = draw(&b, &rng, F32, 4, type_result(y->type, 0)->dims);
        ins[n + results] = build_const(&b, want->items[0]);
        const RecurrentAttr at = attr_of_cell(&cases[i]);
        Node *back = build_node_n(&b, cases[i].back, &at, n + results + 1, ins, n - 1);
        const Tensor *reached = cuda_host_values(c, back);
        assert_true(cuda_host_add_call(&h, back, cuda_host_operands(c, back), reached));
        if (recurrent_keeps(lstm ? &cell_lstm : cases[i].op == OP_gru ? &cell_gru : &cell_rnn, &at, F32, &c->arena))
            add_kept(&h, c, &b, lstm ? OP_lstm_kept : OP_gru_kept, back, ins, results);
    }
    cuda_host_run(&h);
    assert_false(h.wrong);
    return OK;
}

static void cells(void **state)
{
    (void)state;
    if (!cuda_host_there())
        skip();
    with_context(run_cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(cells) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
