/* What programs over the library share: models to read, places for bytes, and some work for one context. */
#ifndef TESTS_EMBED_MODELS_H
#define TESTS_EMBED_MODELS_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "embed/host.h"

#define MODELS QCC_SOURCE_DIR "/tests/command/models/"
#define MLP    MODELS "mlp.onnx"

static inline qcc_status read_file(qcc_context *cx, const char *path, qcc_model **model)
{
    const qcc_source source = qcc_file(path);
    return qcc_read(cx, &source, NULL, model);
}

static inline qcc_tensor x_tensor(void)
{
    static float x[12] = { 0, .25f, .5f, .75f, 1, 1.25f, 1.5f, 1.75f, 2, 2.25f, 2.5f, 2.75f };
    return (qcc_tensor){ sizeof(qcc_tensor), QCC_F32, 2, { 3, 4 }, x, sizeof x };
}

typedef struct Buffer {
    char p[4096];
    size_t n;
} Buffer;

static inline qcc_status to_buffer(void *user, const void *bytes, size_t n)
{
    Buffer *b = user;
    if (n > sizeof b->p - b->n)
        return QCC_IO;
    memcpy(b->p + b->n, bytes, n);
    b->n += n;
    return QCC_OK;
}

static inline size_t whole_file(const char *path, char *out, size_t most)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    const ssize_t n = read(fd, out, most);
    close(fd);
    assert_true(n > 0);
    return (size_t)n;
}

static inline qcc_status from_memory(void *user, uint64_t offset, void *buffer, size_t n)
{
    memcpy(buffer, (const char *)user + offset, n);
    return QCC_OK;
}

/* Reads, runs, prints, and some commands. */
static inline qcc_status work(qcc_context *cx, qcc_model **m, Buffer *out)
{
    const qcc_tensor x = x_tensor();
    const qcc_sink sink = { .write = to_buffer, .user = out };
    const char *const lines[][5] = {
        { "qcc", "explain", MLP, "--node", "fc1" },
        { "qcc", "diff", MLP, MODELS "other.onnx", "--seed=3" },
        { "qcc", "run", MODELS "two.onnx", "--input", "a=" MODELS "a.npy" },
        { "qcc", MODELS "fixed.onnx", "--batch=3", "--emit", "ir" },
    };
    static const qcc_status want[] = { QCC_OK, QCC_OK, QCC_USAGE, QCC_OK };
    qcc_tensor y = { .size = sizeof(qcc_tensor) };
    qcc_status status = read_file(cx, MLP, m);
    if (status == QCC_OK)
        status = qcc_run_model(*m, &x, 1, &y, 1);
    if (status == QCC_OK)
        status = qcc_emit(*m, "ir", NULL, &sink);
    for (size_t i = 0; status == QCC_OK && i < sizeof want / sizeof *want; i++) {
        out->n = 0;
        status = qcc_command(cx, 5, lines[i], &sink);
        if (status == want[i])
            status = QCC_OK;
    }
    return status;
}

#endif
