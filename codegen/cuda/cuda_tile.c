/* Sums of products by tiles: blocks of threads keep pieces of both operands in the memory that they share, and each thread a
 * square of sums in registers.
 *
 *     tile     a block for each tile of a result and each segment of 2048 of its sums: ascending fused multiply-adds
 *     mma      the same by tensor cores, of bf16 where bits near those of the evaluator are enough (ops/warp.h): sums of a
 *              segment are theirs, k ascending by sixteens
 *     join     a thread for each element: its segments in their order, where there are several
 *
 * Axes of the result are rows where the first operand alone moves along them, columns where the second does, and stacks where
 * both do.  What is read is where the walk says, so convolutions are products whose operands nobody makes.  Sums have the
 * order of `chain` and its bits. */
#include <inttypes.h>
#include <string.h>

#include "codegen/cuda/cuda_calls.h"
#include "ops/contract/work.h"
#include "ops/kernels/panel.h"

enum {
    SIDE = 16,
    LEAST = 8,
    MOST_BLOCKS = 0x7fffffff
}; /* threads along a side of a tile; rows or columns that are worth one */

/* The tiles that there are, the largest first: each thread has so many rows and columns of sums. */
typedef struct TileShape {
    int each, depth;      /* sums along a side of a thread's square; k of a piece */
    int64_t least_blocks; /* of a result that is to be cut so */
} TileShape;

static const TileShape shapes[] = { { 8, 8, 128 }, { 4, 16, 0 } };
static const TileShape tensor_shapes[] = { { 8, 32, 128 }, { 4, 32, 0 } };

typedef struct Tile {
    CallMaker *m;
    int axes[3][SPACE_RANK], n_axes[3]; /* of rows, columns and stacks */
    int64_t extent[3], k, segments;
    TileShape shape;
    bool tensor;
    int64_t side, tiles[2];
} Tile;

enum { ROWS, COLUMNS, STACKS };

static bool moves(const CudaWalk *w, const Access *a, int axis)
{
    for (int d = 0; d < a->rank; d++)
        if (a->step[d * w->it.rank + axis] && w->it.extent[axis] != 1)
            return true;
    return w->it.extent[axis] != 1 && a->piece_dim == axis;
}

static bool sort_axes(Tile *t)
{
    const CudaWalk *w = &t->m->w;
    for (int i = 0; i < 3; i++)
        t->extent[i] = 1;
    for (int s = 0; s < w->it.rank; s++) {
        const bool x = moves(w, &w->it.in[0], s), y = moves(w, &w->it.in[1], s);
        if (w->solved_by[s] != NO_DIM)
            return false;
        if (w->folded[s] || w->it.extent[s] == 1)
            continue;
        if (!x && !y)
            return false;
        const int kind = x && y ? STACKS : x ? ROWS : COLUMNS;
        t->axes[kind][t->n_axes[kind]++] = s;
        t->extent[kind] *= w->it.extent[s];
    }
    return true;
}

static int64_t parts(int64_t n, int64_t each)
{
    return (n + each - 1) / each;
}

static void cut(Tile *t)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        t->shape = (t->tensor ? tensor_shapes : shapes)[i];
        t->side = SIDE * t->shape.each;
        t->tiles[ROWS] = parts(t->extent[ROWS], t->side);
        t->tiles[COLUMNS] = parts(t->extent[COLUMNS], t->side);
        const bool fills = !t->tensor || (t->extent[ROWS] > t->side / 2 && t->extent[COLUMNS] > t->side / 2);
        if (fills && t->tiles[ROWS] * t->tiles[COLUMNS] * t->extent[STACKS] * t->segments >= t->shape.least_blocks)
            return;
    }
}

/* Whether the operand's elements lie beside each other along k. */
static bool runs_along_k(const Tile *t, int operand)
{
    const CudaWalk *w = &t->m->w;
    const Access *a = &w->it.in[operand];
    for (int i = w->it.n_folded - 1; i >= 0; i--)
        if (w->it.extent[w->it.folded[i]] != 1)
            return a->rank && a->step[(a->rank - 1) * w->it.rank + w->it.folded[i]] == 1;
    return false;
}

/* A piece of an operand, from k0 on, into shared memory: zeros where it ends. */
static void print_piece(const Tile *t, int operand, int kind)
{
    const CudaWalk *w = &t->m->w;
    const int64_t depth = t->shape.depth;
    const bool along = runs_along_k(t, operand);
    const char *name = operand ? "ys" : "xs", *index = w->index;
    Text *out = w->out;
    text_printf(out, "#pragma unroll 4\n        for (u32 e = threadIdx.x; e < %" PRId64 "; e += %d) {\n",
                depth * t->side, SIDE * SIDE);
    if (along)
        text_printf(out, "            const u32 h = e %% %" PRId64 ", at = e / %" PRId64 ";\n", depth, depth);
    else
        text_printf(out, "            const u32 h = e / %" PRId64 ", at = e %% %" PRId64 ";\n", t->side, t->side);
    text_printf(out, "            const %s k = k0 + h, i = tile%d * %" PRId64 " + at;\n", index, kind, t->side);
    text_printf(out, "            T v = 0;\n            if (k < to && i < %" PRId64 ") {\n", t->extent[kind]);
    cuda_walk_digits(w, w->it.folded, w->it.n_folded, "k", 4);
    cuda_walk_digits(w, t->axes[kind], t->n_axes[kind], "i", 4);
    cuda_call_factor(t->m, operand, "x", 16);
    text_printf(out, "                v = x;\n            }\n            %s[h][at] = v;\n        }\n", name);
}

/* How a piece for tensor cores is read: sixteen bytes at once along k or across it, or number by number. */
typedef enum Way { ALONG, ACROSS, SINGLE } Way;

/* Whether the elements of an operand lie beside each other along the innermost of some axes, in whole eights, and everything else goes on by
 * eights: then eight of them are sixteen bytes, all there or none. */
static bool lies_in_eights(const Tile *t, int operand, const int *axes, int n)
{
    enum { EIGHT = 8 };
    const CudaWalk *w = &t->m->w;
    const Access *a = &w->it.in[operand];
    const Type *type = in(t->m->call, operand)->type;
    int inner = n - 1;
    while (inner >= 0 && w->it.extent[axes[inner]] == 1)
        inner--;
    if (inner < 0 || w->it.extent[axes[inner]] % EIGHT || cuda_walk_inside(w, a, type))
        return false;
    for (int s = 0; s < w->it.rank; s++) {
        int64_t each = 1, step = 0, base = 0;
        for (int d = a->rank - 1; d >= 0; d--) {
            step += each * a->step[d * w->it.rank + s];
            base += each * a->base[d];
            each *= type->dims[d];
        }
        if (base % EIGHT || (w->it.extent[s] > 1 && (s == axes[inner] ? step != 1 : step % EIGHT != 0)))
            return false;
    }
    return true;
}

static Way way_of(const Tile *t, int operand)
{
    const CudaWalk *w = &t->m->w;
    const int kind = operand ? COLUMNS : ROWS;
    return lies_in_eights(t, operand, w->it.folded, w->it.n_folded)     ? ALONG
           : lies_in_eights(t, operand, t->axes[kind], t->n_axes[kind]) ? ACROSS
                                                                        : SINGLE;
}

/* A piece in eights: those that are not there are zeros. */
static void print_eights(const Tile *t, int operand, int kind)
{
    const CudaWalk *w = &t->m->w;
    const bool along = way_of(t, operand) == ALONG;
    const int64_t inner = (along ? t->shape.depth : t->side) / 8, all = t->shape.depth * t->side / 8;
    const int argument = cuda_call_argument(t->m, operand);
    Text *out = w->out;
    text_printf(out, "#pragma unroll\n            for (u32 e = threadIdx.x; e < %" PRId64 "; e += %d) {\n", all,
                SIDE * SIDE);
    text_printf(out, "                const u32 line = e / %" PRId64 ", part = e %% %" PRId64 ";\n", inner, inner);
    text_printf(out, "                const %s k = k0 + %s, i = tile%d * %" PRId64 " + %s;\n", w->index,
                along ? "8 * part" : "line", kind, t->side, along ? "line" : "8 * part");
    text_printf(out, "                const bool there = k < to && i < %" PRId64 ";\n", t->extent[kind]);
    cuda_walk_digits(w, w->it.folded, w->it.n_folded, "k", 4);
    cuda_walk_digits(w, t->axes[kind], t->n_axes[kind], "i", 4);
    text_printf(out,
                "                piece_fetch(&copies, &%s[odd].part[line][part], in%d + (there ? %s : 0), there, "
                "((u64)in%d & 15) == 0);\n            }\n",
                operand ? "ys" : "xs", argument, cuda_walk_place(w, &w->it.in[operand], in(t->m->call, operand)->type),
                argument);
}

/* A piece as words of two numbers that follow each other along k. */
static void print_words(const Tile *t, int operand, int kind)
{
    const CudaWalk *w = &t->m->w;
    const Access *a = &w->it.in[operand];
    const Type *type = in(t->m->call, operand)->type;
    const int64_t words = t->shape.depth / 2;
    const bool along = runs_along_k(t, operand);
    Text *out = w->out;
    text_printf(out, "#pragma unroll 2\n            for (u32 e = threadIdx.x; e < %" PRId64 "; e += %d) {\n",
                words * t->side, SIDE * SIDE);
    text_printf(out, "                const u32 h = e %s %" PRId64 ", at = e %s %" PRId64 ";\n", along ? "%" : "/",
                along ? words : t->side, along ? "/" : "%", along ? words : t->side);
    text_printf(out, "                const %s i = tile%d * %" PRId64 " + at;\n                u32 v = 0;\n", w->index,
                kind, t->side);
    text_printf(out, "#pragma unroll\n                for (u32 p = 0; p < 2; p++) {\n");
    text_printf(out, "                    const %s k = k0 + 2 * h + p;\n", w->index);
    text_printf(out, "                    if (k >= to || i >= %" PRId64 ")\n                        continue;\n",
                t->extent[kind]);
    cuda_walk_digits(w, w->it.folded, w->it.n_folded, "k", 5);
    cuda_walk_digits(w, t->axes[kind], t->n_axes[kind], "i", 5);
    const char *inside = cuda_walk_inside(w, a, type);
    text_printf(
        out, "                    if (%s)\n                        v |= (u32)in%d[%s] << 16 * p;\n                }\n",
        inside ? inside : "true", cuda_call_argument(t->m, operand), cuda_walk_place(w, a, type));
    text_printf(out, "                %s[odd].part[at][h / 4].w[h %% 4] = v;\n            }\n", operand ? "ys" : "xs");
}

/* The digit of a number that goes on at every `below` and counts to `extent` (0: the last one), without what says nothing. */
static const char *digit(const Tile *t, const char *number, int64_t below, int64_t extent)
{
    Arena *arena = t->m->w.arena;
    if (extent == 1)
        return "0";
    const char *over = below > 1 ? arena_printf(arena, "%s / %" PRId64, number, below) : number;
    return extent ? arena_printf(arena, "%s %% %" PRId64, over, extent) : over;
}

static void print_shared(const Tile *t)
{
    Text *out = t->m->w.out;
    const int64_t side = t->side;
    if (t->tensor) {
        for (int operand = 0; operand < 2; operand++)
            text_printf(out, "    __shared__ TilePiece<%" PRId64 ", %s> %s[2];\n", side,
                        way_of(t, operand) == ACROSS ? "false" : "true", operand ? "ys" : "xs");
        text_printf(out, "    Copies copies = {};\n    u32 odd = 0;\n    T sums[%d][%d][4] = { { { 0 } } };\n",
                    t->shape.each / 2, t->shape.each / 2);
        return;
    }
    text_printf(out, "    __shared__ T xs[%d][%" PRId64 "], ys[%d][%" PRId64 "];\n", t->shape.depth, side + 1,
                t->shape.depth, side + 1);
    text_printf(out, "    const u32 column = threadIdx.x %% %d, row = threadIdx.x / %d;\n", SIDE, SIDE);
    text_printf(out, "    T sums[%d][%d] = { { 0 } };\n", t->shape.each, t->shape.each);
}

static void print_head(const Tile *t, int64_t blocks)
{
    const CudaWalk *w = &t->m->w;
    const char *i = w->index;
    Text *out = w->out;
    t->m->tensor = t->tensor;
    cuda_call_head(t->m, t->tensor ? "mma" : "tile", blocks, SIDE * SIDE);
    t->m->tensor = false;
    text_printf(out, "    typedef %s T;\n", dtype_name(t->m->arithmetic));
    print_shared(t);
    const int64_t tiles = t->tiles[ROWS] * t->tiles[COLUMNS];
    text_printf(out, "    const %s block = blockIdx.x, tile1 = %s, tile0 = %s;\n", i,
                digit(t, "block", 1, t->tiles[COLUMNS]), digit(t, "block", t->tiles[COLUMNS], t->tiles[ROWS]));
    text_printf(out, "    const %s segment = %s, stack = %s;\n", i, digit(t, "block", tiles, t->segments),
                digit(t, "block", tiles * t->segments, t->extent[STACKS] == 1));
    text_printf(out, "    const %s from = segment * %d, to = from + %d < %" PRId64 " ? from + %d : %" PRId64 ";\n", i,
                PANEL_SEGMENT, PANEL_SEGMENT, t->k, PANEL_SEGMENT, t->k);
    cuda_walk_digits(w, t->axes[STACKS], t->n_axes[STACKS], "stack", 1);
}

static const char *const multiply = "        __syncthreads();\n"
                                    "        const u32 n = to - k0 < DEPTH ? (u32)(to - k0) : DEPTH;\n"
                                    "        for (u32 h = 0; h < n; h++) {\n"
                                    "            T x[EACH], y[EACH];\n"
                                    "#pragma unroll\n"
                                    "            for (u32 i = 0; i < EACH; i++) {\n"
                                    "                x[i] = xs[h][row + SIDE * i];\n"
                                    "                y[i] = ys[h][column + SIDE * i];\n"
                                    "            }\n"
                                    "#pragma unroll\n"
                                    "            for (u32 i = 0; i < EACH; i++)\n"
                                    "#pragma unroll\n"
                                    "                for (u32 j = 0; j < EACH; j++)\n"
                                    "                    sums[i][j] = fma_T(x[i], y[j], sums[i][j]);\n"
                                    "        }\n"
                                    "        __syncthreads();\n"
                                    "    }\n";

/* The text above with its words as numbers. */
static void print_multiply(const Tile *t)
{
    const char *const words[] = { "DEPTH", "EACH", "SIDE", "fma_T" };
    const char *const by[] = { arena_printf(t->m->w.arena, "%d", t->shape.depth),
                               arena_printf(t->m->w.arena, "%d", t->shape.each),
                               arena_printf(t->m->w.arena, "%d", SIDE),
                               arena_printf(t->m->w.arena, "fma_%s", dtype_name(t->m->arithmetic)) };
    Text *out = t->m->w.out;
    for (const char *at = multiply; *at;) {
        size_t k = 0;
        while (k < COUNT(words) && strncmp(at, words[k], strlen(words[k])) != 0)
            k++;
        if (k < COUNT(words)) {
            text_add(out, by[k]);
            at += strlen(words[k]);
        } else {
            text_char(out, *at++);
        }
    }
}

/* The coordinates of element `o` of the result, where a bias lies by them. */
static void print_coordinates(const Tile *t, int indent)
{
    const Type *y = access_result(t->m->call, 0);
    int64_t below = 1;
    for (int d = cuda_call_adds(t->m) ? y->rank - 1 : -1; d >= 0; d--) {
        text_printf(t->m->w.out, "%*sconst %s r%d = %s;\n", 4 * indent, "", t->m->w.index, d,
                    digit(t, "o", below, d > 0 ? y->dims[d] : 0));
        below *= y->dims[d];
    }
}

/* The element of the result that each sum of a thread is, `o`, up to two braces. */
static void open_squares(const Tile *t)
{
    const CudaWalk *w = &t->m->w;
    Text *out = w->out;
    for (int side = 0; side < 2; side++) {
        const char *i = side ? "j" : "i";
        const int at = 4 * side + 4;
        text_printf(out, "#pragma unroll\n%*sfor (u32 %s = 0; %s < %d; %s++) {\n", at, "", i, i, t->shape.each, i);
        text_printf(out, "%*sconst %s at%d = tile%d * %" PRId64 " + ", at + 4, "", w->index, side, side, t->side);
        if (t->tensor)
            text_printf(out, "warp_%s<%d>(%s);\n", side ? "column" : "row", t->shape.each / 2, i);
        else
            text_printf(out, "%s + %d * %s;\n", side ? "column" : "row", SIDE, i);
        text_printf(out, "%*sif (at%d >= %" PRId64 ")\n%*scontinue;\n", at + 4, "", side, t->extent[side], at + 8, "");
    }
    cuda_walk_digits(w, t->axes[ROWS], t->n_axes[ROWS], "at0", 3);
    cuda_walk_digits(w, t->axes[COLUMNS], t->n_axes[COLUMNS], "at1", 3);
    text_printf(out, "            const %s o = %s;\n", w->index,
                cuda_walk_place(w, &w->it.out[0], access_result(t->m->call, 0)));
}

static const char *square_of(const Tile *t)
{
    return t->tensor ? "sums[i / 2][j / 2][i % 2 * 2 + j % 2]" : "sums[i][j]";
}

/* Sums that do not begin with zeros; there is one segment. */
static void print_begins(const Tile *t)
{
    if (t->m->w.it.begins == NO_OPERAND)
        return;
    open_squares(t);
    text_printf(t->m->w.out, "            %s = %s;\n        }\n    }\n", square_of(t), cuda_call_begin(t->m));
}

static void print_squares(const Tile *t)
{
    Text *out = t->m->w.out;
    open_squares(t);
    text_printf(out, "            T sum = %s;\n", square_of(t));
    if (t->segments > 1) {
        text_printf(out, "            ((T *)scratch)[segment * (i64)%" PRId64 " + o] = sum;\n",
                    cuda_walk_elements(&t->m->w));
    } else {
        print_coordinates(t, 3);
        cuda_call_total(t->m, false, 3);
    }
    text_printf(out, "        }\n    }\n");
    cuda_call_close(t->m);
}

/* Whether tensor cores may make it: where an engine of a CPU would use its own instruction, too. */
static bool is_narrow(const CallMaker *m)
{
    return m->target.narrow && work_narrows(m->call) && in(m->call, 0)->type->dtype == BF16 &&
           in(m->call, 1)->type->dtype == BF16;
}

/* While two pieces are multiplied, the next ones are on their way. */
static void print_tensor_pieces(const Tile *t)
{
    Text *out = t->m->w.out;
    text_printf(out, "    for (%s k0 = from;; k0 += %d, odd ^= 1) {\n        if (k0 < to) {\n", t->m->w.index,
                t->shape.depth);
    for (int operand = 0; operand < 2; operand++)
        (way_of(t, operand) == SINGLE ? print_words : print_eights)(t, operand, operand ? COLUMNS : ROWS);
    text_printf(
        out,
        "        }\n        copy_commit(&copies);\n        if (k0 > from) {\n            copy_wait<1>(&copies);\n"
        "            __syncthreads();\n"
        "            pieces_multiply<Bf16, %d>(sums, &xs[odd ^ 1], &ys[odd ^ 1]);\n"
        "            __syncthreads();\n        }\n        if (k0 >= to)\n            break;\n    }\n",
        t->shape.each / 2);
}

static void print_pieces(const Tile *t)
{
    if (t->tensor) {
        print_tensor_pieces(t);
        return;
    }
    text_printf(t->m->w.out, "    for (%s k0 = from; k0 < to; k0 += %d) {\n", t->m->w.index, t->shape.depth);
    print_piece(t, 0, ROWS);
    print_piece(t, 1, COLUMNS);
    print_multiply(t);
}

static void print_join(const Tile *t)
{
    const int64_t n = cuda_walk_elements(&t->m->w);
    const char *type = dtype_name(t->m->arithmetic);
    cuda_call_open(t->m, "join", n);
    print_coordinates(t, 1);
    text_printf(t->m->w.out, "    %s sum = sum_parts_%s((const %s *)scratch + o, %" PRId64 ", %" PRId64 ");\n", type,
                type, type, t->segments, n);
    cuda_call_total(t->m, false, 1);
    cuda_call_close(t->m);
}

bool cuda_tile(CallMaker *m)
{
    const CudaWalk *w = &m->w;
    Tile t = { .m = m, .k = cuda_walk_points(w) };
    if (t.k < 1 || w->it.out[0].reach != REACH_AFFINE || w->it.out[0].guard != GUARD_NONE || !sort_axes(&t) ||
        t.extent[ROWS] < LEAST || t.extent[COLUMNS] < LEAST)
        return false;
    t.segments = parts(t.k, PANEL_SEGMENT);
    t.tensor = is_narrow(m);
    cut(&t);
    const int64_t blocks = t.tiles[ROWS] * t.tiles[COLUMNS] * t.extent[STACKS] * t.segments;
    if (blocks > MOST_BLOCKS)
        return false;
    if (t.segments > 1)
        m->launch->scratch =
            (size_t)(t.segments * cuda_walk_elements(w)) * (m->arithmetic == F64 ? sizeof(f64) : sizeof(f32));
    print_head(&t, blocks);
    print_begins(&t);
    print_pieces(&t);
    print_squares(&t);
    if (t.segments > 1)
        print_join(&t);
    return true;
}
