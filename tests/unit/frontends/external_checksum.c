/* The checksum of external data: what a model says of a file is compared before any of it is used, once. */
#include "onnx_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontends/onnx/file/payload.h"
#include "ops/card/schema.h"
#include "support/folder.h"

static const char right[] = "fe5567e8d769550852182cdf69d74bb16dff8e29"; /* of "0123456789abcdef" */

static int make_folder(void **state)
{
    (void)state;
    if (folder_open() != 0)
        return -1;
    write_bytes(in_folder("w.bin"), "0123456789abcdef", 16);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return folder_close();
}

/* A model of two tensors of eight bytes in w.bin. */
static void write_model(const char *first, const char *second)
{
    Bytes model = { 0 }, graph = { 0 };
    const char *const sums[] = { first, second };
    for (int i = 0; i < 2; i++) {
        Bytes t = { 0 };
        put_int(&t, 1, 8);
        put_int(&t, 2, ONNX_UINT8);
        put_text(&t, 8, i ? "b" : "a");
        put_entry(&t, "location", "w.bin");
        put_entry(&t, "offset", i ? "8" : "0");
        if (sums[i])
            put_entry(&t, "checksum", sums[i]);
        put_int(&t, 14, 1);
        put_message(&graph, 5, t);
    }
    put_message(&model, 7, graph);
    write_bytes(in_folder("model"), model.p, model.n);
    free(model.p);
}

typedef struct Reading {
    bool only_check;
    void (*between)(void); /* the two tensors */
    Status second;
    uint8_t out[2][8];
} Reading;

static Status read_one(Fixture *f, Spine *s, const Reading *r, int i, uint8_t *out)
{
    TensorInfo info;
    const char *where = i ? "b" : "a";
    const Onnx__TensorProto *t = s->model->graph->initializer[i];
    TRY(tensor_info(s, &f->diag, where, t, &info));
    TRY(tensor_check(s, &f->diag, where, t, &info));
    return r->only_check ? OK : tensor_read(s, &f->diag, where, t, out, info.bytes);
}

static Status read_both(Fixture *f, void *arg)
{
    Reading *r = arg;
    Spine s = { 0 };
    TRY(spine_open(&s, &f->memory, &f->diag, &f->limits, in_folder("model")));
    const Status status = read_one(f, &s, r, 0, r->out[0]);
    if (r->between)
        r->between();
    r->second = read_one(f, &s, r, 1, r->out[1]);
    spine_close(&s);
    return status;
}

static void what_agrees_is_read(void **state)
{
    Fixture f;
    Reading r = { 0 };
    (void)state;
    write_model(right, "FE5567E8D769550852182CDF69D74BB16DFF8E29");
    assert_int_equal(fixture_run(&f, read_both, &r), OK);
    assert_int_equal(r.second, OK);
    assert_memory_equal(r.out, "0123456789abcdef", 16);
    assert_string_equal(f.said, "");
    write_model(NULL, NULL);
    assert_int_equal(fixture_run(&f, read_both, &r), OK);
    assert_int_equal(r.second, OK);
}

/* One byte in a part of the file that the tensor does not even have. */
static void damage_anywhere_in_the_file_is_found(void **state)
{
    Fixture f;
    Reading r = { 0 };
    (void)state;
    write_model(right, NULL);
    write_bytes(in_folder("w.bin"), "0123456789abcdeF", 16);
    assert_int_equal(fixture_run(&f, read_both, &r), INVALID);
    assert_string_equal(
        strrchr(f.said, '/'),
        "/model: a: external data w.bin: its SHA-1 is 190b558cbe9f714777df2e15df88008a14f9f9eb, and the "
        "model says fe5567e8d769550852182cdf69d74bb16dff8e29: the file is damaged, or another model's\n"
        "  try: the w.bin that was written with the model, or both files anew\n");
    assert_int_equal(r.second, OK); /* it claims nothing */
    write_model(right, right);
    assert_int_equal(fixture_run(&f, read_both, &r), INVALID);
    assert_int_equal(r.second, INVALID);
    assert_int_equal(f.diag.n_errors, 1); /* and it is said once */
    write_bytes(in_folder("w.bin"), "0123456789abcdef", 16);
    write_model(right, "0000000000000000000000000000000000000000");
    assert_int_equal(fixture_run(&f, read_both, &r), OK);
    assert_int_equal(r.second, INVALID); /* each tensor has its own say */
}

/* Who only looks whether the data is there does not read it. */
static void looking_reads_nothing(void **state)
{
    Fixture f;
    Reading r = { .only_check = true };
    (void)state;
    write_model("0000000000000000000000000000000000000000", "0000000000000000000000000000000000000000");
    assert_int_equal(fixture_run(&f, read_both, &r), OK);
    assert_int_equal(r.second, OK);
}

/* Bytes that change where nobody looks at the time of a file would only be seen by reading it again. */
static void change_and_keep_the_time(void)
{
    struct stat st;
    const int fd = open(in_folder("w.bin"), O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    assert_int_equal(pwrite(fd, "!", 1, 0), 1);
    const struct timespec times[2] = { st.st_atim, st.st_mtim };
    assert_int_equal(futimens(fd, times), 0);
    close(fd);
}

static void a_file_is_read_through_once(void **state)
{
    Fixture f;
    Reading r = { .between = change_and_keep_the_time };
    (void)state;
    write_model(right, right);
    assert_int_equal(fixture_run(&f, read_both, &r), OK);
    assert_int_equal(r.second, OK);
    assert_int_equal(fixture_run(&f, read_both, &(Reading){ 0 }), INVALID); /* once for each model */
    write_bytes(in_folder("w.bin"), "0123456789abcdef", 16);
}

static void what_is_no_sha1_is_said_once_and_not_compared(void **state)
{
    static const char *const odd[] = { "", "abc", "md5:0123456789abcdef0123456789abcdef0123",
                                       "fe5567e8d769550852182cdf69d74bb16dff8e290" };
    Fixture f;
    Reading r = { 0 };
    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++) {
        write_model(odd[i], odd[i]);
        assert_int_equal(fixture_run(&f, read_both, &r), OK);
        assert_int_equal(r.second, OK);
        assert_non_null(strstr(f.said, "warning: external data w.bin: the checksum is no SHA-1, and is not compared"));
        assert_int_equal(f.diag.n_warnings, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_agrees_is_read),
        cmocka_unit_test(damage_anywhere_in_the_file_is_found),
        cmocka_unit_test(looking_reads_nothing),
        cmocka_unit_test(a_file_is_read_through_once),
        cmocka_unit_test(what_is_no_sha1_is_said_once_and_not_compared),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
