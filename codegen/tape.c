#include "codegen/tape.h"

#include "ops/card/cards.h"
#include "ops/card/reduction.h"
#include "ops/card/row.h"
#include "ops/random/draw_call.h"
#include "ops/region/schedule.h"

/* The registers that hold a value: in each arithmetic, for each element and for each row; 0: none yet, else number + 1. */
typedef struct Held {
    int in[ARITHMETICS][2];
    const Node *hit; /* what names the element of each row that is marked: made where it is wanted, as it is wanted */
    Arithmetic left; /* that its call left it in: the others are converted from there */
} Held;

enum { BY_ELEMENT, BY_ROW };

typedef struct Maker {
    Arena *arena;
    const Graph *body;
    Region region;
    Tape *tape;
    Facts held;
    size_t cap_steps, cap_registers;
} Maker;

static const DType number_of[] = { [ARITH_F32] = F32, [ARITH_F64] = F64, [ARITH_I64] = I64, [ARITH_U64] = U64 };

/* ---- steps and registers ---- */

static TapeStep *add_step(Maker *m, TapeWord word)
{
    size_t n = (size_t)m->tape->n_steps;
    GROW(m->arena, m->tape->steps, n, m->cap_steps);
    TapeStep *s = &m->tape->steps[m->tape->n_steps++];
    *s = (TapeStep){ .word = word, .in = { TAPE_NONE, TAPE_NONE, TAPE_NONE } };
    return s;
}

static int add_register(Maker *m, Arithmetic a, int by, bool lasts)
{
    size_t n = (size_t)m->tape->n_registers;
    GROW(m->arena, m->tape->registers, n, m->cap_registers);
    m->tape->registers[n] = (TapeRegister){ .arithmetic = number_of[a], .per_row = by == BY_ROW, .lasts = lasts };
    return m->tape->n_registers++;
}

/* ---- values ---- */

/* A product is an argument behind all others. */
static int input_number(const Maker *m, const Node *n)
{
    int i = 0;
    while (i < (int)m->body->n_inputs && m->body->inputs[i] != n)
        i++;
    return i;
}

/* Whether a value is there before the tape runs. */
static bool is_argument(const Maker *m, const Node *n)
{
    return n->op == OP_input || n == m->region.contraction;
}

static int load(Maker *m, const Node *n, Arithmetic a, int by)
{
    const int out = add_register(m, a, by, type_elements(n->type) == 1);
    TapeStep *s = add_step(m, TAPE_LOAD);
    s->arithmetic = number_of[a];
    s->in[0] = input_number(m, n);
    s->out = out;
    return out;
}

static int fill(Maker *m, double k, const Tensor *value, Arithmetic a)
{
    const int out = add_register(m, a, BY_ELEMENT, true);
    TapeStep *s = add_step(m, TAPE_FILL);
    s->arithmetic = number_of[a];
    s->value = value;
    s->k[0] = k;
    s->out = out;
    return out;
}

static int convert(Maker *m, int from, Arithmetic a, Arithmetic to, DType through, int by)
{
    const int out = add_register(m, to, by, false);
    TapeStep *s = add_step(m, TAPE_ROUND);
    s->arithmetic = number_of[a];
    s->to = number_of[to];
    s->through = through;
    s->in[0] = from;
    s->out = out;
    return out;
}

/* What has an element for each element, of a register that has one for each row: its value, or a mark where it points. */
static int for_each_element(Maker *m, TapeWord word, int from, Arithmetic a)
{
    const int out = add_register(m, a, BY_ELEMENT, false);
    TapeStep *s = add_step(m, word);
    s->arithmetic = number_of[a];
    s->in[0] = from;
    s->out = out;
    return out;
}

/* How what a call computes is laid out. */
static int layout_of(const Maker *m, const Node *n)
{
    return region_extent(&m->region, n->type) == EXTENT_ELEMENT ? BY_ELEMENT : BY_ROW;
}

/* Whether a value has one element for each channel. */
static bool is_of_channel(const Maker *m, const Node *n)
{
    return region_has_channels(&m->region) && region_extent(&m->region, n->type) == EXTENT_ROW;
}

/* A register with a value in an arithmetic, for each element or for each row. */
static int want(Maker *m, const Node *n, Arithmetic a, int by)
{
    Held *h = fact(&m->held, n);
    if (h->in[a][by])
        return h->in[a][by] - 1;
    int reg;
    if (h->hit) {
        reg = for_each_element(m, TAPE_HIT, want(m, h->hit, ARITH_I64, BY_ROW), a);
    } else if (n->op == OP_const) {
        reg = fill(m, tensor_get_f64(node_constant(n, 0), 0), node_constant(n, 0), a);
    } else if (is_argument(m, n) && !(by == BY_ELEMENT && is_of_channel(m, n))) {
        reg = load(m, n, a, by);
    } else if (by == BY_ELEMENT && layout_of(m, n) == BY_ROW) {
        reg = for_each_element(m, TAPE_SPREAD, want(m, n, a, BY_ROW), a);
    } else {
        reg = convert(m, h->in[h->left][by] - 1, h->left, a, n->type->dtype, by);
    }
    h->in[a][by] = reg + 1;
    return reg;
}

/* Integers that f32 holds, as codes are. */
static bool is_short(DType d)
{
    return dtype_is_integer(d) && dtype_bits(d) <= 16;
}

/* Whether a value is stored and read by nobody inside: the store rounds it. */
static bool only_leaves(const Node *n)
{
    for (const Use *u = n->uses; u; u = u->next)
        if (!node_is_return(u->user))
            return false;
    return true;
}

/* Whether what a call computes is a number of its type whatever it is: it is one of operands that are, or 0 or 1.  Of integers it need
 * not be: the size of the least one is none of them. */
static bool is_round(const Node *n)
{
    const OpDef *def = op_of(n);
    bool all = def->gives_operand && dtype_is_narrow(n->type->dtype);
    for (int i = 0; i < n->n_in && all; i++) {
        const bool picks = !in(n, i) || in(n, i)->type->dtype == BOOL;
        all = picks || in(n, i)->type->dtype == n->type->dtype;
    }
    return all || (def->row && def->row->test);
}

/* Notes the register that a call left its value in, rounded to the value's type where that is not a number of the
 * arithmetic. */
static void leave(Maker *m, const Node *n, int reg, Arithmetic a, int by)
{
    if (n->type->dtype != number_of[a] && !is_round(n) && !only_leaves(n)) {
        const DType wide = n->type->dtype;
        const Arithmetic to = dtype_is_float(wide)               ? (wide == F64 ? ARITH_F64 : ARITH_F32)
                              : is_short(wide) && a == ARITH_F32 ? ARITH_F32
                              : wide == U64                      ? ARITH_U64
                                                                 : ARITH_I64;
        reg = convert(m, reg, a, to, wide, by);
        a = to;
    }
    Held *h = fact(&m->held, n);
    h->left = a;
    h->in[a][by] = reg + 1;
    if (m->region.length == 1) /* then a row is an element */
        h->in[a][BY_ELEMENT] = h->in[a][BY_ROW] = reg + 1;
}

/* ---- calls ---- */

static int row_step(Maker *m, const Node *n, Arithmetic a, int by, const int *in)
{
    const int out = add_register(m, a, by, false);
    TapeStep *s = add_step(m, TAPE_ROW);
    s->op = n->op;
    s->arithmetic = number_of[a];
    for (int i = 0; i < TAPE_OPERANDS; i++)
        s->in[i] = in[i];
    row_scalars(op_of(n)->attrs, n->attr, s->k);
    s->out = out;
    return out;
}

static void make_row(Maker *m, const Node *n)
{
    const Row *row = op_of(n)->row;
    int index;
    if (region_hits(&m->region, n, &index)) {
        *(Held *)fact(&m->held, n) = (Held){ .hit = in(n, index), .left = ARITH_I64 };
        return;
    }
    const int operands = row->fold ? n->n_in : row->n, by = layout_of(m, n);
    const Type **types = NEWS(m->arena, const Type *, operands + 1);
    int regs[TAPE_OPERANDS] = { TAPE_NONE, TAPE_NONE, TAPE_NONE };
    for (int i = 0; i < operands; i++)
        types[i] = in(n, i) ? in(n, i)->type : NULL;
    const Arithmetic a = row_arithmetic(row, operands, types);
    if (!row->fold) {
        for (int i = 0; i < operands; i++)
            regs[i] = in(n, i) ? want(m, in(n, i), a, by) : fill(m, row_absent(i), NULL, a);
        leave(m, n, row_step(m, n, a, by, regs), a, by);
        return;
    }
    int so_far = want(m, in(n, 0), a, by);
    for (int i = 1; i < operands; i++) {
        regs[0] = so_far;
        regs[1] = want(m, in(n, i), a, by);
        so_far = row_step(m, n, a, by, regs);
    }
    leave(m, n, so_far, a, by);
}

static Arithmetic arithmetic_of(const Type *t)
{
    return dtype_arithmetic(t->dtype);
}

/* Conditions as bits and back: 0 and 1, which are what they are in every arithmetic. */
static void make_bits(Maker *m, const Node *n)
{
    const bool packs = n->type->dtype == BIT;
    const int by = layout_of(m, n);
    Held *held = fact(&m->held, in(n, 0)), *h = fact(&m->held, n);
    const Arithmetic a = packs && !held->in[ARITH_F32][by] ? arithmetic_of(in(n, 0)->type) : ARITH_F32;
    const int reg = want(m, in(n, 0), a, by);
    h->left = a;
    h->in[a][by] = reg + 1;
    if (m->region.length == 1)
        h->in[a][BY_ELEMENT] = h->in[a][BY_ROW] = reg + 1;
}

static void make_cast(Maker *m, const Node *n)
{
    const Held *held = fact(&m->held, in(n, 0)); /* a mark is 0 or 1 in every arithmetic */
    const Type *given = held->hit ? n->type : in(n, 0)->type;
    const bool as_f32 = is_short(given->dtype) && dtype_is_float(n->type->dtype);
    const Arithmetic from = as_f32 ? ARITH_F32 : arithmetic_of(given);
    const int by = layout_of(m, n);
    leave(m, n, want(m, in(n, 0), from, by), from, by);
}

/* A row by its word, over registers. */
static int word_step(Maker *m, Op op, Arithmetic a, int by, int x, int y, int z)
{
    const int out = add_register(m, a, by, false);
    TapeStep *s = add_step(m, TAPE_ROW);
    s->op = op;
    s->arithmetic = number_of[a];
    s->in[0] = x;
    s->in[1] = y;
    s->in[2] = z;
    s->out = out;
    return out;
}

static int draw_step(Maker *m, const DrawCall *d, int by)
{
    const int out = add_register(m, ARITH_F32, by, false);
    TapeStep *s = add_step(m, TAPE_DRAW);
    s->arithmetic = F32;
    s->law = d->law;
    s->stream = d->stream;
    s->own = d->own;
    s->k[0] = (double)d->limit;
    s->out = out;
    return out;
}

static void make_draw(Maker *m, const Node *n, const DrawCall *d)
{
    const Arithmetic a = arithmetic_of(n->type);
    const int by = layout_of(m, n), scale = fill(m, d->scale, NULL, a);
    const int number = draw_step(m, d, by);
    if (d->law != PHILOX_KEEP) {
        const int wide = word_step(m, OP_mul, a, by, number, scale, TAPE_NONE);
        leave(m, n, word_step(m, OP_add, a, by, wide, fill(m, d->offset, NULL, a), TAPE_NONE), a, by);
        return;
    }
    const int kept = a == ARITH_F32 ? number : convert(m, number, ARITH_F32, a, BOOL, by);
    const int grown = word_step(m, OP_mul, a, by, want(m, in(n, 0), a, by), scale, TAPE_NONE);
    leave(m, n, word_step(m, OP_where, a, by, kept, grown, fill(m, 0, NULL, a)), a, by);
}

/* A fold that stays in its rows; those of columns leave by a result. */
static void make_fold(Maker *m, const Node *n, const Reduction *fold)
{
    if (region_fold(&m->region, in(n, 0)->type, fold->axes) != FOLD_ROW)
        return;
    const Arithmetic a = arithmetic_of(in(n, 0)->type);
    const int from = want(m, in(n, 0), a, BY_ELEMENT), out = add_register(m, a, BY_ROW, false);
    TapeStep *s = add_step(m, TAPE_FOLD_ROW);
    s->op = n->op;
    s->arithmetic = number_of[a];
    s->in[0] = from;
    s->out = out;
    leave(m, n, out, a, BY_ROW);
}

static void make_pick(Maker *m, const Node *n)
{
    const Arithmetic a = arithmetic_of(in(n, 0)->type);
    const int from = want(m, in(n, 0), a, BY_ELEMENT), index = want(m, in(n, 1), ARITH_I64, BY_ROW);
    const int out = add_register(m, a, BY_ROW, false);
    TapeStep *s = add_step(m, TAPE_PICK);
    s->arithmetic = number_of[a];
    s->in[0] = from;
    s->in[1] = index;
    s->out = out;
    leave(m, n, out, a, BY_ROW);
}

/* A result on its way out: the step that writes it, and the register that it is read from. */
typedef struct Leaving {
    TapeWord word;
    Arithmetic arithmetic;
    int from;
} Leaving;

static Leaving leaving(Maker *m, const Node *n)
{
    Reduction fold;
    const RegionFold how = region_folds(n, &fold) ? region_fold(&m->region, in(n, 0)->type, fold.axes) : FOLD_NONE;
    const bool leaves = how == FOLD_COLUMN || how == FOLD_ALL;
    const Node *value = leaves ? in(n, 0) : n;
    const int by = leaves ? BY_ELEMENT : how == FOLD_ROW ? BY_ROW : layout_of(m, n);
    const bool given = is_argument(m, value) || value->op == OP_const;
    const Arithmetic a = given ? arithmetic_of(value->type) : ((const Held *)fact(&m->held, value))->left;
    return (Leaving){ .word = how == FOLD_COLUMN ? TAPE_FOLD_COLUMN
                              : how == FOLD_ALL  ? TAPE_FOLD_ALL
                                                 : TAPE_STORE,
                      .arithmetic = a,
                      .from = want(m, value, a, by) };
}

/* All that is read comes before the first that is written: a result may lie over an argument. */
static void make_results(Maker *m)
{
    Leaving *all = NEWS(m->arena, Leaving, m->tape->n_out + 1);
    for (int i = 0; i < m->tape->n_out; i++)
        all[i] = leaving(m, graph_result(m->body, i));
    for (int i = 0; i < m->tape->n_out; i++) {
        TapeStep *s = add_step(m, all[i].word);
        s->op = graph_result(m->body, i)->op;
        s->arithmetic = number_of[all[i].arithmetic];
        s->in[0] = all[i].from;
        s->out = i;
    }
}

/* ---- rooms ---- */

static int last_read(const Tape *t, int reg)
{
    for (int i = t->n_steps - 1; i >= 0; i--)
        for (int k = 0; k < TAPE_OPERANDS; k++)
            if (t->steps[i].word != TAPE_LOAD && t->steps[i].in[k] == reg)
                return i;
    return -1;
}

static bool may_share(const TapeRegister *a, const TapeRegister *b)
{
    const bool wide = a->arithmetic != F32;
    return !a->lasts && !b->lasts && a->per_row == b->per_row && wide == (b->arithmetic != F32);
}

/* What is known of a whole row that is walked in pieces is read by all walks: it keeps its room. */
static bool stays(const Tape *t, const TapeStep *s)
{
    return tape_has_pieces(t) && (t->registers[s->out].per_row || s->word == TAPE_SPREAD);
}

/* Registers are made in the order of their steps: each takes the first room whose last value was read before, or is read by
 * the very step that makes it. */
static void give_rooms(Maker *m)
{
    Tape *t = m->tape;
    int *holds = NEWS(m->arena, int, t->n_registers + 1), *free_at = NEWS(m->arena, int, t->n_registers + 1);
    for (int i = 0; i < t->n_steps; i++) {
        const TapeStep *s = &t->steps[i];
        if (s->word == TAPE_STORE || s->word == TAPE_FOLD_COLUMN || s->word == TAPE_FOLD_ALL)
            continue;
        TapeRegister *r = &t->registers[s->out];
        int room = stays(t, s) ? t->n_rooms : 0;
        while (room < t->n_rooms && !(free_at[room] <= i && may_share(&t->registers[holds[room]], r)))
            room++;
        t->n_rooms += room == t->n_rooms;
        r->room = room;
        holds[room] = s->out;
        free_at[room] = stays(t, s) ? t->n_steps : last_read(t, s->out);
    }
}

/* ---- the tape ---- */

static void set_space(Maker *m, Types *types)
{
    Tape *t = m->tape;
    const Region *r = &m->region;
    t->space = type_tensor(types, BOOL, r->rank, r->dims);
    t->first = r->first;
    t->cut = r->cut;
    t->rows = r->rows;
    t->length = r->length;
    t->n_in = (int)m->body->n_inputs + (r->contraction != NULL);
    t->product = r->contraction ? t->n_in - 1 : TAPE_NONE;
    t->schedule = schedule_name(region_schedule(r));
    t->n_out = graph_n_results(m->body);
    t->in = NEWS(m->arena, const Type *, t->n_in + 1);
    t->out = NEWS(m->arena, const Type *, t->n_out + 1);
    for (int i = 0; i < t->n_in; i++)
        t->in[i] = i == t->product ? r->contraction->type : m->body->inputs[i]->type;
    for (int i = 0; i < t->n_out; i++)
        t->out[i] = graph_result(m->body, i)->type;
}

Tape *tape_make(const Graph *body, Arena *arena)
{
    Arena scratch; /* facts of a few nodes among many take more than the tape */
    arena_open(&scratch, arena->memory);
    Maker m = { .arena = arena, .body = body, .tape = NEW(arena, Tape), .held = facts_open(&scratch, sizeof(Held)) };
    const char *wrong = region_read_body(body, &scratch, &m.region);
    Reduction fold;
    DrawCall draw;
    BUG_IF(body->ir->memory, wrong);
    set_space(&m, &body->ir->types);
    for (const Node *n = body->first; n; n = n->next) {
        if (n->op == OP_const || n == m.region.contraction)
            continue;
        if (region_folds(n, &fold))
            make_fold(&m, n, &fold);
        else if (op_of(n)->row)
            make_row(&m, n);
        else if (draw_of(n, &draw))
            make_draw(&m, n, &draw);
        else if (region_picks(n, &fold))
            make_pick(&m, n);
        else if (n->type->dtype == BIT || in(n, 0)->type->dtype == BIT)
            make_bits(&m, n);
        else
            make_cast(&m, n);
    }
    make_results(&m);
    give_rooms(&m);
    arena_close(&scratch);
    return m.tape;
}
