#include "api/session/bits_told.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "ir/own_names.h"
#include "passes/learned/learned.h"
#include "passes/quant/ledger.h"

/* The bits of a weight, by the state beside that of its scale. */
static int bits_now(Arena *arena, const Graph *g, const QuantDecision *d)
{
    const char *name = d->state ? arena_printf(arena, "%s%s", BITS_PREFIX, d->state + strlen(STEP_SIZE_PREFIX)) : NULL;
    for (size_t i = 0; name && i < g->n_inputs; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return learned_bits_known(g->inputs[i], d->by->bits, arena);
    return d->by->bits;
}

static void warn_of_much(const qcc_step *s, uint64_t bytes, double most)
{
    Message *m = message_new(&s->model->cx->diag, SEVERITY_WARNING, OK, (Place){ .where = "--quant", .byte = -1 },
                             "codes of weights take %" PRIu64 " bytes, more than budget=%.0f", bytes, most);
    message_try(m, "more steps, or --group 'qcc.bits:lr=4x'");
    (void)message_send(m);
}

const char *bits_told(Arena *arena, const qcc_step *s, const QuantLedger *l, const Graph *g)
{
    const double most = s->recipe.quantization.spec ? s->recipe.quantization.spec->budget : 0;
    uint64_t bytes = 0;
    int n = 0;
    Text t;
    if (!(most > 0))
        return NULL;
    text_open(&t, arena);
    text_label(&t, "learned bits");
    for (size_t i = 0; i < l->n; i++) {
        const QuantDecision *d = &l->list[i];
        if (d->kind != QUANTIZED_WEIGHT || !d->by)
            continue;
        const int bits = bits_now(arena, g, d);
        bytes += ((uint64_t)d->elements * (uint64_t)bits + 7) / 8;
        if (d->by->part[QUANT_BITS].value)
            text_printf(&t, "%s%s %d", n++ ? ", " : "", name_text(arena, d->value), bits);
    }
    text_printf(&t, ": %" PRIu64 " of %.0f bytes\n", bytes, most);
    if ((double)bytes > most)
        warn_of_much(s, bytes, most);
    return text_get(&t);
}
