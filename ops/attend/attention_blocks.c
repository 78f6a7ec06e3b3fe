#include "ops/attend/attention_blocks.h"

#include <string.h>

#include "ops/attend/attention_packed.h"
#include "ops/card/row.h"

bool attention_in_blocks(const AttentionAttr *at, DType own, int n_out, bool has_past)
{
    return n_out == 1 && !has_past && (at->softmax_precision != F64 + 1 || own == F64);
}

HeadStrides attend_strides(int rank, int64_t heads, int64_t steps, int64_t size)
{
    const int64_t all = heads * steps * size;
    return rank == 4 ? (HeadStrides){ all, steps * size, size } : (HeadStrides){ all, size, heads * size };
}

size_t attend_larger(size_t x, size_t y)
{
    return x > y ? x : y;
}

/* A mask of fewer dimensions has the last ones; a scalar is all of it. */
static void open_mask(Attend *a, int operand)
{
    const Type *t = a->e->in[operand]->type;
    int64_t step = 1;
    a->choice = t->dtype == BOOL;
    a->mask = a->choice ? a->e->in[operand]->data : eval_wide(a->e, operand, a->arithmetic);
    a->mask_keys = t->rank ? t->dims[t->rank - 1] : a->h.total;
    for (int i = 0; i < 4; i++) {
        const int64_t extent = i < t->rank ? t->dims[t->rank - 1 - i] : 1;
        a->mask_strides[3 - i] = i == 0 ? t->rank > 0 : extent == 1 ? 0 : step;
        step *= extent;
    }
}

const void *attend_operand(const Attend *a, int i)
{
    return a->is_bf16 ? a->e->in[i]->data : eval_wide(a->e, i, a->arithmetic);
}

/* How products are made, and of what. */
static void open_products(Attend *a, AttendOperands in)
{
    const Heads *h = &a->h;
    const Eval *e = a->e;
    a->packs = a->arithmetic == ARITH_F32 && a->rows > 0 && h->total > 0 && h->total <= PANEL_SEGMENT && h->size > 0 &&
               h->size <= PANEL_SEGMENT && h->v_size > 0 && h->v_size <= PANEL_SEGMENT;
    a->is_bf16 = a->packs && a->own == BF16 && e->in[in.k]->type->dtype == BF16 && e->in[in.v]->type->dtype == BF16 &&
                 eval_options(e)->narrow && kernels_packed_bf16(e->kernels);
    a->q = attend_operand(a, in.q);
    a->k = attend_operand(a, in.k);
    a->v = attend_operand(a, in.v);
}

Attend attend_open(Eval *e, AttendOperands in)
{
    const Type *q = e->in[in.q]->type;
    const Arithmetic wide = q->dtype == F64 ? ARITH_F64 : ARITH_F32;
    Attend a = { .e = e,
                 .at = e->attr,
                 .h = heads_of(e->attr, q, e->in[in.k]->type, e->in[in.v]->type, 0),
                 .own = q->dtype,
                 .arithmetic = wide,
                 .element = wide == ARITH_F32 ? sizeof(f32) : sizeof(f64) };
    const Heads *h = &a.h;
    int64_t n;
    a.of_q = attend_strides(q->rank, h->q_heads, h->queries, h->size);
    a.of_k = attend_strides(q->rank, h->heads, h->total, h->size);
    a.of_v = attend_strides(q->rank, h->heads, h->total, h->v_size);
    a.rows = h->heads ? h->q_heads / h->heads * h->queries : 0;
    a.blocks = (a.rows + ATTEND_ROWS - 1) / ATTEND_ROWS;
    open_products(&a, in);
    if (eval_has(e, in.mask))
        open_mask(&a, in.mask);
    if (eval_has(e, in.lengths))
        a.lengths = eval_ints(e, in.lengths, &n);
    return a;
}

static void see(const Attend *a, int64_t b, AttendRow *r)
{
    const int64_t left = attention_left(a->at), right = attention_right(a->at), total = a->h.total;
    const int64_t length = a->lengths ? a->lengths[b] : total;
    const int64_t place = r->query + (a->lengths ? length - a->h.queries : 0);
    r->from = left >= 0 && place - left > 0 ? place - left : 0;
    r->to = length < total ? length : total;
    if (right >= 0 && place + right + 1 < r->to)
        r->to = place + right + 1;
    if (r->to <= r->from)
        r->from = r->to = 0;
}

AttendRow attend_row(const Attend *a, const AttendBlock *k, int64_t i)
{
    const int64_t row = k->first + i;
    AttendRow r = { .head = k->head * (a->rows / a->h.queries) + row / a->h.queries, .query = row % a->h.queries };
    see(a, k->b, &r);
    return r;
}

AttendBlock attend_block(const Attend *a, int64_t number)
{
    const int64_t unit = number / a->blocks, first = number % a->blocks * ATTEND_ROWS;
    AttendBlock k = { .b = unit / a->h.heads, .head = unit % a->h.heads, .first = first };
    k.n = a->rows - first < ATTEND_ROWS ? a->rows - first : ATTEND_ROWS;
    k.from = a->h.total;
    for (int64_t i = 0; i < k.n; i++) {
        const AttendRow r = attend_row(a, &k, i);
        k.from = r.from < k.from ? r.from : k.from;
        k.to = r.to > k.to ? r.to : k.to;
    }
    return k;
}

AttendRoom attend_room(const Attend *a)
{
    const size_t size = (size_t)a->h.size, total = (size_t)a->h.total, v_size = (size_t)a->h.v_size;
    const Panel p[] = { { .m = ATTEND_ROWS, .n = total, .k = size }, { .m = ATTEND_ROWS, .n = v_size, .k = total } };
    return (AttendRoom){ .queries = ATTEND_ROWS * size,
                         .scores = ATTEND_ROWS * total,
                         .each = ATTEND_ROWS,
                         .product = attend_larger(panel_room(&p[0]), panel_room(&p[1])) };
}

const void *attend_mask(const Attend *a, const AttendBlock *k, const AttendRow *r)
{
    const int64_t *s = a->mask_strides, at = k->b * s[0] + r->head * s[1] + r->query * s[2];
    return at ? (const char *)a->mask + (size_t)at * (a->choice ? sizeof(bool) : a->element) : a->mask;
}

static const double none[ROW_SCALARS] = { 0 };

#define BLOCKS(T)                                                                                                      \
    void attend_turn_##T(T *to, const T *from, int64_t rows, int64_t columns, int64_t stride)                          \
    {                                                                                                                  \
        enum { SIDE = 16 }; /* squares, so that both sides stay in cache */                                            \
        for (int64_t i0 = 0; i0 < rows; i0 += SIDE)                                                                    \
            for (int64_t j0 = 0; j0 < columns; j0 += SIDE)                                                             \
                for (int64_t i = i0; i < rows && i < i0 + SIDE; i++)                                                   \
                    for (int64_t j = j0; j < columns && j < j0 + SIDE; j++)                                            \
                        to[j * rows + i] = from[i * stride + j];                                                       \
    }                                                                                                                  \
    void attend_pack_##T(const Attend *a, const AttendBlock *k, T *to, const T *from, HeadStrides at, int64_t size)    \
    {                                                                                                                  \
        for (int64_t i = 0; size && i < k->n; i++) {                                                                   \
            const AttendRow r = attend_row(a, k, i);                                                                   \
            memcpy(to + i * size, from + k->b * at.batch + r.head * at.head + r.query * at.step,                       \
                   (size_t)size * sizeof(T));                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    void attend_spread_##T(const Attend *a, const AttendBlock *k, T *to, const T *from, HeadStrides at, int64_t size)  \
    {                                                                                                                  \
        for (int64_t i = 0; size && i < k->n; i++) {                                                                   \
            const AttendRow r = attend_row(a, k, i);                                                                   \
            memcpy(to + k->b * at.batch + r.head * at.head + r.query * at.step, from + i * size,                       \
                   (size_t)size * sizeof(T));                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    void attend_with_##T(const Attend *a, int row, T *x, int64_t n, T v)                                               \
    {                                                                                                                  \
        enum { WIDTH = 256 };                                                                                          \
        T filled[WIDTH];                                                                                               \
        RowLoop *loop = kernels_row_fixed(a->e->kernels, row, a->arithmetic, 1);                                       \
        if (loop) {                                                                                                    \
            loop((size_t)n, x, x, &v, NULL, none);                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        loop = kernels_row(a->e->kernels, row, a->arithmetic);                                                         \
        for (int64_t i = 0; i < WIDTH && i < n; i++)                                                                   \
            filled[i] = v;                                                                                             \
        for (int64_t i = 0; i < n; i += WIDTH)                                                                         \
            loop((size_t)(n - i < WIDTH ? n - i : WIDTH), x + i, x + i, filled, NULL, none);                           \
    }                                                                                                                  \
    void attend_scale_##T(const Attend *a, T *x, int64_t n)                                                            \
    {                                                                                                                  \
        attend_with_##T(a, a->at->scaled == SCALE_QUOTIENTS ? ROW_div : ROW_mul, x, n,                                 \
                        (T)attention_scale(a->at, &a->h));                                                             \
    }                                                                                                                  \
    void attend_narrow_##T(const Attend *a, T *x, int64_t n)                                                           \
    {                                                                                                                  \
        for (int64_t i = 0; dtype_is_narrow(a->own) && i < n; i++)                                                     \
            x[i] = narrowed_##T(a->own, x[i]);                                                                         \
    }                                                                                                                  \
    void attend_queries_##T(const Attend *a, const AttendBlock *k, T *q)                                               \
    {                                                                                                                  \
        attend_pack_##T(a, k, q, a->q, a->of_q, a->h.size);                                                            \
        if (!attention_scales_products(a->at, a->own))                                                                 \
            attend_scale_##T(a, q, k->n * a->h.size);                                                                  \
    }
BLOCKS(f32)
BLOCKS(f64)
#undef BLOCKS

/* ---- scores ---- */

#define SCORES(T)                                                                                                            \
    bool attend_hide_##T(const Attend *a, const AttendBlock *k, int64_t i, T *row, T v)                                      \
    {                                                                                                                        \
        const AttendRow r = attend_row(a, k, i);                                                                             \
        const int64_t step = a->mask_strides[3], to = a->mask && a->mask_keys < r.to ? a->mask_keys : r.to;                  \
        const bool *choice = a->mask && a->choice ? attend_mask(a, k, &r) : NULL;                                            \
        const T *bias = a->mask && !a->choice ? attend_mask(a, k, &r) : NULL;                                                \
        bool any = r.from < to && !choice && !bias;                                                                          \
        for (int64_t j = 0; j < r.from; j++)                                                                                 \
            row[j] = v;                                                                                                      \
        for (int64_t j = r.from; j < to && (choice || bias); j++) {                                                          \
            const bool seen = choice ? choice[j * step] : bias[j * step] != -(T)Q_INF;                                       \
            row[j] = seen ? row[j] : v;                                                                                      \
            any |= seen;                                                                                                     \
        }                                                                                                                    \
        for (int64_t j = to > r.from ? to : r.from; j < a->h.total; j++)                                                     \
            row[j] = v;                                                                                                      \
        return any;                                                                                                          \
    }                                                                                                                        \
    static void add_bias_##T(const Attend *a, const AttendBlock *k, int64_t i, T *row)                                       \
    {                                                                                                                        \
        const AttendRow r = attend_row(a, k, i);                                                                             \
        const int64_t step = a->mask_strides[3], n = a->mask_keys < a->h.total ? a->mask_keys : a->h.total;                  \
        const T *bias = attend_mask(a, k, &r);                                                                               \
        if (step)                                                                                                            \
            kernels_row(a->e->kernels, ROW_add, a->arithmetic)((size_t)n, row, row, bias, NULL, none);                       \
        else                                                                                                                 \
            attend_with_##T(a, ROW_add, row, n, *bias);                                                                      \
    }                                                                                                                        \
    /* The products of queries and keys; no others than those that some row may see. */                                      \
    static void products_##T(const Attend *a, const AttendBlock *k, const T *q, const T *turned, T *s, T *room)              \
    {                                                                                                                        \
        const size_t total = (size_t)a->h.total, size = (size_t)a->h.size;                                                   \
        const int64_t n = k->to - k->from;                                                                                   \
        if (n < a->h.total)                                                                                                  \
            memset(s, 0, (size_t)k->n *total * sizeof(T));                                                                   \
        if (n <= 0)                                                                                                          \
            return;                                                                                                          \
        const Panel p = { (size_t)k->n, (size_t)n, size, size, total, total };                                               \
        panel_##T(a->e->kernels, &p, q, turned + k->from, s + k->from, room);                                                \
        if (attention_scales_products(a->at, a->own))                                                                        \
            attend_scale_##T(a, s, k->n * a->h.total);                                                                       \
    }                                                                                                                        \
    static void cap_##T(const Attend *a, T *s, int64_t n, T *capped)                                                         \
    {                                                                                                                        \
        const T cap = (T)a->at->softcap;                                                                                     \
        attend_with_##T(a, ROW_div, s, n, cap);                                                                              \
        kernels_row(a->e->kernels, ROW_tanh, a->arithmetic)((size_t)n, s, s, NULL, NULL, none);                              \
        if (capped)                                                                                                          \
            memcpy(capped, s, (size_t)n * sizeof(T));                                                                        \
        attend_with_##T(a, ROW_mul, s, n, cap);                                                                              \
    }                                                                                                                        \
    /* The softmax of a row, of which position lets keys from .. to - 1 be seen: what else there is gives 0, and NaN where \
     * the sum is. */ \
    static void soften_##T(const Attend *a, const AttendRow *r, T *s)                                                        \
    {                                                                                                                        \
        const int64_t n = r->to - r->from, total = a->h.total;                                                               \
        T *x = s + r->from, most, sum;                                                                                       \
        kernels_reduce(a->e->kernels, REDUCE_MAX, a->arithmetic)->rows(1, (size_t)n, x, &most);                              \
        attend_with_##T(a, ROW_sub, x, n, most);                                                                             \
        kernels_row(a->e->kernels, ROW_exp, a->arithmetic)((size_t)n, x, x, NULL, NULL, none);                               \
        memset(s, 0, (size_t)r->from * sizeof(T));                                                                           \
        memset(s + r->to, 0, (size_t)(total - r->to) * sizeof(T));                                                           \
        kernels_reduce(a->e->kernels, REDUCE_SUM, a->arithmetic)->rows(1, (size_t)total, s, &sum);                           \
        if (sum == sum)                                                                                                      \
            attend_with_##T(a, ROW_div, x, n, sum);                                                                          \
        for (int64_t j = 0; sum != sum && j < total; j++)                                                                    \
            s[j] = sum;                                                                                                      \
    }                                                                                                                        \
    void attend_probabilities_##T(const Attend *a, const AttendBlock *k, const T *q, const T *turned, T *s, T *capped,       \
                                  T *room)                                                                                   \
    {                                                                                                                        \
        const int64_t total = a->h.total;                                                                                    \
        products_##T(a, k, q, turned, s, room);                                                                              \
        if (a->at->softcap > 0)                                                                                              \
            cap_##T(a, s, k->n *total, capped);                                                                              \
        for (int64_t i = 0; i < k->n; i++) {                                                                                 \
            const AttendRow r = attend_row(a, k, i);                                                                         \
            T *row = s + i * total;                                                                                          \
            if (a->mask && !a->choice)                                                                                       \
                add_bias_##T(a, k, i, row);                                                                                  \
            if (attend_hide_##T(a, k, i, row, -(T)Q_INF))                                                                    \
                soften_##T(a, &r, row);                                                                                      \
            else                                                                                                             \
                memset(row, 0, (size_t)total * sizeof(T));                                                                   \
        }                                                                                                                    \
    }
SCORES(f32)
SCORES(f64)
#undef SCORES

/* ---- forward ---- */

typedef struct Forward {
    Attend a;
    void *y;
    HeadStrides of_y;
    AttendRoom room;
    size_t turned, result, whole; /* elements of a worker's room: keys, results, all of it */
    char *rooms;
} Forward;

#define FORWARD(T)                                                                                                     \
    static void forward_##T(void *arg, int64_t begin, int64_t end, int worker)                                         \
    {                                                                                                                  \
        const Forward *f = arg;                                                                                        \
        const Attend *a = &f->a;                                                                                       \
        const size_t total = (size_t)a->h.total, v_size = (size_t)a->h.v_size;                                         \
        T *turned = (T *)(void *)f->rooms + (size_t)worker * f->whole, *q = turned + f->turned,                        \
          *s = q + f->room.queries, *y = s + f->room.scores, *room = y + f->result;                                    \
        int64_t unit = -1;                                                                                             \
        for (int64_t n = begin; n < end; n++) {                                                                        \
            const AttendBlock k = attend_block(a, n);                                                                  \
            const T *keys = (const T *)a->k + k.b * a->of_k.batch + k.head * a->of_k.head;                             \
            const T *values = (const T *)a->v + k.b * a->of_v.batch + k.head * a->of_v.head;                           \
            if (unit != n / a->blocks)                                                                                 \
                attend_turn_##T(turned, keys, a->h.total, a->h.size, a->of_k.step);                                    \
            unit = n / a->blocks;                                                                                      \
            attend_queries_##T(a, &k, q);                                                                              \
            attend_probabilities_##T(a, &k, q, turned, s, NULL, room);                                                 \
            attend_narrow_##T(a, s, k.n * a->h.total);                                                                 \
            const Panel p = { (size_t)k.n, v_size, total, total, (size_t)a->of_v.step, v_size };                       \
            panel_##T(a->e->kernels, &p, s, values, y, room);                                                          \
            attend_spread_##T(a, &k, f->y, y, f->of_y, a->h.v_size);                                                   \
        }                                                                                                              \
    }
FORWARD(f32)
FORWARD(f64)
#undef FORWARD

Status fast_attention(Eval *e)
{
    if (!attention_in_blocks(e->attr, e->in[IN_Q]->type->dtype, e->n_out, eval_has(e, IN_PAST_KEY)))
        return eval_expansion(e);
    Forward f = { .a = attend_open(e, (AttendOperands){ IN_Q, IN_K, IN_V, IN_MASK, IN_LENGTHS }) };
    const Heads *h = &f.a.h;
    f.y = eval_out_wide(e, 0, f.a.arithmetic);
    if (tensor_elements(e->out[0]) == 0)
        return OK;
    if (f.a.packs)
        return packed_attention(&f.a, f.y);
    f.of_y = attend_strides(e->in[IN_Q]->type->rank, h->q_heads, h->queries, h->v_size);
    f.room = attend_room(&f.a);
    f.turned = (size_t)(h->total * h->size);
    f.result = (size_t)(ATTEND_ROWS * h->v_size);
    f.whole = f.turned + f.room.queries + f.room.scores + f.result + f.room.product;
    f.rooms = eval_room(e, f.whole * (size_t)parallel_threads(e->pool), f.a.element);
    eval_parallel(e, h->batch * h->heads * f.a.blocks, f.a.arithmetic == ARITH_F32 ? forward_f32 : forward_f64, &f);
    return OK;
}
