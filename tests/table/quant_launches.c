/* What quantization adds to a step: of a batch of data nothing is quantized, dequantized or observed in a launch of its own,
 * and launches that do nothing else move few of the bytes. */
#include <string.h>

#include "api/make/launches.h"
#include "api/make/quant_launches.h"
#include "api/make/step.h"
#include "ops/card/cards.h"
#include "support/stored.h"

/* Of the LSTM's export: W and R of two layers, and that of its Gemm; states that meet R in two layers, two ways and all
 * steps but the first. */
enum { N_WEIGHTS = 5, N_STATES = 2 * 2 * 5 };

typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    int calls, n, n_over_data; /* calls of quantizers and observers; launches of quantization alone, over data */
    double share;              /* of all bytes that launches read and write */
} Case;

static double bytes_of(const Launch *l)
{
    return launch_bytes(l->in, l->n_in) + launch_bytes(l->out, l->n_out);
}

static bool is_call(const Launch *l)
{
    const QuantCard *card = &op_of(l->node)->quant;
    return l->kind == LAUNCH_CALL && (card->quantizes || card->dequantizes || l->node->op == OP_observe);
}

static Status count(void *thing)
{
    Case *k = thing;
    Arena *arena = &k->s->c.arena;
    const LaunchMap m = launch_map(module_graph(k->step->module, "step"), NULL, arena);
    const Program *p = m.low.program;
    double all = 0;
    if (!p)
        return MISMATCH;
    const QuantLaunches q = quant_launches(&m, arena);
    for (int i = 0; i < p->n_launches; i++)
        all += bytes_of(&p->launches[i]);
    for (int i = 0; i < q.n_over_data; i++) {
        k->calls += is_call(&p->launches[q.over_data[i]]);
        printf("  %d %s\n", q.over_data[i], launch_words(arena, p, q.over_data[i], 1));
    }
    k->n = q.n;
    k->n_over_data = q.n_over_data;
    k->share = q.data_bytes / all;
    printf("%d launches, %d of quantization alone, %d over data: %.1f %% of %.0f bytes\n", p->n_launches, q.n,
           q.n_over_data, 100 * k->share, all);
    return OK;
}

static Case counted(Stored *s, const char *options)
{
    Case k = { .s = s };
    const qcc_context_options o = { .size = sizeof o, .report = stored_report, .user = s };
    const qcc_source source = qcc_file(s->path);
    assert_int_equal(qcc_open(&o, &k.cx), QCC_OK);
    assert_int_equal(qcc_read(k.cx, &source, NULL, &k.model), QCC_OK);
    assert_int_equal(qcc_compile(k.model, options, &k.step), QCC_OK);
    assert_int_equal(guarded(k.step->module->ir->memory, count, &k), OK);
    qcc_close(k.cx);
    return k;
}

static Status convolutions(void *stored)
{
    const Case k = counted(stored, "--quant w8a8 --optimizer adamw --loss cross_entropy --batch 64");
    assert_int_equal(k.calls, 0);
    assert_true(k.n_over_data <= 7 && k.share < 0.25);
    return OK;
}

static Status transformer(void *stored)
{
    const Case k = counted(stored, "--quant w8a8 --optimizer adamw --loss cross_entropy --batch 8");
    assert_int_equal(k.calls, 0);
    assert_true(k.share < 0.25);
    return OK;
}

/* Weights of recurrent layers are codes once a step, whatever the number of steps that are walked: each has a launch that
 * finds its ranges, one for its scales, and shares the one that makes its numbers. */
static Status recurrent(void *stored)
{
    const Case k = counted(stored, "--quant w8a8 --optimizer adamw --loss cross_entropy:logits,axis=1 --batch 4");
    assert_int_equal(k.calls, 0);
    assert_true(k.n <= 3 * N_WEIGHTS + 2 && k.share < 0.05);
    return OK;
}

/* Where the layers are opened, states are quantized by what makes them; each has one launch more, which makes its number
 * for the gradient of R. */
static Status opened(void *stored)
{
    const Case k = counted(stored, "--quant w8a8 --quant-op op:LSTM=a=uint8:asym:ema --optimizer adamw "
                                   "--loss cross_entropy:logits,axis=1 --batch 4");
    assert_int_equal(k.calls, 0);
    assert_true(k.n <= 4 * (2 * N_WEIGHTS - 1) + N_STATES + 10 && k.share < 0.05);
    return OK;
}

static Status floats(void *stored)
{
    const Case k = counted(stored, "--optimizer adamw --loss cross_entropy --batch 8");
    assert_int_equal(k.n_over_data, 0);
    return OK;
}

static void launches_are_shared(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/examples/models/cnn.qir", NULL, NULL, convolutions, &seen), 0);
    assert_int_equal(stored_each("/examples/models/gpt.qir", NULL, NULL, transformer, &seen), 0);
    assert_int_equal(stored_each("/examples/models/cnn.qir", NULL, NULL, floats, &seen), 0);
    assert_int_equal(stored_each("/tests/data/exports/lstm-training-16-static.onnx", NULL, NULL, recurrent, &seen), 0);
    assert_int_equal(stored_each("/tests/data/exports/lstm-training-16-static.onnx", NULL, NULL, opened, &seen), 0);
    assert_int_equal(seen, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(launches_are_shared) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
