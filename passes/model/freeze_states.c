/* freeze-states: nothing is trained any more: every state is a constant of the value that it has.
 *
 *     graph @f(%x: f32[2], state %w: f32[2] = [1, 2] trained) -> (%y) {
 *         %y: f32[2] = mul(%x, %w)
 *     }
 *     ==>
 *     graph @f(%x: f32[2]) -> (%y) {
 *         const %w: f32[2] = [1, 2]
 *         %y: f32[2] = mul(%x, %w)
 *     }
 */
#include "ir/role.h"
#include "passes/engine/pass.h"
#include "passes/engine/results.h"

static Payload *value_of(Graph *g, const Node *state)
{
    Payload *have = state_initial(state);
    return have ? have : payload_of(g->arena, tensor_new(g->arena, state->type)); /* zeros */
}

/* Next values of states are no results of a model. */
static void drop_next_values(Graph *g, PassRun *run)
{
    Results r = results_of(g, run->scratch);
    bool *gone = NEWS(run->scratch, bool, r.n + 1);
    for (size_t i = 0; i < r.n; i++) {
        const char *name = results_name(&r, i);
        const Node *state = name ? input_named(g, name) : NULL;
        gone[i] = state && state->op == OP_state;
    }
    results_drop(&r, gone, r.n);
    results_set(&r);
}

static Status freeze_states(Graph *g, PassRun *run)
{
    drop_next_values(g, run);
    for (size_t i = g->n_inputs; i-- > 0;) {
        Node *state = g->inputs[i];
        if (state->op != OP_state)
            continue;
        Build b = build_at_start(g);
        const ValueAttr value = { value_of(g, state) };
        Node *c = build_typed(&b, OP_const, &value, 0, NULL, state->type);
        TRY(b.status);
        const char *name = state->name;
        graph_replace(state, c);
        graph_drop_input(g, i);
        c->name = name;
        run->changes++;
    }
    return OK;
}

const Pass pass_freeze_states = {
    .name = "freeze-states", .needs = TYPED, .may = EXACT, .rebinds = true, .run = freeze_states
};
