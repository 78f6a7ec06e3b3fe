/* Quantizers from their words. */
#include <string.h>
#include <strings.h>

#include "base/number_text.h"
#include "base/str.h"
#include "passes/recipe/quantizer.h"

typedef enum Argument { NONE, MAYBE, REAL, WHOLE, PAIR } Argument;

typedef struct Word {
    QuantField field;
    const char *word;
    QuantValue value;
    Argument argument;
    double from, to;
} Word;

static const Word words[] = {
#define WORD(field, word, value, argument, from, to, what) { QUANT_##field, word, value, argument, from, to },
    QUANT_WORDS(WORD)
#undef WORD
};

static const struct {
    const char *word;
    int bits;
} formats[] = {
#define FORMAT(id, word, bits, what) { word, bits },
    QUANT_FORMATS(FORMAT)
#undef FORMAT
};

static const struct {
    const char *word;
    QuantProduct product;
} roles[] = {
#define OPERAND(id, word, product, what) { word, PRODUCT_##product },
    QUANT_OPERANDS(OPERAND)
#undef OPERAND
};

static const char *const products[] = {
#define PRODUCT(id, word) word,
    QUANT_PRODUCTS(PRODUCT)
#undef PRODUCT
};

const char quantizer_unsaid[] = "default";

static const struct Elsewhere {
    const char *theirs, *what, *preset, *quantizer;
} elsewhere[] = {
#define ELSEWHERE(theirs, what, preset, quantizer) { theirs, what, preset, quantizer },
    QUANT_ELSEWHERE(ELSEWHERE)
#undef ELSEWHERE
};

typedef struct Reader {
    QuantSpec *spec;
    Place place;               /* of complaints */
    const QuantTarget *target; /* null: nobody in particular */
    const char *from;          /* who says what is read now: "said", or "preset w8a8" */
    bool said[QUANT_OPERAND_COUNT];
    Arena *arena;
    Diag *diag;
} Reader;

static Message *complaint(const Reader *r, const char *text)
{
    return message_new(r->diag, SEVERITY_ERROR, USAGE, r->place, "%s", text);
}

/* Reports what is wrong and what to write instead. */
static Status refuse(const Reader *r, const char *wrong, const char *instead)
{
    Message *m = complaint(r, wrong);
    if (instead)
        message_try(m, "%s", instead);
    return message_send(m);
}

/* The method that others call so, in whatever case; null: nobody does. */
static const struct Elsewhere *method_called(const char *name)
{
    for (size_t i = 0; i < COUNT(elsewhere); i++)
        if (strcasecmp(elsewhere[i].theirs, name) == 0)
            return &elsewhere[i];
    return NULL;
}

static Status refuse_method(const Reader *r, const char *name, const char *instead)
{
    return refuse(
        r, arena_printf(r->arena, "%s is for models that are not trained again: %s", name, method_called(name)->what),
        instead);
}

/* The next part of a text up to a separator; *rest goes behind it, or becomes null. */
static const char *part_of(Arena *arena, const char **rest, char separator)
{
    const char *end = strchr(*rest, separator), *text = *rest;
    *rest = end ? end + 1 : NULL;
    return arena_copy(arena, text, end ? (size_t)(end - text) : strlen(text));
}

/* ---- formats ---- */

static bool bits_of(const char *text, int64_t *bits)
{
    return i64_from_text(text, strlen(text), bits) && *bits >= 1 && (*bits <= 16 || *bits == 32);
}

/* int8, uint8, int8|uint8. */
static bool read_integer(const char *text, Quantizer *q)
{
    const bool is_unsigned = text[0] == 'u';
    const char *digits = text + (is_unsigned ? 4 : 3);
    int64_t bits, other;
    char first[8];
    if (strncmp(text, is_unsigned ? "uint" : "int", is_unsigned ? 4 : 3) != 0)
        return false;
    const size_t n = strcspn(digits, "|");
    if (n >= sizeof first)
        return false;
    memcpy(first, digits, n);
    first[n] = '\0';
    if (!bits_of(first, &bits) || (is_unsigned && bits == 32))
        return false;
    q->format = is_unsigned ? FORMAT_UINT : FORMAT_INT;
    q->bits = (int)bits;
    if (digits[n] == '\0')
        return true;
    q->format = FORMAT_EITHER;
    return !is_unsigned && strncmp(digits + n, "|uint", 5) == 0 && bits_of(digits + n + 5, &other) && other == bits;
}

/* The place of a format whose word says its bits; COUNT(formats): there is none of that name. */
static size_t find_format(const char *text)
{
    size_t i = 0;
    while (i < COUNT(formats) && !(formats[i].bits && strcmp(formats[i].word, text) == 0))
        i++;
    return i;
}

static Status read_format(const Reader *r, const char *text, Quantizer *q)
{
    const char *known[COUNT(formats) + 1];
    size_t n = 0;
    const size_t at = find_format(text);
    if (read_integer(text, q))
        return OK;
    if (at < COUNT(formats)) {
        q->format = (QuantFormat)at;
        q->bits = formats[at].bits;
        return OK;
    }
    if (method_called(text))
        return refuse_method(r, text, method_called(text)->quantizer);
    for (size_t i = 0; i < COUNT(formats); i++)
        if (formats[i].bits)
            known[n++] = formats[i].word;
    known[n++] = "int8";
    const char *near = str_nearest(text, known, n);
    return refuse(r, arena_printf(r->arena, "no format is called '%s'", text),
                  near ? near : "int1 to int16, uint1 to uint16, int32, e4m3, e5m2, e2m3, e3m2, e2m1, ternary, binary");
}

/* ---- words ---- */

static const Word *find_word(const char *text)
{
    const size_t n = strcspn(text, "=");
    for (size_t i = 0; i < COUNT(words); i++)
        if (strcmp(words[i].word, text) == 0 || (strlen(words[i].word) == n && strncmp(words[i].word, text, n) == 0))
            return &words[i];
    return NULL;
}

static Status unknown_word(const Reader *r, const char *text)
{
    if (method_called(text))
        return refuse_method(r, text, NULL);
    const char *known[COUNT(words)];
    for (size_t i = 0; i < COUNT(words); i++)
        known[i] = words[i].word;
    const char *near = str_nearest(arena_copy(r->arena, text, strcspn(text, "=")), known, COUNT(words));
    return refuse(r, arena_printf(r->arena, "no word of a quantizer is called '%s'", text), near);
}

static Status wrong_argument(const Reader *r, const Word *w)
{
    char from[NUMBER_TEXT], to[NUMBER_TEXT];
    f64_to_text(from, w->from);
    f64_to_text(to, w->to);
    const char *wanted = w->argument == NONE    ? "no argument"
                         : w->argument == WHOLE ? arena_printf(r->arena, "a whole number, %s or more", from)
                         : w->argument == PAIR  ? "two numbers, as 16x16"
                         : isinf(w->to)         ? arena_printf(r->arena, "a number above %s", from)
                                                : arena_printf(r->arena, "a number above %s, up to %s", from, to);
    return refuse(r, arena_printf(r->arena, "%s takes %s", w->word, wanted), NULL);
}

static bool read_whole(const Word *w, const char *text, int64_t *to)
{
    return i64_from_text(text, strlen(text), to) && (double)*to >= w->from && (double)*to <= w->to;
}

static bool read_real(const Word *w, const char *text, double *to)
{
    return text && f64_from_text(text, strlen(text), to) && *to > w->from && *to <= w->to && isfinite(*to);
}

static Status read_argument(const Reader *r, const Word *w, const char *text, QuantPart *part)
{
    const char *rest = text;
    bool good = text != NULL;
    switch (w->argument) {
    case NONE:
        good = !text;
        break;
    case MAYBE:
        part->number = 0.01;
        good = !text || read_real(w, text, &part->number);
        break;
    case REAL:
        good = read_real(w, text, &part->number);
        break;
    case WHOLE:
        good = good && read_whole(w, text, &part->size[0]);
        break;
    case PAIR:
        good = good && strchr(text, 'x') && read_whole(w, part_of(r->arena, &rest, 'x'), &part->size[0]) &&
               read_whole(w, rest, &part->size[1]);
        break;
    }
    return good ? OK : wrong_argument(r, w);
}

static Status read_word(const Reader *r, const char *text, Quantizer *q)
{
    const Word *w = find_word(text);
    const char *sign = strchr(text, '=');
    if (!w)
        return unknown_word(r, text);
    QuantPart *part = &q->part[w->field];
    if (part->value)
        return refuse(r, arena_printf(r->arena, "'%s' and another word say the same of one quantizer", text), NULL);
    part->value = w->value;
    part->from = r->from;
    return read_argument(r, w, sign && strcmp(w->word, text) != 0 ? sign + 1 : NULL, part);
}

/* ---- quantizers ---- */

static Status check(const Reader *r, const char *text, const Quantizer *q, QuantOperand role)
{
    const char *instead, *wrong = quantizer_wrong(q, role, &instead);
    return wrong ? refuse(r, arena_printf(r->arena, "%s=%s: %s", roles[role].word, text, wrong), instead) : OK;
}

static Status read_quantizer(Reader *r, const char *text, QuantOperand role)
{
    Quantizer q = { .on = true, .from = r->from };
    const char *rest = text;
    const char *format = part_of(r->arena, &rest, ':');
    if (strcmp(format, "off") == 0) {
        if (rest)
            return refuse(r, arena_printf(r->arena, "'%s': nothing follows off", text), "off");
        r->spec->of[role] = (Quantizer){ .from = r->from };
        return OK;
    }
    TRY(read_format(r, format, &q));
    while (rest)
        TRY(read_word(r, part_of(r->arena, &rest, ':'), &q));
    quantizer_fill(&q, role);
    if (r->target)
        quantizer_fill_rounding(&q, role, r->target);
    TRY(check(r, text, &q, role));
    r->spec->of[role] = q;
    return OK;
}

/* ---- items ---- */

static int role_called(const char *word)
{
    for (size_t i = 0; i < COUNT(roles); i++)
        if (strcmp(roles[i].word, word) == 0)
            return (int)i;
    return -1;
}

static Status read_end(const Reader *r, const char *key, const char *value, QuantEnd *end)
{
    int64_t bits = 0;
    if (strcmp(value, "off") != 0 && (!bits_of(value, &bits) || bits > 16))
        return refuse(r, arena_printf(r->arena, "%s is '%s', wanted are bits from 1 to 16, or off", key, value), NULL);
    *end = (QuantEnd){ true, (int)bits, r->from };
    return OK;
}

static Status read_phase(const Reader *r, const char *value)
{
    static const char begins[] = "weights-first:";
    int64_t steps;
    if (strncmp(value, begins, sizeof begins - 1) != 0 ||
        !i64_from_text(value + sizeof begins - 1, strlen(value) - sizeof begins + 1, &steps) || steps < 1)
        return refuse(r, arena_printf(r->arena, "phase is '%s', wanted is weights-first:N, for so many steps", value),
                      "phase=weights-first:1000");
    r->spec->weights_first = steps;
    return OK;
}

/* Bytes: 9000, 9k, 9kB, 1.5M .. */
static Status read_budget(const Reader *r, const char *value)
{
    double x;
    const size_t n = f64_read(value, strlen(value), &x);
    const char *unit = value + n;
    const double factor = strcmp(unit, "") == 0                               ? 1
                          : strcmp(unit, "k") == 0 || strcmp(unit, "kB") == 0 ? 1e3
                          : strcmp(unit, "M") == 0 || strcmp(unit, "MB") == 0 ? 1e6
                                                                              : 0;
    if (!n || !(x * factor >= 1) || !(x * factor < 0x1p53))
        return refuse(r, arena_printf(r->arena, "budget is '%s', wanted are bytes of the codes of weights", value),
                      "budget=40kB");
    r->spec->budget = floor(x * factor);
    return OK;
}

static Status unknown_role(const Reader *r, const char *word)
{
    const char *known[COUNT(roles) + 5];
    size_t n = 0;
    for (; n < COUNT(roles); n++)
        known[n] = roles[n].word;
    known[n++] = "first", known[n++] = "last", known[n++] = "phase", known[n++] = "skip", known[n++] = "budget";
    const char *near = str_nearest(word, known, n);
    return refuse(r, arena_printf(r->arena, "nothing that is quantized is called '%s'", word),
                  near ? near : "w, a, b, g, w.dgrad, x.wgrad, g.wgrad, first, last, phase, skip, budget");
}

static Status read_skip(Reader *r, const char *value)
{
    for (const char *rest = value; rest;) {
        const char *word = part_of(r->arena, &rest, '+');
        const int role = role_called(word);
        if (role < 0)
            return unknown_role(r, word);
        r->spec->of[role] = (Quantizer){ .from = "skip" };
        r->said[role] = true;
    }
    return OK;
}

static Status read_item(Reader *r, const char *item)
{
    const char *sign = strchr(item, '=');
    if (!sign)
        return refuse(r, arena_printf(r->arena, "'%s' is no item: WHAT=FORMAT:WORDS is wanted", item),
                      arena_printf(r->arena, "w=%s", item));
    const char *key = arena_copy(r->arena, item, (size_t)(sign - item)), *value = sign + 1;
    const int role = role_called(key);
    if (role >= 0) {
        if (r->said[role])
            return refuse(r, arena_printf(r->arena, "%s is said twice", key), NULL);
        r->said[role] = true;
        return read_quantizer(r, value, (QuantOperand)role);
    }
    if (strcmp(key, "first") == 0)
        return read_end(r, key, value, &r->spec->first);
    if (strcmp(key, "last") == 0)
        return read_end(r, key, value, &r->spec->last);
    if (strcmp(key, "phase") == 0)
        return read_phase(r, value);
    if (strcmp(key, "budget") == 0)
        return read_budget(r, value);
    return strcmp(key, "skip") == 0 ? read_skip(r, value) : unknown_role(r, key);
}

static Status read_items(Reader *r, const char *text)
{
    while (text)
        TRY(read_item(r, part_of(r->arena, &text, ',')));
    return OK;
}

/* ---- presets ---- */

static Status no_preset(const Reader *r, const char *name)
{
    const char *known[COUNT(elsewhere) + 16];
    size_t n = 0;
    if (method_called(name))
        return refuse_method(r, name, method_called(name)->preset);
#define PRESET(name, text) known[n++] = name;
    QUANT_PRESETS(PRESET)
#undef PRESET
    known[n++] = "w8a8", known[n++] = "w4a8", known[n++] = "w4a4";
    const char *near = str_nearest(name, known, n);
    return refuse(r, arena_printf(r->arena, "no preset is called '%s'", name),
                  near ? near
                       : "w8a8, any wXaY, wX, wXgN, fp8, mxfp8, mxint8, nvfp4, bitnet, int8-weights, int8-matmul");
}

/* What belongs to other products than those that are named stays as it is. */
static Status read_products(Reader *r, const char *list)
{
    bool wanted[QUANT_PRODUCT_COUNT] = { false };
    while (list) {
        const char *word = part_of(r->arena, &list, '+');
        size_t i = 0;
        while (i < COUNT(products) && strcmp(products[i], word) != 0)
            i++;
        if (i == COUNT(products)) {
            const char *near = str_nearest(word, products, COUNT(products));
            return refuse(r, arena_printf(r->arena, "no product is called '%s'", word),
                          near ? near : "output, grad_input, grad_weight");
        }
        wanted[i] = true;
    }
    for (size_t i = 0; i < COUNT(roles); i++)
        if (!wanted[roles[i].product])
            r->spec->of[i] = (Quantizer){ .from = r->from };
    return OK;
}

/* Operands of backward products are quantized as they are in forward ones, where gradients are quantized at all. */
static void fill_backward(Reader *r)
{
    static const struct {
        QuantOperand role, like;
    } copies[] = { { OPERAND_W_DGRAD, OPERAND_W }, { OPERAND_X_WGRAD, OPERAND_A }, { OPERAND_G_WGRAD, OPERAND_G } };
    for (size_t i = 0; i < COUNT(copies); i++) {
        Quantizer *q = &r->spec->of[copies[i].role];
        if (r->said[copies[i].role])
            continue;
        *q = (Quantizer){ .from = quantizer_unsaid };
        if (!r->spec->of[OPERAND_G].on || quantizer_is_learned(&r->spec->of[copies[i].like]))
            continue;
        *q = r->spec->of[copies[i].like];
        q->from = arena_printf(r->arena, "as %s", roles[copies[i].like].word);
        q->part[QUANT_MASTER] = q->part[QUANT_FIRST] = (QuantPart){ QUANT_NOTHING };
    }
}

static Status read_preset(Reader *r, const char *word)
{
    const char *list = word, *name = part_of(r->arena, &list, ':');
    const char *text = quantizer_preset(name, r->target, r->arena);
    Quantizer format;
    if (!text && (read_integer(name, &format) || find_format(name) < COUNT(formats)))
        return refuse(r, arena_printf(r->arena, "'%s' does not say of what", word),
                      arena_printf(r->arena, "w=%s", word));
    if (!text)
        return no_preset(r, name);
    r->from = arena_printf(r->arena, "preset %s for %s", name, r->target->name);
    TRY(read_items(r, text));
    fill_backward(r);
    if (list)
        TRY(read_products(r, list));
    memset(r->said, 0, sizeof r->said);
    for (size_t i = 0; i < COUNT(r->said) && list; i++)
        r->said[i] =
            i == OPERAND_W_DGRAD || i == OPERAND_X_WGRAD || i == OPERAND_G_WGRAD; /* what the products decided stays */
    r->from = "said";
    return OK;
}

/* Who has no floats has biases of codes where nobody says otherwise. */
static Status fill_bias(Reader *r)
{
    const Quantizer *w = &r->spec->of[OPERAND_W], *a = &r->spec->of[OPERAND_A], *b = &r->spec->of[OPERAND_B];
    if (!r->target->no_floats || b->from != quantizer_unsaid || !w->on || !a->on || quantizer_is_float(w) ||
        quantizer_is_float(a))
        return OK;
    r->from = arena_printf(r->arena, "default for %s", r->target->name);
    return read_quantizer(r, "int32", OPERAND_B);
}

/* There are targets without zero points, and with float biases. */
static Status check_target(const Reader *r)
{
    for (size_t i = 0; i < COUNT(roles) && r->target->zero_is_0; i++) {
        const Quantizer *q = &r->spec->of[i];
        const QuantValue zero = q->part[QUANT_ZERO].value;
        if (!q->on || zero == ZERO_SYM || zero == QUANT_NOTHING)
            continue;
        Quantizer other = *q;
        other.format = other.format == FORMAT_UINT ? FORMAT_INT : other.format;
        other.part[QUANT_ZERO].value = ZERO_SYM;
        Message *m = complaint(r, arena_printf(r->arena, "%s=%s: in %s 0 has code 0", roles[i].word,
                                               quantizer_text(q, r->arena), r->target->title));
        message_try(m, "%s=%s", roles[i].word, quantizer_text(&other, r->arena));
        message_try(m, "--for ort, or --for generic");
        return message_send(m);
    }
    const Quantizer *b = &r->spec->of[OPERAND_B];
    if (!r->target->float_bias || !b->on)
        return OK;
    Message *m = complaint(
        r, arena_printf(r->arena, "b=%s: biases stay float in %s", quantizer_text(b, r->arena), r->target->title));
    message_try(m, "b=off");
    message_try(m, "--for ort, or --for generic");
    return message_send(m);
}

Status quantizer_read_one(Quantizer *to, QuantOperand operand, Place place, const char *from, const char *text,
                          Arena *arena, Diag *diag)
{
    QuantSpec spec = { .weights_first = 0 };
    Reader r = { &spec, place, NULL, from, { false }, arena, diag };
    TRY(read_quantizer(&r, text, operand));
    *to = spec.of[operand];
    return OK;
}

Status quantizer_read(QuantSpec *to, const char *option, const char *text, const char *target, Arena *arena, Diag *diag)
{
    const QuantTarget *row = quant_target(target);
    if (!row)
        return fail_as(diag, USAGE, (Place){ .where = option, .byte = -1 }, "for %s: nobody is called so", target);
    return quantizer_read_for(to, option, text, row, arena, diag);
}

Status quantizer_read_for(QuantSpec *to, const char *option, const char *text, const QuantTarget *target, Arena *arena,
                          Diag *diag)
{
    Reader r = { to, { .where = option, .byte = -1 }, target, "said", { false }, arena, diag };
    const char *rest = text;
    *to = (QuantSpec){ .weights_first = 0 };
    for (size_t i = 0; i < COUNT(to->of); i++)
        to->of[i].from = quantizer_unsaid;
    const char *first = part_of(arena, &rest, ',');
    if (!*first)
        return refuse(&r, "nothing is said", "w8a8");
    if (strchr(first, '='))
        rest = text;
    else
        TRY(read_preset(&r, first));
    TRY(read_items(&r, rest));
    fill_backward(&r);
    TRY(fill_bias(&r));
    return check_target(&r);
}
