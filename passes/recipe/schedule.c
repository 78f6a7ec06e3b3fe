#include "passes/recipe/schedule.h"

#include "ir/own_names.h"
#include "ir/role.h"
#include "ops/card/cards.h"
#include "ops/card/make.h"

/* A schedule under construction: f32 scalars all of them. */
typedef struct Curve {
    Build *b;
    Node *t, *warmup, *total; /* the number of the step, of steps that rise, of all steps; null: none */
    Node *endless;            /* whether the total is not known */
} Curve;

static Node *number(Curve *c, double v)
{
    return build_scalar(c->b, F32, v);
}

/* How far x is on the way from `from` (null: 0) to `to`, in [0, 1]. */
static Node *progress(Curve *c, Node *x, Node *from, Node *to)
{
    Build *b = c->b;
    Node *way = CALL(b, max, from ? CALL(b, sub, to, from) : to, number(c, 1));
    Node *p = CALL(b, div, from ? CALL(b, sub, x, from) : x, way);
    return CALL(b, clip, p, number(c, 0), number(c, 1));
}

/* The same for the way to the last step: nothing of it is done where there is none. */
static Node *progress_to_end(Curve *c, Node *x, Node *from, Node *to)
{
    return CALL(c->b, where, c->endless, number(c, 0), progress(c, x, from, to));
}

/* From one value to another along half a wave. */
static Node *wave(Curve *c, double from, double to, Node *p)
{
    Build *b = c->b;
    Node *turn = CALL(b, cos, CALL(b, mul, p, number(c, 3.14159265358979323846)));
    Node *height = CALL(b, mul, CALL(b, add, turn, number(c, 1)), number(c, (from - to) / 2));
    return CALL(b, add, height, number(c, to));
}

static Node *line(Curve *c, double from, double to, Node *p)
{
    return CALL(c->b, add, CALL(c->b, mul, p, number(c, to - from)), number(c, from));
}

static void find_total(Curve *c, const Schedule *s)
{
    Graph *g = c->b->graph;
    const Type *type = type_scalar(&g->ir->types, I64);
    Tensor *first = tensor_scalar(g->arena, &g->ir->types, I64, (double)s->total);
    const StateAttr attr = { payload_of(g->arena, first), { STATE_length, NULL } };
    Node *total = graph_state(g, TOTAL_STEPS_NAME, type, &attr);
    c->total = build_cast(c->b, total, F32);
    c->endless = CALL(c->b, less_or_equal, c->total, number(c, 0));
}

/* One step before the one at hand: both PyTorch's schedules and the last step count from 0. */
static Node *before(Curve *c, Node *x)
{
    return CALL(c->b, sub, x, number(c, 1));
}

static Node *falling(Curve *c, const Schedule *s, double lr)
{
    Node *p = progress_to_end(c, before(c, c->t), c->warmup, c->total);
    const double end = lr > 0 ? s->min_lr / lr : 0;
    return s->kind == SCHEDULE_COSINE ? wave(c, 1, end, p) : line(c, 1, end, p);
}

/* Up to the peak in the warmup, then down below where it began. */
static Node *onecycle(Curve *c, const Schedule *s)
{
    Build *b = c->b;
    const double begin = 1 / s->div_factor, end = begin / s->final_div_factor;
    Node *now = before(c, c->t), *peak = before(c, c->warmup);
    Node *up = wave(c, begin, 1, progress(c, now, NULL, peak));
    Node *down = wave(c, 1, end, progress_to_end(c, now, peak, before(c, c->total)));
    return CALL(b, where, CALL(b, less_or_equal, now, peak), up, down);
}

/* How often the rate has been multiplied: each `every` steps that are done, or at the numbers that are said. */
static Node *drops(Curve *c, const Schedule *s, Node *step)
{
    Build *b = c->b;
    const int64_t n = (int64_t)s->n_at;
    Node *done = CALL(b, sub, step, build_scalar(b, I64, 1));
    if (s->kind == SCHEDULE_STEP)
        return build_cast(b, CALL(b, div, done, build_scalar(b, I64, (double)s->every)), F32);
    Node *reached = build_cast(b, CALL(b, less_or_equal, build_i64s(b, (int)n, s->at), done), F32);
    return make_reduce_all(b, OP_reduce_sum, reached);
}

bool schedule_has_end(const Schedule *s)
{
    return s->kind == SCHEDULE_LINEAR || s->kind == SCHEDULE_COSINE || s->kind == SCHEDULE_ONECYCLE;
}

Node *schedule_part(Build *b, const Schedule *s, double lr, Node *step)
{
    Curve c = { .b = b };
    const bool constant = s->kind == SCHEDULE_CONSTANT;
    if (constant && !s->warmup)
        return NULL;
    c.t = build_cast(b, step, F32);
    if (schedule_has_end(s))
        find_total(&c, s);
    if (s->warmup)
        c.warmup = number(&c, (double)s->warmup);
    else if (s->warmup_ratio > 0)
        c.warmup = CALL(b, mul, c.total, number(&c, s->warmup_ratio));
    if (s->kind == SCHEDULE_ONECYCLE)
        return onecycle(&c, s);
    Node *rising = c.warmup ? CALL(b, div, c.t, c.warmup) : NULL;
    Node *then = constant              ? number(&c, 1)
                 : schedule_has_end(s) ? falling(&c, s, lr)
                                       : CALL(b, pow, number(&c, s->factor), drops(&c, s, step));
    return rising ? CALL(b, where, CALL(b, less_or_equal, c.t, c.warmup), rising, then) : then;
}
