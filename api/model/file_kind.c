#include "api/model/file_kind.h"

#include <string.h>

/* Files that people hand us, and what to do about it. */
typedef struct Foreign {
    size_t at;
    const char *magic;
    size_t n;
    const char *what, *advice;
} Foreign;

#define MAGIC(text) text, sizeof text - 1

static const Foreign foreign[] = {
    { 0, MAGIC("\x80\x02"), "a Python pickle, as older PyTorch saves it",
      "torch.onnx.export(model, example, 'model.onnx')" },
    { 0, MAGIC("\x80\x03"), "a Python pickle", "torch.onnx.export(model, example, 'model.onnx')" },
    { 0, MAGIC("\x80\x04"), "a Python pickle", "torch.onnx.export(model, example, 'model.onnx')" },
    { 0, MAGIC("\x80\x05"), "a Python pickle", "torch.onnx.export(model, example, 'model.onnx')" },
    { 0, MAGIC("ptrt"), "a TensorRT engine", "the ONNX model that the engine was built from" },
    { 0, MAGIC("ftrt"), "a TensorRT engine", "the ONNX model that the engine was built from" },
    { 0, MAGIC("GGUF"), "a GGUF file: weights without a graph", "the ONNX export of the original model" },
    { 4, MAGIC("ORTM"), "an ONNX Runtime flatbuffer (.ort)", "the .onnx file that it was converted from" },
    { 4, MAGIC("ODTC"), "a checkpoint of ONNX Runtime training",
      "the forward model that you gave to generate_artifacts" },
    { 4, MAGIC("TFL3"), "a TensorFlow Lite model",
      "python3 -m tf2onnx.convert --tflite model.tflite --output model.onnx" },
    { 0, MAGIC("\x93NUMPY"), "a NumPy array, no model", "qcc run MODEL --input NAME=FILE.npy" },
    { 0, MAGIC("\x89HDF\r\n"), "an HDF5 file, as Keras saves it",
      "python3 -m tf2onnx.convert --keras model.h5 --output model.onnx" },
    { 0, MAGIC("\x1f\x8b"), "compressed with gzip", "gunzip" },
    { 0, MAGIC("version https://git-lfs"), "a Git LFS pointer, not the file itself", "git lfs pull" },
    { 0, MAGIC("<!DOCTYPE"), "a web page, not a model", "download the file itself" },
    { 0, MAGIC("<html"), "a web page, not a model", "download the file itself" },
    { 0,
      MAGIC("\x7f"
            "ELF"),
      "a program, not a model", NULL },
};

#undef MAGIC

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
        return say(d, name, "saved by torch.save (.pt, .pth)", "torch.onnx.export(model, example, 'model.onnx')");
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
    for (size_t i = 0; i < COUNT(foreign); i++)
        if (n >= foreign[i].at + foreign[i].n && memcmp(p + foreign[i].at, foreign[i].magic, foreign[i].n) == 0)
            return say(d, name, foreign[i].what, foreign[i].advice);
    if (is_safetensors(p, n))
        return say(d, name, "a safetensors file: weights without a graph", "the model that the weights belong to");
    *kind = is_text(p, n) ? FILE_TEXT : FILE_ONNX;
    return OK;
}
