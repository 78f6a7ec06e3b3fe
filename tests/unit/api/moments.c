/* What optimizers remember in few bits, as a host sees it: numbers by NAME.m, what is stored by NAME.m.codes and NAME.m.scale;
 * and what a step that is skipped leaves of it. */
#include <math.h>

#include "ops/scalar.h"
#include "support/host.h"
#include "testing.h"

enum { IN = 40, OUT = 60, MOST = IN * OUT, MOST_STATES = 32 };

static const char model[] = "graph @m(%x: f32[4,40]) -> (%y) {\n"
                            "param %w: f32[40,60] = normal(seed=1)\n"
                            "param %v: f32[60,3] = normal(seed=2)\n"
                            "param %b: f32[3] = zeros\n"
                            "%h: f32[4,60] = matmul(%x, %w)\n"
                            "%z: f32[4,3] = matmul(%h, %v)\n"
                            "%y: f32[4,3] = add(%z, %b)\n}\n";

typedef struct Seen {
    Host host;
    qcc_context *cx;
    qcc_step *step;
    qcc_session *session;
} Seen;

static void seen_open(Seen *s, const char *options)
{
    qcc_model *m;
    qcc_context_options o = options_of(&s->host);
    qcc_source source = qcc_bytes(model, strlen(model));
    source.name = "m.qir";
    assert_int_equal(qcc_open(&o, &s->cx), QCC_OK);
    assert_int_equal(qcc_read(s->cx, &source, NULL, &m), QCC_OK);
    assert_int_equal(qcc_compile(m, options, &s->step), QCC_OK);
    assert_int_equal(qcc_start(s->step, NULL, &s->session), QCC_OK);
}

/* One step over data that hold `first` in front. */
static qcc_result step(Seen *s, float first)
{
    static float room[MOST];
    qcc_result r = { .size = sizeof r };
    for (size_t i = 0; i < qcc_step_n_inputs(s->step); i++) {
        qcc_value_info v = { .size = sizeof v };
        assert_int_equal(qcc_step_input(s->step, i, &v), QCC_OK);
        qcc_tensor t = v.shape;
        t.bytes = sizeof(float);
        for (int k = 0; k < t.rank; k++)
            t.bytes *= (size_t)t.dims[k];
        for (size_t k = 0; k < t.bytes / sizeof(float); k++)
            room[k] = (float)sin(0.7 * (double)k + (double)i);
        room[0] = first;
        t.data = room;
        assert_int_equal(qcc_bind(s->session, v.name, &t), QCC_OK);
    }
    assert_int_equal(qcc_run(s->session, QCC_STEP, &r), QCC_OK);
    return r;
}

static qcc_tensor view(Seen *s, const char *name)
{
    qcc_tensor t = { .size = sizeof t };
    assert_int_equal(qcc_view(s->session, name, &t), QCC_OK);
    return t;
}

static int code_at(const qcc_tensor *t, int i)
{
    const unsigned char *p = t->data;
    return t->dtype == QCC_U4 ? p[i / 2] >> (i % 2 * 4) & 15 : p[i];
}

/* The columns of w are 40 long, less than a block: each has one scale. */
static void check_numbers(Seen *s, const char *name, int levels, qcc_dtype dtype)
{
    char text[32];
    float numbers[MOST], scale[OUT];
    const qcc_tensor seen = view(s, name);
    assert_true(seen.dtype == QCC_F32 && seen.rank == 2 && seen.dims[0] == IN && seen.dims[1] == OUT);
    memcpy(numbers, seen.data, sizeof numbers);
    snprintf(text, sizeof text, "%s.scale", name);
    const qcc_tensor scales = view(s, text);
    assert_true(scales.dtype == QCC_F32 && scales.rank == 2 && scales.dims[0] == 1 && scales.dims[1] == OUT);
    memcpy(scale, scales.data, sizeof scale);
    snprintf(text, sizeof text, "%s.codes", name);
    const qcc_tensor codes = view(s, text);
    assert_int_equal(codes.dtype, dtype);
    int moved = 0;
    for (int i = 0; i < MOST; i++) {
        assert_true(numbers[i] == levels_f32[levels * LEVELS_MANY + code_at(&codes, i)] * scale[i % OUT]);
        moved += numbers[i] != 0;
    }
    assert_true(moved > MOST / 2);
}

static void moments_are_numbers(void **state)
{
    static const struct {
        const char *options;
        int m, v;
        qcc_dtype dtype;
    } widths[] = {
        { "--loss mse --optimizer adamw:states=8bit,states_min=256", LEVELS_DYNAMIC8, LEVELS_UNSIGNED8, QCC_U8 },
        { "--loss mse --optimizer adamw:states=4bit,states_min=256", LEVELS_DYNAMIC4, LEVELS_LINEAR4, QCC_U4 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        Seen s = { .step = NULL };
        seen_open(&s, widths[i].options);
        for (int k = 0; k < 3; k++)
            assert_true(step(&s, 1).applied);
        check_numbers(&s, "w.m", widths[i].m, widths[i].dtype);
        check_numbers(&s, "w.v", widths[i].v, widths[i].dtype);
        qcc_tensor t = view(&s, "v.m"), now = view(&s, "qcc.m/v"); /* too few to be codes */
        assert_true(t.dtype == QCC_F32 && t.data == now.data);
        assert_int_equal(qcc_view(s.session, "v.m.codes", &t), QCC_USAGE);
        assert_int_equal(qcc_view(s.session, "w.vmax", &t), QCC_USAGE);
        assert_non_null(strstr(s.host.text, "there is no value named w.vmax"));
        t = view(&s, "w.m");
        assert_int_equal(qcc_put(s.session, "w.m", &t), QCC_UNSUPPORTED);
        assert_non_null(strstr(s.host.text, "put w.m.codes and w.m.scale"));
        qcc_close(s.cx);
    }
}

/* Everything that is trained or remembered, copied. */
static size_t copy_states(Seen *s, void **to, size_t *bytes)
{
    static const char *const names[] = { "w.codes",   "w.scale",   "v.codes",   "v.scale", "b",   "w.m.codes",
                                         "w.v.codes", "w.m.scale", "w.v.scale", "v.m",     "v.v", "b.m" };
    const size_t n = sizeof names / sizeof *names;
    for (size_t i = 0; i < n; i++) {
        const qcc_tensor t = view(s, names[i]);
        bytes[i] = t.bytes;
        to[i] = malloc(t.bytes);
        memcpy(to[i], t.data, t.bytes);
    }
    return n;
}

static void a_skipped_step_changes_nothing(void **state)
{
    static const char *const widths[] = { "8bit", "4bit", "fp8" };
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        char options[160];
        void *before[MOST_STATES], *after[MOST_STATES];
        size_t bytes[MOST_STATES];
        Seen s = { .step = NULL };
        snprintf(options, sizeof options,
                 "--loss mse --amp fp16 --quant int8-weights --optimizer adamw:states=%s,states_min=256", widths[i]);
        seen_open(&s, options);
        int tries = 0;
        while (!step(&s, 1).applied)
            assert_true(++tries < 30); /* the scale finds its place */
        assert_true(step(&s, 1).applied);
        const size_t n = copy_states(&s, before, bytes);
        assert_false(step(&s, INFINITY).applied);
        assert_int_equal(copy_states(&s, after, bytes), n);
        for (size_t k = 0; k < n; k++)
            assert_memory_equal(before[k], after[k], bytes[k]);
        for (size_t k = 0; k < n; k++)
            free(after[k]);
        assert_true(step(&s, 1).applied);
        (void)copy_states(&s, after, bytes);
        size_t changed = 0;
        for (size_t k = 0; k < n; k++) {
            changed += memcmp(before[k], after[k], bytes[k]) != 0;
            free(before[k]);
            free(after[k]);
        }
        assert_true(changed > n / 2);
        qcc_close(s.cx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(moments_are_numbers),
                                        cmocka_unit_test(a_skipped_step_changes_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
