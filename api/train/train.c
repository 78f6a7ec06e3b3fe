/* train: epochs or steps over data, with everything around them. */
#include "api/train/train_shadow.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/fits/fits.h"
#include "api/make/recipe.h"
#include "api/session/export_form.h"
#include "api/session/weights.h"
#include "api/told/memory_told.h"
#include "api/told/summary.h"
#include "base/clock.h"

/* ---- the parts ---- */

/* What a jump does not close by itself. */
static void close_outputs(void *thing)
{
    Trainer *t = thing;
    if (t->saving)
        checkpoint_close(&t->target);
    log_close(&t->log);
    board_close(&t->board);
}

static void close_all(Trainer *t)
{
    feed_close(t->feed);
    feed_close(t->val_feed);
    dataset_close(t->data.set);
    dataset_close(t->val_data.set);
    close_outputs(t);
}

/* How many steps there are: said, or epochs of the data, one when nothing is said. */
static Status set_length(Trainer *t)
{
    if (!t->o.steps && !t->o.epochs)
        t->o.epochs = 1;
    if (t->o.epochs && t->batches < 0 && t->o.epochs > 1)
        return fail_as(t->d, USAGE, ON_COMMAND_LINE, "--epochs: a stream is read once");
    t->steps = t->o.steps ? t->o.steps : t->batches < 0 ? 0 : t->o.epochs * t->batches;
    if (t->done > t->steps && t->steps)
        return fail_as(t->d, USAGE, ON_COMMAND_LINE, "the run is at step %" PRId64 " already, of %" PRId64, t->done,
                       t->steps);
    return OK;
}

static Status put_scalar(Trainer *t, const char *name, double value)
{
    const Tensor *have = session_view(t->run, name);
    if (!have)
        return OK;
    Tensor *x = tensor_new(&t->cx->scratch, have->type);
    if (dtype_is_integer(have->type->dtype))
        tensor_set_i64(x, 0, (int64_t)value);
    else
        tensor_set_f64(x, 0, value);
    return session_put(t->run, name, x);
}

/* A schedule that ends with the run follows its new length. */
static Status set_total(Trainer *t)
{
    const State *have = session_state_of(t->run, STATE_length, NULL);
    const Tensor *total;
    Arena *arena = &t->cx->scratch;
    if (!have)
        return OK;
    TRY(session_value(t->run, have, &total));
    if (t->resumed_from)
        train_note(t, "length of the schedule", arena_printf(arena, "%" PRId64, (int64_t)tensor_get_f64(total, 0)),
                   arena_printf(arena, "%" PRId64, t->steps));
    return put_scalar(t, have->name, (double)t->steps);
}

static Status set_progress(Trainer *t)
{
    const char *kind = option_text(&t->c->line, OPT_progress);
    const bool terminal = t->cx->options.columns > 0;
    if (!kind || strcmp(kind, "auto") == 0)
        t->progress.kind = terminal ? PROGRESS_BAR : PROGRESS_PLAIN;
    else
        t->progress.kind = strcmp(kind, "bar") == 0     ? PROGRESS_BAR
                           : strcmp(kind, "plain") == 0 ? PROGRESS_PLAIN
                           : strcmp(kind, "json") == 0  ? PROGRESS_JSON
                                                        : PROGRESS_NONE;
    if (t->cx->verbosity < 0)
        t->progress.kind = PROGRESS_NONE;
    return OK;
}

/* ---- steps ---- */

static double value_named(const Trainer *t, const Validation *v, const char *name)
{
    if (strcmp(name, "loss") == 0)
        return t->last.has_loss ? t->last.loss : NAN;
    if (strcmp(name, "step") == 0)
        return (double)t->done;
    if (strcmp(name, "lr") == 0)
        return t->last.has_rate ? t->last.rate : NAN;
    if (strcmp(name, "grad_norm") == 0)
        return t->last.has_norm ? t->last.norm : NAN;
    if (v && strcmp(name, "val_loss") == 0)
        return v->has_loss ? v->loss : NAN;
    const Metric *m;
    for (size_t i = 0; v && (m = validation_metric_at(v, i)); i++)
        if (strcmp(name, metric_name(m->kind)) == 0)
            return metric_value(m);
    return NAN;
}

static bool stop_holds(Trainer *t, const Validation *v)
{
    if (!t->o.stop.what)
        return false;
    const double x = value_named(t, v, t->o.stop.what);
    const bool holds = t->o.stop.above ? x > t->o.stop.bound : x < t->o.stop.bound;
    if (holds)
        t->why = arena_printf(&t->step->arena, "--stop-if '%s': %s was %.6g", option_text(&t->c->line, OPT_stop_if),
                              t->o.stop.what, x);
    return holds;
}

static bool out_of_patience(Trainer *t)
{
    if (!t->o.patience || t->stale < t->o.patience)
        return false;
    t->why = arena_printf(&t->step->arena, "--patience %" PRId64 ": none was better since epoch %" PRId64,
                          t->o.patience, t->best.epoch);
    return true;
}

/* The mean loss of the epoch that ends here. */
static void end_losses(Trainer *t)
{
    t->epoch_loss = t->loss_steps ? t->loss_sum / (double)t->loss_steps : NAN;
    t->epoch_steps = t->loss_steps;
    t->loss_sum = 0;
    t->loss_steps = 0;
}

static void add_loss(Trainer *t)
{
    if (!t->last.has_loss || !t->last.applied)
        return;
    t->loss_sum += t->last.loss;
    t->loss_steps++;
}

/* Validation of the weights that are deployed. */
static Status judge(Trainer *t, Validation *v)
{
    if (t->averaged)
        TRY(session_exchange_averages(t->session));
    const Status status = validate(t->c, t->step, t->run, &t->val_data, t->val_feed, &t->o, v);
    if (t->averaged)
        TRY(session_exchange_averages(t->session));
    return status;
}

/* After an epoch: validation, and whether it is the best one so far. */
static Status end_epoch(Trainer *t, int64_t epoch, bool *stop)
{
    Validation v;
    end_losses(t);
    if (!t->val_feed)
        return train_tell_epoch(t, epoch);
    TRY(judge(t, &v));
    t->validated_at = t->done;
    const bool rises = t->o.by_accuracy && v.has_metric;
    const double score = rises ? metric_value(&v.metric) : v.loss;
    const bool judged = !t->o.no_best && (rises || v.has_loss);
    const bool up = rises && metric_rises(v.metric.kind);
    const bool best =
        judged && isfinite(score) && (!t->best.known || (up ? score > t->best.value : score < t->best.value));
    const Best before = t->best;
    const int64_t stale = t->stale;
    if (best)
        t->best = (Best){ .known = true, .value = score, .epoch = epoch };
    t->stale = best || !judged ? 0 : t->stale + 1;
    bool saved = false, written = true;
    if (best && option_given(&t->c->line, OPT_best_output))
        TRY(train_write_best(t, &written));
    if (t->saving && (best || train_save_is_due(t, t->done)))
        TRY(train_save(t, best, &saved));
    if (best && ((t->saving && !saved) || !written)) { /* a better one is the best, not this one, which is lost */
        t->best = before;
        t->stale = stale;
    }
    *stop = stop_holds(t, &v) || out_of_patience(t);
    return train_tell_validation(t, &v, epoch, best, saved ? t->saved_as : NULL);
}

/* Why the run ends now; null: it goes on. */
static const char *why_stop(Trainer *t)
{
    if (t->cx->stop)
        return "interrupted";
    if (train_out_of_time(t)) {
        t->why = arena_printf(&t->step->arena, "--max-time %s", option_text(&t->c->line, OPT_max_time));
        return "out of time";
    }
    return stop_holds(t, NULL) ? "stopped" : NULL;
}

static Status save_if_due(Trainer *t)
{
    bool saved;
    return train_save_is_due(t, t->done) ? train_save(t, false, &saved) : OK;
}

/* A signal asked for a checkpoint now. */
static Status save_asked(Trainer *t)
{
    if (!t->cx->save)
        return OK;
    t->cx->save = 0;
    bool saved;
    return t->saved_at != t->done ? train_save(t, false, &saved) : OK;
}

/* A run that was cut between the last step of an epoch and its validation makes up for it. */
static Status validate_first(Trainer *t, bool *stop)
{
    bool saved;
    const bool at_end = t->batches > 0 && t->done && (t->done % t->batches == 0 || t->done == t->steps);
    if (!t->resumed_from || !at_end || t->validated_at == t->done || !t->val_feed)
        return OK;
    t->saved_at = -1; /* the checkpoint says nothing of it */
    TRY(end_epoch(t, (t->done - 1) / t->batches + 1, stop));
    return t->saving && t->saved_at != t->done ? train_save(t, false, &saved) : OK;
}

static Status run_steps(Trainer *t, const char **reason)
{
    bool over = false, stop = false;
    if (t->cx->stop) /* asked to end before the first step */
        return INTERRUPTED;
    TRY(validate_first(t, &stop));
    train_tell_first(t);
    while ((!t->steps || t->done < t->steps) && !stop) {
        const ArenaMark mark = arena_mark(&t->cx->scratch);
        TRY(train_step(t, &over));
        if (over)
            return OK;
        const bool ends = t->batches > 0 && t->done % t->batches == 0, last = t->done == t->steps;
        const uint64_t epoch = t->batches > 0 ? (uint64_t)((t->done - 1) / t->batches) : 0;
        add_loss(t);
        TRY(train_tell_step(t, epoch, ends || last));
        if (!t->last.applied) {
            bool stops;
            TRY(train_skipped(t, &stops));
            if (stops)
                return train_diverged(t);
        }
        TRY(train_watch_step(t));
        TRY(train_codes_step(t));
        TRY(train_products_step(t));
        if (ends || (last && t->batches > 0 && t->val_feed))
            TRY(end_epoch(t, (int64_t)epoch + 1, &stop));
        arena_reset(&t->cx->scratch, mark);
        if (t->ahead) /* the states are those of the step behind it */
            continue;
        TRY(save_if_due(t));
        TRY(save_asked(t));
        *reason = stop ? "stopped" : why_stop(t);
        arena_reset(&t->cx->scratch, mark);
        if (*reason)
            return t->cx->stop ? INTERRUPTED : OK;
    }
    return OK;
}

/* ---- the whole ---- */

/* --weights: what is validated is what is deployed. */
static Status set_weights(Trainer *t)
{
    qcc_session *s = t->session;
    const char *before = property_get(s, "qcc.weights");
    s->weights = weights_said(&t->c->line);
    if (s->weights == WEIGHTS_AVERAGED && !session_has_averages(s)) {
        Place place = ON_COMMAND_LINE;
        place.where = option_specs[OPT_weights].name;
        Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, place, "this step averages no weights");
        message_try(m, "--ema 0.999");
        return message_send(m);
    }
    if (s->weights == WEIGHTS_UNSAID)
        s->weights = WEIGHTS_AVERAGED; /* not what a checkpoint notes: each run says it anew */
    t->averaged = session_is_averaged(s);
    if (before && t->averaged != (strcmp(before, "averaged") == 0)) { /* the best so far was another kind of best */
        train_note(t, "weights", before, t->averaged ? "averaged" : "raw");
        t->best = (Best){ 0 };
    }
    session_note_weights(s);
    return OK;
}

static Status prepare(Trainer *t)
{
    TRY(train_open_feeds(t));
    t->cx->memory.held++; /* from here on a run that is asked to stop finishes its step and saves */
    TRY(session_start(t->step, t->o.seed, &t->cx->hurry, &t->session));
    t->run = t->session->run;
    train_steps_open(t);
    TRY(train_restore(t));
    TRY(set_weights(t));
    TRY(set_length(t));
    TRY(set_total(t));
    TRY(step_set_rate(t->step, t->run, &t->c->line));
    TRY(train_calibrate(t));
    TRY(train_watch_open(t));
    TRY(train_codes_open(t));
    TRY(train_products_open(t));
    TRY(train_open_outputs(t));
    return set_progress(t);
}

static Status run(Trainer *t)
{
    const char *reason = NULL;
    TRY(prepare(t));
    TRY(train_tell_start(t));
    t->saved_when = clock_seconds();
    const Status status = run_steps(t, &reason);
    train_catch_up(t);
    return train_end(t, status, reason);
}

/* --dry-run: what was decided, and whether the data that are named fit; nothing runs. */
static Status rehearse(Trainer *t)
{
    Batch batch;
    TRY(summary_tell(t->c->out, t->step));
    TRY(summary_memory(t->c->out, t->step));
    if (option_given(&t->c->line, OPT_memory_limit))
        TRY(step_fits(t->c, t->step, NULL));
    const bool targets = !t->step->n_targets || option_given(&t->c->line, OPT_target);
    if (!option_given(&t->c->line, OPT_data) || !targets) /* data alone say sizes */
        return OK;
    TRY(train_open_feeds(t));
    TRY(train_tell_data(t));
    if (t->batches < 0) /* a stream is read once */
        return OK;
    TRY(feed_batch(t->feed, t->d, 0, 0, &batch));
    return t->val_feed ? feed_batch(t->val_feed, t->d, 0, 0, &batch) : OK;
}

/* What the run takes is known, and there, before anything is made for it. */
static Status look_at_memory(Trainer *t)
{
    const StepMemory m = step_memory_if(t->step, &t->cx->lowering);
    t->memory = step_memory_text(&t->step->arena, &m);
    return option_given(&t->c->line, OPT_dry_run) ? OK : step_fits(t->c, t->step, &m);
}

/* A step that is not quantized has no target of its own: whom --for names has to find something in the model itself. */
static Status look_at_target(Trainer *t)
{
    if (t->step->recipe.quantization.spec)
        return OK;
    t->made_for = recipe_recorded(t->step, OPT_for_);
    return export_for(t->step->model, &(ExportForm){ .target = t->made_for });
}

Status command_train(Command *c)
{
    qcc_model *m;
    Trainer t = { .c = c, .cx = c->cx, .d = &c->cx->diag, .saved_at = -1 };
    TRY(command_wants(c, 1));
    TRY(run_options_read(&c->cx->diag, &c->cx->scratch, &c->line, &t.o));
    t.folder = option_text(&c->line, OPT_checkpoint);
    c->cx->grace = (int)ceil(t.o.grace);
    TRY(command_model(c, 0, &m));
    TRY(train_dims(c, m));
    TRY(step_compile(m, &c->line, &t.step));
    TRY(look_at_target(&t));
    TRY(look_at_memory(&t));
    cleanup_push(&c->cx->memory, &t.cleanup, close_outputs, &t);
    const Status status = option_given(&c->line, OPT_dry_run) ? rehearse(&t)
                          : t.o.sweep.steps                   ? train_sweep(&t)
                                                              : run(&t);
    cleanup_drop(&t.cleanup);
    close_all(&t);
    return status;
}
