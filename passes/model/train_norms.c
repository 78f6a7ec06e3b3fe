/* train-norms: a product that has taken a normalization in is normalized by its batch while it is trained.
 *
 *     # recipe: --quant w8a8 --bn train
 *     graph @f(
 *             %x: f32[4,1],
 *             state %w: f32[1,2] trained,
 *             state %s: f32[2] trained,
 *             state %b: f32[2] trained,
 *             state %m: f32[2] role=statistic,
 *             state %v: f32[2] role=statistic) -> (%y) {
 *         %0: (f32[1,2], f32[2]) = fold_norm(%w, %s, %b, %m, %v, axis=1)
 *         %1: f32[1,2] = part(%0, index=0)
 *         %2: f32[2] = part(%0, index=1)
 *         %y: f32[4,2] = gemm(%x, %1, %2)
 *     }
 *     ==>
 *     graph @f(
 *             %x: f32[4,1],
 *             state %w: f32[1,2] trained,
 *             state %s: f32[2] trained,
 *             state %b: f32[2] trained,
 *             state %m: f32[2] role=statistic,
 *             state %v: f32[2] role=statistic) -> (
 *             %y,
 *             %m = %23,
 *             %v = %24) {
 *         %0: (f32[1,2], f32[2]) = fold_norm(%w, %s, %b, %m, %v, axis=1)
 *         %1: f32[1,2] = part(%0, index=0)
 *         %2: f32[4,2] = gemm(%x, %1)
 *         const %3: f32[] = 1e-5
 *         %4: f32[2] = add(%v, %3)
 *         %5: f32[2] = sqrt(%4)
 *         %6: f32[2] = abs(%s)
 *         const %7: f32[] = 0.00024414062
 *         const %8: f32[] = 0.00048828125
 *         const %9: f32[] = 0
 *         %10: bool[2] = less(%6, %7)
 *         %11: f32[2] = where(%10, %8, %9)
 *         %12: f32[2] = add(%s, %11)
 *         %13: f32[2] = div(%12, %5)
 *         %14: f32[4,2] = div(%2, %13)
 *         %15: f32[2] = abs(%s)
 *         const %16: f32[] = 0.00024414062
 *         const %17: f32[] = 0.00048828125
 *         const %18: f32[] = 0
 *         %19: bool[2] = less(%15, %16)
 *         %20: f32[2] = where(%19, %17, %18)
 *         %21: f32[2] = add(%s, %20)
 *         %22: (f32[4,2], f32[2], f32[2], f32[2], f32[2]) = batch_normalization(%14, %21, %b, %m, %v, training_mode=true)
 *         %y: f32[4,2] = part(%22, index=0)
 *         %23: f32[2] = part(%22, index=1)
 *         %24: f32[2] = part(%22, index=2)
 *     }
 *
 * The weight is what deploys, by running statistics, and what it is quantized to: the product is divided by what the fold
 * has multiplied it with, and normalized as ever.  Running statistics go on as results.  With --bn frozen nothing is put
 * back: what deploys is trained. */
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "ops/norm/norm.h"
#include "passes/engine/results.h"
#include "passes/model/modes.h"

enum { WEIGHT = 1, BIAS }; /* operands of a product */

/* The value that a number was made of: through codes and reshapes. */
static Node *source_of(Node *n)
{
    while (n && (op_of(n)->quant.dequantizes || op_of(n)->quant.quantizes || n->op == OP_reshape))
        n = in(n, 0);
    return n;
}

/* The fold whose i-th result that is; null: none. */
static Node *fold_behind(Node *n, int i)
{
    n = source_of(n);
    return n && n->op == OP_part && ((const PartAttr *)n->attr)->index == i && in(n, 0)->op == OP_fold_norm ? in(n, 0)
                                                                                                            : NULL;
}

/* Where the bias of the fold is added: the product itself, or the sum behind it. */
static Node *end_of(Node *product, const Node *fold)
{
    if (fold_behind(in(product, BIAS), 1) == fold)
        return product;
    Node *sum = node_n_uses(product) == 1 ? product->uses->user : NULL;
    for (int i = 0; sum && sum->op == OP_add && i < 2; i++)
        if (fold_behind(in(sum, i), 1) == fold)
            return sum;
    return NULL;
}

static Status train_norm(PassRun *run, Node *product, Node *fold, Results *next)
{
    const FoldNormAttr *at = fold->attr;
    Node *y = end_of(product, fold), *const mean = in(fold, FOLD_NORM_MEAN), *const var = in(fold, FOLD_NORM_VAR);
    if (!y || mean->op != OP_state || var->op != OP_state)
        return fail_as(run->diag, INTERNAL, node_place(product), "a folded norm has lost its product");
    Build b = build_at_end(y->graph);
    b.before = y->next;
    b.src = product->src;
    b.label = product->label;
    const DType t = product->type->dtype;
    const int64_t channels = in(fold, FOLD_NORM_SCALE)->type->dims[0];
    const int rank = product->type->rank;
    Node *plain = build_node(&b, product->op, product->attr, BIAS, (Node *[]){ in(product, 0), in(product, WEIGHT) });
    Node *of_fold[FOLD_NORM_OPERANDS];
    for (int i = 0; i < FOLD_NORM_OPERANDS; i++)
        of_fold[i] = in(fold, i);
    Node *gain = fold_norm_gain(&b, of_fold, t, (double)at->epsilon);
    Node *u = CALL(&b, div, plain, make_channels(&b, gain, channels, rank));
    if (in(fold, FOLD_NORM_BIAS))
        u = CALL(&b, add, u, make_channels(&b, in(fold, FOLD_NORM_BIAS), channels, rank));
    const BatchNormAttr norm = { .epsilon = at->epsilon,
                                 .momentum = at->momentum,
                                 .training_mode = true,
                                 .unbiased = run->options->recipe && run->options->recipe->torch_norms };
    Node *scale = fold_norm_scale(&b, in(fold, FOLD_NORM_SCALE), t);
    Node *ins[] = { u, scale, in(fold, FOLD_NORM_SHIFT), mean, var }, *parts[3];
    Node *all = build_node_n(&b, OP_batch_normalization, &norm, COUNT(ins), ins, BATCH_NORM_RESULTS);
    for (int i = 0; i < 3; i++)
        parts[i] = b.status == OK ? build_part(&b, all, i) : NULL;
    TRY(b.status);
    stand_in(y, parts[0]);
    remove_unread(y, run->scratch, NULL, NULL);
    results_add(next, mean->name, parts[1]);
    results_add(next, var->name, parts[2]);
    run->changes++;
    return OK;
}

static Status train_norms(Graph *g, PassRun *run)
{
    const Recipe *r = run->options->recipe;
    if (!r || !r->kept_norms || r->frozen_norms)
        return OK;
    Results next = { .g = g, .arena = run->scratch };
    Node **products = NEWS(run->scratch, Node *, graph_count(g) + 1);
    size_t n_products = 0;
    for (Node *n = g->first; n; n = n->next)
        if (op_of(n)->access.kind == ACCESS_CONTRACT && fold_behind(in(n, WEIGHT), 0))
            products[n_products++] = n;
    for (size_t i = 0; i < n_products; i++)
        TRY(train_norm(run, products[i], fold_behind(in(products[i], WEIGHT), 0), &next));
    Results all = results_of(g, run->scratch); /* now that others stand in for some of them */
    for (size_t i = 0; i < next.n; i++)
        results_add(&all, next.name[i], next.node[i]);
    results_set(&all);
    return OK;
}

const Pass pass_train_norms = { .name = "train-norms", .needs = TYPED, .may = MEANING, .run = train_norms };
