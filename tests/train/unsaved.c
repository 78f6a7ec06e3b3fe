/* Checkpoints that cannot be saved, and errors in the middle of a run: what was learnt is left somewhere. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "train/command.h"

#define TOY     "train toy.qir --data x.npy --target y.npy --batch 16 "
#define FOREVER TOY "--steps 100000000 --checkpoint run --every 20ms --log l.jsonl "

enum { PATIENCE = 600 }; /* tenths of a second until something that must happen counts as missing */

static void wait_for(const char *path, const char *text)
{
    int i = 0;
    while (i++ < PATIENCE && !file_has(path, text))
        sleep_ms(100);
    check(i <= PATIENCE, "%s: %s does not come", path, text);
}

static void begin_run(void)
{
    shell("rm -rf run away l.jsonl *.trained.safetensors");
}

/* The folder goes away, as that of a server does, and comes back. */
static void tries_again(void)
{
    begin_run();
    const pid_t child = qcc_start_process(FOREVER);
    wait_for("l.jsonl", "\"event\":\"save\"");
    shell("mv run away");
    wait_for("err.txt", "is not saved");
    check(file_has("err.txt", "warning: ") && file_has("err.txt", "tried again in 10s"), "no word of another try");
    const int steps = file_count("l.jsonl", "{\"step\":");
    for (int i = 0; i < PATIENCE && file_count("l.jsonl", "{\"step\":") <= steps; i++)
        sleep_ms(20);
    check(file_count("l.jsonl", "{\"step\":") > steps, "the run does not go on");
    shell("mv away run");
    const int saves = file_count("l.jsonl", "\"event\":\"save\"");
    kill(child, SIGUSR1);
    for (int i = 0; i < PATIENCE && file_count("l.jsonl", "\"event\":\"save\"") <= saves; i++)
        sleep_ms(20);
    check(file_count("l.jsonl", "\"event\":\"save\"") > saves, "it does not save again");
    kill(child, SIGTERM);
    check(qcc_wait(child) == 130, "it does not end as usual");
    check(qcc(TOY "--steps 100000001 --checkpoint run --resume=must --max-time 1ms") == 0, "it cannot go on");
}

/* The folder stays away: the states are left where a run without one leaves them. */
static void leaves_states(bool stop)
{
    begin_run();
    const pid_t child = qcc_start_process(FOREVER "%s", stop ? "--on-save-error stop" : "");
    wait_for("l.jsonl", "\"event\":\"save\"");
    shell("mv run away");
    if (!stop) {
        wait_for("err.txt", "is not saved");
        kill(child, SIGTERM);
    }
    const int code = qcc_wait(child);
    check(code == (stop ? 5 : 130), "exit %d", code);
    check(is_there("toy.trained.safetensors") && file_has("out.txt", "wrote toy.trained.safetensors"),
          "nothing is left");
    check(!file_has("out.txt", "saved run"), "it says that it saved");
    check(file_has("err.txt", "run/step-"), "it does not say what failed");
    check(qcc("eval toy.qir --data x.npy --target y.npy --checkpoint toy.trained.safetensors") == 0,
          "what is left is of no use");
}

/* The second of two batches of a stream is cut short: the step that was done is not lost, and no model appears. */
static void survives_data(void)
{
    shell("rm -f *.trained.safetensors out.onnx");
    write_text("mean.qir", "graph @mean(%x: f32[103,8]) -> (%loss) {\n"
                           "    param %w: f32[8,4] = kaiming(seed=1)\n"
                           "    %y: f32[103,4] = matmul(%x, %w)\n"
                           "    %loss: f32[] = reduce_mean(%y, _, keepdims=false)\n"
                           "}\n");
    shell("{ cat x.npy; head -c 200 x.npy; } >cut.bin");
    const int code = qcc("train mean.qir --data x=- --steps 9 -o out.onnx <cut.bin");
    check(code == 3 || code == 5, "half an array: exit %d", code);
    check(is_there("mean.trained.safetensors") && file_has("out.txt", "failed           1 steps"), "the step is lost");
    check(!is_there("out.onnx"), "a run that failed writes a model");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(103);
    tries_again();
    leaves_states(false);
    leaves_states(true);
    survives_data();
    return finish();
}
