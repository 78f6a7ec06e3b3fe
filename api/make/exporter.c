/* What the exporter of a model says that its graph no longer shows: said once, when the model is compiled to be trained. */
#include <string.h>

#include "api/make/step.h"
#include "frontends/onnx/read/torch.h"

/* Parameters that the exporter folded into others, or computed with before it wrote the file. */
static Status tell_missing(const qcc_step *s, const TorchNames *names)
{
    if (!names->n_missing)
        return OK;
    Message *m =
        message_new(&s->cx->diag, SEVERITY_WARNING, OK, NOWHERE,
                    "%zu of the module's %zu parameters %s not in the file: the exporter folded %s into others, or "
                    "computed with %s; what it put in their place is not trained",
                    names->n_missing, names->n_parameters, names->n_missing == 1 ? "is" : "are",
                    names->n_missing == 1 ? "it" : "them", names->n_missing == 1 ? "it" : "them");
    for (size_t i = 0; i < names->n_missing; i++)
        message_at(m, "%s", names->missing[i]);
    message_try(m, "torch.onnx.export(model.train(), .., optimize=False), which keeps all of them");
    return message_send(m);
}

static Status tell_shared(const qcc_step *s, const TorchNames *names)
{
    if (!names->n_shared)
        return OK;
    Message *m =
        message_new(&s->cx->diag, SEVERITY_WARNING, OK, NOWHERE,
                    "%zu initializer%s hold%s several parameters that were equal, and the file does not say of all "
                    "readers which they read: those are trained as one",
                    names->n_shared, names->n_shared == 1 ? "" : "s", names->n_shared == 1 ? "s" : "");
    for (size_t i = 0; i < names->n_shared; i++)
        message_at(m, "%s", names->shared[i]->shown);
    message_try(m, "torch.onnx.export(.., optimize=False), which does not merge them");
    return message_send(m);
}

size_t exporter_folded_norms(const qcc_model *m)
{
    const Onnx__GraphProto *g = m->has_spine ? m->spine.model->graph : NULL;
    size_t n = 0;
    for (size_t i = 0; g && i < g->n_node; i++)
        n += torch_holds_norm(g->node[i]);
    return n;
}

/* Without a signature nobody can say which parameters those were. */
static Status tell_folded(const qcc_step *s)
{
    const Onnx__GraphProto *g = s->model->has_spine ? s->model->spine.model->graph : NULL;
    const size_t n = exporter_folded_norms(s->model);
    if (!n)
        return OK;
    Message *m =
        message_new(&s->cx->diag, SEVERITY_WARNING, OK, NOWHERE,
                    "the exporter folded BatchNormalization into %zu convolution%s: their weights and biases are "
                    "trained, and nothing is normalized",
                    n, n == 1 ? "" : "s");
    for (size_t i = 0; i < g->n_node; i++)
        if (torch_holds_norm(g->node[i]))
            message_at(m, "%.*s", (int)g->node[i]->name.len, (const char *)g->node[i]->name.data);
    message_try(m, "torch.onnx.export(model.train(), .., optimize=False), which keeps the norms");
    return message_send(m);
}

Status step_tell_exporter(const qcc_step *s)
{
    const qcc_model *m = s->model;
    const TorchNames *names = m->has_spine ? torch_names(m->spine.model, &s->cx->scratch) : NULL;
    if (!names)
        return tell_folded(s);
    TRY(tell_missing(s, names));
    return tell_shared(s, names);
}
