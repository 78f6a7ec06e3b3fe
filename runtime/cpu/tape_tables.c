#include "runtime/cpu/tape_tables.h"

#include <string.h>

#include "ops/card/row.h"

enum {
    CODES = 1 << 16,
    CHUNK = 1 << 10,   /* of which so many are made at a time */
    WORTH = 4 * CODES, /* elements of a region: making a table takes as long as making as many elements */
    CONSTANT = -1,
    OTHER = -2 /* instead of a register that another one is made of */
};

void tape_look_up(const f32 *table, int64_t n, const f32 *x, f32 *to)
{
    for (int64_t i = 0; i < n; i++) {
        u32 bits;
        memcpy(&bits, x + i, sizeof bits);
        to[i] = table[bits >> 16];
    }
}

/* What is known of registers. */
typedef struct Tables {
    TapeRunner *r;
    const OpTable *ops;
    int *key;     /* the register of 16 bits that all of it is made of; CONSTANT, OTHER */
    bool *costly; /* more than looking it up */
    int *made_by; /* the step */
    bool *found;  /* it is looked up */
} Tables;

static bool is_whole(const TapeRunner *r, int reg)
{
    const TapeRegister *t = &r->tape->registers[reg];
    return !t->per_row && !t->lasts && r->rows[reg] == ROWS_WHOLE;
}

/* Whether a step leaves values in bf16, as f32. */
static bool leaves_bf16(const TapeRunner *r, const TapeStepRun *s)
{
    if (s->word == TAPE_LOAD)
        return s->feed == FEED_DENSE && s->arithmetic == ARITH_F32 && r->tape->in[s->argument]->dtype == BF16 &&
               is_whole(r, s->out);
    return s->word == TAPE_ROUND && s->through == BF16 && s->to == ARITH_F32 && is_whole(r, s->out);
}

/* The one value that a row is made of. */
static int key_of(const Tables *t, const TapeStepRun *s)
{
    int key = CONSTANT;
    for (int i = 0; i < TAPE_OPERANDS; i++) {
        const int of = s->in[i] < 0 ? CONSTANT : t->key[s->in[i]];
        if (of == CONSTANT || of == key)
            continue;
        if (of == OTHER || key != CONSTANT)
            return OTHER;
        key = of;
    }
    return key;
}

static void look_at(Tables *t, int step)
{
    const TapeRunner *r = t->r;
    const TapeStepRun *s = &r->steps[step];
    if (!tape_makes(s->word))
        return;
    t->key[s->out] = OTHER;
    t->made_by[s->out] = step;
    if (s->word == TAPE_FILL)
        t->key[s->out] = CONSTANT;
    else if (leaves_bf16(r, s))
        t->key[s->out] = s->out;
    else if (s->word == TAPE_ROW && s->arithmetic == ARITH_F32 && !s->by_rows && is_whole(r, s->out))
        t->key[s->out] = key_of(t, s);
    if (t->key[s->out] < 0 || s->word != TAPE_ROW)
        return;
    t->costly[s->out] = row_is_costly(t->ops->defs[r->tape->steps[step].op]->row);
    for (int i = 0; i < TAPE_OPERANDS; i++)
        t->costly[s->out] = t->costly[s->out] || (s->in[i] >= 0 && t->costly[s->in[i]]);
}

/* Whether somebody reads it who makes something of another value too. */
static bool is_last(const Tables *t, int reg)
{
    for (int i = 0; i < t->r->n_steps; i++) {
        const TapeStepRun *s = &t->r->steps[i];
        for (int k = 0; k < TAPE_OPERANDS && s->word != TAPE_LOAD; k++)
            if (s->in[k] == reg && (s->word != TAPE_ROW || t->key[s->out] < 0))
                return true;
    }
    return false;
}

/* ---- making them ---- */

static void fill_chunk(const TapeRunner *r, const TapeStepRun *s, f32 *to)
{
    f32 v = (f32)s->k[0];
    if (s->value)
        kernels_load(r->kernels, ARITH_F32, &v, s->value, 0, 1);
    for (int i = 0; i < CHUNK; i++)
        to[i] = v;
}

/* Marks the steps that a register is made of, but for the value itself. */
static void mark_steps(const Tables *t, int reg, bool *wanted)
{
    wanted[t->made_by[reg]] = true;
    for (int i = t->made_by[reg]; i >= 0; i--) {
        const TapeStepRun *s = &t->r->steps[i];
        for (int k = 0; k < TAPE_OPERANDS && wanted[i] && s->word == TAPE_ROW; k++)
            if (s->in[k] >= 0 && s->in[k] != t->key[reg])
                wanted[t->made_by[s->in[k]]] = true;
    }
}

static const f32 *make_table(const Tables *t, int reg, Arena *arena)
{
    const TapeRunner *r = t->r;
    f32 *table = NEWS(arena, f32, CODES);
    const ArenaMark mark = arena_mark(arena);
    bool *wanted = NEWS(arena, bool, r->n_steps);
    f32 **at = NEWS(arena, f32 *, r->tape->n_registers);
    mark_steps(t, reg, wanted);
    u16 *codes = NEWS(arena, u16, CHUNK);
    int64_t n = CHUNK;
    const Type type = { .kind = TYPE_TENSOR, .dtype = BF16, .rank = 1, .dims = &n };
    const Tensor keys = { .type = &type, .data = codes };
    at[t->key[reg]] = NEWS(arena, f32, CHUNK);
    for (int i = 0; i < r->n_steps; i++)
        if (wanted[i]) {
            at[r->steps[i].out] = NEWS(arena, f32, CHUNK);
            if (r->steps[i].word == TAPE_FILL)
                fill_chunk(r, &r->steps[i], at[r->steps[i].out]);
        }
    for (int first = 0; first < CODES; first += CHUNK) {
        for (int i = 0; i < CHUNK; i++)
            codes[i] = (u16)(first + i);
        kernels_load(r->kernels, ARITH_F32, at[t->key[reg]], &keys, 0, CHUNK);
        for (int i = 0; i < r->n_steps; i++) {
            const TapeStepRun *s = &r->steps[i];
            if (wanted[i] && s->word == TAPE_ROW)
                s->row(CHUNK, at[s->out], s->in[0] < 0 ? NULL : at[s->in[0]], s->in[1] < 0 ? NULL : at[s->in[1]],
                       s->in[2] < 0 ? NULL : at[s->in[2]], s->k);
        }
        memcpy(table + first, at[reg], CHUNK * sizeof *table);
    }
    arena_reset(arena, mark);
    return table;
}

/* ---- the steps that are left ---- */

static bool *find_needed(const Tables *t, Arena *arena)
{
    const TapeRunner *r = t->r;
    bool *needed = NEWS(arena, bool, r->n_steps), *read = NEWS(arena, bool, r->tape->n_registers);
    for (int i = r->n_steps - 1; i >= 0; i--) {
        const TapeStepRun *s = &r->steps[i];
        const bool may_go = s->word == TAPE_ROW || s->word == TAPE_FILL;
        needed[i] = !may_go || read[s->out];
        const bool found = s->word == TAPE_ROW && t->found[s->out];
        if (needed[i] && found)
            read[t->key[s->out]] = true;
        for (int k = 0; k < TAPE_OPERANDS && needed[i] && !found && s->word != TAPE_LOAD; k++)
            if (s->in[k] >= 0)
                read[s->in[k]] = true;
    }
    return needed;
}

/* What is looked up is so right behind the value: later its room may hold something else. */
static void replace_steps(const Tables *t, Arena *arena)
{
    TapeRunner *r = t->r;
    const bool *needed = find_needed(t, arena);
    TapeStepRun *steps = NEWS(arena, TapeStepRun, r->n_steps);
    int n = 0;
    for (int i = 0; i < r->n_steps; i++) {
        const TapeStepRun *s = &r->steps[i];
        if (!needed[i] || (s->word == TAPE_ROW && t->found[s->out]))
            continue;
        steps[n++] = *s;
        if (!leaves_bf16(r, s))
            continue;
        for (int k = i + 1; k < r->n_steps; k++) {
            TapeStepRun table = r->steps[k];
            if (table.word != TAPE_ROW || !t->found[table.out] || t->key[table.out] != s->out || !needed[k])
                continue;
            table.table = make_table(t, table.out, arena);
            table.in[0] = s->out;
            table.in[1] = table.in[2] = TAPE_NONE;
            r->is_looked_up[table.out] = true;
            steps[n++] = table;
        }
    }
    r->steps = steps;
    r->n_steps = n;
}

void tape_tables(TapeRunner *r, const OpTable *ops, Arena *arena)
{
    const int n = r->tape->n_registers;
    r->is_looked_up = NEWS(arena, bool, n + 1);
    if (tape_has_channels(r->tape) || r->tape->rows * r->tape->length < WORTH)
        return;
    Tables t = { .r = r,
                 .ops = ops,
                 .key = NEWS(arena, int, n + 1),
                 .costly = NEWS(arena, bool, n + 1),
                 .made_by = NEWS(arena, int, n + 1),
                 .found = NEWS(arena, bool, n + 1) };
    bool any = false;
    for (int i = 0; i < r->n_steps; i++)
        look_at(&t, i);
    for (int reg = 0; reg < n; reg++) {
        t.found[reg] = t.key[reg] >= 0 && t.costly[reg] && is_last(&t, reg);
        any = any || t.found[reg];
    }
    if (any)
        replace_steps(&t, arena);
}
