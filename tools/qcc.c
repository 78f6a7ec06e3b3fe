/* The command: a context, its words on standard error, its results on standard output. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "qcc/qcc.h"

/* Which context a signal is to interrupt: handlers have no argument. */
static qcc_context *running;

static void on_signal(int number)
{
    (void)number;
    qcc_interrupt(running);
}

static void report(void *user, const qcc_message *message)
{
    (void)user;
    fputs(message->text, stderr);
}

static qcc_status put(void *user, const void *bytes, size_t n)
{
    (void)user;
    for (const char *p = bytes; n;) {
        const ssize_t got = write(STDOUT_FILENO, p, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return QCC_IO;
        p += got;
        n -= (size_t)got;
    }
    return QCC_OK;
}

/* The first signal ends the work in order, the second one at once. */
static void handle_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
    const qcc_context_options options = { .size = sizeof options, .report = report };
    const qcc_sink out = { .write = put };
    qcc_status status = qcc_open(&options, &running);
    if (status == QCC_OK) {
        handle_signals();
        status = qcc_command(running, argc, (const char *const *)argv, &out);
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        qcc_close(running);
    }
    if (status == QCC_INTERRUPTED)
        fputs("interrupted\n", stderr);
    return status <= QCC_INTERNAL || status == QCC_INTERRUPTED ? (int)status : (int)QCC_INTERNAL;
}
