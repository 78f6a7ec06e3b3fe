/* Bodies of kernels of pools: a thread for each window; of gradients one for each element of the data, which walks its windows
 * in their order. */
#include "ops/window/window_kernels.h"

#include <inttypes.h>

#include "ops/card/access.h"
#include "ops/card/reduction.h"

/* ---- windows ---- */

static bool place(Window *w, const Node *n, OwnKernels *to, int rank, const int64_t *extents)
{
    const PoolAttr *at = n->attr;
    return rank > 0 && !window_place(w, to->arena, &at->window, rank, extents, NULL);
}

/* The coordinates of number `o`: the image, which counts channels too, and one along each extent. */
static void print_coordinates(Text *t, const char *name, int rank, const int64_t *extents)
{
    int64_t below = 1;
    for (int d = rank - 1; d >= 0; d--) {
        text_printf(t, "    const i64 %s%d = o / %" PRId64 " %% %" PRId64 ";\n", name, d, below, extents[d]);
        below *= extents[d];
    }
    text_printf(t, "    const i64 image = o / %" PRId64 ";\n", below);
}

/* The number of the element with coordinates NAME0, .. */
static void print_number(Text *t, const char *number, const char *name, int rank, const int64_t *extents)
{
    int64_t below = 1;
    text_printf(t, "    const i64 %s = 0", number);
    for (int d = rank - 1; d >= 0; d--) {
        text_printf(t, " + %s%d * %" PRId64, name, d, below);
        below *= extents[d];
    }
    text_printf(t, ";\n");
}

/* Loops over the taps of the window at a0, .. that lie inside; inside of them `at` counts the elements of an image. */
static void open_taps(Text *t, const Window *w)
{
    for (int d = 0; d < w->rank; d++) {
        text_printf(t, "    for (i64 k%d = 0; k%d < %" PRId64 "; k%d++) {\n", d, d, w->kernel[d], d);
        text_printf(t, "    const i64 x%d = a%d * %" PRId64 " - %" PRId64 " + k%d * %" PRId64 ";\n", d, d, w->stride[d],
                    w->begin[d], d, w->dilation[d]);
        text_printf(t, "    if (x%d < 0 || x%d >= %" PRId64 ")\n        continue;\n", d, d, w->in[d]);
    }
    print_number(t, "at", "x", w->rank, w->in);
}

static void close_braces(Text *t, int n)
{
    for (int i = 0; i < n; i++)
        text_printf(t, "    }\n");
}

/* ---- the largest ---- */

static const char *lowest(DType d)
{
    static const char *const integers[DTYPE_COUNT] = {
        [I8] = "-128", [I16] = "-32768", [I32] = "-2147483648l", [I64] = "(i64)0x8000000000000000ul", [U8] = "0",
        [U16] = "0",   [U32] = "0"
    };
    return dtype_is_float(d) ? "-(T)Q_INF" : integers[d];
}

/* The first of the largest; a NaN wins over all, and 0 over -0. */
static const char *is_better(DType wide)
{
    if (wide == F32)
        return "(!(x <= best) && best == best) || (x == 0 && best == 0 && bits_of(best) != 0 && bits_of(x) == 0)";
    if (wide == F64)
        return "(!(x <= best) && best == best) || "
               "(x == 0 && best == 0 && half_bits64(best) != 0 && half_bits64(x) == 0)";
    return "x > best";
}

/* Finds the number of the largest of a window in its image, `where`, -1 of a window of padding, and what it is, `best`. */
static void find_largest(Text *t, const Window *w, DType of)
{
    text_printf(t, "    typedef %s T;\n", dtype_name(dtype_wide(of)));
    print_coordinates(t, "a", w->rank, w->out);
    text_printf(t, "    i64 where = -1;\n    T best = (T)(%s);\n", lowest(of));
    open_taps(t, w);
    text_printf(t, "    const T x = IN0(image * %" PRId64 " + at);\n", window_product(w->rank, w->in));
    text_printf(t, "    if (where < 0 || %s) {\n        best = x;\n        where = at;\n    }\n",
                is_better(dtype_wide(of)));
    close_braces(t, w->rank);
}

/* The number of an element in its image when the first spatial dimension is the fastest. */
static void turn_number(Text *t, const Window *w)
{
    int64_t stride = window_product(w->rank, w->in), below = 1;
    text_printf(t, "    const i64 turned = 0");
    for (int d = w->rank - 1; d >= 0; d--) {
        stride /= w->in[d] ? w->in[d] : 1;
        text_printf(t, " + where / %" PRId64 " %% %" PRId64 " * %" PRId64, below, w->in[d], stride);
        below *= w->in[d];
    }
    text_printf(t, ";\n");
}

bool kernels_max_pool(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, 0)->type;
    const bool turned = ((const PoolAttr *)n->attr)->storage_order != 0;
    Window w;
    Text t;
    if (x->dtype == U64 || !place(&w, n, to, x->rank - 2, x->dims + 2))
        return false;
    own_kernel_open(to, &t);
    find_largest(&t, &w, x->dtype);
    text_printf(&t, "    OUT0(o, best);\n");
    if (type_results(n->type) > 1) {
        if (turned)
            turn_number(&t, &w);
        text_printf(&t, "    OUT1(o, where < 0 ? where : image * %" PRId64 " + %s);\n", window_product(w.rank, w.in),
                    turned ? "turned" : "where");
    }
    own_kernel_close(to, "largest", type_elements(access_result(n, 0)), 0, &t);
    return true;
}

/* ---- means ---- */

/* How many elements the window at a0, .. is a mean of, as `count`: of those with padding all that lie in it. */
static void print_count(Text *t, const Window *w, bool padding)
{
    text_printf(t, "    i64 count = 1;\n");
    for (int d = 0; d < w->rank; d++) {
        const int64_t end = padding ? w->in[d] + w->begin[d] + w->end[d] : w->in[d];
        text_printf(t, "    {\n    const i64 from = a%d * %" PRId64 " - %" PRId64 ";\n", d, w->stride[d],
                    padding ? 0 : w->begin[d]);
        text_printf(t, "    const i64 first = from >= 0 ? 0 : (-from + %" PRId64 ") / %" PRId64 ";\n",
                    w->dilation[d] - 1, w->dilation[d]);
        text_printf(
            t, "    const i64 room = %" PRId64 " - from, taps = room > 0 ? (room + %" PRId64 ") / %" PRId64 " : 0;\n",
            end, w->dilation[d] - 1, w->dilation[d]);
        text_printf(t, "    const i64 behind = taps < %" PRId64 " ? taps : %" PRId64 ";\n", w->kernel[d], w->kernel[d]);
        text_printf(t, "    count *= behind > first ? behind - first : 0;\n    }\n");
    }
}

void window_print_mean(Text *t, const Window *w, bool padding, const char *element)
{
    print_coordinates(t, "a", w->rank, w->out);
    text_printf(t, "    T sum = 0;\n");
    open_taps(t, w);
    text_printf(t, "    const i64 at_of_data = image * %" PRId64 " + at;\n    sum += %s;\n",
                window_product(w->rank, w->in), element);
    close_braces(t, w->rank);
    print_count(t, w, padding);
    text_printf(t, "    const T mean = sum / (T)count;\n");
}

bool kernels_average_pool(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, 0)->type;
    Window w;
    Text t;
    if (!place(&w, n, to, x->rank - 2, x->dims + 2))
        return false;
    own_kernel_open(to, &t);
    text_printf(&t, "    typedef %s T;\n", dtype_name(dtype_wide(x->dtype)));
    window_print_mean(&t, &w, ((const PoolAttr *)n->attr)->count_include_pad, "IN0(at_of_data)");
    text_printf(&t, "    OUT0(o, mean);\n");
    own_kernel_close(to, "mean", type_elements(access_result(n, 0)), 0, &t);
    return true;
}

/* ---- the way back ---- */

/* Loops over the windows that element x0, .. of an image may lie in; inside of them `window` counts those of an image. */
static void open_windows(Text *t, const Window *w)
{
    for (int d = 0; d < w->rank; d++) {
        const int64_t reach = (w->kernel[d] - 1) * w->dilation[d], step = w->stride[d];
        text_printf(t, "    const i64 far%d = x%d + %" PRId64 ", near%d = far%d - %" PRId64 ";\n", d, d, w->begin[d], d,
                    d, reach);
        text_printf(t, "    for (i64 a%d = near%d > 0 ? (near%d + %" PRId64 ") / %" PRId64 " : 0; ", d, d, d, step - 1,
                    step);
        text_printf(t, "a%d < %" PRId64 " && a%d * %" PRId64 " <= far%d; a%d++) {\n", d, w->out[d], d, step, d, d);
        text_printf(t, "    if ((far%d - a%d * %" PRId64 ") %% %" PRId64 ")\n        continue;\n", d, d, step,
                    w->dilation[d]);
    }
    print_number(t, "window", "a", w->rank, w->out);
}

bool kernels_of_max_grad(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, 0)->type, *dy = in(n, 1)->type;
    Window w;
    Text t;
    if (!place(&w, n, to, x->rank - 2, x->dims + 2))
        return false;
    const size_t at = own_scratch(to, type_elements(dy) * (int64_t)sizeof(i64));
    own_kernel_open(to, &t);
    find_largest(&t, &w, x->dtype);
    text_printf(&t, "    ((i64 *)(scratch + %zu))[o] = where;\n", at);
    if (type_elements(dy))
        own_kernel_close(to, "largest", type_elements(dy), 0, &t);
    own_kernel_open(to, &t);
    print_coordinates(&t, "x", w.rank, w.in);
    text_printf(&t, "    const i64 own = o %% %" PRId64 ";\n", window_product(w.rank, w.in));
    text_printf(&t, "    %s sum = 0;\n", dtype_name(dtype_wide(dy->dtype)));
    open_windows(&t, &w);
    text_printf(&t, "    const i64 from = image * %" PRId64 " + window;\n", window_product(w.rank, w.out));
    text_printf(&t, "    if (((const i64 *)(scratch + %zu))[from] == own)\n        sum += IN1(from);\n", at);
    close_braces(&t, w.rank);
    text_printf(&t, "    OUT0(o, sum);\n");
    own_kernel_close(to, "back", type_elements(x), 0, &t);
    return true;
}

bool kernels_of_mean_grad(const Node *n, OwnKernels *to, const int64_t *extents)
{
    const Type *dy = in(n, 0)->type;
    Window w;
    Text t;
    if (!place(&w, n, to, dy->rank - 2, extents))
        return false;
    own_kernel_open(to, &t);
    text_printf(&t, "    typedef %s T;\n", dtype_name(dtype_wide(dy->dtype)));
    print_coordinates(&t, "x", w.rank, w.in);
    text_printf(&t, "    T sum = 0;\n");
    open_windows(&t, &w);
    print_count(&t, &w, ((const PoolAttr *)n->attr)->count_include_pad);
    text_printf(&t, "    sum += IN0(image * %" PRId64 " + window) / (T)count;\n", window_product(w.rank, w.out));
    close_braces(&t, w.rank);
    text_printf(&t, "    OUT0(o, sum);\n");
    own_kernel_close(to, "back", type_elements(access_result(n, 0)), 0, &t);
    return true;
}
