/* Sums of products by tiles: blocks of threads keep pieces of both operands in the memory that they share, and each thread a
 * square of sums in registers.
 *
 *     tile     a block for each tile of a result and each segment of 2048 of its sums: ascending fused multiply-adds
 *     mma      the same by tensor cores, of bf16 and of floats of eight bits where bits near those of the evaluator are enough
 *              (ops/warp.h): sums of a segment are theirs, k ascending by sixteens or thirty-twos
 *     join     a thread for each element: its segments in their order, where there are several
 *
 * Axes of the result are rows where the first operand alone moves along them, columns where the second does, and stacks where
 * both do.  What is read is where the walk says, so convolutions are products whose operands nobody makes.  Sums have the
 * order of `chain` and its bits. */
#include <inttypes.h>
#include <string.h>

#include "codegen/cuda/cuda_calls.h"
#include "ops/contract/contract.h"
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

/* What tensor cores multiply, if they do. */
typedef enum Factors { PLAIN, HALVES, CODES } Factors;

static const TileShape shapes[][2] = { [PLAIN] = { { 8, 8, 128 }, { 4, 16, 0 } },
                                       [HALVES] = { { 8, 32, 128 }, { 4, 32, 0 } },
                                       [CODES] = { { 8, 64, 128 }, { 4, 64, 0 } } };

/* Numbers in a word, and in what one copy moves. */
static const int in_word[] = { [HALVES] = 2, [CODES] = 4 }, in_copy[] = { [HALVES] = 8, [CODES] = 16 };

typedef struct Tile {
    CallMaker *m;
    int axes[3][SPACE_RANK], n_axes[3]; /* of rows, columns and stacks */
    int64_t extent[3], k, segments;
    TileShape shape;
    Factors factors;
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
    for (size_t i = 0; i < COUNT(shapes[PLAIN]); i++) {
        t->shape = shapes[t->factors][i];
        t->side = SIDE * t->shape.each;
        t->tiles[ROWS] = parts(t->extent[ROWS], t->side);
        t->tiles[COLUMNS] = parts(t->extent[COLUMNS], t->side);
        const bool fills = !t->factors || (t->extent[ROWS] > t->side / 2 && t->extent[COLUMNS] > t->side / 2);
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

/* How a piece for tensor cores is read: sixteen bytes at once along k or across it, codes across it by squares of four, or number
 * by number. */
typedef enum Way { ALONG, ACROSS, SINGLE } Way;

/* Whether the elements of an operand lie beside each other along the innermost of some axes, in whole groups, and everything
 * else goes on by as many: then a group lies at a multiple of its bytes, all of it there or nothing. */
static bool lies_in_groups(const Tile *t, int operand, const int *axes, int n, int group)
{
    const CudaWalk *w = &t->m->w;
    const Access *a = &w->it.in[operand];
    const Type *type = in(t->m->call, operand)->type;
    int inner = n - 1;
    while (inner >= 0 && w->it.extent[axes[inner]] == 1)
        inner--;
    if (inner < 0 || w->it.extent[axes[inner]] % group || cuda_walk_inside(w, a, type))
        return false;
    for (int s = 0; s < w->it.rank; s++) {
        int64_t each = 1, step = 0, base = 0;
        for (int d = a->rank - 1; d >= 0; d--) {
            step += each * a->step[d * w->it.rank + s];
            base += each * a->base[d];
            each *= type->dims[d];
        }
        if (base % group || (w->it.extent[s] > 1 && (s == axes[inner] ? step != 1 : step % group != 0)))
            return false;
    }
    return true;
}

static Way way_of(const Tile *t, int operand)
{
    const CudaWalk *w = &t->m->w;
    const int kind = operand ? COLUMNS : ROWS;
    const int along = in_copy[t->factors], across = t->factors == CODES ? in_word[CODES] : along;
    return lies_in_groups(t, operand, w->it.folded, w->it.n_folded, along)      ? ALONG
           : lies_in_groups(t, operand, t->axes[kind], t->n_axes[kind], across) ? ACROSS
                                                                                : SINGLE;
}

/* A piece by sixteen bytes: those that are not there are zeros. */
static void print_copies(const Tile *t, int operand, int kind)
{
    const CudaWalk *w = &t->m->w;
    const bool along = way_of(t, operand) == ALONG;
    const int each = in_copy[t->factors];
    const int64_t inner = (along ? t->shape.depth : t->side) / each, all = t->shape.depth * t->side / each;
    const int argument = cuda_call_argument(t->m, operand);
    const char *part = arena_printf(w->arena, "%d * part", each);
    Text *out = w->out;
    text_printf(out, "#pragma unroll\n            for (u32 e = threadIdx.x; e < %" PRId64 "; e += %d) {\n", all,
                SIDE * SIDE);
    text_printf(out, "                const u32 line = e / %" PRId64 ", part = e %% %" PRId64 ";\n", inner, inner);
    text_printf(out, "                const %s k = k0 + %s, i = tile%d * %" PRId64 " + %s;\n", w->index,
                along ? part : "line", kind, t->side, along ? "line" : part);
    text_printf(out, "                const bool there = k < to && i < %" PRId64 ";\n", t->extent[kind]);
    cuda_walk_digits(w, w->it.folded, w->it.n_folded, "k", 4);
    cuda_walk_digits(w, t->axes[kind], t->n_axes[kind], "i", 4);
    text_printf(out,
                "                piece_fetch(&copies, &%s[odd].part[line][part], in%d + (there ? %s : 0), there, "
                "((u64)in%d & 15) == 0);\n            }\n",
                operand ? "ys" : "xs", argument, cuda_walk_place(w, &w->it.in[operand], in(t->m->call, operand)->type),
                argument);
}

/* A piece of codes as squares of four steps of k and four lanes, which lie beside each other, turned. */
static void print_turned(const Tile *t, int operand, int kind)
{
    const CudaWalk *w = &t->m->w;
    const int64_t squares = t->shape.depth * t->side / 16, groups = t->side / 4;
    const int argument = cuda_call_argument(t->m, operand);
    Text *out = w->out;
    text_printf(out, "#pragma unroll\n            for (u32 e = threadIdx.x; e < %" PRId64 "; e += %d) {\n", squares,
                SIDE * SIDE);
    text_printf(out, "                const u32 at = e / 4 %% %" PRId64 " * 4, part = e / %" PRId64 ";\n", groups,
                4 * groups);
    text_printf(out, "                const %s i = tile%d * %" PRId64 " + at;\n                u32 v[4];\n", w->index,
                kind, t->side);
    text_printf(out, "#pragma unroll\n                for (u32 p = 0; p < 4; p++) {\n");
    text_printf(out, "                    const %s k = k0 + 16 * part + e %% 4 * 4 + p;\n", w->index);
    text_printf(out, "                    const bool there = k < to && i < %" PRId64 ";\n", t->extent[kind]);
    cuda_walk_digits(w, w->it.folded, w->it.n_folded, "k", 5);
    cuda_walk_digits(w, t->axes[kind], t->n_axes[kind], "i", 5);
    text_printf(out, "                    v[p] = codes_four(in%d + (there ? %s : 0), there, ((u64)in%d & 3) == 0);\n",
                argument, cuda_walk_place(w, &w->it.in[operand], in(t->m->call, operand)->type), argument);
    text_printf(
        out,
        "                }\n                turn_words(v);\n#pragma unroll\n                for (u32 p = 0; p < 4; p++)\n");
    text_printf(out, "                    %s[odd].part[at + p][part].w[e %% 4] = v[p];\n            }\n",
                operand ? "ys" : "xs");
}

/* A piece as words of numbers that follow each other along k. */
static void print_words(const Tile *t, int operand, int kind)
{
    const CudaWalk *w = &t->m->w;
    const Access *a = &w->it.in[operand];
    const Type *type = in(t->m->call, operand)->type;
    const int each = in_word[t->factors];
    const int64_t words = t->shape.depth / each;
    const bool along = runs_along_k(t, operand);
    Text *out = w->out;
    text_printf(out, "#pragma unroll 2\n            for (u32 e = threadIdx.x; e < %" PRId64 "; e += %d) {\n",
                words * t->side, SIDE * SIDE);
    text_printf(out, "                const u32 h = e %s %" PRId64 ", at = e %s %" PRId64 ";\n", along ? "%" : "/",
                along ? words : t->side, along ? "/" : "%", along ? words : t->side);
    text_printf(out, "                const %s i = tile%d * %" PRId64 " + at;\n                u32 v = 0;\n", w->index,
                kind, t->side);
    text_printf(out, "#pragma unroll\n                for (u32 p = 0; p < %d; p++) {\n", each);
    text_printf(out, "                    const %s k = k0 + %d * h + p;\n", w->index, each);
    text_printf(out, "                    if (k >= to || i >= %" PRId64 ")\n                        continue;\n",
                t->extent[kind]);
    cuda_walk_digits(w, w->it.folded, w->it.n_folded, "k", 5);
    cuda_walk_digits(w, t->axes[kind], t->n_axes[kind], "i", 5);
    const char *inside = cuda_walk_inside(w, a, type);
    text_printf(
        out, "                    if (%s)\n                        v |= (u32)in%d[%s] << %d * p;\n                }\n",
        inside ? inside : "true", cuda_call_argument(t->m, operand), cuda_walk_place(w, a, type), 32 / each);
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
    if (t->factors) {
        for (int operand = 0; operand < 2; operand++)
            text_printf(out, "    __shared__ TilePiece<%" PRId64 ", %s> %s[2];\n", side,
                        t->factors == HALVES && way_of(t, operand) == ACROSS ? "false" : "true", operand ? "ys" : "xs");
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
    t->m->tensor = t->factors != PLAIN;
    cuda_call_head(t->m, t->factors ? "mma" : "tile", blocks, SIDE * SIDE);
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
        if (t->factors)
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
    return t->factors ? "sums[i / 2][j / 2][i % 2 * 2 + j % 2]" : "sums[i][j]";
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

/* What tensor cores may multiply: bf16 where an engine of a CPU would use its own instruction, too, and codes whose sums leave in
 * f32. */
static Factors factors_of(const CallMaker *m)
{
    const DType x = in(m->call, 0)->type->dtype, y = in(m->call, 1)->type->dtype;
    if (m->target.narrow && work_narrows(m->call) && x == BF16 && y == BF16)
        return HALVES;
    return m->target.narrow_codes && contracts_codes(x) && contracts_codes(y) && access_result(m->call, 0)->dtype == F32
               ? CODES
               : PLAIN;
}

/* The types of both factors, as ops/warp.h names them. */
static const char *names_of(const Tile *t)
{
    static const char *const kinds[] = { "F8e4m3", "F8e5m2" };
    const Node *call = t->m->call;
    return t->factors == CODES ? arena_printf(t->m->w.arena, "%s, %s", kinds[in(call, 0)->type->dtype == F8E5M2],
                                              kinds[in(call, 1)->type->dtype == F8E5M2])
                               : "Bf16";
}

static void print_operand(const Tile *t, int operand, int kind)
{
    const Way way = way_of(t, operand);
    if (way == SINGLE)
        print_words(t, operand, kind);
    else if (way == ACROSS && t->factors == CODES)
        print_turned(t, operand, kind);
    else
        print_copies(t, operand, kind);
}

/* While two pieces are multiplied, the next ones are on their way. */
static void print_tensor_pieces(const Tile *t)
{
    Text *out = t->m->w.out;
    text_printf(out, "    for (%s k0 = from;; k0 += %d, odd ^= 1) {\n        if (k0 < to) {\n", t->m->w.index,
                t->shape.depth);
    for (int operand = 0; operand < 2; operand++)
        print_operand(t, operand, operand ? COLUMNS : ROWS);
    text_printf(
        out,
        "        }\n        copy_commit(&copies);\n        if (k0 > from) {\n            copy_wait<1>(&copies);\n"
        "            __syncthreads();\n"
        "            %s_multiply<%s, %d>(sums, &xs[odd ^ 1], &ys[odd ^ 1]);\n"
        "            __syncthreads();\n        }\n        if (k0 >= to)\n            break;\n    }\n",
        t->factors == CODES ? "floats" : "pieces", names_of(t), t->shape.each / 2);
}

static void print_pieces(const Tile *t)
{
    if (t->factors) {
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
    t.factors = factors_of(m);
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
