/* Names that are looked up once: what is bound, viewed and put by them is what the names would do. */
#include "embed/trainee.h"

static qcc_value *find(qcc_session *s, const char *name)
{
    qcc_value *v = NULL;
    assert_int_equal(qcc_find(s, name, &v), QCC_OK);
    assert_non_null(v);
    return v;
}

static void same_view(Trainee *t, const char *name, qcc_value *value)
{
    qcc_tensor a = { .size = sizeof(qcc_tensor) }, b = { .size = sizeof(qcc_tensor) };
    assert_int_equal(qcc_view(t->session, name, &a), QCC_OK);
    assert_int_equal(qcc_view_value(value, &b), QCC_OK);
    assert_memory_equal(&a, &b, sizeof a);
}

/* A loop that knows no names ends in the bytes of one that does. */
static void a_loop_without_names_is_the_same(void **state)
{
    static const char *const names[] = { "loss",     "lr",        "logits",   "w1",       "grad.w1",
                                         "qcc.m/w2", "lr_factor", "qcc.step", "grad_norm" };
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float named[FLAT], found[FLAT];
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(trainee_try(&t, cx, TRAINEE_OPTIONS " --clip-norm 1"), QCC_OK);
        qcc_value *x = find(t.session, "x"), *target = find(t.session, "target"), *seen[9];
        qcc_value *factor = find(t.session, "lr_factor"), *gradient = find(t.session, "grad.w2");
        for (int i = 0; i < 9; i++)
            seen[i] = find(t.session, names[i]); /* before there is a value */
        for (unsigned i = 0; i < 6; i++) {
            const float part = 1.0f / (float)(i + 1);
            const qcc_tensor slow = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, (void *)&part, sizeof part };
            const qcc_tensor in = trainee_tensor(t.x), want = trainee_tensor(t.target);
            qcc_tensor g = { .size = sizeof(qcc_tensor) };
            trainee_fill(&t, i);
            assert_int_equal(turn ? qcc_bind_value(x, &in) : qcc_bind(t.session, "x", &in), QCC_OK);
            assert_int_equal(turn ? qcc_bind_value(target, &want) : qcc_bind(t.session, "target", &want), QCC_OK);
            assert_int_equal(turn ? qcc_put_value(factor, &slow) : qcc_put(t.session, "lr_factor", &slow), QCC_OK);
            assert_int_equal(qcc_run(t.session, QCC_FORWARD | QCC_BACKWARD, NULL), QCC_OK);
            assert_int_equal(turn ? qcc_view_value(gradient, &g) : qcc_view(t.session, "grad.w2", &g), QCC_OK);
            float zeros[32] = { ((const float *)g.data)[5] };
            const qcc_tensor other = { sizeof(qcc_tensor), QCC_F32, 2, { 4, 8 }, zeros, sizeof zeros };
            assert_int_equal(turn ? qcc_put_value(gradient, &other) : qcc_put(t.session, "grad.w2", &other), QCC_OK);
            assert_int_equal(qcc_run(t.session, QCC_UPDATE, NULL), QCC_OK);
            for (int k = 0; k < 9; k++)
                same_view(&t, names[k], seen[k]);
        }
        trainee_flat(&t, turn ? found : named);
    }
    assert_memory_equal(named, found, sizeof found);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* What was found stays found through evaluations, checkpoints and the seed. */
static void values_stay(void **state)
{
    Host h = { 0 };
    Trainee t;
    Bytes *file = calloc(1, sizeof *file);
    qcc_context *cx = open_with(&h);
    qcc_tensor v = { .size = sizeof(qcc_tensor) };
    uint64_t number = 7;
    const qcc_tensor seven = { sizeof(qcc_tensor), QCC_U64, 0, { 0 }, &number, sizeof number };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    qcc_value *loss = find(t.session, "loss"), *logits = find(t.session, "logits"), *seed = find(t.session, "seed");
    assert_ptr_equal(find(t.session, "loss"), loss);
    assert_int_equal(qcc_view_value(loss, &v), QCC_USAGE); /* not yet */
    assert_non_null(strstr(h.text, "there is no value named loss now"));
    trainee_run(&t, 0, 1);
    same_view(&t, "loss", loss);
    assert_int_equal(qcc_run(t.session, QCC_EVAL, NULL), QCC_OK);
    same_view(&t, "logits", logits);
    same_view(&t, "loss", loss);
    const qcc_sink sink = bytes_sink(file);
    assert_int_equal(qcc_save(t.session, &sink), QCC_OK);
    const qcc_source source = bytes_source(file);
    assert_int_equal(qcc_load(t.session, &source), QCC_OK);
    assert_int_equal(qcc_put_value(seed, &seven), QCC_OK);
    same_view(&t, "seed", seed);
    assert_int_equal(qcc_view_value(seed, &v), QCC_OK);
    assert_true(*(const uint64_t *)v.data == 7);
    trainee_run(&t, 1, 2);
    same_view(&t, "loss", loss);
    free(file);
    qcc_close(cx);
}

/* What cannot be done says what can, and a name that means nothing names the nearest. */
static void mistakes_are_named(void **state)
{
    static const struct {
        const char *name, *text;
    } wrong[] = {
        { "los", "there is no value named los\n  try: loss\n" },
        { "gradw1", "there is no value named gradw1\n  try: grad.w1\n" },
        { "targets", "there is no value named targets\n  try: target\n" },
        { "lr_faktor", "there is no value named lr_faktor\n  try: lr_factor\n" },
        { "lr_factor/w2", "there is no value named lr_factor/w2\n  try: lr_factor/w1\n" },
    };
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    qcc_value *v = NULL;
    qcc_tensor seen = { .size = sizeof(qcc_tensor) };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS " --group w1:lr=0.1x");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        h.text[0] = 0;
        assert_int_equal(qcc_find(t.session, wrong[i].name, &v), QCC_USAGE);
        assert_non_null(strstr(h.text, wrong[i].text));
        h.text[0] = 0;
        assert_int_equal(qcc_view(t.session, wrong[i].name, &seen), QCC_USAGE);
        assert_non_null(strstr(h.text, wrong[i].text));
        h.text[0] = 0;
        const qcc_tensor x = trainee_tensor(t.x);
        assert_int_equal(qcc_bind(t.session, wrong[i].name, &x), QCC_USAGE);
        assert_int_equal(qcc_put(t.session, wrong[i].name, &x), QCC_USAGE);
        assert_non_null(strstr(h.text, wrong[i].text));
    }
    assert_null(v);
    const qcc_tensor x = trainee_tensor(t.x);
    assert_int_equal(qcc_bind_value(find(t.session, "w1"), &x), QCC_USAGE);
    assert_non_null(strstr(h.text, "w1 is no input: it is put, not bound\n"));
    assert_int_equal(qcc_bind_value(find(t.session, "loss"), &x), QCC_USAGE);
    assert_non_null(strstr(h.text, "loss is no input: it is viewed, not bound\n"));
    assert_int_equal(qcc_put_value(find(t.session, "x"), &x), QCC_USAGE);
    assert_non_null(strstr(h.text, "x is no state: it is bound, not put\n"));
    assert_int_equal(qcc_put_value(find(t.session, "logits"), &x), QCC_USAGE);
    assert_non_null(strstr(h.text, "logits is no state: it is viewed, not put\n"));
    assert_int_equal(qcc_put_value(find(t.session, "w2"), &x), QCC_USAGE);
    assert_non_null(strstr(h.text, "w2: got f32[8,4], wanted f32[4,8]\n"));
    assert_int_equal(qcc_find(t.session, NULL, &v), QCC_USAGE);
    assert_int_equal(qcc_find(NULL, "x", &v), QCC_USAGE);
    assert_int_equal(qcc_find(t.session, "x", NULL), QCC_USAGE);
    assert_int_equal(qcc_view_value(NULL, &seen), QCC_USAGE);
    assert_int_equal(qcc_view_value(find(t.session, "w1"), NULL), QCC_USAGE);
    assert_int_equal(qcc_bind_value(NULL, &x), QCC_USAGE);
    assert_int_equal(qcc_put_value(NULL, &x), QCC_USAGE);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* A loop by values, and finding one again, asks for no more memory than the values themselves. */
static void loops_do_not_grow(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    float one = 1;
    const qcc_tensor factor = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, &one, sizeof one };
    size_t blocks = 0;
    qcc_tensor v = { .size = sizeof(qcc_tensor) };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    for (unsigned i = 0; i < 4000; i++) {
        assert_int_equal(qcc_put_value(find(t.session, "lr_factor"), &factor), QCC_OK);
        assert_int_equal(qcc_put(t.session, "lr_factor", &factor), QCC_OK);
        assert_int_equal(qcc_view_value(find(t.session, "grad.w1"), &v), i ? QCC_OK : QCC_USAGE);
        if (i < 3)
            trainee_run(&t, i, i + 1);
        if (i == 10)
            blocks = (size_t)h.blocks;
    }
    assert_int_equal(h.blocks, blocks);
    qcc_close(cx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_without_names_is_the_same),
        cmocka_unit_test(values_stay),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(loops_do_not_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
