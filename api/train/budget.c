/* --quant-budget: more bits for the worst quantizers, in their order, as far as they fit. */
#include <inttypes.h>
#include <string.h>

#include "api/train/sensitivity.h"

enum { MOST_BITS = 8, MOST_OF_TANH = 7, FLOAT_BITS = 32 };

/* ---- what bits take ---- */

static bool is_weight(const Sensitive *one)
{
    return one->of && one->of->kind == QUANTIZED_WEIGHT && one->of->by->bits;
}

static int bits_now(const Sensitive *one)
{
    return one->bits ? one->bits : one->of->by->bits;
}

/* Those of the data that a weight is multiplied with. */
static int bits_beside(const Sensitivity *s, const QuantDecision *weight)
{
    for (size_t i = 0; weight->data && i < s->n; i++)
        if (s->list[i].of && strcmp(s->list[i].value, weight->data) == 0)
            return bits_now(&s->list[i]);
    return weight->data ? weight->data_bits : FLOAT_BITS;
}

static uint64_t takes(const Sensitivity *s, const Sensitive *one)
{
    const QuantDecision *d = one->of;
    if (!is_weight(one))
        return 0;
    if (s->unit == BUDGET_BYTES)
        return ((uint64_t)d->elements * (uint64_t)bits_now(one) + 7) / 8;
    const double work = d->work / (double)(s->rows > 0 ? s->rows : 1);
    return (uint64_t)(work * bits_now(one) * bits_beside(s, d));
}

static uint64_t all_take(const Sensitivity *s)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += takes(s, &s->list[i]);
    return sum;
}

/* ---- who gets more ---- */

/* Integers, but what first= and last= say, which counts over every table; data where their bits count. */
static bool is_open(const Sensitivity *s, const Sensitive *one)
{
    const char *said = one->of ? one->of->said : NULL;
    const bool counts = one->of && (is_weight(one) || (s->unit == BUDGET_BITOPS && one->of->kind == QUANTIZED_DATA));
    return counts && one->of->asker && quantizer_is_integer(one->of->by) &&
           !(said && (strncmp(said, "first=", 6) == 0 || strncmp(said, "last=", 5) == 0));
}

/* The most that its source has codes for. */
static int most_bits(const Quantizer *by)
{
    if (quantizer_says(by, QUANT_SOURCE, SOURCE_N2UQ))
        return QUANT_THRESHOLD_BITS;
    return quantizer_says(by, QUANT_SOURCE, SOURCE_DOREFA) ? MOST_OF_TANH : MOST_BITS;
}

static void raise_one(Sensitivity *s, Sensitive *one)
{
    const int most = most_bits(one->of->by);
    for (one->bits = most; one->bits > one->of->by->bits; one->bits--) {
        const uint64_t taken = all_take(s);
        if (taken <= s->most) {
            s->taken = taken;
            break;
        }
    }
    one->full = one->of->by->bits < most && one->bits < most;
    one->bits = one->bits > one->of->by->bits ? one->bits : 0;
}

static Status too_little(Command *c, const Sensitivity *s)
{
    const bool bytes = s->unit == BUDGET_BYTES;
    Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--quant-budget: %s take %" PRIu64 " %s already, more than %" PRIu64,
                             bytes ? "weights" : "products with weights", s->taken,
                             bytes ? "bytes" : "bit operations a sample", s->most);
    message_try(m, "--quant of fewer bits, or --quant-budget %s%" PRIu64, bytes ? "" : "BITOPS=", s->taken);
    return message_send(m);
}

static Status read_budget(Command *c, Sensitivity *s, const char *text)
{
    static const struct {
        const char *word;
        BudgetUnit unit;
    } units[] = { { "BYTES=", BUDGET_BYTES }, { "BITOPS=", BUDGET_BITOPS } };
    s->unit = BUDGET_BYTES;
    for (size_t i = 0; i < COUNT(units); i++)
        if (strncmp(text, units[i].word, strlen(units[i].word)) == 0) {
            s->unit = units[i].unit;
            text += strlen(units[i].word);
            break;
        }
    return memory_size_read(&c->cx->diag, "--quant-budget", text, 0, &s->most);
}

Status sensitivity_spend(Command *c, Sensitivity *s, const char *size)
{
    TRY(read_budget(c, s, size));
    s->taken = all_take(s);
    if (s->taken > s->most)
        return too_little(c, s);
    for (size_t i = 0; i < s->n; i++)
        if (is_open(s, &s->list[i]))
            raise_one(s, &s->list[i]);
    return OK;
}
