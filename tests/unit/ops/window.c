/* Convolutions and pools against loops over every tap; where windows stand; what is refused. */
#include "ops/window/window.h"
#include "support/calls.h"

/* ---- where windows stand ---- */

typedef struct Placement {
    int64_t in, kernel, stride, dilation, pads[2];
    int auto_pad;
    bool ceil_mode;
    int64_t out, begin, end;
} Placement;

static const Placement placements[] = {
    { 5, 3, 1, 1, { 0, 0 }, PAD_NOTSET, false, 3, 0, 0 },
    { 5, 3, 2, 1, { 1, 1 }, PAD_NOTSET, false, 3, 1, 1 },
    { 7, 3, 1, 2, { 2, 0 }, PAD_NOTSET, false, 5, 2, 0 },
    { 6, 3, 2, 1, { 0, 0 }, PAD_NOTSET, false, 2, 0, 0 },
    { 6, 3, 2, 1, { 0, 0 }, PAD_NOTSET, true, 3, 0, 0 },
    { 4, 1, 4, 1, { 0, 1 }, PAD_NOTSET, true, 1, 0, 1 }, /* a second window would begin behind the data */
    { 3, 2, 3, 1, { 1, 1 }, PAD_NOTSET, true, 2, 1, 1 },
    { 2, 384, 384, 1, { 0, 0 }, PAD_NOTSET, true, 1, 0, 0 }, /* larger than the data, by less than a stride */
    { 4, 9, 4, 1, { 1, 1 }, PAD_NOTSET, true, 1, 1, 1 },
    { 5, 3, 2, 1, { 9, 9 }, PAD_VALID, false, 2, 0, 0 },
    { 6, 3, 2, 1, { 0, 0 }, PAD_SAME_UPPER, false, 3, 0, 1 },
    { 6, 3, 2, 1, { 0, 0 }, PAD_SAME_LOWER, false, 3, 1, 0 },
    { 5, 2, 4, 1, { 0, 0 }, PAD_SAME_UPPER, false, 2, 0, 1 },
    { 5, 1, 4, 1, { 0, 0 }, PAD_SAME_UPPER, false, 2, 0, 0 },
    { DIM_UNKNOWN, 3, 2, 1, { 1, 1 }, PAD_NOTSET, false, DIM_UNKNOWN, 1, 1 },
};

static Status windows_stand(void *arg)
{
    Context *c = arg;
    for (size_t i = 0; i < COUNT(placements); i++) {
        const Placement *p = &placements[i];
        const WindowAttr a = { .auto_pad = p->auto_pad,
                               .kernel_shape = { 1, &p->kernel },
                               .strides = { 1, &p->stride },
                               .dilations = { 1, &p->dilation },
                               .pads = { 2, p->pads },
                               .ceil_mode = p->ceil_mode };
        Window w;
        assert_null(window_place(&w, &c->arena, &a, 1, &p->in, NULL));
        if (w.out[0] != p->out || w.begin[0] != p->begin || w.end[0] != p->end)
            print_error("placement %zu: %d, pads %d and %d\n", i, (int)w.out[0], (int)w.begin[0], (int)w.end[0]);
        assert_true(w.out[0] == p->out && w.begin[0] == p->begin && w.end[0] == p->end);
    }
    return OK;
}

/* ---- random windows ---- */

typedef struct Setting {
    int rank;
    int64_t images, channels, in[3], kernel[3];
    WindowAttr at;
    Window w;
} Setting;

static Setting draw_setting(Context *c, Rng *rng, int round)
{
    Setting s = { .rank = 1 + round % 3, .images = 1 + round % 2, .channels = rng_range(rng, 1, 3) };
    for (int i = 0; i < s.rank; i++)
        s.in[i] = rng_range(rng, 1, s.rank == 3 ? 5 : 9);
    sample_window(rng, &c->arena, s.rank, s.in, s.kernel, &s.at);
    assert_null(window_place(&s.w, &c->arena, &s.at, s.rank, s.in, s.kernel));
    return s;
}

/* Element a tap sees, -1 in the padding. */
static int64_t seen(const Window *w, const int64_t *at, const int64_t *tap)
{
    int64_t offset = 0;
    for (int i = 0; i < w->rank; i++) {
        const int64_t p = at[i] * w->stride[i] - w->begin[i] + tap[i] * w->dilation[i];
        if (p < 0 || p >= w->in[i])
            return -1;
        offset = offset * w->in[i] + p;
    }
    return offset;
}

static Node *data(Build *b, Rng *rng, DType dtype, const Setting *s, int64_t channels)
{
    int64_t dims[5] = { s->images, channels };
    memcpy(dims + 2, s->in, (size_t)s->rank * sizeof *dims);
    return draw(b, rng, dtype, s->rank + 2, dims);
}

/* Sums of each window, by a function of the values it sees. */
typedef void See(double *state, bool inside, double v, int64_t where);

static void look(const Setting *s, const Tensor *x, int64_t image, const int64_t *at_, See *see, double *state)
{
    const int64_t taps = window_product(s->rank, s->w.kernel), size = window_product(s->rank, s->w.in);
    int64_t tap[3] = { 0 };
    for (int64_t k = 0; k < taps; k++) {
        const int64_t p = seen(&s->w, at_, tap);
        see(state, p >= 0, p < 0 ? 0 : at(x, image * size + p), image * size + p);
        position_next(s->rank, s->w.kernel, tap);
    }
}

/* ---- conv: the bits of a loop over (tap, channel) ---- */

static f32 conv_at(const Setting *s, const Tensor *x, const Tensor *w, int64_t image, int64_t groups, int64_t m,
                   int64_t results, const int64_t *at_)
{
    const int64_t taps = window_product(s->rank, s->w.kernel), size = window_product(s->rank, s->w.in);
    const int64_t first = (image * groups + m / results) * s->channels;
    int64_t tap[3] = { 0 };
    f32 sum = 0;
    for (int64_t k = 0; k < taps; k++) {
        const int64_t p = seen(&s->w, at_, tap);
        for (int64_t ch = 0; ch < s->channels; ch++)
            sum = fmaf((f32)at(w, (m * s->channels + ch) * taps + k), p < 0 ? 0 : (f32)at(x, (first + ch) * size + p),
                       sum);
        position_next(s->rank, s->w.kernel, tap);
    }
    return sum;
}

static Status convolutions_in_order(void *arg)
{
    Context *c = arg;
    Rng rng = { 21 };
    for (int round = 0; round < 120; round++) {
        Build b = fresh(c);
        const Setting s = draw_setting(c, &rng, round);
        const int64_t groups = rng_range(&rng, 1, 3), results = rng_range(&rng, 1, 3), out = groups * results;
        const ConvAttr a = { .window = s.at, .group = groups };
        int64_t filter[5] = { out, s.channels };
        memcpy(filter + 2, s.kernel, sizeof s.kernel);
        Node *x = data(&b, &rng, F32, &s, groups * s.channels), *w = draw(&b, &rng, F32, s.rank + 2, filter);
        Node *bias = draw(&b, &rng, F32, 1, &out);
        Node *y = round % 2 ? CALL_ATTR(&b, conv, a, x, w, bias) : CALL_ATTR(&b, conv, a, x, w);
        Tensor *t = value_of(c, y, NULL);
        const int64_t size = window_product(s.rank, s.w.out);
        int64_t at_[3] = { 0 };
        for (int64_t i = 0; i < tensor_elements(t); i++) {
            const int64_t m = i / size % out;
            f32 want = conv_at(&s, constant(x), constant(w), i / size / out, groups, m, results, at_);
            want = round % 2 ? want + (f32)at(constant(bias), m) : want;
            assert_true((f32)at(t, i) == want);
            position_next(s.rank, s.w.out, at_);
        }
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* <conv(x, w), y> = <x, conv_transpose(y, w)>: what one spreads the other gathers. */
static Status transposes_are_adjoint(void *arg)
{
    Context *c = arg;
    Rng rng = { 22 };
    for (int round = 0; round < 120; round++) {
        Build b = fresh(c);
        Setting s = draw_setting(c, &rng, round);
        const int64_t groups = rng_range(&rng, 1, 2), results = rng_range(&rng, 1, 3);
        int64_t filter[5] = { groups * results, s.channels }, pads[6], more[3];
        memcpy(filter + 2, s.kernel, sizeof s.kernel);
        for (int i = 0; i < s.rank; i++) {
            pads[i] = s.w.begin[i], pads[s.rank + i] = s.w.end[i];
            more[i] = s.in[i] - ((s.w.out[i] - 1) * s.w.stride[i] + (s.w.kernel[i] - 1) * s.w.dilation[i] + 1 -
                                 s.w.begin[i] - s.w.end[i]);
            if (more[i] < 0) /* a window that sees padding at its end only */
                pads[s.rank + i] += more[i], more[i] = 0;
        }
        s.at.auto_pad = PAD_NOTSET;
        s.at.pads = (Ints){ 2 * s.rank, pads };
        const ConvAttr forward = { .window = s.at, .group = groups };
        const ConvTransposeAttr back = { .window = s.at, .group = groups, .output_padding = { s.rank, more } };
        Node *x = data(&b, &rng, F64, &s, groups * s.channels), *w = draw(&b, &rng, F64, s.rank + 2, filter);
        Node *y = CALL_ATTR(&b, conv, forward, x, w);
        Node *dy = draw(&b, &rng, F64, s.rank + 2, y->type->dims);
        Node *dx = CALL_ATTR(&b, conv_transpose, back, dy, w);
        assert_non_null(dx);
        assert_ptr_equal(dx->type, x->type);
        Tensor *t = value_of(c, build_tuple(&b, 2, (Node *[]){ y, dx }), NULL);
        double left = 0, right = 0;
        for (int64_t i = 0; i < tensor_elements(t->items[0]); i++)
            left += at(t->items[0], i) * at(constant(dy), i);
        for (int64_t i = 0; i < tensor_elements(t->items[1]); i++)
            right += at(t->items[1], i) * at(constant(x), i);
        assert_true(close_to(left, right, 1e-12));
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* Without offsets and with a mask of ones a steered convolution is a convolution. */
static Status unsteered_is_plain(void *arg)
{
    Context *c = arg;
    Rng rng = { 23 };
    for (int round = 0; round < 30; round++) {
        Build b = fresh(c);
        Setting s = draw_setting(c, &rng, round);
        s.at.auto_pad = PAD_NOTSET;
        assert_null(window_place(&s.w, &c->arena, &s.at, s.rank, s.in, s.kernel));
        int64_t filter[5] = { 2, s.channels }, steer[5] = { s.images };
        memcpy(filter + 2, s.kernel, sizeof s.kernel);
        memcpy(steer + 2, s.w.out, (size_t)s.rank * sizeof *steer);
        steer[1] = s.rank * window_product(s.rank, s.kernel);
        const ConvAttr plain = { .window = s.at, .group = 1 };
        const DeformConvAttr steered = { .window = s.at, .group = 1, .offset_group = 1 };
        Node *x = data(&b, &rng, F32, &s, s.channels), *w = draw(&b, &rng, F32, s.rank + 2, filter);
        Node *zeros = sample_tensor(&b, &rng, F32, s.rank + 2, steer, 0, 0);
        Tensor *t = value_of(c,
                             build_tuple(&b, 2,
                                         (Node *[]){ CALL_ATTR(&b, conv, plain, x, w),
                                                     CALL_ATTR(&b, deform_conv, steered, x, w, zeros) }),
                             NULL);
        assert_true(tensor_same(t->items[0], t->items[1]));
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* ---- pools ---- */

static void see_max(double *state, bool inside, double v, int64_t where)
{
    if (inside && (state[1] < 0 || v > state[0])) {
        state[0] = v;
        state[1] = (double)where;
    }
}

static void see_sum(double *state, bool inside, double v, int64_t where)
{
    (void)where;
    state[0] += v;
    state[1] += inside;
}

static void see_cubes(double *state, bool inside, double v, int64_t where)
{
    (void)inside, (void)where;
    state[0] += fabs(v * v * v);
}

static Status pools_see_their_windows(void *arg)
{
    Context *c = arg;
    Rng rng = { 24 };
    for (int round = 0; round < 90; round++) {
        Build b = fresh(c);
        const Setting s = draw_setting(c, &rng, round);
        PoolAttr a = { .window = s.at, .p = 3 };
        a.window.kernel_shape = (Ints){ s.rank, s.kernel };
        Node *x = data(&b, &rng, F64, &s, s.channels);
        Node *max = build_node_n(&b, OP_max_pool, &a, 1, &x, 2);
        Node *parts[] = { build_part(&b, max, 0), build_part(&b, max, 1), CALL_ATTR(&b, average_pool, a, x),
                          CALL_ATTR(&b, lp_pool, a, x) };
        Tensor *t = value_of(c, build_tuple(&b, 4, parts), NULL);
        const int64_t size = window_product(s.rank, s.w.out);
        int64_t at_[3] = { 0 };
        for (int64_t i = 0; i < tensor_elements(t->items[0]); i++) {
            double most[2] = { -INFINITY, -1 }, sum[2] = { 0 }, cubes[2] = { 0 };
            look(&s, constant(x), i / size, at_, see_max, most);
            look(&s, constant(x), i / size, at_, see_sum, sum);
            look(&s, constant(x), i / size, at_, see_cubes, cubes);
            assert_true(at(t->items[0], i) == most[0]);
            assert_true(at(t->items[1], i) == most[1]);
            assert_true(close_to(at(t->items[2], i), sum[0] / sum[1], 1e-13));
            assert_true(close_to(at(t->items[3], i), cbrt(cubes[0]), 1e-13));
            position_next(s.rank, s.w.out, at_);
        }
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* The largest codes are those that are found with where they were. */
static Status pools_of_codes(void *arg)
{
    Context *c = arg;
    Rng rng = { 27 };
    for (int round = 0; round < 300; round++) {
        Build b = fresh(c);
        const Setting s = draw_setting(c, &rng, 1);
        PoolAttr a = { .window = s.at };
        a.window.kernel_shape = (Ints){ s.rank, s.kernel };
        a.window.ceil_mode = round % 3 == 0;
        const int64_t dims[] = { s.images, s.channels, s.in[0], s.in[1] };
        const bool sign = round & 1;
        Node *x = sample_tensor(&b, &rng, sign ? I8 : U8, 4, dims, sign ? -128 : 0, sign ? 127 : 255);
        Node *found = build_part(&b, build_node_n(&b, OP_max_pool, &a, 1, &x, 2), 0);
        Node *parts[] = { found, build_node_n(&b, OP_max_pool, &a, 1, &x, 1) };
        Tensor *t = value_of(c, build_tuple(&b, 2, parts), NULL);
        for (int64_t i = 0; i < tensor_elements(t->items[0]); i++)
            assert_true(at(t->items[0], i) == at(t->items[1], i));
        tensor_drop(&c->heap, t);
    }
    return OK;
}

/* Padding that is counted lies inside the stated pads, not where rounding up ends. */
static Status counted_padding_ends(void *arg)
{
    Context *c = arg;
    static const int64_t kernel = 3, stride = 2, pads[] = { 1, 0 };
    const PoolAttr a = {
        .window = { .kernel_shape = { 1, &kernel }, .strides = { 1, &stride }, .pads = { 2, pads }, .ceil_mode = true },
        .count_include_pad = true
    };
    Build b = fresh(c);
    Tensor *ones = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 3, (int64_t[]){ 1, 1, 5 }));
    for (int64_t i = 0; i < 5; i++)
        tensor_set_f64(ones, i, 1);
    Tensor *t = value_of(c, CALL_ATTR(&b, average_pool, a, build_const(&b, ones)), NULL);
    assert_int_equal(tensor_elements(t), 3);
    assert_true(close_to(at(t, 0), 2.0 / 3, 1e-7)); /* one of three is padding */
    assert_true(at(t, 1) == 1);
    assert_true(at(t, 2) == 1); /* two taps inside, the third beyond everything */
    tensor_drop(&c->heap, t);
    return OK;
}

/* A NaN wins; equal values: the first; column-major indices count the first dimension fastest. */
static Status maxima_are_chosen(void *arg)
{
    Context *c = arg;
    static const int64_t kernel[] = { 1, 2 }, dims[] = { 1, 1, 2, 3 };
    static const double v[] = { 1, 1, 0, 5, NAN, 7 };
    PoolAttr a = { .window = { .kernel_shape = { 2, kernel } }, .storage_order = 1 };
    Build b = fresh(c);
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, F32, 4, dims));
    for (int64_t i = 0; i < 6; i++)
        tensor_set_f64(x, i, v[i]);
    Node *in_ = build_const(&b, x);
    Tensor *t = value_of(c, build_node_n(&b, OP_max_pool, &a, 1, &in_, 2), NULL);
    assert_true(at(t->items[0], 0) == 1 && at(t->items[0], 1) == 1 && isnan(at(t->items[0], 2)) &&
                isnan(at(t->items[0], 3)));
    static const int64_t where[] = { 0, 2, 3, 3 };
    for (int64_t i = 0; i < 4; i++)
        assert_int_equal(tensor_get_i64(t->items[1], i), where[i]);
    tensor_drop(&c->heap, t);
    return OK;
}

/* What max_pool took goes back to where it was. */
static Status unpooling_returns(void *arg)
{
    Context *c = arg;
    static const int64_t kernel[] = { 2, 2 };
    const PoolAttr a = { .window = { .kernel_shape = { 2, kernel }, .strides = { 2, kernel } } };
    Rng rng = { 25 };
    Build b = fresh(c);
    Node *x = DRAW(&b, &rng, F16, 2, 3, 4, 6), *max = build_node_n(&b, OP_max_pool, &a, 1, &x, 2);
    Node *y = CALL_ATTR(&b, max_unpool, a, build_part(&b, max, 0), build_part(&b, max, 1));
    Tensor *t = value_of(c, build_tuple(&b, 2, (Node *[]){ y, build_part(&b, max, 0) }), NULL);
    int64_t same = 0;
    assert_ptr_equal(t->items[0]->type, x->type);
    for (int64_t i = 0; i < tensor_elements(t->items[0]); i++) {
        const double v = at(t->items[0], i);
        assert_true(v == 0 || v == at(constant(x), i));
        same += v != 0;
    }
    assert_int_equal(same, tensor_elements(t->items[1]));
    tensor_drop(&c->heap, t);
    Build b2 = fresh(c);
    Node *far = sample_tensor(&b2, &rng, I64, 4, (int64_t[]){ 1, 1, 1, 1 }, 4, 4);
    expect_failure(c, CALL_ATTR(&b2, max_unpool, a, DRAW(&b2, &rng, F32, 1, 1, 1, 1), far),
                   "index 4 at 0 is outside [0, 4)");
    return OK;
}

/* Neighbouring columns overlap by half: the middle gets both. */
static Status columns_add_up(void *arg)
{
    Context *c = arg;
    static const int64_t image = 4, block = 2;
    const Col2imAttr a = { { 0 } };
    Build b = fresh(c);
    Tensor *x = tensor_new(&c->arena, type_tensor(&c->ir.types, I32, 3, (int64_t[]){ 1, 2, 3 }));
    for (int64_t i = 0; i < 6; i++)
        tensor_set_i64(x, i, 1 << i);
    Tensor *t = value_of(
        c, CALL_ATTR(&b, col2im, a, build_const(&b, x), build_i64s(&b, 1, &image), build_i64s(&b, 1, &block)), NULL);
    static const int64_t want[] = { 1, 2 + 8, 4 + 16, 32 };
    for (int64_t i = 0; i < 4; i++)
        assert_int_equal(tensor_get_i64(t, i), want[i]);
    tensor_drop(&c->heap, t);
    return OK;
}

static Status regions_are_checked(void *arg)
{
    Context *c = arg;
    Rng rng = { 26 };
    const RoiAlignAttr a = { .output_height = 1, .output_width = 1, .spatial_scale = 1 };
    Build b = fresh(c);
    Node *x = DRAW(&b, &rng, F32, 2, 1, 4, 4), *one = DRAW(&b, &rng, F32, 1, 4);
    expect_failure(c, CALL_ATTR(&b, roi_align, a, x, one, build_i64s(&b, 1, (int64_t[]){ 2 })),
                   "of image 2, there are 2");
    Build b2 = fresh(c);
    x = DRAW(&b2, &rng, F32, 1, 1, 4, 4), one = sample_tensor(&b2, &rng, F32, 2, (int64_t[]){ 1, 4 }, 0, 0);
    tensor_set_f64((Tensor *)(uintptr_t)constant(one), 2, 1e9);
    tensor_set_f64((Tensor *)(uintptr_t)constant(one), 3, 1e9);
    expect_failure(c, CALL_ATTR(&b2, roi_align, a, x, one, build_i64s(&b2, 1, (int64_t[]){ 0 })), "points a bin");
    return OK;
}

static Status bad_windows_are_refused(void *arg)
{
    Context *c = arg;
    Rng rng = { 27 };
    Build b = fresh(c);
    Node *x = DRAW(&b, &rng, F32, 1, 4, 5, 5), *w = DRAW(&b, &rng, F32, 2, 4, 3, 3), *flat = DRAW(&b, &rng, F32, 1, 4);
    static const int64_t zero[] = { 0, 1 }, three[] = { 1, 1, 1 }, minus[] = { 0, 0, 0, -1 }, two[] = { 2, 2 };
    static const int64_t least[] = { INT64_MIN, 1 }, most[] = { INT64_MAX, 1 }, large[] = { 6, 1 };
    const struct {
        ConvAttr a;
        const char *why;
    } wrong[] = {
        { { .group = 0 }, "group is 0" },
        { { .group = 3 }, "take 4 in 3 groups" },
        { { .group = INT64_MAX }, "groups" },
        { { .group = 1, .window = { .strides = { 2, zero } } }, "strides holds 0" },
        { { .group = 1, .window = { .strides = { 3, three } } }, "strides has 3 numbers where 2" },
        { { .group = 1, .window = { .strides = { 2, least } } }, "strides holds -9223372036854775808" },
        { { .group = 1, .window = { .dilations = { 2, zero } } }, "dilations holds 0" },
        { { .group = 1, .window = { .dilations = { 2, most } } }, "dilations holds 9223372036854775807" },
        { { .group = 1, .window = { .dilations = { 2, large } } }, "a window of 13 does not fit 5" },
        { { .group = 1, .window = { .pads = { 4, minus } } }, "pads holds -1" },
        { { .group = 1, .window = { .kernel_shape = { 2, two } } }, "kernel_shape says 2 where the weights have 3" },
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        expect_refused(c, &b, CALL_ATTR(&b, conv, wrong[i].a, x, w), wrong[i].why);
    static const int64_t far[] = { 1ll << 40, 1ll << 40, 0, 0 }, huge[] = { 1ll << 40, 1ll << 40 };
    const ConvAttr wide = { .group = 1, .window = { .pads = { 4, far } } };
    const ConvTransposeAttr grown = { .group = 1, .window = { .strides = { 2, huge } } };
    expect_refused(c, &b, CALL_ATTR(&b, conv, wide, x, w), "limit");
    expect_refused(c, &b, CALL_ATTR(&b, conv_transpose, grown, x, DRAW(&b, &rng, F32, 4, 1, 3, 3)), "limit");
    const ConvAttr plain = { .group = 1 };
    const PoolAttr pool = { .window = { .kernel_shape = { 2, zero } } };
    const ConvTransposeAttr spread = { .group = 1, .output_padding = { 2, two } };
    expect_refused(c, &b, CALL_ATTR(&b, conv, plain, flat, flat), "at least 3 dimensions");
    expect_refused(c, &b, CALL_ATTR(&b, conv, plain, x, w, flat), "bias");
    expect_refused(c, &b, CALL_ATTR(&b, max_pool, pool, x), "kernel_shape holds 0");
    expect_refused(c, &b, CALL_ATTR(&b, conv_transpose, spread, x, DRAW(&b, &rng, F32, 4, 1, 3, 3)),
                   "output_padding 2");
    return OK;
}

#define TEST(body)                                                                                                     \
    static void test_##body(void **state)                                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        with_context(body);                                                                                            \
    }
TEST(windows_stand)
TEST(convolutions_in_order)
TEST(transposes_are_adjoint)
TEST(unsteered_is_plain)
TEST(pools_see_their_windows)
TEST(pools_of_codes)
TEST(counted_padding_ends)
TEST(maxima_are_chosen)
TEST(unpooling_returns)
TEST(columns_add_up)
TEST(regions_are_checked)
TEST(bad_windows_are_refused)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_stand),           cmocka_unit_test(test_convolutions_in_order),
        cmocka_unit_test(test_transposes_are_adjoint),  cmocka_unit_test(test_unsteered_is_plain),
        cmocka_unit_test(test_pools_see_their_windows), cmocka_unit_test(test_pools_of_codes),
        cmocka_unit_test(test_counted_padding_ends),    cmocka_unit_test(test_maxima_are_chosen),
        cmocka_unit_test(test_unpooling_returns),       cmocka_unit_test(test_columns_add_up),
        cmocka_unit_test(test_regions_are_checked),     cmocka_unit_test(test_bad_windows_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
