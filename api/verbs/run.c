#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/hall/tensors.h"
#include "api/hall/words.h"
#include "api/model/compare.h"
#include "api/model/data.h"
#include "api/model/evaluate.h"
#include "api/model/fit.h"
#include "api/train/train.h"
#include "api/verbs/verbs.h"
#include "base/bytes.h"

/* ---- inputs ---- */

static bool may_be_missing(const qcc_model *m, size_t i)
{
    return m->inputs[i].type->kind == TYPE_OPTIONAL;
}

static Status all_given(Command *c, qcc_model *m, const Tensor **inputs)
{
    Message *msg = NULL;
    Text line;
    text_open(&line, &c->cx->scratch);
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (!inputs[i] && m->graph->inputs[i]->op == OP_state)
            TRY(model_initial(m, i, &inputs[i]));
        if (inputs[i] || may_be_missing(m, i))
            continue;
        if (!msg)
            msg = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, NOWHERE, "inputs without a value");
        message_at(msg, "%s %s", m->inputs[i].name, m->inputs[i].text);
        text_printf(&line, "%s--input %s=%s.%s", line.n ? " " : "", m->inputs[i].name, m->inputs[i].name,
                    m->inputs[i].type->kind == TYPE_TENSOR ? "npy" : "pb");
    }
    if (!msg)
        return OK;
    message_try(msg, "%s", text_get(&line));
    return message_send(msg);
}

/* The input that a text names: [NAME=]FILE[:opt,..]. */
static Status input_spec(Command *c, qcc_model *m, const char *text, DataSpec *spec, size_t *i)
{
    TRY(data_spec_read(&c->cx->diag, &c->cx->scratch, "--input", text, spec));
    if (spec->kind != DATA_FILE)
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--input: %s is no file", text);
    if (!spec->name && m->n_inputs != 1)
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--input: wants NAME=FILE: got '%s'", text);
    if (!spec->name)
        spec->name = m->inputs[0].name;
    return find_input(m, spec->name, "--input", i);
}

/* Forms that data_read does not know. */
static bool is_data_form(const char *path)
{
    static const char *const ends[] = { ".csv", ".npz", ".idx", ".gz", ".bin", ".raw", ".safetensors" };
    const size_t n = strlen(path);
    for (size_t i = 0; i < COUNT(ends); i++)
        if (n > strlen(ends[i]) && strcmp(path + n - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* An array as --data would read it: all its samples as one value. */
static Status input_samples(Command *c, qcc_model *m, const DataSpec *spec, size_t i, Tensor **value)
{
    Dataset *set;
    Feed *feed = NULL;
    Batch batch;
    int64_t dims[MAX_RANK];
    qcc_context *cx = c->cx;
    const Type *t = NULL;
    const FeedOptions all = { .last = FEED_PAD, .once = true, .threads = 1 };
    const DataOptions options = train_data_options(&m->ir);
    DataInput in = { .name = m->inputs[i].name };
    TRY(predict_batch_type(c, m, spec, i, &t));
    memcpy(dims, t->dims, sizeof *dims * (size_t)t->rank);
    for (int pass = 0; pass < 2; pass++) { /* how many there are is known when they are open */
        in.type = type_tensor(&m->ir.types, t->dtype, t->rank, dims);
        TRY(dataset_open(&set, &cx->memory, &m->ir.types, &cx->diag, &cx->limits, &options, 1, &in, 1, spec, 0, NULL));
        if (pass)
            break;
        dims[0] = dataset_samples(set);
        dataset_close(set);
    }
    Status status = feed_open(&feed, set, &cx->diag, &all);
    if (status == OK)
        status = feed_batch(feed, &cx->diag, 0, 0, &batch);
    if (status == OK) {
        *value = tensor_alloc(&m->data, in.type);
        bytes_copy((*value)->data, batch.values[0]->data, (*value)->bytes);
    }
    feed_close(feed);
    dataset_close(set);
    return status;
}

static Status read_inputs(Command *c, qcc_model *m, const Tensor **inputs)
{
    const char *pair;
    Map sizes;
    map_open(&sizes, &c->cx->scratch);
    for (size_t at = 0; (pair = option_next(&c->line, OPT_input, &at));) {
        DataSpec spec;
        size_t i;
        Tensor *t;
        TRY(input_spec(c, m, pair, &spec, &i));
        const char *path = spec.path;
        if (spec.given || is_data_form(path))
            TRY(input_samples(c, m, &spec, i, &t));
        else
            TRY(data_read(&m->ir, &m->data, path, spec.name, m->inputs[i].type, &t));
        TRY(fit_input(m, i, t, path, &sizes));
        inputs[i] = t;
    }
    return all_given(c, m, inputs);
}

/* ---- telling ---- */

static Status tell_sequence(Command *c, const char *name, const Tensor *t)
{
    return out_printf(c->out, "%s  %s  %zu elements\n", name, type_text(&c->cx->scratch, t->type), t->n_items);
}

static Status tell_result(Command *c, const char *name, const Tensor *t)
{
    enum { FIRST = 6 };
    Text line;
    if (!t)
        return out_printf(c->out, "%s  absent\n", name);
    if (t->type->kind != TYPE_TENSOR)
        return tell_sequence(c, name, t);
    const int64_t n = tensor_elements(t);
    double least = INFINITY, most = -INFINITY, sum = 0;
    int64_t odd = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = tensor_get_f64(t, i);
        odd += !isfinite(x);
        least = x < least ? x : least;
        most = x > most ? x : most;
        sum += x;
    }
    if (out_is_json(c->out)) {
        const LogExtra fields[] = { { "name", logged_text(name) },
                                    { "type", logged_text(type_text(&c->cx->scratch, t->type)) },
                                    { "min", n ? logged_f64(least) : (LogValue){ 0 } },
                                    { "mean", n ? logged_f64(sum / (double)n) : (LogValue){ 0 } },
                                    { "max", n ? logged_f64(most) : (LogValue){ 0 } },
                                    { "not_finite", logged_int(odd) } };
        return out_event(c->out, "output", fields, COUNT(fields));
    }
    text_open(&line, &c->cx->scratch);
    text_printf(&line, "%s  %s", name, type_text(&c->cx->scratch, t->type));
    if (n)
        text_printf(&line, "  min %.6g  mean %.6g  max %.6g", least, sum / (double)n, most);
    if (odd)
        text_printf(&line, "  not finite %" PRId64, odd);
    text_add(&line, n ? "  first" : "  empty");
    for (int64_t i = 0; i < n && i < FIRST; i++)
        if (dtype_is_integer(t->type->dtype))
            text_printf(&line, " %" PRId64, tensor_get_i64(t, i));
        else
            text_printf(&line, " %.6g", tensor_get_f64(t, i));
    return out_printf(c->out, "%s\n", text_get(&line));
}

static Status write_outputs(Command *c, qcc_model *m)
{
    const char *pair;
    for (size_t at = 0; (pair = option_next(&c->line, OPT_output, &at));) {
        const char *path = pair, *name = m->n_outputs ? m->outputs[0].name : "";
        size_t i;
        if (strchr(pair, '='))
            name = pair_split(&c->cx->scratch, pair, &path);
        else if (m->n_outputs != 1)
            return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--output: wants NAME=FILE: got '%s'", pair);
        TRY(find_output(m, name, "--output", &i));
        if (!m->results[i] || m->results[i]->type->kind != TYPE_TENSOR)
            return fail_as(&c->cx->diag, UNSUPPORTED, (Place){ .file = path, .byte = -1 },
                           "output %s is %s: a file holds one tensor", name,
                           m->results[i] ? type_text(&c->cx->scratch, m->results[i]->type) : "absent");
        TRY(data_write(c->out, path, m->results[i]));
    }
    return OK;
}

/* The largest difference of two tensors of one type, for the report. */
static double largest_difference(const Tensor *a, const Tensor *b)
{
    double most = 0;
    const int64_t n = tensor_elements(a);
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(tensor_get_f64(a, i) - tensor_get_f64(b, i));
        most = d > most ? d : most;
    }
    return most;
}

static Status expect_one(Command *c, qcc_model *m, const char *pair, bool *same)
{
    const char *path, *name = pair_split(&c->cx->scratch, pair, &path), *shown = name_text(&c->cx->scratch, name);
    const double rtol = option_real(&c->line, OPT_rtol, 1e-3), atol = option_real(&c->line, OPT_atol, 1e-7);
    size_t i;
    Tensor *want;
    TRY(find_output(m, name, "--expect", &i));
    TRY(data_read(&m->ir, &m->data, path, name, m->results[i] ? m->results[i]->type : m->outputs[i].type, &want));
    const char *why = m->results[i] ? compare_values(&c->cx->scratch, m->results[i], want, rtol, atol) : "is absent";
    const LogExtra fields[] = { { "name", logged_text(shown) },
                                { "file", logged_text(path) },
                                { "agrees", logged_flag(!why) },
                                { "why", logged_text(why) } };
    if (out_is_json(c->out))
        TRY(out_event(c->out, "expect", fields, COUNT(fields)));
    if (why) {
        *same = false;
        const Place place = { .file = path, .where = name, .byte = -1 };
        (void)fail_as(&c->cx->diag, MISMATCH, place, "%s (rtol %g, atol %g)", why, rtol, atol);
        return out_is_json(c->out) ? OK : out_printf(c->out, "%s  differs from %s\n", shown, path);
    }
    if (out_is_json(c->out))
        return OK;
    const bool tensor = want->type->kind == TYPE_TENSOR;
    const double most = tensor ? largest_difference(m->results[i], want) : 0;
    return out_printf(c->out, "%s  agrees with %s: largest difference %.3g (rtol %g, atol %g)\n", shown, path, most,
                      rtol, atol);
}

Status command_run(Command *c)
{
    if (option_given(&c->line, OPT_data))
        return command_predict(c);
    qcc_model *m;
    const char *pair;
    bool same = true;
    TRY(command_wants(c, 1));
    TRY(command_model(c, 0, &m));
    TRY(model_supported(m));
    const Tensor **inputs = NEWS(&c->cx->scratch, const Tensor *, m->n_inputs + 1);
    TRY(read_inputs(c, m, inputs));
    const EvalOptions how = command_eval(c);
    TRY(model_evaluate(m, &how, inputs));
    TRY(write_outputs(c, m));
    for (size_t at = 0; (pair = option_next(&c->line, OPT_expect, &at));)
        TRY(expect_one(c, m, pair, &same));
    if (!option_given(&c->line, OPT_output) && !option_given(&c->line, OPT_expect))
        for (size_t i = 0; i < m->n_outputs; i++)
            TRY(tell_result(c, name_text(&c->cx->scratch, m->outputs[i].name), m->results[i]));
    return same ? OK : MISMATCH;
}

/* ---- the public call ---- */

typedef struct Run {
    qcc_model *model;
    const qcc_tensor *inputs, *outputs;
    size_t n_inputs, n_outputs;
} Run;

static Status take_input(qcc_model *m, size_t i, const qcc_tensor *given, const Tensor **value, Map *sizes)
{
    Tensor *t = NEW(&m->cx->scratch, Tensor);
    TRY(tensor_take(m->cx, &m->ir.types, m->inputs[i].name, m->inputs[i].text, given, t));
    *value = t;
    return fit_input(m, i, t, NULL, sizes);
}

/* The i-th of a list, whose structs are all as large. */
static Status element(Diag *d, const char *name, const qcc_tensor *list, size_t i, const qcc_tensor **t)
{
    *t = tensor_at(list, i);
    return tensor_wants_size(d, name, *t);
}

static Status do_run(void *arg)
{
    Run *r = arg;
    qcc_model *m = r->model;
    Map sizes;
    m->cx->diag.file = m->file;
    if (r->n_inputs != m->n_inputs || r->n_outputs != m->n_outputs)
        return fail_as(&m->cx->diag, USAGE, NOWHERE, "has %zu inputs and %zu outputs: got %zu and %zu", m->n_inputs,
                       m->n_outputs, r->n_inputs, r->n_outputs);
    TRY(model_supported(m));
    const Tensor **inputs = NEWS(&m->cx->scratch, const Tensor *, m->n_inputs + 1);
    map_open(&sizes, &m->cx->scratch);
    for (size_t i = 0; i < m->n_inputs; i++) {
        const qcc_tensor *given;
        TRY(element(&m->cx->diag, m->inputs[i].name, r->inputs, i, &given));
        TRY(take_input(m, i, given, &inputs[i], &sizes));
    }
    for (size_t i = 0; i < m->n_outputs; i++) {
        const qcc_tensor *shown;
        TRY(element(&m->cx->diag, m->outputs[i].name, r->outputs, i, &shown));
    }
    const EvalOptions how = { .kernels = m->cx->kernels, .pool = context_pool(m->cx), .stop = &m->cx->stop };
    TRY(model_evaluate(m, &how, inputs));
    for (size_t i = 0; i < m->n_outputs; i++)
        if (!m->results[i] || m->results[i]->type->kind != TYPE_TENSOR)
            return fail_as(&m->cx->diag, UNSUPPORTED, NOWHERE, "output %s is %s, which is no tensor",
                           m->outputs[i].name, m->outputs[i].text);
    return OK;
}

qcc_status qcc_run_model(qcc_model *model, const qcc_tensor *inputs, size_t n_inputs, qcc_tensor *outputs,
                         size_t n_outputs)
{
    Run r = { .model = model, .inputs = inputs, .outputs = outputs, .n_inputs = n_inputs, .n_outputs = n_outputs };
    if (!model || (n_inputs && !inputs) || (n_outputs && !outputs))
        return QCC_USAGE;
    qcc_status status = context_enter(model->cx);
    if (status != QCC_OK)
        return status;
    status = context_run(model->cx, do_run, &r);
    for (size_t i = 0; status == QCC_OK && i < n_outputs; i++)
        tensor_show(model->results[i], (qcc_tensor *)(uintptr_t)tensor_at(outputs, i));
    context_let_go(model->cx);
    return status;
}
