/* What engines run of a model or a step: where its values lie, and the launches that make them. */
#include "api/emit/emit.h"

#include "api/hall/lower.h"

static Status add_graph(Text *t, const Graph *g, Arena *arena, EmitPrograms how)
{
    const Lowered l = lower_graph_heard(g, how.lowering, arena);
    if (!l.program)
        return lower_refuse(g, &l);
    for (size_t i = 0; i < l.n_remarks; i++)
        remark(g->ir->diag, "fusion", l.remarks[i].place, "%s", l.remarks[i].text);
    text_printf(t, "%s%s: ", t->n ? "\n" : "", g->name ? g->name : "graph");
    if (how.plan)
        plan_print(t, &l.plan);
    else
        program_print(t, l.program, g->ir->ops, how.tapes);
    return OK;
}

Status emit_programs(const Module *module, const Graph *model, EmitPrograms how, Out *o)
{
    static const char *const of_step[] = { "step", "eval" };
    Arena *arena = &o->cx->scratch;
    Text t;
    text_open(&t, arena);
    if (model)
        TRY(add_graph(&t, model, arena, how));
    for (size_t i = 0; i < COUNT(of_step) && !model; i++) {
        const Graph *g = module_graph(module, of_step[i]);
        if (g)
            TRY(add_graph(&t, g, arena, how));
    }
    return out_bytes(o, t.p, t.n);
}
