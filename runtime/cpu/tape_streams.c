#include "runtime/cpu/tape_streams.h"

enum { LINE = 64, LEAST = 1 << 22 }; /* bytes; below so many, what is used again is in a cache of one core */

static size_t stored_bytes(const Tensor *t)
{
    return (size_t)dtype_bits(t->type->dtype) / 8;
}

/* What lies over another stream is that one. */
static void add_stream(TapeStream *streams, int *n, const Tensor *t, size_t elements, bool written)
{
    for (int i = 0; i < *n; i++)
        if (streams[i].from == t->data) {
            streams[i].written = streams[i].written || written;
            return;
        }
    if (*n < TAPE_STREAMS && stored_bytes(t))
        streams[(*n)++] = (TapeStream){ t->data, elements * stored_bytes(t), written };
}

/* The streams of some steps (null: of all), so many elements of each at a time. */
static int list_streams(const TapeRunner *r, const bool *steps, size_t elements, TapeStream streams[TAPE_STREAMS])
{
    const Tape *t = r->tape;
    int n = 0;
    for (int i = 0; i < r->n_steps; i++) {
        const TapeStepRun *s = &r->steps[i];
        const bool loads = s->word == TAPE_LOAD && (s->feed == FEED_DIRECT || s->feed == FEED_COPY ||
                                                    s->feed == FEED_DENSE || s->feed == FEED_RUNS);
        if (steps && !steps[i])
            continue;
        if (loads && !t->registers[s->out].per_row)
            add_stream(streams, &n, s->from, elements, false);
        else if (s->word == TAPE_STORE && !t->registers[s->in[0]].per_row)
            add_stream(streams, &n, r->out[s->out], elements, true);
    }
    return n;
}

/* None where they are few bytes together, of so many things. */
static int worth_asking(const TapeStream *streams, int n, int64_t things)
{
    size_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += streams[i].bytes * (size_t)things;
    return bytes < LEAST ? 0 : n;
}

int tape_streams(const TapeRunner *r, int64_t things, TapeStream streams[TAPE_STREAMS])
{
    const size_t elements = r->tape->cut < 0 ? 1 : (size_t)r->tape->length;
    return worth_asking(streams, list_streams(r, NULL, elements, streams), things);
}

int tape_walk_streams(const TapeRunner *r, const bool *steps, TapeStream streams[TAPE_STREAMS])
{
    return worth_asking(streams, list_streams(r, steps, 1, streams), r->tape->rows * r->tape->length);
}

void tape_ask(const TapeStream *streams, int n_streams, int64_t first, int64_t n, int step, int steps)
{
    for (int i = 0; i < n_streams; i++) {
        const TapeStream *s = &streams[i];
        const size_t lines = (s->bytes * (size_t)n + LINE - 1) / LINE;
        const char *at = s->from + s->bytes * (size_t)first;
        const size_t end = lines * (size_t)(step + 1) / (size_t)steps;
        for (size_t k = lines * (size_t)step / (size_t)steps; k < end; k++) {
            if (s->written)
                __builtin_prefetch(at + k * LINE, 1);
            else
                __builtin_prefetch(at + k * LINE, 0);
        }
    }
}
