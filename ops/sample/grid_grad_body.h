/* What reaches data and grid of grid_sample, in the arithmetic T; included once for each by ops/sample/grid_grad.c. */
#include "ops/sample/grid_place_body.h"

/* The weight of each neighbour of a place; returns how many there are. */
static int NAME(weights)(const Sampling *s, const NAME(Place) * p, T *w)
{
    int n = 1;
    w[0] = 1;
    for (int axis = 0; axis < s->axes; axis++) {
        for (int k = n - 1; k >= 0; k--)
            for (int t = p->taps - 1; t >= 0; t--)
                w[k * p->taps + t] = w[k] * p->w[axis][t];
        n *= p->taps;
    }
    return n;
}

/* Channels [from, to) of one image, place after place. */
static void NAME(spread)(const GridGradRun *r, int64_t image, int64_t from, int64_t to, NAME(Place) * p)
{
    const Sampling *s = &r->s;
    const T *dy = (const T *)r->dy + image * s->channels * s->out;
    const T *grid = (const T *)r->grid + image * s->out * s->axes;
    T *dx = (T *)r->result + image * s->channels * s->in, w[MOST_VALUES];
    int n = 1;
    for (int64_t i = 0; i < s->out; i++) {
        if (s->at->mode == GRID_NEAREST) {
            p->offset[0] = NAME(nearest)(s, grid + i * s->axes);
            w[0] = 1;
        } else {
            NAME(place)(s, grid + i * s->axes, p);
            n = NAME(weights)(s, p, w);
        }
        for (int64_t c = from; c < to; c++)
            for (int k = 0; k < n; k++)
                if (p->offset[k] >= 0)
                    dx[c * s->in + p->offset[k]] = q_fma(w[k], dy[c * s->out + i], dx[c * s->in + p->offset[k]]);
    }
}

static void NAME(spread_channels)(void *arg, int64_t begin, int64_t end, int worker)
{
    const GridGradRun *r = arg;
    const int64_t channels = r->s.channels;
    NAME(Place) *p = (NAME(Place) *)(void *)(r->places + (size_t)worker * r->place_bytes);
    memset((T *)r->result + begin * r->s.in, 0, (size_t)((end - begin) * r->s.in) * sizeof(T));
    for (int64_t at = begin; at < end;) {
        const int64_t image = at / channels, from = at % channels;
        const int64_t to = end - image * channels < channels ? end - image * channels : channels;
        NAME(spread)(r, image, from, to, p);
        at = image * channels + to;
    }
}

/* Places [begin, end) of all images; the sum goes over the channels. */
static void NAME(steer)(void *arg, int64_t begin, int64_t end, int worker)
{
    const GridGradRun *r = arg;
    const Sampling *s = &r->s;
    NAME(Place) *p = (NAME(Place) *)(void *)(r->places + (size_t)worker * r->place_bytes);
    for (int64_t i = begin; i < end; i++) {
        const int64_t image = i / s->out;
        const T *dy = (const T *)r->dy + image * s->channels * s->out + i % s->out;
        const T *x = (const T *)r->x + image * s->channels * s->in;
        NAME(place)(s, (const T *)r->grid + i * s->axes, p);
        for (int axis = 0; axis < s->axes; axis++) {
            T own[GRID_TAPS], sum = 0;
            memcpy(own, p->w[axis], sizeof own);
            NAME(grid_slopes)(*s->at, p->share[axis], p->slope[axis], p->w[axis]);
            for (int64_t c = 0; c < s->channels; c++)
                sum = q_fma(dy[c * s->out], NAME(interpolate)(s, p, x + c * s->in), sum);
            memcpy(p->w[axis], own, sizeof own);
            ((T *)r->result)[i * s->axes + s->axes - 1 - axis] = sum;
        }
    }
}
