#include "api/make/memory.h"

#include <string.h>

#include "api/hall/lower.h"
#include "api/hall/words.h"
#include "base/map.h"
#include "ir/role.h"

/* Gradients that lie in the arena, each place once. */
static void gradients_in(FootprintBytes parts, const Program *p, Map *places, Arena *scratch)
{
    map_open(places, scratch);
    memset(parts[FOOTPRINT_gradients], 0, sizeof parts[FOOTPRINT_gradients]);
    for (int i = 0; i < p->n_results; i++) {
        const ProgramValue *v = &p->results[i];
        bool fresh = false;
        if (graph_result_mark(p->graph, i).role == RESULT_gradient && v->home == HOME_ARENA)
            map_put_u64(places, v->at, &fresh);
        if (fresh)
            footprint_add(parts, FOOTPRINT_gradients, v->type);
    }
}

/* Next values that lie neither in the arena nor in the place of their states; constants as they are when it is lowered. */
static void beside_in(FootprintBytes parts, const Program *p)
{
    memset(parts[FOOTPRINT_constants], 0, sizeof parts[FOOTPRINT_constants]);
    for (int i = 0; i < p->n_constants; i++)
        footprint_add(parts, FOOTPRINT_constants, p->constants[i]->type);
    for (int i = 0; i < p->n_results; i++)
        if (p->next[i].state != NO_STATE && p->results[i].home == HOME_NEXT && !p->next[i].in_place)
            footprint_add(parts, FOOTPRINT_next, p->results[i].type);
}

/* ---- the arena ---- */

/* The place of a node among the calls. */
static int call_of(const Plan *plan, const Node *node)
{
    int at = 0;
    for (const Node *n = plan->graph->first; n && n != node; n = n->next)
        at++;
    return at;
}

/* The type in which the first value lies in a buffer; of a product that nobody else sees it is that of the product. */
static DType type_in(const Plan *plan, const Map *products, const PlanBuffer *b)
{
    const int number = (int)(b - plan->buffers);
    for (int i = 0; i < type_results(b->maker->type); i++)
        if (plan_buffer(plan, b->maker, i) == number && type_result(b->maker->type, i)->kind == TYPE_TENSOR)
            return type_result(b->maker->type, i)->dtype;
    const MapEntry *product = map_find_u64(products, (uintptr_t)b->maker);
    return product ? (DType)product->value.i : U8; /* bytes of a call's own */
}

/* Launches lie in the order of their nodes. */
static StepPart part_at(const Plan *plan, const Program *p, int call)
{
    StepPart part = STEP_FORWARD;
    const Node *n = plan->graph->first;
    for (int i = 0, at = 0; n && at <= call; n = n->next, at++)
        for (; i < p->n_launches && launch_call(&p->launches[i]) == n; i++)
            part = p->launches[i].part;
    return part;
}

static ArenaBytes arena_bytes(const Plan *plan, const Program *p, const Map *gradients, Arena *scratch)
{
    ArenaBytes a = { .part = STEP_FORWARD };
    const int begins = p->first[STEP_BACKWARD], ends = p->first[STEP_BACKWARD + 1];
    const int border = begins < ends ? call_of(plan, launch_call(&p->launches[begins])) : -1;
    const size_t *alive = plan_alive(plan, scratch);
    Map products;
    int peak = 0;
    map_open(&products, scratch);
    for (int i = 0; i < p->n_launches; i++)
        if (p->launches[i].contraction)
            map_put_u64(&products, (uintptr_t)p->launches[i].node, NULL)->value.i = p->launches[i].product.type->dtype;
    for (int i = 0; i <= plan->n_calls; i++)
        peak = alive[i] > alive[peak] ? i : peak;
    a.part = part_at(plan, p, peak);
    for (int i = 0; i < plan->n_buffers; i++) {
        const PlanBuffer *b = &plan->buffers[i];
        const DType type = type_in(plan, &products, b);
        const bool kept = b->first < border && b->last >= border;
        const bool gradient = b->last >= plan->n_calls && map_find_u64(gradients, b->offset);
        if (kept)
            a.kept[type] += b->bytes;
        if (b->first <= peak && peak <= b->last)
            a.peak[gradient ? ARENA_GRADIENTS : kept ? ARENA_KEPT : ARENA_TRANSIENT][type] += b->bytes;
    }
    return a;
}

/* ---- the whole ---- */

/* The most that the bodies of a call hold, which the evaluator runs: those of the micro-batches of --accumulate. */
static uint64_t bodies_of(const Program *p, Arena *scratch)
{
    uint64_t most = 0;
    for (int i = 0; i < p->n_launches; i++) {
        const Launch *l = &p->launches[i];
        const uint64_t bytes = l->kind == LAUNCH_CALL && l->node->n_regions ? footprint_bodies(l->node, scratch) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* States and constants are what the books say: nothing of them depends on when what runs. */
static void take_plan(StepMemory *m, const Lowered *l, size_t scratch_bytes, Arena *scratch)
{
    Map gradients;
    const Program *p = l->program;
    const ProgramBytes b = program_bytes(p);
    const uint64_t states = b.states + b.constants;
    gradients_in(m->parts, p, &gradients, scratch);
    beside_in(m->parts, p);
    m->arena = arena_bytes(&l->plan, p, &gradients, scratch);
    m->gradients = footprint_sum(m->parts[FOOTPRINT_gradients]);
    m->values = p->arena - m->gradients + bodies_of(p, scratch);
    m->activations = m->values + b.inputs + b.apart;
    m->scratch = scratch_bytes;
    m->weights = states - m->optimizer - m->other_state;
}

static size_t scratch_of(const qcc_context *cx, const Program *p, Arena *scratch)
{
    return cx->engine->scratch ? cx->engine->scratch(p, 1, scratch) : 0; /* the same on every machine */
}

static StepMemory memory_of(const qcc_step *s, const Lowering *how)
{
    const qcc_context *cx = s->cx;
    Arena scratch;
    arena_open(&scratch, &s->cx->memory);
    Graph *step = module_graph(s->module, "step"), *eval = module_graph(s->module, "eval");
    const Footprint f = footprint_of(step, &scratch);
    StepMemory m = { .weights = f.weights,
                     .optimizer = f.optimizer,
                     .other_state = f.other_state,
                     .gradients = f.gradients,
                     .activations = f.activations,
                     .values = f.activations - footprint_sum(f.parts[FOOTPRINT_inputs]),
                     .model = s->model->file_bytes };
    memcpy(m.parts, f.parts, sizeof m.parts);
    if (cx->engine->wants_programs) {
        const Lowered l = lower_graph_for(step, NULL, how, &scratch);
        m.estimated = !l.program;
        m.why = l.program ? NULL : l.why;
        if (l.program)
            take_plan(&m, &l, scratch_of(cx, l.program, &scratch), &scratch);
        const Lowered e = eval && l.program ? lower_graph_for(eval, NULL, how, &scratch) : (Lowered){ .program = NULL };
        m.validation = e.program ? e.program->arena : 0;
    } else {
        m.estimated = true;
    }
    m.total = m.weights + m.optimizer + m.other_state + m.gradients + m.activations + m.scratch + m.model;
    arena_close(&scratch);
    return m;
}

StepMemory step_memory(const qcc_step *s)
{
    return memory_of(s, &s->cx->lowering);
}

typedef struct Bound {
    Memory *memory;
    uint64_t budget;
} Bound;

static void bind_again(void *bound)
{
    const Bound *b = bound;
    b->memory->budget = b->budget;
}

StepMemory step_memory_if(const qcc_step *s, const Lowering *how)
{
    Cleanup cleanup;
    Memory *memory = &s->cx->memory;
    Bound bound = { memory, memory->budget };
    cleanup_push(memory, &cleanup, bind_again, &bound);
    memory->budget = 0;
    const StepMemory m = memory_of(s, how);
    cleanup_drop(&cleanup);
    bind_again(&bound);
    return m;
}
