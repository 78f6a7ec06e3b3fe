/* Where a grid looks, in the arithmetic T; included once for each by who reads data there. */

/* A place: the offsets of all its neighbours (-1: nothing is there), the weights along each axis, how far it lies from
 * the neighbour before it, and how fast it moves with its coordinate. */
typedef struct NAME(Place) {
    int taps, values;
    int64_t offset[MOST_VALUES];
    T w[MOST_AXES][GRID_TAPS], share[MOST_AXES], slope[MOST_AXES];
} NAME(Place);

/* `v` holds one coordinate an axis, the last axis first. */
static void NAME(place)(const Sampling *s, const T *v, NAME(Place) * p)
{
    int64_t stride = s->in, along[GRID_TAPS], before[MOST_VALUES];
    p->values = 1;
    p->offset[0] = 0;
    for (int i = 0; i < s->axes; i++) {
        stride /= s->dims[i];
        const T x = NAME(grid_coordinate)(*s->at, v[s->axes - 1 - i], s->dims[i], &p->slope[i]);
        p->share[i] = x - q_floor(x);
        p->taps = grid_taps(s->at->mode);
        NAME(grid_neighbours)(*s->at, x, s->dims[i], stride, along, p->w[i]);
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
        const T x = NAME(grid_coordinate)(*s->at, v[s->axes - 1 - k], s->dims[k], &slope);
        const int64_t at = NAME(grid_element)(*s->at, x, s->dims[k]);
        offset = offset < 0 || at < 0 ? -1 : offset * s->dims[k] + at;
    }
    return offset;
}
