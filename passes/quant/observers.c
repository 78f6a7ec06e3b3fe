#include "passes/quant/observers.h"

#include "passes/engine/results.h"
#include "passes/quant/phases.h"

static bool is_kept(const Node *state, Observers which)
{
    if (!state || !is_state(state, STATE_quant))
        return which != OBSERVERS_ALONE;
    return which == OBSERVERS_ALONE || (which == OBSERVERS_OF_RANGES && !(state->flags & NODE_TRAINED));
}

Status observers_keep(Graph *g, PassRun *run, Observers which)
{
    Results r = results_of(g, run->scratch);
    bool *gone = NEWS(run->scratch, bool, r.n + 1);
    for (size_t i = 0; i < r.n; i++) {
        const char *name = results_name(&r, i);
        gone[i] = !is_kept(name ? input_named(g, name) : NULL, which);
        run->changes += gone[i];
    }
    results_drop(&r, gone, r.n);
    results_set(&r);
    /* who trains counts on; who observes is before the first step, and who is deployed behind the last one */
    return which == OBSERVERS_OF_RANGES ? OK : phase_settle(g, run, which == OBSERVERS_ALONE ? -1 : INT64_MAX);
}
