#include "api/make/memory.h"

#include "api/hall/lower.h"
#include "api/hall/words.h"
#include "ir/role.h"
#include "passes/step/footprint.h"

/* Gradients that lie in the arena, each place once. */
static uint64_t gradients_in(const Program *p, Arena *scratch)
{
    uint64_t sum = 0;
    size_t bytes;
    Map seen;
    map_open(&seen, scratch);
    for (int i = 0; i < p->n_results; i++) {
        const ProgramValue *v = &p->results[i];
        bool fresh = false;
        if (graph_result_mark(p->graph, i).role == RESULT_gradient && v->home == HOME_ARENA)
            map_put_u64(&seen, v->at, &fresh);
        sum += fresh && type_bytes(v->type, &bytes) ? bytes : 0;
    }
    return sum;
}

/* States and constants are what the books say: nothing of them depends on when what runs. */
static void take_plan(StepMemory *m, const Program *p, size_t scratch_bytes, Arena *scratch)
{
    const ProgramBytes b = program_bytes(p);
    const uint64_t states = b.states + b.constants;
    m->gradients = gradients_in(p, scratch);
    m->activations = p->arena - m->gradients + b.inputs + b.apart;
    m->scratch = scratch_bytes;
    m->weights = states - m->optimizer - m->other_state;
}

static size_t scratch_of(const qcc_context *cx, const Program *p, Arena *scratch)
{
    return cx->engine->scratch ? cx->engine->scratch(p, 1, scratch) : 0; /* the same on every machine */
}

StepMemory step_memory(const qcc_step *s)
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
                     .model = s->model->file_bytes };
    if (cx->engine->wants_programs) {
        const Lowered l = lower_graph_for(step, NULL, &cx->lowering, &scratch);
        m.estimated = !l.program;
        m.why = l.program ? NULL : l.why;
        if (l.program)
            take_plan(&m, l.program, scratch_of(cx, l.program, &scratch), &scratch);
        const Lowered e =
            eval && l.program ? lower_graph_for(eval, NULL, &cx->lowering, &scratch) : (Lowered){ .program = NULL };
        m.validation = e.program ? e.program->arena : 0;
    } else {
        m.estimated = true;
    }
    m.total = m.weights + m.optimizer + m.other_state + m.gradients + m.activations + m.scratch + m.model;
    arena_close(&scratch);
    return m;
}

const char *step_memory_doubt(Arena *arena, const StepMemory *m)
{
    if (!m->estimated)
        return "";
    return arena_printf(arena, "; an estimate: the evaluator runs it%s%s", m->why ? ", for it has " : "",
                        m->why ? m->why : "");
}

const char *step_memory_text(Arena *arena, const StepMemory *m)
{
    Text t;
    text_open(&t, arena);
    text_printf(&t, "%s: weights %s, optimizer %s", bytes_text(arena, m->total), bytes_text(arena, m->weights),
                bytes_text(arena, m->optimizer));
    if (m->other_state)
        text_printf(&t, ", other states %s", bytes_text(arena, m->other_state));
    text_printf(&t, ", gradients %s, activations %s", bytes_text(arena, m->gradients),
                bytes_text(arena, m->activations));
    if (m->model)
        text_printf(&t, ", model %s", bytes_text(arena, m->model));
    if (!m->estimated)
        text_printf(&t, ", scratch %s a thread", bytes_text(arena, m->scratch));
    text_add(&t, step_memory_doubt(arena, m));
    return text_get(&t);
}
