/* What a run reports: to people, to its log, to TensorBoard. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/hall/report.h"
#include "api/hall/words.h"
#include "api/session/weights.h"
#include "api/train/train.h"
#include "base/clock.h"

double train_wall_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- start ---- */

static const char *every_text(Arena *arena, const Interval *v)
{
    Text t;
    text_open(&t, arena);
    if (v->epochs)
        text_printf(&t, v->epochs == 1 ? "every epoch" : "every %" PRId64 " epochs", v->epochs);
    if (v->steps)
        text_printf(&t, "%severy %" PRId64 " steps", t.n ? " and " : "", v->steps);
    if (v->seconds > 0)
        text_printf(&t, "%s%s%s", t.n ? " and " : "every ", "", duration_text(arena, v->seconds));
    return text_get(&t);
}

static Status tell_data(Trainer *t, const TrainData *data)
{
    for (size_t i = 0; i < data->n_inputs; i++) {
        const char *says = dataset_says(data->set, i), *path = dataset_path(data->set, i);
        if (says && path)
            TRY(out_printf(t->c->out, "%-16s %s for %s\n", path, says, data->inputs[i].name));
    }
    return OK;
}

static Status tell_samples(Trainer *t)
{
    Arena *arena = &t->cx->scratch;
    if (t->batches < 0)
        return out_printf(t->c->out, "%-16s a stream, batches of %" PRId64 "\n", "samples", dataset_batch(t->data.set));
    TRY(out_printf(t->c->out, "%-16s %s, batches of %" PRId64 "%s", "samples", grouped(arena, feed_samples(t->feed)),
                   dataset_batch(t->data.set), t->o.shuffle ? ", shuffled" : ", in order"));
    if (t->val_feed)
        TRY(out_printf(t->c->out, ", %s held out for validation", grouped(arena, feed_samples(t->val_feed))));
    if (feed_dropped(t->feed) > 0)
        TRY(out_printf(t->c->out, "; the last %" PRId64 " of an epoch left out (--last)", feed_dropped(t->feed)));
    return out_printf(t->c->out, "\n");
}

Status train_tell_data(Trainer *t)
{
    TRY(tell_data(t, &t->data));
    return tell_samples(t);
}

/* An event goes to the log, and to the results where these are objects. */
#define TELL(t, event, values, extra, n)                                                                               \
    do {                                                                                                               \
        Text x_;                                                                                                       \
        text_open(&x_, &(t)->cx->scratch);                                                                             \
        if (out_is_json((t)->c->out))                                                                                  \
            log_##event##_line(&x_, values, extra, n);                                                                 \
        TRY(out_objects((t)->c->out, &x_));                                                                            \
        if (option_text(&(t)->c->line, OPT_log))                                                                       \
            TRY(log_##event(&(t)->log, values, extra, n));                                                             \
    } while (0)

static Status log_begin(Trainer *t)
{
    Text command;
    text_open(&command, &t->cx->scratch);
    options_print_line(&command, &t->c->line);
    const LogStart line = { .run = logged_text(t->run_id),
                            .qcc = logged_text(qcc_version()),
                            .model_hash = logged_text(t->info.model_hash),
                            .command = logged_text(text_get(&command)),
                            .device = logged_text(t->cx->engine->name),
                            .resumed_from = logged_text(t->resumed_from) };
    TELL(t, start, &line, NULL, 0);
    return OK;
}

static Status tell_notes(Trainer *t)
{
    for (const char *p = t->notes_open ? text_get(&t->notes) : ""; *p;) {
        const size_t n = strcspn(p, "\n");
        const LogNote line = { .step = logged_int(t->done), .text = logged_text(arena_copy(&t->cx->scratch, p, n)) };
        if (!out_is_json(t->c->out))
            TRY(out_printf(t->c->out, "%-16s %.*s\n", "note", (int)n, p));
        TELL(t, note, &line, NULL, 0);
        p += n + (p[n] == '\n');
    }
    return OK;
}

Status train_tell_start(Trainer *t)
{
    Arena *arena = &t->cx->scratch;
    TRY(train_tell_data(t));
    if (t->resumed_from)
        TRY(out_printf(t->c->out, "%-16s goes on after step %" PRId64 " of %s\n", "run", t->done, t->resumed_from));
    else
        TRY(out_printf(t->c->out, "%-16s new run %.4s", "run", t->run_id));
    if (!t->resumed_from && t->folder)
        TRY(out_printf(t->c->out, ", checkpoints in %s %s, keeping %d", t->folder, every_text(arena, &t->o.every),
                       t->o.keep));
    if (!t->resumed_from)
        TRY(out_printf(t->c->out, "\n"));
    TRY(out_printf(t->c->out, "%-16s %s\n", "memory", t->memory));
    if (session_has_averages(t->session))
        TRY(out_printf(t->c->out, "%-16s %s are validated and deployed   --weights\n", "weights",
                       t->averaged ? "averages (--ema)" : "the last ones, not the averages,"));
    TRY(train_tell_quant(t));
    t->progress.began = t->progress.last = clock_seconds();
    t->progress.first = t->done;
    TRY(log_begin(t));
    TRY(tell_notes(t));
    log_go_on(&t->log); /* what can be written now is written */
    board_go_on(&t->board);
    return OK;
}

/* ---- steps ---- */

static double rate(const Trainer *t)
{
    const double seconds = clock_seconds() - t->progress.began;
    return seconds > 0 ? (double)t->progress.samples / seconds : 0;
}

static const char *eta_text(const Trainer *t, Arena *arena)
{
    const int64_t here = t->done - t->progress.first;
    const double each = here ? (clock_seconds() - t->progress.began) / (double)here : 0;
    return t->steps && here ? duration_text(arena, each * (double)(t->steps - t->done)) : "?";
}

static void add_bar(Text *out, int64_t at, int64_t of)
{
    enum { WIDE = 20 };
    const int filled = of > 0 ? (int)(at * WIDE / of) : 0;
    text_char(out, '[');
    for (int i = 0; i < WIDE; i++)
        text_char(out, i < filled ? '=' : i == filled ? '>' : '-');
    text_char(out, ']');
}

static const char *progress_line(Trainer *t, uint64_t epoch, bool bar)
{
    Text l;
    Arena *arena = &t->cx->scratch;
    const int64_t total = t->o.epochs ? t->batches : t->steps;
    const int64_t at = t->o.epochs && t->batches > 0 ? (t->done - 1) % t->batches + 1 : t->done;
    text_open(&l, arena);
    if (t->o.epochs)
        text_printf(&l, "epoch %" PRIu64 "/%" PRId64 " ", epoch + 1, t->o.epochs);
    if (bar && total > 0)
        add_bar(&l, at, total);
    text_printf(&l, bar ? " %" PRId64 : "step %" PRId64, at);
    if (total > 0)
        text_printf(&l, "/%" PRId64, total);
    if (t->last.has_loss)
        text_printf(&l, "  loss %.4g", t->last.loss);
    if (t->last.has_rate)
        text_printf(&l, "  lr %.3g", t->last.rate);
    if (t->last.has_norm)
        text_printf(&l, "  |g| %.3g", t->last.norm);
    text_printf(&l, "  %.0f/s  eta %s", rate(t), eta_text(t, arena));
    return text_get(&l);
}

static const char *progress_json(Trainer *t, uint64_t epoch)
{
    Text l;
    text_open(&l, &t->cx->scratch);
    text_printf(&l, "{\"event\":\"progress\",\"step\":%" PRId64 ",\"steps\":%" PRId64 ",\"epoch\":%" PRIu64, t->done,
                t->steps, epoch + 1);
    if (t->last.has_loss && isfinite(t->last.loss))
        text_printf(&l, ",\"loss\":%.9g", t->last.loss);
    text_printf(&l, ",\"items_per_s\":%.6g}", rate(t));
    return text_get(&l);
}

/* A bar moves ten times a second, lines come every ten seconds, and with an epoch, but not more than one a second. */
static void show_progress(Trainer *t, uint64_t epoch, bool ends)
{
    const double now = clock_seconds(), wait = t->progress.kind == PROGRESS_BAR ? 0.1 : ends ? 1 : 10;
    if (t->progress.kind == PROGRESS_NONE || (now - t->progress.last < wait && t->done != t->steps))
        return;
    t->progress.last = now;
    const bool bar = t->progress.kind == PROGRESS_BAR;
    report_progress(t->cx, t->progress.kind == PROGRESS_JSON ? progress_json(t, epoch) : progress_line(t, epoch, bar),
                    bar);
}

/* The scale that the step ran with. */
static LogValue logged_scale(const Trainer *t)
{
    return t->scales ? logged_f32(t->scaler_before.scale) : (LogValue){ 0 };
}

/* How the trained states and their gradients are spread, under the names that their modules have. */
static Status tell_histograms(Trainer *t)
{
    size_t n_states, n = 0;
    Arena *arena = &t->cx->scratch;
    State *states = session_states(t->run, &n_states);
    BoardHistogram *all = NEWS(arena, BoardHistogram, 2 * n_states + 1);
    for (size_t i = 0; i < n_states; i++) {
        const char *path = states[i].trained ? step_path(t->step, states[i].name) : NULL;
        if (!states[i].trained)
            continue;
        const char *name = path ? path : states[i].name;
        const Tensor *gradient = session_gradient(t->run, &states[i]), *value;
        TRY(session_value(t->run, &states[i], &value));
        board_count(&all[n++], arena_printf(arena, "parameters/%s", name), value);
        if (gradient)
            board_count(&all[n++], arena_printf(arena, "gradients/%s", name), gradient);
    }
    return board_histograms(&t->board, train_wall_clock(), t->done, all, n);
}

Status train_tell_step(Trainer *t, uint64_t epoch, bool last)
{
    const RunResult *r = &t->last;
    t->progress.samples += t->last_rows;
    show_progress(t, epoch, last);
    if (!r->applied) {
        const LogSkip line = { .step = logged_int(t->done),
                               .reason = logged_text(train_skip_reason(t)),
                               .where = logged_text(train_first_bad(t)),
                               .loss_scale = logged_scale(t) };
        TELL(t, skip, &line, NULL, 0);
    }
    if (option_text(&t->c->line, OPT_log)) {
        const LogStep line = { .step = logged_int(t->done),
                               .epoch = logged_int((int64_t)epoch + 1),
                               .loss = r->has_loss ? logged_f32((float)r->loss) : (LogValue){ 0 },
                               .lr = r->has_rate ? logged_f32((float)r->rate) : (LogValue){ 0 },
                               .grad_norm = r->has_norm ? logged_f32((float)r->norm) : (LogValue){ 0 },
                               .loss_scale = logged_scale(t),
                               .skipped = logged_int(t->skipped),
                               .items_per_s = logged_f32((float)rate(t)) };
        TRY(log_step(&t->log, &line, NULL, 0));
    }
    if (!option_text(&t->c->line, OPT_tensorboard))
        return OK;
    BoardScalar all[4];
    size_t n = 0;
    if (t->scales)
        all[n++] = (BoardScalar){ "loss_scale", t->scaler_before.scale };
    if (r->has_loss)
        all[n++] = (BoardScalar){ "loss", (float)r->loss };
    if (r->has_rate)
        all[n++] = (BoardScalar){ "lr", (float)r->rate };
    if (r->has_norm)
        all[n++] = (BoardScalar){ "grad_norm", (float)r->norm };
    TRY(board_scalars(&t->board, train_wall_clock(), t->done, all, n));
    return t->o.histograms && t->done % t->o.histograms == 0 ? tell_histograms(t) : OK;
}

/* ---- epochs ---- */

static Status tell_epoch(Trainer *t, int64_t epoch)
{
    TRY(out_printf(t->c->out, "epoch %" PRId64 " done    ", epoch));
    return t->epoch_steps ? out_printf(t->c->out, " loss %.4g", t->epoch_loss) : OK;
}

static Status log_epoch_end(Trainer *t, int64_t epoch)
{
    if (!t->epoch_steps)
        return OK;
    const LogEpoch line = { .step = logged_int(t->done),
                            .epoch = logged_int(epoch),
                            .steps = logged_int(t->epoch_steps),
                            .train_loss = logged_f32((float)t->epoch_loss) };
    TELL(t, epoch, &line, NULL, 0);
    return OK;
}

Status train_tell_epoch(Trainer *t, int64_t epoch)
{
    if (t->epoch_steps && !out_is_json(t->c->out)) {
        TRY(tell_epoch(t, epoch));
        TRY(out_printf(t->c->out, "\n"));
    }
    return log_epoch_end(t, epoch);
}

void train_tell_first(Trainer *t)
{
    enum { LONG = 2000000000 }; /* multiply-adds: about a second */
    const bool bar = t->progress.kind == PROGRESS_BAR;
    if (t->steps && t->done >= t->steps)
        return;
    if (bar || (t->progress.kind == PROGRESS_PLAIN && step_work(t->step) > LONG))
        report_progress(t->cx, arena_printf(&t->cx->scratch, "step %" PRId64 " begins", t->done + 1), bar);
}

Status train_log_save(Trainer *t, const LogSave *line)
{
    TELL(t, save, line, NULL, 0);
    return OK;
}

Status train_log_quant(Trainer *t, const LogQuant *line)
{
    TELL(t, quant, line, NULL, 0);
    return OK;
}

Status train_log_codes(Trainer *t, const LogCodes *line)
{
    TELL(t, codes, line, NULL, 0);
    return OK;
}

Status train_log_product(Trainer *t, const LogProduct *line)
{
    TELL(t, product, line, NULL, 0);
    return OK;
}

/* ---- validation ---- */

static Status tell_judged(Trainer *t, const Validation *v, int64_t epoch, bool best, const char *saved)
{
    TRY(tell_epoch(t, epoch));
    if (v->has_loss)
        TRY(out_printf(t->c->out, "%s val loss %.4g", t->epoch_steps ? " " : "", v->loss));
    const Metric *m;
    for (size_t i = 0; (m = validation_metric_at(v, i)); i++)
        TRY(out_printf(t->c->out, "  %s %.4g", metric_name(m->kind), metric_value(m)));
    return out_printf(t->c->out, "%s%s%s\n", best ? "  best so far" : "", saved ? ", saved " : "", saved ? saved : "");
}

Status train_tell_validation(Trainer *t, const Validation *v, int64_t epoch, bool best, const char *saved)
{
    const Metric *m;
    LogExtra extra[1 + METRIC_COUNT];
    BoardScalar scalars[1 + METRIC_COUNT];
    size_t n = 0;
    if (v->has_loss) {
        extra[n] = (LogExtra){ "val_loss", logged_f32((float)v->loss) };
        scalars[n++] = (BoardScalar){ "val/loss", (float)v->loss };
    }
    for (size_t i = 0; (m = validation_metric_at(v, i)); i++) {
        const char *name = metric_name(m->kind);
        extra[n] = (LogExtra){ name, logged_f32((float)metric_value(m)) };
        scalars[n++] = (BoardScalar){ arena_printf(&t->cx->scratch, "val/%s", name), (float)metric_value(m) };
    }
    if (!out_is_json(t->c->out))
        TRY(tell_judged(t, v, epoch, best, saved));
    if (option_text(&t->c->line, OPT_tensorboard))
        TRY(board_scalars(&t->board, train_wall_clock(), t->done, scalars, n));
    TRY(log_epoch_end(t, epoch));
    const LogVal line = { .step = logged_int(t->done),
                          .epoch = logged_int(epoch),
                          .samples = logged_int(v->samples),
                          .best = logged_flag(best) };
    TELL(t, val, &line, extra, n);
    return OK;
}

/* ---- end ---- */

/* ", loss 0.37 over the last 20": the mean of the steps since an epoch ended, or of the last epoch. */
static const char *last_loss(Trainer *t)
{
    Arena *arena = &t->cx->scratch;
    const int64_t n = t->loss_steps ? t->loss_steps : t->epoch_steps;
    const double loss = t->loss_steps ? t->loss_sum / (double)t->loss_steps : t->epoch_loss;
    if (!n)
        return "";
    return arena_printf(arena, ", loss %.4g over %s%s", loss, n == t->done ? "all" : "the last ",
                        n == t->done ? "" : grouped(arena, n));
}

/* The last line of the run. */
static Status tell_last(Trainer *t, const char *reason, double seconds)
{
    Arena *arena = &t->cx->scratch;
    const char *best = t->o.by_accuracy ? "accuracy" : "val loss";
    TRY(out_printf(t->c->out, "%-16s %s steps, %" PRId64 " skipped%s, %s", reason ? reason : "done",
                   grouped(arena, t->done), t->skipped, last_loss(t), duration_text(arena, seconds)));
    if (t->best.known)
        TRY(out_printf(t->c->out, "; best %s %.4g at epoch %" PRId64, best, t->best.value, t->best.epoch));
    return out_printf(t->c->out, "%s%s\n", t->why ? "; " : "", t->why ? t->why : "");
}

Status train_tell_end(Trainer *t, Status status, const char *reason)
{
    const double seconds = clock_seconds() - t->progress.began;
    if (!out_is_json(t->c->out))
        TRY(tell_last(t, reason, seconds));
    const LogEnd line = { .step = logged_int(t->done),
                          .status = logged_int((int64_t)status),
                          .reason = logged_text(reason),
                          .skipped = logged_int(t->skipped),
                          .seconds = logged_f64(seconds) };
    const LogExtra why = { "condition", logged_text(t->why) };
    TELL(t, end, &line, &why, t->why != NULL);
    return OK;
}
