#include "fault/attack_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault/attack_tree.h"

enum { MOST_WORDS = 64, MOST_VARIABLES = 256, PATIENCE_MS = 60000, MOST_SECONDS = 30 };

static char folder[64], program[4096], preload[4200];
static const char *variables[MOST_VARIABLES];
static Attack *block;
static int out_fd, err_fd, null_fd;

static void stop_at(const char *what)
{
    perror(what);
    exit(2);
}

static int memory_file(const char *name)
{
    const int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        stop_at("memfd_create");
    return fd;
}

void attack_begin(const char *qcc, const char *interposer)
{
    char path[4096];
    int n = 0;
    if (!realpath(qcc, program) || !realpath(interposer, path))
        stop_at(qcc);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", path);
    for (char **e = environ; *e && n < MOST_VARIABLES - 2; e++)
        variables[n++] = *e;
    variables[n] = preload;
    snprintf(folder, sizeof folder, "/dev/shm/qcc-attack-XXXXXX");
    if (!mkdtemp(folder)) {
        snprintf(folder, sizeof folder, "/tmp/qcc-attack-XXXXXX");
        if (!mkdtemp(folder))
            stop_at(folder);
    }
    if (chdir(folder) != 0)
        stop_at(folder);
    const int fd = memory_file("attack");
    if (ftruncate(fd, sizeof *block) != 0 || dup2(fd, ATTACK_FD) < 0)
        stop_at("memfd");
    block = mmap(NULL, sizeof *block, PROT_READ | PROT_WRITE, MAP_SHARED, ATTACK_FD, 0);
    if (block == MAP_FAILED)
        stop_at("mmap");
    out_fd = memory_file("out");
    err_fd = memory_file("err");
    null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void attack_finish(void)
{
    const Tree nothing = { .n = 0 };
    tree_write(&nothing, ".");
    if (chdir("/") != 0 || rmdir(folder) != 0)
        stop_at(folder);
}

static pid_t start(char *const *words)
{
    const struct rlimit seconds = { MOST_SECONDS, MOST_SECONDS }, none = { 0, 0 };
    const pid_t child = vfork();
    if (child < 0)
        stop_at("vfork");
    if (child == 0) {
        setrlimit(RLIMIT_CPU, &seconds);
        setrlimit(RLIMIT_CORE, &none);
        dup2(null_fd, STDIN_FILENO);
        dup2(out_fd, STDOUT_FILENO);
        dup2(err_fd, STDERR_FILENO);
        execve(program, words, (char *const *)(uintptr_t)variables);
        _exit(126);
    }
    return child;
}

static int wait_for(pid_t child, bool *hangs)
{
    int status;
    struct pollfd p = { .fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN };
    *hangs = p.fd >= 0 && poll(&p, 1, PATIENCE_MS) == 0;
    if (*hangs)
        kill(child, SIGKILL);
    if (p.fd >= 0)
        close(p.fd);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            stop_at("waitpid");
    return status;
}

static char *said(int fd, size_t *n)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    if (!text || pread(fd, text, (size_t)size, 0) != size)
        stop_at("what was said");
    text[size] = 0;
    if (n)
        *n = (size_t)size;
    return text;
}

static void split(char *line, char **words)
{
    int n = 0;
    words[n++] = program;
    for (char *rest = NULL, *word = strtok_r(line, " ", &rest); word && n < MOST_WORDS - 1;
         word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    words[n] = NULL;
}

void attack_run(const char *line, const Attack *attack, Outcome *outcome)
{
    char copy[1024], *words[MOST_WORDS];
    snprintf(copy, sizeof copy, "%s", line);
    split(copy, words);
    *block = *attack;
    if (ftruncate(out_fd, 0) != 0 || ftruncate(err_fd, 0) != 0)
        stop_at("ftruncate");
    lseek(out_fd, 0, SEEK_SET);
    lseek(err_fd, 0, SEEK_SET);
    const int status = wait_for(start(words), &outcome->hangs);
    outcome->ended = WIFSIGNALED(status);
    outcome->code = outcome->ended ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    outcome->attack = *block;
    outcome->out = said(out_fd, &outcome->n_out);
    outcome->err = said(err_fd, NULL);
}

void outcome_drop(Outcome *o)
{
    free(o->out);
    free(o->err);
}
