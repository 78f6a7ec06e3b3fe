#include "support/amp_trial.h"

#include <glob.h>

#include "base/file.h"
#include "frontends/onnx/import.h"
#include "ir/text/parse.h"
#include "ir/text/print.h"
#include "ir/verify.h"
#include "passes/engine/trial.h"
#include "passes/pipelines.h"
#include "passes/recipe/loss_read.h"
#include "support/samples.h"

const AmpWay amp_ways[AMP_WAYS] = { { BF16, false }, { BF16, true }, { F16, false }, { F16, true } };

/* ---- words about a graph ---- */

const char *amp_say(const AmpTrial *t, AmpWay way, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *said = arena_vprintf(&t->c->arena, format, args);
    va_end(args);
    return arena_printf(&t->c->arena, "%s by the %s: %s", dtype_name(way.narrow), way.walks ? "walk" : "cut", said);
}

const char *amp_text(const AmpTrial *t, const Graph *g)
{
    Text text;
    Blobs blobs;
    blobs_open(&blobs, &t->c->arena);
    text_open(&text, &t->c->arena);
    assert_int_equal(print_graph(&text, g, &blobs), OK);
    return text_get(&text);
}

const char *amp_differs(const AmpTrial *t, AmpWay way, const char *what, const char *want, const char *got)
{
    const char *w = want, *g = got;
    if (strcmp(want, got) == 0)
        return NULL;
    for (size_t i = 0; want[i] && want[i] == got[i]; i++)
        if (want[i] == '\n') {
            w = want + i + 1;
            g = got + i + 1;
        }
    return amp_say(t, way, "%s:\n  want %.*s\n  got  %.*s", what, (int)strcspn(w, "\n"), w, (int)strcspn(g, "\n"), g);
}

/* ---- passes ---- */

bool amp_is_step(Graph *g)
{
    bool loss = false;
    for (int i = 0; i < graph_n_results(g); i++) {
        const char *name = graph_result_name(g, i);
        loss |= name && strcmp(name, "loss") == 0 && graph_result(g, i)->type->rank == 0;
        if (name && strncmp(name, "grad.", 5) == 0)
            return false;
    }
    for (const Node *n = g->first; n && loss; n = n->next)
        loss = !(n->flags & NODE_BACKWARD);
    return loss;
}

AmpLedger *amp_ledger(const AmpTrial *t)
{
    AmpLedger *l = NEW(&t->c->arena, AmpLedger);
    l->arena = &t->c->arena;
    return l;
}

static Module *module_of(const AmpTrial *t, Graph *g)
{
    Module *m = module_new(&t->c->ir, &t->c->arena);
    module_add(m, g);
    return m;
}

const char *amp_run(const AmpTrial *t, Graph *g, const char *pass, AmpWay way, AmpLedger *ledger)
{
    const Recipe recipe = { .precision = { .on = true, .narrow = way.narrow, .walks = way.walks, .ledger = ledger } };
    const PassOptions options = { .recipe = &recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    t->c->last = NULL;
    if (pass_run(pass_find(pass), g, &run) != OK)
        return amp_say(t, way, "%s fails: %s", pass, t->c->last);
    if (verify_module(module_of(t, g), NULL) != OK)
        return amp_say(t, way, "not a graph after %s: %s%s", pass, t->c->last, amp_text(t, g));
    return NULL;
}

/* ---- one graph ---- */

typedef struct Tour {
    AmpCheck *check;
    int seen, bad;
    bool lenient;     /* files that cannot be read are passed over */
    const char *path; /* of a model, */
    const OpDef *def; /* or a card */
    Context *c;
} Tour;

static void visit(Tour *w, const char *name, Graph *g, const Tensor **inputs)
{
    AmpTrial t = { .c = w->c, .name = name, .graph = g, .inputs = inputs };
    const char *wrong = w->check(&t);
    if (wrong)
        fprintf(stderr, "%s: %s\n", name, wrong), w->bad++;
    w->seen++;
}

/* ---- models ---- */

static Status step_pass(Graph *g, const char *pass, const Recipe *recipe)
{
    const PassOptions options = { .recipe = recipe };
    PassRun run = { .options = &options, .allowed = -1 };
    return pass_run(pass_find(pass), g, &run);
}

/* The model with its parameters chosen and a loss on its first output; null where it has none that is float. */
static Graph *trained(Context *c, const Graph *model)
{
    Graph *g = graph_copy(model, &c->arena);
    const Recipe plain = { .n_losses = 0 };
    const PipelineOptions options = { .pass.recipe = &plain };
    LossSpec loss = loss_of(LOSS_MSE);
    const char *output = graph_n_results(g) ? graph_result_name(g, 0) : NULL;
    const Recipe recipe = { .losses = &loss, .n_losses = 1 };
    if (!output || pipeline_run(pipeline_find("train-model"), g, &options) != OK)
        return NULL;
    loss.outputs = &output;
    loss.n_outputs = 1;
    return step_pass(g, "attach-loss", &recipe) == OK && step_pass(g, "require-shapes", &recipe) == OK ? g : NULL;
}

static void visit_model(Tour *w, Graph *g)
{
    Context *c = w->c;
    const bool ours = strncmp(w->path, QCC_SOURCE_DIR, sizeof QCC_SOURCE_DIR - 1) == 0;
    const char *name = ours ? w->path + sizeof QCC_SOURCE_DIR : w->path;
    Hush hush;
    visit(w, name, g, NULL);
    hush_begin(&hush, &c->ir, &c->arena);
    Graph *step = trained(c, g);
    hush_end(&hush);
    if (step)
        visit(w, arena_printf(&c->arena, "%s, trained", name), step, NULL);
}

static Status visit_onnx(Tour *w)
{
    Context *c = w->c;
    Module *m;
    Spine s = { 0 };
    const ImportOptions options = { .batch = 2 };
    Status status = spine_open(&s, &c->memory, &c->diag, &c->ir.limits, w->path);
    if (status == OK)
        status = onnx_import(&c->ir, &c->arena, &s, &options, &m);
    if (status == OK)
        visit_model(w, m->graphs[0]);
    spine_close(&s);
    return status;
}

/* The first part of a golden file; what is no graph, on purpose, is passed over. */
static Status visit_text(Tour *w)
{
    Context *c = w->c;
    Module *m = NULL;
    Str text;
    Hush hush;
    TRY(file_read(&c->arena, &c->diag, w->path, INT64_MAX, "none", &text));
    char *copy = arena_copy(&c->arena, text.p, text.n), *arrow = strstr(copy, "\n==>");
    if (arrow)
        arrow[1] = '\0';
    if (strstr(copy, "= amp_cast("))
        return OK; /* it is mixed already, perhaps of three widths */
    if (strstr(copy, "stored=") && strstr(copy, "# error:"))
        return OK; /* no step has such states */
    hush_begin(&hush, &c->ir, &c->arena);
    const bool good = parse_module(&c->ir, &c->arena, str(copy), w->path, NULL, NULL, &m) == OK &&
                      verify_module(m, NULL) == OK && m->n_graphs == 1;
    hush_end(&hush);
    if (good)
        visit_model(w, m->graphs[0]);
    return OK;
}

static Status visit_file(void *tour)
{
    Tour *w = tour;
    return strstr(w->path, ".onnx") ? visit_onnx(w) : visit_text(w);
}

static void visit_files(Tour *w, const char *pattern)
{
    glob_t found;
    const int status = glob(pattern, 0, NULL, &found);
    assert_true(status == 0 || (w->lenient && status == GLOB_NOMATCH));
    for (size_t i = 0; i < found.gl_pathc; i++) {
        Context c;
        w->path = found.gl_pathv[i];
        w->c = &c;
        context_open(&c);
        if (guarded(&c.memory, visit_file, w) != OK && !w->lenient)
            print_error("%s: %s\n", w->path, c.last ? c.last : "no message"), w->bad++;
        context_close(&c);
    }
    globfree(&found);
}

int amp_check_models(AmpCheck *check, int *seen)
{
    static const char *const files[] = {
        QCC_SOURCE_DIR "/examples/models/*.qir",     QCC_SOURCE_DIR "/tests/data/torch/*.onnx",
        QCC_SOURCE_DIR "/tests/data/exports/*.onnx", QCC_SOURCE_DIR "/tests/golden/passes/*/*.qir",
        QCC_SOURCE_DIR "/tests/golden/ops/*/*.qir",
    };
    Tour w = { .check = check };
    for (size_t i = 0; i < COUNT(files); i++)
        visit_files(&w, files[i]);
    *seen = w.seen;
    return w.bad;
}

int amp_check_folder(const char *folder, size_t n, AmpCheck *const *checks)
{
    enum { SKIPPED = 77 };
    char pattern[1024];
    int seen = 0, bad = 0;
    snprintf(pattern, sizeof pattern, "%s/*/*/model.onnx", folder);
    for (size_t i = 0; i < n; i++) {
        Tour w = { .check = checks[i], .lenient = true };
        visit_files(&w, pattern);
        seen += w.seen;
        bad += w.bad;
    }
    if (!seen)
        printf("skipped: no models in %s; package libonnx-testdata\n", folder);
    printf("%d graphs, %d wrong\n", seen, bad);
    return !seen ? SKIPPED : bad != 0;
}

/* ---- samples ---- */

/* Makes inputs of the f32 constants that no type depends on; their values, or null where there are none. */
static const Tensor **open_constants(Context *c, Graph *g)
{
    const Tensor **inputs = NEWS(&c->arena, const Tensor *, graph_count(g) + 1);
    for (Node *n = g->first, *next; n; n = next) {
        next = n->next;
        if (n->op != OP_const || n->type->dtype != F32)
            continue;
        inputs[g->n_inputs] = node_constant(n, 0);
        Node *x = graph_input(g, arena_printf(&c->arena, "x%zu", g->n_inputs), n->type);
        graph_replace(n, x);
        node_remove(n);
    }
    return g->n_inputs && verify(g, NULL) == OK ? inputs : NULL;
}

static Status visit_card(void *tour)
{
    Tour *w = tour;
    for (int v = 0; v < w->def->n_variants; v++) {
        const char *name = arena_printf(&w->c->arena, "%s, variant %d", w->def->name, v);
        Graph *g = sample_graph(w->c, w->def, v);
        if (!g)
            return fail(&w->c->diag, NOWHERE, "variant %d is not built", v);
        Hush hush;
        hush_begin(&hush, &w->c->ir, &w->c->arena);
        const bool good = verify(g, NULL) == OK;
        Graph *open = graph_copy(g, &w->c->arena);
        const Tensor **inputs = open_constants(w->c, open);
        hush_end(&hush);
        if (!good)
            print_error("%s does not verify: %s\n", name, w->c->last);
        else
            visit(w, name, g, NULL);
        if (inputs)
            visit(w, arena_printf(&w->c->arena, "%s, open", name), open, inputs);
    }
    return OK;
}

int amp_check_samples(AmpCheck *check, int *seen)
{
    Tour w = { .check = check };
    for (size_t i = 0; i < ops_table.n; i++) {
        Context c;
        w.def = ops_table.defs[i];
        if (!w.def->sample || strcmp(w.def->name, "amp_cast") == 0)
            continue;
        w.c = &c;
        context_open(&c);
        if (guarded(&c.memory, visit_card, &w) != OK)
            print_error("%s: %s\n", w.def->name, c.last ? c.last : "no message"), w.bad++;
        context_close(&c);
    }
    *seen = w.seen;
    return w.bad;
}

/* ---- random graphs ---- */

static Status visit_random(void *tour)
{
    Tour *w = tour;
    Graph *g = amp_random(w->c, (uint64_t)w->seen);
    if (!g)
        return INVALID;
    visit(w, arena_printf(&w->c->arena, "random graph %d", w->seen), g, NULL);
    return OK;
}

int amp_check_random(AmpCheck *check, int n)
{
    Tour w = { .check = check };
    while (w.seen < n) {
        Context c;
        w.c = &c;
        context_open(&c);
        if (guarded(&c.memory, visit_random, &w) != OK) {
            print_error("random graph %d: %s\n", w.seen++, c.last ? c.last : "no message");
            w.bad++;
        }
        context_close(&c);
    }
    return w.bad;
}
