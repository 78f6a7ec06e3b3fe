/* golden [--update] FOLDER: every FOLDER/NAME.qir as dot, json and html is what stands in NAME.dot, NAME.json and
 * NAME.html.  Of a page only its body is kept, up to its data: the rest is page.css, page.js and the JSON. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "frontends/view/view.h"
#include "support/language.h"

typedef struct Case {
    Language l;
    const char *path, *name; /* with and without its folder */
    bool update;
    Text text;
} Case;

static Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

static const struct {
    const char *ending;
    Status (*view)(const Module *m, const ViewFacts *facts, Diag *d, const Sink *sink);
    const char *from, *to; /* what is kept; null: all */
} forms[] = {
    { "dot", view_dot, NULL, NULL },
    { "json", view_json, NULL, NULL },
    { "html", view_page, "<body>", "<script type=\"application/json\" id=\"model\">" },
};

static Str kept(const Text *text, size_t form)
{
    Str all = { text_get(text), text->n };
    if (!forms[form].from)
        return all;
    const char *from = strstr(all.p, forms[form].from), *to = from ? strstr(from, forms[form].to) : NULL;
    return to ? (Str){ from, (size_t)(to - from) } : (Str){ "", 0 };
}

static Status write_file(Case *c, const char *path, Str text)
{
    FileOut file;
    TRY(file_create(&file, &c->l.arena, &c->l.diag, path));
    TRY(file_write(&file, text.p, text.n));
    return file_keep(&file);
}

static Status run_form(Case *c, const Module *m, size_t form)
{
    Str wanted;
    const char *path = arena_printf(&c->l.arena, "%.*s.%s", (int)strlen(c->path) - 4, c->path, forms[form].ending);
    text_open(&c->text, &c->l.arena);
    TRY(forms[form].view(m, NULL, &c->l.diag, &(Sink){ append, &c->text }));
    const Str got = kept(&c->text, form);
    if (c->update)
        return write_file(c, path, got);
    TRY(file_read(&c->l.arena, &c->l.diag, path, INT64_MAX, "model_bytes", &wanted));
    if (str_equal(got, wanted))
        return OK;
    printf("%s: something else comes out:\n%.*s", path, STR_ARG(got));
    return MISMATCH;
}

static Status run_case(void *arg)
{
    Case *c = arg;
    Module *m;
    TRY(parse_file(&c->l.ir, &c->l.arena, c->path, &c->l.source, &m));
    m->file = c->name;
    Status status = OK;
    for (size_t i = 0; i < COUNT(forms); i++) {
        const Status one = run_form(c, m, i);
        status = one == OK ? status : one;
    }
    return status;
}

static int is_case(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return n > 4 && strcmp(entry->d_name + n - 4, ".qir") == 0;
}

int main(int argc, char **argv)
{
    const bool update = argc > 1 && strcmp(argv[1], "--update") == 0;
    const char *folder = argv[argc - 1];
    struct dirent **entries;
    int failed = 0;
    const int n = scandir(folder, &entries, is_case, alphasort);
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        Case c = { .path = path, .name = entries[i]->d_name, .update = update };
        language_open(&c.l);
        const Status status = guarded(&c.l.memory, run_case, &c);
        if (status != OK && status != MISMATCH)
            printf("%s: %s\n", path, c.l.messages.n ? text_get(&c.l.messages) : "failed");
        failed += status != OK;
        language_close(&c.l);
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    printf("%d files, %d failed\n", n, failed);
    return failed || n <= 0;
}
