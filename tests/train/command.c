#include "train/command.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *program;
static char folder[64];
static int failed;

void begin(const char *qcc)
{
    snprintf(folder, sizeof folder, "/tmp/qcc-train-XXXXXX");
    program = realpath(qcc, NULL);
    if (!program || setenv("QCC", program, 1) != 0 || !mkdtemp(folder) || chdir(folder) != 0) {
        perror(qcc);
        exit(2);
    }
}

int finish(void)
{
    if (chdir("/") == 0 && !getenv("QCC_KEEP_FOLDER"))
        shell("rm -rf %s", folder);
    return failed ? 1 : 0;
}

void check_at(const char *file, int line, bool good, const char *format, ...)
{
    va_list list;
    if (good)
        return;
    failed++;
    va_start(list, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    if (failed == 1)
        shell("head -5 err.txt >&2");
}

static pid_t start(const char *line)
{
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(126);
    }
    return child;
}

int qcc_wait(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* "exec" keeps the process that signals go to the one that was started. */
static pid_t __attribute__((format(printf, 1, 0))) start_qcc(const char *format, va_list list)
{
    char arguments[4096], line[8192];
    vsnprintf(arguments, sizeof arguments, format, list);
    const char *in = strchr(arguments, '<') ? "" : "</dev/null";
    snprintf(line, sizeof line, "exec '%s' %s %s >out.txt 2>err.txt", program, arguments, in);
    return start(line);
}

int qcc(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const pid_t child = start_qcc(format, list);
    va_end(list);
    return qcc_wait(child);
}

pid_t qcc_start_process(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    const pid_t child = start_qcc(format, list);
    va_end(list);
    return child;
}

int shell(const char *format, ...)
{
    char line[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    return qcc_wait(start(line));
}

char *file_text(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    char *text = malloc((size_t)size + 1);
    const size_t got = fread(text, 1, (size_t)size, f);
    text[got] = 0;
    fclose(f);
    if (n)
        *n = got;
    return text;
}

bool same_files(const char *a, const char *b)
{
    size_t na = 0, nb = 0;
    char *x = file_text(a, &na), *y = file_text(b, &nb);
    const bool same = x && y && na == nb && memcmp(x, y, na) == 0;
    free(x);
    free(y);
    return same;
}

int file_count(const char *path, const char *text)
{
    char *all = file_text(path, NULL);
    int n = 0;
    for (const char *p = all; p && (p = strstr(p, text)); p += strlen(text))
        n++;
    free(all);
    return n;
}

bool file_has(const char *path, const char *text)
{
    return file_count(path, text) > 0;
}

bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        abort();
}

void write_npy(const char *path, const char *descr, const void *values, size_t size, int rank, const int64_t *dims)
{
    char head[128], shape[96] = "";
    size_t n = 1;
    for (int k = 0; k < rank; k++) {
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld,", (long long)dims[k]);
        n *= (size_t)dims[k];
    }
    const int len =
        snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
    FILE *f = fopen(path, "wb");
    if (!f)
        abort();
    fputs("\x93NUMPY\x01", f);
    fputc(0, f);
    fputc(118, f);
    fputc(0, f);
    fprintf(f, "%s%*s\n", head, 117 - len, "");
    fwrite(values, size, n, f);
    fclose(f);
}

double draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / (double)(1ll << 52) - 1;
}

static const char toy[] = "graph @toy(%x: f32[?,8]) -> (%logits) {\n"
                          "    param %fc1.weight: f32[6,8] = kaiming(seed=1)\n"
                          "    param %fc1.bias: f32[6] = zeros\n"
                          "    param %fc2.weight: f32[4,6] = kaiming(seed=2)\n"
                          "    param %fc2.bias: f32[4] = zeros\n"
                          "    %fc1: f32[?,6] = gemm(%x, %fc1.weight, %fc1.bias, transB=true)\n"
                          "    %hidden: f32[?,6] = relu(%fc1)\n"
                          "    %logits: f32[?,4] = gemm(%hidden, %fc2.weight, %fc2.bias, transB=true)\n"
                          "}\n";

static const char rich[] = "graph @rich(%x: f32[?,8]) -> (%logits) {\n"
                           "    param %fc1.weight: f32[6,8] = kaiming(seed=1)\n"
                           "    param %fc1.bias: f32[6] = zeros\n"
                           "    param %bn.scale: f32[6] = ones\n"
                           "    param %bn.bias: f32[6] = zeros\n"
                           "    param %bn.mean: f32[6] = zeros\n"
                           "    param %bn.var: f32[6] = ones\n"
                           "    const %half: f32[] = 0.25\n"
                           "    param %fc2.weight: f32[4,6] = kaiming(seed=2)\n"
                           "    param %fc2.bias: f32[4] = zeros\n"
                           "    %fc1: f32[?,6] = gemm(%x, %fc1.weight, %fc1.bias, transB=true)\n"
                           "    %bn: f32[?,6] = batch_normalization(%fc1, %bn.scale, %bn.bias, %bn.mean, %bn.var)\n"
                           "    %act: f32[?,6] = relu(%bn)\n"
                           "    %hidden: f32[?,6] = dropout(%act, %half)\n"
                           "    %logits: f32[?,4] = gemm(%hidden, %fc2.weight, %fc2.bias, transB=true)\n"
                           "}\n";

void write_toy(int64_t n)
{
    uint64_t state = 7;
    float *x = malloc((size_t)n * 8 * sizeof *x);
    int64_t *y = malloc((size_t)n * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 8; k++)
            x[i * 8 + k] = (float)draw(&state);
        y[i] = (x[i * 8] > 0) + 2 * (x[i * 8 + 1] > x[i * 8 + 2]);
    }
    write_npy("x.npy", "<f4", x, sizeof *x, 2, (int64_t[]){ n, 8 });
    write_npy("y.npy", "<i8", y, sizeof *y, 1, (int64_t[]){ n });
    free(x);
    free(y);
    write_text("toy.qir", toy);
    write_text("rich.qir", rich);
}

void sleep_ms(int ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000l }, NULL);
}
