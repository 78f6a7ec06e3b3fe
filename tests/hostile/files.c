/* M35 to M39: files that lead elsewhere, change, end early or cannot be read. */
#include "hostile/corpus.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* y = Neg(w), where w: f32[n] lies in a file. */
static Bytes external(int n, const char *location, const char *offset, const char *length)
{
    Bytes model = { 0 }, set = { 0 }, graph = { 0 }, t = { 0 }, node = { 0 }, out = { 0 };
    const char *const pairs[][2] = { { "location", location }, { "offset", offset }, { "length", length } };
    put_int(&t, 1, (uint64_t)n);
    put_int(&t, 2, 1);
    put_text(&t, 8, "w");
    for (size_t i = 0; i < COUNT(pairs); i++) {
        Bytes entry = { 0 };
        if (!pairs[i][1])
            continue;
        put_text(&entry, 1, pairs[i][0]);
        put_text(&entry, 2, pairs[i][1]);
        put_message(&t, 13, entry);
    }
    put_int(&t, 14, 1);
    put_message(&graph, 5, t);
    put_text(&node, 1, "w");
    put_text(&node, 2, "y");
    put_text(&node, 4, "Neg");
    put_message(&graph, 1, node);
    put_text(&out, 1, "y");
    put_message(&graph, 12, out);
    put_int(&set, 2, 20);
    put_message(&model, 8, set);
    put_message(&model, 7, graph);
    return model;
}

/* Runs a model of the folder whose data lies at `location`. */
static void with_data(Corpus *c, const char *name, int want, const char *says, const char *location, const char *offset,
                      const char *length)
{
    char path[4096];
    Bytes model = external(4, location, offset, length);
    corpus_write(c, "model.onnx", model.p, model.n, path);
    corpus_file(c, name, want, says, path);
    unlink(path);
    free(model.p);
}

static void make_odd_files(const char *folder)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char path[4096], to[4096];
    bool good = fd >= 0;
#define AT(name) (snprintf(path, sizeof path, "%s/%s", folder, name), path)
    good = good && mkdir(AT("sub"), 0700) == 0 && mkfifo(AT("fifo"), 0600) == 0;
    good = good && symlink("data", AT("link")) == 0 && symlink("/etc/passwd", AT("absolute_link")) == 0;
    good = good && symlink("sub", AT("linked_folder")) == 0 && symlink("nowhere", AT("dangling")) == 0;
    snprintf(to, sizeof to, "%s/data", folder);
    good = good && link(to, AT("hard")) == 0;
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    good = good && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    close(fd);
    if (!good)
        abort();
}

static void remove_odd_files(const char *folder)
{
    static const char *const names[] = { "fifo", "link",   "absolute_link", "linked_folder", "dangling",
                                         "hard", "socket", "data",          "own",           "sub/data" };
    char path[4096];
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/sub", folder);
    rmdir(path);
}

static void paths(Corpus *c)
{
    static const struct {
        const char *location;
        int want;
    } cases[] = {
        { "own", 0 },
        { "sub/data", 0 },
        { "./own", 0 },
        { "../own", 3 },
        { "sub/../own", 3 },
        { "/etc/passwd", 3 },
        { "/proc/self/mem", 3 },
        { "/dev/zero", 3 },
        { "//own", 3 },
        { "link", 5 },
        { "absolute_link", 5 },
        { "linked_folder/data", 5 },
        { "dangling", 5 },
        { "hard", 5 },
        { "fifo", 5 },
        { "socket", 5 },
        { "sub", 5 },
        { "own/", 5 },
        { "OWN", 5 },
        { "nowhere", 5 },
        { "", 3 },
        { ".", 5 },
        { "..", 3 },
        { "sub//data", 0 },
        { "own\\..\\own", 5 },
        { "C:\\own", 5 },
        { "file:///own", 5 },
        { "*", 5 },
    };
    static const float data[4] = { 1, 2, 3, 4 };
    char path[4096], name[100], longest[5001];
    corpus_write(c, "data", data, sizeof data, path);
    corpus_write(c, "own", data, sizeof data, path);
    make_odd_files(c->folder);
    corpus_write(c, "sub/data", data, sizeof data, path);
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(name, sizeof name, "path %s", cases[i].location);
        with_data(c, name, cases[i].want, cases[i].want ? "external data" : NULL, cases[i].location, NULL, NULL);
    }
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    with_data(c, "a path of 5000 bytes", 3, "", longest, NULL, NULL);
    with_data(c, "a path that is not UTF-8", 3, "", "\xff\xfe", NULL, NULL);
    with_data(c, "no path", 3, "location", NULL, "0", "16");
    for (size_t i = 0; i < 4; i++) { /* the model itself */
        static const char *const models[] = { "fifo", "sub", "socket", "dangling" };
        snprintf(path, sizeof path, "%s/%s", c->folder, models[i]);
        corpus_file(c, models[i], 5, "", path);
    }
    remove_odd_files(c->folder);
}

static void ranges(Corpus *c)
{
    static const struct {
        const char *offset, *length;
        int want;
    } cases[] = {
        { "0", "16", 0 },
        { "16", "16", 0 },
        { "17", "16", 3 },
        { "32", "16", 3 },
        { "0", "17", 3 },
        { "0", "15", 3 },
        { "0", "0", 3 },
        { "-1", "16", 3 },
        { "0", "-16", 3 },
        { "9223372036854775807", "16", 3 },
        { "18446744073709551600", "16", 3 },
        { "18446744073709551616", "16", 3 },
        { "4503599627370496", "16", 3 },
        { "0", "9223372036854775807", 3 },
        { "0x10", "16", 3 },
        { "1e1", "16", 3 },
        { " 0", "16", 3 },
        { "", "16", 3 },
        { "zero", "16", 3 },
        { "0", "sixteen", 3 },
    };
    char path[4096], name[100];
    static const char data[32];
    corpus_write(c, "own", data, sizeof data, path);
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(name, sizeof name, "offset '%s' length '%s'", cases[i].offset, cases[i].length);
        with_data(c, name, cases[i].want, cases[i].want ? "external data" : NULL, "own", cases[i].offset,
                  cases[i].length);
    }
    unlink(path);
}

/* ---- files that move ---- */

typedef struct Swap {
    char path[4096], good[4096], bad[4096], odd[4096];
    volatile int stop;
} Swap;

/* Puts a good file, a short one and a link in the place of the data, over and over. */
static void *swap(void *arg)
{
    Swap *s = arg;
    char next[4200];
    const char *const from[] = { s->good, s->bad, s->odd };
    snprintf(next, sizeof next, "%s.next", s->path);
    for (unsigned i = 0; !s->stop; i++) {
        const char *source = from[i % 3];
        unlink(next);
        if (source == s->odd ? symlink("/etc/passwd", next) : link(source, next))
            continue;
        if (i % 2 && source != s->odd) { /* a file of its own, so that it has one name */
            const int fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
            if (fd >= 0) {
                (void)!write(fd, "0123456789abcdef", source == s->good ? 16 : 3);
                close(fd);
            }
        }
        rename(next, s->path);
    }
    unlink(next);
    return NULL;
}

static int read_and_run(Corpus *c, const char *path)
{
    qcc_context *cx = corpus_open(c);
    qcc_model *m = NULL;
    qcc_tensor y = { .size = sizeof(qcc_tensor) };
    const qcc_source source = qcc_file(path);
    qcc_status status = qcc_read(cx, &source, NULL, &m);
    if (status == QCC_OK)
        status = qcc_run_model(m, NULL, 0, &y, 1);
    qcc_model_free(m);
    if (!corpus_close(c, cx))
        corpus_judge(c, path, false, "memory is left");
    return (int)status;
}

static void swaps(Corpus *c)
{
    enum { TIMES = 150 };
    Swap s = { .stop = 0 };
    pthread_t thread;
    char model[4096];
    Bytes bytes = external(4, "own", "0", "16");
    corpus_write(c, "model.onnx", bytes.p, bytes.n, model);
    corpus_write(c, "good", "0123456789abcdef", 16, s.good);
    corpus_write(c, "bad", "012", 3, s.bad);
    snprintf(s.path, sizeof s.path, "%s/own", c->folder);
    if (pthread_create(&thread, NULL, swap, &s) != 0)
        abort();
    for (int i = 0; i < TIMES; i++) {
        const int got = read_and_run(c, model);
        corpus_judge(c, "data swapped while it is read", got == QCC_OK || got == QCC_INVALID || got == QCC_IO, c->said);
        corpus_judge(c, "a refusal says why", got == QCC_OK || c->said[0], "nothing was said");
    }
    s.stop = 1;
    pthread_join(thread, NULL);
    c->cases[36]++;
    unlink(s.path);
    unlink(s.good);
    unlink(s.bad);
    unlink(model);
    free(bytes.p);
}

/* What a test does to a file between opening and evaluating. */
typedef enum Change { SHORTER, LONGER, OTHER_BYTES, GONE, REPLACED, CHANGES } Change;

static void change_file(const char *path, Change how)
{
    const int fd = open(path, O_WRONLY);
    struct timespec times[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
    if (fd < 0)
        abort();
    if (how == SHORTER && ftruncate(fd, 5) != 0)
        abort();
    if (how == LONGER && ftruncate(fd, 500) != 0)
        abort();
    if (how == OTHER_BYTES && (pwrite(fd, "zzzz", 4, 0) != 4 || futimens(fd, times) != 0))
        abort();
    close(fd);
    if ((how == GONE || how == REPLACED) && unlink(path) != 0)
        abort();
    if (how == REPLACED) {
        const int other = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (other < 0 || write(other, "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", 32) != 32)
            abort();
        close(other);
    }
}

static void changes(Corpus *c)
{
    static const char *const names[] = { "shorter", "longer", "other bytes", "gone", "replaced" };
    enum { N = 300000 }; /* too many to be read before they are needed */
    static float values[N];
    char data[4096], model[4096];
    for (int inside = 0; inside < 2; inside++) {
        for (int how = 0; how < CHANGES; how++) {
            Bytes bytes =
                inside ? sketch_model("init w f32[300000]=1*; y = Neg(w); out y") : external(N, "own", NULL, NULL);
            corpus_write(c, "own", values, sizeof values, data);
            corpus_write(c, "model.onnx", bytes.p, bytes.n, model);
            qcc_context *cx = corpus_open(c);
            qcc_model *m = NULL;
            qcc_tensor y = { .size = sizeof(qcc_tensor) };
            const qcc_source source = qcc_file(model);
            qcc_status status = qcc_read(cx, &source, NULL, &m);
            change_file(inside ? model : data, (Change)how);
            if (status == QCC_OK)
                status = qcc_run_model(m, NULL, 0, &y, 1);
            /* a name that is gone leaves the open file as it was */
            const bool may_work = how >= GONE;
            corpus_judge(c, names[how], status == QCC_IO || status == QCC_INVALID || (may_work && status == QCC_OK),
                         qcc_status_name(status));
            corpus_judge(c, names[how], status == QCC_OK || c->said[0], "nothing was said");
            qcc_model_free(m);
            corpus_judge(c, names[how], corpus_close(c, cx), "memory is left");
            c->cases[38]++;
            free(bytes.p);
            unlink(data);
            unlink(model);
        }
    }
}

/* ---- reads that fail ---- */

typedef struct Failing {
    Bytes bytes;
    int fails_at, n; /* which read fails; reads so far */
} Failing;

static qcc_status failing_read(void *user, uint64_t offset, void *buffer, size_t n)
{
    Failing *f = user;
    if (++f->n == f->fails_at)
        return QCC_IO;
    if (offset > f->bytes.n || n > f->bytes.n - offset)
        return QCC_IO;
    memcpy(buffer, f->bytes.p + offset, n);
    return QCC_OK;
}

static void reads(Corpus *c)
{
    Failing f = { .bytes = sketch_model("init w f32[40000]=1*; in x f32[40000]; y = Add(w,x); out y") };
    int passed = 0;
    for (f.fails_at = 1; !passed && f.fails_at < 1000; f.fails_at++) {
        f.n = 0;
        qcc_context *cx = corpus_open(c);
        qcc_model *m = NULL;
        const qcc_source source = { .read = failing_read, .user = &f, .size = f.bytes.n, .name = "host" };
        qcc_tensor y = { .size = sizeof(qcc_tensor) },
                   x = { .size = sizeof(qcc_tensor), .dtype = QCC_F32, .rank = 1, .dims = { 40000 }, .bytes = 160000 };
        x.data = calloc(1, x.bytes);
        qcc_status status = qcc_read(cx, &source, NULL, &m);
        if (status == QCC_OK)
            status = qcc_run_model(m, &x, 1, &y, 1);
        passed = f.n < f.fails_at;
        corpus_judge(c, "the n-th read fails", passed ? status == QCC_OK : status == QCC_IO || status == QCC_INVALID,
                     qcc_status_name(status));
        corpus_judge(c, "the n-th read fails", passed || strstr(c->said, "host"), c->said);
        qcc_model_free(m);
        free(x.data);
        corpus_judge(c, "the n-th read fails", corpus_close(c, cx), "memory is left");
        c->cases[39]++;
    }
    corpus_judge(c, "reads", passed, "it never succeeds");
    free(f.bytes.p);
}

static void resources(Corpus *c)
{
    char path[4096], data[4096];
    struct rlimit old, none;
    corpus_write(c, "big.onnx", "\x08\x0a", 2, path);
    if (truncate(path, INT64_C(1) << 43) == 0)
        corpus_file(c, "a sparse model of 8 TiB", 3, "model_bytes", path);
    if (truncate(path, INT64_C(1) << 31) == 0)
        corpus_file(c, "a sparse model of 2 GiB", 3, "model_bytes", path);
    unlink(path);
    corpus_write(c, "own", "0123456789abcdef", 16, data);
    if (truncate(data, INT64_C(1) << 43) == 0)
        with_data(c, "16 bytes of a file of 8 TiB", 0, NULL, "own", "8796093022000", "16");
    getrlimit(RLIMIT_NOFILE, &old);
    none = old;
    Bytes model = external(4, "own", NULL, NULL);
    corpus_write(c, "model.onnx", model.p, model.n, path);
    const int lowest = dup(0);
    none.rlim_cur = (rlim_t)lowest;
    close(lowest);
    setrlimit(RLIMIT_NOFILE, &none);
    corpus_file(c, "no file descriptors", 5, "", path);
    setrlimit(RLIMIT_NOFILE, &old);
    unlink(path);
    unlink(data);
    free(model.p);
}

void file_classes(Corpus *c)
{
    if (c->large)
        return;
    if (corpus_class(c, 35))
        paths(c);
    if (corpus_class(c, 36))
        swaps(c);
    if (corpus_class(c, 37))
        ranges(c);
    if (corpus_class(c, 38))
        changes(c);
    if (corpus_class(c, 39)) {
        reads(c);
        resources(c);
    }
}
