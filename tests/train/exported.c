/* Models as PyTorch exports them: one full command line for each of them; and what people see of a run.
 *
 *     exported QCC FOLDER        FOLDER holds the stored models */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "train/command.h"

enum { SAMPLES = 12 };

/* Samples of each model, and of its targets along the last axis. */
static const struct {
    const char *name;
    int rank;
    int64_t dims[4]; /* of a sample */
    int tokens;      /* inputs are integers below; 0: floats */
    int target_rank;
    int64_t target[3];
    int classes;
} models[] = {
    { "mlp", 1, { 8 }, 0, 0, { 0 }, 5 },
    { "cnn", 3, { 2, 8, 8 }, 0, 0, { 0 }, 5 },
    { "lstm", 2, { 6, 5 }, 0, 0, { 0 }, 5 },
    { "transformer", 1, { 6 }, 11, 1, { 6 }, 11 },
    { "convnext", 3, { 2, 8, 8 }, 0, 0, { 0 }, 5 },
    { "mobilenet", 3, { 4, 5, 5 }, 0, 0, { 0 }, 5 },
    { "unet", 3, { 2, 6, 6 }, 0, 2, { 3, 6 }, 6 },
};

static void write_array(const char *path, int rank, const int64_t *sample, int below)
{
    int64_t dims[8] = { SAMPLES }, n = SAMPLES;
    uint64_t state = 11;
    for (int k = 0; k < rank; k++)
        n *= dims[k + 1] = sample[k];
    float *x = malloc((size_t)n * sizeof *x);
    int64_t *y = malloc((size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        const double r = draw(&state);
        x[i] = (float)r;
        y[i] = (int64_t)((1 + r) / 2 * below);
    }
    if (below)
        write_npy(path, "<i8", y, sizeof *y, rank + 1, dims);
    else
        write_npy(path, "<f4", x, sizeof *x, rank + 1, dims);
    free(x);
    free(y);
}

static long size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (long)st.st_size : 0;
}

static void trains(size_t i, const char *folder)
{
    const char *name = models[i].name;
    shell("rm -f l.jsonl g.npz c.safetensors; cp '%s/%s.onnx' m.onnx", folder, name);
    write_array("x.npy", models[i].rank, models[i].dims, models[i].tokens);
    write_array("y.npy", models[i].target_rank, models[i].target, models[i].classes);
    const int code = qcc("train m.onnx --loss cross_entropy:logits,axis=-1 --data x=x.npy --target y.npy --batch 4 "
                         "--steps 10 --optimizer adamw:lr=1e-3,weight_decay=0.01 --no-shuffle --seed 0 --bn frozen "
                         "--dropout off --log l.jsonl --gradients g.npz --checkpoint c.safetensors --progress none");
    check(code == 0, "%s: exit %d", name, code);
    check(size_of("err.txt") == 0, "%s: it says something on standard error", name);
    check(file_count("l.jsonl", "{\"step\":") == 10 && file_count("l.jsonl", "\"loss\":") == 10, "%s: not ten steps",
          name);
    check(file_count("l.jsonl", "\"event\":\"start\"") == 1 && file_count("l.jsonl", "\"event\":\"end\"") == 1,
          "%s: start and end", name);
    check(size_of("g.npz") > 1000 && size_of("c.safetensors") > 1000, "%s: gradients or states are missing", name);
    check(qcc("--export m.onnx --checkpoint c.safetensors -o out.onnx") == 0, "%s: export", name);
    check(qcc("eval out.onnx --loss cross_entropy:logits,axis=-1 --data x=x.npy --target y.npy --batch 4") == 0,
          "%s: eval of what was exported", name);
}

/* The same run as a step that was compiled before. */
static void trains_a_step(void)
{
    write_toy(64);
    static const char data[] = "--data x.npy --target y.npy --steps 12 --seed 3 --progress none";
    check(qcc("toy.qir --batch 16 --lr 0.01 -o toy.step.onnx") == 0, "compile");
    check(file_has("out.txt", "next: qcc train toy.step.onnx --data x=x.npy --target target=target.npy"), "no way on");
    check(qcc("train toy.step.onnx %s -o a.safetensors", data) == 0, "train a step");
    check(qcc("train toy.qir --batch 16 --lr 0.01 %s -o b.safetensors", data) == 0, "train a model");
    check(shell("test $(stat -c %%s a.safetensors) -gt 500") == 0, "nothing in it");
    check(qcc("eval toy.step.onnx --data x.npy --target y.npy --init a.safetensors") == 0, "eval a");
    shell("cp out.txt a.txt");
    check(qcc("eval toy.step.onnx --data x.npy --target y.npy --init b.safetensors") == 0, "eval b");
    check(same_files("out.txt", "a.txt"), "a step and its model train differently");
    check(qcc("train toy.step.onnx %s --batch 8", data) == 2 && file_has("err.txt", "try: qcc toy.qir --loss"),
          "--batch");
    check(qcc("train toy.step.onnx %s --last keep", data) == 2, "--last keep of a step without weights");
}

static void shows_progress(void)
{
    static const char line[] = "train toy.qir --data x.npy --target y.npy --batch 16 --epochs 3 --no-save";
    check(qcc("%s --progress none", line) == 0 && size_of("err.txt") == 0, "none");
    check(qcc("%s --progress plain", line) == 0 && file_has("err.txt", "epoch 3/3 step 4/4  loss "), "plain");
    check(qcc("%s --progress bar", line) == 0 && file_has("err.txt", "[==="), "bar");
    check(qcc("%s --progress json", line) == 0 &&
              file_has("err.txt", "{\"event\":\"progress\",\"step\":12,\"steps\":12"),
          "json");
    check(qcc("%s -q", line) == 0 && size_of("err.txt") == 0 && size_of("out.txt") == 0, "-q");
    check(qcc("%s --dry-run", line) == 0 && file_has("out.txt", "  memory "), "--dry-run");
    check(qcc("%s --tensorboard tb", line) == 0 && shell("test -s tb/events*") == 0, "--tensorboard");
    check(qcc("%s --progress loud", line) == 2, "--progress loud");
}

/* The log of a resumed run goes on where the checkpoint stands. */
static void logs_go_on(void)
{
    static const char line[] = "train toy.qir --data x.npy --target y.npy --batch 16 --log l.jsonl --val-split 0.2";
    shell("rm -rf run l.jsonl");
    check(qcc("%s --steps 20 --checkpoint run --every 8", line) == 0, "20 steps");
    shell("rm run/step-00000020.safetensors run/step-00000018.safetensors; rm -f run/last run/best");
    check(qcc("%s --steps 24 --checkpoint run --resume=must --lr 0.02", line) == 0, "resumed");
    check(file_count("l.jsonl", "{\"step\":") == 24, "%d step lines", file_count("l.jsonl", "{\"step\":"));
    check(file_count("l.jsonl", "\"event\":\"start\"") == 2 && file_has("l.jsonl", "\"resumed_from\":\"run/step-"),
          "starts");
    check(file_has("out.txt", "note ") && file_has("l.jsonl", "\"event\":\"note\""), "a changed rate is not noted");
    check(file_has("l.jsonl", "\"event\":\"val\"") && file_has("l.jsonl", "\"val_loss\":"), "val");
    check(qcc("%s --steps 30 --checkpoint run --resume --batch 8", line) == 2, "another batch");
    check(file_has("err.txt", "compiled with other options") && file_has("err.txt", "--batch 16"),
          "what differs is not said");
    check(qcc("%s --steps 30 --checkpoint run --resume --batch 16 --freeze fc1", line) == 2 &&
              file_has("err.txt", "now   --loss cross_entropy:logits,axis=1 --batch 16 --batch 16 --freeze fc1"),
          "other parameters");
    shell("sed 's/fc1[.]weight/fc1.w/g' toy.qir >other.qir");
    check(qcc("train other.qir --data x.npy --target y.npy --batch 16 --steps 30 --checkpoint run --resume") == 2 &&
              file_has("err.txt", "another model: ") && file_has("err.txt", "fc1.w is missing"),
          "another model");
    check(qcc("%s --steps 30 --checkpoint run --resume --seed 4", line) == 2, "another seed");
    check(file_has("err.txt", "--seed 0"), "the seed is not said");
    check(qcc("%s --steps 20 --checkpoint run --resume", line) == 2, "a shorter run");
    shell("rm -rf run");
    check(qcc("%s --steps 8 --checkpoint run --schedule cosine", line) == 0, "a schedule");
    check(qcc("%s --steps 9 --checkpoint run --schedule cosine --resume", line) == 0, "a longer schedule");
    check(file_has("out.txt", "length of the schedule: 8 then, 9 now"), "the length of a schedule is not noted");
}

/* A run that was cut between the last step of an epoch and its validation makes up for it. */
static void validates_late(void)
{
    static const char line[] = "train toy.qir --data x.npy --target y.npy --batch 16 --checkpoint run";
    shell("rm -rf run");
    check(qcc("%s --steps 4", line) == 0 && !file_has("out.txt", "val loss"), "an epoch of four steps");
    check(qcc("%s --steps 5 --resume --val x.npy --val-target y.npy", line) == 0, "resumed");
    check(file_has("out.txt", "epoch 1 done"), "the epoch before is not validated");
    check(qcc("%s --steps 5 --resume --val x.npy --val-target y.npy", line) == 0 &&
              !file_has("out.txt", "epoch 2 done"),
          "validated twice");
}

/* Windows of a file of tokens, and inputs that are no data. */
static void reads_tokens(const char *folder)
{
    uint16_t tokens[1000];
    int64_t ids[12][8];
    for (int i = 0; i < 1000; i++)
        tokens[i] = (uint16_t)(i * i % 251);
    FILE *f = fopen("t.bin", "wb");
    fwrite(tokens, 2, 1000, f);
    fclose(f);
    shell("cp '%s/../../../examples/models/gpt.qir' '%s/../../command/models/llama.onnx' .", folder, folder);
    check(qcc("train gpt.qir --data t.bin --target next --batch 4 --epochs 1 --log l.jsonl --no-save") == 0, "gpt");
    check(file_count("l.jsonl", "{\"step\":") == 7 && file_has("out.txt", "31, batches of 4"), "not 31 windows of 32");
    check(qcc("eval gpt.qir --data t.bin --target next --batch 4 --metric perplexity") == 0, "gpt: eval");
    check(file_has("out.txt", "samples  31") && file_has("out.txt", "perplexity  2"), "gpt: perplexity");
    tokens[700] = 256;
    f = fopen("t.bin", "wb");
    fwrite(tokens, 2, 1000, f);
    fclose(f);
    check(qcc("train gpt.qir --data t.bin --target next --batch 4 --epochs 1 --no-save") == 3, "a token too many");
    check(file_has("err.txt", "t.bin: ") && file_has("err.txt", "700") && file_has("err.txt", "256"),
          "it is not named");

    for (int i = 0; i < 96; i++)
        ids[i / 8][i % 8] = i * 7 % 12;
    write_npy("ids.npy", "<i8", ids, sizeof **ids, 2, (int64_t[]){ 12, 8 });
    static const char line[] =
        "train llama.onnx --data input_ids=ids.npy --target ids.npy --fill attention_mask=1 --batch 4 "
        "--no-save --fill";
    check(qcc("%s position_ids=range", line) == 0 && file_has("out.txt", "3 steps"), "--fill range");
    check(qcc("%s position_ids=99", line) != 0, "a position that is not there");
    check(qcc("%s position=range", line) == 2 && file_has("err.txt", "position_ids"), "--fill of nothing");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    char *folder = realpath(argv[2], NULL);
    begin(argv[1]);
    for (size_t i = 0; folder && i < sizeof models / sizeof *models; i++)
        trains(i, folder);
    trains_a_step();
    shows_progress();
    logs_go_on();
    validates_late();
    if (folder)
        reads_tokens(folder);
    free(folder);
    return finish();
}
