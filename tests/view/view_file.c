/* view_file html|dot|json FILE.qir|FILE.onnx: writes a model in a form for people, to standard output. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "frontends/onnx/import.h"
#include "frontends/view/view.h"
#include "support/language.h"

typedef struct Job {
    Language l;
    Spine spine;
    const char *form, *path;
} Job;

static Status put(void *user, const void *bytes, size_t n)
{
    return fwrite(bytes, 1, n, user) == n ? OK : IO;
}

static Status view(Job *j, const Module *m)
{
    const Sink sink = { put, stdout };
    if (strcmp(j->form, "html") == 0)
        return view_page(m, NULL, &j->l.diag, &sink);
    if (strcmp(j->form, "dot") == 0)
        return view_dot(m, NULL, &j->l.diag, &sink);
    return view_json(m, NULL, &j->l.diag, &sink);
}

static Status run(void *arg)
{
    Job *j = arg;
    Language *l = &j->l;
    Module *m;
    const size_t n = strlen(j->path);
    if (n > 4 && strcmp(j->path + n - 4, ".qir") == 0) {
        TRY(parse_file(&l->ir, &l->arena, j->path, &l->source, &m));
    } else {
        TRY(spine_open(&j->spine, &l->memory, &l->diag, &l->ir.limits, j->path));
        TRY(onnx_import(&l->ir, &l->arena, &j->spine, NULL, &m));
    }
    m->file = j->path;
    return view(j, m);
}

int main(int argc, char **argv)
{
    Job j = { .form = argc == 3 ? argv[1] : "", .path = argc == 3 ? argv[2] : "" };
    if (argc != 3)
        return USAGE;
    language_open(&j.l);
    const Status status = guarded(&j.l.memory, run, &j);
    if (status != OK)
        fprintf(stderr, "%s", status == NO_MEMORY ? "out of memory\n" : text_get(&j.l.messages));
    if (j.spine.memory)
        spine_close(&j.spine);
    if (status != NO_MEMORY)
        language_close(&j.l);
    return (int)status;
}
