/* Does what the documentation shows, and compares what it says.
 *
 *     run [--update] BIN SOURCE PAGE...
 *
 * A page holds blocks marked ```console: lines "$ COMMAND", lines "> MORE" that belong to the command before them, and
 * what the command wrote, to both streams.  The commands of a page run one after the other in one temporary folder, in
 * which `examples` is a link to SOURCE/examples, with BIN first in the PATH, then SOURCE/build/oracles/bin.  "..." as a line stands for any
 * number of lines, "..." in a line for any text.  A line <!-- needs: COMMAND --> before a block skips it where COMMAND
 * fails; <!-- do: COMMAND --> prepares what a page takes for granted, with $SOURCE.  --update writes what the
 * commands wrote in place of what differs, but not what one wrote that failed: that is written by hand. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char any[] = "...", fence[] = "```", console[] = "```console",
                  needs[] = "<!-- needs: ", prepare[] = "<!-- do: ";

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
    if (n)
        memcpy(b->p + b->n, p, n);
    b->n += n;
    b->p[b->n] = 0;
}

static Bytes read_stream(FILE *f, const char *what)
{
    Bytes b = { NULL, 0, 0 };
    char block[4096];
    if (!f) {
        perror(what);
        exit(2);
    }
    add(&b, "", 0);
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;)
        add(&b, block, n);
    return b;
}

static Bytes read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    const Bytes b = read_stream(f, path);
    fclose(f);
    return b;
}

/* What a command writes; its exit status in `*status`. */
static Bytes run(const char *command, int *status)
{
    Bytes line = { NULL, 0, 0 };
    add(&line, "exec 2>&1 </dev/null\n", 21);
    add(&line, command, strlen(command));
    fflush(stdout);
    FILE *f = popen(line.p, "r");
    const Bytes b = read_stream(f, command);
    *status = pclose(f);
    free(line.p);
    return b;
}

/* Whether a line is the wanted one, in which "..." stands for any text. */
static bool line_fits(const char *want, size_t n, const char *got, size_t m)
{
    for (size_t i = 0; i < n; i++, got++, m--) {
        if (n - i >= 3 && memcmp(want + i, any, 3) == 0) {
            for (size_t k = 0; k <= m; k++)
                if (line_fits(want + i + 3, n - i - 3, got + k, m - k))
                    return true;
            return false;
        }
        if (!m || *got != want[i])
            return false;
    }
    return m == 0;
}

static bool fits(const char *want, const char *got)
{
    while (*want) {
        const size_t n = strcspn(want, "\n"), m = strcspn(got, "\n");
        if (n == 3 && memcmp(want, any, 3) == 0) {
            const char *rest = want + n + (want[n] == '\n');
            for (; *got; got += strcspn(got, "\n"), got += *got == '\n')
                if (fits(rest, got))
                    return true;
            return *rest == 0;
        }
        if (!*got || !line_fits(want, n, got, m))
            return false;
        want += n + (want[n] == '\n');
        got += m + (got[m] == '\n');
    }
    return *got == 0;
}

/* One page: what is read, and what it says now. */
typedef struct Page {
    const char *path, *at;
    Bytes now;
    int commands, failed, skipped;
    bool skip;
} Page;

static size_t line_length(const char *p)
{
    const size_t n = strcspn(p, "\n");
    return n + (p[n] == '\n');
}

static bool begins(const char *p, const char *with)
{
    return strncmp(p, with, strlen(with)) == 0;
}

static void keep_line(Page *page)
{
    const size_t n = line_length(page->at);
    add(&page->now, page->at, n);
    page->at += n;
}

static void do_command(Page *page)
{
    Bytes command = { NULL, 0, 0 }, want = { NULL, 0, 0 };
    int status;
    add(&want, "", 0);
    add(&command, page->at + 2, line_length(page->at) - 2);
    const char *shown = page->at;
    const int shown_n = (int)strcspn(shown, "\n");
    keep_line(page);
    while (begins(page->at, "> ")) {
        add(&command, page->at + 2, line_length(page->at) - 2);
        keep_line(page);
    }
    while (*page->at && !begins(page->at, "$ ") && !begins(page->at, fence)) {
        add(&want, page->at, line_length(page->at));
        page->at += line_length(page->at);
    }
    if (page->skip) {
        page->skipped++;
        add(&page->now, want.p, want.n);
    } else {
        const Bytes got = run(command.p, &status);
        const bool same = fits(want.p, got.p), kept = same || status != 0;
        if (!same)
            printf("%s: %.*s\nwanted:\n%sgot%s:\n%s", page->path, shown_n, shown, want.p,
                   status ? ", from a command that fails, which no update records" : "", got.p);
        page->failed += !same;
        page->commands++;
        add(&page->now, kept ? want.p : got.p, kept ? want.n : got.n);
        free(got.p);
    }
    free(command.p);
    free(want.p);
}

/* Runs what a comment says; its exit status, or -1 for what is no such comment. */
static int run_comment(Page *page, const char *mark, char command[1024])
{
    if (!begins(page->at, mark))
        return -1;
    const char *from = page->at + strlen(mark), *end = strstr(from, " -->");
    int status = -1;
    if (!end || end - from >= 1024)
        return -1;
    snprintf(command, 1024, "%.*s", (int)(end - from), from);
    free(run(command, &status).p);
    return status;
}

/* Hears the comments that are meant for this program. */
static void hear_comment(Page *page)
{
    char command[1024];
    if (run_comment(page, prepare, command) > 0) {
        printf("%s: fails: %s\n", page->path, command);
        page->failed++;
    }
    if (run_comment(page, needs, command) > 0) {
        printf("skipped: a block of %s; it needs: %s\n", page->path, command);
        page->skip = true;
    }
}

static void do_page(Page *page)
{
    while (*page->at) {
        hear_comment(page);
        if (begins(page->at, console)) {
            keep_line(page);
            while (begins(page->at, "$ "))
                do_command(page);
            page->skip = false;
            continue;
        }
        keep_line(page);
    }
}

static void enter_folder(const char *source, char *folder)
{
    char from[4096];
    if (!mkdtemp(folder) || chdir(folder) != 0) {
        perror(folder);
        exit(2);
    }
    snprintf(from, sizeof from, "%s/examples", source);
    if (symlink(from, "examples") != 0) {
        perror(from);
        exit(2);
    }
}

static void leave_folder(const char *folder)
{
    char command[256];
    snprintf(command, sizeof command, "rm -r -- '%s'", folder);
    if (chdir("/") != 0 || system(command) != 0)
        perror(folder);
}

static int check_page(const char *path, const char *source, bool update, int *commands)
{
    char folder[] = "/tmp/qcc.docs.XXXXXX";
    Bytes text = read_file(path);
    Page page = { .path = path, .at = text.p };
    add(&page.now, "", 0);
    enter_folder(source, folder);
    do_page(&page);
    leave_folder(folder);
    if (page.failed && update) {
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(page.now.p, 1, page.now.n, f) != page.now.n || fclose(f) != 0)
            perror(path);
    }
    if (page.commands + page.skipped)
        printf("%s: %d commands, %d failed, %d skipped\n", path, page.commands, page.failed, page.skipped);
    *commands += page.commands + page.skipped;
    free(page.now.p);
    free(text.p);
    return page.failed;
}

static void add_to_path(const char *bin)
{
    const char *old = getenv("PATH");
    Bytes path = { NULL, 0, 0 };
    add(&path, bin, strlen(bin));
    add(&path, ":", 1);
    add(&path, old ? old : "/usr/bin:/bin", strlen(old ? old : "/usr/bin:/bin"));
    setenv("PATH", path.p, 1);
    free(path.p);
}

/* The Python of `tools/setup oracles` is the one that pages find. */
static void add_oracles(const char *source)
{
    Bytes bin = { NULL, 0, 0 };
    add(&bin, source, strlen(source));
    add(&bin, "/build/oracles/bin", 18);
    add_to_path(bin.p);
    free(bin.p);
}

int main(int argc, char **argv)
{
    const bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    char **word = argv + 1 + update;
    int failed = 0, commands = 0;
    if (argc - update < 4) {
        fputs("usage: run [--update] BIN SOURCE PAGE...\n", stderr);
        return 2;
    }
    setenv("SOURCE", word[1], 1);
    add_oracles(word[1]);
    add_to_path(word[0]);
    setenv("LC_ALL", "C", 1);
    for (char **page = word + 2; *page; page++)
        failed += check_page(*page, word[1], update, &commands);
    printf("%d commands, %d failed\n", commands, failed);
    return failed || !commands ? 1 : 0;
}
