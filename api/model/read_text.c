#include "api/model/model.h"
#include "frontends/onnx/write.h"
#include "ir/verify.h"

Status model_read_text(qcc_model *m, const qcc_source *source, Str text)
{
    SourceMap map;
    if (source->path)
        TRY(parse_file(&m->ir, &m->arena, m->file, &map, &m->module));
    else
        TRY(parse_module(&m->ir, &m->arena, text, m->file, NULL, &map, &m->module));
    TRY(verify_module(m->module, &map));
    if (!m->module->n_graphs)
        return fail(&m->cx->diag, NOWHERE, "has no graph");
    m->graph = m->module->graphs[0];
    return OK;
}

/* Bytes that a writer puts, gathered in the model's arena. */
static Status gather(void *user, const void *bytes, size_t n)
{
    text_bytes(user, bytes, n);
    return OK;
}

/* About how long the file becomes: its values, and words around them. */
static size_t bytes_about(Graph *g)
{
    enum { WORDS = 4096, WORDS_OF_NODE = 256 };
    size_t sum = WORDS, bytes;
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        const bool holds = n->op == OP_param || n->op == OP_const || n->op == OP_state;
        sum += WORDS_OF_NODE + (holds && n->type->kind == TYPE_TENSOR && type_bytes(n->type, &bytes) ? bytes : 0);
    }
    return sum;
}

Status model_as_file(qcc_model *m)
{
    Text *bytes = NEW(&m->arena, Text);
    qcc_context *cx = m->cx;
    text_open(bytes, &m->arena);
    text_room(bytes, bytes_about(m->graph));
    TRY(onnx_write(m->graph, &cx->diag, &(Sink){ gather, bytes }));
    source_memory(&m->spine.source, &cx->memory, m->file, bytes->p, bytes->n);
    TRY(spine_read(&m->spine, &cx->memory, &cx->diag, &cx->limits, &onnx__model_proto__descriptor));
    spine_keep(&m->spine);
    m->has_spine = true;
    m->file_bytes = bytes->n;
    return OK;
}
