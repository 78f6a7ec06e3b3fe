/* clip: the norm of all gradients, as result `grad_norm`, and how gradients are clipped before the update.
 *
 *     # recipe: --clip-norm 1
 *     graph @f(state %w: f32[2] trained) -> (%grad.w = %w) {
 *     }
 *     ==>
 *     graph @f(state %w: f32[2] trained) -> (%grad.w = %w, %grad_norm = %6, %qcc.grad_scale = %12) {
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
 * value they are clipped on their way there (results qcc.clipped/NAME); update takes both results away. */
#include "ops/make.h"
#include "passes/pass.h"
#include "passes/results.h"

typedef struct Clipping {
    const Recipe *recipe;
    Results results;
    Build b;
    Node **square; /* sum of squares of each gradient, f64[1] */
    int n;
} Clipping;

/* In [-most, most]. */
static Node *by_value(Clipping *c, Node *gradient, Node *parameter)
{
    const DType t = gradient->type->dtype;
    Node *most = build_scalar(&c->b, t, c->recipe->clip_value);
    Node *least = build_scalar(&c->b, t, -c->recipe->clip_value);
    Node *clipped = CALL(&c->b, clip, gradient, least, most);
    results_add(&c->results, name_with(c->results.g, CLIPPED_PREFIX, parameter->name), clipped);
    return clipped;
}

/* Within a tensor squares are summed as every row is, in f32; across tensors in f64. */
static void add_square(Clipping *c, Node *gradient)
{
    const int64_t one = 1;
    const DType t = make_width(gradient->type->dtype);
    Node *sum = make_reduce_all(&c->b, OP_reduce_sum_square, make_cast(&c->b, gradient, t));
    c->square[c->n++] = make_reshape(&c->b, make_cast(&c->b, sum, F64), 1, &one);
}

static Node *norm(Clipping *c)
{
    if (!c->n)
        return build_scalar(&c->b, F32, 0);
    Node *all = c->n == 1 ? c->square[0] : make_concat(&c->b, 0, c->n, c->square);
    return make_cast(&c->b, CALL(&c->b, sqrt, make_reduce_all(&c->b, OP_reduce_sum, all)), F32);
}

/* min(1, most / (norm + 1e-6)) */
static Node *factor(Clipping *c, Node *norm)
{
    Build *b = &c->b;
    Node *under = CALL(b, add, norm, build_scalar(b, F32, 1e-6));
    return CALL(b, min, CALL(b, div, build_scalar(b, F32, c->recipe->clip_norm), under), build_scalar(b, F32, 1));
}

static Status clip(Graph *g, PassRun *run)
{
    static const Recipe none = { .n_groups = 0 };
    Clipping c = { .recipe = run->options->recipe ? run->options->recipe : &none };
    c.results = results_of(g, run->scratch);
    c.b = build_at_end(g);
    c.b.flags = NODE_OURS | NODE_UPDATE;
    const size_t n = c.results.n;
    c.square = NEWS(run->scratch, Node *, n + 1);
    for (size_t i = 0; i < n; i++) {
        Node *parameter = results_trained(&c.results, i);
        if (!parameter)
            continue;
        Node *gradient = c.results.node[i];
        add_square(&c, c.recipe->clip_value > 0 ? by_value(&c, gradient, parameter) : gradient);
        run->changes++;
    }
    Node *all = norm(&c);
    results_add(&c.results, "grad_norm", all);
    if (c.recipe->clip_norm > 0)
        results_add(&c.results, GRADIENT_SCALE, factor(&c, all));
    results_set(&c.results);
    return c.b.status;
}

const Pass pass_clip = { .name = "clip", .needs = TYPED | SHAPED, .may = EXACT, .run = clip };
