#include "runtime/cpu/tape_casts.h"

#include <string.h>

/* Whether an argument is read block by block, as integers of 64 bits of which each is an f32 after one rounding. */
static bool is_narrow_load(const TapeRunner *r, const TapeStepRun *s)
{
    enum { MOST_BITS = 32 };
    return s->word == TAPE_LOAD && s->feed == FEED_DENSE && s->argument != r->tape->product &&
           (s->arithmetic == ARITH_I64 || s->arithmetic == ARITH_U64) &&
           dtype_bits(r->tape->in[s->argument]->dtype) <= MOST_BITS;
}

static bool is_cast_of(const TapeRunner *r, const TapeStepRun *s, const TapeStepRun *load)
{
    const TapeRegister *regs = r->tape->registers;
    return s->word == TAPE_ROUND && s->in[0] == load->out && s->to == ARITH_F32 && s->through == F32 &&
           regs[s->out].per_row == regs[load->out].per_row;
}

/* Whether more than one operand of a step is this register. */
static bool is_shared(const TapeRunner *r, int reg)
{
    int n = 0;
    for (int i = 0; i < r->n_steps; i++)
        n += tape_reads(&r->steps[i], reg);
    return n > 1;
}

/* What leaves as it is is made where it goes to, which is no place to read it into. */
static bool leaves(const TapeRunner *r, int reg)
{
    for (int i = 0; i < r->n_steps; i++)
        if (r->steps[i].word == TAPE_STORE && r->steps[i].in[0] == reg)
            return true;
    return false;
}

void tape_casts(TapeRunner *r)
{
    if (tape_has_channels(r->tape)) /* whose steps are known by their numbers */
        return;
    for (int i = 0; i + 1 < r->n_steps; i++) {
        TapeStepRun *load = &r->steps[i];
        if (!is_narrow_load(r, load) || !is_cast_of(r, &r->steps[i + 1], load) || is_shared(r, load->out) ||
            leaves(r, r->steps[i + 1].out))
            continue;
        load->arithmetic = ARITH_F32;
        load->size = sizeof(f32);
        load->out = r->steps[i + 1].out;
        r->n_steps--;
        memmove(load + 1, load + 2, (size_t)(r->n_steps - i - 1) * sizeof *load);
    }
}
