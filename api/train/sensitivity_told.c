/* explain --sensitivity: what each quantizer does to the loss, and the table of a budget. */
#include <inttypes.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/train/sensitivity.h"

static void tell_one(Text *t, const Sensitive *one, Arena *arena)
{
    text_label(t, "");
    text_printf(t, "%.3g  %s", one->change, name_text(arena, one->value));
    if (one->of)
        text_printf(t, ", %s of %d bits", one->of->kind == QUANTIZED_WEIGHT ? "weight" : "data", one->of->by->bits);
    if (one->bits)
        text_printf(t, ": %d bits", one->bits);
    if (one->full)
        text_add(t, one->bits ? ", no room for more" : ": no room for more");
    text_char(t, '\n');
}

/* The words of a quantizer with other bits: int4:channel:lsq .. */
static const char *words_with(const Quantizer *by, int bits, Arena *arena)
{
    Quantizer other = *by;
    other.bits = bits;
    return quantizer_text(&other, arena);
}

static const char *table_of(const Sensitivity *s, Arena *arena)
{
    Text t;
    text_open(&t, arena);
    text_printf(&t, "# %" PRIu64 " of %" PRIu64 " %s\n", s->taken, s->most,
                s->unit == BUDGET_BYTES ? "bytes of codes of weights" : "bit operations a sample");
    for (size_t i = 0; i < s->n; i++)
        if (s->list[i].bits)
            text_printf(&t, "%s %c=%s reason=sensitivity-%zu\n", s->list[i].of->asker,
                        s->list[i].of->kind == QUANTIZED_WEIGHT ? 'w' : 'a',
                        words_with(s->list[i].of->by, s->list[i].bits, arena), i + 1);
    return text_get(&t);
}

static Status write_table(Command *c, const char *path, const char *table)
{
    Out o;
    const qcc_sink sink = qcc_to_file(path);
    TRY(out_open(&o, c->cx, &sink));
    return out_close(&o, out_bytes(&o, table, strlen(table)));
}

/* ---- what is told ---- */

static Status wants_budget(Command *c)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--budget-table: the table is that of a budget");
    message_try(m, "--sensitivity --quant-budget SIZE");
    return message_send(m);
}

static Status spend(Text *t, Command *c, Sensitivity *s)
{
    const char *size = option_text(&c->line, OPT_quant_budget), *path = option_text(&c->line, OPT_budget_table);
    if (!size)
        return path ? wants_budget(c) : OK;
    TRY(sensitivity_spend(c, s, size));
    text_label(t, "budget");
    text_printf(t, "%s take %" PRIu64 " of %" PRIu64 " %s; the worst have more bits%s%s\n",
                s->unit == BUDGET_BYTES ? "codes of weights" : "products with weights", s->taken, s->most,
                s->unit == BUDGET_BYTES ? "bytes" : "bit operations a sample", path ? ", in " : "", path ? path : "");
    return path ? write_table(c, path, table_of(s, &c->cx->scratch)) : OK;
}

static void records(Text *t, const Sensitivity *s)
{
    for (size_t i = 0; i < s->n; i++)
        log_record(t, "sensitivity", { "value", logged_text(s->list[i].value) },
                   { "change", logged_f32((float)s->list[i].change) },
                   { "bits", s->list[i].bits ? logged_int(s->list[i].bits) : logged_text(NULL) });
}

static Status wants_sensitivity(Command *c)
{
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--quant-budget: the bits are given to the most sensitive");
    message_try(m, "--sensitivity --data FILE --target FILE");
    return message_send(m);
}

Status explain_sensitivity(Text *t, Command *c, qcc_step *step, bool as_records)
{
    Sensitivity s;
    Text budget;
    if (!option_given(&c->line, OPT_sensitivity))
        return option_given(&c->line, OPT_quant_budget)   ? wants_sensitivity(c)
               : option_given(&c->line, OPT_budget_table) ? wants_budget(c)
                                                          : OK;
    TRY(train_sensitivity(c, step, &s));
    text_open(&budget, &c->cx->scratch);
    TRY(spend(&budget, c, &s));
    if (as_records) {
        records(t, &s);
        return OK;
    }
    text_label(t, "sensitivity");
    text_printf(t, "change of the loss by each quantizer, to first order, over %" PRId64 " batch%s%s%s\n", s.batches,
                s.batches == 1 ? "" : "es", s.observed ? "; " : "", s.observed ? s.observed : "");
    for (size_t i = 0; i < s.n; i++)
        tell_one(t, &s.list[i], &c->cx->scratch);
    text_add(t, text_get(&budget));
    return OK;
}
