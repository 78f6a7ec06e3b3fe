/* Tensors out of files: every storage and element type, external data and its traps, sizes that no one should read. */
#include "onnx_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "frontends/onnx/file/external.h"
#include "frontends/onnx/file/payload.h"
#include "ops/card/schema.h"

/* ---- tensors in memory ---- */

typedef struct Reading {
    Bytes *bytes;
    uint8_t out[256];
    TensorInfo info;
} Reading;

static Status read_tensor(Fixture *f, void *arg)
{
    Reading *r = arg;
    Spine s;

    source_memory(&s.source, &f->memory, "m", r->bytes->p, r->bytes->n);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__tensor_proto__descriptor));
    Status status = tensor_info(&s, &f->diag, "tensor", s.tensor, &r->info);
    if (status == OK)
        status = tensor_check(&s, &f->diag, "tensor", s.tensor, &r->info);
    if (status == OK) {
        assert_true(r->info.bytes <= sizeof r->out);
        status = tensor_read(&s, &f->diag, "tensor", s.tensor, r->out, r->info.bytes);
    }
    spine_close(&s);
    return status;
}

static Bytes tensor_of(int dtype, int64_t n)
{
    Bytes t = { 0 };

    put_int(&t, 1, (uint64_t)n);
    put_int(&t, 2, (uint64_t)dtype);
    return t;
}

/* Reads the bytes as a TensorProto and frees them. */
static Status read_and_free(Fixture *f, Reading *r, Bytes t)
{
    *r = (Reading){ .bytes = &t };
    Status status = fixture_run(f, read_tensor, r);
    free(t.p);
    return status;
}

static void integers_of_every_width_are_read(void **state)
{
    static const struct {
        int dtype;
        uint32_t field;
        int64_t low, high;
        size_t width;
    } cases[] = {
        { ONNX_UINT8, 5, 0, 255, 1 },
        { ONNX_INT8, 5, -128, 127, 1 },
        { ONNX_UINT16, 5, 0, 65535, 2 },
        { ONNX_INT16, 5, -32768, 32767, 2 },
        { ONNX_INT32, 5, INT32_MIN, INT32_MAX, 4 },
        { ONNX_INT64, 7, INT64_MIN, INT64_MAX, 8 },
        { ONNX_BOOL, 5, 0, 1, 1 },
        { ONNX_FLOAT16, 5, 0, 65535, 2 },
        { ONNX_BFLOAT16, 5, 0, 65535, 2 },
        { ONNX_FLOAT8E4M3FN, 5, 0, 255, 1 },
        { ONNX_FLOAT8E8M0, 5, 0, 255, 1 },
        { ONNX_UINT32, 11, 0, UINT32_MAX, 4 },
    };
    Fixture f;
    Reading r;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int packed = 0; packed < 2; packed++) {
            Bytes t = tensor_of(cases[i].dtype, 2), run = { 0 };
            put_varint(&run, (uint64_t)cases[i].low);
            put_varint(&run, (uint64_t)cases[i].high);
            if (packed) {
                put_message(&t, cases[i].field, run);
            } else {
                free(run.p);
                put_int(&t, cases[i].field, (uint64_t)cases[i].low);
                put_int(&t, cases[i].field, (uint64_t)cases[i].high);
            }
            assert_int_equal(read_and_free(&f, &r, t), OK);
            assert_int_equal(r.info.bytes, 2 * cases[i].width);
            assert_memory_equal(r.out, &cases[i].low, cases[i].width);
            assert_memory_equal(r.out + cases[i].width, &cases[i].high, cases[i].width);
        }
        if (cases[i].width == 8)
            continue;
        Bytes t = tensor_of(cases[i].dtype, 1);
        put_int(&t, cases[i].field, (uint64_t)cases[i].low - 1);
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
        assert_non_null(strstr(f.said, "outside"));
        t = tensor_of(cases[i].dtype, 1);
        put_int(&t, cases[i].field, (uint64_t)cases[i].high + (cases[i].dtype == ONNX_INT32 ? UINT32_MAX : 1));
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
    }
}

static void a_negative_int32_may_be_five_bytes_long(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_INT32, 1);

    (void)state;
    put_int(&t, 5, 0xfffffffe);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, &(int32_t){ -2 }, 4);
}

static void elements_below_a_byte_stay_packed(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_INT4, 5);

    (void)state;
    put_bytes(&t, 5, "\x21\x43\x05", 3);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_int_equal(r.info.bytes, 3);
    assert_memory_equal(r.out, "\x21\x43\x05", 3);
    t = tensor_of(ONNX_UINT2, 5);
    put_bytes(&t, 9, "\xe4\x01", 2);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, "\xe4\x01", 2);
    static const int sixes[] = { ONNX_FLOAT6E2M3, ONNX_FLOAT6E3M2 };
    for (int i = 0; i < 2; i++) { /* one to a value where they are typed, a stream of bits where they are raw */
        t = tensor_of(sixes[i], 5);
        put_bytes(&t, 5, "\x01\x02\x3f\x20\x15", 5);
        assert_int_equal(read_and_free(&f, &r, t), OK);
        assert_int_equal(r.info.bytes, 4);
        assert_memory_equal(r.out, "\x81\xf0\x83\x15", 4);
        t = tensor_of(sixes[i], 5);
        put_bytes(&t, 9, "\x81\xf0\x83\x15", 4);
        assert_int_equal(read_and_free(&f, &r, t), OK);
        assert_memory_equal(r.out, "\x81\xf0\x83\x15", 4);
        t = tensor_of(sixes[i], 1);
        put_bytes(&t, 5, "\x40", 1);
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
        assert_non_null(strstr(f.said, "int32_data: value 0 is 64, outside 0 to 63"));
    }
    t = tensor_of(ONNX_FLOAT4E2M1, 5);
    put_bytes(&t, 9, "\xe4\x01", 2);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_string_equal(f.said, "m: byte 0: tensor: raw_data has 2 bytes where the shape needs 3\n");
}

static void floats_are_read_packed_or_not_and_mixed(void **state)
{
    static const float want[4] = { 1, 2, 3, 4 };
    static const double wide[2] = { 0.1, -7 };
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_FLOAT, 4);

    (void)state;
    put_bytes(&t, 4, want, 4);
    for (int i = 1; i < 3; i++) {
        put_key(&t, 4, 5);
        put(&t, &want[i], 4);
    }
    put_bytes(&t, 4, &want[3], 4);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, want, sizeof want);

    t = tensor_of(ONNX_COMPLEX64, 2);
    put_bytes(&t, 4, want, sizeof want);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, want, sizeof want);

    t = tensor_of(ONNX_DOUBLE, 2);
    put_bytes(&t, 10, wide, 8);
    put_key(&t, 10, 1);
    put(&t, &wide[1], 8);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, wide, sizeof wide);

    t = tensor_of(ONNX_FLOAT, 2);
    put_bytes(&t, 9, "abcdefgh", 8);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_memory_equal(r.out, "abcdefgh", 8);
}

static Status read_strings(Fixture *f, void *arg)
{
    Reading *r = arg;
    Spine s;
    Str out[3];

    source_memory(&s.source, &f->memory, "m", r->bytes->p, r->bytes->n);
    TRY(spine_read(&s, &f->memory, &f->diag, &f->limits, &onnx__tensor_proto__descriptor));
    Status status = tensor_read(&s, &f->diag, "tensor", s.tensor, out, sizeof out);
    if (status == OK) {
        assert_true(str_is(out[0], "a"));
        assert_int_equal(out[1].n, 0);
        assert_int_equal(out[2].n, 3);
        assert_memory_equal(out[2].p, "x\0y", 3);
    }
    spine_close(&s);
    return status;
}

static void strings_are_bytes(void **state)
{
    Fixture f;
    Bytes t = tensor_of(ONNX_STRING, 3);

    (void)state;
    put_text(&t, 6, "a");
    put_text(&t, 6, "");
    put_text(&t, 8, "name between");
    put_bytes(&t, 6, "x\0y", 3);
    if (fixture_run(&f, read_strings, &(Reading){ .bytes = &t }))
        FAIL("%s", f.said);
    put_text(&t, 6, "one too many");
    assert_int_equal(fixture_run(&f, read_strings, &(Reading){ .bytes = &t }), INVALID);
    free(t.p);
}

static void scalars_and_empty_tensors_are_tensors(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = { 0 };

    (void)state;
    put_int(&t, 2, ONNX_FLOAT);
    put_bytes(&t, 9, "abcd", 4);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_int_equal(r.info.rank, 0);
    assert_int_equal(r.info.elements, 1);
    t = tensor_of(ONNX_FLOAT, 0);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    t = tensor_of(ONNX_FLOAT, 0);
    put_bytes(&t, 9, "", 0);
    assert_int_equal(read_and_free(&f, &r, t), OK);
    assert_int_equal(r.info.bytes, 0);
}

/* What declares one thing and stores another. */
static void lies_about_tensors_are_found(void **state)
{
    static const struct {
        const char *says;
        int64_t n;
        int dtype;
        uint32_t field; /* bytes of it follow; 0: none */
        const char *bytes;
        size_t n_bytes;
    } cases[] = {
        { "there is no element type 0", 1, 0, 9, "a", 1 },
        { "there is no element type 29", 1, 29, 9, "a", 1 },
        { "there is no element type -1", 1, -1, 9, "a", 1 },
        { "dimension 0 is negative: -1", -1, ONNX_FLOAT, 0, "", 0 },
        { "dimension 0 is negative: -9223372036854775808", INT64_MIN, ONNX_FLOAT, 0, "", 0 },
        { "dimension 0, 9223372036854775807, exceeds the limit dim (1099511627776)", INT64_MAX, ONNX_FLOAT, 0, "", 0 },
        { "1 elements are declared and none are stored", 1, ONNX_FLOAT, 0, "", 0 },
        { "1099511627776 elements are declared and none are stored", 1099511627776, ONNX_FLOAT, 0, "", 0 },
        { "raw_data has 7 bytes where the shape needs 8", 2, ONNX_FLOAT, 9, "abcdefg", 7 },
        { "raw_data has 9 bytes where the shape needs 8", 2, ONNX_FLOAT, 9, "abcdefghi", 9 },
        { "raw_data has 4 bytes where the shape needs 0", 0, ONNX_FLOAT, 9, "abcd", 4 },
        { "raw_data cannot hold strings", 1, ONNX_STRING, 9, "abcd", 4 },
        { "float_data holds 1 values where the shape needs 2", 2, ONNX_FLOAT, 4, "abcd", 4 },
        { "float_data ends inside a value", 1, ONNX_FLOAT, 4, "abcde", 5 },
        { "float_data cannot hold elements of type 7", 1, ONNX_INT64, 4, "abcd", 4 },
        { "int32_data cannot hold elements of type 1", 1, ONNX_FLOAT, 5, "a", 1 },
        { "int64_data cannot hold elements of type 6", 1, ONNX_INT32, 7, "a", 1 },
        { "int64_data holds at most 1 values where the shape needs 2", 2, ONNX_INT64, 7, "a", 1 },
        { "int64_data holds more than the 1 values that the shape needs", 1, ONNX_INT64, 7, "ab", 2 },
        { "int64_data holds 1 values where the shape needs 2", 2, ONNX_INT64, 7, "\x80\x01", 2 },
        { "int64_data: a number is malformed", 2, ONNX_INT64, 7, "\x80\x00", 2 },
        { "int64_data: a number is malformed", 2, ONNX_INT64, 7, "\x80\x80", 2 },
        { "element 1 is a bool of value 2", 2, ONNX_BOOL, 9, "\1\2", 2 },
    };
    Fixture f;
    Reading r;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        Bytes t = tensor_of(cases[i].dtype, cases[i].n);
        if (cases[i].field)
            put_bytes(&t, cases[i].field, cases[i].bytes, cases[i].n_bytes);
        assert_int_equal(read_and_free(&f, &r, t), INVALID);
        if (!strstr(f.said, cases[i].says))
            FAIL("case %zu says: %s", i, f.said);
    }
}

static void products_that_overflow_are_refused(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = { 0 };

    (void)state;
    put_bytes(&t, 1, "\x80\x80\x80\x80\x80\x20\x80\x80\x80\x80\x80\x20\x80\x80\x80\x80\x80\x20", 18); /* 2^40 cubed */
    put_int(&t, 2, ONNX_FLOAT);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_non_null(strstr(f.said, "exceeds the limit elements"));
    t = (Bytes){ 0 };
    put_bytes(&t, 1, "\x00\x80\x80\x80\x80\x80\x20\x80\x80\x80\x80\x80\x20", 13); /* also where one of them is 0 */
    put_int(&t, 2, ONNX_FLOAT);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
}

static void two_storages_are_one_too_many(void **state)
{
    Fixture f;
    Reading r;
    Bytes t = tensor_of(ONNX_FLOAT, 1);

    (void)state;
    put_bytes(&t, 9, "abcd", 4);
    put_bytes(&t, 4, "abcd", 4);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_non_null(strstr(f.said, "float_data and raw_data both hold elements"));
    t = tensor_of(ONNX_FLOAT, 1);
    put_bytes(&t, 3, "", 0);
    assert_int_equal(read_and_free(&f, &r, t), UNSUPPORTED);
    t = tensor_of(ONNX_FLOAT, 1);
    put_int(&t, 14, 2);
    assert_int_equal(read_and_free(&f, &r, t), INVALID);
    assert_non_null(strstr(f.said, "there is no data_location 2"));
}

/* ---- external data ---- */

static char folder[64]; /* of this run of the tests */

static const char *in_folder(const char *name)
{
    static char path[8][300];
    static int next;

    next = (next + 1) % 8;
    snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
    return path[next];
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    fclose(file);
}

static void put_entry(Bytes *t, const char *key, const char *value)
{
    Bytes e = { 0 };

    put_text(&e, 1, key);
    put_text(&e, 2, value);
    put_message(t, 13, e);
}

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
        write_file(c->file, c->bytes.p, c->bytes.n);
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
    snprintf(folder, sizeof folder, "/tmp/qcc-external-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    mkdir(in_folder("sub"), 0700);
    write_file(in_folder("w.bin"), "0123456789abcdef", 16);
    write_file(in_folder("sub/v.bin"), "abc", 3);
    write_file(in_folder("hard"), "abc", 3);
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
    static const char *const names[] = { "w.bin",       "sub/v.bin", "hard",     "hard2",    "link",
                                         "folder-link", "out",       "dangling", "fifo",     "socket",
                                         "model",       "huge",      "big.onnx", "changing", "many" };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        unlink(in_folder(names[i]));
    rmdir(in_folder("sub"));
    return rmdir(folder);
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
    write_file(c.file, c.bytes.p, c.bytes.n);
    assert_int_equal(fixture_run(&f, read_external, &c), OK);
    assert_non_null(strstr(f.said, "unknown key basepath"));
    put_entry(&c.bytes, "location", "w.bin");
    write_file(c.file, c.bytes.p, c.bytes.n);
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
    write_file(in_folder("changing"), "other", 5);
    Status status = tensor_read(&s, &f->diag, "tensor", s.tensor, c->out, info.bytes);
    spine_close(&s);
    return status;
}

static void a_file_must_stay_what_it_was(void **state)
{
    Fixture f;
    ExternalCase c = { .location = "changing", .n = 3, .file = in_folder("model") };

    (void)state;
    write_file(in_folder("changing"), "abc", 3);
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

/* ---- sizes ---- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

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
    double start = seconds();
    if (fixture_run(&f, open_big, &last))
        FAIL("%s", f.said);
    assert_int_equal(last, 'z');
    assert_true(seconds() - start < 0.5);
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
    write_file(in_folder("big.onnx"), m.p, m.n);
    free(m.p);
    int fd = open(in_folder("huge"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (ftruncate(fd, (off_t)n) != 0) {
        print_message("skipped: no file of 3 GB with holes can be made here\n");
        skip();
    }
    close(fd);
    double start = seconds();
    if (fixture_run(&f, open_big, &last))
        FAIL("%s", f.said);
    assert_true(seconds() - start < 0.5);
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
    assert_int_equal(fixture_run(&f, open_path, (char *)in_folder("fifo")), IO);
    assert_non_null(strstr(f.said, "cannot be read: not a regular file"));
    assert_int_equal(fixture_run(&f, open_path, folder), IO);
    assert_int_equal(fixture_run(&f, open_path, "/dev/null"), IO);
    assert_int_equal(fixture_run(&f, open_path, (char *)in_folder("nothing")), IO);
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

/* ---- the suites ---- */

typedef struct Suite {
    size_t files, tensors;
} Suite;

static Status read_all_of(Fixture *f, void *arg)
{
    const char *path = ((void **)arg)[0];
    Suite *suite = ((void **)arg)[1];
    Spine s;

    TRY(spine_open(&s, &f->memory, &f->diag, &f->limits, path));
    const Onnx__GraphProto *g = s.model->graph;
    suite->files++;
    for (size_t i = 0; i < g->n_initializer + g->n_node; i++) {
        const Onnx__TensorProto *t = i < g->n_initializer ? g->initializer[i] : NULL;
        TensorInfo info;
        if (!t) {
            const Onnx__NodeProto *n = g->node[i - g->n_initializer];
            t = n->n_attribute && n->attribute[0]->t ? n->attribute[0]->t : NULL;
        }
        if (!t)
            continue;
        TRY(tensor_info(&s, &f->diag, "tensor", t, &info));
        TRY(tensor_check(&s, &f->diag, "tensor", t, &info));
        TRY(tensor_read(&s, &f->diag, "tensor", t, arena_alloc(&f->arena, info.bytes), info.bytes));
        suite->tensors++;
    }
    spine_close(&s);
    return OK;
}

static void read_suite_model(const char *path, void *arg)
{
    Fixture f;

    if (fixture_run(&f, read_all_of, (void *[]){ (void *)(uintptr_t)path, arg }))
        FAIL("%s: %s", path, f.said);
}

static void every_tensor_of_the_suites_reads(void **state)
{
    Suite suite = { 0 };

    (void)state;
    if (each_model(read_suite_model, &suite) == 0)
        skip();
    print_message("%zu models, %zu tensors\n", suite.files, suite.tensors);
    assert_true(suite.tensors >= 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_of_every_width_are_read),
        cmocka_unit_test(a_negative_int32_may_be_five_bytes_long),
        cmocka_unit_test(elements_below_a_byte_stay_packed),
        cmocka_unit_test(floats_are_read_packed_or_not_and_mixed),
        cmocka_unit_test(strings_are_bytes),
        cmocka_unit_test(scalars_and_empty_tensors_are_tensors),
        cmocka_unit_test(lies_about_tensors_are_found),
        cmocka_unit_test(products_that_overflow_are_refused),
        cmocka_unit_test(two_storages_are_one_too_many),
        cmocka_unit_test(ranges_of_files_are_read),
        cmocka_unit_test(paths_that_lead_elsewhere_are_refused),
        cmocka_unit_test(the_walk_by_components_is_as_strict_as_the_kernel),
        cmocka_unit_test(the_host_may_permit_links),
        cmocka_unit_test(ranges_beyond_the_file_are_refused),
        cmocka_unit_test(a_model_in_memory_has_no_folder),
        cmocka_unit_test(odd_keys_of_external_data),
        cmocka_unit_test(a_file_must_stay_what_it_was),
        cmocka_unit_test(files_are_counted),
        cmocka_unit_test(large_models_open_at_once),
        cmocka_unit_test(large_external_data_opens_at_once),
        cmocka_unit_test(only_regular_files_are_models),
        cmocka_unit_test(the_host_may_read_for_us),
        cmocka_unit_test(every_tensor_of_the_suites_reads),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
