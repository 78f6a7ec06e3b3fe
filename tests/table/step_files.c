/* Every stored model that compiles as it is, through the library: its STEP.onnx is read again to the letter, as a file
 * and as text, and gives back the model that stands in front of it.
 *
 *     step_files           compares
 *     step_files FOLDER    writes the steps there, for other programs to look at */
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "qcc/qcc.h"
#include "testing.h"

static const char *const places[] = { "tests/data/torch/*.onnx", "tests/data/exports/*.onnx", "examples/models/*.qir" };

/* The one that says by itself what it is trained for would be a guess: its loss is said. */
static const char *options_of(const char *path)
{
    return strstr(path, "regress") ? "--loss mse" : "";
}

typedef struct Bytes {
    char *p;
    size_t n;
} Bytes;

static qcc_status append(void *user, const void *p, size_t n)
{
    Bytes *b = user;
    b->p = realloc(b->p, b->n + n + 1);
    assert_non_null(b->p);
    memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = 0;
    return QCC_OK;
}

static void report(void *user, const qcc_message *m)
{
    (void)user;
    if (m->severity == QCC_ERROR)
        print_error("%s", m->text);
}

static qcc_context *open_context(void)
{
    qcc_context *cx;
    const qcc_context_options o = { .size = sizeof o, .report = report, .threads = 1 };
    assert_int_equal(qcc_open(&o, &cx), QCC_OK);
    return cx;
}

/* One command in this process; what it wrote to standard output. */
static Bytes command(qcc_context *cx, int n, const char *const *words)
{
    Bytes out = { NULL, 0 };
    const qcc_sink sink = { .write = append, .user = &out };
    const qcc_status status = qcc_command(cx, n, words, &sink);
    if (status != QCC_OK)
        print_error("%s: status %d\n", words[1], status);
    assert_int_equal(status, QCC_OK);
    return out;
}

static void same(const char *what, const char *path, Bytes a, Bytes b)
{
    if (a.n != b.n || memcmp(a.p, b.p, a.n) != 0)
        print_error("%s: %s\n", path, what);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
}

static void write_file(const char *path, Bytes b)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b.p, 1, b.n, f), b.n);
    assert_int_equal(fclose(f), 0);
}

#define COMMAND(...)                                                                                                   \
    command(cx, (int)COUNT(((const char *[]){ "qcc", __VA_ARGS__ })), (const char *[]){ "qcc", __VA_ARGS__ })

static void compile(qcc_context *cx, const char *path, const char *step)
{
    qcc_model *m;
    qcc_step *s;
    const qcc_source from = qcc_file(path);
    const qcc_sink to = qcc_to_file(step);
    assert_int_equal(qcc_read(cx, &from, "", &m), QCC_OK);
    assert_int_equal(qcc_compile(m, options_of(path), &s), QCC_OK);
    assert_int_equal(qcc_write_step(s, &to), QCC_OK);
    qcc_step_free(s);
    qcc_model_free(m);
}

/* The step as it was compiled, as it is read from the file, and as it is read from its own text. */
static void compare(qcc_context *cx, const char *path, const char *folder)
{
    char step[512], text[512];
    const bool says = *options_of(path) != 0;
    snprintf(step, sizeof step, "%s/x.step.onnx", folder);
    snprintf(text, sizeof text, "%s/x.qir", folder);
    compile(cx, path, step);
    Bytes compiled =
        says ? COMMAND(path, "--loss", "mse", "--emit", "ir") : COMMAND(path, "--tie", "auto", "--emit", "ir");
    Bytes read = COMMAND(step, "--emit", "ir");
    same("the step is read otherwise than it was compiled", path, read, compiled);
    write_file(text, compiled);
    Bytes twice = COMMAND(text, "--emit", "ir");
    same("the text is read otherwise", path, twice, compiled);
    Bytes model = COMMAND(path, "--export", "-o", "-"), front = COMMAND(step, "--export", "-o", "-");
    if (!strstr(path, "external")) /* where weights lie beside a file depends on its folder */
        same("another model comes out", path, front, model);
    Bytes *all[] = { &compiled, &read, &twice, &model, &front };
    for (size_t i = 0; i < COUNT(all); i++)
        free(all[i]->p);
    unlink(step);
    unlink(text);
}

static size_t each(void (*visit)(qcc_context *cx, const char *path, const char *folder), const char *folder)
{
    size_t n = 0;
    for (size_t i = 0; i < COUNT(places); i++) {
        glob_t found;
        char pattern[512];
        snprintf(pattern, sizeof pattern, QCC_SOURCE_DIR "/%s", places[i]);
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t k = 0; k < found.gl_pathc; k++, n++) {
            qcc_context *cx = open_context();
            visit(cx, found.gl_pathv[k], folder);
            qcc_close(cx);
        }
        globfree(&found);
    }
    return n;
}

static void steps_are_read_to_the_letter(void **state)
{
    char folder[] = "/tmp/qcc.steps.XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    const size_t n = each(compare, folder);
    rmdir(folder);
    print_message("%zu models\n", n);
    assert_true(n > 60);
}

/* FOLDER/NAME.step.onnx, and FOLDER/NAME.flat.onnx, the step alone. */
static void write_both(qcc_context *cx, const char *path, const char *folder)
{
    char to[512];
    const char *name = strrchr(path, '/') + 1;
    snprintf(to, sizeof to, "%s/%.*s.step.onnx", folder, (int)strcspn(name, "."), name);
    compile(cx, path, to);
    Bytes flat = COMMAND(to, "--emit", "onnx-step", "-o", "-");
    snprintf(to, sizeof to, "%s/%.*s.flat.onnx", folder, (int)strcspn(name, "."), name);
    write_file(to, flat);
    free(flat.p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(steps_are_read_to_the_letter) };
    if (argc == 2) {
        each(write_both, argv[1]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
