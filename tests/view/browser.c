/* Pages in a browser: the script runs, draws everything, finds what is asked for, and nothing of the model runs. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "frontends/view/view.h"
#include "support/language.h"
#include "view/models.h"

enum { SKIPPED = 77, SECONDS = 60 };

typedef struct Visit {
    const char *model, *hash; /* where in the page */
    const char *wanted[6];    /* in the page afterwards; those that begin with ! must not be */
} Visit;

/* clang-format off */
static const Visit visits[] = {
    { "resnet50", "",           { " data-nodes=\"231\"", " data-drawn=\"124\"", "class=\"shown\"", "<canvas id=\"map\"" } },
    { "resnet50", "#q=op:conv", { "<output>1 of 53</output>", "class=\"n contract p-f32 hit chosen\"", "<td>kernel_shape</td>" } },
    { "resnet50", "#n3",        { "<td>/conv1/Conv</td>", "id=\"n3\" class=\"n contract p-f32 chosen\"", "<td>1 weight</td>" } },
    { "step",     "",           { " data-nodes=\"2310\"", "class=\"n group\"", "id=\"g0\" data-graph=\"0\" data-within=\"g0\" class=\"shown\"" } },
    { "step",     "#m0-1",      { "id=\"m0-1\" data-graph=\"0\" data-within=\"g0\" class=\"shown\"", "<nav><a href=\"#g0\">" } },
    { "step",     "#n1500",     { "class=\"n ", " chosen\"", "<h4>operands</h4>", "<td>backward</td>" } },
    { "large",    "#n80000",    { " data-nodes=\"99991\"", " chosen\"", "<h4>operands</h4>", "class=\"tile\"" } },
    { "nested",   "#g2",        { "id=\"g2\" data-graph=\"2\" data-within=\"g0\" class=\"shown\"", "<nav><a href=\"#g0\">", "!<title>owned" } },
};
/* clang-format on */

static const char *find_browser(Arena *a)
{
    static const char *const names[] = { "chromium", "chromium-browser", "google-chrome" };
    const char *path = getenv("PATH");
    for (size_t i = 0; i < COUNT(names); i++)
        for (const char *at = path; at && *at; at += strspn(at, ":")) {
            const size_t n = strcspn(at, ":");
            const char *file = arena_printf(a, "%.*s/%s", (int)n, at, names[i]);
            if (access(file, X_OK) == 0)
                return file;
            at += n;
        }
    return NULL;
}

/* ---- pages ---- */

static Status put(void *user, const void *bytes, size_t n)
{
    return file_write(user, bytes, n);
}

static Status write_page(Language *l, const char *model, const char *folder)
{
    Text t;
    FileOut file;
    text_open(&t, &l->arena);
    if (strcmp(model, "resnet50") == 0)
        model_resnet50(&t);
    else if (strcmp(model, "nested") == 0)
        model_nested(&t);
    else
        model_step(&t, strcmp(model, "large") == 0 ? 4347 : 100);
    Module *m = language_parse(l, text_get(&t), NULL);
    if (!m)
        return INVALID;
    m->file = model;
    TRY(file_create(&file, &l->arena, &l->diag, arena_printf(&l->arena, "%s/%s.html", folder, model)));
    TRY(view_page(m, NULL, &l->diag, &(Sink){ put, &file }));
    return file_keep(&file);
}

typedef struct Job {
    Language l;
    const char *folder, *browser;
} Job;

static Status write_pages(void *arg)
{
    Job *j = arg;
    for (size_t i = 0; i < COUNT(visits); i++)
        if (i == 0 || strcmp(visits[i].model, visits[i - 1].model) != 0)
            TRY(write_page(&j->l, visits[i].model, j->folder));
    return OK;
}

/* ---- visits ---- */

static _Noreturn void become_browser(const Job *j, const Visit *v, int out)
{
    char profile[512], page[512];
    snprintf(profile, sizeof profile, "--user-data-dir=%s/profile", j->folder);
    snprintf(page, sizeof page, "file://%s/%s.html%s", j->folder, v->model, v->hash);
    setpgid(0, 0);
    dup2(out, STDOUT_FILENO);
    if (!freopen("/dev/null", "w", stderr))
        _exit(126);
    execl(j->browser, j->browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,900", profile,
          "--dump-dom", page, (char *)NULL);
    _exit(127);
}

/* What the page has become; empty when the browser failed or took too long. */
static const char *visit_page(Job *j, const Visit *v)
{
    Text dom;
    int ends[2];
    char block[65536];
    text_open(&dom, &j->l.arena);
    if (pipe(ends) != 0)
        return "";
    const pid_t child = fork();
    if (child == 0)
        become_browser(j, v, ends[1]);
    close(ends[1]);
    const pid_t watch = fork();
    if (watch == 0) {
        sleep(SECONDS);
        kill(-child, SIGKILL);
        _exit(0);
    }
    for (ssize_t n; (n = read(ends[0], block, sizeof block)) > 0;)
        text_bytes(&dom, block, (size_t)n);
    close(ends[0]);
    kill(watch, SIGKILL);
    waitpid(watch, NULL, 0);
    waitpid(child, NULL, 0);
    return dom.n ? text_get(&dom) : "";
}

static bool meets(const char *dom, const char *wanted)
{
    return *wanted == '!' ? !strstr(dom, wanted + 1) : strstr(dom, wanted) != NULL;
}

static int run_visit(Job *j, const Visit *v)
{
    const char *dom = visit_page(j, v), *ready = strstr(dom, "data-ready=\"");
    int failed = 0;
    printf("%s.html%s: %zu bytes, script done after %d ms\n", v->model, v->hash, strlen(dom),
           ready ? atoi(ready + strlen("data-ready=\"")) : -1);
    if (!ready) {
        printf("  the script did not come to its end\n");
        failed = 1;
    }
    for (size_t i = 0; i < COUNT(v->wanted) && v->wanted[i]; i++)
        if (!meets(dom, v->wanted[i])) {
            printf("  not so: %s\n", v->wanted[i]);
            failed = 1;
        }
    return failed;
}

int main(void)
{
    char folder[] = "/tmp/qcc-view-XXXXXX";
    Job j = { .folder = mkdtemp(folder) };
    int failed = 0;
    language_open(&j.l);
    j.browser = find_browser(&j.l.arena);
    if (!j.browser || !j.folder) {
        printf("skipped: no browser in the PATH; package chromium\n");
        language_close(&j.l);
        return SKIPPED;
    }
    const Status status = guarded(&j.l.memory, write_pages, &j);
    if (status != OK) {
        printf("pages were not written: %s\n", text_get(&j.l.messages));
        return 1;
    }
    for (size_t i = 0; i < COUNT(visits); i++)
        failed += run_visit(&j, &visits[i]);
    printf("%zu visits, %d failed\n", COUNT(visits), failed);
    language_close(&j.l);
    const char *keep = getenv("QCC_KEEP_PAGES");
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    if (keep)
        printf("pages are in %s\n", folder);
    else if (system(command) != 0)
        failed++;
    return failed != 0;
}
