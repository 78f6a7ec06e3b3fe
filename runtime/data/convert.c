#include "runtime/data/convert.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ops/card/eval.h"

enum { BLOCK = 256 };

bool convert_can(DType from, DType to)
{
    if (from == STRING || to == STRING)
        return false;
    return dtype_is_float(to) || !dtype_is_float(from);
}

/* ---- preparing ---- */

static void bounds_of(DType to, int64_t *low, int64_t *high)
{
    const int bits = dtype_bits(to);
    const bool is_signed = dtype_class(to) == CLASS_INT;
    *low = is_signed ? (int64_t)(~(uint64_t)0 << (bits - 1)) : 0;
    *high = to == BOOL ? 1 : bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - is_signed)) - 1;
}

static double most_of(DType to)
{
    switch (to) {
    case F32:
        return FLT_MAX;
    case BF16:
        return 0x1.fep127;
    case F16:
        return 65504;
    default:
        return 0;
    }
}

static Status check_count(const Convert *c, Diag *d, const char *what, size_t n)
{
    const Place place = { .file = c->spec->flag, .where = c->spec->text, .byte = -1 };
    return n <= 1 || (int64_t)n == c->channels
               ? OK
               : fail_as(d, USAGE, place, "%s has %zu numbers: input %s has %" PRId64 " channels", what, n,
                         c->input->name, c->channels);
}

Status convert_open(Convert *c, Types *types, Diag *d, const Samples *s, const DataSpec *spec, const DataInput *input,
                    int64_t n, int64_t channels, bool turned)
{
    const Place place = { .file = spec->flag, .where = spec->text, .byte = -1 };
    *c = (Convert){ .file = s->path, .input = input, .spec = spec, .n = n, .channels = channels, .turned = turned };
    c->from = type_vector(types, s->dtype, n);
    c->to = input->type->dtype;
    c->most = most_of(c->to);
    c->affine = data_given(spec, DATA_scale) || spec->n_mean || spec->n_std;
    if (!dtype_is_float(c->to)) {
        bounds_of(c->to, &c->low, &c->high);
        if (c->affine)
            return fail_as(d, USAGE, place, "scale, mean and std make fractions: input %s holds %s", input->name,
                           dtype_name(c->to));
    }
    TRY(check_count(c, d, "mean", spec->n_mean));
    return check_count(c, d, "std", spec->n_std);
}

/* ---- converting ---- */

/* Channels last to channels first, bytes as they are. */
static void turn(const Convert *c, const char *from, char *to)
{
    const size_t width = (size_t)dtype_bits(c->from->dtype) / 8, channels = (size_t)c->channels;
    const size_t places = (size_t)c->n / channels;
    for (size_t k = 0; k < channels; k++)
        for (size_t i = 0; i < places; i++)
            memcpy(to + (k * places + i) * width, from + (i * channels + k) * width, width);
}

static double of_channel(const double *list, size_t n, int64_t channel, double none)
{
    return n == 0 ? none : list[n == 1 ? 0 : (size_t)channel];
}

/* One rounding at the end: the rest is computed in f64. */
static void scale_block(const Convert *c, double *x, int64_t n, int64_t channel)
{
    const double scale = c->spec->scale, divisor = c->spec->divisor;
    const double mean = of_channel(c->spec->mean, c->spec->n_mean, channel, 0);
    const double std = of_channel(c->spec->std, c->spec->n_std, channel, 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = (x[i] * scale / divisor - mean) / std;
}

static Status check_floats(const Convert *c, const double *x, int64_t n, Fault *f, int64_t *element)
{
    bool odd = false;
    const double most = c->most ? c->most : INFINITY;
    for (int64_t i = 0; i < n; i++)
        odd |= !(fabs(x[i]) <= most);
    for (int64_t i = 0; odd && i < n; i++) {
        if (isnan(x[i])) {
            *element += i;
            const Status status = fault_set(f, INVALID, c->file, "element %" PRId64 " is NaN", *element);
            f->instead = "a file without that sample, or FILE:rows=a:b for those before or behind it";
            return status;
        }
        if (!isinf(x[i]) && fabs(x[i]) > most) {
            *element += i;
            return fault_set(f, INVALID, c->file, "element %" PRId64 ": %g does not fit %s", *element, x[i],
                             dtype_name(c->to));
        }
    }
    return OK;
}

static Status to_floats(const Convert *c, const Tensor *raw, Tensor *out, int64_t first, Fault *f, int64_t *element)
{
    double x[BLOCK];
    const bool each = c->spec->n_mean > 1 || c->spec->n_std > 1;
    const int64_t places = each ? c->n / c->channels : c->n;
    for (int64_t i = 0, n; i < c->n; i += n) {
        n = places - i % places;
        n = n < BLOCK ? n : BLOCK;
        load_f64(x, raw, i, n);
        if (c->affine)
            scale_block(c, x, n, i / places);
        *element = i;
        TRY(check_floats(c, x, n, f, element));
        store_f64(out, first + i, x, n);
    }
    return OK;
}

static Status check_role(const Convert *c, int64_t x, Fault *f)
{
    const DataInput *in = c->input;
    if (in->role == DATA_PLAIN || in->count <= 0 || (x >= 0 && x < in->count) || (in->ignores && x == in->ignored))
        return OK;
    return fault_set(f, INVALID, c->file, "%s %" PRId64 " is outside 0..%" PRId64,
                     in->role == DATA_CLASSES ? "class" : "id", x, in->count - 1);
}

static Status to_integers(const Convert *c, const Tensor *raw, Tensor *out, int64_t first, Fault *f, int64_t *element)
{
    int64_t x[BLOCK];
    for (int64_t i = 0, n; i < c->n; i += n) {
        n = c->n - i < BLOCK ? c->n - i : BLOCK;
        load_i64(x, raw, i, n);
        for (int64_t k = 0; k < n; k++) {
            *element = i + k;
            if (c->from->dtype == U64 && x[k] < 0) /* more than i64 holds */
                return fault_set(f, INVALID, c->file, "element %" PRId64 ": %" PRIu64 " does not fit %s", *element,
                                 (uint64_t)x[k], dtype_name(c->to));
            if (x[k] < c->low || x[k] > c->high)
                return fault_set(f, INVALID, c->file, "element %" PRId64 ": %" PRId64 " does not fit %s", *element,
                                 x[k], dtype_name(c->to));
            TRY(check_role(c, x[k], f));
        }
        store_i64(out, first + i, x, n);
    }
    return OK;
}

static void copy_u64(const Convert *c, const Tensor *raw, Tensor *out, int64_t first)
{
    memcpy((uint64_t *)out->data + first, raw->data, (size_t)c->n * sizeof(uint64_t));
}

Status convert_sample(const Convert *c, const void *raw, void *room, Tensor *out, int64_t first, Fault *f,
                      int64_t *element)
{
    Tensor t = { .type = c->from, .data = (void *)(uintptr_t)raw };
    *element = 0;
    if (!c->n)
        return OK;
    if (c->turned) {
        turn(c, raw, room);
        t.data = room;
    }
    if (c->from->dtype == U64 && c->to == U64) {
        copy_u64(c, &t, out, first);
        return OK;
    }
    return dtype_is_float(c->to) ? to_floats(c, &t, out, first, f, element)
                                 : to_integers(c, &t, out, first, f, element);
}
