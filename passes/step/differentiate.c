/* differentiate: appends the backward side: for every trained state its gradient, as result `grad.NAME`.
 *
 *     graph @f(%x: f32[2], state %w: f32[2] trained) -> (%loss) {
 *         %y: f32[2] = mul(%x, %w)
 *         %loss: f32[] = reduce_sum(%y, keepdims=false)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], state %w: f32[2] trained) -> (%loss, %grad.w = %4 role=gradient of=%w) {
 *         %y: f32[2] = mul(%x, %w)
 *         %loss: f32[] = reduce_sum(%y, keepdims=false)
 *         const %seed: f32[] = 1 ours side=backward
 *         const %0: i64[1] = [1] ours side=backward
 *         %1: f32[1] = reshape(%seed, %0, allowzero=true) ours side=backward
 *         const %2: i64[1] = [2] ours side=backward
 *         %3: f32[2] = expand(%1, %2) ours side=backward
 *         %4: f32[2] = mul(%3, %x) ours side=backward
 *     }
 *
 * What is differentiated is the result `loss`; inputs named `grad.OUTPUT` are what the host sends back for outputs that
 * it judges itself. */
#include <string.h>

#include "ops/card/make.h"
#include "ops/control/reverse.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/recipe/choices.h"

/* ---- what is asked ---- */

static bool is_trained(const Node *n)
{
    return n->op == OP_state && n->flags & NODE_TRAINED;
}

static Node *result_named(const Graph *g, const char *name)
{
    for (int i = 0; i < graph_n_results(g); i++) {
        const char *have = graph_result_name(g, i);
        if (have && strcmp(have, name) == 0)
            return graph_result(g, i);
    }
    return NULL;
}

static Status check_loss(PassRun *run, const Node *loss)
{
    if (loss->type->kind == TYPE_TENSOR && type_known(loss->type) && type_elements(loss->type) == 1 &&
        dtype_is_float(loss->type->dtype))
        return OK;
    return fail(run->diag, node_place(loss), "the loss is %s: one float is wanted",
                type_text(run->scratch, loss->type));
}

/* The loss with its seed of 1, and the outputs whose gradients the host gives. */
static Status find_ends(Graph *g, PassRun *run, Build *b, ReverseQuery *q)
{
    Node **y = NEWS(run->scratch, Node *, g->n_inputs + 1), **dy = NEWS(run->scratch, Node *, g->n_inputs + 1),
         *loss = result_named(g, "loss");
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *given = g->inputs[i];
        const char *of = is_given_gradient(given) ? node_role(given).of : NULL;
        if (!of)
            continue;
        y[q->n_y] = result_named(g, of);
        if (!y[q->n_y])
            return fail(run->diag, node_place(given), "%s: no output has the name %s", given->name, of);
        dy[q->n_y++] = given;
    }
    if (loss) {
        TRY(check_loss(run, loss));
        Tensor *one = tensor_new(g->arena, type_with_dtype(&g->ir->types, loss->type, make_width(loss->type->dtype)));
        tensor_set_f64(one, 0, 1);
        y[q->n_y] = loss;
        dy[q->n_y] = build_const(b, one);
        TRY(b->status);
        dy[q->n_y++]->name = name_of(&g->ir->names, "seed", strlen("seed"));
    }
    if (!q->n_y)
        return fail(run->diag, NOWHERE,
                    "has no loss to differentiate: a result named loss, or inputs " GRADIENT_PREFIX "OUTPUT");
    q->y = y;
    q->dy = dy;
    return OK;
}

static void find_trained(Graph *g, PassRun *run, ReverseQuery *q)
{
    Node **x = NEWS(run->scratch, Node *, g->n_inputs + 1);
    for (size_t i = 0; i < g->n_inputs; i++)
        if (is_trained(g->inputs[i]))
            x[q->n_x++] = g->inputs[i];
    q->x = x;
}

/* ---- what hinders it ---- */

/* The name that people see of a parameter. */
static const char *path_of(const PassRun *run, const Node *x)
{
    const Recipe *recipe = run->options->recipe;
    const Choice *c = recipe && recipe->choices ? choice_find(recipe->choices, x->name) : NULL;
    return c && c->path ? c->path : x->name;
}

/* How many of the parameters whose names begin like this one the gradient does not reach; 0: it reaches some. */
static int cut_with(const PassRun *run, const ReverseQuery *q, const ReverseResult *r, const char *name, size_t n)
{
    int found = 0;
    for (int i = 0; i < q->n_x; i++) {
        if (strncmp(path_of(run, q->x[i]), name, n) != 0)
            continue;
        if (r->dx[i])
            return 0;
        found++;
    }
    return found;
}

/* A selector of as many of the cut parameters as one module holds: "'^backbone\.' (12 of them)"; null: they share none. */
static const char *freeze_text(const PassRun *run, const ReverseQuery *q, const ReverseResult *r)
{
    int most = 0;
    const char *best = NULL;
    size_t len = 0;
    for (int i = 0; i < q->n_x; i++) {
        const char *name = path_of(run, q->x[i]);
        const size_t n = strcspn(name, "./");
        const int cut = name[n] && !r->dx[i] ? cut_with(run, q, r, name, n + 1) : 0;
        if (cut > most) {
            most = cut;
            best = name;
            len = n + 1;
        }
    }
    if (!best)
        return NULL;
    Text t;
    text_open(&t, run->scratch);
    text_add(&t, "'^");
    for (size_t i = 0; i < len; i++) {
        if (strchr("\\.[]()*+?{}|^$", best[i]))
            text_char(&t, '\\');
        text_char(&t, best[i]);
    }
    text_printf(&t, "' (%d of them)", most);
    return text_get(&t);
}

static Status refuse(PassRun *run, const ReverseQuery *q, const ReverseResult *r, int n_cut, bool missing)
{
    const char *freeze = freeze_text(run, q, r);
    int n = 0;
    const Node *last = NULL;
    for (size_t i = 0; i < r->n_stops; i++) {
        n += r->stops[i].missing == missing && r->stops[i].node != last;
        last = r->stops[i].node;
    }
    Message *m = message_new(run->diag, SEVERITY_ERROR, UNSUPPORTED, NOWHERE,
                             "%d operator%s no gradient between the loss and %d parameter%s", n,
                             n == 1 ? " has" : "s have", n_cut, n_cut == 1 ? "" : "s");
    last = NULL;
    for (size_t i = 0; i < r->n_stops; i++) {
        if (r->stops[i].missing == missing && r->stops[i].node != last)
            message_at(m, "%s", node_place(r->stops[i].node).where);
        last = r->stops[i].node;
    }
    message_try(m, "--freeze %s, or --loss on an output before these nodes",
                freeze ? freeze : "SELECTOR for these parameters");
    return message_send(m);
}

/* Trained states that nothing reaches: an error when operators without a gradient stand between, a remark when the loss
 * does not depend on them at all. */
static Status judge(PassRun *run, const ReverseQuery *q, const ReverseResult *r)
{
    int n_cut = 0;
    bool missing = false;
    for (size_t i = 0; i < r->n_stops; i++)
        missing |= r->stops[i].missing;
    for (int i = 0; i < q->n_x; i++)
        n_cut += r->dx[i] == NULL;
    if (missing)
        return refuse(run, q, r, n_cut ? n_cut : q->n_x, true);
    if (n_cut && r->n_stops)
        return refuse(run, q, r, n_cut, false);
    for (int i = 0; i < q->n_x; i++)
        if (!r->dx[i])
            remark(run->diag, "gradient", node_place(q->x[i]), "%s does not reach the loss: it stays as it is",
                   q->x[i]->name);
    return OK;
}

/* ---- the results ---- */

static void add_results(Graph *g, const ReverseQuery *q, const ReverseResult *r)
{
    Results results = results_of(g, g->arena);
    for (int i = 0; i < q->n_x; i++) {
        const char *x = q->x[i]->name;
        if (r->dx[i])
            results_add_as(&results, name_with(g, GRADIENT_PREFIX, x), r->dx[i], RESULT_gradient, x);
    }
    results_set(&results);
}

static Status differentiate(Graph *g, PassRun *run)
{
    ReverseQuery q = { 0 };
    ReverseResult r;
    Build b = build_at_end(g);
    b.flags = NODE_OURS | NODE_BACKWARD;
    find_trained(g, run, &q);
    TRY(find_ends(g, run, &b, &q));
    TRY(reverse(&b, &q, run->scratch, &r));
    TRY(judge(run, &q, &r));
    add_results(g, &q, &r);
    run->changes += q.n_x;
    return OK;
}

const Pass pass_differentiate = {
    .name = "differentiate", .needs = TYPED | SHAPED, .may = EXACT, .run = differentiate
};
