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

Status model_as_file(qcc_model *m)
{
    Text *bytes = NEW(&m->arena, Text);
    qcc_context *cx = m->cx;
    text_open(bytes, &m->arena);
    TRY(onnx_write(m->graph, &cx->diag, &(Sink){ gather, bytes }));
    source_memory(&m->spine.source, &cx->memory, m->file, bytes->p, bytes->n);
    TRY(spine_read(&m->spine, &cx->memory, &cx->diag, &cx->limits, &onnx__model_proto__descriptor));
    spine_keep(&m->spine);
    m->has_spine = true;
    return OK;
}
