/* Ranges and first scales of a quantized step, which data have to be seen for. */
#include <math.h>
#include <string.h>

#include "ir/own_names.h"
#include "ops/quant/observe.h"
#include "runtime/session/session_parts.h"

static bool is_observed(const State *state, const Tensor *value)
{
    if (strncmp(state->name, RANGE_PREFIX, strlen(RANGE_PREFIX)) != 0) /* a scale has no number before */
        return !isnan(tensor_get_f64(value, 0));
    return tensor_elements(value) <= OBSERVED_SEEN || tensor_get_f64(value, OBSERVED_SEEN) > 0;
}

Status session_unobserved(Session *s, const State **state)
{
    *state = NULL;
    for (size_t i = 0; i < s->n_states && !s->observed; i++) {
        const State *one = &s->states[i];
        const Tensor *value = NULL;
        if (one->mark.role != STATE_quant || one->mark.of) /* that of codes is there from the start */
            continue;
        TRY(s->engine->get(s->values, state_part(one, PART_VALUE), &value));
        if (value && !is_observed(one, value)) {
            *state = one;
            return OK;
        }
    }
    s->observed = true;
    return OK;
}

Status session_check_observed(Session *s)
{
    const State *state;
    TRY(session_unobserved(s, &state));
    if (!state)
        return OK;
    Message *m = message_new(s->ir->diag, SEVERITY_ERROR, USAGE, NOWHERE,
                             "%s has seen no data: nobody knows the scale that it is to quantize with", state->name);
    message_try(m, "qcc train, or --checkpoint of a run; a host: QCC_OBSERVE with some batches before the first step");
    return message_send(m);
}

Status session_observe(Session *s)
{
    int n = 0;
    TRY(session_run_graph(s, "observe", NULL));
    const SessionGraph *g = &s->graphs[s->shown];
    for (size_t i = 0; i < s->n_states; i++) {
        const MapEntry *e = map_find(&g->result, s->states[i].name);
        if (e)
            add_move(s, &n, state_part(&s->states[i], PART_VALUE), value_result(g->number, (int)e->value.i));
    }
    TRY(s->engine->move(s->values, n, s->moves));
    for (size_t i = 0; i < s->n_states; i++)
        s->states[i].version += map_find(&g->result, s->states[i].name) != NULL;
    return OK;
}
