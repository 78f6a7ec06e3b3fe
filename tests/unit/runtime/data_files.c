/* Every form of file that data come in, against files that NumPy wrote (tests/data/arrays.py): all hold 0 .. 23 as
 * [4,2,3], or its lowest bits. */
#include "testing.h"

#include "frontends/onnx/file/value.h"
#include "support/data.h"

static const char *stored(Context *c, const char *name)
{
    return arena_printf(&c->arena, "%s/tests/data/arrays/%s", QCC_SOURCE_DIR, name);
}

typedef struct Form {
    const char *name, *type; /* the type that is read */
} Form;

static const Form forms[] = {
    { "b1.npy", "bool[4,2,3]" },
    { "i1.npy", "i8[4,2,3]" },
    { "u1.npy", "u8[4,2,3]" },
    { "i2.npy", "i16[4,2,3]" },
    { "u2.npy", "u16[4,2,3]" },
    { "i4.npy", "i32[4,2,3]" },
    { "u4.npy", "u32[4,2,3]" },
    { "i8.npy", "i64[4,2,3]" },
    { "u8.npy", "u64[4,2,3]" },
    { "f2.npy", "f16[4,2,3]" },
    { "f4.npy", "f32[4,2,3]" },
    { "f8.npy", "f64[4,2,3]" },
    { "i2_big.npy", "i16[4,2,3]" },
    { "u2_big.npy", "u16[4,2,3]" },
    { "i4_big.npy", "i32[4,2,3]" },
    { "u4_big.npy", "u32[4,2,3]" },
    { "i8_big.npy", "i64[4,2,3]" },
    { "u8_big.npy", "u64[4,2,3]" },
    { "f2_big.npy", "f16[4,2,3]" },
    { "f4_big.npy", "f32[4,2,3]" },
    { "f8_big.npy", "f64[4,2,3]" },
    { "fortran.npy", "f32[4,2,3]" },
    { "fortran_big.npy", "i16[4,2,3]" },
    { "version2.npy", "f32[4,2,3]" },
    { "version3.npy", "f32[4,2,3]" },
    { "stored.npz:key=x", "f32[4,2,3]" },
    { "packed.npz:key=x", "f32[4,2,3]" },
    { "packed.npz:key=x.npy", "f32[4,2,3]" },
    { "packed.npz", "f32[4,2,3]" },
    { "single.npz", "f32[4,2,3]" },
    { "zip64.npz", "f32[4,2,3]" },
    { "u1.idx", "u8[4,2,3]" },
    { "i1.idx", "i8[4,2,3]" },
    { "i2.idx", "i16[4,2,3]" },
    { "i4.idx", "i32[4,2,3]" },
    { "f4.idx", "f32[4,2,3]" },
    { "f8.idx", "f64[4,2,3]" },
    { "u1.idx.gz", "u8[4,2,3]" },
    { "two.safetensors", "f32[4,2,3]" },
    { "two.safetensors:key=x", "f32[4,2,3]" },
};

static Status every_form_is_read(void *arg)
{
    Context *c = arg;
    const int64_t dims[] = { 4, 2, 3 };
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 3, dims) };
    for (size_t i = 0; i < COUNT(forms); i++) {
        Data data;
        Batch b;
        if (data_open(&data, c, &input, 1, stored(c, forms[i].name)) != OK)
            print_error("%s\n", c->last);
        assert_int_equal(c->diag.n_errors, 0);
        assert_string_equal(dataset_says(data.ds, 0), arena_printf(&c->arena, "%s -> f32", forms[i].type));
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
        for (int64_t k = 0; k < 24; k++)
            assert_true(tensor_get_f64(b.values[0], k) == (double)(strncmp(forms[i].type, "bool", 4) ? k : k % 2));
        data_close(&data);
    }
    return OK;
}

/* No prefix of a file is one, and none crashes; a byte that changed may be one, but never crashes. */
static Status prefixes_are_refused(void *arg)
{
    Context *c = arg;
    const int64_t dims[] = { 4, 2, 3 };
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 3, dims) };
    static const char *const names[] = { "f4.npy",     "fortran.npy", "stored.npz", "packed.npz",     "zip64.npz",
                                         "single.npz", "u1.idx",      "u1.idx.gz",  "two.safetensors" };
    for (size_t i = 0; i < COUNT(names); i++) {
        Str bytes;
        const char *copy = arena_printf(&c->arena, "cut-%s", names[i]);
        assert_int_equal(file_read(&c->arena, &c->diag, stored(c, names[i]), 10000, "", &bytes), OK);
        for (size_t n = 0; n < bytes.n; n++) {
            Data data;
            write_file(copy, bytes.p, n);
            const Status status = data_open(&data, c, &input, 1, copy);
            if (status != INVALID)
                print_error("%s, %zu bytes: %d\n", names[i], n, status);
            assert_int_equal(status, INVALID);
        }
        for (size_t n = 0; n < bytes.n; n++) {
            Data data;
            char *changed = arena_copy(&c->arena, bytes.p, bytes.n);
            changed[n] = (char)(changed[n] ^ (1 << n % 8));
            write_file(copy, changed, bytes.n);
            const Status status = data_open(&data, c, &input, 1, copy);
            if (status == OK)
                data_close(&data);
            else if (status != INVALID && status != UNSUPPORTED && status != USAGE)
                data_wrong("%s, byte %zu: %d", names[i], n, status);
        }
        unlink(copy);
    }
    return OK;
}

static const struct {
    const char *spec, *says;
    Status status;
} refused[] = {
    { "objects.npy", "objects.npy: holds Python objects (pickled), not numbers", INVALID },
    { "records.npy", "a structured type (records)", INVALID },
    { "words.npy", "element type 'U5'", UNSUPPORTED },
    { "complex.npy", "element type 'c8'", UNSUPPORTED },
    { "one.npy", "holds one number, no samples", INVALID },
    { "empty.npy", "holds no samples", INVALID },
    { "no_arrays.npz", "is a zip archive without arrays", INVALID },
    { "new.pt", "was saved by torch.save (.pt, .pth)\n  try: numpy.save", INVALID },
    { "old.pt", "was saved by torch.save (.pt, .pth)\n  try: numpy.save", INVALID },
    { "stored.npz:key=z", "holds no array 'z'\n  at: x.npy, y.npy", USAGE },
    { "f4.npy:key=x", "key is not for files of the form npy", USAGE },
    { "f4.npy:i32", "holds f32, not i32", INVALID },
    { "f4.npy:column=1", "column is not for files of the form npy", USAGE },
    { "u1.idx:header=1", "header is not for files of the form idx", USAGE },
    { "f4.npy:shape=7", "shape has another number of elements than the 6 of a sample", USAGE },
    { "f4.npy:mean=1,2,3", "mean has 3 numbers: input x has 2 channels", USAGE },
    { "f4.npy:rows=3:9", "rows: there are 4 samples", USAGE },
    { "absent.npy", "cannot be opened", IO },
    { "../arrays", "is not a regular file", IO },
};

static Status wrong_files_are_named(void *arg)
{
    Context *c = arg;
    const int64_t dims[] = { 4, 2, 3 };
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 3, dims) };
    for (size_t i = 0; i < COUNT(refused); i++) {
        Data data;
        const Status status = data_open(&data, c, &input, 1, stored(c, refused[i].spec));
        if (status != refused[i].status || !strstr(c->last, refused[i].says))
            data_wrong("%s: %d: %s", refused[i].spec, status, c->last);
    }
    return OK;
}

/* ---- crafted ones ---- */

#define BYTES(text) text, sizeof text - 1

static const struct {
    const char *name, *bytes;
    size_t n;
    const char *says;
} crafted[] = {
    { "x.npy", BYTES(""), "is empty" },
    { "x.gguf", BYTES("GGUF\3\0\0\0"), "is a GGUF file" },
    { "x.h5", BYTES("\x89HDF\r\n\x1a\n"), "is an HDF5 file" },
    { "x.parquet", BYTES("PAR1...."), "is a Parquet file" },
    { "x.pkl", BYTES("\x80\4\x95"), "is a Python pickle" },
    { "x.engine", BYTES("ptrt\3\0\0\0"), "is a TensorRT engine" },
    { "x.bin", BYTES("\x1c\0\0\0TFL3"), "is a TensorFlow Lite model" },
    { "x.npy", BYTES("version https://git-lfs.github.com/spec/v1\n"), "Git LFS pointer" },
    { "x.what", BYTES("what is this"), "is of no form that we read" },
    { "x.npy", BYTES("\x93NUMPY\x09\0\x01\0   "), "version 9" },
    { "x.npy", BYTES("\x93NUMPY\2\0\xff\xff\xff\xff{}"), "its head is longer than it" },
    { "x.npy",
      BYTES("\x93NUMPY\1\0\x4e\0{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2, 3)}"
            "    "),
      "more elements than the limit elements" },
    { "x.npy", BYTES("\x93NUMPY\1\0\x45\0{'descr': '<f4', 'fortran_order': True, 'shape': (99999999999, 2, 3)}"),
      "ends before its" },
    { "x.idx", BYTES("\0\0\x0a\1\0\0\0\1a"), "is no IDX file" },
    { "x.idx", BYTES("\0\0\x08\0"), "is no IDX file" },
    { "x.idx", BYTES("\0\0\x08\3\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "more elements than" },
    { "x.idx", BYTES("\0\0\x08\1\0\0\0\2abc"), "bytes follow its elements" },
    { "x.gz", BYTES("\x1f\x8b\x08\0\0\0\0\0\0\3garbage"), "the compressed data are broken" },
    { "x.npz", BYTES("PK\5\6\0\0\0\0\1\0\1\0\x2e\0\0\0\0\0\0\0\0\0"), "lies outside the archive" },
    { "x.npz", BYTES("PK\5\6\0\0\0\0\xff\xfe\xff\xfe\0\0\0\0\0\0\0\0\0\0"), "more members than it has room for" },
    { "x.npz", BYTES("PK\5\6\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), "one volume of several" },
    { "x.safetensors", BYTES("\xff\xff\xff\xff\xff\xff\xff\x7f{}"), "length of the header" },
    { "x.bin:u16,shape=3", BYTES("12345"), "are not a whole number of samples (6 bytes each)" },
    { "x.bin:u8,shape=2x3,header=9", BYTES("12345"), "less than its header of 9" },
    { "x.csv", BYTES("\n\r\n"), "holds no lines" },
    { "x.csv", BYTES("a,b\n1,2\n3\n"), "x.csv:3:1: the line has 1 fields, not 2" },
    { "x.csv", BYTES("a,b\n1,2\n3,4,5\n"), "x.csv:3:5: more fields than the 2 columns" },
    { "x.csv", BYTES("a,b\n1,2\n3,four\n"), "x.csv:3:3: 'four' in column b is no number" },
    { "x.csv", BYTES("a,b\n1,\n"), "x.csv:2:3: column b is empty" },
    { "x.csv", BYTES("a,b\n1,\"2\n"), "x.csv:2:3: a quote is opened and never closed" },
    { "x.csv", BYTES("a,b\n1,\"2\"3\n"), "x.csv:2:3: text follows a closing quote" },
    { "x.csv:column=c", BYTES("aa,b\n1,2\n"), "has no column 'c': it has 2 columns, from 0\n  at: aa" },
    { "x.csv:column=bb", BYTES("aa,b\n1,2\n"), "try: column=b" },
    { "x.csv:column=1..0", BYTES("a,b\n1,2\n"), "counts backwards" },
    { "x.csv:column=0,a", BYTES("a,b\n1,2\n"), "column a is wanted twice" },
    { "x.csv", BYTES("1,2\n"), "f32[4,2,3]" }, /* does not fit */
};

static Status crafted_files_are_named(void *arg)
{
    Context *c = arg;
    const int64_t dims[] = { 4, 2, 3 };
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 3, dims), .shown = "f32[4,2,3]" };
    for (size_t i = 0; i < COUNT(crafted); i++) {
        Data data;
        const size_t n = strcspn(crafted[i].name, ":");
        write_file(arena_copy(&c->arena, crafted[i].name, n), crafted[i].bytes, crafted[i].n);
        c->last = "";
        const Status status = data_open(&data, c, &input, 1, crafted[i].name);
        if ((status != INVALID && status != USAGE) || !strstr(c->last, crafted[i].says))
            data_wrong("%s (%zu): %d: %s", crafted[i].name, i, status, c->last);
        unlink(arena_copy(&c->arena, crafted[i].name, n));
    }
    return OK;
}

/* Archives whose directory lies: one member's bytes used twice, a size that no deflate reaches, a wrong sum. */
static Status archives_that_lie(void *arg)
{
    Context *c = arg;
    const int64_t dims[] = { 4, 2, 3 };
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 3, dims) };
    Str bytes;
    assert_int_equal(file_read(&c->arena, &c->diag, stored(c, "packed.npz"), 10000, "", &bytes), OK);
    char *const first = memmem(bytes.p, bytes.n, "PK\1\2", 4);
    char *const second = memmem(first + 4, (size_t)(bytes.p + bytes.n - first) - 4, "PK\1\2", 4);
    static const struct {
        int entry, at, n;
        const char *put, *says;
    } lies[] = {
        { 1, 42, 4, "\0\0\0\0", "overlaps what follows it" },
        { 0, 24, 4, "\xf0\xff\xff\xff", "cannot inflate to 4294967280" },
        { 0, 24, 4, "\0\0\0\1", "cannot inflate to" },
        { 0, 24, 4, "\0\1\0\0", "bytes less than the 256 that are wanted" },
        { 0, 24, 4, "\x80\0\0\0", "inflates to more bytes" },
        { 0, 16, 4, "abcd", "is damaged: its checksum is" },
        { 0, 20, 4, "\xff\xff\0\0", "overlaps what follows it" },
        { 0, 8, 2, "\1\0", "is encrypted" },
        { 0, 10, 2, "\x0c\0", "its own head says something else" },
        { 0, 46, 1, "q", "is called something else" },
        { 0, 28, 2, "\xff\xff", "the directory is broken" },
    };
    for (size_t i = 0; i < COUNT(lies); i++) {
        Data data;
        char *const at = (lies[i].entry ? second : first) + lies[i].at;
        char was[4];
        memcpy(was, at, (size_t)lies[i].n);
        memcpy(at, lies[i].put, (size_t)lies[i].n);
        write_file("lies.npz", bytes.p, bytes.n);
        memcpy(at, was, (size_t)lies[i].n);
        const Status status = data_open(&data, c, &input, 1, "lies.npz:key=x");
        if (status != INVALID || !strstr(c->last, lies[i].says))
            data_wrong("lie %zu: %d: %s", i, status, c->last);
    }
    unlink("lies.npz");
    return OK;
}

static Status a_bomb_stays_small(void *arg)
{
    Context *c = arg;
    const int64_t dims[] = { 4, 2, 3 };
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 3, dims) };
    static const char *const names[] = { "packed.npz", "u1.idx.gz", "fortran.npy", "table.csv:column=x" };
    for (size_t i = 0; i < COUNT(names); i++) {
        Data data = { .limits = LIMITS_DEFAULT };
        data.limits.data_bytes = 20;
        assert_int_equal(data_open_limited(&data, c, &input, 1, stored(c, names[i])), INVALID);
        if (!strstr(c->last, "more than the limit data_bytes (20)"))
            data_wrong("%s", c->last);
    }
    return OK;
}

static Status tokens_and_targets(void *arg)
{
    Context *c = arg;
    static const char *const names[] = { "plain.bin", "head16.bin", "head32.bin" };
    const int64_t dims[] = { 2, 5 };
    const Type *type = type_tensor(&c->ir.types, I64, 2, dims);
    DataInput inputs[] = { { .name = "ids", .type = type, .role = DATA_TOKENS, .count = 120 },
                           { .name = "target", .type = type, .target = true, .role = DATA_TOKENS, .count = 120 } };
    for (size_t i = 0; i < COUNT(names); i++) {
        Data data;
        Batch b;
        assert_int_equal(data_open_both(&data, c, inputs, 2, stored(c, names[i]), "next"), OK);
        assert_int_equal(dataset_samples(data.ds), 3); /* windows of 5 of 20 tokens, with one behind each */
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
        for (int64_t k = 0; k < 10; k++) {
            assert_int_equal(tensor_get_i64(b.values[0], k), 100 + k);
            assert_int_equal(tensor_get_i64(b.values[1], k), 101 + k);
        }
        data_close(&data);
        assert_int_equal(data_open_both(&data, c, inputs, 2, stored(c, names[i]), "none"), OK);
        assert_int_equal(dataset_samples(data.ds), 4);
        assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
        assert_null(b.values[1]);
        data_close(&data);
    }
    Data data;
    Batch b;
    inputs[0].count = 114;
    assert_int_equal(data_open_both(&data, c, inputs, 2, stored(c, "plain.bin"), "none"), OK);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 1, &b), INVALID);
    assert_non_null(strstr(c->last, "plain.bin: token 14: id 114 is outside 0..113"));
    data_close(&data);
    assert_int_equal(data_open_both(&data, c, inputs, 2, stored(c, "head32.bin:u16"), "next"), INVALID);
    assert_non_null(strstr(c->last, "holds u32 by its own head, not u16"));
    assert_int_equal(data_open_both(&data, c, inputs, 2, stored(c, "plain.bin:u32"), "next"), INVALID);
    assert_non_null(strstr(c->last, "1 samples are fewer than one batch of 2\n  try: --batch 1"));
    assert_int_equal(data_open_both(&data, c, inputs, 2, stored(c, "plain.bin:shape=5"), "next"), USAGE);
    assert_non_null(strstr(c->last, "next wants one input that a token file"));
    return OK;
}

static Status tables(void *arg)
{
    Context *c = arg;
    const DataInput inputs[] = {
        { .name = "x", .type = type_tensor(&c->ir.types, F32, 2, (const int64_t[]){ 4, 2 }) },
        { .name = "y", .type = type_vector(&c->ir.types, I64, 4), .target = true, .role = DATA_CLASSES, .count = 4 },
    };
    Data data;
    Batch b;
    const char *x = arena_printf(&c->arena, "%s:column=x,pixel2", stored(c, "table.csv"));
    assert_int_equal(
        data_open_both(&data, c, inputs, 2, x, arena_printf(&c->arena, "%s:column=label", stored(c, "table.csv"))), OK);
    assert_string_equal(dataset_says(data.ds, 0), "f64[4,2] -> f32");
    assert_string_equal(dataset_says(data.ds, 1), "i64[4] -> i64");
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
    for (int64_t i = 0; i < 4; i++) {
        assert_true(tensor_get_f64(b.values[0], 2 * i) == (double)((float)i / 10));
        assert_true(tensor_get_f64(b.values[0], 2 * i + 1) == (double)(10 * i));
        assert_int_equal(tensor_get_i64(b.values[1], i), 3 - i);
    }
    data_close(&data);
    /* quoted commas and quotes, a line break in a field, no end of line, a mark of byte order, no names */
    static const char odd[] = "\xef\xbb\xbf\"1\",\"2\"\n\n3,4\r\n\"5\",6\n7,8";
    write_file("odd.csv", odd, sizeof odd - 1);
    assert_int_equal(data_open_both(&data, c, inputs, 2, "odd.csv", "odd.csv:column=0"), INVALID);
    assert_non_null(strstr(c->last, "odd.csv: sample 2: class 5 is outside 0..3"));
    static const char skipped[] = "made by hand\n\"a \"\"b\"\"\nc\",d\n1,2\n3,4\n1,0\n2,2\n";
    write_file("odd.csv", skipped, sizeof skipped - 1);
    assert_int_equal(data_open_both(&data, c, inputs, 2, "odd.csv:header=2", "odd.csv:header=2,column=d"), INVALID);
    assert_non_null(strstr(c->last, "odd.csv: sample 1: class 4 is outside 0..3"));
    assert_int_equal(data_open_both(&data, c, inputs, 2, "odd.csv:header=2", "odd.csv:header=2,column=a \"b\"\nc"), OK);
    data_close(&data);
    unlink("odd.csv");
    return OK;
}

/* TensorProto files come through whoever knows ONNX. */

static Status read_proto(void *user, Heap *heap, const char *path, const Type *declared, Tensor **value)
{
    return onnx_value_read(&((Context *)user)->ir, heap, path, NULL, declared, value);
}

static Status tensor_protos(void *arg)
{
    Context *c = arg;
    /* dims 2, 3; data_type FLOAT; raw_data 0 .. 5 */
    static const char bytes[] =
        "\x08\2\x08\3\x10\1\x4a\x18\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\0\0\x80\x40\0\0\xa0\x40";
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 2, (const int64_t[]){ 2, 3 }) };
    Data data = { .limits = LIMITS_DEFAULT };
    Batch b;
    write_file("x.pb", bytes, sizeof bytes - 1);
    assert_int_equal(data_open_limited(&data, c, &input, 1, "x.pb"), UNSUPPORTED);
    data.options = (DataOptions){ .read_proto = read_proto, .user = c };
    assert_int_equal(data_open_limited(&data, c, &input, 1, "x.pb"), OK);
    assert_int_equal(feed_batch(data.feed, &c->diag, 0, 0, &b), OK);
    for (int64_t i = 0; i < 6; i++)
        assert_true(tensor_get_f64(b.values[0], i) == (double)i);
    data_close(&data);
    unlink("x.pb");
    return OK;
}

static Status probes(void *arg)
{
    static const struct {
        const char *spec, *type;
    } rows[] = { { "i2_big.npy", "i16[4,2,3]" }, { "u1.idx.gz", "u8[4,2,3]" }, { "plain.bin", "u16[20]" },
                 { "table.csv", "f64[4,4]" },    { "plain.bin:u8", NULL },     { "plain.bin:u8,shape=2", "u8[20,2]" } };
    Context *c = arg;
    DataSpec spec;
    const Type *type;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(data_spec_read(&c->diag, &c->arena, "--data", stored(c, rows[i].spec), &spec), OK);
        assert_int_equal(data_probe(&c->memory, &c->ir.types, &c->diag, &LIMITS_DEFAULT, NULL, &spec, &type), OK);
        assert_string_equal(type ? type_text(&c->arena, type) : "none", rows[i].type ? rows[i].type : "none");
    }
    Tensor *t;
    assert_int_equal(data_spec_read(&c->diag, &c->arena, "--input", stored(c, "zip64.npz:key=y"), &spec), OK);
    assert_int_equal(data_tensor(&c->ir.types, &c->heap, &c->diag, &LIMITS_DEFAULT, NULL, &spec, NULL, &t), OK);
    assert_string_equal(type_text(&c->arena, t->type), "i64[4]");
    assert_int_equal(tensor_get_i64(t, 0), 3);
    return OK;
}

/* MNIST's files are called after what they hold. */
static Status names_without_an_end(void *arg)
{
    static const char *const names[][2] = { { "u1.idx", "train-images-idx3-ubyte" },
                                            { "u1.idx.gz", "train-images-idx3-ubyte.gz" },
                                            { "f4.npy", "array" },
                                            { "single.npz", "archive.zip" },
                                            { "two.safetensors", "weights" } };
    Context *c = arg;
    const DataInput input = { .name = "x", .type = type_tensor(&c->ir.types, F32, 3, (const int64_t[]){ 4, 2, 3 }) };
    for (size_t i = 0; i < COUNT(names); i++) {
        Str bytes;
        Data data;
        assert_int_equal(file_read(&c->arena, &c->diag, stored(c, names[i][0]), 10000, "", &bytes), OK);
        write_file(names[i][1], bytes.p, bytes.n);
        assert_int_equal(data_open(&data, c, &input, 1, names[i][1]), OK);
        data_close(&data);
        unlink(names[i][1]);
    }
    return OK;
}

#define BODY(name)                                                                                                     \
    static void test_##name(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(name);                                                                                            \
    }
BODY(every_form_is_read)
BODY(prefixes_are_refused)
BODY(wrong_files_are_named)
BODY(crafted_files_are_named)
BODY(archives_that_lie)
BODY(a_bomb_stays_small)
BODY(tokens_and_targets)
BODY(tables)
BODY(tensor_protos)
BODY(probes)
BODY(names_without_an_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form_is_read),    cmocka_unit_test(test_prefixes_are_refused),
        cmocka_unit_test(test_wrong_files_are_named), cmocka_unit_test(test_crafted_files_are_named),
        cmocka_unit_test(test_archives_that_lie),     cmocka_unit_test(test_a_bomb_stays_small),
        cmocka_unit_test(test_tokens_and_targets),    cmocka_unit_test(test_tables),
        cmocka_unit_test(test_tensor_protos),         cmocka_unit_test(test_probes),
        cmocka_unit_test(test_names_without_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
