/* label: slow */
/* Every pair of words of a quantizer, and every word with every format, as the grammar has them (passes/quantizers.def), of
 * weights and of data: it is placed as it was said and gives numbers, or it is refused with a reason and with what to write
 * instead, which is placed.  Nothing is taken for another. */
#include <math.h>

#include "ir/role.h"
#include "ir/text/parse.h"
#include "ops/quant/quantize.h"
#include "passes/learned/learned.h"
#include "passes/quant/placement.h"
#include "support/few_floats.h"
#include "support/calls.h"

static const char model[] = "graph @f(%x: f32[3,32], state %w: f32[32,6] trained) -> (%y) {\n"
                            "    %y: f32[3,6] = matmul(%x, %w)\n}\n";

typedef enum Argument { NONE, MAYBE, REAL, WHOLE, PAIR } Argument;

typedef struct Word {
    QuantField field;
    QuantValue value;
    const char *word;
    Argument argument;
    double from;
} Word;

static const Word words[] = {
#define WORD(field, word, value, argument, from, ...) { QUANT_##field, value, word, argument, from },
    QUANT_WORDS(WORD)
#undef WORD
};

typedef struct Format {
    const char *word;
    int bits;
} Format;

static const Format formats[] = {
#define FORMAT(id, word, bits, ...) { word, bits },
    QUANT_FORMATS(FORMAT)
#undef FORMAT
};

typedef struct Walk {
    Context *c;
    int runs, refused, tried;
} Walk;

static const char *text_of(Context *c, const Word *w)
{
    switch (w->argument) {
    case REAL:
        return arena_printf(&c->arena, "%s=%s", w->word, w->value == SOURCE_PCT ? "99.9" : "0.25");
    case WHOLE:
        return arena_printf(&c->arena, "%s=16", w->word);
    case PAIR:
        return arena_printf(&c->arena, "%s=2x16", w->word);
    default:
        return w->word;
    }
}

/* A format with its bits, where the word leaves them open. */
static const char *format_of(Context *c, const Format *f, int bits)
{
    const char *bar = strchr(f->word, '|');
    if (f->bits)
        return f->word;
    return bar ? arena_printf(&c->arena, "%.*s%d|%s%d", (int)(bar - f->word), f->word, bits, bar + 1, bits)
               : arena_printf(&c->arena, "%s%d", f->word, bits);
}

static void expect_refusal(Walk *k, const char *spec)
{
    require(k->c->last && strstr(k->c->last, "\n  try: "), "%s: \"%s\" says nothing that could be written instead\n",
            spec, k->c->last ? k->c->last : "");
    k->refused++;
}

static Node *codes_of(Graph *g, const char *name)
{
    for (Node *n = g->first; n; n = n->next)
        if (op_of(n)->quant.quantizes) {
            const Node *from = learned_from(in(n, 0));
            if (from->name && strcmp(from->name, name) == 0)
                return n;
        }
    return NULL;
}

/* ---- as it was said ---- */

static int rounding_of(const Quantizer *q)
{
    switch (q->part[QUANT_ROUNDING].value) {
    case ROUNDING_HALF_UP:
        return ROUND_HALF_UP;
    case ROUNDING_HALF_DOWN:
        return ROUND_HALF_DOWN;
    case ROUNDING_CEIL:
        return ROUND_CEIL;
    case ROUNDING_FLOOR:
        return ROUND_FLOOR;
    case ROUNDING_ZERO:
        return ROUND_ZERO;
    case ROUNDING_AWAY:
        return ROUND_AWAY;
    case ROUNDING_RNE:
        return ROUND_RNE;
    default:
        return -1;
    }
}

static void expect_scales(const char *spec, const Quantizer *q, const Tensor *scale)
{
    int e;
    for (int64_t i = 0; i < tensor_elements(scale); i++) {
        require(isfinite(at(scale, i)) && at(scale, i) > 0, "%s has a scale of %g\n", spec, at(scale, i));
        if (quantizer_says(q, QUANT_SCALE, SCALE_POW2))
            require(frexp(at(scale, i), &e) == 0.5, "%s has a scale of %g\n", spec, at(scale, i));
        if (quantizer_says(q, QUANT_SOURCE, SOURCE_CONST))
            require(at(scale, i) == 0.25, "%s has a scale of %g\n", spec, at(scale, i));
    }
}

static void expect_said(const char *spec, const Quantizer *q, const Node *codes)
{
    const QuantizeAttr *at = codes->attr;
    const QuantValue mask = q->part[QUANT_MASK].value;
    double lo, hi;
    int64_t least, largest;
    Quantizer as = *q;
    if (as.format == FORMAT_EITHER)
        as.format = FORMAT_INT;
    require(dtype_is_float(codes->type->dtype) == quantizer_is_float(q), "%s has codes of %s\n", spec,
            dtype_name(codes->type->dtype));
    quantizer_codes(&as, &least, &largest);
    code_limits(codes->type->dtype, at->least, at->largest, &lo, &hi);
    const double most = quantizer_is_float(q) ? few_floats(q->format).most : (double)largest;
    require(lo == (quantizer_is_float(q) ? -most : (double)least) && hi == most, "%s has codes from %g to %g\n", spec,
            lo, hi);
    require(at->rounding == rounding_of(q), "%s rounds by %s\n", spec, quant_roundings[at->rounding]);
    require((int)(mask == MASK_V      ? MASK_BY_VALUE
                  : mask == MASK_PASS ? MASK_NONE
                                      : MASK_BY_CODE) == at->mask,
            "%s has mask %s\n", spec, quant_masks[at->mask]);
    require(at->learned == quantizer_is_learned(q), "%s learns otherwise\n", spec);
}

static Tensor *value_for(Context *c, const Node *input)
{
    Tensor *t = tensor_new(&c->arena, input->type);
    const bool range = input->name && strstr(input->name, "qcc.range");
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i,
                       range                                             ? i == 0 ? -1 : i < 3
                       : input->name && strstr(input->name, "step_size") ? -3
                       : input->name && strstr(input->name, "observed")  ? 0.125
                                                                         : sin(0.7 * (double)i + 0.3));
    return t;
}

static void run(Walk *k, const char *spec, const Quantizer *q, Graph *g, Node *codes)
{
    const Tensor *inputs[16];
    Tensor *out[2];
    Node *result = graph_result(g, 0), *scale = in(codes, 1);
    assert_true(g->n_inputs <= COUNT(inputs));
    for (size_t i = 0; i < g->n_inputs; i++)
        inputs[i] = value_for(k->c, g->inputs[i]);
    graph_return(g, 2, (Node *[]){ result, scale }, NULL);
    assert_int_equal(evaluate(g, NULL, &k->c->heap, inputs, out), OK);
    for (int64_t i = 0; i < tensor_elements(out[0]); i++)
        require(isfinite(at(out[0], i)), "%s: element %d is %g\n", spec, (int)i, at(out[0], i));
    expect_said(spec, q, codes);
    expect_scales(spec, q, out[1]);
    for (int i = 0; i < 2; i++)
        tensor_drop(&k->c->heap, out[i]);
}

/* Places a quantizer in the model; null: it is refused. */
static Graph *placed(Walk *k, const QuantSpec *read)
{
    SourceMap source;
    Module *m;
    assert_int_equal(parse_module(&k->c->ir, &k->c->arena, str(model), "f.qir", NULL, &source, &m), OK);
    Recipe recipe = { .quantization = { .spec = read, .target = "generic" } };
    const PassOptions options = { .recipe = &recipe };
    k->c->last = NULL;
    return pass_run(pass_find("place-quant"), m->graphs[0], &(PassRun){ .options = &options, .allowed = -1 }) == OK
               ? m->graphs[0]
               : NULL;
}

/* What a refusal says to write instead is no fragment but a whole quantizer: it runs. */
static void try_instead(Walk *k, const char *spec, bool data)
{
    QuantSpec read;
    const char *said = strstr(k->c->last, "\n  try: ") + strlen("\n  try: ");
    const char *text = arena_printf(&k->c->arena, "%.*s,%s", (int)strcspn(said, "\n"), said, data ? "w=off" : "a=off");
    if (said[0] != (data ? 'a' : 'w') || said[1] != '=' || !strchr(said, ':'))
        return;
    require(quantizer_read(&read, "--quant", text, "ort", &k->c->arena, &k->c->diag) == OK,
            "%s: \"%s\" is refused: %s\n", spec, text, k->c->last);
    require(placed(k, &read) != NULL, "%s: \"%s\" is refused: %s\n", spec, text, k->c->last);
    k->tried++;
}

static void walk_one(Walk *k, bool data, const char *format, const char *rest)
{
    QuantSpec read;
    const char *spec = arena_printf(&k->c->arena, data ? "a=%s%s,w=off" : "w=%s%s,a=off", format, rest);
    k->c->last = NULL;
    if (quantizer_read(&read, "--quant", spec, "ort", &k->c->arena, &k->c->diag) != OK) {
        expect_refusal(k, spec);
        return;
    }
    Graph *g = placed(k, &read);
    if (!g) {
        expect_refusal(k, spec);
        try_instead(k, spec, data);
        return;
    }
    k->runs++;
    const Quantizer *q = &read.of[data ? OPERAND_A : OPERAND_W];
    if (quantizer_is_stored(q)) {
        require(!data && node_stored(g->inputs[1]), "%s is not stored\n", spec);
        return;
    }
    Node *codes = codes_of(g, data ? "x" : "w");
    require(codes != NULL, "%s: stays as it is\n", spec);
    run(k, spec, q, g, codes);
}

/* ---- pairs ---- */

static Status all_pairs(void *arg)
{
    Walk k = { .c = arg };
    int turn = 0;
    for (size_t i = 0; i < COUNT(words); i++)
        for (size_t j = i; j < COUNT(words); j++) {
            Context *c = k.c;
            const char *one = text_of(c, &words[i]);
            const char *rest = i == j ? arena_printf(&c->arena, ":%s", one)
                                      : arena_printf(&c->arena, ":%s:%s", one, text_of(c, &words[j]));
            if (i != j && words[i].field == words[j].field)
                continue;
            for (size_t f = 0; f < COUNT(formats); f++) {
                if (i != j && f != 0 && f != 1 + (size_t)turn % (COUNT(formats) - 1))
                    continue;
                walk_one(&k, false, format_of(c, &formats[f], turn % 3 ? 8 : 4), rest);
                walk_one(&k, true, format_of(c, &formats[f], turn % 2 ? 8 : 4), rest);
            }
            turn++;
        }
    print_message("%d run, %d refused, %d of them with another that runs\n", k.runs, k.refused, k.tried);
    assert_true(k.runs > 500 && k.refused > 500 && k.tried > 500);
    return OK;
}

static void pairs_are_as_said_or_refused(void **state)
{
    (void)state;
    with_context(all_pairs);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(pairs_are_as_said_or_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
