/* Event files for TensorBoard, decoded again by a reader that shares nothing with the writer. */
#include "testing.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/file.h"
#include "runtime/log/board.h"

static uint32_t slow_crc32c(const uint8_t *p, size_t n)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n * 8; i++) {
        const uint32_t bit = (c ^ p[i / 8] >> i % 8) & 1;
        c = c >> 1 ^ (bit ? 0x82f63b78u : 0);
    }
    return ~c;
}

static void test_checksum(void **state)
{
    (void)state;
    uint8_t bytes[300];
    assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
    for (int i = 0; i < 300; i++) {
        bytes[i] = (uint8_t)(i * 37 + 11);
        assert_int_equal(crc32c(bytes, (size_t)i), slow_crc32c(bytes, (size_t)i));
    }
}

/* ---- a reader ---- */

typedef struct Bytes {
    const uint8_t *p, *end;
} Bytes;

static uint64_t take_little(Bytes *b, int n)
{
    uint64_t v = 0;
    assert_true(b->end - b->p >= n);
    for (int i = 0; i < n; i++)
        v |= (uint64_t)*b->p++ << 8 * i;
    return v;
}

static uint64_t take_varint(Bytes *b)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(b->p < b->end && shift < 64);
        v |= (uint64_t)(*b->p & 0x7f) << shift;
        if (!(*b->p++ & 0x80))
            return v;
    }
}

static Bytes take_bytes(Bytes *b)
{
    const uint64_t n = take_varint(b);
    assert_true(n <= (uint64_t)(b->end - b->p));
    b->p += n;
    return (Bytes){ b->p - n, b->p };
}

static Bytes take_record(Bytes *b)
{
    const uint8_t *head = b->p;
    const uint64_t n = take_little(b, 8);
    uint32_t crc = slow_crc32c(head, 8);
    assert_int_equal(take_little(b, 4), (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u));
    assert_true(n <= (uint64_t)(b->end - b->p));
    const Bytes record = { b->p, b->p + n };
    b->p += n;
    crc = slow_crc32c(record.p, n);
    assert_int_equal(take_little(b, 4), (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u));
    return record;
}

static void print_bytes(Text *t, Bytes b)
{
    text_quote(t, (const char *)b.p, (size_t)(b.end - b.p));
}

/* Five numbers, then the ends of buckets, then what is in each that is not empty. */
static void print_histogram(Text *t, Bytes b)
{
    double limits[64] = { 0 };
    text_char(t, '{');
    while (b.p < b.end) {
        const uint64_t key = take_varint(&b);
        Bytes packed = (key & 7) == 2 ? take_bytes(&b) : b;
        for (int i = 0; packed.p < packed.end && i < 64; i++) {
            const uint64_t bits = take_little(&packed, 8);
            double x;
            memcpy(&x, &bits, 8);
            if (key == (6 << 3 | 2))
                limits[i] = x;
            else if (key == (7 << 3 | 2) && x > 0)
                text_printf(t, " %g up to %g", x, limits[i]);
            else if ((key & 7) == 1) {
                text_printf(t, " %g", x);
                b = packed;
                break;
            }
        }
    }
    text_add(t, " }");
}

static void print_value(Text *t, Bytes b)
{
    while (b.p < b.end) {
        const uint64_t key = take_varint(&b);
        if (key == (1 << 3 | 2)) {
            print_bytes(t, take_bytes(&b));
        } else if (key == (5 << 3 | 2)) {
            print_histogram(t, take_bytes(&b));
        } else {
            assert_int_equal(key, 2 << 3 | 5);
            const uint32_t bits = (uint32_t)take_little(&b, 4);
            float x;
            memcpy(&x, &bits, 4);
            text_printf(t, "=%g", (double)x);
        }
    }
}

static void print_event(Text *t, Bytes b)
{
    while (b.p < b.end) {
        const uint64_t key = take_varint(&b);
        if (key == (1 << 3 | 1)) {
            const uint64_t bits = take_little(&b, 8);
            double x;
            memcpy(&x, &bits, 8);
            text_printf(t, "at %g", x);
        } else if (key == (2 << 3 | 0)) {
            text_printf(t, " step %d", (int)take_varint(&b));
        } else if (key == (3 << 3 | 2)) {
            text_add(t, " version ");
            print_bytes(t, take_bytes(&b));
        } else if (key == (7 << 3 | 2)) {
            text_add(t, " session ");
            print_bytes(t, take_bytes(&b));
        } else {
            assert_int_equal(key, 5 << 3 | 2);
            for (Bytes s = take_bytes(&b); s.p < s.end;) {
                assert_int_equal(take_varint(&s), 1 << 3 | 2);
                text_char(t, ' ');
                print_value(t, take_bytes(&s));
            }
        }
    }
    text_char(t, '\n');
}

/* ---- what is written ---- */

static Status events(void *arg)
{
    Context *c = arg;
    Board a, b;
    Text t;
    Str bytes;
    char folder[] = "board.XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *inner = arena_printf(&c->arena, "%s/made", folder);
    assert_int_equal(board_open(&a, &c->memory, &c->diag, inner, 1700000000.5, -1), OK);
    assert_int_equal(board_open(&b, &c->memory, &c->diag, inner, 1700000000.5, 300), OK);
    assert_string_not_equal(a.path, b.path);
    assert_non_null(strstr(a.path, "/events.out.tfevents.1700000000."));
    const uint64_t used = c->memory.used;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(board_scalars(&b, 3, i, &(BoardScalar){ "loss", 1 }, 1), OK);
    assert_int_equal(c->memory.used, used);
    assert_int_equal(board_scalars(&a, 2.5, 300, (const BoardScalar[]){ { "train/loss", 0.5f }, { "lr", -1e-3f } }, 2),
                     OK);
    const double values[] = { -1, 0.5, INFINITY, 2, 0.25, NAN };
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 1, (int64_t[]){ 6 }));
    BoardHistogram spread[3];
    for (int i = 0; i < 6; i++)
        tensor_set_f64(x, i, values[i]);
    board_count(&spread[0], "w", x);
    Tensor *same = tensor_new(&c->arena, x->type);
    board_count(&spread[1], "zeros", same);
    for (int i = 0; i < 6; i++)
        tensor_set_f64(same, i, NAN);
    board_count(&spread[2], "none", same);
    assert_int_equal(board_histograms(&a, 3, 400, spread, 3), OK);
    text_open(&t, &c->arena);
    TRY(file_read(&c->arena, &c->diag, a.path, 1 << 20, "none", &bytes));
    for (Bytes all = { (const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n }; all.p < all.end;)
        print_event(&t, take_record(&all));
    assert_string_equal(text_get(&t),
                        "at 1.7e+09 version \"brain.Event:2\"\n"
                        "at 2.5 step 300 \"train/loss\"=0.5 \"lr\"=-0.001\n"
                        "at 3 step 400 \"w\"{ -1 2 4 1.75 5.3125 1 up to -0.9 1 up to 0.3 1 up to 0.6 1 up "
                        "to 2 } \"zeros\"{ 0 0 6 0 0 6 up to 0 } \"none\"{ 0 0 0 0 0 }\n");
    text_open(&t, &c->arena);
    TRY(file_read(&c->arena, &c->diag, b.path, 1 << 20, "none", &bytes));
    Bytes all = { (const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n };
    print_event(&t, take_record(&all));
    print_event(&t, take_record(&all));
    assert_string_equal(text_get(&t), "at 1.7e+09 version \"brain.Event:2\"\n"
                                      "at 1.7e+09 step 301 session \"\\x08\\x01\"\n");
    unlink(a.path);
    unlink(b.path);
    board_close(&a);
    board_close(&b);
    board_close(&b);
    assert_int_equal(rmdir(inner), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(board_open(&a, &c->memory, &c->diag, "no/such/folder", 0, -1), IO);
    return OK;
}

static void test_events(void **state)
{
    (void)state;
    with_context(events);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_checksum), cmocka_unit_test(test_events) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
