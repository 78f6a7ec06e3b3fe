/* The data of a run as feeds: what it trains on, what it is validated on, and whether these fit what was asked for. */
#include <string.h>

#include "api/train/train.h"

static bool asked_to_stop(void *user)
{
    const qcc_context *cx = user;
    return cx->stop != 0;
}

static FeedOptions feed_options(const Trainer *t, FeedPart part)
{
    const bool train = part != FEED_VALIDATION;
    return (FeedOptions){ .part = part,
                          .fraction = option_real(&t->c->line, OPT_val_split, 0),
                          .shuffle = train && t->o.shuffle,
                          .last = train && t->o.last == FEED_DROP ? FEED_DROP : FEED_PAD,
                          .seed = t->o.seed,
                          .once = !train,
                          .threads = t->cx->options.threads,
                          .stopped = asked_to_stop,
                          .user = t->cx };
}

static Status no_data(Trainer *t)
{
    Text line;
    text_open(&line, &t->cx->scratch);
    text_printf(&line, "qcc train %s", t->c->line.paths[0]);
    for (size_t i = 0; i < t->step->n_inputs; i++) {
        const char *name = t->step->inputs[i].name;
        const bool target = strncmp(name, "target", 6) == 0;
        text_printf(&line, " --%s %s=%s.npy", target ? "target" : "data", name, name);
    }
    Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, NOWHERE, "what is it to learn from?");
    message_try(m, "%s", text_get(&line));
    return message_send(m);
}

static Status open_validation(Trainer *t)
{
    const CommandLine *line = &t->c->line;
    const bool split = option_real(line, OPT_val_split, 0) > 0, files = option_given(line, OPT_val) > 0;
    const FeedOptions all = feed_options(t, FEED_VALIDATION);
    FeedOptions own = all;
    if (split && files)
        return fail_as(t->d, USAGE, ON_COMMAND_LINE, "--val and --val-split: one of the two says what is held out");
    if (!split && !files)
        return OK;
    if (split) {
        TRY(train_data_open(t->c, t->step, OPT_data, OPT_target, true, &t->val_data));
        return feed_open(&t->val_feed, t->val_data.set, t->d, &all);
    }
    own.part = FEED_ALL;
    own.shuffle = false;
    own.last = FEED_PAD;
    TRY(train_data_open(t->c, t->step, OPT_val, OPT_val_target, true, &t->val_data));
    return feed_open(&t->val_feed, t->val_data.set, t->d, &own);
}

/* --last keep: the last batch is filled up too, and what fills it weighs nothing. */
static Status check_keep(Trainer *t)
{
    Message *m;
    if (t->o.last != FEED_KEEP)
        return OK;
    if (t->step->recipe.accumulate > 1) {
        m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                        "--last keep: with --accumulate the last micro-batches would be empty");
    } else if (!train_masks(t->step, "step")) {
        m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                        "--last keep: the loss of this step cannot leave samples out");
    } else {
        return OK;
    }
    message_try(m, "--last drop");
    message_try(m, "--last pad");
    return message_send(m);
}

/* An option of the line that nothing answers without a validation; null: there is none. */
static const char *wants_validation(const CommandLine *line)
{
    static const Option all[] = { OPT_best, OPT_patience, OPT_best_output };
    for (size_t i = 0; i < COUNT(all); i++)
        if (option_given(line, all[i]))
            return option_specs[all[i]].name;
    return NULL;
}

static bool measures(const Validation *v, MetricKind kind)
{
    const Metric *m;
    for (size_t i = 0; (m = validation_metric_at(v, i)); i++)
        if (m->kind == kind)
            return true;
    return false;
}

/* What is to be judged has to be measured: found out before the first epoch, not behind it. */
static Status check_judges(Trainer *t)
{
    Validation v = { 0 };
    MetricKind kind;
    const char *stop = t->o.stop.what;
    const bool on_metric = stop && metric_find(stop, &kind),
               on_val = on_metric || (stop && strcmp(stop, "val_loss") == 0), validates = t->val_feed != NULL;
    if (validates)
        TRY(validation_metric(t->c, t->step, &t->o, &v));
    Message *m = NULL;
    const char *wants = on_val ? "--stop-if" : t->o.has_metric ? "--metric" : wants_validation(&t->c->line);
    if (!validates && wants)
        m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "%s: nothing is validated", wants);
    else if (validates && t->o.by_accuracy && !v.has_metric)
        m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "--best val_accuracy: there is no metric");
    else if (validates && on_metric && !measures(&v, kind))
        m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE, "--stop-if: %s is not measured", stop);
    if (!m)
        return OK;
    if (validates)
        message_try(m, "--metric %s", on_metric ? stop : "mae");
    else
        message_try(m, "--val-split 0.1");
    return message_send(m);
}

Status train_open_feeds(Trainer *t)
{
    if (!option_given(&t->c->line, OPT_data) && t->step->n_inputs)
        return no_data(t);
    TRY(check_keep(t));
    TRY(train_data_open(t->c, t->step, OPT_data, OPT_target, false, &t->data));
    t->o.shuffle = t->o.shuffle && !dataset_is_one(t->data.set);
    const bool split = option_real(&t->c->line, OPT_val_split, 0) > 0;
    const FeedOptions train = feed_options(t, split ? FEED_TRAIN : FEED_ALL);
    TRY(feed_open(&t->feed, t->data.set, t->d, &train));
    t->batches = feed_batches(t->feed);
    TRY(open_validation(t));
    return check_judges(t);
}
