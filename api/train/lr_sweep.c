/* train --lr-sweep: one run over rising rates, to see which of them suits. */
#include <inttypes.h>
#include <math.h>

#include "api/train/train.h"
#include "passes/engine/results.h"

/* What the sweep has seen: losses smoothed over about ten steps, since single batches differ. */
typedef struct Swept {
    double mean, weight; /* of the losses so far, the late ones counting more */
    double first, lowest, at;
    int64_t n, lowest_at;
} Swept;

static Status refuse(Trainer *t, const char *where, const char *what, const char *try)
{
    Place place = ON_COMMAND_LINE;
    place.where = where;
    Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, place, "%s", what);
    if (try)
        message_try(m, "%s", try);
    return message_send(m);
}

/* A sweep leaves nothing behind and sets the rate itself. */
static Status check_options(Trainer *t)
{
    static const Option others[] = { OPT_output_path, OPT_checkpoint, OPT_best_output, OPT_gradients,
                                     OPT_resume,      OPT_epochs,     OPT_steps,       OPT_schedule };
    const Recipe *r = &t->step->recipe;
    for (size_t i = 0; i < COUNT(others); i++)
        if (option_given(&t->c->line, others[i]))
            return refuse(t, option_specs[others[i]].name, "does not go with --lr-sweep, which saves nothing", NULL);
    if (r->schedule.kind != SCHEDULE_CONSTANT || r->schedule.warmup)
        return refuse(t, "--lr-sweep", "the step has a schedule, which moves the rate as well",
                      "compile it without --schedule");
    if (t->step->facts.silent || r->groups[0].lr <= 0)
        return refuse(t, "--lr-sweep", "the step does not say a rate that could be changed", "--lr 1e-3");
    return OK;
}

static Status set_rate(Trainer *t, double rate)
{
    const Tensor *have = session_view(t->run, LR_FACTOR);
    if (!have)
        return refuse(t, "--lr-sweep", "the step has no rate that could be changed", NULL);
    Tensor *factor = tensor_new(&t->cx->scratch, have->type);
    tensor_set_f64(factor, 0, rate / t->step->recipe.groups[0].lr);
    return session_put(t->run, LR_FACTOR, factor);
}

static Status tell_rate(Trainer *t)
{
    const LogExtra fields[] = { { "step", logged_int(t->done) },
                                { "lr", logged_f32((float)t->last.rate) },
                                { "loss", logged_f32((float)t->last.loss) } };
    if (out_is_json(t->c->out))
        return out_event(t->c->out, "rate", fields, COUNT(fields));
    return out_printf(t->c->out, "%.4g,%.6g\n", t->last.rate, t->last.loss);
}

/* The first tenth of the steps only warms the mean up. */
static void add(Swept *s, const Sweep *o, double rate, double loss)
{
    s->mean = 0.9 * s->mean + 0.1 * loss;
    s->weight = 0.9 * s->weight + 0.1;
    const double now = s->mean / s->weight;
    const int64_t begins = o->steps / 10;
    s->first = s->n <= begins ? now : s->first;
    if (s->n <= begins || now < s->lowest) {
        s->lowest = now;
        s->at = rate;
        s->lowest_at = s->n;
    }
    s->n++;
}

/* Rises above four times the lowest, as far as losses are above 0. */
static bool has_burst(const Swept *s)
{
    return s->lowest > 0 && s->mean / s->weight > 4 * s->lowest;
}

static Status tell_suggestion(Trainer *t, const Swept *s)
{
    Out *out = t->c->out;
    const bool fell = s->n > 1 && s->lowest < s->first, ended = s->lowest_at == s->n - 1;
    const double suggested = s->at / 10;
    const LogExtra fields[] = { { "lr", logged_f32((float)suggested) }, { "lowest_at", logged_f32((float)s->at) } };
    if (out_is_json(out))
        return out_event(out, "suggest", fell ? fields : fields + COUNT(fields), fell ? COUNT(fields) : 0);
    if (!fell)
        return out_printf(out, "no rate to suggest: the loss fell at none; begin lower. No parameters are saved\n");
    return out_printf(out,
                      "suggested: --lr %.2g, a tenth of the rate where the loss was lowest (%.2g)%s. No parameters are "
                      "saved\n",
                      suggested, s->at, ended ? "; it still fell at the end, higher rates may do better" : "");
}

static Status sweep(Trainer *t)
{
    const Sweep *o = &t->o.sweep;
    Swept s = { .n = 0 };
    bool over = false;
    if (!out_is_json(t->c->out))
        TRY(out_printf(t->c->out, "lr,loss\n"));
    for (int64_t i = 0; i < o->steps && !over; i++) {
        const ArenaMark mark = arena_mark(&t->cx->scratch);
        TRY(set_rate(t, o->from * pow(o->to / o->from, (double)i / (double)(o->steps - 1))));
        TRY(train_step(t, &over));
        if (over || (!t->last.applied && !t->scales) || !t->last.has_loss)
            break;
        if (t->last.applied) { /* else the scale of the loss finds its place */
            TRY(tell_rate(t));
            add(&s, o, t->last.rate, t->last.loss);
        }
        arena_reset(&t->cx->scratch, mark);
        over |= has_burst(&s);
    }
    return s.n ? tell_suggestion(t, &s)
               : fail_as(t->d, MISMATCH, NOWHERE, "no step of the sweep was finite: begin lower");
}

Status train_sweep(Trainer *t)
{
    TRY(check_options(t));
    TRY(train_open_feeds(t));
    TRY(session_start(t->step, t->o.seed, NULL, &t->session));
    t->run = t->session->run;
    TRY(train_restore(t));
    return sweep(t);
}
