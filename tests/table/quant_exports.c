/* label: slow */
/* Stored models on codes, with unsigned and signed data: what the training graph computes, the file that is exported from it and
 * that file's pairs taken as integers have the same codes, each of them (api/deployed/parity.h). */
#include "api/deployed/parity.h"
#include "api/make/step.h"
#include "api/model/model.h"
#include "ir/role.h"
#include "support/stored.h"

enum { LOOKS = 2, STEPS = 2 };

static const char folder[] = QCC_BINARY_DIR "/tests/quant_exports";

/* One file on its way; what is bound stays where it is. */
typedef struct Case {
    Stored *s;
    qcc_context *cx;
    qcc_model *model, *file; /* what is trained, and what is exported of it */
    qcc_step *step;
    qcc_session *session;
    qcc_tensor *data; /* an input of the step each */
    size_t n_data;
    int64_t batch;
} Case;

static int64_t all_codes, all_ties;
static int n_none, n_open;

static void bind_data(Case *k)
{
    k->n_data = qcc_step_n_inputs(k->step);
    k->data = NEWS(&k->s->c.arena, qcc_tensor, k->n_data);
    for (size_t i = 0; i < k->n_data; i++) {
        qcc_value_info v = { .size = sizeof(qcc_value_info) };
        MUST(k, qcc_step_input(k->step, i, &v));
        k->data[i] = stored_draw(k->s, v.name,
                                 type_tensor(&k->s->c.ir.types, (DType)v.shape.dtype, v.shape.rank, v.shape.dims), 2);
        k->batch = i ? k->batch : v.shape.dims[0];
        MUST(k, qcc_bind(k->session, v.name, &k->data[i]));
    }
}

/* What is bound to an input of a graph, in that graph's types. */
static const Tensor *bound(Case *k, const Node *n)
{
    for (size_t i = 0; i < k->n_data; i++) {
        qcc_value_info v = { .size = sizeof(qcc_value_info) };
        MUST(k, qcc_step_input(k->step, i, &v));
        if (strcmp(v.name, n->name) != 0)
            continue;
        Tensor *t = NEW(&k->cx->scratch, Tensor);
        *t = (Tensor){
            .type = n->type, .data = (void *)(uintptr_t)k->data[i].data, .bytes = k->data[i].bytes, .refs = 1
        };
        return t;
    }
    return NULL;
}

/* What a graph reads: data, states, and that all samples count. */
static const Tensor **inputs_of(Case *k, const Graph *g)
{
    const Tensor **list = NEWS(&k->cx->scratch, const Tensor *, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        list[i] = n->op == OP_state ? session_view(k->session->run, n->name) : bound(k, n);
        if (!list[i]) {
            Tensor *ones = tensor_new(&k->cx->scratch, n->type);
            HOLDS(k, node_role(n).role == INPUT_valid, "nothing is bound to %s\n", n->name);
            for (int64_t e = 0; e < tensor_elements(ones); e++)
                tensor_set_f64(ones, e, 1);
            list[i] = ones;
        }
    }
    return list;
}

static Status compare(void *arg)
{
    Case *k = arg;
    Parity p;
    const Batch batch = { .rows = k->batch, .valid = k->batch };
    const EvalOptions how = { 0 };
    TRY(parity_open(&p, k->step, k->file, &k->step->arena));
    TRY(parity_batch(&p, &how, &k->cx->memory, inputs_of(k, p.training), inputs_of(k, k->file->graph), &batch));
    const ParitySum codes = parity_sum(&p, PARITY_CODES), stored = parity_sum(&p, PARITY_STORED);
    HOLDS(k, parity_holds(&p), "%lld of %lld codes differ, %zu values are not there, first %s; stored: first %s\n",
          (long long)codes.differ, (long long)codes.n, codes.unmatched, codes.first ? codes.first->name : "none",
          stored.first ? stored.first->name : "none");
    all_codes += codes.n;
    all_ties += codes.ties;
    return OK;
}

/* Whether weights have learned scales whose number is open while the batch is: an exporter cut them by computed sizes. */
static bool is_open_when_written(const Case *k)
{
    return strstr(k->s->how, "w4a8") && strstr(k->s->path, "-dynraw") &&
           (strstr(k->s->path, "/gru") || strstr(k->s->path, "/lstm"));
}

static Status go_through(void *arg)
{
    Case all = { .s = arg }, *k = &all;
    const qcc_context_options options = { .size = sizeof options, .report = stored_report, .user = k->s, .threads = 1 };
    const qcc_source source = qcc_file(k->s->path), again = qcc_file(stored_path(k->s, ".onnx"));
    const qcc_sink sink = qcc_to_file(stored_path(k->s, ".onnx"));
    qcc_value_info y = { .size = sizeof y };
    MUST(k, qcc_open(&options, &k->cx));
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    MUST(k, qcc_output(k->model, 0, &y));
    MUST(k,
         qcc_compile(k->model, arena_printf(&k->s->c.arena, "--loss mse:%s --quant %s", y.name, k->s->how), &k->step));
    if (!module_graph(k->step->module, "observe")) { /* it has no product */
        n_none++;
        qcc_close(k->cx);
        return OK;
    }
    MUST(k, qcc_start(k->step, NULL, &k->session));
    bind_data(k);
    for (int i = 0; i < LOOKS; i++)
        MUST(k, qcc_run(k->session, QCC_OBSERVE, NULL));
    for (int i = 0; i < STEPS; i++)
        MUST(k, qcc_run(k->session, QCC_STEP, NULL));
    if (is_open_when_written(k)) {
        assert_int_equal(qcc_export_session(k->session, NULL, &sink), QCC_UNSUPPORTED);
        n_open++;
        qcc_close(k->cx);
        return OK;
    }
    MUST(k, qcc_export_session(k->session, NULL, &sink));
    MUST(k, qcc_read(k->cx, &again, arena_printf(&k->s->c.arena, "--batch %lld", (long long)k->batch), &k->file));
    MUST(k, context_call(k->cx, compare, k));
    qcc_close(k->cx);
    return OK;
}

static void codes_are_the_same_everywhere(void **state)
{
    static const char *const specs[] = { "w8a8", "w8a8,a=int8:asym:ema", "w4a8" };
    static const char *const files[] = { "/tests/data/exports/*-*.onnx", "/tests/data/pytorch/*-dyn.onnx",
                                         "/tests/data/pytorch/*-dynraw.onnx" };
    size_t seen = 0;
    int bad = 0;
    (void)state;
    stored_folder(folder);
    for (size_t i = 0; i < COUNT(specs) * COUNT(files); i++)
        bad += stored_each(files[i % COUNT(files)], specs[i / COUNT(files)], folder, go_through, &seen);
    print_message("%zu files, %d without codes; %lld codes, %lld from within an ulp of a tie\n", seen, n_none,
                  (long long)all_codes, (long long)all_ties);
    assert_int_equal(bad, 0);
    assert_true(all_codes && n_none <= 6);
    assert_true(n_open > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(codes_are_the_same_everywhere) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
