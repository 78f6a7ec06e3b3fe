/* grid_sample and affine_grid in the arithmetic T; included once for each by ops/grid_sample.c. */

/* Reflects x between lo and hi as often as needed. */
static T NAME(reflect)(T x, T lo, T hi)
{
    const T size = hi - lo;
    if (!(size > 0))
        return lo;
    const T from = x < lo ? lo - x : x - hi, turns = q_floor(from / size), rest = from - turns * size;
    const bool even = turns - 2 * q_floor(turns / 2) == 0;
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

/* The normalized coordinate v on an axis of n elements, brought back as the padding says; NaN is outside. */
static T NAME(coordinate)(const GridAttr *at, T v, int64_t n)
{
    const T size = (T)n, lo = NAME(lowest)(at), hi = NAME(highest)(at, n);
    T x = at->align_corners ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
    if (at->mode == GRID_NEAREST)
        x = q_rint(x);
    if (at->padding_mode == GRID_ZEROS)
        return x == x ? x : -8;
    if (x >= lo && x <= hi)
        return x;
    if (at->padding_mode == GRID_BORDER)
        return x > 0 ? x < size - 1 ? x : size - 1 : 0;
    return x - x == 0 ? NAME(reflect)(x, lo, hi) : 0;
}

/* The element that stands for position x (an integer); -1: none. */
static int64_t NAME(element)(const GridAttr *at, T x, int64_t n)
{
    const T last = (T)n - 1;
    if (x >= 0 && x <= last)
        return (int64_t)x;
    if (at->padding_mode == GRID_ZEROS)
        return -1;
    if (at->padding_mode == GRID_REFLECTION)
        x = q_trunc(NAME(reflect)(x, NAME(lowest)(at), NAME(highest)(at, n)));
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

/* A place: the offsets of all its neighbours (-1: nothing is there), and the weights along each axis. */
typedef struct NAME(Place) {
    int taps, values;
    int64_t offset[MOST_VALUES];
    T w[MOST_AXES][MOST_TAPS];
} NAME(Place);

/* `v` holds one coordinate an axis, the last axis first. */
static void NAME(place)(const Sampling *s, const T *v, NAME(Place) * p)
{
    int64_t stride = s->in, along[MOST_TAPS], before[MOST_VALUES];
    p->values = 1;
    p->offset[0] = 0;
    for (int i = 0; i < s->axes; i++) {
        stride /= s->dims[i];
        const T x = NAME(coordinate)(s->at, v[s->axes - 1 - i], s->dims[i]);
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

static void NAME(sample)(Eval *e, const Sampling *s)
{
    const T *x = NAME(eval)(e, X), *grid = NAME(eval)(e, GRID);
    T *y = NAME(eval_out)(e, 0);
    NAME(Place) *p = eval_scratch(e, 1, sizeof *p);
    for (int64_t i = 0; s->in && i < s->images * s->out; i++) {
        const int64_t image = i / s->out;
        NAME(place)(s, grid + i * s->axes, p);
        for (int64_t c = image * s->channels; c < (image + 1) * s->channels; c++)
            y[c * s->out + i % s->out] = NAME(interpolate)(s, p, x + c * s->in);
    }
    for (int64_t i = 0; !s->in && i < tensor_elements(e->out[0]); i++)
        y[i] = 0;
}

/* nearest: whole elements; nothing is 0 in every type. */
static void NAME(pick)(Eval *e, const Sampling *s)
{
    const size_t size = (size_t)dtype_bits(e->in[X]->type->dtype) / 8;
    const T *grid = NAME(eval)(e, GRID);
    const char *x = e->in[X]->data;
    char *y = eval_out(e, 0)->data;
    memset(y, 0, e->out[0]->bytes);
    for (int64_t i = 0; i < s->images * s->out; i++) {
        const int64_t image = i / s->out;
        int64_t offset = 0;
        for (int k = 0; k < s->axes; k++) {
            const T v = NAME(coordinate)(s->at, grid[i * s->axes + s->axes - 1 - k], s->dims[k]);
            const int64_t at = NAME(element)(s->at, v, s->dims[k]);
            offset = offset < 0 || at < 0 ? -1 : offset * s->dims[k] + at;
        }
        for (int64_t c = image * s->channels; offset >= 0 && c < (image + 1) * s->channels; c++)
            memcpy(y + (size_t)(c * s->out + i % s->out) * size, x + (size_t)(c * s->in + offset) * size, size);
    }
}

/* The middle of element i of n in [-1, 1]; with corners aligned the first is -1 and the last 1. */
static T NAME(centre)(bool corners, int64_t i, int64_t n)
{
    if (corners)
        return n > 1 ? (T)(2 * i - (n - 1)) / (T)(n - 1) : -1;
    return (T)(2 * i + 1 - n) / (T)n;
}

static void NAME(affine)(Eval *e)
{
    const AffineAttr *at = e->attr;
    const Type *type = eval_type(e, 0);
    const int axes = type->rank - 2;
    const int64_t places = type_elements(type) / axes;
    const T *theta = NAME(eval)(e, 0);
    T *y = NAME(eval_out)(e, 0);
    for (int64_t i = 0; i < places; i++) {
        T where[3];
        int64_t rest = i;
        for (int k = 0; k < axes; k++) {
            const int64_t n = type->dims[axes - k];
            where[k] = NAME(centre)(at->align_corners, rest % n, n);
            rest /= n;
        }
        for (int k = 0; k < axes; k++) {
            const T *row = theta + (rest * axes + k) * (axes + 1);
            T sum = 0;
            for (int j = 0; j < axes; j++)
                sum = q_fma(row[j], where[j], sum);
            y[i * axes + k] = sum + row[axes];
        }
    }
}
