/* Memory that runs out: every golden file is read, verified, passed through every pipeline, evaluated and printed, again
 * and again, each time with one request of memory that fails, or that one and all that follow.  Each time the answer is NO_MEMORY and all that was taken came back. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "ir/verify.h"
#include "ops/card/eval.h"
#include "passes/pipelines.h"
#include "support/host.h"
#include "support/language.h"

enum { DEEPEST = 4, MOST_REQUESTS = 100000 };

typedef struct Work {
    Language language;
    const char *text;
} Work;

static Status evaluate_all(Language *l, Module *m)
{
    for (size_t i = 0; i < m->n_graphs; i++) {
        Graph *g = m->graphs[i];
        Tensor **results = NEWS(&l->arena, Tensor *, graph_n_results(g) + 1);
        Heap heap;
        heap_open(&heap, &l->memory);
        if (!g->n_inputs)
            (void)evaluate(g, NULL, &heap, NULL, results); /* a failure of its own is an answer, too */
        heap_close(&heap);
    }
    return OK;
}

static Status all_stages(Language *l, const char *text)
{
    Module *m = language_parse(l, text, NULL);
    if (!m || verify_module(m, &l->source) != OK)
        return OK;
    (void)evaluate_all(l, m);
    for (size_t i = 0; i < n_all_pipelines; i++)
        (void)pipeline_run_module(&all_pipelines[i], m, &(PipelineOptions){ .verify_each = VERIFY_GRAPH });
    Blobs blobs;
    blobs_open(&blobs, &l->arena);
    language_print(l, m, NULL);
    language_print(l, m, &blobs);
    return OK;
}

static Status work(void *arg)
{
    Work *w = arg;
    language_open_over(&w->language);
    const Status status = all_stages(&w->language, w->text);
    language_close(&w->language);
    return status;
}

/* The first requests fail one after the other, later ones at growing distances; QCC_SWEEP=full leaves none out. */
static int next_after(int n)
{
    enum { DENSE = 12, SPARSE = 4 };
    const char *sweep = getenv("QCC_SWEEP");
    const bool full = sweep && strcmp(sweep, "full") == 0;
    return full || n < DENSE ? 1 : n / SPARSE;
}

/* How many requests failed in turn, once or with all that follow; negative after a leak or another answer. */
static int starve(const char *path, const char *text, bool lasts)
{
    Work w = { .text = text };
    int failed = 0;
    for (int n = 1; n < MOST_REQUESTS; n += next_after(n)) {
        Host h = { .fail_at = (size_t)n, .from_then_on = lasts };
        Memory *m = &w.language.memory;
        memory_open(m, &(Allocator){ host_alloc, host_release, &h });
        const Status status = guarded(m, work, &w);
        const bool answers = status == NO_MEMORY ? h.refused > 0 : status == OK;
        if (m->used || h.blocks || h.broken || m->cleanups.next != &m->cleanups || !answers) {
            printf("%s: request %d%s: status %d, %zu bytes not given back, %zu blocks broken\n", path, n,
                   lasts ? " and all that follow" : "", (int)status, h.bytes, h.broken);
            return -1;
        }
        if (!h.refused)
            return failed;
        failed++;
    }
    printf("%s: asks without end\n", path);
    return -1;
}

typedef struct Tally {
    int files, requests, failed;
} Tally;

static void run_file(const char *path, Tally *t)
{
    Language l;
    Str text;
    const size_t n = strlen(path);
    if (n < 4 || strcmp(path + n - 4, ".qir") != 0)
        return;
    language_open(&l);
    if (file_read(&l.arena, &l.diag, path, 1 << 24, "model_bytes", &text) == OK) {
        const char *arrow = strstr(text.p, "\n==>");
        const char *model = arrow ? arena_copy(&l.arena, text.p, (size_t)(arrow + 1 - text.p)) : text.p;
        for (int lasts = 0; lasts < 2; lasts++) {
            const int requests = starve(path, model, lasts);
            t->requests += requests > 0 ? requests : 0;
            t->failed += requests < 0;
        }
        t->files++;
    }
    language_close(&l);
}

static int visible(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static void run_path(const char *path, int depth, Tally *t)
{
    struct dirent **entries;
    const int n = depth < DEEPEST ? scandir(path, &entries, visible, alphasort) : -1;
    if (n < 0) {
        run_file(path, t);
        return;
    }
    for (int i = 0; i < n; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
        run_path(inner, depth + 1, t);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    Tally t = { 0 };
    for (int i = 1; i < argc; i++)
        run_path(argv[i], 0, &t);
    printf("%d files, %d requests failed in turn, %d files with a leak or another answer\n", t.files, t.requests,
           t.failed);
    return t.failed || t.requests < 100;
}
