#include "ops/move/move.h"

#include <string.h>

#include "base/pack.h"

Raw raw_of(Eval *e, const Tensor *t)
{
    const int bits = dtype_bits(t->type->dtype);
    if (bits >= 8)
        return (Raw){ t->data, (size_t)bits / 8 };
    const size_t n = (size_t)tensor_elements(t);
    uint8_t *bytes = eval_scratch(e, n, 1);
    unpack_bits(bytes, t->data, 0, n, (unsigned)bits);
    return (Raw){ (char *)bytes, 1 };
}

Raw raw_in(Eval *e, int i)
{
    return raw_of(e, e->in[i]);
}

Raw raw_open(Eval *e, const Tensor *t)
{
    const int bits = dtype_bits(t->type->dtype);
    if (bits >= 8)
        return (Raw){ t->data, (size_t)bits / 8 };
    return (Raw){ eval_scratch(e, (size_t)tensor_elements(t), 1), 1 };
}

void raw_close(Tensor *t, Raw r)
{
    const int bits = dtype_bits(t->type->dtype);
    if (bits >= 8)
        return;
    const size_t n = (size_t)tensor_elements(t);
    pack_bits(t->data, 0, (const uint8_t *)r.data, n, (unsigned)bits);
    pack_clear_tail(t->data, n, (unsigned)bits);
}

/* Doubles what is there already: few long copies instead of many short ones. */
void raw_fill(void *to, const void *element, int64_t n, size_t size)
{
    const size_t total = (size_t)n * size;
    if (!total)
        return;
    memcpy(to, element, size);
    for (size_t done = size; done < total; done *= 2)
        memcpy((char *)to + done, to, done < total - done ? done : total - done);
}

void raw_zero(void *to, int64_t n, size_t size)
{
    if (n)
        memset(to, 0, (size_t)n * size);
}

void move_axis(Move *m, int64_t n, int64_t to, int64_t from)
{
    DEBUG_IF(m->rank == MOVE_RANK);
    m->axis[m->rank++] = (struct MoveAxis){ n, to, from };
}

/* Axes of one element vanish; two that run through both sides without a gap become one. */
static void simplify(Move *m)
{
    int kept = 0;
    for (int i = 0; i < m->rank; i++) {
        const struct MoveAxis a = m->axis[i];
        if (a.n == 1)
            continue;
        struct MoveAxis *outer = kept ? &m->axis[kept - 1] : NULL;
        if (outer && outer->to == a.to * a.n && outer->from == a.from * a.n)
            *outer = (struct MoveAxis){ outer->n * a.n, a.to, a.from };
        else
            m->axis[kept++] = a;
    }
    m->rank = kept;
}

typedef void CopyRow(int64_t n, char *to, int64_t to_step, const char *from, int64_t from_step);

#define COPY_ROW(SIZE)                                                                                                 \
    static void copy_row_##SIZE(int64_t n, char *to, int64_t to_step, const char *from, int64_t from_step)             \
    {                                                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                                                \
            memcpy(to + i * to_step * (SIZE), from + i * from_step * (SIZE), SIZE);                                    \
    }
COPY_ROW(1)
COPY_ROW(2)
COPY_ROW(4)
COPY_ROW(8)
COPY_ROW(16)
#undef COPY_ROW

static CopyRow *row_of_size(size_t size)
{
    return size == 1   ? copy_row_1
           : size == 2 ? copy_row_2
           : size == 4 ? copy_row_4
           : size == 8 ? copy_row_8
                       : copy_row_16;
}

/* Where the outer loops stand. */
typedef struct Odometer {
    int64_t at[MOVE_RANK];
    int64_t to, from;
} Odometer;

static bool advance(Odometer *o, const Move *m, int rank)
{
    for (int i = rank - 1; i >= 0; i--) {
        const struct MoveAxis *a = &m->axis[i];
        o->to += a->to;
        o->from += a->from;
        if (++o->at[i] < a->n)
            return true;
        o->to -= a->n * a->to;
        o->from -= a->n * a->from;
        o->at[i] = 0;
    }
    return false;
}

static void run_rows(const Move *m, char *to, const char *from)
{
    const struct MoveAxis row = m->axis[m->rank - 1];
    const int64_t size = (int64_t)m->size;
    const bool whole = row.to == 1 && row.from == 1;
    CopyRow *copy = row_of_size(m->size);
    Odometer o = { { 0 }, 0, 0 };
    do {
        if (whole)
            memcpy(to + o.to * size, from + o.from * size, (size_t)row.n * m->size);
        else
            copy(row.n, to + o.to * size, row.to, from + o.from * size, row.from);
    } while (advance(&o, m, m->rank - 1));
}

/* A transposition of the two last axes: by squares that fit in the nearest cache, so neither side is read or written
 * a whole line for one element. */
static void run_squares(const Move *m, char *to, const char *from)
{
    enum { SQUARE = 32 };
    const struct MoveAxis p = m->axis[m->rank - 2], q = m->axis[m->rank - 1];
    const int64_t size = (int64_t)m->size;
    CopyRow *copy = row_of_size(m->size);
    Odometer o = { { 0 }, 0, 0 };
    do {
        for (int64_t i0 = 0; i0 < p.n; i0 += SQUARE)
            for (int64_t j0 = 0; j0 < q.n; j0 += SQUARE) {
                const int64_t i1 = i0 + SQUARE < p.n ? i0 + SQUARE : p.n;
                const int64_t n = j0 + SQUARE < q.n ? SQUARE : q.n - j0;
                for (int64_t i = i0; i < i1; i++)
                    copy(n, to + (o.to + i * p.to + j0 * q.to) * size, q.to,
                         from + (o.from + i * p.from + j0 * q.from) * size, q.from);
            }
    } while (advance(&o, m, m->rank - 2));
}

/* The same of words by the loops of a level, strip by strip: so many columns of `from` at a time that their lines in `to` lie in
 * few pages. */
enum { STRIP = 256 };

typedef struct Turn {
    const Move *m;
    const PackedLoops *loops;
    const PairLoops *pairs; /* of elements of two bytes */
    char *to;
    const char *from;
    int64_t strips;
} Turn;

/* Elements of two bytes: those of two lines are words, which are turned. */
static void turn_halves(const Turn *t, const struct MoveAxis *p, const struct MoveAxis *q, int64_t cols,
                        const uint16_t *from, uint16_t *to)
{
    enum { PAIRS = 16 };
    uint32_t words[PAIRS * STRIP];
    for (int64_t k = 0, n; k < q->n; k += 2 * n) {
        n = (q->n - k) / 2 < PAIRS ? (q->n - k) / 2 : PAIRS;
        for (int64_t i = 0; i < n; i++) {
            const uint16_t *line = from + (k + 2 * i) * q->from;
            t->pairs->pair((size_t)cols, line, line + q->from, words + i * STRIP);
        }
        t->loops->turn((size_t)n, (size_t)cols, words, STRIP, to + k, (size_t)p->to / 2);
    }
}

static void turn_strips(void *arg, int64_t begin, int64_t end, int worker)
{
    const Turn *t = arg;
    const struct MoveAxis p = t->m->axis[t->m->rank - 2], q = t->m->axis[t->m->rank - 1];
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        const int64_t col = item % t->strips * STRIP;
        int64_t outer = item / t->strips, to = col * p.to, from = col;
        for (int i = t->m->rank - 3; i >= 0; i--) {
            const struct MoveAxis *a = &t->m->axis[i];
            to += outer % a->n * a->to;
            from += outer % a->n * a->from;
            outer /= a->n;
        }
        const int64_t cols = p.n - col < STRIP ? p.n - col : STRIP, size = (int64_t)t->m->size;
        const void *x = t->from + from * size;
        void *y = t->to + to * size;
        if (t->pairs)
            turn_halves(t, &p, &q, cols, x, y);
        else
            t->loops->turn((size_t)q.n, (size_t)cols, x, (size_t)q.from, y, (size_t)p.to);
    }
}

static bool turn_words(const Move *m, void *to, const void *from)
{
    enum { LEAST = 8, MANY = 1 << 15 }; /* elements of an axis, of all that are worth more threads */
    const struct MoveAxis p = m->axis[m->rank - 2], q = m->axis[m->rank - 1];
    if (!m->e || p.from != 1 || q.to != 1 || p.n < LEAST || q.n < LEAST)
        return false;
    const bool halves = m->size == sizeof(uint16_t) && q.n % 2 == 0 && p.to % 2 == 0;
    Turn t = { m,
               kernels_packed(m->e->kernels, ARITH_F32),
               halves ? kernels_pairs_bf16(m->e->kernels) : NULL,
               to,
               from,
               (p.n + STRIP - 1) / STRIP };
    if (m->size != sizeof(uint32_t) && !t.pairs)
        return false;
    int64_t outer = 1;
    for (int i = 0; i < m->rank - 2; i++)
        outer *= m->axis[i].n;
    if (outer * p.n * q.n < MANY)
        turn_strips(&t, 0, outer * t.strips, 0);
    else
        eval_parallel(m->e, outer * t.strips, turn_strips, &t);
    return true;
}

void move_run(const Move *asked, void *to, const void *from)
{
    Move m = *asked;
    for (int i = 0; i < m.rank; i++)
        if (m.axis[i].n <= 0)
            return;
    simplify(&m);
    if (!m.rank) {
        memcpy(to, from, m.size);
        return;
    }
    const struct MoveAxis last = m.axis[m.rank - 1];
    for (int i = 0; i < m.rank - 1; i++)
        if (m.axis[i].from == 1 && last.from > 1) { /* the axis that is dense in `from` comes second to last */
            const struct MoveAxis dense = m.axis[i];
            for (int k = i; k < m.rank - 2; k++)
                m.axis[k] = m.axis[k + 1];
            m.axis[m.rank - 2] = dense;
            if (!turn_words(&m, to, from))
                run_squares(&m, to, from);
            return;
        }
    run_rows(&m, to, from);
}

void move_strides(int rank, const int64_t *dims, int64_t *strides)
{
    int64_t n = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = n;
        n *= dims[i];
    }
}

int64_t move_count(const int64_t *dims, int first, int last)
{
    int64_t n = 1;
    for (int i = first; i < last; i++)
        n *= dims[i];
    return n;
}

/* Elements of a map that does not go on long; false: neither their size nor the map is such. */
static bool one_by_one(size_t size, int64_t n, char *y, const char *x, const int64_t *map, const void *fill)
{
    enum { SHORT = 24 };
    if (!x || (n > SHORT && map[n / 2] == map[n / 2 - 1] + 1))
        return false;
#define COPY_EACH(T)                                                                                                   \
    case sizeof(T): {                                                                                                  \
        T filled = 0;                                                                                                  \
        if (fill)                                                                                                      \
            memcpy(&filled, fill, sizeof filled);                                                                      \
        for (int64_t i = 0; i < n; i++)                                                                                \
            ((T *)(void *)y)[i] = map[i] < 0 ? filled : ((const T *)(const void *)x)[map[i]];                          \
        return true;                                                                                                   \
    }
    switch (size) {
        COPY_EACH(uint8_t)
        COPY_EACH(uint16_t)
        COPY_EACH(uint32_t)
        COPY_EACH(uint64_t)
    default:
        return false;
    }
#undef COPY_EACH
}

/* One pass over the innermost mapped axis, whose entries are `inner` elements each. */
static void mapped_row(size_t size, int64_t inner, int64_t n, char *y, const char *x, const int64_t *map,
                       const void *fill)
{
    const size_t bytes = (size_t)inner * size;
    if (inner == 1 && one_by_one(size, n, y, x, map, fill))
        return;
    for (int64_t i = 0; i < n;) {
        int64_t run = 1;
        if (!x || map[i] < 0) {
            while (i + run < n && (!x || map[i + run] < 0))
                run++;
            raw_fill(y + (size_t)i * bytes, fill, run * inner, size);
        } else {
            while (i + run < n && map[i + run] == map[i] + run)
                run++;
            memcpy(y + (size_t)i * bytes, x + (size_t)map[i] * bytes, (size_t)run * bytes);
        }
        i += run;
    }
}

void move_mapped(size_t size, int rank, void *y, const int64_t *to, const void *x, const int64_t *from,
                 const int64_t *const *map, const void *fill)
{
    int last = rank - 1;
    while (last >= 0 && !map[last])
        last--;
    if (move_count(to, 0, rank) == 0)
        return;
    if (last < 0) {
        memcpy(y, x, (size_t)move_count(to, 0, rank) * size);
        return;
    }
    const int64_t inner = move_count(to, last + 1, rank), row = to[last] * inner;
    int64_t strides[MAX_RANK], at[MAX_RANK] = { 0 };
    move_strides(rank, from, strides);
    for (char *out = y;; out += (size_t)row * size) {
        int64_t offset = 0;
        bool inside = true;
        for (int i = 0; i < last; i++) {
            const int64_t k = map[i] ? map[i][at[i]] : at[i];
            inside = inside && k >= 0;
            offset += k * strides[i];
        }
        mapped_row(size, inner, to[last], out, inside ? (const char *)x + offset * (int64_t)size : NULL, map[last],
                   fill);
        int i = last - 1;
        for (; i >= 0 && ++at[i] == to[i]; i--)
            at[i] = 0;
        if (i < 0)
            return;
    }
}

Status move_whole(Eval *e)
{
    const Tensor *x = e->in[0];
    Tensor *y = eval_out(e, 0);
    BUG_IF(e->ir->memory, x->bytes != y->bytes);
    if (y->bytes)
        memcpy(y->data, x->data, y->bytes);
    return OK;
}
