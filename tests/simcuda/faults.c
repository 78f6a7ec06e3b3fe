/* label: slow */
/* Calls of the driver, and of cuBLAS where that makes products, that a run makes fail once, or from there on, or find no memory: the run ends as it should or with the
 * status of a device, says why, and leaves nothing on the device, unless no call gives back any more. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLS = 340, STEP = 3, OF_A_DEVICE = 6, TEXT = 4096 };

static const char *const ways[] = { "", "+ QCC_SIM_AUDIT=left", ":2" };

static const char *const command =
    "cd \"$FOLDER\" && rm -rf kept && QCC_SIM_FAIL=%d%s timeout 60 '%s' train '%s%s' --data x.csv --target y.csv --epochs 1 --no-save "
    "--device cuda --progress none -q -o o.onnx 2>said";

/* What is trained; every so many calls fail. */
typedef struct Trained {
    const char *model, *options;
    bool of_source;
    int step;
} Trained;

static const Trained trained[] = {
    { "/tests/command/models/mlp.onnx", "' --batch '4", true, STEP },
    { "/tests/command/models/mlp.onnx", "' --batch 4 --accumulate '2", true, 4 * STEP + 1 },
    { "/tests/command/models/mlp.onnx", "' --batch 4 --amp fp16 --loss-scale 'dynamic:init=2^24,interval=1", true,
      4 * STEP + 1 },
    { "products.qir", "' --batch 8 --matmul 'cublas", false, 4 * STEP + 1 },
    { "ends.qir", "' --batch 8 --cache kept --matmul 'auto", false, 4 * STEP + 1 }, /* measured anew each time */
};

/* A model whose products are large enough for a library. */
static const char *const products =
    "cd \"$FOLDER\" && printf 'graph @f(%%x: f32[?,4]) -> (%%y) {\n    param %%a: f32[4,16] = kaiming(seed=1)\n    "
    "param %%b: f32[16,8] = kaiming(seed=2)\n    %%h: f32[?,16] = matmul(%%x, %%a)\n    %%r: f32[?,16] = tanh(%%h)\n    "
    "%%y: f32[?,8] = matmul(%%r, %%b)\n}\n' >products.qir && sed 's/tanh/relu/' products.qir >ends.qir";

static int run(const char *qcc, const char *source, const Trained *t, int call, const char *way)
{
    char line[TEXT], what[TEXT / 2];
    snprintf(what, sizeof what, "%s%s", t->model, t->options);
    snprintf(line, sizeof line, command, call, way, qcc, t->of_source ? source : "", what);
    const int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int said(const char *word)
{
    char line[TEXT];
    snprintf(line, sizeof line, "grep -q '%s' \"$FOLDER/said\"", word);
    return system(line) == 0;
}

static int sweep(const char *qcc, const char *source, const Trained *t)
{
    int wrong = 0, failed = 0, fine = 0;
    for (int call = 1; call < CALLS; call += t->step)
        for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
            const int code = run(qcc, source, t, call, ways[w]);
            failed += code == OF_A_DEVICE;
            fine += code == 0;
            if (code == 0 || (code == OF_A_DEVICE && (said("device 0") || said("no GPU"))))
                continue;
            fprintf(stderr, "%s: call %d%s fails: exit %d\n", t->model, call, ways[w], code);
            (void)!system("cat \"$FOLDER/said\" >&2");
            wrong++;
        }
    printf("%d runs failed, %d did not notice\n", failed, fine);
    return wrong || failed < CALLS / t->step || !fine;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/qcc-faults-XXXXXX";
    if (argc != 3 || !mkdtemp(folder) || setenv("FOLDER", folder, 1) != 0)
        return 2;
    (void)!system("cd \"$FOLDER\" && for i in 0 1 2 3 4 5 6 7; do echo $((i % 3)),$((i % 5)),$i,1; done >x.csv && "
                  "for i in 0 1 2 3 4 5 6 7; do echo $((i % 2)); done >y.csv");
    int wrong = system(products) != 0;
    for (size_t i = 0; i < sizeof trained / sizeof *trained; i++)
        wrong |= sweep(argv[1], argv[2], &trained[i]);
    (void)!system("rm -r \"$FOLDER\"");
    return wrong;
}
