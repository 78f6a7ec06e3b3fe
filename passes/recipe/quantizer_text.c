/* Quantizers in words: those that are read, and what they mean. */
#include <string.h>

#include "base/number_text.h"
#include "base/text.h"
#include "passes/recipe/quantizer.h"

static const struct {
    QuantField field;
    const char *word;
    QuantValue value;
    const char *what;
} words[] = {
#define WORD(field, word, value, argument, from, to, what) { QUANT_##field, word, value, what },
    QUANT_WORDS(WORD)
#undef WORD
};

static const struct {
    const char *word, *what;
} formats[] = {
#define FORMAT(id, word, bits, what) { word, what },
    QUANT_FORMATS(FORMAT)
#undef FORMAT
};

static const struct {
    const char *word, *what;
} roles[] = {
#define OPERAND(id, word, product, what) { word, what },
    QUANT_OPERANDS(OPERAND)
#undef OPERAND
};

const char *quantizer_operand_word(QuantOperand operand)
{
    return roles[operand].word;
}

static const char *const titles[] = {
#define FIELD(id, title) title,
    QUANT_FIELDS(FIELD)
#undef FIELD
};

static void add_format(Text *t, const Quantizer *q)
{
    if (q->format == FORMAT_EITHER)
        text_printf(t, "int%d|uint%d", q->bits, q->bits);
    else if (quantizer_is_integer(q))
        text_printf(t, "%s%d", formats[q->format].word, q->bits);
    else
        text_add(t, formats[q->format].word);
}

static size_t word_of(const QuantPart *p)
{
    size_t i = 0;
    while (i < COUNT(words) && words[i].value != p->value)
        i++;
    return i;
}

/* A word with its argument: "group=32", "ema=0.01". */
static void add_word(Text *t, const QuantPart *p)
{
    char number[NUMBER_TEXT];
    const size_t i = word_of(p);
    if (i == COUNT(words))
        return;
    text_add(t, words[i].word);
    f64_to_text(number, p->number);
    if (p->size[1])
        text_printf(t, "=%lldx%lld", (long long)p->size[0], (long long)p->size[1]);
    else if (p->size[0])
        text_printf(t, "=%lld", (long long)p->size[0]);
    else if (p->number > 0)
        text_printf(t, "=%s", number);
}

const char *quantizer_text(const Quantizer *q, Arena *arena)
{
    Text t;
    text_open(&t, arena);
    if (!q->on)
        return "off";
    add_format(&t, q);
    for (size_t f = 0; f < QUANT_FIELD_COUNT; f++) {
        if (word_of(&q->part[f]) == COUNT(words))
            continue;
        text_char(&t, ':');
        add_word(&t, &q->part[f]);
    }
    return text_get(&t);
}

static void add_end(Text *t, const char *which, const QuantEnd *end)
{
    if (end->said && end->bits)
        text_printf(t, ",%s=%d", which, end->bits);
    else if (end->said)
        text_printf(t, ",%s=off", which);
}

const char *quantizer_spec_text(const QuantSpec *s, Arena *arena)
{
    Text t;
    text_open(&t, arena);
    for (size_t i = 0; i < COUNT(roles); i++)
        text_printf(&t, "%s%s=%s", i ? "," : "", roles[i].word, quantizer_text(&s->of[i], arena));
    add_end(&t, "first", &s->first);
    add_end(&t, "last", &s->last);
    if (s->weights_first)
        text_printf(&t, ",phase=weights-first:%lld", (long long)s->weights_first);
    if (s->budget > 0)
        text_printf(&t, ",budget=%.0f", s->budget);
    return text_get(&t);
}

/* ---- what they mean ---- */

enum { WORD_AT = 16, WHAT_AT = 34, FROM_AT = 92 };

static void add_line(Text *t, const char *title, const char *word, const char *what, const char *from)
{
    text_add(t, title);
    text_pad(t, WORD_AT);
    text_add(t, word);
    text_pad(t, WHAT_AT);
    text_add(t, what);
    text_add(t, "  ");
    text_pad(t, FROM_AT);
    text_printf(t, "%s\n", from);
}

static const char *part_word(const QuantPart *p, Arena *arena)
{
    Text t;
    text_open(&t, arena);
    add_word(&t, p);
    return text_get(&t);
}

static void explain_part(Text *to, const Quantizer *q, QuantField f)
{
    const QuantPart *p = &q->part[f];
    int64_t least, largest;
    const size_t i = word_of(p);
    if (p->value == SOURCE_PRODUCT) {
        add_line(to, titles[f], "-", "the scale of the data times that of the weights", p->from);
        return;
    }
    if (i == COUNT(words))
        return;
    const char *what = words[i].what;
    if (f == QUANT_RANGE) {
        quantizer_codes(q, &least, &largest);
        what = q->format == FORMAT_EITHER
                   ? arena_printf(to->arena, "%lld to %lld, or 0 to %lld", (long long)least, (long long)largest,
                                  (long long)(largest - least))
                   : arena_printf(to->arena, "%lld to %lld", (long long)least, (long long)largest);
    }
    add_line(to, titles[f], part_word(p, to->arena), what, p->from);
}

static void explain_role(Text *to, const Quantizer *q, size_t role)
{
    Text format;
    text_open(&format, to->arena);
    if (q->on)
        add_format(&format, q);
    else
        text_add(&format, "off");
    add_line(to, roles[role].word, text_get(&format),
             q->on ? arena_printf(to->arena, "%s: %s", roles[role].what, formats[q->format].what) : roles[role].what,
             q->from);
    for (size_t f = 0; f < QUANT_FIELD_COUNT && q->on; f++)
        explain_part(to, q, (QuantField)f);
}

static void explain_end(Text *to, const char *which, const QuantEnd *end)
{
    if (end->said)
        add_line(to, which, end->bits ? arena_printf(to->arena, "%d", end->bits) : "off",
                 end->bits ? "bits of that layer" : "that layer stays float", end->from);
}

void quantizer_explain(Text *to, const QuantSpec *s)
{
    for (size_t i = 0; i < COUNT(roles); i++)
        explain_role(to, &s->of[i], i);
    explain_end(to, "first", &s->first);
    explain_end(to, "last", &s->last);
    if (s->weights_first)
        add_line(to, "phase", arena_printf(to->arena, "weights-first:%lld", (long long)s->weights_first),
                 "steps in which weights alone are quantized", "said");
    if (s->budget > 0)
        add_line(to, "budget", arena_printf(to->arena, "%.0f", s->budget), "bytes of the codes of weights", "said");
}
