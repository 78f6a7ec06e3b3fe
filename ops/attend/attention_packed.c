#include "ops/attend/attention_packed.h"

#include <string.h>

#include "ops/card/row.h"

static const double none[ROW_SCALARS] = { 0 };

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

f32 *packed_take(f32 *room, size_t *used, size_t n)
{
    enum { LINE = 16 };
    f32 *at = room ? room + *used : NULL;
    *used += round_up(n, LINE);
    return at;
}

static size_t depth_of(const Packed *p, int64_t k)
{
    return round_up((size_t)k, p->loops->depth);
}

size_t packed_columns(const Packed *p, size_t n, size_t k)
{
    return round_up(n, p->loops->width) * round_up(k, p->loops->depth) * p->operand / sizeof(f32);
}

size_t packed_rows(const Packed *p, size_t m, size_t k)
{
    return round_up(m, p->loops->rows) * round_up(k, p->loops->depth) * p->operand / sizeof(f32);
}

PackedRoom packed_room(const Packed *p, f32 *room, size_t *used)
{
    const Heads *h = &p->a.h;
    const size_t total = (size_t)h->total, scores = ATTEND_ROWS * total;
    const size_t size = (size_t)(h->size > h->v_size ? h->size : h->v_size);
    return (PackedRoom){ packed_take(room, used, scores),
                         packed_take(room, used, dtype_is_narrow(p->a.own) ? (scores + 1) / 2 : 0),
                         packed_take(room, used, total),
                         packed_take(room, used, packed_rows(p, ATTEND_ROWS, total > size ? total : size)) };
}

Packed packed_open(const Attend *a)
{
    const double scale = attention_scale(a->at, &a->h);
    const bool hides = attention_left(a->at) >= 0 || attention_right(a->at) >= 0 || a->lengths;
    return (Packed){ .a = *a,
                     .loops =
                         a->is_bf16 ? kernels_packed_bf16(a->e->kernels) : kernels_packed(a->e->kernels, ARITH_F32),
                     .operand = a->is_bf16 ? sizeof(u16) : sizeof(f32),
                     .skips = hides && scale > 0 && scale < (double)Q_INF };
}

PackedBlock packed_block(const Packed *p, int64_t number, bool whole)
{
    const int64_t width = (int64_t)p->loops->width, total = p->a.h.total;
    PackedBlock k = { .k = attend_block(&p->a, number), .low = 0, .high = total, .whole = whole };
    for (int64_t i = 0; i < k.k.n; i++)
        k.row[i] = attend_row(&p->a, &k.k, i);
    if (whole)
        return k;
    k.low = k.k.from / width * width;
    k.high = (k.k.to + width - 1) / width * width;
    k.high = k.high < total ? k.high : total;
    if (k.k.to <= k.k.from)
        k.low = k.high = 0;
    return k;
}

const void *packed_at(const Packed *p, const void *x, int64_t at)
{
    return (const char *)x + (size_t)at * p->operand;
}

/* Whether a word of n has all bits of an exponent, which is what infinities and NaN have; whether one is -0. */
enum { AT_ONCE = 16 }; /* a known number: whole vectors */
#define ANY(name, T, test)                                                                                             \
    static bool name(const T *x, int64_t n)                                                                            \
    {                                                                                                                  \
        T found[AT_ONCE] = { 0 }, some = 0;                                                                            \
        int64_t i = 0;                                                                                                 \
        for (; i + AT_ONCE <= n; i += AT_ONCE)                                                                         \
            for (int64_t j = 0; j < AT_ONCE; j++) {                                                                    \
                const T v = x[i + j];                                                                                  \
                found[j] |= (test);                                                                                    \
            }                                                                                                          \
        for (; i < n; i++) {                                                                                           \
            const T v = x[i];                                                                                          \
            some |= (test);                                                                                            \
        }                                                                                                              \
        for (int64_t j = 0; j < AT_ONCE; j++)                                                                          \
            some |= found[j];                                                                                          \
        return some;                                                                                                   \
    }
ANY(any_wide, u32, (v & 0x7f800000u) == 0x7f800000u)
ANY(any_narrow, u16, (v & 0x7f80u) == 0x7f80u)
ANY(any_minus_zero, u32, v == 0x80000000u)
#undef ANY

bool packed_finite(const Packed *p, const void *x, int64_t rows, int64_t step, int64_t n)
{
    bool finite = true;
    for (int64_t i = 0; i < rows && finite; i++) {
        const void *row = packed_at(p, x, i * step);
        finite = p->a.is_bf16 ? !any_narrow(row, n) : !any_wide(row, n);
    }
    return finite;
}

bool packed_odd(const Packed *p, const f32 *x, int64_t n)
{
    return !p->a.is_bf16 && any_minus_zero((const void *)x, n);
}

void packed_stage(const Packed *p, const PackedBlock *k, void *to, const void *from, HeadStrides at, int64_t size)
{
    const size_t bytes = (size_t)size * p->operand;
    for (int64_t i = 0; i < k->k.n; i++)
        memcpy((char *)to + (size_t)i * bytes,
               packed_at(p, from, k->k.b * at.batch + k->row[i].head * at.head + k->row[i].query * at.step), bytes);
}

void packed_queries(const Packed *p, const PackedBlock *k, void *to)
{
    packed_stage(p, k, to, p->a.q, p->a.of_q, p->a.h.size);
    if (!attention_scales_products(p->a.at, p->a.own))
        attend_scale_f32(&p->a, to, k->k.n * p->a.h.size);
}

void packed_across(const Packed *p, const void *x, int64_t step, int64_t size, f32 *to)
{
    const PackedLoops *l = p->loops;
    l->pack_columns((size_t)p->a.h.total, (size_t)size, x, 1, (size_t)step, to, depth_of(p, size) * l->width);
}

void packed_along(const Packed *p, const void *x, int64_t step, int64_t size, f32 *to)
{
    const PackedLoops *l = p->loops;
    l->pack_columns((size_t)size, (size_t)p->a.h.total, x, (size_t)step, 1, to, depth_of(p, p->a.h.total) * l->width);
}

void packed_inner(const Packed *p, const PackedBlock *k, const void *rows, int64_t size, const f32 *columns,
                  f32 *scores, f32 *tiles)
{
    const PackedLoops *l = p->loops;
    const size_t tile = depth_of(p, size) * l->rows;
    const int64_t column = (int64_t)depth_of(p, size); /* low begins a panel */
    if (k->low == k->high)
        return;
    l->pack_rows((size_t)k->k.n, (size_t)size, rows, (size_t)size, 1, tiles, tile);
    l->multiply((size_t)k->k.n, (size_t)(k->high - k->low), (size_t)size, tiles, tile,
                packed_at(p, columns, k->low * column), scores + k->low, (size_t)p->a.h.total, true);
}

void packed_outer(const Packed *p, const PackedBlock *k, const void *scores, int64_t size, const f32 *columns, f32 *y,
                  f32 *tiles)
{
    const PackedLoops *l = p->loops;
    const int64_t total = p->a.h.total, keys = k->high - k->low, width = (int64_t)l->width;
    const size_t tile = depth_of(p, keys) * l->rows;
    if (keys == 0) {
        memset(y, 0, (size_t)(k->k.n * size) * sizeof *y);
        return;
    }
    l->pack_rows((size_t)k->k.n, (size_t)keys, packed_at(p, scores, k->low), (size_t)total, 1, tiles, tile);
    for (int64_t j = 0; j < size; j += width) {
        const int64_t panel = j * (int64_t)depth_of(p, total) + k->low * width;
        l->multiply((size_t)k->k.n, (size_t)(size - j < width ? size - j : width), (size_t)keys, tiles, tile,
                    packed_at(p, columns, panel), y + j, (size_t)size, true);
    }
}

const void *packed_narrow(const Packed *p, const PackedBlock *k, f32 *scores, f32 *narrow)
{
    const Kernels *level = p->a.e->kernels;
    const int64_t total = p->a.h.total, n = k->high - k->low;
    if (!dtype_is_narrow(p->a.own))
        return scores;
    Tensor rounded = { .type = p->a.e->in[IN_Q]->type, .data = narrow };
    for (int64_t i = 0; n && i < k->k.n; i++) {
        kernels_store_f32(level, &rounded, i * total + k->low, scores + i * total + k->low, n);
        if (!p->a.is_bf16)
            kernels_load_f32(level, scores + i * total + k->low, &rounded, i * total + k->low, n);
    }
    return p->a.is_bf16 ? (const void *)narrow : scores;
}

/* ---- rows ---- */

/* `hidden` in place of what a mask hides of the keys that position shows; whether any is left. */
static bool mask_row(const Packed *p, const PackedBlock *k, int64_t i, f32 *row, f32 hidden)
{
    const Attend *a = &p->a;
    const AttendRow *r = &k->row[i];
    const int64_t step = a->mask_strides[3], to = a->mask && a->mask_keys < r->to ? a->mask_keys : r->to;
    const bool *choice = a->mask && a->choice ? attend_mask(a, &k->k, r) : NULL;
    const f32 *bias = a->mask && !a->choice ? attend_mask(a, &k->k, r) : NULL;
    bool any = r->from < to && !choice && !bias;
    for (int64_t j = r->from; j < to && (choice || bias); j++) {
        const bool seen = choice ? choice[j * step] : bias[j * step] != -Q_INF;
        row[j] = seen ? row[j] : hidden;
        any |= seen;
    }
    for (int64_t j = to > r->from ? to : r->from; j < r->to; j++)
        row[j] = hidden;
    return any;
}

static void clear(f32 *x, int64_t from, int64_t to)
{
    if (from < to)
        memset(x + from, 0, (size_t)(to - from) * sizeof *x);
}

void packed_hide(const Packed *p, const PackedBlock *k, int64_t i, f32 *row)
{
    clear(row, 0, k->row[i].from);
    clear(row, k->row[i].to, k->high);
    mask_row(p, k, i, row, 0);
}

static void add_bias(const Packed *p, const PackedBlock *k, int64_t i, f32 *row)
{
    const Attend *a = &p->a;
    const AttendRow *r = &k->row[i];
    const f32 *bias = attend_mask(a, &k->k, r);
    const int64_t n = (a->mask_keys < r->to ? a->mask_keys : r->to) - r->from;
    if (n > 0 && a->mask_strides[3])
        kernels_row(a->e->kernels, ROW_add, ARITH_F32)((size_t)n, row + r->from, row + r->from, bias + r->from, NULL,
                                                       none);
    else if (n > 0)
        attend_with_f32(a, ROW_add, row + r->from, n, *bias);
}

/* The largest of a row, in no order: of zeros either, and of a row with a NaN anything, since neither shows in the
 * probabilities. */
static f32 largest(const Kernels *level, const f32 *x, int64_t n)
{
    enum { ACROSS = 64, TAIL = 16 };
    RowLoop *max = kernels_row(level, ROW_max, ARITH_F32);
    f32 most[ACROSS], m;
    int64_t width = n < ACROSS ? n : ACROSS;
    memcpy(most, x, (size_t)width * sizeof *x);
    for (int64_t j = ACROSS; j < n; j += ACROSS)
        max((size_t)(n - j < ACROSS ? n - j : ACROSS), most, most, x + j, NULL, none);
    for (; width == ACROSS || width == ACROSS / 2; width /= 2)
        max((size_t)width / 2, most, most, most + width / 2, NULL, none);
    m = most[0];
    for (int64_t j = 1; j < width; j++)
        m = most[j] > m ? most[j] : m;
    return m;
}

/* The softmax of a row; what position hides of keys 0 .. high - 1 gives 0, and NaN where the sum is: false then. */
static bool soften(const Packed *p, const PackedBlock *k, const AttendRow *r, f32 *s)
{
    const Kernels *level = p->a.e->kernels;
    const int64_t n = r->to - r->from;
    f32 *x = s + r->from, sum;
    attend_with_f32(&p->a, ROW_sub, x, n, largest(level, x, n));
    kernels_row(level, ROW_exp, ARITH_F32)((size_t)n, x, x, NULL, NULL, none);
    clear(s, 0, r->from);
    clear(s, r->to, k->high);
    kernels_reduce(level, REDUCE_SUM, ARITH_F32)->rows(1, (size_t)k->high, s, &sum);
    if (sum == sum)
        attend_with_f32(&p->a, ROW_div, x, n, sum);
    for (int64_t j = 0; sum != sum && j < k->high; j++)
        s[j] = sum;
    return sum == sum;
}

static void cap_row(const Packed *p, f32 *s, int64_t n, f32 *tangent)
{
    attend_with_f32(&p->a, ROW_div, s, n, p->a.at->softcap);
    kernels_row(p->a.e->kernels, ROW_tanh, ARITH_F32)((size_t)n, s, s, NULL, NULL, none);
    if (tangent)
        memcpy(tangent, s, (size_t)n * sizeof *s);
    attend_with_f32(&p->a, ROW_mul, s, n, p->a.at->softcap);
}

bool packed_probabilities(const Packed *p, const PackedBlock *k, const void *q, const f32 *keys, const PackedRoom *r,
                          f32 *tangent)
{
    const Attend *a = &p->a;
    const int64_t total = a->h.total, n = k->high - k->low;
    bool tame = true;
    packed_inner(p, k, q, a->h.size, keys, r->scores, r->tiles);
    for (int64_t i = 0; n && i < k->k.n; i++) {
        f32 *row = r->scores + i * total;
        if (attention_scales_products(a->at, a->own))
            attend_scale_f32(a, row + k->low, n);
        if (a->at->softcap > 0)
            cap_row(p, row + k->low, n, tangent ? tangent + i * total + k->low : NULL);
        if (a->mask && !a->choice)
            add_bias(p, k, i, row);
        if (mask_row(p, k, i, row, -Q_INF))
            tame &= soften(p, k, &k->row[i], row);
        else
            clear(row, 0, k->high);
    }
    return tame || k->whole;
}

/* ---- forward ---- */

typedef struct Forward {
    Packed p;
    f32 *y, *rooms;
    HeadStrides of_y;
    size_t whole; /* elements of a worker's room */
} Forward;

/* What a worker has beside: keys, values, queries and results. */
typedef struct ForwardRoom {
    f32 *keys, *values, *q, *y;
    PackedRoom block;
} ForwardRoom;

static ForwardRoom forward_room(const Packed *p, f32 *room, size_t *used)
{
    const Heads *h = &p->a.h;
    const size_t total = (size_t)h->total, size = (size_t)h->size, v_size = (size_t)h->v_size;
    *used = 0;
    return (ForwardRoom){ packed_take(room, used, packed_columns(p, total, size)),
                          packed_take(room, used, packed_columns(p, v_size, total)),
                          packed_take(room, used, ATTEND_ROWS * size), packed_take(room, used, ATTEND_ROWS * v_size),
                          packed_room(p, room, used) };
}

static bool forward_block(const Forward *f, const PackedBlock *k, const ForwardRoom *r)
{
    const Packed *p = &f->p;
    const int64_t v_size = p->a.h.v_size;
    packed_queries(p, k, r->q);
    if (!packed_probabilities(p, k, r->q, r->keys, &r->block, NULL))
        return false;
    packed_outer(p, k, packed_narrow(p, k, r->block.scores, r->block.narrow), v_size, r->values, r->y, r->block.tiles);
    if (!k->whole && packed_odd(p, r->y, k->k.n * v_size))
        return false;
    attend_spread_f32(&p->a, &k->k, f->y, r->y, f->of_y, v_size);
    return true;
}

static void forward(void *arg, int64_t begin, int64_t end, int worker)
{
    const Forward *f = arg;
    const Packed *p = &f->p;
    const Attend *a = &p->a;
    size_t used;
    const ForwardRoom r = forward_room(p, f->rooms + (size_t)worker * f->whole, &used);
    int64_t unit = -1;
    bool skips = false;
    for (int64_t n = begin; n < end; n++) {
        if (unit != n / a->blocks) {
            unit = n / a->blocks;
            const int64_t b = unit / a->h.heads, head = unit % a->h.heads;
            const void *v = packed_at(p, a->v, b * a->of_v.batch + head * a->of_v.head);
            packed_across(p, packed_at(p, a->k, b * a->of_k.batch + head * a->of_k.head), a->of_k.step, a->h.size,
                          r.keys);
            packed_along(p, v, a->of_v.step, a->h.v_size, r.values);
            skips = p->skips && packed_finite(p, v, a->h.total, a->of_v.step, a->h.v_size);
        }
        PackedBlock k = packed_block(p, n, !skips);
        if (forward_block(f, &k, &r))
            continue;
        k = packed_block(p, n, true);
        (void)forward_block(f, &k, &r);
    }
}

Status packed_attention(const Attend *a, void *y)
{
    Eval *e = a->e;
    Forward f = { .p = packed_open(a), .y = y };
    f.of_y = attend_strides(e->in[IN_Q]->type->rank, a->h.q_heads, a->h.queries, a->h.v_size);
    (void)forward_room(&f.p, NULL, &f.whole);
    f.rooms = eval_room(e, f.whole * (size_t)parallel_threads(e->pool), sizeof(f32));
    eval_parallel(e, a->h.batch * a->h.heads * a->blocks, forward, &f);
    return OK;
}
