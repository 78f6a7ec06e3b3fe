#include "passes/quant/phases.h"

int64_t phase_of_ranges(const QuantScales *s, const QuantNodes *q)
{
    const Quantization *r = s->p->recipe;
    const int64_t learned =
        q->by->part[QUANT_SOURCE].value == SOURCE_STATS ? phase_of_statistics(s, q, true) : INT64_MAX;
    return r->freezes && r->freeze_at < learned ? r->freeze_at : learned;
}

int64_t phase_of_statistics(const QuantScales *s, const QuantNodes *q, bool data)
{
    const int64_t steps = q->by->part[QUANT_SOURCE].size[0], floats = s->p->recipe->spec->weights_first;
    return data && floats > steps ? floats : steps;
}

static Node *steps_applied(Graph *g)
{
    Node *have = graph_state_of(g, STATE_counter, NULL);
    const StateAttr counter = { NULL, { STATE_counter, NULL } };
    return have ? have : graph_state(g, STEP_NAME, type_scalar(&g->ir->types, I64), &counter);
}

Node *phase_before(Build *b, int64_t steps)
{
    return CALL(b, less, steps_applied(b->graph), build_scalar(b, I64, (double)steps));
}

Node *phase_until(Build *b, int64_t steps, Node *now, Node *later)
{
    return steps == INT64_MAX ? now : CALL(b, where, phase_before(b, steps), now, later);
}

Status phase_settle(Graph *g, PassRun *run, int64_t at)
{
    Build b = build_at_start(g);
    for (size_t i = 0; i < g->n_inputs; i++) {
        Node *state = g->inputs[i];
        if (!is_state(state, STATE_counter))
            continue;
        Tensor *t = tensor_new(g->arena, state->type);
        tensor_set_i64(t, 0, at);
        Node *c = build_const(&b, t);
        TRY(b.status);
        graph_replace(state, c);
        graph_drop_input(g, i);
        run->changes++;
        break;
    }
    return OK;
}
