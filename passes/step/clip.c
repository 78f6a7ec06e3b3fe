/* clip: the norm of all gradients, as result `grad_norm`, and how gradients are clipped before the update.
 *
 *     # recipe: --clip-norm 1
 *     graph @f(state %w: f32[2] trained) -> (%grad.w = %w) {
 *     }
 *     ==>
 *     graph @f(state %w: f32[2] trained) -> (%grad.w = %w role=gradient of=%w, %grad_norm = %6, %qcc.grad_scale = %12 role=factor) {
 *         %0: f32[] = reduce_sum_square(%w, keepdims=false) ours side=update
 *         %1: f64[] = cast(%0, to=f64) ours side=update
 *         const %2: i64[1] = [1] ours side=update
 *         %3: f64[1] = reshape(%1, %2, allowzero=true) ours side=update
 *         %4: f64[] = reduce_sum(%3, keepdims=false) ours side=update
 *         %5: f64[] = sqrt(%4) ours side=update
 *         %6: f32[] = cast(%5, to=f32) ours side=update
 *         const %7: f32[] = 1e-6 ours side=update
 *         %8: f32[] = add(%6, %7) ours side=update
 *         const %9: f32[] = 1 ours side=update
 *         %10: f32[] = div(%9, %8) ours side=update
 *         const %11: f32[] = 1 ours side=update
 *         %12: f32[] = min(%10, %11) ours side=update
 *     }
 *
 * The gradients stay as they are: update multiplies with the factor (result qcc.grad_scale) where it reads them, and by
 * value they are clipped on their way there (results qcc.clipped/NAME); update takes both results away.
 *
 * Of a scaled loss (result qcc.latched) gradients are a power of two too large.  Norm and both ways of clipping mean
 * what they mean without it, to the bit: squares are of gradient / scale, bounds are multiplied by the scale, and the
 * factor divides by it.  Here the step also learns what it found (result qcc.found), whether it is applied
 * (qcc.applied), and its next scale. */
#include "ops/card/make.h"
#include "ops/update/scaler.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/recipe/scale_read.h"

typedef struct Clipping {
    const Recipe *recipe;
    Results results;
    Build b;
    Node *latched, *inverse; /* the scale of the gradients; null: they have none */
    Node **square;           /* sum of squares of each gradient as it is clipped, f64[1] */
    Node **raw;              /* the same before they are clipped, where that differs */
    int n;
} Clipping;

/* ---- one gradient ---- */

/* A bound of scaled gradients; in the wide type, because a narrow one may not hold the scale. */
static Node *bound(Clipping *c, DType t, double v)
{
    const DType wide = make_width(t);
    if (!c->latched)
        return build_scalar(&c->b, t, v);
    Node *scale = make_cast(&c->b, c->latched, wide);
    return make_cast(&c->b, CALL(&c->b, mul, build_scalar(&c->b, wide, v), scale), t);
}

/* In [-most, most]. */
static Node *by_value(Clipping *c, Node *gradient, Node *parameter)
{
    const DType t = gradient->type->dtype;
    Node *most = bound(c, t, c->recipe->clip_value);
    Node *least = bound(c, t, -c->recipe->clip_value);
    Node *clipped = CALL(&c->b, clip, gradient, least, most);
    const char *name = name_with(c->results.g, CLIPPED_PREFIX, parameter->name);
    results_add_as(&c->results, name, clipped, RESULT_clipped, parameter->name);
    return clipped;
}

/* Within a tensor squares are summed as every row is, in f32; across tensors in f64. */
static Node *square(Clipping *c, Node *gradient)
{
    const int64_t one = 1;
    const DType t = make_width(gradient->type->dtype);
    Node *wide = make_cast(&c->b, gradient, t);
    if (c->latched)
        wide = CALL(&c->b, mul, wide, make_cast(&c->b, c->inverse, t));
    Node *sum = make_reduce_all(&c->b, OP_reduce_sum_square, wide);
    return make_reshape(&c->b, make_cast(&c->b, sum, F64), 1, &one);
}

/* ---- all of them ---- */

static void add_squares(Clipping *c)
{
    const size_t n = c->results.n;
    for (size_t i = 0; i < n; i++) {
        Node *parameter = results_trained(&c->results, i), *gradient = c->results.node[i];
        if (!parameter)
            continue;
        if (c->recipe->clip_value > 0) { /* which makes infinite gradients finite */
            c->raw[c->n] = c->latched ? square(c, gradient) : NULL;
            c->square[c->n++] = square(c, by_value(c, gradient, parameter));
        } else {
            c->square[c->n] = c->raw[c->n] = square(c, gradient);
            c->n++;
        }
    }
}

static Node *joined(Clipping *c, Node *const *squares)
{
    return c->n == 1 ? squares[0] : make_concat(&c->b, 0, c->n, squares);
}

static Node *norm(Clipping *c)
{
    if (!c->n)
        return build_scalar(&c->b, F32, 0);
    return make_cast(&c->b, CALL(&c->b, sqrt, make_reduce_all(&c->b, OP_reduce_sum, joined(c, c->square))), F32);
}

/* min(1, most / (norm + 1e-6)) */
static Node *factor(Clipping *c, Node *norm)
{
    Build *b = &c->b;
    Node *under = CALL(b, add, norm, build_scalar(b, F32, 1e-6));
    return CALL(b, min, CALL(b, div, build_scalar(b, F32, c->recipe->clip_norm), under), build_scalar(b, F32, 1));
}

/* What gradients are multiplied with before the update; null: nothing. */
static Node *all_factors(Clipping *c, Node *norm)
{
    Node *least = c->recipe->clip_norm > 0 ? factor(c, norm) : NULL;
    return c->latched && least ? CALL(&c->b, mul, c->inverse, least) : c->latched ? c->inverse : least;
}

/* What the step found, and its scale afterwards. */
static void move_scale(Clipping *c)
{
    Build *b = &c->b;
    Graph *g = c->results.g;
    const LossScale s = recipe_loss_scale(c->recipe);
    const ScalerRules rules = loss_scale_rules(&s);
    const int64_t none = 0;
    const int loss = results_find(&c->results, "loss");
    Tensor *first = tensor_new(g->arena, type_vector(&g->ir->types, I64, SCALER_COUNTERS));
    const ScalerState begin = scaler_begin(&rules, (float)s.init);
    scaler_pack(&begin, first->data);
    Node *scale = graph_state_of(g, STATE_scaler, NULL);
    const StateAttr attr = { payload_of(g->arena, first), { STATE_scaler, scale ? scale->name : NULL } };
    if (!scale) {
        b->status = fail(g->ir->diag, NOWHERE, "the loss is scaled, and no state has the role scaler");
        return;
    }
    Node *values = c->n ? joined(c, c->raw) : make_zeros(b, F64, 1, &none);
    Node *found = loss < 0 ? CALL(b, check_finite, values) : CALL(b, check_finite, values, c->results.node[loss]);
    Node *in[] = { scale, graph_state(g, SCALER_NAME, first->type, &attr), found };
    Node *next = build_node_n(b, OP_update_scale, &rules, 3, in, 3);
    results_add_as(&c->results, FOUND_NAME, found, RESULT_found, NULL);
    results_add(&c->results, scale->name, build_part(b, next, 0));
    results_add(&c->results, in[1]->name, build_part(b, next, 1));
    results_add_as(&c->results, APPLIED_NAME, build_part(b, next, 2), RESULT_applied, NULL);
}

static Status clip(Graph *g, PassRun *run)
{
    static const Recipe none = { .n_groups = 0 };
    Clipping c = { .recipe = run->options->recipe ? run->options->recipe : &none };
    c.results = results_of(g, run->scratch);
    c.b = build_at_end(g);
    c.b.flags = NODE_OURS | NODE_UPDATE;
    c.square = NEWS(run->scratch, Node *, c.results.n + 1);
    c.raw = NEWS(run->scratch, Node *, c.results.n + 1);
    const int latched = results_of_role(&c.results, RESULT_latched);
    if (latched >= 0) {
        c.latched = c.results.node[latched];
        c.inverse = CALL(&c.b, div, build_scalar(&c.b, F32, 1), c.latched);
    }
    add_squares(&c);
    if (c.latched)
        move_scale(&c);
    Node *all = norm(&c), *factors = all_factors(&c, all);
    results_add(&c.results, "grad_norm", all);
    if (factors)
        results_add_as(&c.results, GRADIENT_SCALE, factors, RESULT_factor, NULL);
    results_set(&c.results);
    run->changes += c.n;
    return c.b.status;
}

const Pass pass_clip = { .name = "clip", .needs = TYPED | SHAPED, .may = EXACT, .run = clip };
