/* attach-budget: what the bits of weights take beyond a budget is added to the loss, so that bits which are learned become fewer
 * where the loss minds least.  Within the budget it adds nothing.
 *
 *     graph @f(%w: f32[], state %qcc.budget: f32[] role=quant) -> (%loss, %qcc.budget = %share) {
 *         %loss: f32[] = mul(%w, %w)
 *         %share: f32[] = abs(%w)
 *     }
 *     ==>
 *     graph @f(%w: f32[], state %qcc.budget: f32[] role=quant) -> (%loss, %qcc.budget = %share) {
 *         %0: f32[] = mul(%w, %w)
 *         %share: f32[] = abs(%w)
 *         const %1: f32[] = 1 ours
 *         %2: f32[] = sub(%share, %1) ours
 *         const %3: f32[] = 0 ours
 *         %4: f32[] = max(%2, %3) ours
 *         const %5: f32[] = 4 ours
 *         %6: f32[] = mul(%4, %5) ours
 *         %loss: f32[] = add(%0, %6) ours
 *     }
 */
#include "ops/card/make.h"
#include "ops/card/words.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"

/* A quarter of the budget too much counts as a loss of 1, which is more than the last bits of a weight are worth to a loss that
 * is learned. */
static const double weight = 4;

static Status attach_budget(Graph *g, PassRun *run)
{
    Results results = results_of(g, run->scratch);
    const int share = results_find(&results, BUDGET_NAME), at = results_find(&results, "loss");
    if (share < 0)
        return OK;
    if (at < 0)
        return fail_as(run->diag, USAGE, (Place){ .where = "--quant", .byte = -1 },
                       "budget=: with --loss external the loss is the host's, and nothing is added to it");
    Build b = build_at_end(g);
    b.flags = NODE_OURS;
    Node *task = results.node[at];
    const char *name = results.name[at] ? results.name[at] : task->name;
    Node *over = CALL(&b, sub, results.node[share], build_scalar(&b, F32, 1));
    over = CALL(&b, mul, CALL(&b, max, over, build_scalar(&b, F32, 0)), build_scalar(&b, F32, weight));
    over = make_cast(&b, over, task->type->dtype);
    Node *sum = CALL(&b, add, task, over);
    TRY(b.status);
    if (task->name == name)
        task->name = NULL;
    if (!sum->name)
        sum->name = name;
    results.node[at] = sum;
    results.name[at] = name;
    results_set(&results);
    run->changes++;
    return OK;
}

const Pass pass_attach_budget = { .name = "attach-budget", .needs = TYPED, .may = MEANING, .run = attach_budget };
