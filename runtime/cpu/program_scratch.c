#include "runtime/cpu/program_scratch.h"

#include "ops/machine/caller.h"

TapeRunner *launch_tape(const Launch *l, const OpTable *ops, const Kernels *kernels, int workers, Arena *arena)
{
    return l->tape ? tape_runner(l->tape, ops, kernels, workers, l->over, arena) : NULL;
}

size_t program_calls_scratch(const Program *p)
{
    size_t most = 0, wave = 0; /* those that run side by side have rooms of their own */
    for (int i = 0; i < p->n_launches; i++) {
        const Launch *l = &p->launches[i];
        const Node *call = l->kind == LAUNCH_CALL ? l->node : l->contraction;
        wave = (l->beside ? wave : 0) + (call ? caller_room(call) : 0);
        most = wave > most ? wave : most;
    }
    return most;
}

size_t program_scratch(const Program *p, int threads, Arena *arena)
{
    size_t most = 0, wave = 0, worker = 0; /* those that run side by side have a scratch each, workers one for all */
    for (int i = 0; i < p->n_launches; i++) {
        const ArenaMark mark = arena_mark(arena);
        const TapeRunner *tape = launch_tape(&p->launches[i], p->graph->ir->ops, kernels_best(), threads, arena);
        wave = (p->launches[i].beside ? wave : 0) + (tape ? tape_scratch(tape) : 0);
        most = wave > most ? wave : most;
        worker = tape && tape_worker_scratch(tape) > worker ? tape_worker_scratch(tape) : worker;
        arena_reset(arena, mark);
    }
    return (size_t)threads * worker + most + program_calls_scratch(p); /* neither is given back between launches */
}
