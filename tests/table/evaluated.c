/* Stored models in training, evaluated at batches that their steps were not compiled for: one sample, fewer, as many,
 * many more.  Both engines, asked for exact products, give the same bits, and a sample has those bits in every batch, in f32 and in mixed precision. */
#include <math.h>

#include "api/make/step.h"
#include "support/seed.h"
#include "support/stored.h"

enum { CLASSES = 3, SIDES = 2, OWN = 4, MOST = 64, MOST_VALUES = 8 };

static const int64_t batches[] = { MOST, OWN, 1, 3, OWN + 5, OWN, 2, 1, MOST };

static const char *const recipes[] = {
    "--optimizer adamw --lr 1e-3 --batch 4", "--optimizer adamw --lr 1e-3 --batch 4 --amp bf16",
    "--optimizer sgd --lr 1e-2 --batch 4 --amp fp16 --loss-scale dynamic",
    "--optimizer adamw --lr 1e-3 --dim ", /* the batch by its name */
};

typedef struct Case {
    Stored *s;
    const char *recipe;
    qcc_context *cx;
    qcc_model *model;
    qcc_step *step;
    qcc_session *session[SIDES];  /* of the reference, of cpu */
    qcc_tensor data[MOST_VALUES]; /* of MOST samples */
    Tensor *whole[MOST_VALUES];   /* what came of them */
    LaunchWatch watch;
    int64_t launches;
    bool quiet; /* what is refused is meant to be */
} Case;

static int64_t models, refused, runs, compared, rows_compared;

static void report(void *user, const qcc_message *m)
{
    const Case *k = user;
    if (!k->quiet)
        stored_report(k->s, m);
}

static void launched(void *user, const struct Program *p, int launch, int n, double began, double ended)
{
    Case *k = user;
    assert_true(p && launch >= 0 && ended >= began);
    k->launches += n;
}

static bool has_samples(const Type *t)
{
    return t->rank > 0 && t->dims[0] == OWN;
}

/* The type of so many samples. */
static const Type *type_of(Case *k, const Type *t, int64_t n)
{
    int64_t dims[MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dims[i] = t->dims[i];
    if (has_samples(t))
        dims[0] = n;
    return type_tensor(&k->s->c.ir.types, t->dtype, t->rank, dims);
}

static void draw_data(Case *k)
{
    const size_t n = qcc_step_n_inputs(k->step);
    HOLDS(k, n <= MOST_VALUES && k->model->n_outputs <= MOST_VALUES, "has %zu inputs\n", n);
    for (size_t i = 0; i < n; i++) {
        const Value *v = &k->step->inputs[i];
        k->data[i] = stored_draw(k->s, v->name, type_of(k, v->type, MOST), CLASSES);
    }
}

/* Of an input, the first n samples. */
static qcc_tensor samples(const Case *k, size_t input, int64_t n)
{
    qcc_tensor t = k->data[input];
    if (has_samples(k->step->inputs[input].type)) {
        t.bytes = t.bytes / MOST * (size_t)n;
        t.dims[0] = n;
    }
    return t;
}

static void bind_samples(Case *k, int64_t n)
{
    for (size_t i = 0; i < qcc_step_n_inputs(k->step); i++) {
        const qcc_tensor t = samples(k, i, n);
        for (int e = 0; e < SIDES; e++)
            MUST(k, qcc_bind(k->session[e], k->step->inputs[i].name, &t));
    }
}

/* A file that has its batch in what it computes is compiled for that alone, and evaluated at that alone. */
static bool takes_other_batches(Case *k)
{
    const qcc_tensor t = samples(k, 0, MOST);
    qcc_step *step;
    k->quiet = true;
    const qcc_status status = qcc_bind(k->session[0], k->step->inputs[0].name, &t);
    if (status != QCC_OK) {
        HOLDS(k, status == QCC_UNSUPPORTED, "%s: a batch of %d is refused with %d\n", k->recipe, MOST, (int)status);
        HOLDS(k, qcc_bind(k->session[1], k->step->inputs[0].name, &t) == status, "%s: by one engine\n", k->recipe);
        HOLDS(k, qcc_compile(k->model, "--batch 64", &step) != QCC_OK, "%s: it compiles\n", k->recipe);
        refused++;
    }
    k->quiet = false;
    return status == QCC_OK;
}

static const Tensor *seen(Case *k, int side, const char *name)
{
    qcc_tensor q = { .size = sizeof q };
    MUST(k, qcc_view(k->session[side], name, &q));
    return stored_tensor(k->s, &q);
}

/* The first rows of what came of all samples are those of fewer. */
static void same_rows(Case *k, size_t output, const Tensor *t, int64_t n)
{
    const Tensor *all = k->whole[output];
    const size_t row = all->type->rank > 0 && all->type->dims[0] == MOST ? all->bytes / MOST : 0;
    if (!row || t->type->rank < 1 || t->type->dims[0] != n)
        return;
    HOLDS(k, t->bytes == row * (size_t)n && memcmp(t->data, all->data, t->bytes) == 0,
          "%s: samples of %s differ in a batch of %lld\n", k->recipe, k->model->outputs[output].name, (long long)n);
    rows_compared++;
}

static void keep_whole(Case *k, size_t output, const Tensor *t)
{
    k->whole[output] = tensor_new(&k->s->c.arena, t->type);
    if (t->bytes)
        memcpy(k->whole[output]->data, t->data, t->bytes);
}

static void evaluate_samples(Case *k, int64_t n)
{
    qcc_result r[SIDES] = { { .size = sizeof(qcc_result) }, { .size = sizeof(qcc_result) } };
    bind_samples(k, n);
    k->launches = 0;
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_run(k->session[e], QCC_EVAL, &r[e]));
    HOLDS(k, k->launches > 0, "%s %lld: no program ran\n", k->recipe, (long long)n);
    HOLDS(k, r[0].loss == r[1].loss || (isnan(r[0].loss) && isnan(r[1].loss)), "%s %lld: losses %g and %g\n", k->recipe,
          (long long)n, r[0].loss, r[1].loss);
    for (size_t i = 0; i < k->model->n_outputs; i++) {
        const char *name = k->model->outputs[i].name;
        const Tensor *t[SIDES] = { seen(k, 0, name), seen(k, 1, name) };
        HOLDS(k, tensor_same(t[0], t[1]), "%s %lld: %s differs\n", k->recipe, (long long)n, name);
        compared++;
        if (!k->whole[i])
            keep_whole(k, i, t[0]);
        same_rows(k, i, t[0], n);
    }
    runs++;
}

static void go_through(Case *k, int threads)
{
    static const char *const devices[SIDES] = { "reference", "cpu" };
    const qcc_context_options options = {
        .size = sizeof options, .report = report, .user = k, .threads = threads, .exact = 1
    };
    const qcc_source source = qcc_file(k->s->path);
    MUST(k, qcc_open(&options, &k->cx));
    k->watch = (LaunchWatch){ launched, k };
    k->cx->watch = &k->watch;
    MUST(k, qcc_read(k->cx, &source, NULL, &k->model));
    const char *dim = k->model->inputs[0].dims[0];
    if (strstr(k->recipe, "--dim") && dim)
        k->recipe = arena_printf(&k->s->c.arena, "%s%s=%d", k->recipe, dim, OWN);
    else if (strstr(k->recipe, "--dim"))
        k->recipe = recipes[0];
    MUST(k, qcc_compile(k->model, k->recipe, &k->step));
    draw_data(k);
    for (int e = 0; e < SIDES; e++) {
        const qcc_session_options o = { sizeof o, devices[e] };
        MUST(k, qcc_start(k->step, &o, &k->session[e]));
    }
    bind_samples(k, OWN);
    for (int e = 0; e < SIDES; e++)
        MUST(k, qcc_run(k->session[e], QCC_STEP, NULL));
    const bool all = takes_other_batches(k);
    for (size_t i = 0; i < COUNT(batches); i++)
        if (all || batches[i] == OWN)
            evaluate_samples(k, batches[i]);
    qcc_close(k->cx);
}

static Status visit(void *stored)
{
    for (size_t i = 0; i < COUNT(recipes); i++) {
        Case k = { .s = stored, .recipe = recipes[i] };
        go_through(&k, 1 + (int)(seed_of(k.s->name, i) % 3));
    }
    models++;
    return OK;
}

static void stored_models(void **state)
{
    size_t seen = 0;
    (void)state;
    assert_int_equal(stored_each("/tests/data/exports/*-*.onnx", NULL, NULL, visit, &seen), 0);
    print_message("%d models, %d times refused, %d runs, %d values compared, %d by their samples\n", (int)models,
                  (int)refused, (int)runs, (int)compared, (int)rows_compared);
    assert_true(models >= 57 && refused <= 20 && rows_compared > 1800);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(stored_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
