#include "testing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/data/npy.h"

/* A file in the working folder, gone at the end of the test. */
static const char *file_of(Context *c, const void *bytes, size_t n)
{
    char path[] = "npy.XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
    return arena_string(&c->arena, path);
}

/* A file of that version with that dictionary and those elements. */
static const char *array_of(Context *c, int version, const char *dict, const void *elements, size_t n)
{
    Text t;
    const size_t length = strlen(dict);
    text_open(&t, &c->arena);
    text_bytes(&t, "\x93NUMPY", 6);
    text_char(&t, (char)version);
    text_char(&t, 0);
    for (int i = 0; i < (version > 1 ? 4 : 2); i++)
        text_char(&t, (char)(length >> (8 * i)));
    text_add(&t, dict);
    text_bytes(&t, elements, n);
    return file_of(c, t.p, t.n);
}

static Status read_as(Context *c, const char *path, const Type *declared, Tensor **t)
{
    const Status status = npy_read(&c->ir.types, &c->heap, &c->diag, &LIMITS_DEFAULT, path, declared, t);
    unlink(path);
    return status;
}

static Status every_version_and_order(void *arg)
{
    Context *c = arg;
    const float rows[] = { 1, 2, 3, 4, 5, 6 }, columns[] = { 1, 4, 2, 5, 3, 6 };
    static const char *const dicts[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "{ 'descr' : '=f4' , 'shape' : ( 2L , 3L ) , 'fortran_order' : False }       \n",
    };
    for (int version = 1; version <= 3; version++) {
        Tensor *t;
        assert_int_equal(read_as(c, array_of(c, version, dicts[version - 1], rows, sizeof rows), NULL, &t), OK);
        assert_string_equal(type_text(&c->arena, t->type), "f32[2,3]");
        assert_memory_equal(t->data, rows, sizeof rows);
    }
    Tensor *t;
    const char *fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n";
    assert_int_equal(read_as(c, array_of(c, 1, fortran, columns, sizeof columns), NULL, &t), OK);
    assert_memory_equal(t->data, rows, sizeof rows);
    return OK;
}

static Status other_byte_orders_and_types(void *arg)
{
    Context *c = arg;
    static const uint8_t big[] = { 0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0 }, halves[] = { 0, 0x3c, 0, 0xc0 };
    static const uint8_t nibbles[] = { 0x01, 0xff, 0x07 };
    const Type *bf16 = type_tensor(&c->ir.types, BF16, 1, (const int64_t[]){ 2 });
    const Type *i4 = type_tensor(&c->ir.types, I4, 1, (const int64_t[]){ 3 });
    Tensor *t;
    const char *f4 = "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }";
    assert_int_equal(read_as(c, array_of(c, 1, f4, big, sizeof big), NULL, &t), OK);
    assert_true(tensor_get_f64(t, 0) == 1 && tensor_get_f64(t, 1) == -2);
    const char *f2 = "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }";
    assert_int_equal(read_as(c, array_of(c, 1, f2, halves, sizeof halves), NULL, &t), OK);
    assert_true(t->type->dtype == F16 && tensor_get_f64(t, 0) == 1 && tensor_get_f64(t, 1) == -2);
    const char *v2 = "{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }";
    assert_int_equal(read_as(c, array_of(c, 1, v2, halves, sizeof halves), bf16, &t), OK);
    assert_ptr_equal(t->type, bf16);
    const char *v1 = "{'descr': '<V1', 'fortran_order': False, 'shape': (3,), }";
    assert_int_equal(read_as(c, array_of(c, 1, v1, nibbles, sizeof nibbles), i4, &t), OK);
    assert_ptr_equal(t->type, i4);
    assert_true(tensor_get_i64(t, 0) == 1 && tensor_get_i64(t, 1) == -1 && tensor_get_i64(t, 2) == 7);
    const char *scalar = "{'descr': '<i8', 'fortran_order': False, 'shape': (), }";
    assert_int_equal(read_as(c, array_of(c, 1, scalar, big, sizeof big), NULL, &t), OK);
    assert_int_equal(t->type->rank, 0);
    const char *empty = "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 7), }";
    assert_int_equal(read_as(c, array_of(c, 1, empty, big, 0), NULL, &t), OK);
    assert_int_equal(tensor_elements(t), 0);
    return OK;
}

static Status put_text(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

static Status what_is_written_reads_back(void *arg)
{
    Context *c = arg;
    Rng rng = { 7 };
    for (int d = 0; d < DTYPE_COUNT; d++) {
        if (d == STRING)
            continue;
        for (int rank = 0; rank <= 3; rank++) {
            const int64_t dims[] = { 3, 1, 5 };
            const Type *type = type_tensor(&c->ir.types, (DType)d, rank, dims);
            Tensor *t = tensor_new(&c->arena, type), *back;
            Text file;
            for (int64_t i = 0; i < tensor_elements(t); i++)
                tensor_set_f64(t, i, (double)rng_range(&rng, dtype_class((DType)d) == CLASS_INT ? -2 : 0, 1));
            text_open(&file, &c->arena);
            assert_int_equal(npy_write(&c->arena, t, put_text, &file), OK);
            assert_int_equal((file.n - (dtype_bits((DType)d) < 8 ? (size_t)tensor_elements(t) : t->bytes)) % 64, 0);
            assert_int_equal(read_as(c, file_of(c, file.p, file.n), type, &back), OK);
            assert_true(tensor_same(t, back));
        }
    }
    return OK;
}

static Status what_is_no_array_is_refused(void *arg)
{
    Context *c = arg;
    static const struct {
        const char *dict;
        Status status;
    } bad[] = {
        { "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", INVALID },
        { "{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", UNSUPPORTED },
        { "{'descr': '<U8', 'fortran_order': False, 'shape': (2,), }", UNSUPPORTED },
        { "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", INVALID },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (200,), }", INVALID },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", INVALID },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }", INVALID },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", INVALID },
        { "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", INVALID },
        { "{'descr': '<f4', 'fortran_order': False, }", INVALID },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", INVALID },
        { "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", INVALID },
        { "('descr')", INVALID },
        { "", INVALID },
    };
    static const uint8_t wide[] = { 1, 100 };
    const Type *i4 = type_tensor(&c->ir.types, I4, 1, (const int64_t[]){ 2 });
    Tensor *small = NULL;
    const char *i1 = "{'descr': '|i1', 'fortran_order': False, 'shape': (2,), }";
    assert_int_equal(read_as(c, array_of(c, 1, i1, wide, sizeof wide), i4, &small), INVALID);
    const float two[] = { 1, 2 };
    for (size_t i = 0; i < COUNT(bad); i++) {
        Tensor *t = NULL;
        assert_int_equal(read_as(c, array_of(c, 1, bad[i].dict, two, sizeof two), NULL, &t), bad[i].status);
        assert_null(t);
    }
    Tensor *t;
    assert_int_equal(read_as(c, file_of(c, "\x93NUMPY\x04\x00\x10\x00       ", 17), NULL, &t), INVALID);
    assert_int_equal(read_as(c, file_of(c, "\x93NUMPY\x01\x00\xff\xff       ", 17), NULL, &t), INVALID);
    assert_int_equal(read_as(c, file_of(c, "\x93NUM", 4), NULL, &t), INVALID);
    return OK;
}

static void versions(void **state)
{
    (void)state;
    with_context(every_version_and_order);
}

static void types(void **state)
{
    (void)state;
    with_context(other_byte_orders_and_types);
}

static void writing(void **state)
{
    (void)state;
    with_context(what_is_written_reads_back);
}

static void refusing(void **state)
{
    (void)state;
    with_context(what_is_no_array_is_refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions),
        cmocka_unit_test(types),
        cmocka_unit_test(writing),
        cmocka_unit_test(refusing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
