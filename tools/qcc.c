/* The command: a context, its words on standard error, its results on standard output. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "qcc/qcc.h"

/* Which context a signal is to interrupt: handlers have no argument. */
static qcc_context *running;

static void interrupt(void)
{
    qcc_interrupt(running);
    alarm(qcc_grace(running));
}

/* Who writes to the terminal: a bar stands in its last line until whatever comes next takes it away, on either stream. */
static volatile sig_atomic_t bar_is_there;

static void clear_bar(void)
{
    static const char clear[] = "\r\033[K";
    if (!bar_is_there)
        return;
    bar_is_there = 0;
    for (size_t n = 0; n < sizeof clear - 1;) {
        const ssize_t got = write(STDERR_FILENO, clear + n, sizeof clear - 1 - n);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            return;
        n += got > 0 ? (size_t)got : 0;
    }
}

/* The first signal lets a training run finish its step and save, the second one ends the process at once. */
static void on_signal(int number)
{
    static volatile sig_atomic_t seen;
    if (seen) {
        clear_bar();
        _exit(128 + SIGINT);
    }
    seen = number;
    interrupt();
}

/* The terminal is gone, or the time on the processor is used up: both are said again and again, and mean it once. */
static void on_notice(int number)
{
    static volatile sig_atomic_t seen;
    if (!seen)
        interrupt();
    seen = number;
}

/* The step takes longer than there is time for: it is given up, what was before it is saved. */
static void on_alarm(int number)
{
    (void)number;
    qcc_interrupt(running);
}

static void on_save(int number)
{
    (void)number;
    qcc_request_save(running);
}

/* Whoever started us may have closed standard streams: what is opened next must not be taken for one of them.  A folder
 * can be neither read nor written. */
static void occupy_standard_streams(void)
{
    int fd;
    do
        fd = open("/", O_RDONLY | O_DIRECTORY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* How wide the terminal is that progress goes to; 0: it is none. */
static int columns(void)
{
    struct winsize size;
    if (!isatty(STDERR_FILENO))
        return 0;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* A bar that were longer than its line could not be taken away. */
static void draw_bar(const char *text)
{
    const int wide = columns();
    fprintf(stderr, "%.*s", wide > 1 ? wide - 1 : (int)strlen(text), text);
    fflush(stderr);
    bar_is_there = 1;
}

static void report(void *user, const qcc_message *message)
{
    (void)user;
    clear_bar();
    if (message->severity == QCC_PROGRESS && message->topic && strcmp(message->topic, "bar") == 0) {
        draw_bar(message->text);
        return;
    }
    fputs(message->text, stderr);
    if (message->severity == QCC_PROGRESS)
        fputc('\n', stderr);
}

/* Leaves an errno where it fails, which says why. */
static qcc_status put(void *user, const void *bytes, size_t n)
{
    (void)user;
    clear_bar();
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

/* Where compiled kernels are kept unless --cache says it: as the user says it, or in the folder of caches. */
static const char *cache(char *room, size_t n)
{
    const char *own = getenv("QCC_CACHE"), *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int used = 0;
    if (own && *own)
        return own;
    if (caches && *caches == '/')
        used = snprintf(room, n, "%s/qcc", caches);
    else if (home && *home == '/')
        used = snprintf(room, n, "%s/.cache/qcc", home);
    return used > 0 && (size_t)used < n ? room : NULL;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* nohup means it. */
static void handle_hangup(void)
{
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        handle(SIGHUP, on_notice);
}

static void handle_signals(void)
{
    handle(SIGINT, on_signal);
    handle(SIGTERM, on_signal);
    handle_hangup();
    handle(SIGXCPU, on_notice);
    handle(SIGALRM, on_alarm);
    handle(SIGUSR1, on_save);
}

/* What the command answers, once it is known. */
static volatile sig_atomic_t answer;

static void on_late(int number)
{
    (void)number;
    _exit(answer);
}

/* Behind the last word there is nothing left to interrupt: whoever is impatient gets the answer at once. */
static void settle_signals(qcc_status status)
{
    static const int over[] = { SIGHUP, SIGXCPU, SIGALRM, SIGUSR1 };
    answer = (sig_atomic_t)status;
    handle(SIGINT, on_late);
    handle(SIGTERM, on_late);
    for (size_t i = 0; i < sizeof over / sizeof *over; i++)
        signal(over[i], SIG_IGN);
}

/* An exit code that the pages list. */
static qcc_status known(qcc_status status)
{
    return status <= QCC_INTERNAL || status == QCC_INTERRUPTED ? status : QCC_INTERNAL;
}

int main(int argc, char **argv)
{
    char room[4096];
    const qcc_context_options options = {
        .size = sizeof options, .report = report, .columns = columns(), .cache = cache(room, sizeof room)
    };
    const qcc_sink out = { .path = "-", .write = put };
    occupy_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* writing answers EPIPE, */
    signal(SIGXFSZ, SIG_IGN); /* and EFBIG */
    qcc_status status = qcc_open(&options, &running);
    if (status == QCC_OK) {
        handle_signals();
        status = qcc_command(running, argc, (const char *const *)argv, &out);
        clear_bar();
        if (status == QCC_INTERRUPTED)
            fputs("interrupted\n", stderr);
        status = known(status);
        settle_signals(status);
        qcc_close(running);
    } else {
        fprintf(stderr, "qcc: cannot start: %s\n", qcc_status_name(status));
    }
    return (int)known(status);
}
