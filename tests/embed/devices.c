/* Where sessions run and where tensors lie, and structs of callers that were built for another version. */
#include <stddef.h>

#include "embed/models.h"
#include "embed/trainee.h"

/* ---- devices ---- */

static void a_context_chooses_its_device(void **state)
{
    static const char *const there[] = { NULL, "auto", "cpu", "reference" }, *const absent[] = { "cuda:x", "CPU", "",
                                                                                                 "gpu:0" };
    Host h = { 0 };
    qcc_context_options o = options_of(&h);
    qcc_context *cx = (qcc_context *)&h;
    (void)state;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        o.device = absent[i];
        assert_int_equal(qcc_open(&o, &cx), QCC_DEVICE);
        assert_ptr_equal(cx, &h);
        assert_int_equal(h.blocks, 0);
    }
    assert_non_null(
        strstr(h.text, "qcc_open: device: there is no device gpu:0\n  try: cpu\n  try: reference\n  try: cuda\n"));
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        o.device = there[i];
        assert_int_equal(qcc_open(&o, &cx), QCC_OK);
        qcc_close(cx);
    }
    o.matmul = "blas";
    assert_int_equal(qcc_open(&o, &cx), QCC_USAGE);
    assert_non_null(
        strstr(h.text, "qcc_open: matmul: nobody called blas makes products: it is ours, cublas or auto\n"));
    o.matmul = "auto";
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    qcc_close(cx);
    o.size = offsetof(qcc_context_options, device); /* of a caller that knows of no devices */
    o.device = "cuda";
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

static void a_session_may_choose_another(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    qcc_session_options o = { .size = sizeof o, .device = "tpu" };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    qcc_session *other = (qcc_session *)&h;
    assert_int_equal(qcc_start(t.step, &o, &other), QCC_DEVICE);
    assert_ptr_equal(other, &h);
    assert_non_null(
        strstr(h.text, "qcc_start: device: there is no device tpu\n  try: cpu\n  try: reference\n  try: cuda\n"));
    o.device = "reference";
    assert_int_equal(qcc_start(t.step, &o, &other), QCC_OK);
    o.device = NULL;
    assert_int_equal(qcc_start(t.step, &o, &other), QCC_OK);
    o.size = 0;
    assert_int_equal(qcc_start(t.step, &o, &other), QCC_USAGE);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

/* ---- tensors ---- */

static void tensors_lie_on_the_host(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    qcc_tensor x = trainee_tensor(t.x), seen = { .size = sizeof seen, .place = QCC_ON_DEVICE };
    x.place = QCC_ON_DEVICE;
    assert_int_equal(qcc_bind(t.session, "x", &x), QCC_DEVICE);
    assert_non_null(strstr(h.text, "x: is on a device: the engine cpu takes tensors of the host"));
    assert_int_equal(qcc_put(t.session, "w1", &x), QCC_DEVICE);
    x.place = (qcc_place)7;
    assert_int_equal(qcc_bind(t.session, "x", &x), QCC_USAGE);
    assert_non_null(strstr(h.text, "place 7 is neither"));
    assert_int_equal(qcc_view(t.session, "w1", &seen), QCC_OK);
    assert_int_equal(seen.place, QCC_ON_HOST);
    qcc_close(cx);
}

static void a_size_is_wanted(void **state)
{
    Host h = { 0 };
    Trainee t;
    qcc_context *cx = open_with(&h);
    qcc_value_info info = { .name = "before" };
    (void)state;
    trainee_open(&t, cx, TRAINEE_OPTIONS);
    qcc_tensor x = trainee_tensor(t.x), seen = { .bytes = 3 };
    x.size = 0;
    assert_int_equal(qcc_bind(t.session, "x", &x), QCC_USAGE);
    assert_non_null(strstr(h.text, "x: its size is 0: set it to sizeof(qcc_tensor)"));
    assert_int_equal(qcc_view(t.session, "w1", &seen), QCC_USAGE);
    assert_non_null(strstr(h.text, "w1: its size is 0"));
    assert_int_equal(seen.bytes, 3);
    assert_int_equal(qcc_run_model(t.model, &x, 1, &seen, 1), QCC_USAGE);
    x.size = sizeof x;
    assert_int_equal(qcc_run_model(t.model, &x, 1, &seen, 1), QCC_USAGE);
    assert_int_equal(qcc_parameter(t.step, 0, &info), QCC_USAGE);
    assert_string_equal(info.name, "before");
    qcc_close(cx);
}

/* ---- callers of other versions ---- */

typedef struct Newer {
    qcc_tensor now;
    char more[24];
} Newer;

static void structs_of_other_versions(void **state)
{
    Host h = { 0 };
    qcc_context *cx = open_with(&h);
    qcc_model *m;
    qcc_value_info info = { .size = offsetof(qcc_value_info, shape) };
    Newer in[2] = { { .now = x_tensor() } }, out[2];
    (void)state;
    assert_int_equal(read_file(cx, MLP, &m), QCC_OK);
    memset(out, 0x5a, sizeof out);
    in[0].now.size = out[0].now.size = sizeof(Newer);
    assert_int_equal(qcc_run_model(m, &in[0].now, 1, &out[0].now, 1), QCC_OK);
    assert_true(out[0].now.rank == 2 && out[0].now.size == sizeof(qcc_tensor)); /* so much was filled in */
    assert_int_equal(out[0].more[0], 0x5a);

    qcc_tensor older = x_tensor(), seen;
    memset(&seen, 0x5a, sizeof seen);
    older.size = seen.size = offsetof(qcc_tensor, place);
    older.place = QCC_ON_DEVICE; /* what lies behind it is none of ours */
    const qcc_place behind = seen.place;
    assert_int_equal(qcc_run_model(m, &older, 1, &seen, 1), QCC_OK);
    assert_true(seen.rank == 2 && seen.bytes == out[0].now.bytes && seen.place == behind);

    info.shape.rank = 77;
    assert_int_equal(qcc_input(m, 0, &info), QCC_OK);
    assert_string_equal(info.name, "x");
    assert_int_equal(info.shape.rank, 77);
    qcc_close(cx);
    assert_int_equal(h.blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_context_chooses_its_device), cmocka_unit_test(a_session_may_choose_another),
        cmocka_unit_test(tensors_lie_on_the_host),      cmocka_unit_test(a_size_is_wanted),
        cmocka_unit_test(structs_of_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
