/* Opens tapes: loops, how operands are read, and all memory of a run. */
#include "ops/card/reduction.h"
#include "ops/card/row.h"
#include "ops/fold/reduce_axes.h"
#include "runtime/cpu/tape_casts.h"
#include "runtime/cpu/tape_chains.h"
#include "runtime/cpu/tape_codes.h"
#include "runtime/cpu/tape_tables.h"

enum { ALIGNMENT = 64 };

static size_t padded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Takes so many bytes of the scratch; where they begin. */
static size_t take(TapeRunner *r, size_t bytes)
{
    const size_t at = r->scratch;
    r->scratch += padded(bytes);
    return at;
}

static size_t size_of(Arithmetic a)
{
    return a == ARITH_F32 ? sizeof(f32) : sizeof(f64);
}

/* Dimensions [from, to) of a type that lies at the right end of a space. */
static Type some_dims(const Type *t, int space_rank, int from, int to, int64_t *dims)
{
    for (int d = from; d < to; d++) {
        const int at = d - (space_rank - t->rank);
        dims[d - from] = at < 0 ? 1 : t->dims[at];
    }
    return (Type){ .kind = TYPE_TENSOR, .dtype = t->dtype, .rank = to - from, .dims = dims };
}

static void open_space(const Tape *t, const Type *type, bool by_row, Space *s, Arena *arena)
{
    const int from = by_row ? t->first : 0, to = by_row ? t->cut : t->space->rank;
    int64_t dims[MAX_RANK], space_dims[MAX_RANK];
    const Type operand = some_dims(type, t->space->rank, from, to, dims);
    const Type space = some_dims(t->space, t->space->rank, from, to, space_dims);
    const Type *operands[] = { &operand };
    space_open(s, &space, 1, operands, arena_alloc(arena, sizeof(int64_t[1][MAX_RANK])));
}

static void open_load(TapeRunner *r, TapeStepRun *s, Arena *arena)
{
    const Tape *t = r->tape;
    const Type *type = t->in[s->argument];
    const bool by_row = t->registers[s->out].per_row, native = dtype_is_native(type->dtype, s->arithmetic);
    const bool channels = tape_has_channels(t) && !by_row;
    if (channels)
        channels_space(t, type, &s->space, arena);
    else
        open_space(t, type, by_row, &s->space, arena);
    if (type_elements(type) == 1)
        s->feed = FEED_FIXED;
    else if (channels)
        s->feed = type_elements(type) == t->rows * t->length ? FEED_RUNS : FEED_GATHER;
    else if (space_is_dense(&s->space, 0))
        s->feed = !native ? FEED_DENSE : r->copied[s->argument] ? FEED_COPY : FEED_DIRECT;
    else if (!by_row && native && !r->copied[s->argument] && r->block == 1 && t->cut >= 0 &&
             type_elements(type) == t->length && t->rows > 1 && s->space.rank == 2 && s->space.strides[0][0] == 0 &&
             s->space.strides[0][1] == 1)
        s->feed = FEED_REPEAT;
    else if (!by_row && native && !r->copied[s->argument] && t->product != TAPE_NONE && s->space.rank == 2 &&
             s->space.strides[0][0] == 0 && s->space.strides[0][1] == 1)
        s->feed = FEED_ACROSS;
    else
        s->feed = FEED_GATHER;
    s->is_widened = s->feed == FEED_GATHER && !native;
    if (s->is_widened)
        s->wide_at = take(r, (size_t)type_elements(type) * s->size);
}

static void open_fold(TapeRunner *r, TapeStepRun *s)
{
    const bool all = s->word == TAPE_FOLD_ALL;
    const size_t cols = all ? 1 : (size_t)r->tape->length;
    s->n_parts = all ? (size_t)((r->n_things + r->block - 1) / r->block)
                     : (size_t)((r->tape->rows + REDUCE_ROWS - 1) / REDUCE_ROWS);
    s->parts_at = take(r, s->n_parts * cols * s->size);
    s->whole_at = take(r, cols * s->size);
    s->sums_at = r->sums_bytes;
    if (!all)
        r->sums_bytes += padded(REDUCE_SUMS * cols * s->size);
}

/* A row that is walked in pieces leaves the sums of its blocks. */
static void open_row_fold(TapeRunner *r, TapeStepRun *s)
{
    s->sums_at = r->sums_bytes;
    if (tape_has_pieces(r->tape))
        r->sums_bytes += padded(channels_parts(r->tape) * s->size);
}

/* The loop of a row: where one operand is the same number in every block, one that reads it once. */
static RowLoop *row_loop(const TapeRunner *r, const TapeStepRun *s, int row)
{
    for (int i = 0; i < FIXED_OPERANDS; i++)
        if (s->in[i] >= 0 && r->tape->registers[s->in[i]].lasts) {
            RowLoop *fixed = kernels_row_fixed(r->kernels, row, s->arithmetic, i);
            if (fixed)
                return fixed;
        }
    return kernels_row(r->kernels, row, s->arithmetic);
}

static void open_step(TapeRunner *r, const TapeStep *from, TapeStepRun *s, const OpTable *ops, Arena *arena)
{
    *s = (TapeStepRun){ .word = from->word,
                        .op = from->op,
                        .arithmetic = dtype_arithmetic(from->arithmetic),
                        .to = dtype_arithmetic(from->to),
                        .through = from->through,
                        .out = from->out,
                        .law = from->law,
                        .stream = from->stream,
                        .own = from->own,
                        .value = from->value };
    s->size = size_of(s->arithmetic);
    for (int i = 0; i < TAPE_OPERANDS; i++)
        s->in[i] = from->in[i];
    for (int i = 0; i < TAPE_SCALARS; i++)
        s->k[i] = from->k[i];
    switch (s->word) {
    case TAPE_LOAD:
        s->argument = from->in[0];
        open_load(r, s, arena);
        break;
    case TAPE_ROW:
        s->row = row_loop(r, s, ops->defs[from->op]->row->number);
        break;
    case TAPE_FOLD_ROW:
    case TAPE_FOLD_COLUMN:
    case TAPE_FOLD_ALL:
        s->loops = kernels_reduce(r->kernels, reduction_kind(from->op), s->arithmetic);
        if (s->word != TAPE_FOLD_ROW)
            open_fold(r, s);
        else
            open_row_fold(r, s);
        break;
    case TAPE_STORE:
        s->is_there = r->stays[s->out];
        break;
    default:
        break;
    }
}

/* ---- registers that need not be whole ---- */

enum { LEAST_RUN = 64 }; /* elements of a row that are worth a loop of their own */

/* How the register that a step makes could lie, if all who read it can read that. */
static TapeRows rows_of(const TapeRunner *r, const TapeStepRun *s)
{
    const Tape *t = r->tape;
    if (s->word == TAPE_SPREAD)
        return ROWS_NUMBER;
    if (s->word != TAPE_LOAD || s->feed != FEED_GATHER || s->is_widened || r->copied[s->argument] ||
        tape_has_channels(t) || t->registers[s->out].per_row || s->space.rank != 2)
        return ROWS_WHOLE;
    const int64_t n = type_elements(t->in[s->argument]), *strides = s->space.strides[0];
    if (n == t->rows && strides[0] == 1 && strides[1] == 0)
        return ROWS_NUMBER;
    return n == t->length && strides[0] == 0 && strides[1] == 1 ? ROWS_SAME : ROWS_WHOLE;
}

/* The operand of a row that is a number for each row; below 0: none. */
static int number_of(const TapeRunner *r, const TapeStepRun *s)
{
    for (int i = 0; i < TAPE_OPERANDS; i++)
        if (s->in[i] >= 0 && r->rows[s->in[i]] == ROWS_NUMBER)
            return i;
    return -1;
}

/* The loop of a row step that reads a register lying so; null: it has none. */
static RowLoop *loop_by_rows(const TapeRunner *r, const TapeStepRun *s, int row, int reg, TapeRows rows)
{
    const int number = number_of(r, s);
    int operand = -1, times = 0;
    for (int i = 0; i < TAPE_OPERANDS; i++)
        if (s->in[i] == reg) {
            operand = i;
            times++;
        }
    if (rows == ROWS_SAME)
        return s->row;
    return number >= 0 || times > 1 ? NULL : kernels_row_fixed(r->kernels, row, s->arithmetic, operand);
}

int tape_reads(const TapeStepRun *s, int reg)
{
    int n = 0;
    for (int k = 0; k < TAPE_OPERANDS && s->word != TAPE_LOAD && !s->chain; k++)
        n += s->in[k] == reg;
    for (int k = 0; k < CHAIN_STREAMS && s->chain; k++)
        n += s->chain->streams[k] == reg;
    for (int k = 0; k < CHAIN_NUMBERS && s->chain; k++)
        n += s->chain->numbers[k] == reg;
    return n;
}

int tape_maker(const TapeRunner *r, int reg, int before)
{
    for (int i = before - 1; i >= 0; i--)
        if (tape_makes(r->steps[i].word) && r->steps[i].out == reg)
            return i;
    return -1;
}

static int number_of_row(const TapeRunner *r, int step, const OpTable *ops)
{
    return ops->defs[r->tape->steps[step].op]->row->number;
}

/* Lets the register of a step lie in another way than whole, where its readers are rows that can read it. */
static void narrow(TapeRunner *r, int step, const OpTable *ops)
{
    TapeStepRun *s = &r->steps[step];
    const TapeRows rows = rows_of(r, s);
    if (rows == ROWS_WHOLE)
        return;
    for (int i = step + 1; i < r->n_steps; i++) {
        const TapeStepRun *reader = &r->steps[i];
        if (tape_reads(reader, s->out) &&
            (reader->word != TAPE_ROW || !loop_by_rows(r, reader, number_of_row(r, i, ops), s->out, rows)))
            return;
    }
    for (int i = step + 1; i < r->n_steps; i++) {
        TapeStepRun *reader = &r->steps[i];
        if (!tape_reads(reader, s->out))
            continue;
        reader->row = loop_by_rows(r, reader, number_of_row(r, i, ops), s->out, rows);
        reader->by_rows = true;
    }
    r->rows[s->out] = rows;
    if (s->word == TAPE_LOAD)
        s->feed = rows == ROWS_SAME ? FEED_REPEAT : FEED_ROWS;
}

/* Whether all who read a register are rows that hold it as one number. */
static bool is_held_by_all(const TapeRunner *r, int reg, const OpTable *ops)
{
    for (int i = 0; i < r->n_steps; i++) {
        const TapeStepRun *s = &r->steps[i];
        if (!tape_reads(s, reg))
            continue;
        RowLoop *loop = s->word == TAPE_ROW ? loop_by_rows(r, s, number_of_row(r, i, ops), reg, ROWS_NUMBER) : NULL;
        if (!loop || loop != s->row)
            return false;
    }
    return true;
}

static void narrow_registers(TapeRunner *r, const OpTable *ops, Arena *arena)
{
    const bool by_rows = r->tape->cut >= 0 && (r->tape->length >= LEAST_RUN || tape_has_pieces(r->tape));
    r->rows = NEWS(arena, TapeRows, r->tape->n_registers + 1);
    for (int i = 0; i < r->tape->n_registers; i++)
        r->rows[i] = r->tape->registers[i].lasts ? ROWS_SAME : ROWS_WHOLE;
    for (int i = 0; i < r->n_steps && by_rows; i++)
        narrow(r, i, ops);
    for (int i = 0; i < r->n_steps; i++) {
        TapeStepRun *s = &r->steps[i];
        const bool lasts = s->word == TAPE_FILL || (s->word == TAPE_LOAD && s->feed == FEED_FIXED);
        s->is_one = lasts && is_held_by_all(r, s->out, ops);
    }
}

/* ---- places ---- */

/* The last step that reads an argument. */
static int last_load(const Tape *t, int argument)
{
    for (int i = t->n_steps - 1; i >= 0; i--)
        if (t->steps[i].word == TAPE_LOAD && t->steps[i].in[0] == argument)
            return i;
    return -1;
}

/* The step that makes a register. */
static int made_at(const Tape *t, int reg)
{
    for (int i = 0; i < t->n_steps; i++) {
        if (tape_makes(t->steps[i].word) && t->steps[i].out == reg)
            return i;
    }
    return -1;
}

/* What may lie under a result is read by then. */
static bool is_read_before(const TapeRunner *r, int step)
{
    for (int i = 0; i < r->tape->n_in; i++)
        if (r->copied[i] && last_load(r->tape, i) > step)
            return false;
    return true;
}

/* A register that leaves as it is is made where it goes to. */
static void find_homes(TapeRunner *r, Arena *arena)
{
    const Tape *t = r->tape;
    r->home = NEWS(arena, int, t->n_registers + 1);
    r->arithmetic = NEWS(arena, Arithmetic, t->n_registers + 1);
    for (int i = 0; i < t->n_registers; i++) {
        r->home[i] = -1;
        r->arithmetic[i] = dtype_arithmetic(t->registers[i].arithmetic);
    }
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (s->word == TAPE_STORE && r->home[s->in[0]] < 0 && !t->registers[s->in[0]].lasts &&
            !r->is_looked_up[s->in[0]] && dtype_is_native(t->out[s->out]->dtype, r->arithmetic[s->in[0]]) &&
            is_read_before(r, made_at(t, s->in[0])))
            r->home[s->in[0]] = s->out;
    }
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_LOAD || (t->steps[i].word == TAPE_SPREAD && tape_has_pieces(t)))
            r->home[t->steps[i].out] = -1; /* it may lie where it came from, or is one piece for all */
}

static void open_rooms(TapeRunner *r, int workers, Arena *arena)
{
    const Tape *t = r->tape;
    size_t *bytes = NEWS(arena, size_t, t->n_rooms + 1), *begin = NEWS(arena, size_t, t->n_rooms + 1);
    r->room_at = NEWS(arena, size_t, t->n_registers + 1);
    for (int i = 0; i < t->n_registers; i++) {
        const TapeRegister *reg = &t->registers[i];
        const int64_t n = reg->per_row && !reg->lasts ? tape_block_rows(t) : r->block_elements;
        const size_t need = padded((size_t)n * size_of(r->arithmetic[i]));
        if (need > bytes[reg->room])
            bytes[reg->room] = need;
    }
    for (int i = 0; i < t->n_rooms; i++) {
        begin[i] = r->room_bytes;
        r->room_bytes += bytes[i];
    }
    for (int i = 0; i < t->n_registers; i++) {
        const bool apart = r->is_looked_up[i] || r->is_apart[i];
        r->room_at[i] = apart ? r->room_bytes : begin[t->registers[i].room];
        r->room_bytes += apart ? padded((size_t)r->block_elements * sizeof(f32)) : 0;
    }
    r->narrow_bytes = padded((size_t)r->block_elements * sizeof(f64));
    r->narrow_at = r->room_bytes;
    r->sums_at = r->narrow_at + r->narrow_bytes;
    r->worker_scratch = padded(r->sums_at + r->sums_bytes);
    r->at = NEWS(arena, const void *, workers * t->n_registers + 1);
}

static bool folds_columns(const Tape *t)
{
    for (int i = 0; i < t->n_steps; i++)
        if (t->steps[i].word == TAPE_FOLD_COLUMN)
            return true;
    return false;
}

static int last_reader(const Tape *t, int reg)
{
    int last = -1;
    for (int i = 0; i < t->n_steps; i++)
        for (int k = 0; k < TAPE_OPERANDS && t->steps[i].word != TAPE_LOAD; k++)
            last = t->steps[i].in[k] == reg ? i : last;
    return last;
}

/* Whether an argument, read where it lies, is read for the last time before the result over it is written, or by the row that
 * writes it, element by element. */
static bool is_read_in_place(const Tape *t, int argument, int result)
{
    int made = 0;
    for (int i = 0; i < t->n_steps; i++)
        made = t->steps[i].word == TAPE_STORE && t->steps[i].out == result ? made_at(t, t->steps[i].in[0]) : made;
    for (int i = 0; i < t->n_steps; i++) {
        if (t->steps[i].word != TAPE_LOAD || t->steps[i].in[0] != argument)
            continue;
        const int last = last_reader(t, t->steps[i].out);
        if (last > made || (last == made && t->steps[made].word != TAPE_ROW))
            return false;
    }
    return !tape_has_channels(t) || tape_has_pieces(t);
}

/* Which arguments are copied, block by block, as they are read. */
static bool *find_copied(const Tape *t, const int *over, Arena *arena)
{
    bool *copied = NEWS(arena, bool, t->n_in + 1);
    for (int i = 0; over && i < t->n_out; i++)
        if (over[i] >= 0)
            copied[over[i]] = copied[over[i]] || !is_read_in_place(t, over[i], i);
    return copied;
}

/* The step that makes a product known; a result that is nothing else lies there already. */
static bool *find_staying(const Tape *t, const int *over, Arena *arena)
{
    bool *stays = NEWS(arena, bool, t->n_out + 1);
    for (int i = 0; i < t->n_steps && t->product != TAPE_NONE && over; i++) {
        const TapeStep *s = &t->steps[i], *from = s->word == TAPE_STORE ? &t->steps[made_at(t, s->in[0])] : NULL;
        if (from && from->word == TAPE_LOAD && from->in[0] == t->product && over[s->out] == t->product)
            stays[s->out] = t->in[t->product] == t->out[s->out];
    }
    return stays;
}

TapeRunner *tape_runner(const Tape *t, const OpTable *ops, const Kernels *kernels, int workers, const int *over,
                        Arena *arena)
{
    TapeRunner *r = NEW(arena, TapeRunner);
    *r = (TapeRunner){ .tape = t,
                       .kernels = kernels,
                       .n_steps = t->n_steps,
                       .copied = find_copied(t, over, arena),
                       .stays = find_staying(t, over, arena) };
    r->block_elements = tape_block_elements(t);
    r->block = t->cut < 0 ? r->block_elements : tape_block_rows(t);
    r->n_things = t->cut < 0 ? t->length : t->rows;
    r->unit = folds_columns(t) ? REDUCE_ROWS / r->block : 1;
    r->steps = NEWS(arena, TapeStepRun, t->n_steps + 1);
    for (int i = 0; i < t->n_steps; i++)
        open_step(r, &t->steps[i], &r->steps[i], ops, arena);
    narrow_registers(r, ops, arena);
    r->channels = tape_has_channels(t) ? channels_open(r, arena) : NULL;
    r->is_apart = NEWS(arena, bool, t->n_registers + 1);
    tape_tables(r, ops, arena);
    tape_casts(r);
    tape_codes(r);
    tape_chains(r, over, arena);
    find_homes(r, arena);
    open_rooms(r, workers, arena);
    return r;
}

size_t tape_scratch(const TapeRunner *r)
{
    return r->scratch;
}

size_t tape_worker_scratch(const TapeRunner *r)
{
    return r->worker_scratch;
}

void tape_seed(TapeRunner *r, uint64_t seed, uint64_t step, uint32_t turn)
{
    r->seed = seed;
    r->step = step;
    r->turn = turn;
}

void tape_place(TapeRunner *r, void *scratch, void *workers, size_t apart)
{
    r->memory = scratch;
    r->workers = workers;
    r->apart = apart;
}
