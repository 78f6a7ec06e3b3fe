/* Kernels of moves that fill what nothing is moved to: a thread for each element of the result. */
#include "ops/move/move_kernels.h"

#include <inttypes.h>
#include <string.h>

#include "ops/card/access.h"
#include "ops/card/reduction.h"
#include "ops/card/shapes.h"
#include "ops/move/move.h"
#include "ops/move/move_access.h"
#include "ops/move/pad.h"

#define LD PRId64

bool kernels_trilu(const Node *n, OwnKernels *to)
{
    const Type *y = access_result(n, 0);
    const int64_t rows = y->dims[y->rank - 2], columns = y->dims[y->rank - 1];
    Text t;
    own_kernel_open(to, &t);
    text_printf(&t, "    i64 k = %s;\n    k = k < -%" LD " ? -%" LD " : k > %" LD " ? %" LD " : k;\n",
                n->n_in > 1 && in(n, 1) ? "(i64)IN1(0)" : "0", rows, rows, columns, columns);
    text_printf(&t, "    const i64 beyond = o %% %" LD " - o / %" LD " %% %" LD " - k;\n", columns, columns, rows);
    text_printf(&t, "    OUTRAW0[o] = beyond %s 0 ? RAW0[o] : 0;\n", ((const TriluAttr *)n->attr)->upper ? ">=" : "<=");
    own_kernel_close(to, "triangle", type_elements(y), 0, &t);
    return true;
}

bool kernels_one_hot(const Node *n, OwnKernels *to)
{
    const Type *y = access_result(n, 0), *x = in(n, 0)->type;
    const int axis = axis_wrap(((const OneHotAttr *)n->attr)->axis, y->rank);
    const int64_t depth = y->dims[axis], inner = move_count(y->dims, axis + 1, y->rank);
    Text t;
    if (x->dtype == U64)
        return false;
    own_kernel_open(to, &t);
    text_printf(&t, "    typedef %s T;\n    const T v = IN0(o / %" LD " * %" LD " + o %% %" LD ");\n",
                dtype_name(dtype_wide(x->dtype)), depth * inner, inner, inner);
    text_printf(&t, "    const i64 whole = q_i64(v), hot = whole < 0 ? whole + %" LD " : whole;\n", depth);
    text_printf(&t, "    const bool is_hot = %shot == o / %" LD " %% %" LD ";\n",
                dtype_is_float(x->dtype) ? "v < 0x1p62f && v > -0x1p62f && " : "", inner, depth);
    text_add(&t, "    OUTRAW0[o] = RAW2[is_hot ? 1 : 0];\n");
    own_kernel_close(to, "hot", type_elements(y), 0, &t);
    return true;
}

/* Where element `at` of an axis comes from, as pad's source() says. */
static void print_source(Text *t, int mode, int d, int64_t n, int64_t before, int64_t after)
{
    const int64_t low = before < 0 ? -before : 0, high = after < 0 ? n + after : n, left = high - low;
    const int64_t period = mode == PAD_WRAP ? left : left > 1 ? 2 * (left - 1) : 1;
    text_printf(t, "    i64 x%d = c%d - %" LD ";\n", d, d, before < 0 ? 0 : before);
    if (mode == PAD_CONSTANT)
        text_printf(t, "    inside = inside && x%d >= 0 && x%d < %" LD ";\n", d, d, left);
    else if (mode == PAD_EDGE)
        text_printf(t, "    x%d = x%d < 0 ? 0 : x%d >= %" LD " ? %" LD " : x%d;\n", d, d, d, left, left - 1, d);
    else
        text_printf(
            t, "    x%d = (x%d %% %" LD " + %" LD ") %% %" LD ";\n    x%d = x%d < %" LD " ? x%d : %" LD " - x%d;\n", d,
            d, period, period, period, d, d, left, d, period, d);
    text_printf(t, "    from = from * %" LD " + x%d + %" LD ";\n", n, d, low);
}

bool kernels_pad(const Node *n, OwnKernels *to)
{
    const Type *x = in(n, 0)->type, *y = access_result(n, 0);
    const int mode = ((const PadAttr *)n->attr)->mode;
    int64_t n_pads, n_axes = 0, before[MAX_RANK], after[MAX_RANK], below = type_elements(y);
    const int64_t *pads = access_ints(n, 1, to->arena, &n_pads), *axes = NULL;
    const Node *fill = n->n_in > 2 ? in(n, 2) : NULL;
    Text t;
    if (n->n_in > 3 && in(n, 3) && !(axes = access_ints(n, 3, to->arena, &n_axes)))
        return false;
    if (!pads || (fill && fill->type->dtype != x->dtype))
        return false;
    pad_frame(x->rank, axes ? n_axes : x->rank, pads, axes, before, after);
    own_kernel_open(to, &t);
    text_add(&t, "    bool inside = true;\n    i64 from = 0;\n");
    for (int d = 0; d < x->rank; d++) {
        below /= y->dims[d];
        text_printf(&t, "    const i64 c%d = o / %" LD " %% %" LD ";\n", d, below, y->dims[d]);
        if (before[d] || after[d])
            print_source(&t, mode, d, x->dims[d], before[d], after[d]);
        else
            text_printf(&t, "    from = from * %" LD " + c%d;\n", x->dims[d], d);
    }
    text_printf(&t, "    OUTRAW0[o] = inside ? RAW0[from] : %s;\n", fill ? "RAW2[0]" : "0");
    own_kernel_close(to, "frame", type_elements(y), 0, &t);
    return true;
}
