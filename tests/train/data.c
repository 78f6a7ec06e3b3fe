/* What samples count for: eval and validation against sums made here, last batches, and what is wrong with files. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/command.h"

enum { N = 103, IN = 3, CLASSES = 7 };

static float x[N * IN], w[IN * CLASSES], class_weight[CLASSES], sample_weight[N];
static int64_t label[N];

/* A linear model whose weights are written into it. */
static void write_linear(const char *path, int64_t rows)
{
    FILE *f = fopen(path, "wb");
    char batch[32] = "?";
    if (rows)
        snprintf(batch, sizeof batch, "%lld", (long long)rows);
    fprintf(f, "graph @linear(%%x: f32[%s,%d]) -> (%%logits) {\n    param %%w: f32[%d,%d] = [", batch, IN, IN, CLASSES);
    for (int i = 0; i < IN * CLASSES; i++)
        fprintf(f, "%s%.9g", i ? ", " : "", (double)w[i]);
    fprintf(f, "]\n    %%logits: f32[%s,%d] = matmul(%%x, %%w)\n}\n", batch, CLASSES);
    fclose(f);
}

static void write_all(void)
{
    uint64_t state = 3;
    for (int i = 0; i < N * IN; i++)
        x[i] = (float)draw(&state);
    for (int i = 0; i < IN * CLASSES; i++)
        w[i] = (float)(2 * draw(&state));
    for (int i = 0; i < CLASSES; i++)
        class_weight[i] = (float)(1 + 0.5 * draw(&state));
    for (int i = 0; i < N; i++) {
        sample_weight[i] = (float)(1 + 0.9 * draw(&state));
        label[i] =
            i % 11 == 5 || i > 96 ? -100 : (int64_t)((1 + draw(&state)) / 2 * CLASSES); /* a whole tail of none */
    }
    write_npy("x.npy", "<f4", x, sizeof *x, 2, (int64_t[]){ N, IN });
    write_npy("y.npy", "<i8", label, sizeof *label, 1, (int64_t[]){ N });
    write_npy("cw.npy", "<f4", class_weight, sizeof *class_weight, 1, (int64_t[]){ CLASSES });
    write_npy("sw.npy", "<f4", sample_weight, sizeof *sample_weight, 1, (int64_t[]){ N });
    write_linear("linear.qir", 0);
}

static double score(int i, int c)
{
    double sum = 0;
    for (int k = 0; k < IN; k++)
        sum += (double)x[i * IN + k] * (double)w[k * CLASSES + c];
    return sum;
}

static double lost(int i)
{
    double sum = 0;
    for (int c = 0; c < CLASSES; c++)
        sum += exp(score(i, c));
    return log(sum) - score(i, (int)label[i]);
}

static int rank_of(int i)
{
    int n = 0;
    for (int c = 0; c < CLASSES; c++)
        n += score(i, c) > score(i, (int)label[i]);
    return n;
}

static int said(int i)
{
    int best = 0;
    for (int c = 1; c < CLASSES; c++)
        best = score(i, c) > score(i, best) ? c : best;
    return best;
}

static double f1(void)
{
    double sum = 0;
    int seen = 0;
    for (int c = 0; c < CLASSES; c++) {
        int hit = 0, all = 0;
        for (int i = 0; i < N; i++)
            if (label[i] >= 0) {
                hit += said(i) == c && label[i] == c;
                all += (said(i) == c) + (label[i] == c);
            }
        seen += all > 0;
        sum += all ? 2.0 * hit / all : 0;
    }
    return sum / seen;
}

/* The number behind a word that eval printed. */
static double told(const char *word)
{
    char *text = file_text("out.txt", NULL), *at = text ? strstr(text, word) : NULL;
    const double value = at ? strtod(at + strlen(word), NULL) : NAN;
    free(text);
    return value;
}

static void is(const char *what, double got, double want)
{
    check(fabs(got - want) <= 2e-5 * fmax(1, fabs(want)), "%s: %.9g, not %.9g", what, got, want);
}

static void counts_each_once(int batch)
{
    double sum = 0, own = 0, own_n = 0, each = 0, each_n = 0;
    int n = 0, right = 0, five = 0;
    for (int i = 0; i < N; i++) {
        if (label[i] < 0)
            continue;
        const double cw = (double)class_weight[label[i]], sw = (double)sample_weight[i];
        n++;
        sum += lost(i);
        own += cw * lost(i);
        own_n += cw;
        each += sw * lost(i);
        each_n += sw;
        right += rank_of(i) == 0;
        five += rank_of(i) < 5;
    }
    const char *line = "eval linear.qir --data x=x.npy --target y.npy";
    check(qcc("%s --batch %d", line, batch) == 0, "eval");
    is("samples", told("samples  "), N);
    is("loss", told("loss  "), sum / n);
    is("accuracy", told("accuracy  "), (double)right / n);
    check(qcc("%s --batch %d --metric top5", line, batch) == 0, "eval top5");
    is("top5", told("top5  "), (double)five / n);
    check(qcc("%s --batch %d --metric f1", line, batch) == 0, "eval f1");
    is("f1", told("f1  "), f1());
    check(qcc("%s --batch %d --metric perplexity", line, batch) == 0, "eval perplexity");
    is("perplexity", told("perplexity  "), exp(sum / n));
    check(qcc("%s --batch %d --loss cross_entropy:logits,weight=cw.npy", line, batch) == 0, "eval with class weights");
    is("loss with class weights", told("loss  "), own / own_n);
    check(qcc("%s --batch %d --loss cross_entropy:logits,sample_weight=sw --data sw=sw.npy", line, batch) == 0,
          "eval with sample weights");
    is("loss with sample weights", told("loss  "), each / each_n);
}

static void measures_distances(void)
{
    static float target[N * CLASSES];
    double squares = 0, distances = 0;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < CLASSES; c++) {
            target[i * CLASSES + c] = (float)((i * 5 + c) % 9) / 4;
            const double d = score(i, c) - (double)target[i * CLASSES + c];
            squares += d * d;
            distances += fabs(d);
        }
    write_npy("t.npy", "<f4", target, sizeof *target, 2, (int64_t[]){ N, CLASSES });
    check(qcc("eval linear.qir --data x.npy --target t.npy --loss mse --metric mae --batch 16") == 0, "eval mae");
    is("mse", told("loss  "), squares / (N * CLASSES));
    is("mae", told("mae  "), distances / (N * CLASSES));
    check(qcc("eval linear.qir --data x.npy --target y.npy --metric mae --batch 16") == 2, "distances of labels");
}

/* ---- the last batch ---- */

/* A state of a checkpoint whose values are f32. */
static int state_of(const char *path, const char *name, float *values, size_t most)
{
    size_t n = 0;
    uint64_t head = 0;
    unsigned long long from = 0, to = 0;
    char key[64], *all = file_text(path, &n);
    snprintf(key, sizeof key, "\"%s\":", name);
    if (!all)
        return 0;
    memcpy(&head, all, 8);
    char *at = strstr(all + 8, key);
    at = at ? strstr(at, "\"data_offsets\":[") : NULL;
    if (at && sscanf(at, "\"data_offsets\":[%llu,%llu]", &from, &to) == 2 && (to - from) / 4 <= most)
        memcpy(values, all + 8 + head + from, to - from);
    free(all);
    return (int)((to - from) / 4);
}

static void keeps_the_last(void)
{
    static const char line[] = "train linear.qir --no-shuffle --optimizer sgd:lr=0.5 --progress none";
    float kept[IN * CLASSES], wanted[IN * CLASSES];
    check(qcc("%s --data x.npy:rows=0:19 --target y.npy:rows=0:19 --batch 16 --last keep -o kept.safetensors", line) ==
              0,
          "--last keep");
    check(file_has("out.txt", "2 steps"), "the last batch is left out");
    check(qcc("%s --data x.npy:rows=0:16 --target y.npy:rows=0:16 --batch 16 -o first.safetensors", line) == 0,
          "first");
    check(
        qcc("%s --data x.npy:rows=16:19 --target y.npy:rows=16:19 --batch 3 --init first.safetensors -o both.safetensors",
            line) == 0,
        "second");
    check(state_of("kept.safetensors", "w", kept, IN * CLASSES) == IN * CLASSES, "no weights");
    check(state_of("both.safetensors", "w", wanted, IN * CLASSES) == IN * CLASSES, "no weights");
    for (int i = 0; i < IN * CLASSES; i++)
        is("--last keep: weights", (double)kept[i], (double)wanted[i]);
    check(qcc("%s --data x.npy:rows=0:19 --target y.npy:rows=0:19 --batch 16 --last pad -o padded.safetensors", line) ==
                  0 &&
              file_has("out.txt", "2 steps"),
          "--last pad");
    check(state_of("padded.safetensors", "w", wanted, IN * CLASSES) == IN * CLASSES &&
              memcmp(kept, wanted, sizeof kept) != 0,
          "--last pad is --last keep");
    check(qcc("%s --data x.npy:rows=0:19 --target y.npy:rows=0:19 --batch 16 -o drop.safetensors", line) == 0 &&
              file_has("out.txt", "1 steps") && file_has("out.txt", "the last 3 of an epoch left out"),
          "--last drop");
    check(qcc("%s --data x.npy --target y.npy --batch 16 --last keep --accumulate 2", line) == 2,
          "keep and accumulate");
    check(qcc("%s --data x.npy:rows=0:15 --target y.npy:rows=0:15 --batch 16", line) == 3, "fewer than a batch");
    check(file_has("err.txt", "15 samples are fewer than one batch of 16"), "fewer than a batch: the words");
}

/* What is to be judged is found missing before the first step. */
static void checks_judges(void)
{
    static const char line[] = "train linear.qir --data x.npy --target y.npy --batch 16 --no-save";
    check(qcc("%s --metric f1", line) == 2, "--metric of nothing");
    check(qcc("%s --best val_loss", line) == 2, "--best of nothing");
    check(qcc("%s --stop-if 'val_loss<1'", line) == 2 && file_has("err.txt", "nothing is validated"),
          "--stop-if of nothing");
    check(qcc("%s --stop-if 'f1>0.1' --val-split 0.3", line) == 2 && file_has("err.txt", "--metric f1"),
          "f1 unmeasured");
    check(qcc("%s --stop-if 'f1>-1' --metric f1 --val-split 0.3 --epochs 9", line) == 0 &&
              file_has("out.txt", "stopped "),
          "--stop-if f1");
    check(qcc("%s --metric mae --val-split 0.3 --log l.jsonl", line) == 2 && !file_has("l.jsonl", "{\"step\":1,"),
          "mae of labels");
}

static void splits(void)
{
    shell("rm -f l.jsonl");
    check(qcc("train linear.qir --data x.npy --target y.npy --batch 16 --val-split 0.2 --log l.jsonl") == 0,
          "--val-split");
    check(file_has("l.jsonl", "\"event\":\"val\"") && file_has("out.txt", "82, batches of 16, shuffled, 21 held out"),
          "not a fifth is held out");
    check(qcc("train linear.qir --data x.npy --target y.npy --val-split 0.2 --val x.npy") == 2,
          "--val and --val-split");
}

/* ---- what is wrong with files ---- */

static void refuses(void)
{
    label[41] = CLASSES;
    write_npy("wrong.npy", "<i8", label, sizeof *label, 1, (int64_t[]){ N });
    check(qcc("train linear.qir --data x.npy --target wrong.npy --batch 16") == 3, "a class too many");
    check(file_has("err.txt", "wrong.npy: sample 41: class 7 is outside 0..6"), "the class is not named");
    write_npy("short.npy", "<i8", label, sizeof *label, 1, (int64_t[]){ N - 1 });
    check(qcc("train linear.qir --data x.npy --target short.npy --batch 16") == 3, "lengths differ");
    check(file_has("err.txt", "102") && file_has("err.txt", "103"), "the lengths are not named");
    x[57 * IN] = NAN;
    write_npy("nan.npy", "<f4", x, sizeof *x, 2, (int64_t[]){ N, IN });
    check(qcc("train linear.qir --data nan.npy --target y.npy --batch 16 --epochs 1") == 3, "a NaN");
    check(file_has("err.txt", "nan.npy: sample 57"), "the NaN is not named");
    check(qcc("train linear.qir --batch 16") == 2 && file_has("err.txt", "--data x=x.npy"), "no data");
}

static void feeds_others(void)
{
    write_text("own.qir", "graph @own(%x: f32[4,3], %scale: f32[4]) -> (%loss) {\n"
                          "    param %w: f32[3,1] = kaiming(seed=1)\n"
                          "    %p: f32[4,1] = matmul(%x, %w)\n"
                          "    const %four: i64[1] = [4]\n"
                          "    %r: f32[4] = reshape(%p, %four)\n"
                          "    %y: f32[4] = mul(%r, %scale)\n"
                          "    %s: f32[4] = mul(%y, %y)\n"
                          "    %loss: f32[] = reduce_mean(%s, keepdims=false)\n"
                          "}\n");
    float ones[12];
    for (int i = 0; i < 12; i++)
        ones[i] = (float)i / 12;
    write_npy("record.npy", "<f4", ones, sizeof *ones, 2, (int64_t[]){ 4, 3 });
    check(shell("cat record.npy record.npy record.npy >stream") == 0, "stream");
    check(qcc("train own.qir --data x=- --fill scale=0.5 --log l.jsonl <stream") == 0, "a stream");
    check(file_count("l.jsonl", "{\"step\":") == 3, "a stream of three records is not three steps");
    check(qcc("train own.qir --data x=- --fill scale=0.5 --epochs 2 <stream") == 2, "two epochs of a stream");
    check(qcc("train own.qir --data x=- --batch 4 <stream") == 2 || qcc("train own.qir --data x=- <stream") == 3,
          "an input without data");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_all();
    counts_each_once(16);
    counts_each_once(1);
    counts_each_once(N);
    measures_distances();
    keeps_the_last();
    shell("rm -f l.jsonl");
    checks_judges();
    splits();
    refuses();
    feeds_others();
    return finish();
}
