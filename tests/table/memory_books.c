/* Memory by the books is memory that a session holds: of the models of the examples and what they may be trained with,
 * every state by what it is for and by its type; and the parts of the books add up to their sums. */
#include <stdio.h>
#include <string.h>

#include "api/make/memory.h"
#include "qcc/qcc.h"
#include "runtime/session/session.h"
#include "unit/check.h"

enum { ROOM = 512 };

static const char *const models[] = {
    "examples/models/mlp.qir",       "examples/models/cnn.qir",   "examples/models/gpt.qir",
    "examples/models/depthwise.qir", "tests/data/torch/cnn.onnx", "tests/data/torch/lstm.onnx",
};

/* clang-format off */
/*     options                                                               a part that a session has then, and its type */
#define WAYS(_)                                                                                                           \
    _( "--optimizer sgd",                                                    trained,    F32   )                          \
    _( "--optimizer adamw",                                                  moments,    F32   )                          \
    _( "--optimizer momentum --ema 0.9 --clip-norm 1",                       averages,   F32   )                          \
    _( "--optimizer adamw --amp bf16",                                       shadows,    BF16  )                          \
    _( "--optimizer adamw --amp fp16 --accumulate 2",                        counters,   I64   )                          \
    _( "--optimizer adamw --quant w8a8",                                     ranges,     F32   )                          \
    _( "--optimizer adamw --quant int8-weights",                             scales,     F32   )                          \
    _( "--optimizer adamw:states=8bit,states_min=256",                       moments,    U8    )                          \
    _( "--optimizer adamw:states=8bit,states_min=256 --quant int8-weights",  scales,     F32   )                          \
    _( "--optimizer adamw:states=4bit,states_min=256 --quant bf16-weights",  trained,    BF16  )                          \
    _( "--optimizer lion:states=fp8,states_min=256 --quant w=uint4:row:asym:sr:stored,a=off", trained, U4 )              \
    _( "--optimizer lion --clip-value 0.5",                                    statistics, F32   )
/* clang-format on */

typedef struct Way {
    const char *options;
    FootprintPart part;
    DType type;
} Way;

static const Way ways[] = {
#define WAY(options, part, type) { options, FOOTPRINT_##part, type },
    WAYS(WAY)
#undef WAY
};

static int64_t found[COUNT(ways)];

typedef struct Case {
    qcc_step *step;
    const char *model;
    size_t way;
} Case;

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static bool is_trained(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->flags & NODE_TRAINED && name && strcmp(g->inputs[i]->name, name) == 0)
            return true;
    return false;
}

/* What a state is for. */
static FootprintPart part_of(const Node *n)
{
    static const FootprintPart parts[STATE_ROLE_COUNT] = {
        [STATE_weight] = FOOTPRINT_untrained, [STATE_statistic] = FOOTPRINT_statistics,
        [STATE_moment] = FOOTPRINT_moments,   [STATE_shadow] = FOOTPRINT_shadows,
        [STATE_master] = FOOTPRINT_masters,   [STATE_scaler] = FOOTPRINT_counters,
        [STATE_counter] = FOOTPRINT_counters, [STATE_length] = FOOTPRINT_counters,
        [STATE_rate] = FOOTPRINT_counters,    [STATE_ema] = FOOTPRINT_averages,
        [STATE_quant] = FOOTPRINT_ranges,
    };
    const RoleMark mark = node_role(n);
    if (n->flags & NODE_TRAINED)
        return FOOTPRINT_trained;
    return mark.role == STATE_quant && is_trained(n->graph, mark.of) ? FOOTPRINT_scales : parts[mark.role];
}

static void add_up(const char *model, const Way *w, const StepMemory *m)
{
    uint64_t sums[5] = { m->weights, m->optimizer, m->other_state, m->gradients, m->activations - m->values };
    static const char *const words[5] = { "weights", "optimizer", "other_state", "gradients", "activations" };
#define SUM(part, sum, text)                                                                                           \
    for (int i = 0; i < 5; i++)                                                                                        \
        sums[i] -= strcmp(#sum, words[i]) == 0 ? footprint_sum(m->parts[FOOTPRINT_##part]) : 0;
    FOOTPRINT_PARTS(SUM)
#undef SUM
    for (int i = 0; i < 5; i++)
        check_that(sums[i] == 0, "%s %s: %s differ by %lld", model, w->options, words[i], (long long)sums[i]);
    uint64_t peak = 0;
    for (int i = 0; i < ARENA_KINDS; i++)
        peak += footprint_sum(m->arena.peak[i]);
    check_that(!m->estimated, "%s %s: %s", model, w->options, m->why);
    const bool loops = strstr(w->options, "--accumulate") != NULL; /* then nothing lies between the two sides */
    check_that(loops == !footprint_sum(m->arena.kept) && footprint_sum(m->arena.kept) <= peak &&
                   peak <= m->values + m->gradients,
               "%s %s: %llu kept, %llu at the peak of %llu", model, w->options,
               (unsigned long long)footprint_sum(m->arena.kept), (unsigned long long)peak,
               (unsigned long long)(m->values + m->gradients));
}

/* A step, on zeros: what is made with the first one is there then. */
static Status run_step(Case *k, Session *s)
{
    RunResult result;
    for (size_t i = 0; i < k->step->n_inputs; i++)
        TRY(session_bind(s, k->step->inputs[i].name, tensor_new(&k->step->arena, k->step->inputs[i].type)));
    if (module_graph(k->step->module, "observe"))
        TRY(session_observe(s));
    return session_run(s, RUN_STEP, &result);
}

static Status look(void *arg)
{
    Case *k = arg;
    const Way *w = &ways[k->way];
    qcc_session *session;
    StepMemory m = step_memory(k->step);
    add_up(k->model, w, &m);
    TRY(session_start(k->step, 0, NULL, &session));
    TRY(run_step(k, session->run));
    const Graph *g = module_graph(k->step->module, "step");
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        const Tensor *held = n->op == OP_state ? session_view(session->run, n->name) : NULL;
        if (!held)
            continue;
        m.parts[part_of(n)][held->type->dtype] -= held->bytes;
        found[k->way] += part_of(n) == w->part && held->type->dtype == w->type;
    }
    for (int part = 0; part <= FOOTPRINT_untrained; part++)
        for (int type = 0; part != FOOTPRINT_constants && type < DTYPE_COUNT; type++)
            check_that(m.parts[part][type] == 0, "%s %s: part %d of %s differs by %lld", k->model, w->options, part,
                       dtype_name((DType)type), (long long)m.parts[part][type]);
    return OK;
}

static void look_at(const char *model, size_t way)
{
    char path[ROOM], options[ROOM];
    qcc_context *cx;
    qcc_model *m;
    Case k = { .model = model, .way = way };
    const qcc_context_options o = { .size = sizeof o, .report = report, .threads = 1 };
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    snprintf(path, sizeof path, QCC_SOURCE_DIR "/%s", model);
    snprintf(options, sizeof options, "--batch 4 %s", ways[way].options);
    const qcc_source source = qcc_file(path);
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    if (qcc_compile(m, options, &k.step) != QCC_OK)
        print_error("%s %s\n", model, options);
    assert_non_null(k.step);
    assert_int_equal(context_call(cx, look, &k), QCC_OK);
    qcc_close(cx);
}

static void books_are_kept(void **state)
{
    (void)state;
    for (size_t way = 0; way < COUNT(ways); way++) {
        for (size_t m = 0; m < COUNT(models); m++)
            look_at(models[m], way);
        check_that(found[way] > 0, "%s: no session has what it is for", ways[way].options);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(books_are_kept) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
