/* Data files of a training run: which inputs they feed, and what labels may be. */
#include <string.h>

#include "api/make/recipe.h"
#include "api/model/data.h"
#include "api/train/train.h"
#include "runtime/data/spec.h"

static bool starts_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_target(const char *name)
{
    return strcmp(name, "target") == 0 || starts_with(name, "target.");
}

/* Inputs that people bind: not what the host gives back, and not ours. */
static bool is_data(const Node *n)
{
    return n->op == OP_input && node_role(n).role == INPUT_data;
}

/* Which integers a table of embeddings, or a loss, takes. */
static void set_role(const qcc_step *s, const Node *n, DataInput *input)
{
    const StepTarget *t = step_target(s, n->name);
    if (t) {
        input->role = DATA_CLASSES;
        input->count = t->classes;
        input->ignores = t->ignores;
        input->ignored = t->ignored;
        return;
    }
    if (!dtype_is_integer(n->type->dtype))
        return;
    for (const Use *u = n->uses; u; u = u->next)
        if (u->user->op == OP_gather && u == &u->user->in[1] && in(u->user, 0)->type->rank > 0) {
            input->role = DATA_TOKENS;
            input->count = in(u->user, 0)->type->dims[0];
        }
}

static const char *spelling_of(Option side, size_t k)
{
    return side == OPT_calibrate ? option_specs[side].name : k ? "--target" : "--data";
}

Status train_read_specs(Command *c, Option data, Option target, DataSpec **specs, size_t *n)
{
    const Option sides[] = { data, target };
    const char *text;
    *n = 0;
    *specs = NEWS(&c->cx->scratch, DataSpec, c->line.n_given + 1);
    for (size_t k = 0; k < (target == data ? 1 : COUNT(sides)); k++)
        for (size_t at = 0; (text = option_next(&c->line, sides[k], &at));)
            TRY(data_spec_read(&c->cx->diag, &c->cx->scratch, spelling_of(sides[k], k), text, &(*specs)[(*n)++]));
    if (target != OPT_val_target || option_given(&c->line, OPT_val_target))
        return OK;
    for (size_t at = 0; (text = option_next(&c->line, OPT_target, &at));) { /* what no file says holds for both sides */
        TRY(data_spec_read(&c->cx->diag, &c->cx->scratch, "--target", text, &(*specs)[*n]));
        *n += (*specs)[*n].kind != DATA_FILE;
    }
    return OK;
}

Status train_read_fills(Command *c, DataFill **fills, size_t *n)
{
    const char *text;
    *n = 0;
    *fills = NEWS(&c->cx->scratch, DataFill, option_given(&c->line, OPT_fill) + 1);
    for (size_t at = 0; (text = option_next(&c->line, OPT_fill, &at));)
        TRY(data_fill_read(&c->cx->diag, &c->cx->scratch, "--fill", text, &(*fills)[(*n)++]));
    return OK;
}

static Status read_proto(void *user, Heap *heap, const char *path, const Type *declared, Tensor **value)
{
    return data_read(user, heap, path, NULL, declared, value);
}

DataOptions train_data_options(Ir *ir)
{
    return (DataOptions){ .read_proto = read_proto, .user = ir };
}

/* Calibration asks for what the model reads, not for targets. */
static bool is_asked(const qcc_step *s, const Node *n, Option data)
{
    return is_data(n) && (data != OPT_calibrate || map_find(&s->model->input_names, n->name));
}

/* The inputs of a graph that data are for; those that nobody reads may be left out. */
static Status open_for(Command *c, qcc_step *s, const Graph *g, bool read, Option data, Option target, TrainData *out)
{
    DataSpec *specs;
    DataFill *fills;
    size_t n_specs, n_fills;
    const DataOptions options = { .read_proto = read_proto, .user = s->ir };
    TRY(train_read_specs(c, data, target, &specs, &n_specs));
    TRY(train_read_fills(c, &fills, &n_fills));
    out->inputs = NEWS(&s->arena, DataInput, g->n_inputs + 1);
    out->n_inputs = 0;
    for (size_t i = 0; i < g->n_inputs; i++) {
        const Node *n = g->inputs[i];
        if (!is_asked(s, n, data) || (read && !n->uses))
            continue;
        DataInput *input = &out->inputs[out->n_inputs++];
        *input = (DataInput){ .name = n->name, .type = n->type, .target = is_target(n->name) };
        set_role(s, n, input);
    }
    return dataset_open(&out->set, &c->cx->memory, &s->ir->types, &c->cx->diag, &c->cx->limits, &options, out->n_inputs,
                        out->inputs, n_specs, specs, n_fills, fills);
}

Status train_data_open(Command *c, qcc_step *s, Option data, Option target, bool eval, TrainData *out)
{
    const Graph *g = module_graph(s->module, eval ? "eval" : "step");
    if (!g)
        return fail_as(&c->cx->diag, USAGE, NOWHERE, "the step has no graph @%s", eval ? "eval" : "step");
    return open_for(c, s, g, eval, data, target, out);
}

Status train_data_open_for(Command *c, qcc_step *s, const Graph *g, Option data, TrainData *out)
{
    return open_for(c, s, g, true, data, data, out);
}

Status train_data_open_both(Command *c, qcc_step *s, const Graph *g, TrainData *out)
{
    return open_for(c, s, g, true, OPT_data, OPT_target, out);
}

/* ---- samples that do not count ---- */

/* Whether an input holds the weights of samples that --loss ..,sample_weight= names. */
static bool weighs(const qcc_step *s, const char *input)
{
    for (size_t i = 0; i < s->recipe.n_losses; i++) {
        const char *name = s->recipe.losses[i].sample_weight;
        if (name && strcmp(name, input) == 0)
            return true;
    }
    return false;
}

bool train_masks(const qcc_step *s, const char *graph)
{
    const Graph *g = module_graph(s->module, graph);
    size_t own = 0;
    for (size_t i = 0; g && i < g->n_inputs; i++)
        if (g->inputs[i]->op == OP_input && node_role(g->inputs[i]).role == INPUT_valid)
            return true;
    for (size_t i = 0; i < s->recipe.n_losses; i++)
        own += s->recipe.losses[i].sample_weight != NULL;
    return own && own == s->recipe.n_losses;
}

/* The same weights, 0 for the samples behind the first `valid`. */
static const Tensor *cut_weights(Arena *arena, const Tensor *weights, int64_t valid)
{
    const Type *type = weights->type;
    Tensor *t = tensor_new(arena, type);
    const int64_t rows = type->rank ? type->dims[0] : 1, each = rows ? tensor_elements(weights) / rows : 0;
    for (int64_t i = 0; i < rows * each; i++)
        tensor_set_f64(t, i, i < valid * each ? tensor_get_f64(weights, i) : 0);
    return t;
}

static Status bind_mask(Session *run, Arena *arena, int64_t valid)
{
    const Node *n = session_input_of(run, INPUT_valid);
    if (!n)
        return OK;
    Tensor *mask = tensor_new(arena, n->type);
    for (int64_t i = 0; i < tensor_elements(mask); i++)
        tensor_set_f64(mask, i, i < valid);
    return session_bind(run, n->name, mask);
}

Status train_bind_next(const qcc_step *s, Session *run, const TrainData *data, const Batch *batch)
{
    for (size_t i = 0; i < data->n_inputs; i++) {
        const char *name = data->inputs[i].name;
        const bool is_cut = batch->valid < batch->rows && weighs(s, name);
        if (batch->values[i] && !is_cut)
            TRY(session_bind_next(run, name, batch->values[i]));
    }
    return OK;
}

/* Binds a batch, or what of it does not come by itself. */
static Status bind_batch(const qcc_step *s, Session *run, Arena *arena, const TrainData *data, const Batch *batch,
                         bool rest)
{
    for (size_t i = 0; i < data->n_inputs; i++) {
        const char *name = data->inputs[i].name;
        const Tensor *value = batch->values[i];
        if (value && batch->valid < batch->rows && weighs(s, name))
            value = cut_weights(arena, value, batch->valid);
        if (value && !(rest && session_comes(run, name)))
            TRY(session_bind(run, name, value));
    }
    return bind_mask(run, arena, batch->valid);
}

Status train_bind(const qcc_step *s, Session *run, Arena *arena, const TrainData *data, const Batch *batch)
{
    return bind_batch(s, run, arena, data, batch, false);
}

Status train_bind_rest(const qcc_step *s, Session *run, Arena *arena, const TrainData *data, const Batch *batch)
{
    return bind_batch(s, run, arena, data, batch, true);
}

/* ---- sizes that only the data know ---- */

/* The input a spec feeds: the one it names, or the only one. */
static const Value *input_of(const qcc_model *m, const DataSpec *spec, size_t n_specs)
{
    for (size_t i = 0; i < m->n_inputs; i++)
        if (spec->name ? strcmp(m->inputs[i].name, spec->name) == 0 : n_specs == 1 && m->n_inputs == 1)
            return &m->inputs[i];
    return NULL;
}

Status train_dims(Command *c, qcc_model *m)
{
    DataSpec *specs;
    size_t n;
    if (model_is_step(m))
        return OK;
    Arena *arena = &c->cx->scratch;
    const DataOptions options = { .read_proto = read_proto, .user = &m->ir };
    TRY(train_read_specs(c, OPT_data, OPT_val, &specs, &n));
    for (size_t i = 0; i < n; i++) {
        const Value *v = specs[i].kind == DATA_FILE ? input_of(m, &specs[i], n) : NULL;
        const Type *have = NULL;
        if (!v || v->type->kind != TYPE_TENSOR || v->type->rank < 1)
            continue;
        TRY(data_probe(&c->cx->memory, &m->ir.types, &c->cx->diag, &c->cx->limits, &options, &specs[i], &have));
        if (!have || have->rank != v->type->rank)
            continue;
        for (int k = data_given(&specs[i], DATA_static) ? 0 : 1; k < have->rank; k++)
            if (v->dims[k] && v->type->dims[k] < 0 && have->dims[k] >= 0 &&
                !pair_given(arena, &c->line, OPT_dim, v->dims[k]))
                option_add(arena, &c->line, OPT_dim,
                           arena_printf(arena, "%s=%lld", v->dims[k], (long long)have->dims[k]));
    }
    return OK;
}

Status command_dims(Command *c, qcc_model *m)
{
    const Place place = { .where = option_specs[OPT_data].name, .byte = -1 };
    if (model_is_step(m) && option_given(&c->line, OPT_data))
        return fail_as(&c->cx->diag, USAGE, place, "the sizes of a step are bound already");
    return train_dims(c, m);
}
