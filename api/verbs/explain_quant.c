/* explain of quantization: which values are codes, who asked, and which products stay as they are. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/make/quant_report.h"
#include "api/verbs/explain.h"
#include "ops/card/words.h"

/* The quantizer in the words in which it is said, without those that all have. */
static void tell_one(Text *t, Arena *arena, const QuantDecision *d)
{
    static const char *const kinds[] = { "data", "weight", "bias", "stays" };
    text_label(t, "");
    text_printf(t, "%-6s %s", kinds[d->kind], d->value ? name_text(arena, d->value) : d->where);
    if (d->kind == QUANT_STAYS) {
        text_printf(t, ": %s\n", d->why);
        return;
    }
    text_printf(t, ": %s", quantizer_text(d->by, arena));
    text_printf(t, "; for %s", name_text(arena, d->asked));
    if (d->shared)
        text_add(t, "; with the scale of what it is moved from");
    else if (d->state)
        text_printf(t, "; remembered in %s", name_text(arena, d->state));
    text_char(t, '\n');
}

void explain_quantization(Text *t, const qcc_step *s)
{
    Arena *arena = &s->cx->scratch;
    const QuantLedger *l = s->recipe.quantization.ledger;
    const char *line = quant_report_line(arena, s);
    if (!line)
        return;
    text_label(t, "quantization");
    text_printf(t, "%s\n", line);
    for (size_t i = 0; l && i < l->n; i++)
        tell_one(t, arena, &l->list[i]);
}
