#include "api/make/phase_step.h"

#include <string.h>

#include "passes/engine/results.h"
#include "passes/pipelines.h"
#include "passes/recipe/quantizer.h"

int64_t phase_steps(const qcc_step *s)
{
    const QuantSpec *spec = s->recipe.quantization.spec;
    return spec ? spec->weights_first : 0;
}

/* ---- passes ---- */

static void hear_errors(void *user, const Message *m)
{
    const Diag *usual = user;
    if (m->severity == SEVERITY_ERROR)
        usual->report(usual->user, m);
}

/* What is to be said of the model and its step @step says. */
static Status run_quietly(qcc_step *s, const char *pipeline, Graph *g)
{
    Diag *d = &s->cx->diag, usual = *d;
    const Recipe recipe = s->recipe;
    const PipelineOptions options = {
        .pass = { .recipe = &s->recipe, .exact_casts = s->recipe.precision.exact_casts },
    };
    s->recipe.quantization.weights_alone = true;
    s->recipe.quantization.ledger = NULL;
    s->recipe.precision.ledger = NULL;
    d->report = hear_errors;
    d->user = &usual;
    const Status status = pipeline_run(pipeline_find(pipeline), g, &options);
    d->report = usual.report;
    d->user = usual.user;
    s->recipe = recipe;
    return status;
}

Status phase_place(qcc_step *s, Graph *g)
{
    return run_quietly(s, "quant-places", g);
}

/* ---- the signature ---- */

/* An input of another graph in this one, which reads it nowhere. */
static Node *add_like(Graph *g, const Node *n)
{
    Node *own = n->op == OP_state ? graph_state(g, n->name, n->type, n->attr) : graph_input(g, n->name, n->type);
    if (n->op == OP_input && n->attr)
        own->attr = attrs_copy(g->arena, op_of(n)->attrs, n->attr);
    own->flags = n->flags;
    return own;
}

static Status align_inputs(Graph *g, const Graph *like, Arena *scratch)
{
    Node **list = NEWS(scratch, Node *, like->n_inputs + 1);
    for (size_t i = 0; i < like->n_inputs; i++) {
        Node *own = input_named(g, like->inputs[i]->name);
        list[i] = own ? own : add_like(g, like->inputs[i]);
        if (list[i]->type != like->inputs[i]->type)
            return fail_as(g->ir->diag, INTERNAL, node_place(list[i]), "%s is not of the type that it has in @step",
                           list[i]->name);
    }
    for (size_t i = g->n_inputs; i-- > 0;) {
        if (input_named(like, g->inputs[i]->name))
            continue;
        if (g->inputs[i]->uses)
            return fail_as(g->ir->diag, INTERNAL, node_place(g->inputs[i]), "%s is no input of @step",
                           g->inputs[i]->name);
        graph_drop_input(g, i);
    }
    memcpy(g->inputs, list, like->n_inputs * sizeof(Node *));
    return OK;
}

/* What has no gradient here has one of 0. */
static Node *zeros(Build *b, const Type *type)
{
    return build_const(b, tensor_new(b->graph->arena, type));
}

static Status align_results(Graph *g, const Graph *like, int64_t steps, Arena *scratch)
{
    const Results have = results_of(g, scratch), want = results_of((Graph *)(uintptr_t)like, scratch);
    Results out = { .g = g, .arena = scratch };
    Build b = build_at_start(g);
    b.flags = NODE_OURS;
    for (size_t i = 0; i < want.n; i++) {
        const char *name = results_name(&want, i);
        const int at = name ? results_find(&have, name) : -1;
        Node *value = at >= 0 ? have.node[at] : name ? input_named(g, name) : NULL;
        if (!value && want.node[i] && want.mark[i].role == RESULT_gradient)
            value = zeros(&b, want.node[i]->type);
        if (want.node[i] && (!value || value->type != want.node[i]->type))
            return fail_as(g->ir->diag, INTERNAL, NOWHERE, "@step has a result %s that its first steps have not",
                           name ? name : "without a name");
        results_add_as(&out, name, want.node[i] ? value : NULL, (ResultRole)want.mark[i].role, want.mark[i].of);
    }
    results_add(&out, PHASE_NAME, build_scalar(&b, I64, (double)steps));
    TRY(b.status);
    results_set(&out);
    return OK;
}

Status phase_finish(qcc_step *s, Graph *g, const Graph *step)
{
    TRY(run_quietly(s, "train-step", g));
    g->name = name_of(&s->ir->names, PHASE_GRAPH, strlen(PHASE_GRAPH));
    TRY(align_inputs(g, step, &s->cx->scratch));
    return align_results(g, step, phase_steps(s), &s->cx->scratch);
}
