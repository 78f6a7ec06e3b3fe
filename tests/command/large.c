/* Models whose weights are far larger than memory: 4 GiB beside the file, 1.9 GiB inside it, both as holes that take no
 * disk.  `qcc explain` must answer at once and stay small.
 *
 *     large QCC FOLDER */
#include "onnx_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const uint64_t mega = 1 << 20;

static Bytes value_info(const char *name, uint64_t n)
{
    Bytes dim = { 0 }, shape = { 0 }, tensor = { 0 }, type = { 0 }, info = { 0 };
    put_int(&dim, 1, n);
    put_message(&shape, 1, dim);
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, shape);
    put_message(&type, 1, tensor);
    put_text(&info, 1, name);
    put_message(&info, 2, type);
    return info;
}

/* Everything of the graph but its initializers. */
static Bytes graph_of(uint64_t n, bool small)
{
    Bytes node = { 0 }, graph = { 0 };
    put_text(&node, 1, "x");
    put_text(&node, 1, "w0");
    put_text(&node, 2, small ? "sum" : "y");
    put_text(&node, 4, "Add");
    put_message(&graph, 1, node);
    if (small) { /* and a weight of few bytes, which looking at a model must not read either */
        Bytes other = { 0 };
        put_text(&other, 1, "sum");
        put_text(&other, 1, "w8");
        put_text(&other, 2, "y");
        put_text(&other, 4, "Mul");
        put_message(&graph, 1, other);
    }
    put_text(&graph, 2, "large");
    put_message(&graph, 11, value_info("x", n));
    put_message(&graph, 12, value_info("y", n));
    return graph;
}

static Bytes tensor_head(int i, uint64_t n)
{
    char name[16];
    Bytes t = { 0 };
    snprintf(name, sizeof name, "w%d", i);
    put_int(&t, 1, n);
    put_int(&t, 2, 1);
    put_text(&t, 8, name);
    return t;
}

static void write_bytes(int fd, const Bytes *b)
{
    if (write(fd, b->p, b->n) != (ssize_t)b->n)
        abort();
}

static int create(const char *folder, const char *name)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        perror(path);
        exit(2);
    }
    return fd;
}

static void finish(int fd, const Bytes *graph, uint64_t graph_bytes, void (*weights)(int fd, void *arg), void *arg)
{
    Bytes head = { 0 }, opset = { 0 };
    put_int(&opset, 2, 17);
    put_int(&head, 1, 8);
    put_message(&head, 8, opset);
    put_key(&head, 7, 2);
    put_varint(&head, graph_bytes);
    write_bytes(fd, &head);
    write_bytes(fd, graph);
    if (weights)
        weights(fd, arg);
    close(fd);
    free(head.p);
}

/* Eight tensors of 512 MiB and a small one in a file beside the model, with a checksum that is wrong. */
static void make_external(const char *folder)
{
    const uint64_t n = 128 * mega;
    Bytes graph = graph_of(n, true);
    for (int i = 0; i < 9; i++) {
        char offset[32], length[32];
        const uint64_t elements = i < 8 ? n : 1;
        Bytes t = tensor_head(i, elements);
        snprintf(offset, sizeof offset, "%llu", (unsigned long long)(512 * mega * (uint64_t)(i % 8)));
        snprintf(length, sizeof length, "%llu", (unsigned long long)(4 * elements));
        put_entry(&t, "location", "weights.bin");
        put_entry(&t, "offset", offset);
        put_entry(&t, "length", length);
        put_entry(&t, "checksum", "0000000000000000000000000000000000000000"); /* who reads any of it is told so */
        put_int(&t, 14, 1);
        put_message(&graph, 5, t);
    }
    finish(create(folder, "external.onnx"), &graph, graph.n, NULL, NULL);
    const int fd = create(folder, "weights.bin");
    if (ftruncate(fd, (off_t)(4096 * mega)) != 0)
        exit(2);
    close(fd);
    free(graph.p);
}

typedef struct Inline {
    Bytes heads[2];
    uint64_t bytes;
} Inline;

static void write_inline(int fd, void *arg)
{
    const Inline *w = arg;
    for (int i = 0; i < 2; i++) {
        write_bytes(fd, &w->heads[i]);
        const off_t at = lseek(fd, (off_t)w->bytes, SEEK_CUR);
        if (at < 0 || ftruncate(fd, at) != 0)
            exit(2);
    }
}

/* Two tensors of 960 MiB inside the model. */
static void make_inline(const char *folder)
{
    Inline w = { .bytes = 960 * mega };
    Bytes graph = graph_of(w.bytes / 4, false);
    uint64_t all = graph.n;
    for (int i = 0; i < 2; i++) {
        Bytes t = tensor_head(i, w.bytes / 4);
        put_key(&t, 9, 2);
        put_varint(&t, w.bytes);
        put_key(&w.heads[i], 5, 2);
        put_varint(&w.heads[i], t.n + w.bytes);
        put(&w.heads[i], t.p, t.n);
        free(t.p);
        all += w.heads[i].n + w.bytes;
    }
    finish(create(folder, "inline.onnx"), &graph, all, write_inline, &w);
    free(graph.p);
    free(w.heads[0].p);
    free(w.heads[1].p);
}

static bool explain(const char *qcc, const char *folder, const char *name)
{
    char path[1000];
    struct timespec before, after;
    struct rusage use;
    int status;
    const int said = create(folder, "said");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    clock_gettime(CLOCK_MONOTONIC, &before);
    const pid_t child = fork();
    if (child == 0) {
        dup2(said, STDERR_FILENO);
        execl(qcc, qcc, "explain", path, (char *)NULL);
        _exit(127);
    }
    if (wait4(child, &status, 0, &use) != child)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &after);
    const double seconds = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
    const bool silent = lseek(said, 0, SEEK_END) == 0;
    close(said);
    printf("%s: exit %d, %.3f s, %ld kB resident\n", name, WEXITSTATUS(status), seconds, use.ru_maxrss);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 && silent &&
           use.ru_maxrss < 100000 /* time is for bench/: it would fail on a busy machine */;
}

int main(int argc, char **argv)
{
    char folder[1000];
    if (argc != 3)
        return 2;
    snprintf(folder, sizeof folder, "%s/large.XXXXXX", argv[2]);
    if (!mkdtemp(folder))
        return 2;
    make_external(folder);
    make_inline(folder);
    const bool external = explain(argv[1], folder, "external.onnx"), inside = explain(argv[1], folder, "inline.onnx");
    static const char *const files[] = { "external.onnx", "inline.onnx", "weights.bin", "said" };
    for (int i = 0; i < 4; i++) {
        char path[1100];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
    return external && inside ? 0 : 1;
}
