/* A terminal that closes, a pipe that nobody reads, a full disk behind standard output: results are written all the
 * same, and the exit code tells. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/command.h"

#define TOY "train toy.qir --data x.npy --target y.npy --batch 16 "

enum { PATIENCE = 600 }; /* tenths of a second until something that must happen counts as missing */

static void wait_for(const char *path, const char *text)
{
    int i = 0;
    while (i++ < PATIENCE && !file_has(path, text))
        sleep_ms(100);
    check(i <= PATIENCE, "%s: %s does not come", path, text);
}

/* ---- standard streams that take nothing ---- */

/* What stands behind a command line; 1 is standard output. */
typedef struct Streams {
    const char *name, *redirect; /* null: a pipe that nobody reads */
    bool words_lost;             /* what goes to standard output */
} Streams;

static const Streams streams[] = {
    { "standard output is full", ">/dev/full 2>err.txt", true },
    { "standard output is closed", ">&- 2>err.txt", true },
    { "standard error is full", ">out.txt 2>/dev/full", false },
    { "standard error is closed", ">out.txt 2>&-", false },
    { "both are full", ">/dev/full 2>/dev/full", true },
    { "all are closed", "<&- >&- 2>&-", true },
    { "nobody reads", NULL, true },
};

/* Command lines with a file as result; OUT is its name. */
typedef struct Verb {
    const char *line, *suffix;
    bool has_words; /* it says something beside the file */
} Verb;

static const Verb verbs[] = {
    { "toy.qir --loss cross_entropy --batch 16 -o OUT", "onnx", true },
    { "toy.qir --emit ir -o OUT", "qir", false },
    { "toy.qir --emit onnx -o OUT", "onnx", false },
    { "toy.qir --emit html -o OUT", "html", false },
    { "toy.qir --loss cross_entropy --batch 16 --emit onnx-step -o OUT", "onnx", false },
    { "export toy.onnx -o OUT", "onnx", true },
    { "export toy.onnx --dtype fp16 -o OUT", "onnx", true },
    { "run toy.qir --input x=x.npy --output logits=OUT", "npy", false },
    { "explain toy.qir -o OUT", "txt", false },
    { "diff toy.qir toy.onnx -o OUT", "txt", false },
    { "check toy.qir -o OUT", "txt", false },
    { "--list-ops -o OUT", "txt", false },
    { "--print-table amp -o OUT", "txt", false },
    { TOY "--steps 5 -o OUT", "onnx", true },
    { TOY "--steps 5 -o OUT", "safetensors", true },
    { TOY "--steps 5 --checkpoint OUT", "safetensors", true },
};

/* Runs a command line whose standard output is a pipe that nobody reads. */
static int run_unread(const char *line)
{
    int ends[2];
    char whole[4096];
    snprintf(whole, sizeof whole, "exec \"$QCC\" %s </dev/null 2>err.txt", line);
    if (pipe(ends) != 0)
        return -1;
    close(ends[0]);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[1]);
        execl("/bin/sh", "sh", "-c", whole, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    return qcc_wait(child);
}

static int run_with(const Verb *v, const char *out, const char *redirect)
{
    char line[2048];
    const char *at = strstr(v->line, "OUT");
    snprintf(line, sizeof line, "%.*s%s%s", (int)(at - v->line), v->line, out, at + 3);
    return redirect ? shell("exec \"$QCC\" %s %s", line, redirect) : run_unread(line);
}

static void files_are_written(void)
{
    int n = 0;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        const Verb *v = &verbs[i];
        char want[64], got[64];
        snprintf(want, sizeof want, "want.%s", v->suffix);
        snprintf(got, sizeof got, "got.%s", v->suffix);
        shell("rm -f want.* got.*");
        const int usual = run_with(v, want, ">out.txt 2>err.txt");
        check(usual == 0, "%s: exit %d", v->line, usual);
        for (size_t k = 0; k < sizeof streams / sizeof *streams; k++, n++) {
            shell("rm -f %s", got);
            const int code = run_with(v, got, streams[k].redirect);
            const int wanted = v->has_words && streams[k].words_lost ? 5 : 0;
            check(code == wanted, "%s: %s: exit %d, not %d", streams[k].name, v->line, code, wanted);
            /* what names its own file differs in that name alone */
            check(same_files(want, got) || strstr(v->line, "--emit html") || strstr(v->line, "explain"),
                  "%s: %s: the file is another one", streams[k].name, v->line);
            check(is_there(got), "%s: %s: no file", streams[k].name, v->line);
        }
    }
    printf("%d command lines with a file\n", n);
}

static void results_are_missed(void)
{
    static const char *const lines[] = { "explain toy.qir",
                                         "check toy.qir",
                                         "--list-ops",
                                         "diff toy.qir toy.onnx",
                                         "--version -v",
                                         "--help",
                                         "toy.qir --emit ir -o -",
                                         "run toy.qir --input x=x.npy",
                                         "eval toy.qir --data x.npy --target y.npy" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        check(shell("\"$QCC\" %s >/dev/full 2>err.txt", lines[i]) == 5, "%s >/dev/full", lines[i]);
        check(file_count("err.txt", "\n") == 1 && file_has("err.txt", "cannot be written: No space left on device"),
              "%s >/dev/full: not one word of it", lines[i]);
        check(shell("\"$QCC\" %s >&- 2>err.txt", lines[i]) == 5, "%s >&-", lines[i]);
        check(file_count("err.txt", "\n") == 1, "%s >&-: not one word of it", lines[i]);
        check(run_unread(lines[i]) == 5, "%s | true", lines[i]);
        const bool says = strstr(lines[i], "eval") != NULL; /* it goes on, and answers at the end */
        check(file_count("err.txt", "\n") == says, "%s | true: words", lines[i]);
    }
}

/* A reader who leaves in the middle of a run. */
static void readers_leave(void)
{
    check(qcc(TOY "--steps 40 -o want.onnx") == 0, "to the end");
    shell("rm -f got.onnx code; { \"$QCC\" " TOY "--steps 40 -o got.onnx --progress plain 2>err.txt; echo $? >code; } "
          "| head -c 1 >/dev/null");
    check(same_files("want.onnx", "got.onnx"), "a reader who leaves costs the result");
    check(qcc(TOY "--steps 3000 -o want.onnx") == 0, "to the end");
    shell("rm -f got.onnx l.jsonl; mkfifo l.jsonl; head -c 1 l.jsonl >/dev/null & "
          "\"$QCC\" " TOY "--steps 3000 -o got.onnx --log l.jsonl >out.txt 2>err.txt; echo $? >code; rm l.jsonl");
    check(same_files("want.onnx", "got.onnx"), "a log that breaks costs the result");
    check(file_has("code", "5") && file_has("err.txt", "the run goes on without it"), "a lost log is no failure");
    check(file_has("err.txt", "is not whole"), "the end does not say that the log is not whole");
}

/* ---- signals ---- */

/* Said over and over, as terminals and batch systems do. */
static void ends_in_order(int number)
{
    shell("rm -rf run l.jsonl out.onnx");
    const pid_t child =
        qcc_start_process(TOY "--steps 100000000 --checkpoint run --every 100000000 --log l.jsonl -o out.onnx");
    wait_for("l.jsonl", "{\"step\":3,");
    for (int i = 0; i < 5; i++)
        kill(child, number);
    const int code = qcc_wait(child);
    check(code == 130, "signal %d: exit %d", number, code);
    check(shell("test $(ls run/step-*.safetensors | wc -l) = 1") == 0, "signal %d: no checkpoint", number);
    check(is_there("out.onnx") && file_has("l.jsonl", "\"reason\":\"interrupted\""), "signal %d: no model", number);
}

static void nohup_goes_on(void)
{
    shell("rm -f l.jsonl out.onnx");
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGHUP, SIG_IGN);
        execl("/bin/sh", "sh", "-c",
              "exec \"$QCC\" " TOY "--steps 2000 --log l.jsonl -o out.onnx </dev/null >out.txt 2>err.txt",
              (char *)NULL);
        _exit(126);
    }
    wait_for("l.jsonl", "{\"step\":3,");
    kill(child, SIGHUP);
    const int code = qcc_wait(child);
    check(code == 0 && file_has("l.jsonl", "{\"step\":2000,"), "nohup: exit %d", code);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(103);
    check(qcc("toy.qir --emit onnx -o toy.onnx") == 0, "toy.onnx");
    files_are_written();
    results_are_missed();
    readers_leave();
    ends_in_order(SIGHUP);
    ends_in_order(SIGXCPU);
    nohup_goes_on();
    return finish();
}
