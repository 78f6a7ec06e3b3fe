/* What ONNX Runtime fuses, as predicted, against what it did: the recorded answers of tests/data/ort_fusions.txt. */
#include <stdlib.h>
#include <zlib.h>

#include "frontends/onnx/fusions.h"
#include "frontends/onnx/import.h"
#include "testing.h"

#define FOLDER QCC_SOURCE_DIR "/tests/data/"

enum { LINE = 4096, CASES = 749 };

static int by_name(const void *a, const void *b)
{
    const MapEntry *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* "Add=1 Conv=2", operators in alphabetical order, as the answers have them. */
static const char *counts_text(Context *c, const Fusions *f)
{
    Text t;
    text_open(&t, &c->arena);
    if (f->refused)
        return "refused";
    MapEntry *list = NEWS(&c->arena, MapEntry, f->ops.n + 1);
    memcpy(list, f->ops.entries, f->ops.n * sizeof *list);
    qsort(list, f->ops.n, sizeof *list, by_name);
    for (size_t i = 0; i < f->ops.n; i++)
        text_printf(&t, "%s%s=%d", i ? " " : "", list[i].key, (int)list[i].value.i);
    return text_get(&t);
}

/* Every Q and DQ of the file is told of: it goes or it stays, and where it stays it is said why. */
static bool fates_hold(const Fusions *f)
{
    size_t orphans = 0;
    for (size_t i = 0; i < f->n; i++) {
        const FusionFate *fate = &f->fates[i];
        if (!f->refused && (fate->stays ? !fate->why : !fate->by)) {
            print_error("%s %s: no word\n", fate->node, fate->value);
            return false;
        }
        orphans += fate->stays > 0;
    }
    return orphans == f->orphans;
}

typedef struct One {
    const char *name, *wanted;
    const void *bytes;
    size_t n;
    bool right;
} One;

static Status predict(Context *c, One *o)
{
    Spine spine = { .linked_data = false };
    Module *module;
    Fusions f;
    source_memory(&spine.source, &c->memory, o->name, o->bytes, o->n);
    TRY(spine_read(&spine, &c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
    TRY(onnx_import(&c->ir, &c->arena, &spine, NULL, &module));
    TRY(onnx_fusions(&spine, module->graphs[0], &c->arena, &c->diag, &f));
    const char *text = counts_text(c, &f);
    o->right = strcmp(text, o->wanted) == 0;
    if (!o->right)
        print_error("%s\n  ort  %s\n  ours %s\n", o->name, o->wanted, text);
    o->right &= fates_hold(&f);
    spine_close(&spine);
    return OK;
}

static void *bytes_read(gzFile models, size_t n)
{
    void *bytes = malloc(n);
    assert_non_null(bytes);
    assert_int_equal(gzread(models, bytes, (unsigned)n), (int)n);
    return bytes;
}

static One one; /* which the guarded body looks at */

static Status body(void *context)
{
    return predict(context, &one);
}

static void counts_are_as_recorded(void **state)
{
    (void)state;
    int n = 0, wrong = 0;
    char line[LINE], head[LINE];
    FILE *answers = fopen(FOLDER "ort_fusions.txt", "r");
    gzFile models = gzopen(FOLDER "ort_fusions.models.gz", "rb");
    assert_true(answers && models && fgets(line, LINE, answers));
    assert_non_null(strstr(line, "onnxruntime " ORT_VERSION ", level " ORT_LEVEL ","));
    while (fgets(line, LINE, answers)) {
        char *space = strchr(line, ' ');
        assert_true(space && gzgets(models, head, LINE));
        *strchr(line, '\n') = 0;
        *space = 0;
        const size_t size = strcspn(head, " ");
        assert_true(size == strlen(line) && strncmp(head, line, size) == 0);
        one = (One){ .name = line, .wanted = space + 1, .n = (size_t)atol(head + size) };
        void *bytes = bytes_read(models, one.n);
        one.bytes = bytes;
        with_context(body);
        free(bytes);
        wrong += !one.right;
        n++;
    }
    fclose(answers);
    gzclose(models);
    assert_int_equal(n, CASES);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(counts_are_as_recorded) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
