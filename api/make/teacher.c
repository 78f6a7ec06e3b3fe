#include "api/make/teacher.h"

#include <inttypes.h>
#include <string.h>

#include "api/make/recipe.h"
#include "base/hash.h"
#include "base/number_text.h"
#include "frontends/onnx/import.h"
#include "ir/copy.h"
#include "ir/store/blob.h"
#include "ir/text/print.h"
#include "passes/clean/fold.h"
#include "passes/engine/pass.h"
#include "passes/pipelines.h"

/* ---- the file ---- */

static Status read_file(qcc_step *s, const CommandLine *line, const char *file)
{
    qcc_model *m;
    const CommandLine none = { .verb = line->verb };
    TRY(model_read(s->cx, &(qcc_source){ .path = file }, &none, &m));
    m->users++;
    model_close(m); /* it is the step's from here on, and goes with it */
    s->teacher = m;
    if (model_is_step(m))
        return fail_as(&s->cx->diag, USAGE, (Place){ .file = file, .where = "--teacher", .byte = -1 },
                       "is a training step, wanted is a model");
    TRY(model_supported(m));
    return m->has_spine ? OK : model_as_file(m);
}

/* Whether what the file says of an input leaves room for what the model has. */
static bool leaves_open(const Type *said, const Type *type)
{
    bool open = said->kind == TYPE_TENSOR && type->kind == TYPE_TENSOR && said->rank == type->rank;
    for (int i = 0; open && i < said->rank; i++)
        open = type->dims[i] >= 0 && (said->dims[i] < 0 || said->dims[i] == type->dims[i]);
    return open;
}

static const Type *type_of_input(const Graph *g, const char *name)
{
    for (size_t i = 0; i < g->n_inputs; i++)
        if (g->inputs[i]->name && strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i]->type;
    return NULL;
}

/* Dimensions that the file leaves open are those of the model's input of the same name. */
static Status import(qcc_step *s, const Graph *g, Graph **teacher)
{
    Module *module;
    qcc_model *m = s->teacher;
    ShapeBinding *shapes = NEWS(&s->arena, ShapeBinding, m->n_inputs + 1);
    ImportOptions o = { .shapes = shapes, .batch = step_batch_of(g) };
    for (size_t i = 0; i < m->n_inputs; i++) {
        const Type *type = type_of_input(g, m->inputs[i].name);
        if (!type || !leaves_open(m->inputs[i].type, type))
            continue;
        ShapeBinding *b = &shapes[o.n_shapes++];
        b->input = m->inputs[i].name;
        b->rank = type->rank;
        memcpy(b->dims, type->dims, (size_t)type->rank * sizeof *b->dims);
    }
    TRY(onnx_import(s->ir, &s->arena, &m->spine, &o, &module));
    *teacher = module->graphs[0];
    TRY(fold_types(*teacher, &s->cx->scratch));
    return step_change_batch(s, *teacher, step_batch_of(g));
}

/* ---- its content ---- */

static Status hash_payload(qcc_step *s, Payload *p, uint64_t *hash)
{
    Heap heap;
    void *block = NULL;
    uint64_t bytes = 0;
    if (!p || !tensor_holds(p->type) || !type_bytes(p->type, &bytes))
        return OK;
    heap_open(&heap, &s->cx->memory);
    const void *have = payload_bytes(p, &heap, &block, &s->cx->diag);
    if (have)
        *hash = hash64(have, (size_t)bytes, *hash);
    heap_close(&heap);
    return have ? OK : payload_failed(p, &s->cx->diag, NOWHERE);
}

/* Of what it computes as it was read, values included, wherever the file keeps them. */
static Status hash_graph(qcc_step *s, Graph *g, const char **text)
{
    uint64_t hash = 0;
    Text t;
    Numbering numbers = numbering_of(g, &s->cx->scratch);
    text_open(&t, &s->cx->scratch);
    for (size_t i = 0; i < g->n_inputs; i++)
        print_line(&t, &numbers, g->inputs[i]);
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        print_line(&t, &numbers, n);
        if (n->op == OP_param || n->op == OP_const)
            TRY(hash_payload(s, node_payload(n), &hash));
    }
    for (int i = 0; i < graph_n_results(g); i++) {
        text_printf(&t, " %s ", graph_result_name(g, i) ? graph_result_name(g, i) : "");
        print_value(&t, &numbers, graph_result(g, i));
    }
    const char *all = text_get(&t);
    *text = arena_printf(&s->arena, "%016" PRIx64, hash64(all, strlen(all), hash));
    return OK;
}

/* ---- what it computes ---- */

/* Nothing that is said of nodes of the model, by their name or number, is said of these. */
static void make_nameless(Graph *g)
{
    for (Node *n = walk_first(g); n; n = walk_next(g, n)) {
        n->src = 0;
        n->label = NULL;
    }
}

static Status in_inference(qcc_step *s, Graph *g)
{
    const PipelineOptions options = { .pass = { .recipe = NULL } };
    TRY(pipeline_run(pipeline_find("freeze"), g, &options));
    for (Node *n = walk_first(g); n; n = walk_next(g, n))
        if (n->op == OP_param)
            return fail_as(&s->cx->diag, USAGE, node_place(n), "--teacher: %s has no value",
                           n->name ? n->name : "a parameter");
    return pass_run(pass_find("enter-inference"), g, NULL);
}

static Status read_teacher(qcc_step *s, const CommandLine *line, Graph *g)
{
    Teacher *t = &s->recipe.teacher;
    Graph *teacher;
    if (strcmp(t->file, TEACHER_SELF) == 0) {
        teacher = graph_copy(g, &s->arena);
    } else {
        TRY(read_file(s, line, t->file));
        TRY(import(s, g, &teacher));
    }
    TRY(hash_graph(s, teacher, &t->content));
    TRY(in_inference(s, teacher));
    make_nameless(teacher);
    t->graph = teacher;
    return OK;
}

Status step_read_teacher(qcc_step *s, const CommandLine *line, Graph *g)
{
    Diag *d = &s->cx->diag;
    const Teacher *t = &s->recipe.teacher;
    if (!t->file)
        return OK;
    if (s->facts.recorded && strcmp(t->file, TEACHER_SELF) != 0)
        return warn(d, NOWHERE,
                    "--teacher %s: the file is not opened again: what is said of the step leaves its teacher out",
                    t->file);
    const char *file = d->file;
    const Status status = read_teacher(s, line, g);
    d->file = file;
    return status;
}

void step_drop_teacher(qcc_step *s)
{
    qcc_model *m = s->teacher;
    s->teacher = NULL;
    if (m && --m->users == 0)
        model_close(m);
}

/* ---- in words ---- */

const char *step_teacher_identity(qcc_step *s)
{
    const Teacher *t = &s->recipe.teacher;
    Teacher nameless = *t;
    nameless.file = t->content ? t->content : t->file;
    return teacher_text(&s->arena, &nameless);
}

const char *step_teacher_words(Arena *arena, const qcc_step *s)
{
    char temperature[NUMBER_TEXT], weight[NUMBER_TEXT];
    const Teacher *t = &s->recipe.teacher;
    f64_to_text(temperature, t->temperature);
    f64_to_text(weight, t->weight);
    return arena_printf(arena, "%s%s%s: softmax at temperature %s, %s of the loss", t->file,
                        t->output ? ", output " : "", t->output ? t->output : "", temperature, weight);
}
