/* The way back through attention, by blocks of queries.  Keys and values gather what every block sends, rows ascending, in
 * segments of 2048 rows, so a head of keys is the affair of one thread. */
#include <string.h>

#include "ops/attend/attention_packed.h"
#include "ops/card/row.h"

bool attention_grad_in_blocks(const AttentionAttr *at, DType own, int n_out)
{
    return n_out == 3 && attention_in_blocks(at, own, 1, false);
}

typedef struct Backward {
    Attend a;
    const void *dy;
    void *dq, *dk, *dv;
    HeadStrides of_dy;
    AttendRoom room;
    size_t whole; /* elements of a worker's room */
    char *rooms;
} Backward;

static const double none[ROW_SCALARS] = { 0 };

static size_t whole_of(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* What a worker has: keys and values turned; a block's queries and what reaches its results; probabilities, what reaches
 * them, tangents, and products of the two; numbers of rows; sums over rows, of keys and of values, and those of segments;
 * what products work in, and operands packed for those that gather. */
#define ROOMS(T)                                                                                                       \
    typedef struct Rooms_##T {                                                                                         \
        T *keys, *values, *q, *dy, *p, *dp, *tangent, *shares, *each, *dq, *dk, *dv, *k_digits, *v_digits, *product,   \
            *tiles, *panels;                                                                                           \
    } Rooms_##T;                                                                                                       \
    static Rooms_##T rooms_##T(const Backward *w, T *at, size_t *whole)                                                \
    {                                                                                                                  \
        const Attend *a = &w->a;                                                                                       \
        const size_t size = (size_t)(a->h.total * a->h.size), v_size = (size_t)(a->h.total * a->h.v_size);             \
        const size_t digits = panel_digits((size_t)a->rows), back = ATTEND_ROWS * (size_t)a->h.v_size;                 \
        const Panel p[] = { { .m = ATTEND_ROWS, .n = (size_t)a->h.total, .k = (size_t)a->h.v_size },                   \
                            { .m = ATTEND_ROWS, .n = (size_t)a->h.size, .k = (size_t)a->h.total } };                   \
        const size_t product = attend_larger(w->room.product, attend_larger(panel_room(&p[0]), panel_room(&p[1])));    \
        const size_t sizes[] = { size,                                                                                 \
                                 v_size,                                                                               \
                                 w->room.queries,                                                                      \
                                 back,                                                                                 \
                                 w->room.scores,                                                                       \
                                 w->room.scores,                                                                       \
                                 a->at->softcap > 0 ? w->room.scores : 0,                                              \
                                 w->room.scores,                                                                       \
                                 w->room.each,                                                                         \
                                 w->room.queries,                                                                      \
                                 size,                                                                                 \
                                 v_size,                                                                               \
                                 digits * size,                                                                        \
                                 digits * v_size,                                                                      \
                                 product,                                                                              \
                                 ATTEND_ROWS * ((size_t)a->h.total + MOST_TILE_ROWS - 1),                              \
                                 ATTEND_ROWS * whole_of(attend_larger((size_t)a->h.size, (size_t)a->h.v_size),         \
                                                        MOST_PANEL_WIDTH) };                                           \
        Rooms_##T r;                                                                                                   \
        T **const parts[] = { &r.keys,     &r.values,   &r.q,       &r.dy,    &r.p,     &r.dp,                         \
                              &r.tangent,  &r.shares,   &r.each,    &r.dq,    &r.dk,    &r.dv,                         \
                              &r.k_digits, &r.v_digits, &r.product, &r.tiles, &r.panels };                             \
        *whole = 0;                                                                                                    \
        for (size_t i = 0; i < COUNT(parts); i++) {                                                                    \
            *parts[i] = at ? at + *whole : NULL;                                                                       \
            *whole += sizes[i];                                                                                        \
        }                                                                                                              \
        return r;                                                                                                      \
    }
ROOMS(f32)
ROOMS(f64)
#undef ROOMS

#define BACK(T)                                                                                                        \
    /* What reaches the scores of a block, in place of what reaches its probabilities. */                              \
    static void soften_back_##T(const Attend *a, const AttendBlock *k, const Rooms_##T *r)                             \
    {                                                                                                                  \
        const int64_t total = a->h.total, n = k->n * total;                                                            \
        RowLoop *mul = kernels_row(a->e->kernels, ROW_mul, a->arithmetic);                                             \
        T *dp = r->dp;                                                                                                 \
        for (int64_t i = 0; i < k->n; i++)                                                                             \
            attend_hide_##T(a, k, i, dp + i * total, 0);                                                               \
        mul((size_t)n, r->shares, r->p, dp, NULL, none);                                                               \
        kernels_reduce(a->e->kernels, REDUCE_SUM, a->arithmetic)                                                       \
            ->rows((size_t)k->n, (size_t)total, r->shares, r->each);                                                   \
        for (int64_t i = 0; i < k->n; i++)                                                                             \
            attend_with_##T(a, ROW_sub, dp + i * total, total, r->each[i]);                                            \
        mul((size_t)n, dp, r->p, dp, NULL, none);                                                                      \
        for (int64_t i = 0; i < k->n; i++)                                                                             \
            attend_hide_##T(a, k, i, dp + i * total, 0);                                                               \
        if (a->at->softcap > 0) {                                                                                      \
            attend_with_##T(a, ROW_mul, dp, n, (T)a->at->softcap);                                                     \
            for (int64_t i = 0; i < n; i++)                                                                            \
                dp[i] = dp[i] * (1 - r->tangent[i] * r->tangent[i]);                                                   \
            attend_with_##T(a, ROW_div, dp, n, (T)a->at->softcap);                                                     \
        }                                                                                                              \
        if (attention_scales_products(a->at, a->own) && !dtype_is_narrow(a->own))                                      \
            attend_scale_##T(a, dp, n);                                                                                \
        attend_narrow_##T(a, dp, n);                                                                                   \
    }                                                                                                                  \
    /* What reaches the probabilities: of keys that no row sees, nothing. */                                           \
    static void values_back_##T(const Attend *a, const AttendBlock *k, const Rooms_##T *r)                             \
    {                                                                                                                  \
        const size_t total = (size_t)a->h.total, v_size = (size_t)a->h.v_size;                                         \
        const int64_t n = k->to - k->from;                                                                             \
        if (n < a->h.total)                                                                                            \
            memset(r->dp, 0, (size_t)k->n *total * sizeof(T));                                                         \
        const Panel p = { (size_t)k->n, (size_t)n, v_size, v_size, total, total };                                     \
        if (n > 0)                                                                                                     \
            panel_##T(a->e->kernels, &p, r->dy, r->values + k->from, r->dp + k->from, r->product);                     \
    }                                                                                                                  \
    /* sum[total, n] += block' y, rows ascending; fresh: those of a segment's first block. */                          \
    static void gather_##T(const Attend *a, const AttendBlock *k, const Rooms_##T *r, const T *block, const T *y,      \
                           int64_t n, T *sum)                                                                          \
    {                                                                                                                  \
        const PackedLoops *l = kernels_packed(a->e->kernels, a->arithmetic);                                           \
        const size_t total = (size_t)a->h.total, rows = (size_t)k->n, wide = (size_t)n;                                \
        l->pack_rows(total, rows, block, 1, total, r->tiles, rows * l->rows);                                          \
        l->pack_columns(wide, rows, y, wide, 1, r->panels, rows * l->width);                                           \
        l->multiply(total, wide, rows, r->tiles, rows * l->rows, r->panels, sum, wide, k->first % PANEL_SEGMENT == 0); \
    }                                                                                                                  \
    static void block_back_##T(const Backward *w, const AttendBlock *k, const Rooms_##T *r)                            \
    {                                                                                                                  \
        const Attend *a = &w->a;                                                                                       \
        const size_t total = (size_t)a->h.total, size = (size_t)a->h.size;                                             \
        const T *keys = (const T *)a->k + k->b * a->of_k.batch + k->head * a->of_k.head;                               \
        attend_queries_##T(a, k, r->q);                                                                                \
        attend_pack_##T(a, k, r->dy, w->dy, w->of_dy, a->h.v_size);                                                    \
        attend_probabilities_##T(a, k, r->q, r->keys, r->p, r->tangent, r->product);                                   \
        values_back_##T(a, k, r);                                                                                      \
        soften_back_##T(a, k, r);                                                                                      \
        const Panel p = { (size_t)k->n, size, total, total, (size_t)a->of_k.step, size };                              \
        panel_##T(a->e->kernels, &p, r->dp, keys, r->dq, r->product);                                                  \
        if (!attention_scales_products(a->at, a->own) || dtype_is_narrow(a->own))                                      \
            attend_scale_##T(a, r->dq, k->n * a->h.size);                                                              \
        attend_spread_##T(a, k, w->dq, r->dq, a->of_q, a->h.size);                                                     \
        gather_##T(a, k, r, r->dp, r->q, a->h.size, r->dk);                                                            \
        attend_narrow_##T(a, r->p, k->n * a->h.total);                                                                 \
        gather_##T(a, k, r, r->p, r->dy, a->h.v_size, r->dv);                                                          \
    }                                                                                                                  \
    /* The rows of a segment, which joins those before it. */                                                          \
    static void segment_back_##T(const Backward *w, int64_t unit, int64_t first, const Rooms_##T *r)                   \
    {                                                                                                                  \
        const Attend *a = &w->a;                                                                                       \
        const size_t total = (size_t)a->h.total, size = (size_t)a->h.size, v_size = (size_t)a->h.v_size;               \
        const bool last = first + PANEL_SEGMENT >= a->rows;                                                            \
        if (first >= a->rows) { /* no queries: nothing to gather */                                                    \
            memset(r->dk, 0, total *size * sizeof(T));                                                                 \
            memset(r->dv, 0, total *v_size * sizeof(T));                                                               \
        }                                                                                                              \
        for (int64_t row = first; row < a->rows && row < first + PANEL_SEGMENT; row += ATTEND_ROWS) {                  \
            const AttendBlock k = attend_block(a, unit * a->blocks + row / ATTEND_ROWS);                               \
            block_back_##T(w, &k, r);                                                                                  \
        }                                                                                                              \
        panel_join_##T(r->dk, total, size, size, r->k_digits, (size_t)(first / PANEL_SEGMENT), last);                  \
        panel_join_##T(r->dv, total, v_size, v_size, r->v_digits, (size_t)(first / PANEL_SEGMENT), last);              \
    }                                                                                                                  \
    static void copy_steps_##T(T *to, const T *from, HeadStrides at, int64_t b, int64_t head, int64_t n, int64_t size) \
    {                                                                                                                  \
        for (int64_t i = 0; size && i < n; i++)                                                                        \
            memcpy(to + b * at.batch + head * at.head + i * at.step, from + i * size, (size_t)size * sizeof(T));       \
    }                                                                                                                  \
    static void backward_##T(void *arg, int64_t begin, int64_t end, int worker)                                        \
    {                                                                                                                  \
        const Backward *w = arg;                                                                                       \
        const Attend *a = &w->a;                                                                                       \
        const Heads *h = &a->h;                                                                                        \
        size_t whole;                                                                                                  \
        const Rooms_##T r = rooms_##T(w, (T *)(void *)w->rooms + (size_t)worker * w->whole, &whole);                   \
        for (int64_t unit = begin; unit < end && !eval_stopped(a->e); unit++) {                                        \
            const int64_t b = unit / h->heads, head = unit % h->heads;                                                 \
            attend_turn_##T(r.keys, (const T *)a->k + b * a->of_k.batch + head * a->of_k.head, h->total, h->size,      \
                            a->of_k.step);                                                                             \
            attend_turn_##T(r.values, (const T *)a->v + b * a->of_v.batch + head * a->of_v.head, h->total, h->v_size,  \
                            a->of_v.step);                                                                             \
            for (int64_t first = 0; first == 0 || first < a->rows; first += PANEL_SEGMENT)                             \
                segment_back_##T(w, unit, first, &r);                                                                  \
            if (dtype_is_narrow(a->own))                                                                               \
                attend_scale_##T(a, r.dk, h->total * h->size);                                                         \
            copy_steps_##T(w->dk, r.dk, a->of_k, b, head, h->total, h->size);                                          \
            copy_steps_##T(w->dv, r.dv, a->of_v, b, head, h->total, h->v_size);                                        \
        }                                                                                                              \
    }
BACK(f32)
BACK(f64)
#undef BACK

Status fast_attention_grad(Eval *e)
{
    size_t element = sizeof(f32);
    if (!attention_grad_in_blocks(e->attr, e->in[GRAD_Q]->type->dtype, e->n_out))
        return eval_expansion(e);
    Backward w = { .a = attend_open(e, (AttendOperands){ GRAD_Q, GRAD_K, GRAD_V, GRAD_MASK, GRAD_LENGTHS }) };
    const Heads *h = &w.a.h;
    w.dq = eval_out_wide(e, 0, w.a.arithmetic);
    w.dk = eval_out_wide(e, 1, w.a.arithmetic);
    w.dv = eval_out_wide(e, 2, w.a.arithmetic);
    if (w.a.packs)
        return packed_attention_grad(&w.a, (AttendBack){ w.dq, w.dk, w.dv });
    w.dy = eval_wide(e, GRAD_DY, w.a.arithmetic);
    w.of_dy = attend_strides(e->in[GRAD_Q]->type->rank, h->q_heads, h->queries, h->v_size);
    w.room = attend_room(&w.a);
    if (w.a.arithmetic == ARITH_F32)
        (void)rooms_f32(&w, NULL, &w.whole);
    else
        (void)rooms_f64(&w, NULL, &w.whole), element = sizeof(f64);
    w.rooms = eval_room(e, w.whole * (size_t)parallel_threads(e->pool), element);
    eval_parallel(e, h->batch * h->heads, w.a.arithmetic == ARITH_F32 ? backward_f32 : backward_f64, &w);
    return OK;
}
