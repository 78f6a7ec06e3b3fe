/* Steps that a device runs and commits by itself: all launches of a program, with places for all that is late. */
#include "runtime/host/program_runner.h"

static ProgramRunner *of(const GraphRunner *r)
{
    return (ProgramRunner *)(uintptr_t)r;
}

/* Nothing of it has run yet, and nobody watches its launches one by one. */
bool program_decides(const GraphRunner *r, const EngineStep *step)
{
    const ProgramRunner *p = of(r);
    return p->does->decides && p->began && !p->at && !p->watch && p->does->decides(p, step);
}

const Tensor *program_settled(const GraphRunner *r, int result)
{
    const ProgramRunner *p = of(r);
    const ProgramValue *v = &p->program->results[result];
    if (v->home == HOME_ARENA || v->home == HOME_CONSTANT)
        return &p->of_result[result].tensor;
    return v->home == HOME_INPUT ? p->operands[v->at] : NULL;
}

Tensor *program_apart(GraphRunner *r, int late)
{
    ProgramRunner *p = of(r);
    if (!p->apart[late])
        p->apart[late] = space_tensor(p->room->space, p->heap, graph_result(p->program->graph, late)->type);
    return p->apart[late];
}

void program_close_apart(ProgramRunner *p)
{
    for (int i = 0; i < p->program->n_results; i++)
        if (p->apart[i])
            space_drop(p->room->space, p->heap, p->apart[i]);
}

Status program_step(GraphRunner *r, const RunnerStep *step)
{
    ProgramRunner *p = of(r);
    const Program *program = p->program;
    p->is_late = false;
    if (program_stopped(p)) /* behind this nothing stops it */
        return INTERRUPTED;
    program_want(p, step->into);
    for (int i = 0; i < program->n_results; i++)
        if (step->into[i])
            program_let_lie(p, i, step->into[i]->data);
    for (int k = program->first[STEP_LATE]; k < program->n_launches; k++)
        for (int i = 0; i < program->launches[k].n_out && p->wanted[k]; i++) {
            const ProgramValue *v = &program->launches[k].out[i];
            if (v->home == HOME_NEXT && !step->into[v->at]) /* nobody asked for it */
                program_let_lie(p, (int)v->at, program_apart(r, (int)v->at)->data);
        }
    TRY(space_status(p->room->space));
    TRY(p->does->step(p, step));
    p->at = program->n_launches;
    return OK;
}

Status program_told(GraphRunner *r, EngineTold *told)
{
    return of(r)->does->told(of(r), told);
}
