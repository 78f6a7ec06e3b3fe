/* Kernels of what is chosen or added up along an axis, lane by lane:
 *
 *     arg, hardmax   a warp for each lane
 *     cumulate       a thread for each block of 1024 of a lane: what it comes to, what all before it came to, then its elements
 *     top_k          of short lanes a thread for each element, which counts those that are better; of long ones a block of threads for each
 *                    lane, which finds one after the other
 */
#include "ops/fold/fold_kernels.h"

#include <inttypes.h>

#include "ops/card/access.h"
#include "ops/card/reduction.h"
#include "ops/card/shapes.h"
#include "ops/fold/fold_access.h"

#define LD PRId64

enum { BLOCK = 1024, SHORT = 2048, THREADS = 256 };

/* The lanes of operand 0 along an axis. */
typedef struct Lanes {
    int64_t n, inner, count;
    const char *type; /* of the arithmetic */
} Lanes;

static Lanes lanes_of(const Type *x, int axis)
{
    Lanes l = { .n = x->dims[axis], .inner = 1, .type = dtype_name(dtype_wide(x->dtype)) };
    for (int d = axis + 1; d < x->rank; d++)
        l.inner *= x->dims[d];
    l.count = l.n ? type_elements(x) / l.n : 0;
    return l;
}

static void print_first(Text *t, const Lanes *l, const char *lane)
{
    text_printf(t, "    const i64 first = %s / %" LD " * %" LD " + %s %% %" LD ";\n", lane, l->inner, l->n * l->inner,
                lane, l->inner);
}

/* ---- the extreme of a lane ---- */

/* A warp finds `at`, where the extreme of lane `block` stands.  A NaN is more extreme than any number. */
static void print_extreme(Text *t, const Lanes *l, bool min, bool last)
{
    text_printf(t, "    typedef %s T;\n", l->type);
    print_first(t, l, "block");
    text_printf(t, "    i64 at = -1;\n    T best = 0;\n    for (i64 k = thread; k < %" LD "; k += 32) {\n", l->n);
    text_printf(t, "        const T v = IN0(first + k * %" LD ");\n", l->inner);
    text_printf(t,
                "        if (at < 0 || (best == best && (v %s best || v != v))%s) {\n            at = k;\n"
                "            best = v;\n        }\n    }\n",
                min ? "<" : ">", last ? " || v == best || (v != v && best != best)" : "");
    text_add(t, "    for (int lane = 16; lane > 0; lane >>= 1) {\n"
                "        const i64 other = __shfl_down_sync(0xffffffffu, at, lane);\n"
                "        const T v = __shfl_down_sync(0xffffffffu, best, lane);\n");
    text_printf(
        t,
        "        const bool same = v == best || (v != v && best != best);\n"
        "        if (other >= 0 && (at < 0 || (same ? other %s at : best == best && (v %s best || v != v)))) {\n"
        "            at = other;\n            best = v;\n        }\n    }\n",
        last ? ">" : "<", min ? "<" : ">");
}

bool kernels_of_arg(const Node *n, OwnKernels *to, bool min)
{
    const ArgAttr *at = n->attr;
    const Type *x = in(n, 0)->type;
    const Lanes l = lanes_of(x, axis_wrap(at->axis, x->rank));
    Text t;
    own_kernel_open(to, &t);
    print_extreme(&t, &l, min, at->select_last_index);
    text_add(&t, "    if (thread == 0)\n        OUT0(block, at);\n");
    own_kernel_close(to, "find", l.count, 32, &t);
    return true;
}

/* ---- running sums ---- */

static const char *joined(const OwnKernels *to, const Lanes *l, bool product, const char *x, const char *y)
{
    const bool whole = l->type[0] == 'i' || l->type[0] == 'u';
    return arena_printf(to->arena, whole ? "(T)((u64)%s %s (u64)%s)" : "%s %s %s", x, product ? "*" : "+", y);
}

static void open_block(OwnKernels *to, Text *t, const Lanes *l, int64_t blocks, bool reverse)
{
    own_kernel_open(to, t);
    text_printf(t, "    typedef %s T;\n    const i64 lane = o / %" LD ", block = o %% %" LD ";\n", l->type, blocks,
                blocks);
    print_first(t, l, "lane");
    text_printf(t, "    const i64 begin = block * %d, end = begin + %d < %" LD " ? begin + %d : %" LD ";\n", BLOCK,
                BLOCK, l->n, BLOCK, l->n);
    text_printf(t, "#define PLACE(i) (first + (%s) * %" LD ")\n",
                reverse ? arena_printf(to->arena, "%" LD " - (i)", l->n - 1) : "i", l->inner);
}

static void print_totals(OwnKernels *to, const Lanes *l, int64_t blocks, bool product, bool reverse, size_t parts)
{
    Text t;
    open_block(to, &t, l, blocks, reverse);
    text_printf(&t, "    T sum = IN0(PLACE(begin));\n    for (i64 i = begin + 1; i < end; i++)\n        sum = %s;\n",
                joined(to, l, product, "sum", "IN0(PLACE(i))"));
    text_printf(&t, "    ((T *)(scratch + %zu))[o] = sum;\n#undef PLACE\n", parts);
    own_kernel_close(to, "blocks", l->count * blocks, 0, &t);
    own_kernel_open(to, &t);
    text_printf(&t, "    typedef %s T;\n    T *const part = (T *)(scratch + %zu) + o * %" LD ";\n", l->type, parts,
                blocks);
    text_printf(&t, "    for (i64 b = 1; b < %" LD "; b++)\n        part[b] = %s;\n", blocks,
                joined(to, l, product, "part[b - 1]", "part[b]"));
    own_kernel_close(to, "carry", l->count, 0, &t);
}

bool kernels_of_cumulate(const Node *n, OwnKernels *to, bool product)
{
    const CumAttr *at = n->attr;
    const Type *x = in(n, 0)->type;
    int64_t count;
    const int64_t *axis = access_ints(n, 1, to->arena, &count);
    if (!axis || !x->rank)
        return false;
    const Lanes l = lanes_of(x, axis_wrap(axis[0], x->rank));
    const int64_t blocks = (l.n + BLOCK - 1) / BLOCK;
    const size_t parts = blocks > 1 ? own_scratch(to, l.count * blocks * (int64_t)sizeof(f64)) : 0;
    Text t;
    if (blocks > 1)
        print_totals(to, &l, blocks, product, at->reverse, parts);
    open_block(to, &t, &l, blocks, at->reverse);
    text_printf(&t, "    T sum = 0, so_far = %d, carry = 0;\n", product);
    if (blocks > 1)
        text_printf(&t, "    if (block)\n        carry = so_far = ((const T *)(scratch + %zu))[o - 1];\n", parts);
    text_printf(&t,
                "    for (i64 i = begin; i < end; i++) {\n        const T v = IN0(PLACE(i)), before = so_far;\n"
                "        sum = i == begin ? v : %s;\n        so_far = block ? %s : sum;\n"
                "        OUT0(PLACE(i), %s);\n    }\n#undef PLACE\n    (void)carry;\n",
                joined(to, &l, product, "sum", "v"), joined(to, &l, product, "carry", "sum"),
                at->exclusive ? "before" : "so_far");
    own_kernel_close(to, "run", l.count * blocks, 0, &t);
    return true;
}

/* ---- the best of a lane ---- */

/* A number whose order is that of elements; what is best is smallest. */
static void print_key(Text *t, const Type *x, bool largest)
{
    const char *no = largest ? "~" : "";
    if (dtype_is_float(x->dtype)) {
        text_printf(t, "        const f64 wide = (f64)v + 0.0;\n        const u64 bits = half_bits64(wide);\n");
        text_printf(
            t, "        const u64 key = %s(wide != wide ? ~(u64)0 : bits >> 63 ? ~bits : bits | (u64)1 << 63);\n", no);
    } else if (x->dtype == U64) {
        text_printf(t, "        const u64 key = %s(u64)v;\n", no);
    } else {
        text_printf(t, "        const u64 key = %s((u64)(i64)v ^ (u64)1 << 63);\n", no);
    }
}

static void print_keys(const Node *n, OwnKernels *to, const Lanes *l, bool largest, size_t keys)
{
    const Type *x = in(n, 0)->type;
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    {\n        const %s v = IN0(o);\n", l->type);
    print_key(&t, x, largest);
    text_printf(&t, "        ((u64 *)(scratch + %zu))[o] = key;\n    }\n", keys);
    own_kernel_close(to, "keys", type_elements(x), 0, &t);
}

static void print_choice(Text *t, const Lanes *l, int64_t k, bool places, const char *rank, const char *from, int at)
{
    text_printf(t, "%*sconst i64 to = lane / %" LD " * %" LD " + lane %% %" LD " + %s * %" LD ";\n", at, "", l->inner,
                k * l->inner, l->inner, rank, l->inner);
    text_printf(t, "%*sOUTRAW0[to] = RAW0[first + %s * %" LD "];\n", at, "", from, l->inner);
    if (places)
        text_printf(t, "%*sOUTRAW1[to] = %s;\n", at, "", from);
}

static void print_short(OwnKernels *to, const Lanes *l, int64_t k, bool places, size_t keys)
{
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    const i64 lane = o / %" LD " * %" LD " + o %% %" LD ", i = o / %" LD " %% %" LD ";\n",
                l->n * l->inner, l->inner, l->inner, l->inner, l->n);
    print_first(&t, l, "lane");
    text_printf(&t, "    const u64 *const keys = (const u64 *)(scratch + %zu) + first;\n", keys);
    text_printf(&t, "    const u64 own = keys[i * %" LD "];\n    i64 rank = 0;\n", l->inner);
    text_printf(&t,
                "    for (i64 j = 0; j < %" LD "; j++)\n        rank += keys[j * %" LD "] < own || (keys[j * %" LD
                "] == own && j < i);\n",
                l->n, l->inner, l->inner);
    text_printf(&t, "    if (rank >= %" LD ")\n        return;\n", k);
    print_choice(&t, l, k, places, "rank", "i", 4);
    own_kernel_close(to, "rank", l->count * l->n, 0, &t);
}

/* Each round finds the best of those behind the one before it. */
static void print_long(OwnKernels *to, const Lanes *l, int64_t k, bool places, size_t keys)
{
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    __shared__ u64 best[%d];\n    __shared__ i64 at[%d];\n    const i64 lane = block;\n", THREADS,
                THREADS);
    print_first(&t, l, "lane");
    text_printf(&t, "    const u64 *const keys = (const u64 *)(scratch + %zu) + first;\n", keys);
    text_printf(&t, "    u64 past = 0;\n    i64 past_at = -1;\n    for (i64 round = 0; round < %" LD "; round++) {\n",
                k);
    text_printf(&t,
                "        u64 own = ~(u64)0;\n        i64 own_at = -1;\n        for (i64 i = thread; i < %" LD
                "; i += %d) {\n            const u64 key = keys[i * %" LD "];\n",
                l->n, THREADS, l->inner);
    text_add(&t, "            const bool behind = key > past || (key == past && i > past_at);\n"
                 "            if (behind && (own_at < 0 || key < own)) {\n                own = key;\n"
                 "                own_at = i;\n            }\n        }\n        best[thread] = own;\n"
                 "        at[thread] = own_at;\n        __syncthreads();\n");
    text_printf(&t, "        for (u32 half = %d; half > 0; half /= 2) {\n", THREADS / 2);
    text_add(
        &t,
        "            if (thread < half && at[thread + half] >= 0 &&\n"
        "                (at[thread] < 0 || best[thread + half] < best[thread] ||\n"
        "                 (best[thread + half] == best[thread] && at[thread + half] < at[thread]))) {\n"
        "                best[thread] = best[thread + half];\n                at[thread] = at[thread + half];\n"
        "            }\n            __syncthreads();\n        }\n        past = best[0];\n        past_at = at[0];\n"
        "        __syncthreads();\n        if (thread == 0) {\n");
    print_choice(&t, l, k, places, "round", "past_at", 12);
    text_add(&t, "        }\n    }\n");
    own_kernel_close(to, "rounds", l->count, THREADS, &t);
}

bool kernels_top_k(const Node *n, OwnKernels *to)
{
    const TopKAttr *at = n->attr;
    const Type *x = in(n, 0)->type;
    const int axis = x->rank ? axis_wrap(at->axis, x->rank) : 0;
    if (!x->rank)
        return false;
    const int64_t k = access_result(n, 0)->dims[axis];
    const Lanes l = lanes_of(x, axis);
    const size_t keys = own_scratch(to, type_elements(x) * (int64_t)sizeof(u64));
    print_keys(n, to, &l, at->largest, keys);
    (l.n <= SHORT ? print_short : print_long)(to, &l, k, type_results(n->type) > 1, keys);
    return true;
}

bool kernels_hardmax(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, 0)->type;
    if (!x->rank)
        return false;
    const Lanes l = lanes_of(x, axis_wrap(((const AxisAttr *)n->attr)->axis, x->rank));
    Text t;
    own_kernel_open(to, &t);
    print_extreme(&t, &l, false, false);
    text_add(&t, "    at = __shfl_sync(0xffffffffu, at, 0);\n");
    text_printf(&t, "    for (i64 k = thread; k < %" LD "; k += 32)\n        OUT0(first + k * %" LD ", k == at);\n",
                l.n, l.inner);
    own_kernel_close(to, "hot", l.count, 32, &t);
    return true;
}
