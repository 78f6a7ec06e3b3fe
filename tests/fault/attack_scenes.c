#include "fault/attack_scenes.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DATA    "--data x.npy --target y.npy --batch 4 "
#define TRAIN   "train m.onnx " DATA "--steps 6 --lr 0.01 --progress none "
#define OTHER   "train m.onnx " DATA "--steps 3 --lr 0.02 --progress none "
#define DIVERGE "train m.onnx " DATA "--steps 6 --optimizer sgd:lr=3e38 --progress none --every 1 --checkpoint run "
#define FOLDER  TRAIN "--val-split 0.2 --every 2 --keep 2 --checkpoint run --log log.jsonl "
#define OVER    FOLDER "--overwrite --seed 2 "
#define ALL     FOLDER "--tensorboard board --gradients g.npz -o o.onnx "

/* clang-format off */
const Scene attack_scenes[] = {
    { .name = "compile", .before = "o.onnx -o step.onnx --batch 4", .command = "m.onnx -o step.onnx --batch 8" },
    { .name = "compile beside", .before = "m.onnx --batch 4", .command = "m.onnx --batch 8" },
    { .name = "compile external", .before = "f.onnx -o sub/s.onnx --batch 4", .command = "e.onnx -o sub/s.onnx --batch 4",
      .probe = "run sub/s.onnx --input x=x.npy --output logits=probe.npy" },
    { .name = "emit ir", .before = "o.onnx --emit ir -o m.txt", .command = "m.onnx --emit ir -o m.txt" },
    { .name = "emit onnx", .before = "other.qir --emit onnx -o n.onnx", .command = "toy.qir --emit onnx -o n.onnx" },
    { .name = "emit external", .before = "other.qir --emit onnx --limits small -o p.onnx",
      .command = "toy.qir --emit onnx --limits small -o p.onnx",
      .probe = "run p.onnx --input x=x.npy --output logits=probe.npy" },
    { .name = "emit json", .before = "o.onnx --emit json -o m.json", .command = "m.onnx --emit json -o m.json" },
    { .name = "emit dot", .before = "o.onnx --emit dot --batch 2 -o m.dot", .command = "m.onnx --emit dot -o m.dot" },
    { .name = "emit html", .before = "o.onnx --emit html --batch 2 -o m.html", .command = "m.onnx --emit html -o m.html" },
    { .name = "emit step", .before = "o.onnx --emit onnx-step --batch 2 -o p.onnx",
      .command = "m.onnx --emit onnx-step --batch 4 -o p.onnx" },
    { .name = "export", .before = "export o.onnx -o d.onnx", .command = "export m.onnx -o d.onnx" },
    { .name = "export narrow", .before = "export o.onnx --dtype fp16 -o d.onnx",
      .command = "export m.onnx --dtype bf16 -o d.onnx" },
    { .name = "export external", .before = "export f.onnx -o sub/d.onnx", .command = "export e.onnx -o sub/d.onnx",
      .probe = "run sub/d.onnx --input x=x.npy --output logits=probe.npy" },
    { .name = "export verified", .before = "export s.onnx --checkpoint b.safetensors -o d.onnx",
      .command = "export s.onnx --checkpoint a.safetensors -o d.onnx --verify x=x.npy,target=y.npy" },
    { .name = "train", .before = OTHER "--no-save --log log.jsonl --tensorboard board --gradients g.npz -o o.onnx",
      .command = ALL, .again = ALL "--resume", .steps = 6 },
    { .name = "train on", .before = ALL "--stop-if step>2.5", .command = ALL "--resume", .steps = 6 },
    { .name = "train anew", .before = FOLDER "--stop-if step>4.5", .command = OVER, .steps = 6 },
    { .name = "train a file", .command = TRAIN "--every 2 --checkpoint run.safetensors",
      .again = TRAIN "--every 2 --checkpoint run.safetensors --resume", .steps = 6 },
    { .name = "train a file on", .before = TRAIN "--checkpoint run.safetensors --stop-if step>2.5",
      .command = TRAIN "--every 2 --checkpoint run.safetensors --resume", .steps = 6 },
    { .name = "train a file anew", .before = OTHER "--checkpoint run.safetensors",
      .command = TRAIN "--every 2 --checkpoint run.safetensors --overwrite", .steps = 6 },
    { .name = "train a state", .command = TRAIN "-o o.safetensors", .again = TRAIN "-o o.safetensors --overwrite",
      .steps = 6 },
    { .name = "train a state anew", .before = OTHER "-o o.safetensors",
      .command = TRAIN "-o o.safetensors --overwrite", .steps = 6 },
    { .name = "train only", .command = TRAIN, .again = TRAIN "--overwrite", .steps = 6 },
    { .name = "train only anew", .before = OTHER, .command = TRAIN "--overwrite", .steps = 6 },
    { .name = "train external", .before = "train f.onnx " DATA "--steps 2 -o sub/t.onnx",
      .command = "train e.onnx " DATA "--steps 4 --lr 0.01 -o sub/t.onnx", .steps = 4,
      .probe = "run sub/t.onnx --input x=x.npy --output logits=probe.npy" },
    { .name = "train to divergence", .command = DIVERGE, .again = DIVERGE "--resume", .code = 1, .steps = 3 },
    { .name = "eval", .command = "eval s.onnx --data x.npy --target y.npy --checkpoint a.safetensors" },
    { .name = "run", .before = "run o.onnx --input x=x.npy --output logits=l.npy",
      .command = "run m.onnx --input x=x.npy --output logits=l.npy" },
    { .name = "run in words", .before = "run o.onnx --input x=x.npy -o words",
      .command = "run m.onnx --input x=x.npy -o words" },
    { .name = "check", .before = "check o.onnx -o words", .command = "check m.onnx s.onnx -o words" },
    { .name = "diff", .before = "diff o.onnx o.onnx -o words", .command = "diff m.onnx o.onnx -o words" },
    { .name = "explain", .before = "explain o.onnx -o words", .command = "explain s.onnx -o words" },
    { .name = "list", .before = "--list-ops grad -o words", .command = "--list-ops -o words" },
    { .name = "table", .before = "--print-table quant -o words", .command = "--print-table amp -o words" },
    { .name = "config", .before = "--print-config --seed 1 -o words", .command = "--print-config --config config -o words" },
    { .name = "help", .before = "--help -o words", .command = "--help=man -o words" },
};
/* clang-format on */
const int n_attack_scenes = sizeof attack_scenes / sizeof *attack_scenes;

const char *const attack_inputs[] = {
    "toy.qir --emit onnx -o m.onnx",
    "other.qir --emit onnx -o o.onnx",
    "toy.qir --emit onnx --limits small -o e.onnx",
    "other.qir --emit onnx --limits small -o f.onnx",
    "m.onnx --batch 4 -o s.onnx",
    "train s.onnx --data x.npy --target y.npy --steps 3 --progress none -o a.safetensors",
    "train s.onnx --data x.npy --target y.npy --steps 5 --progress none -o b.safetensors",
    NULL,
};

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

/* A layer of two sizes: the weights of the first stand beside a model that may not be large. */
static void write_model(const char *path, int seed)
{
    char text[1024];
    snprintf(text, sizeof text,
             "graph @toy(%%x: f32[?,8]) -> (%%logits) {\n"
             "    param %%fc1.weight: f32[48,8] = kaiming(seed=%d)\n"
             "    param %%fc1.bias: f32[48] = zeros\n"
             "    param %%fc2.weight: f32[4,48] = kaiming(seed=%d)\n"
             "    %%fc1: f32[?,48] = gemm(%%x, %%fc1.weight, %%fc1.bias, transB=true)\n"
             "    %%hidden: f32[?,48] = relu(%%fc1)\n"
             "    %%logits: f32[?,4] = gemm(%%hidden, %%fc2.weight, transB=true)\n"
             "}\n",
             seed, seed + 1);
    write_text(path, text);
}

static void write_npy(const char *path, const char *descr, const char *shape, const void *bytes, size_t n)
{
    char head[128];
    const int length =
        snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    FILE *f = fopen(path, "wb");
    if (!f)
        abort();
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fprintf(f, "%s%*s\n", head, 117 - length, "");
    if (fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        abort();
}

void attack_write_inputs(void)
{
    enum { SAMPLES = 24, WIDE = 8, CLASSES = 4 };
    float x[SAMPLES * WIDE];
    int64_t y[SAMPLES];
    uint32_t state = 7;
    for (int i = 0; i < SAMPLES * WIDE; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    for (int i = 0; i < SAMPLES; i++)
        y[i] = (x[i * WIDE] > 0) + 2 * (x[i * WIDE + 1] > 0) % CLASSES;
    write_npy("x.npy", "<f4", "24, 8", x, sizeof x);
    write_npy("y.npy", "<i8", "24,", y, sizeof y);
    write_model("toy.qir", 1);
    write_model("other.qir", 11);
    write_text("small", "model_bytes=2000\n");
    write_text("config", "seed = 3\n");
    if (mkdir("sub", 0777) != 0)
        abort();
}
