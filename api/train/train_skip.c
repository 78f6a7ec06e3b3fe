/* Steps that were not applied: what is said of them, and whether the run ends with them.
 *
 * Without loss scaling --on-nonfinite decides.  With it a step whose gradients overflow is skipped and lowers the scale,
 * which is how a scale is found; but no scale mends a forward pass, nor gradients that overflow at the least one. */
#include <inttypes.h>
#include <math.h>

#include "api/train/train.h"
#include "base/number_text.h"

enum { MOST_FORWARDS = 3 }; /* forwards in a row that may be not finite */

/* ---- the scaler's states ---- */

static Status put(Trainer *t, const State *state, const void *data, size_t bytes)
{
    const Tensor value = { .type = state->type, .data = (void *)(uintptr_t)data, .bytes = bytes, .refs = 1 };
    return session_put(t->run, state->name, &value);
}

static Status put_scaler(Trainer *t, const ScalerState *state)
{
    i64 counters[SCALER_COUNTERS];
    scaler_pack(state, counters);
    const State *scale = session_state_of(t->run, STATE_scaler, NULL);
    TRY(put(t, scale, &state->scale, sizeof state->scale));
    return put(t, session_state_of(t->run, STATE_scaler, scale->name), counters, sizeof counters);
}

/* The scaler as it was before the step; everything else is. */
static Status step_back(Trainer *t)
{
    return t->scales ? put_scaler(t, &t->scaler_before) : OK;
}

/* ---- words ---- */

static const char *number(Arena *arena, f32 x)
{
    char text[NUMBER_TEXT];
    f32_to_text(text, x);
    return arena_string(arena, text);
}

const char *train_first_bad(const Trainer *t)
{
    const char *name = t->last.found & SCALER_FORWARD ? NULL : t->last.first_bad;
    const char *path = name ? step_path(t->step, name) : NULL;
    return path ? path : name;
}

const char *train_skip_reason(const Trainer *t)
{
    if (!t->scales || !(t->scaler.flags & SCALER_FOUND))
        return "not finite";
    return t->scaler.flags & SCALER_FORWARD ? "loss not finite" : "gradient overflow";
}

static Status tell_skip(Trainer *t)
{
    Arena *arena = &t->cx->scratch;
    const char *first = train_first_bad(t);
    if (out_is_json(t->c->out)) /* its event was told */
        return OK;
    TRY(out_printf(t->c->out, "step %" PRId64 "  skipped: %s", t->done, train_skip_reason(t)));
    if (first)
        TRY(out_printf(t->c->out, ", first in %s", first));
    if (!t->scales)
        return out_printf(t->c->out, "\n");
    const f32 was = t->scaler_before.scale, is = t->scaler.scale;
    return was == is ? out_printf(t->c->out, "; loss scale %s stays\n", number(arena, is))
                     : out_printf(t->c->out, "; loss scale %s -> %s\n", number(arena, was), number(arena, is));
}

/* ---- whether the run ends ---- */

/* Looks for the first value that was not finite, at the scale that the step had. */
static Status find_culprit(Trainer *t)
{
    if (t->culprit_of == t->done)
        return OK;
    TRY(step_back(t));
    TRY(session_culprit(t->session, &t->culprit));
    t->culprit_of = t->done;
    return t->scales ? put_scaler(t, &t->scaler) : OK;
}

/* Counts forwards in a row that no scale mends.  A loss may hide what its forward did: after some skips one looks. */
static Status count_forwards(Trainer *t)
{
    bool forward = (t->scaler.flags & SCALER_FORWARD) != 0;
    if (!forward && t->skipped_in_a_row >= MOST_FORWARDS) {
        TRY(find_culprit(t));
        forward = culprit_is_forward(&t->culprit);
        t->forwards_in_a_row = forward ? MOST_FORWARDS - 1 : 0;
    }
    t->forwards_in_a_row = forward ? t->forwards_in_a_row + 1 : 0;
    return OK;
}

/* Where the scale is as low as it was meant to be, and falls all the same. */
static Status warn_low(Trainer *t)
{
    if (!(t->scaler.flags & SCALER_STUCK) || t->warned_low)
        return OK;
    t->warned_low = true;
    return warn(t->d, NOWHERE, "step %" PRId64 ": %" PRId64 " skipped in a row, gradients overflow at loss scale %s",
                t->done, t->scaler.consecutive_skips, number(&t->cx->scratch, t->scaler_before.scale));
}

static bool is_exhausted(const Trainer *t)
{
    const bool stays = t->scaler.scale == t->scaler_before.scale;
    return t->scaler.flags & SCALER_EXHAUSTED || (stays && t->scaler.consecutive_skips > SCALER_MANY);
}

Status train_skipped(Trainer *t, bool *stops)
{
    *stops = t->skipped_in_a_row > t->o.skips;
    if (t->scales && !t->o.skips_said) {
        TRY(count_forwards(t));
        *stops = t->forwards_in_a_row >= MOST_FORWARDS || is_exhausted(t);
    }
    if (*stops)
        return OK;
    TRY(tell_skip(t));
    return t->scales ? warn_low(t) : OK;
}

/* ---- the end ---- */

static const char *why_stopped(Trainer *t)
{
    Arena *arena = &t->cx->scratch;
    const Precision *p = &t->step->recipe.precision;
    const bool loss = t->last.has_loss && !isfinite(t->last.loss), forward = culprit_is_forward(&t->culprit);
    if (t->scales && forward) {
        const DType at = t->culprit.node->type->dtype;
        const bool narrow = p->on && at == p->narrow;
        return arena_printf(arena, "the forward pass %s%s, no loss scale can help",
                            narrow ? "overflows " : "is not finite",
                            !narrow     ? ""
                            : at == F16 ? "fp16"
                                        : "bf16");
    }
    if (t->scales && is_exhausted(t))
        return arena_printf(arena, "gradients overflow at loss scale %s, which cannot fall",
                            number(arena, t->scaler_before.scale));
    return loss ? "the loss is not finite" : "the gradients are not finite";
}

Status train_diverged(Trainer *t)
{
    TRY(find_culprit(t));
    const char *what =
        arena_printf(&t->cx->scratch, "step %" PRId64 "  stopped: %s; step %" PRId64 " was the last good one", t->done,
                     why_stopped(t), t->good);
    if (t->cx->verbosity < 0) /* -q: what went wrong is said all the same */
        (void)fail_as(t->d, MISMATCH, (Place){ .file = t->c->line.paths[0], .byte = -1 }, "%s", what);
    TRY(out_printf(t->c->out, "%s\n", what));
    TRY(session_explain(t->c->out, t->session, &t->culprit));
    const char *first = train_first_bad(t);
    if (first && !culprit_is_forward(&t->culprit))
        TRY(out_printf(t->c->out, "first    grad.%s: the first gradient that is not finite\n", first));
    TRY(step_back(t));
    t->done--; /* what is left behind stands before the step */
    t->skipped--;
    t->skipped_in_a_row--;
    TRY(train_bundle(t));
    return MISMATCH;
}
