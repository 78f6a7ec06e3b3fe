#include "api/model.h"
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
