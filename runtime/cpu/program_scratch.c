#include "runtime/cpu/program_scratch.h"

#include "ops/machine/caller.h"

TapeRunner *launch_tape(const Launch *l, const OpTable *ops, const Kernels *kernels, int workers, Arena *arena)
{
    bool *copied = NEWS(arena, bool, l->n_in + 1);
    if (l->kind != LAUNCH_REGION)
        return NULL;
    for (int i = 0; i < l->n_out; i++)
        if (l->over[i] != LIES_APART)
            copied[l->over[i]] = true;
    return tape_runner(l->tape, ops, kernels, workers, copied, arena);
}

size_t program_calls_scratch(const Program *p)
{
    size_t most = 0;
    for (int i = 0; i < p->n_launches; i++) {
        const size_t bytes = p->launches[i].kind == LAUNCH_REGION ? 0 : caller_room(p->launches[i].node);
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t program_scratch(const Program *p, int threads, Arena *arena)
{
    size_t most = 0;
    for (int i = 0; i < p->n_launches; i++) {
        const ArenaMark mark = arena_mark(arena);
        const TapeRunner *tape = launch_tape(&p->launches[i], p->graph->ir->ops, kernels_best(), threads, arena);
        const size_t bytes = tape ? tape_scratch(tape) : 0;
        most = bytes > most ? bytes : most;
        arena_reset(arena, mark);
    }
    return most + program_calls_scratch(p); /* neither is given back between launches */
}
