/* A hundred thousand steps of a small model: memory, descriptors and the time of a step do not grow. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/command.h"

enum { STEPS = 100000 };

static long resident(pid_t child)
{
    char path[64], line[256];
    long kb = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)child);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

/* Seconds of processor time. */
static double used(pid_t child)
{
    char path[64], line[1024] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)child);
    FILE *f = fopen(path, "r");
    if (f && fgets(line, sizeof line, f) && strrchr(line, ')'))
        sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
    if (f)
        fclose(f);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static int descriptors_now(pid_t child)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%ld/fd", (long)child);
    DIR *d = opendir(path);
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* What is held all along: a checkpoint that is being written has a descriptor as well, for some milliseconds. */
static int descriptors(pid_t child)
{
    int least = descriptors_now(child);
    for (int i = 0; i < 40; i++) {
        sleep_ms(5);
        const int n = descriptors_now(child);
        least = n < least ? n : least;
    }
    return least;
}

/* Steps that the log has so far. */
static long steps_done(long *at)
{
    FILE *f = fopen("l.jsonl", "rb");
    char tail[4096];
    if (!f)
        return 0;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f), from = size > (long)sizeof tail - 1 ? size - (long)sizeof tail + 1 : 0;
    fseek(f, from, SEEK_SET);
    tail[fread(tail, 1, sizeof tail - 1, f)] = 0;
    fclose(f);
    for (const char *p = tail; (p = strstr(p, "{\"step\":")); p++)
        *at = strtol(p + 8, NULL, 10);
    return *at;
}

static void wait_until(long step, long *at)
{
    for (int i = 0; i < 12000 && steps_done(at) < step; i++)
        sleep_ms(50);
}

int main(int argc, char **argv)
{
    long at = 0;
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(103);
    const pid_t child = qcc_start_process("train rich.qir --data x.npy --target y.npy --batch 14 --steps %d --ema 0.9 "
                                          "--accumulate 2 --val x.npy --val-target y.npy --metric f1 --checkpoint run "
                                          "--every 2000 --best none --threads 2 --log l.jsonl --tensorboard tb",
                                          STEPS);
    wait_until(STEPS / 10, &at);
    const long rss = resident(child), first = at;
    const int open = descriptors(child);
    const double began = used(child);
    check(rss > 0 && open > 0, "nothing to look at after %ld steps", at);
    wait_until(STEPS * 3 / 10, &at);
    const double early = (used(child) - began) / (double)(at - first);
    wait_until(STEPS * 7 / 10, &at);
    const double then = used(child);
    const long from = at;
    wait_until(STEPS * 9 / 10, &at);
    const double late = (used(child) - then) / (double)(at - from);
    const long later = resident(child);
    const int open_later = descriptors(child);
    check(later > 0 && later - rss < 1024, "memory grows from %ld to %ld kB between %ld and %ld steps", rss, later,
          first, at);
    check(open_later == open, "%d descriptors, then %d", open, open_later);
    check(late < 1.5 * early, "a step takes %g s, then %g s", early, late);
    const int code = qcc_wait(child);
    check(code == 0, "exit %d", code);
    return finish();
}
