/* Strings, text under construction, and the one shape of messages. */
#include "base/diag.h"

#include <stdio.h>
#include <string.h>

#include "unit/check.h"
#undef fail /* ours reports to the user */

typedef struct Bench {
    Memory memory;
    Arena a;
    Text t;
} Bench;

static void bench_open(Bench *b)
{
    memory_open(&b->memory, NULL);
    arena_open(&b->a, &b->memory);
    text_open(&b->t, &b->a);
}

static void check_text(Bench *b, const char *want)
{
    assert_string_equal(text_get(&b->t), want);
    assert_int_equal(b->t.n, strlen(want));
    arena_close(&b->a);
    assert_true(b->memory.used == 0);
}

static void pieces_add_up(void **state)
{
    (void)state;
    Bench b;
    bench_open(&b);
    assert_string_equal(text_get(&b.t), "");
    text_add(&b.t, "one");
    text_char(&b.t, ' ');
    text_bytes(&b.t, "twothree", 3);
    text_printf(&b.t, " %d", 3);
    text_linef(&b.t, " %s", "four");
    text_add(&b.t, "ab");
    text_pad(&b.t, 4);
    text_pad(&b.t, 2);
    text_count(&b.t, 1234567);
    text_char(&b.t, ' ');
    text_count(&b.t, -1000);
    text_char(&b.t, ' ');
    text_count(&b.t, INT64_MIN);
    text_char(&b.t, ' ');
    text_count(&b.t, 0);
    check_text(&b, "one two 3 four\nab  1,234,567 -1,000 -9,223,372,036,854,775,808 0");
}

static void long_formats_are_whole(void **state)
{
    (void)state;
    Bench b;
    char want[5002];
    memset(want, ' ', 5000);
    strcpy(want + 4999, "x\n");
    bench_open(&b);
    text_linef(&b.t, "%5000s", "x");
    check_text(&b, want);
}

static void quoting(void **state)
{
    (void)state;
    Bench b;
    bench_open(&b);
    text_quote(&b.t, "a\"b\\c\n\t\x01\x7f\xff\xc3\xa9", 12);
    text_char(&b.t, ' ');
    text_escape(&b.t, "a\"b\\c\n\xe2\x80\xae", 9, 100); /* a direction override would deceive */
    text_char(&b.t, ' ');
    text_escape(&b.t, "abcdef", 6, 4);
    check_text(&b, "\"a\\\"b\\\\c\\n\\t\\x01\\x7f\\xff\xc3\xa9\" a\"b\\c\\x0a\\xe2\\x80\\xae abcd...");
}

static void json_strings(void **state)
{
    (void)state;
    Bench b;
    bench_open(&b);
    text_json(&b.t, "a\"b\\c\n\x01\x7f\xc3\xa9", 10);
    text_char(&b.t, ' ');
    text_json(&b.t, "a\xff\"", 3);
    text_json(&b.t, "", 0);
    check_text(&b, "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\xc3\xa9\" \"a\\\\xff\\\"\"\"\"");
}

static void utf8(void **state)
{
    (void)state;
    static const char *const good[] = { "", "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf" };
    static const char *const bad[] = {
        "\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "a\xffz"
    };
    for (size_t i = 0; i < COUNT(good); i++)
        assert_true(str_is_utf8(str(good[i])));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_false(str_is_utf8(str(bad[i])));
    assert_false(str_is_utf8((Str){ "a\0b", 3 }));
}

static void nearest_words(void **state)
{
    (void)state;
    static const char *const words[] = { "matmul", "relu", "softmax", "add", "x" };
    assert_string_equal(str_nearest("matnul", words, COUNT(words)), "matmul");
    assert_string_equal(str_nearest("Relu", words, COUNT(words)), "relu");
    assert_string_equal(str_nearest("softmx", words, COUNT(words)), "softmax");
    assert_string_equal(str_nearest("ad", words, COUNT(words)), "add");
    assert_null(str_nearest("convolution", words, COUNT(words)));
    assert_null(str_nearest("y", words, COUNT(words)));
    assert_null(str_nearest("", words, COUNT(words)));
    assert_int_equal(str_distance("kitten", "sitting", 5), 3);
    assert_int_equal(str_distance("kitten", "sitting", 2), 3); /* more than 2 */
    assert_int_equal(str_distance("", "abc", 9), 3);
}

/* ---- messages ---- */

static void keep(void *user, const Message *m)
{
    message_print(user, m);
}

static void messages_have_one_shape(void **state)
{
    (void)state;
    Bench b;
    Diag d;
    bench_open(&b);
    diag_open(&d, &b.a, keep, &b.t);
    d.file = "model.onnx";
    assert_int_equal(fail(&d, (Place){ .where = "node 17 /fc/Gelu", .byte = -1 }, "no operator %s", "Gelu"), INVALID);
    assert_int_equal(fail_as(&d, USAGE, (Place){ .file = "x.npy", .byte = 8 }, "ends early"), USAGE);
    assert_int_equal(warn(&d, NOWHERE, "slow"), OK);
    remark(&d, "fold", NOWHERE, "3 nodes");
    Message *m = message_new(&d, SEVERITY_ERROR, UNSUPPORTED,
                             (Place){ .file = "a.qir", .line = 2, .column = 3, .byte = -1, .source = "  %x" }, "bad");
    for (int i = 0; i < 22; i++)
        message_at(m, "node %d", i);
    message_try(m, "--dim n=%d", 4);
    assert_int_equal(message_send(m), UNSUPPORTED);
    assert_int_equal(d.n_errors, 3);
    assert_int_equal(d.n_warnings, 1);
    check_text(&b, "model.onnx: node 17 /fc/Gelu: no operator Gelu\n"
                   "x.npy: byte 8: ends early\n"
                   "model.onnx: warning: slow\n"
                   "model.onnx: remark: 3 nodes\n"
                   "a.qir:2:3: bad\n"
                   "      %x\n"
                   "      ^\n"
                   "  at: node 0, node 1, node 2, node 3, node 4, node 5, node 6, node 7, node 8, node 9, node 10, "
                   "node 11, node 12, node 13, node 14, node 15, node 16, node 17, node 18, node 19 and 2 more\n"
                   "  try: --dim n=4\n");
}

/* A NaN has no sign that means anything; names keep theirs. */
static void nan_has_no_sign(void **state)
{
    (void)state;
    Bench b;
    const double nan = -__builtin_nan("");
    bench_open(&b);
    text_printf(&b.t, "|g| %.3g  min %g, x=%g (%5.1f) %g.", nan, nan, nan, nan, nan);
    text_printf(&b.t, " %s %g", "f/-nan x-nan -nano", nan);
    text_printf(&b.t, " %s", "-nan");
    text_printf(&b.t, " %300s%g", "", nan);
    text_add(&b.t, arena_printf(&b.a, " %d%% %e", 1, nan));
    char want[512];
    snprintf(want, sizeof want, "|g| nan  min nan, x=nan ( nan) nan. f/-nan x-nan -nano nan -nan %300snan 1%% nan", "");
    check_text(&b, want);
}

static void warnings_may_be_errors(void **state)
{
    (void)state;
    Bench b;
    Diag d;
    bench_open(&b);
    diag_open(&d, &b.a, keep, &b.t);
    d.warnings_are_errors = true;
    assert_int_equal(warn(&d, NOWHERE, "slow"), INVALID);
    assert_int_equal(d.n_errors, 1);
    check_text(&b, "slow\n");
}

static void names_in_messages_are_escaped(void **state)
{
    (void)state;
    Bench b;
    Diag d;
    bench_open(&b);
    diag_open(&d, &b.a, keep, &b.t);
    (void)fail(&d, (Place){ .file = "m\n.onnx", .where = "node \x1b[31m", .byte = -1 }, "named %s", "a\nb");
    check_text(&b, "m\\x0a.onnx: node \\x1b[31m: named a\\x0ab\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_add_up),
        cmocka_unit_test(long_formats_are_whole),
        cmocka_unit_test(quoting),
        cmocka_unit_test(json_strings),
        cmocka_unit_test(utf8),
        cmocka_unit_test(nearest_words),
        cmocka_unit_test(messages_have_one_shape),
        cmocka_unit_test(nan_has_no_sign),
        cmocka_unit_test(warnings_may_be_errors),
        cmocka_unit_test(names_in_messages_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
