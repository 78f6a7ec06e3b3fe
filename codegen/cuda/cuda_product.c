/* Products that a library makes (ProductMaker): which calls are products of stacks of matrices, and how these lie.
 *
 * Every axis of a walk is one of rows (the first operand alone moves along it), of columns (the second one does), of stacks
 * (both do) or of k (folded).  Neighbouring axes along which all that they move goes on evenly are one axis; what is left has to
 * be one of each kind, or a second one of rows or of columns, which is a stack then whose other operand stays.  So products of
 * matrices in any order, in stacks, and convolutions of one tap are found by what their cards say. */
#include <string.h>

#include "codegen/cuda/cuda_calls.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"

enum {
    LEAST = 8, /* rows or columns that are worth one, as of tiles */
    MOST = 0x7fffffff,
    CODES_SIDE = 4,         /* what sides of products of codes are multiples of, */
    FLOATS_SIDE = 16,       /* of floats of eight bits, too */
    CODES_K = (1 << 17) - 1 /* so long sums of products of codes fit 32 bits, however they are made */
};

typedef enum AxisKind { ROWS, COLUMNS, STACKS, SUMS, KINDS } AxisKind;
typedef enum Side { LEFT, RIGHT, RESULT, SIDES } Side;

/* An axis, and how many elements a step along it is of each side. */
typedef struct Axis {
    int64_t extent, step[SIDES];
} Axis;

typedef struct Found {
    Axis axes[KINDS][SPACE_RANK];
    int n[KINDS];
    int64_t from[SIDES];
} Found;

/* Whether every point leads into the tensor. */
static bool stays_inside(const Iteration *it, const Access *a, const Type *t)
{
    for (int d = 0; d < a->rank; d++) {
        int64_t last = a->base[d];
        for (int s = 0; s < it->rank; s++) {
            const int64_t step = a->step[d * it->rank + s];
            if (step < 0)
                return false;
            last += step * (it->extent[s] - 1);
        }
        if (a->base[d] < 0 || last >= t->dims[d])
            return false;
    }
    return true;
}

static bool is_plain(const Iteration *it, const Access *a, const Type *t)
{
    return a->reach == REACH_AFFINE && a->piece_dim == NO_PIECE && (a->guard == GUARD_NONE || a->guard == GUARD_FILL) &&
           stays_inside(it, a, t);
}

/* Whether the call is sums of products of two operands, of types that libraries multiply. */
static bool is_product(const CallMaker *m)
{
    const Iteration *it = &m->w.it;
    const Node *call = m->call;
    if (call->n_in < 2 || !in(call, 0) || !in(call, 1) || it->n_out != 1 || m->launch->refuses ||
        it->begins != NO_OPERAND || !is_plain(it, &it->in[0], in(call, 0)->type) ||
        !is_plain(it, &it->in[1], in(call, 1)->type) || !is_plain(it, &it->out[0], access_result(call, 0)))
        return false;
    for (int i = 2; i < call->n_in; i++)
        if (in(call, i))
            return false;
    const DType x = in(call, 0)->type->dtype, y = in(call, 1)->type->dtype, out = access_result(call, 0)->dtype;
    if (x == I8)
        return y == I8 && out == I32 && op_of(call)->access.kind == ACCESS_CONTRACT;
    if (contracts_codes(x)) /* of e5m2 at most one factor may be */
        return m->target.narrow_codes && contracts_codes(y) && (x == F8E4M3 || y == F8E4M3) && out == F32 &&
               it->order == ORDER_FMA;
    if (x == BF16 && !(m->target.narrow && work_narrows(call)))
        return false;
    return it->order == ORDER_FMA && x == y && (x == F32 || ((x == BF16 || x == F16) && (out == x || out == F32)));
}

static int64_t step_of(const CudaWalk *w, const Access *a, const Type *t, int axis)
{
    int64_t each = 1, sum = 0;
    for (int d = a->rank - 1; d >= 0; d--) {
        sum += axis < 0 ? each * a->base[d] : each * a->step[d * w->it.rank + axis];
        each *= t->dims[d];
    }
    return sum;
}

/* The axis without a number is where everything begins. */
static Axis axis_of(const CallMaker *m, int axis)
{
    const Iteration *it = &m->w.it;
    return (Axis){ axis < 0 ? 1 : it->extent[axis],
                   { step_of(&m->w, &it->in[0], in(m->call, 0)->type, axis),
                     step_of(&m->w, &it->in[1], in(m->call, 1)->type, axis),
                     step_of(&m->w, &it->out[0], access_result(m->call, 0), axis) } };
}

/* How an axis of the walk moves; KINDS: as those of no product. */
static AxisKind kind_of(const Axis *a, bool folded)
{
    const bool x = a->step[LEFT] > 0, y = a->step[RIGHT] > 0, out = a->step[RESULT] > 0;
    for (int i = 0; i < SIDES; i++)
        if (a->step[i] < 0)
            return KINDS;
    if (folded)
        return x && y && !out ? SUMS : KINDS;
    if (!out || (!x && !y))
        return KINDS;
    return x && y ? STACKS : x ? ROWS : COLUMNS;
}

/* Adds an axis behind those of its kind; one that goes on where the last one ends lengthens that. */
static void add(Found *f, AxisKind kind, const Axis *a)
{
    Axis *last = f->n[kind] ? &f->axes[kind][f->n[kind] - 1] : NULL;
    bool on = last != NULL;
    for (int i = 0; on && i < SIDES; i++)
        on = last->step[i] == a->step[i] * a->extent;
    if (!on) {
        f->axes[kind][f->n[kind]++] = *a;
        return;
    }
    last->extent *= a->extent;
    memcpy(last->step, a->step, sizeof a->step);
}

static bool sort_axes(const CallMaker *m, Found *f)
{
    const Iteration *it = &m->w.it;
    const Axis begin = axis_of(m, -1);
    memcpy(f->from, begin.step, sizeof f->from);
    for (int i = 0; i < it->rank + it->n_folded; i++) {
        const bool folded = i >= it->rank;
        const int s = folded ? it->folded[i - it->rank] : i;
        if (it->extent[s] < 1)
            return false;
        if (it->extent[s] == 1 || (!folded && m->w.folded[s]))
            continue;
        const Axis a = axis_of(m, s);
        const AxisKind kind = kind_of(&a, folded);
        if (kind == KINDS)
            return false;
        add(f, kind, &a);
    }
    return true;
}

/* The outer one of two axes of rows, or of columns, becomes a stack. */
static bool make_matrices(Found *f)
{
    for (int kind = ROWS; kind <= COLUMNS; kind++) {
        if (f->n[kind] != 2 || f->n[STACKS])
            continue;
        f->axes[STACKS][f->n[STACKS]++] = f->axes[kind][0];
        f->axes[kind][0] = f->axes[kind][1];
        f->n[kind] = 1;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        if (f->n[kind] > 1)
            return false;
        if (!f->n[kind])
            f->axes[kind][0] = (Axis){ .extent = 1 };
        if (f->axes[kind][0].extent > MOST)
            return false;
    }
    return true;
}

/* Whether a matrix lies column by column, its rows being along one axis. */
static bool lies(const Found *f, AxisKind rows, AxisKind columns, Side side, MatrixStack *to)
{
    const Axis *r = &f->axes[rows][0], *c = &f->axes[columns][0];
    to->rows = r->extent;
    to->columns = c->extent;
    to->line = c->extent == 1 ? r->extent : c->step[side];
    to->step = f->axes[STACKS][0].step[side];
    to->from = f->from[side];
    return (r->extent == 1 || r->step[side] == 1) && to->line >= to->rows;
}

/* A factor whose rows and columns are along these axes, as it lies or turned. */
static bool lay_factor(const Found *f, AxisKind rows, AxisKind columns, Side side, MatrixStack *to)
{
    to->turned = !lies(f, rows, columns, side, to);
    return !to->turned || lies(f, columns, rows, side, to);
}

/* With the columns of the walk as rows of what lies column by column, or with its rows. */
static bool lay(const Found *f, AxisKind rows, StackProduct *p)
{
    const AxisKind columns = rows == ROWS ? COLUMNS : ROWS;
    const Side a = rows == ROWS ? LEFT : RIGHT, b = rows == ROWS ? RIGHT : LEFT;
    p->a.argument = (int)a;
    p->b.argument = (int)b;
    return lies(f, rows, columns, RESULT, &p->d) && lay_factor(f, rows, SUMS, a, &p->a) &&
           lay_factor(f, SUMS, columns, b, &p->b);
}

/* Codes are multiplied along what is next to each other in both, by fours; floats of eight bits by sixteens. */
static bool codes_fit(const StackProduct *p, int64_t side)
{
    return p->a.turned && !p->b.turned && p->b.rows % side == 0 && p->d.rows % side == 0 && p->a.line % side == 0 &&
           p->b.line % side == 0 && p->d.line % side == 0 && p->a.from % side == 0 && p->b.from % side == 0;
}

/* Whether a factor's codes lie as a library wants them; others may lie anyhow. */
static bool factors_fit(const StackProduct *p)
{
    if (p->a.type == I8)
        return p->b.rows <= CODES_K && codes_fit(p, CODES_SIDE);
    return !contracts_codes(p->a.type) ||
           (codes_fit(p, FLOATS_SIDE) && p->d.columns % FLOATS_SIDE == 0 && p->d.from % FLOATS_SIDE == 0 &&
            p->a.step % FLOATS_SIDE == 0 && p->b.step % FLOATS_SIDE == 0 && p->d.step % FLOATS_SIDE == 0);
}

bool cuda_product_of(const CallMaker *m, StackProduct *p)
{
    Found f = { .n = { 0 } };
    CallMaker walked = *m;
    Text none;
    text_open(&none, m->w.arena);
    *p = (StackProduct){ .n = 1, .end = { .added = NO_ARGUMENT, .bias = NO_ARGUMENT } };
    if (op_of(m->call)->expand || cuda_walk_open(&walked.w, &none, m->call) || !is_product(&walked) ||
        !sort_axes(&walked, &f) || !make_matrices(&f) || !(lay(&f, COLUMNS, p) || lay(&f, ROWS, p)) ||
        p->d.rows < LEAST || p->d.columns < LEAST)
        return false;
    p->n = f.axes[STACKS][0].extent;
    p->a.type = in(m->call, p->a.argument)->type->dtype;
    p->b.type = in(m->call, p->b.argument)->type->dtype;
    p->d.type = access_result(m->call, 0)->dtype;
    p->d.argument = 2;
    return factors_fit(p);
}

bool cuda_product(CallMaker *m)
{
    ProductMaker *maker = m->target.products;
    StackProduct p;
    size_t scratch = 0;
    const KernelProduct *by = maker && cuda_product_of(m, &p) ? maker->take(maker, &p, &scratch) : NULL;
    if (!by)
        return false;
    m->launch->kernels[m->launch->n++] = (CudaKernel){ .blocks = 1, .threads = 1, .product = by };
    m->launch->scratch = scratch;
    return true;
}
