/* The products inside of attention, each sum in the order of contractions: a block of 256 threads for each tile of 64 rows and columns, pieces of
 * both matrices in the memory that it shares and squares of 4 x 4 sums in registers; or, where a side is shorter than a tile is
 * worth, a thread for each sum. */
#include "ops/attend/attend_writer.h"
#include "ops/kernels/panel.h"

enum { THREADS = 256, SIDE = 64, DEPTH = 16, LEAST = 8, MOST_BLOCKS = 0x7fffffff };

static bool is_long(const AttendProduct *p)
{
    return p->k > PANEL_SEGMENT;
}

static const char *digit(const AttendWriter *w, const char *number, int64_t below, int64_t extent)
{
    Arena *arena = w->to->arena;
    if (extent == 1)
        return "0";
    const char *over = below > 1 ? arena_printf(arena, "%s / %" LD, number, below) : number;
    return extent ? arena_printf(arena, "%s %% %" LD, over, extent) : over;
}

static void print_chain(AttendWriter *w, const AttendProduct *p)
{
    Text *t = &w->t;
    text_printf(t, "    const i64 j = %s, r = %s;\n", digit(w, "o", 1, p->n), digit(w, "o", p->n, p->m));
    text_printf(t, "    const i64 shared = %s, b = %s;\n", digit(w, "o", p->m * p->n, w->h.heads),
                digit(w, "o", p->m * p->n * w->h.heads, w->h.batch == 1));
    text_printf(t, "    T sum = 0;\n");
    if (is_long(p))
        text_printf(t, "    sum_counter_%s segments = { 0 };\n", w->type);
    text_printf(t, "    for (i64 i = 0; i < %" LD "; i++) {\n", p->k);
    if (is_long(p))
        text_printf(t,
                    "        if (i && i %% %d == 0) {\n            sum_push_%s(&segments, sum);\n"
                    "            sum = 0;\n        }\n",
                    PANEL_SEGMENT, w->type);
    text_printf(t, "        const T x = %s;\n        const T y = %s;\n        sum = fma_%s(x, y, sum);\n    }\n", p->x,
                p->y, w->type);
    if (is_long(p))
        text_printf(t, "    sum_push_%s(&segments, sum);\n    sum = sum_total_%s(&segments);\n", w->type, w->type);
    p->end(w, p);
    own_kernel_close(w->to, p->part, w->h.batch * w->h.heads * p->m * p->n, 0, t);
}

/* A piece of a matrix: neighbours of a warp read what lies beside each other, and store it in rows that are an odd number of words
 * apart, so that they meet no bank twice. */
static void print_piece(AttendWriter *w, const AttendProduct *p, bool right)
{
    const char *lane = right ? "j" : "r", *to = right ? "ys" : "xs";
    const bool along = right ? p->y_along : p->x_along;
    Text *t = &w->t;
    text_printf(t, "#pragma unroll\n        for (u32 e = thread; e < %d; e += %d) {\n", SIDE * DEPTH, THREADS);
    if (along)
        text_printf(t, "            const u32 h = e %% %d, at = e / %d;\n", DEPTH, DEPTH);
    else
        text_printf(t, "            const u32 h = e / %d, at = e %% %d;\n", SIDE, SIDE);
    text_printf(t, "            const i64 i = k0 + h, %s = %s + at;\n", lane, right ? "column" : "row0");
    text_printf(t, "            %s[h][at] = i < %" LD " && %s < %" LD " ? (T)%s : 0;\n        }\n", to, p->k, lane,
                right ? p->n : p->m, right ? p->y : p->x);
}

static void print_tile(AttendWriter *w, const AttendProduct *p)
{
    const int64_t down = (p->m + SIDE - 1) / SIDE, across = (p->n + SIDE - 1) / SIDE;
    Text *t = &w->t;
    text_printf(t, "    __shared__ T xs[%d][%d], ys[%d][%d];\n", DEPTH, SIDE + 1, DEPTH, SIDE + 1);
    text_printf(t, "    const i64 column = %s * %d, row0 = %s * %d;\n", digit(w, "block", 1, across), SIDE,
                digit(w, "block", across, down), SIDE);
    text_printf(t, "    const i64 shared = %s, b = %s;\n", digit(w, "block", across * down, w->h.heads),
                digit(w, "block", across * down * w->h.heads, w->h.batch == 1));
    text_printf(t, "    const u32 right = thread %% 16, below = thread / 16;\n    T sums[4][4] = { { 0 } };\n");
    if (is_long(p))
        text_printf(t, "    sum_counter_%s segments[4][4] = { { { 0 } } };\n", w->type);
    text_printf(t, "    for (i64 k0 = 0; k0 < %" LD "; k0 += %d) {\n", p->k, DEPTH);
    print_piece(w, p, false);
    print_piece(w, p, true);
    text_printf(t, "        __syncthreads();\n");
    if (is_long(p))
        text_printf(t,
                    "        for (u32 s = 0; k0 && k0 %% %d == 0 && s < 16; s++) {\n"
                    "            sum_push_%s(&segments[s / 4][s %% 4], sums[s / 4][s %% 4]);\n"
                    "            sums[s / 4][s %% 4] = 0;\n        }\n",
                    PANEL_SEGMENT, w->type);
    text_printf(t, "        const u32 n = %" LD " - k0 < %d ? (u32)(%" LD " - k0) : %d;\n", p->k, DEPTH, p->k, DEPTH);
    text_printf(t,
                "        for (u32 h = 0; h < n; h++) {\n            T x[4], y[4];\n"
                "#pragma unroll\n            for (u32 s = 0; s < 4; s++) {\n"
                "                x[s] = xs[h][below + 16 * s];\n                y[s] = ys[h][right + 16 * s];\n"
                "            }\n#pragma unroll\n            for (u32 s = 0; s < 16; s++)\n"
                "                sums[s / 4][s %% 4] = fma_%s(x[s / 4], y[s %% 4], sums[s / 4][s %% 4]);\n        }\n"
                "        __syncthreads();\n    }\n",
                w->type);
    text_printf(t,
                "#pragma unroll\n    for (u32 s = 0; s < 16; s++) {\n"
                "    const i64 r = row0 + below + 16 * (s / 4), j = column + right + 16 * (s %% 4);\n"
                "    if (r >= %" LD " || j >= %" LD ")\n        continue;\n",
                p->m, p->n);
    text_printf(t, "    const i64 o = ((b * %" LD " + shared) * %" LD " + r) * %" LD " + j;\n", w->h.heads, p->m, p->n);
    text_printf(t, "    T sum = sums[s / 4][s %% 4];\n");
    if (is_long(p))
        text_printf(t,
                    "    sum_push_%s(&segments[s / 4][s %% 4], sum);\n"
                    "    sum = sum_total_%s(&segments[s / 4][s %% 4]);\n",
                    w->type, w->type);
    p->end(w, p);
    text_printf(t, "    }\n");
    own_kernel_close(w->to, p->part, down * across * w->h.heads * w->h.batch, THREADS, t);
}

void attend_product(AttendWriter *w, const AttendProduct *p)
{
    const int64_t down = (p->m + SIDE - 1) / SIDE, across = (p->n + SIDE - 1) / SIDE;
    own_kernel_open(w->to, &w->t);
    text_printf(&w->t, "    typedef %s T;\n", w->type);
    if (p->m < LEAST || p->n < LEAST || w->h.batch * w->h.heads > MOST_BLOCKS / down / across)
        print_chain(w, p);
    else
        print_tile(w, p);
}
