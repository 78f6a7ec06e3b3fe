/* What a person sees: the command in a pseudo-terminal, whose screen is drawn as terminals do it.  Once a run is over no
 * piece of a bar is left, and every line of results and words begins where a line begins. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "train/command.h"

enum { WIDE = 60, LINES = 400, LONGEST = 256 };

/* What stands there: each line as wide as the terminal. */
typedef struct Screen {
    char lines[LINES][WIDE + 1];
    int row, column, bars; /* bars that were drawn */
    bool begins;           /* it says that the first step is on its way */
    char escape[16];
    int n_escape;
} Screen;

static void put_char(Screen *s, char c)
{
    if (s->column == WIDE) { /* it goes on in the next line, as a terminal does */
        s->column = 0;
        s->row++;
    }
    if (s->row >= LINES)
        return;
    char *line = s->lines[s->row];
    for (int i = (int)strlen(line); i < s->column; i++)
        line[i] = ' ';
    line[s->column++] = c;
    if (strlen(line) < (size_t)s->column)
        line[s->column] = 0;
}

static void feed(Screen *s, char c)
{
    if (s->n_escape) {
        s->escape[s->n_escape++] = c;
        if (c == 'K' && s->row < LINES)
            s->lines[s->row][s->column] = 0;
        if ((c >= 'A' && c <= 'Z') || s->n_escape == (int)sizeof s->escape)
            s->n_escape = 0;
    } else if (c == '\033') {
        s->n_escape = 1;
    } else if (c == '\r') {
        s->column = 0;
    } else if (c == '\n') {
        s->row += s->row + 1 < LINES;
        s->column = 0;
    } else {
        s->bars += c == '[' && s->row < LINES;
        put_char(s, c);
    }
}

/* Runs a command line in a terminal of its own; `after`, unless it is null, is waited for before SIGINT is sent. */
static int run_in_terminal(Screen *s, const char *after, const char *format, ...) __attribute__((format(printf, 3, 4)));

static pid_t start_in(int terminal, const char *line)
{
    const pid_t child = fork();
    if (child)
        return child;
    setsid();
    ioctl(terminal, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++)
        dup2(terminal, fd);
    close(terminal);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(126);
}

static void draw_all(Screen *s, int from, pid_t child, const char *after)
{
    char bytes[4096], seen[1 << 16] = "";
    size_t n_seen = 0;
    for (ssize_t n; (n = read(from, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR);)
        for (ssize_t i = 0; i < n; i++) {
            feed(s, bytes[i]);
            if (n_seen + 1 < sizeof seen)
                seen[n_seen++] = bytes[i], seen[n_seen] = 0;
            s->begins |= n_seen > 12 && strcmp(seen + n_seen - 13, "step 1 begins") == 0;
            if (after && bytes[i] == '\n' && strstr(seen, after)) {
                kill(child, SIGINT);
                after = NULL;
            }
        }
}

static int run_in_terminal(Screen *s, const char *after, const char *format, ...)
{
    char arguments[2048], line[4096];
    const struct winsize size = { .ws_row = 50, .ws_col = WIDE };
    va_list list;
    va_start(list, format);
    vsnprintf(arguments, sizeof arguments, format, list);
    va_end(list);
    snprintf(line, sizeof line, "%s\"$QCC\" %s", strchr(arguments, ';') ? "" : "exec ", arguments);
    memset(s, 0, sizeof *s);
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
        return -1;
    const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    ioctl(slave, TIOCSWINSZ, &size);
    const pid_t child = start_in(slave, line);
    close(slave);
    draw_all(s, master, child, after);
    close(master);
    return qcc_wait(child);
}

static int count_lines(const Screen *s, const char *begin)
{
    int n = 0;
    for (int i = 0; i < LINES; i++)
        n += strncmp(s->lines[i], begin, strlen(begin)) == 0;
    return n;
}

/* No piece of a bar, wherever it may stand. */
static void has_no_bar(const Screen *s, const char *what)
{
    static const char *const pieces[] = { "eta ", "|g|", "[=", "[>", "--]" };
    check(s->bars > 0, "%s: no bar was drawn", what);
    for (int i = 0; i < LINES; i++)
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++)
            check(!strstr(s->lines[i], pieces[k]), "%s: line %d holds a piece of a bar: %s", what, i, s->lines[i]);
}

static void results_stand_alone(void)
{
    static Screen s;
    const int code = run_in_terminal(&s, NULL,
                                     "train toy.qir --data x.npy --target y.npy --batch 16 --val-split 0.25 --epochs 5 "
                                     "--no-save");
    check(code == 0, "exit %d", code);
    has_no_bar(&s, "epochs");
    check(s.begins, "nothing is said while the first step runs");
    for (int e = 1; e <= 5; e++) {
        char begin[32];
        snprintf(begin, sizeof begin, "epoch %d done ", e);
        check(count_lines(&s, begin) == 1, "no line begins with '%s'", begin);
    }
    check(count_lines(&s, "done  ") == 1 && count_lines(&s, "samples ") == 1, "the end");
}

/* A warning on standard error between two bars: a log that may not become longer. */
static void words_stand_alone(void)
{
    static Screen s;
    const int code =
        run_in_terminal(&s, NULL,
                        "--version >out.txt; ulimit -f 4; exec \"$QCC\" train toy.qir --data x.npy --target "
                        "y.npy --batch 16 --epochs 5 --log l.jsonl --no-save");
    check(code == 5, "exit %d", code);
    has_no_bar(&s, "a lost log");
    check(count_lines(&s, "l.jsonl: ") >= 1, "no warning begins a line");
    check(count_lines(&s, "epoch 5 done ") == 1, "the last epoch");
}

static void interrupted(void)
{
    static Screen s;
    const int code = run_in_terminal(&s, "epoch 2 done",
                                     "train toy.qir --data x.npy --target y.npy --batch 16 --epochs 100000000 "
                                     "--checkpoint run");
    check(code == 130, "exit %d", code);
    has_no_bar(&s, "interrupted");
    check(count_lines(&s, "interrupted ") == 1 && count_lines(&s, "to go on: qcc train toy.qir ") == 1,
          "how it goes on");
    check(count_lines(&s, "interrupted") == 2, "the last word");
}

/* Only one of the streams is the terminal. */
static void redirected(void)
{
    static Screen s;
    const int code =
        run_in_terminal(&s, NULL, "train toy.qir --data x.npy --target y.npy --batch 16 --epochs 3 --no-save >out.txt");
    check(code == 0, "exit %d", code);
    has_no_bar(&s, "redirected");
    check(file_has("out.txt", "epoch 3 done") && !file_has("out.txt", "eta"), "the file");
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    begin(argv[1]);
    write_toy(203);
    results_stand_alone();
    words_stand_alone();
    interrupted();
    redirected();
    return finish();
}
