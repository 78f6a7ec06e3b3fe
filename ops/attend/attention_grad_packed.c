/* The way back of attention_packed.h: a head of keys is one thread's, and gathers what its blocks of rows send, rows
 * ascending, in segments of 2048. */
#include <string.h>

#include "ops/attend/attention_packed.h"
#include "ops/card/row.h"

static const double none[ROW_SCALARS] = { 0 };

typedef struct Backward {
    Packed p;
    AttendBack to;
    const void *dy;
    f32 *rooms;
    HeadStrides of_dy;
    size_t whole; /* elements of a worker's room */
} Backward;

/* What a worker has: keys for scores and for what reaches queries, values; a block's queries and what reaches its results;
 * what reaches probabilities, tangents; what reaches queries, keys and values, with the sums of segments; panels. */
typedef struct BackRoom {
    f32 *keys, *keys_along, *values, *q, *dy, *dp, *tangent, *dq, *dk, *dv, *k_digits, *v_digits, *panels, *tiles;
    PackedRoom block;
} BackRoom;

static BackRoom back_room(const Packed *p, f32 *room, size_t *used)
{
    const Heads *h = &p->a.h;
    const size_t total = (size_t)h->total, size = (size_t)h->size, v_size = (size_t)h->v_size,
                 digits = panel_digits((size_t)p->a.rows), scores = ATTEND_ROWS * total;
    *used = 0;
    return (BackRoom){ packed_take(room, used, packed_columns(p, total, size)),
                       packed_take(room, used, packed_columns(p, size, total)),
                       packed_take(room, used, packed_columns(p, total, v_size)),
                       packed_take(room, used, ATTEND_ROWS * size),
                       packed_take(room, used, ATTEND_ROWS * v_size),
                       packed_take(room, used, scores),
                       packed_take(room, used, p->a.at->softcap > 0 ? scores : 0),
                       packed_take(room, used, ATTEND_ROWS * size),
                       packed_take(room, used, total * size),
                       packed_take(room, used, total * v_size),
                       packed_take(room, used, digits * total * size),
                       packed_take(room, used, digits * total * v_size),
                       packed_take(room, used, packed_columns(p, size > v_size ? size : v_size, ATTEND_ROWS)),
                       packed_take(room, used, packed_rows(p, total, ATTEND_ROWS)),
                       packed_room(p, room, used) };
}

/* What reaches the scores of a row in place of what reaches its probabilities; of a block with all keys, a row may be NaN
 * where it sees nothing. */
static void soften_back(const Packed *p, const PackedBlock *k, int64_t i, const BackRoom *r)
{
    const Kernels *level = p->a.e->kernels;
    const int64_t total = p->a.h.total, from = k->whole ? 0 : k->row[i].from,
                  n = (k->whole ? total : k->row[i].to) - from;
    const f32 *row = r->block.scores + i * total;
    f32 *dp = r->dp + i * total, *shares = r->block.row, sum;
    RowLoop *mul = kernels_row(level, ROW_mul, ARITH_F32);
    packed_hide(p, k, i, dp);
    memset(shares, 0, (size_t)k->high * sizeof *shares);
    mul((size_t)n, shares + from, row + from, dp + from, NULL, none);
    kernels_reduce(level, REDUCE_SUM, ARITH_F32)->rows(1, (size_t)k->high, shares, &sum);
    if (k->high < total)
        sum += 0.0f; /* what is left out are zeros */
    attend_with_f32(&p->a, ROW_sub, dp + from, n, sum);
    mul((size_t)n, dp + from, row + from, dp + from, NULL, none);
    packed_hide(p, k, i, dp);
}

static void cap_back(const Packed *p, f32 *dp, const f32 *tangent, int64_t n)
{
    attend_with_f32(&p->a, ROW_mul, dp, n, p->a.at->softcap);
    for (int64_t j = 0; j < n; j++)
        dp[j] = dp[j] * (1 - tangent[j] * tangent[j]);
    attend_with_f32(&p->a, ROW_div, dp, n, p->a.at->softcap);
}

/* What reaches the scores of a block. */
static void scores_back(const Packed *p, const PackedBlock *k, const BackRoom *r)
{
    const Attend *a = &p->a;
    const int64_t total = a->h.total, n = k->high - k->low;
    packed_inner(p, k, r->dy, a->h.v_size, r->values, r->dp, r->block.tiles);
    for (int64_t i = 0; n && i < k->k.n; i++) {
        f32 *row = r->dp + i * total + k->low;
        soften_back(p, k, i, r);
        if (a->at->softcap > 0)
            cap_back(p, row, r->tangent + i * total + k->low, n);
        if (attention_scales_products(a->at, a->own) && !dtype_is_narrow(a->own))
            attend_scale_f32(a, row, n);
    }
}

/* sum[keys, size] += block' y, rows ascending, of the keys of a block; those before and behind begin with nothing. */
static void gather(const Packed *p, const PackedBlock *k, const BackRoom *r, const void *block, const void *y,
                   int64_t size, f32 *sum)
{
    const PackedLoops *l = p->loops;
    const size_t rows = (size_t)k->k.n, deep = (rows + l->depth - 1) / l->depth * l->depth,
                 total = (size_t)p->a.h.total, keys = (size_t)(k->high - k->low);
    const bool fresh = k->k.first % PANEL_SEGMENT == 0;
    if (fresh && keys < total)
        memset(sum, 0, total * (size_t)size * sizeof *sum);
    if (keys == 0)
        return;
    l->pack_rows(keys, rows, packed_at(p, block, k->low), 1, total, r->tiles, deep * l->rows);
    l->pack_columns((size_t)size, rows, y, (size_t)size, 1, r->panels, deep * l->width);
    l->multiply(keys, (size_t)size, rows, r->tiles, deep * l->rows, r->panels, sum + k->low * size, (size_t)size,
                fresh);
}

static bool back_block(const Backward *w, const PackedBlock *k, const BackRoom *r)
{
    const Packed *p = &w->p;
    const Attend *a = &p->a;
    const int64_t size = a->h.size, v_size = a->h.v_size;
    packed_queries(p, k, r->q);
    packed_stage(p, k, r->dy, w->dy, w->of_dy, v_size);
    if (!k->whole && !(packed_finite(p, r->q, 1, 0, k->k.n * size) && packed_finite(p, r->dy, 1, 0, k->k.n * v_size)))
        return false;
    if (!packed_probabilities(p, k, r->q, r->keys, &r->block, r->tangent))
        return false;
    scores_back(p, k, r);
    const void *probabilities = packed_narrow(p, k, r->block.scores, r->block.narrow);
    gather(p, k, r, probabilities, r->dy, v_size, r->dv);
    const void *scores = packed_narrow(p, k, r->dp, r->block.narrow);
    gather(p, k, r, scores, r->q, size, r->dk);
    packed_outer(p, k, scores, size, r->keys_along, r->dq, r->block.tiles);
    if (!k->whole && packed_odd(p, r->dq, k->k.n * size))
        return false;
    if (!attention_scales_products(a->at, a->own) || dtype_is_narrow(a->own))
        attend_scale_f32(a, r->dq, k->k.n * size);
    attend_spread_f32(a, &k->k, w->to.dq, r->dq, a->of_q, size);
    return true;
}

/* All rows of a head of keys; false: it is wild. */
static bool back_rows(const Backward *w, int64_t unit, const BackRoom *r, bool whole)
{
    const Packed *p = &w->p;
    const int64_t total = p->a.h.total, size = p->a.h.size, v_size = p->a.h.v_size;
    for (int64_t n = 0; n < p->a.blocks; n++) {
        const PackedBlock k = packed_block(p, unit * p->a.blocks + n, whole);
        const int64_t end = k.k.first + k.k.n;
        if (!back_block(w, &k, r))
            return false;
        if (end % PANEL_SEGMENT && end < p->a.rows)
            continue;
        const size_t segment = (size_t)(k.k.first / PANEL_SEGMENT);
        const bool last = end == p->a.rows;
        if (!whole && (packed_odd(p, r->dk, total * size) || packed_odd(p, r->dv, total * v_size)))
            return false;
        panel_join_f32(r->dk, (size_t)total, (size_t)size, (size_t)size, r->k_digits, segment, last);
        panel_join_f32(r->dv, (size_t)total, (size_t)v_size, (size_t)v_size, r->v_digits, segment, last);
    }
    return true;
}

static void copy_steps(void *to, const f32 *from, HeadStrides at, int64_t b, int64_t head, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy((f32 *)to + b * at.batch + head * at.head + i * at.step, from + i * size, (size_t)size * sizeof(f32));
}

static void backward(void *arg, int64_t begin, int64_t end, int worker)
{
    const Backward *w = arg;
    const Packed *p = &w->p;
    const Attend *a = &p->a;
    const Heads *h = &a->h;
    size_t used;
    const BackRoom r = back_room(p, w->rooms + (size_t)worker * w->whole, &used);
    for (int64_t unit = begin; unit < end && !eval_stopped(a->e); unit++) {
        const int64_t b = unit / h->heads, head = unit % h->heads;
        const void *k = packed_at(p, a->k, b * a->of_k.batch + head * a->of_k.head);
        packed_across(p, k, a->of_k.step, h->size, r.keys);
        packed_along(p, k, a->of_k.step, h->size, r.keys_along);
        packed_across(p, packed_at(p, a->v, b * a->of_v.batch + head * a->of_v.head), a->of_v.step, h->v_size,
                      r.values);
        if (!p->skips || !packed_finite(p, k, h->total, a->of_k.step, h->size) || !back_rows(w, unit, &r, false))
            (void)back_rows(w, unit, &r, true);
        if (dtype_is_narrow(a->own))
            attend_scale_f32(a, r.dk, h->total * h->size);
        copy_steps(w->to.dk, r.dk, a->of_k, b, head, h->total, h->size);
        copy_steps(w->to.dv, r.dv, a->of_v, b, head, h->total, h->v_size);
    }
}

Status packed_attention_grad(const Attend *a, AttendBack to)
{
    Eval *e = a->e;
    Backward w = { .p = packed_open(a), .to = to, .dy = attend_operand(a, GRAD_DY) };
    w.of_dy = attend_strides(e->in[GRAD_Q]->type->rank, a->h.q_heads, a->h.queries, a->h.v_size);
    (void)back_room(&w.p, NULL, &w.whole);
    w.rooms = eval_room(e, w.whole * (size_t)parallel_threads(e->pool), sizeof(f32));
    eval_parallel(e, a->h.batch * a->h.heads, backward, &w);
    return OK;
}
