#include "ops/quant/histogram.h"

#include "ops/quant/range_search.h"

enum { LOW_BITS = 24 };

u64 histogram_count(const f32 *state, int bin)
{
    const f32 *bins = state + OBSERVED_BINS;
    return (u64)i64_of_f32(bins[bin]) + ((u64)i64_of_f32(bins[OBSERVE_BINS + bin]) << LOW_BITS);
}

void histogram_set(f32 *state, int bin, u64 count)
{
    f32 *bins = state + OBSERVED_BINS;
    bins[bin] = (f32)(count & (((u64)1 << LOW_BITS) - 1));
    bins[OBSERVE_BINS + bin] = (f32)(count >> LOW_BITS);
}

f32 histogram_width(f32 size)
{
    const u32 low = bits_of(0x1p-100f);
    const u32 exponent = (bits_of(size) & 0x7f800000u) > low ? bits_of(size) & 0x7f800000u : low;
    return size == 0 ? 0 : float_of(exponent) * (1.0f / (OBSERVE_BINS / 2));
}

void histogram_widen(f32 *state, f32 width)
{
    const f32 old = state[OBSERVED_WIDTH];
    if (old == width)
        return;
    state[OBSERVED_WIDTH] = width;
    if (old == 0)
        return; /* zeros are in the first bin, whatever its width */
    const f32 times = width / old;
    const int together = times < OBSERVE_BINS ? (int)times : OBSERVE_BINS;
    for (int i = 0; i < OBSERVE_BINS; i++) {
        u64 sum = 0;
        for (int k = i * together; k < (i + 1) * together && k < OBSERVE_BINS; k++)
            sum += histogram_count(state, k);
        histogram_set(state, i, sum);
    }
}

/* The range which so many of a hundred numbers lie in: up to the upper edge of the bin of the last of them. */
static f32 by_percentile(const SizeCounts *s, f32 percentile)
{
    u64 total = 0, so_far = 0;
    for (int i = 0; i < OBSERVE_BINS; i++)
        total += s->count[i];
    const f64 share = (f64)percentile / 100 * (f64)total;
    int bin = 0;
    for (; bin < OBSERVE_BINS - 1; bin++)
        if ((so_far += s->count[bin]) != 0 && (f64)so_far >= share)
            break;
    return (f32)(bin + 1) * s->width;
}

void histogram_take_range(f32 *state, const ObserveAttr *at, u64 *counts, f64 *room)
{
    const RangeCodes codes = range_codes(observed_codes(at), at->least, at->largest, at->symmetric, at->pow2);
    const SizeCounts s = { counts, state[OBSERVED_WIDTH], state[OBSERVED_LEAST], state[OBSERVED_MOST] };
    for (int i = 0; i < OBSERVE_BINS; i++)
        counts[i] = histogram_count(state, i);
    const f32 edge = at->kind == OBSERVE_PCT   ? by_percentile(&s, at->percentile)
                     : at->kind == OBSERVE_MSE ? range_by_error(&s, &codes)
                     : at->kind == OBSERVE_KL  ? range_by_divergence(&s, &codes, room)
                                               : range_by_deviation(&s, at->sigma);
    state[OBSERVED_LO] = s.least < -edge ? -edge : s.least;
    state[OBSERVED_HI] = s.most > edge ? edge : s.most;
}
