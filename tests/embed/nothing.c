/* Calls with nothing in them: no words, empty words, arrays of no elements, tensors of no bytes without data, files of no
 * bytes.  Each answers, and does nothing with the null pointers that come with them (the sanitizers say so). */
#include "embed/trainee.h"

static qcc_status take(void *user, const void *p, size_t n)
{
    size_t *sum = user;
    assert_true(p || !n);
    *sum += n;
    return QCC_OK;
}

static void command_lines_without_words(void **state)
{
    static const char *const none[] = { NULL, NULL }, *const name[] = { "qcc", NULL },
                             *const hole[] = { "qcc", NULL, "x" }, *const empty[] = { "qcc", "" },
                             *const more[] = { "qcc", "", "", "--emit", "" };
    static const struct {
        int argc;
        const char *const *argv;
        qcc_status want; /* the bare command says how it is used */
    } lines[] = { { 0, NULL, QCC_OK },    { 1, NULL, QCC_OK },    { 2, NULL, QCC_USAGE }, { -1, NULL, QCC_OK },
                  { 0, none, QCC_OK },    { 1, none, QCC_OK },    { 2, none, QCC_USAGE }, { 1, name, QCC_OK },
                  { 2, name, QCC_USAGE }, { 3, hole, QCC_USAGE }, { 2, empty, QCC_IO },   { 5, more, QCC_USAGE } };
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    size_t sum = 0;
    const qcc_sink sink = { .write = take, .user = &sum };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(qcc_command(cx, lines[i].argc, lines[i].argv, &sink), lines[i].want);
    assert_int_equal(qcc_command(cx, 1, name, NULL), QCC_USAGE);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void sources_without_bytes(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m = NULL;
    size_t sum = 0;
    qcc_source sources[] = { qcc_bytes(NULL, 0),
                             qcc_bytes("", 0),
                             { .read = NULL },
                             { .bytes = "", .name = "none.qir" },
                             { .bytes = "", .name = "none.onnx" },
                             { .path = "" } };
    Trainee t;
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        assert_int_not_equal(qcc_read(cx, &sources[i], "", &m), QCC_OK);
    assert_null(m);
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        assert_int_not_equal(qcc_load(t.session, &sources[i]), QCC_OK);
    const qcc_sink sinks[] = { { .path = NULL }, { .path = "" }, { .write = take, .user = &sum } };
    for (size_t i = 0; i < 3; i++) {
        assert_true((qcc_emit(t.model, "ir", "", &sinks[i]) == QCC_OK) == (i == 2));
        assert_true((qcc_export(t.model, "", &sinks[i]) == QCC_OK) == (i == 2));
        assert_true((qcc_save(t.session, &sinks[i]) == QCC_OK) == (i == 2));
    }
    assert_int_equal(qcc_emit(t.model, "", "", &sinks[2]), QCC_USAGE);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* Every public call that takes a list or a text, with none. */
static void sessions_without_values(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_step *step;
    qcc_tensor tensor = { sizeof(qcc_tensor), QCC_F32, 0, { 0 }, NULL, 0 };
    const char *text;
    Trainee t;
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    assert_int_equal(qcc_compile(t.model, "", &step), QCC_OK);
    assert_int_equal(qcc_compile(t.model, NULL, &step), QCC_OK);
    assert_int_equal(qcc_get_flat(t.session, NULL, 0), QCC_USAGE);
    assert_int_equal(qcc_set_flat(t.session, NULL, 0), QCC_USAGE);
    assert_int_not_equal(qcc_bind(t.session, "", &tensor), QCC_OK);
    assert_int_not_equal(qcc_bind(t.session, "x", &tensor), QCC_OK);
    assert_int_not_equal(qcc_put(t.session, "", &tensor), QCC_OK);
    assert_int_not_equal(qcc_put(t.session, "lr_factor", &tensor), QCC_OK);
    assert_int_not_equal(qcc_view(t.session, "", &tensor), QCC_OK);
    const qcc_status nameless = qcc_set_property(t.session, "", "");
    assert_true(nameless == QCC_OK || nameless == QCC_USAGE);
    assert_int_equal(qcc_set_property(t.session, "empty", ""), QCC_OK);
    assert_int_equal(qcc_get_property(t.session, "empty", &text), QCC_OK);
    assert_string_equal(text, "");
    assert_int_equal(qcc_set_property(t.session, "empty", NULL), QCC_OK);
    assert_int_equal(qcc_run(t.session, 0, NULL), QCC_USAGE);
    assert_int_equal(qcc_run_model(t.model, NULL, 0, NULL, 0), QCC_USAGE);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
    const qcc_context_options o = { .size = sizeof o, .limits = "" };
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    qcc_close(cx);
}

/* Tensors of no elements through operators of every kind, with their data where a host has none: nowhere. */
static const char *const bodies[] = {
    "    %y: f32[0,4] = relu(%x)\n",
    "    %y: f32[0,4] = add(%x, %x)\n",
    "    const %w: f32[4,4] = zeros\n    %y: f32[0,4] = matmul(%x, %w)\n",
    "    const %w: f32[4,0] = zeros\n    %t: f32[4,4] = matmul(%w, %x)\n    %y: f32[4,4] = relu(%t)\n",
    "    %y: f32[0,4] = softmax(%x)\n",
    "    %y: f32[4,0] = transpose(%x, perm=[1, 0])\n",
    "    %y: f32[0,4] = concat(%x, %x, axis=0)\n",
    "    const %s: i64[2] = [0, 4]\n    %y: f32[0,4] = reshape(%x, %s, allowzero=true)\n",
    "    %y: f16[0,4] = cast(%x, to=f16)\n",
    "    const %i: i64[0] = zeros\n    %y: f32[0,4] = gather(%x, %i)\n",
};

static void tensors_without_elements(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        char text[512];
        Host h = { 0 };
        qcc_context *cx = open_with(&h);
        qcc_model *m;
        size_t sum = 0;
        const qcc_sink sink = { .write = take, .user = &sum };
        snprintf(text, sizeof text, "graph @net(%%x: f32[0,4]) -> (%%y) {\n%s}\n", bodies[i]);
        qcc_source source = qcc_bytes(text, strlen(text));
        source.name = "net.qir";
        const qcc_status status = qcc_read(cx, &source, NULL, &m);
        if (status != QCC_OK)
            fail_msg("%s%s", text, h.text);
        const qcc_tensor x = { sizeof(qcc_tensor), QCC_F32, 2, { 0, 4 }, NULL, 0 };
        qcc_tensor y = { .size = sizeof(qcc_tensor) };
        if (qcc_run_model(m, &x, 1, &y, 1) != QCC_OK)
            fail_msg("%s%s", text, h.text);
        assert_int_equal(y.bytes, i == 3 ? 64 : 0);
        assert_int_equal(qcc_export(m, NULL, &sink), QCC_OK);
        assert_int_equal(qcc_emit(m, "ir", NULL, &sink), QCC_OK);
        assert_int_equal(qcc_emit(m, "html", NULL, &sink), QCC_OK);
        qcc_close(cx);
        assert_int_equal(h.blocks, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_lines_without_words),
        cmocka_unit_test(sources_without_bytes),
        cmocka_unit_test(sessions_without_values),
        cmocka_unit_test(tensors_without_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
