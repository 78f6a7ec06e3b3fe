/* The steps of a run.  A device that commits by itself is asked for the next step before anybody looks at the last one, where nothing
 * that follows a step needs its states, and nothing may end the run behind it.  What is said of a run is the same. */
#include <inttypes.h>

#include "api/train/train_shadow.h"
#include "base/clock.h"

static Status wrong_batch(Trainer *t, const Batch *batch)
{
    return fail_as(t->d, INVALID, NOWHERE, "a batch of %" PRId64 " samples, the step takes %" PRId64, batch->rows,
                   dataset_batch(t->data.set));
}

/* While a device is at a step: what the next one reads.  What is wrong with that is said when its turn is. */
static void bring_next(void *user)
{
    Trainer *t = user;
    Batch *next = &t->coming;
    next->rows = 0;
    if (t->at + 1 == t->steps || !feed_next(t->feed, next) || next->rows != dataset_batch(t->data.set)) {
        next->rows = 0;
        return;
    }
    if (t->o.last == FEED_PAD)
        next->valid = next->rows;
    if (train_bind_next(t->step, t->run, &t->data, next) != OK)
        next->rows = 0;
}

void train_steps_open(Trainer *t)
{
    session_while_it_runs(t->run, bring_next, t);
}

bool train_out_of_time(const Trainer *t)
{
    return t->o.max_seconds > 0 && clock_seconds() - t->progress.began >= t->o.max_seconds;
}

/* The batch of the step behind `at` others; no rows: a stream has ended. */
static Status take_batch(Trainer *t, int64_t at)
{
    Batch *batch = &t->batch;
    const uint64_t epoch = t->batches > 0 ? (uint64_t)(at / t->batches) : 0;
    TRY(feed_batch(t->feed, t->d, epoch, t->batches > 0 ? at % t->batches : at, batch));
    if (!batch->rows)
        return OK;
    if (batch->rows != dataset_batch(t->data.set))
        return wrong_batch(t, batch);
    if (t->o.last == FEED_PAD)
        batch->valid = batch->rows;
    if (!t->coming.rows || t->coming.epoch != batch->epoch || t->coming.index != batch->index)
        session_forget_next(t->run);
    t->coming.rows = 0;
    return OK;
}

/* Asks for the step behind `at` others; what is told is the one before it, where that was asked for so, too. */
static Status ask(Trainer *t, int64_t at, bool later, RunResult *told)
{
    t->at = at;
    TRY(take_batch(t, at));
    if (!t->batch.rows)
        return OK;
    TRY(train_bind_rest(t->step, t->run, &t->cx->scratch, &t->data, &t->batch));
    if (at == t->done) { /* nothing is under way */
        TRY(train_shadow_begin(t));
        TRY(train_codes_begin(t));
        t->scales = session_scaler(t->run, &t->scaler_before);
    }
    TRY(session_run(t->run, later ? RUN_STEP | RUN_LATER | RUN_HELD : RUN_STEP, told));
    t->rows_ahead = t->batch.valid;
    return OK;
}

/* Whether the step behind the next one may be asked for before anybody looks at that. */
static bool may_run_ahead(const Trainer *t)
{
    const int64_t step = t->done + 1;
    const bool ends = step == t->steps || (t->batches > 0 && step % t->batches == 0);
    const bool watched = t->o.shadow || t->codes || t->products || t->o.histograms ||
                         option_given(&t->c->line, OPT_gradients) || (t->watch && train_watch_is_due(t, step));
    const bool may_stop = t->cx->stop || t->cx->save || t->o.stop.what || t->o.sweep.steps || train_out_of_time(t);
    return t->coming.rows && t->batches > 0 && !ends && !watched && !may_stop && !train_save_is_due(t, step);
}

/* A step was not applied, and the one behind it not run: what people look at is the batch of the first again. */
static Status take_back(Trainer *t)
{
    TRY(take_batch(t, t->done));
    return train_bind(t->step, t->run, &t->cx->scratch, &t->data, &t->batch);
}

/* What became of the step that is under way; the one behind it is asked for before that is known, where it may be. */
static Status look_at_step(Trainer *t)
{
    t->ahead = false;
    if (may_run_ahead(t)) {
        const Status status = ask(t, t->done + 1, true, &t->last);
        if (status == OK) {
            t->ahead = t->last.applied;
            return t->ahead ? OK : take_back(t);
        }
        if (status != INTERRUPTED)
            return status;
    }
    return session_wait(t->run, &t->last);
}

static void count(Trainer *t)
{
    t->done++;
    t->scaler = t->last.scaler;
    t->skipped += !t->last.applied;
    t->skipped_in_a_row = t->last.applied ? 0 : t->skipped_in_a_row + 1;
    if (!t->last.applied)
        return;
    t->good = t->done;
    t->forwards_in_a_row = 0;
}

Status train_step(Trainer *t, bool *over)
{
    const bool later = session_runs_on(t->run);
    t->scaler_before = t->scaler;
    if (!t->ahead)
        TRY(ask(t, t->done, later, &t->last));
    *over = !t->batch.rows;
    if (*over)
        return OK;
    t->last_rows = t->rows_ahead;
    if (later)
        TRY(look_at_step(t));
    TRY(train_shadow_end(t));
    count(t);
    return OK;
}

void train_catch_up(Trainer *t)
{
    RunResult last;
    if (!t->ahead)
        return;
    t->ahead = false;
    if (session_wait(t->run, &last) != OK || !last.step)
        return;
    t->last = last;
    count(t);
}
