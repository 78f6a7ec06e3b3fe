/* How a run ends: signals, time, conditions, and that it never ends with nothing.
 *
 *     signals QCC [slow]        slow: steps of many seconds as well */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "train/command.h"

#define TOY "train toy.qir --data x.npy --target y.npy --batch 16 "

enum { PATIENCE = 600 }; /* tenths of a second until something that must happen counts as missing */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_for(const char *path, const char *text)
{
    int i = 0;
    while (i++ < PATIENCE && !(text ? file_has(path, text) : is_there(path)))
        sleep_ms(100);
    check(i <= PATIENCE, "%s: %s does not come", path, text ? text : "the file");
}

static void ends_in_order(int number)
{
    shell("rm -rf run l.jsonl");
    const pid_t child = qcc_start_process(TOY "--steps 100000000 --checkpoint run --every 100000000 --log l.jsonl");
    wait_for("l.jsonl", "{\"step\":3,");
    kill(child, number);
    const int code = qcc_wait(child);
    check(code == 130, "signal %d: exit %d", number, code);
    check(shell("test $(ls run/step-*.safetensors | wc -l) = 1") == 0, "signal %d: no checkpoint", number);
    check(file_has("l.jsonl", "\"event\":\"end\"") && file_has("l.jsonl", "\"reason\":\"interrupted\""), "no end");
    check(file_has("out.txt", "interrupted ") && file_has("out.txt", "next: qcc --export toy.qir"), "no last words");
    /* steps.jsonl: as many steps as the checkpoint says */
    const int steps = file_count("l.jsonl", "{\"step\":");
    char name[64];
    snprintf(name, sizeof name, "run/step-%08d.safetensors", steps);
    check(is_there(name), "%s is not the checkpoint", name);
    check(qcc(TOY "--steps %d --checkpoint run --resume=must", steps + 2) == 0, "cannot go on");
}

static void leaves_something(void)
{
    shell("rm -f *.trained.safetensors l.jsonl");
    pid_t child = qcc_start_process(TOY "--steps 100000000 --log l.jsonl");
    wait_for("l.jsonl", "{\"step\":3,");
    kill(child, SIGUSR1);
    wait_for("toy.trained.safetensors", NULL);
    shell("rm toy.trained.safetensors");
    kill(child, SIGINT);
    check(qcc_wait(child) == 130 && is_there("toy.trained.safetensors"), "a signal leaves nothing");
    check(file_has("out.txt", "wrote toy.trained.safetensors"), "it does not say what it wrote");

    shell("rm -f *.trained.safetensors l.jsonl");
    check(qcc(TOY "--steps 3") == 0 && is_there("toy.trained.safetensors"), "the end leaves nothing");
    shell("rm -f *.trained.safetensors");
    check(qcc(TOY "--steps 3 --no-save") == 0 && !is_there("toy.trained.safetensors"), "--no-save saves");
    check(qcc(TOY "--steps 3 -o out.onnx") == 0 && is_there("out.onnx"), "-o writes nothing");
    check(qcc(TOY "--steps 3 -o out.safetensors") == 0 && is_there("out.safetensors"), "-o writes nothing");
    check(!is_there("toy.trained.safetensors"), "a run with -o leaves more than that");
    check(qcc(TOY "--steps 3 -o out.bin") == 2, "-o out.bin is taken");
    check(qcc("train toy.qir --data x.npy --target y.npy --steps 3 -o toy.qir") == 2, "-o replaces the input");
}

/* Destinations are found wanting before the first step, not behind the last one. */
static void checks_places(void)
{
    static const char *const options[] = { "-o no/out.onnx", "--checkpoint x.npy/run", "--log no/l.jsonl",
                                           "--gradients no/g.npz", "--tensorboard out.safetensors" };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const double began = now();
        const int code = qcc(TOY "--steps 100000000 %s", options[i]);
        check(code == 5 && now() - began < 30, "%s: exit %d", options[i], code);
    }
    shell("rm -rf run");
    check(qcc(TOY "--steps 3 --checkpoint run --resume=must") == 5, "--resume=must starts");
    check(qcc(TOY "--steps 3 --checkpoint run --resume") == 0, "--resume does not start");
    check(file_has("out.txt", "nothing in run yet"), "--resume does not say that it starts");
    check(qcc(TOY "--steps 3 --checkpoint run") == 2, "a new run goes into the folder of another");
    check(qcc(TOY "--steps 3 --resume") == 2, "--resume from nowhere");
}

static void saves_on_demand(void)
{
    shell("rm -rf run l.jsonl");
    const pid_t child = qcc_start_process(TOY "--steps 100000000 --checkpoint run --every 100000000 --log l.jsonl");
    wait_for("l.jsonl", "{\"step\":3,");
    kill(child, SIGUSR1);
    wait_for("l.jsonl", "\"event\":\"save\"");
    const int then = file_count("l.jsonl", "{\"step\":");
    for (int i = 0; i < PATIENCE && file_count("l.jsonl", "{\"step\":") <= then; i++)
        sleep_ms(20);
    check(file_count("l.jsonl", "{\"step\":") > then, "it does not go on behind SIGUSR1");
    kill(child, SIGTERM);
    check(qcc_wait(child) == 130, "SIGTERM behind SIGUSR1");
    check(file_count("l.jsonl", "\"event\":\"save\"") == 2, "one save each");
}

static void ends_in_time(void)
{
    const double began = now();
    check(qcc(TOY "--steps 100000000 --max-time 500ms") == 0, "--max-time is a failure");
    check(now() - began < 30 && file_has("out.txt", "out of time "), "--max-time does not stop the run");
    check(qcc(TOY "--steps 400 --lr 0.05 --stop-if 'loss<0.8' --log l.jsonl") == 0, "--stop-if is a failure");
    check(file_has("out.txt", "stopped ") && file_count("l.jsonl", "{\"step\":") < 400, "--stop-if does not stop");
    check(qcc(TOY "--steps 40 --stop-if 'step>6.5' --log l.jsonl") == 0, "--stop-if step");
    check(file_count("l.jsonl", "{\"step\":") == 7, "not 7 steps");
    check(qcc(TOY "--steps 40 --stop-if 'los>6.5'") == 2, "--stop-if takes anything");
    check(qcc(TOY "--epochs 2 --steps 4") == 2, "epochs and steps");
}

/* In a folder: how often, how many, and which one is the best. */
static void keeps(void)
{
    shell("rm -rf run");
    check(qcc(TOY "--steps 20 --checkpoint run --every 3 --keep 4 --best none --val x.npy --val-target y.npy") == 0,
          "keep 4");
    check(shell("test \"$(ls run | tr '\\n' ' ')\" = 'last step-00000012.safetensors step-00000015.safetensors "
                "step-00000018.safetensors step-00000020.safetensors '") == 0,
          "not the last four of every third");
    shell("rm -rf run");
    check(qcc(TOY "--epochs 5 --checkpoint run --every 2epoch --best val_accuracy --val-split 0.2") == 0, "2epoch");
    check(shell("test -e run/best") == 0, "no best");
    check(qcc(TOY "--steps 300 --checkpoint run3 --every 1ms") == 0 && shell("test $(ls run3/step-* | wc -l) = 3") == 0,
          "every 1ms");
    check(qcc(TOY "--steps 9 --checkpoint run4 --keep 1") == 2, "--keep 1");
    check(qcc(TOY "--steps 9 --checkpoint run4 --every never") == 2, "--every never");
}

/* Sixty layers, each of a fair part of a second. */
static void write_slow(void)
{
    FILE *f = fopen("slow.qir", "wb");
    fputs("graph @slow(%x: f32[?,8]) -> (%logits) {\n"
          "    param %w0: f32[8,400] = kaiming(seed=1)\n"
          "    param %w: f32[400,400] = kaiming(seed=2)\n"
          "    param %z: f32[400,4] = kaiming(seed=3)\n"
          "    %h0: f32[?,400] = matmul(%x, %w0)\n",
          f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "    %%h%d: f32[?,400] = matmul(%%h%d, %%w)\n", i + 1, i);
    fputs("    %logits: f32[?,4] = matmul(%h60, %z)\n}\n", f);
    fclose(f);
}

#define SLOW "train slow.qir --data many.npy --target labels.npy --batch 4000 --loss cross_entropy "

static void gives_up(void)
{
    write_slow();
    shell("rm -rf run");
    pid_t child = qcc_start_process(SLOW "--steps 1000 --threads 1 --grace 1s --checkpoint run");
    wait_for("out.txt", "new run");
    sleep_ms(300);
    double began = now();
    kill(child, SIGTERM);
    int code = qcc_wait(child);
    check(code == 130 && now() - began < 10, "--grace: exit %d after %g s", code, now() - began);
    check(is_there("run/step-00000000.safetensors") || is_there("run/step-00000001.safetensors"),
          "--grace saves nothing");

    shell("rm -rf run");
    child = qcc_start_process(SLOW "--steps 1000 --threads 1 --checkpoint run");
    wait_for("out.txt", "new run");
    sleep_ms(300);
    kill(child, SIGTERM);
    sleep_ms(200);
    kill(child, SIGTERM);
    code = qcc_wait(child);
    check(code == 130, "a second signal: exit %d", code);
    check(shell("ls run/step-* >/dev/null 2>&1") != 0, "a second signal saves");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(103);
    if (argc > 2) {
        shell("mv x.npy x103.npy; mv y.npy y103.npy");
        write_toy(4000);
        shell("mv x.npy many.npy; mv y.npy labels.npy");
        gives_up();
        return finish();
    }
    ends_in_order(SIGTERM);
    ends_in_order(SIGINT);
    leaves_something();
    checks_places();
    saves_on_demand();
    ends_in_time();
    keeps();
    return finish();
}
