/* Pools. */
#include <inttypes.h>

#include "codegen/source/c_parts.h"

const char *const c_outer[] = { "h", "i", "j" }, *const c_taps[] = { "o", "p", "q" },
                  *const c_inner[] = { "t", "u", "v" };

static bool pool_is_known(CSource *s, const Node *n)
{
    for (int i = QPOOL_X_SCALE; i <= QPOOL_Y_ZERO; i++)
        if (!c_constant(s, in(n, i)))
            return false;
    return true;
}

/* Opens loops over channels and places, and says what is at the head of each place. */
static void open_places(CSource *s, int64_t channels, const Window *w)
{
    c_loop(s, "c", channels);
    for (int d = 0; d < w->rank; d++)
        c_loop(s, c_outer[3 - w->rank + d], w->out[d]);
}

bool c_leaves_data(const Window *w, int d)
{
    return w->begin[d] > 0 ||
           (w->out[d] - 1) * w->stride[d] - w->begin[d] + (w->kernel[d] - 1) * w->dilation[d] >= w->in[d];
}

void c_open_taps(CSource *s, const Window *w)
{
    for (int d = 0; d < w->rank; d++) {
        const int name = 3 - w->rank + d;
        Text t;
        text_open(&t, s->arena);
        c_loop(s, c_taps[name], w->kernel[d]);
        if (w->out[d] != 1)
            text_printf(&t, w->stride[d] == 1 ? "%s" : "%s * %" PRId64, c_outer[name], w->stride[d]);
        if (w->kernel[d] != 1)
            text_printf(&t, w->dilation[d] == 1 ? "%s%s" : "%s%s * %" PRId64, t.n ? " + " : "", c_taps[name],
                        w->dilation[d]);
        if (w->begin[d])
            text_printf(&t, "%s%" PRId64, t.n ? " - " : "-", w->begin[d]);
        if (w->in[d] != 1 || c_leaves_data(w, d))
            c_line(s, "const int %s = %s;", c_inner[name], t.n ? text_get(&t) : "0");
        if (!c_leaves_data(w, d))
            continue;
        c_open(s, "if (%s < 0 || %s >= %" PRId64 ") {", c_inner[name], c_inner[name], w->in[d]);
        c_line(s, "continue;");
        c_close_to(s, s->depth - 1);
    }
}

static const char *data_index(CSource *s, int64_t channels, const Window *w)
{
    CAxis x[4] = { { "c", channels } };
    for (int d = 0; d < w->rank; d++)
        x[1 + d] = (CAxis){ c_inner[3 - w->rank + d], w->in[d] };
    return c_index(s, w->rank + 1, x);
}

static const char *place_index(CSource *s, int64_t channels, const Window *w)
{
    CAxis y[4] = { { "c", channels } };
    for (int d = 0; d < w->rank; d++)
        y[1 + d] = (CAxis){ c_outer[3 - w->rank + d], w->out[d] };
    return c_index(s, w->rank + 1, y);
}

static const char *window_text(CSource *s, const char *what, const Type *x, const Window *w)
{
    Text t;
    text_open(&t, s->arena);
    text_printf(&t, "%s of %s, windows of ", what, c_shape(s, x));
    for (int d = 0; d < w->rank; d++)
        text_printf(&t, "%s%" PRId64, d ? " x " : "", w->kernel[d]);
    return text_get(&t);
}

static Status place_window(CSource *s, const Node *n, const WindowAttr *at, Window *w)
{
    const Type *x = in(n, 0)->type;
    if (x->rank > 5)
        return c_refuse(n, "windows have more than three dimensions", NULL);
    const char *why = window_place(w, s->arena, at, x->rank - 2, x->dims + 2, NULL);
    return why ? c_refuse(n, why, NULL) : OK;
}

Status c_print_max_pool(CSource *s, const Node *n)
{
    const PoolAttr *at = n->attr;
    const Node *x = in(n, 0);
    Window w;
    if (n->type->kind != TYPE_TENSOR)
        return c_refuse(n, "it says where its values were", NULL);
    TRY(place_window(s, n, &at->window, &w));
    const int64_t channels = x->type->dims[0] * x->type->dims[1];
    const char *name = c_name(s, c_text_of(s, n)), *type = c_type(n->type->dtype);
    c_function(s, name, n, 1, &x, window_text(s, "the largest", x->type, &w));
    open_places(s, channels, &w);
    const int depth = s->depth;
    c_line(s, "%s most = %s;", type, n->type->dtype == I8 ? "INT8_MIN" : "0");
    c_open_taps(s, &w);
    const char *data = data_index(s, channels, &w);
    c_open(s, "if (x[%s] > most) {", data);
    c_line(s, "most = x[%s];", data);
    c_close_to(s, depth);
    c_line(s, "y[%s] = most;", place_index(s, channels, &w));
    c_close_to(s, 0);
    c_call(s, name, 2, (const Node *const[]){ x, n });
    return OK;
}

/* Whether each window sees some data. */
static bool windows_see(const Window *w)
{
    for (int d = 0; d < w->rank; d++)
        for (int64_t i = 0; i < w->out[d]; i++) {
            int64_t seen = 0;
            for (int64_t k = 0; k < w->kernel[d]; k++) {
                const int64_t at = i * w->stride[d] - w->begin[d] + k * w->dilation[d];
                seen += at >= 0 && at < w->in[d];
            }
            if (!seen)
                return false;
        }
    return true;
}

/* The numbers of windows, added up and divided as floats of 32 bits are: what is rounded there is rounded here. */
Status c_print_average_pool(CSource *s, const Node *n)
{
    const QpoolAttr *at = n->attr;
    const Node *x = in(n, QPOOL_X);
    const Type *y = type_result(n->type, 0);
    Window w;
    if (!pool_is_known(s, n))
        return c_refuse(n, "its scales are computed", NULL);
    TRY(place_window(s, n, &at->pool.window, &w));
    for (int d = 0; d < w.rank && at->pool.count_include_pad; d++)
        if (c_leaves_data(&w, d))
            return c_refuse(n, "an average counts what is padded", "count_include_pad=0, as in the model");
    if (!windows_see(&w))
        return c_refuse(n, "a window sees no data", NULL);
    const int64_t channels = x->type->dims[0] * x->type->dims[1], zero = c_integer(s, in(n, QPOOL_Y_ZERO));
    const CFixed sx = c_fixed(c_float(s, in(n, QPOOL_X_SCALE))), sy = c_fixed(c_float(s, in(n, QPOOL_Y_SCALE)));
    CodeRange range = code_range_of(&at->codes, y->dtype, (f32)zero);
    const char *name = c_name(s, c_text_of(s, n));
    c_function(s, name, n, 1, &x, window_text(s, "averages", x->type, &w));
    open_places(s, channels, &w);
    const int depth = s->depth;
    c_line(s, "int64_t sum = 0;");
    c_line(s, "int64_t count = 0;");
    c_open_taps(s, &w);
    const char *data = arena_printf(s->arena, "x[%s]", data_index(s, channels, &w));
    c_line(s, "sum = round_24(sum + round_24(%s * INT64_C(%" PRId64 ")));",
           c_centred(s, data, c_integer(s, in(n, QPOOL_X_ZERO))), sx.m);
    c_line(s, "count++;");
    c_close_to(s, depth);
    range.z = 0;
    c_store(s, place_index(s, channels, &w),
            arena_printf(s->arena, "average(sum, count, INT64_C(%" PRId64 "), %d, %" PRId64 ")", sy.m,
                         sx.shift - sy.shift, zero),
            &range, y->dtype);
    c_close_to(s, 0);
    c_call(s, name, 2, (const Node *const[]){ x, n });
    return OK;
}

/* f32(sum) * f32(sx / f32(sy * n)). */
Status c_print_global_average_pool(CSource *s, const Node *n)
{
    const QglobalAttr *at = n->attr;
    const Node *x = in(n, QPOOL_X);
    const Type *y = type_result(n->type, 0);
    if (!pool_is_known(s, n))
        return c_refuse(n, "its scales are computed", NULL);
    const int64_t channels = x->type->dims[0] * x->type->dims[1], count = type_elements(x->type) / channels;
    const f32 all = c_float(s, in(n, QPOOL_Y_SCALE)) * (f32)count;
    CFixed m = c_fixed(c_float(s, in(n, QPOOL_X_SCALE)) / all);
    if (!c_is_factor(&m))
        return c_refuse(n, "its scales are too far apart", NULL);
    if (count > INT32_MAX / 256)
        return c_refuse(n, "a sum may leave 32 bits", NULL);
    const CodeRange range = code_range_of(&at->codes, y->dtype, (f32)c_integer(s, in(n, QPOOL_Y_ZERO)));
    const int64_t zero = c_integer(s, in(n, QPOOL_X_ZERO));
    const char *name = c_name(s, c_text_of(s, n));
    c_function(s, name, n, 1, &x, arena_printf(s->arena, "averages of the channels of %s", c_shape(s, x->type)));
    c_loop(s, "c", channels);
    const int depth = s->depth;
    c_line(s, "int32_t sum = %" PRId64 ";", -zero * count);
    c_loop(s, "i", count);
    c_line(s, "sum += x[%s];", c_index(s, 2, (const CAxis[]){ { "c", channels }, { "i", count } }));
    c_close_to(s, depth);
    c_store(s, channels == 1 ? "0" : "c", arena_printf(s->arena, "requantize(sum, %" PRId64 ", %d)", m.m, m.shift),
            &range, y->dtype);
    c_close_to(s, 0);
    c_call(s, name, 2, (const Node *const[]){ x, n });
    return OK;
}
