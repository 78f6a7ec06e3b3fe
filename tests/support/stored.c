#include "support/stored.h"

#include <glob.h>
#include <stdlib.h>

#include "base/file.h"
#include "support/seed.h"

enum { ROOM = 512 };

void stored_folder(const char *folder)
{
    char command[3 * ROOM];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", folder, folder);
    assert_int_equal(system(command), 0);
}

int stored_each(const char *pattern, const char *how, const char *folder, Status (*visit)(void *stored), size_t *seen)
{
    glob_t found;
    int bad = 0;
    char whole[ROOM];
    const char *only = getenv("QCC_EXPORT");
    snprintf(whole, sizeof whole, "%s%s", QCC_SOURCE_DIR, pattern);
    assert_int_equal(glob(whole, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char name[ROOM];
        Stored s = { .path = found.gl_pathv[i], .name = name, .how = how, .folder = folder };
        snprintf(name, sizeof name, "%s", strrchr(s.path, '/') + 1);
        *strrchr(name, '.') = '\0';
        if (only && !strstr(name, only))
            continue;
        context_open(&s.c);
        bad += guarded(&s.c.memory, visit, &s) != OK;
        context_close(&s.c);
    }
    *seen += found.gl_pathc;
    globfree(&found);
    return bad;
}

const char *stored_path(Stored *s, const char *end)
{
    return arena_printf(&s->c.arena, "%s/%s%s%s%s", s->folder, s->name, s->how ? "." : "", s->how ? s->how : "", end);
}

void stored_report(void *user, const qcc_message *m)
{
    const Stored *s = user;
    if (m->severity == QCC_ERROR)
        STORED_SAY(s, "%s", m->text);
}

qcc_tensor stored_draw(Stored *s, const char *name, const Type *type, int64_t most)
{
    Tensor *t = tensor_new(&s->c.arena, type);
    qcc_tensor q = { sizeof(qcc_tensor), (qcc_dtype)type->dtype, type->rank, { 0 }, t->data, t->bytes };
    Rng rng = { seed_of(name, 0) };
    for (int64_t i = 0; i < tensor_elements(t); i++)
        tensor_set_f64(t, i, type->dtype == I64 ? (double)((i * 7 + i / 5) % most) : 2 * rng_unit(&rng) - 1);
    for (int i = 0; i < q.rank; i++)
        q.dims[i] = type->dims[i];
    return q;
}

const Tensor *stored_tensor(Stored *s, const qcc_tensor *q)
{
    Tensor *t = NEW(&s->c.arena, Tensor);
    *t = (Tensor){ .type = type_tensor(&s->c.ir.types, (DType)q->dtype, q->rank, q->dims),
                   .data = (void *)(uintptr_t)q->data,
                   .bytes = q->bytes };
    return t;
}

void stored_say(Stored *s, Text *t, const char *kind, const char *name, const qcc_tensor *x)
{
    const Tensor *values = stored_tensor(s, x);
    text_printf(t, "%s %s %s ", kind, name, x->dtype == QCC_I64 ? "int64" : "float32");
    for (int i = 0; i < x->rank; i++)
        text_printf(t, "%s%lld", i ? "x" : "", (long long)x->dims[i]);
    for (int64_t i = 0; i < tensor_elements(values); i++)
        text_printf(t, " %.9g", tensor_get_f64(values, i));
    text_char(t, '\n');
}

void stored_keep(Stored *s, const Text *t)
{
    FileOut f;
    assert_int_equal(file_create(&f, &s->c.arena, &s->c.diag, stored_path(s, ".values")), OK);
    assert_int_equal(file_write(&f, t->p, t->n), OK);
    assert_int_equal(file_keep(&f), OK);
}

int stored_casts(Graph *g)
{
    int n = 0;
    for (Node *o = walk_first(g); o; o = walk_next(g, o))
        n += o->op == OP_cast || o->op == OP_cast_like;
    return n;
}
