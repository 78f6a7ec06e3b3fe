/* Whole steps in bf16 on the engine cpu, products by the level's own loops: the same bits with one, two and three threads and
 * from run to run, a loss near that of the reference, and the reference's bits where they are asked for. */
#include <math.h>
#include <string.h>

#include "api/make/step.h"
#include "ops/kernels/kernels.h"
#include "support/stored.h"

enum { CLASSES = 5, STEPS = 2, RUNS = 6 };

typedef struct Run {
    const char *device;
    int threads, exact;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session;
    double loss;
} Run;

typedef struct Case {
    Stored *s;
    Run runs[RUNS];
    qcc_tensor *data;
} Case;

static int64_t compared, moved;

static void open_run(Case *k, Run *r)
{
    const qcc_context_options options = { .size = sizeof options,
                                          .report = stored_report,
                                          .user = k->s,
                                          .threads = r->threads,
                                          .device = r->device,
                                          .exact = r->exact };
    const qcc_source source = qcc_file(k->s->path);
    MUST(k, qcc_open(&options, &r->cx));
    MUST(k, qcc_read(r->cx, &source, NULL, &r->model));
    MUST(k, qcc_compile(r->model, "--optimizer sgd --lr 1e-2 --amp bf16", &r->step));
    MUST(k, qcc_start(r->step, NULL, &r->session));
}

static void train(Case *k, Run *r)
{
    const size_t n = qcc_step_n_inputs(r->step);
    qcc_result result = { .size = sizeof result };
    if (!k->data) {
        k->data = NEWS(&k->s->c.arena, qcc_tensor, n + 1);
        for (size_t i = 0; i < n; i++)
            k->data[i] = stored_draw(k->s, r->step->inputs[i].name, r->step->inputs[i].type, CLASSES);
    }
    for (size_t i = 0; i < n; i++)
        MUST(k, qcc_bind(r->session, r->step->inputs[i].name, &k->data[i]));
    for (int i = 0; i < STEPS; i++)
        MUST(k, qcc_run(r->session, QCC_STEP, &result));
    r->loss = result.loss;
}

/* Bits, since the types of two contexts are not the same objects. */
static int64_t states_that_differ(Case *k, const Run *x, const Run *y)
{
    size_t n, m;
    int64_t differ = 0;
    State *a = session_states(x->session->run, &n), *b = session_states(y->session->run, &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        const Tensor *left, *right;
        assert_int_equal(session_value(x->session->run, &a[i], &left), OK);
        assert_int_equal(session_value(y->session->run, &b[i], &right), OK);
        HOLDS(k, !left == !right, "state %s is there in one run alone\n", a[i].name);
        differ += left && (left->bytes != right->bytes || memcmp(left->data, right->data, left->bytes) != 0);
        compared++;
    }
    return differ;
}

static Status visit(void *stored)
{
    Case k = { .s = stored,
               .runs = { { .device = "reference", .threads = 1 },
                         { .device = "cpu", .threads = 1 },
                         { .device = "cpu", .threads = 2 },
                         { .device = "cpu", .threads = 3 },
                         { .device = "cpu", .threads = 2 },
                         { .device = "cpu", .threads = 2, .exact = 1 } } };
    const Run *reference = &k.runs[0], *first = &k.runs[1];
    for (int i = 0; i < RUNS; i++) {
        open_run(&k, &k.runs[i]);
        train(&k, &k.runs[i]);
    }
    for (int i = 2; i + 1 < RUNS; i++)
        HOLDS(&k, states_that_differ(&k, first, &k.runs[i]) == 0,
              "run %d of %d threads has other bits than the first\n", i, k.runs[i].threads);
    HOLDS(&k, states_that_differ(&k, reference, &k.runs[RUNS - 1]) == 0, "exact, it has other bits than the %s\n",
          reference->device);
    moved += states_that_differ(&k, reference, first);
    HOLDS(&k, fabs(first->loss - reference->loss) <= 0x1p-6 * (1 + fabs(reference->loss)), "the loss is %g, not %g\n",
          first->loss, reference->loss);
    for (int i = 0; i < RUNS; i++)
        qcc_close(k.runs[i].cx);
    return OK;
}

static void stored_models(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/*-*.onnx", NULL, NULL, visit, &seen), 0);
    print_message("%zu models, %d states compared, %d not those of the reference\n", seen, (int)compared, (int)moved);
    assert_true(seen >= 57 && compared > 1000);
    assert_true(!kernels_packed_bf16(kernels_best()) || moved > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
