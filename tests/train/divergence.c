/* Steps that are not finite: stopped with what they were, replayed, or skipped as if they had not been. */
#include <stdlib.h>
#include <string.h>

#include "train/command.h"

#define HOT "train toy.qir --data hot.npy --target y.npy --batch 16 --no-shuffle "

/* Sample 57, in the fourth batch of 16, overflows; with `all` every one from there on. */
static void write_hot(bool all)
{
    enum { N = 103 };
    static float x[N * 8];
    uint64_t state = 7;
    for (int i = 0; i < N * 8; i++)
        x[i] = (float)draw(&state);
    for (int i = 57; i < (all ? N : 58); i++)
        x[i * 8 + 3] = 3e38f;
    write_npy("hot.npy", "<f4", x, sizeof *x, 2, (int64_t[]){ N, 8 });
}

/* The tensors of a checkpoint without what it says of itself. */
static bool same_tensors(const char *a, const char *b)
{
    size_t na = 0, nb = 0;
    uint64_t ha = 0, hb = 0;
    char *x = file_text(a, &na), *y = file_text(b, &nb);
    if (x && y && na > 8 && nb > 8) {
        memcpy(&ha, x, 8);
        memcpy(&hb, y, 8);
    }
    const bool same = ha && hb && na - ha == nb - hb && memcmp(x + 8 + ha, y + 8 + hb, na - 8 - ha) == 0;
    free(x);
    free(y);
    return same;
}

static void stops(void)
{
    write_hot(false);
    check(qcc(HOT "--steps 3 -o three.safetensors") == 0, "three steps");
    check(qcc(HOT "--steps 40 --log l.jsonl") == 1, "a run that diverges is no success");
    check(file_has("out.txt", "step 4  stopped: the gradients are not finite; step 3 was the last good one"),
          "no word");
    check(file_has("out.txt", "why "), "no reason");
    check(file_has("out.txt", "next: qcc explain diverged-4"), "no way on");
    check(file_has("l.jsonl", "\"grad_norm\":\"inf\"") && file_has("l.jsonl", "\"reason\":\"diverged\""), "no log");
    check(same_files("diverged-4/state.safetensors", "three.safetensors"),
          "the bundle is not the state before the step");
    check(same_files("toy.trained.safetensors", "three.safetensors"), "what is left is not the state before the step");
    check(is_there("diverged-4/batch.npz") && file_has("diverged-4/options.txt", "--no-shuffle"),
          "no batch, no options");

    check(qcc(HOT "--steps 40 -q --no-save") == 1 && file_count("err.txt", "\n") == 1, "-q: not one line");
    check(file_has("err.txt", "toy.qir: step 4  stopped: the gradients are not finite"), "-q: not that line");
    check(qcc(HOT "--steps 40") == 1, "once more");
    check(!is_there("diverged-4.2"), "the same run leaves the same step twice");
    check(same_files("toy.trained.safetensors", "toy.trained-2.safetensors"), "the states of the first run");

    shell("grep '^why' out.txt >why.txt");
    check(qcc("explain diverged-4") == 0, "explain");
    check(file_has("out.txt", "step 4 of toy.qir"), "explain does not say what it replays");
    check(shell("grep '^why' out.txt | cmp - why.txt") == 0, "explain gives another reason");

    shell("rm -rf run");
    check(qcc(HOT "--steps 40 --checkpoint run") == 1, "in a folder");
    check(same_tensors("run/step-00000003.safetensors", "three.safetensors"),
          "the last good step is not in the folder");
    check(qcc("explain run/diverged-4") == 0, "explain in a folder");
    check(qcc(HOT "--steps 40 --checkpoint run --resume") == 1 && file_has("out.txt", "step 4  stopped"), "resumed");
}

/* The forward pass overflows: the node that did it has a name. */
static void names_the_node(void)
{
    shell("cp diverged-4/state.safetensors kept.safetensors");
    write_text("inf.qir", "graph @inf(%x: f32[?,8]) -> (%logits) {\n"
                          "    param %w: f32[8,4] = kaiming(seed=1)\n"
                          "    %wide: f32[?,4] = matmul(%x, %w) node=\"/head/MatMul\"\n"
                          "    %logits: f32[?,4] = exp(%wide) node=\"/head/Exp\"\n"
                          "}\n");
    check(
        qcc("train inf.qir --data hot.npy --target y.npy --batch 16 --no-shuffle --loss cross_entropy:logits,axis=1") ==
            1,
        "inf.qir");
    check(file_has("out.txt", "the loss is not finite"), "the loss");
    check(file_has("out.txt", "why      node /head/"), "the node is not named");
    check(file_has("out.txt", "in the forward pass"), "the pass is not named");
    check(qcc("explain diverged-4.2") == 0 && file_has("out.txt", "why      node /head/"),
          "explain does not name the node");
    check(same_files("diverged-4/state.safetensors", "kept.safetensors"), "what another run left has not stayed");
}

static void skips(void)
{
    shell("rm -rf run l.jsonl");
    write_hot(false);
    check(qcc(HOT "--steps 8 --on-nonfinite skip:3 --ema 0.9 --checkpoint run --every 1 --keep 20 --log l.jsonl") == 0,
          "skip:3");
    check(same_tensors("run/step-00000003.safetensors", "run/step-00000004.safetensors"),
          "a skipped step changes states");
    check(!same_tensors("run/step-00000004.safetensors", "run/step-00000005.safetensors"), "no step changes anything");
    check(file_count("l.jsonl", "\"event\":\"skip\"") == 1 && file_has("out.txt", " 1 skipped"), "not counted");
    shell("rm -rf run");
    write_hot(true);
    check(qcc(HOT "--steps 40 --on-nonfinite skip:2 --checkpoint run") == 1, "skip:2 goes on for ever");
    check(file_has("out.txt", "step 6  stopped") && file_has("out.txt", "step 3 was the last good one"),
          "not the third");
    check(file_has("out.txt", " 2 skipped"), "skipped steps are not counted");
    check(qcc("explain run/diverged-6") == 0, "explain run/diverged-6");
    check(qcc(HOT "--on-nonfinite skip:0") == 2 && qcc(HOT "--on-nonfinite maybe") == 2, "nonsense is taken");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(103);
    stops();
    names_the_node();
    skips();
    return finish();
}
