#include "runtime/cpu/tape_chains.h"

#include "ops/card/reduction.h"

/* Expressions as words: a row before its operands, leaves below 0. */
enum { X = -1, Y = -2, Z = -3, A = -4, B = -5, C = -6, D = -7, LEAVES = 8, MOST_WORDS = 16 };

#define ADD(x, y)      OP_add, x, y
#define SUB(x, y)      OP_sub, x, y
#define MUL(x, y)      OP_mul, x, y
#define DIV(x, y)      OP_div, x, y
#define SQRT(x)        OP_sqrt, x
#define GREATER(x, y)  OP_greater, x, y
#define WHERE(x, y, z) OP_where, x, y, z

#define CHAIN(id, ...) [CHAIN_##id] = { __VA_ARGS__ },
static const int chains[CHAIN_COUNT][MOST_WORDS] = {
#include "ops/kernels/chains.def"
};
#undef CHAIN

/* What is found of a chain on the way down from its last row. */
typedef struct Match {
    const TapeRunner *r;
    const int *word;       /* the next one */
    int leaf[LEAVES];      /* by leaf: its register; TAPE_NONE: not met yet */
    int steps[MOST_WORDS]; /* the rows but for the last one */
    int n_steps, root;
} Match;

static int maker_of(const TapeRunner *r, int reg, int before)
{
    for (int i = before - 1; i >= 0; i--) {
        const TapeStepRun *s = &r->steps[i];
        if (s->word != TAPE_STORE && s->word != TAPE_FOLD_COLUMN && s->word != TAPE_FOLD_ALL && s->out == reg)
            return i;
    }
    return -1;
}

static int readers_of(const TapeRunner *r, int reg)
{
    int n = 0;
    for (int i = 0; i < r->n_steps; i++) {
        const TapeStepRun *s = &r->steps[i];
        for (int k = 0; k < TAPE_OPERANDS && s->word != TAPE_LOAD && !s->chain; k++)
            n += s->in[k] == reg;
        for (int k = 0; k < CHAIN_STREAMS && s->chain; k++)
            n += s->chain->streams[k] == reg;
        for (int k = 0; k < CHAIN_NUMBERS && s->chain; k++)
            n += s->chain->numbers[k] == reg;
    }
    return n;
}

static bool is_number(const TapeRunner *r, int reg)
{
    return r->tape->registers[reg].lasts || r->rows[reg] == ROWS_NUMBER;
}

static bool is_plain_row(const TapeRunner *r, const TapeStepRun *s)
{
    return s->word == TAPE_ROW && s->arithmetic == ARITH_F32 && !s->table && !s->chain &&
           !r->tape->registers[s->out].per_row && !is_number(r, s->out);
}

/* A number that is made before the block, or of a row that has whole rows; or elements, which have a place in every block. */
static bool take_leaf(Match *m, int leaf, int reg)
{
    const TapeRegister *t = reg < 0 ? NULL : &m->r->tape->registers[reg];
    const bool wants_number = leaf <= A;
    if (!t || dtype_arithmetic(t->arithmetic) != ARITH_F32 || is_number(m->r, reg) != wants_number)
        return false;
    if (!wants_number && t->per_row)
        return false;
    if (m->leaf[-leaf] >= 0)
        return m->leaf[-leaf] == reg;
    m->leaf[-leaf] = reg;
    return true;
}

static bool match(Match *m, int reg, int before, bool is_root)
{
    const int word = *m->word++;
    if (word < 0)
        return take_leaf(m, word, reg);
    const int made = reg < 0 ? -1 : maker_of(m->r, reg, before);
    const TapeStepRun *s = made < 0 ? NULL : &m->r->steps[made];
    if (!s || !is_plain_row(m->r, s) || s->op != (Op)word || (!is_root && readers_of(m->r, reg) != 1))
        return false;
    if (!is_root)
        m->steps[m->n_steps++] = made;
    for (int i = 0; i < TAPE_OPERANDS; i++)
        if (s->in[i] >= 0 && !match(m, s->in[i], made, false))
            return false;
    return true;
}

static bool is_in(const Match *m, int step)
{
    for (int i = 0; i < m->n_steps; i++)
        if (m->steps[i] == step)
            return true;
    return step == m->root;
}

/* The first step that writes a result. */
static int written_at(const TapeRunner *r, int result)
{
    for (int i = 0; i < r->n_steps; i++)
        if (r->steps[i].word == TAPE_STORE && r->steps[i].out == result)
            return maker_of(r, r->steps[i].in[0], i);
    return -1;
}

/* Whether elements that a leaf holds are there until the last row: nothing else is made in their room, and no result is made
 * over the argument that they are, but by that row itself. */
static bool lasts(const Match *m, int reg, const int *over)
{
    const TapeRunner *r = m->r;
    const TapeRegister *regs = r->tape->registers;
    const int made = maker_of(r, reg, m->root);
    if (regs[reg].lasts)
        return true;
    for (int i = made + 1; i < m->root; i++) {
        const TapeStepRun *s = &r->steps[i];
        const bool makes = s->word != TAPE_STORE && s->word != TAPE_FOLD_COLUMN && s->word != TAPE_FOLD_ALL;
        if (makes && !is_in(m, i) && regs[s->out].room == regs[reg].room)
            return false;
    }
    for (int i = 0; over && made >= 0 && r->steps[made].word == TAPE_LOAD && i < r->tape->n_out; i++)
        if (over[i] == r->steps[made].argument && written_at(r, i) < m->root)
            return false;
    return made >= 0;
}

static bool find(const TapeRunner *r, int root, int chain, const int *over, Match *m)
{
    *m = (Match){ .r = r, .word = chains[chain], .root = root };
    for (int i = 0; i < LEAVES; i++)
        m->leaf[i] = TAPE_NONE;
    if (!match(m, r->steps[root].out, root + 1, true))
        return false;
    for (int i = 1; i < LEAVES; i++)
        if (m->leaf[i] >= 0 && !lasts(m, m->leaf[i], over))
            return false;
    return true;
}

static void join(TapeRunner *r, const Match *m, int chain, Arena *arena)
{
    TapeChain *c = NEW(arena, TapeChain);
    TapeStepRun *root = &r->steps[m->root];
    c->loop = kernels_chain(r->kernels, chain);
    for (int i = 0; i < CHAIN_STREAMS; i++)
        c->streams[i] = m->leaf[-X + i];
    for (int i = 0; i < CHAIN_NUMBERS; i++) {
        c->numbers[i] = m->leaf[-A + i];
        c->by_rows = c->by_rows || (c->numbers[i] >= 0 && r->rows[c->numbers[i]] == ROWS_NUMBER);
    }
    for (int i = 0; i < CHAIN_STREAMS; i++)
        c->by_rows = c->by_rows || (c->streams[i] >= 0 && r->rows[c->streams[i]] == ROWS_SAME);
    root->chain = c;
    int n = 0;
    for (int i = 0; i < r->n_steps; i++)
        if (i == m->root || !is_in(m, i))
            r->steps[n++] = r->steps[i];
    r->n_steps = n;
}

void tape_chains(TapeRunner *r, const int *over, Arena *arena)
{
    Match m;
    if (tape_has_channels(r->tape)) /* whose steps are known by their numbers */
        return;
    for (int chain = 0; chain < CHAIN_COUNT; chain++)
        for (int i = r->n_steps - 1; i >= 0; i--)
            if (is_plain_row(r, &r->steps[i]) && r->steps[i].op == (Op)chains[chain][0] &&
                find(r, i, chain, over, &m)) {
                join(r, &m, chain, arena);
                i = r->n_steps;
            }
}
