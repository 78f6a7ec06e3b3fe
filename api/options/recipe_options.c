#include "api/options/recipe_options.h"

#include <stddef.h>
#include <string.h>

#include "passes/recipe/loss_read.h"
#include "passes/recipe/optimizer_read.h"
#include "passes/recipe/quantizer.h"
#include "passes/recipe/scale_read.h"

/* clang-format off */
#define NONE                { FILL_NONE, 0, 0, NULL }
#define TEXTS(field, count) { FILL_TEXTS, offsetof(Recipe, field), offsetof(Recipe, count), NULL }
#define WORD(field, word)   { FILL_WORD, offsetof(Recipe, field), 0, word }
#define NUMBER(field)       { FILL_NUMBER, offsetof(Recipe, field), 0, NULL }
#define INTEGER(field)      { FILL_INTEGER, offsetof(Recipe, field), 0, NULL }
#define GIVEN(field)        { FILL_GIVEN, offsetof(Recipe, field), 0, NULL }
#define READ(field)         { FILL_READ, offsetof(Recipe, field), 0, NULL }

const RecipeField recipe_fields[OPT_COUNT] = {
#define OPT(id, name, form, kind, verbs, topic, day, needs, step, field, help) field,
#include "api/options/options.def"
#undef OPT
};
/* clang-format on */

#undef NONE
#undef TEXTS
#undef WORD
#undef NUMBER
#undef INTEGER
#undef GIVEN
#undef READ

/* ---- fields that are filled as they stand ---- */

/* All values of an option that may be repeated. */
static const char *const *texts_of(Arena *arena, const CommandLine *line, Option o, size_t *n)
{
    const char *text, **all = NEWS(arena, const char *, option_given(line, o) + 1);
    *n = 0;
    for (size_t at = 0; (text = option_next(line, o, &at));)
        all[(*n)++] = arena_string(arena, text);
    return all;
}

static bool says(const CommandLine *line, Option o, const char *word)
{
    const char *text = option_text(line, o);
    return text && strcmp(text, word) == 0;
}

static void fill(Recipe *r, const CommandLine *line, Option o, Arena *arena)
{
    const RecipeField *f = &recipe_fields[o];
    char *base = (char *)r, *at = base + f->at;
    switch (f->kind) {
    case FILL_TEXTS: {
        const char *const *texts = texts_of(arena, line, o, (size_t *)(void *)(base + f->n_at));
        memcpy(at, &texts, sizeof texts);
        return;
    }
    case FILL_WORD:
        *(bool *)at = says(line, o, f->word);
        return;
    case FILL_NUMBER:
        *(double *)(void *)at = option_real(line, o, 0);
        return;
    case FILL_INTEGER:
        *(int64_t *)(void *)at = option_count(line, o, 0);
        return;
    case FILL_GIVEN:
        *(bool *)at = option_given(line, o) > 0;
        return;
    case FILL_NONE:
    case FILL_READ:
        return;
    }
}

/* ---- lists ---- */

static Status read_ties(Recipe *r, const CommandLine *line, Arena *arena, Diag *d)
{
    size_t n;
    const char *const *texts = texts_of(arena, line, OPT_tie, &n);
    const char **pairs = NEWS(arena, const char *, n + 1);
    r->n_ties = 0;
    for (size_t i = 0; i < n; i++) {
        const char *sign = strchr(texts[i], '=');
        if (sign && sign != texts[i] && sign[1])
            pairs[r->n_ties++] = texts[i];
        else if (strcmp(texts[i], "auto") != 0 && strcmp(texts[i], "off") != 0)
            return fail_as(d, USAGE, ON_COMMAND_LINE, "--tie %s: wants auto, off or NAME=NAME", texts[i]);
    }
    r->ties = pairs;
    r->untied = n && strcmp(texts[n - 1], "off") == 0;
    return OK;
}

static void read_norms(Recipe *r, const CommandLine *line)
{
    r->frozen_norms = says(line, OPT_bn, "frozen");
    r->torch_norms = says(line, OPT_bn, "pytorch");
    r->kept_norms = r->frozen_norms || r->torch_norms || says(line, OPT_bn, "train");
}

/* Counting takes time, so it is done where somebody is told: what counts changes nothing that trains. */
static void read_telemetry(Recipe *r, const CommandLine *line)
{
    const bool told = line->verb == VERB_train && (option_given(line, OPT_verbose) || option_given(line, OPT_log) ||
                                                   option_given(line, OPT_tensorboard));
    r->asks_counted = says(line, OPT_telemetry, "on");
    r->counted = option_given(line, OPT_telemetry) ? r->asks_counted : told;
}

static Status read_precision(Precision *p, const CommandLine *line, Arena *arena, Diag *d)
{
    const char *amp = option_text(line, OPT_amp), *scale = option_text(line, OPT_loss_scale);
    p->on = amp && strcmp(amp, "off") != 0;
    p->narrow = amp && strcmp(amp, "fp16") == 0 ? F16 : BF16;
    return scale ? loss_scale_read(&p->scale, scale, arena, d) : OK;
}

const char *options_target(const CommandLine *line)
{
    const char *said = option_text(line, OPT_for_);
    return said && strcmp(said, "float") != 0 ? said : "ort";
}

/* What is deployed quantized is trained through its quantizers: its products are not those of a model of floats. */
static Status products_beside(Diag *d, const char *text)
{
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--quant-op %s: products of few bits beside quantizers of a model that is deployed", text);
    message_try(m, "--quant int8-matmul, and --quant-op for what stays float");
    return message_send(m);
}

/* --quant-op SELECTOR=SPEC; a '=' of the selector is written [=], and SPEC may be off. */
static Status read_override(QuantOverride *to, const char *text, const Quantization *q, Arena *arena, Diag *d)
{
    const char *sign = text;
    while ((sign = strchr(sign, '=')) && sign > text && sign[-1] == '[' && sign[1] == ']')
        sign++;
    if (!sign || sign == text || !sign[1])
        return fail_as(d, USAGE, ON_COMMAND_LINE, "--quant-op %s: wants SELECTOR=SPEC", text);
    QuantSpec *spec = NEW(arena, QuantSpec);
    static const char off[] = "w=off,a=off,b=off,g=off,w.dgrad=off,x.wgrad=off,g.wgrad=off";
    const char *said = strcmp(sign + 1, "off") == 0 ? off : sign + 1;
    *to = (QuantOverride){ .selector = arena_copy(arena, text, (size_t)(sign - text)),
                           .spec = spec,
                           .from = "--quant-op" };
    TRY(quantizer_read_for(spec, "--quant-op", said, quantization_target(q), arena, d));
    if (spec->weights_first)
        return fail_as(d, USAGE, ON_COMMAND_LINE,
                       "--quant-op %s: phases are those of the whole step: say it in --quant", text);
    if (!q->products && quantizer_is_of_products(spec))
        return products_beside(d, text);
    return OK;
}

static Status read_quantization(Quantization *q, const CommandLine *line, Arena *arena, Diag *d)
{
    const char *text = option_text(line, OPT_quant);
    size_t n;
    const char *const *ops = texts_of(arena, line, OPT_quant_op, &n);
    QuantOverride *overrides = NEWS(arena, QuantOverride, n + 1);
    if (!text || strcmp(text, "off") == 0)
        return OK;
    QuantSpec *spec = NEW(arena, QuantSpec);
    /* a step outlives the line */
    q->target = q->own_target ? q->own_target->name : arena_string(arena, options_target(line));
    TRY(quantizer_read_for(spec, "--quant", text, quantization_target(q), arena, d));
    if (quantizer_is_of_products(spec))
        q->products = spec;
    else
        q->spec = spec;
    q->freezes = option_given(line, OPT_freeze_ranges) > 0;
    q->freeze_at = option_count(line, OPT_freeze_ranges, 0);
    for (size_t i = 0; i < n; i++)
        TRY(read_override(&overrides[i], ops[i], q, arena, d));
    q->overrides = overrides;
    q->n_overrides = n;
    return OK;
}

static Status read_optimizer(Recipe *r, const CommandLine *line, const OpTable *ops, Arena *arena, Diag *d)
{
    OptimizerWords words = { .optimizer = option_text(line, OPT_optimizer),
                             .lr = option_text(line, OPT_lr),
                             .schedule = option_text(line, OPT_schedule) };
    words.groups = texts_of(arena, line, OPT_group, &words.n_groups);
    return recipe_read_optimizer(r, &words, ops, arena, d);
}

static Status read_teacher(Teacher *t, const CommandLine *line, Arena *arena, Diag *d)
{
    const char *text = option_text(line, OPT_teacher);
    *t = (Teacher){ .file = NULL };
    return text ? teacher_read(t, text, arena, d) : OK;
}

static Status check_norms(const Recipe *r, const CommandLine *line, Diag *d)
{
    if (r->quantization.spec || !says(line, OPT_bn, "fold"))
        return OK;
    Message *m = message_new(d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "--bn fold: norms are folded where a model is quantized");
    message_try(m, "--quant w8a8, or without --bn fold");
    return message_send(m);
}

/* ---- all of it ---- */

Status recipe_read_options(Recipe *r, const CommandLine *line, const OpTable *ops, Arena *arena, Diag *d)
{
    for (int o = 0; o < OPT_COUNT; o++)
        fill(r, line, (Option)o, arena);
    read_norms(r, line);
    read_telemetry(r, line);
    TRY(read_ties(r, line, arena, d));
    TRY(read_precision(&r->precision, line, arena, d));
    TRY(read_quantization(&r->quantization, line, arena, d));
    TRY(read_teacher(&r->teacher, line, arena, d));
    TRY(check_norms(r, line, d));
    return read_optimizer(r, line, ops, arena, d);
}

Status recipe_read_loss_options(Recipe *r, const CommandLine *line, Arena *arena, Diag *d)
{
    size_t n;
    const char *const *texts = texts_of(arena, line, OPT_loss, &n);
    LossSpec *losses = NEWS(arena, LossSpec, n + 1);
    for (size_t i = 0; i < n; i++)
        TRY(loss_read(&losses[i], texts[i], arena, d));
    r->losses = losses;
    r->n_losses = n;
    return OK;
}
