/* The arithmetic that a session needs outside of its step: sums of gradients, gradients without their scale, whether they
 * are finite, weights that are rounded.  Each is a small graph that the engine runs over values that it holds:
 *
 *     graph @sum(%a, %b, ...) -> (%0, ...) { %0 = add(%a, %b) ... }
 *
 * made when it is first wanted.  Results become values of the session when all of them are there. */
#include "ops/card/make.h"
#include "runtime/session/session_parts.h"

#include <math.h>

/* ---- graphs ---- */

typedef struct Making {
    Graph *g;
    Build b;
    Node **results;
    int n;
} Making;

static Making making(Session *s, const char *name)
{
    Making m = { .g = graph_new(s->ir, s->arena, name) };
    m.b = build_at_end(m.g);
    m.results = NEWS(s->arena, Node *, s->n_graded + 1);
    return m;
}

static Status made(Session *s, Making *m, int *number)
{
    TRY(m->b.status);
    graph_return(m->g, m->n, m->results, NULL);
    return session_load(s, (Executable){ .graph = m->g, .n_parts = 1, .brief = true }, number);
}

static const Type *gradient_type(const Session *s, size_t i)
{
    return graph_result(session_step_graph(s), s->graded[i]->gradient)->type;
}

static Status make_sum(Session *s)
{
    Making m = making(s, "sum");
    for (size_t i = 0; i < s->n_graded; i++) {
        const Type *type = gradient_type(s, i);
        Node *sum = graph_input(m.g, NULL, type), *gradient = graph_input(m.g, NULL, type);
        m.results[m.n++] = CALL(&m.b, add, sum, gradient);
    }
    return made(s, &m, &s->arithmetics.sum);
}

/* x * factor: in f32, or wider where x is; exact for a power of two, but for what is too small for the type. */
static Node *scaled(Build *b, Node *x, Node *factor)
{
    const DType dtype = x->type->dtype, wide = dtype == F64 ? F64 : F32;
    return make_cast(b, CALL(b, mul, make_cast(b, x, wide), make_cast(b, factor, wide)), dtype);
}

static Status make_unscale(Session *s)
{
    Making m = making(s, "unscale");
    Node *scale = graph_input(m.g, NULL, s->scaling.scale->type), *one = build_scalar(&m.b, F32, 1),
         *factor = CALL(&m.b, div, one, scale);
    for (size_t i = 0; i < s->n_graded; i++)
        m.results[m.n++] = scaled(&m.b, graph_input(m.g, NULL, gradient_type(s, i)), factor);
    m.results[m.n++] = one;
    return made(s, &m, &s->arithmetics.unscale);
}

/* x - x is 0 or NaN. */
static Status make_finite(Session *s)
{
    Making m = making(s, "finite");
    Node *all = build_scalar(&m.b, F64, 0);
    for (size_t i = 0; i < s->n_graded; i++) {
        Node *x = graph_input(m.g, NULL, gradient_type(s, i));
        all = CALL(&m.b, add, all, make_cast(&m.b, make_reduce_all(&m.b, OP_reduce_sum, CALL(&m.b, sub, x, x)), F64));
    }
    m.results[m.n++] = all;
    return made(s, &m, &s->arithmetics.finite);
}

static Status make_rounder(Session *s, const Type *from, const Type *to, const Rounder **rounder)
{
    Making m = making(s, "round");
    Rounder *r = NEW(s->arena, Rounder);
    *r = (Rounder){ .next = s->arithmetics.rounders, .from = from, .to = to };
    m.results[m.n++] = build_amp_cast(&m.b, graph_input(m.g, NULL, from), to->dtype);
    TRY(made(s, &m, &r->number));
    s->arithmetics.rounders = r;
    *rounder = r;
    return OK;
}

/* ---- runs ---- */

static Status run_over(Session *s, int graph, const ValueAt *inputs)
{
    const EngineRun options = { .inputs = inputs };
    TRY(s->engine->begin(s->values, graph, &options));
    return s->engine->run(s->values, graph, 0);
}

static ValueAt gradient_of_run(const Session *s, size_t i)
{
    return session_step_result(s, s->graded[i]->gradient);
}

static ValueAt sum_at(const Session *s, size_t i)
{
    return state_part(s->graded[i], PART_SUM);
}

Status sums_add(Session *s, int *n_moves)
{
    ValueAt *in = s->arguments;
    const bool first = !s->has_sums;
    if (!first && s->arithmetics.sum < 0)
        TRY(make_sum(s));
    for (size_t i = 0; i < s->n_graded; i++) {
        in[2 * i] = sum_at(s, i);
        in[2 * i + 1] = gradient_of_run(s, i);
        add_move(s, n_moves, sum_at(s, i), first ? in[2 * i + 1] : value_result(s->arithmetics.sum, (int)i));
    }
    return first ? OK : run_over(s, s->arithmetics.sum, in);
}

Status sums_unscale(Session *s, bool of_sums, int *n_moves)
{
    ValueAt *in = s->arguments;
    if (s->arithmetics.unscale < 0)
        TRY(make_unscale(s));
    in[0] = value_kept(s->latched);
    for (size_t i = 0; i < s->n_graded; i++) {
        in[i + 1] = of_sums ? sum_at(s, i) : gradient_of_run(s, i);
        add_move(s, n_moves, in[i + 1], value_result(s->arithmetics.unscale, (int)i));
    }
    add_move(s, n_moves, session_step_result(s, s->scaling.latch),
             value_result(s->arithmetics.unscale, (int)s->n_graded));
    return run_over(s, s->arithmetics.unscale, in);
}

Status sums_finite(Session *s, bool *finite)
{
    ValueAt *in = s->arguments;
    bool there;
    double sum;
    if (s->arithmetics.finite < 0)
        TRY(make_finite(s));
    for (size_t i = 0; i < s->n_graded; i++)
        in[i] = s->has_sums ? sum_at(s, i) : gradient_of_run(s, i);
    TRY(run_over(s, s->arithmetics.finite, in));
    TRY(session_number(s, value_result(s->arithmetics.finite, 0), &there, &sum));
    *finite = there && isfinite(sum);
    sums_end(s);
    return OK;
}

Status sums_round(Session *s, const State *shadow, ValueAt from, StatePart to)
{
    const Rounder *r = s->arithmetics.rounders;
    while (r && (r->from != shadow->master->type || r->to != shadow->type))
        r = r->next;
    if (!r)
        TRY(make_rounder(s, shadow->master->type, shadow->type, &r));
    TRY(run_over(s, r->number, &from));
    const ValueMove move = { state_part(shadow, to), value_result(r->number, 0) };
    TRY(s->engine->move(s->values, 1, &move));
    s->engine->end(s->values, r->number);
    return OK;
}

void sums_end(Session *s)
{
    const int graphs[] = { s->arithmetics.sum, s->arithmetics.unscale, s->arithmetics.finite };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++)
        if (graphs[i] >= 0)
            s->engine->end(s->values, graphs[i]);
}
