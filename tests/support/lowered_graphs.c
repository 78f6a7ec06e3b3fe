#include "support/lowered_graphs.h"

#include "api/make/step.h"
#include "passes/pipelines.h"

typedef struct Visit {
    Stored *s;
    qcc_step *step;
} Visit;

static Status (*visit_graph)(Stored *s, Graph *g, void *user);
static void *visit_user;

static Status lower_graphs(void *thing)
{
    Visit *v = thing;
    for (size_t i = 0; i < v->step->module->n_graphs; i++) {
        Graph *g = graph_copy(v->step->module->graphs[i], &v->s->c.arena);
        TRY(pipeline_run(pipeline_find("lower"), g, &(PipelineOptions){ .verify_each = VERIFY_NOTHING }));
        TRY(visit_graph(v->s, g, visit_user));
    }
    return OK;
}

static Status visit_model(void *stored)
{
    static const char *const options[] = { "--optimizer adamw --lr 1e-3 --batch 2",
                                           "--optimizer sgd:momentum=0.9 --lr 1e-3 --batch 2 --amp bf16" };
    Visit v = { .s = stored };
    for (size_t i = 0; i < COUNT(options); i++) {
        const qcc_context_options open = { .size = sizeof open, .report = stored_report, .user = stored };
        const qcc_source source = qcc_file(v.s->path);
        qcc_context *cx;
        qcc_model *model;
        MUST(&v, qcc_open(&open, &cx));
        MUST(&v, qcc_read(cx, &source, NULL, &model));
        if (qcc_compile(model, options[i], &v.step) == QCC_OK)
            TRY(guarded(v.step->module->ir->memory, lower_graphs, &v));
        qcc_close(cx);
    }
    return OK;
}

int lowered_graphs(Status (*visit)(Stored *s, Graph *g, void *user), void *user, size_t *seen)
{
    visit_graph = visit;
    visit_user = user;
    return stored_each("/tests/data/exports/*-*.onnx", NULL, NULL, visit_model, seen) +
           stored_each("/tests/data/torch/*.onnx", NULL, NULL, visit_model, seen);
}
