/* Calls that are asked to end while they work: each does so soon, with nothing lost and nothing half written.  Soon is
 * counted, not timed: in blocks of memory, reads and writes after the request. */
#include <dirent.h>
#include <unistd.h>

#include "embed/host.h"

#define MODELS QCC_SOURCE_DIR "/tests/command/models/"
#define MLP    MODELS "mlp.onnx"
#define GPT    QCC_SOURCE_DIR "/examples/models/gpt.qir"

enum { MOST_AFTER = 2 };

/* A host that asks for the end at the n-th thing that it is wanted for. */
typedef struct Stopper {
    qcc_context *context;
    size_t blocks, seen, stop_at, after;
} Stopper;

static void see(Stopper *s)
{
    s->after += s->stop_at && s->seen >= s->stop_at;
    if (++s->seen == s->stop_at)
        qcc_interrupt(s->context);
}

static void *stopper_alloc(void *user, size_t size)
{
    Stopper *s = user;
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);
    s->blocks += p != NULL;
    if (s->context)
        see(s);
    return p;
}

static void stopper_release(void *user, void *block, size_t size)
{
    Stopper *s = user;
    (void)size;
    s->blocks -= block != NULL;
    free(block);
}

static qcc_status drop(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return QCC_OK;
}

static qcc_status count_write(void *user, const void *bytes, size_t n)
{
    (void)bytes, (void)n;
    see(user);
    return QCC_OK;
}

static qcc_context *open_stopper(Stopper *s)
{
    const qcc_context_options o = {
        .size = sizeof o, .user = s, .alloc = stopper_alloc, .release = stopper_release, .threads = 1
    };
    qcc_context *cx = NULL;
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

/* ---- what is done ---- */

static char folder[] = "/tmp/qcc-stops-XXXXXX";
static char step_file[64], model_file[64];

/* A line of the command. */
static qcc_status command(qcc_context *cx, const char *const *words)
{
    const qcc_sink sink = { .write = drop };
    int n = 0;
    while (words[n])
        n++;
    return qcc_command(cx, n, words, &sink);
}

static const char *const lines[][8] = {
    { "qcc", "check", MLP, GPT },
    { "qcc", "explain", MLP, "--node", "fc1" },
    { "qcc", "explain", GPT, "--amp", "fp16" },
    { "qcc", "diff", MLP, MODELS "other.onnx", "--seed=3" },
    { "qcc", "run", MLP, "--input", "x=" MODELS "x.npy" },
    { "qcc", GPT, "--emit", "onnx", "-o", model_file },
    { "qcc", MLP, "--emit", "html", "-o", model_file },
    { "qcc", GPT, "--amp", "bf16", "-o", step_file },
    { "qcc", MLP, "--emit", "onnx-step", "-o", model_file, "--batch=2" },
    { "qcc", "export", MLP, "-o", model_file },
    { "qcc", "export", MLP, "--dtype", "bf16", "-o", model_file },
    { "qcc", "train", GPT, "--dry-run" },
};

/* A file's bytes; their number, 0 where there is none. */
static size_t bytes_of(const char *path, char *bytes, size_t most)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(bytes, 1, most, f) : 0;
    if (f)
        fclose(f);
    return n;
}

enum { MOST_BYTES = 1 << 20 };
static char whole[MOST_BYTES], found[MOST_BYTES];

/* What is written is there as a whole or not at all, and nothing beside it; `n` bytes of `whole` are the whole. */
static void folder_is_clean(const char *line, size_t n)
{
    DIR *d = opendir(folder);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (!strstr(". .. a.out a.step.onnx", e->d_name))
            fail_msg("%s left %s", line, e->d_name);
    closedir(d);
    const char *path = access(step_file, F_OK) == 0 ? step_file : model_file;
    const size_t got = bytes_of(path, found, sizeof found);
    if (access(path, F_OK) == 0 && (got != n || memcmp(found, whole, n) != 0))
        fail_msg("%s left %zu bytes of %zu", line, got, n);
}

static void remove_files(void)
{
    unlink(step_file);
    unlink(model_file);
}

/* Each line, asked to end at each block of memory (of long lines at ever fewer): interrupted, or through. */
static void commands_end_soon(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        size_t stopped = 0, seen = 0, most = 0, n_whole;
        Stopper patient = { 0 };
        qcc_context *first = open_stopper(&patient);
        assert_int_equal(command(first, lines[i]), QCC_OK);
        qcc_close(first);
        n_whole = bytes_of(access(step_file, F_OK) == 0 ? step_file : model_file, whole, sizeof whole);
        remove_files();
        for (size_t n = 1;; n += 1 + n / 64) {
            Stopper s = { .stop_at = n };
            qcc_context *cx = open_stopper(&s);
            s.context = cx;
            const qcc_status status = command(cx, lines[i]);
            const bool asked = s.seen >= n;
            if (status != QCC_INTERRUPTED && (status != QCC_OK || (asked && s.after)))
                fail_msg("%s %s: status %d, %zu blocks after block %zu", lines[i][1], lines[i][2], (int)status, s.after,
                         n);
            if (s.after > MOST_AFTER)
                fail_msg("%s %s: %zu more blocks after block %zu", lines[i][1], lines[i][2], s.after, n);
            if (status == QCC_INTERRUPTED)
                folder_is_clean(lines[i][1], n_whole);
            s.stop_at = 0;
            remove_files();
            if (stopped == 0) /* the context is as good as before */
                assert_int_equal(command(cx, lines[0]), QCC_OK);
            s.context = NULL;
            qcc_close(cx);
            assert_int_equal(s.blocks, 0);
            stopped += status == QCC_INTERRUPTED;
            most = s.after > most ? s.after : most;
            seen = s.seen;
            remove_files();
            if (!asked)
                break;
        }
        print_message("%s %s: %zu times, of %zu blocks; at most %zu after it\n", lines[i][1], lines[i][2], stopped,
                      seen, most);
        assert_true(stopped > 3);
    }
}

/* Writing ends at the next write. */
static void writers_end_soon(void **state)
{
    static const char *const kinds[] = { "ir", "onnx", "json", "dot", "html" };
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t n = 1; n < 40; n++) {
            Stopper s = { .stop_at = n };
            const qcc_sink sink = { .write = count_write, .user = &s };
            const qcc_source source = qcc_file(MLP);
            qcc_model *m;
            qcc_context *cx = open_stopper(&s);
            assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
            s.context = cx;
            s.seen = s.after = 0;
            const qcc_status status = qcc_emit(m, kinds[k], NULL, &sink);
            assert_true(status == QCC_INTERRUPTED || (status == QCC_OK && !s.after));
            assert_true(s.after <= MOST_AFTER);
            s.context = NULL;
            qcc_close(cx);
            assert_int_equal(s.blocks, 0);
            if (s.seen < n)
                break;
        }
}

typedef struct Read {
    Stopper *stopper;
    FILE *f;
} Read;

static qcc_status count_read(void *user, uint64_t offset, void *buffer, size_t n)
{
    Read *r = user;
    see(r->stopper);
    return fseek(r->f, (long)offset, SEEK_SET) == 0 && fread(buffer, 1, n, r->f) == n ? QCC_OK : QCC_IO;
}

/* Reading ends at the next read. */
static void readers_end_soon(void **state)
{
    (void)state;
    FILE *f = fopen(MLP, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    size_t stopped = 0;
    for (size_t n = 1; n < 40; n++) {
        Stopper s = { .stop_at = n };
        Read r = { &s, f };
        const qcc_source source = { .size = (uint64_t)size, .read = count_read, .user = &r, .name = "mlp.onnx" };
        qcc_model *m = NULL;
        qcc_context *cx = open_stopper(&s);
        s.context = cx;
        s.seen = s.after = 0;
        const qcc_status status = qcc_read(cx, &source, NULL, &m);
        assert_true(status == QCC_INTERRUPTED || (status == QCC_OK && !s.after));
        assert_true(s.after <= MOST_AFTER);
        stopped += status == QCC_INTERRUPTED;
        s.context = NULL;
        qcc_close(cx);
        assert_int_equal(s.blocks, 0);
        if (s.seen < n)
            break;
    }
    fclose(f);
    assert_true(stopped > 0);
}

/* A model that was asked to end runs again. */
static void a_model_runs_again(void **state)
{
    (void)state;
    Stopper s = { 0 };
    qcc_context *cx = open_stopper(&s);
    const qcc_source source = qcc_file(MLP);
    qcc_model *m;
    static float x[4] = { 1, 2, 3, 4 };
    qcc_tensor y = { .size = sizeof(qcc_tensor) }, in = { sizeof(qcc_tensor), QCC_F32, 2, { 1, 4 }, x, sizeof x };
    assert_int_equal(qcc_read(cx, &source, NULL, &m), QCC_OK);
    s.context = cx;
    s.stop_at = s.seen + 1;
    const qcc_status status = qcc_run_model(m, &in, 1, &y, 1);
    assert_int_equal(status, QCC_INTERRUPTED);
    s.stop_at = 0;
    qcc_interrupt(cx); /* between two calls it means nothing */
    assert_int_equal(qcc_run_model(m, &in, 1, &y, 1), QCC_OK);
    s.context = NULL;
    qcc_close(cx);
    assert_int_equal(s.blocks, 0);
}

int main(void)
{
    assert_non_null(mkdtemp(folder));
    snprintf(step_file, sizeof step_file, "%s/a.step.onnx", folder);
    snprintf(model_file, sizeof model_file, "%s/a.out", folder);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_end_soon),
        cmocka_unit_test(writers_end_soon),
        cmocka_unit_test(readers_end_soon),
        cmocka_unit_test(a_model_runs_again),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(folder);
    return failed;
}
