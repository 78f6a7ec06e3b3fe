/* Where the bytes of models come from: files of any size, calls of the host, and what is no file. */
#include "onnx_bytes.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "frontends/onnx/file/payload.h"
#include "ops/card/schema.h"
#include "support/folder.h"

static int make_folder(void **state)
{
    (void)state;
    if (folder_open() != 0)
        return -1;
    write_bytes(in_folder("w.bin"), "0123456789abcdef", 16);
    return symlink("w.bin", in_folder("link")) | mkfifo(in_folder("fifo"), 0600);
}

static int remove_folder(void **state)
{
    (void)state;
    return folder_close();
}

/* ---- sizes ---- */

static long peak_kilobytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static Status open_big(Fixture *f, void *arg)
{
    TensorInfo info;
    Spine s;
    uint8_t *last = arg;

    TRY(spine_open(&s, &f->memory, &f->diag, &f->limits, in_folder("big.onnx")));
    const Onnx__TensorProto *t = s.model->graph->initializer[0];
    Status status = tensor_info(&s, &f->diag, "w", t, &info);
    if (status == OK)
        status = tensor_check(&s, &f->diag, "w", t, &info);
    if (t->has_raw_data && status == OK) {
        Span span = span_read(t->raw_data.data);
        status = source_read(&s.source, &f->diag, span.offset + span.length - 1, last, 1);
    }
    spine_close(&s);
    return status;
}

/* A model with 1.9 GiB of weights inside, the middle of it a hole in the file. */
static void large_models_open_at_once(void **state)
{
    const uint64_t n = UINT64_C(1900) << 20;
    Bytes head = { 0 }, t = { 0 };
    uint8_t last = 0;
    Fixture f;

    (void)state;
    put_int(&t, 1, n);
    put_int(&t, 2, ONNX_UINT8);
    put_key(&t, 9, 2);
    put_varint(&t, n);
    uint64_t in_graph = t.n + n;
    Bytes g = { 0 };
    put_key(&g, 5, 2);
    put_varint(&g, in_graph);
    put_key(&head, 7, 2);
    put_varint(&head, g.n + in_graph);
    put(&head, g.p, g.n);
    put(&head, t.p, t.n);
    int fd = open(in_folder("big.onnx"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(write(fd, head.p, head.n) == (ssize_t)head.n);
    if (ftruncate(fd, (off_t)(head.n + n)) != 0) {
        print_message("skipped: no file of 3 GB with holes can be made here\n");
        skip();
    }
    assert_int_equal(pwrite(fd, "z", 1, (off_t)(head.n + n) - 1), 1);
    close(fd);

    long before = peak_kilobytes();
    if (fixture_run(&f, open_big, &last))
        FAIL("%s", f.said);
    assert_int_equal(last, 'z');
    assert_true(peak_kilobytes() - before < 50000);
    free(head.p), free(g.p), free(t.p);
}

static void large_external_data_opens_at_once(void **state)
{
    const uint64_t n = UINT64_C(4) << 30;
    Bytes m = { 0 }, g = { 0 }, t = tensor_of(ONNX_UINT8, (int64_t)n);
    uint8_t last = 0;
    Fixture f;

    (void)state;
    put_entry(&t, "location", "huge");
    put_int(&t, 14, 1);
    put_message(&g, 5, t);
    put_message(&m, 7, g);
    write_bytes(in_folder("big.onnx"), m.p, m.n);
    free(m.p);
    int fd = open(in_folder("huge"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, (off_t)n) != 0) {
        print_message("skipped: no file of 3 GB with holes can be made here\n");
        skip();
    }
    close(fd);
    long before = peak_kilobytes();
    if (fixture_run(&f, open_big, &last))
        FAIL("%s", f.said);
    assert_true(peak_kilobytes() - before < 50000);
}

/* ---- sources ---- */

static Status open_path(Fixture *f, void *arg)
{
    Source s;

    TRY(source_open(&s, &f->memory, &f->diag, arg));
    source_close(&s);
    source_close(&s);
    return OK;
}

static void only_regular_files_are_models(void **state)
{
    Fixture f;
    char link_path[300];

    (void)state;
    assert_int_equal(fixture_run(&f, open_path, in_folder("fifo")), IO);
    assert_non_null(strstr(f.said, "cannot be read: not a regular file"));
    assert_int_equal(fixture_run(&f, open_path, folder), IO);
    assert_int_equal(fixture_run(&f, open_path, "/dev/null"), IO);
    assert_int_equal(fixture_run(&f, open_path, in_folder("nothing")), IO);
    assert_non_null(strstr(f.said, "No such file"));
    snprintf(link_path, sizeof link_path, "%s", in_folder("link")); /* what the user names may be a link */
    assert_int_equal(fixture_run(&f, open_path, link_path), OK);
}

static Status every_other_byte(void *user, uint64_t offset, void *buffer, size_t n)
{
    const Bytes *b = user;

    if (offset + n > b->n)
        return IO;
    memcpy(buffer, b->p + offset, n);
    return OK;
}

static Status from_callback(Fixture *f, void *arg)
{
    Spine s;
    Bytes *b = arg;
    float v;

    source_callback(&s.source, &f->memory, "host", b->n, every_other_byte, b);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__tensor_proto__descriptor));
    Status status = tensor_read(&s, &f->diag, "t", s.tensor, &v, sizeof v);
    assert_true(v == 1);
    spine_close(&s);
    return status;
}

static void the_host_may_read_for_us(void **state)
{
    Fixture f;
    Bytes t = tensor_of(ONNX_FLOAT, 1);

    (void)state;
    put_bytes(&t, 9, &(float){ 1 }, 4);
    if (fixture_run(&f, from_callback, &t))
        FAIL("%s", f.said);
    free(t.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_models_open_at_once),
        cmocka_unit_test(large_external_data_opens_at_once),
        cmocka_unit_test(only_regular_files_are_models),
        cmocka_unit_test(the_host_may_read_for_us),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
