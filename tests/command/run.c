/* Runs command lines and compares what they say.
 *
 *     run [--update] QCC FOLDER FILE...
 *
 * A file holds cases: a line "$ COMMAND", run by sh in FOLDER with qcc first in the PATH and a folder $T that the file begins empty, then
 * what it wrote: "| " before lines of standard output, "! " before those of standard error, "= N" for an exit code
 * that is not 0.  Lines that begin with # and empty lines separate cases.
 *
 * --update writes the files anew, but records no failure that nobody asked for: an exit code is recorded where it stands
 * already, an error where the same line stands or "! ...", written by hand below the command.  Otherwise the file stays
 * as it is, and what is refused is said. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Bytes {
    char *p;
    size_t n, cap;
} Bytes;

static void add(Bytes *b, const char *p, size_t n)
{
    if (b->n + n + 1 > b->cap) {
        b->cap = (b->n + n + 1) * 2;
        b->p = realloc(b->p, b->cap);
        if (!b->p)
            abort();
    }
    memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = 0;
}

static Bytes read_file(const char *path)
{
    Bytes b = { NULL, 0, 0 };
    char block[4096];
    FILE *f = fopen(path, "rb");
    add(&b, "", 0);
    if (!f) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        add(&b, block, n);
    fclose(f);
    return b;
}

/* Appends the lines of a file, each behind a mark, the name of the temporary folder as $T. */
static void add_lines(Bytes *out, const char *path, const char *mark, const char *t)
{
    Bytes text = read_file(path);
    for (char *p = text.p; *p;) {
        const size_t n = strcspn(p, "\n");
        add(out, mark, strlen(mark));
        for (char *end = p + n; p < end;) {
            if (strncmp(p, t, strlen(t)) == 0) {
                add(out, "$T", 2);
                p += strlen(t);
            } else {
                add(out, p++, 1);
            }
        }
        add(out, "\n", 1);
        p += *p == '\n';
    }
    free(text.p);
}

static void run_case(Bytes *out, const char *command, const char *t)
{
    char line[4096], so[512], se[512];
    snprintf(so, sizeof so, "%s.stdout", t);
    snprintf(se, sizeof se, "%s.stderr", t);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "r", stdin) || !freopen(so, "w", stdout) || !freopen(se, "w", stderr))
            _exit(125);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(126);
    }
    int status = 0;
    waitpid(child, &status, 0);
    add_lines(out, so, "| ", t);
    add_lines(out, se, "! ", t);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code) {
        snprintf(line, sizeof line, "= %d\n", code);
        add(out, line, strlen(line));
    }
    unlink(so);
    unlink(se);
}

static void write_file(const char *path, const Bytes *b)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(b->p, 1, b->n, f) != b->n || fclose(f) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(2);
    }
}

/* Where two texts part: the line, for the report. */
static void tell_difference(const char *path, const char *want, const char *got)
{
    int line = 1;
    size_t start = 0, i = 0;
    for (; want[i] && want[i] == got[i]; i++)
        if (want[i] == '\n') {
            line++;
            start = i + 1;
        }
    printf("%s:%d:\n  wanted %.*s\n  got    %.*s\n", path, line, (int)strcspn(want + start, "\n"), want + start,
           (int)strcspn(got + start, "\n"), got + start);
}

static const char any_error[] = "! ...";

/* Whether a line of an answer says that something failed: warnings do not, nor do the lines that belong to one before. */
static bool says_failure(const char *line, size_t n)
{
    static const char *const harmless[] = { ": warning: ",
                                            ": note: ",
                                            ": remark: ",
                                            "\"severity\":\"warning\"",
                                            "\"severity\":\"note\"",
                                            "\"severity\":\"remark\"" };
    if (line[0] == '=')
        return true;
    if (line[0] != '!' || n < 3 || line[2] == ' ')
        return false;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (memmem(line, n, harmless[i], strlen(harmless[i])))
            return false;
    return true;
}

/* Whether a line stands in what is recorded below a command: up to the next command, comment or empty line. */
static bool is_recorded(const char *below, const char *line, size_t n)
{
    while (*below && *below != '\n' && *below != '#' && !(below[0] == '$' && below[1] == ' ')) {
        const size_t length = strcspn(below, "\n");
        if (length == n && memcmp(below, line, n) == 0)
            return true;
        below += length + (below[length] == '\n');
    }
    return false;
}

/* Whether an answer says no failure but those that stand below its command; tells the others. */
static bool is_recordable(const char *path, int line, const char *below, const char *answer)
{
    bool good = true;
    for (size_t n; *answer; answer += n + (answer[n] == '\n')) {
        n = strcspn(answer, "\n");
        if (!says_failure(answer, n) || is_recorded(below, answer, n) ||
            (answer[0] == '!' && is_recorded(below, any_error, strlen(any_error))))
            continue;
        printf("%s:%d: not recorded: %.*s\n", path, line, (int)n, answer);
        good = false;
    }
    return good;
}

static bool run_file(const char *path, const char *t, bool update, int *cases)
{
    Bytes want = read_file(path), got = { NULL, 0, 0 };
    bool recordable = true;
    int line = 1;
    add(&got, "", 0);
    for (char *p = want.p; *p; line++) {
        const size_t n = strcspn(p, "\n");
        char *next = p + n + (p[n] == '\n');
        if (p[0] == '$' && p[1] == ' ') {
            char *command = strndup(p + 2, n - 2);
            add(&got, p, (size_t)(next - p));
            const size_t from = got.n;
            run_case(&got, command, t);
            if (update && !is_recordable(path, line, next, got.p + from))
                recordable = false;
            free(command);
            ++*cases;
        } else if (n == 0 || p[0] == '#') {
            add(&got, p, (size_t)(next - p));
        }
        p = next;
    }
    const bool same = strcmp(want.p, got.p) == 0;
    if (!same && update && recordable)
        write_file(path, &got);
    else if (!same && !update)
        tell_difference(path, want.p, got.p);
    if (!recordable)
        printf("%s: stays as it is; below a command that is to fail write \"= N\" and \"%s\"\n", path, any_error);
    free(want.p);
    free(got.p);
    return same || (update && recordable);
}

/* Each file has a folder of its own: what another one leaves is nothing to it. */
static bool run_in_folder(const char *path, bool update, int *cases)
{
    char t[] = "/tmp/qcc.command.XXXXXX", clear[64];
    if (!mkdtemp(t))
        exit(2);
    setenv("T", t, 1);
    const bool good = run_file(path, t, update, cases);
    snprintf(clear, sizeof clear, "rm -rf %s", t);
    if (system(clear) != 0)
        exit(2);
    return good;
}

int main(int argc, char **argv)
{
    int at = 1, cases = 0, failed = 0;
    const bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    char path[4096];
    at += update;
    if (argc < at + 3) {
        fprintf(stderr, "usage: run [--update] QCC-FOLDER FOLDER FILE...\n");
        return 2;
    }
    char *programs = realpath(argv[at], NULL); /* found from any folder that a command enters */
    if (!programs) {
        perror(argv[at]);
        return 2;
    }
    snprintf(path, sizeof path, "%s:%s", programs, getenv("PATH"));
    free(programs);
    setenv("PATH", path, 1);
    setenv("LC_ALL", "C", 1);
    if (chdir(argv[at + 1]) != 0)
        return 2;
    for (int i = at + 2; i < argc; i++)
        failed += !run_in_folder(argv[i], update, &cases);
    printf("%d command lines, %d files %s\n", cases, failed, update ? "refused" : "differ");
    return failed || !cases;
}
