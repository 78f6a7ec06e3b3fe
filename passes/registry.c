/* The passes by name. */
#include <string.h>

#include "passes/engine/pattern.h"

#define PASS(name) extern const Pass pass_##name;
#include "passes/passes.def"
#undef PASS

const Pass *const all_passes[] = {
#define PASS(name) &pass_##name,
#include "passes/passes.def"
#undef PASS
};

const size_t n_all_passes = COUNT(all_passes);

/* People type fold-casts and fold_casts. */
static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a == '_' ? '-' : *a) != (*b == '_' ? '-' : *b))
            return false;
    return *a == *b;
}

const Pass *pass_find(const char *name)
{
    for (size_t i = 0; i < n_all_passes; i++)
        if (same_name(all_passes[i]->name, name))
            return all_passes[i];
    return NULL;
}

Status pass_run(const Pass *pass, Graph *g, PassRun *run)
{
    static const PassOptions defaults = { 0 };
    PassRun own = run ? *run : (PassRun){ .allowed = -1 };
    Arena scratch;
    arena_open(&scratch, g->ir->memory);
    own.pass = pass;
    own.scratch = &scratch;
    own.options = own.options ? own.options : &defaults;
    own.diag = own.diag ? own.diag : g->ir->diag;
    const Status status = pass->run ? pass->run(g, &own) : rules_run(pass->rules, pass->n_rules, g, &own);
    if (status == OK && pass->after)
        pass->after(g, &own);
    arena_close(&scratch);
    if (run) {
        run->changes = own.changes;
        run->allowed = own.allowed;
    }
    return status;
}
