/* Command lines of every verb, one after the other, by qcc_command in one process: what they answer goes to `transcript`.
 *
 *     lines MODELS EXAMPLES [locale|stack]
 *
 * In the current folder, over MODELS/mlp.onnx and the files of EXAMPLES.  `locale`: under the locale of the environment, which
 * must write one half with a comma; `stack`: each line on a thread with a stack of 64 KiB.  tests/embed/places runs it in
 * places of several kinds and compares.  A verb of `qcc --help` without a line here is an error. */
#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qcc/qcc.h>

#include "train/command.h"

/* Without /proc a sanitizer neither finds leaks nor hears what ASAN_OPTIONS says, which is to look for them. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

enum { WORDS = 48, ROOM = 1024 };

#define TRAIN                                                                                                          \
    "train step.onnx --data x=x.npy:scale=1/2 --target y.npy --epochs 3 --lr 1.5e-2 --val-split 0.25 "                 \
    "--checkpoint run --log log.jsonl -o trained.onnx --progress none"

static const char *const lines[] = {
    "--help",
    "--help=all",
    "--list-ops",
    "--version",
    "check MODEL SMALL",
    "explain MODEL",
    "explain SMALL --node .*",
    "run MODEL --input x=x.npy --output y=out.npy",
    "predict MODEL --data x.npy --batch 2 --output y=rows.csv",
    "bench MODEL --batch 4 --fill nothing=1", /* what it measures is another each time */
    "MODEL --emit ir -o mlp.qir",
    "SMALL --emit json -o small.json",
    "SMALL --emit html -o small.html",
    "SMALL --emit dot",
    "MODEL --ema 0.9 -o step.onnx",
    "SMALL --batch 8 --amp fp16 --optimizer lamb:lr=1e-3 --schedule cosine:warmup=5 --clip-norm 0.5 -o half.step.onnx",
    "LARGE --batch 2 -o large.step.onnx",
    "explain half.step.onnx",
    TRAIN,
    "train step.onnx --data x=x.csv --target y.npy --steps 7 --checkpoint run --resume -v -o more.onnx --progress none",
    "eval trained.onnx --data x=x.npy --target y.npy --metric f1",
    "export step.onnx --checkpoint run -o exported.onnx",
    "export step.onnx --checkpoint run --dtype fp16 -o half.onnx",
    "diff MODEL exported.onnx",
    "check exported.onnx half.onnx",
    "eval exported.onnx --data x=x.npy --target nowhere.npy",
    "train MODEL --data x=x.npy --target y.npy --lr 1,5",
    "run nowhere.onnx",
};

typedef struct Line {
    const char *text, *models, *examples;
    FILE *transcript;
} Line;

static qcc_status write_out(void *user, const void *bytes, size_t n)
{
    return fwrite(bytes, 1, n, user) == n ? QCC_OK : QCC_IO;
}

static void report(void *user, const qcc_message *message)
{
    fputs(message->text, user);
}

/* The words of a line, with names of files for MODEL, SMALL and LARGE. */
static int split(const Line *l, char room[WORDS][ROOM], const char *argv[WORDS])
{
    int n = 1;
    argv[0] = "qcc";
    for (const char *p = l->text; *p; p += strspn(p, " ")) {
        const int size = (int)strcspn(p, " ");
        const char *file = !strncmp(p, "MODEL", 5)   ? "mlp.onnx"
                           : !strncmp(p, "SMALL", 5) ? "cnn.qir"
                           : !strncmp(p, "LARGE", 5) ? "gpt.qir"
                                                     : NULL;
        if (file)
            snprintf(room[n], ROOM, "%s/%s", *p == 'M' ? l->models : l->examples, file);
        else
            snprintf(room[n], ROOM, "%.*s", size, p);
        argv[n] = room[n];
        n++;
        p += size;
    }
    return n;
}

/* A context of its own for each, as the command has; the words lie on the heap, so that the stack is the library's. */
static void *run_line(void *arg)
{
    const Line *l = arg;
    char(*room)[ROOM] = calloc(WORDS, sizeof *room);
    const char **argv = calloc(WORDS, sizeof *argv);
    const qcc_context_options o = { .size = sizeof o, .report = report, .user = l->transcript, .threads = 2 };
    const qcc_sink sink = { .write = write_out, .user = l->transcript };
    qcc_context *cx = NULL;
    if (!room || !argv || qcc_open(&o, &cx) != QCC_OK)
        abort();
    const int n = split(l, room, argv);
    fprintf(l->transcript, "$ qcc %s\n", l->text);
    const qcc_status status = qcc_command(cx, n, argv, &sink);
    fprintf(l->transcript, "= %d\n", (int)status);
    fflush(l->transcript);
    qcc_close(cx);
    free(room);
    free(argv);
    return NULL;
}

static void run_on_thread(const Line *l, size_t stack)
{
    pthread_t thread;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, stack) ||
        pthread_create(&thread, &attr, run_line, (void *)(uintptr_t)l) || pthread_join(thread, NULL))
        abort();
    pthread_attr_destroy(&attr);
}

/* Whether a verb, or for "MODEL" and "A" what stands for one, has a line. */
static bool has_line(const char *verb)
{
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strncmp(lines[i], verb, strlen(verb)) == 0 && lines[i][strlen(verb)] == ' ')
            return true;
    return false;
}

/* "  qcc VERB ..." of the help, less what this build has not. */
static int verbs_without_line(const char *transcript)
{
    char *text = file_text(transcript, NULL), *next, verb[32];
    int missing = 0, seen = 0;
    for (char *p = strstr(text, "usage\n") + 6; strncmp(p, "  qcc ", 6) == 0; p = next + 1) {
        next = strchr(p, '\n');
        *next = 0;
        if (sscanf(p, "  qcc %31s", verb) != 1 || strstr(p, "not in this build"))
            continue;
        seen++;
        if (!has_line(verb)) {
            printf("no line has the verb %s\n", verb);
            missing++;
        }
    }
    free(text);
    return missing + (seen < 8);
}

static void write_data(void)
{
    float x[64 * 4];
    int64_t y[64];
    FILE *csv = fopen("x.csv", "w");
    if (!csv)
        abort();
    for (int i = 0; i < 64 * 4; i++) {
        x[i] = (float)(i * 37 % 64) / 32 - 1;
        fprintf(csv, "%d.%d%c", i % 3, i % 10, i % 4 == 3 ? '\n' : ',');
    }
    for (int i = 0; i < 64; i++)
        y[i] = x[4 * i] > x[4 * i + 1];
    fclose(csv);
    write_npy("x.npy", "<f4", x, sizeof *x, 2, (int64_t[]){ 64, 4 });
    write_npy("y.npy", "<i8", y, sizeof *y, 1, (int64_t[]){ 64 });
}

int main(int argc, char **argv)
{
    enum { SMALL_STACK = 64 << 10 };
    const char *way = argc > 3 ? argv[3] : "";
    char half[8];
    if (argc < 3)
        return 2;
    write_data();
    Line l = { .models = argv[1], .examples = argv[2], .transcript = fopen("transcript", "w") };
    if (!l.transcript)
        return 2;
    if (strcmp(way, "locale") == 0 &&
        (!setlocale(LC_ALL, "") || snprintf(half, sizeof half, "%.1f", 0.5) != 3 || half[1] != ','))
        return 3;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        l.text = lines[i];
        if (strcmp(way, "stack") == 0)
            run_on_thread(&l, SMALL_STACK);
        else
            run_line(&l);
    }
    fclose(l.transcript);
    return verbs_without_line("transcript") ? 1 : 0;
}
