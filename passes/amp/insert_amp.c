/* insert-amp: mixed precision: which calls compute in 16 bits, and which values are stored so.
 *
 *     # recipe: --amp bf16
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         %h: f32[4,2] = matmul(%x, %w)
 *         %y: f32[4,2] = tanh(%h)
 *     }
 *     ==>
 *     graph @f(%x: f32[4,8], state %w: f32[8,2] trained) -> (%y) {
 *         %0: bf16[8,2] = amp_cast(%w, to=bf16) ours
 *         %1: bf16[4,8] = amp_cast(%x, to=bf16) ours
 *         %h: bf16[4,2] = matmul(%1, %0)
 *         %2: f32[4,2] = amp_cast(%h, to=f32) ours
 *         %y: f32[4,2] = tanh(%2)
 *     }
 *
 * The graph is looked at as if it had no amp_cast, so the pass changes nothing the second time.  Once there is a
 * backward side, the forward one stands as it is. */
#include "passes/amp/narrow_graph.h"

/* The plan that nobody asked for: everything wide. */
static double price_of_wide(const AmpProblem *p)
{
    double sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->variable[i].copy_of < 0 ? p->variable[i].wide_price : 0;
    return sum;
}

static double label_by(AmpProblem *p, void (*solve)(AmpProblem *p))
{
    solve(p);
    return amp_cost(p);
}

static void solve(AmpGraph *a, const Precision *precision)
{
    AmpProblem *p = &a->problem;
    const double walk = label_by(p, amp_walk);
    const double cost = precision->walks ? walk : label_by(p, amp_cut);
    AmpLedger *ledger = precision->ledger;
    if (!ledger)
        return;
    ledger->cost += cost + NARROW_BYTES * p->read;
    ledger->walk_cost += walk + NARROW_BYTES * p->read;
    ledger->wide_cost += price_of_wide(p) + WIDE_BYTES * p->read;
}

static Status insert_amp(Graph *g, PassRun *run)
{
    const Recipe *recipe = run->options->recipe;
    AmpGraph a;
    if (!recipe || !recipe->precision.on)
        return OK;
    amp_graph_open(&a, g, run);
    Status status = amp_find_roles(&a);
    if (status == OK) {
        amp_state_problem(&a);
        solve(&a, &recipe->precision);
        amp_place(&a);
        amp_record(&a, recipe->precision.ledger);
        run->changes += a.inserted + a.removed;
    }
    if (a.roles)
        amp_roles_close(a.roles);
    return status;
}

const Pass pass_insert_amp = { .name = "insert-amp", .needs = TYPED, .may = PRECISION, .run = insert_amp };
