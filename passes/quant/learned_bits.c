/* Bits that weights learn, and what their codes take of a budget.  Codes reach up to an end that is learned, whatever their bits
 * are: with fewer of them it is the steps that become larger. */
#include "ops/card/words.h"
#include "passes/learned/learned.h"
#include "passes/quant/scale_parts.h"

enum { BYTE = 8 };

/* A budget counts bits so much before they are there: what the loss pulls up and the budget down comes to rest below. */
static const double counted_before = 0.25;

Status scale_check_bits(const QuantScales *s, const QuantNodes *q, const Node *value, bool data)
{
    const Quantizer *by = q->by;
    const bool fits = !data && by->format == FORMAT_INT && by->bits > LEARNED_BITS_LEAST && by->bits <= BYTE &&
                      !q->grain.block && scale_source(q) == SOURCE_LSQ && scale_zero_is_0(q) &&
                      quantizer_says(by, QUANT_SCALE, SCALE_F32) && quantizer_says(by, QUANT_RANGE, RANGE_NARROW) &&
                      quantizer_says(by, QUANT_ROUNDING, ROUNDING_RNE) && quantizer_says(by, QUANT_MASK, MASK_V);
    if (!fits)
        return scale_refused(s, q, value, data,
                             "learned bits of weights: int3 to int8 and lsq, one scale for all, or one a channel");
    return s->p->recipe->spec->budget > 0
               ? OK
               : scale_refused(s, q, value, data, "bits that are said, or budget=SIZE beside learned ones");
}

Status scale_of_bits(QuantScales *s, QuantNodes *q, Build *b, Node *value, Node *end)
{
    QuantBudget *k = &s->budget;
    Tensor *first = tensor_new(b->graph->arena, type_scalar(&b->graph->ir->types, F32));
    tensor_set_f64(first, 0, (double)q->by->bits / LEARNED_BITS_PART);
    Node *state = scale_state(s, q, BITS_PREFIX, first, false);
    Node *early = CALL(b, add, state, build_scalar(b, F32, counted_before / LEARNED_BITS_PART));
    Node *counted = learned_bits(b, early, q->by->bits);
    q->end = end;
    q->scale = CALL(b, div, end, learned_largest(b, learned_bits(b, state, q->by->bits)));
    TRY(b->status);
    GROW(s->p->run->scratch, k->list, k->n, k->cap);
    k->list[k->n++] = (QuantLearnsBits){ counted, type_known(value->type) ? (double)type_elements(value->type) : 0 };
    return OK;
}

static Status refuse(const QuantScales *s, const char *what, const char *instead)
{
    Place place = NOWHERE;
    place.where = "--quant";
    Message *m = message_new(s->p->run->diag, SEVERITY_ERROR, UNSUPPORTED, place, "%s", what);
    message_try(m, "%s", instead);
    return message_send(m);
}

Status quant_budget(QuantScales *s)
{
    Graph *g = s->p->g;
    Arena *scratch = s->p->run->scratch;
    const QuantBudget *k = &s->budget;
    const double most = s->p->recipe->spec->budget;
    double least = k->said;
    for (size_t i = 0; i < k->n; i++)
        least += k->list[i].elements * LEARNED_BITS_LEAST / BYTE;
    if (!k->n)
        return most > 0 ? refuse(s, "budget=: no weight learns its bits", "w=int8:channel:lsq:bits=learned") : OK;
    if (least > most)
        return refuse(s,
                      arena_printf(scratch, "budget=%.0f: codes of weights take %.0f bytes with the fewest bits", most,
                                   ceil(least)),
                      arena_printf(scratch, "budget=%.0f", ceil(least)));
    Build b = build_at_end(g);
    b.flags = NODE_OURS;
    Node *taken = build_scalar(&b, F32, k->said / most);
    for (size_t i = 0; i < k->n; i++)
        taken = CALL(&b, add, taken,
                     CALL(&b, mul, k->list[i].bits, build_scalar(&b, F32, k->list[i].elements / BYTE / most)));
    TRY(b.status);
    const char *name = name_of(&g->ir->names, BUDGET_NAME, sizeof BUDGET_NAME - 1);
    graph_state(g, name, taken->type, &(StateAttr){ NULL, { STATE_quant, NULL } });
    results_add(&s->results, name, taken);
    return OK;
}
