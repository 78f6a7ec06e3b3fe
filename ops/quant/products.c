#include "ops/quant/products.h"

#include <string.h>

#include "base/parallel.h"
#include "ops/quant/integer.h"

Codes codes_of(Eval *e, int i, int zero)
{
    static const i32 none[] = { 0 };
    const DType t = e->in[i]->type->dtype;
    const bool sign = dtype_class(t) == CLASS_INT, wide = dtype_bits(t) > 8;
    Codes c = {
        .tensor = e->in[i], .operand = i, .v = e->in[i]->data, .zeros = none, .n_zeros = 1, .one_matrix = true
    };
    c.type = wide ? (sign ? CODE_I16 : CODE_U16) : sign ? CODE_I8 : CODE_U8;
    if (eval_has(e, zero)) {
        c.zeros = eval_i32(e, zero);
        c.n_zeros = eval_elements(e, zero);
        c.one_matrix = c.n_zeros == 1 || e->in[zero]->type->rank == 1;
    }
    return c;
}

bool codes_are_wide(const Codes *a, const Codes *b)
{
    return a->type >= CODE_U16 || b->type >= CODE_U16;
}

/* ---- packed codes ---- */

typedef struct Packing {
    const CodeProducts *l;
    const LooseCodes *from;
    PackedCodes *to;
} Packing;

static void pack_groups(void *arg, int64_t begin, int64_t end, int worker)
{
    const Packing *p = arg;
    const LooseCodes *from = p->from;
    const PackedCodes *to = p->to;
    const size_t size = from->codes->type < CODE_U16 ? 1 : 2;
    (void)worker;
    for (size_t item = (size_t)begin; item < (size_t)end; item++) {
        const size_t matrix = item / to->groups, lane = item % to->groups * to->group;
        CodeLanes lanes = from->lanes;
        lanes.lanes = lanes.lanes - lane < to->group ? lanes.lanes - lane : to->group;
        const char *codes = (const char *)from->codes->v + (matrix * from->matrix + lane * lanes.lane) * size;
        (from->rows ? p->l->pack_rows : p->l->pack_columns)(&lanes, codes, to->words + item * to->apart, to->apart,
                                                            from->alone ? NULL : to->sums + item * to->group);
    }
}

/* The zeros of all lanes that have some of their own. */
static void zeros_of_lanes(Eval *e, const Codes *c, const LooseCodes *from, i32 shift, PackedCodes *to)
{
    const size_t lanes = to->groups * to->group, matrices = c->one_matrix ? 1 : from->matrices;
    u32 *zeros = eval_room(e, lanes * matrices, sizeof *zeros);
    to->centred = true;
    for (size_t m = 0; m < matrices; m++)
        for (size_t i = 0; i < lanes; i++) {
            const size_t own = i < from->lanes.lanes ? m * from->lanes.lanes + i : 0;
            const i32 zero = c->zeros[c->n_zeros == 1 ? 0 : own] + shift;
            zeros[m * lanes + i] = (u32)zero;
            to->centred &= zero == 0;
        }
    to->zeros = zeros;
    to->matrix_zeros = c->one_matrix ? 0 : lanes;
}

PackedCodes codes_pack(Eval *e, const CodeProducts *l, const LooseCodes *from)
{
    const Codes *c = from->codes;
    PackedCodes to = { .group = from->rows ? l->rows : l->width };
    to.groups = (from->lanes.lanes + to.group - 1) / to.group;
    to.apart = code_words(l, from->lanes.k) * to.group;
    const size_t groups = from->matrices * to.groups, words = groups * to.apart + 1, sums = groups * to.group;
    bool made;
    u32 *kept = eval_kept(e, c->operand, words + sums, sizeof *to.words, &made);
    to.words = kept ? kept : eval_room(e, words + sums, sizeof *to.words);
    to.sums = (i32 *)(void *)(to.words + words);
    zeros_of_lanes(e, c, from, from->rows ? l->row_shift[c->type] : l->column_shift[c->type], &to);
    if (made)
        return to;
    if (kept)
        eval_keep(e);
    memset(to.sums, 0, sums * sizeof *to.sums);
    eval_parallel(e, (int64_t)groups, pack_groups, &(Packing){ l, from, &to });
    return to;
}

void sums_centre(const CodeProducts *l, const Centre *c, size_t m, size_t n, i32 *sums, size_t ldc)
{
    const size_t lanes = c->rows->groups * c->rows->group;
    const i32 *row_sums = c->rows->sums + c->matrix * lanes + c->row;
    const u32 *row_zeros = c->rows->zeros + c->matrix * c->rows->matrix_zeros + c->row;
    if (c->rows->centred && c->centred)
        return;
    for (size_t i = 0; i < m; i++)
        l->correct(n, (u32)c->k * row_zeros[i] - (u32)row_sums[i], c->zeros, 0u - row_zeros[i], c->sums,
                   sums + i * ldc);
}

int64_t share_of(int64_t n, int64_t most, int64_t whole, int64_t wanted)
{
    int64_t shares = (n + most - 1) / most;
    shares = shares < wanted ? wanted : shares;
    const int64_t share = ((n + shares - 1) / shares + whole - 1) / whole * whole;
    return share < most ? share : most;
}

void sums_keep(const void *tensor, int64_t first, int64_t n, const i32 *sums)
{
    memcpy((i32 *)((const Tensor *)tensor)->data + first, sums, (size_t)n * sizeof *sums);
}

/* ---- stacks of matrices ---- */

static void batch_steps(const Type *t, const Stack *s, int64_t *step)
{
    int64_t stride = 1;
    for (int i = s->rank - 1, at = t->rank - 3; i >= 0; i--, at--) {
        const int64_t n = at >= 0 ? t->dims[at] : 1;
        step[i] = n == 1 ? 0 : stride;
        stride *= n;
    }
}

Stack stack_of_products(const Type *a, const Type *b, const Type *y, bool ta, bool tb)
{
    const bool row = a->rank == 1, column = b->rank == 1;
    Stack s = { .batches = 1 };
    s.m = row ? 1 : a->dims[a->rank - (ta ? 1 : 2)];
    s.k = row ? a->dims[0] : a->dims[a->rank - (ta ? 2 : 1)];
    s.n = column ? 1 : b->dims[b->rank - (tb ? 2 : 1)];
    s.a_row = ta ? 1 : s.k, s.a_col = ta ? s.m : 1;
    s.b_row = tb ? 1 : s.n, s.b_col = tb ? s.k : 1;
    s.rank = y->rank - !row - !column;
    for (int i = 0; i < s.rank; i++)
        s.batches *= s.dims[i] = y->dims[i];
    batch_steps(a, &s, s.a_step);
    batch_steps(b, &s, s.b_step);
    return s;
}

void stack_batch(const Stack *s, int64_t at, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int i = s->rank - 1; i >= 0; i--) {
        const int64_t k = at % s->dims[i];
        at /= s->dims[i];
        *a += k * s->a_step[i];
        *b += k * s->b_step[i];
    }
}

typedef struct StackRun {
    const CodeProducts *l;
    const Stack *s;
    PackedCodes a, b;
    const SumTaker *to;
    int64_t rows, cols, down, across;
    i32 *rooms;
} StackRun;

/* The sums of m rows and n columns of a product of two matrices. */
static void sum_tile(const StackRun *r, int64_t ma, int64_t mb, int64_t row, int64_t col, int64_t m, size_t panels,
                     i32 *sums)
{
    const CodeProducts *l = r->l;
    const size_t words = r->a.apart / l->rows, ldc = panels * l->width, lanes = r->b.groups * l->width;
    const u32 *a = r->a.words + ((size_t)ma * r->a.groups + (size_t)row / l->rows) * r->a.apart;
    const u32 *b = r->b.words + ((size_t)mb * r->b.groups + (size_t)col / l->width) * r->b.apart;
    size_t w = 0;
    do {
        const size_t n = words - w < l->at_a_time ? words - w : l->at_a_time;
        l->multiply((size_t)m, panels, n, a + w * l->rows, r->a.apart, b + w * l->width, r->b.apart, sums, ldc, w == 0);
        w += n;
    } while (w < words);
    const Centre c = { .rows = &r->a,
                       .matrix = (size_t)ma,
                       .row = (size_t)row,
                       .k = (size_t)r->s->k,
                       .zeros = r->b.zeros + (size_t)mb * r->b.matrix_zeros + col,
                       .sums = r->b.sums + (size_t)mb * lanes + col,
                       .centred = r->b.centred };
    sums_centre(l, &c, (size_t)m, ldc, sums, ldc);
}

static void stack_tiles(void *arg, int64_t begin, int64_t end, int worker)
{
    const StackRun *r = arg;
    const Stack *s = r->s;
    i32 *sums = r->rooms + (int64_t)worker * r->rows * r->cols;
    for (int64_t item = begin; item < end; item++) {
        const int64_t tile = item % (r->down * r->across), batch = item / (r->down * r->across);
        const int64_t row = tile / r->across * r->rows, col = tile % r->across * r->cols;
        const int64_t m = s->m - row < r->rows ? s->m - row : r->rows, n = s->n - col < r->cols ? s->n - col : r->cols;
        const size_t panels = ((size_t)n + r->l->width - 1) / r->l->width;
        int64_t ma, mb;
        stack_batch(s, batch, &ma, &mb);
        sum_tile(r, ma, mb, row, col, m, panels, sums);
        for (int64_t i = 0; i < m; i++)
            r->to->take(r->to->user, (batch * s->m + row + i) * s->n + col, n,
                        sums + i * (int64_t)(panels * r->l->width));
    }
}

/* Matrices that a stack has of a factor, which are of `elements` each; those that it does not have are none. */
static size_t matrices_of(const Stack *s, const int64_t *step)
{
    int64_t last = 0;
    for (int i = 0; i < s->rank; i++)
        last += (s->dims[i] - 1) * step[i];
    return (size_t)last + 1;
}

void codes_multiply(Eval *e, const Stack *s, const Codes *a, const Codes *b, const SumTaker *to)
{
    const int64_t threads = parallel_threads(e->pool), each = s->batches ? (2 * threads - 1) / s->batches + 1 : 1;
    StackRun r = { .l = kernels_code_products(e->kernels, a->type, b->type), .s = s, .to = to };
    if (s->batches * s->m * s->n == 0)
        return;
    LooseCodes left = { .codes = a,
                        .lanes = { a->type, (size_t)s->m, (size_t)s->k, (size_t)s->a_row, (size_t)s->a_col },
                        .matrices = matrices_of(s, s->a_step),
                        .matrix = (size_t)(s->m * s->k),
                        .rows = true };
    const LooseCodes right = { .codes = b,
                               .lanes = { b->type, (size_t)s->n, (size_t)s->k, (size_t)s->b_col, (size_t)s->b_row },
                               .matrices = matrices_of(s, s->b_step),
                               .matrix = (size_t)(s->k * s->n) };
    r.b = codes_pack(e, r.l, &right);
    left.alone = r.b.centred;
    r.a = codes_pack(e, r.l, &left);
    const bool tall = s->m >= s->n;
    r.rows = share_of(s->m, TILE_ROWS, (int64_t)r.l->rows, threads > 1 && tall ? each : 1);
    r.cols = share_of(s->n, TILE_COLS, (int64_t)r.l->width, threads > 1 && !tall ? each : 1);
    r.down = (s->m + r.rows - 1) / r.rows;
    r.across = (s->n + r.cols - 1) / r.cols;
    r.rooms = eval_room(e, (size_t)(threads * r.rows * r.cols), sizeof *r.rooms);
    eval_parallel(e, s->batches * r.down * r.across, stack_tiles, &r);
}
