#include "codegen/program_parts.h"
#include "codegen/tape.h"
#include "ops/card/cards.h"
#include "ops/machine/caller.h"
#include "ops/region/region.h"

bool program_refuse(ProgramMaking *m, const Node *where, const char *why)
{
    m->why = why;
    m->where = where;
    return false;
}

/* ---- values ---- */

size_t program_add_constant(ProgramMaking *m, const Node *n)
{
    size_t have = (size_t)m->program->n_constants;
    GROW(m->arena, m->program->constants, have, m->cap_constants);
    m->program->constants[m->program->n_constants] = n;
    return (size_t)m->program->n_constants++;
}

static size_t constant_number(ProgramMaking *m, const Node *n)
{
    int *number = fact(&m->numbers, n);
    if (!*number)
        *number = (int)program_add_constant(m, n) + 1;
    return (size_t)*number - 1;
}

/* Where a result of a node lies, as a value of a type. */
bool program_locate(ProgramMaking *m, const Node *n, int result, const Type *type, ProgramValue *to)
{
    const PlanValue v = plan_value(m->plan, n, result);
    const int *number = fact_known(&m->numbers, v.source);
    *to = (ProgramValue){ .type = type };
    ProgramValue *const *made = fact_known(&m->made, v.source);
    if (v.buffer != PLAN_ELSEWHERE && made && *made) {
        *to = (*made)[v.result];
        to->type = type;
    } else if (v.buffer != PLAN_ELSEWHERE) {
        to->home = HOME_ARENA;
        to->maker = *(int *)fact(&m->makers, v.source);
        to->at = m->plan->buffers[v.buffer].offset;
    } else if (v.next != PLAN_NO_NEXT) {
        to->home = HOME_NEXT;
        to->at = (size_t)v.next;
    } else if (v.source->op == OP_const || v.source->op == OP_param) {
        to->home = HOME_CONSTANT;
        to->at = constant_number(m, v.source);
    } else if (number && *number) {
        to->home = HOME_INPUT;
        to->at = (size_t)*number - 1;
    } else {
        return program_refuse(m, n, "a value that lies nowhere");
    }
    return tensor_holds(type) || program_refuse(m, n, "values that are no tensors of numbers");
}

/* ---- launches ---- */

/* Where a product is made: the result in whose place that is lies over it. */
static bool lay_product(ProgramMaking *m, Launch *l)
{
    const PlanProduct *p = fact_known(&m->plan->products, l->node);
    if (l->kind != LAUNCH_CONTRACT)
        return true;
    l->product = (ProgramValue){ .home = HOME_ARENA,
                                 .type = l->contraction->type,
                                 .at = m->plan->buffers[p->buffer].offset,
                                 .maker = m->program->n_launches - 1 };
    if (p->result != PLAN_ELSEWHERE && !tape_may_lie_over(l->tape, p->result, l->tape->product))
        return program_refuse(m, l->node, "a result over a product that it may not lie over");
    if (p->result != PLAN_ELSEWHERE)
        l->over[p->result] = l->tape->product;
    return true;
}

/* Where a region makes a result over an argument, and where it may. */
bool program_lay_over(ProgramMaking *m, Launch *l)
{
    for (int i = 0; i < l->n_out; i++)
        for (int k = 0; k < l->n_in; k++) {
            const ProgramValue *out = &l->out[i], *in = &l->in[k];
            const ProgramNext *next = out->home == HOME_NEXT ? &m->program->next[out->at] : NULL;
            const bool same = out->home == HOME_ARENA && in->home == HOME_ARENA && in->at == out->at &&
                              type_elements(in->type) > 0 && type_elements(out->type) > 0;
            const bool state = next && in->home == HOME_INPUT && in->at == (size_t)next->state;
            if (!same && !state)
                continue;
            if (l->tape ? tape_may_lie_over(l->tape, i, k) : node_goes_on(l->node) == k)
                l->over[i] = k;
            else if (same)
                return program_refuse(m, l->node, "a result over an argument that it may not lie over");
        }
    return true;
}

static int wave_of(const ProgramMaking *m, const Node *n)
{
    const int *wave = fact_known(&m->plan->waves, n);
    return wave ? *wave : 0;
}

Launch *program_add_launch(ProgramMaking *m)
{
    size_t have = (size_t)m->program->n_launches;
    GROW(m->arena, m->program->launches, have, m->cap_launches);
    return &m->program->launches[m->program->n_launches++];
}

static bool add_launch(ProgramMaking *m, const Node *n)
{
    Program *p = m->program;
    const bool region = n->op == OP_fused;
    const Node *contraction = region ? region_contraction(n) : NULL;
    if (!region && !caller_knows_types(n, m->arena))
        return program_refuse(m, n, "results whose types only a run knows");
    if (op_of(n)->structural)
        return program_refuse(m, n, "a word without a meaning");
    Launch *l = program_add_launch(m);
    *l = (Launch){ .kind = contraction ? LAUNCH_CONTRACT
                           : region    ? LAUNCH_REGION
                                       : LAUNCH_CALL,
                   .part = (StepPart)(*(int *)fact(&m->parts, n)),
                   .node = n,
                   .like = LIKE_NONE,
                   .tape = region ? tape_make(n->regions[0], m->arena) : NULL,
                   .contraction = contraction,
                   .n_in = n->n_in,
                   .n_out = type_results(n->type) };
    *(int *)fact(&m->makers, n) = p->n_launches - 1;
    l->in = NEWS(m->arena, ProgramValue, l->n_in + 1);
    l->out = NEWS(m->arena, ProgramValue, l->n_out + 1);
    l->over = NEWS(m->arena, int, l->n_out + 1);
    for (int i = 0; i < l->n_in; i++)
        if (in(n, i) && !program_locate(m, in(n, i), 0, in(n, i)->type, &l->in[i]))
            return false;
    for (int i = 0; i < l->n_out; i++) {
        l->over[i] = LIES_APART;
        if (!program_locate(m, n, i, type_result(n->type, i), &l->out[i]))
            return false;
    }
    if (p->n_launches > 1 && l->part < p->launches[p->n_launches - 2].part && !m->graph->owner)
        return program_refuse(m, n, "calls that are not in the order of the parts of the step");
    l->beside = p->n_launches > 1 && p->launches[p->n_launches - 2].part == l->part &&
                wave_of(m, p->launches[p->n_launches - 2].node) == wave_of(m, n);
    return lay_product(m, l) && program_lay_over(m, l);
}

/* Whether a node makes anything: holders and looks do not. */
static bool makes_values(const ProgramMaking *m, const Node *n)
{
    if (node_is_holder(n) || node_is_input(n) || n->op == OP_const || n->op == OP_param || node_is_return(n))
        return false;
    for (int i = 0; i < type_results(n->type); i++)
        if (plan_value(m->plan, n, i).source == n)
            return true;
    return false;
}

/* ---- next values ---- */

static void find_states(ProgramMaking *m)
{
    const Map states = step_states(m->graph, m->arena);
    Program *p = m->program;
    p->n_results = graph_n_results(m->graph);
    p->next = NEWS(m->arena, ProgramNext, p->n_results + 1);
    for (int i = 0; i < p->n_results; i++) {
        const Node *state = step_next_of(m->graph, i, &states);
        p->next[i].state = state ? *(int *)fact(&m->numbers, state) - 1 : NO_STATE;
    }
}

static bool reads_input(const Launch *l, int input, int but)
{
    for (int i = 0; i < l->n_in; i++)
        if (i != but && l->in[i].home == HOME_INPUT && l->in[i].at == (size_t)input)
            return true;
    return false;
}

/* Who sees inputs: of each whether a result shows it, and the last launch that reads it; the last launch that may fail. */
typedef struct InputReaders {
    bool *shown;
    int *last, fails;
} InputReaders;

static InputReaders readers_of_inputs(const Program *p, size_t n, Arena *arena)
{
    InputReaders r = { .shown = NEWS(arena, bool, n + 1), .last = NEWS(arena, int, n + 1), .fails = -1 };
    for (int i = 0; i < p->n_results; i++)
        if (p->results[i].home == HOME_INPUT)
            r.shown[p->results[i].at] = true;
    for (int k = 0; k < p->n_launches; k++) {
        const Launch *l = &p->launches[k];
        for (int i = 0; i < l->n_in; i++)
            if (l->in[i].home == HOME_INPUT)
                r.last[l->in[i].at] = k;
        r.fails = l->kind == LAUNCH_REGION ? r.fails : k;
    }
    return r;
}

/* A next value may be made in its state's place where no result shows that, nobody reads it later, and nothing fails. */
static bool fits_in_place(const Program *p, const InputReaders *r, int launch, int result)
{
    const Launch *l = &p->launches[launch];
    const int state = p->next[l->out[result].at].state;
    return state != NO_STATE && r->fails < launch && !r->shown[state] && r->last[state] <= launch &&
           !reads_input(l, state, l->over[result]);
}

static void place_next(ProgramMaking *m)
{
    Program *p = m->program;
    const InputReaders readers = readers_of_inputs(p, m->graph->n_inputs, m->arena);
    for (int k = p->first[STEP_LATE]; k < p->n_launches; k++)
        for (int i = 0; i < p->launches[k].n_out; i++)
            if (p->launches[k].out[i].home == HOME_NEXT)
                p->next[p->launches[k].out[i].at].in_place = fits_in_place(p, &readers, k, i);
}

/* ---- the program ---- */

static bool make(ProgramMaking *m)
{
    Program *p = m->program;
    for (size_t i = 0; i < m->graph->n_inputs; i++)
        *(int *)fact(&m->numbers, m->graph->inputs[i]) = (int)i + 1;
    find_states(m);
    for (const Node *n = m->graph->first; n; n = n->next) {
        const PlanBody *const *body = fact_known(&m->plan->bodies, n);
        if (makes_values(m, n) && !(body && *body ? program_add_turns(m, n, *body) : add_launch(m, n)))
            return false;
    }
    for (int part = 0, k = 0; part <= STEP_LATE + 1; part++) {
        while (k < p->n_launches && (int)p->launches[k].part < part)
            k++;
        p->first[part] = k;
    }
    p->results = NEWS(m->arena, ProgramValue, p->n_results + 1);
    for (int i = 0; i < p->n_results; i++) {
        const Node *n = graph_result(m->graph, i);
        if (n && !program_locate(m, n, 0, n->type, &p->results[i]))
            return false;
    }
    place_next(m);
    return true;
}

const Program *program_make(const Plan *plan, Arena *arena, const char **why, const Node **where)
{
    ProgramMaking m = { .plan = plan, .graph = plan->graph, .arena = arena, .program = NEW(arena, Program) };
    m.parts = step_parts(plan->graph, arena);
    m.makers = facts_open(arena, sizeof(int));
    m.numbers = facts_open(arena, sizeof(int));
    m.made = facts_open(arena, sizeof(ProgramValue *));
    *m.program = (Program){ .graph = plan->graph, .arena = plan->arena, .live = plan->live };
    if (make(&m))
        return m.program;
    *why = m.why;
    *where = m.where;
    return NULL;
}
