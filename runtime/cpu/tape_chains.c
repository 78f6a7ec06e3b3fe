#include "runtime/cpu/tape_chains.h"

#include "ops/card/reduction.h"

#define X              LEAF_X
#define Y              LEAF_Y
#define Z              LEAF_Z
#define A              LEAF_A
#define B              LEAF_B
#define C              LEAF_C
#define D              LEAF_D
#define E              LEAF_E
#define ADD(x, y)      OP_add, x, y
#define SUB(x, y)      OP_sub, x, y
#define MUL(x, y)      OP_mul, x, y
#define DIV(x, y)      OP_div, x, y
#define SQRT(x)        OP_sqrt, x
#define EXP(x)         OP_exp, x
#define ERF(x)         OP_erf, x
#define ROUND(x)       OP_round, x
#define CLIP(x, y, z)  OP_clip, x, y, z
#define EQUAL(x, y)    OP_equal, x, y
#define GREATER(x, y)  OP_greater, x, y
#define WHERE(x, y, z) OP_where, x, y, z

#define CHAIN(id, ...) [CHAIN_##id] = { __VA_ARGS__ },
const int tape_chain_words[CHAIN_COUNT][CHAIN_WORDS] = {
#include "ops/kernels/chains.def"
};
#undef CHAIN

/* What is found of a chain on the way down from its last row. */
typedef struct Match {
    const TapeRunner *r;
    const int *word;        /* the next one */
    int leaf[CHAIN_LEAVES]; /* by leaf: its register; TAPE_NONE: not met yet */
    int steps[CHAIN_WORDS]; /* the rows but for the last one */
    int n_steps, root;
} Match;

/* Walks over a row that is walked in pieces, of which each runs some steps; elsewhere all steps run in the one there is. */
static int walks_of(const TapeRunner *r)
{
    return r->channels && r->channels->n_phases ? r->channels->last_walk + 1 : 1;
}

static bool is_walked(const TapeRunner *r, int walk, int step)
{
    return !r->channels || !r->channels->n_phases || r->channels->walk[walk][step];
}

/* Whether, wherever the last row of a chain runs, what makes this register does so for one reader alone. */
static bool has_one_reader(const Match *m, int reg)
{
    const TapeRunner *r = m->r;
    for (int walk = 0; walk < walks_of(r); walk++) {
        int n = 0;
        for (int i = 0; i < r->n_steps && is_walked(r, walk, m->root); i++)
            n += is_walked(r, walk, i) ? tape_reads(&r->steps[i], reg) : 0;
        if (n > 1)
            return false;
    }
    return true;
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
    const bool wants_number = leaf <= LEAF_A;
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
    const int made = reg < 0 ? -1 : tape_maker(m->r, reg, before);
    const TapeStepRun *s = made < 0 ? NULL : &m->r->steps[made];
    if (!s || !is_plain_row(m->r, s) || s->op != (Op)word || (!is_root && !has_one_reader(m, reg)))
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
            return tape_maker(r, r->steps[i].in[0], i);
    return -1;
}

/* Whether no result is made over the argument that a leaf is before the last row, which makes one element after the other. */
static bool lasts(const Match *m, int reg, const int *over)
{
    const TapeRunner *r = m->r;
    const int made = tape_maker(r, reg, m->root);
    for (int i = 0; over && made >= 0 && r->steps[made].word == TAPE_LOAD && i < r->tape->n_out; i++)
        if (over[i] == r->steps[made].argument && written_at(r, i) < m->root)
            return false;
    return made >= 0;
}

/* Elements and numbers are read later than their tape has it: where another register would take their room, they get their own. */
static void keep(TapeRunner *r, const Match *m, int reg)
{
    const TapeRegister *regs = r->tape->registers;
    for (int i = tape_maker(r, reg, m->root) + 1; i < m->root; i++) {
        const TapeStepRun *s = &r->steps[i];
        if (tape_makes(s->word) && !is_in(m, i) && regs[s->out].room == regs[reg].room)
            r->is_apart[reg] = true;
    }
}

static bool find(const TapeRunner *r, int root, int chain, const int *over, Match *m)
{
    *m = (Match){ .r = r, .word = tape_chain_words[chain], .root = root };
    for (int i = 0; i < CHAIN_LEAVES; i++)
        m->leaf[i] = TAPE_NONE;
    if (!match(m, r->steps[root].out, root + 1, true))
        return false;
    for (int i = 1; i < CHAIN_LEAVES; i++)
        if (m->leaf[i] >= 0 && !lasts(m, m->leaf[i], over))
            return false;
    return true;
}

static void drop_steps(TapeRunner *r, const Match *m)
{
    int n = 0;
    for (int i = 0; i < r->n_steps; i++)
        if (i == m->root || !is_in(m, i))
            r->steps[n++] = r->steps[i];
    r->n_steps = n;
}

/* Steps of walks are known by their numbers, and other walks may need them. */
static void leave_walks(const TapeRunner *r, const Match *m)
{
    Channels *c = r->channels;
    for (int walk = 0; walk < walks_of(r); walk++)
        for (int i = 0; i < m->n_steps && c->walk[walk][m->root]; i++) {
            c->n_walk[walk] -= c->walk[walk][m->steps[i]];
            c->walk[walk][m->steps[i]] = false;
        }
}

static void join(TapeRunner *r, const Match *m, int chain, Arena *arena)
{
    TapeChain *c = NEW(arena, TapeChain);
    TapeStepRun *root = &r->steps[m->root];
    c->loop = kernels_chain(r->kernels, chain);
    for (int i = 0; i < CHAIN_STREAMS; i++)
        c->streams[i] = m->leaf[-LEAF_X + i];
    for (int i = 0; i < CHAIN_NUMBERS; i++) {
        c->numbers[i] = m->leaf[-LEAF_A + i];
        c->by_rows = c->by_rows || (c->numbers[i] >= 0 && r->rows[c->numbers[i]] == ROWS_NUMBER);
    }
    for (int i = 0; i < CHAIN_STREAMS; i++)
        c->by_rows = c->by_rows || (c->streams[i] >= 0 && r->rows[c->streams[i]] == ROWS_SAME);
    root->chain = c;
    for (int i = 1; i < CHAIN_LEAVES; i++)
        if (m->leaf[i] >= 0)
            keep(r, m, m->leaf[i]);
    if (r->channels && r->channels->n_phases)
        leave_walks(r, m);
    else
        drop_steps(r, m);
}

void tape_chains(TapeRunner *r, const int *over, Arena *arena)
{
    Match m;
    for (int chain = 0; chain < CHAIN_COUNT; chain++)
        for (int i = r->n_steps - 1; i >= 0; i--)
            if (is_plain_row(r, &r->steps[i]) && r->steps[i].op == (Op)tape_chain_words[chain][0] &&
                find(r, i, chain, over, &m)) {
                join(r, &m, chain, arena);
                i = r->n_steps;
            }
}
