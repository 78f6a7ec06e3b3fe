/* How runs end and what they say of it: which condition it was, the loss on the way, the best model beside the last. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/command.h"

#define RUN "train toy.qir --data x.npy --target y.npy --batch 16 --seed 1 --progress none "

static double number_after(const char *path, const char *text)
{
    char *all = file_text(path, NULL);
    const char *p = all ? strstr(all, text) : NULL;
    const double x = p ? strtod(p + strlen(text), NULL) : NAN;
    free(all);
    return x;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

static void says(const char *line, const char *label, const char *why)
{
    char begin[32];
    snprintf(begin, sizeof begin, "\n%-16s ", label);
    check(qcc(RUN "%s --log l.jsonl --no-save", line) == 0, "%s", line);
    check(file_has("out.txt", begin) && file_has("out.txt", why), "%s: '%s' is not said", line, why);
    check(file_has("l.jsonl", why) || strchr(why, '\''), "%s: the log does not say why", line);
}

static void conditions_are_named(void)
{
    says("--steps 400 --stop-if 'loss<10'", "stopped", "; --stop-if 'loss<10': loss was 1.");
    says("--steps 400 --stop-if 'step>7'", "stopped", "step>7': step was 8");
    says("--epochs 40 --val-split 0.25 --stop-if 'val_loss<9'", "stopped", "--stop-if 'val_loss<9': val_loss was ");
    says("--epochs 40 --val-split 0.25 --stop-if 'accuracy>0'", "stopped", "accuracy>0': accuracy was ");
    says("--steps 100000000 --max-time 100ms", "out of time", "--max-time 100ms");
    says("--epochs 40 --val-split 0.25 --patience 2 --optimizer sgd:lr=0", "stopped",
         "--patience 2: none was better since epoch 1");
}

/* A rate of 0: the first epoch is the best, and the third one ends the run; a resumed one counts on. */
static void patience(void)
{
    shell("rm -rf ck");
    check(qcc(RUN "--epochs 40 --val-split 0.25 --patience 3 --optimizer sgd:lr=0 --no-save") == 0, "patience");
    check(file_has("out.txt", "epoch 4 done") && !file_has("out.txt", "epoch 5 done"), "three more than the best");
    check(qcc(RUN "--epochs 3 --val-split 0.25 --patience 3 --optimizer sgd:lr=0 --checkpoint ck") == 0, "three");
    check(qcc(RUN "--epochs 40 --val-split 0.25 --patience 3 --optimizer sgd:lr=0 --checkpoint ck --resume") == 0,
          "and on");
    check(file_has("out.txt", "epoch 4 done") && !file_has("out.txt", "epoch 5 done"), "a resumed run counts anew");
    check(qcc(RUN "--epochs 3 --patience 2") == 2 && file_has("err.txt", "--patience: nothing is validated"),
          "patience of nothing");
    check(qcc(RUN "--epochs 3 --val-split 0.25 --patience 0") == 2, "no patience");
    check(qcc(RUN "--epochs 3 --val-split 0.25 --patience 2 --best none") == 2, "--best none");
}

/* The mean over the steps of an epoch, computed from the log again. */
static void losses_are_summed_up(void)
{
    check(qcc(RUN "--epochs 3 --log l.jsonl --no-save") == 0, "three epochs");
    double sum[3] = { 0 };
    int n[3] = { 0 };
    char *all = file_text("l.jsonl", NULL);
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n")) {
        const char *loss = strstr(line, "\"loss\":"), *epoch = strstr(line, "\"epoch\":");
        const long e = loss && epoch ? strtol(epoch + 8, NULL, 10) : 0;
        if (loss && e >= 1 && e <= 3) {
            sum[e - 1] += strtod(loss + 7, NULL);
            n[e - 1]++;
        }
    }
    free(all);
    for (int e = 0; e < 3; e++) {
        char text[64];
        check(n[e] > 3, "epoch %d has %d steps in the log", e + 1, n[e]);
        snprintf(text, sizeof text, "\nepoch %d done     loss ", e + 1);
        check(fabs(number_after("out.txt", text) - sum[e] / n[e]) < 1e-3, "epoch %d: the mean is %g", e + 1,
              sum[e] / n[e]);
        snprintf(text, sizeof text, "\"epoch\":%d,\"steps\":%d,\"train_loss\":", e + 1, n[e]);
        check(near(number_after("l.jsonl", text), sum[e] / n[e]), "epoch %d in the log", e + 1);
    }
    check(fabs(number_after("out.txt", "skipped, loss ") - sum[2] / n[2]) < 1e-3, "the end");
    check(qcc(RUN "--steps 5 --no-save") == 0 && file_has("out.txt", " over all, 0s"), "five steps");
}

/* A rate that destroys what was learnt: the best is not the last. */
static void best_and_last(void)
{
    static const char run[] = RUN "--epochs 6 --val-split 0.25 --optimizer adamw:lr=0.05 --schedule linear:warmup=4000 "
                                  "--stop-if 'val_loss>2' ";
    shell("rm -rf ck; rm -f best.onnx last.onnx");
    check(qcc("%s --best-output best.onnx -o last.onnx --checkpoint ck --log l.jsonl", run) == 0, "the run");
    check(is_there("best.onnx") && is_there("last.onnx") && file_has("out.txt", "wrote best.onnx ("), "two models");
    check(qcc("export toy.qir --checkpoint ck/best -o link.onnx") == 0 && same_files("link.onnx", "best.onnx"),
          "what ck/best holds is another one");
    shell("rm -f best.safetensors");
    check(qcc("%s --best-output best.safetensors --no-save", run) == 0, "as states");
    check(qcc("export toy.qir --checkpoint best.safetensors -o states.onnx") == 0 &&
              same_files("states.onnx", "best.onnx"),
          "the states are other ones");
    check(qcc("%s --best-output best.safetensors --no-save", run) == 2, "states of another run are replaced");
    check(qcc(RUN "--epochs 2 --best-output b.onnx") == 2 && file_has("err.txt", "--best-output: nothing is validated"),
          "the best of nothing");
    check(qcc(RUN "--epochs 2 --val-split 0.25 --best-output b.txt") == 2 &&
              file_has("err.txt", "try: --best-output b.txt.onnx"),
          "neither model nor states");
    check(qcc(RUN "--epochs 2 --val-split 0.25 --best-output b.onnx -o b.onnx") == 2, "both in one place");
    check(qcc(RUN "--epochs 2 --val-split 0.25 --best-output nowhere/b.onnx") == 5, "nowhere");
    check(qcc(RUN "--epochs 2 --val-split 0.25 --best-output /dev/full") == 2, "no model's name");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(203);
    conditions_are_named();
    patience();
    losses_are_summed_up();
    best_and_last();
    return finish();
}
