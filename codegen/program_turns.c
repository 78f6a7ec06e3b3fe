/* The turns of a body as launches: those of one turn, again for each, with the places of that turn.
 *
 * A turn works where the one before it did.  What it hands on lies where the results of the call do: made there, where the plan says
 * so, else copied as the turn ends.  The first turn reads what the call is given where that lies. */
#include <string.h>

#include "codegen/program_parts.h"
#include "ir/build.h"

typedef struct Turns {
    ProgramMaking *m;
    const Node *call;
    StepPart part;
    const PlanBody *body;
    const Program *once;
    size_t arena;        /* where a turn's values begin */
    ProgramValue *given; /* of the turn under way: the parameters of the body */
    ProgramValue *kept;  /* the results of the call, */
    int *makers;         /* and the launch that made them last */
    size_t *constants;   /* of the body, among those of the program */
    Graph *beside;       /* holds what no graph has: the numbers of turns, copies */
    int64_t turn;
    int first, begin; /* launches of the first turn, and of this one */
} Turns;

/* ---- places ---- */

static bool is_carried(const Turns *t, int result)
{
    return result < t->body->turns.carried;
}

/* Where result `i` of the call is written in this turn: all of it, or its slice. */
static ProgramValue place_of(const Turns *t, int i)
{
    const Type *type = graph_result(t->body->plan.graph, 1 + i)->type;
    ProgramValue v = t->kept[i];
    size_t bytes = 0;
    BUG_IF(t->m->arena->memory, !type_bytes(type, &bytes));
    v.at += is_carried(t, i) ? 0 : (size_t)t->turn * bytes;
    v.type = type;
    v.maker = t->makers[i];
    v.pieces = false;
    return v;
}

/* A value of the body in this turn. */
static ProgramValue value_of(const Turns *t, const ProgramValue *v)
{
    ProgramValue to = *v;
    switch (v->home) {
    case HOME_NONE:
        return to;
    case HOME_ARENA:
        to.at += t->arena;
        to.maker += t->begin;
        return to;
    case HOME_INPUT:
        to = t->given[v->at];
        break;
    case HOME_CONSTANT:
        to.at = t->constants[v->at];
        return to;
    case HOME_NEXT:
        to = place_of(t, (int)v->at - 1);
        break;
    }
    to.type = v->type;
    return to;
}

/* ---- launches ---- */

static const ProgramValue *values_of(const Turns *t, const ProgramValue *list, int n)
{
    ProgramValue *to = NEWS(t->m->arena, ProgramValue, n + 1);
    for (int i = 0; i < n; i++)
        to[i] = value_of(t, &list[i]);
    return to;
}

static Launch *add(const Turns *t)
{
    Launch *l = program_add_launch(t->m);
    *l = (Launch){ .part = t->part, .within = t->call, .turn = (uint32_t)t->turn, .like = LIKE_NONE };
    return l;
}

static bool add_launch(Turns *t, int k)
{
    const Launch *from = &t->once->launches[k];
    const int number = t->m->program->n_launches;
    Launch *l = add(t), own = *l;
    *l = *from;
    l->part = own.part;
    l->within = own.within;
    l->turn = own.turn;
    l->like = t->turn ? t->first + k : LIKE_NONE;
    l->in = (ProgramValue *)(uintptr_t)values_of(t, from->in, from->n_in);
    for (int i = 0; i < from->n_out; i++)
        if (from->out[i].home == HOME_NEXT)
            t->makers[from->out[i].at - 1] = number;
    l->out = (ProgramValue *)(uintptr_t)values_of(t, from->out, from->n_out);
    l->product = value_of(t, &from->product);
    l->over = NEWS(t->m->arena, int, l->n_out + 1);
    for (int i = 0; i < l->n_out; i++)
        l->over[i] = l->kind == LAUNCH_CONTRACT && from->over[i] == from->n_in ? from->over[i] : LIES_APART;
    return program_lay_over(t->m, l);
}

static Status copy_call(const Turns *t, const Type *type, Node **copy)
{
    Build b = build_at_end(t->beside);
    Node *from = graph_input(t->beside, NULL, type);
    *copy = build_node(&b, OP_identity, NULL, 1, &from);
    return b.status;
}

/* Brings a value to where result `i` of the call is. */
static bool add_copy(Turns *t, const ProgramValue *from, int i)
{
    const Type *type = graph_result(t->body->plan.graph, 1 + i)->type;
    Node *copy;
    if (copy_call(t, type, &copy) != OK)
        return program_refuse(t->m, t->call, "values that cannot be copied");
    t->makers[i] = t->m->program->n_launches;
    Launch *l = add(t);
    l->kind = LAUNCH_CALL;
    l->node = copy;
    l->n_in = l->n_out = 1;
    l->in = NEW(t->m->arena, ProgramValue);
    l->out = NEW(t->m->arena, ProgramValue);
    l->over = NEW(t->m->arena, int);
    *l->in = *from;
    l->in->type = type;
    *l->out = place_of(t, i);
    *l->over = LIES_APART;
    return true;
}

/* ---- turns ---- */

static bool begin_turn(Turns *t)
{
    Build b = build_at_end(t->beside);
    const Node *number = build_scalar(&b, I64, (double)t->turn);
    if (b.status != OK)
        return program_refuse(t->m, t->call, "turns that cannot be counted");
    t->begin = t->m->program->n_launches;
    t->given[TURN_NUMBER] = (ProgramValue){ HOME_CONSTANT, program_add_constant(t->m, number), number->type, 0, false };
    return true;
}

/* What the next turn is given.  Copies read what lies elsewhere than where they are written: nothing only changes its place. */
static bool hand_on(Turns *t)
{
    const int n = type_results(t->call->type);
    ProgramValue *left = NEWS(t->m->arena, ProgramValue, n + 1);
    for (int i = 0; i < n; i++)
        left[i] = value_of(t, &t->once->results[1 + i]);
    for (int i = 0; i < n; i++) {
        const ProgramValue *made = &t->once->results[1 + i];
        const bool stays = is_carried(t, i) && made->home == HOME_INPUT && made->at == (size_t)(TURN_CARRIED + i);
        const bool there = made->home == HOME_NEXT && made->at == (size_t)(1 + i);
        if (!stays && !there && !add_copy(t, &left[i], i))
            return false;
    }
    for (int i = 0; i < n; i++)
        if (is_carried(t, i) && t->makers[i] >= t->begin)
            t->given[TURN_CARRIED + i] = place_of(t, i);
    return true;
}

/* What no turn has made is what the call was given. */
static bool finish(Turns *t)
{
    for (int i = 0; i < type_results(t->call->type); i++) {
        const ProgramValue *given = &t->given[TURN_CARRIED + (is_carried(t, i) ? i : 0)];
        const bool unmade = is_carried(t, i) && t->makers[i] < 0;
        if (unmade && given->home == HOME_ARENA && given->at == t->kept[i].at)
            t->makers[i] = given->maker;
        else if (unmade && !add_copy(t, given, i))
            return false;
        t->kept[i].maker = t->makers[i];
        t->kept[i].pieces = !is_carried(t, i);
    }
    return true;
}

static bool run(Turns *t)
{
    for (t->turn = 0; t->turn < t->body->turns.turns; t->turn++) {
        if (!begin_turn(t))
            return false;
        t->first = t->turn ? t->first : t->begin;
        for (int k = 0; k < t->once->n_launches; k++)
            if (!add_launch(t, k))
                return false;
        if (!hand_on(t))
            return false;
    }
    return finish(t);
}

/* ---- before the first ---- */

/* What the call is given, where that lies, and that turns go on. */
static bool take_operands(Turns *t)
{
    Build b = build_at_end(t->beside);
    const Type *condition = t->body->plan.graph->inputs[TURN_GOES_ON]->type;
    const Tensor *truth = tensor_new(t->m->arena, condition);
    tensor_set_i64((Tensor *)(uintptr_t)truth, 0, 1);
    const Node *goes_on = build_const(&b, truth);
    if (b.status != OK)
        return program_refuse(t->m, t->call, "turns that cannot be counted");
    t->given = NEWS(t->m->arena, ProgramValue, t->call->n_in + 1);
    t->given[TURN_GOES_ON] = (ProgramValue){ HOME_CONSTANT, program_add_constant(t->m, goes_on), condition, 0, false };
    for (int i = TURN_CARRIED; i < t->call->n_in; i++)
        if (!program_locate(t->m, in(t->call, i), 0, in(t->call, i)->type, &t->given[i]))
            return false;
    return true;
}

static void take_results(Turns *t)
{
    const int n = type_results(t->call->type);
    t->kept = NEWS(t->m->arena, ProgramValue, n + 1);
    t->makers = NEWS(t->m->arena, int, n + 1);
    for (int i = 0; i < n; i++) {
        const PlanValue v = plan_value(t->m->plan, t->call, i);
        BUG_IF(t->m->arena->memory, v.buffer == PLAN_ELSEWHERE);
        t->kept[i] =
            (ProgramValue){ HOME_ARENA, t->m->plan->buffers[v.buffer].offset, type_result(t->call->type, i), 0, false };
        t->makers[i] = -1;
    }
    *(ProgramValue **)fact(&t->m->made, t->call) = t->kept;
}

bool program_add_turns(ProgramMaking *m, const Node *call, const PlanBody *body)
{
    const Node *where = NULL;
    Turns t = { .m = m,
                .call = call,
                .part = (StepPart)(*(int *)fact(&m->parts, call)),
                .body = body,
                .arena = m->plan->buffers[body->buffer].offset,
                .beside = region_new(m->plan->graph) };
    t.once = program_make(&body->plan, m->arena, &m->why, &where);
    if (!t.once)
        return program_refuse(m, where ? where : call, m->why);
    t.constants = NEWS(m->arena, size_t, t.once->n_constants + 1);
    for (int i = 0; i < t.once->n_constants; i++)
        t.constants[i] = program_add_constant(m, t.once->constants[i]);
    if (!take_operands(&t))
        return false;
    take_results(&t);
    return run(&t);
}
