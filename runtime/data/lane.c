#include "runtime/data/lane.h"

#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "base/checked.h"

/* ---- words ---- */

const char *input_shown(Arena *arena, const DataInput *input)
{
    Text t;
    const Type *type = input->type;
    if (input->shown)
        return input->shown;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return type_text(arena, type);
    text_open(&t, arena);
    text_printf(&t, "%s[", dtype_name(type->dtype));
    for (int i = 0; i < type->rank; i++) {
        if (i)
            text_printf(&t, ",%" PRId64, type->dims[i]);
        else
            text_add(&t, "batch");
    }
    text_char(&t, ']');
    return text_get(&t);
}

/* ---- shapes ---- */

typedef struct Shape {
    int rank;
    int64_t dims[MAX_RANK];
} Shape;

static Shape shape_of(int rank, const int64_t *dims)
{
    Shape s = { .rank = rank };
    if (rank > 0)
        memcpy(s.dims, dims, (size_t)rank * sizeof *dims);
    return s;
}

static int64_t shape_elements(const Shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->dims[i];
    return n;
}

static Shape without_ones(const Shape *s)
{
    Shape t = { 0 };
    for (int i = 0; i < s->rank; i++)
        if (s->dims[i] != 1)
            t.dims[t.rank++] = s->dims[i];
    return t;
}

/* Equal but for dimensions of 1, which change nothing in memory. */
static bool shapes_agree(const Shape *a, const Shape *b)
{
    const Shape x = without_ones(a), y = without_ones(b);
    return x.rank == y.rank && bytes_equal(x.dims, y.dims, (size_t)x.rank * sizeof *x.dims);
}

/* Channels from the last place to the first. */
static Shape turned(const Shape *s)
{
    Shape t = *s;
    for (int i = 1; i < s->rank; i++)
        t.dims[i] = s->dims[i - 1];
    if (s->rank)
        t.dims[0] = s->dims[s->rank - 1];
    return t;
}

static Shape input_shape(const DataInput *input)
{
    return shape_of(input->type->rank - 1, input->type->dims + 1);
}

static Status does_not_fit(Dataset *ds, const Lane *lane, Diag *d, const Samples *s)
{
    const DataInput *input = lane->input;
    const DataSpec *spec = lane->spec;
    const Place place = { .file = s->path, .byte = -1 };
    const Shape want = input_shape(input), have = shape_of(s->rank - 1, s->dims + 1), last = turned(&have);
    Message *m =
        message_new(d, SEVERITY_ERROR, INVALID, place, "%s does not fit input %s %s",
                    type_text(d->arena, samples_type(s, ds->types)), input->name, input_shown(d->arena, input));
    Text shape;
    text_open(&shape, d->arena);
    for (int i = 0; i < want.rank; i++)
        text_printf(&shape, "%s%" PRId64, i ? "x" : "shape=", want.dims[i]);
    if (input->role == DATA_CLASSES && s->rank == input->type->rank + 1 && s->dims[s->rank - 1] == input->count)
        message_try(m, "numpy.save(path, y.argmax(-1)): one number for each label, or --loss cross_entropy:soft for "
                       "probabilities");
    else if (!convert_can(s->dtype, input->type->dtype))
        message_try(m, "numpy.save(path, x.astype(numpy.int64))");
    else if (!data_given(spec, DATA_layout) && have.rank > 1 && shapes_agree(&last, &want))
        message_try(m, "%s", data_spec_with(d->arena, spec, input->name, "layout=nhwc"));
    else if (!data_given(spec, DATA_shape) && want.rank && shape_elements(&have) == shape_elements(&want))
        message_try(m, "%s", data_spec_with(d->arena, spec, input->name, text_get(&shape)));
    return message_send(m);
}

Status lane_fit_array(Dataset *ds, Lane *lane, Diag *d, const Samples *array, Convert *convert)
{
    const DataSpec *spec = lane->spec;
    const Shape want = input_shape(lane->input);
    Shape have = shape_of(array->rank - 1, array->dims + 1);
    const Place place = { .file = spec->flag, .where = spec->text, .byte = -1 };
    if (data_given(spec, DATA_shape)) {
        const Shape said = shape_of(spec->rank, spec->dims);
        int64_t n;
        if (!checked_product_i64(said.dims, said.rank, ds->limits->elements, &n) || n != shape_elements(&have))
            return fail_as(d, USAGE, place, "shape has another number of elements than the %" PRId64 " of a sample",
                           shape_elements(&have));
        have = said;
    }
    const bool turns = spec->nhwc && have.rank > 1;
    if (turns)
        have = turned(&have);
    if (!shapes_agree(&have, &want) || !convert_can(array->dtype, lane->input->type->dtype))
        return does_not_fit(ds, lane, d, array);
    return convert_open(convert, ds->types, d, array, spec, lane->input, shape_elements(&have),
                        turns       ? have.dims[0]
                        : want.rank ? want.dims[0]
                                    : 1,
                        turns);
}

/* Tokens are one long row: samples are windows of it. */
static Status fit_tokens(Dataset *ds, Lane *lane, Diag *d)
{
    Samples *s = lane->source;
    const Type *t = lane->input->type;
    if (t->rank != 2 || !convert_can(s->dtype, t->dtype) || t->dims[1] < 1)
        return does_not_fit(ds, lane, d, s);
    lane->step = t->dims[1];
    lane->samples = (s->dims[0] - lane->tail) / lane->step;
    return convert_open(&lane->convert, ds->types, d, s, lane->spec, lane->input, lane->step, 1, false);
}

static Status take_rows(Lane *lane, Diag *d)
{
    const DataSpec *spec = lane->spec;
    const int64_t to = spec->to < 0 ? lane->samples : spec->to;
    const Place place = { .file = spec->flag, .where = spec->text, .byte = -1 };
    if (spec->from > to || to > lane->samples)
        return fail_as(d, USAGE, place, "rows: there are %" PRId64 " samples", lane->samples);
    lane->first = spec->from;
    lane->samples = to - spec->from;
    return OK;
}

Status lane_fit(Dataset *ds, Lane *lane, Diag *d)
{
    Samples *s = lane->source;
    if (s->tokens) {
        TRY(fit_tokens(ds, lane, d));
    } else {
        TRY(lane_fit_array(ds, lane, d, s, &lane->convert));
        lane->samples = s->dims[0];
        lane->step = lane->convert.n;
    }
    const size_t room = (size_t)lane->convert.n * s->width;
    ds->room = room > ds->room ? room : ds->room;
    lane->says = arena_printf(&ds->arena, "%s -> %s", type_text(&ds->arena, samples_type(s, ds->types)),
                              dtype_name(lane->input->type->dtype));
    return take_rows(lane, d);
}

/* ---- reading ---- */

Status lane_read(const Lane *lane, int64_t sample, void *room, Tensor *out, int64_t row, Fault *f)
{
    const Samples *s = lane->source;
    const int64_t n = lane->convert.n, at = (lane->first + sample) * lane->step + lane->shift;
    int64_t element = 0;
    TRY(samples_read(s, f, at, n, room));
    const Status status =
        convert_sample(&lane->convert, room, (char *)room + (size_t)n * s->width, out, row * n, f, &element);
    if (status == OK)
        return OK;
    return s->tokens ? fault_where(f, "token %" PRId64, at + element)
                     : fault_where(f, "sample %" PRId64, lane->first + sample);
}
