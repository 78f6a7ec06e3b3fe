/* attach-loss: the losses of the recipe, added up as result `loss`; targets, weights of samples and the gradients that a
 * host gives back become inputs.
 *
 *     # recipe: --loss mse
 *     graph @f(%x: f32[2]) -> (%y) {
 *         %y: f32[2] = tanh(%x)
 *     }
 *     ==>
 *     graph @f(%x: f32[2], %target: f32[2]) -> (%y, %loss) {
 *         %y: f32[2] = tanh(%x)
 *         %loss: f32[] = mse(%y, %target) ours
 *     }
 *
 * Where an output is made by softmax or sigmoid, the loss reads what these read: rounding there costs accuracy. */
#include <string.h>

#include "ops/make.h"
#include "passes/loss_read.h"
#include "passes/pass.h"
#include "passes/results.h"

typedef struct Attach {
    Graph *g;
    PassRun *run;
    const Recipe *recipe;
    Results results;
    Build b;
    Node *sum; /* of the losses so far; null: none */
} Attach;

static Node *new_input(Attach *a, const char *name, const Type *type)
{
    Node *have = input_named(a->g, name);
    return have ? have : graph_input(a->g, name_of(&a->g->ir->names, name, strlen(name)), type);
}

/* One weight for each sample. */
static Node *weight_input(Attach *a, const LossSpec *l, const Node *scores)
{
    if (!l->sample_weight)
        return NULL;
    return new_input(a, l->sample_weight, type_vector(&a->g->ir->types, F32, scores->type->dims[0]));
}

static const Type *target_type(Attach *a, const LossTarget *t)
{
    int64_t dims[MAX_RANK];
    int rank = 0;
    const Type *s = t->scores->type;
    if (!t->classes)
        return s;
    for (int i = 0; i < s->rank; i++)
        if (i != t->axis)
            dims[rank++] = s->dims[i];
    return type_tensor(&a->g->ir->types, I64, rank, dims);
}

static Node *class_weights(Attach *a, const LossSpec *l, const LossTarget *t)
{
    return l->weight ? build_cast(&a->b, build_const(&a->b, l->weight), t->scores->type->dtype) : NULL;
}

static Node *compare(Attach *a, const LossSpec *l, const LossTarget *t)
{
    Node *target = new_input(a, t->input, target_type(a, t)), *weight = weight_input(a, l, t->scores);
    if (target->type != target_type(a, t)) {
        a->b.status = fail_as(a->run->diag, USAGE, node_place(target), "the model has an input named %s already",
                              t->input);
        return NULL;
    }
    if (weight && weight->type->dtype != t->scores->type->dtype)
        weight = build_cast(&a->b, weight, t->scores->type->dtype);
    if (t->op == OP_cross_entropy || t->op == OP_nll) {
        const ClassLossAttr at = { .reduction = l->sums ? LOSS_SUM : LOSS_MEAN,
                                   .axis = t->axis,
                                   .ignore_index = l->ignore_index,
                                   .label_smoothing = (float)l->label_smoothing };
        return build_node(&a->b, (Op)t->op, &at, 4,
                          (Node *[]){ t->scores, target, class_weights(a, l, t), weight });
    }
    const LossSumAttr at = { .reduction = l->sums ? LOSS_SUM : LOSS_MEAN, .delta = (float)l->delta };
    if (t->op == OP_bce_logits)
        return build_node(&a->b, OP_bce_logits, &at, 4,
                          (Node *[]){ t->scores, target, class_weights(a, l, t), weight });
    return build_node(&a->b, (Op)t->op, &at, 3, (Node *[]){ t->scores, target, weight });
}

/* A scalar that the model computes, as a scalar of rank 0 and in f32 or wider. */
static Node *own_output(Attach *a, const LossSpec *l)
{
    Node *y = loss_output(a->g, l->outputs[0]);
    if (!y || y->type->kind != TYPE_TENSOR || !type_known(y->type) || type_elements(y->type) != 1 ||
        !dtype_is_float(y->type->dtype)) {
        a->b.status = fail_as(a->run->diag, USAGE, y ? node_place(y) : NOWHERE,
                              "--loss output:%s: a scalar float output is wanted", l->outputs[0]);
        return NULL;
    }
    y = build_cast(&a->b, y, make_width(y->type->dtype));
    return y && y->type->rank ? make_reshape(&a->b, y, 0, NULL) : y;
}

static Status external(Attach *a, const LossSpec *l)
{
    for (size_t i = 0; i < l->n_outputs; i++) {
        const Node *y = loss_output(a->g, l->outputs[i]);
        if (!y || y->type->kind != TYPE_TENSOR || !dtype_is_float(y->type->dtype))
            return fail_as(a->run->diag, USAGE, NOWHERE, "--loss external:%s: the model has no such float output",
                           l->outputs[i]);
        new_input(a, name_with(a->g, GRADIENT_PREFIX, l->outputs[i]),
                  type_with_dtype(&a->g->ir->types, y->type, make_width(y->type->dtype)));
    }
    return OK;
}

static Status add_loss(Attach *a, size_t i)
{
    const LossSpec *l = &a->recipe->losses[i];
    LossTarget t;
    Status status;
    Node *y;
    if (l->kind == LOSS_EXTERNAL)
        return external(a, l);
    if (l->kind == LOSS_OUTPUT) {
        y = own_output(a, l);
    } else {
        if (!loss_target(a->g, a->recipe, i, a->g->arena, a->run->diag, &t, &status))
            return status;
        y = compare(a, l, &t);
    }
    if (y && l->factor != 1)
        y = CALL(&a->b, mul, y, build_scalar(&a->b, y->type->dtype, l->factor));
    if (y && a->sum && a->sum->type != y->type) { /* one of them is f64 */
        a->sum = build_cast(&a->b, a->sum, F64);
        y = build_cast(&a->b, y, F64);
    }
    a->sum = a->sum && y ? CALL(&a->b, add, a->sum, y) : y;
    return a->b.status;
}

static Status attach_loss(Graph *g, PassRun *run)
{
    Attach a = { .g = g, .run = run, .recipe = run->options->recipe, .results = results_of(g, run->scratch) };
    a.b = build_at_end(g);
    a.b.flags = NODE_OURS;
    const size_t n = a.recipe ? a.recipe->n_losses : 0;
    for (size_t i = 0; i < n; i++)
        TRY(add_loss(&a, i));
    if (!a.sum)
        return OK;
    const int have = results_find(&a.results, "loss");
    if (have >= 0 && a.results.node[have] == a.sum)
        return OK; /* the model's own output of that name */
    if (have >= 0)
        return fail_as(run->diag, USAGE, NOWHERE, "the model has an output named loss: is it one? (--loss output:loss)");
    if (!a.sum->name && !a.sum->uses)
        a.sum->name = name_of(&g->ir->names, "loss", strlen("loss"));
    results_add(&a.results, name_of(&g->ir->names, "loss", strlen("loss")), a.sum);
    results_set(&a.results);
    run->changes++;
    return OK;
}

const Pass pass_attach_loss = { .name = "attach-loss", .needs = TYPED, .may = EXACT, .run = attach_loss };
