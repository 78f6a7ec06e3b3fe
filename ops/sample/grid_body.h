/* grid_sample and affine_grid in the arithmetic T; included once for each by ops/sample/grid_sample.c. */
#include "ops/sample/grid_place_body.h"

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
        const int64_t offset = NAME(nearest)(s, grid + i * s->axes);
        for (int64_t c = image * s->channels; offset >= 0 && c < (image + 1) * s->channels; c++)
            memcpy(y + (size_t)(c * s->out + i % s->out) * size, x + (size_t)(c * s->in + offset) * size, size);
    }
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
            where[k] = NAME(grid_centre)(at->align_corners, rest % n, n);
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
