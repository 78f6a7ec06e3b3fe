#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/make/step.h"
#include "api/verbs/suite.h"
#include "api/verbs/verbs.h"
#include "ir/verify.h"
#include "ops/card/schema.h"

/* ---- files ---- */

/* The step behind a model: read, and verified as any module; how many nodes it has, 0 where there is none. */
static Status check_step(qcc_model *m, size_t *nodes)
{
    const CommandLine nothing = { .verb = VERB_check };
    qcc_step *s;
    *nodes = 0;
    if (!model_is_step(m))
        return OK;
    TRY(step_compile(m, &nothing, &s));
    *nodes = s->facts.nodes;
    const Status status = verify_module(s->module, NULL);
    step_close(s);
    return status;
}

/* What a model is, in one line. */
static Status tell_model(Command *c, qcc_model *m, size_t step)
{
    size_t lacking = 0, nodes = 0;
    for (Node *n = walk_first(m->graph); n; n = walk_next(m->graph, n)) {
        nodes += !op_of(n)->structural || n->op == OP_opaque;
        lacking += node_lacks_card(n);
    }
    if (out_is_json(c->out)) {
        const LogExtra fields[] = { { "file", logged_text(m->file) },
                                    { "ok", logged_flag(true) },
                                    { "nodes", logged_int((int64_t)nodes) },
                                    { "unsupported", logged_int((int64_t)lacking) },
                                    { "step_nodes", step ? logged_int((int64_t)step) : (LogValue){ 0 } } };
        return out_event(c->out, "check", fields, COUNT(fields));
    }
    TRY(out_printf(c->out, "%s: ok, %zu node%s", m->file, nodes, nodes == 1 ? "" : "s"));
    if (lacking)
        TRY(out_printf(c->out, ", %zu of them without a meaning here", lacking));
    if (step && m->has_spine)
        TRY(out_printf(c->out, "; a step of %zu", step));
    return out_printf(c->out, "\n");
}

static Status check_file(Command *c, size_t i)
{
    qcc_model *m;
    size_t step;
    TRY(command_model(c, i, &m));
    Status status = verify_module(m->module, NULL);
    if (status == OK)
        status = check_step(m, &step);
    if (status == OK)
        status = tell_model(c, m, step);
    model_close(m);
    return status;
}

static Status check_files(Command *c)
{
    Status first = OK;
    if (!c->line.n_paths)
        return command_wants(c, 1);
    for (size_t i = 0; i < c->line.n_paths; i++) {
        const Status status = check_file(c, i);
        if (status == NO_MEMORY || status == INTERRUPTED)
            return status;
        first = first == OK ? status : first;
    }
    return first;
}

/* ---- the conformance suite ---- */

typedef struct OpCount {
    int passed, failed, skipped;
} OpCount;

typedef struct Table {
    Command *c;
    Arena arena;
    Map ops; /* name -> OpCount */
    Status status;
} Table;

static void tell(void *user, Verdict v, const char *name, const char *op, const char *why)
{
    Table *t = user;
    bool fresh;
    MapEntry *e = map_find(&t->ops, op);
    if (!e)
        e = map_put(&t->ops, arena_string(&t->arena, op), &fresh);
    if (!e->value.p)
        e->value.p = NEW(&t->arena, OpCount);
    OpCount *n = e->value.p;
    n->passed += v == VERDICT_PASSED;
    n->failed += v == VERDICT_FAILED;
    n->skipped += v == VERDICT_SKIPPED;
    if (v == VERDICT_FAILED || (v == VERDICT_SKIPPED && t->c->cx->verbosity > 0)) {
        const char *word = v == VERDICT_FAILED ? "FAILED " : "skipped";
        const size_t n_why = strcspn(why ? why : "", "\n");
        const Status status = out_printf(t->c->out, "%s %s: %.*s\n", word, name, (int)n_why, why ? why : "");
        t->status = t->status == OK ? status : t->status;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const MapEntry *const *)a)->key, (*(const MapEntry *const *)b)->key);
}

static Status print_table(Table *t)
{
    const MapEntry **rows = NEWS(&t->arena, const MapEntry *, t->ops.n + 1);
    for (size_t i = 0; i < t->ops.n; i++)
        rows[i] = &t->ops.entries[i];
    if (t->ops.n)
        qsort(rows, t->ops.n, sizeof *rows, by_name);
    TRY(out_printf(t->c->out, "%-28s %7s %7s %7s\n", "operator", "passed", "failed", "skipped"));
    for (size_t i = 0; i < t->ops.n; i++) {
        const OpCount *n = rows[i]->value.cp;
        TRY(out_printf(t->c->out, "%-28s %7d %7d %7d\n", rows[i]->key, n->passed, n->failed, n->skipped));
    }
    return OK;
}

static Status check_suite(Command *c, const char *dir)
{
    SuiteCount count = { 0 };
    Table t = { .c = c };
    arena_open(&t.arena, &c->cx->memory);
    map_open(&t.ops, &t.arena);
    const SuiteOptions o = {
        .rtol = option_real(&c->line, OPT_rtol, 0),
        .atol = option_real(&c->line, OPT_atol, 0),
        .pool = context_pool(c->cx),
        .filter = option_text(&c->line, OPT_filter),
        .exceptions = option_text(&c->line, OPT_exceptions),
        .tell = tell,
        .user = &t,
    };
    Status status = suite_run(&c->cx->memory, &c->cx->diag, dir, &o, &count);
    if (status == OK)
        status = t.status;
    if (status == OK)
        status = print_table(&t);
    arena_close(&t.arena);
    TRY(status);
    const LogExtra fields[] = { { "passed", logged_int(count.passed) },
                                { "failed", logged_int(count.failed) },
                                { "skipped", logged_int(count.skipped) },
                                { "onnx", logged_text(ONNX_RELEASE) } };
    if (out_is_json(c->out))
        TRY(out_event(c->out, "suite", fields, COUNT(fields)));
    else
        TRY(out_printf(c->out, "%d passed, %d failed, %d skipped, read as ONNX %s defines operators\n", count.passed,
                       count.failed, count.skipped, ONNX_RELEASE));
    if (!(count.passed + count.failed + count.skipped)) {
        Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, (Place){ .file = dir, .byte = -1 },
                                 "holds no folder with a model.onnx%s", o.filter ? " whose name matches --filter" : "");
        message_try(m, "the folder that holds test_abs, test_acos, ...");
        return message_send(m);
    }
    return count.failed ? MISMATCH : OK;
}

Status command_check(Command *c)
{
    const char *dir = option_text(&c->line, OPT_suite);
    return dir ? check_suite(c, dir) : check_files(c);
}
