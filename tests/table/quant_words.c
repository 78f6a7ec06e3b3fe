/* Words of quantizers in any combination, for weights and for data of a tiny model: it is placed, opened into rows and runs, or
 * it is refused with a reason and something to write instead.  What is written instead is accepted: at once where the
 * model is asked, after a word or a few where words alone do not go together. */
#include <math.h>

#include "ops/card/eval.h"
#include "base/rng.h"
#include "passes/engine/pass.h"
#include "support/quant_words.h"
#include "testing.h"

#include "ir/text/parse.h"

static const char model[] = "graph @f(%x: f32[4,8], state %w: f32[8,4] trained) -> (%y) {\n"
                            "    %y: f32[4,4] = matmul(%x, %w)\n"
                            "}\n";

enum { SAMPLES = 6000, MOST_HOPS = 6, MOST_WORDS = 12 };

static const char *const formats[] = { "int1",  "int2",  "int4",   "int8",       "int16",  "uint1",
                                       "uint4", "uint8", "uint16", "int4|uint4", "e4m3",   "e5m2",
                                       "e2m3",  "e3m2",  "e2m1",   "ternary",    "binary", "int32" };

/* A quantizer as words, one for each field at most. */
typedef struct Spoken {
    const char *format;
    const char *word[QUANT_FIELD_COUNT];
} Spoken;

static const char *spoken_text(Context *c, const Spoken *s, char operand)
{
    Text t;
    text_open(&t, &c->arena);
    text_printf(&t, "%c=%s", operand, s->format);
    for (size_t i = 0; i < COUNT(s->word); i++)
        if (s->word[i])
            text_printf(&t, ":%s", s->word[i]);
    text_add(&t, operand == 'w' ? ",a=int8" : ",w=int8");
    return text_get(&t);
}

static Spoken random_words(Context *c, Rng *rng)
{
    Spoken s = { .format = formats[rng_below(rng, COUNT(formats))] };
    for (int i = (int)rng_range(rng, 0, 4); i > 0; i--) {
        char said[QUANT_WORD_ROOM];
        const QuantWord *w = &quant_words[rng_below(rng, COUNT(quant_words))];
        quant_word_say(said, w, 4);
        s.word[w->field] = arena_string(&c->arena, said);
    }
    return s;
}

/* Whether a text is that word, or that word with an argument. */
static bool is_word(const char *word, const char *text)
{
    const size_t n = strcspn(text, "=");
    return strcmp(word, text) == 0 || (strlen(word) == n && strncmp(word, text, n) == 0);
}

/* Says a word, or several, instead of what stood in their places. */
static bool say_instead(Context *c, Spoken *s, char operand, const char *text)
{
    const char *rest = text[1] == '=' ? text + 2 : text;
    if (text[1] == '=' && text[0] != operand)
        return false; /* of the other operand: nothing like it is for this one */
    if (text[1] == '=')
        *s = (Spoken){ .format = s->format };
    for (bool first = text[1] == '='; *rest; first = false) {
        const size_t n = strcspn(rest, ":");
        const char *word = arena_copy(&c->arena, rest, n);
        size_t i = 0;
        while (i < COUNT(quant_words) && (first || !is_word(quant_words[i].word, word)))
            i++;
        if (i < COUNT(quant_words))
            s->word[quant_words[i].field] = word;
        else
            s->format = word;
        rest += n + (rest[n] == ':');
    }
    return true;
}

/* The first thing that a message says to try. */
static const char *tried(Context *c)
{
    static const char begins[] = "\n  try: ";
    const char *at = c->last ? strstr(c->last, begins) : NULL;
    return at ? arena_copy(&c->arena, at + sizeof begins - 1, strcspn(at + sizeof begins - 1, "\n")) : NULL;
}

/* Places it and computes once; UNSUPPORTED where it is refused. */
static Status place_and_run(Context *c, const QuantSpec *spec)
{
    Module *m;
    Arena *arena = &c->arena;
    assert_int_equal(parse_module(&c->ir, arena, str(model), "t.qir", NULL, NULL, &m), OK);
    const Recipe recipe = { .quantization = { .spec = spec, .target = "generic" } };
    const PassOptions options = { .recipe = &recipe };
    Graph *g = m->graphs[0];
    TRY(pass_run(pass_find("place-quant"), g, &(PassRun){ .options = &options, .allowed = -1 }));
    TRY(pass_run(pass_find("train-integers"), g, &(PassRun){ .options = &options, .allowed = -1 }));
    const Tensor **inputs = NEWS(arena, const Tensor *, g->n_inputs + 1);
    Tensor **results = NEWS(arena, Tensor *, g->ret->n_in + 1);
    for (size_t i = 0; i < g->n_inputs; i++) {
        Tensor *t = tensor_new(arena, g->inputs[i]->type);
        const bool ours = g->inputs[i]->name && strncmp(g->inputs[i]->name, "qcc.", 4) == 0;
        for (int64_t k = 0; k < tensor_elements(t); k++)
            tensor_set_f64(t, k, ours ? (double)(k + 1) / 4 : (double)(k % 7 - 3) / 8);
        inputs[i] = t;
    }
    TRY(evaluate(g, NULL, &c->heap, inputs, results));
    const Tensor *y = results[0];
    for (int64_t k = 0; k < tensor_elements(y); k++)
        assert_true(isfinite(tensor_get_f64(y, k)));
    return OK;
}

typedef struct Count {
    int run, refused, unread, bad;
} Count;

static void complain(Count *n, const char *first, const char *said, Context *c, const char *what)
{
    print_error("%s, %s: %s\n%s\n", first, said, what, c->last ? c->last : "");
    n->bad++;
}

/* Follows what messages say until something runs. */
static void follow(Context *c, Spoken s, char operand, Count *n)
{
    const char *first = spoken_text(c, &s, operand);
    bool placed_before = false;
    for (int hop = 0;; hop++) {
        QuantSpec spec;
        const char *text = spoken_text(c, &s, operand);
        c->last = NULL;
        const Status read = quantizer_read(&spec, "--quant", text, "generic", &c->arena, &c->diag);
        const Status status = read == OK ? place_and_run(c, &spec) : read;
        if (status == OK) {
            n->run += hop == 0;
            return;
        }
        n->unread += hop == 0 && read != OK;
        n->refused += hop == 0 && read == OK;
        const char *instead = tried(c);
        const char *wrong = !instead           ? "nothing to write instead"
                            : placed_before    ? "what was to be written instead is refused"
                            : hop == MOST_HOPS ? "no end of what is to be written instead"
                                               : NULL;
        if (wrong) {
            complain(n, first, text, c, wrong);
            return;
        }
        placed_before = read == OK;
        if (strncmp(instead, "--quant-op", 10) == 0) /* of the grain: for one call */
            instead = strchr(strchr(instead, '=') + 1, '=') ? strchr(instead, '=') + 1 : instead;
        if (!say_instead(c, &s, operand, arena_copy(&c->arena, instead, strcspn(instead, "',"))) ||
            strchr(instead, ',')) /* the other operand, too: it is none of these */
            return;
    }
}

static Status every_word(void *arg)
{
    Context *c = arg;
    Rng rng = { 17 };
    Count n = { 0 };
    for (int i = 0; i < SAMPLES && n.bad < 5; i++)
        follow(c, random_words(c, &rng), i % 2 ? 'w' : 'a', &n);
    print_message("%d run, %d refused of the model, %d of the words\n", n.run, n.refused, n.unread);
    assert_int_equal(n.bad, 0);
    assert_true(n.run > 400 && n.refused > 400 && n.unread > 100);
    return OK;
}

static void words_run_or_say_what_to_write(void **state)
{
    (void)state;
    with_context(every_word);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_run_or_say_what_to_write),
    };
    return cmocka_run_group_tests_name("quant_words", tests, NULL, NULL);
}
