/* What holds for each call: --quant, or the last --quant-op that selects it. */
#include "passes/quant/placement.h"
#include "passes/recipe/selector.h"

static Status read_one(Placement *p, const QuantOverride *o)
{
    Selector s;
    bool any = false;
    TRY(selector_open(&s, p->g, p->run->scratch, NULL, o->from, o->selector));
    for (Node *n = p->g->first; n; n = n->next)
        if (!(n->flags & NODE_BACKWARD) && selector_takes(&s, n)) {
            quant_call(p, n)->spec = o->spec;
            quant_call(p, n)->said = o->said;
            any = true;
        }
    const Status status = any ? OK : selector_missed(&s, p->g, false);
    selector_close(&s);
    return status;
}

Status quant_read_overrides(Placement *p)
{
    const Quantization *r = p->recipe;
    for (Node *n = p->g->first; n; n = n->next)
        quant_call(p, n)->spec = r->spec;
    for (size_t k = 0; k < r->n_overrides; k++)
        TRY(read_one(p, &r->overrides[k]));
    return OK;
}
