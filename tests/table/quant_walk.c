/* label: slow */
/* Quantizers through whole steps: each format with each word, and each pair of words with one of the formats, of weights, of
 * data and of gradients in products, for every target.  Two steps are trained with finite losses, and what is written is read again and
 * computes finite numbers; or the spec is refused with a reason and with what to write instead. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/make/step.h"
#include "support/quant_words.h"
#include "unit/check.h"

enum { ROOM = 1024, SIDE = 16, MOST_FILE = 1 << 16 };

/* Sums of 16 in every product, forward and backward, so that whatever turns 16 has them. */
static const char model_text[] = "graph @walk(%x: f32[16,16]) -> (%logits) {\n"
                                 "    param %a.weight: f32[16,16] = kaiming(seed=1)\n"
                                 "    param %a.bias: f32[16] = zeros\n"
                                 "    param %b.weight: f32[16,16] = kaiming(seed=2)\n"
                                 "    %h: f32[16,16] = gemm(%x, %a.weight, %a.bias, transB=true)\n"
                                 "    %r: f32[16,16] = relu(%h)\n"
                                 "    %logits: f32[16,16] = matmul(%r, %b.weight)\n"
                                 "}\n";

static const char *const formats[] = { "int1",  "int2",  "int4",       "int8",   "int16", "uint1",
                                       "uint4", "uint8", "int4|uint4", "e4m3",   "e5m2",  "e2m3",
                                       "e3m2",  "e2m1",  "ternary",    "binary", "bf16" };

/* Operands, words that each has, and what stands beside them, so that the operand alone is what may be refused. */
static const struct Role {
    const char *word, *has, *beside;
} roles[] = {
    { "w", "", "a=off" },
    { "w", ":block=16", "a=e4m3:block=16:e8m0" },
    { "a", "", "w=int8" },
    { "a", ":block=16", "w=e2m1:block=16:e4m3" },
    { "g", "", "w=int8:row:dynamic,a=int8:row:dynamic" },
    { "g.wgrad", ":block=16:hadamard=16", "w=e2m1:block=16:dynamic,a=e2m1:block=16:dynamic,g=e4m3:row" },
};

typedef struct Walk {
    qcc_context *cx;
    qcc_model *model;
    const char *target, *spec;
    char said[ROOM]; /* the first error */
    bool tries;      /* it says what to write instead */
    int run, refused;
} Walk;

#define HOLDS(w, condition, what)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("%s: %s: %s\n", (w)->spec, what, (w)->said);                                                   \
            assert_true(condition);                                                                                    \
        }                                                                                                              \
    } while (0)

static void report(void *user, const qcc_message *m)
{
    Walk *w = user;
    if (m->severity != QCC_ERROR || w->said[0])
        return;
    snprintf(w->said, sizeof w->said, "%s", m->what);
    w->tries = m->n_try > 0;
}

/* ---- a step and its file ---- */

static void bind(Walk *w, qcc_session *s, int step)
{
    static float x[SIDE * SIDE];
    static int64_t target[SIDE];
    qcc_tensor
        t = { .size = sizeof t, .dtype = QCC_F32, .rank = 2, .dims = { SIDE, SIDE }, .data = x, .bytes = sizeof x },
        y = { .size = sizeof y, .dtype = QCC_I64, .rank = 1, .dims = { SIDE }, .data = target, .bytes = sizeof target };
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = (float)((i * 7 + step * 3) % 11) / 8 - 0.5f;
    for (int i = 0; i < SIDE; i++)
        target[i] = (i * 7 + step * 3) % 5;
    HOLDS(w, qcc_bind(s, "x", &t) == QCC_OK, "data");
    HOLDS(w, qcc_bind(s, "target", &y) == QCC_OK, "targets");
}

typedef struct File {
    size_t n;
    unsigned char bytes[MOST_FILE];
} File;

static qcc_status collect(void *user, const void *bytes, size_t n)
{
    File *f = user;
    assert_true(f->n + n <= sizeof f->bytes);
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
    return QCC_OK;
}

/* What was written is a model that computes: its outputs are numbers. */
static void check_file(Walk *w, const File *f)
{
    static float x[SIDE * SIDE];
    qcc_model *read = NULL;
    qcc_source source = qcc_bytes(f->bytes, f->n);
    source.name = "walk.onnx";
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = (float)(i % 11) / 8 - 0.5f;
    HOLDS(w, qcc_read(w->cx, &source, NULL, &read) == QCC_OK, "reading what was written");
    const qcc_tensor in = {
        .size = sizeof in, .dtype = QCC_F32, .rank = 2, .dims = { SIDE, SIDE }, .data = x, .bytes = sizeof x
    };
    qcc_tensor out = { .size = sizeof out };
    HOLDS(w, qcc_run_model(read, &in, 1, &out, 1) == QCC_OK, "running what was written");
    for (int i = 0; i < SIDE * SIDE; i++)
        HOLDS(w, isfinite(((const float *)out.data)[i]), "what was written gives no number");
    qcc_model_free(read);
}

static void train(Walk *w, qcc_step *step)
{
    static File file;
    qcc_session *s = NULL;
    qcc_result r = { .size = sizeof r };
    const qcc_sink sink = { .write = collect, .user = &file };
    HOLDS(w, qcc_start(step, NULL, &s) == QCC_OK, "starting");
    bind(w, s, 0);
    if (module_graph(step->module, "observe"))
        HOLDS(w, qcc_run(s, QCC_OBSERVE, NULL) == QCC_OK, "observing");
    for (int i = 1; i < 3; i++) {
        bind(w, s, i);
        HOLDS(w, qcc_run(s, QCC_STEP, &r) == QCC_OK, "running");
        HOLDS(w, isfinite(r.loss), "its loss is no number");
    }
    file.n = 0;
    const bool written = qcc_export_session(s, NULL, &sink) == QCC_OK;
    HOLDS(w, written || w->tries, "it trains, and is not written");
    qcc_end(s);
    if (written)
        check_file(w, &file);
}

static void walk(Walk *w, const struct Role *role, const char *format, const char *one, const char *other)
{
    char spec[ROOM], options[2 * ROOM];
    qcc_step *step = NULL;
    snprintf(spec, sizeof spec, "%s=%s%s%s%s%s%s,%s", role->word, format, role->has, *one ? ":" : "", one,
             *other ? ":" : "", other, role->beside);
    snprintf(options, sizeof options, "--loss cross_entropy:logits --lr 1e-2 --for %s --quant %s", w->target, spec);
    w->spec = spec;
    w->said[0] = 0;
    w->tries = false;
    if (qcc_compile(w->model, options, &step) == QCC_OK) {
        train(w, step);
        qcc_step_free(step);
        w->run++;
        return;
    }
    HOLDS(w, w->tries, "refused without anything to write instead");
    w->refused++;
}

/* ---- all of them ---- */

/* Whether a role has a word of that field already. */
static bool is_said(const struct Role *role, const QuantWord *word)
{
    return (word->field == QUANT_GRAIN && strstr(role->has, "block")) ||
           (word->field == QUANT_TURN && strstr(role->has, "hadamard"));
}

static void walk_role(Walk *w, const struct Role *role)
{
    char one[QUANT_WORD_ROOM], other[QUANT_WORD_ROOM];
    size_t turn = 0;
    for (size_t f = 0; f < COUNT(formats); f++)
        for (size_t i = 0; i < COUNT(quant_words); i++) {
            quant_word_say(one, &quant_words[i], SIDE);
            if (!is_said(role, &quant_words[i]))
                walk(w, role, formats[f], one, "");
        }
    for (size_t i = 0; i < COUNT(quant_words); i++)
        for (size_t k = i + 1; k < COUNT(quant_words); k++)
            if (quant_words[i].field != quant_words[k].field && !is_said(role, &quant_words[i]) &&
                !is_said(role, &quant_words[k])) {
                quant_word_say(one, &quant_words[i], SIDE);
                quant_word_say(other, &quant_words[k], SIDE);
                walk(w, role, formats[turn++ % COUNT(formats)], one, other);
            }
}

static void walk_for(const struct Role *role, const char *target)
{
    static Walk w;
    w = (Walk){ .target = target };
    qcc_source source = qcc_bytes(model_text, strlen(model_text));
    const qcc_context_options o = { .size = sizeof o, .report = report, .user = &w, .threads = 1 };
    assert_int_equal(qcc_open(&o, &w.cx), QCC_OK);
    source.name = "walk.qir";
    assert_int_equal(qcc_read(w.cx, &source, NULL, &w.model), QCC_OK);
    walk_role(&w, role);
    print_message("%s: %s=..%s,%s: %d run, %d are refused\n", target, role->word, role->has, role->beside, w.run,
                  w.refused);
    const QuantTarget *t = quant_target(target);
    const bool alone = t && t->no_floats && strcmp(role->beside, "a=off") == 0; /* weights alone leave data floats */
    assert_true((alone ? w.run == 0 : w.run > 30) && w.refused > 500);
    qcc_close(w.cx);
}

static void every_pair_runs_or_is_refused(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(roles); r++)
        walk_for(&roles[r], "generic");
}

/* What products read is the same for all targets; of weights and data alone each has a say. */
static void every_target_has_its_say(void **state)
{
    const QuantTarget *rows;
    const size_t n = quant_targets(&rows);
    (void)state;
    for (size_t t = 0; t < n; t++)
        for (size_t r = 0; r < COUNT(roles); r++)
            if (!*roles[r].has && roles[r].word[0] != 'g' && strcmp(rows[t].name, "generic") != 0)
                walk_for(&roles[r], rows[t].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_pair_runs_or_is_refused),
                                        cmocka_unit_test(every_target_has_its_say) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
