/* Every model of a folder through its text: read, printed, parsed, printed again, and evaluated from both sides.
 *
 *     suite_text FOLDER [--least N]        N models at least must come through; 77 when there is no such folder */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "frontends/onnx/import.h"
#include "golden/values.h"
#include "ir/verify.h"
#include "ops/card/eval.h"
#include "support/language.h"

enum { SKIPPED = 77 };

typedef struct Trip {
    const char *path;
    Language language;
    Spine spine;
    const char *complaint;
    bool imported, evaluated;
} Trip;

static bool same_results(Trip *t, Graph *a, Graph *b, Heap *heap)
{
    Arena *arena = &t->language.arena;
    Tensor **x = golden_evaluate(a, heap, arena), **y = x ? golden_evaluate(b, heap, arena) : NULL;
    if (!x)
        return true; /* what fails on drawn values fails for reasons of its own */
    t->evaluated = true;
    for (int i = 0; y && i < graph_n_results(a); i++)
        if (!x[i] != !y[i] || (x[i] && !tensor_same(x[i], y[i])))
            return false;
    return y;
}

static Status round_trip(Trip *t)
{
    Language *l = &t->language;
    Module *m;
    Heap heap;
    TRY(spine_open(&t->spine, &l->memory, &l->diag, &l->ir.limits, t->path));
    TRY(onnx_import(&l->ir, &l->arena, &t->spine, NULL, &m));
    t->imported = true;
    TRY(verify_module(m, NULL));
    const char *text = language_print(l, m, NULL);
    Module *again = text ? language_parse(l, text, NULL) : NULL;
    const char *twice = again ? language_print(l, again, NULL) : NULL;
    if (!twice)
        return INVALID;
    TRY(verify_module(again, &l->source));
    if (strcmp(text, twice) != 0)
        t->complaint = "prints differently after it was parsed";
    heap_open(&heap, &l->memory);
    if (!same_results(t, m->graphs[0], again->graphs[0], &heap))
        t->complaint = "computes something else after it was parsed";
    heap_close(&heap);
    return OK;
}

static Status run(Trip *t)
{
    language_open(&t->language);
    const Status status = round_trip(t);
    if (status != OK && t->imported)
        printf("%s: %s", t->path, text_get(&t->language.messages));
    if (t->complaint)
        printf("%s: %s\n", t->path, t->complaint);
    if (t->spine.memory)
        spine_close(&t->spine);
    language_close(&t->language);
    return t->complaint ? MISMATCH : status;
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int came_through = 0, failed = 0, refused = 0, evaluated = 0, least = 1;
    const int n = argc > 1 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
    if (argc == 4 && strcmp(argv[2], "--least") == 0)
        least = atoi(argv[3]);
    if (n < 0) {
        printf("skipped: %s is not there; package libonnx-testdata\n", argc > 1 ? argv[1] : "the folder");
        return SKIPPED;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/model.onnx", argv[1], entries[i]->d_name);
        if (file_exists(path)) {
            Trip t = { .path = path };
            const Status status = run(&t);
            came_through += status == OK;
            failed += status != OK && t.imported;
            refused += !t.imported;
            evaluated += t.evaluated;
        }
        free(entries[i]);
    }
    free(entries);
    printf("%d models came through, %d of them evaluated; %d failed, %d were not imported\n", came_through, evaluated,
           failed, refused);
    return failed || came_through < least;
}
