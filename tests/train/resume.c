/* A run that is cut and resumed in a new process ends in the same bytes as one that was not.
 *
 *     resume QCC some|all        some: a few cuts; all: a cut behind every step */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "train/command.h"

enum { STEPS = 40 };

/* Seven batches an epoch, so that cuts fall on all places of one. */
static const struct {
    const char *name, *model, *options;
    bool length_counts; /* the length of the run is part of it: a schedule ends with it, or validation comes last */
} kinds[] = {
    { "adamw", "toy.qir", "", false },
    { "in order", "toy.qir", "--no-shuffle --last pad --seed 5 --optimizer momentum:lr=0.01", false },
    { "accumulated", "rich.qir", "--accumulate 2 --optimizer adam:lr=1e-2 --val-split 0.1", true },
    { "static beside", "beside.qir",
      "--data x=x.npy --data a=beside.csv:static --target y.npy --accumulate 2 --ema 0.9 --lr 1e-2", false },
    { "averaged", "rich.qir", "--ema 0.9 --lr 1e-2 --clip-norm 0.5", false },
    { "scheduled", "rich.qir", "--schedule cosine:warmup=5 --lr 1e-2", true },
    { "validated", "rich.qir", "--val x.npy --val-target y.npy --lr 1e-2 --last keep", true },
    { "split", "rich.qir", "--val-split 0.2 --metric f1 --best val_accuracy --optimizer lamb:lr=1e-2", true },
    { "scaled", "rich.qir", "--amp fp16 --loss-scale dynamic:init=2^24,interval=3 --on-nonfinite skip:30", false },
    { "skipping scaled", "toy.qir",
      "--data x=hot.npy --target y.npy --amp fp16 --clip-norm 1 --on-nonfinite skip:30 --lr 0.1", false },
    { "narrow", "rich.qir", "--amp bf16 --ema 0.9 --accumulate 2 --lr 1e-2", false },
    { "two optimizers", "rich.qir",
      "--optimizer adamw:lr=1e-2 --group 'fc2:optimizer=momentum,lr=0.1' --clip-norm 1 --ema 0.9 --amp fp16", false },
    { "weights first", "rich.qir", "--quant w8a8,phase=weights-first:17 --lr 1e-2 --clip-norm 1", false },
    { "statistics first", "rich.qir",
      "--quant w4a4,w=int4:channel:stats=9,a=uint8:asym:stats=23,phase=weights-first:13 --lr 1e-2 --ema 0.9", false },
    { "frozen ranges", "rich.qir", "--quant w8a8,a=uint8:asym:pct=99.9 --freeze-ranges 15 --lr 1e-2 --accumulate 2",
      false },
    { "codes", "rich.qir",
      "--quant int8-weights --optimizer adamw:lr=1e-2,states=8bit,states_min=32,sticky=true --accumulate 2", false },
    { "codes of groups", "toy.qir",
      "--quant w=uint4:group=2:asym:sr:stored,a=off --optimizer lion:lr=1e-2,states=4bit,states_min=32", false },
    { "codes, skipping", "toy.qir",
      "--data x=hot.npy --target y.npy --quant int8-weights --optimizer adamw:lr=0.1,states=fp8,states_min=32 "
      "--amp fp16 --on-nonfinite skip:30",
      false },
    { "numbers of bf16", "rich.qir", "--quant bf16-weights --lr 1e-2 --clip-norm 1", false },
    { "products of codes", "toy.qir",
      "--quant int8-matmul,first=8,last=8 --optimizer adamw:lr=1e-2,states=8bit,states_min=32", false },
    { "skipping", "toy.qir", "--data x=hot.npy --target y.npy --on-nonfinite skip:9 --lr 0.1", false },
};

/* A model with an input of as many rows as a micro-batch has, which are no samples. */
static void write_beside(void)
{
    write_text("beside.qir", "graph @beside(%x: f32[?,8], %a: f32[7,8]) -> (%logits) {\n"
                             "    param %w: f32[8,8] = kaiming(seed=1)\n"
                             "    param %v: f32[7,4] = kaiming(seed=2)\n"
                             "    %h: f32[?,8] = matmul(%x, %w)\n"
                             "    %t: f32[8,7] = transpose(%a, perm=[1, 0])\n"
                             "    %s: f32[?,7] = matmul(%h, %t)\n"
                             "    %logits: f32[?,4] = matmul(%s, %v)\n"
                             "}\n");
    shell("for i in 1 2 3 4 5 6 7; do echo 0.$i,1,-0.$i,0.5,$i,0,-1,0.25; done > beside.csv");
}

static const char *data_of(size_t i)
{
    return strstr(kinds[i].options, "--data") ? "" : "--data x.npy --target y.npy";
}

static void run_whole(size_t i)
{
    shell("rm -rf whole whole.safetensors");
    const int code = qcc("train %s %s --batch 14 --steps %d --every 9 --checkpoint whole.safetensors %s",
                         kinds[i].model, data_of(i), STEPS, kinds[i].options);
    check(code == 0, "%s: exit %d", kinds[i].name, code);
}

/* Where the length counts the run is stopped, elsewhere it is a shorter one. */
static void cut_at(size_t i, int k)
{
    char cut[64];
    if (kinds[i].length_counts)
        snprintf(cut, sizeof cut, "--steps %d --stop-if 'step>%g'", STEPS, k - 0.5);
    else
        snprintf(cut, sizeof cut, "--steps %d", k);
    shell("rm -rf cut.safetensors");
    int code = qcc("train %s %s --batch 14 %s --every 4 --checkpoint cut.safetensors %s", kinds[i].model, data_of(i),
                   cut, kinds[i].options);
    check(code == 0, "%s, cut at %d: exit %d", kinds[i].name, k, code);
    code = qcc("train %s %s --batch 14 --steps %d --threads 3 --resume=must --checkpoint cut.safetensors %s",
               kinds[i].model, data_of(i), STEPS, kinds[i].options);
    check(code == 0, "%s, resumed at %d: exit %d", kinds[i].name, k, code);
    check(same_files("whole.safetensors", "cut.safetensors"), "%s, cut at %d: other bytes", kinds[i].name, k);
}

/* Killed again and again at any moment, and resumed. */
static void kill_often(int number)
{
    static const char line[] = "train rich.qir --data x.npy --target y.npy --batch 4 --steps 400 --ema 0.99 "
                               "--schedule cosine:warmup=20 --val-split 0.1 --accumulate 2";
    uint64_t state = (uint64_t)number;
    int cuts = 0, code = 1;
    shell("rm -rf one many");
    code = qcc("%s --checkpoint one", line);
    check(code == 0, "uncut: exit %d", code);
    code = 1;
    for (int i = 0; i < 60 && code != 0 && code != 3; i++) {
        const pid_t child = qcc_start_process("%s --checkpoint many --every 7 --resume", line);
        sleep_ms(5 + (int)(60 * (1 + draw(&state))));
        kill(child, number);
        code = qcc_wait(child);
        cuts += code != 0;
        check(code == 0 || code == 130 || code == 128 + number, "killed by %d: exit %d", number, code);
    }
    if (code != 0)
        code = qcc("%s --checkpoint many --resume", line);
    check(code == 0 && cuts > 0, "killed by %d: exit %d after %d cuts", number, code, cuts);
    check(same_files("one/step-00000400.safetensors", "many/step-00000400.safetensors"), "killed by %d: other bytes",
          number);
}

/* Some samples that overflow the loss: their steps are skipped. */
static void write_hot(int64_t n)
{
    uint64_t state = 7;
    float *x = malloc((size_t)n * 8 * sizeof *x);
    for (int64_t i = 0; i < n * 8; i++)
        x[i] = (float)draw(&state) * (i % 331 == 5 ? 3e38f : 1);
    write_npy("hot.npy", "<f4", x, sizeof *x, 2, (int64_t[]){ n, 8 });
    free(x);
}

/* Runs of one model with a scale of the loss, without, and with it again. */
static void change_scale(void)
{
    static const char line[] = "train toy.qir --data x.npy --target y.npy --batch 14 --amp fp16 --on-nonfinite skip:30 "
                               "--checkpoint %s.safetensors";
    char text[300];
    shell("rm -f whole.safetensors cut.safetensors");
    snprintf(text, sizeof text, line, "cut");
    check(qcc("%s --steps 6", text) == 0, "scaled");
    check(qcc("%s --steps 6 --resume=must --loss-scale off", text) == 0, "a scale that is not used is kept");
    check(qcc("%s --steps 9 --resume=must", text) == 0, "and found again");
    snprintf(text, sizeof text, line, "whole");
    check(qcc("%s --steps 3 --loss-scale off", text) == 0, "without a scale");
    check(qcc("%s --steps 6 --resume=must", text) == 2, "there is no scale to go on with");
    check(file_has("err.txt", "--loss-scale dynamic:fresh=true"), "what helps is not said");
    check(qcc("%s --steps 6 --resume=must --loss-scale dynamic:fresh=true", text) == 0, "a new one");
    check(qcc("%s --steps 9 --resume=must", text) == 0, "and it goes on");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const bool all = strcmp(argv[2], "all") == 0;
    begin(argv[1]);
    write_toy(103);
    write_hot(103);
    write_beside();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        run_whole(i);
        if (strcmp(kinds[i].name, "skipping") == 0)
            check(!file_has("out.txt", " 0 skipped") && file_has("out.txt", "skipped"), "nothing was skipped");
        for (int k = all ? 1 : 1 + (int)i % 3; k < STEPS; k += all ? 1 : 19)
            cut_at(i, k);
    }
    change_scale();
    if (all) {
        kill_often(SIGTERM);
        kill_often(SIGKILL);
    }
    return finish();
}
