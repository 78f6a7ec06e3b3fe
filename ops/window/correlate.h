/* Products of weights with windows of data, as convolutions and, by parts, their transposes take them.
 *
 * A result is the sum over (tap, channel) in that order, as every contraction sums (ops/kernels/panel.h), padding
 * counting as zeros; then the bias is added.  What a block of positions sees is gathered and packed in parts, which
 * are multiplied and forgotten; how positions are blocked or spread over threads does not show. */
#ifndef OPS_WINDOW_CORRELATE_H
#define OPS_WINDOW_CORRELATE_H

#include "ops/window/window.h"

/* Who is given results: n that follow each other from element `first` of the result on, by the threads that made them. */
typedef struct ResultTaker {
    void (*take)(const void *user, int64_t first, int64_t n, const f32 *v);
    const void *user;
} ResultTaker;

enum { PLANES_MOST = 4 }; /* channels and results of a group: more of them are worth a product */

/* How small groups run along planes (ops/window/planes.h). */
typedef struct PlanePlan {
    int64_t lines, blocks; /* positions of the first dimension at a time, 0: it is a product; and how often */
    int64_t extent[MAX_SPATIAL], pitch[MAX_SPATIAL], plane,
        phases; /* of a plane; how many the steps make of a channel */
    bool meets; /* the plane is that of several, and begins so much before its own: */
    int64_t before[MAX_SPATIAL];
} PlanePlan;

/* How words of two dimensions are multiplied in tiles along lines. */
typedef struct LinePlan {
    int64_t lines,
        blocks; /* of results that are made together, 0: words are gathered; and how often an image has so many */
    int64_t above,
        reach; /* line of the data, by the steps of the window, that the first line of results sees; how many more */
    int64_t pitch, plane; /* lines from image to image; words of a plane */
} LinePlan;

/* Images with their padding about them, as far as windows see them. */
typedef struct FramePlan {
    int64_t pitch, height, plane; /* of one; pitch 0: there are none */
    size_t at;                    /* bytes of a worker's room before those of a block */
} FramePlan;

typedef struct Correlation {
    Window w;                          /* the distance of taps may be negative */
    int64_t groups, channels, results; /* channels and results of a group */
    const void *x, *filter, *bias;     /* filter: packed rows [taps, channels] of each group (FilterPack) */
    void *y;
    bool f64;
    bool is_bf16;       /* x and filter are words of two channels, sums are f32 */
    const u16 *halves;  /* or words are made of these as they are wanted, and x is null */
    bool by_lines;      /* words are made and multiplied along lines */
    const Tensor *data; /* along planes: null, or what is loaded in place of x, less `zero` */
    f32 zero;
    ResultTaker taker; /* of f32, in place of y; take null: there is none */
    /* where results stand: position i.. of the window at place + the sum of i * step, of size elements a channel */
    bool apart; /* not simply one after the other */
    int64_t place, step[MAX_SPATIAL], size;

    /* the plan */
    int64_t images;
    int64_t deep;          /* what a tap brings: channels, or words of them */
    int64_t taps, in, out; /* of a kernel; spatial elements of data and result */
    int64_t tile, tiles;   /* positions of a block, blocks of an image */
    int64_t span;          /* images of a block: more than one where they are small */
    int64_t part, parts;   /* results of a block, blocks of a group */
    PlanePlan planes;
    LinePlan lines;
    FramePlan frames;
    bool direct;            /* the data is its own window matrix */
    size_t placed;          /* elements of results on their way */
    const Kernels *kernels; /* there before the plan */
    char *rooms;            /* for each worker */
    size_t room_bytes;
} Correlation;

/* Cuts the work of some images into blocks for so many threads; room_bytes is what each of them needs. */
void correlation_plan(Correlation *c, int64_t images, int64_t threads);

/* Elements of the packed rows of a group. */
size_t correlation_rows(const Correlation *c);

/* Runs a plan whose rooms are there. */
void correlation_run(Eval *e, Correlation *c);

/* Weights as the left operand of a correlation: of each group rows of [taps, columns], packed in tiles
 * (PackedLoops.pack_rows, PairProduct), so that element (m, u, c) is from[group + m * row + c * column + tap[u]]. */
typedef struct FilterPack {
    int64_t groups, rows, columns, taps;
    int64_t group, row, column; /* steps in `from` */
    const int64_t *tap;         /* null: all of them, as they follow each other */
    bool f64;
    bool is_bf16; /* from bf16 to words of two columns: behind an odd one stands a zero */
    const void *from;
    void *to;
} FilterPack;

/* Elements of a packed filter, and of one of its groups. */
size_t filter_room(const Eval *e, const FilterPack *f);
size_t filter_group(const Eval *e, const FilterPack *f);

/* Bytes of the packed weights of a call that has so many groups of [rows, columns] over so many taps, on any machine. */
size_t filter_bytes(const Type *filter, int64_t groups, int64_t rows, int64_t columns, int64_t taps);

/* Packs it. */
void filter_pack(Eval *e, const FilterPack *f);

/* The weights of operand i, [groups * rows, channels, taps], packed. */
const void *filter_packed(Eval *e, int i, bool is_bf16, int64_t groups, int64_t rows, int64_t channels, int64_t taps);

/* Whether a call of operands of these types, with so many channels and results in each of its groups, multiplies them as they
 * lie where its engine may and the machine can: small groups run along planes, and a single channel would half fill its words. */
bool correlation_narrows(const Type *x, const Type *filter, int64_t groups, int64_t channels, int64_t results);

/* Operand i, [images, groups * channels, `in` elements], as words [images, groups, of two channels, in]. */
const void *channel_words(Eval *e, int i, int64_t images, int64_t groups, int64_t channels, int64_t in);

/* Decides whether a call over c->w multiplies operands as they lie, and says where its data, operand 0 of so many images of `in` elements a
 * channel, its bias, operand 2, and its results are. */
void correlation_operands(Eval *e, Correlation *c, int64_t images, int64_t in);

/* Widens what correlation_operands left to planes, where the plan has none. */
void correlation_widen(Eval *e, Correlation *c);

/* ---- word_lines.c: bf16 in tiles along lines ----
 *
 * What the taps of a column of the kernel see lies line behind line in one plane, so that words are made once for each column of
 * taps and not for each tap. */

/* Whether a call over c->w is multiplied so: the level has tiles, and what a tap brings fills whole blocks of words. */
bool lines_suit(const Correlation *c);

/* Plans it, and says what room a worker needs. */
void lines_plan(Correlation *c, int64_t threads);

/* Blocks of it, as base/parallel.h counts them. */
int64_t lines_blocks(const Correlation *c);
void lines_run(void *arg, int64_t begin, int64_t end, int worker);

#endif
