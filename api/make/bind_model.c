/* The model that a step is made of, with its dimensions bound. */
#include <inttypes.h>
#include <string.h>

#include "api/make/recipe.h"
#include "ir/copy.h"
#include "passes/clean/fold.h"
#include "passes/engine/trial.h"
#include "passes/model/rebatch.h"

enum { DEFAULT_BATCH = 32 };

int64_t step_batch_of(const Graph *g)
{
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Type *t = g->inputs[i]->type;
        if (g->inputs[i]->op == OP_input && t->kind == TYPE_TENSOR && t->rank > 0)
            return t->dims[0];
    }
    return 0;
}

/* A file with a fixed batch: the constants that state it follow, and that is proved for what will run. */
Status step_change_batch(qcc_step *s, Graph *g, int64_t batch)
{
    int64_t old;
    const int64_t have = step_batch_of(g);
    if (!batch || have <= 0 || have == batch)
        return OK;
    Graph *original = graph_copy(g, &s->arena);
    TRY(rebatch(g, batch, &old));
    return s->model->cx->weighs ? OK : rebatch_prove(g, original, 0);
}

static bool is_past(const char *input)
{
    return strncmp(input, "past_", 5) == 0;
}

/* The dimensions that have a size by themselves or by the line: those of inputs that are no caches of the past, and
 * those that --dim names. */
static Map present_dims(qcc_step *s, const CommandLine *line)
{
    const qcc_model *m = s->model;
    const char *pair;
    Map dims;
    map_open(&dims, &s->cx->scratch);
    for (size_t i = 0; i < m->n_inputs; i++)
        for (int k = 0; !is_past(m->inputs[i].name) && k < m->inputs[i].type->rank; k++)
            if (m->inputs[i].dims[k])
                map_put(&dims, m->inputs[i].dims[k], NULL);
    for (size_t at = 0; (pair = option_next(line, OPT_dim, &at));) {
        const char *value;
        map_put(&dims, pair_split(&s->cx->scratch, pair, &value), NULL);
    }
    return dims;
}

/* Caches of what came before (past_key_values ..) are empty unless the line says how long they are. */
static CommandLine with_past(qcc_step *s, const CommandLine *line)
{
    const qcc_model *m = s->model;
    const Map present = present_dims(s, line);
    CommandLine empty = { 0 }, all = line_join(&s->arena, &empty, line);
    for (size_t i = 0; i < m->n_inputs; i++) {
        const Value *v = &m->inputs[i];
        if (!is_past(v->name) || v->type->kind != TYPE_TENSOR)
            continue;
        for (int k = 1; k < v->type->rank; k++)
            if (v->type->dims[k] < 0 && v->dims[k] && !map_find(&present, v->dims[k]))
                option_add(&s->arena, &all, OPT_dim, arena_printf(&s->arena, "%s=0", v->dims[k]));
    }
    return all;
}

/* The first of a name counts. */
static Map inputs_of(Arena *arena, const Graph *g)
{
    Map map;
    map_open(&map, arena);
    for (size_t i = 0; i < g->n_inputs; i++) {
        bool fresh = false;
        MapEntry *e = g->inputs[i]->name ? map_put(&map, g->inputs[i]->name, &fresh) : NULL;
        if (fresh)
            e->value.cp = g->inputs[i];
    }
    return map;
}

/* An axis that has a dimension, and the next one that has it too. */
typedef struct Axis {
    const char *input;
    int axis;
    struct Axis *next;
} Axis;

/* The axes of each symbolic dimension, in the order of the signature. */
static Map axes_of(qcc_step *s, const Map *inputs)
{
    Arena *a = &s->cx->scratch;
    const qcc_model *m = s->model;
    Map dims;
    map_open(&dims, a);
    for (size_t i = m->n_inputs; i-- > 0;)
        for (int k = m->inputs[i].type->rank; map_find(inputs, m->inputs[i].name) && k-- > 0;)
            if (m->inputs[i].dims[k]) {
                MapEntry *e = map_put(&dims, m->inputs[i].dims[k], NULL);
                Axis *axis = NEW(a, Axis);
                *axis = (Axis){ m->inputs[i].name, k, e->value.p };
                e->value.p = axis;
            }
    return dims;
}

/* Whether the model takes a dimension of that size, as far as its shapes say. */
static bool takes_size(qcc_step *s, const char *dim, int64_t size)
{
    Hush hush;
    Module *module;
    Arena *a = &s->cx->scratch;
    const DimBinding binding = { .name = dim, .value = size };
    const ImportOptions o = { .dims = &binding, .n_dims = 1, .batch = 1 };
    hush_begin(&hush, s->ir, a);
    Status status = onnx_import(s->ir, a, &s->model->spine, &o, &module);
    if (status == OK)
        status = fold_types(module->graphs[0], a);
    hush_end(&hush);
    return status == OK;
}

/* A size to try: as long as people use, or as long as the tables of the model are; 0 when none is taken. */
static int64_t size_that_fits(qcc_step *s, const char *dim)
{
    int64_t size = 1024;
    while (size && !takes_size(s, dim, size))
        size /= 2;
    return size;
}

/* A symbolic dimension that nothing binds, and every input that has it. */
static Status no_size(qcc_step *s, const Map *axes, const char *dim)
{
    const MapEntry *e = map_find(axes, dim);
    Message *msg = message_new(&s->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE, "dimension %s has no size", dim);
    for (const Axis *a = e ? e->value.cp : NULL; a; a = a->next)
        message_at(msg, "%s[%d]", a->input, a->axis);
    const int64_t size = size_that_fits(s, dim);
    if (size)
        message_try(msg, "--dim %s=%" PRId64, dim, size);
    return message_send(msg);
}

/* Every symbolic dimension has a size: each that has none is reported once. */
static Status check_sizes(qcc_step *s, const Graph *g)
{
    const qcc_model *m = s->model;
    Status status = OK;
    const Map inputs = inputs_of(&s->cx->scratch, g), axes = axes_of(s, &inputs);
    Map seen;
    map_open(&seen, &s->cx->scratch);
    for (size_t i = 0; i < m->n_inputs; i++) {
        const Value *v = &m->inputs[i];
        const MapEntry *e = map_find(&inputs, v->name);
        const Node *n = e ? e->value.cp : NULL;
        for (int k = 0; n && n->uses && n->type->kind == TYPE_TENSOR && k < n->type->rank; k++) {
            bool fresh = false;
            if (n->type->dims[k] < 0 && v->dims[k])
                map_put(&seen, v->dims[k], &fresh);
            if (fresh)
                status = no_size(s, &axes, v->dims[k]);
        }
    }
    return status;
}

Status step_bind_model(qcc_step *s, const CommandLine *line, Graph **g)
{
    qcc_model *m = s->model;
    const int64_t turns = s->recipe.accumulate > 1 ? s->recipe.accumulate : 1;
    const int64_t said = option_count(line, OPT_batch, 0), batch = (said ? said : DEFAULT_BATCH) / turns;
    if ((said ? said : DEFAULT_BATCH) % turns)
        return fail_as(&s->cx->diag, USAGE, ON_COMMAND_LINE,
                       "--accumulate %" PRId64 ": a batch of %" PRId64 " does not divide into as many", turns,
                       said ? said : DEFAULT_BATCH);
    if (!m->has_spine)
        TRY(model_as_file(m));
    ImportOptions o = { 0 };
    Module *module;
    const CommandLine bound = with_past(s, line);
    TRY(bindings_read(m, s->ir, &s->arena, &s->data, &bound, &o));
    o.batch = batch;
    TRY(onnx_import(s->ir, &s->arena, &m->spine, &o, &module));
    *g = module->graphs[0];
    TRY(check_sizes(s, *g));
    return step_change_batch(s, *g, said ? batch : 0);
}
