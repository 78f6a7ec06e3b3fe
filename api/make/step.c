/* Steps: what a model becomes to be trained, and the public calls about it. */
#include "api/make/step.h"

#include <string.h>

#include "api/hall/out.h"
#include "api/make/memory.h"
#include "api/make/teacher.h"
#include "ir/role.h"
#include "ops/card/path.h"
#include "passes/recipe/choices.h"

/* ---- lifetime ---- */

static void undo_step(void *thing)
{
    qcc_step *s = thing;
    step_drop_teacher(s);
    memory_release(&s->cx->memory, s, sizeof *s);
}

qcc_step *step_new(qcc_model *m)
{
    qcc_context *cx = m->cx;
    qcc_step *s = memory_block(&cx->memory, sizeof *s);
    *s = (qcc_step){ .cx = cx, .model = m };
    cleanup_push(&cx->memory, &s->cleanup, undo_step, s);
    arena_open(&s->arena, &cx->memory);
    heap_open(&s->data, &cx->memory);
    ir_open(&s->own, &s->arena, &ops_table, &cx->diag);
    s->own.limits = cx->limits;
    s->ir = &s->own;
    return s;
}

void step_drop(qcc_step *s)
{
    step_drop_teacher(s);
    heap_close(&s->data);
    arena_close(&s->arena);
    cleanup_drop(&s->cleanup);
    memory_release(&s->cx->memory, s, sizeof *s);
}

static void close_held(void *step)
{
    step_close(step);
}

void step_keep(qcc_step *s)
{
    qcc_context *cx = s->cx;
    cleanup_drop(&s->cleanup);
    arena_keep(&s->arena);
    heap_keep(&s->data);
    s->model->users++;
    context_hold(cx, &s->held, s, close_held);
}

void step_close(qcc_step *s)
{
    qcc_context *cx = s->cx;
    qcc_model *m = s->model;
    if (!s->freed)
        context_let_loose(cx, &s->held);
    s->freed = true;
    if (s->users)
        return;
    step_drop_teacher(s);
    heap_close(&s->data);
    arena_close(&s->arena);
    memory_release(&cx->memory, s, sizeof *s);
    if (--m->users == 0 && m->freed)
        model_close(m);
}

static void release_step(void *step)
{
    if (!((qcc_step *)step)->freed)
        step_close(step);
}

void qcc_step_free(qcc_step *step)
{
    if (step)
        context_release(step->cx, release_step, step);
}

/* ---- signature ---- */

static void tell(qcc_step *s, Value *v, const Node *n, const char *name)
{
    const bool codes = node_stored(n) && n->type->dtype != F32; /* which hosts see as the numbers they stand for */
    *v = (Value){ .name = name, .type = codes ? type_with_dtype(&s->ir->types, n->type, F32) : n->type };
    v->text = type_text(&s->arena, v->type);
}

void step_signature(qcc_step *s)
{
    Graph *g = module_graph(s->module, "step");
    const Map paths = path_names(g, &s->arena);
    s->inputs = NEWS(&s->arena, Value, g->n_inputs + 1);
    s->parameters = NEWS(&s->arena, Value, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (n->op != OP_state)
            tell(s, &s->inputs[s->n_inputs++], n, n->name);
        else if (n->flags & NODE_TRAINED)
            tell(s, &s->parameters[s->n_parameters++], n, path_name(&paths, n));
    }
}

const StepTarget *step_target(const qcc_step *s, const char *input)
{
    for (size_t i = 0; i < s->n_targets; i++)
        if (!input || strcmp(s->targets[i].input, input) == 0)
            return &s->targets[i];
    return NULL;
}

size_t qcc_step_n_inputs(const qcc_step *step)
{
    return step ? step->n_inputs : 0;
}

qcc_status qcc_step_input(const qcc_step *step, size_t i, qcc_value_info *info)
{
    if (!step || !info || i >= step->n_inputs)
        return QCC_USAGE;
    return value_tell(&step->inputs[i], info) ? QCC_OK : QCC_USAGE;
}

size_t qcc_n_parameters(const qcc_step *step)
{
    return step ? step->n_parameters : 0;
}

qcc_status qcc_parameter(const qcc_step *step, size_t i, qcc_value_info *info)
{
    if (!step || !info || i >= step->n_parameters)
        return QCC_USAGE;
    return value_tell(&step->parameters[i], info) ? QCC_OK : QCC_USAGE;
}

double step_work(const qcc_step *s)
{
    double sum = 0;
    for (Node *n = walk_first(module_graph(s->module, "step")); n; n = walk_next(module_graph(s->module, "step"), n))
        sum += op_of(n)->work ? op_of(n)->work(n) : 0;
    return sum;
}

/* ---- memory ---- */

typedef struct AskMemory {
    const qcc_step *step;
    StepMemory memory;
} AskMemory;

static Status do_plan(void *arg)
{
    AskMemory *p = arg;
    p->memory = step_memory(p->step);
    return OK;
}

qcc_status qcc_plan(const qcc_step *step, qcc_memory *memory)
{
    AskMemory p = { .step = step };
    if (!step || !memory || memory->size < sizeof(size_t))
        return QCC_USAGE;
    const qcc_status status = context_call(step->cx, do_plan, &p);
    if (status != QCC_OK)
        return status;
    const StepMemory *f = &p.memory;
    const qcc_memory all = { .size = memory->size < sizeof all ? memory->size : sizeof all,
                             .weights = f->weights,
                             .optimizer = f->optimizer,
                             .other_state = f->other_state,
                             .gradients = f->gradients,
                             .activations = f->activations,
                             .total = f->total,
                             .scratch = f->scratch,
                             .model = f->model,
                             .validation = f->validation };
    memcpy(memory, &all, all.size);
    return QCC_OK;
}

const char *step_path(const qcc_step *s, const char *name)
{
    const Choice *c = s->recipe.choices ? choice_find(s->recipe.choices, name) : NULL;
    return c && strcmp(c->path, name) != 0 ? c->path : NULL;
}
