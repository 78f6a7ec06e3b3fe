#include "api/verbs/suite.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "api/model/compare.h"
#include "base/file_set.h"
#include "frontends/onnx/file/value.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/write.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ops/card/cards.h"

/* One test folder in its own context. */
typedef struct Case {
    Memory *memory;
    const SuiteOptions *options;
    const char *folder;
    Arena arena;
    Diag diag;
    Ir ir;
    Heap heap;
    Spine spine, again;
    Graph *graph;
    Verdict verdict;
    const char *why, *op;
} Case;

static void note_message(void *user, const Message *m)
{
    Case *c = user;
    if (m->severity != SEVERITY_ERROR || c->why)
        return;
    Text t;
    text_open(&t, &c->arena);
    message_print(&t, m);
    c->why = text_get(&t);
}

static bool exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

static Status verdict(Case *c, Verdict v, const char *why)
{
    c->verdict = v;
    c->why = why;
    return OK;
}

/* The inputs that data exists for: those of the model that are no initializers. */
static size_t data_inputs(const Onnx__GraphProto *g, const Onnx__ValueInfoProto **inputs)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_input; i++) {
        bool given = false;
        for (size_t k = 0; k < g->n_initializer && !given; k++)
            given = str_equal(str_of(g->initializer[k]->name), str_of(g->input[i]->name));
        if (!given)
            inputs[n++] = g->input[i];
    }
    return n;
}

/* The main operator of a test: the one that most of its nodes are. */
static const char *main_op(Case *c, const Onnx__GraphProto *g)
{
    const size_t n = g->n_node;
    if (!n)
        return "(none)";
    const Str op = str_of(g->node[n == 1 ? 0 : n - 1]->op_type);
    return arena_copy(&c->arena, op.p, op.n);
}

static const char *missing_card(Case *c)
{
    for (Node *n = walk_first(c->graph); n; n = walk_next(c->graph, n))
        if (n->op == OP_opaque)
            return arena_printf(&c->arena, "no operator %s", ((const OpaqueAttr *)n->attr)->op_type);
    return NULL;
}

static Status read_values(Case *c, const char *set, const char *kind, size_t n,
                          const Onnx__ValueInfoProto *const *infos, Tensor **values, ShapeBinding *shapes)
{
    for (size_t i = 0; i < n; i++) {
        const char *path = arena_printf(&c->arena, "%s/%s_%zu.pb", set, kind, i);
        if (!exists(path))
            continue; /* an input that this set leaves out */
        TRY(onnx_value_read(&c->ir, &c->heap, path, NULL, onnx_type(&c->ir, infos[i]->type), &values[i]));
        if (!shapes || values[i]->type->kind != TYPE_TENSOR)
            continue;
        const Str name = str_of(infos[i]->name);
        shapes[i].input = arena_copy(&c->arena, name.p, name.n);
        shapes[i].rank = values[i]->type->rank;
        if (shapes[i].rank)
            memcpy(shapes[i].dims, values[i]->type->dims, (size_t)shapes[i].rank * sizeof(int64_t));
    }
    return OK;
}

static Status compare_results(Case *c, const Onnx__GraphProto *g, Tensor *const *results, Tensor *const *want)
{
    const double rtol = c->options->rtol > 0 ? c->options->rtol : 1e-3;
    const double atol = c->options->atol > 0 ? c->options->atol : 1e-7;
    for (size_t i = 0; i < g->n_output; i++) {
        if (!want[i])
            continue;
        const char *why = results[i] ? compare_values(&c->arena, results[i], want[i], rtol, atol) : "was not computed";
        if (why)
            return verdict(c, VERDICT_FAILED,
                           arena_printf(&c->arena, "%.*s %s", STR_ARG(str_of(g->output[i]->name)), why));
    }
    return OK;
}

static Status append(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

/* The graph, written in another form and read again. */
static Status reread(Case *c, Graph **again)
{
    Module *module;
    Text text;
    text_open(&text, &c->arena);
    if (c->options->through == FORM_QIR) {
        Module *one = module_new(&c->ir, &c->arena);
        module_add(one, c->graph);
        TRY(print_module(&text, one, NULL));
        TRY(parse_module(&c->ir, &c->arena, (Str){ text.p, text.n }, "again.qir", NULL, NULL, &module));
    } else {
        TRY(onnx_write(c->graph, &c->diag, &(Sink){ append, &text }));
        if (c->again.memory)
            spine_close(&c->again); /* of the test's last data set */
        source_memory(&c->again.source, c->memory, "again.onnx", text.p, text.n);
        TRY(spine_read(&c->again, c->memory, &c->diag, &c->ir.limits, &onnx__model_proto__descriptor));
        TRY(onnx_import(&c->ir, &c->arena, &c->again, NULL, &module));
    }
    *again = module->graphs[0];
    return OK;
}

static const char *text_of(Case *c, const Graph *g)
{
    Text text;
    text_open(&text, &c->arena);
    return print_graph(&text, g, NULL) == OK ? text_get(&text) : NULL;
}

/* The first line in which two texts differ. */
static const char *first_difference(Case *c, const char *a, const char *b)
{
    size_t i = 0, line = 0;
    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '\n')
            line = i + 1;
    return arena_printf(&c->arena, "reads back differently: %.*s | %.*s", (int)strcspn(a + line, "\n"), a + line,
                        (int)strcspn(b + line, "\n"), b + line);
}

static Status check_form(Case *c, const EvalOptions *how, const Tensor *const *inputs, Tensor *const *results)
{
    Graph *again;
    const int n = graph_n_results(c->graph);
    TRY(reread(c, &again));
    const char *before = text_of(c, c->graph), *after = text_of(c, again);
    if (!before || !after)
        return fail(&c->diag, NOWHERE, "cannot be printed");
    if (strcmp(before, after) != 0)
        return verdict(c, VERDICT_FAILED, first_difference(c, before, after));
    Tensor **same = NEWS(&c->arena, Tensor *, n + 1);
    TRY(evaluate(again, how, &c->heap, inputs, same));
    for (int i = 0; i < n; i++)
        if (!same[i] != !results[i] || (same[i] && !tensor_same(same[i], results[i])))
            return verdict(c, VERDICT_FAILED, "evaluates differently once read back");
    return OK;
}

static Status run_set(Case *c, const char *set)
{
    const Onnx__GraphProto *g = c->spine.model->graph;
    const Onnx__ValueInfoProto **inputs = NEWS(&c->arena, const Onnx__ValueInfoProto *, g->n_input + 1);
    const size_t n = data_inputs(g, inputs);
    Tensor **values = NEWS(&c->arena, Tensor *, n + 1), **want = NEWS(&c->arena, Tensor *, g->n_output + 1);
    ShapeBinding *shapes = NEWS(&c->arena, ShapeBinding, n + 1);
    Module *module;

    TRY(read_values(c, set, "input", n, inputs, values, shapes));
    TRY(read_values(c, set, "output", g->n_output, (const Onnx__ValueInfoProto *const *)g->output, want, NULL));
    size_t n_shapes = 0;
    for (size_t i = 0; i < n; i++)
        if (shapes[i].input)
            shapes[n_shapes++] = shapes[i];
    TRY(onnx_import(&c->ir, &c->arena, &c->spine, &(ImportOptions){ .shapes = shapes, .n_shapes = n_shapes }, &module));
    c->graph = module->graphs[0];
    const char *missing = missing_card(c);
    if (missing)
        return verdict(c, VERDICT_SKIPPED, missing);

    Tensor **results = NEWS(&c->arena, Tensor *, g->n_output + 1);
    const EvalOptions how = { .pool = c->options->pool, .random = RANDOM_NUMPY };
    TRY(evaluate(c->graph, &how, &c->heap, (const Tensor *const *)values, results));
    if (c->options->through != FORM_NONE) {
        TRY(check_form(c, &how, (const Tensor *const *)values, results));
        if (c->verdict != VERDICT_PASSED)
            return OK;
    }
    return compare_results(c, g, results, want);
}

static Status run_case(void *arg)
{
    Case *c = arg;
    TRY(spine_open(&c->spine, c->memory, &c->diag, &c->ir.limits, arena_printf(&c->arena, "%s/model.onnx", c->folder)));
    if (!c->spine.model->graph)
        return fail(&c->diag, NOWHERE, "has no graph");
    c->op = main_op(c, c->spine.model->graph);
    int sets = 0;
    for (;; sets++) {
        const char *set = arena_printf(&c->arena, "%s/test_data_set_%d", c->folder, sets);
        if (!exists(set))
            break;
        TRY(run_set(c, set));
        if (c->verdict != VERDICT_PASSED)
            break;
    }
    spine_close(&c->spine);
    return sets || c->verdict != VERDICT_PASSED ? OK : verdict(c, VERDICT_SKIPPED, "has no test data");
}

static void run_folder(Memory *m, const SuiteOptions *o, struct FileSet *files, const char *dir, const char *name,
                       SuiteCount *count)
{
    Case c = { .memory = m, .options = o, .op = "(unread)" };
    arena_open(&c.arena, m);
    diag_open(&c.diag, &c.arena, note_message, &c);
    c.diag.files = files;
    ir_open(&c.ir, &c.arena, &ops_table, &c.diag);
    heap_open(&c.heap, m);
    c.folder = arena_printf(&c.arena, "%s/%s", dir, name);

    const Status status = guarded(m, run_case, &c);
    if (status == UNSUPPORTED)
        c.verdict = VERDICT_SKIPPED;
    else if (status != OK)
        c.verdict = VERDICT_FAILED;
    if (status == NO_MEMORY)
        c.why = "ran out of memory";
    count->passed += c.verdict == VERDICT_PASSED;
    count->failed += c.verdict == VERDICT_FAILED;
    count->skipped += c.verdict == VERDICT_SKIPPED;
    if (o->tell && status != INTERRUPTED)
        o->tell(o->user, c.verdict, name, c.op, c.why);
    if (c.again.memory)
        spine_close(&c.again);
    if (c.spine.memory)
        spine_close(&c.spine);
    heap_close(&c.heap);
    arena_close(&c.arena);
    memory_poll(m);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void close_folder(void *folder)
{
    closedir(folder);
}

static void close_lines(void *file)
{
    fclose(file);
}

/* The names of the folders that hold a model, sorted. */
static Status list_folders(Arena *arena, Diag *d, const char *dir, const char ***names, size_t *n)
{
    DIR *folder = opendir(dir);
    size_t cap = 0;
    *names = NULL;
    *n = 0;
    if (!folder)
        return fail_as(d, IO, (Place){ .file = dir, .byte = -1 }, "cannot be read: %s", strerror(errno));
    Cleanup cleanup;
    cleanup_push(arena->memory, &cleanup, close_folder, folder);
    for (const struct dirent *e; (e = readdir(folder));) {
        if (e->d_name[0] == '.' || !exists(arena_printf(arena, "%s/%s/model.onnx", dir, e->d_name)))
            continue;
        GROW(arena, *names, *n, cap);
        (*names)[(*n)++] = arena_string(arena, e->d_name);
    }
    cleanup_drop(&cleanup);
    closedir(folder);
    if (*n)
        qsort(*names, *n, sizeof **names, by_name);
    return OK;
}

/* Whether a reason is meant for this run; steps over its [TAG]. */
static bool meant(const char **reason, const char *tag)
{
    if (**reason != '[')
        return true;
    const size_t n = strcspn(*reason, "]");
    const bool same = tag && strlen(tag) == n - 1 && strncmp(*reason + 1, tag, n - 1) == 0;
    *reason += n + ((*reason)[n] == ']');
    *reason += strspn(*reason, " \t");
    return same;
}

/* Lines "NAME reason" or "NAME [TAG] reason"; '#' begins a comment. */
static Status read_exceptions(Arena *arena, Diag *d, const char *which, Map *exceptions)
{
    char line[1024];
    map_open(exceptions, arena);
    if (!which)
        return OK;
    const char *tag = strrchr(which, '#');
    const char *path = tag ? arena_copy(arena, which, (size_t)(tag - which)) : which;
    FILE *f = fopen(path, "re");
    if (!f)
        return fail_as(d, IO, (Place){ .file = path, .byte = -1 }, "cannot be read: %s", strerror(errno));
    Cleanup cleanup;
    cleanup_push(arena->memory, &cleanup, close_lines, f);
    file_is_read(d, path, "what --exceptions reads", fileno(f));
    while (fgets(line, sizeof line, f)) {
        const size_t name = strcspn(line, " \t\n#");
        if (!name)
            continue;
        const size_t gap = strspn(line + name, " \t");
        const char *reason = arena_copy(arena, line + name + gap, strcspn(line + name + gap, "\n"));
        if (meant(&reason, tag ? tag + 1 : NULL))
            map_put(exceptions, arena_copy(arena, line, name), NULL)->value.cp = reason;
    }
    cleanup_drop(&cleanup);
    fclose(f);
    return OK;
}

Status suite_run(Memory *m, Diag *d, const char *dir, const SuiteOptions *options, SuiteCount *count)
{
    Arena arena;
    Map exceptions;
    const char **names;
    size_t n;
    arena_open(&arena, m);
    Status status = read_exceptions(&arena, d, options->exceptions, &exceptions);
    if (status == OK)
        status = list_folders(&arena, d, dir, &names, &n);
    for (size_t i = 0; status == OK && i < n; i++) {
        if (options->filter && !strstr(names[i], options->filter))
            continue;
        const MapEntry *except = map_find(&exceptions, names[i]);
        if (except) {
            count->skipped++;
            if (options->tell)
                options->tell(options->user, VERDICT_SKIPPED, names[i], "(exception)", except->value.cp);
            continue;
        }
        run_folder(m, options, d->files, dir, names[i], count);
    }
    arena_close(&arena);
    return status;
}
