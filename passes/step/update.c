/* update: appends the optimizer's side: for every `grad.NAME` of a trained state its next value, as result NAME.
 *
 *     # recipe: --optimizer momentum:lr=0.5
 *     graph @f(%x: f32[2], state %w: f32[2] trained) -> (%loss, %grad.w = %x) {
 *         %y: f32[2] = mul(%x, %w)
 *         %loss: f32[] = reduce_sum(%y, keepdims=false)
 *     }
 *     ==>
 *     graph @f(
 *             %x: f32[2],
 *             state %w: f32[2] trained,
 *             state %qcc.step: i64[] role=counter,
 *             state %qcc.lr_factor: f32[] = ones role=rate,
 *             state %"qcc.m/w": f32[2] role=moment of=%w) -> (
 *             %loss,
 *             %grad.w = %x role=gradient of=%w,
 *             %w = %5,
 *             %"qcc.m/w" = %6,
 *             %lr = %3,
 *             %qcc.step = %1) {
 *         %y: f32[2] = mul(%x, %w)
 *         %loss: f32[] = reduce_sum(%y, keepdims=false)
 *         const %0: i64[] = 1 ours side=update
 *         %1: i64[] = add(%qcc.step, %0) ours side=update
 *         const %2: f32[] = 0.5 ours side=update
 *         %3: f32[] = mul(%2, %qcc.lr_factor) ours side=update
 *         %4: (f32[2], f32[2]) = update_sgd(%w, %x, %3, %1, _, %"qcc.m/w", momentum=0.9) ours side=update
 *         %5: f32[2] = part(%4, index=0) ours side=update
 *         %6: f32[2] = part(%4, index=1) ours side=update
 *     }
 *
 * The states of the optimizer are qcc.m/NAME and the like, qcc.m.scale/NAME their scales where they are codes.  qcc.step
 * counts the steps, and the rate (result `lr`) is the schedule's at that step times qcc.lr_factor, which the host may set;
 * a group of parameters has its own (result `lr/SELECTOR`), times qcc.lr_factor/SELECTOR as well.  A parameter that is
 * stored= by a quantizer is rounded once, by a draw of its own where that says so, and its next scale and zero points are
 * results too, and so is what became of its updates (qcc.counts/NAME), as of each one of bf16.  It reads its clipped gradient and the factor of all
 * gradients where the pass clip left them. */
#include <string.h>

#include "ir/store/init.h"
#include "ops/update/update.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/step/state_blocks.h"
#include "passes/step/update_forms.h"
#include "passes/recipe/groups.h"
#include "passes/recipe/optimizer_read.h"
#include "passes/recipe/schedule.h"

/* ---- rates ---- */

/* The rate of a group that has been asked for. */
typedef struct Rate {
    const OptimizerGroup *group;
    const char *name; /* of the result */
    Node *node;
} Rate;

typedef struct Updating {
    PassRun *run;
    const Recipe *recipe;
    Results results;
    Build b;
    Node *step, *scale;  /* this step's number; the factor of gradients, or null */
    Node *part, *factor; /* of every rate: the schedule's, null for 1; the host's */
    Rate *rates;
    size_t n_rates, cap_rates;
    FormsUsed used;
    StateBlocks blocks;
} Updating;

/* A factor of the host's: a state that begins as one. */
static Node *host_factor(Graph *g, const char *name)
{
    const Type *type = type_scalar(&g->ir->types, F32);
    const StateAttr one = { payload_init(g->arena, type, (Init){ .kind = INIT_ONES }), { STATE_rate, NULL } };
    return graph_state(g, name, type, &one);
}

static Node *rate_of(Updating *u, const OptimizerGroup *group)
{
    Graph *g = u->b.graph;
    for (size_t i = 0; i < u->n_rates; i++)
        if (u->rates[i].group == group)
            return u->rates[i].node;
    const char *name = group->selector ? name_with(g, "lr/", group->selector) : "lr";
    Node *rate = build_scalar(&u->b, F32, group->lr);
    if (u->part)
        rate = CALL(&u->b, mul, rate, u->part);
    rate = CALL(&u->b, mul, rate, u->factor);
    if (group->selector)
        rate = CALL(&u->b, mul, rate, host_factor(g, name_with(g, LR_FACTOR "/", group->selector)));
    GROW(u->run->scratch, u->rates, u->n_rates, u->cap_rates);
    u->rates[u->n_rates++] = (Rate){ group, name, rate };
    return rate;
}

/* ---- one parameter ---- */

/* The states of a parameter, and their scales where they are codes, whose block the form is told. */
static void add_states(Updating *u, const OptimizerGroup *group, Node *x, int n, const char *const *names, Node **in,
                       UpdateForm *form)
{
    Graph *g = x->graph;
    const DType own = x->type->dtype;
    DType type = dtype_is_float(own) ? make_width(own) : F32;
    const StateAttr moment = { NULL, { STATE_moment, x->name } };
    const bool coded = n && state_codes_of(group, x, &type, &form->block);
    const Type *of_scale = coded ? state_scale_type(&u->blocks, x, form->block) : NULL;
    for (int i = 0; i < n; i++) {
        const char *state = name_with(g, arena_printf(u->run->scratch, OWN_PREFIX "%s/", names[i]), x->name);
        in[UPDATE_STATE + i] = graph_state(g, state, type_with_dtype(&g->ir->types, x->type, type), &moment);
    }
    for (int i = 0; i < n && coded; i++) {
        const char *scale = name_with(g, arena_printf(u->run->scratch, OWN_PREFIX "%s.scale/", names[i]), x->name);
        in[UPDATE_STATE_SCALE + i] = graph_state(g, scale, of_scale, &moment);
    }
}

static Status update_parameter(Updating *u, Node *x, Node *gradient)
{
    Graph *g = x->graph;
    Arena *scratch = u->run->scratch;
    const OptimizerGroup *group = recipe_group(u->recipe, x);
    const OpDef *def = g->ir->ops->defs[group->op];
    UpdateForm *form = attrs_copy(scratch, def->attrs, group_attr(group, x, scratch));
    const char *names[UPDATE_STATES];
    Node *in[UPDATE_OPERANDS] = { x, gradient, rate_of(u, group), u->step, u->scale };
    const int n = update_states(def, form, names);
    TRY(update_form_of(form, &u->b, u->run, group, x, in));
    u->used.sticky |= form->sticky;
    u->used.scale_decay |= form->scale_decay;
    u->used.counts |= form->counts;
    add_states(u, group, x, n, names, in, form);
    int n_in = UPDATE_OPERANDS;
    while (n_in > UPDATE_SCALE && !in[n_in - 1])
        n_in--;
    Node *next = build_node_n(&u->b, group->op, form, n_in, in, update_results(form, n, n_in, in));
    for (int i = 0; i < n_in; i++) {
        const int result = in[i] && in[i]->op == OP_state && i != UPDATE_GRADIENT && i != UPDATE_SCALE
                               ? update_result(form, n, n_in, in, i)
                               : -1;
        if (result >= 0)
            results_add(&u->results, in[i]->name, build_part(&u->b, next, result));
    }
    if (form->counts)
        results_add_as(&u->results, name_with(g, COUNTS_PREFIX, x->name),
                       build_part(&u->b, next, update_result(form, n, n_in, in, UPDATE_DRAW)), RESULT_counts, x->name);
    u->run->changes++;
    return u->b.status;
}

/* ---- the graph ---- */

/* The recipe with everything that update needs of it. */
static Status whole_recipe(Graph *g, PassRun *run, Recipe *r)
{
    *r = run->options->recipe ? *run->options->recipe : (Recipe){ .n_groups = 0 };
    if (!r->n_groups) {
        OptimizerGroup *group = NEW(run->scratch, OptimizerGroup);
        *group = recipe_default_optimizer(g->ir->ops, run->scratch);
        r->groups = group;
        r->n_groups = 1;
    }
    return r->members ? OK : recipe_assign_groups(r, g, run->scratch);
}

/* The counter of steps, and the rates' common factors. */
static void begin(Updating *u, Graph *g)
{
    const StateAttr counter = { NULL, { STATE_counter, NULL } };
    Node *done = graph_state_of(g, STATE_counter, NULL); /* phases of quantizers may count by it already */
    if (!done)
        done = graph_state(g, STEP_NAME, type_scalar(&g->ir->types, I64), &counter);
    u->step = CALL(&u->b, add, done, build_scalar(&u->b, I64, 1));
    u->factor = host_factor(g, LR_FACTOR);
    u->part = schedule_part(&u->b, &u->recipe->schedule, u->recipe->groups[0].lr, u->step);
    u->scale = results_take(&u->results, RESULT_factor);
}

static Status update(Graph *g, PassRun *run)
{
    Recipe recipe;
    TRY(whole_recipe(g, run, &recipe));
    Updating u = { .run = run, .recipe = &recipe, .results = results_of(g, run->scratch), .b = build_at_end(g) };
    u.b.flags = NODE_OURS | NODE_UPDATE;
    u.blocks = state_blocks_find(g, run->scratch);
    begin(&u, g);
    const size_t n = u.results.n;
    Node **x = NEWS(run->scratch, Node *, n + 1), **gradient = NEWS(run->scratch, Node *, n + 1);
    Facts clipped = facts_open(run->scratch, sizeof(Node *));
    bool *gone = NEWS(run->scratch, bool, n + 1);
    for (size_t i = 0; i < n; i++) {
        const Node *of = results_clipped(&u.results, i);
        x[i] = results_trained(&u.results, i);
        gradient[i] = u.results.node[i];
        gone[i] = of != NULL;
        if (of)
            *(Node **)fact(&clipped, of) = u.results.node[i];
    }
    for (size_t i = 0; i < n; i++) {
        Node *bounded = x[i] ? *(Node **)fact(&clipped, x[i]) : NULL;
        if (x[i])
            TRY(update_parameter(&u, x[i], bounded ? bounded : gradient[i]));
    }
    TRY(update_forms_unused(run, &recipe, u.used));
    results_drop(&u.results, gone, n);
    (void)rate_of(&u, &recipe.groups[0]);
    for (size_t i = 0; i < u.n_rates; i++)
        results_add(&u.results, u.rates[i].name, u.rates[i].node);
    results_add(&u.results, STEP_NAME, u.step);
    results_set(&u.results);
    return u.b.status;
}

const Pass pass_update = { .name = "update", .needs = TYPED | SHAPED, .may = EXACT, .run = update };
