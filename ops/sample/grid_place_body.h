/* Where a grid looks, in the arithmetic T; included once for each by who reads data there. */

/* Reflects x between lo and hi as often as needed; *slope is the sign that x then has. */
static T NAME(reflect)(T x, T lo, T hi, T *slope)
{
    const T size = hi - lo;
    *slope = 0;
    if (!(size > 0))
        return lo;
    const T from = x < lo ? lo - x : x - hi, turns = q_floor(from / size), rest = from - turns * size;
    const bool even = turns - 2 * q_floor(turns / 2) == 0;
    *slope = even ? -1 : 1;
    return (x < lo) == even ? lo + rest : hi - rest;
}

static T NAME(lowest)(const GridAttr *at)
{
    return at->align_corners ? 0 : K(-0.5);
}

static T NAME(highest)(const GridAttr *at, int64_t n)
{
    return at->align_corners ? (T)n - 1 : (T)n - K(0.5);
}

/* The normalized coordinate v on an axis of n elements, brought back as the padding says; NaN is outside.  *slope is
 * how fast it moves with v. */
static T NAME(coordinate)(const GridAttr *at, T v, int64_t n, T *slope)
{
    const T size = (T)n, lo = NAME(lowest)(at), hi = NAME(highest)(at, n), scale = at->align_corners ? size - 1 : size;
    T x = at->align_corners ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
    *slope = x == x ? scale / 2 : 0;
    if (at->mode == GRID_NEAREST)
        x = q_rint(x);
    if (at->padding_mode == GRID_ZEROS)
        return x == x ? x : -8;
    if (x >= lo && x <= hi)
        return x;
    *slope = 0;
    if (at->padding_mode == GRID_BORDER)
        return x > 0 ? x < size - 1 ? x : size - 1 : 0;
    if (x - x != 0)
        return 0;
    x = NAME(reflect)(x, lo, hi, slope);
    *slope *= scale / 2;
    return x;
}

/* The element that stands for position x (an integer); -1: none. */
static int64_t NAME(element)(const GridAttr *at, T x, int64_t n)
{
    const T last = (T)n - 1;
    if (x >= 0 && x <= last)
        return (int64_t)x;
    if (at->padding_mode == GRID_ZEROS)
        return -1;
    T slope;
    if (at->padding_mode == GRID_REFLECTION)
        x = q_trunc(NAME(reflect)(x, NAME(lowest)(at), NAME(highest)(at, n), &slope));
    return x > 0 ? x < last ? (int64_t)x : n - 1 : 0;
}

/* The neighbours of x along one axis, as offsets into an image (-1: none), and their weights. */
static int NAME(neighbours)(const GridAttr *at, T x, int64_t n, int64_t stride, int64_t *offset, T *w)
{
    const T first = q_floor(x), d = x - first, a = K(-0.75), e = 1 - d;
    const int taps = at->mode == GRID_LINEAR ? 2 : 4, before = at->mode == GRID_LINEAR ? 0 : 1;
    if (at->mode == GRID_LINEAR) {
        w[0] = e;
        w[1] = d;
    } else {
        w[0] = ((a * (d + 1) - 5 * a) * (d + 1) + 8 * a) * (d + 1) - 4 * a;
        w[1] = ((a + 2) * d - (a + 3)) * d * d + 1;
        w[2] = ((a + 2) * e - (a + 3)) * e * e + 1;
        w[3] = ((a * (e + 1) - 5 * a) * (e + 1) + 8 * a) * (e + 1) - 4 * a;
    }
    for (int i = 0; i < taps; i++) {
        const int64_t at_i = NAME(element)(at, first + (T)(i - before), n);
        offset[i] = at_i < 0 ? -1 : at_i * stride;
    }
    return taps;
}

/* A place: the offsets of all its neighbours (-1: nothing is there), the weights along each axis, how far it lies from
 * the neighbour before it, and how fast it moves with its coordinate. */
typedef struct NAME(Place) {
    int taps, values;
    int64_t offset[MOST_VALUES];
    T w[MOST_AXES][MOST_TAPS], share[MOST_AXES], slope[MOST_AXES];
} NAME(Place);

/* `v` holds one coordinate an axis, the last axis first. */
static void NAME(place)(const Sampling *s, const T *v, NAME(Place) * p)
{
    int64_t stride = s->in, along[MOST_TAPS], before[MOST_VALUES];
    p->values = 1;
    p->offset[0] = 0;
    for (int i = 0; i < s->axes; i++) {
        stride /= s->dims[i];
        const T x = NAME(coordinate)(s->at, v[s->axes - 1 - i], s->dims[i], &p->slope[i]);
        p->share[i] = x - q_floor(x);
        p->taps = NAME(neighbours)(s->at, x, s->dims[i], stride, along, p->w[i]);
        memcpy(before, p->offset, (size_t)p->values * sizeof *before);
        for (int k = p->values - 1; k >= 0; k--)
            for (int t = 0; t < p->taps; t++)
                p->offset[k * p->taps + t] = before[k] < 0 || along[t] < 0 ? -1 : before[k] + along[t];
        p->values *= p->taps;
    }
}

/* The innermost axis is summed first, taps ascending. */
static T NAME(interpolate)(const Sampling *s, const NAME(Place) * p, const T *x)
{
    T value[MOST_VALUES];
    int n = p->values;
    for (int i = 0; i < n; i++)
        value[i] = p->offset[i] < 0 ? 0 : x[p->offset[i]];
    for (int axis = s->axes - 1; axis >= 0; axis--) {
        n /= p->taps;
        for (int i = 0; i < n; i++) {
            T sum = 0;
            for (int t = 0; t < p->taps; t++)
                sum = q_fma(p->w[axis][t], value[i * p->taps + t], sum);
            value[i] = sum;
        }
    }
    return value[0];
}

/* nearest: the offset of the element at a place; -1: none. */
static int64_t NAME(nearest)(const Sampling *s, const T *v)
{
    int64_t offset = 0;
    T slope;
    for (int k = 0; k < s->axes; k++) {
        const T x = NAME(coordinate)(s->at, v[s->axes - 1 - k], s->dims[k], &slope);
        const int64_t at = NAME(element)(s->at, x, s->dims[k]);
        offset = offset < 0 || at < 0 ? -1 : offset * s->dims[k] + at;
    }
    return offset;
}
