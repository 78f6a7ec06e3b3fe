#include "runtime/cpu/tape_codes.h"

/* clip(where(is_nan(v), z, v + z), least, most), or without z and with 0 instead of it; v may be round(x). */
typedef struct Chain {
    int from, zero;                   /* registers: of v, or of x where it is rounded; below 0: no zero point */
    int round, nan, sum, where, clip; /* steps; below 0: there is none */
    f32 least, most;
} Chain;

static int readers_of(const TapeRunner *r, int reg)
{
    int n = 0;
    for (int i = 0; i < r->n_steps; i++)
        n += tape_reads(&r->steps[i], reg);
    return n;
}

static bool is_whole(const TapeRunner *r, int reg)
{
    const TapeRegister *t = &r->tape->registers[reg];
    return !t->per_row && !t->lasts && r->rows[reg] == ROWS_WHOLE;
}

static bool is_row(const TapeRunner *r, int step, Op op)
{
    const TapeStepRun *s = step < 0 ? NULL : &r->steps[step];
    return s && s->word == TAPE_ROW && s->op == op && s->arithmetic == ARITH_F32 && !s->by_rows && !s->table &&
           is_whole(r, s->out);
}

/* The step that makes an operand, if it is a row of that word and so many read what it makes. */
static int row_below(const TapeRunner *r, int step, int operand, Op op, int readers)
{
    const int reg = r->steps[step].in[operand], made = reg < 0 ? -1 : tape_maker(r, reg, step);
    return is_row(r, made, op) && readers_of(r, reg) == readers ? made : -1;
}

static bool number_of(const TapeRunner *r, int step, int operand, f32 *v)
{
    const int reg = r->steps[step].in[operand], made = reg < 0 ? -1 : tape_maker(r, reg, step);
    if (made < 0 || r->steps[made].word != TAPE_FILL)
        return false;
    *v = (f32)r->steps[made].k[0];
    if (r->steps[made].value)
        kernels_load(r->kernels, ARITH_F32, v, r->steps[made].value, 0, 1);
    return true;
}

/* What is 0 for no number, or is a zero point that is added to the rest. */
static bool read_zero(const TapeRunner *r, Chain *c, int v)
{
    const int instead = r->steps[c->where].in[1];
    f32 zero;
    c->zero = -1;
    c->sum = row_below(r, c->where, 2, OP_add, 1);
    if (r->steps[c->where].in[2] == v)
        return number_of(r, c->where, 1, &zero) && zero == 0;
    if (c->sum < 0 || r->steps[c->sum].in[0] != v || r->steps[c->sum].in[1] != instead || instead < 0 ||
        !r->tape->registers[instead].lasts)
        return false;
    c->zero = instead;
    return true;
}

static bool is_in(const Chain *c, int step)
{
    return step == c->round || step == c->nan || step == c->sum || step == c->where || step == c->clip;
}

/* What the rows begin with is there until the last of them: no other step between them writes where it lies. */
static bool lasts_until_clip(const TapeRunner *r, const Chain *c)
{
    const TapeRegister *regs = r->tape->registers;
    const int made = tape_maker(r, c->from, c->clip);
    bool lasts = made >= 0 && r->steps[made].word == TAPE_ROW && is_whole(r, c->from);
    for (int i = made + 1; lasts && i < c->clip; i++) {
        const TapeStepRun *s = &r->steps[i];
        if (!is_in(c, i) && tape_makes(s->word))
            lasts = regs[s->out].room != regs[c->from].room;
    }
    return lasts;
}

static bool read_chain(const TapeRunner *r, int clip, Chain *c)
{
    *c = (Chain){ .clip = clip };
    if (!is_row(r, clip, OP_clip) || !number_of(r, clip, 1, &c->least) || !number_of(r, clip, 2, &c->most))
        return false;
    c->where = row_below(r, clip, 0, OP_where, 1);
    c->nan = c->where < 0 ? -1 : row_below(r, c->where, 0, OP_is_nan, 1);
    if (c->nan < 0)
        return false;
    const int v = r->steps[c->nan].in[0];
    if (v < 0 || !read_zero(r, c, v))
        return false;
    const int rounded = row_below(r, c->nan, 0, OP_round, 2);
    c->round = rounded;
    c->from = rounded < 0 ? v : r->steps[rounded].in[0];
    if (lasts_until_clip(r, c))
        return true;
    c->round = -1;
    c->from = v;
    return rounded >= 0 && lasts_until_clip(r, c);
}

/* All in the place of the last one. */
static void join(TapeRunner *r, const Chain *c)
{
    TapeStepRun *clip = &r->steps[c->clip];
    const CodeLoops *loops = kernels_codes(r->kernels);
    clip->row = c->round < 0 ? loops->settled : loops->stored;
    clip->in[0] = c->from;
    clip->in[1] = c->zero;
    clip->in[2] = TAPE_NONE;
    clip->k[0] = (double)c->least;
    clip->k[1] = (double)c->most;
    int n = 0;
    for (int i = 0; i < r->n_steps; i++)
        if (i == c->clip || !is_in(c, i))
            r->steps[n++] = r->steps[i];
    r->n_steps = n;
}

void tape_codes(TapeRunner *r)
{
    Chain c;
    if (tape_has_channels(r->tape)) /* whose steps are known by their numbers */
        return;
    for (int i = 0; i < r->n_steps; i++)
        if (read_chain(r, i, &c)) {
            join(r, &c);
            i = -1;
        }
}
