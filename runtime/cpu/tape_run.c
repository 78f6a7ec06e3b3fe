#include "runtime/cpu/tape_run.h"

#include <string.h>

#include "runtime/cpu/tape_streams.h"
#include "runtime/cpu/tape_tables.h"

/* ---- one block ---- */

/* What a worker has: its registers, where each is now, and the eight sums of columns under way. */
static void *room_of(const TapeRunner *r, int worker, int reg)
{
    return r->workers + (size_t)worker * r->apart + r->room_at[reg];
}

static size_t size_of(Arithmetic a)
{
    return a == ARITH_F32 ? sizeof(f32) : sizeof(f64);
}

/* Elements of a register in a block. */
static int64_t count_of(const TapeRunner *r, const Block *b, int reg)
{
    return r->tape->registers[reg].per_row ? b->rows : b->n;
}

static const void *load_block(const TapeRunner *r, const TapeStepRun *s, const Block *b, void *room)
{
    const bool by_row = r->tape->registers[s->out].per_row;
    const int64_t at = by_row ? b->row : b->at, n = by_row ? b->rows : b->n;
    if (b->product && s->argument == r->tape->product)
        return b->product;
    if (r->channels && !by_row && s->feed != FEED_FIXED)
        return channels_load(r, s, b, room);
    switch (s->feed) {
    case FEED_DIRECT:
        return (const char *)s->from->data + (size_t)at * s->size;
    case FEED_REPEAT:
        return s->from->data;
    case FEED_ROWS:
        return (const char *)s->from->data + (size_t)b->row * s->size;
    case FEED_COPY:
    case FEED_DENSE:
        kernels_load(r->kernels, s->arithmetic, room, s->from, at, n);
        return room;
    case FEED_ACROSS:
        if (at % s->space.dims[1] + n <= s->space.dims[1])
            return (const char *)s->from->data + (size_t)(at % s->space.dims[1]) * s->size;
        space_gather(&s->space, 0, s->from->data, s->size, at, n, room);
        return room;
    case FEED_GATHER:
        space_gather(&s->space, 0, s->is_widened ? r->memory + s->wide_at : s->from->data, s->size, at, n, room);
        return room;
    case FEED_RUNS:
    case FEED_FIXED:
        break; /* filled before the first block */
    }
    return room;
}

/* A vector at a time, whatever the level: there is nothing to compute. */
#define FILL(T)                                                                                                        \
    typedef T Wide_##T __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));                                \
    static void fill_##T(T *to, int64_t n, T v)                                                                        \
    {                                                                                                                  \
        enum { WIDE = 64 / sizeof(T) };                                                                                \
        const Wide_##T all = (Wide_##T){ 0 } + v;                                                                      \
        int64_t i = 0;                                                                                                 \
        for (; i + WIDE <= n; i += WIDE)                                                                               \
            *(Wide_##T *)(void *)(to + i) = all;                                                                       \
        for (; i < n; i++)                                                                                             \
            to[i] = v;                                                                                                 \
    }
FILL(u32)
FILL(u64)
#undef FILL

static void spread_rows(const TapeStepRun *s, const Block *b, const void *from, void *to)
{
    const int64_t length = b->n / b->rows;
    for (int64_t i = 0; i < b->rows; i++) {
        if (s->size == sizeof(f32))
            fill_u32((u32 *)to + i * length, length, ((const u32 *)from)[i]);
        else
            fill_u64((u64 *)to + i * length, length, ((const u64 *)from)[i]);
    }
}

/* Row by row, where some operands do not have whole rows.  Numbers of rows are set aside: the result may take their room. */
static void run_by_rows(const TapeRunner *r, const TapeStepRun *s, const Block *b, const void **at, char *to)
{
    const size_t n = (size_t)(b->n / b->rows), whole = n * s->size;
    u64 numbers[REDUCE_ROWS];
    const char *in[TAPE_OPERANDS] = { NULL };
    size_t apart[TAPE_OPERANDS] = { 0 }; /* bytes from one row to the next */
    for (int i = 0; i < TAPE_OPERANDS; i++) {
        if (s->in[i] < 0)
            continue;
        const TapeRows rows = r->rows[s->in[i]];
        in[i] = at[s->in[i]];
        apart[i] = rows == ROWS_SAME ? 0 : rows == ROWS_NUMBER ? s->size : whole;
        if (rows == ROWS_NUMBER)
            in[i] = memcpy(numbers, in[i], (size_t)b->rows * s->size);
    }
    for (int64_t k = 0; k < b->rows; k++, to += whole) {
        s->row(n, to, in[0], in[1], in[2], s->k);
        for (int i = 0; i < TAPE_OPERANDS; i++)
            in[i] = apart[i] ? in[i] + apart[i] : in[i];
    }
}

/* Rows of one loop, row by row where numbers are those of rows, which are set aside: the result may take their room. */
static void run_chain(const TapeRunner *r, const TapeChain *c, const Block *b, const void **at, f32 *to)
{
    const int64_t rows = c->by_rows ? b->rows : 1, n = b->n / rows;
    const f32 *streams[CHAIN_STREAMS] = { NULL };
    f32 numbers[REDUCE_ROWS][CHAIN_NUMBERS];
    for (int i = 0; i < CHAIN_STREAMS; i++)
        streams[i] = c->streams[i] < 0 ? NULL : at[c->streams[i]];
    for (int i = 0; i < CHAIN_NUMBERS; i++)
        for (int64_t k = 0; k < rows; k++) {
            const bool of_row = c->numbers[i] >= 0 && r->rows[c->numbers[i]] == ROWS_NUMBER;
            numbers[k][i] = c->numbers[i] < 0 ? 0 : ((const f32 *)at[c->numbers[i]])[of_row ? k : 0];
        }
    for (int64_t k = 0; k < rows; k++, to += n) {
        c->loop((size_t)n, to, streams, numbers[k]);
        for (int i = 0; i < CHAIN_STREAMS; i++)
            if (streams[i] && r->rows[c->streams[i]] == ROWS_WHOLE)
                streams[i] += n;
    }
}

static void hit_rows(const TapeRunner *r, const TapeStepRun *s, const Block *b, const i64 *index, void *to)
{
    const int64_t length = r->tape->length;
    memset(to, 0, (size_t)b->n * s->size);
    for (int64_t i = 0; i < b->rows; i++) {
        if (index[i] < 0 || index[i] >= length)
            continue;
        const int64_t at = i * length + index[i];
        if (s->arithmetic == ARITH_F32)
            ((f32 *)to)[at] = 1;
        else if (s->arithmetic == ARITH_F64)
            ((f64 *)to)[at] = 1;
        else
            ((u64 *)to)[at] = 1;
    }
}

static void pick_rows(const TapeRunner *r, const TapeStepRun *s, const Block *b, const void *x, const i64 *index,
                      void *to)
{
    const int64_t length = r->tape->length;
    for (int64_t i = 0; i < b->rows; i++) {
        const int64_t at = i * length + (index[i] < 0 ? 0 : index[i] < length ? index[i] : length - 1);
        if (s->size == sizeof(f32))
            ((f32 *)to)[i] = ((const f32 *)x)[at];
        else
            ((u64 *)to)[i] = ((const u64 *)x)[at];
    }
}

/* Through a narrow block and back: what is stored is what is read. */
static void round_block(const TapeRunner *r, const TapeStepRun *s, int worker, int64_t n, const void *from, void *to)
{
    Type type = { .kind = TYPE_TENSOR, .dtype = s->through, .rank = 1, .dims = &n };
    Tensor narrow = { .type = &type, .data = r->workers + (size_t)worker * r->apart + r->narrow_at };
    if (s->through == BF16 && s->arithmetic == ARITH_F32 && s->to == ARITH_F32) {
        kernels_round_bf16(r->kernels, n, from, to);
        return;
    }
    kernels_store(r->kernels, s->arithmetic, &narrow, 0, from, n);
    kernels_load(r->kernels, s->to, to, &narrow, 0, n);
}

/* Whether a register is made in the result that it leaves by. */
static bool is_home(const TapeRunner *r, int reg, const Block *b)
{
    return r->home[reg] >= 0 && (b->leaves || r->tape->registers[reg].per_row);
}

void *tape_register_place(const TapeRunner *r, int worker, int reg, const Block *b)
{
    const int home = r->home[reg];
    const int64_t at = r->tape->registers[reg].per_row ? b->row : b->at;
    return !is_home(r, reg, b) ? room_of(r, worker, reg)
                               : (char *)r->out[home]->data + (size_t)at * size_of(r->arithmetic[reg]);
}

static void fold_column(const TapeRunner *r, const TapeStepRun *s, int worker, const Block *b, const void *x)
{
    char *sums = r->workers + (size_t)worker * r->apart + r->sums_at + s->sums_at;
    const size_t cols = (size_t)r->tape->length;
    s->loops->sums_add((size_t)(b->row % REDUCE_ROWS), (size_t)b->rows, cols, x, sums);
    const int64_t end = b->row + b->rows;
    if (end % REDUCE_ROWS && end != r->tape->rows)
        return;
    const int64_t begin = (end - 1) / REDUCE_ROWS * REDUCE_ROWS;
    s->loops->sums_end((size_t)(end - begin), cols, sums,
                       r->memory + s->parts_at + (size_t)(begin / REDUCE_ROWS) * cols * s->size);
}

/* The logical index of an element of a draw is its number in the space, that of a row the row's. */
static void draw_block(const TapeRunner *r, const TapeStepRun *s, const Block *b, void *to)
{
    const DrawKey key = { .seed = r->seed ^ s->own, .stream = s->stream, .step = (u32)r->step, .iteration = r->turn };
    const int64_t first = r->tape->registers[s->out].per_row ? b->row : b->at;
    kernels_draw(r->kernels)(&key, s->law, (f32)s->k[0], (u64)first, (size_t)count_of(r, b, s->out), to);
}

void tape_step_run(const TapeRunner *r, const TapeStepRun *s, int worker, const Block *b, const void **at)
{
    switch (s->word) {
    case TAPE_LOAD:
        at[s->out] = load_block(r, s, b, room_of(r, worker, s->out));
        break;
    case TAPE_FILL:
        break;
    case TAPE_DRAW: {
        void *to = tape_register_place(r, worker, s->out, b);
        draw_block(r, s, b, to);
        at[s->out] = to;
        break;
    }
    case TAPE_ROW: {
        void *to = tape_register_place(r, worker, s->out, b);
        if (s->table)
            tape_look_up(s->table, b->n, at[s->in[0]], to);
        else if (s->chain)
            run_chain(r, s->chain, b, at, to);
        else if (s->by_rows)
            run_by_rows(r, s, b, at, to);
        else
            s->row((size_t)count_of(r, b, s->out), to, s->in[0] < 0 ? NULL : at[s->in[0]],
                   s->in[1] < 0 ? NULL : at[s->in[1]], s->in[2] < 0 ? NULL : at[s->in[2]], s->k);
        at[s->out] = to;
        break;
    }
    case TAPE_ROUND: {
        void *to = tape_register_place(r, worker, s->out, b);
        round_block(r, s, worker, count_of(r, b, s->out), at[s->in[0]], to);
        at[s->out] = to;
        break;
    }
    case TAPE_SPREAD: {
        void *to = tape_register_place(r, worker, s->out, b);
        if (r->rows[s->out] == ROWS_NUMBER)
            memcpy(to, at[s->in[0]], (size_t)b->rows * s->size);
        else
            spread_rows(s, b, at[s->in[0]], to);
        at[s->out] = to;
        break;
    }
    case TAPE_HIT: {
        void *to = tape_register_place(r, worker, s->out, b);
        hit_rows(r, s, b, at[s->in[0]], to);
        at[s->out] = to;
        break;
    }
    case TAPE_FOLD_ROW: {
        void *to = tape_register_place(r, worker, s->out, b);
        if (r->channels)
            channels_fold(r, s, worker, b, at[s->in[0]], to);
        else
            s->loops->rows((size_t)b->rows, (size_t)r->tape->length, at[s->in[0]], to);
        at[s->out] = to;
        break;
    }
    case TAPE_PICK: {
        void *to = tape_register_place(r, worker, s->out, b);
        pick_rows(r, s, b, at[s->in[0]], at[s->in[1]], to);
        at[s->out] = to;
        break;
    }
    case TAPE_FOLD_COLUMN:
        fold_column(r, s, worker, b, at[s->in[0]]);
        break;
    case TAPE_FOLD_ALL:
        s->loops->rows(1, (size_t)b->n, at[s->in[0]], r->memory + s->parts_at + (size_t)(b->at / r->block) * s->size);
        break;
    case TAPE_STORE: {
        const bool by_row = r->tape->registers[s->in[0]].per_row;
        if (s->is_there || (r->home[s->in[0]] == s->out && is_home(r, s->in[0], b)))
            break;
        if (by_row || b->is_dense)
            kernels_store(r->kernels, s->arithmetic, r->out[s->out], by_row ? b->row : b->at, at[s->in[0]],
                          by_row ? b->rows : b->n);
        else
            channels_store(r, s, b, at[s->in[0]]);
        break;
    }
    }
}

/* ---- all blocks ---- */

static void fill_room(const TapeRunner *r, const TapeStepRun *s, void *room)
{
    union {
        f32 f;
        f64 d;
        i64 i;
        u64 u;
    } v = { .u = 0 };
    const Tensor *t = s->word == TAPE_LOAD ? s->from : s->value;
    if (t)
        kernels_load(r->kernels, s->arithmetic, &v, t, 0, 1);
    else if (s->arithmetic == ARITH_F32)
        v.f = (f32)s->k[0];
    else if (s->arithmetic == ARITH_F64)
        v.d = s->k[0];
    else if (s->arithmetic == ARITH_I64)
        v.i = q_i64(s->k[0]);
    else
        v.u = q_u64(s->k[0]);
    for (int64_t i = 0; i < (s->is_one ? 1 : r->block_elements); i++) {
        if (s->size == sizeof(f32))
            ((f32 *)room)[i] = v.f;
        else
            ((u64 *)room)[i] = v.u;
    }
}

static void fill_registers(const TapeRunner *r, int worker, const void **at)
{
    for (int i = 0; i < r->n_steps; i++) {
        const TapeStepRun *s = &r->steps[i];
        if (s->word == TAPE_FILL || (s->word == TAPE_LOAD && s->feed == FEED_FIXED)) {
            fill_room(r, s, room_of(r, worker, s->out));
            at[s->out] = room_of(r, worker, s->out);
        }
    }
}

static void run_range(const TapeRunner *r, int64_t begin, int64_t end, int worker)
{
    const Tape *t = r->tape;
    const void **at = r->at + (size_t)worker * (size_t)t->n_registers;
    TapeStream streams[TAPE_STREAMS];
    const int n_streams = r->channels ? 0 : tape_streams(r, (end - begin) * r->block, streams);
    fill_registers(r, worker, at);
    for (int64_t k = begin; k < end; k++) {
        const int64_t left = r->n_things - k * r->block;
        const int64_t things = left < r->block ? left : r->block;
        Block b = { k * r->block, things, 0, k * r->block * t->length, things * t->length, true, true };
        if (t->cut < 0)
            b = (Block){ .rows = 1, .at = k * r->block, .n = things, .is_dense = true, .leaves = true };
        if (r->channels)
            channels_run(r, b.row, b.rows, worker, at);
        const int64_t next = left - things < r->block ? left - things : r->block;
        for (int i = 0; i < r->n_steps && !r->channels; i++) {
            tape_ask(streams, k + 1 < end ? n_streams : 0, (k + 1) * r->block, next, i, r->n_steps);
            tape_step_run(r, &r->steps[i], worker, &b, at);
        }
    }
}

/* Units of a split: a block, or, where columns are folded, the blocks of 64 rows. */
static void run_units(void *arg, int64_t begin, int64_t end, int worker)
{
    const TapeRunner *r = arg;
    const int64_t blocks = (r->n_things + r->block - 1) / r->block;
    const int64_t last = end * r->unit < blocks ? end * r->unit : blocks;
    run_range(r, begin * r->unit, last, worker);
}

/* The sums of blocks join, in their order. */
static void join(const TapeRunner *r, const TapeStepRun *s)
{
    const size_t cols = s->word == TAPE_FOLD_ALL ? 1 : (size_t)r->tape->length;
    s->loops->join(s->n_parts, cols, r->memory + s->parts_at, r->memory + s->whole_at);
    kernels_store(r->kernels, s->arithmetic, r->out[s->out], 0, r->memory + s->whole_at, (int64_t)cols);
}

/* Operands that are read in another order than they lie, widened once. */
static void widen(const TapeRunner *r)
{
    for (int i = 0; i < r->n_steps; i++)
        if (r->steps[i].is_widened)
            kernels_load(r->kernels, r->steps[i].arithmetic, r->memory + r->steps[i].wide_at, r->steps[i].from, 0,
                         tensor_elements(r->steps[i].from));
}

enum { SMALL = 1 << 14 }; /* elements: waking threads takes longer */

static int64_t units_of(const TapeRunner *r)
{
    return ((r->n_things + r->block - 1) / r->block + r->unit - 1) / r->unit;
}

static int64_t elements_of(const TapeRunner *r)
{
    return r->tape->rows * r->tape->length;
}

void tape_begin(TapeRunner *r, const Tensor *const *in, Tensor *const *out)
{
    r->out = out;
    for (int i = 0; i < r->n_steps; i++)
        if (r->steps[i].word == TAPE_LOAD)
            r->steps[i].from = in[r->steps[i].argument];
    widen(r);
}

static void end_run(const TapeRunner *r)
{
    for (int i = 0; i < r->n_steps; i++)
        if (r->steps[i].n_parts)
            join(r, &r->steps[i]);
}

void tape_run(TapeRunner *r, Parallel *pool, const Tensor *const *in, Tensor *const *out)
{
    tape_begin(r, in, out);
    if (elements_of(r) <= SMALL)
        run_units(r, 0, units_of(r), 0);
    else
        parallel(pool, units_of(r), run_units, r);
    end_run(r);
}

bool tape_takes_product(const TapeRunner *r)
{
    const Tape *t = r->tape;
    bool takes = t->product != TAPE_NONE && t->in[t->product]->dtype == F32;
    for (int i = 0; i < t->n_out && takes; i++)
        takes = !r->stays[i];
    for (int i = 0; i < r->n_steps && takes; i++)
        takes = r->steps[i].word != TAPE_LOAD || r->steps[i].argument != t->product ||
                r->steps[i].feed == FEED_DIRECT || r->steps[i].feed == FEED_COPY;
    return takes;
}

/* What lies side by side is one run. */
void tape_run_block(const TapeRunner *r, const TapeBlock *some, int worker)
{
    int64_t rows = some->rows, cols = some->cols;
    const void **registers = r->at + (size_t)worker * (size_t)r->tape->n_registers;
    fill_registers(r, worker, registers);
    if (cols == some->pitch && (!some->product || cols == some->apart)) {
        cols *= rows;
        rows = 1;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j += r->block_elements) {
            const int64_t left = cols - j, n = left < r->block_elements ? left : r->block_elements;
            const Block b = { .rows = 1,
                              .at = some->at + i * some->pitch + j,
                              .n = n,
                              .is_dense = true,
                              .leaves = true,
                              .product = some->product ? (const f32 *)some->product + i * some->apart + j : NULL };
            for (int s = 0; s < r->n_steps; s++)
                tape_step_run(r, &r->steps[s], worker, &b, registers);
        }
}

/* Units of tapes that run side by side, those of one behind those of another. */
typedef struct Beside {
    TapeRunner *const *r;
    int n;
} Beside;

static void run_beside(void *arg, int64_t begin, int64_t end, int worker)
{
    const Beside *b = arg;
    for (int i = 0; i < b->n && begin < end; i++) {
        const int64_t units = units_of(b->r[i]);
        if (begin < units)
            run_units(b->r[i], begin, end < units ? end : units, worker);
        begin = begin > units ? begin - units : 0;
        end -= units;
    }
}

void tape_run_beside(TapeRunner *const *r, int n, Parallel *pool, const Tensor *const *const *in,
                     Tensor *const *const *out)
{
    Beside b = { r, n };
    int64_t units = 0, elements = 0;
    for (int i = 0; i < n; i++) {
        tape_begin(r[i], in[i], out[i]);
        units += units_of(r[i]);
        elements += elements_of(r[i]);
    }
    if (elements <= SMALL)
        run_beside(&b, 0, units, 0);
    else
        parallel(pool, units, run_beside, &b);
    for (int i = 0; i < n; i++)
        end_run(r[i]);
}
