#include "support/pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/entries.h"
#include "frontends/onnx/file/spine.h"
#include "frontends/onnx/import.h"
#include "ir/store/init.h"
#include "ir/text/parse.h"

void pair_must(Context *c, Status status)
{
    if (status != OK)
        print_error("%s\n", c->last ? c->last : "no message");
    assert_int_equal(status, OK);
}

static Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

void pair_open(Pair *p, Context *c, const Disk *disk, const char *path)
{
    *p = (Pair){ .c = c };
    disk = disk ? disk : &disk_real;
    text_open(&p->bytes, &c->arena);
    p->sink = (Sink){ append, &p->bytes };
    pair_must(c, file_create_on(&p->model, disk, &c->arena, &c->diag, path));
    weight_file_open(&p->weight_file, &c->arena, &c->diag, &c->ir.limits, disk, path);
}

Status pair_close(Pair *p, Status status)
{
    if (status == OK)
        status = file_write(&p->model, p->bytes.p, p->bytes.n);
    if (status == OK)
        return weight_file_keep(&p->weight_file, &p->model);
    weight_file_drop(&p->weight_file);
    file_drop(&p->model);
    return status;
}

Graph *pair_graph(Context *c, int seed)
{
    Module *m;
    const char *text = arena_printf(&c->arena,
                                    "graph @m(%%x: f32[%d]) -> (%%y) {\n"
                                    "    param %%a: f32[%d] = normal(seed=%d)\n"
                                    "    param %%b: f32[%d] = @blob(\"b\")\n"
                                    "    param %%s: f32[%d] = normal(seed=3)\n"
                                    "    param %%l: f32[%d] = @blob(\"b\")\n"
                                    "    %%p: f32[%d] = mul(%%l, %%a)\n"
                                    "    %%q: f32[%d] = add(%%p, %%b)\n"
                                    "    const %%i: i64[1] = [0]\n"
                                    "    %%t: f32[] = reduce_sum(%%s, %%i, keepdims=false)\n"
                                    "    %%y: f32[%d] = add(%%q, %%t)\n"
                                    "}\n",
                                    PAIR_LARGE, PAIR_LARGE, seed, PAIR_LARGE, PAIR_SMALL, PAIR_LARGE, PAIR_LARGE,
                                    PAIR_LARGE, PAIR_LARGE);
    Blobs blobs;
    const Type *type = type_vector(&c->ir.types, F32, PAIR_LARGE);
    Payload *drawn = payload_init(&c->arena, type, (Init){ .kind = INIT_NORMAL, .seed = 2, .scale = 1 });
    blobs_open(&blobs, &c->arena);
    blobs_add(&blobs, payload_of(&c->arena, payload_cached(drawn, &c->diag)), "b");
    pair_must(c, parse_module(&c->ir, &c->arena, str(text), "m.qir", &blobs, NULL, &m));
    return m->graphs[0];
}

Status pair_write(Context *c, const Disk *disk, const char *path, int seed, bool apart)
{
    Pair p;
    const int64_t limit = c->ir.limits.model_bytes;
    Graph *g = pair_graph(c, seed);
    pair_open(&p, c, disk, path);
    c->ir.limits.model_bytes = apart ? 3000 : limit; /* it stands for 2 GiB */
    const Status status = onnx_write_named(g, &c->diag, NULL, &p.sink, &p.weight_file);
    c->ir.limits.model_bytes = limit;
    return pair_close(&p, status);
}

static bool add_values(Context *c, const Graph *g, Text *text)
{
    for (const Node *n = g->first; n; n = n->next) {
        if (n->op != OP_param)
            continue;
        const Tensor *t = payload_cached(node_payload(n), &c->diag);
        if (!t)
            return false;
        if (t->type->dtype != F32)
            continue;
        text_printf(text, "%s", n->name);
        for (int64_t i = 0; i < tensor_elements(t); i++)
            text_printf(text, " %.9g", tensor_get_f64(t, i));
        text_char(text, '\n');
    }
    return true;
}

const char *pair_values(Context *c, const char *path)
{
    Spine s = { 0 };
    Module *m;
    Text text;
    if (spine_open(&s, &c->memory, &c->diag, &c->ir.limits, path) != OK)
        return NULL;
    text_open(&text, &c->arena);
    const bool read = onnx_import(&c->ir, &c->arena, &s, NULL, &m) == OK && add_values(c, m->graphs[0], &text);
    spine_close(&s);
    return read ? text_get(&text) : NULL;
}

typedef struct FolderNames {
    Arena *arena;
    const char *list[100];
    size_t n;
    const char *stem; /* null: all */
} FolderNames;

static void see(void *user, const char *name)
{
    FolderNames *x = user;
    if (x->n < COUNT(x->list) && (!x->stem || weight_file_names(name, x->stem, NULL)))
        x->list[x->n++] = arena_string(x->arena, name);
}

const char *pair_data(Context *c, const char *path)
{
    const char *slash = strrchr(path, '/'), *folder = file_folder(&c->arena, path);
    FolderNames x = { .arena = &c->arena, .stem = slash ? slash + 1 : path };
    (void)entries_each(&c->memory, folder, COUNT(x.list), see, &x);
    return x.n == 1 ? file_in(&c->arena, folder, x.list[0]) : NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *pair_names(Context *c, const char *folder)
{
    FolderNames x = { .arena = &c->arena };
    Text text;
    text_open(&text, &c->arena);
    (void)entries_each(&c->memory, folder, COUNT(x.list), see, &x);
    if (x.n)
        qsort(x.list, x.n, sizeof *x.list, by_name);
    for (size_t i = 0; i < x.n; i++)
        text_printf(&text, "%s ", x.list[i]);
    return text_get(&text);
}

const char *pair_folder(Context *c, const char *name, bool fast)
{
    const char *base = fast && access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".";
    const char *path = arena_printf(&c->arena, "%s/qcc-pairs-%d-%s", base, (int)getpid(), name);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    return path;
}

void pair_remove(Context *c, const char *folder)
{
    assert_int_equal(system(arena_printf(&c->arena, "rm -r '%s'", folder)), 0);
}
