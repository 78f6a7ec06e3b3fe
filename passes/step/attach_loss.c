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

#include "ops/card/make.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"
#include "passes/recipe/loss_read.h"

typedef struct Attach {
    Graph *g;
    PassRun *run;
    const Recipe *recipe;
    Results results;
    size_t n_own; /* inputs that the model has itself */
    Build b;
    Node *sum; /* of the losses so far; null: none */
} Attach;

static Node *new_input(Attach *a, const char *name, const Type *type)
{
    Node *have = input_named(a->g, name);
    return have ? have : graph_input(a->g, name_of(&a->g->ir->names, name, strlen(name)), type);
}

/* An input that is there already becomes the same. */
static Node *new_input_as(Attach *a, const char *name, const Type *type, InputRole role, const char *of)
{
    Node *n = new_input(a, name, type);
    if (node_is_input(n))
        node_set_role(n, (int)role, of);
    return n;
}

/* One weight for each sample: each element of the first dimension of the targets. */
static Node *weight_input(Attach *a, const LossSpec *l, const Type *target)
{
    Types *types = &a->g->ir->types;
    if (!l->sample_weight)
        return NULL;
    const Type *type = target->rank == 0 ? type_scalar(types, F32) : type_vector(types, F32, target->dims[0]);
    return strcmp(l->sample_weight, VALID_INPUT) == 0 ? new_input_as(a, VALID_INPUT, type, INPUT_valid, NULL)
                                                      : new_input(a, l->sample_weight, type);
}

/* Scores [N, C, 1, 1] of a classifier without a last flattening, as [N, C]. */
static Node *without_ones(Attach *a, const LossTarget *t)
{
    const Type *s = t->scores->type;
    int64_t axes[MAX_RANK];
    int n = 0;
    if (!t->classes || t->axis != 1 || s->rank < 3)
        return t->scores;
    for (int i = 2; i < s->rank; i++)
        if (s->dims[i] == 1)
            axes[n++] = i;
    return n == s->rank - 2 ? CALL(&a->b, squeeze, t->scores, build_i64s(&a->b, n, axes)) : t->scores;
}

static const Type *target_type(Attach *a, const LossTarget *t, const Type *scores)
{
    int64_t dims[MAX_RANK];
    int rank = 0;
    Types *types = &a->g->ir->types;
    if (!t->classes)
        return type_with_dtype(types, scores, make_width(scores->dtype));
    for (int i = 0; i < scores->rank; i++)
        if (i != t->axis)
            dims[rank++] = scores->dims[i];
    return type_tensor(types, I64, rank, dims);
}

static Node *class_weights(Attach *a, const LossSpec *l)
{
    Node *w = l->weight ? build_const(&a->b, l->weight) : NULL;
    return w && !dtype_is_float(w->type->dtype) ? make_cast(&a->b, w, F32) : w;
}

static Node *compare(Attach *a, const LossSpec *l, const LossTarget *t)
{
    Node *scores = without_ones(a, t);
    if (a->b.status != OK)
        return NULL;
    const Type *type = target_type(a, t, scores->type);
    Node *target = new_input(a, t->input, type);
    bool own = false;
    for (size_t i = 0; i < a->n_own; i++)
        own |= a->g->inputs[i] == target;
    if (own || target->type != type) {
        a->b.status =
            fail_as(a->run->diag, USAGE, node_place(target), "the model has an input named %s already", t->input);
        return NULL;
    }
    Node *weight = weight_input(a, l, type);
    const Op op = (Op)loss_op(t->kind);
    if (loss_has_classes(t->kind)) {
        const ClassLossAttr at = { .reduction = l->sums ? LOSS_SUM : LOSS_MEAN,
                                   .axis = t->axis,
                                   .ignore_index = l->ignore_index,
                                   .label_smoothing = (float)l->label_smoothing,
                                   .gamma = (float)l->gamma };
        return build_node(&a->b, op, &at,
                          weight      ? 4
                          : l->weight ? 3
                                      : 2,
                          (Node *[]){ scores, target, class_weights(a, l), weight });
    }
    const LossSumAttr at = { .reduction = l->sums ? LOSS_SUM : LOSS_MEAN,
                             .delta = (float)l->delta,
                             .gamma = (float)l->gamma };
    if (t->kind == LOSS_BCE_LOGITS)
        return build_node(&a->b, op, &at,
                          weight      ? 4
                          : l->weight ? 3
                                      : 2,
                          (Node *[]){ scores, target, class_weights(a, l), weight });
    return build_node(&a->b, op, &at, weight ? 3 : 2, (Node *[]){ scores, target, weight });
}

/* A scalar that the model computes, as a scalar of rank 0 and in f32 or wider. */
static Node *own_output(Attach *a, const LossSpec *l)
{
    Node *y = loss_output(a->g, l->outputs[0]);
    if (!y || y->type->kind != TYPE_TENSOR || !type_known(y->type) || type_elements(y->type) != 1 ||
        !dtype_is_float(y->type->dtype)) {
        a->b.status = fail_as(a->run->diag, USAGE, y ? node_place(y) : NOWHERE,
                              "--loss output:%s: a scalar float output is wanted, it is %s", l->outputs[0],
                              y ? type_text(a->g->arena, y->type) : "not there");
        return NULL;
    }
    y = make_cast(&a->b, y, make_width(y->type->dtype));
    return y && y->type->rank ? make_reshape(&a->b, y, 0, NULL) : y;
}

static Status external(Attach *a, const LossSpec *l)
{
    for (size_t i = 0; i < l->n_outputs; i++) {
        const Node *y = loss_output(a->g, l->outputs[i]);
        if (!y || y->type->kind != TYPE_TENSOR || !dtype_is_float(y->type->dtype))
            return fail_as(a->run->diag, USAGE, NOWHERE, "--loss external:%s: the model has no such float output",
                           l->outputs[i]);
        new_input_as(a, name_with(a->g, GRADIENT_PREFIX, l->outputs[i]),
                     type_with_dtype(&a->g->ir->types, y->type, make_width(y->type->dtype)), INPUT_gradient,
                     l->outputs[i]);
    }
    return OK;
}

static Status add_loss(Attach *a, size_t i)
{
    const LossSpec *l = &a->recipe->losses[i];
    LossTarget t;
    Status status;
    Node *y;
    if (loss_is_nothing(l)) {
        a->sum = build_scalar(&a->b, F32, 0);
        return a->b.status;
    }
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
        a->sum = make_cast(&a->b, a->sum, F64);
        y = make_cast(&a->b, y, F64);
    }
    a->sum = a->sum && y ? CALL(&a->b, add, a->sum, y) : y;
    return a->b.status;
}

/* The model's own output of that name is the loss, or that in f32. */
static bool is_own(const Attach *a)
{
    const LossSpec *l = a->recipe->losses;
    return a->recipe->n_losses == 1 && l->kind == LOSS_OUTPUT && strcmp(l->outputs[0], "loss") == 0;
}

static Status add_result(Attach *a)
{
    const char *name = name_of(&a->g->ir->names, "loss", strlen("loss"));
    const int have = results_find(&a->results, name);
    if (have >= 0 && !is_own(a)) {
        Message *m = message_new(a->run->diag, SEVERITY_ERROR, USAGE, NOWHERE,
                                 "the model has an output named loss, which another loss would hide");
        message_try(m, "--loss output:loss");
        return message_send(m);
    }
    if (have >= 0) {
        a->results.node[have] = a->sum;
        a->results.name[have] = name;
    } else {
        if (!a->sum->name && !a->sum->uses)
            a->sum->name = name;
        results_add(&a->results, name, a->sum);
    }
    results_set(&a->results);
    return OK;
}

static Status attach_loss(Graph *g, PassRun *run)
{
    Attach a = { .g = g, .run = run, .recipe = run->options->recipe, .results = results_of(g, run->scratch) };
    Recipe guessed;
    LossSpec guess;
    a.n_own = g->n_inputs;
    a.b = build_at_end(g);
    a.b.flags = NODE_OURS;
    if (!a.recipe || !a.recipe->n_losses) {
        const char *why;
        TRY(loss_guess(&guess, &why, g, g->arena, run->diag));
        remark(run->diag, "loss", NOWHERE, "%s: %s", loss_text(run->scratch, &guess), why);
        guessed = (Recipe){ .losses = &guess, .n_losses = 1 };
        a.recipe = &guessed;
    }
    for (size_t i = 0; i < a.recipe->n_losses; i++)
        TRY(add_loss(&a, i));
    run->changes++;
    return a.sum ? add_result(&a) : OK;
}

const Pass pass_attach_loss = { .name = "attach-loss", .needs = TYPED, .may = EXACT, .run = attach_loss };
