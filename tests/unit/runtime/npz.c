/* .npz archives: bytes that say what they should, the 64-bit form where places need it. */
#include "testing.h"

#include <zlib.h>

#include "runtime/write/npz.h"
#include "runtime/write/zip.h"

static Status into_text(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

static uint64_t little(const char *p, int n)
{
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v |= (uint64_t)(unsigned char)p[i] << 8 * i;
    return v;
}

static Tensor *counting(Context *c, DType dtype, int rank, const int64_t *dims)
{
    Tensor *t = tensor_new(&c->arena, type_tensor(&c->ir.types, dtype, rank, dims));
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, (double)i + 0.5);
    return t;
}

/* The entries as a reader of zip files finds them: from the end. */
static Status bytes(void *arg)
{
    Context *c = arg;
    Text t;
    const int64_t dims[] = { 2, 3 };
    const NamedTensor arrays[] = {
        { "grad.w", counting(c, F32, 2, dims) },
        { "loss", counting(c, F64, 0, NULL) },
        { "\xc3\xa9/0", counting(c, I64, 1, dims) },
    };
    text_open(&t, &c->arena);
    assert_int_equal(npz_write(&c->arena, (Sink){ into_text, &t }, arrays, COUNT(arrays)), OK);
    const char *end = t.p + t.n - 22;
    assert_int_equal(little(end, 4), 0x06054b50);
    assert_int_equal(little(end + 10, 2), COUNT(arrays));
    const char *entry = t.p + little(end + 16, 4);
    assert_int_equal(entry + little(end + 12, 4) - t.p, end - t.p);
    for (size_t i = 0; i < COUNT(arrays); i++) {
        const size_t size = little(entry + 20, 4), name = little(entry + 28, 2);
        const char *local = t.p + little(entry + 42, 4), *data = local + 30 + name;
        assert_int_equal(little(entry, 4), 0x02014b50);
        assert_memory_equal(entry + 46, arrays[i].name, name - 4);
        assert_memory_equal(entry + 46 + name - 4, ".npy", 4);
        assert_int_equal(little(entry + 8, 2), i == 2 ? 1 << 11 : 0);
        assert_int_equal(little(entry + 12, 4), 0x00210000); /* no day of ours */
        assert_memory_equal(local + 4, entry + 6, 26);
        assert_memory_equal(local + 30, entry + 46, name);
        assert_int_equal(little(entry + 16, 4), crc32(0, (const unsigned char *)data, (unsigned)size));
        assert_memory_equal(data, "\x93NUMPY\x01\x00", 8);
        assert_memory_equal(data + size - arrays[i].tensor->bytes, arrays[i].tensor->data, arrays[i].tensor->bytes);
        entry += 46 + name;
    }
    assert_ptr_equal(entry, end);
    return OK;
}

static Status put_word(void *user, Sink to)
{
    return to.put(to.user, user, strlen(user));
}

/* More entries than 16 bits count: the 64-bit record says how many, and where it is. */
static Status many(void *arg)
{
    Context *c = arg;
    ZipWriter z;
    Text t;
    text_open(&t, &c->arena);
    zip_begin(&z, &c->arena, (Sink){ into_text, &t }, 0);
    for (int i = 0; i < 66000; i++)
        assert_int_equal(zip_add(&z, "x", put_word, "y"), OK);
    assert_int_equal(zip_end(&z), OK);
    const char *end = t.p + t.n - 22, *locator = end - 20, *wide = locator - 56;
    assert_int_equal(little(end + 10, 2), 0xffff);
    assert_int_equal(little(locator, 4), 0x07064b50);
    assert_int_equal(little(locator + 8, 8), wide - t.p);
    assert_int_equal(little(wide, 4), 0x06064b50);
    assert_int_equal(little(wide + 32, 8), 66000);
    assert_int_equal(little(wide + 40, 8), 66000 * 47);
    assert_int_equal(little(t.p + little(wide + 48, 8), 4), 0x02014b50);
    return OK;
}

static void test_bytes(void **state)
{
    (void)state;
    with_context(bytes);
}

static void test_many(void **state)
{
    (void)state;
    with_context(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bytes), cmocka_unit_test(test_many) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
