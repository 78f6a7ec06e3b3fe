/* A quantized step sees data before its first step: ranges, and the first values of scales that are learned. */
#include "api/train/train_shadow.h"

#include <inttypes.h>

enum { CALIBRATION_BATCHES = 32 };

static Status no_data(Trainer *t, const State *state)
{
    Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "%s has seen no data, and a stream is read once", state->name);
    message_try(m, "--data of a file, or init=X in --quant: the range to start with");
    return message_send(m);
}

Status train_calibrate(Trainer *t)
{
    const State *state;
    int64_t n = t->batches < CALIBRATION_BATCHES ? t->batches : CALIBRATION_BATCHES;
    TRY(session_unobserved(t->run, &state));
    if (!state)
        return OK;
    if (t->batches < 0)
        return no_data(t, state);
    for (int64_t i = 0; i < n; i++) {
        const ArenaMark mark = arena_mark(&t->cx->scratch);
        TRY(feed_batch(t->feed, t->d, 0, i, &t->batch));
        TRY(train_bind(t->step, t->run, &t->cx->scratch, &t->data, &t->batch));
        TRY(session_observe(t->run));
        arena_reset(&t->cx->scratch, mark);
    }
    t->calibrated = n;
    return OK;
}
