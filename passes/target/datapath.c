#include "passes/target/datapath.h"

#include <stddef.h>
#include <string.h>

#include "base/number_text.h"
#include "base/str.h"
#include "passes/quantizers.def"

/* What a field takes. */
typedef enum FieldKind {
    FIELD_TEXT,
    FIELD_LIKE,   /* the name of a row */
    FIELD_YES,    /* yes, or no */
    FIELD_COUNT,  /* a whole number of a range */
    FIELD_COUNTS, /* several */
    FIELD_OPS,    /* words of operators, * or none */
    FIELD_DATA,   /* signed, unsigned, or either */
    FIELD_SCALES, /* f32, or pow2 */
    FIELD_BIAS,   /* int32, or float */
    FIELD_ROUNDS, /* words of roundings */
    FIELD_GRAIN,  /* of an operator, whose word stands before the sign */
} FieldKind;

typedef struct Field {
    const char *name;
    FieldKind kind;
    size_t at; /* in QuantTarget */
    int least, most;
    const char *takes;
} Field;

#define AT(field) offsetof(QuantTarget, field)

/* clang-format off */
static const Field fields[] = {
    { "title",          FIELD_TEXT,   AT(title),          0, 0,  "who that is, in messages" },
    { "like",           FIELD_LIKE,   0,                  0, 0,  "the target of --for that it is like where nothing is said (portable)" },
    { "data",           FIELD_DATA,   0,                  0, 0,  "codes of data that presets stand for: signed, unsigned, either" },
    { "zero_is_0",      FIELD_YES,    AT(zero_is_0),      0, 0,  "yes: codes of 0 are 0" },
    { "bias",           FIELD_BIAS,   0,                  0, 0,  "int32, or float" },
    { "scales",         FIELD_SCALES, 0,                  0, 0,  "f32, or pow2: shifts alone" },
    { "weight_bits",    FIELD_COUNTS, AT(weight_bits),    1, 16, "bits that weights beside codes may have" },
    { "data_bits",      FIELD_COUNTS, AT(data_bits),      1, 16, "bits that data may have" },
    { "data_rounding",  FIELD_ROUNDS, AT(data_rounding),  0, 0,  "how data may be rounded, the usual first; files that are like another target round as those do" },
    { "weight_rounding", FIELD_ROUNDS, AT(weight_rounding), 0, 0, "how weights may be" },
    { "grain",          FIELD_GRAIN,  AT(grains),         0, 0,  "grain OPERATOR = tensor channel group block tile: what may share a scale of its weights (*: all others)" },
    { "accumulator",    FIELD_COUNT,  AT(accumulator),    8, 32, "bits of a sum of products" },
    { "joins",          FIELD_OPS,    AT(joins),          0, 0,  "what adds, multiplies, pools, lays side by side in codes" },
    { "tables",         FIELD_OPS,    AT(tables),         0, 0,  "functions of one number that are tables of codes" },
    { "numbers",        FIELD_OPS,    AT(numbers),        0, 0,  "products of codes that may give floats" },
    { "least_channels", FIELD_COUNT,  AT(least_channels), 0, 65536, "convolutions of fewer stay float" },
};
/* clang-format on */

static const char grain_words[] = "tensor channel group block tile";

/* Roundings of quantizers, but those by chance, which are no machine's. */
static const struct {
    const char *field, *word;
} words_of_fields[] = {
#define WORD(field, word, ...) { #field, word },
    QUANT_WORDS(WORD)
#undef WORD
};

typedef struct Reader {
    QuantTarget *to;
    const char *file, *line;
    int number;
    bool (*is_operator)(const void *ops, const char *word);
    const void *ops;
    bool said[COUNT(fields)];
    Arena *arena;
    Diag *diag;
} Reader;

static Status wrong(const Reader *r, const char *text, const char *instead)
{
    const Place place = { .file = r->file, .line = r->number, .byte = -1 };
    Message *m = message_new(r->diag, SEVERITY_ERROR, USAGE, place, "%s", text);
    if (instead)
        message_try(m, "%s", instead);
    return message_send(m);
}

/* ---- values ---- */

/* Words of a list that is known, or (null) of operators; null after a report. */
static const char *words_of(const Reader *r, const char *value, Status *status, const char *known)
{
    Text all;
    text_open(&all, r->arena);
    for (const char *at = value; *at;) {
        const size_t n = strcspn(at, " ");
        const char *word = arena_copy(r->arena, at, n);
        const bool good = known ? str_listed(known, word) : r->is_operator(r->ops, word);
        if (n && !good) {
            *status = wrong(r, arena_printf(r->arena, "%s is no %s", word, known ? "grain" : "operator"),
                            known ? known : "qcc --list-ops, the words of its second column; * for all, none for none");
            return NULL;
        }
        if (n)
            text_printf(&all, "%s%s", all.n ? " " : "", word);
        at += n;
        at += strspn(at, " ");
    }
    return text_get(&all);
}

static Status read_ops(const Reader *r, const Field *f, const char *value)
{
    Status status = OK;
    const char **to = (const char **)(void *)((char *)r->to + f->at);
    if (strcmp(value, "none") == 0)
        *to = NULL;
    else if (strcmp(value, "*") == 0)
        *to = "*";
    else
        *to = words_of(r, value, &status, NULL);
    return status;
}

static Status read_one(const Reader *r, const Field *f, const char *text, size_t n, int64_t *value)
{
    if (i64_from_text(text, n, value) && *value >= f->least && *value <= f->most)
        return OK;
    return wrong(r,
                 arena_printf(r->arena, "%s = %.*s: wanted are whole numbers from %d to %d", f->name, (int)n, text,
                              f->least, f->most),
                 NULL);
}

static Status read_counts(const Reader *r, const Field *f, const char *value)
{
    int64_t one;
    for (const char *at = value; *at;) {
        const size_t n = strcspn(at, " ");
        TRY(read_one(r, f, at, n, &one));
        at += n;
        at += strspn(at, " ");
    }
    *(const char **)(void *)((char *)r->to + f->at) = value;
    return OK;
}

/* One of some words; their number, from 0. */
static Status read_choice(const Reader *r, const Field *f, const char *value, const char *const *words, size_t n,
                          size_t *chosen)
{
    Text all;
    text_open(&all, r->arena);
    for (*chosen = 0; *chosen < n; ++*chosen) {
        if (strcmp(value, words[*chosen]) == 0)
            return OK;
        text_printf(&all, "%s%s = %s", *chosen ? "; " : "", f->name, words[*chosen]);
    }
    return wrong(r, arena_printf(r->arena, "%s = %s is not understood", f->name, value), text_get(&all));
}

static bool is_rounding(const char *word)
{
    for (size_t i = 0; i < COUNT(words_of_fields); i++)
        if (strcmp(words_of_fields[i].field, "ROUNDING") == 0 && strcmp(words_of_fields[i].word, word) == 0)
            return strcmp(word, "sr") != 0 && strcmp(word, "ms-eden") != 0;
    return false;
}

/* Those that the file has, which is that of the row it is like. */
static Status read_rounds(const Reader *r, const Field *f, const char *value)
{
    const char **to = (const char **)(void *)((char *)r->to + f->at);
    const bool data = f->at == AT(data_rounding);
    const char *file = *to ? *to : data ? "rne" : NULL;
    for (const char *at = value; *at;) {
        const size_t n = strcspn(at, " ");
        const char *word = arena_copy(r->arena, at, n);
        if (!is_rounding(word))
            return wrong(r, arena_printf(r->arena, "%s is no rounding", word),
                         "rne half-up half-down ceil floor zero away");
        if (file && !str_listed(file, word))
            return wrong(
                r, arena_printf(r->arena, "%s = %s: files like %s have %s alone", f->name, word, r->to->like, file),
                strcmp(r->to->like, "qonnx") == 0 ? arena_printf(r->arena, "%s = floor", f->name)
                                                  : "like = qonnx, whose quantizers say how they round");
        at += n;
        at += strspn(at, " ");
    }
    *to = value;
    return OK;
}

static Status read_grain(const Reader *r, const Field *f, const char *op, const char *value)
{
    Status status = OK;
    const char **to = (const char **)(void *)((char *)r->to + f->at);
    const char *words = words_of(r, value, &status, grain_words);
    TRY(status);
    if (strcmp(op, "*") != 0 && !r->is_operator(r->ops, op))
        return wrong(r, arena_printf(r->arena, "%s is no operator", op),
                     "grain conv = tensor channel; grain * = tensor");
    if (*to && str_listed(*to, arena_printf(r->arena, "%s:", op)))
        return wrong(r, arena_printf(r->arena, "the grains of %s are said twice", op), NULL);
    Text all;
    text_open(&all, r->arena);
    text_printf(&all, "%s%s%s:", *to ? *to : "", *to ? " " : "", op);
    for (const char *at = words; *at;) {
        const size_t n = strcspn(at, " ");
        text_printf(&all, " %s:%.*s", op, (int)n, at);
        at += n;
        at += strspn(at, " ");
    }
    *to = text_get(&all);
    return OK;
}

/* ---- fields ---- */

static Status read_like(Reader *r, const char *value)
{
    const QuantTarget *all;
    Text names;
    text_open(&names, r->arena);
    for (size_t i = 0, n = quant_targets(&all); i < n; i++) {
        if (strcmp(all[i].name, value) == 0) {
            *r->to = all[i];
            r->to->like = all[i].name;
            return OK;
        }
        text_printf(&names, "%slike = %s", i ? "; " : "", all[i].name);
    }
    return wrong(r, arena_printf(r->arena, "like = %s: there is no such target", value), text_get(&names));
}

static Status read_field(Reader *r, const Field *f, const char *of, const char *value)
{
    static const char *const data[] = { "unsigned", "signed", "either" }, *const yes[] = { "no", "yes" },
                             *const scales[] = { "f32", "pow2" }, *const bias[] = { "int32", "float" };
    size_t chosen;
    int64_t count;
    switch (f->kind) {
    case FIELD_TEXT:
        r->to->title = value;
        return OK;
    case FIELD_LIKE: /* it was read first */
        return OK;
    case FIELD_YES:
        TRY(read_choice(r, f, value, yes, COUNT(yes), &chosen));
        *((bool *)r->to + f->at) = chosen;
        return OK;
    case FIELD_COUNT:
        TRY(read_one(r, f, value, strlen(value), &count));
        *(int *)(void *)((char *)r->to + f->at) = (int)count;
        return OK;
    case FIELD_COUNTS:
        return read_counts(r, f, value);
    case FIELD_OPS:
        return read_ops(r, f, value);
    case FIELD_DATA:
        TRY(read_choice(r, f, value, data, COUNT(data), &chosen));
        r->to->signed_data = chosen == 1;
        r->to->either_data = chosen == 2;
        return OK;
    case FIELD_SCALES:
        TRY(read_choice(r, f, value, scales, COUNT(scales), &chosen));
        r->to->pow2_scales = chosen;
        return OK;
    case FIELD_BIAS:
        TRY(read_choice(r, f, value, bias, COUNT(bias), &chosen));
        r->to->float_bias = chosen;
        return OK;
    case FIELD_ROUNDS:
        return read_rounds(r, f, value);
    case FIELD_GRAIN:
        return read_grain(r, f, of, value);
    }
    return OK;
}

static const Field *find_field(const char *name)
{
    for (size_t i = 0; i < COUNT(fields); i++)
        if (strcmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

/* ---- lines ---- */

static const char *trimmed(Arena *arena, const char *p, size_t n)
{
    while (n && strchr(" \t\r", *p))
        p++, n--;
    while (n && strchr(" \t\r", p[n - 1]))
        n--;
    return arena_copy(arena, p, n);
}

static Status no_field(const Reader *r, const char *name)
{
    const char *names[COUNT(fields)];
    for (size_t i = 0; i < COUNT(fields); i++)
        names[i] = fields[i].name;
    const char *near = str_nearest(name, names, COUNT(fields));
    const Field *f = near ? find_field(near) : NULL;
    return wrong(r, arena_printf(r->arena, "%s is no field", name),
                 f ? arena_printf(r->arena, "%s: %s", f->name, f->takes) : "fields are in docs/quantization.md");
}

/* A line; of them all, those of `like` are read first. */
static Status read_line(Reader *r, bool like)
{
    const size_t n = strcspn(r->line, "\n#");
    const char *text = trimmed(r->arena, r->line, n), *sign = strchr(text, '=');
    if (!*text)
        return OK;
    if (!sign)
        return like ? OK : wrong(r, "wanted is FIELD = VALUE", "accumulator = 24");
    const char *left = trimmed(r->arena, text, (size_t)(sign - text)),
               *value = trimmed(r->arena, sign + 1, strlen(sign + 1)), *space = strchr(left, ' ');
    const char *name = space ? arena_copy(r->arena, left, (size_t)(space - left)) : left;
    const Field *f = find_field(name);
    if (like)
        return f && f->kind == FIELD_LIKE ? read_like(r, value) : OK;
    if (!f || (space != NULL) != (f->kind == FIELD_GRAIN))
        return f && f->kind == FIELD_GRAIN
                   ? wrong(r, "grains of which operator?", "grain conv = tensor; grain * = channel")
                   : no_field(r, left);
    if (!*value)
        return wrong(r, arena_printf(r->arena, "%s has no value", left), f->takes);
    if (f->kind != FIELD_GRAIN && r->said[f - fields])
        return wrong(r, arena_printf(r->arena, "%s is said twice", name), NULL);
    r->said[f - fields] = true;
    return read_field(r, f, space ? trimmed(r->arena, space, strlen(space)) : NULL, value);
}

static Status read_lines(Reader *r, const char *text, bool like)
{
    r->number = 1;
    for (r->line = text; *r->line; r->number++) {
        TRY(read_line(r, like));
        r->line += strcspn(r->line, "\n");
        r->line += *r->line == '\n';
    }
    return OK;
}

Status datapath_read(const QuantTarget **to, const char *file, const char *text,
                     bool (*is_operator)(const void *ops, const char *word), const void *ops, Arena *arena, Diag *d)
{
    QuantTarget *own = NEW(arena, QuantTarget);
    Reader r = { .to = own, .file = file, .is_operator = is_operator, .ops = ops, .arena = arena, .diag = d };
    *own = *quant_target("portable");
    own->title = NULL;
    own->like = own->name;
    TRY(read_lines(&r, text, true));
    own->name = file;
    own->title = file;
    own->text = text;
    TRY(read_lines(&r, text, false));
    own->predicts = PREDICTS_NOTHING;
    own->alone = arena_printf(arena, own->no_floats ? "%s has no such function of codes" : "%s computes it of floats",
                              own->title);
    own->lacks = arena_printf(arena, "%s has no product of codes for it", own->title);
    *to = own;
    return OK;
}

const char *target_grains(const QuantTarget *t, const char *op, Arena *arena)
{
    Text all;
    text_open(&all, arena);
    if (!t->grains)
        return NULL;
    const char *of = str_listed(t->grains, arena_printf(arena, "%s:", op)) ? op
                     : str_listed(t->grains, "*:")                         ? "*"
                                                                           : NULL;
    for (const char *at = grain_words; of && *at;) {
        const size_t n = strcspn(at, " ");
        if (str_listed(t->grains, arena_printf(arena, "%s:%.*s", of, (int)n, at)))
            text_printf(&all, "%s%.*s", all.n ? " " : "", (int)n, at);
        at += n;
        at += strspn(at, " ");
    }
    return of ? text_get(&all) : NULL;
}
