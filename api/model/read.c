#include <string.h>

#include "api/model/file_kind.h"
#include "api/model/model.h"
#include "frontends/onnx/file/step_digest.h"
#include "frontends/onnx/step.h"
#include "passes/model/rebatch.h"

static void undo_model(void *thing)
{
    qcc_model *m = thing;
    m->cx->diag.files = m->outer;
    memory_release(&m->cx->memory, m, sizeof *m);
}

/* A model that gives itself back when a jump passes. */
static qcc_model *model_new(qcc_context *cx)
{
    qcc_model *m = memory_block(&cx->memory, sizeof *m);
    *m = (qcc_model){ .cx = cx };
    cleanup_push(&cx->memory, &m->cleanup, undo_model, m);
    arena_open(&m->arena, &cx->memory);
    heap_open(&m->heap, &cx->memory);
    heap_open(&m->data, &cx->memory);
    ir_open(&m->ir, &m->arena, &ops_table, &cx->diag);
    m->ir.limits = cx->limits;
    file_set_open(&m->files, &m->arena);
    m->outer = cx->diag.files;
    cx->diag.files = &m->files;
    return m;
}

static void close_held(void *model)
{
    model_close(model);
}

/* The model outlives the call: it belongs to the context from here on. */
static void model_keep(qcc_model *m)
{
    cleanup_drop(&m->cleanup);
    arena_keep(&m->arena);
    heap_keep(&m->heap);
    heap_keep(&m->data);
    if (m->has_spine)
        spine_keep(&m->spine);
    context_hold(m->cx, &m->held, m, close_held);
}

void model_close(qcc_model *m)
{
    qcc_context *cx = m->cx;
    if (!m->freed)
        context_let_loose(cx, &m->held);
    m->freed = true;
    if (m->users)
        return;
    model_run_close(m);
    if (m->has_spine)
        spine_close(&m->spine);
    heap_close(&m->heap);
    heap_close(&m->data);
    arena_close(&m->arena);
    cleanup_drop(&m->cleanup);
    memory_release(&cx->memory, m, sizeof *m);
}

static Status host_read(void *user, uint64_t offset, void *buffer, size_t n)
{
    const qcc_source *s = user;
    return (Status)s->read(s->user, offset, buffer, n);
}

static Status open_source(qcc_model *m, const qcc_source *source)
{
    qcc_context *cx = m->cx;
    m->lent = !source->path;
    if (source->path)
        return source_open(&m->spine.source, &cx->memory, &cx->diag, m->file);
    if (source->read) {
        qcc_source *copy = NEW(&m->arena, qcc_source);
        *copy = *source;
        source_callback(&m->spine.source, &cx->memory, m->file, source->size, host_read, copy);
        return OK;
    }
    if (!source->bytes)
        return fail_as(&cx->diag, USAGE, NOWHERE, "a source without path, bytes and function");
    source_memory(&m->spine.source, &cx->memory, m->file, source->bytes, source->size);
    return OK;
}

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* The kind of a source that is open. */
static Status kind_of(qcc_model *m, FileKind *kind)
{
    char head[KIND_BYTES];
    Source *s = &m->spine.source;
    const size_t n = s->size < sizeof head ? (size_t)s->size : sizeof head;
    if (ends_in(m->file, ".qir")) {
        *kind = FILE_TEXT;
        return OK;
    }
    TRY(source_read(s, &m->cx->diag, 0, head, n));
    return file_kind(&m->cx->diag, m->file, head, n, kind);
}

/* --batch on a file with a fixed batch: every constant that states the old one follows, and that is proved. */
static Status read_rebatch(qcc_model *m, const ImportOptions *o)
{
    bool fixed = false;
    int64_t old;
    for (size_t i = 0; i < m->graph->n_inputs; i++) {
        const Type *t = m->graph->inputs[i]->type;
        fixed |= t->kind == TYPE_TENSOR && t->rank > 0 && t->dims[0] >= 0 && t->dims[0] != o->batch;
    }
    if (!o->batch || !fixed)
        return OK;
    Graph *original = graph_copy(m->graph, &m->arena);
    TRY(rebatch(m->graph, o->batch, &old));
    return rebatch_prove(m->graph, original, 0);
}

/* A step is used as it was written, or not at all. */
static Status check_digest(qcc_model *m, const CommandLine *line)
{
    Diag *d = &m->cx->diag;
    StepDigest found;
    TRY(step_digest_check(&m->spine, d, &found));
    if (found == STEP_DIGEST_NONE && onnx_is_step(&m->spine))
        remark(d, "step", NOWHERE, "has no digest: whether it is as it was written cannot be told");
    if (found != STEP_DIGEST_DIFFERS)
        return OK;
    if (option_given(line, OPT_accept_changed))
        return warn(d, NOWHERE, "has changed since it was written: taken as it is now");
    Message *msg = message_new(d, SEVERITY_ERROR, INVALID, NOWHERE,
                               "has changed since it was written: its digest is not that of its bytes");
    message_try(msg, "--accept-changed-step if it was changed on purpose; otherwise write it again");
    return message_send(msg);
}

static Status read_onnx(qcc_model *m, const CommandLine *line)
{
    qcc_context *cx = m->cx;
    ImportOptions o = { 0 };
    TRY(spine_read(&m->spine, &cx->memory, &cx->diag, &cx->limits, &onnx__model_proto__descriptor));
    m->has_spine = true;
    TRY(check_digest(m, line));
    TRY(bindings_read(m, &m->ir, &m->arena, &m->data, line, &o));
    TRY(onnx_import(&m->ir, &m->arena, &m->spine, &o, &m->module));
    m->graph = m->module->graphs[0];
    return read_rebatch(m, &o);
}

/* Text says its shapes itself. */
static Status nothing_bound(qcc_model *m, const CommandLine *line)
{
    for (size_t i = 0; i < line->n_given; i++)
        if (option_binds(line->given[i].option))
            return fail_as(&m->cx->diag, USAGE,
                           (Place){ .where = option_specs[line->given[i].option].name, .byte = -1 },
                           "applies to ONNX files, not to .qir text");
    return OK;
}

static Status read_text(qcc_model *m, const qcc_source *source)
{
    Source *s = &m->spine.source;
    Str text = { NULL, (size_t)s->size };
    Status status = OK;
    if (!source->path) { /* the text must stay where it is: a copy */
        char *copy = arena_alloc(&m->arena, text.n + 1);
        status = source_read(s, &m->cx->diag, 0, copy, text.n);
        text.p = copy;
    }
    source_close(s);
    m->lent = false;
    return status == OK ? model_read_text(m, source, text) : status;
}

/* A line that makes a training step, which binds what the text leaves open. */
static bool trains(const CommandLine *line)
{
    const bool compiles = line->verb == VERB_compile && !option_given(line, OPT_emit);
    const bool exports = option_given(line, OPT_checkpoint) || option_given(line, OPT_verify);
    return line->verb == VERB_train || line->verb == VERB_eval || compiles || exports || line_wants_step(line);
}

static Status read_any(qcc_model *m, const qcc_source *source, const CommandLine *line)
{
    FileKind kind;
    TRY(open_source(m, source));
    const Status status = kind_of(m, &kind);
    if (status != OK) {
        source_close(&m->spine.source);
        return status;
    }
    if (kind == FILE_TEXT) {
        TRY(read_text(m, source));
        if (!trains(line))
            TRY(nothing_bound(m, line));
    } else {
        TRY(read_onnx(m, line));
    }
    return model_signature(m);
}

Status model_read(qcc_context *cx, const qcc_source *source, const CommandLine *line, qcc_model **model)
{
    const char *name = source->path ? source->path : source->name ? source->name : "model";
    qcc_model *m = model_new(cx);
    m->file = arena_string(&m->arena, name);
    m->line = line_join(&m->arena, &(CommandLine){ 0 }, line);
    cx->diag.file = m->file;
    const MemoryWork before = memory_work(&cx->memory, memory_tell_text, m->file);
    Status status = read_any(m, source, line);
    cx->memory.work = before;
    cx->diag.files = m->outer;
    if (status == OK && m->outer) {
        file_set_join(m->outer, &m->files);
        status = file_set_check(m->outer, &cx->diag);
    }
    if (status != OK) {
        model_close(m);
        return status;
    }
    model_keep(m);
    *model = m;
    return OK;
}

Status model_file_is_step(qcc_context *cx, const char *path, bool *is)
{
    *is = false;
    if (!ends_in(path, ".onnx"))
        return OK;
    qcc_model *m = model_new(cx);
    m->file = path;
    Status status = open_source(m, &(qcc_source){ .path = path });
    if (status == OK)
        status = spine_read(&m->spine, &cx->memory, &cx->diag, &cx->limits, &onnx__model_proto__descriptor);
    m->has_spine = status == OK;
    *is = status == OK && onnx_is_step(&m->spine);
    cx->diag.files = m->outer;
    model_close(m);
    return status;
}

void model_guard(qcc_model *m)
{
    FileSet *call = NEW(&m->cx->scratch, FileSet);
    file_set_open_over(call, &m->cx->scratch, &m->files);
    m->cx->diag.files = call;
}

/* ---- the public calls ---- */

typedef struct Read {
    qcc_context *cx;
    const qcc_source *source;
    const char *options;
    qcc_model *model;
} Read;

static Status do_read(void *arg)
{
    Read *r = arg;
    CommandLine line;
    TRY(options_read_text(&r->cx->diag, &r->cx->scratch, "qcc_read", r->options, TEXT_READS, &line));
    return model_read(r->cx, r->source, &line, &r->model);
}

qcc_status qcc_read(qcc_context *context, const qcc_source *source, const char *options, qcc_model **model)
{
    Read r = { context, source, options, NULL };
    if (!source || !model)
        return QCC_USAGE;
    const qcc_status status = context_call(context, do_read, &r);
    if (status == QCC_OK)
        *model = r.model;
    return status;
}

/* The host may take the memory that it lent back now, and steps may still want to read there. */
static Status own_bytes(void *model)
{
    source_own(&((qcc_model *)model)->spine.source);
    return OK;
}

static void release_model(void *model)
{
    if (!((qcc_model *)model)->freed)
        model_close(model);
}

void qcc_model_free(qcc_model *model)
{
    if (!model)
        return;
    qcc_context *cx = model->cx;
    if (!model->freed && model->users && model->lent && context_take(cx)) {
        (void)guarded(&cx->memory, own_bytes, model); /* what cannot be kept is lost, and said where it is wanted */
        context_let_go(cx);
    }
    context_release(cx, release_model, model);
}
