/* scale-loss: the gradients of a scaled loss, and of the mean over several micro-batches.
 *
 *     # recipe: --loss-scale static:1024 --accumulate 4
 *     graph @f(state %w: f32[4] trained) -> (%loss, %grad.w = %d) {
 *         %loss: f32[] = reduce_sum(%w, keepdims=false)
 *         const %seed: f32[] = 1 ours side=backward
 *         %d: f32[4] = mul(%w, %seed) ours side=backward
 *     }
 *     ==>
 *     graph @f(
 *             state %w: f32[4] trained,
 *             state %qcc.scale: f32[] = 1024 role=scaler) -> (
 *             %loss,
 *             %grad.w = %d role=gradient of=%w,
 *             %qcc.latched role=latched) {
 *         %loss: f32[] = reduce_sum(%w, keepdims=false)
 *         %qcc.latched: f32[] = latch(%qcc.scale) ours side=backward
 *         const %0: f32[] = 0.25 ours side=backward
 *         %seed: f32[] = mul(%qcc.latched, %0) ours side=backward
 *         %d: f32[4] = mul(%w, %seed) ours side=backward
 *     }
 *
 * The loss itself stays as it is: its scale (the state qcc.scale) takes the place of the 1 that backward begins with,
 * and multiplies gradients that the host gives where they enter.  It is read once, by a latch: whatever is put into the
 * state later, the update divides by what was multiplied (result qcc.latched; the pass clip).  Of a mean over several
 * micro-batches (--accumulate) each has its part of the seed. */
#include <string.h>

#include "ops/card/make.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/recipe/scale_read.h"

typedef struct Scaling {
    Graph *g;
    LossScale scale;
    int64_t turns; /* micro-batches of a step */
    Results results;
    Build b;
    Node *latched; /* null: there is no scale */
} Scaling;

static bool is_seed(const Node *n)
{
    return n->op == OP_const && n->flags & NODE_BACKWARD && n->name && strcmp(n->name, "seed") == 0;
}

static Node *first_backward(const Graph *g)
{
    Node *n = g->first;
    while (n && !(n->flags & NODE_BACKWARD))
        n = n->next;
    return n;
}

static Node *find_seed(const Graph *g)
{
    Node *n = g->first;
    while (n && !is_seed(n))
        n = n->next;
    return n;
}

static void latch(Scaling *s)
{
    const Type *type = type_scalar(&s->g->ir->types, F32);
    Tensor *first = tensor_scalar(s->g->arena, &s->g->ir->types, F32, s->scale.init);
    const StateAttr attr = { payload_of(s->g->arena, first), { STATE_scaler, NULL } };
    s->latched = CALL(&s->b, latch, graph_state(s->g, SCALE_NAME, type, &attr));
    if (!s->latched)
        return;
    s->latched->name = name_of(&s->g->ir->names, LATCHED_SCALE, strlen(LATCHED_SCALE));
    results_add_as(&s->results, NULL, s->latched, RESULT_latched, NULL);
}

/* `by` stands for an old value, as operand (of all but one node) and as result. */
static void replace(Scaling *s, Node *old, Node *by, const Node *but)
{
    for (Use *u = old->uses, *next; u; u = next) {
        next = u->next;
        if (u->user != but)
            node_set_in(u->user, (int)(u - u->user->in), by);
    }
    for (size_t i = 0; i < s->results.n; i++)
        if (s->results.node[i] == old)
            s->results.node[i] = by;
}

/* Multiplied before it is rounded to a type that may not hold the scale. */
static void scale_given(Scaling *s, Node *given)
{
    const DType own = given->type->dtype, wide = make_width(own);
    Node *wider = make_cast(&s->b, given, wide), *factor = make_cast(&s->b, s->latched, wide),
         *product = CALL(&s->b, mul, wider, factor), *scaled = make_cast(&s->b, product, own);
    if (s->b.status == OK)
        replace(s, given, scaled, wider == given ? product : wider);
}

static void scale_seed(Scaling *s, Node *seed)
{
    const DType t = seed->type->dtype;
    Node *by = s->latched ? make_cast(&s->b, s->latched, t) : NULL;
    if (s->turns > 1) {
        Node *part = build_scalar(&s->b, t, 1 / (double)s->turns);
        by = by ? CALL(&s->b, mul, by, part) : part;
    }
    if (s->b.status != OK)
        return;
    const char *name = seed->name;
    seed->name = NULL;
    if (!by->name)
        by->name = name;
    replace(s, seed, by, NULL);
    node_remove(seed);
}

static Status scale_loss(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    Scaling s = { .g = g, .scale = recipe_loss_scale(recipe), .turns = recipe ? recipe->accumulate : 0 };
    if (s.scale.kind == SCALE_OFF && s.turns <= 1)
        return OK;
    s.results = results_of(g, run->scratch);
    s.b = build_at_end(g);
    s.b.before = first_backward(g);
    s.b.flags = NODE_OURS | NODE_BACKWARD;
    if (s.scale.kind != SCALE_OFF)
        latch(&s);
    for (size_t i = 0; s.latched && i < g->n_inputs; i++)
        if (is_given_gradient(g->inputs[i]))
            scale_given(&s, g->inputs[i]);
    Node *seed = find_seed(g);
    if (seed)
        scale_seed(&s, seed);
    results_set(&s.results);
    run->changes++;
    return s.b.status;
}

const Pass pass_scale_loss = { .name = "scale-loss", .needs = TYPED | SHAPED, .may = MEANING, .run = scale_loss };
