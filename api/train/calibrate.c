/* A quantized step sees data before its first step: ranges, and the first values of scales that are learned. */
#include "api/train/train_shadow.h"

#include <inttypes.h>
#include <string.h>

enum { CALIBRATION_BATCHES = 32 };

static Status no_data(Trainer *t, const State *state)
{
    Message *m = message_new(t->d, SEVERITY_ERROR, USAGE, ON_COMMAND_LINE,
                             "%s has seen no data, and a stream is read once", state->name);
    message_try(m, "--data of a file, or init=X in --quant: the range to start with");
    return message_send(m);
}

/* Part `k` of `n` of the rows of a value; all of one that every micro-batch reads whole. */
static const Tensor *part_of(Trainer *t, const char *name, const Tensor *value, int64_t rows, int64_t k, int64_t n)
{
    const Recipe *r = &t->step->recipe;
    Types *types = &t->step->ir->types;
    int64_t dims[MAX_RANK];
    for (size_t i = 0; i < r->n_whole; i++)
        if (strcmp(r->whole[i], name) == 0)
            return value;
    if (n < 2 || value->type->rank < 1 || value->type->dims[0] != rows)
        return value;
    memcpy(dims, value->type->dims, (size_t)value->type->rank * sizeof *dims);
    dims[0] = rows / n;
    Tensor *part = tensor_new(&t->cx->scratch, type_tensor(types, value->type->dtype, value->type->rank, dims));
    if (part->bytes)
        memcpy(part->data, (const char *)value->data + (size_t)k * part->bytes, part->bytes);
    return part;
}

/* A batch, in the parts that micro-batches are. */
static Status observe_batch(Trainer *t)
{
    const int64_t n = t->step->recipe.accumulate > 1 ? t->step->recipe.accumulate : 1;
    for (int64_t k = 0; k < n; k++) {
        for (size_t i = 0; i < t->data.n_inputs; i++) {
            const char *name = t->data.inputs[i].name;
            const Tensor *value = t->batch.values[i];
            if (value)
                TRY(session_bind(t->run, name, part_of(t, name, value, t->batch.rows, k, n)));
        }
        TRY(session_observe(t->run));
    }
    return OK;
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
        TRY(observe_batch(t));
        arena_reset(&t->cx->scratch, mark);
    }
    t->calibrated = n;
    return OK;
}
