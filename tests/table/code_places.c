/* Files as PyTorch's newer exporter writes them (tests/data/pytorch): every node that computes knows the module of the
 * program that it comes from, and that module is one: it holds parameters, or stands in one that does. */
#include <string.h>

#include <jansson.h>

#include "frontends/onnx/import.h"
#include "testing.h"

static const char *const names[] = { "clip", "cnn",   "detr", "distil", "gcn",  "gpt",    "gru",    "llama",
                                     "lstm", "mixer", "mlp",  "mobile", "moe",  "normed", "recsys", "shared",
                                     "sine", "ssm",   "t5",   "tcn",    "unet", "vae",    "vit" };
static const char *const forms[] = { "dyn", "dynraw", "leg", "legtrain" };

#define REFUSE(...) (print_error(__VA_ARGS__), print_error("\n"), assert_true(false))

typedef struct Count {
    int nodes, with_line, inside;
} Count;

static bool begins(const char *name, const char *module, size_t n)
{
    return strncmp(name, module, n) == 0 && (n == 0 || name[n] == '.');
}

/* Whether the module, or the one around it where it has no parameters (a dropout, a ReLU), is known by its parameters. */
static bool is_module(const json_t *parameters, const char *module)
{
    size_t n = strlen(module);
    for (int level = 0; level < 3; level++) {
        for (size_t i = 0; i < json_array_size(parameters); i++)
            if (begins(json_string_value(json_object_get(json_array_get(parameters, i), "name")), module, n))
                return true;
        while (n && module[n - 1] != '.')
            n--;
        n -= n > 0;
    }
    return false;
}

static Count count_nodes(Graph *g, const json_t *parameters, const char *path)
{
    Count c = { 0 };
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const CodePlace *place = node_code(n);
        if (!n->n_in)
            continue;
        if (!place || !place->module)
            REFUSE("%s: %s comes from nowhere", path, node_place(n).where);
        if (!is_module(parameters, place->module))
            REFUSE("%s: %s comes from %s, which is no module", path, node_place(n).where, place->module);
        c.nodes++;
        c.with_line += place->line != NULL;
        c.inside += place->module[0] != 0;
    }
    return c;
}

static Graph *import(Context *c, Spine *spine, const char *path)
{
    Module *m;
    assert_int_equal(spine_open(spine, &c->memory, &c->diag, &c->ir.limits, path), OK);
    assert_int_equal(onnx_import(&c->ir, &c->arena, spine, NULL, &m), OK);
    return m->graphs[0];
}

static json_t *facts_of(Context *c, const char *name)
{
    json_t *facts =
        json_load_file(arena_printf(&c->arena, QCC_SOURCE_DIR "/tests/data/pytorch/%s.json", name), 0, NULL);
    assert_non_null(facts);
    return facts;
}

static void newer_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(names) * 2; i++) {
        Context c;
        Spine spine = { 0 };
        context_open(&c);
        json_t *facts = facts_of(&c, names[i / 2]);
        const char *path =
            arena_printf(&c.arena, QCC_SOURCE_DIR "/tests/data/pytorch/%s-%s.onnx", names[i / 2], forms[i % 2]);
        Graph *g = import(&c, &spine, path);
        const Count n = count_nodes(g, json_object_get(facts, "parameters"), path);
        if (n.nodes < 3 || n.inside < 1 || n.with_line * 10 < n.nodes * 7)
            REFUSE("%s: %d nodes, %d inside, %d with a line", path, n.nodes, n.inside, n.with_line);
        json_decref(facts);
        spine_close(&spine);
        context_close(&c);
    }
}

/* The older exporter says it in names alone. */
static void older_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(names) * 2; i++) {
        Context c;
        Spine spine = { 0 };
        int inside = 0;
        context_open(&c);
        json_t *facts = facts_of(&c, names[i / 2]);
        const char *path =
            arena_printf(&c.arena, QCC_SOURCE_DIR "/tests/data/pytorch/%s-%s.onnx", names[i / 2], forms[2 + i % 2]);
        Graph *g = import(&c, &spine, path);
        for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
            const char *module = node_module(n);
            if (module && !is_module(json_object_get(facts, "parameters"), module))
                REFUSE("%s: %s comes from %s, which is no module", path, node_place(n).where, module);
            inside += module && module[0];
        }
        if (!inside)
            REFUSE("%s: no node stands in a module", path);
        json_decref(facts);
        spine_close(&spine);
        context_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(newer_files), cmocka_unit_test(older_files) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
