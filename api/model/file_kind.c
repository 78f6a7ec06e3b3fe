#include "api/model/file_kind.h"

#include <string.h>

#include "base/foreign.h"

static Status say(Diag *d, const char *name, const char *what, const char *advice)
{
    Message *m =
        message_new(d, SEVERITY_ERROR, INVALID, (Place){ .file = name, .byte = -1 }, "is no ONNX model: %s", what);
    if (advice)
        message_try(m, "%s", advice);
    return message_send(m);
}

static bool holds(const char *bytes, size_t n, const char *what)
{
    return memmem(bytes, n, what, strlen(what)) != NULL;
}

static Status say_zip(Diag *d, const char *name, const char *bytes, size_t n)
{
    if (holds(bytes, n, "data.pkl") || holds(bytes, n, "/version"))
        return say(d, name, foreign_torch()->what, foreign_torch()->for_model);
    if (holds(bytes, n, ".npy"))
        return say(d, name, "NumPy arrays (.npz), no model", NULL);
    if (holds(bytes, n, ".keras") || holds(bytes, n, "config.json"))
        return say(d, name, "a Keras archive", "python3 -m tf2onnx.convert --keras model.keras --output model.onnx");
    return say(d, name, "a zip archive", "unzip");
}

/* Text begins with `graph`, after comments and empty lines. */
static bool is_text(const char *p, size_t n)
{
    static const char word[] = "graph";
    size_t i = 0;
    while (i < n && (strchr(" \t\r\n", p[i]) || p[i] == '#')) {
        if (!p[i])
            return false;
        if (p[i] == '#')
            while (i + 1 < n && p[i + 1] != '\n')
                i++;
        i++;
    }
    return i == n ? n == KIND_BYTES && p[0] == '#'
                  : n - i >= sizeof word - 1 && memcmp(p + i, word, sizeof word - 1) == 0;
}

static bool is_safetensors(const char *p, size_t n)
{
    return n > 9 && memcmp(p + 3, "\0\0\0\0\0", 5) == 0 && p[8] == '{';
}

Status file_kind(Diag *d, const char *name, const void *bytes, size_t n, FileKind *kind)
{
    const char *p = bytes;
    n = n < KIND_BYTES ? n : KIND_BYTES;
    if (!n)
        return say(d, name, "it is empty", NULL);
    if (n >= 4 && memcmp(p, "PK\x03\x04", 4) == 0)
        return say_zip(d, name, p, n);
    const Foreign *foreign = foreign_find(bytes, n, 1);
    if (foreign)
        return say(d, name, foreign->what, foreign->for_model);
    if (is_safetensors(p, n))
        return say(d, name, "a safetensors file: weights without a graph", "the model that the weights belong to");
    *kind = is_text(p, n) ? FILE_TEXT : FILE_ONNX;
    return OK;
}
