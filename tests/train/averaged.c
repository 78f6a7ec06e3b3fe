/* Averaged weights: what is validated is what is deployed, wherever it is deployed from. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/command.h"

#define DATA "--data x.npy --target y.npy --batch 16 "
#define RUN                                                                                                            \
    "train %s " DATA "--val-split 0.25 --seed 3 --optimizer adamw:lr=0.02 --epochs 3 --ema 0.9 --progress none %s "

/* The number behind the last place of a text in a file; NaN where it is not. */
static double number_after(const char *path, const char *text)
{
    double x = NAN;
    char *all = file_text(path, NULL);
    for (const char *p = all; p && (p = strstr(p, text)); p += strlen(text))
        x = strtod(p + strlen(text), NULL);
    free(all);
    return x;
}

/* The loss of a model over the samples that the run held out. */
static double judged(const char *what, const char *more)
{
    const int code = qcc("train %s " DATA "--val-split 0.25 --seed 3 --optimizer sgd:lr=0 --epochs 1 --no-save "
                         "--bn frozen --progress none --log judged.jsonl %s",
                         what, more);
    check(code == 0, "%s cannot be judged: %d", what, code);
    return number_after("judged.jsonl", "\"val_loss\":");
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b);
}

/* One run, by default and told to deploy the last weights. */
static void one_model(const char *model, const char *more)
{
    double loss[2];
    static const char *const weights[] = { "averaged", "raw" }, *const files[] = { "averaged.onnx", "raw.onnx" };
    for (int raw = 0; raw < 2; raw++) {
        shell("rm -rf ck l.jsonl");
        check(qcc(RUN "--checkpoint ck --log l.jsonl -o %s.onnx %s", model, more, weights[raw],
                  raw ? "--weights raw" : "") == 0,
              "%s %s: the run", model, weights[raw]);
        check(file_has("out.txt", raw ? "the last ones, not the averages" : "averages (--ema) are validated"),
              "%s %s: the run does not say which", model, weights[raw]);
        loss[raw] = number_after("l.jsonl", "\"val_loss\":");
        const double deployed = judged(files[raw], more);
        check(near(loss[raw], deployed), "%s %s: validated %.9g, deployed %.9g", model, weights[raw], loss[raw],
              deployed);
        /* by the model alone, by the options of the run, and by their step */
        check(qcc("export %s --checkpoint ck -o plain.onnx", model) == 0 &&
                  file_has("out.txt", raw ? "last weights" : "averaged weights"),
              "%s %s: export", model, weights[raw]);
        check(same_files("plain.onnx", files[raw]), "%s %s: export writes other weights than -o", model, weights[raw]);
        check(qcc("export %s --ema 0.9 --checkpoint ck -o ema.onnx", model) == 0 &&
                  same_files("plain.onnx", "ema.onnx"),
              "%s %s: --ema changes what is exported", model, weights[raw]);
        check(qcc("export %s --checkpoint ck --weights %s -o other.onnx", model, weights[!raw]) == 0 &&
                  !same_files("plain.onnx", "other.onnx"),
              "%s %s: the other weights are the same", model, weights[raw]);
        if (raw)
            check(same_files("other.onnx", "averaged.onnx"), "%s: two runs differ in their averages", model);
        check(qcc("eval plain.onnx " DATA) == 0, "%s: eval", model);
        const double want = number_after("out.txt", "loss  ");
        check(qcc("eval %s --checkpoint ck " DATA, model) == 0 && near(number_after("out.txt", "loss  "), want),
              "%s %s: eval --checkpoint judges other weights than those deployed", model, weights[raw]);
        check(file_has("out.txt", raw ? "weights  last weights of ck/" : "weights  averaged weights of ck/"),
              "%s %s: eval does not say which", model, weights[raw]);
        check(qcc("eval %s --checkpoint ck --weights %s " DATA, model, weights[!raw]) == 0 &&
                  !near(number_after("out.txt", "loss  "), want),
              "%s %s: eval --weights chooses nothing", model, weights[raw]);
    }
    check(!near(loss[0], loss[1]), "%s: averages and last weights are judged alike", model);
}

static void what_there_is_not(void)
{
    shell("rm -rf ck");
    check(qcc("train toy.qir " DATA "--steps 3 --checkpoint ck --weights averaged") == 2 &&
              file_has("err.txt", "this step averages no weights"),
          "--weights averaged without --ema");
    check(qcc("train toy.qir " DATA "--steps 3 --checkpoint ck") == 0, "a run without averages");
    check(!file_has("out.txt", "weights  "), "a run without averages speaks of them");
    check(qcc("export toy.onnx --checkpoint ck -o x.onnx --weights averaged") == 2 &&
              file_has("err.txt", "holds no averages") && file_has("err.txt", "try: --weights raw"),
          "--weights averaged of a run without");
    check(qcc("export toy.onnx --checkpoint ck -o x.onnx --weights raw") == 0, "--weights raw is always there");
    check(qcc("export toy.onnx -o x.onnx --weights raw") == 2 && file_has("err.txt", "try: --checkpoint PATH"),
          "--weights of nothing");
}

/* A resumed run that judges by other weights says so, and forgets a best that was another kind of best. */
static void resumed_otherwise(void)
{
    shell("rm -rf ck");
    check(qcc(RUN "--checkpoint ck", "toy.onnx", "") == 0, "three epochs");
    check(qcc("train toy.onnx " DATA "--val-split 0.25 --seed 3 --optimizer adamw:lr=0.02 --epochs 4 --ema 0.9 "
              "--progress none --checkpoint ck --resume --weights raw") == 0,
          "a fourth");
    check(file_has("out.txt", "weights: averaged then, raw now"), "the change is not noted");
    check(file_has("out.txt", "epoch 4 done") && file_has("out.txt", "best so far"), "the best is that of averages");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(128);
    check(qcc("toy.qir --emit onnx -o toy.onnx") == 0 && qcc("rich.qir --emit onnx -o rich.onnx") == 0, "models");
    one_model("toy.onnx", "");
    one_model("rich.onnx", "");
    one_model("toy.onnx", "--amp bf16");
    what_there_is_not();
    resumed_otherwise();
    return finish();
}
