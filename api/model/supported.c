/* Which operators of a model have no meaning here. */
#include <string.h>

#include "api/model/model.h"

static bool ends_in(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

/* Operators that only the training artefacts of ONNX Runtime hold. */
static bool of_training_artefact(const OpaqueAttr *op)
{
    return strcmp(op->domain, "com.microsoft") == 0 &&
           (ends_in(op->op_type, "Grad") || ends_in(op->op_type, "Internal") ||
            strncmp(op->op_type, "InPlaceAccumulator", 18) == 0 || strcmp(op->op_type, "AdamWOptimizer") == 0);
}

static const char *full_name(Arena *a, const OpaqueAttr *op)
{
    return op->domain[0] ? arena_printf(a, "%s.%s", op->domain, op->op_type) : op->op_type;
}

bool node_lacks_card(const Node *n)
{
    Op found;
    const OpaqueAttr *op = n->attr;
    return n->op == OP_opaque && !op_find_onnx(n->graph->ir->ops, op->domain, op->op_type, &found);
}

static Status artefact(qcc_model *m, const OpaqueAttr *op)
{
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, UNSUPPORTED, NOWHERE,
                               "made by onnxruntime's generate_artifacts (%s)", full_name(&m->cx->scratch, op));
    message_try(msg, "the forward model that you gave to generate_artifacts");
    return message_send(msg);
}

Status model_supported(qcc_model *m)
{
    Arena *a = &m->cx->scratch;
    Map missing;
    Text names;
    size_t n = 0;
    map_open(&missing, a);
    text_open(&names, a);
    for (Node *node = walk_first(m->graph); node; node = walk_next(m->graph, node)) {
        const OpaqueAttr *op = node->attr;
        bool fresh;
        if (!node_lacks_card(node))
            continue;
        if (of_training_artefact(op))
            return artefact(m, op);
        map_put(&missing, full_name(a, op), &fresh)->value.i++;
        n++;
        if (fresh)
            text_printf(&names, "%s%s", missing.n > 1 ? ", " : "", full_name(a, op));
    }
    if (!n)
        return OK;
    Message *msg = message_new(&m->cx->diag, SEVERITY_ERROR, UNSUPPORTED, NOWHERE, "%zu operator%s no meaning here: %s",
                               missing.n, missing.n == 1 ? " has" : "s have", text_get(&names));
    for (Node *node = walk_first(m->graph); node; node = walk_next(m->graph, node))
        if (node_lacks_card(node))
            message_at(msg, "%s", node_place(node).where);
    message_try(msg, "qcc --list-ops for those that have; reading, explain, diff and export work without");
    return message_send(msg);
}
