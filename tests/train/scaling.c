/* Loss scaling by the command: steps that overflow are skipped as if they had not been, the scale finds its place, and
 * what no scale mends ends the run with the node that did it. */
#include <stdlib.h>
#include <string.h>

#include "train/command.h"

#define TOY "train toy.qir --data x.npy --target y.npy --batch 16 --no-shuffle --amp fp16 "
#define HOT "train toy.qir --data hot.npy --target y.npy --batch 16 --no-shuffle --amp fp16 "

enum { N = 103, WIDE = 8 };

/* Sample 57, in the fourth batch of 16, is `heat`; with `all` every one from there on. */
static void write_hot(float heat, bool all)
{
    static float x[N * WIDE];
    uint64_t state = 7;
    for (int i = 0; i < N * WIDE; i++)
        x[i] = (float)draw(&state);
    for (int i = 57; i < (all ? N : 58); i++)
        x[i * WIDE + 3] = heat;
    write_npy("hot.npy", "<f4", x, sizeof *x, 2, (int64_t[]){ N, WIDE });
}

/* ---- checkpoints, tensor by tensor ---- */

/* Where a tensor lies in a checkpoint; null when it is not there. */
static const char *tensor_at(const char *file, const char *name, size_t *bytes)
{
    char key[256];
    uint64_t head;
    memcpy(&head, file, sizeof head);
    snprintf(key, sizeof key, "\"%s\":{", name);
    const char *entry = strstr(file + 8, key), *at = entry ? strstr(entry, "\"data_offsets\":[") : NULL;
    unsigned long long from, to;
    if (!at || sscanf(at, "\"data_offsets\":[%llu,%llu]", &from, &to) != 2)
        return NULL;
    *bytes = (size_t)(to - from);
    return file + 8 + head + from;
}

/* Whether all tensors of two checkpoints are equal, but for the states of the scaler; and how many there were. */
static bool same_states(const char *a, const char *b, int *n)
{
    size_t na, nb;
    char *x = file_text(a, &na), *y = file_text(b, &nb);
    bool same = x && y && na == nb;
    *n = 0;
    for (const char *at = x ? x + 8 : NULL; same && at && (at = strstr(at, "\":{\"dtype\"")); at++) {
        char name[256] = "";
        size_t m = 0, k = 0;
        const char *first = at;
        while (first[-1] != '"')
            first--;
        snprintf(name, sizeof name, "%.*s", (int)(at - first), first);
        const char *p = tensor_at(x, name, &m), *q = tensor_at(y, name, &k);
        same = strncmp(name, "qcc.scale", 9) == 0 || (p && q && m == k && memcmp(p, q, m) == 0);
        ++*n;
    }
    free(x);
    free(y);
    return same;
}

/* ---- runs ---- */

/* A scale that is far too large comes down, and every step says what it did. */
static void finds_its_place(void)
{
    shell("rm -rf run");
    check(qcc(TOY
              "--loss-scale dynamic:init=16777216,interval=1000 --steps 24 --log l.jsonl --checkpoint run --every 1 "
              "--keep 30") == 0,
          "a scale that falls");
    check(file_has("out.txt", "step 1  skipped: gradient overflow, first in "), "the first step is not skipped");
    check(file_has("out.txt", "; loss scale 16777216 -> 8388608"), "the scale does not fall");
    check(!file_has("out.txt", "done             24 steps, 0 skipped") &&
              file_has("out.txt", "done             24 steps"),
          "nothing is counted");
    check(file_has("l.jsonl", "\"event\":\"skip\",\"step\":1,\"reason\":\"gradient overflow\",\"where\":\""),
          "the log names no culprit");
    check(file_has("l.jsonl", "\"loss_scale\":16777216,\"skipped\":1"), "step lines have no scale");
    check(file_count("l.jsonl", "\"event\":\"skip\"") == file_count("out.txt", "  skipped: "), "log and words differ");
    int n;
    check(same_states("run/step-00000001.safetensors", "run/step-00000002.safetensors", &n) && n > 8,
          "a skipped step changes a state");
    check(!same_states("run/step-00000023.safetensors", "run/step-00000024.safetensors", &n), "no step changes one");
    check(!file_has("run/step-00000024.safetensors", "qcc.shadow"), "a checkpoint holds shadows");
}

/* One inf in the data: the batch is skipped, statistics, averages and counters included, and the run goes on. */
static void skips_a_poisoned_batch(void)
{
    int n;
    shell("rm -rf run");
    write_hot(3e38f, false);
    check(qcc("train rich.qir --data hot.npy --target y.npy --batch 16 --no-shuffle --amp fp16 --ema 0.9 --schedule "
              "cosine --steps 8 --checkpoint run --every 1 --keep 20 --log l.jsonl") == 0,
          "one poisoned batch");
    check(file_has("out.txt", "step 4  skipped: loss not finite; loss scale 65536 -> 32768"), "not skipped");
    check(same_states("run/step-00000003.safetensors", "run/step-00000004.safetensors", &n) && n > 16,
          "the poisoned batch left something");
    check(!same_states("run/step-00000004.safetensors", "run/step-00000005.safetensors", &n), "nothing goes on");
}

/* Three forwards in a row: no scale mends that.  In f32 the same step is finite. */
static void stops_where_forward_overflows(void)
{
    shell("rm -rf run");
    write_hot(1e6f, true);
    check(qcc(HOT "--steps 40 --checkpoint run --log l.jsonl") == 1, "forwards that overflow go on for ever");
    check(file_count("out.txt", "  skipped: loss not finite") == 2, "not the third");
    check(file_has("out.txt", "step 6  stopped: the forward pass overflows fp16, no loss scale can help; step 3 was "
                              "the last good one"),
          "no word");
    check(file_has("out.txt",
                   "why      node x, input: +inf in 16 of 128 in the forward pass, stored as fp16; try --amp "
                   "bf16") ||
              file_has("out.txt", "+inf in 1"),
          "no culprit");
    check(file_has("out.txt", "next: qcc explain run/diverged-6"), "no way on");
    shell("grep '^why' out.txt >why.txt");
    check(qcc("explain run/diverged-6") == 0, "explain");
    check(shell("grep '^why' out.txt | cmp - why.txt") == 0, "explain gives another reason");
    check(file_has("out.txt", "in f32   the same step:") && file_has("out.txt", "finite: it is the narrow types"),
          "f32 is not told");

    write_text("inf.qir", "graph @inf(%x: f32[?,8]) -> (%logits) {\n"
                          "    param %w: f32[8,16] = normal(seed=1, scale=100)\n"
                          "    param %v: f32[16,4] = normal(seed=2, scale=100)\n"
                          "    %wide: f32[?,16] = matmul(%x, %w) node=\"/head/up.0/MatMul\"\n"
                          "    %logits: f32[?,4] = matmul(%wide, %v) node=\"/head/down(1)/MatMul\"\n"
                          "}\n");
    check(qcc("train inf.qir --data x.npy --target y.npy --batch 16 --amp fp16 --loss cross_entropy:logits,axis=1") ==
              1,
          "inf.qir");
    check(file_has("out.txt", "why      node /head/down(1)/MatMul, matmul: ") &&
              file_has("out.txt", "stored as fp16 (class T); try --keep-fp32 '/head/down\\(1\\)/MatMul' or --amp bf16"),
          "the node, its class and what mends it are not named");
    check(qcc("train inf.qir --data x.npy --target y.npy --batch 16 --amp fp16 --loss cross_entropy:logits,axis=1 "
              "--keep-fp32 '/head/down\\(1\\)/MatMul' --no-save") == 0,
          "what it says does not mend it");
}

/* Gradients that overflow at any scale: it falls to its last value, with a warning below the least, and the run ends. */
static void stops_where_the_scale_is_exhausted(void)
{
    write_text("steep.qir", "graph @steep(%x: f32[?,8]) -> (%y) {\n"
                            "    param %a: f32[8,8] = normal(seed=1, scale=1e-6)\n"
                            "    param %b: f32[8,8] = normal(seed=2, scale=20000)\n"
                            "    param %c: f32[8,1] = normal(seed=3, scale=20000)\n"
                            "    %h: f32[?,8] = matmul(%x, %a)\n"
                            "    %k: f32[?,8] = matmul(%h, %b)\n"
                            "    %y: f32[?,1] = matmul(%k, %c)\n"
                            "}\n");
    static float target[N];
    write_npy("t.npy", "<f4", target, sizeof *target, 2, (int64_t[]){ N, 1 });
    check(
        qcc("train steep.qir --data x.npy --target t.npy --batch 16 --amp fp16 --loss mse:y,reduction=sum --steps 60") ==
            1,
        "a scale falls for ever");
    check(file_has("err.txt", "skipped in a row, gradients overflow at loss scale 1"), "no warning");
    check(file_has("out.txt", "stopped: gradients overflow at loss scale 6.1035156e-5, which cannot fall; step 0"),
          "no word");
    check(file_has("out.txt", "first    grad."), "the first gradient is not named");
    check(
        qcc("train toy.qir --data x.npy --target y.npy --batch 16 --amp fp16 --loss-scale static:16777216 --steps 60") ==
            1,
        "a static scale that is too large");
    check(file_has("out.txt", "step 17  stopped: gradients overflow at loss scale 16777216, which cannot fall"),
          "not the seventeenth");
}

static void does_as_it_is_told(void)
{
    write_hot(3e38f, true);
    check(qcc(HOT "--steps 40 --on-nonfinite stop --no-save") == 1 && file_has("out.txt", "step 4  stopped: "), "stop");
    check(qcc(HOT "--steps 40 --on-nonfinite skip:1 --no-save") == 1 && file_has("out.txt", "step 5  stopped: "),
          "skip:1");
    check(qcc(HOT "--steps 40 --loss-scale off --no-save") == 1 && file_has("out.txt", "step 4  stopped: "),
          "off: the first one stops");
    check(qcc(HOT "--steps 3 --loss-scale dynamic:init=3") == 2, "a scale that is no power of two");
    check(qcc("train toy.qir --data x.npy --target y.npy --loss-scale static:8 --steps 1 --no-save") == 0 &&
              file_has("err.txt", "--loss-scale"),
          "a scale that does nothing is no word worth");
}

/* A checkpoint carries the scaler: a run without one cannot go on from it, and takes the weights alone. */
static void persists(void)
{
    shell("rm -rf run plain");
    check(qcc(TOY "--steps 5 --checkpoint run") == 0, "with a scale");
    check(qcc("train toy.qir --data x.npy --target y.npy --batch 16 --no-shuffle --amp bf16 --steps 9 --checkpoint run "
              "--resume=must") == 2,
          "resumed in another precision");
    check(file_has("err.txt", "--amp fp16") && file_has("err.txt", "--amp bf16"), "the options are not named");
    check(qcc(TOY "--loss-scale static:1024 --steps 9 --checkpoint run --resume=must") == 0, "another way of scaling");
    check(qcc("train toy.qir --data x.npy --target y.npy --batch 16 --amp bf16 --steps 9 --init "
              "run/step-00000005.safetensors --no-save") == 0,
          "the weights alone");
    check(qcc("train toy.qir --data x.npy --target y.npy --batch 16 --no-shuffle --steps 5 --checkpoint plain") == 0,
          "without a scale");
    check(qcc(TOY "--steps 9 --checkpoint plain --resume=must") == 2, "a scaler that is missing is made up");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(N);
    finds_its_place();
    skips_a_poisoned_batch();
    stops_where_forward_overflows();
    stops_where_the_scale_is_exhausted();
    does_as_it_is_told();
    persists();
    return finish();
}
