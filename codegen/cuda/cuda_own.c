/* Kernels that cards write themselves (ops/card/own_kernel.h): their heads, and what they call their operands. */
#include <inttypes.h>

#include "codegen/cuda/cuda_calls.h"
#include "ops/card/own_kernel.h"
#include "ops/card/reduction.h"

static void name_operand(const CallMaker *m, int i)
{
    const DType d = in(m->call, i)->type->dtype;
    const int at = cuda_call_argument(m, i);
    text_printf(m->w.out, "#define RAW%d in%d\n", i, at);
    text_printf(m->w.out, "#define IN%d(i) (%s)\n", i,
                cuda_load(&m->words, d, dtype_wide(d), arena_printf(m->w.arena, "in%d[i]", at)));
    text_printf(m->w.out, "#define ROUND%d(v) (%s)\n", i,
                cuda_load(&m->words, d, dtype_wide(d), cuda_store(&m->words, dtype_wide(d), d, "(v)")));
}

static void name_result(const CallMaker *m, int i)
{
    const DType d = cuda_call_result(m, i)->dtype;
    text_printf(m->w.out, "#define OUTRAW%d out%d\n", i, i);
    text_printf(m->w.out, "#define OUT%d(i, v) out%d[i] = %s\n", i, i, cuda_store(&m->words, dtype_wide(d), d, "(v)"));
}

/* What their bodies call what they read and make; or no longer. */
static void names(const CallMaker *m, bool begin)
{
    static const char *const of_operands[] = { "RAW", "IN", "ROUND" }, *const of_results[] = { "OUTRAW", "OUT" };
    const int results = type_results(m->call->type);
    if (m->launch->refuses)
        text_add(m->w.out, begin ? "#define REFUSE (*refused = 1)\n" : "#undef REFUSE\n");
    for (int i = 0; begin && i < m->call->n_in; i++)
        if (in(m->call, i))
            name_operand(m, i);
    for (int i = 0; begin && i < results; i++)
        name_result(m, i);
    for (size_t k = 0; !begin && k < COUNT(of_operands); k++)
        for (int i = 0; i < m->call->n_in; i++)
            if (in(m->call, i))
                text_printf(m->w.out, "#undef %s%d\n", of_operands[k], i);
    for (size_t k = 0; !begin && k < COUNT(of_results); k++)
        for (int i = 0; i < results; i++)
            text_printf(m->w.out, "#undef %s%d\n", of_results[k], i);
}

static void print_kernel(CallMaker *m, const OwnKernel *k)
{
    m->tensor = k->tensor;
    if (k->block) {
        cuda_call_head(m, k->part, k->n, k->block);
        text_printf(m->w.out, "    const i64 block = blockIdx.x;\n    const u32 thread = threadIdx.x;\n");
    } else {
        cuda_call_head(m, k->part, (k->n + CUDA_THREADS - 1) / CUDA_THREADS, CUDA_THREADS);
        text_printf(m->w.out, "    const i64 o = (i64)blockIdx.x * %d + threadIdx.x;\n", CUDA_THREADS);
        text_printf(m->w.out, "    if (o >= %" PRId64 ")\n        return;\n", k->n);
    }
    text_add(m->w.out, k->body);
    cuda_call_close(m);
}

static bool all_known(const Node *call)
{
    for (int i = 0; i < call->n_in; i++)
        if (in(call, i) && !type_known(in(call, i)->type))
            return false;
    for (int i = 0; i < type_results(call->type); i++)
        if (!type_known(type_result(call->type, i)) || !type_elements(type_result(call->type, i)))
            return false;
    return true;
}

bool cuda_own(CallMaker *m)
{
    const OpDef *def = op_of(m->call);
    OwnKernels own = { .arena = m->w.arena };
    if (!def->access.kernels || !all_known(m->call) || !def->access.kernels(m->call, &own))
        return false;
    m->launch->draws = own.draws;
    m->launch->scratch = own.scratch;
    names(m, true);
    for (int i = 0; i < own.n; i++)
        print_kernel(m, &own.list[i]);
    names(m, false);
    return true;
}
