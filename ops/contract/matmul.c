/* matmul: numpy's product of stacks of matrices. */
#include <string.h>

#include "ops/card/shapes.h"
#include "ops/contract/contract.h"
#include "ops/contract/work.h"
#include "ops/contract/contract_access.h"
#include "ops/contract/operands.h"

static const AttrSpec matmul_attrs[] = {
    ATTR_OURS(MatmulAttr, ta, BOOL, false),
    ATTR_OURS(MatmulAttr, tb, BOOL, false),
    ATTR_OURS(MatmulAttr, out, DTYPE, 0),
    ATTR_LAST,
};

bool infer_contracted(Infer *q, int out, int i, DType *dtype)
{
    *dtype = q->in[i]->dtype;
    if (*dtype == BOOL || *dtype == STRING) {
        infer_fail(q, "needs numbers, got %s", type_text(q->scratch, q->in[i]));
        return false;
    }
    if (!out)
        return true;
    const DType to = (DType)(out - 1);
    if (dtype_is_float(to) != dtype_is_float(*dtype)) {
        infer_fail(q, "cannot give %s from %s", dtype_name(to), dtype_name(*dtype));
        return false;
    }
    *dtype = to;
    return true;
}

bool contracts_codes(DType type)
{
    return type == F8E4M3 || type == F8E5M2;
}

bool infer_factors(Infer *q, int out, const Type **a, const Type **b, DType *dtype)
{
    *a = infer_tensor(q, 0);
    *b = *a ? infer_tensor(q, 1) : NULL;
    if (!*b || !infer_contracted(q, out, 0, dtype))
        return false;
    if ((*a)->dtype == (*b)->dtype || (out && contracts_codes((*a)->dtype) && contracts_codes((*b)->dtype)))
        return true;
    infer_fail(q, "needs operands of one type, got %s and %s", dtype_name((*a)->dtype), dtype_name((*b)->dtype));
    return false;
}

bool infer_inner(Infer *q, int64_t ka, int64_t kb)
{
    if (ka == kb || ka < 0 || kb < 0)
        return true;
    infer_fail(q, "inner dimensions differ: %" PRId64 " and %" PRId64, ka, kb);
    return false;
}

/* The extents of one operand: m or n, its rows or columns that are those of the product (1 for a vector), and k,
 * which is summed over. */
static void matrix_of(const Type *t, bool transposed, bool left, int64_t *outer, int64_t *inner)
{
    if (t->rank == 1) {
        *outer = 1;
        *inner = t->dims[0];
        return;
    }
    const int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
    *outer = left != transposed ? rows : cols;
    *inner = left != transposed ? cols : rows;
}

/* The stack's shape: what stands before the two matrix dimensions, broadcast. */
static bool stack_of(const Type *a, const Type *b, int *rank, int64_t *dims)
{
    const Type *both[] = { a, b };
    *rank = 0;
    for (int i = 0; i < 2; i++) {
        const int less = both[i]->rank > 2 ? both[i]->rank - 2 : 0;
        const Type head = { .kind = TYPE_TENSOR, .rank = less, .dims = both[i]->dims };
        if (!broadcast_dims(rank, dims, &head))
            return false;
    }
    return true;
}

static const Type *infer_matmul(Infer *q)
{
    const MatmulAttr *at = q->attr;
    const Type *a, *b;
    DType dtype;
    if (!infer_factors(q, at->out, &a, &b, &dtype))
        return NULL;
    if (a->rank == 0 || b->rank == 0)
        return infer_fail(q, "needs a dimension to sum over, got ranks %d and %d", a->rank, b->rank);
    if (a->rank < 0 || b->rank < 0)
        return type_unranked(q->types, dtype);
    if ((at->ta && a->rank < 2) || (at->tb && b->rank < 2))
        return infer_fail(q, "a vector cannot be transposed");

    int rank;
    int64_t dims[MAX_RANK], m, n, ka, kb;
    matrix_of(a, at->ta, true, &m, &ka);
    matrix_of(b, at->tb, false, &n, &kb);
    if (!infer_inner(q, ka, kb))
        return NULL;
    if (!stack_of(a, b, &rank, dims))
        return infer_fail(q, "the stacks of %s and %s do not broadcast", type_text(q->scratch, a),
                          type_text(q->scratch, b));
    if (a->rank > 1)
        dims[rank++] = m;
    if (b->rank > 1)
        dims[rank++] = n;
    return infer_dims(q, dtype, rank, dims);
}

/* One of several products of the same left operand. */
typedef struct MatmulSide {
    Eval *e;
    size_t n, bp, bj; /* element (p,j) of b is at p * bp + j * bj */
    const void *b;
    void *c;      /* null: blocks of it are made one by one */
    void *panels; /* b, packed once for all rows */
    bool past;    /* it is written past the caches, which would not hold it */
} MatmulSide;

enum { MOST_SIDES = MATMUL_BESIDE };

/* Products of a stack, and which rows of them: the unit that is spread over threads. */
typedef struct MatmulRun {
    Eval *e; /* of the first */
    size_t m, k;
    size_t ai, ap; /* element (i,p) of a is at i * ai + p * ap */
    size_t n;      /* columns of all sides, side by side */
    int rank;
    int64_t dims[MAX_RANK], a_stride[MAX_RANK], b_stride[MAX_RANK]; /* of the stack, in matrices */
    int64_t down, across;                                           /* tiles of a matrix */
    size_t rows, cols;                                              /* of a tile */
    const void *a;
    MatmulSide sides[MOST_SIDES];
    int n_sides;
    Arithmetic arithmetic;
    bool is_bf16; /* operands are multiplied as they lie, sums are f32 */
    bool packs;   /* right operands are packed first, by whoever is there, */
    bool made;    /* or were in a run before */
    bool
        lies; /* the left one is multiplied as it lies then, and what nobody keeps of the result is made block by block */
    char *rooms; /* for each worker: what a product works in */
    size_t room; /* bytes */
} MatmulRun;

/* What a tile, rows of one stack position and some of all columns, has of a side. */
typedef struct MatmulTile {
    const MatmulSide *side;
    size_t m, n, a, b, c, col; /* where the operands and the tile begin; its first column of the side */
    int worker;
} MatmulTile;

/* c = a b modulo 2^64, in any order. */
static void tile_i64(const MatmulRun *r, const MatmulTile *t)
{
    const MatmulSide *s = t->side;
    const u64 *a = (const u64 *)r->a + t->a, *b = (const u64 *)s->b + t->b;
    u64 *c = (u64 *)s->c + t->c;
    for (size_t i = 0; i < t->m; i++)
        memset(c + i * s->n, 0, t->n * sizeof *c);
    for (size_t i = 0; i < t->m; i++)
        for (size_t k = 0; k < r->k; k++)
            for (size_t j = 0; j < t->n; j++)
                c[i * s->n + j] += a[i * r->ai + k * r->ap] * b[k * s->bp + j * s->bj];
}

/* Who is told that blocks of a tile are done. */
static void tile_done(void *user, const PanelBlock *done)
{
    const MatmulTile *t = user;
    const int64_t pitch = (int64_t)t->side->n;
    const EvalBlock b = { .at = (int64_t)(t->c + done->col) + (int64_t)done->row * pitch,
                          .rows = (int64_t)done->rows,
                          .cols = (int64_t)done->cols,
                          .pitch = pitch,
                          .values = t->side->c ? NULL : done->c,
                          .apart = (int64_t)done->ldc };
    eval_done(t->side->e, &b, t->worker);
}

static const PackedLoops *loops_of(const MatmulRun *r)
{
    return r->is_bf16 ? kernels_packed_bf16(r->e->kernels) : kernels_packed(r->e->kernels, r->arithmetic);
}

/* Bytes from panel to panel of a right operand. */
static size_t panel_bytes(const MatmulRun *r)
{
    const PackedLoops *l = loops_of(r);
    const size_t sum = r->arithmetic == ARITH_F64 ? sizeof(f64) : sizeof(f32);
    return (r->k + l->depth - 1) / l->depth * l->depth * l->width * (r->is_bf16 ? sizeof(u16) : sum);
}

/* Products of floats: one list of sides for all types, since it lies on the stack of whoever runs them. */
static void tiles_of_floats(const MatmulRun *r, MatmulTile *t, int n, void *room)
{
    PanelSide sides[MOST_SIDES];
    PanelWatch watch[MOST_SIDES];
    const Kernels *level = r->e->kernels;
    const Panel p = {
        .m = t->m, .k = r->k, .lda = r->ai, .a_step = r->ap, .is_bf16 = r->is_bf16, .columns_packed = r->packs
    };
    const size_t sum = r->arithmetic == ARITH_F64 ? sizeof(f64) : sizeof(f32), one = r->is_bf16 ? sizeof(u16) : sum;
    for (int i = 0; i < n; i++) {
        const MatmulSide *s = t[i].side;
        watch[i] = (PanelWatch){ tile_done, &t[i] };
        sides[i] = (PanelSide){ .n = t[i].n,
                                .ldb = r->packs ? panel_bytes(r) / one : s->bp,
                                .b_step = s->bj,
                                .ldc = s->n,
                                .b = r->packs ? (const char *)s->panels + t[i].col / loops_of(r)->width * panel_bytes(r)
                                              : (const char *)s->b + t[i].b * one,
                                .c = s->c ? (char *)s->c + t[i].c * sum : NULL,
                                .watch = eval_is_told(s->e) ? &watch[i] : NULL,
                                .past = s->past };
    }
    if (r->is_bf16)
        panel_sides_bf16(level, &p, (const u16 *)r->a + t->a, sides, (size_t)n, room);
    else if (r->arithmetic == ARITH_F32)
        panel_sides_f32(level, &p, (const f32 *)r->a + t->a, sides, (size_t)n, room);
    else
        panel_sides_f64(level, &p, (const f64 *)r->a + t->a, sides, (size_t)n, room);
}

/* Where the matrices of stack position `s` begin, in matrices. */
static void stack_offsets(const MatmulRun *r, int64_t s, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = r->rank - 1; i >= 0; i--) {
        const int64_t at = s % r->dims[i];
        s /= r->dims[i];
        *a += at * r->a_stride[i];
        *b += at * r->b_stride[i];
    }
}

/* What tile number `at` has of each side: how many have any of it. */
static int tiles_of(const MatmulRun *r, int64_t at, int worker, MatmulTile *tiles)
{
    int64_t a, b;
    int n = 0;
    const int64_t s = at / (r->down * r->across), tile = at % (r->down * r->across);
    const size_t row = (size_t)(tile / r->across) * r->rows, col = (size_t)(tile % r->across) * r->cols;
    const size_t last = r->n - col < r->cols ? r->n : col + r->cols;
    stack_offsets(r, s, &a, &b);
    for (size_t i = 0, begin = 0; i < (size_t)r->n_sides; begin += r->sides[i++].n) {
        const MatmulSide *side = &r->sides[i];
        const size_t from = begin < col ? col : begin, to = begin + side->n < last ? begin + side->n : last;
        if (from >= to)
            continue;
        tiles[n++] = (MatmulTile){ .side = side,
                                   .m = r->m - row < r->rows ? r->m - row : r->rows,
                                   .n = to - from,
                                   .a = (size_t)a * r->m * r->k + row * r->ai,
                                   .b = (size_t)b * side->n * r->k + (from - begin) * side->bj,
                                   .c = ((size_t)s * r->m + row) * side->n + from - begin,
                                   .col = from - begin,
                                   .worker = worker };
    }
    return n;
}

static void matmul_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const MatmulRun *r = arg;
    void *room = r->rooms + (size_t)worker * r->room;
    for (int64_t at = begin; at < end; at++) {
        MatmulTile tiles[MOST_SIDES] = { 0 };
        const int n = tiles_of(r, at, worker, tiles);
        if (r->arithmetic == ARITH_F32 || r->arithmetic == ARITH_F64)
            tiles_of_floats(r, tiles, n, room);
        else
            for (int i = 0; i < n; i++)
                tile_i64(r, &tiles[i]);
    }
}

/* Strides of an operand's stack within the broadcast one, in matrices; 0 where it repeats. */
static void stack_strides(const MatmulRun *r, const Type *t, int64_t *strides)
{
    int64_t stride = 1;
    const int less = t->rank > 2 ? t->rank - 2 : 0;
    for (int i = r->rank - 1, j = less - 1; i >= 0; i--, j--) {
        strides[i] = j >= 0 && t->dims[j] != 1 ? stride : 0;
        stride *= j >= 0 ? t->dims[j] : 1;
    }
}

/* Integers of both signs share wrapping arithmetic: products and sums agree modulo 2^64. */
static Arithmetic matmul_arithmetic(DType d)
{
    return d == F64 ? ARITH_F64 : dtype_is_float(d) ? ARITH_F32 : d == U64 ? ARITH_U64 : ARITH_I64;
}

static bool may_narrow(const MatmulAttr *at, const Type *a, const Type *b)
{
    int64_t m, k;
    matrix_of(a, at->ta, true, &m, &k);
    return operands_narrow(a, b, m);
}

static bool narrows_matmul(const Node *n)
{
    return type_known(in(n, 0)->type) && may_narrow(n->attr, in(n, 0)->type, in(n, 1)->type);
}

static bool products_of_bf16(Eval *const *calls, int n)
{
    const Eval *e = calls[0];
    bool all = eval_options(e)->narrow && kernels_packed_bf16(e->kernels);
    for (int i = 0; i < n && all; i++)
        all = may_narrow(e->attr, e->in[0]->type, calls[i]->in[1]->type);
    return all;
}

static const void *operand(const MatmulRun *r, Eval *e, int i)
{
    return r->is_bf16 ? e->in[i]->data : operand_wide(e, i, r->arithmetic);
}

static int64_t least_of(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

enum { WHOLE_COLS = 32, LEAST = 64 }; /* of a panel; rows or columns that are worth a share */

/* Whether the right operands are packed once for all rows and threads, at a level that multiplies faster than it packs. */
static bool packs_once(const MatmulRun *r, int64_t stack, int64_t threads)
{
    return r->is_bf16 && stack == 1 && r->k > 0 && (int64_t)r->m >= LEAST * threads &&
           kernels_packed_bf16(r->e->kernels)->multiply_lying;
}

/* A stack of few matrices is split so that every thread has its share: the longer side, since what is not split is packed
 * by every thread, or rows where nothing else is packed for them. */
static void split_matrix(MatmulRun *r, int64_t stack, int64_t threads)
{
    const int64_t m = (int64_t)r->m, n = (int64_t)r->n, tile = r->is_bf16 ? MOST_TILE_ROWS : MOST_FLOAT_ROWS;
    const bool few = stack % threads != 0 && stack < 4 * threads;
    const bool by_rows = m >= n || r->lies;
    r->down = few && by_rows ? least_of(threads, (m + LEAST - 1) / LEAST) : 1;
    r->across = few && !by_rows ? least_of(threads, (n + LEAST - 1) / LEAST) : 1;
    r->rows = (size_t)(((m + r->down - 1) / r->down + tile - 1) / tile * tile);
    r->cols = (size_t)((n + r->across - 1) / r->across + WHOLE_COLS - 1) / WHOLE_COLS * WHOLE_COLS;
    r->down = (int64_t)((r->m + r->rows - 1) / r->rows);
    r->across = (int64_t)((r->n + r->cols - 1) / r->cols);
}

/* What each worker needs for products of floats: of sides one after the other. */
static void matmul_rooms(Eval *e, MatmulRun *r)
{
    const Panel p = { .m = r->rows,
                      .n = r->cols,
                      .k = r->k,
                      .a_step = r->ap,
                      .b_step = r->sides[0].bj,
                      .is_bf16 = r->is_bf16,
                      .columns_packed = r->packs,
                      .apart = r->lies };
    r->room = (panel_room(&p) * (r->arithmetic == ARITH_F32 ? sizeof(f32) : sizeof(f64)) + 63) / 64 * 64;
    r->rooms = eval_room(e, (size_t)parallel_threads(e->pool), r->room);
}

/* The panels of a side. */
static int64_t panels_of(const MatmulRun *r, const MatmulSide *s)
{
    const size_t width = loops_of(r)->width;
    return (int64_t)((s->n + width - 1) / width);
}

/* Some panels of the right operands, counted through all sides. */
static void pack_panels(void *arg, int64_t begin, int64_t end, int worker)
{
    const MatmulRun *r = arg;
    const Kernels *level = r->e->kernels;
    const size_t width = loops_of(r)->width;
    (void)worker;
    for (int i = 0; i < r->n_sides; i++) {
        const MatmulSide *s = &r->sides[i];
        const int64_t panels = panels_of(r, s), first = begin > 0 ? begin : 0;
        if (begin < panels && end > 0) {
            const size_t from = (size_t)first * width, to = (size_t)least_of(end, panels) * width;
            Panel p = {
                .n = (to < s->n ? to : s->n) - from, .k = r->k, .ldb = s->bp, .b_step = s->bj, .is_bf16 = r->is_bf16
            };
            void *panels = (char *)s->panels + (size_t)first * panel_bytes(r);
            if (r->is_bf16)
                panel_pack_bf16(level, &p, (const u16 *)s->b + from * s->bj, panels);
            else if (r->arithmetic == ARITH_F32)
                panel_pack_f32(level, &p, (const f32 *)s->b + from * s->bj, panels);
            else
                panel_pack_f64(level, &p, (const f64 *)s->b + from * s->bj, panels);
        }
        begin -= panels, end -= panels;
    }
}

/* Whether right operands that are constants were packed, or are now, for all runs: where rows are so many that packing shows, and
 * tiles begin with panels.  What is widened first is no constant. */
static bool keeps_sides(MatmulRun *r, int64_t stack)
{
    enum { THIN = 2, MANY = 2048 };
    const bool floats = r->arithmetic == ARITH_F32 || r->arithmetic == ARITH_F64;
    bool keeps = floats && stack == 1 && r->k > 0 && r->m > THIN && r->m <= MANY;
    r->made = true;
    for (int i = 0; i < r->n_sides && keeps; i++) {
        MatmulSide *s = &r->sides[i];
        bool made = false;
        keeps = s->b == s->e->in[1]->data && (r->n_sides == 1 || s->n % WHOLE_COLS == 0);
        s->panels = keeps ? eval_kept(s->e, 1, (size_t)panels_of(r, s), panel_bytes(r), &made) : NULL;
        keeps = s->panels != NULL;
        r->made = r->made && made;
    }
    return keeps;
}

static void pack_sides(Eval *e, MatmulRun *r, bool keeps)
{
    int64_t panels = 0;
    for (int i = 0; i < r->n_sides; i++) {
        MatmulSide *s = &r->sides[i];
        if (keeps)
            eval_keep(s->e);
        else
            s->panels = eval_room(e, (size_t)panels_of(r, s), panel_bytes(r));
        panels += panels_of(r, s);
    }
    eval_parallel(e, panels, pack_panels, r);
}

/* Rows of a stack that all meet the same right operand are rows of one matrix, for which that is packed once. */
static void fold_stack(MatmulRun *r, int64_t *stack)
{
    bool repeats = r->ai == r->k && r->ap == 1;
    for (int i = 0; i < r->rank && repeats; i++)
        repeats = r->dims[i] == 1 || (r->b_stride[i] == 0 && r->a_stride[i] != 0);
    if (!repeats)
        return;
    r->m *= (size_t)*stack;
    r->rank = 0;
    *stack = 1;
}

/* Whether a result is more than caches hold, in rows that begin their lines. */
static bool is_large(const MatmulRun *r, const MatmulSide *s)
{
    enum { LINE = 64, ELEMENTS = LINE / sizeof(f32) };
    return r->k <= PANEL_SEGMENT && s->n % ELEMENTS == 0 && (uintptr_t)s->c % LINE == 0 && r->m * s->n >= PAST_CACHES;
}

static void open_side(MatmulRun *r, Eval *e)
{
    const MatmulAttr *at = e->attr;
    int64_t n, k;
    matrix_of(e->in[1]->type, at->tb, false, &n, &k);
    MatmulSide *s = &r->sides[r->n_sides++];
    *s = (MatmulSide){ .e = e, .n = (size_t)n };
    s->bp = at->tb ? 1 : s->n;
    s->bj = at->tb ? r->k : 1;
    s->b = operand(r, e, 1);
    const bool tells = r->arithmetic == ARITH_F32 || r->arithmetic == ARITH_F64;
    s->c = tells ? eval_out_by_blocks(e, r->arithmetic, r->lies) : eval_out_wide(e, 0, r->arithmetic);
    s->past = r->lies && s->c && !eval_is_told(e) && is_large(r, s);
    r->n += s->n;
}

/* The stacks are those of the first: the others have the same. */
static Status matmul_sides(Eval *const *calls, int n)
{
    Eval *e = calls[0];
    const MatmulAttr *at = e->attr;
    const Type *a = e->in[0]->type, *b = e->in[1]->type;
    int64_t m, k, stack = 1;
    MatmulRun r = { .e = e, .arithmetic = matmul_arithmetic(a->dtype) };
    matrix_of(a, at->ta, true, &m, &k);
    BUG_IF(e->ir->memory, !stack_of(a, b, &r.rank, r.dims) || n > MOST_SIDES);
    stack_strides(&r, a, r.a_stride);
    stack_strides(&r, b, r.b_stride);
    r.m = (size_t)m, r.k = (size_t)k;
    r.ai = at->ta ? 1 : r.k, r.ap = at->ta ? r.m : 1;
    r.is_bf16 = products_of_bf16(calls, n);
    for (int i = 0; i < r.rank; i++)
        stack *= r.dims[i];
    fold_stack(&r, &stack);
    r.lies = packs_once(&r, stack, parallel_threads(e->pool));
    r.a = operand(&r, e, 0);
    for (int i = 0; i < n; i++)
        open_side(&r, calls[i]);
    if (stack == 0 || r.m == 0 || r.n == 0)
        return OK;
    const bool keeps = keeps_sides(&r, stack);
    r.packs = r.lies || keeps;
    split_matrix(&r, stack, parallel_threads(e->pool));
    if (r.arithmetic == ARITH_F32 || r.arithmetic == ARITH_F64)
        matmul_rooms(e, &r);
    if (r.packs && !(keeps && r.made))
        pack_sides(e, &r, keeps);
    eval_parallel(e, stack * r.down * r.across, matmul_tiles, &r);
    return OK;
}

static Status eval_matmul(Eval *e)
{
    return matmul_sides(&e, 1);
}

/* Matrices, and stacks of one kind: then what is packed of the left operand serves all. */
static bool matmul_shares(const Type *left, const Type *x, const Type *y)
{
    if (left->rank < 2 || x->rank < 2 || x->rank != y->rank)
        return false;
    for (int d = 0; d + 2 < x->rank; d++)
        if (x->dims[d] != y->dims[d])
            return false;
    return true;
}

static Node *sample_matmul(Build *b, Rng *rng, int variant)
{
    static const DType integers[] = { I32, U32, I64, U64 };
    int64_t x[MAX_RANK], y[MAX_RANK], stack[3], m, n, k;
    const int rank_x = variant % 6 ? variant % 6 : 2, rank_y = rank_x == 1 ? 1 + variant / 6 % 3 : 1 + variant / 6 % 5;
    const DType dtype = variant % 5 == 4 ? integers[rng_below(rng, 4)] : sample_float(rng);
    const MatmulAttr at = { .ta = rank_x > 1 && rng_below(rng, 2),
                            .tb = rank_y > 1 && rng_below(rng, 2),
                            .out = dtype == BF16 && rng_below(rng, 2) ? F32 + 1 : 0 };
    sample_dims(rng, 3, 4, stack);
    sample_dims(rng, 1, 5, &m);
    sample_dims(rng, 1, 5, &n);
    sample_dims(rng, 1, 9, &k);
    for (int i = 0; i + 2 < rank_x; i++)
        x[rank_x - 3 - i] = rng_below(rng, 3) ? stack[i] : 1;
    for (int i = 0; i + 2 < rank_y; i++)
        y[rank_y - 3 - i] = rng_below(rng, 3) ? stack[i] : 1;
    if (rank_x == 1)
        x[0] = k;
    else
        x[rank_x - 2] = at.ta ? k : m, x[rank_x - 1] = at.ta ? m : k;
    if (rank_y == 1)
        y[0] = k;
    else
        y[rank_y - 2] = at.tb ? n : k, y[rank_y - 1] = at.tb ? k : n;
    return CALL_ATTR(b, matmul, at, sample_tensor(b, rng, dtype, rank_x, x, dtype == U32 || dtype == U64 ? 0 : -2, 2),
                     sample_tensor(b, rng, dtype, rank_y, y, dtype == U32 || dtype == U64 ? 0 : -2, 2));
}

/* A product of two vectors is a sum. */
static AmpClass matmul_class(const Node *n, DType target)
{
    (void)target;
    return in(n, 0)->type->rank == 1 && in(n, 1)->type->rank == 1 ? AMP_FO : AMP_T;
}

/* Rows of the left operand and columns of the right one are rows and columns of the product; a vector has neither. */
static int channels_of_matmul(const Node *n, int operand)
{
    const MatmulAttr *at = n->attr;
    const int rank = n->in[operand].def->type->rank;
    if (rank < 2)
        return QUANT_WHOLE;
    const bool last = operand == 0 ? at->ta : !at->tb;
    return last ? rank - 1 : rank - 2;
}

const OpDef op_matmul = {
    .name = "matmul",
    .min_in = 2,
    .max_in = 2,
    .attrs = matmul_attrs,
    .infer = infer_matmul,
    .eval = eval_matmul,
    .sample = sample_matmul,
    .n_variants = 60,
    .adjoint = adjoint_matmul,
    .differentiable = 3,
    .trainable = 3,
    .weight = 20,
    .work = work_matmul,
    .narrows = narrows_matmul,
    .access.kind = ACCESS_CONTRACT,
    .access.tells = true,
    .shares = matmul_shares,
    .beside = matmul_sides,
    .access.iterate = iterate_matmul,
    .amp = { AMP_C, AMP_C, 0, REASON_RANGE, matmul_class },
    .quant = { .in = { QUANT_INPUT, QUANT_WEIGHT },
               .out = { QUANT_INPUT },
               .weight_axis = channels_of_matmul,
               .integer = OP_qmatmul },
    .onnx = { "MatMul", 13, NULL },
};
