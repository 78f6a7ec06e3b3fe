/* How the scale of a loss moves over the steps: one step of the automaton, for the host and for kernels (the common
 * subset of C11 and CUDA C++).
 *
 * Gradients of narrow types lose what is small; a loss multiplied by a power of two loses less of it, and nothing else
 * changes.  A step that finds a value that is not finite is skipped and lowers the scale; many that find none raise it.
 * All numbers are powers of two, so scaling and its inverse are exact. */
#ifndef OPS_UPDATE_SCALER_H
#define OPS_UPDATE_SCALER_H

#ifndef __CUDACC__ /* host */
#include "ops/scalar.h"
#endif /* host */

/* What a step found, and what follows from it: bits of ScalerState.flags. */
enum {
    SCALER_GRADIENT = 1, /* a gradient was not finite */
    SCALER_NAN = 2,      /* one of them had a NaN */
    SCALER_FORWARD = 4,  /* the loss was not finite: no scale helps */
    SCALER_FOUND = SCALER_GRADIENT | SCALER_NAN | SCALER_FORWARD,
    SCALER_STUCK = 8,      /* skipped at the least scale, or more than SCALER_MANY times in a row */
    SCALER_EXHAUSTED = 16, /* gradients overflow where the scale cannot fall any more */
    SCALER_FROZEN = 32,    /* the host wants the scale to stay: the one bit that outlives a step */
};

enum {
    SCALER_MANY = 16,          /* skips in a row after which something is wrong */
    SCALER_WARM_INTERVAL = 100 /* of the fast start */
};

#define SCALER_LAST      (1.0f / 16384) /* below the least scale, where only gradients overflow */
#define SCALER_WARM      1024.0f        /* scales below it grow at the warm interval */
#define SCALER_FAST_FALL (1.0f / 16)    /* from the third skip on, as long as no step was applied */

/* What does not change. */
typedef struct ScalerRules {
    f32 growth, backoff, least, most;
    i64 interval, hysteresis; /* applied steps before the scale grows; skipped ones before it falls */
    bool refills;             /* an applied step gives the hysteresis back */
    bool fast_start;          /* falls faster before the first applied step, grows faster while it is small */
    bool dynamic;             /* false: the scale stays, the counters count */
} ScalerRules;

/* What does; in a graph the states qcc.scale and qcc.scaler: i64[8], which has the counters in this order. */
typedef struct ScalerState {
    f32 scale;
    i64 growth_tracker, hysteresis_left;
    i64 attempted, applied, skipped, consecutive_skips;
    i64 flags;     /* of the last step */
    i64 first_bad; /* the first gradient that was not finite in the last step; -1: none */
} ScalerState;

enum { SCALER_COUNTERS = 8 };

/* The state before the first step. */
Q_FN ScalerState scaler_begin(const ScalerRules *r, f32 scale)
{
    const ScalerState s = { scale, 0, r->hysteresis, 0, 0, 0, 0, 0, -1 };
    return s;
}

/* Counters of a file may be anything: they wrap. */
Q_FN i64 scaler_count(i64 n, i64 by)
{
    return (i64)((u64)n + (u64)by);
}

/* A step that changed nothing. */
Q_FN ScalerState scaler_skip(const ScalerRules *r, ScalerState s)
{
    const bool forward = (s.flags & SCALER_FORWARD) != 0, moves = r->dynamic && !(s.flags & SCALER_FROZEN),
               low = s.scale <= r->least;
    const f32 last = r->least < SCALER_LAST ? r->least : SCALER_LAST, floor = low && !forward ? last : r->least;
    s.skipped = scaler_count(s.skipped, 1);
    s.consecutive_skips = scaler_count(s.consecutive_skips, 1);
    s.growth_tracker = 0;
    s.hysteresis_left = scaler_count(s.hysteresis_left, -1);
    if ((moves && low) || s.consecutive_skips > SCALER_MANY)
        s.flags |= SCALER_STUCK;
    if (moves && !forward && s.scale <= last)
        s.flags |= SCALER_EXHAUSTED;
    if (moves && s.hysteresis_left <= 0) {
        const bool fast = r->fast_start && s.applied == 0 && s.consecutive_skips > 2 && r->backoff > SCALER_FAST_FALL;
        const f32 lower = s.scale * (fast ? SCALER_FAST_FALL : r->backoff), next = lower < floor ? floor : lower;
        s.scale = next < s.scale ? next : s.scale;
    }
    return s;
}

/* A step that was finite. */
Q_FN ScalerState scaler_apply(const ScalerRules *r, ScalerState s)
{
    const bool warm = r->fast_start && s.scale < SCALER_WARM && r->interval > SCALER_WARM_INTERVAL;
    s.applied = scaler_count(s.applied, 1);
    s.consecutive_skips = 0;
    if (r->refills)
        s.hysteresis_left = r->hysteresis;
    s.growth_tracker = scaler_count(s.growth_tracker, 1);
    if (s.growth_tracker >= (warm ? SCALER_WARM_INTERVAL : r->interval)) {
        const f32 higher = s.scale * r->growth;
        s.growth_tracker = 0;
        s.hysteresis_left = r->hysteresis;
        if (r->dynamic && !(s.flags & SCALER_FROZEN) && higher <= r->most)
            s.scale = higher;
    }
    return s;
}

/* The state after a step that found `flags` (bits of SCALER_FOUND), `first` being the gradient.  Whether its other
 * states change: scaler_applies(flags). */
Q_FN ScalerState scaler_next(const ScalerRules *r, ScalerState s, i64 first, i64 flags)
{
    const i64 found = flags & SCALER_FOUND;
    s.attempted = scaler_count(s.attempted, 1);
    s.flags = (s.flags & SCALER_FROZEN) | found;
    s.first_bad = found ? first : -1;
    return found ? scaler_skip(r, s) : scaler_apply(r, s);
}

Q_FN bool scaler_applies(i64 flags)
{
    return (flags & SCALER_FOUND) == 0;
}

/* The state as counters, and back. */
Q_FN void scaler_pack(const ScalerState *s, i64 *counters)
{
    counters[0] = s->growth_tracker;
    counters[1] = s->hysteresis_left;
    counters[2] = s->attempted;
    counters[3] = s->applied;
    counters[4] = s->skipped;
    counters[5] = s->consecutive_skips;
    counters[6] = s->flags;
    counters[7] = s->first_bad;
}

Q_FN ScalerState scaler_unpack(f32 scale, const i64 *counters)
{
    const ScalerState s = { scale,       counters[0], counters[1], counters[2], counters[3],
                            counters[4], counters[5], counters[6], counters[7] };
    return s;
}

/* Whether a scale is one: a positive power of two, its inverse finite. */
Q_FN bool scaler_is_scale(f32 v)
{
    const u32 bits = bits_of(v), exponent = bits >> 23;
    return (bits & 0x7fffffu) == 0 && exponent > 0 && exponent < 254;
}

#endif
