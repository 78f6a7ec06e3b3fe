/* The same values for both models: those of --input, else seeded random ones. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/words.h"
#include "api/model/data.h"
#include "api/model/evaluate.h"
#include "api/model/fit.h"
#include "api/verbs/diff.h"
#include "base/rng.h"

void diff_record(Diff *d, const char *of, const char *name, const char *before, const char *after, const char *change)
{
    if (!out_is_json(d->c->out))
        return;
    d->n_differences++;
    log_record(&d->records, "difference", { "of", logged_text(of) }, { "name", logged_text(name) },
               { "before", logged_text(before) }, { "after", logged_text(after) }, { "change", logged_text(change) });
}

/* Says why the numbers are not compared. */
static void not_compared(Diff *d, const char *why)
{
    text_printf(&d->text, "  not compared: %s\n", why);
    log_record(&d->records, "numbers", { "why", logged_text(why) });
}

/* Sizes of dimensions by name; an unknown dimension 0 is 1. */
static const Type *input_type(Diff *d, qcc_model *m, const Value *v)
{
    int64_t dims[MAX_RANK];
    if (v->type->kind != TYPE_TENSOR || v->type->rank < 0 || v->type->dtype == STRING) {
        not_compared(d, arena_printf(d->arena, "input %s is %s", name_text(d->arena, v->name), v->text));
        return NULL;
    }
    for (int i = 0; i < v->type->rank; i++) {
        dims[i] = v->type->dims[i] >= 0 ? v->type->dims[i] : i == 0 ? 1 : -1;
        if (dims[i] >= 0)
            continue;
        not_compared(d,
                     arena_printf(d->arena, "dimension %d of input %s has no size: --dim %s=16", i,
                                  name_text(d->arena, v->name), v->dims[i] ? name_text(d->arena, v->dims[i]) : "NAME"));
        return NULL;
    }
    return type_tensor(&m->ir.types, v->type->dtype, v->type->rank, dims);
}

/* Floats lie in [-1, 1), integers are 0 or 1: small enough for any index. */
static Tensor *random_tensor(Diff *d, const Type *type, uint64_t seed)
{
    Tensor *t = tensor_alloc(&d->heap, type);
    Rng rng = { seed };
    const int64_t n = tensor_elements(t);
    memset(t->data, 0, t->bytes);
    for (int64_t i = 0; i < n; i++) {
        if (!dtype_is_float(type->dtype))
            tensor_set_i64(t, i, (int64_t)rng_below(&rng, 2));
        else
            tensor_set_f64(t, i, 2 * rng_unit(&rng) - 1);
    }
    return t;
}

/* The files of the inputs by name; the last of a name counts. */
static Map given_files(Diff *d)
{
    const char *pair;
    Map files;
    map_open(&files, d->arena);
    for (size_t at = 0; (pair = option_next(&d->c->line, OPT_input, &at));) {
        const char *path, *name = pair_split(d->arena, pair, &path);
        map_put(&files, name, NULL)->value.cp = path;
    }
    return files;
}

static Status given_input(Diff *d, int which, size_t i, const Map *files, const Tensor **value, const char **file)
{
    qcc_model *m = d->model[which];
    const MapEntry *e = map_find(files, m->inputs[i].name);
    Tensor *t;
    *value = NULL;
    if (!e)
        return OK;
    *file = e->value.cp;
    TRY(data_read(&m->ir, &m->data, *file, m->inputs[i].name, m->inputs[i].type, &t));
    *value = t;
    return OK;
}

/* The seed of an input hangs on its name, so that both models see the same. */
static uint64_t seed_of(Diff *d, const char *name)
{
    uint64_t h = (uint64_t)option_count(&d->c->line, OPT_seed, 0) + 0x9e3779b97f4a7c15u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

/* False after saying why not. */
static bool all_supported(Diff *d)
{
    for (int k = 0; k < 2; k++)
        for (Node *n = walk_first(d->model[k]->graph); n; n = walk_next(d->model[k]->graph, n))
            if (n->op == OP_opaque) {
                not_compared(d, arena_printf(d->arena, "%s has operators without a meaning here", d->model[k]->file));
                return false;
            }
    return true;
}

/* Keeps the first error instead of telling it: drawn inputs may be none that the model takes. */
typedef struct Muffle {
    Diag *diag, before;
    const char *said;
    Cleanup cleanup;
} Muffle;

static void muffled(void *user, const Message *message)
{
    Muffle *m = user;
    Text t;
    if (message->severity != SEVERITY_ERROR || m->said)
        return;
    text_open(&t, m->diag->arena);
    message_print(&t, message);
    m->said = arena_copy(m->diag->arena, text_get(&t), strcspn(text_get(&t), "\n"));
}

static void unmuffle(void *thing)
{
    const Muffle *m = thing;
    m->diag->report = m->before.report;
    m->diag->user = m->before.user;
    m->diag->n_errors = m->before.n_errors;
}

/* Evaluates on drawn inputs; one that the model refuses is a note in the text. */
static Status try_one(Diff *d, qcc_model *m, const EvalOptions *how, const Tensor *const *inputs, bool *ran)
{
    Diag *diag = &m->cx->diag;
    Muffle muffle = { .diag = diag, .before = *diag };
    cleanup_push(&m->cx->memory, &muffle.cleanup, unmuffle, &muffle);
    diag->report = muffled;
    diag->user = &muffle;
    const Status status = model_evaluate(m, how, inputs);
    cleanup_drop(&muffle.cleanup);
    unmuffle(&muffle);
    *ran = status == OK;
    if (status != INVALID && status != UNSUPPORTED)
        return status;
    not_compared(d, muffle.said ? muffle.said : "it is refused");
    text_add(&d->text, "  try --input NAME=FILE.npy\n");
    return OK;
}

static Status run_one(Diff *d, int which, bool *ran)
{
    qcc_model *m = d->model[which];
    const Tensor **inputs = NEWS(d->arena, const Tensor *, m->n_inputs + 1);
    const Map files = given_files(d);
    Map sizes;
    *ran = false;
    m->cx->diag.file = m->file;
    map_open(&sizes, d->arena);
    for (size_t i = 0; i < m->n_inputs; i++) {
        const char *file = NULL;
        TRY(given_input(d, which, i, &files, &inputs[i], &file));
        if (!inputs[i] && m->graph->inputs[i]->op == OP_state)
            TRY(model_initial(m, i, &inputs[i]));
        if (!inputs[i]) {
            const Type *type = input_type(d, m, &m->inputs[i]);
            if (!type)
                return OK;
            inputs[i] = random_tensor(d, type, seed_of(d, m->inputs[i].name));
        }
        TRY(fit_input(m, i, inputs[i], file, &sizes));
    }
    *ran = true;
    const EvalOptions how = command_eval(d->c);
    if (!option_given(&d->c->line, OPT_input))
        return try_one(d, m, &how, inputs, ran);
    return model_evaluate(m, &how, inputs);
}

typedef struct Gap {
    double largest, relative;
    int64_t differing, beyond;
} Gap;

static Gap gap_between(const Tensor *a, const Tensor *b, double rtol, double atol)
{
    Gap g = { 0 };
    double scale = 0;
    const int64_t n = tensor_elements(a);
    for (int64_t i = 0; i < n; i++) {
        const double x = tensor_get_f64(a, i), y = tensor_get_f64(b, i);
        scale = fabs(x) > scale ? fabs(x) : scale;
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        g.differing++;
        const double gap = fabs(x - y);
        g.beyond += !(gap <= atol + rtol * fabs(x));
        if (gap > g.largest || isnan(gap))
            g.largest = isnan(gap) ? INFINITY : gap;
    }
    g.relative = scale > 0 ? g.largest / scale : 0;
    return g;
}

/* Whether an output is within the tolerances. */
static bool tell_output(Diff *d, size_t i, size_t k)
{
    const Tensor *a = d->model[0]->results[i], *b = d->model[1]->results[k];
    Text *t = &d->text;
    text_printf(t, "  %s ", name_text(d->arena, d->model[0]->outputs[i].name));
    if (!a || !b || !type_same_shape(a->type, b->type)) {
        text_printf(t, "%s -> %s\n", a ? type_text(d->arena, a->type) : "absent",
                    b ? type_text(d->arena, b->type) : "absent");
        diff_record(d, "numbers", d->model[0]->outputs[i].name, a ? type_text(d->arena, a->type) : NULL,
                    b ? type_text(d->arena, b->type) : NULL, NULL);
        return false;
    }
    const Gap g = gap_between(a, b, option_real(&d->c->line, OPT_rtol, 1e-3), option_real(&d->c->line, OPT_atol, 1e-7));
    d->n_differences += g.differing > 0;
    log_record(&d->records, "numbers", { "name", logged_text(d->model[0]->outputs[i].name) },
               { "elements", logged_int(tensor_elements(a)) }, { "differing", logged_int(g.differing) },
               { "largest", logged_f64(g.largest) }, { "relative", logged_f64(g.relative) },
               { "within", logged_flag(!g.beyond) });
    if (!g.differing)
        text_printf(t, "equal, %" PRId64 " elements\n", tensor_elements(a));
    else
        text_printf(t, "%" PRId64 " of %" PRId64 " elements differ, by at most %.3g (%.2g of the largest value)\n",
                    g.differing, tensor_elements(a), g.largest, g.relative);
    return !g.beyond;
}

Status diff_numbers(Diff *d)
{
    bool ran = true, within = true;
    const bool judged = option_given(&d->c->line, OPT_rtol) || option_given(&d->c->line, OPT_atol);
    text_printf(&d->text, "numbers, on %s inputs\n", option_given(&d->c->line, OPT_input) ? "the given" : "seeded");
    if (!all_supported(d))
        return OK;
    for (int k = 0; ran && k < 2; k++)
        TRY(run_one(d, k, &ran));
    if (!ran)
        return OK;
    size_t compared = 0;
    for (size_t i = 0; i < d->model[0]->n_outputs; i++) {
        const MapEntry *e = map_find(&d->model[1]->output_names, d->model[0]->outputs[i].name);
        if (!e)
            continue;
        within &= tell_output(d, i, e->value.u);
        compared++;
    }
    if (!compared)
        not_compared(d, "no output has the same name in both");
    return judged && !within ? MISMATCH : OK;
}
