/* Models whose sizes are the caller's, at one size after another: the engine cpu runs a program for each, which it makes once
 * while it is among the last few, in the bits of the reference. */
#include <math.h>

#include "api/hall/lower.h"
#include "api/make/step.h"
#include "ir/text/parse.h"
#include "runtime/host/runners.h"
#include "support/seed.h"
#include "support/stored.h"

enum { CLASSES = 3, SIDES = 2, FULL = 8, MOST_INPUTS = 8, COLUMNS = 5 };

/* The fifth size sends the first away, and that comes again. */
static const int64_t batches[] = { FULL, 3, FULL, 1, FULL + 5, 3, 6, FULL, 1, FULL + 5, FULL, 1 };

typedef struct Case {
    Stored *s;
    qcc_context *cx[SIDES]; /* of the reference, of cpu */
    qcc_model *model[SIDES];
    LaunchWatch watch;
    int64_t launches, rows; /* of the run under way; of the first input */
} Case;

static int64_t models, runs, compared;

static void launched(void *user, const struct Program *p, int launch, int n, double began, double ended)
{
    Case *k = user;
    const Type *x = p->graph->inputs[0]->type;
    assert_true(launch >= 0 && ended >= began);
    k->launches += n;
    k->rows = x->rank ? x->dims[0] : 0;
}

static void open_side(Case *k, int side, int threads)
{
    static const char *const devices[SIDES] = { "reference", "cpu" };
    const qcc_context_options options = {
        .size = sizeof options, .report = stored_report, .user = k->s, .threads = threads, .device = devices[side]
    };
    const qcc_source source = qcc_file(k->s->path);
    MUST(k, qcc_open(&options, &k->cx[side]));
    MUST(k, qcc_read(k->cx[side], &source, NULL, &k->model[side]));
}

/* What an open dimension is of a batch of n: the first its rows, each other the same in all inputs. */
static int64_t size_of(const Value *v, int axis, int64_t n)
{
    return v->type->dims[axis] >= 0 ? v->type->dims[axis] : axis == 0 ? n : 4 + n % 3;
}

static void run_both(Case *k, int64_t n, const char *how)
{
    qcc_tensor in[MOST_INPUTS], out[SIDES][MOST_INPUTS];
    const qcc_model *m = k->model[0];
    HOLDS(k, m->n_inputs <= MOST_INPUTS && m->n_outputs <= MOST_INPUTS, "has %zu inputs\n", m->n_inputs);
    for (size_t i = 0; i < m->n_inputs; i++) {
        int64_t dims[MAX_RANK];
        const Value *v = &m->inputs[i];
        for (int a = 0; a < v->type->rank; a++)
            dims[a] = size_of(v, a, n);
        const Type *type = type_tensor(&k->s->c.ir.types, v->type->dtype, v->type->rank, dims);
        in[i] = stored_draw(k->s, arena_printf(&k->s->c.arena, "%s%lld", v->name, (long long)n), type, CLASSES);
    }
    k->launches = 0;
    for (int e = 0; e < SIDES; e++) {
        for (size_t i = 0; i < m->n_outputs; i++)
            out[e][i] = (qcc_tensor){ .size = sizeof(qcc_tensor) };
        MUST(k, qcc_run_model(k->model[e], in, m->n_inputs, out[e], m->n_outputs));
    }
    HOLDS(k, k->launches > 0 && k->rows == in[0].dims[0], "%s %lld: %lld launches, of a program for %lld\n", how,
          (long long)n, (long long)k->launches, (long long)k->rows);
    for (size_t i = 0; i < m->n_outputs; i++) {
        HOLDS(k, tensor_same(stored_tensor(k->s, &out[0][i]), stored_tensor(k->s, &out[1][i])), "%s %lld: %s differs\n",
              how, (long long)n, m->outputs[i].name);
        compared++;
    }
    runs++;
}

static Status visit(void *stored)
{
    Case k = { .s = stored };
    k.watch = (LaunchWatch){ launched, &k };
    for (int e = 0; e < SIDES; e++)
        open_side(&k, e, 1 + (int)(seed_of(k.s->name, 0) % 2));
    k.cx[1]->watch = &k.watch;
    const bool open = graph_is_open(k.model[0]->graph);
    for (size_t i = 0; i < COUNT(batches) && open; i++)
        run_both(&k, batches[i], "batch");
    models += open;
    for (int e = 0; e < SIDES; e++)
        qcc_close(k.cx[e]);
    return OK;
}

static void stored_models(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/*-dynamic.onnx", NULL, NULL, visit, &seen), 0);
    assert_int_equal(stored_each("/tests/data/pytorch/*-dyn.onnx", NULL, NULL, visit, &seen), 0);
    print_message("%d models, %d runs, %d values compared\n", (int)models, (int)runs, (int)compared);
    assert_true(models >= 20 && runs == models * (int64_t)COUNT(batches));
}

/* ---- sessions ---- */

/* A step of eight samples, of which @eval takes any number: a convolution, a norm in its deployed form, a softmax. */
static const char step_text[] =
    "graph @step(%x: f32[8,3,6,6], state %w: f32[4,3,3,3] = kaiming(seed=1) trained) -> (%loss, %grad.w = %g, %w = %n) {\n"
    "    %c: f32[8,4,4,4] = conv(%x, %w)\n"
    "    %loss: f32[] = reduce_mean(%c, keepdims=false)\n"
    "    %g: f32[4,3,3,3] = exp(%w) side=backward\n"
    "    %n: f32[4,3,3,3] = sub(%w, %g) side=update\n"
    "}\n"
    "graph @eval(%x: f32[?,3,6,6], state %w: f32[4,3,3,3] = kaiming(seed=1)) -> (%y, %loss) {\n"
    "    const %s: f32[4] = [1, 2, 3, 4]\n"
    "    const %b: f32[4] = [0.5, 0, 1, -1]\n"
    "    %c: f32[?,4,4,4] = conv(%x, %w)\n"
    "    %z: f32[?,4,4,4] = batch_normalization(%c, %s, %b, %b, %s)\n"
    "    %r: f32[?,4,4,4] = relu(%z)\n"
    "    %f: f32[?,64] = flatten(%r)\n"
    "    %y: f32[?,64] = softmax(%f, axis=1)\n"
    "    %loss: f32[] = reduce_mean(%z, keepdims=false)\n"
    "}\n";

static void same_view(Case *k, qcc_session *const *session, const char *name, int64_t rows)
{
    qcc_tensor value[SIDES] = { { .size = sizeof(qcc_tensor) }, { .size = sizeof(qcc_tensor) } };
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_view(session[e], name, &value[e]));
    HOLDS(k, tensor_same(stored_tensor(k->s, &value[0]), stored_tensor(k->s, &value[1])), "%lld: %s differs\n",
          (long long)rows, name);
}

/* Between two steps, and in the middle of one. */
static void evaluate_both(Case *k, qcc_session *const *session, size_t i)
{
    const int64_t rows = batches[i], dims[SIDES][4] = { { FULL, 3, 6, 6 }, { rows, 3, 6, 6 } };
    qcc_tensor x[2];
    for (int j = 0; j < 2; j++)
        x[j] = stored_draw(k->s, j ? "eval" : "step", type_tensor(&k->s->c.ir.types, F32, 4, dims[j]), CLASSES);
    k->launches = 0;
    for (int e = 0; e < SIDES; e++) {
        MUST(k, qcc_bind(session[e], "x", &x[0]));
        MUST(k, qcc_run(session[e], i % 2 ? QCC_STEP : QCC_FORWARD, NULL));
        k->launches = 0;
        MUST(k, qcc_bind(session[e], "x", &x[1]));
        MUST(k, qcc_run(session[e], QCC_EVAL, NULL));
    }
    HOLDS(k, k->launches > 0 && k->rows == rows, "%lld launches for %lld\n", (long long)k->launches,
          (long long)k->rows);
    same_view(k, session, "y", rows);
    same_view(k, session, "loss", rows);
    for (int e = 0; e < SIDES && i % 2 == 0; e++) {
        MUST(k, qcc_bind(session[e], "x", &x[0]));
        MUST(k, qcc_run(session[e], QCC_BACKWARD | QCC_UPDATE, NULL));
    }
    same_view(k, session, "w", rows);
}

static Status evaluated_guarded(void *thing)
{
    static const char *const devices[SIDES] = { "reference", "cpu" };
    Case *k = thing;
    qcc_session *session[SIDES];
    const qcc_context_options options = { .size = sizeof options, .report = stored_report, .user = k->s, .threads = 2 };
    qcc_source source = qcc_bytes(step_text, sizeof step_text - 1);
    qcc_step *step;
    source.name = "step.qir";
    k->watch = (LaunchWatch){ launched, k };
    MUST(k, qcc_open(&options, &k->cx[0]));
    k->cx[0]->watch = &k->watch;
    MUST(k, qcc_read(k->cx[0], &source, NULL, &k->model[0]));
    MUST(k, qcc_compile(k->model[0], NULL, &step));
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_start(step, &(qcc_session_options){ sizeof(qcc_session_options), devices[e] }, &session[e]));
    for (size_t i = 0; i < COUNT(batches); i++)
        evaluate_both(k, session, i);
    qcc_close(k->cx[0]);
    return OK;
}

static void sessions(void **state)
{
    Stored s = { .name = "step" };
    Case k = { .s = &s };
    (void)state;
    context_open(&s.c);
    assert_int_equal(guarded(&s.c.memory, evaluated_guarded, &k), OK);
    context_close(&s.c);
}

/* ---- what is made, and when ---- */

static const char row_text[] = "graph @rows(%x: f32[?,?]) -> (%y, %n) {\n"
                               "    %e: f32[?,?] = exp(%x)\n"
                               "    %y: f32[?,?] = softmax(%e, axis=1)\n"
                               "    const %axes: i64[2] = [0, 1]\n"
                               "    %n: f32[] = reduce_sum(%y, %axes, keepdims=false)\n"
                               "}\n";
/* A product that widens what it reads. */
static const char narrow_text[] = "graph @narrow(%x: f32[?,?]) -> (%y) {\n"
                                  "    param %w: bf16[5,5] = kaiming(seed=1)\n"
                                  "    %h: bf16[?,?] = cast(%x, to=bf16)\n"
                                  "    %m: bf16[?,5] = matmul(%h, %w)\n"
                                  "    %y: f32[?,5] = cast(%m, to=f32)\n"
                                  "}\n";
/* What it gives nobody knows before it runs. */
static const char loose_text[] = "graph @loose(%x: f32[?,?]) -> (%y) {\n"
                                 "    %y: i64[2,?] = non_zero(%x)\n"
                                 "}\n";

typedef struct Made {
    Context c;
    const Engine *engine;
    Values *values;
    int graph, asked, told;
    int64_t most; /* rows that there is a program for; 0: any */
    Lowering how;
    Arena messages; /* and what passes note meanwhile, as it is between two calls of the library */
    ArenaMark empty;
} Made;

static const struct Program *counted(void *maker, Graph *g, const Type *const *types, bool tells, Arena *arena)
{
    Made *m = maker;
    m->asked++;
    m->told += tells;
    if (m->most && types[0]->dims[0] > m->most)
        return NULL;
    return lower_for_engine(&m->how, g, types, tells, arena);
}

static void open_made(Made *m, const char *text)
{
    Module *module = NULL;
    assert_int_equal(parse_module(&m->c.ir, &m->c.arena, str(text), "t.qir", NULL, NULL, &module), OK);
    const Executable x = { .graph = module->graphs[0], .n_parts = 1, .programs = counted, .maker = m };
    m->engine = engine_find("cpu");
    assert_int_equal(m->engine->open(&m->c.ir, &(EngineOptions){ 0 }, 1, &m->c.arena, &m->values), OK);
    assert_int_equal(m->engine->load(m->values, &x, &m->graph), OK);
    assert_int_equal(m->asked, 0); /* what it would be made for nobody knows */
}

static Tensor *rows_of(Made *m, int64_t rows)
{
    Tensor *t = tensor_new(&m->c.arena, type_tensor(&m->c.ir.types, F32, 2, (int64_t[]){ rows, COLUMNS }));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, (double)(i % 7));
    return t;
}

static const Tensor *got(Made *m, int result)
{
    const Tensor *t;
    assert_int_equal(m->engine->get(m->values, value_result(m->graph, result), &t), OK);
    assert_non_null(t);
    return t;
}

/* Whether a program ran it. */
static bool runs_program(Made *m, Tensor *t)
{
    const ValueAt x = value_kept(0);
    assert_int_equal(m->engine->put(m->values, 1, &x, &t, PUT_LEND), OK);
    assert_int_equal(m->engine->begin(m->values, m->graph, &(EngineRun){ .inputs = &x }), OK);
    const bool programmed = m->engine->programmed(m->values, m->graph);
    assert_int_equal(m->engine->run(m->values, m->graph, 0), OK);
    return programmed;
}

static uint64_t made(const Made *m)
{
    EngineStats stats;
    m->engine->stats(m->values, &stats);
    return stats.made;
}

/* Sizes come and go: the last few are there, what was not wanted for longest is made again. */
static Status made_once(void *thing)
{
    static const struct {
        int64_t rows;
        int made;
    } wanted[] = { { 3, 1 }, { 8, 2 },  { 3, 2 }, { 1, 3 }, { 13, 4 }, { 8, 4 }, { 3, 4 },
                   { 5, 5 }, { 13, 5 }, { 8, 5 }, { 3, 5 }, { 1, 6 },  { 5, 7 }, { 3, 7 } };
    Made *m = thing;
    _Static_assert(RUNNERS_KEPT == 4, "the table says what goes");
    open_made(m, row_text);
    for (size_t i = 0; i < COUNT(wanted); i++) {
        assert_true(runs_program(m, rows_of(m, wanted[i].rows)));
        assert_int_equal(got(m, 0)->type->dims[0], wanted[i].rows);
        assert_true(fabs(tensor_get_f64(got(m, 1), 0) - (double)wanted[i].rows) < 0.01); /* each row has the sum 1 */
        assert_int_equal(made(m), wanted[i].made);
        assert_int_equal(m->asked, wanted[i].made);
    }
    m->engine->close(m->values);
    return OK;
}

/* Where there is none for any size that is said once, and after a few it is hardly asked for. */
static Status never_made(void *thing)
{
    Made *m = thing;
    open_made(m, loose_text);
    for (int64_t rows = 1; rows < 12; rows++) {
        assert_false(runs_program(m, rows_of(m, rows % 7 + 1)));
        assert_int_equal(got(m, 0)->type->dims[0], 2);
    }
    assert_true(made(m) == 0 && m->told == 1);
    assert_in_range(m->asked, 1, 4);
    m->engine->close(m->values);
    return OK;
}

/* What was too large a few times does not keep what is smaller from its program for ever. */
static Status made_later(void *thing)
{
    enum { PATIENCE = 17 };
    Made *m = thing;
    int waited = 0;
    m->most = 100;
    open_made(m, row_text);
    for (int64_t rows = 101; rows < 106; rows++)
        assert_false(runs_program(m, rows_of(m, rows)));
    assert_int_equal(m->asked, 4);
    Tensor *few = rows_of(m, 7);
    while (waited < PATIENCE && !runs_program(m, few))
        waited++;
    assert_in_range(waited, 1, PATIENCE - 1);
    assert_true(runs_program(m, rows_of(m, 8))); /* at once, from then on */
    assert_true(made(m) == 2 && m->told == 1);
    m->engine->close(m->values);
    return OK;
}

/* Two sizes in turn want no memory, and have their values, and what a call works in, in one place. */
static Status in_turn(void *thing)
{
    Made *m = thing;
    const Memory *memory = &m->c.memory;
    open_made(m, narrow_text);
    Tensor *less = rows_of(m, 19000), *more = rows_of(m, 20000);
    for (int i = 0; i < 3; i++)
        assert_true(runs_program(m, more));
    const uint64_t one = memory->used;
    for (int i = 0; i < 4; i++)
        assert_true(runs_program(m, i % 2 ? more : less));
    const uint64_t both = memory->used, requests = memory->requests;
    for (int i = 0; i < 20; i++)
        assert_true(runs_program(m, i % 2 ? more : less));
    assert_int_equal(memory->requests, requests);
    assert_int_equal(memory->used, both);
    assert_true(both - one < less->bytes); /* a second program, and no second place */
    m->engine->close(m->values);
    return OK;
}

/* A graph that works in the room of another: what that one has goes, and comes, at its size, once this one is gone. */
static Status in_one_room(void *thing)
{
    Made *m = thing;
    Arena own;
    Module *module = NULL;
    Tensor *t = rows_of(m, 19000);
    const Memory *memory = &m->c.memory;
    open_made(m, narrow_text);
    const int first = m->graph;
    assert_int_equal(parse_module(&m->c.ir, &m->c.arena, str(row_text), "t.qir", NULL, NULL, &module), OK);
    assert_true(runs_program(m, t));
    const uint64_t used = memory->used;
    arena_open(&own, &m->c.memory);
    const Executable x = {
        .graph = module->graphs[0], .n_parts = 1, .programs = counted, .maker = m, .arena = &own, .room_of = &first
    };
    assert_int_equal(m->engine->load(m->values, &x, &m->graph), OK);
    assert_true(runs_program(m, rows_of(m, 100000)));
    assert_int_equal(got(m, 0)->type->dims[0], 100000);
    const Tensor *before;
    assert_int_equal(m->engine->get(m->values, value_result(first, 0), &before), OK);
    assert_null(before);
    m->engine->unload(m->values, m->graph);
    arena_close(&own);
    m->graph = first;
    assert_true(runs_program(m, t));
    assert_int_equal(got(m, 0)->type->dims[0], 19000);
    assert_true(memory->used <
                used + 100000 * COLUMNS * 2 * sizeof(float)); /* the input, and no room for two results */
    m->engine->close(m->values);
    return OK;
}

/* ---- where memory ends ---- */

typedef struct Try {
    Made *m;
    Tensor *t;
} Try;

static Status once(void *thing)
{
    const Try *try = thing;
    arena_reset(&try->m->messages, try->m->empty);
    assert_true(runs_program(try->m, try->t));
    return OK;
}

static void right(Made *m, const Tensor *t)
{
    const int64_t rows = t->type->dims[0];
    assert_int_equal(got(m, 0)->type->dims[0], rows);
    assert_true(fabs(tensor_get_f64(got(m, 1), 0) - (double)rows) < 0.01);
}

static Status kept_open(void *thing)
{
    Made *m = thing;
    open_made(m, row_text);
    m->engine->keep(m->values);
    return OK;
}

/* Each request of each run that makes a program is refused once: what was made before is there, and the next run is right. */
static void refused(void **state)
{
    enum { SIZES = RUNNERS_KEPT + 1 };
    Made m = { 0 };
    Tensor *t[SIZES];
    size_t refusals = 0, k = 1;
    (void)state;
    context_open(&m.c);
    Memory *memory = &m.c.memory;
    memory->apart = true; /* no request hides in a chunk */
    arena_open(&m.messages, memory);
    m.empty = arena_mark(&m.messages);
    m.c.diag.arena = &m.messages;
    assert_int_equal(guarded(memory, kept_open, &m), OK);
    for (int i = 0; i < SIZES; i++)
        t[i] = rows_of(&m, 3 + 7 * i);
    for (int i = 0; i < 2 * SIZES; i++) /* from here on types are known, and only programs come and go */
        assert_int_equal(guarded(memory, once, &(Try){ &m, t[i % SIZES] }), OK);
    const uint64_t used = memory->used;
    for (int i = 0;; i++, k++) {
        Try try = { &m, t[i % SIZES] };
        memory->fail_at = memory->requests + k;
        const Status status = guarded(memory, once, &try);
        memory->fail_at = 0;
        if (status == OK)
            break;
        assert_int_equal(status, NO_MEMORY);
        refusals++;
        assert_true(memory->used <= used);
        assert_int_equal(guarded(memory, once, &try), OK);
        right(&m, try.t);
        assert_int_equal(guarded(memory, once, &(Try){ &m, t[(i + SIZES - 1) % SIZES] }), OK);
        right(&m, t[(i + SIZES - 1) % SIZES]);
    }
    print_message("%zu requests refused\n", refusals);
    assert_true(refusals > 200);
    m.engine->close(m.values);
    arena_close(&m.messages);
    context_close(&m.c);
}

static void with_made(Status (*body)(void *))
{
    Made m = { 0 };
    context_open(&m.c);
    assert_int_equal(guarded(&m.c.memory, body, &m), OK);
    context_close(&m.c);
}

static void makes_once(void **state)
{
    (void)state;
    with_made(made_once);
}

static void makes_none(void **state)
{
    (void)state;
    with_made(never_made);
}

static void makes_later(void **state)
{
    (void)state;
    with_made(made_later);
}

static void share_a_room(void **state)
{
    (void)state;
    with_made(in_one_room);
}

static void takes_turns(void **state)
{
    (void)state;
    with_made(in_turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models), cmocka_unit_test(sessions),
                                        cmocka_unit_test(makes_once),    cmocka_unit_test(makes_none),
                                        cmocka_unit_test(makes_later),   cmocka_unit_test(takes_turns),
                                        cmocka_unit_test(share_a_room),  cmocka_unit_test(refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
