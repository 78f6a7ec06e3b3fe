#include "api/model/evaluate.h"

#include <string.h>

#include "api/hall/lower.h"
#include "frontends/onnx/file/dialect.h"
#include "frontends/onnx/file/spine.h"
#include "ir/role.h"
#include "ops/update/shadow.h"
#include "passes/engine/pass.h"
#include "passes/recipe/recipe.h"
#include "passes/target/datapath.h"

/* Weights of larger models are packed anew in each run. */
enum { KEPT_OF_CONSTANTS = 64 << 20 };

/* How a model runs on the engine: a program of it, or one for each of the types that inputs had of late. */
struct ModelRun {
    Arena arena;
    const _Atomic int *stop;
    Values *values; /* null: not open */
    int graph;
    bool shown; /* results of its last run are looked at where they lie */
    ValueAt *inputs;
};

/* What was shown of the last run goes. */
static void end_shown(qcc_model *m)
{
    ModelRun *r = m->run;
    memset(m->results, 0, (m->n_outputs + 1) * sizeof *m->results);
    if (r && r->values && r->shown)
        m->cx->engine->end(r->values, r->graph);
    if (r)
        r->shown = false;
}

void model_run_close(qcc_model *m)
{
    ModelRun *r = m->run;
    if (!r || !r->values)
        return;
    end_shown(m);
    m->cx->engine->close(r->values);
    r->values = NULL;
    arena_close(&r->arena);
}

bool model_has_operator(const void *ops, const char *word)
{
    Op op;
    return op_find(ops, str(word), &op);
}

/* What a file notes of itself; null: nothing. */
static const char *noted(const qcc_model *m, const char *key, Arena *arena)
{
    const Onnx__ModelProto *p = m->has_spine ? m->spine.model : NULL;
    for (size_t i = 0; p && i < p->n_metadata_props; i++)
        if (str_is(str_of(p->metadata_props[i]->key), key))
            return arena_copy(arena, (const char *)p->metadata_props[i]->value.data, p->metadata_props[i]->value.len);
    return NULL;
}

Status model_target(const qcc_model *m, const QuantTarget **t, Arena *arena)
{
    const char *name = noted(m, QCC_FOR, arena), *datapath = noted(m, QCC_FOR_TEXT, arena);
    *t = name ? quant_target(name) : NULL;
    return datapath ? datapath_read(t, m->file, datapath, model_has_operator, m->ir.ops, arena, &m->cx->diag) : OK;
}

Status model_take_integers(const qcc_model *m, Graph *g, const char *pass)
{
    Recipe recipe = { .accumulate = 0 };
    const PassOptions options = { .recipe = &recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    TRY(model_target(m, &recipe.quantization.own_target, &m->cx->scratch));
    TRY(pass_run(pass_find(pass), g, &run));
    return pass_run(pass_find("drop-dead"), g, NULL);
}

/* A quantized model computes on its codes, as those it is deployed for do. */
static Status find_graph(qcc_model *m)
{
    bool any = false;
    if (m->runs)
        return OK;
    for (const Node *n = m->graph->first; n && !any; n = n->next)
        any = op_of(n)->quant.dequantizes;
    Graph *g = any ? graph_copy(m->graph, &m->arena) : m->graph;
    if (any)
        TRY(model_take_integers(m, g, "take-integers"));
    m->runs = g;
    return OK;
}

static bool are_plain(const qcc_model *m, const Tensor *const *inputs)
{
    for (size_t i = 0; i < m->n_inputs; i++)
        if (!inputs[i] || !tensor_holds(inputs[i]->type))
            return false;
    return true;
}

static Status open_values(qcc_model *m, ModelRun *r, const EvalOptions *how, Values **values)
{
    const Engine *engine = m->cx->engine;
    Lowering *lowering = &m->cx->lowering;
    const bool open = graph_is_open(m->runs);
    const EngineOptions options = {
        .kernels = how->kernels,
        .pool = how->pool,
        .stop = how->stop,
        .watch = m->cx->watch,
        .device = m->cx->device,
        .narrow = engine->narrows && !m->cx->options.exact,
        .keeps = KEPT_OF_CONSTANTS,
    };
    const Executable x = { .graph = m->runs,
                           .n_parts = 1,
                           .program = open ? NULL : lower_for_engine(lowering, m->runs, NULL, true, &r->arena),
                           .programs = open ? lower_for_engine : NULL,
                           .maker = lowering };
    TRY(engine->open(&m->ir, &options, (int)m->n_inputs, &r->arena, values));
    r->inputs = NEWS(&r->arena, ValueAt, m->n_inputs + 1);
    for (size_t i = 0; i < m->n_inputs; i++)
        r->inputs[i] = value_kept((int)i);
    return engine->load(*values, &x, &r->graph);
}

static Status open_run(qcc_model *m, const EvalOptions *how)
{
    if (!m->run)
        m->run = NEW(&m->arena, ModelRun);
    ModelRun *r = m->run;
    Values *values = NULL;
    model_run_close(m);
    *r = (ModelRun){ .stop = how->stop };
    arena_open(&r->arena, &m->cx->memory);
    const Status status = open_values(m, r, how, &values);
    if (status != OK) {
        m->cx->engine->close(values);
        arena_close(&r->arena);
        return status;
    }
    arena_keep(&r->arena);
    m->cx->engine->keep(values);
    r->values = values; /* now that no jump takes them */
    return OK;
}

/* Whether the engine of the context is to run it: with the generator of NumPy, and where somebody watches, the evaluator
 * does. */
static bool wants_engine(const qcc_model *m, const EvalOptions *how, const Tensor *const *inputs)
{
    return m->cx->engine->wants_programs && !how->observe && !how->rounding && how->random == RANDOM_PHILOX &&
           are_plain(m, inputs);
}

/* Results stay where the engine made them until the next run; but for those that are an input, whose memory is the caller's. */
static Status run_program(qcc_model *m, ModelRun *r, const Tensor *const *inputs)
{
    const Engine *engine = m->cx->engine;
    r->shown = true;
    TRY(engine->run(r->values, r->graph, 0));
    for (size_t i = 0; i < m->n_outputs; i++) {
        const Tensor *t;
        bool lent = false;
        TRY(engine->get(r->values, value_result(r->graph, (int)i), &t));
        for (size_t k = 0; k < m->n_inputs && t; k++)
            lent = lent || t->data == inputs[k]->data;
        m->results[i] = lent ? tensor_alloc(&m->heap, t->type) : (Tensor *)(uintptr_t)t;
        if (lent && t->bytes)
            memcpy(m->results[i]->data, t->data, t->bytes);
    }
    return OK;
}

/* A result that is one of the inputs, whose memory is the caller's, becomes a copy. */
static Tensor *own_result(qcc_model *m, Tensor *t, const Map *inputs)
{
    if (!t || t->type->kind != TYPE_TENSOR || !map_find_u64(inputs, (uintptr_t)t))
        return t;
    Tensor *copy = tensor_alloc(&m->heap, t->type);
    if (t->bytes)
        memcpy(copy->data, t->data, t->bytes);
    return copy;
}

static Status run_on_evaluator(qcc_model *m, const EvalOptions *how, const Tensor *const *inputs)
{
    Map given;
    TRY(evaluate(m->runs, how, &m->heap, inputs, m->results));
    map_open(&given, &m->cx->scratch);
    for (size_t i = 0; i < m->n_inputs; i++)
        map_put_u64(&given, (uintptr_t)inputs[i], NULL);
    for (size_t i = 0; i < m->n_outputs; i++)
        m->results[i] = own_result(m, m->results[i], &given);
    return OK;
}

/* Lets the engine begin, where it has a program for inputs of these types; what it has none for the evaluator runs, whose
 * results need no copy. */
static Status begin_program(qcc_model *m, const EvalOptions *how, const Tensor *const *inputs, bool *begun)
{
    const Engine *engine = m->cx->engine;
    const bool wants = wants_engine(m, how, inputs);
    *begun = false;
    if (wants && !(m->run && m->run->values && m->run->stop == how->stop))
        TRY(open_run(m, how));
    if (!wants)
        return OK;
    const ModelRun *r = m->run;
    const EngineRun run = { .seed = how->seed, .step = how->step, .inputs = r->inputs };
    TRY(engine->put(r->values, (int)m->n_inputs, r->inputs, (Tensor *const *)(uintptr_t)inputs, PUT_LEND));
    TRY(engine->begin(r->values, r->graph, &run));
    *begun = engine->programmed(r->values, r->graph);
    if (!*begun)
        engine->end(r->values, r->graph);
    return OK;
}

Status model_evaluate(qcc_model *m, const EvalOptions *how, const Tensor *const *inputs)
{
    bool begun;
    end_shown(m);
    heap_close(&m->heap);
    TRY(find_graph(m));
    TRY(begin_program(m, how, inputs, &begun));
    heap_open(&m->heap, &m->cx->memory); /* a jump takes what was made so far, and so does a failure */
    const Status status = begun ? run_program(m, m->run, inputs) : run_on_evaluator(m, how, inputs);
    if (status != OK)
        heap_close(&m->heap);
    else
        heap_keep(&m->heap);
    return status;
}

Status model_initial(qcc_model *m, size_t i, const Tensor **value)
{
    const Node *n = m->graph->inputs[i];
    Payload *p = state_initial(n);
    const char *master = is_state(n, STATE_shadow) ? node_role(n).of : NULL;
    if (p && tensor_holds(n->type)) {
        *value = payload_cached(p, &m->cx->diag);
        return *value ? OK : INVALID;
    }
    TRY(tensor_wants_numbers(&m->cx->diag, NOWHERE, arena_printf(&m->cx->scratch, "state %s", n->name), n->type));
    Tensor *own = tensor_new(&m->arena, n->type);
    *value = own;
    for (size_t k = 0; master && k < m->n_inputs; k++)
        if (m->graph->inputs[k]->name && strcmp(m->graph->inputs[k]->name, master) == 0) {
            TRY(model_initial(m, k, value));
            shadow_fill(own, *value);
            *value = own;
        }
    return OK;
}
