/* eval: loss and metrics of a model over data, every sample counted once. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/session/init_weights.h"
#include "api/model/rows.h"
#include "api/session/weights.h"
#include "api/train/train.h"
#include "api/verbs/verbs.h"

/* --output: what @eval gives for each sample. */
typedef struct Outputs {
    qcc_session *session;
    Feed *feed;
    Rows *rows;
    size_t n_rows;
} Outputs;

static Status keep_rows(void *user, const Batch *batch, const Validation *v)
{
    Outputs *o = user;
    (void)v;
    for (size_t i = 0; i < o->n_rows; i++)
        TRY(rows_add(&o->rows[i], session_view(o->session->run, o->rows[i].name), batch->rows, batch->valid,
                     feed_samples(o->feed)));
    return OK;
}

typedef struct Evaluated {
    TrainData data;
    Feed *feed;
    qcc_session *session;
} Evaluated;

/* --checkpoint: the states of a run in place of the model's own, as they are deployed. */
static Status load_states(Command *c, qcc_session *session)
{
    const char *words;
    const char *path = option_text(&c->line, OPT_checkpoint);
    const char *init = path ? NULL : option_text(&c->line, OPT_init);
    if (init && !is_checkpoint(c->cx, &session->step->ir->types, init))
        return init_weights(session->step, session->run, init, option_given(&c->line, OPT_init_partial), c->out);
    if (!path)
        path = init;
    if (!path)
        return OK;
    TRY(session_take_final(session, path, weights_said(&c->line), &words));
    const LogExtra told = { "text", logged_text(words) };
    if (words && out_is_json(c->out))
        return out_event(c->out, "weights", &told, 1);
    return words ? out_printf(c->out, "weights  %s\n", words) : OK;
}

static Status tell_json(Command *c, const Validation *v)
{
    LogExtra fields[2 + METRIC_COUNT];
    const Metric *m;
    size_t n = 0;
    fields[n++] = (LogExtra){ "samples", logged_int(v->samples) };
    if (v->has_loss)
        fields[n++] = (LogExtra){ "eval_loss", logged_f64(v->loss) };
    for (size_t i = 0; (m = validation_metric_at(v, i)); i++)
        fields[n++] = (LogExtra){ metric_name(m->kind), logged_f64(metric_value(m)) };
    return out_event(c->out, "eval", fields, n);
}

static Status tell(Command *c, const Validation *v)
{
    const Metric *m;
    if (out_is_json(c->out))
        return tell_json(c, v);
    TRY(out_printf(c->out, "samples  %" PRId64 "\n", v->samples));
    if (v->has_loss)
        TRY(out_printf(c->out, "loss  %.6g\n", v->loss));
    for (size_t i = 0; (m = validation_metric_at(v, i)); i++)
        TRY(out_printf(c->out, "%s  %.6g\n", metric_name(m->kind), metric_value(m)));
    return OK;
}

static Status evaluate_data(Command *c, qcc_step *s, Evaluated *e, const RunOptions *o)
{
    Validation v;
    const FeedOptions all = { .last = FEED_PAD, .once = true, .threads = c->cx->options.threads };
    TRY(train_data_open(c, s, OPT_data, OPT_target, true, &e->data));
    TRY(feed_open(&e->feed, e->data.set, &c->cx->diag, &all));
    TRY(session_start(s, o->seed, &c->cx->stop, &e->session));
    TRY(load_states(c, e->session));
    const StepTarget *target = step_target(s, NULL);
    Outputs outputs = { .session = e->session, .feed = e->feed };
    const BatchWatch watch = { keep_rows, &outputs };
    TRY(rows_read(c, s->model, target ? target->output : NULL, &outputs.rows, &outputs.n_rows));
    if (outputs.n_rows && feed_batches(e->feed) < 0)
        return fail_as(&c->cx->diag, USAGE, ON_COMMAND_LINE, "--output: a stream has no end that a file could say");
    const Status status = validate_and(c, s, e->session->run, &e->data, e->feed, o, &v, outputs.n_rows ? &watch : NULL);
    TRY(rows_close(c, outputs.rows, outputs.n_rows, status));
    return tell(c, &v);
}

Status command_measure(Command *c)
{
    qcc_model *m;
    qcc_step *s;
    RunOptions o;
    Evaluated e = { 0 };
    TRY(command_wants(c, 1));
    TRY(run_options_read(&c->cx->diag, &c->cx->scratch, &c->line, &o));
    TRY(weights_want_states(&c->cx->diag, &c->line));
    if (!option_given(&c->line, OPT_data)) {
        Message *m = message_new(&c->cx->diag, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "eval: on what?");
        message_try(m, "qcc eval %s --data x=x.npy --target y.npy", c->line.paths[0]);
        return message_send(m);
    }
    TRY(command_model(c, 0, &m));
    TRY(train_dims(c, m));
    TRY(step_compile(m, &c->line, &s));
    const Status status = evaluate_data(c, s, &e, &o);
    feed_close(e.feed);
    dataset_close(e.data.set);
    return status;
}
