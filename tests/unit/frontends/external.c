/* External data of tensors: what is read, and its traps. */
#include "onnx_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "frontends/onnx/file/external.h"
#include "frontends/onnx/file/payload.h"
#include "ops/card/schema.h"
#include "support/folder.h"

typedef struct ExternalCase {
    const char *location, *offset, *length; /* null: absent */
    const char *file;                       /* the TensorProto; null: in memory */
    bool linked;
    Bytes bytes;
    int64_t n;
    uint8_t out[64];
} ExternalCase;

static void build_external(ExternalCase *c)
{
    c->bytes = tensor_of(ONNX_UINT8, c->n);
    if (c->location)
        put_entry(&c->bytes, "location", c->location);
    if (c->offset)
        put_entry(&c->bytes, "offset", c->offset);
    if (c->length)
        put_entry(&c->bytes, "length", c->length);
    put_int(&c->bytes, 14, 1);
    if (c->file)
        write_bytes(c->file, c->bytes.p, c->bytes.n);
}

static Status read_external(Fixture *f, void *arg)
{
    ExternalCase *c = arg;
    TensorInfo info;
    Spine s;

    if (c->file)
        TRY(source_open(&s.source, &f->memory, &f->diag, c->file));
    else
        source_memory(&s.source, &f->memory, "m", c->bytes.p, c->bytes.n);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__tensor_proto__descriptor));
    s.linked_data = c->linked;
    Status status = tensor_info(&s, &f->diag, "tensor", s.tensor, &info);
    if (status == OK)
        status = tensor_check(&s, &f->diag, "tensor", s.tensor, &info);
    if (status == OK && info.bytes <= sizeof c->out)
        status = tensor_read(&s, &f->diag, "tensor", s.tensor, c->out, info.bytes);
    spine_close(&s);
    return status;
}

static Status run_external(Fixture *f, ExternalCase *c)
{
    c->file = in_folder("model");
    build_external(c);
    Status status = fixture_run(f, read_external, c);
    free(c->bytes.p);
    return status;
}

static int make_folder(void **state)
{
    (void)state;
    if (folder_open() != 0)
        return -1;
    mkdir(in_folder("sub"), 0700);
    write_bytes(in_folder("w.bin"), "0123456789abcdef", 16);
    write_bytes(in_folder("sub/v.bin"), "abc", 3);
    write_bytes(in_folder("hard"), "abc", 3);
    int failed = symlink("w.bin", in_folder("link")) | symlink("sub", in_folder("folder-link")) |
                 link(in_folder("hard"), in_folder("hard2")) | symlink("/etc/passwd", in_folder("out")) |
                 symlink("nowhere", in_folder("dangling")) | mkfifo(in_folder("fifo"), 0600);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    failed |= bind(fd, (struct sockaddr *)&address, sizeof address);
    close(fd);
    return failed;
}

static int remove_folder(void **state)
{
    (void)state;
    return folder_close();
}

static void ranges_of_files_are_read(void **state)
{
    Fixture f;
    ExternalCase c = { .location = "w.bin", .offset = "10", .length = "6", .n = 6 };

    (void)state;
    if (run_external(&f, &c))
        FAIL("%s", f.said);
    assert_memory_equal(c.out, "abcdef", 6);
    c = (ExternalCase){ .location = "./sub//v.bin", .n = 3 };
    if (run_external(&f, &c))
        FAIL("%s", f.said);
    assert_memory_equal(c.out, "abc", 3);
    c = (ExternalCase){ .location = "w.bin", .n = 0 };
    assert_int_equal(run_external(&f, &c), OK);
}

static void paths_that_lead_elsewhere_are_refused(void **state)
{
    static const struct {
        const char *location;
        Status status;
        const char *says;
    } cases[] = {
        { NULL, INVALID, "external data without a location" },
        { "", INVALID, "the path is empty" },
        { "/etc/passwd", INVALID, "the path is absolute" },
        { "/proc/self/mem", INVALID, "the path is absolute" },
        { "..", INVALID, "the path leaves the model's folder" },
        { "../w.bin", INVALID, "the path leaves the model's folder" },
        { "sub/../w.bin", INVALID, "the path leaves the model's folder" },
        { "a/../../b", INVALID, "the path leaves the model's folder" },
        { "sub/..", INVALID, "the path leaves the model's folder" },
        { "\xff\xfe", INVALID, "the path is not UTF-8" },
        { "nothing", IO, "external data nothing: No such file or directory" },
        { "W.bin", IO, "No such file" },
        { "w.bin/", IO, "Not a directory" },
        { "sub", IO, "not a regular file" },
        { ".", IO, "not a regular file" },
        { "link", IO, "the path contains a link" },
        { "folder-link/v.bin", IO, "the path contains a link" },
        { "out", IO, "the path contains a link" },
        { "dangling", IO, "the path contains a link" },
        { "hard", IO, "the file has other names (hard links)" },
        { "fifo", IO, "not a regular file" },
        { "socket", IO, "external data socket: " },
    };
    Fixture f;
    char long_path[5001];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        ExternalCase c = { .location = cases[i].location, .n = 3 };
        assert_int_equal(run_external(&f, &c), cases[i].status);
        if (!strstr(f.said, cases[i].says))
            FAIL("case %zu says: %s", i, f.said);
    }
    memset(long_path, 'a', 5000);
    long_path[5000] = '\0';
    assert_int_equal(run_external(&f, &(ExternalCase){ .location = long_path, .n = 3 }), INVALID);
    assert_non_null(strstr(f.said, "the path is too long"));
}

/* Both ways to open agree about every name, by errno where it matters. */
static void the_walk_by_components_is_as_strict_as_the_kernel(void **state)
{
    static const char *const names[] = { "w.bin",    "sub/v.bin",  "./sub//v.bin", "link", "folder-link/v.bin",
                                         "dangling", "nothing",    "w.bin/",       "out",  "sub/nothing/x",
                                         "w.bin/x",  "/etc/passwd" };
    int at = open(folder, O_PATH | O_DIRECTORY);

    (void)state;
    assert_true(at >= 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        int kernel = open_beneath(at, names[i], OPEN_BENEATH), ours = open_beneath(at, names[i], OPEN_BY_COMPONENT);
        assert_true((kernel < 0) == (ours < 0));
        if (kernel >= 0) {
            struct stat a, b;
            assert_int_equal(fstat(kernel, &a) | fstat(ours, &b), 0);
            assert_int_equal(a.st_ino, b.st_ino);
            close(kernel);
            close(ours);
        }
    }
    assert_int_equal(open_beneath(at, "sub/../w.bin", OPEN_BY_COMPONENT), -EXDEV);
    assert_int_equal(open_beneath(at, "", OPEN_BY_COMPONENT), -ENOENT);
    close(at);
}

static void the_host_may_permit_links(void **state)
{
    static const char *const names[] = { "link", "folder-link/v.bin", "hard" };
    Fixture f;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(run_external(&f, &(ExternalCase){ .location = names[i], .n = 3, .linked = true }), OK);
    assert_int_equal(run_external(&f, &(ExternalCase){ .location = "../x", .n = 3, .linked = true }), INVALID);
}

static void ranges_beyond_the_file_are_refused(void **state)
{
    static const struct {
        const char *offset, *length;
        int64_t n;
        const char *says;
    } cases[] = {
        { "17", NULL, 0, "lie beyond the end of the file (16)" },
        { "16", NULL, 1, "1 bytes at 16 lie beyond the end of the file (16)" },
        { "18446744073709551615", NULL, 2, "lie beyond the end" },
        { "18446744073709551616", NULL, 2, "the offset is no number" },
        { "-1", NULL, 2, "the offset is no number" },
        { "0x1", NULL, 2, "the offset is no number" },
        { " 1", NULL, 2, "the offset is no number" },
        { "", NULL, 2, "the offset is no number" },
        { "0", "3", 2, "a length of 3 where the tensor has 2 bytes" },
        { "0", "-3", 2, "the length is no number" },
        { NULL, NULL, 1099511627776, "lie beyond the end of the file (16)" },
    };
    Fixture f;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        ExternalCase c = { .location = "w.bin", .offset = cases[i].offset, .length = cases[i].length, .n = cases[i].n };
        assert_int_equal(run_external(&f, &c), INVALID);
        if (!strstr(f.said, cases[i].says))
            FAIL("case %zu says: %s", i, f.said);
    }
}

static void a_model_in_memory_has_no_folder(void **state)
{
    Fixture f;
    ExternalCase c = { .location = "w.bin", .n = 3 };

    (void)state;
    build_external(&c);
    assert_int_equal(fixture_run(&f, read_external, &c), INVALID);
    assert_non_null(strstr(f.said, "has no folder"));
    free(c.bytes.p);
}

static void odd_keys_of_external_data(void **state)
{
    Fixture f;
    ExternalCase c = { .location = "w.bin", .n = 3, .file = in_folder("model") };

    (void)state;
    build_external(&c);
    put_entry(&c.bytes, "checksum", "fe5567e8d769550852182cdf69d74bb16dff8e29");
    put_entry(&c.bytes, "basepath", "/etc");
    write_bytes(c.file, c.bytes.p, c.bytes.n);
    assert_int_equal(fixture_run(&f, read_external, &c), OK);
    assert_non_null(strstr(f.said, "unknown key basepath"));
    put_entry(&c.bytes, "location", "w.bin");
    write_bytes(c.file, c.bytes.p, c.bytes.n);
    assert_int_equal(fixture_run(&f, read_external, &c), INVALID);
    assert_non_null(strstr(f.said, "location occurs twice"));
    free(c.bytes.p);
}

static Status changed_between(Fixture *f, void *arg)
{
    ExternalCase *c = arg;
    TensorInfo info;
    Spine s;

    TRY(source_open(&s.source, &f->memory, &f->diag, c->file));
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__tensor_proto__descriptor));
    TRY(tensor_info(&s, &f->diag, "tensor", s.tensor, &info));
    TRY(tensor_check(&s, &f->diag, "tensor", s.tensor, &info));
    write_bytes(in_folder("changing"), "other", 5);
    Status status = tensor_read(&s, &f->diag, "tensor", s.tensor, c->out, info.bytes);
    spine_close(&s);
    return status;
}

static void a_file_must_stay_what_it_was(void **state)
{
    Fixture f;
    ExternalCase c = { .location = "changing", .n = 3, .file = in_folder("model") };

    (void)state;
    write_bytes(in_folder("changing"), "abc", 3);
    build_external(&c);
    assert_int_equal(fixture_run(&f, changed_between, &c), IO);
    assert_non_null(strstr(f.said, "the file has changed since it was first read"));
    free(c.bytes.p);
}

static Status too_many_files(Fixture *f, void *arg)
{
    f->limits.external_files = 0;
    return read_external(f, arg);
}

static void files_are_counted(void **state)
{
    Fixture f;
    ExternalCase c = { .location = "w.bin", .n = 3, .file = in_folder("model") };

    (void)state;
    build_external(&c);
    assert_int_equal(fixture_run(&f, too_many_files, &c), INVALID);
    assert_non_null(strstr(f.said, "exceeds the limit external_files (0)"));
    free(c.bytes.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_of_files_are_read),
        cmocka_unit_test(paths_that_lead_elsewhere_are_refused),
        cmocka_unit_test(the_walk_by_components_is_as_strict_as_the_kernel),
        cmocka_unit_test(the_host_may_permit_links),
        cmocka_unit_test(ranges_beyond_the_file_are_refused),
        cmocka_unit_test(a_model_in_memory_has_no_folder),
        cmocka_unit_test(odd_keys_of_external_data),
        cmocka_unit_test(a_file_must_stay_what_it_was),
        cmocka_unit_test(files_are_counted),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
