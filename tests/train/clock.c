/* A clock that is set back while a run trains: it ends in time, saves in time, and tells no time that cannot be.
 *
 *     clock QCC LIBRARY       the library is tests/train/clock_back.c */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/command.h"

#define TOY "train toy.qir --data x.npy --target y.npy --batch 16 "

/* The exit code, or -1 for a run that had to be killed. */
static int ends_by_itself(pid_t child)
{
    enum { PATIENCE = 60 * 20 };
    int status = 0;
    for (int i = 0; i < PATIENCE; i++) {
        if (waitpid(child, &status, WNOHANG) == child)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        sleep_ms(50);
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

/* Every number behind `key` in a file is at least 0 and below `most`; how many there were. */
static int sane_numbers(const char *path, const char *key, double most)
{
    char *all = file_text(path, NULL);
    int n = 0;
    for (const char *p = all; p && (p = strstr(p, key)); n++) {
        p += strlen(key);
        const double x = strtod(p, NULL);
        check(x >= 0 && x < most, "%s: %s%.20s", path, key, p);
    }
    free(all);
    return n;
}

static void run_under_it(const char *library)
{
    setenv("LD_PRELOAD", library, 1);
    const pid_t child = qcc_start_process(TOY "--epochs 100000000 --max-time 3s --checkpoint run --every 300ms "
                                              "--log l.jsonl --tensorboard tb --progress plain");
    const int code = ends_by_itself(child);
    check(code == 0, "exit %d: %s", code, code < 0 ? "it had no end" : "it failed");
    check(file_has("out.txt", "out of time "), "it does not end for the time");
    check(file_count("l.jsonl", "\"event\":\"save\"") >= 2, "it does not save in time: %d",
          file_count("l.jsonl", "\"event\":\"save\""));
    check(file_count("l.jsonl", "\"event\":\"save\"") <= 40, "it saves all the time");
    check(sane_numbers("l.jsonl", "\"seconds\":", 60) > 0, "no seconds in the log");
    check(sane_numbers("l.jsonl", "\"items_per_s\":", 1e9) > 0, "no rates in the log");
    check(!file_has("err.txt", "eta -") && !file_has("out.txt", ", -"), "a negative time");
    check(file_has("err.txt", "eta "), "nothing was said of the progress");

    const pid_t again = qcc_start_process(TOY "--epochs 100000000 --max-time 300ms --checkpoint run --resume=must");
    check(ends_by_itself(again) == 0 && file_has("out.txt", "goes on after step "), "it does not go on");
    unsetenv("LD_PRELOAD");
}

/* That the library does what it is for. */
static bool goes_back(const char *library)
{
    return shell("[ \"$(LD_PRELOAD='%s' date +%%Y)\" -lt \"$(date +%%Y)\" ]", library) == 0;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    char *library = realpath(argv[2], NULL);
    begin(argv[1]);
    write_toy(64);
    check(library && goes_back(library), "%s cannot be loaded", argv[2]);
    run_under_it(library);
    free(library);
    return finish();
}
