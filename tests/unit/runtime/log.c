/* Logs: what a line says, and what is left of a log when a run goes on. */
#include "testing.h"

#include <fcntl.h>
#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/log/log.h"

static const char *line_of(Context *c, const LogStep *step, const LogExtra *extra, size_t n)
{
    Text t;
    text_open(&t, &c->arena);
    log_step_line(&t, step, extra, n);
    return text_get(&t);
}

static Status lines(void *arg)
{
    Context *c = arg;
    Text t;
    assert_string_equal(
        line_of(c, &(LogStep){ .step = logged_int(3), .loss = logged_f32(0.1f), .lr = logged_f64(1e-4) }, NULL, 0),
        "{\"step\":3,\"loss\":0.1,\"lr\":0.0001}\n");
    assert_string_equal(line_of(c, &(LogStep){ .loss = logged_f32(NAN), .grad_norm = logged_f32(-INFINITY) },
                                &(LogExtra){ "val/acc \"x\"", logged_f64(INFINITY) }, 1),
                        "{\"loss\":\"nan\",\"grad_norm\":\"-inf\",\"val/acc \\\"x\\\"\":\"inf\"}\n");
    assert_string_equal(line_of(c, &(LogStep){ 0 }, NULL, 0), "{}\n");
    text_open(&t, &c->arena);
    log_start_line(&t, &(LogStart){ .run = logged_text("7c1e"), .device = logged_text("reference") }, NULL, 0);
    log_val_line(&t, &(LogVal){ .step = logged_int(-1), .best = logged_flag(true) }, NULL, 0);
    log_skip_line(&t, &(LogSkip){ .reason = logged_text(NULL) }, NULL, 0);
    log_save_line(&t, &(LogSave){ .file = logged_text("a\\b\n") }, NULL, 0);
    log_note_line(&t, &(LogNote){ .text = logged_text("\xff") }, NULL, 0);
    log_quant_line(&t, &(LogQuant){ .value = logged_text("relu1"), .clipped = logged_f64(0.25) }, NULL, 0);
    log_end_line(&t, &(LogEnd){ 0 }, NULL, 0);
    assert_string_equal(text_get(&t), "{\"schema\":1,\"event\":\"start\",\"run\":\"7c1e\",\"device\":\"reference\"}\n"
                                      "{\"event\":\"val\",\"step\":-1,\"best\":true}\n"
                                      "{\"event\":\"skip\"}\n"
                                      "{\"event\":\"save\",\"file\":\"a\\\\b\\u000a\"}\n"
                                      "{\"event\":\"note\",\"text\":\"\\\\xff\"}\n"
                                      "{\"event\":\"quant\",\"value\":\"relu1\",\"clipped\":0.25}\n"
                                      "{\"event\":\"end\"}\n");
    return OK;
}

/* 9 digits bring every f32 back, 17 every f64; the same under a locale that writes a comma. */
static Status numbers_come_back(void *arg)
{
    Context *c = arg;
    uint64_t bits = 88172645463325252u;
    setlocale(LC_ALL, "de_DE.UTF-8");
    for (int i = 0; i < 2000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double wide;
        float narrow;
        memcpy(&wide, &bits, 8);
        memcpy(&narrow, &bits, 4);
        if (!isfinite(wide) || !isfinite(narrow))
            continue;
        const char *text = line_of(c, &(LogStep){ .loss = logged_f32(narrow), .lr = logged_f64(wide) }, NULL, 0);
        json_t *o = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
        assert_non_null(o);
        const double loss = json_real_value(json_object_get(o, "loss")), lr = json_real_value(json_object_get(o, "lr"));
        json_decref(o);
        assert_true((float)loss == narrow && lr == wide);
        assert_true(strlen(text) < 64);
    }
    setlocale(LC_ALL, "C");
    return OK;
}

/* ---- files ---- */

static const char log_path[] = "log-test.jsonl";

static void put(const char *text)
{
    const int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static const char *now(Context *c)
{
    Str s = { "", 0 };
    assert_int_equal(file_read(&c->arena, &c->diag, log_path, 1 << 20, "none", &s), OK);
    return s.p;
}

#define START   "{\"schema\":1,\"event\":\"start\",\"run\":\"a\"}\n"
#define STEP(n) "{\"step\":" #n ",\"loss\":1}\n"
#define SAVE(n) "{\"event\":\"save\",\"step\":" #n "}\n"

static const struct {
    const char *before;
    int64_t step;
    const char *after; /* null: refused */
} rows[] = {
    { "", 5, "" },
    { START STEP(1) STEP(2), 2, START STEP(1) STEP(2) },
    { START STEP(1) STEP(2) SAVE(2) STEP(3) STEP(4), 2, START STEP(1) STEP(2) SAVE(2) },
    { START STEP(1) STEP(2) SAVE(2) STEP(3) "{\"step\":4,\"lo", 3, START STEP(1) STEP(2) SAVE(2) STEP(3) },
    { START STEP(9) STEP(10) "{\"event\":\"note\",\"text\":\"x\"}\n" STEP(11) START STEP(3), 9, START STEP(9) },
    { START STEP(1) "{\"event\":\"end\",\"step\":1}\n", 0, START },
    { START STEP(1) "{\"step\":2}", 5, START STEP(1) }, /* whole, but no newline says so */
    { "{\"schema\":1,\"ev", 5, "" },
    { "my notes\n", 5, NULL },
    { "my notes", 5, NULL },
    { "{\"step\":1}\n", 5, NULL },
    { "[1]\n" START, 5, NULL },
};

static Status resuming(void *arg)
{
    Context *c = arg;
    Log l;
    for (size_t i = 0; i < COUNT(rows); i++) {
        put(rows[i].before);
        const Status status = log_resume(&l, &c->memory, &c->diag, log_path, rows[i].step);
        assert_int_equal(status, rows[i].after ? OK : USAGE);
        assert_string_equal(now(c), rows[i].after ? rows[i].after : rows[i].before);
        if (status != OK) {
            assert_string_equal(c->last, "log-test.jsonl: is there, and is no log of qcc\n  try: --log another name\n");
            continue;
        }
        assert_int_equal(log_step(&l, &(LogStep){ .step = logged_int(7) }, NULL, 0), OK);
        log_close(&l);
        assert_string_equal(now(c), arena_printf(&c->arena, "%s{\"step\":7}\n", rows[i].after));
    }
    put(START STEP(1));
    assert_int_equal(log_open(&l, &c->memory, &c->diag, log_path), OK);
    log_close(&l);
    assert_string_equal(now(c), "");
    put("my notes\n");
    assert_int_equal(log_open(&l, &c->memory, &c->diag, log_path), USAGE);
    assert_string_equal(now(c), "my notes\n");
    unlink(log_path);
    log_close(&l); /* what was never opened */
    assert_int_equal(log_open(&l, &c->memory, &c->diag, "no/such/folder"), IO);
    return OK;
}

/* Long logs are cut where they should be, across the chunks that are read. */
static Status long_logs(void *arg)
{
    Context *c = arg;
    Log l;
    assert_int_equal(log_open(&l, &c->memory, &c->diag, log_path), OK);
    assert_int_equal(log_start(&l, &(LogStart){ .run = logged_text("a") }, NULL, 0), OK);
    const uint64_t used = c->memory.used;
    for (int i = 1; i <= 20000; i++)
        assert_int_equal(log_step(&l, &(LogStep){ .step = logged_int(i), .loss = logged_f32((float)i) }, NULL, 0), OK);
    assert_int_equal(c->memory.used, used);
    log_close(&l);
    assert_int_equal(log_resume(&l, &c->memory, &c->diag, log_path, 12345), OK);
    log_close(&l);
    const char *text = now(c), *tail = "{\"step\":12345,\"loss\":12345}\n";
    assert_string_equal(text + strlen(text) - strlen(tail), tail);
    unlink(log_path);
    return OK;
}

/* A full disk is an answer, not a signal, and leaves whole lines. */
static Status full_disk(void *arg)
{
    Context *c = arg;
    Log l;
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100;
    assert_int_equal(log_open(&l, &c->memory, &c->diag, log_path), OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    Status status = OK;
    for (int i = 1; i < 100 && status == OK; i++)
        status = log_step(&l, &(LogStep){ .step = logged_int(i) }, NULL, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, IO);
    log_close(&l);
    const char *text = now(c);
    assert_true(strlen(text) > 80 && text[strlen(text) - 1] == '\n');
    unlink(log_path);
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(lines)
TEST(numbers_come_back)
TEST(resuming)
TEST(long_logs)
TEST(full_disk)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),     cmocka_unit_test(test_numbers_come_back), cmocka_unit_test(test_resuming),
        cmocka_unit_test(test_long_logs), cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
