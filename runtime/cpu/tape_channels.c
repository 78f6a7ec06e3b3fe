/* Rows that are channels: their elements lie in runs, and are reduced in the order of a column (ir/tape.h).
 *
 * Short rows are blocks, whole, and steps run over them one after the other.  A long row is walked in pieces: in walk p
 * for the reductions that p others come before, so that in the last walk everything is known that elements read.
 * What an element needs is made again in each walk, from arguments that the cache still holds. */
#include <string.h>

#include "ops/card/reduction.h"
#include "runtime/cpu/tape_streams.h"

enum { LEAST_RUN = 256 }; /* elements that are worth a piece of their own */

/* ---- where elements are ---- */

/* The space of channels is that of the tape with its channels outermost. */
void channels_space(const Tape *t, const Type *operand, Space *s, Arena *arena)
{
    const int rank = t->space->rank, more = rank - operand->rank;
    int64_t step = 1, strides[MAX_RANK] = { 0 };
    for (int d = rank - 1; d >= more; d--) {
        strides[d] = operand->dims[d - more] == 1 ? 0 : step;
        step *= operand->dims[d - more];
    }
    *s = (Space){ .n = 1, .total = t->rows * t->length, .strides = arena_alloc(arena, sizeof(int64_t[1][MAX_RANK])) };
    for (int part = 0; part < 3; part++) {
        const int from = (const int[]){ t->first, 0, t->cut }[part], to = (const int[]){ t->cut, t->first, rank }[part];
        for (int d = from; d < to; d++) {
            const int64_t n = t->space->dims[d];
            if (n == 1)
                continue;
            const bool merges = s->rank > 0 && s->strides[0][s->rank - 1] == strides[d] * n;
            const int at = merges ? s->rank - 1 : s->rank++;
            s->dims[at] = merges ? s->dims[at] * n : n;
            s->strides[0][at] = strides[d];
        }
    }
}

size_t channels_parts(const Tape *t)
{
    return (size_t)((t->length + REDUCE_ROWS - 1) / REDUCE_ROWS);
}

/* Where element i of a row lies in what has all elements. */
static int64_t place_of(const TapeRunner *r, int64_t row, int64_t i)
{
    const Channels *c = r->channels;
    return (i / c->run * r->tape->rows + row) * c->run + i % c->run;
}

/* ---- steps ---- */

/* What lies side by side of one row of a block: from element `at` of the whole on, n of them; behind it `left` more,
 * the next of them `next` elements on. */
typedef struct Stretch {
    int64_t at, n, left, next;
} Stretch;

static Stretch first_stretch(const TapeRunner *r, const Block *b, int64_t row)
{
    const Channels *c = r->channels;
    const int64_t in_run = b->in % c->run, whole = b->n / b->rows;
    const int64_t n = c->run - in_run < whole ? c->run - in_run : whole;
    return (Stretch){ place_of(r, row, b->in), n, whole - n, r->tape->rows * c->run - in_run };
}

static void next_stretch(const TapeRunner *r, Stretch *k)
{
    const Channels *c = r->channels;
    k->at += k->next;
    k->next = r->tape->rows * c->run;
    k->n = k->left < c->run ? k->left : c->run;
    k->left -= k->n;
}

/* Copies elements of which there may be few: sixteen bytes at a time, the last of them again. */
static void copy(void *to, const void *from, size_t bytes)
{
    enum { LEAST = 4, AT_ONCE = 16, MANY = 512 };
    char *t = to;
    const char *f = from;
    if (bytes > MANY) {
        memcpy(to, from, bytes);
        return;
    }
    if (bytes < AT_ONCE) {
        for (size_t k = 0; k < bytes; k += LEAST)
            memcpy(t + k, f + k, LEAST);
        return;
    }
    for (size_t k = 0; k + AT_ONCE < bytes; k += AT_ONCE)
        memcpy(t + k, f + k, AT_ONCE);
    memcpy(t + bytes - AT_ONCE, f + bytes - AT_ONCE, AT_ONCE);
}

const void *channels_load(const TapeRunner *r, const TapeStepRun *s, const Block *b, void *room)
{
    const bool native = dtype_is_native(s->from->type->dtype, s->arithmetic);
    const char *from = s->from->data;
    if (s->feed == FEED_GATHER) {
        space_gather(&s->space, 0, s->is_widened ? r->memory + s->wide_at : s->from->data, s->size,
                     b->row * r->tape->length + b->in, b->n, room);
        return room;
    }
    const bool stays = !r->copied[s->argument] || !b->leaves; /* results are written in the last walk alone */
    if (b->is_dense && stays && native)
        return from + (size_t)b->at * s->size;
    char *to = room;
    for (int64_t row = b->row; row < b->row + b->rows; row++)
        for (Stretch k = first_stretch(r, b, row); k.n; to += (size_t)k.n * s->size, next_stretch(r, &k)) {
            if (native)
                copy(to, from + (size_t)k.at * s->size, (size_t)k.n * s->size);
            else
                kernels_load(r->kernels, s->arithmetic, to, s->from, k.at, k.n);
        }
    return room;
}

void channels_store(const TapeRunner *r, const TapeStepRun *s, const Block *b, const void *from)
{
    Tensor *out = r->out[s->out];
    const bool native = dtype_is_native(out->type->dtype, s->arithmetic);
    const char *f = from;
    for (int64_t row = b->row; row < b->row + b->rows; row++)
        for (Stretch k = first_stretch(r, b, row); k.n; f += (size_t)k.n * s->size, next_stretch(r, &k)) {
            if (native)
                copy((char *)out->data + (size_t)k.at * s->size, f, (size_t)k.n * s->size);
            else
                kernels_store(r->kernels, s->arithmetic, out, k.at, f, k.n);
        }
}

/* The sums of blocks that a worker keeps of the row under way. */
static char *parts_of(const TapeRunner *r, const TapeStepRun *s, int worker)
{
    return r->workers + (size_t)worker * r->apart + r->sums_at + s->sums_at;
}

void channels_fold(const TapeRunner *r, const TapeStepRun *s, int worker, const Block *b, const void *x, void *to)
{
    const size_t length = (size_t)r->tape->length;
    const ptrdiff_t begin = 0;
    if (r->channels->n_phases) {
        s->loops->lines((size_t)b->n, x, parts_of(r, s, worker) + (size_t)(b->in / REDUCE_ROWS) * s->size);
        return;
    }
    for (size_t k = 0; k < (size_t)b->rows; k++)
        s->loops->runs(&(ReduceRuns){ 1, length, 1, &begin }, 1, (const char *)x + k * length * s->size,
                       (char *)to + k * s->size);
}

/* ---- a row in pieces ---- */

/* The pieces of a row, in a walk. */
static int64_t pieces_of_run(const Channels *c, int phase)
{
    return (c->run + c->piece[phase] - 1) / c->piece[phase];
}

static int64_t pieces_of(const TapeRunner *r, int phase)
{
    const Channels *c = r->channels;
    return c->ends[phase] ? r->tape->length / c->run * pieces_of_run(c, phase)
                          : (r->tape->length + c->piece[phase] - 1) / c->piece[phase];
}

static Block piece_at(const TapeRunner *r, int phase, int64_t row, int64_t k)
{
    const Channels *c = r->channels;
    const int64_t run = c->ends[phase] ? pieces_of_run(c, phase) : 1;
    const int64_t in = c->ends[phase] ? k / run * c->run + k % run * c->piece[phase] : k * c->piece[phase];
    const int64_t left = c->ends[phase] ? c->run - in % c->run : r->tape->length - in;
    const int64_t n = left < c->piece[phase] ? left : c->piece[phase];
    const bool beside = in % c->run + n <= c->run;
    return (Block){ row, 1, in, place_of(r, row, in), n, beside, beside && phase == c->last_walk };
}

/* Every other walk goes backwards: what the one before it read last is still in the nearest cache. */
static void walk(const TapeRunner *r, int phase, int64_t row, int worker, const void **at)
{
    const bool *steps = r->channels->walk[phase];
    const int64_t pieces = pieces_of(r, phase), first = phase % 2 ? pieces - 1 : 0, next = phase % 2 ? -1 : 1;
    TapeStream streams[TAPE_STREAMS];
    const int n_streams = tape_walk_streams(r, steps, streams), n_steps = r->channels->n_walk[phase];
    Block b = piece_at(r, phase, row, first);
    for (int64_t k = 0; k < pieces; k++) {
        const Block ahead = k + 1 < pieces ? piece_at(r, phase, row, first + (k + 1) * next) : (Block){ 0 };
        for (int i = 0, done = 0; i < r->n_steps; i++) {
            if (!steps[i])
                continue;
            tape_ask(streams, n_streams, ahead.at, ahead.n, done++, n_steps);
            tape_step_run(r, &r->steps[i], worker, &b, at);
        }
        b = ahead;
    }
}

static void run_phases(const TapeRunner *r, int64_t row, int worker, const void **at)
{
    const Channels *c = r->channels;
    const Block whole = { .row = row, .rows = 1, .n = r->block_elements };
    for (int phase = 0; phase < c->n_phases; phase++) {
        for (int i = 0; i < r->n_steps; i++)
            if (c->once[i] == phase)
                tape_step_run(r, &r->steps[i], worker, &whole, at);
        if (phase <= c->last_walk)
            walk(r, phase, row, worker, at);
        for (int i = 0; i < r->n_steps; i++) {
            const TapeStepRun *s = &r->steps[i];
            if (c->folded[i] != phase)
                continue;
            void *to = tape_register_place(r, worker, s->out, &whole);
            s->loops->join(channels_parts(r->tape), 1, parts_of(r, s, worker), to);
            at[s->out] = to;
        }
    }
}

/* Whole rows; while steps run over these, those behind them are asked for, a few runs with each step. */
static void run_whole(const TapeRunner *r, const Block *b, int worker, const void **at)
{
    const int64_t run = r->channels->run, runs = r->tape->length / run, next = b->row + b->rows;
    const int64_t left = r->n_things - next, rows = left < r->block ? left : r->block;
    TapeStream streams[TAPE_STREAMS];
    const int n_streams = rows > 0 ? tape_walk_streams(r, NULL, streams) : 0;
    for (int i = 0; i < r->n_steps; i++) {
        for (int64_t k = runs * i / r->n_steps; k < runs * (i + 1) / r->n_steps && n_streams; k++)
            tape_ask(streams, n_streams, place_of(r, next, k * run), rows * run, 0, 1);
        tape_step_run(r, &r->steps[i], worker, b, at);
    }
}

void channels_run(const TapeRunner *r, int64_t row, int64_t rows, int worker, const void **at)
{
    const Block b = { .row = row, .rows = rows, .n = rows * r->tape->length };
    if (r->channels->n_phases)
        run_phases(r, row, worker, at);
    else
        run_whole(r, &b, worker, at);
}

/* ---- opening ---- */

static bool leaves_by_element(const Tape *t, const TapeStep *s)
{
    return s->word == TAPE_STORE && !t->registers[s->in[0]].per_row;
}

/* Whether a step is made before the first row: constants. */
static bool is_fixed(const TapeStepRun *s)
{
    return s->word == TAPE_FILL || (s->word == TAPE_LOAD && s->feed == FEED_FIXED);
}

/* When what is known of a whole row is made, and its reductions are done. */
static void place_row_steps(const TapeRunner *r, Channels *c, const int *phase)
{
    const Tape *t = r->tape;
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        c->once[i] = c->folded[i] = -1;
        if (is_fixed(&r->steps[i]) || leaves_by_element(t, s))
            continue;
        if (s->word == TAPE_FOLD_ROW)
            c->folded[i] = phase[s->in[0]];
        else if (s->word == TAPE_STORE)
            c->once[i] = phase[s->in[0]];
        else if (t->registers[s->out].per_row || s->word == TAPE_SPREAD)
            c->once[i] = phase[s->out];
        const int last = c->folded[i] > c->once[i] ? c->folded[i] : c->once[i];
        c->n_phases = last >= c->n_phases ? last + 1 : c->n_phases;
    }
}

/* The steps of one walk: what its reductions and, in the last one, its results need. */
static void plan_walk(const TapeRunner *r, Channels *c, int phase, bool *needed)
{
    const Tape *t = r->tape;
    bool *steps = c->walk[phase];
    for (int i = t->n_steps - 1; i >= 0; i--) {
        const TapeStep *s = &t->steps[i];
        const bool leaves = leaves_by_element(t, s);
        const bool ends = leaves ? phase == c->last_walk : c->folded[i] == phase;
        const bool made = !leaves && s->word != TAPE_FOLD_ROW && s->word != TAPE_STORE && needed[s->out];
        steps[i] = ends || (made && c->once[i] < 0 && !is_fixed(&r->steps[i]));
        for (int k = 0; k < TAPE_OPERANDS && steps[i] && s->word != TAPE_LOAD; k++)
            if (s->in[k] != TAPE_NONE)
                needed[s->in[k]] = true;
        c->n_walk[phase] += steps[i];
    }
}

/* A piece is part of a run where runs are long, and where no sum would begin within a block. */
static void cut_pieces(const TapeRunner *r, Channels *c, int phase)
{
    bool folds = false;
    for (int i = 0; i < r->n_steps; i++)
        folds = folds || c->folded[i] == phase;
    c->ends[phase] = c->run >= LEAST_RUN && (!folds || c->run % REDUCE_ROWS == 0);
    c->piece[phase] = r->block_elements;
    if (!c->ends[phase])
        return;
    const int64_t pieces = (c->run + r->block_elements - 1) / r->block_elements, n = (c->run + pieces - 1) / pieces;
    c->piece[phase] = (n + REDUCE_ROWS - 1) / REDUCE_ROWS * REDUCE_ROWS;
}

Channels *channels_open(const TapeRunner *r, Arena *arena)
{
    const Tape *t = r->tape;
    Channels *c = NEW(arena, Channels);
    int *phase = NEWS(arena, int, t->n_registers + 1);
    *c = (Channels){ .run = tape_run_elements(t),
                     .once = NEWS(arena, int, t->n_steps + 1),
                     .folded = NEWS(arena, int, t->n_steps + 1) };
    if (!tape_has_pieces(t))
        return c;
    tape_phases(t, phase);
    place_row_steps(r, c, phase);
    for (int i = 0; i < t->n_steps; i++) {
        const int at = leaves_by_element(t, &t->steps[i]) ? phase[t->steps[i].in[0]] : c->folded[i];
        c->last_walk = at > c->last_walk ? at : c->last_walk;
    }
    c->n_phases = c->last_walk >= c->n_phases ? c->last_walk + 1 : c->n_phases;
    c->walk = NEWS(arena, bool *, c->n_phases + 1);
    c->piece = NEWS(arena, int64_t, c->n_phases + 1);
    c->ends = NEWS(arena, bool, c->n_phases + 1);
    c->n_walk = NEWS(arena, int, c->n_phases + 1);
    for (int p = 0; p < c->n_phases; p++) {
        c->walk[p] = NEWS(arena, bool, t->n_steps + 1);
        plan_walk(r, c, p, NEWS(arena, bool, t->n_registers + 1));
        cut_pieces(r, c, p);
    }
    return c;
}
