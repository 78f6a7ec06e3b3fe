/* ema: a running average of every trained parameter, as state qcc.ema/NAME.
 *
 *     # recipe: --ema 0.99
 *     graph @f(state %w: f32[2] = [3, 4] trained, state %qcc.step: i64[]) -> (%w = %next, %qcc.step = %step) {
 *         %next: f32[2] = neg(%w)
 *         const %1: i64[] = 1
 *         %step: i64[] = add(%qcc.step, %1)
 *     }
 *     ==>
 *     graph @f(
 *             state %w: f32[2] = [3, 4] trained,
 *             state %qcc.step: i64[] role=counter,
 *             state %"qcc.ema/w": f32[2] = [3, 4] role=ema of=%w) -> (
 *             %w = %next,
 *             %qcc.step = %step,
 *             %"qcc.ema/w" = %7) {
 *         %next: f32[2] = neg(%w)
 *         const %0: i64[] = 1
 *         %step: i64[] = add(%qcc.step, %0)
 *         const %1: i64[] = 1 ours side=update
 *         %2: bool[] = less_or_equal(%step, %1) ours side=update
 *         %3: f32[2] = sub(%next, %"qcc.ema/w") ours side=update
 *         const %4: f32[] = 0.01 ours side=update
 *         %5: f32[2] = mul(%3, %4) ours side=update
 *         %6: f32[2] = add(%"qcc.ema/w", %5) ours side=update
 *         %7: f32[2] = where(%2, %next, %6) ours side=update
 *     }
 *
 * It begins with the parameter after the first step, as PyTorch's AveragedModel does. */
#include "ops/card/make.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"

typedef struct Averaging {
    double keep;
    Results results;
    Build b;
    Node *first; /* whether this is the first step */
} Averaging;

/* keep * average + (1 - keep) * next, written as a way towards `next`. */
static void average(Averaging *a, Node *parameter, Node *next)
{
    Graph *g = a->results.g;
    Build *b = &a->b;
    const DType own = parameter->type->dtype, t = make_width(own);
    const char *name = name_with(g, EMA_PREFIX, parameter->name);
    const StateAttr attr = { t == own ? state_initial(parameter) : NULL, { STATE_ema, parameter->name } };
    Node *mean = graph_state(g, name, type_with_dtype(&g->ir->types, parameter->type, t), &attr);
    Node *value = make_cast(b, next, t);
    Node *way = CALL(b, mul, CALL(b, sub, value, mean), build_scalar(b, t, 1 - a->keep));
    results_add(&a->results, name, CALL(b, where, a->first, value, CALL(b, add, mean, way)));
}

/* An average is a copy in f32, which is what is not kept of codes. */
static Status refuse_stored(PassRun *run, const Node *x)
{
    Place place = NOWHERE;
    place.where = "--ema";
    Message *m = message_new(run->diag, SEVERITY_ERROR, UNSUPPORTED, place,
                             "%s is stored as %s: an average would be the copy in f32 that is not kept of it", x->name,
                             node_stored(x));
    message_try(m, "the same without --ema");
    message_try(m, "--quant-op '%s=w=off', which lets it be f32", x->name);
    return message_send(m);
}

static Status ema(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    if (!recipe || recipe->ema == 0)
        return OK;
    Averaging a = { .keep = recipe->ema, .results = results_of(g, run->scratch), .b = build_at_end(g) };
    a.b.flags = NODE_OURS | NODE_UPDATE;
    const int step = results_next(&a.results, graph_state_of(g, STATE_counter, NULL));
    if (step < 0)
        return fail(run->diag, NOWHERE, "there is no " STEP_NAME ": update runs before ema");
    a.first = CALL(&a.b, less_or_equal, a.results.node[step], build_scalar(&a.b, I64, 1));
    const size_t n = a.results.n;
    for (size_t i = 0; i < n; i++) {
        const char *name = results_name(&a.results, i);
        Node *x = name ? results_input(&a.results, name) : NULL;
        if (!x || x->op != OP_state || !(x->flags & NODE_TRAINED))
            continue;
        if (node_stored(x))
            return refuse_stored(run, x);
        average(&a, x, a.results.node[i]);
        run->changes++;
    }
    results_set(&a.results);
    return a.b.status;
}

const Pass pass_ema = { .name = "ema", .needs = TYPED | SHAPED, .may = EXACT, .run = ema };
