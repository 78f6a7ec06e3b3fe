/* What convolutions and pools share: where a sliding window stands, and which of its taps lie inside the data. */
#ifndef OPS_WINDOW_WINDOW_H
#define OPS_WINDOW_WINDOW_H

#include "ops/card/cards.h"

/* As auto_pad says it. */
typedef enum AutoPad { PAD_NOTSET, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID } AutoPad;
extern const char *const auto_pads[];

/* The attributes that place a window; the ops' own structs begin with it. */
typedef struct WindowAttr {
    int auto_pad;
    Ints kernel_shape, strides, dilations, pads;
    bool ceil_mode;
} WindowAttr;

typedef struct ConvAttr {
    WindowAttr window;
    int64_t group;
    int out; /* DType + 1: of the result; 0: that of X */
} ConvAttr;

typedef struct ConvTransposeAttr {
    WindowAttr window;
    int64_t group;
    Ints output_padding, output_shape;
    int out;
} ConvTransposeAttr;

typedef struct DeformConvAttr {
    WindowAttr window;
    int64_t group, offset_group;
} DeformConvAttr;

typedef struct Col2imAttr {
    WindowAttr window;
} Col2imAttr;

typedef struct PoolAttr {
    WindowAttr window;
    bool count_include_pad; /* of average_pool */
    int64_t storage_order;  /* of max_pool */
    int64_t p;              /* of lp_pool */
} PoolAttr;

typedef struct RoiPoolAttr {
    Ints pooled_shape;
    float spatial_scale;
} RoiPoolAttr;

typedef struct RoiAlignAttr {
    int coordinate_transformation_mode, mode;
    int64_t output_height, output_width, sampling_ratio;
    float spatial_scale;
} RoiAlignAttr;

enum { MAX_SPATIAL = MAX_RANK - 2 };

/* A window over `rank` spatial dimensions; -1 where an extent is unknown. */
typedef struct Window {
    int rank;
    int64_t in[MAX_SPATIAL], kernel[MAX_SPATIAL], stride[MAX_SPATIAL], dilation[MAX_SPATIAL];
    int64_t begin[MAX_SPATIAL], end[MAX_SPATIAL]; /* pads; unknown with SAME over an unknown extent: 0 */
    int64_t out[MAX_SPATIAL];
} Window;

/* Places a window over the spatial extents `in`; `kernel` (null: the attribute's) may hold -1.
 * Returns null, or what is wrong with it, in `arena`. */
const char *window_place(Window *w, Arena *arena, const WindowAttr *at, int rank, const int64_t *in,
                         const int64_t *kernel);

/* The version of ONNX's pools that gives a call this result: before 22 rounding up kept windows that begin behind the
 * data. */
int window_least_version(const Node *n);

/* The transposed window: `in` is what the window of the forward direction gives, w->out what it covers. */
const char *window_place_transposed(Window *w, Arena *arena, const ConvTransposeAttr *at, int rank, const int64_t *in,
                                    const int64_t *kernel);

/* The window of an operand [N, C, spatial..] in infer; false after a complaint. */
bool infer_window(Infer *q, const WindowAttr *at, const Type *x, const int64_t *kernel, Window *w);

/* The same for an operand of a call that infer has accepted. */
void eval_window(Eval *e, const WindowAttr *at, int operand, const int64_t *kernel, Window *w);

/* The product of extents, all known. */
int64_t window_product(int rank, const int64_t *extents);

/* The taps of one window that lie inside the data, as runs along the innermost dimension:
 * for (bool more = taps_at(&t, w, at); more; more = taps_next(&t)) */
typedef struct Taps {
    const Window *w;
    int64_t first[MAX_SPATIAL]; /* first tap inside */
    int64_t count[MAX_SPATIAL]; /* taps inside */
    int64_t start[MAX_SPATIAL]; /* position of tap 0, may be negative */
    int64_t tap[MAX_SPATIAL];   /* of the run: tap of each outer dimension, first tap of the innermost */
    int64_t offset;             /* of the run's first element in the data */
    int64_t n, step;            /* elements of the run, and their distance */
} Taps;

/* Starts at the window of output position `at`; false when it has no tap inside. */
bool taps_at(Taps *t, const Window *w, const int64_t *at);

/* The next run; false at the end. */
bool taps_next(Taps *t);

/* The position after `at` in row-major order over `dims`; wraps to zero at the end. */
void position_next(int rank, const int64_t *dims, int64_t *at);

/* The position with that flat index. */
void position_of(int rank, const int64_t *dims, int64_t index, int64_t *at);

/* Positions that a tap sees side by side, of any channel: `n` of them go to `to`, from element `from` of the channel on and as far
 * apart as the window steps, or are padding where that is below 0. */
typedef struct SightRun {
    int64_t from;
    i32 to, n;
} SightRun;

/* What tap `tap` sees at positions [begin, begin + n) of images that follow each other, whose data lies `image` elements apart:
 * runs, no more than positions, in an order in which later ones write over earlier ones.  Returns how many they are. */
size_t window_sight(const Window *w, const int64_t *tap, int64_t begin, int64_t n, int64_t image, SightRun *runs);

/* The same of all taps: the runs of tap k from k * most on; in a room of so many bytes for any n positions. */
typedef struct TapSights {
    SightRun *runs;
    size_t *n, most;
} TapSights;
TapSights window_sights(const Window *w, int64_t begin, int64_t n, int64_t image, void *room);
size_t window_sights_bytes(const Window *w, int64_t n);

/* One row of a window matrix: what such runs see of a channel; zero in the padding. */
void window_see_f32(const Window *w, const SightRun *runs, size_t n, const f32 *x, f32 *to);
void window_see_f64(const Window *w, const SightRun *runs, size_t n, const f64 *x, f64 *to);
void window_see_u16(const Window *w, const SightRun *runs, size_t n, const u16 *x, u16 *to);
void window_see_u32(const Window *w, const SightRun *runs, size_t n, const u32 *x, u32 *to);

/* What taps see column by column: those of a column see the same lines of the data, a few lines on, so that these are gathered once
 * for all of them.  A piece is some positions of one image, the first of which is element `first` of the lines that are gathered
 * for it; these begin at element `line` of a column. */
typedef struct ColumnPiece {
    int64_t at, n, first, line;
} ColumnPiece;

/* Those of a block, and how the columns of taps see them: the runs of column k, those of each phase of the steps, from k * most on. */
typedef struct ColumnSights {
    SightRun *runs;
    size_t *n, most;
    ColumnPiece *pieces;
    int64_t n_pieces, column; /* elements of a column */
} ColumnSights;

/* Whether it is worth it, and the lines of n positions fit into a cache. */
bool columns_suit(const Window *w, int64_t n);

/* As window_sights, and elements of the columns of one channel. */
ColumnSights column_sights(const Window *w, int64_t begin, int64_t n, int64_t image, void *room);
size_t column_sights_bytes(const Window *w, int64_t n);
size_t column_room(const Window *w, int64_t n);

/* What all columns see of a channel; of that, what a tap sees. */
void columns_see(const Window *w, const ColumnSights *s, const u16 *x, u16 *columns);
void columns_tap(const Window *w, const ColumnSights *s, const u16 *columns, int64_t tap, u16 *to);

/* One row of a window matrix where it is wanted once: what tap `tap` sees at positions [first, first + n) of one image. */
void window_gather_f32(const Window *w, const f32 *x, const int64_t *tap, int64_t first, int64_t n, f32 *to);
/* The same of codes, padding being their zero point. */
void window_gather_u8(const Window *w, const u8 *x, const int64_t *tap, int64_t first, int64_t n, u8 fill, u8 *to);
void window_gather_u16(const Window *w, const u16 *x, const int64_t *tap, int64_t first, int64_t n, u16 fill, u16 *to);
/* The same of words of several channels. */
void window_gather_u32(const Window *w, const u32 *x, const int64_t *tap, int64_t first, int64_t n, u32 fill, u32 *to);

/* The reverse: adds what each position has for tap `tap` to the element that the tap sees. */
void window_scatter_f32(const Window *w, f32 *x, const int64_t *tap, const f32 *from);
void window_scatter_f64(const Window *w, f64 *x, const int64_t *tap, const f64 *from);
void window_scatter_i64(const Window *w, i64 *x, const int64_t *tap, const i64 *from);

/* Checks data [N, C, spatial..] against weights of the same rank, and of the same float type; false after a complaint. */
bool infer_filter_rank(Infer *q, const Type *x, const Type *w, int64_t group);
bool infer_filter(Infer *q, const Type *x, const Type *w, int64_t group);

/* Checks that data [N, C, ..] and weights [M, C / group, ..], both of known rank, have channels that split into `group`
 * groups; false after a complaint. */
bool infer_groups(Infer *q, const Type *x, const Type *w, int64_t group);

/* The type [n, m, positions of the window..]; null after a complaint. */
const Type *infer_channels(Infer *q, DType dtype, int64_t n, int64_t m, const Window *w);

/* Checks an optional bias of m elements (-1: any) in operand i; false after a complaint. */
bool infer_bias(Infer *q, int i, int64_t m);

/* Whether a window matrix would only repeat the data: one tap, each position once. */
bool window_is_data(const Window *w);

/* Adds bias[i] to the n elements of row i; null: nothing. */
void add_bias_f32(f32 *y, const f32 *bias, int64_t rows, int64_t n, int64_t stride);
void add_bias_f64(f64 *y, const f64 *bias, int64_t rows, int64_t n, int64_t stride);

/* What the pools and their adjoints share: for each window of a line of positions, where the largest element that it sees
 * stands (the first of equals, 0 before -0, a NaN before all; -1: it sees none), line[rank - 1] is not read; and what an
 * average at a position divides by (null: no tap inside). */
void pool_largest_line_f32(const Kernels *level, const Window *w, const f32 *x, const int64_t *line, i64 *where);
void pool_largest_line_f64(const Kernels *level, const Window *w, const f64 *x, const int64_t *line, i64 *where);
void pool_largest_line_i64(const Kernels *level, const Window *w, const i64 *x, const int64_t *line, i64 *where);
/* Windows of a line of an image of two dimensions, whose other coordinate line[0] is, that see the same rows of it: from .. to - 1,
 * none where from is to, and as loops know them from the first of them on; `row` is where the first row of taps is. */
typedef struct LineWindows {
    int64_t from, to, row;
    WindowTaps taps;
} LineWindows;

/* Those that see all columns of their taps; or, `partly`, those that see some of them: then the others see none. */
LineWindows pool_line_windows(const Window *w, const int64_t *line, bool partly);

/* Windows of two dimensions as loops over planes take them; of no columns: they do not take these. */
PlaneWindows window_planar(const Window *w);

int64_t pool_count(const PoolAttr *a, const Window *w, const int64_t *at, const Taps *seen);

/* Channel number `at`, of `n` elements, of data that a pool reads as f32: where it is in x, or, where that is null, loaded into a
 * room, so that what is widened stays in a cache. */
const f32 *pool_plane(const Kernels *level, const f32 *x, const Tensor *data, int64_t at, int64_t n, f32 *room);

/* average_pool of one channel of an image: in each window the sum, tap after tap, by how many they are. */
void pool_average_plane(const PoolAttr *a, const Window *w, const f32 *x, f32 *y);

void adjoint_max_pool(Build *b, const Site *s, Node **dx);
void adjoint_average_pool(Build *b, const Site *s, Node **dx);
void adjoint_lp_pool(Build *b, const Site *s, Node **dx);
void adjoint_global_lp_pool(Build *b, const Site *s, Node **dx);
void adjoint_global_average_pool(Build *b, const Site *s, Node **dx);

/* A placed window as attributes that leave nothing to derive: explicit pads that let no window cross the edge, and
 * in `rest` how many elements behind the last window none sees.  `attr` points into the window and this struct, so
 * both must stay where they are. */
typedef struct StatedWindow {
    WindowAttr attr; /* points to the window's and these numbers */
    int64_t pads[2 * MAX_SPATIAL], rest[MAX_SPATIAL];
} StatedWindow;
void window_said(const Window *w, StatedWindow *s);

/* What reaches the data and the bias of a convolution, from what reaches its result. */
Node *window_input_grad(Build *b, const Window *w, int64_t group, Node *dy, Node *filter);
Node *window_bias_grad(Build *b, Node *dy);

/* The adjoints of conv and conv_transpose. */
void adjoint_conv(Build *b, const Site *s, Node **dx);
void adjoint_conv_transpose(Build *b, const Site *s, Node **dx);

/* Evaluates conv_integer_weight_grad. */
Status eval_conv_integer_weight_grad(Eval *e);

/* Draws attributes of a window over `in` that fit; kernel extents go to `kernel`. */
void sample_window(Rng *rng, Arena *arena, int rank, const int64_t *in, int64_t *kernel, WindowAttr *at);

/* Has the number of windows of such a pool rounded up, or not; some windows are larger than the data then, and there is one of them. */
void sample_rounding(Rng *rng, Arena *arena, int rank, const int64_t *in, int64_t *kernel, WindowAttr *at);

/* Draws data to pool and a window over it. */
Node *sample_pooled(Build *b, Rng *rng, int variant, DType dtype, PoolAttr *at);

/* The rows of an attribute table that place a window. */
#define WINDOW_PLACE_ATTRS(S)                                                                                          \
    { .name = "auto_pad", .kind = ATTR_ENUM, .offset = offsetof(S, window.auto_pad), .choices = auto_pads },           \
        WINDOW_INTS(S, strides), WINDOW_INTS(S, pads)
#define WINDOW_INTS(S, field)                                                                                          \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_INTS, .offset = offsetof(S, window.field)                                         \
    }
#define WINDOW_REQUIRED_INTS(S, field)                                                                                 \
    {                                                                                                                  \
        .name = #field, .kind = ATTR_INTS, .offset = offsetof(S, window.field), .required = true                       \
    }

#endif
