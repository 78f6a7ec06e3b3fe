/* The last step once more, on the reference evaluator, whatever engine ran it. */
#include "ops/card/eval.h"
#include "runtime/session/session_parts.h"

/* What the step read, on the host. */
static Status read_operands(Session *s, const Tensor **operands)
{
    for (size_t i = 0; i < s->n_states; i++)
        if (s->states[i].slot[0] >= 0)
            TRY(s->engine->get(s->values,
                               state_part(&s->states[i], s->states[i].has_pending ? PART_PENDING : PART_VALUE),
                               &operands[s->states[i].slot[0]]));
    for (size_t i = 0; i < s->n_inputs; i++)
        if (s->inputs[i].slot[0] >= 0 && s->inputs[i].bound)
            TRY(s->engine->get(s->values, value_kept((int)i), &operands[s->inputs[i].slot[0]]));
    const State *scale = s->scaling.scale;
    TRY(scaling_keep(s));
    if (s->scaling.has_latched) /* since then the scale may have moved */
        TRY(s->engine->get(s->values, value_kept(s->latched), &operands[scale->slot[0]]));
    return OK;
}

Status session_replay(Session *s, void (*observe)(void *user, const Node *n, const Tensor *value), void *user)
{
    Graph *g = s->graphs[0].graph;
    Heap heap;
    const EvalOptions options = { .kernels = s->options.kernels,
                                  .pool = s->options.pool,
                                  .seed = s->options.seed,
                                  .step = s->steps ? s->steps - 1 : 0,
                                  .stop = s->options.stop,
                                  .stop_too = s->options.stop_too,
                                  .rounding = s->options.rounding,
                                  .narrow = s->engine->narrows && !s->options.exact,
                                  .observe = observe,
                                  .user = user };
    const Tensor **operands = NEWS(s->ir->diag->arena, const Tensor *, g->n_inputs + 1);
    Tensor **results = NEWS(s->ir->diag->arena, Tensor *, graph_n_results(g) + 1);
    TRY(later_settle(s));
    TRY(session_complete(s));
    TRY(shadows_refresh(s));
    TRY(read_operands(s, operands));
    heap_open(&heap, s->ir->memory);
    const Status status = evaluate(g, &options, &heap, operands, results);
    heap_close(&heap);
    return status;
}
