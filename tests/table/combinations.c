/* Few bits beside everything else, by tests/table/combinations.def: each pair of a recipe and a way trains, resumes with
 * the same bytes, or is refused by name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/make/step.h"
#include "unit/check.h"

enum { ROOM = 512, BATCH = 4, STEPS = 4, CUT = 2, MOST_STATE = 1 << 18 };

/* A table that rows are looked up in, and layers with and without a bias; filters, one of them for each channel apart. */
static const char tokens_text[] = "graph @tokens(%x: i64[4,6]) -> (%logits) {\n"
                                  "    param %table: f32[11,16] = normal(seed=1)\n"
                                  "    param %body.weight: f32[24,16] = kaiming(seed=2)\n"
                                  "    param %body.bias: f32[24] = zeros\n"
                                  "    param %head.weight: f32[24,5] = kaiming(seed=3)\n"
                                  "    const %axes: i64[1] = [1]\n"
                                  "    %e: f32[4,6,16] = gather(%table, %x)\n"
                                  "    %m: f32[4,16] = reduce_mean(%e, %axes, keepdims=false)\n"
                                  "    %b: f32[4,24] = gemm(%m, %body.weight, %body.bias, transB=true)\n"
                                  "    %r: f32[4,24] = relu(%b)\n"
                                  "    %logits: f32[4,5] = matmul(%r, %head.weight)\n"
                                  "}\n";
static const char images_text[] = "graph @images(%x: f32[4,3,6,6]) -> (%logits) {\n"
                                  "    param %a: f32[8,3,3,3] = kaiming(seed=1)\n"
                                  "    param %b: f32[8,1,3,3] = kaiming(seed=2)\n"
                                  "    param %head.weight: f32[5,128] = kaiming(seed=3)\n"
                                  "    param %head.bias: f32[5] = zeros\n"
                                  "    %u: f32[4,8,6,6] = conv(%x, %a, pads=[1,1,1,1])\n"
                                  "    %v: f32[4,8,6,6] = relu(%u)\n"
                                  "    %w: f32[4,8,4,4] = conv(%v, %b, group=8)\n"
                                  "    %f: f32[4,128] = flatten(%w)\n"
                                  "    %logits: f32[4,5] = gemm(%f, %head.weight, %head.bias, transB=true)\n"
                                  "}\n";

typedef struct Named {
    const char *name, *options;
} Named;

typedef struct Way {
    const char *name, *options, *remat;
} Way;

typedef struct Refused {
    const char *recipe, *way, *fragment;
} Refused;

/* clang-format off */
static const Named recipes[] = {
#define RECIPE(name, options) { #name, options },
#include "table/combinations.def"
};
static const Way ways[] = {
#define WAY(name, options, remat) { #name, options, remat },
#include "table/combinations.def"
};
static const Refused refused[] = {
#define REFUSED(recipe, way, fragment) { #recipe, #way, fragment },
#include "table/combinations.def"
    { "", "", "" },
};
/* clang-format on */

/* ---- one pair ---- */

typedef struct Pair {
    const Named *recipe;
    const Way *way;
    const char *text;
    char said[ROOM]; /* the first error */
    bool tries;      /* it says what to write instead */
    qcc_context *cx;
    qcc_step *step;
} Pair;

#define SAME(p, condition, ...)                                                                                        \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            print_error("%s, %s: ", (p)->recipe->name, (p)->way->name);                                                \
            print_error(__VA_ARGS__);                                                                                  \
            assert_true(condition);                                                                                    \
        }                                                                                                              \
    } while (0)

static void report(void *user, const qcc_message *m)
{
    Pair *p = user;
    if (m->severity != QCC_ERROR || p->said[0])
        return;
    snprintf(p->said, sizeof p->said, "%s", m->what);
    p->tries = m->n_try > 0;
}

static bool compile(Pair *p)
{
    char options[ROOM];
    qcc_model *model;
    qcc_source source = qcc_bytes(p->text, strlen(p->text));
    const qcc_context_options o = { .size = sizeof o, .report = report, .user = p, .threads = 1 };
    assert_int_equal(qcc_open(&o, &p->cx), QCC_OK);
    while (strcmp(remat_name(p->cx->lowering.remat), p->way->remat) != 0)
        p->cx->lowering.remat++;
    source.name = "net.qir";
    SAME(p, qcc_read(p->cx, &source, NULL, &model) == QCC_OK, "%s\n", p->said);
    snprintf(options, sizeof options, "--loss cross_entropy:logits --lr 1e-2 %s %s", p->recipe->options,
             p->way->options);
    return qcc_compile(model, options, &p->step) == QCC_OK;
}

static size_t bytes_of(const qcc_tensor *t)
{
    size_t bytes = t->dtype == QCC_I64 ? 8 : 4;
    for (int i = 0; i < t->rank; i++)
        bytes *= (size_t)t->dims[i];
    return bytes;
}

/* Data of a step, by its number; of a graph that takes a micro-batch alone so many. */
static void bind(Pair *p, qcc_session *s, const char *graph, int step)
{
    static union {
        int64_t whole[ROOM];
        float number[ROOM * 2];
    } room[2];
    for (size_t i = 0; i < qcc_step_n_inputs(p->step); i++) {
        qcc_value_info info = { .size = sizeof info };
        assert_true(i < 2 && qcc_step_input(p->step, i, &info) == QCC_OK);
        qcc_tensor t = info.shape;
        const bool whole = t.dtype == QCC_I64;
        t.size = sizeof t;
        t.dims[0] = module_graph(p->step->module, graph)->inputs[0]->type->dims[0];
        t.bytes = bytes_of(&t);
        t.data = &room[i];
        assert_true(t.bytes <= sizeof room[i]);
        for (size_t k = 0; k < t.bytes / (whole ? 8 : 4); k++)
            if (whole)
                room[i].whole[k] = (int64_t)((k * 7 + (size_t)step * 3) % 5);
            else
                room[i].number[k] = (float)((k * 7 + (size_t)step * 3) % 11) / 8 - 0.5f;
        SAME(p, qcc_bind(s, info.name, &t) == QCC_OK, "binding %s: %s\n", info.name, p->said);
    }
}

static void train(Pair *p, qcc_session *s, int from, int to)
{
    for (int i = from; i < to; i++) {
        qcc_result r = { .size = sizeof r };
        bind(p, s, "step", i);
        SAME(p, qcc_run(s, QCC_STEP, &r) == QCC_OK, "step %d: %s\n", i, p->said);
        SAME(p, isfinite(r.loss), "step %d: a loss of %g\n", i, r.loss);
    }
}

typedef struct Bytes {
    size_t n;
    unsigned char list[MOST_STATE];
} Bytes;

static qcc_status collect(void *user, const void *bytes, size_t n)
{
    Bytes *b = user;
    assert_true(b->n + n <= sizeof b->list);
    memcpy(b->list + b->n, bytes, n);
    b->n += n;
    return QCC_OK;
}

static void save(Pair *p, qcc_session *s, Bytes *to)
{
    const qcc_sink sink = { .write = collect, .user = to };
    to->n = 0;
    SAME(p, qcc_save(s, &sink) == QCC_OK, "saving: %s\n", p->said);
}

static qcc_session *start(Pair *p)
{
    qcc_session *s = NULL;
    SAME(p, qcc_start(p->step, NULL, &s) == QCC_OK, "starting: %s\n", p->said);
    return s;
}

/* A run of some steps, and one that goes on from a checkpoint of it. */
static void run(Pair *p)
{
    static Bytes whole, cut, resumed;
    qcc_session *s = start(p);
    if (module_graph(p->step->module, "observe")) {
        bind(p, s, "observe", 0);
        SAME(p, qcc_run(s, QCC_OBSERVE, NULL) == QCC_OK, "observing: %s\n", p->said);
    }
    train(p, s, 0, CUT);
    save(p, s, &cut);
    train(p, s, CUT, STEPS);
    save(p, s, &whole);
    qcc_end(s);
    s = start(p);
    const qcc_source source = qcc_bytes(cut.list, cut.n);
    SAME(p, qcc_load(s, &source) == QCC_OK, "loading: %s\n", p->said);
    train(p, s, CUT, STEPS);
    save(p, s, &resumed);
    qcc_end(s);
    SAME(p, whole.n == resumed.n && memcmp(whole.list, resumed.list, whole.n) == 0, "a resumed run ends otherwise\n");
    SAME(p, whole.n != cut.n || memcmp(whole.list, cut.list, whole.n) != 0, "nothing is trained\n");
}

static const Refused *refusal_of(const Pair *p)
{
    for (size_t i = 0; i < COUNT(refused); i++)
        if (strcmp(refused[i].recipe, p->recipe->name) == 0 && strcmp(refused[i].way, p->way->name) == 0)
            return &refused[i];
    return NULL;
}

static void check_pair(Pair *p)
{
    const Refused *r = refusal_of(p);
    const bool compiled = compile(p);
    SAME(p, compiled == !r, "%s\n", compiled ? "compiles, though the table refuses it" : p->said);
    if (compiled)
        run(p);
    else
        SAME(p, strstr(p->said, r->fragment) && p->tries, "is refused otherwise: %s\n", p->said);
    qcc_close(p->cx);
}

/* ---- all of them ---- */

static void every_pair_runs_or_is_refused(void **state)
{
    size_t ran = 0;
    (void)state;
    for (size_t r = 0; r < COUNT(recipes); r++)
        for (size_t w = 0; w < COUNT(ways); w++) {
            Pair p = { .recipe = &recipes[r], .way = &ways[w], .text = (r + w) % 2 ? images_text : tokens_text };
            check_pair(&p);
            ran += !refusal_of(&p);
        }
    printf("%zu pairs run, %zu are refused\n", ran, COUNT(recipes) * COUNT(ways) - ran);
}

/* A line that names nothing would refuse nothing. */
static void refusals_name_pairs(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < COUNT(refused); i++) {
        bool recipe = false, way = false;
        for (size_t k = 0; k < COUNT(recipes); k++)
            recipe |= strcmp(recipes[k].name, refused[i].recipe) == 0;
        for (size_t k = 0; k < COUNT(ways); k++)
            way |= strcmp(ways[k].name, refused[i].way) == 0;
        assert_true(recipe && way && refused[i].fragment[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_name_pairs),
        cmocka_unit_test(every_pair_runs_or_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
