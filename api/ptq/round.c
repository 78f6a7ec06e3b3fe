/* Learned rounding: which way each weight of a layer goes is trained, so that the layer gives what it gives in floats, on
 * the data that it gets from the layers before it as they are by then.  The step is compiled and run as any other. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/lower.h"
#include "api/ptq/ptq.h"
#include "ops/quant/quantize.h"
#include "passes/pipelines.h"
#include "passes/ptq/chains.h"
#include "passes/ptq/rounding.h"
#include "passes/recipe/optimizer_read.h"

/* What is added to the loss for weights that have gone neither way: nothing for the first part of the steps. */
static const double undecided = 1, free_part = 0.2, beta_first = 20, beta_last = 2;
#define ROUNDING_OPTIMIZER "adam:lr=1e-2"
/* A number that is so near to its code stays as it is: the end of a range is such a one, and the scale hangs on it. */
static const double is_whole = 1e-3, surely = 40;

typedef struct Rounding {
    Walk *w;
    PtqLayer *l;
    Arena *arena;
    RoundingLayer layer;
    Node *codes, *state;
    Tensor *floors, *scales, *start;
    Tensor *beta, *lambda;
} Rounding;

/* ---- the layer ---- */

static const char *find_layer(Rounding *r)
{
    const Node *call = r->l->call;
    r->layer.call = call;
    r->layer.weight = chain_weight(call);
    r->layer.data = 1 - r->layer.weight;
    Node *number = in(call, r->layer.weight);
    r->state = chain_state(number);
    if (!op_of(number)->quant.dequantizes)
        return "its weight is no code";
    r->codes = in(number, 0);
    const DType t = r->codes->type->dtype;
    if (!dtype_is_integer(t) || dtype_bits(t) > 16 || t == BOOL)
        return "its codes are no integers";
    return r->w->batches->n && !walk_value(r->w, in(call, r->layer.data), 0, false) ? "its data are not there" : NULL;
}

/* Where codes of 0 are not 0, both ends of what shares a scale make it, and are seldom whole: numbers that are an end. */
static bool *ends_of(Rounding *r, const Tensor *x, const ScaleLayout *layout, int64_t scales)
{
    bool *is_end = NEWS(r->arena, bool, tensor_elements(x) + 1);
    double *least = NEWS(r->arena, double, scales), *most = NEWS(r->arena, double, scales);
    int64_t i = 0;
    for (int64_t k = 0; k < scales; k++) {
        least[k] = (double)INFINITY;
        most[k] = -(double)INFINITY;
    }
    for (int64_t k = 0; k < tensor_elements(x); k++) {
        scale_layout_indices(layout, k, 1, &i);
        least[i] = fmin(least[i], tensor_get_f64(x, k));
        most[i] = fmax(most[i], tensor_get_f64(x, k));
    }
    for (int64_t k = 0; k < tensor_elements(x); k++) {
        scale_layout_indices(layout, k, 1, &i);
        is_end[k] = tensor_get_f64(x, k) == least[i] || tensor_get_f64(x, k) == most[i];
    }
    return is_end;
}

/* Every weight as a floor and what is above it.  Each scale may have a code of 0 of its own, from which codes count. */
static void take_apart(Rounding *r)
{
    Walk *w = r->w;
    double lo, hi;
    const QuantizeAttr *at = r->codes->attr;
    const Tensor *x = walk_value(w, r->state, 0, false), *s = walk_value(w, in(r->codes, 1), 0, false);
    const Tensor *z = walk_value(w, in(r->codes, 2), 0, false);
    const ScaleLayout layout = scale_layout_of(x->type, s->type, at->axis, at->block_size);
    code_limits(r->codes->type->dtype, at->least, at->largest, &lo, &hi);
    const bool *is_end = z ? ends_of(r, x, &layout, tensor_elements(s)) : NULL;
    r->layer.least = (double)INFINITY;
    r->layer.largest = -(double)INFINITY;
    r->floors = tensor_new(r->arena, x->type);
    r->scales = tensor_new(r->arena, x->type);
    r->start = tensor_new(r->arena, x->type);
    for (int64_t k = 0; k < tensor_elements(x); k++) {
        int64_t i = 0;
        scale_layout_indices(&layout, k, 1, &i);
        const double scale = tensor_get_f64(s, i), v = tensor_get_f64(x, k) / scale;
        const double zero = z ? (double)tensor_get_i64(z, i) : 0, least = lo - zero, largest = hi - zero;
        double down = floor(v), part = v - down;
        const bool stays = fabs(v - rint(v)) < is_whole || v <= least || v >= largest || (is_end && is_end[k]);
        if (stays)
            down = fmin(fmax(rint(v), least), largest), part = 0;
        r->layer.least = fmin(r->layer.least, least);
        r->layer.largest = fmax(r->layer.largest, largest);
        tensor_set_f64(r->floors, k, down);
        tensor_set_f64(r->scales, k, scale);
        tensor_set_f64(r->start, k, stays ? -surely : rounding_of(part));
    }
}

/* ---- training ---- */

static Status build(Rounding *r, Module **m)
{
    Walk *w = r->w;
    const char *const outputs[] = { "loss" };
    const LossSpec loss = { .kind = LOSS_OUTPUT, .outputs = outputs, .n_outputs = 1, .factor = 1 };
    Recipe recipe = { .losses = &loss, .n_losses = 1 };
    const OptimizerWords words = { .optimizer = ROUNDING_OPTIMIZER };
    const PipelineOptions options = { .pass = { .recipe = &recipe } };
    const Node *call = r->l->call;
    const Tensor **others = NEWS(r->arena, const Tensor *, call->n_in);
    for (int i = 0; i < call->n_in; i++)
        others[i] = walk_value(w, in(call, i), 0, true);
    r->layer.others = others;
    r->layer.x = walk_value(w, in(call, r->layer.data), 0, false)->type;
    r->layer.y = walk_value(w, call, 0, true)->type;
    r->layer.floors = r->floors;
    r->layer.scales = r->scales;
    r->layer.start = r->start;
    Graph *g = graph_new(&w->ir, r->arena, "step");
    TRY(recipe_read_optimizer(&recipe, &words, w->ir.ops, r->arena, w->ir.diag));
    TRY(rounding_graph(g, &r->layer));
    TRY(pipeline_run(pipeline_find("train-step"), g, &options));
    *m = module_new(&w->ir, r->arena);
    module_add(*m, g);
    return OK;
}

/* 20 at first, 2 in the end, once weights have to decide. */
static double beta_at(double done)
{
    const double part = done < free_part ? 0 : (done - free_part) / (1 - free_part);
    return beta_last + (beta_first - beta_last) * (1 - part);
}

static Status step(Rounding *r, Session *run, const Tensor *x, const Tensor *y, double done)
{
    RunResult result;
    tensor_set_f64(r->beta, 0, beta_at(done));
    tensor_set_f64(r->lambda, 0, done < free_part ? 0 : undecided);
    TRY(session_bind(run, ROUNDING_DATA, x));
    TRY(session_bind(run, ROUNDING_WANTED, y));
    TRY(session_bind(run, ROUNDING_BETA, r->beta));
    TRY(session_bind(run, ROUNDING_WEIGHT, r->lambda));
    return session_run(run, RUN_STEP, &result);
}

static Status train(Rounding *r, const PtqPlan *plan, uint64_t seed)
{
    Module *m;
    Session *run;
    Walk *w = r->w;
    qcc_context *cx = w->cx;
    TRY(build(r, &m));
    r->beta = tensor_scalar(r->arena, &w->ir.types, F32, 0);
    r->lambda = tensor_scalar(r->arena, &w->ir.types, F32, 0);
    const SessionOptions options = { .engine = cx->engine,
                                     .kernels = cx->kernels,
                                     .pool = context_pool(cx),
                                     .seed = seed,
                                     .stop = &cx->stop,
                                     .device = cx->device,
                                     .exact = cx->options.exact,
                                     .programs = lower_for_engine,
                                     .maker = &cx->lowering };
    TRY(session_open(m, &options, r->arena, &run));
    Status status = OK;
    for (int64_t i = 0; i < plan->steps && status == OK; i++) {
        const size_t at = (size_t)i % w->batches->n;
        status = step(r, run, walk_value(w, in(r->l->call, r->layer.data), at, false),
                      walk_value(w, r->l->call, at, true), (double)i / (double)plan->steps);
    }
    const Tensor *p = status == OK ? session_view(run, ROUNDING_STATE) : NULL;
    for (int64_t k = 0; p && k < tensor_elements(p); k++)
        tensor_set_f64(r->start, k, tensor_get_f64(p, k));
    session_close(run);
    return status;
}

/* ---- what comes of it ---- */

/* The weight that has these codes; one that stays keeps its bits. */
static Tensor *rounded_weight(Rounding *r, const Tensor *x)
{
    Tensor *t = tensor_new(r->arena, x->type);
    for (int64_t k = 0; k < tensor_elements(x); k++) {
        const double p = tensor_get_f64(r->start, k), scale = tensor_get_f64(r->scales, k),
                     v = tensor_get_f64(x, k) / scale;
        if (p <= -surely) {
            tensor_set_f64(t, k, tensor_get_f64(x, k));
            continue;
        }
        double code = tensor_get_f64(r->floors, k) + (rounding_part(p) >= 0.5);
        code = fmin(fmax(code, r->layer.least), r->layer.largest);
        r->l->moved += code != rint(v);
        tensor_set_f64(t, k, code * scale);
    }
    return t;
}

static Status round_layer(Rounding *r, const PtqPlan *plan, uint64_t seed)
{
    Walk *w = r->w;
    const Tensor *x = walk_value(w, r->state, 0, false);
    Tensor *old = tensor_new(r->arena, x->type);
    memcpy(old->data, x->data, x->bytes);
    take_apart(r);
    const WalkError nearest = walk_error(w, r->l->call);
    r->l->nearest = walk_db(&nearest);
    if (!(nearest.noise > 0)) {
        r->l->why = "nothing is lost";
        return OK;
    }
    r->layer.share = (double)nearest.n / nearest.noise;
    TRY(train(r, plan, seed));
    TRY(walk_put(w, r->state, rounded_weight(r, old), r->l->call));
    const WalkError after = walk_error(w, r->l->call);
    r->l->rounded = walk_db(&after);
    if (after.noise < nearest.noise)
        return OK;
    r->l->why = "nothing better was found";
    r->l->moved = 0;
    r->l->rounded = r->l->nearest;
    return walk_put(w, r->state, old, r->l->call);
}

Status ptq_round(Walk *w, PtqLayer *l, const PtqPlan *plan, uint64_t seed)
{
    Arena arena;
    Rounding r = { .w = w, .l = l, .arena = &arena };
    Status status = OK;
    arena_open(&arena, &w->cx->memory);
    l->why = find_layer(&r);
    if (!l->why)
        status = round_layer(&r, plan, seed);
    arena_close(&arena);
    return status;
}
